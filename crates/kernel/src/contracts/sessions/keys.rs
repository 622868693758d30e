//! Idempotency keys of requests.

use crate::contracts::Read;
use crate::journal::projection::OnceRow;
use crate::values::ids::RealmId;

/// Outcomes of keyed requests. An append writes the row, in its transaction (`Append::once`): of
/// two requests with one key one is refused there, and finds here what the other one did.
pub trait Keys: Send + Sync {
    /// The outcome of a keyed request: the newest of those under these routes.
    fn once<'a>(
        &'a self,
        realm: &'a RealmId,
        subject: &'a str,
        routes: &'a [&'a str],
        key: &'a str,
    ) -> Read<'a, Option<OnceRow>>;
}
