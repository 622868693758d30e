//! `bench gateway`: a tool of another server, called directly and through us. In turns, because the
//! machine is not the same from minute to minute. The other server is one of ours, so that it is
//! not what is measured; a bare proxy says what it costs to stand between at all, and FastMCP as a
//! proxy before the same server stands beside, where its Python is installed.

pub mod bare;

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::time::sleep;

use crate::Result;
use crate::child::{self, Child};
use crate::http::{self, Client};
use crate::load::turns::{self, Ratios, Turns};
use crate::load::{self, Job, Summary};
use crate::mcp::wire;
use crate::options::{USAGE, positive};
use crate::product::server::{Launcher, Server, Site};
use crate::report::{self, Table, load_cells, ms};

const SECONDS: u64 = 3;
const CLIENTS: [usize; 2] = [1, 16];
/// How often everything is measured for so long, unless `--rounds` says otherwise.
const ROUNDS: usize = 3;
const LISTED_LIMIT: Duration = Duration::from_secs(120);
const LISTED_PAUSE: Duration = Duration::from_millis(20);

const ADDED_MAX: Duration = Duration::from_micros(100);
const OF_FLOOR_MIN: f64 = 0.60;

/// Where the bare proxy stands among the ways.
const FLOOR: usize = 0;

/// The upstream whose tools read.
const READS: &str = "reads";
/// The upstream of which every call is a run.
pub const KEPT: &str = "kept";

/// An upstream as an operator may describe it.
struct Described {
    name: &'static str,
    said: &'static str,
    /// How it is called in the report.
    shown: &'static str,
    has_target: bool,
}

/// The upstream three times.
const UPSTREAMS: [Described; 3] = [
    Described { name: READS, said: "trusted = true", shown: "waypost, a read", has_target: true },
    Described {
        name: "open",
        said: "journal = false",
        shown: "waypost, a write that is not recorded",
        has_target: true,
    },
    Described {
        name: KEPT,
        said: "journal = true",
        shown: "waypost, a recorded write",
        has_target: false,
    },
];

/// What to measure, and for how long.
#[derive(Debug)]
pub struct Options {
    span: Duration,
    rounds: usize,
    dir: PathBuf,
    server: Option<PathBuf>,
    /// The Python of FastMCP and the script that proxies, if both are there.
    fastmcp: Option<(PathBuf, PathBuf)>,
}

impl Options {
    /// Reads the arguments after `gateway` and the environment.
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let file =
            |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_file());
        let mut options = Self {
            span: Duration::from_secs(SECONDS),
            rounds: ROUNDS,
            dir: std::env::temp_dir(),
            server: std::env::var_os("WAYPOST_BIN").map(PathBuf::from),
            fastmcp: file("FASTMCP_PYTHON").zip(file("FASTMCP_PROXY")),
        };
        while let Some(flag) = arguments.next() {
            let value = arguments.next().ok_or_else(|| format!("`{flag}` needs a value"))?;
            match flag.as_str() {
                "--seconds" => {
                    options.span = Duration::from_secs(u64::try_from(positive(&flag, &value)?)?);
                }
                "--rounds" => options.rounds = positive(&flag, &value)?,
                "--dir" => options.dir = PathBuf::from(&value),
                _ => return Err(format!("unknown option `{flag}`\n{USAGE}").into()),
            }
        }
        Ok(options)
    }
}

/// Measures all of it and says which targets were met.
pub async fn measure(options: &Options) -> Result<()> {
    report::header("Gateway", &options.dir)?;
    let server = options.server.as_deref();
    let chain = Chain::start(server, server, &options.dir).await?;
    match sections(options, chain.upstream.address(), chain.gateway.address()).await {
        Ok(targets) => {
            chain.stop()?;
            report::section("Targets", "", &targets);
            Ok(())
        }
        Err(error) => Err(chain.before.explain(&*error).into()),
    }
}

/// A gateway and the server behind it.
#[derive(Debug)]
pub struct Chain {
    // First, so that they are stopped before their folders go.
    gateway: Server,
    upstream: Server,
    before: Site,
    // Held for their folders.
    _behind: Site,
    _data: [TempDir; 2],
}

/// What a call takes longer at the median than a direct one.
#[derive(Clone, Copy, Debug)]
pub struct Added {
    /// Through the gateway.
    pub gateway: Duration,
    /// Through a bare proxy.
    pub bare: Duration,
}

impl Chain {
    /// Starts both, each on a project and data of its own.
    pub async fn start(
        gateway: Option<&Path>,
        upstream: Option<&Path>,
        dir: &Path,
    ) -> Result<Self> {
        Self::start_under(&Launcher::default(), gateway, upstream, dir).await
    }

