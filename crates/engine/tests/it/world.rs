//! An engine over a real store in a folder of its own, with tools that a test can hold back.

use engine::catalog::schema::JsonSchemas;
use engine::system::clock::{SystemClock, SystemEntropy, TokioSpawn};
use engine::{
    AgentFile, AuditParts, AuditRules, CallRequest, Engine, Models, Parts, PlanFile, ProjectFiles,
    RunRequest, RunSession, RunTarget, SwitchedOff, ToolSource,
};
use futures::future::BoxFuture;
use kernel::contracts::observe::Observer;
use kernel::contracts::policy::{Decision, Request, Resource};
use kernel::contracts::{Policy, SessionRef, Store, Tool};
use kernel::definition::rule::Rules;
use kernel::identity::audit::Mac;
use kernel::identity::chain::ChainKeys;
use kernel::limits::Limits;
use kernel::tool::call::{
    Call, Caller, InputRequest, InputRequired, Reach, ToolError, ToolOutput, ToolSpec, Verdict,
};
use kernel::tool::rules::ToolRules;
use kernel::values::ids::{ContentHash, PlanId, RealmId};
use kernel::values::trace::TraceParent;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Semaphore;

/// How long a test waits for what should come to be, on a busy machine.
pub const WAIT_MS: u64 = 60_000;
/// How long it waits before it looks again.
pub const LOOK: Duration = Duration::from_millis(10);
/// How often it looks; each look takes its time, too.
pub const LOOKS_MAX: usize = 6_000;

/// What tools were sent, in order, and the spans that came with it; and the states that they were
/// told to forget.
#[derive(Default)]
pub struct Ledger(
    pub Mutex<Vec<(String, Value)>>,
    pub Mutex<Vec<Option<TraceParent>>>,
    pub Mutex<Vec<Value>>,
);

/// A tool that notes its calls and then waits for a permit.
struct Held {
    spec: Arc<ToolSpec>,
    ledger: Arc<Ledger>,
    permits: Arc<Semaphore>,
}

impl Tool for Held {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }
    fn forget(&self, state: &Value) {
        self.ledger.2.lock().unwrap().push(state.clone());
    }
    fn call<'a>(
        &'a self,
        _caller: &'a Caller,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let sent = (call.id.to_string(), (*call.arguments).clone());
            self.ledger.0.lock().unwrap().push(sent);
            self.ledger.1.lock().unwrap().push(call.context.trace);
            self.permits.acquire().await.unwrap().forget();
            if let Some(event) = call.arguments.get("publish") {
                call.context.publisher.publish(event.clone())?;
            }
            if call.arguments["fail"] == json!(true) {
                return Err(ToolError::failed("Boom", "as told"));
            }
            if let Value::Object(detail) = &call.arguments["detail"] {
                return Err(ToolError::failed("Boom", "as told").detail(detail.clone()));
            }
            if call.arguments["panic"] == json!(true) {
                panic!("as the test wants");
            }
            if call.arguments["refuse"] == json!(true) {
                return Err(ToolError::not_sent("Refused", "not this time"));
            }
            if call.arguments["lost"] == json!(true) {
                return Err(ToolError::unknown("Lost", "the connection broke"));
            }
            if let Some(inputs) = wants(&call.arguments)
                && call.given.state.is_null()
            {
                let state = json!({"asked": 1});
                return Ok(ToolOutput::Wants(Box::new(InputRequired { inputs, state })));
            }
            let value = match call.arguments.get("repeat") {
                Some(count) => json!("x".repeat(count.as_u64().unwrap() as usize)),
                None if call.arguments["wants"].is_object() => json!({"given": *call.given}),
                None => json!({"got": *call.arguments}),
            };
            Ok(ToolOutput::Value(value))
        })
    }
}

/// What a call wants first: as its arguments say, `true` for a form.
fn wants(arguments: &Value) -> Option<BTreeMap<String, InputRequest>> {
    match &arguments["wants"] {
        Value::Bool(true) => {
            let form =
                InputRequest::Form { message: "who?".to_owned(), schema: Arc::new(json!({})) };
            Some(BTreeMap::from([("who".to_owned(), form)]))
        }
        inputs @ Value::Object(_) => Some(serde_json::from_value(inputs.clone()).unwrap()),
        _ => None,
    }
}

