//! The policy as the gate asks it: roles by snapshot, decisions that are cached and end with their
//! snapshot.

use super::{NOW, pay, policies, said};
use crate::{CedarPolicy, Parts};
use futures::future::BoxFuture;
use kernel::contracts::Clock;
use kernel::contracts::policy::{
    Context, Decision, Policy, Request, Resource, SessionFacts, Trigger,
};
use kernel::identity::directory::Directory;
use kernel::identity::grants::{Grants, RealmPattern};
use kernel::identity::key::{ApiKey, KeyId};
use kernel::identity::principal::{Principal, Roster};
use kernel::identity::roles::Roles;
use kernel::tool::call::{Reach, ToolSpec};
use kernel::values::caller::{Act, Caller};
use kernel::values::datum::{Origin, Source, Sources};
use kernel::values::ids::Millis;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const KEY: &str = "aaaaaaaaaa";

/// A clock that stands still until it is moved.
struct Still(AtomicI64);

impl Clock for Still {
    fn now(&self) -> Millis {
        Millis(self.0.load(Ordering::Relaxed))
    }

    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep_until(&self, _then: Millis) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}

fn directory(number: u64, roles: &[&str]) -> Arc<Directory> {
    let roles: Roles = roles.iter().map(|role| Arc::<str>::from(*role)).collect();
    let key = ApiKey {
        id: KeyId(KEY.into()),
        name: String::new(),
        of: None,
        realms: Grants::one(RealmPattern::parse("acme").unwrap(), roles),
        scopes: None,
        secrets: Vec::new(),
        by: "admin".into(),
        created: Millis(1),
        expires: None,
        revoked: None,
    };
    let keys = HashMap::from([(key.id.clone(), Arc::new(key))]).into();
    Arc::new(Directory { number, keys, ..Directory::default() })
}

struct Stage {
    policy: CedarPolicy,
    clock: Arc<Still>,
    now: Arc<Mutex<Arc<Directory>>>,
}

impl Stage {
    fn new(text: &str, roles: &[&str], builtin: bool) -> Self {
        let now = Arc::new(Mutex::new(directory(1, roles)));
        let read = now.clone();
        let clock = Arc::new(Still(AtomicI64::new(NOW.0)));
        let directory = Box::new(move || read.lock().unwrap().clone());
        let parts = Parts { directory, clock: clock.clone(), builtin };
        Self { policy: CedarPolicy::new(parts, policies(text)), clock, now }
    }

    fn does(&self, act: Act, resource: Resource<'_>) -> String {
        let subject = Caller::new("acme", format!("key:{KEY}"));
        let context = Context::default();
        said(&self.decides(&Request { act, subject: &subject, resource, context }))
    }

    /// What is decided, twice: the second time the cache knows it.
    fn decides(&self, request: &Request<'_>) -> Decision {
        let decision = self.policy.decide(request);
        assert_eq!(self.policy.decide(request), decision);
        decision
    }
}

#[test]
fn a_role_that_is_given_or_lost_counts_at_the_next_decision() {
    let stage = Stage::new("", &["viewer"], true);
    let version = stage.policy.version();
    assert_eq!(stage.does(Act::Read, Resource::Server), "allow role:viewer");
    assert_eq!(stage.does(Act::Run, Resource::Plan("a")), "deny");
    *stage.now.lock().unwrap() = directory(2, &["member"]);
    assert_eq!(stage.does(Act::Read, Resource::Server), "deny");
    assert_eq!(stage.does(Act::Run, Resource::Plan("a")), "allow role:member");
    assert_ne!(stage.policy.version(), version);
}

#[test]
fn revoked_disabled_or_unknown_subjects_are_denied_even_what_all_are_permitted() {
    let stage = Stage::new("@id(\"a\") permit(principal, action, resource);", &[], true);
    assert_eq!(stage.does(Act::Read, Resource::Server), "allow a");
    let now = stage.now.lock().unwrap().clone();
    let revoked = |key: &Arc<ApiKey>| ApiKey { revoked: Some(NOW), ..ApiKey::clone(key) };
    let keys = now.keys.iter().map(|(id, key)| (id.clone(), Arc::new(revoked(key))));
    let keys: HashMap<KeyId, Arc<ApiKey>> = keys.collect();
    let ended = [
        Directory { number: 2, keys: keys.into(), ..Directory::clone(&now) },
        Directory { number: 3, keys: Arc::default(), ..Directory::clone(&now) },
    ];
    for directory in ended {
        *stage.now.lock().unwrap() = Arc::new(directory);
        assert_eq!(stage.does(Act::Read, Resource::Server), "deny");
    }
}