    /// The same with a gateway that another program runs.
    pub async fn start_under(
        launcher: &Launcher,
        gateway: Option<&Path>,
        upstream: Option<&Path>,
        dir: &Path,
    ) -> Result<Self> {
        let behind = Site::build(upstream, dir)?;
        let data = [behind.data()?, behind.data()?];
        let [behind_data, before_data] = &data;
        let upstream = Server::start(&behind, behind_data.path()).await?;
        let before = Site::build(gateway, dir)?.under(launcher);
        configure(&before.project(), upstream.address())?;
        let started = Server::start(&before, before_data.path()).await;
        let gateway = started.map_err(|error| before.explain(&*error))?;
        Ok(Self { gateway, upstream, before, _behind: behind, _data: data })
    }

    /// Where the gateway listens.
    pub fn address(&self) -> SocketAddr {
        self.gateway.address()
    }

    pub fn gateway(&self) -> &Server {
        &self.gateway
    }

    /// The outcome of asking the gateway; an error comes with the end of its log.
    pub fn explained<T>(&self, outcome: Result<T>) -> Result<T> {
        outcome.map_err(|error| self.before.explain(&*error).into())
    }

    /// A call that reads, through the gateway, once its tool is there.
    pub async fn read_request(&self) -> Result<Vec<u8>> {
        call_through(self.gateway.address(), READS).await
    }

    /// A load of calls that read, through the gateway.
    pub async fn reads(&self, clients: usize, span: Duration) -> Result<Summary> {
        self.calls(READS, clients, span).await
    }

    /// A load of calls that are recorded, by clients that hear neither progress nor log lines.
    pub async fn recorded(&self, clients: usize, span: Duration) -> Result<Summary> {
        self.calls(KEPT, clients, span).await
    }

    async fn calls(&self, upstream: &str, clients: usize, span: Duration) -> Result<Summary> {
        let job = through(self.gateway.address(), upstream).await?;
        let loaded = load::run_for(&job, clients, span).await;
        Ok(loaded.map_err(|error| self.before.explain(&*error))?)
    }

    /// What the gateway adds to a call of one client, and what a bare proxy adds to it.
    pub async fn added(&self, span: Duration) -> Result<Added> {
        let upstream = self.upstream.address();
        let floor = floor(upstream)?;
        let direct = load::run_for(&wire::calls(upstream), 1, span).await?;
        let bare = load::run_for(&wire::calls(floor.address()), 1, span).await?;
        let through = self.reads(1, span).await?;
        Ok(Added { gateway: added(&direct, &through), bare: added(&direct, &bare) })
    }

    /// Stops both in order.
    pub fn stop(self) -> Result<()> {
        let Self { gateway, upstream, .. } = self;
        gateway.stop()?;
        upstream.stop()
    }
}

/// Adds the upstream to a project, once for each way to describe it.
fn configure(project: &Path, upstream: SocketAddr) -> Result<()> {
    let path = project.join("waypost.toml");
    let mut settings = std::fs::read_to_string(&path)?;
    for Described { name, said, .. } in UPSTREAMS {
        let url = format!("http://{upstream}{}", wire::PATH);
        settings.push_str(&format!("[mcp.servers.{name}]\nurl = \"{url}\"\n{said}\n"));
    }
    std::fs::write(path, settings)?;
    Ok(())
}

/// One way to the tool.
struct Way {
    name: String,
    job: Arc<Job>,
    has_target: bool,
}

async fn sections(options: &Options, upstream: SocketAddr, gateway: SocketAddr) -> Result<Table> {
    let direct = wire::calls(upstream);
    // The two proxies are held for their processes.
    let floor = floor(upstream)?;
    let job = wire::calls(floor.address());
    let mut ways = vec![Way { name: "a bare proxy, the floor".to_owned(), job, has_target: false }];
    for Described { name, shown, has_target, .. } in UPSTREAMS {
        let job = through(gateway, name).await?;
        ways.push(Way { name: shown.to_owned(), job, has_target });
    }
    let proxy = foreign(options, upstream)?;
    if let Some(proxy) = &proxy {
        let address = proxy.address();
        let job = wire::calls(address);
        wait_until_called(address).await?;
        ways.push(Way { name: "FastMCP as a proxy".to_owned(), job, has_target: false });
    }
    let mut targets = Table::new(&["target", "measured", "met"]);
    for clients in CLIENTS {
        let compared = Compared::measure(options, clients, &direct, &ways).await?;
        let note = "`tools/call` of `math::add` of another server of ours, 2026-07-28, answered \
                    as JSON. What is added is the difference of the medians of a turn.";
        let title = format!("{clients} client{}", if clients == 1 { "" } else { "s" });
        report::section(&title, note, &table(&ways, &compared));
        judge(clients, &ways, &compared, &mut targets);
    }
    Ok(targets)
}

/// Calls of the tool of the upstream that goes by this name, once it is there.
async fn through(gateway: SocketAddr, upstream: &str) -> Result<Arc<Job>> {
    Ok(Job::of(gateway, call_through(gateway, upstream).await?, wire::called))
}