fn held(name: &str, reach: Reach, ledger: &Arc<Ledger>, permits: &Arc<Semaphore>) -> Arc<dyn Tool> {
    Arc::new(Held {
        spec: Arc::new(ToolSpec {
            output_schema: name.ends_with("promised").then(|| Arc::new(json!({"type": "string"}))),
            reach,
            idempotent: name.ends_with("put"),
            ..testkit::specs::tool(name)
        }),
        ledger: ledger.clone(),
        permits: permits.clone(),
    })
}

/// Nobody but `root` sees the tools called `secret::..`.
struct Secretive;

impl Policy for Secretive {
    fn decide(&self, request: &Request<'_>) -> Decision {
        match request.resource {
            Resource::Tool(spec)
                if &*request.subject.subject != "root"
                    && spec.name.as_str().starts_with("secret::") =>
            {
                Verdict::Deny("it is secret".to_owned()).into()
            }
            _ => Decision::allow(),
        }
    }
}

/// What local mode keeps.
const JOURNALED: AuditRules = AuditRules { unjournaled: false, reads: true, strict: false };

/// Macs that need no secret.
struct TestKeys;

impl ChainKeys for TestKeys {
    fn name(&self) -> &str {
        "test"
    }

    fn mac(&self, key: &str, parts: &[&[u8]]) -> Option<Mac> {
        let mut all = key.as_bytes().to_vec();
        for part in parts {
            all.extend((part.len() as u64).to_be_bytes());
            all.extend_from_slice(part);
        }
        (key == "test").then(|| ContentHash::of(&all).as_str().parse().unwrap())
    }

    fn digest(&self, bytes: &[u8]) -> Mac {
        self.mac("test", &[bytes]).unwrap()
    }
}

/// One process's worth of engine; drop it and open another on the same folder for a restart.
pub struct World {
    pub engine: Engine,
    pub store: Arc<dyn Store>,
    pub ledger: Arc<Ledger>,
    /// Calls wait for these; a new world has none.
    pub permits: Arc<Semaphore>,
}

pub fn caller() -> Caller {
    Caller::new("default", "ann")
}

/// The parts of an engine over this folder, with these tools and no rules.
pub fn parts(folder: &Path, limits: Limits, tools: Vec<ToolSource>) -> Parts {
    let limits = Arc::new(Limits { stop_wait_ms: 0, ..limits });
    let spawn = Arc::new(TokioSpawn::new(tokio::runtime::Handle::current()));
    let of_store = stores::Parts {
        spawn: spawn.clone(),
        clock: Arc::new(SystemClock),
        limits: limits.clone(),
        fatal: Arc::new(|why| panic!("{why}")),
        vfs: None,
    };
    let opened = stores::open(&stores::StoreLocation::Folder(folder.to_owned()), of_store).unwrap();
    let keys = Arc::new(TestKeys);
    let rules = JOURNALED;
    opened.audit.begin(keys.clone());
    Parts {
        store: opened.store,
        definitions: opened.definitions,
        blobs: opened.blobs,
        deliveries: opened.deliveries,
        tools,
        rules: ToolRules::default(),
        awaited: Vec::new(),
        upstreams_of: None,
        switched_off: SwitchedOff::new(),
        models: Models::default(),
        observers: Vec::new(),
        policy: Arc::new(Secretive),
        audit: Some(AuditParts { audit: opened.audit, keys, rules }),
        schemas: Arc::new(JsonSchemas::default()),
        marks: opened.marks,
        clock: Arc::new(SystemClock),
        zones: Arc::new(engine::Utc),
        entropy: Arc::new(SystemEntropy),
        spawn,
        limits,
        session_ttls: BTreeMap::new(),
        realms: None,
    }
}

/// An engine with one plan and one tool that looks so often at what it waits for.
pub fn looking(folder: &Path, plan: &str, tool: Arc<dyn Tool>, every_ms: u64) -> Engine {
    let limits = Limits {
        authorize_poll_ms: every_ms,
        authorize_poll_ms_max: every_ms,
        recover_interval_ms: 20,
        cancel_grace_ms: 60_000,
        ..Limits::default()
    };
    let parts = parts(folder, limits, vec![ToolSource::new("the test", vec![tool])]);
    let engine = Engine::start(parts).unwrap();
    engine.catalog().load_plans(&"default".into(), files(&[plan])).unwrap();
    engine.admin().keep_recovering();
    engine
}

