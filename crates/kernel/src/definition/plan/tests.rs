//! Plans as people write them, and the mistakes they make. A `«` in a text marks where the mistake
//! must be shown.

use super::mermaid;
use crate::definition::plan::check::{KEPT_OUT, PlanScope};
use crate::definition::plan::flow::{load_text, load_value, read_generated, reload};
use crate::definition::plan::mistake::{Mistake, Position};
use crate::definition::plan::read::Origin;
use crate::definition::plan::source::{DEPTH_MAX, Node};
use crate::definition::plan::{Closure, Expr, ListPlace, Plan, StepKind, Text};
use crate::expression::budget::Budget;
use crate::expression::condition::{TOO_LARGE, TOO_LARGE_HINT};
use crate::expression::pointer::Rest;
use crate::limits::Limits;
use crate::tool::call::{OutputKind, Pace, Reach, ToolSpec};
use crate::tool::schema::{Misfit, Schemas};
use crate::values::fault::Fault;
use crate::values::ids::{PlanId, StepId, ToolName};
use crate::values::members::is_deeper;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

type Loaded = Result<(Plan, Vec<Mistake>), Vec<Mistake>>;

/// Knows `required` and `type: number`; refuses a type that is a number.
struct FewSchemas;

impl Schemas for FewSchemas {
    fn compile(&self, schema: &Arc<Value>) -> Result<usize, Misfit> {
        match schema.get("type") {
            Some(Value::Number(number)) => {
                Err(Misfit { pointer: "/type".into(), message: format!("{number} is not a type") })
            }
            _ => Ok(schema["parts"].as_u64().map_or(1, |parts| parts as usize)),
        }
    }

    fn steps(&self, schema: &Arc<Value>, _value: &Value) -> u64 {
        schema["steps"].as_u64().unwrap_or(1)
    }

    fn check(&self, schema: &Arc<Value>, value: &Value) -> Result<(), Vec<Misfit>> {
        let mut misfits = Vec::new();
        for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
            let name = name.as_str().unwrap();
            if value.get(name).is_none() {
                misfits.push(Misfit { pointer: String::new(), message: format!("no `{name}`") });
            }
        }
        for (name, kind) in
            schema.get("properties").and_then(Value::as_object).into_iter().flatten()
        {
            let given = value.get(name).filter(|_| kind["type"] == "number");
            if given.is_some_and(|given| !given.is_number()) {
                let message = "not a number".to_owned();
                misfits.push(Misfit { pointer: format!("/{name}"), message });
            }
        }
        if misfits.is_empty() { Ok(()) } else { Err(misfits) }
    }
}

fn tool(name: &ToolName) -> Option<Arc<ToolSpec>> {
    let arguments: &[&str] = match name.as_str() {
        "math::add" => &["a", "b"],
        "validate::is_positive" => &["num"],
        "test::always_fail" | "test::write" => &[],
        _ => return None,
    };
    let reach = if name.as_str() == "test::write" { Reach::Writes } else { Reach::Reads };
    let properties: Value = arguments
        .iter()
        .map(|name| ((*name).to_owned(), json!({"type": "number"})))
        .collect::<serde_json::Map<_, _>>()
        .into();
    Some(Arc::new(ToolSpec {
        name: name.clone(),
        title: name.to_string(),
        description: String::new(),
        input_schema: Arc::new(json!({
            "type": "object",
            "properties": properties,
            "required": arguments,
            "additionalProperties": false
        })),
        output_schema: None,
        reach,
        idempotent: true,
        tags: Vec::new(),
        pace: Pace::Quick,
        yields: OutputKind::Value,
        unrecorded: false,
        listed: None,
    }))
}

