//! Single-threaded test runtime with deterministic tasks, time and randomness. Time jumps to the
//! nearest timer once nothing can run.

use super::{HOPS_MAX, RemoteParts};
use futures::future::BoxFuture;
use kernel::contracts::{Clock, Entropy, Spawn};
use kernel::limits::Limits;
use kernel::values::ids::Millis;
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

/// A test that waits longer than this waits in vain.
const DAYS_MAX_MS: i64 = 7 * 24 * 60 * 60 * 1_000;

#[derive(Clone, Default)]
pub(crate) struct Stage(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    now: i64,
    timers_made: u64,
    timers: BTreeMap<(i64, u64), Waker>,
    spawned: Vec<BoxFuture<'static, ()>>,
    bits: u128,
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Stage {
    /// A stage at the beginning of time.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Its tasks, time and chance, with the usual limits.
    pub(crate) fn parts(&self) -> RemoteParts {
        RemoteParts {
            spawn: Arc::new(self.clone()),
            clock: Arc::new(self.clone()),
            entropy: Arc::new(self.clone()),
            limits: Arc::new(Limits::default()),
            hops_max: HOPS_MAX,
            supervisor: None,
            vault: Arc::new(crate::MemoryVault::new(Arc::new(self.clone()))),
            login: None,
            scope: crate::Scope::default(),
        }
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.0.state.lock().unwrap().now
    }

    /// Waits so long.
    pub(crate) async fn pass(&self, ms: u64) {
        self.sleep_until(self.now().plus_ms(ms)).await;
    }

    /// Runs everything until this future is done.
    pub(crate) fn run<T>(&self, main: impl Future<Output = T>) -> T {
        let mut main = pin!(main);
        let mut tasks: Vec<BoxFuture<'static, ()>> = Vec::new();
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(woken.clone());
        let mut context = Context::from_waker(&waker);
        loop {
            woken.0.store(false, Ordering::SeqCst);
            if let Poll::Ready(result) = main.as_mut().poll(&mut context) {
                return result;
            }
            tasks.append(&mut self.0.state.lock().unwrap().spawned);
            tasks.retain_mut(|task| task.as_mut().poll(&mut context).is_pending());
            let is_idle = self.0.state.lock().unwrap().spawned.is_empty();
            if is_idle && !woken.0.load(Ordering::SeqCst) {
                self.jump();
            }
        }
    }

    fn jump(&self) {
        let mut state = self.0.state.lock().unwrap();
        let ((then, _), waker) = state.timers.pop_first().expect("nothing can run any more");
        state.now = state.now.max(then);
        assert!(state.now < DAYS_MAX_MS, "what is waited for does not happen");
        drop(state);
        waker.wake();
    }
}

impl Clock for Stage {
    fn now(&self) -> Millis {
        Millis(self.now_ms())
    }

    fn elapsed(&self) -> std::time::Duration {
        std::time::Duration::from_millis(self.now().0.unsigned_abs())
    }

    fn sleep_until(&self, then: Millis) -> BoxFuture<'static, ()> {
        let stage = self.clone();
        let mut number = None;
        Box::pin(poll_fn(move |context| {
            let mut state = stage.0.state.lock().unwrap();
            if state.now >= then.0 {
                return Poll::Ready(());
            }
            let number = *number.get_or_insert_with(|| {
                state.timers_made += 1;
                state.timers_made
            });
            state.timers.insert((then.0, number), context.waker().clone());
            Poll::Pending
        }))
    }
}

impl Spawn for Stage {
    fn task(&self, _name: &'static str, future: BoxFuture<'static, ()>) {
        self.0.state.lock().unwrap().spawned.push(future);
    }

    fn thread(&self, name: &'static str, future: BoxFuture<'static, ()>) {
        self.task(name, future);
    }
}

impl Entropy for Stage {
    fn bits(&self) -> u128 {
        let mut state = self.0.state.lock().unwrap();
        state.bits = state.bits.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767);
        state.bits
    }
}
