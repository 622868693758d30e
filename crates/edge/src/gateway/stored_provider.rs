//! Providers as the store has them: each is one realm's own.

use engine::refusal::Refusal;
use kernel::contracts::Definitions;
use kernel::definition::plan::mistake::{Mistake, Severity};
use kernel::values::ids::RealmId;
use outbound::addresses::{HttpSettings, web_url};
use project::upstream_entries::{Entry, stored};
use serde_json::Value;
use wire::rest::Provider;

/// A stored provider.
#[derive(Debug, Clone)]
pub struct StoredProvider {
    pub realm: RealmId,
    /// What it leads to.
    pub entry: Entry,
    /// Whether the names in its addresses may lead to the server's own network.
    pub is_inside: bool,
}

impl StoredProvider {
    /// This provider of a realm.
    pub fn new(realm: &RealmId, name: &str, provider: &Provider) -> Result<Self, Mistake> {
        let entry = stored::entry_of(name, provider)?;
        Ok(Self { realm: realm.clone(), entry, is_inside: leads_inside(provider) })
    }

    /// The same as it is stored.
    fn read(realm: &RealmId, name: &str, body: Value) -> Result<Self, Mistake> {
        Self::new(realm, name, &stored::provider_of_body(name, body)?)
    }

    /// What the names of its tools begin with, where it has some.
    pub fn beginning(&self) -> Option<String> {
        (!self.entry.is_disabled()).then(|| self.entry.prefix())
    }
}

/// Whether a provider says that it is in the server's own network: at an address that is not
/// public, however it is written, or that only a variable says. Only an administrator of the whole
/// server stores one that does; the names of all others are judged by where they lead.
pub fn leads_inside(provider: &Provider) -> bool {
    let is_public = |url: &String| {
        let Ok(url) = web_url("the address", url) else { return false };
        let is_plain = url.host_str().is_some_and(|host| !host.contains(['$', '{', '%']));
        is_plain && HttpSettings::default().permits_host(&url)
    };
    let mut addresses =
        [Some(&provider.base_url), provider.document.as_ref()].into_iter().flatten();
    provider.allow_private || !addresses.all(is_public)
}

/// The providers that are stored for a realm, and what is wrong with the others: a variable may be
/// gone since, and the rest must still serve.
pub async fn stored_providers(
    definitions: &dyn Definitions,
    realm: &RealmId,
    is_taken: impl Fn(&str) -> bool,
) -> Result<(Vec<StoredProvider>, Vec<Mistake>), Refusal> {
    let mut providers = Vec::new();
    let mut mistakes = Vec::new();
    for definition in definitions.list(realm, stored::KIND).await? {
        let name = definition.name.as_str();
        if is_taken(name) {
            let what = format!("the stored provider `{name}` is left out: its name is configured");
            mistakes.push(Mistake::warning(what).hint("remove it, or rename the configured one"));
            continue;
        }
        match StoredProvider::read(realm, name, definition.body) {
            Ok(provided) => providers.push(provided),
            Err(mistake) => mistakes.push(left_out(mistake)),
        }
    }
    Ok((providers, mistakes))
}

/// A mistake in what is stored does not keep the server from starting.
pub fn left_out(mistake: Mistake) -> Mistake {
    Mistake { severity: Severity::Warning, ..mistake }
}

#[cfg(test)]
mod tests {
    use super::*;
    use project::realm::default_realm;
    use serde_json::json;

    #[test]
    fn a_name_is_judged_by_where_it_leads_in_every_realm() {
        for realm in [default_realm(), RealmId::from("acme")] {
            let is_inside = |body: Value| {
                let provider: Provider = serde_json::from_value(body).unwrap();
                StoredProvider::new(&realm, "crm", &provider).unwrap().is_inside
            };
            for kind in ["MCP", "RPC", "REST", "A2A"] {
                let named = json!({"providerType": kind, "baseUrl": "https://in.test/x"});
                assert!(!is_inside(named), "{realm} {kind}");
                let allowed = json!({"providerType": kind, "baseUrl": "https://in.test/x",
                    "allowPrivate": true});
                assert!(is_inside(allowed), "{realm} {kind}");
            }
            let written = json!({"providerType": "MCP", "baseUrl": "http://127.0.0.1:1/x"});
            assert!(is_inside(written), "{realm}");
        }
    }
}
