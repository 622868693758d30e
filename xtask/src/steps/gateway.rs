//! The step `gateway-conformance`: the official suite against our server with the fixture server
//! behind it, once with one that has handshakes only and once with one that is stateless only, each
//! as it is found, without a journal, and trusted. As it is found every call is a run, without a
//! journal none is; trusted, those of tools that are said to read are none. CI runs one set against
//! each of the first two kinds, so that there is one within each era and one across either way.
//! With `--all` each set is run against every kind. A trusted one that says of no tool that it
//! reads, so that every call is a run, is asked within its era only: what crosses is the same as
//! where it is not trusted. What is known to fail stands in `crates/testkit/gateway`, with the
//! reason, and must fail. The tasks extension, which the suite does not score, is held to it where
//! both sides have tasks.

use std::path::Path;

use crate::child;
use crate::shell::{self, Failure};
use crate::steps::Extent;
use crate::steps::baseline;
use crate::steps::conformance::{self, Scenario, Set, TASKS_PREFIX, Told};
use crate::steps::fixtures;
use crate::steps::interpreters::{self, Node};
use crate::steps::product;

/// The eras of the server behind ours, and the revisions that clients speak to ours.
const ERAS: &[&str] = &["legacy", "modern"];
const REVISIONS: &[(&str, &str)] = &[("2025-11-25", "legacy"), ("2026-07-28", "modern")];
/// What the operator says of the server behind ours, and what that says of its tools.
const KINDS: &[Kind] = &[
    Kind { setting: "", name: "-untrusted", writes: false, usual: Some("modern") },
    Kind { setting: UNRECORDED, name: "-unrecorded", writes: false, usual: Some("legacy") },
    Kind { setting: "trusted = true\n", name: "", writes: false, usual: None },
    Kind { setting: "trusted = true\n", name: "-recorded", writes: true, usual: None },
];
/// Says that no call is a run, and so none is a task of ours.
const UNRECORDED: &str = "journal = false\n";
/// Where the baselines are, from the workspace root: `<era>-<revision>.yml`,
/// `<era>-untrusted-<revision>.yml` where the server behind ours is not trusted,
/// `<era>-unrecorded-<revision>.yml` where its calls are not recorded either, and
/// `<era>-recorded-<revision>.yml` where it is trusted and every call is recorded.
const BASELINES: &str = "crates/testkit/gateway";
/// What the fixture server has in any case.
const TOOL: &str = "test_simple_text";

/// A kind of server behind ours.
struct Kind {
    /// A line of its settings.
    setting: &'static str,
    /// How files are called after it.
    name: &'static str,
    /// Whether it says of no tool that it only reads.
    writes: bool,
    /// The era of the clients that CI lets at it, if at all.
    usual: Option<&'static str>,
}

/// `cargo xtask gateway-conformance`: builds what it needs, then does what the step does.
pub fn run_alone(root: &Path, extent: Extent) -> Result<(), Failure> {
    let target = shell::target_folder(root)?;
    fixtures::build(root, &target)?;
    product::build(root)?;
    run(root, &target, extent)
}

/// Runs the pairs of the built programs and judges them at the end.
pub fn run(root: &Path, target: &Path, extent: Extent) -> Result<(), Failure> {
    let node = interpreters::node(root, target)?;
    let kinds = || KINDS.iter().filter(|kind| kind.usual.is_some() || extent == Extent::All);
    let each = ERAS.iter().flat_map(|era| kinds().map(move |kind| (era, kind)));
    let judged: Vec<Result<(), Failure>> = each
        .map(|(&era, kind)| {
            let upstream = Behind { era, kind, extent, name: format!("{era}{}", kind.name) };
            behind(&upstream, root, target, &node)
        })
        .collect();
    judged.into_iter().collect()
}

/// The server behind ours.
struct Behind {
    era: &'static str,
    kind: &'static Kind,
    extent: Extent,
    /// How it is called in files.
    name: String,
}

impl Behind {
    /// Whether clients of this era are let at it.
    fn is_asked_by(&self, era: &str) -> bool {
        match self.extent {
            Extent::Usual => self.kind.usual == Some(era),
            Extent::All => !self.kind.writes || self.era == era,
        }
    }
}

