//! What pointers mean, spelling by spelling.

use super::*;
use crate::entry::EntryResult;
use crate::ids::{CallId, Millis};
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
fn any_other_query_yields_an_array() {
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
        let want = Err(Stop::Want(Want::History(None)));
        assert_eq!(pointer.resolve(&Fixture::new()), want, "{text}");
    }
}

#[test]
fn what_cannot_be_read_says_why() {
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
