//! Errors of OAuth, as clauses that follow the server's name.

pub(crate) type Result<T, E = OauthError> = std::result::Result<T, E>;

/// Why a request goes without a token, or with one that is not enough.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub(crate) struct OauthError {
    pub(crate) kind: OauthErrorKind,
    pub(crate) why: String,
    pub(crate) hint: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OauthErrorKind {
    /// Someone must log in on a page.
    Login,
    /// The same, for scopes beyond those of the current token.
    Scope,
    /// Permanent: the metadata or response is invalid, or not allowed.
    Refused,
    /// Transient: a server did not answer.
    Away,
}

impl OauthError {
    /// A permanent error.
    pub(crate) fn refused(why: impl Into<String>) -> Self {
        Self { kind: OauthErrorKind::Refused, why: why.into(), hint: None }
    }

    /// A transient error.
    pub(crate) fn away(why: impl Into<String>) -> Self {
        Self { kind: OauthErrorKind::Away, why: why.into(), hint: None }
    }

    /// The same with a hint.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}
