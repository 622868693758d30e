//! Who comes in: established once for each request, which carries it to its handler. In local mode
//! everybody on this machine is the caller `local`; browsers that were led here by a foreign page
//! are not: an open loopback server is a target for DNS rebinding, so `Host` and `Origin` must be
//! names of ours.

use crate::problem::{Failure, Result};
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::{HeaderMap, StatusCode, Uri};
use kernel::tool::call::Caller;
use project::config::{AdminRule, ServerConfig};
use project::realm::local_caller;
use ring::digest::{Digest, SHA256, digest};
use std::hint::black_box;
use std::net::SocketAddr;
use std::sync::Arc;

/// The names that a server has for itself on any machine.
const LOCAL_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Decides who may come in, and as whom.
#[derive(Debug)]
pub(crate) struct Entrance {
    hosts: Vec<String>,
    /// Names under which a proxy serves us; they are among the hosts.
    names: Vec<String>,
    local: Arc<Caller>,
    administrator: Arc<Caller>,
    admin: Admin,
}

/// Who sends a request.
#[derive(Debug, Clone)]
pub(crate) struct Visitor {
    /// As whom it calls. What does not need an administrator is not done as one.
    pub(crate) caller: Arc<Caller>,
    /// The same, administering, where the request proves that it may.
    pub(crate) administrator: Option<Arc<Caller>>,
}

impl Visitor {
    /// Whether it may administer.
    pub(crate) fn administers(&self) -> bool {
        self.administrator.is_some()
    }

    /// As whom policy is asked about what a door keeps itself.
    pub(crate) fn foremost(&self) -> &Caller {
        self.administrator.as_ref().unwrap_or(&self.caller)
    }
}

#[derive(Debug, Clone)]
enum Admin {
    /// Everyone who has the key of this hash; the key itself is not kept.
    Key(Digest),
    /// Everybody: only this machine reaches us.
    Everybody,
    /// No one, for no key was set.
    Nobody,
}

impl Entrance {
    /// The entrance of a server that listens on `address`. An empty key is none.
    pub(crate) fn new(address: SocketAddr, config: &ServerConfig, key: Option<&str>) -> Self {
        let local = local_caller();
        let admin = match (key.filter(|key| !key.is_empty()), config.admin) {
            (Some(key), _) => Admin::Key(digest(&SHA256, key.as_bytes())),
            (None, AdminRule::Local) if address.ip().is_loopback() => Admin::Everybody,
            (None, AdminRule::Local | AdminRule::Key) => Admin::Nobody,
        };
        let names = config.names();
        Self {
            hosts: own_names(address, &names),
            names,
            administrator: Arc::new(local.clone().administering()),
            local: Arc::new(local),
            admin,
        }
    }

    /// The entrance of a further listener of the same server.
    pub(crate) fn beside(&self, address: SocketAddr) -> Self {
        Self {
            hosts: own_names(address, &self.names),
            names: self.names.clone(),
            local: self.local.clone(),
            administrator: self.administrator.clone(),
            admin: self.admin.clone(),
        }
    }

    /// Whether a request was meant for us: its `Host`, and its `Origin` if it has one.
    pub(crate) fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<()> {
        self.check_names(uri, headers)?;
        for origin in headers.get_all(ORIGIN) {
            self.check_origin(origin.to_str().unwrap_or_default())?;
        }
        Ok(())
    }

    /// Whether a request was meant for us by its `Host` alone.
    pub(crate) fn check_names(&self, uri: &Uri, headers: &HeaderMap) -> Result<()> {
        if let Some(authority) = uri.authority() {
            self.check_host(authority.as_str())?;
        }
        let mut hosts = headers.get_all(HOST).iter().peekable();
        if hosts.peek().is_none() && uri.authority().is_none() {
            return Err(self.refused("host_not_allowed", "the request has no `Host`"));
        }
        for host in hosts {
            self.check_host(host.to_str().unwrap_or_default())?;
        }
        Ok(())
    }

    /// Who sends a request with these headers.
    pub(crate) fn visitor(&self, headers: &HeaderMap) -> Visitor {
        let administers = match &self.admin {
            Admin::Everybody => true,
            Admin::Key(key) => bearer(headers).is_some_and(|given| fits(key, given)),
            Admin::Nobody => false,
        };
        let administrator = administers.then(|| self.administrator.clone());
        Visitor { caller: self.local.clone(), administrator }
    }

