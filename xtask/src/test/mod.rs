//! `cargo xtask test`: the one test command. A list of named steps, run in order; the first failure
//! ends it. What CI runs is this and nothing else. `cargo xtask check` is the short list for the
//! time between.

mod told;
mod timed;

use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::api;
use crate::client_conformance;
use crate::conformance;
use crate::gateway;
use crate::live;
use crate::models;
use crate::peers;
use crate::processes;
use crate::shell::{self, Failure};
use crate::sinks;
use crate::tidy;
use crate::upstreams;

pub use timed::become_tests;

struct Step {
    name: &'static str,
    run: fn(&Context) -> Result<(), Failure>,
}

/// The order is part of the design: cheap checks first, so that a slip costs seconds.
const STEPS: &[Step] = &[
    Step { name: "provision", run: provision },
    Step { name: "format", run: format },
    Step { name: "tidy", run: house_rules },
    Step { name: "clippy", run: clippy },
    Step { name: "build", run: build },
    Step { name: "test", run: test },
    Step { name: "api", run: described_api },
    Step { name: "conformance", run: mcp_conformance },
    Step { name: "peers", run: mcp_peers },
    Step { name: "gateway-conformance", run: mcp_gateway },
    Step { name: "client-conformance", run: mcp_client },
    Step { name: "upstreams", run: mcp_upstreams },
    Step { name: "models", run: model_fakes },
    Step { name: "sinks", run: events_out },
    Step { name: "leftovers", run: leftovers },
    Step { name: "doc", run: doc },
];

/// What is worth waiting for after every change: it starts no servers and installs nothing.
const QUICK_STEPS: &[Step] = &[
    Step { name: "format", run: format },
    Step { name: "tidy", run: house_rules },
    Step { name: "clippy", run: clippy },
    Step { name: "test", run: quick_test },
];

/// Unit tests of all crates and the scenes. Programs of `testkit` have no tests of their own, and
/// linking them takes long, so those of the others are named. All in one selection: another one
/// could build dependencies anew with other features.
const QUICK_TARGETS: &[&str] =
    &["--lib", "--bin", "waypost", "--bin", "bench", "--bin", "xtask", "--test", "scenes"];

/// What only a person starts: it leaves this machine.
const LIVE: Step = Step { name: "live", run: live_models };

/// What the steps share: read once, before the first of them.
struct Context {
    root: PathBuf,
    target: PathBuf,
    /// This program, which every test program is started with.
    xtask: PathBuf,
    /// Servers someone else started before us; they are not our tests' leftovers.
    already_running: BTreeSet<u32>,
}

/// Programs the build and the tests call, and the Debian packages that bring them. Packages of
/// programs that are there are left alone: Debian's `npm` does not go with a Node from elsewhere.
const PROGRAMS: &[(&str, &[&str])] = &[
    ("cc", &["gcc", "libc6-dev"]),
    ("curl", &["curl"]),
    ("python3", &["python3", "python3-venv"]),
    ("npm", &["nodejs", "npm"]),
];

/// A killed server may take a moment to be gone, and a busy machine longer.
const LEFTOVERS_WAIT: Duration = Duration::from_secs(30);
const LEFTOVERS_POLL: Duration = Duration::from_millis(100);

/// Runs every step and prints how long each took.
pub fn run(root: &Path) -> Result<(), Failure> {
    run_steps(root, STEPS.iter())
}

/// The same, and then the providers of models themselves, where a key is set.
pub fn run_live(root: &Path) -> Result<(), Failure> {
    run_steps(root, STEPS.iter().chain([&LIVE]))
}

/// Runs the short list.
pub fn run_quick(root: &Path) -> Result<(), Failure> {
    run_steps(root, QUICK_STEPS.iter())
}

