//! Writes, each in the transaction of one job. What is refused is refused before anything is
//! written.

use super::reading::Reading;
use super::rows::{self, holder, id_of, put};
use crate::sqlite::tables::columns::{execute, one};
use kernel::values::ids::Millis;
use query::evaluate::Row;
use query::records::delete::{may_delete, may_delete_many};
use query::records::error::RecordError;
use query::records::names::RecordName;
use query::records::outcome::{KeptOutcome, Outcome, is_kept};
use query::records::references::{Stored, referring_fields, still_referred_to};
use query::records::requests::{Delete, DeleteMany, Save, Saved, Write};
use query::records::save::plan_save;
use query::records::unique::duplicate;
use query::types::RecordType;
use rusqlite::params;
use serde_json::Value;
use std::collections::BTreeSet;

/// How many visible referrers are looked for: more are not shown.
const REFERRERS_MAX: usize = 10;

type Answer<T> = Result<T, RecordError>;

impl Reading<'_> {
    pub(super) fn save(&self, save: &Save, write: &Write) -> Answer<Saved> {
        let record_type = self.access.record_type(&save.record_type)?;
        let type_name = record_type.full_name();
        if let Some(outcome) = self.known(write)? {
            return outcome.saved(self.access, &type_name);
        }
        let bytes_max = self.limits.record_bytes_max;
        let plan = plan_save(self.access, save, write, bytes_max, self)?;
        let table = self.table(record_type)?;
        let realm = self.access.realm.as_str();
        for key in &plan.unique {
            let other =
                holder(self.connection, table, realm, key).map_err(|error| self.failed(error))?;
            if other.is_some_and(|other| other != plan.id) {
                return Err(duplicate(self.access, record_type, key));
            }
        }
        let outcome = plan.outcome(&type_name);
        put(self.connection, table, realm, plan.before.as_ref(), &plan.record)
            .map_err(|error| self.failed(error))?;
        self.note(write, &outcome)?;
        outcome.saved(self.access, &type_name)
    }

    pub(super) fn delete(&self, delete: &Delete, write: &Write) -> Answer<()> {
        let record_type = self.access.record_type(&delete.record_type)?;
        let type_name = record_type.full_name();
        if let Some(outcome) = self.known(write)? {
            return outcome.deleted(&type_name).map(|_| ());
        }
        let found = self.record(record_type, &RecordName::Id(delete.id.clone()))?;
        let record = may_delete(self.access, record_type, found, delete.expected)?;
        self.may_go(record_type, &BTreeSet::from([delete.id.as_str()]))?;
        self.remove(record_type, &[record])?;
        self.note(write, &Outcome::Deleted { record_type: type_name, count: 1 })
    }

    pub(super) fn delete_many(&self, delete: &DeleteMany, write: &Write) -> Answer<u64> {
        let record_type = self.access.record_type(&delete.record_type)?;
        let type_name = record_type.full_name();
        if !delete.is_dry_run
            && let Some(outcome) = self.known(write)?
        {
            return outcome.deleted(&type_name);
        }
        let max = self.limits.delete_many_max.saturating_add(1);
        let records = self.some(record_type, delete.filter.as_ref(), max)?;
        let count = records.len() as u64;
        may_delete_many(delete, count, self.limits)?;
        self.may_go(record_type, &records.iter().map(id_of).collect())?;
        if !delete.is_dry_run {
            self.remove(record_type, &records)?;
            self.note(write, &Outcome::Deleted { record_type: type_name, count })?;
        }
        Ok(count)
    }

    /// Whether no record refers to these that is not one of them.
    fn may_go(&self, record_type: &RecordType, ids: &BTreeSet<&str>) -> Answer<()> {
        let mut is_referred_to = false;
        let mut visible: Vec<(&RecordType, String, Value)> = Vec::new();
        let fields = referring_fields(&self.access.types, record_type);
        for (referrer, path) in &fields {
            let is_same_type = referrer.full_name() == record_type.full_name();
            for id in self.referrers(referrer, path, ids)? {
                if is_same_type && ids.contains(id.as_str()) {
                    continue;
                }
                is_referred_to = true;
                if visible.len() >= REFERRERS_MAX || self.access.scope.hides(referrer, path) {
                    break;
                }
                let found = Stored::record(self, referrer, &RecordName::Id(id))?;
                let realm = self.access.realm.as_str();
                let shown = found
                    .filter(|record| self.access.scope.admits(referrer, Row { realm, record }));
                visible.extend(shown.map(|record| (*referrer, path.clone(), record)));
            }
        }
        if !is_referred_to {
            return Ok(());
        }
        let referrers = visible.iter().map(|(of, path, record)| (*of, path.as_str(), record));
        Err(still_referred_to(self.access, referrers))
    }

    /// The ids of the records that refer to these by this field, in their order.
    fn referrers(
        &self,
        referrer: &RecordType,
        path: &str,
        ids: &BTreeSet<&str>,
    ) -> Answer<BTreeSet<String>> {
        // Of types that are not stored here there are no records.
        let Ok(table) = self.table(referrer) else { return Ok(BTreeSet::new()) };
        let sql = format!(
            "SELECT id FROM {} WHERE realm = ?1 AND field = ?2 AND refers_to = ?3",
            table.references()
        );
        let realm = self.access.realm.as_str();
        let failed = |error: rusqlite::Error| self.failed(error.into());
        let mut statement = self.connection.prepare_cached(&sql).map_err(failed)?;
        let mut found = BTreeSet::new();
        for &id in ids {
            let rows = statement.query_map([realm, path, id], |row| row.get::<_, String>(0));
            for referrer in rows.map_err(failed)? {
                found.insert(referrer.map_err(failed)?);
            }
        }
        Ok(found)
    }

    fn remove(&self, record_type: &RecordType, records: &[Value]) -> Answer<()> {
        let table = self.table(record_type)?;
        let realm = self.access.realm.as_str();
        for record in records {
            rows::remove(self.connection, table, realm, record)
                .map_err(|error| self.failed(error))?;
        }
        Ok(())
    }

    /// What this call did, if it was made before.
    fn known(&self, write: &Write) -> Answer<Option<Outcome>> {
        let Some(call) = write.call else { return Ok(None) };
        let sql = "SELECT at, body FROM outcomes WHERE realm = ?1 AND call = ?2";
        let params = params![self.access.realm.as_str(), call.0.to_be_bytes()];
        let stored = one(self.connection, sql, params, |row| {
            Ok((Millis(row.get(0)?), rows::parsed(&row.get::<_, String>(1)?)?))
        });
        let Some((at, body)) = stored.map_err(|error| self.failed(error))? else { return Ok(None) };
        if !is_kept(at, write.at) {
            return Ok(None);
        }
        let kept = KeptOutcome::from_json(&body).ok_or_else(|| {
            RecordError::Failed("the stored outcome of the call cannot be read".to_owned())
        })?;
        kept.again(write).map(Some)
    }

    fn note(&self, write: &Write, outcome: &Outcome) -> Answer<()> {
        let Some(call) = write.call else { return Ok(()) };
        let sql = "INSERT INTO outcomes (realm, call, at, body) VALUES (?1, ?2, ?3, ?4) \
             ON CONFLICT (realm, call) DO UPDATE SET at = excluded.at, body = excluded.body";
        let body = KeptOutcome::new(outcome, write).to_json().to_string();
        let realm = self.access.realm.as_str();
        let params = params![realm, call.0.to_be_bytes(), write.at.0, body];
        execute(self.connection, sql, params).map_err(|error| self.failed(error))?;
        Ok(())
    }
}
