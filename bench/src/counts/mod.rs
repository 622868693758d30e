//! `bench counts`: instructions that the server runs for one request, counted by callgrind. Unlike
//! rates they are the same on a busy machine, so a change of some percent can be seen. Each request
//! has a server of its own and one client; all threads of the server are counted.

mod callgrind;
mod table;
mod requests;

use std::path::{Path, PathBuf};

use crate::Result;
use crate::http::Client;
use crate::options::{USAGE, positive};
use crate::report::{self, Table};
use callgrind::Callgrind;
use requests::{Counted, Prepared, REQUESTS};

const WARM_UP: usize = 50;
const COUNT: usize = 200;

/// What to count.
#[derive(Debug)]
pub struct Options {
    count: usize,
    dir: PathBuf,
    server: PathBuf,
    /// Another build of the server.
    against: Option<PathBuf>,
    /// Whether the committed table is written again.
    record: bool,
}

impl Options {
    /// Reads the arguments after `counts` and the environment.
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let server = std::env::var_os("WAYPOST_BIN").ok_or("set WAYPOST_BIN")?;
        let mut options = Self {
            count: COUNT,
            dir: std::env::temp_dir(),
            server: PathBuf::from(server),
            against: None,
            record: false,
        };
        while let Some(flag) = arguments.next() {
            if flag == "--record" {
                options.record = true;
                continue;
            }
            let value = arguments.next().ok_or_else(|| format!("`{flag}` needs a value"))?;
            match flag.as_str() {
                "--requests" => options.count = positive(&flag, &value)?,
                "--against" => options.against = Some(PathBuf::from(&value)),
                "--dir" => options.dir = PathBuf::from(&value),
                _ => return Err(format!("unknown option `{flag}`\n{USAGE}").into()),
            }
        }
        Ok(options)
    }
}

/// Counts every request and prints the table beside the committed one.
pub async fn measure(options: &Options) -> Result<()> {
    report::header("Instructions for one request", &options.dir)?;
    let committed = table::read()?;
    let mut head = vec!["request", "committed", "now", "of committed"];
    if options.against.is_some() {
        head.extend(["the other build", "of the other build"]);
    }
    let mut report = Table::new(&head);
    let mut counts = Vec::new();
    for request in REQUESTS {
        let name = request.name();
        report::progress(name);
        let count = counted(options, *request, &options.server).await?;
        counts.push((name, count));
        let mut cells = vec![name.to_owned()];
        cells.extend(match committed.get(name) {
            Some(&known) => [known.to_string(), count.to_string(), table::compared(count, known)],
            None => ["none".to_owned(), count.to_string(), String::new()],
        });
        if let Some(other) = &options.against {
            let of_other = counted(options, *request, other).await?;
            cells.extend([of_other.to_string(), table::compared(count, of_other)]);
        }
        report.row(cells);
    }
    let note = format!(
        "Instructions of the whole process for one of {} requests of one client, after {WARM_UP}. \
         Within 10 % is equal.",
        options.count
    );
    report::section("Counts", &note, &report);
    if options.record {
        table::write(&counts)?;
        println!("Written to `{}`.", table::path().display());
    }
    Ok(())
}

/// Instructions for one request, of this build.
async fn counted(options: &Options, request: Counted, binary: &Path) -> Result<u64> {
    let callgrind = Callgrind::new()?;
    let prepared = request
        .prepare(&callgrind.launcher(), binary, &options.dir, WARM_UP + options.count)
        .await?;
    let measured = send_all(&callgrind, &prepared).await;
    let total = prepared.explained(measured)?;
    Ok(total / u64::try_from(options.count)?)
}

/// Sends the requests that are not counted, then those that are.
async fn send_all(callgrind: &Callgrind, prepared: &Prepared) -> Result<u64> {
    let (first, counted) = prepared.requests.split_at(WARM_UP);
    let mut client = Client::connect(prepared.address()).await?;
    send(&mut client, prepared, first).await?;
    callgrind.begin(prepared.pid())?;
    send(&mut client, prepared, counted).await?;
    callgrind.end(prepared.pid())
}

async fn send(client: &mut Client, prepared: &Prepared, requests: &[Vec<u8>]) -> Result<()> {
    for request in requests {
        let answer = client.send(request).await?;
        (prepared.check)(&answer)?;
    }
    Ok(())
}
