//! The driver of one session: it alone changes it. Decide, record, perform, until nothing moves;
//! then write, wait until that is durable, and only then tell anyone.

use crate::clock::yield_now;
use crate::command::Command;
use crate::refusal::Refusal;
use crate::shared::{Shared, lock};
use futures::StreamExt;
use futures::future::poll_fn;
use futures::stream::FuturesUnordered;
use kernel::ids::SessionKey;
use kernel::next::{Env, Next, next};
use kernel::session::{Phase, Session};
use std::sync::Arc;
use std::task::Poll;
use tokio::sync::mpsc;

mod state;
mod key;
mod observed;
mod record;
mod time;
mod late;
mod turns;
mod login;
mod effects;
mod wake;
mod report;
mod adopt;
mod commands;
mod replies;

use state::{Done, Driver};

pub(crate) use login::NO_LOGIN;

/// How many decisions are taken before other tasks get their turn.
const DECISIONS_PER_TURN: u32 = 64;

/// Drives one session until nothing moves and nobody asks.
pub(crate) async fn drive(
    shared: Arc<Shared>,
    key: SessionKey,
    mut commands: mpsc::Receiver<Command>,
) {
    let mut driver = Driver::new(shared.clone(), key.clone());
    loop {
        if let Err(refusal) = driver.turn(&mut commands).await {
            driver.fail(&refusal);
            // What was in memory may not be in the store: the next command loads it again.
            driver = Driver::new(shared.clone(), key.clone());
        }
        if !driver.is_idle() {
            continue;
        }
        // Nobody can send between the look and the removal: senders are handed out under this lock.
        let mut driven = lock(&shared.driven);
        if commands.is_empty() {
            driver.rest();
            driven.remove(&key);
            return;
        }
    }
}

/// What a driver waits for.
enum Happened {
    Command(Option<Command>),
    Done(Done),
    Alarm,
}

impl Driver {
    /// Decides and performs until nothing moves, tells those who wait, then waits for one thing.
    async fn turn(&mut self, commands: &mut mpsc::Receiver<Command>) -> Result<(), Refusal> {
        self.settle().await?;
        if self.is_idle() && commands.is_empty() {
            return Ok(());
        }
        match self.wait(commands).await {
            Happened::Command(Some(command)) => self.obey(command).await,
            Happened::Command(None) => Ok(()),
            Happened::Done(done) => self.finish(done).await,
            Happened::Alarm => {
                self.alarm = None;
                self.keep_time().await
            }
        }
    }

    /// Runs everything that can run now. Results that are there at once cost no write of their own:
    /// a run of read-only steps is one append.
    async fn settle(&mut self) -> Result<(), Refusal> {
        loop {
            self.pump().await?;
            match self.ready_result() {
                Some(done) => self.finish(done).await?,
                None => break,
            }
        }
        self.flush();
        self.tell().await
    }

    async fn pump(&mut self) -> Result<(), Refusal> {
        let mut decisions = 0;
        loop {
            if let Some(call) = self.to_judge.pop() {
                self.judge(call).await?;
                continue;
            }
            if let Some(run) = self.to_close.pop() {
                self.close_calls(run).await?;
                self.close_turns(run).await?;
                continue;
            }
            if let Some((ask, look)) = self.to_look.pop() {
                self.look_at_login(ask, look).await?;
                continue;
            }
            match self.decide() {
                Some(Next::Fact(fact)) => self.record(*fact).await?,
                Some(Next::Fetch(frame, want)) => self.fetch(frame, want),
                Some(Next::Turn(frame, kind)) => self.take_turn(frame, kind).await?,
                Some(Next::Idle) | None => return Ok(()),
            }
            decisions += 1;
            if decisions % DECISIONS_PER_TURN == 0 {
                yield_now().await;
            }
        }
    }

    fn decide(&self) -> Option<Next> {
        let session: &Session = self.session.as_ref()?;
        Some(next(&self.env(), session))
    }

    /// What a decision may look at besides the session.
    fn env(&self) -> Env<'_> {
        Env {
            closures: &self.closures,
            limits: &self.shared.limits,
            fetched: &self.fetched,
            fetching: &self.fetching,
            now: self.shared.clock.now(),
        }
    }

    /// A result that is there without waiting.
    fn ready_result(&mut self) -> Option<Done> {
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

    async fn wait(&mut self, commands: &mut mpsc::Receiver<Command>) -> Happened {
        self.set_alarm();
        let alarm = &mut self.alarm;
        let in_flight: &mut FuturesUnordered<_> = &mut self.in_flight;
        poll_fn(|context| {
            if !in_flight.is_empty()
                && let Poll::Ready(Some(done)) = in_flight.poll_next_unpin(context)
            {
                return Poll::Ready(Happened::Done(done));
            }
            if let Some(alarm) = alarm.as_mut()
                && alarm.rings.as_mut().poll(context).is_ready()
            {
                return Poll::Ready(Happened::Alarm);
            }
            commands.poll_recv(context).map(Happened::Command)
        })
        .await
    }

    /// Whether nothing is left to write and there is nothing to wait for but commands.
    fn is_idle(&self) -> bool {
        let moving = self.session.as_ref().is_some_and(|session| session.phase() == Phase::Moving);
        let waits = !self.in_flight.is_empty() || !self.waiters.is_empty();
        self.to_look.is_empty() && self.pending.is_empty() && !waits && !moving
    }
}
