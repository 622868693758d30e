//! What webhooks of A2A are kept and posted with: the store, the seal of their targets, whom may be
//! notified, and how who posts learns of new ones.

use edge::counters::Pushes;
use kernel::contracts::webhooks::{LiveWebhook, Webhooks};
use kernel::values::ids::RealmId;
use outbound::addresses::HttpSettings;
use outbound::notices::Notifier;
use outbound::seal::{Envelopes, Keyring};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Notify, watch};

/// What the secret is used for here: keys for other purposes differ.
const PURPOSE: &[u8] = b"waypost a2a webhook";

/// What webhooks are kept and posted with.
pub struct PushParts {
    pub store: Arc<dyn Webhooks>,
    /// Seals where they are and what they are shown.
    pub envelopes: Envelopes,
    pub notifier: Notifier,
    /// What became of what was posted.
    pub counts: Arc<Pushes>,
    made: Mutex<Vec<LiveWebhook>>,
    gone: Mutex<Vec<RealmId>>,
    woken: Notify,
    stopping: watch::Sender<bool>,
}

impl PushParts {
    /// With these secrets; addresses that are not public must be among the allowed ones.
    pub fn new(
        store: Arc<dyn Webhooks>,
        keys: &Keyring,
        allowed: HttpSettings,
        counts: Arc<Pushes>,
    ) -> Self {
        Self {
            store,
            envelopes: Envelopes::new(keys, PURPOSE),
            notifier: Notifier::new(allowed),
            counts,
            made: Mutex::default(),
            gone: Mutex::default(),
            woken: Notify::new(),
            stopping: watch::Sender::new(false),
        }
    }

    /// A webhook is stored that there may be something for.
    pub fn add(&self, webhook: LiveWebhook) {
        self.made.lock().unwrap_or_else(PoisonError::into_inner).push(webhook);
        self.woken.notify_one();
    }

    /// Those that were added since.
    pub fn take(&self) -> Vec<LiveWebhook> {
        std::mem::take(&mut *self.made.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Nothing of a realm is stored any more: who posts forgets its webhooks.
    pub fn drop_realm(&self, realm: &RealmId) {
        self.gone.lock().unwrap_or_else(PoisonError::into_inner).push(realm.clone());
        self.woken.notify_one();
    }

    /// The realms that are gone since.
    pub fn take_gone(&self) -> Vec<RealmId> {
        std::mem::take(&mut *self.gone.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until there may be some.
    pub async fn woken(&self) {
        self.woken.notified().await;
    }

    /// Nothing more is posted by this process.
    pub fn stop(&self) {
        self.stopping.send_replace(true);
    }

    /// Whether it is so.
    pub fn stopping(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }
}
