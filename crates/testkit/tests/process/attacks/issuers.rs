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
/// How many unknown key ids each of them sends in a round.
const EACH: usize = 500;
/// How often others are served alone and then beside the flood. The middle ratio counts: what else
/// a machine does may begin with one flood, but not with each.
const ROUNDS: usize = 3;
/// How often they are served alone in a round.
const SERVED_ALONE: usize = 150;
/// How much longer the slowest of a hundred may take beside the flood: the goal, which `bench auth`
/// measures, and what is allowed on a machine that does other things too.
const RATIO_GOAL: f64 = 2.0;
const RATIO_MAX: f64 = 10.0 * RATIO_GOAL;

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
    let mut subjects = 0;
    // One with a known token, with a key, and with a token that was not seen before.
    let mut serve = || {
        subjects += 1;
        let fresh = corp.token(&corp.claims(&format!("other-{subjects}")));
        [&good, &key.text, &fresh].map(|credential| check_served(&mut ann, credential))
    };
    serve();
    let mut rounds = Vec::new();
    for round in 0..ROUNDS {
        let alone: Vec<Duration> = (0..SERVED_ALONE).flat_map(|_| serve()).collect();
        let beside = beside_flood(&site, &corp, round, &mut serve);
        rounds.push(Round::of(alone, beside));
    }
    let most = 2 + begun.elapsed().as_secs() / PAUSE_S;
    assert!(corp.asked() as u64 <= most, "its keys were asked for {} times", corp.asked());
    check_not_delayed(rounds);
    site.end(&[good, key.text]);
}

/// How long others take, one after the other, until a flood is over.
fn beside_flood(
    site: &Site,
    corp: &Issuer,
    round: usize,
    mut serve: impl FnMut() -> [Duration; 3],
) -> Vec<Duration> {
    thread::scope(|scope| {
        let floods: Vec<_> = (0..FLOODERS)
            .map(|number| scope.spawn(move || flood(site, corp, round * FLOODERS + number)))
            .collect();
        let mut beside = Vec::new();
        loop {
            beside.extend(serve());
            if floods.iter().all(|flood| flood.is_finished()) {
                break;
            }
        }
        floods.into_iter().for_each(|flood| flood.join().unwrap());
        beside
    })
}

/// How long the slowest of a hundred requests took in a round.
struct Round {
    alone: Duration,
    beside: Duration,
    /// How many were served beside the flood.
    count: usize,
}

impl Round {
    fn of(alone: Vec<Duration>, beside: Vec<Duration>) -> Self {
        let count = beside.len();
        Self { alone: p99(alone), beside: p99(beside), count }
    }

    fn ratio(&self) -> f64 {
        self.beside.as_secs_f64() / self.alone.as_secs_f64()
    }
}

/// Prints how long requests took alone and beside the flood. A server that makes others wait for
/// the keys is found, and one that spends its time on the flood.
fn check_not_delayed(mut rounds: Vec<Round>) {
    for round in &rounds {
        crate::tell(&format!(
            "attacks: {} requests beside {} unknown key ids: p99 {:.2} ms alone and {:.2} ms \
             beside, ratio {:.2}, goal {RATIO_GOAL}",
            round.count,
            FLOODERS * EACH,
            round.alone.as_secs_f64() * 1_000.0,
            round.beside.as_secs_f64() * 1_000.0,
            round.ratio(),
        ));
    }
    rounds.sort_by(|left, right| left.ratio().total_cmp(&right.ratio()));
    let middle = rounds[ROUNDS / 2].ratio();
    assert!(middle <= RATIO_MAX, "others waited for the flood: {middle:.2} > {RATIO_MAX}");
}

fn p99(mut took: Vec<Duration>) -> Duration {
    took.sort_unstable();
    took[took.len() * 99 / 100]
}

/// Tokens that are good but for their key, and keys that no one made by turns, each with another id
/// and from another address.
fn flood(site: &Site, corp: &Issuer, number: usize) {
    let mut attacker = site.caller(HOME);
    let claims = corp.claims("ann");
    for each in 0..EACH {
        let credential = if each % 2 == 0 {
            let mut header = header("EdDSA");
            header["kid"] = json!(format!("x-{number}-{each}"));
            corp.signed(&header, &claims)
        } else {
            unknown_key(number * EACH + each)
        };
        let from = format!("10.{number}.{}.{}", each / 200, each % 200 + 1);
        let answer = attacker.at(&from).who(&credential);
        assert_eq!(answer.status, 401, "{answer:?}");
    }
}

/// A text in the form of a key. An id has letters, and not every digit: those of the number are
/// written as letters.
fn unknown_key(number: usize) -> String {
    let digits = format!("{number:010}");
    let id: String = digits.bytes().map(|digit| char::from(digit - b'0' + b'a')).collect();
    format!("wp_{id}_{}", "a".repeat(52))
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
