//! An MCP server that wants tokens, authorization servers that give them, and ourselves between.

use super::site::{Asked, Reply, Site};
use crate::config::{EraSetting, OauthConfig, UpstreamConfig, UpstreamKind};
use crate::oauth::{LoginCallback, LoginPlaces, MemoryVault};
use crate::{HOPS_MAX, Remote, RemoteParts, Upstream};
use futures::future::{BoxFuture, pending};
use kernel::contracts::{Clock, Entropy, Spawn, Vault};
use kernel::limits::Limits;
use kernel::tool::call::{
    Call, CallContext, CallReporter, Caller, InputResponses, ToolError, ToolOutput,
};
use kernel::values::ids::{CallId, Millis};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Where logins come back to.
pub(super) const CALLBACK: &str = "http://localhost:4000/oauth/callback";

/// A clock that stands still until it is set.
#[derive(Default)]
pub(super) struct Still(AtomicI64);

impl Still {
    /// It is so late.
    pub(super) fn set(&self, ms: i64) {
        self.0.store(ms, Ordering::SeqCst);
    }
}

impl Clock for Still {
    fn now(&self) -> Millis {
        Millis(self.0.load(Ordering::SeqCst))
    }

    fn elapsed(&self) -> std::time::Duration {
        std::time::Duration::from_millis(self.now().0.unsigned_abs())
    }

    fn sleep_until(&self, then: Millis) -> BoxFuture<'static, ()> {
        if then <= self.now() { Box::pin(async {}) } else { Box::pin(pending()) }
    }
}

struct Beside;

impl Spawn for Beside {
    fn task(&self, _name: &'static str, future: BoxFuture<'static, ()>) {
        tokio::spawn(future);
    }

    fn thread(&self, name: &'static str, future: BoxFuture<'static, ()>) {
        self.task(name, future);
    }
}

/// Chance that is not.
#[derive(Default)]
pub(super) struct Counted(AtomicU64);

impl Entropy for Counted {
    fn bits(&self) -> u128 {
        let count = self.0.fetch_add(1, Ordering::SeqCst) + 1;
        u128::from(count).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
    }
}

/// What the servers do.
pub(super) struct Rules {
    /// The tokens that the MCP server takes, with what they are good for.
    pub(super) good: BTreeMap<String, String>,
    /// What a token must be good for, by method; the others need none.
    pub(super) needs: BTreeMap<&'static str, &'static str>,
    /// What it says to a client without a token; `{}` is its root.
    pub(super) challenge: String,
    /// What it says of its tokens, by path.
    pub(super) documents: BTreeMap<String, Value>,
    /// The refresh token that is good, and how many tokens were given.
    pub(super) refresh: Option<String>,
    pub(super) given: u32,
    /// What the next token is good for, if the request does not say.
    pub(super) scopes: String,
    /// How long tokens are good, in seconds.
    pub(super) lasts_s: Option<u64>,
    /// What the token endpoint answers instead.
    pub(super) token: Option<(u16, Value)>,
    /// What a registration gives.
    pub(super) registers: Value,
}

impl Rules {
    fn answer(&mut self, root: &str, asked: &Asked) -> Reply {
        if let Some(document) = self.documents.get(asked.path()) {
            let text = document.to_string().replace("{}", root);
            return Reply::json(200, &serde_json::from_str(&text).unwrap());
        }
        match asked.line.as_str() {
            "POST /mcp" => self.mcp(root, asked),
            "POST /register" => Reply::json(201, &self.registers),
            "POST /token" => self.token(asked),
            "POST /revoke" => Reply::status(200),
            _ => Reply::status(404),
        }
    }

