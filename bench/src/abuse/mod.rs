//! `bench abuse`: what ordinary requests notice of abuse. The same mixed load runs alone and then
//! beside every attack at once, against one server, while its memory and its descriptors are
//! watched. Then what one realm notices of the callers of another (`fairness`). Everything stays on
//! this machine and is bounded in number and time.

mod ordinary;
pub mod upstream;
mod attacks;
mod fairness;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::time::sleep;

use crate::Result;
use crate::http::{self, Client};
use crate::load::Summary;
use crate::options::{USAGE, positive};
use crate::product::server::{Server, Site};
use crate::report::{self, Table, megabytes, ms};
use attacks::{Attacks, Target};
use ordinary::{KINDS, Taken};
use upstream::Upstream;

const ALONE_SECONDS: u64 = 60;
const SECONDS: u64 = 900;
const FAIRNESS_SECONDS: u64 = 5;
/// How often the server is measured; more often where there is little time.
const LOOK_EVERY: Duration = Duration::from_secs(30);
const LOOKS_MIN: u32 = 12;
/// How long the first loads of everything may settle.
const SETTLE: Duration = Duration::from_secs(5);

const P99_RATIO_MAX: f64 = 5.0;
const ANSWERED_SHARE_MIN: f64 = 0.99;
/// What the last third may have more than the first.
const MEMORY_RATIO_MAX: f64 = 1.2;
const MEMORY_MORE_MAX: f64 = 20e6;
const FILES_RATIO_MAX: f64 = 1.1;
const FILES_MORE_MAX: f64 = 50.0;

/// Half of the blob that no one reads: two of it are 7 MB, and one fits into a request.
const HALF_BYTES: usize = 3_500_000;

const LARGE: &str = "planId: abuse/large
description: answers with its input twice
parameters: {type: object, required: [text]}
steps:
  - id: end
    type: final_response
    message: '{{ promptInput.text }}{{ promptInput.text }}'
";
const SPIN: &str = "planId: abuse/spin
description: a loop of instant reads in a loop
parameters: {type: object, required: [items]}
startStepId: outer
steps:
  - id: outer
    type: loop_over_items
    collectionPath: {jsonPath: $.promptInput.items}
    itemAlias: one
    concurrency: 1
    loopPlan:
      - id: inner
        type: loop_over_items
        collectionPath: {jsonPath: $.promptInput.items}
        itemAlias: two
        concurrency: 1
        loopPlan:
          - {id: add, type: tool_call, toolId: 'math::add', arguments: {a: 1, b: 1}, saveAs: sum}
    nextStepId: end
  - {id: end, type: final_response, message: done}
";

/// For how long, and which attacks.
#[derive(Debug)]
pub struct Options {
    alone: Duration,
    span: Duration,
    attacks: Vec<String>,
    /// How long each load of another realm lasts; not at all for zero.
    fairness: Duration,
    /// Whether the attacks are made.
    is_attacked: bool,
    dir: PathBuf,
    server: Option<PathBuf>,
}

impl Options {
    /// Reads the arguments after `abuse` and the environment.
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = Self {
            alone: Duration::from_secs(ALONE_SECONDS),
            span: Duration::from_secs(SECONDS),
            attacks: attacks::NAMES.map(str::to_owned).to_vec(),
            fairness: Duration::from_secs(FAIRNESS_SECONDS),
            is_attacked: true,
            dir: std::env::temp_dir(),
            server: std::env::var_os("WAYPOST_BIN").map(PathBuf::from),
        };
        while let Some(flag) = arguments.next() {
            if flag == "--fairness-only" {
                options.is_attacked = false;
                continue;
            }
            let value = arguments.next().ok_or_else(|| format!("`{flag}` needs a value"))?;
            let seconds = || -> Result<Duration> {
                Ok(Duration::from_secs(u64::try_from(positive(&flag, &value)?)?))
            };
            match flag.as_str() {
                "--alone" => options.alone = seconds()?,
                "--seconds" => options.span = seconds()?,
                "--fairness-seconds" => options.fairness = seconds()?,
                "--attacks" => options.attacks = chosen(&value)?,
                "--dir" => options.dir = PathBuf::from(&value),
                _ => return Err(format!("unknown option `{flag}`\n{USAGE}").into()),
            }
        }
        Ok(options)
    }
}

