//! The report of all checks: a line each for people, or a table where routes to an upstream are
//! compared; an object each for programs.

use crate::exit::{Exit, Failure, Result};
use crate::terminal::output::{Output, counted, printable};
use crate::terminal::screen::Tone;
use crate::terminal::table::table;
use kernel::definition::plan::mistake::Mistake;
use serde_json::{Value, json};
use std::fmt;

/// The columns of a table.
const HEADS: [&str; 5] = ["check", "verdict", "direct", "gateway 2026", "gateway 2025"];

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

/// The same of one upstream, by each way to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ways<T> {
    pub(super) direct: T,
    /// Through the gateway, by a client of 2026-07-28.
    pub(super) stateless: T,
    /// Through the gateway, by a client with a handshake.
    pub(super) handshake: T,
}

impl<T> Ways<T> {
    pub(super) fn map<U>(&self, of: impl Fn(&T) -> U) -> Ways<U> {
        Ways {
            direct: of(&self.direct),
            stateless: of(&self.stateless),
            handshake: of(&self.handshake),
        }
    }

    pub(super) fn all(&self, holds: impl Fn(&T) -> bool) -> bool {
        holds(&self.direct) && holds(&self.stateless) && holds(&self.handshake)
    }
}

/// What one check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    /// How bad it is.
    pub(super) level: Level,
    name: String,
    /// What it saw.
    what: String,
    hint: Option<String>,
    /// What each way shows, where they are compared; then `what` is the verdict.
    ways: Option<Ways<String>>,
}

impl Finding {
    fn new(level: Level, name: &str, what: impl Into<String>, hint: Option<&str>) -> Self {
        let hint = hint.map(str::to_owned);
        Self { level, name: name.to_owned(), what: what.into(), hint, ways: None }
    }

    pub(super) fn ok(name: &str, what: impl Into<String>) -> Self {
        Self::new(Level::Ok, name, what, None)
    }

    /// It works, but someone should know.
    pub(super) fn warn(name: &str, what: impl Into<String>, hint: &str) -> Self {
        Self::new(Level::Warn, name, what, Some(hint))
    }

    /// It does not work.
    pub(super) fn fail(name: &str, what: impl Into<String>, hint: &str) -> Self {
        Self::new(Level::Fail, name, what, Some(hint))
    }

    /// It does not work, for the reason that another command would tell.
    pub(super) fn failed(name: &str, failure: &Failure) -> Self {
        let mut what = failure.message.clone();
        for line in &failure.lines {
            what = format!("{what}; {line}");
        }
        Self::new(Level::Fail, name, what, failure.hint.as_deref())
    }

    /// It does not work, for all that is wrong with its settings.
    pub(super) fn mistaken(name: &str, mistakes: &[Mistake], hint: &str) -> Self {
        let lines: Vec<String> = mistakes.iter().map(Mistake::to_string).collect();
        Self::fail(name, lines.join("; "), hint)
    }

    /// How many mistakes of each kind are in so many files or plans.
    pub(super) fn counting<'m>(
        name: &str,
        read: &str,
        mistakes: impl IntoIterator<Item = &'m Mistake>,
        hint: &str,
    ) -> Self {
        let (errors, warnings): (Vec<&Mistake>, Vec<&Mistake>) =
            mistakes.into_iter().partition(|mistake| mistake.is_error());
        let wrong = counted(errors.len(), "error");
        let what = format!("{read}, {wrong}, {}", counted(warnings.len(), "warning"));
        match (errors.len(), warnings.len()) {
            (0, 0) => Self::ok(name, what),
            (0, _) => Self::warn(name, what, hint),
            _ => Self::fail(name, what, hint),
        }
    }

    /// What each way shows, and whether the gateway shows what the upstream does.
    pub(super) fn compared(name: &str, ways: Ways<String>, is_same: bool) -> Self {
        let (level, what) = if is_same { (Level::Ok, "same") } else { (Level::Fail, "differs") };
        Self { ways: Some(ways), ..Self::new(level, name, what, None) }
    }

    /// The finding for programs.
    pub(super) fn to_json(&self) -> Value {
        if let Some(Ways { direct, stateless, handshake }) = &self.ways {
            return json!({"check": self.name, "direct": direct, "stateless": stateless,
                "handshake": handshake, "same": self.level == Level::Ok});
        }
        let mut check = json!({"level": self.level.name(), "name": self.name, "what": self.what});
        if let Some(hint) = &self.hint {
            check["hint"] = json!(hint);
        }
        check
    }

    /// Its row in a table, where ways are compared.
    fn row(&self) -> Option<Vec<String>> {
        let Ways { direct, stateless, handshake } = self.ways.as_ref()?;
        Some(Vec::from([&self.name, &self.what, direct, stateless, handshake].map(String::clone)))
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

/// The findings of one command.
#[derive(Debug)]
pub(super) struct Report {
    /// The upstream to which the ways are compared.
    upstream: Option<String>,
    findings: Vec<Finding>,
}

impl Report {
    pub(super) fn of(findings: Vec<Finding>) -> Self {
        Self { upstream: None, findings }
    }

    /// The comparison of the ways to this upstream.
    pub(super) fn of_upstream(name: &str, findings: Vec<Finding>) -> Self {
        Self { upstream: Some(name.to_owned()), findings }
    }

    /// Tells it, and ends with 8 where something does not work or differs.
    pub(super) fn tell(&self, output: Output) -> Result<Exit> {
        let count = |level: Level| self.findings.iter().filter(|one| one.level == level).count();
        let fails = count(Level::Fail);
        let checks: Vec<Value> = self.findings.iter().map(Finding::to_json).collect();
        let document = match &self.upstream {
            Some(name) => json!({"upstream": name, "same": fails == 0, "checks": checks}),
            None => json!({"healthy": fails == 0, "checks": checks}),
        };
        output.either(&document, || self.print(output))?;
        let looked = counted(checks.len(), "check");
        let warnings = counted(count(Level::Warn), "warning");
        output.talk(&format!("{looked}, {fails} failed, {warnings}"));
        Ok(if fails == 0 { Exit::Ok } else { Exit::Unwell })
    }

    fn print(&self, output: Output) -> Result<()> {
        if self.upstream.is_some() {
            return output.text(&self.table());
        }
        let line = |finding: &Finding| {
            output.judged(Tone::of_status(finding.level.name()), &finding.to_string())
        };
        self.findings.iter().try_for_each(line)
    }

    fn table(&self) -> String {
        table(&HEADS, self.findings.iter().filter_map(Finding::row))
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

    #[test]
    fn compared_routes_are_columns() {
        let ways = Ways { direct: 1, stateless: 1, handshake: 2 }.map(ToString::to_string);
        let finding = Finding::compared("call a", ways, false);
        let expected = json!({"check": "call a", "direct": "1", "stateless": "1",
            "handshake": "2", "same": false});
        assert_eq!(finding.to_json(), expected);
        let text = Report::of_upstream("up", vec![finding]).table();
        assert!(text.starts_with("CHECK"), "{text}");
        assert!(text.ends_with("call a  differs  1       1             2"), "{text}");
    }
}
