//! Formats wall times as people write them, and as tools take them.

use jiff::civil::DateTime;

/// `2026-01-16T10:00:00`.
pub(crate) fn iso(wall: DateTime) -> String {
    wall.strftime("%Y-%m-%dT%H:%M:%S").to_string()
}

/// `10:00 AM`.
pub(crate) fn clock(wall: DateTime) -> String {
    wall.strftime("%-I:%M %p").to_string()
}

/// `Friday, January 16, 2026`.
pub(crate) fn long_date(wall: DateTime) -> String {
    wall.strftime("%A, %B %-d, %Y").to_string()
}

/// `January 16, 2026 at 10:00 AM`.
pub(crate) fn moment(wall: DateTime) -> String {
    format!("{} at {}", wall.strftime("%B %-d, %Y"), clock(wall))
}

/// `Friday, January 16, 2026 from 1:30 PM to 2:30 PM`.
pub(crate) fn span(start: DateTime, end: Option<DateTime>) -> String {
    match end {
        Some(end) if end.date() == start.date() => {
            format!("{} from {} to {}", long_date(start), clock(start), clock(end))
        }
        Some(end) => {
            let first = long_date(start);
            let last = long_date(end);
            format!("{first} at {} to {last} at {}", clock(start), clock(end))
        }
        None => format!("{} at {}", long_date(start), clock(start)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::datetime;

    #[test]
    fn times_read_as_people_write_them() {
        let start = datetime(2026, 1, 16, 13, 30, 0, 0);
        let end = datetime(2026, 1, 16, 14, 30, 0, 0);
        assert_eq!(iso(start), "2026-01-16T13:30:00");
        assert_eq!(moment(start), "January 16, 2026 at 1:30 PM");
        assert_eq!(clock(datetime(2026, 1, 5, 0, 5, 0, 0)), "12:05 AM");
        assert_eq!(span(start, Some(end)), "Friday, January 16, 2026 from 1:30 PM to 2:30 PM");
        let late = datetime(2026, 1, 17, 0, 30, 0, 0);
        let over = "Friday, January 16, 2026 at 1:30 PM to Saturday, January 17, 2026 at 12:30 AM";
        assert_eq!(span(start, Some(late)), over);
        assert_eq!(span(start, None), "Friday, January 16, 2026 at 1:30 PM");
    }
}
