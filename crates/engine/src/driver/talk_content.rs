//! What was said in a conversation: the facts that its lines name, and the blobs that these hold.
//! What a driver has recorded or fetched stays at hand, up to a size; the rest is in the store. Of
//! a large result only what a model is shown of it is kept.

use crate::refusal::{Refusal, Result};
use crate::shared::Shared;
use kernel::contracts::StoreError;
use kernel::conversation::talk::Talk;
use kernel::event::{self, Event, Fact};
use kernel::prompt::transcript::{Journal, RESULT_BYTES_MAX, shown};
use kernel::session::{FrameKind, Session};
use kernel::values::datum::{BlobRef, Datum, DatumValue};
use kernel::values::ids::{ContentHash, SessionKey};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How much of its conversations a session keeps at hand while it is driven.
pub(crate) const KEPT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How many events are read at once.
const EVENTS_PER_READ: u64 = 1_000;
/// Two facts that are not farther apart than this are read together.
const GAP_MAX: u64 = 64;

/// Facts and blobs that are at hand. What was looked for and is gone is noted as such, so that
/// no one looks again.
#[derive(Default)]
pub(crate) struct TalkContent {
    facts: BTreeMap<u64, Option<Arc<Fact>>>,
    blobs: BTreeMap<(ContentHash, BlobUse), Option<BlobContent>>,
    /// About how much that is.
    bytes: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum BlobUse {
    /// As a part of a value: all of it.
    Value,
    /// As a call's output.
    Result,
}

/// The loaded part of a blob.
#[derive(Debug, Clone, PartialEq)]
enum BlobContent {
    Value(Arc<Value>),
    /// The part that a model is shown.
    Shown(Arc<str>),
}

/// What must be loaded for a turn of a conversation.
#[derive(Default)]
pub(crate) struct MissingContent {
    /// Tools that are on their way: an agent must not learn that it has none meanwhile.
    pub(crate) tools: bool,
    sequences: BTreeSet<u64>,
    /// Those of facts that are at hand.
    blobs: Vec<(BlobRef, BlobUse)>,
}

impl MissingContent {
    pub(crate) fn is_nothing(&self) -> bool {
        !self.tools && self.sequences.is_empty() && self.blobs.is_empty()
    }
}

impl TalkContent {
    /// The parts of this conversation that must be loaded first.
    pub(crate) fn missing(&self, talk: &Talk) -> MissingContent {
        let mut missing = MissingContent::default();
        for seq in talk.sequences() {
            match self.facts.get(&seq) {
                None => {
                    missing.sequences.insert(seq);
                }
                Some(Some(fact)) => blobs_of(fact, &mut missing.blobs),
                Some(None) => {}
            }
        }
        missing.blobs.retain(|(blob, how)| !self.blobs.contains_key(&(blob.hash.clone(), *how)));
        missing
    }

    /// Keeps a fact that was recorded just now, if there is room: the store has it as well.
    pub(crate) fn note(&mut self, seq: u64, fact: Fact, bytes_max: usize) {
        let bytes = self.bytes.saturating_add(weight(&fact));
        if bytes <= bytes_max {
            self.bytes = bytes;
            self.facts.insert(seq, Some(Arc::new(fact)));
        }
    }

    /// Takes in what was fetched for this conversation. If that is too much together, what this
    /// conversation does not need goes.
    pub(crate) fn take_in(&mut self, fetched: TalkContent, talk: &Talk, bytes_max: usize) {
        self.facts.extend(fetched.facts);
        self.blobs.extend(fetched.blobs);
        self.bytes = self.bytes.saturating_add(fetched.bytes);
        if self.bytes > bytes_max {
            self.keep_only(talk);
        }
    }

