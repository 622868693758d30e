//! The load of the kill test: clients that start runs and answer asks while the server under them
//! is killed and started again, and the ledger of everything that it acknowledged to them.

use crate::http::{Client, NoAnswer};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Longer than a server may take to start.
const RESTART_LIMIT: Duration = Duration::from_secs(600);
const LIVEZ_LIMIT: Duration = Duration::from_secs(120);
const PAUSE_US_MAX: u64 = 3_000;
const FAULTS_MAX: usize = 50;

/// A run as `/api/v1` shows it; only what the tests look at.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// `run_..`.
    pub id: String,
    pub status: String,
    /// Its answer, once completed.
    pub answer: Option<Value>,
    /// What went wrong.
    pub last_error: Option<Value>,
    /// Its open asks.
    pub asks: Vec<Ask>,
}

/// An ask as `/api/v1` shows it; only what the tests look at.
#[derive(Debug, Clone, Deserialize)]
pub struct Ask {
    /// `ask_..`.
    pub id: String,
    /// `clarify`, `approve`, `fix`, ...
    pub kind: String,
    pub session: AskSession,
    pub run: String,
    /// `open`, `decided`, ...
    pub status: String,
    /// The calls it is about.
    #[serde(default)]
    pub calls: Vec<AskedCall>,
    /// Fix: how far the call got.
    pub how: Option<String>,
    /// Fix: what went wrong.
    pub fault: Option<Value>,
    /// Fix: what can be done.
    #[serde(default)]
    pub actions: Vec<String>,
    /// Fix: what rules did before a person was asked.
    #[serde(default)]
    pub tried: Vec<Value>,
    /// The reply that won.
    pub decision: Option<Decision>,
}

/// The session of an ask.
#[derive(Debug, Clone, Deserialize)]
pub struct AskSession {
    /// `ses_..`.
    pub id: String,
    /// The client's own key.
    pub key: String,
}

/// A call inside an ask.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AskedCall {
    /// `call_..`, and the idempotency key that the receiver sees.
    pub call_id: String,
}

/// A reply that won.
#[derive(Debug, Clone, Deserialize)]
pub struct Decision {
    /// What was replied.
    pub reply: Value,
}

/// Reads an answer, or a part of it, as what it must be; panics with the whole of it if it is not.
pub fn read<T: DeserializeOwned>(value: &Value) -> T {
    T::deserialize(value).unwrap_or_else(|error| panic!("an odd answer ({error}): {value}"))
}

/// Whether `whole` says everything that `part` says: it may have more members, no other values.
pub fn covers(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(name, part)| whole.get(name).is_some_and(|whole| covers(whole, part)))
        }
        (Value::Array(whole), Value::Array(part)) => {
            let mut pairs = whole.iter().zip(part);
            whole.len() == part.len() && pairs.all(|(whole, part)| covers(whole, part))
        }
        (whole, part) => whole == part,
    }
}

/// Xorshift: small, seeded, good enough to choose moments and plans.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// The generator of this seed; seeds next to each other give unlike sequences.
    pub fn new(seed: u64) -> Self {
        let spread = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self((spread ^ (spread >> 29)).max(1))
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below the bound, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        (self.bits() >> 11) % bound
    }

    /// True once in so many times.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}

/// Where the server is now: clients wait here while it is down.
#[derive(Debug, Default)]
pub struct Beacon {
    light: Mutex<Light>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Light {
    starts: u64,
    address: Option<SocketAddr>,
    stopped: bool,
}

impl Beacon {
    /// A server was started here.
    pub fn publish(&self, address: SocketAddr) {
        let mut light = locked(&self.light);
        light.starts += 1;
        light.address = Some(address);
        self.changed.notify_all();
    }

    /// No client shall go on.
    pub fn stop(&self) {
        locked(&self.light).stopped = true;
        self.changed.notify_all();
    }

    /// Whether clients shall end.
    pub fn is_stopped(&self) -> bool {
        locked(&self.light).stopped
    }

