//! Changes of keys: none is lost to another, to a process elsewhere or to a client that went away;
//! and last uses, which are stored from time to time.

use super::{MINUTE_MS, NOW, Stage, new_key, reached, root};
use crate::keys::{KeyRefusal, Maker};
use futures::FutureExt;
use kernel::contracts::StoreError;
use kernel::identity::key::KeyRejection;
use kernel::identity::roles::Role;
use kernel::values::caller::Via;
use std::sync::atomic::Ordering;

#[tokio::test]
async fn two_changes_at_once_do_not_lose_each_other() {
    let stage = Stage::open().await;
    stage.store.held.send_replace(true);
    let member = || new_key("acme", &[Role::Member]);
    let maker = root();
    let (one, other, _) = futures::join!(
        stage.identity.create(&maker, member()),
        stage.identity.create(&maker, member()),
        async { stage.store.held.send_replace(false) },
    );
    let one = one.unwrap();
    let other = other.unwrap();
    assert!(stage.is_good(&one.text) && stage.is_good(&other.text));
    assert_eq!(stage.identity.list(&maker).len(), 2);
}

#[tokio::test]
async fn a_change_completes_after_its_client_disconnected() {
    let stage = Stage::open().await;
    let made = stage.made("acme", &[Role::Member]).await;
    let mut numbers = stage.identity.changed();
    stage.store.held.send_replace(true);
    let maker = root();
    let id = &made.stored.key.id;
    // Polled once, and dropped.
    assert!(stage.identity.revoke(&maker, id).now_or_never().is_none());
    assert!(stage.is_good(&made.text), "not durable yet");
    stage.store.held.send_replace(false);
    numbers.changed().await.unwrap();
    assert!(stage.store.stored(id).key.revoked.is_some());
    assert!(!stage.is_good(&made.text));
}

#[tokio::test]
async fn a_key_changed_by_another_process_is_reread_before_a_change() {
    let stage = Stage::open().await;
    let made = stage.made("acme", &[Role::Member]).await;
    let id = &made.stored.key.id;
    stage.store.change_elsewhere(id, |key| key.name = "renamed".to_owned());
    let rotated = stage.identity.rotate(&root(), id, 0).await.unwrap();
    assert_eq!((rotated.stored.key.name.as_str(), rotated.stored.version), ("renamed", 3));
    assert_eq!(stage.store.stored(id), rotated.stored);

    stage.store.change_elsewhere(id, |key| key.revoked = Some(NOW));
    assert!(stage.is_good(&rotated.text), "no one said so here");
    let refused = stage.identity.rotate(&root(), id, 0).await.unwrap_err();
    assert_eq!(refused, KeyRefusal::Dead(KeyRejection::Revoked));
    assert!(!stage.is_good(&rotated.text));
}

#[tokio::test]
async fn a_write_reported_as_failed_but_stored_counts() {
    let stage = Stage::open().await;
    let made = stage.made("acme", &[Role::Member]).await;
    stage.store.breaks.store(true, Ordering::SeqCst);
    let failed = stage.identity.revoke(&root(), &made.stored.key.id).await.unwrap_err();
    assert!(matches!(failed, KeyRefusal::Store(StoreError::Failed(_))), "{failed}");
    assert_eq!(stage.why(made.text.expose()), "the key was revoked");
}

#[tokio::test]
async fn last_uses_are_stored_once_a_minute() {
    let stage = Stage::open().await;
    let made = stage.made("acme", &[Role::Member]).await;
    let idle = stage.made("acme", &[Role::Member]).await;
    let id = &made.stored.key.id;
    let maker = root();
    let listed = || stage.identity.list(&maker).into_iter().find(|one| one.key.id == *id).unwrap();
    stage.clock.slept(1).await;
    stage.clock.advance(500);
    for _ in 0..3 {
        assert!(stage.is_good(&made.text));
    }
    assert_eq!(listed().used, Some(NOW.plus_ms(500)));
    assert_eq!(stage.store.stored(id).used, None);

    stage.clock.advance(MINUTE_MS);
    stage.clock.slept(2).await;
    assert_eq!(*stage.store.noted.borrow(), 1);
    assert_eq!(stage.store.stored(id).used, Some(NOW.plus_ms(500)));
    assert_eq!(stage.store.stored(&idle.stored.key.id).used, None);
    stage.clock.advance(MINUTE_MS);
    stage.clock.slept(3).await;
    assert_eq!(*stage.store.noted.borrow(), 1, "nothing new");

    assert!(stage.is_good(&made.text));
    let rotated = stage.identity.rotate(&maker, id, 0).await.unwrap();
    let moment = Some(NOW.plus_ms(500 + 2 * MINUTE_MS));
    assert_eq!(rotated.stored.used, moment, "a change does not forget it");
    stage.identity.store_uses().await.unwrap();
    assert_eq!(stage.store.stored(id).used, moment);
    let next = Stage::over(stage.store.clone(), stage.clock.clone()).await;
    let mut moments: Vec<_> = next.identity.list(&maker).iter().map(|one| one.used).collect();
    moments.sort();
    assert_eq!(moments, [None, moment], "nor does a restart");
}

#[tokio::test]
async fn the_task_that_stores_last_uses_ends_with_the_identity() {
    let Stage { identity, clock, tasks, .. } = Stage::open().await;
    clock.slept(1).await;
    drop(identity);
    clock.advance(MINUTE_MS);
    reached(&tasks.ended, |ended| ended.contains(&"last uses of keys")).await;
}

#[tokio::test]
async fn each_change_is_audited_with_its_maker_and_without_the_key_text() {
    let stage = Stage::open().await;
    let via = Via::new("rest /api/v1/keys".to_owned(), None);
    let eve = Maker { actor: Some("eve".into()), via, ..root() };
    let made = stage.identity.create(&eve, new_key("acme", &[Role::Member])).await.unwrap();
    let id = &made.stored.key.id;
    let rotated = stage.identity.rotate(&root(), id, MINUTE_MS).await.unwrap();
    stage.identity.revoke(&root(), id).await.unwrap();
    let everywhere = new_key("*", &[Role::Viewer]);
    stage.identity.create(&root(), everywhere).await.unwrap();
    let entries = stage.store.entries.lock().unwrap().clone();
    let told: Vec<(&str, &str)> = entries
        .iter()
        .flat_map(|(chain, row)| row.iter().map(move |entry| (chain.as_str(), &*entry.act)))
        .collect();
    let expected = [
        ("acme", "key.create"),
        ("acme", "key.rotate"),
        ("acme", "key.revoke"),
        ("*", "key.create"),
    ];
    assert_eq!(told, expected);
    let first = &entries[0].1[0];
    assert_eq!((&*first.subject, first.actor.as_deref()), ("admin", Some("eve")));
    assert_eq!(first.door.as_deref(), Some("rest /api/v1/keys"));
    assert_eq!(first.object.id.as_deref(), Some(id.as_str()));
    let written = serde_json::to_string(&entries).unwrap();
    for text in [&made.text, &rotated.text] {
        assert!(!written.contains(text.expose()), "{written}");
    }
    assert!(!written.contains("sha256"), "{written}");
}
