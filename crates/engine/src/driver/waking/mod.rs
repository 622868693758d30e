//! How a driver comes by its session: it is loaded, it begins as a copy of another one, or it
//! cannot be driven for now.

mod wake;
pub(super) mod parked;
mod adopt;
