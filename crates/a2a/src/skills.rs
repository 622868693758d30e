//! Skills: the agents and pipelines that a caller may use, and the plans that `[a2a] expose` names.
//! The id of a skill is that of the plan by which it is started.

use super::error::{Result, invalid};
use super::proxy;
use crate::choice::SkillChoice;
use crate::state::A2a;
use engine::KnownAgent;
use kernel::definition::agent::{TALKS, talk_id};
use kernel::definition::pipeline::{PIPELINES, Pipeline};
use kernel::tool::call::{Caller, ToolSpec};
use kernel::tool::rules::Pattern;
use kernel::values::ids::{AgentName, PlanId, RealmId};
use serde_json::{Map, Value, json};
use std::sync::{Arc, LazyLock};
use wire::a2a::SKILLS_EXTENSION;
use wire::a2a::card::AgentSkill;
use wire::a2a::error::{A2aError, ErrorKind};
use wire::a2a::message::Message;

/// What an agent takes, beside text: the input of the plan by which it is talked to.
pub(super) const REQUEST: &str = "user_request";

/// The media type of data.
pub(super) const JSON: &str = "application/json";

/// How clients that do not know our extension name a skill.
const SKILL_HINT: &str = "skillId";

/// What a skill starts.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    /// A conversation with an agent.
    Agent,
    /// A case of a pipeline.
    Pipeline(Arc<Pipeline>),
    /// A plan.
    Plan,
    /// A call of a tool of another server.
    Proxy,
}

/// What becomes of a text that is sent to a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextInput<'a> {
    /// It is this member of the input.
    As(&'a str),
    /// It starts the plan, which has no input.
    Alone,
    /// It is not taken: the plan needs data.
    No,
}

/// One skill.
#[derive(Debug, Clone)]
pub(super) struct Skill {
    pub(super) plan: PlanId,
    pub(super) kind: Kind,
    title: String,
    description: String,
    tags: Vec<String>,
    pub(super) input: Arc<Value>,
    pub(super) output: Option<Arc<Value>>,
}

impl Skill {
    fn of_agent(known: &KnownAgent) -> Self {
        let agent = &known.agent;
        let schema = json!({"type": "object", "properties": {REQUEST: {"type": "string"}},
            "required": [REQUEST]});
        Self {
            plan: talk_id(&agent.name),
            kind: Kind::Agent,
            title: or(&agent.title, agent.name.as_str()),
            description: or(&agent.description, agent.name.as_str()),
            tags: vec!["agent".to_owned()],
            input: Arc::new(schema),
            output: None,
        }
    }

    fn of_pipeline(pipeline: &Arc<Pipeline>) -> Self {
        let schema = &pipeline.schema;
        let any = |name: &String| (name.clone(), json!({}));
        let properties: Map<String, Value> = schema.allowed.iter().map(any).collect();
        let name = pipeline.name.as_str();
        Self {
            plan: pipeline.plan.clone(),
            kind: Kind::Pipeline(pipeline.clone()),
            title: name.to_owned(),
            description: or(&pipeline.description, name),
            tags: vec!["pipeline".to_owned()],
            input: Arc::new(json!({"type": "object", "properties": properties,
                "required": schema.required})),
            output: None,
        }
    }

    fn of_plan(spec: &ToolSpec) -> Self {
        let mut tags = spec.tags.clone();
        if tags.is_empty() {
            tags.push("plan".to_owned());
        }
        Self {
            plan: PlanId::from(spec.name.as_str()),
            kind: Kind::Plan,
            title: or(&spec.title, spec.name.as_str()),
            description: or(&spec.description, spec.name.as_str()),
            tags,
            input: spec.input_schema.clone(),
            output: spec.output_schema.clone(),
        }
    }

