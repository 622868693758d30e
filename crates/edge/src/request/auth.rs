//! Who comes in: established once for each request, which carries it to its handler. In local mode
//! everybody on this machine is the caller `local`, and the admin key, where there is one, adds
//! administration. Otherwise everybody needs a credential, except at a few endpoints that tell
//! nothing. A credential that is sent and wrong is refused at every endpoint: nobody falls back to
//! less.

pub mod open_paths;

use crate::problem::{Failure, Result};
use crate::request::forwarded::{Peer, ProxyTrust};
use crate::request::origin::{self, Names};
use crate::request::realms;
use axum::http::header::{AUTHORIZATION, AsHeaderName, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::response::Response;
use identity::credential::{Malformed, SentCredential};
use identity::{CredentialRefusal, Endpoint, Identity, VerifiedCaller};
use kernel::identity::roles::Role;
use kernel::tool::call::Caller;
use kernel::values::caller::{Scope, Scopes, Via};
use kernel::values::secret::is_same_secret;
use open_paths::{HEALTH_PATH, MCP_METADATA_PATH, MCP_PATH, TOKEN_PATH};
use project::config::{AdminRule, ServerConfig};
use project::realm::local_caller;
use project::tables::public_url::CALLBACK_PATH;
use ring::digest::{Digest, SHA256, digest};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

pub use open_paths::asks_for_more;

/// The other header that brings a credential. What is static need not be read letter by letter with
/// each request.
pub static API_KEY: HeaderName = HeaderName::from_static("x-api-key");
/// The pattern that every realm fits.
const EVERY_REALM: &str = "*";
/// What a client of `/mcp` needs at first.
const MCP_SCOPES: &str = "read use";

/// Decides who may come in at one listener, and as whom.
#[derive(Clone)]
pub struct Entrance {
    names: Names,
    between: ProxyTrust,
    rule: Rule,
    /// Whether it is a pipeline's own port.
    is_own: bool,
}

/// A request, as far as it decides who comes in.
#[derive(Debug, Clone, Copy)]
pub struct RequestHead<'a> {
    pub method: &'a Method,
    pub uri: &'a Uri,
    pub headers: &'a HeaderMap,
    /// None where it came by no connection.
    pub peer: Option<&'a Peer>,
}

/// Who sends a request.
#[derive(Debug, Clone)]
pub struct Visitor {
    /// As whom it calls. In local mode, what does not need an administrator is not done as one.
    pub caller: Arc<Caller>,
    /// As whom it does what administrators do, where it may try. With a credential this is the
    /// caller: policy decides.
    pub administrator: Option<Arc<Caller>>,
    /// The credential; none in local mode.
    pub verified: Option<Arc<VerifiedCaller>>,
}

impl Visitor {
    pub fn administers(&self) -> bool {
        self.administrator.as_ref().is_some_and(|caller| caller.admin)
    }

    /// Whether its credential has one of these roles in every realm that there is or may be: what
    /// is the server's own belongs to no realm. In local mode there is one realm.
    pub fn is_everywhere(&self, roles: &[Role]) -> bool {
        let Some(verified) = &self.verified else { return true };
        let mut grants = verified.realms.0.iter();
        grants.any(|(realm, held)| {
            realm.as_str() == EVERY_REALM && roles.iter().any(|role| held.has(*role))
        })
    }

    /// The same, who came in by this way. In local mode only a request that may decide something
    /// keeps it: nothing is kept of the others.
    #[must_use]
    pub fn with_via(self, may_decide: bool, via: impl FnOnce() -> Via) -> Self {
        let is_local = self.verified.is_none();
        if is_local && !may_decide {
            return self;
        }
        let caller = Arc::new(Caller { via: via(), ..Caller::clone(&self.caller) });
        let administrator = match is_local {
            true => self.administrator,
            // With a credential it is the caller.
            false => self.administrator.map(|_| caller.clone()),
        };
        Self { caller, administrator, verified: self.verified }
    }

    /// As whom policy is asked about what an endpoint keeps itself.
    pub fn foremost(&self) -> &Caller {
        self.administrator.as_ref().unwrap_or(&self.caller)
    }
}

/// Who is known.
#[derive(Clone)]
enum Rule {
    /// Everybody on this machine.
    Local(Local),
    /// Everybody who has a credential.
    Credentials(Checked),
}

