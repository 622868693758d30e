//! The OAuth client that Waypost uses at an authorization server: configured by the operator,
//! described by our own client metadata URL, or registered dynamically (RFC 7591).

use super::LoginPlaces;
use super::error::{OauthError, Result};
use super::issuer::Issuer;
use super::scopes::Scopes;
use super::secret_text::exposed_maybe;
use super::web::{FORM, PostReply, encoded, form, told, typed};
use crate::config::{OauthConfig, Secret};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kernel::values::ids::Millis;
use outbound::addresses::is_loopback;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A client of an authorization server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Client {
    pub(super) id: String,
    #[serde(with = "exposed_maybe")]
    pub(super) secret: Option<Secret>,
    /// How it shows who it is.
    pub(super) method: Method,
}

/// How a client shows who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Method {
    /// By its id alone.
    #[serde(rename = "none")]
    None,
    /// In a header.
    #[serde(rename = "client_secret_basic")]
    Basic,
    /// In the form.
    #[serde(rename = "client_secret_post")]
    Post,
}

/// A client that we registered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Registration {
    pub(super) issuer: String,
    /// For which address logins come back to.
    pub(super) callback: String,
    pub(super) client: Client,
    /// Until when it is one.
    pub(super) expires_at: Option<Millis>,
}

impl Method {
    const ALL: [Method; 3] = [Method::Basic, Method::Post, Method::None];

    fn read(word: &str) -> Option<Self> {
        serde_json::from_value(word.into()).ok()
    }
}

impl Client {
    /// The client that the configuration names, as this server takes it.
    pub(super) fn configured(config: &OauthConfig, issuer: &Issuer) -> Result<Option<Self>> {
        let Some(id) = &config.client_id else { return Ok(None) };
        let secret = config.client_secret.clone();
        let chosen = match &issuer.methods {
            _ if secret.is_none() => Some(Method::None),
            // Not said means so (RFC 8414).
            None => Some(Method::Basic),
            Some(offered) => choose(&Method::ALL, offered),
        };
        let method = chosen.ok_or_else(|| no_method(issuer))?;
        Ok(Some(Self { id: id.clone(), secret, method }))
    }

    /// The client whose description is at our own URL, where the server reads it.
    pub(super) fn documented(issuer: &Issuer, places: &LoginPlaces) -> Option<Self> {
        let id = places.client_metadata.clone().filter(|_| issuer.reads_documents)?;
        Some(Self { id, secret: None, method: Method::None })
    }

    /// A form that this client sends: headers and body.
    pub(super) fn signed(&self, fields: &[(&str, &str)]) -> (HeaderMap, String) {
        let mut headers = typed(FORM);
        let mut fields = fields.to_vec();
        match (self.method, &self.secret) {
            (Method::Basic, Some(secret)) => {
                let both = format!("{}:{}", encoded(&self.id), encoded(secret.expose()));
                let text = format!("Basic {}", STANDARD.encode(both));
                // Of these characters any header can be made.
                if let Ok(mut value) = HeaderValue::from_str(&text) {
                    value.set_sensitive(true);
                    headers.insert(AUTHORIZATION, value);
                }
            }
            (Method::Post, Some(secret)) => {
                fields.push(("client_id", &self.id));
                fields.push(("client_secret", secret.expose()));
            }
            (Method::None | Method::Basic | Method::Post, _) => {
                fields.push(("client_id", &self.id));
            }
        }
        (headers, form(&fields))
    }
}

/// How a client that we register will show who it is. One whose logins come back to this machine
/// keeps no secret by the book; any other does, if it may.
pub(super) fn registered_method(issuer: &Issuer, callback: &str) -> Result<Method> {
    let wished = match is_native(callback) {
        true => [Method::None, Method::Basic, Method::Post],
        false => Method::ALL,
    };
    match &issuer.methods {
        None => Ok(wished[0]),
        Some(offered) => choose(&wished, offered).ok_or_else(|| no_method(issuer)),
    }
}

/// Client metadata for registration.
pub(super) fn description(method: Method, callback: &str, scopes: &Scopes) -> Value {
    let kind = if is_native(callback) { "native" } else { "web" };
    let mut description = json!({
        "client_name": "Waypost",
        "redirect_uris": [callback],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": method,
        "application_type": kind,
    });
    if !scopes.is_empty() {
        description["scope"] = Value::String(scopes.text());
    }
    description
}

