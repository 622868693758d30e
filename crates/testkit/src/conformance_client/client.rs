//! The client under test: one upstream of the product, reached as the product reaches it. Nothing
//! here speaks MCP or OAuth; it only uses what the product offers, as often as it offers it.

use super::assignment::Assignment;
use super::person;
use engine::system::clock::{SystemClock, SystemEntropy, TokioSpawn};
use kernel::contracts::shelf::PromptRequest;
use kernel::contracts::{Clock, Entropy, PageRequest, Tool};
use kernel::limits::Limits;
use kernel::tool::call::{
    Abilities, Call, CallContext, CallReporter, Caller, InputRequest, InputRequired,
    InputResponses, ToolOutput,
};
use kernel::values::fault::Fault;
use kernel::values::ids::CallId;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::runtime::Handle;
use upstreams::{
    EraSetting, Grant, HOPS_MAX, LoginPlaces, MemoryVault, OauthConfig, Remote, RemoteParts,
    Secret, Upstream, UpstreamConfig, UpstreamKind,
};

/// How often a person logs in before it is too much. More than the suite finds right, so that it is
/// the product that must stop asking.
const LOGINS_MAX: u32 = 6;
/// How often one call may want something.
const ROUNDS_MAX: u32 = 8;
/// How long the product may take to say that a login is wanted.
const LOGIN_WAIT_MS: u64 = 10_000;
const LOGIN_POLL_MS: u64 = 20;
/// How many resources are asked for at once; the suite lists two.
const ITEMS_MAX: usize = 100;
/// How long one call may take.
const CALL_MS: u64 = 60_000;
/// The document that the suite expects to be named by it. It is never fetched.
const CLIENT_METADATA: &str = "https://conformance-test.local/client-metadata.json";
/// Here the suite looks at what a client says of itself, which it can only where one registers.
const REGISTERS: &str = "auth/offline-access-scope";
/// Here no one logs in: the client does so itself.
const OURSELVES: &str = "auth/client-credentials-";

/// The client, connected to the suite's server or about to be.
pub(super) struct Client {
    remote: Remote,
    upstream: Arc<Upstream>,
    caller: Caller,
    /// The version that the suite expects to be spoken.
    version: Option<String>,
    logins: AtomicU32,
}

impl Client {
    /// Begins to connect.
    pub(super) fn start(assignment: &Assignment) -> Result<Self, String> {
        let grant = if assignment.scenario.starts_with(OURSELVES) {
            Grant::Ourselves
        } else {
            Grant::Person
        };
        let oauth = OauthConfig {
            client_id: assignment.text("client_id").map(str::to_owned),
            client_secret: assignment.text("client_secret").map(Secret::from),
            scopes: None,
            grant,
            login: upstreams::LoginOf::Shared,
        };
        let config = UpstreamConfig {
            name: "suite".to_owned(),
            prefix: String::new(),
            kind: UpstreamKind::Http { url: assignment.url.clone(), headers: Vec::new(), oauth },
            trusted: true,
            journal: true,
            timeout_ms: None,
            era: EraSetting::Auto,
            roots: Vec::new(),
            origin: "the suite's command".to_owned(),
        };
        let registers = assignment.scenario == REGISTERS;
        let parts = RemoteParts {
            spawn: Arc::new(TokioSpawn::new(Handle::current())),
            clock: Arc::new(SystemClock),
            entropy: Arc::new(SystemEntropy),
            limits: Arc::new(Limits::default()),
            hops_max: HOPS_MAX,
            supervisor: None,
            vault: Arc::new(MemoryVault::new(Arc::new(SystemClock))),
            login: Some(LoginPlaces {
                callback: person::CALLBACK.to_owned(),
                client_metadata: (!registers).then(|| CLIENT_METADATA.to_owned()),
                shown_to_callers: true,
            }),
            scope: upstreams::Scope::default(),
        };
        let remote = Remote::start(vec![config], parts);
        let upstream = remote.upstreams().first().cloned();
        let upstream = upstream.ok_or("the product keeps no upstream")?;
        let caller = Caller::new("default", "local");
        let version = assignment.version.clone();
        let logins = AtomicU32::new(0);
        Ok(Self { remote, upstream, caller, version, logins })
    }

    /// Connects and lists, and logs in as often as that is wanted.
    pub(super) async fn ready(&self) -> Result<(), String> {
        loop {
            let fault = match self.upstream.check().await {
                Ok(status) => return self.spoken(status.version.as_deref()),
                Err(fault) => fault,
            };
            match self.login_page().await {
                Some(page) => self.log_in(&page).await?,
                None => return Err(format!("cannot connect: {fault}")),
            }
        }
    }

