//! An agent as a prompt: its own model's instructions, for the client's model, with the request.

use engine::KnownAgent;
use kernel::contracts::shelf::{PromptArgument, PromptSpec};
use kernel::definition::agent::{Agent, PromptRole, TALKS, talk_id};
use kernel::expression::template::fill_known;
use kernel::values::ids::{AgentName, ToolName};
use kernel::values::names::{Alphabet, inward, outward};
use serde_json::{Map, Value, json};

/// The one argument: what is wanted.
const REQUEST: &str = "user_request";

/// What a prompt's texts may name beside the agent.
pub(super) struct PromptContext {
    /// Now, in words.
    pub(super) now: String,
    pub(super) tools: Vec<ToolName>,
}

/// The agent that a client means by this name.
pub(super) fn named(written: &str) -> Option<AgentName> {
    let id = inward(written, Alphabet::Mcp).filter(|id| id.starts_with(TALKS));
    let id = id.unwrap_or_else(|| written.to_owned());
    id.strip_prefix(TALKS).map(AgentName::from)
}

pub(super) fn spec(known: &KnownAgent) -> PromptSpec {
    let agent = &known.agent;
    let description = match agent.description.as_str() {
        "" => format!("Work as the agent `{}`.", agent.name),
        about => about.to_owned(),
    };
    PromptSpec {
        name: outward(talk_id(&agent.name).as_str(), Alphabet::Mcp),
        title: Some(agent.title.clone()),
        description: Some(description),
        arguments: vec![PromptArgument {
            name: REQUEST.to_owned(),
            description: Some("What is wanted, in words".to_owned()),
            required: true,
        }],
        listed: None,
    }
}

/// The prompt filled in: `{description, messages}`.
pub(super) fn filled(
    known: &KnownAgent,
    given: &Map<String, Value>,
    around: PromptContext,
) -> Value {
    let agent = &known.agent;
    let root = root(agent, around);
    let prompt_message =
        |role: &str, text: String| json!({"role": role, "content": {"type": "text", "text": text}});
    // A text that cannot be filled is shown as it is written: someone may still read it.
    let text =
        |content: &str| fill_known(content, root.clone()).unwrap_or_else(|_| content.to_owned());
    let mut messages: Vec<Value> = agent
        .prompt
        .iter()
        .map(|step| match step.role {
            PromptRole::Assistant => prompt_message("assistant", text(&step.content)),
            // MCP has no voice of its own for the operator.
            PromptRole::System | PromptRole::User => prompt_message("user", text(&step.content)),
        })
        .collect();
    if messages.is_empty() {
        messages.push(prompt_message(
            "user",
            format!("You are {}. {}", agent.title, agent.description),
        ));
    }
    let request = given.get(REQUEST).and_then(Value::as_str).unwrap_or_default();
    messages.push(prompt_message("user", request.to_owned()));
    json!({"description": spec(known).description, "messages": messages})
}

fn root(agent: &Agent, around: PromptContext) -> Map<String, Value> {
    let seen = around.tools.iter().filter(|tool| agent.sees(tool, None));
    let names: Vec<String> = seen.map(|tool| outward(tool.as_str(), Alphabet::Mcp)).collect();
    Map::from_iter([
        ("now".to_owned(), json!(around.now)),
        ("zone".to_owned(), json!(agent.zone.as_deref().unwrap_or("UTC"))),
        ("agent".to_owned(), json!(agent.title)),
        ("tools".to_owned(), json!(names.join(", "))),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::definition::agent::{AgentLimits, PromptStep};
    use kernel::tool::rules::Pattern;
    use kernel::values::ids::ContentHash;
    use std::collections::BTreeMap;
    use std::sync::Arc;

    fn diary(prompt: &[&str]) -> KnownAgent {
        let step = |content: &&str| PromptStep {
            role: PromptRole::System,
            content: (*content).to_owned(),
        };
        let agent = Agent {
            name: "diary".into(),
            title: "Diary".to_owned(),
            description: "Keeps a calendar.".to_owned(),
            model: "m".into(),
            router_model: None,
            commands: false,
            routed: false,
            prompt: prompt.iter().map(step).collect(),
            enabled: Some(vec![Pattern::new("math::*").unwrap()]),
            types: BTreeMap::new(),
            approve: Vec::new(),
            limits: AgentLimits::default(),
            zone: None,
            source: Arc::new(Value::Null),
            hash: ContentHash::of(b""),
        };
        KnownAgent { agent: Arc::new(agent), version: None }
    }

    fn around() -> PromptContext {
        PromptContext {
            now: "2026-11-15T09:00:00.000Z".to_owned(),
            tools: vec!["math::add".into(), "http::request".into()],
        }
    }

    #[test]
    fn an_agent_is_a_prompt_with_one_argument() {
        let spec = spec(&diary(&[]));
        assert_eq!(spec.name, "agent--diary");
        assert_eq!(named(&spec.name), Some("diary".into()));
        assert_eq!(named("agent/diary"), Some("diary".into()));
        assert_eq!(named("math--add"), None);
        assert_eq!((spec.arguments.len(), spec.arguments[0].required), (1, true));
    }

    #[test]
    fn the_texts_are_filled_and_the_request_comes_last() {
        let given = json!({"user_request": "what is on?"});
        let given = given.as_object().unwrap();
        let known = diary(&["It is {{ now }} ({{ zone }}). Use {{ tools }}.", "{{ nobody }}"]);
        let filled = filled(&known, given, around());
        let texts: Vec<&str> = filled["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|message| message["content"]["text"].as_str().unwrap())
            .collect();
        let add = outward("math::add", Alphabet::Mcp);
        let first = format!("It is 2026-11-15T09:00:00.000Z (UTC). Use {add}.");
        assert_eq!(texts, [first.as_str(), "{{nobody}}", "what is on?"]);
        let bare = super::filled(&diary(&[]), given, around());
        assert_eq!(bare["messages"][0]["content"]["text"], "You are Diary. Keeps a calendar.");
    }
}
