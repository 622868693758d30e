//! `/api/agent`: what agents are told about records, and the one endpoint that calls a tool.

use super::{Shop, bare, example, id, named, told};
use crate::house::text;
use crate::mcp_lists::each;
use serde_json::{Value, json};

const EXECUTE: &str = "/api/agent/execute";
const TOOLS: [&str; 7] = [
    "query_count", "query_delete", "query_deleteMany", "query_find", "query_plan",
    "query_rootTypes", "query_save",
];

#[tokio::test]
async fn tools_are_listed_flat_and_with_their_schemas() {
    let shop = Shop::new().await;
    let listed = shop.get(&shop.lea, "/api/agent/tools").await.body;
    let mut names = each(&listed["tools"], "name");
    names.sort_unstable();
    assert_eq!(names, TOOLS);
    assert_eq!(listed["count"], 7);
    let tools = listed["tools"].as_array().unwrap();
    for tool in tools {
        assert_eq!((&tool["area"], &tool["domain"]), (&json!("integration"), &json!("query")));
        let parameters = tool["parameters"].as_array().unwrap();
        let properties = tool["inputSchema"]["properties"].as_object().unwrap();
        assert_eq!(parameters.len(), properties.len(), "{tool}");
        for parameter in parameters {
            assert!(!text(&parameter["description"]).is_empty(), "{parameter}");
            assert!(!text(&parameter["type"]).is_empty(), "{parameter}");
        }
    }
    let all = shop.get(&shop.lea, "/api/agent/tools?all=true").await.body;
    assert!(TOOLS.iter().all(|name| each(&all["tools"], "name").contains(&(*name).to_owned())));
    assert_eq!(all["count"], json!(all["tools"].as_array().unwrap().len()));
}

#[tokio::test]
async fn a_type_is_shown_as_json_schema() {
    let shop = Shop::new().await;
    let types = shop.get(&shop.lea, "/api/agent/schema").await.body;
    assert_eq!(types, shop.get(&shop.lea, "/api/query/rootTypes").await.body);
    for name in ["Product", "shop.Product"] {
        let schema = shop.get(&shop.lea, &format!("/api/agent/schema/{name}")).await.body;
        assert_eq!((&schema["type"], &schema["title"]), (&json!("object"), &json!("Product")));
        let properties = &schema["properties"];
        assert_eq!(properties["price"]["type"], "number", "{schema}");
        assert_eq!(properties["unitCost"]["type"], "number", "{schema}");
        assert_eq!(properties.get("id"), None);
        assert_eq!(properties["refName"]["type"], "string");
    }
    let unknown = shop.get(&shop.lea, "/api/agent/schema/Produce").await;
    assert_eq!(named(&unknown), told(400, "UnknownRootType"));
}

#[tokio::test]
async fn each_example_of_the_hints_finds_something() {
    let shop = Shop::of(example("", "")).await;
    let hints = shop.get(&shop.ann, "/api/agent/query-hints").await.body;
    let summary = &hints["queryGrammarSummary"];
    for name in [
        "equals", "notEquals", "comparisons", "inList", "notInList", "exists", "nullCheck",
        "wildcards", "andOrNot",
    ] {
        assert!(summary["operators"][name].is_string(), "{name}: {summary}");
    }
    assert!(summary["syntax"].is_string() && summary["expand"].is_string(), "{summary}");
    assert!(summary["ontologyEdges"].is_string(), "{summary}");
    let examples = hints["exampleQueries"].as_array().unwrap();
    let atlanta = examples.iter().find(|one| one["intent"] == "Locations in Atlanta");
    let atlanta = atlanta.unwrap_or_else(|| panic!("{hints}"));
    assert_eq!(atlanta["query"], "city:Atlanta");
    assert_eq!(each(&hints["didYouKnow"], "title").len(), 5, "{hints}");
    let facts = hints["didYouKnow"].as_array().unwrap();
    let of_facts = facts.iter().map(|fact| (&fact["rootTypeExample"], &fact["exampleQuery"]));
    let of_examples = examples.iter().map(|one| (&one["rootType"], &one["query"]));
    for (of, query) in of_examples.chain(of_facts) {
        let found = shop.rows(&shop.ann, &text(of), &text(query)).await;
        assert!(!found.is_empty(), "{of} {query}");
    }
}

#[tokio::test]
async fn hints_about_permissions_can_be_asked_as_they_are() {
    let shop = Shop::new().await;
    let hints = shop.get(&shop.ann, "/api/agent/permission-hints").await.body;
    assert_eq!(hints["checkEndpoint"], "POST /system/permissions/check");
    assert_eq!(hints["evaluateEndpoint"], "POST /system/permissions/evaluate");
    let mapping = &hints["areaDomainActionMapping"];
    assert!(mapping.to_string().contains("deleteMany"), "{mapping}");
    assert!(!hints["didYouKnow"].as_array().unwrap().is_empty(), "{hints}");
    let requests = hints["exampleCheckRequests"].as_array().unwrap();
    assert!(!requests.is_empty(), "{hints}");
    for asked in requests {
        let checked =
            shop.post(&shop.ann, "/system/permissions/check", asked["body"].clone()).await;
        assert_eq!(checked.status, 200, "{asked}: {checked:?}");
        for name in asked["responseFields"].as_array().unwrap() {
            assert!(checked.body.get(text(name)).is_some(), "{name}: {checked:?}");
        }
    }
}

