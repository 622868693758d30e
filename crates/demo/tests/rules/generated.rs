//! Seeded random requests with names, hours, days and counts that no rule contains, and an oracle
//! for their meaning.

use crate::desk::{Desk, Stop};
use jiff::ToSpan;
use jiff::civil::{Date, DateTime, Time, Weekday};
use serde_json::Value;

const NAMES: &[&str] = &[
    "Standup",
    "Team Meeting",
    "Lunch with Bob",
    "Review with Ana",
    "Gym",
    "Call",
    "Budget Review",
    "Sync with Dev Team",
    "One on One with Ana",
    "Book Club",
    "Show and Tell",
    "New Hire Lunch",
    "Q3 Planning",
    "Coffee with Zoë",
    "Sprint 42 Retro",
    "Dentist",
    "Parent Teacher Conference",
    "Friday Demo",
    "Plan Review",
    "Check-in",
    "Set Design",
    "Meeting with Tom and Jerry",
    "Call Mom",
    "1:1 with Sam",
    "Move Planning",
    "Walk the dog",
    "Add-on Review",
    "Marketing & Sales",
    "Project X: kickoff",
    "Product/Tech Sync",
];

const DAYS: &[&str] = &[
    "", "today", "tomorrow", "day after tomorrow", "on monday", "on Tuesday", "Wednesday",
    "on Thursday", "next Friday", "on Saturday", "next sunday", "on 3 December", "on December 24",
    "on 2026-12-01",
];

/// A sequence that looks random and is the same every time.
struct Sequence(u64);

impl Sequence {
    fn below(&mut self, end: usize) -> usize {
        let factor = 6_364_136_223_846_793_005;
        let step = 1_442_695_040_888_963_407;
        self.0 = self.0.wrapping_mul(factor).wrapping_add(step);
        usize::try_from(self.0 >> 33).unwrap() % end
    }

    fn one_of<'t>(&mut self, all: &[&'t str]) -> &'t str {
        all[self.below(all.len())]
    }

    fn time(&mut self) -> Time {
        let minute = [0, 0, 15, 30, 45][self.below(5)];
        Time::new(i8::try_from(self.below(24)).unwrap(), minute, 0, 0).unwrap()
    }
}

/// `5:30pm`.
fn twelve(time: Time) -> String {
    let hour = if time.hour() % 12 == 0 { 12 } else { time.hour() % 12 };
    let half = if time.hour() < 12 { "am" } else { "pm" };
    if time.minute() == 0 {
        format!("{hour}{half}")
    } else {
        format!("{hour}:{:02}{half}", time.minute())
    }
}

/// What a day and a time mean.
fn meant(now: DateTime, day: &str, time: Time) -> DateTime {
    let today = now.date();
    let in_days = |days: i64| today.checked_add(days.days()).unwrap();
    let is_ahead = |date: Date| date.to_datetime(time) > now;
    let dated = |month: i8, day: i8| {
        let date = Date::new(today.year(), month, day).unwrap();
        if is_ahead(date) { date } else { Date::new(today.year() + 1, month, day).unwrap() }
    };
    let week = |weekday: Weekday, next: bool| match i64::from(weekday.since(today.weekday())) {
        0 if next || !is_ahead(today) => in_days(7),
        days => in_days(days),
    };
    let date = match day {
        "" if is_ahead(today) => today,
        "" | "tomorrow" => in_days(1),
        "today" => today,
        "day after tomorrow" => in_days(2),
        "on monday" => week(Weekday::Monday, false),
        "on Tuesday" => week(Weekday::Tuesday, false),
        "Wednesday" => week(Weekday::Wednesday, false),
        "on Thursday" => week(Weekday::Thursday, false),
        "next Friday" => week(Weekday::Friday, true),
        "on Saturday" => week(Weekday::Saturday, false),
        "next sunday" => week(Weekday::Sunday, true),
        "on 3 December" => dated(12, 3),
        "on December 24" => dated(12, 24),
        "on 2026-12-01" => Date::new(2026, 12, 1).unwrap(),
        other => panic!("{other}"),
    };
    date.to_datetime(time)
}

/// Name, start and minutes of each event that is proposed.
fn proposed(stop: &Stop) -> Vec<(String, DateTime, i64)> {
    let Stop::Confirm(calls) = stop else { panic!("{stop:?}") };
    let event = |(tool, arguments): &(String, Value)| {
        assert_eq!(tool, "create_event");
        let name = arguments["name"].as_str().unwrap().to_owned();
        let start = arguments["start"].as_str().unwrap().parse().unwrap();
        (name, start, arguments["duration_minutes"].as_i64().unwrap())
    };
    calls.iter().map(event).collect()
}

/// One request, and what it should come to. A vague one has its answer beside it.
struct Request {
    text: String,
    answer: Option<String>,
    events: Vec<(String, DateTime, i64)>,
}

fn request(sequence: &mut Sequence, now: DateTime) -> Request {
    let name = sequence.one_of(NAMES);
    let day = sequence.one_of(DAYS);
    let time = sequence.time();
    let hour = match sequence.below(2) {
        0 => twelve(time),
        _ => format!("{:02}:{:02}", time.hour(), time.minute()),
    };
    let when = match sequence.below(3) {
        0 => format!("at {hour} {day}"),
        _ => format!("{day} at {hour}"),
    };
    let when = when.trim();
    let mut minutes = 30;
    let mut answer = None;
    let text = match sequence.below(7) {
        0 => format!("create a meeting called {name} {when}"),
        1 => format!("schedule {name} {when}"),
        2 => {
            minutes = [15, 45, 60, 90][sequence.below(4)];
            format!("please add {name} {when} for {minutes} minutes")
        }
        3 => format!("create an event called \"{name}\" {when}"),
        4 => format!("Can you put {name} on my calendar {when}?"),
        5 => {
            answer = Some(format!("{name} {when}"));
            "schedule something".to_owned()
        }
        _ => return list(sequence, now),
    };
    let events = vec![(name.to_owned(), meant(now, day, time), minutes)];
    Request { text, answer, events }
}

