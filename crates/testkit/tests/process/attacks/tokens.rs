//! Tokens that are forged, of another issuer, for another audience, at another time, or of another
//! kind.

use super::site::{Asking, HOME, Site, WHOAMI, entry};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use testkit::http::Answer;
use testkit::servers::issuer::{Issuer, Manner, header, unsigned, with_secret};

const HOUR_S: u64 = 3_600;

/// One door of each kind.
const DOORS: [Asking<'static>; 3] = [
    Asking { method: "GET", path: WHOAMI, body: None },
    Asking {
        method: "POST",
        path: "/mcp",
        body: Some(r#"{"jsonrpc": "2.0", "id": 1, "method": "ping"}"#),
    },
    Asking {
        method: "POST",
        path: "/rpc",
        body: Some(r#"{"jsonrpc": "2.0", "id": 1, "method": "math.add", "params": {}}"#),
    },
];

/// A token that must be refused, and why.
struct Forged {
    why: &'static str,
    token: String,
}

#[test]
fn forged_tokens_open_no_door() {
    let _turn = crate::my_turn();
    let (corp, other) = (Issuer::start(Manner::Serves), Issuer::start(Manner::Serves));
    let site = Site::start(&entry("corp", &corp));
    let mut ann = site.caller(HOME);
    let good = corp.token(&corp.claims("ann"));
    let who = ann.who(&good);
    assert_eq!((who.status, &who.json()["subject"]), (200, &json!("corp:ann")), "{who:?}");
    let mut all = unsigned_ones(&corp);
    all.extend(misplaced_ones(&corp, &other));
    all.extend(misshaped_ones(&corp, &other));
    let mut details = BTreeSet::new();
    for (number, Forged { why, token }) in all.iter().enumerate() {
        // From an address of its own: how many failures one may have is another test's question.
        let mut attacker = site.caller(&format!("198.51.100.{}", number + 1));
        for door in DOORS {
            let answer = attacker.ask(token, door);
            check_refused(why, door, &answer);
            if door.path == WHOAMI {
                details.insert(answer.json()["detail"].to_string());
            }
        }
        assert_eq!(ann.who(&good).status, 200, "after: {why}");
    }
    assert_eq!(details.len(), 1, "a refusal tells one flaw from another: {details:?}");
    let tokens: Vec<String> = all.into_iter().map(|forged| forged.token).chain([good]).collect();
    site.end(&tokens);
}

fn check_refused(why: &str, door: Asking<'_>, answer: &Answer) {
    let place = format!("{why}, at {}: {answer:?}", door.path);
    assert_eq!(answer.status, 401, "{place}");
    let challenge = answer.header("www-authenticate").unwrap_or_default();
    assert!(challenge.starts_with("Bearer "), "{place}");
    assert!(challenge.contains("error=\"invalid_token\""), "{place}");
}

/// No signature, or one that anyone with the public key can make.
fn unsigned_ones(corp: &Issuer) -> Vec<Forged> {
    let claims = corp.claims("ann");
    let good = corp.token(&claims);
    let mut all = Vec::new();
    for algorithm in ["none", "None", "NONE", ""] {
        let bare = format!("{}.", unsigned(&header(algorithm), &claims));
        all.push(Forged { why: "no signature", token: bare });
        let signed = corp.signed(&header(algorithm), &claims);
        all.push(Forged { why: "an algorithm that is none", token: signed });
    }
    let listed = corp.listed().to_string();
    for secret in [corp.public_key(), listed.as_bytes()] {
        let token = with_secret(secret, &claims);
        all.push(Forged { why: "the public key as a secret", token });
    }
    let (_, signature) = good.rsplit_once('.').unwrap();
    let others = unsigned(&header("EdDSA"), &with(&claims, "sub", json!("bob")));
    let token = format!("{others}.{signature}");
    all.push(Forged { why: "the signature of other claims", token });
    let token = good[..good.len() - 4].to_owned();
    all.push(Forged { why: "a signature that is cut", token });
    all
}

/// Signed, and yet not for us, not of ours, or not for now.
fn misplaced_ones(corp: &Issuer, other: &Issuer) -> Vec<Forged> {
    let claims = corp.claims("ann");
    let now = claims["iat"].as_u64().unwrap();
    let of = |name: &str, value: Value| corp.token(&with(&claims, name, value));
    let between = |issued: u64, expires: u64| {
        corp.token(&with(&with(&claims, "iat", json!(issued)), "exp", json!(expires)))
    };
    [
        ("another audience", of("aud", json!("other"))),
        ("several audiences", of("aud", json!(["other", "Waypost"]))),
        ("no audience", of("aud", Value::Null)),
        ("an issuer that is not ours", other.token(&other.claims("ann"))),
        ("the name of our issuer", other.token(&claims)),
        ("the name of another issuer", corp.token(&other.claims("ann"))),
        ("expired", between(now - 2 * HOUR_S, now - HOUR_S)),
        ("not good yet", between(now + HOUR_S, now + 2 * HOUR_S)),
        ("good for two days", between(now, now + 48 * HOUR_S)),
        ("good for ever", of("exp", Value::Null)),
        ("of no one", of("sub", Value::Null)),
    ]
    .map(|(why, token)| Forged { why, token })
    .into()
}

/// Of another kind, or with a header that wants to decide how it is checked.
fn misshaped_ones(corp: &Issuer, other: &Issuer) -> Vec<Forged> {
    let claims = corp.claims("ann");
    let proof = with(&with(&claims, "nonce", json!("n")), "at_hash", json!("h"));
    let headed = |name: &str, value: Value| with(&header("EdDSA"), name, value);
    let mut brought = headed("jwk", other.listed());
    brought["jku"] = json!(format!("{}/keys", other.url));
    let unknown = with(&brought, "kid", json!("b"));
    [
        ("an id token", corp.signed(&headed("typ", json!("JWT")), &proof)),
        ("a token of no type", corp.signed(&headed("typ", Value::Null), &claims)),
        ("an extension", corp.signed(&headed("crit", json!(["b64"])), &claims)),
        ("a key that it brings along", other.signed(&brought, &claims)),
        ("a key of another id that it brings along", other.signed(&unknown, &claims)),
        ("a key id that is no text", corp.signed(&headed("kid", json!(["a"])), &claims)),
    ]
    .map(|(why, token)| Forged { why, token })
    .into()
}

/// The same with another value of this member; null takes it out.
fn with(value: &Value, name: &str, member: Value) -> Value {
    let mut changed = value.clone();
    let members = changed.as_object_mut().unwrap();
    match member {
        Value::Null => drop(members.remove(name)),
        member => drop(members.insert(name.to_owned(), member)),
    }
    changed
}
