//! The schema that policies are validated against: the acts as actions, the resources as entity
//! types, with what the contract of policy knows of each. A tool whose arguments a policy reads is
//! an action of its own, in the group `call`. All other tools share `call`, so that validation does
//! not grow with the catalog.

use crate::arguments::Record;
use crate::dependencies::{ARGUMENTS, DATA_DOMAIN, NOW, SOURCES};
use cedar_policy::Schema;
use kernel::contracts::policy::Resource;
use kernel::values::caller::Act;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Prefix of a tool's own action.
pub(crate) const TOOL_ACTION: &str = "call:";

/// The types of entities, as policies write them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Subject,
    Role,
    Realm,
    Tool,
    Plan,
    Agent,
    Pipeline,
    Session,
    Ask,
    Blob,
    Definition,
    RecordType,
    Upstream,
    Sink,
    Principal,
    Server,
    Action,
}

impl Kind {
    /// All of them, in the order of their numbers.
    pub(crate) const ALL: [Self; 17] = [
        Self::Subject,
        Self::Role,
        Self::Realm,
        Self::Tool,
        Self::Plan,
        Self::Agent,
        Self::Pipeline,
        Self::Session,
        Self::Ask,
        Self::Blob,
        Self::Definition,
        Self::RecordType,
        Self::Upstream,
        Self::Sink,
        Self::Principal,
        Self::Server,
        Self::Action,
    ];

    /// Those that can be read.
    const READABLE: [Self; 12] = [
        Self::Tool,
        Self::Plan,
        Self::Agent,
        Self::Pipeline,
        Self::Session,
        Self::Ask,
        Self::Blob,
        Self::Definition,
        Self::RecordType,
        Self::Upstream,
        Self::Sink,
        Self::Server,
    ];

    /// Its name in policies.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Subject => "Subject",
            Self::Role => "Role",
            Self::Realm => "Realm",
            Self::Tool => "Tool",
            Self::Plan => "Plan",
            Self::Agent => "Agent",
            Self::Pipeline => "Pipeline",
            Self::Session => "Session",
            Self::Ask => "Ask",
            Self::Blob => "Blob",
            Self::Definition => "Definition",
            Self::RecordType => "RecordType",
            Self::Upstream => "Upstream",
            Self::Sink => "Sink",
            Self::Principal => "Principal",
            Self::Server => "Server",
            Self::Action => "Action",
        }
    }

    /// Whether policies know one of this kind by name.
    pub(crate) fn is_named(self) -> bool {
        !matches!(self, Self::Session | Self::Ask | Self::Server)
    }

    /// Its attributes in the schema.
    fn attributes(self) -> Value {
        match self {
            Self::Subject => json!({
                "realm": entity(Self::Realm),
                "actor": some_entity(Self::Subject),
                DATA_DOMAIN: domain_facts(),
            }),
            Self::Tool => json!({
                "reach": {"type": "String"},
                "idempotent": {"type": "Boolean"},
                "tags": {"type": "Set", "element": {"type": "String"}},
            }),
            Self::Plan => json!({"inline": {"type": "Boolean"}}),
            Self::Session => session_facts(),
            Self::Ask => json!({
                "kind": {"type": "String"},
                "session": {"type": "Record", "attributes": session_facts()},
            }),
            Self::Definition => json!({
                "kind": {"type": "String"},
                "name": {"type": "String"},
                "definedBy": some_entity(Self::Subject),
            }),
            _ => json!({}),
        }
    }
}

/// The kind of a resource, and its name where policies know one. A plan that comes with a request
/// has none that could be trusted.
pub(crate) fn identity<'a>(resource: &Resource<'a>) -> (Kind, Cow<'a, str>) {
    let (kind, name) = match *resource {
        Resource::Tool(spec) => (Kind::Tool, spec.name.as_str()),
        Resource::Plan(id) => (Kind::Plan, id),
        Resource::InlinePlan => (Kind::Plan, ""),
        Resource::Agent(name) => (Kind::Agent, name),
        Resource::Pipeline(name) => (Kind::Pipeline, name),
        Resource::Session(_) => (Kind::Session, ""),
        Resource::Ask { .. } => (Kind::Ask, ""),
        Resource::Blob(hash) => (Kind::Blob, hash),
        Resource::Definition { kind, name, .. } => {
            return (Kind::Definition, Cow::Owned(format!("{kind}:{name}")));
        }
        Resource::RecordType(name) => (Kind::RecordType, name),
        Resource::Upstream(name) => (Kind::Upstream, name),
        Resource::Sink(name) => (Kind::Sink, name),
        Resource::Principal(id) => (Kind::Principal, id),
        Resource::Server => (Kind::Server, ""),
    };
    (kind, Cow::Borrowed(name))
}

