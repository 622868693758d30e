//! Words for the outcome of a case, and counts of the paths that cases took.

use super::*;
use kernel::definition::pipeline::TallyRow;
use kernel::definition::pipeline_reader::read_text;
use kernel::limits::Limits;
use kernel::values::ids::Millis;

fn pipeline() -> Pipeline {
    let source = json!({
        "http": {"route": "/trades"},
        "schema": {"caseIdField": "id", "allowedFields": ["id", "reason"],
            "requiredFields": ["id", "reason"]},
        "handlers": [{"reason": "late", "type": "escalate"},
            {"reason": "lost", "type": "escalate"}],
        "tools": ["case.raiseTicket"],
        "llm": {"type": "stub"},
    });
    let read = read_text(&source.to_string(), "a.yaml", "trades", &Limits::default());
    read.unwrap().0
}

#[test]
fn a_body_that_is_no_object_is_one_mistake() {
    for (sent, code) in [
        ("", "no_body"),
        (" \n", "no_body"),
        ("{", "malformed_json"),
        ("tradeId=T-1", "malformed_json"),
        ("[]", "wrong_shape"),
        ("null", "wrong_shape"),
        ("\"x\"", "wrong_shape"),
    ] {
        let failure = object(sent.as_bytes(), 8).unwrap_err();
        assert_eq!((failure.status(), failure.code()), (StatusCode::BAD_REQUEST, code), "{sent}");
        assert_eq!(failure.message(), "Expected JSON body", "{sent}");
    }
    let deep = object(b"{\"a\": [[[]]]}", 3).unwrap_err();
    assert_eq!((deep.status(), deep.code()), (StatusCode::BAD_REQUEST, "too_deep"));
    assert_eq!(object(b" {\"a\": 1} ", 3).unwrap(), json!({"a": 1}));
}

#[test]
fn missing_fields_are_named() {
    let missing = BadCase::Missing(vec!["tradeId".to_owned(), "reason".to_owned()]);
    let failure = refused(missing);
    assert_eq!(failure.status(), StatusCode::BAD_REQUEST);
    assert_eq!(failure.message(), "Missing required field(s): tradeId, reason");
    assert_eq!(refused(BadCase::NoObject).message(), "Expected JSON body");
    assert_eq!(refused(BadCase::BadId("tradeId".to_owned())).code(), "bad_case_id");
}

#[test]
fn every_limit_has_its_message() {
    assert_eq!(stopped_by("steps"), "Step limit reached (safety stop)");
    assert_eq!(stopped_by("time"), "Time limit reached (safety stop)");
    assert_eq!(stopped_by("x"), "Limit `x` reached (safety stop)");
}

#[test]
fn roads_are_counted_by_reason() {
    let row = |deterministic, reason: &str, count| TallyRow {
        deterministic,
        reason: reason.to_owned(),
        count,
        last_at: Millis(0),
    };
    let rows = vec![
        row(false, "odd", 1),
        row(true, "late", 2),
        row(false, "even", 3),
        row(true, "gone", 2),
        row(false, "a", 1),
    ];
    let stats = json!(rows::pipeline_stats(&pipeline(), rows, 200));
    let at = "1970-01-01T00:00:00.000Z";
    let expected = json!({
        "pipeline": "trades", "total": 9, "deterministic": 4, "agent": 5, "share": 4.0 / 9.0,
        "handlers": [
            {"reason": "late", "type": "escalate", "count": 2, "lastAt": at},
            {"reason": "gone", "type": "removed", "count": 2, "lastAt": at},
            {"reason": "lost", "type": "escalate", "count": 0},
        ],
        "unknown": [
            {"reason": "even", "count": 3, "lastAt": at},
            {"reason": "a", "count": 1, "lastAt": at},
            {"reason": "odd", "count": 1, "lastAt": at},
        ],
    });
    assert_eq!(stats, expected);
    let none = json!(rows::pipeline_stats(&pipeline(), Vec::new(), 200));
    assert_eq!((&none["total"], none.get("share")), (&json!(0), None));
}
