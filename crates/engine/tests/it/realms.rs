//! Servers behind this one are there for one realm: in the others they and their tools are like
//! what does not exist, whatever policy says.

use crate::world::{WAIT_MS, caller, files, parts};
use engine::{
    AllowAll, CallReport, Engine, ListChanges, Parts, Refusal, RefusalCode, RunReport, RunRequest,
    RunSession, RunTarget, ToolSource, UpstreamRealms,
};
use futures::future::BoxFuture;
use kernel::contracts::Tool;
use kernel::contracts::policy::Resource;
use kernel::definition::plan::mistake::Mistake;
use kernel::identity::grants::RealmPattern;
use kernel::limits::Limits;
use kernel::tool::call::{
    Call, Caller, ToolError, ToolOutput, ToolSpec, Upstream, UpstreamProtocol,
};
use kernel::values::caller::Act;
use kernel::values::ids::RealmId;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

/// Gives back what it got.
struct Echo {
    spec: Arc<ToolSpec>,
    /// The server that it is of.
    upstream: Option<Upstream>,
}

impl Tool for Echo {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }
    fn upstream(&self) -> Option<Upstream> {
        self.upstream.clone()
    }
    fn call<'a>(
        &'a self,
        _caller: &'a Caller,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move { Ok(ToolOutput::Value(call.arguments["value"].clone())) })
    }
}

fn echo(name: &str, upstream: Option<&str>) -> Arc<dyn Tool> {
    let spec = Arc::new(ToolSpec {
        description: String::new(),
        idempotent: true,
        ..testkit::specs::tool(name)
    });
    let upstream =
        upstream.map(|name| Upstream { name: name.into(), speaks: UpstreamProtocol::Other });
    Arc::new(Echo { spec, upstream })
}

/// What is listed as `shop.find` from now on, as a tool of a server or one of ours.
fn shop(engine: &Engine, upstream: Option<&str>) {
    let source = ToolSource::new("upstream `shop`", vec![echo("shop.find", upstream)]);
    assert_eq!(engine.tools().replace(source), []);
}

/// An engine with `math::echo`, and with `shop.find` of a server that is there for the realm of
/// `caller` alone, where policy is asked or allows everything.
fn engine(folder: &Path, is_free: bool) -> Engine {
    let ours = ToolSource::new("us", vec![echo("math::echo", None)]);
    let parts = Parts {
        awaited: vec!["shop.".to_owned()],
        upstreams_of: Some(UpstreamRealms::only(caller().realm)),
        ..parts(folder, Limits::default(), vec![ours])
    };
    let parts = match is_free {
        true => Parts { policy: Arc::new(AllowAll), ..parts },
        false => parts,
    };
    let engine = Engine::start(parts).unwrap();
    shop(&engine, Some("shop"));
    engine
}

/// The same subject in another realm.
fn stranger() -> Caller {
    Caller { realm: RealmId::from("acme"), ..caller() }
}

fn calling(tool: &str) -> Value {
    json!({"planId": "own", "steps": [
        {"id": "call", "type": "tool_call", "toolId": tool, "arguments": {}, "nextStepId": "end"},
        {"id": "end", "type": "final_response", "message": "ok"},
    ]})
}

async fn run(engine: &Engine, who: &Caller, target: RunTarget) -> Result<RunReport, Refusal> {
    let request = RunRequest {
        target,
        input: json!({}),
        session: RunSession::New,
        once: None,
        about: Default::default(),
    };
    engine.runs().start(who, request, WAIT_MS).await
}

