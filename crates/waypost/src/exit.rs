//! Exit codes, and failures with a message, a cause and a hint.

use serde_json::{Value, json};
use std::fmt;
use std::process::ExitCode;

/// The exit codes, for scripts and agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// It worked.
    Ok = 0,
    /// It did not.
    Failed = 1,
    /// The command line, the project or the input is wrong.
    Usage = 2,
    /// A run waits for a person.
    Paused = 3,
    /// Not with these credentials.
    Auth = 4,
    /// A tool or an upstream failed.
    Upstream = 5,
    /// The server does not answer.
    Unreachable = 6,
    /// Policy says no.
    Denied = 7,
    /// `waypost doctor` found something that does not work.
    Unwell = 8,
    /// It took longer than it may.
    Timeout = 124,
    /// Someone pressed Ctrl-C.
    Interrupted = 130,
}

impl Exit {
    /// All of them with what they mean, in the order of their numbers.
    pub(crate) const ALL: &'static [(Exit, &'static str)] = &[
        (Exit::Ok, "it worked"),
        (Exit::Failed, "it failed: the run, the test or the request"),
        (Exit::Usage, "the command line, the project or the input is wrong"),
        (Exit::Paused, "the run waits for a person: see `waypost inbox ls`"),
        (Exit::Auth, "not with these credentials"),
        (Exit::Upstream, "a tool or an upstream failed"),
        (Exit::Unreachable, "the server does not answer"),
        (Exit::Denied, "policy says no"),
        (Exit::Unwell, "`waypost doctor` found something that does not work"),
        (Exit::Timeout, "it took longer than it may; it may still be running"),
        (Exit::Interrupted, "interrupted"),
    ];

    /// The number that the shell sees.
    pub(crate) fn number(self) -> u8 {
        self as u8
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit.number())
    }
}

/// The result of a command, or of a part of one.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct Failure {
    /// How the process ends.
    pub(crate) exit: Exit,
    /// A stable word for programs.
    pub(crate) code: String,
    /// What failed, where and why. Empty when there is no one left to tell: a closed pipe.
    pub(crate) message: String,
    /// What to do: a command where one helps.
    pub(crate) hint: Option<String>,
    /// More for people, one line each: the faulty values.
    pub(crate) lines: Vec<String>,
    /// More for programs: the whole problem that the server sent.
    pub(crate) problem: Option<Box<Value>>,
}

impl Failure {
    /// A failure with a stable code.
    pub(crate) fn new(exit: Exit, code: &str, message: impl Into<String>) -> Self {
        Self {
            exit,
            code: code.to_owned(),
            message: message.into(),
            hint: None,
            lines: Vec::new(),
            problem: None,
        }
    }

    /// The command line, the project or the input is wrong.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, "usage", message)
    }

    /// The reader of standard output went away: no failure of ours, and no one to tell.
    pub(crate) fn unread() -> Self {
        Self::new(Exit::Ok, "unread", String::new())
    }

    /// The same with a hint.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same with more lines for people.
    pub(crate) fn lines(mut self, lines: impl IntoIterator<Item = impl ToString>) -> Self {
        self.lines = lines.into_iter().map(|line| line.to_string()).collect();
        self
    }

    /// The same with more for programs.
    pub(crate) fn problem(mut self, problem: Value) -> Self {
        self.problem = Some(Box::new(problem));
        self
    }

    /// The failure as the one line that `--json` writes to standard error.
    pub(crate) fn to_json(&self) -> Value {
        let mut line = json!({
            "code": self.code,
            "error": self.message,
            "exit": self.exit.number(),
        });
        if let Some(hint) = &self.hint {
            line["hint"] = json!(hint);
        }
        if !self.lines.is_empty() {
            line["details"] = json!(self.lines);
        }
        if let Some(problem) = &self.problem {
            line["problem"] = (**problem).clone();
        }
        line
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", indented(&self.message))?;
        for line in &self.lines {
            write!(f, "\n  {}", indented(line))?;
        }
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {}", indented(hint)),
            None => Ok(()),
        }
    }
}

/// What others wrote cannot begin a line that looks like one of ours.
fn indented(text: &str) -> String {
    text.replace('\n', "\n    ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_several_lines_cannot_pass_for_a_hint() {
        let failure = Failure::usage("no\nhint: run this");
        assert_eq!(failure.to_string(), "error: no\n    hint: run this");
    }

    #[test]
    fn a_failure_reads_the_same_to_people_and_programs() {
        let failure = Failure::usage("`a` is twice there").hint("leave one out");
        assert_eq!(failure.to_string(), "error: `a` is twice there\nhint: leave one out");
        let expected = json!({
            "error": "`a` is twice there",
            "code": "usage",
            "exit": 2,
            "hint": "leave one out",
        });
        assert_eq!(failure.to_json(), expected);
    }

    #[test]
    fn every_exit_code_is_different() {
        let mut numbers: Vec<u8> = Exit::ALL.iter().map(|(exit, _)| exit.number()).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6, 7, 8, 124, 130]);
        numbers.dedup();
        assert_eq!(numbers.len(), Exit::ALL.len());
    }
}
