//! Which tests belong to `cargo xtask test` and which to `cargo xtask prove`. A test program is
//! named by its crate and its target, `server/it`; the unit tests of a crate by the crate alone.

/// What `cargo xtask test` builds: unit tests, and the integration tests that are quick or of which
/// some are. Benchmarks and long tests are left to `prove`. Targets are selected and not crates:
/// another selection of crates could build dependencies again with other features.
pub const QUICK_TARGETS: &[&str] = &[
    "--lib", "--bin=waypost", "--bin=xtask", "--test=it", "--test=scenes", "--test=failures",
    "--test=rules", "--test=contract", "--test=descriptors", "--test=a2a_json", "--test=a2a_proto",
    "--test=simulation", "--test=language",
];
/// Programs that only `prove` runs.
const LONG: &[&str] = &[
    "bench", "fixture/a2a", "fixture/process", "fixture/upstreams", "fixture/waiting",
    "testkit/fuzz",
];
/// Programs of which `test` runs only these tests, and `prove` all.
const SAMPLED: &[(&str, &[&str])] = &[
    ("kernel/failures", &["failed_steps_of_a_plan_end_as_their_rules_say"]),
    (
        "testkit/simulation",
        &[
            "a_few_seeds_of_each_kind_lose_nothing_and_repeat_nothing",
            "acknowledging_before_the_commit_is_caught",
        ],
    ),
];
/// Programs of which `prove` runs only these tests, which are long, and `test` all others: words
/// that their names contain.
const SPLIT: &[(&str, &[&str])] = &[
    (
        "engine/it",
        &[
            "blobs::an_output_of_64_mib",
            "breaker::a_rule_waits_for_a_refused_call",
            "failure_rules::a_clock_that_is_set_back",
            "failure_rules::a_restart_neither_forgets_a_wait",
            "failure_rules::of_a_person_and_a_rule_exactly_one",
            "retention::a_long_journal_is_exported",
        ],
    ),
    ("identity", &["tests::fuzz::"]),
    (
        "server/it",
        &[
            "a2a_grpc::a_client_waits_as_long",
            "a2a_proxy::every_failure_has_its_source",
            "fuzz_",
            "hostile::no_",
            "own_logins::a_run_uses_only_the_login",
            "parked::sessions_that_cannot_be_read",
            "tls::a_handshake_that_does_not_end",
            "tls::a_new_certificate_is_used",
            "transparent::a_call_looks_as_it_would",
        ],
    ),
    (
        "waypost/it",
        &[
            "a2a::a_message_is_answered_in_every_dialect",
            "crash::a_payment_outlives_every_crash",
            "demo::every_story",
            "errors::every_error",
            "every_command::",
            "telemetry::",
            "thread_contract_drawn::",
            "thread_contract_kill::",
            "watch::",
        ],
    ),
];

/// The tests of one of the two commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Those of `test`.
    Quick,
    /// Those of `prove`.
    Long,
}

impl Share {
    /// What its folder of logs is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quick => "tests",
            Self::Long => "long-tests",
        }
    }

    /// What makes this program run the tests that belong to it; none if it has no such tests.
    pub fn filters(self, program: &str) -> Option<Vec<&'static str>> {
        let is_long = LONG.contains(&program);
        match (self, listed(SAMPLED, program), listed(SPLIT, program)) {
            (Self::Quick, Some(sample), _) => Some(sample.to_vec()),
            (Self::Quick, None, Some(long)) => {
                Some(long.iter().flat_map(|word| ["--skip", word]).collect())
            }
            (Self::Quick, None, None) => (!is_long).then(Vec::new),
            (Self::Long, Some(_), _) => Some(Vec::new()),
            (Self::Long, None, Some(long)) => Some(long.to_vec()),
            (Self::Long, None, None) => is_long.then(Vec::new),
        }
    }
}

/// Whether `test` runs a test of this program; its name has its modules before it.
pub fn is_quick(program: &str, test: &str) -> bool {
    let names_it = |words: &[&str]| words.iter().any(|word| test.contains(word));
    match (listed(SAMPLED, program), listed(SPLIT, program)) {
        (Some(sample), _) => names_it(sample),
        (None, Some(long)) => !names_it(long),
        (None, None) => !LONG.contains(&program),
    }
}

