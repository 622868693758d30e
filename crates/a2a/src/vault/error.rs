//! Errors in the profile: few codes, each with its beginning, and nearly all with the status 200.

use axum::http::StatusCode;
use serde_json::Value;
use wire::a2a::error::{A2aError, ErrorKind};
use wire::jsonrpc::{INTERNAL_ERROR, INVALID_PARAMS, RpcError};

/// What an agent does not do.
const AGENT_ERROR: i64 = -32000;
const NOT_FOUND: i64 = -32001;

/// An error with the status that it is sent with.
#[derive(Debug, PartialEq)]
pub(super) struct StatusError {
    pub(super) status: StatusCode,
    pub(super) error: RpcError,
}

/// An error of ours as the profile says it.
pub(super) fn told(error: &A2aError) -> StatusError {
    let (code, message) = match error.kind {
        ErrorKind::TaskNotFound => (NOT_FOUND, format!("Task not found: {}", task_of(error))),
        ErrorKind::Parse | ErrorKind::InvalidRequest | ErrorKind::MethodNotFound => {
            (error.kind.code(), error.message.clone())
        }
        ErrorKind::InvalidParams => (INVALID_PARAMS, misfit(&error.message)),
        ErrorKind::Internal => (INTERNAL_ERROR, error.message.clone()),
        ErrorKind::TaskNotCancelable
        | ErrorKind::PushNotificationNotSupported
        | ErrorKind::UnsupportedOperation
        | ErrorKind::ContentTypeNotSupported
        | ErrorKind::InvalidAgentResponse
        | ErrorKind::ExtendedAgentCardNotConfigured
        | ErrorKind::ExtensionSupportRequired
        | ErrorKind::VersionNotSupported
        | ErrorKind::Unauthenticated
        | ErrorKind::PermissionDenied
        | ErrorKind::ResourceExhausted => (AGENT_ERROR, format!("Agent error: {}", error.message)),
    };
    let status = match error.kind {
        ErrorKind::Unauthenticated => StatusCode::UNAUTHORIZED,
        ErrorKind::PermissionDenied => StatusCode::FORBIDDEN,
        ErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::OK,
    };
    let told = RpcError::new(code, message);
    let error = match error.details.is_empty() {
        true => told,
        false => told.data(Value::Array(error.details.clone())),
    };
    StatusError { status, error }
}

/// What is wrong with parameters.
fn misfit(why: &str) -> String {
    format!("Invalid parameters: {why}")
}

/// The task that is not there.
fn task_of(error: &A2aError) -> &str {
    let named = error.details.first().and_then(|info| info["metadata"]["taskId"].as_str());
    named.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::super::error::{invalid, no_task, unsupported};
    use super::*;

    #[test]
    fn each_error_has_its_code_its_beginning_and_its_status() {
        let of = |kind| A2aError::new(kind, "why");
        for (error, code, status, begins) in [
            (no_task("run_1"), -32001, 200, "Task not found: run_1"),
            (invalid("message", "why"), -32602, 200, "Invalid parameters: why"),
            (unsupported("why"), -32000, 200, "Agent error: why"),
            (of(ErrorKind::PushNotificationNotSupported), -32000, 200, "Agent error: why"),
            (of(ErrorKind::Parse), -32700, 200, "why"),
            (of(ErrorKind::InvalidRequest), -32600, 200, "why"),
            (of(ErrorKind::MethodNotFound), -32601, 200, "why"),
            (of(ErrorKind::Internal), -32603, 500, "why"),
            (of(ErrorKind::Unauthenticated), -32000, 401, "Agent error: why"),
            (of(ErrorKind::PermissionDenied), -32000, 403, "Agent error: why"),
        ] {
            let told = told(&error);
            assert_eq!((told.error.code, told.status.as_u16()), (code, status), "{error:?}");
            assert_eq!(told.error.message, begins);
        }
    }
}
