//! A receiver of webhooks, on threads of its own. It verifies every signature itself, without a
//! line of the product's code, writes down what it took, and can be unwell: it fails, hangs, is
//! busy, takes an event and does not say so, or is gone for a while.

use crate::harness::wait_for;
use crate::http::{Connection, Message};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use serde_json::Value;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A sender may keep a connection idle; no test takes as long as this.
const IDLE_LIMIT: Duration = Duration::from_secs(3_600);
/// How long a request that hangs is held at most.
const HANG_LIMIT: Duration = Duration::from_secs(600);
/// How long the port may take to be free again.
const BIND_LIMIT: Duration = Duration::from_secs(60);
/// How far the clock of a sender may be off, by the specification.
const CLOCK_SECONDS_MAX: u64 = 300;
const PREFIX: &str = "whsec_";

/// How the receiver is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    /// It takes what comes.
    Well,
    /// It answers with this status, and takes nothing.
    Failing(u16),
    /// It answers nothing, and takes nothing.
    Hanging,
    /// It is too busy, and asks to be left alone for so many seconds.
    Busy(u32),
    /// It takes what comes, and the connection breaks before it can say so.
    Mute,
}

/// An event that was taken.
#[derive(Debug, Clone, PartialEq)]
pub struct Taken {
    /// The id of the delivery and of the event.
    pub id: String,
    /// The event as it was sent.
    pub event: Value,
}

impl Taken {
    /// The event's type.
    pub fn kind(&self) -> &str {
        self.event["type"].as_str().unwrap_or_default()
    }

    /// The session that it belongs to, and its place in it: events of one fact are numbered.
    pub fn place(&self) -> (String, (u64, u64)) {
        place_of(&self.id)
    }
}

/// The session in the id of an event, the event's sequence, and its number among those of a fact.
pub fn place_of(id: &str) -> (String, (u64, u64)) {
    let mut parts = id.split('.');
    let session = parts.next().unwrap_or_default().to_owned();
    let mut number = || parts.next().map(|part| part.parse::<u64>());
    match (number(), number()) {
        (Some(Ok(seq)), None) => (session, (seq, 1)),
        (Some(Ok(seq)), Some(Ok(several))) => (session, (seq, several)),
        _ => panic!("`{id}` is no id of an event"),
    }
}

/// A receiver; it ends when this is dropped.
#[derive(Debug)]
pub struct WebhookReceiver {
    desk: Arc<Desk>,
    address: SocketAddr,
    door: Option<Door>,
}

#[derive(Debug)]
struct Desk {
    keys: Vec<Vec<u8>>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    mood: Mood,
    taken: Vec<Taken>,
    /// Requests since the mood changed.
    tries: u64,
    faults: Vec<String>,
}

/// What accepts connections.
#[derive(Debug)]
struct Door {
    closing: Arc<AtomicBool>,
    open: Arc<Mutex<Vec<TcpStream>>>,
    accepting: JoinHandle<()>,
}

impl WebhookReceiver {
    /// Starts it on a free port, with what its sender's secrets must be: `whsec_..`, one of them is
    /// enough.
    pub fn start(secrets: &[&str]) -> Self {
        let key = |secret: &&str| {
            let key = secret.strip_prefix(PREFIX).and_then(|key| STANDARD.decode(key).ok());
            key.unwrap_or_else(|| panic!("`{secret}` is no secret of a webhook"))
        };
        let state = State { mood: Mood::Well, taken: Vec::new(), tries: 0, faults: Vec::new() };
        let desk = Arc::new(Desk {
            keys: secrets.iter().map(key).collect(),
            state: Mutex::new(state),
            changed: Condvar::new(),
        });
        let listener = bound();
        let address = listener.local_addr().unwrap_or_else(|error| panic!("no address: {error}"));
        let door = Some(Door::open(listener, &desk));
        Self { desk, address, door }
    }

    /// Where events are to be posted.
    pub fn url(&self) -> String {
        format!("http://{}/events", self.address)
    }

    /// Changes how it is; a request that hangs is released.
    pub fn be(&self, mood: Mood) {
        let mut state = self.desk.state();
        state.mood = mood;
        state.tries = 0;
        self.desk.changed.notify_all();
    }

    /// Waits until it was asked so often since its mood changed.
    pub fn wait_for_tries(&self, tries: u64, limit: Duration) {
        let what = format!("{tries} requests to a receiver that is {:?}", self.desk.state().mood);
        wait_for(&what, limit, || (self.desk.state().tries >= tries).then_some(()));
    }

