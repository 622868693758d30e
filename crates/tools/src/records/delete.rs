//! `query_delete`: one record is deleted.

use super::arguments::read_named_id;
use super::parts::{RecordTools, Target};
use super::refusal::{by_store, members};
use crate::typed::TypedTool;
use kernel::tool::call::{Call, Caller, Reach, ToolError};
use query::records::error::RecordError;
use query::records::reach::{Reach as RecordReach, RecordAct};
use query::records::requests::Delete as DeleteRequest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

pub(super) struct Delete(pub(super) RecordTools);

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct DeleteArgs {
    /// The type of the record, such as `Order`, or with its namespace, `shop.Order`
    root_type: String,
    /// The record's id: 24 hexadecimal digits or a UUID
    id: Option<String>,
    /// The same, instead of `id`
    #[serde(rename = "_id")]
    underscore_id: Option<String>,
    /// The version that the record must have. Default: any
    version: Option<u64>,
    /// The realm of the call itself, which is the default. Any other one is refused
    realm: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeleteAnswer {
    success: bool,
    id: String,
    root_type: String,
    deleted_count: u64,
}

impl Delete {
    fn prepared(
        &self,
        caller: &Caller,
        args: &DeleteArgs,
    ) -> Result<(RecordReach, String), ToolError> {
        let target = Target { root_type: &args.root_type, realm: args.realm.as_deref() };
        let reach = self.0.reach(caller, target, RecordAct::Remove)?;
        let id = read_named_id(args.id.as_deref(), args.underscore_id.as_deref())?;
        Ok((reach, id))
    }
}

impl TypedTool for Delete {
    type Args = DeleteArgs;
    type Out = DeleteAnswer;
    const NAME: &'static str = "query_delete";
    const TITLE: &'static str = "Delete a record";
    const DESCRIPTION: &'static str = "Deletes the record of this id, unless others refer to it.";
    const REACH: Reach = Reach::Writes;
    const IDEMPOTENT: bool = true;
    const UNRECORDED: bool = true;

    fn check(&self, caller: &Caller, args: &DeleteArgs) -> Result<(), ToolError> {
        self.prepared(caller, args).map(drop)
    }

    async fn call(
        &self,
        caller: &Caller,
        args: DeleteArgs,
        call: &Call,
    ) -> Result<DeleteAnswer, ToolError> {
        let (reach, id) = self.prepared(caller, &args)?;
        let write = self.0.write(&reach, call);
        let root_type = reach.record_type;
        let delete = DeleteRequest {
            record_type: root_type.clone(),
            id: id.clone(),
            expected: args.version,
        };
        match self.0.records.delete(reach.access, delete, write).await {
            Ok(()) => Ok(DeleteAnswer { success: true, id, root_type, deleted_count: 1 }),
            Err(error @ RecordError::NotFound) => Err(by_store(&error).detail(members([
                ("success", json!(false)),
                ("id", json!(id)),
                ("rootType", json!(root_type)),
                ("deletedCount", json!(0)),
            ]))),
            Err(error) => Err(by_store(&error)),
        }
    }
}
