//! Types that change: what is stored is compared with what is declared, and either taken on in one
//! transaction, or refused with the records that stand in the way. A table whose columns change is
//! made anew, and its records are copied.

mod steps;
mod obstacles;
mod rebuild;

use super::catalog::{COMMON, Catalog, Table};
use super::rows::{count_all, parsed};
use crate::sqlite::error::{JobError, Result};
use kernel::values::ids::RealmId;
use obstacles::in_the_way;
use query::records::type_change::{
    Obstacle, TypeChange, TypeChangeError, TypeDifference, TypeReport,
};
use query::types::{Field, Kind, RealmTypes, RecordType, TypeSet, changes};
use rusqlite::{Connection, Row};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Records of these types are stored elsewhere.
const BUILT_IN: &str = "waypost";

/// A change that was made, or would be.
pub(super) struct Changed {
    pub(super) report: TypeReport,
    /// What is stored now.
    pub(super) catalog: Arc<Catalog>,
}

/// Why a change ends midway.
enum Stop {
    Job(JobError),
    Refused(TypeChangeError),
}

impl From<JobError> for Stop {
    fn from(error: JobError) -> Self {
        Stop::Job(error)
    }
}

impl From<rusqlite::Error> for Stop {
    fn from(error: rusqlite::Error) -> Self {
        Stop::Job(error.into())
    }
}

fn refused(why: String) -> Stop {
    Stop::Refused(TypeChangeError::Step(why))
}

/// The types that are declared, by layer.
struct Declared {
    own: BTreeSet<String>,
    layers: BTreeMap<String, TypeSet>,
}

/// Rows that go from one layer to another, or stay in theirs.
struct Group<'d> {
    /// The realm with own types, before or after; none for all others.
    realm: Option<&'d str>,
    from: &'d str,
    to: &'d str,
    /// The realms that are groups of their own.
    realms: &'d BTreeSet<String>,
}

/// What is stored, as far as the change has come.
struct Work<'c> {
    connection: &'c Connection,
    catalog: Catalog,
    /// The numbers of types whose records or definitions were changed by a step: their tables are
    /// not what they follow from.
    stale: BTreeSet<i64>,
}

/// Takes on other types. The inner error is told; nothing is changed then.
pub(super) fn change(
    connection: &Connection,
    change: &TypeChange,
) -> Result<Result<Changed, TypeChangeError>> {
    let before = Catalog::load(connection)?;
    let kept = Arc::new(before.clone());
    connection.execute_batch("SAVEPOINT types")?;
    let work = Work { connection, catalog: before, stale: BTreeSet::new() };
    let answer = match work.attempt(change) {
        Ok(changed) if !change.is_dry_run => {
            connection.execute_batch("RELEASE types")?;
            return Ok(Ok(changed));
        }
        Ok(changed) => Ok(Changed { report: changed.report, catalog: kept }),
        Err(Stop::Refused(error)) => Err(error),
        Err(Stop::Job(error)) => return Err(error),
    };
    connection.execute_batch("ROLLBACK TO types; RELEASE types")?;
    Ok(answer)
}