fn run_steps<'a>(root: &Path, steps: impl Iterator<Item = &'a Step>) -> Result<(), Failure> {
    let target = shell::target_folder(root)?;
    let xtask = env::current_exe()
        .map_err(|error| Failure::new(format!("cannot tell where xtask is: {error}")))?;
    let already_running = processes::servers_in(&target).into_keys().collect();
    let context = Context { root: root.to_path_buf(), target, xtask, already_running };
    let mut times = Vec::new();
    for step in steps {
        println!("== step: {}", step.name);
        let started = Instant::now();
        let outcome = (step.run)(&context);
        let seconds = started.elapsed().as_secs_f64();
        outcome.map_err(|failure| {
            Failure::new(format!("step `{}` failed after {seconds:.1} s: {failure}", step.name))
        })?;
        println!("   {} took {seconds:.1} s", step.name);
        times.push((step.name, seconds));
    }
    print!("{}", summary(&times));
    println!("all steps passed");
    Ok(())
}

fn provision(_: &Context) -> Result<(), Failure> {
    let missing = missing_programs();
    if missing.is_empty() {
        let names: Vec<&str> = PROGRAMS.iter().map(|(program, _)| *program).collect();
        println!("   present: {}", names.join(", "));
        return Ok(());
    }
    if !is_debian() || !is_root() {
        return Err(missing_failure(&missing));
    }
    shell::run("apt-get update", Command::new("apt-get").arg("update"))?;
    shell::run(
        "apt-get install",
        Command::new("apt-get")
            .args(["install", "-y", "--no-install-recommends"])
            .args(packages(&missing))
            .env("DEBIAN_FRONTEND", "noninteractive"),
    )?;
    let missing = missing_programs();
    if missing.is_empty() { Ok(()) } else { Err(missing_failure(&missing)) }
}

fn format(context: &Context) -> Result<(), Failure> {
    shell::run("cargo fmt", shell::cargo(&context.root).args(["fmt", "--all", "--check"]))
}

fn house_rules(context: &Context) -> Result<(), Failure> {
    tidy::run(&context.root)
}

fn clippy(context: &Context) -> Result<(), Failure> {
    shell::run(
        "cargo clippy",
        shell::cargo(&context.root)
            .args(["clippy", "--workspace", "--all-targets", "--locked"])
            .args(["--", "-D", "warnings"]),
    )
}

/// Process tests start real programs, and `cargo test` alone does not promise to build them.
fn build(context: &Context) -> Result<(), Failure> {
    shell::run(
        "cargo build",
        shell::cargo(&context.root)
            .args(["build", "--locked", "-p", "waypost", "-p", "testkit", "--bins"]),
    )
}

fn test(context: &Context) -> Result<(), Failure> {
    let programs = context.target.join("debug");
    let mut cargo = shell::cargo(&context.root);
    live::forbidden(&mut cargo)
        .args(["test", "--workspace", "--locked"])
        .env("WAYPOST_BIN", programs.join("waypost"))
        .env("WAYPOST_RECEIVER_BIN", programs.join("receiver"))
        .env("WAYPOST_UPSTREAM_BIN", programs.join("upstream"))
        .env("WAYPOST_ABORTIVE_BIN", programs.join("abortive"));
    timed::run(cargo, &context.xtask)
}

fn quick_test(context: &Context) -> Result<(), Failure> {
    let mut cargo = shell::cargo(&context.root);
    live::forbidden(&mut cargo).args(["test", "--workspace", "--locked"]).args(QUICK_TARGETS);
    timed::run(cargo, &context.xtask)
}

/// The real server does what `/openapi.json` says.
fn described_api(context: &Context) -> Result<(), Failure> {
    api::run(&context.target)
}

/// The official suite finds our server conformant.
fn mcp_conformance(context: &Context) -> Result<(), Failure> {
    conformance::run(&context.root, &context.target)
}

/// Clients that others wrote get along with our server.
fn mcp_peers(context: &Context) -> Result<(), Failure> {
    peers::run(&context.root, &context.target)
}

