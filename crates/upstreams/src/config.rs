//! Configuration of an upstream server as plain data. Crate `project` parses it from files.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use outbound::addresses::web_url;
use outbound::redaction::Redactor;
use std::collections::BTreeMap;
use std::path::PathBuf;

pub use kernel::values::secret::Secret;

/// The header of AgentVault's keys, and of others that no card names one for.
pub(crate) const KEY_HEADER: &str = "X-Api-Key";

/// One upstream server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamConfig {
    /// Its stable name: letters, digits, `_` and `-`.
    pub name: String,
    /// Prefix of the names of its tools and prompts: `<name>.`, or empty.
    pub prefix: String,
    pub kind: UpstreamKind,
    /// Whether what it says of its tools' effects is taken as it is. If not, it only tightens.
    pub trusted: bool,
    /// Whether its calls are recorded as runs.
    pub journal: bool,
    /// How long one call of it may take; as the limits say where this is none.
    pub timeout_ms: Option<u64>,
    /// In which era of MCP it is spoken to; of no account where it does not speak MCP.
    pub era: EraSetting,
    /// The `file:` URIs of the folders that it is told of when it asks for them and there is no
    /// caller who has folders of its own; of no account where it does not speak MCP.
    pub roots: Vec<String>,
    /// Where it is configured, for messages: `.mcp.json`, `waypost.toml:12`.
    pub origin: String,
}

impl UpstreamConfig {
    /// What it was given, which is told to no one.
    pub fn hidden(&self) -> Redactor {
        let (given, addresses, auth, secret) = match &self.kind {
            UpstreamKind::Http { url, headers, oauth } => {
                (headers, [Some(url), None], None, oauth.client_secret.as_ref())
            }
            UpstreamKind::Rpc { url, headers, .. } => (headers, [Some(url), None], None, None),
            UpstreamKind::Stdio { env, .. } => (env, [None, None], None, None),
            UpstreamKind::Rest(rest) => {
                let document = match &rest.document {
                    Document::Url(url) => Some(url),
                    Document::File(_) => None,
                };
                (&rest.headers, [rest.base_url.as_ref(), document], rest.auth.as_ref(), None)
            }
            UpstreamKind::A2a(agent) => {
                let card = match &agent.card {
                    CardPlace::Url(url) | CardPlace::Registry { url, .. } => Some(url),
                    CardPlace::File(_) => None,
                };
                let secret = agent.client.as_ref().map(|client| &client.secret);
                (&agent.headers, [card, None], agent.auth.as_ref(), secret)
            }
        };
        let secrets = auth.map(RestAuth::secrets).unwrap_or_default();
        let hidden = Redactor::default().headers(given).credentials(secrets);
        let addresses = addresses.into_iter().flatten();
        let addresses = addresses.filter_map(|address| web_url("it", address).ok());
        let hidden = addresses.fold(hidden, |hidden, address| hidden.url(&address));
        hidden.credentials(secret.map(Secret::expose))
    }
}

/// In which era of MCP a server is spoken to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EraSetting {
    /// As the server can. One of both eras is spoken to as each caller would do it: with a
    /// handshake for a client that has one, else statelessly.
    #[default]
    Auto,
    /// With a handshake, for everyone: up to 2025-11-25.
    Handshake,
    /// Statelessly, for everyone: since 2026-07-28.
    Stateless,
}

impl EraSetting {
    /// All of them, by the words of settings.
    pub const WORDS: [(&'static str, EraSetting); 3] = [
        ("auto", EraSetting::Auto),
        ("2025", EraSetting::Handshake),
        ("2026", EraSetting::Stateless),
    ];

    pub fn word(self) -> &'static str {
        match self {
            EraSetting::Auto => "auto",
            EraSetting::Handshake => "2025",
            EraSetting::Stateless => "2026",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "there is one for each upstream, made once")]
pub enum UpstreamKind {
    /// An MCP server behind a URL.
    Http {
        /// The URL of its endpoint.
        url: String,
        /// Headers that go with every request; an `Authorization` among them stands for a login.
        headers: Vec<(String, Secret)>,
        /// How a login at it goes, should it want one.
        oauth: OauthConfig,
    },
    /// An MCP server that runs as a child process.
    Stdio {
        /// The program.
        command: String,
        args: Vec<String>,
        /// Variables that it gets.
        env: Vec<(String, Secret)>,
        /// The folder that it starts in.
        cwd: Option<PathBuf>,
    },
    /// A REST server that an OpenAPI document describes.
    Rest(RestConfig),
    /// A server with a bare JSON-RPC endpoint.
    Rpc {
        /// The URL of its endpoint.
        url: String,
        /// Headers that go with every request.
        headers: Vec<(String, Secret)>,
        /// The tools that are wanted; all that it lists where this is empty.
        tools: Vec<String>,
        /// Whether any other method may be called too, where it does not list its tools.
        open: bool,
    },
    /// An agent that speaks A2A.
    A2a(A2aConfig),
}

impl UpstreamKind {
    pub fn word(&self) -> &'static str {
        match self {
            UpstreamKind::Http { .. } => "http",
            UpstreamKind::Stdio { .. } => "stdio",
            UpstreamKind::Rest(_) => "rest",
            UpstreamKind::Rpc { .. } => "rpc",
            UpstreamKind::A2a(_) => "a2a",
        }
    }
}

