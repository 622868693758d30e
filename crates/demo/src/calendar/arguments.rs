//! The arguments of the family's tools, and how their schemas say them. What can be known to be
//! wrong without a calendar is refused before anybody is asked to approve the call; most of it
//! already by the schema, which a gateway in between has, too.

use crate::card::{object, texts};
use crate::zone::Zone;
use jiff::Zoned;
use kernel::tool::arguments::{kind, misfit};
use kernel::tool::call::ToolError;
use serde_json::{Value, json};
use std::ops::RangeInclusive;

/// The calendar that is meant where none is named.
pub(super) const CALENDAR_DEFAULT: &str = "primary";
/// How long an event takes where no one says it.
pub(super) const MINUTES_DEFAULT: i64 = 30;
/// How long an event may take: up to 60 days.
pub(super) const MINUTES: RangeInclusive<i64> = 1..=86_400;
/// How many days are listed where no one says it.
pub(super) const DAYS_DEFAULT: i64 = 7;
/// How many days may be listed at once.
pub(super) const DAYS: RangeInclusive<i64> = 1..=366;

/// A time as the schema knows it.
const TIME_PATTERN: &str = r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])([Tt ]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,9})?)?(Z|z|[+-]([01]\d|2[0-3]):?[0-5]\d)?)?$";

pub(super) fn time_schema(description: &str) -> Value {
    json!({
        "type": "string",
        "pattern": TIME_PATTERN,
        "description": format!("{description}, as local wall time: `2026-01-16T10:00:00`"),
    })
}

/// The schema of a text that may be left out.
pub(super) fn text_schema(description: &str) -> Value {
    json!({"type": ["string", "null"], "description": description})
}

/// The schema of the calendar that is meant.
pub(super) fn calendar_schema() -> Value {
    json!({
        "type": ["string", "null"],
        "default": CALENDAR_DEFAULT,
        "description": "Which calendar, as `list_calendars` tells it",
    })
}

/// The schema of a whole number that may be left out.
pub(super) fn whole_schema(range: &RangeInclusive<i64>, description: &str) -> Value {
    json!({
        "type": ["integer", "null"],
        "minimum": range.start(),
        "maximum": range.end(),
        "description": description,
    })
}

/// The schema of the result of a change.
pub(super) fn details_schema() -> Value {
    let details = texts(&["name", "start", "end", "location", "description", "calendar_id"]);
    object([("event_details", details), ("id", json!({"type": "string"}))])
}

/// A text; null is none.
pub(super) fn text(arguments: &Value, name: &str) -> Result<Option<String>, ToolError> {
    match arguments.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(misfit(format!("`{name}` must be a text, not {}", kind(other)))),
    }
}

/// A whole number in this range; null is none.
pub(super) fn whole_number(
    arguments: &Value,
    name: &str,
    range: &RangeInclusive<i64>,
) -> Result<Option<i64>, ToolError> {
    let value = match arguments.get(name) {
        None | Some(Value::Null) => return Ok(None),
        Some(value) => value,
    };
    match value.as_i64().filter(|number| range.contains(number)) {
        Some(number) => Ok(Some(number)),
        None => {
            let from = range.start();
            let to = range.end();
            Err(misfit(format!("`{name}` must be a whole number from {from} to {to}")))
        }
    }
}

/// A time; null is none.
pub(super) fn time(arguments: &Value, name: &str, zone: &Zone) -> Result<Option<Zoned>, ToolError> {
    let Some(text) = text(arguments, name)? else { return Ok(None) };
    match zone.read(&text) {
        Some(moment) => Ok(Some(moment)),
        None => {
            let text: String = text.chars().take(80).collect();
            Err(misfit(format!("`{name}` is `{text}`, which is no time"))
                .hint("write it as `2026-01-16T10:00:00`"))
        }
    }
}

/// A time that is required.
pub(super) fn needed_time(arguments: &Value, name: &str, zone: &Zone) -> Result<Zoned, ToolError> {
    time(arguments, name, zone)?.ok_or_else(|| misfit(format!("`{name}` is missing")))
}

/// The calendar that is meant.
pub(super) fn calendar(arguments: &Value) -> Result<String, ToolError> {
    let named = text(arguments, "calendar_id")?.filter(|id| !id.trim().is_empty());
    Ok(named.unwrap_or_else(|| CALENDAR_DEFAULT.to_owned()))
}