#[test]
fn a_principal_is_named_by_its_id_under_any_identity() {
    let text = "@id(\"own\") permit(principal == Subject::\"ann\", action == Action::\"read\",\n\
                resource is Session) when { resource has owner && resource.owner == principal };";
    let stage = Stage::new(text, &[], true);
    let identities = [Arc::<str>::from("corp:1")].into_iter().collect();
    let ann = Principal { identities, ..Principal::new("ann", Grants::default()) };
    let (principals, _) = Roster::combine(&[Arc::new(ann)], std::iter::empty());
    let now = Directory { number: 2, principals: principals.into(), ..Directory::default() };
    *stage.now.lock().unwrap() = Arc::new(now);
    let reads = |subject: &str, owner: Option<&str>| {
        let space = "session";
        let plan = None;
        let agent = None;
        let pipeline = None;
        let id = None;
        let facts = SessionFacts { owner, space, plan, agent, pipeline, id };
        let subject = Caller::new("acme", subject);
        let context = Context::default();
        let act = Act::Read;
        let resource = Resource::Session(facts);
        said(&stage.policy.decide(&Request { act, subject: &subject, resource, context }))
    };
    for (subject, owner) in [("ann", "ann"), ("ann", "corp:1"), ("corp:1", "ann")] {
        assert_eq!(reads(subject, Some(owner)), "allow own", "{subject} {owner}");
    }
    assert_eq!([reads("ann", Some("bob")), reads("ann", None)], ["deny", "deny"]);
}

#[test]
fn a_simulation_can_assume_other_roles() {
    let text = "@id(\"a\") permit(principal in Role::\"clerk\", action, resource);";
    let stage = Stage::new(text, &[], true);
    let tried = |subject: &str, roles: &[&str]| {
        let subject = Caller::new("acme", subject);
        let context = Context::default();
        let act = Act::Run;
        let resource = Resource::Plan("b");
        let more: Roles = roles.iter().map(|role| Arc::<str>::from(*role)).collect();
        let request = Request { act, subject: &subject, resource, context };
        said(&stage.policy.decide_with(&request, &more))
    };
    let key = format!("key:{KEY}");
    assert_eq!(tried(&key, &["clerk"]), "allow a");
    assert_eq!(tried(&key, &["member"]), "allow role:member");
    assert_eq!(tried("nobody", &["clerk"]), "allow a", "one that is not known yet");
    assert_eq!(stage.does(Act::Run, Resource::Plan("b")), "deny", "nothing of it is cached");
    let now = stage.now.lock().unwrap().clone();
    let revoked = |key: &Arc<ApiKey>| ApiKey { revoked: Some(NOW), ..ApiKey::clone(key) };
    let keys = now.keys.iter().map(|(id, key)| (id.clone(), Arc::new(revoked(key))));
    let keys: HashMap<KeyId, Arc<ApiKey>> = keys.collect();
    let ended = Directory { number: 2, keys: keys.into(), ..Directory::clone(&now) };
    *stage.now.lock().unwrap() = Arc::new(ended);
    assert_eq!(tried(&key, &["clerk"]), "deny");
}

#[test]
fn policies_are_replaced_as_a_whole() {
    let stage = Stage::new("@id(\"a\") permit(principal, action, resource);", &[], true);
    let version = stage.policy.version();
    assert_eq!(stage.does(Act::Read, Resource::Server), "allow a");
    stage.policy.replace(policies("@id(\"b\") forbid(principal, action, resource);"));
    assert_eq!(stage.does(Act::Read, Resource::Server), "deny b");
    assert_ne!(stage.policy.version(), version);
}

#[test]
fn without_built_in_roles_only_admin_keeps_its_rights() {
    for (roles, expected) in [(["operator"], "deny"), (["admin"], "allow role:admin")] {
        let stage = Stage::new("", &roles, false);
        assert_eq!(stage.does(Act::Read, Resource::Server), expected);
    }
}

