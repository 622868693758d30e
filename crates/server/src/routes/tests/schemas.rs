//! Every example fits its schema and its type, and every schema has the type's own keys.

use edge::openapi::EXAMPLES;
use engine::catalog::schema::JsonSchemas;
use kernel::tool::schema::Schemas;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use wire::agent_config;
use wire::conversations;
use wire::permissions;
use wire::plan_sessions;
use wire::query_gateway;
use wire::rest;

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
    ("HeldAsk", again::<rest::HeldAsk>),
    ("TriedRule", again::<rest::TriedRule>),
    ("Proposal", again::<rest::Proposal>),
    ("ProposedChange", again::<rest::ProposedChange>),
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
    ("DraftBody", again::<rest::DraftBody>),
    ("DraftAnswer", again::<rest::DraftAnswer>),
    ("PlanDraft", again::<rest::PlanDraft>),
    ("DraftWrite", again::<rest::DraftWrite>),
    ("AgentSummary", again::<rest::AgentSummary>),
    ("AgentSummaryPage", again::<rest::Page<rest::AgentSummary>>),
    ("AgentAnswer", again::<rest::AgentAnswer>),
    ("AgentDeleted", again::<agent_config::AgentDeleted>),
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
    ("UpstreamAgent", again::<rest::UpstreamAgent>),
    ("UpstreamBreaker", again::<rest::UpstreamBreaker>),
    ("UpstreamPage", again::<rest::Page<rest::Upstream>>),
    ("UpstreamLogin", again::<rest::UpstreamLogin>),
    ("OwnLogin", again::<rest::OwnLogin>),
    ("LoginProof", again::<rest::LoginProof>),
    ("Provider", again::<rest::Provider>),
    ("ProviderOauth", again::<rest::ProviderOauth>),
    ("Sink", again::<rest::Sink>),
    ("SinkPage", again::<rest::Page<rest::Sink>>),
    ("Delivery", again::<rest::Delivery>),
    ("DeliveryStatus", again::<rest::DeliveryStatus>),
    ("DeliveryPage", again::<rest::Page<rest::Delivery>>),
    ("Webhook", again::<rest::Webhook>),
    ("WebhookPage", again::<rest::Page<rest::Webhook>>),
    ("WhoAmI", again::<rest::WhoAmI>),
    ("OwnKey", again::<rest::OwnKey>),
    ("KeyBody", again::<rest::KeyBody>),
    ("RotateBody", again::<rest::RotateBody>),
    ("ApiKey", again::<rest::ApiKey>),
    ("ApiKeyPage", again::<rest::Page<rest::ApiKey>>),
    ("IssuedKey", again::<rest::IssuedKey>),
    ("PrincipalBody", again::<rest::PrincipalBody>),
    ("DataDomain", again::<rest::DataDomain>),
    ("Principal", again::<rest::Principal>),
    ("PrincipalPage", again::<rest::Page<rest::Principal>>),
    ("RealmBody", again::<rest::RealmBody>),
    ("Realm", again::<rest::Realm>),
    ("RealmPage", again::<rest::Page<rest::Realm>>),
    ("Policy", again::<rest::Policy>),
    ("Policies", again::<rest::Policies>),
    ("PermissionQuery", again::<permissions::PermissionQuery>),
    ("PermissionCheck", again::<permissions::PermissionCheck>),
    ("PermissionLandscape", again::<permissions::PermissionLandscape>),
    ("PermissionDecision", again::<permissions::PermissionDecision>),
    ("ScopedConstraint", again::<permissions::ScopedConstraint>),
    ("AuditEntry", again::<rest::AuditEntry>),
    ("AuditEntryPage", again::<rest::Page<rest::AuditEntry>>),
    ("AuditHead", again::<rest::AuditHead>),
    ("AuditCheck", again::<rest::AuditCheck>),
    ("TokenForm", again::<rest::TokenForm>),
    ("TokenAnswer", again::<rest::TokenAnswer>),
    ("TokenError", again::<rest::TokenError>),
    ("ResourceMetadata", again::<rest::ResourceMetadata>),
    ("AuthorizationServerMetadata", again::<rest::AuthorizationServerMetadata>),
    ("StreamEnd", again::<rest::StreamEnd>),
    ("FeedSnapshot", again::<rest::FeedSnapshot>),
    ("FeedEvent", again::<rest::FeedEvent>),
    ("JournalEvent", again::<rest::JournalEvent>),
    ("RunThread", again::<conversations::RunThread>),
    ("ResumeThread", again::<conversations::ResumeThread>),
    ("ClarificationResponse", again::<conversations::ClarificationResponse>),
    ("Approval", again::<conversations::Approval>),
    ("ElicitationResponse", again::<conversations::ElicitationResponse>),
    ("ThreadAnswer", again::<conversations::ThreadAnswer>),
    ("ThreadStatus", again::<conversations::ThreadStatus>),
    ("PendingAction", again::<conversations::PendingAction>),
    ("ClarificationInfo", again::<conversations::ClarificationInfo>),
    ("ToolCallInfo", again::<conversations::ToolCallInfo>),
    ("ThreadError", again::<conversations::ThreadError>),
    ("RequestState", again::<conversations::RequestState>),
    ("ApprovalOutcome", again::<conversations::ApprovalOutcome>),
    ("RejectedToolFeedback", again::<conversations::RejectedToolFeedback>),
    ("ThreadDelta", again::<conversations::ThreadDelta>),
    ("ThreadRestart", again::<conversations::ThreadRestart>),
    ("ToolResult", again::<conversations::ToolResult>),
    ("PlainError", again::<plan_sessions::PlainError>),
    ("CreateSession", again::<plan_sessions::CreateSession>),
    ("SessionCore", again::<plan_sessions::SessionCore>),
    ("SessionView", again::<plan_sessions::SessionView>),
    ("PlanHistoryEntry", again::<plan_sessions::HistoryEntry>),
    ("ExecutePlan", again::<plan_sessions::ExecutePlan>),
    ("ResumeBody", again::<plan_sessions::ResumeBody>),
    ("SessionStatus", again::<plan_sessions::SessionStatus>),
    ("Capability", again::<plan_sessions::Capability>),
    ("Capabilities", again::<plan_sessions::Capabilities>),
    ("Discover", again::<plan_sessions::Discover>),
    ("Register", again::<plan_sessions::Register>),
    ("Registered", again::<plan_sessions::Registered>),
    ("NamedError", again::<query_gateway::NamedError>),
    ("ExecuteBody", again::<query_gateway::ExecuteBody>),
    ("AgentTools", again::<query_gateway::AgentTools>),
    ("AgentTool", again::<query_gateway::AgentTool>),
    ("AgentToolParameter", again::<query_gateway::AgentToolParameter>),
    ("RecordType", again::<rest::RecordType>),
    ("RecordTypePage", again::<rest::Page<rest::RecordType>>),
    ("RecordPage", again::<rest::RecordPage>),
    ("ProviderSummary", again::<rest::ProviderSummary>),
    ("ProviderSummaryPage", again::<rest::Page<rest::ProviderSummary>>),
];

/// Made of others that have examples, or of a type that is only described.
const UNREAD: &[&str] = &[
    "RunAnswer", "ReplyAnswer", "PendingCall", "AskReply", "Plan", "Agent", "CaseBody",
    "CaseAnswer", "PendingCase", "Record", "RecordArguments",
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
    let schemas = JsonSchemas::default();
    let all = all();
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
    let mut differ = Vec::new();
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
        if members(&schemas[*name]) != shown {
            differ.push((*name, members(&schemas[*name]), shown));
        }
    }
    assert!(differ.is_empty(), "types with their members and those of their examples: {differ:?}");
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
