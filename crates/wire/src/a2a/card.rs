//! The agent card of A2A 1.0. Members that the proto marks as required are always written, those
//! that it marks as optional where they are set, all others where they are not the default: so a
//! card that was read is written as the one that was signed.

use super::GRPC;
use super::value::{Struct, is_default, members, or_default};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What an agent says of itself.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentCard {
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    #[serde(deserialize_with = "or_default")]
    pub description: String,
    /// Where it is, the preferred address first.
    #[serde(alias = "supported_interfaces", deserialize_with = "or_default")]
    pub supported_interfaces: Vec<AgentInterface>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<AgentProvider>,
    /// Its own version.
    #[serde(deserialize_with = "or_default")]
    pub version: String,
    /// Where it is described.
    #[serde(alias = "documentation_url", skip_serializing_if = "Option::is_none")]
    pub documentation_url: Option<String>,
    /// What it can do beside answering.
    #[serde(deserialize_with = "or_default")]
    pub capabilities: AgentCapabilities,
    /// How it is shown who calls, by name.
    #[serde(alias = "security_schemes", deserialize_with = "or_default")]
    #[serde(skip_serializing_if = "is_default")]
    pub security_schemes: BTreeMap<String, SecurityScheme>,
    /// Which of these it wants: one of these is enough.
    #[serde(alias = "security_requirements", deserialize_with = "or_default")]
    #[serde(skip_serializing_if = "is_default")]
    pub security_requirements: Vec<SecurityRequirement>,
    /// The media types that it takes.
    #[serde(alias = "default_input_modes", deserialize_with = "or_default")]
    pub default_input_modes: Vec<String>,
    /// The media types that it answers with.
    #[serde(alias = "default_output_modes", deserialize_with = "or_default")]
    pub default_output_modes: Vec<String>,
    /// What it knows how to do.
    #[serde(deserialize_with = "or_default")]
    pub skills: Vec<AgentSkill>,
    /// Who vouches for it.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub signatures: Vec<AgentCardSignature>,
    /// Its picture.
    #[serde(alias = "icon_url", skip_serializing_if = "Option::is_none")]
    pub icon_url: Option<String>,
}

impl AgentCard {
    /// What signatures are made over, before it is brought into its canonical form: the card
    /// without them.
    pub fn signed_content(&self) -> Value {
        let unsigned = Self { signatures: Vec::new(), ..self.clone() };
        // Plain data: writing it as JSON cannot fail.
        serde_json::to_value(unsigned).unwrap_or_default()
    }
}

/// One address of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentInterface {
    #[serde(deserialize_with = "or_default")]
    pub url: String,
    /// How it is spoken to there: `JSONRPC`, `GRPC`, `HTTP+JSON`, or a URI.
    #[serde(alias = "protocol_binding", deserialize_with = "or_default")]
    pub protocol_binding: String,
    /// What every request names there.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub tenant: String,
    /// In which version of A2A: `1.0`.
    #[serde(alias = "protocol_version", deserialize_with = "or_default")]
    pub protocol_version: String,
}

impl AgentInterface {
    /// Where it is, as a URL. What speaks gRPC may be named by host and port: without TLS, as
    /// clients of gRPC take it, unless the port is the one of https, which it also is where none is
    /// named.
    pub fn address(&self) -> Cow<'_, str> {
        if self.protocol_binding != GRPC || self.url.contains("://") {
            return Cow::Borrowed(self.url.as_str());
        }
        let host = self.url.split('/').next().unwrap_or_default();
        // An address of version 6 has colons of its own and stands in brackets.
        let named = host.rsplit_once(':').filter(|(_, port)| !port.ends_with(']'));
        let scheme = match named {
            None | Some((_, "443")) => "https",
            Some(_) => "http",
        };
        Cow::Owned(format!("{scheme}://{}", self.url))
    }
}

/// Whose an agent is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentProvider {
    #[serde(deserialize_with = "or_default")]
    pub url: String,
    #[serde(deserialize_with = "or_default")]
    pub organization: String,
}

