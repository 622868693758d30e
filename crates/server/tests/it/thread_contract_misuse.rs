//! `/run` and `/resume` misused: each case with its status, and nothing done by any of them.

use crate::house::{House, refused};
use crate::talk::{approvals, asked, calls, office, said, text};
use serde_json::{Value, json};

fn event(name: &str) -> (&'static str, Value) {
    ("create_event", json!({"name": name}))
}

/// A thread that waits for two approvals; their call ids.
async fn two_asked(house: &House, thread: &str) -> Vec<Value> {
    let answer = house.post("/run", said(thread, "two events")).await;
    assert_eq!(answer.body["status"], "confirmation_required", "{answer:?}");
    asked(&answer.body)
}

#[tokio::test]
async fn answers_that_do_not_cover_exactly_the_questions_run_nothing() {
    let (house, office) = office([calls([event("a"), event("b")]), text("done")]).await;
    let ids = two_asked(&house, "t").await;
    let one = &ids[0];
    let two = &ids[1];
    let unknown = json!(format!("call_{}", "0".repeat(32)));
    let answer = |id: &Value| {
        let responses = json!([{"call_id": id, "response": "x"}]);
        json!({"thread_id": "t", "clarification_responses": responses})
    };
    let mut both = approvals("t", &[(one, None), (two, None)]);
    both["clarification_responses"] = answer(one)["clarification_responses"].clone();
    let wordless = json!({"thread_id": "t", "approvals": [
        {"call_id": one, "approved": false}, {"call_id": two, "approved": true}]});
    let blank = json!({"thread_id": "t", "approvals": [
        {"call_id": one, "approved": false, "feedback": " "}, {"call_id": two, "approved": true}]});
    let edited = json!({"thread_id": "t", "approvals": [
        {"call_id": one, "approved": false, "feedback": "no", "arguments": {}},
        {"call_id": two, "approved": true}]});
    for (why, body, code, pointers) in [
        ("one is missing", approvals("t", &[(one, None)]), "calls_missing", vec!["/approvals"]),
        (
            "an unknown call is approved",
            approvals("t", &[(one, None), (two, None), (&unknown, None)]),
            "unknown_call",
            vec!["/approvals/2"],
        ),
        (
            "an unknown call is rejected",
            approvals("t", &[(&unknown, Some("no"))]),
            "unknown_call",
            vec!["/approvals/0"],
        ),
        ("the list is empty", approvals("t", &[]), "empty_list", vec!["/approvals"]),
        ("an answer to an approval", answer(one), "other_kind", vec!["/clarification_responses/0"]),
        ("both lists", both, "several_lists", vec![]),
        (
            "a call is there twice",
            approvals("t", &[(one, None), (two, None), (one, Some("no"))]),
            "given_twice",
            vec!["/approvals/2"],
        ),
        ("no list", json!({"thread_id": "t"}), "nothing_given", vec![]),
        ("a no without words", wordless, "feedback_missing", vec!["/approvals/0/feedback"]),
        ("a no with blank words", blank, "feedback_missing", vec!["/approvals/0/feedback"]),
        ("a no that is edited", edited, "rejected_and_edited", vec!["/approvals/0/arguments"]),
        (
            "a form that nobody asked for",
            json!({"thread_id": "t", "elicitation_responses": [
                {"elicitation_id": one, "action": "accept"}]}),
            "other_kind",
            vec!["/elicitation_responses/0"],
        ),
    ] {
        let answer = house.post("/resume", body).await;
        assert_eq!(answer.refusal(), refused(400, code, &pointers), "{why}: {answer:?}");
        assert_eq!(answer.body["status"], "error", "{why}");
        assert!(answer.body["message"].is_string() && answer.body["trace_id"].is_string());
        assert_eq!(office.tools(), Vec::<String>::new(), "{why}");
    }
    let done = house.post("/resume", approvals("t", &[(one, None), (two, Some("no"))])).await;
    assert_eq!(done.status, 200, "the ask was still open: {done:?}");
    assert_eq!(office.each("name"), ["a"]);
}

#[tokio::test]
async fn every_question_is_answered_with_something() {
    let ask = |question: &str| ("request_clarification", json!({"question": question}));
    let (house, _) = office([calls([ask("what?"), ask("when?")]), text("fine")]).await;
    let first = house.post("/run", said("q", "schedule something")).await.body;
    let ids = asked(&first);
    let answers = |given: &[(&Value, &str)]| {
        let list: Vec<Value> =
            given.iter().map(|(id, text)| json!({"call_id": id, "response": text})).collect();
        json!({"thread_id": "q", "clarification_responses": list})
    };
    for (body, code) in [
        (answers(&[(&ids[0], "a walk")]), "calls_missing"),
        (answers(&[(&ids[0], "a walk"), (&ids[1], " ")]), "empty_answer"),
        (approvals("q", &[(&ids[0], None), (&ids[1], None)]), "other_kind"),
        (answers(&[(&json!("call_x"), "a walk")]), "unknown_call"),
    ] {
        let answer = house.post("/resume", body.clone()).await;
        let (status, told, _) = answer.refusal();
        assert_eq!((status, told.as_str()), (400, code), "{body}");
    }
    let done = house.post("/resume", answers(&[(&ids[1], "at 3"), (&ids[0], "a walk")])).await;
    assert_eq!(done.body["response"], "fine", "{done:?}");
}

