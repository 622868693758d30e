//! An issuer replaces its signing key while its tokens are used: who has a good token is served all
//! the time, and the tokens of the key that is gone are worth nothing any more.

use super::site::{HOME, LIMIT, Site, entry};
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use testkit::harness::wait_for;
use testkit::servers::issuer::{Issuer, Manner, Rotation, header};

/// How many use tokens and keys all the time, and how long each pauses between two rounds.
const WORKERS: usize = 3;
const PAUSE: Duration = Duration::from_millis(20);
/// How often it is looked whether the server knows the keys that the issuer lists.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The product asks an issuer for its keys at most this often.
const ASKS_EVERY_S: u64 = 30;
/// So long it may take until it knows them, on a busy machine.
const KNOWN_WITHIN: Duration = Duration::from_secs(ASKS_EVERY_S + 90);
/// How long work goes on when all is decided.
const AFTERWARDS: Duration = Duration::from_secs(2);
/// Who works stops at the latest then.
const WORK_LIMIT: Duration = Duration::from_secs(300);

/// What is settled: who works looks at it before a request, and at a removal after its answer.
#[derive(Default)]
struct Course {
    /// A token of the next key was accepted.
    next_is_known: AtomicBool,
    /// The issuer is about to list the first key no more.
    first_is_removed: AtomicBool,
    /// A token of the first key was refused.
    first_is_refused: AtomicBool,
    is_over: AtomicBool,
}

/// Ends the work, also where the test fails.
struct EndWork<'a>(&'a Course);

impl Drop for EndWork<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::SeqCst);
    }
}

#[test]
fn an_issuer_replaces_its_key_under_load() {
    let _turn = crate::my_turn();
    let corp = Issuer::start(Manner::Serves);
    let site = Site::start(&entry("corp", &corp));
    wait_for("the keys of the issuer to be read", LIMIT, || (corp.asked() > 0).then_some(()));
    let (begun, course) = (Instant::now(), Course::default());
    let (known, refused, served) = thread::scope(|scope| {
        let (site, corp, course) = (&site, &corp, &course);
        let begin = |number: usize| scope.spawn(move || work(site, corp, course, number));
        let workers: Vec<_> = (0..WORKERS).map(begin).collect();
        let ending = EndWork(course);
        let (known, refused) = rotated(site, corp, course);
        thread::sleep(AFTERWARDS);
        drop(ending);
        let served: usize = workers.into_iter().map(|worker| worker.join().unwrap()).sum();
        (known, refused, served)
    });
    let most = 2 + begun.elapsed().as_secs() / ASKS_EVERY_S;
    assert!(corp.asked() as u64 <= most, "its keys were asked for {} times", corp.asked());
    crate::tell(&format!(
        "attacks: an issuer replaced its key beside {served} requests: the next one was known \
         after {} ms, the first one refused after {} ms",
        known.as_millis(),
        refused.as_millis()
    ));
    site.end(&[corp.token(&corp.claims("ann")), corp.next_token(&corp.claims("ann"))]);
}

/// Replaces the key: both are listed until the next one is known, then it alone. How long each took
/// to be known.
fn rotated(site: &Site, corp: &Issuer, course: &Course) -> (Duration, Duration) {
    let mut looks = 0;
    // Each from an address of its own: how many failures one may have is another test's question.
    let mut look = |token: &str| {
        looks += 1;
        let from = format!("10.0.{}.{}", looks / 200, looks % 200 + 1);
        site.caller(&from).who(token).status
    };
    corp.rotate(Rotation::Both);
    let known = until("a token of the next key to be accepted", || {
        look(&corp.next_token(&corp.claims("ann"))) == 200
    });
    course.next_is_known.store(true, Ordering::SeqCst);

    course.first_is_removed.store(true, Ordering::SeqCst);
    corp.rotate(Rotation::After);
    let mut unlisted = header("EdDSA");
    unlisted["kid"] = json!("c");
    let refused = until("a token of the first key to be refused", || {
        // A key that is not known is what makes the server ask again.
        let status = look(&corp.signed(&unlisted, &corp.claims("ann")));
        assert_eq!(status, 401, "a token of a key that is listed nowhere");
        look(&corp.token(&corp.claims("ann"))) == 401
    });
    course.first_is_refused.store(true, Ordering::SeqCst);
    (known, refused)
}

/// How long it took until something was so.
fn until(what: &str, mut is_so: impl FnMut() -> bool) -> Duration {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < KNOWN_WITHIN, "waited {KNOWN_WITHIN:?} in vain for {what}");
        thread::sleep(LOOK_EVERY);
    }
    begun.elapsed()
}

/// Uses tokens of both keys and a key of the server, all the time; how often it was served.
fn work(site: &Site, corp: &Issuer, course: &Course, number: usize) -> usize {
    let (subject, key) = (format!("worker-{number}"), site.key("member").text);
    let mut home = site.caller(HOME);
    // What is refused in the end does not count against what is good.
    let mut leaving = site.caller(&format!("198.51.100.{}", number + 1));
    let (begun, mut served) = (Instant::now(), 0);
    while !course.is_over.load(Ordering::SeqCst) && begun.elapsed() < WORK_LIMIT {
        let next_is_known = course.next_is_known.load(Ordering::SeqCst);
        let first_is_refused = course.first_is_refused.load(Ordering::SeqCst);
        let claims = corp.claims(&subject);
        let first = leaving.who(&corp.token(&claims));
        let first_is_removed = course.first_is_removed.load(Ordering::SeqCst);
        // After many failures of one address it is 429.
        let fits = match first.status {
            200 => !first_is_refused,
            401 | 429 => first_is_removed,
            _ => false,
        };
        assert!(fits, "removed: {first_is_removed}, refused: {first_is_refused}: {first:?}");
        let next = next_is_known.then(|| corp.next_token(&claims));
        for credential in next.iter().chain([&key]) {
            let answer = home.who(credential);
            assert_eq!(answer.status, 200, "a good credential: {answer:?}");
            served += 1;
        }
        thread::sleep(PAUSE);
    }
    served
}
