//! What the simulation has been through: step kind by pause by crash point.

use super::power::Point;
use std::collections::BTreeMap;
use std::fmt::Write;

/// How often a crash met a run at such a step, so paused, at such a point.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    met: BTreeMap<(&'static str, &'static str, Point), u64>,
}

impl Coverage {
    /// A crash met a run.
    pub fn note(&mut self, kind: &'static str, pause: &'static str, point: Point) {
        *self.met.entry((kind, pause, point)).or_default() += 1;
    }

    /// Adds another's.
    pub fn add(&mut self, other: &Coverage) {
        for (place, count) in &other.met {
            *self.met.entry(*place).or_default() += count;
        }
    }

    /// How many different places were met.
    pub fn places(&self) -> usize {
        self.met.len()
    }

    /// How often a crash point was met, at any step.
    pub fn at(&self, point: Point) -> u64 {
        self.met.iter().filter(|((_, _, met), _)| *met == point).map(|(_, count)| *count).sum()
    }

    /// The table, in Markdown.
    pub fn table(&self) -> String {
        let mut text = String::from("| step | run |");
        for point in Point::ALL {
            let _ = write!(text, " {} |", point.name());
        }
        text.push_str("\n|---|---|");
        text.push_str(&"---:|".repeat(Point::ALL.len()));
        text.push('\n');
        let mut rows: Vec<(&str, &str)> =
            self.met.keys().map(|(kind, run, _)| (*kind, *run)).collect();
        rows.dedup();
        for (kind, run) in rows {
            let _ = write!(text, "| {kind} | {run} |");
            for point in Point::ALL {
                let count =
                    self.met.iter().find(|((k, r, p), _)| (*k, *r, *p) == (kind, run, point));
                let _ = write!(text, " {} |", count.map_or(0, |(_, count)| *count));
            }
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_row_for_each_step_and_pause() {
        let mut coverage = Coverage::default();
        coverage.note("match", "running", Point::Step);
        coverage.note("match", "running", Point::Durable);
        coverage.note("match", "stuck", Point::Step);
        assert_eq!(coverage.table().lines().count(), 4);
        assert_eq!(coverage.at(Point::Step), 2);
        assert_eq!(coverage.places(), 3);
    }
}
