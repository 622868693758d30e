//! Conversations: the same in every dialect.

use crate::house::{DIALECTS, House, agent, answered, call, nothing, texts, until, within};
use kernel::limits::Limits;
use kernel::tool::call::{Abilities, Caller, Given, HowFar, Reach, ToolOutput, Want};
use serde_json::{Value, json};
use std::time::Duration;
use testkit::servers::a2a::AgentServer;
use wire::a2a::{HOPS, SKILLS_EXTENSION};

const QUICK: Duration = Duration::from_millis(300);
const SPAN: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn reply(text: &str) -> impl Fn(&Want) -> Value {
    move |want: &Want| {
        assert!(matches!(want, Want::Form { .. }), "{want:?}");
        json!({"action": "accept", "content": {"reply": text}})
    }
}

#[tokio::test]
async fn skills_are_tools_and_one_more_sends_anything() {
    let server = AgentServer::start(QUICK);
    for dialect in DIALECTS {
        let house = House::speaking(&server, dialect).await;
        assert_eq!(house.names(), ["peer.send", "peer.talk", "peer.echo"], "{dialect}");
        let tool = house.tool("peer.talk");
        assert_eq!((tool.spec().reach, tool.spec().title.as_str()), (Reach::Writes, "Talk"));
        let status = house.remote.upstreams()[0].status();
        assert_eq!(status.server, Some(json!({"name": "Test agent", "version": "1.2.3"})));
        assert!(tool.check(&json!({"text": "hi"})).is_ok());
        assert!(house.tool("peer.send").check(&json!({"metadata": {}})).is_err());
    }
}

#[tokio::test]
async fn the_same_conversation_has_the_same_output_everywhere() {
    let server = AgentServer::start(QUICK);
    for dialect in DIALECTS {
        let house = House::speaking(&server, dialect).await;
        let done = house.follow(1, "tck-complete-task", nothing).await.unwrap();
        assert_eq!(texts(&done), ["done"], "{dialect}");
        let made = house.follow(2, "tck-artifact-text", nothing).await.unwrap();
        assert_eq!(texts(&made), ["Generated text content", "done"], "{dialect}");
        let made = house.follow(3, "tck-artifact-data", nothing).await.unwrap();
        assert_eq!(made["structuredContent"], json!({"key": "value", "count": 42}), "{dialect}");
        let link = house.follow(4, "tck-artifact-file-url", nothing).await.unwrap();
        let block = &link["content"][0];
        assert_eq!(block["type"], "resource_link", "{dialect}");
        assert_eq!(block["uri"], "https://example.com/output.txt", "{dialect}");
        let chunks = house.follow(5, "tck-stream-artifact-chunked", nothing).await.unwrap();
        assert_eq!(texts(&chunks), ["chunk-1", "chunk-2", "done"], "{dialect}");
        for (id, text, name) in
            [(6, "tck-task-failure", "ToolFailed"), (7, "tck-reject-task", "Rejected")]
        {
            let error = house.follow(id, text, nothing).await.unwrap_err();
            // The profile of the vault has one word for both.
            let name = if dialect == "vault" { "ToolFailed" } else { name };
            assert_eq!((error.how, error.fault.name.as_str()), (HowFar::Failed, name), "{dialect}");
            assert!(error.fault.message.contains("agent `peer`"), "{error:?}");
        }
    }
}

#[tokio::test]
async fn bytes_and_plain_messages_are_outputs_as_well() {
    let server = AgentServer::start(QUICK);
    for dialect in ["rpc", "rest", "grpc", "old-rpc", "old-rest"] {
        let house = House::speaking(&server, dialect).await;
        let file = house.follow(1, "tck-artifact-file", nothing).await.unwrap();
        let resource = json!({"uri": "a2a:output.txt", "blob": "dGNr", "mimeType": "text/plain"});
        assert_eq!(file["content"][0]["resource"], resource, "{dialect}");
        let begun = server.begun();
        let said = house.follow(2, "tck-message-response now", nothing).await.unwrap();
        assert_eq!(texts(&said), ["You said: tck-message-response now"], "{dialect}");
        assert_eq!(server.begun(), begun, "a message is no task");
    }
}

