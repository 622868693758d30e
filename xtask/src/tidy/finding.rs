//! What a rule reports: which rule, where, what is wrong and what to do about it.

use std::fmt;

/// One house rule, by the name its reports and its exceptions use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Crates import only the crates below them.
    Layers,
    /// Modules import only the modules above them.
    Staircase,
    /// Time, randomness and tasks come through the engine's clock.
    Clock,
    /// HTTP clients are made in one crate.
    Clients,
    /// Words that may not stand in the code.
    Banned,
    /// Every file says what lives in it.
    Head,
    /// Names that invite everything.
    Name,
    /// No file knows the machine it was written on.
    MachinePath,
    /// One file names the realm.
    Realm,
    /// Limits that can be set have ranges.
    Ranges,
    /// Invariants name tests that exist.
    Invariants,
    /// Requirements of A2A name tests that exist.
    Requirements,
    /// Rules of the query language name cases that show them.
    QueryRules,
    /// Links lead somewhere.
    Links,
    /// An exception must still be needed.
    Exception,
}

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Rule::Layers => "layers",
            Rule::Staircase => "staircase",
            Rule::Clock => "clock",
            Rule::Clients => "clients",
            Rule::Banned => "banned",
            Rule::Head => "head",
            Rule::Name => "name",
            Rule::MachinePath => "machine-path",
            Rule::Realm => "realm",
            Rule::Ranges => "ranges",
            Rule::Invariants => "invariants",
            Rule::Requirements => "requirements",
            Rule::QueryRules => "query-rules",
            Rule::Links => "links",
            Rule::Exception => "exception",
        })
    }
}

/// One broken rule at one place, printed as `path:line: rule: what is wrong; what to do`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// From the workspace root, with forward slashes.
    pub path: String,
    /// Counted from one.
    pub line: usize,
    /// The rule that was broken.
    pub rule: Rule,
    /// What is wrong, with the values in backticks.
    pub wrong: String,
    pub remedy: &'static str,
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, rule, wrong, remedy } = self;
        write!(formatter, "{path}:{line}: {rule}: {wrong}; {remedy}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_reads_as_one_line() {
        let finding = Finding {
            path: "crates/kernel/src/definition/plan.rs".to_owned(),
            line: 7,
            rule: Rule::Banned,
            wrong: "`dbg!` is not allowed".to_owned(),
            remedy: "remove it",
        };
        assert_eq!(
            finding.to_string(),
            "crates/kernel/src/definition/plan.rs:7: banned: `dbg!` is not allowed; remove it"
        );
    }
}
