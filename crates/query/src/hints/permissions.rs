//! How a caller asks beforehand what it may do.

use crate::records::reach::{TypeRights, Visible};
use serde_json::{Value, json};

/// The variable that has the caller's own id.
const PRINCIPAL: &str = "principalId";

/// Where permissions are asked for, with the types and acts of the caller.
pub fn permission_hints(visible: &Visible) -> Value {
    let mapping = json!([{
        "description": "Calls on records of any type.",
        "area": "integration",
        "functionalDomain": "query",
        "actions": ["listRootTypes", "plan", "find", "count", "save", "delete", "deleteMany"],
    }, {
        "description": "Records of one type; `resourceId` is its full name.",
        "area": "waypost",
        "functionalDomain": "RecordType",
        "actions": ["read", "save", "remove"],
    }]);
    let first = visible.rights.iter().next();
    json!({
        "checkEndpoint": "POST /system/permissions/check",
        "evaluateEndpoint": "POST /system/permissions/evaluate",
        "areaDomainActionMapping": mapping,
        "exampleCheckRequests": checks(visible, first),
        "didYouKnow": facts(first),
    })
}

fn checks(visible: &Visible, first: Option<(&String, &TypeRights)>) -> Vec<Value> {
    let realm = visible.access.realm.as_str();
    let identity = visible.variables.get(PRINCIPAL);
    let body = |area: &str, domain: &str, action: &str| {
        let mut body = json!({"area": area, "functionalDomain": domain, "action": action,
            "realm": realm});
        if let Some(identity) = identity {
            body["identity"] = identity.clone();
        }
        body
    };
    let find = body("integration", "query", "find");
    let mut all = vec![check("May I find records at all?", &find)];
    if let Some((name, _)) = first {
        let mut save = body("waypost", "RecordType", "save");
        save["resourceId"] = json!(name);
        all.push(check(&format!("May I save records of `{name}`?"), &save));
    }
    all
}

fn check(intent: &str, body: &Value) -> Value {
    json!({
        "intent": intent,
        "body": body,
        "responseFields": ["decision", "filterConstraints", "scopedConstraints"],
    })
}

fn facts(first: Option<(&String, &TypeRights)>) -> Vec<Value> {
    let example = first.map(|(name, rights)| {
        let may = |is_allowed: bool| if is_allowed { "may" } else { "may not" };
        let TypeRights { save, remove, .. } = *rights;
        format!("records of `{name}`: you {} save and {} delete them", may(save), may(remove))
    });
    let mut all = vec![json!({
        "title": "Rows and fields that you may not see do not exist for you",
        "body": "`filterConstraints` of a check says which rows are left.",
        "example": "POST /system/permissions/check",
    })];
    all.extend(example.map(|example| {
        json!({
            "title": "Reading, saving and deleting are decided apart",
            "body": "Each is asked about each type that a call touches.",
            "example": example,
        })
    }));
    all
}
