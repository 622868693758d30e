//! Which realms the servers behind this one are there for, and with them their tools, lists and
//! logins.

use super::Catalog;
use super::registry::Listed;
use kernel::identity::grants::RealmPattern;
use kernel::values::ids::RealmId;
use std::collections::BTreeMap;

/// The realms of the servers behind this one.
#[derive(Debug, Clone)]
pub struct UpstreamRealms {
    /// That of servers of which nothing is said.
    usual: RealmId,
    /// Those of the others, by their names.
    named: BTreeMap<String, Named>,
}

/// What is said of one server.
#[derive(Debug, Clone)]
struct Named {
    /// What the names of its tools begin with.
    beginning: String,
    realms: Vec<RealmPattern>,
}

impl Named {
    fn has(&self, realm: &RealmId) -> bool {
        self.realms.iter().any(|pattern| pattern.fits(realm))
    }
}

impl UpstreamRealms {
    /// All of them are there for this realm alone.
    pub fn only(usual: RealmId) -> Self {
        Self { usual, named: BTreeMap::new() }
    }

    /// The same, but this one, the names of whose tools begin so, is there for these realms.
    #[must_use]
    pub fn with(mut self, upstream: &str, beginning: String, realms: &[RealmPattern]) -> Self {
        let realms = realms.to_vec();
        self.named.insert(upstream.to_owned(), Named { beginning, realms });
        self
    }

    /// Whether a server is there for a realm.
    pub(crate) fn has(&self, realm: &RealmId, upstream: &str) -> bool {
        self.named.get(upstream).map_or_else(|| self.usual == *realm, |named| named.has(realm))
    }

    /// Whether all servers that there may be are there for a realm.
    pub(crate) fn has_all(&self, realm: &RealmId) -> bool {
        self.usual == *realm && self.named.values().all(|named| named.has(realm))
    }

    /// Whether the server whose tools begin so is there for a realm.
    pub(crate) fn awaits(&self, realm: &RealmId, beginning: &str) -> bool {
        let named = self.named.values().find(|named| named.beginning == beginning);
        named.map_or_else(|| self.usual == *realm, |named| named.has(realm))
    }
}

impl Catalog {
    /// Whether a server behind this one is there for a realm.
    pub(crate) fn has_upstream(&self, realm: &RealmId, name: &str) -> bool {
        self.upstreams_of.as_ref().is_none_or(|owners| owners.has(realm, name))
    }

    /// Whether all servers behind this one are there for a realm.
    pub(crate) fn has_all_upstreams(&self, realm: &RealmId) -> bool {
        self.upstreams_of.as_ref().is_none_or(|owners| owners.has_all(realm))
    }

    /// Whether a tool of this name may come later to a realm.
    pub(crate) fn awaits(&self, realm: &RealmId, name: &str) -> bool {
        let Some(owners) = &self.upstreams_of else { return self.registry.awaits(name) };
        self.registry.awaits_of(name, |beginning| owners.awaits(realm, beginning))
    }

    /// Whether a tool is there for a realm.
    pub(super) fn is_for(&self, realm: &RealmId, listed: &Listed) -> bool {
        listed.upstream.as_ref().is_none_or(|upstream| self.has_upstream(realm, upstream))
    }
}
