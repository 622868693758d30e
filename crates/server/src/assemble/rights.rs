//! Who may do what, as a project's files say it: policies and principals. Each is taken when it
//! changes, as a whole or not at all, and whatever else is wrong with the project: a new `forbid`
//! waits neither for a plan nor for a restart.

use crate::assemble::policies::{PolicyContext, has_none, read_again};
use crate::assemble::reload::Outcome;
use edge::counters::FilesPart;
use engine::Engine;
use identity::Identity;
use kernel::definition::plan::mistake::Mistake;
use kernel::identity::principal::{PRINCIPALS_FILE, Principal};
use policy::CedarPolicy;
use policy::records::check_records;
use project::folder::{FilePrincipals, Project};
use project::policies::PolicyFiles;
use query::types::RealmTypes;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How many principals an entry of the audit names.
const NAMED_MAX: usize = 100;

/// Who may do what, as the files said it when they were taken.
#[derive(Debug, Default)]
pub(crate) struct Rights {
    /// The principals of the file, where there is one.
    principals: Option<Vec<Arc<Principal>>>,
    policies: Option<PolicyFiles>,
    /// The built-in tools and the types, which policies must fit.
    fits: PolicyContext,
}

impl Rights {
    /// As this project says it.
    pub(crate) fn of(project: &Project) -> Self {
        let principals = project.principals.clone();
        let policies = project.policies.clone();
        let types = project.types().map(|(types, _)| types.known()).ok();
        let fits = PolicyContext { built_in: project.built_in(), types };
        Self { principals, policies, fits }
    }
}

/// What the files say now, each as far as it can be read.
pub(crate) struct RightsRead {
    pub(crate) policies: Result<Option<PolicyFiles>, Vec<Mistake>>,
    pub(crate) principals: Result<FilePrincipals, Vec<Mistake>>,
}

/// Takes what changed into a server that runs.
pub(crate) struct RightsReload {
    engine: Engine,
    identity: Arc<Identity>,
    /// Who decides by the policies of files.
    policies: Option<Arc<CedarPolicy>>,
    taken: Rights,
    /// What was taken and is not in the audit yet.
    changes: Vec<(&'static str, Value)>,
}

impl RightsReload {
    /// For an engine in which these count, with who decides by the policies of files.
    pub(crate) fn new(
        engine: Engine,
        identity: Arc<Identity>,
        policies: Option<Arc<CedarPolicy>>,
        taken: Rights,
    ) -> Self {
        Self { engine, identity, policies, taken, changes: Vec::new() }
    }

    /// Lets these count from now on, as far as they are right.
    pub(crate) fn take(&mut self, read: RightsRead) -> Outcome {
        let RightsRead { policies, principals } = read;
        let mut outcome = Outcome::default();
        let policies = policies.and_then(|files| self.take_policies(files));
        outcome.add(FilesPart::Policies, policies);
        let principals = principals.and_then(|found| self.take_principals(found));
        outcome.add(FilesPart::Principals, principals);
        outcome
    }

    /// Policies must fit these types from now on.
    pub(crate) fn know(&mut self, types: RealmTypes) {
        self.taken.fits.types = Some(types);
    }

    /// What is wrong with the policies in force beside these types.
    pub(crate) fn misfits(&self, types: &RealmTypes) -> Vec<Mistake> {
        let Some(served) = &self.policies else { return Vec::new() };
        let mut found = check_records(&served.policies(), types);
        found.retain(Mistake::is_error);
        found
    }

    /// Writes to the audit who may do what since something was taken.
    pub(crate) async fn record(&mut self) {
        for (act, detail) in std::mem::take(&mut self.changes) {
            if let Err(refusal) = self.engine.audits().note_own(act, detail).await {
                tracing::warn!(error = %refusal.message, "a reload is missing in the audit");
            }
        }
    }

    fn take_policies(&mut self, now: Option<PolicyFiles>) -> Result<Outcome, Vec<Mistake>> {
        let before = self.taken.policies.as_ref();
        let (policies, warnings) = read_again(before, now.as_ref(), &self.taken.fits)?;
        let mut outcome = Outcome { warnings, ..Outcome::default() };
        if let (Some(policies), Some(served)) = (policies, &self.policies) {
            outcome.taken = true;
            outcome.changed = differing_files(before, now.as_ref());
            served.replace(policies);
            let version = served.policies().version().clone();
            self.changes.push(("policies.reload", json!({ "version": version })));
        }
        // Where their folder is gone or empty, what it held stays.
        let kept = self.taken.policies.take();
        let is_left = |now: &PolicyFiles| !has_none(now) || kept.as_ref().is_none_or(has_none);
        self.taken.policies = now.filter(is_left).or(kept);
        Ok(outcome)
    }

    fn take_principals(&mut self, found: FilePrincipals) -> Result<Outcome, Vec<Mistake>> {
        let (now, warnings) = found;
        if now == self.taken.principals {
            return Ok(Outcome::default());
        }
        let wrong = self.wrong_principals(now.as_deref());
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let changed = differing(self.taken.principals.as_deref(), now.as_deref());
        self.changes.push(("principals.reload", json!({ "changed": changed })));
        self.identity.take_principals(now.clone().unwrap_or_default());
        self.taken.principals = now;
        let changed = vec![PRINCIPALS_FILE.to_owned()];
        Ok(Outcome { taken: true, changed, warnings, ..Outcome::default() })
    }

    /// What keeps these principals from being taken. A file that is gone would lock everyone out
    /// whom it named, so it counts as a mistake and not as an empty one.
    fn wrong_principals(&self, now: Option<&[Arc<Principal>]>) -> Vec<Mistake> {
        match now {
            Some(principals) => self.identity.check_principals(principals),
            None => {
                let what = "the file is gone; the principals that it had are kept";
                let hint = "put it back, or write `principals: {}` if there are none any more";
                let file = Some(PRINCIPALS_FILE.to_owned());
                vec![Mistake { file, ..Mistake::error(what).hint(hint) }]
            }
        }
    }
}

/// The files of policies that say something else than they did.
fn differing_files(before: Option<&PolicyFiles>, now: Option<&PolicyFiles>) -> Vec<String> {
    let texts = |files: Option<&PolicyFiles>| -> BTreeMap<String, String> {
        let texts = files.into_iter().flat_map(PolicyFiles::texts);
        texts.map(|(file, text)| (file.to_owned(), text.to_owned())).collect()
    };
    let before = texts(before);
    let now = texts(now);
    let all: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    all.into_iter().filter(|file| before.get(*file) != now.get(*file)).cloned().collect()
}

/// The ids of the principals that are not the same in both, as many as an entry names.
fn differing<'p>(
    before: Option<&'p [Arc<Principal>]>,
    now: Option<&'p [Arc<Principal>]>,
) -> Vec<&'p str> {
    let by_id = |all: Option<&'p [Arc<Principal>]>| -> BTreeMap<&'p str, &'p Arc<Principal>> {
        all.into_iter().flatten().map(|principal| (&*principal.id, principal)).collect()
    };
    let before = by_id(before);
    let now = by_id(now);
    let ids: BTreeSet<&str> = before.keys().chain(now.keys()).copied().collect();
    let changed = ids.into_iter().filter(|id| before.get(id) != now.get(id));
    changed.take(NAMED_MAX).collect()
}
