//! Tests of what a gateway hands on: the caller's model and folders, the level of its log, tasks,
//! the names of pages.

use super::super::super::peer::Era;
use super::super::test_server::{Ear, Scene, call, called, caller, given, text, wants};
use super::{completed, form, working};
use crate::mcp::questions::KEPT_MS;
use futures::future::{join, join3};
use kernel::contracts::Tool;
use kernel::tool::call::{
    Abilities, Call, CallProgress, CallReporter, InputRequest, InputRequired, InputResponses,
    LogLevel, RawFailure, ToolOutput,
};
use serde_json::{Value, json};
use std::sync::Arc;
use wire::jsonrpc::RpcError;
use wire::mcp::{META_CAPABILITIES, MISSING_CAPABILITY, TASKS};

const PROGRAM: Abilities = Abilities { sample: true, roots: true, ..Abilities::PERSON };

fn turn() -> Value {
    let content = json!({"type": "text", "text": "?"});
    json!({"messages": [{"role": "user", "content": content}], "maxTokens": 9})
}

fn said() -> Value {
    json!({"role": "assistant", "content": {"type": "text", "text": "!"}, "model": "m"})
}

fn able(can: Abilities, given: InputResponses) -> Call {
    Call { can, ..call(json!({}), given) }
}

#[test]
fn a_stateless_server_gets_the_callers_abilities() {
    let scene = Scene::new(Era::Modern);
    let tool = scene.tool(json!({})).unwrap();
    let Scene { stage, server: mut other, .. } = scene;
    let caller = caller();
    stage.run(async {
        let server = async {
            let asked = other.asked("tools/call").await;
            let declared = json!({"elicitation": {"form": {}, "url": {}}, "sampling": {},
                "roots": {}, "extensions": {TASKS: {}}});
            assert_eq!(asked.params()["_meta"][META_CAPABILITIES], declared);
            let requests = json!({"turn": {"method": "sampling/createMessage", "params": turn()},
                "where": {"method": "roots/list"}});
            let result = json!({"resultType": "input_required", "inputRequests": requests});
            asked.answer(result).await;
        };
        let first = able(PROGRAM, InputResponses::default());
        let (first, ()) = join(tool.call(&caller, &first), server).await;
        let wanted = wants(first);
        assert_eq!(wanted.inputs["turn"], InputRequest::Sample { request: Arc::new(turn()) });
        assert_eq!(wanted.inputs["where"], InputRequest::Roots);
        let server = async {
            let asked = other.asked("tools/call").await;
            assert_eq!(asked.params()["inputResponses"]["turn"], said());
            asked.answer(text("!")).await;
        };
        let second = able(PROGRAM, given(&wanted, &said()));
        let (second, ()) = join(tool.call(&caller, &second), server).await;
        assert_eq!(second, Ok(ToolOutput::Value(text("!"))));
    });
}

#[test]
fn traceparent_is_passed_on_to_the_server() {
    let span = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    for era in [Era::Modern, Era::Legacy] {
        let scene = Scene::new(era);
        let tool = scene.tool(json!({})).unwrap();
        let Scene { stage, server: mut other, .. } = scene;
        let caller = caller();
        stage.run(async {
            for traced in [Some(span), None] {
                let server = async {
                    let asked = other.asked("tools/call").await;
                    assert_eq!(asked.params()["_meta"]["traceparent"].as_str(), traced);
                    asked.answer(text("!")).await;
                };
                let mut call = call(json!({}), InputResponses::default());
                call.context.trace = traced.map(|span| span.parse().unwrap());
                let (said, ()) = join(tool.call(&caller, &call), server).await;
                assert_eq!(said, Ok(ToolOutput::Value(text("!"))));
            }
        });
    }
}

