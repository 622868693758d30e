//! Resolves phrases at a given moment. Every result is a wall time that exists in the zone: one in
//! a gap moves to the other side of it, one that comes twice is the first.

use super::clock::{Clock, Part};
use super::day::{Day, Which};
use super::phrase::{Phrase, phrases};
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan, Zoned};

/// A moment and the zone of the speaker.
#[derive(Debug, Clone)]
pub(crate) struct Here {
    now: Zoned,
}

/// What a text says of time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct When {
    /// When it begins, as wall time; none if the text names no moment.
    pub(crate) start: Option<DateTime>,
    /// When it ends, if the text says how long it takes.
    pub(crate) end: Option<DateTime>,
    /// How long it takes, if the text says so.
    pub(crate) minutes: Option<i64>,
    /// How far it is moved, if the text says so.
    pub(crate) shift: Option<i64>,
    /// The day that was said.
    pub(crate) day: Option<Date>,
    /// Whether a day was said that no calendar has, such as 31 February.
    pub(crate) unreal: bool,
    /// How many days were said: 1 but for weeks and the like.
    pub(crate) days: i64,
    /// Whether a time of day was said.
    pub(crate) has_time: bool,
    /// Whether that time may be before or after noon.
    pub(crate) loose: bool,
    /// The words that were about time.
    pub(crate) said: String,
    /// All other words.
    pub(crate) rest: String,
}

const MINUTES_OF_DAY: i64 = 24 * 60;
const NOON: i64 = 12 * 60;

impl Here {
    /// None if the zone has no such name, or the moment is in no calendar.
    pub(crate) fn new(now_ms: i64, zone: &str) -> Option<Self> {
        let zone = TimeZone::get(zone).ok()?;
        let now = Timestamp::from_millisecond(now_ms).ok()?.to_zoned(zone);
        Some(Self { now })
    }

    /// The wall time now.
    pub(crate) fn now(&self) -> DateTime {
        self.now.datetime()
    }

    /// The wall time of a text such as `2026-01-16T10:00:00`. With an offset it is a moment, and
    /// shown as it is here; a date alone is its midnight.
    pub(crate) fn read(&self, text: &str) -> Option<DateTime> {
        if let Ok(moment) = text.parse::<Timestamp>() {
            return Some(moment.to_zoned(self.now.time_zone().clone()).datetime());
        }
        text.parse::<DateTime>().ok()
    }

    /// What a text says of time. With a base, which is when something is now, a time without a day
    /// is on the base's day, a day without a time at the base's time.
    pub(crate) fn when(&self, text: &str, base: Option<DateTime>) -> When {
        let phrases = phrases(text);
        let said = merged(&phrases, base);
        let mut when = When {
            minutes: said.minutes,
            shift: said.shift,
            days: days(said.day),
            has_time: said.clock.is_some() || said.instant.is_some() || said.part.is_some(),
            loose: said.part.is_none() && said.clock.is_some_and(|clock| clock.loose),
            said: words_of(text, &phrases),
            rest: words_besides(text, &phrases),
            ..When::default()
        };
        let span = said.clock.map(|clock| read_range(clock, &said, base));
        let time = match (span, said.part) {
            (Some((from, _)), _) => time_of(from),
            (None, Some(part)) => time_of(usual(part)),
            (None, None) => None,
        };
        if let Some((from, Some(to))) = span {
            when.minutes = when.minutes.or(Some(to - from));
        }
        when.day = said.day.and_then(|day| self.day(day, time));
        when.unreal = said.day.is_some() && when.day.is_none();
        when.start = self.start(&said, time, &when, base).and_then(|start| self.existing(start));
        when.end = when.start.zip(when.minutes).and_then(|(start, minutes)| {
            let end = self.moment(start)?.checked_add(SignedDuration::from_mins(minutes)).ok()?;
            Some(end.datetime())
        });
        when
    }

