//! Reading messages: what one is, and what its sender says of itself. Only the frame and a few
//! members are read; everything else stays text until someone needs it.

use crate::client::{Client, ClientCapabilities, Version};
use edge::request::body::is_deeper;
use kernel::tool::call::LogLevel;
use kernel::values::trace::TraceParent;
use serde::de::value::MapAccessDeserializer;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::error::Category;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt;
use wire::jsonrpc::{Frame, INVALID_REQUEST, Id, PARSE_ERROR, RpcError, even_null};
use wire::mcp::{META_CAPABILITIES, META_VERSION};

/// One message of a client.
#[derive(Debug)]
pub(crate) enum Message<'a> {
    /// It wants an answer.
    Request(RequestMessage<'a>),
    /// It does not.
    Notification(MethodCall<'a>),
    /// It answers a request of ours.
    Response {
        /// The id of our request.
        id: &'a RawValue,
        /// The result or the error.
        answer: Result<&'a RawValue, &'a RawValue>,
    },
}

/// A request.
#[derive(Debug)]
pub(crate) struct RequestMessage<'a> {
    pub(crate) id: Id,
    /// What is to be done, with what.
    pub(crate) call: MethodCall<'a>,
}

/// A method and its parameters.
#[derive(Debug)]
pub(crate) struct MethodCall<'a> {
    pub(crate) method: Cow<'a, str>,
    /// Its parameters, as they came.
    pub(crate) params: Option<&'a RawValue>,
}

/// What cannot be read as a message.
#[derive(Debug)]
pub(crate) struct UnreadableMessage {
    /// Its id, if that could be read.
    pub(crate) id: Option<Id>,
    pub(crate) error: Box<RpcError>,
}

pub(crate) fn read(bytes: &[u8], depth_max: usize) -> Result<Message<'_>, UnreadableMessage> {
    let invalid = |id: Option<Id>, why: &str| {
        let error = Box::new(RpcError::new(INVALID_REQUEST, why));
        UnreadableMessage { id, error }
    };
    if is_deeper(bytes, depth_max) {
        return Err(invalid(None, &format!("the message nests deeper than {depth_max} levels")));
    }
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        // A list would otherwise be taken for an object's values.
        return Err(match serde_json::from_slice::<IgnoredAny>(bytes) {
            Ok(_) => invalid(None, "a message must be a JSON object"),
            Err(error) => malformed(&error),
        });
    }
    let frame: Frame<'_> = match serde_json::from_slice(bytes) {
        Ok(frame) => frame,
        Err(error) if error.classify() == Category::Data => {
            return Err(invalid(None, &format!("the message is no request: {error}")));
        }
        Err(error) => return Err(malformed(&error)),
    };
    let id = match frame.id.map(|raw| (raw, Id::read(raw))) {
        None => None,
        Some((raw, Some(id))) => Some((raw, id)),
        Some((_, None)) => return Err(invalid(None, "`id` must be a string or a whole number")),
    };
    if frame.jsonrpc.as_deref() != Some("2.0") {
        return Err(invalid(id.map(|(_, id)| id), "`jsonrpc` must be `2.0`"));
    }
    let Frame { method, params, result, error, .. } = frame;
    match (method, id, result, error) {
        (Some(method), Some((_, id)), None, None) => {
            Ok(Message::Request(RequestMessage { id, call: MethodCall { method, params } }))
        }
        (Some(method), None, None, None) => {
            Ok(Message::Notification(MethodCall { method, params }))
        }
        (None, Some((id, _)), Some(result), None) => {
            Ok(Message::Response { id, answer: Ok(result) })
        }
        (None, Some((id, _)), None, Some(error)) => {
            Ok(Message::Response { id, answer: Err(error) })
        }
        (_, id, _, _) => {
            let why = "a message has a `method`, or an `id` with a `result` or an `error`";
            Err(invalid(id.map(|(_, id)| id), why))
        }
    }
}

/// It is no JSON.
pub(crate) fn malformed(error: &serde_json::Error) -> UnreadableMessage {
    let error = RpcError::new(PARSE_ERROR, format!("the message is not JSON: {error}"));
    UnreadableMessage { id: None, error: Box::new(error) }
}

/// The members of parameters that say what a request is about, and of whom it is.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RequestMembers<'a> {
    /// What they say of their sender.
    #[serde(borrow, default, rename = "_meta", deserialize_with = "meta_object")]
    pub(crate) meta: Meta<'a>,
    /// The name of a tool or prompt.
    #[serde(borrow, default)]
    pub(crate) name: Option<&'a RawValue>,
    /// The URI of a resource.
    #[serde(borrow, default)]
    pub(crate) uri: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) task_id: Option<&'a RawValue>,
    /// The arguments of a call.
    #[serde(borrow, default)]
    pub(crate) arguments: Option<&'a RawValue>,
    /// What a call that is sent again brings along, though it may be null.
    #[serde(borrow, default, deserialize_with = "even_null")]
    input_responses: Option<&'a RawValue>,
    #[serde(borrow, default)]
    request_state: Option<&'a RawValue>,
}

