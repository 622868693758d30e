//! The judge: what was acknowledged, and what the journals say of it. It shares as little code as
//! it can with what it judges. What goes wrong is planned in `faults` and `troubles`.

pub mod tally;
pub mod turns;
pub mod recovery;
pub mod supervised;
pub mod rule_delays;
pub mod calls;
pub mod journal;
pub mod messages;
pub mod truth;
pub mod values;
pub mod oracle;