/// The client of this answer to a registration that asked for a method.
pub(super) fn registered(
    issuer: &Issuer,
    callback: &str,
    method: Method,
    posted: &PostReply,
) -> Result<Registration> {
    let PostReply { status, body } = posted;
    let id = body["client_id"].as_str().filter(|id| status.is_success() && !id.is_empty());
    let Some(id) = id else {
        let words = [&body["error"], &body["error_description"]];
        let words: Vec<&str> = words.into_iter().filter_map(Value::as_str).collect();
        let why = match told(&words.join(": "), &[]).as_str() {
            "" => format!("{status}"),
            words => format!("{status}, {words}"),
        };
        let why = format!("the authorization server `{}` did not register us: {why}", issuer.name);
        if status.is_server_error() {
            return Err(OauthError::away(why));
        }
        let hint = "register a client there by hand, and set its `client_id` in `oauth`";
        return Err(OauthError::refused(why).hint(hint));
    };
    let secret = body["client_secret"].as_str().filter(|secret| !secret.is_empty());
    let said = body["token_endpoint_auth_method"].as_str().and_then(Method::read);
    let method = match (said, secret) {
        (_, None) => Method::None,
        (Some(said), Some(_)) => said,
        // A secret where nothing is said of it goes into a header (RFC 7591).
        (None, Some(_)) if issuer.methods.is_none() => Method::Basic,
        (None, Some(_)) => method,
    };
    let seconds = body["client_secret_expires_at"].as_i64().filter(|seconds| *seconds > 0);
    Ok(Registration {
        issuer: issuer.name.clone(),
        callback: callback.to_owned(),
        client: Client { id: id.to_owned(), secret: secret.map(Secret::from), method },
        expires_at: seconds.map(|seconds| Millis(seconds.saturating_mul(1_000))),
    })
}

/// Whether logins come back to this machine, as those of a program that people install do.
fn is_native(callback: &str) -> bool {
    Url::parse(callback).is_ok_and(|url| is_loopback(&url))
}

fn choose(wished: &[Method], offered: &[String]) -> Option<Method> {
    let offered: Vec<Method> = offered.iter().filter_map(|word| Method::read(word)).collect();
    wished.iter().copied().find(|method| offered.contains(method))
}

