//! The form of a file: how its bytes are rows and cells.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Csv {
        separator: u8,
        quote: u8,
    },
    /// A JSON object in each line.
    JsonLines,
}

impl Default for Form {
    fn default() -> Self {
        Self::Csv { separator: b',', quote: b'"' }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormError {
    #[error(
        "`{0}` cannot separate fields: write one ASCII character that is neither a quote, a letter, a digit nor a line break"
    )]
    Separator(String),
    #[error(
        "`{0}` cannot quote fields: write one ASCII character that is neither a letter, a digit nor a line break"
    )]
    Quote(String),
    #[error("separator and quote are the same character")]
    Same,
}

impl Form {
    /// CSV with these characters; `\t` may be written for a tab.
    pub fn csv(separator: &str, quote: &str) -> Result<Self, FormError> {
        let separator =
            sign(separator).ok_or_else(|| FormError::Separator(separator.to_owned()))?;
        let quote = sign(quote).ok_or_else(|| FormError::Quote(quote.to_owned()))?;
        if separator == quote {
            return Err(FormError::Same);
        }
        Ok(Self::Csv { separator, quote })
    }
}

fn sign(text: &str) -> Option<u8> {
    let byte = match text.as_bytes() {
        b"\\t" => b'\t',
        [byte] => *byte,
        _ => return None,
    };
    let is_sign =
        byte.is_ascii() && !byte.is_ascii_alphanumeric() && !matches!(byte, b'\r' | b'\n' | 0);
    is_sign.then_some(byte)
}
