//! Results in every version, and where tasks stand.

use super::*;
use kernel::journal::projection::{RunRow, SessionRow};
use kernel::session::RunSpent;
use kernel::tool::call::Abilities;
use kernel::tool::schema::Misfit;
use kernel::values::ids::{Fence, Millis, PlanId, RealmId, RunId, SessionId, SessionKey};
use wire::mcp::MISSING_CAPABILITY;

fn spec(schema: Option<Value>, yields: OutputKind) -> ToolSpec {
    ToolSpec { output_schema: schema.map(Arc::new), yields, ..testkit::specs::tool("t") }
}

fn result(spec: &ToolSpec, output: Value, version: Version) -> Value {
    let mut result: Value =
        serde_json::from_str(&done(Some(spec), output, version).write(version)).unwrap();
    if version.is_modern() {
        result.as_object_mut().unwrap().retain(|key, _| key != "_meta" && key != "resultType");
    }
    result
}

fn report(status: RunStatus, fault: Option<Fault>) -> RunReport {
    let key = SessionKey::new(RealmId::from("default"), Space::call(), "ses_1");
    let plan = PlanId::from("call/t");
    RunReport {
        run: RunRow {
            id: RunId(1),
            no: 1,
            owner: None,
            plan: plan.clone(),
            status,
            step: None,
            answer: None,
            last_error: fault.clone(),
            started_at: Millis(0),
            ended_at: None,
            changed_at: Millis(0),
            spent: RunSpent::default(),
            stopped: None,
            bytes: 0,
        },
        session: SessionRow {
            id: SessionId(1),
            key,
            owner: None,
            status,
            run: Some(RunId(1)),
            plan: Some(plan),
            step: None,
            last_error: fault,
            seq: 1,
            wake_at: None,
            created_at: Millis(0),
            updated_at: Millis(0),
            parked: None,
            fence: Fence::NONE,
        },
        asks: Vec::new(),
        replayed: false,
        elsewhere: false,
    }
}

#[test]
fn a_text_is_shown_as_it_is_and_anything_else_as_json() {
    let plain = spec(None, OutputKind::Value);
    let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
    let modern = Version::July2026;
    assert_eq!(result(&plain, json!("a \"b\"\n"), modern), text("a \"b\"\n"));
    assert_eq!(result(&plain, json!({"a": [1]}), modern), text("{\"a\":[1]}"));
    assert_eq!(result(&plain, Value::Null, modern), text("null"));
}

#[test]
fn a_promised_structure_stands_beside_the_text() {
    let number = spec(Some(json!({"type": "number"})), OutputKind::Value);
    let text = spec(Some(json!({"type": "string"})), OutputKind::Value);
    let object = spec(Some(json!({"type": "object"})), OutputKind::Value);
    let structured =
        |spec, output, version| result(spec, output, version)["structuredContent"].clone();
    for (version, bare, whole) in [
        (Version::July2026, json!(3), json!({"a": 1})),
        (Version::November2025, json!({"result": 3}), json!({"a": 1})),
        (Version::June2025, json!({"result": 3}), json!({"a": 1})),
        (Version::March2025, Value::Null, Value::Null),
    ] {
        assert_eq!(structured(&number, json!(3), version), bare);
        assert_eq!(structured(&object, json!({"a": 1}), version), whole);
    }
    assert_eq!(structured(&text, json!("x"), Version::July2026), "x");
    assert_eq!(structured(&text, json!("x"), Version::June2025), json!({"result": "x"}));
}

#[test]
fn blocks_pass_as_they_are() {
    let blocks = spec(None, OutputKind::Content);
    let image = json!({"content": [{"type": "image", "data": "AA==", "mimeType": "image/png"}]});
    assert_eq!(result(&blocks, image.clone(), Version::June2025), image);
    let mut with_more = image.clone();
    with_more["structuredContent"] = json!([1]);
    with_more["_meta"] = json!({"own": 1});
    with_more["resultType"] = json!("complete");
    let modern = done(Some(&blocks), with_more.clone(), Version::July2026);
    let modern: Value = serde_json::from_str(&modern.write(Version::July2026)).unwrap();
    assert_eq!(modern["structuredContent"], json!([1]));
    assert_eq!(modern["_meta"]["own"], 1);
    let old = result(&blocks, with_more.clone(), Version::November2025);
    assert_eq!(old["structuredContent"], json!({"result": [1]}));
    assert_eq!(result(&blocks, with_more, Version::March2025)["structuredContent"], Value::Null);
    let bare = result(&blocks, json!({"a": 1}), Version::July2026);
    assert_eq!(bare["content"][0]["text"], "{\"a\":1}");
}

