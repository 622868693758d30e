//! `waypost session export`: streams a session as JSON to standard output or a file. It may be
//! larger than memory.

use super::{Named, find};
use crate::commands::init::check_free;
use crate::context::Context;
use crate::exit::{Exit, Failure, Result};
use crate::remote::client::{Client, Request};
use crate::remote::download::Download;
use clap::Args;
use kernel::values::visible::exposed_json;
use project::atomic_file::{AtomicFile, FileAccess};
use serde_json::json;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    named: Named,
    /// Write it to this new file, which is there once all of it came
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(super) async fn run(context: &Context, client: &Client, args: &ExportArgs) -> Result<Exit> {
    let output = context.output;
    args.output.as_deref().map_or(Ok(()), check_free)?;
    let session = find(client, &args.named.resolved(client).await?).await?.id;
    let request = Request::to(&["sessions", &session, "export"]);
    let begun = Download::begin(client, request, output.is_json());
    let mut document = context.progress().during(format!("exporting {session}"), begun).await?;
    let mut file = match &args.output {
        Some(path) => Some((path, create(path)?)),
        None => None,
    };
    while let Some(piece) = document.next().await? {
        let piece = if output.is_json() { piece } else { exposed_json(&piece) };
        match &mut file {
            Some((path, file)) => write(file, path, &piece)?,
            None => output.piece(&piece)?,
        }
    }
    let Some((path, mut file)) = file else {
        output.piece("\n")?;
        return Ok(Exit::Ok);
    };
    write(&mut file, path, "\n")?;
    // Somebody may have written one while the session came.
    check_free(path)?;
    file.finish().map_err(|error| unwritten(path, &error))?;
    let path = path.display().to_string();
    let told = format!("exported {session} to {path}");
    output.done(&json!({"session": session, "file": path}), &told)
}

fn create(path: &Path) -> Result<AtomicFile> {
    AtomicFile::create(path, FileAccess::Default).map_err(|error| unwritten(path, &error))
}

fn write(file: &mut AtomicFile, path: &Path, piece: &str) -> Result<()> {
    file.write_all(piece.as_bytes()).map_err(|error| unwritten(path, &error))
}

fn unwritten(path: &Path, error: &io::Error) -> Failure {
    let what = format!("cannot write `{}`: {error}", path.display());
    Failure::new(Exit::Failed, "unwritten", what)
}