#[tokio::test(flavor = "multi_thread")]
async fn upstream_tools_exist_in_one_realm_only() {
    for is_free in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let engine = engine(folder.path(), is_free);
        let here = caller();
        let there = stranger();
        let tools = engine.tools();
        let listed = |who: &Caller| -> Vec<String> {
            tools.list(who).iter().map(|spec| spec.name.to_string()).collect()
        };
        assert_eq!(listed(&here), ["math::echo", "shop.find"]);
        assert_eq!(listed(&there), ["math::echo"]);
        assert_eq!(listed(&there), ["math::echo"], "as it was remembered");
        assert!(tools.get(&here, "shop.find").is_some());
        assert!(tools.callable(&there, "shop.find").is_none());
        let done = tools.call(&here, &"shop.find".into(), json!({"value": 7}), WAIT_MS).await;
        assert_eq!(done, Ok(CallReport::Done(json!(7))));
        let told = async |name: &str| {
            let called = tools.call(&there, &name.into(), json!({}), WAIT_MS).await;
            let refusal = called.unwrap_err();
            (refusal.code, refusal.message.replace(name, ""), refusal.hint)
        };
        assert_eq!(told("shop.find").await, told("shup.find").await);
        assert_eq!(told("shop.find").await.0, RefusalCode::NotFound);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_of_another_realm_cannot_use_upstream_tools() {
    for is_free in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let engine = engine(folder.path(), is_free);
        let here = caller();
        let there = stranger();
        let done = run(&engine, &here, RunTarget::Inline(calling("shop.find"))).await.unwrap();
        assert_eq!(done.run.status.name(), "completed");
        // What may come later is awaited where it can come to.
        let said = |who: &Caller, tool: &str| {
            let said = engine.catalog().validate_plan(who, &calling(tool));
            let words = |found: Vec<Mistake>| -> Vec<String> {
                found.iter().map(|one| one.to_string().replace(tool, "")).collect()
            };
            said.map(words).map_err(words)
        };
        assert!(said(&here, "shop.later").is_ok());
        for tool in ["shop.find", "shop.later"] {
            assert_eq!(said(&there, tool), said(&there, "shup.find"), "{tool}");
            assert!(said(&there, tool).is_err(), "{tool}");
            let refusal = run(&engine, &there, RunTarget::Inline(calling(tool))).await.unwrap_err();
            assert_eq!(refusal.code, RefusalCode::InvalidPlan, "{tool}");
        }
        // A plan that is in the catalog already calls a tool that is not there.
        shop(&engine, None);
        let plan = "planId: late\nsteps: [{id: call, type: tool_call, toolId: shop.find, \
            arguments: {}, nextStepId: end}, {id: end, type: final_response, message: ok}]";
        engine.catalog().load_plans(&there.realm, files(&[plan])).unwrap();
        shop(&engine, Some("shop"));
        let report = run(&engine, &there, RunTarget::Plan("late".into())).await.unwrap();
        let fault = report.run.last_error.unwrap();
        assert_eq!(fault.name, "ToolNotFoundError");
        assert!(fault.message.contains("`shop.find`"), "{fault:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn upstreams_of_other_realms_are_denied_singly_and_in_lists() {
    for is_free in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let engine = engine(folder.path(), is_free);
        let here = caller();
        let there = stranger();
        let admin = engine.admin();
        let shop = Resource::Upstream("shop");
        let sink = Resource::Sink("out");
        for act in [Act::Read, Act::Operate, Act::LogIn] {
            assert!(admin.permit(&here, act, shop).is_ok(), "{act:?}");
            let refusal = admin.permit(&there, act, shop).unwrap_err();
            assert_eq!(refusal.code, RefusalCode::Forbidden(act));
            assert!(admin.permit(&there, act, sink).is_ok(), "{act:?}");
        }
        assert!(admin.reads(&here, shop) && !admin.reads(&there, shop));
        let read = |who: &Caller| {
            let both = vec![("shop", true), ("out", false)];
            admin.readable(who, both, |(name, is_server)| match is_server {
                true => Resource::Upstream(name),
                false => Resource::Sink(name),
            })
        };
        assert_eq!(read(&here), [("shop", true), ("out", false)]);
        assert_eq!(read(&there), [("out", false)]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_realm_is_notified_only_of_its_own_changes() {
    let folder = tempfile::tempdir().unwrap();
    let engine = engine(folder.path(), true);
    let here = caller();
    let there = stranger();
    let catalog = engine.catalog();
    let mut versions = [&here, &there].map(|who| catalog.version(&who.realm));
    let mut heard = || {
        versions.each_mut().map(|version| {
            let is_new = version.has_changed().unwrap();
            version.mark_unchanged();
            is_new
        })
    };
    assert_eq!(heard(), [false, false]);
    shop(&engine, Some("shop"));
    assert_eq!(heard(), [true, false], "the server is there for one realm");
    // A server without tools may have other prompts and resources now.
    for _ in 0..2 {
        assert_eq!(engine.tools().replace(ToolSource::new("upstream `shop`", Vec::new())), []);
        assert_eq!(heard(), [true, false]);
    }
    shop(&engine, None);
    assert_eq!(heard(), [true, true], "a tool of ours comes");
    shop(&engine, Some("shop"));
    assert_eq!(heard(), [true, true], "and goes");

    let plan = "planId: own\nsteps: [{id: end, type: final_response, message: ok}]";
    catalog.load_plans(&there.realm, files(&[plan])).unwrap();
    assert_eq!(heard(), [false, true]);
    catalog.register_plan(&here, calling("math::echo"), None).await.unwrap();
    assert_eq!(heard(), [true, false]);
    let agent = json!({"refName": "desk", "llmConfigRef": "any"});
    catalog.register_agent(&there, agent, None).await.unwrap();
    assert_eq!(heard(), [false, true]);
    catalog.remove_agent(&there, &"desk".into()).await.unwrap();
    assert_eq!(heard(), [false, true]);

    // Prompts and resources of servers are not in the catalog.
    let lists = || [&here, &there].map(|who| *catalog.list_changes(&who.realm).borrow());
    let before = lists();
    let prompts = ListChanges { prompts: 1, ..ListChanges::default() };
    catalog.tell_lists(None, "shop", prompts);
    let now = lists();
    assert_eq!(now[0].since(before[0]), prompts);
    assert_eq!(now[1], before[1], "the server is there for one realm");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_is_visible_in_the_realms_that_it_names() {
    let folder = tempfile::tempdir().unwrap();
    let ours = ToolSource::new("us", vec![echo("math::echo", None)]);
    let acme = [RealmPattern::parse("acme*").unwrap()];
    let owners = UpstreamRealms::only(caller().realm).with("shop", "shop.".to_owned(), &acme);
    let parts = Parts {
        awaited: vec!["shop.".to_owned(), "far.".to_owned()],
        upstreams_of: Some(owners),
        policy: Arc::new(AllowAll),
        ..parts(folder.path(), Limits::default(), vec![ours])
    };
    let engine = Engine::start(parts).unwrap();
    for name in ["shop", "far"] {
        let tool = echo(&format!("{name}.find"), Some(name));
        let source = ToolSource::new(format!("upstream `{name}`"), vec![tool]).of_upstream(name);
        assert_eq!(engine.tools().replace(source), []);
    }
    let here = caller();
    let there = stranger();
    let listed = |who: &Caller| -> Vec<String> {
        engine.tools().list(who).iter().map(|spec| spec.name.to_string()).collect()
    };
    assert_eq!(listed(&here), ["far.find", "math::echo"]);
    assert_eq!(listed(&there), ["math::echo", "shop.find"]);
    let may = |who: &Caller, name: &str| {
        engine.admin().permit(who, Act::Operate, Resource::Upstream(name)).is_ok()
    };
    assert!(may(&here, "far") && !may(&here, "shop"));
    assert!(may(&there, "shop") && !may(&there, "far"));
    let is_sound =
        |who: &Caller, tool: &str| engine.catalog().validate_plan(who, &calling(tool)).is_ok();
    assert!(is_sound(&there, "shop.later") && !is_sound(&there, "far.later"));
    assert!(is_sound(&here, "far.later") && !is_sound(&here, "shop.later"));

    // Who is elsewhere does not hear of it, also where no tool is left.
    let mut versions = [&here, &there].map(|who| engine.catalog().version(&who.realm));
    let gone = ToolSource::new("upstream `shop`", Vec::new()).of_upstream("shop");
    assert_eq!(engine.tools().replace(gone), []);
    assert_eq!(versions.each_mut().map(|version| version.has_changed().unwrap()), [false, true]);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_realms_can_have_upstreams_of_the_same_name() {
    let folder = tempfile::tempdir().unwrap();
    let ours = ToolSource::new("us", vec![echo("math::echo", None), echo("crm.taken", None)]);
    let here = caller();
    let there = stranger();
    let beginning = || Some("crm.".to_owned());
    let owners = UpstreamRealms::only(here.realm.clone())
        .owning(&here.realm, "crm", beginning())
        .owning(&there.realm, "crm", beginning())
        .owning(&there.realm, "idle", None);
    let parts = Parts {
        upstreams_of: Some(owners),
        policy: Arc::new(AllowAll),
        ..parts(folder.path(), Limits::default(), vec![ours])
    };
    let engine = Engine::start(parts).unwrap();
    let source = |who: &Caller, names: &[&str]| {
        let tools = names.iter().map(|name| echo(name, Some("crm"))).collect();
        let name = format!("stored provider `crm` of realm `{}`", who.realm);
        ToolSource::new(name, tools).of_upstream("crm").for_realm(&who.realm)
    };
    let mut versions = [&here, &there].map(|who| engine.catalog().version(&who.realm));
    let mut heard = || {
        versions.each_mut().map(|version| {
            let has_changed = version.has_changed().unwrap();
            version.mark_unchanged();
            has_changed
        })
    };
    heard();
    assert_eq!(engine.tools().replace(source(&here, &["crm.find", "crm.own"])), []);
    assert_eq!(heard(), [true, false]);
    let told = engine.tools().replace(source(&there, &["crm.find", "crm.taken"]));
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].to_string().contains("`crm.taken` comes from us and from stored provider"));
    assert_eq!(heard(), [false, true]);
    let listed = |who: &Caller| -> Vec<String> {
        engine.tools().list(who).iter().map(|spec| spec.name.to_string()).collect()
    };
    assert_eq!(listed(&here), ["crm.find", "crm.own", "crm.taken", "math::echo"]);
    assert_eq!(listed(&there), ["crm.find", "crm.taken", "math::echo"]);
    let count = |who: &Caller| {
        engine.tools().count_of(&format!("stored provider `crm` of realm `{}`", who.realm))
    };
    assert_eq!((count(&here), count(&there)), (2, 1));
    let is_sound =
        |who: &Caller, tool: &str| engine.catalog().validate_plan(who, &calling(tool)).is_ok();
    assert!(is_sound(&there, "crm.later") && !is_sound(&there, "idle.later"));
    assert!(!is_sound(&there, "crm2.later"));

    // One goes alone, and nothing is awaited of it any more.
    assert_eq!(engine.tools().replace(source(&there, &[])), []);
    engine.catalog().disown_upstream(&there.realm, "crm");
    assert_eq!(listed(&there), ["crm.taken", "math::echo"]);
    assert_eq!(listed(&here).len(), 4);
    assert!(!is_sound(&there, "crm.later") && is_sound(&here, "crm.later"));
    let may = |who: &Caller, name: &str| {
        engine.admin().permit(who, Act::Operate, Resource::Upstream(name)).is_ok()
    };
    assert!(may(&there, "idle") && !may(&there, "crm"));
}
