//! Options of a new key, and the request body that they become.

use clap::Args;
use kernel::identity::grants::RealmPattern;
use kernel::identity::roles::Role;
use kernel::values::caller::Scope;
use std::collections::BTreeMap;
use std::path::PathBuf;
use wire::rest::KeyBody;

/// What `waypost key add` takes.
#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// What people call it
    #[arg(long)]
    pub(super) name: String,
    /// viewer, member, approver, operator or admin; may be given several times [default: member]
    #[arg(long, value_name = "ROLE", value_parser = role)]
    role: Vec<Role>,
    /// The principal whose it is: it has that one's roles, and none of its own
    #[arg(long, value_name = "ID", conflicts_with = "role")]
    pub(super) of: Option<String>,
    /// Limit it to read, use, answer, define, operate or admin; may be given several times
    #[arg(long, value_name = "SCOPE", value_parser = scope)]
    pub(super) scope: Vec<Scope>,
    /// After how many days it expires, or `never`
    #[arg(long, value_name = "DAYS", default_value = "90d", value_parser = expires)]
    pub(super) expires: Expires,
    /// The realm that it may enter; `*` at the end stands for any characters [default: the
    /// server's]
    #[arg(long, value_parser = realm)]
    pub(super) realm: Option<String>,
    /// Where the data is kept [default: .waypost in the project]
    #[arg(long, value_name = "DIR")]
    pub(super) data: Option<PathBuf>,
}

/// When a key expires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expires {
    /// After so many days.
    Days(u32),
    /// Only when it is revoked.
    Never,
}

/// A hundred years.
const DAYS_MAX: u32 = 36_500;

fn expires(text: &str) -> Result<Expires, String> {
    let days = text.strip_suffix('d').and_then(|days| days.parse::<u32>().ok());
    match days.filter(|days| (1..=DAYS_MAX).contains(days)) {
        Some(days) => Ok(Expires::Days(days)),
        None if text == "never" => Ok(Expires::Never),
        None => Err(format!("expected `never`, or days from 1d to {DAYS_MAX}d")),
    }
}

fn role(text: &str) -> Result<Role, String> {
    Role::from_name(text).ok_or_else(|| one_of(Role::ALL.iter().map(|role| role.name())))
}

fn scope(text: &str) -> Result<Scope, String> {
    Scope::from_name(text).ok_or_else(|| one_of(Scope::ALL.iter().map(|scope| scope.name())))
}

fn realm(text: &str) -> Result<String, String> {
    RealmPattern::parse(text).map(String::from).map_err(|bad| bad.to_string())
}

fn one_of(names: impl Iterator<Item = &'static str>) -> String {
    format!("expected one of {}", names.collect::<Vec<_>>().join(", "))
}

impl CreateArgs {
    /// Its roles in its realm; a principal's key has none of its own.
    pub(super) fn roles(&self) -> Vec<Role> {
        match (&self.of, self.role.is_empty()) {
            (None, true) => vec![Role::Member],
            _ => self.role.clone(),
        }
    }

    /// The same for a server.
    pub(super) fn body(&self) -> KeyBody {
        let roles = self.roles().into_iter().map(|role| role.name().to_owned()).collect();
        let (realms, roles) = match (&self.realm, &self.of) {
            (Some(realm), _) => (Some(BTreeMap::from([(realm.clone(), roles)])), None),
            (None, Some(_)) => (None, None),
            (None, None) => (None, Some(roles)),
        };
        let scopes = self.scope.iter().map(|scope| scope.name().to_owned());
        KeyBody {
            name: self.name.clone(),
            of: self.of.clone(),
            realms,
            roles,
            scopes: (!self.scope.is_empty()).then(|| scopes.collect()),
            expires_in_days: match self.expires {
                Expires::Days(days) => Some(days),
                Expires::Never => None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use serde_json::{Value, json};

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: CreateArgs,
    }

    fn body(arguments: &[&str]) -> Value {
        let line = ["create", "--name", "ci"].iter().chain(arguments);
        json!(Line::try_parse_from(line).unwrap().args.body())
    }

    #[test]
    fn a_key_has_small_defaults() {
        assert_eq!(body(&[]), json!({"name": "ci", "roles": ["member"], "expiresInDays": 90}));
    }

    #[test]
    fn options_become_the_request_body() {
        let said = ["--role", "viewer", "--role", "approver", "--scope", "answer", "--realm"];
        let said = [&said[..], &["acme-*", "--expires", "never"]].concat();
        let realms = json!({"acme-*": ["viewer", "approver"]});
        let expected = json!({"name": "ci", "realms": realms, "scopes": ["answer"],
            "expiresInDays": null});
        assert_eq!(body(&said), expected);
    }

    #[test]
    fn a_key_of_a_principal_has_no_roles_of_its_own() {
        let expected = json!({"name": "ci", "of": "ann", "expiresInDays": 90});
        assert_eq!(body(&["--of", "ann"]), expected);
        let narrow = body(&["--of", "ann", "--realm", "acme"]);
        assert_eq!(narrow["realms"], json!({"acme": []}));
        let both = ["create", "--name", "ci", "--of", "ann", "--role", "admin"];
        assert!(Line::try_parse_from(both).is_err());
    }

    #[test]
    fn an_expiry_is_days_or_never() {
        assert_eq!(expires("30d"), Ok(Expires::Days(30)));
        assert_eq!(expires("never"), Ok(Expires::Never));
        for text in ["", "d", "30", "0d", "-1d", "12h", "36501d", "Never"] {
            assert!(expires(text).is_err(), "{text}");
        }
        assert!(role("admn").unwrap_err().contains("operator, admin"));
        assert!(scope("all").unwrap_err().contains("read, use"));
    }
}
