//! Policy by roles: what each resource is to them, and that they are looked up at every decision.

use super::{Stage, new_key, root};
use crate::keys::{KeyWithText, NewKey};
use crate::policy::RolePolicy;
use kernel::contracts::policy::{Context, Policy, Request, Resource, SessionFacts};
use kernel::identity::grants::{Grants, RealmPattern};
use kernel::identity::roles::{Role, Roles, Target};
use kernel::tool::call::{ToolSpec, Verdict};
use kernel::values::caller::{Act, Caller};
use std::sync::Arc;

fn session(owner: Option<&str>) -> SessionFacts<'_> {
    SessionFacts { owner, space: "thread", plan: None, agent: None, pipeline: None, id: None }
}

fn tool() -> ToolSpec {
    ToolSpec { input_schema: Arc::default(), idempotent: true, ..testkit::specs::tool("math::add") }
}

/// What roles say of it.
fn allows(policy: &RolePolicy, caller: &Caller, act: Act, resource: Resource<'_>) -> bool {
    let context = Context::default();
    policy.decide(&Request { act, subject: caller, resource, context }).allows()
}

fn caller(made: &KeyWithText, realm: &str) -> Caller {
    Caller::new(realm, made.stored.key.subject())
}

#[tokio::test]
async fn every_role_permits_its_acts_on_every_resource_and_no_others() {
    let stage = Stage::open().await;
    let policy = RolePolicy::new(stage.identity.clone());
    let tool = tool();
    for role in Role::ALL {
        let made = stage.made("acme", &[*role]).await;
        let ann = caller(&made, "acme");
        let own = session(Some(&ann.subject));
        let other = session(Some("key:other"));
        for (resource, target) in [
            (Resource::Tool(&tool), Target::Catalog),
            (Resource::Plan("a"), Target::Catalog),
            (Resource::InlinePlan, Target::Catalog),
            (Resource::Agent("a"), Target::Catalog),
            (Resource::Pipeline("a"), Target::Catalog),
            (Resource::Session(own), Target::OwnSession),
            (Resource::Session(other), Target::OtherSession),
            (Resource::Session(session(None)), Target::OtherSession),
            (Resource::Ask { kind: "approve", session: own }, Target::OwnAsk),
            (Resource::Ask { kind: "approve", session: other }, Target::OtherAsk),
            (Resource::Blob("00"), Target::Blob),
            (Resource::RecordType("shop.Order"), Target::Records),
            (
                Resource::Definition { kind: "plan", name: "a", defined_by: None },
                Target::Definition,
            ),
            (Resource::Upstream("a"), Target::Neighbour),
            (Resource::Sink("a"), Target::Neighbour),
            (Resource::Principal("bob"), Target::Server),
            (Resource::Server, Target::Server),
        ] {
            for act in Act::ALL {
                // Who uses the catalog reads what an upstream offers beside its tools.
                let target = match (resource, act) {
                    (Resource::Upstream(_), Act::Read) => Target::Catalog,
                    _ => target,
                };
                let expected = role.permits(*act, target);
                let allowed = allows(&policy, &ann, *act, resource);
                assert_eq!(allowed, expected, "{role:?} {act:?} {target:?}");
            }
        }
    }
}

#[tokio::test]
async fn each_built_in_role_permits_its_documented_acts() {
    let stage = Stage::open().await;
    let policy = RolePolicy::new(stage.identity.clone());
    let other = Resource::Session(session(Some("key:other")));
    let ask = Resource::Ask { kind: "approve", session: session(Some("key:other")) };
    let definition = Resource::Definition { kind: "plan", name: "a", defined_by: None };
    let records = Resource::RecordType("shop.Order");
    // Reads another's, runs, answers another's ask, cancels another's, defines, administers; reads,
    // saves and removes records.
    for (role, expected) in [
        (Role::Viewer, [true, false, false, false, false, false, true, false, false]),
        (Role::Member, [false, true, false, false, false, false, true, true, true]),
        (Role::Approver, [true, false, true, false, false, false, false, false, false]),
        (Role::Operator, [true, true, true, true, true, false, true, true, true]),
        (Role::Admin, [true, true, true, true, true, true, true, true, true]),
    ] {
        let ann = caller(&stage.made("acme", &[role]).await, "acme");
        let allowed = [
            allows(&policy, &ann, Act::Read, other),
            allows(&policy, &ann, Act::Run, Resource::Plan("a")),
            allows(&policy, &ann, Act::Answer, ask),
            allows(&policy, &ann, Act::Cancel, other),
            allows(&policy, &ann, Act::Define, definition),
            allows(&policy, &ann, Act::Administer, Resource::Server),
            allows(&policy, &ann, Act::Read, records),
            allows(&policy, &ann, Act::Save, records),
            allows(&policy, &ann, Act::Remove, records),
        ];
        assert_eq!(allowed, expected, "{role:?}");
        assert!(!allows(&policy, &ann, Act::Impersonate, Resource::Server), "{role:?}");
    }
}