fn surrounded(load: impl FnOnce(&PlanScope<'_>) -> Loaded) -> Loaded {
    let plans = |id: &PlanId| id.as_str() == "math/other";
    let tool_names = || -> Vec<ToolName> {
        let names = ["math::add", "validate::is_positive", "test::always_fail"];
        names.into_iter().map(ToolName::from).collect()
    };
    load(&PlanScope {
        agents: &|agent| agent.as_str() == "helper",
        agent_names: &|| vec!["helper".into()],
        tools: &tool,
        withheld: &|name: &ToolName| (name.as_str() == "http::request").then_some(KEPT_OUT),
        awaited: &|name: &ToolName| name.as_str().starts_with("later."),
        plans: &plans,
        tool_names: &tool_names,
        schemas: &FewSchemas,
    })
}

fn limited(text: &str, limits: &Limits) -> Loaded {
    surrounded(|around| load_text(text, &Origin::of_file("plans/t/p.yaml"), limits, around))
}

fn load(text: &str) -> Loaded {
    limited(text, &Limits::default())
}

/// The plan and its warnings; what is wrong with it is shown.
fn good(text: &str) -> (Plan, Vec<Mistake>) {
    load(text).unwrap_or_else(|mistakes| {
        let told: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
        panic!("{}\n{text}", told.join("\n"))
    })
}

/// The text without its mark, and the mark's line and column.
fn marked(text: &str) -> (String, usize, usize) {
    let before = text.split('«').next().unwrap();
    assert_ne!(before, text, "no mark in {text}");
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap().chars().count() + 1;
    (text.replace('«', ""), line, column)
}

/// The mistakes as they are shown, each of which has a hint; without it where none is expected
/// word by word.
fn told(mistakes: &[Mistake], expected: &str) -> Vec<String> {
    let word_by_word = expected.contains("; hint: ");
    let shown = |mistake: &Mistake| {
        assert!(mistake.hint.is_some(), "no hint: {mistake}");
        let text = mistake.to_string();
        let bare = text.split("; hint: ").next().unwrap().to_owned();
        if word_by_word { text } else { bare }
    };
    mistakes.iter().map(shown).collect()
}

/// The text has exactly one mistake, an error, at its mark.
fn bad(text: &str, expected: &str) {
    let (text, line, column) = marked(text);
    let Err(mistakes) = load(&text) else { panic!("no mistake in {text}") };
    assert_eq!(
        told(&mistakes, expected),
        [format!("plans/t/p.yaml:{line}:{column}: error: {expected}")],
        "{text}"
    );
}

/// As `bad`, for a plan with these steps.
fn bad_steps(steps: &str, expected: &str) {
    bad(&with_steps(steps), expected);
}

fn with_steps(steps: &str) -> String {
    format!("planId: t/p\nsteps:\n{steps}\n")
}

/// As `bad`, for these keys of the only tool call.
fn bad_call(keys: &str, expected: &str) {
    bad_steps(&format!("  - {{id: a, type: tool_call, {keys}}}"), expected);
}

const TYPES: &str = "`tool_call`, `match`, `conditional_branch`, `parallel_branch`, \
                     `loop_over_items`, `human_in_the_loop`, `plan`, `agent`, `publish_event`, \
                     `final_response`";

fn value(text: &str) -> Value {
    Node::parse(text, &Limits::default()).unwrap().to_value()
}

fn syntax(text: &str) -> String {
    let mistakes = Node::parse(text, &Limits::default()).unwrap_err();
    mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | ")
}

#[test]
fn plain_scalars_follow_the_core_schema() {
    let text = "[1, -2, +3, 0x1f, 0o17, 1.5, .5, 1e3, 18446744073709551615, yes, no, true, ~,\n  \
                '1', 1.2.3, 2024-01-01, 12:30, 1_000]";
    assert_eq!(
        value(text),
        json!([
            1, -2, 3, 31, 15, 1.5, 0.5, 1000.0, 18446744073709551615u64, "yes", "no", true, null,
            "1", "1.2.3", "2024-01-01", "12:30", "1_000"
        ])
    );
    assert!(syntax("a: .inf").contains("1:4: error: `.inf` is not a number"));
    assert!(syntax("a: 1e999").contains("1:4: error: `1e999` is not a number"));
}

#[test]
fn json_is_read_as_it_stands() {
    let text =
        "{\n\t\"a\":\"x\\/\\u00e9\\ud83d\\ude00\\n\",\"b\" : [1,{\"c\":null}],\"d\":\"yes\"}";
    assert_eq!(value(text), serde_json::from_str::<Value>(text).unwrap());
}

#[test]
fn every_node_has_its_line_and_column() {
    let text = "# a plan\nsteps:\n- id: one\n  arguments: {a: 1,\n    b: [x, y]}\n- id: two\n";
    let node = Node::parse(text, &Limits::default()).unwrap();
    let at = |line, column| Position { line, column };
    assert_eq!(node.position("/steps/0"), at(3, 3));
    assert_eq!(node.position("/steps/0/id"), at(3, 7));
    assert_eq!(node.position("/steps/0/arguments"), at(4, 14));
    assert_eq!(node.position("/steps/0/arguments/b/1"), at(5, 12));
    assert_eq!(node.key_position("/steps/0/arguments/b"), at(5, 5));
    assert_eq!(node.position("/steps/1/nowhere/at/all"), at(6, 3));
    assert_eq!(Node::from_value(&node.to_value()).to_value(), node.to_value());
}

#[test]
fn yaml_tags_anchors_and_the_like_are_refused_in_plans() {
    let twice = "2:1: error: key `a` is given twice; hint: keep one of the two";
    assert_eq!(syntax("a: 1\na: 2"), twice);
    assert!(syntax("a: &x 1\nb: *x").contains("anchors (`&name`)"));
    assert!(syntax("a: &x 1\nb: *x").contains("2:4: error: aliases (`*name`)"));
    assert!(syntax("a: !t 1").contains("tags (`!name`)"));
    assert!(syntax("a: 1\n---\nb: 2").contains("more than one document"));
    assert!(syntax("# nothing\n").contains("holds no plan"));
    assert!(syntax("{a: [1, 2}").contains("not YAML or JSON"));
    assert!(syntax("{[1]: 2}").contains("a key must be a text"));
    let deep = format!("{}{}", "[".repeat(65), "]".repeat(65));
    assert!(syntax(&deep).contains("more than 64 deep"));
    assert!(is_deeper(&serde_json::from_str(&deep).unwrap(), DEPTH_MAX));
    let limits = Limits { plan_bytes_max: 3, ..Limits::default() };
    assert!(Node::parse("a: 1", &limits).unwrap_err()[0].message.contains("plan_bytes_max"));
}

#[test]
fn a_value_that_is_not_a_plan_is_refused() {
    bad("«just text", "expected a map for a plan, found a text");
    bad("«planId: t/p", "`steps` is missing");
    bad("planId: t/p\nsteps: «none", "expected a list, found a text");
    bad("planId: t/p\nsteps: «[]", "this list is empty; hint: it needs at least one item");
    let steps = "steps:\n  - {id: end, type: final_response, message: x}\n";
    bad(
        &format!("planId: t/p\n«stpes: 1\n{steps}"),
        "unknown key `stpes` in a plan; hint: did you mean `steps`?",
    );
    bad(&format!("planId: «7\n{steps}"), "expected a text, found a number; hint: put it in quotes");
    bad(
        &format!("planId: «''\n{steps}"),
        "this text cannot be a name; hint: a name has 1 to 255 characters on one line",
    );
    bad(&format!("parameters: «text\n{steps}"), "expected a JSON Schema, found a text");
    bad(&format!("startStepId: «b\n{steps}"), "there is no step `b` at the top level");
    good(&format!("$schema: x\nx-team: trade\n{steps}"));
}

#[test]
fn schema_checks_of_a_plan_are_bounded() {
    let form = |parts: u32| {
        format!(
            "type: human_in_the_loop, message: x, nextStepIdOnInput: end, \
             expectedInputSchema: {{parts: {parts}}}"
        )
    };
    let end = "  - {id: end, type: final_response, message: x}\n";
    let large = format!("  - {{id: a, {}}}\n{end}", form(50_000));
    good(&with_steps(&large));
    let larger = format!("parameters: «{{parts: 50001}}\nsteps:\n{large}");
    bad(
        &larger,
        "the schemas of this plan have more than 50000 parts together; \
         hint: divide the plan into several",
    );
    let example = "{name: a, input: {}, expect: {status: completed}}";
    let slow = |second: &str| {
        format!("parameters: {{steps: 6000000}}\nexamples:\n  - {example}\n{second}steps:\n{end}")
    };
    good(&slow(""));
    bad(
        &slow("  - {name: b, input: «{}, expect: {status: completed}}\n"),
        "the arguments and examples of this plan take too long to check; \
         hint: divide the plan into several",
    );
}

#[test]
fn a_malformed_step_is_refused() {
    bad_steps("  - «run", "expected a step, found a text");
    bad_steps("  - «{type: final_response, message: x}", "`id` is missing");
    bad_steps("  - «{id: end, type: final_response}", "`message` is missing");
    bad_steps("  - «{id: a, message: x}", "`type` is missing");
    bad_steps(
        "  - {id: end, type: final_response, message: x}\n  - {id: «end, type: final_response, message: x}",
        "two steps have the id `end`; hint: the first one is in line 3",
    );
    bad_steps(
        "  - {id: a, type: «toolcall, toolId: x}",
        &format!(
            "unknown step type `toolcall`; hint: did you mean `tool_call`? the types are {TYPES}"
        ),
    );
    bad_steps(
        "  - {id: a, type: «shell}",
        &format!("unknown step type `shell`; hint: the types are {TYPES}"),
    );
    bad_steps(
        "  - {id: a, type: agent, agent: «helpr, input: {jsonPath: $.promptInput}}",
        "there is no agent `helpr`; hint: did you mean `helper`?",
    );
    bad_steps(
        "  - {id: end, type: final_response, message: x, «colour: red}",
        "unknown key `colour` in a final_response step; \
         hint: the keys are `id`, `type`, `description`, `message`",
    );
}

#[test]
fn a_wrong_tool_call_is_refused() {
    bad_steps("  - «{id: a, type: tool_call}", "`toolId` is missing");
    bad_call(
        "toolId: test::always_fail, «next_step: end",
        "unknown key `next_step` in a tool_call step; hint: did you mean `nextStepId`?",
    );
    bad_call("toolId: math::add, arguments: «[1]", "expected a map of arguments, found a list");
    bad_call("toolId: test::always_fail, approve: «yes", "expected true or false, found a text");
    bad_call(
        "toolId: test::always_fail, nextStepId: «aa",
        "there is no step `aa` at the top level",
    );
    bad_call(
        "toolId: test::always_fail, onRejected: «a",
        "expected a map for `onRejected`, found a text",
    );
    bad_call("toolId: test::always_fail, onRejected: «{}", "`nextStepId` is missing");
    bad_call(
        "toolId: test::always_fail, expiresIn: «soon",
        "`expiresIn` cannot be `soon`; \
         hint: write a whole number from 1 and `s`, `m`, `h` or `d`, such as `30m`",
    );
    bad_call(
        "toolId: test::always_fail, expiresIn: «0s",
        "`expiresIn` cannot be `0s`; \
         hint: write a whole number from 1 and `s`, `m`, `h` or `d`, such as `30m`",
    );
    bad_call("toolId: «math::ad", "there is no tool `math::ad`; hint: did you mean `math::add`?");
    bad_call("toolId: «shell", "there is no tool `shell`; hint: `waypost tool ls` lists the tools");
    let told = format!("there is no tool `http::request`; hint: {KEPT_OUT}");
    bad_call("toolId: «http::request", &told);
    bad_call("toolId: math::add, arguments: «{a: 1}", "tool `math::add` needs the argument `b`");
    bad_call(
        "toolId: math::add, arguments: {a: 1, b: {jsonPath: $.promptInput.b}, «c: 3}",
        "tool `math::add` takes no argument `c`; hint: its arguments are `a`, `b`",
    );
    bad_call(
        "toolId: math::add, arguments: {a: 1, b: «two}",
        "this does not fit its schema: not a number",
    );
    good(&with_steps(
        "  - {id: a, type: tool_call, toolId: math::add, arguments: {jsonPath: $.promptInput}}",
    ));
}

#[test]
fn a_wrong_pointer_is_refused() {
    let call = |a: &str, expected: &str| {
        bad_call(&format!("toolId: math::add, arguments: {{a: {a}, b: 1}}"), expected);
    };
    call(
        "{jsonPath: «$.nowhere.x}",
        "pointer `$.nowhere.x` cannot be read: there is no `$.nowhere`; \
         use context, history or promptInput; \
         hint: pointers are JSONPath from `$.context`, `$.history` or `$.promptInput`",
    );
    call("{jsonPath: «1}", "expected a text, found a number; hint: put it in quotes");
    call(
        "{jsonPath: $.context.x, «fallback: 1}",
        "unknown key `fallback` in a pointer; hint: the keys are `jsonPath`, `default`, `all`",
    );
    call(
        "{jsonPath: $.context.x, default: «{jsonPath: $.context.y}}",
        "the default of a pointer must be a literal; hint: a pointer has no place in it",
    );
    call("[1, {x: {jsonPath: $.context.x, all: «maybe}}]", "expected true or false, found a text");
}

#[test]
fn a_wrong_branch_is_refused() {
    let end = "\n  - {id: end, type: final_response, message: x}";
    let condition = |condition: &str, expected: &str| {
        let ways = "onTrue: {nextStepId: end}, onFalse: {nextStepId: end}";
        let step =
            format!("  - {{id: a, type: conditional_branch, condition: {condition}, {ways}}}");
        bad_steps(&format!("{step}{end}"), expected);
    };
    condition(
        "{left: 1, operator: «equal, right: 1}",
        "unknown operator `equal`; hint: did you mean `equals`?",
    );
    condition("«{left: 1, operator: equals}", "`right` is missing");
    condition(
        "{left: x, operator: matches, right: «'('}",
        "`\"(\"` is not a regular expression: unclosed group; \
         hint: `matches` takes the syntax of Rust's regex crate",
    );
    condition(
        r"{left: x, operator: matches, right: «'\w{500}'}",
        "the regular expression of `matches` is too large; hint: it may have 1 KiB and compile to \
         8 MiB; `(?-u:\\w)` compiles to much less than `\\w`",
    );
    bad_steps(
        "  - «{id: a, type: conditional_branch, condition: {left: 1, operator: exists}}",
        "`onTrue` and `onFalse` are both missing; hint: a condition must lead somewhere",
    );
    bad_steps(
        "  - {id: a, type: match, value: 1, cases: «[]}",
        "this list is empty; hint: it needs at least one item",
    );
    bad_steps(
        "  - {id: a, type: match, value: 1, cases: [«{equals: 1}]}",
        "`nextStepId` is missing",
    );
    bad_steps(
        &format!(
            "  - {{id: a, type: match, value: 1, cases: [{{equals: 1, nextStepId: «ende}}]}}{end}"
        ),
        "there is no step `ende` at the top level; hint: did you mean `end`?",
    );
    let inner = "steps: [{id: b, type: tool_call, toolId: test::always_fail}]";
    bad_steps(
        &format!(
            "  - {{id: a, type: parallel_branch, branches: [{{id: '1', {inner}}}, «{{{}}}]}}",
            inner.replace("id: b", "id: c")
        ),
        "two branches have the id `1`; hint: a branch without `id` is named by its index",
    );
    bad_steps(
        "  - {id: a, type: parallel_branch, branches: [{steps: «[]}]}",
        "this list is empty; hint: it needs at least one item",
    );
}

#[test]
fn a_wrong_loop_or_question_is_refused() {
    let looping = |keys: &str, expected: &str| {
        let body = "loopPlan: [{id: b, type: tool_call, toolId: test::always_fail}]";
        bad_steps(
            &format!("  - {{id: a, type: loop_over_items, {keys}, itemAlias: x, {body}}}"),
            expected,
        );
    };
    looping(
        "collectionPath: «$.promptInput.items",
        "expected a pointer or a list, found a text; \
         hint: write `{jsonPath: \"$.promptInput.items\"}`",
    );
    looping("collectionPath: «{a: 1}", "expected a pointer or a list, found a map");
    looping(
        "collectionPath: [1], concurrency: «65",
        "`concurrency` must be a whole number from 1 to `loop_concurrency_max` = 64",
    );
    looping(
        "collectionPath: [1], on_error: «skip",
        "`on_error` cannot be `skip`; hint: write `stop` or `collect`",
    );
    bad_steps(
        "  - {id: a, type: human_in_the_loop, message: «[1]}",
        "expected a text or a pointer, found a list",
    );
    bad_steps(
        "  - {id: a, type: human_in_the_loop, message: x, expectedInputSchema: {type: «12}}",
        "this is not a JSON Schema: 12 is not a type",
    );
    bad_steps(
        "  - {id: a, type: final_response, message: «'{{ contxt.x }}'}",
        "the text cannot be filled: `contxt` is not known here; \
         use context, history or promptInput; \
         hint: `{{ context.key }}` is replaced, all else stays",
    );
    bad_steps(
        "  - {id: a, type: plan, planId: «x/y}",
        "there is no plan `x/y`; hint: `waypost plan ls` lists the plans",
    );
    good(&with_steps("  - {id: a, type: plan, planId: t/p}"));
}

#[test]
fn a_wrong_schema_or_example_is_refused() {
    let plan = |keys: &str, expected: &str| {
        let steps = "steps: [{id: end, type: final_response, message: x}]";
        bad(&format!("{steps}\n{keys}"), expected);
    };
    plan("parameters: {type: «12}", "this is not a JSON Schema: 12 is not a type");
    plan("outputSchema: {type: «12}", "this is not a JSON Schema: 12 is not a type");
    plan("examples:\n  - «{name: x}", "the example cannot be read: missing field `expect`");
    plan(
        "examples:\n  - {name: x, expect: {status: completed, «state: x}}",
        "unknown key `state` in `expect`; hint: the keys are `status`, `answer`, `error`",
    );
    plan(
        "examples:\n  - {name: x, expect: {status: «done}}",
        "unknown status `done`; \
         hint: the statuses are `completed`, `failed`, `paused_on_error`, `paused_on_human`",
    );
    plan(
        "parameters: {required: [n]}\nexamples:\n  - {name: x, input: «{}, expect: {status: completed}}",
        "this does not fit its schema: no `n`",
    );
}

#[test]
fn steps_that_are_never_reached_are_refused() {
    let hint = "hint: lead a `nextStepId` to it, or remove it";
    bad_steps(
        "  - {id: a, type: final_response, message: x}\n  - «{id: b, type: final_response, message: x}",
        &format!("step `b` is never reached; {hint}"),
    );
    bad_steps(
        "  - id: a\n    type: parallel_branch\n    branches:\n      - steps:\n\
         \x20         - {id: b, type: tool_call, toolId: test::always_fail, nextStepId: d}\n\
         \x20         - «{id: c, type: tool_call, toolId: test::always_fail}\n\
         \x20         - {id: d, type: tool_call, toolId: test::always_fail}",
        &format!("step `c` is never reached; {hint}"),
    );
}

#[test]
fn references_to_steps_that_cannot_have_run_are_refused() {
    let add = |id: &str, step: &str, next: &str| {
        let pointer = format!("\"$.history[?(@.planStepId=='{step}')].result.output\"");
        let mark = if id == "x" { "«" } else { "" };
        let arguments = format!("{{a: {mark}{{jsonPath: {pointer}}}, b: 1}}");
        format!("{{id: {id}, type: tool_call, toolId: math::add, arguments: {arguments}{next}}}")
    };
    let plain = "{id: y, type: tool_call, toolId: test::always_fail";
    let hint = "hint: a step sees what ran on its way, not its sibling branches";
    let blind = format!("step `y` cannot have run before `x`; {hint}");
    bad_steps(&format!("  - {}", add("x", "yy", "")), "there is no step `yy`");
    bad_steps(
        &format!("  - {}", add("x", "x", "")),
        &format!("step `x` cannot have run before `x`; {hint}"),
    );
    bad_steps(&format!("  - {}\n  - {plain}}}", add("x", "y", ", nextStepId: y")), &blind);
    bad_steps(
        &format!(
            "  - {{id: p, type: parallel_branch, branches: [{{steps: [{plain}}}]}}, {{steps: [{}]}}]}}",
            add("x", "y", "")
        ),
        &blind,
    );
    let body = |concurrency: u32, id: &str| {
        let steps = format!("[{}, {plain}}}]", add(id, "y", ""));
        let keys = format!("collectionPath: [1], itemAlias: i, concurrency: {concurrency}");
        with_steps(&format!("  - {{id: l, type: loop_over_items, {keys}, loopPlan: {steps}}}"))
    };
    bad(&body(2, "x"), &blind);
    // One after the other, an iteration sees what the one before it left.
    good(&body(1, "z"));
    // A backward jump and the end of a branch make a step visible.
    good(&with_steps(&format!(
        "  - {}\n  - {plain}, nextStepId: z}}",
        add("z", "y", ", nextStepId: y")
    )));
    good(&with_steps(&format!(
        "  - {{id: p, type: parallel_branch, branches: [{{steps: [{plain}}}]}}], nextStepId: z}}\n  - {}",
        add("z", "y", "")
    )));
}

#[test]
fn a_reference_to_a_step_without_entries_is_a_warning() {
    let (_, warnings) = good(&with_steps(
        "  - {id: ask, type: human_in_the_loop, message: x, nextStepId: end}\n  \
         - {id: end, type: final_response, message: {jsonPath: \"$.history[?@.planStepId=='ask']\"}}",
    ));
    assert_eq!(
        warnings[0].to_string(),
        "plans/t/p.yaml:4:46: warning: step `ask` leaves no history entry: \
         it is a human_in_the_loop; hint: read its result from `$.context`"
    );
}

#[test]
fn a_loop_whose_iterations_race_is_refused() {
    let looping = |concurrency: u32, steps: &[&str]| {
        let keys = format!("collectionPath: [1], itemAlias: i, concurrency: {concurrency}");
        let steps = steps.join(", ");
        with_steps(&format!("  - {{id: each, type: loop_over_items, {keys}, loopPlan: [{steps}]}}"))
    };
    let count = "{id: a, type: tool_call, toolId: math::add, saveAs: sum, \
                 arguments: {a: «{jsonPath: $.context.sum, default: 0}, b: 1}}";
    let write = "{id: w, type: tool_call, toolId: math::add, saveAs: sum, arguments: {a: 1, b: 1}}";
    let jump = "{id: j, type: conditional_branch, onTrue: {nextStepId: a}, \
                condition: {left: {jsonPath: $.context.i}, operator: equals, right: 1}}";
    let whole = "{id: s, type: plan, planId: math/other, arguments: {all: «{jsonPath: $.context}}}";
    let hint = "hint: set `concurrency: 1`, or write it earlier in loop `each`";
    let race = format!("`$.context.sum` is read while other iterations write it; {hint}");
    bad(&looping(2, &[count]), &race);
    bad(&looping(2, &[jump, write, count]), &race);
    good(&looping(1, &[count]).replace('«', ""));
    good(&looping(2, &[write, count]).replace('«', ""));
    let message = format!(
        "the whole context is read while other iterations write `lastToolExecution`; {hint}"
    );
    bad(&looping(2, &[whole, write]), &message);
    // What another branch writes beside it does not help; what was written before the fork does.
    let fork = |left: &str| {
        format!(
            "{{id: p, type: parallel_branch, branches: [{{steps: [{left}]}}, {{steps: [{count}]}}]}}"
        )
    };
    bad(&looping(2, &[fork(write).as_str()]), &race);
    let other = "{id: o, type: tool_call, toolId: test::always_fail}";
    good(&looping(2, &[write, fork(other).as_str()]).replace('«', ""));
}

#[test]
fn limits_are_kept() {
    let text = with_steps(
        "  - {id: a, type: parallel_branch, branches: [{steps: [{id: b, type: tool_call, \
         toolId: test::always_fail}]}, {steps: [{id: c, type: tool_call, toolId: test::always_fail}]}]}",
    );
    let limits = Limits { plan_steps_max: 2, branches_max: 1, ..Limits::default() };
    let told: Vec<String> =
        limited(&text, &limits).unwrap_err().iter().map(|m| m.message.clone()).collect();
    assert_eq!(
        told,
        ["the plan has 3 steps, more than `plan_steps_max` = 2", "2 branches are more than 1"]
    );
}

#[test]
fn all_mistakes_are_told_at_once() {
    let text = "planId: t/p\nstepz: 1\nsteps:\n  - {id: a, type: tool_call, nextStepId: b}\n  - {type: plan}\n";
    let told: Vec<String> = load(text).unwrap_err().iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "plans/t/p.yaml:2:1: error: unknown key `stepz` in a plan; hint: did you mean `steps`?",
            "plans/t/p.yaml:4:5: error: `toolId` is missing; hint: add `toolId: ..` here",
            "plans/t/p.yaml:4:42: error: there is no step `b` at the top level; hint: the steps are `a`",
            "plans/t/p.yaml:5:5: error: `id` is missing; hint: add `id: ..` here",
            "plans/t/p.yaml:5:5: error: `planId` is missing; hint: add `planId: ..` here",
        ]
    );
}

