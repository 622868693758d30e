//! Every example fits its schema and its type, and every schema has the type's own keys.

use super::*;
use engine::catalog::schema::JsonSchemas;
use kernel::tool::schema::Schemas;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::sync::Arc;
use wire::{rest, seed001, seed002, seed004};

/// Reads an example as its type and writes it again.
type Again = fn(&Value) -> Value;

fn again<T: Serialize + DeserializeOwned>(example: &Value) -> Value {
    let read: T = serde_json::from_value(example.clone()).unwrap();
    serde_json::to_value(read).unwrap()
}

const TYPES: &[(&str, Again)] = &[
    ("Problem", again::<rest::Problem>),
    ("FaultyValue", again::<rest::FaultyValue>),
    ("Fault", again::<rest::Fault>),
    ("RunBody", again::<rest::RunBody>),
    ("Status", again::<rest::Status>),
    ("Run", again::<rest::Run>),
    ("Cost", again::<rest::Cost>),
    ("Session", again::<rest::Session>),
    ("Parked", again::<rest::Parked>),
    ("SessionPage", again::<rest::Page<rest::Session>>),
    ("HistoryEntry", again::<rest::HistoryEntry>),
    ("HistoryEntryPage", again::<rest::Page<rest::HistoryEntry>>),
    ("ContextAnswer", again::<rest::ContextAnswer>),
    ("ForkBody", again::<rest::ForkBody>),
    ("PruneBody", again::<rest::PruneBody>),
    ("PruneAnswer", again::<rest::PruneAnswer>),
    ("Health", again::<rest::Health>),
    ("BackupBody", again::<rest::BackupBody>),
    ("BackupAnswer", again::<rest::BackupAnswer>),
    ("Instance", again::<rest::Instance>),
    ("AskKind", again::<rest::AskKind>),
    ("AskStatus", again::<rest::AskStatus>),
    ("FixAction", again::<rest::FixAction>),
    ("Ask", again::<rest::Ask>),
    ("AskSession", again::<rest::AskSession>),
    ("AskedCall", again::<rest::AskedCall>),
    ("AskedQuestion", again::<rest::AskedQuestion>),
    ("Decision", again::<rest::Decision>),
    ("AskPage", again::<rest::Page<rest::Ask>>),
    ("ClarifyReply", again::<rest::ClarifyReply>),
    ("ApproveReply", again::<rest::ApproveReply>),
    ("CallDecision", again::<rest::CallDecision>),
    ("FillReply", again::<rest::FillReply>),
    ("AuthorizeReply", again::<rest::AuthorizeReply>),
    ("FixReply", again::<rest::FixReply>),
    ("Tool", again::<rest::Tool>),
    ("ToolPage", again::<rest::Page<rest::Tool>>),
    ("CallBody", again::<rest::CallBody>),
    ("CallAnswer", again::<rest::CallAnswer>),
    ("PlanSummary", again::<rest::PlanSummary>),
    ("PlanSummaryPage", again::<rest::Page<rest::PlanSummary>>),
    ("PlanAnswer", again::<rest::PlanAnswer>),
    ("PlanCheck", again::<rest::PlanCheck>),
    ("PlanMistake", again::<rest::PlanMistake>),
    ("AgentSummary", again::<rest::AgentSummary>),
    ("AgentSummaryPage", again::<rest::Page<rest::AgentSummary>>),
    ("AgentAnswer", again::<rest::AgentAnswer>),
    ("AgentDeleted", again::<seed002::AgentDeleted>),
    ("PipelineSummary", again::<rest::PipelineSummary>),
    ("PipelineHandler", again::<rest::PipelineHandler>),
    ("PipelineSummaryPage", again::<rest::Page<rest::PipelineSummary>>),
    ("PipelineAnswer", again::<rest::PipelineAnswer>),
    ("PipelineAddresses", again::<rest::PipelineAddresses>),
    ("PipelineStats", again::<rest::PipelineStats>),
    ("HandlerCount", again::<rest::HandlerCount>),
    ("ReasonCount", again::<rest::ReasonCount>),
    ("Upstream", again::<rest::Upstream>),
    ("UpstreamServer", again::<rest::UpstreamServer>),
    ("UpstreamPage", again::<rest::Page<rest::Upstream>>),
    ("UpstreamLogin", again::<rest::UpstreamLogin>),
    ("Provider", again::<rest::Provider>),
    ("ProviderOauth", again::<rest::ProviderOauth>),
    ("Sink", again::<rest::Sink>),
    ("SinkPage", again::<rest::Page<rest::Sink>>),
    ("Delivery", again::<rest::Delivery>),
    ("DeliveryStatus", again::<rest::DeliveryStatus>),
    ("DeliveryPage", again::<rest::Page<rest::Delivery>>),
    ("StreamEnd", again::<rest::StreamEnd>),
    ("FeedSnapshot", again::<rest::FeedSnapshot>),
    ("FeedEvent", again::<rest::FeedEvent>),
    ("JournalEvent", again::<rest::JournalEvent>),
    ("RunThread", again::<seed001::RunThread>),
    ("ResumeThread", again::<seed001::ResumeThread>),
    ("ClarificationResponse", again::<seed001::ClarificationResponse>),
    ("Approval", again::<seed001::Approval>),
    ("ElicitationResponse", again::<seed001::ElicitationResponse>),
    ("ThreadAnswer", again::<seed001::ThreadAnswer>),
    ("ThreadStatus", again::<seed001::ThreadStatus>),
    ("PendingAction", again::<seed001::PendingAction>),
    ("ClarificationInfo", again::<seed001::ClarificationInfo>),
    ("ToolCallInfo", again::<seed001::ToolCallInfo>),
    ("ThreadError", again::<seed001::ThreadError>),
    ("RequestState", again::<seed001::RequestState>),
    ("ApprovalOutcome", again::<seed001::ApprovalOutcome>),
    ("RejectedToolFeedback", again::<seed001::RejectedToolFeedback>),
    ("ThreadDelta", again::<seed001::ThreadDelta>),
    ("ThreadRestart", again::<seed001::ThreadRestart>),
    ("ToolResult", again::<seed001::ToolResult>),
    ("SeedError", again::<seed004::SeedError>),
    ("CreateSession", again::<seed004::CreateSession>),
    ("SessionCore", again::<seed004::SessionCore>),
    ("SessionView", again::<seed004::SessionView>),
    ("SeedHistoryEntry", again::<seed004::HistoryEntry>),
    ("ExecutePlan", again::<seed004::ExecutePlan>),
    ("ResumeBody", again::<seed004::ResumeBody>),
    ("SessionStatus", again::<seed004::SessionStatus>),
    ("Capability", again::<seed004::Capability>),
    ("Capabilities", again::<seed004::Capabilities>),
    ("Discover", again::<seed004::Discover>),
    ("Register", again::<seed004::Register>),
    ("Registered", again::<seed004::Registered>),
];

