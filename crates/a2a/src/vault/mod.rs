//! AgentVault's profile of A2A at `/a2a`: the same tasks in its methods, states and events, the
//! card at `/agent-card.json`, and the routes by which its clients find cards. What is done is in
//! `operations` of the folder above; here are only the words.

mod error;
mod words;
mod progress;
mod encoder;
mod tasks;
mod stream;
mod card;
mod registry;
pub(super) mod protocol_routes;

use edge::acts::Right;
use kernel::values::caller::Act;

/// The methods at the address of the profile, beside the names of tools, each with who asks policy.
pub const METHODS: &[(&str, Right)] = &[
    ("tasks/send", Right::Engine(Act::Run)),
    ("tasks/get", Right::Engine(Act::Read)),
    ("tasks/cancel", Right::Engine(Act::Cancel)),
    ("tasks/sendSubscribe", Right::Engine(Act::Read)),
];
/// All routes of the profile; those of cards are open to strangers.
pub const ROUTES: &[&str] = &[
    "/agent-card.json",
    "/a2a",
    "/a2a/",
    "/api/v1/agent-cards",
    "/api/v1/agent-cards/",
    "/api/v1/agent-cards/{*rest}",
];
