//! The ordinary load: a few clients of each kind, who pause between two requests as people and
//! programs do, so that the server is not busy with them alone.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::Result;
use crate::http::{self, Client};
use crate::load::{self, RUNS_PATH, Summary};
use crate::mcp::wire;

/// What the section's numbers are.
pub const NOTE: &str = "Four clients of each kind with a pause of 50 ms between two requests. A \
    request that is refused, or not answered, is counted and not timed.";

const CLIENTS: usize = 4;
const PAUSE: Duration = Duration::from_millis(50);
const RECONNECT_PAUSE: Duration = Duration::from_millis(100);

/// What the clients do.
pub const KINDS: [Kind; 6] =
    [Kind::ReadRun, Kind::WriteRun, Kind::ToolCall, Kind::McpCall, Kind::List, Kind::Ask];

/// A kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A run of three reads.
    ReadRun,
    /// A run of three writes.
    WriteRun,
    /// A call of a tool.
    ToolCall,
    /// The same over MCP.
    McpCall,
    /// A list of the plans.
    List,
    /// A run that asks, and its answer: two requests, timed together.
    Ask,
}

impl Kind {
    /// As the report calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadRun => "run of reads",
            Self::WriteRun => "run of writes",
            Self::ToolCall => "tool call",
            Self::McpCall => "MCP call",
            Self::List => "list",
            Self::Ask => "ask and answer",
        }
    }

    /// Does it once; an error where it was not answered as it should be.
    async fn once(self, client: &mut Client, address: SocketAddr) -> Result<()> {
        let run = |body: &str| http::post(address, RUNS_PATH, body);
        match self {
            Self::ReadRun => load::completed(&client.send(&run(load::READ_ONLY_RUN)).await?),
            Self::WriteRun => {
                let request = run(r#"{"planId":"bench/write3","input":{"n":1}}"#);
                load::completed(&client.send(&request).await?)
            }
            Self::ToolCall => {
                let path = "/api/v1/tools/math%3A%3Aadd/call";
                let request = http::post(address, path, r#"{"arguments":{"a":20,"b":22}}"#);
                done(&client.send(&request).await?)
            }
            Self::McpCall => wire::called(&client.send(&wire::call(address)).await?),
            Self::List => done(&client.send(&http::get(address, "/api/v1/plans")).await?),
            Self::Ask => {
                let answer = client.send(&run(r#"{"planId":"bench/ask"}"#)).await?;
                load::waiting(&answer)?;
                let waiting: Value = serde_json::from_slice(answer.body)?;
                let ask = waiting["run"]["asks"][0]["id"].as_str().ok_or("a run without an ask")?;
                let path = format!("/api/v1/asks/{ask}");
                let reply = http::post(address, &path, r#"{"answer":"yes"}"#);
                done(&client.send(&reply).await?)
            }
        }
    }
}

fn done(answer: &http::Answer<'_>) -> Result<()> {
    if answer.status == 200 { Ok(()) } else { Err(load::unexpected("200", answer)) }
}

/// The outcome of a load, by kind.
#[derive(Debug)]
pub struct Taken {
    times: [Vec<Duration>; KINDS.len()],
    /// How many requests were refused or not answered.
    pub refused: [usize; KINDS.len()],
    elapsed: Duration,
}

impl Taken {
    /// Of one kind.
    pub fn of(&self, at: usize) -> Summary {
        Summary::of(self.times[at].clone(), self.elapsed)
    }

    /// Of all kinds together.
    pub fn all(&self) -> Summary {
        Summary::of(self.times.concat(), self.elapsed)
    }
}

/// Loads for this long.
pub async fn run(address: SocketAddr, span: Duration) -> Result<Taken> {
    let begun = Instant::now();
    let mut tasks = JoinSet::new();
    for (at, kind) in KINDS.into_iter().enumerate() {
        for _ in 0..CLIENTS {
            tasks.spawn(async move { (at, repeat(kind, address, begun + span).await) });
        }
    }
    let mut taken = Taken { times: Default::default(), refused: Default::default(), elapsed: span };
    while let Some(joined) = tasks.join_next().await {
        let (at, (times, refused)) = joined?;
        taken.times[at].extend(times);
        taken.refused[at] += refused;
    }
    taken.elapsed = begun.elapsed();
    if taken.times.iter().any(Vec::is_empty) {
        return Err("a kind of ordinary requests was never answered".into());
    }
    Ok(taken)
}

/// One client until its time is over: how long each request took, and how many failed.
async fn repeat(kind: Kind, address: SocketAddr, until: Instant) -> (Vec<Duration>, usize) {
    let mut times = Vec::new();
    let mut refused = 0;
    let mut kept: Option<Client> = None;
    while Instant::now() < until {
        let begun = Instant::now();
        // Who has no connection waits for one as part of the request.
        match tried(kind, &mut kept, address).await {
            Ok(()) => {
                times.push(begun.elapsed());
                sleep(PAUSE).await;
            }
            Err(_) => {
                refused += 1;
                sleep(RECONNECT_PAUSE).await;
            }
        }
    }
    (times, refused)
}

/// The client is kept if it was answered as it should be.
async fn tried(kind: Kind, kept: &mut Option<Client>, address: SocketAddr) -> Result<()> {
    let mut client = Client::kept_or_new(kept, address).await?;
    kind.once(&mut client, address).await?;
    *kept = Some(client);
    Ok(())
}
