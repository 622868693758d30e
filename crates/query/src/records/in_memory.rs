//! Finding, counting and reading among records that are all in memory: what a store without a
//! database answers, and what every other one must come to.

use super::error::RecordError;
use super::names::{RecordName, RefName};
use super::page::PageRows;
use super::requests::{Access, Count, Counted, Find, Found, RecordLimits};
use crate::checked::Test;
use crate::evaluate::group::group;
use crate::evaluate::order::{Position, compare, position};
use crate::evaluate::shape::Lookup;
use crate::evaluate::{Row, passes};
use crate::types::RecordType;
use serde_json::Value;

/// The record of this name.
pub fn named<'r>(
    mut rows: impl Iterator<Item = &'r Value>,
    name: &RecordName,
) -> Option<&'r Value> {
    let member = |record: &'r Value, name: &str| record.get(name).and_then(Value::as_str);
    rows.find(|record| match name {
        RecordName::Id(id) => member(record, "id") == Some(id.as_str()),
        RecordName::RefName(name) => {
            let ref_name = member(record, "refName").unwrap_or_default();
            let domain = record.get("dataDomain").unwrap_or(&Value::Null);
            RefName::within(domain, ref_name) == *name
        }
    })
}

/// The rows that the caller sees and asks for.
pub fn matching<'r>(
    rows: impl Iterator<Item = &'r Value>,
    access: &Access,
    record_type: &RecordType,
    asked: Option<&Test>,
) -> Vec<&'r Value> {
    let filter = access.scope.filter(record_type, asked);
    let realm = access.realm.as_str();
    let is_asked = |record: &&Value| {
        filter.as_ref().is_none_or(|filter| passes(filter, Row { realm, record }))
    };
    rows.filter(is_asked).collect()
}

/// Finds what of another type a record refers to: the record first, then the other's type and id.
pub type EmbedLookup<'l> = dyn Fn(&Value, &str, &str) -> Option<Value> + 'l;

/// The page of these rows.
pub fn find<'r>(
    rows: impl Iterator<Item = &'r Value>,
    access: &Access,
    find: &Find,
    limits: &RecordLimits,
    embedded: &EmbedLookup<'_>,
) -> Result<Found, RecordError> {
    let record_type = access.record_type(&find.record_type)?;
    let realm = access.realm.as_str();
    let matching = matching(rows, access, record_type, find.query.filter.as_ref());
    let mut rows: Vec<(Position, &Value)> = matching
        .into_iter()
        .map(|record| (position(&find.sort, Row { realm, record }), record))
        .collect();
    rows.sort_by(|(left, _), (right, _)| compare(&find.sort, left, right));
    let mut found = Found { total: find.total.then_some(rows.len() as u64), ..Found::default() };
    let after = find.page.after.as_ref();
    rows.retain(|(position, _)| {
        after.is_none_or(|after| compare(&find.sort, position, after).is_gt())
    });
    let mut page = PageRows::new(&find.query, realm, limits);
    let mut last = None;
    for (place, (position, record)) in rows.iter().skip(find.page.skip).enumerate() {
        if place == find.page.limit {
            found.next = last;
            break;
        }
        let lookup: &Lookup<'_> = &|to: &str, id: &str| embedded(record, to, id);
        if let Some(cut) = page.push(record, lookup)? {
            found.cut = Some(cut);
            found.next = last;
            break;
        }
        last = Some(position.clone());
    }
    found.rows = page.rows();
    Ok(found)
}

/// How many of these rows match, and their groups.
pub fn count<'r>(
    rows: impl Iterator<Item = &'r Value>,
    access: &Access,
    count: &Count,
    limits: &RecordLimits,
) -> Result<Counted, RecordError> {
    let record_type = access.record_type(&count.record_type)?;
    let matching = matching(rows, access, record_type, count.filter.as_ref());
    let rows = matching.iter().map(|record| Row { realm: access.realm.as_str(), record });
    let groups = match &count.grouping {
        Some(grouping) => group(grouping, rows),
        None => Vec::new(),
    };
    if groups.len() > limits.groups_max {
        return Err(RecordError::TooManyGroups { max: limits.groups_max });
    }
    Ok(Counted { count: matching.len() as u64, groups })
}

/// The record of this name as the caller may see it.
pub fn get<'r>(
    rows: impl Iterator<Item = &'r Value>,
    access: &Access,
    record_type: &RecordType,
    name: &RecordName,
) -> Option<Value> {
    let is_by_name = matches!(name, RecordName::RefName(_));
    if is_by_name && access.scope.hides(record_type, "refName") {
        return None;
    }
    let found = named(rows, name)?;
    let realm = access.realm.as_str();
    if !access.scope.admits(record_type, Row { realm, record: found }) {
        return None;
    }
    let mut shown = found.clone();
    access.scope.mask(record_type, &mut shown);
    Some(shown)
}
