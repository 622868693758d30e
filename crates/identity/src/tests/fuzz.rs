//! Hostile credentials out of a seed: headers, tokens and key sets, made of right ones. Nothing
//! panics, and nothing is taken that nobody signed. How to run it for longer is in
//! `docs/reference/fuzzing.md`.

use super::NOW;
use super::signing::{Signer, claims};
use crate::credential::{Malformed, SENT_BYTES_MAX, SentCredential};
use crate::issuer::jwt::{Flaw, Jwt, Rules, TokenClaims};
use crate::issuer::key_set::KeySet;
use crate::token::{Claims, Tokens};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kernel::identity::grants::RealmPattern;
use kernel::identity::issuer::IssuerEntry;
use kernel::identity::key::{KeyId, KeyText, TOKEN_PREFIX};
use kernel::identity::roles::{Role, Roles};
use kernel::values::ids::Millis;
use outbound::seal::Keyring;
use serde_json::{Value, json};
use testkit::fuzz::hunt::Hunt;
use testkit::fuzz::mangle::{mangle, scratch};
use testkit::sim::rng::Rng;

/// How many inputs the test command looks at.
const HEADERS: u64 = 20_000;
const FORGED: u64 = 5_000;
const SIGNED: u64 = 1_500;
const KEY_SETS: u64 = 5_000;
const SEALED: u64 = 10_000;

const ISSUER: &str = "https://login.test/t";
const AUDIENCE: &str = "waypost";
const KEY_TEXT: &str = "wp_aaaaaaaaaa_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

/// What headers are made of.
const PIECES: &[&[u8]] = &[
    b"Bearer ",
    b"bearer\t",
    b"Bearer",
    b"Basic ",
    b"DPoP ",
    KEY_TEXT.as_bytes(),
    b"wpt_",
    b"wp_",
    b" ",
    b"\t",
    b",",
    b"=",
    b"\"",
    b"\0",
    b"\r\n",
    b"\x7f",
    b"\xff",
    "\u{e9}".as_bytes(),
    b"a",
    b".",
];

/// An issuer with one key, and a good token of it. The key is always the same, and so are its
/// signatures.
struct Signed {
    signer: Signer,
    listed: Value,
    keys: KeySet,
    entry: IssuerEntry,
    token: String,
}

impl Signed {
    fn new() -> Self {
        let signer = Signer::rsa();
        let listed = json!({"keys": [signer.listed("a")]});
        let keys = KeySet::parse(&listed).unwrap();
        let entry = IssuerEntry {
            audience: Some(AUDIENCE.to_owned()),
            roles: [("staff".to_owned(), Roles::of(&[Role::Member]))].into(),
            realms: vec![RealmPattern::parse("default").unwrap()],
            ..IssuerEntry::new("corp", ISSUER)
        };
        let token = signer.token("a", &claims(ISSUER));
        Self { signer, listed, keys, entry, token }
    }

    fn checked(&self, token: &str, keys: &KeySet) -> Result<TokenClaims, Flaw> {
        let rules = Rules { entry: &self.entry, mcp: None, now: NOW };
        Ok(Jwt::parse(token)?.verify(Some(keys), &rules)?.1)
    }

    /// The parts of the good token, with one of the first two mangled as JSON.
    fn mangled(&self, rng: &mut Rng) -> [String; 3] {
        let mut parts = self.token.split('.').map(str::to_owned);
        let mut parts: [String; 3] = std::array::from_fn(|_| parts.next().unwrap_or_default());
        let [place, other] = if rng.chance(50) { [0, 1] } else { [1, 0] };
        let decoded = |part: &String| URL_SAFE_NO_PAD.decode(part).unwrap_or_default();
        let plain = decoded(&parts[place]);
        let donor = decoded(&parts[other]);
        parts[place] = URL_SAFE_NO_PAD.encode(mangle(rng, &plain, &donor));
        parts
    }

