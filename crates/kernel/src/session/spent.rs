//! Usage and cost of the models of a run.

use crate::conversation::llm::Usage;
use crate::event::TurnEnd;
use crate::values::is_default;
use serde::{Deserialize, Serialize};

/// Usage and cost of the models of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunSpent {
    /// How many turns.
    pub turns: u32,
    /// Tokens read.
    pub input: u64,
    /// Those of them that came from a cache.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cached: u64,
    #[serde(default, skip_serializing_if = "is_default")]
    pub cache_written: u64,
    /// Tokens written.
    pub output: u64,
    /// Millionths of a dollar, where prices are known.
    pub cost_micros: u64,
    /// Savings by caches, in millionths of a dollar; negative if writing to them cost more.
    #[serde(default, skip_serializing_if = "is_default")]
    pub saved_micros: i64,
    /// How many turns had no known price.
    pub unpriced: u32,
}

impl RunSpent {
    /// Whether no model was asked.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// One more turn.
    pub fn add(&mut self, end: &TurnEnd) {
        self.add_turns(1, end.usage, end.cost_micros, end.uncached_micros);
    }

    /// So many more turns, which took this together.
    pub fn add_turns(
        &mut self,
        turns: u32,
        usage: Usage,
        cost_micros: Option<u64>,
        uncached_micros: Option<u64>,
    ) {
        self.turns += turns;
        self.input = self.input.saturating_add(usage.input);
        self.cached = self.cached.saturating_add(usage.cached);
        self.cache_written = self.cache_written.saturating_add(usage.cache_written);
        self.output = self.output.saturating_add(usage.output);
        match cost_micros {
            Some(cost) => self.cost_micros = self.cost_micros.saturating_add(cost),
            None => self.unpriced += turns,
        }
        if let (Some(cost), Some(uncached)) = (cost_micros, uncached_micros) {
            let saved = i128::from(uncached) - i128::from(cost);
            let saved = i64::try_from(saved).unwrap_or_default();
            self.saved_micros = self.saved_micros.saturating_add(saved);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::llm::Stop;
    use crate::event::TurnKind;
    use crate::values::ids::FrameId;

    fn turn(usage: Usage, cost_micros: Option<u64>, uncached_micros: Option<u64>) -> TurnEnd {
        TurnEnd {
            frame: FrameId(1),
            turn: 1,
            attempt: 1,
            kind: TurnKind::Act,
            text: "".into(),
            calls: Vec::new(),
            route: None,
            stops: false,
            stop: Stop::Done,
            usage,
            cost_micros,
            uncached_micros,
            native: None,
        }
    }

    #[test]
    fn cache_costs_and_savings_add_up() {
        let mut spent = RunSpent::default();
        let first = Usage { input: 100, cached: 0, cache_written: 80, output: 5 };
        spent.add(&turn(first, Some(125), Some(105)));
        assert_eq!(spent.saved_micros, -20, "it was written to, and not read yet");
        let second = Usage { input: 120, cached: 80, cache_written: 20, output: 5 };
        spent.add(&turn(second, Some(60), Some(125)));
        spent.add(&turn(Usage { input: 7, ..Usage::default() }, None, None));
        let expected = RunSpent {
            turns: 3,
            input: 227,
            cached: 80,
            cache_written: 100,
            output: 10,
            cost_micros: 185,
            saved_micros: 45,
            unpriced: 1,
        };
        assert_eq!(spent, expected);
    }

    #[test]
    fn counts_that_are_left_out_are_zero() {
        let short = r#"{"turns":2,"input":30,"output":7,"costMicros":11,"unpriced":1}"#;
        let spent: RunSpent = serde_json::from_str(short).unwrap();
        assert_eq!((spent.input, spent.cached, spent.saved_micros), (30, 0, 0));
    }
}
