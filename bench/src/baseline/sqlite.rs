//! Baseline of storage: the rows of one run, durable. This is the product's store without the
//! product.

use std::path::Path;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::commits::Commits;
use super::ids::Ids;
use crate::Result;
use crate::load::{Summary, WARM_UP};

/// Writes runs for `span` after a warm-up, in a new database under `dir`.
pub async fn measure(dir: &Path, producers: usize, span: Duration) -> Result<Summary> {
    let folder = tempfile::Builder::new().prefix("waypost-bench-").tempdir_in(dir)?;
    let (commits, writer) = Commits::start(&folder.path().join("bare.db"))?;
    let produced = warm_then_measure(commits, producers, span).await;
    // The writer's error comes first: the producers only know that it stopped.
    writer.await??;
    produced
}

/// Takes the only handle with it, so that the writer ends afterwards.
async fn warm_then_measure(commits: Commits, producers: usize, span: Duration) -> Result<Summary> {
    produce_all(&commits, producers, WARM_UP).await?;
    produce_all(&commits, producers, span).await
}

async fn produce_all(commits: &Commits, producers: usize, span: Duration) -> Result<Summary> {
    let mut sources = Vec::with_capacity(producers);
    for _ in 0..producers {
        sources.push(Ids::seeded()?);
    }
    let begun = Instant::now();
    let mut tasks = JoinSet::new();
    for ids in sources {
        tasks.spawn(produce(commits.clone(), ids, begun + span));
    }
    let mut latencies = Vec::new();
    while let Some(joined) = tasks.join_next().await {
        latencies.extend(joined??);
    }
    Ok(Summary::of(latencies, begun.elapsed()))
}

async fn produce(commits: Commits, mut ids: Ids, end: Instant) -> Result<Vec<Duration>> {
    let mut latencies = Vec::new();
    let mut before = Instant::now();
    while before < end {
        commits.commit(ids.make("run"), ids.make("ses")).await?;
        let after = Instant::now();
        latencies.push(after - before);
        before = after;
    }
    Ok(latencies)
}
