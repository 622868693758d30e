//! Policy by the built-in roles alone. Roles are those that the subject has now, wherever a run is:
//! who lost a role, or whose key was revoked, is denied what would come next.

use crate::Identity;
use crate::snapshot::Snapshot;
use kernel::contracts::policy::{Context, Decision, Policy, Request, Resource};
use kernel::identity::directory::{ADMIN, Directory};
use kernel::identity::roles::{Role, Target, answerers};
use kernel::tool::call::Verdict;
use kernel::values::caller::{Act, Caller};
use std::sync::Arc;

/// Decides by the built-in roles.
pub struct RolePolicy {
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
        let snapshot = self.identity.snapshot();
        let context = Context::default();
        let judged = |resource: &Resource<'_>| {
            decide(&snapshot, &Request { act, subject, resource: *resource, context })
        };
        resources.iter().map(judged).collect()
    }

    fn answerers(&self) -> Option<Vec<String>> {
        Some(answerers(Role::ALL))
    }

    fn is_named(&self, caller: &Caller, answerer: &str) -> bool {
        self.identity.snapshot().directory.is_named(&caller.realm, &caller.subject, answerer)
    }

    fn is_other(&self, caller: &Caller, subject: &str) -> bool {
        self.identity.directory().is_another(caller, subject)
    }

    fn is_other_than_maker(&self, caller: &Caller, maker: &str) -> bool {
        self.identity.directory().is_another_than_maker(caller, maker)
    }

    fn version(&self) -> Option<Arc<str>> {
        Some(self.identity.snapshot().version.clone())
    }
}

fn decide(snapshot: &Snapshot, request: &Request<'_>) -> Decision {
    let Request { act, subject, resource, .. } = request;
    let directory = &*snapshot.directory;
    let target = resource.known_to(directory).target(*act, directory.resolve(&subject.subject));
    let verdict = match permits(directory, subject, *act, target) {
        true => Verdict::Allow,
        false => Verdict::Deny(format!("no role of the caller permits `{}` here", act.name())),
    };
    Decision { version: Some(snapshot.version.clone()), ..Decision::from(verdict) }
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
