//! `bench records`: very many records of one type, in turns beside what the same would cost by
//! hand: statements in the same file, a bare handler that runs them, and bare group commits. Also
//! what the server holds in memory, and what its start takes longer.

mod wire;
mod hand;
pub mod bare;
mod ours;
mod statements;

use std::path::{Path, PathBuf};
use std::time::Duration;

use statements::{Asked, Compared, Sides};

use crate::Result;
use crate::baseline;
use crate::child::{self, Child};
use crate::load::turns::{self, Turns};
use crate::load::{self, Summary, median};
use crate::options::{USAGE, positive};
use crate::product::server::{Server, Site};
use crate::report::{self, Table, load_cells, megabytes, ms};

const RECORDS: usize = 1_000_000;
const SECONDS: u64 = 5;
const ROUNDS: usize = 3;
/// How often the server is started with and without records.
const STARTS: usize = 5;
const FINDING_CLIENTS: usize = 16;
const SAVING_CLIENTS: usize = 64;
/// The first share of the records, after which memory is looked at.
const SHARE: usize = 10;

const TIMES_BY_HAND_MAX: f64 = 2.0;
const FIND_SHARE_MIN: f64 = 0.40;
const SAVE_SHARE_MIN: f64 = 0.15;
const MEMORY_MAX: f64 = 1.3;
const START_MAX: Duration = Duration::from_millis(200);

/// What is compared with statements by hand, and how it is called in the report.
const STATEMENTS: [(Asked, &str); 3] = [
    (Asked::Page, "a page of 50 by an index"),
    (Asked::PageWithTotal, "the same with the number of all"),
    (Asked::Count, "a count by an index"),
];

/// What to measure, and for how long.
#[derive(Debug)]
pub struct Options {
    records: usize,
    span: Duration,
    rounds: usize,
    dir: PathBuf,
    server: Option<PathBuf>,
}

impl Options {
    /// Reads the arguments after `records` and the environment.
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = Self {
            records: RECORDS,
            span: Duration::from_secs(SECONDS),
            rounds: ROUNDS,
            dir: std::env::temp_dir(),
            server: std::env::var_os("WAYPOST_BIN").map(PathBuf::from),
        };
        while let Some(flag) = arguments.next() {
            let value = arguments.next().ok_or_else(|| format!("`{flag}` needs a value"))?;
            match flag.as_str() {
                "--records" => options.records = positive(&flag, &value)?,
                "--seconds" => {
                    options.span = Duration::from_secs(u64::try_from(positive(&flag, &value)?)?);
                }
                "--rounds" => options.rounds = positive(&flag, &value)?,
                "--dir" => options.dir = PathBuf::from(&value),
                _ => return Err(format!("unknown option `{flag}`\n{USAGE}").into()),
            }
        }
        if options.records < wire::OF_CUSTOMER * SHARE {
            let least = wire::OF_CUSTOMER * SHARE;
            return Err(format!("`--records` takes {least} or more").into());
        }
        Ok(options)
    }

    fn customers(&self) -> usize {
        self.records / wire::OF_CUSTOMER
    }
}

/// Measures all of it and says which targets were met.
pub async fn measure(options: &Options) -> Result<()> {
    report::header("Records", &options.dir)?;
    let site = Site::build(options.server.as_deref(), &options.dir)?;
    wire::configure(&site.project())?;
    match sections(options, &site).await {
        Ok(targets) => {
            report::section("Targets", "", &targets);
            Ok(())
        }
        Err(error) => Err(site.explain(&*error).into()),
    }
}

async fn sections(options: &Options, site: &Site) -> Result<Table> {
    let mut targets = Table::new(&["target", "measured", "met"]);
    let data = site.data()?;
    let server = Server::start(site, data.path()).await?;
    filled(options, &server, &mut targets).await?;
    found(options, &server, data.path(), &mut targets).await?;
    saved(options, &server, &mut targets).await?;
    server.stop()?;
    by_hand(options, data.path(), &mut targets).await?;
    started(site, data.path(), &mut targets).await?;
    Ok(targets)
}

/// Fills the server, and compares its memory at the end with that after a tenth.
async fn filled(options: &Options, server: &Server, targets: &mut Table) -> Result<()> {
    let first = options.records / SHARE;
    report::progress(&format!("saving {} records", options.records));
    wire::fill(server.address(), 0..first).await?;
    let early = server.rss_bytes()?;
    wire::fill(server.address(), first..options.records).await?;
    let late = server.rss_bytes()?;
    let times = late as f64 / early as f64;
    targets.row(vec![
        format!("memory with {} records ≤ {MEMORY_MAX} × that with {first}", options.records),
        format!("{times:.2}: {} beside {} MB", megabytes(late), megabytes(early)),
        met(times <= MEMORY_MAX),
    ]);
    Ok(())
}

