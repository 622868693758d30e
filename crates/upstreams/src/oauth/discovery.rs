//! Discovers the authorization server of an upstream: the upstream names it (RFC 9728) and it
//! describes itself. A server of 2025-03-26 names none and is its own authorization server.

use super::challenge::Challenge;
use super::error::{OauthError, Result};
use super::issuer::{self, Issuer};
use super::scopes::Scopes;
use super::urls;
use super::web::{Ground, Web, told};
use reqwest::Url;
use serde_json::Value;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Discovery {
    /// The server's resource identifier, exactly as it states it.
    pub(super) resource: String,
    /// Scopes that it supports.
    pub(super) scopes: Option<Scopes>,
    pub(super) issuer: Issuer,
    /// Where all of them are.
    pub(super) ground: Ground,
}

/// Looks for who gives tokens for this server; of several the one that we know. None if nothing
/// says that it takes tokens at all.
pub(super) async fn discover(
    web: &Web,
    server: &Url,
    challenge: &Challenge,
    known: Option<&str>,
) -> Result<Option<Discovery>> {
    let ground = web.ground(server, challenge);
    let Some(document) = resource_document(web, ground, server, challenge).await? else {
        let issuer = of_old(web, ground, server, challenge).await?;
        let resource = urls::plain(server);
        return Ok(issuer.map(|issuer| Discovery { resource, scopes: None, issuer, ground }));
    };
    let resource = document["resource"].as_str().unwrap_or_default();
    if !urls::covers(resource, server) {
        return Err(OauthError::refused(format!(
            "it says that its tokens are for `{}`, which is not this server",
            told(resource, &[])
        ))
        .hint("is the URL in the configuration the one that the server knows itself by?"));
    }
    let resource = resource.to_owned();
    let scopes = issuer::scopes(&document["scopes_supported"]);
    let named = document["authorization_servers"].as_array();
    let named: Vec<&str> = named.into_iter().flatten().filter_map(Value::as_str).collect();
    let chosen = named.iter().copied().find(|name| known == Some(*name));
    let issuer = match chosen.or(named.first().copied()) {
        Some(name) => described(web, ground, name).await?.ok_or_else(|| {
            let why = format!("its authorization server `{name}` does not describe itself");
            OauthError::refused(why)
                .hint("its `/.well-known/oauth-authorization-server` is missing")
        })?,
        None => of_old(web, ground, server, challenge).await?.ok_or_else(|| {
            OauthError::refused("it does not say which authorization server gives its tokens")
        })?,
    };
    Ok(Some(Discovery { resource, scopes, issuer, ground }))
}

/// The server's protected resource metadata, if it has any.
async fn resource_document(
    web: &Web,
    ground: Ground,
    server: &Url,
    challenge: &Challenge,
) -> Result<Option<Value>> {
    let mut missed = None;
    if let Some(text) = &challenge.resource_metadata {
        // Behind a proxy some servers do not know their own address: then the usual places help.
        let read = match urls::document(text, server) {
            Ok(url) => web.document(ground, &url).await,
            Err(trouble) => Err(trouble),
        };
        match read {
            Ok(Some(document)) => return Ok(Some(document)),
            Ok(None) => {}
            Err(trouble) => missed = Some(trouble),
        }
    }
    for url in urls::resource_documents(server) {
        match web.document(ground, &url).await {
            Ok(None) => {}
            Ok(Some(document)) => return Ok(Some(document)),
            Err(trouble) => return Err(missed.unwrap_or(trouble)),
        }
    }
    missed.map_or(Ok(None), Err)
}

/// A server that gives its tokens itself, as in 2025-03-26. None where nothing says so.
async fn of_old(
    web: &Web,
    ground: Ground,
    server: &Url,
    challenge: &Challenge,
) -> Result<Option<Issuer>> {
    let root = urls::root(server);
    // Nothing is sent in the clear to a server that is not here; one without https has no tokens.
    if urls::issuer(&root).is_err() {
        return Ok(None);
    }
    if let Some(issuer) = described(web, ground, &root).await? {
        return Ok(Some(issuer));
    }
    match challenge.is_bearer {
        true => Issuer::assumed(server).map(Some),
        false => Ok(None),
    }
}

/// The authorization server of this name, if it describes itself.
async fn described(web: &Web, ground: Ground, name: &str) -> Result<Option<Issuer>> {
    for url in urls::issuer_documents(&urls::issuer(name)?) {
        if let Some(document) = web.document(ground, &url).await? {
            // One that is wrong is not passed over for the next: it may be an attack.
            return Issuer::read(name, &document).map(Some);
        }
    }
    Ok(None)
}
