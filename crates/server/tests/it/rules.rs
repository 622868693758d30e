//! `[tools]`: what an operator says of tools, as it is seen from outside.

use crate::house::{ADDRESS, House, assembled, refused, setup, text};
use crate::mcp_client::ask;
use engine::{AgentFile, PlanFile};
use project::config::Config;
use project::folder::Project;
use serde_json::json;
use server::{AssembleError, assemble};

fn ruled(settings: &str) -> Project {
    let mut project = Project::demo();
    project.config = Config::parse("waypost.toml", settings).unwrap();
    project
}

#[tokio::test]
async fn a_caller_that_calls_too_often_gets_429() {
    let settings = "[tools.limits.\"math::*\"]\nper_minute = 2\n";
    let house = House::build(ruled(settings), None).await;
    let path = "/api/v1/tools/math::add/call";
    let body = json!({"arguments": {"a": 1, "b": 2}});
    for _ in 0..2 {
        assert_eq!(house.post(path, body.clone()).await.status, 200);
    }
    let late = house.post(path, body).await;
    assert_eq!(late.refusal(), refused(429, "rate_limited", &[]));
    let retry_ms = late.body["retryAfterMs"].as_u64().unwrap();
    let seconds: u64 = late.header("retry-after").parse().unwrap();
    assert_eq!(seconds, retry_ms.div_ceil(1_000));
    assert!((1..=30).contains(&seconds), "{late:?}");
    assert!(text(&late.body["hint"]).contains("per_minute"), "{late:?}");
}

#[tokio::test]
async fn denied_tools_are_neither_listed_nor_called() {
    let settings = "[tools]\nallow = [\"math::*\", \"validate::*\", \"test::*\"]\n\
                    deny = [\"math::fan_out\"]\n";
    let house = House::build(ruled(settings), None).await;
    let all = house.get("/api/v1/tools").await.body;
    let names: Vec<String> =
        all["items"].as_array().unwrap().iter().map(|tool| text(&tool["name"])).collect();
    let expected = [
        "math::add", "math::conditional_add", "test::always_fail", "test::plan_that_fails",
        "validate::is_positive",
    ];
    assert_eq!(names, expected);
    for name in ["events.publish", "math::fan_out"] {
        let shown = house.get(&format!("/api/v1/tools/{name}")).await;
        assert_eq!(shown.refusal(), refused(404, "not_found", &[]), "{name}");
        let called = house.post(&format!("/api/v1/tools/{name}/call"), json!({})).await;
        assert_eq!(called.refusal(), refused(404, "not_found", &[]), "{name}");
    }
    // The rules are about tools: a plan that is none can be run.
    let run = house.run(json!({"planId": "interaction::greeting"})).await;
    assert_eq!(run["run"]["status"], "waiting");
}

#[tokio::test]
async fn a_server_warns_of_rules_that_fit_nothing() {
    let data = tempfile::tempdir().unwrap();
    let settings = "[tools]\ndeny = [\"htpp::request\"]\n";
    let started = assembled(ruled(settings), &data, ADDRESS.parse().unwrap(), None).await;
    let told: Vec<String> = started.warnings.iter().map(ToString::to_string).collect();
    let expected = "warning: `htpp::request` in `deny` of `[tools]` fits no tool and no plan; \
                    hint: did you mean `http::request`?";
    assert_eq!(told.last().map(String::as_str), Some(expected), "{told:?}");
}

async fn tools(project: Project) -> Vec<String> {
    let house = House::build(project, None).await;
    let all = house.get("/api/v1/tools").await.body;
    all["items"].as_array().unwrap().iter().map(|tool| text(&tool["name"])).collect()
}

fn set(settings: &str) -> Project {
    let config = Config::parse("waypost.toml", settings).unwrap();
    Project { config, ..Project::default() }
}

#[tokio::test]
async fn a_project_has_the_tools_that_it_asks_for() {
    let always = ["case.raiseTicket", "events.publish"];
    assert_eq!(tools(set("")).await, always);
    assert_eq!(tools(set("[tools.http]\nallow = []\n")).await, always);
    let http = tools(set("[tools.http]\nallow = [\"a.test\"]\n")).await;
    assert_eq!(http, ["case.raiseTicket", "events.publish", "http::request"]);
    let demo = tools(set("[tools]\ndemo = true\n")).await;
    let known = [
        "case.raiseTicket", "events.publish", "math::add", "test::always_fail",
        "validate::is_positive",
    ];
    assert_eq!(demo, known);
}

