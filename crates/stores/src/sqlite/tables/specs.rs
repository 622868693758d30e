//! The specs of tools that calls pin: the text of each, once. Which spec is pinned is kept by
//! closure and not by run, so that a plan that runs again writes nothing: a spec stays as long as a
//! closure of which a run pinned it.

use super::columns::execute;
use super::pin_cache::{KnownPins, Pin};
use crate::sqlite::error::Result;
use kernel::journal::projection::PinnedSpec;
use kernel::values::ids::{ContentHash, RealmId};
use rusqlite::{Connection, params};

const KEEP: &str = "INSERT INTO tool_specs (realm, hash, body) VALUES (?1, ?2, ?3) \
     ON CONFLICT DO NOTHING";

const PIN: &str = "INSERT INTO spec_pins (realm, closure, spec) VALUES (?1, ?2, ?3) \
     ON CONFLICT DO NOTHING";

/// Those that only this closure pins.
const REMOVE: &str = "DELETE FROM tool_specs WHERE realm = ?1 \
     AND hash IN (SELECT spec FROM spec_pins WHERE realm = ?1 AND closure = ?2) \
     AND NOT EXISTS (SELECT 1 FROM spec_pins AS p WHERE p.realm = ?1 \
         AND p.spec = tool_specs.hash AND p.closure <> ?2)";

const UNPIN: &str = "DELETE FROM spec_pins WHERE realm = ?1 AND closure = ?2";

/// Keeps what is pinned, unless it is known to be there.
pub(crate) fn keep(
    connection: &Connection,
    realm: &RealmId,
    pinned: &[PinnedSpec],
    known: &KnownPins,
) -> Result<()> {
    for PinnedSpec { closure, hash, spec } in pinned {
        known.unless_known(Pin::Spec(realm.clone(), closure.clone(), hash.clone()), || {
            let realm = realm.as_str();
            let closure = closure.as_str();
            let hash = hash.as_str();
            execute(connection, KEEP, params![realm, hash, spec.pinned_text()])?;
            execute(connection, PIN, params![realm, closure, hash])?;
            Ok(())
        })?;
    }
    Ok(())
}

/// Removes what only this closure pins; the closure itself goes, too.
pub(crate) fn unpin(connection: &Connection, realm: &RealmId, closure: &ContentHash) -> Result<()> {
    let params = params![realm.as_str(), closure.as_str()];
    execute(connection, REMOVE, params)?;
    execute(connection, UNPIN, params)?;
    Ok(())
}
