//! Builds HTTP clients: reqwest by default, and the connector of plain connections. Name resolution
//! can be restricted to allowed addresses.

use crate::addresses::HttpSettings;
use crate::redirects::within_origin;
use hyper_util::client::legacy::connect::HttpConnector;
use kernel::tool::call::ToolError;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use reqwest::{ClientBuilder, Url};
use std::error::Error;
use std::io;
use std::iter::successors;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

type BoxError = Box<dyn Error + Send + Sync>;

/// Shorter than the five seconds after which common servers close an idle connection: a write sent
/// into a closing connection has an unknown outcome.
pub const IDLE_MAX: Duration = Duration::from_secs(4);
/// How many connections to one host rest at the same time.
pub(crate) const IDLE_PER_HOST_MAX: usize = 256;
pub const USER_AGENT: &str = concat!("waypost/", env!("CARGO_PKG_VERSION"));

/// The other side may vanish without a word. These are what the client sets by itself: how long a
/// connection is silent before it is asked whether anybody is there, and how often it is asked.
const KEEPALIVE: Duration = Duration::from_secs(15);
const KEEPALIVE_TRIES: u32 = 3;
/// How long what was written may stay without an acknowledgement.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(30);

/// The client itself.
pub use reqwest::Client;

/// Options of a client. All clients keep connections alive, and none retries by itself.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    connect_within: Option<Duration>,
    idle_max: Duration,
    certificates: Certificates,
    /// Whose addresses names may lead to; anybody's where it is not said.
    guard: Option<Arc<HttpSettings>>,
    follows: bool,
    /// Whether it says who we are.
    is_named: bool,
    /// Whether it takes the proxies of the environment.
    is_proxied: bool,
    /// Whether it speaks HTTP/2; all others speak HTTP/1.1.
    is_http2: bool,
}

/// Which certificates a client trusts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Certificates {
    /// The machine's; it must have some.
    Required,
    /// The machine's. One without any can still speak plain http.
    IfAny,
    /// None: nothing is encrypted. Reading the machine's takes time, and it may have none.
    Unread,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            connect_within: None,
            idle_max: IDLE_MAX,
            certificates: Certificates::IfAny,
            guard: None,
            follows: false,
            is_named: true,
            is_proxied: false,
            is_http2: false,
        }
    }
}

impl ClientOptions {
    /// A server that does not take a connection within so long is given up.
    #[must_use]
    pub fn connect_within(self, limit: Duration) -> Self {
        Self { connect_within: Some(limit), ..self }
    }

    /// A connection rests for at most so long.
    #[must_use]
    pub fn idle_max(self, limit: Duration) -> Self {
        Self { idle_max: limit, ..self }
    }

    /// A machine without certificates to trust has no client.
    #[must_use]
    pub fn certified(self) -> Self {
        Self { certificates: Certificates::Required, ..self }
    }

    /// Only this address is talked to.
    #[must_use]
    pub fn only(self, url: &Url) -> Self {
        match url.scheme() {
            "http" => Self { certificates: Certificates::Unread, ..self },
            _ => self,
        }
    }

    /// Redirects are followed within an origin; else none is.
    #[must_use]
    pub fn following(self) -> Self {
        Self { follows: true, ..self }
    }

    /// Names lead only to addresses that these settings permit. An address that is written as such
    /// is not looked up: who writes it is judged beforehand.
    #[must_use]
    pub fn guarded(self, settings: HttpSettings) -> Self {
        Self { guard: Some(Arc::new(settings)), ..self }
    }

    /// The client of a command: it does not say who we are, and takes the proxies of its
    /// environment if it `is_proxied`.
    #[must_use]
    pub fn of_command(self, is_proxied: bool) -> Self {
        Self { is_named: false, is_proxied, ..self }
    }

    /// HTTP/2 is spoken and nothing else: by prior knowledge, and with TLS by ALPN.
    #[must_use]
    pub fn http2(self) -> Self {
        Self { is_http2: true, ..self }
    }

