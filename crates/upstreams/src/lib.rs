//! Other servers as a source of tools, prompts and resources: MCP servers over HTTP or as child
//! processes, REST servers with an OpenAPI document, bare JSON-RPC servers, agents that speak A2A,
//! and the logins at them.
//! One dead or slow upstream never holds up another, nor a list. How an upstream is written in
//! settings is in crate `project`; HTTP clients are made in crate `outbound`.

pub mod children;
pub mod config;
mod state;
mod oauth;
mod mcp;
mod rest;
mod rpc;
mod a2a;
mod upstream;
#[cfg(test)]
mod stage;

use futures::future::{Either, join_all, select};
use kernel::contracts::{Clock, Entropy, Spawn, Vault};
use kernel::limits::Limits;
use kernel::tool::call::ToolError;
use kernel::values::fault::Fault;
use kernel::values::ids::ContentHash;
use outbound::addresses::HttpSettings;
use outbound::client::ClientOptions;
use reqwest::header::{HeaderName, HeaderValue};
use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub use a2a::{Peer, permitted_address, read_card};
pub use config::{
    A2aConfig, CardPlace, Document, EraSetting, Grant, KeyPlace, Keyring, KeysByCard, LoginOf,
    OauthConfig, PinnedKey, RestAuth, RestConfig, Secret, StoredKey, TokenClient, UpstreamConfig,
    UpstreamKind,
};
pub use mcp::headers as mcp_headers;
pub use oauth::{LeaseRegistry, LoginCallback, LoginPlaces, MemoryVault};
pub use rpc::refused_method;
pub use state::{AgentFacts, ListVersions, UpstreamState, UpstreamStatus};
pub use upstream::{OwnLogin, Upstream};

type Result<T, E = ToolError> = std::result::Result<T, E>;

/// How many tools of one upstream are taken.
const TOOLS_MAX: usize = 2_000;
/// How many pages of one list of an upstream are read.
const PAGES_MAX: usize = 200;

/// A lock that a panic elsewhere does not take from us: what it guards is changed in one step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A text, or its beginning.
fn cut(text: &str, chars_max: usize) -> String {
    let mut cut: String = text.chars().take(chars_max).collect();
    if cut.len() < text.len() {
        cut.push_str("...");
    }
    cut
}

/// A text of others for messages: short, and on one line.
fn one_line(text: &str, chars_max: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().filter(|c| !c.is_control()).take(chars_max).collect()
}

/// A header with a secret in it, which is shown nowhere; without the value also what is wrong with
/// it, if something is.
fn secret_header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    let key = HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| format!("`{name}` is not the name of a header"))?;
    let mut value = HeaderValue::from_str(value)
        .map_err(|_| format!("the value of header `{name}` has characters that no header has"))?;
    value.set_sensitive(true);
    Ok((key, value))
}

/// Through how many agents a call may come where nothing else is set.
pub const HOPS_MAX: u32 = 8;

/// Dependencies of upstreams.
#[derive(Clone)]
pub struct RemoteParts {
    /// Runs their tasks.
    pub spawn: Arc<dyn Spawn>,
    pub clock: Arc<dyn Clock>,
    pub entropy: Arc<dyn Entropy>,
    pub limits: Arc<Limits>,
    /// Through how many agents a call of an agent may come, this server included.
    pub hops_max: u32,
    /// Our own binary, which watches over child processes; without one they are started directly.
    pub supervisor: Option<PathBuf>,
    /// Keeps what logins bring.
    pub vault: Arc<dyn Vault>,
    /// Where logins come back to; without a place only we ourselves can log in.
    pub login: Option<LoginPlaces>,
    /// Whose they are, where they are not everybody's.
    pub scope: Scope,
}

/// Whose upstreams are, where they are not everybody's: where in the vault what logins bring is
/// kept, and whether they are kept to the public network.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    place: Option<Arc<str>>,
    only_public: bool,
    person: Option<Person>,
    ours: Ours,
}

/// Whether this server itself answers at an address.
type IsOurs = dyn Fn(&str) -> bool + Send + Sync;

