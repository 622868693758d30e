//! Two nodes that have one store open at the same time, each with an engine. What they write of
//! rules takes a moment, so that both may have begun before one of them is there. They are watched:
//! which of them acted, who was refused because the other one had, and whose sessions were taken
//! over while it still ran.

use super::executor::Executor;
use crate::sim::rng::Rng;
use kernel::ask::remedy::SUPERVISOR;
use kernel::contracts::StoreError;
use kernel::journal::projection::{Append, AskChange};
use kernel::values::ids::SessionKey;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a rule decides is written within so many milliseconds.
const WRITTEN_MS: u64 = 4;

/// The nodes of one machine.
pub struct Nodes {
    executor: Executor,
    state: Mutex<State>,
}

struct State {
    rng: Rng,
    /// How many there were.
    made: u64,
    /// The second one, while it may write.
    second: Option<u64>,
    /// Those of this life that can write nothing any more, and still run.
    fenced: BTreeSet<u64>,
    /// Who wrote to each session last.
    wrote: BTreeMap<SessionKey, u64>,
    met: Met,
}

/// How often two supervisors met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Met {
    /// Rules by which the second one acted.
    pub acted: u64,
    /// Rules by which one of them acted, and was refused.
    pub refused: u64,
    /// Sessions that were taken over from one that still ran.
    pub taken_over: u64,
}

/// One node, as its store knows it.
#[derive(Clone)]
pub struct Node {
    nodes: Arc<Nodes>,
    number: u64,
}

impl Nodes {
    /// None yet.
    pub fn new(rng: Rng, executor: Executor) -> Arc<Self> {
        let state = State {
            rng,
            made: 0,
            second: None,
            fenced: BTreeSet::new(),
            wrote: BTreeMap::new(),
            met: Met::default(),
        };
        Arc::new(Self { executor, state: Mutex::new(state) })
    }

    /// The first node of another life: all before it are dead.
    pub fn first(self: &Arc<Self>) -> Node {
        let mut state = self.state();
        state.second = None;
        state.fenced = BTreeSet::new();
        self.made(&mut state)
    }

    /// The second node; the one before it can write nothing any more.
    pub fn second(self: &Arc<Self>) -> Node {
        self.fence();
        let mut state = self.state();
        let node = self.made(&mut state);
        state.second = Some(node.number);
        node
    }

    /// The second node is taken for dead: it can write nothing any more.
    pub fn fence(&self) {
        let mut state = self.state();
        let second = state.second.take();
        state.fenced.extend(second);
    }

    /// Waits for some milliseconds, at least and at most so many.
    pub async fn wait(&self, least: u64, most: u64) {
        let ms = least + self.state().rng.below(most - least);
        self.executor.sleep_until(self.executor.now().plus_ms(ms)).await;
    }

    /// How often two supervisors met.
    pub fn met(&self) -> Met {
        self.state().met
    }

    fn made(self: &Arc<Self>, state: &mut State) -> Node {
        state.made += 1;
        Node { nodes: self.clone(), number: state.made }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Something that a node writes.
pub struct Writing {
    node: Node,
    key: SessionKey,
    /// A rule acts.
    acts: bool,
    /// A run is taken over.
    claims: bool,
}

impl Node {
    pub fn writes(&self, append: &Append) -> Writing {
        let by_rule = |change: &AskChange| match change {
            AskChange::Closed { decision: Some(decision), .. } => *decision.by == *SUPERVISOR,
            AskChange::Closed { .. } | AskChange::Opened(_) => false,
        };
        Writing {
            node: self.clone(),
            key: append.session.key.clone(),
            acts: append.asks.iter().any(by_rule),
            claims: append.body.contains("\"run.claimed\""),
        }
    }
}

impl Writing {
    /// What a rule decides takes a moment until it is written.
    pub async fn takes_a_moment(&self) {
        if self.acts {
            self.node.nodes.wait(0, WRITTEN_MS).await;
        }
    }

    /// Its outcome.
    pub fn ended(&self, result: &Result<(), StoreError>) {
        let mut state = self.node.nodes.state();
        let number = self.node.number;
        if result.is_err() {
            state.met.refused += u64::from(self.acts);
            return;
        }
        let is_second = state.second == Some(number);
        state.met.acted += u64::from(self.acts && is_second);
        let before = state.wrote.insert(self.key.clone(), number);
        let is_fenced = before.is_some_and(|before| state.fenced.contains(&before));
        state.met.taken_over += u64::from(self.claims && is_fenced);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::machine::power::Power;

    fn writing(node: &Node, acts: bool, claims: bool) -> Writing {
        Writing { node: node.clone(), key: SessionKey::new("r", "plans", "s"), acts, claims }
    }

    #[test]
    fn acting_refused_and_replaced_nodes_are_counted() {
        let executor = Executor::new(1, Arc::new(Power::default()));
        let nodes = Nodes::new(Rng::new(1), executor);
        let first = nodes.first();
        let second = nodes.second();
        writing(&first, true, false).ended(&Ok(()));
        assert_eq!(nodes.met(), Met::default(), "the first one alone");
        writing(&second, true, false).ended(&Ok(()));
        writing(&first, true, false).ended(&Err(StoreError::Closed));
        assert_eq!(nodes.met(), Met { acted: 1, refused: 1, taken_over: 0 });
        writing(&first, false, true).ended(&Ok(()));
        assert_eq!(nodes.met().taken_over, 0, "the second one can write still");
        writing(&second, false, false).ended(&Ok(()));
        nodes.fence();
        writing(&first, false, true).ended(&Ok(()));
        assert_eq!(nodes.met().taken_over, 1);
    }
}
