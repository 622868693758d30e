//! Removes the old runs of a session that is still in use: reads the journal up to the cut,
//! computes the base event that replaces it, and lets the store swap them.

use crate::driver::talk_content::{TalkContent, read_event};
use crate::handles::Admin;
use crate::refusal::{Refusal, RefusalCode, Result};
use kernel::contracts::{RealmSet, Slice, StoreError, Trimmable};
use kernel::conversation::llm::Message;
use kernel::conversation::talk::Talk;
use kernel::event::{Event, Fact};
use kernel::journal::trim::{Cut, Cutter, Trim};
use kernel::prompt::transcript::{RESULT_BYTES_MAX, render};
use kernel::values::datum::{Datum, Origin};
use kernel::values::ids::{Millis, SessionKey};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many events are read at once.
const EVENTS_PER_READ: usize = 1_000;
/// How many events one commit removes, if there is a place to cut: a long journal goes piece by
/// piece, so that no commit holds up the others for long.
const EVENTS_PER_TRIM: u64 = 10_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TrimReport {
    pub(crate) runs: u64,
    /// Rows of the store, of all kinds.
    pub(crate) rows: u64,
}

impl TrimReport {
    fn add(&mut self, other: TrimReport) {
        self.runs += other.runs;
        self.rows += other.rows;
    }
}

impl Admin<'_> {
    /// Removes runs that ended before this and that are not the newest of their session, as far as
    /// nothing that stays stands before them.
    pub(crate) async fn trim_before(
        self,
        realms: RealmSet<'_>,
        before: Millis,
    ) -> Result<TrimReport> {
        let shared = self.shared;
        let limit = shared.limits.prune_batch_max.max(1);
        let mut trimmed = TrimReport::default();
        let mut after = None;
        loop {
            let found = shared.store.trimmable(realms, before, Slice { after, limit }).await?;
            for old in &found {
                match self.trim_session(old, before).await {
                    Ok(more) => trimmed.add(more),
                    // One session that cannot be read does not keep the others.
                    Err(refusal) if refusal.code == RefusalCode::Unreadable => {
                        let session = &old.key.id;
                        let why = &refusal.message;
                        tracing::warn!(%session, "old runs cannot be removed: {why}");
                    }
                    Err(refusal) => return Err(refusal),
                }
            }
            match found.last() {
                Some(last) if found.len() >= limit => after = Some(last.cursor),
                _ => return Ok(trimmed),
            }
        }
    }

    /// Piece by piece, until nothing more can go.
    async fn trim_session(self, old: &Trimmable, before: Millis) -> Result<TrimReport> {
        let shared = self.shared;
        let mut trimmed = TrimReport::default();
        let mut fence = old.fence;
        while let Some(cut) = self.cut(old, before).await? {
            let cut = self.with_talk(&old.key, cut).await?;
            let trim = Trim {
                key: old.key.clone(),
                id: old.id,
                fence,
                before,
                seq: cut.base.seq,
                base: written(&cut.base)?,
                last_run: cut.last_run,
            };
            // The driver of a session will let go of it; there is no hurry. And a caller that comes
            // now finds the session as it is after this, not as it was before.
            let Some(_hold) = shared.hold(&old.key) else { break };
            // Refused: it has changed or was removed meanwhile.
            let Some(rows) = shared.store.trim(trim).await? else { break };
            fence = fence.next();
            trimmed.add(TrimReport { runs: u64::from(cut.runs), rows });
        }
        Ok(trimmed)
    }

    /// The cut with what was said before it: the events that its lines name will be gone.
    async fn with_talk(self, key: &SessionKey, mut cut: Cut) -> Result<Cut> {
        let whole = match cut.talk.lines.is_empty() {
            true => None,
            false => Some(self.stored_talk(key, &cut.talk).await?),
        };
        let mut by_agent = BTreeMap::new();
        for (agent, talk) in &cut.talks {
            by_agent.insert(agent.clone(), self.stored_talk(key, talk).await?);
        }
        if let Fact::BaseSet(base) = &mut cut.base.fact {
            base.talk = whole;
            base.talks = by_agent;
        }
        Ok(cut)
    }

    /// The part of a conversation that a base stores.
    async fn stored_talk(self, key: &SessionKey, talk: &Talk) -> Result<Arc<Datum>> {
        let shared = self.shared;
        let said = shared.gather(key, TalkContent::default().missing(talk)).await?;
        let mut messages = render(talk, &said, RESULT_BYTES_MAX);
        if key.space.pipeline().is_some() {
            // Each cut adds to what the last one left: without an end that would grow for ever.
            leave_behind(&mut messages, shared.limits.case_requests_read_max);
        }
        let mut talk = Datum::inline(json!(messages), Origin::Join);
        if let Some(bytes) = talk.spill(shared.limits.context_inline_bytes_max) {
            shared.blobs.put(&key.realm, bytes).await?;
        }
        Ok(Arc::new(talk))
    }

    /// Where the journal can be cut next, if it can.
    async fn cut(self, old: &Trimmable, before: Millis) -> Result<Option<Cut>> {
        let mut cutter = Cutter::new(old.id, old.key.clone(), before, old.keeps);
        let mut taken = 0;
        loop {
            let read = self.shared.store.events(&old.key, cutter.seq(), EVENTS_PER_READ).await;
            let texts = match read {
                Ok(texts) => texts,
                // Someone else trimmed it while we read.
                Err(StoreError::Gone(_)) => return Ok(None),
                Err(error) => return Err(error.into()),
            };
            let mut goes_on = !texts.is_empty();
            for (_, text) in &texts {
                goes_on = goes_on && cutter.take(&read_event(text)?);
            }
            taken += texts.len() as u64;
            let enough = taken >= EVENTS_PER_TRIM && cutter.found().is_some();
            if !goes_on || enough {
                return Ok(cutter.found().cloned());
            }
        }
    }
}

/// Drops what stands before so many of the newest requests.
fn leave_behind(messages: &mut Vec<Message>, requests_max: u32) {
    let asked =
        |(at, message): (usize, &Message)| matches!(message, Message::User { .. }).then_some(at);
    let mut newest = messages.iter().enumerate().rev().filter_map(asked);
    let first = match requests_max {
        0 => messages.len(),
        max => newest.nth(max as usize - 1).unwrap_or(0),
    };
    messages.drain(..first);
}

fn written(base: &Event) -> Result<String> {
    serde_json::to_string(base).map_err(|error| {
        let message = format!("a session's base cannot be written as JSON: {error}");
        Refusal::new(RefusalCode::Unwritable, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_requests_stay_with_what_came_of_them() {
        let said = |text: &str| match text.strip_prefix("user ") {
            Some(asked) => Message::User { text: asked.to_owned() },
            None => Message::System { text: text.to_owned() },
        };
        let left = |requests_max: u32| {
            let mut messages: Vec<Message> =
                ["before", "user 1", "one", "user 2", "two"].map(said).to_vec();
            leave_behind(&mut messages, requests_max);
            messages.len()
        };
        assert_eq!([0, 1, 2, 3].map(left), [0, 2, 4, 5]);
    }
}
