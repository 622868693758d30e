//! Parses a message, streamed or whole: blocks of text, thinking and tool calls.

use super::PROVIDER;
use super::error;
use super::request::{TEXT, THOUGHTS, TOOL_USE};
use crate::dialect::{Fault, Flow, Reply, Result, read_json};
use crate::draft::Draft;
use crate::provider_error::text;
use kernel::conversation::llm::{DeltaSink, Native, Stop, Turn, Usage};
use outbound::sse::Event;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A message that is being read.
#[derive(Default)]
pub(super) struct MessageReply {
    model: String,
    form: bool,
    draft: Draft,
    /// By their indexes, which are their order.
    blocks: BTreeMap<u64, Block>,
    counts: Counts,
    stop: Option<Stop>,
    /// Why it refuses, in the provider's words.
    explanation: String,
    /// The end marker came.
    ended: bool,
}

/// One block of the message.
enum Block {
    Text(String),
    /// A thought, as it is given back.
    Thought(Value),
    /// A call by its place, and the arguments that came with its beginning.
    Call {
        at: usize,
        given: Value,
    },
    Other,
}

/// Tokens as they are reported: later events replace what earlier ones said.
#[derive(Default)]
struct Counts {
    input: u64,
    cache_written: u64,
    cached: u64,
    output: u64,
}

impl MessageReply {
    /// An answer of this model; `form` says whether it is to be JSON.
    pub(super) fn new(model: &str, form: bool) -> Self {
        Self { model: model.to_owned(), form, ..Self::default() }
    }

    fn begin(&mut self, index: u64, block: &Value, sink: &dyn DeltaSink) -> Result<()> {
        let begun = match text(block, "type") {
            TEXT => {
                let said = text(block, "text");
                self.draft.say(said, sink);
                Block::Text(said.to_owned())
            }
            TOOL_USE => {
                let at = self.draft.begin(text(block, "id"), text(block, "name"), sink)?;
                Block::Call { at, given: block["input"].clone() }
            }
            kind if THOUGHTS.contains(&kind) => Block::Thought(block.clone()),
            _ => Block::Other,
        };
        self.blocks.insert(index, begun);
        Ok(())
    }

    fn more(&mut self, index: u64, delta: &Value, sink: &dyn DeltaSink) -> Result<()> {
        let Some(block) = self.blocks.get_mut(&index) else {
            return Err(Fault::unreadable("continues a block that it did not begin"));
        };
        match (block, text(delta, "type")) {
            (Block::Text(said), "text_delta") => {
                let more = text(delta, "text");
                said.push_str(more);
                self.draft.say(more, sink);
            }
            (Block::Call { at, .. }, "input_json_delta") => {
                self.draft.argue(*at, text(delta, "partial_json"));
            }
            (Block::Thought(thought), "thinking_delta") => {
                extend(thought, "thinking", text(delta, "thinking"));
            }
            (Block::Thought(thought), "signature_delta") => {
                extend(thought, "signature", text(delta, "signature"));
            }
            // New kinds of deltas may come at any time.
            _ => {}
        }
        Ok(())
    }

    fn stopped(&mut self, told: &Value) {
        let Some(reason) = told["stop_reason"].as_str() else {
            return;
        };
        self.stop = Some(match reason {
            "max_tokens" | "model_context_window_exceeded" | "pause_turn" => Stop::Length,
            "refusal" => Stop::Refused,
            _ => Stop::Done,
        });
        text(&told["stop_details"], "explanation").clone_into(&mut self.explanation);
    }

    fn count(&mut self, usage: &Value) {
        let counts = &mut self.counts;
        for (name, count) in [
            ("input_tokens", &mut counts.input),
            ("cache_creation_input_tokens", &mut counts.cache_written),
            ("cache_read_input_tokens", &mut counts.cached),
            ("output_tokens", &mut counts.output),
        ] {
            if let Some(told) = usage[name].as_u64() {
                *count = told;
            }
        }
    }

    /// Members that must be returned: thoughts, and the blocks between them.
    fn native(&self) -> Option<Native> {
        let thinks = self.blocks.values().any(|block| matches!(block, Block::Thought(_)));
        if !thinks {
            return None;
        }
        let written = |block: &Block| match block {
            Block::Text(said) => Some(json!({"type": TEXT, "text": said})),
            Block::Thought(thought) => Some(thought.clone()),
            Block::Call { at, .. } => {
                let call = self.draft.calls.get(*at)?;
                Some(json!({"type": TOOL_USE, "name": call.tool}))
            }
            Block::Other => None,
        };
        let blocks: Vec<Value> = self.blocks.values().filter_map(written).collect();
        let content = json!({"model": self.model, "blocks": blocks});
        Some(Native { provider: PROVIDER.to_owned(), content })
    }
}