async fn call_through(gateway: SocketAddr, upstream: &str) -> Result<Vec<u8>> {
    let tool = format!("{upstream}.{}", wire::TOOL);
    wait_until_listed(gateway, &tool).await?;
    Ok(wire::call_of(gateway, &tool))
}

/// A bare proxy before the same server.
fn floor(upstream: SocketAddr) -> Result<Child> {
    Child::start_with(child::PROXY, &[OsStr::new(&upstream.to_string())])
}

/// FastMCP before the same server, if it is there. It speaks to it as of 2025-11-25: what a tool
/// may answer since 2026-07-28, a bare value, it refuses.
fn foreign(options: &Options, upstream: SocketAddr) -> Result<Option<Child>> {
    let Some((python, script)) = &options.fastmcp else {
        println!("FastMCP is not measured: `cargo xtask upstreams` installs it.\n");
        return Ok(None);
    };
    let mut command = Command::new(python);
    command.arg(script).arg(format!("http://{upstream}{}", wire::PATH));
    Child::start_program("FastMCP", &mut command).map(Some)
}

/// Upstreams are connected to in the background.
async fn wait_until_listed(address: SocketAddr, tool: &str) -> Result<()> {
    let request = http::get(address, &format!("/api/v1/tools/{tool}"));
    wait_until(address, &request, &format!("`{tool}` is not listed")).await
}

async fn wait_until_called(address: SocketAddr) -> Result<()> {
    wait_until(address, &wire::call(address), "the proxy does not answer").await
}

async fn wait_until(address: SocketAddr, request: &[u8], otherwise: &str) -> Result<()> {
    let begun = Instant::now();
    while begun.elapsed() < LISTED_LIMIT {
        if let Ok(mut client) = Client::connect(address).await
            && client.send(request).await.is_ok_and(|answer| answer.status == 200)
        {
            return Ok(());
        }
        sleep(LISTED_PAUSE).await;
    }
    Err(format!("{otherwise} within {} s", LISTED_LIMIT.as_secs()).into())
}

/// What a call takes longer at the median than a direct one.
fn added(direct: &Summary, through: &Summary) -> Duration {
    through.p50.saturating_sub(direct.p50)
}

/// All ways in turns with the direct one.
struct Compared {
    ways: Vec<Turns>,
    direct: Turns,
    /// The bare proxy a second time.
    again: Turns,
}

impl Compared {
    async fn measure(
        options: &Options,
        clients: usize,
        direct: &Arc<Job>,
        ways: &[Way],
    ) -> Result<Self> {
        report::progress(&format!("{clients} clients"));
        let jobs = ways.iter().map(|way| &way.job);
        // Far from each other: that is how far a ratio can stray.
        let jobs: Vec<&Arc<Job>> = jobs.chain([direct, &ways[FLOOR].job]).collect();
        let rounds = u32::try_from(options.rounds)?;
        let mut ways = turns::measure(&jobs, clients, options.span * rounds).await?;
        let missing = "not all loads were measured";
        let again = ways.pop().ok_or(missing)?;
        let direct = ways.pop().ok_or(missing)?;
        Ok(Self { direct, again, ways })
    }

    fn of_floor(&self, through: &Turns) -> Ratios {
        through.of(&self.ways[FLOOR])
    }
}

fn table(ways: &[Way], compared: &Compared) -> Table {
    let head = [
        "who",
        "requests/s",
        "p50 ms",
        "p99 ms",
        "added ms",
        "of direct",
        "of the bare proxy (half of all)",
    ];
    let mut table = Table::new(&head);
    let Compared { direct, again, ways: measured } = compared;
    let mut row = |name: &str, through: &Turns| {
        let mut cells = load_cells(name, &through.total);
        cells.push(ms(through.added_to(direct)));
        cells.push(format!("{:.2}", through.of(direct).middle()));
        cells.push(compared.of_floor(through).spread());
        table.row(cells);
    };
    row("direct", direct);
    for (way, through) in ways.iter().zip(measured) {
        row(&way.name, through);
    }
    row("the bare proxy itself", again);
    table
}

fn judge(clients: usize, ways: &[Way], compared: &Compared, targets: &mut Table) {
    let met = |met: bool| if met { "yes" } else { "no" }.to_owned();
    for (way, through) in ways.iter().zip(&compared.ways).filter(|(way, _)| way.has_target) {
        let added = through.added_to(&compared.direct);
        let share = compared.of_floor(through);
        let name = &way.name;
        targets.row(if clients == 1 {
            vec![
                format!("{name}, 1 client: adds ≤ {} ms at the median", ms(ADDED_MAX)),
                format!("{} ms", ms(added)),
                met(added <= ADDED_MAX),
            ]
        } else {
            vec![
                format!("{name}, {clients} clients: ≥ {OF_FLOOR_MIN:.2} of the bare proxy's rate"),
                share.spread(),
                met(share.middle() >= OF_FLOOR_MIN),
            ]
        });
    }
}
