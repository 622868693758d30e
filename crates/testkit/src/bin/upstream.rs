//! An MCP server that misbehaves on request; `testkit::upstream` says how. On this machine only.
//!
//! `upstream [--port N | --stdio] [--with-parent] [--era legacy|modern] [--bad NAME]..`

use std::process::ExitCode;
use testkit::upstream::{Options, run};

fn main() -> ExitCode {
    match Options::read(std::env::args().skip(1)).and_then(run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("upstream: {error}");
            ExitCode::FAILURE
        }
    }
}
