//! Decisions of a session: what rules did about failed steps, and what people answered.

use crate::exit::Result;
use crate::remote::client::{Client, Request, read};
use crate::terminal::table::table_beside;
use kernel::ask::remedy::SUPERVISOR;
use serde_json::Value;
use wire::rest::{Ask, AskKind, Page};

/// How many decided asks are read.
const DECIDED_ITEMS: usize = 200;

/// The decided asks of a session, oldest first.
pub(super) struct DecidedAsks {
    /// Those that rules decided.
    pub(super) acts: Vec<Ask>,
    /// Those that people decided.
    pub(super) decisions: Vec<Ask>,
}

impl DecidedAsks {
    /// Asks the server for them.
    pub(super) async fn of(client: &Client, session: &str) -> Result<Self> {
        let request = Request::to(&["asks"]).with("status", Some("decided"));
        let request = request.with("session", Some(session));
        let page: Page<Ask> = read(&client.list(request, DECIDED_ITEMS).await?)?;
        let by_rule = |ask: &Ask| ask.decision.as_ref().is_some_and(|it| it.by == SUPERVISOR);
        let (acts, decisions) = page.items.into_iter().partition(by_rule);
        Ok(Self { acts, decisions })
    }

    /// What rules did, as a table.
    pub(super) fn acts_table(&self) -> String {
        if self.acts.is_empty() {
            return String::new();
        }
        let rows = self.acts.iter().filter_map(|ask| {
            let held = ask.held.as_ref()?;
            let decision = ask.decision.as_ref()?;
            let what = held.plan.as_ref().or(held.model.as_ref());
            let does =
                what.map_or_else(|| held.does.clone(), |what| format!("{} {what}", held.does));
            let tries = format!("{} of {}", held.try_no, held.of);
            let why = ask.fault.as_ref().map(|fault| fault.name.clone()).unwrap_or_default();
            Some(vec![decision.at.clone(), ask.step.clone(), held.rule.clone(), does, tries, why])
        });
        // The field that it stands in is indented.
        table_beside(2, &["acted", "step", "rule", "does", "try", "error"], rows)
    }

    /// Who answered what, as a table.
    pub(super) fn decisions_table(&self) -> String {
        if self.decisions.is_empty() {
            return String::new();
        }
        let rows = self.decisions.iter().filter_map(|ask| {
            let decision = ask.decision.as_ref()?;
            let said = reply_word(ask.kind, &decision.reply);
            let title = ask.title.clone();
            let via = decision.via.clone().unwrap_or_default();
            let at = decision.at.clone();
            let by = decision.by.clone();
            Some(vec![at, by, via, ask.step.clone(), said, title])
        });
        table_beside(2, &["decided", "by", "via", "step", "said", "ask"], rows)
    }
}

/// A reply in a word or two.
fn reply_word(kind: AskKind, reply: &Value) -> String {
    let declined = |member: &str| if reply[member].is_null() { "declined" } else { "answered" };
    match kind {
        AskKind::Clarify => declined("answer").to_owned(),
        AskKind::Fill => declined("content").to_owned(),
        AskKind::Authorize => if reply["done"] == true { "done" } else { "declined" }.to_owned(),
        AskKind::Fix => reply["action"].as_str().unwrap_or_default().to_owned(),
        AskKind::Approve => {
            let decisions = reply["decisions"].as_array().map_or(&[][..], Vec::as_slice);
            let approved = decisions.iter().filter(|one| one["approve"] == true).count();
            let edited = decisions.iter().any(|one| one["arguments"].is_object());
            match (approved, decisions.len()) {
                (0, _) => "rejected".to_owned(),
                (some, all) if some < all => format!("approved {some} of {all}"),
                _ if edited => "approved, edited".to_owned(),
                _ => "approved".to_owned(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_reply_is_described_in_a_word() {
        let decisions = |all: Value| json!({"kind": "approve", "decisions": all});
        let told = |reply: Value| reply_word(AskKind::Approve, &decisions(reply));
        assert_eq!(told(json!([{"approve": true}])), "approved");
        assert_eq!(told(json!([{"approve": true, "arguments": {}}])), "approved, edited");
        assert_eq!(told(json!([{"approve": true}, {"approve": false}])), "approved 1 of 2");
        assert_eq!(told(json!([{"approve": false}])), "rejected");
        assert_eq!(reply_word(AskKind::Fix, &json!({"action": "retry"})), "retry");
        assert_eq!(reply_word(AskKind::Fill, &json!({"content": null})), "declined");
    }
}
