//! The server on a socket of its own that speaks TLS: who is answered, who is closed, and when a
//! new certificate is used. The certificates are valid until 2120, for `localhost` and 127.0.0.1.

use crate::desk;
use crate::house::{assembled, wait_for};
use crate::http2::Client;
use crate::pipeline_start::plain;
use project::folder::Project;
use project::tables::tls::TlsConfig;
use serde_json::Value;
use server::Tls;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

const LIMIT: Duration = Duration::from_secs(60);

/// A certificate and its key.
#[derive(Clone, Copy)]
struct Pair {
    certificate: &'static str,
    key: &'static str,
}

const FIRST: Pair =
    Pair { certificate: include_str!("tls/first.pem"), key: include_str!("tls/first.key.pem") };
const SECOND: Pair =
    Pair { certificate: include_str!("tls/second.pem"), key: include_str!("tls/second.key.pem") };

fn put(folder: &Path, pair: Pair) {
    std::fs::write(folder.join("cert.pem"), pair.certificate).unwrap();
    std::fs::write(folder.join("key.pem"), pair.key).unwrap();
}

fn der(pair: Pair) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pair.certificate.as_bytes()).unwrap()
}

/// A project with the first certificate, and with a pipeline that has a port of its own.
fn project(folder: &Path) -> Project {
    put(folder, FIRST);
    let mut project = desk::project(&[("desk", &plain(Some(0)))], "");
    // The plan whose tool is not here.
    project.plans.retain(|plan| !plan.text.contains("desk::wait"));
    let files = TlsConfig::Files { certificate: "cert.pem".into(), key: "key.pem".into() };
    project.config.server.tls = Some(files);
    project.folder = folder.to_owned();
    project
}

/// A server with the first certificate in its folder.
struct Served {
    address: SocketAddr,
    /// Where its pipeline is.
    own: SocketAddr,
    folder: TempDir,
    _data: TempDir,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

impl Served {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = tempfile::tempdir().unwrap();
        let project = project(folder.path());
        let tls = Tls::open(&project).await.unwrap();
        assert!(tls.is_some());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut assembled = assembled(project, &data, address, None).await;
        let own = assembled.open_ports(address).await.unwrap()[0].address;
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(server::serve(assembled, listener, tls, async move {
            let _ = stopped.await;
        }));
        Self { address, own, folder, _data: data, stop, serving }
    }

    /// A connection of a client that trusts both certificates.
    async fn connect(&self) -> TlsStream<TcpStream> {
        connect(self.address).await
    }

    /// The certificate that a new connection is shown.
    async fn shown(&self) -> CertificateDer<'static> {
        let stream = self.connect().await;
        let (_, session) = stream.get_ref();
        session.peer_certificates().unwrap()[0].clone()
    }

    /// Waits until new connections are shown this certificate.
    async fn until_shown(&self, pair: Pair) {
        let is_it = |shown: &CertificateDer<'static>| *shown == der(pair);
        wait_for("the other certificate to be shown", async || self.shown().await, is_it).await;
    }

    async fn stop(self) {
        self.stop.send(()).unwrap();
        timeout(LIMIT, self.serving).await.unwrap().unwrap();
    }
}

async fn connect(address: SocketAddr) -> TlsStream<TcpStream> {
    connect_by(address, &[]).await
}

/// The same, with a client that speaks these protocols.
async fn connect_by(address: SocketAddr, protocols: &[&str]) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    for pair in [FIRST, SECOND] {
        roots.add(der(pair)).unwrap();
    }
    let mut config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let connecting = TlsConnector::from(Arc::new(config)).connect(name, stream);
    timeout(LIMIT, connecting).await.unwrap().unwrap()
}

/// Sends one request and reads until the other side closes.
async fn exchange<S>(stream: &mut S, host: SocketAddr, head: &str) -> String
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let request = format!("{head} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    timeout(LIMIT, stream.read_to_end(&mut answer)).await.unwrap().unwrap();
    String::from_utf8(answer).unwrap()
}

