//! `query_plan`: how a query would be run. No record is read.

use super::asked::{AskedQuery, read_query};
use super::parts::{RecordTools, Target};
use super::refusal::{by_store, refused};
use crate::typed::TypedTool;
use kernel::tool::call::{Call, Caller, Reach, ToolError};
use kernel::values::fault::Fault;
use query::plan::{Mode, plan};
use query::records::reach::{Reach as RecordReach, RecordAct};
use query::records::requests::{Find, Page};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) struct Plan(pub(super) RecordTools);

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct PlanArgs {
    /// The type of the records, such as `Order`, or with its namespace, `shop.Order`
    root_type: String,
    /// The query, such as `status:open && expand(customer)`. Default: every record. At most 16 KiB
    query: Option<String>,
    /// Whether to tell what is asked of the database, and which indexes it uses: for administrators
    #[serde(default)]
    explain: bool,
    /// The realm of the call itself, which is the default. Any other one is refused
    realm: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PlanAnswer {
    mode: PlanMode,
    expand_paths: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explain: Option<Explained>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
enum PlanMode {
    Filter,
    Aggregation,
}

#[derive(Serialize, JsonSchema)]
struct Explained {
    statements: Vec<String>,
    indexes: Vec<String>,
}

impl Plan {
    fn prepared(
        &self,
        caller: &Caller,
        args: &PlanArgs,
    ) -> Result<(RecordReach, AskedQuery), ToolError> {
        let target = Target { root_type: &args.root_type, realm: args.realm.as_deref() };
        let reach = self.0.reach(caller, target, RecordAct::Read)?;
        if args.explain && !reach.explains {
            let fault = Fault::new("forbidden", "only administrators may explain queries");
            return Err(refused(fault.hint("leave `explain` out")));
        }
        let query = read_query(&reach, args.query.as_deref())?;
        Ok((reach, query))
    }
}

impl TypedTool for Plan {
    type Args = PlanArgs;
    type Out = PlanAnswer;
    const NAME: &'static str = "query_plan";
    const TITLE: &'static str = "Plan a query";
    const DESCRIPTION: &'static str = "Checks a query without running it. `mode` is AGGREGATION if \
        the query embeds records by `expand(..)`, else FILTER.";
    const REACH: Reach = Reach::Reads;
    const UNRECORDED: bool = true;

    fn check(&self, caller: &Caller, args: &PlanArgs) -> Result<(), ToolError> {
        self.prepared(caller, args).map(drop)
    }

    async fn call(
        &self,
        caller: &Caller,
        args: PlanArgs,
        _call: &Call,
    ) -> Result<PlanAnswer, ToolError> {
        let (reach, query) = self.prepared(caller, &args)?;
        let planned = plan(&query.written);
        let mode = match planned.mode {
            Mode::Filter => PlanMode::Filter,
            Mode::Aggregation => PlanMode::Aggregation,
        };
        let mut explain = None;
        if args.explain {
            let find = Find {
                record_type: reach.record_type,
                query: query.checked,
                sort: Vec::new(),
                page: Page { limit: reach.find_rows_max, ..Page::default() },
                total: false,
            };
            let told = self.0.records.explain(reach.access, find).await;
            let told = told.map_err(|error| by_store(&error))?;
            explain = Some(Explained { statements: told.statements, indexes: told.indexes });
        }
        Ok(PlanAnswer { mode, expand_paths: planned.expand_paths, explain })
    }
}
