//! Issuers of access tokens: where they say which keys are theirs, how these are held and renewed,
//! and which of their tokens are known to be good. An issuer that is away, slow or wrong delays no
//! one but a token that no known key fits.

pub(crate) mod key_set;
pub(crate) mod jwt;

use crate::credential::Fingerprint;
use crate::issuer::jwt::{Flaw, Jwt, Rules, TokenClaims};
use crate::issuer::key_set::{KeySet, PublicKey};
use futures::future::{Either, select};
use kernel::contracts::{Clock, Spawn};
use kernel::identity::directory::Directory;
use kernel::identity::grants::Grants;
use kernel::identity::issuer::IssuerEntry;
use kernel::identity::roles::Roles;
use kernel::values::caller::Scope;
use kernel::values::ids::{Millis, RealmId};
use outbound::documents::{Documents, Ground};
use quick_cache::sync::Cache;
use serde_json::Value;
use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::Duration;
use tokio::sync::watch;

/// How large a document of an issuer is at most.
const DOCUMENT_BYTES_MAX: usize = 256 * 1024;
/// How long an issuer may take for all of its documents, and how long a token that no key fits
/// waits for them.
const FETCH_MS: u64 = 5_000;
/// Between two fetches there is at least so much time.
const PAUSE: Duration = Duration::from_secs(30);
/// How often keys are renewed that were read.
const RENEW_MS: u64 = 10 * 60 * 1_000;
/// How often it is tried where they were not.
const RETRY_MS: u64 = 60 * 1_000;
/// For so long keys are held that cannot be renewed.
const HELD_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// About how many good tokens are kept; those that are rarely used go first.
const TOKENS_MAX: usize = 10_000;

const OPENID: &str = "/.well-known/openid-configuration";
const OAUTH: &str = "/.well-known/oauth-authorization-server";
const OPENID_SCOPE: &str = "openid";

#[derive(Clone)]
pub(crate) struct IssuerParts {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) spawn: Arc<dyn Spawn>,
    /// Told when a key is gone: credentials that were good may not be any more.
    pub(crate) lost: Arc<dyn Fn() + Send + Sync>,
}

/// The public description of an issuer, for clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicIssuer {
    /// Its configured name.
    pub name: Arc<str>,
    /// URL of its metadata (OpenID Connect Discovery).
    pub discovery: String,
    /// Scopes that a client requests; never empty.
    pub scopes: Vec<String>,
}

/// All issuers, and the tokens of theirs that are known.
pub(crate) struct Issuers {
    issuers: Vec<Arc<Issuer>>,
    /// The address of `/mcp`, which tokens may be for.
    mcp: Option<String>,
    /// Tokens that were good, by their fingerprints: their signatures are not checked again.
    known: Cache<Fingerprint, Arc<KnownToken>>,
    clock: Arc<dyn Clock>,
}

/// A token that was good when it was looked at.
pub(crate) struct KnownToken {
    pub(crate) claims: TokenClaims,
    pub(crate) issuer: Arc<Issuer>,
    key: Arc<PublicKey>,
}

/// One issuer.
pub(crate) struct Issuer {
    pub(crate) entry: IssuerEntry,
    parts: IssuerParts,
    documents: Documents,
    held: RwLock<Option<FetchedKeys>>,
    pace: Mutex<FetchState>,
    /// How many fetches ended.
    rounds: watch::Sender<u64>,
}

/// The keys of an issuer, and when they were last found to be these.
struct FetchedKeys {
    keys: Arc<KeySet>,
    read: Duration,
}

/// When the last fetch began, and whether it is under way.
#[derive(Default)]
struct FetchState {
    began: Option<Duration>,
    is_fetching: bool,
}

