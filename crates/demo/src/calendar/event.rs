//! One event: what a `VEVENT` says that we understand, and how it is changed. All else in it stays
//! as it is.

use super::ics::{Component, Property, escaped, plain};
use crate::zone::{Zone, told};
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, Zoned};
use serde_json::{Value, json};

/// The component's name.
pub(super) const EVENT: &str = "VEVENT";
/// What an event without a name is called.
const NAMELESS: &str = "(no name)";

/// An event.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Event {
    /// Its id, in all calendars of the world.
    pub(super) id: String,
    pub(super) name: String,
    /// When it begins, here.
    pub(super) start: Zoned,
    /// When it ends, here.
    pub(super) end: Zoned,
    pub(super) location: String,
    pub(super) description: String,
}

/// What is to be different in an event. What is none stays as it is; an empty text takes out what
/// was there.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Changes {
    pub(super) name: Option<String>,
    /// When it begins. It takes as long as before, unless that is changed, too.
    pub(super) start: Option<Zoned>,
    /// How long it takes.
    pub(super) minutes: Option<i64>,
    pub(super) location: Option<String>,
    pub(super) description: Option<String>,
}

impl Event {
    /// What a component says; none where it is no event, or one that does not take place; else
    /// what is wrong with it.
    pub(super) fn read(component: &Component, zone: &Zone) -> Result<Option<Self>, String> {
        let cancelled = component
            .value("STATUS")
            .is_some_and(|status| status.trim().eq_ignore_ascii_case("CANCELLED"));
        if !component.is(EVENT) || cancelled {
            return Ok(None);
        }
        let text = |name: &str| component.value(name).map(plain).unwrap_or_default();
        let id = text("UID");
        if id.is_empty() {
            return Err("an event has no `UID`".to_owned());
        }
        let wrong = |name: &str| format!("`{name}` of event `{id}` is no time");
        let begins = component.property("DTSTART").and_then(|property| moment(property, zone));
        let begins = begins.ok_or_else(|| wrong("DTSTART"))?;
        let end = end(component, &begins, zone).ok_or_else(|| wrong("DTEND"))?;
        let name = Some(text("SUMMARY")).filter(|name| !name.is_empty());
        Ok(Some(Self {
            name: name.unwrap_or_else(|| NAMELESS.to_owned()),
            location: text("LOCATION"),
            description: text("DESCRIPTION"),
            id,
            start: begins.at,
            end,
        }))
    }

    /// Whether some of it is between these two.
    pub(super) fn is_between(&self, from: &Zoned, to: &Zoned) -> bool {
        self.start < *to && (self.end > *from || self.start >= *from)
    }

    /// The component of a new event.
    pub(super) fn component(&self, zone: &Zone, now: &Zoned) -> Component {
        let mut component = Component::new(EVENT)
            .with("UID", escaped(&self.id))
            .with("DTSTAMP", utc(now))
            .with("CREATED", utc(now));
        component.put("DTSTART", stamped("DTSTART", &self.start, zone));
        component.put("DTEND", stamped("DTEND", &self.end, zone));
        put_text(&mut component, "SUMMARY", &self.name);
        put_text(&mut component, "LOCATION", &self.location);
        put_text(&mut component, "DESCRIPTION", &self.description);
        component
    }

    /// Changes the component of this event; the event as it is then, and none where a time cannot
    /// be counted.
    pub(super) fn change(
        &self,
        component: &mut Component,
        changes: &Changes,
        zone: &Zone,
        now: &Zoned,
    ) -> Option<Self> {
        let mut changed = self.clone();
        if let Some(name) = &changes.name {
            changed.name.clone_from(name);
            put_text(component, "SUMMARY", name);
        }
        if let Some(location) = &changes.location {
            changed.location.clone_from(location);
            put_text(component, "LOCATION", location);
        }
        if let Some(description) = &changes.description {
            changed.description.clone_from(description);
            put_text(component, "DESCRIPTION", description);
        }
        if changes.start.is_some() || changes.minutes.is_some() {
            let length = match changes.minutes {
                Some(minutes) => SignedDuration::from_mins(minutes),
                None => self.end.duration_since(&self.start),
            };
            changed.start = changes.start.clone().unwrap_or_else(|| self.start.clone());
            changed.end = changed.start.checked_add(length).ok()?;
            component.put("DTSTART", stamped("DTSTART", &changed.start, zone));
            component.remove("DURATION");
            component.put("DTEND", stamped("DTEND", &changed.end, zone));
        }
        if changed != *self {
            let times = component.value("SEQUENCE").and_then(|times| times.trim().parse().ok());
            let times: u32 = times.unwrap_or(0);
            component
                .put("SEQUENCE", Property::new("SEQUENCE", times.saturating_add(1).to_string()));
            component.put("DTSTAMP", Property::new("DTSTAMP", utc(now)));
            component.put("LAST-MODIFIED", Property::new("LAST-MODIFIED", utc(now)));
        }
        Some(changed)
    }

