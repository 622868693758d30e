//! An MCP server that wants to know who asks, and the authorization server that vouches for its
//! clients: both at one address, on threads of their own, strict about what they are sent, and
//! without a line of the product's code. Of each login only the pair of tokens that was given last
//! is good: a refresh token is taken once, and with it goes the access token beside it. So this
//! server knows which tokens a client that was killed can have lost.

use crate::harness::wait_for;
use crate::http::{Client, Connection, Message};
use crate::upstream::Endpoint;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How every token and every code begins.
pub const MARK: &str = "hunter-";

/// A client may keep a connection idle; no test takes as long as this.
const IDLE_LIMIT: Duration = Duration::from_secs(3_600);
const HOUR_S: u64 = 3_600;
/// How long someone else may hold the address that is wanted.
const BIND_LIMIT: Duration = Duration::from_secs(300);
/// The tokens of a server that took another's place are numbered from here on.
const MADE_BEFORE: u64 = 1_000;
const CLIENT: &str = "registered";

type Fields = BTreeMap<String, String>;

/// Both servers; their address is free again when this is dropped.
pub struct LoginServer {
    /// Their address, as a URL without a path.
    pub base: String,
    address: SocketAddr,
    desk: Arc<Desk>,
    is_over: Arc<AtomicBool>,
    accepting: Option<thread::JoinHandle<()>>,
}

/// What a client has of a server that was at an address before.
#[derive(Debug, Clone, Copy)]
pub struct Before<'a> {
    pub address: SocketAddr,
    /// What renews its token; the token itself is good no more.
    pub refresh: &'a str,
    /// Where the client's logins come back to.
    pub callback: &'a str,
}

/// What was given, and how much of it was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Given {
    /// Logins that were finished.
    pub logins: usize,
    /// Tokens that were renewed.
    pub renewals: usize,
    /// Logins whose last pair of tokens never reached its client.
    pub lost: usize,
}

struct Desk {
    base: String,
    /// The MCP server behind the check.
    inner: Endpoint,
    /// How long tokens are said to last.
    lasts_s: u64,
    /// How long an answer with tokens takes after they were made.
    delay: Duration,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    redirects: BTreeSet<String>,
    /// What each code was asked for.
    codes: BTreeMap<String, Fields>,
    made: u64,
    logins: Vec<Login>,
    revoked: Vec<String>,
    refused: usize,
    faults: Vec<String>,
}

/// The outcome of one login: pairs of tokens, each in the place of the one before.
struct Login {
    pairs: Vec<Pair>,
    is_over: bool,
    is_lost: bool,
}

struct Pair {
    access: String,
    refresh: String,
    /// Whether the client showed one of the two: then it has both.
    is_used: bool,
}

impl Drop for LoginServer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        // It looks at that with its next visitor.
        let woken = TcpStream::connect(self.address).is_ok();
        if let Some(accepting) = self.accepting.take().filter(|_| woken) {
            let _ = accepting.join();
        }
    }
}

impl LoginServer {
    /// Starts both; tokens last for an hour.
    pub fn start() -> Self {
        Self::giving(HOUR_S, Duration::ZERO)
    }

