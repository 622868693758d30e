//! A bank over REST that answers as a test says, or hangs up instead.

use crate::process::Server;
use serde_json::Value;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use testkit::harness::wait_for;
use testkit::http::Connection;

/// What it offers. `rate` reads, `pay` writes.
pub const DOCUMENT: &str = r#"
openapi: 3.1.0
info: {title: Bank, version: "1"}
paths:
  /rate:
    get:
      operationId: rate
      responses: {"200": {description: what money costs}}
  /payments:
    post:
      operationId: pay
      responses: {"200": {description: paid}}
"#;

const TOOLS_LIMIT: Duration = Duration::from_secs(120);
/// Longer than any test needs.
const IDLE_LIMIT: Duration = Duration::from_secs(600);

/// What a request, by its first line, is answered with: a status and a JSON text. None hangs up.
pub type Answers = dyn Fn(&str) -> Option<(u16, String)> + Send + Sync;

/// A server that runs. It ends with the process.
pub struct Rest {
    address: SocketAddr,
}

impl Rest {
    /// Starts one on a port of its own.
    pub fn start(answers: Arc<Answers>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let answers = Arc::clone(&answers);
                thread::spawn(move || answer(&*answers, stream));
            }
        });
        Self { address }
    }

    /// Where it is, without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The settings of a project that has it as `bank`, with its document in `bank.yaml`.
    pub fn settings(&self) -> String {
        let url = self.url();
        format!(
            "[providers.bank]\ntype = \"rest\"\ndocument = \"bank.yaml\"\nbase_url = \"{url}\"\n\n"
        )
    }
}

/// Answers one request and closes the connection, so that no other is lost with it.
fn answer(answers: &Answers, stream: TcpStream) {
    let Ok(mut connection) = Connection::new(stream) else { return };
    let Ok(Some(request)) = connection.read(IDLE_LIMIT) else { return };
    let Some((status, body)) = answers(&request.first_line) else { return };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} As-Said\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\nconnection: close\r\n\r\n"
    );
    // What cannot be written is not an error: the caller went away.
    let _ = connection.write(head.as_bytes()).and_then(|()| connection.write(body.as_bytes()));
}

/// Waits until a server has this tool: upstreams are read while it serves already.
pub fn await_tool(server: &Server, name: &str) {
    wait_for(&format!("the tool `{name}`"), TOOLS_LIMIT, || {
        let tools = server.json(&["tool", "ls"]).code(0).json()["items"].clone();
        let is_there =
            tools.as_array().into_iter().flatten().any(|tool: &Value| tool["name"] == name);
        is_there.then_some(())
    });
}