/// The attacks of a list such as `texts,spin`.
fn chosen(names: &str) -> Result<Vec<String>> {
    let unknown = names.split(',').find(|name| !attacks::NAMES.contains(name));
    if let Some(name) = unknown {
        let known = attacks::NAMES.join(", ");
        return Err(format!("unknown attack `{name}`: one of {known}").into());
    }
    Ok(names.split(',').map(str::to_owned).collect())
}

/// Measures both phases and says which targets were met.
pub async fn measure(options: &Options) -> Result<()> {
    report::header("Abuse", &options.dir)?;
    if options.is_attacked {
        attacked(options).await?;
    }
    fairness::measure(options).await
}

/// Ordinary requests beside the attacks.
async fn attacked(options: &Options) -> Result<()> {
    let site = Site::build(options.server.as_deref(), &options.dir)?;
    let upstream = Upstream::start(0)?;
    configure(&site.project(), upstream.port())?;
    let data = site.data()?;
    let server = Server::start(&site, data.path()).await?;
    match phases(options, &server, upstream).await {
        Ok(targets) => {
            server.stop()?;
            report::section("Targets", "", &targets);
            Ok(())
        }
        Err(error) => Err(site.explain(&*error).into()),
    }
}

/// Adds the plans of the attacks, and the upstream.
fn configure(project: &Path, upstream: u16) -> Result<()> {
    let folder = project.join("plans/abuse");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("large.yaml"), LARGE)?;
    std::fs::write(folder.join("spin.yaml"), SPIN)?;
    let path = project.join("waypost.toml");
    let mut settings = std::fs::read_to_string(&path)?;
    settings.push_str(&format!("[mcp.servers.bomb]\nurl = \"http://127.0.0.1:{upstream}/mcp\"\n"));
    std::fs::write(path, settings)?;
    Ok(())
}

async fn phases(options: &Options, server: &Server, upstream: Upstream) -> Result<Table> {
    let address = server.address();
    let blob = large_blob(address).await?;
    sleep(SETTLE).await;
    report::progress(&format!("ordinary load alone for {:?}", options.alone));
    let alone = ordinary::run(address, options.alone).await?;
    report::progress(&format!("the same beside all attacks for {:?}", options.span));
    let attacks = Attacks::start(Target::new(address, blob, options.attacks.clone()), upstream)?;
    sleep(SETTLE).await;
    let (beside, samples) =
        tokio::try_join!(ordinary::run(address, options.span), watch(server, options.span))?;
    let attacked = attacks.stop()?;
    report::section("Ordinary requests", ordinary::NOTE, &compared(&alone, &beside));
    report::section("The server under attack", "", &seen(&samples));
    report::section("Attacks", "", &attacked);
    Ok(targets(&alone, &beside, &samples))
}

/// A blob of 7 MB, made by a run.
async fn large_blob(address: SocketAddr) -> Result<String> {
    let input = json!({"text": "x".repeat(HALF_BYTES)});
    let body = json!({"planId": "abuse/large", "input": input}).to_string();
    let mut client = Client::connect(address).await?;
    let answer = client.send(&http::post(address, "/api/v1/runs", &body)).await?;
    let run: Value = serde_json::from_slice(answer.body)?;
    let uri = run["run"]["answer"].as_str().unwrap_or_default();
    let hash = uri.strip_prefix("blob://").ok_or("the large answer became no blob")?;
    Ok(hash.to_owned())
}

/// One look at the server.
#[derive(Debug, Clone, Copy)]
struct Sample {
    at: Duration,
    rss_bytes: u64,
    files: usize,
}

