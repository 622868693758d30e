//! Access tokens of issuers, and what attackers make of them.

use super::NOW;
use super::signing::{Signer, claims, unsigned, with};
use crate::issuer::jwt::{Flaw, Jwt, Rules, TokenClaims};
use crate::issuer::key_set::KeySet;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kernel::identity::grants::RealmPattern;
use kernel::identity::issuer::{Algorithm, IssuerEntry, TokenType};
use kernel::identity::roles::{Role, Roles};
use kernel::values::caller::{Scope, Scopes};
use ring::hmac;
use serde_json::{Value, json};

const ISSUER: &str = "https://login.test/t";
const MCP: &str = "https://wp.test/mcp";

fn entry() -> IssuerEntry {
    IssuerEntry {
        audience: Some("waypost".to_owned()),
        roles: [("staff".to_owned(), Roles::of(&[Role::Member]))].into(),
        realms: vec![RealmPattern::parse("default").unwrap()],
        ..IssuerEntry::new("corp", ISSUER)
    }
}

fn set(keys: &[Value]) -> KeySet {
    KeySet::parse(&json!({"keys": keys})).unwrap()
}

fn checked(token: &str, keys: &KeySet, entry: &IssuerEntry) -> Result<TokenClaims, Flaw> {
    let rules = Rules { entry, mcp: Some(MCP), now: NOW };
    Ok(Jwt::parse(token)?.verify(Some(keys), &rules)?.1)
}

/// What a token with these claims says, or why it is refused.
fn said(claims: &Value, entry: &IssuerEntry) -> Result<TokenClaims, Flaw> {
    let signer = Signer::ed25519();
    checked(&signer.token("a", claims), &set(&[signer.listed("a")]), entry)
}

fn why(claims: &Value, entry: &IssuerEntry) -> &'static str {
    match said(claims, entry) {
        Err(Flaw::Wrong(why)) => why,
        other => panic!("{other:?}"),
    }
}

fn scopes(scopes: &[Scope]) -> Scopes {
    scopes.iter().copied().collect()
}

#[test]
fn a_valid_token_of_each_algorithm_is_accepted() {
    let signers = [("EdDSA", Signer::ed25519()), ("ES256", Signer::p256())];
    let rsa = [("RS256", Signer::rsa()), ("PS256", Signer::rsa())];
    for (algorithm, signer) in signers.iter().chain(&rsa) {
        let header = json!({"alg": algorithm, "typ": "at+jwt", "kid": "a"});
        let token = signer.token_with(&header, &claims(ISSUER));
        let said = checked(&token, &set(&[signer.listed("a")]), &entry()).unwrap();
        assert_eq!(&*said.subject, "corp:ann", "{algorithm}");
        assert_eq!(said.scopes, scopes(&[Scope::Read, Scope::Use]));
        assert_eq!(said.realms.roles_in(&"default".into()), Roles::of(&[Role::Member]));
        assert_eq!((said.issued, said.until), (NOW, NOW.plus_ms(3_630_000)));
        assert!(!said.is_for_mcp_only && said.actor.is_none());
        for at in [5, token.len() / 2, token.len() - 1] {
            let mut changed = token.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert!(checked(&changed, &set(&[signer.listed("a")]), &entry()).is_err(), "{at}");
        }
    }
}

#[test]
fn a_token_cannot_choose_its_verification_algorithm() {
    let signer = Signer::rsa();
    let keys = set(&[signer.listed("a")]);
    for name in ["none", "None", "HS256", "RS384", "RS512", "ES384", "", "rs256"] {
        let header = json!({"alg": name, "typ": "at+jwt", "kid": "a"});
        for token in [
            signer.token_with(&header, &claims(ISSUER)),
            format!("{}.", unsigned(&header, &claims(ISSUER))),
        ] {
            assert!(matches!(checked(&token, &keys, &entry()), Err(Flaw::Wrong(_))), "{name}");
        }
    }
    // The public key as the secret of a symmetric algorithm.
    let public = signer.listed("a");
    let modulus = URL_SAFE_NO_PAD.decode(public["n"].as_str().unwrap()).unwrap();
    let secret = hmac::Key::new(hmac::HMAC_SHA256, &modulus);
    let signed = unsigned(&json!({"alg": "HS256", "typ": "at+jwt", "kid": "a"}), &claims(ISSUER));
    let mac = URL_SAFE_NO_PAD.encode(hmac::sign(&secret, signed.as_bytes()));
    assert!(checked(&format!("{signed}.{mac}"), &keys, &entry()).is_err());
    // One that the entry does not list.
    let only = IssuerEntry { algorithms: vec![Algorithm::Es256], ..entry() };
    assert!(checked(&signer.token("a", &claims(ISSUER)), &keys, &only).is_err());
}

