//! Claims of subjects: one row for each, which a put replaces.

use super::columns::{execute, many, to_json};
use crate::sqlite::SqliteStore;
use crate::sqlite::error::{JobError, Result};
use kernel::contracts::Read;
use kernel::contracts::identity::claims::{Claims, SubjectClaims};
use rusqlite::{Row, params};
use std::sync::Arc;

const ALL: &str = "SELECT subject, body FROM claims ORDER BY subject";

const PUT: &str = "INSERT INTO claims (subject, body) VALUES (?1, ?2) \
     ON CONFLICT (subject) DO UPDATE SET body = excluded.body";

const REMOVE: &str = "DELETE FROM claims WHERE subject = ?1";

impl Claims for SqliteStore {
    fn all_claims(&self) -> Read<'_, Vec<SubjectClaims>> {
        self.readers.read(|connection| many(connection, ALL, (), subject_claims))
    }

    fn put_claims<'a>(&'a self, claims: &'a SubjectClaims) -> Read<'a, ()> {
        let claims = claims.clone();
        self.writes.perform(move |connection| {
            execute(connection, PUT, params![claims.subject, to_json(&claims)?])?;
            Ok(())
        })
    }

    fn remove_claims<'a>(&'a self, subjects: &'a [Arc<str>]) -> Read<'a, ()> {
        let subjects = subjects.to_vec();
        self.writes.perform(move |connection| {
            let mut statement = connection.prepare_cached(REMOVE)?;
            for subject in &subjects {
                statement.execute(params![subject])?;
            }
            Ok(())
        })
    }
}

fn subject_claims(row: &Row<'_>) -> Result<SubjectClaims> {
    let subject: String = row.get(0)?;
    let body: String = row.get(1)?;
    serde_json::from_str(&body).map_err(|error| {
        JobError::unreadable(format!("the claims of `{subject}` cannot be read: {error}"))
    })
}
