//! `waypost key`: API keys of callers. A running server creates, lists, rotates and revokes them;
//! the first one can be made in a data folder that no server holds.

use super::first_key;
use super::grants;
use super::new_key::CreateArgs;
use crate::assembly::refused;
use crate::commands::{LIST_ITEMS_MAX, Most, age};
use crate::context::{Context, Listing};
use crate::environment::locations::project_folder;
use crate::environment::{API_KEY, DATA_FOLDER, SECRET_KEY};
use crate::exit::{Exit, Failure, Result};
use crate::remote::address;
use crate::remote::client::{Client, Request, read};
use crate::terminal::table::Cell;
use clap::Subcommand;
use project::folder::CONFIG_FILE;
use serde_json::json;
use server::OfflineKeys;
use wire::rest::{ApiKey, IssuedKey, RotateBody};

const EXAMPLES: &str = "\
Examples:
  waypost key add --name me --role admin         # the first one: also before a server runs
  waypost key add --name ci --scope use --expires 30d
  WAYPOST_API_KEY=$(waypost key add --name me) waypost whoami
  waypost key ls
  waypost key rotate abcdefghij --overlap 1h        # another text, the old one works for an hour
  waypost key revoke abcdefghij                     # ends at once, with what it has open";

/// What `waypost key` takes.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum KeyCommand {
    /// Make a key and print it, this once; also in a folder that no server holds
    Add(CreateArgs),
    /// List the keys that you may administer, without their texts
    Ls(Most),
    /// Give a key another text and print it, this once; its id, roles and expiry stay
    Rotate {
        /// The key's id
        id: String,
        /// How long the old text still works
        #[arg(long, value_name = "AGE", default_value = "24h", value_parser = age)]
        overlap: u64,
    },
    /// End a key at once and for good
    #[command(alias = "rm")]
    Revoke {
        /// The key's id
        id: String,
        /// Only say what would end
        #[arg(long)]
        dry_run: bool,
    },
}

impl KeyCommand {
    /// Whether a key is made: then `--realm` says what it may enter.
    pub(crate) fn creates(&self) -> bool {
        matches!(self, KeyCommand::Add(_))
    }
}

/// Runs `waypost key`.
pub(crate) async fn run(command: KeyCommand, context: &Context) -> Result<Exit> {
    match command {
        KeyCommand::Add(args) => create(&args, context).await,
        KeyCommand::Ls(Most { limit }) => list(context, limit).await,
        KeyCommand::Rotate { id, overlap } => rotate(context, &id, overlap).await,
        KeyCommand::Revoke { id, dry_run: false } => revoke(context, &id).await,
        KeyCommand::Revoke { id, dry_run: true } => would_revoke(context, &id).await,
    }
}

async fn create(args: &CreateArgs, context: &Context) -> Result<Exit> {
    let issued = made(args, context).await?;
    let key = &issued.key;
    let until = key.expires_at.as_ref().map_or_else(
        || "it never expires".to_owned(),
        |expires_at| format!("it expires at {expires_at}"),
    );
    let about = format!("key {} (`{}`): {}; {until}", key.id, key.name, grants(&key.realms));
    tell(&issued, &about, context)
}

/// The key as the server that holds the data makes it; where none does, as this process does.
async fn made(args: &CreateArgs, context: &Context) -> Result<IssuedKey> {
    let folder = project_folder(None);
    let usual = folder.join(DATA_FOLDER);
    // Where nothing is served from, no data folder is begun: a server of another folder is meant.
    let is_served_from = usual.is_dir() || folder.join(CONFIG_FILE).is_file();
    if args.data.is_none() && (context.has_named_server() || !is_served_from) {
        return created_by_server(&context.client().await?, args, context).await;
    }
    let data = args.data.as_deref().unwrap_or(&usual);
    let error = match OfflineKeys::take(data, context.environment.text(SECRET_KEY)).await {
        Ok(held) => return first_key::create(&held, args, data, context.output).await,
        Err(error) => error,
    };
    let Some(pid) = error.holder().map(|holder| holder.pid) else {
        return Err(refused(error).hint("`--data DIR` names another folder"));
    };
    match address::of_holder(data, pid) {
        Some(url) => created_by_server(&context.client_at(&url)?, args, context).await,
        None => Err(refused(error).hint("name its address with `--server URL`, or stop it first")),
    }
}

