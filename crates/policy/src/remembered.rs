//! What was decided once and still holds. It belongs to one snapshot and ends with it. A question
//! is looked up without a copy of it: most of them have been asked before.

use crate::decide::{Prepared, Seen};
use crate::fit::Fitted;
use crate::schema::{Kind, identity};
use ahash::RandomState;
use kernel::contracts::policy::{Decision, Request, Resource, SessionFacts, Trigger};
use kernel::tool::call::{Reach, ToolSpec};
use kernel::values::caller::{Act, Caller, Via};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, PoisonError, RwLock};

/// How many are remembered. Then all are forgotten: a few microseconds each bring them back.
const DECISIONS_MAX: usize = 20_000;
/// The same for calls whose arguments are read.
const CALLS_MAX: usize = 4_096;
/// How large the arguments of such a call may be that are read, and what a value counts beside its
/// text.
const VALUES_BYTES_MAX: usize = 512;
const VALUE_BYTES: usize = 16;

/// Answers by their questions.
#[derive(Default)]
pub(crate) struct Remembered {
    hasher: RandomState,
    known: RwLock<Known>,
    /// Calls whose arguments are read, by the hash of all that they are.
    calls: RwLock<HashMap<u64, Call, RandomState>>,
}

/// What was said of a call with some arguments. It is kept with all that it follows from: the hash
/// alone proves nothing.
struct Call {
    prepared: Arc<Prepared>,
    fitted: Arc<Fitted>,
    values: Option<Vec<Option<Value>>>,
    decision: Decision,
}

/// Those that are known, by the hash of the question.
#[derive(Default)]
struct Known {
    answers: HashMap<u64, Vec<(Key, Kept)>, RandomState>,
    count: usize,
}

/// What is known of a question.
pub(crate) enum Kept {
    /// The answer.
    Settled(Decision),
    /// What does not change of it.
    Open(Arc<Prepared>),
}

/// The same as it is found, with what was wanted of the answer.
pub(crate) enum Recalled<T> {
    /// The answer.
    Settled(T),
    /// What does not change of it.
    Open(Arc<Prepared>),
}

/// Everything that a question without arguments consists of.
struct Asked<'r> {
    caller: &'r Caller,
    act: Act,
    is_of_run: bool,
    kind: Kind,
    name: Cow<'r, str>,
    /// Policies know some facts of it beside its name.
    resource: Resource<'r>,
}

/// The same to be kept.
struct Key {
    caller: Caller,
    act: Act,
    is_of_run: bool,
    kind: Kind,
    name: String,
    facts: Facts,
}

/// What policies know of a resource beside its name.
enum Facts {
    /// The tool of a name can change while it keeps its name.
    Tool {
        reach: Reach,
        is_idempotent: bool,
        tags: Vec<String>,
    },
    Other(Vec<Option<String>>),
}

impl Remembered {
    /// What is known of a question, and of its answer what is taken of it: an answer as a whole is
    /// several texts and lists.
    pub(crate) fn get<T>(
        &self,
        request: &Request<'_>,
        take: impl FnOnce(&Decision) -> T,
    ) -> Option<Recalled<T>> {
        let asked = Asked::of(request);
        let hash = self.hasher.hash_one(&asked);
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let answers = known.answers.get(&hash)?;
        let (_, kept) = answers.iter().find(|(key, _)| asked.is(key))?;
        Some(match kept {
            Kept::Settled(decision) => Recalled::Settled(take(decision)),
            Kept::Open(prepared) => Recalled::Open(prepared.clone()),
        })
    }

    pub(crate) fn insert(&self, request: &Request<'_>, kept: Kept) {
        let asked = Asked::of(request);
        let hash = self.hasher.hash_one(&asked);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.count >= DECISIONS_MAX {
            *known = Known::default();
        }
        let answers = known.answers.entry(hash).or_default();
        // Another thread may have been faster, with the same answer.
        if !answers.iter().any(|(key, _)| asked.is(key)) {
            answers.push((asked.kept(), kept));
            known.count += 1;
        }
    }

    /// What is taken of what was said of a call with these arguments.
    pub(crate) fn call<T>(
        &self,
        prepared: &Arc<Prepared>,
        seen: &Seen<'_>,
        take: impl FnOnce(&Decision) -> T,
    ) -> Option<T> {
        let hash = self.hash_of_call(prepared, seen);
        let calls = self.calls.read().unwrap_or_else(PoisonError::into_inner);
        let call = calls.get(&hash)?;
        call.is(prepared, seen).then(|| take(&call.decision))
    }

    /// Remembers that.
    pub(crate) fn insert_call(
        &self,
        prepared: &Arc<Prepared>,
        seen: &Seen<'_>,
        decision: &Decision,
    ) {
        let values = seen.values.as_ref().map(|values| values.iter().map(|one| one.cloned()));
        let call = Call {
            prepared: prepared.clone(),
            fitted: seen.fitted.clone(),
            values: values.map(Iterator::collect),
            decision: decision.clone(),
        };
        let hash = self.hash_of_call(prepared, seen);
        let mut calls = self.calls.write().unwrap_or_else(PoisonError::into_inner);
        if calls.len() >= CALLS_MAX {
            calls.clear();
        }
        calls.insert(hash, call);
    }

