//! Where a request comes from: the other end of its connection, or what a proxy of ours says. A
//! server without credentials refuses whatever was forwarded: a proxy in front of it would let
//! everybody in as someone on this machine.

use crate::problem::{Failure, Result};
use axum::http::header::{FORWARDED, HeaderName, VIA};
use axum::http::{HeaderMap, StatusCode};
use project::tables::tls::Network;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

pub use crate::connections::Peer;

const FORWARDED_FOR: &str = "x-forwarded-for";
const FORWARDED_PROTO: &str = "x-forwarded-proto";
const REAL_IP: &str = "x-real-ip";
/// What the other headers of proxies begin with.
const FORWARDED_PREFIX: &str = "x-forwarded-";

/// Endpoints at which a machine that is no proxy may ask how we are.
const PROBES: [&str; 2] = ["/livez", "/readyz"];

/// Who may stand between a caller and us.
#[derive(Debug, Clone)]
pub enum ProxyTrust {
    /// No one: what was forwarded is refused.
    NoOne,
    /// Someone whose word is not believed.
    Anyone,
    /// One of these, whose word is believed. No one else is served.
    Proxies(Vec<Network>),
}

impl ProxyTrust {
    /// Where this request comes from, or why it is refused. A request without a connection comes
    /// from this process.
    pub fn origin(&self, peer: Option<&Peer>, path: &str, headers: &HeaderMap) -> Result<IpAddr> {
        let peer = peer.map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |peer| peer.address.ip());
        let peer = peer.to_canonical();
        match self {
            Self::NoOne if is_forwarded(headers) => Err(not_behind_a_proxy()),
            Self::NoOne | Self::Anyone => Ok(peer),
            Self::Proxies(proxies) if !has(proxies, peer) => match PROBES.contains(&path) {
                true => Ok(peer),
                false => Err(not_a_proxy()),
            },
            Self::Proxies(proxies) => {
                if is_without_tls(headers) {
                    return Err(without_tls());
                }
                Ok(client(proxies, headers).unwrap_or(peer))
            }
        }
    }
}

fn has(networks: &[Network], address: IpAddr) -> bool {
    networks.iter().any(|network| network.has(address))
}

/// The last address that is none of our proxies: each of them adds who it was called by, and what
/// stands ahead of that is the caller's own word.
fn client(proxies: &[Network], headers: &HeaderMap) -> Option<IpAddr> {
    for line in headers.get_all(FORWARDED_FOR).iter().rev() {
        // A caller's own part may be any bytes; what a proxy added behind it counts all the same.
        for entry in line.as_bytes().rsplit(|byte| *byte == b',') {
            let address = address(std::str::from_utf8(entry).ok()?.trim())?;
            if !has(proxies, address) {
                return Some(address);
            }
        }
    }
    None
}

/// An address, as some proxies write it with a port.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let plain = bare.parse::<IpAddr>().ok();
    let address = plain.or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()));
    address.map(|address| address.to_canonical())
}

fn is_forwarded(headers: &HeaderMap) -> bool {
    let is_of_proxy = |name: &HeaderName| {
        let text = name.as_str();
        *name == FORWARDED || *name == VIA || text == REAL_IP || text.starts_with(FORWARDED_PREFIX)
    };
    headers.keys().any(is_of_proxy)
}

fn is_without_tls(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(FORWARDED_PROTO).iter();
    values.any(|value| {
        let value = value.to_str().unwrap_or_default();
        value.split(',').any(|scheme| scheme.trim().eq_ignore_ascii_case("http"))
    })
}

fn not_behind_a_proxy() -> Failure {
    let message = "this server serves its own machine without credentials, and the request came \
                   through a proxy";
    Failure::new(StatusCode::FORBIDDEN, "forwarded_request", message).hint(
        "name the proxy's address in `hosts` or `public_url` of `[server]`, and create a key with \
         `waypost key add`",
    )
}

fn not_a_proxy() -> Failure {
    let message = "only the proxies of this server may connect to it";
    Failure::new(StatusCode::FORBIDDEN, "not_a_proxy", message)
        .hint("use its public address, or list yours in `proxies` of `[server.tls]`")
}

