//! House chores, reached as `cargo xtask <command>`: the one test command, the house rules as a
//! check, the benchmarks and the build budget. Order of the modules is their import order.

#![allow(
    clippy::disallowed_methods,
    reason = "chores time their steps and wait for processes; no product code runs here"
)]

mod shell;
mod processes;
mod tidy;
mod api;
mod test;
mod bench;
mod budget;

use std::env;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask <command>

  test                    run everything CI runs, in order, and stop at the first failure
  tidy                    check the house rules (CONTRIBUTING.md lists them)
  bench <name> [args..]   run one benchmark of `bench/` in release mode, e.g. `bench durable`
  budget                  measure the CPU-seconds of a clean dev build
";

const USAGE_EXIT_CODE: u8 = 2;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = shell::workspace_root();
    let outcome = match words.as_slice() {
        ["test"] => test::run(&root),
        ["tidy"] => tidy::run(&root),
        ["bench", name, rest @ ..] => bench::run(&root, name, rest),
        ["budget"] => budget::run(&root),
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
