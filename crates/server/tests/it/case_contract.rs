//! The route of a pipeline: every status of it, and what the journal has of its cases.

use crate::desk::{DESK, ROUTE, case, count, desk, desk_with, journal, send, send_with, until};
use crate::house::{House, read, refused, request, text};
use axum::body::Body;
use axum::http::{Method, Request};
use futures::stream::{FuturesUnordered, StreamExt};
use serde_json::{Value, json};

async fn post(house: &House, id: &str, reason: &str) -> crate::house::Answer {
    send(house, ROUTE, &case(id, reason).to_string()).await
}

#[tokio::test]
async fn a_known_reason_is_handled_and_no_model_is_asked() {
    let (house, _) = desk().await;
    let repaired = post(&house, "T-100", "Missing ISIN").await;
    let event = json!({"type": "TradeRepaired", "tradeId": "T-100",
        "by": "deterministic-processor", "details": {"action": "lookup+enrich ISIN"}});
    let expected = json!({"status": "ok", "path": "deterministic", "resultEvent": event});
    assert_eq!((repaired.status, &repaired.body), (200, &expected));
    assert_eq!(repaired.header("content-type"), "application/json");
    let written = serde_json::to_string_pretty(&repaired.body).unwrap();
    assert_eq!(repaired.text, format!("{written}\n"));
    let told = journal(&house, "desk", "T-100").await;
    assert_eq!(count(&told, "turn.started"), 0, "{told:?}");
    assert_eq!(count(&told, "agent.entered"), 0, "{told:?}");
    let published = told.iter().find(|(kind, _)| kind == "event.published").unwrap();
    assert_eq!(published.1["published"], json!({"source": "desk.events", "event": event}));

    let escalated = post(&house, "T-101", "Invalid Counterparty").await;
    let event = json!({"type": "TradeEscalated", "tradeId": "T-101",
        "by": "deterministic-processor", "reason": "Invalid Counterparty"});
    let expected = json!({"status": "ok", "path": "deterministic", "resultEvent": event});
    assert_eq!((escalated.status, escalated.body), (200, expected));
}

#[tokio::test]
async fn an_unknown_reason_is_the_agents() {
    let (house, _) = desk().await;
    // A reason is known exactly or not at all.
    for (id, reason) in [("T-200", "odd"), ("T-201", "missing isin"), ("T-202", "")] {
        let answer = post(&house, id, reason).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let result = &answer.body["result"];
        let event = &result["event"];
        assert_eq!((&result["status"], &event["caseId"]), (&json!("published"), &json!(id)));
        assert_eq!(text(&event["correlationId"]).len(), 36, "{event}");
        let expected = json!({"status": "ok", "path": "agent", "result": result, "tradeId": id});
        assert_eq!(answer.body, expected);
        let told = journal(&house, "desk", id).await;
        assert_eq!(count(&told, "turn.started"), 1, "{told:?}");
        let finished = told.iter().find(|(kind, _)| kind == "call.finished").unwrap();
        assert_eq!(&finished.1["published"][0]["event"], event);
        assert_eq!(finished.1["published"][0]["source"], "desk.events");
    }
}

