//! Errors of A2A: their numbers, names and statuses in each binding, with the details that tell
//! programs which one is meant.

use crate::jsonrpc::{
    INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR, RpcError,
};
use serde_json::{Map, Value, json};

/// The type of the detail that names an error.
pub const ERROR_INFO: &str = "type.googleapis.com/google.rpc.ErrorInfo";
/// The type of the detail that lists wrong members.
pub const BAD_REQUEST: &str = "type.googleapis.com/google.rpc.BadRequest";
/// Whose names they are.
pub const DOMAIN: &str = "a2a-protocol.org";

/// Which error it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// There is no such task, or it is not the caller's.
    TaskNotFound,
    /// The task is over.
    TaskNotCancelable,
    /// There are no webhooks.
    PushNotificationNotSupported,
    /// That cannot be done, or not now.
    UnsupportedOperation,
    /// A media type is not taken.
    ContentTypeNotSupported,
    /// An agent answered what is not A2A.
    InvalidAgentResponse,
    /// There is no extended card.
    ExtendedAgentCardNotConfigured,
    /// The client does not know an extension that is required.
    ExtensionSupportRequired,
    /// The version is not spoken here.
    VersionNotSupported,
    /// It is not JSON.
    Parse,
    /// It is JSON, but no request.
    InvalidRequest,
    /// There is no such method or path.
    MethodNotFound,
    InvalidParams,
    /// Credentials are missing or wrong.
    Unauthenticated,
    /// The caller may not do that.
    PermissionDenied,
    /// There are too many.
    ResourceExhausted,
    /// The fault is the agent's.
    Internal,
}

/// An error in each binding.
struct ErrorRow {
    kind: ErrorKind,
    code: i64,
    /// The status of HTTP.
    http: u16,
    /// The name of the status of gRPC.
    status: &'static str,
    /// The reason of `ErrorInfo`; none for what is not of A2A itself.
    reason: Option<&'static str>,
}

const fn row(
    kind: ErrorKind,
    code: i64,
    http: u16,
    status: &'static str,
    reason: Option<&'static str>,
) -> ErrorRow {
    ErrorRow { kind, code, http, status, reason }
}

/// Ours, for what JSON-RPC has no number for.
const OTHER: i64 = -32000;
const PRECONDITION: &str = "FAILED_PRECONDITION";
const ARGUMENT: &str = "INVALID_ARGUMENT";

static TABLE: [ErrorRow; 17] = {
    use ErrorKind as Kind;
    [
        row(Kind::TaskNotFound, -32001, 404, "NOT_FOUND", Some("TASK_NOT_FOUND")),
        row(Kind::TaskNotCancelable, -32002, 400, PRECONDITION, Some("TASK_NOT_CANCELABLE")),
        row(
            Kind::PushNotificationNotSupported,
            -32003,
            400,
            PRECONDITION,
            Some("PUSH_NOTIFICATION_NOT_SUPPORTED"),
        ),
        row(Kind::UnsupportedOperation, -32004, 400, PRECONDITION, Some("UNSUPPORTED_OPERATION")),
        row(
            Kind::ContentTypeNotSupported,
            -32005,
            400,
            ARGUMENT,
            Some("CONTENT_TYPE_NOT_SUPPORTED"),
        ),
        row(Kind::InvalidAgentResponse, -32006, 500, "INTERNAL", Some("INVALID_AGENT_RESPONSE")),
        row(
            Kind::ExtendedAgentCardNotConfigured,
            -32007,
            400,
            PRECONDITION,
            Some("EXTENDED_AGENT_CARD_NOT_CONFIGURED"),
        ),
        row(
            Kind::ExtensionSupportRequired,
            -32008,
            400,
            PRECONDITION,
            Some("EXTENSION_SUPPORT_REQUIRED"),
        ),
        row(Kind::VersionNotSupported, -32009, 400, PRECONDITION, Some("VERSION_NOT_SUPPORTED")),
        row(Kind::Parse, PARSE_ERROR, 400, ARGUMENT, None),
        row(Kind::InvalidRequest, INVALID_REQUEST, 400, ARGUMENT, None),
        row(Kind::MethodNotFound, METHOD_NOT_FOUND, 404, "UNIMPLEMENTED", None),
        row(Kind::InvalidParams, INVALID_PARAMS, 400, ARGUMENT, None),
        row(Kind::Unauthenticated, OTHER, 401, "UNAUTHENTICATED", None),
        row(Kind::PermissionDenied, OTHER, 403, "PERMISSION_DENIED", None),
        row(Kind::ResourceExhausted, OTHER, 429, "RESOURCE_EXHAUSTED", None),
        row(Kind::Internal, INTERNAL_ERROR, 500, "INTERNAL", None),
    ]
};