#[test]
fn time_dependent_decisions_are_not_cached() {
    let text = "@id(\"a\") permit(principal, action, resource)\n\
                when { context.now < datetime(\"2026-11-17\") };";
    let stage = Stage::new(text, &[], true);
    assert_eq!(stage.does(Act::Read, Resource::Server), "allow a");
    stage.clock.0.store(NOW.0 + 2 * 86_400_000, Ordering::Relaxed);
    assert_eq!(stage.does(Act::Read, Resource::Server), "deny");
    assert_eq!(stage.policy.version(), None);
}

#[test]
fn argument_dependent_decisions_are_cached_per_arguments() {
    let text = "@id(\"a\") permit(principal, action == Action::\"call:pay\", resource)\n\
                when { context.arguments.amount < 10 };";
    let stage = Stage::new(text, &[], true);
    let subject = Caller::new("acme", format!("key:{KEY}"));
    let spec = pay();
    let call = |amount: i64| {
        let arguments = json!({"amount": amount});
        let context = Context { arguments: Some(&arguments), ..Context::default() };
        let resource = Resource::Tool(&spec);
        let request = Request { act: Act::Call, subject: &subject, resource, context };
        said(&stage.decides(&request))
    };
    assert_eq!([call(1), call(100), call(2)], ["allow a", "deny", "allow a"]);
}

#[test]
fn source_dependent_decisions_are_not_cached() {
    let text = "@id(\"a\") permit(principal, action == Action::\"call\", resource)\n\
                when { context has sources && context.sources.contains(\"input\") };";
    let stage = Stage::new(text, &[], true);
    let subject = Caller::new("acme", format!("key:{KEY}"));
    let spec = pay();
    let call = |from: Origin| {
        let source = Source { from, path: "$.x".to_owned() };
        let sources = Sources::from([("/amount".to_owned(), vec![source])]);
        let arguments = json!({"amount": 1});
        let arguments = Some(&arguments);
        let sources = Some(&sources);
        let context = Context { arguments, sources, ..Context::default() };
        let resource = Resource::Tool(&spec);
        let request = Request { act: Act::Call, subject: &subject, resource, context };
        said(&stage.decides(&request))
    };
    let answers = [call(Origin::Input), call(Origin::Turn(1)), call(Origin::Input)];
    assert_eq!(answers, ["allow a", "deny", "allow a"]);
}

#[test]
fn static_policies_are_cached_and_others_evaluated_each_time() {
    let text = "@id(\"a\") permit(principal, action == Action::\"call\", resource);\n\
                @id(\"b\") @ask(\"much\") forbid(principal, action == Action::\"call:pay\",\n\
                resource) when { context.arguments.amount > 10 };\n\
                @id(\"c\") forbid(principal, action == Action::\"call:pay\", resource)\n\
                when { context.now > datetime(\"2026-11-17\") };\n\
                @id(\"d\") permit(principal, action == Action::\"call:pay\", resource);";
    let stage = Stage::new(text, &["member"], true);
    let subject = Caller::new("acme", format!("key:{KEY}"));
    let spec = pay();
    let call = |amount: Option<i64>| {
        let arguments = amount.map(|amount| json!({"amount": amount}));
        let context = Context { arguments: arguments.as_ref(), ..Context::default() };
        let resource = Resource::Tool(&spec);
        let request = Request { act: Act::Call, subject: &subject, resource, context };
        said(&stage.decides(&request))
    };
    for _ in 0..2 {
        assert_eq!(call(Some(1)), "allow role:member a d");
        assert_eq!(call(Some(100)), "ask b");
        assert_eq!(call(None), "allow role:member a d");
    }
    stage.clock.0.store(NOW.0 + 2 * 86_400_000, Ordering::Relaxed);
    assert_eq!([call(Some(1)), call(None)], ["deny c", "deny c"]);
}

/// Pays with these arguments; none is only asked whether some could be.
fn pays(stage: &Stage, spec: &ToolSpec, arguments: Option<&Value>) -> Decision {
    let subject = Caller::new("acme", format!("key:{KEY}"));
    let context = Context { arguments, ..Context::default() };
    let resource = Resource::Tool(spec);
    stage.decides(&Request { act: Act::Call, subject: &subject, resource, context })
}

/// Small sums may be paid, except to Eve.
const PAYING: &str = "@id(\"a\") permit(principal, action == Action::\"call:pay\", resource)\n\
                      when { context.arguments.amount < 10 };\n\
                      @id(\"b\") forbid(principal, action == Action::\"call:pay\", resource)\n\
                      when { context.arguments has to && context.arguments.to == \"eve\" };";