    fn mcp(&self, root: &str, asked: &Asked) -> Reply {
        let Some(scopes) = asked.bearer().and_then(|token| self.good.get(token)) else {
            let challenge = self.challenge.replace("{}", root);
            return Reply::status(401).header("www-authenticate", challenge);
        };
        let request = asked.json();
        let method = request["method"].as_str().unwrap_or_default();
        let needed = self.needs.get(method).copied().unwrap_or_default();
        if !needed.is_empty() && !scopes.split(' ').any(|scope| scope == needed) {
            let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{needed}\"");
            return Reply::status(403).header("www-authenticate", challenge);
        }
        let result = match method {
            "server/discover" => {
                json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}})
            }
            "tools/list" => {
                json!({"tools": [{"name": "t", "inputSchema": {"type": "object"}}]})
            }
            _ => json!({"content": [{"type": "text", "text": "done"}]}),
        };
        Reply::json(200, &json!({"jsonrpc": "2.0", "id": request["id"], "result": result}))
    }

    fn token(&mut self, asked: &Asked) -> Reply {
        if let Some((status, body)) = &self.token {
            return Reply::json(*status, body);
        }
        let form = asked.form();
        let refresh = form.get("refresh_token");
        if form["grant_type"] == "refresh_token" && refresh != self.refresh.as_ref() {
            return Reply::json(400, &json!({"error": "invalid_grant"}));
        }
        self.given += 1;
        let token = format!("token-{}", self.given);
        let next = format!("refresh-{}", self.given);
        let scopes = form.get("scope").unwrap_or(&self.scopes).clone();
        self.good.insert(token.clone(), scopes);
        let mut given = json!({"access_token": token, "token_type": "Bearer"});
        if form["grant_type"] != "client_credentials" {
            given["refresh_token"] = Value::String(next.clone());
            self.refresh = Some(next);
        }
        if let Some(lasts_s) = self.lasts_s {
            given["expires_in"] = json!(lasts_s);
        }
        Reply::json(200, &given)
    }
}

/// What an authorization server says of itself, at its root.
pub(super) fn metadata() -> Value {
    json!({
        "issuer": "{}",
        "authorization_endpoint": "{}/authorize?tenant=1",
        "token_endpoint": "{}/token",
        "registration_endpoint": "{}/register",
        "revocation_endpoint": "{}/revoke",
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
    })
}

/// Where a server says what its tokens are for.
pub(super) const RESOURCE: &str = "/.well-known/oauth-protected-resource/mcp";
/// Where an authorization server describes itself.
pub(super) const ISSUER: &str = "/.well-known/oauth-authorization-server";

/// A server that is both, and ourselves.
pub(super) struct Scene {
    pub(super) site: Site,
    pub(super) rules: Arc<Mutex<Rules>>,
    pub(super) clock: Arc<Still>,
    entropy: Arc<Counted>,
    pub(super) vault: Arc<dyn Vault>,
    pub(super) oauth: OauthConfig,
    pub(super) places: Option<LoginPlaces>,
}

impl Scene {
    /// A server of today that gives its tokens itself.
    pub(super) async fn new() -> Self {
        let resource = json!({"resource": "{}/mcp", "authorization_servers": ["{}"],
            "scopes_supported": ["read"]});
        let documents = [(RESOURCE.to_owned(), resource), (ISSUER.to_owned(), metadata())];
        let rules = Rules {
            good: BTreeMap::new(),
            needs: BTreeMap::new(),
            challenge: format!("Bearer resource_metadata=\"{{}}{RESOURCE}\""),
            documents: BTreeMap::from(documents),
            refresh: None,
            given: 0,
            scopes: String::new(),
            lasts_s: None,
            token: None,
            registers: json!({"client_id": "registered"}),
        };
        let rules = Arc::new(Mutex::new(rules));
        let ruled = rules.clone();
        let site = Site::start(move |root, asked| ruled.lock().unwrap().answer(root, asked)).await;
        let clock: Arc<Still> = Arc::default();
        Self {
            site,
            rules,
            vault: Arc::new(MemoryVault::new(clock.clone())),
            clock,
            entropy: Arc::default(),
            oauth: OauthConfig::default(),
            places: Some(LoginPlaces {
                callback: CALLBACK.to_owned(),
                client_metadata: None,
                shown_to_callers: true,
            }),
        }
    }

    /// Changes what the server does.
    pub(super) fn rule(&self, change: impl FnOnce(&mut Rules)) {
        change(&mut self.rules.lock().unwrap());
    }