#[test]
fn a_stateless_server_reports_missing_abilities() {
    let scene = Scene::new(Era::Modern);
    let tool = scene.tool(json!({})).unwrap();
    let Scene { stage, server: mut other, .. } = scene;
    let server = async {
        let asked = other.asked("tools/call").await;
        assert_eq!(asked.params()["_meta"][META_CAPABILITIES].get("sampling"), None);
        let data = json!({"requiredCapabilities": {"sampling": {}}});
        asked.fail(RpcError::new(MISSING_CAPABILITY, "no model").data(data)).await;
    };
    let (called, ()) = stage.run(join(called(&*tool, InputResponses::default()), server));
    let error = called.unwrap_err();
    assert_eq!(error.how, CallProgress::Failed);
    assert_eq!(error.lacks, Some(Abilities { sample: true, ..Abilities::default() }));
}

#[test]
fn a_server_that_requires_tasks_refuses_callers_without_them() {
    let scene = Scene::new(Era::Modern);
    let tool = scene.tool(json!({})).unwrap();
    let Scene { stage, server: mut other, .. } = scene;
    let caller = caller();
    let call = able(Abilities { tasks: false, ..Abilities::RUN }, InputResponses::default());
    let data = json!({"requiredCapabilities": {"extensions": {TASKS: {}}}});
    let refusal = RpcError::new(MISSING_CAPABILITY, "only as a task").data(data);
    stage.run(async {
        let server = async {
            let asked = other.asked("tools/call").await;
            assert_eq!(asked.params()["_meta"][META_CAPABILITIES].get("extensions"), None);
            asked.fail(refusal.clone()).await;
        };
        let (called, ()) = join(tool.call(&caller, &call), server).await;
        let error = called.unwrap_err();
        assert_eq!(error.how, CallProgress::Failed);
        assert_eq!(error.said.as_deref(), Some(&RawFailure::Error(refusal.to_value())));

        // A task that it begins all the same is not left alone.
        let server = async { other.asked("tools/call").await.answer(working()).await };
        let begun = wants(join(tool.call(&caller, &call), server).await.0);
        let server = async {
            let asked = other.asked("tasks/get").await;
            let declared = &asked.params()["_meta"][META_CAPABILITIES];
            assert!(declared["extensions"][TASKS].is_object(), "{declared}");
            asked.answer(completed("done")).await;
        };
        let again = Call { given: Arc::new(given(&begun, &Value::Null)), ..call.clone() };
        let (done, ()) = join(tool.call(&caller, &again), server).await;
        assert_eq!(done, Ok(ToolOutput::Value(text("done"))));
    });
}

#[test]
fn a_handshake_server_gets_input_during_the_call() {
    let scene = Scene::new(Era::Legacy);
    let tool = scene.tool(json!({})).unwrap();
    let Scene { stage, server: mut other, .. } = scene;
    let caller = caller();
    stage.run(async {
        let server = async {
            let asked = other.asked("tools/call").await;
            asked.ask(1, "sampling/createMessage", turn()).await;
            asked
        };
        let first = able(PROGRAM, InputResponses::default());
        let (first, asked) = join(tool.call(&caller, &first), server).await;
        let wanted = wants(first);
        let want = wanted.inputs.values().next();
        assert_eq!(want, Some(&InputRequest::Sample { request: Arc::new(turn()) }));
        let server = async {
            assert_eq!(other.told().await["result"], said());
            asked.answer(text("!")).await;
        };
        let second = able(PROGRAM, given(&wanted, &said()));
        let (second, ()) = join(tool.call(&caller, &second), server).await;
        assert_eq!(second, Ok(ToolOutput::Value(text("!"))));
    });
}

