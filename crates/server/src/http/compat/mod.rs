//! Endpoints in the shapes of existing services: conversations, agent configurations, sessions of
//! plans and permissions. They are thin: the engine's handles do the work. Routes of pipelines,
//! which follow such a shape too, are in `http::pipelines`.

pub(crate) mod agent_config;
pub(crate) mod threads;
pub(crate) mod plan_sessions;
pub(crate) mod permissions;
