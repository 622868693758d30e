//! The tools on records over a store in memory, with a reach that each test chooses.

mod finding;
mod writing;
mod schemas;

use super::{RecordTools, record_tools};
use crate::test_calls::{call_of, unrecorded};
use futures::executor::block_on;
use futures::future::BoxFuture;
use kernel::contracts::{Clock, Entropy, Tool};
use kernel::identity::principal::DataDomain;
use kernel::tool::call::{Call, CallProgress, Caller, ToolError, ToolOutput};
use kernel::values::fault::Fault;
use kernel::values::ids::{CallId, Millis, RealmId};
use query::check::{HiddenFields, Scope, check_row_filter};
use query::parser::parse;
use query::records::reach::{
    Reach, ReachError, ReachRequest, RecordAccess, RecordAct, TypeRights, Visible,
};
use query::records::requests::{Access, Author, RecordLimits};
use query::records::scope::CallerScope;
use query::types::{Field, Kind, RecordType, TypeSet};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use testkit::model_records::{ModelRecords, ModelRecordsState};

const REALM: &str = "main";
const NOW: Millis = Millis(1_700_000_000_000);
const ADA: &str = "65a00000000000000000000a";
const BOB: &str = "65a00000000000000000000b";
const FIRST: &str = "65a000000000000000000001";
const SECOND: &str = "65a000000000000000000002";
const THIRD: &str = "65a000000000000000000003";

struct StillClock;

impl Clock for StillClock {
    fn now(&self) -> Millis {
        NOW
    }

    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep_until(&self, _then: Millis) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}

#[derive(Default)]
struct Counted(AtomicU64);

impl Entropy for Counted {
    fn bits(&self) -> u128 {
        u128::from(self.0.fetch_add(1, Ordering::SeqCst) + 1) << 64
    }
}

/// Every caller reaches the same.
#[derive(Clone)]
struct FixedAccess {
    types: Arc<TypeSet>,
    /// A filter for the rows of `Order`.
    rows: Option<&'static str>,
    /// Fields of `Order`.
    hidden: Vec<&'static str>,
    denied: Vec<RecordAct>,
    find_rows_max: usize,
    explains: bool,
}

impl FixedAccess {
    fn order(&self) -> &RecordType {
        self.types.find("Order").unwrap()
    }

    fn access(&self, realm: &RealmId) -> Access {
        let mut scope = CallerScope::unlimited(&self.types);
        for path in &self.hidden {
            scope.hide(&self.types, self.order(), path);
        }
        if let Some(rows) = self.rows {
            let variables = BTreeMap::new();
            let hidden = HiddenFields::default();
            let root = self.order();
            let checked =
                Scope { types: &self.types, root, variables: &variables, hidden: &hidden };
            scope.restrict(root, &check_row_filter(&parse(rows).unwrap(), checked).unwrap());
        }
        Access { realm: realm.clone(), types: self.types.clone(), scope: Arc::new(scope) }
    }
}

impl RecordAccess for FixedAccess {
    fn types(&self, _realm: &RealmId) -> Arc<TypeSet> {
        self.types.clone()
    }

    fn reach(&self, request: ReachRequest<'_>) -> Result<Reach, ReachError> {
        let own = &request.caller.realm;
        if let Some(named) = request.realm.filter(|named| *named != own.as_str()) {
            let realm = own.to_string();
            return Err(ReachError::OtherRealm { realm, named: named.to_owned() });
        }
        let record_type = self.types.find(request.record_type)?.full_name();
        if self.denied.contains(&request.act) {
            let act = request.act.name();
            return Err(ReachError::Forbidden(format!("nobody may {act} `{record_type}`")));
        }
        let subject = request.caller.subject.clone();
        Ok(Reach {
            record_type,
            access: self.access(own),
            variables: BTreeMap::from([("principalId".to_owned(), json!(*subject))]),
            author: Author { subject, domain: DataDomain::default(), administers: false },
            find_rows_max: self.find_rows_max,
            find_skip_max: 100,
            explains: self.explains,
        })
    }