    fn start(
        &self,
        said: &Phrase,
        time: Option<Time>,
        when: &When,
        base: Option<DateTime>,
    ) -> Option<DateTime> {
        if let Some(minutes) = said.instant {
            let then = self.now.checked_add(SignedDuration::from_mins(minutes)).ok()?;
            return Some(to_the_minute(then.datetime()));
        }
        if said.day.is_some() {
            let mut date = when.day?;
            // Tonight's midnight is the end of today.
            if said.day == Some(Day::Offset(0)) && said.clock.is_some_and(|clock| clock.midnight) {
                date = date.tomorrow().ok()?;
            }
            return match time.or(base.map(DateTime::time)) {
                Some(time) => Some(date.to_datetime(time)),
                None if date == self.now.date() => Some(to_the_minute(self.now())),
                None => time_of(usual(Part::Morning)).map(|time| date.to_datetime(time)),
            };
        }
        match (time, base) {
            (Some(time), Some(base)) => Some(base.date().to_datetime(time)),
            (Some(time), None) => self.next(time),
            (None, Some(base)) => match said.shift {
                Some(minutes) => base.checked_add(SignedDuration::from_mins(minutes)).ok(),
                None => said.minutes.map(|_| base),
            },
            (None, None) => None,
        }
    }

    /// The next such time: never now, never before.
    fn next(&self, time: Time) -> Option<DateTime> {
        // Three days, because a clock that jumps over a day's time does so on one day.
        let mut date = self.now.date();
        for _ in 0..3 {
            let start = date.to_datetime(time);
            if self.is_ahead(start) {
                return Some(start);
            }
            date = date.tomorrow().ok()?;
        }
        None
    }

    fn day(&self, day: Day, time: Option<Time>) -> Option<Date> {
        let today = self.now.date();
        let in_days = |days: i64| today.checked_add(days.days()).ok();
        let is_over = time.is_some_and(|time| !self.is_ahead(today.to_datetime(time)));
        match day {
            Day::Offset(days) if days.abs() <= DAYS_MAX => in_days(days),
            Day::Offset(_) => None,
            Day::Weekday(weekday, which) => {
                let days = i64::from(weekday.since(today.weekday()));
                let not_today = which == Which::Next || is_over;
                in_days(if days == 0 && not_today { 7 } else { days })
            }
            Day::Date { year: Some(year), month: Some(month), day } => {
                Date::new(year, month, day).ok()
            }
            Day::Date { month, day, .. } => self.next_date(month, day, is_over),
            Day::Week(Which::This) | Day::Days(_) => Some(today),
            Day::Week(Which::Next) => {
                in_days(7 - i64::from(today.weekday().to_monday_zero_offset()))
            }
            Day::Weekend(which) => {
                let saturday = jiff::civil::Weekday::Saturday.since(today.weekday());
                in_days(i64::from(saturday) + if which == Which::Next { 7 } else { 0 })
            }
        }
    }

    /// The next date with this day, and this month if one was said.
    fn next_date(&self, month: Option<i8>, day: i8, today_is_over: bool) -> Option<Date> {
        let today = self.now.date();
        let mut year = today.year();
        let mut at = month.unwrap_or(today.month());
        // Twelve years have every date that there is, 29 February included.
        for _ in 0..144 {
            if let Ok(date) = Date::new(year, at, day)
                && (date > today || (date == today && !today_is_over))
            {
                return Some(date);
            }
            if month.is_none() && at < 12 {
                at += 1;
            } else {
                at = month.unwrap_or(1);
                year += 1;
            }
        }
        None
    }

    fn is_ahead(&self, wall: DateTime) -> bool {
        self.moment(wall).is_some_and(|moment| moment > self.now)
    }

    fn moment(&self, wall: DateTime) -> Option<Zoned> {
        wall.to_zoned(self.now.time_zone().clone()).ok()
    }

    fn existing(&self, wall: DateTime) -> Option<DateTime> {
        self.moment(wall).map(|moment| moment.datetime())
    }
}

/// Further away is no day that someone means.
const DAYS_MAX: i64 = 100 * 366;

/// All phrases as one: the first of each kind. With a base, a time that is the base's own says
/// nothing if there is another: "not 9am, 10am".
fn merged(phrases: &[Phrase], base: Option<DateTime>) -> Phrase {
    let is_own = |phrase: &Phrase| {
        let base = base.map(minute_of_day);
        let clock = phrase.clock.filter(|_| phrase.end.is_none() && phrase.day.is_none());
        let read = clock.map(|clock| read_clock(clock, phrase.part, base));
        base.is_some() && read == base
    };
    let has_other = phrases.iter().any(|phrase| phrase.clock.is_some() && !is_own(phrase));
    let mut all = Phrase::default();
    for phrase in phrases.iter().filter(|phrase| !(has_other && is_own(phrase))) {
        all.day = all.day.or(phrase.day);
        all.part = all.part.or(phrase.part);
        all.instant = all.instant.or(phrase.instant);
        all.minutes = all.minutes.or(phrase.minutes);
        all.shift = all.shift.or(phrase.shift);
        if all.clock.is_none() {
            all.clock = phrase.clock;
            all.end = phrase.end;
        }
    }
    all
}

