//! Trusted documents of other servers, such as the keys of an issuer: JSON over https or from
//! loopback, bounded in size, without redirects.

use crate::addresses::{HttpSettings, is_loopback, is_public};
use crate::answer::{self, Effect};
use crate::client::{ClientOptions, GuardedClient};
use reqwest::header::{ACCEPT, HeaderValue};
use reqwest::{Response, Url};
use serde_json::Value;

/// Which addresses may be connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ground {
    /// Public ones: a document that came from one leads nowhere else.
    Public,
    Anywhere,
}

/// A document that is there.
#[derive(Debug, Clone)]
pub struct Document {
    /// A JSON object.
    pub body: Value,
    /// Addresses that it may refer to.
    pub leads: Ground,
}

/// Why a document could not be read, for logs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DocumentError(String);

/// Reads documents.
pub struct Documents {
    public: GuardedClient,
    anywhere: GuardedClient,
}

impl Default for Documents {
    /// No connection is made yet.
    fn default() -> Self {
        let client = |private: bool| {
            let settings = HttpSettings::default().private(private);
            GuardedClient::new(settings, ClientOptions::default())
        };
        Self { public: client(false), anywhere: client(true) }
    }
}

impl Documents {
    /// The document at this address, if one is there. How long that may take, the caller decides.
    pub async fn read(
        &self,
        address: &str,
        ground: Ground,
        bytes_max: usize,
    ) -> Result<Option<Document>, DocumentError> {
        let url = checked(address)?;
        let client = match ground {
            Ground::Public => &self.public,
            Ground::Anywhere => &self.anywhere,
        };
        let unread = |why: String| DocumentError(format!("`{address}`: {why}"));
        if !client.settings().permits_host(&url) {
            return Err(unread("a public server leads to an address that is not".to_owned()));
        }
        let client = client.client().map_err(|error| unread(error.fault.message))?;
        let request = client.get(url).header(ACCEPT, HeaderValue::from_static("application/json"));
        let sent = request.send().await;
        let mut response =
            sent.map_err(|error| unread(answer::unanswered(error, Effect::Reads).fault.message))?;
        let status = response.status();
        if status.is_client_error() {
            return Ok(None);
        }
        if !status.is_success() {
            return Err(unread(format!("it answered {status}")));
        }
        let leads = led_from(&response);
        let body = answer::collect(&mut response, bytes_max)
            .await
            .map_err(|error| unread(error.error(status, Effect::Reads, bytes_max).fault.message))?;
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        match body.is_object() {
            true => Ok(Some(Document { body, leads })),
            false => Err(unread("it is not a JSON object".to_owned())),
        }
    }
}

/// Where a document may lead that came from there.
fn led_from(response: &Response) -> Ground {
    let from = response.remote_addr().map(|address| address.ip().to_canonical());
    if from.is_some_and(|address| !is_public(address)) { Ground::Anywhere } else { Ground::Public }
}

/// An address that what comes from it can be believed: https, or this machine itself.
fn checked(address: &str) -> Result<Url, DocumentError> {
    let wrong = |why: &str| DocumentError(format!("`{address}` {why}"));
    let url = Url::parse(address).map_err(|_| wrong("is not an address"))?;
    if url.scheme() != "https" && !(url.scheme() == "http" && is_loopback(&url)) {
        return Err(wrong("is not https"));
    }
    if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
        return Err(DocumentError("an address has a user or a fragment".to_owned()));
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_accepted_only_over_https_or_loopback() {
        for address in
            ["https://a.test/x", "http://127.0.0.1:1/x", "http://[::1]/", "http://localhost/"]
        {
            assert!(checked(address).is_ok(), "{address}");
        }
        for address in [
            "http://a.test/x",
            "http://10.0.0.7/",
            "ftp://a.test/",
            "https://me:hush@a.test/",
            "https://a.test/#x",
            "/x",
            "",
        ] {
            let unread = checked(address).unwrap_err().to_string();
            assert!(!unread.contains("hush"), "{unread}");
        }
    }

    #[tokio::test]
    async fn a_public_document_cannot_refer_to_a_private_address() {
        let documents = Documents::default();
        for address in ["http://127.0.0.1:1/", "https://10.0.0.7/", "https://localhost/"] {
            let unread = documents.read(address, Ground::Public, 10).await.unwrap_err();
            assert!(unread.to_string().contains("public"), "{unread}");
        }
    }
}
