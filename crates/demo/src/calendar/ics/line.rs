//! Content lines: `NAME;PARAMETER=value:value`, folded so that none is longer than 75 bytes.

/// How many bytes a line may have.
const LINE_BYTES_MAX: usize = 75;

/// One property. Both halves are kept as they were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Property {
    /// The name and the parameters.
    head: String,
    /// What stands behind the colon.
    pub(crate) value: String,
}

impl Property {
    /// A property of this name, with parameters if there are any: `DTSTART;TZID=Europe/Berlin`.
    pub(crate) fn new(head: impl Into<String>, value: impl Into<String>) -> Self {
        Self { head: head.into(), value: value.into() }
    }

    /// The property that an unfolded line writes; none where it is no line of iCalendar.
    pub(super) fn read(line: &str) -> Option<Self> {
        let colon = outside_quotes(line, ':').next()?;
        let property = Self::new(&line[..colon], &line[colon + 1..]);
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let name = property.name();
        (!name.is_empty() && name.chars().all(is_name)).then_some(property)
    }

    /// Whether this is its name, in whichever case.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.name().eq_ignore_ascii_case(name)
    }

    /// The value of a parameter, without quotes.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        let mut begin = self.name().len();
        let ends = outside_quotes(&self.head, ';').chain([self.head.len()]);
        for end in ends.filter(|end| *end > self.name().len()) {
            let parameter = self.head.get(begin + 1..end)?;
            begin = end;
            let Some((key, value)) = parameter.split_once('=') else { continue };
            if key.eq_ignore_ascii_case(name) {
                return Some(value.trim_matches('"'));
            }
        }
        None
    }

    fn name(&self) -> &str {
        let end = self.head.find(';').unwrap_or(self.head.len());
        &self.head[..end]
    }

    /// Writes it, folded.
    pub(super) fn write(&self, out: &mut String) {
        fold(&format!("{}:{}", self.head, self.value), out);
    }
}

/// Where these stand that are not between quotes.
fn outside_quotes(text: &str, wanted: char) -> impl Iterator<Item = usize> + '_ {
    let mut quoted = false;
    text.char_indices().filter_map(move |(at, letter)| {
        if letter == '"' {
            quoted = !quoted;
        }
        (letter == wanted && !quoted).then_some(at)
    })
}

/// Writes a line as several where it is too long; never through the middle of a letter.
fn fold(line: &str, out: &mut String) {
    let mut room = LINE_BYTES_MAX;
    for letter in line.chars() {
        if letter.len_utf8() > room {
            out.push_str("\r\n ");
            // The space counts.
            room = LINE_BYTES_MAX - 1;
        }
        out.push(letter);
        room -= letter.len_utf8();
    }
    out.push_str("\r\n");
}

/// The lines as they were before they were folded, each with the number of its first line in the
/// file. Other programs fold through the middle of a letter, so this is about bytes.
pub(super) fn unfolded(bytes: &[u8]) -> Vec<(usize, Vec<u8>)> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut lines: Vec<(usize, Vec<u8>)> = Vec::new();
    for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match (line.first(), lines.last_mut()) {
            (Some(b' ' | b'\t'), Some((_, before))) => before.extend_from_slice(&line[1..]),
            (None, _) => {}
            _ => lines.push((index + 1, line.to_vec())),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(property: &Property) -> String {
        let mut out = String::new();
        property.write(&mut out);
        out
    }

    #[test]
    fn a_line_has_a_name_parameters_and_a_value() {
        let line = "ATTENDEE;CN=\"Ada; the: first\";ROLE=CHAIR:mailto:ada@example.com";
        let property = Property::read(line).unwrap();
        assert!(property.is("attendee"));
        assert_eq!(property.parameter("cn"), Some("Ada; the: first"));
        assert_eq!(property.parameter("ROLE"), Some("CHAIR"));
        assert_eq!(property.parameter("X"), None);
        assert_eq!(property.value, "mailto:ada@example.com");
        assert_eq!(written(&property).replace("\r\n ", ""), format!("{line}\r\n"));
        for none in ["", "no colon", ":x", "A B:x", "\"A:x"] {
            assert_eq!(Property::read(none), None, "{none}");
        }
        assert_eq!(Property::read("A:").unwrap().parameter("B"), None);
    }

    #[test]
    fn long_lines_are_folded_between_letters_and_come_back() {
        let property = Property::new("SUMMARY", "Größe ✓ ".repeat(40));
        let text = written(&property);
        for line in text.trim_end().split("\r\n") {
            assert!(line.len() <= LINE_BYTES_MAX, "{line}");
        }
        let lines = unfolded(text.as_bytes());
        let [(1, line)] = lines.as_slice() else { panic!("{lines:?}") };
        let line = String::from_utf8(line.clone()).unwrap();
        assert_eq!(Property::read(&line), Some(property));
    }

    #[test]
    fn a_letter_may_be_folded_in_the_middle() {
        let bytes = [&b"\xef\xbb\xbfSUMMARY:Gr\xc3\n "[..], b"\xb6\xc3\x9fe\n\nEND:X\n"].concat();
        let lines = unfolded(&bytes);
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0], (1, "SUMMARY:Größe".as_bytes().to_vec()));
        assert_eq!(lines[1], (4, b"END:X".to_vec()));
    }
}