#[test]
fn a_key_verifies_only_with_its_own_algorithm() {
    let rsa = Signer::rsa();
    let point = Signer::p256();
    let keys = set(&[rsa.listed("r"), point.listed("p")]);
    let header = |alg: &str, kid: &str| json!({"alg": alg, "typ": "at+jwt", "kid": kid});
    for (alg, kid) in [("RS256", "p"), ("ES256", "r"), ("EdDSA", "p")] {
        let token = rsa.token_with(&header(alg, kid), &claims(ISSUER));
        assert!(matches!(checked(&token, &keys, &entry()), Err(Flaw::Unfit(_))), "{alg} {kid}");
    }
    // An ECDSA signature in the form of certificates.
    let signed = unsigned(&header("ES256", "p"), &claims(ISSUER));
    let der = URL_SAFE_NO_PAD.encode(point.sign("DER", signed.as_bytes()));
    assert!(checked(&format!("{signed}.{der}"), &keys, &entry()).is_err());
    // A key that is for the other padding, or for encryption.
    for (name, value) in [("alg", json!("PS256")), ("use", json!("enc"))] {
        let mut listed = rsa.listed("r");
        listed[name] = value;
        let token = rsa.token("r", &claims(ISSUER));
        assert!(checked(&token, &set(&[listed]), &entry()).is_err(), "{name}");
    }
    // A short RSA key is no key at all.
    let short =
        json!({"kty": "RSA", "kid": "r", "n": URL_SAFE_NO_PAD.encode([255; 128]), "e": "AQAB"});
    let token = rsa.token("r", &claims(ISSUER));
    assert_eq!(checked(&token, &set(&[short]), &entry()), Err(Flaw::UnknownKey));
}

#[test]
fn the_key_comes_from_the_set_by_its_id_alone() {
    let own = Signer::ed25519();
    let foreign = Signer::ed25519();
    let keys = set(&[own.listed("a")]);
    let token = foreign.token("b", &claims(ISSUER));
    assert_eq!(checked(&token, &keys, &entry()), Err(Flaw::UnknownKey), "of another issuer");
    let token = foreign.token("a", &claims(ISSUER));
    assert!(matches!(checked(&token, &keys, &entry()), Err(Flaw::Unfit(_))), "the same id");
    let injected = json!({
        "alg": "EdDSA",
        "typ": "at+jwt",
        "kid": "b",
        "jwk": foreign.listed("b"),
        "jku": "https://evil.test/keys",
        "x5u": "https://evil.test/certificate",
        "x5c": ["AAAA"],
    });
    let token = foreign.token_with(&injected, &claims(ISSUER));
    assert_eq!(checked(&token, &keys, &entry()), Err(Flaw::UnknownKey));
    let unnamed = json!({"alg": "EdDSA", "typ": "at+jwt"});
    let token = own.token_with(&unnamed, &claims(ISSUER));
    assert!(checked(&token, &keys, &entry()).is_ok(), "the set has one key");
    let two = set(&[own.listed("a"), foreign.listed("b")]);
    assert!(matches!(checked(&token, &two, &entry()), Err(Flaw::Unfit(_))));
    for kid in [json!(7), json!(["a"]), json!({})] {
        let header = json!({"alg": "EdDSA", "typ": "at+jwt", "kid": kid});
        assert!(checked(&own.token_with(&header, &claims(ISSUER)), &keys, &entry()).is_err());
    }
}

#[test]
fn critical_header_parameters_are_refused() {
    let signer = Signer::ed25519();
    let keys = set(&[signer.listed("a")]);
    for crit in [json!(["exp"]), json!([]), json!(null), json!("b64")] {
        let header = json!({"alg": "EdDSA", "typ": "at+jwt", "kid": "a", "crit": crit});
        let token = signer.token_with(&header, &claims(ISSUER));
        assert!(matches!(checked(&token, &keys, &entry()), Err(Flaw::Wrong(_))), "{crit}");
    }
    let twice = r#"{"alg":"EdDSA","alg":"EdDSA","typ":"at+jwt","kid":"a"}"#;
    let token = signer.token("a", &claims(ISSUER));
    let rest = token.split_once('.').unwrap().1;
    assert!(Jwt::parse(&format!("{}.{rest}", URL_SAFE_NO_PAD.encode(twice))).is_err());
}

