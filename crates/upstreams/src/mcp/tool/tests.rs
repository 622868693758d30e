//! Tools of a scripted server, in both eras.

mod passthrough;

use super::super::line::{Incoming, PeerError, PeerErrorKind};
use super::super::peer::Era;
use super::test_server::{Ear, Scene, call, called, caller, given, text, wants};
use futures::future::{Either, join, select};
use kernel::tool::call::{
    Abilities, Call, CallProgress, CallReporter, CallUpdate, InputRequest, InputResponses,
    LogLevel, OutputKind, Pace, RawFailure, Reach, ToolError, ToolOutput, UpstreamProtocol,
};
use serde_json::{Map, Value, json};
use std::pin::pin;
use std::sync::Arc;
use wire::jsonrpc::RpcError;
use wire::mcp::{META_LOG_LEVEL, META_SERVER};

fn form(message: &str) -> Value {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    json!({"message": message, "requestedSchema": schema})
}

fn accepted() -> Value {
    json!({"action": "accept", "content": {"name": "Ann"}})
}

/// A task that a call became.
fn working() -> Value {
    json!({"resultType": "task", "taskId": "1", "status": "working"})
}

/// The same task, done with this text.
fn completed(said: &str) -> Value {
    json!({"taskId": "1", "status": "completed", "result": text(said)})
}

#[test]
fn a_tool_has_the_spec_that_its_server_lists() {
    let scene = Scene::new(Era::Modern);
    let hints = json!({"readOnlyHint": true, "idempotentHint": true, "title": "T"});
    let more = json!({"annotations": hints, "outputSchema": {"type": "object"}, "icons": [1],
        "description": "does it", "execution": {"taskSupport": "optional"}});
    let tool = scene.tool(more.clone()).unwrap();
    let spec = tool.spec();
    assert_eq!((spec.name.as_str(), spec.title.as_str()), ("up.t", "T"));
    assert_eq!((spec.yields, spec.pace, spec.unrecorded), (OutputKind::Content, Pace::Slow, false));
    assert_eq!(spec.output_schema.as_deref(), Some(&json!({"type": "object"})));
    assert_eq!(spec.listed.as_ref().unwrap()["icons"], json!([1]));
    let upstream = tool.upstream().unwrap();
    let version = Some(scene.link.version().unwrap());
    assert_eq!((&*upstream.name, upstream.speaks), ("up", UpstreamProtocol::Mcp { version }));
    // It says that it reads, but no one says that it can be believed.
    assert_eq!((spec.reach, spec.idempotent), (Reach::Writes, false));
    let trusted = Scene::with(Era::Modern, |config, _| {
        config.trusted = true;
        config.journal = false;
        config.prefix = String::new();
    });
    let tool = trusted.tool(more).unwrap();
    let spec = tool.spec();
    assert_eq!((spec.reach, spec.idempotent, spec.unrecorded), (Reach::Reads, true, true));
    assert_eq!(spec.name.as_str(), "t");
    let tool = trusted.tool(json!({"annotations": {"idempotentHint": true}})).unwrap();
    assert_eq!((tool.spec().reach, tool.spec().idempotent), (Reach::Writes, true));
}

#[test]
fn invalid_tools_are_left_out() {
    let scene = Scene::new(Era::Legacy);
    let wrong = json!({"type": "object",
        "properties": {"a": {"type": "number", "x-mcp-header": "A"}}});
    for more in [
        json!({"name": 1}),
        json!({"name": ""}),
        json!({"inputSchema": null}),
        json!({"inputSchema": wrong}),
    ] {
        assert!(scene.tool(more.clone()).is_none(), "{more}");
    }
}

#[test]
fn a_tool_that_requires_unsupported_tasks_is_left_out() {
    let required = json!({"execution": {"taskSupport": "required"}});
    assert!(Scene::new(Era::Modern).tool(required.clone()).is_some());
    assert!(Scene::new(Era::Legacy).tool(required).is_none(), "nobody could call it");
    let optional = json!({"execution": {"taskSupport": "optional"}});
    assert!(Scene::new(Era::Legacy).tool(optional).is_some());
}

