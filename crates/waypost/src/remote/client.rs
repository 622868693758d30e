//! The client of a running server: `/api/v1` over HTTP. A problem of the server becomes a failure
//! with its words, its hint and an exit code.

use crate::exit::{Exit, Failure, Result};
use crate::remote::credentials::explained;
use crate::remote::hints::in_commands;
use crate::remote::unproven::Unproven;
use kernel::values::secret::Secret;
use outbound::client::{ClientOptions, is_untrusted};
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Method, RequestBuilder, Response, Url};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use server::instance::CHALLENGE;
use std::time::Duration;
use wire::rest::{Health, Instance, Page};

/// Where the server listens unless told otherwise.
pub(crate) const DEFAULT_SERVER: &str = "http://127.0.0.1:8420";

const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// An idle connection is given up before the server does so: a request must not meet its end.
const IDLE_LIMIT: Duration = Duration::from_secs(60);
/// How long an answer may take beyond the time that the server was asked to wait.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// How long a server may take to say which one it is: a live one does so at once.
const INSTANCE_LIMIT: Duration = Duration::from_secs(5);

/// The code of a failure because a server's certificate is not trusted.
pub(crate) const UNTRUSTED: &str = "certificate";

/// The code of a failure because a server went away after it was asked and before it answered.
pub(crate) const CUT: &str = "stream_cut";

/// The largest page that a server gives.
const PAGE_ITEMS_MAX: usize = 200;

/// The header that names the realm of a request.
const REALM: &str = "X-Realm";

/// A client of one server.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    http: outbound::client::Client,
    base: Url,
    /// The API key that goes with every request, where there is one.
    key: Option<Secret>,
    /// The realm that every request is in, where one is named.
    realm: Option<String>,
    /// Where it may be the server of another project: it is read from only.
    unproven: Option<Unproven>,
}

/// Below which most requests are.
const V1: &[&str] = &["api", "v1"];
/// Below which those are that other systems define.
const API: &[&str] = &["api"];

