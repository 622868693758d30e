//! A store of records under test, the types and callers of the suite, and how it is asked.

use crate::contract::scene::within_limit;
use crate::model_records::{ModelRecords, ModelRecordsState};
use futures::executor::block_on;
use kernel::identity::principal::DataDomain;
use kernel::values::ids::{CallId, ContentHash, Millis, RealmId};
use query::check::{HiddenFields, Scope, check, check_path, check_row_filter};
use query::checked::CheckedQuery;
use query::evaluate::group::{Function, Grouping, Measure};
use query::evaluate::order::{Position, SortField, read_sort};
use query::parser::{parse, parse_path};
use query::records::cursor;
use query::records::error::{Answer, RecordError};
use query::records::names::{RecordName, fresh_id};
use query::records::requests::{
    Access, Author, Count, Counted, Delete, DeleteMany, Find, Found, Get, Page, RecordLimits, Save,
    SaveMode, Saved, Write,
};
use query::records::scope::CallerScope;
use query::records::{Records, domain_of};
use query::types::{Field, Kind, RecordType, TypeSet};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// When everything is written, unless a promise says otherwise.
pub const NOW: Millis = Millis(1_700_000_000_000);

/// A store that promises what all of them promise: where its data lies, and how it is opened.
pub trait RecordsArm: Send {
    /// Opens what is there, as a new process does: the one before it is over. The first time there
    /// is nothing.
    fn open(&self, types: &Arc<TypeSet>, limits: RecordLimits) -> Arc<dyn Records>;
}

/// The store in memory.
#[derive(Default)]
pub struct ModelRecordsArm {
    state: Arc<ModelRecordsState>,
}

impl ModelRecordsArm {
    pub fn new() -> Self {
        Self::default()
    }
}

impl RecordsArm for ModelRecordsArm {
    fn open(&self, _: &Arc<TypeSet>, limits: RecordLimits) -> Arc<dyn Records> {
        Arc::new(ModelRecords::open(&self.state, limits))
    }
}

/// The limits that a store has in the suite.
pub fn limits() -> RecordLimits {
    RecordLimits {
        find_bytes_max: 8_000,
        expand_records_max: 4,
        groups_max: 3,
        delete_many_max: 5,
        record_bytes_max: 4_000,
        query_timeout_ms: 5_000,
    }
}

/// The types of the suite: towns, and depots in them.
pub fn types() -> TypeSet {
    let mut code = Field::new("code", Kind::String);
    code.unique = true;
    let mut kind = Field::new("kind", Kind::String);
    kind.choices = vec![json!("main"), json!("side")];
    kind.default = Some(json!("side"));
    let mut size = Field::new("size", Kind::Integer);
    size.indexed = true;
    let mut town = Field::new("town", Kind::Reference("Town".to_owned()));
    town.required = true;
    let slot = Kind::Object(vec![
        Field::new("name", Kind::String),
        Field::new("load", Kind::Number),
        Field::new("next", Kind::Reference("Depot".to_owned())),
    ]);
    let mut depot = RecordType::new(
        "shop",
        "depots",
        "Depot",
        vec![
            code,
            kind,
            size,
            town,
            Field::new("opened", Kind::Date),
            Field::new("checked", Kind::DateTime),
            Field::new("open", Kind::Boolean),
            Field::new("rent", Kind::Number),
            Field::new("slots", Kind::array(slot)),
            Field::new("extra", Kind::Json),
        ],
    );
    depot.unique = vec![vec!["size".to_owned(), "rent".to_owned()]];
    let mut town = RecordType::new(
        "shop",
        "towns",
        "Town",
        vec![Field::new("name", Kind::String), Field::new("mayor", Kind::String)],
    );
    town.additional_fields = true;
    TypeSet::new(vec![depot, town])
}

/// Sees whether a store keeps a promise, within a time.
pub fn keep(arm: impl RecordsArm + 'static, promise: fn(RecordsScene)) {
    within_limit(move || promise(RecordsScene::new(Box::new(arm))));
}

/// A store of its own for one promise.
pub struct RecordsScene {
    pub store: Arc<dyn Records>,
    pub types: Arc<TypeSet>,
    /// What lies below the store goes after it.
    arm: Box<dyn RecordsArm>,
    ids: AtomicU64,
}

