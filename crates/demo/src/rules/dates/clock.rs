//! Times of day: "3pm", "14:30", "half past three", "noon", and ranges of them.

use super::tokens::{Tokens, number_word, unit_minutes};

/// A time of day as it was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Clock {
    pub(super) hour: u32,
    pub(super) minute: u32,
    /// It may be before or after noon: "at 3".
    pub(super) loose: bool,
    /// The word "midnight": today's is at the end of the day.
    pub(super) midnight: bool,
}

/// Whether a number alone can be an hour here: it can after "at", and it cannot anywhere.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Bare {
    Hour,
    Nothing,
}

/// A part of the day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Morning,
    Afternoon,
    Evening,
    Night,
}

impl Clock {
    fn exact(hour: u32, minute: u32) -> Self {
        Self { hour, minute, loose: false, midnight: false }
    }

    /// The minute of the day, as it was said.
    pub(super) fn minute_of_day(self) -> i64 {
        i64::from(self.hour) * 60 + i64::from(self.minute)
    }
}

impl Part {
    pub(super) fn named(word: &str) -> Option<Self> {
        match word {
            "morning" => Some(Part::Morning),
            "afternoon" => Some(Part::Afternoon),
            "evening" => Some(Part::Evening),
            "night" => Some(Part::Night),
            _ => None,
        }
    }
}

/// A time of day that begins here, and the place after it.
pub(super) fn clock(tokens: &Tokens<'_>, at: usize, bare: Bare) -> Option<(Clock, usize)> {
    let word = tokens.word(at);
    match word {
        "noon" | "midday" => return Some((Clock::exact(12, 0), at + 1)),
        "midnight" => return Some((Clock { midnight: true, ..Clock::exact(0, 0) }, at + 1)),
        "half" | "quarter" => return past_or_to(tokens, at),
        _ => {}
    }
    if let Some(hour) = number_word(word) {
        let (minute, next) = match tokens.word(at + 1) {
            "thirty" => (30, at + 2),
            "fifteen" => (15, at + 2),
            _ => (0, at + 1),
        };
        return Said { hour, minute, loose: true, bare, minutes_said: false }.end(tokens, next);
    }
    let hour = tokens.number(at).filter(|_| tokens.digits(at) <= 2)?;
    if tokens.is_glued(at) && !may_touch(tokens, at) {
        return None;
    }
    let loose = !tokens.has_leading_zero(at);
    let touches = |place| tokens.is_glued(place);
    if tokens.is_one_of(at + 1, &[':', '.'])
        && touches(at + 1)
        && touches(at + 2)
        && let Some(minute) = tokens.two_digits(at + 2)
    {
        // With a dot it is a time only where "am" or "pm" follows.
        let bare = if tokens.is_sign(at + 1, ':') { Bare::Hour } else { Bare::Nothing };
        let said = Said { hour, minute, loose, bare, minutes_said: true };
        return if minute < 60 { said.end(tokens, seconds(tokens, at + 3)) } else { None };
    }
    Said { hour, minute: 0, loose, bare, minutes_said: false }.end(tokens, at + 1)
}

/// A time of day in 24 hours, as it follows a date in digits: `10:00`, `10:00:00`.
pub(super) fn exact_clock(tokens: &Tokens<'_>, at: usize) -> Option<(Clock, usize)> {
    let hour = tokens.number(at).filter(|hour| *hour < 24)?;
    let minute = tokens.two_digits(at + 2).filter(|minute| *minute < 60)?;
    let next = seconds(tokens, at + 3);
    let is_time = tokens.is_sign(at + 1, ':') && meridiem(tokens, next).is_none();
    is_time.then_some((Clock::exact(hour, minute), next))
}

/// A range of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ClockRange {
    pub(super) from: Clock,
    pub(super) to: Clock,
}

/// A range of times, and the place after it: "from 1 to 2pm", "between 1pm and 3pm", "1-2pm".
pub(super) fn range(tokens: &Tokens<'_>, at: usize) -> Option<(ClockRange, usize)> {
    match tokens.word(at) {
        "from" => {
            let (from, next) = clock(tokens, at + 1, Bare::Hour)?;
            range_to(tokens, from, next)
        }
        "between" => {
            let (from, next) = clock(tokens, at + 1, Bare::Hour)?;
            let is_joined = tokens.word(next) == "and";
            let (to, end) = clock(tokens, next + 1, Bare::Hour).filter(|_| is_joined)?;
            Some((ClockRange { from, to }, end))
        }
        "at" => open_range(tokens, at + 1, Bare::Hour),
        _ => open_range(tokens, at, Bare::Nothing),
    }
}

fn open_range(tokens: &Tokens<'_>, at: usize, bare: Bare) -> Option<(ClockRange, usize)> {
    if let Some((from, next)) = clock(tokens, at, bare) {
        return range_to(tokens, from, next);
    }
    // `1-2pm`: what makes the first number an hour comes after the second.
    let hour = tokens.number(at).filter(|hour| *hour <= 12 && tokens.digits(at) <= 2)?;
    if !tokens.is_dash(at + 1) || tokens.is_glued(at) {
        return None;
    }
    let (to, end) = clock(tokens, at + 2, Bare::Nothing).filter(|(to, _)| !to.loose)?;
    let from = Clock { loose: hour > 0, ..Clock::exact(hour, 0) };
    Some((ClockRange { from, to }, end))
}

