//! Why no token can be had, in clauses that follow the server's name.

/// What was asked for, or why it cannot be had.
pub(crate) type Result<T, E = Trouble> = std::result::Result<T, E>;

/// Why a request goes without a token, or with one that is not enough.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub(crate) struct Trouble {
    /// What can be done about it.
    pub(crate) kind: TroubleKind,
    pub(crate) why: String,
    pub(crate) hint: Option<String>,
}

/// What can be done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TroubleKind {
    /// Someone must log in, and the page for it is there.
    Login,
    /// The same, for more than the token that we have allows.
    Scope,
    /// Nothing here: what was found is wrong, or not allowed.
    Refused,
    /// It may go well later: someone did not answer.
    Away,
}

impl Trouble {
    /// Nothing can be done here.
    pub(crate) fn refused(why: impl Into<String>) -> Self {
        Self { kind: TroubleKind::Refused, why: why.into(), hint: None }
    }

    /// It may go well later.
    pub(crate) fn away(why: impl Into<String>) -> Self {
        Self { kind: TroubleKind::Away, why: why.into(), hint: None }
    }

    /// The same with a hint.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}
