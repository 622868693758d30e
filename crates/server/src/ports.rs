//! Ports of pipelines' own: `http.port` opens one more listener on this machine, where the
//! pipeline's route and `/health` are and nothing else, in a frame like that of all other
//! listeners: where they ask for credentials, so does it, and `/health` is open there too.

use crate::routes::wrong_method;
use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use axum::routing::get;
use edge::problem::Result;
use edge::request::auth::Visitor;
use edge::request::frame::{OwnFrame, own_frame};
use edge::request::params::short;
use edge::request::server_state::Shared;
use engine::refusal::Refusal;
use kernel::values::ids::PipelineName;
use project::realm::default_realm;
use rest::operations::health;
use rest::pipelines;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tokio::net::TcpListener;

/// A port that is open, and what is behind it.
pub(crate) struct OpenPort {
    pub(crate) listener: TcpListener,
    pub(crate) router: Router,
}

/// Where a pipeline can be reached beside the server's own port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnPort {
    pub pipeline: PipelineName,
    /// The address that it listens on.
    pub address: SocketAddr,
    /// The path of its route.
    pub route: String,
}

/// A port that cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("pipeline `{pipeline}` cannot listen on {address}: {why}")]
pub struct PortError {
    pub pipeline: PipelineName,
    pub address: SocketAddr,
    pub why: io::Error,
}

/// The routes of one pipeline.
#[derive(Clone)]
struct PipelinePort {
    server: Shared,
    pipeline: PipelineName,
}

/// Opens the ports that pipelines want for themselves, on the address that the server listens on.
/// One that wants the server's own port is served there already.
pub(crate) async fn open(
    server: &Shared,
    main: SocketAddr,
) -> Result<Vec<(OwnPort, OpenPort)>, PortError> {
    let mut opened = Vec::new();
    for pipeline in server.engine.catalog().all_pipelines(&default_realm()) {
        let Some(port) = pipeline.port.filter(|port| *port == 0 || *port != main.port()) else {
            continue;
        };
        let name = pipeline.name.clone();
        let (listener, address) = listen(main.ip(), port)
            .await
            .map_err(|(address, why)| PortError { pipeline: name.clone(), address, why })?;
        let router = router(server, address, name.clone());
        let shown = OwnPort { pipeline: name, address, route: pipeline.route.clone() };
        opened.push((shown, OpenPort { listener, router }));
    }
    Ok(opened)
}

/// A listener, and where it really is: port 0 is a free one.
async fn listen(
    ip: IpAddr,
    port: u16,
) -> Result<(TcpListener, SocketAddr), (SocketAddr, io::Error)> {
    let wanted = SocketAddr::new(ip, port);
    let listener = TcpListener::bind(wanted).await.map_err(|why| (wanted, why))?;
    let address = listener.local_addr().map_err(|why| (wanted, why))?;
    Ok((listener, address))
}

fn router(server: &Shared, address: SocketAddr, pipeline: PipelineName) -> Router {
    let entrance = server.entrance.beside(address);
    let frame = Arc::new(OwnFrame { server: server.clone(), entrance });
    Router::new()
        .route("/health", get(health::health))
        .fallback(serve)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(frame, own_frame))
        .with_state(PipelinePort { server: server.clone(), pipeline })
}

/// The pipeline's route as it is now: it may have changed since the port was opened.
async fn serve(
    State(own): State<PipelinePort>,
    visitor: Visitor,
    request: Request,
) -> Result<Response> {
    let caller = &visitor.caller;
    let pipeline = own.server.engine.catalog().pipeline(caller, &own.pipeline);
    match pipeline.filter(|pipeline| pipeline.route == request.uri().path()) {
        Some(pipeline) => pipelines::serve(&own.server, caller, &pipeline, request).await,
        None => {
            let hint = "this port serves one pipeline and `/health`";
            Err(Refusal::not_found("route", short(request.uri().path())).hint(hint).into())
        }
    }
}
