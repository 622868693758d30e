//! Issuers that serve their keys, and those that hang, lie, send too much, lead elsewhere, change
//! their keys or are away.

use super::signing::{Signer, claims, claims_at, with};
use super::{DAY_MS, HOME, HandClock, MINUTE_MS, Memory, NOW, Stage, root, sent};
use crate::failures::FAILURES_MAX;
use crate::{CredentialRefusal, Endpoint, Standing, VerifiedCaller};
use futures::future::join_all;
use kernel::contracts::Clock;
use kernel::identity::grants::{Grants, RealmPattern};
use kernel::identity::issuer::IssuerEntry;
use kernel::identity::principal::Principal;
use kernel::identity::roles::{Role, Roles};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// How an issuer behaves.
#[derive(Debug, Clone)]
enum Manner {
    /// It serves its documents.
    Serves,
    /// It takes a connection and says nothing.
    Hangs,
    /// It says that it is another.
    Lies,
    /// Its key set has this many bytes.
    Sends(usize),
    /// Its key set is elsewhere.
    Redirects,
    /// It names a key set that is not safe from listeners.
    NamesPlainKeys,
    Fails,
}

/// An issuer on this machine.
struct Fake {
    url: String,
    state: Arc<State>,
}

struct State {
    manner: Mutex<Manner>,
    keys: Mutex<Vec<Value>>,
    /// How often its key set was asked for.
    asked: AtomicU32,
}

impl Fake {
    async fn open(keys: &[Value]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let manner = Mutex::new(Manner::Serves);
        let keys = Mutex::new(keys.to_vec());
        let state = Arc::new(State { manner, keys, asked: AtomicU32::new(0) });
        let served = state.clone();
        let own = url.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let state = served.clone();
                let own = own.clone();
                tokio::spawn(async move { answer(stream, &state, &own).await });
            }
        });
        Self { url, state }
    }

    fn behaves(&self, manner: Manner) {
        *self.state.manner.lock().unwrap() = manner;
    }

    fn has(&self, keys: &[Value]) {
        *self.state.keys.lock().unwrap() = keys.to_vec();
    }

    fn asked(&self) -> u32 {
        self.state.asked.load(Ordering::SeqCst)
    }

    fn entry(&self) -> IssuerEntry {
        let roles = [("staff", Role::Member), ("boss", Role::Admin)];
        let roles = roles.map(|(value, role)| (value.to_owned(), Roles::of(&[role])));
        IssuerEntry {
            audience: Some("waypost".to_owned()),
            roles: roles.into(),
            realms: vec![RealmPattern::parse("default").unwrap()],
            ..IssuerEntry::new("corp", self.url.as_str())
        }
    }

    async fn stage(&self) -> Stage {
        Stage::trusting(Arc::default(), Arc::default(), vec![self.entry()]).await
    }
}

async fn answer(mut stream: TcpStream, state: &State, own: &str) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = stream.read_u8().await else { return };
        head.push(byte);
    }
    let manner = state.manner.lock().unwrap().clone();
    let head = String::from_utf8(head).unwrap();
    let path = head.split(' ').nth(1).unwrap_or_default();
    let keys = json!({"keys": state.keys.lock().unwrap().clone()}).to_string();
    let issuer = if matches!(manner, Manner::Lies) { "https://login.test" } else { own };
    let jwks = match manner {
        Manner::NamesPlainKeys => "http://login.test/keys".to_owned(),
        _ => format!("{own}/keys"),
    };
    if path == "/keys" {
        state.asked.fetch_add(1, Ordering::SeqCst);
    }
    let (status, body) = match (path, manner) {
        (_, Manner::Hangs) => return std::future::pending().await,
        (_, Manner::Fails) => ("503 Service Unavailable", String::new()),
        ("/.well-known/openid-configuration", _) => {
            ("200 OK", json!({"issuer": issuer, "jwks_uri": jwks}).to_string())
        }
        ("/keys", Manner::Redirects) => ("302 Found\r\nLocation: /other", String::new()),
        ("/keys", Manner::Sends(bytes)) => ("200 OK", format!("{}{keys}", " ".repeat(bytes))),
        ("/keys" | "/other", _) => ("200 OK", keys),
        _ => ("404 Not Found", String::new()),
    };
    let length = body.len();
    let answer =
        format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
    drop(stream.write_all(answer.as_bytes()).await);
}

