//! The step `gateway-conformance`: the official suite against our server with the fixture server
//! behind it, once with one that has handshakes only and once with one that is stateless only. Each
//! set is run against both, so that every request goes through within its era and across. What is
//! known to fail stands in `crates/testkit/gateway`, with the reason, and must fail.

use std::fs;
use std::path::Path;

use crate::child;
use crate::conformance::{self, Set, Told};
use crate::fixtures;
use crate::interpreters::{self, Node};
use crate::product;
use crate::shell::{self, Failure};

/// The eras of the server behind ours, and the revisions that clients speak to ours.
const ERAS: &[&str] = &["legacy", "modern"];
const REVISIONS: &[(&str, &str)] = &[("2025-11-25", "legacy"), ("2026-07-28", "modern")];
/// Where the baselines are, from the workspace root: `<era>-<revision>.yml`.
const BASELINES: &str = "crates/testkit/gateway";
/// What the fixture server has in any case.
const TOOL: &str = "test_simple_text";

/// `cargo xtask gateway-conformance`: builds what it needs, then does what the step does.
pub fn run_alone(root: &Path) -> Result<(), Failure> {
    let target = shell::target_folder(root)?;
    fixtures::build(root, &target)?;
    product::build(root)?;
    run(root, &target)
}

/// Runs all four pairs of the built programs and judges them at the end.
pub fn run(root: &Path, target: &Path) -> Result<(), Failure> {
    let node = interpreters::node(root, target)?;
    let judged: Vec<Result<(), Failure>> =
        ERAS.iter().map(|era| behind(era, root, target, &node)).collect();
    judged.into_iter().collect()
}

/// Both sets with an upstream of this era.
fn behind(era: &str, root: &Path, target: &Path, node: &Node) -> Result<(), Failure> {
    let folder = target.join("gateway").join(era);
    child::create_folder(&folder)?;
    let fixture = fixtures::start_as(target, era, &folder.join("fixture.log"))?;
    let settings = format!(
        "[mcp.servers.fixture]\nurl = \"{}\"\nprefix = \"\"\ntrusted = true\n",
        fixture.url
    );
    let server = product::start(target, &folder, &settings, "{}")?;
    let ran = product::wait_for_tool(&server.url, TOOL).and_then(|()| {
        let url = format!("{}/mcp", server.url);
        let sets: Vec<Result<(), Failure>> = REVISIONS
            .iter()
            .map(|(revision, of_client)| {
                let way = if era == *of_client { "same era" } else { "bridged" };
                let name = format!("{era}-{revision}");
                let baseline = root.join(BASELINES).join(&name).with_extension("yml");
                let set = Set { name: &name, revision, url: &url, baseline: Some(&baseline) };
                let title = format!("{revision} to a {era} upstream, {way}");
                judge(&title, &baseline, &conformance::run_set(node, &folder, &set)?)
            })
            .collect();
        sets.into_iter().collect()
    });
    let ran = server.stop_after(ran);
    fixture.stop_after(ran)
}

/// Prints what came of a set and what was expected, and says whether it is good enough.
fn judge(title: &str, baseline: &Path, told: &Told) -> Result<(), Failure> {
    print!("{}", conformance::table(title, &told.scenarios));
    let text = fs::read_to_string(baseline).map_err(|error| {
        Failure::new(format!("cannot read `{}`: {error}; is the tree whole?", baseline.display()))
    })?;
    let expected = entries(&text);
    for (entry, reason) in &expected {
        println!("   known to fail: {entry}: {reason}");
    }
    let is_expected =
        |name: &str| expected.iter().any(|(entry, _)| entry.split(':').next() == Some(name));
    let failed = told.scenarios.iter().filter(|scenario| scenario.failed > 0);
    for scenario in failed.filter(|scenario| !is_expected(&scenario.name)) {
        conformance::print_complaints(&told.results, &scenario.name);
    }
    if let Some((entry, _)) = expected.iter().find(|(_, reason)| reason.is_empty()) {
        return Err(Failure::new(format!(
            "`{entry}` in `{}` has no reason; write one behind `#`",
            baseline.display()
        )));
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

/// The entries of a baseline with their reasons: `  - scenario:check  # reason`.
fn entries(text: &str) -> Vec<(&str, &str)> {
    let items = text.lines().filter_map(|line| line.trim_start().strip_prefix("- "));
    items
        .map(|item| {
            let (entry, reason) = item.split_once(" #").unwrap_or((item, ""));
            (entry.trim(), reason.trim())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn a_baseline_is_a_list_with_reasons() {
        let text = "# Head.\nserver:\n  - a-b:c-1  # one at a time\n  - plain\n";
        assert_eq!(entries(text), [("a-b:c-1", "one at a time"), ("plain", "")]);
        assert!(entries("server: []\n").is_empty());
    }

    #[test]
    fn an_entry_without_a_reason_is_a_failure() -> Result<(), Failure> {
        let file = std::env::temp_dir().join("waypost-gateway-baseline.yml");
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