#[tokio::test]
async fn what_a_task_asks_is_asked_and_answered() {
    let server = AgentServer::start(QUICK);
    for dialect in DIALECTS {
        let house = House::speaking(&server, dialect).await;
        let done = house.follow(1, "tck-input-required", reply("blue")).await.unwrap();
        assert_eq!(texts(&done), ["You said: blue"], "{dialect}");

        let mut given = Given::default();
        let mut questions = Vec::new();
        let mut answers = ["one", "two", "done"].into_iter();
        let turns = loop {
            match house.invoke(2, "tck-multi-turn", given).await.unwrap() {
                ToolOutput::Value(value) => break value,
                ToolOutput::Blob(blob) => panic!("{blob:?}"),
                ToolOutput::Wants(wants) => {
                    let asked = wants.inputs.values().map(|want| match want {
                        Want::Form { message, .. } => message.clone(),
                        other => panic!("{other:?}"),
                    });
                    questions.extend(asked);
                    let is_question = !wants.inputs.is_empty();
                    let said = if is_question { answers.next().unwrap() } else { "" };
                    given = answered(*wants, &reply(said));
                }
            }
        };
        assert_eq!(texts(&turns), ["done"], "{dialect}");
        assert_eq!(questions, ["And first?", "And after one?", "And after two?"], "{dialect}");
    }
    // The call's id is the first message's, and each answer has one of its own.
    let ids = server.message_ids();
    let first = kernel::values::ids::CallId(2).to_string();
    for id in [first.clone(), format!("{first}-1"), format!("{first}-3")] {
        assert_eq!(ids.iter().filter(|known| **known == id).count(), 5, "{id} in {ids:?}");
    }
}

#[tokio::test]
async fn a_form_of_ours_is_passed_on_and_its_answer_fits() {
    let server = AgentServer::start(QUICK);
    for dialect in DIALECTS {
        let house = House::speaking(&server, dialect).await;
        let fill = |want: &Want| {
            let Want::Form { message, schema } = want else { panic!("{want:?}") };
            assert_eq!((message.as_str(), &schema["required"]), ("How many?", &json!(["count"])));
            json!({"action": "accept", "content": {"count": 3}})
        };
        let done = house.follow(1, "waypost-form", fill).await.unwrap();
        assert_eq!(texts(&done), ["3 it is"], "{dialect}");
        let decline = |_: &Want| json!({"action": "decline"});
        let error = house.follow(2, "waypost-form", decline).await.unwrap_err();
        assert_eq!(error.how, HowFar::Failed, "{dialect} {error:?}");
        assert!(error.fault.message.contains("not wanted"), "{error:?}");
    }
}

#[tokio::test]
async fn an_authorization_is_a_page_and_the_agent_sees_that_it_was_done() {
    for dialect in ["rpc", "rest", "grpc", "old-rpc", "old-rest"] {
        let server = AgentServer::start(QUICK);
        let house = House::speaking(&server, dialect).await;
        let opened = |want: &Want| {
            assert!(
                matches!(want, Want::Url { url, .. } if url == "https://login.example.com/page"),
                "{want:?}"
            );
            // The person comes back a little before the agent knows.
            let server = server.clone();
            std::thread::spawn(move || {
                std::thread::sleep(QUICK);
                server.authorize();
            });
            json!({"action": "accept"})
        };
        let done = house.follow(1, "waypost-auth", opened).await.unwrap();
        assert_eq!(texts(&done), ["authorized"], "{dialect}");
        assert_eq!(server.message_ids().len(), 1, "nothing is sent for a page");
    }
}

#[tokio::test]
async fn a_declined_question_cancels_the_task() {
    let server = AgentServer::start(QUICK);
    let house = House::speaking(&server, "rest").await;
    let decline = |_: &Want| json!({"action": "decline"});
    let error = house.follow(1, "tck-input-required", decline).await.unwrap_err();
    assert_eq!((error.how, error.fault.name.as_str()), (HowFar::Failed, "Declined"));
    until("the task to be cancelled", || server.count("TASK_STATE_CANCELED") == 1).await;
}