#[tokio::test]
async fn malformed_cases_are_refused_and_leave_nothing() {
    let (house, _) =
        desk_with(&[("desk", DESK)], "body_bytes_max = 1000\nbody_depth_max = 8").await;
    let missing = |fields: &str| format!("Missing required field(s): {fields}");
    let expected = "Expected JSON body".to_owned();
    for (body, code, error) in [
        ("", "no_body", expected.clone()),
        ("{\"tradeId\":", "malformed_json", expected.clone()),
        ("tradeId=T-1", "malformed_json", expected.clone()),
        ("[]", "wrong_shape", expected.clone()),
        ("\"T-1\"", "wrong_shape", expected.clone()),
        ("null", "wrong_shape", expected),
        ("{}", "missing_fields", missing("tradeId, reason")),
        ("{\"tradeId\": \"T-1\"}", "missing_fields", missing("reason")),
        ("{\"tradeId\": \"T-1\", \"reason\": null}", "missing_fields", missing("reason")),
    ] {
        let answer = send(&house, ROUTE, body).await;
        assert_eq!(answer.status, 400, "{body}: {answer:?}");
        assert_eq!(answer.body["error"], error, "{body}");
        assert_eq!(answer.body["code"], code, "{body}");
        assert!(answer.body["hint"].is_string(), "{body}: {answer:?}");
    }
    let pointers = send(&house, ROUTE, "{}").await.refusal();
    assert_eq!(pointers, refused(400, "missing_fields", &["/tradeId", "/reason"]));
    for id in [json!(""), json!([1]), json!({}), json!("x".repeat(300))] {
        let body = json!({"tradeId": id, "reason": "odd"}).to_string();
        let answer = send(&house, ROUTE, &body).await;
        assert_eq!(answer.refusal(), refused(400, "bad_case_id", &["/tradeId"]), "{body}");
    }
    // A number whose last digits nobody keeps would be the number of other cases, too.
    let digits = r#"{"tradeId": 123456789012345678901, "reason": "odd"}"#;
    let answer = send(&house, ROUTE, digits).await;
    assert_eq!(answer.refusal(), refused(400, "bad_case_id", &["/tradeId"]), "{answer:?}");
    let deep = format!("{{\"altIds\": {}{}}}", "[".repeat(9), "]".repeat(9));
    assert_eq!(send(&house, ROUTE, &deep).await.refusal().1, "too_deep");
    let large = case("T-1", &"x".repeat(1000)).to_string();
    assert_eq!(send(&house, ROUTE, &large).await.status, 413);
    assert_eq!(house.get("/api/v1/sessions").await.body["items"], json!([]));
}

#[tokio::test]
async fn a_body_keeps_its_allowed_fields_only() {
    let (house, _) = desk().await;
    let body = json!({"tradeId": 7, "reason": "Missing ISIN", "altIds": ["a"],
        "correlationId": "mine", "admin": true});
    let answer = send(&house, ROUTE, &body.to_string()).await;
    assert_eq!((answer.status, &answer.body["resultEvent"]["tradeId"]), (200, &json!(7)));
    let told = journal(&house, "desk", "7").await;
    let started = told.iter().find(|(kind, _)| kind == "run.started").unwrap();
    assert!(!started.1.to_string().contains("mine"), "{started:?}");
    assert!(!started.1.to_string().contains("admin"), "{started:?}");
    assert!(started.1.to_string().contains("altIds"), "{started:?}");
    let about = json!({"kind": "Missing ISIN", "trigger": "pipeline", "endpoint": ROUTE});
    assert_eq!(started.1["about"], about);
    for member in ["subject", "actor", "scopes"] {
        assert_eq!(started.1.get(member), None, "local mode leaves no names");
    }
}

#[tokio::test]
async fn a_reached_limit_is_said_in_the_answer() {
    let (house, _) = desk().await;
    let answer = post(&house, "T-300", "in circles").await;
    let expected = json!({"status": "error", "path": "agent",
        "reason": "Step limit reached (safety stop)", "tradeId": "T-300"});
    assert_eq!((answer.status, &answer.body), (200, &expected));
    let told = journal(&house, "desk", "T-300").await;
    assert_eq!(count(&told, "turn.started"), 3, "as many as it may take");
    // The run is over and says what stopped it; its answer is the plan's.
    let session = house.get("/api/v1/sessions/T-300?space=case:desk").await.body;
    let path = format!("/api/v1/runs/{}", text(&session["run"]));
    let run = house.get(&path).await.body["run"].clone();
    assert_eq!((&run["status"], &run["stopped"]), (&json!("completed"), &json!("steps")), "{run}");
    let answer = &run["answer"];
    assert_eq!((&answer["status"], &answer["path"]), (&json!("ok"), &json!("agent")), "{run}");
    assert!(text(&answer["result"]).starts_with("I stopped here"), "{run}");
}