/// What an agent can do beside answering.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentCapabilities {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streaming: Option<bool>,
    /// Whether it calls webhooks.
    #[serde(alias = "push_notifications", skip_serializing_if = "Option::is_none")]
    pub push_notifications: Option<bool>,
    /// The extensions that it knows.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub extensions: Vec<AgentExtension>,
    /// Whether callers with credentials get another card.
    #[serde(alias = "extended_agent_card", skip_serializing_if = "Option::is_none")]
    pub extended_agent_card: Option<bool>,
}

/// An extension of A2A that an agent knows.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentExtension {
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub uri: String,
    /// How the agent uses it.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub description: String,
    /// Whether clients must know it as well.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub required: bool,
    /// More of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub params: Option<Struct>,
}

/// Something that an agent knows how to do.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentSkill {
    #[serde(deserialize_with = "or_default")]
    pub id: String,
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    #[serde(deserialize_with = "or_default")]
    pub description: String,
    /// Words to find it by.
    #[serde(deserialize_with = "or_default")]
    pub tags: Vec<String>,
    /// What one may say to it.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub examples: Vec<String>,
    /// The media types that it takes, where they are others than the agent's.
    #[serde(alias = "input_modes", deserialize_with = "or_default")]
    #[serde(skip_serializing_if = "is_default")]
    pub input_modes: Vec<String>,
    /// The media types that it answers with, where they are others than the agent's.
    #[serde(alias = "output_modes", deserialize_with = "or_default")]
    #[serde(skip_serializing_if = "is_default")]
    pub output_modes: Vec<String>,
    /// Which schemes it wants, where they are others than the agent's.
    #[serde(alias = "security_requirements", deserialize_with = "or_default")]
    #[serde(skip_serializing_if = "is_default")]
    pub security_requirements: Vec<SecurityRequirement>,
}

/// A signature of a card (RFC 7515).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentCardSignature {
    /// The protected header, in base64url.
    #[serde(deserialize_with = "or_default")]
    pub protected: String,
    /// The signature, in base64url.
    #[serde(deserialize_with = "or_default")]
    pub signature: String,
    /// A header that is not protected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<Struct>,
}

/// Texts in a list, as the proto wraps them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StringList {
    /// The texts.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub list: Vec<String>,
}

/// Schemes that are wanted together, with their scopes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SecurityRequirement {
    /// The scopes by scheme.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub schemes: BTreeMap<String, StringList>,
}

/// How an agent is shown who calls: one of these. Cards of several versions hold others beside it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SecurityScheme {
    #[serde(alias = "api_key_security_scheme", skip_serializing_if = "Option::is_none")]
    pub api_key_security_scheme: Option<ApiKeySecurityScheme>,
    #[serde(alias = "http_auth_security_scheme", skip_serializing_if = "Option::is_none")]
    pub http_auth_security_scheme: Option<HttpAuthSecurityScheme>,
    /// OAuth 2.
    #[serde(alias = "oauth2_security_scheme", skip_serializing_if = "Option::is_none")]
    pub oauth2_security_scheme: Option<Oauth2SecurityScheme>,
    #[serde(alias = "open_id_connect_security_scheme", skip_serializing_if = "Option::is_none")]
    pub open_id_connect_security_scheme: Option<OpenIdConnectSecurityScheme>,
    /// A certificate.
    #[serde(alias = "mtls_security_scheme", skip_serializing_if = "Option::is_none")]
    pub mtls_security_scheme: Option<MutualTlsSecurityScheme>,
}

/// A key in a header, the query or a cookie.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ApiKeySecurityScheme {
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub description: String,
    /// Where it goes: `header`, `query` or `cookie`.
    #[serde(deserialize_with = "or_default")]
    pub location: String,
    /// The name of the header, field or cookie.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
}

