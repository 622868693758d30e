//! Parses content, streamed or whole: parts of text and calls, some with thought signatures.

use super::PROVIDER;
use super::error;
use super::request::SIGNATURE;
use crate::dialect::{Fault, Flow, Reply, Result, read_json};
use crate::draft::Draft;
use crate::provider_error::text;
use kernel::conversation::llm::{DeltaSink, Native, Stop, Turn, Usage};
use outbound::sse::Event;
use serde_json::{Value, json};

/// Reasons for which it does not answer.
const REFUSALS: &[&str] =
    &["SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"];

/// An answer that is being read.
#[derive(Default)]
pub(super) struct ContentReply {
    model: String,
    form: bool,
    draft: Draft,
    /// Texts and calls as they are given back, with their signatures.
    parts: Vec<Value>,
    signed: bool,
    /// Why it ended: the provider's word, and its words.
    ended: Option<(String, String)>,
    /// The prompt itself was refused.
    blocked: bool,
}

impl ContentReply {
    /// An answer of this model; `form` says whether it is to be JSON.
    pub(super) fn new(model: &str, form: bool) -> Self {
        Self { model: model.to_owned(), form, ..Self::default() }
    }

    fn chunk(&mut self, chunk: &Value, sink: &dyn DeltaSink) -> Result<()> {
        if chunk.get("error").is_some_and(|error| !error.is_null()) {
            return Err(Fault::Provider(error::classify(None, chunk)));
        }
        self.blocked |= chunk["promptFeedback"]["blockReason"].is_string();
        self.usage(&chunk["usageMetadata"]);
        let candidate = &chunk["candidates"][0];
        for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
            self.part(part, sink)?;
        }
        if let Some(reason) = candidate["finishReason"].as_str() {
            let words = text(candidate, "finishMessage");
            self.ended = Some((reason.to_owned(), words.to_owned()));
        }
        Ok(())
    }

    fn part(&mut self, part: &Value, sink: &dyn DeltaSink) -> Result<()> {
        let mut kept = if let Some(call) = part.get("functionCall") {
            let name = text(call, "name");
            let at = self.draft.begin(text(call, "id"), name, sink)?;
            if call["args"].is_object() {
                self.draft.argue(at, &call["args"].to_string());
            }
            json!({"functionCall": name})
        } else if part["thought"] == true {
            // A summary of its thoughts, for people who ask for one.
            return Ok(());
        } else if let Some(said) = part["text"].as_str() {
            self.draft.say(said, sink);
            json!({"text": said})
        } else {
            return Ok(());
        };
        match part.get(SIGNATURE).filter(|signature| signature.is_string()) {
            Some(signature) => {
                kept[SIGNATURE] = signature.clone();
                self.signed = true;
                self.parts.push(kept);
            }
            // An empty text that no one signed is not taken back.
            None if kept["text"] == "" => {}
            None => self.keep(kept),
        }
        Ok(())
    }

    /// Text without a signature joins the text before it, if that has none either.
    fn keep(&mut self, part: Value) {
        if let Some(more) = part["text"].as_str()
            && let Some(last) = self.parts.last_mut()
            && last.get(SIGNATURE).is_none()
            && let Some(known) = last["text"].as_str()
        {
            last["text"] = json!(format!("{known}{more}"));
            return;
        }
        self.parts.push(part);
    }

    fn usage(&mut self, usage: &Value) {
        if !usage.is_object() {
            return;
        }
        let count = |name: &str| usage[name].as_u64().unwrap_or_default();
        self.draft.usage = Usage {
            input: count("promptTokenCount") + count("toolUsePromptTokenCount"),
            cached: count("cachedContentTokenCount"),
            cache_written: 0,
            output: count("candidatesTokenCount") + count("thoughtsTokenCount"),
        };
    }

    fn stop(&self) -> Result<Stop> {
        let Some((reason, words)) = &self.ended else {
            return if self.blocked { Ok(Stop::Refused) } else { Err(Fault::Cut) };
        };
        match reason.as_str() {
            "STOP" => Ok(Stop::Done),
            "MAX_TOKENS" | "CONTINUATION" => Ok(Stop::Length),
            reason if REFUSALS.contains(&reason) => Ok(Stop::Refused),
            // A call that cannot be read, and whatever else ends an answer before it is one.
            reason => Err(Fault::unreadable(format!("ended its answer with `{reason}`: {words}"))),
        }
    }
}

impl Reply for ContentReply {
    fn event(&mut self, event: &Event, sink: &dyn DeltaSink) -> Result<Flow> {
        self.chunk(&read_json(event)?, sink)?;
        // There is no end marker: what ends it has a reason, and counts may come after that.
        Ok(Flow::More)
    }

    fn whole(&mut self, body: &Value, sink: &dyn DeltaSink) -> Result<()> {
        let chunks = match body {
            // Where events are not known, a stream is an array.
            Value::Array(chunks) => chunks.as_slice(),
            whole => std::slice::from_ref(whole),
        };
        let is_content = |chunk: &Value| {
            ["candidates", "promptFeedback", "error"].iter().any(|name| chunk.get(name).is_some())
        };
        if !chunks.iter().any(is_content) {
            return Err(Fault::unreadable("answered with JSON that is no content"));
        }
        chunks.iter().try_for_each(|chunk| self.chunk(chunk, sink))
    }

