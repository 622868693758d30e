//! What agents read of records, as resources: under `quantum://`, where clients of such servers
//! look for it, and under `waypost://`. They are there for callers that may list the types.

use edge::record_hints;
use edge::record_source::RecordSource;
use engine::refusal::Refusal;
use engine::{CallReport, Engine};
use kernel::contracts::shelf::ResourceSpec;
use kernel::tool::call::Caller;
use kernel::values::fault::Fault;
use kernel::values::ids::ToolName;
use serde_json::{Value, json};

/// Who may not call it reads none of these.
const ROOT_TYPES: &str = "query_rootTypes";
/// Without it there are no examples of records.
const FIND: &str = "query_find";

const SCHEMES: [&str; 2] = ["quantum://", "waypost://"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordResource {
    /// The types.
    Schema,
    QueryHints,
    PermissionHints,
}

impl RecordResource {
    const ALL: [Self; 3] = [Self::Schema, Self::QueryHints, Self::PermissionHints];

    fn name(self) -> &'static str {
        match self {
            RecordResource::Schema => "schema",
            RecordResource::QueryHints => "query-hints",
            RecordResource::PermissionHints => "permission-hints",
        }
    }

    fn about(self) -> &'static str {
        match self {
            RecordResource::Schema => "The types of records that you may read.",
            RecordResource::QueryHints => {
                "The query language in short, with queries that find something."
            }
            RecordResource::PermissionHints => "How to ask what you may do.",
        }
    }

    /// The resource of this URI.
    pub(super) fn read(uri: &str) -> Option<Self> {
        let name = SCHEMES.iter().find_map(|scheme| uri.strip_prefix(scheme))?;
        Self::ALL.into_iter().find(|resource| resource.name() == name)
    }

    /// All of them, as they are listed.
    pub(super) fn specs() -> Vec<ResourceSpec> {
        let of_scheme = |scheme: &'static str| Self::ALL.map(|resource| resource.spec(scheme));
        SCHEMES.into_iter().flat_map(of_scheme).collect()
    }

    fn spec(self, scheme: &str) -> ResourceSpec {
        ResourceSpec {
            uri: format!("{scheme}{}", self.name()),
            name: self.name().to_owned(),
            title: None,
            description: Some(self.about().to_owned()),
            mime_type: Some("application/json".to_owned()),
            bytes: None,
            listed: None,
        }
    }

    /// What it says to this caller.
    pub(super) async fn contents(
        self,
        engine: &Engine,
        source: &RecordSource,
        caller: &Caller,
    ) -> Result<Value, Fault> {
        match self {
            RecordResource::Schema => root_types(engine, caller).await,
            RecordResource::QueryHints => {
                let may_find = engine.tools().find(caller, FIND).is_some();
                record_hints::query_hints(source, caller, may_find).await
            }
            RecordResource::PermissionHints => record_hints::permission_hints(source, caller),
        }
    }
}

/// Whether this caller reads any of them.
pub(super) fn are_there(engine: &Engine, caller: &Caller) -> bool {
    let tools = engine.tools();
    tools.within_scopes(caller).is_ok() && tools.find(caller, ROOT_TYPES).is_some()
}

async fn root_types(engine: &Engine, caller: &Caller) -> Result<Value, Fault> {
    let tool = ToolName::from(ROOT_TYPES);
    let wait_ms = engine.limits().run_wait_ms;
    match engine.tools().call(caller, &tool, json!({}), wait_ms).await {
        Ok(CallReport::Done(types) | CallReport::Repeated(types)) => Ok(types),
        Ok(CallReport::Wants(_) | CallReport::Pending(_) | CallReport::Failed(_)) => {
            let message = format!("`{tool}` did not answer at once");
            Err(Fault::new("ApprovalNeeded", message).hint("call it as a tool"))
        }
        Err(refusal) => Err(refused(refusal)),
    }
}

fn refused(refusal: Refusal) -> Fault {
    let fault = Fault::new(refusal.code.name(), refusal.message);
    match refusal.hint {
        Some(hint) => fault.hint(hint),
        None => fault,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_resource_is_there_under_both_schemes() {
        let listed: Vec<String> =
            RecordResource::specs().into_iter().map(|spec| spec.uri).collect();
        let expected = [
            "quantum://schema",
            "quantum://query-hints",
            "quantum://permission-hints",
            "waypost://schema",
            "waypost://query-hints",
            "waypost://permission-hints",
        ];
        assert_eq!(listed, expected);
        let read: Vec<_> = listed.iter().filter_map(|uri| RecordResource::read(uri)).collect();
        assert_eq!(read, [RecordResource::ALL, RecordResource::ALL].concat());
        for other in ["waypost://plans/schema", "quantum://schema/x", "schema", "test://schema"] {
            assert_eq!(RecordResource::read(other), None, "{other}");
        }
    }
}
