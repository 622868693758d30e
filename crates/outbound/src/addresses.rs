//! Which hosts and addresses may be connected to. A name is resolved after it was allowed, so the
//! address that it resolves to is checked as well.

use reqwest::Url;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whom `http::request` may talk to; no one by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HttpSettings {
    allow: Vec<AllowedHost>,
    /// Whether names may lead to addresses that are not public.
    private: bool,
}

/// One entry of the list: a host on every port, or on one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct AllowedHost {
    place: UrlHost,
    port: Option<u16>,
}

/// A host as it stands in a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
enum UrlHost {
    Name(String),
    Address(IpAddr),
}

/// An entry of the list that names no host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a host; write `example.com`, `example.com:8443`, `10.0.0.7` or `[::1]:80`")]
pub struct BadHost(pub String);

impl HttpSettings {
    /// The settings of a list of `host` (any port) and `host:port`. An address that is private,
    /// loopback or link-local is reached only if it is listed itself; `localhost` counts as such.
    pub fn new<T: AsRef<str>>(allow: &[T]) -> Result<Self, BadHost> {
        let allow = allow.iter().map(|entry| AllowedHost::read(entry.as_ref()));
        Ok(Self { allow: allow.collect::<Result<_, _>>()?, private: false })
    }

    /// The same; if `private`, any name may lead to any address.
    #[must_use]
    pub fn private(self, private: bool) -> Self {
        Self { private, ..self }
    }

    /// Whether no host is listed.
    pub fn is_empty(&self) -> bool {
        self.allow.is_empty()
    }

    /// Whether this URL's host and port are listed.
    pub fn permits(&self, url: &Url) -> bool {
        let Some(place) = url.host_str().map(UrlHost::read) else { return false };
        let port = url.port_or_known_default();
        self.allow.iter().any(|allowed| {
            allowed.place == place && (allowed.port.is_none() || allowed.port == port)
        })
    }

    /// Whether this URL's host may be connected to as it is written, be it listed or not: an
    /// address must be public or listed itself, and so must `localhost`. Any other name is judged
    /// by where it leads.
    pub fn permits_host(&self, url: &Url) -> bool {
        let Some(place) = url.host_str().map(UrlHost::read) else { return false };
        let public = match place {
            UrlHost::Address(address) => is_public(address),
            UrlHost::Name(name) => name != "localhost",
        };
        public || self.private || self.permits(url)
    }

    /// Whether a name that may be talked to may lead to this address.
    pub fn permits_address(&self, name: &str, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let name = name.trim_end_matches('.');
        let local = name.eq_ignore_ascii_case("localhost") && address.is_loopback();
        // The port is not known here, so an address listed with a port does not count.
        let listed = |allowed: &AllowedHost| {
            allowed.port.is_none() && allowed.place == UrlHost::Address(address)
        };
        self.private || local || is_public(address) || self.allow.iter().any(listed)
    }
}

impl AllowedHost {
    fn read(entry: &str) -> Result<Self, BadHost> {
        let bad = || BadHost(entry.to_owned());
        let (host, port) = match entry.rsplit_once(':') {
            // An address of version 6 has colons of its own and stands in brackets.
            Some((host, port)) if !port.ends_with(']') => {
                (host, Some(port.parse::<u16>().map_err(|_| bad())?))
            }
            _ => (entry, None),
        };
        let plain = !host.is_empty() && !host.contains(['/', '?', '#', '@', '*', '\\', ' ']);
        let url = Url::parse(&format!("http://{host}/")).ok().filter(|_| plain);
        let place = url.as_ref().and_then(Url::host_str).map(UrlHost::read);
        Ok(Self { place: place.ok_or_else(bad)?, port })
    }
}

impl UrlHost {
    /// `host` as a parsed URL spells it: lower case, version 6 in brackets.
    fn read(host: &str) -> Self {
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        match bare.parse::<IpAddr>() {
            Ok(address) => UrlHost::Address(address.to_canonical()),
            Err(_) => UrlHost::Name(bare.trim_end_matches('.').to_owned()),
        }
    }
}

/// An http or https URL, or why it is none, of `what`. The text is not repeated: it may hold a
/// secret.
pub fn web_url(what: &str, text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("{what} is no URL: {error}"))?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        other => Err(format!("{what} must be http or https, not `{other}`")),
    }
}

/// Whether a URL leads to this machine, as it is written.
pub fn is_loopback(url: &Url) -> bool {
    match url.host_str().map(UrlHost::read) {
        Some(UrlHost::Address(address)) => address.is_loopback(),
        Some(UrlHost::Name(name)) => name == "localhost",
        None => false,
    }
}

