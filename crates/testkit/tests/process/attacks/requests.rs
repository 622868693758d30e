//! Credentials where none belong, several of them, odd headers, and addresses that are made up.

use super::site::{Asking, HOME, Site, WHOAMI, altered};
use testkit::http::Answer;

/// More than are answered in a minute.
const FLOOD: usize = 40;
const ATTACKER: &str = "198.51.100.7";
const VICTIM: &str = "192.0.2.9";

const WHO: Asking<'static> = Asking { method: "GET", path: WHOAMI, body: None };

#[test]
fn a_credential_counts_in_one_header_once() {
    let _turn = crate::my_turn();
    let site = Site::start("");
    let key = site.key("viewer").text;
    let (bearer, lower) = (format!("Bearer {key}"), format!("bearer \t{key} "));
    let (joined, cookie) = (format!("{bearer}, {bearer}"), format!("access_token={key}"));
    let long = format!("Bearer {}", "a".repeat(17 * 1024));
    let (shown, plain) = (("authorization", bearer.as_str()), ("x-api-key", key.as_str()));
    let mut caller = site.caller(HOME);
    for (headers, status) in [
        (vec![shown], 200),
        (vec![plain], 200),
        (vec![("AUTHORIZATION", lower.as_str())], 200),
        (vec![shown, shown], 400),
        (vec![plain, plain], 400),
        (vec![shown, plain], 400),
        (vec![shown, ("x-api-key", "")], 400),
        (vec![("authorization", key.as_str())], 400),
        (vec![("authorization", "Bearer")], 400),
        (vec![("authorization", "Basic d3A6eA==")], 400),
        (vec![("authorization", "Bearer caf\u{e9}")], 400),
        (vec![("authorization", long.as_str())], 400),
        (vec![("authorization", joined.as_str())], 401),
        (vec![("proxy-authorization", bearer.as_str())], 401),
        (vec![("cookie", cookie.as_str())], 401),
        (vec![], 401),
    ] {
        let answer = caller.send(&headers, WHO);
        assert_eq!(answer.status, status, "{headers:?}: {answer:?}");
        assert!(!answer.body.contains(&key), "{headers:?}: {answer:?}");
    }
    for name in ["access_token", "token", "api_key", "apikey", "key", "authorization"] {
        let path = format!("{WHOAMI}?{name}={key}");
        let answer = caller.send(&[], Asking { path: &path, ..WHO });
        assert_eq!(answer.status, 401, "{name}: {answer:?}");
        assert!(!answer.body.contains(&key), "{name}: {answer:?}");
    }
    site.end(&[key]);
}

#[test]
fn what_names_a_realm_or_a_host_twice_is_refused() {
    let _turn = crate::my_turn();
    let site = Site::start("");
    let key = site.key("viewer").text;
    let mut caller = site.caller(HOME);
    let mut asked = |headers: &[(&str, &str)], path: &str| {
        let headers = [&[("x-api-key", key.as_str())][..], headers].concat();
        told(&caller.send(&headers, Asking { path, ..WHO }))
    };
    let (own, other) = (("x-realm", "default"), ("x-realm", "other"));
    assert_eq!(asked(&[own], WHOAMI), "200");
    for (headers, path, expected) in [
        (vec![own, own], WHOAMI, "400 two_realms"),
        (vec![own, other], WHOAMI, "400 two_realms"),
        (vec![own], "/api/v1/whoami?realm=other", "400 two_realms"),
        (vec![], "/api/v1/whoami?realm=default&realm=default", "400 two_realms"),
        (vec![other], WHOAMI, "403 realm_not_allowed"),
        (vec![("x-realm", "*")], WHOAMI, "403 realm_not_allowed"),
        (vec![("x-realm", "default, default")], WHOAMI, "403 realm_not_allowed"),
        (vec![("x-realm", "")], WHOAMI, "403 realm_not_allowed"),
        (vec![("host", "evil.test")], WHOAMI, "403 host_not_allowed"),
        (vec![("origin", "https://evil.test")], WHOAMI, "403 origin_not_allowed"),
    ] {
        assert_eq!(asked(&headers, path), expected, "{headers:?} {path}");
    }
    site.end(&[key]);
}

#[test]
fn a_forged_address_hides_no_one_and_blames_no_one() {
    let _turn = crate::my_turn();
    let site = Site::start("");
    let key = site.key("viewer").text;
    let wrong = altered(&key);
    let mut attacker = site.caller(ATTACKER);
    let mut last = 0;
    for number in 0..FLOOD {
        // What the caller says of itself, and behind it what the proxy saw.
        let from = format!("10.1.2.{number}, {VICTIM}, {ATTACKER}");
        last = attacker.at(&from).who(&wrong).status;
        if last == 429 {
            break;
        }
    }
    assert_eq!(last, 429, "an address that is made up each time hides the caller's own");
    let bearer = format!("Bearer {wrong}");
    for forged in [
        ("x-real-ip", "10.9.9.9"),
        ("forwarded", "for=10.9.9.9"),
        ("x-client-ip", "10.9.9.9"),
        ("true-client-ip", "10.9.9.9"),
    ] {
        let answer = attacker.send(&[forged, ("authorization", bearer.as_str())], WHO);
        assert_eq!(answer.status, 429, "{forged:?}: {answer:?}");
    }
    // The caller's own line, and behind it the one of the proxy.
    let lines = [("x-forwarded-for", ATTACKER), ("authorization", bearer.as_str())];
    assert_eq!(attacker.at("10.9.9.9").send(&lines, WHO).status, 429);
    assert_eq!(attacker.at(ATTACKER).who(&key).status, 200, "a good key always passes");
    assert_eq!(site.caller(VICTIM).who(&wrong).status, 401, "the victim has failed once");
    site.end(&[key, wrong]);
}

/// The status of an answer, with its stable word if it is a refusal.
fn told(answer: &Answer) -> String {
    match answer.json()["code"].as_str() {
        Some(word) => format!("{} {word}", answer.status),
        None => answer.status.to_string(),
    }
}
