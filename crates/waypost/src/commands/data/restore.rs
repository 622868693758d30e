//! `waypost restore`: makes a data folder from a backup, for a server that is started next.

use super::backup::unmade;
use crate::assembly::refused;
use crate::context::Context;
use crate::environment::locations::{project_folder, shown};
use crate::environment::{DATA_FOLDER, SECRET_KEY};
use crate::exit::{Exit, Failure, Result};
use crate::terminal::output::counted;
use clap::Args;
use kernel::contracts::backup::BackupError;
use kernel::identity::key::ApiKey;
use serde_json::{Value, json};
use server::{OfflineKeys, good_keys};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  waypost restore /mnt/backups/monday && waypost up    # into this folder's project
  waypost restore monday --data /var/lib/waypost       # elsewhere
  waypost restore monday --revoke-keys                 # no API key of the backup works any more";

/// What `waypost restore` takes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RestoreArgs {
    /// The folder that `waypost backup` wrote
    dir: PathBuf,
    /// The data folder to make: absent or empty [default: .waypost in the project]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Revoke all API keys in it: some may have been revoked after the backup
    #[arg(long)]
    revoke_keys: bool,
}

/// Checks the backup, and makes a data folder of it.
pub(crate) async fn run(args: RestoreArgs, context: &Context) -> Result<Exit> {
    let data = args.data.unwrap_or_else(|| project_folder(None).join(DATA_FOLDER));
    let into = data.clone();
    let dir = args.dir;
    let working = tokio::task::spawn_blocking(move || server::restore(&dir, &into));
    let restoring = async {
        let ended = BackupError::Failed("the backup was not restored: it ended midway".to_owned());
        working.await.unwrap_or(Err(ended)).map_err(|error| unmade(&error))
    };
    let made = context.progress().during("restoring the backup", restoring).await?;
    let keys = good_keys(&data).await.map_err(refused)?;
    if args.revoke_keys {
        revoke(&data, &keys, context).await?;
    }
    let folder = shown(&data);
    let text = format!("{folder}: {}, as of {}", counted(made.files, "file"), made.taken_at);
    let listed: Vec<Value> =
        keys.iter().map(|key| json!({"id": key.id, "name": key.name})).collect();
    let document =
        json!({"data": folder, "backup": made, "keys": listed, "revoked": args.revoke_keys});
    context.output.data(&document, &text)?;
    tell_keys(&keys, args.revoke_keys, context);
    context.output.talk(
        "what happened after that moment is not known here: look at `waypost inbox ls` after the \
         start, and at the other systems",
    );
    Ok(Exit::Ok)
}

/// Ends these keys for good.
async fn revoke(data: &Path, keys: &[ApiKey], context: &Context) -> Result<()> {
    let held =
        OfflineKeys::take(data, context.environment.text(SECRET_KEY)).await.map_err(refused)?;
    for key in keys {
        let revoked = held.identity().revoke(&held.maker(), &key.id).await;
        revoked.map_err(|why| Failure::new(Exit::Failed, "stored", why.to_string()))?;
    }
    Ok(())
}

/// Says which keys work again, or did until now.
fn tell_keys(keys: &[ApiKey], revoked: bool, context: &Context) {
    if keys.is_empty() {
        return;
    }
    context.output.talk(match revoked {
        true => "these API keys of the backup are revoked:",
        false => {
            "these API keys work again, also those that were revoked after the backup; \
             `--revoke-keys` ends them:"
        }
    });
    for key in keys {
        context.output.talk(&format!("  {}  {}", key.id, key.name));
    }
}