/// The official suite finds what is behind our server as conformant as the server itself.
fn mcp_gateway(context: &Context) -> Result<(), Failure> {
    gateway::run(&context.root, &context.target)
}

/// The official suite finds our client conformant.
fn mcp_client(context: &Context) -> Result<(), Failure> {
    client_conformance::run(&context.root, &context.target)
}

/// Servers that others wrote are reached through ours.
fn mcp_upstreams(context: &Context) -> Result<(), Failure> {
    upstreams::run(&context.root, &context.target)
}

/// The vendors' SDKs understand the fakes that our adapters are tested with.
fn model_fakes(context: &Context) -> Result<(), Failure> {
    models::run(&context.root, &context.target)
}

/// Receivers that others wrote verify the events that go out.
fn events_out(context: &Context) -> Result<(), Failure> {
    sinks::run(&context.root, &context.target)
}

/// The providers themselves do what their fakes do.
fn live_models(context: &Context) -> Result<(), Failure> {
    live::run(&context.root)
}

fn leftovers(context: &Context) -> Result<(), Failure> {
    let started = Instant::now();
    loop {
        let mut running = processes::servers_in(&context.target);
        running.retain(|pid, _| !context.already_running.contains(pid));
        if running.is_empty() {
            return Ok(());
        }
        if started.elapsed() >= LEFTOVERS_WAIT {
            let list: Vec<String> = running
                .iter()
                .map(|(pid, executable)| format!("`{}` (pid {pid})", executable.display()))
                .collect();
            return Err(Failure::new(format!(
                "the tests left processes behind: {}; end them in the test that starts them",
                list.join(", ")
            )));
        }
        thread::sleep(LEFTOVERS_POLL);
    }
}

fn doc(context: &Context) -> Result<(), Failure> {
    shell::run(
        "cargo doc",
        shell::cargo(&context.root)
            .args(["doc", "--workspace", "--no-deps", "--locked"])
            .env("RUSTDOCFLAGS", "-D warnings"),
    )
}

fn missing_programs() -> Vec<&'static str> {
    let programs = PROGRAMS.iter().map(|(program, _)| *program);
    programs.filter(|program| !shell::is_installed(program)).collect()
}

fn packages(missing: &[&str]) -> Vec<&'static str> {
    let wanted = PROGRAMS.iter().filter(|(program, _)| missing.contains(program));
    wanted.flat_map(|(_, packages)| packages.iter().copied()).collect()
}

fn missing_failure(missing: &[&str]) -> Failure {
    Failure::new(format!(
        "missing programs: `{}`; install the packages `{}` (or your system's names for them)",
        missing.join("`, `"),
        packages(missing).join("`, `")
    ))
}

fn is_debian() -> bool {
    Path::new("/etc/debian_version").exists() && shell::is_installed("apt-get")
}

fn is_root() -> bool {
    shell::output_of("id", Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

fn summary(times: &[(&str, f64)]) -> String {
    let mut table = String::from("== summary\n");
    for (name, seconds) in times {
        table.push_str(&format!("   {name:<20}{seconds:>8.1} s\n"));
    }
    let total: f64 = times.iter().map(|(_, seconds)| seconds).sum();
    table.push_str(&format!("   {:<20}{total:>8.1} s\n", "total"));
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_is_a_table() {
        let table = summary(&[("format", 0.3), ("test", 61.0)]);
        let expected = [
            "== summary",
            "   format                   0.3 s",
            "   test                    61.0 s",
            "   total                   61.3 s",
            "",
        ];
        assert_eq!(table, expected.join("\n"));
    }

    #[test]
    fn a_missing_program_says_what_to_install() {
        let message = missing_failure(&["cc"]).to_string();
        assert!(message.contains("`cc`") && message.contains("`gcc`"), "{message}");
        assert!(!message.contains("`npm`"), "{message}");
    }
}