/// Begin and end as minutes of the day; an end before the begin is on the day after.
fn read_range(clock: Clock, said: &Phrase, base: Option<DateTime>) -> (i64, Option<i64>) {
    let near = base.map(minute_of_day);
    let Some(end) = said.end else { return (read_clock(clock, said.part, near), None) };
    let from = if clock.loose && !end.loose {
        // "11 to 1pm" begins before noon, "1 to 2pm" after it.
        let early = clock.minute_of_day() % NOON;
        if early + NOON < end.minute_of_day() { early + NOON } else { early }
    } else {
        read_clock(clock, said.part, near)
    };
    let to = if end.loose {
        let early = end.minute_of_day() % NOON;
        [early, early + NOON].into_iter().find(|to| *to > from).unwrap_or(early)
    } else {
        end.minute_of_day()
    };
    (from, Some(if to > from { to } else { to + MINUTES_OF_DAY }))
}

/// The minute of the day that was meant. Without am or pm it is what the part of the day says, else
/// what is nearer to the base, else 7 to 11 in the morning and 12 to 6 in the afternoon. Twelve is
/// noon, however early the base is: who means the night says so.
fn read_clock(clock: Clock, part: Option<Part>, near: Option<i64>) -> i64 {
    if !clock.loose {
        return clock.minute_of_day();
    }
    let early = clock.minute_of_day() % NOON;
    let late = early + NOON;
    match (part, near) {
        (Some(Part::Morning), _) => early,
        (Some(Part::Afternoon | Part::Evening | Part::Night), _) => late,
        (None, Some(_)) if early < 60 => late,
        (None, Some(near)) if (early - near).abs() < (late - near).abs() => early,
        (None, Some(_)) => late,
        (None, None) if early >= 7 * 60 => early,
        (None, None) => late,
    }
}

/// When a part of the day begins if no time is said.
fn usual(part: Part) -> i64 {
    match part {
        Part::Morning => 9 * 60,
        Part::Afternoon => 14 * 60,
        Part::Evening => 18 * 60,
        Part::Night => 20 * 60,
    }
}

fn days(day: Option<Day>) -> i64 {
    match day {
        Some(Day::Week(_)) => 7,
        Some(Day::Weekend(_)) => 2,
        Some(Day::Days(days)) => days.clamp(1, 366),
        Some(Day::Offset(_) | Day::Weekday(..) | Day::Date { .. }) | None => 1,
    }
}

fn time_of(minute_of_day: i64) -> Option<Time> {
    let hour = i8::try_from(minute_of_day / 60).ok()?;
    let minute = i8::try_from(minute_of_day % 60).ok()?;
    Time::new(hour, minute, 0, 0).ok()
}

fn minute_of_day(wall: DateTime) -> i64 {
    i64::from(wall.hour()) * 60 + i64::from(wall.minute())
}

fn to_the_minute(wall: DateTime) -> DateTime {
    let time = time_of(minute_of_day(wall)).unwrap_or_else(Time::midnight);
    wall.date().to_datetime(time)
}

fn words_of(text: &str, phrases: &[Phrase]) -> String {
    let said: Vec<&str> = phrases.iter().map(|phrase| &text[phrase.place.clone()]).collect();
    said.join(" ")
}

fn words_besides(text: &str, phrases: &[Phrase]) -> String {
    let mut rest = String::new();
    let mut from = 0;
    for phrase in phrases {
        rest.push_str(&text[from..phrase.place.start]);
        rest.push(' ');
        from = phrase.place.end;
    }
    rest.push_str(&text[from..]);
    squeezed(&rest)
}

/// The text with single spaces, none before a comma and the like, and no such sign at its ends.
pub(crate) fn squeezed(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        let is_sign = word.chars().all(|sign| ",.;:!?".contains(sign));
        if !out.is_empty() && !is_sign {
            out.push(' ');
        }
        out.push_str(word);
    }
    out.trim_matches([' ', ',', '.', ';', ':', '!', '?', '-', '–']).to_owned()
}
