//! The binding of gRPC: the operations by their names in the service, over HTTP/2. A request and
//! each answer is one message in its frame; how a call ended is in the trailers.

mod frame;
mod answer;

use crate::card::extended;
use crate::error::{Result, invalid, required};
use crate::incoming_request::IncomingRequest;
use crate::operations::Client;
use crate::push::ConfigPage;
use crate::state::Shared;
use crate::stream::{EventWriter, FollowedTask};
use answer::{StreamDeadline, many, one, refused};
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, Method, StatusCode, Version};
use axum::response::{IntoResponse, Response};
use edge::problem::{Failure, Shape};
use edge::request::body::read;
use frame::{Deadline, framed, unframed};
use kernel::contracts::Clock;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use wire::a2a::error::{A2aError, ErrorKind};
use wire::a2a::proto::schema::Shape as Message;
use wire::a2a::proto::status::Status;
use wire::a2a::proto::{self, Operation, write};
use wire::a2a::request::{
    CancelTaskRequest, GetTaskRequest, ListPushNotificationConfigsRequest, ListTasksRequest,
    PushNotificationConfigRequest, SendMessageRequest, SubscribeToTaskRequest,
    TaskPushNotificationConfig,
};
use wire::a2a::task::StreamResponse;

/// Media types of requests: no other form of messages is spoken.
const TYPES: [&str; 2] = ["application/grpc", "application/grpc+proto"];

/// `POST /lf.a2a.v1.A2AService/{method}`.
pub(crate) async fn serve(a2a: &Shared, request: Request) -> Response {
    if let Some(failure) = other_form(&request) {
        return failure.into_response();
    }
    let method = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
    let (arrived, body) = IncomingRequest::of(a2a, request);
    let clock = a2a.server.engine.clock();
    let deadline = match Deadline::of(&arrived.headers, clock.now()) {
        Ok(deadline) => deadline,
        Err(error) => return refused(&error),
    };
    // Held by one of two: it is moved once.
    let answering = Box::pin(done(&arrived, &method, body, deadline));
    let answered = match deadline {
        None => Some(answering.await),
        Some(deadline) => {
            engine::timeout(clock.as_ref(), deadline.left_ms(clock.now()), answering).await
        }
    };
    match answered {
        Some(Ok(response)) => response,
        Some(Err(error)) => refused(&error),
        None => answer::ended(&Status::named(frame::LATE, frame::LATE_WHY)),
    }
}

