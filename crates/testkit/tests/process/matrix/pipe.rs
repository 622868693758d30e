//! The pipe: `waypost mcp serve --stdio` over a folder that no server holds. Its client is known by
//! the key in its environment, or the program does not start.

use super::page::Line;
use super::sending::Key;
use super::site::Stopped;
use serde_json::{Value, json};
use testkit::harness::waypost_fed;
use wire::mcp::{META_CAPABILITIES, META_CLIENT, META_VERSION, MODERN};

const KEY: &str = "WAYPOST_API_KEY";
const REFUSED: &str = "exit 2";
/// What is said of a tool that its caller may not call.
const NO_SUCH_NAME: &str = "-32602";
/// What is said to a client whose key does not cover calls.
const OUT_OF_SCOPE: &str = "`forbidden`";

/// What a client is told that calls a tool with this in its environment.
fn called(site: &Stopped, key: Option<&str>) -> String {
    let params = json!({
        "name": "math__add",
        "arguments": {"a": 1, "b": 2},
        "_meta": {
            META_VERSION: MODERN,
            META_CLIENT: {"name": "matrix", "version": "1"},
            META_CAPABILITIES: {},
        },
    });
    let line = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let (project, data) = (site.project.to_str().unwrap(), site.data.to_str().unwrap());
    let arguments = ["mcp", "serve", "--stdio", project, "--data", data];
    let variables: Vec<(&str, &str)> = key.map(|key| (KEY, key)).into_iter().collect();
    let output = waypost_fed(site.folder.path(), &arguments, &variables, &format!("{line}\n"));
    let said = String::from_utf8_lossy(&output.stdout);
    match (output.status.code(), said.lines().next()) {
        (Some(0), Some(line)) => {
            let answer: Value = serde_json::from_str(line).unwrap();
            let error = &answer["error"];
            match (error["data"]["code"].as_str(), error["code"].as_i64()) {
                (Some(word), _) => format!("`{word}`"),
                (None, Some(code)) => code.to_string(),
                (None, None) => "served".to_owned(),
            }
        }
        (Some(code), None) => format!("exit {code}"),
        _ => panic!("neither an answer nor a refusal: {output:?}"),
    }
}

/// Tries all cases; what differs from the rule is added to the mistakes.
pub(super) fn tried(site: &Stopped, mistakes: &mut Vec<String>) -> Vec<Line> {
    let keys = &site.keys;
    let text = |key: &Key| Some(key.text.clone());
    let mut told = |what: &str, key: Option<String>, expected: &str| {
        let found = called(site, key.as_deref());
        if found != expected {
            mistakes.push(format!("stdio, {what}: {found}, not {expected}"));
        }
        found
    };
    told("malformed", Some("caf\u{e9}".to_owned()), REFUSED);
    told("expired", text(&keys.expired), REFUSED);
    told("revoked", text(&keys.revoked), REFUSED);
    told("allowed", text(&keys.root), "served");
    let cells = [
        told("nothing", None, REFUSED),
        told("unknown", text(&keys.unknown), REFUSED),
        told("scope", text(&keys.reads), OUT_OF_SCOPE),
        told("denied", text(&keys.viewer), NO_SUCH_NAME),
        "-".to_owned(),
        "-".to_owned(),
    ];
    let name = format!("`waypost mcp serve --stdio` with `{KEY}`: `tools/call`");
    vec![Line { name, act: "call (`use`)".to_owned(), cells }]
}
