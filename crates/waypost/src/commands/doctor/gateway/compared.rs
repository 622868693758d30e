//! Compares an upstream with the same upstream seen through the gateway.

use super::view::{Items, ServerView};
use crate::commands::doctor::report::{Finding, Ways};
use kernel::values::names::{Alphabet, outward};
use serde_json::Value;

/// How many names of a list are shown that are missing, or differ.
const SHOWN_MAX: usize = 3;
/// How much is shown of an answer.
const ANSWER_CHARS_MAX: usize = 60;

/// Whether each way leads to the server, and in which version.
pub(super) fn connected(pictures: &Ways<ServerView>) -> Finding {
    let told = pictures.map(|way| way.trouble.as_ref().unwrap_or(&way.version).clone());
    Finding::compared("connect", told, pictures.all(|way| way.trouble.is_none()))
}

/// Whether the lists are the same; the gateway writes this prefix before names.
pub(super) fn listed(pictures: &Ways<ServerView>, prefix: &str) -> Vec<Finding> {
    let tool = |name: &str| outward(&format!("{prefix}{name}"), Alphabet::Mcp);
    let prompt = |name: &str| format!("{prefix}{name}");
    let uri = |uri: &str| uri.to_owned();
    let of_tools =
        ["title", "description", "inputSchema", "outputSchema", "annotations", "icons", "_meta"];
    let of_prompts = ["title", "description", "arguments", "icons", "_meta"];
    let of_resources = ["name", "title", "description", "mimeType", "icons", "_meta"];
    let left_out = left_out(&pictures.direct.left_out);
    vec![
        list("tools", pictures, |way| &way.tools, &tool, &of_tools, &left_out),
        list("prompts", pictures, |way| &way.prompts, &prompt, &of_prompts, ""),
        list("resources", pictures, |way| &way.resources, &uri, &of_resources, ""),
        list("templates", pictures, |way| &way.templates, &uri, &of_resources, ""),
    ]
}

fn list(
    check: &str,
    pictures: &Ways<ServerView>,
    items: impl Fn(&ServerView) -> &Items,
    there: &dyn Fn(&str) -> String,
    members: &[&str],
    left_out: &str,
) -> Finding {
    let listed = items(&pictures.direct);
    let stateless = compared(listed, items(&pictures.stateless), there, members);
    let handshake = compared(listed, items(&pictures.handshake), there, members);
    let whole = listed.len().to_string();
    let is_same = stateless == whole && handshake == whole;
    let direct = whole + left_out;
    Finding::compared(check, Ways { direct, stateless, handshake }, is_same)
}

/// Which tools Waypost takes from no server: clients would see them directly.
fn left_out(reasons: &[String]) -> String {
    let Some(shown) = reasons.get(..reasons.len().min(SHOWN_MAX)).filter(|all| !all.is_empty())
    else {
        return String::new();
    };
    let more = if reasons.len() > SHOWN_MAX { ", .." } else { "" };
    format!("; left out: {}{more}", shown.join(", "))
}

/// How many there are through the gateway, and which of them are missing or differ.
fn compared(
    direct: &Items,
    gateway: &Items,
    there: &dyn Fn(&str) -> String,
    members: &[&str],
) -> String {
    let mut missing = Vec::new();
    let mut other = Vec::new();
    for (name, item) in direct {
        match gateway.get(&there(name)) {
            None => missing.push(name.as_str()),
            Some(shown) if members.iter().any(|key| !is_alike(key, item, shown)) => {
                other.push(name.as_str());
            }
            Some(_) => {}
        }
    }
    let mut told = (direct.len() - missing.len()).to_string();
    for (what, names) in [("missing", missing), ("differ", other)] {
        if let Some(shown) = names.get(..names.len().min(SHOWN_MAX)).filter(|_| !names.is_empty()) {
            let more = if names.len() > SHOWN_MAX { ", .." } else { "" };
            told.push_str(&format!("; {what}: {}{more}", shown.join(", ")));
        }
    }
    told
}

/// Whether two items say the same under this key. With a handshake an output is an object, so that
/// the schema of any other is listed as that of `{result: ..}`.
fn is_alike(key: &str, item: &Value, shown: &Value) -> bool {
    let is_carried = || {
        let carries = shown[key]["properties"].get("result").is_some();
        key == "outputSchema" && item.get(key).is_some() && carries
    };
    item.get(key) == shown.get(key) || (item[key]["type"] != "object" && is_carried())
}

/// Whether an answer is the same.
pub(super) fn answered(check: &str, answers: &Ways<Value>) -> Finding {
    finding(check, answers, answers.all(|answer| *answer == answers.direct))
}

