//! The binding of JSON-RPC: one request in, one answer or one stream out.

use super::arrival::Arrived;
use super::card::card;
use super::error::{Result, failed, invalid};
use super::stream::Written;
use crate::request::body::{is_deeper, read};
use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use wire::a2a::error::{A2aError, ErrorKind};
use wire::a2a::request::{
    CancelTaskRequest, GetTaskRequest, ListTasksRequest, SendMessageRequest, SubscribeToTaskRequest,
};
use wire::jsonrpc::{self, Frame, Id};

/// Methods of 1.0 that this server does not offer.
const PUSH: &str = "PushNotificationConfig";

/// `POST /a2a/v1`, and below the name of a realm.
pub(super) async fn serve(arrived: Arrived, realm: Option<&str>, body: Body) -> Response {
    let bytes = match read(&arrived.doors, body).await {
        Ok(bytes) => bytes,
        Err(failure) => return refused(None, &failed(&failure), Some(failure.status())),
    };
    let Read { id, method, params } = match request(&arrived, &bytes) {
        Ok(request) => request,
        Err((id, error)) => return refused(id.as_ref(), &error, None),
    };
    drop(bytes);
    match done(&arrived, realm, Call { id: &id, method: &method, params: &params }).await {
        Ok(response) => response,
        Err(error) => refused(Some(&id), &error, None),
    }
}

/// What is kept of a request while it is done: its body is counted as long as it is there.
struct Read {
    id: Id,
    method: String,
    params: String,
}

/// The version is judged before the parameters are read.
fn request(arrived: &Arrived, bytes: &[u8]) -> Result<Read, (Option<Id>, A2aError)> {
    let wrong = |kind: ErrorKind, why: &str| (None::<Id>, A2aError::new(kind, why));
    let types = ["application/json", "application/a2a+json"];
    arrived.check_type(&types).map_err(|why| (None::<Id>, why))?;
    let depth_max = arrived.doors.limits().body_depth_max;
    if is_deeper(bytes, depth_max) {
        let why = format!("the request nests deeper than {depth_max} levels");
        return Err((None, A2aError::new(ErrorKind::InvalidRequest, why)));
    }
    let frame: Frame<'_> = match bytes.trim_ascii_start().first() {
        Some(b'{') => serde_json::from_slice(bytes).map_err(|why| {
            let kind = if why.is_data() { ErrorKind::InvalidRequest } else { ErrorKind::Parse };
            (None::<Id>, A2aError::new(kind, format!("the request cannot be read: {why}")))
        })?,
        _ => {
            let is_json = serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok();
            let kind = if is_json { ErrorKind::InvalidRequest } else { ErrorKind::Parse };
            return Err(wrong(kind, "a request is one JSON object"));
        }
    };
    let id = frame.id.and_then(Id::read);
    let id = id.ok_or_else(|| {
        wrong(ErrorKind::InvalidRequest, "`id` is required, and is a text or a whole number")
    })?;
    let method = frame.method.as_deref().unwrap_or_default().to_owned();
    if frame.jsonrpc.as_deref() != Some("2.0") || method.is_empty() {
        let why = "`jsonrpc` is \"2.0\", and `method` is required";
        return Err((Some(id), A2aError::new(ErrorKind::InvalidRequest, why)));
    }
    if let Err(error) = arrived.check_version() {
        return Err((Some(id), error));
    }
    let params = frame.params.map_or("{}", RawValue::get).to_owned();
    Ok(Read { id, method, params })
}

/// One request.
struct Call<'c> {
    id: &'c Id,
    method: &'c str,
    params: &'c str,
}

impl Call<'_> {
    fn read<T: DeserializeOwned>(&self) -> Result<T> {
        let text = self.params;
        if !text.starts_with('{') {
            return Err(invalid("params", "`params` is an object"));
        }
        serde_json::from_str(text).map_err(|why| invalid("params", why.to_string()))
    }

    /// The realm that the parameters name.
    fn tenant(&self) -> Result<String> {
        let params: Value = self.read()?;
        match params.get("tenant") {
            None | Some(Value::Null) => Ok(String::new()),
            Some(Value::String(tenant)) => Ok(tenant.clone()),
            Some(_) => Err(invalid("tenant", "`tenant` is a text")),
        }
    }
}

async fn done(arrived: &Arrived, path: Option<&str>, call: Call<'_>) -> Result<Response> {
    let realm = arrived.realm(path, &call.tenant()?)?;
    let client = arrived.client(&realm)?;
    let result = match call.method {
        "SendMessage" => json!(client.send(call.read::<SendMessageRequest>()?).await?),
        "SendStreamingMessage" => {
            return client.stream(call.read()?, Written::Rpc(call.id.clone())).await;
        }
        "GetTask" => {
            let asked: GetTaskRequest = call.read()?;
            json!(client.get(named(&asked.id)?, asked.history_length).await?)
        }
        "ListTasks" => client.list(&call.read::<ListTasksRequest>()?).await?,
        "CancelTask" => {
            let asked: CancelTaskRequest = call.read()?;
            json!(client.cancel(named(&asked.id)?).await?)
        }
        "SubscribeToTask" => {
            let asked: SubscribeToTaskRequest = call.read()?;
            let written = Written::Rpc(call.id.clone());
            return client.subscribed(named(&asked.id)?, written).await;
        }
        "GetExtendedAgentCard" => {
            json!(card(&arrived.doors, &arrived.base, &realm, Some(client.caller.as_ref())))
        }
        method if method.contains(PUSH) => {
            let why = "this server does not call webhooks";
            return Err(A2aError::new(ErrorKind::PushNotificationNotSupported, why));
        }
        method => return Err(unknown(method)),
    };
    Ok(answer(StatusCode::OK, jsonrpc::result(call.id, &result.to_string())))
}

/// The id of a task, which is required.
pub(super) fn named(id: &str) -> Result<&str> {
    if id.is_empty() { Err(invalid("id", "`id` is required")) } else { Ok(id) }
}

fn unknown(method: &str) -> A2aError {
    let shown: String = method.chars().take(100).collect();
    if shown.contains('/') {
        let why = format!("`{shown}` is a method of A2A 0.3, which is not spoken here");
        return A2aError::new(ErrorKind::VersionNotSupported, why);
    }
    A2aError::new(ErrorKind::MethodNotFound, format!("there is no method `{shown}`"))
}

/// An error has the status 200, unless the frame of the server tells it by one of its own.
fn refused(id: Option<&Id>, error: &A2aError, status: Option<StatusCode>) -> Response {
    let status = match error.kind {
        ErrorKind::Unauthenticated => StatusCode::UNAUTHORIZED,
        ErrorKind::PermissionDenied => StatusCode::FORBIDDEN,
        _ => status
            .filter(|status| *status == StatusCode::PAYLOAD_TOO_LARGE)
            .unwrap_or(StatusCode::OK),
    };
    answer(status, jsonrpc::error(id, &error.to_rpc()))
}

fn answer(status: StatusCode, text: String) -> Response {
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (status, headers, text).into_response()
}
