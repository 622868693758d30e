//! Who may call a server: decided once, when the store is open, since stored keys count.

use super::error::{AssembleError, ProjectPart, stored, wrong};
use super::platform::Platform;
use super::policies::FilePolicies;
use super::setup::Setup;
use crate::secrets::vault::System;
use edge::request::auth::{Entrance, Visitor};
use edge::request::forwarded::ProxyTrust;
use engine::AllowAll;
use identity::policy::RolePolicy;
use identity::realm_policy::RealmPolicy;
use identity::{Identity, IdentityError, IdentityParts, principals};
use kernel::contracts::Policy;
use kernel::contracts::identity::api_keys::ApiKeys;
use kernel::contracts::identity::audit::Audit;
use kernel::contracts::identity::claims::Claims;
use kernel::contracts::identity::principals::Principals;
use kernel::contracts::identity::realms::StoredRealms;
use kernel::identity::exposure::{self, Access, Exposure, StartRefusal, Transport};
use kernel::identity::issuer::IssuerEntry;
use kernel::identity::principal::Principal;
use kernel::identity::realm::{RealmSettings, Realms};
use kernel::values::ids::{Millis, RealmId};
use kernel::values::secret::Secret;
use outbound::seal::Keyring;
use policy::CedarPolicy;
use project::config::{Config, ServerConfig};
use project::realm::default_realm;
use project::tables::tls::TlsConfig;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use stores::OpenStore;

/// What decides who may call.
pub(super) struct AccessSettings<'a> {
    address: SocketAddr,
    server: &'a ServerConfig,
    /// `WAYPOST_ADMIN_KEY`.
    admin_key: Option<&'a str>,
    /// `WAYPOST_API_KEY`, of the client on a pipe.
    api_key: Option<&'a str>,
    /// Whether everybody needs a credential, wherever the server is reached.
    never_local: bool,
    /// Whether the server serves no one but the program that it is a part of.
    alone: bool,
}

impl<'a> AccessSettings<'a> {
    /// What a server is built from says so.
    pub(super) fn of(setup: &'a Setup) -> Self {
        Self {
            address: setup.address,
            server: &setup.project.config.server,
            admin_key: setup.admin_key.as_deref(),
            api_key: setup.api_key.as_deref(),
            never_local: setup.never_local,
            alone: setup.alone,
        }
    }
}

/// Who is known, and who may call.
pub(super) struct Admission {
    pub(super) identity: Arc<Identity>,
    pub(super) entrance: Entrance,
    /// Who is at the other end of a pipe, where that is known.
    pub(super) client: Option<Visitor>,
    /// Who may do what.
    pub(super) policy: Arc<dyn Policy>,
    /// The policies of files, where there can be some. In local mode they decide nothing.
    pub(super) files: Option<Arc<CedarPolicy>>,
}

/// By what it is known who calls.
pub(super) struct IdentitySources {
    /// The keys that are stored.
    keys: Arc<dyn ApiKeys>,
    /// What tokens of issuers claimed.
    claims: Arc<dyn Claims>,
    /// The principals that are stored.
    principals: Arc<dyn Principals>,
    /// Those of the project's file.
    principals_file: Vec<Arc<Principal>>,
    /// The realms that the settings name.
    realms: Realms,
    /// Those that were made at run time.
    made_realms: Arc<dyn StoredRealms>,
    /// Where failed credentials are kept.
    audit: Arc<dyn Audit>,
    /// Whose tokens are taken.
    issuers: Vec<IssuerEntry>,
    /// The address of `/mcp`, where it has one.
    mcp: Option<String>,
}

impl IdentitySources {
    /// By what a server has: what is stored, its issuers, its file of principals and its realms.
    pub(super) fn to_server(setup: &Setup, opened: &OpenStore) -> Self {
        let Config { server, issuers, realms, .. } = &setup.project.config;
        let principals = setup.project.principals.clone();
        let realms = existing(realms.clone());
        let mcp = mcp_address(server, setup.address);
        Self::of(opened, issuers.clone(), principals, realms, Some(mcp))
    }

    /// By what is stored, by these issuers' tokens and by the principals of a file, where there is
    /// one, in these realms.
    pub(super) fn of(
        opened: &OpenStore,
        issuers: Vec<IssuerEntry>,
        principals: Option<Vec<Arc<Principal>>>,
        realms: Realms,
        mcp: Option<String>,
    ) -> Self {
        Self {
            keys: opened.api_keys.clone(),
            claims: opened.claims.clone(),
            principals: opened.principals.clone(),
            principals_file: principals.unwrap_or_default(),
            realms,
            made_realms: opened.realms.clone(),
            audit: opened.audit.clone(),
            issuers,
            mcp,
        }
    }
}

/// The realms that the settings name, and the one that every server has.
fn existing(mut configured: BTreeMap<RealmId, RealmSettings>) -> Realms {
    configured.entry(default_realm()).or_default();
    Realms(configured)
}

