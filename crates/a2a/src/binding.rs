//! What the bindings of all versions share: what is read from a request, and what an operation is
//! answered with.

use super::error::{Result, invalid, required};
use super::incoming_request::IncomingRequest;
use super::operations::{Client, Dialect};
use super::stream::SseWriter;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use edge::request::body::{is_deeper, parse_maybe};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use wire::a2a::error::{A2aError, ErrorKind};
use wire::a2a::request::GetTaskRequest;
use wire::a2a::task::Task;
use wire::a2a::v03::Binding;
use wire::jsonrpc::{Frame, Id};

/// Members of a query that are numbers.
const NUMBERS: [&str; 2] = ["pageSize", "historyLength"];
/// Members of a query that are true or false.
const SWITCHES: [&str; 1] = ["includeArtifacts"];

/// What an operation is answered with.
pub(super) enum Answer {
    /// JSON text.
    Body(String),
    Stream(Response),
}

impl Answer {
    /// This, as JSON.
    pub(super) fn of<T: Serialize>(result: &T) -> Self {
        Self::Body(text(result))
    }
}

/// As JSON.
pub(super) fn text<T: Serialize>(result: &T) -> String {
    // Plain data: writing it as JSON cannot fail.
    serde_json::to_string(result).unwrap_or_default()
}

/// A response with this body.
pub(super) fn response(status: StatusCode, media_type: &'static str, text: String) -> Response {
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(media_type)),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (status, headers, text).into_response()
}

/// The response with the headers that an error brings.
pub(super) fn with_headers(mut response: Response, error: &A2aError) -> Response {
    for (name, value) in &error.headers {
        let header = (HeaderName::try_from(name), HeaderValue::try_from(value));
        if let (Ok(name), Ok(value)) = header {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// One request over HTTP: the path is that below the address and the realm.
pub(super) struct RestRequest<'a> {
    pub(super) verb: Method,
    pub(super) realm: Option<&'a str>,
    pub(super) path: &'a [&'a str],
    /// Whether it is a path of 0.3.
    pub(super) is_old: bool,
}

/// Why an operation is refused.
pub(super) enum OperationError {
    /// The path is there; these verbs are understood.
    Verb(&'static str),
    Error(A2aError),
}

impl From<A2aError> for OperationError {
    fn from(error: A2aError) -> Self {
        Self::Error(error)
    }
}

/// Refuses every other verb.
pub(super) fn only(verb: &Method, allowed: &'static str) -> Result<(), OperationError> {
    if verb.as_str() == allowed { Ok(()) } else { Err(OperationError::Verb(allowed)) }
}

/// An operation on one task, by the end of its path.
pub(super) enum OnTask<'a> {
    Get(&'a str),
    Cancel(&'a str),
    Subscribe(&'a str),
}

impl<'a> OnTask<'a> {
    pub(super) fn of(last: &'a str) -> Self {
        match last.rsplit_once(':') {
            Some((id, "cancel")) => Self::Cancel(id),
            Some((id, "subscribe")) => Self::Subscribe(id),
            Some(_) | None => Self::Get(last),
        }
    }
}

/// An operation on one task over HTTP, in the version that the client speaks.
pub(super) async fn on_task(
    arrived: &IncomingRequest,
    client: &Client,
    verb: &Method,
    wanted: OnTask<'_>,
) -> Result<Answer, OperationError> {
    let told = |task: &Task| match client.dialect {
        Dialect::V1 => Answer::of(task),
        Dialect::V03 => Answer::of(&Binding::Rest.task(task)),
    };
    match (wanted, verb) {
        (OnTask::Get(id), &Method::GET) => {
            let asked: GetTaskRequest = query(arrived)?;
            Ok(told(&client.get(required("id", id)?, asked.history_length).await?))
        }
        (OnTask::Get(_), _) => Err(OperationError::Verb("GET")),
        (OnTask::Cancel(id), &Method::POST) => Ok(told(&client.cancel(required("id", id)?).await?)),
        (OnTask::Cancel(_), _) => Err(OperationError::Verb("POST")),
        // The proto of 1.0 has one verb, the text of its specification the other.
        (OnTask::Subscribe(id), &Method::GET | &Method::POST) => {
            let written = match client.dialect {
                Dialect::V1 => SseWriter::Http,
                Dialect::V03 => SseWriter::OldHttp,
            };
            Ok(Answer::Stream(client.subscribed(required("id", id)?, written).await?))
        }
        (OnTask::Subscribe(_), _) => Err(OperationError::Verb("GET, POST")),
    }
}

/// An operation on one webhook of a task, or on all of them.
pub(super) struct OnWebhook<'a> {
    pub(super) task: &'a str,
    pub(super) id: Option<&'a str>,
}

/// The body of a request.
pub(super) fn body<T: DeserializeOwned + Default>(
    arrived: &IncomingRequest,
    bytes: &[u8],
) -> Result<T> {
    let depth_max = arrived.a2a.server.limits().body_depth_max;
    parse_maybe(bytes, depth_max).map_err(|failure| failure.a2a())
}

/// The members of a request that stand in the query.
pub(super) fn query<T: DeserializeOwned>(arrived: &IncomingRequest) -> Result<T> {
    let mut members = Map::new();
    for (name, value) in arrived.query() {
        let value = if NUMBERS.contains(&name.as_str()) {
            let number: Result<i32, _> = value.parse();
            json!(number.map_err(|_| invalid(&name, format!("`{name}` is a whole number")))?)
        } else if SWITCHES.contains(&name.as_str()) {
            let switch: Result<bool, _> = value.parse();
            json!(switch.map_err(|_| invalid(&name, format!("`{name}` is true or false")))?)
        } else {
            Value::String(value)
        };
        members.insert(name, value);
    }
    serde_json::from_value(Value::Object(members)).map_err(|why| invalid("query", why.to_string()))
}

/// A request of JSON-RPC as it came.
pub(super) fn frame<'b>(arrived: &IncomingRequest, bytes: &'b [u8]) -> Result<Frame<'b>> {
    let depth_max = arrived.a2a.server.limits().body_depth_max;
    if is_deeper(bytes, depth_max) {
        let why = format!("the request nests deeper than {depth_max} levels");
        return Err(A2aError::new(ErrorKind::InvalidRequest, why));
    }
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        let is_json = serde_json::from_slice::<IgnoredAny>(bytes).is_ok();
        let kind = if is_json { ErrorKind::InvalidRequest } else { ErrorKind::Parse };
        return Err(A2aError::new(kind, "a request is one JSON object"));
    }
    serde_json::from_slice(bytes).map_err(|why| {
        let kind = if why.is_data() { ErrorKind::InvalidRequest } else { ErrorKind::Parse };
        A2aError::new(kind, format!("the request cannot be read: {why}"))
    })
}

