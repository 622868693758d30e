//! Addresses of an agent and its card: which of them may be connected to, and which server gets our
//! credentials. A card is untrusted: it leads to no private address unless the operator allows
//! that, and cannot redirect credentials. Where only the card says that there is no TLS, as a bare
//! `host:port` in a file does, no credentials are sent off this machine.

use crate::config::{A2aConfig, CardPlace};
use outbound::addresses::{HttpSettings, is_loopback, web_url};
use outbound::percent::escaped;
use reqwest::Url;
use std::path::PathBuf;
use wire::a2a::WELL_KNOWN;

/// The address of a card, looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CardLocation {
    /// The card itself.
    Url(Url),
    /// A file of the operator's.
    File(PathBuf),
    /// An entry of a registry.
    Registry(Url),
}

/// The places that an operator wrote.
#[derive(Debug)]
pub(super) struct AgentLocation {
    pub(super) card: CardLocation,
    /// The server that credentials are shown to, where it is known before the card is.
    origin: Option<Url>,
    pub(super) settings: HttpSettings,
}

impl AgentLocation {
    /// The places of these settings; what is wrong with them, if something is.
    pub(super) fn new(config: &A2aConfig) -> Result<Self, String> {
        let card = match &config.card {
            CardPlace::Url(text) => CardLocation::Url(card_url(plain_url("card", text)?)),
            CardPlace::File(path) => CardLocation::File(path.clone()),
            CardPlace::Registry { url, id } => {
                CardLocation::Registry(entry_url(plain_url("registry", url)?, id))
            }
        };
        let named = config.origin.as_deref().map(|text| plain_url("origin", text)).transpose()?;
        let origin = match (&named, &card) {
            (Some(named), _) => Some(named.clone()),
            (None, CardLocation::Url(card)) => Some(card.clone()),
            (None, CardLocation::File(_) | CardLocation::Registry(_)) => None,
        };
        let written = match &card {
            CardLocation::Url(url) | CardLocation::Registry(url) => Some(url),
            CardLocation::File(_) => None,
        };
        let hosts: Vec<String> =
            [written, named.as_ref()].into_iter().flatten().filter_map(host).collect();
        let settings = HttpSettings::new(&hosts).map_err(|error| error.to_string())?;
        Ok(Self { card, origin, settings: settings.private(config.allow_private) })
    }

    /// The same, but only public addresses are talked to, whatever is written.
    #[must_use]
    pub(super) fn only_public(self) -> Self {
        Self { settings: HttpSettings::default(), ..self }
    }

    /// The address that a card names, if we may go there with what we have.
    pub(super) fn endpoint(&self, named: &str, has_credentials: bool) -> Result<Url, String> {
        let url = plain_url("the address in its card", named)?;
        let shown = url.origin().ascii_serialization();
        if !self.settings.permits_host(&url) {
            return Err(format!(
                "its card names `{shown}`, which is not a public address; `allow_private = true` \
                 allows it"
            ));
        }
        let is_told = match (&self.origin, &self.card) {
            (Some(origin), _) => origin.origin() == url.origin(),
            // The operator has the card in hand.
            (None, CardLocation::File(_)) => true,
            (None, CardLocation::Url(_) | CardLocation::Registry(_)) => false,
        };
        if has_credentials && !is_told {
            return Err(format!(
                "its card names the server `{shown}`, and credentials are shown only to the \
                 server that the card is from; `origin = \"{shown}\"` allows it"
            ));
        }
        // What the operator wrote, as `card` or as `origin`, says whether there is TLS.
        let is_written = self.origin.is_some();
        if has_credentials && !is_written && url.scheme() != "https" && !is_loopback(&url) {
            let encrypted = shown.replacen("http", "https", 1);
            return Err(format!(
                "its card names `{shown}`, which has no TLS, and credentials are shown only over \
                 TLS or on this machine; name `{encrypted}` in the card if the agent has TLS, else \
                 `origin = \"{shown}\"` allows it"
            ));
        }
        Ok(url)
    }
}

/// An http or https URL without a user; the text is not repeated, for it may hold a secret.
fn plain_url(what: &str, text: &str) -> Result<Url, String> {
    let url = web_url(what, text)?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(format!("{what} must not hold a user or password: they belong in `auth`"));
    }
    Ok(url)
}

/// A server without a path has its card where all have it.
fn card_url(mut url: Url) -> Url {
    if matches!(url.path(), "" | "/") && url.query().is_none() {
        url.set_path(WELL_KNOWN);
    }
    url
}

fn entry_url(mut registry: Url, id: &str) -> Url {
    let base = registry.path().trim_end_matches('/').to_owned();
    registry.set_path(&format!("{base}/api/v1/agent-cards/id/{}", escaped(id, b"/")));
    registry
}

