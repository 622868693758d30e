//! The receiver: an HTTP server in a process of its own that writes down every effect, syncs it,
//! and only then answers. `/effects` answers at once, `POST /slow?ms=` late; `GET /mark` and
//! `GET /drained?before=` tell a test when nothing of a killed client is still on its way.
//!
//! `receiver [--log FILE] [--with-parent]`; with the latter it ends when its standard input does.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "for tests only: it may use threads and clocks"
)]

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;
use testkit::http::{Connection, Message};
use testkit::servers::receiver::{BANNER, Effect, Line};

/// A client may keep a connection idle; no test takes as long as this.
const IDLE_LIMIT: Duration = Duration::from_secs(3_600);
/// Shorter than a client waits for its answer.
const DRAIN_LIMIT: Duration = Duration::from_secs(60);
const SLOW_MS_MAX: u64 = 600_000;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("receiver: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let options = Options::read(std::env::args().skip(1))?;
    let log = OpenOptions::new().create(true).append(true).open(&options.log);
    let log = log.map_err(|error| format!("cannot write `{}`: {error}", options.log.display()))?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(in_words)?;
    let address = listener.local_addr().map_err(in_words)?;
    if options.with_parent {
        thread::spawn(end_with_parent);
    }
    writeln!(io::stdout(), "{BANNER}{address}").map_err(in_words)?;
    let desk = Arc::new(Desk {
        log,
        count: Mutex::new(0),
        open: Mutex::default(),
        closed: Condvar::new(),
    });
    // Connections are numbered in the order of the kernel's queue: a mark stands behind all that
    // were made before it, taken up or not.
    for (number, stream) in (1..).zip(listener.incoming()) {
        let stream = match stream {
            Ok(stream) => stream,
            // A client that was killed before its turn: it sent nothing that anyone could read.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
            Err(error) => return Err(in_words(error)),
        };
        locked(&desk.open).insert(number);
        let desk = Arc::clone(&desk);
        thread::spawn(move || {
            desk.serve(number, stream);
            locked(&desk.open).remove(&number);
            desk.closed.notify_all();
        });
    }
    Ok(())
}

struct Options {
    log: PathBuf,
    with_parent: bool,
}

impl Options {
    fn read(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self { log: PathBuf::from("effects.jsonl"), with_parent: false };
        while let Some(word) = words.next() {
            match word.as_str() {
                "--log" => {
                    options.log = words.next().ok_or("`--log` needs a file")?.into();
                }
                "--with-parent" => options.with_parent = true,
                other => {
                    return Err(format!("what is `{other}`? known: --log FILE, --with-parent"));
                }
            }
        }
        Ok(options)
    }
}

/// What all connections share.
struct Desk {
    log: File,
    /// How many effects there were; held while a line is written, so lines stand in order.
    count: Mutex<u64>,
    open: Mutex<BTreeSet<u64>>,
    closed: Condvar,
}

impl Desk {
    fn serve(&self, number: u64, stream: TcpStream) {
        let Ok(mut connection) = Connection::new(stream) else {
            return;
        };
        // A connection that breaks is a killed client: what it sent in whole is done, the rest
        // never came.
        while let Ok(Some(request)) = connection.read(IDLE_LIMIT) {
            let (status, body) = self.answer(number, &request);
            if connection.write(&bytes_of(status, &body)).is_err() || request.closes {
                return;
            }
        }
    }

    fn answer(&self, number: u64, request: &Message) -> (&'static str, Value) {
        let mut words = request.first_line.split(' ');
        let method = words.next().unwrap_or_default();
        let target = words.next().unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        match (method, path) {
            ("GET" | "POST" | "PUT", "/effects") => self.take(number, request, Duration::ZERO),
            ("POST", "/slow") => {
                let wait_ms = parameter(query, "ms").unwrap_or(0).min(SLOW_MS_MAX);
                self.take(number, request, Duration::from_millis(wait_ms))
            }
            ("GET", "/mark") => {
                let _count = locked(&self.count);
                self.append(&Line::Mark { mark: number });
                ("200 OK", json!({"mark": number}))
            }
            ("GET", "/drained") => self.drained(parameter(query, "before").unwrap_or(number)),
            _ => ("404 Not Found", json!({"error": format!("no `{method} {path}` here")})),
        }
    }

    /// The effect is on the disk before anyone hears of it.
    fn take(&self, connection: u64, request: &Message, wait: Duration) -> (&'static str, Value) {
        let key = request.header("idempotency-key").map(str::to_owned);
        let body = serde_json::from_str(&request.body)
            .unwrap_or_else(|_| Value::String(request.body.clone()));
        let n = {
            let mut count = locked(&self.count);
            *count += 1;
            let n = *count;
            self.append(&Line::Effect(Effect { n, key, body, connection }));
            n
        };
        self.log.sync_data().unwrap_or_else(|error| give_up("sync", &error));
        thread::sleep(wait);
        let _count = locked(&self.count);
        self.append(&Line::Answered { answered: n });
        ("200 OK", json!({"ok": true, "n": n}))
    }

    fn drained(&self, before: u64) -> (&'static str, Value) {
        let is_left = |open: &mut BTreeSet<u64>| open.first().is_some_and(|first| *first < before);
        let (open, _) = self
            .closed
            .wait_timeout_while(locked(&self.open), DRAIN_LIMIT, is_left)
            .unwrap_or_else(PoisonError::into_inner);
        let left: Vec<&u64> = open.iter().filter(|number| **number < before).collect();
        let status = if left.is_empty() { "200 OK" } else { "503 Service Unavailable" };
        (status, json!({"open": left}))
    }

    /// One write for one line, by the holder of `count`.
    fn append(&self, line: &Line) {
        let mut text = serde_json::to_string(line).unwrap_or_else(|error| give_up("print", &error));
        text.push('\n');
        let mut log = &self.log;
        log.write_all(text.as_bytes()).unwrap_or_else(|error| give_up("write", &error));
    }
}

fn bytes_of(status: &str, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

fn parameter(query: &str, name: &str) -> Option<u64> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.filter(|(known, _)| *known == name).find_map(|(_, value)| value.parse().ok())
}

/// An oracle that cannot write must not go on as if it had seen nothing.
fn give_up<T>(what: &str, error: &dyn std::error::Error) -> T {
    eprintln!("receiver: cannot {what} an effect: {error}");
    std::process::exit(1)
}

fn end_with_parent() {
    // An error says the same as the end of the input: no one is there any more.
    let _ = io::copy(&mut io::stdin(), &mut io::sink());
    std::process::exit(0);
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn in_words(error: io::Error) -> String {
    error.to_string()
}
