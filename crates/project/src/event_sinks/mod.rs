//! `[events.sinks.<name>]`: destinations of events. Secrets and paths are expanded only when a
//! server starts, so settings can be read, shown and checked without them.

mod keys;
mod entry;

use crate::layer::Location;
use crate::realm::default_realm;
use crate::upstream_entries::Variables;
use kernel::definition::plan::mistake::Mistake;
use kernel::identity::grants::RealmPattern;
use kernel::tool::rules::Pattern;
use kernel::values::ids::RealmId;
use sinks::config::{SinkConfig, SinkKind};
use std::collections::BTreeMap;
use std::path::Path;

pub use entry::SinkEntry;
pub use keys::SinkKeys;

/// What is around the settings when sinks are opened.
pub struct SinkContext<'a> {
    /// The data folder, where the paths of files begin.
    pub data: &'a Path,
    /// The project's folder.
    pub folder: &'a Path,
    /// The variables that paths, addresses and secrets may name.
    pub variables: &'a Variables<'a>,
}

/// One sink with everything looked up: what to open, and what goes there.
#[derive(Debug)]
pub struct ResolvedSink {
    /// What to open.
    pub config: SinkConfig,
    /// Where it leads, without secrets: a file, or an address without query and password.
    pub target: Option<String>,
    /// The types that go there; all where nothing is said.
    pub types: Option<Vec<Pattern>>,
    /// Whether it begins with all that is kept, and not with what happens from now on.
    pub from_start: bool,
    /// Whose events go there, where that is not the realm that every server has.
    pub realms: Option<Vec<RealmPattern>>,
    /// Where it is written.
    pub place: Location,
}

impl ResolvedSink {
    /// Whether it gets the events of a realm.
    pub fn is_for(&self, realm: &RealmId) -> bool {
        match &self.realms {
            Some(realms) => realms.iter().any(|pattern| pattern.fits(realm)),
            None => *realm == default_realm(),
        }
    }

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
pub fn sendings(
    entries: &[SinkEntry],
    around: &SinkContext<'_>,
) -> Result<Vec<ResolvedSink>, Vec<Mistake>> {
    let mut mistakes = Vec::new();
    let sending = |entry: &SinkEntry| entry.sending(around).map_err(|why| mistakes.push(why)).ok();
    let sendings: Vec<ResolvedSink> = entries.iter().filter_map(sending).collect();
    mistakes.extend(shared_files(&sendings));
    if mistakes.is_empty() { Ok(sendings) } else { Err(mistakes) }
}

/// Sinks that would write into each other's lines.
fn shared_files(sendings: &[ResolvedSink]) -> Vec<Mistake> {
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
