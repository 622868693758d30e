//! Parses a chat completion, streamed or whole. Servers differ in how they send calls: with or
//! without index and id, in parts or at once.

use super::PROVIDER;
use super::error;
use super::request::{EXTRA, THOUGHTS};
use crate::dialect::{Fault, Flow, Reply, Result, read_json};
use crate::draft::Draft;
use crate::provider_error::text;
use kernel::conversation::llm::{DeltaSink, Native, Stop, Turn, Usage};
use outbound::sse::Event;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const END: &str = "[DONE]";

/// An answer that is being read.
#[derive(Default)]
pub(super) struct ChatReply {
    model: String,
    form: bool,
    draft: Draft,
    /// Which call an index means at the moment.
    open: BTreeMap<u64, usize>,
    refusal: String,
    /// The model's thoughts, by the field in which they came.
    thoughts: Map<String, Value>,
    /// What came with a call beside it, by the call's place.
    extras: BTreeMap<usize, Value>,
    stop: Option<Stop>,
}

impl ChatReply {
    /// An answer of this model; `form` says whether it is to be JSON.
    pub(super) fn new(model: &str, form: bool) -> Self {
        Self { model: model.to_owned(), form, ..Self::default() }
    }

    /// A chunk's choice, or that of a whole answer.
    fn choice(&mut self, choice: &Value, part: &Value, sink: &dyn DeltaSink) -> Result<()> {
        self.content(&part["content"], sink);
        self.refusal.push_str(text(part, "refusal"));
        for name in THOUGHTS {
            let more = text(part, name);
            if !more.is_empty() {
                let known = text_in(&self.thoughts, name).to_owned();
                self.thoughts.insert((*name).to_owned(), json!(known + more));
            }
        }
        let calls = part["tool_calls"].as_array().into_iter().flatten();
        for (position, call) in calls.enumerate() {
            self.call(position as u64, call, sink)?;
        }
        if let Some(reason) = choice["finish_reason"].as_str().filter(|reason| !reason.is_empty()) {
            self.stop = Some(stop_of(reason));
        }
        Ok(())
    }

    /// A text, or parts of one.
    fn content(&mut self, content: &Value, sink: &dyn DeltaSink) {
        match content {
            Value::String(text) => self.draft.say(text, sink),
            Value::Array(parts) => parts.iter().for_each(|part| {
                self.draft.say(text(part, "text"), sink);
            }),
            _ => {}
        }
    }

    fn call(&mut self, position: u64, call: &Value, sink: &dyn DeltaSink) -> Result<()> {
        let id = text(call, "id");
        let name = text(&call["function"], "name");
        let index = call["index"].as_u64();
        let key = index.unwrap_or(position);
        let known = self.open.get(&key).copied();
        let at = match known.filter(|at| !self.is_another(*at, id, name, index.is_some())) {
            Some(at) => {
                self.draft.name(at, name, sink);
                at
            }
            None => self.draft.begin(id, name, sink)?,
        };
        self.open.insert(key, at);
        match &call["function"]["arguments"] {
            Value::String(more) => self.draft.argue(at, more),
            Value::Null => {}
            // Some send the arguments themselves instead of their text.
            whole => self.draft.argue(at, &whole.to_string()),
        }
        if let Some(extra) = call.get(EXTRA).filter(|extra| !extra.is_null()) {
            self.extras.insert(at, extra.clone());
        }
        Ok(())
    }

    /// Whether a part begins another call although its index is known: some servers give every call
    /// the same index, or none.
    fn is_another(&self, at: usize, id: &str, name: &str, indexed: bool) -> bool {
        let Some(known) = self.draft.calls.get(at) else {
            return true;
        };
        if name.is_empty() {
            return false;
        }
        let other_id = !id.is_empty() && !known.id.is_empty() && id != known.id;
        other_id || (!indexed && id.is_empty() && !known.arguments.is_empty())
    }

    fn usage(&mut self, usage: &Value) {
        if !usage.is_object() {
            return;
        }
        let count = |value: &Value| value.as_u64().unwrap_or_default();
        let details = count(&usage["prompt_tokens_details"]["cached_tokens"]);
        self.draft.usage = Usage {
            input: count(&usage["prompt_tokens"]),
            cached: details.max(count(&usage["prompt_cache_hit_tokens"])),
            cache_written: 0,
            output: count(&usage["completion_tokens"]),
        };
    }

    fn native(&mut self) -> Option<Native> {
        if self.thoughts.is_empty() && self.extras.is_empty() {
            return None;
        }
        let mut content = std::mem::take(&mut self.thoughts);
        content.insert("model".to_owned(), json!(self.model));
        if !self.extras.is_empty() {
            let extra = |at: usize| self.extras.get(&at).cloned().unwrap_or_default();
            let extras: Vec<Value> = (0..self.draft.calls.len()).map(extra).collect();
            content.insert("extras".to_owned(), Value::Array(extras));
        }
        Some(Native { provider: PROVIDER.to_owned(), content: Value::Object(content) })
    }
}