/// The method that it names.
pub(super) fn method(frame: &Frame<'_>) -> Result<String> {
    let method = frame.method.as_deref().unwrap_or_default();
    if frame.jsonrpc.as_deref() != Some("2.0") || method.is_empty() {
        let why = "`jsonrpc` is \"2.0\", and `method` is required";
        return Err(A2aError::new(ErrorKind::InvalidRequest, why));
    }
    Ok(method.to_owned())
}

/// Parameters by name.
pub(super) fn read_params<T: DeserializeOwned>(params: &str) -> Result<T> {
    if !params.starts_with('{') {
        return Err(invalid("params", "`params` is an object"));
    }
    serde_json::from_str(params).map_err(|why| invalid("params", why.to_string()))
}

/// One request of JSON-RPC, once it is known to be one.
pub(super) struct Call<'c> {
    pub(super) id: &'c Id,
    pub(super) method: &'c str,
    pub(super) params: &'c str,
}

impl Call<'_> {
    /// Its parameters.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T> {
        read_params(self.params)
    }

    /// The realm that the parameters name.
    pub(super) fn tenant(&self) -> Result<String> {
        /// Nothing else is read yet: the rest may be large.
        #[derive(Deserialize)]
        struct Params {
            tenant: Option<Value>,
        }
        match self.read::<Params>()?.tenant {
            None | Some(Value::Null) => Ok(String::new()),
            Some(Value::String(tenant)) => Ok(tenant),
            Some(_) => Err(invalid("tenant", "`tenant` is a text")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_path_says_what_is_done_to_a_task() {
        assert!(matches!(OnTask::of("run_1"), OnTask::Get("run_1")));
        assert!(matches!(OnTask::of("run_1:cancel"), OnTask::Cancel("run_1")));
        assert!(matches!(OnTask::of("run_1:subscribe"), OnTask::Subscribe("run_1")));
        assert!(matches!(OnTask::of("run_1:other"), OnTask::Get("run_1:other")));
    }
}