impl Reply for MessageReply {
    fn event(&mut self, event: &Event, sink: &dyn DeltaSink) -> Result<Flow> {
        let told = read_json(event)?;
        let index = told["index"].as_u64().unwrap_or_default();
        match text(&told, "type") {
            "message_start" => self.count(&told["message"]["usage"]),
            "content_block_start" => self.begin(index, &told["content_block"], sink)?,
            "content_block_delta" => self.more(index, &told["delta"], sink)?,
            "message_delta" => {
                self.stopped(&told["delta"]);
                self.count(&told["usage"]);
            }
            "message_stop" => {
                self.ended = true;
                return Ok(Flow::Done);
            }
            "error" => return Err(Fault::Provider(error::classify(None, &told))),
            // `ping`, `content_block_stop`, and what may come to be.
            _ => {}
        }
        Ok(Flow::More)
    }

    fn whole(&mut self, body: &Value, sink: &dyn DeltaSink) -> Result<()> {
        if text(body, "type") == "error" {
            return Err(Fault::Provider(error::classify(None, body)));
        }
        let Some(blocks) = body["content"].as_array() else {
            return Err(Fault::unreadable("answered with JSON that is no message"));
        };
        for (index, block) in blocks.iter().enumerate() {
            self.begin(index as u64, block, sink)?;
        }
        self.stopped(body);
        self.count(&body["usage"]);
        self.ended = true;
        Ok(())
    }

    fn finish(mut self) -> Result<Turn> {
        if !self.ended {
            return Err(Fault::Cut);
        }
        for block in self.blocks.values() {
            if let Block::Call { at, given } = block
                && let Some(call) = self.draft.calls.get_mut(*at)
                && call.arguments.is_empty()
                && given.is_object()
            {
                call.arguments = given.to_string();
            }
        }
        let Counts { input, cache_written, cached, output } = self.counts;
        let input = input + cache_written + cached;
        self.draft.usage = Usage { input, cached, cache_written, output };
        let stop = self.stop.unwrap_or_default();
        let native = self.native();
        if stop == Stop::Refused && self.draft.text.is_empty() {
            self.draft.text = self.explanation;
        }
        self.draft.finish(stop, self.form, native)
    }
}

