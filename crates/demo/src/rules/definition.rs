//! A rules file, read and checked.

use super::patterns::Patterns;
use super::scope::{Expr, Text, Texts};
use regex::Regex;
use serde_json::Value;
use std::sync::Arc;

/// A whole file.
pub(super) struct Definition {
    pub(super) texts: Texts,
    pub(super) patterns: Arc<Patterns>,
    /// Tools that only look.
    pub(super) reads: Vec<String>,
    pub(super) tasks: TaskRules,
    pub(super) answers: Vec<AnswerRule>,
    /// What is worked out for every call.
    pub(super) call_lets: Vec<Let>,
    /// What is worked out for every turn.
    pub(super) lets: Vec<Let>,
    pub(super) rules: Vec<Rule>,
    pub(super) fallback: Fallback,
}

/// A name and how its value is worked out.
pub(super) struct Let {
    pub(super) name: String,
    pub(super) value: Expr,
}

/// How a request is read as tasks.
pub(super) struct TaskRules {
    /// Taken off where a part begins.
    pub(super) strip: Option<Regex>,
    /// A part that begins like this is a task of its own.
    pub(super) begins: Option<Regex>,
    /// What may stand before a colon and a list.
    pub(super) list: Option<Regex>,
    pub(super) kinds: Vec<Kind>,
    /// Where a request may be cut.
    pub(super) joints: Regex,
    /// What is never cut.
    pub(super) quotes: Regex,
}

/// A kind of task.
pub(super) struct Kind {
    pub(super) name: String,
    /// The type of tools that it needs.
    pub(super) tool_type: Option<String>,
    /// Parts after it that begin like no task are of the same kind.
    pub(super) inherits: bool,
    pub(super) patterns: Vec<Regex>,
    /// How such a part is read.
    pub(super) bare: Option<Regex>,
    pub(super) lets: Vec<Let>,
}

/// What the answer to a question is read as.
pub(super) struct AnswerRule {
    pub(super) question: Regex,
    /// The kind of an answer that begins like no task: an index.
    pub(super) kind: Option<usize>,
    pub(super) read: Text,
}

pub(super) struct Rule {
    pub(super) name: String,
    pub(super) line: u32,
    pub(super) conditions: Conditions,
    pub(super) lets: Vec<Let>,
    pub(super) reply: Reply,
}

/// When a rule holds: all that is said here must.
#[derive(Default)]
pub(super) struct Conditions {
    pub(super) turn: Option<TurnKind>,
    /// One of these fits what the person said.
    pub(super) said: Vec<Regex>,
    /// None of these does.
    pub(super) not_said: Vec<Regex>,
    /// These tools can be called.
    pub(super) tools: Vec<String>,
    /// The last result is of one of these tools.
    pub(super) after: Vec<String>,
    /// Whether the last call failed.
    pub(super) failed: Option<bool>,
    /// A call of the last turn that acted was refused with words that fit.
    pub(super) rejected: Option<Regex>,
    /// Whether that turn asked something that was answered.
    pub(super) clarified: Option<bool>,
    /// What the last result holds.
    pub(super) result: Vec<ResultTest>,
    /// An expression that is true.
    pub(super) test: Option<Expr>,
}

/// The two kinds of turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TurnKind {
    /// An answer in a form is asked for.
    Router,
    /// Tools can be called.
    Executor,
}

/// A condition on one value of a result.
pub(super) struct ResultTest {
    /// JSON Pointer to the value.
    pub(super) at: String,
    pub(super) is: Is,
}

/// What a value must be.
pub(super) enum Is {
    /// There, or not there.
    Exists(bool),
    /// Empty, or not: null, an empty text, list or map.
    Empty(bool),
    Equals(Value),
    Matches(Regex),
}

/// What a rule replies.
pub(super) enum Reply {
    Say(Text),
    /// JSON, where a form is asked for.
    Answer(Tree),
    Calls(Vec<CallRule>),
    /// A command, as text.
    Command(CommandRule),
}

/// A command that a rule writes, for an agent that speaks in commands.
pub(super) struct CommandRule {
    pub(super) tool: Tree,
    pub(super) arguments: Tree,
    pub(super) stop: bool,
    /// What stands beside these, by its key.
    pub(super) beside: Vec<(&'static str, Tree)>,
}

/// Calls that a rule makes: one, or one for each item of a list.
pub(super) struct CallRule {
    /// The list, and the name of its item.
    pub(super) for_each: Option<(Expr, String)>,
    pub(super) lets: Vec<Let>,
    /// The first that holds is made.
    pub(super) choices: Vec<Choice>,
}

/// One call that may be made.
pub(super) struct Choice {
    pub(super) test: Option<Expr>,
    pub(super) tool: Tree,
    pub(super) arguments: Tree,
}

/// A value with templates in it.
pub(super) enum Tree {
    Literal(Value),
    /// `{{ }}` alone: the value of the expression, whatever its kind.
    Value(Expr),
    Text(Text),
    List(Vec<Tree>),
    /// A field without a value is left out.
    Map(Vec<(String, Tree)>),
}

/// What is replied where no rule holds.
pub(super) struct Fallback {
    pub(super) say: Text,
    pub(super) answer: Option<Tree>,
}
