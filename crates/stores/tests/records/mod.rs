//! Records whose machine loses its power at any write, sync or step: what was acknowledged is there
//! once, a call that was under way is whole or not at all, and made again it happens once.

use crate::machine::{Machine, STEPS_MAX};
use kernel::identity::principal::DataDomain;
use kernel::values::ids::{CallId, Millis, RealmId};
use query::check::{HiddenFields, Scope, check};
use query::checked::CheckedQuery;
use query::parser::parse;
use query::records::names::fresh_id;
use query::records::requests::{
    Access, Author, DeleteMany, Find, Page, RecordLimits, Save, SaveMode, Write,
};
use query::records::scope::CallerScope;
use query::records::type_change::{MigrationStep, RecordStore, TypeChange, TypeChangeError};
use query::types::{Field, Kind, RealmTypes, RecordType, TypeSet};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use stores::OpenStore;
use testkit::sim::machine::power::Point;
use testkit::sim::rng::Rng;

const NOW: Millis = Millis(1_700_000_000_000);
const SEEDS: u64 = 48;
/// Every so-manieth call deletes, if its batch is one that goes.
const BATCH: u64 = 5;

/// The records that there are: of each number the batch.
type Rows = BTreeMap<u64, u64>;

/// What the call of a number does; the numbers begin with 1.
enum Deed {
    Save { batch: u64 },
    DeleteBatch { batch: u64 },
}

fn deed(number: u64) -> Deed {
    let batch = number / BATCH;
    if number.is_multiple_of(BATCH) && batch.is_multiple_of(2) {
        Deed::DeleteBatch { batch: batch - 1 }
    } else {
        Deed::Save { batch }
    }
}

/// The records after the first calls.
fn after(calls: u64) -> Rows {
    let mut rows = Rows::new();
    for number in 1..=calls {
        match deed(number) {
            Deed::Save { batch } => {
                rows.insert(number, batch);
            }
            Deed::DeleteBatch { batch } => rows.retain(|_, of| *of != batch),
        }
    }
    rows
}

/// The field that holds the batch, before a change of types and after it.
const BATCH_FIELD: &str = "batch";
const NEW_FIELD: &str = "lot";

/// One type, with this field.
fn types(field: &str) -> TypeSet {
    let mut batch = Field::new(field, Kind::Integer);
    batch.indexed = true;
    let fields = vec![Field::new("number", Kind::Integer), batch];
    TypeSet::new(vec![RecordType::new("", "items", "Item", fields)])
}

/// A store of records on a machine.
struct Site<'m> {
    machine: &'m Machine,
    field: &'static str,
    types: Arc<TypeSet>,
    records: Arc<dyn RecordStore>,
    /// Its folder is held as long as this lives.
    _opened: OpenStore,
}

impl<'m> Site<'m> {
    fn open(machine: &'m Machine) -> Self {
        let opened = machine.open();
        let records = opened.records.open(RecordLimits::default()).unwrap();
        let types = Arc::new(types(BATCH_FIELD));
        let mut site = Self { machine, field: BATCH_FIELD, types, records, _opened: opened };
        if site.takes_on(BATCH_FIELD, Vec::new()) == Some(false) {
            assert_eq!(site.takes_on(NEW_FIELD, Vec::new()), Some(true));
        }
        site
    }

    /// Whether the store takes on the types with this field, after these steps; none if the power
    /// went off before it said so.
    fn takes_on(&mut self, field: &'static str, steps: Vec<MigrationStep>) -> Option<bool> {
        let types = RealmTypes::common(types(field));
        let change = TypeChange { types: Arc::new(types), steps, is_dry_run: false };
        let changed = self.records.change_types(change);
        match self.machine.executor.run_until(changed, STEPS_MAX).ok()? {
            Ok(_) => {
                self.field = field;
                self.types = Arc::new(self::types(field));
                Some(true)
            }
            Err(TypeChangeError::Obstacles(_)) => Some(false),
            Err(other) => panic!("{other}"),
        }
    }

    fn access(&self) -> Access {
        Access {
            realm: RealmId::from("r"),
            types: self.types.clone(),
            scope: Arc::new(CallerScope::unlimited(&self.types)),
        }
    }

