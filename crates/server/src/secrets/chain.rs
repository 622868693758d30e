//! The keys of the audit: made of the server's secret, one for rows and one for digests.

use kernel::identity::audit::Mac;
use kernel::identity::chain::ChainKeys;
use outbound::seal::{Keyring, Macs};

/// What the secret is used for here: keys for other purposes differ.
const ROWS: &[u8] = b"waypost audit rows";
const DIGESTS: &[u8] = b"waypost audit digests";

/// The keys of the audit.
pub(crate) struct AuditKeys {
    /// The name of the secret that is used now.
    name: String,
    rows: Macs,
    digests: Macs,
}

impl AuditKeys {
    pub(crate) fn new(secrets: &Keyring) -> Self {
        let rows = Macs::new(secrets, ROWS);
        let digests = Macs::new(secrets, DIGESTS);
        Self { name: rows.current().to_string(), rows, digests }
    }
}

impl ChainKeys for AuditKeys {
    fn name(&self) -> &str {
        &self.name
    }

    fn mac(&self, key: &str, parts: &[&[u8]]) -> Option<Mac> {
        self.rows.mac(key, parts).map(Mac)
    }

    fn digest(&self, bytes: &[u8]) -> Mac {
        // A mac always has as many bytes as this.
        self.digests.current_mac(&[bytes]).map(Mac).unwrap_or_default()
    }
}