#[test]
fn a_plan_file_names_its_plan() {
    let id = |file: &str| Origin::of_file(file).default_id.unwrap().to_string();
    assert_eq!(id("plans/math/conditional_add.yaml"), "math/conditional_add");
    assert_eq!(id("plans/interaction/greeting.plan.json"), "interaction/greeting");
    assert_eq!(id("plans/top.yaml"), "top");
    assert_eq!(id("alone.yaml"), "alone");
    let text = "steps: [{id: end, type: final_response, message: x}]";
    let (plan, _) = good(text);
    assert_eq!((plan.id.as_str(), &plan.source["planId"]), ("t/p", &json!("t/p")));
    let nameless = json!({"steps": [{"id": "end", "type": "final_response", "message": "x"}]});
    let mistakes = inline(&nameless).unwrap_err();
    assert_eq!(
        mistakes[0].to_string(),
        "error: `planId` is missing; hint: only a plan file has a name without it"
    );
}

fn inline(value: &Value) -> Loaded {
    surrounded(|around| load_value(value, &Origin::default(), &Limits::default(), around))
}

const DOCUMENTED: &str = r#"{
  "planId": "quick-data::demo",
  "description": "the documented shapes",
  "parameters": {"type": "object"},
  "startStepId": "s1",
  "steps": [
    {"id": "s1", "type": "tool_call", "toolId": "math::add",
     "arguments": {"a": 1, "b": {"jsonPath": "$.promptInput.b"}}, "nextStepId": "both"},
    {"id": "both", "type": "parallel_branch", "nextStepId": "each", "branches": [
      {"steps": [{"id": "l", "type": "tool_call", "toolId": "math::add",
        "arguments": {"a": 1, "b": 2}, "nextStepId": "END"}]},
      {"id": "right", "steps": [{"id": "r", "type": "tool_call", "toolId": "math::add",
        "arguments": {"a": 3, "b": {"jsonPath": "$.history[0].result.output"}}, "nextStepId": "s1"}]}]},
    {"id": "each", "type": "loop_over_items", "collectionPath": {"jsonPath": "$.promptInput.items"},
     "itemAlias": "item", "nextStepId": "check", "loopPlan": [
      {"id": "one", "type": "tool_call", "toolId": "math::add", "nextStepId": "x",
       "arguments": {"a": {"jsonPath": "$.context.item"}, "b": {"jsonPath": "$.context.item_index"}}}]},
    {"id": "check", "type": "conditional_branch", "condition":
      {"left": {"jsonPath": "$.history[?(@.planStepId==\"s1\")].result.output"},
       "operator": "greater_than", "right": 3},
     "onTrue": {"nextStepId": "ask"}, "onFalse": {"nextStepId": "done"}},
    {"id": "ask", "type": "human_in_the_loop", "message": "Go on?", "nextStepIdOnInput": "done"},
    {"id": "done", "type": "final_response", "message": {"jsonPath": "$.context.math::add_result"}}
  ]
}"#;

