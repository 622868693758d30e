//! What needs no server: `init`, `plan validate`, `plan graph`, `plan test`.

use crate::process::{Server, waypost, write};
use serde_json::json;
use std::fs;

/// Settings of a project whose plans call tools of the demo.
const DEMO_TOOLS: (&str, &str) = ("waypost.toml", "[tools]\ndemo = true\n");

const SPELLING: &str = r#"description: a tool that is not there
startStepId: a
steps:
  - id: a
    type: tool_call
    toolId: "math::ad"
    arguments: {a: 1, b: 2}
    nextStepId: b
  - {id: b, type: final_response, message: done}
"#;

const CALLER: &str = r#"description: calls the other plan and asks before it adds
startStepId: sub
steps:
  - {id: sub, type: plan, planId: x/callee, arguments: {n: 1}, saveAs: two, nextStepId: add}
  - id: add
    type: tool_call
    toolId: "math::add"
    arguments: {a: {jsonPath: $.context.two}, b: 1}
    saveAs: sum
    approve: true
    nextStepId: end
  - {id: end, type: final_response, message: {jsonPath: $.context.sum}}
examples:
  - {name: approved, replies: [{approve: true}], expect: {status: completed, answer: 3}}
  - {name: rejected, replies: [{approve: false}], expect: {status: failed, error: Rejected}}
"#;

const CALLEE: &str = r#"description: adds one
startStepId: add
steps:
  - id: add
    type: tool_call
    toolId: "math::add"
    arguments: {a: {jsonPath: $.promptInput.n}, b: 1}
    saveAs: sum
    nextStepId: end
  - {id: end, type: final_response, message: {jsonPath: $.context.sum}}
examples:
  - {name: adds one, input: {n: 1}, expect: {status: completed, answer: 2}}
"#;

const FAILING: &str = r#"description: fails, and its examples are wrong about it
startStepId: fail
steps:
  - {id: fail, type: tool_call, toolId: "test::always_fail", arguments: {}, nextStepId: end}
  - {id: end, type: final_response, message: done}
examples:
  - {name: too hopeful, expect: {status: completed, answer: done}}
  - {name: skipped, replies: [{action: skip}], expect: {status: completed, answer: done}}
  - {name: too talkative, replies: [{action: skip}, {answer: x}], expect: {status: completed}}
"#;

#[test]
fn init_writes_a_project_that_passes_its_own_tests_and_never_overwrites() {
    let folder = tempfile::tempdir().unwrap();
    let first = waypost(folder.path(), &["init", "shop"]).code(0);
    assert_eq!(
        first.stdout,
        "shop/waypost.toml\nshop/plans/hello/greet.yaml\nshop/plans/fixes/number.yaml\n\
         shop/.schemas/plan.json\nshop/.gitignore\n"
    );
    let shop = folder.path().join("shop");
    waypost(&shop, &["plan", "validate"]).code(0).says("2 plans, 0 errors, 0 warnings");
    assert_eq!(fs::read_to_string(shop.join(".gitignore")).unwrap(), ".waypost/\n.env\n");

    fs::write(shop.join("waypost.toml"), "# mine\n").unwrap();
    let again = waypost(folder.path(), &["init", "shop"]).code(2);
    let again = again.says("shop/waypost.toml").says("shop/plans/hello/greet.yaml");
    assert_eq!(again.stdout, "");
    assert_eq!(fs::read_to_string(shop.join("waypost.toml")).unwrap(), "# mine\n");

    let schema = waypost(&shop, &["schema", "plan"]).code(0);
    assert_eq!(fs::read_to_string(shop.join(".schemas/plan.json")).unwrap(), schema.stdout);
    assert_eq!(waypost(&shop, &["--json", "schema", "plan"]).code(0).json(), schema.json());

    write(&shop, &[DEMO_TOOLS]);
    waypost(&shop, &["plan", "validate"]).code(0).says("2 plans, 0 errors, 0 warnings");
    let tested = waypost(&shop, &["plan", "test"]).code(0);
    assert!(tested.stdout.ends_with("4 passed, 0 failed\n"), "{tested:#?}");
}

