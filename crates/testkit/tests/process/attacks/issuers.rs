//! Issuers that hang or lie, and one that is to be asked for ever new keys.

use super::site::{Caller, HOME, Site, entry};
use serde_json::json;
use std::thread;
use std::time::{Duration, Instant};
use testkit::servers::issuer::{Issuer, Manner, header, with_secret};

/// An answer takes a few milliseconds; a busy machine may need much longer.
const PROMPT: Duration = Duration::from_secs(60);
/// The product asks an issuer for its keys at most this often.
const PAUSE_S: u64 = 30;
const FLOODERS: usize = 4;
/// How many tokens each of them sends.
const EACH: usize = 250;
/// How often others are served before, for comparison.
const ROUNDS_BEFORE: usize = 150;
/// How much longer the slowest of a hundred should take beside the flood at most.
const RATIO_GOAL: f64 = 2.0;
/// How long it may take on a machine that does other things too: less than the pause for which
/// those would wait who waited for the keys.
const P99_MAX: Duration = Duration::from_secs(PAUSE_S - 5);

#[test]
fn issuers_that_hang_or_lie_harm_no_one_else() {
    let _turn = crate::my_turn();
    let manners = [Manner::Serves, Manner::Hangs, Manner::Lies, Manner::ListsASecret];
    let [corp, hangs, lies, secret] = manners.map(Issuer::start);
    let issuers = [("corp", &corp), ("hangs", &hangs), ("lies", &lies), ("secret", &secret)];
    let site = Site::start(&issuers.map(|(name, issuer)| entry(name, issuer)).concat());
    let good = corp.token(&corp.claims("ann"));
    let mut ann = site.caller(HOME);
    assert_eq!(ann.who(&good).status, 200);

    let waiting = hangs.token(&hangs.claims("ann"));
    thread::scope(|scope| {
        let waits = scope.spawn(|| site.caller("198.51.100.1").who(&waiting));
        loop {
            check_served(&mut ann, &good);
            if waits.is_finished() {
                break;
            }
        }
        let answer = waits.join().unwrap();
        assert_eq!(answer.status, 401, "{answer:?}");
    });

    let mut attacker = site.caller("198.51.100.2");
    for (why, token) in [
        ("its document is another's", lies.token(&lies.claims("ann"))),
        ("it lists a secret", with_secret(secret.public_key(), &secret.claims("ann"))),
        ("it lists no such key", secret.token(&secret.claims("ann"))),
    ] {
        let answer = attacker.who(&token);
        assert_eq!(answer.status, 401, "{why}: {answer:?}");
    }
    assert_eq!(lies.asked(), 0, "the keys of an issuer that says it is another");
    check_served(&mut ann, &good);
    site.end(&[good, waiting]);
}

#[test]
fn a_flood_of_unknown_key_ids_delays_no_one() {
    let _turn = crate::my_turn();
    let corp = Issuer::start(Manner::Serves);
    let site = Site::start(&entry("corp", &corp));
    let (good, key) = (corp.token(&corp.claims("ann")), site.key("member"));
    let mut ann = site.caller(HOME);
    assert_eq!(ann.who(&good).status, 200);
    let begun = Instant::now();
    // One with a known token, with a key, and with a token that was not seen before.
    let mut round = |subject: String| {
        let fresh = corp.token(&corp.claims(&subject));
        [&good, &key.text, &fresh].map(|credential| check_served(&mut ann, credential))
    };
    round("first".to_owned());
    let before = (0..ROUNDS_BEFORE).flat_map(|number| round(format!("before-{number}")));
    let before: Vec<Duration> = before.collect();
    let beside = thread::scope(|scope| {
        let (site, corp) = (&site, &corp);
        let floods: Vec<_> =
            (0..FLOODERS).map(|number| scope.spawn(move || flood(site, corp, number))).collect();
        let mut beside = Vec::new();
        loop {
            beside.extend(round(format!("beside-{}", beside.len())));
            if floods.iter().all(|flood| flood.is_finished()) {
                break;
            }
        }
        floods.into_iter().for_each(|flood| flood.join().unwrap());
        beside
    });
    let most = 2 + begun.elapsed().as_secs() / PAUSE_S;
    assert!(corp.asked() as u64 <= most, "its keys were asked for {} times", corp.asked());
    check_not_delayed(before, beside);
    site.end(&[good, key.text]);
}

/// Prints how long requests took before and beside the flood. The goal of twice as long holds for a
/// machine that does nothing else, and is read from the line: what else a machine does may begin
/// with the flood. Only a server that makes others wait for the keys is found here.
fn check_not_delayed(before: Vec<Duration>, beside: Vec<Duration>) {
    let line = format!("{} requests before, {} beside", before.len(), beside.len());
    let (before, beside) = (p99(before), p99(beside));
    let line = format!(
        "attacks: {line} {} unknown key ids: p99 {:.2} ms and {:.2} ms, ratio {:.2}, \
         goal {RATIO_GOAL}",
        FLOODERS * EACH,
        before.as_secs_f64() * 1_000.0,
        beside.as_secs_f64() * 1_000.0,
        beside.as_secs_f64() / before.as_secs_f64(),
    );
    crate::tell(&line);
    assert!(beside <= P99_MAX, "others waited for the flood: {line}");
}

fn p99(mut took: Vec<Duration>) -> Duration {
    took.sort_unstable();
    took[took.len() * 99 / 100]
}

/// Tokens that are good but for their key, each with another id and from another address.
fn flood(site: &Site, corp: &Issuer, number: usize) {
    let mut attacker = site.caller(HOME);
    let claims = corp.claims("ann");
    for each in 0..EACH {
        let mut header = header("EdDSA");
        header["kid"] = json!(format!("x-{number}-{each}"));
        let from = format!("10.{number}.{}.{}", each / 200, each % 200 + 1);
        let answer = attacker.at(&from).who(&corp.signed(&header, &claims));
        assert_eq!(answer.status, 401, "{answer:?}");
    }
}

/// How long it took to serve someone with a good credential, which must not be long.
fn check_served(caller: &mut Caller, credential: &str) -> Duration {
    let begun = Instant::now();
    let answer = caller.who(credential);
    let took = begun.elapsed();
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(took < PROMPT, "waited {took:?} for an answer");
    took
}
