//! Initial calendars: two of them with a few events around today. Written once; an emptied calendar
//! stays empty.

use self::On::{Day, Next};
use super::book::Held;
use super::event::{Calendar, Event};
use crate::zone::Zone;
use jiff::civil::{Time, time};
use jiff::{SignedDuration, Span, Zoned};
use std::io;

/// A calendar that is made.
struct PlannedCalendar {
    id: &'static str,
    name: &'static str,
    description: &'static str,
    events: &'static [PlannedEvent],
}

/// An event that is made: in so many days, at this time, for so many minutes.
struct PlannedEvent {
    name: &'static str,
    on: On,
    at: Time,
    minutes: i64,
    location: &'static str,
    description: &'static str,
}

/// On which day.
#[derive(Clone, Copy)]
enum On {
    /// The next one on which that time is still to come.
    Next,
    /// In so many days.
    Day(i32),
}

const fn at(hour: i8, minute: i8) -> Time {
    time(hour, minute, 0, 0)
}

const fn event(
    name: &'static str,
    on: On,
    at: Time,
    minutes: i64,
    location: &'static str,
    description: &'static str,
) -> PlannedEvent {
    PlannedEvent { name, on, at, minutes, location, description }
}

static CALENDARS: [PlannedCalendar; 2] = [
    PlannedCalendar {
        id: "primary",
        name: "Primary",
        description: "What you do",
        events: &PRIMARY,
    },
    PlannedCalendar {
        id: "team",
        name: "Team",
        description: "What the team does together",
        events: &TEAM,
    },
];

static PRIMARY: [PlannedEvent; 4] = [
    event("Project meeting", Next, at(15, 0), 45, "Room 4", "Where we are, and what comes next"),
    event("Coffee with Ada", Day(2), at(10, 30), 30, "Corner café", ""),
    event("Plan the week", Day(4), at(9, 30), 60, "", "Numbers, goals, holidays"),
    event("Concert", Day(9), at(20, 0), 150, "Old town hall", "Doors open at 19:15"),
];

static TEAM: [PlannedEvent; 2] = [
    event("Team breakfast", Day(1), at(8, 30), 45, "Kitchen", ""),
    event("Sprint demo", Day(3), at(14, 0), 60, "Room 1", "Show what works"),
];

/// Fills a folder that has no calendar. The time is now, in the zone of their owner.
pub(super) fn sow(held: &Held<'_>, zone: &Zone, now: &Zoned) -> io::Result<()> {
    if !held.ids()?.is_empty() {
        return Ok(());
    }
    for planned in &CALENDARS {
        let calendar = planned.calendar(zone, now);
        held.write(planned.id, &calendar).map_err(|error| io::Error::other(error.fault.message))?;
    }
    Ok(())
}

impl PlannedCalendar {
    fn calendar(&self, zone: &Zone, now: &Zoned) -> Calendar {
        let events = self.events.iter().enumerate().filter_map(|(index, planned)| {
            // Only at the end of all days a time cannot be counted.
            planned.event(format!("seed-{}-{}", self.id, index + 1), zone, now)
        });
        Calendar {
            name: self.name.to_owned(),
            description: self.description.to_owned(),
            events: events.collect(),
        }
    }
}

impl PlannedEvent {
    fn event(&self, id: String, zone: &Zone, now: &Zoned) -> Option<Event> {
        let on = |days: i32| {
            let day = now.date().checked_add(Span::new().days(days)).ok()?;
            zone.when(day.to_datetime(self.at))
        };
        let start = match self.on {
            Next => on(0).filter(|today| today > now).or_else(|| on(1))?,
            Day(days) => on(days)?,
        };
        let start = start.timestamp();
        let end = start.checked_add(SignedDuration::from_mins(self.minutes)).ok()?;
        Some(Event {
            id,
            name: self.name.to_owned(),
            start,
            end,
            location: self.location.to_owned(),
            description: self.description.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zone::wall_text;

    #[test]
    fn there_is_always_a_meeting_at_the_next_three_o_clock() {
        let zone = Zone::named("Europe/Berlin").unwrap();
        for (now, expected) in [
            ("2026-11-15T08:00:00", "2026-11-15T15:00:00"),
            ("2026-11-15T14:59:59", "2026-11-15T15:00:00"),
            ("2026-11-15T15:00:00", "2026-11-16T15:00:00"),
            ("2026-12-31T23:30:00", "2027-01-01T15:00:00"),
        ] {
            let now = zone.read(now).unwrap();
            let events = CALENDARS[0].calendar(&zone, &now).events;
            assert_eq!(events.len(), CALENDARS[0].events.len());
            let starts = events.iter().map(|event| wall_text(&zone.here(event.start)));
            let found: Vec<String> = starts.filter(|start| start.ends_with("T15:00:00")).collect();
            assert_eq!(found, [expected], "{now}");
        }
    }

    #[test]
    fn all_begin_after_now() {
        let zone = Zone::named("America/New_York").unwrap();
        let now = zone.read("2026-03-07T23:59:59").unwrap();
        for planned in CALENDARS.iter().flat_map(|calendar| calendar.events) {
            let event = planned.event("1".to_owned(), &zone, &now).unwrap();
            assert!(event.start > now.timestamp() && event.end > event.start, "{}", planned.name);
        }
    }
}
