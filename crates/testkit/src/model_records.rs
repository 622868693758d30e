//! A store of records in memory: maps under one lock, and the evaluator over all of them. What it
//! answers is what every store must answer.

use kernel::values::ids::{CallId, Millis, RealmId};
use query::records::Records;
use query::records::delete::{may_delete, may_delete_many};
use query::records::error::{Answer, RecordError};
use query::records::in_memory;
use query::records::names::RecordName;
use query::records::outcome::{KeptOutcome, Outcome, is_kept};
use query::records::references::{
    Stored, may_embed, referred_ids, referring_fields, still_referred_to,
};
use query::records::requests::{
    Access, Count, Counted, Delete, DeleteMany, Explanation, Find, Found, Get, RecordLimits,
    RecordUsage, Save, Saved, Write,
};
use query::records::save::{plan_save, record_bytes};
use query::records::unique::{duplicate, unique_keys};
use query::types::RecordType;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::future::ready;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What outlives a store: one that is opened over it finds what was written.
#[derive(Default)]
pub struct ModelRecordsState {
    realms: Mutex<BTreeMap<RealmId, RealmRecords>>,
}

pub struct ModelRecords {
    state: Arc<ModelRecordsState>,
    limits: RecordLimits,
    is_closed: AtomicBool,
}

#[derive(Default)]
struct RealmRecords {
    /// By the full name of their type and by id.
    types: BTreeMap<String, BTreeMap<String, Value>>,
    outcomes: BTreeMap<CallId, (Millis, KeptOutcome)>,
}

impl ModelRecords {
    pub fn open(state: &Arc<ModelRecordsState>, limits: RecordLimits) -> Self {
        Self { state: state.clone(), limits, is_closed: AtomicBool::new(false) }
    }

    fn realms(&self) -> Result<MutexGuard<'_, BTreeMap<RealmId, RealmRecords>>, RecordError> {
        if self.is_closed.load(Ordering::SeqCst) {
            return Err(RecordError::Closed);
        }
        Ok(self.state.realms.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn in_realm<T: Send + 'static>(
        &self,
        realm: &RealmId,
        act: impl FnOnce(&mut RealmRecords) -> Result<T, RecordError>,
    ) -> Answer<'static, T> {
        let answer =
            self.realms().and_then(|mut realms| act(realms.entry(realm.clone()).or_default()));
        Box::pin(ready(answer))
    }

    fn in_all<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut BTreeMap<RealmId, RealmRecords>) -> T,
    ) -> Answer<'static, T> {
        Box::pin(ready(self.realms().map(|mut realms| act(&mut realms))))
    }
}

impl Records for ModelRecords {
    fn find(&self, access: Access, find: Find) -> Answer<'_, Found> {
        self.in_realm(&access.realm, |records| records.find(&access, &find, &self.limits))
    }

    fn explain(&self, access: Access, find: Find) -> Answer<'_, Explanation> {
        let known = access.record_type(&find.record_type).map(|_| Explanation::default());
        Box::pin(ready(known))
    }

    fn count(&self, access: Access, count: Count) -> Answer<'_, Counted> {
        self.in_realm(&access.realm, |records| records.count(&access, &count, &self.limits))
    }

    fn get(&self, access: Access, get: Get) -> Answer<'_, Option<Value>> {
        self.in_realm(&access.realm, |records| records.get(&access, &get))
    }

    fn save(&self, access: Access, save: Save, write: Write) -> Answer<'_, Saved> {
        let bytes_max = self.limits.record_bytes_max;
        self.in_realm(&access.realm, |records| records.save(&access, &save, &write, bytes_max))
    }

    fn delete(&self, access: Access, delete: Delete, write: Write) -> Answer<'_, ()> {
        self.in_realm(&access.realm, |records| records.delete(&access, &delete, &write))
    }

    fn delete_many(&self, access: Access, delete: DeleteMany, write: Write) -> Answer<'_, u64> {
        self.in_realm(&access.realm, |records| {
            records.delete_many(&access, &delete, &write, &self.limits)
        })
    }

    fn usage(&self) -> Answer<'_, Vec<RecordUsage>> {
        self.in_all(|realms| {
            realms.iter().flat_map(|(realm, records)| records.usage(realm)).collect()
        })
    }

    fn remove_realm(&self, realm: RealmId) -> Answer<'_, u64> {
        self.in_all(|realms| {
            let removed = realms.remove(&realm).unwrap_or_default();
            removed.types.values().map(|records| records.len() as u64).sum()
        })
    }

    fn forget_outcomes(&self, now: Millis) -> Answer<'_, u64> {
        self.in_all(|realms| {
            let mut forgotten = 0;
            for records in realms.values_mut() {
                let before = records.outcomes.len();
                records.outcomes.retain(|_, (at, _)| is_kept(*at, now));
                forgotten += (before - records.outcomes.len()) as u64;
            }
            forgotten
        })
    }

    fn close(&self) -> Answer<'_, ()> {
        self.is_closed.store(true, Ordering::SeqCst);
        Box::pin(ready(Ok(())))
    }
}

