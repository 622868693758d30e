//! `waypost realm`: lists the realms of a server with their settings, and creates and removes them
//! while it runs.

use crate::commands::Most;
use crate::context::{Context, Listing};
use crate::exit::{Exit, Failure, Result};
use crate::remote::client::{Request, read};
use crate::terminal::output::Fields;
use clap::Subcommand;
use project::realm::default_realm;
use serde_json::json;
use wire::rest::{Realm, RealmOrigin};

const EXAMPLES: &str = "\
Examples:
  waypost realm ls
  waypost realm show acme
  waypost realm add acme-eu              # a realm that the settings do not name
  waypost realm rm acme-eu --dry-run     # whether it could be removed
  waypost realm rm acme-eu               # with all that it owns, for good; its audit stays";

/// What `waypost realm` takes.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum RealmCommand {
    /// List the realms that you may administer
    Ls(Most),
    /// Show what is set for one realm, and what is left of one that was removed
    Show {
        /// The realm's name
        name: String,
    },
    /// Make a realm; it needs the role `admin` in `*`
    Add {
        /// The realm's name: lower-case letters, digits, `.`, `_` and `-`
        name: String,
    },
    /// Remove a realm with all that it owns, for good; it needs the role `admin` in `*`
    Rm {
        /// The realm's name, which is not given again
        name: String,
        /// Only say what would be removed
        #[arg(long)]
        dry_run: bool,
    },
}

/// Runs `waypost realm`.
pub(crate) async fn run(command: RealmCommand, context: &Context) -> Result<Exit> {
    match command {
        RealmCommand::Ls(Most { limit }) => list(context, limit).await,
        RealmCommand::Show { name } => show(context, &name).await,
        RealmCommand::Add { name } => add(context, &name).await,
        RealmCommand::Rm { name, dry_run: false } => remove(context, &name).await,
        RealmCommand::Rm { name, dry_run: true } => would_remove(context, &name).await,
    }
}

async fn list(context: &Context, limit: usize) -> Result<Exit> {
    let request = Request::to(&["realms"]).keyed(context.admin_key()?);
    let body = context.client().await?.list(request, limit).await?;
    let heads = ["realm", "tools", "acts as", "agent", "origin"];
    let none = "there are no realms: `waypost realm add` or `[realms.<name>]` in waypost.toml \
        adds one";
    context.table(&body, Listing { noun: "realm", heads: &heads, none }, |realm: Realm| {
        let tools = enabled(realm.enabled_tools.as_deref());
        let run_as = acts_as(&realm);
        let origin = realm.origin.name();
        vec![realm.name, tools, run_as, realm.default_agent.unwrap_or_default(), origin.to_owned()]
    })
}

async fn add(context: &Context, name: &str) -> Result<Exit> {
    let request = Request::to(&["realms"]).keyed(context.admin_key()?);
    let body = context.client().await?.post(request, &json!({"name": name})).await?;
    let talk = format!("realm `{name}` is there; `waypost key add --realm {name}` lets in");
    context.output.done(&body, &talk)
}

async fn remove(context: &Context, name: &str) -> Result<Exit> {
    let request = || Ok::<_, Failure>(Request::to(&["realms", name]).keyed(context.admin_key()?));
    let client = context.client().await?;
    client.delete(request()?).await?;
    let body = client.get(request()?).await?;
    let realm: Realm = read(&body)?;
    context.output.done(&body, &format!("realm `{name}` is removed; {}", removal_state(&realm)))
}

async fn would_remove(context: &Context, name: &str) -> Result<Exit> {
    let request = Request::to(&["realms", name]).keyed(context.admin_key()?);
    let realm: Realm = read(&context.client().await?.get(request).await?)?;
    let kept = kept_because(&realm);
    let fate = match kept {
        Some(why) => format!("would stay as it is: {why}"),
        None => "would be removed for good with all that it owns: sessions with their history, \
                 definitions, keys that name no other realm, logins; its audit stays"
            .to_owned(),
    };
    let document = json!({"dryRun": true, "name": name, "removed": kept.is_none()});
    context.output.data(&document, &format!("realm `{name}` {fate}; nothing was changed"))
}

