//! `/oauth/token`: an API key is exchanged for a token that is valid for minutes (RFC 6749, client
//! credentials). The client's id is the key's id, its secret the key's whole text. Errors are
//! reported as the standard says.

use super::not_stored;
use axum::Json;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, PRAGMA, WWW_AUTHENTICATE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use edge::problem::{Failure, Result};
use edge::request::auth::too_many_failures;
use edge::request::body::read_within;
use edge::request::forwarded::Peer;
use edge::request::realms::{Sender, realm};
use edge::request::server_state::{ServerState, Shared};
use identity::CredentialRefusal;
use identity::token::{Token, TokenRefusal};
use kernel::identity::audit::Object;
use kernel::values::caller::{Caller, Scope};
use kernel::values::percent::decoded;
use kernel::values::secret::Secret;
use project::realm::default_realm;
use serde_json::json;
use std::collections::BTreeMap;
use wire::rest::{TokenAnswer, TokenError};

/// No form that is meant for us is longer.
const FORM_BYTES_MAX: usize = 16 * 1024;
const GRANT_TYPE: &str = "client_credentials";
/// What a client can do whose id or secret is wrong.
const CHALLENGE: &str = "Basic realm=\"waypost\", charset=\"UTF-8\"";

/// Why there is no token.
pub(crate) enum NoToken {
    /// What the standard has a word for.
    Standard(StatusCode, TokenError),
    Other(Failure),
}

/// What a client proves itself with.
struct Client {
    id: String,
    secret: Secret,
}

/// `POST /oauth/token`.
pub(crate) async fn issue(
    State(server): State<Shared>,
    request: Request,
) -> Result<Response, NoToken> {
    let (parts, body) = request.into_parts();
    let body = read_within(&server, body, FORM_BYTES_MAX).await.map_err(unread)?;
    let mut form = form(&body)?;
    let mut given = |name: &str| form.remove(name).filter(|value| !value.is_empty());
    match given("grant_type").as_deref() {
        Some(GRANT_TYPE) => {}
        Some(_) => {
            let why = "the only grant is `client_credentials`";
            return Err(refused("unsupported_grant_type", why));
        }
        None => return Err(invalid("the form has no `grant_type`")),
    }
    let id = given("client_id");
    let secret = given("client_secret").map(Secret::from);
    let scope = given("scope");
    let Client { id, secret } = client(&parts.headers, id, secret)?;
    let token = server.identity.token(&id, secret.expose(), scope.as_deref());
    let token = token.map_err(|refusal| not_given(&server, &parts, refusal))?;
    keep(&server, &id, &token)?;
    Ok(answer(token))
}

/// Keeps in the audit that a token was given, for which key, and what it allows; nothing of its
/// text. It is kept in the realm of a request that names none.
fn keep(server: &ServerState, key: &str, token: &Token) -> Result<()> {
    let Token { subject, realms, scopes, expires_in_s, .. } = token;
    let directory = server.identity.directory();
    let sender = Sender { subject, grants: realms, directory: &directory };
    let realm = realm(&Uri::default(), &HeaderMap::new(), sender);
    let caller = Caller::new(realm.unwrap_or_else(|_| default_realm()), subject.clone());
    let scopes = scopes.map(|scopes| scopes.iter().map(Scope::name).collect::<Vec<_>>());
    let detail = json!({"scopes": scopes, "expiresInS": expires_in_s});
    let object = Object::new("key", key);
    Ok(server.engine.audits().note_done(&caller, "token.issue", object, detail)?)
}

/// The id and the secret of the client: in the header or in the form, not in both.
fn client(
    headers: &HeaderMap,
    id: Option<String>,
    secret: Option<Secret>,
) -> Result<Client, NoToken> {
    let mut sent = headers.get_all(AUTHORIZATION).iter();
    let first = sent.next();
    let second = sent.next();
    if second.is_some() {
        return Err(invalid("there is more than one `Authorization`"));
    }
    let Some(header) = first else {
        return match (id, secret) {
            (Some(id), Some(secret)) => Ok(Client { id, secret }),
            _ => Err(unknown_client("the client's id and secret are missing")),
        };
    };
    let basic = header.to_str().ok().and_then(basic);
    let client = basic.ok_or_else(|| unknown_client("`Authorization` must be `Basic`"))?;
    if secret.is_some() || id.is_some_and(|id| id != client.id) {
        return Err(invalid("the client is in `Authorization` and in the form"));
    }
    Ok(client)
}

/// What `Basic` says, both parts written as in a form.
fn basic(header: &str) -> Option<Client> {
    let (scheme, encoded) = header.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let text = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
    let (id, secret) = text.split_once(':')?;
    Some(Client { id: plain(id), secret: plain(secret).into() })
}

/// The parameters of a form. What is there twice has no meaning.
fn form(body: &[u8]) -> Result<BTreeMap<String, String>, NoToken> {
    let text = std::str::from_utf8(body).map_err(|_| invalid("the form is not text"))?;
    let mut form = BTreeMap::new();
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if form.insert(plain(name), plain(value)).is_some() {
            return Err(invalid("the form has a parameter twice"));
        }
    }
    Ok(form)
}

/// A text of a form, without its plus and percent signs.
fn plain(text: &str) -> String {
    decoded(&text.replace('+', " "))
}

fn answer(token: Token) -> Response {
    // No ceiling is what `admin` allows: everything that the key's roles permit.
    let scope = match token.scopes {
        Some(scopes) => scopes.iter().map(Scope::name).collect::<Vec<_>>().join(" "),
        None => Scope::Admin.name().to_owned(),
    };
    let answer = TokenAnswer {
        access_token: token.text.expose().to_owned(),
        token_type: "Bearer".to_owned(),
        expires_in: token.expires_in_s,
        scope,
    };
    let mut response = not_stored(Json(answer).into_response());
    response.headers_mut().insert(PRAGMA, HeaderValue::from_static("no-cache"));
    response
}

