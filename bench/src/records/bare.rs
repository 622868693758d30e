//! What HTTP and JSON cost for a page of records: a handler that runs the statements by hand, and
//! one that sends an answer which is ready. Neither checks anything.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ::axum::body::Bytes;
use ::axum::extract::State;
use ::axum::http::StatusCode;
use ::axum::http::header::CONTENT_TYPE;
use ::axum::response::{IntoResponse, Response};
use ::axum::routing::post;
use ::axum::serve::ListenerExt;
use ::axum::{Json, Router};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::net::TcpListener;

use super::hand::{Hand, Page};
use super::wire::{FIND, customer, customer_in};
use crate::Result;
use crate::child;

/// Where the answer that is ready is.
pub const READY: &str = "/ready";

/// The child's side: serves until the parent is gone. `data` is the data folder.
pub fn serve(data: Option<String>) -> Result<()> {
    let data = PathBuf::from(data.ok_or("the data folder is missing")?);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(accept(&data))
}

async fn accept(data: &Path) -> Result<()> {
    let hands = Arc::new(Hands { data: data.to_owned(), free: Mutex::default() });
    let ready = serde_json::to_vec(&hands.answer(&customer(0))?)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    child::announce(listener.local_addr()?)?;
    let listener = listener.tap_io(|stream| {
        // Without it the connection is slower, not wrong.
        let _ = stream.set_nodelay(true);
    });
    let ready = Arc::new(Bytes::from(ready));
    let of_ready: Router = Router::new().route(READY, post(send)).with_state(ready);
    let router: Router = Router::new().route(FIND, post(find)).with_state(hands);
    ::axum::serve(listener, router.merge(of_ready)).await?;
    Ok(())
}

/// As many connections as requests were answered at the same time.
struct Hands {
    data: PathBuf,
    free: Mutex<Vec<Hand>>,
}

impl Hands {
    fn answer(&self, customer: &str) -> Result<Found> {
        let kept = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let hand = kept.map_or_else(|| Hand::open(&self.data), Ok)?;
        let Page { rows, total } = hand.find(customer, true)?;
        self.free.lock().unwrap_or_else(PoisonError::into_inner).push(hand);
        Ok(Found { row_count: rows.len(), rows, total_count: total })
    }
}

#[derive(Deserialize)]
struct Request {
    query: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Found {
    rows: Vec<Value>,
    row_count: usize,
    total_count: Option<u64>,
}

async fn find(State(hands): State<Arc<Hands>>, Json(request): Json<Request>) -> Response {
    match hands.answer(customer_in(&request.query)) {
        Ok(found) => Json(found).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

async fn send(State(ready): State<Arc<Bytes>>, Json(_): Json<Request>) -> Response {
    ([(CONTENT_TYPE, "application/json")], Bytes::clone(&ready)).into_response()
}
