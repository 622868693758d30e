//! `VTIMEZONE`: when the clocks of a zone change. A file that names a zone must say so itself, for
//! not everyone who reads it has a database of zones.

use super::ics::Component;
use crate::zone::Zone;
use jiff::civil::Date;
use jiff::tz::{Dst, Offset, TimeZone};
use jiff::{Timestamp, Zoned};

const TIMEZONE: &str = "VTIMEZONE";
/// How many years around its events a file covers.
const YEARS_BEFORE: i16 = 1;
const YEARS_AFTER: i16 = 2;

/// Lets a calendar say what our zone's clocks do around these moments. What another program said
/// of it stays: it says it for all times.
pub(super) fn explain(calendar: &mut Component, zone: &Zone, moments: &[Zoned]) {
    let Some(id) = zone.id() else { return };
    let ours =
        |component: &Component| component.is(TIMEZONE) && component.value("TZID") == Some(id);
    let for_ever = |component: &Component| {
        component.components.iter().any(|inner| inner.property("RRULE").is_some())
    };
    if calendar.components.iter().any(|component| ours(component) && for_ever(component)) {
        return;
    }
    let years = moments.iter().map(Zoned::year);
    let (Some(first), Some(last)) = (years.clone().min(), years.max()) else { return };
    let Some(explained) = timezone(zone, id, first - YEARS_BEFORE, last + YEARS_AFTER) else {
        return;
    };
    calendar.components.retain(|component| !ours(component));
    calendar.components.insert(0, explained);
}

/// What a zone's clocks do from one year's beginning to another's.
fn timezone(zone: &Zone, id: &str, first: i16, last: i16) -> Option<Component> {
    let begin = new_year(first)?;
    let end = new_year(last)?;
    let rules = zone.rules();
    let now = rules.to_offset_info(begin);
    let mut offset = now.offset();
    let mut component = Component::new(TIMEZONE).with("TZID", id);
    component.components.push(observance(begin, now.dst(), offset, offset, now.abbreviation()));
    for change in rules.following(begin).take_while(|change| change.timestamp() < end) {
        let at = change.timestamp();
        let from = offset;
        offset = change.offset();
        let inner = observance(at, change.dst(), from, offset, change.abbreviation());
        component.components.push(inner);
    }
    Some(component)
}

fn observance(
    begin: Timestamp,
    dst: Dst,
    from: Offset,
    to: Offset,
    abbreviation: &str,
) -> Component {
    let name = if dst.is_dst() { "DAYLIGHT" } else { "STANDARD" };
    // The clock as it showed the moment before.
    let wall = from.to_datetime(begin).strftime("%Y%m%dT%H%M%S").to_string();
    Component::new(name)
        .with("DTSTART", wall)
        .with("TZOFFSETFROM", written(from))
        .with("TZOFFSETTO", written(to))
        .with("TZNAME", abbreviation)
}

fn new_year(year: i16) -> Option<Timestamp> {
    Some(Date::new(year, 1, 1).ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

/// `+0100`, and with seconds where there are some.
fn written(offset: Offset) -> String {
    let seconds = offset.seconds();
    let sign = if seconds < 0 { '-' } else { '+' };
    let seconds = seconds.unsigned_abs();
    let hours = seconds / 3600;
    let minutes = seconds / 60 % 60;
    let rest = seconds % 60;
    match rest {
        0 => format!("{sign}{hours:02}{minutes:02}"),
        rest => format!("{sign}{hours:02}{minutes:02}{rest:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_when_the_clocks_change() {
        let zone = Zone::named("Europe/Berlin").unwrap();
        let mut calendar = Component::new("VCALENDAR");
        let moment = zone.read("2026-01-16T15:00:00").unwrap();
        explain(&mut calendar, &zone, std::slice::from_ref(&moment));
        let explained = &calendar.components[0];
        assert_eq!(explained.value("TZID"), Some("Europe/Berlin"));
        // The beginning of 2025, and two changes in each of three years.
        assert_eq!(explained.components.len(), 7);
        let summer = &explained.components[3];
        assert!(summer.is("DAYLIGHT"));
        assert_eq!(summer.value("DTSTART"), Some("20260329T020000"));
        assert_eq!(summer.value("TZOFFSETFROM"), Some("+0100"));
        assert_eq!(summer.value("TZOFFSETTO"), Some("+0200"));
        assert_eq!(summer.value("TZNAME"), Some("CEST"));
        explain(&mut calendar, &zone, &[moment]);
        assert_eq!(calendar.components.len(), 1, "there is one");
    }

    #[test]
    fn what_another_program_said_for_ever_stays() {
        let zone = Zone::named("Europe/Berlin").unwrap();
        let mut theirs = Component::new(TIMEZONE).with("TZID", "Europe/Berlin");
        theirs.components.push(Component::new("STANDARD").with("RRULE", "FREQ=YEARLY"));
        let mut calendar = Component::new("VCALENDAR");
        calendar.components.push(theirs);
        let before = calendar.clone();
        explain(&mut calendar, &zone, &[zone.read("2026-01-16").unwrap()]);
        assert_eq!(calendar, before);
    }

    #[test]
    fn offsets_are_written_with_their_sign() {
        let offset = |seconds| written(Offset::from_seconds(seconds).unwrap());
        assert_eq!((offset(0), offset(-16_200)), ("+0000".to_owned(), "-0430".to_owned()));
        assert_eq!(offset(5_445), "+013045");
    }

    #[test]
    fn utc_needs_no_explanation() {
        let zone = Zone::named("UTC").unwrap();
        let mut calendar = Component::new("VCALENDAR");
        explain(&mut calendar, &zone, &[zone.read("2026-01-16").unwrap()]);
        assert!(calendar.components.is_empty());
    }
}
