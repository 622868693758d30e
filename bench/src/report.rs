//! The report: Markdown on stdout, section by section as they finish, so that a failure late in the
//! run loses nothing. Progress goes to stderr.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use crate::Result;
use crate::load::Summary;
use crate::machine;

/// A Markdown table.
#[derive(Debug)]
pub struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns and no rows.
    pub fn new(head: &[&str]) -> Self {
        Self { head: head.iter().map(|name| (*name).to_owned()).collect(), rows: Vec::new() }
    }

    /// Adds a row; it has as many cells as the head.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| {} |", self.head.join(" | "))?;
        writeln!(f, "|{}", "---|".repeat(self.head.len()))?;
        for cells in &self.rows {
            writeln!(f, "| {} |", cells.join(" | "))?;
        }
        Ok(())
    }
}

/// Prints the title, the machine, the command line and the date.
pub fn header(title: &str, dir: &Path) -> Result<()> {
    let command: Vec<String> = std::env::args().collect();
    println!("# {title}\n");
    println!("- machine: {}", machine::describe()?);
    println!("- data: `{}` on {}", dir.display(), machine::file_system(dir)?);
    println!("- command: `{}`", command.join(" "));
    println!("- date: {}\n", machine::date()?);
    Ok(())
}

/// Prints one section; an empty note is left out.
pub fn section(title: &str, note: &str, table: &Table) {
    println!("## {title}\n");
    if !note.is_empty() {
        println!("{note}\n");
    }
    println!("{table}");
}

/// Says on stderr what is measured now.
pub fn progress(what: &str) {
    eprintln!("bench: {what}");
}

/// The cells of one load: who, rate, p50, p99.
pub fn load_cells(who: &str, summary: &Summary) -> Vec<String> {
    vec![who.to_owned(), format!("{:.0}", summary.rate), ms(summary.p50), ms(summary.p99)]
}

/// Milliseconds with three decimals.
pub fn ms(time: Duration) -> String {
    format!("{:.3}", time.as_secs_f64() * 1e3)
}

/// Megabytes (10^6 bytes) with one decimal.
pub fn megabytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / 1e6)
}
