//! A server whose store went back: it serves nothing until an operator has decided, and says why to
//! everybody who asks. A process that ended instead would be started again and again.

use super::ACCEPT_PAUSE_MS;
use super::http2::{self, Streams};
use super::tls::Tls;
use crate::assemble::system;
use crate::secrets::vault::System;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use edge::problem::{Failure, Shape};
use futures::future::select;
use hyper_util::rt::TokioIo;
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use serde_json::json;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// How many connections are open at the same time, and for how long each.
const CONNECTIONS_MAX: usize = 64;
const CONNECTION_MS: u64 = 5_000;

/// Answers every request with 503 `store_went_back`, and `/livez` as ever, until `shutdown` is
/// done. What was lost is in the log, and is nobody's business here.
pub async fn refuse_all(
    listener: TcpListener,
    tls: Option<Tls>,
    shutdown: impl Future<Output = ()> + Send,
) {
    let refusing = accept_all(listener, tls.map(Arc::new), router(went_back()), system());
    drop(select(Box::pin(refusing), pin!(shutdown)).await);
}

fn went_back() -> Failure {
    let what = "the store went back: writes that were acknowledged are lost";
    Failure::new(StatusCode::SERVICE_UNAVAILABLE, "store_went_back", what).hint(
        "the operator restores what is missing, or accepts the loss by `waypost up --after-loss`",
    )
}

fn router(failure: Failure) -> Router {
    let refuse = move || {
        let refusal = failure.clone().render(Shape::Problem, String::new());
        async move { refusal }
    };
    let live = get(|| async { Json(json!({"status": "live"})) });
    Router::new().route("/livez", live).fallback(refuse)
}

/// Takes connections in until it is dropped.
async fn accept_all(
    listener: TcpListener,
    tls: Option<Arc<Tls>>,
    router: Router,
    System { clock, spawn, .. }: System,
) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let builder = Arc::new(http2::builder(spawn.clone()));
    // It is never closed.
    while let Ok(permit) = room.clone().acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                let answering = answer(stream, tls.clone(), router.clone(), builder.clone());
                let clock = clock.clone();
                let task = async move {
                    let _ = engine::timeout(clock.as_ref(), CONNECTION_MS, answering).await;
                    drop(permit);
                };
                spawn.task("connection", Box::pin(task));
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                clock.sleep_ms(ACCEPT_PAUSE_MS).await;
            }
        }
    }
}

async fn answer(
    stream: TcpStream,
    tls: Option<Arc<Tls>>,
    router: Router,
    builder: Arc<auto::Builder<Streams>>,
) {
    let Some(tls) = tls else { return speak(stream, router, builder).await };
    match tls.accept(stream).await {
        Ok(stream) => speak(stream, router, builder).await,
        Err(error) => tracing::trace!(%error, "a TLS handshake failed"),
    }
}

async fn speak<S>(stream: S, router: Router, builder: Arc<auto::Builder<Streams>>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = TowerToHyperService::new(router);
    if let Err(error) = builder.serve_connection(TokioIo::new(stream), service).await {
        tracing::trace!(%error, "a connection broke");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, SocketAddr};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::sync::oneshot;

    async fn answered(address: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut told = String::new();
        stream.read_to_string(&mut told).await.unwrap();
        told
    }

    #[tokio::test]
    async fn a_server_whose_store_lost_commits_serves_only_the_reason() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let refusing = refuse_all(listener, None, async move {
            let _ = stopped.await;
        });
        let asking = async move {
            for path in ["/readyz", "/api/v1/runs", "/mcp", "/"] {
                let told = answered(address, path).await;
                assert!(told.starts_with("HTTP/1.1 503 "), "{path}: {told}");
                assert!(told.contains("store_went_back"), "{path}: {told}");
            }
            let told = answered(address, "/livez").await;
            assert!(told.starts_with("HTTP/1.1 200 "), "{told}");
            drop(stop);
        };
        futures::future::join(refusing, asking).await;
    }
}
