//! A save, decided: what is stored afterwards, or why not. A store looks up what is asked here,
//! sees that no other record has one of the keys, and writes, all in one transaction.

use super::error::{FieldMistake, RecordError};
use super::hidden::{keep, named};
use super::merge::merged;
use super::names::{RecordName, RefName, read_id};
use super::outcome::{Outcome, version_of};
use super::references::{Resolver, Stored, references_in};
use super::requests::{Access, Save, SaveMode, Write};
use super::scope::is_hidden;
use super::stamp::{Stamped, domain_of, stamp};
use super::unique::{UniqueKey, unique_keys};
use super::values::Reader;
use crate::evaluate::Row;
use crate::names::NameSet;
use crate::types::{RecordType, built_in_fields};
use kernel::values::members::{is_deeper, take};
use serde_json::{Map, Value};
use std::iter::once;

/// How deep lists and objects stand in each other in a record. Others stand around it where it is
/// stored and shown, and a reader of JSON goes down 127 levels in all.
const DEPTH_MAX: usize = 64;

/// What the caller is told of a mistake in a field that does not exist for it.
const NOT_FOR_THIS_CALLER: &str = "cannot be saved by this caller";

/// What is written, once no other record has one of the keys.
#[derive(Debug, Clone, PartialEq)]
pub struct SavePlan {
    pub id: String,
    pub before: Option<Value>,
    /// Whole: with what is hidden from the caller.
    pub record: Value,
    pub unique: Vec<UniqueKey>,
}

impl SavePlan {
    /// What is stored under the call id, and answered.
    pub fn outcome(&self, record_type: &str) -> Outcome {
        Outcome::Saved {
            record_type: record_type.to_owned(),
            is_new: self.before.is_none(),
            record: self.record.clone(),
        }
    }
}

/// The bytes of a record, as they count against limits.
pub fn record_bytes(record: &Value) -> usize {
    record.to_string().len()
}

pub fn plan_save(
    access: &Access,
    save: &Save,
    write: &Write,
    bytes_max: usize,
    stored: &dyn Stored,
) -> Result<SavePlan, RecordError> {
    let record_type = access.record_type(&save.record_type)?;
    let Value::Object(entity) = &save.entity else {
        return Err(invalid("", "must be an object"));
    };
    if is_deeper(&save.entity, DEPTH_MAX) {
        return Err(invalid("", &format!("nests deeper than {DEPTH_MAX} levels")));
    }
    let mut entity = entity.clone();
    let expected = expected_version(&mut entity, save.expected)?;
    let given_id = given_id(&mut entity)?;
    let name = match given_id {
        Some(id) => Some(RecordName::Id(id)),
        None if save.mode == SaveMode::Merge => named_by(access, record_type, &entity, write),
        None => None,
    };
    let before = match &name {
        Some(name) => stored.record(record_type, name)?,
        None => None,
    };
    let before = may_save(access, record_type, save.mode, expected, before)?;
    let found = before.as_ref().map_or(0, version_of);
    if let Some(expected) = expected.filter(|expected| *expected != found) {
        return Err(RecordError::VersionConflict { expected, found });
    }
    let old_id = before.as_ref().and_then(|before| before.get("id")?.as_str());
    let id = match (old_id, name) {
        (Some(id), _) => id.to_owned(),
        (None, Some(RecordName::Id(id))) => id,
        (None, _) => save.fresh_id.clone(),
    };
    let new = Entity { record_type, id: &id, before: before.as_ref(), members: entity };
    let record = new.record(access, save.mode, write, stored)?;
    if record_bytes(&record) > bytes_max {
        return Err(RecordError::TooLarge { max: bytes_max });
    }
    if !access.scope.admits(record_type, Row { realm: access.realm.as_str(), record: &record }) {
        return Err(RecordError::OutOfScope);
    }
    let unique = unique_keys(record_type, &record);
    Ok(SavePlan { id, before, record, unique })
}

/// The record before the save, if the save may be. One that the caller does not see is not there,
/// but nothing takes its id.
fn may_save(
    access: &Access,
    record_type: &RecordType,
    mode: SaveMode,
    expected: Option<u64>,
    before: Option<Value>,
) -> Result<Option<Value>, RecordError> {
    match (mode, before) {
        (SaveMode::Insert, Some(_)) => Err(RecordError::DuplicateKey(vec!["id".to_owned()])),
        (SaveMode::Merge, None) => Err(RecordError::NotFound),
        (SaveMode::Merge | SaveMode::Put, Some(record)) => {
            let row = Row { realm: access.realm.as_str(), record: &record };
            match expected.filter(|expected| mode == SaveMode::Put && *expected > 0) {
                _ if access.scope.admits(record_type, row) => Ok(Some(record)),
                Some(expected) => Err(RecordError::VersionConflict { expected, found: 0 }),
                None => Err(RecordError::NotFound),
            }
        }
        (SaveMode::Insert | SaveMode::Put, None) => Ok(None),
    }
}

fn invalid(field: &str, message: &str) -> RecordError {
    let mistake = FieldMistake { field: field.to_owned(), message: message.to_owned() };
    RecordError::InvalidEntity(vec![mistake])
}

/// `id` and `_id` are the same.
fn given_id(entity: &mut Map<String, Value>) -> Result<Option<String>, RecordError> {
    let mut found: Option<String> = None;
    for name in ["id", "_id"] {
        let id = match take(entity, name) {
            None | Some(Value::Null) => continue,
            Some(Value::String(text)) => read_id(&text).ok_or(RecordError::InvalidId(text))?,
            Some(other) => return Err(RecordError::InvalidId(other.to_string())),
        };
        if found.as_ref().is_some_and(|found| *found != id) {
            return Err(RecordError::InvalidId(id));
        }
        found = Some(id);
    }
    Ok(found)
}

