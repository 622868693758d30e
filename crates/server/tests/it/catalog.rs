//! `/api/v1/plans`, `/api/v1/tools` and `/api/v1/blobs`.

use crate::house::{House, demo_with, encoded, question, refused, text};
use project::config::Config;
use project::folder::Project;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const NESTED: &str = "description: d\nsteps:\n  - {id: end, type: final_response, message: hi}\n";

#[tokio::test]
async fn plans_are_listed_by_id_and_by_page() {
    let house = House::build(demo_with("plans/x/one.yaml", "x/one", NESTED), None).await;
    let all = house.get("/api/v1/plans").await.body;
    let ids: Vec<String> =
        all["items"].as_array().unwrap().iter().map(|plan| text(&plan["id"])).collect();
    let known = [
        "interaction::greeting", "math::conditional_add", "math::fan_out", "test::plan_that_fails",
        "x/one",
    ];
    assert_eq!(ids, known);
    assert_eq!(all["nextCursor"], Value::Null);
    let page = house.get("/api/v1/plans?limit=2").await.body;
    let cursor = encoded(&page["nextCursor"]);
    let rest = house.get(&format!("/api/v1/plans?limit=9&cursor={cursor}")).await.body;
    assert_eq!(rest["items"].as_array().unwrap().len(), 3, "{cursor}");
    assert_eq!(house.get("/api/v1/plans?x=1").await.status, 400);
    let found = house.get("/api/v1/plans?match=positive%20sum%20of%20two&limit=1").await.body;
    assert_eq!(found["items"][0]["id"], "math::conditional_add", "{found}");
    assert_eq!((found["items"].as_array().unwrap().len(), &found["nextCursor"]), (1, &Value::Null));
    let none = house.get("/api/v1/plans?match=teleport").await.body;
    assert_eq!(none, json!({"items": [], "nextCursor": null}));
    let both = house.get("/api/v1/plans?match=sum&cursor=x").await;
    assert_eq!(both.refusal(), refused(400, "bad_query", &[]));
}

#[tokio::test]
async fn a_plan_is_shown_by_its_encoded_id() {
    let house = House::build(demo_with("plans/x/one.yaml", "x/one", NESTED), None).await;
    let plan = house.get("/api/v1/plans/x%2Fone").await;
    assert_eq!(plan.status, 200, "{plan:?}");
    assert_eq!(plan.body["id"], "x/one");
    assert_eq!(plan.body["plan"]["steps"][0]["id"], "end");
    let greeting = house.get("/api/v1/plans/interaction%3A%3Agreeting").await.body;
    assert_eq!(greeting["parameters"], json!({"type": "object"}));
    let near = house.get("/api/v1/plans/x%2Fon").await;
    assert_eq!(near.refusal(), refused(404, "not_found", &[]));
    assert_eq!(near.body["hint"], "did you mean `x/one`?");
    let plain = house.get("/api/v1/plans/x/one").await;
    assert_eq!(plain.status, 404);
    assert!(text(&plain.body["hint"]).contains("percent-encode"), "{plain:?}");
}

/// Every level refers twice to the next one, all for the same value.
fn endless() -> Value {
    let mut levels = json!({"l40": {"type": "string"}});
    for level in 0..40 {
        let next = json!({"$ref": format!("#/$defs/l{}", level + 1)});
        levels[format!("l{level}")] = json!({"anyOf": [next, next]});
    }
    json!({"$ref": "#/$defs/l0", "$defs": levels})
}

#[tokio::test]
async fn a_schema_that_would_never_end_holds_nobody_up() {
    let house = House::demo().await;
    let mut of_plan = question();
    let mut of_form = question();
    of_plan["parameters"] = endless();
    of_form["steps"][0]["expectedInputSchema"] = endless();
    for (plan, pointer) in [(of_plan, "/parameters"), (of_form, "/steps/0/expectedInputSchema")] {
        let bad = house.post("/api/v1/plans/validate", plan.clone()).await;
        assert_eq!((bad.status, &bad.body["valid"]), (200, &json!(false)), "{bad:?}");
        let error = &bad.body["errors"][0];
        assert_eq!(error["pointer"], pointer, "{bad:?}");
        assert!(text(&error["detail"]).contains("too complex"), "{bad:?}");
        let refusal = house.post("/api/v1/runs", json!({"plan": plan})).await.refusal();
        assert_eq!(refusal, refused(422, "invalid_plan", &[format!("/plan{pointer}").as_str()]));
    }
    // The ways double with every level of the input.
    let mut tree = question();
    tree["parameters"] = json!({"anyOf": [
        {"properties": {"a": {"$ref": "#"}}}, {"properties": {"a": {"$ref": "#"}}}]});
    let input = |depth: usize| (0..depth).fold(json!({}), |inner, _| json!({"a": inner}));
    let deep = house.post("/api/v1/runs", json!({"plan": tree, "input": input(50)})).await;
    assert_eq!(deep.refusal(), refused(422, "input_misfit", &["/input"]), "{deep:?}");
    house.run(json!({"plan": tree, "input": input(5)})).await;
}

