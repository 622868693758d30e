//! `POST /rpc`: tools as methods of JSON-RPC 2.0. `method` is a tool's name, `params` are its
//! arguments, and the result has MCP's shape; `tools/list` and `tools/call` speak of tools as MCP
//! does, without its handshake. What is wrong with a request is an error; a tool that fails has a
//! result that says so.

use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use edge::acts::out_of_scope;
use edge::direct_call::{CallResult, call_result, find, names, refusal_text};
use edge::request::body::{RawBody, is_deeper};
use edge::request::cursors::{Purpose, refused_rpc};
use edge::request::key::{Key, replayed};
use edge::request::params::short;
use edge::request::server_state::{ServerState, Who, missing_scope};
use edge::request::trace::Trace;
use edge::views::content::failure;
use engine::refusal::{Refusal, RefusalCode, RefusalKind};
use engine::{CallRequest, IdempotencyKey, UnseenCall};
use futures::future::join_all;
use kernel::definition::plan::mistake::meant;
use kernel::event::Occasion;
use kernel::tool::call::{Caller, ToolSpec};
use kernel::tool::schema::Misfit;
use kernel::values::caller::Act;
use kernel::values::names::{Alphabet, outward};
use kernel::values::trace::TraceParent;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::error::Category;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use wire::jsonrpc::{
    Frame, INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, Id, METHOD_NOT_FOUND, PARSE_ERROR,
    RpcError, error, result,
};

/// The server cannot do it now, or not any more.
const SERVER_ERROR: i64 = -32000;

/// How many requests one batch may hold.
const BATCH_MAX: usize = 64;

/// The parameters of `tools/call`.
#[derive(Deserialize)]
struct ToolCall {
    name: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

/// The parameters of `tools/list`.
#[derive(Default, Deserialize)]
struct ToolList {
    cursor: Option<String>,
}

/// How a tool was named: this decides how a wrong name and wrong arguments are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    Method,
    /// By `tools/call`, whose caller is a model that can mend its arguments.
    Tools,
}

/// What goes back for one request; a notification gets nothing.
struct Reply {
    text: Option<String>,
    replayed: bool,
}

impl Reply {
    fn error(id: Option<&Id>, why: &RpcError) -> Self {
        Self { text: Some(error(id, why)), replayed: false }
    }
}

/// What goes with a request beside its text.
struct RequestContext {
    /// Who sends it.
    caller: Arc<Caller>,
    /// The key under which it is done once.
    key: Key,
    /// The span of its sender.
    trace: Option<TraceParent>,
}

/// `POST /rpc`.
pub(crate) async fn serve(
    Who { server, caller }: Who,
    key: Key,
    Trace(trace): Trace,
    RawBody(sent): RawBody,
) -> Response {
    let body = sent.trim_ascii();
    let depth_max = server.limits().body_depth_max;
    if is_deeper(body, depth_max) {
        let why = invalid(format!("the request nests deeper than {depth_max} levels"));
        return shown_as_json(error(None, &why));
    }
    if body.first() == Some(&b'[') {
        return batch(&server, &RequestContext { caller, key, trace }, body).await;
    }
    let reply = one(&server, RequestContext { caller, key, trace }, body).await;
    match reply.text {
        Some(text) => replayed(shown_as_json(text), reply.replayed),
        None => StatusCode::NO_CONTENT.into_response(),
    }
}

/// Several requests, done side by side and answered in their order.
async fn batch(server: &ServerState, aside: &RequestContext, body: &[u8]) -> Response {
    let refused = |why: RpcError| shown_as_json(error(None, &why));
    let requests: Vec<&RawValue> = match serde_json::from_slice(body) {
        Ok(requests) => requests,
        Err(why) => return refused(unreadable(&why)),
    };
    let count = requests.len();
    if count == 0 || count > BATCH_MAX {
        let message = format!("a batch has 1 to {BATCH_MAX} requests, not {count}");
        return refused(invalid(message));
    }
    let doing: Vec<_> = requests
        .iter()
        .enumerate()
        .map(|(index, request)| {
            let caller = aside.caller.clone();
            let key = aside.key.nth(index);
            let aside = RequestContext { caller, key, trace: aside.trace };
            one(server, aside, request.get().as_bytes())
        })
        .collect();
    let replies = join_all(doing).await;
    let texts: Vec<String> = replies.into_iter().filter_map(|reply| reply.text).collect();
    if texts.is_empty() {
        return StatusCode::NO_CONTENT.into_response();
    }
    shown_as_json(format!("[{}]", texts.join(",")))
}

