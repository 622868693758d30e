//! Lists of what the official MCP suite is expected to find wrong, each with its reason. What is
//! listed must fail, and nothing else may.

use std::fs;
use std::path::Path;

use crate::shell::Failure;

/// One line of such a list: `  - scenario:check  # reason`.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry {
    /// The scenario, or one check of it.
    pub what: String,
    /// Why it fails.
    pub reason: String,
}

impl Entry {
    /// Whether it is about this scenario, or about a check of it.
    pub fn is_about(&self, scenario: &str) -> bool {
        self.what.split(':').next() == Some(scenario)
    }
}

/// Reads a list. One that does not say why is not in order.
pub fn read(path: &Path) -> Result<Vec<Entry>, Failure> {
    let shown = path.display();
    let text = fs::read_to_string(path).map_err(|error| {
        Failure::new(format!("cannot read `{shown}`: {error}; is the tree whole?"))
    })?;
    let entries = entries(&text);
    match entries.iter().find(|entry| entry.reason.is_empty()) {
        Some(Entry { what, .. }) => {
            Err(Failure::new(format!("`{what}` in `{shown}` has no reason; write one behind `#`")))
        }
        None => Ok(entries),
    }
}

/// Whether something failed that is not expected to, and all of it is among `these`.
pub fn is_only<'a>(
    these: &[&str],
    expected: &[Entry],
    failed: impl Iterator<Item = &'a str>,
) -> bool {
    let is_expected = |name: &str| expected.iter().any(|entry| entry.is_about(name));
    let mut failed = failed.filter(|name| !is_expected(name)).peekable();
    failed.peek().is_some() && failed.all(|name| these.contains(&name))
}

fn entries(text: &str) -> Vec<Entry> {
    let items = text.lines().filter_map(|line| line.trim_start().strip_prefix("- "));
    let entry = |item: &str| {
        let (what, reason) = item.split_once(" #").unwrap_or((item, ""));
        Entry { what: what.trim().to_owned(), reason: reason.trim().to_owned() }
    };
    items.map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_baseline_is_a_list_with_reasons() {
        let text = "# Head.\nserver:\n  - a-b:c-1  # one at a time\n  - plain\n";
        let entry =
            |what: &str, reason: &str| Entry { what: what.to_owned(), reason: reason.to_owned() };
        assert_eq!(entries(text), [entry("a-b:c-1", "one at a time"), entry("plain", "")]);
        assert!(entries("server: []\n").is_empty());
        assert!(entry("a-b:c-1", "x").is_about("a-b"));
        assert!(!entry("a-b", "x").is_about("a"));
    }

    #[test]
    fn a_list_that_is_not_there_is_named() {
        let message = read(Path::new("no/such.yml")).err().map(|failure| failure.to_string());
        assert!(message.is_some_and(|message| message.contains("`no/such.yml`")));
    }
}
