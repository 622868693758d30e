//! A hundred thousand texts out of grammars and corpora, read by the pure functions that read them
//! first: pointers, templates, schemas, files, policies, principals, messages, also of A2A, cards
//! of agents, journal rows, queries over records. A second process of this program does the work,
//! so that an abort, a hang or growth is a failure that names its text.

use super::queries;
use engine::catalog::schema::JsonSchemas;
use kernel::contracts::policy::{Context, Request, Resource};
use kernel::definition::plan::check::PlanScope;
use kernel::definition::plan::flow::load_text;
use kernel::definition::plan::read::Origin;
use kernel::definition::{agent_reader, pipeline_reader};
use kernel::event;
use kernel::expression::budget::Budget;
use kernel::expression::pointer::{Pointer, Recent, View};
use kernel::expression::template::{self, Template};
use kernel::identity::principal::Roster;
use kernel::identity::principal_reader::{self, KnownNames};
use kernel::identity::roles::Roles;
use kernel::limits::Limits;
use kernel::tool::call::{Caller, Reach, ToolSpec};
use kernel::tool::schema::Schemas;
use kernel::values::caller::Act;
use kernel::values::datum::{BlobRef, Datum, Origin as Source};
use kernel::values::history::Entry;
use kernel::values::ids::{AgentName, Millis, PlanId, StepId, ToolName};
use policy::cases::Cases;
use policy::decide::{Policies, Question};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};
use std::{fs, thread};
use testkit::fuzz::access;
use testkit::fuzz::corpus::{Seed, seeds};
use testkit::fuzz::grammar;
use testkit::fuzz::hostile::{self, Kind};
use testkit::fuzz::hunt::{Hunt, Input};
use testkit::fuzz::mangle::mangle;
use testkit::fuzz::queries as asking;
use testkit::sim::rng::Rng;
use wire::a2a::card::AgentCard;
use wire::a2a::error::A2aError;
use wire::a2a::proto::{Operation, to_json, write};
use wire::a2a::request::SendMessageRequest;
use wire::a2a::task::Task;
use wire::a2a::v03::{self, Binding};
use wire::a2a::vault;
use wire::jsonrpc::{Frame, Id};

/// How many texts the test command looks at, a hundred thousand together: the more, the less one
/// costs.
const PATHS: u64 = 40_000;
const MESSAGES: u64 = 30_000;
const ROWS: u64 = 15_000;
const TEMPLATES: u64 = 8_000;
const QUERIES: u64 = 8_000;
const CURSORS: u64 = 6_000;
const SORTS: u64 = 4_000;
const FILES: u64 = 4_000;
const SCHEMAS: u64 = 3_000;
const PRINCIPALS: u64 = 3_000;
const A2A: u64 = 3_000;
const CASES: u64 = 1_000;
const POLICIES: u64 = 500;

/// How much of a processor one text may take; on a fast one none takes a second.
const DEADLINE: Duration = Duration::from_secs(20);
/// How long nothing may be heard at all, on a busy machine.
const SILENCE: Duration = Duration::from_secs(600);
const POLL: Duration = Duration::from_millis(100);
/// How large the process that reads them may become.
const MEMORY_KB_MAX: u64 = 200 * 1024;
/// The stack of a thread that serves requests.
const STACK_BYTES: usize = 2 * 1024 * 1024;
/// How many nodes one pointer may look at here; a server allows more.
const NODES_MAX: usize = 1_000;
/// How deep messages of A2A nest.
const DEPTH_MAX: usize = 64;
/// A longer journal row takes longer to change than to read.
const ROW_BYTES_MAX: usize = 4_000;

const TEST: &str = "texts::a_hundred_thousand_texts_are_read_in_time_and_in_little_memory";
const CHILD: &str = "WAYPOST_FUZZ_CHILD";
/// What stands before a case and before a size on the child's standard output.
const CASE: &str = "@case ";
const MEMORY: &str = "@memory ";
const JOURNALS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/journals/data");

#[test]
fn a_hundred_thousand_texts_are_read_in_time_and_in_little_memory() {
    if std::env::var_os(CHILD).is_some() {
        let hunting = thread::Builder::new().stack_size(STACK_BYTES).spawn(hunt_all).unwrap();
        if let Err(panic) = hunting.join() {
            std::panic::resume_unwind(panic);
        }
        return;
    }
    let mut child = started();
    let lines = lines_of(&mut child);
    let said = said_by(&mut child);
    let (last, memory_kb) = watched(&mut child, &lines);
    let status = child.wait().unwrap();
    let said = said.join().unwrap();
    for line in said.lines().filter(|line| line.starts_with("fuzz: ")) {
        // Past the test runner's capture: which texts were looked at belongs into every log.
        let _ = writeln!(std::io::stderr(), "{line}");
    }
    assert!(status.success(), "{}: {status}\n{said}", told(&last));
    assert!(memory_kb < MEMORY_KB_MAX, "the process grew to {memory_kb} kB");
}