#[tokio::test]
async fn decisions_that_cannot_be_executed_are_left_to_a_person() {
    let (house, _) = desk().await;
    for (id, reason, error) in [
        ("T-400", "dance", Some("Unsupported intent: DANCE")),
        ("T-401", "foreign", Some("Tool not allowlisted: http::request")),
        ("T-402", "misfit", None),
    ] {
        let stuck = post(&house, id, reason).await;
        assert_eq!(stuck.refusal(), refused(500, "run_stuck", &[]), "{stuck:?}");
        assert!(error.is_none_or(|error| stuck.body["error"] == error), "{stuck:?}");
        let location = stuck.header("location").to_owned();
        let session = house.get(&location).await;
        assert_eq!(session.body["status"], "stuck", "{location}: {session:?}");
        assert_eq!(session.body["key"], id);
        let ask = text(&stuck.body["asks"][0]["askId"]);
        assert!(text(&stuck.body["hint"]).contains(&ask), "{stuck:?}");

        // The next request for this case learns at once what it waits for.
        let waits = post(&house, id, "Missing ISIN").await;
        assert_eq!(waits.status, 202, "{waits:?}");
        assert_eq!(waits.header("location"), location);
        let body = &waits.body;
        assert_eq!((&body["status"], &body["tradeId"]), (&json!("pending"), &json!(id)));
        assert_eq!((&body["path"], &body["ask"]["kind"]), (&json!("agent"), &json!("fix")));
        assert_eq!(body["ask"]["id"], ask);
        let given_up = house.post(&format!("/api/v1/asks/{ask}"), json!({"action": "abort"})).await;
        assert_eq!(given_up.status, 200, "{given_up:?}");
        assert_eq!(post(&house, id, "Missing ISIN").await.body["path"], "deterministic");
    }
}

#[tokio::test]
async fn a_person_says_how_a_stuck_case_goes_on() {
    let (house, _) = desk().await;
    let ask_of = |stuck: &Value| format!("/api/v1/asks/{}", text(&stuck["asks"][0]["askId"]));
    let mended = json!({"tradeId": "T-411", "category": "c", "summary": "s"});
    for (id, reason, reply, expected) in [
        ("T-410", "dance", json!({"action": "skip", "output": {"by": "hand"}}), "hand"),
        ("T-411", "misfit", json!({"action": "edit", "arguments": mended}), "created"),
    ] {
        let stuck = post(&house, id, reason).await.body;
        let run = house.post(&ask_of(&stuck), reply).await.body["run"].clone();
        let answer = &run["answer"];
        assert_eq!((&answer["status"], &answer["path"]), (&json!("ok"), &json!("agent")), "{run}");
        assert_eq!(answer["tradeId"], id, "{run}");
        assert!(answer["result"].to_string().contains(expected), "{run}");
        assert_eq!(post(&house, id, "Missing ISIN").await.body["path"], "deterministic");
    }
    // A retry meets the same again, under another ask.
    let stuck = post(&house, "T-412", "dance").await.body;
    let run = house.post(&ask_of(&stuck), json!({"action": "retry"})).await.body["run"].clone();
    assert_eq!(run["status"], "stuck", "{run}");
    let waits = post(&house, "T-412", "Missing ISIN").await;
    assert_eq!((waits.status, &waits.body["ask"]["id"]), (202, &run["asks"][0]["id"]));
    assert_ne!(waits.body["ask"]["id"], stuck["asks"][0]["askId"]);
}

#[tokio::test]
async fn a_question_on_the_way_is_accepted_and_names_its_ask() {
    let (house, _) = desk().await;
    let first = post(&house, "T-500", "Ask first").await;
    assert_eq!(first.status, 202, "{first:?}");
    let written = serde_json::to_string_pretty(&first.body).unwrap();
    assert_eq!(first.text, format!("{written}\n"));
    assert_eq!(first.body["path"], "deterministic");
    assert_eq!(
        (&first.body["status"], &first.body["tradeId"]),
        (&json!("pending"), &json!("T-500"))
    );
    let session = house.get(first.header("location")).await.body;
    assert_eq!((&session["status"], &session["key"]), (&json!("waiting"), &json!("T-500")));
    let second = post(&house, "T-500", "odd").await;
    assert_eq!((second.status, &second.body["ask"]), (202, &first.body["ask"]), "{second:?}");
    assert_eq!(second.body["path"], "deterministic", "the run that waits took that road");

    let ask = text(&first.body["ask"]["id"]);
    let replied = house.post(&format!("/api/v1/asks/{ask}"), json!({"answer": "yes"})).await;
    assert_eq!(replied.status, 200, "{replied:?}");
    let answer = &replied.body["run"]["answer"];
    assert_eq!(answer, &json!({"status": "ok", "path": "deterministic", "result": "yes"}));
    assert_eq!(post(&house, "T-500", "odd").await.body["path"], "agent");
}