    fn keep_only(&mut self, talk: &Talk) {
        let needed: BTreeSet<u64> = talk.sequences().into_iter().collect();
        self.facts.retain(|seq, _| needed.contains(seq));
        let mut blobs = Vec::new();
        self.facts.values().flatten().for_each(|fact| blobs_of(fact, &mut blobs));
        let bytes: BTreeMap<(ContentHash, BlobUse), u64> =
            blobs.into_iter().map(|(blob, how)| ((blob.hash, how), blob.bytes)).collect();
        self.blobs.retain(|key, _| bytes.contains_key(key));
        let facts: usize = self.facts.values().flatten().map(|fact| weight(fact)).sum();
        let whole = |key| bytes.get(key).copied().unwrap_or_default();
        let blobs = self.blobs.iter().map(|(key, kept)| kept_bytes(whole(key), kept.as_ref()));
        self.bytes = facts.saturating_add(blobs.sum());
    }
}

impl Journal for TalkContent {
    fn fact(&self, seq: u64) -> Option<Arc<Fact>> {
        self.facts.get(&seq).cloned().flatten()
    }

    fn value(&self, datum: &Datum) -> Value {
        match &datum.held {
            DatumValue::Value(value) => (**value).clone(),
            DatumValue::Blob(blob) => match self.blobs.get(&(blob.hash.clone(), BlobUse::Value)) {
                Some(Some(BlobContent::Value(value))) => (**value).clone(),
                Some(Some(BlobContent::Shown(_)) | None) | None => Value::String(blob.uri()),
            },
            DatumValue::Object(fields) => {
                let field = |(key, datum): (&String, &Arc<Datum>)| (key.clone(), self.value(datum));
                Value::Object(fields.iter().map(field).collect())
            }
            DatumValue::Array(items) => items.iter().map(|item| self.value(item)).collect(),
        }
    }

