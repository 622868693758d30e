//! `tools/list`, and what all lists share: pages, cursors, and what is said of how long a list may
//! be kept. A tool is found here by the name that a client writes.

use super::answer::{AnswerResult, Kind, Outcome};
use super::client::Version;
use super::exchange::Exchange;
use super::state::McpState;
use edge::request::cursors::{NOT_OF_LIST, Purpose, refused_rpc};
use engine::Callable;
use kernel::contracts::shelf::WRONG_REQUEST;
use kernel::tool::call::Caller;
use kernel::values::fault::Fault;
use kernel::values::names::{Alphabet, inward};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt::Write;
use std::iter;
use std::sync::Arc;
use wire::jsonrpc::{INTERNAL_ERROR, RpcError};

/// How long a client may keep a list of tools, prompts or templates.
pub(crate) const LIST_TTL_MS: u64 = 10_000;

/// The name of this list in its cursors.
const TOOLS: &str = "tools";

/// `tools/list`.
pub(crate) async fn tools(exchange: Exchange) -> AnswerResult {
    let after = after(&exchange, TOOLS)?;
    let mcp = &exchange.mcp;
    let version = exchange.client.version;
    let engine = &mcp.server.engine;
    let limits = mcp.server.limits();
    let rendered = mcp.lists.tools(engine, &exchange.caller, version);
    let (tools, last) = rendered.page(after.as_deref(), limits.mcp_list_items_max);
    let next = last.map(|last| cursor(&exchange, TOOLS, last));
    // Not copied: a thousand tools are some hundred kilobytes.
    let begin = format!("\"{TOOLS}\":[");
    let end = list_end(version, next.as_deref(), LIST_TTL_MS);
    Ok(Outcome::written(Kind::Complete, begin).shared(tools, end))
}

/// A tool, or a plan as a tool, by the name that a client writes.
pub(crate) fn find(mcp: &McpState, caller: &Caller, written: &str) -> Option<Callable> {
    names(written).find_map(|name| mcp.server.engine.tools().find(caller, &name))
}

/// The names that a tool may have that a client writes like this: as it was listed, or our own.
pub(crate) fn names(written: &str) -> impl Iterator<Item = String> {
    inward(written, Alphabet::Mcp).into_iter().chain(iter::once(written.to_owned()))
}

pub(crate) fn has_titles(version: Version) -> bool {
    version > Version::March2025
}

#[derive(Deserialize)]
struct PageParams {
    cursor: Option<String>,
}

/// Where the page that a request asks for begins; none for the first.
pub(crate) fn after(exchange: &Exchange, list: &str) -> Result<Option<String>, RpcError> {
    let PageParams { cursor } = exchange.params()?;
    let Some(cursor) = cursor else { return Ok(None) };
    let cursors = &exchange.mcp.server.cursors;
    let of = purpose(&exchange.caller, list);
    cursors.open(&of, &cursor).map(Some).map_err(refused_rpc)
}

/// A position in a list as an opaque cursor.
pub(crate) fn cursor(exchange: &Exchange, list: &str, position: &str) -> String {
    exchange.mcp.server.cursors.seal(&purpose(&exchange.caller, list), position)
}

fn purpose(caller: &Caller, list: &str) -> Purpose {
    Purpose::of(caller, "/mcp").filtered(&list)
}

/// The cursor is not one of ours.
pub(crate) fn bad_cursor() -> RpcError {
    RpcError::invalid_params(NOT_OF_LIST)
}

/// The items after a key, at most so many, and the last one's key if more follow. The items are in
/// order of their keys.
pub(crate) fn page_of<'a, T>(
    items: &'a [T],
    key: fn(&T) -> &str,
    after: Option<&str>,
    max: usize,
) -> (&'a [T], Option<&'a str>) {
    let first = after.map_or(0, |after| items.partition_point(|item| key(item) <= after));
    let page = &items[first..items.len().min(first.saturating_add(max.max(1)))];
    let more = first + page.len() < items.len();
    (page, page.last().map(key).filter(|_| more))
}

/// An item, and what its own server says of it beyond that: it is passed on as it is.
#[derive(Serialize)]
pub(crate) struct ListedItem<S> {
    #[serde(flatten)]
    spec: S,
    #[serde(flatten)]
    more: Map<String, Value>,
}