impl Stage {
    async fn shows(&self, token: &str) -> Result<VerifiedCaller, CredentialRefusal> {
        let verified = self.identity.verify(&sent(token), HOME, Endpoint::Other).await;
        verified.map(Arc::unwrap_or_clone)
    }

    /// Why a token is refused.
    async fn refuses(&self, token: &str) -> &'static str {
        match self.shows(token).await {
            Err(CredentialRefusal::Invalid(why)) => why,
            other => panic!("{other:?}"),
        }
    }

    fn roles(&self, subject: &str) -> Roles {
        self.identity.directory().roles(&"default".into(), subject)
    }
}

#[tokio::test]
async fn a_verified_token_is_cached() {
    let signer = Signer::ed25519();
    let fake = Fake::open(&[signer.listed("a")]).await;
    let stage = fake.stage().await;
    let token = signer.token("a", &claims(&fake.url));
    assert!(stage.who(&token).is_err(), "not seen yet");
    let verified = stage.shows(&token).await.unwrap();
    assert_eq!((&*verified.subject, &verified.key), ("corp:ann", &None));
    let caller = verified.caller("default".into(), &stage.identity.directory());
    assert!(!caller.admin && caller.scopes == verified.scopes);
    assert_eq!(stage.roles("corp:ann"), Roles::of(&[Role::Member]));
    assert!(stage.who(&token).is_ok(), "known at once");
    assert_eq!(fake.asked(), 1);
    let until = NOW.plus_ms(3_630_000);
    assert_eq!(stage.identity.standing(&verified), Standing::Good { until: Some(until) });
    stage.clock.advance(3_630_000);
    assert_eq!(stage.identity.standing(&verified), Standing::Ended);
    assert_eq!(stage.refuses(&token).await, "the token has expired");
    assert!(!stage.identity.issuers().is_empty());
}

#[tokio::test]
async fn a_token_with_the_mcp_audience_is_accepted_at_mcp_only() {
    let signer = Signer::p256();
    let fake = Fake::open(&[signer.listed("a")]).await;
    let stage = fake.stage().await;
    let claims = with(claims(&fake.url), "aud", json!("https://wp.test/mcp"));
    let token = signer.token("a", &claims);
    assert_eq!(stage.refuses(&token).await, "the token is for `/mcp` only");
    // Also once it is known.
    for _ in 0..2 {
        let at_mcp = stage.identity.verify(&sent(&token), HOME, Endpoint::Mcp).await;
        assert_eq!(&*at_mcp.unwrap().subject, "corp:ann");
        assert_eq!(stage.refuses(&token).await, "the token is for `/mcp` only");
    }
}

#[tokio::test]
async fn metadata_of_a_wrong_issuer_is_refused() {
    let signer = Signer::ed25519();
    let fake = Fake::open(&[signer.listed("a")]).await;
    let token = signer.token("a", &claims(&fake.url));
    let unknown = "the token's key is not one of its issuer's";
    let manners = [
        Manner::Lies,
        Manner::Sends(300 * 1024),
        Manner::Redirects,
        Manner::NamesPlainKeys,
        Manner::Fails,
    ];
    for manner in manners {
        fake.behaves(manner.clone());
        let stage = fake.stage().await;
        assert_eq!(stage.refuses(&token).await, unknown, "{manner:?}");
    }
    fake.behaves(Manner::Sends(1024));
    assert!(fake.stage().await.shows(&token).await.is_ok());
    let stage = fake.stage().await;
    let foreign = signer.token("a", &claims("https://login.test"));
    assert_eq!(stage.refuses(&foreign).await, "the token's issuer is not configured");
}

#[tokio::test]
async fn a_hanging_issuer_delays_only_tokens_with_unknown_keys() {
    let signer = Signer::ed25519();
    let fake = Fake::open(&[signer.listed("a")]).await;
    fake.behaves(Manner::Hangs);
    let stage = Arc::new(fake.stage().await);
    let made = stage.made("default", &[Role::Member]).await;
    let before = *stage.clock.sleeps.borrow();
    let waiting = stage.clone();
    let token = signer.token("a", &claims(&fake.url));
    let waits = tokio::spawn(async move { waiting.shows(&token).await });
    // The fetch and who waits for it.
    stage.clock.slept(before + 2).await;
    assert!(stage.shows(made.text.expose()).await.is_ok());
    assert!(!waits.is_finished());
    stage.clock.advance(5_000);
    assert!(matches!(waits.await.unwrap(), Err(CredentialRefusal::Invalid(_))));
}

