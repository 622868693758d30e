//! The rules of the records example: which call becomes of which words, and what is said of what
//! came back.

use demo::rules::Rules;
use kernel::conversation::llm::{Message, ModelCall, Prompt, ToolCard, ToolChoice, Turn};
use kernel::values::ids::Millis;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, LazyLock};

static RULES: LazyLock<Rules> = LazyLock::new(|| {
    let text = include_str!("../../../../examples/records/rules/analyst.yaml");
    Rules::read(text, Path::new("analyst.yaml")).unwrap_or_else(|mistakes| {
        let told: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
        panic!("{}", told.join("\n"))
    })
});

const TOOLS: [&str; 3] = ["query_count", "query_find", "query_deleteMany"];

fn turn_after(messages: Vec<Message>) -> Turn {
    let card = |name: &str| ToolCard {
        name: name.to_owned(),
        description: String::new(),
        input_schema: Arc::new(json!({"type": "object"})),
    };
    let prompt = Prompt {
        trace: None,
        messages,
        tools: TOOLS.into_iter().map(card).collect(),
        choice: ToolChoice::Auto,
        answer: None,
        latest: None,
        now: Millis(1_768_000_000_000),
        zone: "UTC".to_owned(),
    };
    RULES.answer(&prompt).unwrap()
}

fn user(text: &str) -> Message {
    Message::User { text: text.to_owned() }
}

/// The call that a question becomes: the tool, the type and the query.
fn asked(question: &str) -> (String, String, String) {
    let turn = turn_after(vec![user(question)]);
    let [call] = turn.calls.as_slice() else { panic!("{question}: {turn:?}") };
    let text = |name: &str| call.arguments[name].as_str().unwrap_or_default().to_owned();
    (call.tool.clone(), text("rootType"), text("query"))
}

/// What is said once the call of this question came back with this.
fn said(question: &str, result: &str) -> String {
    let mut turn = turn_after(vec![user(question)]);
    let mut call: ModelCall = turn.calls.remove(0);
    call.id = "call_1".to_owned();
    let (id, tool) = (call.id.clone(), call.tool.clone());
    let made = Message::Assistant { text: String::new(), calls: vec![call], native: None };
    let text = result.to_owned();
    let told = Message::Result { id, tool, text, failed: false };
    let turn = turn_after(vec![user(question), made, told]);
    assert!(turn.calls.is_empty(), "{turn:?}");
    turn.text
}

#[test]
fn questions_become_queries() {
    for (question, tool, root_type, query) in [
        ("how many orders are open?", "query_count", "Order", "status:open"),
        ("How many customers are there?", "query_count", "Customer", ""),
        ("count orders over 500", "query_count", "Order", "total:>##500"),
        (
            "show open orders since 2025-06-01 over 1000",
            "query_find",
            "Order",
            "status:open && orderedAt:>=2025-06-01 && total:>##1000",
        ),
        ("which locations are in Atlanta?", "query_find", "Location", "city:Atlanta"),
        ("which stores are in New York?", "query_find", "Location", "kind:store && city:New York"),
        ("list gold customers", "query_find", "Customer", "tier:gold"),
        (
            "show chairs with fewer than 10 in stock",
            "query_find",
            "Product",
            "category:chair && stock:<##10",
        ),
        ("delete all cancelled orders", "query_deleteMany", "Order", "status:cancelled"),
    ] {
        let expected = (tool.to_owned(), root_type.to_owned(), query.to_owned());
        assert_eq!(asked(question), expected, "{question}");
    }
}

#[test]
fn a_query_takes_no_signs_from_the_words_of_a_person() {
    let (_, _, query) = asked("which locations are in \"x\" || city:* or in Boston?");
    assert_eq!(query, "city:Boston");
}

#[test]
fn a_deletion_without_a_condition_is_not_tried() {
    let turn = turn_after(vec![user("delete all orders")]);
    assert!(turn.calls.is_empty() && turn.text.starts_with("Say which ones"), "{turn:?}");
}

#[test]
fn what_came_back_is_said_with_its_query() {
    let counted = json!({"count": 24, "rootType": "shop.Order", "query": "status:open"});
    let told = said("how many orders are open?", &counted.to_string());
    assert_eq!(told, "24 (Order, `status:open`)");

    let rows: Value = json!([{"displayName": "Atlanta store", "city": "Atlanta"}]);
    let found = json!({"totalCount": 1, "rows": rows});
    let told = said("which locations are in Atlanta?", &found.to_string());
    assert_eq!(told, "1 (Location, `city:Atlanta`)\n- Atlanta store, Atlanta");

    let told = said("delete cancelled orders", "User rejected this action: we need them");
    assert_eq!(told, "Nothing was deleted: we need them");
}
