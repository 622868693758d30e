//! `cargo xtask test`: the one test command. A list of named steps, run in order, where some run
//! beside each other; the first that fails ends it. What CI runs is this and nothing else. `cargo
//! xtask check` is the short list for the time between.

mod told;
mod beside;
mod programs;

use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::processes;
use crate::shell::{self, Failure};
use crate::steps::a2a_peers;
use crate::steps::api;
use crate::steps::client_conformance;
use crate::steps::conformance;
use crate::steps::gateway;
use crate::steps::keyring;
use crate::steps::live;
use crate::steps::models;
use crate::steps::oidc;
use crate::steps::peers;
use crate::steps::sinks;
use crate::steps::transparency;
use crate::steps::upstreams;
use crate::tidy;
use beside::{Beside, Load, Took};

pub use programs::run_program_with_parent;

#[derive(Clone, Copy)]
struct Step {
    name: &'static str,
    run: fn(&Context) -> Result<(), Failure>,
    /// Whether it may run at the same time as its neighbours that may, too: it has ports, folders
    /// and processes of its own, and of those side by side at most one calls cargo, which lets only
    /// one build at a time.
    beside: bool,
}

impl Step {
    const fn alone(name: &'static str, run: fn(&Context) -> Result<(), Failure>) -> Self {
        Self { name, run, beside: false }
    }

    const fn beside(name: &'static str, run: fn(&Context) -> Result<(), Failure>) -> Self {
        Self { name, run, beside: true }
    }
}

/// The order is part of the design: cheap checks first, so that a slip costs seconds. Nothing runs
/// beside `test`: many tests have deadlines, and they take all cores by themselves.
const STEPS: &[Step] = &[
    Step::alone("provision", provision),
    Step::alone("format", format),
    Step::alone("tidy", house_rules),
    Step::alone("clippy", clippy),
    Step::alone("build", build),
    Step::alone("test", test),
    Step::beside("doc", doc),
    Step::beside("api", described_api),
    Step::beside("gateway-conformance", mcp_gateway),
    Step::beside("transparency", mcp_transparency),
    Step::beside("conformance", mcp_conformance),
    Step::beside("upstreams", mcp_upstreams),
    Step::beside("peers", mcp_peers),
    Step::beside("a2a-peers", a2a_sdks),
    Step::beside("keyring", keys_of_agents),
    Step::beside("client-conformance", mcp_client),
    Step::beside("sinks", events_out),
    Step::beside("oidc", tokens_of_issuers),
    Step::beside("models", model_fakes),
    Step::alone("leftovers", leftovers),
];

/// What is worth waiting for after every change: it starts no servers and installs nothing.
const QUICK_STEPS: &[Step] = &[
    Step::alone("format", format),
    Step::alone("tidy", house_rules),
    Step::alone("clippy", clippy),
    Step::alone("test", quick_test),
];

/// Unit tests of all crates and the scenes. Programs of `testkit` have no tests of their own, and
/// linking them takes long, so those of the others are named. All in one selection: another one
/// could build dependencies again with other features.
const QUICK_TARGETS: &[&str] =
    &["--lib", "--bin", "waypost", "--bin", "bench", "--bin", "xtask", "--test", "scenes"];

/// Programs that tests start, and the variables that say where they are.
const SERVERS: &[(&str, &str)] = &[
    ("WAYPOST_BIN", "waypost"),
    ("WAYPOST_RECEIVER_BIN", "receiver"),
    ("WAYPOST_UPSTREAM_BIN", "upstream"),
    ("WAYPOST_ABORTIVE_BIN", "abortive"),
];

/// What only a person starts: it leaves this machine.
const LIVE: Step = Step::alone("live", live_models);

