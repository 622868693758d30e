//! A server behind ours whose calls are recorded, as every server is found: who calls its tools
//! through us sees what it would see without us, but for our own words in `_meta`. The server is
//! one of ours with scripted tools, so that both can be asked in both eras. `WAYPOST_SIM_SEED` has
//! the random tools made of that seed.

use crate::house::{ADDRESS, Answer, House, text, wait_for};
use crate::mcp_client::{Client, Events, LIMIT, ask, asked, posted};
use axum::Router;
use axum::body::Body;
use axum::http::header::HOST;
use axum::http::{HeaderValue, Request, Response};
use axum::middleware::map_request;
use futures::future::BoxFuture;
use kernel::contracts::Tool;
use kernel::contracts::shelf::{Shelf, ShelfFuture};
use kernel::tool::call::{
    Call, CallUpdate, Caller, InputRequest, InputRequired, InputResponses, LogLevel, OutputKind,
    ToolError, ToolOutput, ToolSpec,
};
use project::config::Config;
use project::folder::Project;
use serde_json::{Map, Value, json};
use server::Extra;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use testkit::sim::rng::Rng;
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};

/// How many random tools are called in each setting.
const TOOLS: u64 = 10;
/// How the one server is configured at the other where random tools are called, and whether every
/// call is a run there: within an era, between two, without a journal, trusted.
const SETTINGS: [(&str, bool); 5] = [
    ("era = \"auto\"", true),
    (STATELESS_ONLY, true),
    (HANDSHAKE_ONLY, true),
    ("journal = false", false),
    ("trusted = true", false),
];
const STATELESS_ONLY: &str = "era = \"2026\"";
const HANDSHAKE_ONLY: &str = "era = \"2025\"";
/// How often a client answers what one call asks.
const ROUNDS_MAX: usize = 4;

/// How a call ends.
#[derive(Clone)]
enum End {
    /// With this result.
    Output(Value),
    /// With a result that says that it failed.
    Failed(Value),
    /// With an error of the protocol.
    Refused(Value),
    /// With the era in which it was called.
    Era,
}

/// What a tool does.
#[derive(Clone)]
struct Script {
    notes: Vec<CallUpdate>,
    wants: BTreeMap<String, InputRequest>,
    /// What it wants once it has that.
    then: BTreeMap<String, InputRequest>,
    output_schema: Option<Value>,
    /// How its server lists it, where it says more of it than we know of tools.
    listed: Option<Value>,
    end: End,
}

impl Script {
    fn ending(end: End) -> Self {
        let notes = Vec::new();
        let wants = BTreeMap::new();
        let then = BTreeMap::new();
        Self { notes, wants, then, output_schema: None, listed: None, end }
    }

    fn asks(&self) -> bool {
        !self.wants.is_empty() || !self.then.is_empty()
    }
}

struct Scripted {
    spec: Arc<ToolSpec>,
    script: Script,
}

impl Scripted {
    fn tool(name: &str, script: Script) -> Arc<dyn Tool> {
        let spec = Arc::new(ToolSpec {
            description: "for a test".to_owned(),
            output_schema: script.output_schema.clone().map(Arc::new),
            idempotent: true,
            yields: OutputKind::Content,
            listed: script.listed.clone().map(Arc::new),
            ..testkit::specs::tool(name)
        });
        Arc::new(Self { spec, script })
    }

    fn act(&self, call: &Call) -> Result<ToolOutput, ToolError> {
        let Script { notes, wants, then, end, .. } = &self.script;
        let InputResponses { inputs, refused, .. } = &*call.given;
        if inputs.is_empty() && refused.is_empty() {
            notes.iter().for_each(|told| call.teller.tell(told.clone()));
        }
        let is_settled = |key: &String| inputs.contains_key(key) || refused.contains_key(key);
        if let Some(round) = [wants, then].into_iter().find(|round| !round.keys().all(is_settled)) {
            let wants = InputRequired { inputs: round.clone(), state: json!({"handed": "out"}) };
            return Ok(ToolOutput::Wants(Box::new(wants)));
        }
        match end.clone() {
            End::Output(mut output) => {
                let blocks = output["content"].as_array_mut().unwrap();
                for said in [inputs, refused] {
                    blocks.push(json!({"type": "text", "text": json!(said).to_string()}));
                }
                Ok(ToolOutput::Value(output))
            }
            End::Failed(result) => Err(ToolError::failed("Failed", "it failed").content(result)),
            End::Refused(error) => Err(ToolError::failed("Refused", "it refused").answered(error)),
            End::Era => {
                let era = if call.can.handshake { "handshake" } else { "stateless" };
                Ok(ToolOutput::Value(json!({"content": [{"type": "text", "text": era}]})))
            }
        }
    }
}

