//! `/run`, `/resume`, `/health-check`: whole conversations, their keys and their statuses.

use crate::house::{House, read, request, text as plain, wait_for};
use crate::talk::{approvals, asked, assistant, calls, later, office, office_of, said, text};
use axum::body::Body;
use axum::http::Method;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::Semaphore;

const KEYS: [&str; 6] = ["message", "pending_action", "response", "status", "thread_id", "url"];

fn event(name: &str) -> (&'static str, Value) {
    ("create_event", json!({"name": name, "start": "2026-01-16T10:00:00"}))
}

fn keys(body: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = body.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

/// The session of a thread, once it stands so.
async fn until(house: &House, thread: &str, status: &str) -> Value {
    let path = format!("/api/v1/sessions/{thread}?space=thread");
    let is_so = |session: &Value| session["status"] == status;
    let what = format!("thread {thread} to be {status}");
    wait_for(&what, async || house.get(&path).await.body, is_so).await
}

#[tokio::test]
async fn health_is_a_sentence() {
    let house = House::demo().await;
    let answer = house.get("/health-check").await;
    assert_eq!((answer.status, &answer.body), (200, &json!("Server is healthy")));
}

#[tokio::test]
async fn a_request_is_answered_with_all_keys_and_the_conversation_goes_on() {
    let (house, _) = office([
        calls([("list_events", json!({}))]),
        text("nothing today"),
        text("nothing tomorrow either"),
    ])
    .await;
    let first = house.post("/run", said("t", "what is on?")).await;
    let expected = json!({"status": "success", "response": "nothing today", "thread_id": null,
        "pending_action": null, "url": null, "message": null});
    assert_eq!((first.status, &first.body), (200, &expected));
    let second = house.post("/run", said("t", "and tomorrow?")).await;
    assert_eq!(second.body["response"], "nothing tomorrow either");
    let state = house.get("/api/v1/sessions/t?space=thread").await.body["requestState"].clone();
    let types: Vec<String> =
        state["messages"].as_array().unwrap().iter().map(|one| plain(&one["type"])).collect();
    assert_eq!(types, ["human", "ai", "tool", "ai", "human", "ai"]);
    let call = &state["messages"][1]["tool_calls"][0];
    assert_eq!((&call["name"], &call["type"]), (&json!("list_events"), &json!("tool_call")));
    assert_eq!(state["messages"][2]["tool_call_id"], call["id"]);
    assert_eq!(state["final_response"], "nothing tomorrow either");
    assert_eq!(state["allowed_tool_types"], json!(["calendar"]));
    assert_eq!((&state["pending_action"], &state["auth_url"]), (&Value::Null, &Value::Null));
}

#[tokio::test]
async fn a_question_comes_before_the_approvals_and_deferred_calls_are_not_lost() {
    let (house, office) = office([
        calls([
            ("request_clarification", json!({"question": "What would you like to schedule?"})),
            ("update_event", json!({"event_id": "e0", "start": "16:00"})),
        ]),
        calls([event("Dentist")]),
        text("both are done"),
    ])
    .await;
    let answer = house.post("/run", said("c", "schedule something, and move the meeting")).await;
    assert_eq!(answer.status, 202);
    assert_eq!(keys(&answer.body), KEYS);
    assert_eq!(answer.body["status"], "clarification_required");
    assert_eq!(answer.body["thread_id"], "c");
    let question = &answer.body["pending_action"]["clarifications"][0];
    assert_eq!(question["question"], "What would you like to schedule?");
    assert_eq!(question["context"], "");
    assert!(plain(&question["call_id"]).starts_with("call_"), "{question}");

    let body = json!({"thread_id": "c", "clarification_responses": [
        {"call_id": question["call_id"], "response": "a dentist appointment on Friday at 10am"}]});
    let moved = house.post("/resume", body).await;
    assert_eq!((moved.status, &moved.body["status"]), (202, &json!("confirmation_required")));
    let call = &moved.body["pending_action"]["tool_calls"][0];
    assert_eq!(call["tool_name"], "update_event");
    assert_eq!(call["arguments"], json!({"event_id": "e0", "start": "16:00"}));
    assert_eq!(office.tools(), Vec::<String>::new());

    let created = house.post("/resume", approvals("c", &[(&call["call_id"], None)])).await;
    assert_eq!(created.body["pending_action"]["tool_calls"][0]["tool_name"], "create_event");
    assert_eq!(office.tools(), ["update_event"]);
    let done = house.post("/resume", approvals("c", &[(&asked(&created.body)[0], None)])).await;
    assert_eq!((done.status, &done.body["status"]), (200, &json!("success")));
    assert_eq!(keys(&done.body), KEYS);
    assert_eq!(office.tools(), ["update_event", "create_event"]);
}

#[tokio::test]
async fn a_rejection_goes_back_to_the_agent_with_the_words() {
    let (house, office) = office([
        calls([event("Dentist at 9")]),
        calls([event("Dentist at 10")]),
        text("it is at 10"),
    ])
    .await;
    let first = house.post("/run", said("r", "create an event called Dentist")).await.body;
    let no = approvals("r", &[(&asked(&first)[0], Some("Wrong time, should be 10am"))]);
    let second = house.post("/resume", no).await;
    assert_eq!((second.status, &second.body["status"]), (202, &json!("confirmation_required")));
    assert_eq!(office.tools(), Vec::<String>::new());
    let state = house.get("/api/v1/sessions/r?space=thread").await.body["requestState"].clone();
    let outcome = &state["approval_outcome"];
    assert_eq!(outcome["all_approved"], false);
    assert_eq!(outcome["rejected_feedback"][0]["feedback"], "Wrong time, should be 10am");
    assert_eq!(outcome["rejected_feedback"][0]["tool_name"], "create_event");
    let told = state["messages"].to_string();
    assert!(told.contains("User rejected this action: Wrong time, should be 10am"), "{told}");
    let yes = approvals("r", &[(&asked(&second.body)[0], None)]);
    assert_eq!(house.post("/resume", yes).await.body["response"], "it is at 10");
    assert_eq!(office.each("name"), ["Dentist at 10"]);
}

#[tokio::test]
async fn some_calls_are_approved_some_are_not_and_free_ones_run_anyway() {
    let (house, office) = office([
        calls([event("Team Meeting"), event("Lunch with Bob"), ("list_events", json!({}))]),
        text("the first is there"),
    ])
    .await;
    let first = house.post("/run", said("p", "create 2 events")).await.body;
    let ids = asked(&first);
    assert_eq!(ids.len(), 2, "a call that needs no approval is not asked about");
    let body = approvals("p", &[(&ids[1], Some("I have other lunch plans")), (&ids[0], None)]);
    let done = house.post("/resume", body).await;
    assert_eq!((done.status, &done.body["response"]), (200, &json!("the first is there")));
    assert_eq!(office.each("name"), ["Team Meeting"]);
}

#[tokio::test]
async fn an_approval_may_change_the_arguments() {
    let (house, office) = office([calls([event("Standup")]), text("done")]).await;
    let first = house.post("/run", said("e", "a meeting")).await.body;
    let edited = json!({"thread_id": "e", "approvals": [{"call_id": asked(&first)[0],
        "approved": true, "arguments": {"name": "Standup at noon"}}]});
    assert_eq!(house.post("/resume", edited).await.status, 200);
    assert_eq!(office.each("name"), ["Standup at noon"]);
}

#[tokio::test]
async fn a_form_is_filled_in_or_declined() {
    for (action, content, tools) in [
        ("accept", json!({"name": "Ann"}), vec!["invite"]),
        ("decline", Value::Null, vec![]),
        ("cancel", Value::Null, vec![]),
    ] {
        let (house, office) = office([calls([("invite", json!({}))]), text("ok")]).await;
        let first = house.post("/run", said("f", "invite someone")).await;
        assert_eq!((first.status, &first.body["status"]), (202, &json!("form_required")));
        let form = &first.body["pending_action"];
        assert_eq!(
            (&form["kind"], &form["message"]),
            (&json!("form_elicitation"), &json!("who comes?"))
        );
        assert_eq!(form["schema"]["required"], json!(["name"]));
        assert_eq!(
            (&first.body["thread_id"], &first.body["message"]),
            (&json!("f"), &form["message"])
        );
        let response = |action: &str, content: &Value| {
            let mut one = json!({"elicitation_id": form["elicitation_id"], "action": action});
            if !content.is_null() {
                one["content"] = content.clone();
            }
            json!({"thread_id": "f", "elicitation_responses": [one]})
        };
        let misfit = house.post("/resume", response("accept", &json!({"name": 7}))).await;
        let pointer = "/elicitation_responses/name".to_owned();
        assert_eq!(misfit.refusal(), (422, "input_misfit".to_owned(), vec![pointer]));
        let no = house.post("/resume", response("decline", &json!({"name": "x"}))).await;
        assert_eq!(no.refusal().1, "contradiction");
        let done = house.post("/resume", response(action, &content)).await;
        assert_eq!(done.status, 200, "{done:?}");
        assert_eq!(office.tools(), tools, "{action}");
    }
}

#[tokio::test]
async fn a_login_is_asked_for_once_and_the_run_goes_on_by_itself() {
    let (house, office) = office([calls([("book_room", json!({}))]), text("booked")]).await;
    let first = house.post("/run", said("o", "book a room")).await;
    assert_eq!((first.status, &first.body["status"]), (202, &json!("oauth_required")));
    assert_eq!(keys(&first.body), KEYS);
    let action = &first.body["pending_action"];
    let url = json!("https://login.test/0");
    assert_eq!((&action["kind"], &action["url"]), (&json!("oauth_url"), &url));
    assert_eq!((&first.body["url"], &first.body["thread_id"]), (&url, &json!("o")));
    assert_eq!(
        (&first.body["message"], &first.body["response"]),
        (&json!("log in first"), &json!("log in first"))
    );
    let state = until(&house, "o", "waiting").await["requestState"].clone();
    assert_eq!((&state["auth_url"], &state["pending_action"]), (&url, action));

    // It is polled a few times in vain, and the person who is asked does not notice.
    let knocks = async || office.knocks.load(Ordering::SeqCst);
    wait_for("four polls of the login", knocks, |count: &usize| *count >= 4).await;
    let asks = house.get("/api/v1/asks?session=o&space=thread&status=any").await.body;
    assert_eq!(asks["items"].as_array().unwrap().len(), 1, "somebody was asked twice: {asks}");
    assert_eq!(office.tools(), Vec::<String>::new());

    office.logged_in.store(true, Ordering::SeqCst);
    let session = until(&house, "o", "completed").await;
    assert_eq!(session["requestState"]["final_response"], "booked");
    assert_eq!(office.tools(), ["book_room"], "it was done once");
    let ask = house.get(&format!("/api/v1/asks/{}", plain(&action["elicitation_id"]))).await.body;
    assert_eq!(ask["status"], "withdrawn");
}

#[tokio::test]
async fn a_login_gives_way_to_a_new_request_and_can_be_declined() {
    let (house, office) = office([
        calls([("book_room", json!({}))]),
        text("something else"),
        calls([("book_room", json!({}))]),
        text("no room then"),
    ])
    .await;
    let first = house.post("/run", said("o", "book a room")).await.body;
    let second = house.post("/run", said("o", "never mind, say something")).await;
    assert_eq!((second.status, &second.body["response"]), (200, &json!("something else")));
    let ask = plain(&first["pending_action"]["elicitation_id"]);
    assert_eq!(house.get(&format!("/api/v1/asks/{ask}")).await.body["status"], "withdrawn");

    let third = house.post("/run", said("o", "book it after all")).await.body;
    let id = &third["pending_action"]["elicitation_id"];
    let no = json!({"thread_id": "o", "elicitation_responses": [
        {"elicitation_id": id, "action": "decline"}]});
    let answer = house.post("/resume", no).await;
    assert!([200, 202].contains(&answer.status), "{answer:?}");
    assert_eq!(office.tools(), Vec::<String>::new());
}

#[tokio::test]
async fn a_stuck_run_is_an_error_that_names_its_ask() {
    let (house, office) = office([calls([("lose", json!({}))])]).await;
    let stuck = house.post("/run", said("s", "lose it")).await;
    assert_eq!(stuck.refusal(), (500, "run_stuck".to_owned(), vec![]));
    assert_eq!(stuck.body["status"], "error");
    for key in KEYS {
        assert!(stuck.body.get(key).is_some(), "no {key}: {stuck:?}");
    }
    let ask = plain(&stuck.body["asks"][0]["askId"]);
    assert!(plain(&stuck.body["hint"]).contains(&ask), "{stuck:?}");
    assert_eq!(plain(&stuck.body["trace_id"]).len(), 32);
    assert_eq!(office.tools(), Vec::<String>::new());
    let busy = house.post("/run", said("s", "and now?")).await;
    assert_eq!(busy.refusal().1, "thread_busy");
    let settled = house.post(&format!("/api/v1/asks/{ask}"), json!({"action": "abort"})).await;
    assert_eq!(settled.status, 200);
    let over = house.post("/run", said("s", "and now?")).await;
    assert_eq!(over.status, 200, "{over:?}");
}

#[tokio::test]
async fn a_reached_limit_is_said_in_the_answer() {
    let mut agent = assistant();
    agent["limits"] = json!({"steps": 1});
    let (house, _) = office_of(agent, [calls([("list_events", json!({}))]), text("never")]).await;
    let answer = house.post("/run", said("l", "what is on?")).await;
    assert_eq!((answer.status, &answer.body["status"]), (200, &json!("success")));
    let said = plain(&answer.body["response"]);
    assert!(said.contains("limit") && said.contains("list_events"), "{said}");
    let session = house.get("/api/v1/sessions/l?space=thread").await.body;
    let run = house.get(&format!("/api/v1/runs/{}", plain(&session["run"]))).await.body;
    assert_eq!(run["run"]["stopped"], "steps");
}

#[tokio::test]
async fn a_slow_request_is_202_with_its_location() {
    let gate = Arc::new(Semaphore::new(0));
    let (house, _) = office([later(&gate, "at last")]).await;
    let answer = house.post("/run?wait=0.05", said("w", "take your time")).await;
    assert_eq!((answer.status, &answer.body["status"]), (202, &json!("running")));
    assert_eq!(answer.body["thread_id"], "w");
    let location = answer.header("location").to_owned();
    assert!(location.starts_with("/api/v1/runs/run_"), "{location}");
    let busy = house.post("/run", said("w", "are you there?")).await;
    assert_eq!(busy.refusal(), (409, "thread_busy".to_owned(), vec![]));
    gate.add_permits(1);
    until(&house, "w", "completed").await;
    assert_eq!(house.get(&location).await.body["run"]["answer"], "at last");
}

#[tokio::test]
async fn a_key_makes_a_request_once() {
    let (house, office) = office([calls([event("Standup")]), text("done"), text("more")]).await;
    let key = [("idempotency-key", "k1")];
    let first = house.post_with("/run", &key, said("k", "a meeting")).await;
    let again = house.post_with("/run", &key, said("k", "a meeting")).await;
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(again.body, first.body);
    let yes = approvals("k", &[(&asked(&first.body)[0], None)]);
    let done = house.post_with("/resume", &key, yes.clone()).await;
    assert_eq!(done.status, 200, "{done:?}");
    let again = house.post_with("/resume", &key, yes.clone()).await;
    assert_eq!((again.status, &again.body), (200, &done.body));
    assert_eq!(again.header("idempotency-replayed"), "true");

    // Whatever was said in the thread since then.
    let more = house.post("/run", said("k", "and more")).await;
    assert_eq!(more.body["response"], "more");
    let late = house.post_with("/resume", &key, yes.clone()).await;
    assert_eq!((late.status, &late.body), (200, &done.body));
    assert_eq!(late.header("idempotency-replayed"), "true");
    let unknown = house.post_with("/resume", &[("idempotency-key", "k2")], yes).await;
    assert_eq!(unknown.refusal().1, "no_open_ask");
    assert_eq!(office.tools(), ["create_event"]);
}

/// The events of a stream, as name and data.
async fn events(house: &House, path: &str, body: Value) -> Vec<(String, Value)> {
    let mut request = request(Method::POST, path, Body::from(body.to_string()));
    request.headers_mut().insert("accept", "text/event-stream".parse().unwrap());
    let answer = read(house.open(request).await).await;
    assert_eq!(answer.header("content-type"), "text/event-stream", "{answer:?}");
    assert!(answer.header("location").starts_with("/api/v1/runs/run_"), "{answer:?}");
    let field = |block: &str, name: &str| -> Option<String> {
        let line = block.lines().find(|line| line.starts_with(name))?;
        Some(line[name.len()..].trim().to_owned())
    };
    let event = |block: &str| {
        let data = field(block, "data:")?;
        Some((field(block, "event:")?, serde_json::from_str(&data).unwrap()))
    };
    answer.text.split("\n\n").filter_map(event).collect()
}

#[tokio::test]
async fn a_stream_tells_what_happens_and_ends_with_the_answer() {
    let (house, office) =
        office([calls([event("Standup"), ("list_events", json!({}))]), text("it is done now")])
            .await;
    let told = events(&house, "/run", said("st", "a meeting")).await;
    let names: Vec<&str> = told.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["tool_call", "tool_call", "result"]);
    assert_eq!(told[0].1["tool_name"], "create_event");
    let result = &told[2].1;
    assert_eq!(result["status"], "confirmation_required");
    assert_eq!(result["pending_action"]["tool_calls"][0]["call_id"], told[0].1["call_id"]);
    assert_eq!(office.tools(), Vec::<String>::new());

    let told = events(&house, "/resume", approvals("st", &[(&asked(result)[0], None)])).await;
    let deltas: Vec<String> = told
        .iter()
        .filter(|(name, _)| name == "delta")
        .map(|(_, data)| plain(&data["text"]))
        .collect();
    assert_eq!(deltas.concat(), "it is done now");
    assert_eq!(told.iter().filter(|(name, _)| name == "tool_result").count(), 2);
    let last_result = told.iter().rposition(|(name, _)| name == "tool_result");
    let first_delta = told.iter().position(|(name, _)| name == "delta");
    assert!(last_result < first_delta, "text comes after what led to it: {told:?}");
    let (name, last) = told.last().unwrap();
    assert_eq!((name.as_str(), &last["response"]), ("result", &json!("it is done now")));
    assert_eq!(keys(last), KEYS);

    // What is refused before anything begins is an answer like any other.
    let mut refused = request(Method::POST, "/run", Body::from(said("", "x").to_string()));
    refused.headers_mut().insert("accept", "text/event-stream".parse().unwrap());
    assert_eq!(house.send(refused).await.status, 422);
}

