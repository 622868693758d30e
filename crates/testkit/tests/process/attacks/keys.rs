//! Keys and their tokens that are revoked or replaced, while they are used.

use super::site::{Asking, HOME, Key, LIMIT, Site};
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, TryRecvError};
use std::thread;
use std::time::Instant;

/// Keys that are used all the time, and how often keys are rotated meanwhile.
const WORKERS: usize = 4;
const ROUNDS: usize = 24;
/// Longer than the test takes.
const OVERLAP_MS: u64 = 600_000;

#[test]
fn what_was_revoked_is_not_replayed() {
    let _turn = crate::my_turn();
    let mut site = Site::start("");
    let key = site.key("member");
    let form = form_of(&key);
    let exchange = Asking { method: "POST", path: "/oauth/token", body: Some(&form) };
    let given = site.caller(HOME).send(&[], exchange);
    assert_eq!(given.status, 200, "{given:?}");
    let token = given.json()["access_token"].as_str().unwrap().to_owned();
    for credential in [&key.text, &token] {
        assert_eq!(site.caller(HOME).who(credential).status, 200);
    }
    site.revoke(&key);
    for place in ["at once", "after a restart"] {
        let mut thief = site.caller("198.51.100.1");
        for credential in [&key.text, &token] {
            let answer = thief.who(credential);
            assert_eq!(answer.status, 401, "{place}: {answer:?}");
        }
        let answer = thief.send(&[], exchange);
        assert_eq!(answer.status, 401, "{place}: {answer:?}");
        site = site.restarted();
    }
    site.end(&[key.text, token]);
}

#[test]
fn keys_are_rotated_and_revoked_under_load() {
    let _turn = crate::my_turn();
    let site = Site::start("");
    let doomed = site.key("member");
    let (is_revoked, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
    let asked: usize = thread::scope(|scope| {
        let (site, doomed, is_revoked, is_over) = (&site, &doomed, &is_revoked, &is_over);
        let begin = |_| {
            let key = site.key("member");
            let (next, texts) = mpsc::sync_channel(0);
            let first = key.clone();
            (Used { key, next }, scope.spawn(move || use_on(site, first, &texts)))
        };
        let (mut used, workers): (Vec<Used>, Vec<_>) = (0..WORKERS).map(begin).unzip();
        scope.spawn(move || use_until_refused(site, doomed, is_revoked, is_over));
        let mut replaced = site.key("member");
        for round in 0..ROUNDS {
            used[round % WORKERS].rotate(site);
            let after = site.rotated(&replaced, 0);
            let before = mem::replace(&mut replaced, after);
            let from = format!("10.0.0.{}", round + 1);
            assert_eq!(site.caller(&from).who(&before.text).status, 401, "without an overlap");
            assert_eq!(site.caller(&from).who(&replaced.text).status, 200);
            if round == ROUNDS / 2 {
                site.revoke(doomed);
                is_revoked.store(true, Ordering::SeqCst);
            }
        }
        is_over.store(true, Ordering::SeqCst);
        drop(used);
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    });
    assert_eq!(site.caller("10.0.1.1").who(&doomed.text).status, 401);
    crate::tell(&format!("attacks: {asked} requests with keys beside {} rotations", 2 * ROUNDS));
    site.end(&[doomed.text]);
}

/// A key that someone uses all the time.
struct Used {
    key: Key,
    /// Gives them its next text; they take it between two requests.
    next: SyncSender<Key>,
}

impl Used {
    /// Replaces its text: what is under way with the old one is served, too.
    fn rotate(&mut self, site: &Site) {
        self.key = site.rotated(&self.key, OVERLAP_MS);
        self.next.send(self.key.clone()).unwrap();
    }
}

/// Uses a key until no one can give another text of it; how often that was.
fn use_on(site: &Site, mut key: Key, texts: &Receiver<Key>) -> usize {
    let (mut caller, mut asked) = (site.caller(HOME), 0);
    loop {
        match texts.try_recv() {
            Ok(next) => key = next,
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => return asked,
        }
        let answer = caller.who(&key.text);
        assert_eq!(answer.status, 200, "{answer:?}");
        asked += 1;
    }
}

/// Uses a key that will be revoked: what is sent once that is acknowledged is refused.
fn use_until_refused(site: &Site, doomed: &Key, is_revoked: &AtomicBool, is_over: &AtomicBool) {
    let (mut caller, begun) = (site.caller("198.51.100.1"), Instant::now());
    while !is_over.load(Ordering::SeqCst) && begun.elapsed() < LIMIT {
        let was_revoked = is_revoked.load(Ordering::SeqCst);
        let answer = caller.who(&doomed.text);
        // After many failures of one address it is 429.
        let fits = match was_revoked {
            true => matches!(answer.status, 401 | 429),
            false => matches!(answer.status, 200 | 401 | 429),
        };
        assert!(fits, "revoked: {was_revoked}: {answer:?}");
    }
}

/// The form with which a key gets a token.
fn form_of(key: &Key) -> String {
    let Key { id, text } = key;
    format!("grant_type=client_credentials&client_id={id}&client_secret={text}")
}
