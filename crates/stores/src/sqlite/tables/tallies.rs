//! How often cases of a pipeline took which path. What clients call a reason is theirs to make up,
//! so the reasons that no handler knows have a limit.

use super::columns::{count, execute, limit_of, many};
use crate::sqlite::error::Result;
use kernel::definition::pipeline::{OTHER_REASONS, Tally, TallyRow};
use kernel::journal::projection::SessionRow;
use kernel::values::ids::{Millis, PipelineName, RealmId};
use rusqlite::{Connection, Row, params};

const AGAIN: &str = "UPDATE tallies SET count = count + 1, last_at = max(last_at, ?5) \
     WHERE realm = ?1 AND pipeline = ?2 AND deterministic = ?3 AND reason = ?4";

const FIRST: &str = "INSERT INTO tallies (realm, pipeline, deterministic, reason, count, last_at) \
     VALUES (?1, ?2, ?3, ?4, 1, ?5) ON CONFLICT (realm, pipeline, deterministic, reason) \
     DO UPDATE SET count = tallies.count + 1, last_at = max(tallies.last_at, excluded.last_at)";

const UNKNOWN: &str = "SELECT count(*) FROM tallies WHERE realm = ?1 AND pipeline = ?2 \
     AND deterministic = 0 AND reason <> ?3";

const LIST: &str = "SELECT deterministic, reason, count, last_at FROM tallies \
     WHERE realm = ?1 AND pipeline = ?2 ORDER BY count DESC, reason, deterministic";

/// Counts a case, which is this session. Beyond so many unknown reasons a new one counts among the
/// others.
pub(crate) fn add(
    connection: &Connection,
    session: &SessionRow,
    tally: &Tally,
    reasons_max: usize,
) -> Result<()> {
    let Tally { pipeline, deterministic, reason } = tally;
    let realm = session.key.realm.as_str();
    let pipeline = pipeline.as_str();
    let at = session.updated_at;
    let row = params![realm, pipeline, deterministic, reason, at.0];
    if execute(connection, AGAIN, row)? > 0 {
        return Ok(());
    }
    let mut reason: &str = reason;
    if !deterministic {
        let mut unknown = connection.prepare_cached(UNKNOWN)?;
        let known: i64 =
            unknown.query_row(params![realm, pipeline, OTHER_REASONS], |row| row.get(0))?;
        if known >= limit_of(reasons_max) {
            reason = OTHER_REASONS;
        }
    }
    execute(connection, FIRST, params![realm, pipeline, deterministic, reason, at.0])?;
    Ok(())
}

/// All that was counted of a pipeline, the most frequent first.
pub(crate) fn list(
    connection: &Connection,
    realm: &RealmId,
    pipeline: &PipelineName,
) -> Result<Vec<TallyRow>> {
    many(connection, LIST, params![realm.as_str(), pipeline.as_str()], tally_row)
}

fn tally_row(row: &Row<'_>) -> Result<TallyRow> {
    Ok(TallyRow {
        deterministic: row.get(0)?,
        reason: row.get(1)?,
        count: count(row, 2)?,
        last_at: Millis(row.get(3)?),
    })
}