#[test]
fn a_plan_in_the_original_format_loads_unchanged() {
    let (plan, warnings) = good(DOCUMENTED);
    let told: Vec<String> =
        warnings.iter().map(|it| format!("{} {}", it.pointer, it.message)).collect();
    assert_eq!(
        told,
        [
            "/steps/1/branches/0/steps/0/nextStepId `END` is not a step of this list; the jump is ignored",
            "/steps/1/branches/1/steps/0/nextStepId `s1` is not a step of this list; the jump is ignored",
            "/steps/2/loopPlan/0/nextStepId `x` is not a step of this list; the jump is ignored",
        ]
    );
    assert_eq!(plan.after(&"l".into(), None), None);
    assert_eq!(plan.index[&StepId::from("r")].list, ListPlace::Branch("both".into(), 1));
    let StepKind::Parallel { branches, .. } = &plan.step(&"both".into()).unwrap().kind else {
        panic!("not a parallel step")
    };
    assert_eq!((branches[0].id.as_str(), branches[1].id.as_str()), ("0", "right"));
    let StepKind::ToolCall(call) = &plan.step(&"s1".into()).unwrap().kind else {
        panic!("not a tool call")
    };
    assert_eq!(call.save_as.as_str(), "math::add_result");
    assert!(matches!(&call.arguments, Expr::Object(fields) if fields.len() == 2));
    let again = reload(&plan.source).unwrap();
    assert_eq!(format!("{again:?}"), format!("{plan:?}"));
}