/// Made of others that have examples, or of a type that is only described.
const UNREAD: &[&str] = &[
    "RunAnswer",
    "ReplyAnswer",
    "PendingCall",
    "AskReply",
    "Plan",
    "Agent",
    "CaseBody",
    "CaseAnswer",
    "PendingCase",
];

fn all() -> Map<String, Value> {
    let document = crate::routes::document();
    document["components"]["schemas"].as_object().unwrap().clone()
}

fn examples(schema: &Value) -> Vec<Value> {
    schema["examples"].as_array().cloned().unwrap_or_default()
}

/// The names of a schema's members, those of all its variants.
fn members(schema: &Value) -> BTreeSet<String> {
    let variants = schema["oneOf"].as_array().into_iter().flatten();
    let objects = variants.chain([schema]).filter_map(|each| each["properties"].as_object());
    objects.flat_map(Map::keys).cloned().collect()
}

#[test]
fn every_example_fits_its_schema() {
    let (schemas, all) = (JsonSchemas::default(), all());
    for (name, schema) in &all {
        let whole = Arc::new(json!({
            "$ref": format!("#/components/schemas/{name}"),
            "components": {"schemas": all}
        }));
        schemas.compile(&whole).unwrap();
        for example in examples(schema) {
            let misfits = schemas.check(&whole, &example).err();
            assert_eq!(misfits, None, "{name}: {example}");
        }
    }
}

#[test]
fn every_example_is_a_value_of_its_type() {
    let schemas = all();
    for (name, again) in TYPES {
        let examples = examples(&schemas[*name]);
        assert!(!examples.is_empty(), "`{name}` has no example");
        for example in &examples {
            assert_eq!(&again(example), example, "{name}");
        }
        // Each key is in an example, and what is in an example is in the type.
        let keys = |value: &Value| -> BTreeSet<String> {
            value.as_object().into_iter().flat_map(|map| map.keys().cloned()).collect()
        };
        let shown: BTreeSet<String> = examples.iter().flat_map(keys).collect();
        assert_eq!(members(&schemas[*name]), shown, "{name}");
    }
}

#[test]
fn every_schema_is_held_against_its_type() {
    let typed = TYPES.iter().map(|(name, _)| *name).chain(UNREAD.iter().copied());
    let typed: BTreeSet<String> = typed.map(str::to_owned).collect();
    let known: BTreeSet<String> = all().keys().cloned().collect();
    assert_eq!(known, typed);
    let examples: Map<String, Value> = serde_json::from_str(EXAMPLES).unwrap();
    let shown: BTreeSet<String> = examples.keys().cloned().collect();
    assert_eq!(shown.difference(&known).next(), None, "an example of nothing");
}

#[test]
fn a_schema_has_nothing_of_rust() {
    let schemas = all();
    let text = |about: &str| json!({"type": "string", "description": about});
    // Optional members refuse null, and an enum is one list whose variants have no descriptions.
    assert_eq!(
        schemas["ClarifyReply"]["properties"]["action"],
        json!({"type": "string", "enum": ["accept", "decline"],
            "description": "`decline` to give no answer; `accept` is understood."})
    );
    assert_eq!(
        schemas["Ask"]["properties"]["fault"],
        json!({"$ref": "#/components/schemas/Fault", "description": "Fix: what went wrong."})
    );
    assert_eq!(schemas["Ask"]["properties"]["url"], text("Authorize: the URL to open."));
    assert_eq!(schemas["AskKind"]["enum"][4], "fix");
    // What is always written is required, and null where it means nothing.
    let page = &schemas["AskPage"];
    assert_eq!(page["required"], json!(["items", "nextCursor"]));
    assert_eq!(page["properties"]["nextCursor"]["type"], json!(["string", "null"]));
    assert_eq!(page["properties"]["nextCursor"].get("default"), None);
    // Of a body that is taken only what has no default is required.
    assert_eq!(schemas["Provider"]["required"], json!(["baseUrl"]));
    assert_eq!(schemas["Provider"]["additionalProperties"], false);
    let count = json!({"type": "integer", "minimum": 1, "description": "Turns of models."});
    assert_eq!(schemas["Cost"]["properties"]["turns"], count);
}