impl Tool for Scripted {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        _caller: &'a Caller,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move { self.act(call) })
    }
}

/// A server with these tools, and one that has it behind it without trusting it.
struct Pair {
    direct: House,
    through: House,
}

impl Pair {
    async fn of(tools: Vec<(&str, Script)>) -> Self {
        Self::speaking("auto", tools).await
    }

    /// The same, with the era in which the one speaks to the other.
    async fn speaking(era: &str, tools: Vec<(&str, Script)>) -> Self {
        Self::set(&format!("era = \"{era}\""), tools).await
    }

    /// The same, with what the settings of the one say of the other.
    async fn set(setting: &str, tools: Vec<(&str, Script)>) -> Self {
        let last = tools.last().unwrap().0.to_owned();
        let tools = tools.into_iter().map(|(name, script)| Scripted::tool(name, script)).collect();
        let extra = Extra { tools, ..Extra::default() };
        let direct = House::furnished(Project::demo(), extra).await;
        let entry = format!("prefix = \"it.\"\n{setting}\n");
        let through = before(direct.router(), &entry, &format!("it.{last}")).await;
        Self { direct, through }
    }

    /// What a client of each era sees of a tool without us and through us.
    async fn same(&self, name: &str, what: &str) -> [Vec<Value>; 2] {
        [self.same_stateless(name, what).await, self.same_in_session(name, what).await]
    }

    async fn same_stateless(&self, name: &str, what: &str) -> Vec<Value> {
        let direct = stateless(&self.direct, name, &can()).await;
        let seen = stateless(&self.through, &format!("it.{name}"), &can()).await;
        assert_eq!(seen, direct, "{what}, stateless");
        direct
    }

    async fn same_in_session(&self, name: &str, what: &str) -> Vec<Value> {
        let direct = in_session(&self.direct, name, &can()).await;
        let seen = in_session(&self.through, &format!("it.{name}"), &can()).await;
        assert_eq!(seen, direct, "{what}, in a session");
        direct
    }
}

/// A server that has another one behind it, of which its settings say this; it has this tool of it.
pub async fn before(direct: Router, entry: &str, tool: &str) -> House {
    let url = listening(direct).await;
    let settings = format!("[mcp.servers.far]\nurl = \"{url}\"\n{entry}");
    let config = Config::parse("waypost.toml", &settings).unwrap();
    let through = House::build(Project { config, ..Project::demo() }, None).await;
    let path = format!("/api/v1/tools/{tool}");
    let known = async {
        while through.get(&path).await.status != 200 {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(LIMIT, known).await.expect("the tools of the server behind are in the catalog");
    through
}

/// The address at which this server listens for MCP.
pub async fn listening(direct: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    // It believes to listen elsewhere.
    let known = |mut request: Request<Body>| async move {
        request.headers_mut().insert(HOST, HeaderValue::from_static(ADDRESS));
        request
    };
    let router = direct.layer(map_request(known));
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

/// A resource that its server does not list.
struct Hidden;

const HIDDEN: &str = "far://hidden";

impl Shelf for Hidden {
    fn read<'a>(&'a self, _caller: &'a Caller, uri: &'a str) -> ShelfFuture<'a, Vec<Value>> {
        let contents = (uri == HIDDEN).then(|| vec![json!({"uri": uri, "text": "here"})]);
        Box::pin(std::future::ready(Ok(contents)))
    }
}

/// All that a client can.
fn can() -> Value {
    json!({"elicitation": {"form": {}}, "sampling": {}, "roots": {}})
}

/// The answer to a question, which need not fit it.
fn answer(method: &str, params: &Value) -> Value {
    match method {
        "sampling/createMessage" => {
            json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "hi"}})
        }
        "roots/list" => json!({"roots": [{"uri": "file:///w", "name": "w"}]}),
        _ => match params["message"].as_str() {
            Some("decline") => json!({"action": "decline"}),
            Some("misfit") => json!({"action": "accept", "content": {"name": 7}}),
            _ => json!({"action": "accept", "content": {"name": "Ann"}}),
        },
    }
}

