//! Which realms an upstream server belongs to, and with it its tools, lists and logins. A server
//! may be shared by several realms or be owned by one.

use super::Catalog;
use super::registry::ListedTool;
use kernel::identity::grants::RealmPattern;
use kernel::tool::call::ToolSpec;
use kernel::values::ids::{RealmId, ToolName};
use kernel::values::names::may_come;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

/// The realms of the servers behind this one.
#[derive(Debug, Clone)]
pub struct UpstreamRealms {
    /// That of servers of which nothing is said.
    usual: RealmId,
    /// Those of the others, by their names.
    named: BTreeMap<String, ServerRealms>,
    /// Those that are one realm's own, which come and go.
    own: Arc<RwLock<OwnServers>>,
}

/// The servers that single realms have for themselves, by their names, with what the names of their
/// tools begin with; without that they have none.
type OwnServers = BTreeMap<RealmId, BTreeMap<String, Option<String>>>;

#[derive(Debug, Clone)]
struct ServerRealms {
    /// What the names of its tools begin with.
    beginning: String,
    realms: Vec<RealmPattern>,
}

impl ServerRealms {
    fn has(&self, realm: &RealmId) -> bool {
        self.realms.iter().any(|pattern| pattern.fits(realm))
    }
}

impl UpstreamRealms {
    /// All of them are there for this realm alone.
    pub fn only(usual: RealmId) -> Self {
        Self { usual, named: BTreeMap::new(), own: Arc::default() }
    }

    /// The same, and a realm has this server for itself; without a beginning of the names of its
    /// tools it has none.
    #[must_use]
    pub fn owning(self, realm: &RealmId, upstream: &str, beginning: Option<String>) -> Self {
        self.own(realm, upstream, beginning);
        self
    }

    /// The same, but this one, the names of whose tools begin so, is there for these realms.
    #[must_use]
    pub fn with(mut self, upstream: &str, beginning: String, realms: &[RealmPattern]) -> Self {
        let realms = realms.to_vec();
        self.named.insert(upstream.to_owned(), ServerRealms { beginning, realms });
        self
    }

    /// From now on a realm has this server for itself.
    pub(crate) fn own(&self, realm: &RealmId, upstream: &str, beginning: Option<String>) {
        let mut own = self.own.write().unwrap_or_else(PoisonError::into_inner);
        own.entry(realm.clone()).or_default().insert(upstream.to_owned(), beginning);
    }

    /// From now on it has not.
    pub(crate) fn disown(&self, realm: &RealmId, upstream: &str) {
        let mut own = self.own.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(servers) = own.get_mut(realm) {
            servers.remove(upstream);
        }
        own.retain(|_, servers| !servers.is_empty());
    }

    fn has_own(&self, realm: &RealmId, upstream: &str) -> bool {
        let own = self.own.read().unwrap_or_else(PoisonError::into_inner);
        own.get(realm).is_some_and(|servers| servers.contains_key(upstream))
    }

    /// Whether a tool of this name may come from a server that one of these realms has for itself.
    fn awaits_own(&self, name: &str, is_meant: impl Fn(&RealmId) -> bool) -> bool {
        let own = self.own.read().unwrap_or_else(PoisonError::into_inner);
        let meant = own.iter().filter(|(realm, _)| is_meant(realm));
        let mut beginnings = meant.flat_map(|(_, servers)| servers.values().flatten());
        beginnings.any(|beginning| may_come(name, beginning))
    }

    /// Whether a server that several realms may have is there for one of them.
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
        let has = |owners: &UpstreamRealms| owners.has(realm, name) || owners.has_own(realm, name);
        self.upstreams_of.as_ref().is_none_or(has)
    }

    /// Whether one that several realms may have is there for this one.
    pub(super) fn shares_upstream(&self, realm: &RealmId, name: &str) -> bool {
        self.upstreams_of.as_ref().is_none_or(|owners| owners.has(realm, name))
    }

    /// From now on a realm has this server for itself; without a beginning of the names of its
    /// tools it has none.
    pub(crate) fn own_upstream(&self, realm: &RealmId, name: &str, beginning: Option<String>) {
        if let Some(owners) = &self.upstreams_of {
            owners.own(realm, name, beginning);
        }
    }

    /// From now on it has not.
    pub(crate) fn disown_upstream(&self, realm: &RealmId, name: &str) {
        if let Some(owners) = &self.upstreams_of {
            owners.disown(realm, name);
        }
    }

    /// Whether all servers behind this one are there for a realm.
    pub(crate) fn has_all_upstreams(&self, realm: &RealmId) -> bool {
        self.upstreams_of.as_ref().is_none_or(|owners| owners.has_all(realm))
    }

    /// Whether a tool of this name may come later to a realm.
    pub(crate) fn awaits(&self, realm: &RealmId, name: &str) -> bool {
        let Some(owners) = &self.upstreams_of else { return self.registry.awaits(name) };
        self.registry.awaits_of(name, |beginning| owners.awaits(realm, beginning))
            || owners.awaits_own(name, |own| own == realm)
    }

    /// Whether a tool of this name may come later to a realm that has it for itself.
    pub(super) fn awaits_anywhere(&self, name: &str) -> bool {
        self.upstreams_of.as_ref().is_some_and(|owners| owners.awaits_own(name, |_| true))
    }

    /// Whether a tool that several realms may have is there for one of them.
    fn is_for(&self, realm: &RealmId, listed: &ListedTool) -> bool {
        listed.upstream.as_ref().is_none_or(|upstream| self.shares_upstream(realm, upstream))
    }

    /// A tool that is there for a realm. One that others may have as well takes precedence over one
    /// of the same name that the realm has for itself.
    pub(crate) fn tool(&self, realm: &RealmId, name: &str) -> Option<Arc<ListedTool>> {
        let shared = self.registry.tool(name).filter(|listed| self.is_for(realm, listed));
        shared.or_else(|| self.registry.own_tool(realm, name))
    }

    /// The source of a realm's tool of this name.
    pub(crate) fn source(&self, realm: &RealmId, name: &str) -> Option<Arc<str>> {
        let own = || self.registry.own_book(realm)?.source(name).cloned();
        self.shared_source(realm, name).or_else(own)
    }

    /// The same of a tool that several realms may have.
    pub(super) fn shared_source(&self, realm: &RealmId, name: &str) -> Option<Arc<str>> {
        let _listed = self.registry.tool(name).filter(|listed| self.is_for(realm, listed))?;
        self.registry.book().source(name).cloned()
    }

    pub(crate) fn specs(&self, realm: &RealmId) -> Vec<Arc<ToolSpec>> {
        let book = self.registry.book();
        let own = self.registry.own_book(realm);
        let is_shared = |listed: &&Arc<ListedTool>| self.is_for(realm, listed);
        let mut specs: Vec<Arc<ToolSpec>> = book
            .tools
            .values()
            .filter(is_shared)
            .map(|listed| listed.tool.spec().clone())
            .collect();
        let Some(own) = own else { return specs };
        let is_left = |(name, _): &(&ToolName, &Arc<ListedTool>)| {
            book.tools.get(*name).is_none_or(|listed| !self.is_for(realm, listed))
        };
        let left = own.tools.iter().filter(is_left);
        specs.extend(left.map(|(_, listed)| listed.tool.spec().clone()));
        specs.sort_by(|left, right| left.name.cmp(&right.name));
        specs
    }
}