    /// Changes what is said at a path.
    pub(super) fn document(&self, path: &str, change: impl FnOnce(&mut Value)) {
        self.rule(|rules| change(rules.documents.entry(path.to_owned()).or_default()));
    }

    /// What we are built from.
    pub(super) fn parts(&self) -> RemoteParts {
        RemoteParts {
            spawn: Arc::new(Beside),
            clock: self.clock.clone(),
            entropy: self.entropy.clone(),
            limits: Arc::new(Limits::default()),
            hops_max: HOPS_MAX,
            supervisor: None,
            vault: self.vault.clone(),
            login: self.places.clone(),
            scope: crate::Scope::default(),
        }
    }

    /// The upstream as it is configured.
    pub(super) fn config(&self) -> UpstreamConfig {
        UpstreamConfig {
            name: "far".to_owned(),
            prefix: "far.".to_owned(),
            kind: UpstreamKind::Http {
                url: format!("{}/mcp", self.site.url),
                headers: Vec::new(),
                oauth: self.oauth.clone(),
            },
            trusted: false,
            journal: true,
            timeout_ms: None,
            era: EraSetting::Auto,
            roots: Vec::new(),
            origin: "waypost.toml:1".to_owned(),
        }
    }

    /// Ourselves, started.
    pub(super) fn start(&self) -> Remote {
        Remote::start(vec![self.config()], self.parts())
    }

    /// Ourselves, with a login that is wanted.
    pub(super) async fn wanting(&self) -> (Remote, Page) {
        let remote = self.start();
        let fault = upstream(&remote).check().await.unwrap_err();
        assert_eq!(fault.name, "UpstreamLogin", "{fault:?}");
        let page = Page::of(upstream(&remote));
        (remote, page)
    }

    /// Ourselves, logged in.
    pub(super) async fn ready(&self) -> Remote {
        let (remote, page) = self.wanting().await;
        remote.finish_login(page.back()).await.unwrap();
        upstream(&remote).check().await.unwrap();
        remote
    }
}

/// The only upstream.
pub(super) fn upstream(remote: &Remote) -> &Upstream {
    &remote.upstreams()[0]
}

/// The outcome of a call of its only tool.
pub(super) async fn called(
    remote: &Remote,
    given: InputResponses,
) -> Result<ToolOutput, ToolError> {
    let tool = upstream(remote).tools().remove(0);
    let caller = Caller::new("default", "local");
    let call = Call {
        id: CallId(7),
        tool: "far.t".into(),
        arguments: Arc::new(json!({})),
        timeout_ms: 30_000,
        output_bytes_max: 1_000_000,
        given: Arc::new(given),
        teller: CallReporter::default(),
        context: CallContext::default(),
        can: kernel::tool::call::Abilities::PERSON,
    };
    tool.call(&caller, &call).await
}

/// The outcome of one that succeeds.
pub(super) fn done() -> Result<ToolOutput, ToolError> {
    Ok(ToolOutput::Value(json!({"content": [{"type": "text", "text": "done"}]})))
}

/// The page of a login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Page {
    /// Where it is, without the query.
    pub(super) place: String,
    /// Its query.
    pub(super) fields: BTreeMap<String, String>,
}

impl Page {
    /// The page that an upstream shows.
    pub(super) fn of(upstream: &Upstream) -> Self {
        Self::read(&upstream.login_url().unwrap())
    }

    /// The page behind a URL.
    pub(super) fn read(url: &str) -> Self {
        let (place, _) = url.split_once('?').unwrap();
        let url = reqwest::Url::parse(url).unwrap();
        let fields = url.query_pairs().map(|(key, value)| (key.into_owned(), value.into_owned()));
        Self { place: place.to_owned(), fields: fields.collect() }
    }

    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }

    /// What comes back from it, if all goes well.
    pub(super) fn back(&self) -> LoginCallback {
        let state = self.fields["state"].clone();
        LoginCallback { state, code: Some("the-code".to_owned()), ..LoginCallback::default() }
    }
}
