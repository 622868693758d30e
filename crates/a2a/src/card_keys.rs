//! The keys that sign agent cards (JWS, ES256): those of the files that `[a2a] signing_keys` names,
//! else those of a file in the data folder, where one is made at the first start. Two keys may be
//! in use: both sign, so that clients which know only the older one still believe the card.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use kernel::values::canonical;
use project::a2a_serving::SIGNING_KEYS_MAX;
use project::atomic_file::{FileAccess, is_exposed, replace_file};
use project::folder::Project;
use quick_cache::sync::Cache;
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use wire::a2a::card::{AgentCard, AgentCardSignature};

/// The file of keys in the data folder.
pub const CARD_KEYS_FILE: &str = "card-keys.pem";
/// How many bytes of a file are read. Real ones have some hundred.
const FILE_BYTES_MAX: u64 = 64 * 1024;
/// How many characters a line of PEM has.
const PEM_COLUMNS: usize = 64;
/// How many bytes a coordinate on P-256 has.
const COORDINATE_BYTES: usize = 32;
/// For how many cards signatures are kept.
const SIGNED_MAX: usize = 64;

/// Why cards cannot be signed.
#[derive(Debug, thiserror::Error)]
pub enum CardKeyError {
    /// A file holds something else.
    #[error(
        "`{}` must hold one or two private keys on P-256, as PKCS#8 in PEM format: {why}; `openssl \
         genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256` makes one",
        .path.display()
    )]
    Unusable {
        /// The file.
        path: PathBuf,
        why: String,
    },
    /// Others may read the file of the data folder.
    #[error("`{}` can be read by others; `chmod 600` it", .0.display())]
    Exposed(PathBuf),
    /// A file cannot be used.
    #[error("cannot use `{}`: {why}; check its rights", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        why: io::Error,
    },
    /// The files of the settings have too many keys together.
    #[error("`[a2a] signing_keys` has {0} keys; leave the new one and the one that it replaces")]
    TooMany(usize),
}

/// The files that the settings of a project name.
pub fn given_keys(project: &Project) -> Vec<PathBuf> {
    project.config.a2a.signing_keys.iter().map(|file| project.folder.join(file)).collect()
}

/// Why a start could not use the keys that are there. A missing one is made then, unless it is
/// named.
pub fn wrong_card_keys(data: &Path, given: &[PathBuf]) -> Option<CardKeyError> {
    present(data, given).err()
}

/// What signs cards.
#[derive(Debug)]
pub struct CardKeys {
    keys: Vec<CardKey>,
    random: SystemRandom,
    /// Signatures by what was signed: strangers may ask for cards as often as they like.
    signed: Cache<String, Vec<AgentCardSignature>>,
}

#[derive(Debug)]
struct CardKey {
    /// Its thumbprint (RFC 7638).
    id: String,
    pair: EcdsaKeyPair,
}

impl CardKeys {
    /// No keys: cards are not signed.
    pub fn none() -> Self {
        Self { keys: Vec::new(), random: SystemRandom::new(), signed: Cache::new(SIGNED_MAX) }
    }

    /// The keys of these files; without files those of the data folder, which must be ours alone.
    pub fn open(data: &Path, given: &[PathBuf]) -> Result<Self, CardKeyError> {
        let keys = match present(data, given)? {
            Some(keys) => keys,
            None => vec![make(data)?],
        };
        Ok(Self { keys, ..Self::none() })
    }

    pub fn ids(&self) -> Vec<&str> {
        self.keys.iter().map(|key| key.id.as_str()).collect()
    }

    /// The public keys, as a key set (RFC 7517).
    pub fn key_set(&self) -> Value {
        let keys: Vec<Value> = self.keys.iter().map(CardKey::public).collect();
        json!({"keys": keys})
    }

    /// A signature of each key over a card; `key_set` is where clients find the keys.
    pub fn sign(&self, card: &AgentCard, key_set: &str) -> Vec<AgentCardSignature> {
        if self.keys.is_empty() {
            return Vec::new();
        }
        let payload = canonical::text(&card.signed_content());
        let name = format!("{key_set} {payload}");
        if let Some(signatures) = self.signed.get(&name) {
            return signatures;
        }
        let payload = URL_SAFE_NO_PAD.encode(payload);
        let signed = |key: &CardKey| key.sign(&payload, key_set, &self.random);
        let signatures: Vec<_> = self.keys.iter().filter_map(signed).collect();
        self.signed.insert(name, signatures.clone());
        signatures
    }
}