/// One request: a path below `/api/v1` or `/api`, each segment as it is before encoding.
#[derive(Debug, Clone, Default)]
pub(crate) struct Request<'a> {
    base: &'static [&'static str],
    path: Vec<&'a str>,
    query: Vec<(&'static str, String)>,
    wait: Duration,
    key: Option<String>,
    condition: Option<(&'static str, String)>,
}

impl<'a> Request<'a> {
    /// A request for this path.
    pub(crate) fn to(path: &[&'a str]) -> Self {
        Self { base: V1, path: path.to_vec(), ..Self::default() }
    }

    /// A request for this path below `/api`.
    pub(crate) fn below_api(path: &[&'a str]) -> Self {
        Self { base: API, ..Self::to(path) }
    }

    /// The same with a query parameter, where there is a value.
    pub(crate) fn with(mut self, name: &'static str, value: Option<impl ToString>) -> Self {
        self.query.extend(value.map(|value| (name, value.to_string())));
        self
    }

    /// The same, answered once the run ends or pauses, at the latest after so many seconds.
    pub(crate) fn waiting(mut self, seconds: u64) -> Self {
        self.wait = Duration::from_secs(seconds);
        self.with("wait", Some(seconds))
    }

    /// The same, where the answer itself may take so many seconds more.
    pub(crate) fn taking(mut self, seconds: u64) -> Self {
        self.wait = Duration::from_secs(seconds);
        self
    }

    /// The same with the admin key, where there is one.
    pub(crate) fn keyed(mut self, key: Option<String>) -> Self {
        self.key = key;
        self
    }

    /// The same, done only if this header's condition holds.
    pub(crate) fn only_if(mut self, header: &'static str, value: String) -> Self {
        self.condition = Some((header, value));
        self
    }
}

impl Client {
    /// A client of the server at this address.
    pub(crate) fn new(server: &str) -> Result<Self> {
        let base = Url::parse(server)
            .ok()
            .filter(|url| url.has_host() && ["http", "https"].contains(&url.scheme()));
        let base = base.ok_or_else(|| {
            Failure::usage(format!("`{server}` is not the address of a server"))
                .hint(format!("give it as `--server {DEFAULT_SERVER}`"))
        })?;
        let options = ClientOptions::default().connect_within(CONNECT_LIMIT).idle_max(IDLE_LIMIT);
        // A proxy of this network cannot reach our own machine's loopback.
        let options = options.certified().only(&base).of_command(!is_loopback(&base));
        let http = options.build().map_err(|error| {
            Failure::new(Exit::Failed, "client", format!("cannot start a client: {error}"))
        })?;
        Ok(Self { http, base, key: None, realm: None, unproven: None })
    }

    /// The same, which sends this API key with every request, where there is one. What a stranger
    /// may ask, whether it is ready and which server it is, is asked without it.
    pub(crate) fn keyed(self, key: Option<String>) -> Self {
        Self { key: key.map(Secret::from), ..self }
    }

    /// The same, whose requests are in this realm, where one is named.
    pub(crate) fn in_realm(self, realm: Option<String>) -> Self {
        Self { realm, ..self }
    }

    /// The same, where this may be the server of another project.
    pub(crate) fn unproven(self, unproven: Option<Unproven>) -> Self {
        Self { unproven, ..self }
    }

    /// Fails where this may be the server of another project: nothing is changed there.
    pub(crate) fn must_be_ours(&self) -> Result<()> {
        self.unproven.as_ref().map_or(Ok(()), |unproven| Err(unproven.refused()))
    }

    /// Whether only this machine can be meant.
    pub(crate) fn is_on_this_machine(&self) -> bool {
        is_loopback(&self.base)
    }

    /// Reads.
    pub(crate) async fn get(&self, request: Request<'_>) -> Result<Value> {
        self.tell_unproven();
        let builder = self.builder(Method::GET, &request).timeout(ANSWER_LIMIT + request.wait);
        self.answer(builder).await
    }

    /// Reads what may not be there.
    pub(crate) async fn find<T: DeserializeOwned>(
        &self,
        request: Request<'_>,
    ) -> Result<Option<T>> {
        match self.get(request).await {
            Ok(body) => read(&body).map(Some),
            Err(failure) if failure.code == "not_found" => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Reads by a request with a body.
    pub(crate) async fn ask(&self, request: Request<'_>, body: &Value) -> Result<Value> {
        self.tell_unproven();
        let builder = self.builder(Method::POST, &request).timeout(ANSWER_LIMIT + request.wait);
        self.answer(carrying(builder, body)).await
    }

    /// Changes something.
    pub(crate) async fn post(&self, request: Request<'_>, body: &Value) -> Result<Value> {
        self.sent(Method::POST, request, body).await
    }

    /// Stores something under its name.
    pub(crate) async fn put(&self, request: Request<'_>, body: &Value) -> Result<Value> {
        self.sent(Method::PUT, request, body).await
    }

    /// The same where nothing is answered.
    pub(crate) async fn put_only(&self, request: Request<'_>, body: &Value) -> Result<()> {
        self.must_be_ours()?;
        let builder = self.builder(Method::PUT, &request).timeout(ANSWER_LIMIT + request.wait);
        self.opened(carrying(builder, body)).await.map(drop)
    }

    async fn sent(&self, method: Method, request: Request<'_>, body: &Value) -> Result<Value> {
        self.must_be_ours()?;
        let builder = self.builder(method, &request).timeout(ANSWER_LIMIT + request.wait);
        self.answer(carrying(builder, body)).await
    }

    /// Removes something.
    pub(crate) async fn delete(&self, request: Request<'_>) -> Result<()> {
        self.must_be_ours()?;
        let builder = self.builder(Method::DELETE, &request).timeout(ANSWER_LIMIT + request.wait);
        self.opened(builder).await.map(drop)
    }

    /// Reads a list, page by page, until it holds so many items: `{items, nextCursor}`.
    pub(crate) async fn list(&self, request: Request<'_>, limit: usize) -> Result<Value> {
        let mut items: Vec<Value> = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let size = (limit - items.len()).min(PAGE_ITEMS_MAX);
            let page = request.clone().with("limit", Some(size)).with("cursor", cursor.as_ref());
            let page: Page<Value> = read(&self.get(page).await?)?;
            let is_empty = page.items.is_empty();
            items.extend(page.items);
            cursor = page.next_cursor;
            if items.len() >= limit || cursor.is_none() || is_empty {
                return Ok(json!({"items": items, "nextCursor": cursor}));
            }
        }
    }

    /// The items of a list, each as what it should be.
    pub(crate) async fn items<T>(&self, request: Request<'_>, limit: usize) -> Result<Vec<T>>
    where
        T: DeserializeOwned,
    {
        let page: Page<T> = read(&self.list(request, limit).await?)?;
        Ok(page.items)
    }

    /// Whether the server can take work.
    pub(crate) async fn ready(&self) -> Result<()> {
        let url = self.at_root("readyz");
        let answer = self.answer(self.http.get(url).timeout(ANSWER_LIMIT)).await?;
        if answer["status"] == "ready" {
            return Ok(());
        }
        let what = format!("{} answers, but not as a Waypost server", self.base);
        Err(Failure::new(Exit::Upstream, "not_waypost", what).hint("see `--server`"))
    }

    /// How the server is, as far as it says; the admin key goes with it where there is no other.
    pub(crate) async fn health(&self, admin_key: Option<String>) -> Result<Health> {
        let mut url = self.at_root("readyz");
        url.set_query(Some("verbose"));
        let builder = self.http.get(url).timeout(ANSWER_LIMIT);
        let builder = match admin_key {
            Some(key) if self.key.is_none() => self.placed(builder).bearer_auth(key),
            _ => self.identified(builder),
        };
        read(&self.answer(builder).await?)
    }

    /// Which server it is, by what it answers to this challenge.
    pub(crate) async fn instance(&self, challenge: &str) -> Result<Instance> {
        let builder = self.http.get(self.at_root("livez")).header(CHALLENGE, challenge);
        let answer = self.answer(builder.timeout(INSTANCE_LIMIT)).await?;
        let health: Health = read(&answer)?;
        health.instance.ok_or_else(|| {
            let what = format!("{} does not say which server it is", self.base);
            Failure::new(Exit::Upstream, "not_waypost", what).hint("see `--server`")
        })
    }

    /// Opens an event stream, after this event where one is named.
    pub(crate) async fn stream(
        &self,
        request: Request<'_>,
        after: Option<&str>,
    ) -> Result<Response> {
        self.tell_unproven();
        let mut builder = self.builder(Method::GET, &request).header(ACCEPT, "text/event-stream");
        if let Some(id) = after {
            builder = builder.header("Last-Event-ID", id);
        }
        self.opened(builder).await
    }

    /// Says something in a thread, or answers in one: `endpoint` is `run` or `resume`. The answer comes
    /// once the run ended or paused, at the latest after so many seconds.
    pub(crate) async fn thread(&self, endpoint: &str, wait: u64, body: &Value) -> Result<Value> {
        self.must_be_ours()?;
        let mut url = self.at_root(endpoint);
        url.query_pairs_mut().append_pair("wait", &wait.to_string());
        let builder = self.http.post(url).timeout(ANSWER_LIMIT + Duration::from_secs(wait));
        self.answer(carrying(self.identified(builder), body)).await
    }

    /// The same as a stream of events, for as long as it takes. Under one key it is done once,
    /// however often it is sent.
    pub(crate) async fn thread_stream(
        &self,
        endpoint: &str,
        key: &str,
        body: &Value,
    ) -> Result<Response> {
        self.must_be_ours()?;
        let builder = self.http.post(self.at_root(endpoint)).header(ACCEPT, "text/event-stream");
        let builder = carrying(self.identified(builder), body).header("Idempotency-Key", key);
        let sent = builder.send().await;
        let response = sent.map_err(|error| match error.is_connect() || error.is_timeout() {
            true => self.unreachable(&error),
            false => cut_off(&error),
        })?;
        self.accepted(response).await
    }

    /// Sends a request to a path of the server, and gives the answer as it is, whatever its status.
    /// What is not JSON is a text.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Result<(u16, Value)> {
        let url = self.base.join(path).map_err(|error| {
            Failure::usage(format!("`{path}` is not a path of a server: {error}"))
        })?;
        let mut builder = self.http.request(method, url).timeout(ANSWER_LIMIT);
        for (name, value) in headers {
            builder = builder.header(*name, *value);
        }
        if let Some(body) = body {
            builder = builder.body(body.to_string());
        }
        let response = builder.send().await.map_err(|error| self.unreachable(&error))?;
        let status = response.status().as_u16();
        let bytes = response.bytes().await.map_err(|error| self.unreachable(&error))?;
        let text = || Value::from(String::from_utf8_lossy(&bytes).into_owned());
        Ok((status, serde_json::from_slice(&bytes).unwrap_or_else(|_| text())))
    }

    /// A request to where MCP clients come in.
    pub(crate) fn mcp(&self, method: Method) -> RequestBuilder {
        self.identified(self.http.request(method, self.mcp_url()))
    }

    /// Where MCP clients come in.
    pub(crate) fn mcp_url(&self) -> Url {
        self.at_root("mcp")
    }

    /// An endpoint that is not below `/api/v1`.
    fn at_root(&self, endpoint: &str) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().push(endpoint);
        }
        url
    }

    pub(crate) fn builder(&self, method: Method, request: &Request<'_>) -> RequestBuilder {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(request.base).extend(&request.path);
        }
        if !request.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&request.query);
        }
        let mut builder = self.http.request(method, url);
        if let Some((header, value)) = &request.condition {
            builder = builder.header(*header, value);
        }
        match &request.key {
            Some(key) if self.key.is_none() => self.placed(builder).bearer_auth(key),
            _ => self.identified(builder),
        }
    }

    /// The same request in the realm that is named.
    fn placed(&self, builder: RequestBuilder) -> RequestBuilder {
        match &self.realm {
            Some(realm) => builder.header(REALM, realm),
            None => builder,
        }
    }

    /// The same request with the API key, where there is one, in the realm that is named.
    fn identified(&self, builder: RequestBuilder) -> RequestBuilder {
        let builder = self.placed(builder);
        match &self.key {
            Some(key) => builder.bearer_auth(key.expose()),
            None => builder,
        }
    }

    pub(crate) fn tell_unproven(&self) {
        if let Some(unproven) = &self.unproven {
            unproven.tell();
        }
    }

    async fn answer(&self, builder: RequestBuilder) -> Result<Value> {
        let response = self.opened(builder).await?;
        let bytes = response.bytes().await.map_err(|error| self.unreachable(&error))?;
        serde_json::from_slice(&bytes).map_err(|error| {
            let what = format!("{} answered something else than JSON: {error}", self.base);
            Failure::new(Exit::Upstream, "not_json", what)
                .hint("is this a Waypost server? see `--server`")
        })
    }

    /// Sends a request; an answer that refuses it is a failure.
    pub(crate) async fn opened(&self, builder: RequestBuilder) -> Result<Response> {
        let response = builder.send().await.map_err(|error| self.unreachable(&error))?;
        self.accepted(response).await
    }

    /// The same answer, unless it refuses the request.
    async fn accepted(&self, response: Response) -> Result<Response> {
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status().as_u16();
        let bytes = response.bytes().await.unwrap_or_default();
        Err(self.refused(status, serde_json::from_slice(&bytes).ok()))
    }

    /// What the server refused, in its own words, and what to do about a credential here.
    pub(crate) fn refused(&self, status: u16, body: Option<Value>) -> Failure {
        explained(problem(status, body), self.key.is_some())
    }

    /// Why a request got no answer.
    pub(crate) fn unreachable(&self, error: &reqwest::Error) -> Failure {
        let server = self.base.as_str().trim_end_matches('/');
        if error.is_timeout() && !error.is_connect() {
            let what = format!("`{server}` did not answer in time");
            return Failure::new(Exit::Timeout, "timeout", what)
                .hint("it may still be at work: see `waypost session ls`");
        }
        let why = innermost(error);
        if is_untrusted(error) {
            let what = format!("the certificate of `{server}` is not trusted: {why}");
            return Failure::new(Exit::Unreachable, UNTRUSTED, what).hint(
                "name the server as its certificate does, with `--server` or `WAYPOST_SERVER`; set \
                 `SSL_CERT_FILE` to the certificates that you trust, if it is of your own making",
            );
        }
        Failure::new(Exit::Unreachable, "unreachable", format!("no server at `{server}`: {why}"))
            .hint("start one with `waypost up`, or name another with `--server URL`")
    }
}

