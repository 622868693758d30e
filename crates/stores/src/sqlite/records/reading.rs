//! How records are found: SQL takes those that can match, and the evaluator decides. Rows are read
//! one by one; what stays of them is bounded by the page.

use super::catalog::{Catalog, Table};
use super::rows::{holder, id_of, is_interrupted, of_store, parsed, record};
use super::statement::{Matching, Ordered, Statement};
use crate::sqlite::deadline::Deadline;
use crate::sqlite::error::{JobError, store_error};
use query::checked::{FieldPath, Test};
use query::evaluate::group::Groups;
use query::evaluate::order::{Position, compare, position};
use query::evaluate::{Row, passes};
use query::records::error::RecordError;
use query::records::names::{RecordName, RefName};
use query::records::page::PageRows;
use query::records::references::{Stored, may_embed};
use query::records::requests::{
    Access, Count, Counted, Explanation, Find, Found, Get, RecordLimits,
};
use query::records::unique::{UniqueKey, unique_keys};
use query::types::RecordType;
use rusqlite::types::Value as Cell;
use rusqlite::{Connection, params_from_iter};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::sync::Arc;

/// How many positions of a page are held at once before it is read.
const POSITIONS_MAX: usize = 1_000_000;

/// A request on its way, in one transaction.
pub(super) struct Reading<'r> {
    pub(super) connection: &'r Connection,
    pub(super) catalog: &'r Catalog,
    pub(super) access: &'r Access,
    pub(super) limits: &'r RecordLimits,
    pub(super) deadline: Deadline,
    /// What the database did not do. It ends the transaction, whatever the answer is.
    pub(super) trouble: RefCell<Option<JobError>>,
}

/// A record that was found, and its cell in the column that orders.
struct Candidate {
    id: String,
    record: Value,
    place: Cell,
}

type Answer<T> = Result<T, RecordError>;

impl Stored for Reading<'_> {
    fn record(
        &self,
        record_type: &RecordType,
        name: &RecordName,
    ) -> Result<Option<Value>, RecordError> {
        let realm = self.access.realm.as_str();
        // Of types that are not stored here there are no records.
        let Ok(table) = self.table(record_type) else { return Ok(None) };
        let id = match name {
            RecordName::Id(id) => Some(id.clone()),
            RecordName::RefName(name) => {
                let key = ref_name_key(record_type, name);
                match key {
                    Some(key) => holder(self.connection, table, realm, &key)
                        .map_err(|error| self.failed(error))?,
                    None => None,
                }
            }
        };
        match id {
            Some(id) => {
                record(self.connection, table, realm, &id).map_err(|error| self.failed(error))
            }
            None => Ok(None),
        }
    }
}

/// The key that a record of this name has.
fn ref_name_key(record_type: &RecordType, name: &RefName) -> Option<UniqueKey> {
    let domain = json!({"orgRefName": name.org, "tenantId": name.tenant});
    let named = json!({"refName": name.folded, "dataDomain": domain});
    let mut keys = unique_keys(record_type, &named).into_iter();
    keys.find(|key| key.fields == ["refName"])
}