impl Reply for ChatReply {
    fn event(&mut self, event: &Event, sink: &dyn DeltaSink) -> Result<Flow> {
        if event.data.trim() == END {
            // The end without a reason is an end as well.
            self.stop = self.stop.or(Some(Stop::Done));
            return Ok(Flow::Done);
        }
        let chunk = read_json(event)?;
        if chunk.get("error").is_some_and(|error| !error.is_null()) {
            return Err(Fault::Provider(error::classify(None, &chunk)));
        }
        self.usage(&chunk["usage"]);
        let choice = &chunk["choices"][0];
        self.choice(choice, &choice["delta"], sink)?;
        Ok(Flow::More)
    }

    fn whole(&mut self, body: &Value, sink: &dyn DeltaSink) -> Result<()> {
        if body.get("error").is_some_and(|error| !error.is_null()) {
            return Err(Fault::Provider(error::classify(None, body)));
        }
        let choice = &body["choices"][0];
        if !choice["message"].is_object() {
            return Err(Fault::unreadable("answered with JSON that is no chat completion"));
        }
        self.usage(&body["usage"]);
        self.choice(choice, &choice["message"], sink)?;
        self.stop = self.stop.or(Some(Stop::Done));
        Ok(())
    }

    fn finish(mut self) -> Result<Turn> {
        let mut stop = self.stop.ok_or(Fault::Cut)?;
        if !self.refusal.is_empty() {
            stop = Stop::Refused;
            self.draft.text.push_str(&self.refusal);
        }
        let native = self.native();
        self.draft.finish(stop, self.form, native)
    }
}

fn stop_of(reason: &str) -> Stop {
    match reason {
        "length" | "max_tokens" => Stop::Length,
        "content_filter" | "refusal" => Stop::Refused,
        // `stop`, `tool_calls`, and what other servers call the same.
        _ => Stop::Done,
    }
}

