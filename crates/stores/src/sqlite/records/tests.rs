//! What the store of records promises beyond the contract suite: its file, its types as they
//! change, its time, and that nothing of a removed realm stays.

use super::RECORDS;
use crate::sqlite::{DATABASES, MAIN};
use crate::{OpenError, OpenStore, Parts, StoreLocation, restore};
use futures::executor::block_on;
use kernel::identity::principal::DataDomain;
use kernel::limits::Limits;
use kernel::values::ids::{Millis, RealmId};
use query::check::{HiddenFields, Scope, check};
use query::checked::{CheckedQuery, Selection};
use query::parser::parse;
use query::records::error::RecordError;
use query::records::names::fresh_id;
use query::records::requests::{
    Access, Author, Find, Found, Page, RecordLimits, RecordUsage, Save, SaveMode, Saved, Write,
};
use query::records::scope::CallerScope;
use query::records::type_change::{
    MigrationStep, RecordStore, TypeChange, TypeChangeError, TypeReport,
};
use query::types::{Field, Kind, RealmTypes, RecordType, TypeSet};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tempfile::TempDir;
use testkit::contract::arms::{StoppedClock, Threads};

const NOW: Millis = Millis(1_700_000_000_000);

/// A store of records in a folder of its own.
struct Desk {
    folder: TempDir,
    opened: OpenStore,
    records: Arc<dyn RecordStore>,
    ids: AtomicU64,
}

impl Desk {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self::on(folder, RecordLimits::default())
    }

    fn on(folder: TempDir, limits: RecordLimits) -> Self {
        let opened = opened(folder.path().join("data"));
        let records = opened.records.open(limits).unwrap();
        Self { folder, opened, records, ids: AtomicU64::new(1) }
    }

    fn reopened(self, limits: RecordLimits) -> Self {
        let ids = self.ids.load(Ordering::SeqCst);
        let desk = Self::on(self.closed(), limits);
        desk.ids.store(ids, Ordering::SeqCst);
        desk
    }

    fn closed(self) -> TempDir {
        let Self { folder, opened, records, .. } = self;
        block_on(records.close()).unwrap();
        block_on(opened.store.close()).unwrap();
        folder
    }

    fn change(&self, change: TypeChange) -> Result<TypeReport, TypeChangeError> {
        block_on(self.records.change_types(change))
    }

    /// Takes on these types in all realms.
    fn take_on(&self, types: &[RecordType]) -> Result<TypeReport, TypeChangeError> {
        self.change(of(types))
    }

    /// Why they are not taken on.
    fn refused(&self, types: &[RecordType]) -> String {
        self.take_on(types).unwrap_err().to_string()
    }

    fn put(&self, types: &[RecordType], realm: &str, record_type: &str, entity: Value) -> Saved {
        let number = self.ids.fetch_add(1, Ordering::SeqCst);
        let domain = DataDomain { tenant_id: Some("north".to_owned()), ..DataDomain::default() };
        let author = Author { subject: Arc::from("ann"), domain, administers: false };
        let save = Save {
            record_type: record_type.to_owned(),
            mode: SaveMode::Put,
            entity,
            expected: None,
            fresh_id: fresh_id(NOW, number),
        };
        let write = Write { author, at: NOW, call: None, asked: None };
        block_on(self.records.save(access(types, realm), save, write)).unwrap()
    }

    fn find(
        &self,
        types: &[RecordType],
        realm: &str,
        record_type: &str,
        query: &str,
    ) -> Result<Found, RecordError> {
        let access = access(types, realm);
        let find = asked(&access, record_type, query);
        block_on(self.records.find(access, find))
    }

    fn rows(&self, types: &[RecordType], realm: &str, record_type: &str) -> Vec<Value> {
        self.find(types, realm, record_type, "").unwrap().rows
    }

    fn usage(&self) -> Vec<RecordUsage> {
        block_on(self.records.usage()).unwrap()
    }
}

fn opened(data: PathBuf) -> OpenStore {
    let parts = Parts {
        spawn: Arc::new(Threads::default()),
        clock: Arc::new(StoppedClock),
        limits: Arc::new(Limits::default()),
        fatal: Arc::new(|why: String| panic!("{why}")),
        vfs: None,
    };
    crate::open(&StoreLocation::Folder(data), parts).unwrap()
}

fn of(types: &[RecordType]) -> TypeChange {
    let types = RealmTypes::common(TypeSet::new(types.to_vec()));
    TypeChange { types: Arc::new(types), ..TypeChange::default() }
}

