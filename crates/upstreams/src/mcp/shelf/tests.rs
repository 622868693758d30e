//! The shelf of a scripted server, in both eras.

use super::super::line::{Incoming, PeerError, PeerErrorKind};
use super::super::lists::Lists;
use super::super::peer::Era;
use super::super::tool::test_server::{Scene, caller, given};
use super::*;
use futures::future::{Either, join, select};
use kernel::tool::call::{Abilities, CallProgress, InputResponses};
use serde_json::Map;
use std::pin::pin;

const BOTH: [Era; 2] = [Era::Modern, Era::Legacy];

fn lists() -> Lists {
    Lists {
        tools: Vec::new(),
        prompts: vec![
            json!({"name": "p", "title": "P", "arguments": [{"name": "a", "required": true}],
                "icons": [1]}),
            json!({"title": "no name"}),
        ],
        resources: vec![
            json!({"uri": "a://1", "name": "one", "size": 3, "annotations": {"priority": 1}}),
            json!({"name": "no uri"}),
            json!({"uri": "a://2"}),
            json!({"uri": "a://3", "mimeType": "text/plain"}),
        ],
        templates: vec![json!({"uriTemplate": "f://{id}/data", "name": "family"})],
    }
}

fn scene(era: Era) -> (Scene, RemoteShelf) {
    let scene = Scene::new(era);
    scene.list(lists());
    let shelf = RemoteShelf::new(scene.link.clone());
    (scene, shelf)
}

fn prompting<'a>(
    name: &'a str,
    arguments: &'a Map<String, Value>,
    given: &'a InputResponses,
) -> PromptRequest<'a> {
    let can = Abilities { roots: true, ..Abilities::PERSON };
    PromptRequest { name, arguments, given, can }
}

fn error(code: i64) -> RpcError {
    RpcError::new(code, "no")
}

#[test]
fn the_last_list_is_shown_while_the_server_is_away() {
    let (scene, shelf) = scene(Era::Legacy);
    scene.lose(PeerError::new(CallProgress::NotSent, PeerErrorKind::Unreachable, "no route"));
    let caller = caller();
    let prompts = shelf.prompts(&caller);
    assert_eq!(prompts.len(), 1);
    assert_eq!((prompts[0].name.as_str(), prompts[0].title.as_deref()), ("up.p", Some("P")));
    assert!(prompts[0].arguments[0].required);
    assert_eq!(prompts[0].listed.as_ref().unwrap()["icons"], json!([1]));
    assert_eq!(shelf.templates(&caller)[0].uri_template, "f://{id}/data");
    scene.stage.run(async {
        let mut page = PageRequest { cursor: None, limit: 2 };
        let first = shelf.resources(&caller, &page).await.unwrap();
        let uris = |paged: &ListPage<ResourceSpec>| -> Vec<String> {
            paged.items.iter().map(|spec| spec.uri.clone()).collect()
        };
        assert_eq!(uris(&first), ["a://1", "a://2"]);
        assert_eq!((first.items[0].bytes, first.items[1].name.as_str()), (Some(3), "a://2"));
        page.cursor = first.next_cursor;
        let second = shelf.resources(&caller, &page).await.unwrap();
        assert_eq!((uris(&second), second.next_cursor), (vec!["a://3".to_owned()], None));
        page.cursor = Some("x".to_owned());
        assert_eq!(shelf.resources(&caller, &page).await.unwrap_err().name, WRONG_REQUEST);
        // What must be asked of the server says who is away, and what to do.
        let fault = shelf.read(&caller, "a://1").await.unwrap_err();
        assert!(fault.message.contains("`up`") && fault.hint.is_some(), "{fault:?}");
        let none = Map::new();
        let nothing = InputResponses::default();
        let fault = shelf.prompt(&caller, &prompting("up.p", &none, &nothing)).await.unwrap_err();
        assert!(fault.message.contains("`up`") && fault.hint.is_some(), "{fault:?}");
    });
}

