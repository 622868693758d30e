//! The values that facts carry: which of them may be large, and about how much they take.

use super::{Fact, Outcome};
use crate::values::datum::{Datum, value_weight};
use std::sync::Arc;

/// About how many bytes a fact takes in the journal besides the values that it carries.
const FACT_BYTES: u64 = 200;

impl Fact {
    /// About how many bytes it takes, in the journal and in the blob that it names.
    pub fn weight(&self) -> u64 {
        let data = match self {
            Fact::RunStarted { input: datum, .. }
            | Fact::CallFinished { output: datum, .. }
            | Fact::InputGiven { value: datum, .. }
            | Fact::PlanReturned { answer: datum, .. }
            | Fact::AnswerGiven { answer: datum, .. }
            | Fact::StepSkipped { save: Some((_, datum)), .. }
            | Fact::CallLate { result: Ok(datum), .. }
            | Fact::ItemStarted { item: datum, .. }
            | Fact::AgentAnswered { answer: datum, .. } => datum.weight(),
            Fact::LoopStarted(start) => start.items.weight(),
            Fact::PlanEntered(entry) => entry.input.weight(),
            Fact::AgentEntered(entry) => entry.input.weight(),
            Fact::CallRequested(request) => value_weight(&request.arguments),
            Fact::CallWants { state, .. } => value_weight(state),
            _ => 0,
        };
        FACT_BYTES + data
    }

    /// The data inside that may be large; the engine moves it to blobs before it is recorded.
    pub fn data_mut(&mut self) -> Option<&mut Arc<Datum>> {
        match self {
            Fact::RunStarted { input, .. } => Some(input),
            Fact::CallFinished { output, .. } => Some(output),
            Fact::InputGiven { value, .. } => Some(value),
            Fact::PlanReturned { answer, .. } | Fact::AnswerGiven { answer, .. } => Some(answer),
            Fact::StepSkipped { save: Some((_, datum)), .. } => Some(datum),
            Fact::CallLate { result: Ok(datum), .. } => Some(datum),
            Fact::RunEnded { outcome: Outcome::Completed { answer }, .. } => Some(answer),
            Fact::LoopStarted(start) => Some(&mut start.items),
            Fact::ItemStarted { item, .. } => Some(item),
            Fact::PlanEntered(entry) => Some(&mut entry.input),
            Fact::AgentEntered(entry) => Some(&mut entry.input),
            Fact::AgentAnswered { answer, .. } => Some(answer),
            _ => None,
        }
    }
}
