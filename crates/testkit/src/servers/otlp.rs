//! A collector of spans, as a server with telemetry meets one: it takes OTLP over HTTP, decodes it
//! with the official messages, keeps what came, and misbehaves on request. It shares no
//! code with the product.

use crate::http::{Connection, Message, NoAnswer};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span as Sent;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use prost::Message as _;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Where a collector takes spans.
pub const COLLECTOR: &str = "/v1/traces";
/// Where Langfuse takes them.
pub const LANGFUSE: &str = "/api/public/otel/v1/traces";

const PROTOBUF: &str = "application/x-protobuf";
/// A sender may keep a connection idle; no test takes as long as this.
const IDLE_LIMIT: Duration = Duration::from_secs(3_600);
const POLL: Duration = Duration::from_millis(5);

/// How it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Manner {
    /// It takes what comes.
    #[default]
    Takes,
    /// It refuses what comes.
    Refuses {
        status: u16,
        /// And wants to be left alone for so many seconds.
        retry_after: Option<u64>,
    },
    /// It reads what comes and never answers.
    Hangs,
}

/// One request as it came.
#[derive(Debug, Clone)]
pub struct Export {
    /// Where it was sent to.
    pub path: String,
    /// Its headers, names in lower case.
    pub headers: Vec<(String, String)>,
    pub bytes: Vec<u8>,
    /// How it was answered.
    pub manner: Manner,
}

impl Export {
    /// The first header of this name, given in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let header = self.headers.iter().find(|(known, _)| known == name);
        header.map(|(_, value)| value.as_str())
    }

    /// Whether these words stand in its body, as they are.
    pub fn contains(&self, words: &str) -> bool {
        self.bytes.windows(words.len()).any(|part| part == words.as_bytes())
    }
}

/// One span as it was sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// Its trace: 32 hexadecimal digits.
    pub trace: String,
    /// Its own id: 16 hexadecimal digits.
    pub id: String,
    /// The span that it is a part of.
    pub parent: Option<String>,
    pub name: String,
    /// When it began, in nanoseconds.
    pub began: u64,
    pub ended: u64,
    /// What it says of itself.
    pub attributes: BTreeMap<String, Value>,
    /// What its sender says of itself.
    pub resource: BTreeMap<String, Value>,
    /// Whether it ended with an error.
    pub failed: bool,
}

impl Span {
    /// One thing that it says of itself; null where it does not say it.
    pub fn says(&self, attribute: &str) -> &Value {
        self.attributes.get(attribute).unwrap_or(&Value::Null)
    }
}

/// A running collector. It ends with the process.
#[derive(Debug)]
pub struct Collector {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    manner: Manner,
    exports: Vec<Export>,
}

impl Collector {
    /// Starts one on a port of its own.
    pub fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let listener = listener.unwrap_or_else(|error| panic!("no collector: {error}"));
        let address = listener.local_addr().unwrap_or_else(|error| panic!("no address: {error}"));
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&shared);
                thread::spawn(move || converse(&state, stream));
            }
        });
        Self { address, state }
    }

    /// Where it is, without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Says how it answers from now on.
    pub fn behave(&self, manner: Manner) {
        locked(&self.state).manner = manner;
    }

    /// All requests up to now.
    pub fn exports(&self) -> Vec<Export> {
        locked(&self.state).exports.clone()
    }

    /// All spans that it took up to now; panics if something came that holds none.
    pub fn spans(&self) -> Vec<Span> {
        let taken = |export: &Export| export.manner == Manner::Takes;
        self.exports().iter().filter(|export| taken(export)).flat_map(spans).collect()
    }
}

/// Serves one connection to its end.
fn converse(state: &Mutex<State>, stream: TcpStream) {
    let Ok(mut connection) = Connection::new(stream) else {
        return;
    };
    while let Ok(Some(message)) = connection.read(IDLE_LIMIT) {
        let closes = message.closes;
        // What cannot be written is not an error: the sender went away.
        if take(state, &mut connection, message).is_err() || closes {
            return;
        }
    }
}