#[test]
fn a_prompt_is_passed_on() {
    for era in BOTH {
        let (scene, shelf) = scene(era);
        let Scene { stage, server: mut other, .. } = scene;
        let caller = caller();
        let arguments = Map::from_iter([("a".to_owned(), json!("x"))]);
        let nothing = InputResponses::default();
        let messages = json!({"messages": [1], "later": 2});
        stage.run(async {
            let server = async {
                let asked = other.asked("prompts/get").await;
                assert_eq!(asked.request.name.as_deref(), Some("p"));
                assert_eq!(asked.params()["arguments"], json!({"a": "x"}));
                asked.answer(messages.clone()).await;
            };
            let wanted = prompting("up.p", &arguments, &nothing);
            let got = join(shelf.prompt(&caller, &wanted), server).await.0;
            assert_eq!(got, Ok(Some(ToolOutput::Value(messages.clone()))));
            for foreign in ["p", "up.q", "other.p"] {
                let got = shelf.prompt(&caller, &prompting(foreign, &arguments, &nothing)).await;
                assert_eq!(got, Ok(None), "{foreign}");
            }
            let server = async { other.asked("prompts/get").await.fail(error(-32602)).await };
            let wanted = prompting("up.p", &arguments, &nothing);
            let got = join(shelf.prompt(&caller, &wanted), server).await.0;
            assert_eq!(got.unwrap_err().name, WRONG_REQUEST);
        });
    }
}

#[test]
fn a_prompt_can_require_input() {
    let (scene, shelf) = scene(Era::Modern);
    let Scene { stage, server: mut other, .. } = scene;
    let caller = caller();
    let none = Map::new();
    let nothing = InputResponses::default();
    stage.run(async {
        let requests = json!({"r": {"method": "roots/list"}});
        let wanting = json!({"resultType": "input_required", "inputRequests": requests,
            "requestState": "s"});
        let server = async { other.asked("prompts/get").await.answer(wanting).await };
        let got = join(shelf.prompt(&caller, &prompting("up.p", &none, &nothing)), server).await.0;
        let Ok(Some(ToolOutput::Wants(wants))) = got else {
            panic!("it should want something");
        };
        let again = given(&wants, &json!({"roots": []}));
        let server = async {
            let asked = other.asked("prompts/get").await;
            assert_eq!(asked.params()["requestState"], "s");
            assert_eq!(asked.params()["inputResponses"], json!({"r": {"roots": []}}));
            asked.answer(json!({"resultType": "complete", "messages": []})).await;
        };
        let got = join(shelf.prompt(&caller, &prompting("up.p", &none, &again)), server).await.0;
        assert_eq!(got, Ok(Some(ToolOutput::Value(json!({"messages": []})))));
    });
}

#[test]
fn a_resource_is_read_from_its_server() {
    for era in BOTH {
        let (scene, shelf) = scene(era);
        let Scene { stage, server: mut other, .. } = scene;
        let caller = caller();
        stage.run(async {
            for uri in ["a://1", "f://7/data"] {
                let server = async {
                    let asked = other.asked("resources/read").await;
                    assert_eq!(asked.params()["uri"], uri);
                    asked.answer(json!({"contents": [{"uri": uri, "text": "x"}]})).await;
                };
                let read = join(shelf.read(&caller, uri), server).await.0;
                assert_eq!(read, Ok(Some(vec![json!({"uri": uri, "text": "x"})])));
            }
            for code in [-32002, -32602] {
                let server = async { other.asked("resources/read").await.fail(error(code)).await };
                let read = join(shelf.read(&caller, "f://8/data"), server).await.0;
                assert_eq!(read, Ok(None), "{code}");
            }
            assert!(shelf.lists(&caller, "a://1") && !shelf.lists(&caller, "f://7/data"));
            assert_eq!(shelf.read(&caller, "waypost://sessions/1").await, Ok(None));
            assert!(other.is_idle(), "what it does not hold it is not asked for");
        });
    }
}

#[test]
fn an_unprefixed_server_is_asked_for_unlisted_names() {
    let scene = Scene::with(Era::Legacy, |config, _| config.prefix.clear());
    scene.list(lists());
    let shelf = RemoteShelf::new(scene.link.clone());
    let Scene { stage, server: mut other, .. } = scene;
    let caller = caller();
    for (uri, unlisted) in [("a://1", false), ("f://7/data", false), ("b://1", true)] {
        assert_eq!(shelf.takes_unlisted(&caller, uri), unlisted, "{uri}");
    }
    stage.run(async {
        let server = async {
            let asked = other.asked("resources/read").await;
            assert_eq!(asked.params()["uri"], "b://1");
            asked.answer(json!({"contents": [{"uri": "b://1", "text": "x"}]})).await;
        };
        let read = join(shelf.read(&caller, "b://1"), server).await.0;
        assert_eq!(read, Ok(Some(vec![json!({"uri": "b://1", "text": "x"})])));
        let server = async { other.asked("resources/subscribe").await.answer(json!({})).await };
        let changes = join(shelf.changes(&caller, "b://1"), server).await.0;
        assert!(matches!(changes, Ok(Some(_))));
    });
}

