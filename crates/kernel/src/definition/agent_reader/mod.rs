//! Agents as people and programs write them, YAML or JSON. Every mistake is reported with its
//! place. A file has our keys and no others; what comes as a value may have more, those of a
//! program that keeps agents elsewhere, and they stay in its source.

mod limits;

use crate::definition::agent::{Agent, AgentLimits, PromptRole, PromptStep, ToolType};
use crate::definition::pipeline::PIPELINES;
use crate::definition::plan::mistake::{CheckResult, Mistake, checked, meant};
use crate::definition::plan::read::{Origin, Reader, Spot, UNKNOWN_KEYS_MAX, listed, quoted};
use crate::definition::plan::source::{Node, NodeKind, Subject, child_pointer};
use crate::expression::template::{fill, names};
use crate::limits::Limits;
use crate::tool::rules::Pattern;
use crate::values::canonical;
use crate::values::ids::{AgentName, ContentHash};
use crate::values::names::is_plain_name;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

pub use limits::micros_of_dollars;

/// An agent with warnings, or all that is wrong with it.
pub type ReadAgent = CheckResult<Agent>;

/// Every key and its other spellings, which are the same key.
const KEYS: &[(&str, &[&str])] = &[
    ("refName", &["ref_name"]),
    ("name", &[]),
    ("description", &[]),
    ("mode", &[]),
    ("llmConfigRef", &["llm_config_ref"]),
    ("routerLlmConfigRef", &["router_llm_config_ref"]),
    ("router", &[]),
    ("promptSteps", &["prompt_steps", CONTEXT]),
    ("enabledTools", &["enabled_tools"]),
    ("tool_types", &["toolTypes"]),
    ("approve", &[]),
    ("limits", &[]),
    ("zone", &[]),
    ("$schema", &[]),
];

/// Where agents are kept elsewhere, this is the word for prompt steps. Its writer reads it
/// again.
const CONTEXT: &str = "context";

/// What the texts of a prompt may name.
pub const PLACEHOLDERS: &[&str] = &["now", "zone", "agent", "tools"];

const ROLES: &[(&str, PromptRole)] = &[
    ("system", PromptRole::System),
    ("user", PromptRole::User),
    ("assistant", PromptRole::Assistant),
];

/// How its model speaks; whether that is in commands.
const MODES: &[(&str, bool)] = &[("talk", false), ("commands", true)];

/// How mistakes of an agent's text are reported.
const AGENT: Subject = Subject {
    noun: "agent",
    if_empty: "an agent has at least `refName` and `llmConfigRef`",
    if_large: "say it in fewer words",
    if_deep: "an agent is not that deep",
};

/// Reads an agent's file: its text, and how mistakes name it. An unknown key is a mistake.
pub fn read_text(text: &str, file: &str, limits: &Limits) -> ReadAgent {
    let origin = Origin { file: Some(file.to_owned()), default_id: None };
    let node = Node::parse_as(&AGENT, text, limits).map_err(|found| origin.all_filed(found))?;
    read(&node, &origin, limits, UnknownNames::Refused)
}

/// Reads an agent that comes as a value: in a request, or out of the store. Keys that are not ours
/// are kept, unless they look like ours misspelt.
pub fn read_value(value: &Value) -> ReadAgent {
    read_given(value, UnknownNames::Kept)
}

/// Reads an agent that a run pins, or will: one of a pipeline may be among them, whose name no
/// other agent can have.
pub fn read_pinned(value: &Value) -> ReadAgent {
    read_given(value, UnknownNames::Pinned)
}

fn read_given(value: &Value, strangers: UnknownNames) -> ReadAgent {
    let limits = Limits::default();
    match AGENT.refuses(value, &limits) {
        Some(mistake) => Err(vec![mistake]),
        None => read(&Node::from_value(value), &Origin::default(), &limits, strangers),
    }
}

/// What happens to keys, and to names in prompts, that are not ours.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UnknownNames {
    Refused,
    Kept,
    /// The same, and its name may be a pipeline's.
    Pinned,
}

fn read(node: &Node, origin: &Origin, limits: &Limits, strangers: UnknownNames) -> ReadAgent {
    let mut form = Form { reader: Reader::new(origin, limits), strangers };
    let agent = form.agent(&Spot::root(node));
    checked(agent, form.reader.mistakes)
}

/// Reads the parts of an agent. A function that gives nothing for a value that is there has noted
/// a mistake.
struct Form<'a> {
    reader: Reader<'a>,
    strangers: UnknownNames,
}

