//! Benchmarks with their baselines, run by hand: `cargo xtask bench durable`, `cargo xtask bench
//! mcp`, `cargo xtask bench gateway`, `cargo xtask bench agent`, `cargo xtask bench pipeline`.
//! The baselines say what this machine can do at all, the product's numbers are read against them,
//! and both are measured in one run, because the same disk is a different disk tomorrow.
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
mod pipeline;

use std::future::Future;
use std::process::ExitCode;

use options::{Options, USAGE};

/// Any failure ends the run: a benchmark that steps over errors measures nothing.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let outcome = match arguments.next().as_deref() {
        Some("durable") => block_on(async {
            let options = Options::parse(arguments)?;
            durable(&options).await
        }),
        Some("mcp") => block_on(async {
            let options = mcp::Options::parse(arguments)?;
            mcp::measure(&options).await
        }),
        Some("gateway") => block_on(async {
            let options = gateway::Options::parse(arguments)?;
            gateway::measure(&options).await
        }),
        Some("agent") => on_all_cores(async {
            let options = agent::Options::parse(arguments)?;
            agent::measure(&options).await
        }),
        Some("pipeline") => block_on(async {
            let options = pipeline::Options::parse(arguments)?;
            pipeline::measure(&options).await
        }),
        Some(child::MCP) => mcp::bare::serve(arguments.next()),
        Some(child::PROXY) => gateway::bare::serve(arguments.next()),
        Some(child::AXUM) => baseline::axum::serve(),
        Some(child::RECEIVER) => product::receiver::serve(product::receiver::DONE),
        Some(child::COLLECTOR) => product::receiver::serve(product::receiver::TAKEN),
        Some(_) | None => Err(USAGE.into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
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