fn with_steps(types: &[RecordType], steps: Vec<MigrationStep>) -> TypeChange {
    TypeChange { steps, ..of(types) }
}

fn access(types: &[RecordType], realm: &str) -> Access {
    let types = Arc::new(TypeSet::new(types.to_vec()));
    let scope = Arc::new(CallerScope::unlimited(&types));
    Access { realm: RealmId::from(realm), types, scope }
}

fn asked(access: &Access, record_type: &str, query: &str) -> Find {
    let everything =
        CheckedQuery { filter: None, expansions: Vec::new(), selection: Selection::default() };
    let query = match query {
        "" => everything,
        _ => {
            let variables = BTreeMap::new();
            let hidden = HiddenFields::default();
            let root = access.types.find(record_type).unwrap();
            let scope =
                Scope { types: &access.types, root, variables: &variables, hidden: &hidden };
            check(&parse(query).unwrap(), scope).unwrap()
        }
    };
    Find {
        record_type: record_type.to_owned(),
        query,
        sort: Vec::new(),
        page: Page { limit: 100, ..Page::default() },
        total: true,
    }
}

fn text(name: &str) -> Field {
    Field::new(name, Kind::String)
}

fn town(fields: Vec<Field>) -> RecordType {
    RecordType::new("shop", "towns", "Town", fields)
}

#[test]
fn without_types_there_is_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let store = opened(data.clone());
    assert!(!store.records.exists() && !data.join(RECORDS.file).exists());
    let records = store.records.open(RecordLimits::default()).unwrap();
    assert!(store.records.exists());
    let again = store.records.open(RecordLimits::default());
    assert!(matches!(again, Err(OpenError::Folder { .. })));
    block_on(records.close()).unwrap();
    block_on(store.store.close()).unwrap();
}

#[test]
fn the_same_types_change_nothing() {
    let types = [town(vec![text("name")])];
    let desk = Desk::new();
    assert_eq!(desk.take_on(&types).unwrap().changes.len(), 1);
    desk.put(&types, "r", "shop.Town", json!({"refName": "oslo", "name": "Oslo"}));
    let desk = desk.reopened(RecordLimits::default());
    assert_eq!(desk.take_on(&types), Ok(TypeReport::default()));
    assert_eq!(desk.rows(&types, "r", "shop.Town")[0]["name"], "Oslo");
    desk.closed();
}

#[test]
fn a_change_that_records_fit_is_taken_on() {
    let before = [town(vec![text("name")])];
    let desk = Desk::new();
    desk.take_on(&before).unwrap();
    desk.put(&before, "r", "shop.Town", json!({"refName": "oslo", "name": "Oslo"}));
    let mut name = text("name");
    name.unique = true;
    let mut size = Field::new("size", Kind::Integer);
    size.indexed = true;
    let after = [town(vec![name, size])];
    desk.take_on(&after).unwrap();
    desk.put(&after, "r", "shop.Town", json!({"refName": "rome", "name": "Rome", "size": 7}));
    let found = desk.find(&after, "r", "shop.Town", "size:#7").unwrap();
    assert_eq!((found.total, found.rows[0]["name"].clone()), (Some(1), json!("Rome")));
    assert_eq!(desk.rows(&after, "r", "shop.Town").len(), 2);
    let access = access(&after, "r");
    let find = asked(&access, "shop.Town", "size:#7");
    let explained = block_on(desk.records.explain(access, find)).unwrap();
    assert!(explained.statements.iter().all(|sql| !sql.contains('7')), "{explained:?}");
    // For the rows in their order, too, and not only for the number of all.
    let [index] = explained.indexes.as_slice() else { panic!("{explained:?}") };
    assert!(index.ends_with("_i1"), "{explained:?}");
    desk.closed();
}

