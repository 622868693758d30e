//! Sections 3.6, 4.6.3, 9.2, 10.2 and 11.2: the version of a request, and extensions that it names.

use crate::talk::{Talk, said};
use serde_json::{Value, json};

const LIST: &str = r#"{"jsonrpc": "2.0", "id": 7, "method": "ListTasks", "params": {}}"#;

/// The codes of JSON-RPC and HTTP for a request with these headers and this query; 0 where it is
/// answered.
fn codes(talk: &Talk, headers: &[(&str, &str)], query: &str) -> [i64; 2] {
    let rpc = talk.http("POST", &format!("/a2a/v1{query}"), headers, Some(LIST)).json();
    let rest = talk.http("GET", &format!("/a2a/v1/tasks{query}"), headers, None);
    let reason = |details: &Value| details[0]["reason"].as_str().unwrap_or_default().to_owned();
    let code = rpc["error"]["code"].as_i64().unwrap_or_default();
    if code == -32009 {
        assert_eq!(reason(&rpc["error"]["data"]), "VERSION_NOT_SUPPORTED", "{rpc}");
        let error = rest.json()["error"].clone();
        assert_eq!(reason(&error["details"]), "VERSION_NOT_SUPPORTED", "{error}");
    }
    [code, if rest.status == 200 { 0 } else { i64::from(rest.status) }]
}

/// The status of gRPC for the same with these headers; 0 where it is answered.
fn status(talk: &Talk, headers: &[(&str, &str)]) -> i64 {
    match talk.called("ListTasks", headers, &json!({})) {
        Ok(_) => 0,
        Err(fault) => {
            assert_eq!(fault.reason(), "VERSION_NOT_SUPPORTED", "{fault:?}");
            fault.number
        }
    }
}

#[test]
fn a_request_has_the_meaning_of_its_version() {
    let talk = Talk::start();
    for good in ["1.0", "1.0.0", "1.0.7"] {
        assert_eq!(codes(&talk, &[("a2a-version", good)], ""), [0, 0], "{good}");
        assert_eq!(status(&talk, &[("a2a-version", good)]), 0, "{good}");
    }
    for other in ["1.1", "0.2", "2.0", "99.0", "nonsense"] {
        assert_eq!(codes(&talk, &[("a2a-version", other)], ""), [-32009, 400], "{other}");
        assert_eq!(status(&talk, &[("a2a-version", other)]), 9, "{other}");
    }
}

#[test]
fn no_version_is_0_3_and_names_of_1_0_are_not_known_there() {
    let talk = Talk::start();
    let unnamed: [&[(&str, &str)]; 3] = [&[], &[("a2a-version", "")], &[("a2a-version", "0.3")]];
    for headers in unnamed {
        assert_eq!(codes(&talk, headers, ""), [-32009, 400], "{headers:?}");
        assert_eq!(status(&talk, headers), 9, "{headers:?}");
    }
}

#[test]
fn the_version_is_a_header_in_any_case_or_in_the_query() {
    let talk = Talk::start();
    for name in ["A2A-Version", "A2A-VERSION", "a2a-version"] {
        assert_eq!(codes(&talk, &[(name, "1.0")], ""), [0, 0], "{name}");
    }
    assert_eq!(codes(&talk, &[], "?A2A-Version=1.0"), [0, 0]);
}

#[test]
fn extensions_that_are_not_known_are_ignored() {
    let talk = Talk::start();
    let unknown = "https://example.com/extensions/none/v9,https://example.com/other/v1";
    let headers = [("a2a-version", "1.0"), ("a2a-extensions", unknown)];
    assert_eq!(codes(&talk, &headers, ""), [0, 0]);
    assert_eq!(status(&talk, &headers), 0);
    let mut message = said("tck-complete-task");
    message["extensions"] = json!(["https://example.com/extensions/none/v9"]);
    message["metadata"] = json!({"https://example.com/extensions/none/v9": {"a": 1}});
    let params = json!({"message": message});
    let answer = talk.http("POST", "/a2a/v1/message:send", &headers, Some(&params.to_string()));
    let by_grpc = talk.called("SendMessage", &headers, &params).unwrap().remove(0);
    for answer in [answer.json(), by_grpc] {
        let task = &answer["task"];
        assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
        assert_eq!(task["history"][0]["extensions"], message["extensions"], "{task}");
    }
}
