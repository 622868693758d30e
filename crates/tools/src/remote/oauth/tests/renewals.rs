//! Tokens that end, are refused, or are renewed by many at once; and crashes in between.

use super::stage::{Scene, called, done, upstream};
use crate::remote::config::Secret;
use crate::remote::oauth::{Account, MemoryVault, Vault};
use crate::remote::{Remote, Upstream, UpstreamState};
use futures::FutureExt;
use futures::future::join_all;
use kernel::call::Given;
use kernel::fault::Fault;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

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
async fn many_who_need_another_token_renew_it_once() {
    for is_refused in [false, true] {
        let (scene, remote) = hourly().await;
        match is_refused {
            true => scene.rule(|rules| rules.good.clear()),
            false => scene.clock.set(HOUR_MS),
        }
        let calls = join_all((0..20).map(|_| called(&remote, Given::default()))).await;
        assert!(calls.iter().all(|called| *called == done()), "{calls:?}");
        assert_eq!(renewals(&scene), 1);
    }
}

#[tokio::test]
async fn many_whose_token_nobody_renews_ask_for_it_once() {
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
async fn a_clock_that_is_set_back_keeps_no_token_from_being_renewed() {
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
async fn a_stop_waits_until_what_is_renewed_is_kept() {
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
    let kept = scene.vault.read("token-far").unwrap().unwrap();
    assert!(kept.expose().contains("refresh-2"));
}

#[tokio::test]
async fn what_is_renewed_is_kept_before_it_is_used() {
    let (scene, remote) = hourly().await;
    scene.clock.set(HOUR_MS);
    scene.site.hold(Some("/mcp"));
    let far = upstream(&remote);
    let asked = scene.site.asked("/mcp").len();
    let (well, ()) = tokio::join!(is_well(far), async {
        scene.site.was_asked("/mcp", asked + 1).await;
        let kept = scene.vault.read("token-far").unwrap().unwrap();
        assert!(kept.expose().contains("refresh-2"));
        scene.site.hold(None);
    });
    assert!(well);
}

#[tokio::test]
async fn a_renewal_goes_on_when_whoever_wanted_it_has_gone() {
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
async fn a_token_that_is_still_good_is_used_while_nobody_renews_it() {
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
async fn a_token_that_is_refused_right_after_its_renewal_is_not_renewed_for_ever() {
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
    let before = scene.vault.read("token-far").unwrap().unwrap();
    scene.clock.set(HOUR_MS);
    assert!(is_well(upstream(&remote)).await);
    remote.stop().await;
    drop(remote);
    // As if we had died before it was written: the server has renewed it, and we do not know.
    scene.vault.write("token-far", &before).unwrap();
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

/// A vault that cannot write any more.
#[derive(Default)]
struct Full {
    vault: MemoryVault,
    is_full: Mutex<bool>,
}

impl Vault for Full {
    fn read(&self, key: &str) -> Result<Option<Secret>, Fault> {
        self.vault.read(key)
    }

    fn write(&self, key: &str, value: &Secret) -> Result<(), Fault> {
        match *self.is_full.lock().unwrap() {
            true => Err(Fault::new("Full", "the disk is full")),
            false => self.vault.write(key, value),
        }
    }

    fn remove(&self, key: &str) -> Result<(), Fault> {
        self.vault.remove(key)
    }
}

#[tokio::test]
async fn a_token_that_cannot_be_kept_is_used_all_the_same() {
    let vault = Arc::new(Full::default());
    let mut scene = Scene::new().await;
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
