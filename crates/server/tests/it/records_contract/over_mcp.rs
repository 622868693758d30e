//! Records over MCP: the seven tools, their faults, and what agents read as resources.

use super::{Shop, id, words};
use crate::house::text;
use crate::mcp_lists::each;
use serde_json::{Value, json};

#[tokio::test]
async fn each_tool_answers_with_the_structure_of_rest() {
    let shop = Shop::new().await;
    let listed = shop.mcp(&shop.lea, "tools/list", json!({})).await;
    let names = each(&listed["result"]["tools"], "name");
    for (name, operation, arguments) in [
        ("query_plan", "plan", json!({"rootType": "Order", "query": "expand(customer)"})),
        ("query_count", "count", json!({"rootType": "Order", "query": "status:open"})),
        (
            "query_deleteMany",
            "deleteMany",
            json!({"rootType": "Order", "query": "status:open", "dryRun": true}),
        ),
    ] {
        assert!(names.contains(&name.to_owned()), "{names:?}");
        let result = shop.tool(&shop.lea, name, arguments.clone()).await;
        let same = shop.done(&shop.lea, operation, arguments).await;
        assert_eq!(result["structuredContent"], same, "{name}");
        assert_eq!(serde_json::from_str::<Value>(&words(&result)).unwrap(), same);
    }
    let types = shop.tool(&shop.lea, "query_rootTypes", json!({})).await;
    let same = shop.get(&shop.lea, "/api/query/rootTypes").await.body;
    assert_eq!(types["structuredContent"], same);
}

#[tokio::test]
async fn records_are_saved_found_and_deleted() {
    let shop = Shop::new().await;
    let entity = json!({"refName": "rome-store", "city": "Rome"}).to_string();
    let saved = json!({"rootType": "Location", "entity": entity});
    let saved = shop.tool(&shop.lea, "query_save", saved).await["structuredContent"].clone();
    assert_eq!((&saved["isNew"], &saved["version"]), (&json!(true), &json!(1)), "{saved}");
    let find = json!({"rootType": "Location", "query": "city:rome", "limit": 5, "skip": 0});
    let found = shop.tool(&shop.lea, "query_find", find).await["structuredContent"].clone();
    assert_eq!(found["rows"], json!([saved["entity"]]));
    let delete = json!({"rootType": "Location", "id": saved["id"]});
    let gone = shop.tool(&shop.lea, "query_delete", delete.clone()).await;
    let shape = json!({"success": true, "id": saved["id"], "rootType": "shop.Location",
        "deletedCount": 1});
    assert_eq!(gone["structuredContent"], shape);
    let missing = shop.tool(&shop.lea, "query_delete", delete).await;
    assert_eq!(missing["isError"], json!(true));
    assert!(words(&missing).contains("\"success\":false"), "{missing}");
    let many = json!({"rootType": "Order", "query": "status:open", "expect": 2});
    let many = shop.tool(&shop.lea, "query_deleteMany", many).await;
    assert_eq!(many["structuredContent"]["deletedCount"], 2, "{many}");
}