    /// The tools that the server has.
    pub(super) fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.upstream.tools()
    }

    /// Reads every resource that the server lists; says how many there are.
    pub(super) async fn read_resources(&self) -> Result<usize, String> {
        let shelf = self.upstream.shelf();
        let page = PageRequest { cursor: None, limit: ITEMS_MAX };
        let listed = shelf.resources(&self.caller, &page).await.map_err(in_words)?;
        for resource in &listed.items {
            let read = shelf.read(&self.caller, &resource.uri).await.map_err(in_words)?;
            read.ok_or_else(|| format!("there is nothing at `{}`", resource.uri))?;
        }
        Ok(listed.items.len())
    }

    /// Gets every prompt that the server lists, without arguments; says how many there are.
    pub(super) async fn get_prompts(&self) -> Result<usize, String> {
        let shelf = self.upstream.shelf();
        let arguments = Map::new();
        let given = InputResponses::default();
        let prompts = shelf.prompts(&self.caller);
        for prompt in &prompts {
            let prompting = PromptRequest {
                name: &prompt.name,
                arguments: &arguments,
                given: &given,
                can: Abilities::PERSON,
            };
            let got = shelf.prompt(&self.caller, &prompting).await;
            let got = got.map_err(in_words)?;
            got.ok_or_else(|| format!("there is no prompt `{}`", prompt.name))?;
        }
        Ok(prompts.len())
    }

    pub(super) fn tool(&self, name: &str) -> Result<Arc<dyn Tool>, String> {
        let mut tools = self.tools().into_iter();
        let found = tools.find(|tool| tool.spec().name.as_str() == name);
        found.ok_or_else(|| format!("there is no tool `{name}`"))
    }

    /// Calls a tool: answers what it wants, and logs in where the server wants that first.
    pub(super) async fn call(&self, name: &str, arguments: Value) -> Result<Value, String> {
        self.go_on(name, arguments, InputResponses::default()).await
    }

    /// The same, for a call that wanted something and got it.
    pub(super) async fn go_on(
        &self,
        name: &str,
        arguments: Value,
        mut given: InputResponses,
    ) -> Result<Value, String> {
        for _ in 0..ROUNDS_MAX {
            match self.once(name, &arguments, given.clone()).await {
                Ok(ToolOutput::Value(value)) => return Ok(value),
                Ok(ToolOutput::Blob(blob)) => return Err(format!("`{name}` gave {}", blob.uri())),
                Ok(ToolOutput::Wants(wants)) => {
                    // A person who is shown the page of a login logs in, and only then says so.
                    let page = self.upstream.login_url();
                    if let Some(page) = page.filter(|page| shows(&wants, page)) {
                        self.log_in(&page).await?;
                    }
                    given = answered(given, *wants);
                }
                Err(why) => match self.login_page().await {
                    Some(page) => {
                        self.log_in(&page).await?;
                        self.ready().await?;
                    }
                    None => return Err(why),
                },
            }
        }
        Err(format!("`{name}` was not done after {ROUNDS_MAX} rounds"))
    }

    /// What a tool wants when it is called for the first time.
    pub(super) async fn wanted(
        &self,
        name: &str,
        arguments: &Value,
    ) -> Result<InputResponses, String> {
        match self.once(name, arguments, InputResponses::default()).await? {
            ToolOutput::Wants(wants) => Ok(answered(InputResponses::default(), *wants)),
            ToolOutput::Value(value) => Err(format!("`{name}` wants nothing: {value}")),
            ToolOutput::Blob(blob) => Err(format!("`{name}` wants nothing: {}", blob.uri())),
        }
    }

    /// Lets what continues beside requests come to rest: in the older versions a stream is opened
    /// on which a server may ask, and nothing says when the server has it.
    pub(super) async fn settle(&self, ms: u64) {
        SystemClock.sleep_until(SystemClock.now().plus_ms(ms)).await;
    }

    /// Lets go of the server; gives how it was, for those who look for a fault.
    pub(super) async fn stop(&self) -> String {
        let status = self.upstream.status();
        let logins = self.logins.load(Ordering::Relaxed);
        self.remote.stop().await;
        format!("logins: {logins}; {status:?}")
    }

    async fn once(
        &self,
        name: &str,
        arguments: &Value,
        given: InputResponses,
    ) -> Result<ToolOutput, String> {
        let tool = self.tool(name)?;
        let call = Call {
            id: CallId(SystemEntropy.bits()),
            tool: tool.spec().name.clone(),
            arguments: Arc::new(arguments.clone()),
            timeout_ms: CALL_MS,
            output_bytes_max: Limits::default().call_output_bytes_max,
            given: Arc::new(given),
            teller: CallReporter::default(),
            context: CallContext::default(),
            can: Abilities::PERSON,
        };
        let called = tool.call(&self.caller, &call).await;
        called.map_err(|error| format!("`{name}` failed: {}", error.fault))
    }

    /// The page where someone has to log in, if the product says so within a moment.
    async fn login_page(&self) -> Option<String> {
        for _ in 0..LOGIN_WAIT_MS / LOGIN_POLL_MS {
            if let Some(page) = self.upstream.login_url() {
                return Some(page);
            }
            self.settle(LOGIN_POLL_MS).await;
        }
        None
    }

    async fn log_in(&self, page: &str) -> Result<(), String> {
        if self.logins.fetch_add(1, Ordering::Relaxed) >= LOGINS_MAX {
            return Err(format!("after {LOGINS_MAX} logins one more is wanted"));
        }
        let returned = person::log_in(page)?;
        let finished = self.remote.finish_login(returned).await;
        finished.map(drop).map_err(|fault| format!("the login was refused: {fault}"))
    }

    /// The client does not get to know which version the server speaks: it must have found out.
    fn spoken(&self, version: Option<&str>) -> Result<(), String> {
        match (version, self.version.as_deref()) {
            (Some(spoken), Some(expected)) if spoken != expected => {
                Err(format!("{spoken} is spoken with a server of {expected}"))
            }
            _ => Ok(()),
        }
    }
}

/// Whether this page is among what is wanted.
fn shows(wants: &InputRequired, page: &str) -> bool {
    let mut inputs = wants.inputs.values();
    inputs.any(|want| matches!(want, InputRequest::Url { url, .. } if url == page))
}

/// The outcome of all that was wanted so far.
fn answered(before: InputResponses, wants: InputRequired) -> InputResponses {
    let mut inputs = before.inputs;
    inputs.extend(wants.inputs.iter().map(|(key, want)| (key.clone(), person::answer(want))));
    InputResponses { inputs, state: wants.state, ..InputResponses::default() }
}

fn in_words(fault: Fault) -> String {
    fault.to_string()
}
