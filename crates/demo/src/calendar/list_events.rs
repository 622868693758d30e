//! `list_events`: the events of a calendar from a given time on, for some days.

use super::FAMILY;
use super::arguments::{
    DAYS, DAYS_DEFAULT, calendar, calendar_schema, needed_time, time_schema, whole_number,
    whole_schema,
};
use super::desk::Desk;
use super::tool::CalendarTool;
use crate::card::{Card, Does, list, texts};
use jiff::{Span, Timestamp};
use kernel::tool::arguments::misfit;
use kernel::tool::call::{Call, ToolError};
use serde_json::{Value, json};
use std::sync::Arc;

pub(super) fn tool(desk: &Arc<Desk>) -> CalendarTool {
    let mut days = whole_schema(&DAYS, "For how many days");
    days["default"] = json!(DAYS_DEFAULT);
    let card = Card {
        name: "list_events",
        title: "List events",
        description: "Lists the events of a calendar from a time on, for some days, in the order \
                      in which they begin. Times are local wall time.",
        family: FAMILY,
        does: Does::Reads,
        input: json!({
            "type": "object",
            "properties": {
                "start_time": time_schema("From when on"),
                "calendar_id": calendar_schema(),
                "duration_days": days,
            },
            "required": ["start_time"],
            "additionalProperties": false,
        }),
        output: list("events", texts(&["name", "start", "end", "description", "event_id"])),
    };
    CalendarTool::new(desk, card, |desk, arguments| Asked::read(desk, arguments).map(drop), act)
}

/// What is asked for.
struct Asked {
    calendar: String,
    from: Timestamp,
    to: Timestamp,
}

impl Asked {
    fn read(desk: &Desk, arguments: &Value) -> Result<Self, ToolError> {
        let from = needed_time(arguments, "start_time", desk.zone())?;
        let days = whole_number(arguments, "duration_days", &DAYS)?.unwrap_or(DAYS_DEFAULT);
        let to = from.checked_add(Span::new().days(days));
        let to = to.map_err(|_| misfit("`start_time` is beyond all calendars"))?;
        Ok(Self { calendar: calendar(arguments)?, from: from.timestamp(), to: to.timestamp() })
    }
}

fn act(desk: &Desk, call: &Call) -> Result<Value, ToolError> {
    let Asked { calendar, from, to } = Asked::read(desk, &call.arguments)?;
    let held = desk.hold()?;
    let mut events = held.read(&held.find(&calendar)?)?.events;
    events.retain(|event| event.is_between(from, to));
    events.sort_by(|one, other| (&one.start, &one.name).cmp(&(&other.start, &other.name)));
    let events: Vec<Value> = events.iter().map(|event| event.listed(desk.zone())).collect();
    Ok(json!({"events": events}))
}
