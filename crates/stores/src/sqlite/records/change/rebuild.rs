//! The tables of declared types: those that are as they have to be stay, all others are made anew
//! and filled.

use super::{Declared, Group, Stop, Work};
use crate::sqlite::records::catalog::{Catalog, Table};
use crate::sqlite::records::definition::to_text;
use crate::sqlite::records::layout::Layout;
use crate::sqlite::records::rows::{drop_tables, insert, make};
use crate::sqlite::tables::columns::execute;
use query::types::RecordType;
use rusqlite::params;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Work<'_> {
    /// What is stored once the declared types are taken on.
    pub(super) fn rebuilt(
        &self,
        declared: &Declared,
        groups: &[Group<'_>],
    ) -> Result<Catalog, Stop> {
        let mut catalog = Catalog {
            version: self.catalog.version,
            own: declared.own.clone(),
            layers: BTreeMap::new(),
        };
        for (layer, types) in &declared.layers {
            for record_type in types.all() {
                let table = Arc::new(self.table_of(layer, record_type)?);
                let tables = catalog.layers.entry(layer.clone()).or_default();
                tables.insert(record_type.full_name(), table);
            }
        }
        let stay: BTreeSet<i64> = catalog.tables().map(|table| table.number).collect();
        for group in groups {
            self.fill(group, &catalog, &stay)?;
        }
        for table in self.catalog.tables().filter(|table| !stay.contains(&table.number)) {
            execute(self.connection, "DELETE FROM types WHERE number = ?1", [table.number])?;
            drop_tables(self.connection, table)?;
        }
        if catalog.own != self.catalog.own {
            execute(self.connection, "DELETE FROM own_types", ())?;
            for realm in &catalog.own {
                execute(self.connection, "INSERT INTO own_types (realm) VALUES (?1)", [realm])?;
            }
        }
        Ok(catalog)
    }

    /// The tables of a type: those that are there, or new ones.
    fn table_of(&self, layer: &str, record_type: &RecordType) -> Result<Table, Stop> {
        let name = record_type.full_name();
        let known = self.catalog.layers.get(layer).and_then(|tables| tables.get(&name));
        let known = known.filter(|table| !self.stale.contains(&table.number));
        if let Some(table) = known
            && table.layout == Layout::of(record_type)
        {
            if table.definition != *record_type {
                let sql = "UPDATE types SET definition = ?2 WHERE number = ?1";
                execute(self.connection, sql, params![table.number, to_text(record_type)])?;
            }
            return Ok(Table::new(table.number, record_type.clone()));
        }
        let sql = "DELETE FROM types WHERE realm = ?1 AND name = ?2";
        execute(self.connection, sql, params![layer, name])?;
        let sql = "INSERT INTO types (realm, name, definition) VALUES (?1, ?2, ?3)";
        execute(self.connection, sql, params![layer, name, to_text(record_type)])?;
        let table = Table::new(self.connection.last_insert_rowid(), record_type.clone());
        make(self.connection, &table)?;
        Ok(table)
    }

    /// Copies the records of a group into the tables where they belong from now on.
    fn fill(&self, group: &Group<'_>, catalog: &Catalog, stay: &BTreeSet<i64>) -> Result<(), Stop> {
        let Some(tables) = catalog.layers.get(group.to) else { return Ok(()) };
        for (name, table) in tables {
            let sources = self.catalog.layers.get(group.from);
            let Some(source) = sources.and_then(|sources| sources.get(name)) else { continue };
            if source.number == table.number {
                continue;
            }
            self.each(source, group, &mut |realm, record| {
                Ok(insert(self.connection, table, realm, &record)?)
            })?;
            if let Some(realm) = group.realm.filter(|_| stay.contains(&source.number)) {
                for name in [source.records(), source.keys(), source.references()] {
                    let sql = format!("DELETE FROM {name} WHERE realm = ?1");
                    execute(self.connection, &sql, [realm])?;
                }
            }
        }
        Ok(())
    }
}
