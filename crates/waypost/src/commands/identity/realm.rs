//! `waypost realm`: which realms a server has, and what is set for each.

use crate::commands::Most;
use crate::context::Context;
use crate::exit::{Exit, Result};
use crate::remote::client::Request;
use crate::terminal::output::Fields;
use clap::{Args, Subcommand};
use wire::rest::Realm;

const EXAMPLES: &str = "\
Examples:
  waypost realm ls
  waypost realm get acme";

/// What `waypost realm` takes.
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct RealmArgs {
    #[command(subcommand)]
    command: RealmCommand,
}

#[derive(Debug, Subcommand)]
enum RealmCommand {
    /// List the realms that you may administer
    #[command(visible_alias = "list")]
    Ls(Most),
    /// Show what is set for one realm
    #[command(alias = "show")]
    Get {
        /// The realm's name
        name: String,
    },
}

/// Runs `waypost realm`.
pub(crate) async fn run(args: RealmArgs, context: &Context) -> Result<Exit> {
    match args.command {
        RealmCommand::Ls(Most { limit }) => list(context, limit).await,
        RealmCommand::Get { name } => get(context, &name).await,
    }
}

async fn list(context: &Context, limit: usize) -> Result<Exit> {
    let request = Request::to(&["realms"]).keyed(context.admin_key()?);
    let body = context.client().await?.list(request, limit).await?;
    let heads = ["realm", "tools", "acts as", "agent"];
    context.table(&body, &heads, None, |realm: Realm| {
        let (tools, run_as) = (tools(&realm), acts_as(&realm));
        vec![realm.name, tools, run_as, realm.default_agent.unwrap_or_default()]
    })
}

async fn get(context: &Context, name: &str) -> Result<Exit> {
    let request = Request::to(&["realms", name]).keyed(context.admin_key()?);
    let body = context.client().await?.get(request).await?;
    context.show(&body, |realm: Realm| context.output.text(&told(&realm)))
}

fn told(realm: &Realm) -> String {
    let mut fields = Fields::default();
    fields.add("realm", realm.name.as_str());
    fields.add("tools", tools(realm));
    fields.add("acts as", acts_as(realm));
    fields.add("agent", realm.default_agent.clone().unwrap_or_default());
    let limit = realm.max_find_limit.map(|limit| limit.to_string());
    fields.add("find limit", limit.unwrap_or_default());
    fields.text()
}

fn tools(realm: &Realm) -> String {
    match &realm.enabled_tools {
        None => "all".to_owned(),
        Some(patterns) if patterns.is_empty() => "none".to_owned(),
        Some(patterns) => patterns.join(", "),
    }
}

fn acts_as(realm: &Realm) -> String {
    match (&realm.run_as_user_id, realm.usable) {
        (None, _) => String::new(),
        (Some(id), true) => id.clone(),
        (Some(id), false) => format!("{id} (cannot be used)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn one_sees_what_is_set_and_what_does_not_work() {
        let realm = json!({"name": "acme", "enabledTools": ["math::*", "crm.find"],
            "runAsUserId": "robot", "usable": false, "maxFindLimit": 100});
        let realm: Realm = serde_json::from_value(realm).unwrap();
        let told = told(&realm);
        for line in ["math::*, crm.find", "robot (cannot be used)", "100"] {
            assert!(told.contains(line), "{told}");
        }
        let none = Realm { enabled_tools: Some(Vec::new()), ..realm.clone() };
        let all = Realm { enabled_tools: None, ..realm };
        assert_eq!([tools(&none), tools(&all)], ["none", "all"]);
    }
}
