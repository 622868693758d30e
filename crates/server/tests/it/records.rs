//! Records of a server: types apply at the start, first records are loaded once, and calls reach
//! what policy leaves of them.

use crate::api_keys::{ADMIN, Key, get, send};
use crate::house::{ADDRESS, Answer, House, setup, wait_for};
use axum::http::Method;
use kernel::identity::principal_reader::{KnownNames, read_text};
use kernel::limits::Limits;
use kernel::values::ids::RealmId;
use project::config::Config;
use project::entities::EntityFile;
use project::folder::{EntityFiles, Project};
use project::policies::{PolicyFile, PolicyFiles};
use serde_json::{Value, json};
use server::{AssembleError, ProjectPart, assemble};
use std::collections::BTreeMap;
use tempfile::TempDir;

const TOWN: &str = "namespace: shop\nfields:\n  size: {type: integer, indexed: true}\n  \
    mayor: {type: string}\nseed: data/towns.csv\n";
const SHOP: &str = "namespace: shop\n\
    fields:\n  town: {type: reference, to: Town, required: true}\nseed: data/shops.jsonl\n";
const TOWNS: &str = "refName,size,mayor,dataDomain.tenantId\n\
    ayton,1,Ann,north\nbeeby,2,Bob,south\nceeham,3,Cem,north\n";
const SHOPS: &str = "{\"refName\": \"corner\", \"town\": \"ayton\", \
    \"dataDomain\": {\"tenantId\": \"north\"}}\n";

const REALMS: &str = "/api/v1/realms";
/// A name that stands nowhere else.
const MARK: &str = "nowhere-else-7341";

const PRINCIPALS: &str = "principals:\n  \
    ann: {realms: {\"*\": [member]}, dataDomain: {tenantId: north}}\n  \
    robot: {realms: {\"*\": [member]}, dataDomain: {tenantId: north}}\n";

/// The demo with these types and their first records.
fn with_types(types: &[(&str, &str)]) -> Project {
    let file = |(name, text): &(&str, &str)| EntityFile {
        file: format!("entities/{name}.yaml"),
        name: (*name).to_owned(),
        text: (*text).to_owned(),
    };
    let all = types.iter().map(file).collect();
    let texts = [("data/towns.csv", TOWNS), ("data/shops.jsonl", SHOPS)];
    let texts = texts.map(|(path, text)| (path.to_owned(), text.to_owned()));
    let entities = EntityFiles { all, ..EntityFiles::default() };
    Project { entities, texts: BTreeMap::from(texts), ..Project::demo() }
}

/// Shops refer to towns, and come first.
fn shops_and_towns() -> Project {
    with_types(&[("Shop", SHOP), ("Town", TOWN)])
}

/// The same on a server that asks for credentials, with these settings and policies.
fn guarded(settings: &str, policies: Option<&str>) -> Project {
    let settings = format!("[server]\nhosts = [\"wp.example.com\"]\n{settings}");
    let config = Config::parse("waypost.toml", &settings).unwrap();
    let names = KnownNames { issuers: Some(&[]), has_policies: policies.is_some() };
    let read = read_text(PRINCIPALS, "principals.yaml", names, &Limits::default());
    let file =
        |text: &str| PolicyFile { file: "policies/a.cedar".to_owned(), text: text.to_owned() };
    let policies = policies.map(|text| PolicyFiles { policies: vec![file(text)], tests: None });
    Project { config, policies, principals: Some(read.unwrap().0), ..shops_and_towns() }
}

fn arguments(arguments: Value) -> Value {
    json!({ "arguments": arguments })
}

fn tool(name: &str) -> String {
    format!("/api/v1/tools/{name}/call")
}

/// The refNames that a page shows.
fn names(answer: &Answer) -> Vec<String> {
    assert_eq!(answer.status, 200, "{answer:?}");
    let rows = answer.body["result"]["rows"].as_array().unwrap();
    rows.iter().map(|row| row["refName"].as_str().unwrap().to_owned()).collect()
}

async fn towns(house: &House) -> Vec<String> {
    let asked = arguments(json!({"rootType": "Town", "sort": "refName"}));
    names(&house.post(&tool("query_find"), asked).await)
}

/// What a caller with this key finds.
async fn found(house: &House, key: &str, realm: &str, find: Value) -> Answer {
    let path = format!("{}?realm={realm}", tool("query_find"));
    send(house, key, Method::POST, &path, arguments(find)).await
}

fn database(data: &TempDir) -> bool {
    data.path().join("data").join("records.db").exists()
}