impl Issuers {
    pub(crate) fn new(entries: Vec<IssuerEntry>, mcp: Option<String>, parts: &IssuerParts) -> Self {
        let issuer = |entry| Arc::new(Issuer::new(entry, parts.clone()));
        Self {
            issuers: entries.into_iter().map(issuer).collect(),
            mcp,
            known: Cache::new(TOKENS_MAX),
            clock: parts.clock.clone(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.issuers.is_empty()
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &IssuerEntry> {
        self.issuers.iter().map(|issuer| &issuer.entry)
    }

    /// Those whose tokens can enter this realm, and not only at `/mcp`, with what a client asks
    /// them for so that its tokens have these scopes.
    pub(crate) fn entering(&self, realm: &RealmId, scopes: &[Scope]) -> Vec<PublicIssuer> {
        let enters = |entry: &&IssuerEntry| {
            entry.audience.is_some() && entry.realms.iter().any(|realms| realms.fits(realm))
        };
        let entries = self.entries().filter(enters);
        let public = entries.filter_map(|entry| {
            let asked = |scope: &Scope| format!("{}{}", entry.scope_prefix, scope.name());
            let scopes = match entry.default_scopes {
                Some(_) => vec![OPENID_SCOPE.to_owned()],
                None => scopes.iter().map(asked).collect(),
            };
            let discovery = places(&entry.url).into_iter().next()?;
            Some(PublicIssuer { name: entry.name.clone(), discovery, scopes })
        });
        public.collect()
    }

    /// Reads the keys of all issuers, and renews them as long as this lives.
    pub(crate) fn watch(&self) {
        for issuer in &self.issuers {
            let renewing = keep_renewing(Arc::downgrade(issuer), self.clock.clone());
            issuer.parts.spawn.task("key set of an issuer", Box::pin(renewing));
        }
    }

    /// The token whose text has this fingerprint, if it is known and still good.
    pub(crate) fn known(&self, fingerprint: Fingerprint) -> Option<Arc<KnownToken>> {
        self.known.get(&fingerprint).filter(|token| token.is_good(self.clock.now()))
    }

    /// Remembers a good token.
    pub(crate) fn remember(&self, fingerprint: Fingerprint, token: Arc<KnownToken>) {
        self.known.insert(fingerprint, token);
    }

    /// Checks a token that is not known. One that none of its issuer's keys fits waits until they
    /// were read again, if they can be.
    pub(crate) async fn verify(&self, text: &str) -> Result<Arc<KnownToken>, &'static str> {
        let jwt = Jwt::parse(text)?;
        let named = jwt.issuer().ok_or("the token names no issuer")?;
        let issuer = self.issuers.iter().find(|issuer| issuer.entry.url == named);
        let issuer = issuer.ok_or("the token's issuer is not configured")?;
        let verified = match self.check(&jwt, issuer) {
            Err(Flaw::UnknownKey | Flaw::Unfit(_)) => {
                issuer.renewed().await;
                self.check(&jwt, issuer)
            }
            verified => verified,
        };
        verified.map_err(|flaw| match flaw {
            Flaw::UnknownKey => "the token's key is not one of its issuer's",
            Flaw::Unfit(why) | Flaw::Wrong(why) => why,
        })
    }

    fn check(&self, jwt: &Jwt<'_>, issuer: &Arc<Issuer>) -> Result<Arc<KnownToken>, Flaw> {
        let entry = &issuer.entry;
        let now = self.clock.now();
        let rules = Rules { entry, mcp: self.mcp.as_deref(), now };
        let (key, claims) = jwt.verify(issuer.keys().as_deref(), &rules)?;
        Ok(Arc::new(KnownToken { claims, issuer: issuer.clone(), key }))
    }
}

impl KnownToken {
    /// Whether it has not ended, and its key is still one of its issuer's.
    pub(crate) fn is_good(&self, now: Millis) -> bool {
        now < self.claims.until && self.issuer.keys().is_some_and(|keys| keys.has(&self.key))
    }

    /// The roles of its subject, as this directory has them, in the realms that it may enter.
    pub(crate) fn realms(&self, directory: &Directory) -> Grants {
        let entered = self.claims.realms.0.keys();
        let nothing = entered.clone().map(|realm| (realm.clone(), Roles::default()));
        let mut realms = Grants(nothing.collect());
        for held in directory.grants(&self.claims.subject) {
            realms.add(&held.limited_to(entered.clone()));
        }
        realms
    }
}

impl fmt::Debug for KnownToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.claims, f)
    }
}

impl Issuer {
    fn new(entry: IssuerEntry, parts: IssuerParts) -> Self {
        Self {
            entry,
            parts,
            documents: Documents::default(),
            held: RwLock::default(),
            pace: Mutex::default(),
            rounds: watch::Sender::new(0),
        }
    }

    /// Its keys, if any are held that may still be believed.
    fn keys(&self) -> Option<Arc<KeySet>> {
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        let held = held.as_ref().filter(|held| self.age(held) < HELD_MAX);
        held.map(|held| held.keys.clone())
    }

    fn age(&self, held: &FetchedKeys) -> Duration {
        self.parts.clock.elapsed().saturating_sub(held.read)
    }

    /// Waits until its keys were read again, if they are being read or may be now.
    async fn renewed(self: &Arc<Self>) {
        let Some(mut rounds) = self.begin() else { return };
        let over = pin!(rounds.changed());
        select(over, self.parts.clock.sleep_ms(FETCH_MS)).await;
    }

    /// Begins a fetch, unless one is under way or it is too early for another. What is given ends
    /// with the fetch.
    fn begin(self: &Arc<Self>) -> Option<watch::Receiver<u64>> {
        // Before anything begins: its end must not be missed.
        let rounds = self.rounds.subscribe();
        let now = self.parts.clock.elapsed();
        let mut pace = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
        let since = pace.began.map(|began| now.saturating_sub(began));
        if pace.is_fetching && since.is_some_and(|since| since < PAUSE) {
            return Some(rounds);
        }
        if since.is_some_and(|since| since < PAUSE) {
            return None;
        }
        *pace = FetchState { began: Some(now), is_fetching: true };
        drop(pace);
        let issuer = self.clone();
        // In a task of its own: others wait for it, too.
        let fetching = async move { issuer.fetch().await };
        self.parts.spawn.task("fetch of a key set", Box::pin(fetching));
        Some(rounds)
    }

