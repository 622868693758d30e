//! `waypost whoami`: the identity that the server sees, with its roles and scopes.

use crate::context::Context;
use crate::exit::{Exit, Result};
use crate::remote::client::Request;
use crate::terminal::output::Fields;
use clap::Args;
use wire::rest::{AccessMode, OwnKey, WhoAmI};

const EXAMPLES: &str = "\
Examples:
  waypost whoami                              # with WAYPOST_API_KEY, where the server asks for one
  waypost --json whoami | jq -r '.roles[]'";

/// What `waypost whoami` takes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WhoamiArgs {}

/// Asks the server.
pub(crate) async fn run(_args: WhoamiArgs, context: &Context) -> Result<Exit> {
    let request = Request::to(&["whoami"]).keyed(context.admin_key()?);
    let body = context.client().await?.get(request).await?;
    context.show(&body, |who: WhoAmI| context.output.text(&identity_text(who)))
}

fn identity_text(who: WhoAmI) -> String {
    let mut fields = Fields::default();
    fields.add("subject", who.subject);
    fields.add("actor", who.actor.unwrap_or_default());
    fields.add("realm", who.realm);
    fields.add("roles", who.roles.join(", "));
    fields.add("scopes", who.scopes.map_or_else(|| "no limit".to_owned(), |all| all.join(", ")));
    if let Some(OwnKey { id, name, expires_at }) = who.key {
        fields.add("key", format!("{id} ({name})"));
        fields.add("expires", expires_at.unwrap_or_else(|| "never".to_owned()));
    }
    let mode = match who.mode {
        AccessMode::Local => "local: the server asks for no credentials",
        AccessMode::Credentials => "the server asks every caller for a credential",
    };
    fields.add("access", mode);
    fields.text()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn identity_and_expiry_are_shown() {
        let local = json!({"realm": "default", "subject": "local", "roles": ["admin"],
            "mode": "local"});
        let who: WhoAmI = serde_json::from_value(local).unwrap();
        assert_eq!(
            identity_text(who),
            "subject  local\nrealm    default\nroles    admin\nscopes   no limit\n\
             access   local: the server asks for no credentials"
        );
        let keyed = json!({"realm": "default", "subject": "key:abcdefghij", "roles": ["member"],
            "scopes": ["read", "use"], "mode": "credentials",
            "key": {"id": "abcdefghij", "name": "ci", "expiresAt": "2027-01-01T00:00:00.000Z"}});
        let who: WhoAmI = serde_json::from_value(keyed).unwrap();
        let told = identity_text(who);
        for line in ["scopes   read, use", "key      abcdefghij (ci)", "expires  2027-01-01"] {
            assert!(told.contains(line), "{told}");
        }
    }
}
