//! The rules of the calendar demo, played through: a toy calendar, a person who answers and
//! decides, and the loop between them and the model.
#![allow(clippy::unwrap_used, reason = "tests")]

mod desk;
mod scenes;
mod generated;
mod analyst;
