//! `oauth` of an entry: how a login at an MCP server goes, where the server does not say all of it
//! itself. In a client's file it is written in the words of that client.

use super::expand::{Around, expanded, names_variable};
use super::text::{Reading, Text};
use super::written::{Shape, Word, Written};
use crate::layer::Place;
use kernel::plan::mistake::{Mistake, meant};
use tools::remote::{Grant, OauthConfig, Secret};
use wire::rest::ProviderOauth;

/// Our own words.
const OUR_KEYS: &[&str] = &["client_id", "client_secret", "scopes", "grant"];

/// Theirs: `clientId` is Claude Code's and Gemini's, `CLIENT_ID` Cursor's, `scope` opencode's.
const THEIR_KEYS: &[&str] = &[
    "clientId",
    "clientSecret",
    "client_id",
    "client_secret",
    "CLIENT_ID",
    "CLIENT_SECRET",
    "scopes",
    "scope",
    "grant",
];

/// Keys of clients that say where a login goes. Ours goes where the server says, and comes back to
/// an address of ours.
const NOT_FOLLOWED: &[&str] = &[
    "callbackPort",
    "redirectUri",
    "authServerMetadataUrl",
    "authorizationUrl",
    "tokenUrl",
    "registrationUrl",
];

/// Who logs in, in words.
const GRANTS: [(&str, Grant); 2] = [("person", Grant::Person), ("ourselves", Grant::Ourselves)];

/// `oauth`, as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Oauth {
    /// Where it is written.
    pub(crate) place: Place,
    pub(crate) client_id: Option<Text>,
    pub(crate) client_secret: Option<Text>,
    pub(crate) scopes: Option<Vec<Text>>,
    pub(crate) grant: Option<Grant>,
}

impl Oauth {
    fn at(place: &Place) -> Self {
        let place = place.clone();
        Self { place, client_id: None, client_secret: None, scopes: None, grant: None }
    }

    /// What a table of our settings says.
    pub(super) fn ours(value: &Written, mistakes: &mut Vec<Mistake>) -> Option<Self> {
        let table = Reading::new(mistakes).table("oauth", value)?;
        let mut oauth = Self::at(&value.place);
        for (word, value) in &table.0 {
            if OUR_KEYS.contains(&word.text.as_str()) {
                oauth.take(word, value, mistakes);
            } else {
                let hint = meant(&word.text, OUR_KEYS.iter().copied())
                    .unwrap_or_else(|| format!("known here: {}", OUR_KEYS.join(", ")));
                let what = format!("unknown key `{}` in `oauth`", word.text);
                mistakes.push(word.place.mistake(Mistake::error(what).hint(hint)));
            }
        }
        Some(oauth)
    }

    /// What a client's file says; `path` is how mistakes name it.
    pub(super) fn theirs(value: &Written, path: &str, mistakes: &mut Vec<Mistake>) -> Option<Self> {
        let table = match &value.value {
            Shape::Table(table) => table,
            // Whether a client logs in by itself; here somebody has to say so.
            Shape::Text(_)
            | Shape::Whole(_)
            | Shape::Fraction(_)
            | Shape::Flag(_)
            | Shape::List(_)
            | Shape::Other(_) => return None,
        };
        let mut oauth = Self::at(&value.place);
        for (word, value) in &table.0 {
            let key = word.text.as_str();
            if THEIR_KEYS.contains(&key) {
                oauth.take(word, value, mistakes);
            } else if let Some(hint) = meant(key, THEIR_KEYS.iter().copied()) {
                let what = format!("unknown key `{key}` in `{path}`");
                mistakes.push(word.place.mistake(Mistake::error(what).hint(hint)));
            } else if NOT_FOLLOWED.contains(&key) {
                let what = format!("`{key}` of `{path}` is not followed here");
                let hint = "a login goes where the server says, and comes back to `public_url` of \
                            `[server]`";
                mistakes.push(word.place.mistake(Mistake::warning(what).hint(hint)));
            }
        }
        if oauth == Self::at(&value.place) && path.ends_with(".auth") {
            let what = format!("`{path}` is not followed here");
            let hint = "write what it stands for into `headers`";
            mistakes.push(value.place.mistake(Mistake::warning(what).hint(hint)));
        }
        Some(oauth)
    }

    /// What a stored provider says. Its secret is named, never stored.
    pub(super) fn stored(stored: &ProviderOauth, place: &Place) -> Result<Self, Mistake> {
        let text = |text: &String| Text { text: text.clone(), place: place.clone() };
        let secret = stored.client_secret.as_deref();
        if secret.is_some_and(|secret| !names_variable(secret)) {
            let what = "`clientSecret` says its value, and secrets are not stored";
            let hint = "name a variable, as in `${WAYPOST_PROVIDER_SECRET}`, and set it";
            return Err(place.mistake(Mistake::error(what).hint(hint)));
        }
        let scopes = stored.scopes.as_ref();
        let grant = stored.grant.as_ref().map(text);
        Ok(Self {
            client_id: stored.client_id.as_ref().map(text),
            client_secret: stored.client_secret.as_ref().map(text),
            scopes: scopes.map(|scopes| scopes.iter().map(text).collect()),
            grant: grant.map(|grant| grant_of(&grant)).transpose()?,
            ..Self::at(place)
        })
    }

