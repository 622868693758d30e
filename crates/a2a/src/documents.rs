//! The inputs that an agent card is made from: while they stay the same, so does the card.

use kernel::tool::call::Caller;
use kernel::values::ids::RealmId;
use std::sync::Arc;

/// What the card of an agent follows from: as long as all of it stays, the card does.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CardInputs {
    /// The address under which it is read.
    pub base: String,
    pub realm: RealmId,
    /// Who reads it; none for strangers.
    pub caller: Option<Caller>,
    /// Grows with every change of what can be called.
    pub catalog: u64,
    /// Grows with every change of the realm's definitions, listed or not.
    pub definitions: u64,
    /// The version of the policies; none where everything is allowed.
    pub policy: Option<Arc<str>>,
    /// The number of the directory of principals, keys and realms.
    pub directory: u64,
    /// Whether it offers calls of tools of other servers.
    pub has_proxy: bool,
}
