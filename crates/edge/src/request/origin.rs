//! The names of a server, and whose pages may call it. A browser that was led here by a foreign
//! page is refused: `Host` must be a name of ours (an open loopback server is a target for DNS
//! rebinding), and `Origin`, where there is one, a page of ours or one that the settings list.

use crate::problem::{Failure, Result};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, HOST, ORIGIN, VARY,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use project::config::ServerConfig;
use std::net::SocketAddr;

/// The names that a server has for itself on any machine.
const LOCAL_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];
/// Where pages send headers that depend on what they call.
const MCP: &str = "/mcp";
/// What a page that is listed may do, and what it may send and read beside what every page may.
const METHODS: &str = "GET, POST, PUT, PATCH, DELETE, OPTIONS";
const SENT: &str = "authorization, x-api-key, content-type, x-realm, idempotency-key, \
                    mcp-session-id, mcp-protocol-version, last-event-id";
const EXPOSED: &str = "mcp-session-id, www-authenticate, retry-after, ratelimit-policy, ratelimit";
/// How long a browser remembers that, in seconds.
const MAX_AGE: &str = "600";

/// The names of one listener, and the origins that may call it.
#[derive(Debug, Clone)]
pub struct Names {
    hosts: Vec<String>,
    /// Names under which others reach us; they are among the hosts.
    foreign: Vec<String>,
    origins: Vec<String>,
}

impl Names {
    /// Those of a server that listens on `address`.
    pub fn new(address: SocketAddr, config: &ServerConfig) -> Self {
        let foreign = config.names();
        let hosts = own_names(address, &foreign);
        Self { hosts, foreign, origins: config.origins.clone() }
    }

    /// Those of a further listener of the same server.
    pub fn beside(&self, address: SocketAddr) -> Self {
        let hosts = own_names(address, &self.foreign);
        Self { hosts, foreign: self.foreign.clone(), origins: self.origins.clone() }
    }

    /// Whether a request was meant for us: its `Host`, and its `Origin` if it has one.
    pub fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<()> {
        self.check_hosts(uri, headers)?;
        for origin in headers.get_all(ORIGIN) {
            self.check_origin(origin.to_str().unwrap_or_default())?;
        }
        Ok(())
    }

    /// Whether a request was meant for us by its `Host` alone.
    pub fn check_hosts(&self, uri: &Uri, headers: &HeaderMap) -> Result<()> {
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

    /// The origin of a listed page that sends this request, if one does.
    pub fn listed<'a>(&self, headers: &'a HeaderMap) -> Option<&'a HeaderValue> {
        if self.origins.is_empty() {
            return None;
        }
        let mut origins = headers.get_all(ORIGIN).iter();
        let origin = origins.next().filter(|origin| self.is_listed(origin.as_bytes()))?;
        origins.next().is_none().then_some(origin)
    }

    fn is_listed(&self, origin: &[u8]) -> bool {
        self.origins.iter().any(|listed| listed.as_bytes() == origin)
    }

    fn check_host(&self, host: &str) -> Result<()> {
        if self.is_ours(host) {
            return Ok(());
        }
        Err(self.refused("host_not_allowed", &format!("`{}` is not a name of ours", short(host))))
    }

    fn check_origin(&self, origin: &str) -> Result<()> {
        let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        if host.is_some_and(|host| self.is_ours(host)) || self.is_listed(origin.as_bytes()) {
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

/// Whether a browser asks what a page may send. It sends no credential with it.
pub fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    *method == Method::OPTIONS
        && headers.contains_key(ORIGIN)
        && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// What a page may send. `/mcp` has headers whose names depend on the tool.
pub fn preflight(uri: &Uri, headers: &HeaderMap) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let answer = response.headers_mut();
    let wanted = headers.get(ACCESS_CONTROL_REQUEST_HEADERS).filter(|_| uri.path() == MCP);
    let sent = wanted.cloned().unwrap_or(HeaderValue::from_static(SENT));
    answer.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
    answer.insert(ACCESS_CONTROL_ALLOW_HEADERS, sent);
    answer.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(MAX_AGE));
    response
}

