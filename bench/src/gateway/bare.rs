//! Baseline of a proxy: takes a request, sends its bytes on over a pooled connection and returns
//! the bytes of the answer. It reads no JSON, checks nothing, and uses the same HTTP library on
//! both sides.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use ::axum::Router;
use ::axum::body::{Body, Bytes};
use ::axum::extract::State;
use ::axum::http::header::{CONTENT_TYPE, HOST};
use ::axum::http::{HeaderMap, Request, StatusCode, Uri};
use ::axum::response::{IntoResponse, Response};
use ::axum::routing::post;
use ::axum::serve::ListenerExt;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::net::TcpListener;

use crate::Result;
use crate::child;
use crate::mcp::wire::PATH;

/// The child's side: serves until the parent is gone. `upstream` is the address behind it.
pub fn serve(upstream: Option<String>) -> Result<()> {
    let upstream: SocketAddr = upstream.ok_or("the upstream's address is missing")?.parse()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(accept(upstream))
}

struct Behind {
    client: Client<HttpConnector, Full<Bytes>>,
    uri: Uri,
}

async fn accept(upstream: SocketAddr) -> Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    child::announce(listener.local_addr()?)?;
    let listener = listener.tap_io(|stream| {
        // Without it the connection is slower, not wrong.
        let _ = stream.set_nodelay(true);
    });
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client = Client::builder(TokioExecutor::new()).build(connector);
    let uri = format!("http://{upstream}{PATH}").parse()?;
    let behind = Arc::new(Behind { client, uri });
    let router = Router::new().route(PATH, post(forward)).with_state(behind);
    ::axum::serve(listener, router).await?;
    Ok(())
}

async fn forward(State(behind): State<Arc<Behind>>, headers: HeaderMap, body: Bytes) -> Response {
    match answered(&behind, headers, body).await {
        Ok(response) => response,
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}

async fn answered(behind: &Behind, mut headers: HeaderMap, body: Bytes) -> Result<Response> {
    headers.remove(HOST);
    let mut request = Request::post(behind.uri.clone()).body(Full::new(body))?;
    *request.headers_mut() = headers;
    let (head, body) = behind.client.request(request).await?.into_parts();
    let mut response = Response::new(Body::from(body.collect().await?.to_bytes()));
    *response.status_mut() = head.status;
    if let Some(kind) = head.headers.get(CONTENT_TYPE) {
        response.headers_mut().insert(CONTENT_TYPE, kind.clone());
    }
    Ok(response)
}
