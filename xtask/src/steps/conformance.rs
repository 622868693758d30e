//! The step `conformance`: the official MCP conformance suite against our server with the fixtures
//! it wants. Every scenario that a revision requires must pass, and so must those of the tasks
//! extension, which the suite runs but does not score.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::child;
use crate::shell::{self, Failure};
use crate::steps::baseline::{self, Entry};
use crate::steps::fixtures;
use crate::steps::interpreters::{self, Node};

/// Each has its own wire and its own frozen set of scenarios.
const REVISIONS: &[&str] = &["2025-11-25", "2026-07-28"];
/// The revision whose set holds the scenarios of the tasks extension.
const TASKS_REVISION: &str = "2026-07-28";
/// How the names of these scenarios begin.
pub const TASKS_PREFIX: &str = "tasks-";
/// How many of them there are; fewer mean that something was not run.
const TASKS_SCENARIOS: usize = 10;
/// The suite's program, below `node_modules`.
const SUITE: &[&str] = &["@modelcontextprotocol", "conformance", "dist", "index.js"];
const RUN_WAIT: Duration = Duration::from_secs(3_600);
/// How long the suite waits for one scenario.
const SCENARIO_WAIT_MS: &str = "240000";
/// Here the suite gives a call 500 ms to its first message. A busy machine may take as long by
/// itself, but not each time.
pub const TIMED: &[&str] = &["server-stateless"];
/// How often each of these is played alone at most where it was late, and how long what else the
/// machine does has before the next time.
pub const PLAYS_MAX: usize = 20;
pub const PLAY_PAUSE: Duration = Duration::from_secs(5);

/// `cargo xtask conformance`: builds what it needs, then does what the step does.
pub fn run_alone(root: &Path) -> Result<(), Failure> {
    let target = shell::target_folder(root)?;
    fixtures::build(root, &target)?;
    run(root, &target)
}

/// Starts the built fixture server, runs the sets of all revisions, and stops it.
pub fn run(root: &Path, target: &Path) -> Result<(), Failure> {
    let node = interpreters::node(root, target)?;
    let folder = target.join("conformance");
    child::create_folder(&folder)?;
    let server = fixtures::start(target, &folder.join("server.log"))?;
    // All sets are run before any is judged: one table tells more than the first failure.
    let judged: Vec<Result<(), Failure>> = REVISIONS
        .iter()
        .map(|revision| {
            let set = Set { name: revision, revision, url: &server.url, baseline: None };
            judge(revision, run_set(&node, &folder, &set)?)
        })
        .collect();
    server.stop_after(judged.into_iter().collect())
}

/// One run of the suite.
pub struct Set<'a> {
    /// What its logs and results are called.
    pub name: &'a str,
    /// The revision whose scenarios are run.
    pub revision: &'a str,
    /// The server.
    pub url: &'a str,
    /// The list of what is expected to fail, and must.
    pub baseline: Option<&'a Path>,
}

/// What a run of one set said.
pub struct Told {
    pub scenarios: Vec<Scenario>,
    /// Whether the suite says that all required scenarios passed, but for those that are expected
    /// to fail.
    pub conformant: bool,
    /// Where the suite left what each check saw.
    pub results: PathBuf,
}

/// One line of the suite's summary.
#[derive(Debug, PartialEq, Eq)]
pub struct Scenario {
    pub name: String,
    /// How many of its checks passed.
    pub passed: u32,
    /// How many of its checks failed.
    pub failed: u32,
}

/// Plays a set, and what was only late again.
pub fn run_set(node: &Node, folder: &Path, set: &Set<'_>) -> Result<Told, Failure> {
    let expected = set.baseline.map(baseline::read).transpose()?.unwrap_or_default();
    let mut told = play(node, folder, set)?;
    if is_only_late(&expected, &told) {
        told.conformant = play_late(node, folder, set, &mut told.scenarios)?;
    }
    Ok(told)
}

/// Plays what was late alone until it passes, which is noted: whether all of it did.
pub fn play_late(
    node: &Node,
    folder: &Path,
    set: &Set<'_>,
    scenarios: &mut [Scenario],
) -> Result<bool, Failure> {
    let mut all = true;
    for scenario in scenarios.iter_mut().filter(|scenario| scenario.failed > 0) {
        if !TIMED.contains(&scenario.name.as_str()) {
            continue;
        }
        if passes_alone(node, folder, set, &scenario.name)? {
            scenario.passed += std::mem::take(&mut scenario.failed);
        } else {
            all = false;
        }
    }
    Ok(all)
}

