//! 0.3 over HTTP: the paths below `/v1`, and the JSON of its proto.

use crate::binding::{
    Answer, OnTask, OnWebhook, OperationError, RestRequest, body, on_task, only, query,
};
use crate::card::extended_for_both;
use crate::error::{Result, invalid};
use crate::incoming_request::IncomingRequest;
use crate::operations::{Client, Dialect};
use crate::push::ConfigPage;
use crate::stream::SseWriter;
use axum::body::Bytes;
use axum::http::Method;
use serde_json::{Value, json};
use wire::a2a::error::{A2aError, ErrorKind};
use wire::a2a::request::{
    ListTasksRequest, ListTasksResponse, SendMessageRequest, TaskPushNotificationConfig,
};
use wire::a2a::v03::Binding::Rest;
use wire::a2a::v03::rest::{PushRequest, SendRequest};

/// `/a2a/v1/v1/..`, and below the name of a realm: the path is that below `/v1`.
pub(crate) async fn done(
    arrived: &IncomingRequest,
    asked: RestRequest<'_>,
    bytes: Bytes,
) -> Result<Answer, OperationError> {
    let RestRequest { verb, realm, path, .. } = asked;
    if arrived.version()? != Dialect::V03 {
        let why = "this path is of A2A 0.3; send it without `A2A-Version`";
        return Err(A2aError::new(ErrorKind::VersionNotSupported, why).into());
    }
    let realm = arrived.realm(realm, "")?;
    let client = Client { dialect: Dialect::V03, ..arrived.client(&realm)? };
    match path {
        [operation @ ("message:send" | "message:stream")] => {
            only(&verb, "POST")?;
            let asked: SendRequest = body(arrived, &bytes)?;
            // A body is counted as long as it is there, and a task may take its time.
            drop(bytes);
            let request = SendMessageRequest::try_from(asked);
            let request = request.map_err(|why| invalid("configuration", why.to_string()))?;
            if *operation == "message:stream" {
                return Ok(Answer::Stream(client.stream(request, SseWriter::OldHttp).await?));
            }
            Ok(Answer::of(&Rest.event(&client.send(request).await?, false)))
        }
        ["tasks"] => {
            only(&verb, "GET")?;
            list(&client, &query::<ListTasksRequest>(arrived)?).await
        }
        ["tasks", last] => on_task(arrived, &client, &verb, OnTask::of(last)).await,
        ["tasks", task, "pushNotificationConfigs", rest @ ..] if rest.len() < 2 => {
            let wanted = OnWebhook { task, id: rest.first().copied() };
            webhook(arrived, &client, &verb, wanted, &bytes).await
        }
        ["card"] => {
            only(&verb, "GET")?;
            Ok(Answer::Body(extended_for_both(arrived, &realm, &client.caller)?))
        }
        _ => {
            let why = "there is no operation of A2A 0.3 at this path";
            Err(A2aError::new(ErrorKind::MethodNotFound, why).into())
        }
    }
}

async fn list(client: &Client, asked: &ListTasksRequest) -> Result<Answer, OperationError> {
    let page: ListTasksResponse =
        serde_json::from_value(client.list(asked).await?).unwrap_or_default();
    let tasks: Vec<Value> = page.tasks.iter().map(|task| Rest.task(task)).collect();
    Ok(Answer::of(&json!({"tasks": tasks, "nextPageToken": page.next_page_token})))
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
            let asked: PushRequest = body(arrived, bytes)?;
            let config = TaskPushNotificationConfig { task_id: task.to_owned(), ..asked.into() };
            Ok(Answer::of(&Rest.webhook(&client.create_webhook(&config).await?)))
        }
        (None, &Method::GET) => {
            let all = client.webhooks(task, ConfigPage::default()).await?.configs;
            let all: Vec<Value> = all.iter().map(|config| Rest.webhook(config)).collect();
            Ok(Answer::of(&json!({"configs": all})))
        }
        (None, _) => Err(OperationError::Verb("GET, POST")),
        (Some(id), &Method::GET) => Ok(Answer::of(&Rest.webhook(&client.webhook(task, id).await?))),
        (Some(id), &Method::DELETE) => {
            client.delete_webhook(task, id).await?;
            Ok(Answer::of(&json!({})))
        }
        (Some(_), _) => Err(OperationError::Verb("GET, DELETE")),
    }
}
