//! What webhooks of A2A are kept and posted with: the store, the seal of their targets, and whom may
//! be notified.

use kernel::contracts::webhooks::Webhooks;
use outbound::addresses::HttpSettings;
use outbound::notices::Notifier;
use outbound::seal::{Envelopes, Keyring};
use std::sync::Arc;

/// What the secret is used for here: keys for other purposes differ.
const PURPOSE: &[u8] = b"waypost a2a webhook";

/// What webhooks are kept and posted with.
pub struct PushParts {
    pub(crate) store: Arc<dyn Webhooks>,
    /// Seals where they are and what they are shown.
    pub(crate) envelopes: Envelopes,
    pub(crate) notifier: Notifier,
}

impl PushParts {
    /// With these secrets; addresses that are not public must be among the allowed ones.
    pub fn new(store: Arc<dyn Webhooks>, keys: &Keyring, allowed: HttpSettings) -> Self {
        let envelopes = Envelopes::new(keys, PURPOSE);
        Self { store, envelopes, notifier: Notifier::new(allowed) }
    }
}
