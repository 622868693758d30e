//! gRPC alone: what goes with a call, which addresses are gone to, how each status is understood,
//! and agents whose answers are broken on purpose.

use crate::house::{CALL_MS, House, agent, call, nothing, texts, until, within};
use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use kernel::tool::call::{Abilities, Caller, Given, HowFar, ToolError};
use serde_json::{Value, json};
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use testkit::servers::a2a::AgentServer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use upstreams::{A2aConfig, CardPlace, RestAuth, Secret, TokenClient};
use wire::a2a::error::{A2aError, ErrorKind};
use wire::a2a::proto::schema;
use wire::a2a::proto::status::{HEADER_DETAILS, HEADER_STATUS, Status};
use wire::a2a::proto::write;
use wire::a2a::{ASKS_EXTENSION, HOPS, SKILLS_EXTENSION};

const QUICK: Duration = Duration::from_millis(300);

/// How a connection of HTTP/2 begins, and kinds of its frames.
const PREFACE_BYTES: usize = 24;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const GO_AWAY: u8 = 7;

/// What an agent answers to every call.
#[derive(Clone)]
struct Script {
    status: u16,
    kind: &'static str,
    head: HeaderMap,
    bytes: Vec<u8>,
    end: End,
}

/// How an answer ends.
#[derive(Clone)]
enum End {
    /// With these trailers.
    Trailers(HeaderMap),
    /// Without a word.
    Silence,
    /// It is broken off.
    Reset,
}

fn script(bytes: Vec<u8>, end: End) -> Script {
    Script { status: 200, kind: "application/grpc", head: HeaderMap::new(), bytes, end }
}

fn headers(status: &Status) -> HeaderMap {
    let pairs = status.headers().into_iter().map(|(name, value)| {
        (HeaderName::from_static(name), HeaderValue::try_from(value).unwrap())
    });
    pairs.collect()
}

fn success() -> End {
    End::Trailers(headers(&Status::default()))
}

fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[0][..], &length[..], message].concat()
}

/// A task that is over, in its frame.
fn done() -> Vec<u8> {
    let task = json!({"task": {"id": "t", "contextId": "c", "status": {
        "state": "TASK_STATE_COMPLETED"}}});
    framed(&write(&schema::SEND_MESSAGE_RESPONSE, &task))
}

/// An agent that answers so, whatever it is asked.
async fn serve(script: Script) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(talk(stream, script.clone()));
        }
    });
    address
}

async fn talk(stream: TcpStream, script: Script) {
    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
    while let Some(Ok((request, respond))) = connection.accept().await {
        tokio::spawn(play(request, respond, script.clone()));
    }
}

/// A client may have left at any point: then nothing is to be sent.
async fn play(request: Request<RecvStream>, mut respond: SendResponse<Bytes>, script: Script) {
    let mut body = request.into_body();
    while let Some(Ok(piece)) = body.data().await {
        let _ = body.flow_control().release_capacity(piece.len());
    }
    let Script { status, kind, head, bytes, end } = script;
    let mut response = Response::builder().status(status).header("content-type", kind);
    response.headers_mut().unwrap().extend(head);
    let is_last = matches!(end, End::Silence);
    let is_bare = bytes.is_empty() && is_last;
    let Ok(mut sending) = respond.send_response(response.body(()).unwrap(), is_bare) else {
        return;
    };
    if is_bare {
        return;
    }
    let _ = sending.send_data(bytes.into(), is_last);
    match end {
        End::Trailers(trailers) => drop(sending.send_trailers(trailers)),
        End::Silence => {}
        End::Reset => sending.send_reset(Reason::INTERNAL_ERROR),
    }
}

/// An agent that closes each connection with these words once it was asked something.
async fn serve_closing(words: String) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let words = words.clone();
            tokio::spawn(async move { close(stream, &words).await });
        }
    });
    address
}

