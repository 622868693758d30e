//! What is kept of logins in the vault, each under a key of its own:
//!
//! | key | what |
//! |---|---|
//! | `token-<upstream>` | the token in use, with whom it is from and for |
//! | `client-<upstream>` | the client that we registered last, with where |
//! | `issuer-<upstream>` | where the configured client was first shown |
//! | `login-<state>` | a login under way |
//! | `logins-<upstream>` | which those are |
//!
//! States stand there as hashes. What a record is good for stands in the record itself, so that
//! nothing is ever shown to someone else.

use super::client::Client;
use super::issuer::Issuer;
use super::scopes::Scopes;
use super::secret_text::{exposed, exposed_maybe};
use super::web::Ground;
use crate::config::Secret;
use kernel::contracts::{Vault, VaultCondition, VaultError};
use kernel::values::fault::Fault;
use kernel::values::ids::{ContentHash, Millis};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A token is renewed so long before its end, or a quarter of its time if that is shorter.
const AHEAD_MS: i64 = 60_000;

/// Response of a token endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TokenGrant {
    /// The token.
    pub(super) access: Secret,
    /// Refresh token.
    pub(super) refresh: Option<Secret>,
    /// How long it is good.
    pub(super) lasts_ms: Option<u64>,
}

/// A token, with all that is needed to use and renew it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Token {
    /// The server that it is shown to.
    pub(super) server: String,
    pub(super) issuer: String,
    pub(super) resource: String,
    /// Token endpoint.
    pub(super) endpoint: String,
    /// Revocation endpoint.
    pub(super) revocation: Option<String>,
    /// To whom it was given.
    pub(super) client: Client,
    /// Where all of them are.
    pub(super) ground: Ground,
    pub(super) asked: Scopes,
    #[serde(with = "exposed")]
    pub(super) access: Secret,
    /// Refresh token.
    #[serde(with = "exposed_maybe")]
    pub(super) refresh: Option<Secret>,
    /// Since when we have it.
    pub(super) given_at: Millis,
    /// Until when it is good, as far as is known.
    pub(super) expires_at: Option<Millis>,
}

impl Token {
    /// The same with what was given for it.
    pub(super) fn renewed(&self, given: TokenGrant, now: Millis) -> Self {
        Self {
            access: given.access,
            // Who gives no other wants the same again.
            refresh: given.refresh.or_else(|| self.refresh.clone()),
            given_at: now,
            expires_at: given.lasts_ms.map(|ms| now.plus_ms(ms)),
            ..self.clone()
        }
    }

    pub(super) fn is_over(&self, now: Millis) -> bool {
        self.expires_at.is_some_and(|end| now >= end)
    }

    /// Whether it is over, or soon will be.
    pub(super) fn is_due(&self, now: Millis) -> bool {
        self.expires_at.is_some_and(|end| {
            let ahead_ms = (end.0.saturating_sub(self.given_at.0) / 4).clamp(0, AHEAD_MS);
            now.0 >= end.0.saturating_sub(ahead_ms)
        })
    }
}

/// A login under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Pending {
    pub(crate) upstream: String,
    /// The server that the token will be shown to.
    pub(super) server: String,
    pub(super) issuer: Issuer,
    /// Resource of the token.
    pub(super) resource: String,
    pub(super) client: Client,
    /// Where the login comes back to.
    pub(super) callback: String,
    /// PKCE verifier.
    #[serde(with = "exposed")]
    pub(super) verifier: Secret,
    pub(super) asked: Scopes,
    /// Where all of them are.
    pub(super) ground: Ground,
    /// Until when someone may come back.
    pub(super) expires_at: Millis,
}

/// Where the configured client was first shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PinnedClient {
    pub(super) client_id: String,
    pub(super) issuer: String,
}

/// The keys of the logins of one upstream that are under way, oldest first, and until when.
pub(super) type Logins = Vec<(String, Millis)>;

/// The token of an upstream.
pub(super) fn token_key(upstream: &str) -> String {
    format!("token-{upstream}")
}

/// The client that was registered for an upstream. There is one, whichever issuer it is of: a
/// server that names another each time must not fill the vault.
pub(super) fn client_key(upstream: &str) -> String {
    format!("client-{upstream}")
}

/// Where the configured client of an upstream was first shown.
pub(super) fn issuer_key(upstream: &str) -> String {
    format!("issuer-{upstream}")
}

pub(super) fn login_key(state: &str) -> String {
    format!("login-{}", ContentHash::of(state.as_bytes()))
}

/// Which logins of an upstream are under way.
pub(super) fn logins_key(upstream: &str) -> String {
    format!("logins-{upstream}")
}

pub(super) struct VaultRecord<T> {
    /// The record; none where nothing is kept, or nothing that is understood.
    pub(super) record: Option<T>,
    /// The version of what is kept; none where nothing is.
    pub(super) version: Option<u64>,
}

