//! The built-in tools, a file each, the list of them, and which of them the settings leave out.

mod add;
mod is_positive;
mod always_fail;
mod publish;
mod raise_ticket;
mod http;

use crate::typed::{TypedTool, typed};
use kernel::contracts::Tool;
use kernel::values::ids::ToolName;
use outbound::addresses::HttpSettings;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the settings say of the built-in tools. By default there are only those that do something
/// for a project as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BuiltInSettings {
    /// Whether the tools of the demo are there: `demo` of `[tools]`.
    pub demo: bool,
    /// Whom `http::request` may talk to: `[tools.http]`. If that is no one, the tool is not there.
    pub http: HttpSettings,
}

/// The names of those that are of use to what runs here: plans, agents and pipelines.
pub const FOR_RUNS: [&str; 2] = [publish::Publish::NAME, raise_ticket::RaiseTicket::NAME];

/// What to set for the tools of the demo.
const DEMO_SWITCH: &str = "set `demo = true` under `[tools]` in waypost.toml: it is a tool of the \
    demo";
/// What to set for `http::request`.
const HTTP_SWITCH: &str = "name a host in `allow` under `[tools.http]` in waypost.toml: it reaches \
    no other";

pub fn builtin(settings: BuiltInSettings) -> Vec<Arc<dyn Tool>> {
    let BuiltInSettings { demo, http } = settings;
    let mut tools = Vec::new();
    if demo {
        tools.push(typed(add::Add));
        tools.push(typed(is_positive::IsPositive));
        tools.push(typed(always_fail::AlwaysFail));
    }
    tools.push(typed(publish::Publish));
    tools.push(typed(raise_ticket::RaiseTicket));
    if !http.is_empty() {
        tools.push(http::request(http));
    }
    tools
}

/// The names of those that are not, each with what to set.
pub fn switched_off(settings: &BuiltInSettings) -> BTreeMap<ToolName, &'static str> {
    let demo = [add::Add::NAME, is_positive::IsPositive::NAME, always_fail::AlwaysFail::NAME];
    let demo = demo.iter().filter(|_| !settings.demo).map(|name| (*name, DEMO_SWITCH));
    let http = settings.http.is_empty().then_some((http::REQUEST, HTTP_SWITCH));
    demo.chain(http).map(|(name, switch)| (name.into(), switch)).collect()
}
