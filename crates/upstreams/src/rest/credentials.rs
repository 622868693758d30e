//! Credentials and configured headers of every request. They are never shown.

use super::super::config::{KeyPlace, RestAuth, RestConfig, Secret};
use super::parameter::SuppliedParameters;
use crate::secret_header;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use outbound::percent::decoded;
use outbound::redaction::Redactor;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap};

/// Credentials and headers of every request; empty by default.
#[derive(Clone, Default)]
pub(crate) struct Credentials {
    headers: HeaderMap,
    /// A field of the query.
    query: Option<(String, Secret)>,
    /// All that must not be shown.
    hidden: Redactor,
}

impl Credentials {
    /// Those of a server; what is wrong with them, if something is, without showing it.
    pub(super) fn new(config: &RestConfig) -> Result<Self, String> {
        Self::of(&config.headers, config.auth.as_ref())
    }

    /// The same of these headers and this way to show who we are.
    pub(crate) fn of(given: &[(String, Secret)], auth: Option<&RestAuth>) -> Result<Self, String> {
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            let (name, value) = secret_header(name, value.expose())?;
            headers.append(name, value);
        }
        let mut query = None;
        match auth {
            None => {}
            Some(RestAuth::Bearer(token)) => {
                let (_, value) =
                    secret_header("authorization", &format!("Bearer {}", token.expose()))?;
                headers.insert(AUTHORIZATION, value);
            }
            Some(RestAuth::Basic { user, password }) => {
                let pair = STANDARD.encode(format!("{user}:{}", password.expose()));
                let (_, value) = secret_header("authorization", &format!("Basic {pair}"))?;
                headers.insert(AUTHORIZATION, value);
            }
            Some(RestAuth::ApiKey { name, place: KeyPlace::Header, value }) => {
                let (name, sent) = secret_header(name, value.expose())?;
                headers.insert(name, sent);
            }
            Some(RestAuth::ApiKey { name, place: KeyPlace::Query, value }) => {
                query = Some((name.clone(), value.clone()));
            }
        }
        let secrets = auth.map(RestAuth::secrets).unwrap_or_default();
        let hidden = Redactor::default().headers(given).credentials(secrets);
        Ok(Self { headers, query, hidden })
    }

    /// The same; what may be secret in this URL is not shown, either.
    #[must_use]
    pub(crate) fn hiding(self, url: &Url) -> Self {
        Self { hidden: self.hidden.url(url), ..self }
    }

    /// The same with a bearer token beside them.
    pub(crate) fn with_token(&self, token: &Secret) -> Result<Self, String> {
        let (_, value) = secret_header("authorization", &format!("Bearer {}", token.expose()))?;
        let Self { mut headers, query, hidden } = self.clone();
        headers.insert(AUTHORIZATION, value);
        Ok(Self { headers, query, hidden: hidden.credentials([token.expose()]) })
    }

    /// Whether there is anything to keep from strangers.
    pub(crate) fn is_empty(&self) -> bool {
        self.headers.is_empty() && self.query.is_none()
    }

    /// Parameters that arguments cannot set, because they are configured.
    pub(super) fn supplied(&self) -> SuppliedParameters {
        SuppliedParameters {
            headers: self.headers.keys().map(|name| name.as_str().to_owned()).collect(),
            query: self.query.iter().map(|(name, _)| name.clone()).collect(),
        }
    }

    /// The URL and headers of a request with all of it.
    pub(crate) fn added(&self, url: &Url, headers: &HeaderMap) -> (Url, HeaderMap) {
        let mut url = url.clone();
        let mut headers = headers.clone();
        for name in self.headers.keys() {
            headers.remove(name);
        }
        for (name, value) in &self.headers {
            headers.append(name, value.clone());
        }
        if let Some((name, value)) = &self.query {
            // An object that is written as fields of the query may have one of this name.
            let fields = url.query().unwrap_or_default().split('&');
            let others = fields.filter(|field| !field.is_empty() && field_name(field) != *name);
            let others = others.collect::<Vec<_>>().join("&");
            url.set_query((!others.is_empty()).then_some(others.as_str()));
            url.query_pairs_mut().append_pair(name, value.expose());
        }
        (url, headers)
    }

    pub(crate) fn hidden(&self) -> &Redactor {
        &self.hidden
    }
}

