//! Cards: which are believed, where they lead, and what happens when they change.

use crate::house::{House, agent, nothing, parts, texts, within};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kernel::values::canonical;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use testkit::servers::a2a::AgentServer;
use upstreams::{
    CardPlace, Keyring, KeysByCard, PinnedKey, RestAuth, Secret, StoredKey, TokenClient,
    UpstreamState,
};

const QUICK: Duration = Duration::from_millis(300);

pub(super) struct Signer {
    pair: EcdsaKeyPair,
    random: SystemRandom,
}

impl Signer {
    pub(super) fn new() -> Self {
        let (random, algorithm) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let made = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, made.as_ref(), &random).unwrap();
        Self { pair, random }
    }

    pub(super) fn key(&self) -> PinnedKey {
        let point = self.pair.public_key().as_ref();
        let coordinate = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let id = Some("key-1".to_owned());
        PinnedKey::new(id, &coordinate(&point[1..33]), &coordinate(&point[33..])).unwrap()
    }

    /// The card with a signature of this key over it.
    pub(super) fn signed(&self, mut card: Value) -> Value {
        let header = json!({"alg": "ES256", "typ": "JOSE", "kid": "key-1"}).to_string();
        let protected = URL_SAFE_NO_PAD.encode(header);
        let payload = URL_SAFE_NO_PAD.encode(canonical::text(&card));
        let input = format!("{protected}.{payload}");
        let signature = self.pair.sign(&self.random, input.as_bytes()).unwrap();
        let signature = URL_SAFE_NO_PAD.encode(signature.as_ref());
        card["signatures"] = json!([{"protected": protected, "signature": signature}]);
        card
    }
}

#[tokio::test]
async fn only_a_card_that_a_pinned_key_signed_is_used() {
    let (server, signer, other) = (AgentServer::start(QUICK), Signer::new(), Signer::new());
    let mut changed = signer.signed(server.card());
    changed["skills"][0]["description"] = json!("Something else.");
    for (card, fits) in [
        (server.card(), false),
        (other.signed(server.card()), false),
        (changed, false),
        (signer.signed(server.card()), true),
    ] {
        server.serve_card(card);
        let mut config = agent(&server.url());
        (config.keys, config.require_signature) = (vec![signer.key()], true);
        let house = House::open(config).await;
        let state = house.remote.upstreams()[0].status().state;
        match fits {
            true => {
                let done = house.follow(1, "tck-complete-task", nothing).await.unwrap();
                assert_eq!(texts(&done), ["done"]);
                assert!(house.remote.upstreams()[0].status().agent.unwrap().is_signed);
            }
            false => {
                assert_eq!(
                    (state, house.fault().0.as_str()),
                    (UpstreamState::Failing, "CardNotTrusted")
                );
                assert!(house.names().is_empty());
            }
        }
    }
}

#[tokio::test]
async fn what_is_not_signed_beside_the_card_does_not_count() {
    let (server, signer) = (AgentServer::start(QUICK), Signer::new());
    let mut card = server.card();
    card["supportedInterfaces"] = json!([{"url": "https://a.test/", "protocolBinding": "GRPC",
        "protocolVersion": "2.0"}]);
    let mut card = signer.signed(card);
    card["protocolVersion"] = json!("0.3.0");
    card["url"] = json!(format!("{}/rpc", server.url()));
    server.serve_card(card);
    let open = House::open(agent(&server.url())).await;
    assert_eq!(open.names().len(), 3);
    let mut config = agent(&server.url());
    (config.keys, config.require_signature) = (vec![signer.key()], true);
    let (name, told) = House::open(config).await.fault();
    assert!(name == "CardUnusable" && told.contains("GRPC"), "{name}: {told}");
}

#[tokio::test]
async fn a_card_leads_nowhere_that_the_operator_did_not_mean() {
    let (server, other) = (AgentServer::start(QUICK), AgentServer::start(QUICK));
    server.serve_card(other.card());
    let (name, told) = House::open(agent(&server.url())).await.fault();
    assert!(name == "AddressNotAllowed" && told.contains("allow_private"), "{name}: {told}");
    let mut config = agent(&server.url());
    config.allow_private = true;
    assert_eq!(House::open(config.clone()).await.names().len(), 3);
    config.auth = Some(RestAuth::Bearer("hunter2-secret".into()));
    let (name, told) = House::open(config.clone()).await.fault();
    assert!(name == "AddressNotAllowed" && told.contains("origin"), "{name}: {told}");
    config.origin = Some(other.url());
    config.allow_private = false;
    assert_eq!(House::open(config).await.names().len(), 3);
    assert!(other.asked().is_empty(), "no one was talked to before it was allowed");
}

