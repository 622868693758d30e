//! Heads of requests: too much, twice, in two senses, and out of other people's pages.

use super::{Case, Kind, numbered};

const fn header(name: &'static str, build: fn() -> Vec<u8>) -> Case {
    Case { name, kind: Kind::Header, build }
}

pub(super) const CASES: &[Case] = &[
    header("huge-value", || line("x-huge", &"a".repeat(1024 * 1024))),
    header("huge-name", || line(&"x".repeat(100_000), "a")),
    header("many", || numbered(10_000, |at| format!("x-{at}: a\r\n")).into()),
    header("many-the-same", || "accept: */*\r\n".repeat(2_000).into()),
    header("folded", || b"x-a: b\r\n c\r\n\td\r\n".to_vec()),
    header("bare-line-feed", || b"x-a: b\nx-b: c\n".to_vec()),
    header("bare-return", || b"x-a: b\rx-b: c\r\n".to_vec()),
    header("nul", || b"x-a: b\0c\r\n".to_vec()),
    header("blank-before-colon", || b"content-type : text/plain\r\n".to_vec()),
    header("blank-before-name", || b" x-a: b\r\n".to_vec()),
    header("no-name", || b": b\r\n".to_vec()),
    header("no-colon", || b"nonsense\r\n".to_vec()),
    header("not-ascii", || b"x-a: \xff\xfe\xc3\x28\r\nx-\xe4: a\r\n".to_vec()),
    header("second-request", || {
        b"x-a: b\r\n\r\nGET /livez HTTP/1.1\r\nhost: evil.test\r\n".to_vec()
    }),
    header("length-twice", || b"content-length: 0\r\ncontent-length: 9\r\n".to_vec()),
    header("lengths-in-one", || b"content-length: 2, 2\r\n".to_vec()),
    header("length-with-sign", || b"content-length: +2\r\n".to_vec()),
    header("negative-length", || b"content-length: -1\r\n".to_vec()),
    header("length-with-exponent", || b"content-length: 1e3\r\n".to_vec()),
    header("huge-length", || b"content-length: 99999999999999999999\r\n".to_vec()),
    header("length-and-chunks", || b"transfer-encoding: chunked\r\n".to_vec()),
    header("chunks-twice", || b"transfer-encoding: chunked, chunked\r\n".to_vec()),
    header("chunks-and-gzip", || b"transfer-encoding: gzip, chunked\r\n".to_vec()),
    header("chunks-not-last", || b"transfer-encoding: chunked, identity\r\n".to_vec()),
    header("chunks-misspelt", || b"transfer-encoding: xchunked\r\n".to_vec()),
    header("chunks-on-two-lines", || {
        b"transfer-encoding: identity\r\ntransfer-encoding: chunked\r\n".to_vec()
    }),
    header("host-twice", || b"host: evil.test\r\n".to_vec()),
    header("foreign-origin", || line("origin", "http://evil.test")),
    header("origin-like-ours", || line("origin", "http://127.0.0.1.evil.test")),
    header("null-origin", || line("origin", "null")),
    header("forwarded", || b"x-forwarded-host: evil.test\r\nforwarded: host=evil\r\n".to_vec()),
    header("huge-idempotency-key", || line("idempotency-key", &"k".repeat(7_000))),
    header("empty-idempotency-key", || line("idempotency-key", "")),
    header("two-idempotency-keys", || b"idempotency-key: a\r\nidempotency-key: b\r\n".to_vec()),
    header("odd-idempotency-key", || b"idempotency-key: \xff\"\\;,\t\r\n".to_vec()),
    header("wrong-traceparent", || line("traceparent", "00-zz-yy-xx")),
    header("zero-traceparent", || {
        line("traceparent", "00-00000000000000000000000000000000-0000000000000000-00")
    }),
    header("long-traceparent", || line("traceparent", &"0-".repeat(4_000))),
    header("two-traceparents", || {
        let one = line("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
        one.repeat(2)
    }),
    header("long-tracestate", || line("tracestate", &"a=b,".repeat(2_000))),
    header("baggage", || line("baggage", &"a=b;c,".repeat(1_000))),
    header("expectation", || line("expect", "everything")),
    header("compressed", || line("content-encoding", "gzip")),
    header("other-charset", || line("content-type", "application/json; charset=utf-16")),
    header("form", || line("content-type", "multipart/form-data; boundary=x")),
    header("no-type", || line("content-type", "")),
    header("wrong-accept", || line("accept", "*/*;q=9, ;;, text/")),
    header("upgrade", || b"connection: upgrade\r\nupgrade: h2c\r\nhttp2-settings: a\r\n".to_vec()),
    header("odd-connection", || line("connection", "content-length, host, close")),
    header("long-authorization", || {
        line("authorization", &format!("Bearer {}", "a".repeat(60_000)))
    }),
    header("wrong-condition", || b"if-match: W/*,\"\r\nif-none-match: \"\r\n".to_vec()),
    header("wrong-session", || line("mcp-session-id", &"../".repeat(500))),
    header("wrong-version", || line("mcp-protocol-version", "9999-99-99")),
    header("wrong-event", || line("last-event-id", "99999999999999999999-1")),
    header("cookies", || line("cookie", &"a=b; ".repeat(2_000))),
    header("override", || line("x-http-method-override", "DELETE")),
];

fn line(name: &str, value: &str) -> Vec<u8> {
    format!("{name}: {value}\r\n").into()
}