impl<'a> RequestMembers<'a> {
    /// What these parameters say.
    pub(crate) fn read(params: Option<&'a RawValue>) -> Result<Self, RpcError> {
        let Some(raw) = params else { return Ok(Self::default()) };
        if !raw.get().starts_with('{') {
            return Err(RpcError::invalid_params("`params` must be an object"));
        }
        serde_json::from_str(raw.get())
            .map_err(|error| RpcError::invalid_params(format!("`params` cannot be read: {error}")))
    }

    /// The call that they are, if it brings nothing along but its arguments and its span, as most
    /// do. Any other is read whole, and so is one that cannot be read.
    pub(crate) fn plain(&self) -> Option<PlainCall> {
        let Self { meta, name, arguments, input_responses, request_state, .. } = self;
        let more = [input_responses, request_state, &meta.key];
        if more.into_iter().any(Option::is_some) {
            return None;
        }
        let name = text((*name)?)?.into_owned();
        let arguments = arguments.map(|raw| serde_json::from_str(raw.get())).transpose().ok()?;
        let trace = meta.traceparent.and_then(text).and_then(|span| span.parse().ok());
        Some(PlainCall { name, arguments, trace })
    }
}

/// A call that brings nothing else along.
pub(crate) struct PlainCall {
    pub(crate) name: String,
    pub(crate) arguments: Option<Map<String, Value>>,
    /// The span of the caller.
    pub(crate) trace: Option<TraceParent>,
}

/// `_meta`, which is an object or null: a list would otherwise be taken for an object's values.
fn meta_object<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Meta<'de>, D::Error> {
    deserializer.deserialize_option(MetaObject)
}

struct MetaObject;

impl<'de> Visitor<'de> for MetaObject {
    type Value = Meta<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object as `_meta`")
    }

    fn visit_none<E>(self) -> Result<Self::Value, E> {
        Ok(Meta::default())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Self::Value, A::Error> {
        Meta::deserialize(MapAccessDeserializer::new(members))
    }
}

/// The members of `_meta` that say who sends a request, and what it wants to hear.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Meta<'a> {
    #[serde(borrow, default, rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/clientCapabilities")]
    capabilities: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/logLevel")]
    log: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "progressToken")]
    progress: Option<&'a RawValue>,
    /// The key under which a call is done once.
    #[serde(borrow, default, rename = "waypost/idempotencyKey")]
    key: Option<&'a RawValue>,
    /// The span of the sender.
    #[serde(borrow, default)]
    traceparent: Option<&'a RawValue>,
}

impl<'a> Meta<'a> {
    /// Whether it names a version, as only stateless requests do.
    pub(crate) fn names_version(&self) -> bool {
        self.version.is_some()
    }

    /// The version that it names.
    pub(crate) fn version(&self) -> Result<Option<Cow<'a, str>>, RpcError> {
        let Some(raw) = self.version else { return Ok(None) };
        let name = text(raw).ok_or_else(|| {
            RpcError::invalid_params(format!("`{META_VERSION}` must be a string"))
        })?;
        Ok(Some(name))
    }

    /// Whether all is there that every stateless request must say.
    pub(crate) fn check(&self) -> Result<(), RpcError> {
        let missing = match (self.version, self.capabilities) {
            (Some(_), Some(_)) => return Ok(()),
            (None, Some(_)) => format!("`{META_VERSION}`"),
            (Some(_), None) => format!("`{META_CAPABILITIES}`"),
            (None, None) => format!("`{META_VERSION}` and `{META_CAPABILITIES}`"),
        };
        let message =
            format!("`_meta` lacks {missing}; without a session every request says who sends it");
        Err(RpcError::invalid_params(message))
    }

    /// The client of a stateless request.
    pub(crate) fn client(&self, version: Version) -> Result<Client, RpcError> {
        let can = match self.capabilities.map(RawValue::get) {
            // What most clients send to most servers.
            None | Some("{}") => ClientCapabilities::default(),
            Some(written) if written.starts_with('{') => {
                let capabilities: Value = serde_json::from_str(written).unwrap_or_default();
                ClientCapabilities::read(&capabilities)
            }
            Some(_) => {
                let message = format!("`{META_CAPABILITIES}` must be an object");
                return Err(RpcError::invalid_params(message));
            }
        };
        Ok(Client { version, can, log: self.log()?, progress: self.progress()? })
    }

    /// Under which token the client wants to hear of progress.
    pub(crate) fn progress(&self) -> Result<Option<Value>, RpcError> {
        let Some(raw) = self.progress else { return Ok(None) };
        if Id::read(raw).is_none() {
            let message = "`progressToken` must be a string or a whole number";
            return Err(RpcError::invalid_params(message));
        }
        Ok(serde_json::from_str(raw.get()).ok())
    }

    fn log(&self) -> Result<Option<LogLevel>, RpcError> {
        let Some(raw) = self.log else { return Ok(None) };
        let level = serde_json::from_str(raw.get());
        level.map(Some).map_err(|error| {
            RpcError::invalid_params(format!("`logLevel` in `_meta` is none: {error}"))
        })
    }
}

