//! The routes of AgentVault's profile, and its JSON-RPC: one request in, one answer or one stream
//! out.

use super::super::binding::{frame, method, read_params, response};
use super::super::error::{Result, invalid};
use super::super::incoming_request::{IncomingRequest, JSON};
use super::error::{StatusError, told};
use super::{METHODS, ROUTES, card, registry};
use crate::state::Shared;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::ALLOW;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use edge::problem::Failure;
use edge::request::body::read;
use serde::Deserialize;
use serde_json::value::RawValue;
use wire::a2a::error::{A2aError, ErrorKind};
use wire::jsonrpc::{self, Id};

/// The path of JSON-RPC, as the card names it, and with the slash that some clients add.
const BASE_PATH: &str = "/a2a";
const SLASHED: &str = "/a2a/";
/// The path of the card.
const CARD: &str = "/agent-card.json";

/// All of them, without the layers that every endpoint has.
pub(crate) fn routes() -> Router<Shared> {
    ROUTES.iter().fold(Router::new(), |router, path| match *path {
        CARD => router.route(path, get(agent_card).fallback(only_read)),
        BASE_PATH | SLASHED => router.route(path, any(serve)),
        _ => router.route(path, any(registry::serve)),
    })
}

async fn agent_card(State(a2a): State<Shared>, request: Request) -> Response {
    match card::public(&IncomingRequest::of(&a2a, request).0) {
        Ok(response) => response,
        Err(error) => (StatusCode::NOT_FOUND, axum::Json(error.to_rest())).into_response(),
    }
}

async fn only_read() -> Failure {
    let message = "an agent card can only be read";
    Failure::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message).hint("use GET")
}

async fn serve(State(a2a): State<Shared>, request: Request) -> Response {
    if request.method() != Method::POST {
        let why = "send JSON-RPC with POST";
        let error = A2aError::new(ErrorKind::InvalidRequest, why);
        let StatusError { error, .. } = told(&error);
        let text = jsonrpc::error(None, &error);
        let mut refused = response(StatusCode::METHOD_NOT_ALLOWED, JSON, text);
        refused.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
        return refused;
    }
    let (arrived, body) = IncomingRequest::of(&a2a, request);
    dispatch(arrived, body).await
}

async fn dispatch(arrived: IncomingRequest, body: Body) -> Response {
    let bytes = match read(&arrived.a2a.server, body).await {
        Ok(bytes) => bytes,
        Err(failure) => {
            let StatusError { status, error } = told(&failure.a2a());
            let is_large = failure.status() == StatusCode::PAYLOAD_TOO_LARGE;
            let status = if is_large { failure.status() } else { status };
            return response(status, JSON, jsonrpc::error(None, &error));
        }
    };
    let call = match Call::read(&arrived, &bytes) {
        Ok(call) => call,
        Err(error) => return refused(None, &error),
    };
    drop(bytes);
    match call.done(&arrived).await {
        Ok(response) => response,
        Err(error) => refused(call.id.as_ref(), &error),
    }
}

/// One request. One without an id is answered as well: clients wait for that.
struct Call {
    id: Option<Id>,
    method: String,
    params: String,
}

/// The parameters of methods that are about one task.
#[derive(Default, Deserialize)]
#[serde(default)]
struct OfTask {
    id: Option<String>,
}

impl Call {
    fn read(arrived: &IncomingRequest, bytes: &[u8]) -> Result<Self> {
        let frame = frame(arrived, bytes)?;
        let id = match frame.id.filter(|id| id.get() != "null") {
            None => None,
            Some(id) => Some(Id::read(id).ok_or_else(|| {
                let why = "`id` is a text or a whole number";
                A2aError::new(ErrorKind::InvalidRequest, why)
            })?),
        };
        let method = method(&frame)?;
        let params = frame.params.map_or("{}", RawValue::get).to_owned();
        Ok(Self { id, method, params })
    }

    /// The task that the parameters name.
    fn task(&self) -> Result<String> {
        let named: OfTask = read_params(&self.params)?;
        let id = named.id.filter(|id| !id.is_empty());
        id.ok_or_else(|| invalid("id", "`id` is required"))
    }

    async fn done(&self, arrived: &IncomingRequest) -> Result<Response> {
        let client = arrived.client(&arrived.realm(None, "")?)?;
        // What is not in the table is the name of a tool.
        let known = METHODS.iter().map(|(name, _)| *name).find(|name| *name == self.method);
        let result = match known.unwrap_or_default() {
            "tasks/send" => client.vault_send(read_params(&self.params)?).await?.to_string(),
            "tasks/get" => client.vault_get(&self.task()?).await?.to_string(),
            "tasks/cancel" => client.vault_cancel(&self.task()?).await?.to_string(),
            "tasks/sendSubscribe" => return client.vault_subscribe(&self.task()?).await,
            _ => client.vault_call(&self.method, &self.params).await?,
        };
        Ok(response(StatusCode::OK, JSON, self.result(&result)))
    }

    fn result(&self, result: &str) -> String {
        match &self.id {
            Some(id) => jsonrpc::result(id, result),
            None => format!("{{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":{result}}}"),
        }
    }
}

fn refused(id: Option<&Id>, error: &A2aError) -> Response {
    let StatusError { status, error } = told(error);
    response(status, JSON, jsonrpc::error(id, &error))
}