#[test]
fn an_output_is_kept_as_its_value_or_as_the_whole_result() {
    let read = |key: &str, message: &str| {
        let (plan, _) = good(&format!(
            "planId: t/p\nsteps:\n  - {{id: a, type: tool_call, toolId: math::add, {key}: r, \
             arguments: {{a: 1, b: 1}}, nextStepId: end}}\n  - {{id: end, type: final_response, \
             message: \"{message}\"}}\n"
        ));
        let Some(StepKind::ToolCall(call)) = plan.step(&"a".into()).map(|step| &step.kind) else {
            panic!("not a tool call")
        };
        assert_eq!(call.save_as.as_str(), "r");
        call.whole
    };
    assert!(!read("saveAs", "{{ context.r.sum }}"));
    assert!(!read("saveAs", "{{ context.r.structuredContent.sum }}"));
    assert!(read("saveResultAs", "{{ context.r.structuredContent.sum }}"));
    let both = "planId: t/p\nsteps:\n  - {id: a, type: tool_call, toolId: math::add, saveAs: r, \
                saveResultAs: s, arguments: {a: 1, b: 1}, nextStepId: end}\n  - {id: end, type: \
                final_response, message: ok}\n";
    let mistakes = load(both).unwrap_err();
    let told: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
    assert!(told.iter().any(|one| one.contains("not both")), "{told:?}");
}

