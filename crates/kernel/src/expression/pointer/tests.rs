//! What pointers mean, spelling by spelling, and where they end.

mod oracle;

use super::*;
use crate::expression::pointer::syntax::NESTING_MAX;
use crate::limits::Limits;
use crate::values::history::EntryResult;
use crate::values::ids::{CallId, Millis};
use serde_json::json;

struct Fixture {
    input: Value,
    budget: Budget,
}

fn entry(step: &str, output: Value) -> Arc<Entry> {
    let output = Arc::new(Datum::inline(output, Origin::Call(CallId(1))));
    Arc::new(Entry {
        at: Millis(0),
        step: step.into(),
        call: CallId(1),
        tool: "math::add".into(),
        arguments: Arc::new(json!({})),
        result: EntryResult::Output(output),
    })
}

impl Fixture {
    fn new() -> Self {
        Self::over(json!({"items": ["a", "b"]}), 1_000)
    }

    /// With this input, and a budget of so many nodes.
    fn over(input: Value, nodes: usize) -> Self {
        Self { input, budget: Budget::new(nodes) }
    }
}

impl View for Fixture {
    fn context(&self, key: &str) -> Option<Arc<Datum>> {
        let value = match key {
            "sum" => json!(3),
            "one" => json!([7]),
            "math::add_result" => json!(5),
            "a-b" => json!({"x": null}),
            "rows" => json!([{"n": 1}, {"n": 2}]),
            _ => return None,
        };
        Some(Arc::new(Datum::inline(value, Origin::Input)))
    }
    fn whole_context(&self) -> Datum {
        Datum::inline(json!({"sum": 3}), Origin::Join)
    }
    fn input(&self) -> Arc<Datum> {
        Arc::new(Datum::inline(self.input.clone(), Origin::Input))
    }
    fn recent(&self, index: usize) -> Recent {
        match index {
            0 => Recent::Entry(entry("s2", json!(20))),
            1 => Recent::Stored,
            _ => Recent::Absent,
        }
    }
    fn latest(&self, step: &StepId) -> Option<Arc<Entry>> {
        (step.as_str() == "s1").then(|| entry("s1", json!([1, 2])))
    }
    fn blob(&self, _: &BlobRef) -> Option<Arc<Value>> {
        None
    }
    fn history(&self, step: Option<&StepId>) -> Option<Arc<Value>> {
        step.map(|_| Arc::new(json!([{"planStepId": "s1", "result": {"output": 9}}])))
    }
    fn budget(&self) -> &Budget {
        &self.budget
    }
}

fn value(text: &str) -> Option<Value> {
    let pointer = Pointer::parse(text, false).unwrap();
    pointer.resolve(&Fixture::new()).unwrap().map(|selected| selected.value)
}

