//! Proposals for a failed step, by a model or by a plan that may not act itself: a person can
//! accept one in the ask. Also how proposed arguments differ from the failed ones.

use crate::ask::remedy::RemedyResult;
use crate::ask::{Ask, AskBody, FixAction, Reply};
use serde_json::Value;

/// How many differences are shown.
const CHANGES_MAX: usize = 200;

/// One value that a proposal changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Where, as a JSON Pointer.
    pub path: String,
    /// What stood there; nothing where it is new.
    pub before: Option<Value>,
    /// What would stand there; nothing where it goes.
    pub after: Option<Value>,
}

/// Open proposals of an ask, newest first.
fn open(ask: &Ask) -> impl Iterator<Item = &RemedyResult> {
    let found = ask.tried.iter().rev().filter_map(|tried| tried.found.as_deref());
    found.filter(|found| found.reply.is_some() && !found.acts)
}

/// The newest proposal of an ask.
pub fn newest(ask: &Ask) -> Option<&RemedyResult> {
    open(ask).next()
}

/// The newest proposal that this action takes, as a reply.
pub fn proposed(ask: &Ask, action: FixAction) -> Option<Reply> {
    let takes = |reply: &&Reply| matches!(reply, Reply::Fix { action: of, .. } if *of == action);
    open(ask).filter_map(|found| found.reply.as_ref()).find(takes).cloned()
}

/// How the arguments of a proposal differ from those of the failed call.
pub fn changes_of(ask: &Ask, found: &RemedyResult) -> Vec<Change> {
    let before = match &ask.body {
        AskBody::Fix { call: Some(call), .. } => &call.arguments,
        _ => return Vec::new(),
    };
    match &found.reply {
        Some(Reply::Fix { arguments: Some(after), .. }) => changes(before, after),
        _ => Vec::new(),
    }
}

/// How two values differ: objects member by member, all else as a whole.
pub fn changes(before: &Value, after: &Value) -> Vec<Change> {
    let mut found = Vec::new();
    compare("", Some(before), Some(after), &mut found);
    found.truncate(CHANGES_MAX);
    found
}

fn compare(path: &str, before: Option<&Value>, after: Option<&Value>, found: &mut Vec<Change>) {
    if before == after || found.len() > CHANGES_MAX {
        return;
    }
    let (Some(Value::Object(old)), Some(Value::Object(new))) = (before, after) else {
        let path = path.to_owned();
        found.push(Change { path, before: before.cloned(), after: after.cloned() });
        return;
    };
    let added = new.keys().filter(|name| !old.contains_key(*name));
    for name in old.keys().chain(added) {
        let token = name.replace('~', "~0").replace('/', "~1");
        compare(&format!("{path}/{token}"), old.get(name), new.get(name), found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_proposal_lists_only_changed_arguments_with_their_pointers() {
        let before = json!({"a": 1, "b": {"c": [1], "d/e": 2}, "gone": true, "same": {"x": 1}});
        let after = json!({"a": 1, "b": {"c": [1, 2], "d/e": 3}, "new": null, "same": {"x": 1}});
        let told: Vec<(String, Option<Value>, Option<Value>)> = changes(&before, &after)
            .into_iter()
            .map(|change| (change.path, change.before, change.after))
            .collect();
        let change = |path: &str, before, after| (path.to_owned(), before, after);
        assert_eq!(
            told,
            [
                change("/b/c", Some(json!([1])), Some(json!([1, 2]))),
                change("/b/d~1e", Some(json!(2)), Some(json!(3))),
                change("/gone", Some(json!(true)), None),
                change("/new", None, Some(json!(null))),
            ]
        );
        assert!(changes(&before, &before).is_empty());
        assert_eq!(changes(&json!(1), &json!({})).len(), 1, "another kind is another value");
    }

    #[test]
    fn a_proposal_lists_a_bounded_number_of_changes() {
        let many = |value: u32| -> Value {
            (0..1_000).map(|number| (format!("k{number}"), json!(value))).collect()
        };
        assert_eq!(changes(&many(1), &many(2)).len(), CHANGES_MAX);
    }
}