/// Says it of an address; of none by default.
#[derive(Clone, Default)]
struct Ours(Option<Arc<IsOurs>>);

impl fmt::Debug for Ours {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Ours")
    }
}

/// A user who logs in for themselves.
#[derive(Debug, Clone, Copy)]
struct Person {
    /// Whether they must prove that the login which they began came back to them.
    proves: bool,
}

impl Scope {
    /// The state of a login, with the place where the login is kept: who comes back may find us
    /// started again.
    fn state(&self, secret: String) -> String {
        match &self.place {
            Some(place) => format!("{secret}.{place}"),
            None => secret,
        }
    }
}

/// The place in the vault of the login that has this state; none where it is the vault's root.
pub fn place_of(state: &str) -> Option<&str> {
    state.split_once('.').map(|(_, place)| place)
}

/// The segment of the vault where what the logins of a subject bring is kept.
pub fn subject_mark(subject: &str) -> String {
    ContentHash::of(subject.as_bytes()).as_str().chars().take(32).collect()
}

impl RemoteParts {
    /// The same, but what logins bring is kept at this place of the vault, below where it was
    /// before: segments with `/` between them.
    #[must_use]
    pub fn kept_at(&self, place: &str) -> Self {
        let vault = Arc::new(oauth::ScopedVault::new(self.vault.clone(), place));
        let below = |above: &Arc<str>| format!("{above}/{place}");
        let whole = self.scope.place.as_ref().map_or_else(|| place.to_owned(), below);
        let scope = Scope { place: Some(whole.into()), ..self.scope.clone() };
        Self { vault, scope, ..self.clone() }
    }

    /// The same, but names lead to addresses of the public network only.
    #[must_use]
    pub fn only_public(&self) -> Self {
        let scope = Scope { only_public: true, ..self.scope.clone() };
        Self { scope, ..self.clone() }
    }

    /// The same, but no agent is called where this says that this server itself answers. Its own
    /// skills would be its tools again.
    #[must_use]
    pub fn apart_from(&self, is_ours: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        let scope = Scope { ours: Ours(Some(Arc::new(is_ours))), ..self.scope.clone() };
        Self { scope, ..self.clone() }
    }

    /// Whether this server itself answers there.
    pub(crate) fn leads_back(&self, url: &str) -> bool {
        self.scope.ours.0.as_ref().is_some_and(|is_ours| is_ours(url))
    }

    /// The same, for a user who logs in for themselves; `proves` if they must prove that the
    /// login which they began came back to them.
    pub(crate) fn of_person(&self, proves: bool) -> Self {
        let scope = Scope { person: Some(Person { proves }), ..self.scope.clone() };
        Self { scope, ..self.clone() }
    }

    /// Where a login of this state is kept, below where ours are; none where it is there.
    fn below(&self, state: &str) -> Option<String> {
        let there = place_of(state)?;
        let below = match &self.scope.place {
            Some(own) => there.strip_prefix(&**own)?.strip_prefix('/')?,
            None => there,
        };
        Some(below.to_owned())
    }

    /// Whether names may lead anywhere.
    pub(crate) fn is_open(&self) -> bool {
        !self.scope.only_public
    }

    /// The future's result, or none once so many milliseconds have passed.
    pub(crate) async fn within<T>(&self, ms: u64, future: impl Future<Output = T>) -> Option<T> {
        match select(pin!(future), self.clock.sleep_ms(ms)).await {
            Either::Left((result, _)) => Some(result),
            Either::Right(((), _)) => None,
        }
    }

    /// How HTTP clients reach other servers.
    pub(crate) fn client_options(&self) -> ClientOptions {
        let connect = Duration::from_millis(self.limits.upstream_connect_timeout_ms);
        let options = ClientOptions::default().connect_within(connect);
        if self.is_open() { options } else { options.guarded(HttpSettings::default()) }
    }

