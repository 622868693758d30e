//! 0.3 over JSON-RPC: results are bare objects, each with its `kind`.

use crate::OPERATIONS;
use crate::binding::{Answer, Call, text};
use crate::card::extended_for_both;
use crate::error::{Result, no_task, required};
use crate::incoming_request::IncomingRequest;
use crate::operations::{Client, Dialect};
use crate::push::ConfigPage;
use crate::stream::SseWriter;
use serde::Deserialize;
use serde_json::Value;
use wire::a2a::error::{A2aError, ErrorKind};
use wire::a2a::request::{GetTaskRequest, SendMessageRequest};
use wire::a2a::v03::Binding::Rpc;
use wire::a2a::v03::rpc::{SendParams, TaskPushNotificationConfig};

/// A webhook of a task.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct OnConfig {
    /// The task.
    id: String,
    /// The webhook; the first one where it is left out.
    push_notification_config_id: Option<String>,
}

/// One request to the realm of the address.
pub(crate) async fn done(
    arrived: &IncomingRequest,
    path: Option<&str>,
    call: Call<'_>,
) -> Result<Answer> {
    let realm = arrived.realm(path, "")?;
    let client = Client { dialect: Dialect::V03, ..arrived.client(&realm)? };
    let of_task = || -> Result<GetTaskRequest> { call.read() };
    let result = match call.method {
        "message/send" => {
            let answer = client.send(sent(&call)?).await?;
            text(&Rpc.event(&answer, false))
        }
        "message/stream" => {
            let written = SseWriter::OldRpc(call.id.clone());
            return Ok(Answer::Stream(client.stream(sent(&call)?, written).await?));
        }
        "tasks/get" => {
            let asked = of_task()?;
            let task = client.get(required("id", &asked.id)?, asked.history_length).await?;
            text(&Rpc.task(&task))
        }
        "tasks/cancel" => {
            let asked = of_task()?;
            text(&Rpc.task(&client.cancel(required("id", &asked.id)?).await?))
        }
        "tasks/resubscribe" => {
            let asked = of_task()?;
            let written = SseWriter::OldRpc(call.id.clone());
            let stream = client.subscribed(required("id", &asked.id)?, written).await?;
            return Ok(Answer::Stream(stream));
        }
        "agent/getAuthenticatedExtendedCard" => extended_for_both(arrived, &realm, &client.caller)?,
        method => match method.strip_prefix("tasks/pushNotificationConfig/") {
            Some(operation) => text(&webhooks(&client, &call, operation).await?),
            None => return Err(unknown(method)),
        },
    };
    Ok(Answer::Body(result))
}

fn sent(call: &Call<'_>) -> Result<SendMessageRequest> {
    Ok(call.read::<SendParams>()?.into())
}

async fn webhooks(client: &Client, call: &Call<'_>, operation: &str) -> Result<Value> {
    if operation == "set" {
        let asked: TaskPushNotificationConfig = call.read()?;
        return Ok(Rpc.webhook(&client.create_webhook(&asked.into()).await?));
    }
    let OnConfig { id: task, push_notification_config_id: id } = call.read()?;
    match (operation, id) {
        ("get", Some(id)) => Ok(Rpc.webhook(&client.webhook(&task, &id).await?)),
        ("get", None) => {
            let all = client.webhooks(&task, ConfigPage::default()).await?.configs;
            let first = all.first().ok_or_else(|| no_task(&task))?;
            Ok(Rpc.webhook(first))
        }
        ("list", _) => {
            let all = client.webhooks(&task, ConfigPage::default()).await?.configs;
            Ok(all.iter().map(|config| Rpc.webhook(config)).collect())
        }
        ("delete", id) => {
            client.delete_webhook(&task, &id.unwrap_or_default()).await?;
            Ok(Value::Null)
        }
        _ => Err(unknown(call.method)),
    }
}

fn unknown(method: &str) -> A2aError {
    let shown: String = method.chars().take(100).collect();
    if OPERATIONS.iter().any(|operation| operation.method == method) {
        let why = format!("`{shown}` is of A2A 1.0; send it with `A2A-Version: 1.0`");
        return A2aError::new(ErrorKind::VersionNotSupported, why);
    }
    A2aError::new(ErrorKind::MethodNotFound, format!("there is no method `{shown}`"))
}
