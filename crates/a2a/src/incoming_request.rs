//! A request of A2A before it is read: who sends it, to which realm, in which version and media
//! type.

use super::error::{Result, invalid};
use super::operations::{Client, Dialect};
use crate::state::Shared;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{ACCEPT, CONTENT_TYPE, HOST};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Uri};
use edge::request::auth::Visitor;
use edge::request::realms::{self, Sender};
use edge::request::trace;
use kernel::tool::call::Caller;
use kernel::values::ids::RealmId;
use kernel::values::percent::decoded;
use std::sync::Arc;
use wire::a2a::error::{A2aError, ErrorKind};
use wire::a2a::{HEADER_VERSION, MEDIA_TYPE, VERSION_UNNAMED};

pub(super) const JSON: &str = "application/json";

/// A request as it came.
pub(super) struct IncomingRequest {
    pub(super) a2a: Shared,
    pub(super) uri: Uri,
    pub(super) headers: HeaderMap,
    /// As whom it is done, where that is known: strangers may read cards.
    pub(super) caller: Option<Arc<Caller>>,
    visitor: Option<Visitor>,
    /// The address under which we were asked, without a slash at its end.
    pub(super) base: String,
}

impl IncomingRequest {
    /// A request, and its body, which is not read yet.
    pub(super) fn of(a2a: &Shared, request: Request) -> (Self, Body) {
        let (Parts { uri, headers, extensions, .. }, body) = request.into_parts();
        let visitor = extensions.get::<Visitor>().cloned();
        let base = base(a2a, &uri, &headers);
        let caller = visitor.as_ref().map(|visitor| visitor.caller.clone());
        (Self { a2a: a2a.clone(), uri, headers, caller, visitor, base }, body)
    }

    /// The realm of the request: the one in its path or its `tenant`, else the one that it asks for
    /// as at other endpoints, else `[a2a] realm`.
    pub(super) fn realm(&self, path: Option<&str>, tenant: &str) -> Result<RealmId> {
        let tenant = Some(tenant).filter(|tenant| !tenant.is_empty());
        match (path, tenant) {
            (Some(path), Some(tenant)) if path != tenant => {
                let why = "`tenant` and the address name two realms";
                Err(invalid("tenant", why))
            }
            (Some(name), _) | (None, Some(name)) => Ok(RealmId::from(name)),
            (None, None) => {
                let asked = realms::is_asked(&self.uri, &self.headers);
                let caller = self.caller.as_ref().filter(|_| asked);
                Ok(caller.map_or_else(|| self.a2a.serving.realm.clone(), |who| who.realm.clone()))
            }
        }
    }

    /// Who calls, in this realm.
    pub(super) fn client(&self, realm: &RealmId) -> Result<Client> {
        let visitor = self.visitor.as_ref().ok_or_else(no_credential)?;
        let caller = match visitor.caller.realm == *realm {
            true => visitor.caller.clone(),
            false => entered(&self.a2a, visitor, realm)?,
        };
        let a2a = self.a2a.clone();
        let trace = trace::of(&self.headers);
        let verified = visitor.verified.as_ref();
        let impersonates = verified.is_some_and(|verified| verified.subject != caller.subject);
        Ok(Client { a2a, caller, impersonates, trace, dialect: Dialect::V1 })
    }

    /// Refuses every version but 1.0.
    pub(super) fn check_version(&self) -> Result<()> {
        match self.version()? {
            Dialect::V1 => Ok(()),
            Dialect::V03 => {
                let why = "this is of A2A 1.0, and the request is of 0.3; send `A2A-Version: 1.0`";
                Err(A2aError::new(ErrorKind::VersionNotSupported, why))
            }
        }
    }

