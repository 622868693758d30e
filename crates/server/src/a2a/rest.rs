//! The binding of HTTP with JSON: operations by verb and path.

use super::arrival::Arrived;
use super::card::card;
use super::error::{Result, failed, invalid};
use super::rpc::named;
use super::stream::Written;
use crate::request::body::{parse_maybe, read};
use axum::body::{Body, Bytes};
use axum::http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use wire::a2a::MEDIA_TYPE;
use wire::a2a::error::{A2aError, ErrorKind};
use wire::a2a::request::{GetTaskRequest, ListTasksRequest, SendMessageRequest};

/// Members of a query that are numbers.
const NUMBERS: [&str; 2] = ["pageSize", "historyLength"];
/// Members of a query that are true or false.
const SWITCHES: [&str; 1] = ["includeArtifacts"];

/// One request: the path is that below the address and the realm.
pub(super) struct Asked<'a> {
    pub(super) verb: Method,
    pub(super) realm: Option<&'a str>,
    pub(super) path: &'a [&'a str],
}

/// `/a2a/v1/..`.
pub(super) async fn serve(arrived: Arrived, asked: Asked<'_>, body: Body) -> Response {
    let kind = arrived.answer_type();
    let answered = match read(&arrived.doors, body).await {
        Ok(bytes) => done(&arrived, asked, bytes).await,
        Err(failure) => {
            let error = failed(&failure);
            return with_type(failure.status(), kind, &error.to_rest());
        }
    };
    match answered {
        Ok(Answer::Value(value)) => with_type(StatusCode::OK, kind, &value),
        Ok(Answer::Stream(response)) => response,
        Err(Wrong::Verb(allowed)) => {
            let why = "the path is not asked for in this way";
            let error = A2aError::new(ErrorKind::MethodNotFound, why);
            let mut response = with_type(StatusCode::METHOD_NOT_ALLOWED, kind, &error.to_rest());
            response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
            response
        }
        Err(Wrong::Error(error)) => {
            let status = StatusCode::from_u16(error.kind.http());
            let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            with_type(status, kind, &error.to_rest())
        }
    }
}

enum Answer {
    Value(Value),
    Stream(Response),
}

enum Wrong {
    /// The path is there; these verbs are understood.
    Verb(&'static str),
    Error(A2aError),
}

impl From<A2aError> for Wrong {
    fn from(error: A2aError) -> Self {
        Self::Error(error)
    }
}

/// An operation on one task, by the end of its path.
enum OnTask<'a> {
    Get(&'a str),
    Cancel(&'a str),
    Subscribe(&'a str),
}

impl<'a> OnTask<'a> {
    fn of(last: &'a str) -> Self {
        match last.rsplit_once(':') {
            Some((id, "cancel")) => Self::Cancel(id),
            Some((id, "subscribe")) => Self::Subscribe(id),
            Some(_) | None => Self::Get(last),
        }
    }
}

async fn done(arrived: &Arrived, asked: Asked<'_>, bytes: Bytes) -> Result<Answer, Wrong> {
    let Asked { verb, realm, path } = asked;
    arrived.check_version()?;
    if !bytes.trim_ascii().is_empty() {
        arrived.check_type(&[MEDIA_TYPE, "application/json"])?;
    }
    let is = |wanted: &Method, allowed: &'static str| match verb == *wanted {
        true => Ok(()),
        false => Err(Wrong::Verb(allowed)),
    };
    match path {
        [operation @ ("message:send" | "message:stream")] => {
            is(&Method::POST, "POST")?;
            let request: SendMessageRequest = body(arrived, &bytes)?;
            // A body is counted as long as it is there, and a task may take its time.
            drop(bytes);
            let realm = arrived.realm(realm, &request.tenant)?;
            let client = arrived.client(&realm)?;
            if *operation == "message:stream" {
                return Ok(Answer::Stream(client.stream(request, Written::Http).await?));
            }
            Ok(Answer::Value(json!(client.send(request).await?)))
        }
        ["tasks"] => {
            is(&Method::GET, "GET")?;
            let request: ListTasksRequest = query(arrived)?;
            let realm = arrived.realm(realm, &request.tenant)?;
            Ok(Answer::Value(arrived.client(&realm)?.list(&request).await?))
        }
        ["tasks", last] => task(arrived, &verb, realm, OnTask::of(last)).await,
        ["extendedAgentCard"] => {
            is(&Method::GET, "GET")?;
            let realm = arrived.realm(realm, "")?;
            let client = arrived.client(&realm)?;
            let card = card(&arrived.doors, &arrived.base, &realm, Some(client.caller.as_ref()));
            Ok(Answer::Value(json!(card)))
        }
        ["tasks", _, "pushNotificationConfigs", ..] => {
            let why = "this server does not call webhooks";
            Err(A2aError::new(ErrorKind::PushNotificationNotSupported, why).into())
        }
        _ => {
            let why = "there is no operation of A2A at this path";
            Err(A2aError::new(ErrorKind::MethodNotFound, why).into())
        }
    }
}

async fn task(
    arrived: &Arrived,
    verb: &Method,
    realm: Option<&str>,
    wanted: OnTask<'_>,
) -> Result<Answer, Wrong> {
    let client = arrived.client(&arrived.realm(realm, "")?)?;
    match (wanted, verb) {
        (OnTask::Get(id), &Method::GET) => {
            let request: GetTaskRequest = query(arrived)?;
            Ok(Answer::Value(json!(client.get(named(id)?, request.history_length).await?)))
        }
        (OnTask::Get(_), _) => Err(Wrong::Verb("GET")),
        (OnTask::Cancel(id), &Method::POST) => {
            Ok(Answer::Value(json!(client.cancel(named(id)?).await?)))
        }
        (OnTask::Cancel(_), _) => Err(Wrong::Verb("POST")),
        // The proto has one verb, the text of the specification the other.
        (OnTask::Subscribe(id), &Method::GET | &Method::POST) => {
            Ok(Answer::Stream(client.subscribed(named(id)?, Written::Http).await?))
        }
        (OnTask::Subscribe(_), _) => Err(Wrong::Verb("GET, POST")),
    }
}

fn body<T: DeserializeOwned + Default>(arrived: &Arrived, bytes: &[u8]) -> Result<T> {
    let depth_max = arrived.doors.limits().body_depth_max;
    parse_maybe(bytes, depth_max).map_err(|failure| failed(&failure))
}

/// The members of a request that stand in the query.
fn query<T: DeserializeOwned>(arrived: &Arrived) -> Result<T> {
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

fn with_type(status: StatusCode, kind: &'static str, body: &Value) -> Response {
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(kind)),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (status, headers, body.to_string()).into_response()
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