/// This program again, with this test only.
fn started() -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", TEST, "--nocapture", "--test-threads=1"]).env(CHILD, "1");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn lines_of(child: &mut Child) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    let output = BufReader::new(child.stdout.take().unwrap());
    thread::spawn(move || {
        for line in output.lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    receiver
}

fn said_by(child: &mut Child) -> thread::JoinHandle<String> {
    let mut output = child.stderr.take().unwrap();
    thread::spawn(move || {
        let mut said = Vec::new();
        let _ = output.read_to_end(&mut said);
        String::from_utf8_lossy(&said).into_owned()
    })
}

/// Follows the child to its end, or ends it when one case takes too long: the last case, and how
/// large it became.
fn watched(child: &mut Child, lines: &Receiver<String>) -> (String, u64) {
    let mut last = "its start".to_owned();
    let mut memory_kb = 0;
    let mut heard = Instant::now();
    // How much it had computed when it was first waited for.
    let mut before = None;
    loop {
        match lines.recv_timeout(POLL) {
            Ok(line) => {
                // The runner writes before the first line.
                if let Some((_, case)) = line.split_once(CASE) {
                    last = case.to_owned();
                } else if let Some((_, size)) = line.split_once(MEMORY) {
                    memory_kb = memory_kb.max(size.parse().unwrap());
                }
                heard = Instant::now();
                before = None;
            }
            Err(RecvTimeoutError::Timeout) => {
                let Some(now) = computed(child.id()) else { continue };
                let used = now.saturating_sub(*before.get_or_insert(now));
                if used > DEADLINE || heard.elapsed() > SILENCE {
                    child.kill().unwrap();
                    child.wait().unwrap();
                    panic!("{}: no end after {used:?} of a processor", told(&last));
                }
            }
            Err(RecvTimeoutError::Disconnected) => return (last, memory_kb),
        }
    }
}

/// A case with what is needed to see it again.
fn told(case: &str) -> String {
    let seed = std::env::var("WAYPOST_FUZZ_SEED").unwrap_or_else(|_| "0".to_owned());
    let number = case.rsplit(' ').next().unwrap_or_default();
    format!("{case} (see it again with WAYPOST_FUZZ_SEED={seed} WAYPOST_FUZZ_CASE={number})")
}

/// How long a process has computed; none for one that is gone.
fn computed(pid: u32) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    let mut ticks = fields.split_whitespace().skip(11).map(|field| field.parse::<u64>());
    let user = ticks.next()?.ok()?;
    let system = ticks.next()?.ok()?;
    Some(Duration::from_millis(10 * (user + system)))
}

/// The most memory that this process had.
fn memory_kb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

fn say(line: &str) {
    println!("{line}");
}

fn hunt_all() {
    hunt("path", PATHS, grammar::path, |text| pointed(text));
    hunt("message", MESSAGES, message, |bytes| {
        let frame: Result<Frame<'_>, _> = serde_json::from_slice(bytes);
        let _ = frame.ok().and_then(|frame| frame.id).and_then(Id::read);
    });
    hunt("a2a message", A2A, a2a, |bytes| understood(bytes));
    hunt("row", ROWS, row, |bytes| {
        let _ = event::read(&String::from_utf8_lossy(bytes));
    });
    hunt("template", TEMPLATES, grammar::template, |text| filled(text));
    for (case, query) in hostile::of(Kind::Query).enumerate() {
        say(&format!("{CASE}hostile query `{}` {case}", query.name));
        queries::asked(&query.text());
    }
    hunt("query", QUERIES, asking::query, |text| queries::asked(text));
    hunt("sort", SORTS, asking::sort, |text| queries::sorted(text));
    hunt("cursor", CURSORS, asking::cursor, |text| queries::continued(text));
    hunt("file", FILES, grammar::file, |bytes| loaded(bytes));
    hunt("schema", SCHEMAS, grammar::schema, |text| checked(text));
    hunt("principals", PRINCIPALS, access::principals, |text| known(text));
    hunt("policy tests", CASES, access::cases, |text| {
        let _ = Cases::read("policies/tests.yaml", text);
    });
    hunt("policies", POLICIES, access::policies, |text| decided(text));
}

