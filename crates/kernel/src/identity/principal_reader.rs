//! Principals as people and programs write them, YAML or JSON. Every mistake is reported with its
//! place, and a file with a mistake is not read at all.

use crate::definition::plan::mistake::{CheckResult, Mistake, checked, meant};
use crate::definition::plan::read::{Origin, Reader, Spot};
use crate::definition::plan::source::{Key, Node, NodeKind, Subject, child_pointer};
use crate::identity::grants::{BadRealm, Grants, RealmPattern, check_realm};
use crate::identity::principal::{DataDomain, PRINCIPALS_MAX, Principal, PrincipalKind, check_id};
use crate::identity::roles::{Role, Roles};
use crate::limits::Limits;
use crate::values::caller::LOCAL;
use crate::values::ids::RealmId;
use crate::values::names::is_plain_name;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// How many characters a text among the properties has at most.
const PROPERTY_CHARS_MAX: usize = 1_000;
/// How many properties a principal has at most, and how many items a list among them.
const PROPERTIES_MAX: usize = 100;

const ALL: &str = "principals";
const KEYS: &[&str] = &[
    "kind", "name", "realms", "defaultRealm", "realmOverrides", "dataDomain", "properties",
    "identities",
];
const KINDS: &[(&str, PrincipalKind)] =
    &[("user", PrincipalKind::User), ("service", PrincipalKind::Service)];

/// How mistakes of the text are reported.
const PRINCIPALS: Subject = Subject {
    noun: "principals",
    if_empty: "write `principals: {}` where there are none",
    if_large: "store some of them instead: `waypost principal apply`",
    if_deep: "a principal is not that deep",
};

/// Names defined elsewhere that principals may use.
#[derive(Debug, Clone, Copy)]
pub struct KnownNames<'a> {
    /// The issuers at which they can have identities; none where any is taken.
    pub issuers: Option<&'a [Arc<str>]>,
    /// Whether there are policies, which may know roles that are not built in.
    pub has_policies: bool,
}

/// Reads a file: its text, how mistakes name it, and what principals may name. Ids and identities
/// that two principals have are mistakes.
pub fn read_text(
    text: &str,
    file: &str,
    names: KnownNames<'_>,
    limits: &Limits,
) -> CheckResult<Vec<Arc<Principal>>> {
    let origin = Origin { file: Some(file.to_owned()), default_id: None };
    let node =
        Node::parse_as(&PRINCIPALS, text, limits).map_err(|found| origin.all_filed(found))?;
    let mut form = Form { reader: Reader::new(&origin, limits), names };
    let all = form.all(&Spot::root(&node));
    checked(Some(all), form.reader.mistakes)
}

/// Reads one principal that comes as a value, without its id.
pub fn read_value(id: &str, value: &Value, names: KnownNames<'_>) -> CheckResult<Principal> {
    let limits = Limits::default();
    let origin = Origin::default();
    if let Some(mistake) = PRINCIPALS.refuses(value, &limits) {
        return Err(vec![mistake]);
    }
    check_id(id).map_err(|bad| vec![Mistake::error(bad.to_string())])?;
    let node = Node::from_value(value);
    let mut form = Form { reader: Reader::new(&origin, &limits), names };
    let principal = form.principal(id, &Spot::root(&node));
    checked(principal, form.reader.mistakes)
}

/// Reads the parts of principals. A function that gives nothing for a value that is there has noted
/// a mistake.
struct Form<'a> {
    reader: Reader<'a>,
    names: KnownNames<'a>,
}

/// Ids and identities of earlier principals, which must be unique.
#[derive(Default)]
struct TakenNames {
    ids: HashMap<String, String>,
    identities: HashMap<Arc<str>, String>,
}

