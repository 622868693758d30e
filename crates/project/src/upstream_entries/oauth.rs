//! `oauth` of an entry: how a login at an MCP server goes, where the server does not say all of it
//! itself. In a client's file it is written in the words of that client.

use super::expand::{ExpandContext, expanded, has_variables, names_variable};
use crate::layer::Location;
use crate::settings::{KnownKeys, Located, Text, checked, meaning};
use kernel::definition::plan::mistake::Mistake;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use upstreams::{Grant, LoginOf, OauthConfig, Secret};
use wire::rest::ProviderOauth;

/// Who logs in, in words.
const GRANTS: [(&str, Grant); 2] = [("person", Grant::Person), ("ourselves", Grant::Ourselves)];

/// The words of our own settings; the others are those of clients.
const OUR_WORDS: &[&str] = &["client_id", "client_secret", "scopes", "grant"];

/// `oauth`, as it is written: `clientId` is Claude Code's and Gemini's, `CLIENT_ID` Cursor's,
/// `scope` opencode's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Login {
    #[serde(alias = "clientId", alias = "CLIENT_ID")]
    client_id: Option<Text>,
    #[serde(alias = "clientSecret", alias = "CLIENT_SECRET")]
    client_secret: Option<Text>,
    #[serde(alias = "scope", deserialize_with = "scopes")]
    scopes: Option<Vec<Text>>,
    #[serde(deserialize_with = "grant", serialize_with = "grant_word")]
    grant: Option<Grant>,
}

/// `oauth` of our settings.
pub(super) fn our_login<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Located<Login>>, D::Error> {
    let Located { place, keys, value: OurLogin(value) } = Located::deserialize(deserializer)?;
    Ok(Some(Located { place, keys, value }))
}

struct OurLogin(Login);

impl<'de> Deserialize<'de> for OurLogin {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Login::deserialize(KnownKeys { known: OUR_WORDS, deserializer }).map(Self)
    }
}

/// One text with spaces, as the protocol itself has it, or a list.
fn scopes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<Text>>, D::Error> {
    let Located { place, value, .. } = Located::<TextOrTexts>::deserialize(deserializer)?;
    Ok(Some(match value {
        TextOrTexts::Text(text) => {
            text.split_whitespace().map(|scope| Text::at(&place, scope)).collect()
        }
        TextOrTexts::Texts(texts) => texts,
    }))
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

impl Login {
    /// What a stored provider says. Its secret is named, never stored.
    pub(super) fn stored(
        stored: &ProviderOauth,
        place: &Location,
    ) -> Result<Located<Self>, Mistake> {
        let text = |text: &String| Text::at(place, text);
        let secret = stored.client_secret.as_deref();
        if secret.is_some_and(|secret| !names_variable(secret)) {
            let what = "`clientSecret` says its value, and secrets are not stored";
            let hint = "name a variable, as in `${WAYPOST_PROVIDER_SECRET}`, and set it";
            return Err(place.mistake(Mistake::error(what).hint(hint)));
        }
        let scopes = stored.scopes.as_ref();
        let grant = stored.grant.as_deref().map(grant_of).transpose();
        let value = Self {
            client_id: stored.client_id.as_ref().map(text),
            client_secret: stored.client_secret.as_ref().map(text),
            scopes: scopes.map(|scopes| scopes.iter().map(text).collect()),
            grant: grant.map_err(|mistake| place.mistake(mistake))?,
        };
        Ok(Located { place: place.clone(), keys: Vec::new(), value })
    }

    /// This, and below it that.
    pub(super) fn over(self, below: Self) -> Self {
        Self {
            client_id: self.client_id.or(below.client_id),
            client_secret: self.client_secret.or(below.client_secret),
            scopes: self.scopes.or(below.scopes),
            grant: self.grant.or(below.grant),
        }
    }

    /// Whether its secret is written out, so that everyone who reads the file learns it.
    pub(super) fn tells_its_secret(&self) -> bool {
        self.client_secret.as_ref().is_some_and(|secret| !has_variables(&secret.text))
    }

    /// Who logs in.
    pub(super) fn grant(&self) -> Grant {
        self.grant.unwrap_or_default()
    }
}

/// How a login goes, with everything looked up.
pub(super) fn config(
    login: &Located<Login>,
    around: &ExpandContext<'_>,
) -> Result<OauthConfig, Mistake> {
    // A variable that is empty stands for nothing.
    let text = |text: &Option<Text>| -> Result<Option<String>, Mistake> {
        let looked_up = text.as_ref().map(|text| expanded(text, around)).transpose()?;
        Ok(looked_up.filter(|text| !text.is_empty()))
    };
    let Login { client_id, client_secret, scopes, .. } = &login.value;
    let config = OauthConfig {
        client_id: text(client_id)?,
        client_secret: text(client_secret)?.map(Secret::new),
        scopes: scopes.as_deref().map(|scopes| scopes_of(scopes, around)).transpose()?,
        grant: login.value.grant(),
        login: LoginOf::Shared,
    };
    let (what, hint) = match (config.grant, &config.client_id, &config.client_secret) {
        (Grant::Ourselves, Some(_), Some(_))
        | (Grant::Person, Some(_), _)
        | (Grant::Person, None, None) => return Ok(config),
        (Grant::Ourselves, _, _) => (
            "`grant` is `ourselves`, and that needs `client_id` and `client_secret`",
            "the server's operator gives you both",
        ),
        (Grant::Person, None, Some(_)) => (
            "`client_secret` is there, and `client_id` is missing",
            "the server's operator gives you both; without them a client is registered",
        ),
    };
    Err(login.place.mistake(Mistake::error(what).hint(hint)))
}

fn grant<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Grant>, D::Error> {
    checked(deserializer, grant_of).map(Some)
}

fn grant_of(text: &str) -> Result<Grant, Mistake> {
    meaning(text, &GRANTS, "is not a kind of login", "it is `person` or `ourselves`")
}

fn grant_word<S: Serializer>(grant: &Option<Grant>, serializer: S) -> Result<S::Ok, S::Error> {
    let word = GRANTS.iter().find(|(_, known)| Some(*known) == *grant).map(|(word, _)| *word);
    word.serialize(serializer)
}

/// Whose a login is, in this word; `grant` is who logs in there.
pub(super) fn login_of(login: &Text, grant: Grant) -> Result<LoginOf, Mistake> {
    let hint = "it is `shared` or `user`";
    let whose = meaning(&login.text, &LoginOf::WORDS, "does not say whose a login is", hint)
        .map_err(|mistake| login.mistake(mistake))?;
    if (whose, grant) == (LoginOf::User, Grant::Ourselves) {
        let what = Mistake::error("`login` is `user`, but by `grant` no user logs in");
        return Err(login.mistake(what.hint("leave one of them out")));
    }
    Ok(whose)
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
