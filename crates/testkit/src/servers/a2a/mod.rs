//! An agent that speaks A2A, on threads of its own: 1.0 and 0.3 over JSON-RPC and over HTTP, 1.0
//! over gRPC, and AgentVault's profile. But for the bytes of gRPC it is written without a line of
//! the product's code, does what the first words of a message or its id say, and can be unwell. It
//! does not stream.

mod tasks;
mod dialects;
mod grpc;

use crate::http::{Connection, Message};
use dialects::{Answer, Dialect};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;
use tasks::Tasks;

/// A client may keep a connection idle; no test takes as long as this.
const IDLE_LIMIT: Duration = Duration::from_secs(3_600);

/// A request that the agent was sent.
#[derive(Debug, Clone, PartialEq)]
pub struct ReceivedRequest {
    /// `POST /rpc`.
    pub line: String,
    /// The headers in the order they came, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body; null where there is none.
    pub body: Value,
}

impl ReceivedRequest {
    /// The first header of this name, given in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// How the agent is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// It answers.
    Well,
    /// It answers so many requests with 503.
    Busy(u32),
    /// It does what it is asked, and breaks the next connection instead of answering.
    Mute,
}

/// An agent; it serves until the process ends.
#[derive(Debug, Clone)]
pub struct AgentServer {
    desk: Arc<Mutex<Desk>>,
    address: SocketAddr,
}

#[derive(Debug)]
struct Desk {
    address: SocketAddr,
    tasks: Tasks,
    asked: Vec<ReceivedRequest>,
    health: Health,
    /// What is served in the place of the first card.
    card: Option<Value>,
    /// The card for callers with credentials, if it has one.
    extended: Option<Value>,
}

impl AgentServer {
    /// Starts it on a free port; a task that takes long takes so long.
    pub fn start(long: Duration) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .unwrap_or_else(|error| panic!("the agent cannot listen: {error}"));
        let address = listener.local_addr().unwrap_or_else(|error| panic!("no address: {error}"));
        let desk = Arc::new(Mutex::new(Desk {
            address,
            tasks: Tasks::new(long),
            asked: Vec::new(),
            health: Health::Well,
            card: None,
            extended: None,
        }));
        let server = Self { desk, address };
        let serving = server.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let server = serving.clone();
                thread::spawn(move || server.serve(stream));
            }
        });
        server
    }

    /// Its address, without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Where its card for this dialect is: `rpc`, `rest`, `grpc`, `old-rpc`, `old-rest` or `vault`.
    pub fn card_url(&self, dialect: &str) -> String {
        format!("{}/cards/{dialect}.json", self.url())
    }

    /// The card that it serves at the usual place.
    pub fn card(&self) -> Value {
        dialects::card(self.address, "rpc").unwrap_or_default()
    }

    pub fn card_of(&self, dialect: &str) -> Value {
        dialects::card(self.address, dialect).unwrap_or_default()
    }

    /// Gives this card to callers with a token from now on, in every dialect but the vault's.
    pub fn serve_extended(&self, card: Value) {
        self.desk().extended = Some(card);
    }

    /// Serves this card at the usual place from now on.
    pub fn serve_card(&self, card: Value) {
        self.desk().card = Some(card);
    }

    /// Changes how it is.
    pub fn be(&self, health: Health) {
        self.desk().health = health;
    }

    /// Someone did what its tasks wait for with `waypost-auth`.
    pub fn authorize(&self) {
        self.desk().tasks.authorize();
    }

    /// Answers so many questions about a task, and cancellations, with a completed task of somebody
    /// else.
    pub fn mix_up(&self, answers: u32) {
        self.desk().tasks.mix_up(answers);
    }

    /// Forgets all tasks.
    pub fn forget(&self) {
        self.desk().tasks.forget();
    }

    /// Everything that it was asked, in order.
    pub fn asked(&self) -> Vec<ReceivedRequest> {
        self.desk().asked.clone()
    }

    /// How many tasks it began.
    pub fn begun(&self) -> usize {
        self.desk().tasks.begun()
    }

    /// The ids of the messages that it took.
    pub fn message_ids(&self) -> Vec<String> {
        self.desk().tasks.message_ids()
    }

    /// How many of its tasks are in this state of 1.0 now.
    pub fn count(&self, state: &str) -> usize {
        self.desk().tasks.count(state)
    }

    /// How often it was asked how a task is.
    pub fn looks(&self) -> usize {
        let is_look = |asked: &&ReceivedRequest| {
            let method = asked.body["method"].as_str().unwrap_or_default();
            let is_path = asked.line.starts_with("GET ") && asked.line.contains("/tasks/");
            is_path || matches!(method, "GetTask" | "tasks/get")
        };
        self.desk().asked.iter().filter(is_look).count()
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, stream: TcpStream) {
        let mut begin = [0; grpc::PREFACE.len()];
        if stream.peek(&mut begin).is_ok() && begin == grpc::PREFACE {
            return grpc::serve(self, stream);
        }
        let Ok(mut connection) = Connection::new(stream) else { return };
        while let Ok(Some(request)) = connection.read(IDLE_LIMIT) {
            let Some(Answer { status, body }) = self.desk().answer(&request) else { return };
            let text = body.to_string();
            let answer = format!(
                "HTTP/1.1 {status} Said\r\ncontent-type: application/json\r\n\
                 content-length: {}\r\n\r\n{text}",
                text.len()
            );
            if connection.write(answer.as_bytes()).is_err() || request.closes {
                return;
            }
        }
    }
}

