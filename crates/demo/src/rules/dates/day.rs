//! Days: "tomorrow", "next Tuesday", "on 3 December", `2026-12-01`, and a few days at once.

use super::clock::Part;
use super::length::tenths;
use super::tokens::{Tokens, short_weekday, weekday};
use jiff::civil::Weekday;

/// A day as it was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Day {
    /// So many days from today.
    Offset(i64),
    /// A day of the week: the next one that is not over; never today if "next" was said.
    Weekday(Weekday, Which),
    /// A date; what was not said is the next that fits.
    Date { year: Option<i16>, month: Option<i8>, day: i8 },
    /// A week from today, or the week that begins on the next Monday.
    Week(Which),
    /// Saturday and Sunday.
    Weekend(Which),
    /// So many days, from today on.
    Days(i64),
}

/// Whether "next" was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    This,
    Next,
}

/// A day with the part of it that was said.
pub(super) struct SaidDay {
    pub(super) day: Day,
    pub(super) part: Option<Part>,
    /// The place after both.
    pub(super) next: usize,
}

/// The day that begins here.
pub(super) fn day(tokens: &Tokens<'_>, at: usize) -> Option<SaidDay> {
    let words = [tokens.word(at), tokens.word(at + 1), tokens.word(at + 2), tokens.word(at + 3)];
    let found = match words {
        ["the", "day", "after", "tomorrow"] => (Day::Offset(2), at + 4),
        ["day", "after", "tomorrow", _] => (Day::Offset(2), at + 3),
        ["today", ..] => (Day::Offset(0), at + 1),
        ["tomorrow" | "tmrw" | "tmr", ..] => (Day::Offset(1), at + 1),
        ["yesterday", ..] => (Day::Offset(-1), at + 1),
        ["tonight", ..] => {
            let part = Some(Part::Night);
            return Some(SaidDay { day: Day::Offset(0), part, next: at + 1 });
        }
        ["this", part, ..] if Part::named(part).is_some() => {
            let part = Part::named(part);
            return Some(SaidDay { day: Day::Offset(0), part, next: at + 2 });
        }
        ["this" | "the", "week" | "week's", ..] => (Day::Week(Which::This), at + 2),
        ["next", "week" | "week's", ..] => (Day::Week(Which::Next), at + 2),
        ["this" | "the", "weekend", ..] => (Day::Weekend(Which::This), at + 2),
        ["next", "weekend", ..] => (Day::Weekend(Which::Next), at + 2),
        ["next", "", "day" | "days", _] => (Day::Days(tokens.number(at + 1)?.into()), at + 3),
        ["in", ..] => in_days(tokens, at + 1)?,
        _ => weekday_here(tokens, at).or_else(|| date(tokens, at))?,
    };
    let (day, next) = found;
    let part = Part::named(tokens.word(next));
    Some(SaidDay { day, part, next: if part.is_some() { next + 1 } else { next } })
}

/// Whether a date in digits stands here: `2026-12-01`. A time after it is in 24 hours.
pub(super) fn is_iso(tokens: &Tokens<'_>, at: usize) -> bool {
    iso(tokens, at).is_some()
}

/// "in 3 days", "in a week".
fn in_days(tokens: &Tokens<'_>, at: usize) -> Option<(Day, usize)> {
    let (tenths, next) = tenths(tokens, at)?;
    let days = match tokens.word(next) {
        "day" | "days" => 1,
        "week" | "weeks" => 7,
        _ => return None,
    };
    Some((Day::Offset(tenths * days / 10), next + 1))
}

fn weekday_here(tokens: &Tokens<'_>, at: usize) -> Option<(Day, usize)> {
    let (named, which, led) = match (tokens.word(at), tokens.word(at + 1)) {
        ("this", "coming") => (at + 2, Which::This, true),
        ("this" | "coming", _) => (at + 1, Which::This, true),
        ("next", _) => (at + 1, Which::Next, true),
        _ => (at, Which::This, false),
    };
    let before = ["on", "by", "for", "until", "to", "from", "this"];
    let led = led || before.contains(&tokens.word_before(at));
    let found = match weekday(tokens.word(named)) {
        // "Friday Demo" is a name.
        Some(_) if !led && is_name(tokens, named) => None,
        Some(found) => Some(found),
        None if led => short_weekday(tokens.word(named)),
        None => None,
    };
    found.map(|found| (Day::Weekday(found, which), named + 1))
}