/// The error with which a client in a session answers a question, if it does; the stateless version
/// has no errors there.
fn client_error(params: &Value) -> Option<Value> {
    let refuses = params["message"] == "error" || params["x"] == "error";
    refuses.then(|| json!({"code": -1, "message": "the user said no", "data": {"why": [1]}}))
}

/// A message without what differs from call to call, and without our own words.
fn plain(mut message: Value) -> Value {
    let members = message.as_object_mut().unwrap();
    members.remove("id");
    members.remove("jsonrpc");
    if let Some(result) = members.get_mut("result").and_then(Value::as_object_mut) {
        result.remove("requestState");
        if let Some(meta) = result.get_mut("_meta").and_then(Value::as_object_mut) {
            meta.retain(|key, _| !key.starts_with("waypost/") && !key.ends_with("/serverInfo"));
            if meta.is_empty() {
                result.remove("_meta");
            }
        }
    }
    message
}

/// All messages of an answer, which may be a stream.
async fn messages(response: Response<Body>) -> Vec<Value> {
    if response.headers()["content-type"] == "text/event-stream" {
        let events = Events::of(response).rest().await;
        return events.into_iter().map(|event| event.data).filter(|data| !data.is_null()).collect();
    }
    vec![crate::house::read(response).await.body]
}

/// A call of 2026-07-28 to its end: all that the client gets and is asked.
async fn stateless(house: &House, name: &str, can: &Value) -> Vec<Value> {
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": can,
        "io.modelcontextprotocol/logLevel": "notice", "progressToken": "token"});
    let mut params = json!({"name": name, "arguments": {}, "_meta": meta});
    let headers =
        [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", name)];
    let mut seen = Vec::new();
    for _ in 0..ROUNDS_MAX {
        let request = posted(&headers, &asked(1, "tools/call", params.clone()));
        let response = timeout(LIMIT, house.open(request)).await.expect("an answer in time");
        let messages = timeout(LIMIT, messages(response)).await.expect("the whole answer in time");
        let result = messages.last().unwrap()["result"].clone();
        seen.extend(messages.into_iter().map(plain));
        if result["resultType"] != "input_required" {
            return seen;
        }
        let requests = result["inputRequests"].as_object().unwrap();
        let given = |(key, request): (&String, &Value)| {
            (key.clone(), answer(request["method"].as_str().unwrap(), &request["params"]))
        };
        params["inputResponses"] = Value::Object(requests.iter().map(given).collect());
        params["requestState"] = result["requestState"].clone();
    }
    panic!("it asks for ever: {seen:?}");
}

/// A call of 2025-11-25 to its end.
async fn in_session(house: &House, name: &str, can: &Value) -> Vec<Value> {
    let client = Client::hello(house, "2025-11-25", can.clone()).await;
    let level = client.ask("logging/setLevel", json!({"level": "notice"})).await;
    assert_eq!(level.body["result"], json!({}), "{level:?}");
    let params = json!({"name": name, "arguments": {}, "_meta": {"progressToken": "token"}});
    let request = client.request(&asked(7, "tools/call", params));
    let response = timeout(LIMIT, house.open(request)).await.expect("an answer in time");
    if response.headers()["content-type"] != "text/event-stream" {
        return messages(response).await.into_iter().map(plain).collect();
    }
    let mut events = Events::of(response);
    let mut seen = Vec::new();
    while let Some(event) = events.next().await {
        let message = event.data;
        if let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) {
            let mut answered = json!({"jsonrpc": "2.0", "id": id});
            match client_error(&message["params"]) {
                Some(error) => answered["error"] = error,
                None => answered["result"] = answer(method, &message["params"]),
            }
            assert_eq!(client.send(&answered).await.status, 202);
        }
        if !message.is_null() {
            seen.push(plain(message));
        }
    }
    seen
}

