//! Fakes of the model providers' wires; `testkit::llms` says how to control them. On this
//! machine only; it ends with its standard input.
//!
//! `fake-models [PORT]`

use std::process::ExitCode;

fn main() -> ExitCode {
    let port = std::env::args().nth(1).map_or(Ok(0), |port| port.parse());
    let served = match port {
        Ok(port) => testkit::llms::run(port).map_err(|error| error.to_string()),
        Err(error) => Err(format!("that is no port: {error}")),
    };
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fake-models: {error}");
            ExitCode::FAILURE
        }
    }
}
