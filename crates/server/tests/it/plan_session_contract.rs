//! `/sessions`, `/capabilities`, `/admin/capabilities`: as existing clients use them.

use crate::house::{House, encoded, question, refused, request, text};
use axum::body::Body;
use axum::http::Method;
use project::folder::Project;
use serde_json::{Value, json};

async fn session(house: &House, id: &str) {
    let answer = house.post("/sessions", json!({"sessionId": id})).await;
    assert_eq!(answer.status, 201, "{answer:?}");
}

async fn execute(house: &House, id: &str, plan: &str, args: Value) -> Value {
    let body = json!({"planId": plan, "initialArgs": args});
    let answer = house.post(&format!("/sessions/{id}/execute-plan"), body).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    answer.body
}

async fn core(house: &House, id: &str) -> Value {
    house.get(&format!("/sessions/{id}")).await.body["core"].clone()
}

#[tokio::test]
async fn a_session_is_made_with_or_without_an_id() {
    let house = House::demo().await;
    let given = house.post("/sessions", json!({"sessionId": "mine"})).await;
    assert_eq!(given.status, 201);
    assert_eq!(given.body["sessionId"], "mine");
    assert_eq!(given.body["status"], "running");
    assert!(text(&given.body["createdAt"]).ends_with('Z'));
    for body in ["", "{}", " \n"] {
        let made = house.post_text("/sessions", body).await;
        assert_eq!(made.status, 201, "{body:?}");
        assert!(text(&made.body["sessionId"]).starts_with("ses_"), "{made:?}");
    }
    let twice = house.post("/sessions", json!({"sessionId": "mine"})).await;
    assert_eq!(twice.refusal(), refused(409, "session_exists", &[]));
    assert!(twice.body["error"].is_string() && twice.body["hint"].is_string(), "{twice:?}");
    assert_eq!(text(&twice.body["trace_id"]).len(), 32);
    let long = "x".repeat(256);
    for id in ["", "a\u{7}b", long.as_str()] {
        let refusal = house.post("/sessions", json!({"sessionId": id})).await;
        assert_eq!(refusal.refusal(), refused(422, "bad_session_id", &["/sessionId"]));
    }
    for body in ["[]", "[null]", "7", "{\"sessionId\": 7}", "{\"id\": \"x\"}"] {
        let refusal = house.post_text("/sessions", body).await;
        assert_eq!((refusal.status, refusal.refusal().1.as_str()), (422, "wrong_shape"), "{body}");
    }
}

#[tokio::test]
async fn conditional_add_goes_both_ways() {
    let house = House::demo().await;
    for (id, b, answer) in
        [("up", 3, "The sum 5 is positive."), ("down", -3, "The sum -1 is not positive.")]
    {
        session(&house, id).await;
        let done = execute(&house, id, "math::conditional_add", json!({"a": 2, "b": b})).await;
        assert_eq!(done, json!({"sessionId": id, "status": "completed"}));
        let shown = house.get(&format!("/sessions/{id}")).await.body;
        assert_eq!(shown["core"]["status"], "completed");
        assert_eq!(shown["core"]["currentPlanId"], "math::conditional_add");
        assert_eq!(shown["core"]["lastError"], Value::Null);
        assert_eq!(shown["context"]["sum"], 2 + b);
        assert_eq!(shown["context"]["finalResponse"], answer);
        assert_eq!(shown["history"][0]["planStepId"], "validate");
        assert_eq!(shown["history"][1]["toolId"], "math::add");
        assert_eq!(shown["history"][1]["request"]["arguments"], json!({"a": 2, "b": b}));
        assert_eq!(shown["history"][1]["result"], json!({"status": "success", "output": 2 + b}));
    }
    let page = house.get("/sessions/up?limit=1").await.body;
    assert_eq!(page["history"].as_array().unwrap().len(), 1);
    let rest =
        house.get(&format!("/sessions/up?limit=1&cursor={}", encoded(&page["nextCursor"]))).await;
    assert_eq!(rest.body["history"][0]["planStepId"], "add");
}