fn list(sequence: &mut Sequence, now: DateTime) -> Request {
    let count = 2 + sequence.below(3);
    let first = sequence.below(NAMES.len());
    let mut items = Vec::new();
    let mut events = Vec::new();
    for index in 0..count {
        let name = NAMES[(first + index * 7) % NAMES.len()];
        let time = sequence.time();
        items.push(format!("{name} at {}", twelve(time)));
        events.push((name.to_owned(), meant(now, "", time), 30));
    }
    let last = items.pop().unwrap();
    let joint = sequence.one_of(&[" and ", ", and "]);
    let text = format!("create {count} events: {}{joint}{last}", items.join(", "));
    Request { text, answer: None, events }
}

/// Refuses the first event with another time, approves the others, then approves the corrected one.
fn correct(
    desk: &mut Desk,
    sequence: &mut Sequence,
    events: &mut [(String, DateTime, i64)],
) -> Stop {
    let hour = (events[0].1.hour() + 1 + i8::try_from(sequence.below(11)).unwrap()) % 24;
    let time = Time::new(hour, 0, 0, 0).unwrap();
    let words = sequence.one_of(&[
        "Wrong time, should be {}",
        "make it {} instead",
        "no, {}",
        "{} please",
        "I'd prefer {}",
        "not that, {} would be better",
    ]);
    let words = words.replace("{}", &twelve(time));
    let mut decisions = vec![None; events.len()];
    decisions[0] = Some(words.as_str());
    let stop = desk.decide(&decisions);
    events[0].1 = events[0].1.date().to_datetime(time);
    assert_eq!(proposed(&stop), events[..1], "{words}");
    desk.decide(&[None])
}

#[test]
fn generated_requests_are_understood() {
    let mut sequence = Sequence(20_261_115);
    for _ in 0..600 {
        let month = 1 + sequence.below(12);
        let day = 1 + sequence.below(28);
        let date = Date::new(2026, i8::try_from(month).unwrap(), i8::try_from(day).unwrap());
        let now = date.unwrap().to_datetime(sequence.time());
        let mut desk = Desk::new(now, sequence.one_of(&["UTC", "Asia/Tokyo", "Asia/Kolkata"]));
        let Request { text, answer, mut events } = request(&mut sequence, now);
        let mut stop = desk.run(&text);
        if let Some(answer) = answer {
            assert!(matches!(stop, Stop::Clarify(_)), "{text}: {stop:?}");
            stop = desk.answer(&answer);
        }
        assert_eq!(proposed(&stop), events, "{text} at {now}");
        let done = if sequence.below(2) == 0 {
            correct(&mut desk, &mut sequence, &mut events)
        } else {
            desk.decide(&vec![None; events.len()])
        };
        let Stop::Said(said) = done else { panic!("{text}: {done:?}") };
        assert_eq!(desk.events.len(), events.len(), "{text}");
        for (name, start, _) in &events {
            assert!(said.contains(name.as_str()), "{text}: {said}");
            assert!(desk.events.iter().any(|event| event.name == *name && event.start == *start));
        }
        follow_up(&mut desk, &mut sequence);
    }
}

/// "It" is the event that was made last.
fn follow_up(desk: &mut Desk, sequence: &mut Sequence) {
    let last = desk.events.last().unwrap().clone();
    let time = sequence.time();
    if last.start.time() == time {
        return;
    }
    let words = sequence.one_of(&["now make it {}", "change that to {}", "move it to {}"]);
    let text = words.replace("{}", &twelve(time));
    let Stop::Confirm(calls) = desk.run(&text) else { panic!("{text}") };
    let start = last.start.date().to_datetime(time).strftime("%Y-%m-%dT%H:%M:%S").to_string();
    assert_eq!(calls.len(), 1, "{text}: {calls:?}");
    assert_eq!(calls[0].0, "update_event");
    assert_eq!(calls[0].1["event_id"], last.id.as_str(), "{text}");
    assert_eq!(calls[0].1["start"], start.as_str(), "{text}");
}

#[test]
fn events_are_moved_whatever_their_hour() {
    let mut sequence = Sequence(7);
    for _ in 0..200 {
        let now = Date::new(2026, 6, 15).unwrap().to_datetime(sequence.time());
        let mut desk = Desk::new(now, "UTC");
        let old = sequence.time();
        let new = sequence.time();
        if old == new {
            continue;
        }
        let start = meant(now, "", old);
        let wall = |time: DateTime| time.strftime("%Y-%m-%dT%H:%M:%S").to_string();
        desk.put(sequence.one_of(NAMES), &wall(start), &wall(start + 1.hour()));
        desk.put("Later", &wall(start + 1.day()), &wall(start + 1.day().minutes(30)));
        let text = format!("move the meeting at {} to {}", twelve(old), twelve(new));
        let Stop::Confirm(calls) = desk.run(&text) else { panic!("{text} at {now}") };
        assert_eq!(calls[0].1["event_id"], "e0", "{text} at {now}");
        let expected = wall(start.date().to_datetime(new));
        assert_eq!(calls[0].1["start"], expected.as_str(), "{text} at {now}");
        let Stop::Said(said) = desk.decide(&[None]) else { panic!("{text}") };
        assert!(said.contains("has been moved to"), "{said}");
    }
}