    /// The same with tokens that last so long, and are answered so long after they were made.
    pub fn giving(lasts_s: u64, delay: Duration) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let listener = listener.unwrap_or_else(|error| panic!("no login server: {error}"));
        Self::listening(listener, Desk::new(lasts_s, delay))
    }

    /// Takes the place of one that is gone: its client has to renew its token, and can.
    pub fn after(before: &Before<'_>) -> Self {
        let address = before.address;
        let what = format!("{address} to be free");
        let listener = wait_for(&what, BIND_LIMIT, || TcpListener::bind(address).ok());
        let access = format!("{MARK}over");
        let refresh = before.refresh.to_owned();
        let pair = Pair { access, refresh, is_used: true };
        let desk = Desk::new(HOUR_S, Duration::ZERO);
        {
            let mut kept = desk.kept();
            kept.redirects.insert(before.callback.to_owned());
            kept.logins.push(Login { pairs: vec![pair], is_over: false, is_lost: false });
            kept.made = MADE_BEFORE;
        }
        Self::listening(listener, desk)
    }

    fn listening(listener: TcpListener, mut desk: Desk) -> Self {
        let address = listener.local_addr().unwrap_or_else(|error| panic!("no address: {error}"));
        let base = format!("http://{address}");
        desk.base.clone_from(&base);
        let desk = Arc::new(desk);
        let is_over = Arc::new(AtomicBool::new(false));
        let serving = desk.clone();
        let ended = is_over.clone();
        let accepting = thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if ended.load(Ordering::SeqCst) {
                    return;
                }
                let desk = serving.clone();
                thread::spawn(move || desk.converse(stream));
            }
        });
        Self { base, address, desk, is_over, accepting: Some(accepting) }
    }

    /// A person opens the page and agrees: the address that they are sent to.
    pub fn agree(&self, page: &str) -> String {
        let path = page.strip_prefix(&self.base);
        let path = path.unwrap_or_else(|| panic!("`{page}` is a page of somebody else"));
        let answer = Client::new(self.address).get(path);
        let answer = answer.unwrap_or_else(|error| panic!("`{page}`: {error}"));
        let to = answer.header("location").filter(|_| answer.status == 302);
        to.unwrap_or_else(|| panic!("`{page}`: {} {}", answer.status, answer.body)).to_owned()
    }

    /// Whether a client may want a login: there was none, or it never showed the tokens that were
    /// given last, and may not have them.
    pub fn is_login_due(&self) -> bool {
        let kept = self.desk.kept();
        kept.logins.last().and_then(|login| login.pairs.last()).is_none_or(|pair| !pair.is_used)
    }

    /// What was given, and how much of it was lost.
    pub fn given(&self) -> Given {
        let kept = self.desk.kept();
        let logins = kept.logins.len();
        let pairs: usize = kept.logins.iter().map(|login| login.pairs.len()).sum();
        let lost = kept.logins.iter().filter(|login| login.is_lost).count();
        Given { logins, renewals: pairs - logins, lost }
    }

    /// All tokens that were ever given.
    pub fn secrets(&self) -> Vec<String> {
        let kept = self.desk.kept();
        let pairs = kept.logins.iter().flat_map(|login| &login.pairs);
        pairs.flat_map(|pair| [pair.access.clone(), pair.refresh.clone()]).collect()
    }

    /// The tokens that were given back.
    pub fn revoked(&self) -> Vec<String> {
        self.desk.kept().revoked.clone()
    }

    /// How often someone asked without a good token.
    pub fn refused(&self) -> usize {
        self.desk.kept().refused
    }

    /// What was wrong with requests.
    pub fn faults(&self) -> Vec<String> {
        self.desk.kept().faults.clone()
    }
}

