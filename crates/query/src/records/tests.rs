//! What a save leaves, and what it refuses.

use super::error::{FieldMistake, RecordError};
use super::names::RecordName;
use super::references::Stored;
use super::requests::{Access, Author, Save, SaveMode, Write};
use super::save::{SavePlan, plan_save};
use super::scope::CallerScope;
use super::unique::unique_keys;
use crate::check::{HiddenFields, Scope, check_row_filter};
use crate::parser::parse;
use crate::types::{Field, Kind, RecordType, TypeSet};
use kernel::identity::principal::DataDomain;
use kernel::values::ids::{Millis, RealmId};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

const BYTES_MAX: usize = 2_000;
const FRESH: &str = "65f000000000000000000001";
const DEPOT: &str = "65a000000000000000000001";
const ABROAD: &str = "65a000000000000000000002";

fn types(is_open: bool) -> Arc<TypeSet> {
    let mut cost = Field::new("cost", Kind::Integer);
    cost.bounds.max = Some(9.0);
    let mut city = Field::new("city", Kind::String);
    city.required = true;
    let near = Field::new("near", Kind::array(Kind::Reference("Location".to_owned())));
    let home = Field::new("home", Kind::Reference("shop.Location".to_owned()));
    let fields = vec![city, cost, near, home];
    let mut location = RecordType::new("shop", "locations", "Location", fields);
    location.additional_fields = is_open;
    Arc::new(TypeSet::new(vec![location]))
}

fn location(types: &TypeSet) -> &RecordType {
    types.find("Location").unwrap()
}

/// Records that are stored.
struct Shelf(Vec<Value>);

impl Stored for Shelf {
    fn record(
        &self,
        record_type: &RecordType,
        name: &RecordName,
    ) -> Result<Option<Value>, RecordError> {
        let is_named = |record: &&Value| match name {
            RecordName::Id(id) => record["id"] == id.as_str(),
            RecordName::RefName(name) => {
                let keys = unique_keys(record_type, record);
                let wanted = json!({
                    "refName": name.folded,
                    "dataDomain": {"orgRefName": name.org, "tenantId": name.tenant},
                });
                keys.first() == unique_keys(record_type, &wanted).first()
            }
        };
        Ok(self.0.iter().find(is_named).cloned())
    }
}

/// A caller of the tenant `north`.
struct Caller {
    types: Arc<TypeSet>,
    scope: CallerScope,
    administers: bool,
    shelf: Shelf,
}

impl Caller {
    fn new() -> Self {
        Self::of(types(false))
    }

    fn of(types: Arc<TypeSet>) -> Self {
        let record = |id: &str, name: &str, tenant: &str| {
            json!({
                "id": id, "refName": name, "displayName": name.to_uppercase(), "city": "Oslo",
                "cost": 3, "version": 4, "activeStatus": "ACTIVE",
                "dataDomain": {
                    "orgRefName": "acme", "tenantId": tenant, "dataSegment": 0, "ownerId": "bob",
                },
                "auditInfo": {
                    "creationTs": "2024-01-01T00:00:00Z", "creationIdentity": "bob",
                    "lastUpdateTs": "2024-01-01T00:00:00Z", "lastUpdateIdentity": "bob",
                },
            })
        };
        let shelf = Shelf(vec![record(DEPOT, "depot", "north"), record(ABROAD, "abroad", "south")]);
        let mut scope = CallerScope::unlimited(&types);
        let root = location(&types);
        let variables = BTreeMap::new();
        let hidden = HiddenFields::default();
        let checked = Scope { types: &types, root, variables: &variables, hidden: &hidden };
        let own = parse("dataDomain.tenantId:north").unwrap();
        scope.restrict(root, &check_row_filter(&own, checked).unwrap());
        Self { types, scope, administers: false, shelf }
    }

    fn hiding(mut self, path: &str) -> Self {
        let types = self.types.clone();
        self.scope.hide(&types, location(&types), path);
        self
    }

    fn plan(&self, save: &Save) -> Result<SavePlan, RecordError> {
        let access = Access {
            realm: RealmId::from("main"),
            types: self.types.clone(),
            scope: Arc::new(self.scope.clone()),
        };
        let domain = DataDomain {
            org_ref_name: Some("acme".to_owned()),
            tenant_id: Some("north".to_owned()),
            ..DataDomain::default()
        };
        let author = Author { subject: Arc::from("ann"), domain, administers: self.administers };
        let write = Write { author, at: Millis(1_700_000_000_000), call: None, asked: None };
        plan_save(&access, save, &write, BYTES_MAX, &self.shelf)
    }

