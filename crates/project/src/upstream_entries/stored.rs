//! Providers that are stored over HTTP: only addresses, never a command and never a secret. What
//! must be secret is named as a variable, and only those that the operator named for it count.

use super::entry::Entry;
use super::expand::names_variable;
use super::keys::{KeyTable, Keys};
use super::oauth::Login;
use crate::layer::Location;
use crate::realm::default_realm;
use crate::settings::Text;
use kernel::definition::plan::mistake::Mistake;
use kernel::tool::rules::Pattern;
use kernel::values::ids::RealmId;
use serde_json::Value;
use wire::rest::Provider;

/// The kind of these definitions in the store.
pub const KIND: &str = "provider";

/// How the variables begin that a stored provider may name.
const PREFIX: &str = "WAYPOST_PROVIDER_";

/// Whether a stored provider of a realm may name this variable: one that its settings list. A
/// caller who may store one must not learn what else is in our environment, nor what is another
/// realm's. Where nothing is listed, the realm that every server has may name what begins so, and
/// no other may name any.
pub fn may_name(realm: &RealmId, listed: Option<&[Pattern]>, variable: &str) -> bool {
    match listed {
        Some(listed) => listed.iter().any(|pattern| pattern.fits(variable)),
        None => *realm == default_realm() && variable.starts_with(PREFIX),
    }
}

/// The mistake of a stored provider that names a variable which its realm may not use. Whether it
/// is set is not said.
pub fn not_its_own(realm: &RealmId, variable: &str) -> Mistake {
    let what = format!("stored providers of realm `{realm}` may not use the variable `{variable}`");
    let hint = match *realm == default_realm() {
        true => format!("use one that begins with `{PREFIX}`, or that `variables` lists"),
        false => format!("the operator lists it in `variables` of `[realms.{realm}]`"),
    };
    Mistake::error(what).hint(hint)
}

/// The provider of a definition.
pub fn provider_of_body(name: &str, body: Value) -> Result<Provider, Mistake> {
    serde_json::from_value(body).map_err(|error| {
        Mistake::error(format!("the stored provider `{name}` cannot be read: {error}"))
            .hint("store it again, or remove it")
    })
}

pub fn entry_of(name: &str, provider: &Provider) -> Result<Entry, Mistake> {
    let place = Location::whole(&format!("stored provider `{name}`"));
    let text = |text: &str| Text::at(&place, text);
    let texts = |all: &[String]| -> Vec<Text> { all.iter().map(|one| text(one)).collect() };
    if let Some(mistake) = outspoken(provider) {
        return Err(place.mistake(mistake));
    }
    let is_url = |url: &str| url.starts_with("http://") || url.starts_with("https://");
    if let Some(document) = provider.document.as_deref().filter(|document| !is_url(document)) {
        let what = format!("`{document}` is no URL of a document");
        let hint = "a stored provider reads no files; `[providers.<name>]` of waypost.toml may";
        return Err(place.mistake(Mistake::error(what).hint(hint)));
    }
    if provider.timeout_ms == Some(0) {
        let what = "`timeoutMs` must be a whole number from 1 on, and is 0";
        return Err(place.mistake(Mistake::error(what)));
    }
    let oauth = provider.oauth.as_ref().map(|oauth| Login::stored(oauth, &place)).transpose()?;
    let headers = provider.headers.iter().map(|(name, value)| (name.clone(), text(value)));
    let keys = Keys {
        kind: Some(text(&provider.provider_type)),
        display_name: provider.display_name.as_deref().map(text),
        base_url: Some(text(&provider.base_url)),
        headers: headers.collect(),
        oauth,
        login: provider.login.as_deref().map(text),
        document: provider.document.as_deref().map(text),
        include: texts(&provider.include),
        allow_private: Some(provider.allow_private),
        tools: texts(&provider.tools),
        prefix: provider.prefix.as_deref().map(text),
        trusted: Some(provider.trusted),
        journal: Some(provider.journal),
        timeout_ms: provider.timeout_ms,
        era: provider.era.as_deref().map(text),
        disabled: Some(provider.disabled),
        ..Keys::default()
    };
    let name = text(name);
    Entry::new(&name, KeyTable::Provider, keys).map_err(|mistake| name.mistake_below(mistake))
}

/// A secret that the provider says itself, as far as we can recognise one.
fn outspoken(provider: &Provider) -> Option<Mistake> {
    if let Some((header, _)) = provider.headers.iter().find(|(_, value)| !names_variable(value)) {
        let what = format!("the header `{header}` says its value, and secrets are not stored");
        let hint = format!("name a variable, as in `Bearer ${{{PREFIX}TOKEN}}`, and set it");
        return Some(Mistake::error(what).hint(hint));
    }
    let addresses =
        [("baseUrl", Some(&provider.base_url)), ("document", provider.document.as_ref())];
    let says = |url: &String| user_of(url).is_some_and(|user| !names_variable(user));
    let (key, _) = addresses.into_iter().find(|(_, url)| url.is_some_and(says))?;
    let what = format!("`{key}` says who logs in, and secrets are not stored");
    let hint = format!("name a variable, as in `https://me:${{{PREFIX}PASSWORD}}@host`");
    Some(Mistake::error(what).hint(hint))
}