#[test]
fn only_a_plan_that_we_make_ourselves_reports_its_calls() {
    let source = json!({"planId": "t/p", "reportsCalls": true, "steps": [
        {"id": "end", "type": "final_response", "message": "ok"},
    ]});
    let origin = Origin::default();
    let limits = Limits::default();
    let loaded = surrounded(|around| load_value(&source, &origin, &limits, around));
    let Err(mistakes) = loaded else { panic!("it was loaded") };
    let places: Vec<&str> = mistakes.iter().map(|mistake| mistake.pointer.as_str()).collect();
    assert_eq!(places, ["/reportsCalls"], "{mistakes:?}");
    assert!(read_generated(&source, &limits).unwrap().reports_calls);
    assert!(reload(&source).unwrap().reports_calls);
}

#[test]
fn a_pinned_plan_keeps_a_pointer_that_is_refused_now() {
    let deep = format!("$.promptInput{}{}", "[?@".repeat(40), "]".repeat(40));
    let source = json!({"planId": "t/p", "description": "deep", "startStepId": "end", "steps": [
        {"id": "end", "type": "final_response", "message": {"jsonPath": deep}},
    ]});
    let origin = Origin::default();
    let limits = Limits::default();
    let loaded = surrounded(|around| load_value(&source, &origin, &limits, around));
    let Err(mistakes) = loaded else { panic!("{deep} was loaded") };
    let places: Vec<&str> = mistakes.iter().map(|mistake| mistake.pointer.as_str()).collect();
    assert_eq!(places, ["/steps/0/message/jsonPath"], "{mistakes:?}");
    let plan = reload(&source).unwrap();
    let StepKind::Final { message: Text::Expr(Expr::Pointer(pointing)) } = &plan.steps[0].kind
    else {
        panic!("{plan:?}")
    };
    assert!(matches!(pointing.pointer.rest, Rest::Unreadable(_)), "{plan:?}");
}

