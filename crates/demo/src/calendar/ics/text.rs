//! Texts inside of values: commas, semicolons, backslashes and line breaks are written with a
//! backslash before them.

/// A text as a value holds it.
pub(crate) fn escaped(text: &str) -> String {
    let mut value = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' | ';' | ',' => value.extend(['\\', letter]),
            '\n' => value.push_str("\\n"),
            '\r' => {
                letters.next_if_eq(&'\n');
                value.push_str("\\n");
            }
            // No file may hold these.
            letter if letter.is_control() && letter != '\t' => {}
            letter => value.push(letter),
        }
    }
    value
}

/// The text that a value holds.
pub(crate) fn plain(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    let mut letters = value.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some('n' | 'N') => text.push('\n'),
                Some(escaped) => text.push(escaped),
                None => text.push('\\'),
            },
            letter => text.push(letter),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_escaped_comes_back() {
        for text in ["", "plain", "a, b; c\\d", "one\ntwo\n", "\\n is no line", "tab\tüß✓"] {
            assert_eq!(plain(&escaped(text)), text, "{text:?}");
            assert!(!escaped(text).contains('\n'));
        }
        assert_eq!(escaped("a,b;c\\d\n"), "a\\,b\\;c\\\\d\\n");
    }

    #[test]
    fn line_breaks_are_all_the_same_and_other_controls_are_left_out() {
        assert_eq!(escaped("a\r\nb\rc\u{7}d"), "a\\nb\\ncd");
        assert_eq!(plain("a\\Nb\\"), "a\nb\\");
    }
}