#[test]
fn a_handshake_server_may_continue_without_missing_abilities() {
    for (method, params) in [("sampling/createMessage", turn()), ("roots/list", Value::Null)] {
        let scene = Scene::new(Era::Legacy);
        let tool = scene.tool(json!({})).unwrap();
        let Scene { stage, server: mut other, .. } = scene;
        stage.run(async {
            let server = async {
                let asked = other.asked("tools/call").await;
                asked.ask(1, method, params.clone()).await;
                assert_eq!(other.told().await["error"]["code"], -32601, "{method}");
                asked.answer(text("without")).await;
            };
            let (went_on, ()) = join(called(&*tool, InputResponses::default()), server).await;
            assert_eq!(went_on, Ok(ToolOutput::Value(text("without"))), "{method}");
            let server = async {
                let asked = other.asked("tools/call").await;
                asked.ask(2, method, params.clone()).await;
                other.told().await;
                asked.fail(RpcError::new(-32603, "I need that")).await;
            };
            let (failed, ()) = join(called(&*tool, InputResponses::default()), server).await;
            let error = failed.unwrap_err();
            assert!(error.fault.message.contains("I need that"), "{error:?}");
            let lacks = error.lacks.unwrap();
            let is_roots = method == "roots/list";
            assert_eq!((lacks.sample, lacks.roots), (!is_roots, is_roots));
        });
    }
}

#[test]
fn configured_roots_are_used_if_the_caller_has_none() {
    let folder = "file:///srv/reports";
    let scene = Scene::with(Era::Legacy, |config, _| config.roots = vec![folder.to_owned()]);
    let tool = scene.tool(json!({})).unwrap();
    let Scene { stage, server: mut other, .. } = scene;
    let caller = caller();
    stage.run(async {
        let server = async {
            let asked = other.asked("tools/call").await;
            asked.ask(1, "roots/list", Value::Null).await;
            assert_eq!(other.told().await["result"], json!({"roots": [{"uri": folder}]}));
            asked.answer(text("with it")).await;
        };
        let (went_on, ()) = join(called(&*tool, InputResponses::default()), server).await;
        assert_eq!(went_on, Ok(ToolOutput::Value(text("with it"))));
        // Who has folders is asked for them.
        let own = able(PROGRAM, InputResponses::default());
        let server = async {
            let asked = other.asked("tools/call").await;
            asked.ask(2, "roots/list", Value::Null).await;
            asked
        };
        let (first, _asked) = join(tool.call(&caller, &own), server).await;
        assert_eq!(wants(first).inputs.values().collect::<Vec<_>>(), [&InputRequest::Roots]);
    });
}

#[test]
fn a_form_gets_the_error_that_a_client_without_forms_would_send() {
    let form = form("who?");
    let scene = Scene::new(Era::Legacy);
    let tool = scene.tool(json!({})).unwrap();
    let Scene { stage, server: mut other, link } = scene;
    let caller = caller();
    let shows_none = Abilities { handshake: true, ..Abilities::default() };
    let opens_pages = Abilities { page: true, ..shows_none };
    stage.run(async {
        for (can, code) in [(shows_none, -32601), (opens_pages, -32602)] {
            let call = able(can, InputResponses::default());
            let server = async {
                let asked = other.asked("tools/call").await;
                asked.ask(1, "elicitation/create", form.clone()).await;
                assert_eq!(other.told().await["error"]["code"], code);
                asked.answer(text("without")).await;
            };
            let (went_on, ()) = join(tool.call(&caller, &call), server).await;
            assert_eq!(went_on, Ok(ToolOutput::Value(text("without"))));
            let own = RpcError::new(-32050, "I need that").data(json!({"why": 1}));
            let server = async {
                let asked = other.asked("tools/call").await;
                asked.ask(2, "elicitation/create", form.clone()).await;
                other.told().await;
                asked.fail(own.clone()).await;
            };
            let (failed, ()) = join(tool.call(&caller, &call), server).await;
            let error = failed.unwrap_err();
            let said = RawFailure::Error(own.to_value());
            assert_eq!((error.said.as_deref(), error.lacks), (Some(&said), None));
        }
    });
    assert_eq!(link.pending.count(), 0, "no one is asked");
}

