//! The step `client-conformance`: the official MCP conformance suite against our client. The suite
//! plays the servers and starts `fixture mcp-client` (`crates/fixture`) once for each scenario.
//! What is known to fail stands in `crates/testkit/client`, with the reason, and must.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use crate::child;
use crate::shell::{self, Failure};
use crate::steps::baseline::{self, Entry};
use crate::steps::conformance::{self, PLAY_PAUSE, PLAYS_MAX};
use crate::steps::fixtures;
use crate::steps::interpreters::{self, Node};

/// How the suite starts it, from the folder that holds it: blanks in a path would be taken for
/// arguments.
const COMMAND: &str = "./fixture mcp-client";
/// The last line that it writes where all went well on its side, too.
const DONE: &str = "mcp-client: done";
/// The sets of scenarios, and how the suite names each: what two revisions require, each at
/// its own wire, and logins as 2025-03-26 had them, which no set requires any more.
const SETS: &[(&str, [&str; 2])] = &[
    ("2025-11-25", ["--requirements", "2025-11-25"]),
    ("2026-07-28", ["--requirements", "2026-07-28"]),
    ("backcompat", ["--suite", "backcompat"]),
];
/// Where the lists of what is expected to fail are, from the workspace root: `<set>.yml`.
const BASELINES: &str = "crates/testkit/client";
/// How long the suite waits for one scenario; all of a set are played at the same time. The client
/// gives up before.
const SCENARIO_WAIT_MS: &str = "240000";
const RUN_WAIT: Duration = Duration::from_secs(2_400);
/// Here the suite measures when our client comes back, and finds 200 ms more than it waits for too
/// late. A busy machine may take as long by itself, but not each time.
const TIMED: &[&str] = &["sse-retry"];
/// How much of what the client complained of is shown.
const COMPLAINT_LINES: usize = 6;

/// `cargo xtask client-conformance`: builds what it needs, then does what the step does.
pub fn run_alone(root: &Path) -> Result<(), Failure> {
    let target = shell::target_folder(root)?;
    fixtures::build(root, &target)?;
    run(root, &target)
}

/// Runs all sets against the built client and judges them at the end.
pub fn run(root: &Path, target: &Path) -> Result<(), Failure> {
    let node = interpreters::node(root, target)?;
    let judged: Vec<Result<(), Failure>> =
        SETS.iter().map(|set| run_set(set, root, target, &node)).collect();
    judged.into_iter().collect()
}

/// Plays a set, and what was only late again, and judges it.
fn run_set(
    set: &(&str, [&str; 2]),
    root: &Path,
    target: &Path,
    node: &Node,
) -> Result<(), Failure> {
    let name = set.0;
    let list = root.join(BASELINES).join(name).with_extension("yml");
    let expected = baseline::read(&list)?;
    let mut told = play(set, &list, target, node)?;
    if is_only_late(&expected, &told.scenarios) {
        told.conformant = play_late(name, target, node, &mut told.scenarios)?;
    }
    judge(name, &expected, &told)
}

/// Plays what was late alone until it passes, which is noted: whether all of it did.
fn play_late(
    revision: &str,
    target: &Path,
    node: &Node,
    scenarios: &mut [Scenario],
) -> Result<bool, Failure> {
    let mut all = true;
    for scenario in scenarios.iter_mut().filter(|scenario| !scenario.is_good()) {
        if !TIMED.contains(&scenario.name.as_str()) {
            continue;
        }
        if passes_alone(revision, target, node, &scenario.name)? {
            scenario.passed += scenario.failed + scenario.warnings;
            scenario.failed = 0;
            scenario.warnings = 0;
        } else {
            all = false;
        }
    }
    Ok(all)
}

/// Whether a scenario passes when nothing else of its set is played.
fn passes_alone(
    revision: &str,
    target: &Path,
    node: &Node,
    scenario: &str,
) -> Result<bool, Failure> {
    let folder = target.join("client-conformance");
    let results = folder.join(format!("{revision}-alone"));
    let log = folder.join(format!("{revision}-alone.log"));
    for _ in 0..PLAYS_MAX {
        println!("   client {revision}: `{scenario}` was late; it is played alone");
        conformance::clear(&results)?;
        let mut command = conformance::suite(node);
        command
            .args(["client", "--command", COMMAND, "--scenario", scenario])
            .args(["--spec-version", revision, "--force", "--timeout", SCENARIO_WAIT_MS, "-o"])
            .arg(&results)
            .current_dir(target.join("debug"));
        let status = child::run_within("the conformance suite", &mut command, &log, RUN_WAIT)?;
        if status.success() {
            return Ok(true);
        }
        thread::sleep(PLAY_PAUSE);
    }
    Ok(false)
}