#[test]
fn every_template_runs_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    for template in ["plan", "agent", "pipeline", "mcp", "records"] {
        waypost(folder.path(), &["init", template, "--template", template]).code(0);
    }
    waypost(folder.path(), &["plan", "test", "plan"]).code(0);
    let case = r#"{"orderId": "A-1", "reason": "Charged twice"}"#;
    let file = "pipeline/pipelines/refunds.yaml";
    let tested = waypost(folder.path(), &["pipeline", "test", file, "--case", case]).code(0);
    assert!(tested.stdout.contains("deterministic: escalate"), "{tested:#?}");
    waypost(folder.path(), &["plan", "test", "pipeline"]).code(0);
    let tested = waypost(folder.path(), &["mcp", "test", "words", "mcp"]).code(0);
    assert!(tested.stdout.contains("tools      1\n"), "{tested:#?}");

    let server = Server::of_project(&folder.path().join("pipeline"));
    let decided = |reason: &str| {
        let case = format!("reason={reason}");
        let send = ["pipeline", "send", "refunds", "orderId=A-1", case.as_str()];
        server.json(&send).code(0).json()
    };
    assert_eq!(decided("Charged twice")["resultEvent"]["type"], "RefundEscalated");
    let granted = json!({"refund": "granted", "orderId": "A-1"});
    assert_eq!(decided("Arrived damaged")["result"], granted);
    let unknown = decided("Never came")["result"].clone();
    assert_eq!((&unknown["status"], &unknown["key"]), (&json!("created"), &json!("A-1")));

    let server = Server::of_project(&folder.path().join("agent"));
    server.run(&["run", "what is 2 and 3?"]).code(3);
    let done = server.run(&["inbox", "approve", "--last"]).code(0);
    assert_eq!(done.stdout, "It is 5.\n");

    let tested = waypost(folder.path(), &["--json", "policy", "test", "--dir", "records"]).code(0);
    assert_eq!(tested.json()["passed"], json!(2));
    let server = Server::of_project(&folder.path().join("records"));
    let counted = server.json(&["record", "count", "Customer", "tier:gold"]).code(0).json();
    assert_eq!(counted["count"], json!(1), "{counted}");
    waypost(folder.path(), &["init", "x", "--template", "nothing"]).code(2).says("pipeline");
}

#[test]
fn init_keeps_the_lines_of_a_gitignore() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[(".gitignore", "/target")]);
    waypost(folder.path(), &["init"]).code(0);
    let text = fs::read_to_string(folder.path().join(".gitignore")).unwrap();
    assert_eq!(text, "/target\n.waypost/\n.env\n");
    write(folder.path(), &[("other/.gitignore", "/.waypost\n")]);
    waypost(folder.path(), &["init", "other"]).code(0);
    let text = fs::read_to_string(folder.path().join("other/.gitignore")).unwrap();
    assert_eq!(text, "/.waypost\n.env\n");
}

#[test]
fn mistakes_are_shown_with_file_line_and_column() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[DEMO_TOOLS, ("plans/x/bad.yaml", SPELLING)]);
    let ended = waypost(folder.path(), &["plan", "validate"]).code(1).says("1 error");
    assert!(ended.stdout.starts_with("plans/x/bad.yaml:6:13: error: "), "{ended:#?}");
    assert!(ended.stdout.contains("math::add"), "{ended:#?}");

    let file = waypost(folder.path(), &["plan", "validate", "plans/x/bad.yaml"]).code(1);
    assert_eq!(file.stdout, ended.stdout);

    let report = waypost(folder.path(), &["--json", "plan", "validate"]).code(1).json();
    assert_eq!(report["valid"], false);
    assert_eq!(report["files"][0]["mistakes"][0]["line"], 6);

    for command in ["graph", "test"] {
        let ended = waypost(folder.path(), &["plan", command, "plans/x/bad.yaml"]).code(1);
        assert_eq!(ended.says("plans/x/bad.yaml:6:13").stdout, "");
    }
    waypost(folder.path(), &["up", "--ephemeral", "--port", "0"])
        .code(2)
        .says("plans/x/bad.yaml:6:13");
}

#[test]
fn a_plan_that_calls_a_demo_tool_gets_a_hint_for_the_setting() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[("plans/x/callee.yaml", CALLEE)]);
    let told = "plans/x/callee.yaml:6:13: error: there is no tool `math::add`; hint: set \
                `demo = true` under `[tools]` in waypost.toml: it is a tool of the demo\n";
    let ended = waypost(folder.path(), &["plan", "validate"]).code(1).says("1 error");
    assert_eq!(ended.stdout, told);
    let up = ["up", "--ephemeral", "--port", "0"];
    waypost(folder.path(), &up).code(2).says("plans/x/callee.yaml:6:13").says("`demo = true`");
    write(folder.path(), &[DEMO_TOOLS]);
    waypost(folder.path(), &["plan", "validate"]).code(0).says("1 plan, 0 errors");
}