/// The sets with this upstream.
fn behind(behind: &Behind, root: &Path, target: &Path, node: &Node) -> Result<(), Failure> {
    let Behind { era, kind, name: upstream, .. } = behind;
    let Kind { setting, writes, .. } = kind;
    let folder = target.join("gateway").join(upstream);
    child::create_folder(&folder)?;
    let mut flags = vec!["--era", *era];
    flags.extend(writes.then_some("--writes"));
    let fixture = fixtures::start_as(target, &flags, &folder.join("fixture.log"))?;
    let settings =
        format!("[mcp.servers.fixture]\nurl = \"{}\"\nprefix = \"\"\n{setting}", fixture.url);
    let server = product::start(target, &folder, &settings, "{}")?;
    let ran = product::wait_for_tool(&server.url, TOOL).and_then(|()| {
        check_reach(&server.url, kind)?;
        let url = format!("{}/mcp", server.url);
        let sets: Vec<Result<(), Failure>> = REVISIONS
            .iter()
            .filter(|(_, of_client)| behind.is_asked_by(of_client))
            .map(|(revision, of_client)| {
                let way = if era == of_client { "same era" } else { "bridged" };
                let name = format!("{upstream}-{revision}");
                let baseline = root.join(BASELINES).join(&name).with_extension("yml");
                let set = Set { name: &name, revision, url: &url, baseline: Some(&baseline) };
                let title = format!("{revision} to an upstream {upstream}, {way}");
                let told = conformance::run_set(node, &folder, &set)?;
                judge(&title, &baseline, &told)?;
                // A server with handshakes has none of these tasks, and without a run there are
                // none.
                let are_modern = *era == "modern" && *of_client == "modern";
                let both_have_tasks = are_modern && *setting != UNRECORDED;
                if both_have_tasks { judge_tasks(&baseline, &told.scenarios) } else { Ok(()) }
            })
            .collect();
        sets.into_iter().collect()
    });
    let ran = server.stop_after(ran);
    fixture.stop_after(ran)
}

/// A tool that is said to write is one that writes here, else its calls would not be runs.
fn check_reach(url: &str, kind: &Kind) -> Result<(), Failure> {
    let known = product::tool(url, TOOL)?;
    let compact: String = known.split_whitespace().collect();
    if !kind.writes || compact.contains("\"reach\":\"writes\"") {
        return Ok(());
    }
    Err(Failure::new(format!("`{TOOL}` was to be one that writes, but here it is {known}")))
}

/// Prints the outcome of a set and what was expected, and says whether it is good enough.
fn judge(title: &str, baseline: &Path, told: &Told) -> Result<(), Failure> {
    print!("{}", conformance::table(title, &told.scenarios));
    let expected = baseline::read(baseline)?;
    for entry in &expected {
        println!("   known to fail: {}: {}", entry.what, entry.reason);
    }
    let is_expected = |name: &str| expected.iter().any(|entry| entry.is_about(name));
    let failed = told.scenarios.iter().filter(|scenario| scenario.failed > 0);
    for scenario in failed.filter(|scenario| !is_expected(&scenario.name)) {
        conformance::print_complaints(&told.results, &scenario.name);
    }
    if told.conformant {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{title}: a required scenario failed that `{}` does not name, or one passed that it does; \
         what each check saw is in `{}`",
        baseline.display(),
        told.results.display()
    )))
}

/// Of the tasks extension what the baseline names must fail, and nothing else may.
fn judge_tasks(baseline: &Path, scenarios: &[Scenario]) -> Result<(), Failure> {
    let expected = baseline::read(baseline)?;
    let mut tasks = scenarios.iter().filter(|scenario| scenario.name.starts_with(TASKS_PREFIX));
    let astray = tasks.find(|scenario| {
        let fails = scenario.failed > 0;
        fails != expected.iter().any(|entry| entry.is_about(&scenario.name))
    });
    match astray {
        None => Ok(()),
        Some(Scenario { name, failed, .. }) => Err(Failure::new(format!(
            "{failed} checks of `{name}` failed, which is not what `{}` says",
            baseline.display()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::PathBuf;

    #[test]
    fn tasks_fail_where_the_baseline_says_so_and_nowhere_else() -> Result<(), Failure> {
        let id = std::process::id();
        let file = std::env::temp_dir().join(format!("waypost-gateway-tasks-{id}.yml"));
        child::write(&file, "server:\n  - tasks-a  # one at a time\n")?;
        let ran = |a: u32, b: u32| {
            let line = |name: &str, failed| Scenario { name: name.to_owned(), passed: 1, failed };
            judge_tasks(&file, &[line("tasks-a", a), line("tasks-b", b), line("other", 1)])
        };
        assert!(ran(1, 0).is_ok());
        assert!(ran(0, 0).is_err(), "it does not fail any more");
        assert!(ran(1, 1).is_err(), "another one fails");
        assert!(fs::remove_file(&file).is_ok());
        Ok(())
    }

    #[test]
    fn an_entry_without_a_reason_is_a_failure() -> Result<(), Failure> {
        let file = std::env::temp_dir().join(format!("waypost-gateway-{}.yml", std::process::id()));
        let told = |conformant| Told {
            scenarios: Vec::new(),
            conformant,
            results: PathBuf::from("no/such/folder"),
        };
        child::write(&file, "server:\n  - a  # because\n")?;
        assert!(judge("all", &file, &told(true)).is_ok());
        assert!(judge("all", &file, &told(false)).is_err());
        child::write(&file, "server:\n  - a\n")?;
        assert!(judge("all", &file, &told(true)).is_err());
        assert!(fs::remove_file(&file).is_ok());
        assert!(judge("all", &file, &told(true)).is_err());
        Ok(())
    }
}
