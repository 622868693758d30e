//! Scans a message that is too long to keep for its id only, in constant memory.

/// A longer id is not one of ours.
const WORD_BYTES_MAX: usize = 128;

#[derive(Debug, Default)]
pub(super) struct Outline {
    depth: usize,
    in_text: bool,
    is_escaped: bool,
    /// The key or the plain value that is being read, of the message itself.
    word: Vec<u8>,
    /// The member whose value is being read.
    key: Option<Vec<u8>>,
    id: Option<String>,
    has_method: bool,
}

impl Outline {
    /// The next bytes of it.
    pub(super) fn read(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.take(*byte));
    }

    /// The id of the request that it answers, as it is in JSON; none if it is no answer.
    pub(super) fn answered(&self) -> Option<&str> {
        self.id.as_deref().filter(|_| !self.has_method)
    }

    /// The id of the request that it is; none if it is no request.
    pub(super) fn asked(&self) -> Option<&str> {
        self.id.as_deref().filter(|_| self.has_method)
    }

    /// Whether it is a message at all.
    pub(super) fn is_message(&self) -> bool {
        self.id.is_some() || self.has_method
    }

    fn take(&mut self, byte: u8) {
        if self.in_text {
            self.keep(byte);
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.in_text = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_text = true;
                self.keep(byte);
            }
            b'{' | b'[' => self.depth = self.depth.saturating_add(1),
            b'}' | b']' => {
                self.end_member();
                self.depth = self.depth.saturating_sub(1);
            }
            b',' => self.end_member(),
            b':' if self.depth == 1 => self.key = Some(std::mem::take(&mut self.word)),
            b' ' | b'\t' | b'\r' => {}
            _ => self.keep(byte),
        }
    }

    /// Members of the message itself count, not those inside of them.
    fn keep(&mut self, byte: u8) {
        if self.depth == 1 && self.word.len() < WORD_BYTES_MAX {
            self.word.push(byte);
        }
    }

    fn end_member(&mut self) {
        if self.depth != 1 {
            return;
        }
        let value = std::mem::take(&mut self.word);
        match self.key.take().as_deref() {
            Some(b"\"id\"") => {
                self.id = String::from_utf8(value).ok().filter(|id| !id.is_empty() && id != "null");
            }
            Some(b"\"method\"") => self.has_method = true,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outline(text: &str) -> Outline {
        let mut outline = Outline::default();
        // In pieces, as it comes.
        text.as_bytes().chunks(7).for_each(|part| outline.read(part));
        outline
    }

    #[test]
    fn the_id_of_an_oversized_answer_is_found_anywhere() {
        for (text, id) in [
            (r#"{"jsonrpc": "2.0", "id": 12, "result": {"id": 7, "x": ["}", "a\"b"]}}"#, "12"),
            (r#"{"result":{"id":7,"method":"m"},"jsonrpc":"2.0","id":"a b"}"#, "\"a b\""),
            (r#"{"error":{"data":[{"id":1}]},"id":3}"#, "3"),
            // What is cut off may still be known.
            (r#"{"id":4,"result":{"text":"xxxx"#, "4"),
        ] {
            assert_eq!(outline(text).answered(), Some(id), "{text}");
            assert_eq!(outline(text).asked(), None, "{text}");
        }
    }

    #[test]
    fn an_oversized_message_without_an_id_is_not_an_answer() {
        let asked = outline(r#"{"id":"q","method":"roots/list","params":{"id":1}}"#);
        assert_eq!((asked.answered(), asked.asked()), (None, Some("\"q\"")));
        let told = outline(r#"{"jsonrpc":"2.0","method":"notifications/x","params":{"id":1}}"#);
        assert_eq!((told.answered(), told.asked(), told.is_message()), (None, None, true));
        for text in [r#"[{"id":1,"result":{}}]"#, r#"{"id":null,"error":{}}"#, "plain, text: 1", ""]
        {
            assert!(!outline(text).is_message(), "{text}");
        }
        let long = format!(r#"{{"id":"{}","result":1}}"#, "x".repeat(500));
        assert_eq!(outline(&long).answered().map(str::len), Some(WORD_BYTES_MAX));
    }
}
