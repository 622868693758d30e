//! The two test commands, as lists of named steps that run in order, where some run beside each
//! other; the first that fails ends it. `cargo xtask test` is what a contributor runs before a
//! commit, and takes minutes. `cargo xtask prove` is everything else. CI runs both and nothing
//! else.

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
use crate::provision::{self, Program};
use crate::shares::{self, Share};
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
use crate::steps::{ALL, Extent};
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

/// `cargo xtask test`. The order is part of the design: cheap checks first, so that a slip costs
/// seconds. Nothing runs beside `tests`: they take all cores by themselves.
const TEST: &[Step] = &[
    Step::alone("provision", provision_for_tests),
    Step::alone("format", format),
    Step::alone("tidy", house_rules),
    Step::alone("build", build_quick),
    Step::alone("tests", quick_tests),
    Step::beside("conformance", mcp_conformance),
    Step::beside("client-conformance", mcp_client),
    Step::alone("leftovers", leftovers),
];

/// `cargo xtask prove`: what `test` leaves out.
const PROVE: &[Step] = &[
    Step::alone("provision", provision_for_proofs),
    Step::alone("clippy", clippy),
    Step::alone("build-all", build_all),
    Step::alone("long-tests", long_tests),
    Step::beside("doc", doc),
    Step::beside("api", described_api),
    Step::beside("gateway-conformance", mcp_gateway),
    Step::beside("a2a-peers", a2a_sdks),
    Step::beside("transparency", mcp_transparency),
    Step::beside("upstreams", mcp_upstreams),
    Step::beside("peers", mcp_peers),
    Step::beside("keyring", keys_of_agents),
    Step::beside("sinks", events_out),
    Step::beside("oidc", tokens_of_issuers),
    Step::beside("models", model_fakes),
    Step::alone("leftovers", leftovers),
];

/// What only a person starts: it leaves this machine.
const LIVE: Step = Step::alone("live", live_models);

/// Everything that has tests, and everything that has none.
const ALL_TARGETS: &[&str] = &["--all-targets"];

/// Programs that tests start, and the variables that say where they are.
const SERVERS: &[(&str, &str)] = &[("WAYPOST_BIN", "waypost"), ("WAYPOST_FIXTURE_BIN", "fixture")];

/// What the build and all tests call, and the Debian packages that bring it.
const PROGRAMS: &[Program] = &[
    ("cc", &["gcc", "libc6-dev"]),
    ("curl", &["curl"]),
    ("python3", &["python3", "python3-venv"]),
    ("npm", &["nodejs", "npm"]),
];

/// A killed server may take a moment to be gone, and a busy machine longer.
const LEFTOVERS_WAIT: Duration = Duration::from_secs(120);
const LEFTOVERS_POLL: Duration = Duration::from_millis(100);

/// What the steps share: read once, before the first of them.
struct Context {
    root: PathBuf,
    target: PathBuf,
    /// This program, which is also started for what runs beside something else.
    xtask: PathBuf,
    extent: Extent,
    /// Servers someone else started before us; they are not our tests' leftovers.
    already_running: BTreeSet<u32>,
}

/// `cargo xtask test`.
pub fn test(root: &Path) -> Result<(), Failure> {
    run_steps(root, TEST, Extent::Usual)
}

/// `cargo xtask prove`.
pub fn prove(root: &Path, extent: Extent) -> Result<(), Failure> {
    run_steps(root, PROVE, extent)
}

/// `cargo xtask live`: the providers of models themselves, where a key is set.
pub fn live(root: &Path) -> Result<(), Failure> {
    run_steps(root, &[LIVE], Extent::Usual)
}

/// Runs one step of either command, with what is built already.
pub fn run_step(root: &Path, name: &str, extent: Extent) -> Result<(), Failure> {
    let mut steps = TEST.iter().chain(PROVE);
    let step = steps.find(|step| step.name == name).ok_or_else(|| {
        let names: Vec<&str> = TEST.iter().chain(PROVE).map(|step| step.name).collect();
        Failure::new(format!("no step `{name}`; there are `{}`", names.join("`, `")))
    })?;
    (step.run)(&Context::read(root, extent)?)
}

