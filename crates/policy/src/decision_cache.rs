//! Decision cache, valid for one policy snapshot.

use crate::decide::PartialDecision;
use crate::schema::{Kind, identity};
use kernel::contracts::policy::{Decision, Request, Resource, SessionFacts, Trigger};
use kernel::tool::call::{Reach, ToolSpec};
use kernel::values::caller::{Act, Caller, Via};
use quick_cache::sync::Cache;
use std::sync::Arc;

/// How many decisions are kept. To make one again takes a few microseconds.
const DECISIONS_MAX: usize = 20_000;

/// Decisions by what they follow from.
pub(crate) struct DecisionCache(Cache<Key, CachedDecision>);

#[derive(Clone)]
pub(crate) enum CachedDecision {
    /// The decision, where neither arguments nor time change it.
    Settled(Decision),
    /// The part of it that they do not change.
    Open(Arc<PartialDecision>),
}

/// Everything that a decision follows from, beside the snapshot, arguments and time.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    caller: Caller,
    act: Act,
    trigger: Trigger,
    kind: Kind,
    name: String,
    facts: Facts,
}

/// Attributes of a resource beside kind and name. A tool or a session can change while it keeps
/// both.
#[derive(PartialEq, Eq, Hash)]
enum Facts {
    None,
    Tool { reach: Reach, idempotent: bool, tags: Vec<String> },
    InlinePlan,
    Session(Session),
    Ask { kind: String, session: Session },
    Definition { defined_by: Option<String> },
}

#[derive(PartialEq, Eq, Hash)]
struct Session {
    owner: Option<String>,
    space: String,
    plan: Option<String>,
    agent: Option<String>,
    pipeline: Option<String>,
}

impl Default for DecisionCache {
    fn default() -> Self {
        Self(Cache::new(DECISIONS_MAX))
    }
}

impl DecisionCache {
    pub(crate) fn get(&self, request: &Request<'_>) -> Option<CachedDecision> {
        self.0.get(&Key::of(request))
    }

    pub(crate) fn insert(&self, request: &Request<'_>, cached: CachedDecision) {
        self.0.insert(Key::of(request), cached);
    }
}

impl Key {
    fn of(request: &Request<'_>) -> Self {
        let (kind, name) = identity(&request.resource);
        Self {
            // Nothing is decided by where a request came in: the cache need not keep its headers.
            caller: Caller { via: Via::default(), ..request.subject.clone() },
            act: request.act,
            trigger: request.context.trigger,
            kind,
            name: name.into_owned(),
            facts: Facts::of(&request.resource),
        }
    }
}

impl Facts {
    fn of(resource: &Resource<'_>) -> Self {
        match *resource {
            Resource::Tool(ToolSpec { reach, idempotent, tags, .. }) => {
                Self::Tool { reach: *reach, idempotent: *idempotent, tags: tags.clone() }
            }
            Resource::InlinePlan => Self::InlinePlan,
            Resource::Session(facts) => Self::Session(Session::of(facts)),
            Resource::Ask { kind, session } => {
                Self::Ask { kind: kind.to_owned(), session: Session::of(session) }
            }
            Resource::Definition { defined_by, .. } => {
                Self::Definition { defined_by: defined_by.map(str::to_owned) }
            }
            Resource::Plan(_)
            | Resource::Agent(_)
            | Resource::Pipeline(_)
            | Resource::Blob(_)
            | Resource::RecordType(_)
            | Resource::Upstream(_)
            | Resource::Sink(_)
            | Resource::Principal(_)
            | Resource::Server => Self::None,
        }
    }
}

impl Session {
    fn of(facts: SessionFacts<'_>) -> Self {
        // Policies do not know the id.
        let SessionFacts { owner, space, plan, agent, pipeline, id: _ } = facts;
        Self {
            owner: owner.map(str::to_owned),
            space: space.to_owned(),
            plan: plan.map(str::to_owned),
            agent: agent.map(str::to_owned),
            pipeline: pipeline.map(str::to_owned),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::contracts::policy::Context;

    #[test]
    fn the_decision_cache_is_bounded() {
        let cache = DecisionCache::default();
        let ann = Caller::new("r", "ann");
        for number in 0..DECISIONS_MAX + 5_000 {
            let name = number.to_string();
            let request = Request {
                act: Act::Run,
                subject: &ann,
                resource: Resource::Plan(&name),
                context: Context::default(),
            };
            cache.insert(&request, CachedDecision::Settled(Decision::allow()));
        }
        // Each shard rounds its part of the limit up.
        assert!(cache.0.len() < DECISIONS_MAX + cache.0.num_shards());
    }
}
