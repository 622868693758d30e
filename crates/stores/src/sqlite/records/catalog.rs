//! Which types are stored, and in which tables. A realm with types of its own has tables of its
//! own; all others share theirs.

use super::definition;
use super::layout::Layout;
use crate::locks::held;
use crate::sqlite::error::Result;
use crate::sqlite::tables::columns::{execute, many, one};
use kernel::values::ids::RealmId;
use query::records::error::RecordError;
use query::types::{RecordType, TypeSet};
use rusqlite::Connection;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

/// What the types of all realms without own ones have in the place of a realm.
pub(super) const COMMON: &str = "";

/// The tables of one type.
#[derive(Debug, Clone)]
pub(super) struct Table {
    pub(super) number: i64,
    pub(super) definition: RecordType,
    pub(super) layout: Layout,
}

/// The types of one layer by their full names.
pub(super) type Layer = BTreeMap<String, Arc<Table>>;

#[derive(Debug, Clone, Default)]
pub(super) struct Catalog {
    /// Which of the catalogs of this database it is: each change of types makes another one.
    pub(super) version: i64,
    /// Realms with own types.
    pub(super) own: BTreeSet<String>,
    /// By realm.
    pub(super) layers: BTreeMap<String, Layer>,
}

fn version(connection: &Connection) -> Result<i64> {
    let sql = "SELECT value FROM meta WHERE name = 'types'";
    Ok(one(connection, sql, (), |row| Ok(row.get(0)?))?.unwrap_or_default())
}

impl Table {
    pub(super) fn new(number: i64, definition: RecordType) -> Self {
        let layout = Layout::of(&definition);
        Self { number, definition, layout }
    }

    pub(super) fn records(&self) -> String {
        format!("t{}", self.number)
    }

    pub(super) fn keys(&self) -> String {
        format!("k{}", self.number)
    }

    pub(super) fn references(&self) -> String {
        format!("r{}", self.number)
    }
}

impl Catalog {
    /// What is stored.
    pub(super) fn load(connection: &Connection) -> Result<Self> {
        let own = many(connection, "SELECT realm FROM own_types", (), |row| Ok(row.get(0)?))?;
        let mut catalog = Self {
            version: version(connection)?,
            own: own.into_iter().collect(),
            layers: BTreeMap::new(),
        };
        let sql = "SELECT realm, number, definition FROM types ORDER BY number";
        let stored = many(connection, sql, (), |row| {
            let definition: String = row.get(2)?;
            let table = Table::new(row.get(1)?, definition::of_text(&definition)?);
            Ok((row.get::<_, String>(0)?, table))
        })?;
        for (realm, table) in stored {
            let layer = catalog.layers.entry(realm).or_default();
            layer.insert(table.definition.full_name(), Arc::new(table));
        }
        Ok(catalog)
    }

    /// What this transaction finds: most often what is known already.
    pub(super) fn current(
        connection: &Connection,
        known: &Mutex<Arc<Catalog>>,
    ) -> Result<Arc<Self>> {
        let known = held(known).clone();
        if known.version == version(connection)? {
            return Ok(known);
        }
        Self::load(connection).map(Arc::new)
    }

    /// Notes that this is what is stored from now on.
    pub(super) fn succeed(&mut self, connection: &Connection) -> Result<()> {
        let sql = "INSERT INTO meta (name, value) VALUES ('types', 1) \
             ON CONFLICT (name) DO UPDATE SET value = value + 1";
        execute(connection, sql, ())?;
        self.version = version(connection)?;
        Ok(())
    }

    /// Which layer the types of a realm are in.
    pub(super) fn layer_of<'r>(&self, realm: &'r str) -> &'r str {
        if self.own.contains(realm) { realm } else { COMMON }
    }

    pub(super) fn layer(&self, layer: &str) -> impl Iterator<Item = &Arc<Table>> {
        self.layers.get(layer).into_iter().flat_map(Layer::values)
    }

    /// The types of a layer as a set.
    pub(super) fn set(&self, layer: &str) -> TypeSet {
        TypeSet::new(self.layer(layer).map(|table| table.definition.clone()).collect())
    }

    /// The tables of a type in a realm.
    pub(super) fn table(
        &self,
        realm: &RealmId,
        record_type: &RecordType,
    ) -> Result<&Arc<Table>, RecordError> {
        let name = record_type.full_name();
        let layer = self.layers.get(self.layer_of(realm.as_str()));
        let found = layer.and_then(|layer| layer.get(&name));
        found.ok_or(RecordError::UnresolvedCollection(name))
    }

    /// All tables there are.
    pub(super) fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.layers.values().flat_map(Layer::values)
    }
}
