//! A small executor of one thread that picks the next task by a seed. Time stands still while
//! anything can run and jumps to the nearest timer when nothing can. A crash is: stop polling, drop
//! every task.

use super::power::{Point, Power};
use crate::sim::rng::{Rng, mix};
use futures::future::BoxFuture;
use kernel::contracts::Spawn;
use kernel::values::ids::Millis;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// The future that `run_until` was given.
const MAIN: u64 = 0;
/// A fixed day, so that ids and times are the same in every run of a seed.
const BEGIN_MS: i64 = 1_800_000_000_000;

/// Why a run of the executor ended without a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The power went off.
    Cut,
    /// Nothing can run and no timer is set.
    Stalled,
    /// It took more steps than it may.
    TooLong,
}

/// The executor. All clones are one.
#[derive(Clone)]
pub struct Executor {
    shared: Arc<Shared>,
}

struct Shared {
    power: Arc<Power>,
    state: Mutex<State>,
}

struct State {
    rng: Rng,
    /// The time if no one had set the clock: it only grows.
    now: i64,
    /// How far the clock was set on, or back.
    set_by: i64,
    steps: u64,
    /// Which tasks were polled in which order, as one number.
    trace: u64,
    tasks_made: u64,
    timers_made: u64,
    tasks: BTreeMap<u64, BoxFuture<'static, ()>>,
    runnable: Vec<u64>,
    timers: BTreeMap<(i64, u64), Waker>,
}

struct Wakeup {
    task: u64,
    shared: Weak<Shared>,
}

impl Wake for Wakeup {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(shared) = self.shared.upgrade() {
            shared.make_runnable(self.task);
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn make_runnable(&self, task: u64) {
        let mut state = self.state();
        if !state.runnable.contains(&task) {
            state.runnable.push(task);
        }
    }
}

impl Executor {
    /// An executor of this seed, under this switch.
    pub fn new(seed: u64, power: Arc<Power>) -> Self {
        let state = State {
            rng: Rng::stream(seed, 1),
            now: BEGIN_MS,
            set_by: 0,
            steps: 0,
            trace: seed,
            tasks_made: MAIN,
            timers_made: 0,
            tasks: BTreeMap::new(),
            runnable: Vec::new(),
            timers: BTreeMap::new(),
        };
        Self { shared: Arc::new(Shared { power, state: Mutex::new(state) }) }
    }

    /// Starts a task.
    pub fn spawn(&self, future: BoxFuture<'static, ()>) {
        let mut state = self.shared.state();
        state.tasks_made += 1;
        let task = state.tasks_made;
        state.tasks.insert(task, future);
        state.runnable.push(task);
    }

    /// Runs everything until this future is done, the power goes off, or so many steps are taken.
    pub fn run_until<T>(&self, main: impl Future<Output = T>, steps_max: u64) -> Result<T, Stop> {
        let mut main = std::pin::pin!(main);
        let waker = self.waker(MAIN);
        self.shared.make_runnable(MAIN);
        let mut left = steps_max;
        while self.shared.power.is_on() {
            if left == 0 {
                return Err(Stop::TooLong);
            }
            let Some(task) = self.pick() else {
                if self.jump() {
                    continue;
                }
                return Err(Stop::Stalled);
            };
            left -= 1;
            if !self.shared.power.passes(Point::Step) {
                break;
            }
            if task != MAIN {
                self.poll(task);
            } else if let Poll::Ready(value) = main.as_mut().poll(&mut Context::from_waker(&waker))
            {
                // What was reported in the step in which the power went off reached no one.
                return if self.shared.power.is_on() { Ok(value) } else { Err(Stop::Cut) };
            }
        }
        Err(Stop::Cut)
    }

    /// Drops every task, as the end of a process does.
    pub fn drop_tasks(&self) {
        loop {
            let mut state = self.shared.state();
            state.runnable.clear();
            let timers = std::mem::take(&mut state.timers);
            let tasks = std::mem::take(&mut state.tasks);
            drop(state);
            drop(timers);
            if tasks.is_empty() {
                return;
            }
            // What a task drops may lock the state or start another one.
            drop(tasks);
        }
    }

    /// The time, as the clock tells it.
    pub fn now(&self) -> Millis {
        let state = self.shared.state();
        Millis(state.now + state.set_by)
    }

    /// How much time has passed since the beginning, however the clock was set.
    pub fn elapsed(&self) -> Duration {
        let passed = self.shared.state().now.saturating_sub(BEGIN_MS);
        Duration::from_millis(u64::try_from(passed).unwrap_or_default())
    }

    /// Sets the clock on by so much, or back: no time passes.
    pub fn set_clock_by(&self, ms: i64) {
        self.shared.state().set_by += ms;
    }

    /// Lets time pass while no one runs.
    pub fn pass(&self, ms: i64) {
        self.shared.state().now += ms;
    }

    /// How many steps were taken.
    pub fn steps(&self) -> u64 {
        self.shared.state().steps
    }