    /// Everything that it took, in order, repeats too.
    pub fn taken(&self) -> Vec<Taken> {
        self.desk.state().taken.clone()
    }

    /// The same without the first so many.
    pub fn taken_after(&self, seen: usize) -> Vec<Taken> {
        self.desk.state().taken.get(seen..).unwrap_or_default().to_vec()
    }

    /// What was wrong with requests: signatures, headers, bodies.
    pub fn faults(&self) -> Vec<String> {
        self.desk.state().faults.clone()
    }

    /// Goes away: no one listens any more, and every connection is cut.
    pub fn close(&mut self) {
        if let Some(door) = self.door.take() {
            door.close(self.address);
        }
    }

    /// Comes back on the same port, with what it took before.
    pub fn open_again(&mut self) {
        let what = format!("{} to be free again", self.address);
        let listener = wait_for(&what, BIND_LIMIT, || TcpListener::bind(self.address).ok());
        self.door = Some(Door::open(listener, &self.desk));
    }
}

impl Drop for WebhookReceiver {
    fn drop(&mut self) {
        self.be(Mood::Well);
        self.close();
    }
}

impl Door {
    fn open(listener: TcpListener, desk: &Arc<Desk>) -> Self {
        let closing = Arc::new(AtomicBool::new(false));
        let open = Arc::new(Mutex::new(Vec::new()));
        let is_closing = closing.clone();
        let streams = open.clone();
        let desk = desk.clone();
        let accepting = thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if is_closing.load(Ordering::Acquire) {
                    break;
                }
                // One that cannot be cut later is of no use.
                let Ok(copy) = stream.try_clone() else { continue };
                locked(&streams).push(copy);
                let desk = desk.clone();
                thread::spawn(move || desk.serve(stream));
            }
        });
        Self { closing, open, accepting }
    }

    fn close(self, address: SocketAddr) {
        self.closing.store(true, Ordering::Release);
        // Wakes who waits for a connection; no one there is what is wanted.
        let _ = TcpStream::connect(address);
        assert!(self.accepting.join().is_ok(), "the receiver panicked");
        for stream in locked(&self.open).drain(..) {
            // One that is closed already cannot be closed again.
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }
}

impl Desk {
    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    fn serve(&self, stream: TcpStream) {
        let Ok(mut connection) = Connection::new(stream) else { return };
        while let Ok(Some(request)) = connection.read(IDLE_LIMIT) {
            let Some(answer) = self.answer(&request) else { return };
            if connection.write(answer.as_bytes()).is_err() || request.closes {
                return;
            }
        }
    }

    /// What is answered; nothing where the connection is to break.
    fn answer(&self, request: &Message) -> Option<String> {
        let mut state = self.state();
        state.tries += 1;
        let taken = match self.verified(request) {
            Ok(taken) => taken,
            Err(fault) => {
                state.faults.push(fault);
                return Some(plain("400 Bad Request", ""));
            }
        };
        let mood = state.mood;
        match mood {
            Mood::Well => {
                state.taken.push(taken);
                Some(plain("204 No Content", ""))
            }
            Mood::Failing(status) => Some(plain(&format!("{status} Failing"), "")),
            Mood::Busy(seconds) => {
                Some(plain("429 Too Many Requests", &format!("retry-after: {seconds}\r\n")))
            }
            Mood::Mute => {
                state.taken.push(taken);
                None
            }
            Mood::Hanging => {
                let hangs = |state: &mut State| state.mood == Mood::Hanging;
                let _held = self.changed.wait_timeout_while(state, HANG_LIMIT, hangs);
                None
            }
        }
    }