#[test]
fn an_error_answer_of_the_caller_is_passed_to_the_server() {
    let error = RpcError::new(-1, "the user said no").data(json!({"why": [1]}));
    let refusing = |wanted: &InputRequired| {
        let keys = wanted.inputs.keys().cloned();
        let refused = keys.map(|key| (key, error.to_value())).collect();
        able(
            PROGRAM,
            InputResponses { refused, state: wanted.state.clone(), ..InputResponses::default() },
        )
    };
    let caller = caller();
    let scene = Scene::new(Era::Legacy);
    let tool = scene.tool(json!({})).unwrap();
    let Scene { stage, server: mut other, .. } = scene;
    stage.run(async {
        let server = async {
            let asked = other.asked("tools/call").await;
            asked.ask(1, "sampling/createMessage", turn()).await;
            asked
        };
        let first = able(PROGRAM, InputResponses::default());
        let (first, asked) = join(tool.call(&caller, &first), server).await;
        let second = refusing(&wants(first));
        let server = async {
            assert_eq!(other.told().await["error"], error.to_value());
            asked.answer(text("without")).await;
        };
        let (second, ()) = join(tool.call(&caller, &second), server).await;
        assert_eq!(second, Ok(ToolOutput::Value(text("without"))));
    });
    // Without a handshake there is no place for it.
    let scene = Scene::new(Era::Modern);
    let tool = scene.tool(json!({})).unwrap();
    let Scene { stage, server: mut other, .. } = scene;
    stage.run(async {
        let server = async {
            let requests = json!({"turn": {"method": "sampling/createMessage", "params": turn()}});
            let result = json!({"resultType": "input_required", "inputRequests": requests});
            other.asked("tools/call").await.answer(result).await;
        };
        let first = able(PROGRAM, InputResponses::default());
        let (first, ()) = join(tool.call(&caller, &first), server).await;
        let ended = tool.call(&caller, &refusing(&wants(first))).await.unwrap_err();
        assert_eq!(ended.said.as_deref(), Some(&RawFailure::Error(error.to_value())));
    });
    assert!(other.is_idle(), "it is not called again");
}

struct Deaf(LogLevel);

impl kernel::tool::call::Listener for Deaf {
    fn hear(&self, _told: kernel::tool::call::CallUpdate) {}

    fn log_level(&self) -> Option<LogLevel> {
        Some(self.0)
    }
}

fn listening(level: LogLevel) -> Call {
    Call {
        teller: CallReporter::new(Arc::new(Deaf(level))),
        ..call(json!({}), InputResponses::default())
    }
}

#[test]
fn the_log_level_is_set_once_to_the_lowest_requested() {
    let scene = Scene::new(Era::Legacy);
    let tool = scene.tool(json!({})).unwrap();
    let Scene { stage, server: mut other, .. } = scene;
    let caller = caller();
    let warning = listening(LogLevel::Warning);
    let info = listening(LogLevel::Info);
    stage.run(async {
        // Two at once, of which the second wants to hear more.
        let server = async {
            let told = other.asked("logging/setLevel").await;
            assert_eq!(told.params()["level"], "warning");
            told.answer(json!({})).await;
            let mut calls = Vec::new();
            for _ in 0..2 {
                let next = other.next().await;
                match next.request.method.as_str() {
                    "logging/setLevel" => {
                        assert_eq!(next.params()["level"], "info");
                        next.answer(json!({})).await;
                    }
                    _ => calls.push(next),
                }
            }
            if calls.len() < 2 {
                calls.push(other.asked("tools/call").await);
            }
            for asked in calls {
                asked.answer(text("done")).await;
            }
        };
        let calls = join3(tool.call(&caller, &warning), tool.call(&caller, &info), server);
        let (first, second, ()) = calls.await;
        assert!(first.is_ok() && second.is_ok());
        // Nobody wants that much any more.
        for (call, level) in [(&warning, Some("warning")), (&warning, None)] {
            let server = async {
                if let Some(level) = level {
                    let told = other.asked("logging/setLevel").await;
                    assert_eq!(told.params()["level"], level);
                    // What it thinks of that is its own business.
                    told.fail(RpcError::new(-32601, "no")).await;
                }
                other.asked("tools/call").await.answer(text("done")).await;
            };
            let (called, ()) = join(tool.call(&caller, call), server).await;
            assert!(called.is_ok());
        }
        // Who does not listen changes nothing.
        let server = async { other.asked("tools/call").await.answer(text("done")).await };
        assert!(join(called(&*tool, InputResponses::default()), server).await.0.is_ok());
    });
}

