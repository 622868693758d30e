//! Every method and who asks policy about it.

use edge::acts::{HEALTH, Right};
use kernel::values::caller::Act;

/// Every method of `/mcp` and who asks about it, whatever version it is of. Prompts and resources
/// of an upstream are there for who may read the upstream: the code that gathers the shelves asks.
pub const METHODS: &[(&str, Right)] = &[
    ("initialize", Right::Open("it says who the server is")),
    ("server/discover", Right::Open("it says who the server is")),
    ("ping", HEALTH),
    ("logging/setLevel", Right::Open("it is about one's own session")),
    ("tools/list", Right::Engine(Act::Call)),
    ("tools/call", Right::Engine(Act::Call)),
    ("prompts/list", Right::Engine(Act::Read)),
    ("prompts/get", Right::Engine(Act::Read)),
    ("resources/list", Right::Engine(Act::Read)),
    ("resources/templates/list", Right::Engine(Act::Read)),
    ("resources/read", Right::Engine(Act::Read)),
    ("resources/subscribe", Right::Engine(Act::Read)),
    ("resources/unsubscribe", Right::Open("it is about one's own session")),
    ("subscriptions/listen", Right::Engine(Act::Read)),
    ("completion/complete", Right::Engine(Act::Read)),
    ("tasks/get", Right::Engine(Act::Read)),
    ("tasks/update", Right::Engine(Act::Answer)),
    ("tasks/cancel", Right::Engine(Act::Cancel)),
];

/// The act of a method of `/mcp` that is done to one thing. Lists are there for everyone: they show
/// what may be used.
pub(crate) fn act_of(method: &str) -> Option<Act> {
    let is_named = |(name, _): &&(&str, Right)| *name == method && method != "tools/list";
    match METHODS.iter().find(is_named)?.1 {
        Right::Engine(act) | Right::Endpoint(act, _) => Some(act),
        Right::Open(_) => None,
    }
}