    fn visible(&self, caller: &Caller) -> Result<Visible, ReachError> {
        let readable = self.types.all().iter().filter(|one| one.name != "Secret");
        let rights = readable.map(|one| (one.full_name(), TypeRights::default())).collect();
        let access = self.access(&caller.realm);
        Ok(Visible { access, rights, variables: BTreeMap::new() })
    }
}

fn types() -> TypeSet {
    let order = vec![
        Field::new("status", Kind::String),
        Field::new("total", Kind::Integer),
        Field::new("margin", Kind::Integer),
        Field::new("city", Kind::String),
        Field::new("customer", Kind::Reference("Customer".to_owned())),
    ];
    let tier = Field::new("tier", Kind::String);
    TypeSet::new(vec![
        RecordType::new("shop", "orders", "Order", order),
        RecordType::new("shop", "customers", "Customer", vec![tier]),
        RecordType::new("shop", "depots", "Depot", Vec::new()),
        RecordType::new("farm", "farm_depots", "Depot", Vec::new()),
        RecordType::new("shop", "secrets", "Secret", Vec::new()),
    ])
}

/// Two customers, and three orders of theirs.
struct House {
    state: Arc<ModelRecordsState>,
    limits: RecordLimits,
    access: FixedAccess,
    entropy: Arc<Counted>,
}

impl House {
    fn new() -> Self {
        let access = FixedAccess {
            types: Arc::new(types()),
            rows: None,
            hidden: Vec::new(),
            denied: Vec::new(),
            find_rows_max: 1_000,
            explains: false,
        };
        let house = Self {
            state: Arc::default(),
            limits: RecordLimits::default(),
            access,
            entropy: Arc::default(),
        };
        let customers = [(ADA, "ada", "gold"), (BOB, "bob", "silver")];
        let customers = customers
            .map(|(id, name, tier)| ("Customer", json!({"id": id, "refName": name, "tier": tier})));
        let orders = [
            (FIRST, "ord-1", "open", 10, "Oslo", "ada"),
            (SECOND, "ord-2", "open", 20, "Bergen", "ada"),
            (THIRD, "ord-3", "closed", 30, "Oslo", "bob"),
        ];
        let orders = orders.map(|(id, name, status, total, city, customer)| {
            let order = json!({
                "id": id, "refName": name, "status": status, "total": total, "city": city,
                "margin": total / 10, "customer": customer,
            });
            ("Order", order)
        });
        for (place, (root_type, entity)) in customers.into_iter().chain(orders).enumerate() {
            let arguments = json!({"rootType": root_type, "entity": entity});
            house.call_under(1_000 + place as u128, "query_save", arguments).unwrap();
        }
        house
    }

    /// The same records for someone who reaches less, or more.
    fn with(&self, change: impl FnOnce(&mut FixedAccess)) -> Self {
        let mut access = self.access.clone();
        change(&mut access);
        Self {
            state: self.state.clone(),
            limits: self.limits.clone(),
            access,
            entropy: self.entropy.clone(),
        }
    }

    fn limited(&self, change: impl FnOnce(&mut RecordLimits)) -> Self {
        let mut house = self.with(|_| ());
        change(&mut house.limits);
        house
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        record_tools(RecordTools {
            access: Arc::new(self.access.clone()),
            records: Arc::new(ModelRecords::open(&self.state, self.limits.clone())),
            clock: Arc::new(StillClock),
            entropy: self.entropy.clone(),
        })
    }

    fn tool(&self, name: &str) -> Arc<dyn Tool> {
        let mut tools = self.tools().into_iter();
        tools.find(|tool| tool.spec().name.as_str() == name).unwrap()
    }

    /// A call of its own.
    fn call(&self, name: &str, arguments: Value) -> Result<Value, ToolError> {
        self.call_under(self.entropy.bits(), name, arguments)
    }