fn host(url: &Url) -> Option<String> {
    Some(format!("{}:{}", url.host_str()?, url.port_or_known_default()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::a2a::GRPC;
    use wire::a2a::card::AgentInterface;

    fn places(card: CardPlace, change: impl FnOnce(&mut A2aConfig)) -> AgentLocation {
        let mut config = A2aConfig::new(card);
        change(&mut config);
        AgentLocation::new(&config).unwrap()
    }

    fn url(text: &str) -> CardPlace {
        CardPlace::Url(text.to_owned())
    }

    #[test]
    fn a_server_url_without_a_path_uses_the_well_known_card() {
        for (text, card) in [
            ("https://a.test", "https://a.test/.well-known/agent-card.json"),
            ("https://a.test/", "https://a.test/.well-known/agent-card.json"),
            ("https://a.test/x/card.json", "https://a.test/x/card.json"),
            ("https://a.test/?realm=b", "https://a.test/?realm=b"),
        ] {
            let CardLocation::Url(found) = places(url(text), |_| {}).card else { panic!("{text}") };
            assert_eq!(found.as_str(), card);
        }
        let registry = "https://r.test/v/".to_owned();
        let id = "org/a b".to_owned();
        let card = places(CardPlace::Registry { url: registry, id }, |_| {}).card;
        let entry = Url::parse("https://r.test/v/api/v1/agent-cards/id/org/a%20b").unwrap();
        assert_eq!(card, CardLocation::Registry(entry));
    }

    #[test]
    fn a_card_leads_to_a_private_address_only_if_configured() {
        let from =
            |card: &str, allow: bool| places(url(card), |config| config.allow_private = allow);
        for (card, named, allow, fits) in [
            ("https://a.test/", "https://a.test/rpc", false, true),
            ("https://a.test/", "https://b.test/rpc", false, true),
            ("https://a.test/", "http://127.0.0.1:1/rpc", false, false),
            ("https://a.test/", "http://10.0.0.7/rpc", false, false),
            ("https://a.test/", "http://localhost/rpc", false, false),
            ("https://a.test/", "http://169.254.169.254/", false, false),
            ("https://a.test/", "http://10.0.0.7/rpc", true, true),
            ("http://127.0.0.1:9/", "http://127.0.0.1:9/rpc", false, true),
            ("http://127.0.0.1:9/", "http://127.0.0.1:10/rpc", false, false),
            ("https://a.test/", "ftp://a.test/", false, false),
            ("https://a.test/", "https://me:hush@a.test/", false, false),
            ("https://a.test/", "/rpc", false, false),
        ] {
            let found = from(card, allow).endpoint(named, false);
            assert_eq!(found.is_ok(), fits, "{card} {named} {found:?}");
            assert!(!format!("{:?}", found.err()).contains("hush"));
        }
    }

    #[test]
    fn a_public_only_agent_never_reaches_private_addresses() {
        let here = places(url("http://127.0.0.1:9/"), |config| config.allow_private = true);
        assert!(here.endpoint("http://127.0.0.1:9/rpc", false).is_ok());
        let here = here.only_public();
        assert!(here.endpoint("http://127.0.0.1:9/rpc", false).is_err());
        assert!(here.endpoint("https://a.test/rpc", false).is_ok());
    }

    #[test]
    fn credentials_go_only_to_the_server_of_the_card() {
        let named = "https://b.test/rpc";
        let own = places(url("https://b.test/"), |_| {});
        let other = places(url("https://a.test/"), |_| {});
        let said = places(url("https://a.test/"), |config| {
            config.origin = Some("https://b.test".to_owned());
        });
        let file = places(CardPlace::File("card.json".into()), |_| {});
        let registry = "https://r.test".to_owned();
        let id = "o/a".to_owned();
        let registry = places(CardPlace::Registry { url: registry, id }, |_| {});
        for (places, fits) in
            [(&own, true), (&other, false), (&said, true), (&file, true), (&registry, false)]
        {
            let found = places.endpoint(named, true);
            assert_eq!(found.is_ok(), fits, "{found:?}");
            assert!(places.endpoint(named, false).is_ok(), "there is nothing to show");
        }
        assert!(other.endpoint(named, true).unwrap_err().contains("origin = "));
    }

    #[test]
    fn a_card_in_a_file_gets_credentials_over_tls_or_on_this_machine() {
        let file = |origin: Option<&str>| {
            places(CardPlace::File("card.json".into()), |config| {
                config.allow_private = true;
                config.origin = origin.map(str::to_owned);
            })
        };
        let grpc = |url: &str| {
            let url = url.to_owned();
            let protocol_binding = GRPC.to_owned();
            AgentInterface { url, protocol_binding, ..AgentInterface::default() }
        };
        for (named, fits) in [
            ("a.test:50051", false),
            ("10.0.0.7:50051", false),
            ("[fd00::7]:50051", false),
            ("localhost.a.test:50051", false),
            ("http://a.test:50051", false),
            ("http://a.test:443", false),
            ("a.test", true),
            ("a.test:443", true),
            ("https://a.test:50051", true),
            ("localhost:50051", true),
            ("127.0.0.1:50051", true),
            ("[::1]:50051", true),
            ("http://127.0.0.1:50051", true),
        ] {
            let named = grpc(named);
            let found = file(None).endpoint(&named.address(), true);
            assert_eq!(found.is_ok(), fits, "{named:?} {found:?}");
            assert!(file(None).endpoint(&named.address(), false).is_ok(), "nothing is shown");
        }
        let told = file(None).endpoint(&grpc("a.test:50051").address(), true).unwrap_err();
        for part in ["`http://a.test:50051`", "`https://a.test:50051`", "TLS", "origin = "] {
            assert!(told.contains(part), "{part}: {told}");
        }
        // Who writes `http` there means it.
        let written = file(Some("http://a.test:50051"));
        assert!(written.endpoint(&grpc("a.test:50051").address(), true).is_ok());
        assert!(written.endpoint(&grpc("a.test:50052").address(), true).is_err());
    }
}
