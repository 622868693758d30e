//! How large a regular expression becomes. Engines copy what is repeated a counted number of
//! times, so a short text such as `((a{99}){99}){99}` can be a large program.

use std::iter::Peekable;
use std::str::Chars;

/// How long the text of one may be.
pub(super) const PATTERN_BYTES_MAX: usize = 8 * 1024;
/// States of a class of characters, which are several bytes each where they are not ASCII.
const CLASS_STATES: u64 = 8;
/// States of a class that Unicode defines.
const UNICODE_STATES: u64 = 256;

/// Whether it can only be matched by trying one way after the other: it looks around, or refers to
/// a group. May also be true of one that only looks so.
pub(super) fn backtracks(pattern: &str) -> bool {
    let looks = ["(?=", "(?!", "(?<"].iter().any(|opening| pattern.contains(opening));
    let mut bytes = pattern.bytes().zip(pattern.bytes().skip(1));
    looks || bytes.any(|(first, second)| first == b'\\' && second.is_ascii_digit())
}

/// About how many states its program has; rather too many.
pub(super) fn states(pattern: &str) -> u64 {
    // What stands before each open group, what stands before here, and the last part of that.
    let mut open = Vec::new();
    let mut sum = 0_u64;
    let mut last = 0_u64;
    let mut rest = pattern.chars().peekable();
    while let Some(char) = rest.next() {
        match char {
            '(' => {
                open.push(sum);
                sum = 0;
                last = 0;
                continue;
            }
            ')' => {
                last = sum.saturating_add(1);
                sum = open.pop().unwrap_or(0).saturating_add(last);
                continue;
            }
            '{' => {
                let more = last.saturating_mul(repeats(&mut rest) - 1);
                last = last.saturating_add(more);
                sum = sum.saturating_add(more);
                continue;
            }
            '*' | '+' | '?' => {
                sum = sum.saturating_add(1);
                continue;
            }
            '\\' => last = escape_states(rest.next()),
            '[' => last = class_states(&mut rest),
            '.' => last = CLASS_STATES,
            char => last = char.len_utf8() as u64,
        }
        sum = sum.saturating_add(last);
    }
    open.into_iter().fold(sum, u64::saturating_add)
}

fn escape_states(escaped: Option<char>) -> u64 {
    if matches!(escaped, Some('p' | 'P')) { UNICODE_STATES } else { CLASS_STATES }
}

/// Reads to the end of a class.
fn class_states(rest: &mut Peekable<Chars<'_>>) -> u64 {
    let mut states = CLASS_STATES;
    let mut is_first = true;
    while let Some(char) = rest.next() {
        match char {
            ']' if !is_first => break,
            '\\' => states = states.max(escape_states(rest.next())),
            char if !char.is_ascii() => states += CLASS_STATES,
            _ => {}
        }
        is_first = false;
    }
    states
}

/// Reads to the end of a count such as `{2}`, `{2,}` or `{2,5}`: how many copies it makes.
fn repeats(rest: &mut Peekable<Chars<'_>>) -> u64 {
    let mut numbers = [0_u64; 2];
    let mut commas = 0;
    while let Some(char) = rest.next_if(|char| char.is_ascii_digit() || *char == ',') {
        match char.to_digit(10) {
            Some(digit) => {
                let number = &mut numbers[commas.min(1)];
                *number = number.saturating_mul(10).saturating_add(u64::from(digit));
            }
            None => commas += 1,
        }
    }
    // What is counted can be counted again: `a{9}{9}`.
    rest.next_if_eq(&'}');
    numbers[0].saturating_add(1).max(numbers[1]).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_multiply_the_size_of_a_pattern() {
        let known = [
            ("", 0),
            ("abc", 3),
            ("^a{3}$", 6),
            ("(ab){2,5}", 15),
            ("((a{9}){9}){9}", 1_110),
            ("[a-z]{1,63}", 504),
            ("[]a]{2}", 24),
            ("a{9}{9}", 100),
            (r"\p{L}", 258),
        ];
        for (pattern, at_least) in known {
            let found = states(pattern);
            assert!(found + 8 >= at_least && found <= 2 * at_least + 8, "{pattern}: {found}");
        }
        assert!(states("((((a{999}){999}){999}){999}){999}") > 1_000_000);
        assert!(states(&"(".repeat(8_000)) < 100_000);
    }

    #[test]
    fn lookarounds_are_recognised() {
        for pattern in ["^(?!x-)", "a(?=b)", "(?<=a)b", r"(a)\1"] {
            assert!(backtracks(pattern), "{pattern}");
        }
        for pattern in ["(a+)+$", "^[a-z]{1,63}$", r"^\d+\.\w*$", "(?:a|b)"] {
            assert!(!backtracks(pattern), "{pattern}");
        }
    }
}