    /// These, and below them those.
    pub(super) fn over(self, below: Oauth) -> Oauth {
        Oauth {
            place: self.place,
            client_id: self.client_id.or(below.client_id),
            client_secret: self.client_secret.or(below.client_secret),
            scopes: self.scopes.or(below.scopes),
            grant: self.grant.or(below.grant),
        }
    }

    /// How a login goes, with everything looked up.
    pub(super) fn config(&self, around: &Around<'_>) -> Result<OauthConfig, Mistake> {
        // A variable that is empty stands for nothing.
        let text = |text: &Option<Text>| -> Result<Option<String>, Mistake> {
            let looked_up = text.as_ref().map(|text| expanded(text, around)).transpose()?;
            Ok(looked_up.filter(|text| !text.is_empty()))
        };
        let config = OauthConfig {
            client_id: text(&self.client_id)?,
            client_secret: text(&self.client_secret)?.map(Secret::new),
            scopes: self.scopes.as_deref().map(|scopes| scopes_of(scopes, around)).transpose()?,
            grant: self.grant.unwrap_or_default(),
        };
        let wrong = |what: &str, hint: &str| Err(self.mistake(what, hint));
        let (has_id, has_secret) = (config.client_id.is_some(), config.client_secret.is_some());
        match (config.grant, has_id, has_secret) {
            (Grant::Ourselves, true, true) | (Grant::Person, true, _) => Ok(config),
            (Grant::Person, false, false) => Ok(config),
            (Grant::Ourselves, _, _) => wrong(
                "`grant` is `ourselves`, and that needs `client_id` and `client_secret`",
                "the server's operator gives you both",
            ),
            (Grant::Person, false, true) => wrong(
                "`client_secret` is there, and `client_id` is missing",
                "the server's operator gives you both; without them a client is registered",
            ),
        }
    }

    /// A mistake in all of it.
    pub(super) fn mistake(&self, what: &str, hint: &str) -> Mistake {
        self.place.mistake(Mistake::error(what).hint(hint))
    }

    fn take(&mut self, word: &Word, value: &Written, mistakes: &mut Vec<Mistake>) {
        let key = word.text.as_str();
        let mut reading = Reading::new(mistakes);
        match key {
            "client_id" | "clientId" | "CLIENT_ID" => self.client_id = reading.text(key, value),
            "client_secret" | "clientSecret" | "CLIENT_SECRET" => {
                self.client_secret = reading.text(key, value);
            }
            "grant" => {
                let grant = reading.text(key, value).map(|text| grant_of(&text));
                match grant.transpose() {
                    Ok(grant) => self.grant = grant,
                    Err(mistake) => mistakes.push(mistake),
                }
            }
            // One text with spaces, as the protocol itself has it, or a list.
            _ => match &value.value {
                Shape::Text(text) => {
                    let scope =
                        |scope: &str| Text { text: scope.to_owned(), place: value.place.clone() };
                    self.scopes = Some(text.split_whitespace().map(scope).collect());
                }
                Shape::List(_)
                | Shape::Whole(_)
                | Shape::Fraction(_)
                | Shape::Flag(_)
                | Shape::Table(_)
                | Shape::Other(_) => self.scopes = reading.texts(key, value),
            },
        }
    }
}

/// The word for who logs in.
pub(super) fn grant_word(grant: Grant) -> &'static str {
    match grant {
        Grant::Person => "person",
        Grant::Ourselves => "ourselves",
    }
}

fn grant_of(text: &Text) -> Result<Grant, Mistake> {
    let known = GRANTS.iter().find(|(word, _)| *word == text.text);
    known.map(|(_, grant)| *grant).ok_or_else(|| {
        let hint = meant(&text.text, GRANTS.iter().map(|(word, _)| *word))
            .unwrap_or_else(|| "it is `person` or `ourselves`".to_owned());
        let what = format!("`{}` is nobody who can log in", text.text);
        text.mistake(Mistake::error(what).hint(hint))
    })
}

fn scopes_of(scopes: &[Text], around: &Around<'_>) -> Result<Vec<String>, Mistake> {
    let scope = |text: &Text| {
        let scope = expanded(text, around)?;
        // RFC 6749, 3.3.
        let fits = |c: char| c.is_ascii_graphic() && c != '"' && c != '\\';
        if scope.is_empty() || !scope.chars().all(fits) {
            let what = format!("`{}` is no scope", text.text);
            let hint = "a scope is one word of visible ASCII letters; several are a list";
            return Err(text.mistake(Mistake::error(what).hint(hint)));
        }
        Ok(scope)
    };
    scopes.iter().map(scope).collect()
}
