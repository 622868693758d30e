//! The people and programs outside: what they start, what they reply, what they know of another
//! realm, and how they get in the way of each other and of rules.

mod replies;
pub mod neighbours;
pub mod clients;
pub mod webhooks;
mod meddling;
mod rivals;
mod messages;
