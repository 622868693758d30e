//! Time, randomness and tasks of the real system. Nothing else in the engine touches them, so
//! that a seeded executor with a fake clock can drive the same code.
#![allow(clippy::disallowed_methods, reason = "this is the one place that may")]

use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use kernel::contracts::{Clock, Entropy, Spawn};
use kernel::values::ids::Millis;
use rustix::time::{ClockId, clock_gettime};
use std::any::Any;
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The clock that no one sets, and that continues while the machine is suspended.
#[cfg(any(target_os = "linux", target_os = "android"))]
const PASSING: ClockId = ClockId::Boottime;
/// The same; Apple's continues too, others may stand still while the machine is suspended.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const PASSING: ClockId = ClockId::Monotonic;

/// The system's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Millis {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    fn elapsed(&self) -> Duration {
        // It counts from a moment in the past, and is never negative.
        Duration::try_from(clock_gettime(PASSING)).unwrap_or_default()
    }

    fn sleep_until(&self, then: Millis) -> BoxFuture<'static, ()> {
        match then.0.saturating_sub(self.now().0) {
            // The runtime's timers would take up to a millisecond for it.
            ..=0 => Box::pin(ready(())),
            ms => self.sleep_ms(ms as u64),
        }
    }

    fn sleep_ms(&self, ms: u64) -> BoxFuture<'static, ()> {
        // The runtime has a clock of its own: to know what time it is takes two more looks.
        Box::pin(tokio::time::sleep(Duration::from_millis(ms)))
    }
}

/// The system's randomness, fetched by the page: a request makes several ids, and each would be a
/// call into the system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemEntropy;

/// How many numbers are fetched at once, for each thread.
const NUMBERS: usize = 64;

thread_local! {
    static FETCHED: RefCell<Vec<[u8; 16]>> = const { RefCell::new(Vec::new()) };
}

impl Entropy for SystemEntropy {
    fn bits(&self) -> u128 {
        FETCHED.with_borrow_mut(|fetched| {
            if fetched.is_empty() {
                fetched.resize(NUMBERS, [0; 16]);
                if getrandom::fill(fetched.as_flattened_mut()).is_err() {
                    // Without randomness ids would collide and approvals could be guessed.
                    tracing::error!("the system gives no randomness");
                    std::process::abort();
                }
            }
            let last = fetched.len() - 1;
            // What was given out must not be found here again.
            let bits = u128::from_be_bytes(std::mem::take(&mut fetched[last]));
            fetched.truncate(last);
            bits
        })
    }
}

/// Tasks on tokio, blocking workers on threads of their own.
#[derive(Clone)]
pub struct TokioSpawn {
    handle: tokio::runtime::Handle,
    /// Called with the name of a critical task or thread that panicked.
    at_death: Arc<dyn Fn(&'static str) + Send + Sync>,
}

impl TokioSpawn {
    /// Tasks on this runtime. The panic of a critical one ends the process.
    pub fn new(handle: tokio::runtime::Handle) -> Self {
        Self { handle, at_death: Arc::new(abort) }
    }

    /// The future, with its panic logged and told.
    fn watched(
        &self,
        name: &'static str,
        future: BoxFuture<'static, ()>,
    ) -> BoxFuture<'static, ()> {
        let at_death = self.at_death.clone();
        Box::pin(async move {
            let ended = AssertUnwindSafe(future).catch_unwind().await;
            if let Err(panic) = ended {
                let why = panic_text(panic.as_ref());
                tracing::error!(name, why, "a task that must not end panicked; the process ends");
                at_death(name);
            }
        })
    }
}

/// Ends the process without unwinding: what is durable stays so, and a restart takes it up again.
fn abort(_name: &'static str) {
    std::process::abort();
}

pub(super) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&'static str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

impl Spawn for TokioSpawn {
    fn task(&self, _name: &'static str, future: BoxFuture<'static, ()>) {
        self.handle.spawn(future);
    }

    fn thread(&self, name: &'static str, future: BoxFuture<'static, ()>) {
        let started = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || futures::executor::block_on(future));
        if let Err(error) = started {
            tracing::error!(%error, name, "the system starts no more threads");
            std::process::abort();
        }
    }

    fn critical_task(&self, name: &'static str, future: BoxFuture<'static, ()>) {
        self.task(name, self.watched(name, future));
    }

    fn critical_thread(&self, name: &'static str, future: BoxFuture<'static, ()>) {
        self.thread(name, self.watched(name, future));
    }

    fn workers(&self) -> usize {
        self.handle.metrics().num_workers()
    }
}

