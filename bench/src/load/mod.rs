//! Closed-loop load: each client sends its next request when the last one is answered. Every answer
//! is checked, so that a rate never counts refusals.

pub mod turns;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::Result;
use crate::http::{self, Answer, Client};

/// The body of a read-only run: the product and bare axum get the same bytes.
pub const READ_ONLY_RUN: &str = r#"{"planId":"bench/read3","input":{"n":1}}"#;
/// Where runs are started, in the product and in bare axum.
pub const RUNS_PATH: &str = "/api/v1/runs";
/// Every load first runs this long uncounted: connections, caches and page allocation settle.
pub const WARM_UP: Duration = Duration::from_secs(1);

/// One load for each number of clients.
pub type ByClients = BTreeMap<usize, Summary>;

/// Refuses an answer that is not what the job is about.
pub type Check = fn(&Answer<'_>) -> Result<()>;

/// One request, sent over and over; where it has a number, with another one each time.
#[derive(Debug)]
pub struct Job {
    address: SocketAddr,
    request: Vec<u8>,
    number: Option<Number>,
    check: Check,
}

/// Where a request has its number, and which one is next. All have as many digits, so that nothing
/// else of the request changes with it.
#[derive(Debug)]
struct Number {
    at: Range<usize>,
    next: AtomicU64,
}

impl Number {
    fn write(&self, request: &mut [u8]) {
        let mut left = self.next.fetch_add(1, Ordering::Relaxed);
        for digit in request[self.at.clone()].iter_mut().rev() {
            *digit = b'0' + (left % 10) as u8;
            left /= 10;
        }
    }
}

impl Job {
    /// Starts runs with this body.
    pub fn runs(address: SocketAddr, body: &str, check: Check) -> Arc<Self> {
        Self::of(address, http::post(address, RUNS_PATH, body), check)
    }

    /// Sends this request.
    pub fn of(address: SocketAddr, request: Vec<u8>, check: Check) -> Arc<Self> {
        Arc::new(Self { address, request, number: None, check })
    }

    /// Sends this request with a new number in the place of the mark each time.
    pub fn numbered(
        address: SocketAddr,
        request: Vec<u8>,
        mark: &str,
        check: Check,
    ) -> Result<Arc<Self>> {
        let found = http::find(&request, mark.as_bytes());
        let start = found.ok_or_else(|| format!("the request has no `{mark}`"))?;
        let number = Number { at: start..start + mark.len(), next: AtomicU64::new(1) };
        Ok(Arc::new(Self { address, request, number: Some(number), check }))
    }
}

/// What a load came to.
#[derive(Clone, Copy, Debug)]
pub struct Summary {
    /// Requests answered, those of its warm-up included where it had one.
    pub answered: usize,
    /// Requests a second, the warm-up not included.
    pub rate: f64,
    /// Half of the requests took no longer.
    pub p50: Duration,
    /// 99 of 100 requests took no longer.
    pub p99: Duration,
}

/// The time of each request of a load, and the time that all of them took together.
#[derive(Debug, Default)]
pub struct Samples {
    latencies: Vec<Duration>,
    elapsed: Duration,
}

impl Samples {
    /// Adds those of the same load at another time.
    pub fn extend(&mut self, more: Self) {
        self.latencies.extend(more.latencies);
        self.elapsed += more.elapsed;
    }

    /// What they come to.
    pub fn summary(&self) -> Summary {
        Summary::of(self.latencies.clone(), self.elapsed)
    }
}

impl Summary {
    /// Sums up the time of each request and the time that all of them took together.
    pub fn of(mut latencies: Vec<Duration>, elapsed: Duration) -> Self {
        latencies.sort_unstable();
        let answered = latencies.len();
        Self {
            answered,
            rate: answered as f64 / elapsed.as_secs_f64(),
            p50: percentile(&latencies, 50),
            p99: percentile(&latencies, 99),
        }
    }
}

/// The middle of the measured times; zero for none.
pub fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    percentile(&times, 50)
}

/// The round in the middle by this measure.
pub fn middle<T>(mut rounds: Vec<T>, by: impl Fn(&T) -> f64) -> Option<T> {
    rounds.sort_by(|left, right| by(left).total_cmp(&by(right)));
    let at = rounds.len() / 2;
    (at < rounds.len()).then(|| rounds.swap_remove(at))
}