impl Entrance {
    /// The entrance of a server in local mode that listens on `address`. An empty key is none.
    pub fn local(address: SocketAddr, config: &ServerConfig, key: Option<&str>) -> Self {
        let rule = Rule::Local(Local::new(address, config.admin, key));
        let names = Names::new(address, config);
        let between = ProxyTrust::NoOne;
        Self { names, between, rule, is_own: false }
    }

    /// The entrance of a server that everybody needs a credential for, and that is found at `base`.
    pub fn checked(
        address: SocketAddr,
        config: &ServerConfig,
        between: ProxyTrust,
        identity: Arc<Identity>,
        base: &str,
    ) -> Self {
        let rule = Rule::Credentials(Checked { identity, base: base.into() });
        Self { names: Names::new(address, config), between, rule, is_own: false }
    }

    /// The entrance of a pipeline's own port of the same server.
    pub fn beside(&self, address: SocketAddr) -> Self {
        Self { names: self.names.beside(address), is_own: true, ..self.clone() }
    }

    /// The origin of a listed page that sends a request with these headers: it may read the answer.
    pub fn page(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        self.names.listed(headers).cloned()
    }

    /// Who sends a request; none for a stranger at an endpoint that is open.
    pub async fn admit(&self, arrival: &RequestHead<'_>) -> Result<Option<Visitor>> {
        let RequestHead { method, uri, headers, peer } = *arrival;
        if !self.is_own && uri.path() == CALLBACK_PATH {
            // A browser that comes back from a login was sent by a foreign page, and has a proof
            // with it.
            self.names.check_hosts(uri, headers)?;
        } else {
            self.names.check(uri, headers)?;
        }
        let from = self.address_of(peer, uri.path(), headers)?;
        let sent = match uri.path() {
            TOKEN_PATH => None,
            _ => credential(headers)?,
        };
        match (&self.rule, sent) {
            (Rule::Local(local), sent) => {
                // What the query names is the concern of who reads it.
                realms::only_usual(&Uri::default(), headers)?;
                match sent {
                    None => Ok(Some(local.visitor())),
                    Some(sent) => local.administrator(sent.text()).map(Some),
                }
            }
            (Rule::Credentials(checked), Some(sent)) => {
                let verified = checked.identity.verify(&sent, from, self.endpoint(uri)).await;
                checked.visitor(arrival, verified, from).map(Some)
            }
            (Rule::Credentials(_), None) if self.is_open(method, uri) => Ok(None),
            (Rule::Credentials(checked), None) => Err(checked.nothing_sent(uri.path())),
        }
    }

    /// Where a request for this path comes from, or why it is refused.
    pub fn address_of(
        &self,
        peer: Option<&Peer>,
        path: &str,
        headers: &HeaderMap,
    ) -> Result<IpAddr> {
        self.between.origin(peer, path, headers)
    }

    /// The address at which clients find us, without a slash at its end; none in local mode.
    pub fn base(&self) -> Option<&str> {
        match &self.rule {
            Rule::Local(_) => None,
            Rule::Credentials(checked) => Some(&checked.base),
        }
    }

    /// The answer to a browser that asks what a page may send, where the entrance answers that. A
    /// browser sends no credential with it, so no handler could.
    pub fn preflight(&self, arrival: &RequestHead<'_>) -> Option<Response> {
        let RequestHead { method, uri, headers, .. } = *arrival;
        let is_checked = matches!(self.rule, Rule::Credentials(_));
        if !is_checked || !origin::is_preflight(method, headers) {
            return None;
        }
        let is_known = match self.names.listed(headers) {
            Some(_) => self.names.check_hosts(uri, headers).is_ok(),
            // Pages of our own may call `/mcp` under any of our names.
            None => uri.path() == MCP_PATH && self.names.check(uri, headers).is_ok(),
        };
        is_known.then(|| origin::preflight(uri, headers))
    }

    /// Who is at the other end of a pipe, by the key in its environment; none where it needs one
    /// and has none.
    pub fn piped(&self, key: Option<&str>) -> Result<Option<Visitor>> {
        let checked = match &self.rule {
            Rule::Local(local) => return Ok(Some(local.visitor())),
            Rule::Credentials(checked) => checked,
        };
        let Some(key) = key else { return Ok(None) };
        let sent = SentCredential::of(&[], &[key.as_bytes()]).map_err(bad_credential)?;
        let Some(sent) = sent else { return Ok(None) };
        let uri = Uri::from_static("/");
        let headers = HeaderMap::new();
        let arrival =
            RequestHead { method: &Method::POST, uri: &uri, headers: &headers, peer: None };
        let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
        // A key: a token of an issuer would end before the pipe does.
        let verified = checked.identity.authenticate(&sent, here);
        checked.visitor(&arrival, verified, here).map(Some)
    }