#[test]
fn what_would_hurt_records_is_refused_with_their_number() {
    let size = || Field::new("size", Kind::Integer);
    let before = [town(vec![text("name"), size()])];
    let desk = Desk::new();
    desk.take_on(&before).unwrap();
    for (ref_name, number) in [("oslo", 1), ("rome", 20)] {
        let entity = json!({"refName": ref_name, "name": "Same", "size": number});
        desk.put(&before, "r", "shop.Town", entity);
    }
    desk.put(&before, "s", "shop.Town", json!({"refName": "bare"}));
    let told = |fields: Vec<Field>| desk.refused(&[town(fields)]);
    let ends = |message: String, end: &str| assert!(message.ends_with(end), "{message}");
    ends(told(vec![size()]), "field `name` is gone (2 records)");
    let required = Field { required: true, ..text("code") };
    ends(told(vec![text("name"), size(), required]), "is new and required (3 records)");
    let required = Field { required: true, ..text("name") };
    ends(told(vec![required, size()]), "field `name` is required now (1 record)");
    ends(told(vec![text("name"), text("size")]), "was integer and is string (2 records)");
    let mut small = size();
    small.bounds.max = Some(9.0);
    ends(told(vec![text("name"), small]), "takes fewer values than before (1 record)");
    let unique = Field { unique: true, ..text("name") };
    ends(told(vec![unique, size()]), "`name` must be unique now (2 records)");
    ends(desk.refused(&[]), "the type is gone (3 records)");
    assert_eq!(desk.take_on(&before), Ok(TypeReport::default()));
    assert_eq!(desk.rows(&before, "r", "shop.Town").len(), 2);
    // With a default, records that lack the field fit.
    let given = Field { required: true, default: Some(json!("x")), ..text("code") };
    desk.take_on(&[town(vec![text("name"), size(), given])]).unwrap();
    desk.closed();
}

#[test]
fn fields_that_were_not_declared_stand_in_the_way() {
    let open = |fields| RecordType { additional_fields: true, ..town(fields) };
    let before = [open(Vec::new())];
    let desk = Desk::new();
    desk.take_on(&before).unwrap();
    desk.put(&before, "r", "shop.Town", json!({"refName": "oslo", "size": "big"}));
    let refused = desk.refused(&[town(Vec::new())]);
    assert!(refused.ends_with("are refused now (1 record)"), "{refused}");
    let refused = desk.refused(&[open(vec![Field::new("size", Kind::Integer)])]);
    assert!(refused.ends_with("records may have it already (1 record)"), "{refused}");
    desk.take_on(&[open(vec![text("size")])]).unwrap();
    desk.closed();
}

#[test]
fn steps_move_records_out_of_the_way() {
    let depot = |to: &str| {
        let field = Field::new("town", Kind::Reference(to.to_owned()));
        RecordType::new("shop", "depots", "Depot", vec![field])
    };
    let before = [town(vec![text("name"), text("mayor")]), depot("Town")];
    let desk = Desk::new();
    desk.take_on(&before).unwrap();
    let entity = json!({"refName": "oslo", "name": "Oslo", "mayor": "Ida"});
    desk.put(&before, "r", "shop.Town", entity);
    desk.put(&before, "r", "shop.Depot", json!({"refName": "one", "town": "oslo"}));
    let drop_town = MigrationStep::DropType { record_type: "shop.Town".to_owned() };
    let refused = desk.change(with_steps(&[], vec![drop_town])).unwrap_err().to_string();
    assert!(refused.contains("records of `shop.Depot` refer to"), "{refused}");

    let place = Field::new("place", Kind::Object(vec![text("label")]));
    let city = RecordType::new("shop", "towns", "City", vec![place]);
    let after = [city, depot("City")];
    let steps = || {
        vec![
            MigrationStep::RenameType { from: "shop.Town".to_owned(), to: "shop.City".to_owned() },
            MigrationStep::RenameField {
                record_type: "shop.City".to_owned(),
                from: "name".to_owned(),
                to: "place.label".to_owned(),
            },
            MigrationStep::DropField {
                record_type: "shop.City".to_owned(),
                field: "mayor".to_owned(),
            },
        ]
    };
    let tried = TypeChange { is_dry_run: true, ..with_steps(&after, steps()) };
    let tried = desk.change(tried).unwrap();
    assert_eq!(tried.migrated, [2, 1, 1]);
    assert_eq!(desk.rows(&before, "r", "shop.Town")[0]["mayor"], "Ida");
    assert_eq!(desk.change(with_steps(&after, steps())), Ok(tried));
    let city = &desk.rows(&after, "r", "shop.City")[0];
    assert_eq!((&city["place"], city.get("mayor")), (&json!({"label": "Oslo"}), None));
    let depot = &desk.rows(&after, "r", "shop.Depot")[0];
    assert_eq!(depot["town"]["entityType"], "shop.City");
    let bytes: usize = [city, depot].iter().map(|record| record.to_string().len()).sum();
    assert_eq!(desk.usage()[0].bytes, bytes as u64);
    assert_eq!(desk.take_on(&after), Ok(TypeReport::default()));
    desk.closed();
}

