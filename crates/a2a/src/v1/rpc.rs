//! The binding of JSON-RPC: one request in, one answer or one stream out.

use crate::binding::{Answer, Call, frame, method, response, text};
use crate::card::extended;
use crate::error::{Result, required};
use crate::incoming_request::{IncomingRequest, JSON};
use crate::operations::{Client, Dialect};
use crate::push::ConfigPage;
use crate::stream::SseWriter;
use crate::v03;
use axum::body::Body;
use axum::http::StatusCode;
use axum::response::Response;
use edge::request::body::read;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use wire::a2a::error::{A2aError, ErrorKind};
use wire::a2a::request::{
    CancelTaskRequest, GetTaskRequest, ListPushNotificationConfigsRequest, ListTasksRequest,
    PushNotificationConfigRequest, SendMessageRequest, SubscribeToTaskRequest,
};
use wire::jsonrpc::{self, Id};

/// `POST /a2a/v1`, and below the name of a realm.
pub(crate) async fn serve(arrived: IncomingRequest, realm: Option<&str>, body: Body) -> Response {
    let bytes = match read(&arrived.a2a.server, body).await {
        Ok(bytes) => bytes,
        Err(failure) => return refused(None, &failure.a2a(), Some(failure.status())),
    };
    let RpcRequest { id, dialect, method, params } = match request(&arrived, &bytes) {
        Ok(request) => request,
        Err((id, error)) => return refused(id.as_ref(), &error, None),
    };
    drop(bytes);
    let call = Call { id: &id, method: &method, params: &params };
    let answered = match dialect {
        Dialect::V1 => done(&arrived, realm, call).await,
        Dialect::V03 => v03::rpc::done(&arrived, realm, call).await,
    };
    match answered {
        Ok(Answer::Body(result)) => response(StatusCode::OK, JSON, jsonrpc::result(&id, &result)),
        Ok(Answer::Stream(response)) => response,
        Err(error) => refused(Some(&id), &error, None),
    }
}

/// What is kept of a request while it is done: its body is counted as long as it is there.
struct RpcRequest {
    id: Id,
    dialect: Dialect,
    method: String,
    params: String,
}

/// The version is judged before the parameters are read.
fn request(arrived: &IncomingRequest, bytes: &[u8]) -> Result<RpcRequest, (Option<Id>, A2aError)> {
    let without_id = |error: A2aError| (None::<Id>, error);
    let types = ["application/json", "application/a2a+json"];
    arrived.check_type(&types).map_err(without_id)?;
    let frame = frame(arrived, bytes).map_err(without_id)?;
    let Some(id) = frame.id.and_then(Id::read) else {
        let why = "`id` is required, and is a text or a whole number";
        return Err(without_id(A2aError::new(ErrorKind::InvalidRequest, why)));
    };
    let with_id = |error: A2aError| (Some(id.clone()), error);
    let method = method(&frame).map_err(with_id)?;
    let dialect = arrived.version().map_err(with_id)?;
    let params = frame.params.map_or("{}", RawValue::get).to_owned();
    Ok(RpcRequest { id, dialect, method, params })
}

async fn done(arrived: &IncomingRequest, path: Option<&str>, call: Call<'_>) -> Result<Answer> {
    let realm = arrived.realm(path, &call.tenant()?)?;
    let client = arrived.client(&realm)?;
    let result = match call.method {
        "SendMessage" => text(&client.send(call.read::<SendMessageRequest>()?).await?),
        "SendStreamingMessage" => {
            let written = SseWriter::Rpc(call.id.clone());
            return Ok(Answer::Stream(client.stream(call.read()?, written).await?));
        }
        "GetTask" => {
            let asked: GetTaskRequest = call.read()?;
            text(&client.get(required("id", &asked.id)?, asked.history_length).await?)
        }
        "ListTasks" => text(&client.list(&call.read::<ListTasksRequest>()?).await?),
        "CancelTask" => {
            let asked: CancelTaskRequest = call.read()?;
            text(&client.cancel(required("id", &asked.id)?).await?)
        }
        "SubscribeToTask" => {
            let asked: SubscribeToTaskRequest = call.read()?;
            let written = SseWriter::Rpc(call.id.clone());
            return Ok(Answer::Stream(
                client.subscribed(required("id", &asked.id)?, written).await?,
            ));
        }
        "GetExtendedAgentCard" => extended(arrived, &realm, &client.caller)?,
        method => match webhooks(&client, &call).await? {
            Some(result) => text(&result),
            None => return Err(unknown(method)),
        },
    };
    Ok(Answer::Body(result))
}

/// The operations on webhooks; nothing where it is none of them.
async fn webhooks(client: &Client, call: &Call<'_>) -> Result<Option<Value>> {
    Ok(Some(match call.method {
        "CreateTaskPushNotificationConfig" => {
            json!(client.create_webhook(&call.read()?).await?)
        }
        "GetTaskPushNotificationConfig" => {
            let asked: PushNotificationConfigRequest = call.read()?;
            json!(client.webhook(&asked.task_id, &asked.id).await?)
        }
        "ListTaskPushNotificationConfigs" => {
            let asked: ListPushNotificationConfigsRequest = call.read()?;
            let page = ConfigPage { size: asked.page_size, token: &asked.page_token };
            json!(client.webhooks(&asked.task_id, page).await?)
        }
        "DeleteTaskPushNotificationConfig" => {
            let asked: PushNotificationConfigRequest = call.read()?;
            client.delete_webhook(&asked.task_id, &asked.id).await?;
            json!({})
        }
        _ => return Ok(None),
    }))
}

fn unknown(method: &str) -> A2aError {
    let shown: String = method.chars().take(100).collect();
    if shown.contains('/') {
        let why = format!("`{shown}` is of A2A 0.3; send it without `A2A-Version`");
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
    response(status, JSON, jsonrpc::error(id, &error.to_rpc()))
}
