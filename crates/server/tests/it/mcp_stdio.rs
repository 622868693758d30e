//! MCP over a pipe.

use crate::house::{ADDRESS, assembled};
use crate::mcp_client::{LIMIT, MODERN, asked, stateless};
use project::folder::Project;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, split,
};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// A client at the other end of a pipe.
struct Piped {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    input: Option<WriteHalf<DuplexStream>>,
    serving: JoinHandle<()>,
    _data: TempDir,
}

impl Piped {
    async fn start(settings: &str) -> Self {
        let data = tempfile::tempdir().unwrap();
        let mut project = Project::demo();
        project.config = project::config::Config::parse("waypost.toml", settings).unwrap();
        let assembled = assembled(project, &data, ADDRESS.parse().unwrap(), None).await;
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let (input, output) = split(theirs);
        let serving = tokio::spawn(server::serve_stdio(assembled, input, output));
        let (read, write) = split(ours);
        let lines = BufReader::new(read).lines();
        Self { lines, input: Some(write), serving, _data: data }
    }

    async fn say(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    async fn hear(&mut self) -> Value {
        let line = timeout(LIMIT, self.lines.next_line()).await.unwrap().unwrap();
        serde_json::from_str(&line.expect("a line")).unwrap()
    }

    async fn ask(&mut self, id: i64, method: &str, params: Value) -> Value {
        self.say(&asked(id, method, params).to_string()).await;
        let answer = self.hear().await;
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Closes our end and waits for the server's.
    async fn leave(mut self) {
        let mut input = self.input.take().unwrap();
        input.shutdown().await.unwrap();
        drop(input);
        timeout(LIMIT, self.serving).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn both_eras_are_spoken_on_one_pipe() {
    let mut piped = Piped::start("").await;
    let discovered = piped.ask(1, "server/discover", stateless(json!({}))).await;
    assert_eq!(discovered["result"]["supportedVersions"], json!([MODERN]));
    let call = json!({"name": "math__add", "arguments": {"a": 1, "b": 2}});
    let called = piped.ask(2, "tools/call", stateless(call.clone())).await;
    assert_eq!(called["result"]["resultType"], "complete", "{called}");
    assert_eq!(piped.ask(3, "tools/call", call.clone()).await["error"]["code"], -32602);
    let missing = piped.ask(4, "server/discover", json!({})).await;
    assert_eq!(missing["error"]["code"], -32602);

    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}});
    let greeted = piped.ask(5, "initialize", hello.clone()).await;
    assert_eq!(greeted["result"]["protocolVersion"], "2025-06-18");
    piped.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    let called = piped.ask(6, "tools/call", call).await;
    assert!(called["result"]["content"].is_array(), "{called}");
    assert!(called["result"]["resultType"].is_null());
    assert_eq!(piped.ask(7, "ping", json!({})).await["result"], json!({}));
    assert_eq!(piped.ask(8, "initialize", hello).await["error"]["code"], -32600);
    assert_eq!(piped.ask(9, "nope", json!({})).await["error"]["code"], -32601);
    piped.leave().await;
}

#[tokio::test]
async fn broken_lines_are_answered_and_the_pipe_goes_on() {
    let mut piped = Piped::start("[limits]\nbody_bytes_max = 1000\nbody_depth_max = 8\n").await;
    for (line, code) in [
        ("{".to_owned(), -32700),
        ("[]".to_owned(), -32600),
        (format!("{}{}", "[".repeat(9), "]".repeat(9)), -32600),
        ("x".repeat(5_000), -32600),
    ] {
        piped.say(&line).await;
        let answer = piped.hear().await;
        assert_eq!(answer["error"]["code"], code, "{line}");
        assert!(answer["id"].is_null());
    }
    piped.say("").await;
    piped.say("  \r").await;
    let answer = piped.ask(1, "server/discover", stateless(json!({}))).await;
    assert!(answer["result"].is_object());
    piped.leave().await;
}

#[tokio::test]
async fn news_share_the_pipe_until_they_are_cancelled() {
    let mut piped = Piped::start("").await;
    let listen = stateless(json!({"notifications": {"toolsListChanged": true}}));
    piped.say(&asked("news", "subscriptions/listen", listen.clone()).to_string()).await;
    let tag = json!({"io.modelcontextprotocol/subscriptionId": "news"});
    let acknowledged = piped.hear().await;
    assert_eq!(acknowledged["params"]["_meta"], tag);
    assert!(piped.ask(2, "server/discover", stateless(json!({}))).await["result"].is_object());
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": "news"}});
    piped.say(&cancel.to_string()).await;
    // The id is free again once the request is gone.
    let mut again = json!({"error": {}});
    while !again["error"].is_null() {
        piped.say(&asked("news", "subscriptions/listen", listen.clone()).to_string()).await;
        again = piped.hear().await;
    }
    assert_eq!(again["method"], "notifications/subscriptions/acknowledged");
    // The end of the pipe is the end of the news, in good order.
    let mut input = piped.input.take().unwrap();
    input.shutdown().await.unwrap();
    drop(input);
    let last = piped.hear().await;
    assert_eq!(
        (&last["id"], &last["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"]),
        (&json!("news"), &json!("news"))
    );
    timeout(LIMIT, piped.serving).await.unwrap().unwrap();
}
