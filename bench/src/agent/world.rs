//! An engine in this process, over a real store, with a model and tools that answer at once and
//! note when they were asked: what lies between two of these moments is the engine's.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use engine::catalog::schema::JsonSchemas;
use engine::system::clock::{SystemClock, SystemEntropy, TokioSpawn};
use engine::{
    AgentFile, AllowAll, Engine, Model, Models, Parts, Refusal, RunReport, SwitchedOff,
    ThreadMessage, ToolSource, Utc,
};
use futures::future::{BoxFuture, ready};
use kernel::contracts::Tool;
use kernel::conversation::llm::{DeltaSink, Llm, LlmError, ModelCall, Prompt, Turn};
use kernel::limits::Limits;
use kernel::tool::call::{Call, Caller, OutputKind, Pace, Reach, ToolError, ToolOutput, ToolSpec};
use kernel::tool::rules::ToolRules;
use kernel::values::ids::RealmId;
use kernel::values::names::for_models;
use rusqlite::{Connection, OpenFlags};
use serde_json::json;
use tempfile::TempDir;

use super::WAIT_MS;
use crate::Result;
use crate::product::rows::DATABASE;

/// A tool that reads, and that no one is asked about.
pub const READS: &str = "bench::read";
/// A tool that writes, after a person approved it.
pub const WRITES: &str = "bench::write";

const REALM: &str = "default";
const AGENT: &str = r#"refName: bench
llmConfigRef: at_once
context:
  - {order: 1, role: system, content: "You take notes. It is {{now}} ({{zone}})."}
tool_types:
  notes: ["bench::read", "bench::write"]
approve: ["bench::write"]
"#;
const ROUTE: &str = r#"{"decision":"allow","note":"It fits.","allowed_tool_types":["notes"]}"#;
const ANSWER: &str = "It is noted.";

const JOURNAL: &str = "SELECT j.body FROM journal AS j JOIN sessions AS s ON s.pk = j.session \
    WHERE s.space = 'thread' AND s.key = ?1 ORDER BY j.seq";

/// When a model was asked, and when it had answered.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// It got the prompt.
    pub at: Instant,
    /// Its answer was ready.
    pub answered: Instant,
}

/// A model that answers at once: it calls one tool so many times, then it says that it is done.
#[derive(Default)]
pub struct AtOnce {
    state: Mutex<Script>,
}

#[derive(Default)]
struct Script {
    tool: &'static str,
    calls_left: u32,
    asked: Vec<Asked>,
}

impl AtOnce {
    /// What it does from now on; what it noted is forgotten.
    pub fn begin(&self, tool: &'static str, calls: u32) {
        *lock(&self.state) = Script { tool, calls_left: calls, asked: Vec::new() };
    }

    /// When it was asked since then.
    pub fn asked(&self) -> Vec<Asked> {
        lock(&self.state).asked.clone()
    }

    fn answer(&self, prompt: &Prompt, at: Instant) -> Turn {
        let mut script = lock(&self.state);
        let turn = if prompt.answer.is_some() {
            Turn { text: ROUTE.to_owned(), ..Turn::default() }
        } else if script.calls_left > 0 {
            script.calls_left -= 1;
            // Never the same call twice: that is what a limit is for.
            let arguments = Arc::new(json!({"n": script.calls_left}));
            let call =
                ModelCall { id: "call".to_owned(), tool: for_models(script.tool), arguments };
            Turn { calls: vec![call], ..Turn::default() }
        } else {
            Turn { text: ANSWER.to_owned(), ..Turn::default() }
        };
        script.asked.push(Asked { at, answered: Instant::now() });
        turn
    }
}

impl Llm for AtOnce {
    fn turn<'a>(
        &'a self,
        prompt: &'a Prompt,
        _sink: &'a dyn DeltaSink,
    ) -> BoxFuture<'a, std::result::Result<Turn, LlmError>> {
        let at = Instant::now();
        Box::pin(ready(Ok(self.answer(prompt, at))))
    }
}

/// A tool that answers at once and notes when it was last called.
struct Noted {
    spec: Arc<ToolSpec>,
    called: Arc<Mutex<Option<Instant>>>,
}

impl Tool for Noted {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        _caller: &'a Caller,
        _call: &'a Call,
    ) -> BoxFuture<'a, std::result::Result<ToolOutput, ToolError>> {
        *lock(&self.called) = Some(Instant::now());
        Box::pin(ready(Ok(ToolOutput::Value(json!({"noted": true})))))
    }
}

