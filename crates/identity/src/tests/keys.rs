//! Keys from their making to their end: who they are, how they are rotated, when they stop to be
//! good, and who sees them.

use super::{DAY_MS, MINUTE_MS, NOW, Stage, grants, maker, new_key, root};
use crate::Standing;
use crate::keys::{Expiry, KeyRefusal, Maker, NewKey};
use kernel::contracts::identity::api_keys::StoredKey;
use kernel::identity::grants::Grants;
use kernel::identity::key::{KeyId, KeyRejection, OVERLAP_DEFAULT_MS, hash_of};
use kernel::identity::roles::Role;
use kernel::values::ids::Millis;

fn ids(stored: &[StoredKey]) -> Vec<KeyId> {
    stored.iter().map(|stored| stored.key.id.clone()).collect()
}

#[tokio::test]
async fn a_key_works_from_creation_until_revocation() {
    let stage = Stage::open().await;
    let mut numbers = stage.identity.changed();
    let begun = stage.identity.directory().number;
    let made = stage.made("acme", &[Role::Member]).await;
    let id = &made.stored.key.id;
    assert_eq!(*numbers.borrow_and_update(), begun + 1);

    let verified = stage.who(made.text.expose()).unwrap();
    assert_eq!(&*verified.subject, format!("key:{id}"));
    assert_eq!((&verified.key, verified.scopes), (&Some(id.clone()), None));
    assert_eq!(*verified.realms, grants("acme", &[Role::Member]));
    assert_eq!(verified.until, Some(NOW.plus_ms(90 * DAY_MS)));
    assert!(stage.identity.is_good(&verified));

    let revoked = stage.identity.revoke(&root(), id).await.unwrap();
    assert_eq!(revoked.key.revoked, Some(NOW));
    assert_eq!(*numbers.borrow_and_update(), begun + 2);
    assert_eq!(stage.identity.directory().number, begun + 2);
    assert_eq!(stage.why(made.text.expose()), "the key was revoked");
    assert_eq!(stage.identity.standing(&verified), Standing::Ended);
    assert!(stage.identity.directory().roles(&"acme".into(), &verified.subject).is_empty());

    stage.clock.advance(MINUTE_MS);
    let again = stage.identity.revoke(&root(), id).await.unwrap();
    assert_eq!(again.key.revoked, Some(NOW), "when it ended does not change");
    let rotated = stage.identity.rotate(&root(), id, 0).await.unwrap_err();
    assert_eq!(rotated, KeyRefusal::Dead(KeyRejection::Revoked));
    let next = Stage::over(stage.store.clone(), stage.clock.clone()).await;
    assert_eq!(next.why(made.text.expose()), "the key was revoked");
}

#[tokio::test]
async fn only_a_hash_of_a_key_is_stored_and_its_text_is_never_shown() {
    let stage = Stage::open().await;
    let made = stage.made("acme", &[Role::Member]).await;
    let stored = stage.store.stored(&made.stored.key.id);
    assert_eq!(stored, made.stored);
    assert_eq!(stored.key.secrets[0].sha256, hash_of(made.text.expose()));
    let secret = made.text.expose().rsplit('_').next().unwrap();
    let verified = stage.who(made.text.expose()).unwrap();
    let shown = format!("{made:?} {verified:?} {stored:?}");
    assert!(!shown.contains(secret), "{shown}");
    assert!(!format!("{verified:?}").contains(&stored.key.secrets[0].sha256));
}

#[tokio::test]
async fn a_rotated_key_keeps_its_identity_and_has_two_texts_during_the_overlap() {
    let stage = Stage::open().await;
    let first = stage.made("acme", &[Role::Member]).await;
    let id = &first.stored.key.id;
    let before = stage.who(first.text.expose()).unwrap();

    let second = stage.identity.rotate(&root(), id, OVERLAP_DEFAULT_MS).await.unwrap();
    assert_ne!(first.text, second.text);
    assert!(second.text.expose().starts_with(&format!("wp_{id}_")));
    assert_eq!((&second.stored.key.id, second.stored.version), (id, 2));
    assert!(stage.is_good(&first.text) && stage.is_good(&second.text));
    let after = stage.who(second.text.expose()).unwrap();
    assert_eq!(after.subject, before.subject);

    let end = NOW.plus_ms(OVERLAP_DEFAULT_MS);
    assert_eq!(stage.identity.standing(&before), Standing::Good { until: Some(end) });
    assert_eq!(stage.who(first.text.expose()).unwrap().until, Some(end));
    stage.clock.advance(OVERLAP_DEFAULT_MS);
    assert!(!stage.is_good(&first.text) && stage.is_good(&second.text));
    assert_eq!(stage.identity.standing(&before), Standing::Ended);
    assert!(stage.identity.is_good(&after));

    let third = stage.identity.rotate(&root(), id, 0).await.unwrap();
    assert!(!stage.is_good(&second.text), "no overlap");
    assert!(stage.is_good(&third.text));
    assert_eq!(third.stored.key.secrets.len(), 2);
}