/// Whether nothing is wrong but what the suite measures.
fn is_only_late(expected: &[Entry], scenarios: &[Scenario]) -> bool {
    let wrong = scenarios.iter().filter(|scenario| !scenario.is_good());
    baseline::is_only(TIMED, expected, wrong.map(|scenario| scenario.name.as_str()))
}

/// Plays a set once.
fn play(
    (set, chosen): &(&str, [&str; 2]),
    list: &Path,
    target: &Path,
    node: &Node,
) -> Result<Told, Failure> {
    let programs = target.join("debug");
    if !fixtures::program(target).is_file() {
        return Err(Failure::new("`fixture` is not built; build it first"));
    }
    let folder = target.join("client-conformance");
    child::create_folder(&folder)?;
    let results = folder.join(set);
    conformance::clear(&results)?;
    let log = folder.join(format!("{set}.log"));
    let mut command = conformance::suite(node);
    command
        .args(["client", "--command", COMMAND])
        .args(chosen)
        .args(["--timeout", SCENARIO_WAIT_MS, "--expected-failures"])
        .arg(list)
        .arg("-o")
        .arg(&results)
        .current_dir(&programs);
    let status = child::run_within("the conformance suite", &mut command, &log, RUN_WAIT)?;
    let text = fs::read_to_string(&log).unwrap_or_default();
    let told = Told { scenarios: summary(&text), conformant: status.success(), results };
    if announced(&text) != Some(told.scenarios.len()) {
        child::print_logs(&log);
        return Err(Failure::new(format!(
            "the conformance suite did not tell of every scenario of {set} ({status}); its \
             log is above"
        )));
    }
    Ok(told)
}

/// What a run of one set said.
struct Told {
    scenarios: Vec<Scenario>,
    /// Whether the suite says that of what it scores just what is listed fails.
    conformant: bool,
    /// Where the suite left what each check saw.
    results: PathBuf,
}

/// One line of the suite's summary.
#[derive(Debug, PartialEq, Eq)]
struct Scenario {
    name: String,
    passed: u32,
    failed: u32,
    /// What should be otherwise, but need not.
    warnings: u32,
}

impl Scenario {
    fn is_good(&self) -> bool {
        self.failed == 0 && self.warnings == 0
    }
}

/// Prints the outcome of a set and what was expected, and says whether it is good enough: the suite
/// scores only a part of it, and nothing of how the client ended.
fn judge(set: &str, expected: &[Entry], told: &Told) -> Result<(), Failure> {
    let Told { scenarios, conformant, results } = told;
    print!("{}", table(set, scenarios));
    let mut wrong = Vec::new();
    for scenario in scenarios {
        let name = scenario.name.as_str();
        let listed = expected.iter().find(|entry| entry.is_about(name));
        let problem = match listed {
            Some(Entry { what, reason }) => {
                println!("   known to fail: {what}: {reason}");
                (scenario.is_good() && what == name).then_some("passes now, but is listed")
            }
            None if scenario.is_good() => unfinished(results, name).then_some("was not played out"),
            None => Some("failed"),
        };
        if let Some(problem) = problem {
            print_complaints(results, name);
            wrong.push(format!("`{name}` {problem}"));
        }
    }
    let shown = results.display();
    if !wrong.is_empty() {
        let wrong = wrong.join(", ");
        return Err(Failure::new(format!("{set}: {wrong}; what each check saw is in `{shown}`")));
    }
    if !conformant {
        return Err(Failure::new(format!(
            "{set}: the suite found a check that is not as `{BASELINES}` says; what each \
             check saw is in `{shown}`"
        )));
    }
    Ok(())
}

/// How many scenarios the suite says that it runs: `Running .. (25 scenarios) in parallel...`.
fn announced(log: &str) -> Option<usize> {
    let (before, _) = log.split_once(" scenarios) in parallel")?;
    before.rsplit_once('(')?.1.parse().ok()
}