#[tokio::test]
async fn a_card_that_changes_changes_the_tools() {
    let server = AgentServer::start(QUICK);
    let house = House::open(agent(&server.url())).await;
    assert_eq!(house.names().len(), 3);
    let facts = || house.remote.upstreams()[0].status().agent.unwrap();
    let first = facts();
    assert_eq!((first.changes, first.is_signed), (0, false));
    assert_eq!(first.address, format!("{}/rpc", server.url()));
    let mut card = server.card();
    card["skills"] = json!([{"id": "sing", "name": "Sing", "description": "", "tags": ["a"]}]);
    server.serve_card(card);
    let changed = house.remote.upstreams()[0].changed();
    within("a check", house.remote.upstreams()[0].check()).await.unwrap();
    assert_eq!(house.names(), ["peer.send", "peer.sing"]);
    assert_ne!(house.remote.upstreams()[0].changed(), changed);
    let same = house.remote.upstreams()[0].changed();
    within("a check", house.remote.upstreams()[0].check()).await.unwrap();
    assert_eq!(house.remote.upstreams()[0].changed(), same, "the same card changes nothing");
    assert_eq!(facts().changes, 1, "a change is told");
    assert_ne!(facts().card, first.card);
}

#[tokio::test]
async fn a_card_that_moves_its_address_takes_nothing_of_ours_along() {
    let (server, other) = (AgentServer::start(QUICK), AgentServer::start(QUICK));
    for has_credentials in [true, false] {
        server.serve_card(server.card());
        let mut config = agent(&server.url());
        // Without the one rule, the other holds.
        config.allow_private = has_credentials;
        if has_credentials {
            config.auth = Some(RestAuth::Bearer("hunter2-secret".into()));
        }
        let house = House::open(config).await;
        assert_eq!(house.names().len(), 3);
        server.serve_card(other.card());
        let checked = within("a check", house.remote.upstreams()[0].check()).await;
        assert_eq!(checked.unwrap_err().name, "AddressNotAllowed");
        let status = house.remote.upstreams()[0].status();
        assert_eq!(status.state, UpstreamState::Failing);
        let facts = status.agent.unwrap();
        assert_eq!((facts.address, facts.changes), (format!("{}/rpc", server.url()), 0));
        // Its tools stay what they were, where they were.
        let before = server.begun();
        let done = house.follow(1, "tck-complete-task", nothing).await.unwrap();
        assert_eq!(texts(&done), ["done"]);
        assert_eq!(server.begun(), before + 1);
    }
    assert!(other.asked().is_empty(), "nobody was talked to where the card led");
}

#[tokio::test]
async fn a_card_that_names_our_own_server_is_not_used() {
    let (server, ourselves) = (AgentServer::start(QUICK), AgentServer::start(QUICK));
    let ours = ourselves.url();
    let parts = parts().apart_from(move |url| url.starts_with(&ours));
    let mut config = agent(&server.url());
    config.allow_private = true;
    let house = House::open_with(config.clone(), parts.kept_at("realm")).await;
    assert_eq!(house.names().len(), 3, "another server is used");
    server.serve_card(ourselves.card());
    let (name, told) = House::open_with(config, parts.kept_at("realm")).await.fault();
    assert!(name == "AddressNotAllowed" && told.contains("this server itself"), "{name}: {told}");
    assert!(ourselves.asked().is_empty());
}

#[tokio::test]
async fn a_card_may_be_a_file() {
    let server = AgentServer::start(QUICK);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("card.json");
    std::fs::write(&path, server.card().to_string()).unwrap();
    let mut config = agent("http://127.0.0.1:1/");
    (config.card, config.allow_private) = (CardPlace::File(path), true);
    let house = House::open(config).await;
    let done = house.follow(1, "tck-complete-task", nothing).await.unwrap();
    assert_eq!(texts(&done), ["done"]);
    assert!(!server.asked().iter().any(|asked| asked.line.contains("card")));
}