/// A scheme of HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpAuthSecurityScheme {
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub description: String,
    /// Which scheme: `Bearer`.
    #[serde(deserialize_with = "or_default")]
    pub scheme: String,
    /// How its tokens look.
    #[serde(alias = "bearer_format", deserialize_with = "or_default")]
    #[serde(skip_serializing_if = "is_default")]
    pub bearer_format: String,
}

/// OAuth 2.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Oauth2SecurityScheme {
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub description: String,
    /// How tokens are had.
    #[serde(deserialize_with = "or_default")]
    pub flows: OauthFlows,
    /// Where the authorization server describes itself.
    #[serde(alias = "oauth2_metadata_url", deserialize_with = "or_default")]
    #[serde(skip_serializing_if = "is_default")]
    pub oauth2_metadata_url: String,
}

/// OpenID Connect.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OpenIdConnectSecurityScheme {
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub description: String,
    /// Where the provider describes itself.
    #[serde(alias = "open_id_connect_url", deserialize_with = "or_default")]
    pub open_id_connect_url: String,
}

/// A certificate of the client.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MutualTlsSecurityScheme {
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub description: String,
}

/// How tokens are had: one of these.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OauthFlows {
    /// A person logs in.
    #[serde(alias = "authorization_code", skip_serializing_if = "Option::is_none")]
    pub authorization_code: Option<RequiredFlow>,
    /// The client itself logs in.
    #[serde(alias = "client_credentials", skip_serializing_if = "Option::is_none")]
    pub client_credentials: Option<RequiredFlow>,
    /// Deprecated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub implicit: Option<OptionalFlow>,
    /// Deprecated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<OptionalFlow>,
    /// A person logs in on another device.
    #[serde(alias = "device_code", skip_serializing_if = "Option::is_none")]
    pub device_code: Option<RequiredFlow>,
}

/// A flow whose addresses and scopes are required, as far as it has them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RequiredFlow {
    /// Where a person logs in; only where a code is exchanged.
    #[serde(alias = "authorization_url", skip_serializing_if = "Option::is_none")]
    pub authorization_url: Option<String>,
    /// Where a device asks for its code; only for devices.
    #[serde(alias = "device_authorization_url", skip_serializing_if = "Option::is_none")]
    pub device_authorization_url: Option<String>,
    /// Where tokens are given.
    #[serde(alias = "token_url", deserialize_with = "or_default")]
    pub token_url: String,
    /// Where they are renewed.
    #[serde(alias = "refresh_url", deserialize_with = "or_default")]
    #[serde(skip_serializing_if = "is_default")]
    pub refresh_url: String,
    /// The scopes, with what they are for.
    #[serde(deserialize_with = "or_default")]
    pub scopes: BTreeMap<String, String>,
    #[serde(alias = "pkce_required", deserialize_with = "or_default")]
    #[serde(skip_serializing_if = "is_default")]
    pub pkce_required: bool,
}

/// A deprecated flow, in which nothing is required.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OptionalFlow {
    #[serde(flatten, deserialize_with = "members")]
    pub members: Struct,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_grpc_may_be_a_host_and_a_port() {
        for (binding, url, address) in [
            (GRPC, "a.test:50051", "http://a.test:50051"),
            (GRPC, "[::1]:50051", "http://[::1]:50051"),
            (GRPC, "a.test:443", "https://a.test:443"),
            (GRPC, "a.test:443/", "https://a.test:443/"),
            (GRPC, "a.test", "https://a.test"),
            (GRPC, "[::1]", "https://[::1]"),
            (GRPC, "http://a.test:50051", "http://a.test:50051"),
            (GRPC, "https://a.test", "https://a.test"),
            ("JSONRPC", "a.test:80", "a.test:80"),
        ] {
            let url = url.to_owned();
            let protocol_binding = binding.to_owned();
            let interface = AgentInterface { url, protocol_binding, ..AgentInterface::default() };
            assert_eq!(interface.address(), address);
        }
    }
}