#[test]
fn a_task_is_handed_to_callers_that_can_resume() {
    let scene = Scene::new(Era::Modern);
    let tool = scene.tool(json!({})).unwrap();
    let Scene { stage, server: mut other, link } = scene;
    let made = working();
    let done = completed("done");
    stage.run(async {
        let mut admin = caller();
        admin.admin = true;
        let server = async { other.asked("tools/call").await.answer(made.clone()).await };
        let first = able(Abilities::RUN, InputResponses::default());
        let (first, ()) = join(tool.call(&admin, &first), server).await;
        let wanted = wants(first);
        assert!(wanted.inputs.is_empty(), "nothing is asked for: {wanted:?}");
        assert_eq!((&wanted.state["task"], link.pending.count()), (&json!("1"), 1));
        // The run that looks at it is the caller's, but never an administrator's.
        let again = able(Abilities::RUN, given(&wanted, &Value::Null));
        let server = async { other.asked("tasks/get").await.answer(done.clone()).await };
        let (second, ()) = join(tool.call(&caller(), &again), server).await;
        assert_eq!(second, Ok(ToolOutput::Value(text("done"))));
        assert_eq!(link.pending.count(), 0, "or it would be cancelled later");
        // After a restart it is found by its id.
        let mut later = again.clone();
        let state = json!({"task": "1", "pending": "gone"});
        later.given = Arc::new(InputResponses { state, ..InputResponses::default() });
        let server = async { other.asked("tasks/get").await.answer(done.clone()).await };
        let (third, ()) = join(tool.call(&caller(), &later), server).await;
        assert_eq!(third, Ok(ToolOutput::Value(text("done"))));
        assert!(other.is_idle());
    });
}

#[test]
fn a_task_waits_until_its_input_is_given_or_declined() {
    let scene = Scene::new(Era::Modern);
    let tool = scene.tool(json!({})).unwrap();
    let Scene { stage, server: mut other, link } = scene;
    let asking = json!({"taskId": "1", "status": "input_required", "inputRequests": {
        "who": {"method": "elicitation/create", "params": form("who?")}}});
    let done = completed("done");
    stage.run(async {
        let server = async { other.asked("tools/call").await.answer(working()).await };
        let caller = caller();
        let call = able(Abilities::RUN, InputResponses::default());
        let begun = wants(join(tool.call(&caller, &call), server).await.0);
        let server = async { other.asked("tasks/get").await.answer(asking.clone()).await };
        let looking = able(Abilities::RUN, given(&begun, &Value::Null));
        let wanted = wants(join(tool.call(&caller, &looking), server).await.0);
        stage.pass(2 * KEPT_MS).await;
        assert_eq!(link.pending.count(), 0, "it is not kept for ever");
        assert!(other.is_idle(), "but it goes on there");

        let server = async {
            other.asked("tasks/update").await.answer(json!({})).await;
            other.asked("tasks/get").await.answer(done.clone()).await;
        };
        let accepted = json!({"action": "accept", "content": {}});
        let answered = able(Abilities::RUN, given(&wanted, &accepted));
        let (called, ()) = join(tool.call(&caller, &answered), server).await;
        assert_eq!(called, Ok(ToolOutput::Value(text("done"))));
        assert!(other.is_idle());

        // Nobody will answer: what is not kept any more is cancelled as well.
        tool.forget(&wanted.state);
        let cancelled = other.asked("tasks/cancel").await;
        assert_eq!(cancelled.params()["taskId"], "1");
    });
}

