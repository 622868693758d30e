//! Time and randomness of the simulation, behind the kernel's contracts.

use super::executor::Executor;
use crate::sim::rng::Rng;
use futures::future::BoxFuture;
use kernel::contracts::{Clock, Entropy};
use kernel::values::ids::Millis;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The executor's time.
pub struct SimClock(pub Executor);

impl Clock for SimClock {
    fn now(&self) -> Millis {
        self.0.now()
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep_until(&self, then: Millis) -> BoxFuture<'static, ()> {
        Box::pin(self.0.sleep_until(then))
    }
}

/// Bits out of the seed.
pub struct SimEntropy(Mutex<Rng>);

impl SimEntropy {
    /// The bits of this stream.
    pub fn new(rng: Rng) -> Self {
        Self(Mutex::new(rng))
    }
}

impl Entropy for SimEntropy {
    fn bits(&self) -> u128 {
        let mut rng = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (u128::from(rng.draw()) << 64) | u128::from(rng.draw())
    }
}
