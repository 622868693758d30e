//! The methods of the profile that answer at once.

use super::super::binding::read_params;
use super::super::error::{Result, refused, unsupported};
use super::super::incoming;
use super::super::operations::Client;
use super::super::task_stream::TaskReport;
use super::words;
use edge::direct_call;
use edge::request::server_state::missing_scope;
use engine::{CallRequest, UnseenCall};
use kernel::event::Occasion;
use kernel::values::caller::Act;
use kernel::values::ids::RunId;
use serde_json::{Map, Value, json};
use wire::a2a::error::{A2aError, ErrorKind};
use wire::a2a::task::TaskState;
use wire::a2a::vault::{SendParams, state_word};

/// The address, as the journal keeps it.
const ADDRESS: &str = "/a2a";

impl Client {
    /// `tasks/send`: starts a task, or answers what one asks. Its id.
    pub(super) async fn vault_send(&self, params: SendParams) -> Result<Value> {
        // Before the message does anything: nothing begins whose events would not arrive.
        let webhook = self.vault_webhook_wanted(params.webhook_url.as_deref(), "webhookUrl")?;
        let id = format!("msg_{:032x}", self.a2a.server.engine.entropy().bits());
        let mut message = words::received(params.message, id.clone())?;
        message.task_id = params.id.unwrap_or_default();
        let checked = incoming::checked(&self.a2a, Some(message))?;
        let is_new = checked.message.task_id.is_empty();
        let run = if is_new {
            self.start(checked, None, None).await?.run()
        } else {
            let run = self.check_asks(&checked.message.task_id).await?;
            if webhook.is_some() {
                // To answer needs less than to send a message.
                self.permit_webhook(run).await?;
            }
            self.reply(checked, None).await?
        };
        if let Some(webhook) = webhook {
            let stream = self.followed(run, Some(&id)).await?;
            // The webhook of a new task gets all that a stream gets.
            let place = if is_new { 0 } else { stream.place() };
            self.webhook_once(stream.run(), webhook, place).await?;
        }
        Ok(json!({"id": run}))
    }

    /// Refuses a message to a task that asks nothing of its client. The run of one that does.
    async fn check_asks(&self, id: &str) -> Result<RunId> {
        let TaskReport { run, task } = self.own_task(id).await?;
        match self.viewer(&run, &[]).state(&task.state) {
            TaskState::InputRequired => Ok(run.row.id),
            state => {
                let word = state_word(state);
                let why = format!("task `{id}` is {word}: it takes a message in INPUT_REQUIRED");
                Err(unsupported(why))
            }
        }
    }

    /// `tasks/get`.
    pub(super) async fn vault_get(&self, id: &str) -> Result<Value> {
        let TaskReport { run, task } = self.own_task(id).await?;
        let started_at = run.row.started_at;
        Ok(words::whole(&self.viewer(&run, &[]), &task, started_at).await)
    }

    /// `tasks/cancel`: one that is over stays as it is.
    pub(super) async fn vault_cancel(&self, id: &str) -> Result<Value> {
        let told = |success: bool, message: String| json!({"success": success, "message": message});
        match self.cancel(id).await {
            Ok(task) if task.status.state == TaskState::Canceled => {
                Ok(told(true, format!("task `{id}` is cancelled")))
            }
            Ok(task) => {
                let word = state_word(task.status.state);
                Ok(told(false, format!("task `{id}` became {word} meanwhile")))
            }
            Err(error) if error.kind == ErrorKind::TaskNotCancelable => {
                Ok(told(false, error.message))
            }
            Err(error) => Err(error),
        }
    }

    /// Any other method: a tool that the caller sees, with the parameters as its arguments. What it
    /// gave, as JSON in MCP's shape.
    pub(super) async fn vault_call(&self, method: &str, params: &str) -> Result<String> {
        let a2a = &self.a2a;
        let caller = &self.caller;
        if let Some(scope) = missing_scope(&a2a.server, caller, Act::Call) {
            let why = format!("the credential does not have the scope `{}`", scope.name());
            return Err(A2aError::new(ErrorKind::PermissionDenied, why));
        }
        let occasion = Occasion::at("a2a", ADDRESS);
        let Some(found) = direct_call::find(&a2a.server, caller, method) else {
            let arguments: Map<String, Value> = read_params(params).unwrap_or_default();
            let unseen = UnseenCall {
                names: direct_call::names(method).collect(),
                arguments: Value::Object(arguments),
                trace: self.trace,
                occasion,
            };
            a2a.server.engine.audits().note_unseen(caller, &unseen);
            let shown: String = method.chars().take(100).collect();
            let why = format!("there is no method `{shown}`, and no tool of this name");
            return Err(A2aError::new(ErrorKind::MethodNotFound, why));
        };
        let arguments: Map<String, Value> = read_params(params)?;
        let wait_ms = a2a.server.limits().run_wait_ms;
        let request = CallRequest::new(found, Value::Object(arguments), wait_ms);
        let request = CallRequest { trace: self.trace, occasion, ..request };
        let called = direct_call::called(&a2a.server, caller, request).await;
        called.map_err(|refusal| refused(refusal, "params"))
    }
}
