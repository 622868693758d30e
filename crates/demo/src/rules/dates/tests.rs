//! Phrases by example, and phrases out of parts against an oracle: many moments, many zones, and
//! the hours in which clocks are changed.

use super::{Here, When};
use jiff::civil::{Date, DateTime, Time, Weekday};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan, Zoned};

/// Sunday, 15 November 2026, 10:30 in Berlin.
const SUNDAY: &str = "2026-11-15T10:30:00+01:00";

fn here(now: &str, zone: &str) -> Here {
    let now: Timestamp = now.parse().unwrap();
    Here::new(now.as_millisecond(), zone).unwrap()
}

fn when(text: &str, base: Option<&str>) -> When {
    here(SUNDAY, "Europe/Berlin").when(text, base.map(|base| base.parse().unwrap()))
}

fn start(text: &str, base: Option<&str>) -> String {
    when(text, base).start.map(super::show::iso).unwrap_or_default()
}

#[test]
fn common_phrases_are_understood() {
    for (text, expected) in [
        ("tomorrow at 3pm", "2026-11-16T15:00:00"),
        ("Friday at 10am", "2026-11-20T10:00:00"),
        ("10am on Friday", "2026-11-20T10:00:00"),
        ("next Tuesday 14:30", "2026-11-17T14:30:00"),
        ("today at noon", "2026-11-15T12:00:00"),
        ("noon tomorrow", "2026-11-16T12:00:00"),
        ("in 2 hours", "2026-11-15T12:30:00"),
        ("in half an hour", "2026-11-15T11:00:00"),
        ("20 minutes from now", "2026-11-15T10:50:00"),
        ("at 9", "2026-11-16T09:00:00"),
        ("at 4", "2026-11-15T16:00:00"),
        ("at ten thirty", "2026-11-16T10:30:00"),
        ("on 3 December at 9:15", "2026-12-03T09:15:00"),
        ("December 24, 2027 at 6pm", "2027-12-24T18:00:00"),
        ("the 3rd at 10", "2026-12-03T10:00:00"),
        ("on 14 November at 9am", "2027-11-14T09:00:00"),
        ("2026-12-01 10:00", "2026-12-01T10:00:00"),
        ("2026-12-01T10:00:00", "2026-12-01T10:00:00"),
        ("2026-12-01 3:30", "2026-12-01T03:30:00"),
        ("3pm", "2026-11-15T15:00:00"),
        ("10am", "2026-11-16T10:00:00"),
        ("at 08:00 day after tomorrow", "2026-11-17T08:00:00"),
        ("day after tomorrow", "2026-11-17T09:00:00"),
        ("tonight at 8", "2026-11-15T20:00:00"),
        ("7:15 in the evening", "2026-11-15T19:15:00"),
        ("tomorrow morning", "2026-11-16T09:00:00"),
        ("half past three tomorrow", "2026-11-16T15:30:00"),
        ("3 p.m.", "2026-11-15T15:00:00"),
        ("midnight", "2026-11-16T00:00:00"),
        ("Sunday at 9am", "2026-11-22T09:00:00"),
        ("Sunday at 9pm", "2026-11-15T21:00:00"),
        ("next Sunday at 9pm", "2026-11-22T21:00:00"),
        ("in 3 days at 8am", "2026-11-18T08:00:00"),
        ("next week", "2026-11-16T09:00:00"),
        ("on 29 February at noon", "2028-02-29T12:00:00"),
    ] {
        assert_eq!(start(text, None), expected, "{text}");
    }
}

#[test]
fn text_that_is_no_time_is_kept() {
    for text in ["at 25", "Sprint 42", "1:1 with Ana", "to 4 people", "10k run", "version 1.30", ""]
    {
        let found = when(text, None);
        assert_eq!((found.start, found.rest.as_str()), (None, text), "{text}");
    }
}

#[test]
fn lengths_are_read_and_taken_out() {
    for (text, minutes, rest) in [
        ("for 45 minutes", 45, ""),
        ("standup at 9 for an hour", 60, "standup"),
        ("a 30-minute call", 30, "a call"),
        ("for an hour and a half", 90, ""),
        ("for 1.5 hours", 90, ""),
        ("2h15m review", 135, "review"),
        ("make it an hour", 60, "make it"),
        ("lunch from 1 to 2pm", 60, "lunch"),
        ("from 11 to 1pm", 120, ""),
        ("between 1pm and 2:30pm", 90, ""),
        ("workshop 1-2pm on Dec 3rd", 60, "workshop"),
        ("party from 10pm to 1am", 180, "party"),
        ("from 9 to 5", 480, ""),
    ] {
        let found = when(text, None);
        assert_eq!((found.minutes, found.rest.as_str()), (Some(minutes), rest), "{text}");
    }
    assert_eq!(start("lunch from 1 to 2pm", None), "2026-11-15T13:00:00");
    assert_eq!(start("from 11 to 1pm", None), "2026-11-15T11:00:00");
}

