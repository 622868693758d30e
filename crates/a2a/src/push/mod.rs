//! Webhooks of tasks: what happens to a task is posted to an address that its client gave, at least
//! once and in order. The engine does that (`engine/src/outbox/webhooks.rs`). `configs` has the
//! operations on them, `listed` their list for operators, `target` what is sealed, and `turn` what
//! the engine must know: for whom, and in which words.

mod target;
mod configs;
pub(crate) mod listed;
mod turn;

pub(super) use configs::ConfigPage;
pub use turn::keep;
pub(super) use turn::{JSON, NoticeWriter};

/// AgentVault's profile where the store has the version of A2A that a webhook's maker speaks.
const VAULT: &str = "vault";