async fn created_by_server(
    client: &Client,
    args: &CreateArgs,
    context: &Context,
) -> Result<IssuedKey> {
    let request = Request::to(&["keys"]).keyed(context.admin_key()?);
    read(&client.post(request, &json!(args.body())).await?)
}

async fn list(context: &Context, limit: usize) -> Result<Exit> {
    let request = Request::to(&["keys"]).keyed(context.admin_key()?);
    let body = context.client().await?.list(request, limit).await?;
    let heads = ["id", "name", "roles", "scopes", "status", "expires", "last used"];
    let none = "there are no keys: `waypost key add` makes one";
    context.table(&body, Listing { noun: "key", heads: &heads, none }, |key: ApiKey| {
        let roles = grants(&key.realms);
        let scopes = key.scopes.map(|scopes| scopes.join(", ")).unwrap_or_default();
        vec![
            Cell::id(key.id),
            key.name.into(),
            roles.into(),
            scopes.into(),
            Cell::word(key.status.name()),
            Cell::time(key.expires_at.unwrap_or_else(|| "never".to_owned())),
            Cell::time(key.used_at.unwrap_or_default()),
        ]
    })
}

async fn rotate(context: &Context, id: &str, overlap: u64) -> Result<Exit> {
    let request = Request::to(&["keys", id, "rotate"]).keyed(context.admin_key()?);
    let body = json!(RotateBody { overlap_ms: Some(overlap) });
    let issued: IssuedKey = read(&context.client().await?.post(request, &body).await?)?;
    let old = issued.key.overlap_until.as_ref().map_or_else(
        || "the old text works no longer".to_owned(),
        |until| format!("the old text works until {until}"),
    );
    tell(&issued, &format!("key {id} has another text; {old}"), context)
}

async fn revoke(context: &Context, id: &str) -> Result<Exit> {
    let request = Request::to(&["keys", id]).keyed(context.admin_key()?);
    context.client().await?.delete(request).await?;
    context.output.done(&json!({"id": id}), &format!("key {id} is revoked"))
}

async fn would_revoke(context: &Context, id: &str) -> Result<Exit> {
    let request = Request::to(&["keys"]).keyed(context.admin_key()?);
    let keys: Vec<ApiKey> = context.client().await?.items(request, LIST_ITEMS_MAX).await?;
    let Some(key) = keys.into_iter().find(|key| key.id == id) else {
        let what = format!("there is no key `{id}`");
        return Err(
            Failure::new(Exit::Failed, "not_found", what).hint("`waypost key ls` lists the keys")
        );
    };
    let told = format!(
        "key {id} (`{}`: {}, {}) would end at once; what it did stays in the audit; nothing was \
         changed",
        key.name,
        grants(&key.realms),
        key.status.name()
    );
    context.output.data(&json!({"dryRun": true, "id": id}), &told)
}

/// Prints the text of a key, alone on its line, and says beside it that it is not shown again.
fn tell(issued: &IssuedKey, about: &str, context: &Context) -> Result<Exit> {
    let output = context.output;
    output.talk(about);
    output.talk(&format!(
        "it is shown this once and stored nowhere; set {API_KEY} to it, and commands send it"
    ));
    let mut document = json!(issued.key);
    document["key"] = json!(issued.text);
    output.data(&document, &issued.text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_shown_with_their_realms() {
        let key: ApiKey = serde_json::from_value(json!({
            "id": "abcdefghij", "name": "ci", "subject": "key:abcdefghij", "status": "active",
            "realms": {"acme": ["member", "approver"], "shop-*": ["viewer"]},
            "by": "local", "createdAt": "2026-11-16T00:00:00.000Z",
        }))
        .unwrap();
        assert_eq!(grants(&key.realms), "member+approver of acme, viewer of shop-*");
    }
}
