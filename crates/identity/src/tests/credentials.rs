//! What is sent: keys that are wrong, the admin key, failed attempts, and who a caller is.

use super::{ADMIN_KEY, HOME, MINUTE_MS, Stage, grants, new_key, root, sent};
use crate::failures::FAILURES_MAX;
use crate::keys::{Expiry, NewKey};
use crate::{CredentialRefusal, Standing};
use kernel::contracts::Clock;
use kernel::identity::key::KeyText;
use kernel::identity::roles::Role;
use kernel::values::caller::{Caller, Scope, Scopes};
use kernel::values::secret::Secret;

/// The same text with another last character.
fn altered(text: &Secret) -> String {
    let mut altered = text.expose().to_owned();
    let last = altered.pop().unwrap();
    altered.push(if last == 'a' { 'b' } else { 'a' });
    altered
}

#[tokio::test]
async fn a_wrong_secret_and_an_unknown_id_are_refused() {
    let stage = Stage::open().await;
    let made = stage.made("acme", &[Role::Member]).await;
    let wrong = "the secret of the key is wrong, or it was replaced";
    assert_eq!(stage.why(&altered(&made.text)), wrong);
    let unknown = KeyText::mint([9; 39]).text;
    assert_eq!(stage.why(unknown.expose()), "there is no key with this id");
    let refused = stage.who(unknown.expose()).unwrap_err().to_string();
    assert_eq!(refused, stage.who(&altered(&made.text)).unwrap_err().to_string());
    let text = made.text.expose();
    for other in [text.to_uppercase().as_str(), &text[1..], "wp_", "wpt_", "wpt_abc", "a.b.c"] {
        assert!(stage.who(other).is_err(), "{other}");
    }
}

#[tokio::test]
async fn too_many_failures_refuse_credentials_not_known_to_be_good() {
    let stage = Stage::open().await;
    let made = stage.made("acme", &[Role::Member]).await;
    let text = made.text.expose();
    let id = made.stored.key.id.as_str();
    let token = stage.identity.token(id, text, None).unwrap();
    for _ in 0..FAILURES_MAX {
        assert!(matches!(stage.who("nonsense"), Err(CredentialRefusal::Invalid(_))));
    }
    let too_many = |retry_after_s: u64| CredentialRefusal::TooMany { retry_after_s };
    for unknown in ["nonsense", &altered(&made.text), &altered(&token.text)] {
        assert_eq!(stage.who(unknown).unwrap_err(), too_many(60), "{unknown}");
    }
    assert!(stage.is_good(&made.text) && stage.is_good(&token.text));
    assert!(stage.who(ADMIN_KEY).is_ok());
    let elsewhere = "192.0.2.2".parse().unwrap();
    let there = stage.identity.authenticate(&sent("nonsense"), elsewhere);
    assert!(matches!(there, Err(CredentialRefusal::Invalid(_))));

    stage.clock.advance(MINUTE_MS - 1);
    assert_eq!(stage.who("nonsense").unwrap_err(), too_many(1));
    assert_eq!(stage.identity.failed(HOME, "at another endpoint"), too_many(1));
    stage.clock.advance(1);
    assert_eq!(stage.identity.failed(HOME, "why"), CredentialRefusal::Invalid("why"));
}

#[tokio::test]
async fn good_credentials_are_not_counted() {
    let stage = Stage::open().await;
    let made = stage.made("acme", &[Role::Member]).await;
    for _ in 0..2 * FAILURES_MAX {
        assert!(stage.is_good(&made.text));
    }
    assert!(matches!(stage.who("nonsense"), Err(CredentialRefusal::Invalid(_))));
}

#[tokio::test]
async fn administration_needs_both_the_role_and_the_scope() {
    let stage = Stage::open().await;
    let made = stage.made("acme-*", &[Role::Admin]).await;
    let verified = stage.who(made.text.expose()).unwrap();
    let directory = stage.identity.directory();
    let subject = verified.subject.clone();
    let own = Caller::new("acme-1", subject.clone()).administering();
    assert_eq!(verified.caller("acme-1".into(), &directory), own);
    let other = Caller::new("other", subject);
    assert_eq!(verified.caller("other".into(), &directory), other);

    let reads: Scopes = [Scope::Read].into_iter().collect();
    let narrow = NewKey { scopes: Some(reads), ..new_key("acme-*", &[Role::Admin]) };
    let narrow = stage.identity.create(&root(), narrow).await.unwrap();
    let verified = stage.who(narrow.text.expose()).unwrap();
    let caller = verified.caller("acme-1".into(), &stage.identity.directory());
    assert_eq!((caller.scopes, caller.admin), (Some(reads), false));

    let admin = stage.who(ADMIN_KEY).unwrap();
    let caller = admin.caller("other".into(), &directory);
    assert_eq!(caller, Caller::new("other", "admin").administering());
    assert_eq!(*admin.realms, grants("*", &[Role::Admin]));
    assert_eq!(stage.identity.standing(&admin), Standing::Good { until: None });
}

#[tokio::test]
async fn a_known_credential_is_reverified_when_it_expires_or_the_directory_changes() {
    let stage = Stage::open().await;
    let expires = Expiry::At(stage.clock.now().plus_ms(10 * MINUTE_MS));
    let new = NewKey { expires, ..new_key("acme", &[Role::Member]) };
    let made = stage.identity.create(&root(), new).await.unwrap();
    let id = &made.stored.key.id;
    let text = made.text.expose();
    let token = stage.identity.token(id.as_str(), text, None).unwrap();
    let good = |text: &str| (0..3).all(|_| stage.who(text).is_ok());
    assert!(good(text) && good(token.text.expose()) && good(ADMIN_KEY));

    // Another text of the same key is not taken for it.
    assert!(stage.who(&altered(&made.text)).is_err());
    let rotated = stage.identity.rotate(&root(), id, MINUTE_MS).await.unwrap();
    assert!(good(text) && good(rotated.text.expose()) && good(token.text.expose()));
    stage.clock.advance(MINUTE_MS);
    assert!(stage.who(text).is_err(), "its overlap is over");
    assert!(stage.who(token.text.expose()).is_err(), "and so is that of its token");
    assert!(good(rotated.text.expose()));
    stage.clock.advance(9 * MINUTE_MS);
    assert!(stage.who(rotated.text.expose()).is_err(), "the key has expired");

    let other = stage.made("acme", &[Role::Member]).await;
    assert!(good(other.text.expose()));
    stage.identity.revoke(&root(), &other.stored.key.id).await.unwrap();
    assert_eq!(stage.why(other.text.expose()), "the key was revoked");
    assert!(good(ADMIN_KEY));
}

#[tokio::test]
async fn the_directory_version_grows_with_every_change() {
    let stage = Stage::open().await;
    let number = || {
        assert_eq!(stage.identity.number(), stage.identity.directory().number);
        stage.identity.number()
    };
    let first = number();
    let made = stage.made("acme", &[Role::Member]).await;
    let second = number();
    stage.identity.revoke(&root(), &made.stored.key.id).await.unwrap();
    assert!(first < second && second < number());
}
