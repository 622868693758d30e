//! Serves a built server until it has to stop: then no one new comes in, who is inside may
//! finish within a limit, and the engine and the upstreams end last. On a socket it serves
//! everybody, on a pipe the one client that started it.

pub(crate) mod socket;

use crate::assemble::Assembled;
use crate::connections::{Connections, Line};
use crate::mcp::transport::stdio;
use crate::serve::socket::Socket;
use axum::Router;
use engine::Engine;
use futures::future::{Either, join, join_all, select};
use http_body_util::BodyExt;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::TokioIo;
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

/// How many bytes of a request or of an answer one connection holds: also the size of a request's
/// head.
const BUFFER_BYTES_MAX: usize = 64 * 1024;
/// How long requests may continue after the server was asked to stop.
const DRAIN_MS: u64 = 3_000;
/// How long to wait when the system gives no more sockets.
const ACCEPT_PAUSE_MS: u64 = 50;
/// How often connections are looked at that have waited too long.
const TICK_MS: u64 = 1_000;
/// What the system says when it has no more descriptors: `ENFILE` and `EMFILE`.
const NO_DESCRIPTORS: [i32; 2] = [23, 24];

/// Serves until `shutdown` is done, then ends in good order.
pub async fn serve(
    assembled: Assembled,
    listener: TcpListener,
    shutdown: impl Future<Output = ()> + Send,
) {
    let stopper = assembled.stopper();
    let Assembled { router, engine, doors, spawn, ports, connections_max, .. } = assembled;
    let graceful = GracefulShutdown::new();
    let connections = Connections::new(connections_max);
    {
        let floor =
            Floor { engine: &engine, spawn: spawn.as_ref(), graceful: &graceful, connections };
        let own = ports.into_iter().map(|port| (port.listener, port.router));
        let entries = std::iter::once((listener, router)).chain(own);
        let accepting = entries.map(|(listener, router)| floor.accept_all(listener, router));
        let serving = join(join_all(accepting), floor.close_late_ones());
        // Listeners are closed with what accepts on them.
        drop(select(Box::pin(serving), pin!(shutdown)).await);
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
    connections: Arc<Connections>,
}

impl Floor<'_> {
    /// Takes connections in until it is dropped.
    async fn accept_all(&self, listener: TcpListener, router: Router) {
        let service = TowerToHyperService::new(router);
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    // Taken in first: only someone who is there closes another's connection.
                    let line = Arc::new(self.connections.enter().await);
                    self.begin(stream, line, service.clone());
                }
                Err(error) => self.not_accepted(&error).await,
            }
        }
    }

    /// Answers one connection until it ends or is closed.
    fn begin(&self, stream: TcpStream, line: Arc<Line>, service: TowerToHyperService<Router>) {
        // Answers are small and waited for. A socket that refuses this is gone already.
        let _ = stream.set_nodelay(true);
        let answering = line.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let work = answering.work();
            let answered = service.call(request);
            // The body holds it: a request is worked for until the last of its answer was taken.
            let held = move |error: axum::Error| {
                let _ = &work;
                error
            };
            async move { answered.await.map(|answer| answer.map(|body| body.map_err(held))) }
        });
        let connection = http1::Builder::new()
            // `Connections` has shorter times, and one timer for all.
            .header_read_timeout(None::<Duration>)
            .max_buf_size(BUFFER_BYTES_MAX)
            .serve_connection(TokioIo::new(Socket::new(stream, line.clone())), service);
        let connection = self.graceful.watch(connection);
        self.spawn.task(
            "connection",
            Box::pin(async move {
                // The connection goes first: a request that is there already is answered.
                match select(pin!(connection), pin!(line.hung_up())).await {
                    Either::Left((Ok(()), _)) => {}
                    Either::Left((Err(error), _)) => {
                        tracing::trace!(%error, "a connection broke");
                    }
                    Either::Right(_) => tracing::trace!("a connection was idle or unread"),
                }
            }),
        );
    }

    async fn not_accepted(&self, error: &io::Error) {
        if error.raw_os_error().is_some_and(|code| NO_DESCRIPTORS.contains(&code)) {
            self.connections.make_room();
        }
        if self.connections.may_tell() {
            tracing::warn!(%error, "a connection could not be accepted");
        }
        self.pause(ACCEPT_PAUSE_MS).await;
    }

    /// Closes connections whose clients take too long, until it is dropped.
    async fn close_late_ones(&self) {
        loop {
            self.pause(TICK_MS).await;
            self.connections.tick();
        }
    }

    async fn pause(&self, ms: u64) {
        let clock = self.engine.clock();
        clock.sleep_until(clock.now().plus_ms(ms)).await;
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
