//! The judge. It notes everything that was acknowledged to anyone, sees the feed as it goes by, and
//! at the end, when nothing fails any more, holds the store against its notes, the journals and the
//! ledger of real effects.

use super::journal::Story;
use super::messages::Messages;
use super::tally::{blobs_of, tally};
use super::truth::Truth;
use super::values::{input_of, opened};
use crate::sim::coverage::{Counts, Seen};
use crate::sim::machine::archive::runs_gone;
use crate::sim::outside::tools::Ledger;
use crate::sim::programs::reference::answers;
use engine::{ReplyReport, RunReport};
use kernel::ask::{Decision, Reply};
use kernel::contracts::{Blobs, FeedRow, LoadResult, SessionRef, Store, StoreError};
use kernel::event::{self, Event};
use kernel::journal::projection::{RunRow, SessionRow, session_row};
use kernel::session::{RunStatus, Session};
use kernel::values::ids::{AskId, ContentHash, Fence, RealmId, RunId, SessionId, SessionKey};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// How many findings are kept; the first ones tell the most.
const WRONG_MAX: usize = 20;
/// More events than any session of a simulation has.
const EVENTS_MAX: usize = 100_000;

/// What the world outside learned.
#[derive(Debug, Default)]
pub struct Oracle {
    /// Runs that were acknowledged, as they were last shown.
    runs: BTreeMap<RunId, RunRow>,
    /// Decisions that were acknowledged.
    decisions: BTreeMap<AskId, Decision>,
    /// Winning replies as losers were shown them.
    shown: Vec<(AskId, Reply)>,
    /// The run that each keyed request started.
    keyed: BTreeMap<String, RunId>,
    /// Keys that started another run after this one: it must be gone.
    rekeyed: Vec<(String, RunId)>,
    /// Answers by message.
    messages: Messages,
    /// Sessions that were made as copies.
    forks: BTreeSet<SessionId>,
    /// Where the feed was read to, and the last event of each session in it.
    cursor: u64,
    fed: BTreeMap<SessionId, u64>,
    /// The blobs that committed rows named.
    named: BTreeSet<ContentHash>,
    /// What the journals went through.
    counts: Counts,
    /// Rows of the feed were removed before they were read.
    missed: bool,
    wrong: Vec<String>,
}

impl Oracle {
    /// Something is wrong.
    pub fn accuse(&mut self, what: impl Into<String>) {
        if self.wrong.len() < WRONG_MAX {
            self.wrong.push(what.into());
        }
    }

    pub fn wrong(&self) -> &[String] {
        &self.wrong
    }

    /// How many runs were acknowledged.
    pub fn runs(&self) -> usize {
        self.runs.len()
    }

    /// The blobs that committed rows name, as far as the feed has shown them.
    pub fn named(&self) -> impl Iterator<Item = &ContentHash> {
        self.named.iter()
    }

    /// What the journals went through.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// So many of these were met.
    pub fn count(&mut self, seen: Seen, times: u64) {
        *self.counts.entry(seen).or_default() += times;
    }

    /// The runs, sessions and asks that someone learned of.
    pub fn known(&self) -> (Vec<RunId>, Vec<SessionId>, Vec<AskId>) {
        let runs = self.runs.keys();
        let asks = self.decisions.keys();
        (runs.copied().collect(), self.fed.keys().copied().collect(), asks.copied().collect())
    }

    /// A run was shown to someone. An answer that was on its way while the run ended may come after
    /// the end was shown; that the end stays is judged in the store.
    pub fn shown_run(&mut self, row: &RunRow) {
        let over = self.runs.get(&row.id).filter(|before| before.status.is_over());
        match over {
            Some(before) if row.status.is_over() && before != row => {
                self.accuse(format!("run {} was over and is shown otherwise: {row:?}", row.id));
            }
            Some(_) => {}
            None => {
                self.runs.insert(row.id, row.clone());
            }
        }
    }

    /// A report was given to someone.
    pub fn shown_report(&mut self, report: &RunReport) {
        self.shown_run(&report.run);
    }

    /// A keyed request was answered.
    pub fn shown_keyed(&mut self, key: String, report: &RunReport) {
        self.shown_report(report);
        let run = report.run.id;
        let other = self.keyed.iter().find(|(other, of)| **of == run && **other != key);
        let wrong = other.map(|(other, _)| format!("`{other}` and `{key}` are both of run {run}"));
        wrong.into_iter().for_each(|wrong| self.accuse(wrong));
        let before = self.keyed.insert(key.clone(), run);
        self.rekeyed.extend(before.filter(|before| *before != run).map(|before| (key, before)));
    }

