//! Lengths of time: "45 minutes", "an hour and a half", and what they can mean: how long something
//! takes, how far it is moved, how far away it is. Each gives minutes and the place after it.

use super::tokens::{Tokens, number_word, unit_minutes};

/// Longer than a week is no length of an event.
const MINUTES_MAX: i64 = 7 * 24 * 60;

/// How long something takes: "for 45 minutes", "an hour long", "30-minute".
pub(super) fn duration(tokens: &Tokens<'_>, at: usize) -> Option<(i64, usize)> {
    let led = matches!(tokens.word(at), "for" | "lasting");
    let begin = if led { at + 1 } else { at };
    let (minutes, next) = length(tokens, begin)?;
    if matches!(
        tokens.word(next),
        "later" | "earlier" | "sooner" | "ago" | "before" | "after" | "from" | "away"
    ) {
        return None;
    }
    (led || stands_alone(tokens, at, next)).then_some((minutes, next))
}

/// Whether a length without "for" says how long something takes. "In an hour" and "by an hour" do
/// not; "an hour" does so at the beginning of a text, and after words like "make it".
fn stands_alone(tokens: &Tokens<'_>, at: usize, next: usize) -> bool {
    if matches!(tokens.word_before(at), "in" | "by" | "after" | "every" | "within" | "next") {
        return false;
    }
    let has_article = matches!(tokens.word(at), "a" | "an") && tokens.word(at + 1) != "half";
    let is_long = next > 0 && tokens.word(next - 1) == "long";
    let after = ["it", "be", "last", "lasts", "to", "take", "takes"];
    !has_article || is_long || at == 0 || after.contains(&tokens.word_before(at))
}

/// How far something is moved: "by 30 minutes", "back an hour", "an hour later"; earlier is
/// negative.
pub(super) fn shift(tokens: &Tokens<'_>, at: usize) -> Option<(i64, usize)> {
    let word = tokens.word(at);
    if matches!(word, "back" | "forward" | "ahead" | "up") {
        let begin = if tokens.word(at + 1) == "by" { at + 2 } else { at + 1 };
        let (minutes, next) = length(tokens, begin)?;
        return Some((if word == "back" { minutes } else { -minutes }, next));
    }
    let begin = if word == "by" { at + 1 } else { at };
    let (minutes, next) = length(tokens, begin)?;
    match tokens.word(next) {
        "later" | "after" => Some((minutes, next + 1)),
        "earlier" | "sooner" => Some((-minutes, next + 1)),
        _ if word == "by" => Some((minutes, next)),
        _ => None,
    }
}

/// How far away something is: "in 2 hours", "20 minutes from now".
pub(super) fn instant(tokens: &Tokens<'_>, at: usize) -> Option<(i64, usize)> {
    if tokens.word(at) == "in"
        && let Some(found) = length(tokens, at + 1)
    {
        return Some(found);
    }
    let (minutes, next) = length(tokens, at)?;
    let from_now = tokens.word(next) == "from" && tokens.word(next + 1) == "now";
    from_now.then_some((minutes, next + 2))
}

/// A quantity in tenths: "2", "1.5", "a", "three".
pub(super) fn tenths(tokens: &Tokens<'_>, at: usize) -> Option<(i64, usize)> {
    if let Some(whole) = tokens.number(at) {
        let has_tenth = tokens.is_sign(at + 1, '.')
            && tokens.is_glued(at + 1)
            && tokens.is_glued(at + 2)
            && tokens.digits(at + 2) == 1;
        let tenth = tokens.number(at + 2).filter(|_| has_tenth);
        return Some(match tenth {
            Some(tenth) => (i64::from(whole) * 10 + i64::from(tenth), at + 3),
            None => (i64::from(whole) * 10, at + 1),
        });
    }
    match tokens.word(at) {
        "a" | "an" => Some((10, at + 1)),
        word => number_word(word).map(|number| (i64::from(number) * 10, at + 1)),
    }
}

fn length(tokens: &Tokens<'_>, at: usize) -> Option<(i64, usize)> {
    if let Some(found) = fixed(tokens, at) {
        return Some(found);
    }
    let (mut tenths, mut next) = tenths(tokens, at)?;
    if and_a_half(tokens, next) && unit_minutes(tokens.word(next + 3)).is_some() {
        tenths += 5;
        next += 3;
    }
    if tokens.is_sign(next, '-') {
        next += 1;
    }
    let unit = match tokens.word(next) {
        "h" if tokens.is_glued(next) => 60,
        "m" if tokens.is_glued(next) => 1,
        word => unit_minutes(word)?,
    };
    let mut minutes = tenths * unit / 10;
    next += 1;
    if and_a_half(tokens, next) {
        minutes += 30;
        next += 3;
    } else if unit == 60
        && let Some((more, after)) = more_minutes(tokens, next)
    {
        minutes += more;
        next = after;
    }
    if tokens.is_sign(next, '-') && tokens.word(next + 1) == "long" {
        next += 2;
    } else if tokens.word(next) == "long" {
        next += 1;
    }
    (1..=MINUTES_MAX).contains(&minutes).then_some((minutes, next))
}

/// Lengths that are no number and unit.
fn fixed(tokens: &Tokens<'_>, at: usize) -> Option<(i64, usize)> {
    let words = [tokens.word(at), tokens.word(at + 1), tokens.word(at + 2), tokens.word(at + 3)];
    match words {
        ["half", "an" | "a", "hour", _] | ["a" | "an", "half", "hour", _] => Some((30, at + 3)),
        ["half", "hour", ..] => Some((30, at + 2)),
        ["quarter", "of", "an", "hour"] => Some((15, at + 4)),
        ["hour", "", "long", _] if tokens.is_sign(at + 1, '-') => Some((60, at + 3)),
        _ => None,
    }
}

fn and_a_half(tokens: &Tokens<'_>, at: usize) -> bool {
    tokens.word(at) == "and" && tokens.word(at + 1) == "a" && tokens.word(at + 2) == "half"
}

/// The minutes after hours: "1 hour 30 minutes", "2h15m", "an hour and 20 minutes".
fn more_minutes(tokens: &Tokens<'_>, at: usize) -> Option<(i64, usize)> {
    let begin = if tokens.word(at) == "and" { at + 1 } else { at };
    let minutes = tokens.number(begin).filter(|minutes| *minutes < 60)?;
    let unit = tokens.word(begin + 1);
    let is_unit = unit == "m" || unit_minutes(unit) == Some(1);
    is_unit.then_some((i64::from(minutes), begin + 2))
}