/// A JSON string as text, borrowed where nothing in it is escaped.
pub(crate) fn text(raw: &RawValue) -> Option<Cow<'_, str>> {
    let inside = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if inside.contains('\\') {
        return serde_json::from_str(raw.get()).ok().map(Cow::Owned);
    }
    Some(Cow::Borrowed(inside))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn unread(written: &str) -> (i64, Option<String>) {
        let unread = read(written.as_bytes(), 8).unwrap_err();
        (unread.error.code, unread.id.map(|id| id.to_string()))
    }

    #[test]
    fn malformed_messages_are_told_apart() {
        let deep = format!("{{\"params\": {}1{}}}", "[".repeat(9), "]".repeat(9));
        for (written, code, id) in [
            ("", PARSE_ERROR, None),
            ("{", PARSE_ERROR, None),
            ("nope", PARSE_ERROR, None),
            ("{\"jsonrpc\":\"2.0\"} x", PARSE_ERROR, None),
            ("\u{0}", PARSE_ERROR, None),
            ("7", INVALID_REQUEST, None),
            ("[]", INVALID_REQUEST, None),
            ("{}", INVALID_REQUEST, None),
            (deep.as_str(), INVALID_REQUEST, None),
            ("{\"jsonrpc\":\"2.0\"}", INVALID_REQUEST, None),
            ("{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"a\"}", INVALID_REQUEST, Some("1")),
            ("{\"id\":\"x\",\"method\":\"a\"}", INVALID_REQUEST, Some("\"x\"")),
            ("{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"a\"}", INVALID_REQUEST, None),
            ("{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"a\"}", INVALID_REQUEST, None),
            ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}", INVALID_REQUEST, None),
            ("{\"jsonrpc\":\"2.0\",\"id\":1}", INVALID_REQUEST, Some("1")),
            (
                "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"result\":{}}",
                INVALID_REQUEST,
                Some("1"),
            ),
        ] {
            assert_eq!(unread(written), (code, id.map(str::to_owned)), "{written}");
        }
    }

    #[test]
    fn the_three_kinds_are_read() {
        let request = br#"{"jsonrpc":"2.0","id":"a","method":"m","params":{"b": 1}}"#;
        let Ok(Message::Request(asked)) = read(request, 8) else { panic!("no request") };
        assert_eq!((asked.id.as_json(), &*asked.call.method), ("\"a\"", "m"));
        assert_eq!(asked.call.params.map(RawValue::get), Some("{\"b\": 1}"));
        let notification = read(br#"{"jsonrpc":"2.0","method":"n"}"#, 8);
        assert!(matches!(notification, Ok(Message::Notification(_))));
        let response = read(br#"{"jsonrpc":"2.0","id":7,"error":{"code":1}}"#, 8);
        let Ok(Message::Response { id, answer: Err(error) }) = response else { panic!("none") };
        assert_eq!((id.get(), error.get()), ("7", "{\"code\":1}"));
    }

    fn client(meta: &Value) -> Result<Client, RpcError> {
        let params = json!({"_meta": meta, "name": "a"}).to_string();
        let raw: &RawValue = serde_json::from_str(&params).unwrap();
        let meta = RequestMembers::read(Some(raw))?.meta;
        meta.check()?;
        meta.version()?;
        meta.client(Version::July2026)
    }

    #[test]
    fn a_stateless_request_says_who_sends_it() {
        let whole = json!({META_VERSION: "2026-07-28", META_CAPABILITIES: {"roots": {}},
            "io.modelcontextprotocol/logLevel": "warning", "progressToken": 7, "x": 1});
        let read = client(&whole).unwrap();
        assert!(read.can.roots && !read.can.form);
        assert_eq!((read.log, read.progress), (Some(LogLevel::Warning), Some(json!(7))));
        for (key, value) in [
            (META_VERSION, Value::Null),
            (META_VERSION, json!(7)),
            (META_CAPABILITIES, Value::Null),
            (META_CAPABILITIES, json!([])),
            ("io.modelcontextprotocol/logLevel", json!("loud")),
            ("progressToken", json!({})),
        ] {
            let mut wrong = whole.clone();
            wrong[key] = value;
            assert_eq!(client(&wrong).unwrap_err().code, -32602, "{wrong}");
        }
        for wrong in [json!({}), json!(7), json!([])] {
            let RpcError { code, message, .. } = client(&wrong).unwrap_err();
            assert_eq!((code, message.contains("`_meta`")), (-32602, true), "{message}");
        }
        let list: &RawValue = serde_json::from_str("[1]").unwrap();
        assert_eq!(RequestMembers::read(Some(list)).unwrap_err().code, -32602);
    }

    #[test]
    fn text_is_borrowed_where_it_can_be() {
        let read = |written: &'static str| text(serde_json::from_str(written).unwrap());
        assert!(matches!(read("\"a\""), Some(Cow::Borrowed("a"))));
        assert_eq!(read("\"\\u0061\\\"\"").as_deref(), Some("a\""));
        assert_eq!(read("7"), None);
    }
}