#[tokio::test]
async fn who_cannot_be_asked_is_not() {
    let server = AgentServer::start(QUICK);
    let house = House::speaking(&server, "rpc").await;
    let can = Abilities::default();
    let invoked = house.invoke_as(can, 1, "tck-input-required", Given::default()).await;
    let error = invoked.unwrap_err();
    assert_eq!(error.fault.name, "InputWanted");
    assert!(error.lacks.is_some_and(|lacks| lacks.form));
    until("the task to be cancelled", || server.count("TASK_STATE_CANCELED") == 1).await;
    // One that cannot come back waits.
    let person = Abilities::PERSON;
    let invoked = house.invoke_as(person, 2, "tck-long-running", Given::default()).await;
    let ToolOutput::Value(done) = invoked.unwrap() else { panic!("it comes back") };
    assert_eq!(texts(&done), ["done"]);
}

#[tokio::test]
async fn a_skill_is_named_in_the_message() {
    let server = AgentServer::start(QUICK);
    let house = House::speaking(&server, "rpc").await;
    let tool = house.tool("peer.echo");
    let arguments = json!({"text": "echo this", "data": {"n": 1}, "contextId": "mine"});
    let call = call(Abilities::RUN, 9, &arguments, Given::default());
    let caller = Caller::new("default", "local");
    let output = within("the echo", tool.call(&caller, &call)).await.unwrap();
    let ToolOutput::Value(output) = output else { panic!("{output:?}") };
    let echoed = json!({"text": "echo this", "data": {"n": 1}});
    assert_eq!(output["structuredContent"], echoed);
    assert_eq!(output["_meta"]["waypost/a2a"]["contextId"], "mine");
    let asked = server.asked();
    let sent = asked.iter().find(|asked| asked.body["method"] == "SendMessage").unwrap();
    let message = &sent.body["params"]["message"];
    assert_eq!(message["metadata"], json!({"skillId": "echo"}));
    assert_eq!((sent.header("a2a-version"), &message["role"]), (Some("1.0"), &json!("ROLE_USER")));
}

#[tokio::test]
async fn a_call_goes_out_in_the_trace_of_its_run() {
    let server = AgentServer::start(QUICK);
    let arguments = json!({"text": "tck-complete-task"});
    for (id, dialect) in (1..).zip(DIALECTS) {
        let house = House::speaking(&server, dialect).await;
        let (tool, caller) = (house.tool("peer.send"), Caller::new("default", "local"));
        for (id, span) in [(2 * id, Some(SPAN)), (2 * id + 1, None)] {
            let mut traced = call(Abilities::RUN, id, &arguments, Given::default());
            traced.place.trace = span.map(|span| span.parse().unwrap());
            let before = server.asked().len();
            within("a traced call", tool.call(&caller, &traced)).await.unwrap();
            let asked = server.asked().split_off(before);
            assert!(!asked.is_empty(), "{dialect}");
            for asked in asked {
                assert_eq!(asked.header("traceparent"), span, "{dialect}: {asked:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_chain_of_agents_is_counted_and_ends() {
    let server = AgentServer::start(QUICK);
    let mut card = server.card();
    card["capabilities"]["extensions"] = json!([{"uri": SKILLS_EXTENSION}]);
    server.serve_card(card);
    let house = House::open(agent(&server.url())).await;
    let (tool, caller) = (house.tool("peer.send"), Caller::new("default", "local"));
    let most = Limits::default().a2a_hops_max;
    let mut sent = call(Abilities::RUN, 1, &json!({"text": "tck-complete-task"}), Given::default());
    sent.place.hops = most - 1;
    within("the last agent of a chain", tool.call(&caller, &sent)).await.unwrap();
    let said = server.asked().pop().unwrap().body;
    assert_eq!(said["params"]["message"]["metadata"][HOPS], json!(most), "{said}");
    sent.place.hops = most;
    let error = within("one too many", tool.call(&caller, &sent)).await.unwrap_err();
    assert_eq!((error.fault.name.as_str(), error.how), ("TooManyHops", HowFar::NotSent));
    assert_eq!(server.begun(), 1, "nothing was sent");
}