impl Form<'_> {
    fn agent(&mut self, spot: &Spot<'_>) -> Option<Agent> {
        if !self.keys(spot) {
            return None;
        }
        let name = self.ref_name(spot);
        let title = self.short_text(spot, "name");
        let description = self.short_text(spot, "description").unwrap_or_default();
        let commands = self.reader.one_of(spot, &["mode"], MODES).unwrap_or(false);
        let model = self.need(spot, "llmConfigRef").and_then(|field| self.model(&field));
        let router = self.field(spot, "routerLlmConfigRef");
        let router_model = router.as_ref().and_then(|field| self.model(field));
        let prompt = self.prompt(spot);
        let enabled = self.enabled(spot);
        let types = self.types(spot);
        let approve = self.field(spot, "approve").map(|field| self.patterns(&field));
        let routed = self.routed(spot, !types.is_empty(), router.as_ref());
        let defaults = if commands { AgentLimits::of_commands() } else { AgentLimits::default() };
        let limits = self.limits(spot, defaults);
        let zone = self.zone(spot);
        let name = name?;
        let source = source(spot.node);
        Some(Agent {
            title: title.filter(|title| !title.is_empty()).unwrap_or_else(|| name.to_string()),
            name,
            description,
            model: model?,
            router_model,
            commands,
            routed,
            prompt,
            enabled,
            types,
            approve: approve.unwrap_or_default(),
            limits,
            zone,
            hash: ContentHash::of(canonical::sorted(&source).to_string().as_bytes()),
            source: Arc::new(source),
        })
    }

    /// Whether it is a map; keys that it should not have are noted.
    fn keys(&mut self, spot: &Spot<'_>) -> bool {
        let known: Vec<&str> = KEYS.iter().map(|(key, _)| *key).collect();
        let spellings =
            || KEYS.iter().flat_map(|(key, others)| std::iter::once(key).chain(*others)).copied();
        let NodeKind::Map(entries) = &spot.node.kind else {
            self.reader.wrong(spot, "a map for an agent");
            return false;
        };
        let is_unknown =
            |name: &str| spellings().all(|known| known != name) && !name.starts_with("x-");
        let unknown = entries.iter().filter(|(key, _)| is_unknown(&key.text));
        for (key, _) in unknown.take(UNKNOWN_KEYS_MAX) {
            let name = key.text.as_str();
            let what = format!("unknown key `{name}` in an agent");
            match (meant(name, spellings()), self.strangers) {
                (Some(near), _) => {
                    self.reader.note_key(spot, key, Mistake::error(what).hint(near));
                }
                (None, UnknownNames::Refused) => {
                    let hint = format!("the keys are {}", quoted(&known));
                    self.reader.note_key(spot, key, Mistake::error(what).hint(hint));
                }
                (None, UnknownNames::Kept | UnknownNames::Pinned) => {}
            }
        }
        true
    }

    /// A field under any of its spellings that is there and not null.
    fn field<'n>(&mut self, spot: &Spot<'n>, key: &str) -> Option<Spot<'n>> {
        let (key, others) = KEYS.iter().find(|(known, _)| *known == key)?;
        let spellings = || std::iter::once(key).chain(*others).copied();
        let mut there = spellings().filter_map(|spelt| Some((spelt, spot.field(spelt)?)));
        let (first, field) = there.next()?;
        if let Some((second, twin)) = there.next() {
            let what = format!("{} are the same key", listed(&[first, second], "and"));
            self.reader.note(&twin, Mistake::error(what).hint("keep one of the two"));
        }
        Some(field)
    }

    /// The same for a field that is required.
    fn need<'n>(&mut self, spot: &Spot<'n>, key: &str) -> Option<Spot<'n>> {
        let field = self.field(spot, key);
        if field.is_none() {
            let mistake = Mistake::error(format!("`{key}` is missing"));
            self.reader.note(spot, mistake.hint(format!("add `{key}: ..` here")));
        }
        field
    }

    fn ref_name(&mut self, spot: &Spot<'_>) -> Option<AgentName> {
        let field = self.need(spot, "refName")?;
        let text = self.reader.name(&field)?;
        let own = match self.strangers {
            UnknownNames::Pinned => text.strip_prefix(PIPELINES).unwrap_or(text),
            UnknownNames::Refused | UnknownNames::Kept => text,
        };
        if is_plain_name(own) {
            return Some(AgentName::from(text));
        }
        let mistake = Mistake::error(format!("`{text}` cannot be the name of an agent"));
        let hint = "a `refName` has letters, digits, `_`, `.` and `-`; `name` may be any text";
        self.reader.note(&field, mistake.hint(hint));
        None
    }

    fn short_text(&mut self, spot: &Spot<'_>, key: &str) -> Option<String> {
        let field = self.field(spot, key)?;
        self.reader.text(&field).map(|text| text.trim().to_owned())
    }

    fn model(&mut self, spot: &Spot<'_>) -> Option<Arc<str>> {
        self.reader.name(spot).map(Arc::from)
    }

    fn prompt(&mut self, spot: &Spot<'_>) -> Vec<PromptStep> {
        let list = self.field(spot, "promptSteps").and_then(|field| self.reader.list(&field));
        let mut steps: Vec<(u64, PromptStep)> = Vec::new();
        for (index, item) in list.unwrap_or_default().iter().enumerate() {
            steps.extend(self.prompt_step(item, index as u64 + 1));
        }
        // What has the same number, or none, stays in the order of the text.
        steps.sort_by_key(|(order, _)| *order);
        steps.into_iter().map(|(_, step)| step).collect()
    }

    fn prompt_step(&mut self, spot: &Spot<'_>, index: u64) -> Option<(u64, PromptStep)> {
        if !self.reader.object(spot, "a prompt step", &["order", "role", "content"]) {
            return None;
        }
        let order = match spot.field("order") {
            Some(field) => self.order(&field)?,
            None => index,
        };
        let role = self.reader.one_of(spot, &["role"], ROLES).unwrap_or_default();
        let field = self.reader.need(spot, "content")?;
        let content = self.reader.text(&field)?;
        self.placeholders(&field, content);
        Some((order, PromptStep { role, content: content.to_owned() }))
    }

    fn order(&mut self, spot: &Spot<'_>) -> Option<u64> {
        let order = spot.node.whole();
        if order.is_none() {
            let mistake = Mistake::error("`order` must be a whole number");
            self.reader.note(spot, mistake.hint("steps count from 1; without it they are as here"));
        }
        order
    }

    /// A prompt is filled at every turn; what cannot be filled is reported now. A name that is not
    /// ours may be another program's to fill: it is kept where such keys are.
    fn placeholders(&mut self, spot: &Spot<'_>, content: &str) {
        let known: Vec<String> =
            PLACEHOLDERS.iter().map(|name| format!("{{{{ {name} }}}}")).collect();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let hint = format!("a prompt may use {}", quoted(&known));
        let used = names(content).unwrap_or_default();
        let strange = used.iter().filter(|name| !PLACEHOLDERS.contains(&name.as_str()));
        for name in strange.take(UNKNOWN_KEYS_MAX) {
            let what = format!("`{{{{ {name} }}}}` is not known in a prompt");
            let mistake = match (meant(name, PLACEHOLDERS.iter().copied()), self.strangers) {
                (Some(near), _) => Mistake::error(what).hint(near),
                (None, UnknownNames::Refused) => Mistake::error(what).hint(hint.as_str()),
                (None, UnknownNames::Kept | UnknownNames::Pinned) => {
                    let what = format!("{what}: models read it as it is");
                    self.reader.note(spot, Mistake::warning(what).hint(hint.as_str()));
                    continue;
                }
            };
            self.reader.note(spot, mistake);
            return;
        }
        let names = PLACEHOLDERS.iter().map(|name| (*name).to_owned()).chain(used);
        let sample = names.map(|name| (name, json!("x")));
        if let Err(why) = fill(content, Map::from_iter(sample)) {
            let what = format!("the text cannot be filled: {why}");
            let mistake = match self.strangers {
                // A run's agent that was accepted once: its turn fails where a person can see it.
                UnknownNames::Pinned => Mistake::warning(what),
                UnknownNames::Refused | UnknownNames::Kept => Mistake::error(what),
            };
            self.reader.note(spot, mistake.hint(hint));
        }
    }

    fn enabled(&mut self, spot: &Spot<'_>) -> Option<Vec<Pattern>> {
        let field = self.field(spot, "enabledTools")?;
        let before = self.reader.mistakes.len();
        let patterns = self.patterns(&field);
        if patterns.is_empty() && self.reader.mistakes.len() == before {
            let mistake = Mistake::warning("the agent sees no tools: the list is empty");
            self.reader.note(&field, mistake.hint("leave `enabledTools` out, or write `[\"*\"]`"));
        }
        Some(patterns)
    }

    fn patterns(&mut self, spot: &Spot<'_>) -> Vec<Pattern> {
        let mut patterns = Vec::new();
        for item in self.reader.list(spot).unwrap_or_default() {
            let Some(text) = self.reader.text(&item) else { continue };
            match Pattern::new(text) {
                Ok(pattern) => patterns.push(pattern),
                Err(bad) => {
                    let mistake = Mistake::error(bad.to_string());
                    let hint = "write a tool's name, or a part of it and `*`: `calendar.*`";
                    self.reader.note(&item, mistake.hint(hint));
                }
            }
        }
        patterns
    }

    fn types(&mut self, spot: &Spot<'_>) -> BTreeMap<String, ToolType> {
        let mut types = BTreeMap::new();
        let Some(field) = self.field(spot, "tool_types") else { return types };
        let NodeKind::Map(entries) = &field.node.kind else {
            self.reader.wrong(&field, "a map of tool types");
            return types;
        };
        for (key, node) in entries {
            let pointer = child_pointer(&field.pointer, &key.text);
            if key.text.is_empty() || key.text.chars().any(char::is_control) {
                let mistake = Mistake::error("this text cannot name a type of tools");
                let hint = "a type is a word such as `calendar`";
                self.reader.note_key(&field, key, mistake.hint(hint));
                continue;
            }
            if let Some(kind) = self.tool_type(&Spot { node, pointer }) {
                types.insert(key.text.clone(), kind);
            }
        }
        types
    }

    /// A list of tools, or `{description, tools}`.
    fn tool_type(&mut self, spot: &Spot<'_>) -> Option<ToolType> {
        let (description, list) = match &spot.node.kind {
            NodeKind::List(_) => {
                (String::new(), Spot { node: spot.node, pointer: spot.pointer.clone() })
            }
            NodeKind::Map(_) => {
                self.reader.object(spot, "a tool type", &["description", "tools"]);
                let field = spot.field("description");
                let description = field.and_then(|field| self.reader.text(&field));
                (
                    description.unwrap_or_default().trim().to_owned(),
                    self.reader.need(spot, "tools")?,
                )
            }
            NodeKind::Null | NodeKind::Bool(_) | NodeKind::Number(_) | NodeKind::Text(_) => {
                self.reader.wrong(spot, "a list of tools, or a map with `description` and `tools`");
                return None;
            }
        };
        let before = self.reader.mistakes.len();
        let tools = self.patterns(&list);
        if tools.is_empty() && self.reader.mistakes.len() == before {
            let mistake = Mistake::warning("this type has no tools");
            self.reader.note(&list, mistake.hint("name at least one, or leave the type out"));
        }
        Some(ToolType { description, tools })
    }

    /// Whether requests are routed first: where there are types, unless told otherwise. `model` is
    /// the router's own, if it has one.
    fn routed(&mut self, spot: &Spot<'_>, has_types: bool, model: Option<&Spot<'_>>) -> bool {
        let field = self.field(spot, "router");
        let said = field.as_ref().and_then(|field| self.reader.flag(field));
        if let (Some(field), Some(true), false) = (&field, said, has_types) {
            let what = "a router chooses among types of tools, and there are none";
            let hint = "add `tool_types`, or leave `router` out";
            self.reader.note(field, Mistake::error(what).hint(hint));
        }
        let routed = said.unwrap_or(has_types);
        if let (Some(field), false) = (model, routed) {
            let what = "`routerLlmConfigRef` has no effect: nothing is routed";
            let hint = "add `tool_types`, or leave it out";
            self.reader.note(field, Mistake::warning(what).hint(hint));
        }
        routed
    }

    /// An IANA name by its looks; only a reader of the tables knows which there are.
    fn zone(&mut self, spot: &Spot<'_>) -> Option<String> {
        let field = self.field(spot, "zone")?;
        let text = self.reader.text(&field)?;
        let fits = |c: char| c.is_ascii_alphanumeric() || "_+-/".contains(c);
        if !text.is_empty() && text.chars().all(fits) {
            return Some(text.to_owned());
        }
        let mistake = Mistake::error(format!("`{text}` is not the name of a time zone"));
        self.reader.note(&field, mistake.hint("write one such as `Europe/Berlin` or `UTC`"));
        None
    }
}

/// The agent as JSON, its keys as we spell them.
fn source(node: &Node) -> Value {
    let spelt = |name: String| {
        let is_same = |(_, others): &&(&str, &[&str])| others.contains(&name.as_str());
        match KEYS.iter().find(is_same).filter(|_| name != CONTEXT) {
            Some((key, _)) => (*key).to_owned(),
            None => name,
        }
    };
    match node.to_value() {
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (spelt(name), value)).collect()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests;
