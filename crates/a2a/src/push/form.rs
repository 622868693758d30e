//! The form of what a webhook gets: that of the version that its maker speaks, or AgentVault's.

use crate::operations::Dialect;

/// AgentVault's profile, in the store.
const VAULT: &str = "vault";

/// The words of a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A version of A2A.
    Of(Dialect),
    /// AgentVault's profile.
    Vault,
}

impl Form {
    /// Its word in the store.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Of(dialect) => dialect.word(),
            Self::Vault => VAULT,
        }
    }

    pub(super) fn of(word: &str) -> Option<Self> {
        match word {
            VAULT => Some(Self::Vault),
            word => Dialect::of(word).map(Self::Of),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_is_found_by_its_word() {
        for form in [Form::Of(Dialect::V1), Form::Of(Dialect::V03), Form::Vault] {
            assert_eq!(Form::of(form.word()), Some(form));
        }
        assert_eq!(Form::of("2.0"), None);
        assert_eq!(Dialect::of(VAULT), None, "no header names it");
    }
}
