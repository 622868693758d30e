//! Journals as a whole, as pure functions over their events: the copy of a fork, the cut of
//! retention, the rows that lists show, a run as a task, how a call for an agent of others failed,
//! what the audit keeps. A single event is in `event`; how journals are stored is a contract
//! (`contracts`).

pub mod fork;
pub mod trim;
pub mod projection;
pub mod proxied;
pub mod task;
pub mod audited;
pub mod lists;
