//! Local time by the time zone database: the system's, or the one that we bring along.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use kernel::contracts::Zones;
use kernel::values::ids::Millis;

/// Knows all time zones.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SystemTimeZones;

/// A day and a time as people read them, and as models do not mistake them.
const WORDS: &str = "%A, %Y-%m-%d %H:%M";

impl Zones for SystemTimeZones {
    fn local(&self, now: Millis, zone: &str) -> Option<String> {
        let zone = TimeZone::get(zone).ok()?;
        let at = Timestamp::from_millisecond(now.0).ok()?.to_zoned(zone);
        Some(at.strftime(WORDS).to_string())
    }

    fn default_zone(&self) -> String {
        let system = TimeZone::try_system().ok();
        let name = system.as_ref().and_then(TimeZone::iana_name);
        // A system that names no zone of the database is asked no further.
        name.unwrap_or("UTC").to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_written_in_local_time() {
        let moment = Millis(1_709_210_096_789);
        let local = |zone| SystemTimeZones.local(moment, zone);
        assert_eq!(local("UTC").as_deref(), Some("Thursday, 2024-02-29 12:34"));
        assert_eq!(local("Asia/Tokyo").as_deref(), Some("Thursday, 2024-02-29 21:34"));
        assert_eq!(local("Atlantis/Capital"), None);
        assert!(SystemTimeZones.local(moment, &SystemTimeZones.default_zone()).is_some());
    }
}
