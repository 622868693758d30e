//! A server with tools and plans of the tests for calls over MCP, and how a client of the stateless
//! version talks to it.

use crate::house::{ADDRESS, Answer, approval, read, request, text, wait_for};
use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request};
use engine::PlanFile;
use futures::future::{BoxFuture, pending};
use kernel::contracts::Tool;
use kernel::limits::Limits;
use kernel::tool::call::{
    Call, Caller, InputRequest, InputRequired, Pace, Reach, ToolError, ToolOutput, ToolSpec,
};
use project::config::Config;
use project::folder::Project;
use serde_json::{Value, json};
use server::{Extra, Setup, assemble};
use std::collections::BTreeMap;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::sync::Notify;
use tower::ServiceExt;
use wire::mcp::{META_CAPABILITIES, META_CLIENT, META_VERSION, MODERN, TASKS};

/// What a tool waits for before it does anything.
enum Wait {
    Nothing,
    /// Longer than any test takes.
    Ever,
    /// Until the test lets one call go on.
    Release(Arc<Notify>),
}

/// A tool that waits, and then does as it is told.
struct Told {
    spec: Arc<ToolSpec>,
    wait: Wait,
    act: fn(&Call) -> Result<ToolOutput, ToolError>,
}

fn tool(
    name: &str,
    (pace, reach): (Pace, Reach),
    wait: Wait,
    act: fn(&Call) -> Result<ToolOutput, ToolError>,
) -> Arc<dyn Tool> {
    let spec = Arc::new(ToolSpec {
        description: "for a test".to_owned(),
        reach,
        pace,
        ..testkit::specs::tool(name)
    });
    Arc::new(Told { spec, wait, act })
}

impl Tool for Told {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        _caller: &'a Caller,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            match &self.wait {
                Wait::Nothing => {}
                Wait::Ever => pending().await,
                Wait::Release(release) => release.notified().await,
            }
            (self.act)(call)
        })
    }
}

/// Wants a name first, and a state that comes back with it.
fn wants(call: &Call) -> Result<ToolOutput, ToolError> {
    let name = &call.given.inputs.get("name").cloned().unwrap_or_default();
    if call.given.state == json!({"secret": 7}) {
        let greeting = format!("Hello, {}!", text(&name["content"]["name"]));
        return Ok(ToolOutput::Value(json!(greeting)));
    }
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}},
        "required": ["name"]});
    let form = InputRequest::Form { message: "Who?".to_owned(), schema: Arc::new(schema) };
    let inputs = BTreeMap::from([("name".to_owned(), form)]);
    Ok(ToolOutput::Wants(Box::new(InputRequired { inputs, state: json!({"secret": 7}) })))
}

fn done(_call: &Call) -> Result<ToolOutput, ToolError> {
    Ok(ToolOutput::Value(json!("done")))
}

fn broken(_call: &Call) -> Result<ToolOutput, ToolError> {
    Err(ToolError::failed("Broken", "it is broken"))
}

fn large(_call: &Call) -> Result<ToolOutput, ToolError> {
    Ok(ToolOutput::Value(json!("x".repeat(20_000))))
}

fn tools(release: &Arc<Notify>) -> Vec<Arc<dyn Tool>> {
    vec![
        tool("it::slow", (Pace::Slow, Reach::Reads), Wait::Release(release.clone()), done),
        tool("it::long", (Pace::Quick, Reach::Reads), Wait::Ever, done),
        tool("it::endless", (Pace::Task, Reach::Reads), Wait::Ever, done),
        tool("it::broken", (Pace::Task, Reach::Reads), Wait::Nothing, broken),
        tool("it::large", (Pace::Quick, Reach::Writes), Wait::Nothing, large),
        tool("it::wants", (Pace::Quick, Reach::Reads), Wait::Nothing, wants),
    ]
}

/// Two questions at once, as a task.
const TWO: &str = r#"{"planId": "it/two", "pace": "slow", "steps": [
  {"id": "both", "type": "parallel_branch", "nextStepId": "end", "branches": [
    {"id": "l", "steps": [{"id": "left", "type": "human_in_the_loop", "message": "left?"}]},
    {"id": "r", "steps": [{"id": "right", "type": "human_in_the_loop", "message": "right?",
      "expectedInputSchema": {"type": "object", "properties": {"a": {"type": "array",
        "items": {"type": "integer"}}}, "required": ["a"]}}]}]},
  {"id": "end", "type": "final_response", "message": {"jsonPath": "$.context.inputs"}}]}"#;
/// A question, and something slow after it.
const THEN: &str = r#"{"planId": "it/then", "pace": "slow", "steps": [
  {"id": "first", "type": "human_in_the_loop", "message": "first?", "nextStepId": "slow"},
  {"id": "slow", "type": "tool_call", "toolId": "it::slow", "arguments": {}, "nextStepId": "end"},
  {"id": "end", "type": "final_response", "message": "over"}]}"#;
/// A plan that never ends by itself.
const AROUND: &str = r#"{"planId": "it/around", "pace": "task", "steps": [
  {"id": "again", "type": "match", "value": 1, "cases": [{"equals": 1, "nextStepId": "again"}],
   "default": {"nextStepId": "end"}},
  {"id": "end", "type": "final_response", "message": "never"}]}"#;
/// A plan whose one step takes long.
const LONG: &str = r#"{"planId": "it/long_plan", "steps": [
  {"id": "wait", "type": "tool_call", "toolId": "it::long", "arguments": {}, "nextStepId": "end"},
  {"id": "end", "type": "final_response", "message": "over"}]}"#;