/// Waits for a condition, saying what for when it does not come.
pub async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    for _ in 0..LOOKS_MAX {
        if holds().await {
            return;
        }
        tokio::time::sleep(LOOK).await;
    }
    panic!("waited in vain for: {what}");
}

/// How many events of a session have this in their text.
pub async fn count_in(engine: &Engine, session: &SessionRef, text: &str) -> usize {
    let events = engine.sessions().events(&caller(), session, 0, 1_000).await.unwrap();
    events.iter().filter(|(_, event)| event.contains(text)).count()
}

/// Plans as files.
pub fn files(plans: &[&str]) -> Vec<PlanFile> {
    let file = |(index, text): (usize, &&str)| PlanFile {
        file: format!("plan{index}.yaml"),
        text: (*text).to_owned(),
        default_id: PlanId::from(format!("test/plan{index}")),
    };
    plans.iter().enumerate().map(file).collect()
}

impl World {
    pub async fn open(folder: &Path, plans: &[&str]) -> Self {
        Self::with_limits(folder, plans, Limits::default()).await
    }

    /// A direct call of a tool.
    pub fn call_request(&self, tool: &str, arguments: Value) -> CallRequest {
        let found = self.engine.tools().find(&caller(), tool).unwrap();
        CallRequest::new(found, arguments, WAIT_MS)
    }

    pub async fn with_limits(folder: &Path, plans: &[&str], limits: Limits) -> Self {
        Self::with_ttls(folder, plans, limits, BTreeMap::new()).await
    }

    pub async fn with_rules(
        folder: &Path,
        plans: &[&str],
        rules: ToolRules,
        limits: Limits,
    ) -> Self {
        Self::build(folder, plans, limits, (BTreeMap::new(), rules))
    }

    pub async fn with_ttls(
        folder: &Path,
        plans: &[&str],
        limits: Limits,
        session_ttls: BTreeMap<RealmId, u64>,
    ) -> Self {
        Self::build(folder, plans, limits, (session_ttls, ToolRules::default()))
    }

    /// With agents, and the models that they name.
    pub async fn talking(
        folder: &Path,
        (plans, agents): (&[&str], &[&str]),
        limits: Limits,
        models: Models,
    ) -> Self {
        Self::brought(folder, (plans, agents), limits, |parts| Parts { models, ..parts })
    }

    /// The same, before somebody's eyes.
    pub async fn observed(
        folder: &Path,
        (plans, agents): (&[&str], &[&str]),
        models: Models,
        observer: Arc<dyn Observer>,
    ) -> Self {
        Self::brought(folder, (plans, agents), Limits::default(), |parts| Parts {
            models,
            observers: vec![observer],
            ..parts
        })
    }

    /// The same, while tools whose names begin so may still come.
    pub async fn awaiting(folder: &Path, agents: &[&str], models: Models, awaited: &str) -> Self {
        let awaited = vec![awaited.to_owned()];
        Self::brought(folder, (&[], agents), Limits::default(), |parts| Parts {
            models,
            awaited,
            ..parts
        })
    }

    /// Over other parts.
    pub async fn changed(
        folder: &Path,
        plans: &[&str],
        change: impl FnOnce(Parts) -> Parts,
    ) -> Self {
        Self::brought(folder, (plans, &[]), Limits::default(), change)
    }

    /// A tool of this name that only reads, as another server brings it.
    pub fn late(&self, name: &str) -> ToolSource {
        let tool = held(name, Reach::Reads, &self.ledger, &self.permits);
        ToolSource::new("server `late`", vec![tool])
    }

    /// A tool like this one, as another server brings it.
    pub fn bringing(&self, spec: ToolSpec) -> ToolSource {
        let ledger = self.ledger.clone();
        let permits = self.permits.clone();
        let tool = Held { spec: Arc::new(spec), ledger, permits };
        ToolSource::new("server `late`", vec![Arc::new(tool)])
    }

