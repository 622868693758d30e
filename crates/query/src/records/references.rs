//! References in a record that is saved: given as id, refName or object, stored with the names
//! that the record has to which they lead. It must be in the same tenant, and the caller must see
//! it. A reference that is there already stays, even if the caller does not see where it leads.

use super::error::{RecordError, Referrer};
use super::names::{RecordName, read_id};
use super::requests::Access;
use super::scope::is_hidden;
use super::values::{Reader, joined};
use crate::evaluate::Row;
use crate::names::NameSet;
use crate::types::{Field, Kind, RecordType, TypeSet};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const REFERRERS_SHOWN_MAX: usize = 10;

/// What a store looks up for a save, in the transaction of the save and in the realm of the
/// request. Records are whole: nothing is hidden.
pub trait Stored {
    fn record(
        &self,
        record_type: &RecordType,
        name: &RecordName,
    ) -> Result<Option<Value>, RecordError>;
}

/// By the full name of the type and the id.
pub(super) type References = BTreeMap<(String, String), Value>;

pub(super) struct Resolver<'r> {
    pub(super) access: &'r Access,
    pub(super) stored: &'r dyn Stored,
    pub(super) hidden: &'r NameSet,
    /// The references of the record before the save that the caller sees.
    pub(super) visible: References,
    /// All of them: for what stays of hidden fields.
    pub(super) known: References,
    /// The record that is saved: its type, and itself with id, names and data domain.
    pub(super) own: (&'r RecordType, &'r Value),
}

impl Resolver<'_> {
    pub(super) fn members(
        &self,
        fields: &[Field],
        members: &mut Map<String, Value>,
        place: &str,
        reader: &mut Reader,
    ) -> Result<(), RecordError> {
        for field in fields {
            if let Some(value) = members.get_mut(&field.name) {
                self.value(&field.kind, value, &joined(place, &field.name), reader)?;
            }
        }
        Ok(())
    }

    fn value(
        &self,
        kind: &Kind,
        value: &mut Value,
        path: &str,
        reader: &mut Reader,
    ) -> Result<(), RecordError> {
        match (kind, value) {
            (Kind::Array(inner), Value::Array(elements)) => {
                for (index, element) in elements.iter_mut().enumerate() {
                    self.value(inner, element, &format!("{path}[{index}]"), reader)?;
                }
            }
            (Kind::Object(fields), Value::Object(members)) => {
                self.members(fields, members, path, reader)?;
            }
            (Kind::Reference(to), value) => match self.resolved(to, value, path)? {
                Ok(reference) => *value = reference,
                Err(message) => reader.wrong(path, message),
            },
            _ => {}
        }
        Ok(())
    }

    fn resolved(
        &self,
        to: &str,
        given: &Value,
        path: &str,
    ) -> Result<Result<Value, String>, RecordError> {
        let to = self.access.record_type(to)?;
        let (own_type, own) = self.own;
        let domain = own.get("dataDomain").unwrap_or(&Value::Null);
        let name = match named(to, given, domain) {
            Ok(name) => name,
            Err(message) => return Ok(Err(message)),
        };
        let to_name = to.full_name();
        if let RecordName::Id(id) = &name
            && own_type.full_name() == to_name
            && own.get("id").and_then(Value::as_str) == Some(id.as_str())
        {
            return Ok(Ok(reference(to, own)));
        }
        let is_nameless = self.access.scope.hides(to, "refName");
        let found = match &name {
            RecordName::RefName(_) if is_nameless => None,
            RecordName::RefName(_) | RecordName::Id(_) => self.stored.record(to, &name)?,
        };
        let found = found.filter(|found| {
            let row = Row { realm: self.access.realm.as_str(), record: found };
            tenant_of(found) == tenant_of(own) && self.access.scope.admits(to, row)
        });
        if let Some(found) = found {
            return Ok(Ok(reference(to, &found)));
        }
        let known = if is_hidden(self.hidden, path) { &self.known } else { &self.visible };
        let known = match name {
            RecordName::Id(id) => known.get(&(to_name, id)).cloned(),
            RecordName::RefName(_) => None,
        };
        Ok(known.ok_or_else(|| format!("refers to no {}", to.name)))
    }
}

/// A reference to this record, as it is stored and shown.
pub fn reference(to: &RecordType, record: &Value) -> Value {
    let member = |name: &str| record.get(name).cloned().unwrap_or_default();
    json!({
        "entityId": member("id"),
        "entityType": to.full_name(),
        "entityRefName": member("refName"),
        "entityDisplayName": member("displayName"),
    })
}

