//! Whether a server requires credentials, which follows from who can reach it. Decided once, at the
//! start.

/// Minimum length of an admin key where credentials are required: guesses may come from anywhere.
const ADMIN_KEY_CHARS_MIN: usize = 32;

const CREDENTIALS: &str = "create a key with `waypost key add`, configure an issuer of tokens \
    in `[auth.issuers]`, or set `WAYPOST_ADMIN_KEY` to 32 characters or more";
const TLS: &str = "configure `[server.tls]` with a certificate and its key, or with \
    `by = \"proxy\"` if a proxy in front of the server handles TLS";
const LOOPBACK: &str = "or serve this machine only, without credentials: `waypost up` on a \
    loopback address, without `hosts`, `origins`, `public_url` and a proxy";

/// Who can reach a server, and which credentials it can check.
#[derive(Debug, Clone, Copy)]
pub struct Exposure<'a> {
    pub listens_on_loopback: bool,
    /// Configured names and public address that are not loopback.
    pub names: &'a [String],
    /// The origins whose pages may call it.
    pub origins: &'a [String],
    /// Credentials are required in any case, as by `waypost serve`.
    pub never_local: bool,
    pub transport: Transport,
    pub has_admin_key: bool,
    /// At least one usable API key exists.
    pub has_keys: bool,
    pub has_issuers: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    Plain,
    /// The server terminates TLS.
    Tls,
    /// A proxy terminates TLS.
    Proxy,
}

/// Who may call a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Everyone on this machine, without credentials.
    Local,
    /// Everyone with a credential.
    Credentials,
}

/// Why a server does not start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct StartRefusal {
    pub message: String,
    pub hint: String,
}

/// Decides who may call a server. Refuses to start if others could reach it and no credential
/// exists, or if credentials would travel without TLS.
pub fn access(exposure: &Exposure<'_>) -> Result<Access, StartRefusal> {
    let Some(reason) = reason(exposure) else {
        return Ok(Access::Local);
    };
    let mut problems = Vec::new();
    let mut ways = Vec::new();
    if !exposure.has_admin_key && !exposure.has_keys && !exposure.has_issuers {
        problems.push(format!(
            "every caller needs a credential, because {reason}, and none exists that could be used"
        ));
        ways.push(CREDENTIALS);
    }
    if !exposure.listens_on_loopback && exposure.transport == Transport::Plain {
        problems.push(
            "the server listens on an address that is not loopback without TLS, so credentials \
             could be read on the network"
                .to_owned(),
        );
        ways.push(TLS);
    }
    if problems.is_empty() {
        return Ok(Access::Credentials);
    }
    ways.push(LOOPBACK);
    Err(StartRefusal { message: problems.join("; "), hint: ways.join("; ") })
}

/// Why credentials are required; `None` if only this machine can reach the server.
fn reason(exposure: &Exposure<'_>) -> Option<String> {
    if !exposure.listens_on_loopback {
        return Some("the server listens on an address that is not loopback".to_owned());
    }
    if let Some(name) = exposure.names.first() {
        return Some(format!("the server can be reached as `{name}`"));
    }
    if let Some(origin) = exposure.origins.first() {
        return Some(format!("pages of `{origin}` may call the server"));
    }
    // A proxy is there to let others in.
    if exposure.transport == Transport::Proxy {
        return Some("the server is behind a proxy".to_owned());
    }
    exposure.never_local.then(|| "`waypost serve` always requires one".to_owned())
}

/// Whether an admin key is long enough where everybody needs credentials.
pub fn admin_key_fits(key: &str) -> bool {
    key.chars().count() >= ADMIN_KEY_CHARS_MIN
}