/// How the random tools of a server are listed to a client of each era, without what their names
/// begin with.
async fn listed(house: &House, prefix: &str) -> [Vec<Value>; 2] {
    let stateless = ask(house, "tools/list", json!({})).await.body;
    let client = Client::hello(house, "2025-11-25", can()).await;
    let session = client.ask("tools/list", json!({})).await.body;
    [stateless, session].map(|list| {
        let tools = list["result"]["tools"].as_array().unwrap().iter();
        let random = tools.filter_map(|tool| {
            let name = tool["name"].as_str()?.strip_prefix(prefix)?;
            let mut tool = tool.clone();
            tool["name"] = json!(name);
            name.starts_with("tool").then_some(tool)
        });
        random.collect()
    })
}

/// A form whose message says how the client answers it.
fn form(message: &str) -> InputRequest {
    let name = json!({"type": "string", "title": "Name", "x-kept": [1, null]});
    // The client leaves this out, and no one fills it in for it.
    let age = json!({"type": "integer", "default": 30});
    let fields = json!({"name": name, "age": age});
    let schema = json!({"type": "object", "properties": fields, "required": ["name"]});
    InputRequest::Form { message: message.to_owned(), schema: Arc::new(schema) }
}

fn sample() -> InputRequest {
    turn(json!({}))
}

/// A turn of the client's model, with a member that says whether the client refuses.
fn turn(x: Value) -> InputRequest {
    let messages = json!([{"role": "user", "content": {"type": "text", "text": "say hi"}}]);
    InputRequest::Sample {
        request: Arc::new(json!({"messages": messages, "maxTokens": 9, "x": x})),
    }
}

/// Random tools, all out of one seed.
struct Dice {
    rng: Rng,
    /// Whether clients may answer with errors.
    errors: bool,
}

impl Dice {
    fn script(&mut self) -> Script {
        let mut wants = BTreeMap::new();
        if self.rng.chance(40) {
            wants.insert("who \u{e9}".to_owned(), self.form());
        }
        if self.rng.chance(25) {
            let refuses = self.errors && self.rng.chance(30);
            wants.insert("turn".to_owned(), turn(if refuses { json!("error") } else { json!({}) }));
        }
        if self.rng.chance(25) {
            wants.insert("a/folders".to_owned(), InputRequest::Roots);
        }
        let mut then = BTreeMap::new();
        if self.rng.chance(30) {
            then.insert("again".to_owned(), self.form());
        }
        let notes = (0..self.rng.below(4)).map(|number| self.note(number)).collect();
        let end = match self.rng.below(3) {
            0 => End::Output(self.result()),
            1 => End::Failed(self.result()),
            _ => End::Refused(self.error()),
        };
        // What it gives may break this.
        let schema =
            json!({"type": "object", "properties": {"n": {"type": "integer", "maximum": 50}}});
        let output_schema = self.rng.chance(30).then_some(schema);
        Script { notes, wants, then, output_schema, listed: Some(self.listed()), end }
    }

    fn form(&mut self) -> InputRequest {
        let answers: &[&str] = match self.errors {
            true => &["accept", "decline", "misfit", "error"],
            false => &["accept", "decline", "misfit"],
        };
        form(self.rng.pick(answers).unwrap())
    }

    fn listed(&mut self) -> Value {
        let mut listed = json!({"description": "for a test"});
        if self.rng.chance(50) {
            listed["title"] = json!("a title \u{e9}");
        }
        if self.rng.chance(70) {
            let reads = self.rng.chance(50);
            let open = self.rng.chance(50);
            listed["annotations"] = json!({"title": "its own", "readOnlyHint": reads,
                "openWorldHint": open, "x-kept": [null]});
        }
        if self.rng.chance(50) {
            listed["_meta"] = json!({"far.test/x": {"n": self.rng.below(9)}});
        }
        if self.rng.chance(50) {
            listed["icons"] = json!([{"src": "data:image/png;base64,AA==", "sizes": ["1x1"]}]);
        }
        listed
    }

