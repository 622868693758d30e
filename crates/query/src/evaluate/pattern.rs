//! Patterns. Each part between two `*` is looked for once, from where the part before it ended, so
//! that the time is bounded by the length of the text: a part without `?` is searched in linear
//! time, and one with `?` is short.

use crate::tree::Piece;

/// Whether all of the text is like the pattern.
pub(super) fn is_like(pieces: &[Piece], text: &str) -> bool {
    let mut parts = pieces.split(|piece| *piece == Piece::Any);
    let first = parts.next().unwrap_or_default();
    let Some(last) = parts.next_back() else {
        return after(first, text) == Some("");
    };
    let rest = after(first, text).and_then(|rest| {
        let mut parts = parts;
        parts.try_fold(rest, |rest, part| behind(part, rest))
    });
    rest.is_some_and(|rest| ends_with(last, rest))
}

/// What follows the part, if the text begins with it.
fn after<'t>(part: &[Piece], text: &'t str) -> Option<&'t str> {
    part.iter().try_fold(text, |rest, piece| match piece {
        Piece::Text(text) => rest.strip_prefix(text.as_str()),
        Piece::One => {
            let mut chars = rest.chars();
            chars.next().map(|_| chars.as_str())
        }
        Piece::Any => Some(rest),
    })
}

/// What follows the first place at which the part stands.
fn behind<'t>(part: &[Piece], text: &'t str) -> Option<&'t str> {
    match part {
        [] => Some(text),
        [Piece::Text(wanted)] => text.split_once(wanted.as_str()).map(|(_, rest)| rest),
        _ => text.char_indices().find_map(|(start, _)| after(part, &text[start..])),
    }
}

fn ends_with(part: &[Piece], text: &str) -> bool {
    let before = part.iter().rev().try_fold(text, |rest, piece| match piece {
        Piece::Text(text) => rest.strip_suffix(text.as_str()),
        Piece::One => {
            let mut chars = rest.chars();
            chars.next_back().map(|_| chars.as_str())
        }
        Piece::Any => Some(rest),
    });
    before.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use Piece::{Any, One};

    fn text(text: &str) -> Piece {
        Piece::Text(text.to_owned())
    }

    #[test]
    fn a_pattern_is_like_the_whole_text() {
        for (pattern, like, unlike) in [
            (vec![Any], vec!["", "a"], vec![]),
            (vec![One], vec!["a", "é"], vec!["", "ab"]),
            (vec![text("a"), Any], vec!["a", "ab"], vec!["", "ba"]),
            (vec![Any, text("a")], vec!["a", "ba", "aa"], vec!["ab"]),
            (vec![text("ab"), Any, text("ba")], vec!["abba", "abxba"], vec!["aba"]),
            (
                vec![Any, text("a"), One, text("c"), Any],
                vec!["xabc", "aacxabc"],
                vec!["ac", "abbc"],
            ),
            (vec![One, Any, One], vec!["ab", "abc"], vec!["a"]),
            (vec![Any, text("aab"), Any, text("b")], vec!["aaabb"], vec!["aaab"]),
        ] {
            like.iter().for_each(|like_it| assert!(is_like(&pattern, like_it), "{like_it}"));
            unlike.iter().for_each(|other| assert!(!is_like(&pattern, other), "{other}"));
        }
    }

    #[test]
    fn a_hostile_pattern_takes_no_longer_than_its_text_allows() {
        let long = "a".repeat(200_000);
        let mut pattern: Vec<Piece> = Vec::new();
        for _ in 0..60 {
            pattern.extend([text("a"), One]);
        }
        pattern.truncate(63);
        pattern.push(text("b"));
        pattern.insert(0, Any);
        pattern.push(Any);
        assert!(!is_like(&pattern, &long));
        let stars: Vec<Piece> = (0..5_000).flat_map(|_| [Any, text("a")]).collect();
        let mut missing = stars.clone();
        missing.push(text("b"));
        assert!(is_like(&stars, &long) && !is_like(&missing, &long));
    }
}