#[test]
fn names_keep_their_words() {
    let found = when("Friday Demo tomorrow at 9am", None);
    assert_eq!(found.rest, "Friday Demo");
    assert_eq!(found.said, "tomorrow at 9am");
    assert_eq!(when("Call with May at 3pm", None).rest, "Call with May");
    assert_eq!(when("Coffee with Zoë at 3pm", None).rest, "Coffee with Zoë");
}

#[test]
fn with_a_base_missing_parts_are_kept() {
    let base = Some("2026-11-20T15:00:00");
    for (text, expected) in [
        ("4pm", "2026-11-20T16:00:00"),
        ("to 4", "2026-11-20T16:00:00"),
        ("to 10", "2026-11-20T10:00:00"),
        ("tomorrow", "2026-11-16T15:00:00"),
        ("to Friday at noon", "2026-11-20T12:00:00"),
        ("an hour later", "2026-11-20T16:00:00"),
        ("an hour earlier", "2026-11-20T14:00:00"),
        ("back by 30 minutes", "2026-11-20T15:30:00"),
        ("forward 30 minutes", "2026-11-20T14:30:00"),
        ("by 90 minutes", "2026-11-20T16:30:00"),
        ("not 3pm, 4pm", "2026-11-20T16:00:00"),
        ("should be 10am, not 3pm", "2026-11-20T10:00:00"),
        ("make it an hour", "2026-11-20T15:00:00"),
    ] {
        assert_eq!(start(text, base), expected, "{text}");
    }
    assert_eq!(start("nothing of the kind", base), "");
    let early = Some("2026-11-20T06:00:00");
    assert_eq!(start("should be 12:40", early), "2026-11-20T12:40:00");
    assert_eq!(start("12:40am", early), "2026-11-20T00:40:00");
}

#[test]
fn a_clock_change_gives_no_skipped_time() {
    // On 29 March 2026 Berlin's clocks go from 2 to 3, on 25 October from 3 to 2.
    let before = here("2026-03-28T12:00:00+01:00", "Europe/Berlin");
    let found = before.when("tomorrow at 2:30am", None).start.unwrap();
    assert_eq!(super::show::iso(found), "2026-03-29T03:30:00");
    let found = before.when("in 15 hours", None).start.unwrap();
    assert_eq!(super::show::iso(found), "2026-03-29T04:00:00");
    let between = here("2026-10-25T02:15:00+01:00", "Europe/Berlin");
    let found = between.when("2:30am", None).start.unwrap();
    // The first 2:30 is over, and a wall time cannot say which of the two is meant.
    assert_eq!(super::show::iso(found), "2026-10-26T02:30:00");
    let long = here("2026-10-25T01:30:00+02:00", "Europe/Berlin");
    let found = long.when("2am for 2 hours", None);
    assert_eq!(found.end.map(super::show::iso).unwrap(), "2026-10-25T03:00:00");
}

/// A sequence that looks random and is the same every time.
struct Sequence(u64);