    /// Makes a call; false if the power went off before it was answered.
    fn calls(&self, number: u64) -> bool {
        let author =
            Author { subject: Arc::from("ann"), domain: DataDomain::default(), administers: false };
        let call = Some(CallId::of(&[&number.to_le_bytes()]));
        let write = Write { author, at: NOW, call, asked: None };
        match deed(number) {
            Deed::Save { batch } => {
                let save = Save {
                    record_type: "Item".to_owned(),
                    mode: SaveMode::Put,
                    entity: json!({"number": number, self.field: batch}),
                    expected: None,
                    fresh_id: fresh_id(NOW, number),
                };
                let saved = self.records.save(self.access(), save, write);
                let saved = self.machine.executor.run_until(saved, STEPS_MAX);
                saved.is_ok_and(|saved| {
                    assert_eq!(saved.unwrap().id, fresh_id(NOW, number));
                    true
                })
            }
            Deed::DeleteBatch { batch } => {
                let gone = after(number - 1).values().filter(|of| **of == batch).count() as u64;
                let delete = DeleteMany {
                    record_type: "Item".to_owned(),
                    filter: self.query(&format!("{}:#{batch}", self.field)).filter,
                    expected: Some(gone),
                    is_dry_run: false,
                };
                let deleted = self.records.delete_many(self.access(), delete, write);
                let deleted = self.machine.executor.run_until(deleted, STEPS_MAX);
                deleted.is_ok_and(|deleted| {
                    assert_eq!(deleted, Ok(gone));
                    true
                })
            }
        }
    }

    fn query(&self, text: &str) -> CheckedQuery {
        let variables = BTreeMap::new();
        let hidden = HiddenFields::default();
        let root = self.types.find("Item").unwrap();
        let scope = Scope { types: &self.types, root, variables: &variables, hidden: &hidden };
        parse(text).and_then(|query| check(&query, scope)).unwrap()
    }

    fn rows(&self) -> Rows {
        let find = Find {
            record_type: "Item".to_owned(),
            query: self.query(""),
            sort: Vec::new(),
            page: Page { limit: 1_000, ..Page::default() },
            total: true,
        };
        let found = self.records.find(self.access(), find);
        let found = self.machine.executor.run_until(found, STEPS_MAX).unwrap().unwrap();
        let whole = |row: &Value, name: &str| row[name].as_u64().unwrap();
        let rows: Rows =
            found.rows.iter().map(|row| (whole(row, "number"), whole(row, self.field))).collect();
        assert_eq!((found.rows.len(), found.total), (rows.len(), Some(rows.len() as u64)));
        rows
    }
}

#[test]
fn records_that_were_acknowledged_survive_a_power_cut_and_calls_happen_once() {
    let mut redone = 0;
    for seed in 0..SEEDS {
        let mut rng = Rng::new(seed);
        let machine = Machine::new();
        let site = Site::open(&machine);
        let point = [Point::DiskWrite, Point::DiskSync, Point::Step][seed as usize % 3];
        machine.power.switch_on(Some((point, 1 + rng.below(90))));
        let acknowledged = (1..).take_while(|number| site.calls(*number)).count() as u64;
        assert!(!machine.power.is_on());
        drop(site);
        machine.crash(&mut rng);
        let site = Site::open(&machine);
        let rows = site.rows();
        let is_under_way_there = rows == after(acknowledged + 1);
        assert!(
            is_under_way_there || rows == after(acknowledged),
            "seed {seed}: {acknowledged} calls were acknowledged, and this is there: {rows:?}"
        );
        redone += u64::from(is_under_way_there);
        // The caller does not know whether it happened, and an earlier call comes late.
        assert!(site.calls(acknowledged + 1));
        assert!(acknowledged == 0 || site.calls(1 + rng.below(acknowledged)));
        assert_eq!(site.rows(), after(acknowledged + 1), "seed {seed}");
        drop(site);
        machine.executor.drop_tasks();
    }
    assert!(redone > 0 && redone < SEEDS, "{redone} calls were written and not acknowledged");
}

#[test]
fn a_change_of_types_that_the_power_cuts_is_whole_or_not_at_all() {
    const CALLS: u64 = 12;
    let rename = || {
        let record_type = "Item".to_owned();
        let (from, to) = (BATCH_FIELD.to_owned(), NEW_FIELD.to_owned());
        vec![MigrationStep::RenameField { record_type, from, to }]
    };
    let mut whole = 0;
    for seed in 0..SEEDS {
        let mut rng = Rng::new(seed);
        let machine = Machine::new();
        let mut site = Site::open(&machine);
        assert!((1..=CALLS).all(|number| site.calls(number)));
        let point = [Point::DiskWrite, Point::DiskSync, Point::Step][seed as usize % 3];
        machine.power.switch_on(Some((point, 1 + rng.below(40))));
        let changed = site.takes_on(NEW_FIELD, rename());
        drop(site);
        machine.crash(&mut rng);
        let mut site = Site::open(&machine);
        let is_changed = site.field == NEW_FIELD;
        assert!(is_changed || changed.is_none(), "seed {seed}: an acknowledged change is lost");
        assert_eq!(site.rows(), after(CALLS), "seed {seed}");
        if !is_changed {
            assert_eq!(site.takes_on(NEW_FIELD, rename()), Some(true));
            assert_eq!(site.rows(), after(CALLS), "seed {seed}");
        }
        assert!(site.calls(CALLS + 1));
        assert_eq!(site.rows(), after(CALLS + 1), "seed {seed}");
        whole += u64::from(is_changed);
        drop(site);
        machine.executor.drop_tasks();
    }
    assert!(whole > 0 && whole < SEEDS, "{whole} changes were there after the power cut");
}