#[tokio::test]
async fn greeting_pauses_and_goes_on_with_the_name() {
    let house = House::demo().await;
    session(&house, "g").await;
    let paused = execute(&house, "g", "interaction::greeting", json!({})).await;
    assert_eq!(paused, json!({"sessionId": "g", "status": "paused_on_human"}));
    let shown = house.get("/sessions/g").await.body;
    assert_eq!(shown["core"]["currentStepId"], "ask_name");
    assert_eq!(shown["context"]["humanPromptMessage"], "What is your name?");
    let again = json!({"planId": "interaction::greeting"});
    let active = house.post("/sessions/g/execute-plan", again).await;
    assert_eq!(active.refusal(), refused(409, "run_active", &[]));

    let bad = house.post("/sessions/g/resume", json!({"input": {"name": ""}})).await;
    assert_eq!(bad.refusal(), refused(422, "input_misfit", &["/input/name"]));
    let none = house.post("/sessions/g/resume", json!({})).await;
    assert_eq!(none.refusal(), refused(422, "bad_action", &["/input"]));
    let odd = house.post("/sessions/g/resume", json!({"askId": "x"})).await;
    assert_eq!(odd.refusal(), refused(422, "wrong_shape", &["/askId"]));
    assert_eq!(core(&house, "g").await["status"], "paused_on_human");

    let body = json!({"input": {"name": "Ann"}, "stepId": "ask_name"});
    let done = house.post("/sessions/g/resume", body).await;
    assert_eq!((done.status, &done.body["status"]), (202, &json!("completed")), "{done:?}");
    let shown = house.get("/sessions/g").await.body;
    assert_eq!(shown["context"]["finalResponse"], "Hello, Ann!");
    assert_eq!(shown["context"]["human_input"], json!({"name": "Ann"}));
    assert_eq!(shown["context"]["humanPromptMessage"], Value::Null, "it waits for nobody");
    assert_eq!(shown["history"], json!([]));
    let late = house.post("/sessions/g/resume", json!({"input": {"name": "Bob"}})).await;
    assert_eq!(late.refusal(), refused(409, "no_open_ask", &[]));
    assert_eq!(late.body["decision"]["reply"]["content"], json!({"name": "Ann"}));
    assert_eq!(late.body["decision"]["via"], "rest");
}

#[tokio::test]
async fn a_failing_step_waits_and_can_be_retried_skipped_or_aborted() {
    let house = House::demo().await;
    session(&house, "f").await;
    let paused = execute(&house, "f", "test::plan_that_fails", json!({})).await;
    assert_eq!(paused["status"], "paused_on_error");
    assert_eq!(core(&house, "f").await["lastError"]["name"], "AlwaysFails");
    let odd = house.post("/sessions/f/resume", json!({"input": {"action": "dance"}})).await;
    assert_eq!(odd.refusal(), refused(422, "bad_action", &["/input"]));
    let retried = house.post_text("/sessions/f/resume", "").await;
    assert_eq!((retried.status, &retried.body["status"]), (202, &json!("paused_on_error")));
    let skip = json!({"input": {"action": "skip", "output": 7}});
    let skipped = house.post("/sessions/f/resume", skip).await;
    assert_eq!(skipped.body["status"], "completed", "{skipped:?}");
    assert_eq!(core(&house, "f").await["lastError"], Value::Null);

    session(&house, "a").await;
    execute(&house, "a", "test::plan_that_fails", json!({})).await;
    let aborted = house.post("/sessions/a/resume", json!({"input": {"action": "abort"}})).await;
    assert_eq!((aborted.status, &aborted.body["status"]), (202, &json!("failed")));
    assert!(core(&house, "a").await["lastError"]["name"].is_string());
}

#[tokio::test]
async fn a_cancelled_run_is_a_failed_one_here() {
    let house = House::demo().await;
    let started = house.run(json!({"planId": "interaction::greeting", "session": "c"})).await;
    let run = text(&started["run"]["id"]);
    house.post(&format!("/api/v1/runs/{run}/cancel"), json!({})).await;
    let core = core(&house, "c").await;
    assert_eq!(core["status"], "failed");
    assert_eq!(core["lastError"]["name"], "Cancelled", "{core}");
}

#[tokio::test]
async fn plans_that_cannot_be_executed_are_refused() {
    let house = House::demo().await;
    session(&house, "s").await;
    for (body, expected) in [
        (json!({}), refused(400, "no_plan", &[])),
        (json!({"planId": "no/such"}), refused(404, "not_found", &[])),
        (json!({"planId": "a", "parameters": {}}), refused(422, "wrong_shape", &[])),
        (
            json!({"planId": "math::conditional_add", "initialArgs": {"a": 1}}),
            refused(422, "input_misfit", &["/initialArgs"]),
        ),
    ] {
        let answer = house.post("/sessions/s/execute-plan", body.clone()).await;
        let (status, code, pointers) = answer.refusal();
        assert_eq!((status, &code), (expected.0, &expected.1), "{body}: {answer:?}");
        assert!(expected.2.is_empty() || pointers == expected.2, "{body}: {answer:?}");
    }
    let plan = json!({"plan": {"planId": "p", "startStepId": "a", "steps": [
        {"id": "a", "type": "final_response", "message": "x", "nextStepId": "gone"},
        {"id": "b", "type": "dance"},
    ]}});
    let invalid = house.post("/sessions/s/execute-plan", plan).await;
    let (status, code, pointers) = invalid.refusal();
    assert_eq!((status, code.as_str()), (422, "invalid_plan"), "{invalid:?}");
    assert!(pointers.iter().any(|at| at.starts_with("/plan/steps/1")), "{invalid:?}");
    let nowhere = house
        .post(
            "/sessions/nope/execute-plan",
            json!({"planId": "math::fan_out", "initialArgs": {"items": []}}),
        )
        .await;
    assert_eq!(nowhere.refusal(), refused(404, "not_found", &[]));
    assert_eq!(house.get("/sessions/nope").await.refusal(), refused(404, "not_found", &[]));
    assert_eq!(house.post("/sessions/nope/resume", json!({})).await.status, 404);
    assert_eq!(core(&house, "s").await["status"], "running", "nothing of these began a run");
}

