//! Security schemes of an agent's card: keys and tokens, and the id under which AgentVault's
//! clients store them. Cards of 1.0, of 0.3 and of AgentVault's profile each have their own form. A
//! card is untrusted: it puts no key into a URL or a cookie, nor into a header of the connection.

use crate::config::KEY_HEADER;
use crate::cut;
use reqwest::header::HeaderName;
use serde_json::Value;
use wire::a2a::card::AgentCard;
use wire::a2a::vault::AgentCard as VaultCard;

/// Headers that are the connection's, the body's or the protocol's: no key goes there.
const NOT_FOR_KEYS: [&str; 15] = [
    "accept", "connection", "content-length", "content-type", "cookie", "expect", "host",
    "keep-alive", "proxy-authorization", "te", "trailer", "transfer-encoding", "upgrade",
    "user-agent", "via",
];
/// How the names of the protocol's own headers begin.
const OF_PROTOCOL: [&str; 3] = ["a2a-", "x-a2a-", "grpc-"];
/// How long the id of a key may be.
const ID_BYTES_MAX: usize = 200;
/// How much of a name in a card is quoted.
const NAME_CHARS_MAX: usize = 100;

/// Security schemes of a card.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Schemes {
    /// Where a client gets its tokens, if the agent takes them.
    pub(super) token: Option<TokenPlace>,
    /// Where keys may go; nowhere if it takes none.
    keys: Vec<KeyAt>,
}

/// Where tokens are given to clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TokenPlace {
    pub(super) url: String,
    pub(super) scopes: Vec<String>,
}

/// Where a key goes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct KeyAt {
    /// `header`, `query` or `cookie`.
    location: String,
    name: String,
}

impl Schemes {
    /// Schemes of a 1.0 card.
    pub(super) fn of(card: &AgentCard) -> Self {
        let all = card.security_schemes.values();
        let token = all.clone().find_map(|scheme| {
            let flow = scheme.oauth2_security_scheme.as_ref()?.flows.client_credentials.as_ref()?;
            let scopes = flow.scopes.keys().cloned().collect();
            Some(TokenPlace { url: flow.token_url.clone(), scopes })
        });
        let keys = all.filter_map(|scheme| scheme.api_key_security_scheme.as_ref());
        let keys = keys.map(|key| KeyAt { location: key.location.clone(), name: key.name.clone() });
        Self { token, keys: keys.collect() }
    }

    /// Schemes of a 0.3 card, in OpenAPI's form.
    pub(super) fn of_0_3(document: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let all = document["securitySchemes"].as_object().into_iter().flatten();
        let mut token = None;
        let mut keys = Vec::new();
        for (_, scheme) in all {
            let flow = &scheme["flows"]["clientCredentials"];
            match scheme["type"].as_str() {
                Some("apiKey") => {
                    keys.push(KeyAt { location: text(&scheme["in"]), name: text(&scheme["name"]) });
                }
                Some("oauth2") if token.is_none() && flow.is_object() => {
                    let scopes = flow["scopes"].as_object().into_iter().flatten();
                    let scopes = scopes.map(|(scope, _)| scope.clone()).collect();
                    token = Some(TokenPlace { url: text(&flow["tokenUrl"]), scopes });
                }
                _ => {}
            }
        }
        Self { token, keys }
    }

