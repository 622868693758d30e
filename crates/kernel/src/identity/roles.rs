//! Built-in roles and the acts that each permits.

use crate::ask::OWNER;
use crate::values::caller::Act;
use crate::values::named_enum::named;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;

named! {
    /// A role that every server knows.
    Role {
        /// Reads.
        Viewer = "viewer",
        /// Uses what is in the catalog; reads, cancels, forks, removes and answers its own.
        Member = "member",
        /// Reads and answers any ask, and reads its run.
        Approver = "approver",
        /// A member for everybody's sessions; defines, operates and logs in upstream.
        Operator = "operator",
        /// Everything in its realm, except acting as another.
        Admin = "admin",
    }
}

impl Role {
    pub fn permits(self, act: Act, target: Target) -> bool {
        match self {
            Self::Viewer if target == Target::RecordReader => matches!(act, Act::Call | Act::Read),
            Self::Viewer => matches!(act, Act::Read | Act::Export),
            Self::Member => is_for_members(act, target),
            Self::Approver => is_for_approvers(act, target),
            Self::Operator => !matches!(act, Act::Administer | Act::Impersonate),
            Self::Admin => act != Act::Impersonate,
        }
    }
}

fn is_for_members(act: Act, target: Target) -> bool {
    match target {
        Target::RecordReader => matches!(act, Act::Call | Act::Read),
        Target::Catalog => {
            matches!(act, Act::Run | Act::Talk | Act::Submit | Act::Call | Act::Read)
        }
        Target::OwnSession => matches!(
            act,
            Act::Run
                | Act::Read
                | Act::Cancel
                | Act::Fork
                | Act::Export
                | Act::Remove
                | Act::Answer
        ),
        Target::OwnAsk => matches!(act, Act::Read | Act::Answer),
        Target::Records => matches!(act, Act::Read | Act::Save | Act::Remove),
        // A hash does not prove that the blob is of a session of the member's own.
        Target::Blob
        | Target::OtherSession
        | Target::OtherAsk
        | Target::Definition
        | Target::Neighbour
        | Target::Server => false,
    }
}

fn is_for_approvers(act: Act, target: Target) -> bool {
    match target {
        Target::OwnAsk | Target::OtherAsk => matches!(act, Act::Read | Act::Answer),
        // What an approval is about is in the run that asks for it, and in the blobs of that run.
        Target::OwnSession | Target::OtherSession | Target::Blob => act == Act::Read,
        Target::Catalog
        | Target::RecordReader
        | Target::Records
        | Target::Definition
        | Target::Neighbour
        | Target::Server => false,
    }
}

/// Who may answer what runs ask by these roles, as an inbox shows it: those whose role permits it
/// for every ask, and where a role permits it for one's own, the subject that the run acts for.
pub fn answerers(roles: &[Role]) -> Vec<String> {
    let permits = |role: &Role, target| role.permits(Act::Answer, target);
    let own = roles.iter().any(|role| permits(role, Target::OwnAsk));
    let all = roles.iter().filter(|role| permits(role, Target::OtherAsk));
    let all = all.map(|role| format!("role:{}", role.name()));
    own.then(|| OWNER.to_owned()).into_iter().chain(all).collect()
}

/// Names of roles: built-in ones, and others that only policies know.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Roles(pub BTreeSet<Arc<str>>);

impl Roles {
    /// These built-in roles.
    pub fn of(roles: &[Role]) -> Self {
        roles.iter().copied().collect()
    }

