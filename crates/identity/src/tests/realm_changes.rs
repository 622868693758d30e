//! Realms are made and removed at run time: by whom, under which names, and what loses them.

use super::{NOW, Stage, grants, maker, new_key, root};
use crate::realms::RealmRefusal;
use crate::{Identity, IdentityParts};
use kernel::contracts::identity::realms::Removal;
use kernel::identity::audit::ChainName;
use kernel::identity::grants::{BadRealm, Grants, RealmPattern};
use kernel::identity::principal::Principal;
use kernel::identity::realm::{RealmSettings, Realms};
use kernel::identity::roles::{Role, Roles};
use kernel::values::ids::RealmId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A stage whose settings name the realm `fixed`.
async fn stage() -> Stage {
    let stage = Stage::open().await;
    let identity = again(&stage, &["fixed"]).await;
    Stage { identity, ..stage }
}

/// What a restart finds whose settings name these realms.
async fn again(stage: &Stage, configured: &[&str]) -> Arc<Identity> {
    let named = configured.iter().map(|name| (RealmId::from(*name), RealmSettings::default()));
    let realms = Realms(named.collect());
    let parts = IdentityParts { realms, ..stage.parts(Vec::new(), Vec::new()) };
    Identity::open(parts).await.unwrap()
}

fn names(identity: &Identity) -> Vec<String> {
    identity.directory().realms.0.keys().map(ToString::to_string).collect()
}

/// Grants in which a subject is a member of each of these.
fn member_of(realms: &[&str]) -> Grants {
    let member = Roles::of(&[Role::Member]);
    let entry = |realm: &&str| (RealmPattern::parse(realm).unwrap(), member.clone());
    Grants(realms.iter().map(entry).collect())
}

#[tokio::test]
async fn a_created_realm_exists_at_once_and_after_a_restart() {
    let stage = stage().await;
    let made = stage.identity.create_realm(&root(), "acme").await.unwrap();
    assert_eq!((&*made.by, made.created, made.removed), ("admin", NOW, None));
    assert_eq!(names(&stage.identity), ["acme", "fixed"]);
    assert!(stage.identity.is_configured(&"fixed".into()));
    assert!(!stage.identity.is_configured(&"acme".into()));
    assert_eq!(names(again(&stage, &["fixed"]).await.as_ref()), ["acme", "fixed"]);
    let entries = stage.store.entries.lock().unwrap();
    let (chain, written) = &entries[0];
    assert_eq!((chain, &*written[0].act), (&ChainName::server(), "realm.create"));
}

#[tokio::test]
async fn only_global_administrators_create_and_remove_realms() {
    let stage = stage().await;
    for pattern in ["acme", "acme-*"] {
        let made = stage.identity.create_realm(&maker(pattern), "acme").await;
        assert_eq!(made, Err(RealmRefusal::NotAllowed), "{pattern}");
    }
    stage.identity.create_realm(&root(), "acme").await.unwrap();
    let removed = stage.identity.remove_realm(&maker("acme"), "acme").await;
    assert_eq!(removed, Err(RealmRefusal::NotAllowed));
    assert_eq!(names(&stage.identity), ["acme", "fixed"]);
}

#[tokio::test]
async fn a_realm_name_is_never_reused() {
    let stage = stage().await;
    let create = async |name: &str| stage.identity.create_realm(&root(), name).await;
    let bad = BadRealm::Name("Acme".to_owned());
    assert_eq!(create("Acme").await, Err(RealmRefusal::BadName(bad)));
    assert_eq!(create("fixed").await, Err(RealmRefusal::Exists("fixed".into())));
    create("acme").await.unwrap();
    assert_eq!(create("acme").await, Err(RealmRefusal::Exists("acme".into())));
    let removed = stage.identity.remove_realm(&root(), "acme").await.unwrap();
    let removal = Removal { by: "admin".into(), at: NOW, purged: false };
    assert_eq!(removed.removed, Some(removal));
    assert_eq!(create("acme").await, Err(RealmRefusal::WasRemoved("acme".into())));
    let repeated = stage.identity.remove_realm(&root(), "acme").await.unwrap();
    assert_eq!(repeated, removed, "a repeated removal changes nothing");
    // Settings do not bring it back.
    let identity = again(&stage, &["acme", "fixed"]).await;
    assert_eq!(names(&identity), ["fixed"]);
    assert_eq!(identity.buried_realms(), [RealmId::from("acme")]);
}

