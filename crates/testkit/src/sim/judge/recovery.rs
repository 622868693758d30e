//! Checks the recoveries of a session, read from its journal: every crash is on record and none is
//! made up, no run is given up too early or too late, a panicked write counts as unknown, and a
//! limit fails only runs that were held first.

use crate::sim::machine::marks::Marks;
use crate::sim::outside::panicking::PLANNED;
use kernel::event::{Closing, Event, Fact};
use kernel::session::Session;
use kernel::tool::call::{CallProgress, Reach};
use kernel::values::fault::Fault;
use kernel::values::ids::{CallId, Millis, RunId, SessionId};
use std::collections::{BTreeMap, BTreeSet};

/// The recoveries that the journal of one session tells of.
#[derive(Debug, Default)]
pub struct Recovery {
    /// When its runs were claimed, and whether someone had died of them.
    claims: Vec<(Millis, bool)>,
    /// The run that the last event claimed, if it was a claim.
    just_claimed: Option<RunId>,
    /// The deaths of each run since it got further.
    deaths: BTreeMap<RunId, u32>,
    /// Calls that were under way when their run was claimed, and the deaths of that run.
    taken_over: BTreeMap<CallId, u32>,
    /// Runs that were given up for their deaths: a person decides, who may run them again.
    asked: BTreeSet<RunId>,
    /// Runs that were given up, each time with the deaths before it.
    given_up: Vec<(RunId, u32)>,
    /// Calls that continued after so many deaths of their run.
    went_on: Vec<(CallId, u32)>,
    /// Runs that were held at a limit, which a person may end.
    held: BTreeSet<RunId>,
}

/// What really happened to the processes, which the recoveries are checked against.
pub struct CrashRecord<'t> {
    /// What processes died of.
    pub marks: &'t Marks,
    /// How many panics met a driver, of whatever session.
    pub panics: u64,
    /// After how many deaths a run is given up.
    pub attempts_max: u32,
}

impl Recovery {
    /// Takes in the next event, and says what is wrong with it. The session is as it was before.
    pub fn event(&mut self, event: &Event, session: &Session) -> Option<String> {
        let run_of = |call: &CallId| session.calls.get(call).map(|open| open.run);
        let before = self.just_claimed.take();
        match &event.fact {
            // What stands before this happened to another session.
            Fact::SessionForked { .. } => {
                *self = Self { held: std::mem::take(&mut self.held), ..Self::default() };
            }
            Fact::RunClaimed { run, died, .. } => {
                // Runs of a context are claimed together: one death is recorded for each of them.
                if before.is_none_or(|before| before == *run) {
                    self.claims.push((event.at, *died));
                }
                self.just_claimed = Some(*run);
                self.claimed(*run, *died, session);
            }
            Fact::RunHeld { run, .. } => {
                self.held.insert(*run);
            }
            Fact::RunClosing { run, why: Closing::Failed(fault) } => {
                let limit = fault.name == "LimitReached" && !self.held.contains(run);
                return limit.then(|| format!("a limit ends run {run}: {}", fault.message));
            }
            Fact::CallFailed { call, how, fault, .. } => {
                let run = run_of(call);
                let deaths = self.taken_over.remove(call);
                if fault.name == Fault::RECOVERY_GAVE_UP {
                    run.into_iter().for_each(|run| self.gave_up(run));
                    return None;
                }
                self.went_on.extend(deaths.map(|deaths| (*call, deaths)));
                self.got_further(run);
                return panicked(*call, *how, fault, session);
            }
            Fact::CallFinished { call, .. } | Fact::CallWants { call, .. } => {
                let deaths = self.taken_over.remove(call);
                self.went_on.extend(deaths.map(|deaths| (*call, deaths)));
                self.got_further(run_of(call));
            }
            Fact::StepFailed { frame, fault, .. } | Fact::TurnFailed { frame, fault, .. } => {
                let run = session.frames.get(frame).map(|frame| frame.run);
                if fault.name == Fault::RECOVERY_GAVE_UP {
                    run.into_iter().for_each(|run| self.gave_up(run));
                } else if matches!(event.fact, Fact::TurnFailed { .. }) {
                    self.got_further(run);
                }
            }
            Fact::TurnFinished(end) => {
                self.got_further(session.frames.get(&end.frame).map(|frame| frame.run));
            }
            _ => {}
        }
        None
    }

    fn claimed(&mut self, run: RunId, died: bool, session: &Session) {
        *self.deaths.entry(run).or_default() += u32::from(died);
        let before = session.runs.get(&run).map_or(0, |run| run.deaths);
        let deaths = before + u32::from(died);
        if died {
            self.asked.remove(&run);
        } else if self.asked.contains(&run) {
            // A person was asked about these deaths and let it continue.
            return;
        }
        for (call, open) in &session.calls {
            if open.run == run && open.in_flight() {
                self.taken_over.insert(*call, deaths);
            }
        }
    }

    fn gave_up(&mut self, run: RunId) {
        let deaths = self.deaths.get(&run).copied().unwrap_or_default();
        self.given_up.push((run, deaths));
        self.asked.insert(run);
    }

    fn got_further(&mut self, run: Option<RunId>) {
        if let Some(run) = run {
            self.deaths.remove(&run);
            self.asked.remove(&run);
        }
    }

    /// What is wrong with the recoveries of this session, as a whole.
    pub fn judge(&self, session: SessionId, against: &CrashRecord<'_>) -> Vec<String> {
        let mut wrong = Vec::new();
        let max = against.attempts_max;
        for (run, deaths) in self.given_up.iter().filter(|(_, deaths)| *deaths < max) {
            wrong.push(format!("run {run} is given up after {deaths} deaths, {max} are allowed"));
        }
        for (call, deaths) in self.went_on.iter().filter(|(_, deaths)| *deaths >= max) {
            wrong.push(format!("{call} goes on although its run has ended {deaths} processes"));
        }
        let recorded = self.claims.iter().filter(|(_, died)| *died).count() as u64;
        let died = against.marks.deaths(session) + against.panics;
        if recorded > died {
            wrong.push(format!("{recorded} deaths of {session} are on record, and {died} were"));
        }
        // The first claim by a process that found a mark of the session must say so.
        for settled in against.marks.settled().iter().filter(|one| one.session == session) {
            let first = self.claims.iter().find(|(at, _)| *at >= settled.since);
            if first.is_some_and(|(at, died)| *at <= settled.at && !died) {
                wrong.push(format!("a process died of {session}, and no claim says so"));
            }
        }
        wrong
    }
}

/// What is wrong with the end of a call that panicked: no one knows how far a write got, and a read
/// has failed.
fn panicked(call: CallId, how: CallProgress, fault: &Fault, session: &Session) -> Option<String> {
    if fault.name != "Panicked" {
        return None;
    }
    if !fault.message.contains(PLANNED) {
        return Some(format!("{call} panicked, and nobody planned it: {}", fault.message));
    }
    let pins = session.calls.get(&call).and_then(|open| open.pins.as_ref());
    let expected = match pins.map(|pins| pins.reach) {
        Some(Reach::Reads) => CallProgress::Failed,
        _ => CallProgress::Unknown,
    };
    (how != expected).then(|| format!("{call} panicked and is {how:?}, not {expected:?}"))
}
