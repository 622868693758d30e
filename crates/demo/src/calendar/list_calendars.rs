//! `list_calendars`: which calendars there are.

use super::FAMILY;
use super::desk::Desk;
use super::tool::CalendarTool;
use crate::card::{Card, Does, list, texts};
use kernel::tool::call::{Call, ToolError};
use serde_json::{Value, json};
use std::sync::Arc;

pub(super) fn tool(desk: &Arc<Desk>) -> CalendarTool {
    let card = Card {
        name: "list_calendars",
        title: "List calendars",
        description: "Lists all calendars with their ids.",
        family: FAMILY,
        does: Does::Reads,
        input: json!({"type": "object", "properties": {}, "additionalProperties": false}),
        output: list("calendars", texts(&["name", "description", "calendar_id"])),
    };
    CalendarTool::new(desk, card, |_, _| Ok(()), act)
}

fn act(desk: &Desk, _call: &Call) -> Result<Value, ToolError> {
    let all = desk.hold()?.calendars()?;
    let calendars: Vec<Value> = all
        .into_iter()
        .map(|about| {
            json!({
                "name": about.name,
                "description": about.description,
                "calendar_id": about.id,
            })
        })
        .collect();
    Ok(json!({"calendars": calendars}))
}
