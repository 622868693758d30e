//! An MCP server that wants to know who asks, and the authorization server that vouches for us:
//! both at one address, small, and strict about what they are sent.

use crate::house::{assembled, text};
use axum::body::Body;
use axum::extract::{Query, Request, State};
use axum::http::header::{AUTHORIZATION, LOCATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use server::project::Project;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tower::ServiceExt;

type Fields = BTreeMap<String, String>;

/// Both servers; they end with the test.
pub struct LoginServer {
    pub base: String,
    seen: Arc<Seen>,
    router: Router,
    _data: TempDir,
}

/// What they were asked, and what they gave.
struct Seen {
    base: String,
    /// The MCP server behind the check.
    inner: Router,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// What each code was asked for.
    codes: BTreeMap<String, Fields>,
    access: Vec<String>,
    refresh: Vec<String>,
    redirects: Vec<String>,
    revoked: Vec<String>,
    refused: usize,
    given: usize,
}

impl LoginServer {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let data = tempfile::tempdir().unwrap();
        let inner = assembled(Project::demo(), &data, address, None).await.router;
        let base = format!("http://{address}");
        let seen = Arc::new(Seen { base: base.clone(), inner, kept: Mutex::default() });
        let router = Router::new()
            .route("/.well-known/oauth-protected-resource", get(resource))
            .route("/.well-known/oauth-protected-resource/mcp", get(resource))
            .route("/.well-known/oauth-authorization-server", get(metadata))
            .route("/register", post(register))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .route("/revoke", post(revoke))
            .route("/mcp", any(mcp))
            .with_state(seen.clone());
        let served = router.clone();
        tokio::spawn(async move { axum::serve(listener, served).await });
        Self { base, seen, router, _data: data }
    }

    /// A person opens the page and agrees: where they are sent.
    pub async fn agree(&self, page: &str) -> Uri {
        let page: Uri = page.parse().unwrap();
        assert_eq!(format!("http://{}", page.authority().unwrap()), self.base);
        let request = Request::builder().uri(page).body(Body::empty()).unwrap();
        let answer = self.router.clone().oneshot(request).await.unwrap();
        assert_eq!(answer.status(), StatusCode::FOUND);
        answer.headers()[LOCATION].to_str().unwrap().parse().unwrap()
    }

    /// All tokens that were ever given.
    pub fn secrets(&self) -> Vec<String> {
        let kept = self.seen.kept.lock().unwrap();
        [kept.access.clone(), kept.refresh.clone(), kept.revoked.clone()].concat()
    }

    /// The tokens that were given back.
    pub fn revoked(&self) -> Vec<String> {
        self.seen.kept.lock().unwrap().revoked.clone()
    }

    /// How often somebody asked without a token.
    pub fn refused(&self) -> usize {
        self.seen.kept.lock().unwrap().refused
    }
}

async fn resource(State(seen): State<Arc<Seen>>) -> Json<Value> {
    let base = &seen.base;
    Json(json!({"resource": format!("{base}/mcp"), "authorization_servers": [base],
        "scopes_supported": ["read"]}))
}

async fn metadata(State(seen): State<Arc<Seen>>) -> Json<Value> {
    let base = &seen.base;
    let at = |path: &str| format!("{base}{path}");
    Json(json!({
        "issuer": base,
        "authorization_endpoint": at("/authorize"),
        "token_endpoint": at("/token"),
        "registration_endpoint": at("/register"),
        "revocation_endpoint": at("/revoke"),
        "response_types_supported": ["code"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
        "authorization_response_iss_parameter_supported": true,
    }))
}

async fn register(State(seen): State<Arc<Seen>>, Json(body): Json<Value>) -> Response {
    let redirects = body["redirect_uris"].as_array().unwrap();
    seen.kept.lock().unwrap().redirects.extend(redirects.iter().map(text));
    let answer = json!({"client_id": "registered", "redirect_uris": redirects,
        "token_endpoint_auth_method": "none"});
    (StatusCode::CREATED, Json(answer)).into_response()
}

async fn authorize(State(seen): State<Arc<Seen>>, Query(asked): Query<Fields>) -> Response {
    let mut kept = seen.kept.lock().unwrap();
    assert_eq!(
        (asked["response_type"].as_str(), asked["client_id"].as_str()),
        ("code", "registered")
    );
    assert_eq!(asked["code_challenge_method"], "S256");
    assert_eq!(asked["resource"], format!("{}/mcp", seen.base));
    assert!(kept.redirects.contains(&asked["redirect_uri"]), "{asked:?}");
    kept.given += 1;
    let code = format!("hunter-code-{}", kept.given);
    let iss = seen.base.replace(':', "%3A").replace('/', "%2F");
    let back = format!("{}?code={code}&state={}&iss={iss}", asked["redirect_uri"], asked["state"]);
    kept.codes.insert(code, asked);
    (StatusCode::FOUND, [(LOCATION, back)]).into_response()
}

/// A form, read as a query is.
fn form(body: &str) -> Fields {
    let uri: Uri = format!("/?{body}").parse().unwrap();
    Query::<Fields>::try_from_uri(&uri).unwrap().0
}

async fn token(State(seen): State<Arc<Seen>>, body: String) -> Response {
    let sent = form(&body);
    let mut kept = seen.kept.lock().unwrap();
    let is_good = match sent["grant_type"].as_str() {
        // A code is good once, and only for who asked for it.
        "authorization_code" => kept.codes.remove(&sent["code"]).is_some_and(|asked| {
            let digest =
                ring::digest::digest(&ring::digest::SHA256, sent["code_verifier"].as_bytes());
            let same = |key: &str| sent.get(key) == asked.get(key);
            URL_SAFE_NO_PAD.encode(digest) == asked["code_challenge"]
                && ["redirect_uri", "client_id", "resource"].into_iter().all(same)
        }),
        "refresh_token" => kept.refresh.contains(&sent["refresh_token"]),
        other => panic!("{other}"),
    };
    if !is_good {
        let error = Json(json!({"error": "invalid_grant"}));
        return (StatusCode::BAD_REQUEST, error).into_response();
    }
    kept.given += 1;
    let (access, refresh) =
        (format!("hunter-access-{}", kept.given), format!("hunter-refresh-{}", kept.given));
    kept.access.push(access.clone());
    kept.refresh.push(refresh.clone());
    Json(json!({"access_token": access, "refresh_token": refresh, "token_type": "Bearer",
        "expires_in": 3600, "scope": "read"}))
    .into_response()
}

async fn revoke(State(seen): State<Arc<Seen>>, body: String) -> StatusCode {
    let given_back = form(&body)["token"].clone();
    let mut kept = seen.kept.lock().unwrap();
    kept.access.retain(|token| *token != given_back);
    kept.refresh.retain(|token| *token != given_back);
    kept.revoked.push(given_back);
    StatusCode::OK
}

async fn mcp(State(seen): State<Arc<Seen>>, request: Request) -> Response {
    if !is_known(&seen, request.headers()) {
        seen.kept.lock().unwrap().refused += 1;
        let place = format!("{}/.well-known/oauth-protected-resource/mcp", seen.base);
        let wanted = format!("Bearer resource_metadata=\"{place}\", scope=\"read\"");
        return (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, wanted)]).into_response();
    }
    seen.inner.clone().oneshot(request).await.unwrap()
}

fn is_known(seen: &Seen, headers: &HeaderMap) -> bool {
    let shown = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = shown.and_then(|value| value.strip_prefix("Bearer "));
    let kept = seen.kept.lock().unwrap();
    token.is_some_and(|token| kept.access.iter().any(|known| known == token))
}