/// Why a realm would not be removed.
fn kept_because(realm: &Realm) -> Option<&'static str> {
    match realm.origin {
        _ if realm.removed_at.is_some() => Some("it was removed before"),
        _ if realm.name == default_realm().as_str() => Some("every server has it"),
        RealmOrigin::Settings => Some("the settings of the server name it"),
        RealmOrigin::Stored => None,
    }
}

async fn show(context: &Context, name: &str) -> Result<Exit> {
    let request = Request::to(&["realms", name]).keyed(context.admin_key()?);
    let body = context.client().await?.get(request).await?;
    context.show(&body, |realm: Realm| context.output.text(&realm_text(&realm)))
}

fn realm_text(realm: &Realm) -> String {
    let mut fields = Fields::default();
    fields.add("realm", realm.name.as_str());
    fields.add("tools", enabled(realm.enabled_tools.as_deref()));
    fields.add("agents", enabled(realm.enabled_agents.as_deref()));
    fields.add("pipelines", enabled(realm.enabled_pipelines.as_deref()));
    fields.add("models", enabled(realm.enabled_models.as_deref()));
    fields.add("acts as", acts_as(realm));
    fields.add("default agent", realm.default_agent.clone().unwrap_or_default());
    let limit = realm.max_find_limit.map(|limit| limit.to_string());
    fields.add("find limit", limit.unwrap_or_default());
    fields.add("origin", realm.origin.name());
    fields.add("created", realm.created_at.clone().unwrap_or_default());
    if let Some(at) = &realm.removed_at {
        fields.add("removed", format!("{at}; {}", removal_state(realm)));
    }
    fields.text()
}

/// What is left of a realm that was removed.
fn removal_state(realm: &Realm) -> &'static str {
    match realm.purged {
        Some(true) => "nothing is left but its audit",
        Some(false) | None => "what it owned is being removed",
    }
}

fn enabled(patterns: Option<&[String]>) -> String {
    match patterns {
        None => "all".to_owned(),
        Some([]) => "none".to_owned(),
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

    #[test]
    fn set_values_and_unusable_users_are_shown() {
        let realm = json!({"name": "acme", "origin": "settings",
            "enabledTools": ["math::*", "crm.find"], "runAsUserId": "robot", "usable": false,
            "maxFindLimit": 100});
        let realm: Realm = serde_json::from_value(realm).unwrap();
        let told = realm_text(&realm);
        for line in ["math::*, crm.find", "robot (cannot be used)", "100"] {
            assert!(told.contains(line), "{told}");
        }
        let none = Realm { enabled_tools: Some(Vec::new()), ..realm.clone() };
        let all = Realm { enabled_tools: None, ..realm };
        let shown = [&none, &all].map(|realm| enabled(realm.enabled_tools.as_deref()));
        assert_eq!(shown, ["none", "all"]);
    }

    #[test]
    fn a_removed_realm_shows_how_far_its_removal_is() {
        let realm = json!({"name": "acme", "origin": "stored", "usable": true,
            "removedAt": "2026-11-16T04:09:04.123Z", "purged": false});
        let realm: Realm = serde_json::from_value(realm).unwrap();
        let told = realm_text(&realm);
        assert!(
            told.contains("2026-11-16T04:09:04.123Z; what it owned is being removed"),
            "{told}"
        );
        let purged = Realm { purged: Some(true), ..realm };
        assert_eq!(removal_state(&purged), "nothing is left but its audit");
        assert_eq!(kept_because(&purged), Some("it was removed before"));
        let there = Realm { removed_at: None, ..purged };
        assert_eq!(kept_because(&there), None);
        let named = Realm { origin: RealmOrigin::Settings, ..there.clone() };
        assert_eq!(kept_because(&named), Some("the settings of the server name it"));
        let default = Realm { name: "default".to_owned(), ..there };
        assert_eq!(kept_because(&default), Some("every server has it"));
    }
}