/// The version that the record must have: as the request says, or the record itself.
fn expected_version(
    entity: &mut Map<String, Value>,
    expected: Option<u64>,
) -> Result<Option<u64>, RecordError> {
    let within = match take(entity, "version") {
        None | Some(Value::Null) => None,
        Some(version) => match version.as_u64() {
            Some(version) => Some(version),
            None => return Err(invalid("version", "must be a whole number from 0")),
        },
    };
    match (expected, within) {
        (Some(expected), Some(within)) if expected != within => {
            Err(RecordError::VersionConflict { expected, found: within })
        }
        _ => Ok(expected.or(within)),
    }
}

/// The record that a merge without an id means.
fn named_by(
    access: &Access,
    record_type: &RecordType,
    entity: &Map<String, Value>,
    write: &Write,
) -> Option<RecordName> {
    if access.scope.hides(record_type, "refName") {
        return None;
    }
    let ref_name = entity.get("refName").and_then(Value::as_str)?;
    let domain = domain_of(&write.author, &access.realm);
    Some(RecordName::RefName(RefName::within(&domain, ref_name)))
}

/// What is to be saved, without id and version.
struct Entity<'s> {
    record_type: &'s RecordType,
    id: &'s str,
    before: Option<&'s Value>,
    members: Map<String, Value>,
}

impl Entity<'_> {
    /// As it is stored.
    fn record(
        self,
        access: &Access,
        mode: SaveMode,
        write: &Write,
        stored: &dyn Stored,
    ) -> Result<Value, RecordError> {
        let record_type = self.record_type;
        let id = self.id;
        let before = self.before;
        let hidden = access.scope.hidden_in(record_type);
        let mut in_vain = self.named_in_vain(&hidden);
        let mut members = self.composed(mode, &hidden);
        let mut reader = Reader::default();
        for name in ["id", "version", "auditInfo"] {
            take(&mut members, name);
        }
        let built_in = reader.declared(built_in_fields(), &mut members, "");
        let mut declared = reader.declared(&record_type.fields, &mut members, "");
        members.retain(|_, value| !value.is_null());
        let Stamped { head, tail } = stamp(built_in, id, before, write, &access.realm, &mut reader);
        let own = Value::Object(head.iter().chain(&tail).map(owned).collect());
        let references = |record: &Value| references_in(access, record_type, record);
        let shown = before.cloned().map(|mut old| {
            hidden.drop_from(&mut old);
            old
        });
        let resolver = Resolver {
            access,
            stored,
            hidden: &hidden,
            visible: shown.as_ref().map(references).unwrap_or_default(),
            known: before.map(references).unwrap_or_default(),
            own: (record_type, &own),
        };
        resolver.members(&record_type.fields, &mut declared, "", &mut reader)?;
        let told = |mistake: FieldMistake| match is_hidden(&hidden, &mistake.field) {
            true => not_for_this_caller(),
            false => mistake,
        };
        let mut mistakes: Vec<FieldMistake> = reader.mistakes.into_iter().map(told).collect();
        let is_unknown = |name: &&String| !record_type.additional_fields || *name == "realm";
        let mut unknown = Reader::default();
        let known = visible_names(record_type, &hidden);
        unknown.unknown(members.keys().filter(is_unknown), &known, "");
        in_vain.extend(unknown.mistakes);
        // In an order that does not tell what is hidden from what there is not.
        in_vain.sort_by(|left, right| left.field.cmp(&right.field));
        mistakes.extend(in_vain);
        mistakes.dedup();
        if !mistakes.is_empty() {
            return Err(RecordError::InvalidEntity(mistakes));
        }
        Ok(Value::Object(head.into_iter().chain(declared).chain(members).chain(tail).collect()))
    }

    /// Hidden fields that are named are unknown ones. Where any name is taken, they are ignored.
    fn named_in_vain(&self, hidden: &NameSet) -> Vec<FieldMistake> {
        let mut found = Vec::new();
        for (name, value) in &self.members {
            let one = Value::Object([(name.clone(), value.clone())].into_iter().collect());
            let is_declared = self.record_type.all_fields().any(|field| field.name == *name);
            if is_declared || !self.record_type.additional_fields {
                named(hidden, &one, "", &mut found);
            }
        }
        let mut reader = Reader::default();
        let known = visible_names(self.record_type, hidden);
        for (place, name) in &found {
            let known: &[&str] = if place.is_empty() { &known } else { &[] };
            reader.unknown(once(name), known, place);
        }
        reader.mistakes
    }

    /// What the caller gives, over the old record in a merge, with what is hidden of the old one.
    fn composed(self, mode: SaveMode, hidden: &NameSet) -> Map<String, Value> {
        let mut given = Value::Object(self.members);
        hidden.drop_from(&mut given);
        let given = into_members(given);
        let members = match (mode, self.before) {
            (SaveMode::Merge, Some(before)) => {
                let mut visible = before.clone();
                hidden.drop_from(&mut visible);
                merged(&self.record_type.fields, into_members(visible), given)
            }
            _ => given,
        };
        let mut composed = Value::Object(members);
        if let Some(before) = self.before {
            keep(hidden, before, &mut composed);
        }
        into_members(composed)
    }
}

fn not_for_this_caller() -> FieldMistake {
    FieldMistake { field: String::new(), message: NOT_FOR_THIS_CALLER.to_owned() }
}

fn visible_names<'t>(record_type: &'t RecordType, hidden: &NameSet) -> Vec<&'t str> {
    let names = record_type.all_fields().map(|field| field.name.as_str());
    names.filter(|name| !is_hidden(hidden, name)).collect()
}

fn into_members(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

fn owned((name, value): (&String, &Value)) -> (String, Value) {
    (name.clone(), value.clone())
}