async fn close(mut stream: TcpStream, words: &str) -> io::Result<()> {
    stream.write_all(&frame(SETTINGS, &[])).await?;
    stream.read_exact(&mut [0; PREFACE_BYTES]).await?;
    let mut kind = SETTINGS;
    while kind != HEADERS {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        stream.read_exact(&mut vec![0; length as usize]).await?;
        kind = head[3];
    }
    // No stream was taken, because of an error of its own.
    let closing = [&[0; 4][..], &[0, 0, 0, 2][..], words.as_bytes()].concat();
    stream.write_all(&frame(GO_AWAY, &closing)).await?;
    // What was not read would reset the connection before the words are there.
    tokio::io::copy(&mut stream, &mut tokio::io::sink()).await?;
    Ok(())
}

/// The calls of an agent that never answers.
#[derive(Default)]
struct Unanswered {
    begun: AtomicUsize,
    /// Those that the client gave up.
    cancelled: AtomicUsize,
}

async fn serve_nothing(calls: Arc<Unanswered>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut connection = h2::server::handshake(stream).await.unwrap();
        while let Some(Ok((request, mut respond))) = connection.accept().await {
            let calls = calls.clone();
            tokio::spawn(async move {
                calls.begun.fetch_add(1, Ordering::SeqCst);
                let reset = poll_fn(|context| respond.poll_reset(context)).await;
                if reset.is_ok_and(|reason| reason == Reason::CANCEL) {
                    calls.cancelled.fetch_add(1, Ordering::SeqCst);
                }
                drop(request);
            });
        }
    });
    address
}

/// A frame of HTTP/2 that is for the whole connection.
fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, 0][..], &[0; 4][..], payload].concat()
}

/// The settings of an agent whose card names only this.
fn grpc_at(address: &str) -> A2aConfig {
    let server = AgentServer::start(QUICK);
    let mut card = server.card();
    card["supportedInterfaces"] = json!([{"url": address, "protocolBinding": "GRPC",
        "protocolVersion": "1.0"}]);
    server.serve_card(card);
    agent(&server.url())
}

/// How a message to such an agent fails.
async fn failed(script: Script) -> ToolError {
    let mut config = grpc_at(&serve(script).await.to_string());
    config.allow_private = true;
    let house = House::open(config).await;
    house.follow(1, "hello", nothing).await.unwrap_err()
}

#[tokio::test]
async fn a_call_has_its_metadata_its_deadline_and_its_hops() {
    let server = AgentServer::start(QUICK);
    let mut card = server.card();
    card["supportedInterfaces"] = json!([
        {"url": "https://a.test/", "protocolBinding": "GRPC", "protocolVersion": "0.3"},
        {"url": server.url(), "protocolBinding": "GRPC", "protocolVersion": "1.0"},
        {"url": format!("{}/rpc", server.url()), "protocolBinding": "JSONRPC",
            "protocolVersion": "1.0"}]);
    card["capabilities"]["extensions"] =
        json!([{"uri": SKILLS_EXTENSION}, {"uri": ASKS_EXTENSION}]);
    server.serve_card(card);
    let mut config = agent(&server.url());
    config.auth = Some(RestAuth::Bearer("hunter2-secret".into()));
    let house = House::open(config).await;
    let done = house.follow(1, "tck-complete-task", nothing).await.unwrap();
    assert_eq!(texts(&done), ["done"]);
    let asked = server.asked().pop().unwrap();
    let extensions = format!("{SKILLS_EXTENSION},{ASKS_EXTENSION}");
    let timeout = format!("{CALL_MS}m");
    assert_eq!(asked.line, "POST /grpc", "the first that we speak is chosen");
    for (name, value) in [
        ("content-type", "application/grpc"),
        ("te", "trailers"),
        ("a2a-version", "1.0"),
        ("a2a-extensions", extensions.as_str()),
        ("authorization", "Bearer hunter2-secret"),
        ("grpc-accept-encoding", "identity"),
        ("grpc-timeout", timeout.as_str()),
    ] {
        assert_eq!(asked.header(name), Some(value), "{name}");
    }
    assert_eq!(asked.body["params"]["message"]["metadata"][HOPS], json!(1), "{asked:?}");
}

