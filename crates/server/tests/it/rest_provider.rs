//! A REST provider made from our own document calls our own server, over a real socket.

use crate::house::{assembled, text};
use engine::catalog::schema::JsonSchemas;
use engine::system::clock::{SystemClock, SystemEntropy, TokioSpawn};
use kernel::contracts::Tool;
use kernel::limits::Limits;
use kernel::tool::call::{
    Abilities, Call, CallContext, CallProgress, CallReporter, Caller, Reach, ToolError, ToolOutput,
};
use kernel::tool::schema::Schemas;
use kernel::values::ids::CallId;
use project::folder::Project;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::time::timeout;
use upstreams::{
    Document, EraSetting, HOPS_MAX, Remote, RemoteParts, RestConfig, UpstreamConfig, UpstreamKind,
};

const LIMIT: Duration = Duration::from_secs(60);

fn provider(rest: RestConfig) -> Remote {
    let config = UpstreamConfig {
        name: "own".to_owned(),
        prefix: "own.".to_owned(),
        kind: UpstreamKind::Rest(rest),
        trusted: false,
        journal: true,
        timeout_ms: None,
        era: EraSetting::Auto,
        roots: Vec::new(),
        origin: "a test".to_owned(),
    };
    let parts = RemoteParts {
        spawn: Arc::new(TokioSpawn::new(tokio::runtime::Handle::current())),
        clock: Arc::new(SystemClock),
        entropy: Arc::new(SystemEntropy),
        limits: Arc::new(Limits::default()),
        hops_max: HOPS_MAX,
        supervisor: None,
        vault: Arc::new(upstreams::MemoryVault::new(Arc::new(SystemClock))),
        login: None,
        scope: upstreams::Scope::default(),
    };
    Remote::start(vec![config], parts)
}

async fn call(
    tools: &[Arc<dyn Tool>],
    name: &str,
    id: u128,
    arguments: Value,
) -> Result<Value, ToolError> {
    let tool = tools.iter().find(|tool| tool.spec().name.as_str() == name).unwrap();
    JsonSchemas::default().check(&tool.spec().input_schema, &arguments).unwrap();
    let caller = Caller::new("default", "local");
    tool.check(&caller, &arguments)?;
    let call = Call {
        id: CallId(id),
        tool: name.into(),
        arguments: Arc::new(arguments),
        timeout_ms: 20_000,
        output_bytes_max: 1_000_000,
        given: Arc::default(),
        can: Abilities::PERSON,
        teller: CallReporter::default(),
        context: CallContext::default(),
    };
    match tool.call(&caller, &call).await? {
        ToolOutput::Value(value) => Ok(value),
        other => panic!("{other:?}"),
    }
}

/// The ids of all operations that answer with more than a stream.
fn callable() -> BTreeSet<String> {
    let document = server::openapi();
    let items = document["paths"].as_object().unwrap().values();
    let operations = items.flat_map(|item| item.as_object().unwrap().values());
    operations
        .filter(|operation| {
            let content = &operation["responses"]["200"]["content"];
            content["text/event-stream"].is_null() || !content["application/json"].is_null()
        })
        .map(|operation| format!("own.{}", text(&operation["operationId"])))
        .collect()
}

#[tokio::test]
async fn our_own_document_makes_tools_that_call_us() {
    let data = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let assembled = assembled(Project::demo(), &data, address, None).await;
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(server::serve(assembled, listener, None, async move {
        let _ = stopped.await;
    }));
    let document = Document::Url(format!("http://{address}/openapi.json"));
    let remote = provider(RestConfig::new(document));
    timeout(LIMIT, remote.upstreams()[0].check()).await.unwrap().unwrap();
    let tools = remote.upstreams()[0].tools();
    let names: BTreeSet<String> = tools.iter().map(|tool| tool.spec().name.to_string()).collect();
    assert_eq!(names, callable());
    let schemas = JsonSchemas::default();
    for tool in &tools {
        let compiled = schemas.compile(&tool.spec().input_schema);
        assert!(compiled.is_ok(), "{}: {compiled:?}", tool.spec().name);
    }
    calls(&tools).await;
    remote.stop().await;
    stop.send(()).unwrap();
    timeout(LIMIT, serving).await.unwrap().unwrap();
}