/// The range whose end is said here: "to 2pm", "-2pm".
fn range_to(tokens: &Tokens<'_>, from: Clock, at: usize) -> Option<(ClockRange, usize)> {
    let is_joined = matches!(tokens.word(at), "to" | "until" | "till") || tokens.is_dash(at);
    let (to, end) = clock(tokens, at + 1, Bare::Hour).filter(|_| is_joined)?;
    Some((ClockRange { from, to }, end))
}

/// A part of the day that is said apart from the day: "in the morning", "at night".
pub(super) fn part(tokens: &Tokens<'_>, at: usize) -> Option<(Part, usize)> {
    match (tokens.word(at), tokens.word(at + 1)) {
        ("in", "the") => Part::named(tokens.word(at + 2)).map(|part| (part, at + 3)),
        ("at", "night") => Some((Part::Night, at + 2)),
        _ => None,
    }
}

/// Hour and minute that were said, before it is known whether they are a time.
struct Said {
    hour: u32,
    minute: u32,
    loose: bool,
    bare: Bare,
    minutes_said: bool,
}

impl Said {
    fn end(self, tokens: &Tokens<'_>, at: usize) -> Option<(Clock, usize)> {
        if let Some((noon, next)) = meridiem(tokens, at) {
            let is_hour = (1..=12).contains(&self.hour);
            return is_hour.then(|| (Clock::exact(self.hour % 12 + noon, self.minute), next));
        }
        let has_oclock = tokens.word(at) == "o'clock";
        let next = if has_oclock { at + 1 } else { at };
        let stands = has_oclock || self.bare == Bare::Hour;
        if !stands || self.hour > 23 || (!self.minutes_said && counts(tokens, next)) {
            return None;
        }
        let goes_on = tokens.is_one_of(next, &[':', '.', '-'])
            && tokens.is_glued(next)
            && tokens.is_glued(next + 1)
            && tokens.number(next + 1).is_some();
        if goes_on || tokens.is_one_of(next, &['%', '/']) {
            return None;
        }
        let loose = self.loose && (1..=12).contains(&self.hour);
        Some((Clock { loose, ..Clock::exact(self.hour, self.minute) }, next))
    }
}

/// Whether the number before this place counts something, and so is no hour.
fn counts(tokens: &Tokens<'_>, at: usize) -> bool {
    let word = tokens.word(at);
    if word == "day" && tokens.word(at + 1) == "after" {
        return false;
    }
    const COUNTED: &[&str] = &[
        "st", "nd", "rd", "th", "day", "days", "week", "weeks", "month", "months", "people", "h",
        "m", "percent",
    ];
    unit_minutes(word).is_some() || COUNTED.contains(&word) || tokens.month(at).is_some()
}

/// What a number may touch and still begin a time: a sign that is part of no number.
fn may_touch(tokens: &Tokens<'_>, at: usize) -> bool {
    let before = at.saturating_sub(1);
    tokens.word(before).is_empty()
        && tokens.digits(before) == 0
        && !tokens.is_one_of(before, &['.', ':', '/', '$', '#'])
}

/// 0 for "am" and 12 for "pm", with or without dots, and the place after it.
fn meridiem(tokens: &Tokens<'_>, at: usize) -> Option<(u32, usize)> {
    let (noon, dotted) = match tokens.word(at) {
        "am" => return Some((0, at + 1)),
        "pm" => return Some((12, at + 1)),
        "a" => (0, tokens.is_sign(at + 1, '.')),
        "p" => (12, tokens.is_sign(at + 1, '.')),
        _ => return None,
    };
    let ends = if tokens.is_sign(at + 3, '.') { at + 4 } else { at + 3 };
    (dotted && tokens.word(at + 2) == "m").then_some((noon, ends))
}

/// The place after seconds, if there are any; they are not used.
fn seconds(tokens: &Tokens<'_>, at: usize) -> usize {
    let has = tokens.is_sign(at, ':') && tokens.is_glued(at) && tokens.two_digits(at + 1).is_some();
    if has { at + 2 } else { at }
}

/// "half past three", "quarter to 4".
fn past_or_to(tokens: &Tokens<'_>, at: usize) -> Option<(Clock, usize)> {
    let hour = tokens.number(at + 2).or_else(|| number_word(tokens.word(at + 2)))?;
    let hour = i64::from(hour);
    if !(1..=12).contains(&hour) {
        return None;
    }
    let minutes = match (tokens.word(at), tokens.word(at + 1)) {
        ("half", "past") => 30,
        ("quarter", "past") => 15,
        ("quarter", "to") => -15,
        _ => return None,
    };
    let (hour, loose, next) = match meridiem(tokens, at + 3) {
        Some((noon, next)) => (hour % 12 + i64::from(noon), false, next),
        None => (hour, true, at + 3),
    };
    let minute_of_day = (hour * 60 + minutes).rem_euclid(24 * 60);
    let hour = u32::try_from(minute_of_day / 60).ok()?;
    let minute = u32::try_from(minute_of_day % 60).ok()?;
    Some((Clock { loose, ..Clock::exact(hour, minute) }, next))
}
