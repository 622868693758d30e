//! The server on a real socket, from the first request to its end.

use crate::house::assembled;
use axum::http::StatusCode;
use axum::middleware::map_response;
use axum::response::Response;
use project::folder::Project;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::timeout;

const LIMIT: Duration = Duration::from_secs(60);

/// Sends one request on a connection of its own and reads until the other side closes.
async fn exchange(address: SocketAddr, head: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "{head} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    timeout(LIMIT, stream.read_to_end(&mut answer)).await.unwrap().unwrap();
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn a_server_answers_and_ends_when_it_is_told_to() {
    let data = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let assembled = assembled(Project::demo(), &data, address, None).await;
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(server::serve(assembled, listener, None, async move {
        let _ = stopped.await;
    }));

    let answer = exchange(address, "GET /livez", "").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.ends_with("{\"status\":\"live\"}\n"), "{answer}");
    let waiting = exchange(
        address,
        "POST /api/v1/runs",
        "{\"planId\": \"interaction::greeting\", \"session\": \"s\"}",
    )
    .await;
    assert!(waiting.starts_with("HTTP/1.1 202 Accepted\r\n"), "{waiting}");

    // A stream that would stay open for ever does not hold the end up.
    let following =
        tokio::spawn(async move { exchange(address, "GET /api/v1/sessions/s/events", "").await });
    let mut idle = TcpStream::connect(address).await.unwrap();
    timeout(LIMIT, async {
        while !exchange(address, "GET /metrics", "").await.contains("waypost_streams_open 1") {}
    })
    .await
    .unwrap();
    stop.send(()).unwrap();
    timeout(LIMIT, serving).await.unwrap().unwrap();
    let told = timeout(LIMIT, following).await.unwrap().unwrap();
    assert!(told.contains("event: snapshot") && !told.contains("event: end"), "{told}");
    let mut rest = Vec::new();
    timeout(LIMIT, idle.read_to_end(&mut rest)).await.unwrap().unwrap();
    assert!(rest.is_empty());
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
}

/// Every answer with a status that no route has.
async fn marked(mut response: Response) -> Response {
    *response.status_mut() = StatusCode::IM_A_TEAPOT;
    response
}

#[tokio::test]
async fn a_layer_around_the_router_is_around_every_endpoint() {
    for (is_behind, status) in [(false, "405 Method Not Allowed"), (true, "418 I'm a teapot")] {
        let data = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut assembled = assembled(Project::demo(), &data, address, None).await;
        if is_behind {
            assembled.behind(|router| router.layer(map_response(marked)));
        }
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(server::serve(assembled, listener, None, async move {
            let _ = stopped.await;
        }));
        let answer = exchange(address, "PATCH /mcp", "").await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{answer}");
        assert!(answer.contains("allow: POST, GET, DELETE, OPTIONS\r\n"), "{answer}");
        assert!(answer.contains("x-content-type-options: nosniff\r\n"), "{answer}");
        stop.send(()).unwrap();
        timeout(LIMIT, serving).await.unwrap().unwrap();
    }
}
