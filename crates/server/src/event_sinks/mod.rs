//! Where events go: `[events.sinks.<name>]` of our settings. Secrets and paths are looked up only
//! when a server starts, so settings can be read, shown and checked without them.

mod keys;
mod entry;

use crate::layer::{Layer, Place};
use crate::upstreams::Variables;
use crate::upstreams::text::Reading;
use crate::upstreams::written::{Table, Word};
use kernel::plan::mistake::Mistake;
use kernel::rules::Pattern;
use keys::Keys;
use sinks::config::{SinkConfig, SinkKind};
use std::collections::BTreeMap;
use std::path::Path;
use toml::de::DeTable;

pub use entry::SinkEntry;

const EVENTS: &str = "events";
const SINKS: &str = "sinks";
const PATH: &str = "events.sinks";

/// What layers say of sinks, still as it is written.
#[derive(Debug, Default)]
pub(crate) struct WrittenSinks {
    table: Table,
}

impl WrittenSinks {
    /// What a layer says, and the mistakes in it. Whether an entry is whole is known only with all
    /// layers.
    pub(crate) fn of(layer: &Layer, root: &DeTable<'_>, mistakes: &mut Vec<Mistake>) -> Self {
        let root = Table::of_toml(layer, root);
        let mut reading = Reading::new(mistakes);
        let events = root.get(EVENTS).and_then(|(_, value)| reading.table(EVENTS, value));
        let sinks = events.and_then(|events| events.get(SINKS));
        let table = sinks.and_then(|(_, value)| reading.table(PATH, value));
        let sinks = Self { table: table.cloned().unwrap_or_default() };
        sinks.keys(mistakes);
        sinks
    }

    /// Puts a later layer over these.
    pub(crate) fn put_over(&mut self, above: WrittenSinks) {
        self.table.put_over(above.table);
    }

    /// The entries that all layers make together.
    pub(crate) fn entries(&self) -> Result<Vec<SinkEntry>, Vec<Mistake>> {
        let mut mistakes = Vec::new();
        let mut entries = Vec::new();
        for (name, keys) in self.keys(&mut mistakes) {
            match SinkEntry::new(name, keys) {
                Ok(entry) => entries.push(entry),
                Err(mistake) => mistakes.push(mistake),
            }
        }
        entries.sort_by(|left, right| left.name.cmp(&right.name));
        if mistakes.is_empty() { Ok(entries) } else { Err(mistakes) }
    }

    fn keys(&self, mistakes: &mut Vec<Mistake>) -> Vec<(&Word, Keys)> {
        let mut all = Vec::new();
        for (word, value) in &self.table.0 {
            let path = format!("[{PATH}.{}]", word.text);
            let inner = Reading::new(mistakes).table(&path, value);
            if let Some(inner) = inner {
                all.push((word, Keys::read(inner, &path, mistakes)));
            }
        }
        all
    }
}

/// What is around the settings when sinks are opened.
pub struct Around<'a> {
    /// The data folder, where the paths of files begin.
    pub data: &'a Path,
    /// The project's folder.
    pub folder: &'a Path,
    /// The variables that paths, addresses and secrets may name.
    pub variables: &'a Variables<'a>,
}

/// One sink with everything looked up: what to open, and what goes there.
#[derive(Debug)]
pub struct Sending {
    /// What to open.
    pub config: SinkConfig,
    /// Where it leads, without secrets: a file, or an address without query and password.
    pub target: Option<String>,
    /// The types that go there; all where nothing is said.
    pub types: Option<Vec<Pattern>>,
    /// Whether it begins with all that is kept, and not with what happens from now on.
    pub from_start: bool,
    /// Where it is written.
    pub place: Place,
}

impl Sending {
    /// The word that the settings have for what it is.
    pub fn word(&self) -> &'static str {
        match self.config.kind {
            SinkKind::Stdout => "stdout",
            SinkKind::File { .. } => "file",
            SinkKind::Webhook { .. } => "webhook",
        }
    }
}

/// All sinks with everything looked up, by name, or all that is wrong.
pub fn sendings(entries: &[SinkEntry], around: &Around<'_>) -> Result<Vec<Sending>, Vec<Mistake>> {
    let (mut sendings, mut mistakes) = (Vec::new(), Vec::new());
    for entry in entries {
        match entry.sending(around) {
            Ok(sending) => sendings.push(sending),
            Err(mistake) => mistakes.push(mistake),
        }
    }
    mistakes.extend(shared_files(&sendings));
    if mistakes.is_empty() { Ok(sendings) } else { Err(mistakes) }
}

/// Sinks that would write into each other's lines.
fn shared_files(sendings: &[Sending]) -> Vec<Mistake> {
    let mut files: BTreeMap<&Path, &str> = BTreeMap::new();
    let mut mistakes = Vec::new();
    for sending in sendings {
        let SinkKind::File { path } = &sending.config.kind else { continue };
        let name = sending.config.name.as_str();
        if let Some(other) = files.insert(path, name) {
            let what = format!("`{name}` and `{other}` write to one file, `{}`", path.display());
            let mistake = Mistake::error(what).hint("give each of them a file of its own");
            mistakes.push(sending.place.mistake(mistake));
        }
    }
    mistakes
}

#[cfg(test)]
mod tests;
