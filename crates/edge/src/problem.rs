//! How a refusal leaves the server: an RFC 9457 problem under `/api/v1`, the objects that existing
//! clients expect at the endpoints of `compat` and of pipelines, a JSON-RPC error where that
//! is spoken. Handlers only say what is wrong; `frame` asks for the shape of the endpoint.

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use engine::refusal::{Quota, Refusal, RefusalCode, RefusalKind};
use kernel::identity::shares::SharedLimit;
use kernel::tool::schema::Misfit;
use kernel::values::fault::Fault;
use query::records::faults;
use serde_json::{Map, Value, json};
use wire::a2a::error::{A2aError, ErrorKind};
use wire::a2a::proto::status::Status;
use wire::conversations::{ThreadError, ThreadStatus};
use wire::jsonrpc::{self, INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR, RpcError};
use wire::plan_sessions::PlainError;
use wire::query_gateway::NamedError;
use wire::rest::{FaultyValue, PROBLEM_TYPE, Problem};

/// Where in an endpoint's body stood what the engine refuses with this code.
pub type BodyPointer = fn(&RefusalCode) -> Option<&'static str>;

/// What an endpoint found or did, or why it refuses the request.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// A request that an endpoint refuses.
#[derive(Debug, Clone)]
pub struct Failure {
    status: StatusCode,
    body: Box<ProblemBody>,
    /// The endpoint's shape, where the path alone does not say it.
    shape: Option<Shape>,
    /// Where to look, or what is allowed instead.
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// What the client reads of it. A code of the engine is only a name here: code that tells codes
/// apart matches on the `Refusal` before.
#[derive(Debug, Clone, Default)]
struct ProblemBody {
    /// A stable word for programs.
    code: &'static str,
    /// Who failed and why.
    message: String,
    hint: Option<String>,
    /// The faulty values, if it is about values.
    errors: Vec<Misfit>,
    /// More for programs.
    detail: Option<Value>,
    /// When to try again, where that is known.
    retry_ms: Option<u64>,
    /// What the client has used up, where it is known how much it may use.
    quota: Option<Quota>,
}

/// How an endpoint tells its errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// RFC 9457.
    Problem,
    /// `{error, code, hint}`.
    Plain,
    /// `{error, message, hint}`, where `error` is the stable word.
    Named,
    /// `{status: error, message, code, hint}`.
    Thread,
    /// A JSON-RPC response without an id: no request was read yet.
    JsonRpc,
    /// The same with the errors of A2A.
    A2aRpc,
    /// The errors of A2A over plain HTTP.
    A2aHttp,
    /// The status of a call of gRPC.
    Grpc,
}