#[tokio::test]
async fn a_card_leads_to_no_private_address_over_grpc_either() {
    let address = serve(script(done(), success())).await;
    for named in [address.to_string(), format!("http://{address}"), "localhost:9".to_owned()] {
        let (name, told) = House::open(grpc_at(&named)).await.fault();
        assert!(name == "AddressNotAllowed" && told.contains("allow_private"), "{name}: {told}");
    }
    let mut config = grpc_at(&address.to_string());
    config.allow_private = true;
    let house = House::open(config.clone()).await;
    house.follow(1, "hello", nothing).await.unwrap();
    config.auth = Some(RestAuth::Bearer("hunter2-secret".into()));
    let (name, told) = House::open(config).await.fault();
    assert!(name == "AddressNotAllowed" && told.contains("origin"), "{name}: {told}");
}

/// Nothing is sent to any of these: a card in a file is opened without a request.
#[tokio::test]
async fn a_card_in_a_file_that_names_a_port_without_tls_gets_no_credentials() {
    fn interface(url: &str, binding: &str) -> Value {
        json!({"url": url, "protocolBinding": binding, "protocolVersion": "1.0"})
    }
    let bare = interface("a.test:50051", "GRPC");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("card.json");
    let config = |interfaces: &[&Value]| {
        let card = json!({"name": "a", "supportedInterfaces": interfaces, "skills": []});
        std::fs::write(&path, card.to_string()).unwrap();
        let mut config = A2aConfig::new(CardPlace::File(path.clone()));
        config.auth = Some(RestAuth::Bearer("hunter2-secret".into()));
        config
    };
    let (name, told) = House::open(config(&[&bare])).await.fault();
    assert_eq!(name, "AddressNotAllowed", "{told}");
    for part in ["agent `peer`", "`http://a.test:50051`", "`https://a.test:50051`", "origin"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let address = |house: &House| house.remote.upstreams()[0].status().agent.unwrap().address;
    let encrypted = interface("https://a.test/rest", "HTTP+JSON");
    let house = House::open(config(&[&bare, &encrypted])).await;
    assert_eq!(address(&house), "https://a.test/rest", "the other is passed over");
    let mut without = config(&[&bare]);
    without.auth = None;
    assert_eq!(address(&House::open(without).await), "http://a.test:50051/");
}

#[tokio::test]
async fn a_broken_answer_is_a_fault_with_its_name_and_the_outcome_is_unknown() {
    let (done, half) = (done(), done().len() / 2);
    for (what, script, name) in [
        ("an unknown flag", script(b"\x07\0\0\0\x01a".to_vec(), success()), "UpstreamNotA2a"),
        ("a compressed message", script(b"\x01\0\0\0\x01a".to_vec(), success()), "UpstreamNotA2a"),
        ("no protobuf", script(framed(b"\xff\xff\xff"), success()), "UpstreamNotA2a"),
        ("two messages", script([&done[..], &done[..]].concat(), success()), "UpstreamNotA2a"),
        ("no message", script(Vec::new(), success()), "UpstreamNotA2a"),
        ("no task", script(framed(b""), success()), "UpstreamNotA2a"),
        ("a great length", script(b"\0\x7f\xff\xff\xff".to_vec(), success()), "OutputTooLarge"),
        ("a great message", script(framed(&[0; 1_000_001]), success()), "OutputTooLarge"),
        ("half a message", script(done[..half].to_vec(), End::Silence), "AnswerLost"),
        ("no status", script(done.clone(), End::Silence), "AnswerLost"),
        ("nothing at all", script(Vec::new(), End::Silence), "AnswerLost"),
        ("a reset", script(done[..half].to_vec(), End::Reset), "AnswerLost"),
    ] {
        let error = failed(script).await;
        assert_eq!((error.how, error.fault.name.as_str()), (HowFar::Unknown, name), "{what}");
        assert_eq!(error.fault.passing, name == "AnswerLost", "{what}: {error:?}");
    }
}

#[tokio::test]
async fn every_status_says_what_it_is() {
    let unsupported = A2aError::new(ErrorKind::UnsupportedOperation, "not now");
    let named = |name: &str| Status::named(name, "not now");
    for (status, name, how, is_passing) in [
        (Status::of(&unsupported), "UpstreamError", HowFar::Failed, false),
        (named("UNAUTHENTICATED"), "UpstreamUnauthorized", HowFar::Failed, false),
        (named("PERMISSION_DENIED"), "UpstreamForbidden", HowFar::Failed, false),
        (named("INVALID_ARGUMENT"), "UpstreamError", HowFar::Failed, false),
        (named("INTERNAL"), "UpstreamError", HowFar::Failed, false),
        (named("RESOURCE_EXHAUSTED"), "UpstreamError", HowFar::Failed, true),
        (named("UNAVAILABLE"), "UpstreamError", HowFar::Unknown, true),
        (named("DEADLINE_EXCEEDED"), "UpstreamError", HowFar::Unknown, true),
    ] {
        let first = Script { head: headers(&status), ..script(Vec::new(), End::Silence) };
        let last = script(Vec::new(), End::Trailers(headers(&status)));
        for script in [first, last] {
            let error = failed(script).await;
            let found = (error.fault.name.as_str(), error.how, error.fault.passing);
            assert_eq!(found, (name, how, is_passing), "{status:?}");
            assert!(error.fault.message.contains("not now"), "{error:?}");
        }
    }
    let mut head = headers(&named("UNAUTHENTICATED"));
    head.insert(HEADER_DETAILS, HeaderValue::from_static("////"));
    let error = failed(Script { head, ..script(Vec::new(), End::Silence) }).await;
    assert_eq!(error.fault.name, "UpstreamUnauthorized", "details do not hide the status");
}

#[tokio::test]
async fn what_is_not_of_grpc_is_understood_by_its_status_of_http() {
    for (status, name, how) in [
        (200, "UpstreamNotA2a", HowFar::Unknown),
        (401, "UpstreamUnauthorized", HowFar::Failed),
        (404, "HttpStatus", HowFar::Failed),
        (502, "HttpStatus", HowFar::Unknown),
    ] {
        let page = script(b"<html>".to_vec(), End::Silence);
        let error = failed(Script { status, kind: "text/html", ..page }).await;
        assert_eq!((error.fault.name.as_str(), error.how), (name, how), "{status}");
    }
}

#[tokio::test]
async fn a_status_repeats_no_credential() {
    let mut status = Status::named("INTERNAL", "I know hunter2-secret");
    status.details =
        vec![json!({"@type": wire::a2a::error::ERROR_INFO, "reason": "hunter2-secret",
        "domain": "a.test"})];
    let head = headers(&status);
    assert!(head.contains_key(HEADER_STATUS) && head.contains_key(HEADER_DETAILS));
    let address = serve(Script { head, ..script(Vec::new(), End::Silence) }).await;
    let mut config = grpc_at(&address.to_string());
    config.origin = Some(format!("http://{address}"));
    config.auth = Some(RestAuth::Bearer("hunter2-secret".into()));
    let house = House::open(config).await;
    let error = house.follow(1, "hello", nothing).await.unwrap_err();
    assert!(error.fault.message.contains("I know ***"), "{error:?}");
    assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
}

#[tokio::test]
async fn what_a_connection_is_closed_with_repeats_no_credential() {
    let words = format!("I know hunter2-secret {}", "x".repeat(9_000));
    let address = serve_closing(words).await;
    let mut config = grpc_at(&address.to_string());
    config.origin = Some(format!("http://{address}"));
    config.auth = Some(RestAuth::Bearer("hunter2-secret".into()));
    let house = House::open(config).await;
    let error = house.follow(1, "hello", nothing).await.unwrap_err();
    assert_eq!((error.how, error.fault.name.as_str()), (HowFar::Unknown, "AnswerLost"));
    assert!(error.fault.message.contains("I know ***"), "{error:?}");
    assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
    assert!(error.fault.message.len() < 2_000, "{error:?}");
}

#[tokio::test]
async fn a_token_that_is_refused_is_asked_for_again() {
    let page = script(Vec::new(), End::Silence);
    let page = Script { status: 401, kind: "text/html", ..page };
    let head = headers(&Status::named("UNAUTHENTICATED", "no"));
    let ended = Script { head, ..script(Vec::new(), End::Silence) };
    for (what, script) in [("by a gateway", page), ("by the agent", ended)] {
        let (address, server) = (serve(script).await, AgentServer::start(QUICK));
        let mut card = server.card();
        card["supportedInterfaces"] = json!([{"url": address.to_string(),
            "protocolBinding": "GRPC", "protocolVersion": "1.0"}]);
        card["securitySchemes"] = json!({"login": {"oauth2SecurityScheme": {"flows": {
            "clientCredentials": {"tokenUrl": format!("{}/token", server.url()), "scopes": {}}}}}});
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("card.json");
        std::fs::write(&path, card.to_string()).unwrap();
        let mut config = A2aConfig::new(CardPlace::File(path));
        config.allow_private = true;
        let (id, secret) = ("me".to_owned(), Secret::new("right"));
        config.client = Some(TokenClient { id, secret, scopes: Vec::new() });
        let house = House::open(config).await;
        for id in [1, 2] {
            let error = house.follow(id, "hello", nothing).await.unwrap_err();
            assert_eq!(error.fault.name, "UpstreamUnauthorized", "{what}: {error:?}");
        }
        let asked = server.asked();
        let tokens = asked.iter().filter(|asked| asked.line == "POST /token").count();
        assert_eq!(tokens, 2, "{what}");
    }
}

#[tokio::test]
async fn a_number_that_would_arrive_as_another_is_not_sent() {
    let server = AgentServer::start(QUICK);
    let house = House::speaking(&server, "grpc").await;
    let (tool, caller) = (house.tool("peer.send"), Caller::new("default", "local"));
    for (number, fits) in [
        (json!(9_007_199_254_740_993_u64), false),
        (json!(-9_007_199_254_740_993_i64), false),
        (json!(u64::MAX), false),
        (json!(1_u64 << 60), true),
        (json!(-7), true),
        (json!(0.1), true),
    ] {
        let before = server.begun();
        let arguments = json!({"text": "tck-complete-task", "data": {"list": [number]}});
        let asked = call(Abilities::RUN, 1, &arguments, Given::default());
        match within("a call", tool.call(&caller, &asked)).await {
            Ok(_) => assert!(fits, "{number}"),
            Err(error) => {
                let found = (error.how, error.fault.name.as_str());
                assert_eq!(found, (HowFar::NotSent, "InputValidationError"), "{error:?}");
                assert!(!fits && server.begun() == before, "{number}");
            }
        }
    }
}

#[tokio::test]
async fn a_call_that_is_dropped_is_cancelled_at_the_agent() {
    let calls = Arc::new(Unanswered::default());
    let mut config = grpc_at(&serve_nothing(calls.clone()).await.to_string());
    config.allow_private = true;
    let house = House::open(config).await;
    tokio::select! {
        ended = house.invoke(1, "hello", Given::default()) => panic!("no answer came: {ended:?}"),
        () = until("the call to arrive", || calls.begun.load(Ordering::SeqCst) == 1) => {}
    }
    until("its stream to be reset", || calls.cancelled.load(Ordering::SeqCst) == 1).await;
}
