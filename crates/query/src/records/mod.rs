//! Records as they are stored: the contract of a store, and the rules that every store shares, as
//! pure functions over JSON. How records are found and written is each store's own; what must come
//! out is defined here and in `evaluate`.

pub mod error;
pub mod names;
pub mod scope;
mod values;
mod hidden;
mod merge;
pub mod requests;
pub mod outcome;
pub mod references;
pub mod unique;
mod stamp;
pub mod save;
pub mod delete;
pub mod page;
pub mod in_memory;
pub mod cursor;
pub mod type_change;
pub mod reach;
pub mod faults;

#[cfg(test)]
mod tests;

pub use stamp::domain_of;

use error::Answer;
use kernel::values::ids::{Millis, RealmId};
use requests::{
    Access, Count, Counted, Delete, DeleteMany, Explanation, Find, Found, Get, RecordUsage, Save,
    Saved, Write,
};
use serde_json::Value;

/// A store of records. Each request is in one realm, and reaches only what the scope of its caller
/// admits: everything else is as if it were not there. A write is whole or not at all, and durable
/// when it is answered. A write whose call id is known does nothing, and is answered as the first
/// time (`outcome`). Reads see every write that was answered before they were asked.
pub trait Records: Send + Sync {
    /// The rows of one page, as the query shows them.
    fn find(&self, access: Access, find: Find) -> Answer<'_, Found>;

    /// How the store would find these rows. Nothing is read.
    fn explain(&self, access: Access, find: Find) -> Answer<'_, Explanation>;

    fn count(&self, access: Access, count: Count) -> Answer<'_, Counted>;

    /// One record, as the caller may see it.
    fn get(&self, access: Access, get: Get) -> Answer<'_, Option<Value>>;

    /// Writes what `save::plan_save` decides, unless another record has one of the unique keys.
    fn save(&self, access: Access, save: Save, write: Write) -> Answer<'_, Saved>;

    /// Deletes one record that no other one refers to.
    fn delete(&self, access: Access, delete: Delete, write: Write) -> Answer<'_, ()>;

    /// How many were deleted. Records may refer to each other if all of them are.
    fn delete_many(&self, access: Access, delete: DeleteMany, write: Write) -> Answer<'_, u64>;

    /// What is stored, by realm and owner, in the order of both.
    fn usage(&self) -> Answer<'_, Vec<RecordUsage>>;

    /// Removes everything of a realm; how many records it had.
    fn remove_realm(&self, realm: RealmId) -> Answer<'_, u64>;

    /// Removes outcomes that are not told any more; how many.
    fn forget_outcomes(&self, now: Millis) -> Answer<'_, u64>;

    /// Writes what is queued. Every request after it is refused.
    fn close(&self) -> Answer<'_, ()>;
}