#[test]
fn a_task_accepts_partial_input_and_asks_for_the_rest() {
    let scene = Scene::new(Era::Modern);
    let tool = scene.tool(json!({})).unwrap();
    let Scene { stage, server: mut other, .. } = scene;
    let asked = json!({"method": "elicitation/create", "params": form("who?")});
    let asking = |requests: Value| json!({"taskId": "1", "status": "input_required", "inputRequests": requests});
    stage.run(async {
        let server = async {
            other.asked("tools/call").await.answer(working()).await;
            let both = asking(json!({"a": asked, "b": asked}));
            other.asked("tasks/get").await.answer(both).await;
        };
        let both = wants(join(called(&*tool, InputResponses::default()), server).await.0);
        assert_eq!(both.inputs.keys().collect::<Vec<_>>(), ["a", "b"]);
        assert!(tool.takes_parts(&both.state));
        let accepted = json!({"action": "accept", "content": {}});
        let mut part = given(&both, &accepted);
        part.inputs.remove("a");
        let server = async {
            let updated = other.asked("tasks/update").await;
            assert_eq!(updated.params()["inputResponses"], json!({"b": accepted}));
            updated.answer(json!({})).await;
            other.asked("tasks/get").await.answer(asking(json!({"a": asked}))).await;
        };
        let rest = wants(join(called(&*tool, part), server).await.0);
        assert_eq!(rest.inputs.keys().collect::<Vec<_>>(), ["a"]);
    });
    let of_rounds = json!({"requestState": "s", "asked": ["a", "b"]});
    assert!(!tool.takes_parts(&of_rounds), "it would ask for both again");
}

#[test]
fn a_task_abandoned_by_its_server_is_not_a_tool_failure() {
    let scene = Scene::new(Era::Modern);
    let tool: Arc<dyn Tool> = scene.tool(json!({})).unwrap();
    let Scene { stage, server: mut other, .. } = scene;
    let server = async {
        other.asked("tools/call").await.answer(working()).await;
        let error = json!({"code": -32603, "message": "no disk"});
        let failed = json!({"taskId": "1", "status": "failed", "error": error});
        other.asked("tasks/get").await.answer(failed).await;
    };
    let ear = Arc::new(Ear::default());
    let call =
        Call { teller: CallReporter::new(ear), ..call(json!({}), InputResponses::default()) };
    let caller = caller();
    let (called, ()) = stage.run(join(tool.call(&caller, &call), server));
    assert_eq!(called.unwrap_err().fault.name, "UpstreamTaskFailed");
}

#[test]
fn a_page_of_a_call_is_identified_by_its_elicitation_id() {
    let scene = Scene::new(Era::Legacy);
    let tool = scene.tool(json!({})).unwrap();
    let Scene { stage, server: mut other, .. } = scene;
    stage.run(async {
        let page = json!({"mode": "url", "message": "sign in", "url": "https://a.test/in",
            "elicitationId": "e-7"});
        let server = async {
            let asked = other.asked("tools/call").await;
            asked.ask(1, "elicitation/create", page).await;
            asked
        };
        let (first, asked) = join(called(&*tool, InputResponses::default()), server).await;
        let wanted = wants(first);
        let names: Vec<&str> = wanted.inputs.keys().map(|key| tool.page_name(key)).collect();
        assert_eq!(names, ["e-7"]);
        assert!(!tool.can_be_asked_anew(&wanted.state), "it waits for the answer");
        let opened = json!({"action": "accept"});
        let server = async {
            assert_eq!(other.told().await["result"], opened);
            asked.answer(text("in")).await;
        };
        let (second, ()) = join(called(&*tool, given(&wanted, &opened)), server).await;
        assert_eq!(second, Ok(ToolOutput::Value(text("in"))));
    });
}
