//! Time, randomness and tasks of the real system. Nothing else in the engine touches them, so
//! that a seeded executor with a fake clock can drive the same code.
#![allow(clippy::disallowed_methods, reason = "this is the one place that may")]

use futures::future::{BoxFuture, Either, select};
use kernel::contracts::{Clock, Entropy, Spawn};
use kernel::ids::Millis;
use std::cell::RefCell;
use std::future::Future;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The system's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Millis {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    fn sleep_until(&self, then: Millis) -> BoxFuture<'static, ()> {
        let ms = then.0.saturating_sub(self.now().0).max(0);
        Box::pin(tokio::time::sleep(Duration::from_millis(ms as u64)))
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
#[derive(Debug, Clone)]
pub struct TokioSpawn {
    handle: tokio::runtime::Handle,
}

impl TokioSpawn {
    /// Tasks on this runtime.
    pub fn new(handle: tokio::runtime::Handle) -> Self {
        Self { handle }
    }
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
}

/// The future's result, or `None` once so many milliseconds have passed.
pub async fn timeout<T>(clock: &dyn Clock, ms: u64, future: impl Future<Output = T>) -> Option<T> {
    let deadline = clock.sleep_until(clock.now().plus_ms(ms));
    match select(std::pin::pin!(future), deadline).await {
        Either::Left((result, _)) => Some(result),
        Either::Right(((), _)) => None,
    }
}

/// Lets other tasks run once.
pub async fn yield_now() {
    let mut yielded = false;
    futures::future::poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return std::task::Poll::Ready(());
        }
        context.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_number_is_given_out_twice_however_many_are_fetched_at_once() {
        let taken = |_| (0..NUMBERS * 3).map(|_| SystemEntropy.bits()).collect::<Vec<u128>>();
        let threads: Vec<_> = (0..4).map(|it| std::thread::spawn(move || taken(it))).collect();
        let all: Vec<u128> =
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
    }
}