/// Whether what must be refused is refused everywhere: each server has its own words for it.
pub(super) fn refused(check: &str, answers: &Ways<Value>) -> Finding {
    let are_refused = answers.all(|answer| answer.get("error").is_some());
    let are_same = answers.all(|answer| *answer == answers.direct);
    finding(check, answers, are_refused || are_same)
}

fn finding(check: &str, answers: &Ways<Value>, is_same: bool) -> Finding {
    let shown = |answer: &Value| answer.to_string().chars().take(ANSWER_CHARS_MAX).collect();
    Finding::compared(check, answers.map(shown), is_same)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::report::Level;
    use serde_json::json;

    fn picture(tools: &[(&str, &str)]) -> ServerView {
        let item = |(name, about): &(&str, &str)| {
            ((*name).to_owned(), json!({"name": name, "description": about}))
        };
        let version = "2026-07-28".to_owned();
        ServerView { version, tools: tools.iter().map(item).collect(), ..ServerView::default() }
    }

    /// Whether what clients see is the same, and what one way shows.
    fn seen(finding: &Finding, way: &str) -> (bool, String) {
        let check = finding.to_json();
        (check["same"] == true, check[way].as_str().unwrap().to_owned())
    }

    fn is_same(finding: &Finding) -> bool {
        finding.level == Level::Ok
    }

    fn tools(gateway: &[(&str, &str)]) -> Finding {
        let direct = picture(&[("a", "A"), ("b__c", "B")]);
        let pictures = Ways {
            direct,
            stateless: picture(gateway),
            handshake: picture(&[("up.a", "A"), ("up.b_-5f_c", "B")]),
        };
        listed(&pictures, "up.").remove(0)
    }

    #[test]
    fn lists_are_compared_by_the_names_that_the_gateway_gives() {
        let same = tools(&[("up.a", "A"), ("up.b_-5f_c", "B"), ("ours", "x")]);
        assert_eq!(seen(&same, "direct"), (true, "2".to_owned()));
        assert_eq!(seen(&same, "stateless"), (true, "2".to_owned()));
        let missing = tools(&[("up.a", "A")]);
        assert_eq!(seen(&missing, "stateless"), (false, "1; missing: b__c".to_owned()));
        let other = tools(&[("up.a", "Z"), ("up.b_-5f_c", "B")]);
        assert_eq!(seen(&other, "stateless"), (false, "2; differ: a".to_owned()));
    }

    #[test]
    fn all_that_a_client_shows_of_an_item_is_compared() {
        let shown = |icons: Value| {
            let item = json!({"name": "a", "icons": icons});
            ServerView { tools: [("a".to_owned(), item)].into(), ..ServerView::default() }
        };
        let pictures = |icons: Value| Ways {
            direct: ServerView { left_out: vec!["it has no name".to_owned()], ..shown(json!([1])) },
            stateless: shown(json!([1])),
            handshake: shown(icons),
        };
        let same = listed(&pictures(json!([1])), "").remove(0);
        assert_eq!(seen(&same, "direct"), (true, "1; left out: it has no name".to_owned()));
        let other = listed(&pictures(json!([2])), "").remove(0);
        assert_eq!(seen(&other, "handshake"), (false, "1; differ: a".to_owned()));
    }

    #[test]
    fn refusals_may_differ_in_wording() {
        let ways = |handshake| {
            let direct = json!({"error": "not found"});
            Ways { direct, stateless: json!({"error": "UpstreamError"}), handshake }
        };
        assert!(is_same(&refused("read", &ways(json!({"error": 1})))));
        assert!(!is_same(&refused("read", &ways(json!({"contents": []})))));
    }

    #[test]
    fn a_schema_that_a_version_cannot_express_is_no_difference() {
        let key = "outputSchema";
        let listed = |schema: Value| json!({"name": "a", key: schema});
        let number = listed(json!({"type": "number"}));
        let properties = json!({"result": {"type": "number"}});
        let carried = listed(json!({"type": "object", "properties": properties}));
        assert!(is_alike(key, &number, &number) && is_alike(key, &number, &carried));
        assert!(!is_alike(key, &carried, &number) && !is_alike(key, &number, &json!({})));
        assert!(!is_alike(key, &json!({}), &carried), "it promised nothing");
        let other = listed(json!({"type": "string"}));
        assert!(!is_alike(key, &number, &other) && is_alike("name", &number, &other));
    }

    #[test]
    fn an_answer_that_is_not_the_same_everywhere_differs() {
        let ways = |handshake| Ways { direct: json!(1), stateless: json!(1), handshake };
        assert!(is_same(&answered("call a", &ways(json!(1)))));
        assert!(!is_same(&answered("call a", &ways(json!(2)))));
    }
}
