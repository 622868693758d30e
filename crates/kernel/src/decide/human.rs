//! `human_in_the_loop`: a form when it has a schema, else a question.

use super::{At, Decided};
use crate::ask::{Ask, AskBody};
use crate::definition::plan::{Step, StepKind, Text};
use crate::event::Fact;
use crate::values::datum::{Datum, Origin};
use crate::values::ids::{Millis, StepId};
use serde_json::Value;
use std::sync::Arc;

/// How long a title may be in an inbox.
const TITLE_CHARS: usize = 120;

impl At<'_> {
    pub(super) fn human(
        &self,
        step: &Step,
        message: &Text,
        schema: Option<&Arc<Value>>,
    ) -> Decided {
        let message = match self.view().text(message)? {
            Value::String(text) => text,
            other => other.to_string(),
        };
        let title = title(&message);
        let body = match schema {
            Some(schema) => AskBody::Fill { message, schema: schema.clone() },
            None => AskBody::Clarify { message, questions: Vec::new() },
        };
        let ask = self.ask(step.id.clone(), title, body, Vec::new());
        Ok(Some(Fact::AskOpened(Box::new(ask))))
    }

    /// Until when an ask of this step waits. A failed step waits for as long as it takes.
    pub(super) fn expires_at(&self, step: &StepId, body: &AskBody) -> Option<Millis> {
        let expires_ms = match (&self.plan.step(step)?.kind, body) {
            (
                StepKind::Human { expires_ms, .. },
                AskBody::Clarify { .. } | AskBody::Fill { .. },
            ) => *expires_ms,
            (
                StepKind::ToolCall(call),
                AskBody::Approve { .. } | AskBody::Fill { .. } | AskBody::Authorize { .. },
            ) => call.expires_ms,
            (
                StepKind::Agent { expires_ms, .. },
                AskBody::Clarify { .. }
                | AskBody::Approve { .. }
                | AskBody::Fill { .. }
                | AskBody::Authorize { .. },
            ) => *expires_ms,
            _ => None,
        };
        Some(self.env.now.plus_ms(expires_ms?))
    }

    /// A person's answer becomes input.
    pub(super) fn given(&self, ask: &Ask, step: Option<&Step>, value: &Value) -> Decided {
        let next = match step.map(|step| &step.kind) {
            Some(StepKind::Human { next, .. }) => next.as_ref(),
            _ => None,
        };
        Ok(Some(Fact::InputGiven {
            frame: self.frame.id,
            step: ask.step.clone(),
            value: Arc::new(Datum::inline(value.clone(), Origin::Reply(ask.id))),
            next: self.after(&ask.step, next),
        }))
    }
}

/// What an inbox shows of a text.
pub(super) fn title(text: &str) -> String {
    text.chars().take(TITLE_CHARS).collect()
}