    fn result(&self, output: &Datum, bytes_max: usize) -> String {
        if let DatumValue::Blob(blob) = &output.held
            && let Some(Some(BlobContent::Shown(text))) =
                self.blobs.get(&(blob.hash.clone(), BlobUse::Result))
        {
            return text.to_string();
        }
        shown(&self.value(output), bytes_max)
    }
}

/// Memory of a loaded blob of so many bytes.
fn kept_bytes(bytes: u64, kept: Option<&BlobContent>) -> usize {
    match kept {
        Some(BlobContent::Shown(text)) => text.len(),
        Some(BlobContent::Value(_)) | None => usize::try_from(bytes).unwrap_or(usize::MAX),
    }
}

/// Whether a line of a conversation may name this fact once it is recorded.
pub(crate) fn is_said(session: &Session, fact: &Fact) -> bool {
    match fact {
        Fact::AgentEntered(_) | Fact::TurnFinished(_) | Fact::TalkCompacted { .. } => true,
        Fact::CallFinished { call, .. } => {
            let frame = session.calls.get(call).map(|open| open.request.frame);
            let frame = frame.and_then(|frame| session.frames.get(&frame));
            frame.is_some_and(|frame| matches!(frame.kind, FrameKind::Call { .. }))
        }
        _ => false,
    }
}

/// About how much a fact takes.
fn weight(fact: &Fact) -> usize {
    serde_json::to_string(fact).map_or(0, |text| text.len())
}

/// The blobs that a model has to be shown of a fact.
fn blobs_of(fact: &Fact, found: &mut Vec<(BlobRef, BlobUse)>) {
    match fact {
        Fact::AgentEntered(entry) => blobs_in(&entry.input, found),
        Fact::CallFinished { output, .. } => match &output.held {
            DatumValue::Blob(blob) => found.push((blob.clone(), BlobUse::Result)),
            DatumValue::Value(_) | DatumValue::Object(_) | DatumValue::Array(_) => {
                blobs_in(output, found)
            }
        },
        Fact::BaseSet(base) => {
            base.talk.iter().chain(base.talks.values()).for_each(|talk| blobs_in(talk, found));
        }
        _ => {}
    }
}

fn blobs_in(datum: &Datum, found: &mut Vec<(BlobRef, BlobUse)>) {
    match &datum.held {
        DatumValue::Value(_) => {}
        DatumValue::Blob(blob) => found.push((blob.clone(), BlobUse::Value)),
        DatumValue::Object(fields) => fields.values().for_each(|field| blobs_in(field, found)),
        DatumValue::Array(items) => items.iter().for_each(|item| blobs_in(item, found)),
    }
}

/// Sequences in pieces that are read at once: the first and the last of each.
fn pieces(sequences: &BTreeSet<u64>) -> Vec<(u64, u64)> {
    let mut pieces: Vec<(u64, u64)> = Vec::new();
    for seq in sequences {
        match pieces.last_mut() {
            Some((first, last)) if seq - *last <= GAP_MAX && seq - *first < EVENTS_PER_READ => {
                *last = *seq;
            }
            _ => pieces.push((*seq, *seq)),
        }
    }
    pieces
}

impl Shared {
    /// Waits for the tools that are missing and fetches the rest; what is not there any more is
    /// noted as gone.
    pub(crate) async fn gather(
        &self,
        key: &SessionKey,
        missing: MissingContent,
    ) -> Result<TalkContent> {
        let MissingContent { tools, sequences, mut blobs } = missing;
        if tools {
            self.gate.arrivals.wait(self.clock.as_ref()).await;
        }
        let mut said = TalkContent::default();
        for (first, last) in pieces(&sequences) {
            for (seq, text) in self.events_between(key, first, last).await? {
                if sequences.contains(&seq) {
                    let fact = read_event(&text)?.fact;
                    said.bytes = said.bytes.saturating_add(text.len());
                    blobs_of(&fact, &mut blobs);
                    said.facts.insert(seq, Some(Arc::new(fact)));
                }
            }
        }
        for seq in sequences {
            said.facts.entry(seq).or_insert(None);
        }
        for (BlobRef { hash, bytes }, how) in blobs {
            if !said.blobs.contains_key(&(hash.clone(), how)) {
                let value = self.blob_value(&key.realm, &hash).await?;
                let kept = value.map(|value| match how {
                    BlobUse::Value => BlobContent::Value(Arc::new(value)),
                    BlobUse::Result => BlobContent::Shown(shown(&value, RESULT_BYTES_MAX).into()),
                });
                said.bytes = said.bytes.saturating_add(kept_bytes(bytes, kept.as_ref()));
                said.blobs.insert((hash, how), kept);
            }
        }
        Ok(said)
    }

