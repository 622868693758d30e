//! The tools on typed records, a file each. They decide nothing: how far a call reaches is asked of
//! `RecordAccess`, what a query means is in `query`, and the store writes under the id of the call,
//! so that a repeated call writes once. What can be refused without reading is refused before
//! policy and approval.

mod refusal;
mod parts;
mod arguments;
mod asked;
mod root_types;
mod plan;
mod find;
mod count;
mod save;
mod delete;
mod delete_many;

#[cfg(test)]
mod tests;

use crate::typed::typed;
use kernel::contracts::Tool;
use std::sync::Arc;

pub use parts::RecordTools;

/// The tools on records, in the order in which they are listed.
pub fn record_tools(parts: RecordTools) -> Vec<Arc<dyn Tool>> {
    vec![
        typed(root_types::RootTypes(parts.clone())),
        typed(plan::Plan(parts.clone())),
        typed(find::Find(parts.clone())),
        typed(count::Count(parts.clone())),
        typed(save::Save(parts.clone())),
        typed(delete::Delete(parts.clone())),
        typed(delete_many::DeleteMany(parts)),
    ]
}