/// What the steps share: read once, before the first of them.
struct Context {
    root: PathBuf,
    target: PathBuf,
    /// This program, which is also started for what runs beside something else.
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
const LEFTOVERS_WAIT: Duration = Duration::from_secs(120);
const LEFTOVERS_POLL: Duration = Duration::from_millis(100);

/// Runs every step and prints how long each took.
pub fn run(root: &Path) -> Result<(), Failure> {
    run_steps(root, STEPS)
}

/// The same, and then the providers of models themselves, where a key is set.
pub fn run_live(root: &Path) -> Result<(), Failure> {
    let steps: Vec<Step> = STEPS.iter().copied().chain([LIVE]).collect();
    run_steps(root, &steps)
}

/// Runs the short list.
pub fn run_quick(root: &Path) -> Result<(), Failure> {
    run_steps(root, QUICK_STEPS)
}

/// Runs one step of the long list.
pub fn run_step(root: &Path, name: &str) -> Result<(), Failure> {
    let step = STEPS.iter().find(|step| step.name == name).ok_or_else(|| {
        let names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        Failure::new(format!("no step `{name}`; there are `{}`", names.join("`, `")))
    })?;
    (step.run)(&Context::read(root)?)
}

/// The same in a process that ends with its parent, and with it all that it started.
pub fn run_step_with_parent(root: &Path, name: &str) -> Result<(), Failure> {
    beside::end_with_parent();
    run_step(root, name)
}

fn run_steps(root: &Path, steps: &[Step]) -> Result<(), Failure> {
    let begun = Instant::now();
    let context = Context::read(root)?;
    let mut times = Vec::new();
    for side_by_side in steps.chunk_by(|one, next| one.beside && next.beside) {
        match side_by_side {
            [step] => times.push(run_alone(&context, step)?),
            steps => times.extend(run_beside(&context, steps)?),
        }
    }
    print!("{}", summary(&times, begun.elapsed().as_secs_f64()));
    println!("all steps passed");
    Ok(())
}

impl Context {
    fn read(root: &Path) -> Result<Self, Failure> {
        let target = shell::target_folder(root)?;
        let xtask = env::current_exe()
            .map_err(|error| Failure::new(format!("cannot tell where xtask is: {error}")))?;
        let already_running = processes::servers_in(&target).into_keys().collect();
        Ok(Self { root: root.to_path_buf(), target, xtask, already_running })
    }
}

fn run_alone(context: &Context, step: &Step) -> Result<Took, Failure> {
    let name = step.name;
    println!("== step: {name}");
    let started = Instant::now();
    let outcome = (step.run)(context);
    let seconds = started.elapsed().as_secs_f64();
    outcome.map_err(|failure| {
        Failure::new(format!("step `{name}` failed after {seconds:.1} s: {failure}"))
    })?;
    println!("   {name} took {seconds:.1} s");
    Ok(Took { name: name.to_owned(), seconds })
}

fn run_beside(context: &Context, steps: &[Step]) -> Result<Vec<Took>, Failure> {
    let steps = steps.iter().map(|step| {
        let mut command = Command::new(&context.xtask);
        command.args(["step", step.name, "--with-parent"]);
        Beside { name: step.name.to_owned(), command, load: Load::Usual }
    });
    let mut times = Vec::new();
    beside::run(steps.collect(), &context.target.join("steps"), |over| {
        over.print("step: ");
        times.push(over.passed()?);
        Ok(())
    })?;
    Ok(times)
}

fn provision(_: &Context) -> Result<(), Failure> {
    let missing = missing_programs();
    if missing.is_empty() {
        let names: Vec<&str> = programs_needed().map(|(program, _)| *program).collect();
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

/// Builds the tests, and with them the programs that they start: cargo builds the programs of a
/// crate with its integration tests. Another selection of crates could have other features, and
/// then most of ours would be built twice.
fn build(context: &Context) -> Result<(), Failure> {
    programs::build(&mut cargo_test(context)).map(drop)
}

fn test(context: &Context) -> Result<(), Failure> {
    run_tests(context, &[])
}

fn quick_test(context: &Context) -> Result<(), Failure> {
    run_tests(context, QUICK_TARGETS)
}

/// Builds and runs the tests of these targets, or of all.
fn run_tests(context: &Context, targets: &[&str]) -> Result<(), Failure> {
    let built = programs::build(cargo_test(context).args(targets))?;
    let servers = context.target.join("debug");
    let programs = built.into_iter().map(|program| {
        let mut program = program.beside(&context.xtask);
        live::forbidden(&mut program.command)
            .envs(SERVERS.iter().map(|(variable, name)| (variable, servers.join(name))));
        program
    });
    programs::run(programs.collect(), &context.target.join("steps/tests"))
}

/// The one selection of crates that everything for tests is built with.
fn cargo_test(context: &Context) -> Command {
    let mut cargo = shell::cargo(&context.root);
    cargo.args(["test", "--workspace", "--locked"]);
    cargo
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

/// The official SDKs of A2A call our server, and agents made with them are called.
fn a2a_sdks(context: &Context) -> Result<(), Failure> {
    a2a_peers::run(&context.root, &context.target)
}

/// A keyring that others wrote has the keys of our agents.
fn keys_of_agents(context: &Context) -> Result<(), Failure> {
    keyring::run(&context.root, &context.target)
}

/// The official suite finds what is behind our server as conformant as the server itself.
fn mcp_gateway(context: &Context) -> Result<(), Failure> {
    gateway::run(&context.root, &context.target)
}

/// The official suite finds servers that others wrote as conformant behind ours as they are.
fn mcp_transparency(context: &Context) -> Result<(), Failure> {
    transparency::run(&context.root, &context.target)
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

/// Clients that others wrote log in at an issuer that others wrote, and call with its tokens.
fn tokens_of_issuers(context: &Context) -> Result<(), Failure> {
    oidc::run(&context.root, &context.target)
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
            // One core: the other is for the step beside it.
            .args(["doc", "--workspace", "--no-deps", "--locked", "--jobs", "1"])
            .env("RUSTDOCFLAGS", "-D warnings"),
    )
}

/// Those of all steps.
fn programs_needed() -> impl Iterator<Item = &'static (&'static str, &'static [&'static str])> {
    PROGRAMS.iter().chain(keyring::PROGRAMS)
}

fn missing_programs() -> Vec<&'static str> {
    let programs = programs_needed().map(|(program, _)| *program);
    programs.filter(|program| !shell::is_installed(program)).collect()
}

fn packages(missing: &[&str]) -> Vec<&'static str> {
    let wanted = programs_needed().filter(|(program, _)| missing.contains(program));
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

/// Steps beside each other take less together than each for itself, so the total is no sum.
fn summary(times: &[Took], total: f64) -> String {
    let mut table = String::from("== summary\n");
    for Took { name, seconds } in times {
        table.push_str(&format!("   {name:<20}{seconds:>8.1} s\n"));
    }
    table.push_str(&format!("   {:<20}{total:>8.1} s\n", "total"));
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_is_a_table() {
        let took = |name: &str, seconds| Took { name: name.to_owned(), seconds };
        let table = summary(&[took("format", 0.3), took("test", 61.0)], 61.1);
        let expected = [
            "== summary",
            "   format                   0.3 s",
            "   test                    61.0 s",
            "   total                   61.1 s",
            "",
        ];
        assert_eq!(table, expected.join("\n"));
    }

    #[test]
    fn what_runs_side_by_side_comes_after_the_tests_and_before_the_look_at_what_is_left() {
        let places = |wanted: bool| STEPS.iter().position(move |step| step.beside == wanted);
        let of = |name: &str| STEPS.iter().position(|step| step.name == name);
        let last = STEPS.iter().rposition(|step| step.beside);
        assert_eq!(places(false), Some(0));
        assert!(of("test") < places(true) && last < of("leftovers"), "{last:?}");
        let groups = STEPS.chunk_by(|one, next| one.beside && next.beside);
        assert_eq!(groups.filter(|steps| steps.len() > 1).count(), 1);
        assert!(run_step(Path::new("."), "no-such-step").is_err());
    }

    #[test]
    fn a_missing_program_says_what_to_install() {
        let message = missing_failure(&["cc"]).to_string();
        assert!(message.contains("`cc`") && message.contains("`gcc`"), "{message}");
        assert!(!message.contains("`npm`"), "{message}");
    }
}
