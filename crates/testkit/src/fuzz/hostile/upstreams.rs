//! What a malicious MCP server lists, and what it answers to a call.

use super::{Case, ID, Kind, nested, schemas};
use serde_json::{Value, json};

const fn listed(name: &'static str, build: fn() -> Vec<u8>) -> Case {
    Case { name, kind: Kind::Listed, build }
}

const fn answered(name: &'static str, build: fn() -> Vec<u8>) -> Case {
    Case { name, kind: Kind::Answered, build }
}

/// Tools that no one can use. Whatever is listed beside them is there.
pub(super) const LISTED: &[Case] = &[
    listed("input-any-of-tower", || takes("input_any_of", "any-of-tower")),
    listed("input-one-of-tower", || takes("input_one_of", "one-of-tower")),
    listed("input-not-tower", || takes("input_not", "not-tower")),
    listed("input-itself-twice", || takes("input_itself", "itself-twice")),
    listed("input-remote", || takes("input_remote", "remote")),
    listed("input-pattern", || takes("input_pattern", "pattern-that-multiplies")),
    listed("input-number", || tool(&json!({"name": "input_number", "inputSchema": 7}))),
    listed("output-any-of-tower", || gives("output_any_of", "any-of-tower")),
    listed("output-all-of-tower", || gives("output_all_of", "all-of-tower")),
    listed("name-with-bell", || named(json!("bell\u{7}"))),
    listed("name-with-escape", || named(json!("\u{1b}[2Jclear"))),
    listed("name-with-line-end", || named(json!("a\r\nset-cookie: b"))),
    listed("name-with-nul", || named(json!("a\u{0}b"))),
    listed("empty-name", || named(json!(""))),
    listed("name-that-is-no-text", || named(json!(["a"]))),
    listed("long-name", || named(json!("n".repeat(100_000)))),
];

/// Answers to a call.
pub(super) const ANSWERED: &[Case] = &[
    answered("deep-result", || {
        result(&format!("{{\"content\":{}}}", nested(100_000, "[", "", "]")))
    }),
    answered("deep-objects", || {
        result(&format!("{{\"structuredContent\":{}}}", nested(50_000, "{\"a\":", "1", "}")))
    }),
    answered("huge-result", || {
        let text = "x".repeat(20_000_000);
        result(&format!("{{\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}}"))
    }),
    answered("many-blocks", || {
        let blocks = "{\"type\":\"text\",\"text\":\"\"},".repeat(100_000);
        result(&format!("{{\"content\":[{blocks}null]}}"))
    }),
    answered("escapes", || {
        result(
            "{\"isError\":true,\"content\":[{\"type\":\"text\",\
             \"text\":\"\\u001b[2J\\u202e\\r\\nforged line\"}]}",
        )
    }),
    answered("content-of-wrong-types", || {
        result("{\"content\":{\"type\":7},\"isError\":[],\"structuredContent\":\"x\"}")
    }),
    answered("half-surrogates", || {
        result("{\"content\":[{\"type\":\"text\",\"text\":\"\\ud800\"}]}")
    }),
    answered("numbers-at-their-edges", || {
        result("{\"content\":[],\"structuredContent\":{\"n\":1e400}}")
    }),
    answered("key-twice", || {
        json_answer(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{ID},\"result\":{{}},\"result\":[]}}"))
    }),
    answered("result-and-error", || {
        json_answer(&format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{ID},\"result\":{{}},\"error\":{{\"code\":\"x\"}}}}"
        ))
    }),
    answered("error-of-wrong-types", || {
        json_answer(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{ID},\"error\":[1,{{}}]}}"))
    }),
    answered("other-version", || {
        json_answer(&format!("{{\"jsonrpc\":3,\"id\":{ID},\"result\":null}}"))
    }),
    answered("a-list", || json_answer("[[],{},null]")),
    answered("not-utf-8", || [head("application/json"), b"{\"a\":\"\xff\xfe\"}".to_vec()].concat()),
    answered("wrong-type", || {
        let body = format!("{{\"jsonrpc\":\"2.0\",\"id\":{ID},\"result\":{{}}}}");
        [head("text/html"), body.into_bytes()].concat()
    }),
    answered("no-type", || b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}".to_vec()),
    answered("compressed", || {
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\n\
          content-length: 4\r\n\r\n\x1f\x8b\x08\x00"
            .to_vec()
    }),
    answered("chunks-and-gzip", || {
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\
          transfer-encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
            .to_vec()
    }),
    answered("redirect", || {
        b"HTTP/1.1 307 Elsewhere\r\nlocation: http://127.0.0.1:1/mcp\r\ncontent-length: 0\r\n\r\n"
            .to_vec()
    }),
    answered("many-headers", || {
        format!("HTTP/1.1 200 OK\r\n{}content-length: 0\r\n\r\n", "x-a: b\r\n".repeat(5_000)).into()
    }),
    answered("events-without-end", || {
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n: still here\n\n".to_vec()
    }),
    answered("one-endless-event", || {
        let line = format!("data: {}\n", "x".repeat(1_000));
        format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n{}", line.repeat(20_000))
            .into()
    }),
    answered("many-events", || {
        format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n{}",
            "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\n".repeat(20_000)
        )
        .into()
    }),
];

fn tool(tool: &Value) -> Vec<u8> {
    tool.to_string().into()
}

fn named(name: Value) -> Vec<u8> {
    tool(&json!({"name": name, "inputSchema": {"type": "object"}}))
}

fn takes(name: &str, schema: &str) -> Vec<u8> {
    tool(&json!({"name": name, "inputSchema": bomb(schema)}))
}

fn gives(name: &str, schema: &str) -> Vec<u8> {
    let takes = json!({"type": "object"});
    tool(&json!({"name": name, "inputSchema": takes, "outputSchema": bomb(schema)}))
}

/// A schema of the table, where an object is wanted.
fn bomb(name: &str) -> Value {
    let case = schemas::CASES.iter().find(|case| case.name == name);
    let bytes = case.map(Case::bytes).unwrap_or_default();
    let mut schema: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    assert!(schema.is_object(), "`{name}` is no schema that can be listed");
    schema["type"] = json!("object");
    schema
}

/// The body ends with the connection, however long the request's id is.
fn head(kind: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n").into()
}

fn result(result: &str) -> Vec<u8> {
    json_answer(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{ID},\"result\":{result}}}"))
}

fn json_answer(body: &str) -> Vec<u8> {
    [head("application/json"), body.as_bytes().to_vec()].concat()
}
