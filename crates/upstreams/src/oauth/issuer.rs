//! Metadata of an authorization server (RFC 8414, OpenID Connect Discovery), with the default
//! endpoints of servers of 2025-03-26.

use super::error::{OauthError, Result};
use super::scopes::Scopes;
use super::urls;
use reqwest::Url;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Issuer {
    /// Its name, letter by letter: nothing of it is ever used under another.
    pub(super) name: String,
    /// Where a person logs in.
    pub(super) authorization: Option<String>,
    /// Where tokens are given.
    pub(super) token: String,
    /// Where clients register.
    pub(super) registration: Option<String>,
    /// Where tokens are taken back.
    pub(super) revocation: Option<String>,
    /// How clients may show who they are; it does not say where this is none.
    pub(super) methods: Option<Vec<String>>,
    /// Supported scopes.
    pub(super) scopes: Scopes,
    /// Whether it says with every code who gives it (RFC 9207).
    pub(super) says_iss: bool,
    /// Whether it reads client metadata documents.
    pub(super) reads_documents: bool,
}

impl Issuer {
    /// The server that was asked for under this name and describes itself so.
    pub(super) fn read(asked: &str, document: &Value) -> Result<Self> {
        let text = |name: &str| document[name].as_str();
        let name = text("issuer").unwrap_or_default();
        if !is_same(asked, name) {
            return Err(OauthError::refused(format!(
                "the authorization server `{asked}` describes itself as `{}`, which is another",
                super::web::told(name, &[])
            )));
        }
        let words = |name: &str| {
            let words = document[name].as_array()?.iter().filter_map(Value::as_str);
            Some(words.map(str::to_owned).collect::<Vec<_>>())
        };
        let challenges = words("code_challenge_methods_supported");
        if challenges.is_some_and(|methods| !methods.iter().any(|method| method == "S256")) {
            return Err(OauthError::refused(format!(
                "the authorization server `{name}` has no PKCE with S256, without which codes are \
                 not safe"
            )));
        }
        let endpoint = |what: &str| match text(what) {
            Some(url) => urls::endpoint(&format!("its `{what}`"), url).map(|_| url.to_owned()),
            None => Err(OauthError::refused(format!(
                "the authorization server `{name}` has no `{what}`"
            ))),
        };
        // What is there must be right, what is not there may not be needed.
        let maybe = |what: &str| text(what).map(|_| endpoint(what)).transpose();
        Ok(Self {
            name: name.to_owned(),
            authorization: maybe("authorization_endpoint")?,
            token: endpoint("token_endpoint")?,
            registration: maybe("registration_endpoint")?,
            revocation: maybe("revocation_endpoint")?,
            methods: words("token_endpoint_auth_methods_supported"),
            scopes: scopes(&document["scopes_supported"]).unwrap_or_default(),
            says_iss: document["authorization_response_iss_parameter_supported"] == true,
            reads_documents: document["client_id_metadata_document_supported"] == true,
        })
    }

    /// A server of 2025-03-26 that does not describe itself: all is at the root of the MCP server.
    pub(super) fn assumed(server: &Url) -> Result<Self> {
        let root = urls::root(server);
        urls::issuer(&root)?;
        Ok(Self {
            authorization: Some(format!("{root}/authorize")),
            token: format!("{root}/token"),
            registration: Some(format!("{root}/register")),
            revocation: None,
            methods: None,
            scopes: Scopes::default(),
            says_iss: false,
            reads_documents: false,
            name: root,
        })
    }

    /// Whether who says that a code comes from there may be believed: it must be named letter by
    /// letter, and a server that always says so must not be silent.
    pub(super) fn sent(&self, iss: Option<&str>) -> bool {
        match iss {
            Some(iss) => iss == self.name,
            None => !self.says_iss,
        }
    }
}

/// The scopes of a list in a document; none where there is no such list.
pub(super) fn scopes(list: &Value) -> Option<Scopes> {
    let words = list.as_array()?.iter().filter_map(Value::as_str);
    Some(Scopes::of(words)).filter(|scopes| !scopes.is_empty())
}

/// Whether a name is the one that was asked for. A root may be written with its slash or without:
/// both are the same URL, and lead to the same document.
fn is_same(asked: &str, name: &str) -> bool {
    let is_root = |text: &str| Url::parse(text).is_ok_and(|url| url.path() == "/");
    asked == name
        || (is_root(asked)
            && is_root(name)
            && asked.trim_end_matches('/') == name.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn document(name: &str) -> Value {
        json!({
            "issuer": name,
            "authorization_endpoint": "https://as.test/authorize",
            "token_endpoint": "https://as.test/token",
            "code_challenge_methods_supported": ["plain", "S256"],
            "scopes_supported": ["a", "offline_access"],
            "authorization_response_iss_parameter_supported": true,
        })
    }

    #[test]
    fn issuer_metadata_must_name_the_requested_issuer() {
        for (asked, name, expected) in [
            ("https://as.test", "https://as.test", true),
            ("https://as.test", "https://as.test/", true),
            ("https://as.test/t", "https://as.test/t", true),
            ("https://as.test/t", "https://as.test/t/", false),
            ("https://as.test/t", "https://as.test", false),
            ("https://as.test", "https://AS.test", false),
            ("https://as.test", "https://evil.test", false),
            ("https://as.test", "", false),
        ] {
            let read = Issuer::read(asked, &document(name));
            assert_eq!(read.is_ok(), expected, "{asked} {name}");
        }
    }

    #[test]
    fn issuer_metadata_is_validated() {
        let with = |key: &str, value: Value| {
            let mut document = document("https://as.test");
            document[key] = value;
            Issuer::read("https://as.test", &document)
        };
        let issuer = with("x", Value::Null).unwrap();
        assert!(issuer.says_iss && !issuer.reads_documents);
        assert!(issuer.scopes.contains("offline_access"));
        assert_eq!(issuer.methods, None);
        for (key, value, told) in [
            ("code_challenge_methods_supported", json!(["plain"]), "S256"),
            ("code_challenge_methods_supported", json!([]), "S256"),
            ("token_endpoint", Value::Null, "has no `token_endpoint`"),
            ("token_endpoint", json!("http://as.test/token"), "is not https"),
            ("authorization_endpoint", json!("javascript:alert(1)"), "neither http nor https"),
            ("registration_endpoint", json!("nowhere"), "is no URL"),
        ] {
            let trouble = with(key, value).unwrap_err();
            assert!(trouble.why.contains(told), "{trouble}");
        }
        // OpenID Connect knew servers before PKCE had a place in their documents.
        assert!(with("code_challenge_methods_supported", Value::Null).is_ok());
    }

    #[test]
    fn the_iss_parameter_is_compared_exactly() {
        let mut issuer = Issuer::read("https://as.test", &document("https://as.test")).unwrap();
        for says_iss in [true, false] {
            issuer.says_iss = says_iss;
            assert!(issuer.sent(Some("https://as.test")));
            for other in ["https://as.test/", "https://evil.test", "HTTPS://as.test", ""] {
                assert!(!issuer.sent(Some(other)), "{other}");
            }
            assert_eq!(issuer.sent(None), !says_iss);
        }
    }

    #[test]
    fn legacy_endpoints_are_at_the_server_root() {
        let issuer = Issuer::assumed(&Url::parse("https://a.test/mcp?x=1").unwrap()).unwrap();
        assert_eq!(issuer.name, "https://a.test");
        assert_eq!(issuer.token, "https://a.test/token");
        assert!(Issuer::assumed(&Url::parse("http://a.test/mcp").unwrap()).is_err());
    }
}