    /// Whether the caller, of any kind, may also administer.
    pub fn everybody_administers(&self) -> bool {
        matches!(&self.rule, Rule::Local(local) if matches!(local.admin, Admin::Everybody))
    }

    /// What a visitor hears that may not administer.
    pub fn no_administrator(&self) -> Failure {
        match &self.rule {
            Rule::Local(local) => local.no_administrator(),
            Rule::Credentials(checked) => checked.nothing_sent(""),
        }
    }

    /// The answer to a client whose credential ended before the answer was there.
    pub fn lapsed(&self, path: &str) -> Failure {
        let message = "the credential ended before the answer was there";
        match &self.rule {
            Rule::Local(_) => unauthorized(message),
            Rule::Credentials(checked) => {
                checked.challenged(unauthorized(message), path, Some("invalid_token"))
            }
        }
    }

    /// The answer to a client of `/mcp` that needs a credential with this scope as well: clients
    /// ask for exactly what the answer names, so what theirs has is named too.
    pub fn step_up(&self, scope: Scope, has: Option<Scopes>) -> Option<HeaderValue> {
        let base = self.base()?;
        let all: Scopes = has.into_iter().flat_map(Scopes::iter).chain([scope]).collect();
        let names: Vec<&str> = all.iter().map(Scope::name).collect();
        let names = names.join(" ");
        let text = format!(
            "Bearer error=\"insufficient_scope\", scope=\"{names}\", \
             resource_metadata=\"{base}{MCP_METADATA_PATH}\""
        );
        HeaderValue::try_from(text).ok()
    }

    fn endpoint(&self, uri: &Uri) -> Endpoint {
        if !self.is_own && uri.path() == MCP_PATH { Endpoint::Mcp } else { Endpoint::Other }
    }

    fn is_open(&self, method: &Method, uri: &Uri) -> bool {
        let path = uri.path();
        if self.is_own {
            return path == HEALTH_PATH;
        }
        open_paths::is_open(method, uri)
    }
}

/// The credential that these headers bring, if they bring one.
fn credential(headers: &HeaderMap) -> Result<Option<SentCredential<'_>>> {
    let authorization = values(headers, AUTHORIZATION);
    let api_key = values(headers, &API_KEY);
    SentCredential::of(&authorization, &api_key).map_err(bad_credential)
}

fn values(headers: &HeaderMap, name: impl AsHeaderName) -> Vec<&[u8]> {
    headers.get_all(name).iter().map(HeaderValue::as_bytes).collect()
}

fn bad_credential(why: Malformed) -> Failure {
    Failure::bad_request("bad_credential", why.to_string())
        .hint("send `Authorization: Bearer <key>` or `X-Api-Key: <key>`, once")
}

/// Whoever sends bad credentials from one address must wait.
pub fn too_many_failures(retry_after_s: u64) -> Failure {
    let message = "too many credentials from this address were not valid";
    Failure::new(StatusCode::TOO_MANY_REQUESTS, "too_many_failures", message)
        .hint("wait, and send a valid one")
        .retry_ms(retry_after_s.saturating_mul(1_000))
}

fn unauthorized(message: &str) -> Failure {
    Failure::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
}

/// Everybody who has a credential.
#[derive(Clone)]
struct Checked {
    identity: Arc<Identity>,
    /// The address at which clients find us, without a slash at its end.
    base: Arc<str>,
}

impl Checked {
    /// Who sends a request, as its credential shows.
    fn visitor(
        &self,
        arrival: &RequestHead<'_>,
        verified: std::result::Result<Arc<VerifiedCaller>, CredentialRefusal>,
        from: IpAddr,
    ) -> Result<Visitor> {
        let RequestHead { uri, headers, .. } = *arrival;
        let verified = verified.map_err(|denied| self.denied(uri.path(), from, &denied))?;
        let directory = self.identity.directory();
        let subject = &*verified.subject;
        let grants = &*verified.realms;
        let sender = realms::Sender { subject, grants, directory: &directory };
        let realm = realms::realm(uri, headers, sender).inspect_err(|failure| {
            if realms::is_not_allowed(failure) {
                self.identity.realm_refused(&verified, realms::wish(uri, headers));
            }
        })?;
        let caller = Arc::new(verified.caller(realm, &directory));
        let administrator = Some(caller.clone());
        Ok(Visitor { caller, administrator, verified: Some(verified) })
    }

