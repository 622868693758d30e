//! The frame around every endpoint: strangers are refused before a handler runs, who calls goes
//! with the request from here on, and a failure gets the endpoint's shape and a trace id on its way
//! out.

use crate::problem::{Failure, Shape};
use crate::request::answer::newline::ended;
use crate::request::answer::underway::{Reader, RequestPermit};
use crate::request::auth::{Entrance, RequestHead, Visitor};
use crate::request::forwarded::Peer;
use crate::request::impersonation::impersonated;
use crate::request::origin;
use crate::request::realms::not_allowed;
use crate::request::server_state::{ServerState, Shared, no_caller};
use crate::request::trace;
use crate::request::via::via_of;
use axum::body::{Body, HttpBody};
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{ORIGIN, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use engine::RefusalCode;
use futures::future::{Either, ready, select};
use futures::{StreamExt, stream};
use http_body_util::{BodyStream, StreamBody};
use hyper::body::Frame;
use identity::VerifiedCaller;
use kernel::identity::reads_for::{ReadsFor, reading_for};
use kernel::values::caller::Caller;
use kernel::values::ids::RealmId;
use kernel::values::trace::TraceParent;
use project::realm::default_realm;
use std::net::{IpAddr, Ipv4Addr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use wire::a2a::GRPC_SERVICE;

/// Endpoints that report errors in a plain object.
const PLAIN_PREFIXES: [&str; 4] = ["/sessions", "/capabilities", "/admin/", "/api/agent/"];
/// Those whose errors begin with a stable word.
const NAMED_PREFIXES: [&str; 6] = [
    "/api/query/",
    "/api/agent/tools",
    "/api/agent/schema",
    "/api/agent/query-hints",
    "/api/agent/permission-hints",
    "/api/agent/execute",
];
/// Endpoints of conversations, with an object of their own.
const THREAD_PATHS: [&str; 3] = ["/run", "/resume", "/health-check"];
/// Endpoints that speak JSON-RPC.
const RPC_PATHS: [&str; 2] = ["/mcp", "/rpc"];
/// What is ours as a whole: no pipeline has a path below it.
const API: &str = "/api/";
/// Where the audit is read.
const AUDIT: &str = "/api/v1/audit";
/// Endpoints that tell how we are.
const PROBES: [&str; 3] = ["/livez", "/readyz", "/health"];
/// Where a request comes from that says nothing of it.
const NOWHERE: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
/// Where agents of others call.
const A2A: &str = "/a2a/v1";
/// Where those of AgentVault do.
const VAULT: [&str; 2] = ["/a2a", "/a2a/"];
/// Where a pipeline's cases come in beside its own route: all of it tells errors like the route.
const CASES: (&str, &str) = ("/api/v1/pipelines/", "/cases");

/// Checks who comes in, lets the handler answer, and shapes a failure.
pub async fn frame(State(server): State<Shared>, request: Request, next: Next) -> Response {
    checked(&server, None, request, |request, visitor| carrying(request, visitor, next)).await
}

/// The handler's answer to a request that carries who sends it. At an endpoint that is open that
/// may be no one.
fn carrying(
    mut request: Request,
    visitor: Option<Visitor>,
    next: Next,
) -> impl Future<Output = Response> {
    if let Some(visitor) = visitor {
        request.extensions_mut().insert(visitor);
    }
    next.run(request)
}

/// The same around a handler that stands alone, and must learn who calls.
pub async fn framed<F: Future<Output = Response>>(
    server: &Shared,
    request: Request,
    handler: impl FnOnce(Request, Visitor) -> F,
) -> Response {
    let known = |request, visitor: Option<Visitor>| match visitor {
        Some(visitor) => Either::Left(handler(request, visitor)),
        None => Either::Right(ready(no_caller().into_response())),
    };
    checked(server, None, request, known).await
}

/// What holds for every answer: it is counted, no browser guesses another type for it, and pages of
/// the settings may read it.
fn sent(server: &Shared, page: Option<HeaderValue>, mut response: Response) -> Response {
    server.answers.add(response.status());
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Some(origin) = page {
        origin::allow(&mut response, origin);
    }
    response
}

/// With the entrance of a pipeline's own port, every error is a plain object.
async fn checked<F: Future<Output = Response>>(
    server: &Shared,
    own: Option<&Entrance>,
    request: Request,
    handler: impl FnOnce(Request, Option<Visitor>) -> F,
) -> Response {
    let entrance = own.unwrap_or(&server.entrance);
    let page = entrance.page(request.headers());
    let trace = trace::of(request.headers());
    let arrival = RequestHead {
        method: request.method(),
        uri: request.uri(),
        headers: request.headers(),
        peer: request.extensions().get::<Peer>(),
    };
    if let Some(allowed) = entrance.preflight(&arrival) {
        // A page of our own names gets the header as well: it is another origin than the one it
        // calls.
        let page = request.headers().get(ORIGIN).cloned();
        return sent(server, page, allowed);
    }
    let path = request.uri().path();
    let rpc_path = RPC_PATHS.into_iter().find(|rpc| *rpc == path).unwrap_or_default();
    let shape = if own.is_some() { Shape::Plain } else { shape_of(path) };
    let admitted = entrance.admit(&arrival).await;
    // Whoever was let in has one.
    let from = entrance.address_of(arrival.peer, path, arrival.headers).unwrap_or(NOWHERE);
    let is_own = own.is_some();
    let entered = admitted.and_then(|who| entered(server, &request, who, is_own, trace));
    let (visitor, permit) = match entered.and_then(|visitor| begun(server, &request, visitor, from))
    {
        Ok(begun) => begun,
        Err(failure) => {
            // Looked for only here: a handler that answers a pipeline's route knows that it does.
            let is_plain = may_be_pipeline(server, entrance, &request);
            let shape = if is_plain { Shape::Plain } else { shape };
            let response = error_response(server, failure, shape, Asker { trace, who: None });
            return sent(
                server,
                page,
                if rpc_path.is_empty() { ended(response) } else { response },
            );
        }
    };
    let who = visitor.as_ref().map(|visitor| visitor.caller.clone());
    let is_read = permit.is_some() && matches!(*request.method(), Method::GET | Method::HEAD);
    let checked = visitor.as_ref().and_then(|visitor| {
        let realm = visitor.caller.realm.clone();
        visitor.verified.clone().map(|verified| (verified, realm))
    });
    let mut response = {
        // It is large, and stays where it is made.
        let answering = pin!(handler(request, visitor));
        let answering = pin!(reading_for(who.as_deref().map(ReadsFor::of), answering));
        match checked {
            None => answering.await,
            Some((verified, realm)) => {
                let answered = within(server, &verified, &realm, answering).await;
                answered.unwrap_or_else(|| match server.identity.has_realm(&realm) {
                    true => entrance.lapsed(rpc_path).into_response(),
                    false => not_allowed().into_response(),
                })
            }
        }
    };
    // Nobody learns what was decided before it is written down.
    let audits = server.engine.audits();
    if audits.is_strict() {
        Box::pin(audits.settled()).await;
    }
    let who = who.as_deref();
    let failed = response.extensions_mut().remove::<Failure>();
    let reader = Reader::new(who, from);
    let failed = failed.or_else(|| unsendable(server, reader, is_read, &response));
    let response = match failed {
        Some(failure) => error_response(server, failure, shape, Asker { trace, who }),
        None => response,
    };
    // Programs alone read what the others answer.
    let response = if rpc_path.is_empty() { ended(response) } else { response };
    let response = match permit {
        Some(permit) => server.underway.counted(permit, reader, response),
        None => response,
    };
    sent(server, page, response)
}

/// A request of someone who was let in, with its permit among those under way. Whether we live is
/// answered however much else is asked, and so is who exchanges a key for a token: strangers who
/// read no cards must keep nobody from that.
fn begun(
    server: &ServerState,
    request: &Request,
    visitor: Option<Visitor>,
    from: IpAddr,
) -> Result<(Option<Visitor>, Option<RequestPermit>), Failure> {
    let path = request.uri().path();
    let is_exchange = visitor.is_none() && *request.method() == Method::POST;
    if is_exchange || PROBES.contains(&path) {
        return Ok((visitor, None));
    }
    let who = visitor.as_ref().map(|visitor| &*visitor.caller);
    let permit =
        server.underway.begin(Reader::new(who, from)).map_err(|failure| match shape_of(path) {
            // No pipeline is there, whatever the router found.
            Shape::JsonRpc => failure.shaped(Shape::JsonRpc),
            _ => failure,
        })?;
    Ok((visitor, Some(permit)))
}

/// Why a whole answer is not sent to one who has too many answers waiting by now. Only a read can
/// be asked again: what else was done is told.
fn unsendable(
    server: &ServerState,
    reader: Reader<'_>,
    is_read: bool,
    response: &Response,
) -> Option<Failure> {
    let is_whole = response.body().size_hint().exact().is_some_and(|bytes| bytes > 0);
    if is_read && is_whole { server.underway.check_room(reader).err() } else { None }
}

/// Whether a pipeline may have the path of a request that is not let in. In which realm one has it
/// is nobody's business there: where callers need credentials, all paths are alike that no route of
/// ours has.
fn may_be_pipeline(server: &ServerState, entrance: &Entrance, request: &Request) -> bool {
    let path = request.uri().path();
    match entrance.base() {
        Some(_) => request.extensions().get::<MatchedPath>().is_none() && !path.starts_with(API),
        None => server.engine.catalog().has_pipeline_at(&default_realm(), path),
    }
}

/// Who sends a request that was let in: by this way, with room for what is decided about it in the
/// audit, and perhaps as another.
fn entered(
    server: &ServerState,
    request: &Request,
    visitor: Option<Visitor>,
    is_own: bool,
    trace: Option<TraceParent>,
) -> Result<Option<Visitor>, Failure> {
    // Replies are posted, by whatever protocol.
    let may_decide = *request.method() == Method::POST;
    let via = || via_of(request, is_own, trace);
    let visitor = visitor.map(|visitor| visitor.with_via(may_decide, via));
    if let Some(visitor) = &visitor {
        let is_audit = request.uri().path().starts_with(AUDIT);
        match server.engine.audits().check_room(&visitor.caller) {
            // Its administrators must be able to look at it.
            Err(refusal) if is_audit && refusal.code == RefusalCode::AuditBroken => {}
            checked => checked?,
        }
    }
    impersonated(server, request.headers(), visitor)
}

/// An answer that ends with the credential that asked for it, or with its realm: none where that
/// was before it began, and a stream where that comes in the middle.
async fn within(
    server: &Shared,
    verified: &Arc<VerifiedCaller>,
    realm: &RealmId,
    answering: Pin<&mut impl Future<Output = Response>>,
) -> Option<Response> {
    let lapse = server.lapse_of_answer(verified, realm);
    // The handler goes first: a caller that ends its own credential gets the answer.
    let mut response = match select(answering, pin!(lapse)).await {
        Either::Left((response, _)) => response,
        Either::Right(((), _)) => return None,
    };
    // What is there as a whole was answered in time.
    if response.body().size_hint().exact().is_some() {
        return Some(response);
    }
    let lapse = server.lapse(verified, realm);
    let last = response.extensions_mut().remove::<LastWords>();
    let last = last.map(|LastWords(trailers)| Ok(Frame::trailers(trailers)));
    Some(response.map(|body| {
        let frames = BodyStream::new(body).take_until(lapse).chain(stream::iter(last));
        // One that came to its end has trailers of its own.
        let frames = frames.scan(false, |is_over, frame| {
            let goes_out = !*is_over;
            *is_over = matches!(&frame, Ok(frame) if frame.is_trailers());
            ready(goes_out.then_some(frame))
        });
        Body::new(StreamBody::new(frames))
    }))
}

/// What an answer has with it whose protocol wants to hear that it was cut off: the trailers that
/// say so. Only an answer with trailers of its own has them.
#[derive(Debug, Clone)]
pub struct LastWords(pub HeaderMap);

/// What is around a port of a pipeline's own.
pub struct OwnFrame {
    /// The state of the server.
    pub server: Shared,
    /// Who may come in there: its names have its own port.
    pub entrance: Entrance,
}

/// The same around a port of a pipeline's own.
pub async fn own_frame(State(own): State<Arc<OwnFrame>>, request: Request, next: Next) -> Response {
    let OwnFrame { server, entrance } = &*own;
    let handler = |request, visitor| carrying(request, visitor, next);
    checked(server, Some(entrance), request, handler).await
}

fn shape_of(path: &str) -> Shape {
    if RPC_PATHS.contains(&path) {
        return Shape::JsonRpc;
    }
    if THREAD_PATHS.contains(&path) {
        return Shape::Thread;
    }
    if NAMED_PREFIXES.iter().any(|prefix| path.starts_with(prefix)) {
        return Shape::Named;
    }
    if VAULT.contains(&path) {
        return Shape::A2aRpc;
    }
    if path.starts_with(GRPC_SERVICE) {
        return Shape::Grpc;
    }
    if let Some(rest) = path.strip_prefix(A2A) {
        return a2a_shape(rest);
    }
    let (cases, last) = CASES;
    let is_cases = path.starts_with(cases) && path.ends_with(last);
    let is_plain = is_cases || PLAIN_PREFIXES.iter().any(|prefix| path.starts_with(prefix));
    if is_plain { Shape::Plain } else { Shape::Problem }
}

/// At the address itself, and below the name of a realm, JSON-RPC is spoken; what is deeper, or an
/// operation by its name, is HTTP.
fn a2a_shape(rest: &str) -> Shape {
    let parts: Vec<&str> = rest.split('/').filter(|part| !part.is_empty()).collect();
    let is_operation =
        |part: &&str| part.contains(':') || matches!(*part, "tasks" | "extendedAgentCard");
    match parts.as_slice() {
        [] => Shape::A2aRpc,
        [one] if !is_operation(one) => Shape::A2aRpc,
        _ => Shape::A2aHttp,
    }
}

/// Who asked for what failed, as far as that is known.
#[derive(Clone, Copy)]
pub struct Asker<'a> {
    /// The span that its request is a part of.
    pub trace: Option<TraceParent>,
    /// None where no one was let in.
    pub who: Option<&'a Caller>,
}

fn error_response(
    server: &ServerState,
    failure: Failure,
    shape: Shape,
    asker: Asker<'_>,
) -> Response {
    let trace_id = traced(server, &failure, asker);
    let shape = failure.shape().unwrap_or(shape);
    failure.render(shape, trace_id)
}

/// Gives a failure its trace id and notes it in the log: that of its caller's trace, so that one
/// search finds both, else a new one.
pub fn traced(server: &ServerState, failure: &Failure, asker: Asker<'_>) -> String {
    let Asker { trace, who } = asker;
    let trace = trace.map_or_else(|| server.engine.entropy().bits(), |caller| caller.trace);
    let trace_id = format!("{trace:032x}");
    let realm = who.map(|who| who.realm.as_str());
    let subject = who.map(|who| &*who.subject);
    let code = failure.code();
    let status = failure.status();
    if status.is_server_error() {
        let status = status.as_u16();
        let message = failure.message();
        tracing::error!(trace_id, realm, subject, code, status, "{message}");
    } else {
        tracing::debug!(trace_id, realm, subject, code, status = status.as_u16());
    }
    trace_id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_of_endpoints_tells_errors_in_its_own_way() {
        for (path, shape) in [
            ("/api/query/find", Shape::Named),
            ("/api/agent/tools", Shape::Named),
            ("/api/agent/schema/Order", Shape::Named),
            ("/api/agent/execute/", Shape::Named),
            ("/api/agent/config/list", Shape::Plain),
            ("/api/v1/records", Shape::Problem),
            ("/run", Shape::Thread),
        ] {
            assert_eq!(shape_of(path), shape, "{path}");
        }
    }
}