fn without_tls() -> Failure {
    let message = "the request came to the proxy without TLS";
    Failure::new(StatusCode::FORBIDDEN, "tls_required", message).hint("use `https://`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn headers(given: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    fn behind(proxies: &[&str]) -> ProxyTrust {
        ProxyTrust::Proxies(proxies.iter().map(|text| Network::parse(text).unwrap()).collect())
    }

    fn told(
        between: &ProxyTrust,
        peer: &str,
        path: &str,
        given: &[(&'static str, &str)],
    ) -> String {
        let peer = Peer::new(SocketAddr::new(peer.parse().unwrap(), 5_000));
        match between.origin(Some(&peer), path, &headers(given)) {
            Ok(address) => address.to_string(),
            Err(failure) => {
                assert_eq!(failure.status(), StatusCode::FORBIDDEN);
                failure.code().to_owned()
            }
        }
    }

    #[test]
    fn a_server_without_credentials_serves_nothing_that_was_forwarded() {
        for name in [
            "forwarded", "via", "x-real-ip", "x-forwarded-for", "x-forwarded-host", "x-forwarded-x",
        ] {
            let given = [(name, "127.0.0.1")];
            assert_eq!(
                told(&ProxyTrust::NoOne, "127.0.0.1", "/livez", &given),
                "forwarded_request"
            );
            assert_eq!(told(&ProxyTrust::Anyone, "127.0.0.1", "/livez", &given), "127.0.0.1");
        }
        assert_eq!(told(&ProxyTrust::NoOne, "127.0.0.1", "/", &[("x-forward", "a")]), "127.0.0.1");
        let alone = ProxyTrust::NoOne.origin(None, "/", &HeaderMap::new());
        assert_eq!(alone.unwrap(), IpAddr::V4(Ipv4Addr::LOCALHOST));
    }

    #[test]
    fn only_proxies_are_served_where_there_are_any() {
        let proxies = behind(&["127.0.0.1", "10.0.0.0/8"]);
        for (peer, path, answer) in [
            ("127.0.0.1", "/mcp", "127.0.0.1"),
            ("::ffff:10.1.2.3", "/mcp", "10.1.2.3"),
            ("192.0.2.7", "/mcp", "not_a_proxy"),
            ("127.0.0.2", "/mcp", "not_a_proxy"),
            ("192.0.2.7", "/livez", "192.0.2.7"),
            ("192.0.2.7", "/readyz", "192.0.2.7"),
            ("192.0.2.7", "/livez/", "not_a_proxy"),
        ] {
            assert_eq!(told(&proxies, peer, path, &[]), answer, "{peer} {path}");
        }
    }

    #[test]
    fn the_client_is_the_last_address_that_is_no_proxy() {
        let proxies = behind(&["127.0.0.1", "10.0.0.0/8", "fd00::/8"]);
        for (lines, client) in [
            (&[] as &[&str], "127.0.0.1"),
            (&["192.0.2.7"], "192.0.2.7"),
            (&["198.51.100.1, 192.0.2.7"], "192.0.2.7"),
            (&["192.0.2.7, 10.0.0.4,10.0.0.5"], "192.0.2.7"),
            (&["198.51.100.1", "192.0.2.7, 10.0.0.4"], "192.0.2.7"),
            (&["192.0.2.7:4711"], "192.0.2.7"),
            (&["[2001:db8::1]:80, fd00::1"], "2001:db8::1"),
            (&["[2001:db8::1]"], "2001:db8::1"),
            (&["10.0.0.4"], "127.0.0.1"),
            // What cannot be read is believed no further.
            (&["192.0.2.7, unknown"], "127.0.0.1"),
            (&["192.0.2.7,"], "127.0.0.1"),
        ] {
            let given: Vec<_> = lines.iter().map(|line| ("x-forwarded-for", *line)).collect();
            assert_eq!(told(&proxies, "127.0.0.1", "/", &given), client, "{lines:?}");
        }
    }

    #[test]
    fn a_caller_does_not_hide_behind_bytes_that_are_no_text() {
        let mut headers = HeaderMap::new();
        let line = HeaderValue::from_bytes(b"\xff\xe9, 192.0.2.7, 10.0.0.4").unwrap();
        headers.append(FORWARDED_FOR, line);
        let peer = Peer::new(SocketAddr::from(([127, 0, 0, 1], 5_000)));
        let found = behind(&["127.0.0.1", "10.0.0.0/8"]).origin(Some(&peer), "/", &headers);
        assert_eq!(found.unwrap().to_string(), "192.0.2.7");
    }

    #[test]
    fn forwarded_headers_of_other_than_proxies_are_ignored() {
        let given = [("x-forwarded-for", "192.0.2.7")];
        assert_eq!(told(&behind(&["10.0.0.1"]), "192.0.2.8", "/livez", &given), "192.0.2.8");
        assert_eq!(told(&ProxyTrust::Anyone, "192.0.2.8", "/", &given), "192.0.2.8");
    }

    #[test]
    fn a_proxy_that_was_reached_without_tls_is_refused() {
        let proxies = behind(&["127.0.0.1"]);
        for (value, answer) in
            [("https", "127.0.0.1"), ("http", "tls_required"), ("https, HTTP", "tls_required")]
        {
            let given = [("x-forwarded-proto", value)];
            assert_eq!(told(&proxies, "127.0.0.1", "/", &given), answer, "{value}");
        }
    }
}
