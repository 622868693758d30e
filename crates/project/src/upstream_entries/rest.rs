//! `[providers.<name>]` of `type = "rest"`: a server that an OpenAPI document describes.

use super::expand::{ExpandContext, expanded};
use super::keys::{AuthKeys, ProviderKeys};
use super::sendable::{headers_of, shown_url, url_of};
use crate::settings::{Located, Named, Text};
use kernel::definition::plan::mistake::{Mistake, meant};
use upstreams::{Document, KeyPlace, RestAuth, RestConfig, Secret};

/// Where most servers have their document.
const USUAL_DOCUMENT: &str = "/openapi.json";

/// The way to a REST server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestEndpoint {
    base_url: Option<Text>,
    document: Option<Text>,
    auth: Option<Auth>,
    headers: Named,
    include: Vec<Text>,
    allow_private: bool,
}

/// `auth`, as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Auth {
    Bearer(Text),
    Basic { user: Text, password: Text },
    ApiKey { name: Text, place: KeyPlace, value: Text },
}

impl RestEndpoint {
    /// The way that these keys name.
    pub(super) fn new(keys: ProviderKeys) -> Result<Self, Mistake> {
        if keys.base_url.is_none() && keys.document.is_none() {
            return Err(Mistake::error("there is neither `base_url` nor `document`")
                .hint("`document` is an OpenAPI document: a file, or a URL"));
        }
        let auth = keys.auth.map(auth).transpose()?;
        Ok(Self {
            base_url: keys.base_url,
            document: keys.document,
            auth,
            headers: keys.headers,
            include: keys.include,
            allow_private: keys.allow_private == Some(true),
        })
    }

    /// Where it is, without what may be a secret.
    pub(super) fn target(&self) -> String {
        let text = self.base_url.as_ref().or(self.document.as_ref());
        text.map(|text| shown_url(&text.text)).unwrap_or_default()
    }

    /// The names of what is sent with every request.
    pub(super) fn header_names(&self) -> Vec<String> {
        let of_auth = self.auth.as_ref().and_then(Auth::header);
        of_auth.into_iter().chain(self.headers.iter().map(|(name, _)| name.clone())).collect()
    }

    /// What to connect to.
    pub(super) fn config(&self, around: &ExpandContext<'_>) -> Result<RestConfig, Mistake> {
        let base_url = self.base_url.as_ref().map(|url| url_of(url, around)).transpose()?;
        let document = match (&self.document, &base_url) {
            (Some(text), _) => document(text, around)?,
            // One of both is there.
            (None, base) => {
                let base = base.as_deref().unwrap_or_default().trim_end_matches('/');
                Document::Url(format!("{base}{USUAL_DOCUMENT}"))
            }
        };
        let include: Vec<String> = self.include.iter().map(|text| text.text.clone()).collect();
        let auth = self.auth.as_ref().map(|auth| auth.looked_up(around)).transpose()?;
        Ok(RestConfig {
            base_url,
            auth,
            headers: headers_of(&self.headers, around)?,
            include: (!include.is_empty()).then_some(include),
            allow_private: self.allow_private,
            ..RestConfig::new(document)
        })
    }
}

fn document(text: &Text, around: &ExpandContext<'_>) -> Result<Document, Mistake> {
    if text.text.starts_with("http://") || text.text.starts_with("https://") {
        return Ok(Document::Url(url_of(text, around)?));
    }
    Ok(Document::File(around.folder.join(expanded(text, around)?)))
}

impl Auth {
    /// The header that it is sent in, if it is sent in one.
    pub(super) fn header(&self) -> Option<String> {
        match self {
            Auth::Bearer(_) | Auth::Basic { .. } => Some("Authorization".to_owned()),
            Auth::ApiKey { name, place: KeyPlace::Header, .. } => Some(name.text.clone()),
            Auth::ApiKey { place: KeyPlace::Query, .. } => None,
        }
    }

    /// The same with what its variables hold.
    pub(super) fn looked_up(&self, around: &ExpandContext<'_>) -> Result<RestAuth, Mistake> {
        let secret = |text: &Text| expanded(text, around).map(Secret::new);
        Ok(match self {
            Auth::Bearer(token) => RestAuth::Bearer(secret(token)?),
            Auth::Basic { user, password } => {
                RestAuth::Basic { user: expanded(user, around)?, password: secret(password)? }
            }
            Auth::ApiKey { name, place, value } => {
                RestAuth::ApiKey { name: name.text.clone(), place: *place, value: secret(value)? }
            }
        })
    }
}

/// The keys of each type of `auth`.
const AUTH_KEYS: &[(&str, &[&str])] = &[
    ("bearer", &["type", "token"]),
    ("basic", &["type", "user", "password"]),
    ("api_key", &["type", "name", "in", "value"]),
];

/// What `auth` says.
pub(super) fn auth(written: Located<AuthKeys>) -> Result<Auth, Mistake> {
    let Located { place: at, keys: there, value: keys } = written;
    let there_is = |text: Option<Text>, key: &str| {
        let missing = || at.mistake(Mistake::error(format!("`auth.{key}` is missing")));
        text.ok_or_else(missing)
    };
    let kind = there_is(keys.kind, "type")?;
    let types = AUTH_KEYS.iter().map(|(name, _)| *name);
    let Some((_, known)) = AUTH_KEYS.iter().find(|(name, _)| *name == kind.text) else {
        let hint = meant(&kind.text, types)
            .unwrap_or_else(|| "it is `bearer`, `basic` or `api_key`".to_owned());
        let what = format!("`{}` is no type of `auth`", kind.text);
        return Err(kind.mistake(Mistake::error(what).hint(hint)));
    };
    if let Some(key) = there.iter().find(|key| !known.contains(&key.text.as_str())) {
        let what = format!("`{}` has no place beside `type = \"{}\"`", key.text, kind.text);
        let hint = format!("known here: {}", known.join(", "));
        return Err(key.mistake(Mistake::error(what).hint(hint)));
    }
    Ok(match kind.text.as_str() {
        "bearer" => Auth::Bearer(there_is(keys.token, "token")?),
        "basic" => Auth::Basic {
            user: there_is(keys.user, "user")?,
            password: there_is(keys.password, "password")?,
        },
        _ => Auth::ApiKey {
            name: there_is(keys.name, "name")?,
            place: key_place(&there_is(keys.place, "in")?)?,
            value: there_is(keys.value, "value")?,
        },
    })
}

fn key_place(text: &Text) -> Result<KeyPlace, Mistake> {
    match text.text.as_str() {
        "header" => Ok(KeyPlace::Header),
        "query" => Ok(KeyPlace::Query),
        other => {
            let what = format!("`{other}` is no place for a key");
            Err(text.mistake(Mistake::error(what).hint("it is `header` or `query`")))
        }
    }
}
