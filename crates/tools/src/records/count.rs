//! `query_count`: how many records there are, and what is computed over groups of them.

use super::arguments::{AggregateArg, GroupByArg, WrittenMeasure};
use super::asked::{read_field, read_filter};
use super::parts::{RecordTools, Target};
use super::refusal::{bad_argument, by_store};
use crate::typed::TypedTool;
use kernel::tool::call::{Call, Caller, Reach, ToolError};
use query::checked::FieldPath;
use query::evaluate::group::{Function, Grouping, Measure};
use query::records::reach::{Reach as RecordReach, RecordAct};
use query::records::requests::{Access, Count as CountRequest};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

const NO_EXPAND: &str = "`query_count` embeds no records";

pub(super) struct Count(pub(super) RecordTools);

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct CountArgs {
    /// The type of the records, such as `Order`, or with its namespace, `shop.Order`
    root_type: String,
    /// Which records, such as `status:open && total:>#100`, without `expand(..)`. Default: every
    /// record. At most 16 KiB
    query: Option<String>,
    /// The fields whose values make groups: a list, or a text such as `status,city`. Default: all
    /// records are one group. At most 16 fields, and `groups_max` groups, 1,000 unless it is set
    group_by: Option<GroupByArg>,
    /// What to compute for each group: a list, or a text such as `count,sum(total)`. Without a
    /// field, `count` counts records. `as` is the name in the answer. Default: `count`. At most 16
    aggregate: Option<AggregateArg>,
    /// The realm of the call itself, which is the default. Any other one is refused
    realm: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CountAnswer {
    count: u64,
    root_type: String,
    query: Option<String>,
    /// One object for each group: the values that it is grouped by, and what was computed
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Map<String, Value>>>")]
    groups: Option<Vec<Value>>,
}

impl Count {
    fn prepared(
        &self,
        caller: &Caller,
        args: &CountArgs,
    ) -> Result<(Access, CountRequest), ToolError> {
        let target = Target { root_type: &args.root_type, realm: args.realm.as_deref() };
        let reach = self.0.reach(caller, target, RecordAct::Read)?;
        let filter = read_filter(&reach, args.query.as_deref(), NO_EXPAND)?;
        let grouping = match (&args.group_by, &args.aggregate) {
            (None, None) => None,
            (by, measures) => Some(grouping(&reach, by.as_ref(), measures.as_ref())?),
        };
        Ok((reach.access, CountRequest { record_type: reach.record_type, filter, grouping }))
    }
}

impl TypedTool for Count {
    type Args = CountArgs;
    type Out = CountAnswer;
    const NAME: &'static str = "query_count";
    const TITLE: &'static str = "Count records";
    const DESCRIPTION: &'static str = "Counts the records that a query takes. With `groupBy` and \
        `aggregate` it also computes counts, sums, averages, least and greatest values.";
    const REACH: Reach = Reach::Reads;
    const UNRECORDED: bool = true;

    fn check(&self, caller: &Caller, args: &CountArgs) -> Result<(), ToolError> {
        self.prepared(caller, args).map(drop)
    }

    async fn call(
        &self,
        caller: &Caller,
        args: CountArgs,
        _call: &Call,
    ) -> Result<CountAnswer, ToolError> {
        let (access, request) = self.prepared(caller, &args)?;
        let root_type = request.record_type.clone();
        let is_grouped = request.grouping.is_some();
        let counted = self.0.records.count(access, request).await;
        let counted = counted.map_err(|error| by_store(&error))?;
        let groups = is_grouped.then_some(counted.groups);
        Ok(CountAnswer { count: counted.count, root_type, query: args.query, groups })
    }
}

fn grouping(
    reach: &RecordReach,
    by: Option<&GroupByArg>,
    measures: Option<&AggregateArg>,
) -> Result<Grouping, ToolError> {
    let mut fields: Vec<(String, FieldPath)> = Vec::new();
    for (name, path) in by.map(GroupByArg::read).transpose()?.unwrap_or_default() {
        fields.push((name, read_field(reach, "groupBy", &path)?));
    }
    let asked = measures.map(AggregateArg::read).transpose()?.unwrap_or_default();
    let mut measures: Vec<Measure> = Vec::new();
    for WrittenMeasure { name, function, path } in asked {
        let path = path.map(|path| read_field(reach, "aggregate", &path)).transpose()?;
        measures.push(Measure { name, function, path });
    }
    if measures.is_empty() {
        let name = "count".to_owned();
        measures.push(Measure { name, function: Function::Count, path: None });
    }
    check_names(&fields, &measures)?;
    Ok(Grouping { by: fields, measures })
}

/// No two members of a group may have the same name.
fn check_names(fields: &[(String, FieldPath)], measures: &[Measure]) -> Result<(), ToolError> {
    let by = fields.iter().map(|(name, _)| ("groupBy", name));
    let computed = measures.iter().map(|measure| ("aggregate", &measure.name));
    let mut seen = BTreeSet::new();
    for (argument, name) in by.chain(computed) {
        if !seen.insert(name) {
            let message = format!("two members of a group would be called `{name}`");
            let hint = "name each field once, and choose another name by `as`";
            return Err(bad_argument(argument, &message, hint));
        }
    }
    Ok(())
}
