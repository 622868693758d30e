//! A server with a pipeline whose agent goes by rules, a tool that waits until it is let, and how a
//! test sends cases to it.

use crate::contract;
use crate::house::{Answer, House, question, read, request, wait_for};
use axum::body::Body;
use axum::http::Method;
use engine::{PipelineFile, PlanFile};
use futures::future::BoxFuture;
use kernel::contracts::Tool;
use kernel::tool::call::{Call, Caller, ToolError, ToolOutput, ToolSpec};
use project::config::Config;
use project::folder::Project;
use serde_json::{Value, json};
use server::Extra;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// The route of its pipeline.
pub const ROUTE: &str = "/desk/cases";

/// A pipeline with the usual handlers and some more. What its agent does a case's reason says.
pub const DESK: &str = r#"
description: Cases of a desk.
addresses: {inbound: desk.in, agent: desk.agent, events: desk.events}
http: {route: /desk/cases, requestTimeoutMs: 60000}
schema:
  caseIdField: tradeId
  allowedFields: [tradeId, reason, altIds]
  requiredFields: [tradeId, reason]
agent: {maxSteps: 3, timeoutMs: 60000}
handlers:
  - {reason: Missing ISIN, type: lookup-enrich, params: {identifier: ISIN}}
  - {reason: Invalid Counterparty, type: escalate}
  - {reason: Ask first, plan: it/question}
  - {reason: Take your time, plan: it/wait}
  - {reason: Ask meanwhile, plan: it/wait-and-ask}
  - {reason: Give up, plan: it/fail}
tools: [{type: publish-event}, {type: raise-ticket}, "math::add"]
llm:
  type: stub
  params:
    rules:
      version: 1
      rules:
        - rule: another intent
          when: {said: dance}
          say: '{"intent": "DANCE"}'
        - rule: a tool that is not in the list
          when: {said: foreign}
          say: '{"intent": "CALL_TOOL", "tool": "http::request", "args": {}}'
        - rule: arguments that do not fit
          when: {said: misfit}
          say: '{"intent": "CALL_TOOL", "tool": "case.raiseTicket", "args": {"tradeId": "T"}}'
        - rule: no end
          when: {said: circles}
          say: '{"intent":"CALL_TOOL", "tool":"math::add", "args":{"a":1, "b":2}, "stop":false}'
      fallback:
        say: '{"intent": "CALL_TOOL", "tool": "events.publish", "args": {"type": "TradeEscalated"}}'
"#;

/// The desk, and what lets its waiting tool go on: one permit for each call.
pub async fn desk() -> (House, Arc<Semaphore>) {
    desk_with(&[("desk", DESK)], "").await
}

/// The same with these pipelines and these lines in `[limits]`.
pub async fn desk_with(pipelines: &[(&str, &str)], limits: &str) -> (House, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(0));
    let extra = Extra { tools: vec![Arc::new(Wait::new(&gate))], ..Extra::default() };
    (House::furnished(project(pipelines, limits), extra).await, gate)
}

/// The demo with these pipelines, and the plans that they name.
pub fn project(pipelines: &[(&str, &str)], limits: &str) -> Project {
    let mut project = Project::demo();
    let settings = format!("[limits]\n{limits}\n");
    project.config = Config::parse("waypost.toml", &settings).unwrap();
    for plan in [question(), waits(), asks_meanwhile(), fails()] {
        project.plans.push(PlanFile {
            file: "plans/it/some.json".to_owned(),
            text: plan.to_string(),
            default_id: "it/some".into(),
        });
    }
    let file = |(name, text): &(&str, &str)| PipelineFile {
        file: format!("pipelines/{name}.yaml"),
        text: (*text).to_owned(),
        default_name: (*name).into(),
    };
    project.pipelines = pipelines.iter().map(file).collect();
    project
}