impl ErrorKind {
    pub fn all() -> impl Iterator<Item = ErrorKind> {
        TABLE.iter().map(|row| row.kind)
    }

    fn row(self) -> &'static ErrorRow {
        // Each kind has its row: a test looks at all of them.
        TABLE.iter().find(|row| row.kind == self).unwrap_or(&TABLE[TABLE.len() - 1])
    }

    /// Its number in JSON-RPC.
    pub fn code(self) -> i64 {
        self.row().code
    }

    /// Its status in HTTP.
    pub fn http(self) -> u16 {
        self.row().http
    }

    /// The name of its status in gRPC.
    pub fn status(self) -> &'static str {
        self.row().status
    }

    /// The reason of its `ErrorInfo`, if it is an error of A2A itself.
    pub fn reason(self) -> Option<&'static str> {
        self.row().reason
    }
}

/// An error with its details.
#[derive(Debug, Clone, PartialEq)]
pub struct A2aError {
    pub kind: ErrorKind,
    /// Who failed and why.
    pub message: String,
    /// Objects with their `@type`.
    pub details: Vec<Value>,
    /// Headers that an HTTP answer has with it.
    pub headers: Vec<(String, String)>,
}

impl A2aError {
    /// An error with its name among the details, if it has one.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let info = |reason| json!({"@type": ERROR_INFO, "reason": reason, "domain": DOMAIN});
        let details = kind.reason().map(info).into_iter().collect();
        Self { kind, message: message.into(), details, headers: Vec::new() }
    }

    /// The same with texts for programs beside its name.
    #[must_use]
    pub fn metadata(mut self, metadata: Map<String, Value>) -> Self {
        if let Some(Value::Object(info)) = self.details.first_mut() {
            info.insert("metadata".to_owned(), Value::Object(metadata));
        }
        self
    }

    /// The same with a member of the request that is wrong.
    #[must_use]
    pub fn violation(mut self, field: &str, description: &str) -> Self {
        let violation = json!({"field": field, "description": description});
        let known = self.details.iter_mut().find(|detail| detail["@type"] == BAD_REQUEST);
        match known.and_then(|detail| detail["fieldViolations"].as_array_mut()) {
            Some(violations) => violations.push(violation),
            None => {
                self.details.push(json!({"@type": BAD_REQUEST, "fieldViolations": [violation]}))
            }
        }
        self
    }

    /// As JSON-RPC says it.
    pub fn to_rpc(&self) -> RpcError {
        let error = RpcError::new(self.kind.code(), self.message.clone());
        match self.details.is_empty() {
            true => error,
            false => error.data(json!(self.details)),
        }
    }

    /// The body of an HTTP answer.
    pub fn to_rest(&self) -> Value {
        let mut error = json!({"code": self.kind.http(), "status": self.kind.status(),
            "message": self.message});
        if !self.details.is_empty() {
            error["details"] = json!(self.details);
        }
        json!({"error": error})
    }

    /// The body of an HTTP answer of 0.3, whose clients look for the number of JSON-RPC at the top.
    pub fn to_old_rest(&self) -> Value {
        let mut body = self.to_rest();
        body["code"] = json!(self.kind.code());
        body["message"] = json!(self.message);
        if !self.details.is_empty() {
            body["data"] = json!(self.details);
        }
        body
    }

    /// The `error` of a JSON-RPC answer. What it names in its details counts first: numbers are
    /// used for other things by some.
    pub fn of_rpc(error: &Value) -> Self {
        let details = objects(error.get("data"));
        let code = error.get("code").and_then(Value::as_i64);
        let by_code = TABLE.iter().find(|row| Some(row.code) == code && row.code != OTHER);
        let kind = named(&details).or(by_code.map(|row| row.kind));
        let kind = kind.unwrap_or(ErrorKind::Internal);
        let message = message(error);
        Self { kind, message, details, headers: Vec::new() }
    }

    /// The body of an HTTP answer of this status.
    pub fn of_rest(status: u16, body: &Value) -> Self {
        let error = body.get("error").unwrap_or(body);
        let details = objects(error.get("details"));
        let kind = named(&details).unwrap_or(match status {
            401 => ErrorKind::Unauthenticated,
            403 => ErrorKind::PermissionDenied,
            404 => ErrorKind::MethodNotFound,
            429 => ErrorKind::ResourceExhausted,
            400..=499 => ErrorKind::InvalidParams,
            _ => ErrorKind::Internal,
        });
        Self { kind, message: message(error), details, headers: Vec::new() }
    }

    /// A call of gRPC that ended with the status of this name.
    pub fn of_grpc(status: &str, message: String, details: Vec<Value>) -> Self {
        let kind = named(&details).unwrap_or(match status {
            "UNAUTHENTICATED" => ErrorKind::Unauthenticated,
            "PERMISSION_DENIED" => ErrorKind::PermissionDenied,
            "NOT_FOUND" => ErrorKind::TaskNotFound,
            "UNIMPLEMENTED" => ErrorKind::MethodNotFound,
            "RESOURCE_EXHAUSTED" => ErrorKind::ResourceExhausted,
            "FAILED_PRECONDITION" => ErrorKind::UnsupportedOperation,
            "INVALID_ARGUMENT" | "OUT_OF_RANGE" => ErrorKind::InvalidParams,
            _ => ErrorKind::Internal,
        });
        Self { kind, message, details, headers: Vec::new() }
    }
}

