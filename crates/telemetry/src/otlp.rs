//! The messages of OTLP that are sent and read, with the field numbers of `trace.proto`,
//! `common.proto`, `resource.proto` and `trace_service.proto`; only what is used here.

use prost::{Message, Oneof};

/// `ExportTraceServiceRequest`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Request {
    #[prost(message, repeated, tag = "1")]
    pub(crate) resource_spans: Vec<ResourceSpans>,
}

/// Spans of one process.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    pub(crate) resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) scope_spans: Vec<ScopeSpans>,
}

/// The process.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Resource {
    #[prost(message, repeated, tag = "1")]
    pub(crate) attributes: Vec<KeyValue>,
}

/// Spans of one library.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    pub(crate) scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) spans: Vec<Span>,
}

/// `InstrumentationScope`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Scope {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) version: String,
}

/// One span.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Span {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) span_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    pub(crate) parent_span_id: Vec<u8>,
    #[prost(fixed32, tag = "16")]
    pub(crate) flags: u32,
    #[prost(string, tag = "5")]
    pub(crate) name: String,
    #[prost(int32, tag = "6")]
    pub(crate) kind: i32,
    #[prost(fixed64, tag = "7")]
    pub(crate) start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    pub(crate) end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    pub(crate) attributes: Vec<KeyValue>,
    #[prost(message, optional, tag = "15")]
    pub(crate) status: Option<Status>,
}

/// `SPAN_KIND_INTERNAL`.
pub(crate) const INTERNAL: i32 = 1;
/// `SPAN_KIND_CLIENT`.
pub(crate) const CLIENT: i32 = 3;
/// `STATUS_CODE_ERROR`.
pub(crate) const ERROR: i32 = 2;
/// The trace is recorded.
pub(crate) const SAMPLED: u32 = 0x1;
/// It is known whether the parent is of another process.
pub(crate) const REMOTE_KNOWN: u32 = 0x100;
/// It is.
pub(crate) const REMOTE: u32 = 0x200;

/// How a span ended.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Status {
    #[prost(string, tag = "2")]
    pub(crate) message: String,
    #[prost(int32, tag = "3")]
    pub(crate) code: i32,
}

/// An attribute.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct KeyValue {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) value: Option<AnyValue>,
}

/// Its value.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct AnyValue {
    #[prost(oneof = "OneValue", tags = "1, 3, 4, 5")]
    pub(crate) value: Option<OneValue>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum OneValue {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(int64, tag = "3")]
    Whole(i64),
    #[prost(double, tag = "4")]
    Real(f64),
    #[prost(message, tag = "5")]
    List(ArrayValue),
}

/// Several values.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ArrayValue {
    #[prost(message, repeated, tag = "1")]
    pub(crate) values: Vec<AnyValue>,
}

/// `ExportTraceServiceResponse`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Response {
    #[prost(message, optional, tag = "1")]
    pub(crate) partial_success: Option<PartialSuccess>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PartialSuccess {
    #[prost(int64, tag = "1")]
    pub(crate) rejected_spans: i64,
    #[prost(string, tag = "2")]
    pub(crate) error_message: String,
}

pub(crate) fn text(key: &str, text: impl Into<String>) -> KeyValue {
    attribute(key, OneValue::Text(text.into()))
}

/// A count. What is larger than any real one is cut.
pub(crate) fn count(key: &str, count: u64) -> KeyValue {
    attribute(key, OneValue::Whole(i64::try_from(count).unwrap_or(i64::MAX)))
}

pub(crate) fn number(key: &str, number: f64) -> KeyValue {
    attribute(key, OneValue::Real(number))
}

pub(crate) fn list(key: &str, one: &str) -> KeyValue {
    let one = AnyValue { value: Some(OneValue::Text(one.to_owned())) };
    attribute(key, OneValue::List(ArrayValue { values: vec![one] }))
}

fn attribute(key: &str, value: OneValue) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_written_as_the_protocol_says() {
        let span = Span {
            trace_id: vec![0xaa; 2],
            span_id: vec![0xbb],
            name: "n".to_owned(),
            kind: CLIENT,
            start_time_unix_nano: 1,
            attributes: vec![text("k", "v")],
            flags: SAMPLED,
            ..Span::default()
        };
        // By hand: field number << 3 | wire type, then length or value.
        let expected: Vec<u8> = [
            &[0x0a, 2, 0xaa, 0xaa][..],
            &[0x12, 1, 0xbb],
            &[0x2a, 1, b'n'],
            &[0x30, 3],
            &[0x39, 1, 0, 0, 0, 0, 0, 0, 0],
            &[0x4a, 8, 0x0a, 1, b'k', 0x12, 3, 0x0a, 1, b'v'],
            &[0x85, 0x01, 1, 0, 0, 0],
        ]
        .concat();
        assert_eq!(span.encode_to_vec(), expected);
        assert_eq!(Span::decode(expected.as_slice()), Ok(span));
    }
}
