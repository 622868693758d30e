//! The commands: a file each, or a folder for those that belong together. A command reads its
//! options, asks a server or works on a folder, and prints. What commands share is above this
//! folder.

mod upstream;
mod stored;
pub(crate) mod init;
pub(crate) mod up;
pub(crate) mod plan;
pub(crate) mod pipeline;
pub(crate) mod session;
pub(crate) mod inbox;
pub(crate) mod record;
pub(crate) mod catalog;
pub(crate) mod doctor;
pub(crate) mod mcp;
pub(crate) mod a2a;
pub(crate) mod events;
pub(crate) mod config;
pub(crate) mod example;
pub(crate) mod demo;
pub(crate) mod child;
pub(crate) mod documents;
pub(crate) mod data;
pub(crate) mod thread;
pub(crate) mod identity;

use clap::{Args, ValueEnum};

/// The longest time that a server waits for a run.
const WAIT_SECONDS_MAX: u64 = 300;
/// A user who needs more than this reads pages.
const LIST_ITEMS_MAX: usize = 10_000;

/// What a command takes that lists all of a kind.
#[derive(Debug, Args)]
pub(crate) struct Most {
    /// How many at most
    #[arg(long, default_value_t = 200, value_parser = crate::commands::limit)]
    limit: usize,
}

/// The word by which a choice is named on the command line.
fn word(choice: &impl ValueEnum) -> String {
    choice.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// Reads `--wait`.
fn wait(text: &str) -> Result<u64, String> {
    text.parse::<u64>()
        .ok()
        .filter(|seconds| *seconds <= WAIT_SECONDS_MAX)
        .ok_or_else(|| format!("expected seconds from 0 to {WAIT_SECONDS_MAX}"))
}

/// Reads `--limit`.
fn limit(text: &str) -> Result<usize, String> {
    text.parse::<usize>()
        .ok()
        .filter(|items| (1..=LIST_ITEMS_MAX).contains(items))
        .ok_or_else(|| format!("expected a number from 1 to {LIST_ITEMS_MAX}"))
}

/// Reads a header, `NAME: VALUE`.
fn header(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once(':').map(|(name, value)| (name.trim(), value.trim()));
    let (name, value) = parts.filter(|(name, _)| !name.is_empty()).ok_or("expected NAME: VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Reads an age, `90s`, `30m`, `12h` or `30d`, as milliseconds.
fn age(text: &str) -> Result<u64, String> {
    age_ms(text).ok_or_else(|| "expected an age such as 90s, 30m, 12h or 30d".to_owned())
}

fn age_ms(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let unit_ms = match unit {
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    // A sign is no part of an age, though `parse` would take it.
    let plain = number.bytes().all(|byte| byte.is_ascii_digit());
    let number = if plain { number.parse::<u64>().ok()? } else { return None };
    number.checked_mul(unit_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_a_number_and_a_unit() {
        for (text, ms) in [("0s", 0), ("90s", 90_000), ("12h", 43_200_000), ("30d", 2_592_000_000)]
        {
            assert_eq!(age(text), Ok(ms), "{text}");
        }
        for text in ["", "d", "30", "+1d", "-1d", "1.5h", "1 h", "3w", "1ü", "99999999999999999d"]
        {
            assert!(age(text).is_err(), "{text}");
        }
    }
}