    fn build(
        folder: &Path,
        plans: &[&str],
        limits: Limits,
        (session_ttls, rules): (BTreeMap<RealmId, u64>, ToolRules),
    ) -> Self {
        let change = |parts| Parts { rules, session_ttls, ..parts };
        Self::brought(folder, (plans, &[]), limits, change)
    }

    fn brought(
        folder: &Path,
        (plans, agents): (&[&str], &[&str]),
        limits: Limits,
        change: impl FnOnce(Parts) -> Parts,
    ) -> Self {
        let ledger = Arc::new(Ledger::default());
        let permits = Arc::new(Semaphore::new(0));
        let tools = vec![
            held("slow::read", Reach::Reads, &ledger, &permits),
            held("slow::write", Reach::Writes, &ledger, &permits),
            held("slow::put", Reach::Writes, &ledger, &permits),
            held("read::promised", Reach::Reads, &ledger, &permits),
            held("write::promised", Reach::Writes, &ledger, &permits),
            held("secret::write", Reach::Writes, &ledger, &permits),
        ];
        let tools = vec![ToolSource::new("the test", tools)];
        let parts = change(parts(folder, limits, tools));
        let store = parts.store.clone();
        let engine = Engine::start(parts).unwrap();
        let realm = RealmId::from("default");
        let agent = |(index, text): (usize, &&str)| AgentFile {
            file: format!("agent{index}.yaml"),
            text: (*text).to_owned(),
        };
        let agents = agents.iter().enumerate().map(agent).collect();
        engine.catalog().set_agents_from_files(&realm, agents).unwrap();
        engine.catalog().load_plans(&realm, files(plans)).unwrap();
        // A test that wants rules has them in its plans.
        let rules = Rules { built_in: false, ..Rules::default() };
        let files = ProjectFiles { rules, ..ProjectFiles::default() };
        engine.catalog().set_rules(&realm, &files).unwrap();
        Self { engine, store, ledger, permits }
    }

    /// Starts a run in a named session.
    pub fn request(&self, plan: &str, input: Value, session: &str) -> RunRequest {
        RunRequest {
            target: RunTarget::Plan(PlanId::from(plan)),
            input,
            session: RunSession::Named(session.to_owned()),
            once: None,
            about: Default::default(),
        }
    }

    /// Starts a run and does not wait for it.
    pub async fn start(&self, plan: &str, input: Value, session: &str) -> engine::RunReport {
        self.engine.runs().start(&caller(), self.request(plan, input, session), 0).await.unwrap()
    }

    /// Starts a run and waits until it ends or pauses.
    pub async fn run(&self, plan: &str, input: Value, session: &str) -> engine::RunReport {
        self.engine
            .runs()
            .start(&caller(), self.request(plan, input, session), WAIT_MS)
            .await
            .unwrap()
    }

    pub fn sent(&self) -> usize {
        self.ledger.0.lock().unwrap().len()
    }

    /// Waits for a condition, saying what for when it does not come.
    pub async fn until(&self, what: &str, holds: impl Fn(&World) -> bool) {
        for _ in 0..LOOKS_MAX {
            if holds(self) {
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
        panic!("waited in vain for: {what}");
    }

    /// Waits until nobody drives a session and everything that happened is in the past.
    pub async fn at_rest(&self) {
        self.until("the drivers to end", |world| world.engine.counts().sessions_active == 0).await;
        let clock = self.engine.clock();
        clock.sleep_until(clock.now().plus_ms(5)).await;
    }

    /// Waits until a run stands so.
    pub async fn until_status(
        &self,
        run: kernel::values::ids::RunId,
        status: &str,
    ) -> engine::RunReport {
        for _ in 0..LOOKS_MAX {
            let report = self.engine.runs().report(&caller(), run).await.unwrap();
            if report.run.status.name() == status {
                return report;
            }
            tokio::time::sleep(LOOK).await;
        }
        panic!("waited in vain for run {run} to be {status}");
    }

    /// Ends this process as a crash would: nothing is waited for but the folder's lock.
    pub async fn crash(self) {
        let World { engine, .. } = self;
        engine.stop().await;
    }
}