/// Lets the pages of this origin read an answer. No cookie is ever sent or looked at.
pub fn allow(response: &mut Response, origin: HeaderValue) {
    let headers = response.headers_mut();
    if headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin).is_none() {
        headers.append(VARY, HeaderValue::from_static("Origin"));
    }
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
}

fn own_names(address: SocketAddr, foreign: &[String]) -> Vec<String> {
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
    names.extend(foreign.iter().cloned());
    names
}

/// What a stranger sent, short enough to be shown.
fn short(text: &str) -> String {
    text.chars().take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderName;

    fn names() -> Names {
        let config = ServerConfig {
            hosts: vec!["wp.example.com".to_owned()],
            origins: vec!["https://app.example.com".to_owned()],
            ..ServerConfig::default()
        };
        Names::new("127.0.0.1:8420".parse().unwrap(), &config)
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
        let checked = names().check(&uri, &headers(given));
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
        assert_eq!(own_names("127.0.0.1:80".parse().unwrap(), &[])[1], "localhost");
    }

    #[test]
    fn foreign_pages_are_refused_unless_they_are_listed() {
        let from = |origin: &'static str| code("/", &[(HOST, "localhost:8420"), (ORIGIN, origin)]);
        for origin in ["http://localhost:8420", "https://wp.example.com", "https://app.example.com"]
        {
            assert_eq!(from(origin), "ok", "{origin}");
        }
        for origin in [
            "null",
            "http://evil.test",
            "http://localhost:3000",
            "localhost:8420",
            "",
            "http://app.example.com",
            "https://app.example.com:8443",
            "https://app.example.com.evil.test",
            "https://APP.example.com",
        ] {
            assert_eq!(from(origin), "origin_not_allowed", "{origin}");
        }
    }

    #[test]
    fn only_one_listed_origin_may_read_the_answer() {
        let listed = |given: &[(HeaderName, &str)]| {
            names().listed(&headers(given)).map(|origin| origin.to_str().unwrap().to_owned())
        };
        let app = "https://app.example.com";
        assert_eq!(listed(&[(ORIGIN, app)]).as_deref(), Some(app));
        assert_eq!(listed(&[(ORIGIN, app), (ORIGIN, app)]), None);
        assert_eq!(listed(&[(ORIGIN, "https://wp.example.com")]), None);
        assert_eq!(listed(&[]), None);
    }

    #[test]
    fn a_public_address_is_served() {
        let public_url =
            project::tables::public_url::PublicUrl::parse("https://wp.example.com:8443/x").ok();
        let config = ServerConfig { public_url, ..ServerConfig::default() };
        let names = Names::new("127.0.0.1:8420".parse().unwrap(), &config);
        let uri = Uri::from_static("/");
        let named = headers(&[(HOST, "wp.example.com:8443")]);
        assert!(names.check(&uri, &named).is_ok());
        let led = headers(&[(HOST, "localhost:8420"), (ORIGIN, "https://login.example.com")]);
        assert!(names.check(&uri, &led).is_err());
        assert!(names.check_hosts(&uri, &led).is_ok());
    }

    #[test]
    fn a_further_listener_has_its_own_port_and_no_other() {
        let beside = names().beside("127.0.0.1:8080".parse().unwrap());
        let uri = Uri::from_static("/");
        for (host, is_ours) in
            [("localhost:8080", true), ("wp.example.com", true), ("localhost:8420", false)]
        {
            assert_eq!(beside.check(&uri, &headers(&[(HOST, host)])).is_ok(), is_ours, "{host}");
        }
    }

    #[test]
    fn a_page_may_send_the_headers_that_endpoints_read() {
        let wanted = headers(&[(ACCESS_CONTROL_REQUEST_HEADERS, "mcp-param-a")]);
        let told = |path: &'static str| {
            let answer = preflight(&Uri::from_static(path), &wanted);
            assert_eq!(answer.status(), StatusCode::NO_CONTENT);
            answer.headers()[ACCESS_CONTROL_ALLOW_HEADERS].to_str().unwrap().to_owned()
        };
        assert_eq!(told("/mcp"), "mcp-param-a");
        assert!(told("/api/v1/runs").starts_with("authorization, x-api-key, "));
    }
}
