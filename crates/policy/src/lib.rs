//! Who may do what, as policy files written in Cedar say: the kernel's contract of policy, decided
//! by the files and, beside them, by the built-in roles. No IO: texts come in, and roles come
//! through a snapshot.

mod source_text;
mod dependencies;
mod arguments;
mod narrowing;
mod schema;
mod entities;
mod files;
mod index;
mod validation;
mod evaluation;
pub mod decide;
mod decision_cache;
pub mod records;
pub mod cases;
#[cfg(test)]
mod tests;

use crate::decide::{PartialDecision, Policies, Question};
use crate::decision_cache::{CachedDecision, DecisionCache};
use kernel::contracts::Clock;
use kernel::contracts::policy::{Context, Decision, Policy, Request, Resource};
use kernel::identity::directory::Directory;
use kernel::identity::roles::Roles;
use kernel::tool::call::Verdict;
use kernel::values::caller::{Act, Caller};
use std::borrow::Cow;
use std::sync::{Arc, PoisonError, RwLock};

pub use crate::narrowing::names_field;
pub use crate::schema::applicable;

pub struct Parts {
    /// Everyone who is known now, with their roles, as one value. A later one has a larger number.
    pub directory: Box<dyn Fn() -> Arc<Directory> + Send + Sync>,
    /// Time, for policies that read it.
    pub clock: Arc<dyn Clock>,
    /// Whether all built-in roles permit something beside the files; else only `admin` does.
    pub builtin: bool,
}

/// Decides by policy files and built-in roles.
pub struct CedarPolicy {
    parts: Parts,
    current: RwLock<Arc<Snapshot>>,
}

/// All that a decision depends on, arguments and time aside. A change makes another one.
struct Snapshot {
    policies: Arc<Policies>,
    directory: Arc<Directory>,
    version: Arc<str>,
    decisions: DecisionCache,
}

impl Snapshot {
    fn new(policies: Arc<Policies>, directory: Arc<Directory>) -> Self {
        let version = format!("{}.{}", policies.version(), directory.number).into();
        Self { policies, directory, version, decisions: DecisionCache::default() }
    }

    /// The denial of an unknown subject.
    fn ended(&self) -> Decision {
        let denied = Verdict::Deny("the caller may not do anything any more".to_owned());
        Decision { version: Some(self.version.clone()), ..Decision::from(denied) }
    }
}

impl CedarPolicy {
    /// By these policies: those of `Policies::read`, of no files at all where there are none.
    pub fn new(parts: Parts, policies: Policies) -> Self {
        let snapshot = Snapshot::new(Arc::new(policies), (parts.directory)());
        Self { parts, current: RwLock::new(Arc::new(snapshot)) }
    }

    /// Decides by these policies from now on, and by no other one.
    pub fn replace(&self, policies: Policies) {
        let directory = self.snapshot().directory.clone();
        let next = Arc::new(Snapshot::new(Arc::new(policies), directory));
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = next;
    }

    /// The policies that decide now.
    pub fn policies(&self) -> Arc<Policies> {
        self.snapshot().policies.clone()
    }

    /// Whether all built-in roles permit something beside the files; else only `admin` does.
    pub fn builtin(&self) -> bool {
        self.parts.builtin
    }

    /// What would be said if the subject had these roles beside its own. A subject that is not
    /// known has these alone; one that is disabled or revoked is denied everything all the same.
    pub fn decide_with(&self, request: &Request<'_>, more: &Roles) -> Decision {
        let snapshot = self.snapshot();
        let directory = &*snapshot.directory;
        let name = &request.subject.subject;
        if directory.is_known(name) && !directory.is_active(name) {
            return snapshot.ended();
        }
        let subject = known(directory, request.subject);
        let mut roles = directory.roles(&subject.realm, &subject.subject);
        roles.add(more);
        let resource = request.resource.known_to(directory);
        let asked = Request { subject: &subject, resource, ..*request };
        self.finished(&snapshot, &self.prepared(&snapshot, &asked, &roles), &asked)
    }