#[tokio::test]
async fn a_new_key_is_fetched_within_a_rate_and_a_lost_one_ends_its_tokens() {
    let old = Signer::ed25519();
    let new = Signer::ed25519();
    let fake = Fake::open(&[old.listed("old")]).await;
    let stage = fake.stage().await;
    let first = old.token("old", &claims(&fake.url));
    let verified = stage.shows(&first).await.unwrap();
    fake.has(&[new.listed("new")]);
    let second = new.token("new", &claims(&fake.url));
    assert!(stage.shows(&second).await.is_err(), "too early");
    assert!(stage.shows(&first).await.is_ok() && fake.asked() == 1);
    let changed = stage.identity.changed();
    stage.clock.advance(30_000);
    assert!(stage.shows(&second).await.is_ok());
    assert_eq!(fake.asked(), 2);
    assert_eq!(stage.identity.standing(&verified), Standing::Ended);
    assert!(changed.has_changed().unwrap(), "streams look again");
    assert!(stage.who(&first).is_err() && stage.shows(&first).await.is_err());
}

#[tokio::test]
async fn a_key_replaced_under_its_id_is_refetched_at_its_first_token() {
    let old = Signer::ed25519();
    let new = Signer::p256();
    let forger = Signer::ed25519();
    let fake = Fake::open(&[old.listed("a")]).await;
    let stage = fake.stage().await;
    let first = old.token("a", &claims(&fake.url));
    assert!(stage.shows(&first).await.is_ok());
    for (number, replaced) in (1_u32..).zip([Signer::ed25519(), new]) {
        fake.has(&[replaced.listed("a")]);
        let token = replaced.token("a", &claims(&fake.url));
        assert!(stage.shows(&token).await.is_err(), "too early");
        assert_eq!(fake.asked(), number);
        stage.clock.advance(30_000);
        assert!(stage.shows(&token).await.is_ok(), "at once");
        assert_eq!(fake.asked(), number + 1);
        assert!(stage.shows(&first).await.is_err(), "its key is gone");
    }
    // Wrong signatures cause no more fetches than unknown keys do.
    stage.clock.advance(30_000);
    let asked = fake.asked();
    for _ in 0..10 {
        assert!(stage.shows(&forger.token("a", &claims(&fake.url))).await.is_err());
    }
    assert_eq!(fake.asked(), asked + 1);
}

#[tokio::test]
async fn concurrent_tokens_of_a_new_key_share_one_fetch() {
    let old = Signer::ed25519();
    let new = Signer::ed25519();
    let fake = Fake::open(&[old.listed("old")]).await;
    let stage = fake.stage().await;
    let first = old.token("old", &claims(&fake.url));
    assert!(stage.shows(&first).await.is_ok());
    fake.has(&[new.listed("new")]);
    stage.clock.advance(30_000);
    let subjects = (0..50).map(|number| json!(format!("s{number}")));
    let claimed = subjects.map(|subject| with(claims(&fake.url), "sub", subject));
    let tokens: Vec<String> = claimed.map(|claims| new.token("new", &claims)).collect();
    let shown = join_all(tokens.iter().map(|token| stage.shows(token))).await;
    assert!(shown.iter().all(Result::is_ok), "{shown:?}");
    assert_eq!(fake.asked(), 2);
    assert!(stage.shows(&first).await.is_err(), "its key is gone");
}

#[tokio::test]
async fn many_unknown_keys_cause_one_fetch() {
    let signer = Signer::ed25519();
    let fake = Fake::open(&[signer.listed("a")]).await;
    let stage = fake.stage().await;
    for number in 0..10 {
        let token = signer.token(&format!("x{number}"), &claims(&fake.url));
        assert!(stage.shows(&token).await.is_err());
    }
    assert_eq!(fake.asked(), 1);
}

