//! `bench auth`: what it costs to know who calls and what it may do. Servers that ask for
//! credentials and have 200 policies stand beside one in local mode, which asks no one. In turns,
//! because the machine is not the same from minute to minute. And what others notice of a flood of
//! unknown key ids, beside themselves without it.

pub mod issuer;
mod policies;
mod station;
mod flood;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::Result;
use crate::child::{self, Child};
use crate::http::{Client, find, post_with};
use crate::load::turns::{self, Ratios, Turns};
use crate::load::{self, Job, READ_ONLY_RUN, RUNS_PATH};
use crate::mcp::{CLIENTS, wire};
use crate::options::{USAGE, positive};
use crate::product::server::Launcher;
use crate::report::{self, Table, load_cells, ms};
use station::{Asking, Described};

pub use issuer::Signer;
pub use station::Station;

const SECONDS: u64 = 5;
const TOOLS: usize = 2_000;
const POLICIES: usize = 200;
/// How often each load is measured for so long, unless `--rounds` says otherwise.
const ROUNDS: usize = 3;
/// How many new tokens are shown, and how many new subjects list the tools.
const TOKENS: usize = 200;
const SUBJECTS: usize = 10;

const KNOWN_SHARE_MIN: f64 = 0.9;
const AUDITED_SHARE_MIN: f64 = 0.75;
const JUDGED_SHARE_MIN: f64 = 0.5;
const RUNS_SHARE_MIN: f64 = 0.9;
const TOKEN_MAX: Duration = Duration::from_millis(1);
const LIST_MAX: Duration = Duration::from_millis(100);

/// What to measure, and for how long.
#[derive(Debug)]
pub struct Options {
    span: Duration,
    clients: usize,
    tools: usize,
    rounds: usize,
    dir: PathBuf,
    server: Option<PathBuf>,
}

impl Options {
    /// Reads the arguments after `auth` and the environment.
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = Self {
            span: Duration::from_secs(SECONDS),
            clients: CLIENTS,
            tools: TOOLS,
            rounds: ROUNDS,
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
                "--rounds" => options.rounds = number()?,
                "--dir" => options.dir = PathBuf::from(&value),
                _ => return Err(format!("unknown option `{flag}`\n{USAGE}").into()),
            }
        }
        Ok(options)
    }

    /// How long each load of a comparison is measured.
    fn compared(&self) -> Duration {
        self.span * u32::try_from(self.rounds).unwrap_or(u32::MAX)
    }
}

/// A server that asks for credentials, and has as many policies as are measured here.
pub async fn guarded(
    binary: &Path,
    dir: &Path,
    issuer: SocketAddr,
    launcher: &Launcher,
) -> Result<Station> {
    let policies = policies::few(POLICIES);
    let policies = policies.as_str();
    let asking = Asking { issuer, policies, audits_reads: false, is_behind_proxy: false };
    let described =
        Described { binary: Some(binary), dir, tools: 0, asking: Some(asking), launcher };
    Station::start(&described).await
}

/// Measures all of it and says which targets were met.
pub async fn measure(options: &Options) -> Result<()> {
    report::header("Credentials and policies", &options.dir)?;
    // Held for its process.
    let issuer = Child::start(child::ISSUER)?;
    let stations = Stations::start(options, &issuer).await?;
    let targets = sections(options, &stations, &Signer::new(issuer.address())?).await?;
    stations.stop()?;
    report::section("Targets", "", &targets);
    Ok(())
}

/// The servers beside each other.
struct Stations {
    /// Asks no one.
    local: Station,
    /// Asks everybody; one of its policies applies to a call.
    asking: Station,
    /// The same, with allowed reads in the audit.
    audited: Station,
    /// Ten of its policies apply to a call, and three of them read the arguments.
    judged: Station,
    /// As the one that asks everybody, behind a proxy: a flood has an address for each attempt.
    flooded: Station,
}

impl Stations {
    async fn start(options: &Options, issuer: &Child) -> Result<Self> {
        let direct = Launcher::default();
        let few = policies::few(POLICIES);
        let many = policies::many(POLICIES);
        let describe = |asking| {
            let Options { server, dir, tools, .. } = options;
            Described { binary: server.as_deref(), dir, tools: *tools, asking, launcher: &direct }
        };
        let usual = Asking {
            issuer: issuer.address(),
            policies: &few,
            audits_reads: false,
            is_behind_proxy: false,
        };
        let audited = Asking { audits_reads: true, ..usual };
        let judged = Asking { policies: &many, ..usual };
        let flooded = Asking { is_behind_proxy: true, ..usual };
        Ok(Self {
            local: Station::start(&describe(None)).await?,
            asking: Station::start(&describe(Some(usual))).await?,
            audited: Station::start(&describe(Some(audited))).await?,
            judged: Station::start(&describe(Some(judged))).await?,
            flooded: Station::start(&describe(Some(flooded))).await?,
        })
    }