/// Pages over HTTP, beside a bare handler that runs the statements, and one whose answer is ready.
async fn found(options: &Options, server: &Server, data: &Path, targets: &mut Table) -> Result<()> {
    report::progress("pages over HTTP");
    let bare = Child::start_with(child::RECORDS, &[data.as_os_str()])?;
    let jobs = [
        wire::finds(bare.address(), wire::FIND),
        wire::finds(bare.address(), bare::READY),
        wire::finds(server.address(), wire::FIND),
    ];
    let rounds = u32::try_from(options.rounds)?;
    let jobs: Vec<_> = jobs.iter().collect();
    let measured = turns::measure(&jobs, FINDING_CLIENTS, options.span * rounds).await?;
    let [by_hand, ready, ours] = measured.as_slice() else {
        return Err("not all loads were measured".into());
    };
    let mut table = Table::new(&["who", "requests/s", "p50 ms", "p99 ms", "of the statements"]);
    let mut row = |who: &str, load: &Turns| {
        let mut cells = load_cells(who, &load.total);
        cells.push(load.of(by_hand).spread());
        table.row(cells);
    };
    row("bare axum with the statements by hand", by_hand);
    row("bare axum with an answer that is ready", ready);
    row("waypost", ours);
    let note =
        "`POST /api/query/find` of a page of 50 with the number of all, by an indexed field.";
    report::section(&format!("Pages, {FINDING_CLIENTS} clients"), note, &table);
    let share = ours.of(by_hand);
    targets.row(vec![
        format!(
            "pages, {FINDING_CLIENTS} clients: ≥ {FIND_SHARE_MIN:.2} of bare axum with the \
             statements"
        ),
        share.spread(),
        met(share.middle() >= FIND_SHARE_MIN),
    ]);
    Ok(())
}

/// Saves over HTTP, beside bare group commits.
async fn saved(options: &Options, server: &Server, targets: &mut Table) -> Result<()> {
    let job = wire::saves(server.address())?;
    let share = |round: &(Summary, Summary)| round.1.rate / round.0.rate;
    let mut rounds = Vec::new();
    for round in 1..=options.rounds {
        report::progress(&format!("saves, round {round}"));
        let bare = baseline::sqlite::measure(&options.dir, SAVING_CLIENTS, options.span).await?;
        let ours = load::run_for(&job, SAVING_CLIENTS, options.span).await?;
        rounds.push((bare, ours));
    }
    let round = load::middle(rounds, share).ok_or("no round was measured")?;
    let (bare, ours) = &round;
    let mut table = Table::new(&["who", "requests/s", "p50 ms", "p99 ms"]);
    table.row(load_cells("bare SQLite group commit", bare));
    table.row(load_cells("waypost", ours));
    let note = "`POST /api/query/save` of a new record. The bare commit has the rows of a run, and \
                no HTTP.";
    report::section(&format!("Saves, {SAVING_CLIENTS} clients"), note, &table);
    targets.row(vec![
        format!("saves, {SAVING_CLIENTS} clients: ≥ {SAVE_SHARE_MIN:.2} of bare group commits"),
        format!("{:.2}", share(&round)),
        met(share(&round) >= SAVE_SHARE_MIN),
    ]);
    Ok(())
}

/// The store in this process, beside the same statements by hand.
async fn by_hand(options: &Options, data: &Path, targets: &mut Table) -> Result<()> {
    let sides = Sides::open(data, options.customers()).await?;
    let rounds = u32::try_from(options.rounds)?;
    let mut table = Table::new(&["what", "by hand ms", "waypost ms", "times (half of all)"]);
    for (asked, what) in STATEMENTS {
        report::progress(what);
        let Compared { hand, ours, times } = sides.measure(asked, options.span * rounds).await?;
        table.row(vec![what.to_owned(), ms(hand), ms(ours), times.spread()]);
        targets.row(vec![
            format!("{what} ≤ {TIMES_BY_HAND_MAX} × by hand"),
            times.spread(),
            met(times.middle() <= TIMES_BY_HAND_MAX),
        ]);
    }
    sides.close().await?;
    let note = "In process, one client, medians. Both read the same file and give JSON values.";
    report::section("Statements", note, &table);
    Ok(())
}

/// Starts on the full folder, by turns with starts on empty ones.
async fn started(site: &Site, full: &Path, targets: &mut Table) -> Result<()> {
    let mut without = Vec::with_capacity(STARTS);
    let mut with = Vec::with_capacity(STARTS);
    for start in 1..=STARTS {
        report::progress(&format!("start {start}"));
        let empty = site.data()?;
        without.push(start_once(site, empty.path()).await?);
        with.push(start_once(site, full).await?);
    }
    let without = median(without);
    let with = median(with);
    let added = with.saturating_sub(without);
    targets.row(vec![
        format!("a start with the records takes ≤ {} ms more", ms(START_MAX)),
        format!("{} ms: {} beside {} ms", ms(added), ms(with), ms(without)),
        met(added <= START_MAX),
    ]);
    Ok(())
}

/// How long it takes until the server is ready.
async fn start_once(site: &Site, data: &Path) -> Result<Duration> {
    let server = Server::start(site, data).await?;
    let ready = server.times().ready;
    server.stop()?;
    Ok(ready)
}

fn met(met: bool) -> String {
    if met { "yes" } else { "no" }.to_owned()
}
