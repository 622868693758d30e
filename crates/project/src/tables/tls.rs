//! `[server.tls]`: protects credentials on their way to the server. The server terminates TLS
//! itself, or serves only a proxy that does.

use crate::settings::{Kept, checked_list, refused};
use kernel::definition::plan::mistake::Mistake;
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

const FORMS: &str = "write `certificate` and `key`, or `by = \"proxy\"` where a proxy handles TLS";

/// `[server.tls]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TlsConfig {
    /// The server handles TLS itself, with these files; paths begin at the project's folder.
    Files {
        /// The certificate, and those that lead to who issued it.
        certificate: PathBuf,
        /// Its private key.
        key: PathBuf,
    },
    /// A proxy in front of the server handles TLS.
    Proxy {
        /// Where it connects from.
        proxies: Vec<Network>,
    },
}

/// Reads `[server.tls]`; a mistake in it does not keep the rest of `[server]` from being read.
pub(crate) fn tls<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<TlsConfig>, D::Error> {
    Kept::deserialize(deserializer).map(|Kept(tls)| tls)
}

impl<'de> Deserialize<'de> for TlsConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        TlsKeys::deserialize(deserializer)?.config().map_err(refused)
    }
}

/// `[server.tls]` as it is written. Each file that has it says all of it: one half of a pair is
/// never taken from somewhere else.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TlsKeys {
    certificate: Option<String>,
    key: Option<String>,
    by: Option<By>,
    #[serde(deserialize_with = "networks")]
    proxies: Option<Vec<Network>>,
}

/// Who handles TLS instead of the server.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum By {
    Proxy,
}

impl TlsKeys {
    fn config(self) -> Result<TlsConfig, Mistake> {
        let wrong = |what: &str| Err(Mistake::error(format!("`[server.tls]` {what}")).hint(FORMS));
        match (self.certificate, self.key, self.by) {
            (None, None, Some(By::Proxy)) => {
                let proxies = self.proxies.unwrap_or_else(|| Network::LOOPBACK.to_vec());
                if proxies.is_empty() {
                    let what = "`proxies` is empty: no client could reach this server";
                    return Err(Mistake::error(what).hint("list the proxy's address"));
                }
                Ok(TlsConfig::Proxy { proxies })
            }
            (Some(_), _, Some(_)) | (_, Some(_), Some(_)) => {
                wrong("has both a certificate or a key and `by`")
            }
            (Some(_), Some(_), None) if self.proxies.is_some() => {
                wrong("has `proxies`, which belong to `by = \"proxy\"`")
            }
            (Some(certificate), Some(key), None) if certificate.is_empty() || key.is_empty() => {
                wrong("has a `certificate` or a `key` that names no file")
            }
            (Some(certificate), Some(key), None) => {
                Ok(TlsConfig::Files { certificate: certificate.into(), key: key.into() })
            }
            (Some(_), None, None) => wrong("has a `certificate` and no `key`"),
            (None, Some(_), None) => wrong("has a `key` and no `certificate`"),
            (None, None, None) => wrong("does not say who handles TLS"),
        }
    }
}

fn networks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<Network>>, D::Error> {
    let network = |text: &str| Network::parse(text).map_err(WrongNetwork::into_mistake);
    checked_list(deserializer, network).map(Some)
}

/// A range of addresses: those that begin with the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    /// Its lowest address.
    first: IpAddr,
    /// How many leading bits all of its addresses share.
    bits: u8,
}

/// Why a text is not a network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct WrongNetwork {
    message: String,
    hint: String,
}

impl WrongNetwork {
    fn new(message: String) -> Self {
        let hint = "write an address or a network, as `10.0.0.7`, `10.0.0.0/8` or `fd00::/8`";
        Self { message, hint: hint.to_owned() }
    }

    fn into_mistake(self) -> Mistake {
        Mistake::error(self.message).hint(self.hint)
    }
}