#[test]
fn the_cache_key_has_everything_that_policies_read_of_a_call() {
    let stage = Stage::new(PAYING, &[], true);
    let spec = pay();
    // Also an argument that no policy reads must be of its type.
    for (arguments, expected) in [
        (json!({"amount": 1}), "allow a"),
        (json!({"amount": 1.0}), "allow a"),
        (json!({"amount": 10}), "deny"),
        (json!({"amount": 1, "to": "bob", "tags": ["x"]}), "allow a"),
        (json!({"amount": 1, "to": "eve"}), "deny b"),
        (json!({"amount": 1, "rate": 0.5}), "allow a"),
        (json!({"amount": 1, "rate": 0.123_45}), "deny b"),
        (json!({"amount": 1, "tags": [1]}), "deny b"),
        (json!({"amount": 1, "to": "e".repeat(10_000)}), "allow a"),
        (json!({"amount": "1"}), "deny b"),
        (json!([]), "deny b"),
    ] {
        for _ in 0..3 {
            assert_eq!(said(&pays(&stage, &spec, Some(&arguments))), expected, "{arguments}");
        }
        for _ in 0..3 {
            assert_eq!(said(&pays(&stage, &spec, None)), "allow a");
        }
    }
}

#[test]
fn a_repeated_call_uses_current_roles_policies_and_argument_types() {
    let stage = Stage::new(PAYING, &[], true);
    let spec = pay();
    let small = json!({"amount": 1});
    let again = |spec: &ToolSpec| {
        let all: Vec<String> = (0..3).map(|_| said(&pays(&stage, spec, Some(&small)))).collect();
        assert!(all.iter().all(|one| *one == all[0]), "{all:?}");
        all[0].clone()
    };
    assert_eq!(again(&spec), "allow a");
    let schema = json!({"type": "object", "properties": {"amount": {"type": "string"}}});
    let changed = ToolSpec { input_schema: Arc::new(schema), ..pay() };
    assert_eq!(again(&changed), "deny b", "`b` does not fit it");
    assert_eq!(again(&spec), "allow a", "another realm still has the first one");
    let version = pays(&stage, &spec, Some(&small)).version;
    *stage.now.lock().unwrap() = directory(2, &["member"]);
    assert_eq!(again(&spec), "allow role:member a");
    assert_ne!(pays(&stage, &spec, Some(&small)).version, version);
    stage.policy.replace(policies("@id(\"c\") forbid(principal, action, resource);"));
    assert_eq!(again(&spec), "deny c");
}

#[test]
fn a_repeated_call_uses_the_sources_of_its_arguments() {
    let text = "@id(\"a\") permit(principal, action == Action::\"call:pay\", resource)\n\
                when { context.arguments.amount < 10 };\n\
                @id(\"b\") forbid(principal, action == Action::\"call:pay\", resource)\n\
                when { context has sources && context.sources.contains(\"turn\") };";
    let stage = Stage::new(text, &[], true);
    let spec = pay();
    let subject = Caller::new("acme", format!("key:{KEY}"));
    let arguments = json!({"amount": 1});
    let call = |origin: Option<Origin>| {
        let source = |from: Origin| Source { from, path: "$.x".to_owned() };
        let known = origin.map(|from| ("/amount".to_owned(), vec![source(from)]));
        let sources: Sources = known.into_iter().collect();
        let arguments = Some(&arguments);
        let sources = Some(&sources);
        let context = Context { arguments, sources, ..Context::default() };
        let resource = Resource::Tool(&spec);
        let request = Request { act: Act::Call, subject: &subject, resource, context };
        said(&stage.decides(&request))
    };
    for _ in 0..3 {
        assert_eq!(call(None), "allow a");
        assert_eq!(call(Some(Origin::Turn(1))), "deny b");
        assert_eq!(call(Some(Origin::Input)), "allow a");
    }
}

