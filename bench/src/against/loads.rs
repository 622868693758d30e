//! The loads that are compared, a few for each benchmark. All of them go through the product's
//! binary, each on a server of its own with a data folder of its own.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::options::Options;
use super::ratios::Better;
use crate::Result;
use crate::a2a;
use crate::agent::waiting;
use crate::gateway::Chain;
use crate::load::{self, Job};
use crate::mcp::{self, wire};
use crate::options::USAGE;
use crate::pipeline::{self, CaseServer, Cases, With};
use crate::product::server::{Server, Site};
use crate::product::throughput::{self, Kind};

const ONE: usize = 1;
const MANY: usize = 64;
const THROUGH_GATEWAY: usize = 16;

/// A benchmark as far as it can be compared.
#[derive(Debug)]
pub struct Bench {
    name: &'static str,
    /// Its title in the report.
    pub title: &'static str,
    /// What its figures are, and what is left out.
    pub note: &'static str,
    /// What is compared.
    pub loads: &'static [Load],
}

const BENCHES: &[Bench] = &[
    Bench {
        name: "durable",
        title: "Durable runs",
        note: "",
        loads: &[
            Load::Runs { kind: Kind::ReadOnly, clients: ONE },
            Load::Runs { kind: Kind::ReadOnly, clients: MANY },
            Load::Runs { kind: Kind::Writing, clients: ONE },
            Load::Runs { kind: Kind::Writing, clients: MANY },
        ],
    },
    Bench { name: "mcp", title: "MCP", note: "", loads: &[Load::ToolCalls, Load::ToolLists] },
    Bench {
        name: "gateway",
        title: "Gateway",
        note: "The server behind the gateway is the old binary in every measurement. The clients \
               hear neither progress nor log lines; a recorded call of theirs may lose a tenth at \
               most, so its `new / old` is 0.900 or more.",
        loads: &[Load::GatewayReads, Load::GatewayAdded, Load::GatewayRecorded],
    },
    Bench {
        name: "agent",
        title: "Agents",
        note: "Only what goes through the binary is compared: threads of the `rules` model that \
               wait for an approval, and their approvals. The turns and approvals that `bench \
               agent` measures in its own process are left out.",
        loads: &[Load::Threads, Load::Approvals],
    },
    Bench {
        name: "pipeline",
        title: "Pipelines",
        note: "",
        loads: &[Load::Cases(Cases::Known), Load::Cases(Cases::Unknown)],
    },
    Bench {
        name: "a2a",
        title: "A2A",
        note: "Over JSON-RPC: messages to a plan that gives its input back, and reads of one \
               task that is over.",
        loads: &[Load::Messages, Load::TaskReads],
    },
];

impl Bench {
    /// The benchmark of this name.
    pub fn named(name: &str) -> Result<&'static Self> {
        let found = BENCHES.iter().find(|bench| bench.name == name);
        Ok(found.ok_or_else(|| format!("no benchmark `{name}`\n{USAGE}"))?)
    }
}

/// One number that a load gives.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// With its unit.
    pub name: &'static str,
    /// Whether it is a rate or a latency.
    pub better: Better,
}

/// One load on a new server.
#[derive(Clone, Copy, Debug)]
pub enum Load {
    /// Runs of three steps.
    Runs {
        /// What the steps do.
        kind: Kind,
        /// How many clients ask for them.
        clients: usize,
    },
    /// `tools/call` over MCP.
    ToolCalls,
    /// `tools/list` over MCP, with many tools.
    ToolLists,
    /// Calls of a tool that reads, through the gateway.
    GatewayReads,
    /// What the gateway adds to such a call.
    GatewayAdded,
    /// Calls of a tool that are recorded, through the gateway.
    GatewayRecorded,
    /// Threads of an agent, until they wait for an approval.
    Threads,
    /// Approvals of such threads, until the answer.
    Approvals,
    /// Cases of a pipeline, each a new one.
    Cases(Cases),
    /// Messages that start a task and wait for it.
    Messages,
    TaskReads,
}

const RUNS: &[Figure] = &[Figure { name: "runs/s", better: Better::Higher }];
const REQUESTS: &[Figure] = &[Figure { name: "requests/s", better: Better::Higher }];
const CASES: &[Figure] = &[Figure { name: "cases/s", better: Better::Higher }];
const THREADS: &[Figure] = &[Figure { name: "threads/s", better: Better::Higher }];
const APPROVALS: &[Figure] = &[Figure { name: "p50 ms", better: Better::Lower }];
const ADDED: &[Figure] = &[
    Figure { name: "added ms at the median", better: Better::Lower },
    Figure { name: "of what a bare proxy adds", better: Better::Lower },
];

impl Load {
    /// As the report calls it.
    pub fn title(self) -> String {
        match self {
            Self::Runs { kind, clients } => format!("{} runs, {}", kind.name(), of(clients)),
            Self::ToolCalls => format!("tools/call, {}", of(mcp::CLIENTS)),
            Self::ToolLists => format!("tools/list of {}, {}", mcp::TOOLS, of(mcp::CLIENTS)),
            Self::GatewayReads => format!("a read through the gateway, {}", of(THROUGH_GATEWAY)),
            Self::GatewayAdded => format!("a read through the gateway, {}", of(ONE)),
            Self::GatewayRecorded => {
                format!("a recorded call through the gateway, {}", of(THROUGH_GATEWAY))
            }
            Self::Threads => format!("threads until they wait, {}", of(waiting::CLIENTS)),
            Self::Approvals => format!("approval to answer, {}", of(ONE)),
            Self::Cases(cases) => format!("cases, {} path, {}", cases.road(), of(MANY)),
            Self::Messages => format!("messages, {}", of(a2a::CLIENTS)),
            Self::TaskReads => format!("reads of a task, {}", of(a2a::CLIENTS)),
        }
    }

