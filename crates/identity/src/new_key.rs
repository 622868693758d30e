//! Parameters of a new key.

use kernel::identity::grants::Grants;
use kernel::values::caller::Scopes;
use kernel::values::ids::Millis;
use std::sync::Arc;

/// A key that is to be made.
#[derive(Debug, Clone)]
pub struct NewKey {
    pub name: String,
    /// The principal whose it is to be: it has that one's roles, and none of its own.
    pub of: Option<Arc<str>>,
    /// The realms that it may enter, and its roles there. A principal's key without any may enter
    /// those that the principal may enter now.
    pub realms: Grants,
    /// The most that it allows; none is no ceiling.
    pub scopes: Option<Scopes>,
    /// When it stops to be good.
    pub expires: Expiry,
}

/// When a key stops to be good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Expiry {
    /// After as many days as keys usually have.
    #[default]
    Usual,
    /// Then.
    At(Millis),
    /// Only when it is revoked.
    Never,
}