fn waits() -> Value {
    json!({
        "planId": "it/wait",
        "description": "waits until it is let",
        "startStepId": "wait",
        "steps": [
            {"id": "wait", "type": "tool_call", "toolId": "desk::wait", "arguments": {},
             "saveAs": "waited", "nextStepId": "end"},
            {"id": "end", "type": "final_response", "message": {"jsonPath": "$.context.waited"}},
        ],
    })
}

fn asks_meanwhile() -> Value {
    json!({
        "planId": "it/wait-and-ask",
        "description": "asks in one branch, and waits in the other until it is let",
        "startStepId": "both",
        "steps": [
            {"id": "both", "type": "parallel_branch", "nextStepId": "end", "branches": [
                {"id": "ask", "steps": [
                    {"id": "ask", "type": "human_in_the_loop", "message": "go on?"},
                ]},
                {"id": "wait", "steps": [
                    {"id": "wait", "type": "tool_call", "toolId": "desk::wait", "arguments": {},
                     "saveAs": "waited"},
                ]},
            ]},
            {"id": "end", "type": "final_response", "message": "both"},
        ],
    })
}

fn fails() -> Value {
    json!({
        "planId": "it/fail",
        "description": "fails and ends",
        "startStepId": "fail",
        "steps": [
            {"id": "fail", "type": "tool_call", "toolId": "test::always_fail", "arguments": {},
             "on_error": "fail", "nextStepId": "end"},
            {"id": "end", "type": "final_response", "message": "never"},
        ],
    })
}

/// A tool that waits until it is let.
pub struct Wait {
    spec: Arc<ToolSpec>,
    gate: Arc<Semaphore>,
}

impl Wait {
    pub fn new(gate: &Arc<Semaphore>) -> Self {
        let spec = ToolSpec {
            title: "Wait".to_owned(),
            description: "waits until it is let".to_owned(),
            idempotent: true,
            ..testkit::specs::tool("desk::wait")
        };
        Self { spec: Arc::new(spec), gate: gate.clone() }
    }
}

impl Tool for Wait {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        _caller: &'a Caller,
        _call: &'a Call,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            self.gate.acquire().await.unwrap().forget();
            Ok(ToolOutput::Value(json!("waited")))
        })
    }
}

/// A case's body.
pub fn case(id: &str, reason: &str) -> Value {
    json!({"tradeId": id, "reason": reason})
}

/// Sends a body to a pipeline's route; the answer is one of those that are told of its cases.
pub async fn send(house: &House, route: &str, body: &str) -> Answer {
    send_with(house, route, &[], body).await
}

/// The same with headers.
pub async fn send_with(
    house: &House,
    route: &str,
    headers: &[(&'static str, &str)],
    body: &str,
) -> Answer {
    let mut request = request(Method::POST, route, Body::from(body.to_owned()));
    for (name, value) in headers {
        request.headers_mut().append(*name, value.parse().unwrap());
    }
    let answer = read(house.open(request).await).await;
    contract::hold(&Method::POST, "/api/v1/pipelines/desk/cases", &answer);
    answer
}

/// The events of a case's journal: what each is, and what it carries.
pub async fn journal(house: &House, pipeline: &str, case: &str) -> Vec<(String, Value)> {
    let path = format!("/api/v1/sessions/{case}/export?space=case:{pipeline}");
    let export = house.get(&path).await;
    assert_eq!(export.status, 200, "{export:?}");
    let events = export.body["events"].as_array().unwrap();
    let told = |event: &Value| (crate::house::text(&event["type"]), event["data"].clone());
    events.iter().map(told).collect()
}

/// How many events of a journal are of this type.
pub fn count(journal: &[(String, Value)], kind: &str) -> usize {
    journal.iter().filter(|(known, _)| known == kind).count()
}

/// A case as a session, once it stands so.
pub async fn until(house: &House, pipeline: &str, case: &str, status: &str) -> Value {
    let path = format!("/api/v1/sessions/{case}?space=case:{pipeline}");
    let is_so = |session: &Value| session["status"] == status;
    let what = format!("case {case} of {pipeline} to be {status}");
    wait_for(&what, async || house.get(&path).await.body, is_so).await
}