fn listed(
    table: &[(&str, &'static [&'static str])],
    program: &str,
) -> Option<&'static [&'static str]> {
    table.iter().find(|(name, _)| *name == program).map(|(_, tests)| *tests)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell;
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    #[test]
    fn each_test_belongs_to_one_command_and_a_sampled_program_wholly_to_prove() {
        let quick = |program| Share::Quick.filters(program).map(|words| words.join(" "));
        let long = |program| Share::Long.filters(program).map(|words| words.join(" "));
        assert_eq!((quick("kernel").as_deref(), long("kernel")), (Some(""), None));
        assert_eq!((quick("bench"), long("bench").as_deref()), (None, Some("")));
        let fuzz = "tests::fuzz::";
        let expected = (Some(format!("--skip {fuzz}")), Some(fuzz.to_owned()));
        assert_eq!((quick("identity"), long("identity")), expected);
        let simulation = "testkit/simulation";
        assert!(quick(simulation).is_some_and(|sample| sample.contains("a_few_seeds")));
        assert_eq!(long(simulation).as_deref(), Some(""));
    }

    #[test]
    fn a_test_is_quick_where_its_filters_let_it_through() {
        assert!(is_quick("kernel", "limits::every_default_is_in_its_range"));
        assert!(!is_quick("fixture/process", "kill::a_killed_server_loses_nothing"));
        assert!(!is_quick("identity", "tests::fuzz::headers"));
        assert!(is_quick("identity", "tests::jwt::headers"));
        assert!(is_quick("testkit/simulation", "acknowledging_before_the_commit_is_caught"));
        assert!(!is_quick("testkit/simulation", "a_disk_that_does_not_sync_is_caught"));
        assert!(is_quick("waypost/it", "telemetry_kill::a_run_has_one_trace"));
    }

    /// A name that no test has any more would leave a test to neither command, or to both.
    #[test]
    fn programs_and_tests_that_are_named_here_exist() {
        let crates = shell::workspace_root().join("crates");
        let long = LONG.iter().filter(|name| **name != "bench").map(|name| (*name, &[][..]));
        for (program, tests) in SAMPLED.iter().chain(SPLIT).copied().chain(long) {
            let place = match program.split_once('/') {
                Some((package, target)) => crates.join(package).join("tests").join(target),
                None => crates.join(program).join("src"),
            };
            let file = place.with_extension("rs");
            let place = if file.is_file() { file } else { place };
            assert!(place.exists(), "no program `{program}`");
            for test in tests {
                let word = test.rsplit("::").find(|part| !part.is_empty()).unwrap_or_default();
                let mut grep = Command::new("grep");
                let found = grep.args(["-rqE", &format!("(fn|mod) {word}")]).arg(&place).status();
                assert!(found.is_ok_and(|status| status.success()), "{program}: no `{test}`");
            }
        }
    }

    /// The name of a test program that is neither built by `test` nor left to `prove` is run by
    /// neither.
    #[test]
    fn every_test_program_is_run_by_one_of_the_commands() {
        let mut programs = 0;
        for package in entries(&shell::workspace_root().join("crates")) {
            for place in entries(&package.join("tests")) {
                let is_program = place.extension().is_some_and(|end| end == "rs")
                    || place.join("main.rs").is_file();
                if !is_program {
                    continue;
                }
                programs += 1;
                let name = |path: &Path| path.file_stem().unwrap().to_string_lossy().into_owned();
                let program = format!("{}/{}", name(&package), name(&place));
                let target = format!("--test={}", name(&place));
                let is_built = QUICK_TARGETS.contains(&target.as_str());
                assert!(is_built || LONG.contains(&program.as_str()), "nothing runs `{program}`");
            }
        }
        assert!(programs > 15, "only {programs} test programs were found");
    }

    /// What is in a folder; nothing if there is none.
    fn entries(folder: &Path) -> Vec<PathBuf> {
        let found = fs::read_dir(folder).into_iter().flatten().flatten();
        found.map(|entry| entry.path()).collect()
    }
}
