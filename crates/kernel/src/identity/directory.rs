//! Everyone who is known, as one value: a decision looks at one of them, so that it cannot see half
//! of a change.

use crate::identity::key::{ApiKey, KeyId};
use std::collections::HashMap;
use std::sync::Arc;

/// Everyone who is known at one moment.
#[derive(Debug, Clone, Default)]
pub struct Directory {
    /// Grows with every change.
    pub number: u64,
    /// The keys, those that were revoked included.
    pub keys: HashMap<KeyId, Arc<ApiKey>>,
    /// Whether there is an admin key, so that the subject `admin` is someone.
    pub has_admin_key: bool,
}