async fn calls(tools: &[Arc<dyn Tool>]) {
    let live = call(tools, "own.live", 1, json!({})).await.unwrap();
    assert_eq!(live, json!({"status": "live"}));
    let metrics = call(tools, "own.metrics", 2, json!({})).await.unwrap();
    assert!(text(&metrics).contains("waypost_"), "{metrics}");
    let shown = call(tools, "own.showTool", 3, json!({"name": "math::add"})).await.unwrap();
    assert_eq!(shown["name"], "math::add");
    let sum = json!({"name": "math::add", "arguments": {"a": 2, "b": 3}});
    assert_eq!(call(tools, "own.callTool", 4, sum).await.unwrap(), json!({"result": 5}));

    // A repeat under the same id is the same run: its id went out as the key.
    let greeting = json!({"planId": "interaction::greeting", "session": "s"});
    let first = call(tools, "own.startRun", 5, greeting.clone()).await.unwrap();
    let again = call(tools, "own.startRun", 5, greeting.clone()).await.unwrap();
    assert_eq!(
        (&first["run"]["status"], &first["run"]["id"]),
        (&json!("waiting"), &again["run"]["id"])
    );
    let refused = call(tools, "own.startRun", 6, greeting).await.unwrap_err();
    assert_eq!((refused.how, refused.fault.name.as_str()), (CallProgress::Failed, "HttpStatus"));
    assert!(refused.fault.message.contains("run_active"), "{:?}", refused.fault);

    let asks = json!({"session": "s", "limit": 5, "kind": "fill"});
    let asks = call(tools, "own.listAsks", 7, asks).await.unwrap();
    assert_eq!(asks["items"][0]["id"], first["run"]["asks"][0]["id"]);
    let reply = json!({"id": asks["items"][0]["id"], "wait": 10,
        "body": {"action": "accept", "content": {"name": "Ann"}}});
    let replied = call(tools, "own.replyToAsk", 8, reply).await.unwrap();
    assert_eq!(replied["run"]["status"], "completed");

    let missing = call(tools, "own.showRun", 9, json!({"id": "../x"})).await.unwrap_err();
    assert_eq!(missing.how, CallProgress::Failed);
    let start = tools.iter().find(|tool| tool.spec().name.as_str() == "own.startRun").unwrap();
    assert_eq!((start.spec().reach, start.spec().idempotent), (Reach::Writes, false));
}

/// Answers so many requests, one on each connection, with their first lines.
async fn repeating(listener: TcpListener, requests: usize) {
    for _ in 0..requests {
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = BufReader::new(stream);
        let mut first = String::new();
        stream.read_line(&mut first).await.unwrap();
        let mut line = first.clone();
        while !line.trim().is_empty() {
            line.clear();
            stream.read_line(&mut line).await.unwrap();
        }
        let text = first.trim();
        let length = first.trim().len();
        let answer = format!(
            "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/plain\r\n\
             content-length: {length}\r\n\r\n{text}"
        );
        stream.get_mut().write_all(answer.as_bytes()).await.unwrap();
    }
}

#[tokio::test]
async fn a_changed_document_counts_also_where_its_tools_look_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("openapi.json");
    let write = |at: &str| {
        let document = json!({"openapi": "3.1.0", "paths": {
            at: {"get": {"operationId": "list", "description": "Lists."}}}});
        std::fs::write(&path, document.to_string()).unwrap();
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = Some(format!("http://{}", listener.local_addr().unwrap()));
    let answering = tokio::spawn(repeating(listener, 2));
    write("/v1/list");
    let document = Document::File(path.clone());
    let remote = provider(RestConfig { base_url, ..RestConfig::new(document) });
    let upstream = &remote.upstreams()[0];
    timeout(LIMIT, upstream.check()).await.expect("the first check ends").unwrap();
    let before = upstream.tools();
    let first = call(&before, "own.list", 1, json!({})).await.unwrap();
    assert_eq!(first, json!("GET /v1/list HTTP/1.1"));

    timeout(LIMIT, upstream.check()).await.expect("the second check ends").unwrap();
    assert!(Arc::ptr_eq(&before[0], &upstream.tools()[0]), "nothing changed");

    let changes = upstream.changes();
    write("/v2/list");
    timeout(LIMIT, upstream.check()).await.expect("the third check ends").unwrap();
    assert!(changes.has_changed().unwrap(), "whoever lists its tools is told");
    assert_eq!(before[0].spec(), upstream.tools()[0].spec());
    let second = call(&upstream.tools(), "own.list", 2, json!({})).await.unwrap();
    assert_eq!(second, json!("GET /v2/list HTTP/1.1"));
    timeout(LIMIT, answering).await.expect("both were answered").unwrap();
    remote.stop().await;
}
