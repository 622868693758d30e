//! The base URL of a server: configured, or taken from its document, which cannot redirect our
//! credentials.

use super::document::{OpenApi, Version};
use super::operation::{Operation, server};
use super::swagger;
use crate::config::{Document, RestConfig};
use outbound::addresses::{self, HttpSettings};
use reqwest::Url;

/// The places that an operator wrote.
#[derive(Debug)]
pub(super) struct DocumentLocation {
    /// The server.
    pub(super) base: Option<Url>,
    /// The document, if it is behind a URL.
    pub(super) document: Option<Url>,
}

impl DocumentLocation {
    /// The places of these settings; what is wrong with them, if something is.
    pub(super) fn new(config: &RestConfig) -> Result<Self, String> {
        let base = match &config.base_url {
            Some(text) => Some(base_url(text)?),
            None => None,
        };
        let document = match &config.document {
            Document::Url(text) => Some(web_url("document", text)?),
            Document::File(_) => None,
        };
        Ok(Self { base, document })
    }

    /// Whom may be talked to: an address that is not public only if it is written here itself.
    pub(super) fn settings(&self, allow_private: bool) -> Result<HttpSettings, String> {
        let written = [self.base.as_ref(), self.document.as_ref()].into_iter().flatten();
        let hosts: Vec<String> = written.filter_map(host).collect();
        let settings = HttpSettings::new(&hosts).map_err(|error| error.to_string())?;
        Ok(settings.private(allow_private))
    }

    /// Whether the document is at the server that the operator names.
    pub(super) fn document_is_at_base(&self) -> bool {
        match (&self.base, &self.document) {
            (Some(base), Some(document)) => base.origin() == document.origin(),
            _ => false,
        }
    }

    /// Where requests go. Credentials go to a server that the operator names, in the settings or in
    /// a file; a document from elsewhere may only name its own.
    pub(super) fn server(&self, document: &OpenApi, has_credentials: bool) -> Result<Url, String> {
        if let Some(base) = &self.base {
            return Ok(base.clone());
        }
        let named = match document.version {
            Version::V20 => Some(swagger::server(document, self.document.is_some())),
            Version::V30 | Version::V31 => server(document.field("servers")),
        };
        let named = named.unwrap_or_else(|| "/".to_owned());
        let whole = match &self.document {
            Some(from) => from.join(&named).map_err(|error| error.to_string()),
            None => {
                Url::parse(&named).map_err(|_| "it is not a whole URL; say `base_url`".to_owned())
            }
        };
        let whole = whole.and_then(|url| base_url(url.as_str()));
        let url = whole.map_err(|why| format!("the document names the server `{named}`: {why}"))?;
        match &self.document {
            Some(from) if has_credentials && from.origin() != url.origin() => Err(format!(
                "the document names the server `{}`, and credentials go only where `base_url` says",
                url.origin().ascii_serialization()
            )),
            _ => Ok(url),
        }
    }

    /// Where the requests of one operation go, if it or its path names a server.
    pub(super) fn server_of(&self, operation: &Operation, base: &Url) -> Result<Url, String> {
        let Some(named) = operation.server.as_deref().filter(|_| self.base.is_none()) else {
            return Ok(base.clone());
        };
        let from = self.document.as_ref().unwrap_or(base);
        let url = from.join(named).map_err(|error| error.to_string());
        let url = url.and_then(|url| base_url(url.as_str()))?;
        if url.origin() != base.origin() {
            let other = url.origin().ascii_serialization();
            return Err(format!("it is at another server, `{other}`"));
        }
        Ok(url)
    }
}

/// A URL without what may be secret in it.
pub(super) fn shown(url: &Url) -> String {
    format!("{}{}", url.origin().ascii_serialization(), url.path())
}

fn base_url(text: &str) -> Result<Url, String> {
    let url = web_url("base_url", text)?;
    if url.query().is_some() || url.fragment().is_some() {
        return Err("a base URL has no `?` and no `#`".to_owned());
    }
    Ok(url)
}

/// An http or https URL; the text is not repeated, for it may hold a secret.
fn web_url(what: &str, text: &str) -> Result<Url, String> {
    let url = addresses::web_url(&format!("`{what}`"), text)?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(format!("`{what}` must not hold a user or password: they belong in `auth`"));
    }
    Ok(url)
}