impl Failure {
    /// A failure that an endpoint finds by itself, under a stable word of its own.
    pub fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        let body = ProblemBody { code, message: message.into(), ..ProblemBody::default() };
        Self { status, body: Box::new(body), shape: None, headers: Vec::new() }
    }

    /// A refusal whose status is not that of its kind.
    pub fn with_status(status: StatusCode, refusal: Refusal) -> Self {
        let Refusal { code, message, hint, errors, fault } = refusal;
        let detail = code.detail();
        let retry_ms = code.retry_ms();
        let quota = code.quota();
        let body =
            ProblemBody { code: code.name(), message, hint, errors, detail, retry_ms, quota };
        let failure = Self { status, body: Box::new(body), shape: None, headers: Vec::new() };
        failure.fault(fault.as_deref())
    }

    /// A call on records that failed: its fault has a name and a status of its own. None for any
    /// other fault.
    pub fn of_record_fault(fault: &Fault) -> Option<Self> {
        let (code, status) = faults::known(&fault.name)?;
        let status = StatusCode::from_u16(status).ok()?;
        let failure =
            Self::new(status, code, fault.message.as_str()).maybe_hint(fault.hint.clone());
        let Some(detail) = fault.detail.as_deref() else { return Some(failure) };
        let failure = failure.errors(field_errors(detail));
        Some(failure.detail(Value::Object(detail.clone())))
    }

    /// The same with another status.
    #[must_use]
    pub fn status_code(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// The same in this shape, whatever its path is.
    #[must_use]
    pub fn shaped(self, shape: Shape) -> Self {
        Self { shape: Some(shape), ..self }
    }

    /// The same with a header.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// The shape that it has of its own.
    pub fn shape(&self) -> Option<Shape> {
        self.shape
    }

    /// It cannot be parsed or contradicts itself.
    pub fn bad_request(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }

    /// It parses, but one value of it is not right.
    pub fn wrong_value(pointer: &str, message: impl Into<String>) -> Self {
        Self::wrong_shape(message).at(pointer)
    }

    /// It parses, but has the wrong shape.
    pub fn wrong_shape(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "wrong_shape", message)
    }

    /// A refusal of the engine, which speaks of a value; the endpoint knows where in the body it
    /// stood: `pointer_of` gives the pointer for a code.
    pub fn in_body(mut refusal: Refusal, pointer_of: BodyPointer) -> Self {
        if let Some(pointer) = pointer_of(&refusal.code) {
            if refusal.errors.is_empty() {
                let message = refusal.message.clone();
                refusal.errors.push(Misfit { pointer: String::new(), message });
            }
            for error in &mut refusal.errors {
                error.pointer.insert_str(0, pointer);
            }
        }
        refusal.into()
    }

    /// The same with a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.body.hint = Some(hint.into());
        self
    }

    /// The same with a hint, if there is one.
    #[must_use]
    pub fn maybe_hint(mut self, hint: Option<String>) -> Self {
        self.body.hint = hint;
        self
    }

    /// The same with the faulty values.
    #[must_use]
    pub fn errors(mut self, errors: Vec<Misfit>) -> Self {
        self.body.errors = errors;
        self
    }

    /// The same about the one value at this place of the body.
    #[must_use]
    pub fn at(self, pointer: impl Into<String>) -> Self {
        let message = self.body.message.clone();
        self.errors(vec![Misfit { pointer: pointer.into(), message }])
    }

    /// The same with more for programs.
    #[must_use]
    pub fn detail(mut self, detail: Value) -> Self {
        self.body.detail = Some(detail);
        self
    }

    /// The same with what this fault has for programs, beside what is there already.
    #[must_use]
    pub fn fault(mut self, fault: Option<&Fault>) -> Self {
        if let Some(detail) = fault.and_then(|fault| fault.detail.as_ref()) {
            let more = self.body.detail.get_or_insert_with(|| json!({}));
            if let Some(more) = more.as_object_mut() {
                more.insert("faultDetail".to_owned(), json!(detail));
            }
        }
        self
    }

    /// The same with the time after which the client may try again.
    #[must_use]
    pub fn retry_ms(mut self, retry_ms: u64) -> Self {
        self.body.retry_ms = Some(retry_ms);
        self.detail(json!({"retryAfterMs": retry_ms}))
    }

    /// The same with what the client has used up.
    #[must_use]
    pub fn quota(mut self, quota: Quota) -> Self {
        self.body.quota = Some(quota);
        self
    }

    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Its stable word.
    pub fn code(&self) -> &'static str {
        self.body.code
    }

    /// Its words.
    pub fn message(&self) -> &str {
        &self.body.message
    }

    /// The whole answer in an endpoint's shape.
    pub fn render(mut self, shape: Shape, trace_id: String) -> Response {
        let status = self.status;
        let extra = self.extra_header();
        let used_up = self.body.quota.and_then(|quota| rate_limit(quota, self.body.retry_ms));
        let mut own = std::mem::take(&mut self.headers);
        // What an endpoint says itself takes precedence over what its status says.
        let extra = extra.filter(|(name, _)| own.iter().all(|(given, _)| given != name));
        let (kind, body) = match shape {
            Shape::Problem => (PROBLEM_TYPE, bytes(&self.problem(trace_id))),
            Shape::Plain => ("application/json", bytes(&self.plain(trace_id))),
            Shape::Named => ("application/json", bytes(&self.named(trace_id))),
            Shape::Thread => ("application/json", bytes(&self.thread(trace_id))),
            Shape::JsonRpc => {
                let mut error = self.rpc_error();
                if let Some(data) = &mut error.data {
                    data["traceId"] = Value::String(trace_id);
                }
                ("application/json", jsonrpc::error(None, &error).into_bytes())
            }
            Shape::A2aRpc => {
                ("application/json", jsonrpc::error(None, &self.a2a().to_rpc()).into_bytes())
            }
            Shape::A2aHttp => ("application/json", bytes(&self.a2a().to_rest())),
            Shape::Grpc => {
                own.extend(grpc_headers(&self.a2a()));
                ("application/grpc", Vec::new())
            }
        };
        // Over gRPC every call succeeds for HTTP.
        let status = if shape == Shape::Grpc { StatusCode::OK } else { status };
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        headers.extend(extra.into_iter().chain(own).chain(used_up.into_iter().flatten()));
        response
    }

    fn extra_header(&self) -> Option<(HeaderName, HeaderValue)> {
        match self.status {
            StatusCode::UNAUTHORIZED => {
                Some((WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")))
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                Some((RETRY_AFTER, HeaderValue::from(self.retry_after_s())))
            }
            _ => None,
        }
    }

    /// In how many seconds to come back; a second where no one knows.
    fn retry_after_s(&self) -> u64 {
        self.body.retry_ms.map_or(1, |ms| ms.div_ceil(1_000).max(1))
    }

    /// The same as a JSON-RPC error: `data` has the stable word and the hint.
    pub fn rpc_error(&self) -> RpcError {
        let number = match self.code() {
            "malformed_json" | "no_body" | "body_broken" => PARSE_ERROR,
            _ if self.status.is_server_error() => INTERNAL_ERROR,
            _ => INVALID_REQUEST,
        };
        let mut data = json!({"code": self.code()});
        if let Some(hint) = &self.body.hint {
            data["hint"] = Value::String(hint.clone());
        }
        RpcError::new(number, self.message()).data(data)
    }

    /// The same as an error of A2A, which has kinds of its own.
    pub fn a2a(&self) -> A2aError {
        let kind = match (self.status.as_u16(), self.code()) {
            (401, _) => ErrorKind::Unauthenticated,
            (403, _) => ErrorKind::PermissionDenied,
            (429, _) => ErrorKind::ResourceExhausted,
            (400, "malformed_json" | "no_body" | "body_broken") => ErrorKind::Parse,
            (500..=599, _) => ErrorKind::Internal,
            _ => ErrorKind::InvalidParams,
        };
        let hint = self.body.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
        let error = A2aError::new(kind, format!("{}{hint}", self.body.message));
        let error = A2aError { headers: used_up(self.body.quota, self.body.retry_ms), ..error };
        self.body
            .errors
            .iter()
            .fold(error, |error, misfit| error.violation(&misfit.pointer, &misfit.message))
    }

    fn problem(self, trace_id: String) -> Problem {
        let ProblemBody { code, message, hint, errors, detail, .. } = *self.body;
        Problem {
            kind: format!("urn:waypost:problem:{code}"),
            title: self.status.canonical_reason().unwrap_or("Error").to_owned(),
            status: self.status.as_u16(),
            detail: message,
            code: code.to_owned(),
            hint,
            errors: errors.into_iter().map(faulty).collect(),
            trace_id,
            more: more(
                detail,
                &["type", "title", "status", "detail", "code", "hint", "errors", "traceId"],
            ),
        }
    }

    fn plain(self, trace_id: String) -> PlainError {
        let ProblemBody { code, message, hint, errors, detail, .. } = *self.body;
        PlainError {
            error: message,
            code: code.to_owned(),
            hint,
            errors: errors.into_iter().map(faulty).collect(),
            trace_id,
            more: more(detail, &["error", "code", "hint", "errors", "trace_id"]),
        }
    }

    fn named(self, trace_id: String) -> NamedError {
        let ProblemBody { code, message, hint, errors, detail, .. } = *self.body;
        let mut more = more(detail, &["error", "message", "hint", "traceId"]);
        if !errors.is_empty() && !more.contains_key("errors") {
            more.insert("errors".to_owned(), errors.iter().map(field_error).collect());
        }
        NamedError { error: code.to_owned(), message, hint, trace_id, more }
    }

    /// The same as the object of `/run` and `/resume`.
    pub fn thread(self, trace_id: String) -> ThreadError {
        let ProblemBody { code, message, hint, errors, detail, .. } = *self.body;
        ThreadError {
            status: ThreadStatus::Error,
            response: None,
            thread_id: None,
            pending_action: None,
            url: None,
            message,
            code: code.to_owned(),
            hint,
            errors: errors.into_iter().map(faulty).collect(),
            trace_id,
            more: more(detail, &THREAD_KEYS),
        }
    }
}

/// An error of A2A as headers of gRPC.
fn grpc_headers(error: &A2aError) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
    Status::of(error).headers().into_iter().filter_map(|(name, value)| {
        Some((HeaderName::from_static(name), HeaderValue::try_from(value).ok()?))
    })
}

