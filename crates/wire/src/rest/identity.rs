//! Who calls, API keys, tokens that keys are exchanged for, and what OAuth clients read about this
//! server. Names are those of the OAuth standards where a standard has them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Who sends this request, as the server sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WhoAmI {
    /// The realm of the request.
    pub realm: String,
    /// The subject; `local` where the server asks for no credentials.
    pub subject: String,
    /// The subject that really called, where that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// The roles of the subject in this realm.
    pub roles: Vec<String>,
    /// The realms that the credential may enter, and its roles there; absent without a credential.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub realms: Option<BTreeMap<String, Vec<String>>>,
    /// The scopes that limit the credential; absent where nothing does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<String>>,
    /// The API key, where the credential is one or a token of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<OwnKey>,
    /// Whether the server asks for credentials.
    pub mode: AccessMode,
}

/// The API key of a caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OwnKey {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// When it expires; absent where it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub expires_at: Option<String>,
}

/// Whether a server asks for credentials: fixed when it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub enum AccessMode {
    /// It does not: only this machine reaches it.
    Local,
    /// It asks every caller.
    Credentials,
}

/// An API key to create. With neither `realms` nor `roles` it is a `member` of the realm of the
/// request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KeyBody {
    /// A name for people, of 1 to 200 characters.
    #[schemars(length(min = 1, max = 200))]
    pub name: String,
    /// The principal whose it is to be: requests with it are that one's, with its roles at that
    /// time. Not beside `roles`; `realms` then name realms alone, with empty lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// Its roles in each realm. `*` at the end of a name fits any characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub realms: Option<BTreeMap<String, Vec<String>>>,
    /// Its roles in the realm of the request; not beside `realms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roles: Option<Vec<String>>,
    /// The scopes that limit it: `read`, `use`, `answer`, `define`, `operate`, `admin`; no limit if
    /// absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<String>>,
    /// After how many days it expires, 90 if absent; null: never.
    // Null comes first, so that it is kept: of other members that may be left out it is removed.
    #[serde(default = "usual_days")]
    #[schemars(extend("type" = ["null", "integer"]), range(min = 1, max = 36_500))]
    pub expires_in_days: Option<u32>,
}

/// How an API key is rotated.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RotateBody {
    /// For how many milliseconds the text before stays valid, a day if absent; at most 30 days.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 2_592_000_000_u64))]
    pub overlap_ms: Option<u64>,
}

/// An API key, without its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiKey {
    /// Its id, which stays when it is rotated.
    pub id: String,
    /// A name for people.
    pub name: String,
    /// The subject of requests with it.
    pub subject: String,
    /// The principal whose it is; absent where it is its own subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// Its roles in each realm.
    pub realms: BTreeMap<String, Vec<String>>,
    /// The scopes that limit it; absent where nothing does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<String>>,
    /// Whether it is valid.
    pub status: KeyStatus,
    /// The subject that created it.
    pub by: String,
    /// When it was created.
    #[schemars(extend("format" = "date-time"))]
    pub created_at: String,
    /// When it expires; absent where it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub expires_at: Option<String>,
    /// When it was revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub revoked_at: Option<String>,
    /// When it was last used, to the minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub used_at: Option<String>,
    /// Until when the text before its last rotation is valid too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub overlap_until: Option<String>,
}

/// Whether an API key is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub enum KeyStatus {
    /// It is.
    Active,
    /// Its time is over.
    Expired,
    /// An administrator ended it.
    Revoked,
}

impl KeyStatus {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
        }
    }
}

/// An API key with its new text, which no other answer contains.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IssuedKey {
    /// The key.
    pub key: ApiKey,
    /// The text to send as `Authorization: Bearer` or `X-Api-Key`.
    pub text: String,
}

impl fmt::Debug for IssuedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IssuedKey").field("key", &self.key).finish_non_exhaustive()
    }
}

/// A form that asks for an access token. The client's id and secret are here or in
/// `Authorization: Basic`, not in both.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenForm {
    /// `client_credentials`.
    #[schemars(extend("enum" = ["client_credentials"]))]
    pub grant_type: String,
    /// The id of an API key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// The whole text of that API key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
    /// The scopes that limit the token, separated by blanks; those of the key if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
}

impl fmt::Debug for TokenForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { grant_type, client_id, scope, .. } = self;
        f.debug_struct("TokenForm")
            .field("grant_type", grant_type)
            .field("client_id", client_id)
            .field("scope", scope)
            .finish_non_exhaustive()
    }
}

/// An access token (RFC 6749, section 5.1).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenAnswer {
    /// The token.
    pub access_token: String,
    /// `Bearer`.
    pub token_type: String,
    /// For how many seconds it is valid.
    pub expires_in: u64,
    /// The scopes that limit it, separated by blanks.
    pub scope: String,
}

impl fmt::Debug for TokenAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { expires_in, scope, .. } = self;
        f.debug_struct("TokenAnswer")
            .field("expires_in", expires_in)
            .field("scope", scope)
            .finish_non_exhaustive()
    }
}

/// Why there is no access token (RFC 6749, section 5.2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenError {
    /// The word of the standard.
    #[schemars(extend("enum" = [
        "invalid_request", "invalid_client", "invalid_scope", "unsupported_grant_type"
    ]))]
    pub error: String,
    /// The same in words.
    pub error_description: String,
}

/// What OAuth clients read about `/mcp` (RFC 9728).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceMetadata {
    /// The address of `/mcp`.
    pub resource: String,
    /// The authorization servers whose tokens it takes.
    pub authorization_servers: Vec<String>,
    /// The scopes that it asks for.
    pub scopes_supported: Vec<String>,
    /// Where a token is sent.
    pub bearer_methods_supported: Vec<String>,
}

/// What OAuth clients read about `/oauth/token` (RFC 8414).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuthorizationServerMetadata {
    /// The address of this server.
    pub issuer: String,
    /// The address of `/oauth/token`.
    pub token_endpoint: String,
    /// The ways to get a token.
    pub grant_types_supported: Vec<String>,
    /// The ways to send the client's id and secret.
    pub token_endpoint_auth_methods_supported: Vec<String>,
    /// The scopes that can be asked for.
    pub scopes_supported: Vec<String>,
    /// None: there is no page where a user logs in.
    pub response_types_supported: Vec<String>,
}

fn usual_days() -> Option<u32> {
    Some(90)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_key_expires_unless_never_is_said() {
        let days = |body| serde_json::from_value::<KeyBody>(body).unwrap().expires_in_days;
        assert_eq!(days(json!({"name": "ci"})), Some(90));
        assert_eq!(days(json!({"name": "ci", "expiresInDays": 7})), Some(7));
        assert_eq!(days(json!({"name": "ci", "expiresInDays": null})), None);
    }

    #[test]
    fn debug_output_hides_keys_and_tokens() {
        let form = TokenForm { client_secret: Some("hush".to_owned()), ..TokenForm::default() };
        let token = TokenAnswer {
            access_token: "hush".to_owned(),
            token_type: "Bearer".to_owned(),
            expires_in: 900,
            scope: "use".to_owned(),
        };
        for shown in [format!("{form:?}"), format!("{token:?}")] {
            assert!(!shown.contains("hush"), "{shown}");
        }
    }
}