/// The record of this key; `None` if it is unreadable, which is logged.
pub(super) async fn read<T: DeserializeOwned>(vault: &dyn Vault, key: &str) -> Option<T> {
    match look(vault, key).await {
        Ok(seen) => seen.record,
        Err(error) => {
            tracing::warn!(key, %error, "what was kept of a login cannot be read");
            None
        }
    }
}

/// The same for whom it matters which version that is, or that the vault does not answer.
pub(super) async fn look<T: DeserializeOwned>(
    vault: &dyn Vault,
    key: &str,
) -> Result<VaultRecord<T>, VaultError> {
    let Some(kept) = vault.read(key).await? else {
        return Ok(VaultRecord { record: None, version: None });
    };
    let read = serde_json::from_str(kept.value.expose());
    // The error could tell a part of what is kept.
    let read =
        read.inspect_err(|_| tracing::warn!(key, "what was kept of a login is not understood"));
    Ok(VaultRecord { record: read.ok(), version: Some(kept.version) })
}

/// Keeps this, if what is kept is as expected, and gives its version. It is safe on return.
pub(super) async fn write<T: Serialize>(
    vault: &dyn Vault,
    key: &str,
    record: &T,
    expected: VaultCondition,
) -> Result<u64, VaultError> {
    let text = serde_json::to_string(record);
    let text = text.map_err(|_| Fault::new("LoginNotKept", "a login cannot be written down"))?;
    vault.write(key, &Secret::new(text), expected).await
}

/// Lets go of what is kept under this key; with a line in the log where that fails.
pub(super) async fn forget(vault: &dyn Vault, key: &str) {
    if let Err(error) = vault.remove(key).await {
        tracing::warn!(key, %error, "what was kept of a login cannot be removed");
    }
}

#[cfg(test)]
mod tests {
    use super::super::client::Method;
    use super::super::vault::MemoryVault;
    use super::*;
    use crate::stage::Stage;
    use std::sync::Arc;

    fn token(expires_at: Option<i64>) -> Token {
        Token {
            server: "https://a.test/mcp".to_owned(),
            issuer: "https://as.test".to_owned(),
            resource: "https://a.test".to_owned(),
            endpoint: "https://as.test/token".to_owned(),
            revocation: None,
            client: Client { id: "me".to_owned(), secret: None, method: Method::None },
            ground: Ground::Public,
            asked: Scopes::read("a"),
            access: "hush".into(),
            refresh: Some("hush hush".into()),
            given_at: Millis(0),
            expires_at: expires_at.map(Millis),
        }
    }

    #[tokio::test]
    async fn stored_logins_round_trip_and_are_never_shown() {
        let vault = MemoryVault::new(Arc::new(Stage::new()));
        let token = token(Some(5));
        write(&vault, "k", &token, VaultCondition::Absent).await.unwrap();
        assert_eq!(read::<Token>(&vault, "k").await, Some(token.clone()));
        assert!(!format!("{token:?}").contains("hush"));
        let seen = look::<PinnedClient>(&vault, "k").await.unwrap();
        assert_eq!(seen.record, None, "another kind of record");
        assert!(seen.version.is_some(), "but something is kept");
        forget(&vault, "k").await;
        assert_eq!(read::<Token>(&vault, "k").await, None);
    }

    #[test]
    fn a_token_is_renewed_before_its_end() {
        let due = |end: i64, now: i64| token(Some(end)).is_due(Millis(now));
        assert!(!due(3_600_000, 3_539_999) && due(3_600_000, 3_540_000));
        assert!(!due(1_000, 749) && due(1_000, 750));
        assert!(!token(None).is_due(Millis(i64::MAX)) && !token(None).is_over(Millis(i64::MAX)));
        assert!(token(Some(5)).is_over(Millis(5)) && !token(Some(5)).is_over(Millis(4)));
    }

    #[test]
    fn a_refresh_token_is_kept_unless_rotated() {
        let given = |refresh: Option<&str>| TokenGrant {
            access: "new".into(),
            refresh: refresh.map(Secret::from),
            lasts_ms: None,
        };
        let same = token(Some(5)).renewed(given(None), Millis(9));
        assert_eq!(same.refresh, Some("hush hush".into()));
        assert_eq!((same.access, same.expires_at), ("new".into(), None));
        let other = token(None).renewed(given(Some("r2")), Millis(9));
        assert_eq!(other.refresh, Some("r2".into()));
    }

    #[test]
    fn vault_keys_are_plain_and_reveal_nothing() {
        for key in [client_key("a-b_1"), login_key("s\u{fc}/.."), token_key("x")] {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
            assert!(key.chars().all(plain) && key.len() < 120, "{key}");
        }
    }
}
