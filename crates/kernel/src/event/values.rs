//! The values that facts carry: which of them may be large, and about how much they take.

use super::{Event, Fact, Outcome};
use crate::values::datum::{BlobRef, Datum, Held, value_weight};
use crate::values::ids::ContentHash;
use std::collections::BTreeSet;
use std::sync::Arc;

/// About how many bytes a fact takes in the journal besides the values that it carries.
const FACT_BYTES: u64 = 200;

impl Fact {
    /// About how many bytes it takes, in the journal and in the blob that it names.
    pub fn weight(&self) -> u64 {
        let data = match self {
            Fact::RunStarted { input: datum, .. }
            | Fact::CallFinished { output: datum, .. }
            | Fact::InputGiven { value: datum, .. }
            | Fact::PlanReturned { answer: datum, .. }
            | Fact::AnswerGiven { answer: datum, .. }
            | Fact::StepSkipped { save: Some((_, datum)), .. }
            | Fact::CallFailed { said: Some(datum), .. }
            | Fact::CallLate { result: Ok(datum), .. }
            | Fact::ItemStarted { item: datum, .. }
            | Fact::AgentAnswered { answer: datum, .. } => datum.weight(),
            Fact::LoopStarted(start) => start.items.weight(),
            Fact::PlanEntered(entry) => entry.input.weight(),
            Fact::CorrectionEntered(entry) => {
                let drafted = entry.drafted.as_deref().map_or(0, value_weight);
                entry.input.weight().saturating_add(drafted)
            }
            Fact::ProposalGiven(end) => end.found.weight(),
            Fact::AgentEntered(entry) => entry.input.weight(),
            Fact::CallRequested(request) => value_weight(&request.arguments),
            Fact::CallWants { state, .. } => value_weight(state),
            _ => 0,
        };
        FACT_BYTES + data
    }

    /// The data inside, as far as blobs can be in it.
    fn data(&self) -> Vec<&Arc<Datum>> {
        match self {
            Fact::RunStarted { input: datum, .. }
            | Fact::CallFinished { output: datum, .. }
            | Fact::InputGiven { value: datum, .. }
            | Fact::PlanReturned { answer: datum, .. }
            | Fact::AnswerGiven { answer: datum, .. }
            | Fact::StepSkipped { save: Some((_, datum)), .. }
            | Fact::CallFailed { said: Some(datum), .. }
            | Fact::CallLate { result: Ok(datum), .. }
            | Fact::RunEnded { outcome: Outcome::Completed { answer: datum }, .. }
            | Fact::ItemStarted { item: datum, .. }
            | Fact::AgentAnswered { answer: datum, .. } => vec![datum],
            Fact::LoopStarted(start) => vec![&start.items],
            Fact::PlanEntered(entry) => vec![&entry.input],
            Fact::CorrectionEntered(entry) => vec![&entry.input],
            Fact::AgentEntered(entry) => vec![&entry.input],
            Fact::BaseSet(base) => base.context.values().chain(&base.talk).collect(),
            _ => Vec::new(),
        }
    }

    /// The data inside that may be large; the engine moves it to blobs before it is recorded.
    pub fn data_mut(&mut self) -> Option<&mut Arc<Datum>> {
        match self {
            Fact::RunStarted { input, .. } => Some(input),
            Fact::CallFinished { output, .. } => Some(output),
            Fact::InputGiven { value, .. } => Some(value),
            Fact::PlanReturned { answer, .. } | Fact::AnswerGiven { answer, .. } => Some(answer),
            Fact::StepSkipped { save: Some((_, datum)), .. } => Some(datum),
            Fact::CallFailed { said: Some(datum), .. } => Some(datum),
            Fact::CallLate { result: Ok(datum), .. } => Some(datum),
            Fact::RunEnded { outcome: Outcome::Completed { answer }, .. } => Some(answer),
            Fact::LoopStarted(start) => Some(&mut start.items),
            Fact::ItemStarted { item, .. } => Some(item),
            Fact::PlanEntered(entry) => Some(&mut entry.input),
            Fact::CorrectionEntered(entry) => Some(&mut entry.input),
            Fact::AgentEntered(entry) => Some(&mut entry.input),
            Fact::AgentAnswered { answer, .. } => Some(answer),
            _ => None,
        }
    }
}

impl Event {
    /// The blobs that hold values of these events. A text that only mentions a blob holds nothing.
    pub fn held_blobs(events: &[Self]) -> BTreeSet<ContentHash> {
        let mut held = BTreeSet::new();
        for Self { fact, .. } in events {
            if let Fact::FramesJoined { blob: Some(BlobRef { hash, .. }), .. } = fact {
                held.insert(hash.clone());
            }
            fact.data().into_iter().for_each(|datum| add_held(datum, &mut held));
        }
        held
    }
}

fn add_held(datum: &Datum, held: &mut BTreeSet<ContentHash>) {
    match &datum.held {
        Held::Value(_) => {}
        Held::Blob(blob) => {
            held.insert(blob.hash.clone());
        }
        Held::Object(fields) => fields.values().for_each(|field| add_held(field, held)),
        Held::Array(items) => items.iter().for_each(|item| add_held(item, held)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::VERSION;
    use crate::values::datum::{Origin, blobs_named};
    use crate::values::ids::{CallId, FrameId, Millis};
    use serde_json::json;

    fn blob(text: &str) -> BlobRef {
        BlobRef { hash: ContentHash::of(text.as_bytes()), bytes: 9 }
    }

    #[test]
    fn a_blob_is_held_by_a_value_and_not_by_a_text_that_looks_like_one() {
        let stored = |text: &str| Arc::new(Datum::stored(blob(text), Origin::Input));
        let joined = Datum::joined(Held::Array(vec![stored("a"), stored("b")]));
        let reference = json!({"blob": blob("c"), "from": "input"});
        let words = Datum::inline(json!([blob("d").uri(), reference]), Origin::Input);
        let late = |datum: Datum| Fact::CallLate { call: CallId(1), result: Ok(Arc::new(datum)) };
        let of_join =
            Fact::FramesJoined { frame: FrameId(1), step: "join".into(), blob: Some(blob("e")) };
        let facts = [late(joined), late(words), of_join];
        let event = |(seq, fact)| Event { seq, at: Millis(1), v: VERSION, fact };
        let events: Vec<Event> = (1..).zip(facts).map(event).collect();
        let hashes = |texts: &[&str]| -> BTreeSet<ContentHash> {
            texts.iter().map(|text| blob(text).hash).collect()
        };
        assert_eq!(Event::held_blobs(&events), hashes(&["a", "b", "e"]));
        let text = serde_json::to_string(&events).unwrap();
        assert_eq!(blobs_named(&text), hashes(&["a", "b", "c", "d", "e"]));
    }
}
