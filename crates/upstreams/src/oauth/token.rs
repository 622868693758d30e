//! Requests to a token endpoint. No error contains a secret of either side.

use super::error::OauthError;
use super::stored::{Token, TokenGrant};
use super::urls;
use super::web::{PostReply, Web, shown, told};
use crate::config::Secret;
use kernel::values::ids::Millis;
use reqwest::StatusCode;
use reqwest::header::{AUTHORIZATION, HeaderValue};
use serde_json::Value;

/// Tokens are not believed to be good for longer: ten years.
const LASTS_S_MAX: u64 = 10 * 365 * 24 * 60 * 60;

/// The fields of such requests that no one else should read.
const SECRETS: [&str; 3] = ["code", "code_verifier", "refresh_token"];

/// Why nothing is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NotGiven {
    /// The server never gives it.
    Denied {
        /// Its word for why.
        error: String,
        why: String,
    },
    /// It may be given later.
    Away(OauthError),
}

impl NotGiven {
    /// Whether the server does not know us any more as the client that we say we are.
    pub(super) fn is_unknown_client(&self) -> bool {
        match self {
            NotGiven::Denied { error, .. } => {
                matches!(error.as_str(), "invalid_client" | "unauthorized_client")
            }
            NotGiven::Away(_) => false,
        }
    }

    pub(super) fn trouble(self) -> OauthError {
        match self {
            NotGiven::Denied { why, .. } => OauthError::refused(why),
            NotGiven::Away(trouble) => trouble,
        }
    }
}

/// Asks for a token in place of this one, where that is from and as its client.
pub(super) async fn ask(
    web: &Web,
    token: &Token,
    fields: &[(&str, &str)],
    now: Millis,
) -> Result<Token, NotGiven> {
    let url = urls::endpoint("its `token_endpoint`", &token.endpoint);
    let url = url.map_err(NotGiven::Away)?;
    let (headers, body) = token.client.signed(fields);
    let basic = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let basic = basic.map(|value| value.trim_start_matches("Basic ").to_owned());
    let posted = web.post(token.ground, &url, headers, body).await.map_err(NotGiven::Away)?;
    let is_secret = |field: &&(&str, &str)| SECRETS.contains(&field.0);
    let mut secrets: Vec<&str> = fields.iter().filter(is_secret).map(|field| field.1).collect();
    secrets.extend(token.client.secret.as_ref().map(Secret::expose));
    secrets.extend(basic.as_deref());
    read(&posted, &shown(&url), &secrets).map(|given| token.renewed(given, now))
}

/// Gives a token back where that can be done, so that it is good for nothing any more. Best effort.
pub(super) async fn revoke(web: &Web, token: &Token) {
    let Some(endpoint) = &token.revocation else { return };
    let Ok(url) = urls::endpoint("its `revocation_endpoint`", endpoint) else { return };
    let refresh = token.refresh.iter().map(|refresh| ("refresh_token", refresh));
    for (kind, secret) in refresh.chain([("access_token", &token.access)]) {
        let fields = [("token", secret.expose()), ("token_type_hint", kind)];
        let (headers, body) = token.client.signed(&fields);
        match web.post(token.ground, &url, headers, body).await {
            Ok(posted) if posted.status.is_success() => {}
            Ok(posted) => tracing::debug!(status = %posted.status, "a token was not taken back"),
            Err(trouble) => tracing::debug!(%trouble, "a token was not taken back"),
        }
    }
}