    /// Answers by message.
    pub fn messages(&mut self) -> &mut Messages {
        &mut self.messages
    }

    /// A copy of a session was acknowledged.
    pub fn shown_fork(&mut self, session: SessionId) {
        self.forks.insert(session);
    }

    /// A reply was answered.
    pub fn shown_reply(&mut self, report: &ReplyReport) {
        self.shown_report(&report.run);
        let row = &report.ask.row;
        let Some(decision) = &row.decision else { return };
        let before = self.decisions.insert(row.ask.id, decision.clone());
        if before.is_some_and(|before| before != *decision) {
            self.accuse(format!("ask {} was decided twice", row.ask.id));
        }
    }

    /// A loser was shown the reply that won.
    pub fn shown_winner(&mut self, ask: AskId, decision: &Decision) {
        self.shown.push((ask, decision.reply.clone()));
    }

    /// Where the feed is to be read from.
    pub fn cursor(&self) -> u64 {
        self.cursor
    }

    /// Rows up to this one were removed before they were read: the feed is followed from there on.
    pub fn missed(&mut self, gone: u64) {
        self.cursor = gone;
        self.fed.clear();
        self.missed = true;
    }

    /// Rows of the feed went by.
    pub fn feed(&mut self, rows: &[FeedRow]) {
        for row in rows {
            if row.cursor <= self.cursor {
                let cursor = self.cursor;
                self.accuse(format!("the feed goes back from {cursor} to {}", row.cursor));
            }
            self.cursor = row.cursor;
            let events = event::read(&row.body).unwrap_or_default();
            let Some(first) = events.first() else {
                self.accuse(format!("row {} of the feed cannot be read", row.cursor));
                continue;
            };
            let known = self.fed.get(&row.session).copied();
            let before = known.unwrap_or(0);
            let may_begin_anywhere = known.is_none() && self.missed;
            if first.seq != before + 1 && !may_begin_anywhere {
                let seq = first.seq;
                self.accuse(format!(
                    "the feed gives event {seq} of {} after {before}",
                    row.session
                ));
            }
            self.named.extend(events.iter().flat_map(|event| blobs_of(&event.fact)));
            let last = events.last().map_or(before, |event| event.seq);
            self.fed.insert(row.session, last);
        }
    }

    /// Holds everything against the store, in which nothing moves any more.
    pub async fn judge(
        &mut self,
        store: &dyn Store,
        realm: &RealmId,
        sessions: &[SessionRow],
        truth: &Truth<'_>,
    ) -> Result<(), StoreError> {
        // What was named by what retention removed since may be gone.
        self.named.clear();
        let mut stories = Vec::new();
        let mut whole_sessions = BTreeSet::new();
        for row in sessions {
            let left = self.journal(store, row).await?;
            self.named.extend(left.iter().flat_map(|event| blobs_of(&event.fact)));
            let whole = truth.archive.whole(row.id, &left);
            tally(&whole).into_iter().for_each(|(seen, times)| self.count(seen, times));
            let misjudged = truth.changes.map(|changes| changes.misjudged(realm, &whole));
            misjudged.into_iter().flatten().for_each(|wrong| self.accuse(wrong));
            let story = self.story(row.id, &row.key, &whole);
            self.base(&left, &story);
            let gone = runs_gone(&left);
            if gone == 0 {
                whole_sessions.insert(row.id);
            }
            self.lists(store, realm, &story, gone).await?;
            self.snapshot(store, row, &story).await?;
            self.was_fed(row, &story);
            stories.push(story);
        }
        for (id, key) in truth.archive.sessions(realm) {
            if !sessions.iter().any(|row| row.id == id) {
                let story = self.story(id, &key, &truth.archive.whole(id, &[]));
                if !story.session.runs.is_empty() {
                    self.accuse(format!("session {} was removed with an active run", key.id));
                }
                stories.push(story);
            }
        }
        for fork in std::mem::take(&mut self.forks) {
            if !stories.iter().any(|story| story.session.id == fork) {
                self.accuse(format!("copy {fork} was acknowledged and is lost"));
            }
        }
        for (key, run) in std::mem::take(&mut self.rekeyed) {
            if store.run(realm, run).await?.is_some() {
                self.accuse(format!("key {key} started another run, and {run} is there"));
            }
        }
        for story in &stories {
            let wrong = story.recovery.judge(story.session.id, &truth.crashes);
            wrong.into_iter().for_each(|wrong| self.accuse(wrong));
            let late = truth.rule_timing.as_ref().map(|timing| story.rule_delays.judge(timing));
            late.into_iter().flatten().for_each(|wrong| self.accuse(wrong));
        }
        self.promises(&stories);
        self.messages.judge(&stories).into_iter().for_each(|wrong| self.accuse(wrong));
        self.effects(&stories, realm, truth.ledger);
        self.blobs(realm, truth.blobs).await;
        // Blobs of what was removed may be gone too.
        stories.retain(|story| whole_sessions.contains(&story.session.id));
        self.answers(&stories, realm, truth).await;
        Ok(())
    }

