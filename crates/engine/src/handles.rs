//! What endpoints may call, by resource: each handle holds the rules of one of them. A handle
//! borrows the engine and is cheap to make, so no one needs to keep one.

use crate::shared::{Engine, Shared};
use std::sync::Arc;

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident: $handle:ident;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy)]
            pub struct $handle<'e> {
                pub(crate) shared: &'e Arc<Shared>,
            }
        )*

        impl Engine {
            $(
                $(#[$doc])*
                pub fn $name(&self) -> $handle<'_> {
                    self.shared.$name()
                }
            )*
        }

        impl Shared {
            $(
                pub(crate) fn $name(self: &Arc<Self>) -> $handle<'_> {
                    $handle { shared: self }
                }
            )*
        }
    };
}

handles! {
    /// Runs of plans: start, wait, pause, continue, cancel, try again.
    runs: Runs;
    /// Asks of runs: list and answer.
    asks: Asks;
    /// Sessions: create, read, copy, remove.
    sessions: Sessions;
    /// Tools, and plans as tools: list, call, replace.
    tools: Tools;
    /// Conversations with agents.
    threads: Threads;
    /// Cases of pipelines.
    cases: Cases;
    /// Plans, agents, pipelines and models, from files and stored.
    catalog: Catalog;
    /// Events: read, watched, and sent to sinks.
    feed: Feed;
    /// The audit: what was decided, and whether it is as it was written.
    audits: Audits;
    /// Recovery, retention, and the store's figures.
    admin: Admin;
}
