//! Every way in which a call for an agent of others fails, out of the events of its run.

use super::*;
use kernel::values::datum::Origin;
use kernel::values::ids::CallId;

fn proxied(input: Value) -> ProxiedCall {
    ProxiedCall { input: Arc::new(Datum::inline(input, Origin::Input)), failed: None }
}

/// The failure of a call that failed so.
fn of(name: &str, how: CallProgress, said: Option<RawFailure>) -> ProxyFailure {
    let fault = Fault::new(name, "why");
    let call = CallId(1);
    let said = said.map(|said| Arc::new(Datum::inline(json!(said), Origin::Call(call))));
    let mut proxied = proxied(json!({"instruction": {}}));
    proxied.note(&Fact::CallFailed { call, how, fault: fault.clone(), said });
    proxied.failure(&fault)
}

fn reply(members: Value) -> Option<RawFailure> {
    Some(RawFailure::Reply(members))
}

#[test]
fn failures_before_the_start_keep_their_recorded_code() {
    let refused = json!({"code": "NO_ROUTE", "message": "nowhere", "details": {"a": 1}});
    let failure = proxied(json!({REFUSED: refused})).failure(&Fault::new("PointerError", "x"));
    assert_eq!(
        failure.output(),
        json!({"success": false, "error": {"source": "A2A_PROXY", "code": "NO_ROUTE",
            "message": "nowhere", "details": {"a": 1}}})
    );
    assert_eq!(words(&failure.fault()).as_deref(), Some("[A2A_PROXY/NO_ROUTE] nowhere"));
    assert_eq!(words(&Fault::new("Rejected", "no")), None);
    assert_eq!(words(&Fault::new("other/code", "no")), None);
}

#[test]
fn a_plain_json_rpc_reply_is_classified_by_its_kind() {
    let error = |code: Value| json!({"code": code, "message": "said", "data": {"n": 1}});
    for (members, source, code, details) in [
        (
            json!({"httpStatus": 404, "body": "gone", "error": error(json!(-1))}),
            "MCP_PROTOCOL",
            "-32601",
            json!({"http_status": 404, "response_body": "gone"}),
        ),
        (
            json!({"httpStatus": 500, "body": "x", "error": error(json!(-32000))}),
            "MCP_PROTOCOL",
            "-32000",
            json!({"mcp_protocol_error_data": {"n": 1}}),
        ),
        (
            json!({"httpStatus": 200, "body": "x", "error": error(Value::Null)}),
            "MCP_PROTOCOL",
            "MCP_UNKNOWN_PROTOCOL_ERROR",
            json!({"mcp_protocol_error_data": {"n": 1}}),
        ),
        (
            json!({"httpStatus": 200, "body": "<html>"}),
            "A2A_PROXY",
            "MCP_INVALID_RESPONSE",
            json!({"http_status": 200, "response_body": "<html>"}),
        ),
        (
            json!({"httpStatus": 200, "body": "{}", "resultType": "string"}),
            "A2A_PROXY",
            "MCP_INVALID_RESULT",
            json!({"http_status": 200, "mcp_result_type": "string"}),
        ),
    ] {
        let failure = of("Any", CallProgress::Unknown, reply(members.clone()));
        let told = (failure.source, failure.code.as_str(), json!(failure.details));
        assert_eq!(told, (source, code, details), "{members}");
    }
}

#[test]
fn tool_and_protocol_errors_keep_their_own_words() {
    let result = json!({"isError": true, "content": [{"type": "text", "text": "no"}]});
    let failure = of("ToolFailed", CallProgress::Failed, Some(RawFailure::Result(result.clone())));
    assert_eq!((failure.source, failure.code.as_str()), ("MCP_TOOL", "TOOL_EXECUTION_FAILED"));
    assert_eq!(failure.details["mcp_tool_error_content"], result["content"]);
    let error = json!({"code": -32602, "message": "unknown tool"});
    let failure = of("UpstreamError", CallProgress::Failed, Some(RawFailure::Error(error)));
    let told = (failure.source, failure.code.as_str(), failure.message.as_str());
    assert_eq!(told, ("MCP_PROTOCOL", "-32602", "unknown tool"));
}

#[test]
fn other_failures_get_their_code_from_the_fault() {
    for (name, how, code, is_unknown) in [
        ("Timeout", CallProgress::Unknown, "MCP_TIMEOUT", true),
        ("UpstreamTimeout", CallProgress::Unknown, "MCP_TIMEOUT", true),
        ("ConnectFailed", CallProgress::NotSent, "MCP_CONNECTION_ERROR", false),
        ("AnswerLost", CallProgress::Unknown, "MCP_CONNECTION_ERROR", true),
        ("UpstreamClosed", CallProgress::Unknown, "MCP_CONNECTION_ERROR", true),
        ("UpstreamError", CallProgress::Failed, "MCP_INVALID_RESPONSE", false),
        ("InvalidResponse", CallProgress::Unknown, "MCP_INVALID_RESPONSE", false),
        ("PolicyDenied", CallProgress::NotSent, "DENIED", false),
        ("ToolNotFoundError", CallProgress::NotSent, "NO_ROUTE", false),
        ("InputValidationError", CallProgress::NotSent, "INVALID_INPUT", false),
        ("Panicked", CallProgress::Unknown, "PROXY_INTERNAL_ERROR", false),
    ] {
        let failure = of(name, how, None);
        assert_eq!((failure.source, failure.code.as_str()), ("A2A_PROXY", code), "{name}");
        let outcome = failure.details.get("outcome");
        assert_eq!(outcome, is_unknown.then_some(&json!("unknown")), "{name}");
    }
    let hidden = Fault::new("ToolNotFoundError", "there is none");
    assert_eq!(proxied(json!({OPEN: true})).failure(&hidden).code, "DENIED");
    // A person said no before anything was called.
    let failure = proxied(json!({})).failure(&Fault::new("Rejected", "not today"));
    assert_eq!((failure.code.as_str(), failure.message.as_str()), ("DENIED", "not today"));
}
