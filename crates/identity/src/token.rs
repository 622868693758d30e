//! Tokens exchanged for a key: `wpt_` and a sealed envelope. A token names its key and the key text
//! that was shown, so that it ends with either of them. It cannot be exchanged for another token.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kernel::identity::grants::Grants;
use kernel::identity::key::{KeyId, TOKEN_PREFIX};
use kernel::values::caller::{Scope, Scopes};
use kernel::values::ids::Millis;
use kernel::values::secret::Secret;
use outbound::seal::{Envelopes, Keyring};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How long a token is good: 15 minutes, unless its key ends before.
pub const TOKEN_MS: u64 = 15 * 60 * 1_000;

/// Purpose of the derived key: keys for other purposes differ.
const PURPOSE: &[u8] = b"waypost access token";

/// A token that was given.
#[derive(Debug, Clone)]
pub struct Token {
    pub text: Secret,
    /// The most that it allows; none is no ceiling.
    pub scopes: Option<Scopes>,
    /// For how many seconds it is good.
    pub expires_in_s: u64,
    pub subject: Arc<str>,
    /// The realms that it may enter.
    pub realms: Arc<Grants>,
}

/// Why no token is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenRefusal {
    /// The client is no key, or its secret is wrong; why, for logs alone.
    #[error("the client or its secret is not valid")]
    InvalidClient(&'static str),
    /// A scope that no one knows, or that the key does not have.
    #[error("the scope is unknown, or the key does not have it")]
    InvalidScope,
    /// It could not be sealed.
    #[error("the token could not be made")]
    Failed,
}

/// Content of a token.
#[derive(Serialize, Deserialize)]
pub(crate) struct Claims {
    /// The key that it was given for.
    pub(crate) key: KeyId,
    /// The hash of the key's text that was shown.
    pub(crate) sha256: String,
    pub(crate) scopes: Option<Scopes>,
    pub(crate) expires: Millis,
}

/// Seals tokens and opens them.
pub(crate) struct Tokens {
    envelopes: Envelopes,
}

impl Tokens {
    /// With the server's secrets. Tokens that another one sealed are gone.
    pub(crate) fn new(keys: Keyring) -> Self {
        Self { envelopes: Envelopes::new(keys, PURPOSE) }
    }

    /// The text of a token. The salt is random and never used again.
    pub(crate) fn seal(&self, claims: &Claims, salt: u128) -> Option<Secret> {
        let plain = serde_json::to_vec(claims).ok()?;
        let envelope = self.envelopes.seal(&[], salt, &plain)?;
        Some(Secret::new(format!("{TOKEN_PREFIX}{}", URL_SAFE_NO_PAD.encode(envelope))))
    }

    /// Opens a token, if it is one of ours. `sealed` is the part after the prefix.
    pub(crate) fn open(&self, sealed: &str) -> Option<Claims> {
        let envelope = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let plain = self.envelopes.open(&[], &envelope).ok()?;
        serde_json::from_slice(&plain).ok()
    }
}

/// The scopes that a request asks for, separated by blanks; none is all that the key has.
pub(crate) fn asked(scope: Option<&str>) -> Result<Option<Scopes>, TokenRefusal> {
    let mut names = scope.unwrap_or_default().split_ascii_whitespace().peekable();
    if names.peek().is_none() {
        return Ok(None);
    }
    let scopes: Option<Scopes> = names.map(Scope::from_name).collect();
    scopes.map(Some).ok_or(TokenRefusal::InvalidScope)
}

/// The requested scopes, if all are within this ceiling.
pub(crate) fn narrowed(
    ceiling: Option<Scopes>,
    asked: Option<Scopes>,
) -> Result<Option<Scopes>, TokenRefusal> {
    match asked {
        Some(asked) if below(ceiling, asked) != asked => Err(TokenRefusal::InvalidScope),
        Some(asked) => Ok(Some(asked)),
        None => Ok(ceiling),
    }
}

pub(crate) fn below(ceiling: Option<Scopes>, scopes: Scopes) -> Scopes {
    scopes.iter().filter(|scope| ceiling.is_none_or(|ceiling| covers(ceiling, *scope))).collect()
}

/// Each scope covers reading, only `admin` covers the others.
fn covers(ceiling: Scopes, scope: Scope) -> bool {
    let reads = scope == Scope::Read && ceiling != Scopes::default();
    reads || ceiling.has(scope) || ceiling.has(Scope::Admin)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scopes(scopes: &[Scope]) -> Scopes {
        scopes.iter().copied().collect()
    }

    fn claims() -> Claims {
        Claims {
            key: KeyId("abcdefghij".into()),
            sha256: "00".repeat(32),
            scopes: Some(scopes(&[Scope::Read])),
            expires: Millis(7),
        }
    }

    #[test]
    fn a_token_opens_with_its_servers_secret_alone() {
        let tokens = Tokens::new(Keyring::new([7; 32]));
        let text = tokens.seal(&claims(), 1).unwrap();
        let sealed = text.expose().strip_prefix(TOKEN_PREFIX).unwrap().to_owned();
        let opened = tokens.open(&sealed).unwrap();
        assert_eq!(opened.key, claims().key);
        assert_eq!(opened.sha256, claims().sha256);
        assert_eq!((opened.scopes, opened.expires), (claims().scopes, claims().expires));
        assert!(Tokens::new(Keyring::new([8; 32])).open(&sealed).is_none());
        for index in 0..sealed.len() {
            let mut changed = sealed.clone().into_bytes();
            changed[index] = if changed[index] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert!(tokens.open(&changed).is_none(), "{changed}");
        }
        for other in ["", "abc", "%", &sealed[1..]] {
            assert!(tokens.open(other).is_none(), "{other}");
        }
        assert!(!format!("{text:?}").contains(&sealed));
    }

    #[test]
    fn an_envelope_of_another_purpose_is_no_token() {
        let other = Envelopes::new([7; 32], b"waypost vault");
        let plain = serde_json::to_vec(&claims()).unwrap();
        let sealed = URL_SAFE_NO_PAD.encode(other.seal(&[], 1, &plain).unwrap());
        assert!(Tokens::new(Keyring::new([7; 32])).open(&sealed).is_none());
    }

    #[test]
    fn scopes_narrow_and_never_widen() {
        use Scope::{Admin, Answer, Read, Use};
        let given = |ceiling: Option<&[Scope]>, scope: &str| {
            narrowed(ceiling.map(scopes), asked(Some(scope))?)
        };
        let refused = Err(TokenRefusal::InvalidScope);
        assert_eq!(given(None, "use answer"), Ok(Some(scopes(&[Use, Answer]))));
        assert_eq!(given(None, " "), Ok(None), "an empty one counts as absent");
        assert_eq!(given(Some(&[Use]), ""), Ok(Some(scopes(&[Use]))));
        assert_eq!(given(Some(&[Use]), "read"), Ok(Some(scopes(&[Read]))));
        assert_eq!(given(Some(&[Admin]), "use"), Ok(Some(scopes(&[Use]))));
        assert_eq!(given(Some(&[Use]), "use answer"), refused);
        assert_eq!(given(Some(&[Use]), "admin"), refused);
        assert_eq!(given(Some(&[]), "read"), refused);
        assert_eq!(given(None, "use everything"), refused);
        assert_eq!(below(Some(scopes(&[Use])), scopes(&[Use, Admin])), scopes(&[Use]));
    }
}