/// Everyone who is known.
pub(super) async fn known(
    by: IdentitySources,
    admin_key: Option<&str>,
    seal: &Keyring,
    system: &System,
) -> Result<Arc<Identity>, AssembleError> {
    let IdentitySources { keys, claims, principals, principals_file, realms, made_realms, .. } = by;
    let IdentitySources { audit, issuers, mcp, .. } = by;
    let System { clock, entropy, spawn } = system.clone();
    let parts = IdentityParts {
        keys,
        claims,
        principals,
        principals_file,
        realms,
        made_realms,
        issuers,
        mcp,
        audit: Some(audit),
        admin_key: admin_key.map(Secret::from),
        seal: seal.clone(),
        clock,
        entropy,
        spawn,
    };
    Identity::open(parts).await.map_err(|error| match error {
        IdentityError::Store(error) => stored(error.into()),
        IdentityError::Principals(clashes) => {
            wrong(ProjectPart::Principals)(principals::mistakes(&clashes))
        }
    })
}

/// The address at which clients find a server with these settings that listens there.
fn base(server: &ServerConfig, address: SocketAddr) -> String {
    let public = server.public_url.as_ref().map(|url| url.as_str().to_owned());
    public.unwrap_or_else(|| server.local_url(address))
}

/// The address of `/mcp`, which tokens may be for: never what a request names.
fn mcp_address(server: &ServerConfig, address: SocketAddr) -> String {
    format!("{}/mcp", base(server, address))
}

/// Who is known and who may call, or why the server must not start.
pub(super) async fn admitted(
    by: IdentitySources,
    policies: Option<FilePolicies>,
    settings: &AccessSettings<'_>,
    platform: &Platform,
) -> Result<Admission, AssembleError> {
    let Platform { system, keys, .. } = platform;
    let AccessSettings { address, server, admin_key, .. } = *settings;
    let identity = known(by, admin_key, keys, system).await?;
    for (realm, principal) in identity.directory().stuck_realms() {
        tracing::warn!(%realm, %principal, "the realm acts as a principal that cannot be used, so \
            that nothing can be run or called there; see `run_as_user_id` in its settings");
    }
    for realm in identity.buried_realms() {
        tracing::warn!(%realm, "the settings name a realm that was removed: its name is not given \
            again; remove it from the settings");
    }
    let files = policies.map(|policies| policies.opened(&identity, system));
    if settings.access(&identity, system.clock.now())? == Access::Local {
        let entrance = Entrance::local(address, server, admin_key);
        let client = settings.client(&entrance)?;
        let policy = within(Arc::new(AllowAll), &identity);
        return Ok(Admission { identity, entrance, client, policy, files });
    }
    identity.watch_issuers();
    let base = base(server, address);
    let entrance = Entrance::checked(address, server, between(server), identity.clone(), &base);
    let client = settings.client(&entrance)?;
    let policy: Arc<dyn Policy> = match &files {
        Some(files) => files.clone(),
        None => Arc::new(RolePolicy::new(identity.clone())),
    };
    let policy = within(policy, &identity);
    Ok(Admission { identity, entrance, client, policy, files })
}

/// This policy within what is set for realms, where that narrows something.
fn within(policy: Arc<dyn Policy>, identity: &Arc<Identity>) -> Arc<dyn Policy> {
    match identity.directory().realms.narrow() {
        true => Arc::new(RealmPolicy::new(policy, identity.clone())),
        false => policy,
    }
}

impl AccessSettings<'_> {
    fn access(&self, identity: &Identity, now: Millis) -> Result<Access, StartRefusal> {
        // One that listens to others follows the rule all the same.
        if self.alone && self.address.ip().is_loopback() {
            return Ok(Access::Local);
        }
        let admin_key = self.admin_key.filter(|key| !key.is_empty());
        let names = self.server.foreign_names();
        let access = exposure::access(&Exposure {
            listens_on_loopback: self.address.ip().is_loopback(),
            names: &names,
            origins: &self.server.origins,
            never_local: self.never_local,
            transport: transport(self.server),
            has_admin_key: admin_key.is_some(),
            has_keys: identity.directory().keys.values().any(|key| key.check(now).is_ok()),
            has_issuers: !identity.issuers().is_empty(),
        })?;
        if let Some(key) = admin_key {
            exposure::check_admin_key(access, key)?;
        }
        Ok(access)
    }

    /// Who is at the other end of a pipe. On one, it must be someone.
    fn client(&self, entrance: &Entrance) -> Result<Option<Visitor>, StartRefusal> {
        let api_key = self.api_key.filter(|key| !key.is_empty());
        // Without a port we are on a pipe.
        let is_piped = self.address.port() == 0;
        match entrance.piped(api_key) {
            Ok(Some(client)) => Ok(Some(client)),
            Ok(None) | Err(_) if !is_piped => Ok(None),
            Ok(None) => Err(no_client("this server asks everybody for a credential".to_owned())),
            Err(failure) => Err(no_client(format!("`WAYPOST_API_KEY`: {}", failure.message()))),
        }
    }
}

fn no_client(message: String) -> StartRefusal {
    let hint = "set `WAYPOST_API_KEY` to a key of this server; `waypost key add` makes one";
    StartRefusal { message, hint: hint.to_owned() }
}

/// How requests reach the server.
fn transport(server: &ServerConfig) -> Transport {
    match server.tls {
        Some(TlsConfig::Files { .. }) => Transport::Tls,
        Some(TlsConfig::Proxy { .. }) => Transport::Proxy,
        None => Transport::Plain,
    }
}

/// Who may stand between callers and a server that asks for credentials.
fn between(server: &ServerConfig) -> ProxyTrust {
    match &server.tls {
        Some(TlsConfig::Proxy { proxies }) => ProxyTrust::Proxies(proxies.clone()),
        Some(TlsConfig::Files { .. }) | None => ProxyTrust::Anyone,
    }
}