    fn finish(self) -> Result<Turn> {
        let stop = self.stop()?;
        let content = json!({"model": self.model, "parts": self.parts});
        let native = Native { provider: PROVIDER.to_owned(), content };
        self.draft.finish(stop, self.form, self.signed.then_some(native))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::conversation::llm::{LlmErrorKind, NullDeltaSink};

    fn read(chunks: &[Value]) -> Result<Turn> {
        let mut reply = ContentReply::new("m", false);
        for chunk in chunks {
            let event = Event { data: chunk.to_string(), ..Event::default() };
            assert_eq!(reply.event(&event, &NullDeltaSink)?, Flow::More);
        }
        reply.finish()
    }

    fn parts(parts: Value) -> Value {
        json!({"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}]})
    }

    fn end(reason: &str) -> Value {
        let candidate = json!({"content": {"role": "model", "parts": []}, "finishReason": reason});
        let usage = json!({"promptTokenCount": 10, "cachedContentTokenCount": 4,
            "candidatesTokenCount": 3, "thoughtsTokenCount": 2, "totalTokenCount": 15});
        json!({"candidates": [candidate], "usageMetadata": usage})
    }

    #[test]
    fn stream_chunks_make_a_turn() {
        let turn = read(&[
            parts(json!([{"text": "Hm, let me think.", "thought": true}])),
            parts(json!([{"text": "Hel"}])),
            parts(json!([{"text": "lo"}])),
            end("STOP"),
        ]);
        let usage = Usage { input: 10, cached: 4, cache_written: 0, output: 5 };
        assert_eq!(turn, Ok(Turn { text: "Hello".to_owned(), usage, ..Turn::default() }));
    }

    #[test]
    fn calls_keep_their_thought_signatures() {
        let call = |id: Value, args: Value| json!({"id": id, "name": "t", "args": args});
        let turn = read(&[
            parts(json!([{"text": "We"}])),
            parts(json!([{"text": "ll."}])),
            parts(json!([
                {"functionCall": call(json!("f1"), json!({"x": 1})), "thoughtSignature": "s1"},
                {"functionCall": call(Value::Null, Value::Null)},
            ])),
            parts(json!([{"text": "", "thoughtSignature": "s2"}])),
            end("STOP"),
        ])
        .unwrap();
        let calls: Vec<(&str, String)> =
            turn.calls.iter().map(|call| (&*call.id, call.arguments.to_string())).collect();
        assert_eq!(calls, [("f1", "{\"x\":1}".to_owned()), ("call_2", "{}".to_owned())]);
        let expected = json!([
            {"text": "Well."},
            {"functionCall": "t", "thoughtSignature": "s1"},
            {"functionCall": "t"},
            {"text": "", "thoughtSignature": "s2"},
        ]);
        assert_eq!(turn.native.unwrap().content, json!({"model": "m", "parts": expected}));
    }

    #[test]
    fn a_stream_without_a_finish_reason_is_an_error() {
        assert_eq!(read(&[parts(json!([{"text": "Hel"}]))]), Err(Fault::Cut));
        assert_eq!(read(&[]), Err(Fault::Cut));
    }

    #[test]
    fn stop_reasons_are_mapped() {
        let stop = |reason: &str| read(&[end(reason)]).map(|turn| turn.stop);
        assert_eq!(stop("MAX_TOKENS"), Ok(Stop::Length));
        assert_eq!(stop("SAFETY"), Ok(Stop::Refused));
        assert!(matches!(stop("MALFORMED_FUNCTION_CALL"), Err(Fault::Unreadable(_))));
        let blocked = json!({"promptFeedback": {"blockReason": "SAFETY"}});
        assert_eq!(read(&[blocked]).map(|turn| turn.stop), Ok(Stop::Refused));
    }

    #[test]
    fn an_error_event_in_a_stream_fails_the_turn() {
        let error = json!({"error": {"code": 503, "message": "x", "status": "UNAVAILABLE"}});
        let read = read(&[parts(json!([{"text": "Hel"}])), error]);
        let Err(Fault::Provider(told)) = &read else { panic!("{read:?}") };
        assert_eq!(told.kind, LlmErrorKind::Overloaded);
    }

    #[test]
    fn a_whole_answer_is_read_like_a_stream() {
        let whole = |body: Value| {
            let mut reply = ContentReply::new("m", false);
            reply.whole(&body, &NullDeltaSink)?;
            reply.finish().map(|turn| turn.text)
        };
        let mut body = end("STOP");
        body["candidates"][0]["content"]["parts"] = json!([{"text": "Hi"}]);
        assert_eq!(whole(body), Ok("Hi".to_owned()));
        let array =
            json!([parts(json!([{"text": "H"}])), parts(json!([{"text": "i"}])), end("STOP")]);
        assert_eq!(whole(array), Ok("Hi".to_owned()));
        assert!(matches!(whole(json!({"hello": 1})), Err(Fault::Unreadable(_))));
    }
}