    /// The event, if everything about the request is as Standard Webhooks and CloudEvents say.
    fn verified(&self, request: &Message) -> Result<Taken, String> {
        let header = |name: &str| {
            let value = request.header(name).map(str::to_owned);
            value.ok_or_else(|| format!("no `{name}` in {:?}", request.headers))
        };
        if !request.first_line.starts_with("POST /events ") {
            return Err(format!("`{}` is no delivery", request.first_line));
        }
        let id = header("webhook-id")?;
        let at = header("webhook-timestamp")?;
        let signatures = header("webhook-signature")?;
        let said = format!("{id}.{at}.{}", request.body);
        let is_signed = self.keys.iter().any(|key| {
            let key = hmac::Key::new(hmac::HMAC_SHA256, key);
            let mut of_version = signatures.split(' ').filter_map(|one| one.strip_prefix("v1,"));
            of_version.any(|one| {
                let tag = STANDARD.decode(one).unwrap_or_default();
                hmac::verify(&key, said.as_bytes(), &tag).is_ok()
            })
        });
        if !is_signed {
            return Err(format!("`{signatures}` does not sign {id} at {at}"));
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        if at.parse::<u64>().is_ok_and(|at| at.abs_diff(now) > CLOCK_SECONDS_MAX) {
            return Err(format!("{id} was signed at {at}, and now is {now}"));
        }
        let content = header("content-type")?;
        if !content.starts_with("application/cloudevents+json") {
            return Err(format!("{id} comes as `{content}`"));
        }
        let event: Value = serde_json::from_str(&request.body)
            .map_err(|error| format!("{id} is no JSON ({error}): {}", request.body))?;
        if event["specversion"] != "1.0" || event["id"] != id.as_str() {
            return Err(format!("{id} is no CloudEvent of that id: {event}"));
        }
        Ok(Taken { id, event })
    }
}

fn plain(status: &str, headers: &str) -> String {
    let length = if status.starts_with("204") { "" } else { "content-length: 0\r\n" };
    format!("HTTP/1.1 {status}\r\n{headers}{length}\r\n")
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn bound() -> TcpListener {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .unwrap_or_else(|error| panic!("no port for the receiver: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{Client, Request};

    /// The base64 of 32 bytes.
    const SECRET: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
    const BODY: &str = "{\"specversion\":\"1.0\",\"id\":\"ses_1.7\",\"type\":\"A\"}";

    fn signature(at: &str, body: &str) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"0123456789abcdef0123456789abcdef");
        let tag = hmac::sign(&key, format!("ses_1.7.{at}.{body}").as_bytes());
        format!("v1,{}", STANDARD.encode(tag))
    }

    fn send(receiver: &WebhookReceiver, at: &str, signature: &str, body: &str) -> u16 {
        let headers = [
            ("webhook-id", "ses_1.7"),
            ("webhook-timestamp", at),
            ("webhook-signature", signature),
            ("content-type", "application/cloudevents+json"),
        ];
        let head =
            format!("POST /events HTTP/1.1\r\nhost: a\r\ncontent-length: {}\r\n", body.len());
        let lines: String =
            headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let mut connection =
            Connection::new(TcpStream::connect(receiver.address).unwrap()).unwrap();
        connection.write(format!("{head}{lines}\r\n{body}").as_bytes()).unwrap();
        let answer = connection.read(Duration::from_secs(60)).unwrap().unwrap();
        answer.first_line.split(' ').nth(1).unwrap().parse().unwrap()
    }

    fn now() -> String {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs().to_string()
    }

    #[test]
    fn only_signed_requests_are_accepted() {
        let receiver = WebhookReceiver::start(&[SECRET]);
        let at = now();
        assert_eq!(send(&receiver, &at, &signature(&at, BODY), BODY), 204);
        assert_eq!(receiver.taken().len(), 1);
        assert_eq!(receiver.taken()[0].place(), ("ses_1".to_owned(), (7, 1)));
        let other = BODY.replace("\"A\"", "\"B\"");
        assert_eq!(send(&receiver, &at, &signature(&at, BODY), &other), 400);
        assert_eq!(send(&receiver, "1", &signature("1", BODY), BODY), 400);
        assert_eq!((receiver.taken().len(), receiver.faults().len()), (1, 2));
    }

    #[test]
    fn a_receiver_reopens_on_the_same_port() {
        let mut receiver = WebhookReceiver::start(&[SECRET]);
        receiver.be(Mood::Busy(1));
        let at = now();
        assert_eq!(send(&receiver, &at, &signature(&at, BODY), BODY), 429);
        receiver.wait_for_tries(1, Duration::from_secs(60));
        receiver.close();
        let gone = Client::new(receiver.address).send(&Request {
            method: "GET",
            path: "/",
            headers: &[],
            body: None,
        });
        assert!(gone.is_err(), "{gone:?}");
        receiver.open_again();
        receiver.be(Mood::Failing(503));
        assert_eq!(send(&receiver, &at, &signature(&at, BODY), BODY), 503);
        assert!(receiver.taken().is_empty());
    }

    #[test]
    fn the_webhook_id_holds_the_events_position() {
        assert_eq!(place_of("ses_1.7.2"), ("ses_1".to_owned(), (7, 2)));
    }
}