/// Does one request.
async fn one(server: &ServerState, aside: RequestContext, text: &[u8]) -> Reply {
    let sent = match read_frame(text) {
        Ok(sent) => sent,
        Err(why) => return Reply::error(None, &why),
    };
    let id = match sent.id.map(Id::read) {
        Some(None) => {
            return Reply::error(None, &invalid("`id` is a text or a whole number"));
        }
        Some(id) => id,
        None => None,
    };
    let method = match (sent.jsonrpc.as_deref(), sent.method.as_deref()) {
        (Some("2.0"), Some(method)) if !method.is_empty() => method,
        (Some("2.0"), _) => return Reply::error(id.as_ref(), &invalid("`method` is missing")),
        _ => return Reply::error(id.as_ref(), &invalid("`jsonrpc` must be \"2.0\"")),
    };
    let done = dispatch(server, aside, method, sent.params).await;
    // The sender of a notification does not want to hear of it, not even of what is wrong with it.
    let Some(id) = id else { return Reply { text: None, replayed: false } };
    match done {
        Ok(done) => Reply { text: Some(result(&id, &done.result)), replayed: done.replayed },
        Err(why) => Reply::error(Some(&id), &why),
    }
}

/// A request is an object: a list would otherwise be taken for its values.
fn read_frame(text: &[u8]) -> Result<Frame<'_>, RpcError> {
    if text.first() == Some(&b'{') {
        return serde_json::from_slice(text).map_err(|why| unreadable(&why));
    }
    match serde_json::from_slice::<IgnoredAny>(text) {
        Ok(_) => Err(invalid("a request is an object")),
        Err(why) => Err(unreadable(&why)),
    }
}

async fn dispatch(
    server: &ServerState,
    RequestContext { caller, key, trace }: RequestContext,
    method: &str,
    params: Option<&RawValue>,
) -> Result<CallResult, RpcError> {
    let (name, arguments, dialect) = match method {
        "tools/list" => return list(server, &caller, &read(params)?),
        "tools/call" => {
            let ToolCall { name, arguments } = read(params)?;
            (name, Value::Object(arguments), Dialect::Tools)
        }
        method => {
            let arguments: Map<String, Value> = read(params)?;
            (method.to_owned(), Value::Object(arguments), Dialect::Method)
        }
    };
    if let Some(scope) = missing_scope(server, &caller, Act::Call) {
        return Err(out_of_scope(scope));
    }
    let occasion = Occasion::at("rpc", "/rpc");
    let Some(found) = find(server, &caller, &name) else {
        let unseen = UnseenCall { names: names(&name).collect(), arguments, trace, occasion };
        server.engine.audits().note_unseen(&caller, &unseen);
        return Err(unknown(server, &caller, &name, dialect));
    };
    let spec = found.spec().clone();
    let request = CallRequest {
        once: once(key, method, params),
        trace,
        occasion,
        ..CallRequest::new(found, arguments, server.limits().run_wait_ms)
    };
    match server.engine.tools().call_with(&caller, request).await {
        Ok(report) => Ok(call_result(server, &caller, &spec, report)),
        Err(refusal) => refused(&refusal, dialect),
    }
}

/// The parameters: an object by name; absent ones are an empty one.
fn read<T: DeserializeOwned>(params: Option<&RawValue>) -> Result<T, RpcError> {
    let text = params.map_or("{}", RawValue::get);
    if !text.starts_with('{') {
        return Err(RpcError::invalid_params("`params` must be an object: arguments have names"));
    }
    serde_json::from_str(text)
        .map_err(|why| RpcError::invalid_params(format!("`params` do not fit: {why}")))
}

/// A request is the same whatever its id: a client that sends it again may give it another id.
fn once(key: Key, method: &str, params: Option<&RawValue>) -> Option<IdempotencyKey> {
    if !key.is_given() {
        return None;
    }
    let params = params.map_or("{}", RawValue::get);
    key.once(format!("[{},{params}]", Value::from(method)).as_bytes())
}

fn unknown(server: &ServerState, caller: &Caller, name: &str, dialect: Dialect) -> RpcError {
    let tools = server.engine.tools().callables(caller);
    let hint = meant(name, tools.iter().map(|spec| spec.name.as_str()))
        .unwrap_or_else(|| "`tools/list` lists the tools".to_owned());
    let (code, noun) = match dialect {
        Dialect::Method => (METHOD_NOT_FOUND, "method"),
        Dialect::Tools => (INVALID_PARAMS, "tool"),
    };
    RpcError::new(code, format!("there is no {noun} `{}`", short(name))).data(json!({"hint": hint}))
}

/// `tools/list`: a page of what the caller can call, by name.
fn list(server: &ServerState, caller: &Caller, params: &ToolList) -> Result<CallResult, RpcError> {
    let mut specs = server.engine.tools().callables(caller);
    let of = Purpose::of(caller, "/rpc tools/list");
    if let Some(cursor) = &params.cursor {
        let last = server.cursors.open(&of, cursor).map_err(refused_rpc)?;
        specs.retain(|spec| spec.name.as_str() > last.as_str());
    }
    let max = server.limits().page_items_max.max(1);
    let more = specs.len() > max;
    specs.truncate(max);
    let tools: Vec<Value> = specs.iter().map(|spec| tool(spec)).collect();
    let mut result = format!("{{\"tools\":{}", Value::Array(tools));
    if let Some(last) = specs.last().filter(|_| more) {
        let next = server.cursors.seal(&of, last.name.as_str());
        result.push_str(&format!(",\"nextCursor\":\"{next}\""));
    }
    result.push('}');
    Ok(CallResult::new(result))
}

