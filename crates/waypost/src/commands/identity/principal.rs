//! `waypost principal`: people and programs that a server knows by name. Files are checked here,
//! with the position of each mistake, before anything is sent.

use super::grants;
use crate::commands::Most;
use crate::context::{Context, Listing};
use crate::exit::{Exit, Failure, Result};
use crate::remote::client::{Client, Request, read};
use crate::terminal::input;
use crate::terminal::table::Cell;
use clap::Subcommand;
use kernel::identity::principal_reader::{KnownNames, read_text};
use kernel::limits::Limits;
use kernel::values::members::take;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use wire::rest::Principal;

const EXAMPLES: &str = "\
Examples:
  waypost principal ls
  waypost principal show ann
  waypost principal apply people.yaml    # written like principals.yaml
  waypost principal disable ann          # ends all that ann may do, whatever credential is shown
  waypost principal enable ann
  waypost key add --name laptop --of ann";

/// What `waypost principal` takes.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum PrincipalCommand {
    /// List the principals that you may administer
    Ls(Most),
    /// Show one principal
    Show {
        /// The principal's id
        id: String,
    },
    /// Store the principals of a file, where they differ from what is stored
    Apply {
        /// A file that is written like principals.yaml
        file: PathBuf,
    },
    /// End all that a principal may do, wherever it is defined, until it is enabled
    Disable {
        /// The principal's id
        id: String,
    },
    /// Let a principal do again what its roles permit
    Enable {
        /// The principal's id
        id: String,
    },
}

/// Runs `waypost principal`.
pub(crate) async fn run(command: PrincipalCommand, context: &Context) -> Result<Exit> {
    match command {
        PrincipalCommand::Ls(Most { limit }) => list(context, limit).await,
        PrincipalCommand::Show { id } => get(context, &id).await,
        PrincipalCommand::Apply { file } => apply(context, &file).await,
        PrincipalCommand::Disable { id } => switch(context, &id, "disable").await,
        PrincipalCommand::Enable { id } => switch(context, &id, "enable").await,
    }
}

async fn list(context: &Context, limit: usize) -> Result<Exit> {
    let request = Request::to(&["principals"]).keyed(context.admin_key()?);
    let body = context.client().await?.list(request, limit).await?;
    let heads = ["id", "kind", "roles", "identities", "origin", "status"];
    let none = "there are no principals: `waypost principal apply` stores some";
    let listing = Listing { noun: "principal", heads: &heads, none };
    context.table(&body, listing, |principal: Principal| {
        let roles = grants(&principal.definition.realms);
        let Principal { id, origin, definition, disabled_at, .. } = principal;
        let kind = definition.kind.name();
        let identities = definition.identities.join(", ");
        let status = if disabled_at.is_some() { "disabled" } else { "active" };
        vec![
            id.into(),
            Cell::word(kind),
            roles.into(),
            identities.into(),
            Cell::word(origin.name()),
            Cell::word(status),
        ]
    })
}

async fn get(context: &Context, id: &str) -> Result<Exit> {
    let request = Request::to(&["principals", id]).keyed(context.admin_key()?);
    let body = context.client().await?.get(request).await?;
    let text = serde_json::to_string_pretty(&body).unwrap_or_default();
    context.output.data(&body, &text)
}

async fn apply(context: &Context, file: &Path) -> Result<Exit> {
    let offered = offered(context, file)?;
    let client = context.client().await?;
    for (id, wanted) in &offered {
        let result = store(context, &client, id, wanted).await?;
        let line = json!({"id": id, "result": result});
        context.output.data(&line, &format!("{result:<9}  {id}"))?;
    }
    Ok(Exit::Ok)
}

/// Stores a principal where it differs; whether it is created, updated or unchanged.
async fn store(
    context: &Context,
    client: &Client,
    id: &str,
    wanted: &Value,
) -> Result<&'static str> {
    let request = || Ok::<_, Failure>(Request::to(&["principals", id]).keyed(context.admin_key()?));
    let kept: Option<Value> = client.find(request()?).await?;
    if kept.as_ref().is_some_and(|kept| kept["definition"] == *wanted) {
        return Ok("unchanged");
    }
    client.put(request()?, wanted).await?;
    Ok(if kept.is_none() { "created" } else { "updated" })
}

/// The principals of this file, all of them right. Which issuers and policies there are, only the
/// server knows.
fn offered(context: &Context, path: &Path) -> Result<Vec<(String, Value)>> {
    let file = path.display().to_string();
    let names = KnownNames { issuers: None, has_policies: true };
    let read = read_text(&input::file(path)?, &file, names, &Limits::default());
    let (principals, warnings) = read.map_err(|mistakes| {
        let what = "there are mistakes in the principals";
        Failure::new(Exit::Usage, "invalid_principals", what).lines(mistakes)
    })?;
    warnings.iter().for_each(|warning| context.output.talk(&warning.to_string()));
    let offered = principals.iter().map(|principal| {
        let mut definition = json!(principal);
        if let Some(members) = definition.as_object_mut() {
            // The path has it.
            take(members, "id");
        }
        (principal.id.to_string(), definition)
    });
    Ok(offered.collect())
}

async fn switch(context: &Context, id: &str, to: &str) -> Result<Exit> {
    let request = Request::to(&["principals", id, to]).keyed(context.admin_key()?);
    let body = context.client().await?.post(request, &json!({})).await?;
    let principal: Principal = read(&body)?;
    let talk = match &principal.disabled_at {
        Some(at) => format!("`{id}` is disabled since {at}"),
        None => format!("`{id}` is enabled"),
    };
    context.output.done(&body, &talk)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_shown_with_their_realms() {
        let definition = json!({"realms": {"acme": ["member", "approver"], "shop-*": ["viewer"]}});
        let principal = json!({"id": "ann", "origin": "file", "definition": definition});
        let principal: Principal = serde_json::from_value(principal).unwrap();
        assert_eq!(
            grants(&principal.definition.realms),
            "member+approver of acme, viewer of shop-*"
        );
    }
}
