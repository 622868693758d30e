//! Splits a text into words, numbers and signs with their positions, and knows the words for
//! numbers, days and months.

use jiff::civil::Weekday;

/// A text and what it consists of. A place that has no token, or one of another kind, answers with
/// nothing, so that a grammar can look ahead and back without care.
pub(super) struct Tokens<'t> {
    text: &'t str,
    tokens: Vec<Token>,
}

struct Token {
    kind: Kind,
    start: usize,
    end: usize,
}

enum Kind {
    /// In lower case.
    Word(String),
    /// Its value, and in how many digits it is written.
    Number(u32, usize),
    Sign(char),
}

/// A number with more digits is no part of a date.
const DIGITS_MAX: usize = 4;

impl<'t> Tokens<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let mut tokens = Vec::new();
        let mut rest = text.char_indices().peekable();
        while let Some((start, first)) = rest.next() {
            if first.is_whitespace() {
                continue;
            }
            let mut end = start + first.len_utf8();
            let is_word = first.is_alphabetic();
            while let Some((at, next)) = rest.peek().copied() {
                let goes_on = if is_word {
                    next.is_alphabetic() || is_apostrophe(text, at, next)
                } else {
                    first.is_ascii_digit() && next.is_ascii_digit()
                };
                if !goes_on {
                    break;
                }
                end = at + next.len_utf8();
                rest.next();
            }
            let written = &text[start..end];
            let kind = if is_word {
                Kind::Word(written.to_lowercase().replace('’', "'"))
            } else if first.is_ascii_digit() {
                Kind::Number(written.parse().unwrap_or(u32::MAX), written.len())
            } else {
                Kind::Sign(first)
            };
            tokens.push(Token { kind, start, end });
        }
        Self { text, tokens }
    }

    pub(super) fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Where the token begins in the text.
    pub(super) fn start(&self, at: usize) -> usize {
        self.tokens.get(at).map_or(self.text.len(), |token| token.start)
    }

    /// Where the token ends in the text.
    pub(super) fn end(&self, at: usize) -> usize {
        self.tokens.get(at).map_or(self.text.len(), |token| token.end)
    }

    /// The word here, in lower case; empty where there is none.
    pub(super) fn word(&self, at: usize) -> &str {
        match self.tokens.get(at).map(|token| &token.kind) {
            Some(Kind::Word(word)) => word,
            Some(Kind::Number(..) | Kind::Sign(_)) | None => "",
        }
    }

    /// The word before this place.
    pub(super) fn word_before(&self, at: usize) -> &str {
        at.checked_sub(1).map_or("", |before| self.word(before))
    }

    /// The number here, if it is short enough to be of a date.
    pub(super) fn number(&self, at: usize) -> Option<u32> {
        match self.tokens.get(at).map(|token| &token.kind) {
            Some(Kind::Number(value, digits)) if *digits <= DIGITS_MAX => Some(*value),
            Some(Kind::Word(_) | Kind::Number(..) | Kind::Sign(_)) | None => None,
        }
    }

    /// How many digits the number here has; 0 where there is none.
    pub(super) fn digits(&self, at: usize) -> usize {
        match self.tokens.get(at).map(|token| &token.kind) {
            Some(Kind::Number(_, digits)) => *digits,
            Some(Kind::Word(_) | Kind::Sign(_)) | None => 0,
        }
    }

    /// The number here, if it has exactly two digits.
    pub(super) fn two_digits(&self, at: usize) -> Option<u32> {
        self.number(at).filter(|_| self.digits(at) == 2)
    }

    /// Whether the number here is written with a zero before it.
    pub(super) fn has_leading_zero(&self, at: usize) -> bool {
        self.text[self.start(at)..].starts_with('0')
    }

    /// Whether this sign stands here.
    pub(super) fn is_sign(&self, at: usize, sign: char) -> bool {
        let kind = self.tokens.get(at).map(|token| &token.kind);
        matches!(kind, Some(Kind::Sign(own)) if *own == sign)
    }

    /// Whether one of these signs stands here.
    pub(super) fn is_one_of(&self, at: usize, signs: &[char]) -> bool {
        signs.iter().any(|sign| self.is_sign(at, *sign))
    }

    /// Whether a dash stands here.
    pub(super) fn is_dash(&self, at: usize) -> bool {
        self.is_one_of(at, &['-', '–'])
    }

    /// Whether nothing stands between this token and the one before it.
    pub(super) fn is_glued(&self, at: usize) -> bool {
        at > 0 && at < self.len() && self.end(at - 1) == self.start(at)
    }

    /// Whether a word with a capital letter stands here.
    pub(super) fn is_capital(&self, at: usize) -> bool {
        let first = self.text[self.start(at)..].chars().next();
        !self.word(at).is_empty() && first.is_some_and(char::is_uppercase)
    }

    /// The month that is named here, from 1.
    pub(super) fn month(&self, at: usize) -> Option<i8> {
        let word = self.word(at);
        let known = |(names, month): &(&[&str], i8)| names.contains(&word).then_some(*month);
        MONTHS.iter().find_map(known)
    }
}

fn is_apostrophe(text: &str, at: usize, sign: char) -> bool {
    let after = text[at + sign.len_utf8()..].chars().next();
    matches!(sign, '\'' | '’') && after.is_some_and(char::is_alphabetic)
}

const MONTHS: &[(&[&str], i8)] = &[
    (&["january", "jan"], 1),
    (&["february", "feb"], 2),
    (&["march", "mar"], 3),
    (&["april", "apr"], 4),
    (&["may"], 5),
    (&["june", "jun"], 6),
    (&["july", "jul"], 7),
    (&["august", "aug"], 8),
    (&["september", "sept", "sep"], 9),
    (&["october", "oct"], 10),
    (&["november", "nov"], 11),
    (&["december", "dec"], 12),
];

/// A small number in words.
pub(super) fn number_word(word: &str) -> Option<u32> {
    const WORDS: &[&str] = &[
        "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
        "twelve",
    ];
    let index = WORDS.iter().position(|known| *known == word)?;
    u32::try_from(index + 1).ok()
}

/// A day of the week in full.
pub(super) fn weekday(word: &str) -> Option<Weekday> {
    Some(match word {
        "monday" => Weekday::Monday,
        "tuesday" => Weekday::Tuesday,
        "wednesday" => Weekday::Wednesday,
        "thursday" => Weekday::Thursday,
        "friday" => Weekday::Friday,
        "saturday" => Weekday::Saturday,
        "sunday" => Weekday::Sunday,
        _ => return None,
    })
}

/// A day of the week in short. Some of these are words of their own, so they need a word before
/// them that makes them days.
pub(super) fn short_weekday(word: &str) -> Option<Weekday> {
    Some(match word {
        "mon" => Weekday::Monday,
        "tue" | "tues" => Weekday::Tuesday,
        "wed" => Weekday::Wednesday,
        "thu" | "thur" | "thurs" => Weekday::Thursday,
        "fri" => Weekday::Friday,
        "sat" => Weekday::Saturday,
        "sun" => Weekday::Sunday,
        _ => return None,
    })
}

/// How many minutes a unit has.
pub(super) fn unit_minutes(word: &str) -> Option<i64> {
    match word {
        "minute" | "minutes" | "min" | "mins" => Some(1),
        "hour" | "hours" | "hr" | "hrs" => Some(60),
        _ => None,
    }
}