    fn note(&mut self, number: u64) -> CallUpdate {
        let levels = [LogLevel::Debug, LogLevel::Notice, LogLevel::Error];
        match self.rng.chance(50) {
            true => CallUpdate::Progress {
                progress: number as f64 + 0.5,
                total: self.rng.chance(50).then_some(9.0),
                message: self.rng.chance(50).then(|| format!("note {number}")),
            },
            false => CallUpdate::Log {
                level: *self.rng.pick(&levels).unwrap(),
                logger: self.rng.chance(50).then(|| "far".to_owned()),
                data: json!({"number": number}),
            },
        }
    }

    fn result(&mut self) -> Value {
        let blocks: Vec<Value> = (0..self.rng.below(4)).map(|_| self.block()).collect();
        let mut result = json!({"content": blocks});
        if self.rng.chance(50) {
            result["structuredContent"] = json!({"n": self.rng.below(100), "null": null});
        }
        if self.rng.chance(50) {
            result["_meta"] = json!({"far.test/x": [self.rng.below(9)]});
        }
        if self.rng.chance(30) {
            result["later"] = json!({"kept": true});
        }
        result
    }

    fn block(&mut self) -> Value {
        let mut block = match self.rng.below(5) {
            0 => json!({"type": "text", "text": "a\n\u{2028}\"b\""}),
            1 => json!({"type": "image", "data": "AA==", "mimeType": "image/png"}),
            2 => json!({"type": "resource_link", "uri": "far://x", "name": "x"}),
            3 => json!({"type": "audio", "data": "AA==", "mimeType": "audio/wav"}),
            _ => json!({"type": "resource", "resource": {"uri": "far://y", "text": "y"}}),
        };
        if self.rng.chance(50) {
            block["annotations"] = json!({"audience": ["user"], "priority": 0.5});
        }
        block
    }

    fn error(&mut self) -> Value {
        let codes = [-32600, -32602, -32603, -32001, 7];
        let mut error = json!({"code": self.rng.pick(&codes).unwrap(), "message": "no \u{1f512}"});
        if self.rng.chance(70) {
            error["data"] = json!({"why": [self.rng.below(9), null]});
        }
        error
    }
}

#[tokio::test]
async fn a_call_looks_as_it_would_without_us() {
    let one: Option<u64> =
        std::env::var("WAYPOST_SIM_SEED").ok().and_then(|seed| seed.parse().ok());
    for (number, (setting, is_recorded)) in (1..).zip(SETTINGS) {
        let seed = one.unwrap_or(number);
        // An answer to a stateless server has no place for an error.
        let mut dice = Dice { rng: Rng::new(seed), errors: setting != STATELESS_ONLY };
        let scripts: Vec<(String, Script)> =
            (0..TOOLS).map(|number| (format!("tool{number:02}"), dice.script())).collect();
        let tools = scripts.iter().map(|(name, script)| (name.as_str(), script.clone())).collect();
        let pair = Pair::set(setting, tools).await;
        let of_seed = format!("`{setting}`, of WAYPOST_SIM_SEED={seed}");
        let there = listed(&pair.direct, "").await;
        assert_eq!(there[0].len() as u64, TOOLS);
        assert_eq!(listed(&pair.through, "it.").await, there, "the lists with {of_seed}");
        for (name, script) in &scripts {
            let what = format!("{name} with {of_seed}");
            pair.same_in_session(name, &what).await;
            // A server with a handshake asks one thing after the other, and has no keys.
            if setting != HANDSHAKE_ONLY || !script.asks() {
                pair.same_stateless(name, &what).await;
            }
        }
        let sessions = pair.through.get("/api/v1/sessions?limit=100").await.body;
        let runs = sessions["items"].as_array().unwrap().len() as u64;
        assert!(!is_recorded || runs >= TOOLS, "each call is a run: {runs} with {of_seed}");
    }
}

