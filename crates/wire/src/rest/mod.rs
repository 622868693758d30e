//! Bodies of `/api/v1`: camelCase, RFC 3339 times, ids as text. A request with an unknown key is
//! refused; an answer may grow, so clients read past what they do not know.

mod problem;
mod ask;
mod run;
mod catalog;
mod draft;
mod agent;
mod pipeline;
mod upstream;
mod sink;
mod webhook;
mod stream;
mod backup;
mod identity;
mod principal;
mod realm;
mod policy;
mod audit;
mod record;

pub use agent::{Agent, AgentAnswer, AgentSummary};
pub use ask::{
    ApproveReply, Ask, AskFollows, AskKind, AskNext, AskReply, AskSession, AskStatus, AskWhy,
    AskedCall, AskedQuestion, AuthorizeAction, AuthorizeReply, CallDecision, ClarifyReply,
    Decision, FillAction, FillReply, FixAction, FixReply, HeldAsk, Proposal, ProposedChange,
    TriedRule, YourAnswer,
};
pub use audit::{AuditCheck, AuditEntry, AuditHead, AuditObject, AuditVerdict};
pub use backup::{BackupAnswer, BackupBody};
pub use catalog::{
    CallAnswer, CallBody, PendingCall, Plan, PlanAnswer, PlanCheck, PlanMistake, PlanSummary, Tool,
};
pub use draft::{DraftAnswer, DraftBody, DraftWrite, PlanDraft};
pub use identity::{
    AccessMode, ApiKey, AuthorizationServerMetadata, IssuedKey, KeyBody, KeyStatus, OwnKey,
    ResourceMetadata, RotateBody, TokenAnswer, TokenError, TokenForm, WhoAmI,
};
pub use pipeline::{
    CaseBody, HandlerCount, PipelineAddresses, PipelineAnswer, PipelineHandler, PipelineStats,
    PipelineSummary, ReasonCount,
};
pub use policy::{Policies, Policy};
pub use principal::{DataDomain, Principal, PrincipalBody, PrincipalKind, PrincipalOrigin};
pub use problem::{Fault, FaultyValue, PROBLEM_TYPE, Problem};
pub use realm::{Realm, RealmBody, RealmOrigin};
pub use record::{Record, RecordPage, RecordType};
pub use run::{
    ContextAnswer, Cost, ForkBody, Health, HistoryEntry, Instance, Page, Parked, PruneAnswer,
    PruneBody, ReplyAnswer, Run, RunAnswer, RunBody, Session, Status,
};
pub use sink::{Delivery, DeliveryStatus, Sink, SinkStatus};
pub use stream::{FeedEvent, FeedSnapshot, JournalEvent, StreamEnd};
pub use upstream::{
    LoginProof, OwnLogin, Provider, ProviderOauth, ProviderSummary, Upstream, UpstreamAgent,
    UpstreamBreaker, UpstreamLogin, UpstreamServer,
};
pub use webhook::Webhook;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_problem_keeps_unknown_members() {
        let told = json!({
            "type": "urn:waypost:problem:ask_decided", "title": "Conflict", "status": 409,
            "detail": "it is decided", "code": "ask_decided", "traceId": "0f",
            "decision": {"by": "ann"},
        });
        let problem: Problem = serde_json::from_value(told.clone()).unwrap();
        assert_eq!(problem.more["decision"], json!({"by": "ann"}));
        assert_eq!(serde_json::to_value(problem).unwrap(), told);
    }

    #[test]
    fn a_request_with_an_unknown_key_is_refused() {
        let body = json!({"planId": "a", "inputs": {}});
        let error = serde_json::from_value::<RunBody>(body).unwrap_err().to_string();
        assert!(error.starts_with("unknown field `inputs`"), "{error}");
    }

    #[test]
    fn names_are_the_names_in_json() {
        for kind in AskKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), json!(kind.name()));
        }
        for status in [Status::Running, Status::Stuck, Status::Cancelled] {
            assert_eq!(serde_json::to_value(status).unwrap(), json!(status.name()));
        }
        for status in DeliveryStatus::ALL {
            assert_eq!(serde_json::to_value(status).unwrap(), json!(status.name()));
        }
    }
}
