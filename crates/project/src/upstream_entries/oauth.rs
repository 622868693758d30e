//! `oauth` of an entry: how a login at an MCP server goes, where the server does not say all of it
//! itself. In a client's file it is written in the words of that client.

use super::expand::{ExpandContext, expanded, names_variable};
use crate::layer::Location;
use crate::settings::{Located, Text, checked};
use kernel::definition::plan::mistake::{Mistake, meant};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use upstreams::{Grant, LoginOf, OauthConfig, Secret};
use wire::rest::ProviderOauth;

/// Who logs in, in words.
const GRANTS: [(&str, Grant); 2] = [("person", Grant::Person), ("ourselves", Grant::Ourselves)];

/// `oauth` in our own words.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OurLogin {
    client_id: Option<Text>,
    client_secret: Option<Text>,
    scopes: Option<Scopes>,
    #[serde(deserialize_with = "grant")]
    grant: Option<Grant>,
}

/// In those of clients: `clientId` is Claude Code's and Gemini's, `CLIENT_ID` Cursor's, `scope`
/// opencode's.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TheirLogin {
    #[serde(alias = "clientId", alias = "CLIENT_ID")]
    client_id: Option<Text>,
    #[serde(alias = "clientSecret", alias = "CLIENT_SECRET")]
    client_secret: Option<Text>,
    #[serde(alias = "scope")]
    scopes: Option<Scopes>,
    #[serde(deserialize_with = "grant")]
    grant: Option<Grant>,
}

impl TheirLogin {
    /// Whether nothing of a login is there.
    pub(super) fn is_empty(&self) -> bool {
        let Self { client_id, client_secret, scopes, grant } = self;
        client_id.is_none() && client_secret.is_none() && scopes.is_none() && grant.is_none()
    }
}

/// One text with spaces, as the protocol itself has it, or a list.
#[derive(Debug)]
struct Scopes(Vec<Text>);

impl<'de> Deserialize<'de> for Scopes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Located { place, value, .. } = Located::<TextOrTexts>::deserialize(deserializer)?;
        let scope = |scope: &str| Text { text: scope.to_owned(), place: place.clone() };
        Ok(Self(match value {
            TextOrTexts::Text(text) => text.split_whitespace().map(scope).collect(),
            TextOrTexts::Texts(texts) => texts,
        }))
    }
}

enum TextOrTexts {
    Text(String),
    Texts(Vec<Text>),
}

impl<'de> Deserialize<'de> for TextOrTexts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = TextOrTexts;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of texts")
            }

            fn visit_str<E>(self, text: &str) -> Result<TextOrTexts, E> {
                Ok(TextOrTexts::Text(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, texts: A) -> Result<TextOrTexts, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(texts)).map(TextOrTexts::Texts)
            }
        }

        deserializer.deserialize_any(Either)
    }
}

/// `oauth`, as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Oauth {
    /// Where it is written.
    pub place: Location,
    pub client_id: Option<Text>,
    pub client_secret: Option<Text>,
    pub scopes: Option<Vec<Text>>,
    pub grant: Option<Grant>,
}

impl<'de> Deserialize<'de> for Oauth {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Located { place, value, .. } = Located::<OurLogin>::deserialize(deserializer)?;
        let OurLogin { client_id, client_secret, scopes, grant } = value;
        let scopes = scopes.map(|Scopes(scopes)| scopes);
        Ok(Self { place, client_id, client_secret, scopes, grant })
    }
}

impl From<Located<TheirLogin>> for Oauth {
    fn from(login: Located<TheirLogin>) -> Self {
        let TheirLogin { client_id, client_secret, scopes, grant } = login.value;
        let scopes = scopes.map(|Scopes(scopes)| scopes);
        Self { place: login.place, client_id, client_secret, scopes, grant }
    }
}

impl Oauth {
    /// What a stored provider says. Its secret is named, never stored.
    pub(super) fn stored(stored: &ProviderOauth, place: &Location) -> Result<Self, Mistake> {
        let text = |text: &String| Text { text: text.clone(), place: place.clone() };
        let secret = stored.client_secret.as_deref();
        if secret.is_some_and(|secret| !names_variable(secret)) {
            let what = "`clientSecret` says its value, and secrets are not stored";
            let hint = "name a variable, as in `${WAYPOST_PROVIDER_SECRET}`, and set it";
            return Err(place.mistake(Mistake::error(what).hint(hint)));
        }
        let scopes = stored.scopes.as_ref();
        let grant = stored.grant.as_deref().map(grant_of).transpose();
        Ok(Self {
            place: place.clone(),
            client_id: stored.client_id.as_ref().map(text),
            client_secret: stored.client_secret.as_ref().map(text),
            scopes: scopes.map(|scopes| scopes.iter().map(text).collect()),
            grant: grant.map_err(|mistake| place.mistake(mistake))?,
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
    pub(super) fn config(&self, around: &ExpandContext<'_>) -> Result<OauthConfig, Mistake> {
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
            login: LoginOf::Shared,
        };
        let wrong = |what: &str, hint: &str| Err(self.mistake(what, hint));
        let has_id = config.client_id.is_some();
        let has_secret = config.client_secret.is_some();
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
}

/// The word for who logs in.
pub(super) fn grant_word(grant: Grant) -> &'static str {
    match grant {
        Grant::Person => "person",
        Grant::Ourselves => "ourselves",
    }
}

fn grant<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Grant>, D::Error> {
    checked(deserializer, grant_of).map(Some)
}

fn grant_of(text: &str) -> Result<Grant, Mistake> {
    let known = GRANTS.iter().find(|(word, _)| *word == text);
    known.map(|(_, grant)| *grant).ok_or_else(|| {
        let hint = meant(text, GRANTS.iter().map(|(word, _)| *word))
            .unwrap_or_else(|| "it is `person` or `ourselves`".to_owned());
        Mistake::error(format!("`{text}` is not a kind of login")).hint(hint)
    })
}

/// Whose a login is, in this word; `grant` is who logs in there.
pub(super) fn login_of(login: &Text, grant: Grant) -> Result<LoginOf, Mistake> {
    let words = LoginOf::WORDS;
    let known = words.iter().find(|(word, _)| *word == login.text);
    let (_, whose) = known.ok_or_else(|| {
        let hint = meant(&login.text, words.iter().map(|(word, _)| *word))
            .unwrap_or_else(|| "it is `shared` or `user`".to_owned());
        login.mistake(
            Mistake::error(format!("`{}` does not say whose a login is", login.text)).hint(hint),
        )
    })?;
    if (*whose, grant) == (LoginOf::User, Grant::Ourselves) {
        let what = Mistake::error("`login` is `user`, but by `grant` no user logs in");
        return Err(login.mistake(what.hint("leave one of them out")));
    }
    Ok(*whose)
}

fn scopes_of(scopes: &[Text], around: &ExpandContext<'_>) -> Result<Vec<String>, Mistake> {
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
