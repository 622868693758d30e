//! Tokens that end, are refused, or are renewed by many at once; and crashes in between.

use super::stage::{Scene, Still, called, done, upstream};
use crate::config::Secret;
use crate::oauth::{Account, Pass};
use crate::{Remote, RemoteParts, Upstream, UpstreamState};
use futures::FutureExt;
use futures::future::{BoxFuture, join_all, ready};
use kernel::contracts::{Clock, Vault, VaultCondition, VaultEntry, VaultFuture, VaultLease};
use kernel::tool::call::InputResponses;
use kernel::values::fault::Fault;
use kernel::values::ids::Millis;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;

const HOUR_MS: i64 = 3_600_000;

async fn hourly() -> (Scene, Remote) {
    let scene = Scene::new().await;
    scene.rule(|rules| rules.lasts_s = Some(3_600));
    let remote = scene.ready().await;
    (scene, remote)
}

/// How often a token was renewed.
fn renewals(scene: &Scene) -> usize {
    let is_renewal = |form: &BTreeMap<String, String>| form["grant_type"] == "refresh_token";
    scene.site.asked("/token").iter().map(|asked| asked.form()).filter(is_renewal).count()
}

fn last_bearer(scene: &Scene) -> Option<String> {
    scene.site.asked("/mcp").last().unwrap().bearer().map(str::to_owned)
}

/// The token as it is kept.
async fn kept(scene: &Scene) -> Secret {
    scene.vault.read("token-far").await.unwrap().unwrap().value
}

async fn is_well(far: &Upstream) -> bool {
    far.check().await.is_ok_and(|status| status.state == UpstreamState::Ready)
}

#[tokio::test]
async fn a_token_is_renewed_before_it_ends() {
    let (scene, remote) = hourly().await;
    let far = upstream(&remote);
    scene.clock.set(HOUR_MS - 60_001);
    assert!(is_well(far).await);
    assert_eq!((renewals(&scene), last_bearer(&scene).as_deref()), (0, Some("token-1")));
    scene.clock.set(HOUR_MS - 60_000);
    assert!(is_well(far).await);
    assert_eq!((renewals(&scene), last_bearer(&scene).as_deref()), (1, Some("token-2")));
    let asked = scene.site.asked("/token")[1].form();
    assert_eq!(asked["refresh_token"], "refresh-1");
    assert_eq!(asked["resource"], format!("{}/mcp", scene.site.url));
    // The next renewal is with the next one.
    scene.clock.set(2 * HOUR_MS);
    assert!(is_well(far).await);
    assert_eq!(scene.site.asked("/token")[2].form()["refresh_token"], "refresh-2");
}

#[tokio::test]
async fn concurrent_calls_renew_a_token_once() {
    for is_refused in [false, true] {
        let (scene, remote) = hourly().await;
        match is_refused {
            true => scene.rule(|rules| rules.good.clear()),
            false => scene.clock.set(HOUR_MS),
        }
        let calls = join_all((0..20).map(|_| called(&remote, InputResponses::default()))).await;
        assert!(calls.iter().all(|called| *called == done()), "{calls:?}");
        assert_eq!(renewals(&scene), 1);
    }
}

#[tokio::test]
async fn concurrent_calls_request_a_client_credentials_token_once() {
    let (scene, remote) = hourly().await;
    remote.stop().await;
    let account = Account::new(&scene.config(), &scene.parts()).unwrap();
    scene.rule(|rules| rules.token = Some((503, Value::Null)));
    scene.clock.set(HOUR_MS);
    let passes = join_all((0..20).map(|_| account.pass())).await;
    assert!(passes.iter().all(Result::is_err));
    assert_eq!(renewals(&scene), 1);
}

#[tokio::test]
async fn a_clock_that_is_set_back_does_not_prevent_renewal() {
    let (scene, remote) = hourly().await;
    remote.stop().await;
    let account = Account::new(&scene.config(), &scene.parts()).unwrap();
    scene.rule(|rules| rules.token = Some((503, Value::Null)));
    scene.clock.set(HOUR_MS);
    assert!(account.pass().await.is_err() && account.pass().await.is_err());
    assert_eq!(renewals(&scene), 1, "it is left alone for a while");
    scene.rule(|rules| rules.token = None);
    scene.clock.set(HOUR_MS - 30_000);
    let pass = account.pass().await.unwrap();
    assert_eq!(pass.bearer.unwrap().to_str().unwrap(), "Bearer token-2");
}

