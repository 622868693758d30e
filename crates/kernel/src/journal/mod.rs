//! Journals as a whole: forked, trimmed, projected into rows and lists.

pub mod fork;
pub mod trim;
pub mod projection;
pub mod lists;