#[test]
fn plans_of_single_realms_are_checked_among_those_of_the_project() {
    let folder = tempfile::tempdir().unwrap();
    let own = "realms/acme/plans/x/caller.yaml";
    let bad = "realms/acme/plans/x/bad.yaml";
    let plans = [DEMO_TOOLS, ("plans/x/callee.yaml", CALLEE), (own, CALLER)];
    write(folder.path(), &plans);
    waypost(folder.path(), &["plan", "validate"]).code(0).says("2 plans, 0 errors");
    waypost(folder.path(), &["plan", "validate", own]).code(0).says("1 plan, 0 errors");
    write(folder.path(), &[(bad, SPELLING)]);
    for arguments in [&["plan", "validate"][..], &["plan", "validate", bad], &["config", "check"]] {
        let ended = waypost(folder.path(), arguments);
        let said = format!("{}{}", ended.stdout, ended.stderr);
        assert!(said.contains(&format!("{bad}:6:13: error: ")), "{said}");
    }
}

#[test]
fn a_plan_is_checked_with_the_plans_around_it() {
    let folder = tempfile::tempdir().unwrap();
    let plans = [DEMO_TOOLS, ("plans/x/caller.yaml", CALLER), ("plans/x/callee.yaml", CALLEE)];
    write(folder.path(), &plans);
    waypost(folder.path(), &["plan", "validate", "plans/x/caller.yaml"])
        .code(0)
        .says("1 plan, 0 errors");
    // Two plans cannot have one id.
    let twin = format!("planId: x/callee\n{CALLEE}");
    write(folder.path(), &[("plans/y/twin.yaml", twin.as_str())]);
    let ended = waypost(folder.path(), &["plan", "validate"]).code(1);
    assert!(ended.stdout.contains("plan id `x/callee` is taken by"), "{ended:#?}");
}

#[test]
fn a_graph_is_mermaid_text() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[DEMO_TOOLS, ("plans/x/callee.yaml", CALLEE)]);
    let ended = waypost(folder.path(), &["plan", "graph", "plans/x/callee.yaml"]).code(0);
    assert!(ended.stdout.starts_with("flowchart TD\n"), "{ended:#?}");
    assert!(ended.stdout.contains("math::add"), "{ended:#?}");
}

#[test]
fn examples_run_on_the_real_engine() {
    let folder = tempfile::tempdir().unwrap();
    let plans = [DEMO_TOOLS, ("plans/x/caller.yaml", CALLER), ("plans/x/callee.yaml", CALLEE)];
    write(folder.path(), &plans);
    let ended = waypost(folder.path(), &["plan", "test", "."]).code(0);
    assert_eq!(
        ended.stdout,
        "ok      x/callee: adds one\n\
         ok      x/caller: approved\n\
         ok      x/caller: rejected\n\
         3 passed, 0 failed\n"
    );
    // Nothing is left in the project.
    assert!(!folder.path().join(".waypost").exists());
}

/// A project with a server that is never reached, and a plan that calls its tool.
const STUBBED: &str = r#"description: refunds an order
startStepId: refund
steps:
  - id: refund
    type: tool_call
    toolId: shop.refund
    arguments: {order: A-8}
    on_error: [{when: {error: HttpStatus}, retry: {times: 2, wait_ms: 1}}]
    saveAs: refund
    nextStepId: end
  - {id: end, type: final_response, message: {jsonPath: $.context.refund.refunded}}
examples:
  - name: at the second try
    stubs:
      shop.refund: [{fault: {status: 503, how: not_sent}}, {result: {refunded: 30}, delayMs: 5}]
    expect: {status: completed, answer: 30}
  - name: without a stub
    expect: {status: paused_on_error, error: NoStub}
  - name: with one too many
    stubs: {shop.refund: [{result: {refunded: 1}}, {result: {refunded: 2}}]}
    expect: {status: completed, answer: 1}
"#;

