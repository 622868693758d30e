//! Where sessions are kept: the journal, what is listed beside it, the feed of all appends, who
//! drives which session, what is removed, and the store that is all of them over one database.

pub mod feed;
pub mod journal;
pub mod keys;
pub mod lists;
pub mod ownership;
pub mod retention;
pub mod store;