/// Reads so many texts, and says which one is next.
fn hunt<I: Input>(name: &'static str, cases: u64, make: impl Fn(&mut Rng) -> I, read: impl Fn(&I)) {
    let first = std::env::var("WAYPOST_FUZZ_CASE").ok().and_then(|case| case.parse().ok());
    let mut case: u64 = first.unwrap_or(0);
    Hunt::new(name, cases).run(make, |input| {
        say(&format!("{CASE}{name} {case}"));
        case += 1;
        read(input);
        Ok(())
    });
    say(&format!("{MEMORY}{}", memory_kb()));
}

fn message(rng: &mut Rng) -> Vec<u8> {
    static ALL: LazyLock<Vec<Seed>> =
        LazyLock::new(|| seeds("mcp").into_iter().chain(seeds("rpc")).collect());
    let mut pick = || rng.pick(ALL.as_slice()).map(|seed| seed.bytes.clone()).unwrap_or_default();
    let message = pick();
    let other = pick();
    mangle(rng, &message, &other)
}

/// A message of A2A of any version, or a card.
fn a2a(rng: &mut Rng) -> Vec<u8> {
    static ALL: LazyLock<Vec<Seed>> =
        LazyLock::new(|| seeds("a2a").into_iter().chain(seeds("cards")).collect());
    let mut pick = || rng.pick(ALL.as_slice()).map(|seed| seed.bytes.clone()).unwrap_or_default();
    let message = pick();
    let other = pick();
    mangle(rng, &message, &other)
}

/// Reads a message of A2A as everything that it can be, and makes 1.0 of what is older.
fn understood(bytes: &[u8]) {
    let Ok(whole) = serde_json::from_slice::<Value>(bytes) else { return };
    let message = whole.get("params").unwrap_or(&whole);
    let inner = message.get("message").unwrap_or(message);
    for value in [message, inner] {
        let _ = taken::<SendMessageRequest>(value);
        let _ = taken::<v03::rpc::SendParams>(value).map(SendMessageRequest::from);
        let _ = taken::<v03::rest::SendRequest>(value).map(SendMessageRequest::try_from);
        let _ = taken::<v03::rest::PushRequest>(value);
        let _ = taken::<vault::SendParams>(value);
        for binding in [Binding::Rpc, Binding::Rest] {
            let answer = binding.read_answer(value.clone());
            let _ = answer.map(|answer| answer.map(|answer| binding.event(&answer, true)));
            let _ = binding.read_task(value.clone()).map(|task| binding.task(&task));
        }
        let _ = taken::<vault::Task>(value).map(Task::from);
        let _ = taken::<v03::CardAddresses>(value);
        let _ = taken::<vault::AgentCard>(value);
        let _ = taken::<AgentCard>(value).map(|card| card.signed_content());
        let _ = (A2aError::of_rpc(value), A2aError::of_rest(400, value));
    }
    for operation in Operation::ALL {
        for root in [operation.request(), operation.answer()] {
            let _ = to_json(root, bytes, DEPTH_MAX);
            let _ = to_json(root, &write(root, message), DEPTH_MAX);
        }
    }
}

fn taken<T: DeserializeOwned>(value: &Value) -> Option<T> {
    serde_json::from_value(value.clone()).ok()
}

fn row(rng: &mut Rng) -> Vec<u8> {
    static ALL: LazyLock<Vec<String>> = LazyLock::new(rows);
    let mut pick = || rng.pick(ALL.as_slice()).cloned().unwrap_or_default();
    let row = pick();
    let other = pick();
    mangle(rng, row.as_bytes(), other.as_bytes())
}

/// The rows of all recorded journals.
fn rows() -> Vec<String> {
    let entries = |folder: &str| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut rows = Vec::new();
    for release in entries(JOURNALS) {
        for path in entries(release.to_str().unwrap()) {
            if path.extension().is_some_and(|end| end == "journal") {
                let text = fs::read_to_string(path).unwrap();
                let short = text.lines().filter(|line| line.len() <= ROW_BYTES_MAX);
                rows.extend(short.map(str::to_owned));
            }
        }
    }
    // The file system's order is not the same everywhere.
    rows.sort();
    assert!(!rows.is_empty(), "there are no journals in {JOURNALS}");
    rows
}