impl Sequence {
    fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// Moments around the hours in which clocks are changed, and others all over two years.
fn moments() -> Vec<Timestamp> {
    let changes = [
        "2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z", "2026-03-08T07:00:00Z",
        "2026-11-01T06:00:00Z", "2026-04-04T15:00:00Z", "2026-10-03T15:30:00Z",
        "2026-12-31T23:59:59Z", "2028-02-28T23:00:00Z",
    ];
    let mut all = Vec::new();
    for change in changes {
        let change: Timestamp = change.parse().unwrap();
        for minutes in (-1500..=1500).step_by(211) {
            all.push(change + SignedDuration::from_mins(minutes));
        }
    }
    let mut sequence = Sequence(20_261_115);
    let first: Timestamp = "2025-01-01T00:00:00Z".parse().unwrap();
    for _ in 0..30 {
        let days = sequence.below(730);
        let seconds = sequence.below(86_400);
        let seconds = i64::try_from(days * 86_400 + seconds).unwrap();
        all.push(first + SignedDuration::from_secs(seconds));
    }
    all
}

const ZONES: &[&str] = &[
    "UTC", "Europe/Berlin", "America/New_York", "America/St_Johns", "Asia/Kolkata",
    "Australia/Lord_Howe", "Pacific/Apia",
];

/// Ways to say a time of day.
fn times() -> Vec<(String, Time)> {
    let mut all = vec![("noon".to_owned(), time(12, 0)), ("12:30am".to_owned(), time(0, 30))];
    for (hour, minute) in
        [(0, 0), (1, 30), (2, 0), (2, 30), (3, 0), (7, 15), (12, 0), (15, 0), (23, 59)]
    {
        let half = if hour < 12 { "am" } else { "pm" };
        let twelve = if hour % 12 == 0 { 12 } else { hour % 12 };
        let said = time(hour, minute);
        all.push((format!("{hour:02}:{minute:02}"), said));
        all.push((format!("at {twelve}:{minute:02} {half}"), said));
        if minute == 0 {
            all.push((format!("at {twelve}{half}"), said));
        }
    }
    all
}

fn time(hour: i8, minute: i8) -> Time {
    Time::new(hour, minute, 0, 0).unwrap()
}

fn moment(wall: DateTime, zone: &TimeZone) -> Zoned {
    wall.to_zoned(zone.clone()).unwrap()
}

/// Ways to say a day, and what each means.
fn days(now: &Zoned, time: Time) -> Vec<(&'static str, Date)> {
    let today = now.date();
    let in_days = |days: i64| today.checked_add(days.days()).unwrap();
    let zone = now.time_zone();
    let is_ahead = |date: Date| moment(date.to_datetime(time), zone) > *now;
    let week = |weekday: Weekday| match i64::from(weekday.since(today.weekday())) {
        0 if !is_ahead(today) => in_days(7),
        days => in_days(days),
    };
    let next_week = |weekday: Weekday| match i64::from(weekday.since(today.weekday())) {
        0 => in_days(7),
        days => in_days(days),
    };
    let december = Date::new(today.year(), 12, 3).unwrap();
    let december = if december > today || (december == today && is_ahead(today)) {
        december
    } else {
        Date::new(today.year() + 1, 12, 3).unwrap()
    };
    vec![
        ("today", today),
        ("tomorrow", in_days(1)),
        ("the day after tomorrow", in_days(2)),
        ("in 5 days", in_days(5)),
        ("Monday", week(Weekday::Monday)),
        ("on wednesday", week(Weekday::Wednesday)),
        ("on Sat", week(Weekday::Saturday)),
        ("next Friday", next_week(Weekday::Friday)),
        ("next sunday", next_week(Weekday::Sunday)),
        ("on 3 December", december),
        ("on December 3rd", december),
        ("2027-03-28", Date::new(2027, 3, 28).unwrap()),
    ]
}

#[test]
fn a_day_and_a_time_are_that_time_on_that_day() {
    for zone_name in ZONES {
        let zone = TimeZone::get(zone_name).unwrap();
        for now in moments() {
            let here = Here::new(now.as_millisecond(), zone_name).unwrap();
            let now = now.to_zoned(zone.clone());
            for (said, time) in times() {
                for (day, date) in days(&now, time) {
                    let expected = moment(date.to_datetime(time), &zone).datetime();
                    // Each of the two orders for every other moment, to be done sooner.
                    let text = match now.minute() % 2 {
                        0 => format!("{day} {said}"),
                        _ => format!("x {said} {day}, y"),
                    };
                    let found = here.when(&text, None);
                    assert_eq!(found.start, Some(expected), "{text} at {now}");
                }
            }
        }
    }
}

#[test]
fn a_time_alone_is_the_next_such_time() {
    for zone_name in ZONES {
        let zone = TimeZone::get(zone_name).unwrap();
        for now in moments() {
            let here = Here::new(now.as_millisecond(), zone_name).unwrap();
            let now = now.to_zoned(zone.clone());
            let today = now.date();
            let tomorrow = today.tomorrow().unwrap();
            for (said, time) in times() {
                let dates = [today, tomorrow, tomorrow.tomorrow().unwrap()];
                let mut next = dates.iter().map(|date| moment(date.to_datetime(time), &zone));
                let next = next.find(|moment| *moment > now).unwrap();
                let found = here.when(&said, None).start.unwrap();
                assert_eq!(found, next.datetime(), "{said} at {now}");
                assert!(moment(found, &zone) > now, "{said} at {now} is over");
            }
        }
    }
}

#[test]
fn a_day_that_no_calendar_has_is_no_day() {
    for text in ["31 February at 9am", "on February 30", "2026-02-30", "the 31st of June"] {
        let found = when(text, None);
        assert!(found.unreal && found.start.is_none(), "{text}: {found:?}");
    }
    for text in ["29 February at 9am", "tomorrow", "at 9am", "for 2 hours", ""] {
        assert!(!when(text, None).unreal, "{text}");
    }
}
