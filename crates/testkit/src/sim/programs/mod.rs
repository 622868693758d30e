//! Random plans: how they are drawn and written, and a second, simpler reading of them.

pub mod plans;
pub mod source;
pub mod held;
pub mod wants;
pub mod reference;