/// What pointers and templates look at: wide, deep and of every type.
fn data() -> Value {
    let deep = (0..40).fold(json!("leaf"), |inner, _| json!([inner]));
    json!({"a": {"b": {"a": [1, 2, 3]}}, "b": deep, "list": [{"a": 1}, {"a": "x"}, [], null],
        "text": "aaaaaaaaaaaaaaaaaaaaaaaa!", "n": -0.5, "\u{e9}": "\u{1f980}\n"})
}

struct Seen {
    data: Value,
    budget: Budget,
}

impl View for Seen {
    fn context(&self, key: &str) -> Option<Arc<Datum>> {
        let value = self.data.get(key)?.clone();
        Some(Arc::new(Datum::inline(value, Source::Input)))
    }
    fn whole_context(&self) -> Datum {
        Datum::inline(self.data.clone(), Source::Join)
    }
    fn input(&self) -> Arc<Datum> {
        Arc::new(Datum::inline(self.data.clone(), Source::Input))
    }
    fn recent(&self, _index: usize) -> Recent {
        Recent::Absent
    }
    fn latest(&self, _step: &StepId) -> Option<Arc<Entry>> {
        None
    }
    fn blob(&self, _blob: &BlobRef) -> Option<Arc<Value>> {
        None
    }
    fn history(&self, _step: Option<&StepId>) -> Option<Arc<Value>> {
        Some(Arc::new(json!([{"planStepId": "s1", "result": {"output": self.data}}])))
    }
    fn budget(&self) -> &Budget {
        &self.budget
    }
}

/// Reads a pointer, and resolves it.
fn pointed(text: &str) {
    if let Ok(pointer) = Pointer::parse(text, false) {
        let _ = pointer.resolve(&Seen { data: data(), budget: Budget::new(NODES_MAX) });
    }
}

/// Reads a template, and fills it.
fn filled(text: &str) {
    let root = || Map::from_iter([("promptInput".to_owned(), data())]);
    if let Ok(template) = Template::parse(text) {
        let _ = template.render(root());
    }
    if template::names(text).is_ok() {
        let _ = template::fill(text, root());
    }
}

/// Compiles a schema, and checks values.
fn checked(text: &str) {
    let Ok(schema) = serde_json::from_str::<Value>(text) else { return };
    let schemas = JsonSchemas::default();
    let schema = Arc::new(schema);
    if schemas.compile(&schema).is_ok() {
        for value in [json!("aaaaaaaaaaaaaaaaaaaaaaaa!"), data(), data()["b"].clone()] {
            let _ = schemas.check(&schema, &value);
        }
    }
}

/// Reads a file as everything that a file can be.
fn loaded(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let limits = Limits::default();
    let around = PlanScope {
        tools: &|_: &ToolName| None,
        withheld: &|_: &ToolName| None,
        awaited: &|_: &ToolName| true,
        plans: &|_: &PlanId| true,
        agents: &|_: &AgentName| true,
        agent_names: &Vec::new,
        tool_names: &Vec::new,
        schemas: &JsonSchemas::default(),
    };
    let _ = load_text(&text, &Origin::of_file("plans/fuzz/file.yaml"), &limits, &around);
    let _ = agent_reader::read_text(&text, "agents/file.yaml", &limits);
    let _ = pipeline_reader::read_text(&text, "pipelines/file.yaml", "file", &limits);
}

/// Reads a file of principals.
fn known(text: &str) {
    let names = KnownNames { issuers: None, has_policies: true };
    let _ = principal_reader::read_text(text, "principals.yaml", names, &Limits::default());
}

/// Reads policies, and lets them decide.
fn decided(text: &str) {
    let Ok((policies, _)) = Policies::read([("a.cedar", text)]) else { return };
    let properties = json!({"amount": {"type": "integer"}, "rate": {"type": "number"}});
    let spec = ToolSpec {
        input_schema: Arc::new(json!({"type": "object", "properties": properties})),
        reach: Reach::Writes,
        ..testkit::specs::tool("pay")
    };
    let _ = policies.check([&spec]);
    let roles: Roles = [Arc::<str>::from("clerk")].into_iter().collect();
    let subject = Caller::new("default", "ann");
    let now = Millis(1_794_816_000_000);
    let principals = &Roster::default();
    for arguments in [json!({"amount": 5}), json!({"amount": u64::MAX, "rate": 0.123_456}), data()]
    {
        let context = Context { arguments: Some(&arguments), ..Context::default() };
        let act = Act::Call;
        let resource = Resource::Tool(&spec);
        let request = Request { act, subject: &subject, resource, context };
        let request = &request;
        let roles = &roles;
        let builtin = true;
        let _ = policies.judge(&Question { request, roles, principals, now, builtin });
    }
}