    /// The event as it is listed.
    pub(super) fn listed(&self) -> Value {
        json!({
            "name": self.name,
            "start": told(&self.start),
            "end": told(&self.end),
            "description": self.description,
            "event_id": self.id,
        })
    }

    /// The event with all that we know of it, and its id: the result of a change.
    pub(super) fn details(&self, calendar: &str) -> Value {
        json!({
            "event_details": {
                "name": self.name,
                "start": told(&self.start),
                "end": told(&self.end),
                "location": self.location,
                "description": self.description,
                "calendar_id": calendar,
            },
            "id": self.id,
        })
    }
}

fn put_text(component: &mut Component, name: &str, text: &str) {
    if text.is_empty() {
        component.remove(name);
    } else {
        component.put(name, Property::new(name, escaped(text)));
    }
}

/// A time as files write it: on the wall of its zone, or in UTC where the zone has no name.
fn stamped(name: &str, moment: &Zoned, zone: &Zone) -> Property {
    match zone.id() {
        Some(id) => {
            let wall = zone.here(moment).strftime("%Y%m%dT%H%M%S").to_string();
            Property::new(format!("{name};TZID={id}"), wall)
        }
        None => Property::new(name, utc(moment)),
    }
}

fn utc(moment: &Zoned) -> String {
    moment.with_time_zone(TimeZone::UTC).strftime("%Y%m%dT%H%M%SZ").to_string()
}

/// When an event ends: at its end, after its duration, after its day, or when it begins.
fn end(component: &Component, begins: &Moment, zone: &Zone) -> Option<Zoned> {
    if let Some(property) = component.property("DTEND") {
        return moment(property, zone).map(|ends| ends.at);
    }
    let length = match component.value("DURATION") {
        Some(length) => length.trim().parse::<Span>().ok()?,
        None if begins.whole_day => Span::new().days(1),
        None => Span::new(),
    };
    begins.at.checked_add(length).ok()
}

/// What a property names, here.
struct Moment {
    at: Zoned,
    /// Whether it is a whole day, and not a time.
    whole_day: bool,
}

/// The moment that a property names. A zone that no one knows is taken for ours.
fn moment(property: &Property, zone: &Zone) -> Option<Moment> {
    let value = property.value.trim();
    let (wall, in_utc) = match value.strip_suffix(['Z', 'z']) {
        Some(wall) => (wall, true),
        None => (value, false),
    };
    let Some((day, time)) = wall.split_once(['T', 't']) else {
        let at = zone.when(date(wall)?.to_datetime(Time::midnight()))?;
        return Some(Moment { at, whole_day: true });
    };
    let wall = on_the_wall(date(day)?, time)?;
    let there = if in_utc {
        wall.to_zoned(TimeZone::UTC).ok()?
    } else {
        let named = property.parameter("TZID").and_then(Zone::named);
        named.as_ref().unwrap_or(zone).when(wall)?
    };
    Some(Moment { at: zone.here(&there), whole_day: false })
}

fn date(digits: &str) -> Option<Date> {
    let [year, month, day] = numbers(digits, [4, 2, 2])?;
    Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
}

fn on_the_wall(date: Date, digits: &str) -> Option<DateTime> {
    let [hour, minute, second] = numbers(digits, [2, 2, 2])?;
    // A leap second is the last one that clocks here show.
    let second = second.min(59);
    let part = |number: i16| i8::try_from(number).ok();
    let year = date.year();
    let month = date.month();
    let day = date.day();
    DateTime::new(year, month, day, part(hour)?, part(minute)?, part(second)?, 0).ok()
}