#[tokio::test]
async fn a_stop_waits_until_a_renewed_token_is_stored() {
    let (scene, remote) = hourly().await;
    scene.clock.set(HOUR_MS);
    scene.site.hold(Some("/token"));
    let mut checking = Box::pin(upstream(&remote).check());
    tokio::select! {
        _ = &mut checking => panic!("it waits"),
        () = scene.site.was_asked("/token", 2) => {}
    }
    let mut stopping = Box::pin(remote.stop());
    for _ in 0..50 {
        tokio::task::yield_now().await;
        assert!((&mut stopping).now_or_never().is_none(), "a renewal is under way");
    }
    scene.site.hold(None);
    stopping.await;
    assert!(kept(&scene).await.expose().contains("refresh-2"));
}

#[tokio::test]
async fn a_renewed_token_is_stored_before_use() {
    let (scene, remote) = hourly().await;
    scene.clock.set(HOUR_MS);
    scene.site.hold(Some("/mcp"));
    let far = upstream(&remote);
    let asked = scene.site.asked("/mcp").len();
    let (well, ()) = tokio::join!(is_well(far), async {
        scene.site.was_asked("/mcp", asked + 1).await;
        assert!(kept(&scene).await.expose().contains("refresh-2"));
        scene.site.hold(None);
    });
    assert!(well);
}

#[tokio::test]
async fn a_renewal_continues_when_its_caller_has_gone() {
    let (scene, remote) = hourly().await;
    remote.stop().await;
    scene.clock.set(HOUR_MS);
    scene.site.hold(Some("/token"));
    let account = Account::new(&scene.config(), &scene.parts()).unwrap();
    {
        let mut leaving = Box::pin(account.pass());
        tokio::select! {
            _ = &mut leaving => panic!("it waits"),
            () = scene.site.was_asked("/token", 2) => {}
        }
    }
    scene.site.hold(None);
    let pass = account.pass().await.unwrap();
    assert_eq!(pass.bearer.unwrap().to_str().unwrap(), "Bearer token-2");
    assert_eq!(renewals(&scene), 1);
}

#[tokio::test]
async fn a_token_that_is_not_renewed_needs_a_login() {
    let (scene, remote) = hourly().await;
    let far = upstream(&remote);
    scene.clock.set(HOUR_MS);
    scene.rule(|rules| {
        rules.good.clear();
        rules.refresh = None;
    });
    assert_eq!(far.check().await.unwrap_err().name, "UpstreamLogin");
    assert!(far.login_url().is_some());
    assert!(far.check().await.is_err());
    assert_eq!(renewals(&scene), 1, "what is refused for good is not asked for again");
}

#[tokio::test]
async fn a_valid_token_is_used_while_renewal_fails() {
    let (scene, remote) = hourly().await;
    let far = upstream(&remote);
    scene.rule(|rules| rules.token = Some((503, Value::Null)));
    scene.clock.set(HOUR_MS - 30_000);
    assert!(is_well(far).await && is_well(far).await);
    assert_eq!(renewals(&scene), 1, "it is left alone for a while");
    scene.clock.set(HOUR_MS);
    let fault = far.check().await.unwrap_err();
    assert_eq!((fault.name.as_str(), far.login_url()), ("UpstreamUnreachable", None));
    assert!(fault.message.contains("503"), "{fault}");
    let tried = renewals(&scene);
    assert!(far.check().await.is_err());
    assert_eq!(renewals(&scene), tried);
    scene.rule(|rules| rules.token = None);
    scene.clock.set(HOUR_MS + 20_000);
    assert!(is_well(far).await);
}

#[tokio::test]
async fn a_token_refused_right_after_renewal_is_not_renewed_in_a_loop() {
    let (scene, remote) = hourly().await;
    let far = upstream(&remote);
    scene.rule(|rules| {
        rules.good.clear();
        let given = json!({"access_token": "bad", "refresh_token": "refresh-9"});
        rules.token = Some((200, given));
    });
    assert_eq!(far.check().await.unwrap_err().name, "UpstreamLogin");
    assert_eq!(renewals(&scene), 1);
}

#[tokio::test]
async fn a_crash_between_renewal_and_writing_costs_a_login() {
    let (scene, remote) = hourly().await;
    let before = kept(&scene).await;
    scene.clock.set(HOUR_MS);
    assert!(is_well(upstream(&remote)).await);
    remote.stop().await;
    drop(remote);
    // As if we had died before it was written: the server has renewed it, and we do not know.
    scene.vault.write("token-far", &before, VaultCondition::Any).await.unwrap();
    scene.rule(|rules| rules.good.clear());
    let (remote, page) = scene.wanting().await;
    assert_eq!(renewals(&scene), 2);
    remote.finish_login(page.back()).await.unwrap();
    assert!(is_well(upstream(&remote)).await);
}

