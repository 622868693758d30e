//! Journals as a whole, as pure functions over their events: the copy of a fork, the cut of
//! retention, the rows that lists show, what the audit keeps. A single event is in `event`; how
//! journals are stored is a contract (`contracts`).

pub mod fork;
pub mod trim;
pub mod projection;
pub mod audit_entries;
pub mod lists;