impl Network {
    /// This machine.
    const LOOPBACK: [Network; 2] = [
        Network { first: IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)), bits: 8 },
        Network { first: IpAddr::V6(Ipv6Addr::LOCALHOST), bits: 128 },
    ];

    /// The network of a text like `10.0.0.0/8`, or of one address.
    pub fn parse(text: &str) -> Result<Self, WrongNetwork> {
        let no_network = || WrongNetwork::new(format!("`{text}` is not a network"));
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| no_network())?;
        if address.to_canonical() != address {
            let what = format!("`{text}` is an IPv4 network that is written as an IPv6 one");
            return Err(WrongNetwork::new(what));
        }
        let width = width(address);
        let bits = match length {
            // Only as people write numbers: no sign, no zero ahead.
            Some(length) => {
                let bits = length.parse::<u8>().ok().filter(|bits| bits.to_string() == length);
                bits.filter(|bits| *bits <= width).ok_or_else(|| {
                    WrongNetwork::new(format!("`{text}` must end with a number up to {width}"))
                })?
            }
            None => width,
        };
        let first = lowest(address, bits);
        if first != address {
            let message = format!("`{text}` has bits behind the first {bits}");
            let hint = format!("write `{first}/{bits}` for the network, or `{address}` alone");
            return Err(WrongNetwork { message, hint });
        }
        Ok(Self { first, bits })
    }

    /// Whether an address is in it. An IPv4 address is the same one where IPv6 carries it.
    pub fn has(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.first.is_ipv4() && lowest(address, self.bits) == self.first
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bits == width(self.first) {
            true => write!(f, "{}", self.first),
            false => write!(f, "{}/{}", self.first, self.bits),
        }
    }
}

