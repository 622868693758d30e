//! Values of A2A members: timestamps, bytes, and ProtoJSON scalars. Reading accepts every allowed
//! spelling, writing has one.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use serde::de::{Error as DeError, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Number, Value};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// Members by name.
pub type Struct = Map<String, Value>;

const SECOND_MS: i64 = 1_000;
const MINUTE_MS: i64 = 60 * SECOND_MS;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;
/// How many days of the usual way to count them are before 1970.
const DAYS_BEFORE_1970: i64 = 719_468;
/// How many days 400 years have.
const ERA_DAYS: i64 = 146_097;
/// Whole numbers up to here are exact in a double.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// A moment: milliseconds since 1970. Written in UTC with three digits of a second; read with any
/// offset, or none for UTC, and any number of digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

/// A text that is no moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadTimestamp;

impl fmt::Display for BadTimestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a timestamp is written as `2026-01-02T03:04:05.678Z`")
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Date { year, month, day } = date(self.0.div_euclid(DAY_MS));
        let ms = self.0.rem_euclid(DAY_MS);
        let hour = ms / HOUR_MS;
        let minute = ms / MINUTE_MS % 60;
        let second = ms / SECOND_MS % 60;
        let fraction = ms % SECOND_MS;
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:03}Z")
    }
}

impl FromStr for Timestamp {
    type Err = BadTimestamp;

    fn from_str(text: &str) -> Result<Self, BadTimestamp> {
        read_timestamp(text).ok_or(BadTimestamp)
    }
}

fn read_timestamp(text: &str) -> Option<Timestamp> {
    if !text.is_ascii() || text.len() < "2026-01-02T03:04:05".len() {
        return None;
    }
    let number = |from: usize, to: usize| text.get(from..to).and_then(digits);
    let marks = [(4, "-"), (7, "-"), (13, ":"), (16, ":")];
    let is_marked = marks.iter().all(|(at, mark)| text.get(*at..at + 1) == Some(*mark));
    if !is_marked || !matches!(text.get(10..11), Some("T" | "t" | " ")) {
        return None;
    }
    let year = number(0, 4)?;
    let month = number(5, 7)?;
    let day = number(8, 10)?;
    let hour = number(11, 13)?;
    let minute = number(14, 16)?;
    let second = number(17, 19)?;
    let in_range = (1..=12).contains(&month) && (1..=31).contains(&day);
    if !in_range || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let rest = text.get(19..)?;
    let (fraction, zone) = match rest.strip_prefix('.') {
        None => ("", rest),
        Some(rest) => {
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            rest.split_at(end)
        }
    };
    let padded: String = fraction.chars().chain("000".chars()).take(3).collect();
    let of_day = hour * HOUR_MS + minute * MINUTE_MS + second * SECOND_MS + digits(&padded)?;
    Some(Timestamp(days(&Date { year, month, day }) * DAY_MS + of_day - offset(zone)?))
}

/// How far a zone is ahead, in milliseconds. Some peers write UTC without saying so.
fn offset(zone: &str) -> Option<i64> {
    if matches!(zone, "" | "Z" | "z") {
        return Some(0);
    }
    let sign = match zone.get(..1)? {
        "+" => 1,
        "-" => -1,
        _ => return None,
    };
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    Some(sign * (digits(hours)? * HOUR_MS + digits(minutes)? * MINUTE_MS))
}

fn digits(text: &str) -> Option<i64> {
    let all = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if all { text.parse().ok() } else { None }
}

/// A day of the calendar.
struct Date {
    year: i64,
    month: i64,
    day: i64,
}

/// How many days after 1970 a date is. Years begin in March here, so that a leap day is the last.
fn days(date: &Date) -> i64 {
    let year = date.year - i64::from(date.month <= 2);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((date.month + 9) % 12) + 2) / 5 + date.day - 1;
    year.div_euclid(400) * ERA_DAYS + of_era * 365 + of_era / 4 - of_era / 100 + of_year
        - DAYS_BEFORE_1970
}

/// The date of a day after 1970.
fn date(days: i64) -> Date {
    let days = days + DAYS_BEFORE_1970;
    let of_era = days.rem_euclid(ERA_DAYS);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march + 2) / 5 + 1;
    let month = if march < 10 { march + 3 } else { march - 9 };
    let year = year + days.div_euclid(ERA_DAYS) * 400 + i64::from(month <= 2);
    Date { year, month, day }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

/// Bytes. Written in base64; read in both alphabets, with or without padding.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bytes(pub Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&encoded(&self.0))
    }
}

/// Bytes in base64.
pub(super) fn encoded(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <Cow<'de, str>>::deserialize(deserializer)?;
        let bytes =
            decoded(&text).ok_or_else(|| D::Error::custom("bytes are written in base64"))?;
        Ok(Self(bytes))
    }
}

/// The bytes of a text in base64, whatever its alphabet and padding.
pub fn decoded(text: &str) -> Option<Vec<u8>> {
    let standard = |c: char| match c {
        '-' => '+',
        '_' => '/',
        other => other,
    };
    let text: String = text.trim_end_matches('=').chars().map(standard).collect();
    STANDARD_NO_PAD.decode(text).ok()
}

/// A member that is null is one that is not there.
pub(super) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// A value that is there, though it may be null.
pub(super) fn present<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Value>, D::Error> {
    plain(deserializer).map(Some)
}

/// Any value.
pub(super) fn plain<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    let mut value = Value::deserialize(deserializer)?;
    whole(&mut value);
    Ok(value)
}

