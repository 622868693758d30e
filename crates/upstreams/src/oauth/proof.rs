//! Who finished a login. Anyone may follow a link, and with it would lend their account to its
//! sender: the token of a login that a user began for themselves counts only once they send the
//! code that the page shows at its end, with their own credential.

use super::account::{Account, stopping};
use super::stored::{self, Token};
use kernel::contracts::VaultCondition;
use kernel::values::fault::Fault;
use kernel::values::ids::{ContentHash, Millis};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The key of a token that waits for its proof: there is one at a time.
const KEY: &str = "unproven";
/// How long the code may take.
const PROOF_MS: u64 = 600_000;
/// Digits and letters that nobody mistakes for one another: 32 of them.
const LETTERS: &[u8] = b"23456789ABCDEFGHJKLMNPQRSTUVWXYZ";
/// How many letters a code has: 60 bits.
const CODE_CHARS: usize = 12;

/// The outcome of a login that a user came back from.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LoginOutcome {
    /// Its token is in use.
    LoggedIn,
    /// Its token is in use once this code is sent.
    Unproven(String),
}

/// A token that waits for its proof.
#[derive(Serialize, Deserialize)]
struct UnprovenToken {
    /// The hash of the code.
    code: String,
    token: Token,
    expires_at: Millis,
}

impl Account {
    /// Uses the token of a login, or keeps it until the caller that began the login proves it.
    pub(super) async fn settle(&self, token: Token) -> Result<LoginOutcome, Fault> {
        if !self.parts.scope.person.is_some_and(|person| person.proves) {
            self.keep(token).await;
            return Ok(LoginOutcome::LoggedIn);
        }
        let code = self.code();
        let expires_at = self.parts.clock.now().plus_ms(PROOF_MS);
        let unproven = UnprovenToken { code: hash(&code), token, expires_at };
        stored::write(&*self.parts.vault, KEY, &unproven, VaultCondition::Any).await?;
        Ok(LoginOutcome::Unproven(code))
    }

    /// The caller that began the login sends the code: its token is used from now on.
    pub(crate) async fn prove(self: &Arc<Self>, code: &str) -> Result<(), Fault> {
        let code = hash(&plain(code));
        let proving = self.apart(|account| async move { account.prove_now(&code).await });
        proving.await.unwrap_or_else(|| Err(Fault::new("LoginFailed", stopping().why)))
    }

    async fn prove_now(&self, code: &str) -> Result<(), Fault> {
        let _turn = self.turn.lock().await;
        let vault = &*self.parts.vault;
        let unproven: Option<UnprovenToken> = stored::read(vault, KEY).await;
        let now = self.parts.clock.now();
        // Hashes are compared: how long that takes says nothing of the code.
        let is_good = |unproven: &UnprovenToken| unproven.code == code && now < unproven.expires_at;
        let Some(UnprovenToken { token, .. }) = unproven.filter(is_good) else {
            let why =
                format!("upstream `{}`: no login that you began waits for this code", self.name);
            return Err(Fault::new("LoginCodeUnknown", why).hint(
                "only who began a login finishes it, within ten minutes; begin another yourself",
            ));
        };
        // Before it is used: a code is good once.
        vault.remove(KEY).await?;
        self.keep(token).await;
        self.turn_page(None);
        Ok(())
    }

    /// Forgets a token that waits for its proof.
    pub(super) async fn forget_unproven(&self) {
        stored::forget(&*self.parts.vault, KEY).await;
    }

    fn code(&self) -> String {
        let mut bits = self.parts.entropy.bits();
        let letter = |_: usize| {
            let letter = LETTERS[(bits % 32) as usize];
            bits /= 32;
            char::from(letter)
        };
        let letters: String = (0..CODE_CHARS).map(letter).collect();
        format!("{}-{}-{}", &letters[..4], &letters[4..8], &letters[8..])
    }
}

/// A code as a person may type it, without what only helps to read it.
fn plain(code: &str) -> String {
    code.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_uppercase()
}

fn hash(code: &str) -> String {
    ContentHash::of(plain(code).as_bytes()).as_str().to_owned()
}
