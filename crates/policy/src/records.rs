//! Holds policies against the types of records that a server has: the names of types, the queries
//! of `@rows` and the fields of `@hide`.

use crate::decide::Policies;
use crate::files::{Effect, FilePolicy, error, warning};
use crate::narrowing::{AnnotationFault, Narrowing, ROWS, variables};
use crate::schema::Kind;
use kernel::definition::plan::mistake::{Mistake, did_you_mean, meant};
use kernel::values::ids::RealmId;
use query::check::{HiddenFields, Scope, check_path, check_row_filter};
use query::parser::{parse, parse_path};
use query::types::{RealmTypes, RecordType, TypeSet};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The variables that queries of callers have, beside the properties of their principals.
pub const CALLER_VARIABLES: [&str; 15] = [
    "principalId", "pAccountId", "pTenantId", "systemTenantId", "ownerId", "orgRefName",
    "resourceId", "action", "functionalDomain", "area", "defaultRealm", "dcTenantId",
    "dcOrgRefName", "dcAccountId", "dcDataSegment",
];

/// Types that every server with records has; nobody declares them.
const BUILT_IN: [&str; 2] = ["waypost.Agent", "waypost.ToolProviderConfig"];

/// What a variable may be: neither its value nor its kind is known before there is a caller.
const SOME_VALUE: &str = "x";

/// The mistakes of policies about records, in the order of the files: types and fields that are not
/// there, queries that do not fit their type, and, as warnings, what fits in some realms only.
pub fn check_records(policies: &Policies, types: &RealmTypes) -> Vec<Mistake> {
    let known = KnownTypes::of(types);
    let mut found: Vec<Mistake> =
        policies.all().iter().flat_map(|policy| known.mistakes(policy)).collect();
    found.sort_by(|one, other| {
        (&one.file, one.line, one.column).cmp(&(&other.file, other.line, other.column))
    });
    found
}

/// The types of each realm that has its own, and those of all others.
struct KnownTypes<'t> {
    sets: Vec<(Option<&'t RealmId>, &'t TypeSet)>,
    /// The full names of all of them.
    names: BTreeSet<String>,
}

impl<'t> KnownTypes<'t> {
    fn of(types: &'t RealmTypes) -> Self {
        let own = types.own.iter().map(|(realm, set)| (Some(realm), &**set));
        let sets: Vec<_> = std::iter::once((None, &*types.common)).chain(own).collect();
        let all = sets.iter().flat_map(|(_, set)| set.all());
        let names = all.map(RecordType::full_name).collect();
        Self { sets, names }
    }

    fn mistakes(&self, policy: &FilePolicy) -> Vec<Mistake> {
        let is_unknown = |name: &&String| {
            !self.names.contains(name.as_str()) && !BUILT_IN.contains(&name.as_str())
        };
        let unknown = policy.record_types.iter().filter(is_unknown);
        let mut found: Vec<Mistake> = unknown.map(|name| self.unknown(policy, name)).collect();
        if let Effect::Narrow(narrowing) = &policy.effect {
            found.extend(misspelt_variables(policy, narrowing));
            if let Some(name) = policy.resources.record_type() {
                found.extend(self.misfits(policy, narrowing, name));
            }
        }
        found
    }

    fn unknown(&self, policy: &FilePolicy, name: &str) -> Mistake {
        let names = || self.names.iter().map(String::as_str);
        let is_full = |full: &&str| full.rsplit('.').next() == Some(name);
        let hint = match names().find(is_full) {
            Some(full) => format!("policies name a type in full: write `RecordType::\"{full}\"`"),
            None if self.names.is_empty() => {
                "the project declares no types: each is a file `entities/<Type>.yaml`".to_owned()
            }
            None => meant(name, names()).unwrap_or_else(|| {
                let all: Vec<String> = names().map(|name| format!("`{name}`")).collect();
                format!("the types are {}", all.join(", "))
            }),
        };
        let mistake = Mistake::error(format!("there is no type of records `{name}`")).hint(hint);
        policy.source.place_at_entity(mistake, Kind::RecordType, name)
    }

    /// What does not fit the type of this name: an error if it fits in no realm.
    fn misfits(&self, policy: &FilePolicy, narrowing: &Narrowing, name: &str) -> Vec<Mistake> {
        let faults_in = |(realm, types): &(Option<&'t RealmId>, &'t TypeSet)| {
            let root = types.all().iter().find(|known| known.full_name() == name)?;
            Some((*realm, faults(narrowing, types, root)))
        };
        let checked: Vec<_> = self.sets.iter().filter_map(faults_in).collect();
        let fits_once = checked.iter().any(|(_, faults)| faults.is_empty());
        let mut found = Vec::new();
        for (realm, faults) in checked {
            for fault in faults {
                if fits_once {
                    let mistake = policy.source.place_in_annotation(&fault, warning);
                    let message = format!("{}, {}", of_realm(realm), mistake.message);
                    found.push(Mistake { message, ..mistake });
                } else {
                    let mistake = policy.source.place_in_annotation(&fault, error);
                    if !found.contains(&mistake) {
                        found.push(mistake);
                    }
                }
            }
        }
        found
    }
}

fn of_realm(realm: Option<&RealmId>) -> String {
    match realm {
        Some(realm) => format!("in realm `{realm}`"),
        None => "in realms without types of their own".to_owned(),
    }
}

/// What is wrong with a policy about records of this type.
fn faults(narrowing: &Narrowing, types: &TypeSet, root: &RecordType) -> Vec<AnnotationFault> {
    let nothing = HiddenFields::default();
    let query = narrowing.rows.as_ref().and_then(|rows| parse(rows).ok());
    let named = query.iter().flat_map(variables);
    let values: BTreeMap<String, Value> =
        named.map(|(name, _)| (name.to_owned(), Value::from(SOME_VALUE))).collect();
    let scope = Scope { types, root, variables: &values, hidden: &nothing };
    let wrong = query.as_ref().and_then(|query| check_row_filter(query, scope).err());
    let mut found: Vec<AnnotationFault> = wrong.map(AnnotationFault::of_rows).into_iter().collect();
    for field in &narrowing.hidden {
        let checked = parse_path(&field.path).and_then(|path| check_path(&path, scope));
        found.extend(checked.err().map(|fault| field.fault(fault)));
    }
    found
}

/// Names of variables that are almost those that every caller has. Another name is that of a
/// property, which is not known here; who does not have it sees no records.
fn misspelt_variables(policy: &FilePolicy, narrowing: &Narrowing) -> Vec<Mistake> {
    let Some(Ok(query)) = narrowing.rows.as_ref().map(|rows| parse(rows)) else {
        return Vec::new();
    };
    let named = variables(&query);
    let unknown = named.into_iter().filter(|(name, _)| !CALLER_VARIABLES.contains(name));
    let told = unknown.filter_map(|(name, position)| {
        let near = did_you_mean(name, CALLER_VARIABLES)?;
        let fault = AnnotationFault {
            annotation: ROWS,
            position,
            message: format!("callers have no variable `{name}`, unless it is a property"),
            hint: format!("did you mean `{near}`?"),
        };
        Some(policy.source.place_in_annotation(&fault, warning))
    });
    told.collect()
}