/// Any value; null is none.
pub(super) fn plain_or_none<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Value>, D::Error> {
    plain(deserializer).map(|value| Some(value).filter(|value| !value.is_null()))
}

/// Members; null is none.
pub(super) fn members<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Struct, D::Error> {
    let mut members = Option::<Struct>::deserialize(deserializer)?.unwrap_or_default();
    members.values_mut().for_each(whole);
    Ok(members)
}

/// Numbers without a fraction are written without one: some peers write each number as a double.
fn whole(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            if let Some(whole) = number.as_f64().and_then(self::number) {
                *number = whole;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole),
        Value::Object(members) => members.values_mut().for_each(whole),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A double as a number of JSON, without a fraction where it has none; none where it is not finite.
pub(super) fn number(float: f64) -> Option<Number> {
    match float.fract() == 0.0 && float.abs() < EXACT_MAX {
        true => Some(Number::from(float as i64)),
        false => Number::from_f64(float),
    }
}

/// Whether it is the default, which is not written.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Reads an enum of the proto by its name or its number.
pub(super) struct ByWordOrNumber<T> {
    pub(super) what: &'static str,
    pub(super) from_word: fn(&str) -> Option<T>,
    pub(super) from_number: fn(i64) -> Option<T>,
}

impl<T> ByWordOrNumber<T> {
    fn or_unknown<E: DeError>(&self, read: Option<T>, given: impl fmt::Display) -> Result<T, E> {
        read.ok_or_else(|| E::custom(format!("`{given}` is not {}", self.what)))
    }
}

impl<T> Visitor<'_> for ByWordOrNumber<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, by its name or its number", self.what)
    }

    fn visit_str<E: DeError>(self, word: &str) -> Result<T, E> {
        self.or_unknown((self.from_word)(word), word)
    }

    fn visit_i64<E: DeError>(self, number: i64) -> Result<T, E> {
        self.or_unknown((self.from_number)(number), number)
    }

    fn visit_u64<E: DeError>(self, number: u64) -> Result<T, E> {
        self.or_unknown(i64::try_from(number).ok().and_then(self.from_number), number)
    }
}

/// An enum of the proto: written by its name, read by its name or its number.
macro_rules! proto_enum {
    (
        $(#[$meta:meta])* $name:ident, $what:literal {
            $($(#[$doc:meta])* $variant:ident = $number:literal $word:literal,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub enum $name {
            $($(#[$doc])* $variant,)+
        }

        impl $name {
            /// All of them.
            pub const ALL: &[$name] = &[$($name::$variant,)+];

            /// Their names.
            pub const WORDS: &[&str] = &[$($word,)+];

            /// Its name.
            pub fn word(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)+
                }
            }

            /// The one of this name.
            pub fn from_word(word: &str) -> Option<Self> {
                match word {
                    $($word => Some($name::$variant),)+
                    _ => None,
                }
            }

            /// The one of this number.
            pub fn from_number(number: i64) -> Option<Self> {
                match number {
                    $($number => Some($name::$variant),)+
                    _ => None,
                }
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.word())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let from_word = Self::from_word;
                let from_number = Self::from_number;
                from.deserialize_any(crate::a2a::value::ByWordOrNumber {
                    what: $what,
                    from_word,
                    from_number,
                })
            }
        }
    };
}
pub(super) use proto_enum;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn moments_are_written_with_three_digits() {
        for (text, written) in [
            ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000Z"),
            ("2024-03-15T11:00:00Z", "2024-03-15T11:00:00.000Z"),
            ("2025-04-17T17:47:09.680794Z", "2025-04-17T17:47:09.680Z"),
            ("2024-02-29t23:59:59.9z", "2024-02-29T23:59:59.900Z"),
            ("2026-01-01T00:30:00+01:00", "2025-12-31T23:30:00.000Z"),
            ("1969-12-31T18:59:59.5-05:00", "1969-12-31T23:59:59.500Z"),
            ("2025-04-17T17:47:09.680794", "2025-04-17T17:47:09.680Z"),
            ("2000-03-01 00:00:00Z", "2000-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(text.parse::<Timestamp>().unwrap().to_string(), written, "{text}");
        }
        for text in [
            "", "2026", "2026-01-02", "2026-13-02T03:04:05Z", "2026-01-02T24:04:05Z",
            "2026-01-02T03:04:05.Zz", "2026/01/02T03:04:05Z", "\u{e4}",
        ] {
            assert!(text.parse::<Timestamp>().is_err(), "{text}");
        }
    }

    #[test]
    fn dates_and_day_numbers_round_trip() {
        for day in (-800_000..800_000).step_by(97) {
            assert_eq!(days(&date(day)), day);
        }
    }

    #[test]
    fn bytes_are_read_in_every_base64_alphabet() {
        for text in ["+/8=", "+/8", "-_8=", "-_8"] {
            assert_eq!(decoded(text), Some(vec![0xfb, 0xff]), "{text}");
        }
        assert_eq!(serde_json::to_value(Bytes(vec![0xfb, 0xff])).unwrap(), json!("+/8="));
        assert_eq!(decoded("!"), None);
    }

    #[test]
    fn whole_numbers_have_no_fraction() {
        let mut value: Value = serde_json::from_str("{\"a\":[42.0,1.5,-3.0,1e300]}").unwrap();
        whole(&mut value);
        let text = value["a"].to_string();
        assert!(text.starts_with("[42,1.5,-3,"), "{text}");
        assert_eq!(value["a"][3].as_f64(), Some(1e300), "too large to be exact");
    }
}
