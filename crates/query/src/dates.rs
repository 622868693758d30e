//! Dates and date-times as queries and records write them. Without an offset, UTC is meant.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::{Offset, TimeZone};

/// Whether a text is written like a date, be there such a day or not.
pub(crate) fn is_like_date(text: &str) -> bool {
    fits(text, "0000-00-00")
}

/// Whether a text begins like a date-time.
pub(crate) fn begins_like_moment(text: &str) -> bool {
    text.get(..12).is_some_and(|start| fits(start, "0000-00-00T0"))
}

/// The day that `2024-01-31` names.
pub fn read_date(text: &str) -> Option<Date> {
    if is_like_date(text) { text.parse().ok() } else { None }
}

/// The moment that `2024-01-31T09:00:00`, with a fraction, `Z` or an offset behind it, names.
pub fn read_moment(text: &str) -> Option<Timestamp> {
    let (seconds, rest) = text.split_at_checked("0000-00-00T00:00:00".len())?;
    // A leap second would be read as the second before it.
    if !fits(seconds, "0000-00-00T00:00:00") || seconds.ends_with(":60") {
        return None;
    }
    let zone = match rest.strip_prefix('.') {
        Some(fraction) => fraction.trim_start_matches(|char: char| char.is_ascii_digit()),
        None => rest,
    };
    let moment: Timestamp = match zone {
        "" => format!("{text}Z").parse().ok()?,
        "Z" => text.parse().ok()?,
        _ if fits(zone, "+00:00") || fits(zone, "-00:00") => text.parse().ok()?,
        _ => return None,
    };
    // An offset can lead to the year before 0, which could not be written again.
    (day_of(moment).year() >= 0).then_some(moment)
}

/// The day in UTC.
pub fn day_of(moment: Timestamp) -> Date {
    Offset::UTC.to_datetime(moment).date()
}

/// The midnight in UTC with which a day begins.
pub fn start_of(day: Date) -> Timestamp {
    let start = day.to_zoned(TimeZone::UTC).map(|start| start.timestamp());
    start.unwrap_or(Timestamp::MAX)
}

/// Whether a text is like the mask, in which `0` is any digit.
fn fits(text: &str, mask: &str) -> bool {
    let alike = |(byte, mask): (u8, u8)| {
        if mask == b'0' { byte.is_ascii_digit() } else { byte == mask }
    };
    text.len() == mask.len() && text.bytes().zip(mask.bytes()).all(alike)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_time_without_an_offset_is_utc() {
        let utc = read_moment("2024-01-31T09:00:00Z");
        assert!(utc.is_some());
        assert_eq!(read_moment("2024-01-31T09:00:00"), utc);
        assert_eq!(read_moment("2024-01-31T10:00:00.000+01:00"), utc);
        assert_eq!(read_moment("2024-01-31T08:30:00-00:30"), utc);
    }

    #[test]
    fn what_does_not_exist_is_neither_date_nor_date_time() {
        for text in ["2024-02-30", "2024-13-01", "24-01-01", "2024-1-1", "2024-01-01 "] {
            assert_eq!(read_date(text), None, "{text}");
        }
        for text in [
            "2024-01-31",
            "2024-01-31T09:00",
            "2024-01-31T24:00:00",
            "2024-01-31T09:00:60Z",
            "2024-01-31T09:00:00.",
            "2024-01-31T09:00:00.Z",
            "2024-01-31T09:00:00+1",
            "2024-01-31T09:00:00z",
            "0000-01-01T00:00:00+01:00",
            "2024-01-31T09:00:0é",
        ] {
            assert_eq!(read_moment(text), None, "{text}");
        }
    }

    #[test]
    fn a_day_is_that_of_utc() {
        let moment = read_moment("2024-02-01T00:30:00+01:00").unwrap();
        assert_eq!(day_of(moment), read_date("2024-01-31").unwrap());
        let start = read_moment("2024-01-31T00:00:00Z").unwrap();
        assert_eq!(start_of(day_of(moment)), start);
    }
}
