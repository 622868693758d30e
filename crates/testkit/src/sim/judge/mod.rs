//! The judge: what was acknowledged, and what the journals say of it.

pub mod tally;
pub mod turns;
pub mod recovery;
pub mod journal;
pub mod values;
pub mod oracle;
