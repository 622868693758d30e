//! The step `transparency`: the official suite against servers that others wrote or whose SDK they
//! wrote, directly and with our server before them, in every setting: untrusted and trusted, with a
//! journal and without. What passes directly must pass through ours, too. What does not is listed
//! with its reason, once for all settings, and there may be two of it at most. It must differ in
//! every setting: what only one of them breaks does not come from the protocol, so it is a fault of
//! ours and has no place in the list.

use std::path::{Path, PathBuf};
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

/// What the operator says of a server that is behind ours.
struct Setting {
    /// How files and differences are called after it.
    name: &'static str,
    /// Lines of the server's entry.
    lines: &'static str,
}

/// With a journal a call is a run, unless the server is trusted and says that the tool only reads;
/// without one no call is.
const SETTINGS: &[Setting] = &[
    Setting { name: "untrusted", lines: "" },
    Setting { name: "trusted", lines: "trusted = true\n" },
    Setting { name: "untrusted-unrecorded", lines: "journal = false\n" },
    Setting { name: "trusted-unrecorded", lines: "trusted = true\njournal = false\n" },
];

/// A scenario that passes directly, and not through our server in this setting.
struct Difference {
    /// As the list names it: server, revision, scenario.
    what: String,
    setting: &'static str,
}

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

/// The differences that our server makes to this one. It stays the same process in all settings, so
/// that nothing but ours changes.
fn compared(
    foreign: &Foreign,
    root: &Path,
    target: &Path,
    node: &Node,
) -> Result<Vec<Difference>, Failure> {
    let folder = target.join("transparency").join(foreign.name);
    child::create_folder(&folder)?;
    // It goes with its value: it has nothing to say at its end.
    let server = start(foreign, root, target, node, &folder.join("server.log"))?;
    let direct = directly(foreign, node, &folder, &server.url)?;
    let upstream = Upstream { foreign, url: &server.url, folder, direct };
    let mut found = Vec::new();
    for setting in SETTINGS {
        found.extend(behind(&upstream, setting, target, node)?);
    }
    Ok(found)
}

/// A server that runs, and what the suite said when it asked it directly.
struct Upstream<'a> {
    foreign: &'a Foreign,
    url: &'a str,
    folder: PathBuf,
    direct: Vec<Direct>,
}