impl Stored for RealmRecords {
    fn record(
        &self,
        record_type: &RecordType,
        name: &RecordName,
    ) -> Result<Option<Value>, RecordError> {
        Ok(self.named(record_type, name).cloned())
    }
}

impl RealmRecords {
    fn rows(&self, record_type: &RecordType) -> impl Iterator<Item = &Value> {
        self.types.get(&record_type.full_name()).into_iter().flat_map(BTreeMap::values)
    }

    fn named(&self, record_type: &RecordType, name: &RecordName) -> Option<&Value> {
        match name {
            RecordName::Id(id) => self.types.get(&record_type.full_name())?.get(id),
            RecordName::RefName(_) => in_memory::named(self.rows(record_type), name),
        }
    }

    fn find(
        &self,
        access: &Access,
        find: &Find,
        limits: &RecordLimits,
    ) -> Result<Found, RecordError> {
        let record_type = access.record_type(&find.record_type)?;
        let embedded = |record: &Value, to: &str, id: &str| self.embedded(access, record, to, id);
        in_memory::find(self.rows(record_type), access, find, limits, &embedded)
    }

    fn embedded(&self, access: &Access, row: &Value, to: &str, id: &str) -> Option<Value> {
        let to = access.types.find(to).ok()?;
        let found = self.named(to, &RecordName::Id(id.to_owned()))?;
        may_embed(access, row, to, found).then(|| found.clone())
    }

    fn count(
        &self,
        access: &Access,
        count: &Count,
        limits: &RecordLimits,
    ) -> Result<Counted, RecordError> {
        let record_type = access.record_type(&count.record_type)?;
        in_memory::count(self.rows(record_type), access, count, limits)
    }

    fn get(&self, access: &Access, get: &Get) -> Result<Option<Value>, RecordError> {
        let record_type = access.record_type(&get.record_type)?;
        Ok(in_memory::get(self.rows(record_type), access, record_type, &get.name))
    }

    fn save(
        &mut self,
        access: &Access,
        save: &Save,
        write: &Write,
        bytes_max: usize,
    ) -> Result<Saved, RecordError> {
        let record_type = access.record_type(&save.record_type)?;
        let type_name = record_type.full_name();
        if let Some(outcome) = self.known(write)? {
            return outcome.saved(access, &type_name);
        }
        let plan = plan_save(access, save, write, bytes_max, &*self)?;
        for key in &plan.unique {
            let has_it = |other: &Value| {
                other["id"] != plan.id.as_str() && unique_keys(record_type, other).contains(key)
            };
            if self.rows(record_type).any(has_it) {
                return Err(duplicate(access, record_type, key));
            }
        }
        let outcome = plan.outcome(&type_name);
        self.types.entry(type_name.clone()).or_default().insert(plan.id, plan.record);
        self.note(write, &outcome);
        outcome.saved(access, &type_name)
    }