    /// The events of these sequences that are still there.
    pub(crate) async fn events_between(
        &self,
        key: &SessionKey,
        first: u64,
        last: u64,
    ) -> Result<Vec<(u64, String)>> {
        let count = |from: u64| usize::try_from(last - from + 1).unwrap_or(usize::MAX);
        match self.store.events(key, first - 1, count(first)).await {
            Ok(events) => Ok(events),
            // The beginning is gone, and what stands in its place is read from 0 on.
            Err(StoreError::Gone(oldest)) if oldest <= last => {
                Ok(self.store.events(key, 0, count(oldest)).await?)
            }
            Err(StoreError::Gone(_)) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }
}

/// The event that a text of the journal is.
pub(crate) fn read_event(text: &str) -> Result<Event> {
    let events = event::read(&format!("[{text}]"));
    let events = events.map_err(|error| Refusal::unreadable(error.to_string()))?;
    events.into_iter().next().ok_or_else(|| Refusal::unreadable("an event is empty"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::conversation::talk::Line;
    use kernel::event::AgentEntry;
    use kernel::values::datum::Origin;
    use kernel::values::ids::{CallId, FrameId};
    use serde_json::json;

    fn entered(input: Datum) -> Fact {
        Fact::AgentEntered(Box::new(AgentEntry {
            frame: FrameId(1),
            step: "work".into(),
            agent: "a".into(),
            input: Arc::new(input),
            continues: true,
            keeps: None,
            commands: false,
            save_as: "answer".into(),
            next: None,
        }))
    }

    fn inline(text: &str) -> Fact {
        entered(Datum::inline(json!(text), Origin::Input))
    }

    fn talk(sequences: &[u64]) -> Talk {
        Talk { lines: sequences.iter().map(|seq| Line::User(*seq)).collect() }
    }

    #[test]
    fn nearby_events_are_read_in_one_query() {
        let sequences = BTreeSet::from([3, 4, 60, 200, 201, 1_500]);
        assert_eq!(pieces(&sequences), [(3, 60), (200, 201), (1_500, 1_500)]);
    }

    #[test]
    fn facts_and_blobs_are_missing_until_loaded() {
        let mut said = TalkContent::default();
        said.note(3, inline("hi"), 10_000);
        let blob = BlobRef { hash: ContentHash::of(b"large"), bytes: 9 };
        let held = DatumValue::Blob(blob.clone());
        let large = Datum { held, from: Origin::Input, labels: Vec::new() };
        said.note(5, entered(large.clone()), 10_000);
        let both = talk(&[3, 5, 7]);
        let missing = said.missing(&both);
        assert_eq!((missing.sequences.len(), missing.blobs.len()), (1, 1));
        assert_eq!(said.value(&large), json!(blob.uri()));
        let fetched = TalkContent {
            facts: BTreeMap::from([(7, None)]),
            blobs: BTreeMap::from([(
                (blob.hash, BlobUse::Value),
                Some(BlobContent::Value(Arc::new(json!([1])))),
            )]),
            bytes: 9,
        };
        said.take_in(fetched, &both, 10_000);
        assert!(said.missing(&both).is_nothing(), "what is gone is not looked for again");
        assert_eq!(said.value(&large), json!([1]));
    }

    #[test]
    fn only_the_shown_part_of_a_large_result_counts() {
        let blob = BlobRef { hash: ContentHash::of(b"large"), bytes: 1_000_000 };
        let held = DatumValue::Blob(blob.clone());
        let output = Arc::new(Datum { held, from: Origin::Input, labels: Vec::new() });
        let finished = Fact::CallFinished {
            call: CallId(1),
            output: output.clone(),
            settled: None,
            published: Vec::new(),
        };
        let mut said = TalkContent::default();
        said.note(3, finished, 10_000);
        let talk = talk(&[3]);
        let missing = said.missing(&talk);
        assert_eq!(missing.blobs, [(blob.clone(), BlobUse::Result)]);
        let text: Arc<str> = shown(&json!("x".repeat(1_000_000)), 100).into();
        let fetched = TalkContent {
            facts: BTreeMap::new(),
            bytes: text.len(),
            blobs: BTreeMap::from([(
                (blob.hash, BlobUse::Result),
                Some(BlobContent::Shown(text.clone())),
            )]),
        };
        said.take_in(fetched, &talk, 10);
        assert!(said.missing(&talk).is_nothing());
        assert_eq!(said.result(&output, 100), *text);
        assert!(said.bytes < 1_000, "{} bytes", said.bytes);
    }

    #[test]
    fn unneeded_content_is_evicted_at_the_size_limit() {
        let mut said = TalkContent::default();
        said.note(1, inline(&"x".repeat(100)), 300);
        said.note(2, inline(&"y".repeat(100)), 300);
        assert!(said.missing(&talk(&[2])).sequences.contains(&2), "there is no room for both");
        let fetched = TalkContent {
            facts: BTreeMap::from([(2, Some(Arc::new(inline(&"y".repeat(100)))))]),
            blobs: BTreeMap::new(),
            bytes: 200,
        };
        said.take_in(fetched, &talk(&[2]), 300);
        assert!(said.missing(&talk(&[2])).is_nothing());
        assert!(said.fact(1).is_none());
    }
}