#[tokio::test]
async fn a_configured_realm_cannot_be_removed() {
    let stage = stage().await;
    let remove = async |name: &str| stage.identity.remove_realm(&root(), name).await;
    assert_eq!(remove("fixed").await, Err(RealmRefusal::Configured("fixed".into())));
    assert_eq!(remove("other").await, Err(RealmRefusal::Unknown));
    stage.identity.create_realm(&root(), "acme").await.unwrap();
    let identity = again(&stage, &["acme"]).await;
    let removed = identity.remove_realm(&root(), "acme").await;
    assert_eq!(removed, Err(RealmRefusal::Configured("acme".into())), "both name it");
}

#[tokio::test]
async fn keys_lose_a_removed_realm_and_keys_of_only_that_realm_end() {
    let stage = stage().await;
    stage.identity.create_realm(&root(), "acme").await.unwrap();
    let alone = stage.made("acme", &[Role::Member]).await;
    let wide = stage.made("acme*", &[Role::Member]).await;
    let several = member_of(&["acme", "other"]);
    let several = crate::keys::NewKey { realms: several, ..new_key("acme", &[]) };
    let several = stage.identity.create(&root(), several).await.unwrap();
    stage.identity.remove_realm(&root(), "acme").await.unwrap();
    assert_eq!(stage.why(alone.text.expose()), "the key was revoked");
    assert_eq!(
        stage.who(several.text.expose()).unwrap().realms.as_ref().clone(),
        member_of(&["other"])
    );
    assert_eq!(
        stage.who(wide.text.expose()).unwrap().realms.as_ref().clone(),
        member_of(&["acme*"])
    );
    assert!(!stage.identity.has_realm(&"acme".into()));
    let kept = stage.store.stored(&alone.stored.key.id);
    assert_eq!((kept.key.revoked, kept.version), (Some(NOW), 2), "it is durable");
}

#[tokio::test]
async fn stored_principals_lose_their_roles_in_a_removed_realm() {
    let stage = stage().await;
    stage.identity.create_realm(&root(), "acme").await.unwrap();
    let ann = Principal {
        default_realm: Some("acme".into()),
        realm_overrides: BTreeMap::from([("integration".to_owned(), "acme".into())]),
        ..Principal::new("ann", member_of(&["acme", "other"]))
    };
    let bob = Principal::new("bob", member_of(&["acme"]));
    for principal in [ann, bob] {
        stage.identity.put_principal(&root(), principal, None).await.unwrap();
    }
    stage.identity.remove_realm(&root(), "acme").await.unwrap();
    let left = |identity: &Identity, id: &str| {
        let seen = identity.principal(&root(), id).unwrap();
        Principal::clone(&seen.known.principal)
    };
    let ann = Principal::new("ann", member_of(&["other"]));
    let bob = Principal::new("bob", grants("acme", &[]));
    for identity in [&stage.identity, &again(&stage, &[]).await] {
        assert_eq!((left(identity, "ann"), left(identity, "bob")), (ann.clone(), bob.clone()));
        assert!(identity.principal(&maker("other"), "bob").is_none(), "nobody else sees it");
    }
}

#[tokio::test]
async fn a_removed_realm_is_listed_until_purged() {
    let stage = stage().await;
    for name in ["acme", "shop"] {
        stage.identity.create_realm(&root(), name).await.unwrap();
    }
    stage.identity.remove_realm(&root(), "acme").await.unwrap();
    assert_eq!(again(&stage, &[]).await.unpurged_realms(), [RealmId::from("acme")]);
    stage.identity.note_purged(&"acme".into()).await.unwrap();
    assert_eq!(stage.identity.unpurged_realms(), Vec::<RealmId>::new());
    assert!(stage.identity.made_realm(&"acme".into()).unwrap().removed.unwrap().purged);
    assert_eq!(names(&stage.identity), ["fixed", "shop"]);
}
