//! What goes with every request: how we show who we are, and the operator's headers. None of it is
//! ever shown.

use super::super::config::{KeyPlace, RestAuth, RestConfig, Secret};
use super::encode::encoded;
use super::parameter::Supplied;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};

/// A shorter text is no secret, and taking it out would make other words unreadable.
const SECRET_CHARS_MIN: usize = 4;

/// What goes with every request.
pub(super) struct Credentials {
    headers: HeaderMap,
    /// A field of the query.
    query: Option<(String, Secret)>,
    /// All that must not be shown, the longest first.
    secrets: Vec<String>,
}

impl Credentials {
    /// Those of a server; what is wrong with them, if something is, without showing it.
    pub(super) fn new(config: &RestConfig) -> Result<Self, String> {
        let mut headers = HeaderMap::new();
        let mut secrets = Vec::new();
        for (name, value) in &config.headers {
            let (name, value) = header(name, value.expose())?;
            headers.append(name, value);
        }
        secrets.extend(config.headers.iter().map(|(_, value)| value.expose().to_owned()));
        let mut query = None;
        match &config.auth {
            None => {}
            Some(RestAuth::Bearer(token)) => {
                let (_, value) = header("authorization", &format!("Bearer {}", token.expose()))?;
                headers.insert(AUTHORIZATION, value);
                secrets.push(token.expose().to_owned());
            }
            Some(RestAuth::Basic { user, password }) => {
                let pair = STANDARD.encode(format!("{user}:{}", password.expose()));
                let (_, value) = header("authorization", &format!("Basic {pair}"))?;
                headers.insert(AUTHORIZATION, value);
                secrets.extend([pair, password.expose().to_owned()]);
            }
            Some(RestAuth::ApiKey { name, place: KeyPlace::Header, value }) => {
                let (name, sent) = header(name, value.expose())?;
                headers.insert(name, sent);
                secrets.push(value.expose().to_owned());
            }
            Some(RestAuth::ApiKey { name, place: KeyPlace::Query, value }) => {
                query = Some((name.clone(), value.clone()));
                secrets.push(value.expose().to_owned());
            }
        }
        secrets.retain(|secret| secret.chars().count() >= SECRET_CHARS_MIN);
        // A server that tells of a URL tells them as they stand in one.
        let written: Vec<String> = secrets.iter().map(|secret| encoded(secret)).collect();
        secrets.extend(written.iter().map(|secret| secret.replace("%20", "+")));
        secrets.extend(written);
        // A secret may be a part of another: `Bearer abc` and `abc`.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Ok(Self { headers, query, secrets })
    }

    /// None at all.
    pub(super) fn none() -> Self {
        Self { headers: HeaderMap::new(), query: None, secrets: Vec::new() }
    }

    /// Whether there is anything to keep from strangers.
    pub(super) fn is_empty(&self) -> bool {
        self.headers.is_empty() && self.query.is_none()
    }

    /// What arguments cannot set, because it is here.
    pub(super) fn supplied(&self) -> Supplied {
        Supplied {
            headers: self.headers.keys().map(|name| name.as_str().to_owned()).collect(),
            query: self.query.iter().map(|(name, _)| name.clone()).collect(),
        }
    }

    /// The URL and headers of a request with all of it.
    pub(super) fn added(&self, url: &Url, headers: &HeaderMap) -> (Url, HeaderMap) {
        let (mut url, mut headers) = (url.clone(), headers.clone());
        for name in self.headers.keys() {
            headers.remove(name);
        }
        for (name, value) in &self.headers {
            headers.append(name, value.clone());
        }
        if let Some((name, value)) = &self.query {
            url.query_pairs_mut().append_pair(name, value.expose());
        }
        (url, headers)
    }

    /// A text in which no secret is left.
    pub(super) fn hidden(&self, text: &str) -> String {
        let hide = |text: String, secret: &String| text.replace(secret.as_str(), "***");
        self.secrets.iter().fold(text.to_owned(), hide)
    }
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    let key = HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| format!("`{name}` is not the name of a header"))?;
    let mut value = HeaderValue::from_str(value)
        .map_err(|_| format!("the value of header `{name}` has characters that no header has"))?;
    value.set_sensitive(true);
    Ok((key, value))
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
    fn each_way_is_sent_where_it_belongs() {
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
    fn no_secret_is_left_in_a_text() {
        let password = Secret::from("pass:word");
        let basic = RestAuth::Basic { user: "me".to_owned(), password };
        let credentials = Credentials::new(&config(basic)).unwrap();
        let told = credentials.hidden("bWU6cGFzczp3b3Jk, pass:word, tenant-7, me");
        assert_eq!(told, "***, ***, ***, me");
        assert_eq!(credentials.hidden("?a=pass%3Aword"), "?a=***");
        let broken = RestAuth::Bearer(Secret::from("line\nbreak"));
        let error = Credentials::new(&config(broken)).err().unwrap();
        assert!(!error.contains("break"), "{error}");
    }

    #[test]
    fn what_is_sent_is_no_argument() {
        let supplied = Credentials::new(&config(key(KeyPlace::Query))).unwrap().supplied();
        assert_eq!(
            (supplied.headers, supplied.query),
            (vec!["x-tenant".to_owned()], vec!["X-Key".to_owned()])
        );
    }
}