impl<S> ListedItem<S> {
    /// The item, with its server's listing without these members.
    pub(crate) fn new(spec: S, listed: Option<&Arc<Value>>, known: &[&str]) -> Self {
        let members = listed.and_then(|listed| listed.as_object()).into_iter().flatten();
        let more = members.filter(|(key, _)| !known.contains(&key.as_str()));
        Self { spec, more: more.map(|(key, value)| (key.clone(), value.clone())).collect() }
    }
}

/// Items as JSON, with a comma between two.
pub(crate) fn joined(items: impl Iterator<Item = impl Serialize>) -> String {
    // These are plain data; writing them as JSON cannot fail.
    let texts: Vec<String> =
        items.map(|item| serde_json::to_string(&item).unwrap_or_default()).collect();
    texts.join(",")
}

/// The result of a list: its items under `key`, where the next page begins, and how long it may be
/// kept. It is never for others: what is listed depends on who asks.
pub(crate) fn listed(
    version: Version,
    key: &str,
    items: &str,
    next: Option<&str>,
    ttl_ms: u64,
) -> Outcome {
    let end = list_end(version, next, ttl_ms);
    let members = format!("\"{key}\":[{items}{end}");
    Outcome::written(Kind::Complete, members)
}

/// What stands after the items of a list.
fn list_end(version: Version, next: Option<&str>, ttl_ms: u64) -> String {
    let mut end = "]".to_owned();
    if let Some(next) = next {
        for part in [",\"nextCursor\":\"", next, "\""] {
            end.push_str(part);
        }
    }
    if version.is_modern() {
        // Writing to a string cannot fail.
        let _ = write!(end, ",\"ttlMs\":{ttl_ms},\"cacheScope\":\"private\"");
    }
    end
}

/// What a shelf could not do.
pub(crate) fn failed(fault: Fault) -> RpcError {
    let Fault { name, message, hint, .. } = fault;
    let text = match hint {
        Some(hint) => format!("{message}; {hint}"),
        None => message,
    };
    if name == WRONG_REQUEST {
        return RpcError::invalid_params(text);
    }
    tracing::warn!(name, "a shelf failed: {text}");
    RpcError::new(INTERNAL_ERROR, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use wire::jsonrpc::INVALID_PARAMS;

    #[test]
    fn pages_follow_each_other_without_gaps() {
        let items = ["a", "b", "c"].map(str::to_owned);
        let page = |after, max| {
            let (page, next) = page_of(&items, String::as_str, after, max);
            (page.concat(), next)
        };
        assert_eq!(page(None, 3), ("abc".to_owned(), None));
        assert_eq!(page(None, 2), ("ab".to_owned(), Some("b")));
        assert_eq!(page(Some("b"), 2), ("c".to_owned(), None));
        assert_eq!(page(Some("aa"), 1), ("b".to_owned(), Some("b")));
        assert_eq!(page(Some("z"), 1), (String::new(), None));
    }

    #[test]
    fn only_the_stateless_version_reads_how_long_a_list_may_be_kept() {
        let read = |version: Version, next: Option<&str>| -> Value {
            let items = joined([json!({"name": "a"}), json!({"name": "b"})].iter());
            serde_json::from_str(&listed(version, "tools", &items, next, 7).write(version)).unwrap()
        };
        let both = json!([{"name": "a"}, {"name": "b"}]);
        assert_eq!(read(Version::November2025, None), json!({"tools": both}));
        let modern = read(Version::July2026, Some("c"));
        assert_eq!(modern["tools"], both);
        assert_eq!(modern["nextCursor"], "c");
        assert_eq!((&modern["ttlMs"], &modern["cacheScope"]), (&json!(7), &json!("private")));
    }

    #[test]
    fn a_shelf_says_whose_fault_it_is() {
        let wrong = failed(Fault::new(WRONG_REQUEST, "no").hint("yes"));
        assert_eq!((wrong.code, wrong.message.as_str()), (INVALID_PARAMS, "no; yes"));
        assert_eq!(failed(Fault::new("Lost", "no")).code, INTERNAL_ERROR);
    }
}
