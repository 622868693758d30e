//! A call that wants something first: a person is asked for one thing after the other, in the order
//! of the tool's keys; then the call goes out again with the outcome.

use super::fix::asked_call;
use super::steps::title;
use super::{At, Decided};
use crate::ask::{Ask, AskBody, Wanted};
use crate::event::Fact;
use crate::session::{OpenCall, Wanting};
use crate::tool::call::{Given, Want};
use crate::values::fault::Fault;
use std::sync::Arc;

impl At<'_> {
    pub(super) fn wanting(&self, open: &OpenCall, wanting: &Wanting) -> Decided {
        let call = open.request.call;
        if let Some(fault) = self.cannot_have(open, wanting) {
            return Ok(Some(Fact::CallFailed { call, how: open.unsent(), fault }));
        }
        let inputs = &wanting.wants.inputs;
        let missing = inputs.iter().find(|(key, _)| !wanting.given.contains_key(*key));
        let asked = missing.and_then(|(key, want)| Some((key, asked(want)?)));
        let Some((key, (message, body))) = asked else {
            // Answers of earlier rounds stay: the tool may look at all of them.
            let mut inputs = open.given.inputs.clone();
            inputs.extend(wanting.given.clone());
            let given = Given { inputs, state: wanting.wants.state.clone() };
            return Ok(Some(Fact::CallResumed { call, given: Arc::new(given) }));
        };
        let title = title(&format!("`{}` wants: {message}", open.request.tool));
        let wanted = Wanted { call: asked_call(open), key: key.clone() };
        let ask = self.ask(open.request.step.clone(), title, body, wanted.digested());
        Ok(Some(Fact::AskOpened(Box::new(Ask { wanted: Some(wanted), ..ask }))))
    }

    /// Why the call cannot have what it wants; then no one is asked for the rest of it either.
    fn cannot_have(&self, open: &OpenCall, wanting: &Wanting) -> Option<Fault> {
        let (tool, max) = (&open.request.tool, self.env.limits.call_wants_max);
        if open.rounds > max {
            let message = format!("`{tool}` wanted something more than {max} times");
            return Some(Fault::new("WantsTooMuch", message).hint("look at the tool"));
        }
        let nobodys = wanting.wants.inputs.iter().filter(|(_, want)| asked(want).is_none());
        let keys: Vec<&str> = nobodys.map(|(key, _)| key.as_str()).collect();
        if keys.is_empty() {
            return None;
        }
        let message = format!(
            "`{tool}` wants `{}` of its caller, which a person cannot give",
            keys.join("`, `")
        );
        let hint = "call it directly, with a client that has it";
        Some(Fault::new("InputWanted", message).hint(hint))
    }
}

/// What a person is asked for it, and the words in which: none where only a caller's program can
/// answer.
fn asked(want: &Want) -> Option<(&str, AskBody)> {
    match want {
        Want::Form { message, schema } => {
            let (words, schema) = (message.clone(), schema.clone());
            Some((message.as_str(), AskBody::Fill { message: words, schema }))
        }
        Want::Url { message, url } => {
            let (words, url) = (message.clone(), url.clone());
            Some((message.as_str(), AskBody::Authorize { message: words, url }))
        }
        Want::Sample { .. } | Want::Roots => None,
    }
}