#[tokio::test]
async fn an_error_of_a_client_reaches_the_server_that_asked() {
    let wants = BTreeMap::from([
        ("turn".to_owned(), turn(json!("error"))),
        ("who".to_owned(), form("error")),
    ]);
    let listed = Some(json!({"description": "goes on without"}));
    let end = End::Output(json!({"content": []}));
    let script = Script { wants, listed, ..Script::ending(end) };
    for setting in ["journal = true", "journal = false"] {
        let pair = Pair::set(setting, vec![("asking", script.clone())]).await;
        let seen = pair.same_in_session("asking", setting).await;
        let refused = text(&seen.last().unwrap()["result"]["content"][1]["text"]);
        let refused: Value = serde_json::from_str(&refused).unwrap();
        for key in ["turn", "who"] {
            assert_eq!(refused[key]["message"], "the user said no", "{setting}: {seen:?}");
        }
    }
    // There is no place for it: the call ends with it.
    let pair = Pair::set(STATELESS_ONLY, vec![("asking", script)]).await;
    let seen = in_session(&pair.through, "it.asking", &can()).await;
    assert_eq!(seen.last().unwrap()["error"]["code"], -1, "{seen:?}");
}

#[tokio::test]
async fn a_recorded_call_is_made_in_the_era_of_its_client() {
    for (setting, expected, of_others) in [
        ("auto", ["stateless", "handshake"], "stateless"),
        ("2025", ["handshake", "handshake"], "handshake"),
        ("2026", ["stateless", "stateless"], "stateless"),
    ] {
        let pair = Pair::speaking(setting, vec![("era", Script::ending(End::Era))]).await;
        let house = &pair.through;
        let seen =
            [stateless(house, "it.era", &can()).await, in_session(house, "it.era", &can()).await];
        let eras = seen.map(|seen| text(&seen.last().unwrap()["result"]["content"][0]["text"]));
        assert_eq!(eras, expected, "{setting}");
        let called = house.post("/api/v1/tools/it.era/call", json!({"arguments": {}})).await;
        assert_eq!(called.body["result"]["content"][0]["text"], of_others, "{called:?}");
    }
}

#[tokio::test]
async fn an_output_that_is_no_object_is_carried_as_each_era_wants_it() {
    let output = json!({"content": [], "structuredContent": 7});
    let schema = json!({"type": "number"});
    let script = Script { output_schema: Some(schema), ..Script::ending(End::Output(output)) };
    let pair = Pair::of(vec![("counting", script)]).await;
    let [stateless, session] = pair.same("counting", "counting").await;
    assert_eq!(stateless.last().unwrap()["result"]["structuredContent"], json!(7));
    let carried = &session.last().unwrap()["result"]["structuredContent"];
    assert_eq!(*carried, json!({"result": 7}));
}

#[tokio::test]
async fn progress_logs_questions_and_failures_pass_through_a_run() {
    let blocks = json!([{"type": "text", "text": "first"}, {"type": "text", "text": "second"},
        {"type": "image", "data": "AA==", "mimeType": "image/png"}]);
    let failed = json!({"content": blocks, "structuredContent": {"code": 3}, "isError": true,
        "_meta": {"far.test/x": 1}});
    let progress = CallUpdate::Progress { progress: 1.0, total: Some(2.0), message: None };
    let line = |level| CallUpdate::Log { level, logger: None, data: json!("line") };
    let telling = Script {
        notes: vec![progress, line(LogLevel::Info), line(LogLevel::Warning)],
        wants: BTreeMap::from([
            ("who".to_owned(), form("accept")),
            ("turn".to_owned(), sample()),
            ("roots".to_owned(), InputRequest::Roots),
        ]),
        ..Script::ending(End::Output(json!({"content": []})))
    };
    let refused = json!({"code": -32001, "message": "no", "data": {"why": 1}});
    let pair = Pair::of(vec![
        ("telling", telling),
        ("failing", Script::ending(End::Failed(failed.clone()))),
        ("refusing", Script::ending(End::Refused(refused.clone()))),
    ])
    .await;
    let [stateless, session] = pair.same("telling", "telling").await;
    let methods = |seen: &[Value]| -> Vec<String> {
        seen.iter().map(|message| text(&message["method"])).collect()
    };
    let told = ["notifications/progress", "notifications/message"];
    assert_eq!(methods(&stateless)[..2], told, "the line at `info` is not wanted: {stateless:?}");
    assert_eq!(stateless[0]["params"]["progressToken"], "token");
    let asked: Vec<&String> =
        stateless[2]["result"]["inputRequests"].as_object().unwrap().keys().collect();
    assert_eq!(asked, ["roots", "turn", "who"], "the keys are the tool's own");
    let questions = ["roots/list", "sampling/createMessage", "elicitation/create"];
    assert_eq!(methods(&session)[2..5], questions, "{session:?}");
    for seen in pair.same("failing", "failing").await {
        let result = &seen.last().unwrap()["result"];
        for key in ["content", "structuredContent", "isError", "_meta"] {
            assert_eq!(result[key], failed[key], "{key}");
        }
    }
    for seen in pair.same("refusing", "refusing").await {
        assert_eq!(seen.last().unwrap()["error"], refused);
    }
}

