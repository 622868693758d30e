//! The one list of places where a house rule does not hold, each with its reason. An exception
//! that nothing needs any more is itself a finding, so the list can only shrink by itself.

use super::finding::{Finding, Rule};

/// One file that may break one rule.
pub struct Exception {
    /// From the workspace root, with forward slashes.
    pub path: &'static str,
    /// The rule it may break.
    pub rule: Rule,
    /// Why, for the next reader; an empty one does not count.
    pub reason: &'static str,
}

/// All exceptions there are.
pub const EXCEPTIONS: &[Exception] = &[
    Exception {
        path: "crates/a2a/src/card_keys.rs",
        rule: Rule::Clock,
        reason: "a signature needs the randomness of its library, and no simulation signs cards",
    },
    Exception {
        path: "crates/fixture/src/test_agent/mod.rs",
        rule: Rule::Banned,
        reason: "a test agent that cannot start ends its test with the reason",
    },
    Exception {
        path: "crates/testkit/src/scene/mod.rs",
        rule: Rule::Banned,
        reason: "a scene that is not written well ends its test with the reason",
    },
    Exception {
        path: "crates/testkit/src/scene/stage.rs",
        rule: Rule::Banned,
        reason: "a scene that is not written well ends its test with the reason",
    },
    Exception {
        path: "crates/testkit/src/scene/tools.rs",
        rule: Rule::Banned,
        reason: "a scene that is not written well ends its test with the reason",
    },
    Exception {
        path: "crates/testkit/src/sim/machine/vfs.rs",
        rule: Rule::Banned,
        reason: "SQLite asks for its file system in C: the one place that is not safe Rust",
    },
    Exception {
        path: "crates/upstreams/src/mcp/connection/attend.rs",
        rule: Rule::Clock,
        reason: "a biased `select!` has a fixed order, and no simulation steps connections",
    },
    Exception {
        path: "crates/upstreams/src/mcp/calls.rs",
        rule: Rule::Clock,
        reason: "a biased `select!` has a fixed order, and no simulation steps connections",
    },
    Exception {
        path: "crates/upstreams/src/mcp/connection/supervisor.rs",
        rule: Rule::Clock,
        reason: "a biased `select!` has a fixed order, and no simulation steps connections",
    },
    Exception {
        path: "crates/upstreams/src/upstream.rs",
        rule: Rule::Clock,
        reason: "a biased `select!` has a fixed order, and no simulation steps connections",
    },
    Exception {
        path: "crates/upstreams/src/children/supervisor.rs",
        rule: Rule::Clock,
        reason: "a biased `select!` has a fixed order, and no simulation steps connections",
    },
    Exception {
        path: "crates/upstreams/src/mcp/http/response_stream.rs",
        rule: Rule::Clock,
        reason: "a biased `select!` has a fixed order, and no simulation steps connections",
    },
    Exception {
        path: "crates/upstreams/src/mcp/stdio/mod.rs",
        rule: Rule::Clock,
        reason: "a biased `select!` has a fixed order, and no simulation steps connections",
    },
    Exception {
        path: "crates/upstreams/src/mcp/scripted.rs",
        rule: Rule::Banned,
        reason: "for tests only: a scene that goes wrong ends its test",
    },
    Exception {
        path: "crates/upstreams/src/mcp/tool/test_server.rs",
        rule: Rule::Banned,
        reason: "for tests only: a scene that goes wrong ends its test",
    },
    Exception {
        path: "crates/upstreams/src/stage.rs",
        rule: Rule::Banned,
        reason: "for tests only: a scene that goes wrong ends its test",
    },
];

const THIS_FILE: &str = "xtask/src/tidy/exceptions.rs";

/// Removes the findings that are excepted and adds one for every exception that is not in order.
pub fn apply(findings: Vec<Finding>, exceptions: &[Exception]) -> Vec<Finding> {
    let faults: Vec<Finding> =
        exceptions.iter().filter_map(|exception| fault(exception, &findings)).collect();
    findings
        .into_iter()
        .filter(|finding| !exceptions.iter().any(|exception| covers(exception, finding)))
        .chain(faults)
        .collect()
}

fn covers(exception: &Exception, finding: &Finding) -> bool {
    exception.path == finding.path && exception.rule == finding.rule
}

fn fault(exception: &Exception, findings: &[Finding]) -> Option<Finding> {
    let Exception { path, rule, reason } = exception;
    let (wrong, remedy) = if reason.trim().is_empty() {
        (format!("the exception for `{path}` from `{rule}` has no reason"), "give one")
    } else if !findings.iter().any(|finding| covers(exception, finding)) {
        let wrong = format!("nothing needs the exception for `{path}` from `{rule}` ({reason})");
        (wrong, "remove it from the list")
    } else {
        return None;
    };
    Some(Finding { path: THIS_FILE.to_owned(), line: 1, rule: Rule::Exception, wrong, remedy })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(path: &str, rule: Rule) -> Finding {
        Finding { path: path.to_owned(), line: 3, rule, wrong: String::new(), remedy: "" }
    }

    #[test]
    fn an_exception_covers_one_rule_in_one_file() {
        let findings = vec![
            finding("a.rs", Rule::Clock),
            finding("a.rs", Rule::Head),
            finding("b.rs", Rule::Clock),
        ];
        let exceptions = [Exception { path: "a.rs", rule: Rule::Clock, reason: "a writer thread" }];
        let expected = [finding("a.rs", Rule::Head), finding("b.rs", Rule::Clock)];
        assert_eq!(apply(findings, &exceptions), expected);
    }

    #[test]
    fn an_unused_exception_is_a_finding() {
        let exceptions = [Exception { path: "a.rs", rule: Rule::Clock, reason: "a writer thread" }];
        let rules: Vec<Rule> =
            apply(Vec::new(), &exceptions).iter().map(|finding| finding.rule).collect();
        assert_eq!(rules, [Rule::Exception]);
    }

    #[test]
    fn an_exception_without_a_reason_is_a_finding() {
        let exceptions = [Exception { path: "a.rs", rule: Rule::Clock, reason: " " }];
        let left = apply(vec![finding("a.rs", Rule::Clock)], &exceptions);
        assert_eq!(left.len(), 1);
        assert!(left[0].wrong.contains("has no reason"), "{left:?}");
    }
}
