//! Files that are read again together: when that is due, and what is said of what became of them.

use super::snapshot::FileSnapshot;
use crate::assemble::reload::Outcome;
use edge::counters::{FilesPart, Reloads};
use kernel::definition::plan::mistake::Mistake;
use std::collections::BTreeMap;

/// What is wrong is checked again after so many polls: it may be mended where nothing is polled,
/// such as at another server whose tools are wanted.
const RETRY_POLLS: u32 = 8;
/// So many files are named in a log line.
pub(super) const NAMES_MAX: usize = 8;

/// Why files are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReloadReason {
    /// They are not those that were read last.
    Changed,
    /// They are, and something was wrong with them.
    Again,
}

/// Files that are read again together.
#[derive(Debug, Default)]
pub(super) struct FileGroup {
    /// What the last poll saw.
    last: FileSnapshot,
    /// What was there when it was read last; nothing before the first time.
    tried: Option<FileSnapshot>,
    /// What is wrong with what was read last, as it was reported.
    wrong: BTreeMap<FilesPart, Vec<String>>,
    /// Polls since then.
    polls: u32,
}

impl FileGroup {
    /// Whether files that look so now are to be read, and why. Those that still change are not.
    pub(super) fn due(&mut self, now: FileSnapshot) -> Option<ReloadReason> {
        let is_quiet = self.last.same(&now);
        let is_known = self.tried.as_ref().is_some_and(|tried| tried.same(&now));
        self.last = now;
        self.polls += 1;
        let is_due_again = !self.wrong.is_empty() && self.polls >= RETRY_POLLS;
        if !is_quiet || (is_known && !is_due_again) {
            return None;
        }
        self.tried = Some(self.last.clone());
        self.polls = 0;
        Some(if is_known { ReloadReason::Again } else { ReloadReason::Changed })
    }

    /// Logs and counts what became of them. What was said already is not said again.
    pub(super) fn tell(&mut self, outcome: Outcome, due: ReloadReason, reloads: &Reloads) {
        let Outcome { taken, changed, warnings, refused } = outcome;
        if taken || due == ReloadReason::Changed {
            warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
        }
        if taken {
            reloads.take();
            tracing::info!("reloaded: {}", listed(&changed));
        } else if refused.is_empty() && !self.wrong.is_empty() {
            tracing::info!("mended: the files say again what is served");
        }
        let before = std::mem::take(&mut self.wrong);
        for (portion, mistakes) in refused {
            let errors = mistakes.iter().filter(|mistake| mistake.is_error());
            let wrong: Vec<String> = errors.map(Mistake::to_string).collect();
            let is_known = due == ReloadReason::Again && before.get(&portion) == Some(&wrong);
            if !is_known {
                reloads.refuse();
                for mistake in &wrong {
                    tracing::error!("{mistake}");
                }
                tracing::error!("{}", kept(&portion));
            }
            self.wrong.insert(portion, wrong);
        }
    }

    pub(super) fn wrong(&self) -> impl Iterator<Item = &FilesPart> {
        self.wrong.keys()
    }
}

/// What stays where this portion is wrong.
fn kept(portion: &FilesPart) -> String {
    match portion {
        FilesPart::Policies => "not reloaded: the policies that were in force stay".to_owned(),
        FilesPart::Principals => "not reloaded: the principals that were known stay".to_owned(),
        FilesPart::Files => "not reloaded: what was served before stays".to_owned(),
        FilesPart::Types => "not reloaded: the types that were served before stay".to_owned(),
        FilesPart::Realm(realm) => {
            format!("not reloaded in the realm `{realm}`: what was served there before stays")
        }
    }
}

/// The names of files for one line.
pub(super) fn listed(names: &[String]) -> String {
    match names.len() {
        0 => "the project's files".to_owned(),
        count if count > NAMES_MAX => {
            format!("{} and {} more", names[..NAMES_MAX].join(", "), count - NAMES_MAX)
        }
        _ => names.join(", "),
    }
}