#[tokio::test]
async fn a_fault_is_an_error_with_its_name() {
    let shop = Shop::new().await;
    for (tool, arguments, name) in [
        ("query_find", json!({"rootType": "Order", "query": "a:1 b:2"}), "InvalidQuery"),
        ("query_count", json!({"rootType": "Order", "query": "expand(customer)"}), "InvalidQuery"),
        ("query_find", json!({"rootType": "Order", "query": "status:${no}"}), "UnresolvedVariable"),
        ("query_find", json!({"rootType": "Ordre"}), "UnknownRootType"),
        ("query_find", json!({"rootType": "Order", "cursor": "5b5d"}), "InvalidCursor"),
        ("query_find", json!({"rootType": "Order", "skip": 100_001}), "InvalidPage"),
        ("query_find", json!({"rootType": "Order", "realm": "outlet"}), "realm_not_allowed"),
        ("query_rootTypes", json!({"realm": "outlet"}), "realm_not_allowed"),
        ("query_plan", json!({"rootType": "Order", "explain": true}), "forbidden"),
        ("query_delete", json!({"rootType": "Order", "id": "x"}), "InvalidId"),
        ("query_delete", json!({"rootType": "Order", "id": id(99)}), "NotFound"),
        ("query_delete", json!({"rootType": "Customer", "id": id(11)}), "ReferentialIntegrity"),
        ("query_deleteMany", json!({"rootType": "Order"}), "QueryRequired"),
        (
            "query_deleteMany",
            json!({"rootType": "Order", "all": true, "expect": 9}),
            "ExpectationNotMet",
        ),
        ("query_save", json!({"rootType": "Order", "entity": {"refName": "O-9"}}), "InvalidEntity"),
        (
            "query_save",
            json!({"rootType": "Location", "entity": {"id": id(1), "version": 7}}),
            "VersionConflict",
        ),
        (
            "query_save",
            json!({"rootType": "Location", "entity": {"refName": "oslo-store"}}),
            "DuplicateKey",
        ),
    ] {
        let result = shop.tool(&shop.lea, tool, arguments.clone()).await;
        assert_eq!(result["isError"], json!(true), "{tool} {arguments}: {result}");
        assert!(words(&result).contains(name), "{name}: {result}");
    }
    assert_eq!(shop.count(&shop.lea, "Order", "").await, 4, "nothing was written");
}

#[tokio::test]
async fn a_wrong_query_is_told_with_its_place() {
    let shop = Shop::new().await;
    let arguments = json!({"rootType": "Order", "query": "status:open\n&& stauts:paid"});
    let result = shop.tool(&shop.lea, "query_find", arguments).await;
    let blocks = result["content"].as_array().unwrap();
    let read = |block: &Value| serde_json::from_str::<Value>(&text(&block["text"])).ok();
    let told = blocks.iter().find_map(read).unwrap_or_else(|| panic!("{result}"));
    assert_eq!((&told["error"], &told["line"]), (&json!("InvalidQuery"), &json!(2)));
    assert_eq!((&told["position"], &told["column"]), (&json!(15), &json!(4)));
    assert!(text(&told["hint"]).contains("status"), "{told}");
}

#[tokio::test]
async fn what_agents_read_is_there_under_two_schemes() {
    let shop = Shop::new().await;
    let listed = shop.mcp(&shop.ann, "resources/list", json!({})).await;
    let listed = each(&listed["result"]["resources"], "uri");
    for (name, path) in [
        ("schema", "schema"),
        ("query-hints", "query-hints"),
        ("permission-hints", "permission-hints"),
    ] {
        let same = shop.get(&shop.ann, &format!("/api/agent/{path}")).await.body;
        for scheme in ["quantum", "waypost"] {
            let uri = format!("{scheme}://{name}");
            assert!(listed.contains(&uri), "{uri}: {listed:?}");
            let read = shop.mcp(&shop.ann, "resources/read", json!({"uri": uri})).await;
            let content = text(&read["result"]["contents"][0]["text"]);
            assert_eq!(serde_json::from_str::<Value>(&content).unwrap(), same, "{uri}");
        }
    }
}

#[tokio::test]
async fn a_tool_that_the_realm_leaves_out_is_not_there() {
    let shop = Shop::of(super::bare("enabled_tools = [\"query_rootTypes\"]", "")).await;
    let listed = shop.mcp(&shop.lea, "tools/list", json!({})).await;
    let names = each(&listed["result"]["tools"], "name");
    assert!(names.contains(&"query_rootTypes".to_owned()), "{names:?}");
    assert!(!names.contains(&"query_find".to_owned()), "{names:?}");
    let call = json!({"name": "query_find", "arguments": {"rootType": "Order"}});
    let answer = shop.mcp(&shop.lea, "tools/call", call).await;
    assert!(answer["error"].is_object(), "{answer}");
}