impl Desk {
    /// One that does not know its address yet.
    fn new(lasts_s: u64, delay: Duration) -> Self {
        let inner = Endpoint::new();
        let kept = Mutex::default();
        Self { base: String::new(), inner, lasts_s, delay, kept }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn converse(&self, stream: TcpStream) {
        let Ok(mut connection) = Connection::new(stream) else { return };
        while let Ok(Some(request)) = connection.read(IDLE_LIMIT) {
            if !self.answer(&mut connection, &request) || request.closes {
                return;
            }
        }
    }

    /// Answers one request; whether its connection can be used for another.
    fn answer(&self, connection: &mut Connection, request: &Message) -> bool {
        let mut words = request.first_line.split(' ');
        let method = words.next().unwrap_or_default();
        let target = words.next().unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let answer = match (method, path) {
            (_, "/mcp") if self.is_known(request) => return self.inner.take(connection, request),
            (_, "/mcp") => Ok(self.refusal()),
            (
                "GET",
                "/.well-known/oauth-protected-resource"
                | "/.well-known/oauth-protected-resource/mcp",
            ) => Ok(json_answer(200, &self.resource())),
            ("GET", "/.well-known/oauth-authorization-server") => {
                Ok(json_answer(200, &self.metadata()))
            }
            ("POST", "/register") => self.register(&request.body),
            ("GET", "/authorize") => self.authorize(fields(query)),
            // A client that is dead by now can have nothing: what they sent comes too late.
            ("POST", "/token") if !connection.is_open() => return false,
            ("POST", "/token") => self.token(&fields(&request.body)),
            ("POST", "/revoke") => self.revoke(&fields(&request.body)),
            _ => Ok(head(404, "")),
        };
        let answer = answer.unwrap_or_else(|fault| {
            self.kept().faults.push(format!("{method} {path}: {fault}"));
            json_answer(400, &json!({"error": "invalid_request"}))
        });
        connection.write(answer.as_bytes()).is_ok()
    }

    fn resource(&self) -> Value {
        let base = &self.base;
        json!({"resource": format!("{base}/mcp"), "authorization_servers": [base],
            "scopes_supported": ["read"]})
    }

    fn metadata(&self) -> Value {
        let at = |path: &str| format!("{}{path}", self.base);
        json!({
            "issuer": self.base,
            "authorization_endpoint": at("/authorize"),
            "token_endpoint": at("/token"),
            "registration_endpoint": at("/register"),
            "revocation_endpoint": at("/revoke"),
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
            "authorization_response_iss_parameter_supported": true,
        })
    }

    fn register(&self, body: &str) -> Result<String, String> {
        let body: Value = serde_json::from_str(body).map_err(|error| error.to_string())?;
        let redirects = body["redirect_uris"].as_array().ok_or("no `redirect_uris`")?;
        let texts = redirects.iter().filter_map(Value::as_str).map(str::to_owned);
        self.kept().redirects.extend(texts);
        let client = json!({"client_id": CLIENT, "redirect_uris": redirects,
            "token_endpoint_auth_method": "none"});
        Ok(json_answer(201, &client))
    }

    fn authorize(&self, asked: Fields) -> Result<String, String> {
        let resource = format!("{}/mcp", self.base);
        for (name, expected) in [
            ("response_type", "code"),
            ("client_id", CLIENT),
            ("code_challenge_method", "S256"),
            ("resource", resource.as_str()),
        ] {
            if asked.get(name).map(String::as_str) != Some(expected) {
                return Err(format!("`{name}` is not `{expected}`: {asked:?}"));
            }
        }
        let (Some(to), Some(state)) = (asked.get("redirect_uri"), asked.get("state")) else {
            return Err(format!("no `redirect_uri` or no `state`: {asked:?}"));
        };
        let mut kept = self.kept();
        if !kept.redirects.contains(to) {
            return Err(format!("`{to}` was not registered"));
        }
        kept.made += 1;
        let code = format!("{MARK}code-{}", kept.made);
        let iss = encoded(&self.base);
        let state = encoded(state);
        let back = format!("location: {to}?code={code}&state={state}&iss={iss}\r\n");
        kept.codes.insert(code, asked);
        Ok(head(302, &back))
    }

    fn token(&self, sent: &Fields) -> Result<String, String> {
        let field = |name: &str| sent.get(name).map(String::as_str).unwrap_or_default();
        let given = match field("grant_type") {
            "authorization_code" => self.kept().by_code(sent),
            "refresh_token" => self.kept().by_refresh(field("refresh_token"))?,
            other => return Err(format!("no such `grant_type`: `{other}`")),
        };
        let Some((access, refresh)) = given else {
            return Ok(json_answer(400, &json!({"error": "invalid_grant"})));
        };
        thread::sleep(self.delay);
        let tokens = json!({"access_token": access, "refresh_token": refresh,
            "token_type": "Bearer", "expires_in": self.lasts_s, "scope": "read"});
        Ok(json_answer(200, &tokens))
    }

    fn revoke(&self, sent: &Fields) -> Result<String, String> {
        let token = sent.get("token").ok_or("no `token`")?;
        let mut kept = self.kept();
        for login in kept.logins.iter_mut().filter(|login| login.place(token).is_some()) {
            login.is_over = true;
        }
        kept.revoked.push(token.clone());
        Ok(head(200, ""))
    }

    /// Whether a request shows the newest token of a login that is not over.
    fn is_known(&self, request: &Message) -> bool {
        let shown = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
        let mut kept = self.kept();
        let good = kept.logins.iter_mut().filter(|login| !login.is_over);
        let mut newest = good.filter_map(|login| login.pairs.last_mut());
        let Some(pair) = newest.find(|pair| Some(pair.access.as_str()) == shown) else {
            return false;
        };
        pair.is_used = true;
        true
    }

    fn refusal(&self) -> String {
        self.kept().refused += 1;
        let place = format!("{}/.well-known/oauth-protected-resource/mcp", self.base);
        let wanted = format!("Bearer resource_metadata=\"{place}\", scope=\"read\"");
        head(401, &format!("www-authenticate: {wanted}\r\n"))
    }
}

impl Kept {
    /// A code is good once, and only for who asked for it.
    fn by_code(&mut self, sent: &Fields) -> Option<(String, String)> {
        let asked = self.codes.remove(sent.get("code")?)?;
        let proof = URL_SAFE_NO_PAD.encode(digest(&SHA256, sent.get("code_verifier")?.as_bytes()));
        let same = |name: &str| sent.get(name) == asked.get(name);
        let is_theirs = asked.get("code_challenge") == Some(&proof)
            && ["redirect_uri", "client_id", "resource"].into_iter().all(same);
        if !is_theirs {
            return None;
        }
        let pair = self.pair();
        let tokens = pair.tokens();
        self.logins.push(Login { pairs: vec![pair], is_over: false, is_lost: false });
        Some(tokens)
    }