#[test]
fn a_pinned_plan_keeps_a_text_that_is_refused_now() {
    let text = "{{ context.sum|shout }}";
    let source = json!({"planId": "t/p", "description": "loud", "startStepId": "end", "steps": [
        {"id": "end", "type": "final_response", "message": text},
    ]});
    let (origin, limits) = (Origin::default(), Limits::default());
    let loaded = surrounded(|around| load_value(&source, &origin, &limits, around));
    let Err(mistakes) = loaded else { panic!("{text} was loaded") };
    let [mistake] = &mistakes[..] else { panic!("{mistakes:?}") };
    assert_eq!(mistake.pointer, "/steps/0/message");
    let why = "there is no filter `shout`; use one of `default`, `first`, `join`, `last`, \
               `length`, `lower`, `trim`, `upper`";
    assert!(mistake.message.contains(why), "{mistake:?}");
    let plan = reload(&source).unwrap();
    let StepKind::Final { message: Text::Template(template) } = &plan.steps[0].kind else {
        panic!("{plan:?}")
    };
    assert_eq!(template.render(serde_json::Map::new()), Err(why.to_owned()));
}

#[test]
fn a_pinned_plan_keeps_a_pattern_that_is_refused_now() {
    let pattern = json!(r"\w{500}");
    let source = json!({"planId": "t/p", "description": "large", "startStepId": "a", "steps": [
        {"id": "a", "type": "conditional_branch",
         "condition": {"left": "x", "operator": "matches", "right": pattern},
         "onTrue": {"nextStepId": "end"}, "onFalse": {"nextStepId": "end"}},
        {"id": "end", "type": "final_response", "message": "x"},
    ]});
    let origin = Origin::default();
    let limits = Limits::default();
    let loaded = surrounded(|around| load_value(&source, &origin, &limits, around));
    let Err(mistakes) = loaded else { panic!("{pattern} was loaded") };
    let places: Vec<&str> = mistakes.iter().map(|mistake| mistake.pointer.as_str()).collect();
    assert_eq!(places, ["/steps/0/condition/right"], "{mistakes:?}");
    let plan = reload(&source).unwrap();
    let StepKind::Conditional { condition, .. } = &plan.steps[0].kind else { panic!("{plan:?}") };
    let budget = Budget::new(limits.pointer_nodes_max);
    let came = condition.operator.holds(Some(&json!("x")), Some(&pattern), &budget);
    assert_eq!(came, Err(Fault::new("ConditionError", TOO_LARGE).hint(TOO_LARGE_HINT)));
}

const EXAMPLE: &str = r#"planId: trade/example
description: one of each
parameters: {type: object, required: [reason]}
startStepId: known
steps:
  - {id: known, type: match, value: {jsonPath: $.promptInput.reason}, cases: [{equals: Missing ISIN, nextStepId: fix}], default: {nextStepId: end}}
  - {id: fix, type: tool_call, toolId: "math::add", arguments: {a: 1, b: {jsonPath: $.promptInput.n, default: 2}}, saveAs: sum, approve: true, nextStepId: each}
  - {id: each, type: loop_over_items, collectionPath: {jsonPath: $.promptInput.items}, itemAlias: item, concurrency: 4, on_error: collect,
     loopPlan: [{id: one, type: tool_call, toolId: "math::add", arguments: {a: {jsonPath: $.context.item}, b: 1}}], nextStepId: both}
  - id: both
    type: parallel_branch
    branches:
      - {id: l, steps: [{id: left, type: tool_call, toolId: "math::add", arguments: {a: 1, b: 2}}]}
      - {id: r, steps: [{id: right, type: tool_call, toolId: "math::add", arguments: {a: 3, b: 4}}]}
    nextStepId: check
  - {id: check, type: conditional_branch, condition: {left: {jsonPath: $.context.sum}, operator: greater_than, right: 3}, onTrue: {nextStepId: ask}, onFalse: {nextStepId: sub}}
  - {id: ask, type: human_in_the_loop, message: "Go on?", expectedInputSchema: {type: object}, nextStepIdOnInput: sub}
  - {id: sub, type: plan, planId: math/other, arguments: {x: {jsonPath: $.context.sum}}, saveAs: other, nextStepId: end}   # own context
  - {id: end, type: final_response, message: "done: {{ context.sum }}"}
examples:
  - {name: known reason, input: {reason: Missing ISIN, n: 2, items: [1]}, replies: [{approve: true}], model: [], expect: {status: completed, answer: "done: 3"}}
"#;

#[test]
fn yaml_json_and_value_give_the_same_plan() {
    let (plan, warnings) = good(EXAMPLE);
    assert!(warnings.is_empty(), "{warnings:?}");
    let text = serde_json::to_string_pretty(&plan.source).unwrap();
    let (from_json, _) = good(&text);
    let (from_value, _) = inline(&plan.source).unwrap();
    assert_eq!(format!("{from_json:?}"), format!("{plan:?}"));
    assert_eq!(format!("{from_value:?}"), format!("{plan:?}"));
    let other_words = EXAMPLE.replace("one of each", "other words").replace("known reason", "new");
    assert_eq!(good(&other_words).0.hash, plan.hash);
    let other_work = EXAMPLE.replace("b: 1}", "b: 2}");
    assert_ne!(good(&other_work).0.hash, plan.hash);
}

#[test]
fn a_call_in_any_nested_step_is_found() {
    let plan = |id: &str, steps: &str| {
        let text = format!("planId: {id}\nsteps:\n  - {steps}\n");
        let origin = Origin::of_file(&format!("plans/{id}.yaml"));
        let limits = Limits::default();
        let loaded = surrounded(|around| load_text(&text, &origin, &limits, around));
        Arc::new(loaded.unwrap_or_else(|mistakes| panic!("{mistakes:?}\n{text}")).0)
    };
    let calls = |plans: &[&Arc<Plan>]| {
        let all = plans.iter().map(|plan| (plan.id.clone(), Arc::clone(plan))).collect();
        Closure::new(plans[0].clone(), all, BTreeMap::new()).calls
    };
    let looping = |inner: &str| {
        format!(
            "{{id: l, type: loop_over_items, collectionPath: [1], itemAlias: i, loopPlan: [{inner}]}}"
        )
    };
    let forking = |inner: &str| {
        let told = "{id: t, type: publish_event, event: {type: T}}";
        format!(
            "{{id: f, type: parallel_branch, branches: [{{steps: [{told}]}}, {{steps: [{inner}]}}]}}"
        )
    };
    for (inner, expected) in [
        ("{id: a, type: publish_event, event: {type: Told}}", false),
        ("{id: a, type: tool_call, toolId: math::add, arguments: {a: 1, b: 1}}", true),
    ] {
        let deep = looping(&forking(inner));
        for steps in [inner, &looping(inner), &forking(inner), &deep] {
            assert_eq!(calls(&[&plan("t/p", steps)]), expected, "{steps}");
        }
        // One that another plan runs counts like its own steps.
        let outer = plan("t/p", "{id: o, type: plan, planId: math/other}");
        assert_eq!(calls(&[&outer, &plan("math/other", &deep)]), expected, "{deep}");
    }
}