fn is_name(tokens: &Tokens<'_>, at: usize) -> bool {
    const AFTER_A_DAY: &[&str] =
        &["at", "noon", "midnight", "midday", "morning", "afternoon", "evening", "night", "from"];
    let next = tokens.word(at + 1);
    let goes_on =
        AFTER_A_DAY.contains(&next) || weekday(next).is_some() || tokens.month(at + 1).is_some();
    tokens.is_capital(at) && tokens.is_capital(at + 1) && !goes_on
}

fn date(tokens: &Tokens<'_>, at: usize) -> Option<(Day, usize)> {
    iso(tokens, at).or_else(|| day_first(tokens, at)).or_else(|| month_first(tokens, at))
}

fn iso(tokens: &Tokens<'_>, at: usize) -> Option<(Day, usize)> {
    let together = (at + 1..=at + 4).all(|place| tokens.is_glued(place));
    let dashes = tokens.is_sign(at + 1, '-') && tokens.is_sign(at + 3, '-');
    if tokens.digits(at) != 4 || !together || !dashes {
        return None;
    }
    let year = i16::try_from(tokens.number(at)?).ok()?;
    let month = i8::try_from(tokens.number(at + 2)?).ok()?;
    let day = i8::try_from(tokens.number(at + 4)?).ok()?;
    let fits = (1..=12).contains(&month) && (1..=31).contains(&day);
    fits.then_some((Day::Date { year: Some(year), month: Some(month), day }, at + 5))
}

/// "3 December", "the 3rd of December 2026", "the 3rd".
fn day_first(tokens: &Tokens<'_>, at: usize) -> Option<(Day, usize)> {
    let has_article = tokens.word(at) == "the";
    let (day, is_ordinal, next) = day_number(tokens, if has_article { at + 1 } else { at })?;
    let named = if tokens.word(next) == "of" { next + 1 } else { next };
    if let Some(month) = tokens.month(named) {
        let (year, end) = year(tokens, named + 1);
        return Some((Day::Date { year, month: Some(month), day }, end));
    }
    let alone = has_article && is_ordinal;
    alone.then_some((Day::Date { year: None, month: None, day }, next))
}

/// "December 3", "Dec 3rd, 2026".
fn month_first(tokens: &Tokens<'_>, at: usize) -> Option<(Day, usize)> {
    let month = tokens.month(at)?;
    let mut next = at + 1;
    if tokens.is_sign(next, '.') {
        next += 1;
    }
    if tokens.word(next) == "the" {
        next += 1;
    }
    let (day, _, next) = day_number(tokens, next)?;
    // "May 3pm" is no third of May.
    let is_time = matches!(tokens.word(next), "am" | "pm") || tokens.is_sign(next, ':');
    let (year, end) = year(tokens, next);
    (!is_time).then_some((Day::Date { year, month: Some(month), day }, end))
}

/// A day of a month, whether it is an ordinal, and the place after it.
fn day_number(tokens: &Tokens<'_>, at: usize) -> Option<(i8, bool, usize)> {
    let day = tokens.number(at).filter(|_| tokens.digits(at) <= 2)?;
    let day = i8::try_from(day).ok().filter(|day| (1..=31).contains(day))?;
    let ending = matches!(tokens.word(at + 1), "st" | "nd" | "rd" | "th");
    let is_ordinal = ending && tokens.is_glued(at + 1);
    Some((day, is_ordinal, if is_ordinal { at + 2 } else { at + 1 }))
}

/// The year that follows a date, if one does, and the place after it.
fn year(tokens: &Tokens<'_>, at: usize) -> (Option<i16>, usize) {
    let place = if tokens.is_sign(at, ',') { at + 1 } else { at };
    let written = tokens.number(place).filter(|_| tokens.digits(place) == 4);
    let year = written.and_then(|year| i16::try_from(year).ok());
    match year.filter(|year| (1900..=2200).contains(year)) {
        Some(year) if !tokens.is_sign(place + 1, ':') => (Some(year), place + 1),
        Some(_) | None => (None, at),
    }
}