    /// A token that is not signed anew.
    fn forged(&self, rng: &mut Rng) -> String {
        if rng.chance(60) {
            return self.mangled(rng).join(".");
        }
        let mut bytes = self.token.clone().into_bytes();
        scratch(rng, &mut bytes, self.token.as_bytes());
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// A token that its issuer signed, whatever is in it.
    fn signed(&self, rng: &mut Rng) -> String {
        if rng.chance(5) {
            return self.token.clone();
        }
        let [header, payload, _] = self.mangled(rng);
        let signed = format!("{header}.{payload}");
        let signature = self.signer.sign("RS256", signed.as_bytes());
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

#[test]
fn a_hostile_header_is_one_credential_or_refused() {
    let make = |rng: &mut Rng| {
        let mut value = Vec::new();
        for _ in 0..rng.below(6) {
            let piece = rng.pick(PIECES).copied().unwrap_or_default();
            let times = if rng.chance(1) { SENT_BYTES_MAX } else { 1 };
            value.extend(piece.repeat(times));
        }
        value
    };
    let mut taken = 0_u64;
    let looked = Hunt::new("credential header", HEADERS).run(make, |value: &Vec<u8>| {
        let value = value.as_slice();
        let twice = SentCredential::of(&[value], &[value]);
        if !matches!(twice, Err(Malformed::Several)) {
            return Err("two credentials are one".to_owned());
        }
        for sent in [SentCredential::of(&[value], &[]), SentCredential::of(&[], &[value])] {
            let Ok(sent) = sent else { continue };
            let sent = sent.ok_or("a header is none")?;
            let text = sent.text();
            let is_plain = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
            let fits = !text.is_empty() && text.len() <= SENT_BYTES_MAX;
            if !fits || !text.bytes().all(is_plain) || text.trim() != text {
                return Err(format!("{text:?} is a credential"));
            }
            if format!("{sent:?}").contains(text) && text.len() > 8 {
                return Err("a credential is shown".to_owned());
            }
            let key = KeyText::parse(text);
            if key.is_some_and(|key| key.text.expose() != text) {
                return Err(format!("{text:?} became another key"));
            }
            taken += 1;
        }
        Ok(())
    });
    assert!(looked < 1_000 || taken > looked / 50, "{taken} of {looked} were taken");
}

#[test]
fn a_token_that_nobody_signed_is_refused() {
    let signed = Signed::new();
    assert!(signed.checked(&signed.token, &signed.keys).is_ok(), "the good one is refused");
    Hunt::new("forged token", FORGED).run(
        |rng: &mut Rng| signed.forged(rng),
        |text: &String| match signed.checked(text, &signed.keys) {
            Ok(_) if *text != signed.token => Err("it is taken".to_owned()),
            _ => Ok(()),
        },
    );
}

#[test]
fn an_accepted_signed_token_has_our_issuer_audience_and_a_valid_time() {
    let signed = Signed::new();
    let mut taken = 0_u64;
    let looked = Hunt::new("signed token", SIGNED).run(
        |rng: &mut Rng| signed.signed(rng),
        |text: &String| {
            let Ok(said) = signed.checked(text, &signed.keys) else { return Ok(()) };
            taken += 1;
            let payload = text.split('.').nth(1).unwrap_or_default();
            let plain = URL_SAFE_NO_PAD.decode(payload).map_err(|error| error.to_string())?;
            let claims: Value =
                serde_json::from_slice(&plain).map_err(|error| error.to_string())?;
            let is_for_us = match &claims["aud"] {
                Value::Array(all) => all.contains(&json!(AUDIENCE)),
                one => *one == AUDIENCE,
            };
            if claims["iss"] != ISSUER || !is_for_us || said.until <= NOW {
                return Err(format!("{claims} is taken: {said:?}"));
            }
            if !said.subject.starts_with("corp:") {
                return Err(format!("it speaks for `{}`", said.subject));
            }
            Ok(())
        },
    );
    assert!(looked < 500 || taken > 0, "of {looked} tokens none was taken");
}

#[test]
fn a_hostile_key_set_verifies_only_with_its_listed_keys() {
    let signed = Signed::new();
    let listed = signed.listed.to_string().into_bytes();
    let modulus = signed.listed["keys"][0]["n"].clone();
    let other = json!({"keys": [Signer::rsa().listed("b"), {"kty": "oct", "k": "c2VjcmV0"}]});
    let other = other.to_string().into_bytes();
    let mut read = 0_u64;
    let looked = Hunt::new("key set", KEY_SETS).run(
        |rng: &mut Rng| mangle(rng, &listed, &other),
        |bytes: &Vec<u8>| {
            let Ok(document) = serde_json::from_slice::<Value>(bytes) else { return Ok(()) };
            let Ok(keys) = KeySet::parse(&document) else { return Ok(()) };
            read += 1;
            let all = document["keys"].as_array().cloned().unwrap_or_default();
            let is_there = all.iter().any(|key| key["n"] == modulus);
            match signed.checked(&signed.token, &keys).is_ok() && !is_there {
                true => Err("a token is checked with a key that is not listed".to_owned()),
                false => Ok(()),
            }
        },
    );
    assert!(looked < 1_000 || read > looked / 20, "{read} of {looked} were read");
}

#[test]
fn a_sealed_token_opens_only_unmodified() {
    let tokens = Tokens::new(Keyring::new([7; 32]));
    let key = KeyId("abcdefghij".into());
    let claims = Claims { key, sha256: "00".repeat(32), scopes: None, expires: Millis(7) };
    let text = tokens.seal(&claims, 1).unwrap();
    let good = text.expose().strip_prefix(TOKEN_PREFIX).unwrap().to_owned();
    assert!(tokens.open(&good).is_some(), "the good one is refused");
    let make = |rng: &mut Rng| {
        let mut bytes = good.clone().into_bytes();
        for _ in 0..=rng.below(3) {
            scratch(rng, &mut bytes, good.as_bytes());
        }
        String::from_utf8_lossy(&bytes).into_owned()
    };
    Hunt::new("sealed token", SEALED).run(make, |text: &String| match tokens.open(text) {
        Some(_) if *text != good => Err("it is opened".to_owned()),
        _ => Ok(()),
    });
}
