//! Recovery, at start and continuously: sessions that should move and that nobody drives.

use crate::command::Command;
use crate::shared::{Engine, lock};
use std::sync::atomic::Ordering;

impl Engine {
    /// Starts looking for sessions that should move, until the engine stops.
    pub fn keep_recovering(&self) {
        let engine = self.clone();
        let task = async move {
            let shared = &engine.shared;
            while !shared.stopping.load(Ordering::Acquire) {
                engine.recover_once().await;
                let clock = &shared.clock;
                clock.sleep_until(clock.now().plus_ms(shared.limits.recover_interval_ms)).await;
            }
        };
        self.shared.spawn.task("recover", Box::pin(task));
    }

    /// Wakes the sessions that should move now and that nobody drives; how many.
    pub async fn recover_once(&self) -> usize {
        let shared = &self.shared;
        let limit = shared.limits.recover_batch_max;
        let leases = match shared.store.claim(shared.clock.now(), limit).await {
            Ok(leases) => leases,
            Err(error) => {
                tracing::warn!(%error, "sessions that should move cannot be listed");
                return 0;
            }
        };
        let mut woken = 0;
        for lease in leases {
            let driven = lock(&shared.driven).contains_key(&lease.key);
            if !driven && shared.send(&lease.key, Command::Wake).is_ok() {
                woken += 1;
            }
        }
        woken
    }
}
