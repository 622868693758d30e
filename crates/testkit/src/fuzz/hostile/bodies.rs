//! Bodies of requests: nesting, size, texts that are no text, and JSON of the wrong shape. What is
//! wrong with single fields is made by the tests, from the description of each endpoint.

use super::{Case, Kind, nested, numbered};

/// One byte more than a body may have.
const TOO_LARGE: usize = 4 * 1024 * 1024 + 1;

const fn body(name: &'static str, build: fn() -> Vec<u8>) -> Case {
    Case { name, kind: Kind::Body, build }
}

pub(super) const CASES: &[Case] = &[
    body("empty", Vec::new),
    body("blanks", || " \r\n\t".repeat(10_000).into()),
    body("null", || b"null".to_vec()),
    body("a-number", || b"7".to_vec()),
    body("a-text", || br#""{}""#.to_vec()),
    body("a-list", || b"[]".to_vec()),
    body("a-list-of-objects", || format!("[{}{{}}]", "{},".repeat(10_000)).into()),
    body("unknown-field", || br#"{"nobody":"knows"}"#.to_vec()),
    body("field-without-name", || br#"{"":null}"#.to_vec()),
    body("prototype", || br#"{"__proto__":{"a":1},"constructor":{}}"#.to_vec()),
    body("deep-lists", || nested(100_000, "[", "", "]").into()),
    body("deep-lists-that-stay-open", || "[".repeat(1_000_000).into()),
    body("deep-objects", || nested(50_000, "{\"a\":", "1", "}").into()),
    body("deep-input", || format!("{{\"input\":{}}}", nested(100_000, "[", "", "]")).into()),
    body("as-deep-as-may-be", || format!("{{\"input\":{}}}", nested(63, "[", "", "]")).into()),
    body("one-level-deeper", || format!("{{\"input\":{}}}", nested(64, "[", "", "]")).into()),
    body("as-deep-as-can-be-read", || {
        format!("{{\"input\":{}}}", nested(126, "[", "", "]")).into()
    }),
    body("brackets-in-a-text", || format!("{{\"input\":\"{}\"}}", "[{".repeat(100_000)).into()),
    body("truncated", || br#"{"planId":"math::add","input":{"a":"#.to_vec()),
    body("text-that-stays-open", || br#"{"planId":"math"#.to_vec()),
    body("two-bodies", || br#"{}{}"#.to_vec()),
    body("no-json", || b"<html>{}</html>".to_vec()),
    body("not-a-number", || br#"{"input":NaN}"#.to_vec()),
    body("comments", || b"/* */ {} // x".to_vec()),
    body("byte-order-mark", || b"\xef\xbb\xbf{}".to_vec()),
    body("not-utf-8", || b"{\"input\":\"\xff\xc3\x28\"}".to_vec()),
    body("overlong-utf-8", || b"{\"input\":\"\xc0\x80\"}".to_vec()),
    body("utf-16", || b"\xff\xfe{\0}\0".to_vec()),
    body("nul", || b"{\"input\":\"a\0b\"}".to_vec()),
    body("escaped-nul", || br#"{"input":"a\u0000b","session":"\u0000"}"#.to_vec()),
    body("half-surrogates", || br#"{"input":"\ud800","\udc00":"\udfff\ud800"}"#.to_vec()),
    body("compressed", || b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xab\xae\x05\x00".to_vec()),
    body("huge-number", || br#"{"input":1e400}"#.to_vec()),
    body("long-number", || format!("{{\"input\":{}}}", "9".repeat(100_000)).into()),
    body("precise-number", || format!("{{\"input\":0.{}1}}", "0".repeat(100_000)).into()),
    body("numbers-at-their-edges", || {
        br#"{"input":[18446744073709551616,-9223372036854775809,-0,1E-400]}"#.to_vec()
    }),
    body("key-twice", || br#"{"input":1,"input":2,"plan":{},"plan":{}}"#.to_vec()),
    body("many-keys", || {
        let members = numbered(50_000, |at| format!("\"k{at}\":{at},"));
        format!("{{\"input\":{{{members}\"k\":0}}}}").into()
    }),
    body("long-key", || format!("{{\"{}\":1}}", "k".repeat(500_000)).into()),
    body("long-text", || format!("{{\"input\":\"{}\"}}", "\\u00e9".repeat(100_000)).into()),
    body("too-large", || format!("{{\"input\":\"{}\"}}", "x".repeat(TOO_LARGE)).into()),
    body("too-many-blanks", || vec![b' '; TOO_LARGE]),
    body("plan-and-plan-id", || br#"{"plan":{},"planId":"a"}"#.to_vec()),
    body("plan-of-wrong-types", || {
        br#"{"plan":{"planId":7,"description":[],"startStepId":{},"steps":"x","parameters":1}}"#
            .to_vec()
    }),
    body("steps-of-wrong-types", || {
        br#"{"plan":{"planId":"a","steps":[7,null,[],{"id":[]},{"id":"x","type":{}}]}}"#.to_vec()
    }),
    body("many-steps", || {
        let steps = numbered(5_000, |at| format!("{{\"id\":\"s{at}\",\"type\":\"x\"}},"));
        format!("{{\"plan\":{{\"planId\":\"a\",\"steps\":[{steps}{{}}]}}}}").into()
    }),
    body("rpc-batch", || {
        format!("[{}{{}}]", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"},".repeat(5_000))
            .into()
    }),
    body("rpc-without-method", || br#"{"jsonrpc":"2.0","id":{},"params":7}"#.to_vec()),
    body("rpc-of-another-version", || br#"{"jsonrpc":2.0,"id":1,"method":"ping"}"#.to_vec()),
    body("rpc-result", || br#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#.to_vec()),
];