#[tokio::test]
async fn a_stream_tells_nothing_of_the_run_before() {
    let (house, _office) = office([calls([("book_room", json!({}))]), text("as you like")]).await;
    let first = house.post("/run", said("sb", "book a room")).await;
    assert_eq!(first.body["status"], "oauth_required");
    let told = events(&house, "/run", said("sb", "never mind")).await;
    let mut names: Vec<&str> = told.iter().map(|(name, _)| name.as_str()).collect();
    names.retain(|name| *name != "delta");
    assert_eq!(names, ["result"], "{told:?}");
    assert_eq!(told.last().unwrap().1["response"], "as you like");
}

#[tokio::test]
async fn a_client_that_leaves_cancels_nothing() {
    let gate = Arc::new(Semaphore::new(0));
    let (house, _) = office([later(&gate, "at last")]).await;
    let mut begun = request(Method::POST, "/run", Body::from(said("g", "x").to_string()));
    begun.headers_mut().insert("accept", "text/event-stream".parse().unwrap());
    drop(house.open(begun).await);
    gate.add_permits(1);
    let session = until(&house, "g", "completed").await;
    assert_eq!(session["requestState"]["final_response"], "at last");
}

#[tokio::test]
async fn an_agent_runs_under_api_v1_too_and_says_what_it_cost() {
    let (house, _) = office([text("hello"), text("hello again"), text("and again")]).await;
    let body = json!({"agent": "assistant", "input": "hi", "session": "mine"});
    let answer = house.post("/api/v1/runs", body).await;
    assert_eq!((answer.status, &answer.body["run"]["answer"]), (200, &json!("hello")));
    assert_eq!(answer.body["session"]["space"], "thread");
    let cost = &answer.body["run"]["cost"];
    assert_eq!(
        (&cost["turns"], &cost["inputTokens"], &cost["outputTokens"]),
        (&json!(2), &json!(20), &json!(4))
    );
    assert_eq!(cost["dollars"], json!(0.000024));
    let same = json!({"agent": "assistant", "input": {"user_request": "hi"}, "session": "mine"});
    assert_eq!(house.post("/api/v1/runs", same).await.body["run"]["answer"], "hello again");
    let alone = house.post("/api/v1/runs", json!({"agent": "assistant", "input": "hi"})).await;
    assert_eq!(alone.body["session"]["space"], "session");
    let listed = house.get("/api/v1/sessions?agent=assistant").await.body;
    assert_eq!(listed["items"].as_array().unwrap().len(), 2);
    assert_eq!(house.get("/api/v1/sessions?agent=nobody").await.body["items"], json!([]));
    assert_eq!(house.get("/api/v1/sessions?agent=a&plan=b").await.status, 400);
    for (body, status, code) in [
        (json!({"agent": "asistant", "input": "hi"}), 404, "not_found"),
        (json!({"agent": "assistant"}), 422, "wrong_shape"),
        (json!({"agent": "assistant", "input": " "}), 422, "wrong_shape"),
        (json!({"agent": "assistant", "planId": "x", "input": "hi"}), 400, "agent_and_plan"),
    ] {
        let refused = house.post("/api/v1/runs", body.clone()).await;
        let (told, code_told, _) = refused.refusal();
        assert_eq!((told, code_told.as_str()), (status, code), "{body}");
    }
}
