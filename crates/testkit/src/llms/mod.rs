//! Fakes of the providers' wires: one server on this machine that speaks chat completions,
//! Anthropic's messages and Gemini's `generateContent`, streamed or as a whole. What it does is the
//! end of the model's name (`names.rs`), or the next act of a script. It refuses what the providers
//! refuse, in their words; their own SDKs hold it to that (`cargo xtask models`). It shares no code
//! with the product.

mod act;
mod wire;
mod names;
mod openai;
mod anthropic;
mod gemini;
mod web;

use serde_json::Value;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

pub use act::{Act, Break, Failure};

/// The only key that it takes.
pub const KEY: &str = "test-key-0123456789";
/// What the program says before its address.
pub const BANNER: &str = "fake models listening on ";
/// The end of the name of a model that does what its script says.
pub const SCRIPTED: &str = "scripted";

/// A running server. It ends with the process.
#[derive(Debug)]
pub struct FakeModels {
    address: SocketAddr,
    state: Arc<State>,
}

/// A request that came.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// Path and query.
    pub path: String,
    /// Its headers, names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Value,
}

impl Seen {
    /// The first header of this name, given in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let header = self.headers.iter().find(|(known, _)| known == name);
        header.map(|(_, value)| value.as_str())
    }
}

impl FakeModels {
    /// Starts one on a port of its own.
    pub fn start() -> Self {
        let (address, state) = listen(0).unwrap_or_else(|error| panic!("no fake models: {error}"));
        Self { address, state }
    }

    /// Where it is, without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What models whose names end with `scripted` do next, one act for each request.
    pub fn script(&self, acts: impl IntoIterator<Item = Act>) {
        locked(&self.state.script).extend(acts);
    }

    /// All requests up to now.
    pub fn requests(&self) -> Vec<Seen> {
        locked(&self.state.seen).clone()
    }

    /// How many clients went away while they were kept waiting.
    pub fn left(&self) -> usize {
        self.state.left.load(Ordering::SeqCst)
    }
}

/// Serves on this port until standard input ends: the process that started it is gone then.
pub fn run(port: u16) -> io::Result<()> {
    let (address, _) = listen(port)?;
    writeln!(io::stdout(), "{BANNER}http://{address}")?;
    io::copy(&mut io::stdin(), &mut io::sink()).map(|_| ())
}

/// What all connections share.
#[derive(Debug, Default)]
struct State {
    script: Mutex<VecDeque<Act>>,
    seen: Mutex<Vec<Seen>>,
    left: AtomicUsize,
}

impl State {
    fn next_act(&self) -> Option<Act> {
        locked(&self.script).pop_front()
    }

    fn see(&self, seen: Seen) {
        locked(&self.seen).push(seen);
    }

    fn leave(&self) {
        self.left.fetch_add(1, Ordering::SeqCst);
    }
}

fn listen(port: u16) -> io::Result<(SocketAddr, Arc<State>)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    let address = listener.local_addr()?;
    let state = Arc::new(State::default());
    let shared = Arc::clone(&state);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let state = Arc::clone(&shared);
            thread::spawn(move || web::converse(&state, stream));
        }
    });
    Ok((address, state))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