/// The keys that an error of `/run` and `/resume` has of its own.
const THREAD_KEYS: [&str; 10] = [
    "status", "response", "thread_id", "pending_action", "url", "message", "code", "hint",
    "errors", "trace_id",
];

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::with_status(status_of(refusal.kind()), refusal)
    }
}

impl IntoResponse for Failure {
    /// Carries itself out to the frame, which knows the endpoint's shape and makes the trace id.
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// What a client has used up, as `RateLimit-Policy` and `RateLimit` say it: its own numbers only.
pub fn rate_limit(quota: Quota, retry_ms: Option<u64>) -> Option<[(HeaderName, HeaderValue); 2]> {
    let Quota { of, max, window_s } = quota;
    let (policy, left) = match window_s {
        Some(window) => {
            let reset = retry_ms.map_or(1, |ms| ms.div_ceil(1_000).max(1));
            (format!("\"{of}\";q={max};w={window}"), format!("\"{of}\";r=0;t={reset}"))
        }
        None => {
            let bytes = [SharedLimit::StoredBytes, SharedLimit::UnsentBytes];
            let is_bytes = bytes.iter().any(|limit| limit.name() == of);
            let unit = if is_bytes { "content-bytes" } else { "concurrent-requests" };
            (format!("\"{of}\";q={max};qu=\"{unit}\""), format!("\"{of}\";r=0"))
        }
    };
    let policy = HeaderValue::try_from(policy).ok()?;
    let left = HeaderValue::try_from(left).ok()?;
    let names = ["ratelimit-policy", "ratelimit"].map(HeaderName::from_static);
    let [of_policy, of_left] = names;
    Some([(of_policy, policy), (of_left, left)])
}

/// The same as texts, with when to come back: for answers that are written elsewhere.
pub fn used_up(quota: Option<Quota>, retry_ms: Option<u64>) -> Vec<(String, String)> {
    let Some(numbers) = quota.and_then(|quota| rate_limit(quota, retry_ms)) else {
        return Vec::new();
    };
    let text = |(name, value): (HeaderName, HeaderValue)| {
        Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
    };
    let seconds = retry_ms.map_or(1, |ms| ms.div_ceil(1_000).max(1));
    let later = (RETRY_AFTER.as_str().to_owned(), seconds.to_string());
    numbers.into_iter().filter_map(text).chain([later]).collect()
}

fn status_of(kind: RefusalKind) -> StatusCode {
    match kind {
        RefusalKind::BadRequest => StatusCode::BAD_REQUEST,
        RefusalKind::WrongShape => StatusCode::UNPROCESSABLE_ENTITY,
        RefusalKind::NotFound => StatusCode::NOT_FOUND,
        RefusalKind::Conflict => StatusCode::CONFLICT,
        RefusalKind::Gone => StatusCode::GONE,
        RefusalKind::Forbidden => StatusCode::FORBIDDEN,
        RefusalKind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        RefusalKind::TooMany => StatusCode::TOO_MANY_REQUESTS,
        RefusalKind::NoRoom => StatusCode::INSUFFICIENT_STORAGE,
        RefusalKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        RefusalKind::Failed => StatusCode::INTERNAL_SERVER_ERROR,
        RefusalKind::Upstream => StatusCode::BAD_GATEWAY,
    }
}

/// The fields that a fault of records names, such as `lines[2].sku`, as places in a body.
fn field_errors(detail: &Map<String, Value>) -> Vec<Misfit> {
    let errors = detail.get("errors").and_then(Value::as_array).into_iter().flatten();
    let misfit = |error: &Value| {
        let field = error.get("field")?.as_str()?.replace(']', "");
        let message = error.get("message")?.as_str()?.to_owned();
        let pointer = match field.as_str() {
            "" => String::new(),
            field => format!("/{}", field.replace(['.', '['], "/")),
        };
        Some(Misfit { pointer, message })
    };
    errors.filter_map(misfit).collect()
}

/// The other way round: a place in a body as the name of a field.
fn field_error(misfit: &Misfit) -> Value {
    let field = misfit.pointer.trim_start_matches('/').replace('/', ".");
    json!({"field": field, "message": misfit.message})
}

fn faulty(misfit: Misfit) -> FaultyValue {
    FaultyValue { pointer: misfit.pointer, detail: misfit.message }
}

/// More for programs stands beside the other members, and never in their place: the state that a
/// conflict is about is `state` where `status` is the HTTP status.
fn more(detail: Option<Value>, taken: &[&str]) -> Map<String, Value> {
    let Some(Value::Object(given)) = detail else { return Map::new() };
    given
        .into_iter()
        .filter_map(|(key, value)| match key.as_str() {
            "status" if taken.contains(&"status") => Some(("state".to_owned(), value)),
            key if taken.contains(&key) => None,
            _ => Some((key, value)),
        })
        .collect()
}

fn bytes(body: &impl serde::Serialize) -> Vec<u8> {
    // Only maps with keys that are no text cannot be written, and there are none.
    serde_json::to_vec(body).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::refusal::TryLater;

    fn conflict() -> Failure {
        Failure::new(StatusCode::CONFLICT, "ask_decided", "ask `ask_1` is decided")
            .hint("read it")
            .errors(vec![Misfit { pointer: "/a".to_owned(), message: "is wrong".to_owned() }])
            .detail(json!({"status": "decided", "code": "x", "decision": {"by": "ann"}}))
    }

    #[test]
    fn a_fault_of_records_has_its_own_name_and_status_and_its_detail_as_members() {
        let errors = json!([{"field": "lines[2].sku", "message": "is required"}]);
        let detail = Map::from_iter([("errors".to_owned(), errors.clone())]);
        let fault = Fault::new("InvalidEntity", "it does not fit").hint("mend it").detail(detail);
        let failure = Failure::of_record_fault(&fault).unwrap();
        assert_eq!(failure.status(), StatusCode::BAD_REQUEST);
        let named = json!(failure.clone().named("0f".to_owned()));
        let expected = json!({"error": "InvalidEntity", "message": "it does not fit",
            "hint": "mend it", "errors": errors, "traceId": "0f"});
        assert_eq!(named, expected);
        let problem = failure.problem("0f".to_owned());
        assert_eq!((problem.code.as_str(), problem.status), ("InvalidEntity", 400));
        let misfit = json!([{"pointer": "/lines/2/sku", "detail": "is required"}]);
        assert_eq!(json!(problem.errors), misfit);
        assert_eq!(problem.more.get("errors"), None);
        assert!(Failure::of_record_fault(&Fault::new("HttpStatus", "500")).is_none());
    }

    #[test]
    fn arguments_that_do_not_fit_are_told_by_their_fields() {
        let failure = Failure::wrong_value("/page/limit", "is no number");
        let named = json!(failure.named("0f".to_owned()));
        let errors = json!([{"field": "page.limit", "message": "is no number"}]);
        assert_eq!(named["errors"], errors);
        assert_eq!(named["error"], "wrong_shape");
    }

    #[test]
    fn a_faults_detail_stands_beside_what_is_there_and_is_left_out_where_there_is_none() {
        let given = Map::from_iter([("version".to_owned(), json!(4))]);
        let fault = Fault::new("Conflict", "it was changed");
        let more = |failure: Failure| failure.problem("0f".to_owned()).more;
        let failed = || {
            Failure::new(StatusCode::BAD_GATEWAY, "tool_failed", "no").detail(json!({"run": "r"}))
        };
        assert_eq!(more(failed().fault(Some(&fault))), more(failed()));
        let fault = fault.detail(given);
        let expected = json!({"run": "r", "faultDetail": {"version": 4}});
        assert_eq!(json!(more(failed().fault(Some(&fault)))), expected);
        let bare = Failure::new(StatusCode::BAD_GATEWAY, "tool_failed", "no");
        assert_eq!(json!(more(bare.fault(Some(&fault)))), json!({"faultDetail": {"version": 4}}));
    }

    #[test]
    fn a_problem_has_all_members_and_keeps_its_own() {
        let problem = conflict().problem("0f".to_owned());
        let told = serde_json::to_value(problem).unwrap();
        let expected = json!({
            "type": "urn:waypost:problem:ask_decided",
            "title": "Conflict",
            "status": 409,
            "detail": "ask `ask_1` is decided",
            "code": "ask_decided",
            "hint": "read it",
            "errors": [{"pointer": "/a", "detail": "is wrong"}],
            "traceId": "0f",
            "state": "decided",
            "decision": {"by": "ann"},
        });
        assert_eq!(told, expected);
    }

    #[test]
    fn a_plain_error_is_its_own_object() {
        let told = serde_json::to_value(conflict().plain("0f".to_owned())).unwrap();
        let expected = json!({
            "error": "ask `ask_1` is decided",
            "code": "ask_decided",
            "hint": "read it",
            "errors": [{"pointer": "/a", "detail": "is wrong"}],
            "trace_id": "0f",
            "status": "decided",
            "decision": {"by": "ann"},
        });
        assert_eq!(told, expected);
    }

    #[test]
    fn a_thread_gets_all_keys_of_an_answer() {
        let told = serde_json::to_value(conflict().thread("0f".to_owned())).unwrap();
        let expected = json!({
            "status": "error",
            "response": null, "thread_id": null, "pending_action": null, "url": null,
            "message": "ask `ask_1` is decided",
            "code": "ask_decided",
            "hint": "read it",
            "errors": [{"pointer": "/a", "detail": "is wrong"}],
            "trace_id": "0f",
            "state": "decided",
            "decision": {"by": "ann"},
        });
        assert_eq!(told, expected);
    }

    #[test]
    fn pointers_lead_from_the_root_of_the_body() {
        let place: BodyPointer = |code| match code {
            RefusalCode::InvalidPlan => Some("/plan"),
            RefusalCode::BadSessionId => Some("/y"),
            _ => None,
        };
        let misfit = Misfit { pointer: "/a".to_owned(), message: "is wrong".to_owned() };
        let pointed = Refusal::new(RefusalCode::InvalidPlan, "is wrong").errors(vec![misfit]);
        assert_eq!(Failure::in_body(pointed, place).body.errors[0].pointer, "/plan/a");
        let plain = Refusal::new(RefusalCode::BadSessionId, "is wrong");
        assert_eq!(Failure::in_body(plain.clone(), place).body.errors[0].pointer, "/y");
        assert!(Failure::in_body(plain, |_| None).body.errors.is_empty());
    }

    #[test]
    fn an_answer_carries_status_and_type() {
        let response = conflict().render(Shape::Problem, String::new());
        assert_eq!(response.status(), StatusCode::CONFLICT);
        assert_eq!(response.headers()[CONTENT_TYPE], PROBLEM_TYPE);
        let refused = Failure::new(StatusCode::UNAUTHORIZED, "unauthorized", "no key");
        assert_eq!(refused.rpc_error().code, INVALID_REQUEST);
        let response = refused.render(Shape::Plain, String::new());
        assert_eq!(response.headers()[WWW_AUTHENTICATE], "Bearer");
        assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
        let response = conflict().render(Shape::JsonRpc, String::new());
        assert_eq!(response.status(), StatusCode::CONFLICT);
        assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
        let data = json!({"code": "ask_decided", "hint": "read it"});
        assert_eq!(conflict().rpc_error().data, Some(data));
    }

    #[test]
    fn a_used_up_quota_is_answered_with_the_callers_own_numbers() {
        let runs = Quota { of: "runs", max: 512, window_s: None };
        let runs = Refusal::new(RefusalCode::RunsActiveMax(Box::new(runs)), "too many");
        let bytes = Quota { of: "bytes", max: 1_024, window_s: None };
        let bytes = Refusal::new(RefusalCode::StoredBytesMax(Box::new(bytes)), "too much");
        let calls = Some(Quota { of: "calls", max: 7, window_s: Some(60) });
        let calls = Box::new(TryLater { quota: calls, ..TryLater::after(8_001) });
        let calls = Refusal::new(RefusalCode::RateLimited(calls), "too soon");
        for (refusal, policy, left) in [
            (runs, "\"runs\";q=512;qu=\"concurrent-requests\"", "\"runs\";r=0"),
            (bytes, "\"bytes\";q=1024;qu=\"content-bytes\"", "\"bytes\";r=0"),
            (calls, "\"calls\";q=7;w=60", "\"calls\";r=0;t=9"),
        ] {
            let response = Failure::from(refusal).render(Shape::Problem, String::new());
            assert_eq!(response.headers()["ratelimit-policy"], policy);
            assert_eq!(response.headers()["ratelimit"], left);
        }
        let busy = Failure::from(Refusal::new(RefusalCode::StoreBusy, "too soon"));
        let response = busy.render(Shape::Problem, String::new());
        assert!(!response.headers().contains_key("ratelimit"), "it is not the client's doing");
    }

    #[test]
    fn a_caller_that_comes_too_soon_learns_when_to_come_back() {
        let later = |retry_ms| {
            let later = Box::new(TryLater::after(retry_ms));
            Refusal::new(RefusalCode::RateLimited(later), "too soon")
        };
        for (failure, seconds) in [
            (Failure::from(later(2_001)), "3"),
            (Failure::from(later(0)), "1"),
            (Failure::from(Refusal::new(RefusalCode::StoreBusy, "too soon")), "1"),
            (Failure::new(StatusCode::TOO_MANY_REQUESTS, "x", "too soon").retry_ms(1_001), "2"),
        ] {
            let response = failure.render(Shape::Plain, String::new());
            assert_eq!(response.headers()[RETRY_AFTER], seconds);
        }
    }
}
