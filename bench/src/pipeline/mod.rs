//! `bench pipeline`: cases of a pipeline over HTTP, each with its event durable before it is
//! answered. The deterministic path beside the bare rates of this machine, what telemetry and a
//! sink cost on top, the agent's path with the built-in rules, and one case that everybody wants.

mod cases;
mod lines;
mod server;
mod rounds;

pub use cases::Cases;
pub use server::{CaseServer, With};

use std::path::PathBuf;
use std::time::Duration;

use crate::Result;
use crate::load::Summary;
use crate::options::{USAGE, positive};
use crate::report::{self, Table, load_cells};

const SECONDS: u64 = 3;
const CLIENTS: usize = 64;
/// How often everything that is compared is measured; the middle one counts.
const ROUNDS: usize = 5;

/// What the section of the other loads is about.
const OTHERS: &str = "An unknown reason goes to the agent, whose model is the built-in rules: one \
    turn, one ticket. One case that all clients send is done once after the other.";

/// What to measure, and for how long.
#[derive(Debug)]
pub struct Options {
    span: Duration,
    clients: usize,
    rounds: usize,
    dir: PathBuf,
    server: Option<PathBuf>,
}

impl Options {
    /// Reads the arguments after `pipeline` and the environment.
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = Self {
            span: Duration::from_secs(SECONDS),
            clients: CLIENTS,
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
                "--rounds" => options.rounds = number()?,
                "--dir" => options.dir = PathBuf::from(&value),
                _ => return Err(format!("unknown option `{flag}`\n{USAGE}").into()),
            }
        }
        Ok(options)
    }

    async fn start(&self, cases: Cases, with: With) -> Result<CaseServer> {
        CaseServer::start(self.server.as_deref(), &self.dir, cases, with).await
    }
}

/// Measures all of it and says which targets were met.
pub async fn measure(options: &Options) -> Result<()> {
    report::header("Pipelines", &options.dir)?;
    let rounds = rounds::measure(options).await?;
    let title = format!("Known reasons, {} clients", options.clients);
    report::section(&title, rounds::NOTE, &rounds.summary());
    report::section("Counted", "", &rounds.counted());
    report::section("Rounds", "", &rounds.table());

    report::progress("the agent's path");
    let server = options.start(Cases::Unknown, With::Nothing).await?;
    let agent = alone(server, options.clients, options.span).await?;
    report::progress("one case for all clients");
    let server = options.start(Cases::Same, With::Nothing).await?;
    let queue = alone(server, options.clients, options.span).await?;
    let mut table = Table::new(&["what", "cases/s", "p50 ms", "p99 ms", "journal rows per case"]);
    let all = [("unknown reasons, the agent's path", agent), ("one case, over and over", queue)];
    for (what, (summary, rows)) in all {
        let mut cells = load_cells(what, &summary);
        cells.push(format!("{rows:.2}"));
        table.row(cells);
    }
    report::section(&format!("Other cases, {} clients", options.clients), OTHERS, &table);
    report::section("Targets", "", &rounds.targets(options.clients));
    Ok(())
}

/// One load on a server of its own, and the journal rows of its cases.
pub async fn alone(
    mut server: CaseServer,
    clients: usize,
    span: Duration,
) -> Result<(Summary, f64)> {
    let loaded = server.load(clients, span).await?;
    Ok((loaded.summary, server.stop()?))
}
