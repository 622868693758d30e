//! Tokens: what they are good for, and what they end with.

use super::{ADMIN_KEY, DAY_MS, MINUTE_MS, NOW, Stage, new_key, root};
use crate::keys::{Expiry, KeyWithText, NewKey};
use crate::token::{TOKEN_MS, Token, TokenRefusal};
use crate::{Identity, Standing};
use kernel::identity::key::KeyText;
use kernel::identity::roles::Role;
use kernel::values::caller::{Scope, Scopes};

/// A token for a key.
fn token(
    identity: &Identity,
    made: &KeyWithText,
    scope: Option<&str>,
) -> Result<Token, TokenRefusal> {
    identity.token(made.stored.key.id.as_str(), made.text.expose(), scope)
}

#[tokio::test]
async fn a_token_acts_as_its_key_for_fifteen_minutes() {
    let stage = Stage::open().await;
    let made = stage.made("acme", &[Role::Member]).await;
    let given = token(&stage.identity, &made, None).unwrap();
    assert_eq!((given.expires_in_s, given.scopes), (15 * 60, None));
    assert!(given.text.expose().starts_with("wpt_"));
    assert!(!format!("{given:?}").contains(given.text.expose()));

    let verified = stage.who(given.text.expose()).unwrap();
    let key = stage.who(made.text.expose()).unwrap();
    assert_eq!((&verified.subject, &verified.key), (&key.subject, &key.key));
    assert_eq!(verified.realms, key.realms);
    let end = NOW.plus_ms(TOKEN_MS);
    assert_eq!(verified.until, Some(end));
    assert_eq!(stage.identity.standing(&verified), Standing::Good { until: Some(end) });

    stage.clock.advance(TOKEN_MS - 1);
    assert!(stage.is_good(&given.text));
    stage.clock.advance(1);
    assert_eq!(stage.why(given.text.expose()), "the token has expired");
    assert_eq!(stage.identity.standing(&verified), Standing::Ended);
    assert!(stage.is_good(&made.text));
}

#[tokio::test]
async fn a_token_ends_with_its_key_and_with_its_key_text() {
    let stage = Stage::open().await;
    let revoked = stage.made("acme", &[Role::Member]).await;
    let of_revoked = token(&stage.identity, &revoked, None).unwrap();
    let open = stage.who(of_revoked.text.expose()).unwrap();
    stage.identity.revoke(&root(), &revoked.stored.key.id).await.unwrap();
    assert_eq!(stage.why(of_revoked.text.expose()), "the key was revoked");
    assert_eq!(stage.identity.standing(&open), Standing::Ended);

    let rotated = stage.made("acme", &[Role::Member]).await;
    let of_old = token(&stage.identity, &rotated, None).unwrap();
    let open = stage.who(of_old.text.expose()).unwrap();
    let id = &rotated.stored.key.id;
    let new = stage.identity.rotate(&root(), id, MINUTE_MS).await.unwrap();
    let of_new = token(&stage.identity, &new, None).unwrap();
    let end = Standing::Good { until: Some(NOW.plus_ms(MINUTE_MS)) };
    assert_eq!(stage.identity.standing(&open), end, "the old secret ends first");
    stage.clock.advance(MINUTE_MS);
    assert!(!stage.is_good(&of_old.text) && stage.is_good(&of_new.text));
    assert_eq!(stage.identity.standing(&open), Standing::Ended);
}

#[tokio::test]
async fn a_token_ends_no_later_than_its_key() {
    let stage = Stage::open().await;
    let expires = Expiry::At(NOW.plus_ms(MINUTE_MS));
    let short = NewKey { expires, ..new_key("acme", &[Role::Member]) };
    let short = stage.identity.create(&root(), short).await.unwrap();
    assert_eq!(token(&stage.identity, &short, None).unwrap().expires_in_s, 60);
    stage.clock.advance(MINUTE_MS);
    let refused = token(&stage.identity, &short, None).unwrap_err();
    assert_eq!(refused, TokenRefusal::InvalidClient("the key has expired"));
}

#[tokio::test]
async fn a_scope_narrows_a_token_and_never_widens_it() {
    let stage = Stage::open().await;
    let scopes = |scopes: &[Scope]| -> Scopes { scopes.iter().copied().collect() };
    let both = scopes(&[Scope::Use, Scope::Answer]);
    let new = NewKey { scopes: Some(both), ..new_key("acme", &[Role::Admin]) };
    let made = stage.identity.create(&root(), new).await.unwrap();
    for (scope, expected) in [
        (None, both),
        (Some(""), both),
        (Some("use"), scopes(&[Scope::Use])),
        (Some("read answer"), scopes(&[Scope::Read, Scope::Answer])),
    ] {
        let given = token(&stage.identity, &made, scope).unwrap();
        assert_eq!(given.scopes, Some(expected), "{scope:?}");
        let verified = stage.who(given.text.expose()).unwrap();
        assert_eq!(verified.scopes, Some(expected), "{scope:?}");
        let caller = verified.caller("acme".into(), &stage.identity.directory());
        assert_eq!((caller.scopes, caller.admin), (Some(expected), false));
    }
    for scope in ["admin", "use define", "everything"] {
        let refused = token(&stage.identity, &made, Some(scope)).unwrap_err();
        assert_eq!(refused, TokenRefusal::InvalidScope, "{scope}");
    }
}

#[tokio::test]
async fn a_token_can_be_exchanged_only_for_a_key() {
    let stage = Stage::open().await;
    let made = stage.made("acme", &[Role::Member]).await;
    let other = stage.made("acme", &[Role::Member]).await;
    let given = token(&stage.identity, &made, None).unwrap();
    let id = made.stored.key.id.as_str();
    let unknown = KeyText::mint([9; 39]);
    for (client, secret) in [
        (id, given.text.expose()),
        (id, other.text.expose()),
        (id, ADMIN_KEY),
        (id, ""),
        ("admin", ADMIN_KEY),
        ("", made.text.expose()),
        (unknown.id.as_str(), unknown.text.expose()),
    ] {
        let refused = stage.identity.token(client, secret, None).unwrap_err();
        assert!(matches!(refused, TokenRefusal::InvalidClient(_)), "{client}");
    }
}

#[tokio::test]
async fn a_token_survives_a_restart_and_counts_as_a_use() {
    let stage = Stage::open().await;
    let made = stage.made("acme", &[Role::Member]).await;
    let given = token(&stage.identity, &made, None).unwrap();
    let next = Stage::over(stage.store.clone(), stage.clock.clone()).await;
    assert!(next.is_good(&given.text));
    assert_eq!(next.identity.list(&root())[0].used, Some(NOW));
    next.clock.advance(DAY_MS);
    assert!(!next.is_good(&given.text));
    assert_eq!(next.identity.list(&root())[0].used, Some(NOW), "a refused one is no use");
}
