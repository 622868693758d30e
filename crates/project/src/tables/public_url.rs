//! The public address of the server. A login at an upstream returns to it, so it uses TLS or is on
//! this machine.

use crate::settings::checked_list;
use crate::upstream_entries::is_loopback;
use hyper::http::Uri;
use kernel::definition::plan::mistake::Mistake;
use serde::Deserializer;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use upstreams::LoginPlaces;

/// Where a login comes back to, below the address.
pub const CALLBACK_PATH: &str = "/oauth/callback";
/// Where servers read who we are, below the address.
pub const CLIENT_PATH: &str = "/oauth/client.json";

/// An address of ours, without a slash at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicUrl {
    base: String,
    /// Host and port, as a browser writes both into `Host`.
    authority: String,
    /// Whether others can read there who we are.
    is_public: bool,
}

impl PublicUrl {
    /// The address that a text says, or what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let uri: Uri = text.parse().map_err(|_| "is not an address")?;
        let (scheme, default_port) = match uri.scheme_str() {
            Some("https") => ("https", 443),
            Some("http") => ("http", 80),
            Some(_) | None => return Err("begins neither with `https://` nor with `http://`"),
        };
        let host = uri.host().unwrap_or_default().to_ascii_lowercase();
        let has_user = uri.authority().is_some_and(|authority| authority.as_str().contains('@'));
        if host.is_empty() || has_user {
            return Err("has no host, or a user before it");
        }
        if uri.query().is_some() || text.contains('#') {
            return Err("has a query or a fragment, which an address of ours cannot have");
        }
        if scheme == "http" && !is_loopback(&host) {
            return Err("is not safe from listeners: only this machine itself may do without TLS");
        }
        let authority = match uri.port_u16().filter(|port| *port != default_port) {
            Some(port) => format!("{host}:{port}"),
            None => host,
        };
        let path = uri.path().trim_end_matches('/');
        let base = format!("{scheme}://{authority}{path}");
        Ok(Self { base, authority, is_public: scheme == "https" })
    }

    /// That of a server that listens there, and is reached only there, by `http` or `https`.
    pub fn of_address(scheme: &str, address: SocketAddr) -> Self {
        let authority = from_here(address).to_string();
        Self { base: format!("{scheme}://{authority}"), authority, is_public: false }
    }

    /// The whole address, without a slash at its end.
    pub fn as_str(&self) -> &str {
        &self.base
    }

    /// Host and port, as a browser names them.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Where logins come back to, and whether callers are led there. Who we are can be read from
    /// outside only by TLS.
    pub fn places(&self, shown_to_callers: bool) -> LoginPlaces {
        LoginPlaces {
            callback: format!("{}{CALLBACK_PATH}", self.base),
            client_metadata: self.is_public.then(|| format!("{}{CLIENT_PATH}", self.base)),
            shown_to_callers,
        }
    }
}

/// The address at which programs on this machine reach a server that listens there: a loopback one,
/// where it listens on all.
pub fn from_here(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// Origins as browsers send them: scheme, host, and the port where it is not the usual one.
pub(crate) fn page_origins<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<String>, D::Error> {
    let fits = |c: char| c.is_ascii_alphanumeric() || ".-:[]".contains(c);
    checked_list(deserializer, |text| {
        let origin = text.to_ascii_lowercase();
        let host = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
        if host.is_some_and(|host| !host.is_empty() && host.chars().all(fits)) {
            return Ok(origin);
        }
        Err(Mistake::error(format!("`{text}` is not an origin"))
            .hint("write `https://app.example.com`, without a path; there is no `*`"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> (String, String, Option<String>) {
        let url = PublicUrl::parse(text).unwrap();
        let LoginPlaces { callback, client_metadata, .. } = url.places(true);
        (url.authority().to_owned(), callback, client_metadata)
    }

    #[test]
    fn the_login_callback_follows_from_the_public_url() {
        let (authority, callback, client) = told("https://WP.example.com:443/");
        assert_eq!(
            (authority.as_str(), callback.as_str()),
            ("wp.example.com", "https://wp.example.com/oauth/callback")
        );
        assert_eq!(client.as_deref(), Some("https://wp.example.com/oauth/client.json"));
        let (authority, callback, _) = told("https://example.com:8443/way/post//");
        assert_eq!(authority, "example.com:8443");
        assert_eq!(callback, "https://example.com:8443/way/post/oauth/callback");
        let (authority, callback, client) = told("http://[::1]:9000");
        assert_eq!(authority, "[::1]:9000");
        assert_eq!((callback.as_str(), client), ("http://[::1]:9000/oauth/callback", None));
        let here = PublicUrl::of_address("https", "127.0.0.1:8420".parse().unwrap()).places(true);
        assert_eq!(here.callback, "https://127.0.0.1:8420/oauth/callback");
        assert_eq!(here.client_metadata, None, "nobody else could read it there");
    }

    #[test]
    fn invalid_public_urls_are_refused() {
        for text in [
            "",
            "wp.example.com",
            "/x",
            "ftp://wp.example.com",
            "https://",
            "https://u:p@wp.example.com",
            "https://wp.example.com?a=b",
            "https://wp.example.com#a",
            "http://wp.example.com",
            "http://192.168.1.1:8420",
            "https://wp example.com",
        ] {
            assert!(PublicUrl::parse(text).is_err(), "{text}");
        }
    }
}