/// A server with these tools and plans.
pub struct Place {
    router: Router,
    /// Lets one call of `it::slow` go on.
    pub release: Arc<Notify>,
    _data: TempDir,
}

impl Place {
    /// With these lines in `[limits]`.
    pub async fn new(limits: &str) -> Self {
        let text = format!("[limits]\n{limits}\n");
        Self::of(Config::parse("waypost.toml", &text).unwrap()).await
    }

    /// Within these limits, which may be fixed ones.
    pub async fn within(limits: Limits) -> Self {
        Self::of(Config { limits, ..Config::default() }).await
    }

    async fn of(config: Config) -> Self {
        let mut project = Project { config, ..Project::demo() };
        let approval = approval().to_string();
        let plans = [
            ("two", TWO),
            ("then", THEN),
            ("around", AROUND),
            ("long", LONG),
            ("yes", approval.as_str()),
        ];
        for (id, plan) in plans {
            let file = format!("plans/it/{id}.json");
            let plan = PlanFile { file, text: plan.to_owned(), default_id: id.into() };
            project.plans.push(plan);
        }
        let data = tempfile::tempdir().unwrap();
        let fatal = Arc::new(|why: String| assert!(why.is_empty(), "the store failed: {why}"));
        let address = ADDRESS.parse().unwrap();
        let release = Arc::new(Notify::new());
        let setup = Setup {
            extra: Extra { tools: tools(&release), ..Extra::default() },
            ..Setup::new(project, data.path().join("data"), address, fatal)
        };
        let assembled = assemble(setup).await.unwrap_or_else(|error| panic!("{error}"));
        Self { router: assembled.router(), release, _data: data }
    }

    /// What answers requests.
    pub fn router(&self) -> Router {
        self.router.clone()
    }

    pub async fn send(&self, request: Request<Body>) -> Answer {
        read(self.router.clone().oneshot(request).await.unwrap()).await
    }

    /// The whole response to a request of the stateless version.
    pub async fn ask(&self, method: &str, can: &Value, params: Value) -> Value {
        message(&self.send(modern(method, can, params)).await)
    }

    pub async fn result(&self, method: &str, can: &Value, params: Value) -> Value {
        let response = self.ask(method, can, params).await;
        assert!(response["error"].is_null(), "{response}");
        response["result"].clone()
    }

    /// The code of its error.
    pub async fn error(&self, method: &str, can: &Value, params: Value) -> Value {
        let response = self.ask(method, can, params).await;
        assert!(response["result"].is_null(), "{response}");
        response["error"]["code"].clone()
    }

    pub async fn call(&self, can: &Value, params: Value) -> Value {
        self.result("tools/call", can, params).await
    }

    pub async fn task(&self, id: &Value) -> Value {
        self.result("tasks/get", &tasks(), json!({"taskId": id})).await
    }

    /// The task once it stands so.
    pub async fn task_at(&self, id: &Value, status: &str) -> Value {
        let is_so = |task: &Value| task["status"] == status;
        wait_for(&format!("the task to be {status}"), async || self.task(id).await, is_so).await
    }

    pub async fn get(&self, path: &str) -> Value {
        self.send(request(Method::GET, path, Body::empty())).await.body
    }
}

pub fn modern(method: &str, can: &Value, mut params: Value) -> Request<Body> {
    let name = params["name"].as_str().or(params["taskId"].as_str()).map(str::to_owned);
    params["_meta"] = json!({META_VERSION: MODERN, META_CAPABILITIES: can,
        META_CLIENT: {"name": "it", "version": "1"}});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let mut request = request(Method::POST, "/mcp", Body::from(body.to_string()));
    let headers = request.headers_mut();
    headers.insert("accept", "application/json, text/event-stream".parse().unwrap());
    headers.insert("mcp-protocol-version", MODERN.parse().unwrap());
    headers.insert("mcp-method", method.parse().unwrap());
    if let Some(name) = name {
        headers.insert("mcp-name", name.parse().unwrap());
    }
    request
}

/// The response in an answer, be it JSON or a stream.
pub fn message(answer: &Answer) -> Value {
    if !answer.body.is_null() {
        return answer.body.clone();
    }
    let messages = answer.text.lines().filter_map(|line| line.strip_prefix("data:"));
    let mut messages = messages.filter_map(|data| serde_json::from_str::<Value>(data).ok());
    messages.find(|message| message.get("id").is_some()).unwrap_or_else(|| panic!("{answer:?}"))
}

pub fn forms() -> Value {
    json!({"elicitation": {"form": {}}})
}

pub fn tasks() -> Value {
    json!({"elicitation": {}, "extensions": {TASKS: {}}})
}

pub fn said(result: &Value) -> String {
    text(&result["content"][0]["text"])
}

/// The key of the only thing that is asked for.
pub fn key(result: &Value) -> String {
    let requests = result["inputRequests"].as_object().unwrap_or_else(|| panic!("{result}"));
    assert_eq!(requests.len(), 1, "{result}");
    requests.keys().next().unwrap().clone()
}

/// The call once more, with an answer to what the result asks for.
pub fn retry(name: &str, result: &Value, answer: Value) -> Value {
    json!({"name": name, "arguments": {}, "requestState": result["requestState"],
        "inputResponses": {key(result): answer}})
}

pub fn accept(content: Value) -> Value {
    json!({"action": "accept", "content": content})
}