/// What a set said of a server itself.
struct Direct {
    revision: &'static str,
    scenarios: Vec<Scenario>,
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

/// Plays the sets of all its revisions against the server itself.
fn directly(
    foreign: &Foreign,
    node: &Node,
    folder: &Path,
    url: &str,
) -> Result<Vec<Direct>, Failure> {
    let mut direct = Vec::new();
    for &revision in foreign.revisions {
        let set = format!("direct-{revision}");
        let set = Set { name: &set, revision, url, baseline: None };
        let scenarios = conformance::play(node, folder, &set)?.scenarios;
        let title = format!("{}, {revision}, directly", foreign.name);
        print!("{}", conformance::table(&title, &scenarios));
        direct.push(Direct { revision, scenarios });
    }
    Ok(direct)
}

/// Plays the same sets against our server before it, in one setting.
fn behind(
    upstream: &Upstream<'_>,
    setting: &Setting,
    target: &Path,
    node: &Node,
) -> Result<Vec<Difference>, Failure> {
    let Upstream { foreign, url, folder, direct } = upstream;
    let folder = folder.join(setting.name);
    child::create_folder(&folder)?;
    let lines = setting.lines;
    let settings = format!("[mcp.servers.foreign]\nurl = \"{url}\"\nprefix = \"\"\n{lines}");
    let gateway = product::start(target, &folder, &settings, "{}")?;
    let mut found = Vec::new();
    let ran = product::wait_for_tool(&gateway.url, foreign.tool).and_then(|()| {
        let url = format!("{}/mcp", gateway.url);
        direct.iter().try_for_each(|direct| -> Result<(), Failure> {
            let Direct { revision, scenarios } = direct;
            let name = format!("{}-{revision}", setting.name);
            let set = Set { name: &name, revision, url: &url, baseline: None };
            let title =
                format!("{}, {revision}, through the gateway, {}", foreign.name, setting.name);
            let lost = through(node, &folder, &set, &title, scenarios)?;
            found.extend(lost.into_iter().map(|scenario| Difference {
                what: format!("{} {revision} {scenario}", foreign.name),
                setting: setting.name,
            }));
            Ok(())
        })
    });
    gateway.stop_after(ran)?;
    Ok(found)
}

/// Plays a set against our server, and what was only late again: which scenarios no longer pass.
fn through(
    node: &Node,
    folder: &Path,
    set: &Set<'_>,
    title: &str,
    direct: &[Scenario],
) -> Result<Vec<String>, Failure> {
    let mut told = conformance::play(node, folder, set)?;
    let mut missing = lost(direct, &told.scenarios);
    if !missing.is_empty() && missing.iter().all(|name| TIMED.contains(&name.as_str())) {
        conformance::play_late(node, folder, set, &mut told.scenarios)?;
        missing = lost(direct, &told.scenarios);
    }
    print!("{}", conformance::table(title, &told.scenarios));
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

/// What is listed must differ in every setting, nothing else in any of them, and the list is short.
fn judge(allowed: &[Entry], found: &[Difference]) -> Result<(), Failure> {
    for Entry { what, reason } in allowed {
        println!("   known to differ: {what}: {reason}");
    }
    if allowed.len() > DIFFERENCES_MAX {
        let count = allowed.len();
        return Err(Failure::new(format!(
            "`{DIFFERENCES}` lists {count} differences; {DIFFERENCES_MAX} are allowed"
        )));
    }
    let is_listed = |found: &&Difference| allowed.iter().any(|entry| entry.what == found.what);
    let unknown: Vec<String> = found
        .iter()
        .filter(|found| !is_listed(found))
        .map(|Difference { what, setting }| format!("`{what}` ({setting})"))
        .collect();
    if !unknown.is_empty() {
        return Err(Failure::new(format!(
            "behind our server fails what passes directly: {}; what each check saw is in the \
             folder `transparency` of the target folder",
            unknown.join(", ")
        )));
    }
    for Entry { what, .. } in allowed {
        let differs = |setting: &&Setting| {
            found.iter().any(|found| found.what == *what && found.setting == setting.name)
        };
        if let Some(Setting { name, .. }) = SETTINGS.iter().find(|setting| !differs(setting)) {
            return Err(Failure::new(format!(
                "`{what}` passes through our server ({name}); take it out of `{DIFFERENCES}`; \
                 where another setting still breaks it, fix that"
            )));
        }
    }
    Ok(())
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

    /// These differences in each of these settings.
    fn found(names: &[&str], settings: &[Setting]) -> Vec<Difference> {
        let each =
            names.iter().flat_map(|what| settings.iter().map(move |setting| (what, setting)));
        each.map(|(what, setting)| Difference { what: (*what).to_owned(), setting: setting.name })
            .collect()
    }

    #[test]
    fn differences_are_listed_found_and_few() {
        let entry = |what: &str| Entry { what: what.to_owned(), reason: "because".to_owned() };
        let judged = |allowed: &[Entry], names: &[&str]| judge(allowed, &found(names, SETTINGS));
        assert!(judged(&[], &[]).is_ok());
        assert!(judged(&[entry("a 1 x")], &["a 1 x"]).is_ok());
        assert!(judged(&[entry("a 1 x")], &[]).is_err(), "it no longer differs");
        assert!(judged(&[], &["a 1 x"]).is_err(), "it is not listed");
        let two = ["a 1 x", "a 1 y"];
        assert!(judged(&two.map(entry), &two).is_ok(), "settings are not counted");
        let three = ["a 1 x", "a 1 y", "a 1 z"];
        assert!(judged(&three.map(entry), &three).is_err(), "these are too many");
    }

    #[test]
    fn a_difference_of_one_setting_is_named_and_cannot_be_listed() {
        let entry = Entry { what: "a 1 x".to_owned(), reason: "because".to_owned() };
        for (at, setting) in SETTINGS.iter().enumerate() {
            let alone = found(&["a 1 x"], &SETTINGS[at..=at]);
            let message = judge(&[], &alone).err().map(|failure| failure.to_string());
            let named = format!("`a 1 x` ({})", setting.name);
            assert!(message.is_some_and(|message| message.contains(&named)), "{named}");
            assert!(judge(std::slice::from_ref(&entry), &alone).is_err(), "others pass: {named}");
            let others: Vec<Difference> = found(&["a 1 x"], SETTINGS)
                .into_iter()
                .filter(|difference| difference.setting != setting.name)
                .collect();
            let message = judge(std::slice::from_ref(&entry), &others).err();
            let named = format!("({})", setting.name);
            let message = message.map(|failure| failure.to_string());
            assert!(message.is_some_and(|message| message.contains(&named)), "it passes: {named}");
        }
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
