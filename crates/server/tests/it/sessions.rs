//! `/api/v1/sessions`.

use crate::house::{House, encoded, refused, text};
use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};

async fn completed(house: &House, key: &str) -> Value {
    let input = json!({"a": 2, "b": 3});
    house.run(json!({"planId": "math::conditional_add", "input": input, "session": key})).await
}

fn keys(page: &Value) -> Vec<String> {
    page["items"].as_array().unwrap().iter().map(|item| text(&item["key"])).collect()
}

#[tokio::test]
async fn sessions_are_listed_newest_first_and_by_page() {
    let house = House::demo().await;
    for key in ["a", "b", "c"] {
        completed(&house, key).await;
    }
    house.run(json!({"planId": "interaction::greeting", "session": "d"})).await;
    let all = house.get("/api/v1/sessions").await;
    assert_eq!(keys(&all.body), ["d", "c", "b", "a"]);
    assert_eq!(all.body["nextCursor"], Value::Null);
    let first = house.get("/api/v1/sessions?limit=3").await;
    assert_eq!(keys(&first.body), ["d", "c", "b"]);
    let cursor = encoded(&first.body["nextCursor"]);
    let second = house.get(&format!("/api/v1/sessions?limit=3&cursor={cursor}")).await;
    assert_eq!(keys(&second.body), ["a"]);
    let waiting = house.get("/api/v1/sessions?status=waiting").await;
    assert_eq!(keys(&waiting.body), ["d"]);
    assert_eq!(waiting.body["items"][0]["asks"].as_array().unwrap().len(), 1);
    let by_plan = house.get("/api/v1/sessions?plan=math::conditional_add&space=session").await;
    assert_eq!(keys(&by_plan.body), ["c", "b", "a"]);
    let none = house.get("/api/v1/sessions?space=call").await;
    assert_eq!(none.body["items"], json!([]));
    let wrong = house.get("/api/v1/sessions?status=waitin").await;
    assert_eq!(wrong.refusal(), refused(400, "bad_query", &[]));
    assert_eq!(wrong.body["hint"], "did you mean `waiting`?");
}

#[tokio::test]
async fn a_session_is_shown_by_id_and_by_key() {
    let house = House::demo().await;
    let made = completed(&house, "order 7/b").await;
    let id = text(&made["session"]["id"]);
    let by_id = house.get(&format!("/api/v1/sessions/{id}")).await;
    let by_key = house.get("/api/v1/sessions/order%207%2Fb").await;
    let by_space = house.get("/api/v1/sessions/order%207%2Fb?space=session").await;
    assert_eq!(by_id.status, 200, "{by_id:?}");
    assert_eq!(by_id.body, by_key.body);
    assert_eq!(by_id.body, by_space.body);
    assert_eq!(by_id.body["plan"], "math::conditional_add");
    let elsewhere = house.get("/api/v1/sessions/order%207%2Fb?space=thread").await;
    assert_eq!(elsewhere.refusal(), refused(404, "not_found", &[]));
}

#[tokio::test]
async fn history_is_newest_first_and_context_is_what_was_saved() {
    let house = House::demo().await;
    completed(&house, "a").await;
    let history = house.get("/api/v1/sessions/a/history").await.body;
    let steps: Vec<String> =
        history["items"].as_array().unwrap().iter().map(|item| text(&item["step"])).collect();
    assert_eq!(steps, ["validate", "add"]);
    let newest = &history["items"][0];
    assert_eq!(newest["tool"], "validate::is_positive");
    assert_eq!(newest["arguments"], json!({"num": 5}));
    assert_eq!(newest["output"], true);
    let page = house.get("/api/v1/sessions/a/history?limit=1").await.body;
    let cursor = encoded(&page["nextCursor"]);
    let rest = house.get(&format!("/api/v1/sessions/a/history?limit=1&cursor={cursor}")).await.body;
    assert_eq!(rest["items"][0]["step"], "add");
    assert_eq!(rest["nextCursor"], Value::Null);
    let context = house.get("/api/v1/sessions/a/context").await.body;
    assert_eq!(context["context"]["sum"], 5);
    assert_eq!(context["context"]["finalResponse"], "The sum 5 is positive.");
}

#[tokio::test]
async fn a_session_is_removed_once_it_does_not_move() {
    let house = House::demo().await;
    completed(&house, "a").await;
    assert_eq!(house.delete("/api/v1/sessions/a").await.status, 204);
    assert_eq!(house.get("/api/v1/sessions/a").await.status, 404);
    assert_eq!(house.delete("/api/v1/sessions/a").await.status, 404);
    let waiting = house.greeting().await;
    let path = format!("/api/v1/sessions/{}", text(&waiting["session"]["id"]));
    assert_eq!(house.delete(&path).await.refusal(), refused(409, "run_active", &[]));
}

#[tokio::test]
async fn no_session_is_no_session_at_every_route() {
    let house = House::demo().await;
    for path in ["", "/history", "/context", "/events", "/export"] {
        let answer = house.get(&format!("/api/v1/sessions/nope{path}")).await;
        assert_eq!(answer.refusal(), refused(404, "not_found", &[]), "{path}");
    }
}

