//! What goes wrong: restarts, cancelled calls, lost answers, agents that are away or forget.

use crate::house::{DIALECTS, House, agent, call, nothing, texts, until, within};
use kernel::tool::call::{Abilities, Call, Caller, Given, HowFar, ToolOutput};
use serde_json::{Value, json};
use std::time::Duration;
use testkit::servers::a2a::{AgentServer, Health};
use upstreams::RestAuth;

const QUICK: Duration = Duration::from_millis(300);
const LONG: Duration = Duration::from_secs(2);

async fn begun(house: &House, id: u128, text: &str) -> Value {
    match house.invoke(id, text, Given::default()).await.unwrap() {
        ToolOutput::Wants(wants) => {
            assert!(wants.inputs.is_empty(), "{wants:?}");
            wants.state
        }
        other => panic!("{other:?}"),
    }
}

/// Drops a call of `tck-cancel` while it looks at its task.
async fn drop_looking(server: &AgentServer, house: &House, can: Abilities, given: Given) {
    let tool = house.tool("peer.send");
    let caller = Caller::new("default", "local");
    let waiting = call(can, 1, &json!({"text": "tck-cancel"}), given);
    let before = server.looks();
    tokio::select! {
        ended = tool.call(&caller, &waiting) => panic!("it does not end by itself: {ended:?}"),
        () = until("the task to be looked at", || server.looks() >= before + 2) => {}
    }
}

async fn until_cancelled(server: &AgentServer, tasks: usize) {
    let what = format!("{tasks} cancelled tasks");
    until(&what, || server.count("TASK_STATE_CANCELED") == tasks).await;
}

fn with(state: &Value) -> Given {
    Given { state: state.clone(), ..Given::default() }
}

#[tokio::test]
async fn a_long_task_outlives_who_began_it() {
    let server = AgentServer::start(LONG);
    for (number, dialect) in DIALECTS.into_iter().enumerate() {
        let state = {
            let house = House::speaking(&server, dialect).await;
            begun(&house, 1, "tck-long-running").await
        };
        assert_eq!(server.begun(), number + 1, "its id is known before anyone waits");
        // Another process, which knows nothing but the journal.
        let house = House::speaking(&server, dialect).await;
        let ended = house.invoke(1, "tck-long-running", with(&state)).await.unwrap();
        let ToolOutput::Value(output) = ended else { panic!("{ended:?}") };
        assert_eq!(texts(&output), ["done"], "{dialect}");
        assert_eq!(server.begun(), number + 1, "no second task was begun");
    }
}

#[tokio::test]
async fn a_task_that_takes_longer_than_a_call_is_come_back_to() {
    let server = AgentServer::start(Duration::from_secs(3_600));
    let house = House::speaking(&server, "rpc").await;
    let state = begun(&house, 1, "tck-long-running").await;
    let (tool, caller) = (house.tool("peer.send"), Caller::new("default", "local"));
    let arguments = json!({"text": "tck-long-running"});
    let short = Call { timeout_ms: 2_000, ..call(Abilities::RUN, 1, &arguments, with(&state)) };
    let again = within("a short call", tool.call(&caller, &short)).await.unwrap();
    let ToolOutput::Wants(wants) = again else { panic!("{again:?}") };
    assert!(wants.inputs.is_empty() && wants.state["task"] == state["task"], "{wants:?}");
    assert_eq!(server.begun(), 1);
}

#[tokio::test]
async fn a_call_that_is_dropped_cancels_its_task() {
    let server = AgentServer::start(LONG);
    for (number, dialect) in DIALECTS.into_iter().enumerate() {
        let house = House::speaking(&server, dialect).await;
        // One that no one would come back for.
        drop_looking(&server, &house, Abilities::PERSON, Given::default()).await;
        until_cancelled(&server, 2 * number + 1).await;
        // One whose run is over.
        let tool = house.tool("peer.send");
        let state = begun(&house, 2, "tck-cancel").await;
        assert!(!tool.can_be_asked_anew(&state));
        tool.forget(&state);
        until_cancelled(&server, 2 * number + 2).await;
    }
}

