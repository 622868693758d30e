//! Shows what an ask proposes about a failed step, and builds the reply that accepts it.

use crate::outcome;
use kernel::values::visible::{exposed, exposed_json};
use serde_json::{Value, json};
use wire::rest::{FixReply, Proposal, ProposedChange};

/// What is proposed, part by part with its name: other arguments as what changes, a plan whole.
pub(crate) fn parts(proposal: &Proposal) -> Vec<(&'static str, String)> {
    let Proposal { action, why, changes, plan_id, plan, .. } = proposal;
    let action = json!(action);
    let why = why.as_ref().map(|why| format!(": {}", exposed(why))).unwrap_or_default();
    let mut parts = vec![("proposal", format!("{}{why}", action.as_str().unwrap_or_default()))];
    let shown = |value: &Option<Value>| match value {
        Some(value) => exposed_json(&value.to_string()),
        None => "(nothing)".to_owned(),
    };
    for ProposedChange { path, before, after } in changes {
        let change = format!("{}: {} -> {}", exposed(path), shown(before), shown(after));
        parts.push(("change", change));
    }
    if plan.is_some() {
        let what = "the plan runs, and its answer decides about the failed step";
        parts.push(("if taken", what.to_owned()));
    }
    parts.extend(plan_id.as_deref().map(|id| ("correction", exposed(id))));
    parts.extend(plan.as_ref().map(|plan| ("plan", outcome::pretty(plan))));
    parts
}

/// The same as lines of a card.
pub(crate) fn lines(proposal: &Proposal) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, text) in parts(proposal) {
        if text.contains('\n') {
            lines.push(format!("  {name}"));
            lines.extend(text.lines().map(|line| format!("    {line}")));
        } else {
            lines.push(format!("  {name} {text}"));
        }
    }
    lines
}

/// The reply that takes it as it is.
pub(crate) fn accepting_reply(proposal: &Proposal) -> FixReply {
    let arguments = None;
    let output = None;
    let plan_id = None;
    FixReply { action: proposal.action, arguments, output, plan_id, proposal: true }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::rest::FixAction;

    fn change(path: &str, before: Option<Value>, after: Option<Value>) -> ProposedChange {
        ProposedChange { path: path.to_owned(), before, after }
    }

    #[test]
    fn every_change_is_shown_with_nothing_hidden_in_it() {
        let proposal = Proposal {
            action: FixAction::Edit,
            why: Some("the amount is\u{202e} a number".to_owned()),
            arguments: Some(json!({"amount": 5, "to": "bob"})),
            changes: vec![
                change("/amount", Some(json!("five")), Some(json!(5))),
                change("/note", Some(json!("x")), None),
                change("/to", None, Some(json!("bob\u{200b}"))),
            ],
            plan_id: None,
            plan: None,
        };
        assert_eq!(
            lines(&proposal),
            [
                "  proposal edit: the amount is\\u{202e} a number",
                "  change /amount: \"five\" -> 5",
                "  change /note: \"x\" -> (nothing)",
                "  change /to: (nothing) -> \"bob\\u200b\"",
            ]
        );
        let reply = json!(accepting_reply(&proposal));
        assert_eq!(reply, json!({"action": "edit", "proposal": true}));
    }

    #[test]
    fn a_plan_is_shown_as_a_whole() {
        let proposal = Proposal {
            action: FixAction::Correct,
            why: None,
            arguments: None,
            changes: Vec::new(),
            plan_id: Some("fix/skip".to_owned()),
            plan: Some(json!({"planId": "fix/skip"})),
        };
        let expected = [
            "  proposal correct",
            "  if taken the plan runs, and its answer decides about the failed step",
            "  correction fix/skip",
            "  plan",
            "    {",
            "      \"planId\": \"fix/skip\"",
            "    }",
        ];
        assert_eq!(lines(&proposal), expected);
    }
}