/// Why a server does not start with this project.
async fn refused(project: impl Fn() -> Project, data: &TempDir) -> Vec<String> {
    let address = ADDRESS.parse().unwrap();
    for _ in 0..1_000 {
        match assemble(setup(project(), data, address)).await {
            Err(AssembleError::Mistakes { part: ProjectPart::Types, mistakes }) => {
                return mistakes.iter().map(ToString::to_string).collect();
            }
            Err(error) if error.holder().is_some() => {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
            Err(error) => panic!("{error}"),
            Ok(_) => panic!("it started"),
        }
    }
    panic!("the data folder is not free");
}

#[tokio::test]
async fn without_types_there_are_neither_tools_nor_a_database() {
    let data = tempfile::tempdir().unwrap();
    let (house, stopper) = House::over(Project::demo, &data, None).await;
    let listed = house.get("/api/v1/tools").await;
    assert!(!listed.text.contains("query_find"), "{listed:?}");
    let called = house.post(&tool("query_find"), arguments(json!({"rootType": "Town"}))).await;
    assert_eq!(called.status, 404, "{called:?}");
    stopper.stop().await;
    assert!(!database(&data));
}

#[tokio::test]
async fn first_records_are_loaded_once_in_the_order_of_references() {
    let data = tempfile::tempdir().unwrap();
    let (house, stopper) = House::over(shops_and_towns, &data, None).await;
    let listed = house.get("/api/v1/tools").await;
    for name in ["query_rootTypes", "query_find", "query_save", "query_deleteMany"] {
        assert!(listed.text.contains(&format!("\"{name}\"")), "{listed:?}");
    }
    assert_eq!(towns(&house).await, ["ayton", "beeby", "ceeham"]);
    let shops = arguments(json!({"rootType": "Shop"}));
    let shops = house.post(&tool("query_find"), shops).await;
    let town = &shops.body["result"]["rows"][0]["town"];
    assert_eq!(town["entityRefName"], "ayton", "{shops:?}");
    let gone = arguments(json!({"rootType": "Town", "query": "refName:beeby"}));
    let gone = house.post(&tool("query_deleteMany"), gone).await;
    assert_eq!(gone.body["result"]["deletedCount"], 1, "{gone:?}");
    stopper.stop().await;
    drop(house);
    let (house, stopper) = House::over(shops_and_towns, &data, None).await;
    assert_eq!(towns(&house).await, ["ayton", "ceeham"], "what was deleted stays so");
    stopper.stop().await;
}

#[tokio::test]
async fn a_row_that_cannot_be_saved_stops_the_start_at_its_line() {
    let data = tempfile::tempdir().unwrap();
    let wrong = || {
        let mut project = shops_and_towns();
        let rows = "refName,size,dataDomain.tenantId\nayton,1,north\nbeeby,large,south\n";
        project.texts.insert("data/towns.csv".to_owned(), rows.to_owned());
        project
    };
    let told = refused(wrong, &data).await;
    assert!(told[0].starts_with("data/towns.csv:3:1: error: `size`"), "{told:?}");
    let (house, stopper) = House::over(shops_and_towns, &data, None).await;
    assert_eq!(towns(&house).await, ["ayton", "beeby", "ceeham"], "nothing is there twice");
    stopper.stop().await;
}

#[tokio::test]
async fn a_change_that_stored_records_do_not_fit_stops_the_start() {
    let data = tempfile::tempdir().unwrap();
    let (house, stopper) = House::over(shops_and_towns, &data, None).await;
    assert_eq!(towns(&house).await.len(), 3);
    stopper.stop().await;
    drop(house);
    let smaller = "namespace: shop\nfields:\n  size: {type: integer}\n";
    let told = refused(|| with_types(&[("Shop", SHOP), ("Town", smaller)]), &data).await;
    assert_eq!(told.len(), 1, "{told:?}");
    for word in ["shop.Town", "mayor", "3 records", "waypost record migrate"] {
        assert!(told[0].contains(word), "{word}: {told:?}");
    }
    let larger = format!("{TOWN}indexes: [[mayor]]\n");
    let project = || with_types(&[("Shop", SHOP), ("Town", &larger)]);
    let (house, stopper) = House::over(project, &data, None).await;
    assert_eq!(towns(&house).await.len(), 3);
    stopper.stop().await;
}

#[tokio::test]
async fn realms_have_records_of_their_own() {
    let project = || {
        let mut project = guarded("[realms.acme]\n", None);
        let port = EntityFile {
            file: "realms/acme/entities/Port.yaml".to_owned(),
            name: "Port".to_owned(),
            text: "fields: {depth: {type: number}}\n".to_owned(),
        };
        project.entities.own.insert(RealmId::from("acme"), vec![port]);
        project
    };
    let data = tempfile::tempdir().unwrap();
    let (house, stopper) = House::over(project, &data, Some(ADMIN)).await;
    let save = arguments(json!({"rootType": "Town", "entity": {"refName": "deeside"}}));
    let path = format!("{}?realm=acme", tool("query_save"));
    let saved = send(&house, ADMIN, Method::POST, &path, save).await;
    assert_eq!(saved.status, 200, "{saved:?}");
    let all = json!({"rootType": "Town", "sort": "refName"});
    let here = found(&house, ADMIN, "default", all.clone()).await;
    assert_eq!(names(&here), ["ayton", "beeby", "ceeham"]);
    let there = found(&house, ADMIN, "acme", all).await;
    assert_eq!(names(&there), ["ayton", "beeby", "ceeham", "deeside"]);
    let ports = |realm| found(&house, ADMIN, realm, json!({"rootType": "Port"}));
    assert_eq!(names(&ports("acme").await), [""; 0]);
    assert_ne!(ports("default").await.status, 200);
    let named = json!({"rootType": "Town", "realm": "acme"});
    assert_ne!(found(&house, ADMIN, "default", named).await.status, 200);
    stopper.stop().await;
}

#[tokio::test]
async fn callers_reach_what_their_tenant_and_policies_leave() {
    let policies = "@rows(\"size:<#3\")\n@hide(\"mayor\")\n\
        forbid(principal, action, resource == RecordType::\"shop.Town\")\n\
        unless { principal in Role::\"admin\" };\n";
    let house = House::build(guarded("", Some(policies)), Some(ADMIN)).await;
    let key = Key::created(&house, ADMIN, json!({"name": "laptop", "of": "ann"})).await;
    let all = json!({"rootType": "Town", "sort": "refName"});
    let everything = found(&house, ADMIN, "default", all.clone()).await;
    assert_eq!(names(&everything), ["ayton", "beeby", "ceeham"]);
    assert!(everything.text.contains("Cem"), "{everything:?}");
    let own = found(&house, &key.text, "default", all).await;
    assert_eq!(names(&own), ["ayton"]);
    assert_eq!(own.body["result"]["totalCount"], 1);
    assert!(!own.text.contains("mayor") && !own.text.contains("Ann"), "{own:?}");
    let hidden = json!({"rootType": "Town", "query": "mayor:Ann"});
    assert_ne!(found(&house, &key.text, "default", hidden).await.status, 200);
}

#[tokio::test]
async fn a_realm_that_acts_as_a_principal_shows_that_ones_records() {
    let acting = guarded("[realms.default]\nrun_as_user_id = \"robot\"\n", None);
    let house = House::build(acting, Some(ADMIN)).await;
    let all = json!({"rootType": "Town", "sort": "refName"});
    let seen = found(&house, ADMIN, "default", all).await;
    assert_eq!(names(&seen), ["ayton", "ceeham"]);
}

#[tokio::test]
async fn agents_are_records_that_nothing_changes_here() {
    let house = House::build(shops_and_towns(), None).await;
    let helper = json!({"name": "Helper", "llmConfigRef": "openai"});
    let stored = house.put("/api/v1/agents/helper", &[], helper).await;
    assert_eq!(stored.status, 201, "{stored:?}");
    let find = arguments(json!({"rootType": "Agent", "query": "refName:helper"}));
    let found = house.post(&tool("query_find"), find).await;
    assert_eq!(names(&found), ["helper"]);
    assert_eq!(found.body["result"]["rows"][0]["displayName"], "Helper");
    let save = arguments(json!({"rootType": "Agent", "entity": {"refName": "other"}}));
    let refused = house.post(&tool("query_save"), save).await;
    assert_ne!(refused.status, 200);
    assert!(refused.text.contains("/api/v1/agents"), "{refused:?}");
}

#[tokio::test]
async fn a_realm_that_is_made_gets_first_records_and_takes_all_with_it() {
    let data = tempfile::tempdir().unwrap();
    let (house, stopper) = House::over(|| guarded("", None), &data, Some(ADMIN)).await;
    let made = send(&house, ADMIN, Method::POST, REALMS, json!({"name": "made"})).await;
    assert_eq!(made.status, 201, "{made:?}");
    let all = json!({"rootType": "Town", "sort": "refName"});
    let first = found(&house, ADMIN, "made", all).await;
    assert_eq!(names(&first), ["ayton", "beeby", "ceeham"]);
    let save = arguments(json!({"rootType": "Town", "entity": {"refName": MARK}}));
    let path = format!("{}?realm=made", tool("query_save"));
    let saved = send(&house, ADMIN, Method::POST, &path, save).await;
    assert_eq!(saved.status, 200, "{saved:?}");
    let path = format!("{REALMS}/made");
    let gone = send(&house, ADMIN, Method::DELETE, &path, Value::Null).await;
    assert_eq!(gone.status, 200, "{gone:?}");
    let shown = async || get(&house, ADMIN, &path).await;
    let is_purged = |shown: &Answer| shown.body["purged"] == true;
    wait_for("the realm to be purged", shown, is_purged).await;
    stopper.stop().await;
    let bytes = std::fs::read(data.path().join("data").join("records.db")).unwrap();
    assert!(!String::from_utf8_lossy(&bytes).contains(MARK));
}