fn noted(name: &str, reach: Reach, called: &Arc<Mutex<Option<Instant>>>) -> Arc<dyn Tool> {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let spec = ToolSpec {
        name: name.into(),
        title: name.to_owned(),
        description: "Notes a number.".to_owned(),
        input_schema: Arc::new(schema),
        output_schema: None,
        reach,
        idempotent: false,
        tags: Vec::new(),
        pace: Pace::Quick,
        yields: OutputKind::Value,
        unrecorded: false,
        listed: None,
    };
    Arc::new(Noted { spec: Arc::new(spec), called: called.clone() })
}

/// The engine, what it talks to, and its data.
pub struct World {
    pub engine: Engine,
    /// The model of its only agent.
    pub model: Arc<AtOnce>,
    called: Arc<Mutex<Option<Instant>>>,
    // Held for its files.
    folder: TempDir,
}

impl World {
    /// An engine over a new, empty store under `dir`.
    pub fn open(dir: &Path) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("waypost-bench-agent-").tempdir_in(dir)?;
        let model = Arc::new(AtOnce::default());
        let called = Arc::default();
        let tools =
            vec![noted(READS, Reach::Reads, &called), noted(WRITES, Reach::Writes, &called)];
        let models = Models::default().with("at_once", Model::new(model.clone()));
        let parts = parts(folder.path(), tools, models)?;
        let engine = Engine::start(parts).map_err(|mistakes| format!("{mistakes:?}"))?;
        let file = AgentFile { file: "bench.yaml".to_owned(), text: AGENT.to_owned() };
        let loaded = engine.catalog().set_agents_from_files(&RealmId::from(REALM), vec![file]);
        loaded.map_err(|mistakes| format!("{mistakes:?}"))?;
        Ok(Self { engine, model, called, folder })
    }

    /// Who calls.
    pub fn caller() -> Caller {
        Caller::new(REALM, "bench")
    }

    /// Says something in a thread and waits until the run ends or pauses.
    pub async fn say(&self, thread: &str) -> Result<RunReport> {
        let said = self
            .engine
            .threads()
            .say(
                &Self::caller(),
                ThreadMessage { thread, text: "note it", ..ThreadMessage::default() },
                WAIT_MS,
            )
            .await;
        Ok(said.map_err(refused)?)
    }

    /// When a tool was last called.
    pub fn called(&self) -> Option<Instant> {
        *lock(&self.called)
    }

    /// The journal rows of a thread, oldest first.
    pub fn journal(&self, thread: &str) -> Result<Vec<String>> {
        let path = self.folder.path().join(DATABASE);
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let mut statement = connection.prepare(JOURNAL)?;
        let bodies = statement.query_map([thread], |row| row.get(0))?;
        Ok(bodies.collect::<rusqlite::Result<Vec<String>>>()?)
    }

    /// Stops the engine in order.
    pub async fn close(self) {
        self.engine.stop().await;
    }
}

/// A refusal as an error of the benchmark.
pub fn refused(refusal: Refusal) -> String {
    format!("{}: {}", refusal.code.name(), refusal.message)
}

/// An engine's parts over a store in this folder.
pub fn parts(folder: &Path, tools: Vec<Arc<dyn Tool>>, models: Models) -> Result<Parts> {
    let limits = Arc::new(Limits::default());
    let spawn = Arc::new(TokioSpawn::new(tokio::runtime::Handle::current()));
    let of_store = stores::Parts {
        spawn: spawn.clone(),
        clock: Arc::new(SystemClock),
        limits: limits.clone(),
        fatal: Arc::new(|why| {
            eprintln!("bench: {why}");
            std::process::exit(1);
        }),
        vfs: None,
    };
    let opened = stores::open(&stores::StoreLocation::Folder(folder.to_owned()), of_store)?;
    Ok(Parts {
        store: opened.store,
        definitions: opened.definitions,
        blobs: opened.blobs,
        deliveries: opened.deliveries,
        tools: vec![ToolSource::new("the benchmark", tools)],
        rules: ToolRules::default(),
        awaited: Vec::new(),
        upstreams_of: None,
        switched_off: SwitchedOff::new(),
        models,
        observers: Vec::new(),
        policy: Arc::new(AllowAll),
        audit: None,
        schemas: Arc::new(JsonSchemas::default()),
        marks: opened.marks,
        clock: Arc::new(SystemClock),
        zones: Arc::new(Utc),
        entropy: Arc::new(SystemEntropy),
        spawn,
        limits,
        session_ttls: BTreeMap::new(),
        realms: None,
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
