//! `/api/v1/runs`.

use crate::house::{House, refused, text};
use serde_json::json;

#[tokio::test]
async fn a_run_that_ends_is_answered_whole() {
    let house = House::demo().await;
    let body = json!({"planId": "math::conditional_add", "input": {"a": 2, "b": 3}});
    let answer = house.post("/api/v1/runs", body).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("location"), "");
    let run = &answer.body["run"];
    let session = &answer.body["session"];
    assert_eq!(run["status"], "completed");
    assert_eq!(run["answer"], "The sum 5 is positive.");
    assert_eq!(run["plan"], "math::conditional_add");
    assert_eq!(run["session"], session["id"]);
    assert_eq!(run["asks"], json!([]));
    assert_eq!(run["cost"], json!({}));
    assert!(text(&run["id"]).starts_with("run_"), "{run}");
    assert!(text(&run["endedAt"]).ends_with('Z'), "{run}");
    assert_eq!(session["space"], "session");
    assert_eq!(session["realm"], "default");
    assert_eq!(session["key"], session["id"]);
    assert_eq!(session["run"], run["id"]);
    assert_eq!(session["status"], "completed");

    let path = format!("/api/v1/runs/{}", text(&run["id"]));
    let again = house.get(&path).await;
    assert_eq!(again.status, 200);
    assert_eq!(again.body["run"]["answer"], run["answer"]);
}

#[tokio::test]
async fn both_ways_of_the_branch_are_taken() {
    let house = House::demo().await;
    for (b, answer) in [(-3, "The sum -1 is not positive."), (-2, "The sum 0 is not positive.")] {
        let body = json!({"planId": "math::conditional_add", "input": {"a": 2, "b": b}});
        assert_eq!(house.run(body).await["run"]["answer"], answer);
    }
    let fan = house.run(json!({"planId": "math::fan_out", "input": {"items": [1, 2]}})).await;
    assert_eq!(fan["run"]["answer"], json!({"left": 3, "right": 14, "items": [11, 12]}));
}

#[tokio::test]
async fn a_run_that_waits_is_accepted_and_says_where() {
    let house = House::demo().await;
    let answer = house.post("/api/v1/runs", json!({"planId": "interaction::greeting"})).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    let run = &answer.body["run"];
    assert_eq!(answer.header("location"), format!("/api/v1/runs/{}", text(&run["id"])));
    assert_eq!(run["status"], "waiting");
    assert_eq!(run["step"], "ask_name");
    assert_eq!(run["asks"][0]["kind"], "fill");
    assert_eq!(run["asks"][0]["schema"]["required"], json!(["name"]));
    assert_eq!(answer.body["session"]["asks"], json!([run["asks"][0]["id"]]));
}

#[tokio::test]
async fn a_run_can_be_paused_continued_and_cancelled() {
    let house = House::demo().await;
    let started = house.greeting().await;
    let path = format!("/api/v1/runs/{}", text(&started["run"]["id"]));
    let paused = house.post(&format!("{path}/pause"), json!({})).await;
    assert_eq!((paused.status, &paused.body["run"]["status"]), (200, &json!("paused")));
    let gone_on = house.post(&format!("{path}/continue"), json!({})).await;
    assert_eq!((gone_on.status, &gone_on.body["run"]["status"]), (200, &json!("waiting")));
    let cancelled = house.post_text(&format!("{path}/cancel"), "").await;
    assert_eq!((cancelled.status, &cancelled.body["run"]["status"]), (200, &json!("cancelled")));
    assert_eq!(cancelled.body["run"]["asks"], json!([]));
    let ask = format!("/api/v1/asks/{}", text(&started["run"]["asks"][0]["id"]));
    assert_eq!(house.get(&ask).await.body["status"], "withdrawn");
    let reply = house.post(&ask, json!({"action": "accept", "content": {"name": "Ann"}})).await;
    assert_eq!(reply.refusal(), refused(409, "withdrawn", &[]));
    let over = house.post(&format!("{path}/cancel"), json!({})).await;
    assert_eq!(over.refusal(), refused(409, "run_over", &[]));
}

#[tokio::test]
async fn a_named_session_is_made_once_and_has_one_run_at_a_time() {
    let house = House::demo().await;
    let adding = json!({"planId": "math::conditional_add", "input": {"a": 1, "b": 1},
        "session": "order 7/b"});
    let first = house.run(adding.clone()).await;
    let second = house.run(adding).await;
    assert_eq!(first["session"]["id"], second["session"]["id"]);
    assert_eq!(first["session"]["key"], "order 7/b");
    let asking = json!({"planId": "interaction::greeting", "session": first["session"]["id"]});
    let waiting = house.run(asking.clone()).await;
    assert_eq!(waiting["session"]["key"], "order 7/b");
    let refusal = house.post("/api/v1/runs", asking).await;
    assert_eq!(refusal.refusal(), refused(409, "run_active", &[]));
    assert_eq!(refusal.body["state"], "waiting");
    assert_eq!(refusal.body["run"], waiting["run"]["id"]);
}

