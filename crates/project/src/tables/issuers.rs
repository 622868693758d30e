//! `[auth.issuers.<name>]`: issuers of accepted access tokens, and what their claims mean here.

use crate::layer::Location;
use crate::settings::{Each, Located, Text, checked_list, refused};
use crate::upstream_entries::is_loopback;
use hyper::http::Uri;
use kernel::definition::plan::mistake::{Mistake, meant};
use kernel::identity::grants::RealmPattern;
use kernel::identity::issuer::{Algorithm, IssuerEntry, RESERVED_NAMES, TokenType};
use kernel::identity::roles::{Role, Roles};
use kernel::values::caller::{Scope, Scopes};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Tokens last a day at most, so that the claims of one that is good always count.
const MAX_AGE_DAYS: RangeInclusive<u32> = 1..=365;

/// The keys of an entry, as far as they are written.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct IssuerKeys {
    url: Option<Text>,
    audience: Option<Text>,
    #[serde(deserialize_with = "algorithms")]
    algorithms: Option<Vec<Algorithm>>,
    /// By the value of the claim.
    roles: BTreeMap<String, RoleNames>,
    roles_claim: Option<Text>,
    #[serde(deserialize_with = "realms")]
    realms: Option<Vec<RealmPattern>>,
    realm_claim: Option<Text>,
    scope_prefix: Option<String>,
    #[serde(deserialize_with = "scopes")]
    default_scopes: Option<Scopes>,
    #[serde(deserialize_with = "types")]
    types: Option<Vec<TokenType>>,
    claims_max_age_days: Option<Located<u32>>,
}

/// Roles of ours.
#[derive(Debug)]
struct RoleNames(Roles);

impl<'de> Deserialize<'de> for RoleNames {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let roles = checked_list(deserializer, |text| {
            by_name("role", text, Role::from_name, Role::ALL.iter().map(|role| role.name()))
        })?;
        Ok(Self(roles.into_iter().collect()))
    }
}

/// The issuers of these tables, and the mistakes in them. Without an address of ours in the
/// settings, each must say what its tokens are for.
pub(crate) fn issuers(
    tables: Each<IssuerKeys>,
    has_public_url: bool,
    mistakes: &mut Vec<Mistake>,
) -> Vec<IssuerEntry> {
    mistakes.extend(alike(&tables));
    tables.build(mistakes, |name, Located { value, .. }| entry(name, value, has_public_url))
}

/// Entries that could be taken for another: by their names, or by the issuer that they are of.
fn alike(tables: &Each<IssuerKeys>) -> Vec<Mistake> {
    let mut found = Vec::new();
    for (index, (name, table)) in tables.0.iter().enumerate() {
        for (other, before) in &tables.0[..index] {
            if name.text.eq_ignore_ascii_case(&other.text) {
                let what = format!(
                    "`{}` and `{}` differ in upper and lower case only",
                    name.text, other.text
                );
                found
                    .push(name.mistake(Mistake::error(what).hint("give one of them another name")));
            }
            let (Some(url), Some(same)) = (&table.value.url, &before.value.url) else { continue };
            if url.text == same.text {
                let what = format!("`{}` is the issuer of `{}` already", url.text, other.text);
                found.push(url.mistake(Mistake::error(what).hint("remove one of the two entries")));
            }
        }
    }
    found
}

fn entry(name: &Text, keys: IssuerKeys, has_public_url: bool) -> Result<IssuerEntry, Mistake> {
    checked_name(name)?;
    let missing = |key: &str, hint: &str| Mistake::error(format!("`{key}` is missing")).hint(hint);
    let url = keys.url.ok_or_else(|| {
        missing("url", "it is the `issuer` that the issuer's own document names, to the letter")
    })?;
    if let Some(what) = wrong_url(&url.text) {
        let hint = "write it as `https://login.example.com/tenant`, as tokens write `iss`";
        return Err(url.mistake(Mistake::error(format!("`url` {what}")).hint(hint)));
    }
    let realms = keys.realms.ok_or_else(|| {
        missing("realms", "list the realms that its tokens can enter, as `[\"default\"]`")
    })?;
    if keys.audience.is_none() && !has_public_url {
        let hint = "write what the issuer puts into `aud` for this server, or set `public_url` in \
                    `[server]`";
        return Err(missing("audience", hint));
    }
    let defaults = IssuerEntry::new(name.text.as_str(), url.text);
    Ok(IssuerEntry {
        audience: keys.audience.map(|text| filled("audience", text)).transpose()?,
        algorithms: keys.algorithms.unwrap_or(defaults.algorithms),
        roles: keys.roles.into_iter().map(|(value, RoleNames(roles))| (value, roles)).collect(),
        roles_claim: match keys.roles_claim {
            Some(text) => filled("roles_claim", text)?,
            None => defaults.roles_claim,
        },
        realms,
        realm_claim: keys.realm_claim.map(|text| filled("realm_claim", text)).transpose()?,
        scope_prefix: keys.scope_prefix.unwrap_or_default(),
        default_scopes: keys.default_scopes,
        types: keys.types.unwrap_or(defaults.types),
        claims_max_age_days: match keys.claims_max_age_days {
            Some(days) => max_age(days.value, &days.place)?,
            None => defaults.claims_max_age_days,
        },
        ..defaults
    })
}