    fn stop(self) -> Result<()> {
        let Self { local, asking, audited, judged, flooded } = self;
        [local, asking, audited, judged, flooded].into_iter().try_for_each(Station::stop)
    }
}

async fn sections(options: &Options, stations: &Stations, signer: &Signer) -> Result<Table> {
    let mut targets = Table::new(&["target", "measured", "met"]);
    let ways = read_ways(stations, signer).await?;
    let compared = compare(options, "reads", &calls(&stations.local, ""), &ways).await?;
    let note = "`tools/call` of `math::add`, 2026-07-28, answered as JSON, beside the same call of \
                a server in local mode. All others have 200 policies.";
    report::section("Reads over MCP", note, &table("requests/s", &ways, &compared));
    judge(options, &ways, &compared, &mut targets);

    let asking = &stations.asking;
    let key = asking.explained(asking.key().await)?;
    let asked = runs(asking, &key);
    let ways = [Way { name: "durable runs with a key", share_min: RUNS_SHARE_MIN, asked }];
    let compared = compare(options, "runs", &runs(&stations.local, ""), &ways).await?;
    let note = "Three `math::add` steps and an answer over `POST /api/v1/runs`.";
    report::section("Durable runs", note, &table("runs/s", &ways, &compared));
    judge(options, &ways, &compared, &mut targets);

    let tokens = asking.explained(tokens(asking, signer).await)?;
    let lists = asking.explained(lists(options, asking).await)?;
    let mut times = Table::new(&["what", "p50 ms"]);
    times.row(vec!["a call with a token that is known".to_owned(), ms(tokens.known)]);
    times.row(vec!["a call with a new token (RS256)".to_owned(), ms(tokens.new)]);
    let what = format!("a new subject's list of {} tools", options.tools);
    times.row(vec![what.clone(), ms(lists)]);
    report::section("What is new", "One client, one request after the other.", &times);
    limit(&mut targets, "a call with a new RS256 token", tokens.new, TOKEN_MAX);
    limit(&mut targets, &what, lists, LIST_MAX);

    let flooded = &stations.flooded;
    flooded.explained(flood::measure(options, flooded, signer, &mut targets).await)?;
    Ok(targets)
}

/// A server, and what it is asked.
struct Asked<'a> {
    station: &'a Station,
    job: Arc<Job>,
}

/// A server that asks for credentials, and a request of someone who has one.
struct Way<'a> {
    name: &'static str,
    /// The least share of the local rate.
    share_min: f64,
    asked: Asked<'a>,
}

async fn read_ways<'a>(stations: &'a Stations, signer: &Signer) -> Result<[Way<'a>; 4]> {
    let Stations { asking, audited, judged, .. } = stations;
    let key = asking.explained(asking.key().await)?;
    let audited_key = audited.explained(audited.key().await)?;
    let judged_key = judged.explained(judged.key().await)?;
    Ok([
        Way { name: "with a key", share_min: KNOWN_SHARE_MIN, asked: calls(asking, &key) },
        Way {
            name: "with a known token (RS256)",
            share_min: KNOWN_SHARE_MIN,
            asked: calls(asking, &signer.token(0)?),
        },
        Way {
            name: "with a key, reads audited",
            share_min: AUDITED_SHARE_MIN,
            asked: calls(audited, &audited_key),
        },
        Way {
            name: "with a key, ten policies apply, three read the arguments",
            share_min: JUDGED_SHARE_MIN,
            asked: calls(judged, &judged_key),
        },
    ])
}

fn calls<'a>(station: &'a Station, credential: &str) -> Asked<'a> {
    let address = station.address();
    let job = Job::of(address, wire::call_as(address, credential), wire::called);
    Asked { station, job }
}

fn runs<'a>(station: &'a Station, credential: &str) -> Asked<'a> {
    let address = station.address();
    let request = post_with(address, RUNS_PATH, credential, READ_ONLY_RUN);
    Asked { station, job: Job::of(address, request, load::completed) }
}

/// One way beside local mode.
struct Compared {
    local: Turns,
    asked: Turns,
}

impl Compared {
    fn share(&self) -> Ratios {
        self.asked.of(&self.local)
    }
}