    /// Whether this built-in role is among them.
    pub fn has(&self, role: Role) -> bool {
        self.0.contains(role.name())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Their names, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<str>> {
        self.0.iter()
    }

    /// Adds those of another set.
    pub fn add(&mut self, other: &Self) {
        self.0.extend(other.0.iter().cloned());
    }

    /// Whether a built-in role among them permits this act on this target. A name that is not
    /// built-in permits nothing here.
    pub fn permit(&self, act: Act, target: Target) -> bool {
        Role::ALL.iter().any(|role| role.permits(act, target) && self.has(*role))
    }
}

impl FromIterator<Role> for Roles {
    fn from_iter<I: IntoIterator<Item = Role>>(roles: I) -> Self {
        roles.into_iter().map(|role| Arc::<str>::from(role.name())).collect()
    }
}

impl FromIterator<Arc<str>> for Roles {
    fn from_iter<I: IntoIterator<Item = Arc<str>>>(names: I) -> Self {
        Self(names.into_iter().collect())
    }
}

/// The target of an act, as far as built-in roles distinguish targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A tool, plan, agent or pipeline of the catalog, or a plan that comes with the request.
    Catalog,
    /// A session, or a run or blob of it, that the caller owns.
    OwnSession,
    /// Another one.
    OtherSession,
    /// An ask of the caller's own run.
    OwnAsk,
    /// An ask of another run.
    OtherAsk,
    /// A blob, known by its hash alone.
    Blob,
    /// The records of a type.
    Records,
    /// A tool that only reads records: who may read them calls it.
    RecordReader,
    /// A stored definition.
    Definition,
    /// An upstream or a sink.
    Neighbour,
    /// The realm or the server.
    Server,
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGETS: [Target; 10] = [
        Target::Catalog,
        Target::OwnSession,
        Target::OtherSession,
        Target::OwnAsk,
        Target::OtherAsk,
        Target::Blob,
        Target::Records,
        Target::Definition,
        Target::Neighbour,
        Target::Server,
    ];

    const OPERATORS: &str = "run talk submit call read cancel fork export save remove answer \
         define log_in operate";
    const ADMINS: &str = "run talk submit call read cancel fork export save remove answer \
         define log_in operate administer";

    /// Acts that each role permits on each target, in the order of `TARGETS`.
    const TABLE: [(Role, [&str; 10]); 5] = [
        (Role::Viewer, ["read export"; 10]),
        (
            Role::Member,
            [
                "run talk submit call read",
                "run read cancel fork export remove answer",
                "",
                "read answer",
                "",
                "",
                "read save remove",
                "",
                "",
                "",
            ],
        ),
        (
            Role::Approver,
            ["", "read", "read", "read answer", "read answer", "read", "", "", "", ""],
        ),
        (Role::Operator, [OPERATORS; 10]),
        (Role::Admin, [ADMINS; 10]),
    ];

    fn permitted(roles: &Roles, target: Target) -> String {
        let acts = Act::ALL.iter().filter(|act| roles.permit(**act, target));
        acts.map(|act| act.name()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn every_role_permits_exactly_the_acts_of_the_table() {
        assert_eq!(TABLE.map(|(role, _)| role), Role::ALL);
        for (role, rows) in TABLE {
            for (target, expected) in TARGETS.into_iter().zip(rows) {
                let found = permitted(&Roles::of(&[role]), target);
                assert_eq!(found, expected, "{role:?} on {target:?}");
            }
        }
    }

    #[test]
    fn no_set_of_roles_permits_impersonation() {
        let all = Roles::of(Role::ALL);
        assert!(TARGETS.iter().all(|target| !all.permit(Act::Impersonate, *target)));
    }

    #[test]
    fn the_acts_of_several_roles_add_up() {
        let mut roles = Roles::of(&[Role::Member]);
        roles.add(&Roles::of(&[Role::Approver]));
        assert_eq!(roles, Roles::of(&[Role::Approver, Role::Member]));
        assert_eq!(permitted(&roles, Target::Catalog), "run talk submit call read");
        assert_eq!(permitted(&roles, Target::OtherAsk), "read answer");
        assert_eq!(permitted(&roles, Target::OtherSession), "read");
    }

    #[test]
    fn missing_or_unknown_roles_permit_nothing() {
        let unknown: Roles =
            ["auditor", "Admin", "admin "].map(Arc::<str>::from).into_iter().collect();
        for target in TARGETS {
            assert_eq!(permitted(&Roles::default(), target), "");
            assert_eq!(permitted(&unknown, target), "");
        }
        assert!(Roles::default().is_empty() && !unknown.is_empty());
        assert!(!unknown.has(Role::Admin));
    }

    #[test]
    fn role_names_are_sorted_and_unique() {
        let text = r#"["admin","auditor"]"#;
        let roles: Roles = serde_json::from_str(r#"["auditor","admin","auditor"]"#).unwrap();
        assert_eq!(serde_json::to_string(&roles).unwrap(), text);
        assert_eq!(serde_json::from_str::<Roles>(text).unwrap(), roles);
        assert_eq!(roles.iter().map(|name| &**name).collect::<Vec<_>>(), ["admin", "auditor"]);
        assert!(roles.has(Role::Admin) && !roles.has(Role::Viewer));
        assert!(serde_json::from_str::<Roles>(r#""admin""#).is_err());
    }
}