/// How logins at a server go. By default all is found out from the server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OauthConfig {
    /// The client that the server's operator registered for us.
    pub client_id: Option<String>,
    pub client_secret: Option<Secret>,
    /// Scopes that override those of the server.
    pub scopes: Option<Vec<String>>,
    pub grant: Grant,
    pub login: LoginOf,
}

/// Whose the login at a server is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LoginOf {
    /// One login, which all callers use.
    #[default]
    Shared,
    /// Each caller's own.
    User,
}

impl LoginOf {
    /// Both of them, by the words of settings.
    pub const WORDS: [(&'static str, LoginOf); 2] =
        [("shared", LoginOf::Shared), ("user", LoginOf::User)];
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Grant {
    /// A person in a browser: `authorization_code`.
    #[default]
    Person,
    /// We ourselves, with the client's secret: `client_credentials`.
    Ourselves,
}

/// A REST server: the document that describes it, and how to talk to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestConfig {
    /// Where the OpenAPI document is.
    pub document: Document,
    /// Where the server is; as the document's `servers` say where this is none.
    pub base_url: Option<String>,
    /// How we show who we are.
    pub auth: Option<RestAuth>,
    /// Headers that go with every request.
    pub headers: Vec<(String, Secret)>,
    /// Patterns of the operations that become tools, by their ids; all where this is none.
    pub include: Option<Vec<String>>,
    /// Whether the server may be at an address that is not public, whatever name leads there.
    pub allow_private: bool,
}

impl RestConfig {
    /// A server that this document describes, all else left open.
    pub fn new(document: Document) -> Self {
        Self {
            document,
            base_url: None,
            auth: None,
            headers: Vec::new(),
            include: None,
            allow_private: false,
        }
    }
}

impl RestAuth {
    /// A key as AgentVault's clients send it.
    pub fn vault_key(key: Secret) -> Self {
        RestAuth::ApiKey { name: KEY_HEADER.to_owned(), place: KeyPlace::Header, value: key }
    }

    /// What it shows, as it is written and as it is sent.
    pub(crate) fn secrets(&self) -> Vec<String> {
        match self {
            RestAuth::ApiKey { value: secret, .. } | RestAuth::Bearer(secret) => {
                vec![secret.expose().to_owned()]
            }
            RestAuth::Basic { user, password } => {
                let pair = STANDARD.encode(format!("{user}:{}", password.expose()));
                vec![password.expose().to_owned(), pair]
            }
        }
    }
}

/// An agent of others: where its card is, and what of it is believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct A2aConfig {
    pub card: CardPlace,
    /// The server that credentials are shown to; where this is none, the one that the card is from,
    /// or that a file of the operator's names.
    pub origin: Option<String>,
    /// How we show who we are.
    pub auth: Option<RestAuth>,
    /// A key that is shown instead, in the header that the card names.
    pub key: Option<Secret>,
    /// The client as which we ask for a token, where the card wants one.
    pub client: Option<TokenClient>,
    /// Where its key or client is looked up when it is connected to, if neither is known.
    pub keyring: Option<Keyring>,
    /// Where its key or client is looked up under the id that its card names, if none of the
    /// others is there.
    pub keys_by_card: Option<KeysByCard>,
    /// Headers that go with every request.
    pub headers: Vec<(String, Secret)>,
    /// Whether its card may name an address that is not public.
    pub allow_private: bool,
    /// The keys that may sign its card.
    pub keys: Vec<PinnedKey>,
    /// Whether a card that none of them signed is refused.
    pub require_signature: bool,
}

impl A2aConfig {
    /// An agent with this card, all else left open.
    pub fn new(card: CardPlace) -> Self {
        Self {
            card,
            origin: None,
            auth: None,
            key: None,
            client: None,
            keyring: None,
            keys_by_card: None,
            headers: Vec::new(),
            allow_private: false,
            keys: Vec::new(),
            require_signature: false,
        }
    }
}

/// A client that an agent's authorization server knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenClient {
    pub id: String,
    pub secret: Secret,
    /// Requested scopes; if empty, those of the card.
    pub scopes: Vec<String>,
}

/// A key that AgentVault's clients stored for an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoredKey {
    pub key: Option<Secret>,
    /// The client as which tokens are asked for.
    pub client: Option<TokenClient>,
}

impl StoredKey {
    /// Whether there is neither.
    pub fn is_empty(&self) -> bool {
        self.key.is_none() && self.client.is_none()
    }
}

/// Keys of several agents, for one whose card says which of them is its own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeysByCard {
    /// Keys of a file, by ids in lower case.
    pub file: BTreeMap<String, StoredKey>,
    /// The command that reads the keyring, if that is asked after the file.
    pub keyring: Option<PathBuf>,
}

/// An entry of the keyring of who runs this server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keyring {
    /// The id of the agent's key there.
    pub id: String,
    /// The command that reads it.
    pub command: PathBuf,
}