/// What is no call of gRPC is answered by HTTP, as its clients expect.
fn other_form(request: &Request) -> Option<Failure> {
    let wrong = |status, code, message: &str| {
        let failure = Failure::new(status, code, message);
        failure.hint("use a client of gRPC, or `/a2a/v1`").shaped(Shape::Problem)
    };
    if request.method() != Method::POST {
        let why = "operations of gRPC are sent by POST";
        return Some(wrong(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", why));
    }
    if request.version() != Version::HTTP_2 {
        let why = "gRPC is spoken over HTTP/2";
        return Some(wrong(StatusCode::HTTP_VERSION_NOT_SUPPORTED, "http2_required", why));
    }
    if !is_grpc(request.headers()) {
        let why = "a call of gRPC has the content type `application/grpc`";
        return Some(wrong(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_grpc", why));
    }
    None
}

fn is_grpc(headers: &HeaderMap) -> bool {
    let sent = headers.get(CONTENT_TYPE).and_then(|sent| sent.to_str().ok()).unwrap_or_default();
    TYPES.contains(&sent.split(';').next().unwrap_or_default().trim())
}

/// One call.
struct Call<'a> {
    arrived: &'a IncomingRequest,
    operation: Operation,
    /// The message, until it is read: a body is counted as long as it is there, and a task may take
    /// its time.
    bytes: Bytes,
    deadline: Option<Deadline>,
}

impl Call<'_> {
    fn read<T: DeserializeOwned>(&mut self) -> Result<T> {
        let bytes = std::mem::take(&mut self.bytes);
        let depth_max = self.arrived.a2a.server.limits().body_depth_max;
        proto::read(self.operation.request(), &bytes, depth_max).map_err(|why| {
            let field = if why.place.is_empty() { "message" } else { why.place.as_str() };
            invalid(field, format!("the message cannot be read: {why}"))
        })
    }

    /// Who calls, in the realm that the message names.
    fn client(&self, tenant: &str) -> Result<Client> {
        self.arrived.client(&self.arrived.realm(None, tenant)?)
    }

    /// Its one answer.
    fn one<T: Serialize>(&self, message: &T) -> Response {
        one(self.operation.answer(), message)
    }

    /// How its answers are written, where it has several.
    fn events(&self) -> Proto {
        Proto { shape: self.operation.answer() }
    }

    fn stream(&self, client: &Client, followed: FollowedTask<Proto>) -> Result<Response> {
        let clock: Arc<dyn Clock> = client.a2a.server.engine.clock().clone();
        let permit = client.permit()?;
        let deadline = self.deadline;
        Ok(many(client.a2a.clone(), followed, permit, StreamDeadline { clock, deadline }))
    }
}

/// The version is judged before the message is read.
async fn done(
    arrived: &IncomingRequest,
    method: &str,
    body: Body,
    deadline: Option<Deadline>,
) -> Result<Response> {
    let body = read(&arrived.a2a.server, body).await.map_err(|failure| failure.a2a())?;
    arrived.check_version()?;
    let bytes = unframed(&body)?;
    drop(body);
    let operation = Operation::named(method).ok_or_else(|| unknown(method))?;
    let mut call = Call { arrived, operation, bytes, deadline };
    Ok(match operation {
        Operation::SendMessage => {
            let request: SendMessageRequest = call.read()?;
            let client = call.client(&request.tenant)?;
            call.one(&client.send(request).await?)
        }
        Operation::SendStreamingMessage => {
            let request: SendMessageRequest = call.read()?;
            let client = call.client(&request.tenant)?;
            let followed = client.follow_sent(request, call.events()).await?;
            call.stream(&client, followed)?
        }
        Operation::GetTask => {
            let request: GetTaskRequest = call.read()?;
            let client = call.client(&request.tenant)?;
            call.one(&client.get(required("id", &request.id)?, request.history_length).await?)
        }
        Operation::ListTasks => {
            let request: ListTasksRequest = call.read()?;
            let client = call.client(&request.tenant)?;
            call.one(&client.list(&request).await?)
        }
        Operation::CancelTask => {
            let request: CancelTaskRequest = call.read()?;
            let client = call.client(&request.tenant)?;
            call.one(&client.cancel(required("id", &request.id)?).await?)
        }
        Operation::SubscribeToTask => {
            let request: SubscribeToTaskRequest = call.read()?;
            let client = call.client(&request.tenant)?;
            let followed = client.follow(required("id", &request.id)?, call.events()).await?;
            call.stream(&client, followed)?
        }
        Operation::GetExtendedAgentCard => {
            // Of a task only the realm is named.
            let request: SubscribeToTaskRequest = call.read()?;
            let realm = arrived.realm(None, &request.tenant)?;
            let client = arrived.client(&realm)?;
            let card = extended(arrived, &realm, &client.caller)?;
            // We wrote it: reading it cannot fail.
            call.one(&serde_json::from_str::<serde_json::Value>(&card).unwrap_or_default())
        }
        Operation::CreateTaskPushNotificationConfig => {
            let config: TaskPushNotificationConfig = call.read()?;
            let client = call.client(&config.tenant)?;
            call.one(&client.create_webhook(&config).await?)
        }
        Operation::GetTaskPushNotificationConfig => {
            let request: PushNotificationConfigRequest = call.read()?;
            let client = call.client(&request.tenant)?;
            call.one(&client.webhook(&request.task_id, &request.id).await?)
        }
        Operation::ListTaskPushNotificationConfigs => {
            let request: ListPushNotificationConfigsRequest = call.read()?;
            let client = call.client(&request.tenant)?;
            let page = ConfigPage { size: request.page_size, token: &request.page_token };
            call.one(&client.webhooks(&request.task_id, page).await?)
        }
        Operation::DeleteTaskPushNotificationConfig => {
            let request: PushNotificationConfigRequest = call.read()?;
            let client = call.client(&request.tenant)?;
            client.delete_webhook(&request.task_id, &request.id).await?;
            call.one(&serde_json::json!({}))
        }
    })
}

fn unknown(method: &str) -> A2aError {
    let shown: String = method.chars().take(100).collect();
    A2aError::new(ErrorKind::MethodNotFound, format!("the service has no method `{shown}`"))
}

/// Events as messages in their frames; the last one may be an error instead.
struct Proto {
    shape: &'static Message,
}

impl EventWriter for Proto {
    type Event = Result<Bytes>;

    fn event(&self, response: &StreamResponse, _is_last: bool) -> Result<Bytes> {
        Ok(framed(&write(self.shape, response)))
    }

    fn error(&self, error: A2aError) -> Result<Bytes> {
        Err(error)
    }
}