    fn hash_of_call(&self, prepared: &Arc<Prepared>, seen: &Seen<'_>) -> u64 {
        let (prepared, fitted) = (Arc::as_ptr(prepared), Arc::as_ptr(&seen.fitted));
        self.hasher.hash_one((prepared, fitted, &seen.values))
    }
}

impl Call {
    /// Whether it is this one. What it follows from lives as long as it, so that nothing else can
    /// be in its place.
    fn is(&self, prepared: &Arc<Prepared>, seen: &Seen<'_>) -> bool {
        let same_values = match (&self.values, &seen.values) {
            (Some(kept), Some(values)) => {
                kept.iter().map(Option::as_ref).eq(values.iter().copied())
            }
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        same_values
            && Arc::ptr_eq(&self.prepared, prepared)
            && Arc::ptr_eq(&self.fitted, &seen.fitted)
    }
}

impl Seen<'_> {
    /// Whether so little is read of the arguments that it is remembered. Others are not even
    /// hashed.
    pub(crate) fn is_short(&self) -> bool {
        let mut values = self.values.iter().flatten().flatten();
        values.try_fold(VALUES_BYTES_MAX, |left, value| left_beside(value, left)).is_some()
    }
}

/// How many of so many bytes are left beside a value; none where it is larger.
fn left_beside(value: &Value, left: usize) -> Option<usize> {
    let left = left.checked_sub(VALUE_BYTES)?;
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => Some(left),
        Value::String(text) => left.checked_sub(text.len()),
        Value::Array(items) => items.iter().try_fold(left, |left, item| left_beside(item, left)),
        Value::Object(fields) => fields.iter().try_fold(left, |left, (name, field)| {
            left_beside(field, left.checked_sub(name.len())?)
        }),
    }
}

impl<'r> Asked<'r> {
    fn of(request: &Request<'r>) -> Self {
        let (kind, name) = identity(&request.resource);
        Self {
            caller: request.subject,
            act: request.act,
            is_of_run: request.context.trigger == Trigger::Run,
            kind,
            name,
            resource: request.resource,
        }
    }

    fn is(&self, key: &Key) -> bool {
        let Self { caller, act, is_of_run, kind, name, .. } = self;
        *act == key.act
            && *is_of_run == key.is_of_run
            && *kind == key.kind
            && **name == *key.name
            && **caller == key.caller
            && key.facts.are_of(&self.resource)
    }

    fn kept(self) -> Key {
        let Self { caller, act, is_of_run, kind, name, resource } = self;
        Key {
            // Where the first one came in is nothing that is decided by.
            caller: Caller { via: Via::default(), ..caller.clone() },
            act,
            is_of_run,
            kind,
            name: name.into_owned(),
            facts: Facts::of(&resource),
        }
    }
}

impl Facts {
    fn of(resource: &Resource<'_>) -> Self {
        if let Resource::Tool(ToolSpec { reach, idempotent, tags, .. }) = *resource {
            return Self::Tool { reach: *reach, is_idempotent: *idempotent, tags: tags.clone() };
        }
        let mut facts = Vec::new();
        each_fact(resource, |fact| facts.push(fact.map(str::to_owned)));
        Self::Other(facts)
    }

    fn are_of(&self, resource: &Resource<'_>) -> bool {
        match (self, resource) {
            (Self::Tool { reach, is_idempotent, tags }, Resource::Tool(spec)) => {
                *reach == spec.reach && *is_idempotent == spec.idempotent && *tags == spec.tags
            }
            (Self::Tool { .. }, _) | (Self::Other(_), Resource::Tool(_)) => false,
            (Self::Other(kept), _) => {
                let (mut left, mut are_same) = (kept.iter(), true);
                each_fact(resource, |fact| {
                    are_same &= left.next().is_some_and(|one| one.as_deref() == fact);
                });
                are_same && left.next().is_none()
            }
        }
    }
}

/// Not of all that it is: every piece takes time, and what few questions differ in is left to the
/// comparison.
impl Hash for Asked<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { caller, act, is_of_run, kind, name, resource } = self;
        (&caller.realm, &caller.subject, name).hash(state);
        let small = [*act as u8, *kind as u8, u8::from(*is_of_run), u8::from(caller.admin)];
        state.write_u32(u32::from_ne_bytes(small));
        if let Some(actor) = &caller.actor {
            actor.hash(state);
        }
        match resource {
            Resource::Tool(spec) => spec.tags.hash(state),
            _ => each_fact(resource, |fact| fact.hash(state)),
        }
    }
}

/// All that policies know of a resource beside its name, unless it is a tool, one after the other:
/// nothing is made for it.
fn each_fact<'r>(resource: &Resource<'r>, mut note: impl FnMut(Option<&'r str>)) {
    let of_session = |facts: SessionFacts<'r>| {
        let SessionFacts { owner, space, plan, agent, pipeline, .. } = facts;
        [owner, Some(space), plan, agent, pipeline]
    };
    match *resource {
        Resource::InlinePlan => note(None),
        Resource::Session(facts) => of_session(facts).into_iter().for_each(note),
        Resource::Ask { kind, session } => {
            of_session(session).into_iter().chain([Some(kind)]).for_each(note);
        }
        Resource::Definition { defined_by, .. } => note(defined_by),
        _ => {}
    }
}