#[test]
fn a_refusal_that_helps_is_a_result() {
    let misfit = Misfit { pointer: "/a".to_owned(), message: "is no number".to_owned() };
    let wrong = Refusal::new(RefusalCode::InputMisfit(None), "the input does not fit")
        .hint("look")
        .errors(vec![misfit]);
    let outcome = refused(None, wrong, Version::June2025).unwrap();
    let told: Value = serde_json::from_str(&outcome.write(Version::June2025)).unwrap();
    assert_eq!(told["isError"], true);
    let text = "the input does not fit: at `/a`: is no number; look";
    assert_eq!(told["content"][0]["text"], text);
    let quota = Box::new(Quota { of: "runs", max: 1, window_s: None });
    let busy = Refusal::new(RefusalCode::RunsActiveMax(quota), "too many").hint("later");
    let error = refused(None, busy, Version::June2025).unwrap_err();
    assert_eq!(error.code, INTERNAL_ERROR);
    let own = json!({"of": "runs", "max": 1});
    let told = json!({"code": "runs_active_max", "hint": "later", "quota": own});
    assert_eq!(error.data, Some(told));
}

#[test]
fn the_result_of_a_failed_tool_is_passed_on() {
    let own = json!({"content": [{"type": "image", "data": "AA==", "mimeType": "image/png"}],
        "structuredContent": 7, "isError": true, "more": {"kept": 1}, "_meta": {"own": 1}});
    let failed = |result: &Value| {
        let code = RefusalCode::ToolFailed(Some(Box::new(RawFailure::Result(result.clone()))));
        let outcome = refused(None, Refusal::new(code, "ToolFailed: no"), Version::July2026);
        let told = outcome.unwrap().write(Version::July2026);
        serde_json::from_str::<Value>(&told).unwrap()
    };
    let told = failed(&own);
    for key in ["content", "structuredContent", "isError", "more"] {
        assert_eq!(told[key], own[key], "{key}");
    }
    assert_eq!(told["_meta"]["own"], 1);
    // What is no result is explained in words.
    let words = failed(&json!({"content": "x"}));
    assert_eq!(words["content"][0]["text"], "ToolFailed: no");
    assert_eq!(words["isError"], true);
}

#[test]
fn a_fault_detail_is_structured_content_where_no_schema_is_promised() {
    let detail = Map::from_iter([("version".to_owned(), json!(4))]);
    let fault = Fault::new("Conflict", "it was changed").hint("read it").detail(detail);
    let told = |schema: Option<Value>, version: Version| -> [Value; 2] {
        let spec = spec(schema, OutputKind::Value);
        let code = RefusalCode::ToolFailed(None);
        let refusal = Refusal::new(code, fault.to_string()).hint("read it");
        let refusal = Refusal { fault: Some(Box::new(fault.clone())), ..refusal };
        let report = report(RunStatus::Failed, Some(fault.clone()));
        let outcomes =
            [refused(Some(&spec), refusal, version), failed(Some(&spec), &report, None, version)];
        outcomes.map(|outcome| {
            let text = outcome.unwrap().write(version);
            serde_json::from_str(&text).unwrap()
        })
    };
    for result in told(None, Version::June2025) {
        assert_eq!(result["structuredContent"], json!({"version": 4}));
        assert_eq!(result["isError"], true);
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with("Conflict: it was changed; read it"), "{text}");
    }
    let promised = told(Some(json!({"type": "object"})), Version::June2025);
    let older = told(None, Version::March2025);
    for result in promised.iter().chain(&older) {
        assert_eq!(result.get("structuredContent"), None);
        assert_eq!(result["isError"], true);
    }
}