impl RecordsScene {
    pub fn new(arm: Box<dyn RecordsArm>) -> Self {
        let types = Arc::new(types());
        let store = arm.open(&types, limits());
        Self { store, types, arm, ids: AtomicU64::new(1) }
    }

    /// The same data, opened by what stands for a new process.
    #[must_use]
    pub fn reopened(self) -> Self {
        got(self.store.close());
        let Self { store, types, arm, ids } = self;
        drop(store);
        let store = arm.open(&types, limits());
        Self { store, types, arm, ids }
    }

    pub fn of_type(&self, name: &str) -> &RecordType {
        self.types.find(name).unwrap_or_else(|error| panic!("{error}"))
    }

    /// A caller that reaches everything in the realm `r`, and writes as of the tenant `north`.
    pub fn ann(&self) -> Person<'_> {
        let domain = DataDomain {
            org_ref_name: Some("acme".to_owned()),
            tenant_id: Some("north".to_owned()),
            ..DataDomain::default()
        };
        let author = Author { subject: Arc::from("ann"), domain, administers: false };
        Person {
            scene: self,
            realm: RealmId::from("r"),
            scope: CallerScope::unlimited(&self.types),
            author,
            at: NOW,
            call: None,
            asked: None,
        }
    }

    /// Three towns and four depots of Ann's: `one` to `four`.
    pub fn furnished(self) -> Self {
        self.furnish();
        self
    }

    fn furnish(&self) {
        let ann = self.ann();
        for (name, mayor) in [("oslo", "Ida"), ("rome", "Ugo"), ("Ölfus", "Jón")] {
            ann.put("Town", json!({"refName": name, "name": name, "mayor": mayor}));
        }
        let depots = json!([
            {
                "refName": "one", "code": "A-1", "size": 10, "town": "oslo", "open": true,
                "opened": "2024-01-31", "checked": "2024-01-31T09:00:00Z", "rent": 19.9,
                "tags": ["Cold", "old"], "extra": {"a": [1, {"b": "x"}]},
                "slots": [{"name": "s1", "load": 1.5}, {"name": "s2", "load": 7}],
            },
            {
                "refName": "two", "code": "a-1", "size": 9_007_199_254_740_993_i64, "town": "rome",
                "kind": "main", "open": false, "checked": "2024-01-31T10:00:00.5+01:00",
                "rent": -5, "slots": [],
            },
            {"refName": "Three", "code": "B 100%", "size": 10, "town": "oslo", "rent": 20},
            {
                "refName": "four", "town": "ölfus", "opened": "2023-12-24", "rent": 19.9,
                "slots": [{"name": "s1", "next": "one"}], "extra": "Text",
            },
        ]);
        for depot in depots.as_array().into_iter().flatten() {
            ann.put("Depot", depot.clone());
        }
    }
}

/// Who asks.
#[derive(Clone)]
pub struct Person<'s> {
    scene: &'s RecordsScene,
    pub realm: RealmId,
    pub scope: CallerScope,
    pub author: Author,
    pub at: Millis,
    pub call: Option<CallId>,
    pub asked: Option<ContentHash>,
}