/// A name that subjects can begin with.
fn checked_name(name: &Text) -> Result<(), Mistake> {
    name.place.check_name(&name.text, "an issuer", "`_` and `-`")?;
    if RESERVED_NAMES.iter().any(|reserved| reserved.eq_ignore_ascii_case(&name.text)) {
        let what = format!("`{}` cannot be the name of an issuer", name.text);
        let hint = "subjects begin with the name, and this one has a meaning of its own";
        return Err(name.mistake(Mistake::error(what).hint(hint)));
    }
    Ok(())
}

/// What is wrong with the address of an issuer.
fn wrong_url(text: &str) -> Option<&'static str> {
    let Ok(uri) = text.parse::<Uri>() else { return Some("is not an address") };
    let host = uri.host().unwrap_or_default().to_ascii_lowercase();
    let has_user = uri.authority().is_some_and(|authority| authority.as_str().contains('@'));
    if host.is_empty() || has_user {
        return Some("has no host, or a user before it");
    }
    if uri.query().is_some() || text.contains('#') {
        return Some("has a query or a fragment, which an issuer cannot have");
    }
    match uri.scheme_str() {
        Some("https") => None,
        Some("http") if is_loopback(&host) => None,
        Some("http") => Some("must begin with `https://`: only this machine may do without TLS"),
        Some(_) | None => Some("must begin with `https://`"),
    }
}

fn filled(key: &str, text: Text) -> Result<String, Mistake> {
    if text.text.trim().is_empty() {
        let what = format!("`{key}` is empty");
        return Err(text.mistake(Mistake::error(what).hint("leave it out")));
    }
    Ok(text.text)
}

fn max_age(days: u32, place: &Location) -> Result<u32, Mistake> {
    if MAX_AGE_DAYS.contains(&days) {
        return Ok(days);
    }
    let least = MAX_AGE_DAYS.start();
    let most = MAX_AGE_DAYS.end();
    let what = format!("`claims_max_age_days` is {days}, and can be {least} to {most}");
    Err(place.mistake(Mistake::error(what).hint("write a whole number of days")))
}

/// What this word stands for.
fn by_name<T>(
    noun: &str,
    text: &str,
    read: impl Fn(&str) -> Option<T>,
    words: impl Iterator<Item = &'static str>,
) -> Result<T, Mistake> {
    read(text).ok_or_else(|| {
        let words: Vec<&str> = words.collect();
        let hint = meant(text, words.iter().copied());
        let hint = hint.unwrap_or_else(|| format!("one of {}", words.join(", ")));
        Mistake::error(format!("there is no {noun} `{text}`")).hint(hint)
    })
}

fn algorithms<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<Algorithm>>, D::Error> {
    let all = || Algorithm::ALL.iter().map(|algorithm| algorithm.name());
    let read = |text: &str| by_name("algorithm", text, Algorithm::from_name, all());
    some(checked_list(deserializer, read)?, "algorithms")
}

fn types<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<TokenType>>, D::Error> {
    let all = || TokenType::ALL.iter().map(|kind| kind.name());
    let read = |text: &str| by_name("type of token", text, TokenType::from_name, all());
    some(checked_list(deserializer, read)?, "types")
}

fn realms<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<RealmPattern>>, D::Error> {
    let read =
        |text: &str| RealmPattern::parse(text).map_err(|bad| Mistake::error(bad.to_string()));
    some(checked_list(deserializer, read)?, "realms")
}

fn scopes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Scopes>, D::Error> {
    let all = || Scope::ALL.iter().map(|scope| scope.name());
    let read = |text: &str| by_name("scope", text, Scope::from_name, all());
    let scopes = checked_list(deserializer, read)?;
    Ok(Some(scopes.into_iter().collect()))
}