impl Form<'_> {
    fn all(&mut self, spot: &Spot<'_>) -> Vec<Arc<Principal>> {
        if !self.reader.object(spot, "a file of principals", &[ALL]) {
            return Vec::new();
        }
        let Some(field) = self.reader.need(spot, ALL) else { return Vec::new() };
        let entries = self.entries(&field, "a map of principals by their ids");
        if entries.len() > PRINCIPALS_MAX {
            let what = format!("there are more than {PRINCIPALS_MAX} principals");
            self.reader.note(&field, Mistake::error(what).hint("remove some of them"));
            return Vec::new();
        }
        let mut all = Vec::new();
        let mut taken = TakenNames::default();
        for (key, below) in entries {
            self.id(&field, key, &mut taken);
            if let Some(principal) = self.principal(&key.text, &below) {
                self.identities_of_others(&principal, &below, &mut taken);
                all.push(Arc::new(principal));
            }
        }
        all
    }

    /// The entries of a map, each with its place; none where it is null.
    fn entries<'n>(&mut self, field: &Spot<'n>, wanted: &str) -> Vec<(&'n Key, Spot<'n>)> {
        match &field.node.kind {
            NodeKind::Map(entries) => {
                let pointer = |key: &Key| child_pointer(&field.pointer, &key.text);
                let below = entries.iter();
                below.map(|(key, node)| (key, Spot { node, pointer: pointer(key) })).collect()
            }
            NodeKind::Null => Vec::new(),
            _ => {
                self.reader.wrong(field, wanted);
                Vec::new()
            }
        }
    }

    fn id(&mut self, field: &Spot<'_>, key: &Key, taken: &mut TakenNames) {
        let id = &key.text;
        if let Err(bad) = check_id(id) {
            self.reader.note_key(field, key, Mistake::error(bad.to_string()));
        }
        if let Some(other) = taken.ids.insert(id.to_ascii_lowercase(), id.clone()) {
            let what = format!("`{id}` and `{other}` differ in upper and lower case only");
            let mistake = Mistake::error(what).hint("give one of them another id");
            self.reader.note_key(field, key, mistake);
        }
    }

    fn identities_of_others(&mut self, one: &Principal, spot: &Spot<'_>, taken: &mut TakenNames) {
        for identity in &one.identities {
            if let Some(other) = taken.identities.insert(identity.clone(), one.id.to_string()) {
                let what = format!("the identity `{identity}` belongs to `{other}` already");
                let mistake = Mistake::error(what).hint("an identity belongs to one principal");
                self.reader.note(spot, mistake);
            }
        }
    }

    fn principal(&mut self, id: &str, spot: &Spot<'_>) -> Option<Principal> {
        if !self.reader.object(spot, "a principal", KEYS) {
            return None;
        }
        let kind = self.reader.one_of(spot, &["kind"], KINDS).unwrap_or(PrincipalKind::User);
        let name = self.reader.maybe_name(spot, "name").unwrap_or_default().to_owned();
        let realms = self.realms(spot);
        let identities = self.identities(spot);
        if spot.field("realms").is_none() && identities.is_empty() {
            let mistake = Mistake::error("the principal has neither `realms` nor `identities`");
            self.reader.note(spot, mistake.hint("write `realms: {default: [member]}`"));
        }
        let default_realm = self.default_realm(spot, &realms, !identities.is_empty());
        let realm_overrides = self.overrides(spot);
        let data_domain = spot.field("dataDomain").and_then(|field| self.data_domain(&field));
        let properties = self.properties(spot);
        Some(Principal {
            id: id.into(),
            kind,
            name,
            realms,
            default_realm,
            realm_overrides,
            data_domain,
            properties,
            identities,
        })
    }

    fn realms(&mut self, spot: &Spot<'_>) -> Grants {
        let mut grants = Grants::default();
        let Some(field) = spot.field("realms") else { return grants };
        for (key, below) in self.entries(&field, "a map of realms with their roles") {
            let roles = self.roles(&below);
            match RealmPattern::parse(&key.text) {
                Ok(realm) => grants.give(realm, &roles),
                Err(bad) => self.bad_realm(&field, key, &bad),
            }
        }
        grants
    }

    fn bad_realm(&mut self, spot: &Spot<'_>, key: &Key, bad: &BadRealm) {
        self.reader.note_key(spot, key, Mistake::error(bad.to_string()));
    }

    fn roles(&mut self, spot: &Spot<'_>) -> Roles {
        let items = self.reader.list(spot).unwrap_or_default();
        items.iter().filter_map(|item| self.role(item)).collect()
    }

    /// A role of ours, or one that only policies know.
    fn role(&mut self, spot: &Spot<'_>) -> Option<Arc<str>> {
        let name = self.reader.name(spot)?;
        if Role::from_name(name).is_some() {
            return Some(name.into());
        }
        let near = meant(name, Role::ALL.iter().map(|role| role.name()));
        let plain = is_plain_name(name);
        if !plain || (near.is_some() && !self.names.has_policies) {
            let hint = near.unwrap_or_else(|| "a role is letters, digits, `_`, `.` and `-`".into());
            let what = format!("there is no role `{name}`");
            self.reader.note(spot, Mistake::error(what).hint(hint));
            return None;
        }
        let unnamed = "it permits nothing unless a policy names it".to_owned();
        // Where there are policies, only what looks like a slip is worth a word.
        let hint = if self.names.has_policies { near } else { Some(unnamed) };
        if let Some(hint) = hint {
            let mistake = Mistake::warning(format!("`{name}` is not a built-in role"));
            self.reader.note(spot, mistake.hint(hint));
        }
        Some(name.into())
    }

    /// The default realm must be one that can be entered; tokens may name more than the file does.
    fn default_realm(
        &mut self,
        spot: &Spot<'_>,
        realms: &Grants,
        has_identities: bool,
    ) -> Option<RealmId> {
        let field = spot.field("defaultRealm")?;
        let realm = self.realm(&field)?;
        if !has_identities && !realms.enters(&realm) {
            let what = format!("`{realm}` is not one of the principal's realms");
            self.reader.note(&field, Mistake::error(what).hint("add it to `realms`"));
        }
        Some(realm)
    }

    fn realm(&mut self, spot: &Spot<'_>) -> Option<RealmId> {
        let name = self.reader.text(spot)?;
        match check_realm(name) {
            Ok(()) => Some(name.into()),
            Err(bad) => {
                self.reader.note(spot, Mistake::error(bad.to_string()));
                None
            }
        }
    }

    fn overrides(&mut self, spot: &Spot<'_>) -> BTreeMap<String, RealmId> {
        let Some(field) = spot.field("realmOverrides") else { return BTreeMap::new() };
        let mut overrides = BTreeMap::new();
        for (key, below) in self.entries(&field, "a map of areas with their realms") {
            if let Some(realm) = self.realm(&below) {
                overrides.insert(key.text.clone(), realm);
            }
        }
        overrides
    }

    fn identities(&mut self, spot: &Spot<'_>) -> BTreeSet<Arc<str>> {
        let mut identities = BTreeSet::new();
        let Some(field) = spot.field("identities") else { return identities };
        for item in self.reader.list(&field).unwrap_or_default() {
            let Some(identity) = self.identity(&item) else { continue };
            if let Some(twice) = identities.replace(identity) {
                let what = format!("the identity `{twice}` is listed twice");
                self.reader.note(&item, Mistake::error(what).hint("remove one of the two"));
            }
        }
        identities
    }

    /// `{issuer: corp, sub: 00u1}`, the same as `corp:00u1`, or `local`.
    fn identity(&mut self, spot: &Spot<'_>) -> Option<Arc<str>> {
        if spot.node.text() == Some(LOCAL) {
            return Some(LOCAL.into());
        }
        let (issuer, sub) = match spot.node.text() {
            Some(_) => self.subject(spot)?,
            None => self.issued(spot)?,
        };
        let known = self.names.issuers.unwrap_or_default();
        if self.names.issuers.is_some() && !known.iter().any(|known| **known == *issuer) {
            let near = meant(issuer, known.iter().map(|known| &**known));
            let usual = "name an entry of `[auth.issuers]` in waypost.toml";
            let hint = near.unwrap_or_else(|| usual.to_owned());
            let mistake = Mistake::error(format!("there is no issuer `{issuer}`")).hint(hint);
            self.reader.note(spot, mistake);
            return None;
        }
        Some(format!("{issuer}:{sub}").into())
    }

    fn subject<'n>(&mut self, spot: &Spot<'n>) -> Option<(&'n str, &'n str)> {
        let halves = self.reader.name(spot)?.split_once(':');
        let halves = halves.filter(|(_, sub)| !sub.is_empty());
        if halves.is_none() {
            self.reader.wrong(spot, "`local`, or an issuer and a `sub`, such as `corp:00u1`");
        }
        halves
    }

    fn issued<'n>(&mut self, spot: &Spot<'n>) -> Option<(&'n str, &'n str)> {
        if !self.reader.object(spot, "an identity", &["issuer", "sub"]) {
            return None;
        }
        let issuer = self.reader.need_name(spot, "issuer");
        let sub = self.reader.need_name(spot, "sub");
        Some((issuer?, sub?))
    }

    fn data_domain(&mut self, spot: &Spot<'_>) -> Option<DataDomain> {
        let texts = ["orgRefName", "accountNum", "tenantId", "ownerId"];
        let keys = [&texts[..], &["dataSegment"]].concat();
        if !self.reader.object(spot, "a data domain", &keys) {
            return None;
        }
        let [org_ref_name, account_num, tenant_id, owner_id] =
            texts.map(|key| self.reader.maybe_name(spot, key).map(str::to_owned));
        let segment = spot.field("dataSegment");
        let data_segment = segment.as_ref().and_then(|field| field.node.whole());
        if let Some(field) = segment.filter(|_| data_segment.is_none()) {
            self.reader.wrong(&field, "a whole number from 0");
        }
        Some(DataDomain { org_ref_name, account_num, tenant_id, data_segment, owner_id })
    }

    fn properties(&mut self, spot: &Spot<'_>) -> BTreeMap<String, Value> {
        let mut properties = BTreeMap::new();
        let Some(field) = spot.field("properties") else { return properties };
        let entries = self.entries(&field, "a map of properties");
        if entries.len() > PROPERTIES_MAX {
            let what = format!("a principal has at most {PROPERTIES_MAX} properties");
            self.reader.note(&field, Mistake::error(what));
            return properties;
        }
        for (key, below) in entries {
            if is_property(below.node) {
                properties.insert(key.text.clone(), below.node.to_value());
            } else {
                let wanted = "a text, a whole number, true or false, or a list of texts";
                self.reader.wrong(&below, wanted);
            }
        }
        properties
    }
}

/// Whether policies can ask about it.
fn is_property(node: &Node) -> bool {
    let is_short = |text: &str| text.chars().count() <= PROPERTY_CHARS_MAX;
    let is_text = |node: &Node| node.text().is_some_and(is_short);
    match &node.kind {
        NodeKind::Bool(_) => true,
        NodeKind::Number(number) => number.is_i64(),
        NodeKind::Text(_) => is_text(node),
        NodeKind::List(items) => items.len() <= PROPERTIES_MAX && items.iter().all(is_text),
        NodeKind::Null | NodeKind::Map(_) => false,
    }
}

#[cfg(test)]
mod tests;
