//! A store under test, and how the suite opens it.

use super::driver::{got, realm, there};
use kernel::contracts::identity::api_keys::ApiKeys;
use kernel::contracts::identity::audit::Audit;
use kernel::contracts::identity::claims::Claims;
use kernel::contracts::identity::principals::Principals;
use kernel::contracts::identity::realms::StoredRealms;
use kernel::contracts::webhooks::Webhooks;
use kernel::contracts::{LoadResult, Store, StoredSession};
use kernel::limits::Limits;
use kernel::values::ids::SessionKey;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Longer than any promise takes.
const PROMISE_LIMIT: Duration = Duration::from_secs(120);
/// So many unknown reasons of a pipeline are counted by themselves.
const REASONS_MAX: usize = 2;

/// A store that promises what all of them promise: where its data lies, and how it is opened.
pub trait Arm: Send {
    /// Opens what is there, as a new process does: the one before it is over. The first time there
    /// is nothing. The limits are those of `limits`.
    fn open(&self) -> OpenArm;
}

/// What an arm opens.
pub struct OpenArm {
    /// Sessions.
    pub store: Arc<dyn Store>,
    pub api_keys: Arc<dyn ApiKeys>,
    /// Claims of subjects.
    pub claims: Arc<dyn Claims>,
    pub principals: Arc<dyn Principals>,
    /// Realms that were made at run time.
    pub realms: Arc<dyn StoredRealms>,
    /// The webhooks of tasks.
    pub webhooks: Arc<dyn Webhooks>,
    /// The audit, which has no keys yet.
    pub audit: Arc<dyn Audit>,
}

/// The limits that a store has in the suite.
pub fn limits() -> Limits {
    Limits { tally_reasons_max: REASONS_MAX, ..Limits::default() }
}

/// A store of its own for one promise.
pub struct Scene {
    open: OpenArm,
    /// What lies below the store goes after it.
    arm: Box<dyn Arm>,
}

impl Scene {
    /// The store of an arm that no one has used.
    pub fn new(arm: Box<dyn Arm>) -> Self {
        let open = arm.open();
        Self { open, arm }
    }

    pub fn store(&self) -> &dyn Store {
        &*self.open.store
    }

    /// The API keys beside it.
    pub fn api_keys(&self) -> &dyn ApiKeys {
        &*self.open.api_keys
    }

    /// The claims beside it.
    pub fn claims(&self) -> &dyn Claims {
        &*self.open.claims
    }

    /// The principals beside it.
    pub fn principals(&self) -> &dyn Principals {
        &*self.open.principals
    }

    /// The realms beside it.
    pub fn realms(&self) -> &dyn StoredRealms {
        &*self.open.realms
    }

    /// The webhooks beside it.
    pub fn webhooks(&self) -> &dyn Webhooks {
        &*self.open.webhooks
    }

    /// The audit beside it.
    pub fn audit(&self) -> &dyn Audit {
        &*self.open.audit
    }

    /// The same data, opened by what stands for a new process.
    #[must_use]
    pub fn reopened(self) -> Self {
        got(self.open.store.close());
        let Self { open, arm } = self;
        drop(open);
        Self::new(arm)
    }

    /// A session, as someone finds it who knows nothing of it.
    pub fn load(&self, key: &SessionKey) -> Option<StoredSession> {
        match got(self.open.store.load(key, None)) {
            LoadResult::Missing => None,
            LoadResult::Unchanged => panic!("nothing was said to be known"),
            LoadResult::Found(stored) => Some(stored),
        }
    }

    /// A session that is required.
    pub fn stored(&self, key: &SessionKey) -> StoredSession {
        there(self.load(key))
    }

    /// Its rows after its snapshot.
    pub fn tail(&self, key: &SessionKey) -> Vec<String> {
        self.stored(key).tail
    }

    /// How far a consumer has read.
    pub fn place(&self, consumer: &str) -> u64 {
        got(self.open.store.consumer(&realm(), consumer))
    }
}

/// Sees whether a store keeps a promise, within a time.
pub fn keep(arm: impl Arm + 'static, promise: fn(Scene)) {
    within_limit(move || promise(Scene::new(Box::new(arm))));
}

/// Runs the test of a promise, and panics if it takes too long.
pub fn within_limit(test: impl FnOnce() + Send + 'static) {
    let (done, is_done) = mpsc::channel();
    let kept = thread::spawn(move || {
        test();
        let _ = done.send(());
    });
    match is_done.recv_timeout(PROMISE_LIMIT) {
        Err(RecvTimeoutError::Timeout) => panic!("it takes longer than {PROMISE_LIMIT:?}"),
        Ok(()) | Err(RecvTimeoutError::Disconnected) => {
            if let Err(why) = kept.join() {
                resume_unwind(why);
            }
        }
    }
}
