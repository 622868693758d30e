//! The values and the subject of a fact: which values may be large and about how large they are;
//! and which run a fact belongs to, where several runs of a session are active.

use super::{Event, Fact, Outcome, QueuedRun, Topic};
use crate::values::datum::{BlobRef, Datum, DatumValue, value_weight};
use crate::values::ids::{ContentHash, FrameId};
use std::collections::BTreeSet;
use std::sync::Arc;

/// About how many bytes a fact takes in the journal besides the values that it carries.
const FACT_BYTES: u64 = 200;

impl Fact {
    /// About how many bytes it takes, in the journal and in the blob that it names.
    pub fn weight(&self) -> u64 {
        let carried = match self {
            // Its answer was counted when it was given.
            Fact::RunEnded { .. } => 0,
            _ => self.datum().map_or(0, |datum| datum.weight()),
        };
        let beside = match self {
            Fact::CorrectionEntered(entry) => entry.drafted.as_deref().map_or(0, value_weight),
            Fact::ProposalGiven(end) => end.found.weight(),
            Fact::MessageReceived(received) => {
                received.files.iter().map(|file| file.bytes).fold(0, u64::saturating_add)
            }
            Fact::CallRequested(request) => value_weight(&request.arguments),
            Fact::CallWants { state, .. } => value_weight(state),
            _ => 0,
        };
        FACT_BYTES + carried.saturating_add(beside)
    }

    /// The value inside that may be large.
    fn datum(&self) -> Option<&Arc<Datum>> {
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
            | Fact::AgentAnswered { answer: datum, .. } => Some(datum),
            Fact::LoopStarted(start) => Some(&start.items),
            Fact::PlanEntered(entry) => Some(&entry.input),
            Fact::CorrectionEntered(entry) => Some(&entry.input),
            Fact::AgentEntered(entry) => Some(&entry.input),
            Fact::MessageReceived(received) => Some(&received.message),
            _ => None,
        }
    }

    /// The same, to be changed: the engine moves it to a blob before it is recorded.
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
            Fact::MessageReceived(received) => Some(&mut received.message),
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
            match fact {
                Fact::FramesJoined { blob: Some(BlobRef { hash, .. }), .. } => {
                    held.insert(hash.clone());
                }
                Fact::MessageReceived(received) => {
                    held.extend(received.files.iter().map(|file| file.hash.clone()));
                }
                Fact::BaseSet(base) => {
                    let data = base.context.values().chain(&base.talk).chain(base.talks.values());
                    data.for_each(|datum| add_held(datum, &mut held));
                }
                _ => {}
            }
            if let Some(datum) = fact.datum() {
                add_held(datum, &mut held);
            }
        }
        held
    }
}

fn add_held(datum: &Datum, held: &mut BTreeSet<ContentHash>) {
    match &datum.held {
        DatumValue::Value(_) => {}
        DatumValue::Blob(blob) => {
            held.insert(blob.hash.clone());
        }
        DatumValue::Object(fields) => fields.values().for_each(|field| add_held(field, held)),
        DatumValue::Array(items) => items.iter().for_each(|item| add_held(item, held)),
    }
}

