//! The realm of a request: the one that it asks for with `X-Realm` or `?realm=`, else what follows
//! from who sends it.

use crate::problem::{Failure, Result};
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, HeaderName, StatusCode, Uri};
use kernel::identity::directory::Directory;
use kernel::identity::grants::Grants;
use kernel::identity::realm::RealmSelector;
use kernel::values::ids::RealmId;
use project::realm::{DEFAULT_REALM, default_realm};

/// What is static need not be read letter by letter with each request.
static HEADER: HeaderName = HeaderName::from_static("x-realm");
const PARAMETER: &str = "realm";
/// The code of a refused realm.
const NOT_ALLOWED: &str = "realm_not_allowed";

/// The endpoints for which a principal can have a realm of its own, by the name of their area.
const AREAS: [(&str, &str); 2] = [("/api/agent", "integration"), ("/api/query", "integration")];

/// Who sends a request, as far as it decides about its realm.
#[derive(Debug, Clone, Copy)]
pub struct Sender<'a> {
    pub subject: &'a str,
    /// The realms that its credential may enter.
    pub grants: &'a Grants,
    pub directory: &'a Directory,
}

/// The realm of a request. Whether one exists is nobody's business who may not enter it.
pub fn realm(uri: &Uri, headers: &HeaderMap, sender: Sender<'_>) -> Result<RealmId> {
    let Sender { subject, grants, directory } = sender;
    let principal = directory.principals.of_subject(subject).map(|known| &*known.principal);
    let asked = asked(uri, headers)?;
    let area = area(uri.path());
    let usual = default_realm();
    let chosen = directory.realms.choose(RealmSelector { asked, area, principal, grants, usual });
    chosen.ok_or_else(not_allowed)
}

/// The realm of this name, for a sender who may enter it.
pub fn named(name: &str, sender: Sender<'_>) -> Result<RealmId> {
    let Sender { subject, grants, directory } = sender;
    let principal = directory.principals.of_subject(subject).map(|known| &*known.principal);
    let wish =
        RealmSelector { asked: Some(name), area: None, principal, grants, usual: default_realm() };
    directory.realms.choose(wish).ok_or_else(not_allowed)
}

/// The realm that a request asks for, as it is written; empty where it asks for none.
pub fn wish<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> &'a str {
    asked(uri, headers).ok().flatten().unwrap_or_default()
}

/// Whether a failure says that a realm may not be entered.
pub fn is_not_allowed(failure: &Failure) -> bool {
    failure.code() == NOT_ALLOWED
}

/// Whether a request names a realm by itself.
pub fn is_asked(uri: &Uri, headers: &HeaderMap) -> bool {
    asked(uri, headers).is_ok_and(|asked| asked.is_some())
}

/// What everybody hears who may not enter a realm, whether it exists or not.
pub fn not_allowed() -> Failure {
    let message = "the credential may not enter this realm";
    Failure::new(StatusCode::FORBIDDEN, NOT_ALLOWED, message)
        .hint("`waypost whoami` lists the realms that it may enter")
}

/// Refuses a request that names another realm than the one that every server has: in local mode
/// there is no other, and what is meant for it must not be done here.
pub fn only_usual(uri: &Uri, headers: &HeaderMap) -> Result<()> {
    asked(uri, headers)?.map_or(Ok(()), usual)
}

/// Refuses every other realm than the one that every server has.
pub(super) fn usual(name: &str) -> Result<()> {
    if name == DEFAULT_REALM {
        return Ok(());
    }
    let message = "a local server serves the realm `default` alone";
    Err(Failure::new(StatusCode::FORBIDDEN, NOT_ALLOWED, message)
        .hint("`waypost serve` asks for credentials and serves every realm"))
}

/// The area of an endpoint.
fn area(path: &str) -> Option<&'static str> {
    let is_below = |beginning: &str| {
        path.strip_prefix(beginning).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    AREAS.iter().find(|(beginning, _)| is_below(beginning)).map(|(_, area)| *area)
}

/// The name that a request says, once.
fn asked<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Result<Option<&'a str>> {
    let in_headers =
        headers.get_all(&HEADER).iter().map(|value| value.to_str().unwrap_or_default());
    let in_header = once(in_headers)?;
    let in_query = once(pairs(uri).filter(|(name, _)| *name == PARAMETER).map(|(_, text)| text))?;
    match (in_header, in_query) {
        (Some(one), Some(other)) if one != other => Err(two_realms()),
        (in_header, in_query) => Ok(in_header.or(in_query)),
    }
}

fn once<'a>(mut said: impl Iterator<Item = &'a str>) -> Result<Option<&'a str>> {
    let first = said.next();
    if said.next().is_some() { Err(two_realms()) } else { Ok(first) }
}

pub(super) fn two_realms() -> Failure {
    Failure::bad_request("two_realms", "the request names a realm more than once")
        .hint("send `X-Realm` or `realm`, once")
}

