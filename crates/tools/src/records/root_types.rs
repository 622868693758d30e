//! `query_rootTypes`: the types whose records the caller may read.

use super::parts::RecordTools;
use crate::typed::TypedTool;
use kernel::tool::call::{Call, Caller, Reach, ToolError};
use query::types::RecordType;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) struct RootTypes(pub(super) RecordTools);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RootTypesArgs {
    /// The realm of the call itself, which is the default. Any other one is refused
    realm: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RootTypesAnswer {
    root_types: Vec<RootType>,
    count: usize,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct RootType {
    class_name: String,
    simple_name: String,
    collection_name: String,
}

impl RootType {
    fn of(record_type: &RecordType) -> Self {
        Self {
            class_name: record_type.full_name(),
            simple_name: record_type.name.clone(),
            collection_name: record_type.collection.clone(),
        }
    }
}

impl TypedTool for RootTypes {
    type Args = RootTypesArgs;
    type Out = RootTypesAnswer;
    const NAME: &'static str = "query_rootTypes";
    const TITLE: &'static str = "List types of records";
    const DESCRIPTION: &'static str = "Lists the types of records that the caller may read. The \
        other tools take `className` as `rootType`, or `simpleName` where it is the only one.";
    const REACH: Reach = Reach::Reads;
    const UNRECORDED: bool = true;

    fn check(&self, caller: &Caller, args: &RootTypesArgs) -> Result<(), ToolError> {
        self.0.visible(caller, args.realm.as_deref()).map(drop)
    }

    async fn call(
        &self,
        caller: &Caller,
        args: RootTypesArgs,
        _call: &Call,
    ) -> Result<RootTypesAnswer, ToolError> {
        let visible = self.0.visible(caller, args.realm.as_deref())?;
        let types = visible.access.types.all().iter();
        let mut root_types: Vec<RootType> = types
            .map(RootType::of)
            .filter(|of| visible.rights.contains_key(&of.class_name))
            .collect();
        root_types.sort_by_cached_key(|of| (of.simple_name.clone(), of.class_name.clone()));
        Ok(RootTypesAnswer { count: root_types.len(), root_types })
    }
}