    /// The numbers that one measurement gives, in their order.
    pub fn figures(self) -> &'static [Figure] {
        match self {
            Self::Runs { .. } => RUNS,
            Self::ToolCalls
            | Self::ToolLists
            | Self::GatewayReads
            | Self::GatewayRecorded
            | Self::Messages
            | Self::TaskReads => REQUESTS,
            Self::GatewayAdded => ADDED,
            Self::Threads => THREADS,
            Self::Approvals => APPROVALS,
            Self::Cases(_) => CASES,
        }
    }

    /// Measures this binary once: a number for each figure.
    pub async fn measure(self, binary: &Path, options: &Options) -> Result<Vec<f64>> {
        let dir = options.dir.as_path();
        let span = options.span;
        match self {
            Self::Runs { kind, clients } => {
                let site = Site::build(Some(binary), dir)?;
                let measured = throughput::measure(&site, kind, &[clients], span).await;
                let measured = measured.map_err(|error| site.explain(&*error))?;
                let summary = measured.loads.get(&clients).ok_or("no load was measured")?;
                Ok(vec![summary.rate])
            }
            Self::ToolCalls => tool_requests(binary, options, |at| Ok(wire::calls(at))).await,
            Self::ToolLists => tool_requests(binary, options, |at| Ok(wire::lists(at))).await,
            Self::GatewayReads => {
                let chain = Chain::start(Some(binary), Some(options.old.as_path()), dir).await?;
                let summary = chain.reads(THROUGH_GATEWAY, span).await?;
                chain.stop()?;
                Ok(vec![summary.rate])
            }
            Self::GatewayRecorded => {
                let chain = Chain::start(Some(binary), Some(options.old.as_path()), dir).await?;
                let summary = chain.recorded(THROUGH_GATEWAY, span).await?;
                chain.stop()?;
                Ok(vec![summary.rate])
            }
            Self::GatewayAdded => {
                let chain = Chain::start(Some(binary), Some(options.old.as_path()), dir).await?;
                let added = chain.added(span).await?;
                chain.stop()?;
                Ok(vec![ms(added.gateway), ms(added.gateway) / ms(added.bare)])
            }
            Self::Threads => {
                let site = Site::build(Some(binary), dir)?;
                waiting::configure(&site.project())?;
                Ok(vec![rate(&site, waiting::CLIENTS, span, waiting::threads).await?])
            }
            Self::Approvals => {
                let site = Site::build(Some(binary), dir)?;
                waiting::configure(&site.project())?;
                let measured = approvals(&site, span).await;
                Ok(vec![measured.map_err(|error| site.explain(&*error))?])
            }
            Self::Cases(cases) => {
                let server = CaseServer::start(Some(binary), dir, cases, With::Nothing).await?;
                let (summary, _) = pipeline::alone(server, MANY, span).await?;
                Ok(vec![summary.rate])
            }
            Self::Messages | Self::TaskReads => {
                let site = a2a::site(binary, dir)?;
                let is_read = matches!(self, Self::TaskReads);
                let measured = tasks(&site, is_read, span).await;
                Ok(vec![measured.map_err(|error| site.explain(&*error))?])
            }
        }
    }
}

/// What is sent to a server at an address.
type MakeJob = fn(SocketAddr) -> Result<Arc<Job>>;

/// MCP requests a second, with as many tools as `bench mcp` has.
async fn tool_requests(binary: &Path, options: &Options, job: MakeJob) -> Result<Vec<f64>> {
    let site = Site::build(Some(binary), &options.dir)?;
    wire::write_plans(&site.project(), mcp::TOOLS)?;
    Ok(vec![rate(&site, mcp::CLIENTS, options.span, job).await?])
}

/// Requests a second of one job on a new server.
async fn rate(site: &Site, clients: usize, span: Duration, job: MakeJob) -> Result<f64> {
    let data = site.data()?;
    let started = Server::start(site, data.path()).await;
    let server = started.map_err(|error| site.explain(&*error))?;
    let loaded = load::run_for(&job(server.address())?, clients, span).await;
    let summary = loaded.map_err(|error| site.explain(&*error))?;
    server.stop()?;
    Ok(summary.rate)
}

/// Messages, or reads of the task of one, a second on a new server.
async fn tasks(site: &Site, is_read: bool, span: Duration) -> Result<f64> {
    let data = site.data()?;
    let server = Server::start(site, data.path()).await?;
    let job = a2a::job(server.address(), is_read).await?;
    let summary = load::run_for(&job, a2a::CLIENTS, span).await?;
    server.stop()?;
    Ok(summary.rate)
}

/// The median time of an approval on a new server, in milliseconds.
async fn approvals(site: &Site, span: Duration) -> Result<f64> {
    let data = site.data()?;
    let server = Server::start(site, data.path()).await?;
    let summary = waiting::approvals(server.address(), span).await?;
    server.stop()?;
    Ok(ms(summary.p50))
}

fn of(clients: usize) -> String {
    format!("{clients} client{}", if clients == 1 { "" } else { "s" })
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