    /// What a committed row names can be read.
    async fn blobs(&mut self, realm: &RealmId, blobs: &dyn Blobs) {
        for hash in std::mem::take(&mut self.named) {
            match blobs.get(realm, &hash).await {
                Ok(Some(_)) => {}
                Ok(None) => self.accuse(format!("blob {hash} is named and is not there")),
                Err(error) => self.accuse(format!("blob {hash} is named and is lost: {error}")),
            }
        }
    }

    fn story(&mut self, id: SessionId, key: &SessionKey, events: &[Event]) -> Story {
        let story = Story::read(id, key.clone(), events);
        for wrong in &story.wrong {
            self.accuse(format!("session {}: {wrong}", key.id));
        }
        story
    }

    /// What is left of a journal adds up to what the whole of it adds up to.
    fn base(&mut self, left: &[Event], story: &Story) {
        let mut session = Session::new(story.session.id, story.session.key.clone());
        for event in left {
            session.apply(event);
        }
        if session != story.session {
            let name = &session.key.id;
            self.accuse(format!("what retention left of {name} adds up to another state"));
        }
    }

    fn was_fed(&mut self, row: &SessionRow, story: &Story) {
        let known = self.fed.get(&row.id).copied();
        let seq = story.session.seq;
        let fed = known.unwrap_or(0);
        if fed != seq && (known.is_some() || !self.missed) {
            self.accuse(format!("the feed gave {fed} events of {}, it has {seq}", row.key.id));
        }
    }

    async fn journal(
        &mut self,
        store: &dyn Store,
        row: &SessionRow,
    ) -> Result<Vec<Event>, StoreError> {
        let texts = store.events(&row.key, 0, EVENTS_MAX).await?;
        let mut events = Vec::with_capacity(texts.len());
        for (seq, text) in texts {
            match serde_json::from_str::<Event>(&text) {
                Ok(event) => events.push(event),
                Err(error) => self.accuse(format!("event {seq} cannot be read: {error}")),
            }
        }
        Ok(events)
    }

    /// Lists show what the journal adds up to.
    async fn lists(
        &mut self,
        store: &dyn Store,
        realm: &RealmId,
        story: &Story,
        gone: u32,
    ) -> Result<(), StoreError> {
        let session = &story.session;
        let is_gone = |run: &RunId| story.ended.get(run).is_some_and(|run| run.no <= gone);
        let shown = store.session(realm, &SessionRef::Id(session.id)).await?;
        // How often the session changed is not in its journal.
        let fence = shown.as_ref().map_or(Fence::NONE, |row| row.fence);
        let expected = SessionRow { fence, ..session_row(session, session.updated_at) };
        if shown.as_ref() != Some(&expected) {
            self.accuse(format!("the list shows {shown:?}, the journal says {expected:?}"));
        }
        for (id, expected) in &story.ended {
            let shown = store.run(realm, *id).await?.map(|run| run.row);
            let expected = Some(expected).filter(|_| !is_gone(id));
            if shown.as_ref() != expected {
                self.accuse(format!("the list shows {shown:?}, the journal says {expected:?}"));
            }
        }
        for (id, expected) in &story.asks {
            let shown = store.ask(realm, *id).await?.map(|ask| ask.row);
            let same = match &shown {
                None => is_gone(&expected.ask.run),
                Some(_) if is_gone(&expected.ask.run) => false,
                Some(shown) => {
                    shown.status == expected.status && shown.decision == expected.decision
                }
            };
            if !same {
                let status = expected.status.name();
                self.accuse(format!("the inbox shows {shown:?}, the journal says {status}"));
            }
        }
        Ok(())
    }