/// Where the card of an agent is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CardPlace {
    /// Behind a URL.
    Url(String),
    File(PathBuf),
    /// At a registry, under an id.
    Registry {
        url: String,
        /// The id: `org/name`.
        id: String,
    },
}

/// A key that may sign a card: a point on P-256.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinnedKey {
    /// Its id; any signature may be its own where this is none.
    pub id: Option<String>,
    /// The point, uncompressed.
    pub point: Vec<u8>,
}

impl PinnedKey {
    /// How many bytes a coordinate has.
    const COORDINATE_BYTES: usize = 32;
    /// First byte of an uncompressed point.
    const UNCOMPRESSED: u8 = 4;

    /// The key with these coordinates, as a JWK writes them; which one is wrong, if one is.
    pub fn new(id: Option<String>, x: &str, y: &str) -> Result<Self, &'static str> {
        let read = |text: &str, name: &'static str| {
            let bytes = URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok();
            bytes.filter(|bytes| bytes.len() == Self::COORDINATE_BYTES).ok_or(name)
        };
        let point = [vec![Self::UNCOMPRESSED], read(x, "x")?, read(y, "y")?].concat();
        Ok(Self { id, point })
    }
}

/// Where an OpenAPI document is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Document {
    File(PathBuf),
    /// Behind a URL.
    Url(String),
}

/// How a REST server is shown who we are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestAuth {
    /// A key in a header or in the query.
    ApiKey {
        /// The name of the header or of the query's field.
        name: String,
        place: KeyPlace,
        value: Secret,
    },
    /// `Authorization: Bearer ..`
    Bearer(Secret),
    /// `Authorization: Basic ..`
    Basic { user: String, password: Secret },
}

/// Where a key goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPlace {
    /// Into a header.
    Header,
    /// Into the URL's query.
    Query,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_shown() {
        let kind = UpstreamKind::Http {
            url: "http://a.example/mcp".to_owned(),
            headers: vec![("Authorization".to_owned(), Secret::new("Bearer abc"))],
            oauth: OauthConfig { client_secret: Some("abc".into()), ..OauthConfig::default() },
        };
        let shown = format!("{kind:?} {}", Secret::from("abc"));
        assert!(!shown.contains("abc"), "{shown}");
        assert!(shown.ends_with("***"), "{shown}");
        assert_eq!(Secret::from("abc".to_owned()).expose(), "abc");
    }

    fn config(kind: UpstreamKind) -> UpstreamConfig {
        UpstreamConfig {
            name: "a".to_owned(),
            prefix: "a.".to_owned(),
            kind,
            trusted: false,
            journal: true,
            timeout_ms: None,
            era: EraSetting::Auto,
            roots: Vec::new(),
            origin: "waypost.toml:1".to_owned(),
        }
    }

    #[test]
    fn secrets_of_a_rest_server_are_masked_in_its_errors() {
        let given = |auth: RestAuth| {
            let document = Document::Url("http://a.example/doc?key=hunter1".to_owned());
            let headers = vec![("X".to_owned(), Secret::new("Token hunter2"))];
            let rest = RestConfig { auth: Some(auth), headers, ..RestConfig::new(document) };
            let text = "?key=hunter1, hunter2, hunter2-and-more";
            config(UpstreamKind::Rest(rest)).hidden().told(text)
        };
        let secret = || Secret::new("hunter2-and-more");
        let name = "key".to_owned();
        let place = KeyPlace::Query;
        for auth in [
            RestAuth::ApiKey { name, place, value: secret() },
            RestAuth::Bearer(secret()),
            RestAuth::Basic { user: "me".to_owned(), password: secret() },
        ] {
            assert_eq!(given(auth), "?***, ***, ***");
        }
    }

    #[test]
    fn an_encoded_password_is_masked_as_well() {
        let auth = RestAuth::Basic { user: "me".to_owned(), password: Secret::new("pass:word") };
        let document = Document::File("a.yaml".into());
        let rest = RestConfig { auth: Some(auth), ..RestConfig::new(document) };
        let text = "no user of `Basic bWU6cGFzczp3b3Jk` has pass:word";
        let told = config(UpstreamKind::Rest(rest)).hidden().told(text);
        assert_eq!(told, "no user of `Basic ***` has ***");
    }

    #[test]
    fn secrets_of_an_upstream_are_masked_in_its_errors() {
        let hidden = config(UpstreamKind::Http {
            url: "http://u:hunter2@a.example/mcp?key=hunter3".to_owned(),
            headers: vec![("X".to_owned(), Secret::new("hunter4"))],
            oauth: OauthConfig {
                client_id: Some("client".to_owned()),
                client_secret: Some("hunter5".into()),
                ..OauthConfig::default()
            },
        })
        .hidden();
        let text = "no answer at http://u:hunter2@a.example/mcp?key=hunter3 (hunter4): hunter5";
        assert_eq!(hidden.told(text), "no answer at http://***@a.example/mcp?*** (***): ***");
        assert_eq!(hidden.told("the key hunter3 is unknown"), "the key *** is unknown");
    }
}