impl CardKey {
    fn read(pkcs8: &[u8]) -> Result<Self, String> {
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let random = SystemRandom::new();
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, pkcs8, &random);
        let pair = pair.map_err(|error| format!("a key cannot be used ({error})"))?;
        let mut key = Self { id: String::new(), pair };
        // The members that a thumbprint is made of, in their order.
        let (x, y) = key.point();
        let members = format!(r#"{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}"#);
        key.id = URL_SAFE_NO_PAD.encode(digest(&SHA256, members.as_bytes()));
        Ok(key)
    }

    /// Both coordinates of its public point.
    fn point(&self) -> (String, String) {
        // The first byte says that neither is compressed.
        let point = self.pair.public_key().as_ref().get(1..).unwrap_or_default();
        let (x, y) = point.split_at_checked(COORDINATE_BYTES).unwrap_or_default();
        (URL_SAFE_NO_PAD.encode(x), URL_SAFE_NO_PAD.encode(y))
    }

    fn public(&self) -> Value {
        let (x, y) = self.point();
        json!({"kty": "EC", "crv": "P-256", "x": x, "y": y, "kid": self.id, "use": "sig",
            "alg": "ES256"})
    }

    /// None if the system has no randomness.
    fn sign(
        &self,
        payload: &str,
        key_set: &str,
        random: &SystemRandom,
    ) -> Option<AgentCardSignature> {
        let header = json!({"alg": "ES256", "typ": "JOSE", "kid": self.id, "jku": key_set});
        let protected = URL_SAFE_NO_PAD.encode(header.to_string());
        let input = format!("{protected}.{payload}");
        let signature = self.pair.sign(random, input.as_bytes()).ok()?;
        let signature = URL_SAFE_NO_PAD.encode(signature);
        Some(AgentCardSignature { protected, signature, header: None })
    }
}

/// The keys that are given, or in the data folder already.
fn present(data: &Path, given: &[PathBuf]) -> Result<Option<Vec<CardKey>>, CardKeyError> {
    if given.is_empty() {
        let path = data.join(CARD_KEYS_FILE);
        return match is_exposed(&path) {
            Ok(false) => read(&path).map(Some),
            Ok(true) => Err(CardKeyError::Exposed(path)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(why) => Err(CardKeyError::Io { path, why }),
        };
    }
    let mut keys = Vec::new();
    for path in given {
        keys.extend(read(path)?);
    }
    match keys.len() {
        0..=SIGNING_KEYS_MAX => Ok(Some(keys)),
        many => Err(CardKeyError::TooMany(many)),
    }
}

/// The keys of a file; at least one.
fn read(path: &Path) -> Result<Vec<CardKey>, CardKeyError> {
    let unusable = |why: String| CardKeyError::Unusable { path: path.to_owned(), why };
    let unread = |why: io::Error| CardKeyError::Io { path: path.to_owned(), why };
    let mut text = Vec::new();
    let file = std::fs::File::open(path).map_err(unread)?;
    file.take(FILE_BYTES_MAX).read_to_end(&mut text).map_err(unread)?;
    let mut keys = Vec::new();
    for section in PrivatePkcs8KeyDer::pem_slice_iter(&text) {
        let section = section.map_err(|error| unusable(error.to_string()))?;
        keys.push(CardKey::read(section.secret_pkcs8_der()).map_err(unusable)?);
    }
    match keys.len() {
        0 => Err(unusable("it has none".to_owned())),
        1..=SIGNING_KEYS_MAX => Ok(keys),
        many => Err(unusable(format!("it has {many}"))),
    }
}

/// Makes a key in the data folder.
fn make(data: &Path) -> Result<CardKey, CardKeyError> {
    let path = data.join(CARD_KEYS_FILE);
    let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
    let random = SystemRandom::new();
    let unmade = |why: String| CardKeyError::Unusable { path: path.clone(), why };
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &random);
    let pkcs8 = pkcs8.map_err(|_| unmade("no key could be made".to_owned()))?;
    let key = CardKey::read(pkcs8.as_ref()).map_err(unmade)?;
    let written = replace_file(&path, pem(pkcs8.as_ref()).as_bytes(), FileAccess::Private);
    written.map_err(|why| CardKeyError::Io { path: path.clone(), why })?;
    Ok(key)
}

