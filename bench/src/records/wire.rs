//! The records that are measured, and the requests that save and find them.

use std::net::SocketAddr;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use tokio::task::JoinSet;

use crate::Result;
use crate::http::{self, Answer, Client};
use crate::load::{Job, unexpected};

/// The realm of a server in local mode.
pub const REALM: &str = "default";
/// The name of the type.
pub const TYPE: &str = "Order";
/// Where records are found, on the server and on the bare one.
pub const FIND: &str = "/api/query/find";
/// How many records each customer has: two pages.
pub const OF_CUSTOMER: usize = 100;
/// The rows of a page.
pub const PAGE: usize = 50;
/// What some of the records are.
pub const STATUS: &str = "open";

const SAVE: &str = "/api/query/save";
const FILE: &str = "entities/Order.yaml";
const DECLARED: &str = "\
fields:
  customer: {type: string, indexed: true}
  status: {type: string, indexed: true}
  total: {type: number}
  note: {type: string}
";
const STATUSES: [&str; 5] = [STATUS, "paid", "sent", "closed", "lost"];
const NOTE: &str = "leave it at the door on the left, and ring twice";
/// How many clients fill the server.
const CLIENTS: usize = 64;
/// Where the number of a record goes that is saved under load.
const MARK: &str = "000000000";

/// Declares the type in a project.
pub fn configure(project: &Path) -> Result<()> {
    let path = project.join(FILE);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, DECLARED)?;
    Ok(())
}

/// The customer of this number.
pub fn customer(number: usize) -> String {
    format!("c-{number:07}")
}

/// The query that finds the records of a customer.
pub fn of_customer(number: usize) -> String {
    format!("customer:\"{}\"", customer(number))
}

/// The customer that a query is about.
pub fn customer_in(query: &str) -> &str {
    query.split('"').nth(1).unwrap_or_default()
}

fn entity(name: &str, number: usize) -> String {
    let customer = customer(number / OF_CUSTOMER);
    // Neighbours differ, and so do the records of one customer.
    let status = STATUSES[number % STATUSES.len()];
    let total = number as f64 + 0.5;
    let entity = json!({
        "refName": name,
        "customer": customer,
        "status": status,
        "total": total,
        "note": NOTE,
    });
    json!({"rootType": TYPE, "entity": entity}).to_string()
}

/// Saves the records of these numbers, by many clients at the same time.
pub async fn fill(address: SocketAddr, numbers: Range<usize>) -> Result<()> {
    let next = Arc::new(AtomicUsize::new(numbers.start));
    let mut tasks = JoinSet::new();
    for _ in 0..CLIENTS {
        tasks.spawn(save_all(address, Arc::clone(&next), numbers.end));
    }
    while let Some(joined) = tasks.join_next().await {
        joined??;
    }
    Ok(())
}

async fn save_all(address: SocketAddr, next: Arc<AtomicUsize>, end: usize) -> Result<()> {
    let mut client = Client::connect(address).await?;
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= end {
            return Ok(());
        }
        let body = entity(&format!("order-{number:09}"), number);
        saved(&client.send(&http::post(address, SAVE, &body)).await?)?;
    }
}

/// Saves of new records.
pub fn saves(address: SocketAddr) -> Result<Arc<Job>> {
    let body = entity(&format!("late-{MARK}"), 0);
    Job::numbered(address, http::post(address, SAVE, &body), MARK, saved)
}

fn saved(answer: &Answer<'_>) -> Result<()> {
    let text = std::str::from_utf8(answer.body)?;
    if answer.status == 200 && text.contains(r#""isNew":true"#) {
        return Ok(());
    }
    Err(unexpected("200 with a new record", answer))
}

/// The page of one customer, with the number of all rows.
pub fn finds(address: SocketAddr, path: &str) -> Arc<Job> {
    let body = json!({"rootType": TYPE, "query": of_customer(0), "limit": PAGE});
    Job::of(address, http::post(address, path, &body.to_string()), found)
}

fn found(answer: &Answer<'_>) -> Result<()> {
    let text = std::str::from_utf8(answer.body)?;
    let rows = format!(r#""rowCount":{PAGE}"#);
    if answer.status == 200 && text.contains(&rows) {
        return Ok(());
    }
    Err(unexpected("200 with a whole page", answer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_names_its_customer() {
        assert_eq!(customer_in(&of_customer(42)), customer(42));
        assert_eq!(customer_in("status:open"), "");
    }

    #[test]
    fn entities_are_json() {
        let body: serde_json::Value = serde_json::from_str(&entity("order-1", 123)).unwrap();
        assert_eq!(body["entity"]["customer"], "c-0000001");
        assert_eq!(body["entity"]["total"], 123.5);
    }
}