/// Why a request that was sent got no answer.
fn cut_off(error: &reqwest::Error) -> Failure {
    let what = format!("the connection was cut before the answer came: {}", innermost(error));
    Failure::new(Exit::Unreachable, CUT, what)
        .hint("the agent may be at work; `waypost session show` shows its status")
}

fn carrying(builder: RequestBuilder, body: &Value) -> RequestBuilder {
    builder.header(CONTENT_TYPE, "application/json").body(body.to_string())
}

/// An answer as what it should be.
pub(crate) fn read<T: DeserializeOwned>(body: &Value) -> Result<T> {
    T::deserialize(body).map_err(|error| {
        let what = format!("the server's answer reads differently than expected: {error}");
        Failure::new(Exit::Upstream, "answer", what)
            .hint("is the server of another release? `--json` shows the answer as it is")
    })
}

/// What the server refused, in its own words.
pub(crate) fn problem(status: u16, body: Option<Value>) -> Failure {
    let text = |name: &str| {
        let value = body.as_ref().and_then(|body| body.get(name));
        value.and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    // Endpoints that other systems define send the stable word as `error`.
    let named = text("error").filter(|_| text("code").is_none()).zip(text("message"));
    let (code, message) = named.unwrap_or_else(|| {
        let message = ["detail", "error", "message", "title"].into_iter().find_map(text);
        let message = message.unwrap_or_else(|| format!("the server answered {status}"));
        (text("code").unwrap_or_else(|| format!("http_{status}")), message)
    });
    let errors = body.as_ref().and_then(|body| body["errors"].as_array());
    let lines = errors.into_iter().flatten().filter_map(|error| faulty_value(error, &message));
    let lines: Vec<String> = lines.collect();
    // A failed step waits for a person, whatever endpoint tells it.
    let exit = if code == "run_stuck" { Exit::Paused } else { exit_of(status) };
    let failure = Failure::new(exit, &code, message).lines(lines);
    let hint = text("hint").map(in_commands);
    Failure { hint, problem: body.map(Box::new), ..failure }
}

/// `/a: must be a number` out of one entry of a problem's `errors`, unless the message says what is
/// wrong, and where.
fn faulty_value(error: &Value, message: &str) -> Option<String> {
    let detail = error["detail"].as_str()?;
    let pointer = error["pointer"].as_str().unwrap_or_default();
    let member = pointer.rfind('/').map_or("", |slash| &pointer[slash..]);
    if message.contains(detail) && message.contains(member) {
        return None;
    }
    match pointer {
        "" => Some(detail.to_owned()),
        pointer => Some(format!("{pointer}: {detail}")),
    }
}

fn exit_of(status: u16) -> Exit {
    match status {
        400 | 413 | 415 | 422 => Exit::Usage,
        401 => Exit::Auth,
        403 => Exit::Denied,
        408 | 504 => Exit::Timeout,
        502 => Exit::Upstream,
        _ => Exit::Failed,
    }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || address.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The cause that a person can act on stands at the end of the chain: `Connection refused`.
pub(crate) fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn url(server: &str, request: &Request<'_>) -> String {
        let client = Client::new(server).unwrap();
        client.builder(Method::GET, request).build().unwrap().url().to_string()
    }

    #[test]
    fn segments_and_values_are_encoded() {
        let request = Request::to(&["plans", "math/other ü"]).with("status", Some("a&b"));
        assert_eq!(
            url("http://127.0.0.1:1/", &request),
            "http://127.0.0.1:1/api/v1/plans/math%2Fother%20%C3%BC?status=a%26b"
        );
        let request = Request::to(&["tools"]).with("cursor", None::<&str>);
        assert_eq!(url("http://host/prefix", &request), "http://host/prefix/api/v1/tools");
        let request = Request::below_api(&["agent", "schema", "a/b"]);
        assert_eq!(url("http://host", &request), "http://host/api/agent/schema/a%2Fb");
        let mcp = |server: &str| Client::new(server).unwrap().mcp_url().to_string();
        assert_eq!(mcp("http://127.0.0.1:1"), "http://127.0.0.1:1/mcp");
        assert_eq!(mcp("http://host/prefix/"), "http://host/prefix/mcp");
    }

    #[test]
    fn an_api_key_goes_with_every_request_and_is_never_shown() {
        let client = Client::new("http://127.0.0.1:1").unwrap();
        let sent = |client: &Client, builder: RequestBuilder| {
            assert!(!format!("{client:?}").contains("wp_key"), "{client:?}");
            let request = builder.build().unwrap();
            let header = request.headers().get("authorization");
            header.map(|value| value.to_str().unwrap().to_owned())
        };
        let read = |client: &Client, key: Option<&str>| {
            let request = Request::to(&["tools"]).keyed(key.map(str::to_owned));
            sent(client, client.builder(Method::GET, &request))
        };
        let bearer = |key: &str| Some(format!("Bearer {key}"));
        assert_eq!((read(&client, None), read(&client, Some("admin"))), (None, bearer("admin")));
        let keyed = client.clone().keyed(Some("wp_key".to_owned()));
        assert_eq!(read(&keyed, None), bearer("wp_key"));
        assert_eq!(read(&keyed, Some("admin")), bearer("wp_key"));
        assert_eq!(sent(&keyed, keyed.mcp(Method::POST)), bearer("wp_key"));
        assert_eq!(sent(&client, client.mcp(Method::POST)), None);
    }

    #[test]
    fn every_request_names_the_chosen_realm() {
        let client = Client::new("http://127.0.0.1:1").unwrap();
        let realm = |builder: RequestBuilder| {
            let request = builder.build().unwrap();
            request.headers().get(REALM).map(|value| value.to_str().unwrap().to_owned())
        };
        let request = Request::to(&["tools"]).keyed(Some("admin".to_owned()));
        assert_eq!(realm(client.builder(Method::GET, &request)), None);
        let placed = client.in_realm(Some("acme".to_owned()));
        for client in [placed.clone(), placed.keyed(Some("wp_key".to_owned()))] {
            let acme = Some("acme".to_owned());
            assert_eq!(realm(client.builder(Method::GET, &request)), acme);
            assert_eq!(realm(client.mcp(Method::POST)), acme);
        }
    }

    #[test]
    fn an_invalid_server_address_is_refused() {
        for server in ["127.0.0.1:8420", "ftp://host", "", "http://"] {
            assert_eq!(Client::new(server).unwrap_err().exit, Exit::Usage, "{server}");
        }
    }

    #[test]
    fn hints_name_commands_instead_of_routes() {
        let hint = |said: &str| problem(404, Some(json!({"hint": said}))).hint.unwrap();
        assert_eq!(hint("`GET /api/v1/sinks` lists them"), "`waypost events sinks` lists them");
        let asks = hint("`GET /api/v1/asks` lists the open asks");
        assert_eq!(asks, "`waypost inbox ls` lists the open asks");
        let decided = hint("the decision stands; GET the ask to see it");
        assert_eq!(decided, "the decision stands; `waypost inbox show` shows it");
        assert_eq!(hint("did you mean `math::add`?"), "did you mean `math::add`?");
    }

    #[test]
    fn a_problem_keeps_the_servers_words() {
        let body = json!({
            "detail": "the input does not fit",
            "code": "wrong_shape",
            "hint": "see the schema",
            "errors": [{"pointer": "/a", "detail": "is no number"}],
        });
        let failure = problem(422, Some(body));
        assert_eq!(
            failure.to_string(),
            "error: the input does not fit\n  /a: is no number\nhint: see the schema"
        );
        assert_eq!((failure.exit, failure.code.as_str()), (Exit::Usage, "wrong_shape"));
        let twice = json!({
            "detail": "it does not fit: at `/a`: is no number",
            "errors": [{"pointer": "/a", "detail": "is no number"}],
        });
        let told = problem(422, Some(twice)).to_string();
        assert_eq!(told, "error: it does not fit: at `/a`: is no number", "told once");
        assert_eq!(problem(500, None).message, "the server answered 500");
        let named = problem(404, Some(json!({"error": "NotFound", "message": "it is not there"})));
        assert_eq!((named.code.as_str(), named.message.as_str()), ("NotFound", "it is not there"));
        let stuck = json!({"status": "error", "message": "it is stuck", "code": "run_stuck"});
        let failure = problem(500, Some(stuck));
        assert_eq!((failure.exit, failure.message.as_str()), (Exit::Paused, "it is stuck"));
    }
}
