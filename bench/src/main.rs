//! Benchmarks with their baselines, run by hand: `cargo xtask bench durable`, `cargo xtask bench
//! mcp`, `cargo xtask bench gateway`, `cargo xtask bench agent`, `cargo xtask bench heal`, `cargo
//! xtask bench pipeline`, `cargo xtask bench auth`, `cargo xtask bench abuse`, `cargo xtask bench
//! a2a`, `cargo xtask bench records`, `cargo xtask bench counts`.
//! The baselines say what this machine can do at all, the product's numbers are read against them,
//! and both are measured in one run, because the same disk is a different disk tomorrow. With
//! `--against BINARY` two builds are compared instead.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

mod options;
mod http;
mod load;
mod child;
mod machine;
mod report;
mod baseline;
mod product;
mod targets;
mod mcp;
mod gateway;
mod agent;
mod heal;
mod pipeline;
mod auth;
mod a2a;
mod abuse;
mod records;
mod counts;
mod against;

use std::future::Future;
use std::process::ExitCode;

use options::{Options, USAGE};

/// It compares counts in its own way, and not by turns.
const COUNTS: &str = "counts";

/// Any failure ends the run: a benchmark that steps over errors measures nothing.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let name = words.next().unwrap_or_default();
    let arguments: Vec<String> = words.collect();
    let outcome = if name != COUNTS && against::is_asked(&arguments) {
        block_on(against::measure(&name, &arguments))
    } else {
        run(&name, arguments.into_iter())
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A benchmark, or one of the processes that it starts.
fn run(name: &str, mut arguments: std::vec::IntoIter<String>) -> Result<()> {
    match name {
        "durable" => block_on(async {
            let options = Options::parse(arguments)?;
            durable(&options).await
        }),
        "mcp" => block_on(async {
            let options = mcp::Options::parse(arguments)?;
            mcp::measure(&options).await
        }),
        "gateway" => block_on(async {
            let options = gateway::Options::parse(arguments)?;
            gateway::measure(&options).await
        }),
        "agent" => on_all_cores(async {
            let options = agent::Options::parse(arguments)?;
            agent::measure(&options).await
        }),
        "heal" => on_all_cores(async {
            let options = heal::Options::parse(arguments)?;
            heal::measure(&options).await
        }),
        "pipeline" => block_on(async {
            let options = pipeline::Options::parse(arguments)?;
            pipeline::measure(&options).await
        }),
        "auth" => block_on(async {
            let options = auth::Options::parse(arguments)?;
            auth::measure(&options).await
        }),
        "abuse" => block_on(async {
            let options = abuse::Options::parse(arguments)?;
            abuse::measure(&options).await
        }),
        "a2a" => block_on(async {
            let options = a2a::Options::parse(arguments)?;
            a2a::measure(&options).await
        }),
        "records" => block_on(async {
            let options = records::Options::parse(arguments)?;
            records::measure(&options).await
        }),
        COUNTS => block_on(async {
            let options = counts::Options::parse(arguments)?;
            counts::measure(&options).await
        }),
        child::A2A => a2a::bare::serve(arguments.next()),
        child::RECORDS => records::bare::serve(arguments.next()),
        child::UPSTREAM => abuse::upstream::serve(arguments.next()),
        child::ISSUER => auth::issuer::serve(),
        child::MCP => mcp::bare::serve(arguments.next()),
        child::PROXY => gateway::bare::serve(arguments.next()),
        child::AXUM => baseline::axum::serve(),
        child::RECEIVER => product::receiver::serve(product::receiver::DONE),
        child::COLLECTOR => product::receiver::serve(product::receiver::TAKEN),
        _ => Err(USAGE.into()),
    }
}

/// One thread for all clients: the cores belong to the server that is measured.
fn block_on(measured: impl Future<Output = Result<()>>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    until_interrupted(&runtime, measured)
}

/// A thread for each core, as the server has: what is measured is in this process.
fn on_all_cores(measured: impl Future<Output = Result<()>>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    until_interrupted(&runtime, measured)
}

/// An interrupt drops the measurement, and with it every process that it started.
fn until_interrupted(
    runtime: &tokio::runtime::Runtime,
    measured: impl Future<Output = Result<()>>,
) -> Result<()> {
    runtime.block_on(async {
        tokio::select! {
            outcome = measured => outcome,
            _ = tokio::signal::ctrl_c() => Err("interrupted".into()),
        }
    })
}

async fn durable(options: &Options) -> Result<()> {
    report::header("Durable runs", &options.dir)?;
    let baselines = baseline::measure(options).await?;
    let product = product::measure(options, &baselines).await?;
    report::section("Targets", "", &targets::table(&baselines, &product));
    Ok(())
}