#[test]
fn a_result_is_passed_on_as_it_came() {
    let Scene { stage, server: mut other, link } = Scene::new(Era::Modern);
    let schema = json!({"type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}});
    let tool =
        super::RemoteTool::listed(link, json!({"name": "t", "inputSchema": schema})).unwrap();
    let mut result = text("done");
    result["structuredContent"] = json!([1]);
    result["later"] = json!({"x": null});
    let mut sent = result.clone();
    sent["resultType"] = json!("complete");
    sent["_meta"] = json!({META_SERVER: {"name": "other"}});
    let server = async {
        let asked = other.asked("tools/call").await;
        assert_eq!(asked.request.name.as_deref(), Some("t"));
        let region = ("mcp-param-region".to_owned(), "eu".to_owned());
        assert_eq!(asked.request.param_headers, [region]);
        assert_eq!(asked.params()["arguments"], json!({"region": "eu"}));
        assert!(asked.params()["_meta"].get("progressToken").is_none(), "nobody listens");
        asked.answer(sent).await;
    };
    let caller = caller();
    let call = call(json!({"region": "eu"}), InputResponses::default());
    let (called, ()) = stage.run(join(tool.call(&caller, &call), server));
    assert_eq!(called, Ok(ToolOutput::Value(result)));
}

/// A result as it is passed on.
fn passed_on(text: &str) -> String {
    let mut result: Map<String, Value> = serde_json::from_str(text).unwrap();
    super::for_the_next_hop(&mut result);
    Value::Object(result).to_string()
}

#[test]
fn server_info_is_removed_from_a_result() {
    for (text, expected) in [
        (r#"{"_meta":{"io.modelcontextprotocol/serverInfo":{"a":[1]}},"b":1}"#, r#"{"b":1}"#),
        (r#"{"_meta":{"io.modelcontextprotocol/serverInfo":1,"c":2}}"#, r#"{"_meta":{"c":2}}"#),
        (r#"{"_meta":{},"b":1}"#, r#"{"b":1}"#),
        (r#"{"_meta":{"a":1},"b":1,"_meta":{}}"#, r#"{"b":1}"#),
    ] {
        assert_eq!(passed_on(text), expected);
    }
}

#[test]
fn other_members_of_a_result_are_passed_on_unchanged() {
    for same in [
        "{}",
        r#"{"_meta":null}"#,
        r#"{"_meta":["a"]}"#,
        r#"{"_meta":"a"}"#,
        r#"{"_meta":-1.5}"#,
        r#"{"n":[18446744073709551615,-7,1.5],"t":"a\n"}"#,
        r#"{"b":{"_meta":{"io.modelcontextprotocol/serverInfo":{}}},"a":[true,null]}"#,
        r#"{"_meta":{"b":1,"_meta":{"io.modelcontextprotocol/serverInfo":1},"a":2}}"#,
    ] {
        assert_eq!(passed_on(same), same);
    }
}

#[test]
fn is_error_results_are_failures() {
    let Scene { stage, server: mut other, link } = Scene::new(Era::Legacy);
    let listed = json!({"name": "t", "inputSchema": {"type": "object"}});
    let tool = super::RemoteTool::listed(link, listed).unwrap();
    let mut result = text("no such city");
    result["isError"] = json!(true);
    let server = async { other.asked("tools/call").await.answer(result.clone()).await };
    let (called, ()) = stage.run(join(called(&*tool, InputResponses::default()), server));
    let error = called.unwrap_err();
    assert_eq!((error.how, error.fault.name.as_str()), (CallProgress::Failed, "ToolFailed"));
    assert_eq!(error.fault.message, "no such city");
    assert_eq!(error.said.as_deref(), Some(&RawFailure::Result(result)));
}

/// How a call fails that this comes back for.
fn failed_with(era: Era, incoming: Incoming) -> ToolError {
    let scene = Scene::new(era);
    let tool = scene.tool(json!({})).unwrap();
    let Scene { stage, server: mut other, .. } = scene;
    let server = async { other.asked("tools/call").await.send(incoming).await };
    let (called, ()) = stage.run(join(called(&*tool, InputResponses::default()), server));
    called.unwrap_err()
}

/// The outcome of a call that gets this answer.
fn after(era: Era, incoming: Incoming) -> (CallProgress, String, String) {
    let error = failed_with(era, incoming);
    (error.how, error.fault.name, error.fault.message)
}

#[test]
fn errors_are_kept_verbatim_unless_about_our_own_message() {
    let data = json!({"why": ["a", 1]});
    for era in [Era::Modern, Era::Legacy] {
        for code in [-32603, -32602, -32601, -32600, -32021, -32000, 42] {
            let error = RpcError::new(code, "no disk").data(data.clone());
            let said = failed_with(era, Incoming::Error(error.clone())).said;
            let expected = RawFailure::Error(error.to_value());
            assert_eq!(said.as_deref(), Some(&expected), "{code} {era:?}");
        }
        for code in [-32700, -32020, -32022, -32800] {
            let error = RpcError::new(code, "no disk").data(data.clone());
            assert_eq!(failed_with(era, Incoming::Error(error)).said, None, "{code} {era:?}");
        }
    }
}

#[test]
fn failures_name_the_server_and_the_progress() {
    for era in [Era::Modern, Era::Legacy] {
        let (how, name, message) = after(era, Incoming::Error(RpcError::new(-32603, "no disk")));
        assert_eq!((how, name.as_str()), (CallProgress::Failed, "UpstreamError"));
        assert!(message.contains("`up`") && message.contains("no disk"), "{message}");
        let lost = PeerError::new(CallProgress::Unknown, PeerErrorKind::Timeout, "too slow");
        let (how, name, message) = after(era, Incoming::Broken(lost));
        assert_eq!((how, name.as_str()), (CallProgress::Unknown, "UpstreamTimeout"));
        assert!(message.contains("`up`"), "{message}");
        for wrong in [json!("x"), json!({"content": "x"})] {
            let (how, name, _) = after(era, Incoming::Result(wrong));
            assert_eq!((how, name.as_str()), (CallProgress::Unknown, "UpstreamNotMcp"));
        }
    }
}

#[test]
fn a_dead_server_is_named_at_once() {
    let scene = Scene::new(Era::Modern);
    let tool = scene.tool(json!({})).unwrap();
    scene.lose(PeerError::new(CallProgress::NotSent, PeerErrorKind::Unreachable, "no route"));
    let error = scene.stage.run(called(&*tool, InputResponses::default())).unwrap_err();
    assert_eq!(
        (error.how, error.fault.name.as_str()),
        (CallProgress::NotSent, "UpstreamUnreachable")
    );
    assert!(error.fault.message.contains("`up`") && error.fault.passing, "{error:?}");
    assert!(error.fault.hint.unwrap().contains("waypost.toml:1"));
}

#[test]
fn progress_and_log_messages_are_passed_on() {
    for era in [Era::Modern, Era::Legacy] {
        let scene = Scene::new(era);
        let tool = scene.tool(json!({})).unwrap();
        let Scene { stage, server: mut other, .. } = scene;
        let ear = Arc::new(Ear::default());
        let teller = CallReporter::new(ear.clone());
        let call = Call { teller, ..call(json!({}), InputResponses::default()) };
        let server = async {
            if era == Era::Legacy {
                let told = other.asked("logging/setLevel").await;
                assert_eq!(told.params(), &json!({"level": "notice"}));
                told.answer(json!({})).await;
            }
            let asked = other.asked("tools/call").await;
            let meta = &asked.params()["_meta"];
            assert!(meta["progressToken"].is_string());
            let level = json!("notice");
            assert_eq!(meta.get(META_LOG_LEVEL), Some(&level).filter(|_| era == Era::Modern));
            let progress = json!({"progress": 1, "total": 2, "message": "half"});
            asked.tell("notifications/progress", progress).await;
            let log = json!({"level": "warning", "logger": "l", "data": {"a": 1}});
            asked.tell("notifications/message", log).await;
            asked.answer(text("done")).await;
        };
        let caller = caller();
        let (called, ()) = stage.run(join(tool.call(&caller, &call), server));
        assert!(called.is_ok());
        let total = Some(2.0);
        let message = Some("half".to_owned());
        let logger = Some("l".to_owned());
        let data = json!({"a": 1});
        let expected = [
            CallUpdate::Progress { progress: 1.0, total, message },
            CallUpdate::Log { level: LogLevel::Warning, logger, data },
        ];
        assert_eq!(*ear.0.lock().unwrap(), expected);
    }
}

#[test]
fn dropping_a_call_sends_a_cancellation() {
    let scene = Scene::new(Era::Legacy);
    let tool = scene.tool(json!({})).unwrap();
    let Scene { stage, server: mut other, .. } = scene;
    stage.run(async {
        let calling = called(&*tool, InputResponses::default());
        let asked = match select(pin!(calling), pin!(other.asked("tools/call"))).await {
            Either::Right((asked, _)) => asked,
            Either::Left(_) => panic!("nobody answered it"),
        };
        asked.replies.closed().await;
    });
}

#[test]
fn an_upstream_timeout_can_be_shorter_than_the_gates() {
    let scene = Scene::with(Era::Modern, |config, _| config.timeout_ms = Some(500));
    let tool = scene.tool(json!({})).unwrap();
    let error = scene.stage.run(called(&*tool, InputResponses::default())).unwrap_err();
    assert_eq!((error.how, error.fault.name.as_str()), (CallProgress::Unknown, "UpstreamTimeout"));
    assert_eq!(scene.stage.now_ms(), 500);
}

#[test]
fn a_stateless_server_is_called_again_with_the_required_input() {
    let scene = Scene::new(Era::Modern);
    let tool = scene.tool(json!({})).unwrap();
    let Scene { stage, server: mut other, .. } = scene;
    stage.run(async {
        let server = async {
            let asked = other.asked("tools/call").await;
            assert!(asked.params().get("inputResponses").is_none());
            let requests = json!({
                "who": {"method": "elicitation/create", "params": form("who?")},
                "bad": {"method": "elicitation/create", "params": {"mode": "voice"}},
            });
            let result = json!({"resultType": "input_required", "inputRequests": requests,
                "requestState": "s1"});
            asked.answer(result).await;
        };
        let (first, ()) = join(called(&*tool, InputResponses::default()), server).await;
        let wanted = wants(first);
        assert_eq!(wanted.inputs.keys().collect::<Vec<_>>(), ["who"]);
        assert!(
            matches!(&wanted.inputs["who"], InputRequest::Form { message, .. } if message == "who?")
        );
        let server = async {
            let asked = other.asked("tools/call").await;
            assert_eq!(asked.params()["requestState"], "s1");
            let responses = json!({"who": accepted(), "bad": {"action": "decline"}});
            assert_eq!(asked.params()["inputResponses"], responses);
            asked.answer(text("hello Ann")).await;
        };
        let (second, ()) = join(called(&*tool, given(&wanted, &accepted())), server).await;
        assert_eq!(second, Ok(ToolOutput::Value(text("hello Ann"))));
    });
}

#[test]
fn unavailable_input_is_declined_or_fails_the_call() {
    let scene = Scene::new(Era::Modern);
    let tool = scene.tool(json!({})).unwrap();
    let Scene { stage, server: mut other, .. } = scene;
    let bad = json!({"bad": {"method": "elicitation/create", "params": {}}});
    let turn = json!({"turn": {"method": "sampling/createMessage", "params": {"messages": []}}});
    let server = async {
        let asked = other.asked("tools/call").await;
        asked.answer(json!({"resultType": "input_required", "inputRequests": bad})).await;
        let asked = other.asked("tools/call").await;
        assert_eq!(asked.params()["inputResponses"], json!({"bad": {"action": "decline"}}));
        asked.answer(json!({"resultType": "input_required", "inputRequests": turn})).await;
    };
    let (called, ()) = stage.run(join(called(&*tool, InputResponses::default()), server));
    let error = called.unwrap_err();
    assert_eq!((error.how, error.fault.name.as_str()), (CallProgress::Failed, "InputWanted"));
    assert!(error.fault.message.contains("turn"), "{error:?}");
    assert!(error.fault.hint.is_some() && error.lacks.is_some_and(|lacks| lacks.sample));
}

#[test]
fn a_call_with_a_handshake_stays_open_for_its_answer() {
    let scene = Scene::new(Era::Legacy);
    let tool = scene.tool(json!({})).unwrap();
    let Scene { stage, server: mut other, link } = scene;
    stage.run(async {
        let server = async {
            let asked = other.asked("tools/call").await;
            asked.ask(1, "ping", Value::Null).await;
            assert_eq!(other.told().await, json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
            asked.ask(2, "sampling/createMessage", json!({"messages": []})).await;
            assert_eq!(other.told().await["error"]["code"], -32601);
            asked.ask(3, "elicitation/create", json!({"message": "m"})).await;
            assert_eq!(other.told().await["error"]["code"], -32602);
            asked.ask(4, "elicitation/create", form("who?")).await;
            asked
        };
        let (first, asked) = join(called(&*tool, InputResponses::default()), server).await;
        let wanted = wants(first);
        assert_eq!((wanted.inputs.len(), link.pending.count()), (1, 1));
        let server = async {
            let reply = other.told().await;
            assert_eq!(reply, json!({"jsonrpc": "2.0", "id": 4, "result": accepted()}));
            asked.answer(text("hello Ann")).await;
        };
        let (second, ()) = join(called(&*tool, given(&wanted, &accepted())), server).await;
        assert_eq!(second, Ok(ToolOutput::Value(text("hello Ann"))));
        assert_eq!(link.pending.count(), 0);
        assert!(other.is_idle(), "it was called once");
    });
}

#[test]
fn an_omitted_form_field_stays_omitted() {
    let scene = Scene::new(Era::Legacy);
    let tool = scene.tool(json!({})).unwrap();
    let Scene { stage, server: mut other, .. } = scene;
    let schema = json!({"type": "object", "properties": {
        "name": {"type": "string"}, "age": {"type": "integer", "default": 30}}});
    let form = json!({"message": "who?", "requestedSchema": schema});
    stage.run(async {
        let server = async {
            let asked = other.asked("tools/call").await;
            asked.ask(1, "elicitation/create", form).await;
            asked
        };
        let (first, asked) = join(called(&*tool, InputResponses::default()), server).await;
        let wanted = wants(first);
        let server = async {
            let reply = other.told().await;
            assert_eq!(reply, json!({"jsonrpc": "2.0", "id": 1, "result": accepted()}));
            asked.answer(text("hello Ann")).await;
        };
        let (second, ()) = join(called(&*tool, given(&wanted, &accepted())), server).await;
        assert_eq!(second, Ok(ToolOutput::Value(text("hello Ann"))));
    });
}

#[test]
fn a_lost_pending_call_is_repeated_without_asking_again() {
    let mut scene = Scene::new(Era::Legacy);
    let tool = scene.tool(json!({})).unwrap();
    let stage = scene.stage.clone();
    stage.run(async {
        let server = async {
            let asked = scene.server.asked("tools/call").await;
            asked.ask(1, "elicitation/create", form("who?")).await;
        };
        let (first, ()) = join(called(&*tool, InputResponses::default()), server).await;
        let wanted = wants(first);
        // As after a restart: no one knows the token any more.
        let mut again = given(&wanted, &accepted());
        again.state = json!({"pending": "0"});
        scene.connect_anew(Era::Legacy).await;
        let server = async {
            let asked = scene.server.asked("tools/call").await;
            asked.ask(8, "elicitation/create", form("who?")).await;
            let reply = scene.server.told().await;
            assert_eq!(reply, json!({"jsonrpc": "2.0", "id": 8, "result": accepted()}));
            asked.ask(9, "elicitation/create", form("how old?")).await;
            asked
        };
        let (second, asked) = join(called(&*tool, again.clone()), server).await;
        let more = wants(second);
        assert!(more.inputs.keys().all(|key| !again.inputs.contains_key(key)), "{more:?}");
        // The answers of earlier rounds stay with the caller.
        let mut last = given(&more, &accepted());
        last.inputs.extend(again.inputs);
        let server = async {
            assert_eq!(scene.server.told().await["id"], 9);
            asked.answer(text("done")).await;
        };
        let (third, ()) = join(called(&*tool, last), server).await;
        assert_eq!(third, Ok(ToolOutput::Value(text("done"))));
    });
}

#[test]
fn a_pending_call_belongs_to_its_caller() {
    let scene = Scene::new(Era::Legacy);
    let tool = scene.tool(json!({})).unwrap();
    let Scene { stage, server: mut other, link } = scene;
    stage.run(async {
        let server = async {
            let asked = other.asked("tools/call").await;
            asked.ask(1, "roots/list", Value::Null).await;
            asked
        };
        let can = Abilities { roots: true, ..Abilities::PERSON };
        let owner = caller();
        let own = Call { can, ..call(json!({}), InputResponses::default()) };
        let (first, asked) = join(tool.call(&owner, &own), server).await;
        let wanted = wants(first);
        assert_eq!(wanted.inputs.values().collect::<Vec<_>>(), [&InputRequest::Roots]);
        let mut stranger = caller();
        stranger.subject = "other".into();
        let stolen = call(json!({}), given(&wanted, &json!({"roots": []})));
        let server = async { other.asked("tools/call").await.answer(text("own")).await };
        let (called, ()) = join(tool.call(&stranger, &stolen), server).await;
        assert_eq!(called, Ok(ToolOutput::Value(text("own"))), "it is a call of its own");
        assert_eq!(link.pending.count(), 1);
        assert!(!asked.replies.is_closed());
    });
}

#[test]
fn too_many_and_too_old_calls_are_cancelled() {
    let scene = Scene::with(Era::Legacy, |_, limits| limits.upstream_pending_max = 1);
    let tool = scene.tool(json!({})).unwrap();
    let Scene { stage, server: mut other, link } = scene;
    stage.run(async {
        let mut kept = Vec::new();
        for _ in 0..2 {
            let server = async {
                let asked = other.asked("tools/call").await;
                asked.ask(1, "elicitation/create", form("who?")).await;
                asked
            };
            let (wanting, asked) = join(called(&*tool, InputResponses::default()), server).await;
            wants(wanting);
            kept.push(asked);
        }
        assert_eq!(link.pending.count(), 1);
        assert!(kept[0].replies.is_closed(), "of two the older one goes");
        assert!(!kept[1].replies.is_closed());
        kept[1].replies.closed().await;
        assert_eq!(link.pending.count(), 0);
    });
    assert_eq!(stage.now_ms(), 600_000);
}

#[test]
fn a_task_is_polled_to_its_end() {
    let scene = Scene::new(Era::Modern);
    let tool = scene.tool(json!({})).unwrap();
    let Scene { stage, server: mut other, .. } = scene;
    let ear = Arc::new(Ear::default());
    let call = Call {
        teller: CallReporter::new(ear.clone()),
        ..call(json!({}), InputResponses::default())
    };
    let task = |status: &str| json!({"taskId": "1", "status": status, "pollIntervalMs": 200, "statusMessage": "busy"});
    let server = async {
        let mut made = task("working");
        made["resultType"] = json!("task");
        other.asked("tools/call").await.answer(made).await;
        for _ in 0..2 {
            let asked = other.asked("tasks/get").await;
            assert_eq!(asked.request.name.as_deref(), Some("1"));
            asked.answer(task("working")).await;
        }
        let mut done = task("completed");
        done["result"] = text("done");
        other.asked("tasks/get").await.answer(done).await;
    };
    let caller = caller();
    let (called, ()) = stage.run(join(tool.call(&caller, &call), server));
    assert_eq!(called, Ok(ToolOutput::Value(text("done"))));
    assert_eq!(stage.now_ms(), 600);
    assert_eq!(ear.0.lock().unwrap().len(), 1, "the same is not told twice");
    assert!(other.is_idle(), "what is over is not cancelled");
}

#[test]
fn an_immediately_completed_task_is_read() {
    let scene = Scene::new(Era::Modern);
    let tool = scene.tool(json!({})).unwrap();
    let Scene { stage, server: mut other, .. } = scene;
    let server = async {
        let made = json!({"taskId": "1", "status": "completed", "resultType": "task"});
        other.asked("tools/call").await.answer(made).await;
        other.asked("tasks/get").await.answer(completed("done")).await;
    };
    let caller = caller();
    let call = call(json!({}), InputResponses::default());
    let (called, ()) = stage.run(join(tool.call(&caller, &call), server));
    assert_eq!(called, Ok(ToolOutput::Value(text("done"))));
    assert_eq!(stage.now_ms(), 0);
}

#[test]
fn a_task_gets_its_required_input() {
    let scene = Scene::new(Era::Modern);
    let tool = scene.tool(json!({})).unwrap();
    let Scene { stage, server: mut other, link } = scene;
    let asking = json!({"taskId": "1", "status": "input_required", "inputRequests": {
        "who": {"method": "elicitation/create", "params": form("who?")}}});
    stage.run(async {
        let server = async {
            other.asked("tools/call").await.answer(working()).await;
            other.asked("tasks/get").await.answer(asking.clone()).await;
        };
        let (first, ()) = join(called(&*tool, InputResponses::default()), server).await;
        let wanted = wants(first);
        assert_eq!((&wanted.state["task"], link.pending.count()), (&json!("1"), 1));
        let server = async {
            let updated = other.asked("tasks/update").await;
            assert_eq!(updated.params()["inputResponses"], json!({"who": accepted()}));
            updated.answer(json!({})).await;
            // It may take a while until the task has seen the answer.
            other.asked("tasks/get").await.answer(asking.clone()).await;
            other.asked("tasks/get").await.answer(completed("Ann")).await;
        };
        let (second, ()) = join(called(&*tool, given(&wanted, &accepted())), server).await;
        assert_eq!(second, Ok(ToolOutput::Value(text("Ann"))));
        assert!(other.is_idle());
    });
}

#[test]
fn an_abandoned_task_is_cancelled_and_a_failed_one_says_why() {
    let scene = Scene::new(Era::Modern);
    let tool = scene.tool(json!({})).unwrap();
    let Scene { stage, server: mut other, .. } = scene;
    let made = working();
    stage.run(async {
        {
            let calling = pin!(called(&*tool, InputResponses::default()));
            let server = pin!(async {
                other.asked("tools/call").await.answer(made.clone()).await;
                other.asked("tasks/get").await
            });
            let Either::Right(_) = select(calling, server).await else { panic!("it ended") };
        }
        let cancelled = other.asked("tasks/cancel").await;
        assert_eq!(cancelled.params()["taskId"], "1");
        cancelled.answer(json!({})).await;
        let server = async {
            other.asked("tools/call").await.answer(made.clone()).await;
            let error = json!({"code": -32603, "message": "no disk"});
            let failed = json!({"taskId": "1", "status": "failed", "error": error});
            other.asked("tasks/get").await.answer(failed).await;
        };
        let (called, ()) = join(called(&*tool, InputResponses::default()), server).await;
        let error = called.unwrap_err();
        assert_eq!(error.how, CallProgress::Failed);
        assert!(error.fault.message.contains("no disk"), "{error:?}");
    });
}

#[test]
fn a_tool_with_idempotency_keys_gets_the_call_id() {
    let scene = Scene::with(Era::Modern, |config, _| config.trusted = true);
    let tool = scene.tool(json!({"_meta": {"waypost/idempotencyKey": true}})).unwrap();
    assert_eq!((tool.spec().reach, tool.spec().idempotent), (Reach::Writes, true));
    let unasked = Scene::new(Era::Modern);
    let doubted = unasked.tool(json!({"_meta": {"waypost/idempotencyKey": true}})).unwrap();
    assert!(!doubted.spec().idempotent, "nobody says that it can be believed");
    let Scene { stage, server: mut other, .. } = scene;
    let caller = caller();
    let call = call(json!({}), InputResponses::default());
    let server = async {
        let asked = other.asked("tools/call").await;
        assert_eq!(asked.params()["_meta"]["waypost/idempotencyKey"], json!(call.id));
        asked.answer(text("done")).await;
    };
    let (called, ()) = stage.run(join(tool.call(&caller, &call), server));
    assert_eq!(called, Ok(ToolOutput::Value(text("done"))));
}

#[test]
fn login_pages_are_opened_before_the_call() {
    let scene = Scene::new(Era::Legacy);
    let tool = scene.tool(json!({})).unwrap();
    let Scene { stage, server: mut other, .. } = scene;
    stage.run(async {
        let page = json!({"mode": "url", "message": "sign in", "url": "https://a.test/in",
            "elicitationId": "e"});
        let server = async {
            let error = RpcError::new(-32042, "sign in first");
            let error = error.data(json!({"elicitations": [page]}));
            other.asked("tools/call").await.fail(error).await;
        };
        let (first, ()) = join(called(&*tool, InputResponses::default()), server).await;
        let wanted = wants(first);
        let url = |want: &InputRequest| matches!(want, InputRequest::Url { url, .. } if url == "https://a.test/in");
        assert!(wanted.inputs.values().all(url), "{wanted:?}");
        let declined = called(&*tool, given(&wanted, &json!({"action": "decline"}))).await;
        assert_eq!(declined.unwrap_err().how, CallProgress::NotSent);
        assert!(other.is_idle());
        let server = async { other.asked("tools/call").await.answer(text("in")).await };
        let opened = given(&wanted, &json!({"action": "accept"}));
        let (second, ()) = join(called(&*tool, opened), server).await;
        assert_eq!(second, Ok(ToolOutput::Value(text("in"))));
    });
}
