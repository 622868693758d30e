//! Closed-loop load, as `bench` has it for HTTP/1.1: each client sends its next message when the
//! last one is answered, and every answer is checked.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use prost_types::{Struct, Value, value::Kind};
use tokio::task::JoinSet;
use tonic::Request;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::metadata::MetadataValue;
use tonic::transport::{Channel, Endpoint};
use tonic_prost::ProstCodec;

use crate::Result;
use crate::messages::{Message, Part, ROLE_USER, STATE_COMPLETED, SendRequest, SendResponse};

const SEND: &str = "/lf.a2a.v1.A2AService/SendMessage";
const SKILLS: &str = "https://waypost.dev/a2a/skills/v1";
const ECHO: &str = "bench/echo";
/// Uncounted, as in the loads over HTTP/1.1.
const WARM_UP: Duration = Duration::from_secs(1);

/// What to load with.
#[derive(Clone, Debug)]
pub struct Load {
    /// The server.
    pub address: SocketAddr,
    /// Begins the ids of messages: one under a used id would be a repeat.
    pub prefix: String,
    /// Each has a connection of its own.
    pub clients: usize,
    /// How long, after a warm-up.
    pub span: Duration,
}

/// Loads the server and prints how long each message took, sorted, in microseconds, and how long
/// all of them took.
pub async fn run(load: Load) -> Result<()> {
    let mut connected = Vec::with_capacity(load.clients);
    for _ in 0..load.clients {
        let endpoint = Endpoint::from_shared(format!("http://{}", load.address))?;
        connected.push(endpoint.tcp_nodelay(true).connect().await?);
    }
    let count = Arc::new(AtomicU64::new(0));
    drive(&connected, &load.prefix, &count, WARM_UP).await?;
    let begun = Instant::now();
    let mut micros = drive(&connected, &load.prefix, &count, load.span).await?;
    let elapsed = begun.elapsed();
    micros.sort_unstable();
    let at = |percent: usize| {
        let rank = (micros.len() * percent).div_ceil(100).saturating_sub(1);
        micros.get(rank).copied().unwrap_or_default()
    };
    let summary = serde_json::json!({
        "answered": micros.len(),
        "elapsed_us": u64::try_from(elapsed.as_micros())?,
        "p50_us": at(50),
        "p99_us": at(99),
    });
    println!("{summary}");
    Ok(())
}

async fn drive(
    connected: &[Channel],
    prefix: &str,
    count: &Arc<AtomicU64>,
    span: Duration,
) -> Result<Vec<u64>> {
    let end = Instant::now() + span;
    let mut tasks = JoinSet::new();
    for channel in connected {
        let channel = channel.clone();
        let prefix = prefix.to_owned();
        let count = Arc::clone(count);
        tasks.spawn(async move {
            let mut micros = Vec::new();
            let mut before = Instant::now();
            while before < end {
                let number = count.fetch_add(1, Ordering::Relaxed);
                send(channel.clone(), format!("{prefix}-{number}")).await?;
                let after = Instant::now();
                micros.push(u64::try_from((after - before).as_micros())?);
                before = after;
            }
            Ok::<_, crate::Error>(micros)
        });
    }
    let mut micros = Vec::new();
    while let Some(joined) = tasks.join_next().await {
        micros.extend(joined??);
    }
    Ok(micros)
}

/// Sends one message and refuses an answer that is not its completed task.
async fn send(channel: Channel, message_id: String) -> Result<()> {
    let mut request = Request::new(SendRequest { message: Some(hello(message_id)) });
    request.metadata_mut().insert("a2a-version", MetadataValue::from_static("1.0"));
    let mut client = tonic::client::Grpc::new(channel);
    client.ready().await?;
    let codec = ProstCodec::<SendRequest, SendResponse>::default();
    let answer = client.unary(request, PathAndQuery::from_static(SEND), codec).await?;
    let task = answer.into_inner().task;
    let state = task.as_ref().and_then(|task| task.status.as_ref()).map(|status| status.state);
    if state == Some(STATE_COMPLETED) {
        return Ok(());
    }
    Err(format!("expected a completed task, got {task:?}").into())
}

/// The message of the other bindings: a text that comes back.
fn hello(message_id: String) -> Message {
    let skill = object("skill", text(ECHO));
    let part = Part {
        text: None,
        data: Some(Value { kind: Some(Kind::StructValue(object("text", text("hello")))) }),
    };
    let metadata = object(SKILLS, Value { kind: Some(Kind::StructValue(skill)) });
    Message { message_id, role: ROLE_USER, parts: vec![part], metadata: Some(metadata) }
}

fn object(name: &str, value: Value) -> Struct {
    Struct { fields: [(name.to_owned(), value)].into() }
}

fn text(text: &str) -> Value {
    Value { kind: Some(Kind::StringValue(text.to_owned())) }
}