/// The lines of the summary: `✗ sse-retry: 2 passed, 0 failed, 1 warnings`.
fn summary(log: &str) -> Vec<Scenario> {
    let after = log.split_once("=== SUITE SUMMARY ===").map_or("", |(_, after)| after);
    after.lines().filter_map(scenario).collect()
}

fn scenario(line: &str) -> Option<Scenario> {
    let line = line.strip_prefix("✓ ").or_else(|| line.strip_prefix("✗ "))?;
    let (name, counts) = line.split_once(": ")?;
    let count = |kind: &str| {
        let counts = counts.split(", ").find_map(|count| count.strip_suffix(kind));
        counts.map(str::trim).map(str::parse::<u32>)
    };
    Some(Scenario {
        name: name.to_owned(),
        passed: count("passed")?.ok()?,
        failed: count("failed")?.ok()?,
        warnings: count("warnings").unwrap_or(Ok(0)).ok()?,
    })
}

/// Every scenario with its checks.
fn table(set: &str, scenarios: &[Scenario]) -> String {
    let good = scenarios.iter().filter(|scenario| scenario.is_good()).count();
    let checks: u32 = scenarios.iter().map(|scenario| scenario.passed).sum();
    let mut table =
        format!("   client {set}: {good} of {} scenarios, {checks} checks\n", scenarios.len());
    for Scenario { name, passed, failed, warnings } in scenarios {
        table.push_str(&format!("   {name:<44}{passed:>4} passed{failed:>4} failed"));
        if *warnings > 0 {
            table.push_str(&format!("{warnings:>4} warnings"));
        }
        table.push('\n');
    }
    table
}

/// The folder that the suite left for a scenario: its name and a date.
fn folder(results: &Path, name: &str) -> Option<PathBuf> {
    let (above, name) = match name.rsplit_once('/') {
        Some((above, name)) => (results.join(above), name),
        None => (results.to_path_buf(), name),
    };
    let prefix = format!("{name}-2");
    let mut folders = fs::read_dir(above).ok()?.flatten();
    let found = folders.find(|entry| entry.file_name().to_string_lossy().starts_with(&prefix));
    found.map(|entry| entry.path())
}

/// Whether our client did not come to its end as it should.
fn unfinished(results: &Path, name: &str) -> bool {
    let said = folder(results, name).map(|folder| folder.join("stdout.txt"));
    let said = said.and_then(|said| fs::read_to_string(said).ok()).unwrap_or_default();
    said.lines().next_back() != Some(DONE)
}

/// Prints what the checks of a scenario found wrong, and what our client says of it.
fn print_complaints(results: &Path, name: &str) {
    let Some(folder) = folder(results, name) else { return };
    let checks = fs::read_to_string(folder.join("checks.json")).unwrap_or_default();
    for line in complaints(&checks) {
        println!("     {name}: {line}");
    }
    let said = fs::read_to_string(folder.join("stderr.txt")).unwrap_or_default();
    for line in said.lines().take(COMPLAINT_LINES) {
        println!("     {name}: {line}");
    }
}

