//! One request of a tool call: how it is sent, its messages received and its answer read. Dropping
//! it cancels the call at the server.

use super::super::Link;
use super::super::lanes::{self, CallConnection};
use super::super::line::{Incoming, PeerError, PeerErrorKind};
use super::super::params::Params;
use super::super::peer::{Era, Peer, Request};
use super::{RemoteTool, broken, for_the_next_hop, is_task_only, refused, told};
use crate::mcp::questions::{CallOwner, CarriedState, KEPT_MS, OpenCall, missing, pages};
use kernel::tool::call::{
    Abilities, Call, CallProgress, CallUpdate, Caller, LogLevel, Reach, ToolError, ToolOutput,
};
use kernel::values::fault::Fault;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use wire::jsonrpc::{Id, PARSE_ERROR, RpcError};
use wire::mcp::{
    CANCELLED, HEADER_MISMATCH, META_IDEMPOTENCY_KEY, META_LOG_LEVEL, TRACEPARENT,
    UNSUPPORTED_VERSION,
};

/// The method.
const CALL: &str = "tools/call";
/// Hint for a caller that lacks an ability.
const LACKING: &str = "call it with a client that has it; in a run only a person can be asked";

/// One invocation.
#[derive(Clone, Copy)]
pub(super) struct Invocation<'a> {
    pub(super) tool: &'a RemoteTool,
    pub(super) caller: &'a Caller,
    pub(super) call: &'a Call,
}

pub(super) enum CallEvent {
    Answer(Value),
    /// The answer, if it is an error.
    Refused(RpcError),
    /// A request of its own.
    Asked(Id, String, Value),
}