    fn snapshot(&self) -> Arc<Snapshot> {
        let directory = (self.parts.directory)();
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner).clone();
        if directory.number <= current.directory.number {
            return current;
        }
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        // Another decision may have been faster, with the same directory or a later one.
        if directory.number > current.directory.number {
            *current = Arc::new(Snapshot::new(current.policies.clone(), directory));
        }
        current.clone()
    }

    /// Decides a request with one snapshot.
    fn judged(&self, snapshot: &Snapshot, request: &Request<'_>) -> Decision {
        match snapshot.decisions.get(request) {
            Some(CachedDecision::Settled(decision)) => decision,
            Some(CachedDecision::Open(prepared)) => self.finished(snapshot, &prepared, request),
            None => self.judged_first(snapshot, request),
        }
    }

    /// The same for the first time. Who asks is the principal that it is, by whichever identity,
    /// and so is the owner of a session. Who is not known any more is denied everything, whatever
    /// a policy permits to everybody.
    fn judged_first(&self, snapshot: &Snapshot, request: &Request<'_>) -> Decision {
        let directory = &*snapshot.directory;
        if !directory.is_active(&request.subject.subject) {
            return snapshot.ended();
        }
        let subject = known(directory, request.subject);
        let roles = directory.roles(&subject.realm, &subject.subject);
        let resource = request.resource.known_to(directory);
        let asked = Request { subject: &subject, resource, ..*request };
        let prepared = self.prepared(snapshot, &asked, &roles);
        let decision = self.finished(snapshot, &prepared, &asked);
        let cached = match prepared.is_settled() {
            true => CachedDecision::Settled(decision.clone()),
            false => CachedDecision::Open(Arc::new(prepared)),
        };
        snapshot.decisions.insert(request, cached);
        decision
    }

    fn prepared(
        &self,
        snapshot: &Snapshot,
        request: &Request<'_>,
        roles: &Roles,
    ) -> PartialDecision {
        let now = self.parts.clock.now();
        let builtin = self.parts.builtin;
        let principals = &*snapshot.directory.principals;
        snapshot.policies.prepare(&Question { request, roles, principals, now, builtin })
    }

    fn finished(
        &self,
        snapshot: &Snapshot,
        prepared: &PartialDecision,
        request: &Request<'_>,
    ) -> Decision {
        let decision = snapshot.policies.finish(prepared, request, self.parts.clock.now());
        Decision { version: Some(snapshot.version.clone()), ..decision }
    }
}

impl Policy for CedarPolicy {
    fn decide(&self, request: &Request<'_>) -> Decision {
        self.judged(&self.snapshot(), request)
    }

    /// All of a list is judged by one snapshot.
    fn decide_all(&self, subject: &Caller, act: Act, resources: &[Resource<'_>]) -> Vec<Decision> {
        let snapshot = self.snapshot();
        let context = Context::default();
        let judged = |resource: &Resource<'_>| {
            let request = Request { act, subject, resource: *resource, context };
            self.judged(&snapshot, &request)
        };
        resources.iter().map(judged).collect()
    }

    fn answerers(&self) -> Option<Vec<String>> {
        Some(self.policies().answerers(self.parts.builtin))
    }

    fn is_named(&self, caller: &Caller, answerer: &str) -> bool {
        self.snapshot().directory.is_named(&caller.realm, &caller.subject, answerer)
    }

    fn is_other(&self, caller: &Caller, subject: &str) -> bool {
        self.snapshot().directory.is_another(caller, subject)
    }

    fn is_other_than_maker(&self, caller: &Caller, maker: &str) -> bool {
        self.snapshot().directory.is_another_than_maker(caller, maker)
    }

    /// None where a policy reads time: then an answer is not good for long.
    fn version(&self) -> Option<Arc<str>> {
        let snapshot = self.snapshot();
        (!snapshot.policies.read_time()).then(|| snapshot.version.clone())
    }
}

/// A caller as the principal that it is, by whichever of its identities.
fn known<'c>(directory: &Directory, caller: &'c Caller) -> Cow<'c, Caller> {
    let principal = directory.principals.of_subject(&caller.subject);
    match principal.map(|known| &known.principal.id).filter(|id| **id != caller.subject) {
        Some(id) => Cow::Owned(Caller { subject: id.clone(), ..caller.clone() }),
        None => Cow::Borrowed(caller),
    }
}