/// What stands before the host of an address: a name, a password.
fn user_of(url: &str) -> Option<&str> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next()?;
    host.rsplit_once('@').map(|(user, _)| user)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn entry(body: Value) -> Result<Entry, String> {
        let provider = provider_of_body("crm", body).map_err(|mistake| mistake.to_string())?;
        entry_of("crm", &provider).map_err(|mistake| mistake.to_string())
    }

    #[test]
    fn a_provider_is_an_entry_without_secrets() {
        let body = json!({"providerType": "MCP", "baseUrl": "https://a.example/mcp",
            "headers": {"Authorization": "Bearer ${WAYPOST_PROVIDER_CRM}"}});
        let facts = entry(body).unwrap().facts();
        assert_eq!((facts.kind.as_str(), facts.prefix.as_str()), ("http", "crm."));
        assert_eq!(facts.origin, "stored provider `crm`");
        let seed = json!({"refName": "crm", "displayName": "CRM", "baseUrl": "https://a.example"});
        assert_eq!(entry(seed).unwrap().facts().kind, "rest", "as the stored form says by default");
        let agent = json!({"providerType": "A2A", "baseUrl": "https://a.example",
            "headers": {"X-Api-Key": "${WAYPOST_PROVIDER_CRM}"}});
        let facts = entry(agent).unwrap().facts();
        assert_eq!((facts.kind.as_str(), facts.target.as_str()), ("a2a", "https://a.example"));
        let file = json!({"providerType": "A2A", "baseUrl": "cards/a.json"});
        assert!(entry(file).unwrap_err().contains("is not the address of an agent"));
        let literal = json!({"baseUrl": "https://a.example", "headers": {"X-Key": "hunter2"}});
        let told = entry(literal).unwrap_err();
        assert!(told.contains("secrets are not stored") && !told.contains("hunter2"), "{told}");
        for url in ["https://me:hunter2@a.example/mcp", "https://hunter2@a.example", "x:hunter2@y"]
        {
            for body in [json!({"baseUrl": url}), json!({"baseUrl": "https://b", "document": url})]
            {
                let told = entry(body).unwrap_err();
                assert!(told.contains("says who logs in") && !told.contains("hunter2"), "{told}");
            }
        }
        let named = json!({"baseUrl": "https://me:${WAYPOST_PROVIDER_CRM}@a.example/x@y"});
        assert!(entry(named).is_ok());
        let never = json!({"baseUrl": "https://a.example", "timeoutMs": 0});
        assert!(entry(never).unwrap_err().contains("`timeoutMs` must be"));
        let file = json!({"baseUrl": "https://a.example", "document": "/etc/passwd"});
        assert!(entry(file).unwrap_err().contains("reads no files"));
        assert!(entry(json!({"baseUrl": "https://a.example", "providerType": "SOAP"})).is_err());
        let secret = json!({"baseUrl": "https://a.example", "providerType": "MCP",
            "oauth": {"clientId": "me", "clientSecret": "hunter2"}});
        let told = entry(secret).unwrap_err();
        assert!(told.contains("secrets are not stored") && !told.contains("hunter2"), "{told}");
        let rest = json!({"baseUrl": "https://a.example", "oauth": {"clientId": "me"}});
        assert!(entry(rest).unwrap_err().contains("goes with an MCP server"));
        let mcp = json!({"baseUrl": "https://a.example", "providerType": "MCP", "oauth":
            {"clientId": "me", "clientSecret": "${WAYPOST_PROVIDER_CRM}", "grant": "ourselves"}});
        assert!(entry(mcp).unwrap().keys.oauth.is_some());
    }

    #[test]
    fn a_provider_names_the_variables_of_its_realm() {
        let usual = default_realm();
        let acme = RealmId::from("acme");
        let listed = [Pattern::new("ACME_*").unwrap(), Pattern::new("SHARED").unwrap()];
        assert!(may_name(&usual, None, "WAYPOST_PROVIDER_CRM"));
        assert!(!may_name(&usual, None, "WAYPOST_ADMIN_KEY"));
        assert!(!may_name(&acme, None, "WAYPOST_PROVIDER_CRM"), "another realm's");
        for realm in [&usual, &acme] {
            assert!(may_name(realm, Some(&listed), "ACME_TOKEN"));
            assert!(may_name(realm, Some(&listed), "SHARED"));
            assert!(!may_name(realm, Some(&listed), "WAYPOST_PROVIDER_CRM"));
            assert!(!may_name(realm, Some(&[]), "SHARED"));
        }
        let told = not_its_own(&acme, "BETA_TOKEN").to_string();
        assert!(told.contains("`[realms.acme]`") && told.contains("`BETA_TOKEN`"), "{told}");
    }
}