#[tokio::test]
async fn keys_are_held_through_an_outage_of_a_day() {
    let signer = Signer::ed25519();
    let fake = Fake::open(&[signer.listed("a")]).await;
    let stage = fake.stage().await;
    assert!(stage.shows(&signer.token("a", &claims(&fake.url))).await.is_ok());
    fake.behaves(Manner::Fails);
    stage.clock.advance(DAY_MS - MINUTE_MS);
    let later = || signer.token("a", &claims_at(&fake.url, stage.clock.now()));
    let verified = stage.shows(&later()).await.unwrap();
    stage.clock.advance(MINUTE_MS);
    assert!(stage.shows(&later()).await.is_err());
    assert_eq!(stage.identity.standing(&verified), Standing::Ended);
    fake.behaves(Manner::Serves);
    stage.clock.advance(MINUTE_MS);
    assert!(stage.shows(&later()).await.is_ok());
}

#[tokio::test]
async fn keys_are_renewed_in_the_background() {
    let old = Signer::ed25519();
    let new = Signer::ed25519();
    let fake = Fake::open(&[old.listed("old")]).await;
    let stage = fake.stage().await;
    let ended = stage.tasks.ended.clone();
    let fetches = |ended: &Vec<&'static str>, times: usize| {
        ended.iter().filter(|name| **name == "fetch of a key set").count() >= times
    };
    stage.identity.watch_issuers();
    super::reached(&ended, |ended| fetches(ended, 1)).await;
    let token = old.token("old", &claims(&fake.url));
    assert!(stage.shows(&token).await.is_ok() && fake.asked() == 1);
    fake.has(&[new.listed("new")]);
    // Uses of keys, claims, two for the first fetch, and the next one.
    stage.clock.slept(5).await;
    stage.clock.advance(10 * MINUTE_MS);
    super::reached(&ended, |ended| fetches(ended, 2)).await;
    assert!(stage.who(&token).is_err(), "its key is gone");
}

#[tokio::test]
async fn over_the_failure_limit_only_known_credentials_are_checked() {
    let signer = Signer::ed25519();
    let fake = Fake::open(&[signer.listed("a")]).await;
    let stage = fake.stage().await;
    let known = signer.token("a", &claims(&fake.url));
    let made = stage.made("default", &[Role::Member]).await;
    assert!(stage.shows(&known).await.is_ok());
    for _ in 0..FAILURES_MAX {
        assert!(matches!(stage.shows("a.b.c").await, Err(CredentialRefusal::Invalid(_))));
    }
    let unseen = signer.token("a", &with(claims(&fake.url), "sub", json!("bob")));
    assert!(matches!(stage.shows(&unseen).await, Err(CredentialRefusal::TooMany { .. })));
    assert!(stage.shows(&known).await.is_ok() && stage.shows(made.text.expose()).await.is_ok());
    stage.clock.advance(MINUTE_MS);
    assert!(stage.shows(&unseen).await.is_ok());
}

#[tokio::test]
async fn claimed_roles_come_from_the_newest_token_of_a_subject() {
    let signer = Signer::ed25519();
    let fake = Fake::open(&[signer.listed("a")]).await;
    let stage = fake.stage().await;
    let now = NOW.0 / 1_000;
    let token = |issued: i64, role: &str| {
        let issued = with(claims(&fake.url), "iat", json!(issued));
        let issued = with(issued, "scope", json!("admin"));
        signer.token("a", &with(issued, "roles", json!([role])))
    };
    let old = stage.shows(&token(now - 60, "boss")).await.unwrap();
    assert_eq!(stage.roles("corp:ann"), Roles::of(&[Role::Admin]));
    assert!(old.caller("default".into(), &stage.identity.directory()).admin);
    stage.shows(&token(now - 30, "staff")).await.unwrap();
    assert_eq!(stage.roles("corp:ann"), Roles::of(&[Role::Member]));
    // An older one changes nothing, and has no more than the newest.
    let older = stage.shows(&token(now - 45, "boss")).await.unwrap();
    assert_eq!(older.realms.roles_in(&"default".into()), Roles::of(&[Role::Member]));
    let again = stage.shows(&token(now - 60, "boss")).await.unwrap();
    assert!(!again.caller("default".into(), &stage.identity.directory()).admin);
    assert_eq!(stage.store.claimed.load(Ordering::SeqCst), 2, "stored when they change");
    stage.shows(&token(now - 20, "staff")).await.unwrap();
    assert_eq!(stage.store.claimed.load(Ordering::SeqCst), 2);
}

/// Another start over the same data, so much later.
async fn restarted(store: &Arc<Memory>, fake: &Fake, ms: u64) -> Stage {
    let clock = Arc::new(HandClock::default());
    clock.advance(ms);
    Stage::trusting(store.clone(), clock, vec![fake.entry()]).await
}