fn host(url: &Url) -> Option<String> {
    Some(format!("{}:{}", url.host_str()?, url.port_or_known_default()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::path::PathBuf;

    fn places(base: Option<&str>, document: Option<&str>) -> Result<DocumentLocation, String> {
        let document = match document {
            Some(url) => Document::Url(url.to_owned()),
            None => Document::File(PathBuf::from("a.yaml")),
        };
        let base_url = base.map(str::to_owned);
        DocumentLocation::new(&RestConfig { base_url, ..RestConfig::new(document) })
    }

    fn document(servers: Value) -> OpenApi {
        let document = json!({"openapi": "3.1.0", "servers": servers});
        OpenApi::parse(document.to_string()).unwrap()
    }

    #[test]
    fn the_configured_base_url_overrides_the_document() {
        let from = Some("https://a.test/docs/openapi.json");
        for (base, from, servers, has_credentials, expected) in [
            (Some("https://b.test/v1"), from, json!([]), true, Ok("https://b.test/v1")),
            (None, from, json!([]), true, Ok("https://a.test/")),
            (None, from, json!([{"url": "../v2"}]), true, Ok("https://a.test/v2")),
            (None, from, json!([{"url": "https://c.test"}]), false, Ok("https://c.test/")),
            (None, from, json!([{"url": "https://c.test"}]), true, Err("`https://c.test`")),
            (None, from, json!([{"url": "http://a.test"}]), true, Err("`http://a.test`")),
            (None, None, json!([{"url": "https://c.test"}]), true, Ok("https://c.test/")),
            (None, None, json!([]), true, Err("not a whole URL")),
            (None, from, json!([{"url": "ftp://a.test"}]), false, Err("http or https")),
        ] {
            let found = places(base, from).unwrap().server(&document(servers), has_credentials);
            match (&found, expected) {
                (Ok(url), Ok(expected)) => assert_eq!(url.as_str(), expected),
                (Err(why), Err(told)) => assert!(why.contains(told), "{why}"),
                _ => panic!("{found:?}, not {expected:?}"),
            }
        }
    }

    #[test]
    fn swagger_host_base_path_and_schemes_form_the_server_url() {
        let from = Some("http://a.test/docs/swagger.json");
        let both = json!(["wss", "http", "https"]);
        for (said, from, expected) in [
            (json!({"host": "b.test:8080", "basePath": "/v1"}), from, "http://b.test:8080/v1"),
            (json!({"host": "b.test", "schemes": both}), from, "https://b.test/"),
            (json!({"host": "b.test", "schemes": ["http"]}), None, "http://b.test/"),
            (json!({"host": "b.test", "basePath": "v1"}), None, "https://b.test/v1"),
            (json!({"basePath": "/v2"}), from, "http://a.test/v2"),
            (json!({}), from, "http://a.test/"),
        ] {
            let mut document = said.clone();
            document["swagger"] = json!("2.0");
            let document = OpenApi::parse(document.to_string()).unwrap();
            let found = places(None, from).unwrap().server(&document, false);
            assert_eq!(found.unwrap().as_str(), expected, "{said}");
        }
    }

    #[test]
    fn an_invalid_server_url_is_reported_without_secrets() {
        for (base, told) in [
            ("nowhere", "is no URL"),
            ("ftp://a.test", "http or https"),
            ("https://me:pass@a.test", "`auth`"),
            ("https://a.test?key=1", "no `?`"),
        ] {
            let error = places(Some(base), None).unwrap_err();
            assert!(error.contains(told) && !error.contains("pass@"), "{error}");
        }
    }

    #[test]
    fn private_addresses_are_reached_only_if_configured() {
        let written = places(Some("http://10.0.0.7:8080/v1"), None).unwrap();
        let settings = written.settings(false).unwrap();
        for (url, permitted) in [
            ("http://10.0.0.7:8080/x", true),
            ("http://10.0.0.7/x", false),
            ("http://127.0.0.1:8080/", false),
            ("http://example.com/", true),
        ] {
            assert_eq!(settings.permits_host(&Url::parse(url).unwrap()), permitted, "{url}");
        }
        let open = written.settings(true).unwrap();
        assert!(open.permits_host(&Url::parse("http://127.0.0.1/").unwrap()));
    }
}
