//! Our own MCP client, as the official conformance suite starts it: once for each scenario, which
//! it names in its environment. `testkit::conformance_client` says what is done then.
//!
//! `conformance-client URL`

use std::process::ExitCode;
use testkit::conformance_client::{DONE, run};

fn main() -> ExitCode {
    match run() {
        Ok(()) => {
            println!("{DONE}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("conformance-client: {error}");
            ExitCode::FAILURE
        }
    }
}