fn take(
    state: &Mutex<State>,
    connection: &mut Connection,
    message: Message,
) -> Result<(), NoAnswer> {
    let mut words = message.first_line.split(' ');
    let method = words.next().unwrap_or_default();
    let path = words.next().unwrap_or_default();
    if method != "POST" || ![COLLECTOR, LANGFUSE].contains(&path) {
        return answer(connection, 404, "");
    }
    let manner = {
        let mut state = locked(state);
        let manner = state.manner;
        let path = path.to_owned();
        let headers = message.headers.clone();
        state.exports.push(Export { path, headers, bytes: message.bytes, manner });
        manner
    };
    match manner {
        Manner::Takes => answer(connection, 200, ""),
        Manner::Refuses { status, retry_after } => {
            let later = retry_after.map(|seconds| format!("retry-after: {seconds}\r\n"));
            answer(connection, status, &later.unwrap_or_default())
        }
        Manner::Hangs => {
            while connection.is_open() {
                thread::sleep(POLL);
            }
            Ok(())
        }
    }
}

/// An empty message of protobuf is an empty body.
fn answer(connection: &mut Connection, status: u16, more: &str) -> Result<(), NoAnswer> {
    let head = format!(
        "HTTP/1.1 {status} Said\r\ncontent-type: {PROTOBUF}\r\n{more}content-length: 0\r\n\r\n"
    );
    connection.write(head.as_bytes())
}

fn spans(export: &Export) -> Vec<Span> {
    assert_eq!(export.header("content-type"), Some(PROTOBUF), "{:?}", export.headers);
    let request = ExportTraceServiceRequest::decode(export.bytes.as_slice())
        .unwrap_or_else(|error| panic!("what came is no export: {error}"));
    let mut spans = Vec::new();
    for of_resource in request.resource_spans {
        let resource = of_resource.resource.map(|resource| named(resource.attributes));
        let resource = resource.unwrap_or_default();
        let sent = of_resource.scope_spans.into_iter().flat_map(|of_scope| of_scope.spans);
        spans.extend(sent.map(|sent| span(sent, &resource)));
    }
    spans
}

fn span(sent: Sent, resource: &BTreeMap<String, Value>) -> Span {
    assert_eq!((sent.trace_id.len(), sent.span_id.len()), (16, 8), "{sent:?}");
    assert!([0, 8].contains(&sent.parent_span_id.len()), "{sent:?}");
    assert!(sent.start_time_unix_nano <= sent.end_time_unix_nano, "{sent:?}");
    Span {
        trace: hex(&sent.trace_id),
        id: hex(&sent.span_id),
        parent: (!sent.parent_span_id.is_empty()).then(|| hex(&sent.parent_span_id)),
        name: sent.name,
        began: sent.start_time_unix_nano,
        ended: sent.end_time_unix_nano,
        attributes: named(sent.attributes),
        resource: resource.clone(),
        failed: sent.status.is_some_and(|status| status.code == StatusCode::Error as i32),
    }
}

fn named(attributes: Vec<KeyValue>) -> BTreeMap<String, Value> {
    attributes.into_iter().map(|one| (one.key, value(one.value))).collect()
}