    fn of_proxy() -> Self {
        static INPUT: LazyLock<Arc<Value>> = LazyLock::new(|| Arc::new(proxy::input_schema()));
        static OUTPUT: LazyLock<Arc<Value>> = LazyLock::new(|| Arc::new(proxy::output_schema()));
        Self {
            plan: PlanId::from(proxy::SKILL),
            kind: Kind::Proxy,
            title: "Execute an MCP tool".to_owned(),
            description: "Calls a tool of an MCP server behind this one: which server, which \
                          tool, and its arguments."
                .to_owned(),
            tags: vec!["mcp".to_owned(), "tools".to_owned()],
            input: INPUT.clone(),
            output: Some(OUTPUT.clone()),
        }
    }

    pub(super) fn id(&self) -> &str {
        self.plan.as_str()
    }

    /// What a plan does with a text in the place of data: it goes where its schema has the only
    /// required text, or the only one at all where nothing is required. A plan that takes no input
    /// is only started by it.
    pub(super) fn takes_text(&self) -> TextInput<'_> {
        let required = self.input["required"].as_array().map(Vec::as_slice).unwrap_or_default();
        let properties = self.input["properties"].as_object();
        let texts = properties.into_iter().flatten().filter(|(_, value)| value["type"] == "string");
        let texts: Vec<&str> = texts.map(|(name, _)| name.as_str()).collect();
        match (required, texts.as_slice()) {
            ([only], all) => match all.iter().find(|name| *only == **name) {
                Some(&name) => TextInput::As(name),
                None => TextInput::No,
            },
            ([], &[only]) => TextInput::As(only),
            ([], []) if properties.is_none_or(Map::is_empty) => TextInput::Alone,
            _ => TextInput::No,
        }
    }

    /// The media types that it takes, where these are not all of the server's.
    fn input_modes(&self) -> Vec<String> {
        let only_data = match self.kind {
            Kind::Plan => matches!(self.takes_text(), TextInput::No),
            Kind::Pipeline(_) => true,
            Kind::Agent | Kind::Proxy => false,
        };
        if only_data { vec![JSON.to_owned()] } else { Vec::new() }
    }

    /// As a card shows it.
    pub(super) fn shown(&self) -> AgentSkill {
        AgentSkill {
            id: self.id().to_owned(),
            name: self.title.clone(),
            description: self.description.clone(),
            tags: self.tags.clone(),
            input_modes: self.input_modes(),
            ..AgentSkill::default()
        }
    }

    /// Its schemas as the extension writes them: as JSON text, so that every reader of a signed
    /// card reads the same.
    pub(super) fn schemas(&self) -> Value {
        let mut schemas = json!({"input": self.input.to_string()});
        if let Some(output) = &self.output {
            schemas["output"] = Value::String(output.to_string());
        }
        schemas
    }
}

fn or(text: &str, otherwise: &str) -> String {
    if text.trim().is_empty() { otherwise.to_owned() } else { text.to_owned() }
}

fn names(patterns: &[Pattern], id: &str) -> bool {
    patterns.iter().any(|pattern| pattern.fits(id))
}

/// The skills that this caller may use, by id.
pub(super) fn visible(a2a: &A2a, caller: &Caller) -> Vec<Skill> {
    let mut skills = usable(a2a, caller, None);
    skills.sort_by(|left, right| left.plan.cmp(&right.plan));
    skills
}

/// One of them, without making the others. The proxy goes before a plan of its id.
fn by_id(a2a: &A2a, caller: &Caller, id: &str) -> Option<Skill> {
    usable(a2a, caller, Some(id)).pop()
}

