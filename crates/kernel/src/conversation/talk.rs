//! Conversations: what was said, as references to the events that said it, and the state of every
//! call of every turn. What a model reads is rendered from this, so each call has one result.

use crate::values::canonical;
use crate::values::fault::Fault;
use crate::values::ids::{AgentName, CallId, ContentHash, FrameId, ToolName};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;

/// A conversation: its lines in order. Texts stay in the journal.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Talk {
    pub lines: Vec<Line>,
}

/// One line of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Line {
    /// What a removed beginning of the journal left: the `base.set` event at this sequence.
    Base(u64),
    /// The same, of the conversation with this agent alone.
    BaseOf(u64, AgentName),
    /// What older lines came down to: the `talk.compacted` event at this sequence.
    Summary(u64),
    /// What a person said: the `agent.entered` event at this sequence.
    User(u64),
    /// A turn of the acting model: the `turn.finished` event at this sequence, and its calls.
    Turn {
        /// The sequence.
        seq: u64,
        /// Its calls, in the model's order.
        calls: Vec<CallLine>,
    },
}

/// State of one call of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallLine {
    /// Also its id in the conversation.
    pub call: CallId,
    /// The tool's name as the model wrote it.
    pub said: Arc<str>,
    /// The resolved tool, if the agent sees one of that name.
    pub tool: Option<ToolName>,
    /// Whether a person must approve it.
    pub guard: CallGuard,
    /// The question, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<AgentQuestion>,
    /// Arguments that a person replaced the model's with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited: Option<Arc<Value>>,
    /// Its frame, while it is active.
    pub frame: Option<FrameId>,
    /// Its result, once it has one.
    pub settled: Option<CallSettlement>,
}

/// A question of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentQuestion {
    pub question: Arc<str>,
    #[serde(default)]
    pub context: Arc<str>,
}

/// What stands before a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CallGuard {
    /// No approval.
    Free,
    /// A person approves it.
    Approve,
    /// It is itself a question to a person.
    Clarify,
}

/// The one result of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CallSettlement {
    /// Its output: the `call.finished` event at this sequence.
    Output(u64),
    /// A person skipped it, and this stands for its output.
    Skipped(Arc<Value>),
    /// It failed, or was not even sent.
    Failed(Fault),
    /// A person said no, with these words.
    Rejected(Arc<str>),
    /// A person answered the question.
    Answered(Arc<str>),
    /// No one answered the question, or someone would not.
    Declined(Arc<str>),
    /// The turn was over before it came to this.
    NotRun(Arc<str>),
}

/// What an agent has spent in its run so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentUsage {
    /// Turns of its models, the router's not counted.
    pub steps: u32,
    /// Tokens read.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
    /// Millionths of a dollar, where the price is known.
    pub cost_micros: u64,
    /// Milliseconds that it worked, waits for people not counted.
    pub worked_ms: u64,
}

/// Result text of a call that was cut off.
const CUT_OFF: &str = "the run ended before this was done";

/// Equal for two calls of an agent with the same tool and arguments.
pub fn call_digest(said: &str, arguments: &Value) -> ContentHash {
    canonical::digest(&json!([said, arguments]))
}

impl Talk {
    /// The calls of the last turn.
    pub fn last_calls(&self) -> &[CallLine] {
        match self.lines.last() {
            Some(Line::Turn { calls, .. }) => calls,
            _ => &[],
        }
    }

    /// The same, to be changed.
    pub fn last_calls_mut(&mut self) -> &mut [CallLine] {
        match self.lines.last_mut() {
            Some(Line::Turn { calls, .. }) => calls,
            _ => &mut [],
        }
    }

    /// The conversation with nothing left open: a later reader sees a result for each call.
    #[must_use]
    pub fn closed(mut self) -> Self {
        for call in self.last_calls_mut() {
            call.frame = None;
            call.settled.get_or_insert_with(|| CallSettlement::NotRun(CUT_OFF.into()));
        }
        self
    }

    /// How many of the oldest lines a summary may stand for, where so many of the newest turns stay
    /// as they are. A line holds its calls and their results, so none is split from the other.
    pub fn compactable(&self, keep_turns: u32) -> u32 {
        let mut turns = 0;
        let mut kept = self.lines.len();
        for (index, line) in self.lines.iter().enumerate().rev() {
            if let Line::Turn { .. } = line {
                if turns == keep_turns {
                    break;
                }
                turns += 1;
            }
            kept = index;
        }
        // What a person said stays with the outcome.
        while kept > 0 && matches!(self.lines.get(kept - 1), Some(Line::User(_))) {
            kept -= 1;
        }
        // A summary, or what a person wants now, becomes no shorter.
        let old = self.lines.get(..kept).unwrap_or_default();
        if old.iter().any(|line| matches!(line, Line::Turn { .. })) {
            u32::try_from(kept).unwrap_or(u32::MAX)
        } else {
            0
        }
    }

    /// Whether something stands before so many of the newest requests.
    pub fn is_longer_than(&self, requests: u32) -> bool {
        self.first_of(requests) > 0
    }

    /// So many of the newest requests with all that followed from them; everything where there are
    /// fewer.
    #[must_use]
    pub fn newest(&self, requests: u32) -> Self {
        Self { lines: self.lines[self.first_of(requests)..].to_vec() }
    }

    /// The place of the oldest line that stays with so many of the newest requests.
    fn first_of(&self, requests: u32) -> usize {
        let asked = |(at, line): (usize, &Line)| matches!(line, Line::User(_)).then_some(at);
        let mut newest = self.lines.iter().enumerate().rev().filter_map(asked);
        match requests {
            0 => self.lines.len(),
            more => newest.nth(more as usize - 1).unwrap_or(0),
        }
    }

    /// Puts a summary in the place of so many of the oldest lines. What a person asked last stays,
    /// whatever is summed up: it is what the agent works on.
    pub fn compact(&mut self, lines: u32, summary: u64) {
        let gone = (lines as usize).min(self.lines.len());
        let is_user = |line: &&Line| matches!(line, Line::User(_));
        let (old, new) = self.lines.split_at(gone);
        let asked = if new.iter().any(|line| is_user(&line)) {
            None
        } else {
            old.iter().rev().find(is_user).cloned()
        };
        self.lines.splice(..gone, std::iter::once(Line::Summary(summary)).chain(asked));
    }

    /// The events that the lines name.
    pub fn sequences(&self) -> Vec<u64> {
        let mut all = Vec::new();
        for line in &self.lines {
            match line {
                Line::Base(seq) | Line::BaseOf(seq, _) | Line::Summary(seq) | Line::User(seq) => {
                    all.push(*seq)
                }
                Line::Turn { seq, calls } => {
                    all.push(*seq);
                    all.extend(calls.iter().filter_map(|call| match &call.settled {
                        Some(CallSettlement::Output(seq)) => Some(*seq),
                        _ => None,
                    }));
                }
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_requests_stay_with_what_came_of_them() {
        let turn = |seq| Line::Turn { seq, calls: Vec::new() };
        let lines = vec![
            Line::Base(1),
            Line::User(2),
            turn(3),
            turn(4),
            Line::User(5),
            Line::User(6),
            turn(7),
        ];
        let talk = Talk { lines };
        let left = |requests: u32| talk.newest(requests).lines.len();
        assert_eq!([0, 1, 2, 3, 4, 99].map(left), [0, 2, 3, 6, 7, 7]);
        assert_eq!(talk.newest(1).lines, [Line::User(6), turn(7)]);
        assert!(talk.is_longer_than(3) && !talk.is_longer_than(4));
    }
}
