//! A card for clients of both versions: the members of 1.0, and beside them those of 0.3. Where a
//! member is in both, it holds both shapes. Signatures cover the members of 1.0 alone, but some
//! readers of 1.0 make these out of those of 0.3: both shapes must say the same, letter by letter.

use crate::a2a::card::{AgentCard, AgentInterface, SecurityRequirement, SecurityScheme};
use crate::a2a::value::or_default;
use crate::a2a::{HTTP_JSON, JSONRPC, VERSION_UNNAMED};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The version of the card, as 0.3 writes it.
const CARD_VERSION: &str = "0.3.0";

/// Where a card of 0.3 says that its agent is.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CardAddresses {
    /// The version of A2A: `0.3.0`.
    #[serde(deserialize_with = "or_default")]
    pub protocol_version: String,
    /// The preferred address.
    #[serde(deserialize_with = "or_default")]
    pub url: String,
    /// How the agent is spoken to there; `JSONRPC` if that is not said.
    #[serde(deserialize_with = "or_default")]
    pub preferred_transport: String,
    #[serde(deserialize_with = "or_default")]
    pub additional_interfaces: Vec<AdditionalInterface>,
}

/// One more address of an agent.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct AdditionalInterface {
    #[serde(deserialize_with = "or_default")]
    pub url: String,
    /// How the agent is spoken to there: `JSONRPC`, `GRPC` or `HTTP+JSON`.
    #[serde(deserialize_with = "or_default")]
    pub transport: String,
}

/// The card with the members of 0.3, where it has an address for that version.
pub fn for_both(card: &AgentCard) -> Value {
    // Plain data: writing it as JSON cannot fail.
    let mut written = serde_json::to_value(card).unwrap_or_default();
    let old = |one: &&AgentInterface| one.protocol_version == VERSION_UNNAMED;
    let interfaces: Vec<&AgentInterface> = card.supported_interfaces.iter().filter(old).collect();
    let of = |binding: &str| interfaces.iter().find(|one| one.protocol_binding == binding);
    let Some(preferred) = of(JSONRPC).or_else(|| of(HTTP_JSON)) else { return written };
    let Some(members) = written.as_object_mut() else { return written };
    let additional: Vec<Value> = interfaces
        .iter()
        .map(|one| json!({"url": one.url, "transport": one.protocol_binding}))
        .collect();
    let extended = card.capabilities.extended_agent_card.unwrap_or_default();
    members.insert("protocolVersion".to_owned(), json!(CARD_VERSION));
    members.insert("url".to_owned(), json!(preferred.url));
    members.insert("preferredTransport".to_owned(), json!(preferred.protocol_binding));
    members.insert("additionalInterfaces".to_owned(), json!(additional));
    members.insert("supportsAuthenticatedExtendedCard".to_owned(), json!(extended));
    if !card.security_requirements.is_empty() {
        members.insert("security".to_owned(), requirements(&card.security_requirements));
    }
    for (name, scheme) in &card.security_schemes {
        let written = members.get_mut("securitySchemes").and_then(|all| all.get_mut(name));
        if let Some(written) = written.and_then(Value::as_object_mut) {
            written.extend(old_scheme(scheme));
        }
    }
    for (index, skill) in card.skills.iter().enumerate() {
        let written = members.get_mut("skills").and_then(|all| all.get_mut(index));
        if let Some(written) = written.and_then(Value::as_object_mut)
            && !skill.security_requirements.is_empty()
        {
            written.insert("security".to_owned(), requirements(&skill.security_requirements));
        }
    }
    written
}

fn requirements(all: &[SecurityRequirement]) -> Value {
    let old = |one: &SecurityRequirement| -> Map<String, Value> {
        let schemes = one.schemes.iter();
        schemes.map(|(name, scopes)| (name.clone(), json!(scopes.list))).collect()
    };
    all.iter().map(|one| Value::Object(old(one))).collect()
}

/// The members that 0.3 has of a scheme, with the values that 1.0 has.
fn old_scheme(scheme: &SecurityScheme) -> Map<String, Value> {
    let members = if let Some(http) = &scheme.http_auth_security_scheme {
        let bearer = Some(&http.bearer_format).filter(|format| !format.is_empty());
        json!({"type": "http", "scheme": http.scheme, "bearerFormat": bearer,
            "description": http.description})
    } else if let Some(key) = &scheme.api_key_security_scheme {
        json!({"type": "apiKey", "in": key.location, "name": key.name,
            "description": key.description})
    } else if let Some(oauth) = &scheme.oauth2_security_scheme {
        json!({"type": "oauth2", "flows": oauth.flows, "description": oauth.description,
            "oauth2MetadataUrl": oauth.oauth2_metadata_url})
    } else if let Some(open_id) = &scheme.open_id_connect_security_scheme {
        json!({"type": "openIdConnect", "openIdConnectUrl": open_id.open_id_connect_url,
            "description": open_id.description})
    } else if let Some(mutual) = &scheme.mtls_security_scheme {
        json!({"type": "mutualTLS", "description": mutual.description})
    } else {
        json!({})
    };
    let Value::Object(members) = members else { return Map::new() };
    let is_said = |value: &Value| !value.is_null() && value.as_str() != Some("");
    members.into_iter().filter(|(_, value)| is_said(value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card() -> AgentCard {
        serde_json::from_value(json!({"name": "a", "description": "b", "version": "1",
            "supportedInterfaces": [
                {"url": "https://a.test/a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
                {"url": "https://a.test/b", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"},
                {"url": "https://a.test/c", "protocolBinding": "HTTP+JSON",
                    "protocolVersion": "0.3"}],
            "capabilities": {"extendedAgentCard": true},
            "securitySchemes": {
                "bearer": {"httpAuthSecurityScheme": {"scheme": "Bearer"}},
                "key": {"apiKeySecurityScheme": {"location": "header", "name": "X-Api-Key"}}},
            "securityRequirements": [{"schemes": {"bearer": {"list": ["read"]}}}],
            "skills": [{"id": "s", "name": "s", "description": "s", "tags": ["t"]}]}))
        .unwrap()
    }

    #[test]
    fn a_card_holds_the_members_of_both_versions() {
        let written = for_both(&card());
        assert_eq!(written["protocolVersion"], "0.3.0");
        let preferred = (&written["url"], &written["preferredTransport"]);
        assert_eq!(preferred, (&json!("https://a.test/b"), &json!("JSONRPC")));
        let additional = json!([{"url": "https://a.test/b", "transport": "JSONRPC"},
            {"url": "https://a.test/c", "transport": "HTTP+JSON"}]);
        assert_eq!(written["additionalInterfaces"], additional);
        assert_eq!(written["supportsAuthenticatedExtendedCard"], true);
        assert_eq!(written["security"], json!([{"bearer": ["read"]}]));
        let bearer = json!({"type": "http", "scheme": "Bearer",
            "httpAuthSecurityScheme": {"scheme": "Bearer"}});
        assert_eq!(written["securitySchemes"]["bearer"], bearer);
        assert_eq!(written["securitySchemes"]["key"]["in"], "header");
        // What is signed is what a reader of 1.0 reads out of it.
        let read: AgentCard = serde_json::from_value(written).unwrap();
        assert_eq!(read.signed_content(), card().signed_content());
    }

    #[test]
    fn a_card_without_an_address_for_0_3_stays_as_it_is() {
        let mut only = card();
        only.supported_interfaces.truncate(1);
        assert_eq!(for_both(&only), serde_json::to_value(&only).unwrap());
    }
}
