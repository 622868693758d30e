//! Serves a built server until it is told to stop: then nobody new comes in, who is inside may
//! finish within a limit, and the engine and the upstreams end last. On a socket it serves
//! everybody, on a pipe the one client that started it.

use crate::assemble::Assembled;
use crate::mcp::stdio;
use axum::Router;
use engine::Engine;
use futures::future::{join_all, select};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use kernel::contracts::Spawn;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many connections are open at the same time; more wait in the system's queue.
const CONNECTIONS_MAX: usize = 10_000;
/// How long a connection may take to send a request's head; an idle one is closed after it too.
const HEAD_WAIT: Duration = Duration::from_secs(75);
/// How long requests may go on after the server was told to stop.
const DRAIN_MS: u64 = 3_000;
/// How long to wait when the system gives no more sockets.
const ACCEPT_PAUSE_MS: u64 = 50;

/// Serves until `shutdown` is done, then ends in good order.
pub async fn serve(
    assembled: Assembled,
    listener: TcpListener,
    shutdown: impl Future<Output = ()> + Send,
) {
    let stopper = assembled.stopper();
    let Assembled { router, engine, doors, spawn, ports, .. } = assembled;
    let graceful = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    {
        let floor = Floor { engine: &engine, spawn: spawn.as_ref(), graceful: &graceful, places };
        let own = ports.into_iter().map(|port| (port.listener, port.router));
        let entries = std::iter::once((listener, router)).chain(own);
        let accepting = entries.map(|(listener, router)| floor.accept_all(listener, router));
        // Listeners are closed with what accepts on them.
        drop(select(Box::pin(join_all(accepting)), pin!(shutdown)).await);
    }
    doors.close();
    let drained = engine::timeout(engine.clock().as_ref(), DRAIN_MS, graceful.shutdown()).await;
    if drained.is_none() {
        tracing::warn!(limit_ms = DRAIN_MS, "requests that were still open are cut off");
    }
    stopper.stop().await;
}

/// What connections of all listeners share.
struct Floor<'a> {
    engine: &'a Engine,
    spawn: &'a dyn Spawn,
    graceful: &'a GracefulShutdown,
    places: Arc<Semaphore>,
}

impl Floor<'_> {
    /// Takes connections in until it is dropped.
    async fn accept_all(&self, listener: TcpListener, router: Router) {
        let service = TowerToHyperService::new(router);
        loop {
            let (stream, place) = match accept(&listener, &self.places).await {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    pause(self.engine).await;
                    continue;
                }
            };
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_WAIT)
                .serve_connection(TokioIo::new(stream), service.clone());
            let connection = self.graceful.watch(connection);
            self.spawn.task(
                "connection",
                Box::pin(async move {
                    let _place = place;
                    if let Err(error) = connection.await {
                        tracing::trace!(%error, "a connection broke");
                    }
                }),
            );
        }
    }
}

/// Serves MCP to the client at the other end of a pipe until it closes it, one message a line.
pub async fn serve_stdio<R, W>(assembled: Assembled, input: R, output: W)
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let stopper = assembled.stopper();
    stdio::serve(assembled.door, input, output).await;
    stopper.stop().await;
}

async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let place = places.clone().acquire_owned().await.map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    // Answers are small and waited for.
    stream.set_nodelay(true)?;
    Ok((stream, place))
}

async fn pause(engine: &Engine) {
    let clock = engine.clock();
    clock.sleep_until(clock.now().plus_ms(ACCEPT_PAUSE_MS)).await;
}
