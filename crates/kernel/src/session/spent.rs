//! What the models of a run took.

use crate::conversation::llm::Usage;
use serde::{Deserialize, Serialize};

/// What the models of a run took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunSpent {
    /// How many turns.
    pub turns: u32,
    /// Tokens read.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
    /// Millionths of a dollar, where prices are known.
    pub cost_micros: u64,
    /// How many turns had no known price.
    pub unpriced: u32,
}

impl RunSpent {
    /// Whether no model was asked.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// One more turn.
    pub fn add(&mut self, usage: Usage, cost_micros: Option<u64>) {
        self.add_turns(1, usage, cost_micros);
    }

    /// So many more turns, which took this together.
    pub fn add_turns(&mut self, turns: u32, usage: Usage, cost_micros: Option<u64>) {
        self.turns += turns;
        self.input = self.input.saturating_add(usage.input);
        self.output = self.output.saturating_add(usage.output);
        match cost_micros {
            Some(cost) => self.cost_micros = self.cost_micros.saturating_add(cost),
            None => self.unpriced += turns,
        }
    }
}