    /// Snapshot and tail add up to the same as the whole journal.
    async fn snapshot(
        &mut self,
        store: &dyn Store,
        row: &SessionRow,
        story: &Story,
    ) -> Result<(), StoreError> {
        let LoadResult::Found(stored) = store.load(&row.key, None).await? else {
            self.accuse(format!("session {} is listed and cannot be loaded", row.key.id));
            return Ok(());
        };
        let mut session = match &stored.snapshot {
            Some(snapshot) => match Session::from_snapshot(snapshot) {
                Some(session) => session,
                None => {
                    self.accuse("a snapshot cannot be read".to_owned());
                    return Ok(());
                }
            },
            None => Session::new(stored.id, row.key.clone()),
        };
        for row in &stored.tail {
            let known = session.seq;
            for event in event::read(row).unwrap_or_default() {
                if event.seq > known {
                    session.apply(&event);
                }
            }
        }
        if session != story.session {
            let name = &row.key.id;
            self.accuse(format!("snapshot and tail of {name} add up to another state"));
        }
        Ok(())
    }

    /// Nothing that was acknowledged is lost or changed.
    fn promises(&mut self, stories: &[Story]) {
        let mut wrong = Vec::new();
        for (id, promised) in &self.runs {
            let Some(story) = stories.iter().find(|story| story.runs.contains_key(id)) else {
                wrong.push(format!("run {id} was acknowledged and is lost"));
                continue;
            };
            let now = story.ended.get(id);
            if now.is_none() {
                wrong.push(format!("run {id} does not end"));
            }
            if promised.status.is_over() && now.is_some_and(|now| now != promised) {
                wrong.push(format!("run {id} was shown as {promised:?} and is {now:?}"));
            }
        }
        let decision_of = |ask: &AskId| {
            stories
                .iter()
                .find_map(|story| story.asks.get(ask))
                .and_then(|ask| ask.decision.as_ref())
        };
        for (ask, promised) in &self.decisions {
            if decision_of(ask) != Some(promised) {
                wrong.push(format!("the reply to {ask} was acknowledged and is lost or changed"));
            }
        }
        for (ask, shown) in &self.shown {
            let winner = decision_of(ask).map(|decision| &decision.reply);
            if winner != Some(shown) {
                wrong.push(format!("a loser of {ask} was shown {shown:?}, {winner:?} won"));
            }
        }
        wrong.into_iter().for_each(|wrong| self.accuse(wrong));
    }

    /// What may not be repeated happened once, was recorded before, and someone knows of it.
    fn effects(&mut self, stories: &[Story], realm: &RealmId, ledger: &Ledger) {
        for (call, (tool, count)) in ledger.effects(realm) {
            let story = stories.iter().find_map(|story| story.calls.get(&call));
            let Some(story) = story.filter(|story| story.starts > 0) else {
                self.accuse(format!("{tool} was called and no start of {call} is on record"));
                continue;
            };
            if count > 1 + story.repeats {
                let repeats = story.repeats;
                let wrong = format!("{call} of {tool} happened {count} times, {repeats} asked for");
                self.accuse(wrong);
            }
            let most = story.done_at_most();
            if count > most {
                self.accuse(format!(
                    "{call} of {tool} happened {count} times, and {most} times at most by its \
                     journal: what was not sent, or wanted something first, did nothing"
                ));
            }
            if !story.told {
                self.accuse(format!("{call} of {tool} happened and nobody knows"));
            }
        }
        for (call, tool) in ledger.trespasses(realm) {
            self.accuse(format!("{call} of {tool} was sent while policy denied it"));
        }
        for (call, tool) in ledger.misgiven(realm) {
            self.accuse(format!("{call} of {tool} was given something else than it wanted"));
        }
    }

    /// A run that no one steered gives an answer that its plan and its input give.
    async fn answers(&mut self, stories: &[Story], realm: &RealmId, truth: &Truth<'_>) {
        for story in stories {
            for (id, row) in &story.ended {
                let Some(started) = story.runs.get(id) else { continue };
                let plan = truth.plans.iter().find(|plan| plan.id == started.plan);
                // A later run sees what earlier ones left in the context.
                let Some(plan) = plan.filter(|_| row.no == 1 && started.plain) else { continue };
                if row.status != RunStatus::Completed {
                    continue;
                }
                let Some(input) = input_of(started, realm, truth.blobs).await else {
                    self.accuse(format!("the input of run {id} cannot be read"));
                    continue;
                };
                let expected = answers(truth.plans, plan, &input, truth.inline_bytes_max);
                let Some(expected) = expected else { continue };
                if !row.answer.as_ref().is_some_and(|given| expected.contains(given)) {
                    let given = match &row.answer {
                        Some(answer) => opened(answer, realm, truth.blobs).await,
                        None => Value::Null,
                    };
                    self.accuse(format!(
                        "run {id} of {} with {input} answers {given} instead of one of \
                         {expected:?}",
                        plan.id
                    ));
                }
            }
        }
    }
}