fn pem(pkcs8: &[u8]) -> String {
    let mut text = String::from("-----BEGIN PRIVATE KEY-----\n");
    let digits = STANDARD.encode(pkcs8);
    let mut rest = digits.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(PEM_COLUMNS));
        text.push_str(line);
        text.push('\n');
        rest = after;
    }
    text.push_str("-----END PRIVATE KEY-----\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
    use std::fs;

    const KEY_SET: &str = "https://shop.test/.well-known/jwks.json";

    fn card() -> AgentCard {
        AgentCard { name: "Shop".to_owned(), version: "1".to_owned(), ..AgentCard::default() }
    }

    /// Whether a key of a key set made this signature over this card.
    fn fits(key: &Value, signature: &AgentCardSignature, card: &AgentCard) -> bool {
        let bytes = |text: &str| URL_SAFE_NO_PAD.decode(text).unwrap();
        let coordinate = |name: &str| bytes(key[name].as_str().unwrap());
        let point = [vec![4], coordinate("x"), coordinate("y")].concat();
        let payload = URL_SAFE_NO_PAD.encode(canonical::text(&card.signed_content()));
        let input = format!("{}.{payload}", signature.protected);
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point);
        key.verify(input.as_bytes(), &bytes(&signature.signature)).is_ok()
    }

    #[test]
    fn a_key_is_made_once_and_signs_what_the_card_says() {
        let data = tempfile::tempdir().unwrap();
        let keys = CardKeys::open(data.path(), &[]).unwrap();
        let set = keys.key_set();
        assert_eq!(CardKeys::open(data.path(), &[]).unwrap().key_set(), set);
        let signatures = keys.sign(&card(), KEY_SET);
        assert_eq!(signatures.len(), 1);
        assert_eq!(keys.sign(&card(), KEY_SET), signatures, "signed once");
        let header = URL_SAFE_NO_PAD.decode(&signatures[0].protected).unwrap();
        let header: Value = serde_json::from_slice(&header).unwrap();
        let kid = &set["keys"][0]["kid"];
        assert_eq!(
            header,
            json!({"alg": "ES256", "typ": "JOSE", "kid": kid, "jku": KEY_SET}),
            "as the specification wants it"
        );
        assert!(fits(&set["keys"][0], &signatures[0], &card()));
        let other = AgentCard { name: "Other".to_owned(), ..card() };
        assert!(!fits(&set["keys"][0], &signatures[0], &other));
    }

    #[test]
    fn two_keys_sign_beside_each_other_and_more_are_refused() {
        let data = tempfile::tempdir().unwrap();
        let older = tempfile::tempdir().unwrap();
        let [old, new] = [&older, &data].map(|data| {
            let keys = CardKeys::open(data.path(), &[]).unwrap();
            keys.ids()[0].to_owned()
        });
        let files = [&data, &older].map(|data| data.path().join(CARD_KEYS_FILE));
        let given = CardKeys::open(Path::new("nowhere"), &files).unwrap();
        assert_eq!(given.ids(), [new.as_str(), old.as_str()]);
        let signatures = given.sign(&card(), KEY_SET);
        let set = given.key_set();
        for (index, signature) in signatures.iter().enumerate() {
            assert!(fits(&set["keys"][index], signature, &card()), "{index}");
            assert!(!fits(&set["keys"][1 - index], signature, &card()), "{index}");
        }
        let both = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect::<String>();
        fs::write(&files[0], both).unwrap();
        assert_eq!(CardKeys::open(data.path(), &[]).unwrap().ids(), [new, old]);
        let error = CardKeys::open(Path::new("nowhere"), &files).unwrap_err();
        assert!(matches!(error, CardKeyError::TooMany(3)), "{error}");
    }

    #[test]
    fn what_is_no_key_is_told_and_stays() {
        let data = tempfile::tempdir().unwrap();
        let path = data.path().join(CARD_KEYS_FILE);
        replace_file(&path, b"damaged", FileAccess::Private).unwrap();
        let error = CardKeys::open(data.path(), &[]).unwrap_err();
        assert!(error.to_string().contains("it has none"), "{error}");
        replace_file(&path, pem(b"no key").as_bytes(), FileAccess::Private).unwrap();
        let error = wrong_card_keys(data.path(), &[]).unwrap();
        assert!(error.to_string().contains("openssl genpkey"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), pem(b"no key"));
        let missing = data.path().join("missing.pem");
        let error = CardKeys::open(data.path(), &[missing]).unwrap_err();
        assert!(matches!(error, CardKeyError::Io { .. }), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn others_may_not_read_it() {
        use std::os::unix::fs::PermissionsExt;
        let data = tempfile::tempdir().unwrap();
        CardKeys::open(data.path(), &[]).unwrap();
        let path = data.path().join(CARD_KEYS_FILE);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = CardKeys::open(data.path(), &[]).unwrap_err();
        assert!(error.to_string().contains("chmod 600"), "{error}");
    }
}