#[test]
fn completions_are_passed_on() {
    let (scene, shelf) = scene(Era::Legacy);
    let Scene { stage, server: mut other, .. } = scene;
    let caller = caller();
    let chosen = Map::from_iter([("b".to_owned(), json!("y"))]);
    let completion =
        |of| CompletionRequest { of, argument: "a", typed: "x", chosen: Some(&chosen) };
    stage.run(async {
        let prompt = completion(CompletionTarget::Prompt("up.p"));
        let server = async {
            let asked = other.asked("completion/complete").await;
            let expected = json!({"ref": {"type": "ref/prompt", "name": "p"},
                "argument": {"name": "a", "value": "x"}, "context": {"arguments": {"b": "y"}}});
            assert_eq!(*asked.params(), expected);
            let found = json!({"values": ["xa", "xb"], "total": 7, "hasMore": true});
            asked.answer(json!({"completion": found})).await;
        };
        let found = join(shelf.complete(&caller, &prompt), server).await.0;
        let values = vec!["xa".to_owned(), "xb".to_owned()];
        assert_eq!(found, Ok(Some(Completions { values, total: Some(7), more: true })));
        for foreign in [CompletionTarget::Prompt("p"), CompletionTarget::Template("g://{id}")] {
            assert_eq!(shelf.complete(&caller, &completion(foreign)).await, Ok(None));
        }
    });
}

#[test]
fn resource_changes_are_received_by_subscription() {
    let (scene, shelf) = scene(Era::Legacy);
    let Scene { stage, server: mut other, link } = scene;
    let caller = caller();
    stage.run(async {
        let server = async { other.asked("resources/subscribe").await.answer(json!({})).await };
        let changes = join(shelf.changes(&caller, "a://1"), server).await.0;
        let mut changes = changes.unwrap().unwrap();
        link.updates.send("a://2".to_owned()).unwrap();
        link.updates.send("a://1".to_owned()).unwrap();
        changes.next().await;
        drop(changes);
        other.asked("resources/unsubscribe").await.answer(json!({})).await;
        assert!(matches!(shelf.changes(&caller, "b://1").await, Ok(None)));
    });
}

#[test]
fn an_ending_subscription_does_not_end_a_new_one() {
    let (scene, shelf) = scene(Era::Legacy);
    let Scene { stage, server: mut other, link } = scene;
    let caller = caller();
    stage.run(async {
        let server = async { other.asked("resources/subscribe").await.answer(json!({})).await };
        let (first, ()) = join(shelf.changes(&caller, "a://1"), server).await;
        let first = first.unwrap().unwrap();
        let server = async {
            let asked = other.asked("resources/subscribe").await;
            drop(first);
            asked.answer(json!({})).await;
        };
        let (second, ()) = join(shelf.changes(&caller, "a://1"), server).await;
        stage.pass(1).await;
        assert!(other.is_idle(), "the second still watches it");
        drop(second);
        other.asked("resources/unsubscribe").await.answer(json!({})).await;
        // Who goes away before the server answers leaves nothing behind either.
        {
            let watching = pin!(shelf.changes(&caller, "a://1"));
            let subscribed = pin!(other.asked("resources/subscribe"));
            let Either::Right(_) = select(watching, subscribed).await else { panic!("it ended") };
        }
        other.asked("resources/unsubscribe").await.answer(json!({})).await;
        assert!(!link.pending.is_watched("a://1"));
    });
}

