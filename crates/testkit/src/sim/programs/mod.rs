//! Random plans: how they are drawn and written, and a second, simpler reading of them that says
//! what a run must answer. Who starts them, and when, is in `clients` and `world`.

pub mod plans;
pub mod healing;
pub mod source;
pub mod context_values;
pub mod wants;
pub mod reference;