#[test]
fn a_plan_is_drawn_as_mermaid() {
    let expected = r#"flowchart TD
    begin(("start")) --> s_known
    s_known{"known<br/>$.promptInput.reason"}
    s_fix["fix<br/>math::add after approval"]
    subgraph s_each["each<br/>for each item of $.promptInput.items"]
        s_one["one<br/>math::add"]
    end
    subgraph s_both["both"]
        subgraph b_s_both_0["l"]
            s_left["left<br/>math::add"]
        end
        subgraph b_s_both_1["r"]
            s_right["right<br/>math::add"]
        end
    end
    s_check{"check<br/>$.context.sum greater_than 3"}
    s_ask[/"ask<br/>Go on?"\]
    s_sub[["sub<br/>math/other"]]
    s_end(["end<br/>done: {{ context.sum }}"])
    s_known -->|"Missing ISIN"| s_fix
    s_known -->|"else"| s_end
    s_fix --> s_each
    s_each --> s_both
    s_both --> s_check
    s_check -->|"true"| s_ask
    s_check -->|"false"| s_sub
    s_ask --> s_sub
    s_sub --> s_end
"#;
    assert_eq!(mermaid(&good(EXAMPLE).0), expected);
}

#[test]
fn a_wrong_event_is_refused() {
    let publishing = |keys: &str, expected: &str| {
        bad_steps(&format!("  - {{id: a, type: publish_event, {keys}}}"), expected);
    };
    let untyped = "`type` of the event is missing, or no text; \
                   hint: say what happened: `type: TradeRepaired`";
    publishing("event: «{tradeId: x}", untyped);
    publishing("event: «{type: ''}", untyped);
    publishing("event: «{type: 1, id: {jsonPath: $.promptInput.id}}", untyped);
    publishing("event: «{type: [{jsonPath: $.promptInput.id}]}", untyped);
    publishing(
        "event: «TradeRepaired",
        "expected a map with `type`, or a pointer to one, found a text",
    );
    publishing("event: {type: T}, «saveAs: x", "unknown key `saveAs` in a publish_event step");
    publishing(
        "event: {type: T, sum: «{jsonPath: \"$.history[?(@.planStepId=='b')]\"}}",
        "there is no step `b`",
    );
}

#[test]
fn a_published_event_is_drawn_by_its_type() {
    let text = with_steps(
        "  - {id: a, type: publish_event, event: {type: Told, of: {jsonPath: $.promptInput.x}}, \
         nextStepId: b}\n  \
         - {id: b, type: publish_event, event: {jsonPath: $.promptInput.event}, nextStepId: c}\n  \
         - {id: c, type: publish_event, event: {type: Ended}}",
    );
    let (plan, warnings) = good(&text);
    assert!(warnings.is_empty());
    let drawn = mermaid(&plan);
    for line in [
        "s_a>\"a<br/>publishes Told\"]",
        "s_b>\"b<br/>publishes $.promptInput.event\"]",
        "s_c>\"c<br/>publishes Ended\"]",
        "s_a --> s_b",
        "s_c --> finish((\"end\"))",
    ] {
        assert!(drawn.contains(line), "{line}\n{drawn}");
    }
}

#[test]
fn a_drawing_escapes_what_people_write() {
    let text = with_steps(
        "  - {id: a-b, type: tool_call, toolId: test::always_fail, nextStepId: a_b, onRejected: {nextStepId: a_b}}\n  \
         - {id: a_b, type: human_in_the_loop, message: 'say \"<b>\" #1'}",
    );
    let expected = "flowchart TD
    begin((\"start\")) --> s_a_b
    s_a_b[\"a-b<br/>test::always_fail\"]
    s_a_b_[/\"a_b<br/>say #quot;#lt;b#gt;#quot; #35;1\"\\]
    s_a_b --> s_a_b_
    s_a_b -.->|\"rejected\"| s_a_b_
    s_a_b_ --> finish((\"end\"))
";
    assert_eq!(mermaid(&good(&text).0), expected);
}

#[test]
fn the_shipped_plans_load() {
    let shipped = [
        include_str!("../../../../../examples/plans/plans/math/conditional_add.yaml"),
        include_str!("../../../../../examples/plans/plans/math/fan_out.yaml"),
        include_str!("../../../../../examples/plans/plans/interaction/greeting.plan.json"),
        include_str!("../../../../../examples/plans/plans/test/plan_that_fails.yaml"),
        include_str!("../../../../../examples/trade-failures/plans/trades/isin_of_cusip.yaml"),
    ];
    let ids = shipped.map(|text| {
        let (plan, warnings) = good(text);
        assert!(warnings.is_empty(), "{warnings:?}");
        assert!(!plan.examples.is_empty());
        plan.id.to_string()
    });
    let expected = [
        "math::conditional_add", "math::fan_out", "interaction::greeting", "test::plan_that_fails",
        "trades::isin_of_cusip",
    ];
    assert_eq!(ids, expected);
}

#[test]
fn a_rule_that_drafts_for_a_write_gets_a_warning() {
    let warned = |tool: &str, rule: &str| {
        let steps = format!(
            "  - {{id: a, type: tool_call, toolId: \"{tool}\", arguments: {{}}, \
             on_error: [{rule}], nextStepId: b}}\n  \
             - {{id: b, type: final_response, message: done}}"
        );
        let (_, warnings) = good(&with_steps(&steps));
        warnings.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    for (tool, rule) in [
        ("test::always_fail", "{draft: {auto: reads}}"),
        ("test::write", "{draft: {}}"),
        ("test::write", "{propose: {}}"),
    ] {
        assert_eq!(warned(tool, rule), [""; 0], "{tool} {rule}");
    }
    let warnings = warned("test::write", "{draft: {auto: reads}}");
    let [warning] = warnings.as_slice() else { panic!("{warnings:?}") };
    assert!(warning.contains("`auto: reads` has no effect here: `test::write`"), "{warning}");
}