fn named(details: &[Value]) -> Option<ErrorKind> {
    let reason = details.iter().find_map(|detail| {
        let is_info = detail["@type"] == ERROR_INFO && detail["domain"] == DOMAIN;
        detail["reason"].as_str().filter(|_| is_info)
    })?;
    TABLE.iter().find(|row| row.reason == Some(reason)).map(|row| row.kind)
}

fn objects(details: Option<&Value>) -> Vec<Value> {
    let details = details.and_then(Value::as_array);
    details.into_iter().flatten().filter(|detail| detail.is_object()).cloned().collect()
}

fn message(error: &Value) -> String {
    let said = ["message", "detail", "title"].iter().find_map(|key| error.get(key)?.as_str());
    said.unwrap_or("no reason is given").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_has_its_own_row_and_is_read_as_it_was_written() {
        for kind in ErrorKind::all() {
            assert_eq!(kind.row().kind, kind);
            let error = A2aError::new(kind, "no");
            let rpc = A2aError::of_rpc(&error.to_rpc().to_value());
            let rest = A2aError::of_rest(kind.http(), &error.to_rest());
            assert_eq!((rpc.message.as_str(), rest.message.as_str()), ("no", "no"));
            if kind.reason().is_some() {
                assert_eq!((rpc.kind, rest.kind), (kind, kind));
            }
        }
    }

    #[test]
    fn details_say_what_is_wrong() {
        let error = A2aError::new(ErrorKind::InvalidParams, "Invalid parameters")
            .violation("message.parts", "At least one part is required")
            .violation("message.role", "It is required");
        let data = &error.to_rpc().to_value()["data"];
        assert_eq!(data[0]["@type"], BAD_REQUEST);
        assert_eq!(data[0]["fieldViolations"][1]["field"], "message.role");
        let metadata = Map::from_iter([("taskId".to_owned(), json!("t"))]);
        let error = A2aError::new(ErrorKind::TaskNotFound, "no").metadata(metadata);
        let rest = error.to_rest();
        assert_eq!(rest["error"]["code"], 404);
        assert_eq!(rest["error"]["status"], "NOT_FOUND");
        assert_eq!(rest["error"]["details"][0]["metadata"]["taskId"], "t");
    }

    #[test]
    fn a_name_counts_more_than_a_number() {
        let details = json!([{"@type": ERROR_INFO, "reason": "TASK_NOT_FOUND", "domain": DOMAIN}]);
        let error = A2aError::of_rpc(&json!({"code": -32000, "message": "x", "data": details}));
        assert_eq!(error.kind, ErrorKind::TaskNotFound);
        assert_eq!(A2aError::of_rpc(&json!({"code": -32000})).kind, ErrorKind::Internal);
        assert_eq!(A2aError::of_rest(404, &json!({})).kind, ErrorKind::MethodNotFound);
        assert_eq!(A2aError::of_rest(503, &Value::Null).message, "no reason is given");
    }
}
