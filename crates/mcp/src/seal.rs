//! State that a client carries for us: it can neither be read nor changed nor used by anybody else,
//! for anything else, or for longer than it is meant to be. Whatever comes back is an attacker's
//! until it opens.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kernel::contracts::Entropy;
use kernel::tool::call::Caller;
use kernel::values::ids::Millis;
use outbound::seal::{Envelopes, Keyring, Unopened};
use serde_json::Value;
use std::fmt;
use wire::jsonrpc::RpcError;

/// The end of a state, at the beginning of what is sealed.
const EXPIRY_BYTES: usize = 8;
/// What the secret is used for here: keys for other purposes differ.
const PURPOSE: &[u8] = b"waypost mcp requestState";

/// Seals and opens states.
#[derive(Clone)]
pub(crate) struct Seal {
    envelopes: Envelopes,
}

/// Whose a state is and what for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SealScope {
    realm: String,
    subject: String,
    actor: Option<String>,
    what: String,
}

impl SealScope {
    /// Bound to a caller and to `what`: method, name and a digest of the arguments.
    pub(crate) fn new(caller: &Caller, what: impl Into<String>) -> Self {
        Self {
            realm: caller.realm.to_string(),
            subject: caller.subject.to_string(),
            actor: caller.actor.as_deref().map(str::to_owned),
            what: what.into(),
        }
    }

    /// All parts, each with its length, so that no two lists of parts run together. An actor is a
    /// part only where there is one.
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for part in [&self.realm, &self.subject, &self.what].into_iter().chain(&self.actor) {
            bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
            bytes.extend_from_slice(part.as_bytes());
        }
        bytes
    }
}

impl Seal {
    /// With these secrets.
    pub(crate) fn new(keys: impl Into<Keyring>) -> Self {
        Self { envelopes: Envelopes::new(keys, PURPOSE) }
    }

    /// The state as a text for the client.
    pub(crate) fn seal(
        &self,
        bound: &SealScope,
        state: &Value,
        expires_at: Millis,
        entropy: &dyn Entropy,
    ) -> String {
        let mut plain = expires_at.0.to_be_bytes().to_vec();
        plain.extend_from_slice(state.to_string().as_bytes());
        match self.envelopes.seal(&bound.bytes(), entropy.bits(), &plain) {
            Some(sealed) => URL_SAFE_NO_PAD.encode(sealed),
            // It cannot fail; if it did, an empty state opens nowhere.
            None => {
                tracing::error!("a state could not be sealed");
                String::new()
            }
        }
    }

    /// The state that a client sent back, if it is one of ours, of this caller and request, and not
    /// too old.
    pub(crate) fn open(
        &self,
        text: &str,
        bound: &SealScope,
        now: Millis,
    ) -> Result<Value, RpcError> {
        let (expires_at, state) = self.opened(text, bound).map_err(|why| {
            RpcError::invalid_params(match why {
                Unopened::UnknownKey(_) => {
                    "`requestState` was sealed with a secret key that this server does not have \
                     any more; send the request again without it"
                }
                Unopened::Changed => {
                    "`requestState` was changed, or belongs to another caller or another request; \
                     send it exactly as it came, with the same method, name and arguments"
                }
            })
        })?;
        if now >= expires_at {
            return Err(RpcError::invalid_params(
                "`requestState` has expired; send the request again without it",
            ));
        }
        Ok(state)
    }