#[test]
fn a_singular_query_yields_its_node_as_it_is() {
    assert_eq!(value("$.context.sum"), Some(json!(3)));
    assert_eq!(value("$.context.one"), Some(json!([7])));
    assert_eq!(value("$.context['one'][0]"), Some(json!(7)));
    assert_eq!(value("$.context.one[-1]"), Some(json!(7)));
    assert_eq!(value(r#"$.context [ "su\u006d" ]"#), Some(json!(3)));
    assert_eq!(value("$.context.math::add_result"), Some(json!(5)));
    assert_eq!(value("$.context.a-b.x"), Some(Value::Null));
    assert_eq!(value("$.context.missing"), None);
    assert_eq!(value("$.context.sum.deeper"), None);
    assert_eq!(value("$.promptInput.items[1]"), Some(json!("b")));
    assert_eq!(value("$.history[0].result.output"), Some(json!(20)));
    assert_eq!(value("$.history[0].planStepId"), Some(json!("s2")));
    assert_eq!(value("$.history[2].result"), None);
}

#[test]
fn a_step_reference_is_one_segment_in_every_spelling() {
    for filter in [
        "?(@.planStepId=='s1')",
        "?(@.planStepId==\"s1\")",
        "?@.planStepId == 's1'",
        "?('s1' == @.planStepId)",
        "? ( @['planStepId'] == 's1' ) ",
    ] {
        let text = format!("$.history[{filter}].result.output");
        assert_eq!(value(&text), Some(json!([1, 2])), "{text}");
        assert_eq!(value(&format!("{text}[*]")), Some(json!([1, 2])), "{text}");
        assert_eq!(value(&format!("{text}[0]")), Some(json!(1)), "{text}");
    }
    assert_eq!(value("$.history[?(@.planStepId=='other')].result"), None);
    assert_eq!(value("$.history[?(@.planStepId=='other')].result[*]"), Some(json!([])));
}

#[test]
fn a_non_singular_query_yields_an_array() {
    assert_eq!(value("$.context.rows[*].n"), Some(json!([1, 2])));
    assert_eq!(value("$.context.rows[?@.n == 2].n"), Some(json!([2])));
    assert_eq!(value("$.context.rows[?@.n == 3].n"), Some(json!([])));
    assert_eq!(value("$.context.missing[*]"), Some(json!([])));
    assert_eq!(value("$.promptInput.items[0:1]"), Some(json!(["a"])));
}

#[test]
fn history_queries_ask_the_store() {
    let all = Pointer::parse("$.history[?(@.planStepId=='s1')].result.output", true).unwrap();
    assert_eq!(all.target, Target::History(Some("s1".into())));
    assert_eq!(all.resolve(&Fixture::new()).unwrap().unwrap().value, json!([9]));
    for text in ["$.history", "$.history[*]", "$.history[-1:]", "$.history[1].result"] {
        let pointer = Pointer::parse(text, false).unwrap();
        let want = Err(Stop::Want(Fetch::History(None)));
        assert_eq!(pointer.resolve(&Fixture::new()), want, "{text}");
    }
}

#[test]
fn an_invalid_pointer_says_why() {
    for (text, why) in [
        ("context.sum", "does not begin with `$`"),
        ("$", "$.context, $.history or $.promptInput"),
        ("$.contxt.sum", "there is no `$.contxt`"),
        ("$.context.rows[?@.n == $.promptInput.n]", "not at `$`"),
        ("$.context.rows[", "expected a name in quotes"),
    ] {
        let error = Pointer::parse(text, false).unwrap_err().to_string();
        assert!(error.contains(why), "{text}: {error}");
    }
}

fn parentheses(levels: usize) -> String {
    format!("$.promptInput[?{}@{}]", "(".repeat(levels), ")".repeat(levels))
}

fn filters(levels: usize) -> String {
    format!("$.promptInput{}{}", "[?@".repeat(levels), "]".repeat(levels))
}

fn functions(levels: usize) -> String {
    format!("$.promptInput[?{}@{} == 1]", "length(".repeat(levels), ")".repeat(levels))
}

#[test]
fn a_pointer_that_is_too_long_or_too_deep_is_refused() {
    let deep = "filters, parentheses and functions nest deeper than 32 levels";
    for text in [
        parentheses(1_030),
        filters(510),
        functions(900),
        // A filter is a level itself.
        parentheses(NESTING_MAX),
        filters(NESTING_MAX + 1),
        functions(NESTING_MAX),
    ] {
        let bad = Pointer::parse(&text, false).unwrap_err();
        assert_eq!(bad, BadPointer { text: shown(&text), why: deep.to_owned() });
        assert!(bad.text.chars().count() <= SHOWN_CHARS_MAX + 2, "{bad}");
    }
    for text in [parentheses(NESTING_MAX - 1), filters(NESTING_MAX), functions(NESTING_MAX - 1)] {
        assert!(Pointer::parse(&text, false).is_ok(), "{text}");
    }
    for text in [parentheses(100_000), filters(100_000)] {
        let why = format!("it has {} bytes, more than 8192", text.len());
        let bad = Pointer::parse(&text, false).unwrap_err();
        assert_eq!(bad, BadPointer { text: shown(&text), why });
    }
}

fn fault(pointer: &Pointer, fixture: &Fixture) -> Fault {
    match pointer.resolve(fixture) {
        Err(Stop::Fault(fault)) => fault,
        other => panic!("{}: {other:?}", pointer.text),
    }
}

fn refused(text: &str, why: &str) -> Fault {
    let message = format!("pointer `{text}` cannot be resolved: {why}");
    let hint = "select less, or raise `pointer_nodes_max` in [limits]";
    Fault::new("PointerError", message).hint(hint)
}

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, _| json!([inner]))
}

