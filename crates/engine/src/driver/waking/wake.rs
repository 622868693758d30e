//! Loads a session and recovers the work that a dead process left.

use crate::driver::effects::unreadable;
use crate::driver::spans::came_to_an_agent;
use crate::driver::state::{Driver, HistoryView};
use crate::refusal::{Refusal, RefusalCode, Result};
use crate::sessions::cache::CachedSession;
use crate::shared::Shared;
use crate::system::heavy;
use kernel::contracts::{HistoryFilter, LoadResult, PageRequest, StoreError, StoredSession};
use kernel::definition::agent_reader::read_pinned;
use kernel::definition::plan::flow::{read_generated, reload};
use kernel::definition::plan::{Closure, ClosureText};
use kernel::event::{self, Event, Fact};
use kernel::planted::{Switch, is_on};
use kernel::session::{CallState, FrameKind, FrameState, Phase, RunStatus, Session};
use kernel::tool::call::CallProgress;
use kernel::values::fault::Fault;
use kernel::values::ids::{
    CallId, ContentHash, PlanId, RealmId, RunId, SessionId, SessionKey, StepId,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many entries a history query looks at.
const HISTORY_QUERY_MAX: usize = 1_000;

impl Driver {
    /// Loads the session if it is not in memory; whether it is there.
    pub(in crate::driver) async fn load(&mut self) -> Result<bool> {
        if self.session.is_some() {
            return Ok(true);
        }
        let rested = self.shared.rest.take(&self.key);
        let Some(found) = self.shared.current(&self.key, rested).await? else { return Ok(false) };
        self.tail_bytes = found.tail_bytes;
        self.snapshot_bytes = found.snapshot_bytes;
        self.fence = found.fence;
        let session = found.session;
        for run in session.runs.values() {
            let closure = self.shared.pinned(&self.key.realm, &run.closure).await?;
            self.closures.insert(run.closure.clone(), closure);
        }
        self.shared.unpark(&self.key);
        let id = session.id;
        let moving = session.phase() == Phase::Moving;
        let ended_a_process = session.runs.values().any(|run| run.deaths > 0);
        self.session = Some(session);
        self.read_drafted();
        if moving {
            self.take_over(id).await?;
            return Ok(true);
        }
        self.shared.suspects.settle(id);
        if ended_a_process && let Some(session) = &self.session {
            // A person may retry it: if it ends the process again, that counts at once.
            self.shared.suspects.begin(&self.probation, session);
        }
        Ok(true)
    }

    /// Claims the runs that were moving, durably, then continues with what was under way.
    async fn take_over(&mut self, id: SessionId) -> Result<()> {
        let suspects = &self.shared.suspects;
        let died = self.session.as_ref().is_some_and(|session| suspects.contains(session));
        let runs = self.session.iter().flat_map(|session| session.runs.values());
        let moving: Vec<Claim> = runs
            .filter(|run| run.status() == RunStatus::Running && !run.is_queued())
            .map(|run| Claim {
                run: run.id,
                attempt: run.claims + 1,
                deaths: run.deaths + u32::from(died),
            })
            .collect();
        let max = self.shared.limits.recover_attempts_max;
        // Only after a death just now: a restart alone does not ask about a retried run again.
        let is_given_up = |claim: &Claim| died && claim.deaths >= max;
        for claim in &moving {
            let Claim { run, attempt, deaths } = *claim;
            self.record(Fact::RunClaimed { run, attempt, died }).await?;
            // With its claim: if the power failed between them, the death would be on record, and
            // the next process would not know that no person was asked.
            if is_given_up(claim) {
                self.hand_over(run, deaths).await?;
            }
        }
        // Before its mark goes: a process that dies here must still learn of it.
        self.durable().await?;
        if let Some(session) = &self.session {
            self.shared.suspects.begin(&self.probation, session);
        }
        for claim in moving.iter().filter(|claim| !is_given_up(claim)) {
            self.go_on(claim.run).await?;
        }
        self.shared.suspects.settle(id);
        Ok(())
    }

    /// Judges what was not judged, repeats what may be repeated, looks at what continued without
    /// us, asks about the rest.
    async fn go_on(&mut self, run: RunId) -> Result<()> {
        for call in self.open_calls(run) {
            let Some(open) = self.open_call(call) else { continue };
            match (&open.state, open.resumable()) {
                (CallState::Requested, _) => self.to_judge.push(call),
                (CallState::Started, true) => self.start_call(call),
                (CallState::Started, false) => {
                    let message = format!(
                        "the process ended while `{}` was under way: it may have happened",
                        open.request.tool
                    );
                    let fault = Fault::new("OutcomeUnknown", message)
                        .hint("look at the other side, then settle, retry, skip or abort");
                    self.withdraw_login(call).await?;
                    let how = CallProgress::Unknown;
                    let said = None;
                    self.record(Fact::CallFailed { call, how, fault, said }).await?;
                }
                (CallState::Judged(_) | CallState::Wanting(_) | CallState::Failed(..), _) => {}
            }
        }
        let open = self.session.as_ref().and_then(|session| session.runs.get(&run));
        match open.is_some_and(|run| run.closing.is_some()) {
            true => self.drop_closing(run).await,
            false => Ok(()),
        }
    }

    /// A closing run's repeatable calls are not started again.
    async fn drop_closing(&mut self, run: RunId) -> Result<()> {
        for call in self.open_calls(run) {
            if let Some(abort) = self.aborts.remove(&call) {
                abort.abort();
                let fault = Fault::new("Cancelled", "the run is being closed");
                let how = CallProgress::Unknown;
                let said = None;
                self.record(Fact::CallFailed { call, how, fault, said }).await?;
            }
        }
        Ok(())
    }

    /// A run whose recovery ended the process again and again goes to a person, so that it cannot
    /// take the process down for ever.
    async fn hand_over(&mut self, run: RunId, deaths: u32) -> Result<()> {
        let fault = |what: &str| {
            let message = format!(
                "{what} was stopped: the server died or panicked {deaths} times while it worked \
                 on this run"
            );
            Fault::new(Fault::RECOVERY_GAVE_UP, message).hint(
                "look at the server's log, then skip or abort; retry runs it again and may end \
                 the server again",
            )
        };
        for call in self.open_calls(run) {
            let Some(open) = self.open_call(call) else { continue };
            if open.in_flight() {
                let how = match open.state {
                    CallState::Started => CallProgress::Unknown,
                    _ => open.unsent(),
                };
                let fault = fault(&format!("call `{call}`"));
                self.withdraw_login(call).await?;
                self.record(Fact::CallFailed { call, how, fault, said: None }).await?;
            }
        }
        let Some(session) = &self.session else { return Ok(()) };
        let stuck: Vec<_> = session
            .ready
            .iter()
            .filter_map(|id| session.frames.get(id))
            .filter(|frame| frame.run == run && frame.state == FrameState::AtStep)
            // A call of an agent is no step by itself: its outcome is the agent's.
            .filter(|frame| !matches!(frame.kind, FrameKind::Call { .. }))
            .filter_map(|frame| Some((frame.id, frame.step.clone()?)))
            .collect();
        for (frame, step) in stuck {
            let fault = fault(&format!("step `{step}`"));
            self.record(Fact::StepFailed { frame, step, fault }).await?;
        }
        let asked = fault("a model that was asked about a failed step");
        self.end_proposals(run, &asked).await?;
        self.hand_over_agents(run, &fault).await
    }

    fn open_calls(&self, run: RunId) -> Vec<CallId> {
        let Some(session) = &self.session else { return Vec::new() };
        session.calls.iter().filter(|(_, open)| open.run == run).map(|(id, _)| *id).collect()
    }
}

/// A run that is taken over.
struct Claim {
    run: RunId,
    /// How often it was claimed without progress, this time included.
    attempt: u32,
    /// How often something died of it, this time included.
    deaths: u32,
}

/// How many events are read at once when a journal is read from its start.
const EVENTS_PER_READ: usize = 1_000;

fn read_events(row: &str) -> Result<Vec<Event>> {
    event::read(row).map_err(|error| {
        Refusal::new(RefusalCode::Unreadable, error.to_string())
            .hint("run the release that wrote this session; else the data folder may be damaged")
    })
}

fn apply_all(session: &mut Session, events: &[Event]) {
    let known = session.seq;
    for event in events.iter().filter(|event| event.seq > known) {
        session.apply(event);
    }
}

/// State from a snapshot and the rows after it; `None` if the snapshot is of another release.
fn state_of(stored: &StoredSession, key: &SessionKey) -> Result<Option<Session>> {
    let start = match &stored.snapshot {
        Some(snapshot) => Session::from_snapshot(snapshot),
        None => Some(Session::new(stored.id, key.clone())),
    };
    let Some(mut session) = start else { return Ok(None) };
    for row in &stored.tail {
        apply_all(&mut session, &read_events(row)?);
    }
    Ok(Some(session))
}

impl Shared {
    /// A session out of the store.
    pub(crate) async fn read_session(&self, key: &SessionKey) -> Result<Option<CachedSession>> {
        self.current(key, None).await
    }

    /// A session as it is now: what rested, where that is still it. Else what its snapshot and
    /// tail add up to, or its whole journal where the snapshot is of another release.
    async fn current(
        &self,
        key: &SessionKey,
        rested: Option<CachedSession>,
    ) -> Result<Option<CachedSession>> {
        let known = rested.as_ref().map(CachedSession::known);
        let stored = match self.store.load(key, known).await? {
            LoadResult::Missing => return Ok(None),
            LoadResult::Unchanged => return Ok(rested),
            LoadResult::Found(stored) => stored,
        };
        let snapshot_bytes = stored.snapshot_bytes;
        let tail_bytes: usize = stored.tail.iter().map(String::len).sum();
        let session = match heavy::sized(snapshot_bytes + tail_bytes, || state_of(&stored, key))? {
            Some(session) => session,
            None => self.replay_whole(key, stored.id).await?,
        };
        Ok(Some(CachedSession { session, fence: stored.fence, tail_bytes, snapshot_bytes }))
    }

    async fn replay_whole(&self, key: &SessionKey, id: SessionId) -> Result<Session> {
        let mut session = Session::new(id, key.clone());
        loop {
            let rows = match self.store.events(key, session.seq, EVENTS_PER_READ).await {
                Ok(rows) => rows,
                // Retention took the beginning while it was read: the base is there now.
                Err(StoreError::Gone(_)) => {
                    session = Session::new(id, key.clone());
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            if rows.is_empty() {
                return Ok(session);
            }
            let texts: Vec<&str> = rows.iter().map(|(_, text)| text.as_str()).collect();
            apply_all(&mut session, &read_events(&format!("[{}]", texts.join(",")))?);
        }
    }

    /// Whether the own plan of a run that is not over came to a step that is an agent's, as far as
    /// that is committed. Plans below it do not count, whatever their steps are called.
    pub(crate) async fn took_agents_road(&self, key: &SessionKey, run: RunId) -> Result<bool> {
        let Some(CachedSession { session, .. }) = self.read_session(key).await? else {
            return Ok(false);
        };
        let Some(run) = session.runs.get(&run) else { return Ok(false) };
        let closure = self.pinned(&key.realm, &run.closure).await?;
        Ok(came_to_an_agent(&session, run, &closure))
    }

    /// The closure that a stored run pins.
    pub(in crate::driver) async fn pinned(
        &self,
        realm: &RealmId,
        hash: &ContentHash,
    ) -> Result<Arc<Closure>> {
        if let Some(closure) = self.closures.get(hash) {
            return Ok(closure);
        }
        let broken = || unreadable(&format!("pinned plan `{hash}`"));
        let text = self.store.closure(realm, hash).await?.ok_or_else(broken)?;
        let text: ClosureText = serde_json::from_str(&text).map_err(|_| broken())?;
        let mut plans = BTreeMap::new();
        for source in &text.plans {
            let read = match is_on(Switch::PinnedPlansLimited) {
                true => read_generated(source, &self.limits),
                false => reload(source),
            };
            let plan = read.map_err(|_| broken())?;
            plans.insert(plan.id.clone(), Arc::new(plan));
        }
        let mut agents = BTreeMap::new();
        for source in &text.agents {
            let (agent, _) = read_pinned(source).map_err(|_| broken())?;
            agents.insert(agent.name.clone(), Arc::new(agent));
        }
        let main: &PlanId = &text.main;
        let main = plans.get(main).cloned().ok_or_else(broken)?;
        let closure = Arc::new(Closure::new(main, plans, agents));
        self.closures.insert(hash.clone(), closure.clone());
        Ok(closure)
    }

    pub(in crate::driver) async fn open_blob(
        &self,
        realm: &RealmId,
        hash: &ContentHash,
    ) -> Result<Value> {
        let broken = || unreadable(&format!("blob `{hash}`"));
        self.blob_value(realm, hash).await?.ok_or_else(broken)
    }

    /// The part of its run's history that a frame sees, newest first, at most so many entries.
    pub(in crate::driver) async fn visible_history(
        &self,
        key: &SessionKey,
        sight: Option<HistoryView>,
        step: Option<&StepId>,
    ) -> Result<Value> {
        let Some(sight) = sight else { return Ok(Value::Array(Vec::new())) };
        if let Some(ticket) = sight.ticket {
            ticket.await?;
        }
        let mut entries = Vec::new();
        let mut page = PageRequest { cursor: None, limit: self.limits.page_items_max };
        loop {
            let only = HistoryFilter { run: Some(sight.run), step: step.cloned() };
            let paged = self.store.history(key, only, &page).await?;
            for item in paged.items {
                if entries.len() < HISTORY_QUERY_MAX
                    && sight.path.sees(sight.run_no, &item.position)
                {
                    entries.push(item.entry.datum().to_value());
                }
            }
            match paged.next_cursor {
                Some(cursor) if entries.len() < HISTORY_QUERY_MAX => page.cursor = Some(cursor),
                _ => return Ok(Value::Array(entries)),
            }
        }
    }
}
