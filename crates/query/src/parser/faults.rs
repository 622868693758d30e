//! What the parser says about a text that is no query, and the mistakes that it knows: words for
//! operators, and operators that are left out.

use super::{Mark, Parser, Place, QueryFault, Token, TokenKind};

const JOINED: &str = "write `&&` or `||` between two conditions";

impl Parser {
    /// One of these was expected at the next token.
    pub(super) fn unexpected(&self, expected: &[&str]) -> QueryFault {
        let next = self.peek();
        if let TokenKind::Bad(fault) = &next.kind {
            return (**fault).clone();
        }
        let message = format!("expected {}, found {}", listed(expected), next.kind.shown());
        QueryFault::at(next.place, message).expected(expected)
    }

    /// Behind a condition there is neither `&&` nor `||`, nor this end.
    pub(super) fn unjoined(&self, end: &str) -> QueryFault {
        let fault = self.unexpected(&["`&&`", "`||`", end]);
        let next = self.peek();
        let last = self.at.checked_sub(1).map(|at| &self.tokens[at]);
        match &next.kind {
            TokenKind::Bad(_) | TokenKind::End => fault,
            TokenKind::Mark(Mark::Comma) => {
                fault.hint("a list is written `field:^[a,b]`; put a text with `,` in quotes")
            }
            TokenKind::Variable(_) if next.is_glued => {
                fault.hint("a variable is a whole value: no text stands beside it")
            }
            TokenKind::Text(written) => fault.hint(join_of(written.bare().unwrap_or_default())),
            _ => match last.and_then(|last| last_words(last, &next.kind)) {
                Some((place, word)) => {
                    let message = format!("expected `&&`, `||` or {end} before `{word}`");
                    QueryFault::at(place, message)
                        .expected(&["`&&`", "`||`", end])
                        .hint(join_of(&word))
                }
                None if matches!(next.kind, TokenKind::Mark(Mark::Sign(_))) => {
                    fault.hint("put a text with `:` in quotes; a single `&` is part of a text")
                }
                None if is_end(&next.kind) => fault,
                None => fault.hint(JOINED),
            },
        }
    }

    /// Behind a field there is no operator.
    pub(super) fn no_operator(&self) -> QueryFault {
        let fault = self.unexpected(&["an operator such as `:`"]);
        match &self.peek().kind {
            TokenKind::Bad(_) => fault,
            TokenKind::Mark(Mark::BraceOpen) => fault.hint("write `field:{..}`"),
            TokenKind::Mark(Mark::Open) => fault
                .hint("the functions are expand, text, hasEdge, hasOutgoingEdge, hasIncomingEdge"),
            _ => fault.hint("a condition is written `field:value`"),
        }
    }
}

/// The field's name is a word and something behind it, so many characters further.
pub(super) fn spaced(word: &str, after: &str, place: Place, further: usize) -> QueryFault {
    if is_not(word) {
        return QueryFault::at(place, format!("`{word}` is no operator"))
            .expected(&["`!!`"])
            .hint("write `!!` before a condition that must not hold");
    }
    let next = after.split(' ').next().unwrap_or_default();
    QueryFault::at(place.further(further), format!("expected an operator before `{next}`"))
        .expected(&["an operator such as `:`"])
        .hint("the name of a field has no spaces; a condition is written `field:value`")
}

fn is_end(kind: &TokenKind) -> bool {
    matches!(kind, TokenKind::Mark(Mark::Close | Mark::ListClose | Mark::BraceClose))
}

/// The words at the end of the last value that were meant to be something else: a word for an
/// operator, and the next field.
fn last_words(last: &Token, next: &TokenKind) -> Option<(Place, String)> {
    let TokenKind::Text(written) = &last.kind else {
        return None;
    };
    let text = written.bare()?;
    let mut words: Vec<(usize, &str)> = Vec::new();
    let mut chars = 0;
    for word in text.split(' ') {
        if !word.is_empty() {
            words.push((chars, word));
        }
        chars += word.chars().count() + 1;
    }
    let is_field =
        matches!(next, TokenKind::Mark(Mark::Sign(_) | Mark::In | Mark::NotIn | Mark::Exists));
    let field = if is_field && words.len() > 1 { words.pop() } else { None };
    let operator = words.pop().filter(|(_, word)| !words.is_empty() && is_operator_word(word));
    let (further, word) = operator.or(field)?;
    Some((last.place.further(further), word.to_owned()))
}

fn is_not(word: &str) -> bool {
    word.eq_ignore_ascii_case("not")
}

fn is_or(word: &str) -> bool {
    word.eq_ignore_ascii_case("or")
}

fn is_operator_word(word: &str) -> bool {
    is_not(word) || is_or(word) || word.eq_ignore_ascii_case("and")
}

/// What to do where these words stand instead of `&&` or `||`.
fn join_of(words: &str) -> &'static str {
    let first = words.split(' ').next().unwrap_or_default();
    if is_or(first) {
        "write `||` for or"
    } else if is_operator_word(first) {
        "write `&&` for and, `!!` for not"
    } else {
        JOINED
    }
}

fn listed(words: &[&str]) -> String {
    match words {
        [] => "nothing".to_owned(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}
