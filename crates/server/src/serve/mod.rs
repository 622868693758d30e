//! Serves a built server until it has to stop: then no one new comes in, who is inside may
//! finish within a limit, and the engine and the upstreams end last. On a socket it serves
//! everybody, plain or by TLS; on a pipe the one client that started it.

mod http2;
pub(crate) mod socket;
pub(crate) mod tls;
mod standby;

pub use standby::refuse_all;

use crate::assemble::Assembled;
use crate::serve::http2::{Answer, Streams};
use crate::serve::socket::Socket;
use crate::serve::tls::Tls;
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use edge::connections::{ConnectionGuard, Connections, Peer};
use edge::request::server_state::{Closing, ServerState};
use engine::Engine;
use futures::future::{BoxFuture, Either, join_all, join3, select};
use hyper::Request;
use hyper::body::Incoming;
use hyper::service::{Service, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::{TowerToHyperService, TowerToHyperServiceFuture};
use kernel::contracts::Spawn;
use mcp::McpState;
use mcp::{http, stdio};
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};

/// How many bytes of a request or of an answer one connection holds: also the size of a request's
/// head.
const BUFFER_BYTES_MAX: usize = 64 * 1024;
/// How long requests may continue after the server was asked to stop.
const DRAIN_MS: u64 = 3_000;
/// How long to wait when the system gives no more sockets.
const ACCEPT_PAUSE_MS: u64 = 50;
/// How often the server checks for connections that have waited too long.
const TICK_MS: u64 = 1_000;
/// How often the files of a certificate are checked.
const CERTIFICATE_LOOK_MS: u64 = 2_000;
/// Where most requests go.
const MCP_PATH: &str = "/mcp";
/// What the system says when it has no more descriptors: `ENFILE` and `EMFILE`.
const NO_DESCRIPTORS: [i32; 2] = [23, 24];

/// Serves until `shutdown` is done, then ends in good order. With `tls` all of its listeners speak
/// that, and nothing else.
pub async fn serve(
    assembled: Assembled,
    listener: TcpListener,
    tls: Option<Tls>,
    shutdown: impl Future<Output = ()> + Send,
) {
    let stopper = assembled.stopper();
    let Assembled { router, engine, server, mcp, spawn, .. } = assembled;
    let Assembled { ports, connections_max, is_behind, .. } = assembled;
    let graceful = GracefulShutdown::new();
    let connections = Connections::new(connections_max);
    {
        let floor = ListenerContext {
            engine: &engine,
            server: &server,
            spawn: spawn.as_ref(),
            graceful: &graceful,
            connections,
            builder: Arc::new(http2::builder(spawn.clone())),
            tls: tls.map(Arc::new),
        };
        let own =
            ports.into_iter().map(|port| (port.listener, ListenerService::new(port.router, None)));
        let all = ListenerService::new(router, (!is_behind).then_some(mcp));
        let entries = std::iter::once((listener, all)).chain(own);
        let accepting = entries.map(|(listener, service)| floor.accept_all(listener, service));
        let serving =
            join3(join_all(accepting), floor.close_late_ones(), floor.renew_certificate());
        // Listeners are closed with what accepts on them.
        drop(select(Box::pin(serving), pin!(shutdown)).await);
    }
    server.close();
    let drained = engine::timeout(engine.clock().as_ref(), DRAIN_MS, graceful.shutdown()).await;
    if drained.is_none() {
        tracing::warn!(limit_ms = DRAIN_MS, "requests that were still open are cut off");
    }
    stopper.stop().await;
}

/// What connections of all listeners share.
struct ListenerContext<'a> {
    engine: &'a Engine,
    server: &'a ServerState,
    spawn: &'a dyn Spawn,
    graceful: &'a GracefulShutdown,
    connections: Arc<Connections>,
    builder: Arc<auto::Builder<Streams>>,
    tls: Option<Arc<Tls>>,
}