    /// A refresh token is good until it is used. Who sends one again has lost what was given for
    /// it, which is against the rules for a client that has shown it.
    fn by_refresh(&mut self, token: &str) -> Result<Option<(String, String)>, String> {
        let next = self.pair();
        let login = self.logins.iter_mut().find(|login| login.place(token).is_some());
        let login = login.ok_or_else(|| format!("`{token}` was never given"))?;
        let is_newest = login.place(token) == Some(login.pairs.len() - 1);
        let Some(newest) = login.pairs.last_mut() else { return Ok(None) };
        if login.is_over {
            return Ok(None);
        }
        if !is_newest {
            login.is_over = true;
            login.is_lost = true;
            return match newest.is_used {
                true => Err(format!("`{token}` came again, and what replaced it was in use")),
                false => Ok(None),
            };
        }
        newest.is_used = true;
        let tokens = next.tokens();
        login.pairs.push(next);
        Ok(Some(tokens))
    }

    fn pair(&mut self) -> Pair {
        self.made += 1;
        let token = |kind: &str| format!("{MARK}{kind}-{}", self.made);
        Pair { access: token("access"), refresh: token("refresh"), is_used: false }
    }
}

impl Login {
    /// Which of its pairs has this token.
    fn place(&self, token: &str) -> Option<usize> {
        self.pairs.iter().position(|pair| pair.access == token || pair.refresh == token)
    }
}

impl Pair {
    fn tokens(&self) -> (String, String) {
        (self.access.clone(), self.refresh.clone())
    }
}

fn json_answer(status: u16, body: &Value) -> String {
    let body = body.to_string();
    let length = body.len();
    format!(
        "HTTP/1.1 {status} Said\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
}

/// An answer without a body; `more` are whole header lines.
fn head(status: u16, more: &str) -> String {
    format!("HTTP/1.1 {status} Said\r\n{more}content-length: 0\r\n\r\n")
}

/// The fields of a query or a form.
fn fields(text: &str) -> Fields {
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (decoded(name), decoded(value))).collect()
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let number = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        rest = match (byte, number) {
            (b'%', Some(number)) => {
                bytes.push(number);
                &after[2..]
            }
            (b'+', _) => {
                bytes.push(b' ');
                after
            }
            (byte, _) => {
                bytes.push(*byte);
                after
            }
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a login of no one in particular gives.
    fn logged_in() -> (Kept, String) {
        let mut kept = Kept::default();
        let pair = kept.pair();
        let refresh = pair.refresh.clone();
        kept.logins.push(Login { pairs: vec![pair], is_over: false, is_lost: false });
        (kept, refresh)
    }

    #[test]
    fn a_refresh_token_is_good_once() {
        let (mut kept, first) = logged_in();
        let (_, second) = kept.by_refresh(&first).unwrap().unwrap();
        assert_ne!(second, first);
        assert!(kept.by_refresh(&second).unwrap().is_some());
        // What replaced the second was never shown: it may be lost, and the login is over.
        assert_eq!(kept.by_refresh(&second), Ok(None));
        assert!(kept.logins[0].is_lost);
        assert_eq!(kept.by_refresh(&second), Ok(None));
    }

    #[test]
    fn a_client_that_reuses_a_used_token_is_reported() {
        let (mut kept, first) = logged_in();
        let (_, second) = kept.by_refresh(&first).unwrap().unwrap();
        kept.by_refresh(&second).unwrap().unwrap();
        kept.logins[0].pairs[2].is_used = true;
        assert!(kept.by_refresh(&first).is_err());
        assert!(kept.by_refresh("nobody's").is_err());
    }

    #[test]
    fn fields_are_read() {
        let read = fields("a=1+2&b=x%26y%3D%C3%BC&c=%zz&d");
        let pairs = [("a", "1 2"), ("b", "x&y=\u{fc}"), ("c", "%zz")];
        let expected = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(read, Fields::from(expected));
        assert_eq!(decoded(&encoded("http://a:1/b?c=d e")), "http://a:1/b?c=d e");
    }
}
