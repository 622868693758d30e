//! Tools of an agent: one for each skill, and one that sends any message.

use super::agent::Agent;
use super::card::{Card, Skill};
use super::invocation::{CarriedState, Invocation, has_moved};
use crate::Result;
use crate::config::UpstreamConfig;
use futures::future::BoxFuture;
use kernel::contracts::Tool;
use kernel::tool::call::{
    Call, Caller, OutputKind, Pace, Reach, ToolError, ToolOutput, ToolSpec, Upstream,
    UpstreamProtocol,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use wire::a2a::HOPS;
use wire::a2a::message::{Message, Part, Role};

/// The tool that sends any message.
pub(super) const SEND: &str = "send";

enum MessageForm {
    /// A message written by the caller.
    Any,
    /// A text, perhaps with data, to a skill.
    Text(String),
    /// Its arguments, as a skill's schema wants them.
    Data(String),
}

/// A tool of an agent.
pub(super) struct AgentTool {
    spec: Arc<ToolSpec>,
    /// The agent's name in this project.
    upstream: Arc<str>,
    agent: Arc<Agent>,
    sends: MessageForm,
}

/// The arguments of a message.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Arguments {
    text: Option<String>,
    data: Option<Value>,
    parts: Vec<Part>,
    context_id: String,
    task_id: String,
    reference_task_ids: Vec<String>,
    metadata: Map<String, Value>,
}

/// All tools of the agent with this card.
pub(super) fn tools(
    config: &UpstreamConfig,
    card: &Card,
    agent: &Arc<Agent>,
) -> Vec<Arc<dyn Tool>> {
    let upstream: Arc<str> = config.name.as_str().into();
    let tool = |spec: ToolSpec, sends: MessageForm| {
        let upstream = upstream.clone();
        let agent = agent.clone();
        Arc::new(AgentTool { spec: Arc::new(spec), upstream, agent, sends }) as Arc<dyn Tool>
    };
    let mut tools = vec![tool(send_spec(config, card), MessageForm::Any)];
    for skill in &card.skills {
        // The name is ours.
        if skill.id == SEND {
            let agent = config.name.as_str();
            let skill = skill.id.as_str();
            tracing::warn!(agent, skill, "a skill has the name of our own tool and is left out");
            continue;
        }
        let sends = match &skill.input {
            Some(_) => MessageForm::Data(skill.id.clone()),
            None => MessageForm::Text(skill.id.clone()),
        };
        tools.push(tool(skill_spec(config, skill), sends));
    }
    tools
}

fn send_spec(config: &UpstreamConfig, card: &Card) -> ToolSpec {
    let name = if card.name.is_empty() { &config.name } else { &card.name };
    let schema = json!({"type": "object", "additionalProperties": false, "properties": {
        "text": {"type": "string", "description": "What to say."},
        "data": {"description": "A JSON value to send."},
        "parts": {"type": "array", "items": {"type": "object"},
            "description": "Parts of A2A 1.0: `text`, `raw`, `url` or `data`, with `mediaType`."},
        "contextId": {"type": "string", "description": "Continues a conversation."},
        "taskId": {"type": "string", "description": "Continues a task that waits."},
        "referenceTaskIds": {"type": "array", "items": {"type": "string"}},
        "metadata": {"type": "object"}}});
    let description = format!("Sends a message to the agent `{name}` and waits for its answer.");
    spec(config, SEND, &format!("Send to {name}"), description, schema)
}

fn skill_spec(config: &UpstreamConfig, skill: &Skill) -> ToolSpec {
    let plain = || {
        json!({"type": "object", "additionalProperties": false, "required": ["text"],
            "properties": {
                "text": {"type": "string", "description": "What to say."},
                "data": {"description": "A JSON value to send beside it."},
                "contextId": {"type": "string", "description": "Continues a conversation."}}})
    };
    let schema = skill.input.clone().unwrap_or_else(plain);
    let title = if skill.name.is_empty() { &skill.id } else { &skill.name };
    let mut made = spec(config, &skill.id, title, skill.description.clone(), schema);
    made.tags.extend(skill.tags.iter().cloned());
    made
}

/// An agent does not state its effects, so the worst is assumed.
fn spec(
    config: &UpstreamConfig,
    name: &str,
    title: &str,
    description: String,
    schema: Value,
) -> ToolSpec {
    ToolSpec {
        name: format!("{}{name}", config.prefix).as_str().into(),
        title: title.to_owned(),
        description,
        input_schema: Arc::new(schema),
        output_schema: None,
        reach: Reach::Writes,
        idempotent: false,
        tags: vec![config.name.clone()],
        pace: Pace::Slow,
        yields: OutputKind::Content,
        unrecorded: !config.journal,
        listed: None,
    }
}

