//! The committed table of counts, `bench/counts.txt`: a line for each request, its name and its
//! instructions.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use crate::Result;

/// Counts that differ by less than this part are equal: what the machine does beside a request, and
/// where threads wait for each other, is not the same in two runs.
const EQUAL: f64 = 0.10;

/// Counts by the name of the request.
pub type Counts = BTreeMap<String, u64>;

/// Where the committed table is.
pub fn path() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/counts.txt"))
}

/// The committed counts; none where there is no table yet.
pub fn read() -> Result<Counts> {
    match fs::read_to_string(path()) {
        Ok(text) => parse(&text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Counts::new()),
        Err(error) => Err(format!("cannot read `{}`: {error}", path().display()).into()),
    }
}

/// Writes the table again.
pub fn write(counts: &[(&str, u64)]) -> Result<()> {
    let lines = counts.iter().map(|(name, count)| format!("{name}: {count}\n"));
    fs::write(path(), lines.collect::<String>())?;
    Ok(())
}

fn parse(text: &str) -> Result<Counts> {
    text.lines()
        .filter(|line| !line.is_empty())
        .map(|line| {
            let (name, count) = line.rsplit_once(": ").ok_or("a count without a name")?;
            Ok((name.to_owned(), count.parse()?))
        })
        .collect()
}

/// How a count stands to another: `1.04, equal`.
pub fn compared(count: u64, to: u64) -> String {
    let ratio = count as f64 / to as f64;
    let word = match ratio - 1.0 {
        difference if difference.abs() <= EQUAL => "equal",
        difference if difference > 0.0 => "more",
        _ => "less",
    };
    format!("{ratio:.2}, {word}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read() {
        let read = parse("a call: with a key: 7\nb: 12\n").unwrap();
        let expected = [("a call: with a key", 7), ("b", 12)];
        assert_eq!(read, expected.map(|(name, count)| (name.to_owned(), count)).into());
        assert!(parse("nothing").is_err());
        assert!(parse("a: many").is_err());
    }

    #[test]
    fn a_difference_of_a_tenth_counts_as_equal() {
        assert_eq!(compared(109, 100), "1.09, equal");
        assert_eq!(compared(112, 100), "1.12, more");
        assert_eq!(compared(80, 100), "0.80, less");
    }

    #[test]
    fn the_committed_table_can_be_read() {
        assert!(read().is_ok());
    }
}
