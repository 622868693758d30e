//! `[providers.<name>]` of `type = "rest"`: a server that an OpenAPI document describes.

use super::expand::{Around, expanded};
use super::keys::Keys;
use super::sendable::{headers_of, shown_url, url_of};
use super::text::{Named, Reading, Text};
use super::written::{Table, Written};
use kernel::plan::mistake::{Mistake, meant};
use tools::remote::{Document, KeyPlace, RestAuth, RestConfig, Secret};

/// Where most servers have their document.
const USUAL_DOCUMENT: &str = "/openapi.json";

/// The way to a REST server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RestWay {
    base_url: Option<Text>,
    document: Option<Text>,
    auth: Option<Auth>,
    headers: Named,
    include: Vec<Text>,
    allow_private: bool,
}

/// `auth`, as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Auth {
    Bearer(Text),
    Basic { user: Text, password: Text },
    ApiKey { name: Text, place: KeyPlace, value: Text },
}

impl RestWay {
    /// The way that these keys name.
    pub(super) fn new(keys: Keys) -> Result<Self, Mistake> {
        if keys.url.is_none() && keys.document.is_none() {
            return Err(Mistake::error("there is neither `base_url` nor `document`")
                .hint("`document` is an OpenAPI document: a file, or a URL"));
        }
        let auth = keys.auth.map(|(at, table)| auth(&at, &table)).transpose()?;
        Ok(Self {
            base_url: keys.url,
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
        let of_auth = match &self.auth {
            Some(Auth::Bearer(_) | Auth::Basic { .. }) => Some("Authorization".to_owned()),
            Some(Auth::ApiKey { name, place: KeyPlace::Header, .. }) => Some(name.text.clone()),
            Some(Auth::ApiKey { place: KeyPlace::Query, .. }) | None => None,
        };
        of_auth.into_iter().chain(self.headers.iter().map(|(name, _)| name.clone())).collect()
    }

    /// What to connect to.
    pub(super) fn config(&self, around: &Around<'_>) -> Result<RestConfig, Mistake> {
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

fn document(text: &Text, around: &Around<'_>) -> Result<Document, Mistake> {
    if text.text.starts_with("http://") || text.text.starts_with("https://") {
        return Ok(Document::Url(url_of(text, around)?));
    }
    Ok(Document::File(around.folder.join(expanded(text, around)?)))
}

impl Auth {
    fn looked_up(&self, around: &Around<'_>) -> Result<RestAuth, Mistake> {
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

fn auth(at: &Written, table: &Table) -> Result<Auth, Mistake> {
    let mut mistakes = Vec::new();
    let mut reading = Reading::new(&mut mistakes);
    let mut texts: Vec<(&str, Text)> = Vec::new();
    for (word, value) in &table.0 {
        if let Some(text) = reading.text(&format!("auth.{}", word.text), value) {
            texts.push((word.text.as_str(), text));
        }
    }
    if let Some(first) = mistakes.into_iter().next() {
        return Err(first);
    }
    let text = |key: &str| {
        let found = texts.iter().find(|(name, _)| *name == key);
        let missing = || at.place.mistake(Mistake::error(format!("`auth.{key}` is missing")));
        found.map(|(_, text)| text.clone()).ok_or_else(missing)
    };
    let kind = text("type")?;
    let types = AUTH_KEYS.iter().map(|(name, _)| *name);
    let Some((_, known)) = AUTH_KEYS.iter().find(|(name, _)| *name == kind.text) else {
        let hint = meant(&kind.text, types)
            .unwrap_or_else(|| "it is `bearer`, `basic` or `api_key`".to_owned());
        let what = format!("`{}` is no type of `auth`", kind.text);
        return Err(kind.mistake(Mistake::error(what).hint(hint)));
    };
    if let Some((word, _)) = table.0.iter().find(|(word, _)| !known.contains(&word.text.as_str())) {
        let hint = meant(&word.text, known.iter().copied())
            .unwrap_or_else(|| format!("known here: {}", known.join(", ")));
        let what = format!("unknown key `{}` in `auth`", word.text);
        return Err(word.place.mistake(Mistake::error(what).hint(hint)));
    }
    Ok(match kind.text.as_str() {
        "bearer" => Auth::Bearer(text("token")?),
        "basic" => Auth::Basic { user: text("user")?, password: text("password")? },
        _ => Auth::ApiKey {
            name: text("name")?,
            place: key_place(&text("in")?)?,
            value: text("value")?,
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
