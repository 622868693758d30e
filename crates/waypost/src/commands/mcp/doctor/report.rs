//! What differs between a server and the same server behind this one.

use super::look::{Items, ServerView};
use crate::terminal::table::table;
use kernel::values::names::{Alphabet, outward};
use serde::Serialize;
use serde_json::Value;

/// How many names of a list are shown that are missing, or differ.
const SHOWN_MAX: usize = 3;
/// How much is shown of an answer.
const ANSWER_CHARS_MAX: usize = 60;

/// The same of one server, by each way to it.
pub(super) struct Ways<T> {
    pub(super) direct: T,
    /// Through the gateway, by a client of 2026-07-28.
    pub(super) stateless: T,
    /// Through the gateway, by a client with a handshake.
    pub(super) handshake: T,
}

/// One line of the table.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Check {
    pub(super) check: String,
    pub(super) direct: String,
    pub(super) stateless: String,
    pub(super) handshake: String,
    /// Whether the gateway shows what the server does.
    pub(super) same: bool,
}

/// All of them.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) upstream: String,
    pub(super) same: bool,
    pub(super) checks: Vec<Check>,
}

impl Report {
    pub(super) fn new(upstream: &str, checks: Vec<Check>) -> Self {
        let same = checks.iter().all(|check| check.same);
        Self { upstream: upstream.to_owned(), same, checks }
    }

    pub(super) fn text(&self) -> String {
        let row = |check: &Check| -> Vec<String> {
            let verdict = if check.same { "same" } else { "differs" }.to_owned();
            let Check { check, direct, stateless, handshake, .. } = check;
            vec![check.clone(), verdict, direct.clone(), stateless.clone(), handshake.clone()]
        };
        let heads = ["check", "verdict", "direct", "gateway 2026", "gateway 2025"];
        table(&heads, self.checks.iter().map(row))
    }
}

/// Whether each way leads to the server, and in which version.
pub(super) fn connected(pictures: &Ways<ServerView>) -> Check {
    let told = |picture: &ServerView| match &picture.trouble {
        Some(trouble) => trouble.clone(),
        None => picture.version.clone(),
    };
    let Ways { direct, stateless, handshake } = pictures;
    let all = [direct, stateless, handshake];
    Check {
        check: "connect".to_owned(),
        direct: told(direct),
        stateless: told(stateless),
        handshake: told(handshake),
        same: all.iter().all(|picture| picture.trouble.is_none()),
    }
}

/// Whether the lists are the same; the gateway writes this prefix before names.
pub(super) fn listed(pictures: &Ways<ServerView>, prefix: &str) -> Vec<Check> {
    let tool = |name: &str| outward(&format!("{prefix}{name}"), Alphabet::Mcp);
    let prompt = |name: &str| format!("{prefix}{name}");
    let uri = |uri: &str| uri.to_owned();
    let of_tools =
        ["title", "description", "inputSchema", "outputSchema", "annotations", "icons", "_meta"];
    let of_prompts = ["title", "description", "arguments", "icons", "_meta"];
    let of_resources = ["name", "title", "description", "mimeType", "icons", "_meta"];
    let mut tools = list("tools", pictures, |picture| &picture.tools, &tool, &of_tools);
    tools.direct.push_str(&left_out(&pictures.direct.left_out));
    vec![
        tools,
        list("prompts", pictures, |picture| &picture.prompts, &prompt, &of_prompts),
        list("resources", pictures, |picture| &picture.resources, &uri, &of_resources),
        list("templates", pictures, |picture| &picture.templates, &uri, &of_resources),
    ]
}

fn list(
    check: &str,
    pictures: &Ways<ServerView>,
    items: impl Fn(&ServerView) -> &Items,
    there: &dyn Fn(&str) -> String,
    members: &[&str],
) -> Check {
    let direct = items(&pictures.direct);
    let stateless = compared(direct, items(&pictures.stateless), there, members);
    let handshake = compared(direct, items(&pictures.handshake), there, members);
    let whole = direct.len().to_string();
    Check {
        check: check.to_owned(),
        same: stateless == whole && handshake == whole,
        direct: whole,
        stateless,
        handshake,
    }
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
pub(super) fn answered(check: String, answers: &Ways<Value>) -> Check {
    let Ways { direct, stateless, handshake } = answers;
    Check {
        check,
        direct: shown(direct),
        stateless: shown(stateless),
        handshake: shown(handshake),
        same: direct == stateless && direct == handshake,
    }
}

/// Whether what must be refused is refused everywhere: each server has its own words for it.
pub(super) fn refused(check: String, answers: &Ways<Value>) -> Check {
    let is_refused = |answer: &Value| answer.get("error").is_some();
    let Ways { direct, stateless, handshake } = answers;
    let is_alike = |other: &Value| direct == other || (is_refused(direct) && is_refused(other));
    let same = is_alike(stateless) && is_alike(handshake);
    Check { same, ..answered(check, answers) }
}

fn shown(answer: &Value) -> String {
    answer.to_string().chars().take(ANSWER_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn picture(tools: &[(&str, &str)]) -> ServerView {
        let item = |(name, about): &(&str, &str)| {
            ((*name).to_owned(), json!({"name": name, "description": about}))
        };
        let version = "2026-07-28".to_owned();
        ServerView { version, tools: tools.iter().map(item).collect(), ..ServerView::default() }
    }

    fn tools(gateway: &[(&str, &str)]) -> Check {
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
        assert!(same.same, "{same:?}");
        assert_eq!((same.direct.as_str(), same.stateless.as_str()), ("2", "2"));
        let missing = tools(&[("up.a", "A")]);
        assert_eq!((missing.same, missing.stateless.as_str()), (false, "1; missing: b__c"));
        let other = tools(&[("up.a", "Z"), ("up.b_-5f_c", "B")]);
        assert_eq!((other.same, other.stateless.as_str()), (false, "2; differ: a"));
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
        assert_eq!((same.same, same.direct.as_str()), (true, "1; left out: it has no name"));
        let other = listed(&pictures(json!([2])), "").remove(0);
        assert_eq!((other.same, other.handshake.as_str()), (false, "1; differ: a"));
    }

    #[test]
    fn each_server_may_refuse_in_its_own_words() {
        let ways = |handshake| {
            let direct = json!({"error": "not found"});
            Ways { direct, stateless: json!({"error": "UpstreamError"}), handshake }
        };
        assert!(refused("read".to_owned(), &ways(json!({"error": 1}))).same);
        assert!(!refused("read".to_owned(), &ways(json!({"contents": []}))).same);
    }

    #[test]
    fn a_schema_that_a_version_cannot_hold_is_no_difference() {
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
        assert!(answered("call a".to_owned(), &ways(json!(1))).same);
        let report = Report::new("up", vec![answered("call a".to_owned(), &ways(json!(2)))]);
        assert!(!report.same);
        let text = report.text();
        assert!(text.starts_with("CHECK"), "{text}");
        assert!(text.ends_with("call a  differs  1       1             2"), "{text}");
    }
}