#[tokio::test]
async fn a_resume_that_fits_no_open_ask_is_refused() {
    let (house, office) = office([calls([event("a")]), text("done"), calls([event("b")])]).await;
    let nobody = house.post("/resume", approvals("nobody", &[(&json!("call_x"), None)])).await;
    assert_eq!(nobody.refusal(), refused(404, "not_found", &[]));

    let first = house.post("/run", said("t", "an event")).await.body;
    let busy = house.post("/run", said("t", "another one")).await;
    assert_eq!(busy.refusal(), refused(409, "thread_busy", &[]));
    assert_eq!(busy.body["asks"][0]["kind"], "approve", "{busy:?}");
    assert_eq!(busy.body["state"], "waiting");

    let yes = approvals("t", &[(&asked(&first)[0], None)]);
    assert_eq!(house.post("/resume", yes.clone()).await.status, 200);
    let twice = house.post("/resume", yes.clone()).await;
    assert_eq!(twice.refusal(), refused(409, "ask_decided", &[]));
    assert_eq!(twice.body["decision"]["by"], "local", "{twice:?}");
    assert_eq!(twice.body["decision"]["via"], "run", "{twice:?}");
    let other = house.post("/resume", approvals("t", &[(&json!("call_x"), None)])).await;
    assert_eq!(other.refusal(), refused(409, "no_open_ask", &[]));

    // A late answer never hits the next question.
    let next = house.post("/run", said("t", "one more")).await.body;
    assert_eq!(next["status"], "confirmation_required");
    assert_eq!(house.post("/resume", yes).await.refusal().1, "unknown_call");
    assert_eq!(office.each("name"), ["a"]);
}

#[tokio::test]
async fn of_two_resumes_at_once_one_counts() {
    let (house, office) = office([calls([event("a")]), text("done")]).await;
    let first = house.post("/run", said("t", "an event")).await.body;
    let yes = approvals("t", &[(&asked(&first)[0], None)]);
    let (left, right) =
        tokio::join!(house.post("/resume", yes.clone()), house.post("/resume", yes.clone()));
    let mut statuses = [left.status, right.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409], "{left:?} {right:?}");
    assert_eq!(office.tools(), ["create_event"]);
}

#[tokio::test]
async fn malformed_bodies_are_told_apart() {
    let (house, _) = office([]).await;
    for (path, body, status, code) in [
        ("/run", "", 400, "no_body"),
        ("/run", "{", 400, "malformed_json"),
        ("/run", "[]", 422, "wrong_shape"),
        ("/run", "{}", 422, "wrong_shape"),
        ("/run", r#"{"thread_id": 7, "user_request": "x"}"#, 422, "wrong_shape"),
        ("/run", r#"{"thread_id": "t", "user_request": " "}"#, 422, "wrong_shape"),
        ("/run", r#"{"thread_id": "", "user_request": "x"}"#, 422, "bad_session_id"),
        ("/run", r#"{"thread_id": "t", "user_request": "x", "agnet": "y"}"#, 422, "wrong_shape"),
        ("/run", r#"{"thread_id": "t", "user_request": "x", "agent": "y"}"#, 404, "not_found"),
        ("/resume", "{", 400, "malformed_json"),
        ("/resume", "{}", 422, "wrong_shape"),
        ("/resume", r#"{"thread_id": "t", "approvals": {}}"#, 422, "wrong_shape"),
        ("/resume", r#"{"thread_id": "t", "approvals": [{"call_id": "x"}]}"#, 422, "wrong_shape"),
        (
            "/resume",
            r#"{"thread_id": "t", "elicitation_responses": [{"elicitation_id": "x"}]}"#,
            422,
            "wrong_shape",
        ),
    ] {
        let answer = house.post_text(path, body).await;
        let (told, told_code, _) = answer.refusal();
        assert_eq!((told, told_code.as_str()), (status, code), "{path} {body}: {answer:?}");
        assert_eq!(answer.body["status"], "error", "{path} {body}");
        assert_eq!(answer.header("content-type"), "application/json");
    }
    assert_eq!(house.get("/run").await.status, 405);
    let sessions = house.get("/api/v1/sessions").await;
    assert_eq!(sessions.body["items"], json!([]), "nothing of these was stored");
}
