//! One finding of a check: a rule of the specification, its section, and whether it holds.

use serde_json::{Value, json};

/// How strongly the specification words a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Must,
    Should,
}

/// Whether a rule holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    Holds,
    /// It does not, and what was seen.
    Broken(String),
    /// That could not be seen, and why.
    Unknown(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    /// The section that has the rule.
    pub(super) section: &'static str,
    pub(super) level: Level,
    /// The interface that was asked; empty for the card.
    pub(super) interface: String,
    pub(super) rule: &'static str,
    pub(super) verdict: Verdict,
}

impl Finding {
    /// Whether a rule that must hold does not.
    pub(super) fn is_wrong(&self) -> bool {
        self.level == Level::Must && matches!(self.verdict, Verdict::Broken(_))
    }

    /// How it stands in a word.
    pub(super) fn word(&self) -> &'static str {
        match (&self.verdict, self.level) {
            (Verdict::Holds, _) => "ok",
            (Verdict::Unknown(_), _) => "unknown",
            (Verdict::Broken(_), Level::Must) => "wrong",
            (Verdict::Broken(_), Level::Should) => "warn",
        }
    }

    pub(super) fn seen(&self) -> &str {
        match &self.verdict {
            Verdict::Holds => "",
            Verdict::Broken(seen) | Verdict::Unknown(seen) => seen,
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let level = match self.level {
            Level::Must => "must",
            Level::Should => "should",
        };
        json!({"section": self.section, "level": level, "interface": self.interface,
            "rule": self.rule, "result": self.word(), "found": self.seen()})
    }
}

/// All findings, in the order in which they were made.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) findings: Vec<Finding>,
    /// The interface that is asked now.
    pub(super) interface: String,
}

impl Report {
    /// A rule that must hold; what is wrong is the error.
    pub(super) fn must(
        &mut self,
        section: &'static str,
        rule: &'static str,
        outcome: Result<(), String>,
    ) {
        self.add(section, Level::Must, rule, outcome);
    }

    /// A rule that should hold.
    pub(super) fn should(
        &mut self,
        section: &'static str,
        rule: &'static str,
        outcome: Result<(), String>,
    ) {
        self.add(section, Level::Should, rule, outcome);
    }

    /// A rule that could not be looked at.
    pub(super) fn unknown(&mut self, section: &'static str, rule: &'static str, why: &str) {
        let interface = self.interface.clone();
        let verdict = Verdict::Unknown(why.to_owned());
        self.findings.push(Finding { section, level: Level::Must, interface, rule, verdict });
    }

    fn add(
        &mut self,
        section: &'static str,
        level: Level,
        rule: &'static str,
        outcome: Result<(), String>,
    ) {
        let verdict = match outcome {
            Ok(()) => Verdict::Holds,
            Err(seen) => Verdict::Broken(seen),
        };
        let interface = self.interface.clone();
        self.findings.push(Finding { section, level, interface, rule, verdict });
    }
}

/// Whether there are no complaints.
pub(super) fn none_of(complaints: Vec<String>) -> Result<(), String> {
    if complaints.is_empty() { Ok(()) } else { Err(complaints.join("; ")) }
}
