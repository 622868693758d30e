//! What a message of A2A is for that names no skill: a program that holds a server may know better
//! than the settings.

use serde_json::Value;
use std::sync::Arc;
use wire::a2a::message::Message;

/// What a message that names no skill is for.
#[derive(Debug, Clone)]
pub struct SkillChoice {
    /// The id of a skill that the caller may use.
    pub skill: String,
    /// What the plan of the skill gets.
    pub input: Value,
    /// Whether the answer is a message, without a task.
    pub reply_message: bool,
}

/// Chooses for a message, or leaves it to the default agent. A server with a choice takes parts of
/// every media type.
pub type ChooseSkill = Arc<dyn Fn(&Message) -> Option<SkillChoice> + Send + Sync>;
