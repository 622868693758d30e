//! A server described by an OpenAPI document: the connection that its keys describe.

use super::expand::{ExpandContext, expanded};
use super::keys::Keys;
use super::sendable::{headers_of, url_of};
use crate::settings::Text;
use kernel::definition::plan::mistake::Mistake;
use upstreams::{Document, RestConfig};

/// Where most servers have their document.
const USUAL_DOCUMENT: &str = "/openapi.json";

/// What to connect to.
pub(super) fn config(keys: &Keys, around: &ExpandContext<'_>) -> Result<RestConfig, Mistake> {
    let base_url = keys.base_url.as_ref().map(|url| url_of(url, around)).transpose()?;
    let document = match (&keys.document, &base_url) {
        (Some(text), _) => document(text, around)?,
        // One of both is there.
        (None, base) => {
            let base = base.as_deref().unwrap_or_default().trim_end_matches('/');
            Document::Url(format!("{base}{USUAL_DOCUMENT}"))
        }
    };
    let include: Vec<String> = keys.include.iter().map(|text| text.text.clone()).collect();
    Ok(RestConfig {
        base_url,
        auth: keys.auth(around)?,
        headers: headers_of(&keys.headers, around)?,
        include: (!include.is_empty()).then_some(include),
        allow_private: keys.allow_private == Some(true),
        ..RestConfig::new(document)
    })
}

fn document(text: &Text, around: &ExpandContext<'_>) -> Result<Document, Mistake> {
    if text.text.starts_with("http://") || text.text.starts_with("https://") {
        return Ok(Document::Url(url_of(text, around)?));
    }
    Ok(Document::File(around.folder.join(expanded(text, around)?)))
}