#[tokio::test]
async fn a_token_that_another_process_renewed_is_taken_over() {
    let (scene, remote) = hourly().await;
    scene.clock.set(HOUR_MS);
    let other = Account::new(&scene.config(), &scene.parts()).unwrap();
    other.pass().await.unwrap();
    assert!(is_well(upstream(&remote)).await);
    assert_eq!((renewals(&scene), last_bearer(&scene).as_deref()), (1, Some("token-2")));
}

/// A clock that stands still, on which waits for a moment last until the test lets them continue.
struct Looking {
    still: Arc<Still>,
    waits: watch::Sender<usize>,
    goes_on: watch::Sender<bool>,
}

impl Looking {
    /// A longer wait is no wait for a moment.
    const MOMENT_MS: u64 = 200;

    fn new(still: Arc<Still>) -> Arc<Self> {
        let waits = watch::Sender::new(0);
        let goes_on = watch::Sender::new(false);
        Arc::new(Self { still, waits, goes_on })
    }

    /// Waits until somebody waits for a moment.
    async fn is_waited_for(&self) {
        self.waits.subscribe().wait_for(|waits| *waits > 0).await.unwrap();
    }

    fn go_on(&self) {
        self.goes_on.send_replace(true);
    }
}

impl Clock for Looking {
    fn now(&self) -> Millis {
        self.still.now()
    }

    fn elapsed(&self) -> Duration {
        self.still.elapsed()
    }

    fn sleep_until(&self, then: Millis) -> BoxFuture<'static, ()> {
        if then > self.now().plus_ms(Self::MOMENT_MS) {
            return self.still.sleep_until(then);
        }
        self.waits.send_modify(|waits| *waits += 1);
        let mut goes_on = self.goes_on.subscribe();
        Box::pin(async move {
            goes_on.wait_for(|goes_on| *goes_on).await.unwrap();
        })
    }
}

/// Another who shares our vault, and knows the token that is kept now.
async fn sharing(scene: &Scene, clock: &Arc<Looking>) -> Arc<Account> {
    let parts = RemoteParts { clock: clock.clone(), ..scene.parts() };
    let account = Account::new(&scene.config(), &parts).unwrap();
    account.load().await;
    account
}

fn shown(pass: Pass) -> Option<String> {
    pass.bearer.map(|bearer| bearer.to_str().unwrap().to_owned())
}

#[tokio::test]
async fn of_two_processes_on_one_vault_one_renews_the_token() {
    let (scene, remote) = hourly().await;
    remote.stop().await;
    scene.clock.set(HOUR_MS);
    let clock = Looking::new(scene.clock.clone());
    let first = sharing(&scene, &clock).await;
    let second = sharing(&scene, &clock).await;
    scene.site.hold(Some("/token"));
    let mut renewing = Box::pin(first.pass());
    tokio::select! {
        _ = &mut renewing => panic!("it waits"),
        () = scene.site.was_asked("/token", 2) => {}
    }
    let mut looking = Box::pin(second.pass());
    tokio::select! {
        _ = &mut looking => panic!("it waits for the other"),
        () = clock.is_waited_for() => {}
    }
    scene.site.hold(None);
    assert_eq!(shown(renewing.await.unwrap()).as_deref(), Some("Bearer token-2"));
    clock.go_on();
    assert_eq!(shown(looking.await.unwrap()).as_deref(), Some("Bearer token-2"));
    assert_eq!(renewals(&scene), 1);
}

#[tokio::test]
async fn a_process_killed_during_renewal_delays_others_only_briefly() {
    const HOLD_MS: u64 = 5_000;
    let (scene, remote) = hourly().await;
    remote.stop().await;
    scene.clock.set(HOUR_MS);
    let held = scene.vault.hold("token-far", HOLD_MS).await.unwrap();
    let clock = Looking::new(scene.clock.clone());
    let account = sharing(&scene, &clock).await;
    let mut waiting = Box::pin(account.pass());
    tokio::select! {
        _ = &mut waiting => panic!("it waits for the other"),
        () = clock.is_waited_for() => {}
    }
    assert_eq!(renewals(&scene), 0);
    scene.clock.set(HOUR_MS + 5_000);
    clock.go_on();
    assert_eq!(shown(waiting.await.unwrap()).as_deref(), Some("Bearer token-2"));
    assert_eq!(renewals(&scene), 1);
    drop(held);
}

