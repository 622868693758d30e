//! Creates a key in a data folder that no server holds: the first one, without which a server that
//! asks for credentials would let no one in.

use super::new_key::{CreateArgs, Expires};
use crate::environment::locations::shown;
use crate::exit::{Exit, Failure, Result};
use crate::terminal::output::Output;
use engine::system::clock::SystemClock;
use identity::keys::{Expiry, KeyRefusal, KeyWithText, NewKey};
use kernel::contracts::Clock;
use kernel::identity::grants::{Grants, RealmPattern};
use kernel::identity::key::ApiKey;
use kernel::values::caller::Scope;
use kernel::values::ids::Millis;
use project::realm::DEFAULT_REALM;
use server::OfflineKeys;
use std::path::Path;
use std::sync::Arc;
use wire::rest::{self, IssuedKey, KeyStatus};

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// Makes the key in the folder that is held.
pub(super) async fn create(
    held: &OfflineKeys,
    args: &CreateArgs,
    data: &Path,
    output: Output,
) -> Result<IssuedKey> {
    let new = new_key(args, SystemClock.now())?;
    let made = held.identity().create(&held.maker(), new).await.map_err(|why| unmade(&why))?;
    output.talk(&format!("no server holds `{}`: the key is made there", shown(data)));
    Ok(issued(&made))
}

fn new_key(args: &CreateArgs, now: Millis) -> Result<NewKey> {
    let realm = args.realm.as_deref().unwrap_or(DEFAULT_REALM);
    let realm = RealmPattern::parse(realm).map_err(|bad| Failure::usage(bad.to_string()))?;
    let scopes = args.scope.iter().copied();
    let of: Option<Arc<str>> = args.of.as_deref().map(Into::into);
    let realms = match (&of, &args.realm) {
        // Where nothing is said, those of the principal.
        (Some(_), None) => Grants::default(),
        _ => Grants::one(realm, args.roles().into_iter().collect()),
    };
    Ok(NewKey {
        name: args.name.clone(),
        of,
        realms,
        scopes: (!args.scope.is_empty()).then(|| scopes.collect()),
        expires: match args.expires {
            Expires::Days(days) => Expiry::At(now.plus_ms(u64::from(days) * DAY_MS)),
            Expires::Never => Expiry::Never,
        },
    })
}

fn unmade(refusal: &KeyRefusal) -> Failure {
    match refusal {
        KeyRefusal::Store(_) => Failure::new(Exit::Failed, "stored", refusal.to_string()),
        _ => Failure::usage(refusal.to_string()),
    }
}

/// The key as a server would answer.
fn issued(made: &KeyWithText) -> IssuedKey {
    let ApiKey { id, name, of, realms, scopes, by, created, expires, .. } = &made.stored.key;
    let realms = realms
        .0
        .iter()
        .map(|(realm, roles)| (realm.to_string(), roles.iter().map(ToString::to_string).collect()));
    let names = |scope: Scope| scope.name().to_owned();
    let key = rest::ApiKey {
        id: id.to_string(),
        name: name.clone(),
        subject: made.stored.key.subject().to_string(),
        of: of.as_ref().map(ToString::to_string),
        realms: realms.collect(),
        scopes: scopes.map(|scopes| scopes.iter().map(names).collect()),
        status: KeyStatus::Active,
        by: by.to_string(),
        created_at: created.rfc3339(),
        expires_at: expires.map(Millis::rfc3339),
        revoked_at: None,
        used_at: None,
        overlap_until: None,
    };
    IssuedKey { key, text: made.text.expose().to_owned() }
}