    /// Waits for a later start than this one; `None` when clients shall end.
    fn after(&self, seen: u64) -> Option<(u64, SocketAddr)> {
        let is_dark = |light: &mut Light| !light.stopped && light.starts <= seen;
        let (light, waited) = self
            .changed
            .wait_timeout_while(locked(&self.light), RESTART_LIMIT, is_dark)
            .unwrap_or_else(PoisonError::into_inner);
        assert!(!waited.timed_out(), "waited {RESTART_LIMIT:?} in vain for a restart");
        light.address.filter(|_| !light.stopped).map(|address| (light.starts, address))
    }
}

/// A run to start.
#[derive(Debug, Clone)]
pub struct Order {
    pub plan: String,
    /// The session's key: used once, so nothing acknowledged can be taken for something else.
    pub session: String,
    pub input: Value,
}

/// A run that the server acknowledged.
#[derive(Debug, Clone)]
pub struct SeenRun {
    pub id: String,
    /// Its session's key.
    pub session: String,
    /// Its answer, if it was acknowledged as completed.
    pub answer: Option<Value>,
}

/// What clients ordered, and all that the server acknowledged to them.
#[derive(Debug, Default)]
pub struct Book {
    /// The plan that was ordered for each session key, answered or not.
    pub orders: BTreeMap<String, String>,
    /// Acknowledged runs, in the order in which they were first acknowledged.
    pub runs: Vec<SeenRun>,
    /// Acknowledged replies, by ask.
    pub replies: BTreeMap<String, Value>,
    /// What went against the rules while the load ran.
    pub faults: Vec<String>,
    /// Requests that got no answer, because the server was killed.
    pub unanswered: u64,
    /// Requests that the server put off (429, 503).
    pub put_off: u64,
    places: BTreeMap<String, usize>,
    sent: BTreeMap<String, Value>,
    known: BTreeSet<String>,
    open: Vec<Ask>,
}

impl Book {
    fn fault(&mut self, fault: String) {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(fault);
        }
    }

    /// Writes down what an answer told about a run.
    fn see(&mut self, session: &str, run: &Run) {
        let answer = run.answer.clone().filter(|_| run.status == "completed");
        if let Some(place) = self.places.get(&run.id) {
            let seen = &mut self.runs[*place];
            if seen.answer.is_some() && seen.answer != answer {
                let fault = format!("{seen:?} was told otherwise before: {run:?}");
                return self.fault(fault);
            }
            seen.answer = answer;
        } else {
            self.places.insert(run.id.clone(), self.runs.len());
            let id = run.id.clone();
            let session = session.to_owned();
            self.runs.push(SeenRun { id, session, answer });
        }
        for ask in run.asks.iter().filter(|ask| ask.kind != "fix") {
            if self.known.insert(ask.id.clone()) {
                self.open.push(ask.clone());
            }
        }
    }

    fn take_ask(&mut self, rng: &mut Rng) -> Option<Ask> {
        if self.open.is_empty() || rng.one_in(2) {
            return None;
        }
        let place = rng.below(self.open.len() as u64) as usize;
        Some(self.open.swap_remove(place))
    }

    /// The reply to a question or an approval; the same again if it was sent before.
    fn reply_to(&self, ask: &Ask, rng: &mut Rng) -> Value {
        if let Some(sent) = self.sent.get(&ask.id) {
            return sent.clone();
        }
        let decide =
            |call: &AskedCall, approve: bool| json!({"callId": call.call_id, "approve": approve});
        match ask.kind.as_str() {
            "clarify" => json!({"answer": format!("word {:016x}", rng.bits())}),
            "approve" => {
                let approve = !rng.one_in(8);
                let decisions = ask.calls.iter().map(|call| decide(call, approve));
                json!({"decisions": decisions.collect::<Vec<Value>>()})
            }
            other => panic!("no plan of this load asks a `{other}`: {ask:?}"),
        }
    }
}

/// The load: what to order, where the server is, what it acknowledged.
pub struct Load<'a> {
    /// Where the server is.
    pub beacon: Beacon,
    book: Mutex<Book>,
    orders: AtomicU64,
    order: &'a (dyn Fn(u64, &mut Rng) -> Order + Sync),
}

impl<'a> Load<'a> {
    /// A load of such orders, numbered from 0.
    pub fn new(order: &'a (dyn Fn(u64, &mut Rng) -> Order + Sync)) -> Self {
        let beacon = Beacon::default();
        let book = Mutex::default();
        Self { beacon, book, orders: AtomicU64::new(0), order }
    }