/// Numbers of so many digits each, one behind the other.
fn numbers<const N: usize>(digits: &str, lengths: [usize; N]) -> Option<[i16; N]> {
    let all_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
    if !all_digits || digits.len() != lengths.iter().sum::<usize>() {
        return None;
    }
    let mut rest = digits;
    let mut numbers = [0; N];
    for (number, length) in numbers.iter_mut().zip(lengths) {
        let (digits, after) = rest.split_at(length);
        *number = digits.parse().ok()?;
        rest = after;
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn berlin() -> Zone {
        Zone::named("Europe/Berlin").unwrap()
    }

    fn event(lines: &str) -> Result<Option<Event>, String> {
        let text =
            format!("BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:1\n{lines}\nEND:VEVENT\nEND:VCALENDAR\n");
        let calendar = Component::read(text.as_bytes()).unwrap();
        Event::read(&calendar.components[0], &berlin())
    }

    fn times(lines: &str) -> (String, String) {
        let event = event(lines).unwrap().unwrap();
        (told(&event.start), told(&event.end))
    }

    fn pair(start: &str, end: &str) -> (String, String) {
        (start.to_owned(), end.to_owned())
    }

    #[test]
    fn times_are_read_in_all_their_forms() {
        let three = pair("2026-01-16T15:00:00", "2026-01-16T15:30:00");
        for lines in [
            "DTSTART:20260116T150000\nDTEND:20260116T153000",
            "DTSTART;TZID=Europe/Berlin:20260116T150000\nDURATION:PT30M",
            "DTSTART;TZID=\"America/New_York\":20260116T090000\nDTEND:20260116T143000Z",
            "DTSTART;TZID=W. Europe Standard Time:20260116T150000\nDURATION:PT1800S",
            "dtstart:20260116T140000z\nduration:PT30M",
        ] {
            assert_eq!(times(lines), three, "{lines}");
        }
        let day = pair("2026-03-29T00:00:00", "2026-03-30T00:00:00");
        assert_eq!(times("DTSTART;VALUE=DATE:20260329"), day, "a day of 23 hours");
        let moment = pair("2026-01-16T15:00:00", "2026-01-16T15:00:00");
        assert_eq!(times("DTSTART:20260116T150000"), moment);
    }

    #[test]
    fn what_is_no_time_is_told_with_its_event() {
        for lines in ["SUMMARY:x", "DTSTART:tomorrow", "DTSTART:20261301T000000", "DTSTART:2026"] {
            assert_eq!(
                event(lines),
                Err("`DTSTART` of event `1` is no time".to_owned()),
                "{lines}"
            );
        }
        let wrong = event("DTSTART:20260116T150000\nDURATION:soon").unwrap_err();
        assert_eq!(wrong, "`DTEND` of event `1` is no time");
        assert_eq!(event("DTSTART:20260116T150000\nSTATUS:cancelled"), Ok(None));
        assert_eq!(event("DTSTART:20260116T150000").unwrap().unwrap().name, NAMELESS);
    }

    #[test]
    fn a_change_leaves_the_rest_alone() {
        let zone = berlin();
        let now = zone.read("2026-01-10T08:00:00").unwrap();
        let mut component = Component::new(EVENT)
            .with("UID", "1")
            .with("DTSTART;TZID=Europe/Berlin", "20260116T150000")
            .with("DURATION", "PT45M")
            .with("SUMMARY", "Review\\, part 2")
            .with("LOCATION", "Room 4")
            .with("DESCRIPTION", "bring notes")
            .with("X-THEIRS", "kept");
        let before = Event::read(&component, &zone).unwrap().unwrap();
        assert_eq!(before.name, "Review, part 2");
        let changes = Changes { start: zone.read("2026-01-16T16:00:00"), ..Changes::default() };
        let after = before.change(&mut component, &changes, &zone, &now).unwrap();
        assert_eq!(
            (told(&after.start), told(&after.end)),
            pair("2026-01-16T16:00:00", "2026-01-16T16:45:00")
        );
        assert_eq!(
            (after.location.as_str(), after.description.as_str()),
            ("Room 4", "bring notes")
        );
        assert_eq!(Event::read(&component, &zone), Ok(Some(after.clone())));
        assert_eq!(component.value("X-THEIRS"), Some("kept"));
        assert_eq!((component.value("SEQUENCE"), component.value("DURATION")), (Some("1"), None));
        let same = component.clone();
        after.change(&mut component, &Changes::default(), &zone, &now).unwrap();
        assert_eq!(component, same, "nothing changes");
        let changes = Changes { location: Some(String::new()), ..Changes::default() };
        after.change(&mut component, &changes, &zone, &now).unwrap();
        assert_eq!(component.value("LOCATION"), None, "it was said to be empty");
    }

    #[test]
    fn a_zone_without_a_name_is_written_as_utc() {
        let zone = Zone::named("UTC").unwrap();
        let start = zone.read("2026-01-16T15:00:00").unwrap();
        let new = Event {
            id: "1".to_owned(),
            name: "a".to_owned(),
            end: start.clone(),
            start: start.clone(),
            location: String::new(),
            description: String::new(),
        };
        let component = new.component(&zone, &start);
        assert_eq!(component.value("DTSTART"), Some("20260116T150000Z"));
        assert_eq!(Event::read(&component, &zone), Ok(Some(new)));
    }
}