    fn saved(&self, mode: SaveMode, entity: Value) -> Result<Value, RecordError> {
        self.plan(&save(mode, entity)).map(|plan| plan.record)
    }

    fn mistakes(&self, mode: SaveMode, entity: Value) -> Vec<String> {
        match self.saved(mode, entity) {
            Err(RecordError::InvalidEntity(mistakes)) => mistakes
                .iter()
                .map(|FieldMistake { field, message }| format!("{field}: {message}"))
                .collect(),
            other => panic!("it was not invalid: {other:?}"),
        }
    }
}

fn save(mode: SaveMode, entity: Value) -> Save {
    Save {
        record_type: "shop.Location".to_owned(),
        mode,
        entity,
        expected: None,
        fresh_id: FRESH.to_owned(),
    }
}

#[test]
fn a_new_record_is_stamped() {
    let entity = json!({"city": "Rome", "tags": [" a", "b", "a", ""]});
    let expected = json!({
        "id": FRESH, "refName": FRESH, "displayName": FRESH, "city": "Rome",
        "activeStatus": "ACTIVE", "tags": ["a", "b"],
        "dataDomain": {
            "orgRefName": "acme", "tenantId": "north", "dataSegment": 0, "ownerId": "ann",
        },
        "auditInfo": {
            "creationTs": "2023-11-14T22:13:20.000Z", "creationIdentity": "ann",
            "lastUpdateTs": "2023-11-14T22:13:20.000Z", "lastUpdateIdentity": "ann",
        },
        "version": 1,
    });
    assert_eq!(Caller::new().saved(SaveMode::Put, entity), Ok(expected));
}

#[test]
fn a_record_that_is_put_keeps_only_what_identifies_it() {
    let record = Caller::new().saved(SaveMode::Put, json!({"_id": DEPOT, "city": "Rome"})).unwrap();
    assert_eq!((&record["refName"], &record["displayName"]), (&json!("depot"), &json!("depot")));
    assert_eq!((&record["version"], record.get("cost")), (&json!(5), None));
    assert_eq!(record["dataDomain"]["ownerId"], "bob");
    assert_eq!(record["auditInfo"]["creationIdentity"], "bob");
    assert_eq!(record["auditInfo"]["lastUpdateIdentity"], "ann");
}

#[test]
fn a_merge_changes_what_it_names_and_finds_its_record_by_ref_name_too() {
    let caller = Caller::new();
    let record = caller.saved(SaveMode::Merge, json!({"refName": "DEPOT", "cost": 5})).unwrap();
    assert_eq!((&record["id"], &record["refName"]), (&json!(DEPOT), &json!("DEPOT")));
    assert_eq!((&record["city"], &record["cost"]), (&json!("Oslo"), &json!(5)));
    let gone = caller.saved(SaveMode::Merge, json!({"id": DEPOT, "cost": null})).unwrap();
    assert_eq!(gone.get("cost"), None);
    for unknown in [json!({"refName": "abroad"}), json!({"id": FRESH}), json!({"cost": 1})] {
        assert_eq!(caller.saved(SaveMode::Merge, unknown), Err(RecordError::NotFound));
    }
}

#[test]
fn a_save_of_another_version_is_refused() {
    let caller = Caller::new();
    let conflict = |expected| Err(RecordError::VersionConflict { expected, found: 4 });
    let entity = json!({"id": DEPOT, "city": "Rome", "version": 3});
    assert_eq!(caller.saved(SaveMode::Put, entity), conflict(3));
    let mut wanted = save(SaveMode::Put, json!({"id": DEPOT, "city": "Rome"}));
    wanted.expected = Some(0);
    assert_eq!(caller.plan(&wanted).map(|plan| plan.record), conflict(0));
    wanted.expected = Some(4);
    assert!(caller.plan(&wanted).is_ok());
    let new = json!({"id": FRESH, "city": "Rome", "version": 0});
    assert!(caller.saved(SaveMode::Put, new).is_ok());
}