#[tokio::test]
async fn capabilities_are_listed_and_discovered() {
    let house = House::demo().await;
    let all = house.get("/capabilities").await.body;
    assert_eq!(all["tools"].as_array().unwrap().len(), 5);
    assert_eq!(all["plans"].as_array().unwrap().len(), 4);
    for item in all["tools"].as_array().unwrap().iter().chain(all["plans"].as_array().unwrap()) {
        assert!(item["id"].is_string() && item["description"].is_string(), "{item}");
        assert!(item["parameters"].is_object() && item["outputSchema"].is_object(), "{item}");
    }
    for plan in all["plans"].as_array().unwrap() {
        let steps = plan["steps"].as_array().unwrap();
        assert!(steps.iter().any(|step| step["id"] == plan["startStepId"]), "{plan}");
        assert_eq!(plan["planId"], plan["id"]);
    }
    assert_eq!(all["tools"][0]["planId"], Value::Null, "only a plan has what plans have");
    let found = house.post("/capabilities/discover", json!({"query": "ADD"})).await.body;
    assert_eq!(found["tools"][0]["id"], "math::add");
    let plans = found["plans"].as_array().unwrap();
    assert!(plans.iter().any(|plan| plan["id"] == "math::conditional_add"), "{found}");
    let words = json!({"query": "is the sum of numbers positive?", "limit": 3});
    let found = house.post("/capabilities/discover", words).await.body;
    assert_eq!(found["plans"][0]["id"], "math::conditional_add", "{found}");
    let one = house.post("/capabilities/discover", json!({"query": "", "limit": 5})).await.body;
    let count = |list: &Value| list.as_array().unwrap().len();
    assert_eq!(count(&one["tools"]) + count(&one["plans"]), 5);
    assert_eq!(house.post("/capabilities/discover", json!({})).await.status, 422);
    let negative = house.post("/capabilities/discover", json!({"query": "a", "limit": -1})).await;
    assert_eq!(negative.refusal(), refused(422, "wrong_shape", &["/limit"]));
}

#[tokio::test]
async fn plans_are_registered_from_this_machine() {
    let house = House::demo().await;
    let body = json!({"type": "plan", "definition": question()});
    let made = house.post("/admin/capabilities", body).await;
    assert_eq!(
        (made.status, &made.body),
        (201, &json!({"id": "it/question", "status": "registered"}))
    );
    assert_eq!(house.get("/api/v1/plans/it%2Fquestion").await.status, 200);
    let paused = house.run(json!({"planId": "it/question"})).await;
    assert_eq!(paused["run"]["status"], "waiting");
    for (body, expected) in [
        (
            json!({"type": "tool", "definition": {"id": "x"}}),
            refused(400, "tool_without_code", &[]),
        ),
        (json!({"type": "plan", "definition": {}}), refused(400, "no_plan_id", &[])),
        (json!({"type": "dance", "definition": {}}), refused(422, "wrong_shape", &["/type"])),
    ] {
        let answer = house.post("/admin/capabilities", body.clone()).await;
        assert_eq!(answer.refusal(), expected, "{body}");
    }
    let wrong = json!({"type": "plan", "definition": {"planId": "w", "steps": 7}});
    let (status, code, pointers) = house.post("/admin/capabilities", wrong).await.refusal();
    assert_eq!((status, code.as_str()), (422, "invalid_plan"));
    assert!(pointers.iter().all(|at| at.starts_with("/definition")), "{pointers:?}");
}

#[tokio::test]
async fn the_admin_key_is_asked_for_before_the_body_is_read() {
    let house = House::build(Project::demo(), Some("secret")).await;
    let body = json!({"type": "plan", "definition": question()}).to_string();
    let with = |authorization: Option<&str>, body: &str| {
        let mut request = request(Method::POST, "/admin/capabilities", Body::from(body.to_owned()));
        if let Some(value) = authorization {
            request.headers_mut().insert("authorization", value.parse().unwrap());
        }
        request
    };
    for (authorization, body) in
        [(None, body.as_str()), (Some("Bearer wrong"), body.as_str()), (None, "not json")]
    {
        let answer = house.send(with(authorization, body)).await;
        assert_eq!(answer.refusal(), refused(401, "unauthorized", &[]));
        assert_eq!(answer.header("www-authenticate"), "Bearer");
    }
    assert_eq!(house.send(with(Some("Bearer secret"), &body)).await.status, 201);
}