#[tokio::test]
async fn what_is_no_card_is_a_fault_that_says_so() {
    let server = AgentServer::start(QUICK);
    for (card, told) in [
        (json!("text"), "no JSON object"),
        (json!({}), "it speaks nothing"),
        (json!({"supportedInterfaces": 1}), "it is no card"),
    ] {
        server.serve_card(card);
        let (name, message) = House::open(agent(&server.url())).await.fault();
        assert_eq!(name, "CardUnusable");
        assert!(message.contains(told), "{message}");
    }
    let (name, message) = House::open(agent(&format!("{}/nowhere", server.url()))).await.fault();
    assert!(name == "CardUnusable" && message.contains("404"), "{name}: {message}");
}

/// The card with a place for tokens.
fn with_tokens(mut card: Value, url: &str) -> Value {
    card["securitySchemes"] = json!({"login": {"oauth2SecurityScheme": {"flows": {
        "clientCredentials": {"tokenUrl": url, "scopes": {"talk": "Talks."}}}}}});
    card
}

#[tokio::test]
async fn a_client_gets_its_token_where_the_card_says_and_nowhere_else() {
    let server = AgentServer::start(QUICK);
    server.serve_card(with_tokens(server.card(), &format!("{}/token", server.url())));
    let config = |secret: &str| {
        let mut config = agent(&server.url());
        let (id, secret) = ("me".to_owned(), Secret::new(secret));
        config.client = Some(TokenClient { id, secret, scopes: Vec::new() });
        config
    };
    let house = House::open(config("right")).await;
    for id in [1, 2] {
        let done = house.follow(id, "tck-complete-task", nothing).await.unwrap();
        assert_eq!(texts(&done), ["done"]);
    }
    let asked = server.asked();
    let shown = asked.iter().filter(|asked| asked.line == "POST /rpc");
    let shown: Vec<_> = shown.map(|asked| asked.header("authorization")).collect();
    assert_eq!(shown, [Some("Bearer token-of-the-agent"); 2]);
    let tokens = asked.iter().filter(|asked| asked.line == "POST /token").count();
    assert_eq!(tokens, 1, "a token is kept");
    let house = House::open(config("wrong")).await;
    let error = house.follow(3, "tck-complete-task", nothing).await.unwrap_err();
    assert_eq!(error.fault.name, "UpstreamUnauthorized", "{error:?}");
    assert!(!error.fault.message.contains("wrong"), "{error:?}");
    // A card cannot send our secret to somebody else.
    server.serve_card(with_tokens(server.card(), "https://evil.example.com/token"));
    let (name, _) = House::open(config("right")).await.fault();
    assert_eq!(name, "AddressNotAllowed");
    let mut plain = server.card();
    plain["securitySchemes"] = json!({});
    server.serve_card(plain);
    let (name, message) = House::open(config("right")).await.fault();
    assert!(name == "CredentialMissing" && message.contains("tokens"), "{name}: {message}");
}

/// The key that the agent was last shown under this name, with a message.
fn shown_key(server: &AgentServer, header: &str) -> Option<String> {
    let asked = server.asked();
    let sent = asked.iter().rfind(|asked| asked.line == "POST /rpc").expect("a message");
    sent.header(header).map(str::to_owned)
}

#[tokio::test]
async fn a_stored_key_goes_where_the_card_says_and_never_into_an_address() {
    let server = AgentServer::start(QUICK);
    let old = json!({"name": "Test agent", "protocolVersion": "0.3.0", "skills": [],
        "url": format!("{}/rpc", server.url())});
    let mut id = 0;
    for (location, told) in
        [("header", ""), ("query", "never put into an address"), ("cookie", "headers only")]
    {
        let key = json!({"location": location, "name": "X-Trips-Key"});
        let old_key = json!({"type": "apiKey", "in": location, "name": "X-Trips-Key"});
        for (mut card, scheme) in
            [(server.card(), json!({"apiKeySecurityScheme": key})), (old.clone(), old_key)]
        {
            card["securitySchemes"] = json!({"key": scheme});
            server.serve_card(card);
            let mut config = agent(&server.url());
            config.key = Some(Secret::new("key-7"));
            let house = House::open(config).await;
            if location == "header" {
                id += 1;
                house.follow(id, "tck-complete-task", nothing).await.unwrap();
                assert_eq!(shown_key(&server, "x-trips-key").as_deref(), Some("key-7"));
                assert_eq!(shown_key(&server, "x-api-key"), None);
            } else {
                let (name, message) = house.fault();
                assert!(name == "CardUnusable" && message.contains(told), "{name}: {message}");
                assert!(house.names().is_empty());
            }
        }
    }
    assert_eq!(server.begun(), 2, "nothing is sent without the key");
}