#[tokio::test]
async fn a_plan_can_be_checked_without_being_run() {
    let house = House::demo().await;
    let good = house.post("/api/v1/plans/validate", question()).await;
    assert_eq!((good.status, &good.body["valid"]), (200, &json!(true)), "{good:?}");
    let mut wrong = question();
    wrong["steps"][0]["nextStepIdOnInput"] = json!("nowhere");
    let bad = house.post("/api/v1/plans/validate", wrong).await;
    assert_eq!((bad.status, &bad.body["valid"]), (200, &json!(false)), "{bad:?}");
    let errors = bad.body["errors"].as_array().unwrap();
    let at = |error: &Value| text(&error["pointer"]).starts_with("/steps/0");
    assert!(errors.iter().any(at), "{bad:?}");
    assert_eq!(house.post("/api/v1/plans/validate", json!([])).await.status, 422);
}

#[tokio::test]
async fn tools_are_listed_shown_and_called() {
    let config = Config::parse("waypost.toml", "[tools.http]\nallow = [\"a.test\"]\n").unwrap();
    let house = House::build(Project { config, ..Project::demo() }, None).await;
    let all = house.get("/api/v1/tools").await.body;
    let names: Vec<String> =
        all["items"].as_array().unwrap().iter().map(|tool| text(&tool["name"])).collect();
    let known = [
        "case.raiseTicket", "events.publish", "http::request", "interaction::greeting",
        "math::add", "math::conditional_add", "math::fan_out", "test::always_fail",
        "test::plan_that_fails", "validate::is_positive",
    ];
    assert_eq!(names, known, "tools, and plans as tools");
    let add = house.get("/api/v1/tools/math%3A%3Aadd").await.body;
    assert_eq!((&add["reach"], &add["idempotent"]), (&json!("reads"), &json!(true)));
    assert_eq!(add["inputSchema"]["required"], json!(["a", "b"]));
    assert_eq!((&add["kind"], &add["pace"]), (&json!("tool"), &json!("quick")));
    let fan_out = house.get("/api/v1/tools/math%3A%3Afan_out").await.body;
    assert_eq!((&fan_out["kind"], &fan_out["reach"]), (&json!("plan"), &json!("reads")));
    let path = "/api/v1/tools/math::add/call";
    let done = house.post(path, json!({"arguments": {"a": 1, "b": 2}})).await;
    assert_eq!((done.status, &done.body), (200, &json!({"result": 3})));
    let wrong = house.post(path, json!({"arguments": {"a": "x", "b": 2}})).await;
    assert_eq!(wrong.refusal(), refused(422, "input_misfit", &["/arguments/a"]));
    let empty = house.post_text(path, "").await;
    assert_eq!(empty.refusal().1, "input_misfit");
    let unknown = house.post(path, json!({"args": {}})).await;
    assert_eq!(unknown.refusal().1, "wrong_shape");
    let failed = house.post("/api/v1/tools/test::always_fail/call", json!({})).await;
    assert_eq!(failed.refusal(), refused(502, "tool_failed", &[]));
    let arguments = json!({"method": "POST", "url": "http://example.com/"});
    let outside =
        house.post("/api/v1/tools/http::request/call", json!({"arguments": arguments})).await;
    assert_eq!(outside.refusal(), refused(422, "input_misfit", &["/arguments"]));
    assert!(text(&outside.body["hint"]).contains("allow"), "{outside:?}");
    for (path, posts) in [("/api/v1/tools/math::ad", false), ("/api/v1/tools/nope/call", true)] {
        let answer = if posts { house.post(path, json!({})).await } else { house.get(path).await };
        assert_eq!(answer.refusal(), refused(404, "not_found", &[]), "{path}");
    }
}

