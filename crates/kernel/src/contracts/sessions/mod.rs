//! Contracts of session storage: journal, lists, feed, ownership, keys, retention, and the store
//! that implements all of them over one database.

pub mod feed;
pub mod journal;
pub mod keys;
pub mod lists;
pub mod ownership;
pub mod retention;
pub mod store;
