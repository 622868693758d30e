//! An agent that a command talks to. Its card is read once and nothing is stored. Addresses and
//! credentials follow the same rules as for an upstream.

use super::agent::Agent;
use super::dialect::Operation;
use super::location::AgentLocation;
use super::{Loader, OpenedAgent};
use crate::RemoteParts;
use crate::config::{A2aConfig, CardPlace, EraSetting, UpstreamConfig, UpstreamKind};
use crate::rest::Credentials;
use kernel::tool::call::ToolError;
use kernel::values::fault::Fault;
use outbound::answer::Effect;
use reqwest::Url;
use serde_json::Value;
use std::sync::Weak;
use wire::a2a::message::Message;
use wire::a2a::task::{StreamResponse, Task};

/// How long one answer may take.
const ANSWER_MS: u64 = 60_000;
/// How many bytes one answer may have.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// An agent of others, for one conversation.
pub struct Peer {
    agent: Agent,
}

/// The card of an agent as it is, whether it can be used or not.
pub async fn read_card(config: &A2aConfig, parts: &RemoteParts) -> Result<Value, Fault> {
    let upstream = shown(config);
    let loader = Loader { upstream: &upstream, config, parts };
    let prepared = loader.prepared().await?;
    loader.document(&prepared).await
}

/// An address that the card of an agent names, if these settings let us go there.
pub fn permitted_address(config: &A2aConfig, named: &str) -> Result<Url, String> {
    let credentials = Credentials::of(&config.headers, config.auth.as_ref())?;
    let has_stored = config.key.is_some() || config.client.is_some();
    let is_stored = config.keyring.is_some() || config.keys_by_card.is_some();
    let has_credentials = !credentials.is_empty() || has_stored || is_stored;
    AgentLocation::new(config)?.endpoint(named, has_credentials)
}

impl Peer {
    /// Reads the card of an agent, and finds out how it is spoken to.
    pub async fn open(config: &A2aConfig, parts: &RemoteParts) -> Result<Self, Fault> {
        let upstream = shown(config);
        let loader = Loader { upstream: &upstream, config, parts };
        let prepared = loader.prepared().await?;
        let document = loader.document(&prepared).await?;
        let OpenedAgent { card, channel, endpoint, .. } =
            loader.opened(prepared, &document).await?;
        Ok(Self { agent: loader.agent(&card, channel, endpoint, Weak::new()) })
    }

    /// Says in a message which skill of this agent it is for.
    pub fn name_skill(&self, message: &mut Message, skill: &str) {
        self.agent.name_skill(message, skill);
    }

    /// Sends a message; the answer does not wait for the end of its task.
    pub async fn send(&self, message: Message) -> Result<StreamResponse, ToolError> {
        self.done(&Operation::Send(message), Effect::Writes).await
    }

    pub async fn task(&self, id: &str) -> Result<Task, ToolError> {
        match self.done(&Operation::Get(id.to_owned()), Effect::Reads).await? {
            StreamResponse::Task(task) => Ok(*task),
            _ => Err(self.agent.not_a2a("it answered no task")),
        }
    }

    async fn done(
        &self,
        operation: &Operation,
        effect: Effect,
    ) -> Result<StreamResponse, ToolError> {
        let doing = self.agent.done(operation, effect, ANSWER_BYTES_MAX, ANSWER_MS);
        match self.agent.parts.within(ANSWER_MS, doing).await {
            Some(done) => done,
            None => {
                let why = self.agent.named(&format!("it did not answer within {ANSWER_MS} ms"));
                Err(effect.lost("Timeout", why).passing())
            }
        }
    }
}

/// The agent as messages name it: by where its card is.
fn shown(config: &A2aConfig) -> UpstreamConfig {
    let name = match &config.card {
        CardPlace::Url(url) => url.clone(),
        CardPlace::File(path) => path.display().to_string(),
        CardPlace::Registry { id, .. } => id.clone(),
    };
    UpstreamConfig {
        name,
        prefix: String::new(),
        kind: UpstreamKind::A2a(config.clone()),
        trusted: false,
        journal: false,
        timeout_ms: None,
        era: EraSetting::Auto,
        roots: Vec::new(),
        origin: "the command line".to_owned(),
    }
}