/// What the checks that are not good say. The file is indented JSON: each member of a check stands
/// on a line of its own, those of its details deeper.
fn complaints(checks: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut description = "";
    let mut is_bad = false;
    for line in checks.lines() {
        let Some((key, value)) =
            line.strip_prefix("    \"").and_then(|line| line.split_once("\": "))
        else {
            continue;
        };
        let value = value.trim_end_matches(',');
        match key {
            "description" => description = value,
            "status" => {
                is_bad = matches!(value, "\"FAILURE\"" | "\"WARNING\"");
                found.extend(is_bad.then_some(description));
            }
            "errorMessage" if is_bad => found.push(value),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "Running requirements 2025-11-25 (3 scenarios) in parallel...\n\n\
                       ✗ not this: 1 passed, 1 failed\n\n=== SUITE SUMMARY ===\n\n\
                       ✓ auth/dpop: 2 passed, 0 failed\n\
                       ✗ sse-retry: 2 passed, 0 failed, 1 warnings\n\
                       ✗ tools_call: 0 passed, 4 failed\n\nTotal: 4 passed, 4 failed\n";

    fn line(name: &str, passed: u32, failed: u32, warnings: u32) -> Scenario {
        Scenario { name: name.to_owned(), passed, failed, warnings }
    }

    fn told(scenarios: Vec<Scenario>, conformant: bool, results: &Path) -> Told {
        Told { scenarios, conformant, results: results.to_path_buf() }
    }

    fn entry(what: &str) -> Entry {
        Entry { what: what.to_owned(), reason: "because".to_owned() }
    }

    #[test]
    fn the_summary_is_read_and_nothing_else() {
        let expected =
            [line("auth/dpop", 2, 0, 0), line("sse-retry", 2, 0, 1), line("tools_call", 0, 4, 0)];
        assert_eq!(summary(LOG), expected);
        assert_eq!(announced(LOG), Some(3));
        assert!(summary("✓ ping: 2 passed, 0 failed\n").is_empty());
        assert_eq!(announced("Running nothing"), None);
    }

    #[test]
    fn the_table_has_every_scenario() {
        let table = table("2025-11-25", &summary(LOG));
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines[0], "   client 2025-11-25: 1 of 3 scenarios, 4 checks");
        assert!(lines[1].starts_with("   auth/dpop "), "{table}");
        assert!(lines[2].ends_with("   2 passed   0 failed   1 warnings"), "{table}");
        assert_eq!(lines.len(), 4);
    }

    #[test]
    fn what_is_listed_must_fail_and_nothing_else_may() -> Result<(), Failure> {
        let id = std::process::id();
        let results = std::env::temp_dir().join(format!("waypost-client-conformance-{id}"));
        let played = results.join("auth").join("iss-2026-11-15T00-00-00-000Z");
        child::create_folder(&played)?;
        let said = played.join("stdout.txt");
        child::write(&said, &format!("refused\n{DONE}\n"))?;
        let judge = |scenario: Scenario, conformant: bool, expected: &[Entry]| {
            judge("all", expected, &told(vec![scenario], conformant, &results)).is_ok()
        };
        assert!(judge(line("auth/iss", 1, 0, 0), true, &[]));
        assert!(!judge(line("auth/iss", 1, 0, 0), false, &[]), "the suite knows better");
        assert!(!judge(line("auth/iss", 1, 0, 0), true, &[entry("auth/iss")]), "it passes");
        assert!(!judge(line("auth/iss", 1, 1, 0), true, &[]));
        assert!(!judge(line("auth/iss", 1, 0, 1), true, &[]), "a warning is too much");
        assert!(judge(line("auth/iss", 1, 1, 0), true, &[entry("auth/iss")]));
        assert!(judge(line("auth/iss", 1, 1, 0), true, &[entry("auth/iss:check")]));
        assert!(!judge(line("auth/other", 1, 0, 0), true, &[]), "nobody played it");
        child::write(&said, "half of it\n")?;
        assert!(!judge(line("auth/iss", 1, 0, 0), true, &[]), "our side failed");
        assert!(fs::remove_dir_all(&results).is_ok());
        Ok(())
    }

    #[test]
    fn only_what_is_measured_is_played_again() {
        let late = line("sse-retry", 2, 0, 1);
        let known = || line("auth/dpop", 0, 1, 0);
        let is_only_late = |scenarios: &[Scenario]| is_only_late(&[entry("auth/dpop")], scenarios);
        assert!(is_only_late(&[line("tools_call", 4, 0, 0), known(), late]));
        assert!(!is_only_late(&[line("sse-retry", 3, 0, 0), known()]), "nothing is wrong");
        let failed = line("sse-retry", 1, 1, 0);
        assert!(!is_only_late(&[failed, line("tools_call", 0, 4, 0)]), "another one is");
    }

    #[test]
    fn complaints_are_what_bad_checks_say() {
        let checks = "[\n  {\n    \"description\": \"good\",\n    \"status\": \"SUCCESS\",\n    \
                      \"errorMessage\": \"none\"\n  },\n  {\n    \"description\": \"bad\",\n    \
                      \"status\": \"FAILURE\",\n    \"details\": {\n      \"status\": \"x\"\n    },\
                      \n    \"errorMessage\": \"why\"\n  }\n]\n";
        assert_eq!(complaints(checks), ["\"bad\"", "\"why\""]);
    }
}
