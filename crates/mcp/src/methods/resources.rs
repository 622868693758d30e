//! `resources/list`, `resources/templates/list` and `resources/read`, over all shelves, and what
//! wakes when a resource changes. The first shelf that holds a resource answers for it.

use crate::answer::{AnswerResult, Outcome};
use crate::client::Version;
use crate::exchange::Exchange;
use crate::lists::{
    LIST_TTL_MS, ListedItem, after, bad_cursor, cursor, failed, has_titles, joined, listed, page_of,
};
use crate::state::McpState;
use edge::request::params::short;
use kernel::contracts::shelf::{Changes, ResourceSpec, TemplateSpec};
use kernel::contracts::{ListPage, PageRequest};
use kernel::tool::call::Caller;
use kernel::values::fault::Fault;
use serde::Deserialize;
use serde_json::{Value, json};
use wire::jsonrpc::{INVALID_PARAMS, RpcError};
use wire::mcp::RESOURCE_NOT_FOUND;

/// The names of these lists in their cursors and results.
const RESOURCES: &str = "resources";
const TEMPLATES: &str = "resourceTemplates";

/// Sessions move all the time: what is read of them is old at once.
const RESOURCES_TTL_MS: u64 = 0;

/// `resources/list`: shelf after shelf, each in its own order.
pub(crate) async fn list(exchange: Exchange) -> AnswerResult {
    let shelves = exchange.mcp.shelves(&exchange.caller);
    let (first, mut inner) = match after(&exchange, RESOURCES)? {
        None => (0, None),
        Some(position) => {
            begin(&position).filter(|(first, _)| *first < shelves.len()).ok_or_else(bad_cursor)?
        }
    };
    let max = exchange.mcp.server.limits().mcp_list_items_max.max(1);
    let mut found: Vec<ResourceSpec> = Vec::new();
    let mut next = None;
    for (index, shelf) in shelves.iter().enumerate().skip(first) {
        let page = PageRequest { cursor: inner.take(), limit: max - found.len() };
        let paged = shelf.resources(&exchange.caller, &page).await.map_err(failed)?;
        let ListPage { items, next_cursor } = paged;
        found.extend(items);
        next = next_cursor.map(|inner| format!("{index}:{inner}"));
        let full = found.len() >= max;
        if next.is_none() && full && index + 1 < shelves.len() {
            next = Some(format!("{}:", index + 1));
        }
        if next.is_some() || full {
            break;
        }
    }
    let version = exchange.client.version;
    let items = joined(found.iter().map(|spec| resource(spec, version)));
    let next = next.map(|position| cursor(&exchange, RESOURCES, &position));
    Ok(listed(version, RESOURCES, &items, next.as_deref(), RESOURCES_TTL_MS))
}

/// Where a page begins: the shelf, and its own cursor.
fn begin(position: &str) -> Option<(usize, Option<String>)> {
    let (shelf, inner) = position.split_once(':')?;
    Some((shelf.parse().ok()?, Some(inner.to_owned()).filter(|inner| !inner.is_empty())))
}

/// `resources/templates/list`, by template.
pub(crate) async fn templates(exchange: Exchange) -> AnswerResult {
    let after = after(&exchange, TEMPLATES)?;
    let version = exchange.client.version;
    let mut all = all_templates(&exchange.mcp, &exchange.caller);
    all.sort_by(|left, right| left.uri_template.cmp(&right.uri_template));
    all.dedup_by(|left, right| left.uri_template == right.uri_template);
    let max = exchange.mcp.server.limits().mcp_list_items_max;
    let (page, last) = page_of(&all, |spec| spec.uri_template.as_str(), after.as_deref(), max);
    let next = last.map(|last| cursor(&exchange, TEMPLATES, last));
    let items = joined(page.iter().map(|spec| template(spec, version)));
    Ok(listed(version, TEMPLATES, &items, next.as_deref(), LIST_TTL_MS))
}

/// The templates of all shelves.
pub(crate) fn all_templates(mcp: &McpState, caller: &Caller) -> Vec<TemplateSpec> {
    mcp.shelves(caller).iter().flat_map(|shelf| shelf.templates(caller)).collect()
}

/// `resources/read`.
pub(crate) async fn read(exchange: Exchange) -> AnswerResult {
    let ReadParams { uri } = exchange.params()?;
    let version = exchange.client.version;
    let caller = &exchange.caller;
    let mut passed = None;
    for shelf in exchange.mcp.shelves_for(caller, &uri) {
        match shelf.read(caller, &uri).await {
            Ok(Some(contents)) => return Ok(read_result(version, &contents)),
            Ok(None) => {}
            Err(fault) => pass(shelf.lists(caller, &uri), fault, &mut passed)?,
        }
    }
    Err(passed.unwrap_or_else(|| not_found(version, &uri)))
}

