//! The realm of a server, and who acts in it where no request does: the project is loaded, files
//! are read again, ports are opened. This is the one file that names the realm.

use kernel::tool::call::Caller;
use kernel::values::ids::RealmId;

/// The name of the realm that every server has.
pub const DEFAULT_REALM: &str = "default";

/// Who calls where everybody on this machine is the same.
const LOCAL: &str = "local";

/// The realm that every server has.
pub fn default_realm() -> RealmId {
    RealmId::from(DEFAULT_REALM)
}

/// This machine as a caller: who calls in local mode, and who acts without a request.
pub fn local_caller() -> Caller {
    Caller::new(DEFAULT_REALM, LOCAL)
}