fn value(any: Option<AnyValue>) -> Value {
    match any.and_then(|any| any.value) {
        Some(Any::StringValue(text)) => Value::from(text),
        Some(Any::BoolValue(yes)) => Value::from(yes),
        Some(Any::IntValue(number)) => Value::from(number),
        Some(Any::DoubleValue(number)) => Value::from(number),
        Some(Any::ArrayValue(list)) => {
            list.values.into_iter().map(|one| value(Some(one))).collect()
        }
        Some(Any::KvlistValue(list)) => {
            Value::Object(named(list.values).into_iter().collect::<Map<_, _>>())
        }
        Some(other) => panic!("an attribute that nobody should send: {other:?}"),
        None => Value::Null,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::wait_for;
    use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Status};
    use serde_json::json;

    fn attribute(key: &str, value: Any) -> KeyValue {
        let value = Some(AnyValue { value: Some(value) });
        KeyValue { key: key.to_owned(), value, ..KeyValue::default() }
    }

    fn export() -> Vec<u8> {
        let sent = Sent {
            trace_id: vec![0xab; 16],
            span_id: vec![1; 8],
            parent_span_id: vec![2; 8],
            name: "chat rules".to_owned(),
            start_time_unix_nano: 5,
            end_time_unix_nano: 7,
            attributes: vec![
                attribute("a.text", Any::StringValue("words".to_owned())),
                attribute("a.number", Any::IntValue(42)),
            ],
            status: Some(Status { code: StatusCode::Error as i32, ..Status::default() }),
            ..Sent::default()
        };
        let of_scope = ScopeSpans { spans: vec![sent], ..ScopeSpans::default() };
        let of_resource = ResourceSpans { scope_spans: vec![of_scope], ..ResourceSpans::default() };
        ExportTraceServiceRequest { resource_spans: vec![of_resource] }.encode_to_vec()
    }

    const LIMIT: Duration = Duration::from_secs(60);

    /// What is answered to an export within this time, and how it begins.
    fn sent_to(collector: &Collector, path: &str, limit: Duration) -> Result<Message, NoAnswer> {
        let stream = TcpStream::connect(collector.address).unwrap();
        let mut connection = Connection::new(stream).unwrap();
        let body = export();
        let length = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: {PROTOBUF}\r\nx-key: k\r\n\
             content-length: {length}\r\n\r\n"
        );
        connection.write(head.as_bytes())?;
        connection.write(&body)?;
        connection.read(limit).map(Option::unwrap)
    }

    #[test]
    fn spans_are_kept_as_they_were_sent() {
        let collector = Collector::start();
        for path in [COLLECTOR, LANGFUSE] {
            let answer = sent_to(&collector, path, LIMIT).unwrap();
            assert!(answer.first_line.contains(" 200 "), "{answer:?}");
        }
        let elsewhere = sent_to(&collector, "/v1/logs", LIMIT).unwrap();
        assert!(elsewhere.first_line.contains(" 404 "), "{elsewhere:?}");
        let exports = collector.exports();
        assert_eq!(exports.len(), 2);
        assert_eq!((exports[1].path.as_str(), exports[1].header("x-key")), (LANGFUSE, Some("k")));
        assert!(exports[0].contains("words") && !exports[0].contains("other"));
        let spans = collector.spans();
        assert_eq!(spans.len(), 2);
        let span = &spans[0];
        assert_eq!((span.trace.as_str(), span.id.as_str()), (&*"ab".repeat(16), &*"01".repeat(8)));
        assert_eq!(span.parent.as_deref(), Some(&*"02".repeat(8)));
        assert_eq!((span.says("a.text"), span.says("a.number")), (&json!("words"), &json!(42)));
        assert!(span.failed && span.says("a.nothing").is_null());
    }

    #[test]
    fn the_collector_misbehaves_on_request() {
        let collector = Collector::start();
        collector.behave(Manner::Refuses { status: 503, retry_after: Some(2) });
        let answer = sent_to(&collector, COLLECTOR, LIMIT).unwrap();
        assert!(answer.first_line.contains(" 503 "), "{answer:?}");
        assert_eq!(answer.header("retry-after"), Some("2"));
        collector.behave(Manner::Hangs);
        let late = sent_to(&collector, COLLECTOR, Duration::from_millis(500));
        assert!(matches!(late, Err(NoAnswer::Late(_))), "{late:?}");
        wait_for("the export that is not answered", LIMIT, || {
            (collector.exports().len() == 2).then_some(())
        });
        assert_eq!(collector.spans().len(), 0);
    }
}
