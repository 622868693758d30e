//! Logins at upstream servers. An administrator begins and ends one; a person
//! comes back from it with their browser, and the state they bring is the proof that they were
//! sent. What a login brings is the server's: all callers share it, as they share the connection.
//! Where callers log in for themselves, it is theirs, once they prove that they finished it.

use super::pages::page;
use super::upstreams::{member, running};
use axum::Json;
use axum::extract::{Query, State};
use axum::http::header::{AUTHORIZATION, CACHE_CONTROL, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use edge::problem::{Failure, Result};
use edge::request::body::JsonBody;
use edge::request::params::PathName;
use edge::request::rate::TooSoon;
use edge::request::server_state::{Administrator, ServerState, Shared, Who, missing_scope};
use engine::refusal::{Refusal, RefusalCode};
use kernel::tool::call::Caller;
use kernel::values::caller::Act;
use kernel::values::fault::Fault;
use kernel::values::ids::ToolName;
use project::upstream_entries::cleaned;
use serde_json::{Value, json};
use std::sync::Arc;
use upstreams::{
    Grant, LoginCallback, LoginPlaces, LoginResult, Upstream, UpstreamConfig, UpstreamKind,
};
use wire::rest::{LoginProof, UpstreamLogin};

/// The longest query that someone comes back with: codes are long, but not so long.
const QUERY_BYTES_MAX: usize = 16 * 1024;

/// `POST /upstreams/{name}/login`: begins a login; the page where someone continues with it.
pub(crate) async fn begin(
    Administrator { server, caller }: Administrator,
    PathName(name): PathName,
) -> Result<Json<UpstreamLogin>> {
    let member = member(&server, &caller, &name)?;
    let upstream = running(&member)?;
    let config = upstream.config();
    if has_logins(config)? == Grant::Ourselves {
        let what = format!("`oauth` of upstream `{name}` says that we log in ourselves");
        let hint =
            format!("nothing is to be done; `waypost mcp test {name}` says whether it works");
        return Err(no_login(what).hint(hint));
    }
    server.logins_begun.take(&caller, server.engine.clock().now()).map_err(too_many)?;
    let url = upstream.begin_login().await.map_err(|fault| failed(fault, config))?;
    Ok(Json(UpstreamLogin { url }))
}

/// `DELETE /upstreams/{name}/login`: what a login brought is forgotten, here and where it can be
/// there.
pub(crate) async fn end(
    Administrator { server, caller }: Administrator,
    PathName(name): PathName,
) -> Result<StatusCode> {
    let member = member(&server, &caller, &name)?;
    let upstream = running(&member)?;
    let config = upstream.config();
    has_logins(config)?;
    upstream.log_out().await.map_err(|fault| failed(fault, config))?;
    Ok(StatusCode::NO_CONTENT)
}

/// `POST /upstreams/{name}/my-login`: begins a login of the caller's own; the page for it.
pub(crate) async fn begin_own(
    Who { server, caller }: Who,
    PathName(name): PathName,
) -> Result<Json<UpstreamLogin>> {
    let upstream = with_own_logins(&server, &caller, &name)?;
    server.logins_begun.take(&caller, server.engine.clock().now()).map_err(too_many)?;
    let begun = upstream.begin_own_login(&caller).await;
    let url = begun.map_err(|fault| failed(fault, upstream.config()))?;
    Ok(Json(UpstreamLogin { url }))
}

/// `PUT /upstreams/{name}/my-login`: the caller proves that the login is theirs.
pub(crate) async fn prove_own(
    Who { server, caller }: Who,
    PathName(name): PathName,
    JsonBody(LoginProof { code }): JsonBody<LoginProof>,
) -> Result<StatusCode> {
    proven(&server, &caller, &name, &code).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The caller sends the code of a login that it began: from now on the login is used.
pub(super) async fn proven(
    server: &ServerState,
    caller: &Caller,
    name: &str,
    code: &str,
) -> Result<()> {
    let upstream = with_own_logins(server, caller, name)?;
    // Codes are tried no faster than logins are begun.
    server.logins_begun.take(caller, server.engine.clock().now()).map_err(too_many)?;
    let proven = upstream.prove_own_login(caller, code).await;
    proven.map_err(|fault| {
        let Fault { message, hint, .. } = cleaned(fault, upstream.config());
        Failure::new(StatusCode::CONFLICT, "login_code_unknown", message).maybe_hint(hint)
    })
}

/// The upstream that brings this tool, if its callers log in for themselves.
pub(super) fn own_login_for(
    server: &ServerState,
    caller: &Caller,
    tool: &ToolName,
) -> Option<String> {
    let brings = |upstream: &&Arc<Upstream>| {
        upstream.has_own_logins() && upstream.tools().iter().any(|one| one.spec().name == *tool)
    };
    let running = server.gateway.running(&caller.realm);
    running.iter().find(brings).map(|upstream| upstream.name().to_owned())
}

/// `DELETE /upstreams/{name}/my-login`: the caller's own login is forgotten.
pub(crate) async fn end_own(
    Who { server, caller }: Who,
    PathName(name): PathName,
) -> Result<StatusCode> {
    let upstream = with_own_logins(&server, &caller, &name)?;
    let ended = upstream.end_own_login(&caller).await;
    ended.map_err(|fault| failed(fault, upstream.config()))?;
    Ok(StatusCode::NO_CONTENT)
}

/// The upstream of this name, if its callers log in for themselves and this one's credential covers
/// that. Nobody does so for another.
fn with_own_logins(server: &ServerState, caller: &Caller, name: &str) -> Result<Arc<Upstream>> {
    if let Some(scope) = missing_scope(server, caller, Act::LogIn) {
        let message = format!("the credential does not have the scope `{}`", scope.name());
        return Err(Refusal::new(RefusalCode::Forbidden(Act::LogIn), message).into());
    }
    let member = member(server, caller, name)?;
    let upstream = running(&member)?;
    if !upstream.has_own_logins() {
        let what = format!("callers do not log in for themselves at upstream `{name}`");
        return Err(no_login(what).hint("an administrator logs in for all of them"));
    }
    if caller.actor.is_some() {
        return Err(no_login("no caller logs in as another".to_owned()).hint("log in as yourself"));
    }
    Ok(upstream.clone())
}

/// `GET /oauth/callback`: someone comes back from a login.
pub(crate) async fn callback(State(server): State<Shared>, uri: Uri) -> Response {
    let returned = returned(&uri);
    let is_known = match &returned {
        Ok(returned) => server.gateway.knows_login(&returned.state).await,
        Err(_) => false,
    };
    // Anybody can come here: strangers are counted, and keep no one out whom we sent.
    if !is_known && let Err(wait_ms) = server.logins_returned.take(server.engine.clock().now()) {
        return overrun(wait_ms);
    }
    let returned = match returned {
        Ok(returned) => returned,
        Err(why) => {
            let hint = "`waypost mcp login` begins again";
            return gone_wrong(Fault::new("LoginUnreadable", why).hint(hint));
        }
    };
    match server.gateway.finish_login(returned).await {
        Ok(LoginResult { upstream, code: None }) => {
            let name = upstream.name();
            page(
                StatusCode::OK,
                "You are logged in",
                &[
                    format!("Waypost can use `{name}` from now on."),
                    "You can close this page.".to_owned(),
                ],
            )
        }
        Ok(LoginResult { upstream, code: Some(code) }) => {
            let name = upstream.name();
            page(
                StatusCode::OK,
                "One step is left",
                &[
                    format!("The code is `{code}`. It is good for ten minutes."),
                    format!(
                        "If you began this login yourself, send the code to Waypost with your own \
                         credential: `waypost mcp login {name} --code {code}`, `PUT \
                         /api/v1/upstreams/{name}/my-login`, or with the answer to what your run \
                         asks: `waypost inbox answer ask_.. --action done --code {code}`."
                    ),
                    "If the link was sent to you, give the code to no one: with it the sender \
                     would use your account."
                        .to_owned(),
                ],
            )
        }
        Err(fault) => {
            // Whose it was is not known.
            let upstreams = server.gateway.all_running();
            let clean = |fault, upstream: &Arc<Upstream>| cleaned(fault, upstream.config());
            let fault = upstreams.iter().fold(fault, clean);
            tracing::warn!(%fault, "a login could not be finished");
            gone_wrong(fault)
        }
    }
}

/// `GET /oauth/client.json`: who we are, for servers that register clients by such a document.
pub(crate) async fn client(State(server): State<Shared>) -> Result<Response> {
    let places = server.gateway.places();
    let document = places.and_then(client_document).ok_or_else(|| {
        Failure::new(StatusCode::NOT_FOUND, "no_client_document", "no other server can read it")
            .hint("set `public_url` of `[server]` to an `https` address of this server")
    })?;
    let mut response = Json(document).into_response();
    let hour = HeaderValue::from_static("public, max-age=3600");
    response.headers_mut().insert(CACHE_CONTROL, hour);
    Ok(response)
}

/// OAuth Client ID Metadata Document: its own address is our id.
fn client_document(places: &LoginPlaces) -> Option<Value> {
    let id = places.client_metadata.as_ref()?;
    Some(json!({
        "client_id": id,
        "client_name": "Waypost",
        "redirect_uris": [places.callback],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "application_type": "web",
        "token_endpoint_auth_method": "none",
    }))
}

/// Who logs in at this upstream, if anybody does.
fn has_logins(config: &UpstreamConfig) -> Result<Grant> {
    let name = &config.name;
    let origin = &config.origin;
    let UpstreamKind::Http { headers, oauth, .. } = &config.kind else {
        let what = format!("upstream `{name}` is no MCP server behind a URL, and has no logins");
        return Err(no_login(what).hint("what it needs goes into its headers or variables"));
    };
    if headers.iter().any(|(header, _)| header.eq_ignore_ascii_case(AUTHORIZATION.as_str())) {
        let what = format!("upstream `{name}` is sent a fixed `Authorization` header");
        return Err(no_login(what).hint(format!("take it out in {origin} to log in")));
    }
    Ok(oauth.grant)
}

fn no_login(what: String) -> Failure {
    Failure::new(StatusCode::CONFLICT, "upstream_no_login", what)
}

fn failed(fault: Fault, config: &UpstreamConfig) -> Failure {
    let Fault { message, hint, .. } = cleaned(fault, config);
    Failure::new(StatusCode::BAD_GATEWAY, "upstream_login_failed", message).maybe_hint(hint)
}

fn too_many(TooSoon { wait_ms, quota }: TooSoon) -> Failure {
    let message = "too many logins were begun just now";
    let failure = Failure::new(StatusCode::TOO_MANY_REQUESTS, "logins_limited", message)
        .hint("send it again later, or raise `logins_per_minute` in `[limits]`")
        .retry_ms(wait_ms);
    match quota {
        Some(quota) => failure.quota(quota),
        None => failure,
    }
}

/// What someone came back with. Whatever else stands in the query is read past; what is there
/// twice is no one's.
fn returned(uri: &Uri) -> Result<LoginCallback, String> {
    if uri.query().map_or(0, str::len) > QUERY_BYTES_MAX {
        return Err(format!("the address has more than {QUERY_BYTES_MAX} bytes"));
    }
    let Ok(Query(pairs)) = Query::<Vec<(String, String)>>::try_from_uri(uri) else {
        return Err("the address cannot be read".to_owned());
    };
    let one = |name: &str| {
        let mut found = pairs.iter().filter(|(key, _)| key == name).map(|(_, value)| value);
        match (found.next(), found.next()) {
            (first, None) => Ok(first.filter(|value| !value.is_empty()).cloned()),
            (_, Some(_)) => Err(format!("the address has `{name}` twice")),
        }
    };
    let Some(state) = one("state")? else {
        return Err("the address has no `state`: it belongs to no login of this server".to_owned());
    };
    let code = one("code")?;
    let error = one("error")?;
    if code.is_none() && error.is_none() {
        return Err("the address has neither `code` nor `error`".to_owned());
    }
    let iss = one("iss")?;
    let error_description = one("error_description")?;
    Ok(LoginCallback { state, code, iss, error, error_description })
}

fn gone_wrong(fault: Fault) -> Response {
    let mut told = vec![fault.message];
    told.extend(fault.hint);
    told.push("You can close this page.".to_owned());
    page(StatusCode::BAD_REQUEST, "The login did not work", &told)
}

fn overrun(wait_ms: u64) -> Response {
    let seconds = wait_ms.div_ceil(1_000).max(1);
    let told = format!("Too many people came back just now. Load this page again in {seconds} s.");
    let mut response = page(StatusCode::TOO_MANY_REQUESTS, "Not now", &[told]);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Result<LoginCallback, String> {
        returned(&format!("/oauth/callback?{query}").parse().unwrap())
    }

    #[test]
    fn the_query_of_a_login_callback_is_read() {
        let told =
            read("code=a%2Bb+c&state=s&iss=https%3A%2F%2Fa.example&session_state=x").unwrap();
        assert_eq!((told.code.as_deref(), told.state.as_str()), (Some("a+b c"), "s"));
        assert_eq!((told.iss.as_deref(), told.error), (Some("https://a.example"), None));
        let told = read("state=s&error=access_denied&error_description=no").unwrap();
        assert_eq!((told.error.as_deref(), told.code), (Some("access_denied"), None));
        assert_eq!(told.error_description.as_deref(), Some("no"));
    }

    #[test]
    fn a_callback_that_belongs_to_no_login_is_refused() {
        for (query, words) in [
            ("", "no `state`"),
            ("code=a", "no `state`"),
            ("code=a&state=", "no `state`"),
            ("state=s", "neither `code` nor `error`"),
            ("state=s&code=a&state=t", "`state` twice"),
            ("state=s&code=a&code=a", "`code` twice"),
            ("state=s&code=a&iss=a&iss=b", "`iss` twice"),
        ] {
            let told = read(query).unwrap_err();
            assert!(told.contains(words), "{query}: {told}");
        }
        let long = format!("state=s&code={}", "a".repeat(QUERY_BYTES_MAX));
        assert!(read(&long).unwrap_err().contains("more than"));
    }

    #[test]
    fn the_client_id_is_the_address_of_the_client_document() {
        let places = LoginPlaces {
            callback: "https://wp.test/oauth/callback".to_owned(),
            client_metadata: Some("https://wp.test/oauth/client.json".to_owned()),
            shown_to_callers: false,
        };
        let document = client_document(&places).unwrap();
        assert_eq!(document["client_id"], "https://wp.test/oauth/client.json");
        assert_eq!(document["redirect_uris"], json!(["https://wp.test/oauth/callback"]));
        assert!(client_document(&LoginPlaces { client_metadata: None, ..places }).is_none());
    }
}