#[tokio::test]
async fn a_request_ends_and_its_run_goes_on() {
    let slow = DESK.replace("requestTimeoutMs: 60000", "requestTimeoutMs: 100");
    let (house, gate) = desk_with(&[("desk", &slow)], "").await;
    let late = post(&house, "T-600", "Take your time").await;
    assert_eq!(late.refusal(), refused(504, "timeout", &[]), "{late:?}");
    let location = late.header("location").to_owned();
    assert_eq!(house.get(&location).await.body["status"], "running");
    // It has the turn until it is over: who comes next is not even begun.
    let behind = post(&house, "T-600", "Missing ISIN").await;
    assert_eq!(behind.refusal(), refused(504, "timeout", &[]), "{behind:?}");
    assert_eq!(behind.header("location"), "");
    gate.add_permits(1);
    until(&house, "desk", "T-600", "completed").await;
    let told = journal(&house, "desk", "T-600").await;
    assert_eq!(count(&told, "run.started"), 1, "{told:?}");
}

#[tokio::test]
async fn requests_for_one_case_stand_in_line_and_the_line_has_an_end() {
    let (house, gate) = desk_with(&[("desk", DESK)], "case_queue_max = 1").await;
    let mut asked: FuturesUnordered<_> =
        (0..5).map(|_| post(&house, "T-700", "Take your time")).collect();
    // All others are let go on only once somebody was sent away.
    let busy = asked.next().await.unwrap();
    assert_eq!(busy.refusal(), refused(429, "case_busy", &[]), "{busy:?}");
    assert_eq!(busy.header("retry-after"), "1");
    gate.add_permits(5);
    let mut done = 0;
    let mut sent_away = 1;
    while let Some(answer) = asked.next().await {
        match answer.status {
            200 => done += 1,
            429 => sent_away += 1,
            status => panic!("{status}: {answer:?}"),
        }
    }
    assert_eq!(done + sent_away, 5);
    assert!(done >= 1, "whoever was first is answered");
    let told = journal(&house, "desk", "T-700").await;
    assert_eq!(count(&told, "run.started"), done, "{told:?}");
}

#[tokio::test]
async fn a_failed_case_is_answered_as_an_error() {
    let (house, _) = desk().await;
    let failed = post(&house, "T-800", "Give up").await;
    assert_eq!(failed.refusal(), refused(500, "run_failed", &[]), "{failed:?}");
    assert_eq!(failed.body["error"], "`test::always_fail` fails by design");
    assert_eq!(house.get(failed.header("location")).await.body["status"], "failed");
    assert_eq!(post(&house, "T-800", "Missing ISIN").await.status, 200);
}

#[tokio::test]
async fn a_key_takes_a_case_once() {
    let (house, _) = desk().await;
    let key = [("idempotency-key", "k1")];
    let body = case("T-900", "odd").to_string();
    let first = send_with(&house, ROUTE, &key, &body).await;
    let again = send_with(&house, ROUTE, &key, &body).await;
    assert_eq!((again.status, &again.body), (200, &first.body));
    assert_eq!(again.header("idempotency-replayed"), "true");
    let told = journal(&house, "desk", "T-900").await;
    assert_eq!(count(&told, "run.started"), 1, "{told:?}");
    let other = send_with(&house, ROUTE, &key, &case("T-900", "even").to_string()).await;
    assert_eq!(other.status, 422, "{other:?}");

    // What went wrong is reported again, too, and not done again.
    let key = [("idempotency-key", "k2")];
    let body = case("T-901", "dance").to_string();
    let first = send_with(&house, ROUTE, &key, &body).await;
    let again = send_with(&house, ROUTE, &key, &body).await;
    assert_eq!((first.status, again.status), (500, 500), "{again:?}");
    assert_eq!(again.body["asks"], first.body["asks"]);
    assert_eq!(first.header("idempotency-replayed"), "");
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(count(&journal(&house, "desk", "T-901").await, "turn.started"), 1);
}