#[tokio::test]
async fn a_large_value_is_shown_as_a_blob_and_can_be_read() {
    let house = House::demo().await;
    let large = "x".repeat(40_000);
    let done = house.run(json!({"plan": {
        "planId": "it/large", "description": "echoes", "startStepId": "end",
        "steps": [{"id": "end", "type": "final_response", "message": {"jsonPath": "$.promptInput"}}],
    }, "input": {"text": large}})).await;
    let uri = text(&done["run"]["answer"]);
    let hash = uri.strip_prefix("blob://").unwrap_or_else(|| panic!("{done}"));
    let blob = house.get(&format!("/api/v1/blobs/{hash}")).await;
    assert_eq!(blob.status, 200);
    assert_eq!(blob.body, json!({"text": large}));
    assert_eq!(blob.header("x-content-type-options"), "nosniff");
    let none = "0".repeat(64);
    for hash in [none.as_str(), "nope", "..%2F..%2Fetc%2Fpasswd"] {
        let answer = house.get(&format!("/api/v1/blobs/{hash}")).await;
        assert_eq!(answer.refusal(), refused(404, "not_found", &[]), "{hash}");
    }
}

#[tokio::test]
async fn a_plan_is_stored_by_version() {
    let house = House::demo().await;
    let path = "/api/v1/plans/it%2Fquestion";
    let plan = |about: &str| {
        let mut plan = question();
        plan["description"] = json!(about);
        plan
    };
    let first = house.put(path, &[("if-none-match", "*")], plan("one")).await;
    assert_eq!((first.status, first.header("etag")), (201, "\"1\""), "{first:?}");
    let twice = house.put(path, &[("if-none-match", "*")], plan("two")).await;
    assert_eq!(twice.refusal(), refused(412, "version_conflict", &[]));
    let next = house.put(path, &[("if-match", "\"1\"")], plan("two")).await;
    assert_eq!((next.status, next.header("etag")), (200, "\"2\""), "{next:?}");
    let late = house.put(path, &[("if-match", "\"1\"")], plan("three")).await;
    assert_eq!(late.refusal(), refused(412, "version_conflict", &[]));
    assert!(text(&late.body["hint"]).contains("ETag"), "{late:?}");
    let shown = house.get(path).await;
    assert_eq!((shown.header("etag"), &shown.body["description"]), ("\"2\"", &json!("two")));
    assert_eq!(shown.body, next.body);
    let any = house.put(path, &[("if-match", "*")], plan("four")).await;
    assert_eq!(any.header("etag"), "\"3\"");
    assert_eq!(house.put(path, &[], plan("five")).await.header("etag"), "\"4\"");
    let run = house.run(json!({"planId": "it/question"})).await;
    assert_eq!(run["run"]["status"], "waiting");
}

#[tokio::test]
async fn a_plan_that_is_stored_fits_its_path_and_its_conditions() {
    let house = House::demo().await;
    let path = "/api/v1/plans/it%2Fother";
    let named = house.put(path, &[], question()).await;
    assert_eq!(named.refusal(), refused(422, "wrong_shape", &["/planId"]));
    let mut unnamed = question();
    unnamed.as_object_mut().unwrap().remove("planId");
    let absent = house.put(path, &[("if-match", "*")], unnamed.clone()).await;
    assert_eq!(absent.refusal(), refused(412, "version_conflict", &[]));
    for (name, value, code) in [
        ("if-match", "1", "bad_if_match"),
        ("if-match", "W/\"1\"", "bad_if_match"),
        ("if-none-match", "\"1\"", "bad_if_none_match"),
    ] {
        let answer = house.put(path, &[(name, value)], unnamed.clone()).await;
        assert_eq!(answer.refusal(), refused(400, code, &[]), "{name}: {value}");
    }
    let wrong = house.put(path, &[], json!({"description": "x", "steps": 7})).await;
    assert_eq!((wrong.status, text(&wrong.body["code"])), (422, "invalid_plan".to_owned()));
    assert_eq!(house.get(path).await.status, 404);
    let stored = house.put(path, &[], unnamed).await;
    assert_eq!((stored.status, &stored.body["id"]), (201, &json!("it/other")), "{stored:?}");
    let of_a_file = house.get("/api/v1/plans/math%3A%3Afan_out").await;
    assert_eq!(of_a_file.header("etag"), "");
}