impl Desk {
    /// What is answered; nothing where the connection is to break.
    fn answer(&mut self, request: &Message) -> Option<Answer> {
        let mut words = request.first_line.split(' ');
        let method = words.next().unwrap_or_default().to_owned();
        let path = words.next().unwrap_or_default().split('?').next().unwrap_or_default();
        let body: Value = serde_json::from_str(&request.body).unwrap_or_default();
        let line = format!("{method} {path}");
        self.asked.push(ReceivedRequest {
            line,
            headers: request.headers.clone(),
            body: body.clone(),
        });
        if method == "GET"
            && let Some(card) = self.served_card(path)
        {
            return Some(Answer::ok(card));
        }
        if path == "/token" {
            return Some(token(&request.body));
        }
        match self.health {
            Health::Busy(left) => {
                self.health = if left > 1 { Health::Busy(left - 1) } else { Health::Well };
                return Some(Answer { status: 503, body: json!("busy") });
            }
            Health::Mute | Health::Well => {}
        }
        if let Some(answer) = self.extended(request, path, &body) {
            return Some(answer);
        }
        let is_new = request.header("a2a-version") == Some("1.0");
        let answer = match Dialect::of(path, is_new) {
            Some(dialect) => dialect.answer(&mut self.tasks, &method, path, &body),
            None => Answer { status: 404, body: json!({"error": {"message": "no such path"}}) },
        };
        if self.health == Health::Mute {
            self.health = Health::Well;
            return None;
        }
        Some(answer)
    }

    /// The answer to who asks for the card for callers with credentials, if there is one.
    fn extended(&self, request: &Message, path: &str, body: &Value) -> Option<Answer> {
        let card = self.extended.as_ref()?;
        let method = body["method"].as_str().unwrap_or_default();
        let is_call =
            matches!(method, "GetExtendedAgentCard" | "agent/getAuthenticatedExtendedCard");
        if !is_call && !matches!(path, "/rest/extendedAgentCard" | "/old/v1/card") {
            return None;
        }
        if request.header("authorization").is_none() {
            return Some(Answer { status: 401, body: json!({"error": {"message": "no token"}}) });
        }
        Some(Answer::ok(match is_call {
            true => json!({"jsonrpc": "2.0", "id": body["id"], "result": card}),
            false => card.clone(),
        }))
    }

    fn served_card(&self, path: &str) -> Option<Value> {
        if path == "/.well-known/agent-card.json" {
            return self.card.clone().or_else(|| dialects::card(self.address, "rpc"));
        }
        let name = path.strip_prefix("/cards/")?.strip_suffix(".json")?;
        dialects::card(self.address, name)
    }
}

/// A token for a client whose secret is `right`.
fn token(form: &str) -> Answer {
    let is_right = form.split('&').any(|pair| pair == "client_secret=right");
    match is_right && form.starts_with("grant_type=client_credentials&") {
        true => Answer::ok(json!({"access_token": "token-of-the-agent", "token_type": "Bearer",
            "expires_in": 3600})),
        false => Answer { status: 401, body: json!({"error": "invalid_client"}) },
    }
}
