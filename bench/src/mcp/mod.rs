//! `bench mcp`: the MCP endpoint beside bare axum handlers that answer the same. In turns, because
//! the machine is not the same from minute to minute.

pub mod wire;
pub mod bare;

use std::path::PathBuf;
use std::time::Duration;

use crate::Result;
use crate::child::{self, Child};
use crate::http::Client;
use crate::load::{self, Job, Summary};
use crate::options::{USAGE, positive};
use crate::product::server::{Server, Site};
use crate::report::{self, Table, load_cells, megabytes};

const SECONDS: u64 = 5;
/// How many clients ask at once, unless told otherwise.
pub const CLIENTS: usize = 16;
/// How many plans are tools beside the built-in ones, unless told otherwise.
pub const TOOLS: usize = 1_000;
const CALLS: usize = 1_000_000;
/// How often each pair is measured; the middle one counts.
const ROUNDS: usize = 3;

const CALL_SHARE_MIN: f64 = 0.60;
const LIST_SHARE_MIN: f64 = 0.50;
/// Caches and the allocator settle within this; a leak of ten bytes a call would be more.
const GROWTH_BYTES_MAX: u64 = 8_000_000;

/// What to measure, and for how long.
#[derive(Debug)]
pub struct Options {
    span: Duration,
    clients: usize,
    tools: usize,
    calls: usize,
    dir: PathBuf,
    server: Option<PathBuf>,
}

impl Options {
    /// Reads the arguments after `mcp` and the environment.
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = Self {
            span: Duration::from_secs(SECONDS),
            clients: CLIENTS,
            tools: TOOLS,
            calls: CALLS,
            dir: std::env::temp_dir(),
            server: std::env::var_os("WAYPOST_BIN").map(PathBuf::from),
        };
        while let Some(flag) = arguments.next() {
            let value = arguments.next().ok_or_else(|| format!("`{flag}` needs a value"))?;
            let number = || positive(&flag, &value);
            match flag.as_str() {
                "--seconds" => options.span = Duration::from_secs(u64::try_from(number()?)?),
                "--clients" => options.clients = number()?,
                "--tools" => options.tools = number()?,
                "--calls" => options.calls = number()?,
                "--dir" => options.dir = PathBuf::from(&value),
                _ => return Err(format!("unknown option `{flag}`\n{USAGE}").into()),
            }
        }
        Ok(options)
    }
}

/// Measures all of it and says which targets were met.
pub async fn measure(options: &Options) -> Result<()> {
    report::header("MCP", &options.dir)?;
    let site = Site::build(options.server.as_deref(), &options.dir)?;
    wire::write_plans(&site.project(), options.tools)?;
    let data = site.data()?;
    let server = Server::start(&site, data.path()).await?;
    match sections(options, &server).await {
        Ok(targets) => {
            server.stop()?;
            report::section("Targets", "", &targets);
            Ok(())
        }
        Err(error) => Err(site.explain(&*error).into()),
    }
}

async fn sections(options: &Options, server: &Server) -> Result<Table> {
    let address = server.address();
    let listed = Client::connect(address).await?.send(&wire::list(address)).await?.body.to_vec();
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), &listed)?;
    let bare = Child::start_with(child::MCP, &[file.path().as_os_str()])?;

    let calls = wire::calls(address);
    let bare_calls = wire::calls(bare.address());
    let call = pair(options, "tools/call", &calls, &bare_calls).await?;
    let note = "`tools/call` of `math::add`, 2026-07-28, answered as JSON. The bare handler parses \
                the request with serde and answers the same members; it checks nothing.";
    report::section("tools/call", note, &call.table());

    let lists = wire::lists(address);
    let bare_lists = wire::lists(bare.address());
    let list = pair(options, "tools/list", &lists, &bare_lists).await?;
    let note = format!(
        "`tools/list` with {} plans beside the built-in tools: {} bytes. The bare handler parses \
         the request and sends the same bytes.",
        options.tools,
        listed.len()
    );
    report::section("tools/list", &note, &list.table());

    let memory = memory(options, server, &calls).await?;
    report::section("Memory", "", &memory.table());
    Ok(targets(options, &call, &list, &memory))
}

/// The product and its baseline, measured in turns.
struct Pair {
    product: Summary,
    bare: Summary,
}

impl Pair {
    fn share(&self) -> f64 {
        self.product.rate / self.bare.rate
    }

    fn table(&self) -> Table {
        let mut table = Table::new(&["who", "requests/s", "p50 ms", "p99 ms", "of bare"]);
        let rows = [("bare axum", &self.bare, 1.0), ("waypost", &self.product, self.share())];
        for (who, summary, share) in rows {
            let mut cells = load_cells(who, summary);
            cells.push(format!("{share:.2}"));
            table.row(cells);
        }
        table
    }
}

async fn pair(
    options: &Options,
    what: &str,
    product: &std::sync::Arc<Job>,
    bare: &std::sync::Arc<Job>,
) -> Result<Pair> {
    let mut pairs = Vec::with_capacity(ROUNDS);
    for round in 1..=ROUNDS {
        report::progress(&format!("{what}, {} clients, round {round}", options.clients));
        let bare = load::run_for(bare, options.clients, options.span).await?;
        let product = load::run_for(product, options.clients, options.span).await?;
        pairs.push(Pair { product, bare });
    }
    pairs.sort_by(|left, right| left.share().total_cmp(&right.share()));
    Ok(pairs.swap_remove(ROUNDS / 2))
}

struct Memory {
    calls: usize,
    before: u64,
    after: u64,
}

impl Memory {
    fn growth(&self) -> u64 {
        self.after.saturating_sub(self.before)
    }

    fn table(&self) -> Table {
        let mut table = Table::new(&["when", "resident MB"]);
        table.row(vec!["after the loads above".to_owned(), megabytes(self.before)]);
        table.row(vec![format!("after {} more calls", self.calls), megabytes(self.after)]);
        table
    }
}

async fn memory(options: &Options, server: &Server, calls: &std::sync::Arc<Job>) -> Result<Memory> {
    report::progress(&format!("{} calls", options.calls));
    let before = server.rss_bytes()?;
    load::run_count(calls, options.clients, options.calls).await?;
    Ok(Memory { calls: options.calls, before, after: server.rss_bytes()? })
}

fn targets(options: &Options, call: &Pair, list: &Pair, memory: &Memory) -> Table {
    let met = |met: bool| if met { "yes" } else { "no" }.to_owned();
    let mut table = Table::new(&["target", "measured", "met"]);
    let calls = call.share();
    let lists = list.share();
    table.row(vec![
        format!("tools/call, {} clients ≥ {CALL_SHARE_MIN:.2} of bare", options.clients),
        format!("{calls:.2}"),
        met(calls >= CALL_SHARE_MIN),
    ]);
    table.row(vec![
        format!("tools/list of {} ≥ {LIST_SHARE_MIN:.2} of the same bytes bare", options.tools),
        format!("{lists:.2}"),
        met(lists >= LIST_SHARE_MIN),
    ]);
    let growth = memory.growth();
    table.row(vec![
        format!("memory flat over {} calls (< 8 MB more)", memory.calls),
        format!("{} MB more", megabytes(growth)),
        met(growth < GROWTH_BYTES_MAX),
    ]);
    table
}