#[tokio::test]
async fn a_large_case_is_read_and_answered_whole() {
    let (house, _) = desk_with(&[("desk", DESK)], "context_inline_bytes_max = 64").await;
    let large = |id: &str, reason: &str| {
        json!({"tradeId": id, "reason": reason, "altIds": ["x".repeat(200)]}).to_string()
    };
    let answer = send(&house, ROUTE, &large("T-910", "odd")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.body["result"]["event"]["caseId"], "T-910", "{answer:?}");
    assert_eq!((&answer.body["path"], &answer.body["tradeId"]), (&json!("agent"), &json!("T-910")));
    // Its model sees the case, and not what it is called where it lies.
    let answer = send(&house, ROUTE, &large("T-911", "dance")).await;
    assert_eq!(answer.body["error"], "Unsupported intent: DANCE", "{answer:?}");
    let answer = send(&house, ROUTE, &large("T-912", "Missing ISIN")).await;
    assert_eq!(answer.body["resultEvent"]["tradeId"], "T-912", "{answer:?}");
}

#[tokio::test]
async fn a_question_is_answered_while_another_branch_still_runs() {
    let slow = DESK.replace("requestTimeoutMs: 60000", "requestTimeoutMs: 100");
    let (house, gate) = desk_with(&[("desk", &slow)], "").await;
    let key = [("idempotency-key", "k")];
    let body = case("T-920", "Ask meanwhile").to_string();
    // The same request until it asks: the first may be over before it does.
    let mut answer = send_with(&house, ROUTE, &key, &body).await;
    for _ in 0..600 {
        if answer.status != 504 {
            break;
        }
        answer = send_with(&house, ROUTE, &key, &body).await;
        assert_eq!(answer.header("idempotency-replayed"), "true", "{answer:?}");
    }
    assert_eq!(answer.status, 202, "{answer:?}");
    let location = answer.header("location").to_owned();
    assert_eq!(house.get(&location).await.body["status"], "running", "{answer:?}");
    let ask = text(&answer.body["ask"]["id"]);
    gate.add_permits(1);
    let replied = house.post(&format!("/api/v1/asks/{ask}"), json!({"answer": "yes"})).await;
    assert_eq!(replied.status, 200, "{replied:?}");
    until(&house, "desk", "T-920", "completed").await;
}

#[tokio::test]
async fn a_route_takes_posts_from_this_machine_only() {
    let (house, _) = desk().await;
    for method in [Method::GET, Method::PUT, Method::DELETE] {
        let answer = read(house.open(request(method, ROUTE, Body::empty())).await).await;
        assert_eq!(answer.refusal(), refused(405, "method_not_allowed", &[]), "{answer:?}");
        assert_eq!(answer.header("allow"), "POST");
        assert!(answer.body["error"].is_string(), "{answer:?}");
    }
    let stranger = Request::post(ROUTE).header("host", "evil.test").body(Body::empty()).unwrap();
    let answer = read(house.open(stranger).await).await;
    assert_eq!(answer.refusal(), refused(403, "host_not_allowed", &[]));
    assert!(answer.body["error"].is_string(), "in the route's own shape: {answer:?}");
    let near = house.get("/desk/case").await;
    assert_eq!(near.refusal(), refused(404, "not_found", &[]));
    assert_eq!(near.header("content-type"), "application/problem+json");
    let health = house.get("/health").await;
    assert_eq!((health.status, health.body), (200, json!({"status": "UP"})));
}

#[tokio::test]
async fn cases_are_kept_apart() {
    let other = DESK.replace("/desk/cases", "/other/cases").replace("desk.events", "other.events");
    let (house, _) = desk_with(&[("desk", DESK), ("other", &other)], "").await;
    post(&house, "T-1", "odd").await;
    post(&house, "T-2", "odd").await;
    let elsewhere = send(&house, "/other/cases", &case("T-1", "odd").to_string()).await;
    assert_eq!(elsewhere.status, 200, "{elsewhere:?}");
    for (pipeline, id) in [("desk", "T-1"), ("desk", "T-2"), ("other", "T-1")] {
        let told = journal(&house, pipeline, id).await;
        assert_eq!(count(&told, "run.started"), 1, "{pipeline} {id}: {told:?}");
    }
    post(&house, "T-1", "odd again").await;
    assert_eq!(count(&journal(&house, "desk", "T-1").await, "run.started"), 2);
    assert_eq!(count(&journal(&house, "desk", "T-2").await, "run.started"), 1);
}

