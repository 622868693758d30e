//! Splits the text of a policy file into policies, and converts byte offsets into lines and
//! columns. Cedar parses one policy at a time, so that a mistake in one does not hide those in the
//! others.

use kernel::definition::plan::mistake::Position;

/// How deep a policy may nest, and how many operators it may have. Cedar parses, validates and
/// drops expressions recursively: a deeper one would use up the stack, which ends the process.
const NESTING_MAX: usize = 32;
const OPERATORS_MAX: usize = 400;

/// One policy of a file, as text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Piece<'t> {
    /// The byte of the file at which it begins.
    pub(crate) start: usize,
    pub(crate) text: &'t str,
}

/// The policies of a file. Each ends with `;`, which stands nowhere else but in texts and comments.
pub(crate) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut found = Vec::new();
    let mut begun = None;
    for (at, byte) in plain(text) {
        match byte {
            b';' => {
                let start = begun.take().unwrap_or(at);
                found.push(Piece { start, text: &text[start..=at] });
            }
            byte if byte.is_ascii_whitespace() => {}
            _ => begun = begun.or(Some(at)),
        }
    }
    if let Some(start) = begun {
        found.push(Piece { start, text: &text[start..] });
    }
    found
}

/// Why Cedar must not be given this policy: it would need too much of the stack.
pub(crate) fn too_deep(policy: &str) -> Option<String> {
    let mut depth = 0_usize;
    let mut deepest = 0;
    let mut operators = 0;
    for (at, byte) in plain(policy) {
        match byte {
            b'(' | b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b'+' | b'-' | b'*' | b'.' | b'!' => operators += 1,
            b'&' | b'|' if policy.as_bytes().get(at + 1) == Some(&byte) => operators += 1,
            b'e' if policy[at..].starts_with("else") => operators += 1,
            _ => {}
        }
    }
    if deepest > NESTING_MAX {
        return Some(format!("the policy nests deeper than {NESTING_MAX} levels"));
    }
    (operators > OPERATORS_MAX)
        .then(|| format!("the policy has more than {OPERATORS_MAX} operators"))
}

/// The byte of a policy at which this annotation stands; its first one if it is not found.
pub(crate) fn annotation_at(policy: &str, name: &str) -> usize {
    let is_it = |at: usize| {
        let rest = policy[at + 1..].trim_start();
        let after = rest.strip_prefix(name);
        after.is_some_and(|after| !after.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    };
    let mut signs = plain(policy).filter(|(_, byte)| *byte == b'@').map(|(at, _)| at);
    signs.find(|at| is_it(*at)).unwrap_or(0)
}

/// The byte of a policy at which this character of an annotation's text stands.
pub(crate) fn annotated_at(policy: &str, name: &str, chars: usize) -> usize {
    let sign = annotation_at(policy, name);
    let Some(quote) = policy[sign..].find('"') else { return sign };
    let mut at = sign + quote + 1;
    for _ in 0..chars {
        at += written_bytes(policy.get(at..).unwrap_or_default());
    }
    at.min(policy.len())
}

/// How many bytes the first character of a quoted text takes as it is written, escaped or not.
fn written_bytes(text: &str) -> usize {
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (Some('\\'), Some('u')) => text.find('}').map_or(2, |end| end + 1),
        (Some('\\'), Some('x')) => 4,
        (Some('\\'), Some(escaped)) => 1 + escaped.len_utf8(),
        (Some(plain), _) => plain.len_utf8(),
        (None, _) => 0,
    }
}

/// The line and column of a byte.
pub(crate) fn position(text: &str, offset: usize) -> Position {
    let mut end = offset.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let before = &text[..end];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    Position { line: number(line), column: number(column) }
}

/// The bytes of a text that are neither in a comment nor inside quotes. A quoted text is its first
/// quote.
fn plain(text: &str) -> impl Iterator<Item = (usize, u8)> + '_ {
    let bytes = text.as_bytes();
    let mut next = 0;
    std::iter::from_fn(move || {
        while bytes.get(next..next + 2) == Some(b"//".as_slice()) {
            let rest = &bytes[next..];
            next += rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        }
        let at = next;
        let byte = *bytes.get(next)?;
        next = if byte == b'"' { end_of_quoted(bytes, at) } else { at + 1 };
        Some((at, byte))
    })
}

/// The byte after the quoted text that begins here.
fn end_of_quoted(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<(usize, &str)> {
        pieces(text).into_iter().map(|piece| (piece.start, piece.text)).collect()
    }

    #[test]
    fn policies_end_with_a_semicolon_outside_of_quotes_and_comments() {
        assert_eq!(texts("a;\n b ;"), [(0, "a;"), (4, "b ;")]);
        assert_eq!(
            texts("// a; b\n@id(\"x;\\\";\") c // d;\n;"),
            [(8, "@id(\"x;\\\";\") c // d;\n;"),]
        );
        assert!(texts(" \n// nothing").is_empty());
        assert_eq!(texts("a; b"), [(0, "a;"), (3, "b")]);
        assert_eq!(texts(";"), [(0, ";")]);
        assert_eq!(texts("ü\"; \\"), [(0, "ü\"; \\")]);
    }

    #[test]
    fn a_byte_has_a_line_and_a_column_in_characters() {
        let text = "ab\nüc\n";
        let at = |offset| {
            let Position { line, column } = position(text, offset);
            (line, column)
        };
        assert_eq!(
            [at(0), at(1), at(3), at(4), at(5), at(99)],
            [(1, 1), (1, 2), (2, 1), (2, 1), (2, 2), (3, 1),]
        );
    }

    #[test]
    fn deep_nesting_is_refused_before_parsing() {
        let deep = |open: &str, count: usize| too_deep(&open.repeat(count)).is_some();
        assert!(!deep("(", NESTING_MAX) && deep("(", NESTING_MAX + 1));
        for one in ["a && ", "a || ", "1 + ", ".a", "!", "if a then 1 else "] {
            assert!(!deep(one, OPERATORS_MAX) && deep(one, OPERATORS_MAX + 1), "{one}");
        }
        assert!(!deep("(a) ", 1_000) && !deep("\"((\", ", 1_000) && !deep("// ((\n", 1_000));
    }

    #[test]
    fn an_annotation_is_located() {
        let policy = "@id(\"@ask\") // @ask\n@asks @ask(\"why\") forbid";
        assert_eq!(annotation_at(policy, "ask"), policy.find("@ask(").unwrap());
        assert_eq!(annotation_at(policy, "other"), 0);
    }

    #[test]
    fn a_character_of_an_annotation_is_located_behind_escaped_ones() {
        let policy = r#"@id("x") @rows("ü:\"a b\" && \u{e4}c") forbid"#;
        let at = |chars: usize| &policy[annotated_at(policy, "rows", chars)..];
        assert!(at(0).starts_with("ü:"), "{}", at(0));
        assert!(at(2).starts_with(r#"\"a"#) && at(3).starts_with("a b"), "{}", at(2));
        assert!(at(11).starts_with(r"\u{e4}c") && at(12).starts_with("c\""), "{}", at(11));
        assert_eq!(at(99), "");
        assert_eq!(annotated_at("@rows forbid", "rows", 4), 0);
    }
}
