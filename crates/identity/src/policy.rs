//! Policy by the built-in roles alone. Roles are those that the subject has now, wherever a run is:
//! who lost a role, or whose key was revoked, is denied what would come next.

use crate::Identity;
use crate::snapshot::Snapshot;
use kernel::ask::OWNER;
use kernel::contracts::policy::{Context, Decision, Policy, Request, Resource, SessionFacts};
use kernel::identity::directory::{ADMIN, Directory};
use kernel::identity::roles::{Role, Target};
use kernel::tool::call::Verdict;
use kernel::values::caller::{Act, Caller, LOCAL};
use std::sync::Arc;

/// Decides by the built-in roles.
pub struct RolePolicy {
    /// Who has which roles.
    pub identity: Arc<Identity>,
}

impl RolePolicy {
    /// By the roles that are known here.
    pub fn new(identity: Arc<Identity>) -> Self {
        Self { identity }
    }
}

impl Policy for RolePolicy {
    fn decide(&self, request: &Request<'_>) -> Decision {
        decide(&self.identity.snapshot(), request)
    }

    /// All of a list is judged by one snapshot.
    fn decide_all(&self, subject: &Caller, act: Act, resources: &[Resource<'_>]) -> Vec<Decision> {
        let (snapshot, context) = (self.identity.snapshot(), Context::default());
        let judged = |resource: &Resource<'_>| {
            decide(&snapshot, &Request { act, subject, resource: *resource, context })
        };
        resources.iter().map(judged).collect()
    }

    /// Those whose role permits it for every ask, and where a role permits it for one's own, the
    /// subject that the run acts for.
    fn answerers(&self) -> Option<Vec<String>> {
        let permits = |role: &Role, target| role.permits(Act::Answer, target);
        let own = Role::ALL.iter().any(|role| permits(role, Target::OwnAsk));
        let all = Role::ALL.iter().filter(|role| permits(role, Target::OtherAsk));
        let all = all.map(|role| format!("role:{}", role.name()));
        Some(own.then(|| OWNER.to_owned()).into_iter().chain(all).collect())
    }

    fn version(&self) -> Option<Arc<str>> {
        Some(self.identity.snapshot().version.clone())
    }
}

fn decide(snapshot: &Snapshot, request: &Request<'_>) -> Decision {
    let Request { act, subject, resource, .. } = request;
    let directory = &*snapshot.directory;
    let target = target(directory, resource, *act, subject);
    let verdict = match permits(directory, subject, *act, target) {
        true => Verdict::Allow,
        false => Verdict::Deny(format!("no role of the caller permits `{}` here", act.name())),
    };
    Decision { verdict, obligations: Vec::new(), version: Some(snapshot.version.clone()) }
}

/// Whether the roles of this caller in its realm permit it. The same as the roles of
/// `Directory::roles` do, without making a set of them for each decision: roles only add up, so one
/// that permits is enough.
fn permits(directory: &Directory, caller: &Caller, act: Act, target: Target) -> bool {
    if &*caller.subject == ADMIN && directory.has_admin_key {
        return Role::Admin.permits(act, target);
    }
    directory.grants(&caller.subject).any(|grants| {
        let mut held = grants.0.iter().filter(|(realms, _)| realms.fits(&caller.realm));
        held.any(|(_, roles)| roles.permit(act, target))
    })
}

/// What a resource is to the built-in roles.
fn target(directory: &Directory, resource: &Resource<'_>, act: Act, caller: &Caller) -> Target {
    let is_own = |facts: &SessionFacts<'_>| is_own(directory, facts, &caller.subject);
    match resource {
        Resource::Tool(_)
        | Resource::Plan(_)
        | Resource::InlinePlan
        | Resource::Agent(_)
        | Resource::Pipeline(_) => Target::Catalog,
        // Its prompts and resources are there to be used, as its tools are.
        Resource::Upstream(_) if act == Act::Read => Target::Catalog,
        Resource::Session(facts) if is_own(facts) => Target::OwnSession,
        Resource::Session(_) => Target::OtherSession,
        Resource::Ask { session, .. } if is_own(session) => Target::OwnAsk,
        Resource::Ask { .. } => Target::OtherAsk,
        Resource::Blob(_) => Target::Blob,
        Resource::Definition { .. } => Target::Definition,
        Resource::Upstream(_) | Resource::Sink(_) => Target::Neighbour,
        Resource::Principal(_) | Resource::Server => Target::Server,
    }
}

/// Whether a session is the subject's own, by whichever of its identities. What local mode left has
/// no owner, and belongs to the principal that is `local` too. A case without one is its
/// pipeline's.
fn is_own(directory: &Directory, facts: &SessionFacts<'_>, subject: &str) -> bool {
    let left = || facts.pipeline.is_none().then_some(LOCAL);
    let owner = facts.owner.or_else(left);
    owner.is_some_and(|owner| owner == subject || directory.who(owner) == directory.who(subject))
}
