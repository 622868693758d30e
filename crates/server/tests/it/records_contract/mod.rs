//! Records over HTTP and MCP: the shop of the records example on a server that asks for
//! credentials, and how its people ask for records.

mod agent;
mod approvals;
mod gateway;
mod limits;
mod malformed;
mod over_mcp;
mod refused;
mod resources;

use crate::api_keys::{ADMIN, Key};
use crate::house::{Answer, House, request, text};
use crate::mcp_client::modern;
use axum::body::Body;
use axum::http::{Method, Request};
use project::config::Config;
use project::entities::EntityFile;
use project::folder::Project;
use project::policies::PolicyFile;
use project::records_example::records_example;
use serde_json::{Value, json};

const SETTINGS: &str = include_str!("../../../../../examples/records/waypost.toml");
/// A type that takes any field, of which one is for leads.
const NOTE: &str = "namespace: shop\ncollection: notes\nadditionalFields: true\nfields:\n  \
    about: {type: reference, to: Order}\n  body: {type: string}\n  \
    code: {type: string, unique: true}\n  data: {type: json}\n  secret: {type: string}\n";
const POLICIES: &str = r#"
@id("no-secrets")
@hide("secret")
forbid (
  principal,
  action in [Action::"read", Action::"save", Action::"remove"],
  resource == RecordType::"shop.Note"
)
unless { principal in Role::"lead" };

@id("no-customers")
forbid (
  principal in Role::"clerk",
  action in [Action::"read", Action::"save", Action::"remove"],
  resource == RecordType::"shop.Customer"
);

@id("readers-read")
forbid (principal in Role::"reader", action in [Action::"save", Action::"remove"], resource);
"#;

/// Somebody with a credential, in the realm that it is good for or in the one that is named.
pub struct Person {
    credential: String,
    realm: Option<&'static str>,
}

impl Person {
    /// The administrator of the server, in the shop.
    pub fn admin() -> Self {
        Self { credential: ADMIN.to_owned(), realm: Some("shop") }
    }

    /// This request, as the person sends it.
    pub fn signed(&self, mut request: Request<Body>) -> Request<Body> {
        let bearer = format!("Bearer {}", self.credential).parse().unwrap();
        request.headers_mut().insert("authorization", bearer);
        if let Some(realm) = self.realm {
            request.headers_mut().insert("x-realm", realm.parse().unwrap());
        }
        request
    }
}

/// A server with records.
pub struct Shop {
    pub house: House,
    /// She sells, and has the orders that are hers.
    pub ann: Person,
    pub bob: Person,
    /// She leads, and sees everything.
    pub lea: Person,
}

impl Shop {
    /// A few records, and nobody is asked about anything.
    pub async fn new() -> Self {
        Self::limited("").await
    }

    /// The same with these lines in `[limits]`.
    pub async fn limited(limits: &str) -> Self {
        Self::stocked(bare("", &format!("[limits]\n{limits}"))).await
    }

    /// The same with these lines in the settings of its realm.
    pub async fn set(of_realm: &str) -> Self {
        Self::stocked(bare(of_realm, "")).await
    }

    /// A server of this project, with the few records.
    pub async fn stocked(project: Project) -> Self {
        let shop = Self::of(project).await;
        for (of, entity) in stock() {
            shop.saved(&shop.lea, of, entity).await;
        }
        shop
    }

    /// A server of this project.
    pub async fn of(project: Project) -> Self {
        let house = House::build(project, Some(ADMIN)).await;
        let [ann, bob, lea] =
            [person(&house, "ann").await, person(&house, "bob").await, person(&house, "lea").await];
        Self { house, ann, bob, lea }
    }

    /// Somebody whom the project knows.
    pub async fn person(&self, name: &str) -> Person {
        person(&self.house, name).await
    }

    /// Somebody new with these roles in the shop, of this tenant if one is named.
    pub async fn newcomer(&self, name: &str, roles: &[&str], tenant: Option<&str>) -> Person {
        let mut body = json!({"realms": {"shop": roles}});
        if let Some(tenant) = tenant {
            body["dataDomain"] = json!({"tenantId": tenant});
        }
        let path = format!("/api/v1/principals/{name}");
        let admin = Person { credential: ADMIN.to_owned(), realm: None };
        let stored = self.send(&admin, Method::PUT, &path, &[], body).await;
        assert_eq!(stored.status, 201, "{stored:?}");
        self.person(name).await
    }