#[tokio::test]
async fn missing_capabilities_are_refused_as_without_us() {
    let wants = BTreeMap::from([("turn".to_owned(), sample())]);
    let script = Script { wants, ..Script::ending(End::Output(json!({"content": []}))) };
    let none = json!({});
    // A stateless server refuses the call itself; one with a handshake asks, and fails without.
    for era in ["2026", "2025"] {
        let pair = Pair::speaking(era, vec![("sampling", script.clone())]).await;
        let direct = stateless(&pair.direct, "sampling", &none).await;
        assert_eq!(direct.last().unwrap()["error"]["code"], -32021, "{direct:?}");
        assert_eq!(stateless(&pair.through, "it.sampling", &none).await, direct, "{era}");
        let open = pair.through.get("/api/v1/asks?status=open").await.body;
        assert_eq!(open["items"], json!([]), "nobody is asked in its place");
    }
}

#[tokio::test]
async fn a_form_is_refused_to_the_server_of_a_client_in_a_session_that_shows_none() {
    let wants = BTreeMap::from([("who".to_owned(), form("accept"))]);
    let script = Script { wants, ..Script::ending(End::Output(json!({"content": []}))) };
    let pair = Pair::of(vec![("asking", script)]).await;
    let seen = in_session(&pair.through, "it.asking", &json!({"sampling": {}})).await;
    // The server passes on how its own caller, which is us, refused.
    assert_eq!(seen.last().unwrap()["error"]["code"], -32601, "{seen:?}");
    let open = pair.through.get("/api/v1/asks?status=open").await.body;
    assert_eq!(open["items"], json!([]), "nobody is asked in its place");
}

#[tokio::test]
async fn an_answer_that_comes_before_the_question_is_passed_on() {
    let wants = BTreeMap::from([("who".to_owned(), form("accept"))]);
    let script = Script { wants, ..Script::ending(End::Output(json!({"content": []}))) };
    let pair = Pair::of(vec![("asking", script)]).await;
    let given = json!({"action": "accept", "content": {"name": "Ann"}});
    for (house, name) in [(&pair.direct, "asking"), (&pair.through, "it.asking")] {
        let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": can()});
        let params = json!({"name": name, "inputResponses": {"who": given}, "_meta": meta});
        let headers = [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", name),
        ];
        let request = posted(&headers, &asked(1, "tools/call", params));
        let response = timeout(LIMIT, house.open(request)).await.expect("an answer in time");
        let result = messages(response).await.remove(0)["result"].clone();
        assert_eq!(result["resultType"], "complete", "{name}: {result}");
        assert!(text(&result["content"][0]["text"]).contains("Ann"), "{name}: {result}");
    }
}