impl Fact {
    /// What the fact is about.
    pub fn topic(&self) -> Topic {
        match self {
            Fact::RunStarted { run, .. }
            | Fact::RunHeld { run, .. }
            | Fact::RunQueued(QueuedRun { run, .. })
            | Fact::RunClaimed { run, .. }
            | Fact::RunPaused { run, .. }
            | Fact::RunContinued { run, .. }
            | Fact::RunClosing { run, .. }
            | Fact::RunEnded { run, .. } => Topic::Run(*run),
            Fact::AskOpened(ask) => Topic::Run(ask.run),
            Fact::MessageReceived(received) => Topic::Run(received.run),
            Fact::CallRequested(request) => Topic::Frame(request.frame),
            Fact::CallJudged { call, .. }
            | Fact::CallStarted { call, .. }
            | Fact::CallWants { call, .. }
            | Fact::CallResumed { call, .. }
            | Fact::CallFinished { call, .. }
            | Fact::CallFailed { call, .. }
            | Fact::CallLate { call, .. } => Topic::Call(*call),
            Fact::AskDecided { ask, .. }
            | Fact::AskExpired { ask }
            | Fact::AskWithdrawn { ask } => Topic::Ask(*ask),
            Fact::SessionCreated { .. }
            | Fact::SessionForked { .. }
            | Fact::BaseSet(_)
            | Fact::TimerSet { .. }
            | Fact::TimerFired { .. } => Topic::Session,
            Fact::StepChosen { frame, .. }
            | Fact::StepFailed { frame, .. }
            | Fact::EventPublished { frame, .. }
            | Fact::StepSkipped { frame, .. }
            | Fact::StepDiverted { frame, .. }
            | Fact::InputGiven { frame, .. }
            | Fact::BranchesStarted { frame, .. }
            | Fact::ItemStarted { frame, .. }
            | Fact::ItemFailing { frame, .. }
            | Fact::ItemFailed { frame, .. }
            | Fact::FrameWaits { frame }
            | Fact::FrameEnded { frame }
            | Fact::FrameCancelled { frame }
            | Fact::FramesJoined { frame, .. }
            | Fact::PlanReturned { frame, .. }
            | Fact::AnswerGiven { frame, .. }
            | Fact::TurnFailed { frame, .. }
            | Fact::ResultsGiven { frame, .. }
            | Fact::AgentAnswered { frame, .. } => Topic::Frame(*frame),
            Fact::StepRetried(again) => Topic::Frame(again.frame),
            Fact::LoopStarted(start) => Topic::Frame(start.frame),
            Fact::PlanEntered(entry) => Topic::Frame(entry.frame),
            Fact::CorrectionEntered(entry) => Topic::Frame(entry.frame),
            Fact::CorrectionEnded(end) => Topic::Frame(end.frame),
            Fact::ProposalAsked(start) => Topic::Frame(start.frame),
            Fact::ProposalGiven(end) => Topic::Frame(end.frame),
            Fact::AgentEntered(entry) => Topic::Frame(entry.frame),
            Fact::TurnStarted(start) => Topic::Frame(start.frame),
            Fact::TurnFinished(end) => Topic::Frame(end.frame),
            Fact::TalkCompacted { turn, .. } => Topic::Frame(turn.frame),
        }
    }

    /// The frames that begin with it, below the one that it happened in.
    pub fn children(&self) -> Vec<FrameId> {
        match self {
            Fact::BranchesStarted { branches, .. } => {
                branches.iter().map(|branch| branch.frame).collect()
            }
            Fact::ItemStarted { child, .. } => vec![*child],
            Fact::PlanEntered(entry) => vec![entry.child],
            Fact::CorrectionEntered(entry) => vec![entry.child],
            Fact::TurnFinished(end) => end.calls.iter().filter_map(|made| made.frame).collect(),
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{ReceivedMessage, VERSION};
    use crate::values::datum::{Origin, blobs_named};
    use crate::values::ids::{CallId, FrameId, Millis, RunId};
    use serde_json::json;

    fn blob(text: &str) -> BlobRef {
        BlobRef { hash: ContentHash::of(text.as_bytes()), bytes: 9 }
    }

    #[test]
    fn only_blob_values_hold_blobs_and_not_text_that_looks_like_one() {
        let stored = |text: &str| Arc::new(Datum::stored(blob(text), Origin::Input));
        let joined = Datum::joined(DatumValue::Array(vec![stored("a"), stored("b")]));
        let reference = json!({"blob": blob("c"), "from": "input"});
        let words = Datum::inline(json!([blob("d").uri(), reference]), Origin::Input);
        let late = |datum: Datum| Fact::CallLate { call: CallId(1), result: Ok(Arc::new(datum)) };
        let of_join =
            Fact::FramesJoined { frame: FrameId(1), step: "join".into(), blob: Some(blob("e")) };
        let message = Datum::inline(json!({"url": blob("f").uri()}), Origin::Input);
        let received = Fact::MessageReceived(Box::new(ReceivedMessage {
            run: RunId(1),
            id: "m".into(),
            message: Arc::new(message),
            files: vec![blob("f")],
            misfit: None,
        }));
        let facts = [late(joined), late(words), of_join, received];
        let event = |(seq, fact)| Event { seq, at: Millis(1), v: VERSION, fact };
        let events: Vec<Event> = (1..).zip(facts).map(event).collect();
        let hashes = |texts: &[&str]| -> BTreeSet<ContentHash> {
            texts.iter().map(|text| blob(text).hash).collect()
        };
        assert_eq!(Event::held_blobs(&events), hashes(&["a", "b", "e", "f"]));
        let text = serde_json::to_string(&events).unwrap();
        assert_eq!(blobs_named(&text), hashes(&["a", "b", "c", "d", "e", "f"]));
    }
}
