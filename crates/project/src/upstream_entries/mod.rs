//! The upstreams of a project: MCP, REST and RPC servers and agents, whose tools become ours. They
//! are written in `.mcp.json`, as every client writes it, and in `waypost.toml`; this folder reads
//! both, says what is wrong where, and looks variables up only when a server starts. Which keys
//! there are is one table in `keys`, and what is done with each kind of upstream is in `kinds`.

pub mod expand;
mod oauth;
mod auth;
mod keys;
pub mod sendable;
mod rest;
mod a2a;
mod kinds;
mod entry;
mod show;
mod server_map;
pub mod stored;
mod client_keys;
pub mod client_files;
mod conversion;
mod ourselves;

use crate::layer::Location;
use expand::ExpandContext;
use kernel::definition::plan::mistake::{Mistake, meant};
use kernel::values::ids::RealmId;
use std::path::{Path, PathBuf};
use upstreams::UpstreamConfig;

pub use conversion::{ConvertedEntry, NewAgent, agent_table, converted};
pub use entry::Entry;
pub use expand::Variables;
pub use keys::{AgentKeys, KeyTable, ProviderKeys, ServerKeys};
pub use ourselves::{Ourselves, is_loopback};
pub use sendable::shown_url;
pub use server_map::{ServerMap, server_map};
pub use show::cleaned;
pub use show::shown;

/// A variable that names one upstream by its URL alone.
pub const ASSISTANT_URL: &str = "ASSISTANT_MCP_URL";
const ASSISTANT: &str = "assistant";

/// Entries by who wrote them.
#[derive(Debug, Clone, Copy, Default)]
pub struct WrittenEntries<'a> {
    /// Those of our settings.
    pub ours: &'a [Entry],
    /// Those of a client's file.
    pub theirs: &'a [Entry],
}

/// All upstreams of a project, by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Upstreams {
    folder: PathBuf,
    entries: Vec<Entry>,
}

impl Upstreams {
    /// What our settings, a client's file and the environment say together. A name is one
    /// upstream's; only an entry of ours without `command` and `url` may be there twice, and adds
    /// its keys to the other.
    pub fn combine(
        folder: &Path,
        WrittenEntries { ours, theirs }: WrittenEntries<'_>,
        variables: &Variables<'_>,
    ) -> Result<Self, Vec<Mistake>> {
        let mut entries: Vec<Entry> = theirs.to_vec();
        let url = variables(ASSISTANT_URL).filter(|url| !url.trim().is_empty());
        entries.extend(url.map(|url| assistant(url.trim())));
        // What is written in a file is not mapped over.
        let is_written = |name: &str| ours.iter().chain(theirs).any(|entry| entry.name == name);
        let mapped = server_map(variables).unwrap_or_default().entries;
        entries.extend(mapped.into_iter().filter(|entry| !is_written(&entry.name)));
        entries.extend(ours.iter().filter(|entry| entry.kind.is_some()).cloned());
        let mut mistakes = twice(&entries);
        for addition in ours.iter().filter(|entry| entry.kind.is_none()) {
            match entries.iter_mut().find(|entry| entry.name == addition.name) {
                Some(entry) => {
                    let below = std::mem::take(&mut entry.keys);
                    entry.keys = addition.keys.clone().over(below);
                }
                None => mistakes.push(nowhere(addition, &entries)),
            }
        }
        mistakes.extend(entries.iter().filter_map(Entry::misnamed));
        mistakes.extend(same_prefix(&entries));
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        entries.sort_by(|left, right| left.name.cmp(&right.name));
        Ok(Self { folder: absolute(folder), entries })
    }

    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// What stands before the names of the tools that are still to come.
    pub fn prefixes(&self) -> Vec<String> {
        self.active().map(Entry::prefix).collect()
    }

    /// The same of those that are there for a realm.
    pub fn prefixes_for(&self, realm: &RealmId) -> Vec<String> {
        self.active().filter(|entry| entry.is_for(realm)).map(Entry::prefix).collect()
    }

    /// What to connect to, with everything looked up, or all that is wrong.
    pub fn configs(&self, variables: &Variables<'_>) -> Result<Vec<UpstreamConfig>, Vec<Mistake>> {
        let around = ExpandContext { folder: &self.folder, variables };
        let mut mistakes = Vec::new();
        let config = |entry: &Entry| entry.config(&around).map_err(|why| mistakes.push(why)).ok();
        let configs: Vec<UpstreamConfig> = self.active().filter_map(config).collect();
        if mistakes.is_empty() { Ok(configs) } else { Err(mistakes) }
    }

    /// One of them by its name, also where it is left alone.
    pub fn config(
        &self,
        name: &str,
        variables: &Variables<'_>,
    ) -> Option<Result<UpstreamConfig, Mistake>> {
        let around = ExpandContext { folder: &self.folder, variables };
        self.entries.iter().find(|entry| entry.name == name).map(|entry| entry.config(&around))
    }

    /// Without those that lead back to us; their names.
    pub fn leave_out(&mut self, is_ours: impl Fn(&str) -> bool) -> Vec<String> {
        let left_out = self.entries.extract_if(.., |entry| is_ours(&entry.name));
        left_out.map(|entry| entry.name).collect()
    }

    fn active(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| !entry.is_disabled())
    }
}

/// What to connect to for an entry that stands in no file. It has no folder either: the caller who
/// stored it does not learn where we are.
pub fn config_of(entry: &Entry, variables: &Variables<'_>) -> Result<UpstreamConfig, Mistake> {
    match entry.misnamed() {
        Some(mistake) => Err(mistake),
        None => entry.config(&ExpandContext { folder: Path::new(""), variables }),
    }
}

/// The folder as one that does not depend on where we are.
pub fn absolute(folder: &Path) -> PathBuf {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf())
}

fn assistant(url: &str) -> Entry {
    let place = Location::whole(&format!("environment {ASSISTANT_URL}"));
    Entry::of_url(ASSISTANT, url, &[], &place).prefixed("")
}

/// Names that several entries have.
fn twice(entries: &[Entry]) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let Some(first) = entries[..index].iter().find(|other| other.name == entry.name) else {
            continue;
        };
        let what = format!("upstream `{}` is in {} already", entry.name, first.place);
        let hint = "give one of them another name; `[mcp.servers.<name>]` without `command` and \
                    `url` adds its keys to the other";
        mistakes.push(entry.place.mistake(Mistake::error(what).hint(hint)));
    }
    mistakes
}

/// Two upstreams may both have no prefix: then their tools are distinguished one by one.
fn same_prefix(entries: &[Entry]) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let prefix = entry.prefix();
        let is_same = |other: &&Entry| other.name != entry.name && other.prefix() == prefix;
        let Some(first) = entries[..index].iter().find(is_same) else { continue };
        if !prefix.is_empty() {
            let what = format!(
                "the tools of `{}` begin with `{prefix}`, as those of `{}` ({})",
                entry.name, first.name, first.place
            );
            let hint = "give one of them another `prefix`";
            mistakes.push(entry.place.mistake(Mistake::error(what).hint(hint)));
        }
    }
    mistakes
}

/// An addition to nothing.
fn nowhere(addition: &Entry, entries: &[Entry]) -> Mistake {
    let what = format!(
        "`{}` has neither `command` nor `url`, and no other file has an upstream of that name",
        addition.name
    );
    let hint = meant(&addition.name, entries.iter().map(|entry| entry.name.as_str()))
        .unwrap_or_else(|| "add one of both, or an entry of that name to `.mcp.json`".to_owned());
    addition.place.mistake(Mistake::error(what).hint(hint))
}

#[cfg(test)]
mod tests;
