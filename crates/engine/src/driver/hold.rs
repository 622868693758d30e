//! Exclusive holds on a session: no driver starts while something else changes it.

use crate::command::Command;
use crate::driver::drive;
use crate::shared::{Shared, lock};
use crate::shares::processor::{driving, in_turn};
use crate::shares::{Holder, Share};
use kernel::values::ids::SessionKey;
use std::sync::Arc;
use tokio::sync::mpsc;

/// A session that no one drives as long as this lives. What is asked of it meanwhile waits, and is
/// driven then.
pub(crate) struct SessionHold {
    shared: Arc<Shared>,
    key: SessionKey,
    /// There until it is dropped.
    commands: Option<mpsc::Receiver<Command>>,
}

impl Shared {
    /// Starts the driver of a session. Its polls count for this holder.
    pub(crate) fn spawn_driver(
        self: &Arc<Self>,
        key: &SessionKey,
        commands: mpsc::Receiver<Command>,
        share: Share,
        by: Holder,
    ) {
        let processor = self.processor.clone();
        let driver = drive(self.clone(), key.clone(), commands, share);
        let driver = async move { in_turn(processor.as_ref(), by, driver).await };
        self.spawn.task("session", Box::pin(driver));
    }

    /// Holds a session, unless someone drives it.
    pub(crate) fn hold(self: &Arc<Self>, key: &SessionKey) -> Option<SessionHold> {
        let mut driven = lock(&self.driven);
        if driven.contains_key(key) {
            return None;
        }
        let (sender, commands) = mpsc::channel(self.limits.session_queue_max);
        driven.insert(key.clone(), sender);
        Some(SessionHold { shared: self.clone(), key: key.clone(), commands: Some(commands) })
    }
}

impl Drop for SessionHold {
    fn drop(&mut self) {
        let Some(commands) = self.commands.take() else { return };
        // No one can send between the look and the removal: senders are handed out under this lock.
        let mut driven = lock(&self.shared.driven);
        if commands.is_empty() {
            driven.remove(&self.key);
        } else {
            let by = driving(&self.key, None);
            self.shared.spawn_driver(&self.key, commands, Share::default(), by);
        }
    }
}
