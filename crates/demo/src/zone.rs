//! Wall time in the time zone of the calendar's owner. The one module that knows time zones.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use kernel::values::ids::Millis;

/// A time zone.
#[derive(Debug, Clone)]
pub struct Zone {
    zone: TimeZone,
}

impl Zone {
    /// The zone of this machine (`TZ`, else what the system is set to), else UTC.
    pub fn of_this_machine() -> Self {
        let zone = TimeZone::system();
        Self { zone: if zone.is_unknown() { TimeZone::UTC } else { zone } }
    }

    /// The zone of this IANA name, such as `Europe/Berlin`.
    pub fn named(name: &str) -> Option<Self> {
        TimeZone::get(name).ok().map(|zone| Self { zone })
    }

    pub(crate) fn at(&self, moment: Millis) -> Option<Zoned> {
        Timestamp::from_millisecond(moment.0).ok().map(|moment| self.here(moment))
    }

    /// The moment at which the wall clock here shows this. Where a change of the clock leaves it
    /// out, the one as long after the change; where it comes twice, the first.
    pub(crate) fn when(&self, wall: DateTime) -> Option<Zoned> {
        wall.to_zoned(self.zone.clone()).ok()
    }

    /// What the wall clock here shows at this moment.
    pub(crate) fn here(&self, moment: Timestamp) -> Zoned {
        moment.to_zoned(self.zone.clone())
    }

    /// The moment that a text names: `2026-01-16T10:00:00` or `2026-01-16 10:00` is wall time here,
    /// `2026-01-16` the midnight that begins that day; with `Z` or `+01:00` behind it is wall time
    /// there.
    pub(crate) fn read(&self, text: &str) -> Option<Zoned> {
        let text = text.trim();
        if let Ok(moment) = text.parse::<Timestamp>() {
            return Some(self.here(moment));
        }
        // An offset that the line above did not take is a mistake, and must not be ignored.
        let time = text.split_once(['T', 't', ' ']).map_or("", |(_, time)| time);
        if time.contains(['+', '-', 'Z', 'z', '[']) {
            return None;
        }
        self.when(text.parse::<DateTime>().ok()?)
    }
}

/// What the wall clock shows, as tools tell it: `2026-01-16T10:00:00`.
pub(crate) fn wall_text(moment: &Zoned) -> String {
    moment.strftime("%Y-%m-%dT%H:%M:%S").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn berlin() -> Zone {
        Zone::named("Europe/Berlin").unwrap()
    }

    #[test]
    fn wall_time_is_understood_as_people_write_it() {
        for (text, expected) in [
            ("2026-01-16T10:00:00", "2026-01-16T10:00:00"),
            (" 2026-01-16T10:00 ", "2026-01-16T10:00:00"),
            ("2026-01-16 10:00", "2026-01-16T10:00:00"),
            ("2026-01-16", "2026-01-16T00:00:00"),
            ("2026-01-16T10:00:00Z", "2026-01-16T11:00:00"),
            ("2026-07-16T10:00:00-04:00", "2026-07-16T16:00:00"),
            ("2026-01-16T10:00:00.500", "2026-01-16T10:00:00"),
        ] {
            let read = berlin().read(text).map(|moment| wall_text(&moment));
            assert_eq!(read.as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn invalid_times_are_none() {
        for text in [
            "",
            "tomorrow",
            "10:00",
            "2026-13-01T10:00:00",
            "2026-02-30",
            "2026-01-16T25:00:00",
            "2026-01-16T10:00:00+99:00",
            "2026-01-16T10:00:00[Nowhere/Else]",
        ] {
            assert!(berlin().read(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_skipped_hour_is_moved_forward() {
        let moved = berlin().read("2026-03-29T02:30:00").unwrap();
        assert_eq!(wall_text(&moved), "2026-03-29T03:30:00");
        assert_eq!(
            berlin().at(Millis(0)).map(|moment| wall_text(&moment)).unwrap(),
            "1970-01-01T01:00:00"
        );
    }

    #[test]
    fn an_unknown_zone_is_none() {
        assert!(Zone::named("UTC").is_some());
        assert!(Zone::named("Nowhere/Else").is_none());
    }
}