impl<'a> Invocation<'a> {
    /// The upstream.
    pub(super) fn link(self) -> &'a Arc<Link> {
        &self.tool.link
    }

    /// The connected server.
    pub(super) async fn peer(self) -> Result<Arc<Peer>, ToolError> {
        self.link().peer().await.map_err(|error| self.broken(&error))
    }

    /// The connection that the call is made over.
    pub(super) async fn seat(self) -> Result<CallConnection, ToolError> {
        let mut can = self.call.can;
        // With a handshake a server has no tasks that we could follow.
        can.handshake &= !self.tool.spec.listed.as_deref().is_some_and(is_task_only);
        let seat = lanes::seat(self.link(), &self.tool.name, can).await;
        seat.map_err(|error| self.broken(&error))
    }

    /// Whose call it is.
    pub(super) fn whose(self) -> CallOwner {
        CallOwner::of(self.caller, self.call)
    }

    /// How long one request of it may take. The gate brings the time of the call itself, and may
    /// wait as long again for a call that comes late.
    pub(super) fn request_ms(self) -> u64 {
        let most = self.call.timeout_ms.saturating_mul(2);
        self.link().config.timeout_ms.map_or(most, |own| own.min(most))
    }

    /// Sends the call, with answers to what its server asked before.
    pub(super) async fn open(
        self,
        peer: &Arc<Peer>,
        answers: Map<String, Value>,
        state: Option<Value>,
    ) -> Result<OpenCall, ToolError> {
        let modern = peer.era() == Era::Modern;
        let log = match self.call.teller.log_level() {
            Some(level) => Box::pin(peer.hear_log(level)).await,
            None => None,
        };
        let mut timeout_ms = self.request_ms();
        let mut param_headers = Vec::new();
        if modern {
            param_headers = self.tool.mirrored.headers(&self.call.arguments);
        } else {
            // It may be kept until a person answers what the server asks.
            timeout_ms = timeout_ms.saturating_add(KEPT_MS);
        }
        let request = Request {
            name: Some(&self.tool.name),
            param_headers,
            can: self.call.can,
            // The gate does, and the time of the upstream itself is watched above. With a handshake
            // a call may be kept beyond that.
            is_watched: modern,
            ..Request::new(CALL, self.params(modern, answers, state), timeout_ms)
        };
        let replies = peer.open(request).await.map_err(|error| self.broken(&error))?;
        let peer = peer.clone();
        let lacks = Abilities::default();
        let may_repeat = self.tool.spec.reach == Reach::Reads || self.tool.spec.idempotent;
        Ok(OpenCall { peer, replies, questions: 0, lacks, _log: log, permit: None, may_repeat })
    }

    fn params(self, modern: bool, answers: Map<String, Value>, state: Option<Value>) -> Params {
        let mut params = Params::of_call(self.tool.name.clone(), self.call.arguments.clone());
        if !answers.is_empty() {
            params.set("inputResponses", answers);
        }
        if let Some(state) = state {
            params.set("requestState", state);
        }
        if self.tool.takes_key {
            params.say(META_IDEMPOTENCY_KEY, json!(self.call.id));
        }
        if let Some(trace) = self.call.context.trace {
            params.say(TRACEPARENT, json!(trace));
        }
        if self.call.teller.is_heard() {
            let token = format!("{:032x}", self.link().parts.entropy.bits());
            params.say("progressToken", token);
            if let Some(level) = self.call.teller.log_level().filter(|_| modern) {
                params.say(META_LOG_LEVEL, json!(level));
            }
        }
        params
    }

    /// Answers what the server asked.
    pub(super) async fn reply(
        self,
        talk: &OpenCall,
        id: &Id,
        answer: Result<Value, RpcError>,
    ) -> Result<(), ToolError> {
        talk.peer.reply(id, answer).await.map_err(|error| {
            // The call that asked is under way, whatever becomes of the answer, and its session.
            let is_unknown = error.kind.wants_login() || error.kind == PeerErrorKind::Gone;
            let how = if is_unknown { CallProgress::Unknown } else { error.how };
            self.broken(&PeerError { how, ..error })
        })
    }

    /// The next message that matters; what is only told is passed on.
    pub(super) async fn hear(self, talk: &mut OpenCall) -> Result<CallEvent, ToolError> {
        while let Some(incoming) = talk.replies.recv().await {
            match incoming {
                Incoming::Notification { method, params } => self.tell(talk, method, params),
                Incoming::Request { id, method, params } => {
                    return Ok(CallEvent::Asked(id, method, params));
                }
                Incoming::Result(result) => return Ok(CallEvent::Answer(result)),
                Incoming::Error(error) => {
                    talk.peer.wonder(CALL, &error);
                    return Ok(CallEvent::Refused(error));
                }
                Incoming::Broken(error) => {
                    talk.peer.note(&error);
                    return Err(self.broken(&error));
                }
            }
        }
        let message = self.named("the connection was lost before the call was answered");
        Err(ToolError::unknown("UpstreamClosed", message)
            .hint("look at the other side whether it happened")
            .passing())
    }

    fn tell(self, talk: &OpenCall, method: String, params: Value) {
        match method.as_str() {
            "notifications/progress" => {
                let Some(progress) = params["progress"].as_f64() else { return };
                let message = params["message"].as_str().map(str::to_owned);
                let total = params["total"].as_f64();
                self.call.teller.tell(CallUpdate::Progress { progress, total, message });
            }
            "notifications/message" => {
                let level = serde_json::from_value(params["level"].clone());
                let level = level.unwrap_or(LogLevel::Info);
                let logger = params["logger"].as_str().map(str::to_owned);
                let data = params["data"].clone();
                self.call.teller.tell(CallUpdate::Log { level, logger, data });
            }
            // Of general interest, if anybody has room for it: that a list changed.
            _ => {
                let _ = talk.peer.aside().try_send(Incoming::Notification { method, params });
            }
        }
    }

    /// The tool's result: its output, or the failure that it says it is.
    pub(super) fn done(self, result: Value) -> Result<ToolOutput, ToolError> {
        let Value::Object(mut result) = result else {
            return Err(self.not_understood("an answer that is no object"));
        };
        for_the_next_hop(&mut result);
        match result.get("content") {
            Some(Value::Array(_)) => {}
            Some(_) => return Err(self.not_understood("`content` that is no list")),
            // Some servers leave it out where there is a structure.
            None => drop(result.insert("content".to_owned(), json!([]))),
        }
        if result.get("isError") != Some(&Value::Bool(true)) {
            return Ok(ToolOutput::Value(Value::Object(result)));
        }
        let words = words(&result);
        Err(ToolError::failed("ToolFailed", words).content(Value::Object(result)))
    }

    /// The server refused the call: for good, or until someone has opened pages.
    pub(super) fn refused(self, error: &RpcError) -> Result<ToolOutput, ToolError> {
        let pages = pages(error);
        if pages.is_empty() {
            let failed = ToolError::new(CallProgress::Failed, refused(&self.link().config, error));
            let failed = match is_of_this_hop(error) {
                true => failed,
                false => failed.answered(error.to_value()),
            };
            let lacks = missing(error, self.call.can);
            return Err(if lacks.is_none() { failed } else { failed.lacks(lacks) });
        }
        let asked = pages.keys().cloned().collect();
        Ok(CarriedState { asked, pages: true, ..CarriedState::default() }.wanting(pages))
    }

    /// The way to the server failed.
    pub(super) fn broken(self, error: &PeerError) -> ToolError {
        ToolError::new(error.how, broken(&self.link().config, error))
    }

    /// The server wants what no one can give it, or no one that has this.
    pub(super) fn impossible(self, what: &str, lacks: Abilities) -> ToolError {
        if lacks.is_none() {
            return ToolError::failed("UpstreamError", self.named(what))
                .hint("nothing here can answer that; call the tool without a gateway between");
        }
        ToolError::failed("InputWanted", self.named(what)).hint(LACKING).lacks(lacks)
    }

    /// The server refused a call after it could not have what it asked for.
    pub(super) fn refused_without(self, lacks: Abilities, error: &RpcError) -> ToolError {
        let code = error.code;
        let words = told(&error.message);
        let what = format!("its caller lacks what it asked for; it answered error {code}: {words}");
        self.impossible(&what, lacks)
    }

    /// It answered, but not in MCP: the call may have happened.
    pub(super) fn not_understood(self, what: &str) -> ToolError {
        let fault = Fault::new("UpstreamNotMcp", self.named(&format!("it gave {}", told(what))));
        ToolError::new(CallProgress::Unknown, fault)
    }

    /// A sentence about the upstream.
    pub(super) fn named(self, what: &str) -> String {
        format!("upstream `{}`: {what}", self.link().config.name)
    }
}

/// Whether an error is about the message that we sent, and says nothing to who called us: not even
/// the words in which a client cancels. An invalid request is not among them: many servers say so
/// of arguments that they do not like.
fn is_of_this_hop(error: &RpcError) -> bool {
    let ours = [PARSE_ERROR, HEADER_MISMATCH, UNSUPPORTED_VERSION, CANCELLED];
    ours.contains(&error.code)
}

/// The texts of a result.
fn words(result: &Map<String, Value>) -> String {
    let blocks = result.get("content").and_then(Value::as_array);
    let texts = blocks.into_iter().flatten().filter_map(|block| block["text"].as_str());
    match texts.collect::<Vec<_>>().join("\n").as_str() {
        "" => "the tool failed and did not say why".to_owned(),
        texts => told(texts),
    }
}
