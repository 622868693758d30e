//! Tasks for contributors, reached as `cargo xtask <command>`: the two test commands and the parts
//! of them that are worth running alone, the house rules as a check, the benchmarks, the build
//! budget and packages.
//! Order of the modules is their import order.

#![allow(
    clippy::disallowed_methods,
    reason = "chores time their steps and wait for processes; no product code runs here"
)]

mod shell;
mod provision;
mod shares;
mod processes;
mod child;
mod steps;
mod tidy;
mod size;
mod test;
mod bench;
mod budget;
mod dist;

use std::env;
use std::process::ExitCode;
use steps::{ALL, Extent};
use steps::{a2a_peers, client_conformance, conformance, fixtures, gateway, models, oidc, peers};
use steps::{keyring, sinks, transparency, upstreams};

use size::Form;

const USAGE: &str = "\
usage: cargo xtask <command>

  test                    what a contributor runs before a commit, in minutes
  prove                   everything else that CI runs
  prove --all             the same, with what takes too long for CI
  live                    the model providers whose keys are set; costs money
  step <name>             one step of `test` or `prove` alone, with what is built already
  tidy                    check the house rules (CONTRIBUTING.md lists them)
  size                    count the lines that ship, crate by crate
  size --json             the same for programs
  conformance             run the official MCP conformance suite against our server
  peers                   let the official MCP SDKs talk to our server
  a2a-peers               let the A2A SDKs and AgentVault's call our server, and be called by it
  keyring                 let our server find keys of agents in a keyring of others
  gateway-conformance     run the official suite against our server with a server behind it;
                          `--all`: with every kind of server
  transparency            run it against servers that others wrote, directly and through ours
  client-conformance      run the official suite against our client
  upstreams               reach servers that others wrote through ours
  models                  let the model vendors' SDKs talk to our fakes of their wires
  sinks                   let `standardwebhooks` verify the events that go out
  oidc                    let clients of others log in at `oidc-provider` and call our server
  fixture-server [args..] serve what both of these call: `--port N` over HTTP, or `--stdio`
  a2a-fixture [args..]    serve the test agent of A2A: `--port N`, and `--bare` for one that can
                          do no more than every agent can
  bench <name> [args..]   run one benchmark of `bench/` in release mode, e.g. `bench durable`
                          --dist: with the build of packages, whose figures are published
                          --against BINARY [--pairs N]: beside another build, by turns
  bench counts            count the instructions of one request of each kind (callgrind)
  budget                  measure the CPU-seconds of a clean dev build
  dist                    build a package: binary, man pages, completions, licences, checksums
";

const USAGE_EXIT_CODE: u8 = 2;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = shell::workspace_root();
    let outcome = match words.as_slice() {
        ["test"] => test::test(&root),
        ["prove"] => test::prove(&root, Extent::Usual),
        ["prove", ALL] => test::prove(&root, Extent::All),
        ["live"] => test::live(&root),
        ["step", name] => test::run_step(&root, name, Extent::Usual),
        ["step", name, ALL] => test::run_step(&root, name, Extent::All),
        // How both commands start a step beside another one.
        ["step", name, "--with-parent"] => test::run_step_with_parent(&root, name, Extent::Usual),
        ["step", name, "--with-parent", ALL] => {
            test::run_step_with_parent(&root, name, Extent::All)
        }
        // How both commands start a program with tests.
        ["tests", program, "--with-parent", tests @ ..] => {
            test::run_program_with_parent(program, tests)
        }
        ["tidy"] => tidy::run(&root),
        ["size"] => size::run(&root, Form::Table),
        ["size", "--json"] => size::run(&root, Form::Json),
        ["conformance"] => conformance::run_alone(&root),
        ["peers"] => peers::run_alone(&root),
        ["a2a-peers"] => a2a_peers::run_alone(&root),
        ["keyring"] => keyring::run_alone(&root),
        ["gateway-conformance"] => gateway::run_alone(&root, Extent::Usual),
        ["gateway-conformance", ALL] => gateway::run_alone(&root, Extent::All),
        ["transparency"] => transparency::run_alone(&root),
        ["client-conformance"] => client_conformance::run_alone(&root),
        ["upstreams"] => upstreams::run_alone(&root),
        ["models"] => models::run_alone(&root),
        ["sinks"] => sinks::run_alone(&root),
        ["oidc"] => oidc::run_alone(&root),
        ["fixture-server", rest @ ..] => fixtures::foreground(&root, rest),
        ["a2a-fixture", rest @ ..] => fixtures::agent_foreground(&root, rest),
        ["bench", name, rest @ ..] => bench::run(&root, name, rest),
        ["budget"] => budget::run(&root),
        ["dist"] => dist::run(&root),
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(USAGE_EXIT_CODE);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}
