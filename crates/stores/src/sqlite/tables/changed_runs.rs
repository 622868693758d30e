//! Runs of contexts in the order of their last change. Each combination of filters has
//! an index that gives the rows in this order, so that a page costs the same however many runs
//! there are; only to count them all are they passed, in the index alone.

use super::columns::{RUN, bad_cursor, count, many, one, paged, rows_max, run};
use crate::sqlite::error::Result;
use kernel::contracts::{OwnerFilter, PageRequest, RunFilter, RunPage, SessionRun};
use kernel::session::RunStatus;
use kernel::values::ids::{Millis, RealmId, RunId};
use rusqlite::{Connection, params};

/// A run's place in the list.
type RunPosition = (Millis, RunId);

/// A page of the list, and how many runs are on all pages.
pub(crate) fn list(
    connection: &Connection,
    realm: &RealmId,
    filter: &RunFilter,
    page: &PageRequest,
) -> Result<RunPage> {
    let before = page.cursor.as_deref().map(place_of).transpose()?;
    let each: Vec<Option<RunStatus>> = match filter.statuses.as_slice() {
        [] => vec![None],
        statuses => {
            let named = RunStatus::ALL.iter().copied().filter(|status| statuses.contains(status));
            named.map(Some).collect()
        }
    };
    let mut rows = Vec::new();
    let mut total = 0;
    for status in each {
        let sought = RunQuery { realm, filter, status };
        total += sought.count(connection)?;
        rows.extend(sought.newest(connection, before, rows_max(page))?);
    }
    // Each status gave its newest.
    rows.sort_by(|(one, _), (other, _)| other.cmp(one));
    let page = paged(rows, page, |(at, run): &RunPosition| format!("{}.{:032x}", at.0, run.0));
    Ok(RunPage { page, total })
}

fn place_of(cursor: &str) -> Result<RunPosition> {
    let read = || {
        let (at, run) = cursor.split_once('.')?;
        Some((Millis(at.parse().ok()?), RunId(u128::from_str_radix(run, 16).ok()?)))
    };
    read().ok_or_else(|| bad_cursor(cursor))
}

/// The filter of one pass: of one status, or of any.
struct RunQuery<'f> {
    realm: &'f RealmId,
    filter: &'f RunFilter,
    status: Option<RunStatus>,
}

impl RunQuery<'_> {
    fn is_by_owner(&self) -> bool {
        self.filter.whose != OwnerFilter::Anyones
    }

    /// The index that gives just these rows. Named, so that no statistics choose another one.
    fn index(&self) -> &'static str {
        match (self.filter.session, self.is_by_owner(), self.status) {
            (Some(_), _, _) => "runs_of_context",
            (None, true, Some(_)) => "runs_by_owner_and_status",
            (None, true, None) => "runs_by_owner",
            (None, false, Some(_)) => "runs_by_status",
            (None, false, None) => "runs_by_change",
        }
    }

    fn condition(&self) -> String {
        let owner = if self.is_by_owner() { "r.owner IS ?2" } else { "?2 IS NULL" };
        let status = if self.status.is_some() { "r.status = ?3" } else { "?3 IS NULL" };
        let session = match self.filter.session {
            Some(_) => "r.session = (SELECT pk FROM sessions WHERE id = ?4 AND realm = ?1)",
            None => "?4 IS NULL",
        };
        format!("r.listed = ?1 AND {owner} AND {status} AND {session} AND r.changed_at >= ?5")
    }

    fn count_sql(&self) -> String {
        let index = self.index();
        let condition = self.condition();
        format!("SELECT count(*) FROM runs AS r INDEXED BY {index} WHERE {condition}")
    }

    fn newest_sql(&self) -> String {
        let index = self.index();
        let condition = self.condition();
        format!(
            "SELECT {RUN} FROM runs AS r INDEXED BY {index} \
             CROSS JOIN sessions AS s ON s.pk = r.session \
             WHERE {condition} AND (r.changed_at, r.id) < (?6, ?7) \
             ORDER BY r.changed_at DESC, r.id DESC LIMIT ?8"
        )
    }

    fn owner(&self) -> Option<&str> {
        match &self.filter.whose {
            OwnerFilter::Anyones | OwnerFilter::NoOnes => None,
            OwnerFilter::Of(subject) => Some(subject),
        }
    }

    fn count(&self, connection: &Connection) -> Result<u64> {
        let RunFilter { session, since, .. } = self.filter;
        let params = params![
            self.realm.as_str(),
            self.owner(),
            self.status.map(RunStatus::name),
            session.map(|session| session.0.to_be_bytes()),
            since.map_or(i64::MIN, |since| since.0),
        ];
        let counted = one(connection, &self.count_sql(), params, |row| count(row, 0))?;
        Ok(counted.unwrap_or_default())
    }

    fn newest(
        &self,
        connection: &Connection,
        before: Option<RunPosition>,
        limit: i64,
    ) -> Result<Vec<(RunPosition, SessionRun)>> {
        let RunFilter { session, since, .. } = self.filter;
        let (at, id) = before.unwrap_or((Millis(i64::MAX), RunId(u128::MAX)));
        let params = params![
            self.realm.as_str(),
            self.owner(),
            self.status.map(RunStatus::name),
            session.map(|session| session.0.to_be_bytes()),
            since.map_or(i64::MIN, |since| since.0),
            at.0,
            id.0.to_be_bytes(),
            limit,
        ];
        many(connection, &self.newest_sql(), params, |row| {
            let found = run(row)?;
            Ok(((found.row.changed_at, found.row.id), found))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::{MAIN, schema};
    use kernel::values::ids::SessionId;
    use std::path::Path;

    /// The steps of SQLite's plan for a query.
    fn plan(connection: &Connection, sql: &str) -> Vec<String> {
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let steps = statement.raw_query().mapped(|row| row.get(3));
        steps.collect::<rusqlite::Result<_>>().unwrap()
    }

    #[test]
    fn every_page_and_count_is_answered_by_an_index() {
        let mut connection = Connection::open_in_memory().unwrap();
        schema::prepare(&mut connection, Path::new("memory"), &MAIN, Millis(0)).unwrap();
        let realm = RealmId::from("r");
        let sought = [OwnerFilter::Anyones, OwnerFilter::NoOnes, OwnerFilter::Of("ann".into())];
        let sessions = [None, Some(SessionId(1))];
        for (whose, session) in sought.iter().flat_map(|one| sessions.map(|two| (one, two))) {
            let filter = RunFilter { whose: whose.clone(), session, ..RunFilter::default() };
            for status in [None, Some(RunStatus::Waiting)] {
                let sought = RunQuery { realm: &realm, filter: &filter, status };
                for sql in [sought.count_sql(), sought.newest_sql()] {
                    let steps = plan(&connection, &sql);
                    let is_found = |step: &String| step.starts_with("SEARCH r USING");
                    assert!(steps.iter().any(is_found), "{sql}: {steps:?}");
                    for step in &steps {
                        let is_search = !step.starts_with("SCAN") && !step.contains("TEMP B-TREE");
                        assert!(is_search, "{sql}: {steps:?}");
                    }
                }
            }
        }
    }
}
