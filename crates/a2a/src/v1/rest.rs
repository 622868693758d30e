//! The binding of HTTP with JSON: operations by verb and path.

use crate::binding::{
    Answer, OnTask, OnWebhook, OperationError, RestRequest, body, on_task, only, query, response,
    with_headers,
};
use crate::card::extended;
use crate::error::{Result, invalid};
use crate::incoming_request::IncomingRequest;
use crate::operations::Client;
use crate::push::ConfigPage;
use crate::stream::SseWriter;
use crate::v03;
use axum::body::{Body, Bytes};
use axum::http::header::ALLOW;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::Response;
use edge::request::body::read;
use serde_json::{Value, json};
use wire::a2a::MEDIA_TYPE;
use wire::a2a::error::{A2aError, ErrorKind};
use wire::a2a::request::{
    ListPushNotificationConfigsRequest, ListTasksRequest, SendMessageRequest,
    TaskPushNotificationConfig,
};

/// `/a2a/v1/..`.
pub(crate) async fn serve(
    arrived: IncomingRequest,
    asked: RestRequest<'_>,
    body: Body,
) -> Response {
    let kind = if asked.is_old { "application/json" } else { arrived.answer_type() };
    let told: fn(&A2aError) -> Value =
        if asked.is_old { A2aError::to_old_rest } else { A2aError::to_rest };
    let answered = match read(&arrived.a2a.server, body).await {
        Ok(bytes) => done(&arrived, asked, bytes).await,
        Err(failure) => {
            let error = failure.a2a();
            return with_type(failure.status(), kind, &told(&error));
        }
    };
    match answered {
        Ok(Answer::Body(text)) => response(StatusCode::OK, kind, text),
        Ok(Answer::Stream(response)) => response,
        Err(OperationError::Verb(allowed)) => {
            let why = "the path is not asked for in this way";
            let error = A2aError::new(ErrorKind::MethodNotFound, why);
            let mut response = with_type(StatusCode::METHOD_NOT_ALLOWED, kind, &told(&error));
            response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
            response
        }
        Err(OperationError::Error(error)) => {
            let status = StatusCode::from_u16(error.kind.http());
            let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            with_headers(with_type(status, kind, &told(&error)), &error)
        }
    }
}

async fn done(
    arrived: &IncomingRequest,
    asked: RestRequest<'_>,
    bytes: Bytes,
) -> Result<Answer, OperationError> {
    if !asked.is_old {
        arrived.check_version()?;
    }
    if !bytes.trim_ascii().is_empty() {
        arrived.check_type(&[MEDIA_TYPE, "application/json"])?;
    }
    if asked.is_old {
        return v03::rest::done(arrived, asked, bytes).await;
    }
    let RestRequest { verb, realm, path, .. } = asked;
    match path {
        [operation @ ("message:send" | "message:stream")] => {
            only(&verb, "POST")?;
            let request: SendMessageRequest = body(arrived, &bytes)?;
            // A body is counted as long as it is there, and a task may take its time.
            drop(bytes);
            let realm = arrived.realm(realm, &request.tenant)?;
            let client = arrived.client(&realm)?;
            if *operation == "message:stream" {
                return Ok(Answer::Stream(client.stream(request, SseWriter::Http).await?));
            }
            Ok(Answer::of(&client.send(request).await?))
        }
        ["tasks"] => {
            only(&verb, "GET")?;
            let request: ListTasksRequest = query(arrived)?;
            let realm = arrived.realm(realm, &request.tenant)?;
            Ok(Answer::of(&arrived.client(&realm)?.list(&request).await?))
        }
        ["tasks", last] => {
            let client = arrived.client(&arrived.realm(realm, &tenant(arrived))?)?;
            on_task(arrived, &client, &verb, OnTask::of(last)).await
        }
        ["extendedAgentCard"] => {
            only(&verb, "GET")?;
            let realm = arrived.realm(realm, &tenant(arrived))?;
            let client = arrived.client(&realm)?;
            Ok(Answer::Body(extended(arrived, &realm, &client.caller)?))
        }
        ["tasks", task, "pushNotificationConfigs", rest @ ..] if rest.len() < 2 => {
            let client = arrived.client(&arrived.realm(realm, &tenant(arrived))?)?;
            let wanted = OnWebhook { task, id: rest.first().copied() };
            webhook(arrived, &client, &verb, wanted, &bytes).await
        }
        _ => {
            let why = "there is no operation of A2A at this path";
            Err(A2aError::new(ErrorKind::MethodNotFound, why).into())
        }
    }
}

/// The realm that the query names, for operations without a body that could.
fn tenant(arrived: &IncomingRequest) -> String {
    let named = arrived.query().filter(|(name, _)| name == "tenant");
    named.last().map(|(_, tenant)| tenant).unwrap_or_default()
}

async fn webhook(
    arrived: &IncomingRequest,
    client: &Client,
    verb: &Method,
    wanted: OnWebhook<'_>,
    bytes: &[u8],
) -> Result<Answer, OperationError> {
    let OnWebhook { task, id } = wanted;
    match (id, verb) {
        (None, &Method::POST) => {
            let mut config: TaskPushNotificationConfig = body(arrived, bytes)?;
            if !config.task_id.is_empty() && config.task_id != task {
                return Err(invalid("taskId", "`taskId` is not the task of the address").into());
            }
            if !config.tenant.is_empty() && config.tenant != client.caller.realm.as_str() {
                return Err(invalid("tenant", "`tenant` is not the realm of the request").into());
            }
            task.clone_into(&mut config.task_id);
            Ok(Answer::of(&client.create_webhook(&config).await?))
        }
        (None, &Method::GET) => {
            let asked: ListPushNotificationConfigsRequest = query(arrived)?;
            let page = ConfigPage { size: asked.page_size, token: &asked.page_token };
            Ok(Answer::of(&client.webhooks(task, page).await?))
        }
        (None, _) => Err(OperationError::Verb("GET, POST")),
        (Some(id), &Method::GET) => Ok(Answer::of(&client.webhook(task, id).await?)),
        (Some(id), &Method::DELETE) => {
            client.delete_webhook(task, id).await?;
            Ok(Answer::of(&json!({})))
        }
        (Some(_), _) => Err(OperationError::Verb("GET, DELETE")),
    }
}

fn with_type(status: StatusCode, kind: &'static str, body: &Value) -> Response {
    response(status, kind, body.to_string())
}