fn read(posted: &PostReply, endpoint: &str, secrets: &[&str]) -> Result<TokenGrant, NotGiven> {
    let PostReply { status, body } = posted;
    if !status.is_success() || body["error"].is_string() {
        return Err(not_given(posted, endpoint, secrets));
    }
    let denied = |why: &str| NotGiven::Denied {
        error: String::new(),
        why: format!("`{endpoint}` gave a token that cannot be used: {why}"),
    };
    let text = |name: &str| body[name].as_str().filter(|text| !text.is_empty());
    let access = text("access_token").ok_or_else(|| denied("there is none"))?;
    if HeaderValue::from_str(access).is_err() {
        return Err(denied("no header can hold it"));
    }
    if text("token_type").is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
        return Err(denied("it is not a bearer token"));
    }
    let lasts_s = match &body["expires_in"] {
        // Some servers write the number as a text.
        Value::String(text) => text.parse::<u64>().ok(),
        number => number.as_u64(),
    };
    // One that is over when it is given would be renewed for every request; the server itself says
    // when it is.
    let lasts_s = lasts_s.filter(|seconds| *seconds > 0);
    Ok(TokenGrant {
        access: access.into(),
        refresh: text("refresh_token").map(Secret::from),
        lasts_ms: lasts_s.map(|seconds| seconds.min(LASTS_S_MAX) * 1_000),
    })
}

fn not_given(posted: &PostReply, endpoint: &str, secrets: &[&str]) -> NotGiven {
    let PostReply { status, body } = posted;
    let error = body["error"].as_str().unwrap_or_default();
    let description = body["error_description"].as_str().unwrap_or_default();
    let why = match told(&format!("{error} {description}"), secrets).as_str() {
        "" => format!("`{endpoint}` gave no token: {status}"),
        words => format!("`{endpoint}` gave no token: {words} ({status})"),
    };
    let passes = matches!(error, "temporarily_unavailable" | "server_error" | "slow_down")
        || status.is_server_error()
        || matches!(*status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT);
    match passes {
        true => NotGiven::Away(OauthError::away(why)),
        false => NotGiven::Denied { error: error.to_owned(), why },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn given(status: u16, body: Value) -> Result<TokenGrant, NotGiven> {
        let posted = PostReply { status: StatusCode::from_u16(status).unwrap(), body };
        read(&posted, "https://as.test/token", &["the-code"])
    }

    #[test]
    fn a_token_response_is_parsed() {
        let full = given(
            200,
            json!({"access_token": "a", "token_type": "bearer", "expires_in": "60",
                "refresh_token": "r"}),
        );
        let full = full.unwrap();
        assert_eq!((full.access, full.refresh), ("a".into(), Some("r".into())));
        assert_eq!(full.lasts_ms, Some(60_000));
        let bare = given(200, json!({"access_token": "a", "refresh_token": ""})).unwrap();
        assert_eq!((bare.refresh, bare.lasts_ms), (None, None));
        let long = given(200, json!({"access_token": "a", "expires_in": u64::MAX})).unwrap();
        assert_eq!(long.lasts_ms, Some(LASTS_S_MAX * 1_000));
        for none in [json!(0), json!("0"), json!(-1), json!("soon"), Value::Null] {
            let given = given(200, json!({"access_token": "a", "expires_in": none})).unwrap();
            assert_eq!(given.lasts_ms, None, "{none}");
        }
    }

    #[test]
    fn an_unusable_token_response_is_refused() {
        for body in [
            json!({}),
            Value::Null,
            json!({"access_token": ""}),
            json!({"access_token": "a\nb"}),
            json!({"access_token": "a", "token_type": "DPoP"}),
            json!({"access_token": "a", "error": "invalid_grant"}),
        ] {
            assert!(matches!(given(200, body), Err(NotGiven::Denied { .. })));
        }
    }

    #[test]
    fn transient_token_errors_are_distinguished_from_permanent_ones() {
        let body = json!({"error": "invalid_grant", "error_description": "`the-code` is old"});
        let Err(NotGiven::Denied { error, why }) = given(400, body) else { panic!("it is denied") };
        assert_eq!(error, "invalid_grant");
        assert!(why.contains("`***` is old"), "{why}");
        let unknown = given(401, json!({"error": "invalid_client"})).unwrap_err();
        assert!(unknown.is_unknown_client());
        for (status, error) in
            [(503, ""), (429, ""), (500, "invalid_grant"), (400, "temporarily_unavailable")]
        {
            let answered = given(status, json!({"error": error}));
            assert!(matches!(answered, Err(NotGiven::Away(_))), "{status} {error}");
        }
    }
}
