//! Steps of a migration: stored records and stored types are changed alike, so that what is
//! declared is compared with what they have become. Tables follow when they are rebuilt.

use super::{Stop, Work, refused, rename_references};
use crate::sqlite::records::catalog::Table;
use crate::sqlite::records::rows::{drop_tables, parsed};
use crate::sqlite::tables::columns::{execute, many};
use query::records::references::referred_ids;
use query::records::type_change::MigrationStep;
use query::types::{Field, Kind, RecordType};
use rusqlite::params;
use serde_json::{Map, Value};
use std::sync::Arc;

/// How many records are held at once while they are changed.
const SLICE: i64 = 256;

impl Work<'_> {
    /// Takes one step; how many records it changed or removed.
    pub(super) fn take(&mut self, step: &MigrationStep) -> Result<u64, Stop> {
        match step {
            MigrationStep::RenameType { from, to } => self.rename_type(from, to),
            MigrationStep::RenameField { record_type, from, to } => {
                self.rename_field(record_type, from, to)
            }
            MigrationStep::DropType { record_type } => self.drop_type(record_type),
            MigrationStep::DropField { record_type, field } => self.drop_field(record_type, field),
        }
    }

    /// The layers that have the type.
    fn layers_with(&self, name: &str) -> Result<Vec<String>, Stop> {
        let having = self.catalog.layers.iter().filter(|(_, tables)| tables.contains_key(name));
        let layers: Vec<String> = having.map(|(layer, _)| layer.clone()).collect();
        if layers.is_empty() {
            return Err(refused(format!(
                "the migration names type `{name}`, which is not stored; take the step out"
            )));
        }
        Ok(layers)
    }

    /// The layers whose type of this name has the field.
    fn layers_with_field(&self, name: &str, path: &str) -> Result<Vec<String>, Stop> {
        let mut layers = self.layers_with(name)?;
        layers.retain(|layer| {
            let table = self.catalog.layers.get(layer).and_then(|tables| tables.get(name));
            table.is_some_and(|table| {
                taken_out(&mut table.definition.fields.clone(), path).is_some()
            })
        });
        if layers.is_empty() { Err(no_field(name, path)) } else { Ok(layers) }
    }

    fn table(&self, layer: &str, name: &str) -> Result<Arc<Table>, Stop> {
        let found = self.catalog.layers.get(layer).and_then(|tables| tables.get(name));
        found.cloned().ok_or_else(|| refused(format!("type `{name}` is not stored")))
    }

    /// Puts a type in the place of one that has the same tables.
    fn redefine(&mut self, layer: &str, before: &str, number: i64, definition: RecordType) {
        let tables = self.catalog.layers.entry(layer.to_owned()).or_default();
        tables.remove(before);
        let name = definition.full_name();
        tables.insert(name, Arc::new(Table::new(number, definition)));
        self.stale.insert(number);
    }

    fn rename_type(&mut self, from: &str, to: &str) -> Result<u64, Stop> {
        let mut changed = 0;
        for layer in self.layers_with(from)? {
            if self.catalog.layers.get(&layer).is_some_and(|tables| tables.contains_key(to)) {
                return Err(refused(format!(
                    "type `{from}` cannot be renamed: there is a type `{to}` already; drop it \
                     first"
                )));
            }
            let table = self.table(&layer, from)?;
            let mut definition = table.definition.clone();
            let (namespace, name) = to.rsplit_once('.').unwrap_or(("", to));
            definition.namespace = namespace.to_owned();
            definition.name = name.to_owned();
            changed += self.count(&table)?;
            self.redefine(&layer, from, table.number, definition);
            changed += self.refer_to(&layer, from, to)?;
        }
        let sql = "UPDATE outcomes SET body = json_set(body, '$.type', ?2) \
             WHERE json_extract(body, '$.type') = ?1";
        execute(self.connection, sql, params![from, to])?;
        let sql = "UPDATE OR REPLACE seeded SET type = ?2 WHERE type = ?1";
        execute(self.connection, sql, params![from, to])?;
        Ok(changed)
    }

    /// Gives references the new name of their type; how many records of other types have some.
    fn refer_to(&mut self, layer: &str, from: &str, to: &str) -> Result<u64, Stop> {
        let tables: Vec<Arc<Table>> = self.catalog.layer(layer).cloned().collect();
        let mut changed = 0;
        for table in tables {
            let paths: Vec<String> = paths_to(&table.definition, from);
            if paths.is_empty() {
                continue;
            }
            let mut definition = table.definition.clone();
            let name = |name: &str| if name == from { to.to_owned() } else { name.to_owned() };
            definition.fields.iter_mut().for_each(|field| rename_references(field, &name));
            let records = self.rewrite(&table, &mut |record| {
                let mut is_changed = false;
                for path in &paths {
                    let names: Vec<&str> = path.split('.').collect();
                    each_object(record, &names, &mut |reference| {
                        if reference.contains_key("entityId") {
                            let to = Value::String(to.to_owned());
                            reference.insert("entityType".to_owned(), to);
                            is_changed = true;
                        }
                    });
                }
                Ok(is_changed)
            })?;
            let own_name = definition.full_name();
            if own_name != to {
                changed += records;
            }
            self.redefine(layer, &own_name, table.number, definition);
        }
        Ok(changed)
    }

    fn rename_field(&mut self, name: &str, from: &str, to: &str) -> Result<u64, Stop> {
        let mut changed = 0;
        for layer in self.layers_with_field(name, from)? {
            let table = self.table(&layer, name)?;
            let mut definition = table.definition.clone();
            let field =
                taken_out(&mut definition.fields, from).ok_or_else(|| no_field(name, from))?;
            let last = to.rsplit('.').next().unwrap_or(to).to_owned();
            let is_put = put_in(&mut definition.fields, to, Field { name: last, ..field });
            if !is_put || !is_same_way(&table.definition, from, to) {
                return Err(refused(format!(
                    "field `{from}` of type `{name}` cannot become `{to}`: the path is taken, or \
                     leads through a list or a field that is no object; choose another one"
                )));
            }
            for paths in definition.unique.iter_mut().chain(&mut definition.indexes) {
                paths.iter_mut().for_each(|path| *path = renamed(path, from, to));
            }
            changed += self.rewrite(&table, &mut |record| {
                moved(record, from, to).map_err(|()| {
                    refused(format!(
                        "field `{from}` of type `{name}` cannot become `{to}`: a record has both; \
                         drop one of them first"
                    ))
                })
            })?;
            self.redefine(&layer, name, table.number, definition);
        }
        Ok(changed)
    }

    fn drop_type(&mut self, name: &str) -> Result<u64, Stop> {
        let mut removed = 0;
        for layer in self.layers_with(name)? {
            let table = self.table(&layer, name)?;
            let others: Vec<Arc<Table>> = self.catalog.layer(&layer).cloned().collect();
            for other in others.iter().filter(|other| other.number != table.number) {
                let paths = paths_to(&other.definition, name);
                if paths.is_empty() {
                    continue;
                }
                let other_name = other.definition.full_name();
                self.rewrite(other, &mut |record| {
                    let refers = |path: &String| !referred_ids(record, path).is_empty();
                    if paths.iter().any(refers) {
                        return Err(refused(format!(
                            "type `{name}` cannot be dropped: records of `{other_name}` refer to \
                             its records; drop these fields first"
                        )));
                    }
                    Ok(false)
                })?;
            }
            removed += self.count(&table)?;
            drop_tables(self.connection, &table)?;
            execute(self.connection, "DELETE FROM types WHERE number = ?1", [table.number])?;
            if let Some(tables) = self.catalog.layers.get_mut(&layer) {
                tables.remove(name);
            }
        }
        execute(self.connection, "DELETE FROM seeded WHERE type = ?1", [name])?;
        Ok(removed)
    }

    fn drop_field(&mut self, name: &str, path: &str) -> Result<u64, Stop> {
        let mut changed = 0;
        for layer in self.layers_with_field(name, path)? {
            let table = self.table(&layer, name)?;
            let mut definition = table.definition.clone();
            taken_out(&mut definition.fields, path).ok_or_else(|| no_field(name, path))?;
            let has_it = |paths: &Vec<String>| paths.iter().any(|other| is_in(other, path));
            definition.unique.retain(|paths| !has_it(paths));
            definition.indexes.retain(|paths| !has_it(paths));
            let names: Vec<&str> = path.split('.').collect();
            let Some((last, within)) = names.split_last() else { continue };
            changed += self.rewrite(&table, &mut |record| {
                let mut is_changed = false;
                each_object(record, within, &mut |members| {
                    is_changed |= members.shift_remove(*last).is_some();
                });
                Ok(is_changed)
            })?;
            self.redefine(&layer, name, table.number, definition);
        }
        Ok(changed)
    }

    fn count(&self, table: &Table) -> Result<u64, Stop> {
        let sql = format!("SELECT count(*) FROM {}", table.records());
        let count: i64 = self.connection.query_row(&sql, (), |row| row.get(0))?;
        Ok(u64::try_from(count).unwrap_or_default())
    }

    /// Changes the records of a table, and says how many.
    fn rewrite(
        &self,
        table: &Table,
        act: &mut dyn FnMut(&mut Value) -> Result<bool, Stop>,
    ) -> Result<u64, Stop> {
        let name = table.records();
        let select = format!(
            "SELECT rowid, record FROM {name} WHERE rowid > ?1 ORDER BY rowid LIMIT {SLICE}"
        );
        let update = format!("UPDATE {name} SET record = ?2 WHERE rowid = ?1");
        let mut last = i64::MIN;
        let mut changed = 0;
        loop {
            let rows = many(self.connection, &select, [last], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
            })?;
            let Some((end, _)) = rows.last() else { return Ok(changed) };
            last = *end;
            for (number, text) in rows {
                let mut record = parsed(&text)?;
                if act(&mut record)? {
                    execute(self.connection, &update, params![number, record.to_string()])?;
                    changed += 1;
                }
            }
        }
    }
}