/// Whether a scenario passes when nothing else of its set is played.
fn passes_alone(
    node: &Node,
    folder: &Path,
    set: &Set<'_>,
    scenario: &str,
) -> Result<bool, Failure> {
    let Set { name, revision, url, .. } = *set;
    let results = folder.join(format!("{name}-alone"));
    let log = folder.join(format!("{name}-alone.log"));
    for _ in 0..PLAYS_MAX {
        println!("   {name}: `{scenario}` was late; it is played alone");
        clear(&results)?;
        let mut command = suite(node);
        command
            .args(["server", "--url", url, "--scenario", scenario])
            .args(["--spec-version", revision, "--force", "--timeout", SCENARIO_WAIT_MS, "-o"])
            .arg(&results)
            .current_dir(folder);
        let status = child::run_within("the conformance suite", &mut command, &log, RUN_WAIT)?;
        if status.success() {
            return Ok(true);
        }
        thread::sleep(PLAY_PAUSE);
    }
    Ok(false)
}

/// Whether nothing is wrong, of what the suite scores, but what has a time limit.
fn is_only_late(expected: &[Entry], told: &Told) -> bool {
    let failed = told.scenarios.iter().filter(|scenario| scenario.failed > 0);
    let failed = failed.map(|scenario| scenario.name.as_str());
    let scored = failed.filter(|name| !name.starts_with(TASKS_PREFIX));
    !told.conformant && baseline::is_only(TIMED, expected, scored)
}

/// Plays a set once.
pub fn play(node: &Node, folder: &Path, set: &Set<'_>) -> Result<Told, Failure> {
    let Set { name, revision, url, baseline } = *set;
    let results = folder.join(name);
    clear(&results)?;
    let log = folder.join(format!("{name}.log"));
    let mut command = suite(node);
    command
        .args(["server", "--url", url, "--requirements", revision])
        .args(["--timeout", SCENARIO_WAIT_MS, "-o"])
        .arg(&results)
        .current_dir(folder);
    if let Some(baseline) = baseline {
        command.arg("--expected-failures").arg(baseline);
    }
    let status = child::run_within("the conformance suite", &mut command, &log, RUN_WAIT)?;
    let text = fs::read_to_string(&log).unwrap_or_default();
    let scenarios = summary(&text);
    if scenarios.is_empty() {
        child::print_logs(&log);
        return Err(Failure::new(format!(
            "the conformance suite reported nothing for {name} ({status}); its log is above"
        )));
    }
    Ok(Told { scenarios, conformant: status.success(), results })
}

/// The suite, to which a command is to be added.
pub fn suite(node: &Node) -> Command {
    let mut program = node.folder.join("node_modules");
    program.extend(SUITE);
    let mut command = Command::new(&node.program);
    command.arg(program).env("NO_COLOR", "1");
    command
}

/// Removes what an earlier run left: it would be taken for this one's.
pub fn clear(results: &Path) -> Result<(), Failure> {
    if !results.exists() {
        return Ok(());
    }
    fs::remove_dir_all(results).map_err(|error| {
        Failure::new(format!("cannot remove `{}`: {error}; remove it", results.display()))
    })
}

/// Prints the table of one set and says whether it is good enough.
fn judge(revision: &str, told: Told) -> Result<(), Failure> {
    let Told { scenarios, conformant, results } = told;
    print!("{}", table(revision, &scenarios));
    for scenario in scenarios.iter().filter(|scenario| scenario.failed > 0) {
        print_complaints(&results, &scenario.name);
    }
    let tasks: Vec<&Scenario> =
        scenarios.iter().filter(|scenario| scenario.name.starts_with(TASKS_PREFIX)).collect();
    let results = results.display();
    if !conformant {
        return Err(Failure::new(format!(
            "a scenario that {revision} requires failed; what each check saw is in `{results}`"
        )));
    }
    if revision == TASKS_REVISION && tasks.len() < TASKS_SCENARIOS {
        let count = tasks.len();
        return Err(Failure::new(format!(
            "only {count} of {TASKS_SCENARIOS} scenarios of the tasks extension were run"
        )));
    }
    if tasks.iter().any(|scenario| scenario.failed > 0) {
        return Err(Failure::new(format!(
            "a scenario of the tasks extension failed; what each check saw is in `{results}`"
        )));
    }
    Ok(())
}

/// The lines of the summary: `✓ ping: 2 passed, 0 failed`.
fn summary(log: &str) -> Vec<Scenario> {
    let after = log.split_once("=== SUMMARY ===").map_or("", |(_, after)| after);
    after.lines().filter_map(scenario).collect()
}

fn scenario(line: &str) -> Option<Scenario> {
    let line = line.strip_prefix("✓ ").or_else(|| line.strip_prefix("✗ "))?;
    let (name, counts) = line.split_once(": ")?;
    let (passed, failed) = counts.split_once(" passed, ")?;
    Some(Scenario {
        name: name.to_owned(),
        passed: passed.parse().ok()?,
        failed: failed.strip_suffix(" failed")?.parse().ok()?,
    })
}

