//! The keys of an upstream, each a row of one table: what it holds, and which tables of
//! `waypost.toml` have it. What is known in a table, what goes over an entry of a client and how an
//! entry is written follow from the rows; what the keys mean is said by the kinds.

use super::auth::{self, AuthKeys};
use super::expand::{ExpandContext, expanded};
use super::oauth::{Login, our_login};
use crate::settings::{KnownKeys, Located, Named, Text, limited, named, realm_patterns};
use kernel::definition::plan::mistake::Mistake;
use kernel::identity::grants::RealmPattern;
use serde::{Deserialize, Deserializer, Serialize};
use std::sync::LazyLock;
use upstreams::RestAuth;

/// Where an upstream is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyTable {
    /// `[mcp.servers.<name>]`.
    Server,
    /// `[providers.<name>]`, or what is stored of one.
    Provider,
    /// `[a2a.agents.<name>]`.
    Agent,
    /// A client's file, whose words were turned into ours.
    Client,
}

/// The word of a key: its name, or what stands beside it.
macro_rules! word {
    ($key:ident) => {
        stringify!($key)
    };
    ($key:ident $word:literal) => {
        $word
    };
}

/// Makes [`Keys`] of rows `key: type => [tables]`.
macro_rules! keys {
    ($(
        $(#[$about:meta])*
        $key:ident $(as $word:literal)?: $type:ty => [$($table:ident),+],
    )+) => {
        /// What is written of an upstream.
        #[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
        #[serde(default)]
        pub struct Keys {
            $(
                $(#[$about])*
                $(#[serde(rename = $word)])?
                pub $key: $type,
            )+
        }

        /// The word of each key, and the tables that have it.
        const ROWS: &[(&str, &[KeyTable])] =
            &[$((word!($key $($word)?), &[$(KeyTable::$table),+])),+];

        impl Keys {
            /// These, and below them those.
            pub(super) fn over(mut self, below: Self) -> Self {
                if let (Some(above), Some(below)) = (&mut self.oauth, &below.oauth) {
                    above.value = above.value.clone().over(below.value.clone());
                }
                Self { $($key: over(self.$key, below.$key),)+ }
            }
        }
    };
}

keys! {
    kind as "type": Option<Text> => [Server, Provider],
    /// Read for what other programs store; nothing shows it.
    display_name: Option<Text> => [Provider],
    command: Option<Text> => [Server],
    args: Vec<Text> => [Server],
    #[serde(deserialize_with = "named")]
    env: Named => [Server],
    cwd: Option<Text> => [Server],
    url: Option<Text> => [Server],
    base_url: Option<Text> => [Provider],
    /// An address, a file, or an id at the registry.
    card: Option<Text> => [Agent],
    registry: Option<Text> => [Agent],
    origin: Option<Text> => [Agent],
    /// The id of its key, as AgentVault's clients name it.
    service: Option<Text> => [Agent],
    key_file: Option<Text> => [Agent],
    keyring: Option<bool> => [Agent],
    #[serde(deserialize_with = "named")]
    headers: Named => [Server, Provider, Agent],
    /// Clients have it too; ours adds to theirs.
    #[serde(deserialize_with = "our_login")]
    oauth: Option<Located<Login>> => [Server, Provider],
    /// Whose the login at it is.
    login: Option<Text> => [Server, Provider],
    document: Option<Text> => [Provider],
    auth: Option<Located<AuthKeys>> => [Provider, Agent],
    include: Vec<Text> => [Provider],
    allow_private: Option<bool> => [Provider, Agent],
    tools: Vec<Text> => [Provider],
    /// Whether any other method may be called too.
    open: Option<bool> => [Provider],
    /// Those that may sign its card.
    signing_keys as "keys": Vec<Located<SigningKey>> => [Agent],
    require_signature: Option<bool> => [Agent],
    prefix: Option<Text> => [Server, Provider, Agent],
    trusted: Option<bool> => [Server, Provider],
    journal: Option<bool> => [Server, Provider, Agent],
    #[serde(deserialize_with = "timeout_ms")]
    timeout_ms: Option<u64> => [Server, Provider, Agent],
    era: Option<Text> => [Server, Provider],
    /// The folders that it is told of.
    roots: Vec<Text> => [Server, Provider],
    disabled: Option<bool> => [Server, Provider, Agent],
    /// The realms that it is there for, where that is not the one that every server has.
    #[serde(deserialize_with = "realm_patterns")]
    realms: Option<Vec<RealmPattern>> => [Server, Provider, Agent],
}

/// A key that may sign a card, with the members of a JWK.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct SigningKey {
    pub(super) kid: Option<Text>,
    pub(super) x: Option<Text>,
    pub(super) y: Option<Text>,
}

/// A table in which only its own keys are known.
macro_rules! table {
    ($name:ident, $table:ident) => {
        #[derive(Debug)]
        pub struct $name(pub Keys);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                static KNOWN: LazyLock<Vec<&str>> = LazyLock::new(|| keys_of(KeyTable::$table));
                Keys::deserialize(KnownKeys { known: &KNOWN, deserializer }).map(Self)
            }
        }
    };
}

table!(ServerKeys, Server);
table!(ProviderKeys, Provider);
table!(AgentKeys, Agent);

fn keys_of(table: KeyTable) -> Vec<&'static str> {
    let rows = ROWS.iter().filter(|(_, tables)| tables.contains(&table));
    rows.map(|(word, _)| *word).collect()
}

/// What is written above, else what is written below.
fn over<T: Default + PartialEq>(above: T, below: T) -> T {
    if above == T::default() { below } else { above }
}

/// How long one call of an upstream may take.
fn timeout_ms<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    limited(deserializer, "timeout_ms", "call_timeout_ms")
}

impl Keys {
    /// Where it is, in the word of its table.
    pub(super) fn address(&self) -> Option<&Text> {
        self.url.as_ref().or(self.base_url.as_ref()).or(self.card.as_ref())
    }

    /// How we show who we are, with everything looked up.
    pub(super) fn auth(&self, around: &ExpandContext<'_>) -> Result<Option<RestAuth>, Mistake> {
        let value = |text: &Text| expanded(text, around);
        self.auth.as_ref().map(|written| auth::looked_up(written, &value)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_only_the_keys_of_its_kinds() {
        assert_eq!(
            keys_of(KeyTable::Server).join(", "),
            "type, command, args, env, cwd, url, headers, oauth, login, prefix, trusted, journal, \
             timeout_ms, era, roots, disabled, realms"
        );
        assert_eq!(
            keys_of(KeyTable::Provider).join(", "),
            "type, display_name, base_url, headers, oauth, login, document, auth, include, \
             allow_private, tools, open, prefix, trusted, journal, timeout_ms, era, roots, \
             disabled, realms"
        );
        assert_eq!(
            keys_of(KeyTable::Agent).join(", "),
            "card, registry, origin, service, key_file, keyring, headers, auth, allow_private, \
             keys, require_signature, prefix, journal, timeout_ms, disabled, realms"
        );
    }
}