/// Refuses an admin key that is too short for who may call.
pub fn check_admin_key(access: Access, key: &str) -> Result<(), StartRefusal> {
    if access == Access::Local || admin_key_fits(key) {
        return Ok(());
    }
    Err(StartRefusal {
        message: format!("`WAYPOST_ADMIN_KEY` has fewer than {ADMIN_KEY_CHARS_MIN} characters"),
        hint: "set a longer one, for example the output of `openssl rand -hex 32`".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A loopback server as the first commands of the README start it.
    const BARE: Exposure<'static> = Exposure {
        listens_on_loopback: true,
        names: &[],
        origins: &[],
        never_local: false,
        transport: Transport::Plain,
        has_admin_key: false,
        has_keys: false,
        has_issuers: false,
    };

    const TRANSPORTS: [Transport; 3] = [Transport::Plain, Transport::Tls, Transport::Proxy];

    #[test]
    fn every_exposure_gets_the_expected_access() {
        let some = ["wp.example.com".to_owned()];
        for bits in 0..128_u8 {
            let is_set = |bit: u8| bits & (1 << bit) != 0;
            let list = |bit: u8| &some[..usize::from(is_set(bit))];
            for transport in TRANSPORTS {
                let exposure = Exposure {
                    listens_on_loopback: is_set(0),
                    names: list(1),
                    origins: list(2),
                    never_local: is_set(3),
                    transport,
                    has_admin_key: is_set(4),
                    has_keys: is_set(5),
                    has_issuers: is_set(6),
                };
                let is_local = bits & 0b1111 == 1 && transport != Transport::Proxy;
                let is_secure = is_set(0) || transport != Transport::Plain;
                let expected = match (is_local, bits >> 4 != 0 && is_secure) {
                    (true, _) => Some(Access::Local),
                    (false, true) => Some(Access::Credentials),
                    (false, false) => None,
                };
                assert_eq!(access(&exposure).ok(), expected, "{exposure:?}");
            }
        }
    }

    #[test]
    fn a_plain_loopback_server_needs_no_credentials_even_with_keys() {
        let with_keys = Exposure { has_admin_key: true, has_keys: true, has_issuers: true, ..BARE };
        let with_tls = Exposure { transport: Transport::Tls, ..BARE };
        for exposure in [BARE, with_keys, with_tls] {
            assert_eq!(access(&exposure), Ok(Access::Local));
        }
    }

    #[test]
    fn a_start_refusal_says_why_credentials_are_required() {
        let some = ["wp.example.com".to_owned()];
        let cases = [
            (
                Exposure { listens_on_loopback: false, transport: Transport::Tls, ..BARE },
                "listens on an address that is not loopback",
            ),
            (Exposure { names: &some, ..BARE }, "reached as `wp.example.com`"),
            (Exposure { origins: &some, ..BARE }, "pages of `wp.example.com`"),
            (Exposure { transport: Transport::Proxy, ..BARE }, "behind a proxy"),
            (Exposure { never_local: true, ..BARE }, "`waypost serve`"),
        ];
        for (exposure, why) in cases {
            let refusal = access(&exposure).unwrap_err();
            assert!(refusal.message.contains(why), "{refusal}");
            assert!(!refusal.message.contains("TLS"), "{refusal}");
            let ways = ["`waypost key add`", "`[auth.issuers]`", "`WAYPOST_ADMIN_KEY`"];
            for way in ways.into_iter().chain(["`waypost up`"]) {
                assert!(refusal.hint.contains(way), "{}", refusal.hint);
            }
            assert!(!refusal.hint.contains("[server.tls]"), "{}", refusal.hint);
        }
    }

    #[test]
    fn off_loopback_without_tls_every_remedy_is_listed() {
        let open = Exposure { listens_on_loopback: false, ..BARE };
        let refusal = access(&open).unwrap_err();
        for problem in ["every caller needs a credential", "without TLS"] {
            assert!(refusal.message.contains(problem), "{refusal}");
        }
        let ways = ["`waypost key add`", "`WAYPOST_ADMIN_KEY`", "`[server.tls]`", "proxy"];
        for way in ways {
            assert!(refusal.hint.contains(way), "{}", refusal.hint);
        }
        let with_key = Exposure { has_keys: true, ..open };
        let refusal = access(&with_key).unwrap_err();
        assert!(!refusal.message.contains("credential,"), "{refusal}");
        assert!(!refusal.hint.contains("key add"), "{}", refusal.hint);
        assert!(refusal.hint.contains("`[server.tls]`"), "{}", refusal.hint);
    }

    #[test]
    fn a_short_admin_key_is_accepted_only_in_local_mode() {
        let short = "k".repeat(31);
        let long = "k".repeat(32);
        assert!(!admin_key_fits("") && !admin_key_fits(&short) && admin_key_fits(&long));
        assert!(!admin_key_fits(&"ä".repeat(31)), "characters count, not bytes");
        assert_eq!(check_admin_key(Access::Local, &short), Ok(()));
        assert_eq!(check_admin_key(Access::Credentials, &long), Ok(()));
        let refusal = check_admin_key(Access::Credentials, &short).unwrap_err();
        assert!(refusal.message.contains("32") && !refusal.message.contains(&short));
    }
}