#[test]
fn a_token_has_three_parts_and_a_size() {
    let good = Signer::ed25519().token("a", &claims(ISSUER));
    for wrong in ["", ".", "..", "a.b", &format!("{good}."), &format!(".{good}"), "a.b.c.d.e"] {
        assert!(Jwt::parse(wrong).is_err(), "{wrong}");
    }
    assert!(Jwt::parse(&format!("{good}=")).is_err(), "padding");
    let long = with(claims(ISSUER), "extra", json!("x".repeat(16 * 1024)));
    let token = Signer::ed25519().token("a", &long);
    assert_eq!(Jwt::parse(&token).err(), Some("the token is longer than 16 KiB"));
    let deep = format!("{}1{}", "[".repeat(2_000), "]".repeat(2_000));
    let header = good.split('.').next().unwrap();
    let rest = URL_SAFE_NO_PAD.encode(deep);
    assert!(Jwt::parse(&format!("{header}.{rest}.AAAA")).is_err());
}

#[test]
fn issuer_and_audience_are_compared_exactly() {
    let good = || claims(ISSUER);
    for issuer in ["https://login.test/t/", "https://LOGIN.test/t", "https://login.test", ""] {
        assert_eq!(
            why(&with(good(), "iss", json!(issuer)), &entry()),
            "the token is of another issuer"
        );
    }
    for issuer in [json!(null), json!([ISSUER]), json!(7)] {
        assert!(said(&with(good(), "iss", issuer), &entry()).is_err());
    }
    let refused =
        [json!("other"), json!("Waypost"), json!(["a", "b"]), json!([]), json!(null), json!(7)];
    for audience in refused {
        let why = why(&with(good(), "aud", audience), &entry());
        assert_eq!(why, "the token is for another audience");
    }
    let several = said(&with(good(), "aud", json!(["other", "waypost", MCP])), &entry()).unwrap();
    assert!(!several.is_for_mcp_only);
    assert!(said(&with(good(), "aud", json!(MCP)), &entry()).unwrap().is_for_mcp_only);
    let unnamed = IssuerEntry { audience: None, ..entry() };
    assert!(said(&good(), &unnamed).is_err(), "only for /mcp");
}

#[test]
fn a_token_is_valid_only_between_nbf_and_exp() {
    let now = NOW.0 / 1_000;
    let at = |issued: i64, expires: i64| {
        let issued = with(claims(ISSUER), "iat", json!(issued));
        said(&with(issued, "exp", json!(expires)), &entry()).map(|said| said.until)
    };
    assert!(at(now - 3_600, now - 29).is_ok(), "clocks differ");
    assert!(at(now - 3_600, now - 30).is_err(), "expired");
    assert!(at(now + 30, now + 60).is_ok());
    assert!(at(now + 31, now + 60).is_err(), "issued in the future");
    assert!(at(now, now + 86_400).is_ok());
    assert!(at(now, now + 86_401).is_err(), "far future");
    assert!(at(now, i64::MAX).is_err() && at(i64::MIN, now + 60).is_err());
    assert!(at(now + 10, now + 5).is_err() && at(now, now).is_err());
    let without = |name: &str| said(&with(claims(ISSUER), name, json!(null)), &entry());
    assert!(without("exp").is_err() && without("iat").is_err());
    for wrong in [json!("1800000000"), json!(true), json!(-1), json!(1e300)] {
        assert!(said(&with(claims(ISSUER), "exp", wrong.clone()), &entry()).is_err(), "{wrong}");
    }
    let fraction = json!(now as f64 + 60.5);
    assert!(said(&with(claims(ISSUER), "exp", fraction), &entry()).is_ok());
    let begins = |moment: Value| said(&with(claims(ISSUER), "nbf", moment), &entry());
    assert!(begins(json!(now + 30)).is_ok() && begins(json!(now + 31)).is_err());
    assert!(begins(json!("soon")).is_err());
}

#[test]
fn an_id_token_is_no_access_token() {
    let signer = Signer::ed25519();
    let keys = set(&[signer.listed("a")]);
    let typed = |kind: Value, claims: &Value, entry: &IssuerEntry| {
        let header = with(json!({"alg": "EdDSA", "kid": "a"}), "typ", kind);
        checked(&signer.token_with(&header, claims), &keys, entry).is_ok()
    };
    let plain = IssuerEntry { types: vec![TokenType::Access, TokenType::Plain], ..entry() };
    for kind in ["at+jwt", "AT+JWT", "application/at+jwt", "Application/At+Jwt"] {
        assert!(typed(json!(kind), &claims(ISSUER), &entry()), "{kind}");
    }
    for kind in [json!("JWT"), json!(""), json!(null), json!("id+jwt"), json!("at+jwt2")] {
        assert!(!typed(kind.clone(), &claims(ISSUER), &entry()), "{kind}");
    }
    assert!(typed(json!("JWT"), &claims(ISSUER), &plain));
    for name in ["nonce", "at_hash", "c_hash"] {
        let claims = with(claims(ISSUER), name, json!("x"));
        assert!(!typed(json!("JWT"), &claims, &plain), "{name}");
    }
}

