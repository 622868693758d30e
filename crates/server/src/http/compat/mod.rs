//! Endpoints in the shapes of existing services: conversations, agent configurations and
//! sessions of plans. They are thin: the engine's handles do the work.

pub(crate) mod agent_config;
pub(crate) mod threads;
pub(crate) mod plan_sessions;
