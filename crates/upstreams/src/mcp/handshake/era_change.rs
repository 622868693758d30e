//! Detects that a server no longer speaks the era that was negotiated, because another server now
//! answers at its address. Such answers are distinguished from ordinary errors.

use crate::mcp::line::{PeerError, PeerErrorKind};
use crate::mcp::requests::AskError;
use serde_json::Value;
use wire::jsonrpc::{INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, RpcError};
use wire::mcp::UNSUPPORTED_VERSION;

/// A number that every server uses for what it likes, and some for a version or a session that
/// they do not know.
const SERVER_ERROR: i64 = -32000;

/// Whether a server that declared this may be of another era by now, as it fails so.
pub(crate) fn is_foreign(method: &str, error: &AskError, declared: &Value) -> bool {
    match error {
        AskError::Peer(error) => is_refused(error),
        AskError::Rpc(error) => is_unheard_of(method, error, declared),
    }
}

/// Whether it refuses what it took before, with a status and nothing else.
pub(crate) fn is_refused(error: &PeerError) -> bool {
    matches!(error.kind, PeerErrorKind::Refused(400 | 404 | 405))
}

/// Whether an error speaks of how it was asked, not of what.
pub(crate) fn is_unheard_of(method: &str, error: &RpcError, declared: &Value) -> bool {
    // A list has no parameters that could be wrong, and is no tool that could fail.
    let is_list = method.ends_with("/list");
    match error.code {
        UNSUPPORTED_VERSION | INVALID_REQUEST => true,
        METHOD_NOT_FOUND => is_declared(method, declared),
        INVALID_PARAMS => is_list,
        SERVER_ERROR => is_list || is_about_the_handshake(&error.message),
        _ => false,
    }
}

fn is_declared(method: &str, declared: &Value) -> bool {
    let family = method.split('/').next().unwrap_or_default();
    declared[family].is_object()
}

fn is_about_the_handshake(words: &str) -> bool {
    let words = words.to_ascii_lowercase();
    ["protocol version", "not initialized", "session id"].iter().any(|about| words.contains(about))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::tool::call::CallProgress;
    use serde_json::json;

    fn unheard_of(method: &str, code: i64, message: &str) -> bool {
        let declared = json!({"tools": {}});
        is_foreign(method, &AskError::Rpc(RpcError::new(code, message)), &declared)
    }

    #[test]
    fn answers_of_the_other_era_are_recognised() {
        for (method, code) in [
            ("tools/call", UNSUPPORTED_VERSION),
            ("tools/call", INVALID_REQUEST),
            ("tools/call", METHOD_NOT_FOUND),
            ("tools/list", INVALID_PARAMS),
            ("tools/list", SERVER_ERROR),
        ] {
            assert!(unheard_of(method, code, "no"), "{method} {code}");
        }
        let words = "Bad Request: Unsupported protocol version: 2026-07-28";
        assert!(unheard_of("tools/call", SERVER_ERROR, words));
        for (status, foreign) in [(400, true), (404, true), (405, true), (500, false)] {
            let error = PeerError::new(CallProgress::Failed, PeerErrorKind::Refused(status), "no");
            assert_eq!(is_foreign("tools/call", &error.into(), &json!({})), foreign, "{status}");
        }
    }

    #[test]
    fn ordinary_answers_do_not_indicate_an_era() {
        for (method, code) in [
            ("tools/call", INVALID_PARAMS),
            ("tools/call", SERVER_ERROR),
            ("tools/list", -32603),
            // It never said that it has any.
            ("prompts/list", METHOD_NOT_FOUND),
        ] {
            assert!(!unheard_of(method, code, "no such tool"), "{method} {code}");
        }
    }
}