#[test]
fn a_fault_of_records_is_told_in_words_and_as_json() {
    let detail = Map::from_iter([("position".to_owned(), json!(4))]);
    let fault = Fault::new("InvalidQuery", "`b` is not expected").hint("use `&&`").detail(detail);
    let promised = spec(Some(json!({"type": "object"})), OutputKind::Value);
    let spec = ToolSpec { name: "query_find".into(), ..promised };
    let refusal = Refusal::new(RefusalCode::ToolFailed(None), fault.to_string()).hint("use `&&`");
    let refusal = Refusal { fault: Some(Box::new(fault)), ..refusal };
    let outcome = refused(Some(&spec), refusal, Version::June2025).unwrap();
    let result: Value = serde_json::from_str(&outcome.write(Version::June2025)).unwrap();
    assert_eq!(result["isError"], true);
    assert_eq!(result.get("structuredContent"), None);
    let words = result["content"][0]["text"].as_str().unwrap();
    assert!(words.starts_with("InvalidQuery: `b` is not expected"), "{words}");
    let told: Value = serde_json::from_str(result["content"][1]["text"].as_str().unwrap()).unwrap();
    let expected = json!({"error": "InvalidQuery", "message": "`b` is not expected",
        "hint": "use `&&`", "position": 4});
    assert_eq!(told, expected);
}

#[test]
fn missing_capabilities_are_the_error_of_the_protocol() {
    let lacks = Abilities { sample: true, ..Abilities::default() };
    let refused =
        |code| refused(None, Refusal::new(code, "InputWanted: no model"), Version::July2026);
    let error = refused(RefusalCode::CallerLacks(lacks)).unwrap_err();
    assert_eq!(error.code, MISSING_CAPABILITY);
    assert_eq!(error.data, Some(json!({"requiredCapabilities": {"sampling": {}}})));
    // The same where the call was a run.
    let fault = Fault::new("InputWanted", "no model");
    let failed = |lacks| {
        let report = report(RunStatus::Failed, Some(fault.clone()));
        super::failed(None, &report, Some(RawFailure::Lacks(lacks)), Version::July2026)
    };
    assert_eq!(failed(lacks).unwrap_err(), error);
    // A client that lacks nothing that has a name gets an explanation in words.
    assert!(failed(Abilities::default()).is_ok());
    assert!(refused(RefusalCode::CallerLacks(Abilities::default())).is_ok());
    assert!(refused(RefusalCode::ToolFailed(None)).is_ok());
}

#[test]
fn only_the_runtimes_own_faults_fail_a_task() {
    let status =
        |status, name: &str| TaskStatus::of(&report(status, Some(Fault::new(name, "why"))), 0);
    assert_eq!(status(RunStatus::Failed, "LimitReached"), TaskStatus::Failed);
    assert_eq!(status(RunStatus::Failed, "RecoveryGaveUp"), TaskStatus::Failed);
    assert_eq!(status(RunStatus::Failed, "UpstreamTaskFailed"), TaskStatus::Failed);
    for name in ["AlwaysFails", "HttpStatus", "Timeout", "Rejected", "Declined", "PolicyDenied"] {
        assert_eq!(status(RunStatus::Failed, name), TaskStatus::Completed, "{name}");
    }
    assert_eq!(status(RunStatus::Cancelled, "Cancelled"), TaskStatus::Cancelled);
    let waiting = report(RunStatus::Waiting, None);
    assert_eq!(TaskStatus::of(&waiting, 0), TaskStatus::Working);
    assert_eq!(TaskStatus::of(&waiting, 1), TaskStatus::InputRequired);
}

#[test]
fn a_run_that_is_not_over_is_named() {
    let running = report(RunStatus::Running, None);
    let run = RunId(1).to_string();
    let plain = unfinished(&running, &spec(None, OutputKind::Value), Version::June2025);
    let told: Value = serde_json::from_str(&plain.write(Version::June2025)).unwrap();
    assert_eq!(told["isError"], Value::Null);
    assert!(told["content"][0]["text"].as_str().unwrap().contains(&run), "{told}");
    assert_eq!(told["_meta"][META_RUN], run);
    let promised = spec(Some(json!({"type": "number"})), OutputKind::Value);
    let error = unfinished(&running, &promised, Version::June2025);
    let told: Value = serde_json::from_str(&error.write(Version::June2025)).unwrap();
    assert_eq!(told["isError"], true);
}