    /// The call of this id.
    fn call_under(&self, id: u128, name: &str, arguments: Value) -> Result<Value, ToolError> {
        let tool = self.tool(name);
        let caller = Caller::new(REALM, "ann");
        let checked = tool.check(&caller, &arguments);
        let call = Call { id: CallId(id), ..unrecorded(call_of(name, arguments)) };
        let called = block_on(tool.call(&caller, &call));
        if let Err(refused) = checked {
            // What is refused before policy is refused by the call, too.
            assert_eq!(called, Err(refused.clone()));
            return Err(refused);
        }
        match called? {
            ToolOutput::Value(answer) => {
                assert_listed(&tool, &answer);
                Ok(answer)
            }
            other => panic!("{other:?}"),
        }
    }

    /// The fault of a call that is refused before anything is asked of the store.
    fn refused(&self, name: &str, arguments: Value) -> Fault {
        let error = self.call(name, arguments.clone()).unwrap_err();
        assert_eq!(error.how, CallProgress::NotSent, "{arguments}: {error:?}");
        error.fault
    }

    /// The fault of a call that the store refuses.
    fn failed(&self, name: &str, arguments: Value) -> Fault {
        let error = self.call(name, arguments.clone()).unwrap_err();
        assert_eq!(error.how, CallProgress::Failed, "{arguments}: {error:?}");
        error.fault
    }

    fn count(&self, query: &str) -> u64 {
        let arguments = json!({"rootType": "Order", "query": query});
        self.call("query_count", arguments).unwrap()["count"].as_u64().unwrap()
    }
}

/// An answer has what is required of it, and nothing that is not listed.
fn assert_listed(tool: &Arc<dyn Tool>, answer: &Value) {
    let schema = tool.spec().output_schema.clone().unwrap();
    let answer = answer.as_object().unwrap();
    for required in schema["required"].as_array().unwrap() {
        assert!(answer.contains_key(required.as_str().unwrap()), "{required} of {answer:?}");
    }
    for name in answer.keys() {
        assert!(schema["properties"].get(name).is_some(), "`{name}` of {schema}");
    }
}

fn detail(fault: &Fault) -> Map<String, Value> {
    fault.detail.as_deref().cloned().unwrap_or_default()
}

/// What is refused in the same way by every tool that names a type.
#[test]
fn a_type_and_a_realm_are_refused_before_anything_is_read() {
    let house = House::new();
    let denying = house.with(|access| {
        access.denied = vec![RecordAct::Read, RecordAct::Save, RecordAct::Remove];
    });
    for (name, more) in [
        ("query_plan", json!({})),
        ("query_find", json!({})),
        ("query_count", json!({})),
        ("query_save", json!({"entity": {}})),
        ("query_delete", json!({"id": FIRST})),
        ("query_deleteMany", json!({"all": true})),
    ] {
        let with = |root_type: &str, realm: &str| {
            let mut arguments = more.clone();
            arguments["rootType"] = json!(root_type);
            arguments["realm"] = json!(realm);
            arguments
        };
        let fault = |root_type: &str, realm: &str| house.refused(name, with(root_type, realm));
        assert_eq!(fault("Gone", REALM).name, "UnknownRootType", "{name}");
        assert_eq!(fault(" ", REALM).name, "UnknownRootType", "{name}");
        let candidates = detail(&fault("Depot", REALM))["candidates"].clone();
        assert_eq!(candidates, json!(["shop.Depot", "farm.Depot"]), "{name}");
        assert_eq!(fault("Order", "other").name, "realm_not_allowed", "{name}");
        assert_eq!(denying.refused(name, with("Order", REALM)).name, "forbidden", "{name}");
        let mut unknown = with("Order", REALM);
        unknown["colour"] = json!("red");
        assert_eq!(house.refused(name, unknown).name, "InputValidationError", "{name}");
    }
    assert_eq!(house.count(""), 3);
    let fault = house.refused("query_rootTypes", json!({"realm": "other"}));
    assert_eq!(fault.name, "realm_not_allowed");
}
