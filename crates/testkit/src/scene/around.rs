//! The surroundings of a scene's plans and agents: tools of any name, and a small schema checker.

use kernel::definition::agent::Agent;
use kernel::definition::agent_reader::read_text;
use kernel::definition::plan::Plan;
use kernel::definition::plan::check::PlanScope;
use kernel::definition::plan::flow::load_text;
use kernel::definition::plan::mistake::Mistake;
use kernel::definition::plan::read::Origin;
use kernel::limits::Limits;
use kernel::tool::call::{Reach, ToolSpec};
use kernel::tool::rules::Pattern;
use kernel::tool::schema::{Misfit, Schemas};
use kernel::values::ids::{AgentName, PlanId, ToolName};
use serde_json::{Value, json};
use std::sync::Arc;

/// Accepts every schema but a wrong `type`, and checks `required` and property types only.
pub(super) struct SmallSchemas;

impl Schemas for SmallSchemas {
    fn compile(&self, schema: &Arc<Value>) -> Result<usize, Misfit> {
        match schema.get("type") {
            Some(Value::String(_) | Value::Array(_)) | None => Ok(1),
            Some(_) => Err(Misfit { pointer: "/type".into(), message: "not a type".into() }),
        }
    }
    fn steps(&self, _schema: &Arc<Value>, _value: &Value) -> u64 {
        1
    }
    fn check(&self, schema: &Arc<Value>, value: &Value) -> Result<(), Vec<Misfit>> {
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let missing: Vec<Misfit> = required
            .iter()
            .filter_map(Value::as_str)
            .filter(|name| value.get(name).is_none())
            .map(|name| Misfit { pointer: String::new(), message: format!("`{name}` is missing") })
            .collect();
        if missing.is_empty() { Ok(()) } else { Err(missing) }
    }
}

/// The tools that there are for agents; plans, and agents that name them, may have any others.
const TOOLS: &[&str] = &[
    "create_event", "list_calendars", "list_events", "math::add", "search_places",
    "test::always_fail", "test::echo", "test::given", "update_event", "write::asked",
    "write::denied", "write::pay",
];

/// The tools that an agent may see: those above, and others that it names.
pub(super) fn tools(agent: &Agent) -> Vec<Arc<ToolSpec>> {
    let named = agent.enabled.iter().flatten().map(Pattern::as_str);
    let others = named.filter(|name| !name.contains('*') && !TOOLS.contains(name));
    TOOLS.iter().copied().chain(others).map(|name| spec(&ToolName::from(name))).collect()
}

pub(super) fn reach(tool: &ToolName) -> Reach {
    let writes = ["create_event", "update_event"];
    let tool = tool.as_str();
    match tool.starts_with("write::") || writes.contains(&tool) {
        true => Reach::Writes,
        false => Reach::Reads,
    }
}

pub(super) fn spec(tool: &ToolName) -> Arc<ToolSpec> {
    let schema = match tool.as_str() {
        "create_event" => json!({"type": "object", "required": ["name"]}),
        "update_event" => json!({"type": "object", "required": ["event_id"]}),
        _ => json!({}),
    };
    Arc::new(ToolSpec {
        input_schema: Arc::new(schema),
        reach: reach(tool),
        ..crate::specs::tool(tool.as_str())
    })
}

/// A plan read with every tool known.
pub(super) fn read_plan(text: &str, plans: &[PlanId], agents: &[AgentName]) -> Plan {
    let tools = |name: &ToolName| Some(spec(name));
    let known = |id: &PlanId| plans.contains(id);
    let around = PlanScope {
        tools: &tools,
        withheld: &|_: &ToolName| None,
        awaited: &|_: &ToolName| false,
        plans: &known,
        agents: &|name: &AgentName| agents.contains(name),
        agent_names: &|| agents.to_vec(),
        tool_names: &Vec::new,
        schemas: &SmallSchemas,
    };
    let origin = Origin { file: None, default_id: Some(PlanId::from("scene/plan")) };
    match load_text(text, &origin, &Limits::default(), &around) {
        Ok((plan, _)) => plan,
        Err(mistakes) => panic!("the scene's plan is wrong:\n{}", told(&mistakes)),
    }
}

/// An agent as a file would tell it.
pub(super) fn read_agent(text: &str) -> Arc<Agent> {
    match read_text(text, "agent", &Limits::default()) {
        Ok((agent, _)) => Arc::new(agent),
        Err(mistakes) => panic!("the scene's agent is wrong:\n{}", told(&mistakes)),
    }
}

pub(super) fn talk_plan(agent: &AgentName) -> String {
    format!(
        "planId: agent/{agent}\nstartStepId: work\nsteps:\n  \
         - {{id: work, type: agent, agent: {agent}, input: {{jsonPath: \
         $.promptInput.user_request}}, saveAs: answer, nextStepId: end}}\n  \
         - {{id: end, type: final_response, message: {{jsonPath: $.context.answer}}}}\n"
    )
}

fn told(mistakes: &[Mistake]) -> String {
    let told: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
    told.join("\n")
}