    /// Schemes of an AgentVault card. Its keys have one header.
    pub(super) fn of_vault(card: &VaultCard) -> Self {
        let token = card.auth_schemes.iter().find_map(|scheme| {
            let url = scheme.token_url.clone().filter(|_| scheme.scheme == "oauth2")?;
            Some(TokenPlace { url, scopes: scheme.scopes.clone().unwrap_or_default() })
        });
        let keys = card.auth_schemes.iter().filter(|scheme| scheme.scheme == "apiKey");
        let keys = keys.map(|_| KeyAt { location: "header".into(), name: KEY_HEADER.into() });
        Self { token, keys: keys.collect() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.token.is_none() && self.keys.is_empty()
    }

    /// Whether it takes tokens of a client, and no keys that can be sent.
    pub(super) fn wants_token_only(&self) -> bool {
        self.token.is_some() && (self.keys.is_empty() || self.key_header().is_err())
    }

    /// The header that a key goes in, the usual one where the card says nothing of keys; why none
    /// can be sent, if the card wants it elsewhere.
    pub(super) fn key_header(&self) -> Result<&str, String> {
        let Some(first) = self.keys.first() else { return Ok(KEY_HEADER) };
        let Some(key) = self.keys.iter().find(|key| key.is_in_header()) else {
            return Err(first.refused());
        };
        match key.name.as_str() {
            "" => Ok(KEY_HEADER),
            name if is_for_keys(name) => Ok(name),
            name => {
                let name = cut(name, NAME_CHARS_MAX);
                Err(format!("it wants keys in `{name}`, which is no header for keys"))
            }
        }
    }
}

impl KeyAt {
    fn is_in_header(&self) -> bool {
        self.location.is_empty() || self.location.eq_ignore_ascii_case("header")
    }

    /// Why a key is not sent there.
    fn refused(&self) -> String {
        let location = cut(&self.location, NAME_CHARS_MAX);
        let name = cut(&self.name, NAME_CHARS_MAX);
        if location.eq_ignore_ascii_case("query") {
            return format!(
                "it takes keys only in the query (`{name}`), and stored keys are never put into \
                 an address, which logs and proxies keep; `auth` can say otherwise"
            );
        }
        format!(
            "it takes keys only in a {location} (`{name}`), and stored keys are sent in headers \
             only; `auth` can say otherwise"
        )
    }
}

fn is_for_keys(name: &str) -> bool {
    // A name in lower case, if it is one.
    HeaderName::from_bytes(name.as_bytes()).is_ok_and(|name| {
        let name = name.as_str();
        !NOT_FOR_KEYS.contains(&name) && !OF_PROTOCOL.iter().any(|begin| name.starts_with(begin))
    })
}

/// The id under which AgentVault's clients keep what they show this agent: the one of the scheme
/// that they use, else the agent's own.
pub(super) fn service_id(document: &Value) -> Option<String> {
    let schemes = document["authSchemes"].as_array();
    let of_kind = |kind: &str| {
        schemes.into_iter().flatten().find(|scheme| scheme["scheme"].as_str() == Some(kind))
    };
    let used = of_kind("apiKey").or_else(|| of_kind("oauth2"));
    let named = used.and_then(|scheme| scheme["service_identifier"].as_str());
    let named = named.filter(|id| !id.is_empty());
    let id = named.or_else(|| document["humanReadableId"].as_str())?.to_lowercase();
    // It is given to a command that reads the keyring.
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/:@".contains(&byte);
    let is_id = id.len() <= ID_BYTES_MAX
        && id.bytes().all(is_plain)
        && id.starts_with(|first: char| first.is_ascii_alphanumeric());
    is_id.then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, json};

    fn of_1_0(keys: &[(&str, &str)]) -> Schemes {
        let scheme = |(location, name): &(&str, &str)| {
            let key = json!({"location": location, "name": name});
            (format!("{location} {name}"), json!({"apiKeySecurityScheme": key}))
        };
        let schemes: Map<String, Value> = keys.iter().map(scheme).collect();
        let card: AgentCard = serde_json::from_value(json!({"securitySchemes": schemes})).unwrap();
        Schemes::of(&card)
    }

    fn of_0_3(keys: &[(&str, &str)]) -> Schemes {
        let scheme = |(location, name): &(&str, &str)| {
            let key = json!({"type": "apiKey", "in": location, "name": name});
            (format!("{location} {name}"), key)
        };
        let schemes: Map<String, Value> = keys.iter().map(scheme).collect();
        Schemes::of_0_3(&json!({"securitySchemes": schemes}))
    }

