//! What a check found: one line for people, one object for programs.

use crate::exit::Failure;
use crate::terminal::output::printable;
use crate::terminal::screen::Tone;
use kernel::definition::plan::mistake::Mistake;
use serde_json::{Value, json};
use std::fmt;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Ok,
    /// It works, but someone should know.
    Warn,
    Fail,
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Level::Ok => "ok",
            Level::Warn => "warn",
            Level::Fail => "fail",
        }
    }
}

/// What one check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    /// How bad it is.
    pub(super) level: Level,
    /// The check.
    name: &'static str,
    /// What it saw.
    what: String,
    hint: Option<String>,
}

impl Finding {
    pub(super) fn ok(name: &'static str, what: impl Into<String>) -> Self {
        Self { level: Level::Ok, name, what: what.into(), hint: None }
    }

    /// It works, but someone should know.
    pub(super) fn warn(name: &'static str, what: impl Into<String>, hint: &str) -> Self {
        Self { level: Level::Warn, name, what: what.into(), hint: Some(hint.to_owned()) }
    }

    /// It does not work.
    pub(super) fn fail(name: &'static str, what: impl Into<String>, hint: &str) -> Self {
        Self { level: Level::Fail, name, what: what.into(), hint: Some(hint.to_owned()) }
    }

    /// It does not work, for the reason that another command would tell.
    pub(super) fn failed(name: &'static str, failure: &Failure) -> Self {
        let mut what = failure.message.clone();
        for line in &failure.lines {
            what = format!("{what}; {line}");
        }
        Self { level: Level::Fail, name, what, hint: failure.hint.clone() }
    }

    /// It does not work, for all that is wrong with its settings.
    pub(super) fn mistaken(name: &'static str, mistakes: &[Mistake], hint: &str) -> Self {
        let lines: Vec<String> = mistakes.iter().map(Mistake::to_string).collect();
        Self::fail(name, lines.join("; "), hint)
    }

    /// How its level is shown.
    pub(super) fn tone(&self) -> Tone {
        Tone::of_status(self.level.name())
    }

    /// The finding for programs.
    pub(super) fn to_json(&self) -> Value {
        let mut check = json!({"level": self.level.name(), "name": self.name, "what": self.what});
        if let Some(hint) = &self.hint {
            check["hint"] = json!(hint);
        }
        check
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = printable(&self.what).replace('\n', " ");
        write!(f, "{:4}  {:6}  {what}", self.level.name(), self.name)?;
        match &self.hint {
            Some(hint) => write!(f, "  hint: {hint}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_one_line() {
        let finding = Finding::fail("port", "8420 is\ntaken", "`waypost up --port 0`");
        assert_eq!(finding.to_string(), "fail  port    8420 is taken  hint: `waypost up --port 0`");
        assert_eq!(Finding::ok("clock", "2026").to_string(), "ok    clock   2026");
        let expected = json!({
            "level": "fail",
            "name": "port",
            "what": "8420 is\ntaken",
            "hint": "`waypost up --port 0`",
        });
        assert_eq!(finding.to_json(), expected);
    }
}
