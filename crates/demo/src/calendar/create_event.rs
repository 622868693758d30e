//! `create_event`: puts an event into a calendar. The event has the id of the call, so a call that
//! comes a second time, after a crash perhaps, makes no second event.

use super::FAMILY;
use super::arguments::{
    MINUTES, MINUTES_DEFAULT, calendar, calendar_schema, details_schema, needed_time, text,
    text_schema, time_schema, whole_number, whole_schema,
};
use super::desk::Desk;
use super::event::Event;
use super::tool::CalendarTool;
use crate::card::{Card, Does};
use jiff::{SignedDuration, Timestamp};
use kernel::tool::arguments::misfit;
use kernel::tool::call::{Call, ToolError};
use serde_json::{Value, json};
use std::sync::Arc;

/// What an event is called that no one named.
const NAME_DEFAULT: &str = "New event";

pub(super) fn tool(desk: &Arc<Desk>) -> CalendarTool {
    let mut minutes = whole_schema(&MINUTES, "How long it takes");
    minutes["default"] = json!(MINUTES_DEFAULT);
    let card = Card {
        name: "create_event",
        title: "Create event",
        description: "Puts a new event into a calendar. Times are local wall time.",
        family: FAMILY,
        does: Does::Adds,
        input: json!({
            "type": "object",
            "properties": {
                "start": time_schema("When it begins"),
                "name": text_schema("What it is called"),
                "calendar_id": calendar_schema(),
                "duration_minutes": minutes,
                "location": text_schema("Where"),
                "description": text_schema("More about it"),
            },
            "required": ["start"],
            "additionalProperties": false,
        }),
        output: details_schema(),
    };
    CalendarTool::new(desk, card, |desk, arguments| Asked::read(desk, arguments).map(drop), act)
}

/// What is asked for.
struct Asked {
    calendar: String,
    name: String,
    start: Timestamp,
    end: Timestamp,
    location: String,
    description: String,
}

impl Asked {
    fn read(desk: &Desk, arguments: &Value) -> Result<Self, ToolError> {
        let start = needed_time(arguments, "start", desk.zone())?.timestamp();
        let minutes =
            whole_number(arguments, "duration_minutes", &MINUTES)?.unwrap_or(MINUTES_DEFAULT);
        let end = start.checked_add(SignedDuration::from_mins(minutes));
        let end = end.map_err(|_| misfit("`start` is beyond all calendars"))?;
        let name = text(arguments, "name")?.filter(|name| !name.trim().is_empty());
        Ok(Self {
            calendar: calendar(arguments)?,
            name: name.unwrap_or_else(|| NAME_DEFAULT.to_owned()),
            start,
            end,
            location: text(arguments, "location")?.unwrap_or_default(),
            description: text(arguments, "description")?.unwrap_or_default(),
        })
    }
}

fn act(desk: &Desk, call: &Call) -> Result<Value, ToolError> {
    let asked = Asked::read(desk, &call.arguments)?;
    let id = call.id.to_string();
    let held = desk.hold()?;
    let calendar = held.find(&asked.calendar)?;
    let mut content = held.read(&calendar)?;
    if let Some(made) = content.events.iter().find(|event| event.id == id) {
        return Ok(made.details(&calendar, desk.zone()));
    }
    let event = Event {
        id,
        name: asked.name,
        start: asked.start,
        end: asked.end,
        location: asked.location,
        description: asked.description,
    };
    let details = event.details(&calendar, desk.zone());
    content.events.push(event);
    held.write(&calendar, &content)?;
    Ok(details)
}