#[tokio::test]
async fn roles_are_per_realm_and_add_up() {
    let stage = Stage::open().await;
    let policy = RolePolicy::new(stage.identity.clone());
    let pattern = |text: &str| RealmPattern::parse(text).unwrap();
    let realms = Grants(
        [
            (pattern("acme-1"), Roles::of(&[Role::Operator])),
            (pattern("acme-*"), Roles::of(&[Role::Approver])),
        ]
        .into_iter()
        .collect(),
    );
    let new = NewKey { realms, ..new_key("*", &[]) };
    let made = stage.identity.create(&root(), new).await.unwrap();
    let directory = stage.identity.directory();
    for realm in ["acme-1", "acme-2", "acme", "other"] {
        let ann = caller(&made, realm);
        let roles = directory.roles(&ann.realm, &ann.subject);
        for act in Act::ALL {
            let expected = roles.permit(*act, Target::Server);
            assert_eq!(allows(&policy, &ann, *act, Resource::Server), expected, "{realm} {act:?}");
        }
    }
    assert!(allows(&policy, &caller(&made, "acme-1"), Act::Operate, Resource::Server));
    assert!(!allows(&policy, &caller(&made, "acme-2"), Act::Operate, Resource::Server));

    let admin = Caller::new("anywhere", "admin");
    assert!(allows(&policy, &admin, Act::Administer, Resource::Server));
    for stranger in ["local", "key:", "key:aaaaaaaaaa", "ann", "Admin", ""] {
        // What a caller says of itself is not asked.
        let stranger = Caller::new("acme-1", stranger).administering();
        assert!(!allows(&policy, &stranger, Act::Read, Resource::Server), "{stranger:?}");
    }
}

#[tokio::test]
async fn a_revocation_counts_at_the_next_decision_and_changes_the_version() {
    let stage = Stage::open().await;
    let policy = RolePolicy::new(stage.identity.clone());
    let made = stage.made("acme", &[Role::Member]).await;
    let ann = caller(&made, "acme");
    let resource = Resource::Plan("a");
    let context = Context::default();
    let request = Request { act: Act::Run, subject: &ann, resource, context };
    let before = policy.decide(&request);
    assert!(before.allows());
    let number = stage.identity.directory().number;
    assert_eq!(before.version.as_deref(), Some(number.to_string().as_str()));
    assert_eq!(policy.version(), before.version);

    stage.identity.revoke(&root(), &made.stored.key.id).await.unwrap();
    let after = policy.decide(&request);
    let why = "no role of the caller permits `run` here".to_owned();
    assert_eq!(after.verdict, Verdict::Deny(why));
    assert_eq!(after.version.as_deref(), Some((number + 1).to_string().as_str()));
    assert_eq!(policy.version(), after.version);
    assert!(!policy.allows_everything());
}

#[tokio::test]
async fn verdicts_of_a_list_keep_its_order() {
    let stage = Stage::open().await;
    let policy = RolePolicy::new(stage.identity.clone());
    let made = stage.made("acme", &[Role::Member]).await;
    let ann = caller(&made, "acme");
    let sessions = [Some("key:other"), Some(&*ann.subject), None].map(session);
    let resources = sessions.map(Resource::Session);
    let said = policy.decide_all(&ann, Act::Read, &resources);
    let allowed: Vec<bool> = said.iter().map(|decision| decision.allows()).collect();
    assert_eq!(allowed, [false, true, false]);
}

#[tokio::test]
async fn an_inbox_shows_which_roles_answer() {
    let stage = Stage::open().await;
    let policy = RolePolicy::new(stage.identity.clone());
    let shown = ["owner", "role:approver", "role:operator", "role:admin"];
    assert_eq!(policy.answerers(), Some(shown.map(str::to_owned).to_vec()));
}
