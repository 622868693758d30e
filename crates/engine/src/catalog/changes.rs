//! Change counters of the lists, for clients that reload a list when it changed.

/// How often each of the lists changed that clients read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ListChanges {
    /// Tools, and plans as tools.
    pub tools: u64,
    /// Prompts, and plans and agents as prompts.
    pub prompts: u64,
    /// Resources, and plans as resources.
    pub resources: u64,
}

impl ListChanges {
    /// One change of the tools.
    pub(super) const TOOLS: ListChanges = ListChanges { tools: 1, prompts: 0, resources: 0 };
    /// One change of the agents.
    pub(super) const AGENTS: ListChanges = ListChanges { tools: 0, prompts: 1, resources: 0 };
    /// One change of the plans.
    pub(super) const PLANS: ListChanges = ListChanges { tools: 1, prompts: 1, resources: 1 };

    /// What changed since it was so.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            tools: self.tools.saturating_sub(before.tools),
            prompts: self.prompts.saturating_sub(before.prompts),
            resources: self.resources.saturating_sub(before.resources),
        }
    }
}
