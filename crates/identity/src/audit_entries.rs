//! Audit entries for changes of keys, principals and realms: who made the change, where, and what
//! it affects. They contain nothing that would help to use a credential.

use crate::maker::Maker;
use kernel::contracts::identity::realms::LostEntries;
use kernel::identity::audit::{ChainName, Entries, Entry, Object};
use kernel::identity::grants::Grants;
use kernel::identity::key::ApiKey;
use kernel::identity::principal::Principal;
use kernel::values::ids::{Millis, RealmId};
use serde_json::json;

/// How many keys, and how many principals, an entry about a realm names.
const NAMED_MAX: usize = 100;

/// That a key was changed.
pub(crate) fn of_key(maker: &Maker, key: &ApiKey, act: &'static str, now: Millis) -> Entries {
    let ApiKey { id, name, of, realms, scopes, expires, .. } = key;
    let detail = json!({
        "name": name, "of": of, "realms": realms, "scopes": scopes, "expires": expires,
    });
    let entry = maker.entry(now, act, Object::new("key", id.to_string()));
    vec![(chain_of(realms), vec![Entry { detail: Some(detail), ..entry }])]
}

/// That a principal was changed, which reaches so far.
pub(crate) fn of_principal(
    maker: &Maker,
    principal: &Principal,
    reach: &Grants,
    act: &'static str,
    now: Millis,
) -> Entries {
    let Principal { id, kind, realms, identities, .. } = principal;
    let detail = json!({"kind": kind, "realms": realms, "identities": identities});
    let entry = maker.entry(now, act, Object::new("principal", &**id));
    vec![(chain_of(reach), vec![Entry { detail: Some(detail), ..entry }])]
}

/// That a realm was made or removed, and which keys and principals lost it.
pub(crate) fn of_realm(
    maker: &Maker,
    realm: &RealmId,
    act: &'static str,
    lost: Option<&LostEntries>,
    now: Millis,
) -> Entries {
    let detail = lost.map(|LostEntries { keys, principals }| {
        let keys = keys.iter().map(|(key, _)| key.id.to_string()).take(NAMED_MAX);
        let principals = principals.iter().map(|(record, _)| &*record.id).take(NAMED_MAX);
        json!({
            "keys": keys.collect::<Vec<String>>(),
            "principals": principals.collect::<Vec<&str>>(),
        })
    });
    let entry = maker.entry(now, act, Object::new("realm", realm.to_string()));
    vec![(ChainName::server(), vec![Entry { detail, ..entry }])]
}

/// The chain of the realm that something reaches; the server's where it reaches several.
fn chain_of(reach: &Grants) -> ChainName {
    reach.only().map_or_else(ChainName::server, |realm| ChainName::of(&realm))
}