fn no_field(record_type: &str, path: &str) -> Stop {
    refused(format!(
        "the migration names field `{path}` of type `{record_type}`, which is not stored; take the \
         step out"
    ))
}

/// The paths that refer to the type of this full name.
fn paths_to(record_type: &RecordType, to: &str) -> Vec<String> {
    let references = record_type.references().into_iter();
    references.filter(|(_, name)| *name == to).map(|(path, _)| path).collect()
}

/// Whether a path is this one, or leads into it.
fn is_in(path: &str, field: &str) -> bool {
    path.strip_prefix(field).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn renamed(path: &str, from: &str, to: &str) -> String {
    if is_in(path, from) { format!("{to}{}", &path[from.len()..]) } else { path.to_owned() }
}

fn within(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(within, _)| within)
}

/// Whether values can go from one path to the other: in the same object, or through objects only.
fn is_same_way(record_type: &RecordType, from: &str, to: &str) -> bool {
    let has_list = |path: &str| {
        let parent = within(path);
        let known = record_type.field(parent);
        !parent.is_empty() && known.is_none_or(|field| !matches!(field.kind, Kind::Object(_)))
    };
    let is_new = record_type.field(within(to)).is_none();
    within(from) == within(to) || (!has_list(from) && (is_new || !has_list(to)))
}

