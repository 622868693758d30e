//! Access to a running server: whether it asks for credentials, whether it accepts ours, and which
//! keys expire soon or never, where we may list them.

use super::Site;
use super::report::Finding;
use super::surroundings::ServerFinding;
use crate::context::Context;
use crate::exit::{Exit, Result};
use crate::remote::client::{Client, Request, read};
use engine::system::clock::SystemClock;
use kernel::contracts::Clock;
use kernel::values::ids::Millis;
use wire::rest::{AccessMode, ApiKey, KeyStatus, WhoAmI};

/// The checks' names.
const ACCESS: &str = "access";
const KEYS: &str = "keys";
/// How long before its end someone should know of it.
const SOON_MS: u64 = 7 * 24 * 60 * 60 * 1_000;
/// More than most servers have.
const LOOKED_AT: usize = 1_000;

/// What there is to say; nothing where no server answers.
pub(super) async fn check(site: &Site<'_>) -> Vec<Finding> {
    let Site { context, server: ServerFinding { client: Some(client), .. }, .. } = site else {
        return Vec::new();
    };
    let who = match whoami(client, context).await {
        Ok(who) => who,
        Err(failure) if failure.exit == Exit::Auth => {
            let what = format!("the server does not know who we are: {}", failure.message);
            let hint = failure.hint.unwrap_or_default();
            return vec![Finding::warn(ACCESS, what, &hint)];
        }
        Err(_) => return Vec::new(),
    };
    let what = match who.mode {
        AccessMode::Local => "the server asks for no credentials".to_owned(),
        AccessMode::Credentials => {
            let subject = &who.subject;
            let roles = who.roles.join(", ");
            format!("the server asks for credentials; we are `{subject}` ({roles})")
        }
    };
    let mut findings = vec![Finding::ok(ACCESS, what)];
    // Only administrators may list them.
    if let Ok(keys) = listed(client, context).await {
        findings.extend(ending(&keys, SystemClock.now()));
        findings.extend(endless(&keys));
    }
    findings
}

async fn whoami(client: &Client, context: &Context) -> Result<WhoAmI> {
    read(&client.get(Request::to(&["whoami"]).keyed(context.admin_key()?)).await?)
}

async fn listed(client: &Client, context: &Context) -> Result<Vec<ApiKey>> {
    let request = Request::to(&["keys"]).keyed(context.admin_key()?);
    let keys: Vec<ApiKey> = client.items(request, LOOKED_AT).await?;
    Ok(keys.into_iter().filter(|key| key.status == KeyStatus::Active).collect())
}

/// Those that expire soon.
fn ending(keys: &[ApiKey], now: Millis) -> Option<Finding> {
    // Moments in this form are ordered like their texts.
    let soon = now.plus_ms(SOON_MS).rfc3339();
    let ends = |key: &ApiKey| {
        let at = key.expires_at.as_ref().filter(|at| **at <= soon)?;
        Some(format!("{} ({}) at {at}", key.id, key.name))
    };
    let hint = "make others with `waypost key add`, and give them to who uses these";
    named("expire within 7 days", keys.iter().filter_map(ends), hint)
}

/// Those that never expire.
fn endless(keys: &[ApiKey]) -> Option<Finding> {
    let endless = keys.iter().filter(|key| key.expires_at.is_none());
    let hint = "one that leaks works until `waypost key revoke`; prefer keys that expire";
    named("never expire", endless.map(|key| format!("{} ({})", key.id, key.name)), hint)
}

fn named(what: &str, keys: impl Iterator<Item = String>, hint: &str) -> Option<Finding> {
    let keys: Vec<String> = keys.collect();
    let what = format!("{what}: {}", keys.join(", "));
    (!keys.is_empty()).then(|| Finding::warn(KEYS, what, hint))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn key(id: &str, expires_at: Option<Millis>) -> ApiKey {
        serde_json::from_value(json!({
            "id": id, "name": "ci", "subject": format!("key:{id}"), "status": "active",
            "realms": {}, "by": "local", "createdAt": Millis(0).rfc3339(),
            "expiresAt": expires_at.map(Millis::rfc3339),
        }))
        .unwrap()
    }

    #[test]
    fn keys_that_expire_soon_or_never_are_named() {
        let now = Millis(1_800_000_000_000);
        let soon = now.plus_ms(SOON_MS);
        let later = now.plus_ms(SOON_MS + 1);
        let keys = [key("a", Some(soon)), key("b", Some(later)), key("c", None)];
        let ending = ending(&keys, now).unwrap().to_string();
        assert!(ending.contains("a (ci)") && !ending.contains("b (ci)"), "{ending}");
        let endless = endless(&keys).unwrap().to_string();
        assert!(endless.contains("c (ci)") && !endless.contains("b (ci)"), "{endless}");
    }

    #[test]
    fn keys_that_expire_later_are_not_mentioned() {
        let now = Millis(1_800_000_000_000);
        let keys = [key("b", Some(now.plus_ms(SOON_MS + 1)))];
        assert_eq!((ending(&keys, now), endless(&keys)), (None, None));
    }
}
