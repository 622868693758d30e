//! Parameters of URLs: queries, pages, waits, and the names of sessions, runs and asks.

use crate::problem::{Failure, Result};
use crate::request::auth::Visitor;
use crate::request::realms::{only_usual, without_realm};
use crate::request::server_state::ServerState;
use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
use engine::refusal::Refusal;
use kernel::contracts::{PageRequest, SessionRef};
use kernel::definition::plan::mistake::meant;
use kernel::limits::Limits;
use kernel::values::ids::{AskId, BadId, RunId, SessionId, Space};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::str::FromStr;

/// A query; an unknown or unreadable parameter is refused.
pub struct Params<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Params<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self> {
        let mut query = Query::try_from_uri(&parts.uri);
        // The realm is the frame's concern, or no one's in local mode.
        let visitor = parts.extensions.get::<Visitor>().filter(|_| query.is_err());
        if let Some((visitor, rest)) = visitor.zip(without_realm(&parts.uri)) {
            if visitor.verified.is_none() {
                only_usual(&parts.uri, &parts.headers)?;
            }
            query = Query::try_from_uri(&rest);
        }
        match query {
            Ok(Query(query)) => Ok(Self(query)),
            Err(rejection) => {
                let text = rejection.body_text();
                let why = text.rsplit_once("string: ").map_or(text.as_str(), |(_, why)| why);
                Err(Failure::bad_request("bad_query", format!("the query cannot be read: {why}")))
            }
        }
    }
}

/// The one name in a path, percent-decoded.
pub struct PathName(pub String);

impl<S: Send + Sync> FromRequestParts<S> for PathName {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
        match Path::<String>::from_request_parts(parts, state).await {
            Ok(Path(name)) => Ok(Self(name)),
            Err(rejection) => Err(Failure::bad_request("bad_path", rejection.body_text())
                .hint("percent-encode the name as UTF-8")),
        }
    }
}

impl PathName {
    /// The run of this name; a name that is no id is one that does not exist.
    pub fn run(&self) -> Result<RunId> {
        self.id("run")
    }

    pub fn ask(&self) -> Result<AskId> {
        self.id("ask")
    }

    fn id<T: FromStr<Err = BadId>>(&self, noun: &'static str) -> Result<T> {
        self.0.parse().map_err(|bad: BadId| {
            Refusal::not_found(noun, short(&self.0)).hint(bad.to_string()).into()
        })
    }
}

/// The two names in a path, percent-decoded.
pub struct TwoPathNames(pub String, pub String);

impl<S: Send + Sync> FromRequestParts<S> for TwoPathNames {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
        match Path::<(String, String)>::from_request_parts(parts, state).await {
            Ok(Path((first, second))) => Ok(Self(first, second)),
            Err(rejection) => Err(Failure::bad_request("bad_path", rejection.body_text())
                .hint("percent-encode the names as UTF-8")),
        }
    }
}

/// A session by `ses_..` or by its client's key.
pub fn session_ref(name: &str, space: Option<&str>) -> SessionRef {
    match name.parse::<SessionId>() {
        Ok(id) => SessionRef::Id(id),
        Err(_) => SessionRef::Key { key: name.into(), space: space.map(Space::from) },
    }
}

/// `?space=`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InSpace {
    /// The space, where several have the same key.
    pub space: Option<String>,
}

/// `?wait=`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wait {
    /// Seconds.
    wait: Option<f64>,
}

impl Wait {
    /// How long to wait for a run.
    pub fn ms(&self, server: &ServerState) -> Result<u64> {
        self.ms_or(server, server.limits().run_wait_ms)
    }

    /// The same, where the endpoint has a wait of its own.
    pub fn ms_or(&self, server: &ServerState, usual_ms: u64) -> Result<u64> {
        let limits = server.limits();
        match self.wait {
            None => Ok(usual_ms),
            // Larger waits are cut, not refused: the caller gets 202 and asks again.
            Some(seconds) if seconds >= 0.0 => {
                Ok(((seconds * 1000.0) as u64).min(limits.run_wait_ms_max))
            }
            Some(seconds) => Err(Failure::bad_request(
                "bad_query",
                format!("`wait` is `{seconds}`, and must be a number of seconds"),
            )),
        }
    }
}

/// A page as the query asks for it, within the limits.
pub fn page(limit: Option<usize>, cursor: Option<String>, limits: &Limits) -> PageRequest {
    let wanted = limit.unwrap_or(limits.page_items_default);
    PageRequest { cursor, limit: wanted.clamp(1, limits.page_items_max.max(1)) }
}

/// There is nothing of this name. The hint is the name that was meant, else this one.
pub fn not_found<'n>(
    noun: &'static str,
    name: &str,
    names: impl IntoIterator<Item = &'n str>,
    hint: &str,
) -> Failure {
    let hint = meant(name, names).unwrap_or_else(|| hint.to_owned());
    Refusal::not_found(noun, short(name)).hint(hint).into()
}

/// A parameter of the query is none of the words that it can be.
pub fn no_such(parameter: &str, given: &str, known: &[&str]) -> Failure {
    let hint = meant(given, known.iter().copied())
        .unwrap_or_else(|| format!("one of {}", known.join(", ")));
    let message = format!("there is no {parameter} `{}`", short(given));
    Failure::bad_request("bad_query", message).hint(hint)
}

/// What a stranger sent, short enough to be shown.
pub fn short(text: &str) -> String {
    text.chars().take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_stays_within_the_limits() {
        let limits = Limits::default();
        assert_eq!(page(None, None, &limits).limit, limits.page_items_default);
        assert_eq!(page(Some(0), None, &limits).limit, 1);
        assert_eq!(page(Some(1_000_000), None, &limits).limit, limits.page_items_max);
    }

    #[test]
    fn a_session_is_named_by_id_or_key() {
        let id = SessionId(7);
        assert_eq!(session_ref(&id.to_string(), None), SessionRef::Id(id));
        let key = SessionRef::Key { key: "a".into(), space: Some(Space::session()) };
        assert_eq!(session_ref("a", Some("session")), key);
    }
}
