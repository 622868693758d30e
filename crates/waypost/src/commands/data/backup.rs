//! `waypost backup`: copies a data folder so that a server can be restored from it. The server that
//! holds the folder makes the copy; without one, this process does.

use crate::assembly::refused;
use crate::context::Context;
use crate::environment::DATA_FOLDER;
use crate::environment::locations::project_folder;
use crate::exit::{Exit, Failure, Result};
use crate::remote::address;
use crate::remote::client::{Client, Request, read};
use crate::terminal::output::{Output, counted};
use clap::Args;
use kernel::contracts::backup::BackupError;
use serde_json::json;
use server::{AssembleError, backup_at_rest};
use std::path::{Path, PathBuf};
use wire::rest::{BackupAnswer, BackupBody};

const EXAMPLES: &str = "\
Examples:
  waypost backup /mnt/backups/monday              # of this folder's project, served or not
  waypost backup --data /var/lib/waypost today    # of data that is elsewhere
  waypost --json backup today | jq .takenAt
  waypost restore today                           # see `waypost help restore`";

/// What `waypost backup` takes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BackupArgs {
    /// The folder to write: absent or empty; it holds secrets
    dir: PathBuf,
    /// Where the data is kept [default: .waypost in the project]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

/// How many seconds a large backup may take.
const BACKUP_SECONDS: u64 = 3_600;

/// Writes a backup and says what is in it.
pub(crate) async fn run(args: BackupArgs, context: &Context) -> Result<Exit> {
    let into = std::path::absolute(&args.dir).map_err(|error| {
        Failure::usage(format!("`{}` is not a path: {error}", args.dir.display()))
    })?;
    let making = written(args.data.as_deref(), into, context);
    let made = context.progress().during("writing the backup", making).await?;
    tell(context.output, &made)
}

async fn written(data: Option<&Path>, into: PathBuf, context: &Context) -> Result<BackupAnswer> {
    // A server that is named is meant, unless the data is named.
    if data.is_none() && context.has_named_server() {
        return written_by_server(&context.client().await?, &into, context).await;
    }
    let usual = || project_folder(None).join(DATA_FOLDER);
    let data = data.map_or_else(usual, Path::to_path_buf);
    let error = match backup_at_rest(&data).map_err(AssembleError::from) {
        Ok(held) => return held.write(into).await.map_err(|error| unmade(&error)),
        Err(error) => error,
    };
    let Some(pid) = error.holder().map(|holder| holder.pid) else {
        return Err(refused(error).hint("`--data DIR` names another folder"));
    };
    match address::of_holder(&data, pid) {
        Some(url) => written_by_server(&context.client_at(&url)?, &into, context).await,
        None => Err(refused(error).hint("it serves no HTTP: stop it, then take the backup")),
    }
}

/// Has the server write it, on its own machine.
async fn written_by_server(
    client: &Client,
    into: &Path,
    context: &Context,
) -> Result<BackupAnswer> {
    let Some(dir) = into.to_str() else {
        let what = format!("`{}` cannot be sent to the server: it is no text", into.display());
        return Err(Failure::usage(what).hint("choose another name"));
    };
    let body = json!(BackupBody { dir: dir.to_owned() });
    let request = Request::to(&["backup"]).taking(BACKUP_SECONDS).keyed(context.admin_key()?);
    read(&client.post(request, &body).await?)
}

fn tell(output: Output, made: &BackupAnswer) -> Result<Exit> {
    let BackupAnswer { dir, taken_at, files, bytes, beside, left_out } = made;
    let files = counted(*files, "file");
    let bytes = counted(*bytes, "byte");
    let text = format!("{dir}: {files}, {bytes}, as of {taken_at}");
    output.data(&json!(made), &text)?;
    if !beside.is_empty() {
        output.talk(&format!("it holds secrets, keep it like them: {}", beside.join(", ")));
    }
    if !left_out.is_empty() {
        output.talk(&format!("not in it, for others write it: {}", left_out.join(", ")));
    }
    Ok(Exit::Ok)
}

/// Why there is no backup, or nothing was restored, in our words.
pub(in crate::commands) fn unmade(error: &BackupError) -> Failure {
    let (exit, code) = match error {
        BackupError::Folder(_) => (Exit::Usage, "backup_folder"),
        BackupError::UnderWay => (Exit::Failed, "backup_under_way"),
        BackupError::Full(_) => (Exit::Failed, "disk_full"),
        BackupError::Unsound(_) => (Exit::Failed, "unreadable"),
        BackupError::Failed(_) => (Exit::Failed, "backup_failed"),
    };
    Failure::new(exit, code, error.to_string())
}