#[test]
fn a_tool_that_a_local_openapi_document_does_not_have_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let settings = "[providers.shop]\ntype = \"rest\"\nbase_url = \"https://shop.example\"\n\
                    document = \"shop.json\"\n";
    let document = r#"{"openapi": "3.1.0", "info": {"title": "shop", "version": "1"}, "paths":
        {"/refund": {"post": {"operationId": "refund",
            "responses": {"200": {"description": "done"}}}}}}"#;
    let plan = |tool: &str| {
        format!(
            "description: d\nstartStepId: a\nsteps:\n  - {{id: a, type: tool_call, \
             toolId: {tool}, arguments: {{}}, nextStepId: b}}\n  \
             - {{id: b, type: final_response, message: done}}\n"
        )
    };
    let files = [("waypost.toml", settings), ("shop.json", document)];
    write(folder.path(), &files);
    write(folder.path(), &[("plans/x/refund.yaml", plan("shop.refund").as_str())]);
    waypost(folder.path(), &["plan", "validate"]).code(0).says("0 errors, 0 warnings");
    write(folder.path(), &[("plans/x/refund.yaml", plan("shop.refnd").as_str())]);
    let ended = waypost(folder.path(), &["plan", "validate"]).code(1).says("1 error");
    assert!(ended.stdout.contains("there is no tool `shop.refnd`"), "{ended:#?}");
    assert!(ended.stdout.contains("did you mean `shop.refund`?"), "{ended:#?}");
}

#[test]
fn a_policy_test_without_cases_says_where_they_are_written() {
    let folder = tempfile::tempdir().unwrap();
    waypost(folder.path(), &["init", "shop"]).code(0);
    waypost(folder.path(), &["policy", "test", "shop"]).code(0).says("policies/tests.yaml");
    let told = waypost(folder.path(), &["policy", "test", "--dir", "shop"]).code(0);
    assert_eq!(told.stdout, "0 passed, 0 failed\n");
}

#[test]
fn an_example_stands_in_for_tools_of_other_servers() {
    let folder = tempfile::tempdir().unwrap();
    let server = "[mcp.servers.shop]\ncommand = \"never-started\"\n";
    write(folder.path(), &[("waypost.toml", server), ("plans/x/refund.yaml", STUBBED)]);
    let ended = waypost(folder.path(), &["plan", "test"]).code(1);
    assert_eq!(
        ended.stdout,
        "ok      x/refund: at the second try\n\
         ok      x/refund: without a stub\n\
         FAILED  x/refund: with one too many: stubs of `shop.refund` left over: 1\n\
         2 passed, 1 failed\n"
    );
    let twofold = STUBBED.replace("{refunded: 1}}", "1, fault: {}}");
    write(folder.path(), &[("plans/x/refund.yaml", twofold.as_str())]);
    waypost(folder.path(), &["plan", "test"]).code(1).says("has `result` and `fault`");
}

#[test]
fn a_failed_example_is_reported_with_its_difference() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[DEMO_TOOLS, ("plans/x/failing.yaml", FAILING)]);
    let ended = waypost(folder.path(), &["plan", "test"]).code(1);
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert!(
        lines[0].starts_with(
            "FAILED  x/failing: too hopeful: expected status completed, got paused_on_error"
        ),
        "{ended:#?}"
    );
    assert_eq!(lines[1], "ok      x/failing: skipped");
    assert_eq!(
        lines[2],
        "FAILED  x/failing: too talkative: reply 2 is not taken: \
         no one is asked, the run is completed"
    );
    assert_eq!(lines[3], "1 passed, 2 failed");

    let json = waypost(folder.path(), &["--json", "plan", "test"]).code(1);
    let passed: Vec<bool> = json
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|line| line["passed"].as_bool().unwrap())
        .collect();
    assert_eq!(passed, [false, true, false]);
}

#[test]
fn a_named_folder_is_used_as_it_is_and_without_one_the_nearest_project() {
    let folder = tempfile::tempdir().unwrap();
    let files = [DEMO_TOOLS, ("plans/x/callee.yaml", CALLEE), ("below/deep/x", "")];
    write(folder.path(), &files);
    let below = folder.path().join("below/deep");
    waypost(&below, &["plan", "validate"]).code(0).says("1 plan, 0 errors");
    waypost(&below, &["plan", "validate", "."]).code(2).says("there are no plans");
}

#[test]
fn progress_and_hints_are_for_people_only() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[DEMO_TOOLS, ("plans/x/callee.yaml", CALLEE)]);
    // Standard error is a file here: nothing moves on it.
    let tested = waypost(folder.path(), &["plan", "test"]).code(0);
    assert_eq!(tested.stderr, "");
    let talked = waypost(folder.path(), &["plan", "validate"]).code(0);
    assert_eq!(talked.stderr, "1 plan, 0 errors, 0 warnings\n");
    let quiet = waypost(folder.path(), &["--quiet", "plan", "validate"]).code(0);
    assert_eq!(quiet.stderr, "");
    waypost(folder.path(), &["-q", "plan", "validate", "nowhere.yaml"]).code(2).says("error: ");
}
