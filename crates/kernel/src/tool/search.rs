//! Search tools: tools named `query_find`, whichever server brings them, which return records page
//! by page. A realm can limit the number of records per call.

use serde_json::{Map, Value, json};

/// The name of the tool, after what stands before the names of a server's tools.
const FIND: &str = "query_find";
/// How many records a search gives where its arguments say nothing.
const USUAL_LIMIT: u64 = 50;
/// Where the arguments say how many: flat, or as a member of the page.
const LIMIT: &str = "limit";
const PAGE: &str = "page";

/// The arguments of a search that gives at most so many records; none where the tool is no search,
/// or where they ask for no more. A limit that is missing, invalid or 0, which could stand for all
/// records, is replaced as well.
pub fn limited(tool: &str, schema: &Value, arguments: &Value, most: u64) -> Option<Value> {
    let is_search = tool.rsplit([':', '.', '/']).next() == Some(FIND);
    let given = arguments.as_object().filter(|_| is_search)?;
    let mut limited = given.clone();
    if let Some(Value::Object(page)) = limited.get_mut(PAGE) {
        limit(page, most);
    }
    let has_page = limited.get(PAGE).is_some_and(Value::is_object);
    let takes = |name: &str| schema.pointer(&format!("/properties/{name}")).is_some();
    if limited.contains_key(LIMIT) || !has_page && takes(LIMIT) {
        limit(&mut limited, most);
    } else if !has_page && takes(PAGE) {
        limited.insert(PAGE.to_owned(), json!({LIMIT: most.min(USUAL_LIMIT)}));
    }
    (limited != *given).then_some(Value::Object(limited))
}

/// Brings the limit among these members down to the largest one.
fn limit(members: &mut Map<String, Value>, most: u64) {
    let within = match members.get(LIMIT) {
        None | Some(Value::Null) => most.min(USUAL_LIMIT),
        Some(asked) => match asked.as_u64() {
            Some(asked) if (1..=most).contains(&asked) => return,
            _ => most,
        },
    };
    members.insert(LIMIT.to_owned(), json!(within));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_requests_at_most_its_limit() {
        let flat = json!({"properties": {"rootType": {}, "limit": {}, "skip": {}}});
        let paged = json!({"properties": {"rootType": {}, "page": {}}});
        let bare = json!({"type": "object"});
        for (schema, arguments, sent) in [
            (&flat, json!({"limit": 5000, "skip": 2}), Some(json!({"limit": 100, "skip": 2}))),
            (&flat, json!({"limit": 100}), None),
            (&flat, json!({"limit": 1}), None),
            (&flat, json!({"limit": 0}), Some(json!({"limit": 100}))),
            (&flat, json!({"limit": -1}), Some(json!({"limit": 100}))),
            (&flat, json!({"limit": 1e9}), Some(json!({"limit": 100}))),
            (&flat, json!({"limit": "5000"}), Some(json!({"limit": 100}))),
            (&flat, json!({"limit": null}), Some(json!({"limit": 50}))),
            (&flat, json!({"rootType": "A"}), Some(json!({"rootType": "A", "limit": 50}))),
            (&paged, json!({}), Some(json!({"page": {"limit": 50}}))),
            (&paged, json!({"page": {"skip": 1}}), Some(json!({"page": {"skip": 1, "limit": 50}}))),
            (&paged, json!({"page": {"limit": 101}}), Some(json!({"page": {"limit": 100}}))),
            (&bare, json!({"limit": 101}), Some(json!({"limit": 100}))),
            (
                &bare,
                json!({"limit": 101, "page": {"limit": 102}}),
                Some(json!({"limit": 100, "page": {"limit": 100}})),
            ),
            (&bare, json!({}), None),
            (&flat, json!("no object"), None),
        ] {
            for tool in ["query_find", "quantum.query_find", "crm::query_find", "a/query_find"] {
                assert_eq!(limited(tool, schema, &arguments, 100), sent, "{tool} {arguments}");
            }
        }
        assert_eq!(limited("query_find", &flat, &json!({}), 7), Some(json!({"limit": 7})));
    }

    #[test]
    fn arguments_of_other_tools_are_unchanged() {
        let schema = json!({"properties": {"limit": {}}});
        for tool in ["query_count", "my_query_find", "query_find.all", "find"] {
            assert_eq!(limited(tool, &schema, &json!({"limit": 5000}), 100), None, "{tool}");
        }
    }
}
