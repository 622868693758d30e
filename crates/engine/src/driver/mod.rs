//! The driver of one session: it alone changes it. Decide, record, perform, until nothing moves;
//! then write, wait until that is durable, and only then tell anyone.

use crate::command::Command;
use crate::refusal::{Refusal, Result};
use crate::sessions::suspects::Probation;
use crate::shared::{Shared, lock};
use crate::shares::Share;
use crate::system::clock::yield_now;
use crate::system::panics::caught;
use futures::StreamExt;
use futures::future::poll_fn;
use futures::stream::FuturesUnordered;
use kernel::decide::{Env, Next, next};
use kernel::session::{Phase, Run, Session};
use kernel::values::ids::SessionKey;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use tokio::sync::mpsc;

pub(crate) mod blobs;
pub(crate) mod talk_content;
mod state;
mod spans;
mod supervise;
mod record;
mod late_results;
mod models;
mod login;
mod remote_tasks;
mod effects;
mod consent;
mod waking;
mod report;
mod reply_checks;
mod commands;
mod replies;
mod share;
pub(crate) mod hold;

use state::{Completion, Driver};
use waking::parked::panicked_refusal;

/// How many decisions are taken before other tasks get their turn.
const DECISIONS_PER_TURN: u32 = 16;

/// How many appends a run may be ahead of the disk. One that spins would fill the writer's queue,
/// and everybody else's writes would wait behind it.
const APPENDS_AHEAD_MAX: u32 = 4;
/// How often one driver may panic before it leaves its session alone.
const PANICS_MAX: u32 = 6;

/// Drives one session until nothing moves and no one asks.
pub(crate) async fn drive(
    shared: Arc<Shared>,
    key: SessionKey,
    commands: mpsc::Receiver<Command>,
    share: Share,
) {
    let probation = Arc::<Probation>::default();
    let seat = DriverLease { shared: shared.clone(), key, commands };
    let mut driving = pin!(seat.drive(probation.clone(), share));
    // Each stretch of work is noted while the session is on probation, so that a process that dies
    // of it leaves its name.
    poll_fn(|context| shared.suspects.watch(&probation, || driving.as_mut().poll(context))).await;
}

/// The one place from which a session is driven. Whatever ends its driver gives it up, so that the
/// next command or recovery starts another.
struct DriverLease {
    shared: Arc<Shared>,
    key: SessionKey,
    commands: mpsc::Receiver<Command>,
}

impl Drop for DriverLease {
    fn drop(&mut self) {
        self.commands.close();
        let mut driven = lock(&self.shared.driven);
        if driven.get(&self.key).is_some_and(mpsc::Sender::is_closed) {
            driven.remove(&self.key);
        }
    }
}

impl DriverLease {
    /// Refuses what was sent, and all that is sent from now on.
    fn refuse_all(&mut self) {
        self.commands.close();
        while let Ok(command) = self.commands.try_recv() {
            command.refuse(Refusal::realm_removed());
        }
    }

    async fn drive(mut self, probation: Arc<Probation>, share: Share) {
        let new = || Driver::new(self.shared.clone(), self.key.clone(), probation.clone());
        let mut driver = Driver { share, ..new() };
        let mut panics = 0;
        loop {
            if self.shared.closed.has(&self.key.realm) {
                driver.fail(&Refusal::realm_removed());
                self.refuse_all();
                return;
            }
            let turned = {
                let turn = pin!(driver.turn(&mut self.commands, panics > 0));
                caught(turn).await
            };
            match turned {
                Ok(Ok(())) => {}
                Ok(Err(refusal)) => {
                    driver.fail(&refusal);
                    // What was in memory may not be in the store: the next command loads it again.
                    driver = new();
                }
                Err(panicked) => {
                    panics += 1;
                    let mut broken = std::mem::replace(&mut driver, new());
                    if panics < PANICS_MAX && broken.accuse(&panicked) {
                        driver.waiters = std::mem::take(&mut broken.waiters);
                        driver.share = std::mem::take(&mut broken.share);
                        continue;
                    }
                    self.shared.park(&self.key, &panicked.0).await;
                    broken.fail(&panicked_refusal(&panicked));
                }
            }
            if !driver.is_idle() {
                continue;
            }
            // No one can send between the look and the removal: senders are handed out under this
            // lock.
            let mut driven = lock(&self.shared.driven);
            if self.commands.is_empty() {
                driver.rest();
                driven.remove(&self.key);
                return;
            }
        }
    }
}

/// What a driver receives.
type Commands = mpsc::Receiver<Command>;

/// What a driver waits for.
enum DriverEvent {
    Command(Option<Command>),
    Done(Completion),
    Alarm,
    /// Someone who waited has left.
    Left,
}