    /// Whether the caller may administer, too.
    pub(crate) fn everybody_administers(&self) -> bool {
        matches!(self.admin, Admin::Everybody)
    }

    /// What a visitor hears that may not administer.
    pub(crate) fn no_administrator(&self) -> Failure {
        let (message, hint) = match &self.admin {
            Admin::Key(_) | Admin::Everybody => {
                ("this needs the admin key", "send `Authorization: Bearer <WAYPOST_ADMIN_KEY>`")
            }
            Admin::Nobody => (
                "no one may administer this server, because no admin key is set",
                "start the server with `WAYPOST_ADMIN_KEY` set and send it as a bearer token",
            ),
        };
        Failure::new(StatusCode::UNAUTHORIZED, "unauthorized", message).hint(hint)
    }

    fn check_host(&self, host: &str) -> Result<()> {
        if self.is_ours(host) {
            return Ok(());
        }
        Err(self.refused("host_not_allowed", &format!("`{}` is not a name of ours", short(host))))
    }

    fn check_origin(&self, origin: &str) -> Result<()> {
        let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        if host.is_some_and(|host| self.is_ours(host)) {
            return Ok(());
        }
        let message = format!("pages of `{}` may not call us", short(origin));
        Err(self.refused("origin_not_allowed", &message))
    }

    fn is_ours(&self, host: &str) -> bool {
        self.hosts.iter().any(|ours| ours.eq_ignore_ascii_case(host))
    }

    fn refused(&self, code: &'static str, message: &str) -> Failure {
        let first = self.hosts.first().map_or("localhost", String::as_str);
        Failure::new(StatusCode::FORBIDDEN, code, message).hint(format!(
            "use `http://{first}`, or list the name in `hosts` of `[server]` in waypost.toml"
        ))
    }
}