#[tokio::test]
async fn an_mcp_client_is_offered_the_tools_of_runs_where_something_runs() {
    let house = House::build(set(""), None).await;
    let listed = async || {
        let list = ask(&house, "tools/list", json!({})).await.body;
        let tools = list["result"]["tools"].as_array().unwrap().iter();
        tools.map(|tool| text(&tool["name"])).collect::<Vec<_>>()
    };
    assert_eq!(listed().await, Vec::<String>::new(), "it has nothing of its own");
    let plan = json!({"planId": "it/one", "steps": [{"id": "a", "type": "final_response",
        "message": "done"}]});
    assert_eq!(house.put("/api/v1/plans/it%2Fone", &[], plan).await.status, 201);
    assert_eq!(listed().await, ["case.raiseTicket", "events.publish", "it--one"]);
}

#[tokio::test]
async fn a_definition_that_names_a_tool_which_is_off_is_told_its_switch() {
    let house = House::build(set(""), None).await;
    let steps = |tool: &str| {
        json!({"planId": "it/off", "steps": [{"id": "a", "type": "tool_call", "toolId": tool,
            "arguments": {"a": 1, "b": 2}}]})
    };
    let switch = "`demo = true` under `[tools]`";
    let plan = house.put("/api/v1/plans/it%2Foff", &[], steps("math::add")).await;
    assert_eq!(plan.refusal().2, ["/steps/0/toolId"], "{plan:?}");
    assert!(text(&plan.body["errors"][0]["detail"]).contains(switch), "{plan:?}");
    let plan = house.put("/api/v1/plans/it%2Foff", &[], steps("http::request")).await;
    assert!(text(&plan.body["errors"][0]["detail"]).contains("`[tools.http]`"), "{plan:?}");
    let agent = json!({"llmConfigRef": "m", "enabledTools": ["events.*", "math::add"]});
    let agent = house.put("/api/v1/agents/off", &[], agent).await;
    assert_eq!(agent.refusal(), refused(422, "invalid_agent", &["/enabledTools/1"]), "{agent:?}");
    assert!(text(&agent.body["errors"][0]["detail"]).contains(switch), "{agent:?}");
    // A pattern names no tool.
    let agent = json!({"llmConfigRef": "m", "enabledTools": ["math::*"]});
    assert_eq!(house.put("/api/v1/agents/on", &[], agent).await.status, 201);
    let called = house.post("/api/v1/tools/math::add/call", json!({"arguments": {}})).await;
    assert_eq!(called.refusal(), refused(404, "not_found", &[]));
    assert!(text(&called.body["hint"]).contains(switch), "{called:?}");
}

#[tokio::test]
async fn files_that_name_a_tool_which_is_off_are_told_where_and_what_to_set() {
    let plan = PlanFile {
        file: "plans/it/off.yaml".to_owned(),
        text: "steps:\n  - {id: a, type: tool_call, toolId: 'test::always_fail', arguments: {}}\n"
            .to_owned(),
        default_id: "it/off".into(),
    };
    let agent = AgentFile {
        file: "agents/off.yaml".to_owned(),
        text: "refName: off\nllmConfigRef: m\ntool_types:\n  sums:\n    tools: ['math::add']\n"
            .to_owned(),
    };
    for (project, expected) in [
        (
            Project { plans: vec![plan], ..set("") },
            "plans/it/off.yaml:2:38: error: there is no tool `test::always_fail`; \
             hint: set `demo = true` under `[tools]` in waypost.toml: it is a tool of the demo",
        ),
        (
            Project { agents: vec![agent], ..set("") },
            "agents/off.yaml:5:13: error: there is no tool `math::add`; \
             hint: set `demo = true` under `[tools]` in waypost.toml: it is a tool of the demo",
        ),
    ] {
        let data = tempfile::tempdir().unwrap();
        let wrong = assemble(setup(project, &data, ADDRESS.parse().unwrap())).await;
        let Err(AssembleError::Mistakes { mistakes, .. }) = wrong else { panic!("it starts") };
        let errors = mistakes.iter().filter(|mistake| mistake.is_error());
        let told: Vec<String> = errors.map(ToString::to_string).collect();
        assert_eq!(told, [expected]);
    }
}