impl ListenerContext<'_> {
    /// Takes connections in until it is dropped.
    async fn accept_all(&self, listener: TcpListener, service: ListenerService) {
        loop {
            match listener.accept().await {
                Ok((stream, address)) => {
                    // Taken in first: only someone who is there closes another's connection.
                    let line = Arc::new(self.connections.enter().await);
                    let peer = Peer::new(address);
                    let service = service.clone();
                    let watcher = self.graceful.watcher();
                    let builder = self.builder.clone();
                    self.begin(
                        stream,
                        AcceptedConnection { peer, line, service, watcher, builder },
                    );
                }
                Err(error) => self.not_accepted(&error).await,
            }
        }
    }

    /// Lets a connection be answered in a task of its own.
    fn begin(&self, stream: TcpStream, accepted: AcceptedConnection) {
        // Answers are small and waited for. A socket that refuses this is gone already.
        let _ = stream.set_nodelay(true);
        let task: BoxFuture<'static, ()> = match &self.tls {
            None => Box::pin(accepted.answer(stream)),
            Some(tls) => {
                Box::pin(accepted.answer_by_tls(stream, tls.clone(), self.server.closing()))
            }
        };
        self.spawn.task("connection", task);
    }

    async fn not_accepted(&self, error: &io::Error) {
        if error.raw_os_error().is_some_and(|code| NO_DESCRIPTORS.contains(&code)) {
            self.connections.make_room();
        }
        if self.connections.may_log() {
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

    /// Takes a new certificate once it is in its file, until it is dropped.
    async fn renew_certificate(&self) {
        let Some(tls) = &self.tls else { return };
        loop {
            self.pause(CERTIFICATE_LOOK_MS).await;
            tls.renew().await;
        }
    }

    async fn pause(&self, ms: u64) {
        let clock = self.engine.clock();
        clock.sleep_until(clock.now().plus_ms(ms)).await;
    }
}

/// What answers the requests of a listener.
#[derive(Clone)]
struct ListenerService {
    router: TowerToHyperService<Router>,
    /// The endpoint that most requests go to, where nothing stands before it: these need no router,
    /// which makes a dozen things for each request.
    mcp: Option<Arc<McpState>>,
}

/// An answer that is being made.
type ServiceFuture = Either<
    BoxFuture<'static, Result<Response, Infallible>>,
    TowerToHyperServiceFuture<Router, Request<Incoming>>,
>;

impl ListenerService {
    fn new(router: Router, mcp: Option<Arc<McpState>>) -> Self {
        Self { router: TowerToHyperService::new(router), mcp }
    }

    fn answer(&self, request: Request<Incoming>) -> ServiceFuture {
        match &self.mcp {
            Some(mcp) if request.uri().path() == MCP_PATH => {
                let mcp = mcp.clone();
                let request = request.map(Body::new);
                let answering = async move { Ok(http::serve(State(mcp), request).await) };
                Either::Left(Box::pin(answering))
            }
            Some(_) | None => Either::Right(self.router.call(request)),
        }
    }
}

/// A connection that was accepted.
struct AcceptedConnection {
    peer: Peer,
    line: Arc<ConnectionGuard>,
    /// What answers its requests.
    service: ListenerService,
    /// Tells when the server stops.
    watcher: Watcher,
    /// What speaks with its client.
    builder: Arc<auto::Builder<Streams>>,
}

impl AcceptedConnection {
    /// Answers until the connection ends or is closed.
    async fn answer<S>(self, stream: S)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let Self { peer, line, service, watcher, builder } = self;
        let answering = line.clone();
        let service = service_fn(move |mut request: Request<Incoming>| {
            let is_stream = http2::is_stream(&request);
            http2::unify(&mut request);
            request.extensions_mut().insert(peer);
            let work = if is_stream { answering.stream() } else { answering.work() };
            let answered = service.answer(request);
            async move {
                let held = |body| Answer::new(body, work, is_stream);
                answered.await.map(|answer| answer.map(held))
            }
        });
        let socket = TokioIo::new(Socket::new(stream, line.clone()));
        // hyper wakes it once more than needed for a request with a body. Why we do not work around
        // that is in docs/internals/hyper-wakes-after-last-body-chunk.md.
        let connection = watcher.watch(builder.serve_connection(socket, service));
        // The connection goes first: a request that is there already is answered.
        match select(pin!(connection), pin!(line.hung_up())).await {
            Either::Left((Ok(()), _)) => {}
            Either::Left((Err(error), _)) => {
                tracing::trace!(peer = %peer.address, %error, "a connection broke");
            }
            Either::Right(_) => {
                tracing::trace!(peer = %peer.address, "a connection was idle or unread");
            }
        }
    }

    /// The same by TLS. The line hears nothing of the handshake, so that all of it has only the
    /// time of a first byte.
    async fn answer_by_tls(self, stream: TcpStream, tls: Arc<Tls>, mut closing: Closing) {
        let peer = self.peer.address;
        let handshake = {
            let hung_up = pin!(self.line.hung_up());
            let closing = pin!(closing.begun());
            match select(tls.accept(stream), select(hung_up, closing)).await {
                Either::Left((handshake, _)) => handshake,
                Either::Right(_) => {
                    tracing::trace!(%peer, "a TLS handshake was given up");
                    return;
                }
            }
        };
        match handshake {
            Ok(stream) => self.answer(stream).await,
            Err(error) => tracing::trace!(%peer, %error, "a TLS handshake failed"),
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
    match assembled.client {
        Some(client) => stdio::serve(assembled.mcp, client, input, output).await,
        None => tracing::error!("the client on the pipe has no credential, and is not served"),
    }
    stopper.stop().await;
}

#[cfg(test)]
mod tests;
