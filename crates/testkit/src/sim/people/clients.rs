//! The people and programs outside: they start runs, answer asks rightly and wrongly, at the same
//! time as others, cancel, pause, look; and they write down the answers.

use crate::sim::judge::oracle::Oracle;
use crate::sim::machine::executor::Executor;
use crate::sim::people::neighbours::Neighbour;
use crate::sim::people::replies::yes_to;
use crate::sim::programs::plans::{SimPlan, input};
use crate::sim::programs::reference::{form_of, words_of};
use crate::sim::realms::ANN;
use crate::sim::rng::Rng;
use crate::sim::troubles::Troubles;
use engine::{
    Engine, IdempotencyKey, Refusal, RefusalCode, RefusalKind, RunReport, RunRequest, RunSession,
    RunTarget, SessionReply,
};
use kernel::ask::{AskBody, Reply};
use kernel::contracts::{AskFilter, PageRequest, SessionAsk, SessionFilter, SessionRef};
use kernel::journal::projection::SessionRow;
use kernel::session::RunStatus;
use kernel::tool::call::Caller;
use kernel::values::ids::{ContentHash, PlanId, RealmId, SessionId};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many events of a session are looked at.
const EVENTS: usize = 1_000;
/// More sessions than a simulation makes.
const PAGE: usize = 200;
/// How often the last life looks whether all runs have ended.
const ROUNDS_MAX: u64 = 300;
/// In which time recovery has come by more than once.
const RECOVERED_MS: u64 = 5_000;
/// After so many panics its driver leaves a session alone.
const PANICS: u64 = 6;

/// What the clients of one realm share within one life of the process.
pub struct Clients {
    /// Their realm.
    pub realm: RealmId,
    /// The other realm, where one shares the machine.
    pub neighbour: Option<Neighbour>,
    /// The process they talk to.
    pub engine: Engine,
    /// Time.
    pub executor: Executor,
    pub plans: Arc<Vec<SimPlan>>,
    /// Their whims.
    pub rng: Arc<Mutex<Rng>>,
    /// Where they write down the answers.
    pub oracle: Arc<Mutex<Oracle>>,
    /// How many are still busy.
    pub busy: AtomicU64,
    /// What they must put up with.
    pub troubles: Arc<Troubles>,
    /// Whether some of them answer just when rules act.
    pub heals: bool,
    /// Whether some runs share a context, in which several are active.
    pub contexts: bool,
    /// A fault on purpose: a message that is sent again is not known.
    pub forgets: bool,
}

pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Clients {
    /// One command at some moment.
    pub async fn one(self: Arc<Self>) {
        let delay = self.below(15_000);
        self.sleep(delay).await;
        match &self.neighbour {
            Some(neighbour) if neighbour.meddles() => self.meddle(neighbour).await,
            _ => self.work().await,
        }
        self.busy.fetch_sub(1, Ordering::SeqCst);
    }

    async fn work(&self) {
        match self.below(100) {
            0..32 => self.run().await,
            32..40 => self.run_keyed().await,
            40..62 => self.reply().await,
            62..70 => self.reply_twice().await,
            70..78 => self.resume().await,
            78..84 => self.cancel().await,
            84..90 => self.pause_and_continue().await,
            90..93 => self.fork().await,
            93..96 => self.prune().await,
            _ => self.look().await,
        }
    }

    /// Who looks at all there is.
    pub fn caller(&self) -> Caller {
        Caller::new(self.realm.clone(), ANN)
    }

    /// Who gives a command.
    fn someone(&self) -> Caller {
        match &self.neighbour {
            Some(neighbour) => neighbour.someone(&self.realm),
            None => self.caller(),
        }
    }

    /// A report was given to someone.
    fn shown(&self, report: &RunReport) {
        self.check_own(report);
        locked(&self.oracle).shown_report(report);
    }

    /// Waits.
    pub async fn sleep(&self, ms: u64) {
        let then = self.executor.now().plus_ms(ms);
        self.executor.sleep_until(then).await;
    }

    pub(in crate::sim) fn below(&self, end: u64) -> u64 {
        locked(&self.rng).below(end)
    }

    /// A refusal is an answer, unless it says that we failed and nothing explains it.
    pub(in crate::sim) fn refused(&self, refusal: &Refusal) {
        let explained = match refusal.code {
            RefusalCode::DriverEnded => self.troubles.panics.in_drivers() > 0,
            RefusalCode::Unreadable => self.troubles.damage.ever_was(),
            _ => false,
        };
        if refusal.kind() == RefusalKind::Failed && !explained {
            let what = format!("refused with {}: {}", refusal.code.name(), refusal.message);
            locked(&self.oracle).accuse(what);
        }
    }

    async fn run(&self) {
        let count = self.plans.len() as u64;
        let plan = self.plans[self.below(count) as usize].id.clone();
        let session = match (self.below(100), self.contexts) {
            (0..60, false) | (0..30, true) => RunSession::New,
            (30..80, true) => RunSession::Context(format!("c{}", self.below(2))),
            _ => RunSession::Named(format!("s{}", self.below(3))),
        };
        let mut input = input(&mut locked(&self.rng));
        if self.neighbour.is_some() {
            input["of"] = json!(self.realm);
        }
        let target = RunTarget::Plan(PlanId::from(plan));
        let request = RunRequest { target, input, session, once: None, about: Default::default() };
        let wait = [0, 300, 60_000][self.below(3) as usize];
        match self.engine.runs().start(&self.someone(), request, wait).await {
            Ok(report) => self.shown(&report),
            Err(refusal) => self.refused(&refusal),
        }
    }

    /// The same request under the same key, also at the same time: all get one run.
    async fn run_keyed(&self) {
        let number = self.below(4);
        let key = format!("k{number}");
        let plan = &self.plans[number as usize % self.plans.len()].id;
        let request = RunRequest {
            target: RunTarget::Plan(PlanId::from(plan.as_str())),
            input: json!({"n": number % 3, "items": [0, 1]}),
            session: RunSession::New,
            once: Some(IdempotencyKey::new(
                "POST /runs".to_owned(),
                key.clone(),
                ContentHash::of(key.as_bytes()),
            )),
            about: Default::default(),
        };
        let by = self.someone();
        let key = format!("{key} of {}", by.subject);
        let one = self.engine.runs().start(&by, request.clone(), 300);
        let other = self.engine.runs().start(&by, request, 60_000);
        let (one, other) = futures::future::join(one, other).await;
        for answer in [one, other] {
            match answer {
                Ok(report) => {
                    self.check_own(&report);
                    locked(&self.oracle).shown_keyed(key.clone(), &report);
                }
                Err(refusal) => self.refused(&refusal),
            }
        }
    }

    async fn fork(&self) {
        let rows = self.sessions().await;
        let chosen = locked(&self.rng).pick(&rows).map(|row| (row.id, row.seq));
        let Some((id, seq)) = chosen else { return };
        // Half of them right after a decision, before anyone acted upon it: the hardest place.
        let at = match self.decided_at(id).await {
            Some(decided) if self.below(2) == 0 => decided,
            _ => 1 + self.below(seq),
        };
        match self.engine.sessions().fork(&self.someone(), &SessionRef::Id(id), Some(at)).await {
            Ok(row) => locked(&self.oracle).shown_fork(row.id),
            Err(refusal) => self.refused(&refusal),
        }
    }

    /// Where a session's journal has a decision, if it has one.
    async fn decided_at(&self, session: SessionId) -> Option<u64> {
        let reference = SessionRef::Id(session);
        let by = self.caller();
        let events = self.engine.sessions().events(&by, &reference, 0, EVENTS).await.ok()?;
        self.check_own(&events);
        let decided = |(_, text): &&(u64, String)| text.contains("\"type\":\"ask.decided\"");
        let all: Vec<u64> = events.iter().filter(decided).map(|(seq, _)| *seq).collect();
        locked(&self.rng).pick(&all).copied()
    }

    /// Removes what is old by now: sessions, and runs of sessions that go on.
    async fn prune(&self) {
        let older_than_ms = [1_000, 4_000, 20_000][self.below(3) as usize];
        if let Err(refusal) = self.engine.admin().prune(&self.caller(), older_than_ms).await {
            self.refused(&refusal);
        }
    }

    pub(in crate::sim) async fn open_asks(&self) -> Vec<SessionAsk> {
        self.asks_that_are("open").await
    }

    async fn asks_that_are(&self, status: &str) -> Vec<SessionAsk> {
        let filter = AskFilter { status: Some(status.to_owned()), ..AskFilter::default() };
        let page = PageRequest { cursor: None, limit: PAGE };
        match self.engine.asks().list(&self.caller(), &filter, &page).await {
            Ok(page) => {
                page.items.iter().for_each(|ask| self.check_row(&ask.key));
                page.items
            }
            Err(refusal) => {
                self.refused(&refusal);
                Vec::new()
            }
        }
    }

    async fn some_ask(&self) -> Option<SessionAsk> {
        // Some have an old list before them.
        if self.below(6) == 0 {
            let withdrawn = self.asks_that_are("withdrawn").await;
            let found = locked(&self.rng).pick(&withdrawn).cloned();
            if found.is_some() {
                return found;
            }
        }
        if let Some(held) = self.held_ask().await {
            return Some(held);
        }
        // Most people wait until there is something to answer.
        for _ in 0..8 {
            let open = self.open_asks().await;
            let found = locked(&self.rng).pick(&open).cloned();
            if found.is_some() {
                return found;
            }
            self.sleep(1_000).await;
        }
        None
    }

    async fn send(&self, ask: &SessionAsk, reply: Reply) {
        if self.answers_by_message(ask) {
            return self.send_message(ask, reply).await;
        }
        let wait = [0, 500, 60_000][self.below(3) as usize];
        let by = self.someone();
        match self.engine.asks().reply(&by, ask.row.ask.id, reply, None, wait).await {
            Ok(report) => {
                self.check_own(&report);
                locked(&self.oracle).shown_reply(&report);
            }
            Err(refusal) => {
                self.refused(&refusal);
                if let RefusalCode::AskDecided(closed) = &refusal.code
                    && let Some(decision) = &closed.decision
                {
                    locked(&self.oracle).shown_winner(closed.ask, decision);
                }
            }
        }
    }

    async fn reply(&self) {
        let Some(ask) = self.some_ask().await else { return };
        let reply = self.reply_to(&ask.row.ask);
        self.send(&ask, reply).await;
    }

    async fn reply_twice(&self) {
        let Some(ask) = self.some_ask().await else { return };
        let one = self.reply_to(&ask.row.ask);
        let other = self.reply_to(&ask.row.ask);
        futures::future::join(self.send(&ask, one), self.send(&ask, other)).await;
    }

    async fn resume(&self) {
        let Some(ask) = self.some_ask().await else { return };
        let id = &ask.row.ask;
        let input = match &id.body {
            AskBody::Clarify { .. } => Some(words_of(id.step.as_str())),
            AskBody::Fill { .. } => Some(form_of(id.step.as_str())),
            AskBody::Approve { .. } => Some(json!({"approve": true})),
            AskBody::Fix { .. } => None,
            AskBody::Authorize { .. } => Some(Value::Null),
        };
        let named = self.below(2) == 0;
        let resume = SessionReply { input, ask: named.then_some(id.id), step: None, once: None };
        let session = SessionRef::Id(ask.session);
        match self.engine.asks().resume(&self.caller(), &session, resume, 60_000).await {
            Ok(report) => self.shown(&report),
            Err(refusal) => self.refused(&refusal),
        }
    }

    /// All sessions there are.
    pub async fn sessions(&self) -> Vec<SessionRow> {
        let mut all = Vec::new();
        let mut page = PageRequest { cursor: None, limit: PAGE };
        loop {
            match self
                .engine
                .sessions()
                .list(&self.caller(), &SessionFilter::default(), &page)
                .await
            {
                Ok(found) => {
                    found.items.iter().for_each(|row| self.check_row(&row.key));
                    all.extend(found.items);
                    page.cursor = found.next_cursor;
                }
                Err(refusal) => {
                    self.refused(&refusal);
                    return all;
                }
            }
            if page.cursor.is_none() {
                self.check_parked(&all);
                return all;
            }
        }
    }

    /// Only what cannot be read is parked, and what its driver panics of again and again.
    fn check_parked(&self, rows: &[SessionRow]) {
        let Troubles { damage, panics, .. } = &*self.troubles;
        for row in rows.iter().filter(|row| !damage.excuses(row)) {
            if let (Some(parked), true) = (&row.parked, panics.in_drivers() < PANICS) {
                let name = &row.key.id;
                let reason = &parked.reason;
                let what = format!("session {name} is parked and can be read: {reason}");
                locked(&self.oracle).accuse(what);
            }
        }
    }

    async fn some_run(&self) -> Option<kernel::values::ids::RunId> {
        let runs: Vec<_> = self.sessions().await.into_iter().filter_map(|row| row.run).collect();
        locked(&self.rng).pick(&runs).copied()
    }

    async fn cancel(&self) {
        let Some(run) = self.some_run().await else { return };
        match self.engine.runs().cancel(&self.someone(), run).await {
            Ok(report) => self.shown(&report),
            Err(refusal) => self.refused(&refusal),
        }
    }

    async fn pause_and_continue(&self) {
        let Some(run) = self.some_run().await else { return };
        match self.engine.runs().pause(&self.caller(), run).await {
            Ok(report) => self.shown(&report),
            Err(refusal) => self.refused(&refusal),
        }
        let rest = self.below(5_000);
        self.sleep(rest).await;
        match self.engine.runs().continue_run(&self.caller(), run).await {
            Ok(report) => self.shown(&report),
            Err(refusal) => self.refused(&refusal),
        }
    }

    async fn look(&self) {
        if let Some(run) = self.some_run().await {
            match self.engine.runs().report(&self.caller(), run).await {
                Ok(report) => self.shown(&report),
                Err(refusal) => self.refused(&refusal),
            }
        }
        let rows = self.sessions().await;
        let chosen = locked(&self.rng).pick(&rows).map(|row| row.id);
        if let Some(id) = chosen
            && let Err(refusal) =
                self.engine.sessions().inspect(&self.caller(), &SessionRef::Id(id)).await
        {
            self.refused(&refusal);
        }
    }

    /// The sessions whose runs have not ended: those that can be read, or those that cannot.
    async fn active(&self, readable: bool) -> Vec<SessionRow> {
        let damage = &self.troubles.damage;
        let mut active = self.sessions().await;
        active.retain(|row| row.run.is_some() && !row.status.is_over());
        active.retain(|row| damage.hides(row) != readable);
        active
    }

    /// Answers everything with yes until all runs have ended that can be read; which have not, if
    /// some do not.
    pub async fn bring_to_an_end(&self) -> Vec<SessionRow> {
        for _ in 0..ROUNDS_MAX {
            let active = self.active(true).await;
            if active.is_empty() {
                return active;
            }
            for row in active {
                self.help(&row).await;
            }
            self.sleep(1_000).await;
        }
        self.active(true).await
    }

    /// Sessions that cannot be read are parked with the reason once someone met them.
    pub async fn check_hidden(&self) {
        self.sleep(RECOVERED_MS).await;
        for row in self.active(false).await {
            self.help(&row).await;
        }
        self.sleep(1_000).await;
        for row in self.active(false).await {
            let wrong = self.troubles.damage.misparked(&row);
            wrong.into_iter().for_each(|wrong| locked(&self.oracle).accuse(wrong));
        }
    }

    /// Waits until every sink has passed all that there is.
    pub async fn wait_until_sent(&self, looks_max: u64) {
        for _ in 0..looks_max {
            match self.engine.feed().sinks(&self.caller()).await {
                Ok(sinks) if sinks.iter().all(|sink| sink.lag == 0) => return,
                Ok(_) => self.sleep(500).await,
                Err(refusal) => self.refused(&refusal),
            }
        }
        locked(&self.oracle).accuse("events do not get out");
    }

    async fn help(&self, row: &SessionRow) {
        if let (RunStatus::Paused, Some(run)) = (row.status, row.run) {
            match self.engine.runs().continue_run(&self.caller(), run).await {
                Ok(report) => self.shown(&report),
                Err(refusal) => self.refused(&refusal),
            }
        }
        let mut asks = self.open_asks().await;
        // What a rule holds is not in the inbox: who helps does not see it.
        asks.retain(|ask| ask.session == row.id && ask.row.ask.held.is_none());
        for ask in &asks {
            self.send(ask, yes_to(&ask.row.ask)).await;
        }
    }
}
