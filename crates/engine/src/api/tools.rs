//! Tools as endpoints see them: listed, replaced, and asked for what they want.

use crate::catalog::Callable;
use crate::catalog::registry::ToolSource;
use crate::command::Command;
use crate::gate::arrivals::MissingUpstream;
use crate::gate::breakers::BreakerState;
use crate::gate::list_cache::ListVersion;
use crate::handles::Tools;
use crate::refusal::Refusal;
use crate::waiting::login_pages::PageCallback;
use kernel::definition::plan::mistake::Mistake;
use kernel::tool::call::{Caller, InputRequired, ToolSpec};
use kernel::tool::schema::Misfit;
use kernel::values::caller::Act;
use kernel::values::ids::{RealmId, ToolName};
use serde_json::Value;
use std::sync::Arc;

impl Tools<'_> {
    /// The tools that this caller sees; nothing else can be called by it.
    pub fn list(self, caller: &Caller) -> Vec<Arc<ToolSpec>> {
        self.shared.gate.visible(caller)
    }

    pub fn get(self, caller: &Caller, name: &str) -> Option<Arc<ToolSpec>> {
        self.shared.gate.find(caller, name).map(|listed| listed.tool.spec().clone())
    }

    /// What policy judges one of them by.
    pub fn judged(self, caller: &Caller, name: &str) -> Option<Arc<ToolSpec>> {
        self.shared.gate.find(caller, name).map(|listed| listed.tool.judged().clone())
    }

    /// What lists of tools follow from now: as long as this stays, a caller sees the same. None
    /// where policy must be asked each time.
    pub fn list_version(self) -> Option<ListVersion> {
        self.shared.gate.list_version()
    }

    /// All that this caller can call, by name: the tools, and the plans as tools.
    pub fn callables(self, caller: &Caller) -> Vec<Arc<ToolSpec>> {
        let mut specs = self.shared.gate.visible(caller);
        specs.extend(self.shared.gate.visible_plans(caller));
        specs.sort_by(|left, right| left.name.cmp(&right.name));
        specs
    }

    /// How one of them is listed.
    pub fn callable(self, caller: &Caller, name: &str) -> Option<Arc<ToolSpec>> {
        self.find(caller, name).map(|found| found.spec().clone())
    }

    /// One of them, to be called.
    pub fn find(self, caller: &Caller, name: &str) -> Option<Callable> {
        let gate = &self.shared.gate;
        match gate.find(caller, name) {
            Some(listed) => Some(Callable::tool(listed)),
            None => gate.find_plan(caller, name).map(Callable::plan),
        }
    }

    /// Whether the caller's realm has such a tool, whoever may call it.
    pub fn exists(self, caller: &Caller, name: &str) -> bool {
        self.shared.catalog.tool(&caller.realm, name).is_some()
    }

    /// What the operator can set to have a tool that the settings leave out.
    pub fn switch_of(self, name: &str) -> Option<&'static str> {
        self.shared.catalog.registry.switch_of(name)
    }

    /// Refuses a caller whose credential does not cover calls. To be asked before anything is
    /// looked up: what its scopes hide is not missing.
    pub fn within_scopes(self, caller: &Caller) -> Result<(), Refusal> {
        self.shared.gate.permit_act(caller, Act::Call)
    }

    /// The plans among them, by name.
    pub fn plans(self, caller: &Caller) -> Vec<Arc<ToolSpec>> {
        self.shared.gate.visible_plans(caller)
    }

    pub fn plan(self, caller: &Caller, id: &str) -> Option<Arc<ToolSpec>> {
        self.shared.gate.find_plan(caller, id)
    }

    /// What a source brings now, in place of what it brought before: all at once for everyone who
    /// lists or calls. Tools that cannot be used, or whose names are taken, are left out and
    /// reported.
    pub fn replace(self, source: ToolSource) -> Vec<Mistake> {
        let tools = source.tools.clone();
        let names: Vec<&str> = tools.iter().map(|tool| tool.spec().name.as_str()).collect();
        let mistakes = self.shared.catalog.replace_tools(source);
        self.shared.gate.arrivals.came(&names);
        mistakes
    }

    /// The server whose tools begin so has brought none yet, and why; without a reason it has. An
    /// agent that names such tools is not asked without them.
    pub fn note_away(self, upstream: &str, beginning: &str, why: Option<String>) {
        let away = why.map(|why| MissingUpstream { upstream: upstream.to_owned(), why });
        self.shared.gate.arrivals.note_away(beginning, away);
    }

    /// How many tools of a source can be called: those that were left out are not.
    pub fn count_of(self, source: &str) -> usize {
        self.shared.catalog.registry.count_of(source)
    }

    /// The servers that bring the awaited tools were all heard, or are away: no one waits for their
    /// tools any more.
    pub fn end_arrivals(self) {
        self.shared.gate.arrivals.end();
    }

    /// Whether a call that wants this can simply be made again: nothing is held for the answer.
    pub fn can_be_asked_anew(self, caller: &Caller, tool: &str, wants: &InputRequired) -> bool {
        let listed = self.shared.gate.find(caller, tool);
        listed.is_some_and(|listed| listed.tool.can_be_asked_anew(&wants.state))
    }

    /// Whether a call that wants this takes a part of it, and wants the rest again. A tool that may
    /// still come after the start is waited for; none where it is not there.
    pub async fn takes_parts(
        self,
        caller: &Caller,
        tool: &str,
        wants: &InputRequired,
    ) -> Option<bool> {
        let gate = &self.shared.gate;
        gate.await_tool(&caller.realm, &ToolName::from(tool)).await;
        gate.find(caller, tool).map(|listed| listed.tool.takes_parts(&wants.state))
    }

    /// What a tool wanted of this caller will not be given.
    pub fn forget_wants(self, caller: &Caller, tool: &str, wants: &InputRequired) {
        if let Some(listed) = self.shared.gate.find(caller, tool) {
            listed.tool.forget(&wants.state);
        }
    }

    /// What of this realm's calls fails now: servers and tools whose last calls failed for passing
    /// reasons, and until when calls of them are refused.
    pub fn breakers(self, realm: &RealmId) -> Vec<BreakerState> {
        self.shared.gate.breakers.of(realm)
    }

    /// Whether a value fits a schema.
    pub fn check_value(self, schema: &Arc<Value>, value: &Value) -> Result<(), Vec<Misfit>> {
        self.shared.schemas.check(schema, value)
    }

    /// Lets this one hear once when a page is opened that a tool of a realm wants under this key,
    /// as far as the tool's provider reports it.
    pub fn when_opened(self, realm: &RealmId, tool: &str, key: &str, hearer: PageCallback) {
        let catalog = &self.shared.catalog;
        if let (Some(source), Some(listed)) =
            (catalog.source(realm, tool), catalog.tool(realm, tool))
        {
            self.shared.pages.hear(&source, listed.tool.page_name(key), hearer);
        }
    }

    /// A page of this name was opened that a tool of this source wanted: threads that wait for it
    /// look at once, and who was given it hears of it. Those who cannot be notified now look in
    /// their own time.
    pub fn page_opened(self, source: &str, page: &str) {
        for hearer in self.shared.pages.hearers_of(source, page) {
            hearer();
        }
        for (ask, key) in self.shared.pages.opened(source, page) {
            if let Err(refusal) = self.shared.send(&key, Command::Look(ask)) {
                tracing::debug!(%ask, code = refusal.code.name(), "a login is checked later");
            }
        }
    }
}