/// The name of a field of a query, as a server reads it.
fn field_name(field: &str) -> String {
    decoded(&field.split('=').next().unwrap_or_default().replace('+', " "))
}

#[cfg(test)]
mod tests {
    use super::super::super::config::Document;
    use super::*;

    fn config(auth: RestAuth) -> RestConfig {
        let mut config = RestConfig::new(Document::Url("https://a.test/openapi.json".to_owned()));
        config.auth = Some(auth);
        config.headers = vec![("X-Tenant".to_owned(), Secret::from("tenant-7"))];
        config
    }

    fn sent(auth: RestAuth) -> (String, String) {
        let credentials = Credentials::new(&config(auth)).unwrap();
        let url = Url::parse("https://a.test/x?a=1").unwrap();
        let (url, headers) = credentials.added(&url, &HeaderMap::new());
        assert_eq!(headers["x-tenant"], "tenant-7");
        let authorization = headers.get(AUTHORIZATION).or(headers.get("x-key"));
        let authorization = authorization.map(|value| value.to_str().unwrap().to_owned());
        (url.to_string(), authorization.unwrap_or_default())
    }

    fn key(place: KeyPlace) -> RestAuth {
        RestAuth::ApiKey { name: "X-Key".to_owned(), place, value: Secret::from("a b&c") }
    }

    #[test]
    fn each_auth_scheme_is_sent_in_its_place() {
        let plain = "https://a.test/x?a=1".to_owned();
        let password = Secret::from("pass:word");
        let basic = RestAuth::Basic { user: "me".to_owned(), password };
        for (auth, url, authorization) in [
            (RestAuth::Bearer(Secret::from("tok")), plain.clone(), "Bearer tok"),
            (basic, plain.clone(), "Basic bWU6cGFzczp3b3Jk"),
            (key(KeyPlace::Header), plain.clone(), "a b&c"),
            (key(KeyPlace::Query), format!("{plain}&X-Key=a+b%26c"), ""),
        ] {
            assert_eq!(sent(auth), (url, authorization.to_owned()));
        }
    }

    #[test]
    fn credentials_are_redacted_from_texts() {
        let password = Secret::from("pass:word");
        let basic = RestAuth::Basic { user: "me".to_owned(), password };
        let credentials = Credentials::new(&config(basic)).unwrap();
        let told = credentials.hidden().told("bWU6cGFzczp3b3Jk, pass:word, tenant-7, me");
        assert_eq!(told, "***, ***, ***, me");
        assert_eq!(credentials.hidden().told("?a=pass%3Aword"), "?a=***");
        let broken = RestAuth::Bearer(Secret::from("line\nbreak"));
        let error = Credentials::new(&config(broken)).err().unwrap();
        assert!(!error.contains("break"), "{error}");
    }

    #[test]
    fn a_token_is_redacted_with_and_without_its_scheme() {
        let mut config = config(RestAuth::Bearer(Secret::from("other")));
        config.headers = vec![("Authorization".to_owned(), Secret::from("Token abcdef"))];
        let credentials = Credentials::new(&config).unwrap();
        assert_eq!(credentials.hidden().told("bad token abcdef"), "bad token ***");
    }

    #[test]
    fn a_query_key_is_sent_once() {
        let credentials = Credentials::new(&config(key(KeyPlace::Query))).unwrap();
        for query in ["", "?X-Key=mine", "?X-Key=mine&X%2DKey=mine&X-Key"] {
            let url = Url::parse(&format!("https://a.test/x{query}")).unwrap();
            let (url, _) = credentials.added(&url, &HeaderMap::new());
            assert_eq!(url.as_str(), "https://a.test/x?X-Key=a+b%26c", "{query}");
        }
        let url = Url::parse("https://a.test/x?a=%26&X-Keys=1&b").unwrap();
        let (url, _) = credentials.added(&url, &HeaderMap::new());
        assert_eq!(url.as_str(), "https://a.test/x?a=%26&X-Keys=1&b&X-Key=a+b%26c");
    }

    #[test]
    fn credential_parameters_are_not_arguments() {
        let supplied = Credentials::new(&config(key(KeyPlace::Query))).unwrap().supplied();
        assert_eq!(
            (supplied.headers, supplied.query),
            (vec!["x-tenant".to_owned()], vec!["X-Key".to_owned()])
        );
    }
}