/// The skills that this caller may use, or those of this id; the proxy is the last.
fn usable(a2a: &A2a, caller: &Caller, id: Option<&str>) -> Vec<Skill> {
    let catalog = a2a.server.engine.catalog();
    let tools = a2a.server.engine.tools();
    let begins = |with: &str| id.is_none_or(|id| id.starts_with(with));
    let is_it = |plan: &str| id.is_none_or(|id| id == plan);
    let mut skills: Vec<Skill> = Vec::new();
    // By the lists: who looks for one of these has not asked to read it.
    if begins(TALKS) {
        let name = id.and_then(|id| id.strip_prefix(TALKS));
        let mut agents = catalog.agents(caller);
        agents.retain(|known| name.is_none_or(|name| known.agent.name.as_str() == name));
        skills.extend(agents.iter().map(Skill::of_agent));
    }
    if begins(PIPELINES) {
        let mut pipelines = catalog.pipelines(caller);
        pipelines.retain(|pipeline| is_it(pipeline.plan.as_str()));
        skills.extend(pipelines.iter().map(Skill::of_pipeline));
    }
    skills.retain(|skill| catalog.starts(caller, &skill.plan));
    let mut plans: Vec<Arc<ToolSpec>> = match id {
        Some(id) => tools.plan(caller, id).into_iter().collect(),
        None => tools.plans(caller),
    };
    plans
        .retain(|spec| is_it(spec.name.as_str()) && names(&a2a.serving.expose, spec.name.as_str()));
    skills.extend(plans.iter().map(|spec| Skill::of_plan(spec)));
    let has_proxy = is_it(proxy::SKILL) && proxy::is_offered(a2a, &caller.realm, Some(caller));
    skills.extend(has_proxy.then(Skill::of_proxy));
    skills
}

/// The skills of a realm that strangers are shown.
pub(super) fn public(a2a: &A2a, realm: &RealmId) -> Vec<Skill> {
    let catalog = a2a.server.engine.catalog();
    let public = &a2a.serving.public;
    let mut skills: Vec<Skill> = catalog.all_agents(realm).iter().map(Skill::of_agent).collect();
    skills.extend(catalog.all_pipelines(realm).iter().map(Skill::of_pipeline));
    let plans = catalog.all_plan_tools(realm);
    let exposed = plans.iter().filter(|spec| names(&a2a.serving.expose, spec.name.as_str()));
    skills.extend(exposed.map(|spec| Skill::of_plan(spec)));
    skills.extend(proxy::is_offered(a2a, realm, None).then(Skill::of_proxy));
    skills.retain(|skill| names(public, skill.id()));
    skills.sort_by(|left, right| left.plan.cmp(&right.plan));
    skills
}

/// What a message says in the metadata of our extension.
fn said<'m>(message: &'m Message, key: &str) -> Option<&'m Value> {
    message.metadata.get(SKILLS_EXTENSION)?.get(key)
}

/// Whether a message is to be answered by a message, without a task.
pub(super) fn wants_message(a2a: &A2a, message: &Message) -> bool {
    let is_wanted = said(message, "reply").is_some_and(|reply| reply == "message");
    is_wanted || host_choice(a2a, message).is_some_and(|choice| choice.reply_message)
}

/// What the host program says of a message that starts a task and names no skill.
pub(super) fn host_choice(a2a: &A2a, message: &Message) -> Option<SkillChoice> {
    let is_open = message.task_id.is_empty() && said(message, "skill").is_none();
    a2a.choose_skill.as_ref().filter(|_| is_open).and_then(|choose| choose(message))
}

