//! The bank of the story: a small HTTP server with its own books. It can hold a caller before or
//! after its payment, where a crash hurts most.

use crate::commands::demo::waiting::until;
use crate::exit::{Exit, Failure, Result};
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::TcpListener;

/// When the bank stops answering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    /// It has the request and has done nothing about it.
    BeforePaying,
    /// It has paid, and the caller does not know that yet.
    AfterPaying,
}

/// What is to be paid.
#[derive(Debug, Clone, Deserialize)]
struct Bill {
    invoice: String,
    amount: u64,
}

/// A payment that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Payment {
    payment: String,
    invoice: String,
    amount: u64,
    /// Under which key; the caller does not get it.
    #[serde(skip)]
    key: Option<String>,
}

/// A request as it came in.
#[derive(Debug, Clone)]
struct Received {
    invoice: String,
    key: String,
}

#[derive(Debug, Default)]
struct Books {
    received: Vec<Received>,
    payments: Vec<Payment>,
    /// Where the next request gets stuck.
    hold: Option<Moment>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Bank {
    books: Arc<Mutex<Books>>,
}

impl Bank {
    /// Serves the bank for as long as it can; gives why it cannot any more.
    pub(super) async fn serve(&self, listener: TcpListener) -> Failure {
        let router = Router::new()
            .route("/payments", post(pay))
            .route("/transfers", post(transfer))
            .route("/books/{invoice}", get(books))
            .with_state(self.clone());
        let why = match axum::serve(listener, router).await {
            Ok(()) => "the demo's bank has ended".to_owned(),
            Err(error) => format!("the demo's bank has ended: {error}"),
        };
        Failure::new(Exit::Failed, "demo", why)
    }

    /// The next request gets stuck here, once.
    pub(super) fn hold_next(&self, moment: Moment) {
        self.lock().hold = Some(moment);
    }

    /// Waits for a request about this invoice, and gives its idempotency key.
    pub(super) async fn received(&self, invoice: &str) -> Result<String> {
        let key = || {
            let books = self.lock();
            let about = books.received.iter().find(|received| received.invoice == invoice);
            about.map(|received| received.key.clone())
        };
        until("the payment to reach the bank", key).await
    }

    /// What was paid for this invoice.
    pub(super) fn payments(&self, invoice: &str) -> Vec<Payment> {
        let is_its = |payment: &&Payment| payment.invoice == invoice;
        self.lock().payments.iter().filter(is_its).cloned().collect()
    }

    /// Takes a request in; nothing where its caller is never answered.
    fn take(&self, bill: &Bill, sent: String, known: Option<&str>) -> Option<Payment> {
        let mut books = self.lock();
        books.received.push(Received { invoice: bill.invoice.clone(), key: sent });
        let hold = books.hold.take();
        if hold == Some(Moment::BeforePaying) {
            return None;
        }
        let payment = books.pay(bill, known);
        hold.is_none().then_some(payment)
    }

    fn lock(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Books {
    /// Pays, unless a payment is known under this key.
    fn pay(&mut self, bill: &Bill, key: Option<&str>) -> Payment {
        let is_same = |payment: &&Payment| key.is_some() && payment.key.as_deref() == key;
        if let Some(payment) = self.payments.iter().find(is_same) {
            return payment.clone();
        }
        let payment = Payment {
            payment: format!("payment-{}", self.payments.len() + 1),
            invoice: bill.invoice.clone(),
            amount: bill.amount,
            key: key.map(str::to_owned),
        };
        self.payments.push(payment.clone());
        payment
    }
}

/// `POST /payments`: once for each key.
async fn pay(
    State(bank): State<Bank>,
    headers: HeaderMap,
    Json(bill): Json<Bill>,
) -> Json<Payment> {
    let key = key(&headers);
    answered(bank.take(&bill, key.clone(), Some(&key))).await
}

/// `POST /transfers`: whatever the key is.
async fn transfer(
    State(bank): State<Bank>,
    headers: HeaderMap,
    Json(bill): Json<Bill>,
) -> Json<Payment> {
    answered(bank.take(&bill, key(&headers), None)).await
}

/// `GET /books/{invoice}`: what the bank knows about an invoice.
async fn books(State(bank): State<Bank>, Path(invoice): Path<String>) -> Json<Value> {
    let requests = bank.lock().received.iter().filter(|one| one.invoice == invoice).count();
    let payments = bank.payments(&invoice);
    Json(json!({"invoice": invoice, "requests": requests, "payments": payments}))
}

fn key(headers: &HeaderMap) -> String {
    let key = headers.get("idempotency-key").and_then(|key| key.to_str().ok());
    key.unwrap_or_default().to_owned()
}

/// Answers with the payment; never where there is none to tell.
async fn answered(payment: Option<Payment>) -> Json<Payment> {
    match payment {
        Some(payment) => Json(payment),
        None => pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bill(invoice: &str) -> Bill {
        Bill { invoice: invoice.to_owned(), amount: 1 }
    }

    #[test]
    fn a_key_pays_once_and_no_key_every_time() {
        let bank = Bank::default();
        for _ in 0..2 {
            assert!(bank.take(&bill("a"), "k".to_owned(), Some("k")).is_some());
            assert!(bank.take(&bill("b"), "k".to_owned(), None).is_some());
        }
        assert_eq!((bank.payments("a").len(), bank.payments("b").len()), (1, 2));
    }

    #[test]
    fn one_caller_is_held_before_or_after_its_payment() {
        for (moment, paid) in [(Moment::BeforePaying, 0), (Moment::AfterPaying, 1)] {
            let bank = Bank::default();
            bank.hold_next(moment);
            assert_eq!(bank.take(&bill("a"), "k".to_owned(), None), None);
            assert_eq!(bank.payments("a").len(), paid, "{moment:?}");
            assert!(bank.take(&bill("a"), "k".to_owned(), None).is_some());
        }
    }
}
