//! What agents read of records before they ask for some: the schema of a type, example queries, and
//! how permissions are checked. Policy has decided what of it the caller sees.

use crate::record_source::RecordSource;
use kernel::tool::call::Caller;
use kernel::values::fault::Fault;
use query::checked::{CheckedQuery, Selection};
use query::hints;
use query::records::faults::of_reach;
use query::records::reach::Visible;
use query::records::requests::{Find, Page};
use query::types::{RecordType, UnknownType};
use serde_json::Value;
use std::collections::BTreeMap;

/// What this caller may see.
pub fn visible(source: &RecordSource, caller: &Caller) -> Result<Visible, Fault> {
    source.access.visible(caller).map_err(|error| of_reach(&error))
}

/// The schema of a type. One that the caller may not read is unknown.
pub fn schema(source: &RecordSource, caller: &Caller, name: &str) -> Result<Value, Fault> {
    let visible = visible(source, caller)?;
    let types = &visible.access.types;
    let found = types.find(name).ok();
    let found = found.filter(|found| visible.rights.contains_key(&found.full_name()));
    match found {
        Some(found) => Ok(hints::schema_of(&visible, types, found)),
        None => Err(of_reach(&UnknownType::Unknown(name.to_owned()).into())),
    }
}

pub fn permission_hints(source: &RecordSource, caller: &Caller) -> Result<Value, Fault> {
    Ok(hints::permission_hints(&visible(source, caller)?))
}

/// The language in short. The examples are of records that the caller may find: without that right
/// there are none.
pub async fn query_hints(
    source: &RecordSource,
    caller: &Caller,
    may_find: bool,
) -> Result<Value, Fault> {
    let visible = visible(source, caller)?;
    let mut samples = BTreeMap::new();
    for record_type in hints::sampled(&visible).into_iter().filter(|_| may_find) {
        if let Some(sample) = sample(source, &visible, record_type).await {
            samples.insert(record_type.full_name(), sample);
        }
    }
    Ok(hints::query_hints(&visible, &samples))
}

/// A record of the type, as the caller sees it. Without one the type has no examples.
async fn sample(
    source: &RecordSource,
    visible: &Visible,
    record_type: &RecordType,
) -> Option<Value> {
    let hidden = visible.access.scope.hidden_in(record_type);
    let selection = Selection { hidden, ..Selection::default() };
    let find = Find {
        record_type: record_type.full_name(),
        query: CheckedQuery { filter: None, expansions: Vec::new(), selection },
        sort: Vec::new(),
        page: Page { limit: 1, ..Page::default() },
        total: false,
    };
    match source.records.find(visible.access.clone(), find).await {
        Ok(found) => found.rows.into_iter().next(),
        Err(error) => {
            let record_type = record_type.full_name();
            tracing::debug!(record_type, "no sample for query hints: {error}");
            None
        }
    }
}