#[tokio::test]
async fn a_card_names_the_key_that_is_its_own() {
    let (server, other, signer) =
        (AgentServer::start(QUICK), AgentServer::start(QUICK), Signer::new());
    let kept = |key: &str| StoredKey { key: Some(Secret::new(key)), client: None };
    let file = BTreeMap::from([
        ("probe".to_owned(), kept("key-7")),
        ("org/trips".to_owned(), kept("key-8")),
    ]);
    let mut config = agent(&server.url());
    config.allow_private = true;
    config.keys_by_card = Some(KeysByCard { file, keyring: None });
    let naming = |mut card: Value, id: Value, schemes: Value| {
        card["humanReadableId"] = id;
        card["authSchemes"] = schemes;
        card
    };
    let probe = json!([{"scheme": "apiKey", "service_identifier": "Probe"}]);
    let own = json!([{"scheme": "apiKey"}]);
    for (id, (schemes, key)) in (1..).zip([(probe.clone(), "key-7"), (own.clone(), "key-8")]) {
        server.serve_card(naming(server.card(), json!("Org/Trips"), schemes));
        let house = House::open(config.clone()).await;
        house.follow(id, "tck-complete-task", nothing).await.unwrap();
        assert_eq!(shown_key(&server, "x-api-key").as_deref(), Some(key));
    }
    let asked = server.asked();
    let mut cards = asked.iter().filter(|asked| asked.line.starts_with("GET "));
    assert!(cards.all(|asked| asked.header("x-api-key").is_none()), "no key before the card");
    for (id, told) in [(json!("org/unknown"), "`org/unknown`"), (json!(null), "service = ")] {
        server.serve_card(naming(server.card(), id, own.clone()));
        let (name, message) = House::open(config.clone()).await.fault();
        assert!(name == "CredentialMissing" && message.contains(told), "{name}: {message}");
    }
    // Only the server that the card is from gets it.
    server.serve_card(naming(other.card(), json!("org/trips"), probe.clone()));
    assert_eq!(House::open(config.clone()).await.fault().0, "AddressNotAllowed");
    assert!(other.asked().is_empty(), "nobody was talked to where the card led");
    // What is beside the signed members chooses no key.
    server.serve_card(naming(signer.signed(server.card()), json!("org/trips"), probe));
    (config.keys, config.require_signature) = (vec![signer.key()], true);
    let (name, message) = House::open(config).await.fault();
    assert!(name == "CredentialMissing" && message.contains("sign"), "{name}: {message}");
}

/// A command that stands for the one of the platform, and knows one key.
#[cfg(target_os = "linux")]
fn keyring_command(folder: &std::path::Path) -> std::path::PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.join("keyring");
    let known = "lookup service agentvault:probe username probe";
    let script =
        format!("#!/bin/sh\nif [ \"$*\" = '{known}' ]; then printf key-7; else exit 1; fi\n");
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_key_may_be_in_the_keyring() {
    let (server, folder) = (AgentServer::start(QUICK), tempfile::tempdir().unwrap());
    let command = keyring_command(folder.path());
    let config = |id: &str| {
        let mut config = agent(&server.url());
        config.keyring = Some(Keyring { id: id.to_owned(), command: command.clone() });
        config
    };
    let house = House::open(config("probe")).await;
    house.follow(1, "tck-complete-task", nothing).await.unwrap();
    let sent = server.asked().pop().unwrap();
    assert_eq!(sent.header("x-api-key"), Some("key-7"));
    let (name, message) = House::open(config("other")).await.fault();
    assert!(name == "CredentialMissing" && message.contains("`other`"), "{name}: {message}");
    let mut missing = config("probe");
    missing.keyring = Some(Keyring { id: "probe".to_owned(), command: folder.path().join("no") });
    let (name, message) = House::open(missing).await.fault();
    assert!(name == "CredentialMissing" && message.contains("cannot be asked"), "{message}");
}