#[tokio::test]
async fn a_recorded_task_is_cancelled_with_its_call_but_not_with_the_server() {
    let server = AgentServer::start(LONG);
    for stops in [true, false] {
        let house = House::speaking(&server, "rpc").await;
        let state = begun(&house, 1, "tck-cancel").await;
        drop_looking(&server, &house, Abilities::RUN, with(&state)).await;
        match stops {
            true => house.remote.stop().await,
            false => until_cancelled(&server, 1).await,
        }
    }
    // The first one was there for all of that time.
    let cancels = server.asked().into_iter().filter(|asked| asked.body["method"] == "CancelTask");
    assert_eq!(cancels.count(), 1);
}

#[tokio::test]
async fn an_answer_that_is_lost_leaves_the_outcome_unknown() {
    let server = AgentServer::start(QUICK);
    for dialect in DIALECTS {
        let house = House::speaking(&server, dialect).await;
        let begun = server.begun();
        server.be(Health::Mute);
        let error = house.follow(1, "tck-complete-task", nothing).await.unwrap_err();
        assert_eq!((error.how, error.fault.name.as_str()), (HowFar::Unknown, "AnswerLost"));
        assert_eq!(server.begun(), begun + 1, "{dialect}: it happened, and nobody repeated it");
    }
}

#[tokio::test]
async fn an_agent_that_is_away_for_a_while_is_waited_for() {
    let server = AgentServer::start(LONG);
    for dialect in ["rpc", "rest", "grpc"] {
        let house = House::speaking(&server, dialect).await;
        let state = begun(&house, 1, "tck-long-running").await;
        server.be(Health::Busy(2));
        let ended = house.invoke(1, "tck-long-running", with(&state)).await.unwrap();
        assert!(matches!(ended, ToolOutput::Value(_)), "{dialect}: {ended:?}");
    }
    let house = House::speaking(&server, "rpc").await;
    server.be(Health::Busy(1));
    let error = house.follow(2, "tck-complete-task", nothing).await.unwrap_err();
    assert_eq!((error.how, error.fault.passing), (HowFar::Failed, true), "{error:?}");
}

#[tokio::test]
async fn a_task_that_the_agent_forgot_is_a_persons() {
    let server = AgentServer::start(LONG);
    for dialect in DIALECTS {
        let house = House::speaking(&server, dialect).await;
        let state = begun(&house, 1, "tck-long-running").await;
        server.forget();
        let error = house.invoke(1, "tck-long-running", with(&state)).await.unwrap_err();
        assert_eq!(error.how, HowFar::Unknown, "{dialect} {error:?}");
        assert!(error.fault.message.contains("not found"), "{error:?}");
    }
}

#[tokio::test]
async fn a_task_of_others_is_not_taken_for_the_one_that_was_asked_about() {
    let server = AgentServer::start(LONG);
    for dialect in DIALECTS {
        let house = House::speaking(&server, dialect).await;
        let state = begun(&house, 1, "tck-long-running").await;
        let tasks = server.begun();
        // An agent that mixed up one answer is asked again.
        server.mix_up(1);
        let ended = house.invoke(1, "tck-long-running", with(&state)).await.unwrap();
        let ToolOutput::Value(output) = ended else { panic!("{dialect}: {ended:?}") };
        assert_eq!(texts(&output), ["done"], "{dialect}");
        // One that never answers with the right one leaves the outcome unknown.
        let mut last = state.clone();
        last["misses"] = json!(20);
        server.mix_up(1);
        let error = house.invoke(1, "tck-long-running", with(&last)).await.unwrap_err();
        let found = (error.how, error.fault.name.as_str());
        assert_eq!(found, (HowFar::Unknown, "UpstreamNotA2a"), "{dialect}: {error:?}");
        let told = &error.fault.message;
        assert!(told.contains("agent `peer`") && told.contains("`task-of-others`"), "{told}");
        assert!(!format!("{error:?}").contains("what others"), "{dialect}: {error:?}");
        assert_eq!(server.begun(), tasks, "{dialect}: no second task was begun");
    }
}

#[tokio::test]
async fn credentials_are_shown_to_the_agent_and_to_nobody_else() {
    let server = AgentServer::start(QUICK);
    for dialect in DIALECTS {
        let mut config = agent(&server.card_url(dialect));
        config.auth = Some(RestAuth::Bearer("hunter2-secret".into()));
        let house = House::open(config).await;
        let said = house.follow(1, "echo hunter2-secret", nothing).await.unwrap();
        assert!(!said.to_string().contains("hunter2"), "{dialect}: {said}");
        let asked = server.asked();
        let last = asked.last().unwrap();
        assert_eq!(last.header("authorization"), Some("Bearer hunter2-secret"), "{dialect}");
    }
}