    async fn fetch(&self) {
        let late = self.parts.clock.sleep_ms(FETCH_MS);
        let read = match select(pin!(self.read()), late).await {
            Either::Left((read, _)) => read,
            Either::Right(_) => Err("it did not answer within 5 seconds".to_owned()),
        };
        match read {
            Ok(keys) => self.replace(keys),
            Err(why) => {
                let issuer = &*self.entry.name;
                tracing::warn!(issuer, why, "the keys of an issuer cannot be read");
                self.drop_outdated();
            }
        }
        self.pace.lock().unwrap_or_else(PoisonError::into_inner).is_fetching = false;
        self.rounds.send_modify(|rounds| *rounds += 1);
    }

    /// Its keys, as it says now.
    async fn read(&self) -> Result<KeySet, String> {
        for place in places(&self.entry.url) {
            let read = self.documents.read(&place, Ground::Anywhere, DOCUMENT_BYTES_MAX).await;
            let Some(document) = read.map_err(|unread| unread.to_string())? else { continue };
            // One that is wrong is not passed over for the next: it may be an attack.
            let text = |name: &str| document.body.get(name).and_then(Value::as_str);
            if text("issuer") != Some(self.entry.url.as_str()) {
                return Err(format!("`{place}` is about another issuer"));
            }
            let keys = text("jwks_uri").ok_or_else(|| format!("`{place}` has no `jwks_uri`"))?;
            let read = self.documents.read(keys, document.leads, DOCUMENT_BYTES_MAX).await;
            let read = read.map_err(|unread| unread.to_string())?;
            let read = read.ok_or("its key set is not where it says that it is")?;
            return KeySet::parse(&read.body).map_err(str::to_owned);
        }
        Err("it has no document that describes it".to_owned())
    }

    /// Takes keys in the place of all that were there.
    fn replace(&self, keys: KeySet) {
        let read = self.parts.clock.elapsed();
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        let before = held.take().map(|held| held.keys);
        let keys = match &before {
            Some(before) if **before == keys => before.clone(),
            _ => Arc::new(keys),
        };
        let is_lost = before.is_some_and(|before| !keys.has_all_of(&before));
        *held = Some(FetchedKeys { keys, read });
        drop(held);
        if is_lost {
            (self.parts.lost)();
        }
    }

    /// Lets go of keys that were not renewed for too long.
    fn drop_outdated(&self) {
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        let outdated = held.take_if(|held| self.age(held) >= HELD_MAX);
        drop(held);
        if outdated.is_some() {
            (self.parts.lost)();
        }
    }

    /// Whether its keys were read just now.
    fn is_fresh(&self) -> bool {
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        held.as_ref().is_some_and(|held| self.age(held) < PAUSE)
    }
}

/// Renews the keys of an issuer, as long as it is there.
async fn keep_renewing(issuer: Weak<Issuer>, clock: Arc<dyn Clock>) {
    loop {
        let Some(held) = issuer.upgrade() else { return };
        held.renewed().await;
        let wait_ms = if held.is_fresh() { RENEW_MS } else { RETRY_MS };
        drop(held);
        clock.sleep_ms(wait_ms).await;
    }
}

/// Where an issuer may describe itself: OpenID Connect Discovery, then RFC 8414.
fn places(issuer: &str) -> Vec<String> {
    let scheme = issuer.find("://").map_or(0, |at| at + 3);
    let path = issuer[scheme..].find('/').map_or(issuer.len(), |at| scheme + at);
    let (origin, path) = issuer.split_at(path);
    match path.trim_end_matches('/') {
        "" => vec![format!("{origin}{OPENID}"), format!("{origin}{OAUTH}")],
        path => vec![
            format!("{origin}{path}{OPENID}"),
            format!("{origin}{OAUTH}{path}"),
            format!("{origin}{OPENID}{path}"),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_urls_of_an_issuer_follow_the_standards() {
        for issuer in ["https://a.test", "https://a.test/"] {
            assert_eq!(
                places(issuer),
                [
                    "https://a.test/.well-known/openid-configuration",
                    "https://a.test/.well-known/oauth-authorization-server"
                ]
            );
        }
        assert_eq!(
            places("http://127.0.0.1:9/t/1/"),
            [
                "http://127.0.0.1:9/t/1/.well-known/openid-configuration",
                "http://127.0.0.1:9/.well-known/oauth-authorization-server/t/1",
                "http://127.0.0.1:9/.well-known/openid-configuration/t/1"
            ]
        );
    }
}
