//! What a call asks of the records of one type, checked against what its caller may see of it.

use super::refusal::{bad_field, bad_query, bad_record};
use kernel::tool::call::ToolError;
use query::check::{Scope, check, check_path};
use query::checked::{CheckedQuery, FieldPath, Test};
use query::fault::QueryFault;
use query::parser::parse;
use query::records::reach::Reach;
use query::tree::{Path, Query};

/// A query as it was written, and as it can be run.
pub(super) struct AskedQuery {
    pub(super) written: Query,
    pub(super) checked: CheckedQuery,
}

/// Without a text, every record is asked for.
pub(super) fn read_query(reach: &Reach, text: Option<&str>) -> Result<AskedQuery, ToolError> {
    let written = parsed(text)?;
    let checked = check_written(reach, &written)?;
    Ok(AskedQuery { written, checked })
}

/// The filter of a query that cannot embed anything, and why not.
pub(super) fn read_filter(
    reach: &Reach,
    text: Option<&str>,
    why_no_expand: &str,
) -> Result<Option<Test>, ToolError> {
    let written = parsed(text)?;
    if let Some(expand) = written.expands.first() {
        let fault = QueryFault::at(expand.place, why_no_expand).hint("leave `expand(..)` out");
        return Err(bad_query(&fault));
    }
    check_written(reach, &written).map(|query| query.filter)
}

/// A field that another argument names.
pub(super) fn read_field(
    reach: &Reach,
    argument: &str,
    path: &Path,
) -> Result<FieldPath, ToolError> {
    check_path(path, scope(reach)?).map_err(|fault| bad_field(argument, &fault))
}

fn parsed(text: Option<&str>) -> Result<Query, ToolError> {
    parse(text.unwrap_or_default()).map_err(|fault| bad_query(&fault))
}

fn check_written(reach: &Reach, written: &Query) -> Result<CheckedQuery, ToolError> {
    check(written, scope(reach)?).map_err(|fault| bad_query(&fault))
}

fn scope(reach: &Reach) -> Result<Scope<'_>, ToolError> {
    let access = &reach.access;
    let root = access.record_type(&reach.record_type).map_err(|error| bad_record(&error))?;
    let hidden = access.scope.hidden();
    Ok(Scope { types: &access.types, root, variables: &reach.variables, hidden })
}