/// The future's result, or `None` once so many milliseconds have passed. What is over at once needs
/// no timer.
pub async fn timeout<T>(clock: &dyn Clock, ms: u64, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut deadline = None;
    poll_fn(|context| {
        if let Poll::Ready(result) = future.as_mut().poll(context) {
            return Poll::Ready(Some(result));
        }
        let deadline = deadline.get_or_insert_with(|| clock.sleep_ms(ms));
        deadline.as_mut().poll(context).map(|()| None)
    })
    .await
}

/// Lets other tasks run once.
pub async fn yield_now() {
    let mut yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::sync::mpsc;

    const LIMIT: Duration = Duration::from_secs(60);

    async fn dies(why: &'static str) {
        panic!("{why}");
    }

    #[tokio::test]
    async fn time_passes_while_it_is_waited_for() {
        const WAIT_MS: u64 = 20;
        let before = SystemClock.elapsed();
        assert!(before > Duration::ZERO);
        SystemClock.sleep_until(SystemClock.now().plus_ms(WAIT_MS)).await;
        // `now` is given in whole milliseconds.
        let passed = SystemClock.elapsed().saturating_sub(before);
        assert!(passed >= Duration::from_millis(WAIT_MS - 1), "{passed:?}");
    }

    /// A clock that no one may wait for.
    struct Untimed;

    impl Clock for Untimed {
        fn now(&self) -> Millis {
            Millis(0)
        }

        fn elapsed(&self) -> Duration {
            Duration::ZERO
        }

        fn sleep_until(&self, _: Millis) -> BoxFuture<'static, ()> {
            panic!("a timer was made")
        }
    }

    #[tokio::test]
    async fn a_ready_future_needs_no_timer_and_a_pending_one_times_out() {
        assert_eq!(timeout(&Untimed, 1, ready(7)).await, Some(7));
        assert_eq!(timeout(&SystemClock, 1, futures::future::pending::<u8>()).await, None);
    }

    #[test]
    fn the_panic_of_a_critical_task_is_reported_and_its_return_is_not() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let (told, deaths) = mpsc::channel();
        let spawn = TokioSpawn {
            at_death: Arc::new(move |name: &'static str| told.send(name).unwrap()),
            ..TokioSpawn::new(runtime.handle().clone())
        };
        let (returned, returns) = mpsc::channel::<()>();
        let second = returned.clone();
        spawn.critical_task("task that returns", Box::pin(async move { drop(returned) }));
        spawn.critical_thread("thread that returns", Box::pin(async move { drop(second) }));
        // Both ends are dropped once both futures are done.
        assert_eq!(returns.recv_timeout(LIMIT), Err(mpsc::RecvTimeoutError::Disconnected));
        spawn.critical_task("task", Box::pin(dies("one")));
        assert_eq!(deaths.recv_timeout(LIMIT), Ok("task"));
        spawn.critical_thread("thread", Box::pin(dies("two")));
        assert_eq!(deaths.recv_timeout(LIMIT), Ok("thread"));
        // An ordinary one harms no one else.
        let (ended, ends) = mpsc::channel::<()>();
        let ordinary = async move {
            let _until_then = ended;
            dies("three").await;
        };
        spawn.task("ordinary", Box::pin(ordinary));
        assert_eq!(ends.recv_timeout(LIMIT), Err(mpsc::RecvTimeoutError::Disconnected));
        assert_eq!(deaths.try_recv(), Err(mpsc::TryRecvError::Empty));
    }

    #[test]
    fn the_message_of_a_panic_is_extracted() {
        let said = |panic: Box<dyn Any + Send>| panic_text(panic.as_ref()).to_owned();
        assert_eq!(said(Box::new("a text")), "a text");
        assert_eq!(said(Box::new("one of its own".to_owned())), "one of its own");
        assert_eq!(said(Box::new(7)), "no message");
    }

    #[test]
    fn random_numbers_are_unique_under_concurrency() {
        let taken = |_| (0..NUMBERS * 3).map(|_| SystemEntropy.bits()).collect::<Vec<u128>>();
        let threads: Vec<_> = (0..4).map(|it| std::thread::spawn(move || taken(it))).collect();
        let all: Vec<u128> =
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
    }
}
