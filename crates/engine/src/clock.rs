//! Time, randomness and tasks of the real system. Nothing else in the engine touches them, so
//! that a seeded executor with a fake clock can drive the same code.
#![allow(clippy::disallowed_methods, reason = "this is the one place that may")]

use futures::future::{BoxFuture, Either, select};
use kernel::contracts::{Clock, Entropy, Spawn};
use kernel::ids::Millis;
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

/// The system's randomness.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn bits(&self) -> u128 {
        let mut bytes = [0u8; 16];
        if getrandom::fill(&mut bytes).is_err() {
            // Without randomness ids would collide and approvals could be guessed.
            tracing::error!("the system gives no randomness");
            std::process::abort();
        }
        u128::from_be_bytes(bytes)
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