#[tokio::test]
async fn a_stored_plan_is_removed_and_one_of_a_file_is_not() {
    let house = House::demo().await;
    let path = "/api/v1/plans/it%2Fquestion";
    let stored = house.put(path, &[], question()).await;
    assert_eq!(stored.body["version"], 1, "{stored:?}");
    assert_eq!(house.delete(path).await.status, 204);
    assert_eq!(house.get(path).await.status, 404);
    let run = house.post("/api/v1/runs", json!({"planId": "it/question"})).await;
    assert_eq!(run.status, 404, "{run:?}");
    assert_eq!(house.delete(path).await.refusal(), refused(404, "not_found", &[]));
    let of_a_file = "/api/v1/plans/math%3A%3Afan_out";
    let filed = house.get(of_a_file).await;
    assert_eq!(filed.body["version"], json!(null), "{filed:?}");
    let refusal = house.delete(of_a_file).await;
    assert_eq!(refusal.refusal(), refused(409, "plan_in_file", &[]));
    assert!(text(&refusal.body["hint"]).contains("`plans/`"), "{refusal:?}");
    let mut other = question();
    other["planId"] = json!("math::fan_out");
    assert_eq!(house.put(of_a_file, &[], other).await.status, 201);
    assert_eq!(house.delete(of_a_file).await.status, 204);
    assert_eq!(house.get(of_a_file).await.body, filed.body, "the file's plan is back");
    assert_eq!(house.delete("/api/v1/plans/math%3A%3Afan_uot").await.status, 404);
}

#[tokio::test]
async fn only_administrators_store_and_remove_plans() {
    let house = House::build(Project::demo(), Some("secret")).await;
    let path = "/api/v1/plans/it%2Fquestion";
    assert_eq!(house.put(path, &[], question()).await.status, 401);
    assert_eq!(house.delete(path).await.status, 401);
    let key = [("authorization", "Bearer secret")];
    assert_eq!(house.put(path, &key, question()).await.status, 201);
}

/// A model made of rules that writes plans for the goals that it knows.
fn drafting() -> Project {
    let settings = "[models.default]\nrules = \"rules/drafts.yaml\"\n";
    let config = Config::parse("waypost.toml", settings).unwrap();
    let rules = include_str!("../../../../examples/calendar/rules/drafts.yaml");
    let texts = BTreeMap::from([("rules/drafts.yaml".to_owned(), rules.to_owned())]);
    Project { config, texts, ..Project::demo() }
}

#[tokio::test]
async fn a_model_writes_a_plan_that_somebody_starts() {
    let house = House::build(drafting(), None).await;
    let draft = async |goal: &str| house.post("/api/v1/plans/draft", json!({"goal": goal})).await;
    let known = draft("add two numbers").await.body;
    assert_eq!(known["existing"][0]["id"], "math::conditional_add", "{known}");
    assert_eq!(known["draft"], Value::Null);

    let made = draft("add three numbers").await.body["draft"].clone();
    assert_eq!((&made["valid"], &made["errors"]), (&json!(true), &json!([])), "{made}");
    assert_eq!((&made["reach"], &made["writes"]), (&json!("reads"), &json!([])), "{made}");
    assert_eq!((&made["model"], &made["turns"]), (&json!("default"), &json!(1)), "{made}");
    assert!(made["graph"].as_str().unwrap().starts_with("flowchart TD"), "{made}");
    // It runs only because somebody starts it.
    let none = house.get("/api/v1/plans/math%2Fadd_three").await;
    assert_eq!(none.status, 404, "{none:?}");
    let run = house.run(json!({"plan": made["plan"], "input": {"a": 1, "b": 2, "c": 4}})).await;
    assert_eq!(run["run"]["answer"].as_f64(), Some(7.0), "{run}");

    // What the model cannot do is reported with what is wrong, after so many rounds.
    let wrong = draft("fly to the moon").await.body["draft"].clone();
    assert_eq!((&wrong["valid"], &wrong["turns"]), (&json!(false), &json!(4)), "{wrong}");
    assert!(text(&wrong["errors"][0]["detail"]).contains("no JSON object"), "{wrong}");
    // The tool that this plan needs is not there.
    let absent = draft("schedule a meeting").await.body["draft"].clone();
    assert_eq!(absent["valid"], json!(false), "{absent}");
}

#[tokio::test]
async fn a_draft_needs_a_goal_and_a_model() {
    let house = House::build(drafting(), None).await;
    assert_eq!(house.post("/api/v1/plans/draft", json!({})).await.status, 422);
    for (body, expected) in [
        (json!({"goal": " "}), refused(422, "bad_draft", &[])),
        (json!({"goal": "fly", "tools": ["a?"]}), refused(422, "bad_draft", &[])),
        (json!({"goal": "fly", "model": "none"}), refused(404, "not_found", &[])),
    ] {
        let answer = house.post("/api/v1/plans/draft", body.clone()).await;
        assert_eq!(answer.refusal(), expected, "{body}");
    }
    let alone = House::demo().await;
    let answer = alone.post("/api/v1/plans/draft", json!({"goal": "fly"})).await;
    assert_eq!(answer.refusal(), refused(400, "model_needed", &[]));
}