fn extend(thought: &mut Value, name: &str, more: &str) {
    let known = text(thought, name).to_owned();
    thought[name] = json!(known + more);
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::conversation::llm::{LlmErrorKind, NullDeltaSink};

    fn read(events: &[Value]) -> Result<Turn> {
        let mut reply = MessageReply::new("m", false);
        for event in events {
            let name = event["type"].as_str().unwrap_or_default().to_owned();
            let done = name == "message_stop";
            let event = Event { id: None, name, data: event.to_string() };
            let flow = reply.event(&event, &NullDeltaSink)?;
            assert_eq!(flow == Flow::Done, done);
        }
        reply.finish()
    }

    fn start() -> Value {
        let usage = json!({"input_tokens": 10, "cache_read_input_tokens": 5,
            "cache_creation_input_tokens": 2, "output_tokens": 1});
        json!({"type": "message_start", "message": {"content": [], "usage": usage}})
    }

    fn block(index: u64, block: Value) -> Value {
        json!({"type": "content_block_start", "index": index, "content_block": block})
    }

    fn delta(index: u64, delta: Value) -> Value {
        json!({"type": "content_block_delta", "index": index, "delta": delta})
    }

    fn end(reason: &str) -> [Value; 2] {
        let usage = json!({"output_tokens": 7});
        let details = json!({"explanation": "Not this."});
        let delta = json!({"stop_reason": reason, "stop_details": details});
        [
            json!({"type": "message_delta", "delta": delta, "usage": usage}),
            json!({"type": "message_stop"}),
        ]
    }

    #[test]
    fn stream_events_make_a_turn() {
        let mut events = vec![
            start(),
            json!({"type": "ping"}),
            block(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
            delta(0, json!({"type": "thinking_delta", "thinking": "Let me"})),
            delta(0, json!({"type": "thinking_delta", "thinking": " see."})),
            delta(0, json!({"type": "signature_delta", "signature": "s1"})),
            json!({"type": "content_block_stop", "index": 0}),
            block(1, json!({"type": "text", "text": ""})),
            delta(1, json!({"type": "text_delta", "text": "I'll"})),
            delta(1, json!({"type": "text_delta", "text": " look."})),
            block(2, json!({"type": "tool_use", "id": "toolu_1", "name": "t", "input": {}})),
            delta(2, json!({"type": "input_json_delta", "partial_json": "{\"x\""})),
            delta(2, json!({"type": "input_json_delta", "partial_json": ":1}"})),
            block(3, json!({"type": "tool_use", "id": "toolu_2", "name": "u", "input": {}})),
        ];
        events.extend(end("tool_use"));
        let turn = read(&events).unwrap();
        assert_eq!(turn.text, "I'll look.");
        let calls: Vec<(&str, &str, String)> = turn
            .calls
            .iter()
            .map(|call| (&*call.id, &*call.tool, call.arguments.to_string()))
            .collect();
        let expected =
            [("toolu_1", "t", "{\"x\":1}".to_owned()), ("toolu_2", "u", "{}".to_owned())];
        assert_eq!(calls, expected);
        assert_eq!(turn.usage, Usage { input: 17, cached: 5, cache_written: 2, output: 7 });
        assert_eq!(turn.stop, Stop::Done);
        let blocks = json!([
            {"type": "thinking", "thinking": "Let me see.", "signature": "s1"},
            {"type": "text", "text": "I'll look."},
            {"type": "tool_use", "name": "t"},
            {"type": "tool_use", "name": "u"},
        ]);
        assert_eq!(turn.native.unwrap().content, json!({"model": "m", "blocks": blocks}));
    }

    #[test]
    fn an_incomplete_stream_is_an_error() {
        let said = block(0, json!({"type": "text", "text": "Hel"}));
        assert_eq!(read(&[start(), said.clone()]), Err(Fault::Cut));
        let [reasoned, _] = end("end_turn");
        assert_eq!(read(&[start(), said, reasoned]), Err(Fault::Cut));
    }

    #[test]
    fn stop_reasons_are_mapped() {
        let turn = |reason: &str| {
            let [reasoned, stopped] = end(reason);
            read(&[start(), reasoned, stopped]).unwrap()
        };
        assert_eq!(turn("max_tokens").stop, Stop::Length);
        assert_eq!(turn("model_context_window_exceeded").stop, Stop::Length);
        assert_eq!(turn("end_turn").stop, Stop::Done);
        assert_eq!(turn("end_turn").native, None);
        let refused = turn("refusal");
        assert_eq!((refused.stop, refused.text.as_str()), (Stop::Refused, "Not this."));
    }

    #[test]
    fn an_error_event_in_a_stream_fails_the_turn() {
        let error = json!({"type": "overloaded_error", "message": "Overloaded"});
        let read = read(&[start(), json!({"type": "error", "error": error})]);
        let Err(Fault::Provider(told)) = &read else { panic!("{read:?}") };
        assert_eq!(told.kind, LlmErrorKind::Overloaded);
    }

    #[test]
    fn a_stream_without_its_first_event_is_unreadable() {
        let lost = delta(3, json!({"type": "text_delta", "text": "x"}));
        assert!(matches!(read(&[start(), lost]), Err(Fault::Unreadable(_))));
    }

    #[test]
    fn a_whole_answer_is_read_like_a_stream() {
        let content = json!([
            {"type": "redacted_thinking", "data": "d"},
            {"type": "text", "text": "Hi"},
            {"type": "tool_use", "id": "a", "name": "t", "input": {"x": 1}},
            {"type": "something_new"},
        ]);
        let usage = json!({"input_tokens": 1, "output_tokens": 2});
        let body = json!({"type": "message", "content": content, "stop_reason": "tool_use",
            "usage": usage});
        let mut reply = MessageReply::new("m", false);
        reply.whole(&body, &NullDeltaSink).unwrap();
        let turn = reply.finish().unwrap();
        assert_eq!(turn.text, "Hi");
        assert_eq!(*turn.calls[0].arguments, json!({"x": 1}));
        assert_eq!(turn.usage, Usage { input: 1, output: 2, ..Usage::default() });
        assert_eq!(turn.native.unwrap().content["blocks"][0]["data"], "d");
        let mut reply = MessageReply::new("m", false);
        assert!(reply.whole(&json!({"hello": 1}), &NullDeltaSink).is_err());
    }
}
