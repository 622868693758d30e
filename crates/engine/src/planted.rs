//! A fault on purpose that takes more than a switch of `kernel::planted`. In a release build it
//! is never on.

use crate::refusal::{Refusal, RefusalCode, Result};
use crate::shared::Shared;
use kernel::ask::Ask;
use kernel::planted::{Switch, is_on};
use kernel::values::ids::{AskId, RealmId};

/// The ask that a refused reply names, if it was withdrawn and the simulation wants to see that an
/// answer to it is noticed.
pub(crate) async fn withdrawn(
    shared: &Shared,
    realm: &RealmId,
    ask: AskId,
    refusal: &Refusal,
) -> Result<Option<Ask>> {
    let is_withdrawn = matches!(refusal.code, RefusalCode::AskWithdrawn(_));
    if !is_withdrawn || !is_on(Switch::WithdrawnAskAnswered) {
        return Ok(None);
    }
    let found = shared.store.ask(realm, ask).await?;
    Ok(found.map(|found| found.row.ask))
}
