//! The step `transparency`: the official suite against servers that others wrote or whose SDK they
//! wrote, directly and with our server before them, which does not trust them: every call is a run.
//! What passes directly must pass through ours, too. What does not is listed with its reason, must
//! not pass, and there may be two of it at most.

use std::path::Path;
use std::process::Command;

use crate::child::{self, Server};
use crate::shell::{self, Failure};
use crate::steps::baseline::{self, Entry};
use crate::steps::conformance::{self, Scenario, Set, TIMED};
use crate::steps::interpreters::{self, Node};
use crate::steps::product;

const LISTENING: &str = "listening on ";
/// The list of differences, from the workspace root: `- server revision scenario  # reason`.
const DIFFERENCES: &str = "crates/testkit/gateway/differences.yml";
const DIFFERENCES_MAX: usize = 2;
/// The environment of the scripts around the Python SDK.
const PYTHON: &str = "python2";
/// What the scripts with the suite's fixtures have in any case.
const FIXTURE: &str = "test_simple_text";

const HANDSHAKE: &str = "2025-11-25";
const STATELESS: &str = "2026-07-28";

/// A server that others wrote, or whose SDK they wrote.
struct Foreign {
    name: &'static str,
    /// In the folder of the upstreams.
    script: &'static str,
    arguments: &'static [&'static str],
    /// A tool that it has in any case.
    tool: &'static str,
    /// What it speaks; a set of another version would find nothing that passes.
    revisions: &'static [&'static str],
}

const SERVERS: &[Foreign] = &[
    Foreign {
        name: "ts-both",
        script: "ts_modern/fixtures.mjs",
        arguments: &["both"],
        tool: FIXTURE,
        revisions: &[HANDSHAKE, STATELESS],
    },
    Foreign {
        name: "ts-handshake",
        script: "ts_modern/fixtures.mjs",
        arguments: &["handshake"],
        tool: FIXTURE,
        revisions: &[HANDSHAKE],
    },
    Foreign {
        name: "python-both",
        script: "python2/fixtures.py",
        arguments: &["both"],
        tool: FIXTURE,
        revisions: &[HANDSHAKE, STATELESS],
    },
    Foreign {
        name: "python-handshake",
        script: "python2/fixtures.py",
        arguments: &["handshake"],
        tool: FIXTURE,
        revisions: &[HANDSHAKE],
    },
    // It has none of the fixtures: most of the suite fails directly, and is not compared.
    Foreign {
        name: "everything",
        script: "everything/server.mjs",
        arguments: &[],
        tool: "echo",
        revisions: &[HANDSHAKE],
    },
];

/// `cargo xtask transparency`: builds what it needs, then does what the step does.
pub fn run_alone(root: &Path) -> Result<(), Failure> {
    let target = shell::target_folder(root)?;
    product::build(root)?;
    run(root, &target)
}

/// Compares all of them and judges them at the end: one list tells more than the first difference.
pub fn run(root: &Path, target: &Path) -> Result<(), Failure> {
    let allowed = baseline::read(&root.join(DIFFERENCES))?;
    let node = interpreters::node(root, target)?;
    let mut found = Vec::new();
    for server in SERVERS {
        found.extend(compared(server, root, target, &node)?);
    }
    judge(&allowed, &found)
}

/// The differences that our server makes to this one.
fn compared(
    foreign: &Foreign,
    root: &Path,
    target: &Path,
    node: &Node,
) -> Result<Vec<String>, Failure> {
    let name = foreign.name;
    let folder = target.join("transparency").join(name);
    child::create_folder(&folder)?;
    // It goes with its value: it has nothing to say at its end.
    let server = start(foreign, root, target, node, &folder.join("server.log"))?;
    let mut direct = Vec::new();
    for revision in foreign.revisions {
        let set = format!("direct-{revision}");
        let set = Set { name: &set, revision, url: &server.url, baseline: None };
        let told = conformance::play(node, &folder, &set)?;
        let title = format!("{name}, {revision}, directly");
        print!("{}", conformance::table(&title, &told.scenarios));
        direct.push((*revision, told.scenarios));
    }
    let settings = format!("[mcp.servers.foreign]\nurl = \"{}\"\nprefix = \"\"\n", server.url);
    let gateway = product::start(target, &folder, &settings, "{}")?;
    let mut found = Vec::new();
    let ran = product::wait_for_tool(&gateway.url, foreign.tool).and_then(|()| {
        let url = format!("{}/mcp", gateway.url);
        direct.iter().try_for_each(|(revision, direct)| -> Result<(), Failure> {
            let lost = through(node, &folder, &url, Direct { name, revision, scenarios: direct })?;
            found.extend(lost.into_iter().map(|lost| format!("{name} {revision} {lost}")));
            Ok(())
        })
    });
    gateway.stop_after(ran)?;
    Ok(found)
}