impl Reading<'_> {
    /// Notes trouble with the database.
    pub(super) fn failed(&self, error: JobError) -> RecordError {
        let told = match &error {
            JobError::Sql(error) => of_store(store_error(error)),
            JobError::Refused(error) | JobError::Midway(error) => of_store(error.clone()),
        };
        self.trouble.borrow_mut().get_or_insert(error);
        told
    }

    pub(super) fn table(&self, record_type: &RecordType) -> Answer<&Arc<Table>> {
        self.catalog.table(&self.access.realm, record_type)
    }

    fn row<'v>(&'v self, record: &'v Value) -> Row<'v> {
        Row { realm: self.access.realm.as_str(), record }
    }

    pub(super) fn find(&self, find: &Find) -> Answer<Found> {
        let record_type = self.access.record_type(&find.record_type)?;
        let table = self.table(record_type)?;
        let asked = find.query.filter.as_ref();
        let too_slow = || too_slow(asked, find, table);
        let filter = self.access.scope.filter(record_type, asked);
        let total = match find.total {
            true => Some(self.matching(table, filter.as_ref(), &too_slow)?),
            false => None,
        };
        let wanted = find.page.skip.saturating_add(find.page.limit).saturating_add(1);
        if wanted > POSITIONS_MAX {
            let why = format!("a page can begin at most {POSITIONS_MAX} records after its cursor");
            return Err(RecordError::Failed(why));
        }
        let positions = self.positions(table, filter.as_ref(), find, wanted, &too_slow)?;
        let mut found = Found { total, ..Found::default() };
        let mut page = PageRows::new(&find.query, self.access.realm.as_str(), self.limits);
        let mut last = None;
        let unread = RefCell::new(None);
        for (place, (position, id)) in positions.into_iter().skip(find.page.skip).enumerate() {
            if place == find.page.limit {
                found.next = last;
                break;
            }
            let name = RecordName::Id(id);
            let Some(record) = self.record(record_type, &name)? else { continue };
            let lookup = |to: &str, id: &str| match self.embedded(&record, to, id) {
                Ok(found) => found,
                Err(error) => {
                    unread.borrow_mut().get_or_insert(error);
                    None
                }
            };
            let cut = page.push(&record, &lookup)?;
            if let Some(error) = unread.take() {
                return Err(error);
            }
            self.in_time(&too_slow)?;
            if cut.is_some() {
                found.cut = cut;
                found.next = last;
                break;
            }
            last = Some(position);
        }
        found.rows = page.rows();
        Ok(found)
    }

    /// The first positions of the page, in their order.
    fn positions(
        &self,
        table: &Table,
        filter: Option<&Test>,
        find: &Find,
        wanted: usize,
        too_slow: &dyn Fn() -> RecordError,
    ) -> Answer<Vec<(Position, String)>> {
        let order = Ordered::of(&find.sort, &table.layout);
        let after = find.page.after.as_ref();
        let matching = Matching::of(filter, &table.layout);
        let realm = self.access.realm.as_str();
        let statement = matching.rows(&table.records(), realm, order.as_ref(), after);
        let mut first: Vec<(Position, String)> = Vec::new();
        let mut place = Cell::Null;
        self.each(&statement, order.is_some(), filter, too_slow, &mut |candidate| {
            // Whoever comes now stands behind all that are there.
            if order.is_some() && first.len() == wanted && candidate.place != place {
                return ControlFlow::Break(());
            }
            place = candidate.place;
            let here = position(&find.sort, self.row(&candidate.record));
            if after.is_some_and(|after| compare(&find.sort, &here, after).is_le()) {
                return ControlFlow::Continue(());
            }
            let at = first.partition_point(|(other, _)| compare(&find.sort, other, &here).is_lt());
            if at < wanted {
                first.truncate(wanted - 1);
                first.insert(at, (here, candidate.id));
            }
            ControlFlow::Continue(())
        })?;
        Ok(first)
    }

    /// How many records match.
    fn matching(
        &self,
        table: &Table,
        filter: Option<&Test>,
        too_slow: &dyn Fn() -> RecordError,
    ) -> Answer<u64> {
        let matching = Matching::of(filter, &table.layout);
        let realm = self.access.realm.as_str();
        if matching.is_exact {
            let Statement { sql, values } = matching.count(&table.records(), realm);
            let _watched = self.deadline.watched();
            let counted = self.connection.prepare_cached(&sql).and_then(|mut statement| {
                statement.query_row(params_from_iter(values), |row| row.get::<_, i64>(0))
            });
            let counted = counted.map_err(|error| self.trouble(error.into(), too_slow))?;
            return Ok(u64::try_from(counted).unwrap_or_default());
        }
        let mut count = 0;
        let statement = matching.rows(&table.records(), realm, None, None);
        self.each(&statement, false, filter, too_slow, &mut |_| {
            count += 1;
            ControlFlow::Continue(())
        })?;
        Ok(count)
    }

    /// Looks at the records that the evaluator takes, until it is enough.
    fn each(
        &self,
        statement: &Statement,
        is_ordered: bool,
        filter: Option<&Test>,
        too_slow: &dyn Fn() -> RecordError,
        look: &mut dyn FnMut(Candidate) -> ControlFlow<()>,
    ) -> Answer<()> {
        let sql = |error: rusqlite::Error| self.trouble(error.into(), too_slow);
        let _watched = self.deadline.watched();
        let mut prepared = self.connection.prepare_cached(&statement.sql).map_err(sql)?;
        let mut rows = prepared.query(params_from_iter(statement.values.iter())).map_err(sql)?;
        while let Some(row) = rows.next().map_err(sql)? {
            self.in_time(too_slow)?;
            let text: String = row.get(1).map_err(sql)?;
            let record = parsed(&text).map_err(|error| self.failed(error))?;
            if filter.is_some_and(|filter| !passes(filter, self.row(&record))) {
                continue;
            }
            let place = if is_ordered { row.get(2).map_err(sql)? } else { Cell::Null };
            let candidate = Candidate { id: row.get(0).map_err(sql)?, record, place };
            if look(candidate).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn in_time(&self, too_slow: &dyn Fn() -> RecordError) -> Answer<()> {
        if self.deadline.is_over() { Err(too_slow()) } else { Ok(()) }
    }

    fn trouble(&self, error: JobError, too_slow: &dyn Fn() -> RecordError) -> RecordError {
        if is_interrupted(&error) { too_slow() } else { self.failed(error) }
    }

    fn embedded(&self, row: &Value, to: &str, id: &str) -> Answer<Option<Value>> {
        let Ok(to) = self.access.types.find(to) else { return Ok(None) };
        let found = self.record(to, &RecordName::Id(id.to_owned()))?;
        Ok(found.filter(|found| may_embed(self.access, row, to, found)))
    }

    pub(super) fn count(&self, count: &Count) -> Answer<Counted> {
        let record_type = self.access.record_type(&count.record_type)?;
        let table = self.table(record_type)?;
        let too_slow = || RecordError::TooSlow(unindexed(count.filter.as_ref(), &[], table));
        let filter = self.access.scope.filter(record_type, count.filter.as_ref());
        let Some(grouping) = &count.grouping else {
            let count = self.matching(table, filter.as_ref(), &too_slow)?;
            return Ok(Counted { count, groups: Vec::new() });
        };
        let max = self.limits.groups_max;
        let mut groups = Groups::new(grouping);
        let mut counted = 0;
        let realm = self.access.realm.as_str();
        let matching = Matching::of(filter.as_ref(), &table.layout);
        let statement = matching.rows(&table.records(), realm, None, None);
        self.each(&statement, false, filter.as_ref(), &too_slow, &mut |candidate| {
            counted += 1;
            groups.add(self.row(&candidate.record));
            if groups.count() > max { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if groups.count() > max {
            return Err(RecordError::TooManyGroups { max });
        }
        Ok(Counted { count: counted, groups: groups.shown() })
    }

    pub(super) fn get(&self, get: &Get) -> Answer<Option<Value>> {
        let record_type = self.access.record_type(&get.record_type)?;
        let is_by_name = matches!(get.name, RecordName::RefName(_));
        if is_by_name && self.access.scope.hides(record_type, "refName") {
            return Ok(None);
        }
        self.table(record_type)?;
        let mut found = self.record(record_type, &get.name)?;
        found = found.filter(|record| self.access.scope.admits(record_type, self.row(record)));
        if let Some(record) = &mut found {
            self.access.scope.mask(record_type, record);
        }
        Ok(found)
    }

    /// Records of a type that the caller sees and asks for; at most so many.
    pub(super) fn some(
        &self,
        record_type: &RecordType,
        asked: Option<&Test>,
        max: usize,
    ) -> Answer<Vec<Value>> {
        let table = self.table(record_type)?;
        let too_slow = || RecordError::TooSlow(unindexed(asked, &[], table));
        let filter = self.access.scope.filter(record_type, asked);
        let matching = Matching::of(filter.as_ref(), &table.layout);
        let realm = self.access.realm.as_str();
        let statement = matching.rows(&table.records(), realm, None, None);
        let mut found = Vec::new();
        self.each(&statement, false, filter.as_ref(), &too_slow, &mut |candidate| {
            found.push(candidate.record);
            if found.len() < max { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        found.sort_by(|left, right| id_of(left).cmp(id_of(right)));
        Ok(found)
    }

    pub(super) fn explain(&self, find: &Find) -> Answer<Explanation> {
        let record_type = self.access.record_type(&find.record_type)?;
        let table = self.table(record_type)?;
        let filter = self.access.scope.filter(record_type, find.query.filter.as_ref());
        let matching = Matching::of(filter.as_ref(), &table.layout);
        let order = Ordered::of(&find.sort, &table.layout);
        let realm = self.access.realm.as_str();
        let after = find.page.after.as_ref();
        let mut statements = vec![matching.rows(&table.records(), realm, order.as_ref(), after)];
        if find.total && matching.is_exact {
            statements.push(matching.count(&table.records(), realm));
        }
        let mut explanation = Explanation::default();
        for Statement { sql, values } in statements {
            for index in self.indexes(&sql, values).map_err(|error| self.failed(error))? {
                if !explanation.indexes.contains(&index) {
                    explanation.indexes.push(index);
                }
            }
            explanation.statements.push(sql);
        }
        Ok(explanation)
    }

    fn indexes(&self, sql: &str, values: Vec<Cell>) -> Result<Vec<String>, JobError> {
        let mut statement = self.connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
        let rows = statement.query_map(params_from_iter(values), |row| row.get::<_, String>(3))?;
        let mut indexes = Vec::new();
        for detail in rows {
            let detail = detail?;
            let name = detail.split_once("INDEX ").map(|(_, rest)| rest);
            let name = name.and_then(|rest| rest.split_whitespace().next());
            indexes.extend(name.map(str::to_owned));
        }
        Ok(indexes)
    }
}

fn too_slow(asked: Option<&Test>, find: &Find, table: &Table) -> RecordError {
    let sort: Vec<&FieldPath> = find.sort.iter().map(|field| &field.path).collect();
    RecordError::TooSlow(unindexed(asked, &sort, table))
}

/// The first field of these that has no index.
fn unindexed(asked: Option<&Test>, sort: &[&FieldPath], table: &Table) -> Option<String> {
    let mut paths = Vec::new();
    if let Some(asked) = asked {
        add_paths(asked, &mut paths);
    }
    paths.extend(sort);
    let without = paths.into_iter().find(|path| !table.layout.has_index(path))?;
    Some(without.names().collect::<Vec<_>>().join("."))
}

fn add_paths<'t>(test: &'t Test, paths: &mut Vec<&'t FieldPath>) {
    match test {
        Test::All(tests) | Test::Any(tests) => {
            tests.iter().for_each(|test| add_paths(test, paths));
        }
        Test::Not(inner) => add_paths(inner, paths),
        Test::Compare(path, ..) | Test::OneOf(path, _) | Test::Exists(path) => paths.push(path),
        Test::Element(path, _) => paths.push(path),
        Test::Never | Test::Words(_) => {}
    }
}