/// The schema with these tools as actions of their own, without arguments, or with the typed
/// arguments of one: each is validated by itself, so that one whose schema changed concerns no
/// other.
pub(crate) fn schema(
    tools: &BTreeSet<String>,
    typed: Option<(&str, &Record)>,
) -> Result<Schema, String> {
    let resource = |kind: Kind| match kind {
        Kind::Subject => ("Subject", json!(["Role"])),
        Kind::Role | Kind::Realm | Kind::Action => (kind.name(), json!([])),
        _ => (kind.name(), json!(["Realm"])),
    };
    let mut entity_types = Map::new();
    for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Action) {
        let (name, parents) = resource(kind);
        let shape = json!({"type": "Record", "attributes": kind.attributes()});
        let mut written = json!({"memberOfTypes": parents, "shape": shape});
        if kind == Kind::Subject {
            // Properties have names and kinds that no schema knows: all are sets of texts.
            written["tags"] = json!({"type": "Set", "element": {"type": "String"}});
        }
        entity_types.insert(name.to_owned(), written);
    }
    let mut actions = Map::new();
    for act in Act::ALL {
        let action = json!({"appliesTo": applies_to(resources_of(*act), None)});
        actions.insert(act.name().to_owned(), action);
    }
    for tool in tools {
        let group = json!([{"id": Act::Call.name()}]);
        let action = match typed {
            None => json!({"memberOf": group, "appliesTo": applies_to(&[Kind::Tool], None)}),
            Some((name, record)) if name == tool => {
                let applies = applies_to(&[Kind::Tool], Some(record));
                json!({"memberOf": group, "appliesTo": applies})
            }
            // A policy may name several tools. Here it is asked only about the one.
            Some(_) => json!({"memberOf": group}),
        };
        actions.insert(format!("{TOOL_ACTION}{tool}"), action);
    }
    let whole = json!({"": {"entityTypes": entity_types, "actions": actions}});
    Schema::from_json_value(whole).map_err(|error| error.to_string())
}

fn applies_to(resources: &[Kind], arguments: Option<&Record>) -> Value {
    let names: Vec<&str> = resources.iter().map(|kind| kind.name()).collect();
    let mut context = json!({
        "trigger": {"type": "String"},
        NOW: {"type": "Extension", "name": "datetime"},
        SOURCES: {"type": "Set", "element": {"type": "String"}, "required": false},
    });
    if let (Some(record), Some(members)) = (arguments, context.as_object_mut()) {
        members.insert(ARGUMENTS.to_owned(), record.to_cedar());
    }
    json!({
        "principalTypes": [Kind::Subject.name()],
        "resourceTypes": names,
        "context": {"type": "Record", "attributes": context},
    })
}

/// Every act with the types of resources that it is done to, as policies write them.
pub fn applicable() -> impl Iterator<Item = (Act, &'static str)> {
    let kinds = |act: Act| resources_of(act).iter().map(move |kind| (act, kind.name()));
    Act::ALL.iter().copied().flat_map(kinds)
}

/// Resource kinds of an act. A policy about any other kind could never apply, and is reported.
fn resources_of(act: Act) -> &'static [Kind] {
    match act {
        Act::Run => &[Kind::Plan, Kind::Agent, Kind::Pipeline, Kind::Session],
        Act::Talk => &[Kind::Agent, Kind::Session],
        Act::Submit => &[Kind::Pipeline, Kind::Session],
        Act::Call => &[Kind::Tool],
        Act::Read => &Kind::READABLE,
        Act::Cancel | Act::Fork => &[Kind::Session],
        Act::Save => &[Kind::RecordType],
        Act::Remove => &[Kind::Session, Kind::RecordType],
        Act::Export => &[Kind::Session, Kind::Server],
        Act::Answer => &[Kind::Ask, Kind::Session],
        Act::Define => &[Kind::Definition, Kind::Plan, Kind::Agent, Kind::Pipeline],
        Act::LogIn => &[Kind::Upstream],
        Act::Operate => &[Kind::Server, Kind::Sink, Kind::Upstream, Kind::Session],
        Act::Administer => &[Kind::Server],
        Act::Impersonate => &[Kind::Principal],
    }
}

/// The data domain of a subject's principal, of which nothing needs to be known.
fn domain_facts() -> Value {
    let text = json!({"type": "String", "required": false});
    let attributes = json!({
        "orgRefName": text,
        "accountNum": text,
        "tenantId": text,
        "ownerId": text,
        "dataSegment": {"type": "Long", "required": false},
    });
    json!({"type": "Record", "attributes": attributes, "required": false})
}

fn session_facts() -> Value {
    json!({
        "owner": some_entity(Kind::Subject),
        "space": {"type": "String"},
        "plan": some_entity(Kind::Plan),
        "agent": some_entity(Kind::Agent),
        "pipeline": some_entity(Kind::Pipeline),
    })
}

fn entity(kind: Kind) -> Value {
    json!({"type": "Entity", "name": kind.name()})
}

/// The same where it is not always known.
fn some_entity(kind: Kind) -> Value {
    json!({"type": "Entity", "name": kind.name(), "required": false})
}
