//! What is set for a realm narrows what policy allows there, and nothing elsewhere.

use super::{Stage, grants, root};
use crate::policy::RolePolicy;
use crate::realm_policy::RealmPolicy;
use crate::{Identity, IdentityParts};
use kernel::contracts::policy::{
    Answerer, Context, Decision, Obligation, Policy, Request, Resource, SessionFacts,
};
use kernel::identity::principal::Principal;
use kernel::identity::realm::{RealmSettings, Realms};
use kernel::identity::roles::Role;
use kernel::tool::call::{ToolSpec, Verdict};
use kernel::tool::rules::Pattern;
use kernel::values::caller::{Act, Caller};
use std::sync::Arc;

fn tool(name: &str) -> ToolSpec {
    ToolSpec { input_schema: Arc::default(), idempotent: true, ..testkit::specs::tool(name) }
}

/// An identity in whose realm `acme` this is set; `ann` is an operator there and elsewhere,
/// `service` a member and `eve` a viewer.
async fn within(settings: RealmSettings) -> (Arc<Identity>, RealmPolicy) {
    let stage = Stage::open().await;
    let ann = Principal::new("ann", grants("*", &[Role::Operator]));
    let service = Principal::new("service", grants("acme", &[Role::Member]));
    let boss = Principal::new("boss", grants("acme", &[Role::Admin]));
    let eve = Principal::new("eve", grants("acme", &[Role::Viewer]));
    let file = [ann, service, boss, eve].map(Arc::new).into();
    let realms = Realms([("acme".into(), settings)].into());
    let parts = IdentityParts { realms, ..stage.parts(Vec::new(), file) };
    let identity = Identity::open(parts).await.unwrap();
    let roles = Arc::new(RolePolicy::new(identity.clone()));
    let policy = RealmPolicy::new(roles, identity.clone());
    (identity, policy)
}

fn allows(policy: &RealmPolicy, realm: &str, act: Act, resource: Resource<'_>) -> bool {
    let subject = &Caller::new(realm, "ann");
    let context = Context::default();
    let request = Request { act, subject, resource, context };
    let decision = policy.decide(&request);
    assert_eq!(policy.ruling(&request), decision.ruling(), "a ruling is that of the decision");
    let allowed = decision.allows();
    let listed = policy.decide_all(subject, act, &[resource]);
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].allows(), allowed, "a list is judged like one of it");
    allowed
}

#[tokio::test]
async fn only_enabled_tools_can_be_called_in_a_realm() {
    let only = vec![Pattern::new("math::*").unwrap()];
    let settings = RealmSettings { enabled_tools: Some(only), ..RealmSettings::default() };
    let (_, policy) = within(settings).await;
    let add = tool("math::add");
    let fail = tool("test::fail");
    let calls =
        |realm: &str, tool: &ToolSpec| allows(&policy, realm, Act::Call, Resource::Tool(tool));
    assert!(calls("acme", &add) && !calls("acme", &fail));
    assert!(calls("other", &add) && calls("other", &fail));
    assert!(allows(&policy, "acme", Act::Run, Resource::Plan("a")), "plans are no tools");
    assert!(policy.answerers().is_some() && policy.version().is_some());
    let service = Caller::new("acme", "service");
    assert!(policy.is_named(&service, "role:member"), "who answers, the policy inside says");
    assert!(!policy.is_other(&service, "service"));
}

#[tokio::test]
async fn only_enabled_agents_and_pipelines_exist_in_a_realm() {
    let only = |name: &str| Some(vec![Pattern::new(name).unwrap()]);
    let settings = RealmSettings {
        enabled_agents: only("desk*"),
        enabled_pipelines: only("trades"),
        enabled_models: only("fast"),
        max_find_limit: Some(10),
        ..RealmSettings::default()
    };
    let (_, policy) = within(settings.clone()).await;
    for act in [Act::Read, Act::Talk] {
        let can = |realm: &str, name: &str| allows(&policy, realm, act, Resource::Agent(name));
        assert!(can("acme", "desk-eu") && !can("acme", "sales") && can("other", "sales"));
    }
    for act in [Act::Read, Act::Submit] {
        let can = |realm: &str, name: &str| allows(&policy, realm, act, Resource::Pipeline(name));
        assert!(can("acme", "trades") && !can("acme", "other") && can("other", "other"));
    }
    let definition = Resource::Definition { kind: "agent", name: "sales", defined_by: None };
    assert!(allows(&policy, "acme", Act::Define, definition), "it can be defined");
    assert_eq!(policy.settings(&"acme".into()), settings);
    assert_eq!(policy.settings(&"other".into()), RealmSettings::default());
}