/// Takes a field out of these, which may lie in objects and in lists of them.
fn taken_out(fields: &mut Vec<Field>, path: &str) -> Option<Field> {
    let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
    let place = fields.iter().position(|field| field.name == name)?;
    match rest {
        None => Some(fields.remove(place)),
        Some(rest) => taken_out(inner(&mut fields.get_mut(place)?.kind)?, rest),
    }
}

/// Puts a field where a path leads, unless there is one. Objects on the way are made.
fn put_in(fields: &mut Vec<Field>, path: &str, field: Field) -> bool {
    let Some((name, rest)) = path.split_once('.') else {
        let is_free = fields.iter().all(|other| other.name != field.name);
        if is_free {
            fields.push(field);
        }
        return is_free;
    };
    if fields.iter().all(|other| other.name != name) {
        fields.push(Field::new(name, Kind::Object(Vec::new())));
    }
    let found = fields.iter_mut().find(|other| other.name == name);
    let inner = found.and_then(|found| inner(&mut found.kind));
    inner.is_some_and(|inner| put_in(inner, rest, field))
}

fn inner(kind: &mut Kind) -> Option<&mut Vec<Field>> {
    match kind {
        Kind::Object(fields) => Some(fields),
        Kind::Array(of) => inner(of),
        _ => None,
    }
}

/// Moves a value of a record to another path; an error where there is one already.
fn moved(record: &mut Value, from: &str, to: &str) -> Result<bool, ()> {
    let from_names: Vec<&str> = from.split('.').collect();
    let to_names: Vec<&str> = to.split('.').collect();
    let (Some((last, parents)), Some((new, new_parents))) =
        (from_names.split_last(), to_names.split_last())
    else {
        return Ok(false);
    };
    let mut is_taken = false;
    let mut is_changed = false;
    if parents == new_parents {
        each_object(record, parents, &mut |members| {
            let Some(value) = members.shift_remove(*last) else { return };
            is_taken |= members.get(*new).is_some_and(|there| !there.is_null());
            members.insert((*new).to_owned(), value);
            is_changed = true;
        });
        return if is_taken { Err(()) } else { Ok(is_changed) };
    }
    let mut value = None;
    each_object(record, parents, &mut |members| value = members.shift_remove(*last));
    let Some(value) = value else { return Ok(false) };
    let mut place = record;
    for name in new_parents {
        let Value::Object(members) = place else { return Err(()) };
        place = members.entry(*name).or_insert_with(|| Value::Object(Map::new()));
        if place.is_null() {
            *place = Value::Object(Map::new());
        }
    }
    let Value::Object(members) = place else { return Err(()) };
    if members.get(*new).is_some_and(|there| !there.is_null()) {
        return Err(());
    }
    members.insert((*new).to_owned(), value);
    Ok(true)
}

/// Does this with each object at the end of a path, in lists each for itself.
fn each_object(value: &mut Value, names: &[&str], act: &mut dyn FnMut(&mut Map<String, Value>)) {
    match (value, names.split_first()) {
        (Value::Array(elements), _) => {
            elements.iter_mut().for_each(|element| each_object(element, names, act));
        }
        (Value::Object(members), None) => act(members),
        (Value::Object(members), Some((name, rest))) => {
            if let Some(inner) = members.get_mut(*name) {
                each_object(inner, rest, act);
            }
        }
        _ => {}
    }
}