impl Work<'_> {
    fn attempt(mut self, change: &TypeChange) -> Result<Changed, Stop> {
        let mut report = TypeReport::default();
        let written = self.connection.total_changes();
        for step in &change.steps {
            report.migrated.push(self.take(step)?);
        }
        let declared = Declared::of(&change.types);
        let own = self.catalog.own.clone();
        let realms: BTreeSet<String> = own.union(&declared.own).cloned().collect();
        let groups = groups(&own, &declared, &realms);
        let mut obstacles = Vec::new();
        for group in &groups {
            let differences = changes(&self.catalog.set(group.from), &declared.layers[group.to]);
            for difference in differences {
                let realm: Option<RealmId> = group.realm.map(RealmId::from);
                for change in &difference.changes {
                    let records =
                        in_the_way(&self, group, &difference.record_type, change, &declared)?;
                    if records > 0 {
                        let record_type = difference.record_type.clone();
                        let change = change.clone();
                        let realm = realm.clone();
                        obstacles.push(Obstacle { realm, record_type, change, records });
                    }
                }
                let record_type = difference.record_type;
                let changes = difference.changes;
                report.changes.push(TypeDifference { realm, record_type, changes });
            }
        }
        if !obstacles.is_empty() {
            return Err(Stop::Refused(TypeChangeError::Obstacles(obstacles)));
        }
        let mut catalog = self.rebuilt(&declared, &groups)?;
        if !change.steps.is_empty() {
            count_all(self.connection, catalog.tables().map(|table| &**table))?;
        }
        if self.connection.total_changes() > written {
            catalog.succeed(self.connection)?;
        }
        Ok(Changed { report, catalog: Arc::new(catalog) })
    }

    /// Looks at each record of the group in a table.
    fn each(
        &self,
        table: &Table,
        group: &Group<'_>,
        look: &mut dyn FnMut(&str, Value) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let sql = format!("SELECT realm, record FROM {}", table.records());
        let read = |row: &Row<'_>| -> Result<(String, String), rusqlite::Error> {
            Ok((row.get(0)?, row.get(1)?))
        };
        let (sql, realm) = match group.realm {
            Some(realm) => (format!("{sql} WHERE realm = ?1"), vec![realm]),
            None => (sql, Vec::new()),
        };
        let mut statement = self.connection.prepare(&sql)?;
        let rows = statement.query_map(rusqlite::params_from_iter(realm), read)?;
        for row in rows {
            let (realm, record) = row?;
            if group.realm.is_some() || !group.realms.contains(&realm) {
                look(&realm, parsed(&record)?)?;
            }
        }
        Ok(())
    }
}

impl Declared {
    fn of(types: &RealmTypes) -> Self {
        let mut layers = BTreeMap::from([(COMMON.to_owned(), whole(&types.common))]);
        for (realm, own) in &types.own {
            layers.insert(realm.as_str().to_owned(), whole(own));
        }
        let own = types.own.keys().map(|realm| realm.as_str().to_owned()).collect();
        Self { own, layers }
    }

    fn find(&self, layer: &str, name: &str) -> Option<&RecordType> {
        let types = self.layers.get(layer)?;
        types.all().iter().find(|record_type| record_type.full_name() == name)
    }
}

/// The types that are stored here, with references that name types in full.
fn whole(types: &TypeSet) -> TypeSet {
    let stored = types.all().iter().filter(|record_type| record_type.namespace != BUILT_IN);
    let in_full =
        |name: &str| types.find(name).map_or_else(|_| name.to_owned(), RecordType::full_name);
    let whole = stored.cloned().map(|mut record_type| {
        record_type.fields.iter_mut().for_each(|field| rename_references(field, &in_full));
        record_type
    });
    TypeSet::new(whole.collect())
}

/// Gives the types that a field refers to other names.
fn rename_references(field: &mut Field, name: &dyn Fn(&str) -> String) {
    let mut kind = &mut field.kind;
    while let Kind::Array(inner) = kind {
        kind = inner;
    }
    match kind {
        Kind::Reference(to) => *to = name(to),
        Kind::Object(fields) => {
            fields.iter_mut().for_each(|field| rename_references(field, name));
        }
        _ => {}
    }
}

fn groups<'d>(
    own: &BTreeSet<String>,
    declared: &Declared,
    realms: &'d BTreeSet<String>,
) -> Vec<Group<'d>> {
    let mut groups = vec![Group { realm: None, from: COMMON, to: COMMON, realms }];
    for realm in realms {
        let from = if own.contains(realm) { realm.as_str() } else { COMMON };
        let to = if declared.own.contains(realm) { realm.as_str() } else { COMMON };
        groups.push(Group { realm: Some(realm.as_str()), from, to, realms });
    }
    groups
}