/// The references in a record that is stored.
pub(super) fn references_in(
    access: &Access,
    record_type: &RecordType,
    record: &Value,
) -> References {
    let mut found = BTreeMap::new();
    for (path, to) in record_type.references() {
        let Ok(to) = access.types.find(to) else { continue };
        let names: Vec<&str> = path.split('.').collect();
        each_at(record, &names, &mut |reference| {
            if let Some(id) = reference.get("entityId").and_then(Value::as_str) {
                found.insert((to.full_name(), id.to_owned()), reference.clone());
            }
        });
    }
    found
}

/// The ids in a field of references.
pub fn referred_ids<'v>(record: &'v Value, path: &str) -> Vec<&'v str> {
    let names: Vec<&str> = path.split('.').collect();
    let mut found = Vec::new();
    each_at(record, &names, &mut |reference| {
        found.extend(reference.get("entityId").and_then(Value::as_str));
    });
    found
}

/// The fields that can refer to records of this type, with the types that have them.
pub fn referring_fields<'t>(
    types: &'t TypeSet,
    record_type: &RecordType,
) -> Vec<(&'t RecordType, String)> {
    let name = record_type.full_name();
    let mut found = Vec::new();
    for referrer in types.all() {
        for (path, to) in referrer.references() {
            if types.find(to).is_ok_and(|to| to.full_name() == name) {
                found.push((referrer, path));
            }
        }
    }
    found
}

/// Whether a record takes the place of a reference in the row of the caller.
pub fn may_embed(access: &Access, row: &Value, to: &RecordType, found: &Value) -> bool {
    let embedded = Row { realm: access.realm.as_str(), record: found };
    tenant_of(row) == tenant_of(found) && access.scope.admits(to, embedded)
}

/// Why a record stays: of those that refer to it, each with the field, the caller is told the
/// first that it may see.
pub fn still_referred_to<'r>(
    access: &Access,
    referrers: impl IntoIterator<Item = (&'r RecordType, &'r str, &'r Value)>,
) -> RecordError {
    let is_visible = |(record_type, field, record): &(&RecordType, &str, &Value)| {
        let row = Row { realm: access.realm.as_str(), record };
        access.scope.admits(record_type, row) && !access.scope.hides(record_type, field)
    };
    let shown = |(record_type, field, record): (&RecordType, &str, &Value)| Referrer {
        record_type: record_type.full_name(),
        id: record.get("id").and_then(Value::as_str).unwrap_or_default().to_owned(),
        field: field.to_owned(),
    };
    let visible = referrers.into_iter().filter(is_visible).map(shown);
    RecordError::ReferentialIntegrity(visible.take(REFERRERS_SHOWN_MAX).collect())
}

/// The tenant that a record belongs to.
pub fn tenant_of(record: &Value) -> Option<&str> {
    record.get("dataDomain")?.get("tenantId")?.as_str()
}

fn each_at<'v>(value: &'v Value, names: &[&str], look: &mut dyn FnMut(&'v Value)) {
    match (value, names.split_first()) {
        (Value::Array(elements), _) => {
            elements.iter().for_each(|element| each_at(element, names, look));
        }
        (value, None) => look(value),
        (Value::Object(members), Some((name, rest))) => {
            if let Some(inner) = members.get(*name) {
                each_at(inner, rest, look);
            }
        }
        _ => {}
    }
}

/// An id is taken before a refName.
fn named(to: &RecordType, given: &Value, domain: &Value) -> Result<RecordName, String> {
    if let Value::String(text) = given {
        return Ok(RecordName::read(text, domain));
    }
    let text =
        |names: &[&str]| names.iter().find_map(|name| given.get(*name).and_then(Value::as_str));
    if let Some(of) = given.get("entityType").and_then(Value::as_str)
        && of != to.name
        && of != to.full_name()
    {
        return Err(format!("must refer to a {}", to.full_name()));
    }
    if let Some(id) = text(&["entityId", "id", "_id"]) {
        let id = read_id(id).ok_or_else(|| format!("`{id}` is not an id"))?;
        return Ok(RecordName::Id(id));
    }
    match text(&["entityRefName", "refName"]) {
        Some(ref_name) => Ok(RecordName::read(ref_name, domain)),
        None => Err("needs an `entityId` or an `entityRefName`".to_owned()),
    }
}
