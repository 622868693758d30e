//! Cases that clients send to the pipeline of the examples, and the expected answers.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use crate::Result;
use crate::http::{self, Answer};
use crate::load::{Job, unexpected};

/// The pipeline, by its name.
pub const PIPELINE: &str = "trade-failures";
/// The source of all events that it publishes.
pub const SOURCE: &str = "events.out";

const FILE: &str = include_str!("../../../examples/trade-failures/pipelines/trade-failures.yaml");
/// The plan that one of its handlers runs, by its path.
const PLAN: (&str, &str) = (
    "plans/trades/isin_of_cusip.yaml",
    include_str!("../../../examples/trade-failures/plans/trades/isin_of_cusip.yaml"),
);
const ROUTE: &str = "/trade/failures";
/// The number of a case stands here; it has as many digits.
const MARK: &str = "############";

/// Which cases come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cases {
    /// Each a new one, with a reason that a handler takes.
    Known,
    /// Each a new one, with a reason that no handler takes.
    Unknown,
    /// One, over and over, with a reason that a handler takes.
    Same,
}

impl Cases {
    /// The path that they take, in the word of the pipeline.
    pub fn road(self) -> &'static str {
        match self {
            Self::Known | Self::Same => "deterministic",
            Self::Unknown => "agent",
        }
    }

    /// How many sessions so many of them leave.
    pub fn sessions(self, answered: usize) -> usize {
        match self {
            Self::Known | Self::Unknown => answered,
            Self::Same => answered.min(1),
        }
    }

    /// The request for a server at this address.
    pub fn job(self, address: SocketAddr) -> Result<Arc<Job>> {
        match self {
            Self::Known => {
                let request = request(address, MARK, "Missing ISIN");
                Job::numbered(address, request, MARK, repaired)
            }
            Self::Unknown => {
                let request = request(address, MARK, "LEI not found in registry");
                Job::numbered(address, request, MARK, ticketed)
            }
            Self::Same => Ok(Job::of(address, request(address, "1", "Missing ISIN"), repaired)),
        }
    }
}

fn request(address: SocketAddr, number: &str, reason: &str) -> Vec<u8> {
    let body = format!(r#"{{"tradeId":"T-{number}","reason":"{reason}"}}"#);
    http::post(address, ROUTE, &body)
}

fn repaired(answer: &Answer<'_>) -> Result<()> {
    expect(answer, [r#""path": "deterministic""#, r#""type": "TradeRepaired""#])
}

fn ticketed(answer: &Answer<'_>) -> Result<()> {
    expect(answer, [r#""path": "agent""#, r#""ticketId": "TICKET-"#])
}

fn expect(answer: &Answer<'_>, parts: [&str; 2]) -> Result<()> {
    let text = std::str::from_utf8(answer.body)?;
    if answer.status == 200 && parts.iter().all(|part| text.contains(part)) {
        return Ok(());
    }
    Err(unexpected(&format!("200 with {}", parts.join(" and ")), answer))
}

/// Adds the pipeline to a project; where there is a path, what it publishes is written there too.
pub fn configure(project: &Path, sink: Option<&Path>) -> Result<()> {
    let folder = project.join("pipelines");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join(format!("{PIPELINE}.yaml")), FILE)?;
    let plan = project.join(PLAN.0);
    if let Some(folder) = plan.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(plan, PLAN.1)?;
    let Some(sink) = sink else { return Ok(()) };
    let path = project.join("waypost.toml");
    let settings = std::fs::read_to_string(&path)?;
    let sink = format!(
        "[events.sinks.lines]\ntype = \"file\"\npath = '{}'\ntypes = [\"Trade*\"]\n",
        sink.display()
    );
    std::fs::write(path, format!("{settings}{sink}"))?;
    Ok(())
}