    /// What is acknowledged up to now.
    pub fn book(&self) -> MutexGuard<'_, Book> {
        locked(&self.book)
    }

    /// Asks that clients knew and did not get a reply accepted for: unanswered, or never tried.
    pub fn take_left(&self) -> Vec<Ask> {
        std::mem::take(&mut self.book().open)
    }

    /// One client: orders and replies, from start to start, until it has to stop.
    pub fn work(&self, mut rng: Rng) {
        self.keep_at(|client| {
            self.act(client, &mut rng)?;
            Ok(Duration::from_micros(rng.below(PAUSE_US_MAX)))
        });
    }

    /// Does this again and again, from start to start, until clients shall end. It gives the pause
    /// before the next time.
    pub fn keep_at(&self, mut act: impl FnMut(&mut Client) -> Result<Duration, NoAnswer>) {
        let mut seen = 0;
        while let Some((start, address)) = self.beacon.after(seen) {
            seen = start;
            let mut client = Client::new(address);
            while !self.beacon.is_stopped() {
                match act(&mut client) {
                    Ok(pause) => thread::sleep(pause),
                    Err(error) => {
                        self.judge(&error, address);
                        break;
                    }
                }
            }
        }
    }

    /// Something went against the rules.
    pub fn fault(&self, fault: String) {
        self.book().fault(fault);
    }

    /// Answers an open question or approval, and writes down the outcome.
    pub fn answer(&self, client: &mut Client, ask: &Ask, rng: &mut Rng) -> Result<(), NoAnswer> {
        let reply = self.book().reply_to(ask, rng);
        self.reply(client, ask, &reply)
    }

    /// Sends this reply, and writes down the outcome.
    pub fn reply(&self, client: &mut Client, ask: &Ask, reply: &Value) -> Result<(), NoAnswer> {
        let again = self.book().sent.insert(ask.id.clone(), reply.clone()).is_some();
        let path = format!("/api/v1/asks/{}", ask.id);
        let answer = client.post(&path, reply).inspect_err(|_| {
            // It may have been accepted or not: only a second try can tell.
            self.book().open.push(ask.clone());
        })?;
        let mut book = self.book();
        match answer.status {
            200 => {
                let body = answer.json();
                book.replies.insert(ask.id.clone(), reply.clone());
                book.see(&ask.session.key, &read(&body["run"]));
            }
            // No one else replies, so it can only be our own reply, sent before a kill.
            409 if again && covers(&answer.json()["decision"]["reply"], reply) => {
                book.replies.insert(ask.id.clone(), reply.clone());
            }
            // It was accepted before a kill, and its run has ended and was removed since: a run
            // that still waits for a reply is never removed.
            404 if again => {
                book.replies.insert(ask.id.clone(), reply.clone());
            }
            429 | 503 => {
                book.put_off += 1;
                book.open.push(ask.clone());
            }
            status => book.fault(format!("{reply} to {ask:?} got {status}: {}", answer.body)),
        }
        Ok(())
    }

    fn act(&self, client: &mut Client, rng: &mut Rng) -> Result<(), NoAnswer> {
        let ask = self.book().take_ask(rng);
        match ask {
            Some(ask) => self.answer(client, &ask, rng),
            None => self.start(client, rng),
        }
    }

    fn start(&self, client: &mut Client, rng: &mut Rng) -> Result<(), NoAnswer> {
        let number = self.orders.fetch_add(1, Ordering::Relaxed);
        let Order { plan, session, input } = (self.order)(number, rng);
        self.book().orders.insert(session.clone(), plan.clone());
        let body = json!({"planId": plan, "session": session, "input": input});
        let path = if rng.one_in(4) { "/api/v1/runs?wait=0" } else { "/api/v1/runs" };
        let answer = client.post(path, &body)?;
        let mut book = self.book();
        match answer.status {
            200 | 202 => {
                let told = answer.json();
                book.see(&session, &read(&told["run"]));
            }
            429 | 503 => book.put_off += 1,
            status => book.fault(format!("{body} got {status}: {}", answer.body)),
        }
        Ok(())
    }

    /// Silence is in order only from a server that was killed.
    fn judge(&self, error: &NoAnswer, address: SocketAddr) {
        let alive = Client::new(address).limit(LIVEZ_LIMIT).get("/livez").is_ok();
        let mut book = self.book();
        match error {
            NoAnswer::Unreachable(_) | NoAnswer::Broken(_) if !alive => book.unanswered += 1,
            _ => book.fault(format!("a request got no answer from a live server: {error}")),
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_covered_by_more_but_not_by_other_values() {
        let whole = json!({"kind": "fix", "output": {"a": [1, {"b": 2, "c": 3}]}});
        assert!(covers(&whole, &json!({"output": {"a": [1, {"b": 2}]}})));
        assert!(!covers(&whole, &json!({"output": {"a": [1]}})));
        assert!(!covers(&whole, &json!({"kind": "fix", "action": "retry"})));
        assert!(!covers(&Value::Null, &json!({"kind": "fix"})));
    }

    #[test]
    fn a_seed_gives_the_same_numbers_again_and_another_seed_others() {
        let numbers = |seed| {
            let mut rng = Rng::new(seed);
            [0; 8].map(|_| rng.below(1_000))
        };
        assert_eq!(numbers(7), numbers(7));
        assert_ne!(numbers(7), numbers(8));
        assert_ne!(numbers(0), [0; 8]);
    }
}
