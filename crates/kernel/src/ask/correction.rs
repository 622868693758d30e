//! Reads the answer of a correction plan as a reply to the ask about the failed step. An answer
//! that fits no reply is ignored; one that could repeat a write becomes a proposal for a person.

use crate::ask::remedy::RemedyResult;
use crate::ask::reply::check_action;
use crate::ask::{Ask, AskBody, FixAction, Reply};
use crate::values::fault::Fault;
use serde_json::Value;
use std::sync::Arc;

/// The members that an answer may have.
const MEMBERS: [&str; 4] = ["action", "arguments", "output", "why"];

/// What a correction may do about the failed call without asking anyone.
#[derive(Debug, Clone, Copy)]
pub struct CorrectionRights {
    /// Have it sent again.
    pub repeat: bool,
    /// Have it sent again with other arguments.
    pub edit: bool,
}

/// What this answer of a correction means for the failed step.
pub fn found(ask: &Ask, answer: &Value, leeway: CorrectionRights) -> RemedyResult {
    let why = answer.get("why").and_then(Value::as_str).map(str::to_owned);
    let read = match &ask.body {
        AskBody::Fix { actions, .. } => read(actions, answer),
        _ => Err("nothing failed".to_owned()),
    };
    match read {
        Ok(reply) => {
            let acts = match reply {
                Reply::Fix { action: FixAction::Retry, .. } => leeway.repeat,
                Reply::Fix { action: FixAction::Edit, .. } => leeway.repeat && leeway.edit,
                _ => true,
            };
            RemedyResult { reply: Some(reply), acts, why, ..RemedyResult::default() }
        }
        Err(wrong) => {
            let message = format!("the correction's answer fits no reply: {wrong}");
            let hint =
                "it answers {action: retry|edit|skip|abort|settle, arguments?, output?, why?}";
            let fault = Fault::new("CorrectionMisfit", message).hint(hint);
            RemedyResult { why, ..RemedyResult::nothing(fault) }
        }
    }
}

/// Reads what a correction answers where these actions can be taken; or why it fits no reply.
pub fn read(actions: &[FixAction], answer: &Value) -> Result<Reply, String> {
    let Some(members) = answer.as_object() else {
        return Err("it is not an object".to_owned());
    };
    if let Some(unknown) = members.keys().find(|name| !MEMBERS.contains(&name.as_str())) {
        return Err(format!("it has `{unknown}`"));
    }
    let action = members.get("action").cloned().unwrap_or_default();
    let action = serde_json::from_value::<FixAction>(action)
        .ok()
        .filter(|action| !matches!(action, FixAction::Correct | FixAction::Propose))
        .ok_or_else(|| "its `action` is missing, or none that it can take".to_owned())?;
    let arguments = members.get("arguments");
    let output = members.get("output");
    check_action(actions, action, arguments.is_some(), output.is_some())
        .map_err(|bad| bad.to_string())?;
    let arguments = arguments.cloned().map(Arc::new);
    Ok(Reply::Fix { action, arguments, output: output.cloned(), plan_id: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::call::CallProgress;
    use crate::values::ids::{AskId, ContentHash, FrameId, Millis, RunId};
    use serde_json::json;

    const ANY: CorrectionRights = CorrectionRights { repeat: true, edit: true };

    fn ask() -> Ask {
        let actions = vec![
            FixAction::Retry,
            FixAction::Edit,
            FixAction::Skip,
            FixAction::Abort,
            FixAction::Settle,
            FixAction::Correct,
        ];
        let fault = Fault::new("Boom", "it broke");
        let how = CallProgress::Failed;
        Ask {
            id: AskId(1),
            run: RunId(1),
            frame: FrameId(1),
            step: "work".into(),
            title: "it failed".to_owned(),
            body: AskBody::Fix { fault, call: None, how, actions, plans: Vec::new() },
            digest: ContentHash::of(b""),
            created_at: Millis(0),
            expires_at: None,
            wanted: None,
            answerers: None,
            subject: None,
            held: None,
            tried: Vec::new(),
            next: crate::ask::context::NextSteps::default(),
            about: Vec::new(),
        }
    }

    #[test]
    fn a_correction_answer_that_fits_is_applied_unless_it_could_repeat_a_write() {
        for (answer, acts) in [
            (json!({"action": "retry", "why": "it is well again"}), false),
            (json!({"action": "edit", "arguments": {"n": 2}}), false),
            (json!({"action": "skip", "output": 5}), true),
            (json!({"action": "settle", "output": null}), true),
            (json!({"action": "abort"}), true),
        ] {
            let found = |repeat| found(&ask(), &answer, CorrectionRights { repeat, edit: true });
            assert!(found(true).acts && found(true).fault.is_none(), "{answer}");
            let unknown = found(false);
            assert_eq!((unknown.acts, unknown.reply.is_some()), (acts, true), "{answer}");
        }
        let why = found(&ask(), &json!({"action": "abort", "why": "hopeless"}), ANY).why;
        assert_eq!(why.as_deref(), Some("hopeless"));
    }

    #[test]
    fn changed_arguments_may_need_a_person_where_the_same_ones_may_be_resent() {
        let edit = json!({"action": "edit", "arguments": {"n": 2}});
        let leeway = CorrectionRights { edit: false, ..ANY };
        let proposed = found(&ask(), &edit, leeway);
        assert!(!proposed.acts && proposed.reply.is_some(), "{proposed:?}");
        assert!(found(&ask(), &json!({"action": "retry"}), leeway).acts);
    }

    #[test]
    fn a_correction_answer_that_fits_no_reply_is_ignored() {
        for answer in [
            json!(null),
            json!("retry"),
            json!({}),
            json!({"action": "again"}),
            json!({"action": "correct"}),
            json!({"action": "propose"}),
            json!({"action": "edit"}),
            json!({"action": "settle"}),
            json!({"action": "retry", "output": 1}),
            json!({"action": "skip", "plan": "other"}),
        ] {
            let found = found(&ask(), &answer, ANY);
            let name = found.fault.as_ref().map(|fault| fault.name.as_str());
            assert_eq!((name, found.acts), (Some("CorrectionMisfit"), false), "{answer}");
        }
    }
}
