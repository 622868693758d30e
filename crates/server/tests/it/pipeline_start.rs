//! Pipelines when a server starts: ports of their own, and what stops it.

use crate::desk::{DESK, project};
use crate::house::{ADDRESS, setup};
use server::{AssembleError, Assembled, ProjectPart, Setup, assemble};
use std::net::SocketAddr;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::timeout;

const LIMIT: Duration = Duration::from_secs(60);
const ADMIN_KEY: &str = "an-admin-key-of-thirty-two-chars";

/// A pipeline without what needs more than the built-in tools and plans.
pub fn plain(port: Option<u16>) -> String {
    let lines = DESK.lines().filter(|line| !line.contains("it/wait"));
    let text = lines.collect::<Vec<_>>().join("\n");
    match port {
        Some(port) => text.replace("http: {", &format!("http: {{port: {port}, ")),
        None => text,
    }
}

async fn started(pipelines: &[(&str, &str)], data: &TempDir) -> Result<Assembled, AssembleError> {
    let mut project = project(pipelines, "");
    // The plan whose tool is not here.
    project.plans.retain(|plan| !plan.text.contains("desk::wait"));
    let address: SocketAddr = ADDRESS.parse().unwrap();
    assemble(setup(project, data, address)).await
}

/// Sends one request on a connection of its own and reads until the other side closes.
async fn exchange(address: SocketAddr, host: &str, head: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let request = format!(
        "{head} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n\
         {body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    timeout(LIMIT, stream.read_to_end(&mut answer)).await.unwrap().unwrap();
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn a_port_of_its_own_serves_one_pipeline_and_ends_with_the_server() {
    let data = tempfile::tempdir().unwrap();
    let own = plain(Some(0));
    let other = plain(None).replace("/desk/cases", "/other/cases");
    let mut assembled = started(&[("desk", &own), ("other", &other)], &data).await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap();
    let ports = assembled.open_ports(server).await.unwrap();
    let [port] = ports.as_slice() else { panic!("{ports:?}") };
    assert_eq!((port.pipeline.as_str(), port.route.as_str()), ("desk", "/desk/cases"));
    let address = port.address;
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(server::serve(assembled, listener, None, async move {
        let _ = stopped.await;
    }));

    let host = address.to_string();
    let case = r#"{"tradeId": "T-1", "reason": "Missing ISIN"}"#;
    let taken = exchange(address, &host, "POST /desk/cases", case).await;
    assert!(taken.starts_with("HTTP/1.1 200 OK\r\n") && taken.contains("TradeRepaired"), "{taken}");
    let health = exchange(address, &host, "GET /health", "").await;
    assert!(health.ends_with("{\"status\":\"UP\"}\n"), "{health}");
    // Nothing else is there, and only its own name is one.
    for head in ["POST /other/cases", "GET /api/v1/sessions", "GET /livez"] {
        let answer = exchange(address, &host, head, "").await;
        assert!(answer.starts_with("HTTP/1.1 404 "), "{head}: {answer}");
        assert!(answer.contains("\"error\":"), "{head}: {answer}");
    }
    for (head, allow) in [("GET /desk/cases", "allow: POST"), ("POST /health", "allow: GET,HEAD")] {
        let wrong = exchange(address, &host, head, "").await;
        assert!(wrong.starts_with("HTTP/1.1 405 ") && wrong.contains(allow), "{wrong}");
        assert!(wrong.contains("\"error\":") && wrong.contains("\"hint\":"), "{wrong}");
    }
    for stranger in ["evil.test", "localhost:1", ADDRESS] {
        let answer = exchange(address, stranger, "POST /desk/cases", case).await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{stranger}: {answer}");
    }
    stop.send(()).unwrap();
    timeout(LIMIT, serving).await.unwrap().unwrap();
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
    assert!(TcpStream::connect(server).await.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn a_port_of_its_own_asks_for_credentials_where_the_server_does() {
    let data = tempfile::tempdir().unwrap();
    let mut project = project(&[("desk", &plain(Some(0)))], "");
    project.plans.retain(|plan| !plan.text.contains("desk::wait"));
    project.config.server.hosts = vec!["wp.test".to_owned()];
    let address: SocketAddr = ADDRESS.parse().unwrap();
    let admin_key = Some(ADMIN_KEY.to_owned());
    let assembled = assemble(Setup { admin_key, ..setup(project, &data, address) }).await;
    let mut assembled = assembled.unwrap_or_else(|error| panic!("{error}"));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let ports = assembled.open_ports(listener.local_addr().unwrap()).await.unwrap();
    let [port] = ports.as_slice() else { panic!("{ports:?}") };
    let address = port.address;
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(server::serve(assembled, listener, None, async move {
        let _ = stopped.await;
    }));
    let host = address.to_string();
    let health = exchange(address, &host, "GET /health", "").await;
    assert!(health.starts_with("HTTP/1.1 200 "), "{health}");
    let refused = exchange(address, &host, "POST /desk/cases", "{}").await;
    assert!(refused.starts_with("HTTP/1.1 401 "), "{refused}");
    stop.send(()).unwrap();
    timeout(LIMIT, serving).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_taken_port_is_an_error_that_names_it() {
    let data = tempfile::tempdir().unwrap();
    let holder = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let taken = holder.local_addr().unwrap();
    let desk = plain(Some(taken.port()));
    let mut assembled = started(&[("desk", &desk)], &data).await.unwrap();
    let error = assembled.open_ports(ADDRESS.parse().unwrap()).await.unwrap_err();
    assert_eq!((error.pipeline.as_str(), error.address), ("desk", taken));
    assert_eq!(error.why.kind(), std::io::ErrorKind::AddrInUse);
    // The server's own port serves every route: there is nothing to open.
    assert!(assembled.open_ports(taken).await.unwrap().is_empty());
    assembled.stopper().stop().await;
}

#[tokio::test]
async fn a_mistake_in_a_pipeline_stops_the_start() {
    let text = plain(None);
    let wrong = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    };
    for (text, told) in [
        (wrong("type: escalate", "type: escalat"), "unknown handler type `escalat`"),
        (wrong("{type: raise-ticket}", "no::such"), "no::such"),
        (wrong("type: stub", "type: stubb"), "unknown llm type `stubb`"),
        (wrong("allowedFields: [tradeId, reason, altIds]", "allowedFields: [tradeId]"), "`reason`"),
        (wrong("route: /desk/cases", "route: ''"), "`route`"),
        (wrong("route: /desk/cases", "route: /run"), "it is `POST /run`"),
        (wrong("plan: it/question", "plan: it/none"), "it/none"),
        (wrong("{identifier: ISIN}", "{}"), "identifier"),
        (String::new(), "holds no pipeline"),
        ("http: [".to_owned(), "pipelines/desk.yaml"),
    ] {
        let data = tempfile::tempdir().unwrap();
        let Err(error) = started(&[("desk", &text)], &data).await else { panic!("{text}") };
        let AssembleError::Mistakes { part, mistakes } = &error else { panic!("{error}: {text}") };
        assert_eq!(*part, ProjectPart::Pipelines, "{error}: {text}");
        assert!(!mistakes.is_empty());
        let all = error.to_string();
        assert!(all.contains(told), "no `{told}` in {all}");
        assert!(all.contains("pipelines/desk.yaml"), "{all}");
    }
}

#[tokio::test]
async fn a_mistake_in_a_pipelines_model_stops_the_start() {
    let rules = plain(None).replace("version: 1", "version: 7");
    for (text, told) in [
        (rules, "this version of rules is not known"),
        (with_llm("{type: openai}"), "`model` of `llm` is missing"),
        (with_llm("{type: openai, params: {model: m, apiKey: '${NO_SUCH}'}}"), "`NO_SUCH`"),
        (with_llm("{type: model, params: {name: none}}"), "names the model `none`"),
        (with_llm("{type: stub, params: {rules: rules/none.yaml}}"), "rules/none.yaml"),
    ] {
        let data = tempfile::tempdir().unwrap();
        let Err(error) = started(&[("desk", &text)], &data).await else { panic!("{text}") };
        let all = error.to_string();
        assert!(all.contains(told), "no `{told}` in {all}");
    }
}

/// The pipeline with another `llm`.
fn with_llm(llm: &str) -> String {
    let text = plain(None);
    let (before, _) = text.split_once("llm:\n").unwrap();
    format!("{before}llm: {llm}\n")
}