#[test]
fn records_follow_the_types_of_their_realm() {
    let common = vec![town(vec![text("name")])];
    let own = vec![town(vec![text("name"), text("mayor")])];
    let desk = Desk::new();
    desk.take_on(&common).unwrap();
    for realm in ["r", "s"] {
        desk.put(&common, realm, "shop.Town", json!({"refName": "oslo", "name": realm}));
    }
    let mut types = RealmTypes::common(TypeSet::new(common.clone()));
    types.own.insert("r".into(), Arc::new(TypeSet::new(own.clone())));
    let change = TypeChange { types: Arc::new(types), ..TypeChange::default() };
    let report = desk.change(change.clone()).unwrap();
    assert_eq!(report.changes[0].realm, Some("r".into()));
    assert_eq!(desk.change(change), Ok(TypeReport::default()));
    let entity = json!({"refName": "rome", "name": "r", "mayor": "Ugo"});
    desk.put(&own, "r", "shop.Town", entity);
    assert_eq!(desk.rows(&own, "r", "shop.Town").len(), 2);
    assert_eq!(desk.rows(&common, "s", "shop.Town").len(), 1);
    let refused = desk.refused(&common);
    assert!(refused.ends_with("`mayor` is gone (1 record) in realm `r`"), "{refused}");
    let field = "mayor".to_owned();
    let step = MigrationStep::DropField { record_type: "shop.Town".to_owned(), field };
    // Types of other realms have no such field.
    let migrated = desk.change(with_steps(&common, vec![step])).map(|report| report.migrated);
    assert_eq!(migrated, Ok(vec![1]));
    assert_eq!(desk.rows(&common, "r", "shop.Town").len(), 2);
    desk.closed();
}

#[test]
fn of_a_removed_realm_no_text_stays() {
    let types = [town(vec![text("name")])];
    let desk = Desk::new();
    desk.take_on(&types).unwrap();
    for (realm, word) in [("r", "removedword"), ("s", "stayingword")] {
        for number in 0..50 {
            let name = word.repeat(20);
            let entity = json!({"refName": format!("n-{number}"), "name": name});
            desk.put(&types, realm, "shop.Town", entity);
        }
    }
    block_on(desk.records.note_seeded("r".into(), "shop.Town".to_owned())).unwrap();
    assert_eq!(block_on(desk.records.remove_realm("r".into())), Ok(50));
    assert!(block_on(desk.records.seeded("r".into())).unwrap().is_empty());
    assert!(desk.usage().iter().all(|usage| usage.realm == RealmId::from("s")));
    let folder = desk.closed();
    let bytes = fs::read(folder.path().join("data").join(RECORDS.file)).unwrap();
    let has = |word: &str| bytes.windows(word.len()).any(|part| part == word.as_bytes());
    assert!(has("stayingword") && !has("removedword"));
}

#[test]
fn a_read_that_takes_too_long_is_ended() {
    let types = [town(vec![text("name")])];
    let desk = Desk::new();
    desk.take_on(&types).unwrap();
    desk.put(&types, "r", "shop.Town", json!({"refName": "oslo", "name": "Oslo"}));
    let desk = desk.reopened(RecordLimits { query_timeout_ms: 0, ..RecordLimits::default() });
    let slow = desk.find(&types, "r", "shop.Town", "refName:oslo && name:Oslo");
    assert_eq!(slow, Err(RecordError::TooSlow(Some("name".to_owned()))));
    // Writes have the time that they need.
    desk.put(&types, "r", "shop.Town", json!({"refName": "rome", "name": "Rome"}));
    desk.closed();
}

#[test]
fn records_are_backed_up_after_the_sessions_and_missed_when_they_are_gone() {
    let files: Vec<&str> = DATABASES.iter().map(|database| database.file).collect();
    assert_eq!(files[..2], [MAIN.file, RECORDS.file]);
    let types = [town(vec![text("name")])];
    let desk = Desk::new();
    desk.take_on(&types).unwrap();
    desk.put(&types, "r", "shop.Town", json!({"refName": "oslo", "name": "Oslo"}));
    let backup = desk.folder.path().join("backup");
    block_on(desk.opened.backup.backup(backup.clone(), &[])).unwrap();
    let folder = desk.closed();
    let place = tempfile::tempdir().unwrap();
    restore(&backup, &place.path().join("data"), &[]).unwrap();
    let restored = Desk::on(place, RecordLimits::default());
    assert_eq!(restored.rows(&types, "r", "shop.Town").len(), 1);
    restored.closed();
    let data = folder.path().join("data");
    fs::remove_file(data.join(RECORDS.file)).unwrap();
    let lost = crate::losses_of(&data);
    assert_eq!(lost.iter().map(|loss| loss.database).collect::<Vec<_>>(), [RECORDS.file]);
}