    /// The client, or why there is none.
    pub fn build(&self) -> Result<Client, String> {
        // Another provider may be there already; then that one is used.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let trusting = || self.builder().build();
        let bare = || self.builder().tls_certs_only(Vec::new()).build();
        let made = match self.certificates {
            Certificates::Required => trusting(),
            Certificates::IfAny => trusting().or_else(|_| bare()),
            Certificates::Unread => bare(),
        };
        made.map_err(|error| error.to_string())
    }

    fn builder(&self) -> ClientBuilder {
        let mut builder = Client::builder()
            .redirect(if self.follows { within_origin() } else { Policy::none() })
            .referer(false)
            .retry(reqwest::retry::never())
            .tcp_nodelay(true)
            .pool_idle_timeout(self.idle_max)
            .pool_max_idle_per_host(IDLE_PER_HOST_MAX);
        builder = match self.is_http2 {
            true => builder.http2_prior_knowledge(),
            false => builder.http1_only(),
        };
        if self.is_named {
            builder = builder.user_agent(USER_AGENT);
        }
        if !self.is_proxied {
            builder = builder.no_proxy();
        }
        if let Some(limit) = self.connect_within {
            builder = builder.connect_timeout(limit);
        }
        if let Some(settings) = &self.guard {
            let settings = settings.clone();
            builder = builder.dns_resolver(GuardedResolver { settings, look_up });
        }
        builder
    }
}

/// A client that is made when it is first needed: reading the machine's certificates takes time and
/// memory that a server without outbound calls need not spend.
#[derive(Debug)]
pub struct LazyClient {
    options: ClientOptions,
    client: OnceLock<Result<Client, String>>,
}

impl LazyClient {
    pub fn new(options: ClientOptions) -> Self {
        Self { options, client: OnceLock::new() }
    }

    /// The client, or why there is none.
    pub fn get(&self) -> Result<&Client, &str> {
        self.client.get_or_init(|| self.options.build()).as_ref().map_err(String::as_str)
    }
}

#[cfg(test)]
impl LazyClient {
    /// The same, whose names lead to where a test says.
    pub(crate) fn with_names<L, F>(options: ClientOptions, look_up: L) -> Self
    where
        L: Fn(String) -> F + Send + Sync + 'static,
        F: Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'static,
    {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let settings = options.guard.clone().unwrap_or_default();
        let builder = options.builder().tls_certs_only(Vec::new());
        let made = builder.dns_resolver(GuardedResolver { settings, look_up }).build();
        Self { options, client: OnceLock::from(made.map_err(|error| error.to_string())) }
    }
}

/// A client that talks only to whom its settings permit.
pub struct GuardedClient {
    settings: Arc<HttpSettings>,
    client: LazyClient,
}

impl GuardedClient {
    pub fn new(settings: HttpSettings, options: ClientOptions) -> Self {
        let settings = Arc::new(settings);
        let client = LazyClient::new(ClientOptions { guard: Some(settings.clone()), ..options });
        Self { settings, client }
    }

    /// Whom it may talk to.
    pub fn settings(&self) -> &HttpSettings {
        &self.settings
    }

    pub fn client(&self) -> Result<&Client, ToolError> {
        self.client.get().map_err(|why| {
            ToolError::not_sent("ClientFailed", format!("cannot make an HTTP client: {why}"))
        })
    }
}

/// Whether this machine has certificates to trust, without which no https can be spoken.
pub fn certificates() -> Result<(), String> {
    ClientOptions::default().certified().build().map(drop)
}