/// The same in a process that ends with its parent, and with it all that it started.
pub fn run_step_with_parent(root: &Path, name: &str, extent: Extent) -> Result<(), Failure> {
    beside::end_with_parent();
    run_step(root, name, extent)
}

fn run_steps(root: &Path, steps: &[Step], extent: Extent) -> Result<(), Failure> {
    let begun = Instant::now();
    let context = Context::read(root, extent)?;
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
    fn read(root: &Path, extent: Extent) -> Result<Self, Failure> {
        let target = shell::target_folder(root)?;
        let xtask = env::current_exe()
            .map_err(|error| Failure::new(format!("cannot tell where xtask is: {error}")))?;
        let already_running = processes::servers_in(&target).into_keys().collect();
        Ok(Self { root: root.to_path_buf(), target, xtask, extent, already_running })
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
        command.args((context.extent == Extent::All).then_some(ALL));
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

fn provision_for_tests(_: &Context) -> Result<(), Failure> {
    provision::ensure(PROGRAMS)
}

fn provision_for_proofs(_: &Context) -> Result<(), Failure> {
    provision::ensure(&[PROGRAMS, keyring::PROGRAMS].concat())
}

fn format(context: &Context) -> Result<(), Failure> {
    shell::run("cargo fmt", shell::cargo(&context.root).args(["fmt", "--all", "--check"]))
}

fn house_rules(context: &Context) -> Result<(), Failure> {
    tidy::run(&context.root)
}

/// It shares what it needs of dependencies with `doc`, not with the build.
fn clippy(context: &Context) -> Result<(), Failure> {
    shell::run(
        "cargo clippy",
        shell::cargo(&context.root)
            .args(["clippy", "--workspace", "--all-targets", "--locked"])
            .args(["--", "-D", "warnings"]),
    )
}

/// Builds the tests of `test`, and the programs that they start: cargo builds the programs of a
/// crate with its integration tests.
fn build_quick(context: &Context) -> Result<(), Failure> {
    programs::build(&mut cargo_test(context, shares::QUICK_TARGETS)).map(drop)
}

/// Builds everything, and with it the tests that `test` does not build.
fn build_all(context: &Context) -> Result<(), Failure> {
    programs::build(&mut cargo_test(context, ALL_TARGETS)).map(drop)
}

fn quick_tests(context: &Context) -> Result<(), Failure> {
    run_tests(context, shares::QUICK_TARGETS, Share::Quick)
}

fn long_tests(context: &Context) -> Result<(), Failure> {
    run_tests(context, ALL_TARGETS, Share::Long)
}

/// Builds these targets, and runs this share of their tests.
fn run_tests(context: &Context, targets: &[&str], share: Share) -> Result<(), Failure> {
    let built = programs::build(&mut cargo_test(context, targets))?;
    let servers = context.target.join("debug");
    let programs = built.into_iter().filter_map(|program| program.beside(&context.xtask, share));
    let programs = programs.map(|mut program| {
        live::forbidden(&mut program.command)
            .envs(SERVERS.iter().map(|(variable, name)| (variable, servers.join(name))));
        program
    });
    programs::run(programs.collect(), &context.target.join("steps").join(share.name()))
}

/// The one selection of crates that everything for tests is built with: another one could have
/// other features, and then most of ours would be built twice.
fn cargo_test(context: &Context, targets: &[&str]) -> Command {
    let mut cargo = shell::cargo(&context.root);
    cargo.args(["test", "--workspace", "--locked"]).args(targets);
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
    gateway::run(&context.root, &context.target, context.extent)
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
            .args(["doc", "--workspace", "--no-deps", "--locked"])
            .env("RUSTDOCFLAGS", "-D warnings"),
    )
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
        for steps in [TEST, PROVE] {
            let first = steps.iter().position(|step| step.beside);
            let last = steps.iter().rposition(|step| step.beside);
            let tests = steps.iter().position(|step| step.name.ends_with("tests"));
            assert!(tests < first && last == Some(steps.len() - 2), "{last:?}");
            assert_eq!(steps.last().map(|step| step.name), Some("leftovers"));
            let groups = steps.chunk_by(|one, next| one.beside && next.beside);
            assert_eq!(groups.filter(|steps| steps.len() > 1).count(), 1);
        }
        assert!(run_step(Path::new("."), "no-such-step", Extent::Usual).is_err());
    }
}
