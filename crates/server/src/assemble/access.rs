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

/// By what it is known who calls, beside what is stored.
#[derive(Default)]
pub(super) struct IdentitySources {
    /// The principals of the project's file.
    principals_file: Vec<Arc<Principal>>,
    /// The realms that the settings name.
    realms: Realms,
    /// Whose tokens are taken.
    issuers: Vec<IssuerEntry>,
    /// The address of `/mcp`, where it has one.
    mcp: Option<String>,
}

impl IdentitySources {
    fn of(setup: &Setup) -> Self {
        let Config { server, issuers, realms, .. } = &setup.project.config;
        Self {
            principals_file: setup.project.principals.clone().unwrap_or_default(),
            realms: existing(realms.clone()),
            issuers: issuers.clone(),
            mcp: Some(format!("{}/mcp", base(server, setup.address))),
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
    opened: &OpenStore,
    by: IdentitySources,
    admin_key: Option<&str>,
    seal: &Keyring,
    system: &System,
) -> Result<Arc<Identity>, AssembleError> {
    let IdentitySources { principals_file, realms, issuers, mcp } = by;
    let System { clock, entropy, spawn } = system.clone();
    let parts = IdentityParts {
        keys: opened.api_keys.clone(),
        claims: opened.claims.clone(),
        principals: opened.principals.clone(),
        principals_file,
        realms,
        made_realms: opened.realms.clone(),
        issuers,
        mcp,
        audit: Some(opened.audit.clone()),
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

/// The address at which clients find a server with these settings that listens there: never what a
/// request names.
fn base(server: &ServerConfig, address: SocketAddr) -> String {
    let public = server.public_url.as_ref().map(|url| url.as_str().to_owned());
    public.unwrap_or_else(|| server.local_url(address))
}

/// Who is known and who may call, or why the server must not start.
pub(super) async fn admitted(
    setup: &Setup,
    policies: Option<FilePolicies>,
    platform: &Platform,
) -> Result<Admission, AssembleError> {
    let Platform { system, keys, opened, .. } = platform;
    let address = setup.address;
    let server = &setup.project.config.server;
    let admin_key = setup.admin_key.as_deref();
    let by = IdentitySources::of(setup);
    let identity = known(opened, by, admin_key, keys, system).await?;
    for (realm, principal) in identity.directory().stuck_realms() {
        tracing::warn!(%realm, %principal, "the realm acts as a principal that cannot be used, so \
            that nothing can be run or called there; see `run_as_user_id` in its settings");
    }
    for realm in identity.buried_realms() {
        tracing::warn!(%realm, "the settings name a realm that was removed: its name is not given \
            again; remove it from the settings");
    }
    let files = policies.map(|policies| policies.opened(&identity, system));
    if access(setup, &identity, system.clock.now())? == Access::Local {
        let entrance = Entrance::local(address, server, admin_key);
        let client = client(setup, &entrance)?;
        let policy = within(Arc::new(AllowAll), &identity);
        return Ok(Admission { identity, entrance, client, policy, files });
    }
    identity.watch_issuers();
    let base = base(server, address);
    let entrance = Entrance::checked(address, server, between(server), identity.clone(), &base);
    let client = client(setup, &entrance)?;
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

fn access(setup: &Setup, identity: &Identity, now: Millis) -> Result<Access, StartRefusal> {
    let listens_on_loopback = setup.address.ip().is_loopback();
    // One that listens to others follows the rule all the same.
    if setup.isolated && listens_on_loopback {
        return Ok(Access::Local);
    }
    let server = &setup.project.config.server;
    let admin_key = setup.admin_key.as_deref().filter(|key| !key.is_empty());
    let names = server.foreign_names();
    let access = exposure::access(&Exposure {
        listens_on_loopback,
        names: &names,
        origins: &server.origins,
        never_local: setup.never_local,
        transport: transport(server),
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
fn client(setup: &Setup, entrance: &Entrance) -> Result<Option<Visitor>, StartRefusal> {
    let api_key = setup.api_key.as_deref().filter(|key| !key.is_empty());
    // Without a port we are on a pipe.
    let is_piped = setup.address.port() == 0;
    match entrance.piped(api_key) {
        Ok(Some(client)) => Ok(Some(client)),
        Ok(None) | Err(_) if !is_piped => Ok(None),
        Ok(None) => Err(no_client("this server asks everybody for a credential".to_owned())),
        Err(failure) => Err(no_client(format!("`WAYPOST_API_KEY`: {}", failure.message()))),
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
