//! Tells code from comments and literals in Rust sources, so that a rule about code is not
//! fooled by prose. No more of the language than that: everything else is left as it stands.

/// What a character of a source belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Everything the two others are not, white space included.
    Code,
    /// Line and block comments, doc comments too, with their marks.
    Comment,
    /// String, raw string, byte and character literals, with their quotes.
    Literal,
}

/// The kind of every character, one for one.
pub fn classify(characters: &[char]) -> Vec<Kind> {
    let mut kinds = Vec::with_capacity(characters.len());
    while kinds.len() < characters.len() {
        let at = kinds.len();
        let (kind, length) = lexeme(characters, at);
        kinds.resize(at + length, kind);
    }
    kinds
}

/// The source with every other kind blanked out; lines and columns stay where they were.
pub fn view(characters: &[char], kinds: &[Kind], keep: Kind) -> String {
    characters
        .iter()
        .zip(kinds)
        .map(|(c, kind)| if *c == '\n' || *kind == keep { *c } else { ' ' })
        .collect()
}

/// Like `view` for literals, but with a mark for each of their characters: a blank inside a
/// literal must not look like the end of it.
pub fn literal_mask(characters: &[char], kinds: &[Kind]) -> String {
    characters
        .iter()
        .zip(kinds)
        .map(|(c, kind)| match (c, kind) {
            ('\n', _) => '\n',
            (_, Kind::Literal) => '"',
            (_, Kind::Code | Kind::Comment) => ' ',
        })
        .collect()
}

/// True for a character that can stand inside a name.
pub fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// True when the token stands in the line and not merely as a part of longer names.
pub fn has_token(line: &str, token: &str) -> bool {
    line.match_indices(token).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + token.len()..].chars().next();
        let glued_before = token.starts_with(is_word) && before.is_some_and(is_word);
        let glued_after = token.ends_with(is_word) && after.is_some_and(is_word);
        !glued_before && !glued_after
    })
}

/// The kind and the length of what begins at this place; the length is at least one.
fn lexeme(characters: &[char], at: usize) -> (Kind, usize) {
    let rest = &characters[at..];
    if rest.starts_with(&['/', '/']) {
        return (Kind::Comment, line_comment(rest));
    }
    if rest.starts_with(&['/', '*']) {
        return (Kind::Comment, block_comment(rest));
    }
    let inside_name = at > 0 && is_word(characters[at - 1]);
    let literal = match rest {
        ['"', ..] => Some(quoted(rest, '"')),
        ['\'', ..] => character_literal(rest),
        ['r' | 'b' | 'c', ..] if !inside_name => raw_string(rest),
        _ => None,
    };
    literal.map_or((Kind::Code, 1), |length| (Kind::Literal, length))
}

fn line_comment(rest: &[char]) -> usize {
    rest.iter().position(|c| *c == '\n').unwrap_or(rest.len())
}

fn block_comment(rest: &[char]) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        let ahead = &rest[at..];
        if ahead.starts_with(&['/', '*']) {
            depth += 1;
            at += 2;
        } else if ahead.starts_with(&['*', '/']) {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

fn quoted(rest: &[char], quote: char) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            '\\' => at += 2,
            c if c == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// Nothing when the quote begins a lifetime or a loop label instead.
fn character_literal(rest: &[char]) -> Option<usize> {
    match rest {
        ['\'', '\\', ..] => Some(quoted(rest, '\'')),
        ['\'', _, '\'', ..] => Some(3),
        _ => None,
    }
}

fn raw_string(rest: &[char]) -> Option<usize> {
    let prefix = match rest {
        ['r', ..] => 1,
        ['b' | 'c', 'r', ..] => 2,
        _ => return None,
    };
    let hashes = rest[prefix..].iter().take_while(|c| **c == '#').count();
    let body = prefix + hashes + 1;
    // Without the quote this is a raw name (`r#type`) or an ordinary one.
    if rest.get(body - 1) != Some(&'"') {
        return None;
    }
    let mut closing = vec!['"'];
    closing.resize(1 + hashes, '#');
    let end = rest[body..].windows(closing.len()).position(|window| window == closing);
    Some(end.map_or(rest.len(), |end| body + end + closing.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        let characters: Vec<char> = text.chars().collect();
        view(&characters, &classify(&characters), Kind::Code)
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(code(text).split_whitespace().collect::<Vec<_>>().join(" "), expected);
    }

    #[test]
    fn comments_are_blanked() {
        check("a // b\nc", "a c");
        check("a /// b \"\nc", "a c");
        check("//! head\na", "a");
        check("a /* b /* c */ d */ e", "a e");
        check("a /* never closed", "a");
    }

    #[test]
    fn strings_are_blanked() {
        check(r#"a("b // c") d"#, "a( ) d");
        check(r#"a("b \" c") d"#, "a( ) d");
        check(r#"a("b \\") d"#, "a( ) d");
        check(r##"a(r#"b " c"#) d"##, "a( ) d");
        check(r##"a(br#"b " c"#, b"x", cr"y") d"##, "a( , b , ) d");
        check("a(\"never closed", "a(");
        check("a(r#\"never closed\"", "a(");
    }

    #[test]
    fn names_that_end_in_a_prefix_are_code() {
        check(r#"bar"x""#, "bar");
        check("r#type + br + r", "r#type + br + r");
    }

    #[test]
    fn characters_and_lifetimes_are_told_apart() {
        check("f::<'a, 'b>('c', '\"', d)", "f::<'a, 'b>( , , d)");
        check(r"x('\'', '\\', '\u{1F600}', b'y') z", "x( , , , b ) z");
        check("'outer: loop { break 'outer; }", "'outer: loop { break 'outer; }");
    }

    #[test]
    fn lines_and_columns_stay() {
        let text = "a /* b\n c */ d\n\"e\nf\" g\n";
        let expected = "a     \n      d\n  \n   g\n";
        assert_eq!(code(text), expected);
    }

    #[test]
    fn the_mask_marks_whole_literals() {
        let characters: Vec<char> = "a(\"b c\", 'd')".chars().collect();
        let mask = literal_mask(&characters, &classify(&characters));
        assert_eq!(mask, "  \"\"\"\"\"  \"\"\" ");
    }

    #[test]
    fn tokens_are_whole_words() {
        assert!(has_token("let x = rand::random();", "rand::"));
        assert!(!has_token("let x = operand::new();", "rand::"));
        assert!(has_token("task::spawn(work)", "task::spawn"));
        assert!(!has_token("task::spawn_all(work)", "task::spawn"));
        assert!(has_token("spawn_all(spawn)", "spawn"));
    }
}