/// Starts the server on a port of its own.
fn start(
    foreign: &Foreign,
    root: &Path,
    target: &Path,
    node: &Node,
    log: &Path,
) -> Result<Server, Failure> {
    let script = interpreters::upstreams_folder(root).join(foreign.script);
    let mut command = if foreign.script.ends_with(".py") {
        let lists = interpreters::peers_folder(root);
        let mut command = Command::new(interpreters::python(&lists, target, PYTHON)?);
        command.arg(script);
        command
    } else {
        let mut command = Command::new(&node.program);
        command.arg(interpreters::node_script(node, &script, foreign.name)?);
        command
    };
    // What a script prints must be in its log even when it is ended.
    command.args(foreign.arguments).env("PYTHONUNBUFFERED", "1");
    Server::start(&mut command, LISTENING, log)
}

/// What a set said of a server itself.
struct Direct<'a> {
    name: &'a str,
    revision: &'a str,
    scenarios: &'a [Scenario],
}

/// Plays the set against our server before the same one, and what was only late again: which
/// scenarios no longer pass.
fn through(
    node: &Node,
    folder: &Path,
    url: &str,
    direct: Direct<'_>,
) -> Result<Vec<String>, Failure> {
    let Direct { name, revision, scenarios } = direct;
    let set = format!("through-{revision}");
    let set = Set { name: &set, revision, url, baseline: None };
    let mut told = conformance::play(node, folder, &set)?;
    let mut missing = lost(scenarios, &told.scenarios);
    if !missing.is_empty() && missing.iter().all(|name| TIMED.contains(&name.as_str())) {
        conformance::play_late(node, folder, &set, &mut told.scenarios)?;
        missing = lost(scenarios, &told.scenarios);
    }
    let title = format!("{name}, {revision}, through the gateway");
    print!("{}", conformance::table(&title, &told.scenarios));
    for scenario in &missing {
        println!("   passes directly and not through the gateway: {scenario}");
        conformance::print_complaints(&told.results, scenario);
    }
    Ok(missing)
}

/// What passes directly and not through the gateway. A scenario that checks nothing does not pass.
fn lost(direct: &[Scenario], through: &[Scenario]) -> Vec<String> {
    let passes = |scenario: &&Scenario| scenario.failed == 0 && scenario.passed > 0;
    let is_kept = |name: &str| through.iter().filter(passes).any(|scenario| scenario.name == name);
    let passed = direct.iter().filter(passes).map(|scenario| scenario.name.clone());
    passed.filter(|name| !is_kept(name)).collect()
}

/// What is listed must be found, nothing else may be, and the list is short.
fn judge(allowed: &[Entry], found: &[String]) -> Result<(), Failure> {
    for Entry { what, reason } in allowed {
        println!("   known to differ: {what}: {reason}");
    }
    if allowed.len() > DIFFERENCES_MAX {
        let count = allowed.len();
        return Err(Failure::new(format!(
            "`{DIFFERENCES}` lists {count} differences; {DIFFERENCES_MAX} are allowed"
        )));
    }
    let is_listed = |found: &&String| allowed.iter().any(|entry| entry.what == **found);
    let unknown: Vec<&str> =
        found.iter().filter(|found| !is_listed(found)).map(String::as_str).collect();
    if !unknown.is_empty() {
        return Err(Failure::new(format!(
            "behind our server fails what passes directly: `{}`; what each check saw is in the \
             folder `transparency` of the target folder",
            unknown.join("`, `")
        )));
    }
    match allowed.iter().find(|entry| !found.contains(&entry.what)) {
        None => Ok(()),
        Some(Entry { what, .. }) => Err(Failure::new(format!(
            "`{what}` passes through our server; take it out of `{DIFFERENCES}`"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(name: &str, passed: u32, failed: u32) -> Scenario {
        Scenario { name: name.to_owned(), passed, failed }
    }

    #[test]
    fn only_what_passed_directly_can_be_lost() {
        let direct = [
            scenario("kept", 2, 0),
            scenario("broken", 2, 0),
            scenario("left-out", 1, 0),
            scenario("failed", 1, 1),
            scenario("empty", 0, 0),
        ];
        let through = [scenario("kept", 2, 0), scenario("broken", 1, 1), scenario("failed", 2, 0)];
        assert_eq!(lost(&direct, &through), ["broken", "left-out"]);
    }

    #[test]
    fn differences_are_listed_found_and_few() {
        let entry = |what: &str| Entry { what: what.to_owned(), reason: "because".to_owned() };
        let judged = |allowed: &[Entry], names: &[&str]| {
            let found: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            judge(allowed, &found)
        };
        assert!(judged(&[], &[]).is_ok());
        assert!(judged(&[entry("a 1 x")], &["a 1 x"]).is_ok());
        assert!(judged(&[entry("a 1 x")], &[]).is_err(), "it no longer differs");
        assert!(judged(&[], &["a 1 x"]).is_err(), "it is not listed");
        let three = ["a 1 x", "a 1 y", "a 1 z"];
        assert!(judged(&three.map(entry), &three).is_err(), "these are too many");
    }

    #[test]
    fn the_scripts_and_the_list_are_there() {
        let root = shell::workspace_root();
        for foreign in SERVERS {
            let script = interpreters::upstreams_folder(&root).join(foreign.script);
            assert!(script.is_file(), "{}", script.display());
        }
        assert!(baseline::read(&root.join(DIFFERENCES)).is_ok());
    }
}
