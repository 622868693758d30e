//! `query_deleteMany`: all records that a query takes are deleted, or none.

use super::asked::read_filter;
use super::parts::{RecordTools, Target};
use super::refusal::{by_store, refused};
use crate::typed::TypedTool;
use kernel::tool::call::{Call, Caller, Reach, ToolError};
use kernel::values::fault::Fault;
use query::checked::Test;
use query::records::reach::{Reach as RecordReach, RecordAct};
use query::records::requests::DeleteMany as DeleteManyRequest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const NO_EXPAND: &str = "`query_deleteMany` embeds no records";

pub(super) struct DeleteMany(pub(super) RecordTools);

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct DeleteManyArgs {
    /// The type of the records, such as `Order`, or with its namespace, `shop.Order`
    root_type: String,
    /// Which records, such as `status:closed`, without `expand(..)`. There is no default: without a
    /// condition the call is refused, unless `all` is true. At most 16 KiB
    query: Option<String>,
    /// Whether a call without a query deletes every record of the type
    #[serde(default)]
    all: bool,
    /// Whether to check and count only: nothing is deleted
    #[serde(default)]
    dry_run: bool,
    /// How many records must match; else none is deleted. Default: any number up to
    /// `delete_many_max` of the server, which is 2,000 unless it is set
    expect: Option<u64>,
    /// The realm of the call itself, which is the default. Any other one is refused
    realm: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeleteManyAnswer {
    success: bool,
    query: Option<String>,
    root_type: String,
    /// In a dry run, how many would be
    deleted_count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    dry_run: Option<bool>,
}

impl DeleteMany {
    fn prepared(
        &self,
        caller: &Caller,
        args: &DeleteManyArgs,
    ) -> Result<(RecordReach, Option<Test>), ToolError> {
        let target = Target { root_type: &args.root_type, realm: args.realm.as_deref() };
        let reach = self.0.reach(caller, target, RecordAct::Remove)?;
        let filter = read_filter(&reach, args.query.as_deref(), NO_EXPAND)?;
        if filter.is_none() && !args.all {
            // `fields:[..]` alone has no condition, and takes every record, too.
            let message = "`query` has no condition, so that every record would be deleted";
            let fault = Fault::new("QueryRequired", message);
            return Err(refused(fault.hint("write a query, or `all: true` if all are meant")));
        }
        Ok((reach, filter))
    }
}

impl TypedTool for DeleteMany {
    type Args = DeleteManyArgs;
    type Out = DeleteManyAnswer;
    const NAME: &'static str = "query_deleteMany";
    const TITLE: &'static str = "Delete records";
    const DESCRIPTION: &'static str = "Deletes all records that a query takes, or none of them. \
        `dryRun: true` tells how many that would be; `expect` refuses any other number.";
    const REACH: Reach = Reach::Writes;
    const IDEMPOTENT: bool = true;
    const UNRECORDED: bool = true;

    fn check(&self, caller: &Caller, args: &DeleteManyArgs) -> Result<(), ToolError> {
        self.prepared(caller, args).map(drop)
    }

    fn reach(&self, args: &DeleteManyArgs) -> (Reach, bool) {
        (if args.dry_run { Reach::Reads } else { Reach::Writes }, true)
    }

    async fn call(
        &self,
        caller: &Caller,
        args: DeleteManyArgs,
        call: &Call,
    ) -> Result<DeleteManyAnswer, ToolError> {
        let (reach, filter) = self.prepared(caller, &args)?;
        let write = self.0.write(&reach, call);
        let root_type = reach.record_type;
        let delete = DeleteManyRequest {
            record_type: root_type.clone(),
            filter,
            expected: args.expect,
            is_dry_run: args.dry_run,
        };
        let deleted = self.0.records.delete_many(reach.access, delete, write).await;
        Ok(DeleteManyAnswer {
            success: true,
            query: args.query,
            root_type,
            deleted_count: deleted.map_err(|error| by_store(&error))?,
            dry_run: args.dry_run.then_some(true),
        })
    }
}
