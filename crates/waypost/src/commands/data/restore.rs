//! `waypost restore`: a data folder out of a backup, for a server that is started next.

use super::backup::unmade;
use crate::context::Context;
use crate::environment::DATA_FOLDER;
use crate::environment::place::{project_folder, shown};
use crate::exit::{Exit, Result};
use clap::Args;
use kernel::contracts::backup::BackupError;
use serde_json::json;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  waypost restore /mnt/backups/monday && waypost up    # into this folder's project
  waypost restore monday --data /var/lib/waypost       # elsewhere";

/// What `waypost restore` takes.
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct RestoreArgs {
    /// The folder that `waypost backup` wrote
    dir: PathBuf,
    /// The data folder to make: absent or empty [default: .waypost in the project]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

/// Checks the backup, and makes a data folder of it.
pub(crate) async fn run(args: RestoreArgs, context: &Context) -> Result<Exit> {
    let data = args.data.unwrap_or_else(|| project_folder(None).join(DATA_FOLDER));
    let into = data.clone();
    let working = tokio::task::spawn_blocking(move || server::restore(&args.dir, &into));
    let restoring = async {
        let ended = BackupError::Failed("the backup was not restored: it ended midway".to_owned());
        working.await.unwrap_or(Err(ended)).map_err(|error| unmade(&error))
    };
    let made = context.progress().during("restoring the backup", restoring).await?;
    let data = shown(&data);
    let text = format!("{data}: {} files, as of {}", made.files, made.taken_at);
    let document = json!({"data": data, "backup": made});
    context.output.data(&document, &text)?;
    context.output.talk(
        "what happened after that moment is not known here: look at `waypost inbox ls` after the \
         start, and at the other systems",
    );
    Ok(Exit::Ok)
}