/// Whether an address is one that anybody on the internet could have.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let reserved = matches!(
        address.octets(),
        [0, ..]
            | [240..=255, ..]
            // Shared by carriers, for protocol assignments, for benchmarks.
            | [100, 64..=127, ..]
            | [192, 0, 0, _]
            | [198, 18..=19, ..]
            // A cloud's own service, which answers on a public address to its machines only.
            | [168, 63, 129, 16]
    );
    !(reserved
        || address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation())
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    // Each of these carries an address of version 4 that a gateway would take out.
    let tunnelled = matches!(
        address.segments(),
        [0, 0, 0, 0, 0, 0, ..]
            | [0, 0, 0, 0, 0xffff, 0, ..]
            | [0x64, 0xff9b, ..]
            | [0x2001, 0, ..]
            | [0x2002, ..]
    );
    // What link-local and unique-local addresses were before they had these names.
    let site_local = (address.segments()[0] & 0xffc0) == 0xfec0;
    !(tunnelled
        || site_local
        || address.is_unique_local()
        || address.is_unicast_link_local()
        || address.is_multicast())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(allow: &[&str]) -> HttpSettings {
        HttpSettings::new(allow).unwrap()
    }

    fn permits(allow: &[&str], url: &str) -> bool {
        settings(allow).permits(&Url::parse(url).unwrap())
    }

    #[test]
    fn only_listed_hosts_are_permitted() {
        let allow = ["Example.com", "api.test:8443", "10.0.0.7", "[::1]:80"];
        for url in [
            "http://example.com/a",
            "https://example.com:9000",
            "https://EXAMPLE.com./",
            "https://api.test:8443/",
            "http://10.0.0.7:1/",
            "http://0xA.0.0.7/",
            "http://[::1]/",
        ] {
            assert!(permits(&allow, url), "{url}");
        }
        for url in [
            "http://example.com.evil.test/",
            "http://www.example.com/",
            "https://api.test/",
            "http://[::1]:81/",
            "http://10.0.0.8/",
            "http://example.com@evil.test/",
        ] {
            assert!(!permits(&allow, url), "{url}");
        }
        assert!(!permits(&[], "http://example.com/"));
    }

    #[test]
    fn an_invalid_host_is_refused() {
        for entry in ["", "*", "*.a.test", "a.test/x", "http://a.test", "a.test:no", "a b", "u@a"] {
            assert_eq!(HttpSettings::new(&[entry]), Err(BadHost(entry.to_owned())), "{entry}");
        }
    }

    #[test]
    fn a_name_may_resolve_to_private_addresses_only_if_listed() {
        let plain = settings(&["internal.test", "localhost"]);
        let listed = settings(&["internal.test", "10.0.0.7", "10.0.0.8:80"]);
        let private = [
            "10.0.0.7", "127.0.0.1", "169.254.169.254", "192.168.1.1", "100.64.0.1", "0.0.0.0",
            "::1", "::ffff:10.0.0.7", "fe80::1", "fd00::1", "64:ff9b::a00:7", "2002:a00:7::1",
            "::ffff:0:10.0.0.7", "fec0::1", "168.63.129.16",
        ];
        for address in private {
            let address: IpAddr = address.parse().unwrap();
            assert!(!plain.permits_address("internal.test", address), "{address}");
        }
        for address in ["93.184.216.34", "2606:2800:220:1::1"] {
            let address: IpAddr = address.parse().unwrap();
            assert!(plain.permits_address("internal.test", address), "{address}");
        }
        let seven = "10.0.0.7".parse().unwrap();
        let eight = "10.0.0.8".parse().unwrap();
        assert!(listed.permits_address("internal.test", seven));
        assert!(!listed.permits_address("internal.test", eight));
        assert!(plain.permits_address("localhost", "127.0.0.1".parse().unwrap()));
        assert!(!plain.permits_address("localhost", seven));
    }

    #[test]
    fn loopback_hosts_are_recognised_in_every_spelling() {
        for url in [
            "http://127.0.0.1:9/",
            "http://127.8.9.10/",
            "http://0x7f.1/",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://LOCALHOST:9/",
            "http://localhost./",
        ] {
            assert!(is_loopback(&Url::parse(url).unwrap()), "{url}");
        }
        for url in [
            "http://a.test/",
            "http://10.0.0.7/",
            "http://0.0.0.0/",
            "http://localhost.a.test/",
            "http://127.0.0.1.a.test/",
            "http://[::]/",
            "http://[::ffff:10.0.0.7]/",
            "data:text/plain,localhost",
        ] {
            assert!(!is_loopback(&Url::parse(url).unwrap()), "{url}");
        }
    }

    #[test]
    fn a_host_that_is_not_listed_must_be_public() {
        let plain = settings(&["10.0.0.7:80", "localhost:81"]);
        let open = settings(&[]).private(true);
        for (url, permitted) in [
            ("http://example.com/", true),
            ("http://93.184.216.34/", true),
            ("http://10.0.0.7/", true),
            ("http://10.0.0.7:81/", false),
            ("http://localhost:81/", true),
            ("http://localhost/", false),
            ("http://LOCALHOST./", false),
            ("http://127.0.0.1/", false),
            ("http://0x7f.1/", false),
            ("http://2130706433/", false),
            ("http://169.254.169.254/latest/meta-data", false),
            ("http://100.100.100.200/", false),
            ("http://[::1]/", false),
            ("http://[::ffff:127.0.0.1]/", false),
            ("http://[fd00:ec2::254]/", false),
            ("http://[2606:2800:220:1::1]/", true),
        ] {
            let parsed = Url::parse(url).unwrap();
            assert_eq!(plain.permits_host(&parsed), permitted, "{url}");
            assert!(open.permits_host(&parsed), "{url}");
        }
        assert!(open.permits_address("internal.test", "10.0.0.7".parse().unwrap()));
    }
}