fn no_method(issuer: &Issuer) -> OauthError {
    let offered = issuer.methods.as_deref().unwrap_or_default().join("`, `");
    OauthError::refused(format!(
        "the authorization server `{}` wants clients to show who they are by `{}`, which we cannot",
        issuer.name,
        told(&offered, &[])
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::StatusCode;

    fn issuer(methods: Option<&[&str]>) -> Issuer {
        let server = Url::parse("https://as.test/").unwrap();
        let methods = methods.map(|words| words.iter().map(|word| word.to_string()).collect());
        Issuer { methods, reads_documents: true, ..Issuer::assumed(&server).unwrap() }
    }

    fn configured(secret: Option<&str>, methods: Option<&[&str]>) -> Option<Method> {
        let config = OauthConfig {
            client_id: Some("me".to_owned()),
            client_secret: secret.map(Secret::from),
            ..OauthConfig::default()
        };
        let client = Client::configured(&config, &issuer(methods)).ok()?;
        Some(client.unwrap().method)
    }

    #[test]
    fn a_configured_client_uses_a_supported_auth_method() {
        let basic = "client_secret_basic";
        let post = "client_secret_post";
        let none = "none";
        let s = Some("s");
        for (secret, methods, expected) in [
            (s, None, Some(Method::Basic)),
            (s, Some(&[post, basic, none][..]), Some(Method::Basic)),
            (s, Some(&[post][..]), Some(Method::Post)),
            (s, Some(&[none][..]), Some(Method::None)),
            (s, Some(&["private_key_jwt"][..]), None),
            (None, Some(&[basic][..]), Some(Method::None)),
            (None, None, Some(Method::None)),
        ] {
            assert_eq!(configured(secret, methods), expected, "{secret:?} {methods:?}");
        }
        assert_eq!(Client::configured(&OauthConfig::default(), &issuer(None)), Ok(None));
    }

    #[test]
    fn a_client_authenticates_by_its_method() {
        let client = |method| Client { id: "a:b".into(), secret: Some("s t".into()), method };
        let (headers, body) = client(Method::Basic).signed(&[("x", "1")]);
        let expected = format!("Basic {}", STANDARD.encode("a%3Ab:s+t"));
        assert_eq!((headers[AUTHORIZATION].to_str().unwrap(), body.as_str()), (&*expected, "x=1"));
        let (headers, body) = client(Method::Post).signed(&[("x", "1")]);
        assert_eq!(body, "x=1&client_id=a%3Ab&client_secret=s+t");
        assert!(!headers.contains_key(AUTHORIZATION));
        let (headers, body) = client(Method::None).signed(&[]);
        assert_eq!(
            (headers.contains_key(AUTHORIZATION), body.as_str()),
            (false, "client_id=a%3Ab")
        );
        assert!(!format!("{:?}", client(Method::Post)).contains("s t"));
    }

    #[test]
    fn a_registration_requests_supported_values() {
        let here = "http://localhost:1/oauth/callback";
        let there = "https://us.test/oauth/callback";
        let all = ["client_secret_basic", "none", "client_secret_post"];
        for (methods, callback, expected) in [
            (None, here, Method::None),
            (None, there, Method::Basic),
            (Some(&all[..]), here, Method::None),
            (Some(&all[..]), there, Method::Basic),
            (Some(&["client_secret_post"][..]), here, Method::Post),
            (Some(&["none"][..]), there, Method::None),
        ] {
            assert_eq!(registered_method(&issuer(methods), callback), Ok(expected));
        }
        assert!(registered_method(&issuer(Some(&["tls_client_auth"])), here).is_err());
        let said = description(Method::None, here, &Scopes::read("a b"));
        assert_eq!((&said["application_type"], &said["scope"]), (&json!("native"), &json!("a b")));
        let said = description(Method::Basic, there, &Scopes::default());
        assert_eq!((&said["application_type"], said.get("scope")), (&json!("web"), None));
        assert!(said["grant_types"].as_array().unwrap().contains(&json!("refresh_token")));
    }

    #[test]
    fn the_registration_response_is_used() {
        let read = |methods: Option<&[&str]>, status: u16, body: Value| {
            let posted = PostReply { status: StatusCode::from_u16(status).unwrap(), body };
            registered(&issuer(methods), "http://localhost/", Method::None, &posted)
        };
        let method =
            |methods: Option<&[&str]>, body: Value| read(methods, 201, body).unwrap().client.method;
        assert_eq!(method(None, json!({"client_id": "a"})), Method::None);
        let secret = json!({"client_id": "a", "client_secret": "s"});
        assert_eq!(method(None, secret.clone()), Method::Basic);
        assert_eq!(method(Some(&["none"]), secret), Method::None);
        let post = json!({"client_id": "a", "client_secret": "s", "client_secret_expires_at": 7,
            "token_endpoint_auth_method": "client_secret_post"});
        assert_eq!(read(None, 201, post.clone()).unwrap().expires_at, Some(Millis(7_000)));
        assert_eq!(method(None, post), Method::Post);
        let refused = read(None, 400, json!({"error": "invalid_redirect_uri"})).unwrap_err();
        assert!(refused.why.contains("invalid_redirect_uri") && refused.hint.is_some());
        assert!(read(None, 201, json!({})).is_err());
    }

    #[test]
    fn a_client_id_document_is_used_where_supported() {
        let places = |metadata: Option<&str>| LoginPlaces {
            callback: "http://localhost/".to_owned(),
            client_metadata: metadata.map(str::to_owned),
            shown_to_callers: false,
        };
        let ours = "https://us.test/oauth/client.json";
        let client = Client::documented(&issuer(None), &places(Some(ours))).unwrap();
        assert_eq!((client.id.as_str(), client.method), (ours, Method::None));
        assert_eq!(Client::documented(&issuer(None), &places(None)), None);
        let blind = Issuer { reads_documents: false, ..issuer(None) };
        assert_eq!(Client::documented(&blind, &places(Some(ours))), None);
    }
}