impl AgentTool {
    /// The message of a call; its id is the call's, so that an agent that remembers ids takes it
    /// once.
    fn message(&self, call: &Call) -> Result<Message> {
        let mut message = match &self.sends {
            MessageForm::Data(_) => {
                let parts = vec![Part::data((*call.arguments).clone())];
                Message { parts, ..Message::default() }
            }
            MessageForm::Any | MessageForm::Text(_) => written(&call.arguments)?,
        };
        message.message_id = call.id.to_string();
        message.role = Role::User;
        if let MessageForm::Data(skill) | MessageForm::Text(skill) = &self.sends {
            self.agent.name_skill(&mut message, skill);
        }
        let hops = call.context.hops.saturating_add(1);
        let most = self.agent.parts.hops_max;
        if hops > most {
            let why = self.agent.named(&format!(
                "it would be the agent number {hops} of a chain, and at most {most} are allowed"
            ));
            let hint = "do agents call each other in a circle? `a2a_hops_max` in [limits]";
            return Err(ToolError::not_sent("TooManyHops", why).hint(hint));
        }
        // Other products do not pass it on.
        if self.agent.extensions.is_some() {
            message.metadata.insert(HOPS.to_owned(), json!(hops));
        }
        Ok(message)
    }
}

/// The message that arguments say, without an id.
fn written(arguments: &Value) -> Result<Message> {
    let wrong = |why: String| ToolError::not_sent("InputValidationError", why);
    let arguments: Arguments = serde_json::from_value(arguments.clone())
        .map_err(|error| wrong(format!("the arguments are no message: {error}")))?;
    let text = arguments.text.map(Part::text);
    let parts: Vec<Part> =
        text.into_iter().chain(arguments.data.map(Part::data)).chain(arguments.parts).collect();
    if parts.is_empty() {
        return Err(wrong("a message has `text`, `data` or `parts`, and this has none".to_owned()));
    }
    Ok(Message {
        parts,
        context_id: arguments.context_id,
        task_id: arguments.task_id,
        reference_task_ids: arguments.reference_task_ids,
        metadata: arguments.metadata,
        ..Message::default()
    })
}

impl Tool for AgentTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn check(&self, _: &Caller, arguments: &Value) -> Result<()> {
        match self.sends {
            MessageForm::Any | MessageForm::Text(_) => written(arguments).map(drop),
            MessageForm::Data(_) => Ok(()),
        }
    }

    fn upstream(&self) -> Option<Upstream> {
        Some(Upstream { name: self.upstream.clone(), speaks: UpstreamProtocol::Other })
    }

    fn forget(&self, state: &Value) {
        if let Some(task) = CarriedState::read(state).task {
            self.agent.cancel_soon(task);
        }
    }

    fn cancel(&self, state: &Value) {
        if let Some(task) = CarriedState::read(state).task {
            self.agent.stop(task);
        }
    }

    fn can_be_asked_anew(&self, state: &Value) -> bool {
        // Without its state it would begin another task.
        CarriedState::read(state).task.is_none()
    }

    fn moved_on(&self, state: &Value) -> Option<BoxFuture<'static, bool>> {
        let (task, asked) = CarriedState::read(state).waiting()?;
        Some(Box::pin(has_moved(self.agent.clone(), task, asked)))
    }

    fn call<'a>(&'a self, _: &'a Caller, call: &'a Call) -> BoxFuture<'a, Result<ToolOutput>> {
        Box::pin(Invocation { agent: &self.agent, call }.run(|| self.message(call)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_become_a_message() {
        let message = written(&json!({"text": "hi", "data": {"n": 1}, "parts": [{"url": "u:x"}],
            "contextId": "c", "taskId": "t", "referenceTaskIds": ["r"], "metadata": {"k": 1}}))
        .unwrap();
        assert_eq!(message.parts.len(), 3);
        assert_eq!((message.words().as_str(), message.context_id.as_str()), ("hi", "c"));
        assert_eq!(message.parts[1].as_data(), Some(&json!({"n": 1})));
        for wrong in [json!({}), json!({"parts": [{}]}), json!({"parts": [{"text": 1}]})] {
            let error = written(&wrong).unwrap_err();
            assert_eq!(error.fault.name, "InputValidationError", "{wrong}");
        }
    }
}