#[test]
fn claims_are_mapped_by_the_issuer_entry() {
    let roles = |claims: &Value, entry: &IssuerEntry| {
        said(claims, entry).unwrap().realms.roles_in(&"default".into())
    };
    let member = Roles::of(&[Role::Member]);
    assert_eq!(roles(&with(claims(ISSUER), "roles", json!("staff")), &entry()), member);
    for nothing in [json!(["admin", "member"]), json!(null), json!(7), json!([["staff"]])] {
        assert!(roles(&with(claims(ISSUER), "roles", nothing), &entry()).is_empty());
    }
    let nested = IssuerEntry { roles_claim: "realm_access.roles".to_owned(), ..entry() };
    let in_it = with(claims(ISSUER), "realm_access", json!({"roles": ["staff", "other"]}));
    assert_eq!(roles(&in_it, &nested), member);
    let named = IssuerEntry { roles_claim: "https://wp.test/roles".to_owned(), ..entry() };
    let in_it = with(claims(ISSUER), "https://wp.test/roles", json!(["staff"]));
    assert_eq!(roles(&in_it, &named), member);
}

#[test]
fn a_claimed_realm_must_match_the_issuer_entry() {
    let entry = IssuerEntry {
        realms: vec![RealmPattern::parse("acme-*").unwrap()],
        realm_claim: Some("tenant".to_owned()),
        ..entry()
    };
    let realms = |tenant: Value| {
        let said = said(&with(claims(ISSUER), "tenant", tenant), &entry).ok()?;
        Some(said.realms.0.keys().map(ToString::to_string).collect::<Vec<_>>())
    };
    assert_eq!(realms(json!("acme-eu")), Some(vec!["acme-eu".to_owned()]));
    assert_eq!(realms(json!(["acme-eu", "other", "*"])), Some(vec!["acme-eu".to_owned()]));
    for tenant in ["*", "acme-*", "other", "acme", "ACME-eu", ""] {
        assert_eq!(realms(json!(tenant)), None, "{tenant}");
    }
    assert_eq!(realms(json!(null)), None);
}

#[test]
fn scopes_come_from_the_token_or_the_entry() {
    let of = |claims: &Value, entry: &IssuerEntry| said(claims, entry).unwrap().scopes;
    let scope = |value: Value| with(claims(ISSUER), "scope", value);
    assert_eq!(of(&scope(json!("openid")), &entry()), Scopes::default(), "none are none");
    assert_eq!(
        of(&scope(json!(["read", "answer"])), &entry()),
        scopes(&[Scope::Read, Scope::Answer])
    );
    let scp = with(scope(json!(null)), "scp", json!("use admin"));
    assert_eq!(of(&scp, &entry()), scopes(&[Scope::Use, Scope::Admin]));
    let prefixed = IssuerEntry { scope_prefix: "wp:".to_owned(), ..entry() };
    assert_eq!(of(&scope(json!("admin wp:read")), &prefixed), scopes(&[Scope::Read]));
    let default = IssuerEntry { default_scopes: Some(scopes(&[Scope::Read])), ..entry() };
    assert_eq!(of(&scope(json!("openid")), &default), scopes(&[Scope::Read]));
    assert_eq!(of(&scope(json!("use")), &default), scopes(&[Scope::Use]));
}

#[test]
fn subject_and_actor_are_prefixed_with_the_issuer() {
    let said_by = |name: &str, value: Value| said(&with(claims(ISSUER), name, value), &entry());
    let acting = said_by("act", json!({"sub": "bot", "act": {"sub": "x"}})).unwrap();
    assert_eq!((&*acting.subject, acting.actor.as_deref()), ("corp:ann", Some("corp:bot")));
    for actor in [json!({}), json!("bot"), json!({"sub": 7}), json!([])] {
        assert!(said_by("act", actor).is_err());
    }
    let odd = said_by("sub", json!("corp:ann")).unwrap();
    assert_eq!(&*odd.subject, "corp:corp:ann");
    for subject in [json!(null), json!(""), json!(7), json!("a\nb"), json!("x".repeat(256))] {
        assert!(said_by("sub", subject).is_err());
    }
}
