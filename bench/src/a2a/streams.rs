//! One event on many streams: all of them follow one task, which is answered, and the time until
//! the last one has the next status is taken. The clients are one thread, and what they take is
//! part of it; so is the commit of the answer.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::wire;
use crate::Result;
use crate::http::{Client, find};
use crate::load::median;

/// How often; the middle time counts.
const ROUNDS: usize = 5;
const ROUND_LIMIT: Duration = Duration::from_secs(60);
/// What ends the first event, which is the task.
const EVENT_END: &[u8] = b"\n\n";
/// What the next event has, and the first one has not.
const UPDATE: &[u8] = b"statusUpdate";

/// How long it takes until the last of so many streams has an event.
pub async fn measure(address: SocketAddr, streams: usize) -> Result<Duration> {
    // Each stream is a socket on both sides; the server raises its own limit.
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })?;
    let mut times = Vec::new();
    for number in 0..ROUNDS {
        let round = timeout(ROUND_LIMIT, round(address, streams, number)).await;
        times.push(round.map_err(|_| "no event on all streams within 60 s")??);
    }
    Ok(median(times))
}

async fn round(address: SocketAddr, streams: usize, number: usize) -> Result<Duration> {
    let mut client = Client::connect(address).await?;
    let task = wire::task_of(&client.send(&wire::ask(address, number)).await?)?;
    let (ready, mut opened) = mpsc::channel(streams);
    let mut following = JoinSet::new();
    for _ in 0..streams {
        following.spawn(follow(address, wire::subscribe(address, &task), ready.clone()));
    }
    drop(ready);
    for _ in 0..streams {
        opened.recv().await.ok_or("a stream ended before its first event")?;
    }
    let begun = Instant::now();
    wire::task_of(&client.send(&wire::reply(address, &task, number)).await?)?;
    let mut last = begun;
    while let Some(joined) = following.join_next().await {
        last = last.max(joined??);
    }
    Ok(last - begun)
}

/// Opens a stream, says that it is open, and gives the time of its next event.
async fn follow(address: SocketAddr, request: Vec<u8>, ready: mpsc::Sender<()>) -> Result<Instant> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    stream.write_all(&request).await?;
    let mut bytes = Vec::new();
    read_until(&mut stream, &mut bytes, EVENT_END).await?;
    ready.send(()).await?;
    // Who waits for all of them must learn if one never comes.
    drop(ready);
    read_until(&mut stream, &mut bytes, UPDATE).await?;
    Ok(Instant::now())
}

async fn read_until(stream: &mut TcpStream, bytes: &mut Vec<u8>, wanted: &[u8]) -> Result<()> {
    while find(bytes, wanted).is_none() {
        if stream.read_buf(bytes).await? == 0 {
            let text = String::from_utf8_lossy(bytes);
            return Err(format!("a stream ended too early: {text}").into());
        }
    }
    Ok(())
}