fn tool(spec: &ToolSpec) -> Value {
    let mut shown = json!({
        "name": outward(spec.name.as_str(), Alphabet::Mcp),
        "title": spec.title,
        "description": spec.description,
        "inputSchema": *spec.input_schema,
    });
    if let Some(schema) = &spec.output_schema {
        shown["outputSchema"] = (**schema).clone();
    }
    shown
}

/// What the engine refuses: a failure that the caller's model can read, or an error.
fn refused(refusal: &Refusal, dialect: Dialect) -> Result<CallResult, RpcError> {
    let misfit = matches!(refusal.code, RefusalCode::InputMisfit(_));
    let code = match refusal.kind() {
        RefusalKind::Upstream | RefusalKind::Forbidden | RefusalKind::TooMany => {
            return Ok(CallResult::new(failure(&refusal_text(refusal))));
        }
        RefusalKind::WrongShape if misfit && dialect == Dialect::Tools => {
            return Ok(CallResult::new(failure(&refusal_text(refusal))));
        }
        RefusalKind::BadRequest | RefusalKind::WrongShape | RefusalKind::TooLarge => INVALID_PARAMS,
        RefusalKind::NotFound if dialect == Dialect::Tools => INVALID_PARAMS,
        RefusalKind::NotFound => METHOD_NOT_FOUND,
        RefusalKind::Failed => INTERNAL_ERROR,
        RefusalKind::Conflict
        | RefusalKind::Gone
        | RefusalKind::NoRoom
        | RefusalKind::Unavailable => SERVER_ERROR,
    };
    let mut data = json!({"code": refusal.code.name()});
    if let Some(hint) = &refusal.hint {
        data["hint"] = json!(hint);
    }
    if !refusal.errors.is_empty() {
        data["errors"] = refusal.errors.iter().map(faulty).collect();
    }
    Err(RpcError::new(code, refusal.message.as_str()).data(data))
}

fn faulty(misfit: &Misfit) -> Value {
    json!({"pointer": misfit.pointer, "detail": misfit.message})
}

fn invalid(message: impl Into<String>) -> RpcError {
    RpcError::new(INVALID_REQUEST, message)
}

fn unreadable(why: &serde_json::Error) -> RpcError {
    match why.classify() {
        Category::Data => invalid(format!("this is no request: {why}")),
        Category::Syntax | Category::Eof | Category::Io => {
            RpcError::new(PARSE_ERROR, format!("this is no JSON: {why}"))
        }
    }
}

fn shown_as_json(text: String) -> Response {
    ([(CONTENT_TYPE, "application/json")], text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(text: &str) -> Result<Option<String>, i64> {
        let id = |sent: Frame<'_>| sent.id.map(|id| id.get().to_owned());
        read_frame(text.as_bytes()).map(id).map_err(|why| why.code)
    }

    #[test]
    fn no_id_and_a_null_one_are_not_the_same() {
        assert_eq!(sent("{\"method\": \"a\"}"), Ok(None));
        assert_eq!(sent("{\"id\": null}"), Ok(Some("null".to_owned())));
        assert_eq!(sent("{\"id\": \"x\", \"more\": 1}"), Ok(Some("\"x\"".to_owned())));
    }

    #[test]
    fn malformed_json_and_malformed_requests_are_told_apart() {
        for (text, code) in [
            ("", PARSE_ERROR),
            ("{\"id\": 1", PARSE_ERROR),
            ("nope", PARSE_ERROR),
            ("7", INVALID_REQUEST),
            ("\"text\"", INVALID_REQUEST),
            ("[\"2.0\", 1, \"math::add\", {}]", INVALID_REQUEST),
            ("{\"method\": 1}", INVALID_REQUEST),
            ("{\"id\": 1, \"id\": 2}", INVALID_REQUEST),
        ] {
            assert_eq!(sent(text), Err(code), "{text}");
        }
    }

    #[test]
    fn arguments_have_names() {
        let read = |text: &str| {
            let raw: &RawValue = serde_json::from_str(text).unwrap();
            read::<Map<String, Value>>(Some(raw)).map_err(|why| why.code)
        };
        assert_eq!(read("{\"a\": 1}").unwrap()["a"], 1);
        assert_eq!(read("[1, 2]"), Err(INVALID_PARAMS));
        assert_eq!(read("\"x\""), Err(INVALID_PARAMS));
        assert_eq!(super::read::<Map<String, Value>>(None), Ok(Map::new()));
    }

    #[test]
    fn misfits_are_not_repeated_in_the_message() {
        let errors = vec![Misfit { pointer: "/a".to_owned(), message: "is no number".to_owned() }];
        let refusal = |message: &str| {
            Refusal::new(RefusalCode::InputMisfit(None), message).errors(errors.clone())
        };
        assert_eq!(
            refusal_text(&refusal("it does not fit")),
            "it does not fit: at `/a`: is no number"
        );
        assert_eq!(
            refusal_text(&refusal("`/a` is no number").hint("mend it")),
            "`/a` is no number; mend it"
        );
    }
}