    pub async fn send(
        &self,
        who: &Person,
        method: Method,
        path: &str,
        headers: &[(&'static str, &str)],
        body: Value,
    ) -> Answer {
        let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
        let mut request = who.signed(request(method, path, body));
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        self.house.send(request).await
    }

    pub async fn get(&self, who: &Person, path: &str) -> Answer {
        self.send(who, Method::GET, path, &[], Value::Null).await
    }

    pub async fn post(&self, who: &Person, path: &str, body: Value) -> Answer {
        self.send(who, Method::POST, path, &[], body).await
    }

    /// The answer of `/api/query`.
    pub async fn ask(&self, who: &Person, operation: &str, body: Value) -> Answer {
        self.post(who, &format!("/api/query/{operation}"), body).await
    }

    /// The same where it must be done.
    pub async fn done(&self, who: &Person, operation: &str, body: Value) -> Value {
        let answer = self.ask(who, operation, body.clone()).await;
        assert_eq!(answer.status, 200, "{operation} {body}: {answer:?}");
        answer.body
    }

    /// Status and name of a refusal.
    pub async fn fault(&self, who: &Person, operation: &str, body: Value) -> (u16, String) {
        named(&self.ask(who, operation, body).await)
    }

    pub async fn saved(&self, who: &Person, of: &str, entity: Value) -> Value {
        self.done(who, "save", json!({"rootType": of, "entity": entity})).await
    }

    pub async fn count(&self, who: &Person, of: &str, query: &str) -> u64 {
        let body = json!({"rootType": of, "query": query});
        self.done(who, "count", body).await["count"].as_u64().unwrap()
    }

    pub async fn rows(&self, who: &Person, of: &str, query: &str) -> Vec<Value> {
        let body = json!({"rootType": of, "query": query});
        self.done(who, "find", body).await["rows"].as_array().cloned().unwrap()
    }

    /// The refNames of what is found.
    pub async fn names(&self, who: &Person, of: &str, query: &str) -> Vec<String> {
        self.rows(who, of, query).await.iter().map(|row| text(&row["refName"])).collect()
    }

    /// One request of MCP: the whole message that answers it.
    pub async fn mcp(&self, who: &Person, method: &str, params: Value) -> Value {
        let answer = self.house.send(who.signed(modern(method, params))).await;
        if answer.body.is_object() {
            return answer.body;
        }
        let last = answer.text.lines().rev().find_map(|line| line.strip_prefix("data:"));
        serde_json::from_str(last.unwrap_or_else(|| panic!("{answer:?}"))).unwrap()
    }

    /// The result of a tool that is called over MCP.
    pub async fn tool(&self, who: &Person, name: &str, arguments: Value) -> Value {
        let params = json!({"name": name, "arguments": arguments});
        let answer = self.mcp(who, "tools/call", params).await;
        assert!(answer["result"].is_object(), "{name}: {answer}");
        answer["result"].clone()
    }
}

async fn person(house: &House, name: &str) -> Person {
    let key = Key::created(house, ADMIN, json!({"name": name, "of": name})).await;
    Person { credential: key.text, realm: None }
}

/// The example with more settings: of its realm, and below all others.
pub fn example(of_realm: &str, more: &str) -> Project {
    let settings = SETTINGS.replace("[realms.shop]\n", &format!("[realms.shop]\n{of_realm}\n"));
    let settings = format!("{settings}\n[server]\nhosts = [\"wp.example.com\"]\n{more}\n");
    let config = Config::parse("waypost.toml", &settings).unwrap();
    Project { config, ..records_example().unwrap() }
}

/// The same without its data and without what asks a person, with one more type.
pub fn bare(of_realm: &str, more: &str) -> Project {
    let mut project = example(of_realm, more);
    for file in &mut project.entities.all {
        let lines = file.text.lines().filter(|line| !line.starts_with("seed:"));
        let kept: Vec<&str> = lines.collect();
        file.text = format!("{}\n", kept.join("\n"));
    }
    project.entities.all.push(EntityFile {
        file: "entities/Note.yaml".to_owned(),
        name: "Note".to_owned(),
        text: NOTE.to_owned(),
    });
    let policies = project.policies.as_mut().unwrap();
    policies.policies.retain(|policy| policy.file != "policies/changes.cedar");
    let file = "policies/notes.cedar".to_owned();
    policies.policies.push(PolicyFile { file, text: POLICIES.to_owned() });
    policies.tests = None;
    project
}

/// The id of a record of the few.
pub fn id(number: u8) -> String {
    format!("65a{number:021}")
}

pub fn order(number: u8, rep: &str, customer: &str, status: &str) -> Value {
    json!({"id": id(30 + number), "refName": format!("O-{number}"), "customer": customer,
        "orderedAt": "2025-01-07T00:00:00Z", "salesRep": rep, "status": status,
        "total": u64::from(number) * 10, "margin": u64::from(number) + 7000})
}

fn stock() -> Vec<(&'static str, Value)> {
    let place = |number: u8, name: &str, city: &str| {
        json!({"id": id(number), "refName": name,
            "city": city})
    };
    let customer = |number: u8, name: &str, store: &str| {
        json!({"id": id(number), "refName": name, "email": format!("{name}@example.com"),
            "homeStore": store})
    };
    vec![
        ("Location", place(1, "atlanta-store", "Atlanta")),
        ("Location", place(2, "oslo-store", "Oslo")),
        ("Location", place(3, "spare-store", "Oslo")),
        ("Customer", customer(11, "ada", "atlanta-store")),
        ("Customer", customer(12, "ben", "oslo-store")),
        ("Customer", customer(13, "cleo", "oslo-store")),
        (
            "Product",
            json!({"id": id(21), "refName": "CHA-001", "category": "chair", "price": 10,
            "unitCost": 4}),
        ),
        ("Order", order(1, "ann", "ada", "open")),
        ("Order", order(2, "ann", "ada", "paid")),
        ("Order", order(3, "bob", "ben", "open")),
        ("Order", order(4, "bob", "ben", "cancelled")),
    ]
}

/// Status and name of a refusal at `/api/query` and `/api/agent`.
pub fn named(answer: &Answer) -> (u16, String) {
    (answer.status, text(&answer.body["error"]))
}

/// Status and code of one at `/api/v1`.
pub fn coded(answer: &Answer) -> (u16, String) {
    (answer.status, text(&answer.body["code"]))
}

pub fn told(status: u16, name: &str) -> (u16, String) {
    (status, name.to_owned())
}

/// All that a result of MCP says.
pub fn words(result: &Value) -> String {
    let blocks = result["content"].as_array().cloned().unwrap_or_default();
    blocks.iter().map(|block| text(&block["text"])).collect::<Vec<_>>().join("\n")
}