impl Driver {
    /// Decides and performs until nothing moves, tells those who wait, then waits for one thing.
    /// After a panic the session is loaded first: what was under way is taken over, as after a
    /// crash.
    async fn turn(&mut self, commands: &mut Commands, panicked: bool) -> Result<()> {
        if panicked && self.session.is_none() {
            self.take_up_again().await?;
        }
        self.settle(commands).await?;
        if self.is_idle() && commands.is_empty() {
            return Ok(());
        }
        match self.wait(commands).await {
            DriverEvent::Command(Some(command)) => self.obey(command).await,
            DriverEvent::Command(None) => Ok(()),
            DriverEvent::Done(done) => self.finish(done).await,
            DriverEvent::Alarm => {
                let rang = self.alarm.take().map(|alarm| alarm.at);
                self.keep_time(rang).await
            }
            DriverEvent::Left => {
                self.waiters.retain(|waiter| !waiter.is_gone());
                self.forget_closures();
                // What they left behind is durable before the session is let go.
                self.tell().await
            }
        }
    }

    /// Runs everything that can run now. Results that are there at once cost no write of their own:
    /// a run of read-only steps is one append.
    async fn settle(&mut self, commands: &mut Commands) -> Result<()> {
        loop {
            self.pump(commands).await?;
            match self.ready_result() {
                Some(done) => self.finish(done).await?,
                None => break,
            }
        }
        if self.session.is_some() {
            self.free_share();
        }
        self.flush();
        self.tell().await
    }

    async fn pump(&mut self, commands: &mut Commands) -> Result<()> {
        loop {
            if let Some(call) = self.to_judge.pop() {
                self.judge(call).await?;
                continue;
            }
            if let Some(run) = self.to_close.pop() {
                self.close_calls(run).await?;
                self.close_turns(run).await?;
                self.close_proposals(run).await?;
                continue;
            }
            if let Some((ask, look)) = self.to_look.pop() {
                self.look(ask, look).await?;
                continue;
            }
            match self.decide() {
                Some(Next::Fact(fact)) => self.follow(*fact).await?,
                Some(Next::Fetch(frame, want)) => self.fetch(frame, want),
                Some(Next::Turn(frame, kind)) => self.take_turn(frame, kind).await?,
                Some(Next::Idle) | None => return Ok(()),
            }
            self.decisions = self.decisions.wrapping_add(1);
            if self.decisions.is_multiple_of(DECISIONS_PER_TURN) {
                self.breathe(commands).await?;
            }
        }
    }

    /// Yields in a run that never waits: other tasks run, commands are handled, and the disk keeps
    /// up with the journal.
    async fn breathe(&mut self, commands: &mut Commands) -> Result<()> {
        yield_now().await;
        while let Ok(command) = commands.try_recv() {
            self.obey(command).await?;
        }
        if self.appends_ahead < APPENDS_AHEAD_MAX {
            return Ok(());
        }
        self.appends_ahead = 0;
        match self.ticket.clone() {
            Some(ticket) => ticket.await.map_err(Refusal::from),
            None => Ok(()),
        }
    }

    fn decide(&self) -> Option<Next> {
        let session: &Session = self.session.as_ref()?;
        Some(next(&self.env(), session))
    }

    /// Inputs of a decision besides the session.
    fn env(&self) -> Env<'_> {
        Env {
            closures: &self.closures,
            drafted: &self.drafted,
            limits: &self.shared.limits,
            fetched: &self.fetched,
            fetching: &self.fetching,
            now: self.shared.clock.now(),
        }
    }

    /// A result that is there without waiting.
    fn ready_result(&mut self) -> Option<Completion> {
        if self.in_flight.is_empty() {
            return None;
        }
        // Polled with a waker that does nothing: `wait` polls again with a real one.
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match self.in_flight.poll_next_unpin(&mut context) {
            Poll::Ready(done) => done,
            Poll::Pending => None,
        }
    }

    async fn wait(&mut self, commands: &mut Commands) -> DriverEvent {
        self.set_alarm();
        // While a rule waits for its time, or a run stands in line, a session stays here only for
        // those who wait with it.
        let stays = |session: &Session| {
            session.next_act().is_some() || session.runs.values().any(Run::is_queued)
        };
        let is_held = self.session.as_ref().is_some_and(stays);
        let alarm = &mut self.alarm;
        let waiters = &mut self.waiters;
        let in_flight: &mut FuturesUnordered<_> = &mut self.in_flight;
        poll_fn(|context| {
            if !in_flight.is_empty()
                && let Poll::Ready(Some(done)) = in_flight.poll_next_unpin(context)
            {
                return Poll::Ready(DriverEvent::Done(done));
            }
            if let Some(alarm) = alarm.as_mut()
                && alarm.rings.as_mut().poll(context).is_ready()
            {
                return Poll::Ready(DriverEvent::Alarm);
            }
            if is_held && waiters.iter_mut().any(|waiter| waiter.poll_gone(context).is_ready()) {
                return Poll::Ready(DriverEvent::Left);
            }
            commands.poll_recv(context).map(DriverEvent::Command)
        })
        .await
    }

    /// Whether nothing is left to write and there is nothing to wait for but commands.
    fn is_idle(&self) -> bool {
        let moving = self.session.as_ref().is_some_and(|session| session.phase() == Phase::Moving);
        let waits = !self.in_flight.is_empty() || !self.waiters.is_empty();
        let busy = waits || moving || self.acts_soon();
        self.to_look.is_empty() && self.pending.is_empty() && !busy
    }
}