/// Sends a request on a connection that stays open, and waits for its answer.
async fn ask(stream: &mut TlsStream<TcpStream>, host: SocketAddr) {
    let request = format!("GET /livez HTTP/1.1\r\nhost: {host}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"{\"status\":\"live\"}\n") {
        let read = timeout(LIMIT, stream.read_buf(&mut answer)).await.unwrap().unwrap();
        assert!(read > 0, "{}", String::from_utf8_lossy(&answer));
    }
}

#[tokio::test]
async fn requests_are_answered_over_tls() {
    let served = Served::new().await;
    let mut stream = served.connect().await;
    let answer = exchange(&mut stream, served.address, "GET /livez").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.ends_with("{\"status\":\"live\"}\n"), "{answer}");
    // A large answer, and a pipeline's own port.
    let mut stream = served.connect().await;
    let answer = exchange(&mut stream, served.address, "GET /openapi.json").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("/api/v1/runs"));
    let mut stream = connect(served.own).await;
    let answer = exchange(&mut stream, served.own, "GET /health").await;
    assert!(answer.ends_with("{\"status\":\"UP\"}\n"), "{answer}");
    served.stop().await;
}

#[tokio::test]
async fn a_client_chooses_its_version_of_http() {
    let served = Served::new().await;
    let agreed = |stream: &TlsStream<TcpStream>| {
        let protocol = stream.get_ref().1.alpn_protocol();
        protocol.map(|name| String::from_utf8(name.to_vec()).unwrap())
    };
    let newer = connect_by(served.address, &["http/1.1", "h2"]).await;
    assert_eq!(agreed(&newer).as_deref(), Some("h2"), "the better one of both");
    let client = Client::new(newer, served.address).await;
    let (status, text) = client.ask("GET /livez", &Value::Null).await;
    assert_eq!((status.as_u16(), text.as_str()), (200, "{\"status\":\"live\"}\n"));
    let mut older = connect_by(served.address, &["http/1.1"]).await;
    assert_eq!(agreed(&older).as_deref(), Some("http/1.1"));
    let answer = exchange(&mut older, served.address, "GET /livez").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    served.stop().await;
}

#[tokio::test]
async fn a_request_without_tls_gets_no_answer() {
    let served = Served::new().await;
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    stream.write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    // The other side closes with what it has not read: an end or a reset.
    let _ = timeout(LIMIT, stream.read_to_end(&mut answer)).await.unwrap();
    let text = String::from_utf8_lossy(&answer);
    assert!(!text.contains("HTTP/") && !text.contains("live"), "{text}");
    // Everybody else is answered as before.
    let mut stream = served.connect().await;
    let answer = exchange(&mut stream, served.address, "GET /livez").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    served.stop().await;
}

#[tokio::test]
async fn a_handshake_that_does_not_end_is_closed() {
    let served = Served::new().await;
    let mut silent = TcpStream::connect(served.address).await.unwrap();
    let mut slow = TcpStream::connect(served.address).await.unwrap();
    // The beginning of a handshake is no first byte: it brings no more time.
    slow.write_all(&[22, 3, 1, 1, 0]).await.unwrap();
    let mut rest = Vec::new();
    let _ = timeout(LIMIT, silent.read_to_end(&mut rest)).await.unwrap();
    assert!(rest.is_empty(), "{rest:?}");
    let _ = timeout(Duration::from_secs(15), slow.read_to_end(&mut rest)).await.unwrap();
    assert!(rest.is_empty(), "{rest:?}");
    served.stop().await;
}

#[tokio::test]
async fn a_handshake_does_not_hold_up_the_end() {
    let served = Served::new().await;
    let mut silent = TcpStream::connect(served.address).await.unwrap();
    // After this, the connection before it has been accepted.
    let mut idle = served.connect().await;
    served.stop().await;
    let mut rest = Vec::new();
    let _ = timeout(LIMIT, silent.read_to_end(&mut rest)).await.unwrap();
    let _ = timeout(LIMIT, idle.read_to_end(&mut rest)).await.unwrap();
    assert!(rest.is_empty(), "{rest:?}");
}

#[tokio::test]
async fn a_new_certificate_is_used_without_a_restart() {
    let served = Served::new().await;
    assert_eq!(served.shown().await, der(FIRST));
    let mut open = served.connect().await;
    ask(&mut open, served.address).await;
    put(served.folder.path(), SECOND);
    served.until_shown(SECOND).await;
    // One that cannot be used changes nothing, and the next one that can be is used again.
    std::fs::write(served.folder.path().join("key.pem"), "no key").unwrap();
    let looks = Duration::from_secs(3);
    let changed = timeout(looks, async {
        while served.shown().await == der(SECOND) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    assert!(changed.await.is_err(), "the old certificate stays in use");
    put(served.folder.path(), FIRST);
    served.until_shown(FIRST).await;
    // A client that was connected before all of this still is.
    ask(&mut open, served.address).await;
    served.stop().await;
}