#[tokio::test]
async fn an_output_that_breaks_its_own_schema_is_passed_on_with_a_word() {
    let output = json!({"content": [], "structuredContent": {"n": "seven"}});
    let schema = json!({"type": "object", "properties": {"n": {"type": "number"}}});
    let script = Script { output_schema: Some(schema), ..Script::ending(End::Output(output)) };
    let pair = Pair::of(vec![("lying", script)]).await;
    for seen in pair.same("lying", "lying").await {
        assert_eq!(seen.last().unwrap()["result"]["structuredContent"], json!({"n": "seven"}));
    }
    let called = pair.through.post("/api/v1/tools/it.lying/call", json!({"arguments": {}})).await;
    let misfit = &called.body["result"]["_meta"]["waypost/misfit"];
    assert!(text(misfit).contains("/n"), "{called:?}");
}

#[tokio::test]
async fn a_question_of_a_client_that_is_gone_waits_in_the_inbox() {
    let wants = BTreeMap::from([("turn".to_owned(), sample()), ("who".to_owned(), form("accept"))]);
    let script = Script { wants, ..Script::ending(End::Output(json!({"content": []}))) };
    let pair = Pair::of(vec![("asking", script)]).await;
    let house = &pair.through;
    let client = Client::hello(house, "2025-11-25", can()).await;
    let call = client.request(&asked(7, "tools/call", json!({"name": "it.asking"})));
    let mut events = Events::of(timeout(LIMIT, house.open(call)).await.unwrap());
    let mut question = Value::Null;
    while question.is_null() {
        question = events.next().await.expect("a question").data;
    }
    assert_eq!(question["method"], "sampling/createMessage", "{question}");
    drop(events);
    assert_eq!(client.end().await.status, 204);
    for content in [
        json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "hi"}}),
        json!({"name": "Eve"}),
    ] {
        let open = house.get("/api/v1/asks?status=open").await.body;
        let ask = text(&open["items"][0]["id"]);
        let reply = async |content: Value| {
            let reply = json!({"action": "accept", "content": content});
            house.post(&format!("/api/v1/asks/{ask}"), reply).await
        };
        let misfit = reply(json!({"n": 1})).await;
        assert_eq!(misfit.status, 422, "who answers here is held to the form: {misfit:?}");
        let answered = reply(content).await;
        assert!(answered.status < 300, "{answered:?}");
    }
    let sessions = "/api/v1/sessions?limit=1";
    let is_completed = |listed: &Answer| listed.body["items"][0]["status"] == "completed";
    wait_for("the run to complete", async || house.get(sessions).await, is_completed).await;
}

#[tokio::test]
async fn a_server_whose_names_are_ours_is_asked_for_what_it_does_not_list() {
    let tools = vec![Scripted::tool("era", Script::ending(End::Era))];
    let extra = Extra { tools, shelves: vec![Arc::new(Hidden)], ..Extra::default() };
    let direct = House::furnished(Project::demo(), extra).await;
    let read = async |house: &House, uri: &str| {
        ask(house, "resources/read", json!({"uri": uri})).await.body
    };
    let expected = read(&direct, HIDDEN).await["result"]["contents"].clone();
    assert_eq!(expected[0]["text"], "here");
    let transparent = before(direct.router(), "prefix = \"\"\n", "era").await;
    assert_eq!(read(&transparent, HIDDEN).await["result"]["contents"], expected);
    let prefixed = before(direct.router(), "prefix = \"it.\"\n", "it.era").await;
    for (house, uri) in [(&prefixed, HIDDEN), (&transparent, "far://nothing")] {
        let refused = read(house, uri).await;
        assert_eq!(refused["error"]["data"]["uri"], uri, "{refused}");
    }
}

/// Where results are compared, nothing of ours may be left out by mistake.
#[test]
fn only_our_own_words_are_left_out() {
    let meta: Map<String, Value> =
        [("waypost/run", 1), ("io.modelcontextprotocol/serverInfo", 2), ("far.test/waypost/x", 3)]
            .map(|(key, value)| (key.to_owned(), json!(value)))
            .into_iter()
            .collect();
    let message = json!({"id": 1, "jsonrpc": "2.0", "result": {"content": [], "_meta": meta}});
    let left = json!({"result": {"content": [], "_meta": {"far.test/waypost/x": 3}}});
    assert_eq!(plain(message), left);
}