#[test]
fn what_a_caller_does_not_see_is_not_there_and_nothing_takes_its_id() {
    let caller = Caller::new();
    let entity = json!({"id": ABROAD, "city": "Rome"});
    assert_eq!(caller.saved(SaveMode::Put, entity.clone()), Err(RecordError::NotFound));
    assert_eq!(caller.saved(SaveMode::Merge, entity.clone()), Err(RecordError::NotFound));
    let taken = Err(RecordError::DuplicateKey(vec!["id".to_owned()]));
    assert_eq!(caller.saved(SaveMode::Insert, entity), taken);
}

#[test]
fn only_who_administers_sets_the_data_domain_and_the_scope_holds_for_it_too() {
    let mut caller = Caller::new();
    let own = json!({"city": "Rome", "dataDomain": {"tenantId": "north", "locationId": "7"}});
    let record = caller.saved(SaveMode::Put, own).unwrap();
    assert_eq!(record["dataDomain"]["locationId"], "7");
    let other = json!({"city": "Rome", "dataDomain": {"tenantId": "south"}});
    let mistakes = caller.mistakes(SaveMode::Put, other.clone());
    assert_eq!(mistakes, ["dataDomain.tenantId: is not for the caller to set"]);
    caller.administers = true;
    assert_eq!(caller.saved(SaveMode::Put, other.clone()), Err(RecordError::OutOfScope));
    caller.scope = CallerScope::unlimited(&caller.types);
    assert_eq!(caller.saved(SaveMode::Put, other).unwrap()["dataDomain"]["tenantId"], "south");
}

#[test]
fn references_are_given_as_id_ref_name_or_object() {
    let caller = Caller::new();
    let depot = json!({
        "entityId": DEPOT, "entityType": "shop.Location", "entityRefName": "depot",
        "entityDisplayName": "DEPOT",
    });
    for given in [
        json!(DEPOT),
        json!("Depot"),
        json!({"entityId": DEPOT, "entityRefName": "old", "entityType": "Location"}),
        json!({"entityRefName": "depot"}),
        json!({"refName": "depot"}),
        depot.clone(),
    ] {
        let record = caller.saved(SaveMode::Put, json!({"city": "Rome", "near": [given]}));
        assert_eq!(record.unwrap()["near"], json!([depot]));
    }
    let own = json!({"id": FRESH, "refName": "home", "city": "Rome", "near": [FRESH]});
    let near = &caller.saved(SaveMode::Put, own).unwrap()["near"];
    assert_eq!(near[0]["entityRefName"], "home");
    for unseen in [json!(ABROAD), json!("abroad"), json!(FRESH.replace('f', "e"))] {
        let mistakes = caller.mistakes(SaveMode::Put, json!({"city": "Rome", "near": [unseen]}));
        assert_eq!(mistakes, ["near[0]: refers to no Location"]);
    }
    let wrong = json!({"city": "Rome", "near": [{"entityId": DEPOT, "entityType": "Order"}]});
    let mistakes = caller.mistakes(SaveMode::Put, wrong);
    assert_eq!(mistakes, ["near[0]: must refer to a shop.Location"]);
}

#[test]
fn a_reference_that_was_there_stays_though_its_caller_does_not_see_where_it_leads() {
    let mut caller = Caller::new();
    let abroad = json!({
        "entityId": ABROAD, "entityType": "shop.Location", "entityRefName": "abroad",
        "entityDisplayName": "ABROAD",
    });
    caller.shelf.0[0]["near"] = json!([abroad]);
    let record = caller.saved(SaveMode::Merge, json!({"id": DEPOT, "cost": 1})).unwrap();
    assert_eq!(record["near"], json!([abroad]));
    let record =
        caller.saved(SaveMode::Put, json!({"id": DEPOT, "city": "Rome", "near": [ABROAD]}));
    assert_eq!(record.unwrap()["near"], json!([abroad]));
}

#[test]
fn a_reference_in_a_hidden_field_stays_and_can_be_used_nowhere_else() {
    let mut caller = Caller::new().hiding("near");
    caller.shelf.0[0]["near"] = json!([{"entityId": ABROAD, "entityType": "shop.Location"}]);
    let near = caller.shelf.0[0]["near"].clone();
    let record = caller.saved(SaveMode::Put, json!({"id": DEPOT, "city": "Rome"})).unwrap();
    assert_eq!(record["near"], near);
    let used = json!({"id": DEPOT, "city": "Rome", "home": ABROAD});
    assert_eq!(caller.mistakes(SaveMode::Put, used), ["home: refers to no Location"]);
}