#[tokio::test]
async fn an_inline_plan_runs_and_a_wrong_one_has_an_error_for_each_value() {
    let house = House::demo().await;
    let done = house.run(json!({"plan": {
        "planId": "it/inline", "description": "echoes", "startStepId": "end",
        "steps": [{"id": "end", "type": "final_response", "message": {"jsonPath": "$.promptInput.x"}}],
    }, "input": {"x": [1]}})).await;
    assert_eq!(done["run"]["answer"], json!([1]));
    let wrong = house
        .post(
            "/api/v1/runs",
            json!({"plan": {"startStepId": "a", "steps": [
                {"id": "a", "type": "tool_call", "toolId": "math::ad", "arguments": {}},
            ]}}),
        )
        .await;
    let (status, code, pointers) = wrong.refusal();
    assert_eq!((status, code.as_str()), (422, "invalid_plan"));
    assert!(!pointers.is_empty() && pointers.iter().all(|at| at.starts_with("/plan")), "{wrong:?}");
}

#[tokio::test]
async fn a_text_that_nests_too_deep_is_a_mistake_in_its_plan() {
    let house = House::demo().await;
    let nested = |open: &str, close: &str| {
        format!("{{{{ {}1{} }}}}", open.repeat(6_700), close.repeat(6_700))
    };
    for message in [
        nested("-", ""),
        nested("not ", ""),
        nested("(", ")"),
        nested("[", "]"),
        nested("1 ~ ", ""),
        "{% if 1 %}".repeat(6_700),
    ] {
        let plan = json!({
            "planId": "it/deep", "description": "nests", "startStepId": "end",
            "steps": [{"id": "end", "type": "final_response", "message": message}],
        });
        let checked = house.post("/api/v1/plans/validate", plan.clone()).await;
        assert_eq!((checked.status, &checked.body["valid"]), (200, &json!(false)), "{checked:?}");
        let refusal = house.post("/api/v1/runs", json!({"plan": plan})).await;
        let (status, code, pointers) = refusal.refusal();
        assert_eq!((status, code.as_str()), (422, "invalid_plan"));
        assert!(pointers.iter().any(|at| at == "/plan/steps/0/message"), "{refusal:?}");
    }
}

#[tokio::test]
async fn runs_that_cannot_start_are_refused() {
    let house = House::demo().await;
    for (body, expected) in [
        (json!({}), refused(400, "no_plan", &[])),
        (json!({"plan": {}, "planId": "a"}), refused(400, "plan_and_plan_id", &[])),
        (json!({"planId": "no/such"}), refused(404, "not_found", &[])),
        (json!({"planId": 7}), refused(422, "wrong_shape", &["/planId"])),
        (
            json!({"planId": "math::conditional_add", "input": {"a": "x", "b": 1}}),
            refused(422, "input_misfit", &["/input/a"]),
        ),
        (
            json!({"planId": "interaction::greeting", "session": ""}),
            refused(422, "bad_session_id", &["/session"]),
        ),
        (
            json!({"planId": "interaction::greeting", "session": "a\nb"}),
            refused(422, "bad_session_id", &["/session"]),
        ),
    ] {
        let answer = house.post("/api/v1/runs", body.clone()).await;
        assert_eq!(answer.refusal(), expected, "{body}: {answer:?}");
        assert_eq!(answer.header("content-type"), "application/problem+json");
        assert_eq!(answer.body["status"], answer.status);
        assert_eq!(text(&answer.body["traceId"]).len(), 32);
    }
    let missing = format!("ses_{}", "0".repeat(32));
    let body = json!({"planId": "interaction::greeting", "session": missing});
    assert_eq!(house.post("/api/v1/runs", body).await.status, 404);
    let sessions = house.get("/api/v1/sessions").await;
    assert_eq!(sessions.body["items"], json!([]), "nothing of these was stored");
}

#[tokio::test]
async fn queries_and_ids_are_checked() {
    let house = House::demo().await;
    let body = json!({"planId": "interaction::greeting"});
    for query in ["wait=x", "wait=-1", "wait=NaN", "weight=1"] {
        let answer = house.post(&format!("/api/v1/runs?{query}"), body.clone()).await;
        assert_eq!(answer.refusal(), refused(400, "bad_query", &[]), "{query}");
    }
    assert_eq!(house.post("/api/v1/runs?wait=0.5", body).await.status, 202);
    let unknown = format!("run_{}", "0".repeat(32));
    for id in [unknown.as_str(), "nope", "ses_1"] {
        let path = format!("/api/v1/runs/{id}");
        assert_eq!(house.get(&path).await.refusal(), refused(404, "not_found", &[]));
        for verb in ["cancel", "pause", "continue"] {
            assert_eq!(house.post(&format!("{path}/{verb}"), json!({})).await.status, 404);
        }
    }
    let answer = house.get("/api/v1/runs/%FF").await;
    assert_eq!(answer.refusal(), refused(400, "bad_path", &[]));
}
