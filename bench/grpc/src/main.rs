//! The bare gRPC server of `bench a2a`, and the client that loads both it and the product:
//! `bench-grpc serve FOLDER`, `bench-grpc load ADDRESS PREFIX CLIENTS SECONDS`. `cargo xtask bench
//! a2a` builds it.

mod messages;
mod load;
mod serve;
// As in the other benchmarks: what is committed is the same.
#[path = "../../src/baseline/commits.rs"]
#[allow(dead_code, reason = "nothing is reported here")]
mod commits;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use load::Load;

const USAGE: &str =
    "usage: bench-grpc serve FOLDER | bench-grpc load ADDRESS PREFIX CLIENTS SECONDS";
const SERVICE: &str = "lf.a2a.v1.A2AService";

type Error = Box<dyn std::error::Error + Send + Sync>;
type Result<T> = std::result::Result<T, Error>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-grpc: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<()> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["serve", folder] => {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
            runtime.block_on(serve::serve(Path::new(folder)))
        }
        ["load", address, prefix, clients, seconds] => {
            let load = Load {
                address: address.parse()?,
                prefix: (*prefix).to_owned(),
                clients: clients.parse()?,
                span: Duration::from_secs(seconds.parse()?),
            };
            // One thread for all clients: the cores belong to the server that is measured.
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(load::run(load))
        }
        _ => Err(USAGE.into()),
    }
}
