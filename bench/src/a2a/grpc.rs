//! Messages over gRPC: the program in `bench/grpc`, which is the bare server of `tonic` and the
//! client of both it and the product. A program of its own, because with `tonic` among its
//! dependencies this one would build the product's crates with other features than users do.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;

use crate::Result;
use crate::child::Child;
use crate::load::Summary;

/// The program, where it is built.
#[derive(Debug)]
pub struct Program<'a>(pub &'a Path);

/// What it prints after a load.
#[derive(Deserialize)]
struct Told {
    answered: usize,
    elapsed_us: u64,
    p50_us: u64,
    p99_us: u64,
}

impl Program<'_> {
    /// Where it is, from the environment; `cargo xtask bench a2a` builds it.
    pub fn path() -> Option<PathBuf> {
        std::env::var_os("WAYPOST_BENCH_GRPC").map(PathBuf::from).filter(|path| path.is_file())
    }

    /// Starts the bare server, which makes a durable commit in this folder for each message.
    pub fn serve(&self, folder: &Path) -> Result<Child> {
        Child::start_program("bench-grpc", Command::new(self.0).arg("serve").arg(folder))
    }

    /// Loads a server for `span` after a warm-up with messages whose ids begin with `prefix`.
    pub async fn load(
        &self,
        address: SocketAddr,
        prefix: &str,
        clients: usize,
        span: Duration,
    ) -> Result<Summary> {
        let mut command = tokio::process::Command::new(self.0);
        command.arg("load").args([&address.to_string(), prefix]);
        command.args([clients.to_string(), span.as_secs().to_string()]).kill_on_drop(true);
        let output = command.output().await?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("the load over gRPC failed: {}", said.trim()).into());
        }
        let Told { answered, elapsed_us, p50_us, p99_us } = serde_json::from_slice(&output.stdout)?;
        Ok(Summary {
            answered,
            rate: answered as f64 / Duration::from_micros(elapsed_us).as_secs_f64(),
            p50: Duration::from_micros(p50_us),
            p99: Duration::from_micros(p99_us),
        })
    }
}