#[tokio::test]
async fn claimed_roles_expire() {
    let signer = Signer::ed25519();
    let fake = Fake::open(&[signer.listed("a")]).await;
    let stage = fake.stage().await;
    stage.shows(&signer.token("a", &claims(&fake.url))).await.unwrap();
    let member = Roles::of(&[Role::Member]);
    let later = restarted(&stage.store, &fake, 7 * DAY_MS - MINUTE_MS).await;
    assert_eq!(later.roles("corp:ann"), member);
    // The tasks that store uses and forget claims look once a minute.
    later.clock.slept(2).await;
    later.clock.advance(MINUTE_MS);
    later.clock.slept(4).await;
    assert!(later.roles("corp:ann").is_empty());
    assert!(later.store.claims.lock().unwrap().is_empty());
    stage.shows(&signer.token("a", &with(claims(&fake.url), "sub", json!("bob")))).await.unwrap();
    let over = restarted(&stage.store, &fake, 7 * DAY_MS).await;
    assert!(over.roles("corp:bob").is_empty());
    let other = Stage::over(stage.store.clone(), Arc::default()).await;
    assert!(other.roles("corp:bob").is_empty(), "the issuer is not configured any more");
}

#[tokio::test]
async fn a_token_of_a_disabled_actor_is_refused() {
    let signer = Signer::ed25519();
    let fake = Fake::open(&[signer.listed("a")]).await;
    let identities = [Arc::<str>::from("corp:bot")].into_iter().collect();
    let bot = Principal { identities, ..Principal::new("bot", Grants::default()) };
    let issuers = vec![fake.entry()];
    let stage = Stage::knowing(Arc::default(), Arc::default(), issuers, vec![bot]).await;
    let token = signer.token("a", &with(claims(&fake.url), "act", json!({"sub": "bot"})));
    let verified = stage.shows(&token).await.unwrap();
    assert_eq!((&*verified.subject, verified.actor.as_deref()), ("corp:ann", Some("bot")));

    stage.identity.disable_principal(&root(), "bot").await.unwrap();
    assert_eq!(stage.refuses(&token).await, "the principal of the token is disabled");
    assert_eq!(stage.identity.standing(&verified), Standing::Ended);
    let own = signer.token("a", &claims(&fake.url));
    assert_eq!(&*stage.shows(&own).await.unwrap().subject, "corp:ann", "its subject is not");
    stage.identity.enable_principal(&root(), "bot").await.unwrap();
    assert!(stage.shows(&token).await.is_ok());
}

#[tokio::test]
async fn a_token_belongs_to_the_principal_that_lists_its_identity() {
    let signer = Signer::ed25519();
    let fake = Fake::open(&[signer.listed("a")]).await;
    let identities = [Arc::<str>::from("corp:ann")].into_iter().collect();
    let everywhere = Grants::one(RealmPattern::parse("*").unwrap(), Roles::of(&[Role::Approver]));
    let lee = Principal { identities, ..Principal::new("lee", everywhere) };
    let issuers = vec![fake.entry()];
    let stage = Stage::knowing(Arc::default(), Arc::default(), issuers, vec![lee]).await;
    let token = signer.token("a", &claims(&fake.url));
    let verified = stage.shows(&token).await.unwrap();
    assert_eq!(&*verified.subject, "lee");
    // Its own roles and those that the token claims, where tokens of this issuer may enter.
    let both = Roles::of(&[Role::Approver, Role::Member]);
    let default = RealmPattern::parse("default").unwrap();
    assert_eq!(*verified.realms, Grants::one(default, both.clone()));
    assert_eq!((stage.roles("lee"), stage.roles("corp:ann")), (both.clone(), both));
    assert_eq!(&*stage.who(&token).unwrap().subject, "lee", "known at once");

    stage.identity.disable_principal(&root(), "lee").await.unwrap();
    assert_eq!(stage.refuses(&token).await, "the principal of the token is disabled");
    assert_eq!(stage.identity.standing(&verified), Standing::Ended);
    stage.identity.take_principals(Vec::new());
    let alone = stage.shows(&token).await.unwrap();
    assert_eq!(&*alone.subject, "corp:ann", "without its principal it is itself");
    assert_eq!(stage.roles("corp:ann"), Roles::of(&[Role::Member]));
}