    fn delete(
        &mut self,
        access: &Access,
        delete: &Delete,
        write: &Write,
    ) -> Result<(), RecordError> {
        let record_type = access.record_type(&delete.record_type)?;
        let type_name = record_type.full_name();
        if let Some(outcome) = self.known(write)? {
            return outcome.deleted(&type_name).map(|_| ());
        }
        let found = self.named(record_type, &RecordName::Id(delete.id.clone())).cloned();
        may_delete(access, record_type, found, delete.expected)?;
        let ids = BTreeSet::from([delete.id.clone()]);
        self.may_go(access, record_type, &ids)?;
        self.remove(&type_name, &ids);
        self.note(write, &Outcome::Deleted { record_type: type_name, count: 1 });
        Ok(())
    }

    fn delete_many(
        &mut self,
        access: &Access,
        delete: &DeleteMany,
        write: &Write,
        limits: &RecordLimits,
    ) -> Result<u64, RecordError> {
        let record_type = access.record_type(&delete.record_type)?;
        let type_name = record_type.full_name();
        if !delete.is_dry_run
            && let Some(outcome) = self.known(write)?
        {
            return outcome.deleted(&type_name);
        }
        let asked = delete.filter.as_ref();
        let matching = in_memory::matching(self.rows(record_type), access, record_type, asked);
        let id_of = |record: &Value| record["id"].as_str().unwrap_or_default().to_owned();
        let ids: BTreeSet<String> = matching.into_iter().map(id_of).collect();
        let count = ids.len() as u64;
        may_delete_many(delete, count, limits)?;
        self.may_go(access, record_type, &ids)?;
        if !delete.is_dry_run {
            self.remove(&type_name, &ids);
            self.note(write, &Outcome::Deleted { record_type: type_name, count });
        }
        Ok(count)
    }

    /// Whether no record refers to these that is not one of them.
    fn may_go(
        &self,
        access: &Access,
        record_type: &RecordType,
        ids: &BTreeSet<String>,
    ) -> Result<(), RecordError> {
        let fields = referring_fields(&access.types, record_type);
        let mut referrers = Vec::new();
        for (referrer, path) in &fields {
            let is_same_type = referrer.full_name() == record_type.full_name();
            for record in self.rows(referrer) {
                let goes = is_same_type && record["id"].as_str().is_some_and(|id| ids.contains(id));
                let refers = referred_ids(record, path).into_iter().any(|id| ids.contains(id));
                if refers && !goes {
                    referrers.push((*referrer, path.as_str(), record));
                }
            }
        }
        if referrers.is_empty() {
            return Ok(());
        }
        Err(still_referred_to(access, referrers))
    }

    fn remove(&mut self, type_name: &str, ids: &BTreeSet<String>) {
        if let Some(records) = self.types.get_mut(type_name) {
            records.retain(|id, _| !ids.contains(id));
        }
    }

    fn known(&self, write: &Write) -> Result<Option<Outcome>, RecordError> {
        let kept = write.call.as_ref().and_then(|call| self.outcomes.get(call));
        let kept = kept.filter(|(at, _)| is_kept(*at, write.at));
        kept.map(|(_, kept)| kept.clone().again(write)).transpose()
    }

    fn note(&mut self, write: &Write, outcome: &Outcome) {
        if let Some(call) = write.call {
            self.outcomes.insert(call, (write.at, KeptOutcome::new(outcome, write)));
        }
    }

    fn usage(&self, realm: &RealmId) -> Vec<RecordUsage> {
        let mut owners: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for record in self.types.values().flat_map(BTreeMap::values) {
            let owner = record["dataDomain"]["ownerId"].as_str().unwrap_or_default();
            let (records, bytes) = owners.entry(owner.to_owned()).or_default();
            *records += 1;
            *bytes += record_bytes(record) as u64;
        }
        let used =
            |(owner, (records, bytes))| RecordUsage { realm: realm.clone(), owner, records, bytes };
        owners.into_iter().map(used).collect()
    }
}
