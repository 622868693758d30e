//! `update_event`: moves or changes an event. Fields that are left out keep their values.

use super::FAMILY;
use super::arguments::{
    MINUTES, calendar, calendar_schema, details_schema, text, text_schema, time, time_schema,
    whole_number, whole_schema,
};
use super::book::short;
use super::desk::Desk;
use super::event::Changes;
use super::tool::CalendarTool;
use crate::card::{Card, Does};
use kernel::tool::arguments::misfit;
use kernel::tool::call::{Call, ToolError};
use serde_json::{Value, json};
use std::sync::Arc;

pub(super) fn tool(desk: &Arc<Desk>) -> CalendarTool {
    let mut start = time_schema("When it begins now");
    start["type"] = json!(["string", "null"]);
    let minutes = whole_schema(&MINUTES, "How long it takes now; as long as before if left out");
    let card = Card {
        name: "update_event",
        title: "Update event",
        description: "Moves or changes an event of a calendar. What is left out stays as it is; \
                      an empty text takes out what was there. Times are local wall time.",
        family: FAMILY,
        does: Does::Changes,
        input: json!({
            "type": "object",
            "properties": {
                "calendar_id": calendar_schema(),
                "event_id": {
                    "type": "string",
                    "description": "Which event, as `list_events` tells it",
                },
                "start": start,
                "name": text_schema("What it is called now"),
                "duration_minutes": minutes,
                "location": text_schema("Where it is now"),
                "description": text_schema("More about it"),
            },
            "required": ["event_id"],
            "additionalProperties": false,
        }),
        output: details_schema(),
    };
    CalendarTool::new(desk, card, |desk, arguments| Asked::read(desk, arguments).map(drop), act)
}

/// What is asked for.
struct Asked {
    calendar: String,
    event: String,
    changes: Changes,
}

impl Asked {
    fn read(desk: &Desk, arguments: &Value) -> Result<Self, ToolError> {
        let event = text(arguments, "event_id")?.filter(|id| !id.trim().is_empty());
        let event = event.ok_or_else(|| {
            misfit("`event_id` is missing").hint("`list_events` tells the ids of events")
        })?;
        let changes = Changes {
            name: text(arguments, "name")?.filter(|name| !name.trim().is_empty()),
            start: time(arguments, "start", desk.zone())?.map(|start| start.timestamp()),
            minutes: whole_number(arguments, "duration_minutes", &MINUTES)?,
            location: text(arguments, "location")?,
            description: text(arguments, "description")?,
        };
        if changes == Changes::default() {
            return Err(misfit("nothing is to be changed")
                .hint("say `start`, `name`, `duration_minutes`, `location` or `description`"));
        }
        Ok(Self { calendar: calendar(arguments)?, event, changes })
    }
}

fn act(desk: &Desk, call: &Call) -> Result<Value, ToolError> {
    let Asked { calendar, event: id, changes } = Asked::read(desk, &call.arguments)?;
    let held = desk.hold()?;
    let calendar = held.find(&calendar)?;
    let mut content = held.read(&calendar)?;
    let Some(event) = content.events.iter_mut().find(|event| event.id == id) else {
        let message = format!("there is no event `{}` in calendar `{calendar}`", short(&id));
        return Err(ToolError::failed("EventNotFound", message).hint(
            "`list_events` tells the ids; an event of another calendar needs `calendar_id`",
        ));
    };
    let changed = event.changed(changes);
    let changed = changed.ok_or_else(|| misfit("`start` is beyond all calendars"))?;
    let details = changed.details(&calendar, desk.zone());
    if changed != *event {
        *event = changed;
        held.write(&calendar, &content)?;
    }
    Ok(details)
}