#[test]
fn a_server_without_subscriptions_is_not_waited_for() {
    let (scene, shelf) = scene(Era::Modern);
    let Scene { stage, server: mut other, .. } = scene;
    let caller = caller();
    let agreed = json!({"notifications": {"resourceSubscriptions": ["a://1"]}});
    let acknowledged = "notifications/subscriptions/acknowledged";
    stage.run(async {
        let server = async { other.asked("subscriptions/listen").await.replies.closed().await };
        let (silent, ()) = join(shelf.changes(&caller, "a://1"), server).await;
        assert_eq!(silent.err().unwrap().name, "UpstreamTimeout");
        let server = async {
            let asked = other.asked("subscriptions/listen").await;
            asked.tell(acknowledged, agreed.clone()).await;
            asked
        };
        let (changes, stream) = join(shelf.changes(&caller, "a://1"), server).await;
        let mut changes = changes.unwrap().unwrap();
        stream.send(Incoming::Result(json!({}))).await;
        let server = async {
            // Once it is slow, once it cannot.
            other.asked("subscriptions/listen").await.replies.closed().await;
            other.asked("subscriptions/listen").await.fail(error(-32601)).await;
            let asked = other.asked("subscriptions/listen").await;
            asked.tell(acknowledged, agreed.clone()).await;
            asked
        };
        let ((), _stream) = join(changes.next(), server).await;
    });
}

#[test]
fn a_stream_that_ends_at_once_is_reopened_with_back_off() {
    let (scene, shelf) = scene(Era::Modern);
    let Scene { stage, server: mut other, .. } = scene;
    let caller = caller();
    let agreed = json!({"notifications": {"resourceSubscriptions": ["a://1"]}});
    stage.run(async {
        let server = async {
            for _ in 0..12 {
                let asked = other.asked("subscriptions/listen").await;
                let acknowledged = "notifications/subscriptions/acknowledged";
                asked.tell(acknowledged, agreed.clone()).await;
                asked.send(Incoming::Result(json!({}))).await;
            }
        };
        let watching = async {
            let mut changes = shelf.changes(&caller, "a://1").await.unwrap().unwrap();
            for _ in 0..11 {
                changes.next().await;
            }
        };
        join(watching, server).await;
    });
    assert!(stage.now_ms() > 120_000, "{} ms for a dozen", stage.now_ms());
}

#[test]
fn resource_changes_are_received_on_a_reopened_stream() {
    let (scene, shelf) = scene(Era::Modern);
    let Scene { stage, server: mut other, .. } = scene;
    let caller = caller();
    let agreed = json!({"notifications": {"resourceSubscriptions": ["a://1"]}});
    let acknowledged = "notifications/subscriptions/acknowledged";
    stage.run(async {
        let server = async {
            let asked = other.asked("subscriptions/listen").await;
            assert_eq!(asked.params()["notifications"], agreed["notifications"]);
            asked.tell(acknowledged, agreed.clone()).await;
            asked
        };
        let (changes, stream) = join(shelf.changes(&caller, "a://1"), server).await;
        let mut changes = changes.unwrap().unwrap();
        stream.tell("notifications/resources/updated", json!({"uri": "a://1"})).await;
        changes.next().await;
        // What changed while no one listened is not known: that counts as a change.
        stream.send(Incoming::Result(json!({}))).await;
        let server = async {
            let asked = other.asked("subscriptions/listen").await;
            asked.tell(acknowledged, agreed.clone()).await;
            asked
        };
        let ((), stream) = join(changes.next(), server).await;
        drop(changes);
        stream.replies.closed().await;
        let server = async {
            let asked = other.asked("subscriptions/listen").await;
            asked.tell(acknowledged, json!({"notifications": {}})).await;
        };
        let (none, ()) = join(shelf.changes(&caller, "a://1"), server).await;
        assert!(matches!(none, Ok(None)), "the server does not tell of it");
    });
}

#[test]
fn a_resource_template_matches_by_its_literal_parts() {
    for (template, uri, expected) in [
        ("f://{id}/data", "f://7/data", true),
        ("f://{id}/data", "f://7/other", false),
        ("f://{id}/data", "g://7/data", false),
        ("f://{+path}", "f://a/b/c", true),
        ("f://{a}/{b}.txt", "f://x/y.txt", true),
        ("f://{a}/{b}.txt", "f://x.txt", false),
        ("f://plain", "f://plain", true),
        ("{+uri}", "waypost://sessions/1", false),
        ("f://{broken", "f://x", false),
    ] {
        assert_eq!(fits(template, uri), expected, "{template} {uri}");
    }
}
