//! The client of gRPC against our own server: a conversation with a question, errors, streams as
//! they come, and streams that end before their task does.

use crate::a2a::{SETTINGS, message, reply};
use crate::a2a_grpc::{LIMIT, Served, add, state, typed, words};
use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderValue, Response};
use engine::system::clock::{SystemClock, SystemEntropy, TokioSpawn};
use kernel::limits::Limits;
use kernel::tool::call::CallProgress;
use outbound::client::ClientOptions;
use outbound::grpc::{self, Answer, StreamError};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use testkit::http::grpc::{framed, read_as, status};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};
use upstreams::{A2aConfig, CardPlace, HOPS_MAX, MemoryVault, Peer, RemoteParts, Scope};
use wire::a2a::GRPC_SERVICE;
use wire::a2a::message::Message;
use wire::a2a::proto::schema::{self, Shape};
use wire::a2a::proto::status::Status;
use wire::a2a::proto::write;
use wire::a2a::task::{StreamResponse, Task, TaskState};

pub(super) fn parts() -> RemoteParts {
    RemoteParts {
        spawn: Arc::new(TokioSpawn::new(tokio::runtime::Handle::current())),
        clock: Arc::new(SystemClock),
        entropy: Arc::new(SystemEntropy),
        limits: Arc::new(Limits::default()),
        hops_max: HOPS_MAX,
        supervisor: None,
        vault: Arc::new(MemoryVault::new(Arc::new(SystemClock))),
        login: None,
        scope: Scope::default(),
    }
}

/// A client of this server that knows of no other interface than that of gRPC.
async fn peer(served: &Served) -> Peer {
    let at = A2aConfig::new(CardPlace::Url(format!("http://{}", served.address)));
    let mut card = upstreams::read_card(&at, &parts()).await.unwrap();
    let interfaces = card["supportedInterfaces"].as_array_mut().unwrap();
    interfaces.retain(|interface| interface["protocolBinding"] == "GRPC");
    assert_eq!(interfaces.len(), 1);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("card.json");
    std::fs::write(&path, card.to_string()).unwrap();
    let mut config = A2aConfig::new(CardPlace::File(path));
    config.allow_private = true;
    Peer::open(&config, &parts()).await.unwrap()
}

/// The task of a message, once it is in this state.
pub(super) async fn until(peer: &Peer, message: &Value, wanted: TaskState) -> Task {
    let sent = peer.send(typed::<Message>(message)).await.unwrap();
    let StreamResponse::Task(begun) = sent else { panic!("{sent:?}") };
    let looking = async {
        loop {
            let task = peer.task(&begun.id).await.unwrap();
            if task.status.state == wanted {
                return task;
            }
            sleep(Duration::from_millis(10)).await;
        }
    };
    let found = timeout(LIMIT, looking).await;
    found.unwrap_or_else(|_| panic!("waited {LIMIT:?} in vain for a task that is {wanted:?}"))
}

#[tokio::test]
async fn a_client_that_knows_only_grpc_has_the_whole_conversation() {
    let served = Served::new(SETTINGS).await;
    let peer = peer(&served).await;
    let done = until(&peer, &add("m1"), TaskState::Completed).await;
    assert!(!done.artifacts.is_empty(), "{done:?}");
    let begin = message("m2", "it/approval", json!({"data": {}}));
    let asked = until(&peer, &begin, TaskState::InputRequired).await;
    let answer = reply("m3", &json!(asked), json!({"text": "yes"}));
    let done = until(&peer, &answer, TaskState::Completed).await;
    assert_eq!(done.id, asked.id);
    let missing = peer.task("run_nowhere").await.unwrap_err();
    assert_eq!((missing.how, missing.fault.name.as_str()), (CallProgress::Failed, "UpstreamError"));
    assert!(missing.fault.message.contains("TASK_NOT_FOUND"), "{missing:?}");
    let over = peer.send(typed(&reply("m4", &json!(done), json!({"text": "no"})))).await;
    let over = over.unwrap_err().fault.message;
    assert!(over.contains("UNSUPPORTED_OPERATION"), "{over}");
    drop(peer);
    served.stop().await;
}