#[tokio::test]
async fn a_key_expires_on_time_and_keeps_its_roles() {
    let stage = Stage::open().await;
    let expiring = |expires: Expiry| NewKey { expires, ..new_key("acme", &[Role::Member]) };
    let usual = stage.identity.create(&root(), expiring(Expiry::Usual)).await.unwrap();
    let soon = expiring(Expiry::At(NOW.plus_ms(MINUTE_MS)));
    let soon = stage.identity.create(&root(), soon).await.unwrap();
    let never = stage.identity.create(&root(), expiring(Expiry::Never)).await.unwrap();
    for past in [NOW, Millis(0)] {
        let refused = stage.identity.create(&root(), expiring(Expiry::At(past))).await;
        assert_eq!(refused.unwrap_err(), KeyRefusal::BadExpiry);
    }

    let verified = stage.who(soon.text.expose()).unwrap();
    stage.clock.advance(MINUTE_MS);
    assert_eq!(stage.why(soon.text.expose()), "the key has expired");
    assert!(!stage.identity.is_good(&verified));
    assert!(stage.is_good(&usual.text));
    let directory = stage.identity.directory();
    let roles = directory.roles(&"acme".into(), &verified.subject);
    assert!(roles.has(Role::Member), "what was begun with it continues");
    let rotated = stage.identity.rotate(&root(), &soon.stored.key.id, 0).await;
    assert_eq!(rotated.unwrap_err(), KeyRefusal::Dead(KeyRejection::Expired));

    stage.clock.advance(90 * DAY_MS);
    assert!(!stage.is_good(&usual.text));
    assert!(stage.is_good(&never.text));
    assert_eq!(stage.who(never.text.expose()).unwrap().until, None);
}

#[tokio::test]
async fn a_maker_sees_and_changes_only_keys_that_it_administers() {
    let stage = Stage::open().await;
    let acme = stage.made("acme", &[Role::Member]).await.stored.key.id;
    let teams = stage.made("acme-*", &[Role::Viewer]).await.stored.key.id;
    let other = stage.made("other", &[Role::Admin]).await.stored.key.id;
    let everywhere = stage.made("*", &[Role::Viewer]).await.stored.key.id;

    let mut all = vec![acme.clone(), teams.clone(), other.clone(), everywhere.clone()];
    all.sort();
    assert_eq!(ids(&stage.identity.list(&root())), all);
    assert_eq!(ids(&stage.identity.list(&maker("acme"))), std::slice::from_ref(&acme));
    let mut of_acme = vec![acme.clone(), teams.clone()];
    of_acme.sort();
    assert_eq!(ids(&stage.identity.list(&maker("acme*"))), of_acme);
    let member = Maker { grants: grants("*", &[Role::Operator]), ..root() };
    assert!(stage.identity.list(&member).is_empty());

    let ann = maker("acme");
    for id in [&teams, &other, &everywhere, &KeyId("aaaaaaaaaa".into())] {
        let unknown = KeyRefusal::Unknown;
        assert_eq!(stage.identity.rotate(&ann, id, 0).await.unwrap_err(), unknown);
        assert_eq!(stage.identity.revoke(&ann, id).await.unwrap_err(), unknown);
    }
    assert!(stage.identity.revoke(&ann, &acme).await.is_ok());
    for realm in ["*", "acme*", "acme-1", "other"] {
        let refused = stage.identity.create(&ann, new_key(realm, &[Role::Viewer])).await;
        assert!(matches!(refused, Err(KeyRefusal::Exceeds(_))), "{realm}");
        let refused = stage.identity.create(&member, new_key(realm, &[Role::Viewer])).await;
        assert!(matches!(refused, Err(KeyRefusal::Exceeds(_))), "{realm}");
    }
    assert!(stage.identity.create(&ann, new_key("acme", &[Role::Admin])).await.is_ok());
}

#[tokio::test]
async fn a_new_key_needs_a_name_and_a_role() {
    let stage = Stage::open().await;
    let named = |name: &str| NewKey { name: name.to_owned(), ..new_key("acme", &[Role::Member]) };
    for name in ["", " ", "a\nb", &"x".repeat(201)] {
        let refused = stage.identity.create(&root(), named(name)).await;
        assert_eq!(refused.unwrap_err(), KeyRefusal::BadName, "{name}");
    }
    let made = stage.identity.create(&root(), named(" CI of acme ")).await.unwrap();
    assert_eq!(made.stored.key.name, "CI of acme");
    assert_eq!(&*made.stored.key.by, "admin");
    for realms in [Grants::default(), grants("acme", &[])] {
        let empty = NewKey { realms, ..named("a") };
        let refused = stage.identity.create(&root(), empty).await;
        assert_eq!(refused.unwrap_err(), KeyRefusal::NoRealm);
    }
}

#[tokio::test]
async fn a_maker_whose_key_was_revoked_changes_nothing() {
    let stage = Stage::open().await;
    let made = stage.made("acme", &[Role::Admin]).await;
    let verified = stage.who(made.text.expose()).unwrap();
    let held = Grants::clone(&verified.realms);
    let ann = Maker { subject: verified.subject, grants: held, ..root() };
    let bob = stage.identity.create(&ann, new_key("acme", &[Role::Member])).await.unwrap();
    assert_eq!(bob.stored.key.by, ann.subject);
    stage.identity.revoke(&root(), &made.stored.key.id).await.unwrap();
    let late = stage.identity.create(&ann, new_key("acme", &[Role::Member])).await;
    assert_eq!(late.unwrap_err(), KeyRefusal::MakerRevoked);
    let late = stage.identity.revoke(&ann, &bob.stored.key.id).await;
    assert_eq!(late.unwrap_err(), KeyRefusal::MakerRevoked);
    assert!(stage.is_good(&bob.text));
}