#[tokio::test]
async fn a_session_is_forked_and_exported() {
    let house = House::demo().await;
    let made = completed(&house, "a").await;
    let fork = house.post("/api/v1/sessions/a/fork", json!({})).await;
    assert_eq!((fork.status, &fork.body["status"]), (201, &json!("completed")), "{fork:?}");
    assert_ne!(fork.body["id"], made["session"]["id"]);
    assert_ne!(fork.body["run"], made["run"]["id"]);
    let location = fork.header("location").to_owned();
    assert_eq!(house.get(&location).await.body, fork.body);
    let early = house.post("/api/v1/sessions/a/fork", json!({"at": 1})).await;
    assert_eq!((early.status, &early.body["run"]), (201, &Value::Null), "{early:?}");
    let late = house.post("/api/v1/sessions/a/fork", json!({"at": 10_000})).await;
    assert_eq!(late.refusal(), refused(422, "bad_fork_point", &["/at"]));
    let export = house.get("/api/v1/sessions/a/export").await;
    assert_eq!(export.status, 200);
    assert_eq!(export.body["events"][0]["type"], "session.created");
    assert_eq!(export.body["history"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_failed_step_is_tried_again() {
    let house = House::demo().await;
    let stuck = house.run(json!({"planId": "test::plan_that_fails"})).await;
    assert_eq!(stuck["run"]["status"], "stuck", "{stuck}");
    let path = format!("/api/v1/runs/{}/retry", text(&stuck["run"]["id"]));
    let again = house.post_text(&path, "").await;
    assert_eq!((again.status, &again.body["run"]["status"]), (202, &json!("stuck")), "{again:?}");
    assert_ne!(again.body["run"]["asks"][0]["id"], stuck["run"]["asks"][0]["id"]);
    let done = completed(&house, "done").await;
    let path = format!("/api/v1/runs/{}/retry", text(&done["run"]["id"]));
    assert_eq!(house.post_text(&path, "").await.refusal(), refused(409, "no_open_ask", &[]));
}

const PRUNE: &str = "/api/v1/sessions/prune";

#[tokio::test]
async fn old_sessions_are_removed_unless_they_wait() {
    let house = House::demo().await;
    for key in ["a", "b"] {
        completed(&house, key).await;
    }
    house.run(json!({"planId": "interaction::greeting", "session": "waits"})).await;
    let young = house.post(PRUNE, json!({"olderThanMs": 3_600_000})).await;
    assert_eq!((young.status, young.body), (200, json!({"sessions": 0, "runs": 0, "rows": 0})));
    house.prune(2).await;
    assert_eq!(keys(&house.get("/api/v1/sessions").await.body), ["waits"]);
}

#[tokio::test]
async fn old_runs_are_removed_and_cursors_before_them_are_gone() {
    let house = House::demo().await;
    let first = completed(&house, "s").await;
    let cut = house.get("/api/v1/sessions/s/export").await.body["events"].as_array().unwrap().len();
    house.run(json!({"planId": "interaction::greeting", "session": "s"})).await;
    house.trim(1).await;
    let run = house.get(&format!("/api/v1/runs/{}", text(&first["run"]["id"]))).await;
    assert_eq!(run.refusal(), refused(404, "not_found", &[]));
    let export = house.get("/api/v1/sessions/s/export").await.body;
    assert_eq!(export["events"][0]["type"], "base.set");
    assert_eq!(export["events"][0]["seq"], cut);
    for after in [1, cut - 1] {
        let gone = house.get(&format!("/api/v1/sessions/s/events?after={after}")).await;
        assert_eq!(gone.refusal(), refused(410, "cursor_gone", &[]));
        assert!(text(&gone.body["hint"]).contains(&cut.to_string()), "{gone:?}");
    }
    let early = house.post("/api/v1/sessions/s/fork", json!({"at": cut - 1})).await;
    assert_eq!(early.refusal(), refused(410, "fork_point_gone", &["/at"]));
    assert!(text(&early.body["hint"]).contains(&cut.to_string()), "{early:?}");
    let fork = house.post("/api/v1/sessions/s/fork", json!({"at": cut})).await;
    assert_eq!((fork.status, &fork.body["run"]), (201, &Value::Null), "{fork:?}");
    let context = house.get("/api/v1/sessions/s/context").await.body;
    assert_eq!(context["context"]["sum"], 5);
}

#[tokio::test]
async fn a_removal_says_how_old() {
    let house = House::demo().await;
    for (body, pointer) in [
        (json!({}), ""),
        (json!({"olderThanMs": -1}), "/olderThanMs"),
        (json!({"olderThanMs": "30d"}), "/olderThanMs"),
    ] {
        let answer = house.post(PRUNE, body).await;
        assert_eq!(answer.refusal(), refused(422, "wrong_shape", &[pointer]));
    }
    assert_eq!(house.post_text(PRUNE, "").await.refusal(), refused(400, "no_body", &[]));
}

#[tokio::test]
async fn only_administrators_remove_old_sessions() {
    let house = House::build(project::folder::Project::demo(), Some("secret")).await;
    let body = json!({"olderThanMs": 0});
    assert_eq!(house.post(PRUNE, body.clone()).await.refusal(), refused(401, "unauthorized", &[]));
    let wrong = [("authorization", "Bearer secrets")];
    assert_eq!(house.post_with(PRUNE, &wrong, body.clone()).await.status, 401);
    let key = [("authorization", "Bearer secret")];
    assert_eq!(house.post_with(PRUNE, &key, body.clone()).await.status, 200);
    let foreign = Request::post(PRUNE)
        .header("host", "evil.test")
        .header("authorization", "Bearer secret")
        .body(Body::from(body.to_string()));
    let foreign = house.send(foreign.unwrap()).await;
    assert_eq!(foreign.refusal(), refused(403, "host_not_allowed", &[]));
}
