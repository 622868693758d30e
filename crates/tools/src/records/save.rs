//! `query_save`: one record is inserted, replaced or changed in part.

use super::arguments::EntityArg;
use super::parts::{RecordTools, Target};
use super::refusal::by_store;
use crate::typed::TypedTool;
use kernel::tool::arguments::misfit;
use kernel::tool::call::{Call, Caller, Reach, ToolError};
use query::records::reach::{Reach as RecordReach, RecordAct};
use query::records::requests::{Save as SaveRequest, SaveMode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub(super) struct Save(pub(super) RecordTools);

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct SaveArgs {
    /// The type of the record, such as `Order`, or with its namespace, `shop.Order`
    root_type: String,
    /// The record: an object, or the JSON text of one. With an `id` it replaces the record of that
    /// id; with a `version`, only if the record has that version. At most `record_bytes_max` of the
    /// server, which is 1 MiB unless it is set
    entity: EntityArg,
    /// Whether `entity` is a part of a record that is there, named by `id` or `refName`: what it
    /// does not name stays, and null removes a field
    #[serde(default)]
    merge: bool,
    /// Whether to refuse if there is a record of this id
    #[serde(default)]
    insert: bool,
    /// The realm of the call itself, which is the default. Any other one is refused
    realm: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SaveAnswer {
    id: String,
    root_type: String,
    /// As it is stored, without fields that the caller may not see
    #[schemars(with = "Map<String, Value>")]
    entity: Value,
    version: u64,
    is_new: bool,
}

impl Save {
    fn prepared(
        &self,
        caller: &Caller,
        args: &SaveArgs,
    ) -> Result<(RecordReach, Value, SaveMode), ToolError> {
        let target = Target { root_type: &args.root_type, realm: args.realm.as_deref() };
        let reach = self.0.reach(caller, target, RecordAct::Save)?;
        let mode = match (args.insert, args.merge) {
            (false, false) => SaveMode::Put,
            (true, false) => SaveMode::Insert,
            (false, true) => SaveMode::Merge,
            (true, true) => {
                let error = misfit("`insert` and `merge` exclude each other");
                return Err(error.hint("leave one of them out"));
            }
        };
        Ok((reach, args.entity.read()?, mode))
    }
}

impl TypedTool for Save {
    type Args = SaveArgs;
    type Out = SaveAnswer;
    const NAME: &'static str = "query_save";
    const TITLE: &'static str = "Save a record";
    const DESCRIPTION: &'static str = "Saves a record: a new one without an `id`, else the one of \
        this id as a whole; with `merge: true` a part of it. References may be written as id, \
        refName or object.";
    const REACH: Reach = Reach::Writes;
    const IDEMPOTENT: bool = true;
    const UNRECORDED: bool = true;

    fn check(&self, caller: &Caller, args: &SaveArgs) -> Result<(), ToolError> {
        self.prepared(caller, args).map(drop)
    }

    async fn call(
        &self,
        caller: &Caller,
        args: SaveArgs,
        call: &Call,
    ) -> Result<SaveAnswer, ToolError> {
        let (reach, entity, mode) = self.prepared(caller, &args)?;
        let write = self.0.write(&reach, call);
        let root_type = reach.record_type.clone();
        let save = SaveRequest {
            record_type: reach.record_type,
            mode,
            entity,
            expected: None,
            fresh_id: self.0.fresh_id(),
        };
        let saved = self.0.records.save(reach.access, save, write).await;
        let saved = saved.map_err(|error| by_store(&error))?;
        Ok(SaveAnswer {
            id: saved.id,
            root_type,
            entity: saved.record,
            version: saved.version,
            is_new: saved.is_new,
        })
    }
}
