//! Phrases: a day, a time, a length, one after the other in any order, with the small words that
//! join them. A phrase ends where a second of a kind would begin.

use super::clock::{Bare, Clock, Part, clock, exact_clock, part, range};
use super::day::{Day, day, is_iso};
use super::length::{duration, instant, shift};
use super::tokens::Tokens;
use std::ops::Range;

/// What was said in one go, and where.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Phrase {
    pub(super) day: Option<Day>,
    pub(super) clock: Option<Clock>,
    pub(super) end: Option<Clock>,
    pub(super) part: Option<Part>,
    /// Minutes from now.
    pub(super) instant: Option<i64>,
    /// How long, in minutes.
    pub(super) minutes: Option<i64>,
    /// How far from where it was, in minutes.
    pub(super) shift: Option<i64>,
    /// The day is a date in digits.
    iso: bool,
    /// Where it stands in the text.
    pub(super) place: Range<usize>,
}

/// All phrases of a text, in their order.
pub(super) fn phrases(text: &str) -> Vec<Phrase> {
    let tokens = Tokens::new(text);
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        match phrase(&tokens, at) {
            Some((phrase, next)) => {
                found.push(phrase);
                at = next;
            }
            None => at += 1,
        }
    }
    found
}

fn phrase(tokens: &Tokens<'_>, at: usize) -> Option<(Phrase, usize)> {
    let mut phrase = Phrase::default();
    let mut next = at;
    while let Some(after) = phrase.take(tokens, next, next > at) {
        next = after;
    }
    if next == at {
        return None;
    }
    phrase.place = tokens.start(at)..tokens.end(next - 1);
    Some((phrase, next))
}

impl Phrase {
    /// Whether it names a moment, and not only a length.
    pub(super) fn is_moment(&self) -> bool {
        self.day.is_some() || self.clock.is_some() || self.instant.is_some()
    }

    /// Takes in what comes next and gives the place after it; nothing where the phrase is over.
    fn take(&mut self, tokens: &Tokens<'_>, at: usize, started: bool) -> Option<usize> {
        let at = if started && tokens.is_sign(at, ',') { at + 1 } else { at };
        if let Some(next) = self.take_iso_time(tokens, at) {
            return Some(next);
        }
        if self.shift.is_none()
            && let Some((minutes, next)) = shift(tokens, at)
        {
            self.shift = Some(minutes);
            return Some(next);
        }
        if let Some(next) = self.take_range(tokens, at) {
            return Some(next);
        }
        if self.minutes.is_none()
            && let Some((minutes, next)) = duration(tokens, at)
        {
            self.minutes = Some(minutes);
            return Some(next);
        }
        if !self.is_moment()
            && let Some((minutes, next)) = instant(tokens, at)
        {
            self.instant = Some(minutes);
            return Some(next);
        }
        if self.part.is_none()
            && let Some((part, next)) = part(tokens, at)
        {
            self.part = Some(part);
            return Some(next);
        }
        self.take_day_or_time(tokens, at)
    }

    /// The time of `2026-12-01T10:00`.
    fn take_iso_time(&mut self, tokens: &Tokens<'_>, at: usize) -> Option<usize> {
        let joined = tokens.word(at) == "t" && tokens.is_glued(at) && tokens.is_glued(at + 1);
        if !self.iso || !joined || self.clock.is_some() {
            return None;
        }
        let (clock, next) = exact_clock(tokens, at + 1)?;
        self.clock = Some(clock);
        Some(next)
    }

    fn take_range(&mut self, tokens: &Tokens<'_>, at: usize) -> Option<usize> {
        if self.clock.is_some() || self.instant.is_some() {
            return None;
        }
        let begin = if tokens.word(at) == "starting" { at + 1 } else { at };
        let (range, next) = range(tokens, begin)?;
        self.clock = Some(range.from);
        self.end = Some(range.to);
        Some(next)
    }

    fn take_day_or_time(&mut self, tokens: &Tokens<'_>, at: usize) -> Option<usize> {
        let (begin, bare) = joined(tokens, at);
        if self.day.is_none()
            && self.instant.is_none()
            && let Some(said) = day(tokens, begin)
        {
            self.day = Some(said.day);
            self.part = self.part.or(said.part);
            self.iso = is_iso(tokens, begin);
            return Some(said.next);
        }
        if self.clock.is_some() || self.instant.is_some() {
            return None;
        }
        let exact = exact_clock(tokens, begin).filter(|_| self.iso && begin == at);
        let (clock, next) = exact.or_else(|| clock(tokens, begin, bare))?;
        self.clock = Some(clock);
        Some(next)
    }
}

/// The place after up to two joining words, and whether a number alone is an hour there.
fn joined(tokens: &Tokens<'_>, at: usize) -> (usize, Bare) {
    const JOINING: &[&str] =
        &["at", "on", "for", "from", "by", "starting", "around", "about", "to", "until", "till"];
    const BEFORE_AN_HOUR: &[&str] = &["at", "from", "to", "until", "till", "around"];
    let mut next = at;
    let mut bare = Bare::Nothing;
    while next < at + 2 {
        let is_at = tokens.is_sign(next, '@');
        let word = tokens.word(next);
        if !is_at && !JOINING.contains(&word) {
            break;
        }
        bare = if is_at || BEFORE_AN_HOUR.contains(&word) { Bare::Hour } else { Bare::Nothing };
        next += 1;
    }
    (next, bare)
}
