//! A client of the product and the agent that it calls, and a caller that comes back as a run does.

use engine::system::clock::{SystemClock, SystemEntropy, TokioSpawn};
use kernel::contracts::Tool;
use kernel::limits::Limits;
use kernel::tool::call::{
    Abilities, Call, CallPlace, Caller, Given, Teller, ToolError, ToolOutput, Want, Wants,
};
use kernel::values::ids::CallId;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use upstreams::{
    A2aConfig, CardPlace, EraSetting, MemoryVault, Remote, RemoteParts, Scope, UpstreamConfig,
    UpstreamKind,
};

/// No test waits longer for anything.
pub(super) const LIMIT: Duration = Duration::from_secs(240);
/// How long a call may take, and how long the agent may take to be connected to, on a busy machine.
pub(crate) const CALL_MS: u64 = 120_000;
const CONNECT_MS: u64 = 60_000;

/// All dialects of the agent.
pub(super) const DIALECTS: [&str; 6] = ["rpc", "rest", "grpc", "old-rpc", "old-rest", "vault"];

/// What is waited for within the limit.
pub(super) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    let done = timeout(LIMIT, future).await;
    done.unwrap_or_else(|_| panic!("waited {LIMIT:?} in vain for {what}"))
}

/// Waits until this is so.
pub(super) async fn until(what: &str, is_so: impl Fn() -> bool) {
    let looking = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    within(what, looking).await;
}

/// The settings of an agent with its card there.
pub(super) fn agent(card: &str) -> A2aConfig {
    A2aConfig::new(CardPlace::Url(card.to_owned()))
}

/// What a client is made of, in the runtime of this thread.
pub(super) fn parts() -> RemoteParts {
    RemoteParts {
        spawn: Arc::new(TokioSpawn::new(tokio::runtime::Handle::current())),
        clock: Arc::new(SystemClock),
        entropy: Arc::new(SystemEntropy),
        limits: Arc::new(Limits { upstream_connect_timeout_ms: CONNECT_MS, ..Limits::default() }),
        supervisor: None,
        vault: Arc::new(MemoryVault::new(Arc::new(SystemClock))),
        login: None,
        scope: Scope::default(),
    }
}

/// The product's side.
pub(super) struct House {
    pub(super) remote: Remote,
}

impl House {
    /// Connects to an agent, and waits until it was tried.
    pub(super) async fn open(config: A2aConfig) -> Self {
        Self::open_with(config, parts()).await
    }

    /// The same with a client that is made of these.
    pub(super) async fn open_with(config: A2aConfig, parts: RemoteParts) -> Self {
        let config = UpstreamConfig {
            name: "peer".to_owned(),
            prefix: "peer.".to_owned(),
            kind: UpstreamKind::A2a(config),
            trusted: false,
            journal: true,
            timeout_ms: None,
            era: EraSetting::Auto,
            origin: "a test".to_owned(),
        };
        let remote = Remote::start(vec![config], parts);
        within("the agent to be tried", remote.upstreams()[0].tried()).await;
        Self { remote }
    }

    /// The same for the agent's card of this dialect.
    pub(super) async fn speaking(server: &testkit::servers::a2a::AgentServer, name: &str) -> Self {
        Self::open(agent(&server.card_url(name))).await
    }

    /// The names of its tools.
    pub(super) fn names(&self) -> Vec<String> {
        let tools = self.remote.upstreams()[0].tools();
        tools.iter().map(|tool| tool.spec().name.as_str().to_owned()).collect()
    }

    /// The fault that it is in, by name and words.
    pub(super) fn fault(&self) -> (String, String) {
        let fault = self.remote.upstreams()[0].status().last_error.unwrap();
        (fault.name, fault.message)
    }

    pub(super) fn tool(&self, name: &str) -> Arc<dyn Tool> {
        let tools = self.remote.upstreams()[0].tools();
        let found = tools.into_iter().find(|tool| tool.spec().name.as_str() == name);
        found.unwrap_or_else(|| panic!("no tool {name}: {:?}", self.names()))
    }

    /// One invocation of `peer.send` with this text.
    pub(super) async fn invoke(
        &self,
        id: u128,
        text: &str,
        given: Given,
    ) -> Result<ToolOutput, ToolError> {
        self.invoke_as(Abilities::RUN, id, text, given).await
    }

    /// The same of a caller that can do this.
    pub(super) async fn invoke_as(
        &self,
        can: Abilities,
        id: u128,
        text: &str,
        given: Given,
    ) -> Result<ToolOutput, ToolError> {
        let tool = self.tool("peer.send");
        let call = call(can, id, &json!({"text": text}), given);
        let caller = Caller::new("default", "local");
        within("an invocation", tool.call(&caller, &call)).await
    }

    /// Comes back for a call until it has its end; `answer` says what is answered to a want.
    pub(super) async fn follow(
        &self,
        id: u128,
        text: &str,
        answer: impl Fn(&Want) -> Value,
    ) -> Result<Value, ToolError> {
        let mut given = Given::default();
        for _ in 0..50 {
            match self.invoke(id, text, given).await? {
                ToolOutput::Value(value) => return Ok(value),
                ToolOutput::Blob(blob) => panic!("{blob:?}"),
                ToolOutput::Wants(wants) => given = answered(*wants, &answer),
            }
        }
        panic!("the call of `{text}` has no end");
    }
}

/// What a caller gives who answers each want so.
pub(super) fn answered(wants: Wants, answer: &impl Fn(&Want) -> Value) -> Given {
    let inputs: BTreeMap<String, Value> =
        wants.inputs.iter().map(|(key, want)| (key.clone(), answer(want))).collect();
    Given { inputs, state: wants.state, ..Given::default() }
}

/// For calls that want nothing.
pub(super) fn nothing(want: &Want) -> Value {
    panic!("it wants {want:?}");
}

pub(super) fn call(can: Abilities, id: u128, arguments: &Value, given: Given) -> Call {
    Call {
        id: CallId(id),
        tool: "peer.send".into(),
        arguments: Arc::new(arguments.clone()),
        timeout_ms: CALL_MS,
        output_bytes_max: 1_000_000,
        given: Arc::new(given),
        can,
        teller: Teller::default(),
        place: CallPlace::default(),
    }
}

/// The texts of an output.
pub(super) fn texts(output: &Value) -> Vec<&str> {
    let blocks = output["content"].as_array().into_iter().flatten();
    blocks.filter_map(|block| block["text"].as_str()).collect()
}
