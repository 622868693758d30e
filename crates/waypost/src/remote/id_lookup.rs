//! Finds an ask or a session on the server by its id, by a prefix of its id, or as the newest.

use crate::exit::{Exit, Failure, Result};
use crate::remote::client::{Client, Request};
use serde_json::Value;

/// A list of the server whose items have ids.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ids {
    prefix: &'static str,
    list: &'static str,
    noun: &'static str,
    command: &'static str,
    /// What is searched, one after the other: the server lists some only if asked.
    statuses: &'static [Option<&'static str>],
    is_newest_first: bool,
}

/// The asks: the open ones, then all.
pub(crate) const ASKS: Ids = Ids {
    prefix: "ask_",
    list: "asks",
    noun: "ask",
    command: "inbox ls",
    statuses: &[None, Some("any")],
    is_newest_first: false,
};

pub(crate) const SESSIONS: Ids = Ids {
    prefix: "ses_",
    list: "sessions",
    noun: "session",
    command: "session ls",
    statuses: &[None],
    is_newest_first: true,
};

/// An id has so many digits after its prefix.
const DIGITS: usize = 32;
/// So many items are searched.
const LOOKED_AT: usize = 10_000;
/// So many are named if several fit.
const NAMED_MAX: usize = 5;

/// The id that begins like this. Everything else stays as it is: a name, or what the server
/// refuses.
pub(crate) async fn resolve(client: &Client, ids: Ids, given: &str) -> Result<String> {
    if !is_beginning(ids, given) {
        return Ok(given.to_owned());
    }
    for status in ids.statuses {
        let request = Request::to(&[ids.list]).with("status", *status);
        let mut fitting = fitting(client.items(request, LOOKED_AT).await?, given);
        match fitting.len() {
            0 => {}
            1 => return Ok(fitting.remove(0)),
            _ => return Err(ambiguous(ids, given, &fitting)),
        }
    }
    let what = format!("no {} begins with `{given}`", ids.noun);
    Err(Failure::new(Exit::Failed, "not_found", what).hint(listing(ids)))
}

/// The id of the newest that the server lists.
pub(crate) async fn newest(client: &Client, ids: Ids) -> Result<String> {
    let limit = if ids.is_newest_first { 1 } else { LOOKED_AT };
    let items: Vec<Value> = client.items(Request::to(&[ids.list]), limit).await?;
    let newest = if ids.is_newest_first { items.first() } else { items.last() };
    let id = newest.and_then(|item| item["id"].as_str());
    id.map(str::to_owned).ok_or_else(|| {
        let what = format!("there is no {} that could be the last", ids.noun);
        Failure::new(Exit::Failed, "not_found", what).hint(listing(ids))
    })
}

fn is_beginning(ids: Ids, given: &str) -> bool {
    given.strip_prefix(ids.prefix).is_some_and(|digits| {
        let is_short = (1..DIGITS).contains(&digits.len());
        is_short && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

fn fitting(items: Vec<Value>, given: &str) -> Vec<String> {
    let given = given.to_ascii_lowercase();
    let ids = items.iter().filter_map(|item| item["id"].as_str());
    ids.filter(|id| id.starts_with(&given)).map(str::to_owned).collect()
}

fn ambiguous(ids: Ids, given: &str, fitting: &[String]) -> Failure {
    let what = format!("`{given}` fits {} {}", fitting.len(), ids.list);
    let more = fitting.len().saturating_sub(NAMED_MAX);
    let mut lines: Vec<String> = fitting.iter().take(NAMED_MAX).cloned().collect();
    lines.extend((more > 0).then(|| format!("and {more} more")));
    Failure::usage(what).lines(lines).hint("give more of its digits")
}

fn listing(ids: Ids) -> String {
    format!("`waypost {}` lists the {}", ids.command, ids.list)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_id_prefix_is_its_kind_and_some_digits() {
        for (text, expected) in [
            ("ask_14a6", true),
            ("ask_14A6", true),
            ("ask_", false),
            ("ask_xyz", false),
            ("ses_14a6", false),
            ("ada", false),
            ("ask_0123456789abcdef0123456789abcdef", false),
        ] {
            assert_eq!(is_beginning(ASKS, text), expected, "{text}");
        }
    }

    #[test]
    fn an_ambiguous_prefix_lists_its_matches() {
        let items = vec![json!({"id": "ask_1a"}), json!({"id": "ask_1b"}), json!({"id": "ask_2"})];
        let found = fitting(items, "ask_1");
        assert_eq!(found, ["ask_1a", "ask_1b"]);
        let told = ambiguous(ASKS, "ask_1", &found).to_string();
        let expected = "error: `ask_1` fits 2 asks\n  ask_1a\n  ask_1b\n\
                        hint: give more of its digits";
        assert_eq!(told, expected);
    }
}