impl Person<'_> {
    #[must_use]
    pub fn in_realm(mut self, realm: &str) -> Self {
        self.realm = RealmId::from(realm);
        self
    }

    #[must_use]
    pub fn of_tenant(mut self, tenant: &str) -> Self {
        self.author.domain.tenant_id = Some(tenant.to_owned());
        self
    }

    /// With rows of this type only that the query takes.
    #[must_use]
    pub fn seeing(mut self, record_type: &str, rows: &str) -> Self {
        let root = self.scene.of_type(record_type);
        let variables = BTreeMap::new();
        let hidden = HiddenFields::default();
        let scope =
            Scope { types: &self.scene.types, root, variables: &variables, hidden: &hidden };
        let filter = parse(rows).and_then(|rows| check_row_filter(&rows, scope));
        self.scope.restrict(root, &filter.unwrap_or_else(|fault| panic!("{fault}")));
        self
    }

    #[must_use]
    pub fn without(mut self, record_type: &str, field: &str) -> Self {
        let types = self.scene.types.clone();
        self.scope.hide(&types, self.scene.of_type(record_type), field);
        self
    }

    #[must_use]
    pub fn calling(mut self, call: &str) -> Self {
        self.call = Some(CallId::of(&[call.as_bytes()]));
        self
    }

    /// With a call that asks for this.
    #[must_use]
    pub fn asking(mut self, asked: &str) -> Self {
        self.asked = Some(ContentHash::of(asked.as_bytes()));
        self
    }

    pub fn access(&self) -> Access {
        Access {
            realm: self.realm.clone(),
            types: self.scene.types.clone(),
            scope: Arc::new(self.scope.clone()),
        }
    }

    fn write(&self) -> Write {
        let asked = self.asked.clone();
        Write { author: self.author.clone(), at: self.at, call: self.call, asked }
    }

    /// The query as this caller may ask it.
    pub fn checked(&self, record_type: &str, query: &str) -> CheckedQuery {
        let variables = BTreeMap::new();
        let scope = self.checks(record_type, &variables);
        let checked = parse(query).and_then(|query| check(&query, scope));
        checked.unwrap_or_else(|fault| panic!("{query}: {fault}"))
    }

    fn checks<'c>(
        &'c self,
        record_type: &str,
        variables: &'c BTreeMap<String, Value>,
    ) -> Scope<'c> {
        let root = self.scene.of_type(record_type);
        Scope { types: &self.scene.types, root, variables, hidden: self.scope.hidden() }
    }

    pub fn sort(&self, record_type: &str, sort: &str) -> Vec<SortField> {
        let variables = BTreeMap::new();
        let scope = self.checks(record_type, &variables);
        let fields = read_sort(sort).unwrap_or_else(|fault| panic!("{sort}: {fault}"));
        fields
            .iter()
            .map(|field| SortField {
                path: check_path(&field.path, scope).unwrap_or_else(|fault| panic!("{fault}")),
                descends: field.descends,
            })
            .collect()
    }

    pub fn saved(
        &self,
        mode: SaveMode,
        record_type: &str,
        entity: Value,
    ) -> Result<Saved, RecordError> {
        self.saved_at(mode, record_type, entity, None)
    }

    /// If the record has this version.
    pub fn saved_at(
        &self,
        mode: SaveMode,
        record_type: &str,
        entity: Value,
        expected: Option<u64>,
    ) -> Result<Saved, RecordError> {
        let fresh_id = fresh_id(NOW, self.scene.ids.fetch_add(1, Ordering::SeqCst));
        let record_type = self.scene.of_type(record_type).full_name();
        let save = Save { record_type, mode, entity, expected, fresh_id };
        block_on(self.scene.store.save(self.access(), save, self.write()))
    }

    /// Saves what must be saved.
    #[track_caller]
    pub fn put(&self, record_type: &str, entity: Value) -> Saved {
        match self.saved(SaveMode::Put, record_type, entity) {
            Ok(saved) => saved,
            Err(error) => panic!("it is refused: {error}"),
        }
    }

    /// The record of this id or refName.
    pub fn get(&self, record_type: &str, name: &str) -> Option<Value> {
        let name = RecordName::read(name, &domain_of(&self.author, &self.realm));
        let record_type = self.scene.of_type(record_type).full_name();
        got(self.scene.store.get(self.access(), Get { record_type, name }))
    }

    /// The id of the record of this refName.
    #[track_caller]
    pub fn id_of(&self, record_type: &str, name: &str) -> String {
        let found = self.get(record_type, name).unwrap_or_else(|| panic!("there is no {name}"));
        found["id"].as_str().unwrap_or_else(|| panic!("it has no id")).to_owned()
    }

    pub fn page(
        &self,
        record_type: &str,
        query: &str,
        sort: &str,
        page: Page,
    ) -> Result<Found, RecordError> {
        let find = Find {
            record_type: self.scene.of_type(record_type).full_name(),
            query: self.checked(record_type, query),
            sort: self.sort(record_type, sort),
            page,
            total: true,
        };
        block_on(self.scene.store.find(self.access(), find))
    }

    /// All rows.
    #[track_caller]
    pub fn found(&self, record_type: &str, query: &str) -> Vec<Value> {
        let page = Page { limit: 1_000, ..Page::default() };
        match self.page(record_type, query, "", page) {
            Ok(found) => found.rows,
            Err(error) => panic!("{query}: {error}"),
        }
    }

    /// The refNames of all rows, in this order.
    #[track_caller]
    pub fn names(&self, record_type: &str, query: &str, sort: &str) -> Vec<String> {
        let page = Page { limit: 1_000, ..Page::default() };
        match self.page(record_type, query, sort, page) {
            Ok(found) => names(&found.rows),
            Err(error) => panic!("{query}: {error}"),
        }
    }

    /// The refNames of the rows of all pages of this length, each by the cursor of the one before.
    pub fn paged(&self, record_type: &str, sort: &str, limit: usize) -> Vec<Vec<String>> {
        let asked = [record_type, sort];
        let fields = self.sort(record_type, sort);
        let mut pages = Vec::new();
        let mut after: Option<Position> = None;
        loop {
            let page = Page { after, skip: 0, limit };
            let found = self.page(record_type, "", sort, page).must();
            pages.push(names(&found.rows));
            let Some(next) = found.next else {
                return pages;
            };
            let cursor = cursor::write(&asked, &next);
            let read = cursor::read(&asked, &fields, &cursor).must();
            assert_eq!(read, next, "{sort}");
            after = Some(read);
        }
    }

    pub fn counted(
        &self,
        record_type: &str,
        query: &str,
        by: &[&str],
        measures: &[(Function, &str)],
    ) -> Result<Counted, RecordError> {
        let count = self.count_of(record_type, query, by, measures);
        block_on(self.scene.store.count(self.access(), count))
    }

    /// What `counted` asks for.
    pub fn count_of(
        &self,
        record_type: &str,
        query: &str,
        by: &[&str],
        measures: &[(Function, &str)],
    ) -> Count {
        let variables = BTreeMap::new();
        let scope = self.checks(record_type, &variables);
        let path = |name: &str| {
            let path = parse_path(name).and_then(|path| check_path(&path, scope));
            path.unwrap_or_else(|fault| panic!("{name}: {fault}"))
        };
        let measure = |(function, name): &(Function, &str)| Measure {
            name: format!("{function:?} {name}"),
            function: *function,
            path: (!name.is_empty()).then(|| path(name)),
        };
        let grouping = Grouping {
            by: by.iter().map(|name| ((*name).to_owned(), path(name))).collect(),
            measures: measures.iter().map(measure).collect(),
        };
        let is_grouped = !by.is_empty() || !measures.is_empty();
        Count {
            record_type: self.scene.of_type(record_type).full_name(),
            filter: self.checked(record_type, query).filter,
            grouping: is_grouped.then_some(grouping),
        }
    }

    pub fn deleted(&self, record_type: &str, id: &str) -> Result<(), RecordError> {
        let record_type = self.scene.of_type(record_type).full_name();
        let delete = Delete { record_type, id: id.to_owned(), expected: None };
        block_on(self.scene.store.delete(self.access(), delete, self.write()))
    }

    /// Deletes all rows that match, if there are so many.
    pub fn deleted_many(
        &self,
        record_type: &str,
        query: &str,
        expected: Option<u64>,
        is_dry_run: bool,
    ) -> Result<u64, RecordError> {
        let delete = DeleteMany {
            record_type: self.scene.of_type(record_type).full_name(),
            filter: self.checked(record_type, query).filter,
            expected,
            is_dry_run,
        };
        block_on(self.scene.store.delete_many(self.access(), delete, self.write()))
    }
}

/// The refNames of rows.
pub fn names(rows: &[Value]) -> Vec<String> {
    rows.iter().map(|row| row["refName"].as_str().unwrap_or_default().to_owned()).collect()
}

/// What a store must answer.
#[track_caller]
pub fn got<T>(answer: Answer<'_, T>) -> T {
    match block_on(answer) {
        Ok(answer) => answer,
        Err(error) => panic!("the store fails: {error}"),
    }
}

/// What a promise needs to go on.
pub trait Must {
    type Needed;

    fn must(self) -> Self::Needed;
}

impl<T> Must for Option<T> {
    type Needed = T;

    #[track_caller]
    fn must(self) -> T {
        match self {
            Some(found) => found,
            None => panic!("it is not there"),
        }
    }
}

impl<T> Must for Result<T, RecordError> {
    type Needed = T;

    #[track_caller]
    fn must(self) -> T {
        match self {
            Ok(answer) => answer,
            Err(error) => panic!("it is refused: {error}"),
        }
    }
}