    /// The version of the request. One that names none is of 0.3.
    pub(super) fn version(&self) -> Result<Dialect> {
        let in_headers = self
            .headers
            .get(HEADER_VERSION)
            .map(|value| value.to_str().unwrap_or("?").trim().to_owned());
        let in_query = self
            .query()
            .find_map(|(name, value)| name.eq_ignore_ascii_case(HEADER_VERSION).then_some(value));
        let said = match (in_headers, in_query) {
            (Some(header), Some(query)) if header != query => {
                let why = "the header and the query name two versions of A2A";
                return Err(invalid("A2A-Version", why));
            }
            (header, query) => header.or(query).filter(|said| !said.is_empty()),
        };
        let said = said.unwrap_or_else(|| VERSION_UNNAMED.to_owned());
        let mut parts = said.split('.');
        let minor = [parts.next(), parts.next()].map(Option::unwrap_or_default).join(".");
        let is_patch = parts.all(|part| part.parse::<u32>().is_ok());
        let known = Dialect::of(&minor).filter(|_| is_patch);
        known.ok_or_else(|| {
            let shown: String = said.chars().take(20).collect();
            let what = format!("version `{shown}` of A2A is not spoken here");
            let why = format!("{what}; send `A2A-Version: 1.0`, or none for 0.3");
            A2aError::new(ErrorKind::VersionNotSupported, why)
        })
    }

    /// The fields of the query, decoded.
    pub(super) fn query(&self) -> impl Iterator<Item = (String, String)> {
        let parts = self.uri.query().unwrap_or_default().split('&').filter(|part| !part.is_empty());
        parts.map(|part| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let spaced = |text: &str| decoded(&text.replace('+', " "));
            (spaced(name), spaced(value))
        })
    }

    /// Refuses a body of another media type than these.
    pub(super) fn check_type(&self, types: &[&str]) -> Result<()> {
        let Some(sent) = self.headers.get(CONTENT_TYPE) else { return Ok(()) };
        let sent = media_type(sent);
        if types.contains(&sent.as_str()) {
            return Ok(());
        }
        let why = format!("a body of the type `{sent}` is not taken; send {}", types.join(" or "));
        Err(A2aError::new(ErrorKind::ContentTypeNotSupported, why))
    }

    /// The media type of the answer over HTTP: that of the request.
    pub(super) fn answer_type(&self) -> &'static str {
        let known = |value: &HeaderValue| {
            let texts = value.to_str().unwrap_or_default().split(',');
            let mut types = texts.map(|text| text.split(';').next().unwrap_or_default().trim());
            types.find_map(|text| [JSON, MEDIA_TYPE].into_iter().find(|known| *known == text))
        };
        let of = |name| self.headers.get(name).and_then(known);
        of(CONTENT_TYPE).or_else(|| of(ACCEPT)).unwrap_or(MEDIA_TYPE)
    }
}

fn media_type(value: &HeaderValue) -> String {
    let text = value.to_str().unwrap_or_default();
    text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn no_credential() -> A2aError {
    A2aError::new(ErrorKind::Unauthenticated, "this server asks for a credential")
}

/// The same caller in another realm than the one that the frame chose.
fn entered(a2a: &Shared, visitor: &Visitor, realm: &RealmId) -> Result<Arc<Caller>> {
    let not_allowed = || realms::not_allowed().a2a();
    let verified = visitor.verified.as_ref().ok_or_else(not_allowed)?;
    if visitor.caller.subject != verified.subject {
        let why = "who acts for another names the realm with `X-Realm`";
        return Err(invalid("tenant", why));
    }
    let directory = a2a.server.identity.directory();
    let subject = &*verified.subject;
    let grants = &*verified.realms;
    let sender = Sender { subject, grants, directory: &directory };
    let realm = realms::named(realm.as_str(), sender).map_err(|failure| {
        a2a.server.identity.realm_refused(verified, realm.as_str());
        failure.a2a()
    })?;
    let via = visitor.caller.via.clone();
    Ok(Arc::new(Caller { via, ..verified.caller(realm, &directory) }))
}

/// By the name that was asked under, which the frame knows as ours.
fn base(a2a: &Shared, uri: &Uri, headers: &HeaderMap) -> String {
    let known = a2a.server.entrance.base();
    let scheme = match known {
        Some(base) if base.starts_with("https:") => "https",
        Some(_) | None => "http",
    };
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let host = host.or_else(|| uri.authority().map(axum::http::uri::Authority::as_str));
    match host {
        Some(host) => format!("{scheme}://{host}"),
        None => known.unwrap_or_default().to_owned(),
    }
}
