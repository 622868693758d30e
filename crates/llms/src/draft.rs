//! A turn under construction: text and calls are added as they arrive and forwarded to listeners.

use crate::dialect::{Fault, Result};
use crate::shape;
use kernel::conversation::llm::{Delta, DeltaSink, ModelCall, Native, Stop, Turn, Usage};
use std::sync::Arc;

/// More calls than this in one turn are no answer to anything.
const CALLS_MAX: usize = 128;

/// A turn that is being made.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) text: String,
    pub(crate) calls: Vec<DraftCall>,
    pub(crate) usage: Usage,
}

/// A call that is being made.
#[derive(Debug, Default)]
pub(crate) struct DraftCall {
    /// The provider's id; empty where it has none.
    pub(crate) id: String,
    /// The tool; empty until it comes.
    pub(crate) tool: String,
    /// The text of its arguments.
    pub(crate) arguments: String,
}

impl Draft {
    /// More text came.
    pub(crate) fn say(&mut self, text: &str, sink: &dyn DeltaSink) {
        if text.is_empty() {
            return;
        }
        self.text.push_str(text);
        sink.delta(Delta::Text(text.to_owned()));
    }

    /// A call begins; its place. The tool's name may come later.
    pub(crate) fn begin(&mut self, id: &str, tool: &str, sink: &dyn DeltaSink) -> Result<usize> {
        if self.calls.len() >= CALLS_MAX {
            return Err(Fault::unreadable(format!("calls more than {CALLS_MAX} tools at once")));
        }
        let call = DraftCall { id: id.to_owned(), ..DraftCall::default() };
        self.calls.push(call);
        let at = self.calls.len() - 1;
        self.name(at, tool, sink);
        Ok(at)
    }

    /// A call's tool, or more of its name. Some providers repeat it with every part.
    pub(crate) fn name(&mut self, at: usize, name: &str, sink: &dyn DeltaSink) {
        let Some(call) = self.calls.get_mut(at) else {
            return;
        };
        if name.is_empty() || call.tool == name {
            return;
        }
        if call.tool.is_empty() {
            sink.delta(Delta::Call(name.to_owned()));
        }
        call.tool.push_str(name);
    }

    /// More of a call's arguments.
    pub(crate) fn argue(&mut self, at: usize, text: &str) {
        if let Some(call) = self.calls.get_mut(at) {
            call.arguments.push_str(text);
        }
    }

    /// The turn, with what its provider wants back. `form` says whether it was to be JSON.
    pub(crate) fn finish(self, stop: Stop, form: bool, native: Option<Native>) -> Result<Turn> {
        let mut calls = Vec::with_capacity(self.calls.len());
        for (index, call) in self.calls.into_iter().enumerate() {
            if call.tool.is_empty() {
                return Err(Fault::unreadable("calls a tool without a name"));
            }
            let id = if call.id.is_empty() { format!("call_{}", index + 1) } else { call.id };
            let arguments = Arc::new(shape::arguments(&call.arguments));
            calls.push(ModelCall { id, tool: call.tool, arguments });
        }
        let text = if form && stop == Stop::Done { shape::answer(&self.text) } else { self.text };
        Ok(Turn { text, calls, stop, usage: self.usage, native: native.map(Arc::new) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::conversation::llm::NullDeltaSink;
    use serde_json::json;

    #[test]
    fn deltas_are_assembled_into_one_turn() {
        let mut draft = Draft::default();
        draft.say("Hel", &NullDeltaSink);
        draft.say("", &NullDeltaSink);
        draft.say("lo", &NullDeltaSink);
        let at = draft.begin("", "", &NullDeltaSink).unwrap();
        draft.name(at, "get_", &NullDeltaSink);
        draft.name(at, "time", &NullDeltaSink);
        draft.argue(at, "{\"zone\":");
        draft.argue(at, "\"UTC\"}");
        let turn = draft.finish(Stop::Done, false, None).unwrap();
        let arguments = Arc::new(json!({"zone": "UTC"}));
        let call = ModelCall { id: "call_1".to_owned(), tool: "get_time".to_owned(), arguments };
        let expected = Turn { text: "Hello".to_owned(), calls: vec![call], ..Turn::default() };
        assert_eq!(turn, expected);
    }

    #[test]
    fn calls_need_a_name_and_are_bounded() {
        let mut draft = Draft::default();
        draft.begin("a", "", &NullDeltaSink).unwrap();
        assert!(matches!(draft.finish(Stop::Done, false, None), Err(Fault::Unreadable(_))));
        let mut draft = Draft::default();
        let begun = (0..=CALLS_MAX).map(|_| draft.begin("a", "t", &NullDeltaSink).is_ok());
        assert_eq!(begun.filter(|begun| *begun).count(), CALLS_MAX);
    }

    #[test]
    fn only_a_complete_answer_is_parsed_into_its_form() {
        let fenced = || {
            let mut draft = Draft::default();
            draft.say("```json\n{}\n```", &NullDeltaSink);
            draft
        };
        assert_eq!(fenced().finish(Stop::Done, true, None).unwrap().text, "{}");
        let cut = fenced().finish(Stop::Length, true, None).unwrap();
        assert_eq!(cut.text, "```json\n{}\n```");
    }
}