#[tokio::test]
async fn pipelines_are_listed_and_their_roads_counted() {
    let (house, _) = desk().await;
    let page = house.get("/api/v1/pipelines").await.body;
    let [listed] = page["items"].as_array().unwrap().as_slice() else { panic!("{page}") };
    assert_eq!((&listed["name"], &listed["route"]), (&json!("desk"), &json!(ROUTE)));
    assert_eq!(listed["tools"], json!(["events.publish", "case.raiseTicket", "math::add"]));
    assert_eq!(listed["handlers"][0], json!({"reason": "Missing ISIN", "type": "lookup-enrich"}));
    assert_eq!(listed["caseIdField"], "tradeId");
    let shown = house.get("/api/v1/pipelines/desk").await;
    assert_eq!((shown.status, &shown.body["addresses"]["events"]), (200, &json!("desk.events")));
    let unknown = house.get("/api/v1/pipelines/dsk").await;
    assert_eq!(unknown.refusal(), refused(404, "not_found", &[]));
    let misspelt = house.post("/desk/case", case("a", "odd")).await;
    assert_eq!(
        (misspelt.status, text(&misspelt.body["hint"])),
        (404, format!("did you mean `{ROUTE}`?"))
    );

    let path = "/api/v1/pipelines/desk/cases";
    for (id, reason) in
        [("a", "Missing ISIN"), ("b", "odd"), ("c", "odd"), ("d", "even"), ("b", "Missing ISIN")]
    {
        let answer = house.post(path, case(id, reason)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    assert_eq!(
        house.post(path, json!({})).await.body["error"],
        "Missing required field(s): tradeId, reason"
    );
    assert_eq!(house.post("/api/v1/pipelines/dsk/cases", json!({})).await.status, 404);
    let stats = house.get("/api/v1/pipelines/desk/stats").await.body;
    assert_eq!((&stats["total"], &stats["share"]), (&json!(5), &json!(0.4)));
    assert_eq!((&stats["deterministic"], &stats["agent"]), (&json!(2), &json!(3)));
    let counts = |list: &str| -> Vec<(String, u64)> {
        let rows = stats[list].as_array().unwrap().iter();
        rows.map(|row| (text(&row["reason"]), row["count"].as_u64().unwrap())).collect()
    };
    assert_eq!(counts("handlers")[0], ("Missing ISIN".to_owned(), 2));
    assert_eq!(counts("unknown"), [("odd".to_owned(), 2), ("even".to_owned(), 1)]);

    let document = house.get("/openapi.json").await.body;
    let body = &document["paths"][ROUTE]["post"]["requestBody"]["content"]["application/json"];
    assert_eq!(body["schema"]["required"], json!(["tradeId", "reason"]));
}

#[tokio::test]
async fn its_tools_can_be_called_by_anybody_and_publish_then_too() {
    let house = House::demo().await;
    let given = json!({"tradeId": "T-1", "category": "ReferenceData", "summary": "LEI"});
    let path = "/api/v1/tools/case.raiseTicket/call";
    let called = house.post(path, json!({"arguments": given})).await;
    assert_eq!(called.status, 200, "{called:?}");
    let ticket = text(&called.body["result"]["ticketId"]);
    assert!(ticket.starts_with("TICKET-"), "{called:?}");
    let sessions = house.get("/api/v1/sessions?space=call").await.body;
    let id = text(&sessions["items"][0]["id"]);
    let export = house.get(&format!("/api/v1/sessions/{id}/export")).await.body;
    let is_finished = |event: &&Value| event["type"] == "call.finished";
    let finished = export["events"].as_array().unwrap().iter().find(is_finished).unwrap();
    let event = &finished["data"]["published"][0]["event"];
    assert_eq!((&event["type"], &event["ticketId"]), (&json!("TicketCreated"), &json!(ticket)));
    assert_eq!(event["caseId"], id);

    let more = json!({"tradeId": "T-1", "category": "c", "summary": "s", "urgent": true});
    let refused = house.post(path, json!({"arguments": more})).await;
    assert_eq!(refused.refusal().1, "tool_failed");
    assert!(text(&refused.body["detail"]).contains("unknown argument `urgent`"), "{refused:?}");
    let untyped = house.post("/api/v1/tools/events.publish/call", json!({"arguments": {}})).await;
    assert_eq!(untyped.refusal().1, "input_misfit");
}