    /// How long to wait after so many failures in a row: twice as long each time, up to a maximum,
    /// and anywhere in its second half, so that many clients do not come back at the same moment.
    pub(crate) fn backoff_ms(&self, failures: u32) -> u64 {
        if failures == 0 {
            return 0;
        }
        let min = self.limits.upstream_backoff_ms;
        let max = self.limits.upstream_backoff_ms_max;
        let doublings = (failures - 1).min(u64::BITS - 1);
        let whole = min.saturating_mul(1u64 << doublings).clamp(min.min(max), max);
        let half = whole / 2;
        // The low half of the random bits: more than any wait needs.
        whole - half + (self.entropy.bits() as u64) % half.saturating_add(1)
    }
}

/// The outcome of a login that a user came back from.
pub struct LoginResult {
    /// The upstream that it was for.
    pub upstream: Arc<Upstream>,
    /// The code that the user who began it must send before it counts: the login is theirs, even
    /// if another person followed the link.
    pub code: Option<String>,
}

/// All upstreams of a server.
pub struct Remote {
    upstreams: Vec<Arc<Upstream>>,
    parts: RemoteParts,
}

impl Remote {
    /// Starts to connect to all of them in the background, and returns at once.
    pub fn start(configs: Vec<UpstreamConfig>, parts: RemoteParts) -> Self {
        let start = |config| Arc::new(Upstream::start(config, &parts));
        let upstreams = configs.into_iter().map(start).collect();
        Self { upstreams, parts }
    }

    /// The upstreams, in the order in which they were given.
    pub fn upstreams(&self) -> &[Arc<Upstream>] {
        &self.upstreams
    }

    /// A person came back from a login: the upstream that it was for, which is connected to at
    /// once. A fault for a login that is not under way or took too long, for another issuer than
    /// the one that was asked, and for whatever the server says that went wrong.
    pub async fn finish_login(&self, returned: LoginCallback) -> Result<LoginResult, Fault> {
        let below = self.parts.below(&returned.state);
        let login = self.pending(below.as_deref(), &returned.state).await;
        let login = login.ok_or_else(oauth::unknown_login)?;
        let upstream = self.upstreams.iter().find(|upstream| upstream.name() == login.upstream);
        let upstream = upstream.cloned().ok_or_else(oauth::unknown_login)?;
        let code = match below {
            Some(place) => upstream.finish_own_login(&place, login, returned).await?,
            None => {
                upstream.finish_login(login, returned).await?;
                None
            }
        };
        Ok(LoginResult { upstream, code })
    }

    /// Whether a login of this state is under way, be it here or at another that shares our vault.
    pub async fn knows_login(&self, state: &str) -> bool {
        self.pending(self.parts.below(state).as_deref(), state).await.is_some()
    }

    async fn pending(&self, below: Option<&str>, state: &str) -> Option<oauth::Pending> {
        match below {
            Some(place) => oauth::pending(&*self.parts.kept_at(place).vault, state).await,
            None => oauth::pending(&*self.parts.vault, state).await,
        }
    }

    /// Lets go of all of them: sessions and child processes are ended on return, or the time for a
    /// stop is over.
    pub async fn stop(&self) {
        let stops = join_all(self.upstreams.iter().map(|upstream| upstream.stop()));
        let ms = self.parts.limits.stop_wait_ms;
        if self.parts.within(ms, stops).await.is_none() {
            tracing::warn!(limit_ms = ms, "upstreams that did not end in time are left alone");
        }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // A caller that forgets to stop them leaves no process behind, as long as tasks still run.
        self.upstreams.iter().for_each(|upstream| upstream.begin_stop());
    }
}

#[cfg(test)]
mod tests {
    use super::stage::Stage;

    #[test]
    fn reconnect_waits_grow_to_a_maximum_with_jitter() {
        let stage = Stage::new();
        let parts = stage.parts();
        assert_eq!(parts.backoff_ms(0), 0);
        for (failures, most) in [(1, 500), (2, 1_000), (3, 2_000), (8, 60_000), (4_000, 60_000)] {
            for _ in 0..20 {
                let wait = parts.backoff_ms(failures);
                assert!((most / 2..=most).contains(&wait), "{wait} after {failures} failures");
            }
        }
    }
}