/// The skill that a message is for: the one that it names, else the proxy for an instruction, else
/// the default agent for a text.
pub(super) fn chosen(a2a: &A2a, caller: &Caller, message: &Message) -> Result<Skill> {
    let hinted = message.metadata.get(SKILL_HINT).and_then(Value::as_str);
    let is_unnamed = said(message, "skill").is_none_or(|id| id == proxy::SKILL);
    let is_free = is_unnamed && hinted.is_none_or(|id| id == proxy::SKILL);
    let instruction = if is_free { proxy::instruction(message) } else { None };
    if let Some(instruction) = &instruction
        && (proxy::is_offered(a2a, &caller.realm, Some(caller))
            || proxy::may_call_meant(a2a, caller, instruction))
    {
        return Ok(Skill::of_proxy());
    }
    let unknown = |why: &str| {
        if let Some(instruction) = &instruction {
            proxy::note_unseen(a2a, caller, instruction);
        }
        unknown(&visible(a2a, caller), why)
    };
    if let Some(named) = said(message, "skill") {
        let found = named.as_str().and_then(|id| asked_for(a2a, caller, id));
        return found.ok_or_else(|| unknown(&format!("there is no skill {named}")));
    }
    if let Some(choice) = host_choice(a2a, message) {
        let found = asked_for(a2a, caller, &choice.skill);
        return found.ok_or_else(|| unknown(&format!("there is no skill `{}`", choice.skill)));
    }
    if let Some(hinted) = hinted {
        let shown: String = hinted.chars().take(100).collect();
        let found = asked_for(a2a, caller, hinted);
        return found.ok_or_else(|| unknown(&format!("there is no skill `{shown}`")));
    }
    let Some(agent) = a2a.server.agent_of_nameless(caller) else {
        return Err(unknown("the message names no skill, and no agent is the default"));
    };
    if !message.parts.iter().any(|part| part.as_text().is_some()) {
        let why = "the message names no skill, and only a text goes to the default agent";
        return Err(unknown(why));
    }
    let found = asked_for(a2a, caller, talk_id(&agent).as_str());
    found.ok_or_else(|| match a2a.server.engine.catalog().agent(caller, &agent) {
        Some(_) => not_started(&agent),
        None => unknown("the message names no skill, and the default agent is not there for you"),
    })
}

/// The caller may see its default agent, and no more.
fn not_started(agent: &AgentName) -> A2aError {
    let why = format!(
        "the message names no skill, and you may see the default agent `{agent}` but not start it; \
         a role that runs, such as `member`, may, unless a policy forbids it"
    );
    A2aError::new(ErrorKind::PermissionDenied, why)
}

/// The skill of this id among those that the caller sees. The audit keeps that it asked for another
/// one that is there.
fn asked_for(a2a: &A2a, caller: &Caller, id: &str) -> Option<Skill> {
    let found = by_id(a2a, caller, id);
    if found.is_none() {
        a2a.server.engine.audits().note_unstarted(caller, &PlanId::from(id));
    }
    found
}

fn unknown(skills: &[Skill], why: &str) -> A2aError {
    let ids: Vec<&str> = skills.iter().map(Skill::id).collect();
    let ids = if ids.is_empty() { "none that you may use".to_owned() } else { ids.join(", ") };
    let told = format!(
        "{why}; name one in `message.metadata[\"{SKILLS_EXTENSION}\"].skill`. Skills: {ids}"
    );
    invalid("message.metadata", told)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(input: Value) -> Skill {
        let mut skill = Skill::of_proxy();
        skill.kind = Kind::Plan;
        skill.input = Arc::new(input);
        skill
    }

    #[test]
    fn a_text_goes_to_the_only_text_of_a_plan_or_starts_one_without_input() {
        let text = json!({"type": "string"});
        let number = json!({"type": "integer"});
        for (input, taken) in [
            (
                json!({"required": ["q"], "properties": {"q": text, "n": number}}),
                TextInput::As("q"),
            ),
            (json!({"properties": {"q": text, "n": number}}), TextInput::As("q")),
            (json!({"type": "object"}), TextInput::Alone),
            (json!({"type": "object", "properties": {}}), TextInput::Alone),
            (json!({"properties": {"n": number}}), TextInput::No),
            (json!({"properties": {"q": text, "r": text}}), TextInput::No),
            (json!({"required": ["n"], "properties": {"q": text, "n": number}}), TextInput::No),
            (json!({"required": ["q", "r"], "properties": {"q": text, "r": text}}), TextInput::No),
        ] {
            let skill = plan(input);
            assert_eq!(skill.takes_text(), taken, "{}", skill.input);
            let modes = skill.shown().input_modes;
            assert_eq!(
                modes.is_empty(),
                taken != TextInput::No,
                "the card says it: {}",
                skill.input
            );
        }
    }
}