/// Passes a shelf over that failed, unless it lists the resource: another one may hold it. The
/// first such failure is reported where no one does.
fn pass(lists: bool, fault: Fault, passed: &mut Option<RpcError>) -> Result<(), RpcError> {
    let error = failed(fault);
    if lists {
        return Err(error);
    }
    passed.get_or_insert(error);
    Ok(())
}

fn read_result(version: Version, contents: &[Value]) -> Outcome {
    listed(version, "contents", &joined(contents.iter()), None, RESOURCES_TTL_MS)
}

#[derive(Deserialize)]
struct ReadParams {
    uri: String,
}

/// There is no such resource, or the caller may not see it.
pub(crate) fn not_found(version: Version, uri: &str) -> RpcError {
    let code = if version.is_modern() { INVALID_PARAMS } else { RESOURCE_NOT_FOUND };
    let message = format!("there is no resource `{}`; `resources/list` lists them", short(uri));
    RpcError::new(code, message).data(json!({"uri": uri}))
}

/// What wakes when the resource changes; none where no shelf holds it.
pub(crate) async fn changes(
    mcp: &McpState,
    caller: &Caller,
    uri: &str,
) -> Result<Option<Box<dyn Changes>>, RpcError> {
    let mut passed = None;
    for shelf in mcp.shelves_for(caller, uri) {
        match shelf.changes(caller, uri).await {
            Ok(Some(changes)) => return Ok(Some(changes)),
            Ok(None) => {}
            Err(fault) => pass(shelf.lists(caller, uri), fault, &mut passed)?,
        }
    }
    passed.map_or(Ok(None), Err)
}

/// A resource as it is listed.
fn resource(spec: &ResourceSpec, version: Version) -> ListedItem<ResourceSpec> {
    let title = spec.title.clone().filter(|_| has_titles(version));
    let known = ["uri", "name", "title", "description", "mimeType", "size"];
    ListedItem::new(ResourceSpec { title, ..spec.clone() }, spec.listed.as_ref(), &known)
}

/// A family as it is listed.
fn template(spec: &TemplateSpec, version: Version) -> ListedItem<TemplateSpec> {
    let title = spec.title.clone().filter(|_| has_titles(version));
    let known = ["uriTemplate", "name", "title", "description", "mimeType"];
    ListedItem::new(TemplateSpec { title, ..spec.clone() }, spec.listed.as_ref(), &known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_list_cursor_is_a_shelf_and_its_own_cursor() {
        assert_eq!(begin("2:plan:a:b"), Some((2, Some("plan:a:b".to_owned()))));
        assert_eq!(begin("0:"), Some((0, None)));
        for position in ["", "1", ":x", "x:", "-1:"] {
            assert_eq!(begin(position), None, "{position}");
        }
    }

    #[test]
    fn a_missing_resource_has_its_error_number_in_each_version() {
        let modern = not_found(Version::July2026, "a://b");
        assert_eq!((modern.code, modern.data), (INVALID_PARAMS, Some(json!({"uri": "a://b"}))));
        let legacy = not_found(Version::June2025, "a://b");
        assert_eq!((legacy.code, legacy.data), (-32002, Some(json!({"uri": "a://b"}))));
    }

    #[test]
    fn absent_members_are_not_written() {
        let spec = ResourceSpec {
            uri: "a://b".to_owned(),
            name: "b".to_owned(),
            title: Some("B".to_owned()),
            description: None,
            mime_type: Some("text/plain".to_owned()),
            bytes: Some(3),
            listed: None,
        };
        let shown = |version| json!(resource(&spec, version));
        let old = json!({"uri": "a://b", "name": "b", "mimeType": "text/plain", "size": 3});
        assert_eq!(shown(Version::March2025), old);
        assert_eq!(shown(Version::July2026)["title"], "B");
        let annotations = json!({"audience": ["user"], "priority": 0.5});
        let listed = Arc::new(json!({"uri": "a://b", "name": "b", "annotations": annotations}));
        let passed = ResourceSpec { listed: Some(listed), ..spec.clone() };
        assert_eq!(json!(resource(&passed, Version::July2026))["annotations"], annotations);
        let contents = [json!({"uri": "a://b", "text": "x"})];
        let read = read_result(Version::June2025, &contents).write(Version::June2025);
        let read: Value = serde_json::from_str(&read).unwrap();
        assert_eq!(read, json!({"contents": contents}));
    }
}