#[tokio::test]
async fn a_token_stored_by_another_process_during_renewal_wins() {
    for is_removed in [false, true] {
        let (scene, remote) = hourly().await;
        remote.stop().await;
        scene.clock.set(HOUR_MS);
        let account = Account::new(&scene.config(), &scene.parts()).unwrap();
        scene.site.hold(Some("/token"));
        let mut renewing = Box::pin(account.pass());
        tokio::select! {
            _ = &mut renewing => panic!("it waits"),
            () = scene.site.was_asked("/token", 2) => {}
        }
        let other = kept(&scene).await.expose().replace("token-1", "token-9");
        match is_removed {
            true => scene.vault.remove("token-far").await.unwrap(),
            false => {
                scene.vault.write("token-far", &other.into(), VaultCondition::Any).await.unwrap();
            }
        }
        scene.site.hold(None);
        let expected = (!is_removed).then_some("Bearer token-9");
        assert_eq!(shown(renewing.await.unwrap()).as_deref(), expected);
        let is_kept = scene.vault.read("token-far").await.unwrap().is_some();
        assert_eq!(is_kept, !is_removed, "whoever logged out stays so");
        let given_back = scene.site.asked("/revoke").len();
        assert_eq!(given_back > 0, is_removed, "a token that nobody uses is given back");
    }
}

/// A vault that cannot write any more, or does not answer.
struct Troubled {
    vault: Arc<dyn Vault>,
    is_full: Mutex<bool>,
    is_away: Mutex<bool>,
}

impl Troubled {
    fn new(vault: Arc<dyn Vault>) -> Arc<Self> {
        Arc::new(Self { vault, is_full: Mutex::default(), is_away: Mutex::default() })
    }
}

impl Vault for Troubled {
    fn read<'a>(&'a self, key: &'a str) -> VaultFuture<'a, Option<VaultEntry>> {
        match *self.is_away.lock().unwrap() {
            true => Box::pin(ready(Err(Fault::new("Away", "it does not answer").into()))),
            false => self.vault.read(key),
        }
    }

    fn write<'a>(
        &'a self,
        key: &'a str,
        value: &'a Secret,
        expected: VaultCondition,
    ) -> VaultFuture<'a, u64> {
        match *self.is_full.lock().unwrap() {
            true => Box::pin(ready(Err(Fault::new("Full", "the disk is full").into()))),
            false => self.vault.write(key, value, expected),
        }
    }

    fn remove<'a>(&'a self, key: &'a str) -> VaultFuture<'a, ()> {
        self.vault.remove(key)
    }

    fn remove_all<'a>(&'a self, under: &'a str) -> VaultFuture<'a, ()> {
        self.vault.remove_all(under)
    }

    fn hold<'a>(&'a self, key: &'a str, ms: u64) -> VaultFuture<'a, Option<VaultLease>> {
        self.vault.hold(key, ms)
    }
}

#[tokio::test]
async fn a_token_that_cannot_be_stored_is_still_used() {
    let mut scene = Scene::new().await;
    let vault = Troubled::new(scene.vault.clone());
    scene.vault = vault.clone();
    scene.rule(|rules| rules.lasts_s = Some(3_600));
    let remote = scene.ready().await;
    *vault.is_full.lock().unwrap() = true;
    scene.clock.set(HOUR_MS);
    assert!(is_well(upstream(&remote)).await);
    assert_eq!(last_bearer(&scene).as_deref(), Some("token-2"));
    // A login that could not be kept is not begun.
    let fault = upstream(&remote).begin_login().await.unwrap_err();
    assert!(fault.message.contains("cannot be kept"), "{fault}");
}

#[tokio::test]
async fn an_unavailable_vault_is_retried() {
    let (mut scene, remote) = hourly().await;
    remote.stop().await;
    let vault = Troubled::new(scene.vault.clone());
    scene.vault = vault.clone();
    let account = Account::new(&scene.config(), &scene.parts()).unwrap();
    *vault.is_away.lock().unwrap() = true;
    assert_eq!(shown(account.pass().await.unwrap()), None);
    *vault.is_away.lock().unwrap() = false;
    assert_eq!(shown(account.pass().await.unwrap()).as_deref(), Some("Bearer token-1"));
}
