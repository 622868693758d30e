//! The format of `.env`: `KEY=VALUE` lines, with `export`, quotes and comments. Nothing is
//! expanded, and no message repeats what a line says: it may be a secret.

/// One line of the file: a name and what it is set to.
pub(crate) struct Assignment {
    pub(crate) name: String,
    /// The value, without quotes.
    pub(crate) value: String,
    /// The line that it begins on, from 1.
    pub(crate) line: u32,
}

/// A line that is no assignment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The line, from 1.
    pub(crate) line: u32,
    /// What is wrong with it.
    pub(crate) what: &'static str,
}

/// Reads the text of a `.env`, in order; a name may stand there more than once.
pub(crate) fn parse(text: &str) -> Result<Vec<Assignment>, Fault> {
    // Editors on some systems begin a file with this mark.
    let mut reader = Reader { rest: text.strip_prefix('\u{feff}').unwrap_or(text), line: 1 };
    let mut all = Vec::new();
    while !reader.rest.is_empty() {
        let line = reader.rest.trim_start_matches([' ', '\t', '\r']);
        if line.is_empty() || line.starts_with(['\n', '#']) {
            reader.take_line();
        } else {
            all.push(reader.assignment()?);
        }
    }
    Ok(all)
}

/// What is not read yet.
struct Reader<'t> {
    rest: &'t str,
    line: u32,
}

impl<'t> Reader<'t> {
    fn assignment(&mut self) -> Result<Assignment, Fault> {
        let line = self.line;
        let fault = |what: &'static str| Fault { line, what };
        let rest = self.rest;
        let end = self.rest.find('\n').unwrap_or(self.rest.len());
        let equals = rest[..end].find('=').ok_or_else(|| fault("there is no `=`"))?;
        let name = name(&rest[..equals]).ok_or_else(|| fault("there is no name before the `=`"))?;
        self.rest = rest[equals + 1..].trim_start_matches([' ', '\t']);
        let value = match self.rest.chars().next() {
            Some(quote @ ('\'' | '"')) => {
                self.rest = &self.rest[1..];
                let value = self.quoted(quote).ok_or_else(|| fault("a quote is not closed"))?;
                let behind = self.take_line().trim_start();
                if !behind.is_empty() && !behind.starts_with('#') {
                    return Err(fault("there is text after the closing quote"));
                }
                value
            }
            _ => unquoted(self.take_line()).to_owned(),
        };
        Ok(Assignment { name: name.to_owned(), value, line })
    }

    /// The rest of this line, without its break.
    fn take_line(&mut self) -> &'t str {
        let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
        self.rest = rest;
        self.line += 1;
        line.strip_suffix('\r').unwrap_or(line)
    }

    /// What stands before the closing quote, over several lines where it is so; none without one.
    fn quoted(&mut self, quote: char) -> Option<String> {
        let rest = self.rest;
        let mut value = String::new();
        let mut characters = rest.char_indices();
        while let Some((at, character)) = characters.next() {
            if character == quote {
                self.rest = &rest[at + quote.len_utf8()..];
                return Some(value);
            }
            let is_escape = character == '\\' && quote == '"';
            let read = if is_escape { characters.next()?.1 } else { character };
            self.line += u32::from(read == '\n');
            match (is_escape, read) {
                (true, 'n') => value.push('\n'),
                (true, 'r') => value.push('\r'),
                (true, 't') => value.push('\t'),
                (true, '"' | '\\' | '$') | (false, _) => value.push(read),
                (true, other) => value.extend(['\\', other]),
            }
        }
        None
    }
}

/// `KEY` or `export KEY`.
fn name(text: &str) -> Option<&str> {
    let text = text.trim();
    let exported = text.strip_prefix("export").filter(|rest| rest.starts_with([' ', '\t']));
    let name = exported.map_or(text, str::trim_start);
    let fits = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    let is_name = name.chars().all(fits) && !name.starts_with(|c: char| c.is_ascii_digit());
    (is_name && !name.is_empty()).then_some(name)
}

/// A `#` begins a comment only where white space stands before it: `a#b` is a value.
fn unquoted(text: &str) -> &str {
    let mut before = ' ';
    for (at, character) in text.char_indices() {
        if character == '#' && before.is_whitespace() {
            return text[..at].trim();
        }
        before = character;
    }
    text.trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, String, u32)> {
        let all = parse(text).unwrap();
        all.into_iter().map(|each| (each.name, each.value, each.line)).collect()
    }

    fn entry(name: &str, value: &str, line: u32) -> (String, String, u32) {
        (name.to_owned(), value.to_owned(), line)
    }

    #[test]
    fn lines_are_names_and_values() {
        let text = "# ours\n\nA=1\r\n  export B = two words  # why\nC=\nD=a#b\nE=#none\nA=2";
        let expected = [
            entry("A", "1", 3),
            entry("B", "two words", 4),
            entry("C", "", 5),
            entry("D", "a#b", 6),
            entry("E", "", 7),
            entry("A", "2", 8),
        ];
        assert_eq!(read(text), expected);
        assert_eq!(read("exported=1"), [entry("exported", "1", 1)]);
        assert_eq!(read("\u{feff}A=1"), [entry("A", "1", 1)]);
        assert!(read(" \t\r\n").is_empty());
    }

    #[test]
    fn quoted_values_are_taken_literally() {
        let text = "A=' # $X \\n '  # why\nB=\"a\\nb \\\"c\\\" \\$d \\e\"\nC=\"one\ntwo\"\nD=4\n";
        let expected = [
            entry("A", " # $X \\n ", 1),
            entry("B", "a\nb \"c\" $d \\e", 2),
            entry("C", "one\ntwo", 3),
            entry("D", "4", 5),
        ];
        assert_eq!(read(text), expected);
    }

    #[test]
    fn a_line_that_is_no_assignment_is_reported_with_its_number() {
        let cases = [
            ("A=1\nhunter2\n", 2, "there is no `=`"),
            ("=1", 1, "there is no name before the `=`"),
            ("1A=1", 1, "there is no name before the `=`"),
            ("\nA B=1", 2, "there is no name before the `=`"),
            ("A='x\n\n", 1, "a quote is not closed"),
            ("A=\"x\\", 1, "a quote is not closed"),
            ("A='x' y", 1, "there is text after the closing quote"),
        ];
        for (text, line, what) in cases {
            assert_eq!(parse(text).err(), Some(Fault { line, what }), "{text}");
        }
    }
}