/// A list that would let no token pass is a mistake.
fn some<T, E: serde::de::Error>(list: Vec<T>, key: &str) -> Result<Option<Vec<T>>, E> {
    if list.is_empty() {
        let what = format!("`{key}` is empty, so that no token would be taken");
        return Err(refused(Mistake::error(what)));
    }
    Ok(Some(list))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    const WHOLE: &str =
        "url = \"https://login.test/t\"\naudience = \"wp\"\nrealms = [\"acme-*\"]\n";

    fn read(table: &str) -> Result<Vec<IssuerEntry>, String> {
        let text = format!("[auth.issuers.corp]\n{table}");
        match Config::parse("waypost.toml", &text) {
            Ok(config) => Ok(config.issuers),
            Err(found) => Err(found.iter().map(Mistake::to_string).collect::<Vec<_>>().join("\n")),
        }
    }

    #[test]
    fn missing_keys_have_defaults() {
        let entries = read(WHOLE).unwrap();
        let expected = IssuerEntry {
            audience: Some("wp".to_owned()),
            realms: vec![RealmPattern::parse("acme-*").unwrap()],
            ..IssuerEntry::new("corp", "https://login.test/t")
        };
        assert_eq!(entries, [expected]);
        assert_eq!(entries[0].types, [TokenType::Access]);
        assert_eq!((entries[0].algorithms.len(), entries[0].claims_max_age_days), (4, 7));
        assert_eq!(entries[0].roles_claim, "roles");
    }

    #[test]
    fn every_key_can_be_written() {
        let more = "algorithms = [\"ES256\"]\nroles_claim = \"realm_access.roles\"\n\
                    realm_claim = \"tenant\"\nscope_prefix = \"wp:\"\n\
                    default_scopes = [\"read\", \"use\"]\ntypes = [\"at+jwt\", \"JWT\"]\n\
                    claims_max_age_days = 1\n\
                    [auth.issuers.corp.roles]\nstaff = [\"member\", \"approver\"]\n";
        let entry = read(&format!("{WHOLE}{more}")).unwrap().remove(0);
        assert_eq!(entry.algorithms, [Algorithm::Es256]);
        assert_eq!(entry.roles["staff"], Roles::of(&[Role::Member, Role::Approver]));
        assert_eq!(entry.roles_claim, "realm_access.roles");
        assert_eq!(
            (entry.realm_claim.as_deref(), entry.scope_prefix.as_str()),
            (Some("tenant"), "wp:")
        );
        assert_eq!(entry.default_scopes, Some([Scope::Read, Scope::Use].into_iter().collect()));
        assert_eq!((entry.types.len(), entry.claims_max_age_days), (2, 1));
    }

    #[test]
    fn mistakes_are_reported_with_their_line() {
        for (table, told) in [
            ("audience = \"wp\"\nrealms = [\"a\"]\n", "`corp`: `url` is missing"),
            ("url = \"https://a.test\"\naudience = \"wp\"\n", "`corp`: `realms` is missing"),
            ("url = \"https://a.test\"\nrealms = [\"a\"]\n", "`corp`: `audience` is missing"),
            ("url = \"http://a.test\"\nrealms = [\"a\"]\n", "waypost.toml:2:7: error: `url` must"),
            ("url = \"https://a.test?x=1\"\nrealms = [\"a\"]\n", "has a query or a fragment"),
            ("url = \"https://me@a.test\"\nrealms = [\"a\"]\n", "a user before it"),
            ("realms = []\n", "`realms` is empty"),
            ("realms = [\"a*b\"]\n", "has a `*` that is not at its end"),
            ("algorithms = [\"HS256\"]\n", "there is no algorithm `HS256`"),
            ("types = [\"jwt\"]\n", "there is no type of token `jwt`"),
            ("default_scopes = [\"all\"]\n", "there is no scope `all`"),
            ("[auth.issuers.corp.roles]\nstaff = [\"boss\"]\n", "there is no role `boss`"),
            ("issuer = \"x\"\n", "unknown key `issuer` in `[auth.issuers.corp]`"),
        ] {
            let found = read(table).unwrap_err();
            assert!(found.contains(told), "{table}\n{found}");
        }
        let days = read(&format!("{WHOLE}claims_max_age_days = 0\n")).unwrap_err();
        assert!(days.contains("waypost.toml:5:"), "{days}");
    }

    #[test]
    fn with_a_public_url_an_issuer_needs_no_audience() {
        let text = "[server]\npublic_url = \"https://wp.test\"\n[auth.issuers.corp]\n\
                    url = \"http://127.0.0.1:9\"\nrealms = [\"default\"]\n";
        let config = Config::parse("waypost.toml", text).unwrap();
        assert_eq!(config.issuers[0].audience, None);
    }

    #[test]
    fn names_are_unique_and_not_reserved() {
        for name in ["admin", "Local", "supervisor", "key", "\"a:b\"", "\"a.b\""] {
            let text = format!("[auth.issuers.{name}]\n{WHOLE}");
            assert!(Config::parse("waypost.toml", &text).is_err(), "{name}");
        }
        let other = WHOLE.replace("login", "other");
        let text = format!("[auth.issuers.a]\n{WHOLE}[auth.issuers.A]\n{other}");
        let found = Config::parse("waypost.toml", &text).unwrap_err();
        assert!(found[0].to_string().contains("upper and lower case only"), "{}", found[0]);
        let text = format!("[auth.issuers.a]\n{WHOLE}[auth.issuers.b]\n{WHOLE}");
        let found = Config::parse("waypost.toml", &text).unwrap_err();
        assert!(found[0].to_string().contains("is the issuer of `a` already"), "{}", found[0]);
    }
}
