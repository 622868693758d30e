//! Agents and providers of tools as records. Where a value could be a secret it is masked.

use kernel::contracts::Definition;
use kernel::definition::agent::Agent;
use kernel::tool::rules::Pattern;
use kernel::values::ids::{CallId, RealmId};
use project::upstream_entries::shown_url;
use serde_json::{Map, Value, json};

/// What stands for a value that could be a secret.
const MASKED: &str = "********";

/// Members of a provider that are shown as they are stored.
const PROVIDER_MEMBERS: [&str; 7] =
    ["providerType", "login", "prefix", "include", "tools", "trusted", "timeoutMs"];
/// Members that are addresses.
const ADDRESSES: [&str; 2] = ["baseUrl", "document"];

pub(super) fn of_agent(realm: &RealmId, agent: &Agent, version: Option<u64>) -> Value {
    let texts = |patterns: &[Pattern]| -> Value {
        patterns.iter().map(|pattern| Value::from(pattern.as_str())).collect()
    };
    let types: Value = agent.types.keys().map(|name| Value::from(name.as_str())).collect();
    let own = json!({
        "description": agent.description,
        "llmConfigRef": &*agent.model,
        "routerModel": agent.router_model.as_deref(),
        "mode": agent.source.get("mode"),
        "enabledTools": agent.enabled.as_deref().map(texts),
        "toolTypes": types,
        "approve": texts(&agent.approve),
        "timeZone": agent.zone,
    });
    // What a file brings has no versions.
    record(realm, "agents", agent.name.as_str(), Some(&agent.title), own, version.unwrap_or(1))
}

pub(super) fn of_provider(realm: &RealmId, definition: &Definition) -> Value {
    let body = &definition.body;
    let member = |name: &str| body.get(name).cloned().unwrap_or(Value::Null);
    let mut own = Map::new();
    for name in PROVIDER_MEMBERS {
        own.insert(name.to_owned(), member(name));
    }
    for name in ADDRESSES {
        let shown = member(name).as_str().map(shown_url);
        own.insert(name.to_owned(), Value::from(shown));
    }
    let headers = body.get("headers").and_then(Value::as_object).into_iter().flatten();
    let headers = headers.map(|(name, _)| json!({"name": name, "value": MASKED}));
    own.insert("headers".to_owned(), headers.collect());
    let is_disabled = member("disabled").as_bool().unwrap_or_default();
    own.insert("enabled".to_owned(), Value::from(!is_disabled));
    let title = body.get("displayName").and_then(Value::as_str);
    let name = definition.name.as_str();
    let version = definition.version;
    record(realm, "tool_provider_configs", name, title, Value::Object(own), version)
}

fn record(
    realm: &RealmId,
    collection: &str,
    name: &str,
    title: Option<&str>,
    own: Value,
    version: u64,
) -> Value {
    let title = title.filter(|title| !title.trim().is_empty()).unwrap_or(name);
    let mut record = Map::new();
    record.insert("id".to_owned(), Value::from(id(realm, collection, name)));
    record.insert("refName".to_owned(), Value::from(name));
    record.insert("displayName".to_owned(), Value::from(title));
    let Value::Object(own) = own else { return Value::Object(record) };
    record.extend(own.into_iter().filter(|(_, value)| !value.is_null()));
    record.insert("activeStatus".to_owned(), Value::from("ACTIVE"));
    record.insert("version".to_owned(), Value::from(version));
    Value::Object(record)
}

/// An id that stays the same as long as the name does: 24 digits of a hash.
fn id(realm: &RealmId, collection: &str, name: &str) -> String {
    let parts = [realm.as_str(), collection, name].map(str::as_bytes);
    let hash = CallId::of(&parts).0;
    format!("{:024x}", hash >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::values::ids::Millis;
    use query::records::names::read_id;

    #[test]
    fn a_provider_is_shown_without_what_could_be_a_secret() {
        let definition = Definition {
            kind: "provider".to_owned(),
            name: "crm".to_owned(),
            version: 3,
            body: json!({
                "displayName": "The CRM",
                "providerType": "REST",
                "baseUrl": "https://u:hunter2@crm.example/api?key=hunter3",
                "headers": {"authorization": "Bearer ${WAYPOST_PROVIDER_CRM}"},
                "oauth": {"clientId": "us", "clientSecret": "${WAYPOST_PROVIDER_SECRET}"},
                "trusted": false,
                "disabled": true,
            }),
            updated_at: Millis(0),
            by: None,
        };
        let shown = of_provider(&"shop".into(), &definition);
        assert_eq!(shown["displayName"], "The CRM");
        assert_eq!(shown["baseUrl"], "https://crm.example/api");
        assert_eq!(shown["headers"], json!([{"name": "authorization", "value": MASKED}]));
        assert_eq!((&shown["enabled"], &shown["version"]), (&json!(false), &json!(3)));
        let text = shown.to_string();
        for secret in ["hunter", "WAYPOST_PROVIDER", "null"] {
            assert!(!text.contains(secret), "{text}");
        }
        let id = shown["id"].as_str().unwrap();
        assert_eq!(read_id(id).as_deref(), Some(id));
        assert_eq!(of_provider(&"shop".into(), &definition)["id"], id);
        assert_ne!(of_provider(&"other".into(), &definition)["id"], id);
    }
}