/// Whether something was answered that is not HTTP.
pub fn is_garbled(error: &reqwest::Error) -> bool {
    let mut causes = successors(error.source(), |cause: &&(dyn Error + 'static)| (*cause).source());
    causes.any(|cause| cause.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse))
}

/// Whether the other side has shown a certificate that is not trusted.
pub fn is_untrusted(error: &reqwest::Error) -> bool {
    let mut cause: Option<&(dyn Error + 'static)> = error.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<rustls::Error>() {
            return matches!(error, rustls::Error::InvalidCertificate(_));
        }
        // What an error of the system wraps is not its source.
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        cause = match wrapped {
            Some(wrapped) => {
                let wrapped: &(dyn Error + 'static) = wrapped;
                Some(wrapped)
            }
            None => error.source(),
        };
    }
    false
}

/// Plain connections like those of the client, for callers that need nothing else of it.
pub(crate) fn plain_connector(connect_within: Duration) -> HttpConnector {
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
struct GuardedResolver<L> {
    settings: Arc<HttpSettings>,
    /// Where a name leads at this moment.
    look_up: L,
}

impl<L, F> Resolve for GuardedResolver<L>
where
    L: Fn(String) -> F + Send + Sync,
    F: Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'static,
{
    fn resolve(&self, name: Name) -> Resolving {
        let name = name.as_str().to_owned();
        let settings = self.settings.clone();
        let found = (self.look_up)(name.clone());
        Box::pin(async move { permitted(&settings, &name, found.await?) })
    }
}

/// Resolves a name with the system's resolver.
async fn look_up(name: String) -> io::Result<Vec<SocketAddr>> {
    Ok(tokio::net::lookup_host((name.as_str(), 0)).await?.collect())
}

fn permitted(
    settings: &HttpSettings,
    name: &str,
    found: Vec<SocketAddr>,
) -> Result<Addrs, BoxError> {
    let permits = |address: &SocketAddr| settings.permits_address(name, address.ip());
    let (permitted, refused): (Vec<_>, Vec<_>) = found.into_iter().partition(permits);
    match refused.first() {
        Some(refused) if permitted.is_empty() => {
            let name = name.to_owned();
            let address = refused.ip();
            Err(AddressNotAllowed { name, address }.into())
        }
        _ => Ok(Box::new(permitted.into_iter())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;

    #[test]
    fn certificates_are_loaded_only_for_https() {
        let of = |url: &str| ClientOptions::default().only(&Url::parse(url).unwrap()).certificates;
        assert_eq!(of("http://a.test/"), Certificates::Unread);
        assert_eq!(of("https://a.test/"), Certificates::IfAny);
        let of = |url: &str| {
            ClientOptions::default().certified().only(&Url::parse(url).unwrap()).certificates
        };
        assert_eq!(of("http://a.test/"), Certificates::Unread);
        assert_eq!(of("https://a.test/"), Certificates::Required);
    }

    /// What a client offers to speak over TLS, as it stands in its first message.
    #[tokio::test]
    async fn a_client_offers_only_its_http_version() {
        let newer = (ClientOptions::default().http2(), &b"\0\x10\0\x05\0\x03\x02h2"[..]);
        let older = (ClientOptions::default(), &b"\0\x10\0\x0b\0\x09\x08http/1.1"[..]);
        for (options, offer) in [newer, older] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("https://{}/", listener.local_addr().unwrap());
            let client = options.build().unwrap();
            let greeted = async {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut hello = vec![0; 16 * 1024];
                let length = stream.read(&mut hello).await.unwrap();
                hello.truncate(length);
                hello
            };
            // It is closed before anything is answered.
            let (hello, sent) = tokio::join!(greeted, client.get(url).send());
            assert!(hello.windows(offer.len()).any(|bytes| bytes == offer), "{hello:?}");
            assert!(sent.is_err());
        }
    }

    #[test]
    fn a_plain_client_is_made_once() {
        let url = Url::parse("http://a.test/").unwrap();
        let lazy = LazyClient::new(ClientOptions::default().certified().only(&url));
        let first: *const Client = lazy.get().unwrap();
        assert!(std::ptr::eq(first, lazy.get().unwrap()));
    }
}
