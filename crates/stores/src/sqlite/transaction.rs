//! Transactions with prepared `BEGIN` and `COMMIT` statements, because many transactions are short.

use rusqlite::Connection;

/// How a transaction begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begin {
    /// To read: it sees the database as its first statement finds it.
    Read,
    /// To write: no one else writes until it ends.
    Write,
}

/// A transaction that is rolled back unless it is committed, also where a panic ends it.
pub(crate) struct Transaction<'c>(&'c Connection);

impl<'c> Transaction<'c> {
    pub(crate) fn begin(connection: &'c Connection, how: Begin) -> rusqlite::Result<Self> {
        let sql = match how {
            Begin::Read => "BEGIN DEFERRED",
            Begin::Write => "BEGIN IMMEDIATE",
        };
        run(connection, sql)?;
        Ok(Self(connection))
    }

    /// Makes what was written durable.
    pub(crate) fn commit(self) -> rusqlite::Result<()> {
        run(self.0, "COMMIT")
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        // Some errors have ended it already. If it does not end here, the next one cannot begin,
        // and says so.
        if !self.0.is_autocommit() {
            let _ = run(self.0, "ROLLBACK");
        }
    }
}

fn run(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute(())?;
    Ok(())
}
