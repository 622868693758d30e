//! OAuth 2.1 logins at upstream servers: how requests are authorised once someone has logged in,
//! and where tokens are stored. Each server has one account, whose tokens are ours and not our
//! callers', or one per person who logs in for themselves.

mod vault;
mod error;
mod scopes;
mod urls;
mod challenge;
mod web;
mod issuer;
mod discovery;
mod pkce;
mod secret_text;
mod client;
mod stored;
mod token;
mod account;
mod renew;
mod proof;
mod login;
mod retry;
#[cfg(test)]
mod tests;

use std::fmt;

pub(crate) use account::{Account, Pass, RetryDecision};
pub(crate) use challenge::Challenge;
pub(crate) use error::{OauthError, OauthErrorKind};
pub(crate) use login::{pending, unknown_login};
pub(crate) use proof::LoginOutcome;
pub(crate) use stored::Pending;
pub(crate) use vault::ScopedVault;
pub use vault::{LeaseRegistry, MemoryVault};

/// Where a login comes back to, and where servers may read who we are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginPlaces {
    /// The redirect URI that logins come back to.
    pub callback: String,
    /// The URL of our client metadata document, where one can be read from outside: `https` only.
    pub client_metadata: Option<String>,
    /// Whether a call that meets a server which wants a login shows its caller the page. The person
    /// who opens it decides as whom all callers use the server, so that is for who may administer.
    pub shown_to_callers: bool,
}

/// Query parameters of a login callback.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct LoginCallback {
    /// Which login it is.
    pub state: String,
    /// The code that a token is given for.
    pub code: Option<String>,
    /// The issuer (RFC 9207).
    pub iss: Option<String>,
    /// Why there is no code.
    pub error: Option<String>,
    /// The same in words.
    pub error_description: Option<String>,
}

impl fmt::Debug for LoginCallback {
    /// State and code are as good as a token, for as long as no one has used them.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { state: _, code, iss, error, error_description } = self;
        to.debug_struct("LoginCallback")
            .field("code", &code.as_ref().map(|_| "***"))
            .field("iss", iss)
            .field("error", error)
            .field("error_description", error_description)
            .finish_non_exhaustive()
    }
}