async fn watch(server: &Server, span: Duration) -> Result<Vec<Sample>> {
    let begun = Instant::now();
    let every = LOOK_EVERY.min(span / LOOKS_MIN);
    let mut samples = Vec::new();
    while begun.elapsed() < span {
        sleep(every).await;
        let rss_bytes = server.rss_bytes()?;
        let files = server.open_files()?;
        let sample = Sample { at: begun.elapsed(), rss_bytes, files };
        report::progress(&format!(
            "{:.0} s: {} MB, {files} descriptors",
            sample.at.as_secs_f64(),
            megabytes(rss_bytes)
        ));
        samples.push(sample);
    }
    Ok(samples)
}

fn compared(alone: &Taken, beside: &Taken) -> Table {
    let mut table = Table::new(&[
        "request",
        "alone p50 ms",
        "alone p99 ms",
        "beside p50 ms",
        "beside p99 ms",
        "p99 ratio",
        "not answered as wanted, of all",
    ]);
    for (at, kind) in KINDS.iter().enumerate() {
        table.row(cells(kind.name(), &alone.of(at), &beside.of(at), beside.refused[at]));
    }
    let refused = beside.refused.iter().sum();
    table.row(cells("all", &alone.all(), &beside.all(), refused));
    table
}

fn cells(name: &str, alone: &Summary, beside: &Summary, refused: usize) -> Vec<String> {
    vec![
        name.to_owned(),
        ms(alone.p50),
        ms(alone.p99),
        ms(beside.p50),
        ms(beside.p99),
        format!("{:.1}", ratio(alone, beside)),
        format!("{refused} of {}", beside.answered + refused),
    ]
}

fn ratio(alone: &Summary, beside: &Summary) -> f64 {
    beside.p99.as_secs_f64() / alone.p99.as_secs_f64()
}

fn seen(samples: &[Sample]) -> Table {
    let mut table = Table::new(&["after s", "memory MB", "descriptors"]);
    for sample in samples {
        let at = format!("{:.0}", sample.at.as_secs_f64());
        table.row(vec![at, megabytes(sample.rss_bytes), sample.files.to_string()]);
    }
    table
}

fn targets(alone: &Taken, beside: &Taken, samples: &[Sample]) -> Table {
    let p99 = ratio(&alone.all(), &beside.all());
    let memory = thirds(samples, |sample| sample.rss_bytes as f64);
    let files = thirds(samples, |sample| sample.files as f64);
    let is_flat = |(first, last): (f64, f64), ratio: f64, more: f64| last <= first * ratio + more;
    let answered = beside.all().answered;
    let refused = beside.refused.iter().sum::<usize>();
    let share = answered as f64 / (answered + refused) as f64;
    let rows = [
        ("ordinary requests answered ≥ 0.99", format!("{share:.4}"), share >= ANSWERED_SHARE_MIN),
        ("p99 ≤ 5 × that of the same load alone", format!("{p99:.1} ×"), p99 <= P99_RATIO_MAX),
        (
            "memory is flat: last third against first",
            format!("{:.1} MB, {:.1} MB", memory.0 / 1e6, memory.1 / 1e6),
            is_flat(memory, MEMORY_RATIO_MAX, MEMORY_MORE_MAX),
        ),
        (
            "descriptors are flat: last third against first",
            format!("{:.0}, {:.0}", files.0, files.1),
            is_flat(files, FILES_RATIO_MAX, FILES_MORE_MAX),
        ),
    ];
    let mut table = Table::new(&["target", "measured", "met"]);
    for (target, measured, met) in rows {
        let met = if met { "yes" } else { "no" };
        table.row(vec![target.to_owned(), measured, met.to_owned()]);
    }
    table
}

/// The greatest figure in the first third of the samples, and in the last.
fn thirds(samples: &[Sample], figure: impl Fn(&Sample) -> f64) -> (f64, f64) {
    let third = (samples.len() / 3).max(1);
    let most = |part: &[Sample]| part.iter().map(&figure).fold(0.0, f64::max);
    let first = samples.get(..third).unwrap_or(samples);
    let last = samples.get(samples.len().saturating_sub(third)..).unwrap_or(samples);
    (most(first), most(last))
}