fn own_names(address: SocketAddr, hosts: &[String]) -> Vec<String> {
    let port = address.port();
    let bound = match address {
        SocketAddr::V4(address) => address.ip().to_string(),
        SocketAddr::V6(address) => format!("[{}]", address.ip()),
    };
    let mut names: Vec<String> = Vec::new();
    for name in LOCAL_NAMES.into_iter().chain([bound.as_str()]) {
        names.push(format!("{name}:{port}"));
        if port == 80 {
            // Clients leave out the default port.
            names.push(name.to_owned());
        }
    }
    names.extend(hosts.iter().cloned());
    names
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

/// Compares hashes, and every byte of them: how long it takes says nothing about the key.
fn fits(key: &Digest, given: &str) -> bool {
    let given = digest(&SHA256, given.as_bytes());
    let (key, given): (&[u8], &[u8]) = (key.as_ref(), given.as_ref());
    let pairs = key.iter().zip(given);
    black_box(pairs.fold(0u8, |seen, (left, right)| black_box(seen | (left ^ right)))) == 0
}

/// What a stranger sent, short enough to be shown.
fn short(text: &str) -> String {
    text.chars().take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderName, HeaderValue};

    fn entrance(key: Option<&str>, admin: AdminRule) -> Entrance {
        let config = ServerConfig {
            hosts: vec!["wp.example.com".to_owned()],
            admin,
            ..ServerConfig::default()
        };
        Entrance::new("127.0.0.1:8420".parse().unwrap(), &config, key)
    }

    fn headers(given: &[(HeaderName, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            headers.append(name.clone(), HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    fn code(uri: &str, given: &[(HeaderName, &str)]) -> &'static str {
        let uri: Uri = uri.parse().unwrap();
        let checked = entrance(None, AdminRule::Local).check(&uri, &headers(given));
        checked.map_or_else(|failure| failure.code(), |()| "ok")
    }

    #[test]
    fn only_our_own_names_are_served() {
        for host in ["localhost:8420", "127.0.0.1:8420", "[::1]:8420", "LocalHost:8420"] {
            assert_eq!(code("/", &[(HOST, host)]), "ok", "{host}");
        }
        assert_eq!(code("/", &[(HOST, "wp.example.com")]), "ok");
        for host in ["evil.test:8420", "localhost", "localhost:1", "127.0.0.1.evil.test:8420", ""] {
            assert_eq!(code("/", &[(HOST, host)]), "host_not_allowed", "{host}");
        }
        assert_eq!(code("/", &[]), "host_not_allowed");
        let two = [(HOST, "localhost:8420"), (HOST, "evil.test")];
        assert_eq!(code("/", &two), "host_not_allowed");
        let absolute = "http://evil.test/";
        assert_eq!(code(absolute, &[(HOST, "localhost:8420")]), "host_not_allowed");
    }

    #[test]
    fn foreign_pages_are_refused() {
        let from = |origin: &'static str| code("/", &[(HOST, "localhost:8420"), (ORIGIN, origin)]);
        assert_eq!(from("http://localhost:8420"), "ok");
        assert_eq!(from("https://wp.example.com"), "ok");
        for origin in ["null", "http://evil.test", "http://localhost:3000", "localhost:8420", ""] {
            assert_eq!(from(origin), "origin_not_allowed", "{origin}");
        }
    }

    #[test]
    fn a_public_address_is_served() {
        let public_url =
            project::public_url::PublicUrl::parse("https://wp.example.com:8443/x").ok();
        let config = ServerConfig { public_url, ..ServerConfig::default() };
        let entrance = Entrance::new("127.0.0.1:8420".parse().unwrap(), &config, None);
        let (uri, named) = (Uri::from_static("/"), headers(&[(HOST, "wp.example.com:8443")]));
        assert!(entrance.check(&uri, &named).is_ok());
        let led = headers(&[(HOST, "localhost:8420"), (ORIGIN, "https://login.example.com")]);
        assert!(entrance.check(&uri, &led).is_err());
        assert!(entrance.check_names(&uri, &led).is_ok());
    }

    #[test]
    fn a_further_listener_has_its_own_port_and_no_other() {
        let beside = entrance(None, AdminRule::Local).beside("127.0.0.1:8080".parse().unwrap());
        let uri = Uri::from_static("/");
        for (host, is_ours) in
            [("localhost:8080", true), ("wp.example.com", true), ("localhost:8420", false)]
        {
            assert_eq!(beside.check(&uri, &headers(&[(HOST, host)])).is_ok(), is_ours, "{host}");
        }
    }

    #[test]
    fn the_admin_key_decides_where_there_is_one() {
        let with = |value: &str| headers(&[(AUTHORIZATION, value)]);
        let keyed = entrance(Some("secret"), AdminRule::Local);
        let administrator = keyed.visitor(&with("Bearer secret")).administrator;
        assert!(administrator.is_some_and(|caller| caller.admin));
        assert!(!keyed.visitor(&with("Bearer secret")).caller.admin);
        for value in ["Bearer secres", "Bearer", "Bearer secret2", "Basic secret", "secret"] {
            assert!(!keyed.visitor(&with(value)).administers(), "{value}");
        }
        let administers = |entrance: Entrance| entrance.visitor(&HeaderMap::new()).administers();
        assert!(!administers(keyed));
        assert!(administers(entrance(None, AdminRule::Local)));
        assert!(administers(entrance(Some(""), AdminRule::Local)));
        assert!(!administers(entrance(None, AdminRule::Key)));
    }

    #[test]
    fn a_refusal_says_how_to_administer() {
        let refusal = |key, rule| entrance(key, rule).no_administrator();
        let refusals = [refusal(Some("secret"), AdminRule::Local), refusal(None, AdminRule::Key)];
        let told = refusals.each_ref().map(Failure::message);
        let expected = [
            "this needs the admin key",
            "no one may administer this server, because no admin key is set",
        ];
        assert_eq!(told, expected);
        for refusal in &refusals {
            assert_eq!(refusal.status(), StatusCode::UNAUTHORIZED);
            assert_eq!(refusal.code(), "unauthorized");
        }
    }

    #[test]
    fn without_a_key_only_this_machine_administers() {
        let config = ServerConfig::default();
        let open = Entrance::new("192.0.2.1:80".parse().unwrap(), &config, None);
        assert!(!open.visitor(&HeaderMap::new()).administers());
        assert_eq!(own_names("127.0.0.1:80".parse().unwrap(), &[])[1], "localhost");
    }
}
