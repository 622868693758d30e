//! Dates and times in words: a small grammar, and what its phrases mean at a given moment in a
//! given zone. No clock is read, so the same words at the same moment are the same time always.

mod tokens;
mod length;
mod clock;
mod day;
mod phrase;
mod resolve;
pub(super) mod show;

#[cfg(test)]
mod tests;

use std::ops::Range;

pub(super) use resolve::{Here, When, squeezed};

/// Where a text names moments: no place to cut it.
pub(super) fn moments(text: &str) -> Vec<Range<usize>> {
    let phrases = phrase::phrases(text).into_iter();
    phrases.filter(phrase::Phrase::is_moment).map(|phrase| phrase.place).collect()
}

/// Where a text speaks of time at all.
pub(super) fn phrases(text: &str) -> Vec<Range<usize>> {
    phrase::phrases(text).into_iter().map(|phrase| phrase.place).collect()
}
