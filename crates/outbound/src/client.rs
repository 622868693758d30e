//! The one client that all calls share: keep-alive connections, no redirects, no proxy, no retries
//! of its own, and name lookups that lead only where the settings permit.

use crate::addresses::HttpSettings;
use hyper_util::client::legacy::connect::HttpConnector;
use kernel::call::ToolError;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder};
use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

type BoxError = Box<dyn Error + Send + Sync>;

/// Shorter than the five seconds after which common servers close an idle connection: a write sent
/// into a closing connection has an unknown outcome.
pub const IDLE_MAX: Duration = Duration::from_secs(4);
/// How many connections to one host rest at the same time.
pub const IDLE_PER_HOST_MAX: usize = 256;
/// Who we say that we are.
pub const USER_AGENT: &str = concat!("waypost/", env!("CARGO_PKG_VERSION"));

/// The other side may vanish without a word. These are what the client sets by itself: how long a
/// connection is silent before it is asked whether anybody is there, and how often it is asked.
const KEEPALIVE: Duration = Duration::from_secs(15);
const KEEPALIVE_TRIES: u32 = 3;
/// How long what was written may stay without an acknowledgement.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(30);

/// Makes ring the process's TLS provider, unless one is installed already. Anything that builds a
/// client calls this first.
pub fn install_tls() {
    // Another provider may be there already; then that one is used.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// The client, made when it is first needed: reading the machine's certificates takes time and
/// memory that a server without outbound calls need not spend.
pub struct Outbound {
    settings: Arc<HttpSettings>,
    connect_within: Option<Duration>,
    client: OnceLock<Result<Client, String>>,
}

impl Outbound {
    /// A client for these settings.
    pub fn new(settings: Arc<HttpSettings>) -> Self {
        Self { settings, connect_within: None, client: OnceLock::new() }
    }

    /// The same; whoever does not take a connection within so long is not talked to.
    pub fn connect_within_ms(self, ms: u64) -> Self {
        Self { connect_within: Some(Duration::from_millis(ms)), ..self }
    }

    /// Whom it may talk to.
    pub fn settings(&self) -> &HttpSettings {
        &self.settings
    }

    /// The client.
    pub fn client(&self) -> Result<&Client, ToolError> {
        let made = self.client.get_or_init(|| self.build());
        made.as_ref().map_err(|why| {
            ToolError::not_sent("ClientFailed", format!("cannot make an HTTP client: {why}"))
        })
    }

    fn build(&self) -> Result<Client, String> {
        build_client(|| {
            let builder = base_client().dns_resolver(Guarded(self.settings.clone()));
            match self.connect_within {
                Some(limit) => builder.connect_timeout(limit),
                None => builder,
            }
        })
    }
}

/// The client of a builder, or why there is none.
pub fn build_client(builder: impl Fn() -> ClientBuilder) -> Result<Client, String> {
    install_tls();
    match builder().build() {
        Ok(client) => Ok(client),
        // A machine without any CA certificate can still speak plain http.
        Err(_) => builder().tls_certs_only(Vec::new()).build().map_err(|error| error.to_string()),
    }
}

/// What every client of ours has in common.
pub fn base_client() -> ClientBuilder {
    Client::builder()
        .user_agent(USER_AGENT)
        .redirect(Policy::none())
        .referer(false)
        .no_proxy()
        .retry(reqwest::retry::never())
        .tcp_nodelay(true)
        .pool_idle_timeout(IDLE_MAX)
        .pool_max_idle_per_host(IDLE_PER_HOST_MAX)
}

/// Plain connections like those of the client, for whoever needs nothing else of it.
pub fn plain_connector(connect_within: Duration) -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(connect_within));
    connector.set_keepalive(Some(KEEPALIVE));
    connector.set_keepalive_interval(Some(KEEPALIVE));
    connector.set_keepalive_retries(Some(KEEPALIVE_TRIES));
    #[cfg(target_os = "linux")]
    connector.set_tcp_user_timeout(Some(UNACKNOWLEDGED_MAX));
    connector
}

/// A name that leads only to addresses that it may not lead to.
#[derive(Debug, thiserror::Error)]
#[error("`{name}` leads to `{address}`, which is not a public address and is not listed itself")]
pub struct AddressNotAllowed {
    name: String,
    address: IpAddr,
}

/// Looks names up and keeps only permitted addresses. What it returns is what is connected to, so
/// a name cannot lead elsewhere after it was judged.
struct Guarded(Arc<HttpSettings>);

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(look_up(self.0.clone(), name))
    }
}

async fn look_up(settings: Arc<HttpSettings>, name: Name) -> Result<Addrs, BoxError> {
    let name = name.as_str();
    let found: Vec<SocketAddr> = tokio::net::lookup_host((name, 0)).await?.collect();
    let permits = |address: &SocketAddr| settings.permits_address(name, address.ip());
    let (permitted, refused): (Vec<_>, Vec<_>) = found.into_iter().partition(permits);
    match refused.first() {
        Some(refused) if permitted.is_empty() => {
            let (name, address) = (name.to_owned(), refused.ip());
            Err(AddressNotAllowed { name, address }.into())
        }
        _ => Ok(Box::new(permitted.into_iter())),
    }
}