fn text_in<'m>(map: &'m Map<String, Value>, name: &str) -> &'m str {
    map.get(name).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::conversation::llm::{Delta, LlmErrorKind, NullDeltaSink};
    use std::sync::Mutex;

    #[derive(Default)]
    struct Heard(Mutex<Vec<Delta>>);

    impl DeltaSink for Heard {
        fn delta(&self, delta: Delta) {
            self.0.lock().unwrap().push(delta);
        }
    }

    fn read(chunks: &[Value], done: bool) -> Result<Turn> {
        let mut reply = ChatReply::new("m", false);
        let event = |data: String| Event { data, ..Event::default() };
        for chunk in chunks {
            assert_eq!(reply.event(&event(chunk.to_string()), &NullDeltaSink)?, Flow::More);
        }
        if done {
            assert_eq!(reply.event(&event(END.to_owned()), &NullDeltaSink)?, Flow::Done);
        }
        reply.finish()
    }

    fn delta(delta: Value) -> Value {
        json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}], "usage": null})
    }

    fn finish(reason: &str) -> Value {
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    }

    fn calls(turn: &Turn) -> Vec<(&str, &str, String)> {
        let calls = turn.calls.iter();
        calls.map(|call| (&*call.id, &*call.tool, call.arguments.to_string())).collect()
    }

    #[test]
    fn stream_chunks_make_a_turn() {
        let details = json!({"cached_tokens": 3});
        let usage = json!({"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 14,
            "prompt_tokens_details": details});
        let turn = read(
            &[
                delta(json!({"role": "assistant", "content": ""})),
                delta(json!({"content": "Hel"})),
                delta(json!({"content": "lo"})),
                finish("stop"),
                json!({"choices": [], "usage": usage}),
            ],
            true,
        );
        let usage = Usage { input: 10, cached: 3, cache_written: 0, output: 4 };
        assert_eq!(turn, Ok(Turn { text: "Hello".to_owned(), usage, ..Turn::default() }));
    }

    #[test]
    fn partial_calls_are_assembled_in_any_form() {
        let call = |index: Value, id: Value, name: Value, arguments: Value| {
            let function = json!({"name": name, "arguments": arguments});
            delta(json!({"tool_calls": [{"index": index, "id": id, "function": function}]}))
        };
        let null = Value::Null;
        let expected = vec![("a", "t", "{\"x\":1}".to_owned()), ("b", "t", "{\"x\":2}".to_owned())];
        // As OpenAI does.
        let turn = read(
            &[
                call(json!(0), json!("a"), json!("t"), json!("")),
                call(json!(0), null.clone(), null.clone(), json!("{\"x\":")),
                call(json!(0), null.clone(), null.clone(), json!("1}")),
                call(json!(1), json!("b"), json!("t"), json!("{\"x\":2}")),
                finish("tool_calls"),
            ],
            true,
        );
        assert_eq!(calls(&turn.unwrap()), expected);
        // The same index for all; a name with every part; an object for a text.
        let turn = read(
            &[
                call(json!(0), json!("a"), json!("t"), json!("{\"x\":")),
                call(json!(0), json!("a"), json!("t"), json!("1}")),
                call(json!(0), json!("b"), json!("t"), json!({"x": 2})),
                finish("stop"),
            ],
            true,
        );
        assert_eq!(calls(&turn.unwrap()), expected);
        // No index and no id.
        let turn = read(
            &[
                call(null.clone(), null.clone(), json!("t"), json!("{\"x\":1}")),
                call(null.clone(), null, json!("t"), json!("{\"x\":2}")),
            ],
            true,
        );
        let ids: Vec<String> = turn.unwrap().calls.into_iter().map(|call| call.id).collect();
        assert_eq!(ids, ["call_1", "call_2"]);
    }

    #[test]
    fn an_incomplete_stream_is_an_error() {
        assert_eq!(read(&[delta(json!({"content": "Hel"}))], false), Err(Fault::Cut));
        assert_eq!(read(&[], false), Err(Fault::Cut));
        let reasoned = read(&[delta(json!({"content": "Hi"})), finish("stop")], false);
        assert_eq!(
            reasoned.map(|turn| turn.text),
            Ok("Hi".to_owned()),
            "the model said it is done"
        );
    }

    #[test]
    fn stop_reasons_are_mapped() {
        let stop = |reason: &str| read(&[finish(reason)], true).unwrap().stop;
        assert_eq!(stop("length"), Stop::Length);
        assert_eq!(stop("content_filter"), Stop::Refused);
        assert_eq!(stop("eos"), Stop::Done);
        let turn = read(&[delta(json!({"refusal": "I will not."})), finish("stop")], true).unwrap();
        assert_eq!((turn.stop, turn.text.as_str()), (Stop::Refused, "I will not."));
    }

    #[test]
    fn an_error_event_in_a_stream_fails_the_turn() {
        let error = json!({"error": {"message": "broken", "type": "server_error"}});
        let read = read(&[delta(json!({"content": "Hel"})), error], true);
        let Err(Fault::Provider(told)) = &read else { panic!("{read:?}") };
        assert_eq!((told.kind, told.words.as_str()), (LlmErrorKind::Overloaded, "broken"));
        let mut reply = ChatReply::new("m", false);
        let garbage = Event { data: "{\"choi".to_owned(), ..Event::default() };
        assert!(matches!(reply.event(&garbage, &NullDeltaSink), Err(Fault::Unreadable(_))));
    }

    #[test]
    fn a_whole_answer_is_read_like_a_stream() {
        let message = json!({
            "role": "assistant",
            "content": [{"type": "text", "text": "Hi"}],
            "reasoning_content": "Hm.",
            "tool_calls": [{
                "id": "a",
                "type": "function",
                "function": {"name": "t", "arguments": "{}"},
                "extra_content": {"google": 1},
            }],
        });
        let choice = json!({"index": 0, "message": message, "finish_reason": "tool_calls"});
        let mut reply = ChatReply::new("m", false);
        let heard = Heard::default();
        reply.whole(&json!({"choices": [choice]}), &heard).unwrap();
        let turn = reply.finish().unwrap();
        assert_eq!(turn.text, "Hi");
        assert_eq!(calls(&turn), [("a", "t", "{}".to_owned())]);
        let content = json!({"model": "m", "reasoning_content": "Hm.", "extras": [{"google": 1}]});
        assert_eq!(turn.native.unwrap().content, content);
        let deltas = [Delta::Text("Hi".to_owned()), Delta::Call("t".to_owned())];
        assert_eq!(*heard.0.lock().unwrap(), deltas);
        let mut reply = ChatReply::new("m", false);
        assert!(reply.whole(&json!({"hello": 1}), &NullDeltaSink).is_err());
    }

    #[test]
    fn reasoning_is_kept_and_not_shown() {
        let chunks = [
            delta(json!({"reasoning_content": "Let "})),
            delta(json!({"reasoning_content": "me see"})),
            delta(json!({"content": "Yes"})),
            finish("stop"),
        ];
        let turn = read(&chunks, true).unwrap();
        assert_eq!(turn.text, "Yes");
        let content = json!({"model": "m", "reasoning_content": "Let me see"});
        assert_eq!(turn.native.unwrap().content, content);
    }
}
