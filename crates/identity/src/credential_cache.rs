//! Cache of verified credentials, by fingerprint. What a credential proved follows from the
//! directory alone until the credential ends, so an entry holds until the directory changes.

use crate::credential::Fingerprint;
use crate::verified::VerifiedCaller;
use quick_cache::sync::Cache;
use std::sync::Arc;

/// About how many credentials are kept; those that are rarely used go first.
const CREDENTIALS_MAX: usize = 10_000;

/// Credentials that were good. Of themselves only their fingerprints are kept.
pub(crate) struct CredentialCache(Cache<Fingerprint, Entry>);

#[derive(Clone)]
struct Entry {
    /// The number of the directory by which the credential was good.
    number: u64,
    verified: Arc<VerifiedCaller>,
}

impl Default for CredentialCache {
    fn default() -> Self {
        Self(Cache::new(CREDENTIALS_MAX))
    }
}

impl CredentialCache {
    /// The cached proof of a credential for the directory of this number. It may have expired.
    pub(crate) fn get(&self, number: u64, fingerprint: Fingerprint) -> Option<Arc<VerifiedCaller>> {
        let entry = self.0.get(&fingerprint).filter(|entry| entry.number == number)?;
        Some(entry.verified)
    }

    /// Keeps what a credential proves by the directory of this number, or a later one.
    pub(crate) fn insert(
        &self,
        number: u64,
        fingerprint: Fingerprint,
        verified: Arc<VerifiedCaller>,
    ) {
        self.0.insert(fingerprint, Entry { number, verified });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credential::Fingerprints;
    use crate::verified::AdminKey;

    #[test]
    fn a_cached_credential_is_valid_for_its_directory_only() {
        let cache = CredentialCache::default();
        let fingerprints = Fingerprints::new([1; 32]);
        let verified = Arc::new(AdminKey::new("secret".into()).verified);
        let one = fingerprints.of("one");
        let other = fingerprints.of("other");
        cache.insert(1, one, verified.clone());
        assert!(cache.get(1, one).is_some());
        assert!(cache.get(1, other).is_none());
        assert!(cache.get(2, one).is_none(), "the directory changed");
        cache.insert(2, one, verified);
        assert!(cache.get(2, one).is_some());
        assert!(cache.get(1, one).is_none());
    }

    #[test]
    fn the_credential_cache_is_bounded() {
        let cache = CredentialCache::default();
        let fingerprints = Fingerprints::new([1; 32]);
        let verified = Arc::new(AdminKey::new("secret".into()).verified);
        for number in 0..2 * CREDENTIALS_MAX {
            cache.insert(1, fingerprints.of(&number.to_string()), verified.clone());
        }
        // Each part of the cache has the same room, rounded up.
        assert!(cache.0.len() <= CREDENTIALS_MAX + cache.0.num_shards());
    }
}
