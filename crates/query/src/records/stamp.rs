//! The fields that every record has, as a save leaves them.

use super::names::{REF_NAME_CHARS_MIN, read_id};
use super::outcome::version_of;
use super::requests::{Author, Write};
use super::values::Reader;
use kernel::values::ids::RealmId;
use kernel::values::members::take;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

const ACTIVE: &str = "ACTIVE";

/// Members of a data domain that say nothing of who may reach a record.
const FREE_MEMBERS: [&str; 2] = ["businessTransactionId", "locationId"];

/// Around the fields of the type: what comes before them in a record, and what behind.
pub(super) struct Stamped {
    pub(super) head: Map<String, Value>,
    pub(super) tail: Map<String, Value>,
}

/// The data domain of what a caller makes: without one of its own the realm is organisation and
/// tenant, and the subject the owner.
pub fn domain_of(author: &Author, realm: &RealmId) -> Value {
    let domain = &author.domain;
    let org = domain.org_ref_name.as_deref().unwrap_or(realm.as_str());
    let tenant = domain.tenant_id.as_deref().unwrap_or(realm.as_str());
    let owner = domain.owner_id.as_deref().unwrap_or(&author.subject);
    let mut stamped = Map::new();
    stamped.insert("orgRefName".to_owned(), Value::from(org));
    if let Some(account) = &domain.account_num {
        stamped.insert("accountNum".to_owned(), Value::from(account.as_str()));
    }
    stamped.insert("tenantId".to_owned(), Value::from(tenant));
    stamped.insert("dataSegment".to_owned(), Value::from(domain.data_segment.unwrap_or_default()));
    stamped.insert("ownerId".to_owned(), Value::from(owner));
    Value::Object(stamped)
}

/// Of what is given only fields of the right kinds are left.
pub(super) fn stamp(
    mut given: Map<String, Value>,
    id: &str,
    before: Option<&Value>,
    write: &Write,
    realm: &RealmId,
    reader: &mut Reader,
) -> Stamped {
    let old = |name: &str| before.and_then(|before| before.get(name)).cloned();
    let ref_name = ref_name(take(&mut given, "refName").or_else(|| old("refName")), id, reader);
    let display_name = match take(&mut given, "displayName") {
        Some(Value::String(text)) if !text.trim().is_empty() => text.trim().to_owned(),
        _ => ref_name.clone(),
    };
    let base = old("dataDomain").unwrap_or_else(|| domain_of(&write.author, realm));
    let domain = data_domain(take(&mut given, "dataDomain"), base, &write.author, reader);
    let now = Value::String(write.at.rfc3339());
    let author = Value::from(&*write.author.subject);
    let made = |name: &str, or: &Value| {
        let old = before.and_then(|before| before.get("auditInfo")?.get(name));
        old.unwrap_or(or).clone()
    };
    let audit_info = json!({
        "creationTs": made("creationTs", &now),
        "creationIdentity": made("creationIdentity", &author),
        "lastUpdateTs": now,
        "lastUpdateIdentity": author,
    });
    let mut head = Map::new();
    head.insert("id".to_owned(), Value::from(id));
    head.insert("refName".to_owned(), Value::String(ref_name));
    head.insert("displayName".to_owned(), Value::String(display_name));
    let mut tail = Map::new();
    let status = take(&mut given, "activeStatus").unwrap_or_else(|| Value::from(ACTIVE));
    tail.insert("activeStatus".to_owned(), status);
    let tags = tags(take(&mut given, "tags"));
    if !tags.is_empty() {
        tail.insert("tags".to_owned(), Value::Array(tags));
    }
    if let Some(tags) = take(&mut given, "advancedTags") {
        tail.insert("advancedTags".to_owned(), tags);
    }
    tail.insert("dataDomain".to_owned(), domain);
    tail.insert("auditInfo".to_owned(), audit_info);
    let version = before.map_or(0, version_of) + 1;
    tail.insert("version".to_owned(), Value::from(version));
    Stamped { head, tail }
}

/// The id, if none is given. One that reads as another id could be taken for that record.
fn ref_name(given: Option<Value>, id: &str, reader: &mut Reader) -> String {
    let Some(Value::String(text)) = given else {
        return id.to_owned();
    };
    let text = text.trim();
    if text.chars().count() < REF_NAME_CHARS_MIN {
        let message = format!("must be at least {REF_NAME_CHARS_MIN} characters");
        reader.wrong("refName", message);
    }
    if read_id(text).is_some_and(|other| other != id) {
        reader.wrong("refName", "must not be the id of another record");
    }
    text.to_owned()
}

fn tags(given: Option<Value>) -> Vec<Value> {
    let Some(Value::Array(given)) = given else {
        return Vec::new();
    };
    let mut seen = BTreeSet::new();
    let tags = given.iter().filter_map(Value::as_str).map(str::trim);
    tags.filter(|tag| !tag.is_empty() && seen.insert(*tag)).map(Value::from).collect()
}

/// A caller that does not administer may repeat what decides who reaches the record, not set it.
fn data_domain(
    given: Option<Value>,
    mut base: Value,
    author: &Author,
    reader: &mut Reader,
) -> Value {
    if let (Some(Value::Object(given)), Value::Object(base)) = (given, &mut base) {
        for (name, value) in given {
            let is_free = author.administers || FREE_MEMBERS.contains(&name.as_str());
            if name == "dataSegment" && value.as_i64().is_some_and(|segment| segment < 0) {
                reader.wrong("dataDomain.dataSegment", "must be at least 0");
            } else if is_free {
                base.insert(name, value);
            } else if base.get(&name) != Some(&value) {
                let message = "is not for the caller to set";
                reader.wrong(&format!("dataDomain.{name}"), message);
            }
        }
    }
    base
}