/// How many bits an address of this kind has.
fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The address with all bits behind the first so many at 0; there are at most as many as it has.
fn lowest(address: IpAddr, bits: u8) -> IpAddr {
    let behind = u32::from(width(address).saturating_sub(bits));
    // A shift by all bits is none: then nothing is kept.
    match address {
        IpAddr::V4(address) => {
            let kept = u32::MAX.checked_shl(behind).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & kept))
        }
        IpAddr::V6(address) => {
            let kept = u128::MAX.checked_shl(behind).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & kept))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn has(network: &str, address: &str) -> bool {
        Network::parse(network).unwrap().has(address.parse().unwrap())
    }

    #[test]
    fn a_network_contains_addresses_with_its_prefix() {
        for (network, inside, outside) in [
            ("127.0.0.1", "127.0.0.1", "127.0.0.2"),
            ("10.0.0.0/8", "10.255.255.255", "11.0.0.0"),
            ("192.168.4.0/22", "192.168.7.255", "192.168.8.0"),
            ("10.1.2.3/32", "10.1.2.3", "10.1.2.2"),
            ("128.0.0.0/1", "255.0.0.1", "127.255.255.255"),
            ("::1", "::1", "::2"),
            ("fd00::/8", "fdff::1", "fe00::"),
            ("2001:db8::/63", "2001:db8:0:1::1", "2001:db8:0:2::"),
            ("8000::/1", "ffff::", "7fff::"),
        ] {
            assert!(has(network, inside), "{network} {inside}");
            assert!(!has(network, outside), "{network} {outside}");
        }
        assert!(has("0.0.0.0/0", "255.255.255.255") && has("::/0", "ffff::1"));
        // One family is never in the other, but one address can be written in both.
        assert!(!has("0.0.0.0/0", "::1") && !has("::/0", "10.0.0.1"));
        assert!(has("10.0.0.0/8", "::ffff:10.0.0.1") && !has("::/0", "::ffff:10.0.0.1"));
    }

    #[test]
    fn a_network_is_shown_as_it_is_written() {
        for text in ["10.0.0.0/8", "0.0.0.0/0", "10.0.0.7", "fd00::/8", "::1", "::/0"] {
            assert_eq!(Network::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Network::parse("10.0.0.7/32").unwrap().to_string(), "10.0.0.7");
    }

    #[test]
    fn invalid_networks_are_refused() {
        let lengths = ["", "33", "-1", "+8", "08", "8/8", " 8", "999", "x"];
        let wrong = lengths.map(|length| format!("10.0.0.0/{length}"));
        let others = [
            "", "/8", "10.0.0/8", "10.0.0.256", "10.0.0.1:80", "::/129", "fe80::1%1", "[::1]",
            "::ffff:10.0.0.0/104", "localhost", "*",
        ];
        for text in wrong.iter().map(String::as_str).chain(others) {
            assert!(Network::parse(text).is_err(), "{text}");
        }
        let wrong = Network::parse("10.1.2.3/8").unwrap_err();
        assert_eq!(wrong.message, "`10.1.2.3/8` has bits behind the first 8");
        assert_eq!(wrong.hint, "write `10.0.0.0/8` for the network, or `10.1.2.3` alone");
    }

    fn read(table: &str) -> Result<Option<TlsConfig>, String> {
        let text = format!("[server]\nport = 1\n[server.tls]\n{table}");
        match Config::parse("waypost.toml", &text) {
            Ok(config) => Ok(config.server.tls),
            Err(found) => {
                let told: Vec<String> = found.iter().map(Mistake::to_string).collect();
                Err(told.join("\n"))
            }
        }
    }

    #[test]
    fn either_files_or_a_proxy_is_written() {
        let files = TlsConfig::Files { certificate: "a/cert.pem".into(), key: "key.pem".into() };
        assert_eq!(read("certificate = \"a/cert.pem\"\nkey = \"key.pem\"\n"), Ok(Some(files)));
        let proxy = |proxies: &[&str]| {
            let proxies = proxies.iter().map(|text| Network::parse(text).unwrap()).collect();
            Ok(Some(TlsConfig::Proxy { proxies }))
        };
        assert_eq!(read("by = \"proxy\"\n"), proxy(&["127.0.0.0/8", "::1"]));
        let listed = "by = \"proxy\"\nproxies = [\"127.0.0.1\", \"10.0.0.0/8\", \"::1\"]\n";
        assert_eq!(read(listed), proxy(&["127.0.0.1", "10.0.0.0/8", "::1"]));
        assert_eq!(Config::default().server.tls, None);
    }

    #[test]
    fn mistakes_are_reported_with_their_line() {
        for (table, told) in [
            ("", "waypost.toml:3:1: error: `[server.tls]` does not say who handles TLS"),
            (
                "certificate = \"a\"\n",
                "3:1: error: `[server.tls]` has a `certificate` and no `key`",
            ),
            ("key = \"a\"\n", "3:1: error: `[server.tls]` has a `key` and no `certificate`"),
            (
                "certificate = \"a\"\nkey = \"\"\n",
                "3:1: error: `[server.tls]` has a `certificate` or",
            ),
            ("key = \"a\"\nby = \"proxy\"\n", "3:1: error: `[server.tls]` has both"),
            (
                "certificate = \"a\"\nkey = \"b\"\nproxies = [\"::1\"]\n",
                "3:1: error: `[server.tls]` has `proxies`, which belong to",
            ),
            ("by = \"proxy\"\nproxies = []\n", "3:1: error: `proxies` is empty"),
            ("by = \"nginx\"\n", "4:6: error: `by` cannot be `nginx`; hint: it is `proxy`"),
            ("certificate = 1\n", "4:15: error: `certificate` must be a text, and is a number"),
            (
                "by = \"proxy\"\nproxies = [\"::1\", \"10.0.0.0/40\"]\n",
                "5:19: error: `10.0.0.0/40` must end with a number up to 32; hint: write an",
            ),
            (
                "by = \"proxy\"\nproxie = []\n",
                "5:1: error: unknown key `proxie` in `[server.tls]`; hint: did you mean `proxies`?",
            ),
        ] {
            let found = read(table).unwrap_err();
            assert!(found.contains(told), "{table}: {found}");
        }
    }

    #[test]
    fn a_mistake_does_not_hide_others_of_the_server() {
        let text = "[server]\ntls = { by = \"nginx\" }\nadmin = \"locl\"\n";
        let found = Config::parse("waypost.toml", text).unwrap_err();
        assert_eq!(found.len(), 2, "{found:?}");
    }
}
