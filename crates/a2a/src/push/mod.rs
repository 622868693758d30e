//! Webhooks of tasks: what happens to a task is posted to an address that its client gave, at least
//! once and in order. `configs` has the operations on them, `listed` their list for operators,
//! `form` how what they get is written, `target` what is sealed, `turn` what one webhook
//! gets, `agenda` which of them are due, and `keeper` reads the feed and posts.

mod form;
mod target;
mod configs;
pub(crate) mod listed;
mod agenda;
mod turn;
mod keeper;

pub(super) use configs::ConfigPage;
pub use keeper::keep;
