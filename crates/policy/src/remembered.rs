//! Verdicts that were found once and still hold. They belong to one snapshot and end with it.

use crate::schema::{Kind, identity};
use kernel::contracts::policy::{Decision, Request, Resource, SessionFacts, Trigger};
use kernel::values::caller::{Act, Caller};
use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

/// How many are remembered. Then all are forgotten: a few microseconds each bring them back.
const DECISIONS_MAX: usize = 20_000;

/// Decisions by their questions.
#[derive(Debug, Default)]
pub(crate) struct Remembered(RwLock<HashMap<Key, Decision>>);

/// Everything that a question without arguments consists of.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    caller: Caller,
    act: Act,
    is_of_run: bool,
    kind: Kind,
    name: String,
    /// What policies know of the resource beside its name.
    facts: Vec<Option<String>>,
}

impl Key {
    pub(crate) fn new(request: &Request<'_>) -> Self {
        let (kind, name) = identity(&request.resource);
        Self {
            caller: request.subject.clone(),
            act: request.act,
            is_of_run: request.context.trigger == Trigger::Run,
            kind,
            name: name.into_owned(),
            facts: facts(&request.resource),
        }
    }
}

impl Remembered {
    pub(crate) fn get(&self, key: &Key) -> Option<Decision> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    pub(crate) fn insert(&self, key: Key, decision: Decision) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= DECISIONS_MAX {
            known.clear();
        }
        known.insert(key, decision);
    }
}

fn facts(resource: &Resource<'_>) -> Vec<Option<String>> {
    let of_session = |facts: &SessionFacts<'_>| {
        let SessionFacts { owner, space, plan, agent, pipeline, .. } = *facts;
        [owner, Some(space), plan, agent, pipeline].map(|fact| fact.map(str::to_owned))
    };
    match resource {
        // The tool of a name can change while it keeps its name.
        Resource::Tool(spec) => {
            let what = format!("{:?} {}", spec.reach, spec.idempotent);
            std::iter::once(what).chain(spec.tags.iter().cloned()).map(Some).collect()
        }
        Resource::InlinePlan => vec![None],
        Resource::Session(facts) => of_session(facts).to_vec(),
        Resource::Ask { kind, session } => {
            let mut known = of_session(session).to_vec();
            known.push(Some((*kind).to_owned()));
            known
        }
        _ => Vec::new(),
    }
}