#[test]
fn a_cached_decision_does_not_apply_to_another_resource() {
    let text = "@id(\"a\") permit(principal, action == Action::\"read\", resource is Tool)\n\
                when { resource.tags.contains(\"money\") };\n\
                @id(\"b\") permit(principal, action == Action::\"run\", resource is Plan)\n\
                when { !resource.inline };\n\
                @id(\"c\") permit(principal, action == Action::\"call\", resource is Tool)\n\
                when { resource.idempotent };";
    let stage = Stage::new(text, &[], true);
    let tagged = pay();
    let mut plain = pay();
    plain.tags.clear();
    let [once, often] = [false, true].map(|idempotent| ToolSpec { idempotent, ..pay() });
    for _ in 0..2 {
        assert_eq!(stage.does(Act::Read, Resource::Tool(&tagged)), "allow a");
        assert_eq!(stage.does(Act::Read, Resource::Tool(&plain)), "deny");
        assert_eq!(stage.does(Act::Call, Resource::Tool(&often)), "allow c");
        assert_eq!(stage.does(Act::Call, Resource::Tool(&once)), "deny");
        assert_eq!(stage.does(Act::Run, Resource::Plan("")), "allow b");
        assert_eq!(stage.does(Act::Run, Resource::InlinePlan), "deny");
    }
}

#[test]
fn a_cached_decision_does_not_apply_to_another_caller() {
    let text = "@id(\"a\") permit(principal, action == Action::\"call\", resource)\n\
                when { resource.reach == \"reads\" && principal.realm == Realm::\"acme\" };\n\
                @id(\"b\") forbid(principal, action, resource)\n\
                when { principal has actor && principal.actor == Subject::\"bot\" };\n\
                @id(\"c\") forbid(principal, action, resource)\n\
                when { context.trigger == \"run\" };";
    let stage = Stage::new(text, &[], false);
    let reads = ToolSpec { reach: Reach::Reads, ..pay() };
    let writes = ToolSpec { reach: Reach::Writes, ..pay() };
    let ann = Caller::new("acme", format!("key:{KEY}"));
    let acting = |actor: &str| Caller { actor: Some(actor.into()), ..ann.clone() };
    let elsewhere = Caller { realm: "acme-eu".into(), ..ann.clone() };
    for _ in 0..2 {
        for (subject, spec, trigger, expected) in [
            (&ann, &reads, Trigger::Door, "allow a"),
            (&ann, &writes, Trigger::Door, "deny"),
            (&ann, &reads, Trigger::Run, "deny c"),
            (&acting("bot"), &reads, Trigger::Door, "deny b"),
            (&acting("lee"), &reads, Trigger::Door, "allow a"),
            (&elsewhere, &reads, Trigger::Door, "deny"),
        ] {
            let context = Context { trigger, ..Context::default() };
            let resource = Resource::Tool(spec);
            let request = Request { act: Act::Call, subject, resource, context };
            assert_eq!(said(&stage.decides(&request)), expected, "{subject:?} {trigger:?}");
        }
    }
}

#[test]
fn a_list_is_judged_like_its_items() {
    let stage = Stage::new("", &["member"], true);
    let subject = Caller::new("acme", format!("key:{KEY}"));
    let resources = [Resource::Plan("a"), Resource::Server];
    let all = stage.policy.decide_all(&subject, Act::Read, &resources);
    let all: Vec<String> = all.iter().map(said).collect();
    assert_eq!(all, ["allow role:member", "deny"]);
    let other = Caller::new("other", format!("key:{KEY}"));
    assert!(!stage.policy.decide_all(&other, Act::Read, &resources)[0].allows());
}

#[test]
fn what_is_left_of_records_is_cached_with_the_decision() {
    let text = "@id(\"own\") @rows(\"region:${region}\") @hide(\"cost\")\n\
                forbid(principal, action, resource is RecordType);\n\
                @id(\"later\") @rows(\"total:<#5\")\n\
                forbid(principal, action == Action::\"save\", resource is RecordType)\n\
                when { context.now > datetime(\"2020-01-01\") };";
    let stage = Stage::new(text, &["member"], true);
    let subject = Caller::new("acme", format!("key:{KEY}"));
    let context = Context::default();
    for (act, name, rows) in [
        (Act::Read, "shop.Order", "region:${region}"),
        (Act::Read, "shop.Customer", "region:${region}"),
        (Act::Save, "shop.Order", "region:${region} total:<#5"),
    ] {
        let resource = Resource::RecordType(name);
        let decision = stage.decides(&Request { act, subject: &subject, resource, context });
        assert!(decision.allows(), "{act:?} {name}");
        assert_eq!(decision.rows().join(" "), rows, "{act:?} {name}");
        assert_eq!(decision.hidden().join(" "), "cost", "{act:?} {name}");
        let listed = stage.policy.decide_all(&subject, act, &[resource]);
        assert_eq!(listed, [decision], "{act:?} {name}");
    }
}