/// How many scenarios of a run passed, and which did not.
pub fn table(title: &str, scenarios: &[Scenario]) -> String {
    let good = scenarios.iter().filter(|scenario| scenario.failed == 0).count();
    let checks: u32 = scenarios.iter().map(|scenario| scenario.passed).sum();
    let mut table =
        format!("   {title}: {good} of {} scenarios, {checks} checks\n", scenarios.len());
    for Scenario { name, passed, failed } in scenarios.iter().filter(|line| line.failed > 0) {
        table.push_str(&format!("   failed: {name:<48}{passed:>4} passed {failed:>4} failed\n"));
    }
    table
}

/// Prints what the failed checks of a scenario said, from the file that the suite left.
pub fn print_complaints(results: &Path, name: &str) {
    let Ok(folders) = fs::read_dir(results) else { return };
    let prefix = format!("server-{name}-2");
    for folder in folders.flatten() {
        if folder.file_name().to_string_lossy().starts_with(&prefix) {
            let text = fs::read_to_string(folder.path().join("checks.json")).unwrap_or_default();
            for line in complaints(&text) {
                println!("     {name}: {line}");
            }
        }
    }
}

/// The file is indented JSON: each member stands on a line of its own.
fn complaints(checks: &str) -> impl Iterator<Item = &str> {
    let messages = checks.lines().filter_map(|line| line.trim().strip_prefix("\"errorMessage\": "));
    messages.map(|message| message.trim_end_matches(','))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "Running\n✗ not this: 1 passed, 1 failed\n\n=== SUMMARY ===\n\
                       ✓ ping: 2 passed, 0 failed\n✗ tasks-lifecycle: 7 passed, 1 failed\n\n\
                       Total: 9 passed, 1 failed\n  ✗ tasks-lifecycle (extension)\n";

    fn line(name: &str, passed: u32, failed: u32) -> Scenario {
        Scenario { name: name.to_owned(), passed, failed }
    }

    #[test]
    fn the_summary_is_read_and_nothing_else() {
        assert_eq!(summary(LOG), [line("ping", 2, 0), line("tasks-lifecycle", 7, 1)]);
        assert!(summary("✓ ping: 2 passed, 0 failed\n").is_empty());
    }

    #[test]
    fn the_table_names_what_failed() {
        let table = table("2026-07-28", &summary(LOG));
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines[0], "   2026-07-28: 1 of 2 scenarios, 9 checks");
        assert!(lines[1].starts_with("   failed: tasks-lifecycle"), "{table}");
        assert_eq!(lines.len(), 2);
    }

    fn told(scenarios: Vec<Scenario>, conformant: bool) -> Told {
        Told { scenarios, conformant, results: PathBuf::from("no/such/folder") }
    }

    #[test]
    fn only_what_has_a_time_limit_is_played_again() {
        let late = || line("server-stateless", 28, 1);
        let tasks = || line("tasks-lifecycle", 2, 7);
        let known = [Entry { what: "known".to_owned(), reason: "because".to_owned() }];
        assert!(is_only_late(&[], &told(vec![late(), tasks()], false)));
        assert!(is_only_late(&known, &told(vec![late(), line("known", 0, 1)], false)));
        assert!(!is_only_late(&[], &told(vec![late(), line("ping", 0, 1)], false)), "ping failed");
        assert!(!is_only_late(&[], &told(vec![line("server-stateless", 29, 0)], false)));
        assert!(!is_only_late(&[], &told(vec![late()], true)), "it is expected to fail");
    }

    #[test]
    fn an_extension_is_not_optional_here() {
        let tasks = |failed: u32| -> Vec<Scenario> {
            (0..TASKS_SCENARIOS).map(|n| line(&format!("tasks-{n}"), 1, failed)).collect()
        };
        assert!(judge("2026-07-28", told(tasks(0), true)).is_ok());
        assert!(judge("2026-07-28", told(tasks(0), false)).is_err());
        assert!(judge("2026-07-28", told(tasks(1), true)).is_err());
        assert!(judge("2026-07-28", told(vec![line("ping", 1, 0)], true)).is_err());
        assert!(judge("2025-11-25", told(vec![line("ping", 1, 0)], true)).is_ok());
    }

    #[test]
    fn complaints_are_found_in_indented_json() {
        let checks = "[\n  {\n    \"id\": \"a\",\n    \"errorMessage\": \"no id\",\n  }\n]\n";
        let found: Vec<&str> = complaints(checks).collect();
        assert_eq!(found, ["\"no id\""]);
    }
}
