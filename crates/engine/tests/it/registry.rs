//! What is taken in at the start: names that clash and schemas that cannot be used are reported
//! then, with the tool and who brought it.

use crate::world::{WAIT_MS, World, caller, files, parts};
use engine::{CallReport, CallRequest, Engine, Parts, RefusalKind, ToolSource};
use futures::future::BoxFuture;
use kernel::contracts::policy::{Decision, Request};
use kernel::contracts::{Policy, Tool};
use kernel::limits::Limits;
use kernel::tool::call::{Call, Caller, Reach, ToolError, ToolOutput, ToolSpec};
use kernel::tool::rules::{Pattern, ToolRules};
use kernel::values::ids::RealmId;
use serde_json::{Value, json};
use std::sync::Arc;

/// Gives back what it got, unless it is `odd`, or `secret` and not asked for by `ann`.
struct Echo(Arc<ToolSpec>);

impl Tool for Echo {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.0
    }
    fn check(&self, caller: &Caller, arguments: &Value) -> Result<(), ToolError> {
        if arguments["value"] == json!("odd") {
            return Err(ToolError::not_sent("Odd", "this is odd"));
        }
        if arguments["value"] == json!("secret") && &*caller.subject != "ann" {
            return Err(ToolError::not_sent("Secret", "this is for `ann`"));
        }
        Ok(())
    }
    fn call<'a>(
        &'a self,
        _caller: &'a Caller,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move { Ok(ToolOutput::Value(call.arguments["value"].clone())) })
    }
}

fn echo(name: &str, input: Value, output: Option<Value>) -> Arc<dyn Tool> {
    Arc::new(Echo(Arc::new(ToolSpec {
        description: String::new(),
        input_schema: Arc::new(input),
        output_schema: output.map(Arc::new),
        idempotent: true,
        ..testkit::specs::tool(name)
    })))
}

fn plain(name: &str) -> Arc<dyn Tool> {
    echo(name, json!({"type": "object"}), None)
}

/// What is reported of these tools at the start.
fn told(sources: Vec<ToolSource>) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let started = Engine::start(parts(folder.path(), Limits::default(), sources));
    started.err().unwrap().iter().map(ToString::to_string).collect()
}

fn from_us(tools: Vec<Arc<dyn Tool>>) -> Vec<ToolSource> {
    vec![ToolSource::new("us", tools)]
}