#[test]
fn a_hidden_field_is_kept_and_is_like_one_that_does_not_exist() {
    let caller = Caller::new().hiding("cost");
    let record = caller.saved(SaveMode::Put, json!({"id": DEPOT, "city": "Rome"})).unwrap();
    assert_eq!((&record["city"], &record["cost"]), (&json!("Rome"), &json!(3)));
    let hidden = caller.mistakes(SaveMode::Put, json!({"city": "Rome", "cost": 1}));
    assert_eq!(hidden, ["cost: is no field of this type"]);
    let unknown = caller.mistakes(SaveMode::Put, json!({"city": "Rome", "qqqq": 1}));
    assert_eq!(unknown, ["qqqq: is no field of this type"]);
    let open = Caller::of(types(true)).hiding("secret");
    let entity = json!({"city": "Rome", "secret": 1, "other": 2});
    let record = open.saved(SaveMode::Put, entity).unwrap();
    assert_eq!((record.get("secret"), &record["other"]), (None, &json!(2)));
    let blind = Caller::new().hiding("city");
    let mistakes = blind.mistakes(SaveMode::Put, json!({"cost": 1}));
    assert_eq!(mistakes, [": cannot be saved by this caller"]);
}

#[test]
fn a_hidden_name_is_hidden_in_references_and_finds_nothing() {
    let caller = Caller::new().hiding("refName");
    assert!(caller.scope.hides(location(&caller.types), "near[3].entityRefName"));
    assert!(!caller.scope.hides(location(&caller.types), "near.entityDisplayName"));
    let mistakes = caller.mistakes(SaveMode::Put, json!({"city": "Rome", "near": ["depot"]}));
    assert_eq!(mistakes, ["near[0]: refers to no Location"]);
    let by_name = caller.saved(SaveMode::Merge, json!({"refName": "depot", "cost": 1}));
    assert_eq!(by_name, Err(RecordError::NotFound));
}

#[test]
fn a_mistake_names_its_field() {
    let caller = Caller::new();
    let entity = json!({
        "refName": "ab", "cost": 10, "near": [1], "ctiy": "Rome", "realm": "other", "tags": "a",
    });
    let expected = [
        "tags: must be an array",
        "city: is required",
        "cost: must be at most 9",
        "near[0]: must be the id or refName of a Location",
        "refName: must be at least 3 characters",
        "ctiy: is no field of this type; did you mean `city`?",
        "realm: is no field of this type",
    ];
    assert_eq!(caller.mistakes(SaveMode::Put, entity), expected);
    let id_of_another = json!({"city": "Rome", "refName": DEPOT});
    let mistakes = caller.mistakes(SaveMode::Put, id_of_another);
    assert_eq!(mistakes, ["refName: must not be the id of another record"]);
    assert_eq!(caller.mistakes(SaveMode::Put, json!([])), [": must be an object"]);
    for id in [json!("depot"), json!(7)] {
        let refused = caller.saved(SaveMode::Put, json!({"id": id, "city": "Rome"}));
        assert!(matches!(refused, Err(RecordError::InvalidId(_))));
    }
}

#[test]
fn a_record_has_a_largest_size() {
    let caller = Caller::new();
    let of = |chars: usize| caller.saved(SaveMode::Put, json!({"city": "x".repeat(chars)}));
    let spare = BYTES_MAX - of(1).unwrap().to_string().len();
    assert!(of(1 + spare).is_ok());
    assert_eq!(of(2 + spare), Err(RecordError::TooLarge { max: BYTES_MAX }));
}

#[test]
fn a_type_that_is_not_admitted_has_no_rows() {
    let mut caller = Caller::new();
    caller.scope = CallerScope::default();
    let entity = json!({"id": DEPOT, "city": "Rome"});
    assert_eq!(caller.saved(SaveMode::Put, entity), Err(RecordError::NotFound));
    assert_eq!(caller.saved(SaveMode::Put, json!({"city": "Rome"})), Err(RecordError::OutOfScope));
}