    fn denied(&self, path: &str, from: IpAddr, denied: &CredentialRefusal) -> Failure {
        match denied {
            CredentialRefusal::Invalid(reason) => {
                // Who sent it learns no reason: it would tell a guess from a near miss.
                tracing::debug!(%from, reason, "a credential is not valid");
                let failure = unauthorized("the credential is not valid")
                    .hint("it may be mistyped, expired or revoked; `waypost key add` makes one");
                self.challenged(failure, path, Some("invalid_token"))
            }
            CredentialRefusal::TooMany { retry_after_s } => too_many_failures(*retry_after_s),
        }
    }

    fn nothing_sent(&self, path: &str) -> Failure {
        let failure = unauthorized("this server asks for a credential").hint(
            "send a key as `Authorization: Bearer <key>` or `X-Api-Key: <key>`; `waypost key \
             create` makes one",
        );
        self.challenged(failure, path, None)
    }

    /// The same with what a client can do about it; an error where it sent something.
    fn challenged(&self, failure: Failure, path: &str, error: Option<&str>) -> Failure {
        let mut parts = vec!["Bearer realm=\"waypost\"".to_owned()];
        if path == MCP_PATH {
            parts.push(format!("resource_metadata=\"{}{MCP_METADATA_PATH}\"", self.base));
            parts.push(format!("scope=\"{MCP_SCOPES}\""));
        }
        parts.extend(error.map(|error| format!("error=\"{error}\"")));
        match HeaderValue::try_from(parts.join(", ")) {
            Ok(value) => failure.header(WWW_AUTHENTICATE, value),
            // An address that no header can carry; a bare challenge is sent then.
            Err(_) => failure,
        }
    }
}

/// Everybody on this machine.
#[derive(Clone)]
struct Local {
    caller: Arc<Caller>,
    administrator: Arc<Caller>,
    admin: Admin,
}

/// Who may administer.
#[derive(Debug, Clone)]
enum Admin {
    /// Everyone who has the key of this hash; the key itself is not kept.
    Key(Digest),
    /// Everybody: only this machine reaches us.
    Everybody,
    /// No one, for no key was set.
    Nobody,
}

impl Local {
    fn new(address: SocketAddr, rule: AdminRule, key: Option<&str>) -> Self {
        let caller = local_caller();
        let admin = match (key.filter(|key| !key.is_empty()), rule) {
            (Some(key), _) => Admin::Key(digest(&SHA256, key.as_bytes())),
            (None, AdminRule::Local) if address.ip().is_loopback() => Admin::Everybody,
            (None, AdminRule::Local | AdminRule::Key) => Admin::Nobody,
        };
        let administrator = Arc::new(caller.clone().administering());
        Self { caller: Arc::new(caller), administrator, admin }
    }

    /// Who sends a request without a credential.
    fn visitor(&self) -> Visitor {
        let administers = matches!(self.admin, Admin::Everybody);
        self.as_visitor(administers)
    }

    /// Who sends one with this credential.
    fn administrator(&self, text: &str) -> Result<Visitor> {
        match &self.admin {
            // Hashes are compared: the time it takes does not reveal how long the key is.
            Admin::Key(key)
                if is_same_secret(key.as_ref(), digest(&SHA256, text.as_bytes()).as_ref()) =>
            {
                Ok(self.as_visitor(true))
            }
            Admin::Key(_) => Err(unauthorized("this is not the admin key")
                .hint("send `Authorization: Bearer <WAYPOST_ADMIN_KEY>`, or no credential")),
            Admin::Everybody | Admin::Nobody => Err(unauthorized("the credential is not valid")
                .hint("this server asks for no credentials; remove the header")),
        }
    }

    fn as_visitor(&self, administers: bool) -> Visitor {
        let administrator = administers.then(|| self.administrator.clone());
        Visitor { caller: self.caller.clone(), administrator, verified: None }
    }

    fn no_administrator(&self) -> Failure {
        let (message, hint) = match &self.admin {
            Admin::Key(_) | Admin::Everybody => {
                ("this needs the admin key", "send `Authorization: Bearer <WAYPOST_ADMIN_KEY>`")
            }
            Admin::Nobody => (
                "no one may administer this server, because no admin key is set",
                "start the server with `WAYPOST_ADMIN_KEY` set and send it as a bearer token",
            ),
        };
        unauthorized(message).hint(hint)
    }
}