    #[test]
    fn a_key_goes_in_the_header_that_the_card_names() {
        let cases: [(&[(&str, &str)], &str); 5] = [
            (&[], "X-Api-Key"),
            (&[("header", "X-Trips-Key")], "X-Trips-Key"),
            (&[("header", "Authorization")], "Authorization"),
            (&[("cookie", "sid"), ("header", "X-Key"), ("query", "key")], "X-Key"),
            (&[("", "")], "X-Api-Key"),
        ];
        for (keys, header) in cases {
            for schemes in [of_1_0(keys), of_0_3(keys)] {
                assert_eq!(schemes.key_header(), Ok(header), "{keys:?}");
            }
        }
    }

    #[test]
    fn no_key_goes_into_an_address_a_cookie_or_a_header_of_the_connection() {
        for (location, name, told) in [
            ("query", "api_key", "never put into an address"),
            ("cookie", "sid", "headers only"),
            ("header", "Host", "no header for keys"),
            ("header", "Transfer-Encoding", "no header for keys"),
            ("header", "Cookie", "no header for keys"),
            ("header", "A2A-Version", "no header for keys"),
            ("header", "two words", "no header for keys"),
        ] {
            for schemes in [of_1_0(&[(location, name)]), of_0_3(&[(location, name)])] {
                let why = schemes.key_header().unwrap_err();
                assert!(why.contains(told) && why.contains(name), "{why}");
            }
        }
    }

    #[test]
    fn tokens_are_used_where_no_key_can_be_sent() {
        let token = TokenPlace { url: "https://a.test/token".to_owned(), scopes: Vec::new() };
        let cases: [(&[(&str, &str)], bool); 4] = [
            (&[], true),
            (&[("query", "key")], true),
            (&[("header", "X-Key")], false),
            (&[("query", "key"), ("header", "X-Key")], false),
        ];
        for (keys, only) in cases {
            let schemes = Schemes { token: Some(token.clone()), ..of_1_0(keys) };
            assert_eq!(schemes.wants_token_only(), only, "{keys:?}");
            assert!(!of_1_0(keys).wants_token_only(), "there are no tokens");
        }
    }

    #[test]
    fn a_card_of_0_3_says_where_tokens_are_given() {
        let card = json!({"securitySchemes": {"login": {"type": "oauth2", "flows": {
            "clientCredentials": {"tokenUrl": "https://a.test/token", "scopes": {"talk": ""}}}},
            "person": {"type": "oauth2", "flows": {"authorizationCode": {}}}}});
        let url = "https://a.test/token".to_owned();
        let scopes = vec!["talk".to_owned()];
        assert_eq!(Schemes::of_0_3(&card).token, Some(TokenPlace { url, scopes }));
        assert!(Schemes::of_0_3(&json!({"securitySchemes": [1]})).is_empty());
    }

    #[test]
    fn the_id_of_a_key_is_the_schemes_else_the_agents() {
        let card = |schemes: Value| json!({"humanReadableId": "Org/Trips", "authSchemes": schemes});
        let key = |id: &str| json!({"scheme": "apiKey", "service_identifier": id});
        let login = json!({"scheme": "oauth2", "service_identifier": "login"});
        for (schemes, id) in [
            (json!([login.clone(), key("Probe")]), Some("probe")),
            (json!([login]), Some("login")),
            (json!([{"scheme": "apiKey"}]), Some("org/trips")),
            (json!([key("")]), Some("org/trips")),
            (json!([{"scheme": "none", "service_identifier": "x"}]), Some("org/trips")),
            (json!(null), Some("org/trips")),
            (json!([key("--help")]), None),
            (json!([key("a b")]), None),
            (json!([key("a\nb")]), None),
        ] {
            assert_eq!(service_id(&card(schemes.clone())).as_deref(), id, "{schemes}");
        }
        assert_eq!(service_id(&json!({"name": "Trips"})), None, "a name is no id");
    }
}