/// Each way in turns with local mode, and before them local mode with itself.
async fn compare(
    options: &Options,
    what: &str,
    local: &Asked<'_>,
    ways: &[Way<'_>],
) -> Result<Vec<Compared>> {
    let mut compared = Vec::new();
    for asked in std::iter::once(local).chain(ways.iter().map(|way| &way.asked)) {
        let clients = options.clients;
        let number = compared.len();
        report::progress(&format!("{what}, {clients} clients, {number} of {}", ways.len()));
        let turns = turns::measure(&[&local.job, &asked.job], clients, options.compared()).await;
        // Either of them may be why it failed.
        let turns = local.station.explained(asked.station.explained(turns))?;
        let [local, asked] =
            <[Turns; 2]>::try_from(turns).map_err(|_| "two loads were not measured")?;
        compared.push(Compared { local, asked });
    }
    Ok(compared)
}

/// What is compared, by the names of its rows: local mode with itself, then the ways.
fn named<'a>(ways: &'a [Way<'_>]) -> impl Iterator<Item = &'a str> {
    std::iter::once("local mode itself").chain(ways.iter().map(|way| way.name))
}

fn table(rate: &str, ways: &[Way<'_>], compared: &[Compared]) -> Table {
    let mut table =
        Table::new(&["who", rate, "p50 ms", "p99 ms", "local mode", "of local mode (half of all)"]);
    for (name, compared) in named(ways).zip(compared) {
        let mut cells = load_cells(name, &compared.asked.total);
        cells.push(format!("{:.0}", compared.local.total.rate));
        cells.push(compared.share().spread());
        table.row(cells);
    }
    table
}

fn judge(options: &Options, ways: &[Way<'_>], compared: &[Compared], targets: &mut Table) {
    for (way, compared) in ways.iter().zip(&compared[1..]) {
        let Way { name, share_min, .. } = way;
        let share = compared.share();
        let clients = options.clients;
        targets.row(vec![
            format!("{name}, {clients} clients: ≥ {share_min:.2} of local mode's rate"),
            share.spread(),
            met(share.middle() >= *share_min),
        ]);
    }
}

fn limit(targets: &mut Table, what: &str, measured: Duration, most: Duration) {
    let measured_ms = format!("{} ms", ms(measured));
    targets.row(vec![format!("{what}: ≤ {} ms", ms(most)), measured_ms, met(measured <= most)]);
}

fn met(is_met: bool) -> String {
    if is_met { "yes" } else { "no" }.to_owned()
}

/// How long a call takes with one token of a subject and with another, at the median.
struct Tokens {
    known: Duration,
    new: Duration,
}

async fn tokens(station: &Station, signer: &Signer) -> Result<Tokens> {
    report::progress("new tokens");
    let address = station.address();
    let mut client = Client::connect(address).await?;
    let mut known = Vec::new();
    let mut new = Vec::new();
    for number in 1..=TOKENS {
        let call = wire::call_as(address, &signer.token(number)?);
        for times in [&mut new, &mut known] {
            let begun = Instant::now();
            wire::called(&client.send(&call).await?)?;
            times.push(begun.elapsed());
        }
    }
    Ok(Tokens { known: load::median(known), new: load::median(new) })
}

/// How long it takes until a subject that nothing is known of has the whole list, at the median.
async fn lists(options: &Options, station: &Station) -> Result<Duration> {
    report::progress("lists of new subjects");
    let mut times = Vec::new();
    for _ in 0..SUBJECTS {
        let credential = station.key().await?;
        let mut client = Client::connect(station.address()).await?;
        let begun = Instant::now();
        let pages = pages(&mut client, station, &credential).await?;
        times.push(begun.elapsed());
        let listed: usize = pages.iter().map(|page| tools_in(page)).sum();
        if listed < options.tools {
            return Err(format!("{listed} tools are listed, not {}", options.tools).into());
        }
    }
    Ok(load::median(times))
}

/// All pages of the list.
async fn pages(client: &mut Client, station: &Station, credential: &str) -> Result<Vec<Vec<u8>>> {
    let mut pages = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let request = wire::list_as(station.address(), credential, cursor.as_deref());
        let answer = client.send(&request).await?;
        wire::listed(&answer)?;
        pages.push(answer.body.to_vec());
        cursor = next_cursor(answer.body);
        if cursor.is_none() {
            return Ok(pages);
        }
    }
}

/// Each tool has one.
const SCHEMA: &[u8] = b"\"inputSchema\":";
const NEXT: &[u8] = b"\"nextCursor\":\"";
/// What stands behind the tools of a page is not longer.
const TAIL_BYTES: usize = 2_000;

fn tools_in(page: &[u8]) -> usize {
    page.windows(SCHEMA.len()).filter(|part| *part == SCHEMA).count()
}

/// Where the next page begins. The text is not read as JSON: that would be measured, too.
fn next_cursor(page: &[u8]) -> Option<String> {
    let tail = &page[page.len().saturating_sub(TAIL_BYTES)..];
    let rest = &tail[find(tail, NEXT)? + NEXT.len()..];
    let end = find(rest, b"\"")?;
    Some(String::from_utf8_lossy(&rest[..end]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_found() {
        assert_eq!(next_cursor(br#"{"tools":[],"nextCursor":"abc"}"#).as_deref(), Some("abc"));
        assert_eq!(next_cursor(br#"{"tools":[]}"#), None);
        assert_eq!(tools_in(br#"[{"inputSchema":{}},{"inputSchema":{}}]"#), 2);
    }
}