/// Loads for `span` after a warm-up.
pub async fn run_for(job: &Arc<Job>, clients: usize, span: Duration) -> Result<Summary> {
    let mut connected = Connected::to(job, clients).await?;
    let warm = connected.run_for(WARM_UP).await?;
    let mut summary = connected.run_for(span).await?.summary();
    summary.answered += warm.latencies.len();
    Ok(summary)
}

/// Sends exactly `total` requests, without a warm-up.
pub async fn run_count(job: &Arc<Job>, clients: usize, total: usize) -> Result<Summary> {
    let share = |client: usize| total / clients + usize::from(client < total % clients);
    let mut connected = Connected::to(job, clients).await?;
    Ok(connected.run(|client| Until::Count(share(client))).await?.summary())
}

/// A check: 200 and a run that completed.
pub fn completed(answer: &Answer<'_>) -> Result<()> {
    let text = std::str::from_utf8(answer.body)?;
    if answer.status == 200 && text.contains(r#""status":"completed""#) {
        return Ok(());
    }
    Err(unexpected("200 with a completed run", answer))
}

/// A check: 202, the run waits for someone.
pub fn waiting(answer: &Answer<'_>) -> Result<()> {
    if answer.status == 202 {
        return Ok(());
    }
    Err(unexpected("202", answer))
}

#[derive(Clone, Copy)]
enum Until {
    At(Instant),
    Count(usize),
}

impl Until {
    fn is_over(self, now: Instant, answered: usize) -> bool {
        match self {
            Self::At(end) => now >= end,
            Self::Count(count) => answered >= count,
        }
    }
}

/// Clients that are connected, so that connecting is not measured, and stay so.
#[derive(Debug)]
pub struct Connected {
    job: Arc<Job>,
    clients: Vec<Client>,
}

impl Connected {
    /// So many clients of this job.
    pub async fn to(job: &Arc<Job>, clients: usize) -> Result<Self> {
        let mut connected = Vec::with_capacity(clients);
        for _ in 0..clients {
            connected.push(Client::connect(job.address).await?);
        }
        Ok(Self { job: Arc::clone(job), clients: connected })
    }

    /// Loads for so long, without a warm-up.
    pub async fn run_for(&mut self, span: Duration) -> Result<Samples> {
        let end = Instant::now() + span;
        self.run(|_| Until::At(end)).await
    }

    async fn run(&mut self, until: impl Fn(usize) -> Until) -> Result<Samples> {
        let begun = Instant::now();
        let mut tasks = JoinSet::new();
        for (index, client) in self.clients.drain(..).enumerate() {
            tasks.spawn(repeat(client, Arc::clone(&self.job), until(index)));
        }
        let mut latencies = Vec::new();
        while let Some(joined) = tasks.join_next().await {
            let (client, times) = joined??;
            self.clients.push(client);
            latencies.extend(times);
        }
        Ok(Samples { latencies, elapsed: begun.elapsed() })
    }
}

/// Gives the client back with how long each of its requests took.
async fn repeat(
    mut client: Client,
    job: Arc<Job>,
    until: Until,
) -> Result<(Client, Vec<Duration>)> {
    // Its own copy: numbers are written into it.
    let mut request = job.request.clone();
    let mut latencies = Vec::new();
    let mut before = Instant::now();
    while !until.is_over(before, latencies.len()) {
        if let Some(number) = &job.number {
            number.write(&mut request);
        }
        let answer = client.send(&request).await?;
        (job.check)(&answer)?;
        let after = Instant::now();
        latencies.push(after - before);
        before = after;
    }
    Ok((client, latencies))
}

fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(rank).copied().unwrap_or_default()
}

/// The error of an answer that is not the wanted one.
pub fn unexpected(wanted: &str, answer: &Answer<'_>) -> Box<dyn std::error::Error + Send + Sync> {
    let body = String::from_utf8_lossy(answer.body);
    let shown: String = body.chars().take(800).collect();
    format!("expected {wanted}, got {}: {shown}", answer.status).into()
}
