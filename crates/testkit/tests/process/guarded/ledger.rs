//! What clients decided and what the server acknowledged of it, which no kill takes away.

use super::site::Person;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use testkit::http::Answer;
use testkit::kill::{Ask, Rng};

/// A decision that somebody sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Decided {
    pub(super) realm: &'static str,
    pub(super) by: String,
    pub(super) approve: bool,
}

/// An ask that waits, and what was sent to it without an answer.
#[derive(Debug, Clone)]
pub(super) struct Waiting {
    pub(super) realm: &'static str,
    pub(super) ask: Ask,
    pub(super) sent: Option<Decided>,
}

#[derive(Debug, Default)]
struct Book {
    open: Vec<Waiting>,
    /// What was acknowledged, by ask.
    decided: BTreeMap<String, Decided>,
    /// How many were acknowledged only when they were sent again.
    again: u64,
    faults: Vec<String>,
}

/// The ledger of all clients.
#[derive(Debug, Default)]
pub(super) struct Ledger(Mutex<Book>);

impl Ledger {
    /// Asks that a run in this realm opened.
    pub(super) fn asked(&self, realm: &'static str, asks: Vec<Ask>) {
        let waiting = asks.into_iter().map(|ask| Waiting { realm, ask, sent: None });
        self.book().open.extend(waiting);
    }

    /// An ask for this person: one that it sent something to before, or one that no one answered.
    pub(super) fn take(&self, person: &Person, rng: &mut Rng) -> Option<Waiting> {
        let mut book = self.book();
        let fits = |one: &Waiting| one.sent.as_ref().is_none_or(|sent| sent.by == person.name);
        let fitting: Vec<usize> =
            (0..book.open.len()).filter(|place| fits(&book.open[*place])).collect();
        if fitting.is_empty() {
            return None;
        }
        let place = fitting[rng.below(fitting.len() as u64) as usize];
        Some(book.open.swap_remove(place))
    }

    /// Puts back what got no answer, or was put off.
    pub(super) fn put_back(&self, waiting: Waiting) {
        self.book().open.push(waiting);
    }

    /// Writes down the answer to what was sent; `was_sent` says whether it was sent before.
    pub(super) fn answered(
        &self,
        waiting: Waiting,
        decided: Decided,
        was_sent: bool,
        told: &Answer,
    ) {
        let mut book = self.book();
        let shown = match told.status {
            200 => told.json()["ask"]["decision"].clone(),
            // Nobody else takes an ask that this person sent something to.
            409 if was_sent => told.json()["decision"].clone(),
            429 | 503 => {
                book.open.push(Waiting { sent: Some(decided).filter(|_| was_sent), ..waiting });
                return;
            }
            _ => return book.faults.push(format!("{decided:?} to {waiting:?} got {told:?}")),
        };
        if !is_shown(&shown, &decided) {
            return book.faults.push(format!("{decided:?} was sent, and shown is {shown}"));
        }
        book.again += u64::from(told.status == 409);
        let before = book.decided.insert(waiting.ask.id.clone(), decided);
        if let Some(before) = before {
            book.faults.push(format!("{waiting:?} was decided before: {before:?}"));
        }
    }

    /// Something went against the rules.
    pub(super) fn fault(&self, fault: String) {
        self.book().faults.push(fault);
    }

    /// All that was acknowledged, by ask.
    pub(super) fn decided(&self) -> BTreeMap<String, Decided> {
        self.book().decided.clone()
    }

    /// How many decisions were acknowledged only when they were sent again.
    pub(super) fn again(&self) -> u64 {
        self.book().again
    }

    /// What went against the rules.
    pub(super) fn faults(&self) -> Vec<String> {
        self.book().faults.clone()
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The reply that a decision is sent as.
pub(super) fn reply(ask: &Ask, approve: bool) -> Value {
    let one = |call: &testkit::kill::AskedCall| json!({"callId": call.call_id, "approve": approve});
    json!({"decisions": ask.calls.iter().map(one).collect::<Vec<Value>>()})
}

/// Whether a decision is shown as it was given, and by whom.
pub(super) fn is_shown(shown: &Value, decided: &Decided) -> bool {
    let approve = shown.pointer("/reply/decisions/0/approve").and_then(Value::as_bool);
    shown["by"] == json!(decided.by) && approve == Some(decided.approve)
}
