//! `waypost session export`: a session as JSON, printed or written to a file as it comes. It may be
//! larger than memory.

use super::{Named, find};
use crate::context::Context;
use crate::exit::{Exit, Failure, Result};
use crate::remote::client::{Client, Request};
use crate::remote::download::Download;
use clap::Args;
use kernel::values::visible::exposed_json;
use serde_json::json;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(super) struct ExportArgs {
    #[command(flatten)]
    named: Named,
    /// Write it to this file, which is there once all of it came
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(super) async fn run(context: &Context, client: &Client, args: &ExportArgs) -> Result<Exit> {
    let output = context.output;
    let session = find(client, &args.named.resolved(client).await?).await?.id;
    let request = Request::to(&["sessions", &session, "export"]);
    let begun = Download::begin(client, request, output.is_json());
    let mut document = context.progress().during(format!("exporting {session}"), begun).await?;
    let mut file = args.output.as_deref().map(PartialFile::create).transpose()?;
    while let Some(piece) = document.next().await? {
        let piece = if output.is_json() { piece } else { exposed_json(&piece) };
        match &mut file {
            Some(file) => file.write(&piece)?,
            None => output.piece(&piece)?,
        }
    }
    let Some(file) = file else {
        output.piece("\n")?;
        return Ok(Exit::Ok);
    };
    let path = file.finish()?.display().to_string();
    let told = format!("exported {session} to {path}");
    output.done(&json!({"session": session, "file": path}), &told)
}

/// A file that has its name once it is whole. Until then it is beside it, and gone where it is
/// given up.
struct PartialFile<'a> {
    file: File,
    path: PathBuf,
    target: &'a Path,
}

impl<'a> PartialFile<'a> {
    fn create(target: &'a Path) -> Result<Self> {
        let mut name = target.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.unfinished", std::process::id()));
        let path = target.with_file_name(name);
        let created = File::create_new(&path).map_err(|error| unwritten(target, &error))?;
        Ok(Self { file: created, path, target })
    }

    fn write(&mut self, piece: &str) -> Result<()> {
        self.file.write_all(piece.as_bytes()).map_err(|error| unwritten(self.target, &error))
    }

    /// Gives it its name.
    fn finish(mut self) -> Result<&'a Path> {
        self.write("\n")?;
        let named = self.file.sync_all().and_then(|()| fs::rename(&self.path, self.target));
        named.map_err(|error| unwritten(self.target, &error))?;
        Ok(self.target)
    }
}

impl Drop for PartialFile<'_> {
    fn drop(&mut self) {
        // One that has its name is not there any more.
        let _ = fs::remove_file(&self.path);
    }
}

fn unwritten(path: &Path, error: &io::Error) -> Failure {
    let what = format!("cannot write `{}`: {error}", path.display());
    Failure::new(Exit::Failed, "unwritten", what)
}