fn not_given(server: &ServerState, parts: &Parts, refusal: TokenRefusal) -> NoToken {
    match refusal {
        TokenRefusal::InvalidScope => refused("invalid_scope", &refusal.to_string()),
        TokenRefusal::Failed => {
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            NoToken::Other(Failure::new(status, "token_failed", refusal.to_string()))
        }
        TokenRefusal::InvalidClient(why) => match denied(server, parts, why) {
            Ok(()) => unknown_client(&refusal.to_string()),
            Err(failure) => NoToken::Other(failure),
        },
    }
}

/// Counts a failed attempt: too many of one address are not answered as what they are.
fn denied(server: &ServerState, parts: &Parts, why: &'static str) -> Result<()> {
    let peer = parts.extensions.get::<Peer>();
    let from = server.entrance.address_of(peer, parts.uri.path(), &parts.headers)?;
    match server.identity.failed(from, why) {
        CredentialRefusal::Invalid(reason) => {
            tracing::debug!(%from, reason, "a token is not given");
            Ok(())
        }
        CredentialRefusal::TooMany { retry_after_s } => Err(too_many_failures(retry_after_s)),
    }
}

/// Why a form could not be read.
fn unread(failure: Failure) -> NoToken {
    match failure.status() {
        status @ (StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE) => {
            standard(status, "invalid_request", failure.message())
        }
        _ => NoToken::Other(failure),
    }
}

fn invalid(why: &str) -> NoToken {
    refused("invalid_request", why)
}

fn refused(error: &str, why: &str) -> NoToken {
    standard(StatusCode::BAD_REQUEST, error, why)
}

fn unknown_client(why: &str) -> NoToken {
    standard(StatusCode::UNAUTHORIZED, "invalid_client", why)
}

fn standard(status: StatusCode, error: &str, why: &str) -> NoToken {
    let error = error.to_owned();
    let error_description = why.to_owned();
    NoToken::Standard(status, TokenError { error, error_description })
}

impl From<Failure> for NoToken {
    fn from(failure: Failure) -> Self {
        Self::Other(failure)
    }
}

impl IntoResponse for NoToken {
    fn into_response(self) -> Response {
        let (status, error) = match self {
            Self::Standard(status, error) => (status, error),
            Self::Other(failure) => return failure.into_response(),
        };
        let mut response = not_stored((status, Json(error)).into_response());
        if status == StatusCode::UNAUTHORIZED {
            let challenge = HeaderValue::from_static(CHALLENGE);
            response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(refusal: NoToken) -> (u16, String) {
        match refusal {
            NoToken::Standard(status, error) => (status.as_u16(), error.error),
            NoToken::Other(failure) => (failure.status().as_u16(), failure.code().to_owned()),
        }
    }

    fn header(values: &[&str]) -> HeaderMap {
        let values = values.iter().map(|value| HeaderValue::from_str(value).unwrap());
        values.map(|value| (AUTHORIZATION, value)).collect()
    }

    /// Who a request with these headers and these members of a form comes from.
    fn read(
        headers: &[&str],
        id: Option<&str>,
        secret: Option<&str>,
    ) -> Result<(String, String), (u16, String)> {
        let client = client(&header(headers), id.map(str::to_owned), secret.map(Secret::from));
        match client {
            Ok(Client { id, secret }) => Ok((id, secret.expose().to_owned())),
            Err(refusal) => Err(told(refusal)),
        }
    }

    #[test]
    fn a_form_is_read_and_nothing_is_in_it_twice() {
        let read = |text: &str| form(text.as_bytes()).map_err(told);
        let form =
            read("grant_type=client_credentials&scope=read+use%20answer&&x&resource=").unwrap();
        assert_eq!(form["scope"], "read use answer");
        assert_eq!((form["x"].as_str(), form["resource"].as_str(), form.len()), ("", "", 4));
        assert!(read("").unwrap().is_empty());
        for wrong in ["a=1&a=1", "a=1&%61=2", "scope=&scope="] {
            assert_eq!(read(wrong), Err((400, "invalid_request".to_owned())), "{wrong}");
        }
        assert_eq!(super::form(b"a=\xff").map_err(told), Err((400, "invalid_request".to_owned())));
    }

    #[test]
    fn a_client_is_in_the_header_or_in_the_form() {
        let one = Ok(("id".to_owned(), "a:b c".to_owned()));
        // `id:a%3Ab+c`
        let basic = "Basic aWQ6YSUzQWIrYw==";
        assert_eq!(read(&[basic], None, None), one);
        assert_eq!(read(&["basic  aWQ6YSUzQWIrYw=="], None, None), one);
        assert_eq!(read(&[basic], Some("id"), None), one, "the id may be repeated");
        assert_eq!(read(&[], Some("id"), Some("a:b c")), one);
        let invalid = Err((400, "invalid_request".to_owned()));
        assert_eq!(read(&[basic], Some("id"), Some("a:b c")), invalid);
        assert_eq!(read(&[basic], Some("other"), None), invalid);
        assert_eq!(read(&[basic, basic], None, None), invalid);
        let unknown = Err((401, "invalid_client".to_owned()));
        for header in ["Bearer x", "Basic", "Basic %", "Basic aWQ="] {
            assert_eq!(read(&[header], None, None), unknown, "{header}");
        }
        assert_eq!(read(&[], Some("id"), None), unknown);
        assert_eq!(read(&[], None, Some("a")), unknown);
        assert_eq!(read(&[], None, None), unknown);
    }
}