#[tokio::test]
async fn the_answer_of_execute_is_that_of_the_tool() {
    let shop = Shop::new().await;
    let arguments = json!({"rootType": "Order", "query": "status:open"});
    let direct = shop.done(&shop.ann, "count", arguments.clone()).await;
    for body in [
        json!({"tool": "query_count", "arguments": arguments}),
        json!({"name": "query_count", "params": arguments, "sessionId": "s-1", "traceId": "t-1"}),
    ] {
        let answer = shop.post(&shop.ann, EXECUTE, body).await;
        assert_eq!((answer.status, &answer.body), (200, &direct));
    }
    let delete = json!({"tool": "query_delete", "arguments": {"rootType": "Order", "id": id(99)}});
    let missing = shop.post(&shop.ann, EXECUTE, delete).await;
    assert_eq!((missing.status, &missing.body["success"]), (404, &json!(false)), "{missing:?}");
    let wrong =
        json!({"tool": "query_find", "arguments": {"rootType": "Order", "query": "a:1 b:2"}});
    let wrong = shop.post(&shop.ann, EXECUTE, wrong).await;
    assert_eq!(named(&wrong), told(400, "InvalidQuery"));
    assert!(wrong.body["position"].is_u64() && wrong.body["hint"].is_string(), "{wrong:?}");
}

#[tokio::test]
async fn a_tool_must_be_named_and_known() {
    let shop = Shop::new().await;
    for body in [json!({}), json!({"tool": " "}), json!({"tool": null, "arguments": {}})] {
        let answer = shop.post(&shop.ann, EXECUTE, body.clone()).await;
        assert_eq!(named(&answer), told(400, "ToolRequired"), "{body}");
    }
    for name in ["query_fnd", "query_find'; drop table orders;--", "../query_find"] {
        let answer = shop.post(&shop.ann, EXECUTE, json!({"tool": name})).await;
        assert_eq!(named(&answer), told(400, "UnknownTool"), "{name}");
        let available = answer.body["availableTools"].as_array().unwrap();
        assert!(TOOLS.iter().all(|name| available.contains(&json!(name))), "{answer:?}");
    }
    let unread = shop.post(&shop.ann, EXECUTE, json!({"tool": "query_find", "more": 1})).await;
    assert_eq!(unread.status, 400, "{unread:?}");
}

#[tokio::test]
async fn a_tool_that_the_realm_leaves_out_is_not_enabled() {
    let enabled = "enabled_tools = [\"query_rootTypes\", \"query_find\", \"query_save\"]";
    let shop = Shop::set(enabled).await;
    let arguments = json!({"rootType": "Order"});
    let execute = json!({"tool": "query_count", "arguments": arguments});
    let executed = shop.post(&shop.lea, EXECUTE, execute).await;
    assert_eq!(named(&executed), told(403, "ToolNotEnabled"));
    assert_eq!(shop.fault(&shop.lea, "count", arguments).await, told(403, "ToolNotEnabled"));
    let listed = shop.get(&shop.lea, "/api/agent/tools").await.body;
    let mut names = each(&listed["tools"], "name");
    names.sort_unstable();
    assert_eq!(names, ["query_find", "query_rootTypes", "query_save"]);
    assert_eq!(shop.rows(&shop.lea, "Order", "").await.len(), 4);
    let deleted = json!({"rootType": "Order", "query": "status:open"});
    assert_eq!(shop.fault(&shop.lea, "deleteMany", deleted).await, told(403, "ToolNotEnabled"));
}

#[tokio::test]
async fn what_agents_are_told_needs_the_tool_that_tells_it() {
    let shop = Shop::of(bare("enabled_tools = [\"query_find\"]", "")).await;
    for path in ["schema", "schema/Order", "query-hints", "permission-hints"] {
        let answer = shop.get(&shop.lea, &format!("/api/agent/{path}")).await;
        assert_eq!(named(&answer), told(403, "ToolNotEnabled"), "{path}");
    }
    let types = shop.get(&shop.lea, "/api/v1/records").await;
    assert_eq!((types.status, &types.body["code"]), (403, &json!("ToolNotEnabled")));
}

#[tokio::test]
async fn a_realm_counts_in_a_body_and_must_be_the_calls_in_arguments() {
    let shop = Shop::new().await;
    let olga = shop.person("olga").await;
    let body = |realm: &str| json!({"rootType": "Location", "realm": realm});
    assert_eq!(shop.done(&shop.ann, "count", body("shop")).await["count"], 3);
    for (who, realm) in [(&shop.ann, "outlet"), (&shop.ann, "none"), (&olga, "shop")] {
        assert_eq!(shop.fault(who, "count", body(realm)).await, told(403, "realm_not_allowed"));
        let execute = json!({"tool": "query_count", "arguments": {"rootType": "Location"},
            "realm": realm});
        let executed = shop.post(who, EXECUTE, execute).await;
        assert_eq!(named(&executed), told(403, "realm_not_allowed"), "{realm}");
        let inside = json!({"tool": "query_count", "arguments": body(realm)});
        let inside = shop.post(who, EXECUTE, inside).await;
        assert_eq!(named(&inside), told(403, "realm_not_allowed"), "{realm}");
    }
    let own = json!({"tool": "query_count", "arguments": body("shop")});
    assert_eq!(shop.post(&shop.ann, EXECUTE, own).await.body["count"], 3);
    let number: Value = json!({"rootType": "Location", "realm": 7});
    assert_eq!(shop.ask(&shop.ann, "count", number).await.status, 400);
}