#[test]
fn a_query_over_its_budget_is_a_fault() {
    let long = "x".repeat(100_000);
    let cube = json!(vec![vec![vec![1; 20]; 20]; 20]);
    for (text, input) in [
        ("$.promptInput..*..*..*..*..*..*".to_owned(), nested(55)),
        ("$.promptInput".to_owned(), json!(vec![0; 2_000])),
        ("$.promptInput[*]".to_owned(), json!(vec![0; 2_000])),
        ("$.promptInput[::2]".to_owned(), json!(vec![0; 2_000])),
        (format!("$.promptInput[0{}]", ",0".repeat(90)), json!([vec![0; 20]])),
        ("$.promptInput[?@[?@[?@]]]".to_owned(), cube.clone()),
        ("$.promptInput[?count(@..*) > 0]".to_owned(), cube),
        ("$.promptInput[?@ == @]".to_owned(), json!([long])),
        ("$.promptInput[?@ < @]".to_owned(), json!([long])),
        ("$.promptInput[?length(@) > 0]".to_owned(), json!([long])),
        (format!("$.promptInput[?{}@ == 2]", "@ == 1 || ".repeat(90)), json!(vec![0; 20])),
    ] {
        let pointer = Pointer::parse(&text, false).unwrap();
        let came = fault(&pointer, &Fixture::over(input, 1_000));
        assert_eq!(came, refused(&shown(&text), "it looks at more than 1000 nodes"));
    }
}

#[test]
fn all_pointers_of_a_decision_share_one_budget() {
    let fixture = Fixture::over(json!(vec![0; 600]), 1_000);
    let pointer = Pointer::parse("$.promptInput", false).unwrap();
    let first = pointer.resolve(&fixture).unwrap().unwrap();
    assert_eq!(first.value, json!(vec![0; 600]));
    let second = fault(&pointer, &fixture);
    assert_eq!(second, refused("$.promptInput", "it looks at more than 1000 nodes"));
}

#[test]
fn a_selection_too_deep_to_store_is_a_fault() {
    let all = Pointer::parse("$.promptInput..*", false).unwrap();
    let selected = all.resolve(&Fixture::over(nested(120), 100_000)).unwrap().unwrap();
    assert_eq!(selected.value.as_array().unwrap().len(), 120);
    let whole = Pointer::parse("$.promptInput", false).unwrap();
    let why = "what it selects nests deeper than 128 levels";
    assert_eq!(fault(&whole, &Fixture::over(nested(200), 100_000)), refused("$.promptInput", why));
}

#[test]
fn a_regular_expression_is_charged_by_its_cost() {
    let texts = json!(["ab", "b\n", 7, ""]);
    for (text, expected) in [
        ("$.promptInput[?search(@, 'b')]", json!(["ab", "b\n"])),
        ("$.promptInput[?match(@, 'b.')]", json!([])),
        ("$.promptInput[?match(@, '')]", json!([""])),
        ("$.promptInput[?search(@, '(')]", json!([])),
        ("$.promptInput[?search(@, 7)]", json!([])),
    ] {
        let pointer = Pointer::parse(text, false).unwrap();
        let came = pointer.resolve(&Fixture::over(texts.clone(), 200_000)).unwrap().unwrap();
        assert_eq!(came.value, expected, "{text}");
    }
    let long = json!(["ab".repeat(50_000)]);
    for (text, why) in [
        ("$.promptInput[?match(@, '[ab]*a[ab]{400}')]", "it looks at more than 1000000 nodes"),
        (r"$.promptInput[?search(@, '\\w{500}')]", "its regular expression is too large"),
        ("$.promptInput[?search(@, @)]", "its regular expression is too large"),
    ] {
        let pointer = Pointer::parse(text, false).unwrap();
        let came = fault(&pointer, &Fixture::over(long.clone(), 1_000_000));
        assert_eq!(came, refused(text, why));
    }
}

#[test]
fn the_largest_bodies_can_be_searched() {
    let rows: Value = (0..50_000)
        .map(|id| json!({"id": id, "name": "row", "tags": ["a", "b"], "price": {"value": 1}}))
        .collect();
    for text in [
        "$.promptInput..price..value",
        "$.promptInput[?@.price.value >= 1].id",
        "$.promptInput[?search(@.name, 'ow')].id",
    ] {
        let pointer = Pointer::parse(text, false).unwrap();
        let fixture = Fixture::over(rows.clone(), Limits::default().pointer_nodes_max);
        let came = pointer.resolve(&fixture).unwrap().unwrap();
        assert_eq!(came.value.as_array().unwrap().len(), 50_000, "{text}");
    }
}

#[test]
fn a_pinned_pointer_that_is_invalid_now_is_a_fault() {
    let text = filters(NESTING_MAX + 1);
    let pointer = Pointer::unreadable(Pointer::parse(&text, false).unwrap_err());
    let why = "filters, parentheses and functions nest deeper than 32 levels";
    let expected = Fault::new("PointerError", format!("pointer `{text}` cannot be read: {why}"))
        .hint("correct the plan and start a new run");
    assert_eq!(fault(&pointer, &Fixture::new()), expected);
}