    /// Which tasks ran in which order, as one number: the same for the same seed.
    pub fn trace(&self) -> u64 {
        self.shared.state().trace
    }

    /// A future that is done at this moment, as the clock tells it now: as with the system's
    /// clock, one that is set later neither shortens nor lengthens the wait.
    pub fn sleep_until(&self, then: Millis) -> Sleep {
        let then = then.0.saturating_sub(self.shared.state().set_by);
        Sleep { shared: self.shared.clone(), then, timer: None }
    }

    fn waker(&self, task: u64) -> Waker {
        Waker::from(Arc::new(Wakeup { task, shared: Arc::downgrade(&self.shared) }))
    }

    /// Takes one of the tasks that can run.
    fn pick(&self) -> Option<u64> {
        let mut state = self.shared.state();
        if state.runnable.is_empty() {
            return None;
        }
        let count = state.runnable.len() as u64;
        let index = state.rng.below(count) as usize;
        let task = state.runnable.swap_remove(index);
        state.steps += 1;
        state.trace = mix(state.trace, task);
        Some(task)
    }

    fn poll(&self, task: u64) {
        let Some(mut future) = self.shared.state().tasks.remove(&task) else { return };
        let waker = self.waker(task);
        if future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
            self.shared.state().tasks.insert(task, future);
        }
    }

    /// Moves time to the nearest timer; false if there is none.
    fn jump(&self) -> bool {
        let mut state = self.shared.state();
        let Some(((at, _), waker)) = state.timers.pop_first() else { return false };
        state.now = state.now.max(at);
        drop(state);
        waker.wake();
        true
    }
}

/// Waits for a moment.
pub struct Sleep {
    shared: Arc<Shared>,
    then: i64,
    timer: Option<(i64, u64)>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: std::pin::Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let then = self.then;
        let old = self.timer.take();
        let mut state = self.shared.state();
        if let Some(old) = old {
            state.timers.remove(&old);
        }
        if state.now >= then {
            return Poll::Ready(());
        }
        state.timers_made += 1;
        let timer = (then, state.timers_made);
        state.timers.insert(timer, context.waker().clone());
        drop(state);
        self.timer = Some(timer);
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(timer) = self.timer.take() {
            self.shared.state().timers.remove(&timer);
        }
    }
}

/// Tasks and threads, both as tasks of the executor.
pub struct SimSpawn(pub Executor);

impl Spawn for SimSpawn {
    fn task(&self, _name: &'static str, future: BoxFuture<'static, ()>) {
        self.0.spawn(future);
    }

    fn thread(&self, _name: &'static str, future: BoxFuture<'static, ()>) {
        self.0.spawn(future);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(seed: u64) -> (Vec<u32>, u64) {
        let executor = Executor::new(seed, Arc::new(Power::default()));
        let seen = Arc::new(Mutex::new(Vec::new()));
        for name in 0..8u32 {
            let seen = seen.clone();
            let clock = executor.clone();
            executor.spawn(Box::pin(async move {
                let later = Millis(clock.now().0 + i64::from(name % 3));
                clock.sleep_until(later).await;
                seen.lock().unwrap().push(name);
            }));
        }
        let clock = executor.clone();
        let end = Millis(executor.now().0 + 10);
        executor.run_until(async move { clock.sleep_until(end).await }, 1_000).unwrap();
        let seen = seen.lock().unwrap().clone();
        (seen, executor.trace())
    }

    #[test]
    fn a_seed_decides_the_order() {
        assert_eq!(order(3), order(3));
        assert_eq!(order(3).0.len(), 8);
        assert!((0..20).any(|seed| order(seed).0 != order(3).0));
    }

    #[test]
    fn setting_the_clock_moves_no_elapsed_time_and_no_timer() {
        const HOUR_MS: i64 = 3_600_000;
        for set_by in [HOUR_MS, -HOUR_MS] {
            let executor = Executor::new(1, Arc::new(Power::default()));
            let begin = executor.now();
            let clock = executor.clone();
            let waiting = executor.sleep_until(begin.plus_ms(500));
            executor.set_clock_by(set_by);
            assert_eq!(executor.now(), Millis(begin.0 + set_by));
            assert_eq!(executor.elapsed(), Duration::ZERO, "nothing has passed");
            executor.run_until(waiting, 100).unwrap();
            assert_eq!(executor.elapsed(), Duration::from_millis(500));
            let next = executor.now().plus_ms(250);
            executor.run_until(async move { clock.sleep_until(next).await }, 100).unwrap();
            assert_eq!((executor.now(), executor.elapsed()), (next, Duration::from_millis(750)));
        }
    }

    #[test]
    fn a_stall_is_noticed_and_a_power_cut_stops_the_run() {
        let power = Arc::new(Power::default());
        let executor = Executor::new(1, power.clone());
        let stalled = executor.run_until(std::future::pending::<()>(), 100);
        assert_eq!(stalled, Err(Stop::Stalled));
        power.switch_on(Some((Point::Step, 1)));
        assert_eq!(executor.run_until(async {}, 100), Err(Stop::Cut));
    }
}