    fn opened(&self, text: &str, bound: &SealScope) -> Result<(Millis, Value), Unopened> {
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| Unopened::Changed)?;
        let plain = self.envelopes.open(&bound.bytes(), &bytes)?;
        let (expiry, state) = plain.split_first_chunk::<EXPIRY_BYTES>().ok_or(Unopened::Changed)?;
        let state = serde_json::from_slice(state).map_err(|_| Unopened::Changed)?;
        Ok((Millis(i64::from_be_bytes(*expiry)), state))
    }
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal(secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::system::clock::SystemEntropy;
    use serde_json::json;

    fn bound(realm: &str, subject: &str, what: &str) -> SealScope {
        let caller = Caller::new(realm, subject);
        SealScope::new(&caller, what)
    }

    fn sealed(seal: &Seal) -> (String, SealScope, Value) {
        let bound = bound("default", "ann", "tools/call greet 0f");
        let state = json!({"run": "run_1", "asks": [1, 2, {"a": "\u{e9}"}]});
        let text = seal.seal(&bound, &state, Millis(100), &SystemEntropy);
        (text, bound, state)
    }

    #[test]
    fn a_sealed_state_opens_until_it_expires() {
        let seal = Seal::new([7; 32]);
        let (text, bound, state) = sealed(&seal);
        assert_eq!(seal.open(&text, &bound, Millis(99)), Ok(state));
        for late in [100, 101, i64::MAX] {
            let error = seal.open(&text, &bound, Millis(late)).unwrap_err();
            assert_eq!(error.code, wire::jsonrpc::INVALID_PARAMS);
            assert!(error.message.contains("has expired"), "{}", error.message);
        }
    }

    #[test]
    fn a_state_sealed_with_an_older_secret_still_opens() {
        let (now, bound, _) = sealed(&Seal::new([7; 32]));
        let replaced = Seal::new(Keyring::new([9; 32]).with_older([7; 32]));
        assert!(replaced.open(&now, &bound, Millis(0)).is_ok());
        let (anew, ..) = sealed(&replaced);
        let alone = Seal::new([9; 32]);
        assert!(alone.open(&anew, &bound, Millis(0)).is_ok(), "the new secret seals");
        let gone = alone.open(&now, &bound, Millis(0)).unwrap_err();
        assert!(gone.message.contains("does not have any more"), "{}", gone.message);
    }

    #[test]
    fn no_byte_of_a_sealed_state_can_be_changed() {
        let seal = Seal::new([7; 32]);
        let (text, bound, _) = sealed(&seal);
        for index in 0..text.len() {
            for other in [b'A', b'B', b'_', b'=', b'!'] {
                let mut changed = text.clone().into_bytes();
                if changed[index] == other {
                    continue;
                }
                changed[index] = other;
                let changed = String::from_utf8(changed).unwrap();
                assert!(seal.open(&changed, &bound, Millis(0)).is_err(), "{index}");
            }
            assert!(seal.open(&text[..index], &bound, Millis(0)).is_err(), "cut at {index}");
        }
        for wrong in [format!("{text}-TAMPERED"), format!("{text}A"), format!("A{text}")] {
            let error = seal.open(&wrong, &bound, Millis(0)).unwrap_err();
            assert!(error.message.contains("was changed"), "{}", error.message);
        }
    }

    #[test]
    fn a_sealed_state_is_good_for_one_caller_and_one_request() {
        let seal = Seal::new([7; 32]);
        let (text, _, _) = sealed(&seal);
        for (realm, subject, what) in [
            ("other", "ann", "tools/call greet 0f"),
            ("default", "bob", "tools/call greet 0f"),
            ("default", "ann", "tools/call greet 10"),
            ("default", "ann", "prompts/get greet 0f"),
            ("defaulta", "nn", "tools/call greet 0f"),
        ] {
            let other = bound(realm, subject, what);
            assert!(seal.open(&text, &other, Millis(0)).is_err(), "{other:?}");
        }
        let through = Caller { actor: Some("bot".into()), ..Caller::new("default", "ann") };
        let through = SealScope::new(&through, "tools/call greet 0f");
        assert!(seal.open(&text, &through, Millis(0)).is_err(), "sent by somebody for ann");
        let another = Seal::new([8; 32]);
        assert!(another.open(&text, &sealed(&seal).1, Millis(0)).is_err());
    }

    #[test]
    fn a_sealed_state_tells_nothing_and_differs_each_time() {
        let seal = Seal::new([7; 32]);
        let (one, ..) = sealed(&seal);
        let (two, ..) = sealed(&seal);
        assert_ne!(one, two);
        let bytes = URL_SAFE_NO_PAD.decode(&one).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains("run_1"));
        assert_eq!(format!("{seal:?}"), "Seal(secret)");
    }
}
