//! One request in hand: who sends it, what it says, and a way to its sender.

use super::client::Client;
use super::state::McpState;
use crate::messages::message::PlainCall;
use crate::messages::outbox::Outbox;
use crate::messages::requests::Cancelled;
use engine::Callable;
use kernel::tool::call::{CallReporter, CallUpdate, Caller, Listener, LogLevel};
use kernel::values::trace::TraceParent;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::sync::Arc;
use wire::jsonrpc::{Id, RpcError};

/// One request.
pub(crate) struct Exchange {
    /// What all requests share.
    pub(crate) mcp: Arc<McpState>,
    /// Whose request it is.
    pub(crate) caller: Arc<Caller>,
    /// The program that sends it.
    pub(crate) client: Client,
    pub(crate) id: Id,
    /// What it asks for, as it came.
    pub(crate) params: Option<Box<RawValue>>,
    /// A way to its sender.
    pub(crate) outbox: Outbox,
    /// The sender's span, where it came with the request and not in it.
    pub(crate) trace: Option<TraceParent>,
    /// What it calls, where its transport has looked for it already.
    pub(crate) called: Option<ResolvedCall>,
    /// Whether its client cancelled it.
    pub(crate) cancelled: Cancelled,
}

/// A call of a tool that is there.
pub(crate) struct ResolvedCall {
    pub(crate) tool: Callable,
    /// Its parameters, where they were read already.
    pub(crate) params: Option<PlainCall>,
}

impl Exchange {
    /// The parameters as this type; members that it does not know are left alone.
    pub(crate) fn params<T: DeserializeOwned>(&self) -> Result<T, RpcError> {
        let text = self.params.as_ref().map_or("{}", |params| params.get());
        serde_json::from_str(text).map_err(|error| {
            RpcError::invalid_params(format!("the parameters do not fit: {error}"))
        })
    }

    /// Whom a call tells how far it is: the client, as far as it wants to hear it.
    pub(crate) fn teller(&self) -> CallReporter {
        let wanted = self.client.progress.is_some() || self.client.log.is_some();
        if !wanted || !self.outbox.is_open() {
            return CallReporter::default();
        }
        let hearing = UpdateForwarder { outbox: self.outbox.clone(), client: self.client.clone() };
        CallReporter::new(Arc::new(hearing))
    }
}

/// Passes what calls tell on to the client.
struct UpdateForwarder {
    outbox: Outbox,
    client: Client,
}

impl Listener for UpdateForwarder {
    fn hear(&self, update: CallUpdate) {
        match update {
            CallUpdate::Progress { progress, total, message } => {
                let Some(token) = &self.client.progress else { return };
                let mut params = json!({"progressToken": token, "progress": progress});
                if let Some(total) = total {
                    params["total"] = json!(total);
                }
                if let Some(message) = message {
                    params["message"] = Value::String(message);
                }
                self.outbox.tell("notifications/progress", &params);
            }
            CallUpdate::Log { level, logger, data } => {
                if self.client.log.is_none_or(|from| level < from) {
                    return;
                }
                let mut params = json!({"level": level, "data": data});
                if let Some(logger) = logger {
                    params["logger"] = Value::String(logger);
                }
                self.outbox.tell("notifications/message", &params);
            }
        }
    }

    fn log_level(&self) -> Option<LogLevel> {
        self.client.log
    }
}
