//! Copies the database while it is in use, and checks a copy.

use super::connect::existing;
use crate::sqlite::error::{JobError, Result};
use kernel::contracts::StoreError;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Transaction, TransactionBehavior};
use std::path::Path;

/// How many pages are copied, 4 MiB, before it is asked again whether the copy is still wanted.
const STEP_PAGES: i32 = 1_024;

/// Looks at every page and every index, and tells the first fault.
const CHECK: &str = "PRAGMA integrity_check(1)";

/// Copies the database as it is now over an empty file. The writer is not held up; its log cannot
/// begin again until the copy is done. Nothing else may have the copy open.
pub(crate) fn copy(
    database: &Path,
    vfs: Option<&str>,
    copy: &Path,
    is_wanted: &dyn Fn() -> bool,
) -> Result<()> {
    let from = existing(database, vfs)?;
    let mut to = existing(copy, None)?;
    // One read transaction over all steps: without it every commit of the writer between two steps
    // would begin the copy again.
    let moment = Transaction::new_unchecked(&from, TransactionBehavior::Deferred)?;
    moment.query_row("SELECT count(*) FROM sqlite_schema", (), |_| Ok(()))?;
    let backup = Backup::new(&from, &mut to)?;
    loop {
        match backup.step(STEP_PAGES)? {
            StepResult::Done => return Ok(()),
            StepResult::More if is_wanted() => {}
            StepResult::More => return Err(JobError::Refused(StoreError::Closed)),
            _ => return Err(JobError::Refused(StoreError::Busy)),
        }
    }
}

/// The damage of a closed database; `None` if it is sound.
pub(crate) fn damage(database: &Path) -> Option<String> {
    let told = existing(database, None)
        .and_then(|connection| connection.query_row(CHECK, (), |row| row.get::<_, String>(0)));
    match told {
        Ok(told) if told == "ok" => None,
        Ok(told) => Some(told),
        Err(error) => Some(error.to_string()),
    }
}
