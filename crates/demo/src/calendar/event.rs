//! A calendar and its events in a file, and how an event is changed.

use crate::zone::{Zone, wall_text};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A calendar. A member that we do not know is a mistake: it would be lost with the next change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Calendar {
    pub(super) name: String,
    #[serde(default)]
    pub(super) description: String,
    #[serde(default)]
    pub(super) events: Vec<Event>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Event {
    /// Unique in its calendar.
    pub(super) id: String,
    pub(super) name: String,
    pub(super) start: Timestamp,
    pub(super) end: Timestamp,
    #[serde(default)]
    pub(super) location: String,
    #[serde(default)]
    pub(super) description: String,
}

/// What is to be different in an event. What is none stays as it is; an empty text takes out what
/// was there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Changes {
    pub(super) name: Option<String>,
    /// When it begins. It takes as long as before, unless that is changed, too.
    pub(super) start: Option<Timestamp>,
    /// How long it takes.
    pub(super) minutes: Option<i64>,
    pub(super) location: Option<String>,
    pub(super) description: Option<String>,
}

impl Event {
    /// Whether some of it is between these two.
    pub(super) fn is_between(&self, from: Timestamp, to: Timestamp) -> bool {
        self.start < to && (self.end > from || self.start >= from)
    }

    /// The event with these changes; none where a time cannot be counted.
    pub(super) fn changed(&self, changes: Changes) -> Option<Self> {
        let start = changes.start.unwrap_or(self.start);
        let length = match changes.minutes {
            Some(minutes) => SignedDuration::from_mins(minutes),
            None => self.end.duration_since(self.start),
        };
        Some(Self {
            id: self.id.clone(),
            name: changes.name.unwrap_or_else(|| self.name.clone()),
            start,
            end: start.checked_add(length).ok()?,
            location: changes.location.unwrap_or_else(|| self.location.clone()),
            description: changes.description.unwrap_or_else(|| self.description.clone()),
        })
    }

    /// The event as it is listed.
    pub(super) fn listed(&self, zone: &Zone) -> Value {
        json!({
            "name": self.name,
            "start": wall_text(&zone.here(self.start)),
            "end": wall_text(&zone.here(self.end)),
            "description": self.description,
            "event_id": self.id,
        })
    }

    /// The event with all that we know of it, and its id: the result of a change.
    pub(super) fn details(&self, calendar: &str, zone: &Zone) -> Value {
        json!({
            "event_details": {
                "name": self.name,
                "start": wall_text(&zone.here(self.start)),
                "end": wall_text(&zone.here(self.end)),
                "location": self.location,
                "description": self.description,
                "calendar_id": calendar,
            },
            "id": self.id,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event() -> Event {
        Event {
            id: "1".to_owned(),
            name: "Review, part 2".to_owned(),
            start: "2026-01-16T15:00:00Z".parse().unwrap(),
            end: "2026-01-16T15:45:00Z".parse().unwrap(),
            location: "Room 4".to_owned(),
            description: "bring notes".to_owned(),
        }
    }

    #[test]
    fn a_change_leaves_the_rest_alone() {
        let before = event();
        assert_eq!(before.changed(Changes::default()), Some(before.clone()));
        let moved: Timestamp = "2026-01-16T16:00:00Z".parse().unwrap();
        let after = before.changed(Changes { start: Some(moved), ..Changes::default() });
        let end = "2026-01-16T16:45:00Z".parse().unwrap();
        assert_eq!(after, Some(Event { start: moved, end, ..before.clone() }));
        let nowhere = Changes { location: Some(String::new()), ..Changes::default() };
        let after = before.changed(nowhere);
        assert_eq!(after, Some(Event { location: String::new(), ..before.clone() }));
        let endless = Changes { minutes: Some(i64::MAX / 60), ..Changes::default() };
        assert_eq!(before.changed(endless), None);
    }

    #[test]
    fn a_calendar_is_json_with_times_in_utc() {
        let text = json!({
            "name": "Team",
            "events": [{
                "id": "1",
                "name": "Review, part 2",
                "start": "2026-01-16T16:00:00+01:00",
                "end": "2026-01-16T15:45:00Z",
                "location": "Room 4",
                "description": "bring notes",
            }],
        });
        let calendar: Calendar = serde_json::from_value(text.clone()).unwrap();
        let name = "Team".to_owned();
        assert_eq!(calendar, Calendar { name, description: String::new(), events: vec![event()] });
        let mut written = text;
        written["description"] = json!("");
        written["events"][0]["start"] = json!("2026-01-16T15:00:00Z");
        assert_eq!(serde_json::to_value(&calendar).unwrap(), written);
    }
}