/// Begins a call, over a connection of its own.
async fn begin(address: SocketAddr, method: &str, shape: &Shape, params: &Value) -> Answer {
    let client = ClientOptions::default().http2().build().unwrap();
    let mut headers = HeaderMap::new();
    headers.insert("a2a-version", HeaderValue::from_static("1.0"));
    let call = grpc::Call {
        url: format!("http://{address}{GRPC_SERVICE}/{method}").parse().unwrap(),
        headers,
        message: write(shape, params),
        within_ms: 60_000,
        bytes_max: 1_000_000,
    };
    let answer = timeout(LIMIT, grpc::call(&client, call)).await.expect("no answer came");
    answer.unwrap()
}

async fn next(answer: &mut Answer) -> Result<Option<Bytes>, StreamError> {
    timeout(LIMIT, answer.message()).await.expect("neither a message nor an end came")
}

fn event(message: &Bytes) -> Value {
    read_as(&schema::STREAM_RESPONSE, message)
}

#[tokio::test]
async fn a_stream_is_read_as_it_comes_up_to_its_status() {
    let served = Served::new(SETTINGS).await;
    let params = json!({"message": add("m1")});
    let shape = &schema::SEND_MESSAGE_REQUEST;
    let mut answer = begin(served.address, "SendStreamingMessage", shape, &params).await;
    let mut events = Vec::new();
    while let Some(message) = next(&mut answer).await.unwrap() {
        events.push(event(&message));
    }
    assert_eq!(words(&events), ["task SUBMITTED", "WORKING", "artifact", "COMPLETED"]);
    assert_eq!(status(answer.ending().unwrap()), Status::default());
    let over = json!({"id": events[0]["task"]["id"]});
    let shape = &schema::SUBSCRIBE_REQUEST;
    let mut refused = begin(served.address, "SubscribeToTask", shape, &over).await;
    assert!(next(&mut refused).await.unwrap().is_none());
    assert_eq!(status(refused.ending().unwrap()).name(), "FAILED_PRECONDITION");
    drop((answer, refused));
    served.stop().await;
}

#[tokio::test]
async fn a_server_that_stops_ends_its_streams_with_a_status() {
    let served = Served::new(SETTINGS).await;
    let task = served.send(message("m1", "it/approval", json!({"data": {}}))).await;
    let shape = &schema::SUBSCRIBE_REQUEST;
    let params = json!({"id": task["id"]});
    let mut answer = begin(served.address, "SubscribeToTask", shape, &params).await;
    let first = next(&mut answer).await.unwrap().unwrap();
    assert_eq!(state(&event(&first)["task"]), "INPUT_REQUIRED");
    served.stop().await;
    assert!(next(&mut answer).await.unwrap().is_none(), "nothing happened since");
    assert_eq!(status(answer.ending().unwrap()).name(), "UNAVAILABLE");
}

#[tokio::test]
async fn a_stream_whose_connection_is_cut_does_not_seem_to_be_whole() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (cut, is_cut) = oneshot::channel::<()>();
    let serving = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut connection = h2::server::handshake(stream).await.unwrap();
        let (_request, mut respond) = connection.accept().await.unwrap().unwrap();
        let response = Response::builder().header("content-type", "application/grpc");
        let response = response.body(()).unwrap();
        let mut sending = respond.send_response(response, false).unwrap();
        sending.send_data(Bytes::from(framed(b"")), false).unwrap();
        // Accepting writes what is to be sent.
        tokio::select! {
            more = connection.accept() => panic!("one call was expected: {}", more.is_some()),
            _ = is_cut => {}
        }
    });
    let shape = &schema::SUBSCRIBE_REQUEST;
    let params = json!({"id": "t"});
    let mut answer = begin(address, "SubscribeToTask", shape, &params).await;
    assert!(next(&mut answer).await.unwrap().is_some_and(|message| message.is_empty()));
    cut.send(()).unwrap();
    timeout(LIMIT, serving).await.expect("the connection is not closed").unwrap();
    let broken = next(&mut answer).await;
    assert!(matches!(broken, Err(StreamError::Lost(_) | StreamError::CutOff)), "{broken:?}");
    assert!(answer.ending().is_none());
}