/// The names and values of a query, as they are written: the name of a realm needs no encoding.
fn pairs(uri: &Uri) -> impl Iterator<Item = (&str, &str)> {
    let parts = uri.query().unwrap_or_default().split('&');
    parts.map(|part| part.split_once('=').unwrap_or((part, "")))
}

/// The same address without the realm, where it names one: handlers refuse what they do not know.
pub fn without_realm(uri: &Uri) -> Option<Uri> {
    pairs(uri).find(|(name, _)| *name == PARAMETER)?;
    let is_other = |part: &&str| part.split('=').next() != Some(PARAMETER);
    let rest: Vec<&str> = uri.query()?.split('&').filter(is_other).collect();
    let path = match rest.is_empty() {
        true => uri.path().to_owned(),
        false => format!("{}?{}", uri.path(), rest.join("&")),
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(path).ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;
    use kernel::identity::grants::RealmPattern;
    use kernel::identity::realm::{RealmSettings, Realms};
    use kernel::identity::roles::{Role, Roles};

    fn told(uri: &'static str, header: &[&'static str], grants: &Grants) -> String {
        let mut headers = HeaderMap::new();
        for value in header {
            headers.append(&HEADER, HeaderValue::from_static(value));
        }
        let names = [default_realm(), "acme".into()];
        let realms = Realms(names.map(|name| (name, RealmSettings::default())).into());
        let directory = Directory { realms: realms.into(), ..Directory::default() };
        let sender = Sender { subject: "ann", grants, directory: &directory };
        match realm(&Uri::from_static(uri), &headers, sender) {
            Ok(realm) => realm.to_string(),
            Err(failure) => format!("{} {}", failure.status().as_u16(), failure.code()),
        }
    }

    fn entering(pattern: &str) -> Grants {
        Grants::one(RealmPattern::parse(pattern).unwrap(), Roles::of(&[Role::Member]))
    }

    #[test]
    fn a_request_is_in_a_realm_that_its_credential_may_enter() {
        let realm = default_realm().to_string();
        let own = entering(&realm);
        let all = entering("*");
        let other = entering("acme");
        for (uri, header, grants, answer) in [
            ("/", &[] as &[&'static str], &own, realm.as_str()),
            ("/", &[], &all, realm.as_str()),
            ("/", &[], &other, "acme"),
            ("/", &["acme"], &other, "acme"),
            ("/", &["acme"], &all, "acme"),
            ("/?realm=acme", &[], &all, "acme"),
            ("/?realm=acme", &["acme"], &all, "acme"),
            ("/?realm=acme", &[], &own, "403 realm_not_allowed"),
            ("/?realm=none", &[], &all, "403 realm_not_allowed"),
            ("/", &["none"], &all, "403 realm_not_allowed"),
            ("/?a=b&realm=", &[], &own, "403 realm_not_allowed"),
            ("/?realms=acme", &[], &own, realm.as_str()),
            ("/", &["a", "a"], &own, "400 two_realms"),
            ("/?realm=a&realm=a", &[], &own, "400 two_realms"),
            ("/?realm=a", &["b"], &own, "400 two_realms"),
            ("/?realm=a", &["a"], &own, "403 realm_not_allowed"),
        ] {
            assert_eq!(told(uri, header, grants), answer, "{uri} {header:?}");
        }
    }

    #[test]
    fn a_local_server_has_one_realm() {
        let told = |uri: &'static str, header: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in header {
                headers.append(&HEADER, HeaderValue::from_static(value));
            }
            let checked = only_usual(&Uri::from_static(uri), &headers);
            checked.err().map(|failure| failure.status().as_u16())
        };
        for (uri, header, status) in [
            ("/", &[] as &[&'static str], None),
            ("/", &["default"], None),
            ("/?realm=default", &["default"], None),
            ("/", &["acme"], Some(403)),
            ("/?realm=acme", &[], Some(403)),
            ("/", &["default", "default"], Some(400)),
        ] {
            assert_eq!(told(uri, header), status, "{uri} {header:?}");
        }
    }

    #[test]
    fn some_endpoints_have_an_area() {
        for (path, expected) in [
            ("/api/agent", Some("integration")),
            ("/api/agent/config/list", Some("integration")),
            ("/api/query", Some("integration")),
            ("/api/agents", None),
            ("/api/v1/agents", None),
            ("/", None),
        ] {
            assert_eq!(area(path), expected, "{path}");
        }
    }

    #[test]
    fn handlers_do_not_see_the_realm() {
        for (uri, left) in [
            ("/a?realm=x", Some("/a")),
            ("/a?b=1&realm=x&c=%20", Some("/a?b=1&c=%20")),
            ("http://h.test/a?realm", Some("http://h.test/a")),
            ("/a?b=1", None),
            ("/a", None),
        ] {
            let left = left.map(|left| left.parse::<Uri>().unwrap());
            assert_eq!(without_realm(&uri.parse().unwrap()), left, "{uri}");
        }
    }
}