#[tokio::test]
async fn settings_without_restrictions_leave_an_open_policy_open() {
    let open = |settings: RealmSettings| async move {
        let (identity, _) = within(settings).await;
        RealmPolicy::new(Arc::new(Open), identity).allows_everything()
    };
    let limited = RealmSettings { max_find_limit: Some(10), ..RealmSettings::default() };
    assert!(open(limited).await);
    let closed = RealmSettings { enabled_agents: Some(Vec::new()), ..RealmSettings::default() };
    assert!(!open(closed).await);
}

/// Everyone may do everything.
struct Open;

impl Policy for Open {
    fn decide(&self, _request: &Request<'_>) -> Decision {
        Decision::allow()
    }

    fn allows_everything(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn the_principal_that_a_realm_acts_as_must_be_allowed_too() {
    let run_as = |id: &str| RealmSettings { run_as: Some(id.into()), ..RealmSettings::default() };
    let (identity, policy) = within(run_as("service")).await;
    let add = tool("math::add");
    let own = SessionFacts {
        owner: Some("ann"),
        space: "session",
        plan: None,
        agent: None,
        pipeline: None,
        id: None,
    };
    let calls = || allows(&policy, "acme", Act::Call, Resource::Tool(&add));
    assert!(calls());
    // What a member may not do is no matter where it is the caller's own.
    assert!(allows(&policy, "acme", Act::Answer, Resource::Session(own)));
    assert!(allows(&policy, "acme", Act::Operate, Resource::Server));
    assert_eq!(identity.directory().stuck_realms().count(), 0);
    identity.disable_principal(&root(), "service").await.unwrap();
    assert!(!calls(), "it fails closed");
    assert!(allows(&policy, "other", Act::Call, Resource::Tool(&add)));
    assert_eq!(identity.directory().stuck_realms().count(), 1);
    for unusable in ["nobody", "boss", "admin"] {
        let (_, policy) = within(run_as(unusable)).await;
        assert!(!allows(&policy, "acme", Act::Talk, Resource::Agent("desk")), "{unusable}");
    }
}

#[tokio::test]
async fn the_principal_that_a_realm_acts_as_gives_callers_no_rights() {
    let settings = RealmSettings { run_as: Some("service".into()), ..RealmSettings::default() };
    let (_, policy) = within(settings).await;
    let add = tool("math::add");
    for who in ["eve", "zoe"] {
        let subject = &Caller::new("acme", who);
        let context = Context::default();
        for (act, resource) in [(Act::Call, Resource::Tool(&add)), (Act::Run, Resource::Plan("a"))]
        {
            let said = policy.decide(&Request { act, subject, resource, context });
            assert!(!said.allows(), "`{who}` does what the realm's own subject may");
        }
    }
}

/// Gives the caller and who the realm acts as a verdict and an obligation each.
struct Obliging {
    caller: Verdict,
    service: Verdict,
}

impl Policy for Obliging {
    fn decide(&self, request: &Request<'_>) -> Decision {
        let (verdict, obligation) = match &*request.subject.subject {
            "service" => (&self.service, Obligation::Other),
            _ => (&self.caller, only_the_boss()),
        };
        Decision { obligations: vec![obligation], ..Decision::from(verdict.clone()) }
    }
}

fn only_the_boss() -> Obligation {
    Obligation::Answerers(vec![Answerer::Role("boss".into())])
}

#[tokio::test]
async fn what_must_hold_for_a_caller_holds_where_its_realm_acts_as_another() {
    let settings = RealmSettings { run_as: Some("service".into()), ..RealmSettings::default() };
    let (identity, _) = within(settings).await;
    let add = tool("math::add");
    let decide = |caller: &Verdict, service: &Verdict| {
        let said = Obliging { caller: caller.clone(), service: service.clone() };
        let policy = RealmPolicy::new(Arc::new(said), identity.clone());
        let subject = &Caller::new("acme", "ann");
        let resource = Resource::Tool(&add);
        let context = Context::default();
        policy.decide(&Request { act: Act::Call, subject, resource, context })
    };
    let allow = Verdict::Allow;
    let ask = Verdict::Ask("it costs money".to_owned());
    for (caller, service, verdict) in
        [(&allow, &allow, &allow), (&allow, &ask, &ask), (&ask, &allow, &ask), (&ask, &ask, &ask)]
    {
        let decision = decide(caller, service);
        assert_eq!(decision.verdict, *verdict);
        let both = vec![only_the_boss(), Obligation::Other];
        assert_eq!(decision.obligations, both, "caller: {caller:?}, service: {service:?}");
    }
    let deny = Verdict::Deny("no".to_owned());
    assert_eq!(decide(&allow, &deny).verdict, deny);
}

/// Says of records what the built-in roles say, with a row filter and hidden fields of each
/// subject's own.
struct Narrowing;

impl Policy for Narrowing {
    fn decide(&self, request: &Request<'_>) -> Decision {
        let subject = &*request.subject.subject;
        let own = |word: &str| Arc::<str>::from(format!("{word}-{subject}"));
        Decision {
            obligations: vec![
                Obligation::Rows(format!("owner:{subject}").into()),
                Obligation::Hide([own("cost"), "margin".into()].into()),
            ],
            policies: vec![own("policy")],
            ..Decision::allow()
        }
    }
}

#[tokio::test]
async fn records_are_reached_within_what_the_caller_and_who_the_realm_acts_as_may_reach() {
    let settings = RealmSettings { run_as: Some("service".into()), ..RealmSettings::default() };
    let (identity, roles) = within(settings).await;
    let policy = RealmPolicy::new(Arc::new(Narrowing), identity.clone());
    let subject = &Caller::new("acme", "ann");
    let context = Context::default();
    let orders = Resource::RecordType("shop.Order");
    for act in [Act::Read, Act::Save, Act::Remove] {
        let decision = policy.decide(&Request { act, subject, resource: orders, context });
        assert!(decision.allows());
        assert_eq!(decision.rows().join(" "), "owner:ann owner:service", "{act:?}");
        assert_eq!(decision.hidden().join(" "), "cost-ann margin cost-service", "{act:?}");
        assert_eq!(decision.policies.join(" "), "policy-ann policy-service", "{act:?}");
        let listed = policy.decide_all(subject, act, &[orders]);
        assert_eq!(listed, [decision], "a list is judged like one of it");
    }
    let other = Request { act: Act::Read, subject, resource: Resource::Sink("out"), context };
    assert_eq!(policy.decide(&other).rows().join(" "), "owner:ann", "it is the caller's own");
    for act in [Act::Read, Act::Save, Act::Remove] {
        assert!(allows(&roles, "acme", act, orders), "both may: {act:?}");
    }
    identity.disable_principal(&root(), "service").await.unwrap();
    for act in [Act::Read, Act::Save, Act::Remove] {
        assert!(!allows(&roles, "acme", act, orders), "it fails closed: {act:?}");
        assert!(allows(&roles, "other", act, orders), "{act:?}");
    }
}

#[tokio::test]
async fn a_realm_that_acts_as_a_viewer_saves_no_records() {
    let settings = RealmSettings { run_as: Some("eve".into()), ..RealmSettings::default() };
    let (_, policy) = within(settings).await;
    let orders = Resource::RecordType("shop.Order");
    assert!(allows(&policy, "acme", Act::Read, orders));
    assert!(!allows(&policy, "acme", Act::Save, orders));
    assert!(!allows(&policy, "acme", Act::Remove, orders));
}
