//! A fault on purpose that takes more than a switch of `kernel::planted`. It is there only in
//! debug builds.

use crate::refusal::{Refusal, Result};
use crate::shared::Shared;
use kernel::ask::Ask;
use kernel::values::ids::{AskId, RealmId};

/// The ask that a refused reply names, if it was withdrawn and the simulation wants to see that an
/// answer to it is noticed.
#[cfg(debug_assertions)]
pub(crate) async fn withdrawn(
    shared: &Shared,
    realm: &RealmId,
    ask: AskId,
    refusal: &Refusal,
) -> Result<Option<Ask>> {
    use crate::refusal::RefusalCode;
    use kernel::planted::{Switch, is_on};

    let is_withdrawn = matches!(refusal.code, RefusalCode::AskWithdrawn(_));
    if !is_withdrawn || !is_on(Switch::WithdrawnAskAnswered) {
        return Ok(None);
    }
    let found = shared.store.ask(realm, ask).await?;
    Ok(found.map(|found| found.row.ask))
}

/// No reply to a withdrawn ask counts.
#[cfg(not(debug_assertions))]
pub(crate) async fn withdrawn(
    _: &Shared,
    _: &RealmId,
    _: AskId,
    _: &Refusal,
) -> Result<Option<Ask>> {
    Ok(None)
}