#[tokio::test(flavor = "multi_thread")]
async fn duplicate_tool_names_refuse_the_start() {
    let sources = vec![
        ToolSource::new("the built-in tools", vec![plain("a::b"), plain("c")]),
        ToolSource::new("upstream `x`", vec![plain("a::b"), plain("c")]),
    ];
    assert_eq!(
        told(sources),
        [
            "error: tool `a::b` comes from the built-in tools and from upstream `x`; \
             hint: give one of them another name",
            "error: tool `c` comes from the built-in tools and from upstream `x`; \
             hint: give one of them another name",
        ]
    );
    let twice = told(from_us(vec![plain("a"), plain("a")]));
    assert!(twice[0].contains("tool `a` comes twice from us"), "{twice:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_name_must_be_valid_at_every_endpoint() {
    let long = "x".repeat(128);
    let tools = vec![plain(""), plain(&format!("{long}y")), plain(&"ü".repeat(30)), plain(&long)];
    let told = told(from_us(tools));
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told[0].contains("the name is empty"), "{told:?}");
    assert!(told[1].contains("129 characters"), "{told:?}");
    // Each of its bytes is four characters there.
    assert!(told[2].contains("240 characters"), "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn uncallable_names_and_endless_schemas_are_reported() {
    let both = json!({"anyOf": [{"$ref": "#/$defs/next"}, {"$ref": "#/$defs/next"}]});
    let circle = json!({"$ref": "#/$defs/next", "$defs": {"next": both}});
    let tools = vec![
        plain("bell\u{7}"),
        echo("in", circle.clone(), None),
        echo("out", json!({"type": "object"}), Some(circle)),
    ];
    let why = "cannot be used: the schema is too complex: a reference leads back to where it \
               stands without going into the value; hint: ";
    let told = told(from_us(tools));
    let [bell, input, output] = told.as_slice() else { panic!("{told:?}") };
    let start = "error: tool `bell\\u{7}` of us cannot be called: the name has a control character";
    assert!(bell.starts_with(start), "{bell}");
    assert!(input.starts_with(&format!("error: the input schema of tool `in` of us {why}")));
    assert!(output.starts_with(&format!("error: the output schema of tool `out` of us {why}")));
}

#[tokio::test(flavor = "multi_thread")]
async fn schemas_compile_at_the_start_and_fetch_nothing() {
    let object = || json!({"type": "object"});
    let remote = json!({"type": "object", "properties": {
        "a": {"$ref": "http://127.0.0.1:9/schema.json"}}});
    let file = json!({"$ref": "file:///schema.json"});
    let old = json!({"$schema": "http://json-schema.org/draft-04/schema#"});
    let tools = vec![
        echo("remote", remote, None),
        echo("file", object(), Some(file)),
        echo("old", old, None),
        echo("wrong", object(), Some(json!({"type": 12}))),
        echo("right", json!({"$defs": {"a": {"type": "object"}}, "$ref": "#/$defs/a"}), None),
    ];
    let told = told(from_us(tools));
    assert_eq!(told.len(), 4, "{told:?}");
    for (line, start) in told.iter().zip([
        "error: the input schema of tool `remote` of us cannot be used: ",
        "error: the output schema of tool `file` of us cannot be used: ",
        "error: the input schema of tool `old` of us cannot be used: ",
        "error: the output schema of tool `wrong` of us cannot be used: ",
    ]) {
        assert!(line.starts_with(start) && line.contains("; hint: "), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn inputs_and_outputs_are_validated_in_both_schema_drafts() {
    let folder = tempfile::tempdir().unwrap();
    let seven = "http://json-schema.org/draft-07/schema#";
    let newest = "https://json-schema.org/draft/2020-12/schema";
    // The same keyword means two things: `items` as a list is draft 7, `prefixItems` is 2020-12.
    let types = || json!([{"type": "string"}, {"type": "number"}]);
    let pair = |draft: &str, keyword: &str| json!({"$schema": draft, keyword: types()});
    let wrapped = |draft: &str, keyword: &str| {
        let pair = json!({keyword: types()});
        json!({"$schema": draft, "type": "object", "properties": {"value": pair}})
    };
    let object = || json!({"type": "object"});
    let tools = vec![
        echo("in7", wrapped(seven, "items"), None),
        echo("in2020", wrapped(newest, "prefixItems"), None),
        echo("out7", object(), Some(pair(seven, "items"))),
        echo("out2020", object(), Some(pair(newest, "prefixItems"))),
    ];
    let engine = Engine::start(parts(folder.path(), Limits::default(), from_us(tools))).unwrap();
    for tool in ["in7", "in2020", "out7", "out2020"] {
        let call = async |value: Value| {
            engine.tools().call(&caller(), &tool.into(), json!({"value": value}), WAIT_MS).await
        };
        assert_eq!(call(json!(["a", 1])).await, Ok(CallReport::Done(json!(["a", 1]))), "{tool}");
        let refused = call(json!([1, "a"])).await.unwrap_err();
        if tool.starts_with("in") {
            assert_eq!(refused.errors[0].pointer, "/value/0", "{tool}");
        } else {
            assert!(refused.message.contains("is not as promised"), "{}", refused.message);
        }
    }
}

/// Is asked what there is, and never about a call.
struct Unasked;

impl Policy for Unasked {
    fn decide(&self, request: &Request<'_>) -> Decision {
        assert!(
            request.context.arguments.is_none(),
            "policy was asked about a call that cannot run"
        );
        Decision::allow()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tools_own_check_goes_before_policy() {
    let folder = tempfile::tempdir().unwrap();
    let brought = parts(folder.path(), Limits::default(), from_us(vec![plain("echo")]));
    let engine = Engine::start(Parts { policy: Arc::new(Unasked), ..brought }).unwrap();
    let arguments = json!({"value": "odd"});
    let refused =
        engine.tools().call(&caller(), &"echo".into(), arguments, 1_000).await.unwrap_err();
    assert_eq!(
        (refused.kind(), refused.message.as_str()),
        (RefusalKind::WrongShape, "this is odd")
    );
    assert_eq!(refused.fault.unwrap().name, "Odd");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tools_own_check_can_decide_by_who_calls() {
    let folder = tempfile::tempdir().unwrap();
    let brought = parts(folder.path(), Limits::default(), from_us(vec![plain("echo")]));
    let engine = Engine::start(brought).unwrap();
    let arguments = json!({"value": "secret"});
    let tool = "echo".into();
    let done = engine.tools().call(&caller(), &tool, arguments.clone(), WAIT_MS).await;
    assert_eq!(done, Ok(CallReport::Done(json!("secret"))));
    let eve = Caller::new("default", "eve");
    let refused = engine.tools().call(&eve, &tool, arguments, WAIT_MS).await.unwrap_err();
    assert_eq!(
        (refused.kind(), refused.message.as_str()),
        (RefusalKind::WrongShape, "this is for `ann`")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_cannot_have_the_name_of_a_tool() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[]).await;
    let realm = RealmId::from("default");
    let plan = |id: &str| {
        let steps = json!([{"id": "e", "type": "final_response", "message": "x"}]);
        json!({"planId": id, "steps": steps})
    };
    let text = plan("slow::read").to_string();
    let told = world.engine.catalog().load_plans(&realm, files(&[text.as_str()])).unwrap_err()[0]
        .to_string();
    let expected = "plan0.yaml: error: at `/planId`: a plan cannot have the id `slow::read`: it is \
                    the name of a tool; hint: give it another planId";
    assert_eq!(told, expected);
    for id in ["slow::read", "secret::write", &"x".repeat(129)] {
        let refused =
            world.engine.catalog().register_plan(&caller(), plan(id), None).await.unwrap_err();
        assert_eq!(
            (refused.code.name(), refused.errors[0].pointer.as_str()),
            ("invalid_plan", "/planId")
        );
    }
    let checked = |id: &str| world.engine.catalog().validate_plan(&caller(), &plan(id));
    assert!(checked("slow::read").is_err() && checked("slow::reads").is_ok());
    // Whether there is a tool that a caller does not see is none of its business.
    assert!(checked("secret::write").is_ok());
    assert!(world.engine.catalog().plans(&caller()).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn tool_rules_that_match_nothing_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let pattern = |text: &str| Pattern::new(text).unwrap();
    let rules = ToolRules {
        allow: Some(vec![pattern("*"), pattern("slow::*"), pattern("demo/*")]),
        deny: vec![pattern("secret::write"), pattern("slow::raed")],
        tools: vec![(pattern("trade/*"), Default::default())],
    };
    let plan = "planId: demo/a\nsteps: [{id: end, type: final_response, message: hi}]";
    let world = World::with_rules(folder.path(), &[plan], rules, Limits::default()).await;
    let told = world.engine.catalog().idle_rules();
    let told: Vec<String> = told.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "warning: `slow::raed` in `deny` of `[tools]` fits no tool and no plan; \
             hint: did you mean `slow::read`?",
            "warning: `trade/*` in `limits` of `[tools]` fits no tool and no plan; \
             hint: `waypost tool ls` lists the tools",
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn upstream_tools_can_be_added_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let ours = ToolSource::new("the test", vec![plain("math::echo")]);
    let parts = Parts {
        awaited: vec!["shop.".to_owned()],
        ..parts(folder.path(), Limits::default(), vec![ours])
    };
    let engine = Engine::start(parts).unwrap();
    // A plan may name a tool that is not there yet, and reaches as far as one can tell.
    let plan = "planId: late\nsteps: [{id: a, type: tool_call, toolId: shop.find, arguments: {}}]";
    let warnings = engine.catalog().load_plans(&RealmId::from("default"), files(&[plan])).unwrap();
    assert!(warnings[0].to_string().contains("`shop.find` is not there yet"), "{warnings:?}");
    let misspelt = plan.replace("shop.find", "shup.find").replace("late", "later");
    assert!(engine.catalog().load_plans(&RealmId::from("default"), files(&[&misspelt])).is_err());
    assert_eq!(engine.tools().callable(&caller(), "late").unwrap().reach, Reach::Writes);

    let mut version = engine.catalog().version(&RealmId::from("default"));
    version.mark_unchanged();
    let from_shop = |tools| engine.tools().replace(ToolSource::new("server `shop`", tools));
    assert_eq!(from_shop(vec![plain("shop.find"), plain("shop.sell")]), []);
    assert!(version.has_changed().unwrap());
    assert_eq!(engine.tools().callable(&caller(), "late").unwrap().reach, Reach::Reads);
    let listed = || -> Vec<String> {
        engine.tools().list(&caller()).iter().map(|spec| spec.name.to_string()).collect()
    };
    assert_eq!(listed(), ["math::echo", "shop.find", "shop.sell"]);
    let done =
        engine.tools().call(&caller(), &"shop.find".into(), json!({"value": 7}), WAIT_MS).await;
    assert_eq!(done, Ok(CallReport::Done(json!(7))));
    let found = engine.tools().find(&caller(), "shop.find").unwrap();

    // What clashes or cannot be used is left out and told; the rest is there.
    let bad = echo("shop.bad", json!({"type": 12}), None);
    let mistakes = from_shop(vec![plain("shop.find"), plain("math::echo"), bad]);
    let told: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("`math::echo` comes from the test and from server `shop`"));
    assert_eq!(listed(), ["math::echo", "shop.find"]);
    assert_eq!(from_shop(Vec::new()), []);
    assert_eq!(listed(), ["math::echo"]);
    let gone = engine.tools().call(&caller(), &"shop.find".into(), json!({}), WAIT_MS).await;
    assert_eq!(gone.unwrap_err().code.name(), "not_found");
    // One that was found before is not called after it is gone.
    engine.tools().end_arrivals();
    let request = CallRequest::new(found, json!({"value": 7}), WAIT_MS);
    let gone = engine.tools().call_with(&caller(), request).await.unwrap_err();
    assert!(gone.message.contains("tool `shop.find` is gone"), "{gone:?}");
}

/// Stands for all tools whose names begin with `shop.`.
struct Open(Arc<dyn Tool>);

impl Tool for Open {
    fn spec(&self) -> &Arc<ToolSpec> {
        self.0.spec()
    }
    fn is_open(&self) -> bool {
        true
    }
    fn opened(&self, name: &str) -> Option<Arc<dyn Tool>> {
        (name != "shop.gone").then(|| plain(name))
    }
    fn call<'a>(
        &'a self,
        caller: &'a Caller,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.0.call(caller, call)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unlisted_tools_can_be_called_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let denied = Pattern::new("shop.secret*").unwrap();
    let rules = ToolRules { deny: vec![denied], ..ToolRules::default() };
    let open: Arc<dyn Tool> = Arc::new(Open(plain("shop.*")));
    let sources = from_us(vec![plain("shop.find"), open]);
    let made = Parts { rules, ..parts(folder.path(), Limits::default(), sources) };
    let engine = Engine::start(made).unwrap();
    let listed: Vec<String> =
        engine.tools().list(&caller()).iter().map(|spec| spec.name.to_string()).collect();
    assert_eq!(listed, ["shop.find"]);
    let call = async |name: &str| {
        engine.tools().call(&caller(), &name.into(), json!({"value": 7}), WAIT_MS).await
    };
    for name in ["shop.find", "shop.sell", "shop.a.b"] {
        assert_eq!(call(name).await, Ok(CallReport::Done(json!(7))), "{name}");
    }
    let long = format!("shop.{}", "x".repeat(128));
    for name in ["shop.", "shop.gone", "shop.secrets", "other.sell", "shop.bell\u{7}", &long] {
        let refused = call(name).await.unwrap_err();
        assert_eq!(refused.code.name(), "not_found", "{name}");
    }
    assert_eq!(engine.tools().replace(ToolSource::new("us", vec![plain("shop.find")])), []);
    assert_eq!(call("shop.sell").await.unwrap_err().code.name(), "not_found");
}
