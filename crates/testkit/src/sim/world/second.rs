//! A second supervisor: another engine over the same store, as another process would have it. It
//! has no clients; it looks for sessions that should move, and drives them. Now and then it is
//! taken for dead while it still runs: from then on it can write nothing, what it drove is taken
//! over, and some time later it begins again.

use super::engine_parts::EngineParts;
use crate::sim::judge::oracle::Oracle;
use crate::sim::machine::executor::Executor;
use crate::sim::machine::nodes::Nodes;
use crate::sim::machine::storage::OpenSecondNode;
use crate::sim::people::clients::locked;
use std::sync::{Arc, Mutex};

/// How long it works until it is taken for dead, at least and at most.
const WORKS_MS: (u64, u64) = (1_000, 7_000);
/// How long it takes until it begins again.
const GONE_MS: (u64, u64) = (0, 4_000);

/// The second supervisor of one life.
pub(super) struct Second {
    /// What its engines are made of.
    pub(super) engine_parts: EngineParts,
    /// How it opens the store.
    pub(super) open: OpenSecondNode,
    pub(super) nodes: Arc<Nodes>,
    pub(super) executor: Executor,
    pub(super) oracle: Arc<Mutex<Oracle>>,
}

impl Second {
    /// Begins to work, and stays at it in the last life.
    pub(super) fn begin(self, last: bool) {
        self.start();
        if !last {
            let executor = self.executor.clone();
            executor.spawn(Box::pin(self.come_and_go()));
        }
    }

    fn start(&self) {
        let store = self.engine_parts.store((self.open)(), Some(self.nodes.second()));
        match self.engine_parts.engine(store) {
            // It works without anyone who holds it.
            Ok(engine) => engine.admin().keep_recovering(),
            Err(why) => locked(&self.oracle).accuse(why),
        }
    }

    async fn come_and_go(self) {
        loop {
            let (least, most) = WORKS_MS;
            self.nodes.wait(least, most).await;
            self.nodes.fence();
            // Another one that does nothing takes its place.
            drop((self.open)());
            let (least, most) = GONE_MS;
            self.nodes.wait(least, most).await;
            self.start();
        }
    }
}
