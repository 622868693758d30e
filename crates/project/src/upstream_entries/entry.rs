//! One upstream as it is written: its keys, and the kind that they make it. Nothing is looked up
//! yet, so an entry can be shown, moved to another file and checked without a server.

use super::expand::{ExpandContext, expanded, has_variables};
use super::keys::{KeyTable, Keys};
use super::kinds::{Kind, header_names};
use super::oauth::login_of;
use crate::layer::{Location, NAME_CHARS_MAX};
use crate::realm::default_realm;
use crate::settings::{Named, Text, meaning};
use kernel::definition::plan::mistake::Mistake;
use kernel::values::ids::RealmId;
use std::path::Path;
use upstreams::{EraSetting, UpstreamConfig};
use wire::rest::Upstream;

/// What logins go with.
/// The state of one that is left alone.
const DISABLED: &str = "disabled";
const BEHIND_A_URL: &str = "an MCP server behind a URL";

/// An upstream as it is written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    /// Where it is written.
    pub place: Location,
    /// What it is; none where it only adds its keys to an entry of the same name.
    pub(super) kind: Option<Kind>,
    /// Those that say something of this kind.
    pub keys: Keys,
}

impl Entry {
    /// The upstream that these keys describe. A mistake without a place is one of the whole entry.
    pub fn new(name: &Text, table: KeyTable, mut keys: Keys) -> Result<Self, Mistake> {
        let kind = Kind::of(table, &keys)?;
        // The kind says it now, in one word for all that clients write.
        keys.kind = None;
        if let Some(kind) = kind {
            kind.drop_idle(&mut keys);
        }
        let has_logins = kind.is_none_or(|kind| kind == Kind::Http);
        let speaks_mcp = kind.is_none_or(Kind::speaks_mcp);
        match keys.oauth.take_if(|_| !has_logins) {
            Some(oauth) if table != KeyTable::Client => {
                return Err(misplaced(&oauth.place, "oauth", BEHIND_A_URL));
            }
            // Programs write idle keys into files of clients.
            Some(_) | None => {}
        }
        if let Some(login) = &keys.login {
            let grant = keys.oauth.as_ref().map(|oauth| oauth.value.grant()).unwrap_or_default();
            login_of(login, grant)?;
            if !has_logins {
                return Err(misplaced(&login.place, "login", BEHIND_A_URL));
            }
        }
        if let Some(era) = &keys.era {
            era_of(era)?;
            if !speaks_mcp {
                return Err(misplaced(&era.place, "era", "an MCP server"));
            }
        }
        for root in &keys.roots {
            if !speaks_mcp {
                let what = Mistake::error("`roots` go with an MCP server");
                return Err(root.mistake(what.hint("leave them out")));
            }
            if !has_variables(&root.text) {
                is_root(root, &root.text)?;
            }
        }
        Ok(Self { name: name.text.clone(), place: name.place.clone(), kind, keys })
    }

    /// An upstream that is named from outside of any file.
    fn unwritten(name: &str, place: &Location, kind: Kind, keys: Keys) -> Self {
        Self { name: name.to_owned(), place: place.clone(), kind: Some(kind), keys }
    }

    /// An MCP server behind a URL, named from outside of any file.
    pub fn of_url(name: &str, url: &str, headers: &[(String, String)], place: &Location) -> Self {
        let url = Some(Text::at(place, url));
        let headers = named_at(place, headers);
        Self::unwritten(name, place, Kind::Http, Keys { url, headers, ..Keys::default() })
    }

    /// A server of plain JSON-RPC that need not list its tools, named from outside of any file.
    pub(super) fn of_open_rpc(name: &str, url: &str, place: &Location) -> Self {
        let url = Some(Text::at(place, url));
        let keys = Keys { url, open: Some(true), ..Keys::default() };
        Self::unwritten(name, place, Kind::Rpc, keys)
    }

    /// An MCP server that is started with these words, named from outside of any file; without a
    /// word there is none.
    pub fn of_command(
        name: &str,
        words: &[String],
        env: &[(String, String)],
        place: &Location,
    ) -> Option<Self> {
        let (command, args) = words.split_first()?;
        let keys = Keys {
            command: Some(Text::at(place, command)),
            args: args.iter().map(|word| Text::at(place, word)).collect(),
            env: named_at(place, env),
            ..Keys::default()
        };
        Some(Self::unwritten(name, place, Kind::Stdio, keys))
    }

    /// The same with this prefix.
    #[must_use]
    pub fn prefixed(mut self, prefix: &str) -> Self {
        self.keys.prefix = Some(Text::at(&self.place, prefix));
        self
    }

    /// The same, trusted or not.
    #[must_use]
    pub fn trusted(mut self, trusted: bool) -> Self {
        self.keys.trusted = trusted.then_some(true);
        self
    }

    /// What stands before the names of its tools.
    pub fn prefix(&self) -> String {
        match &self.keys.prefix {
            Some(prefix) => prefix.text.clone(),
            None => format!("{}.", self.name),
        }
    }

    /// Whether any method of it can be called, and nobody lists them.
    pub fn is_open(&self) -> bool {
        self.kind == Some(Kind::Rpc) && self.keys.open == Some(true)
    }

    /// Whether it is left alone.
    pub fn is_disabled(&self) -> bool {
        self.keys.disabled == Some(true)
    }

    /// Whether it is there for a realm.
    pub fn is_for(&self, realm: &RealmId) -> bool {
        match &self.keys.realms {
            Some(realms) => realms.iter().any(|pattern| pattern.fits(realm)),
            None => *realm == default_realm(),
        }
    }

    /// What may be shown of it while it does not run: names and places, never a value that may be a
    /// secret.
    pub fn facts(&self) -> Upstream {
        let keys = &self.keys;
        let era = self.kind.filter(|kind| kind.speaks_mcp()).map(|_| self.era());
        Upstream {
            name: self.name.clone(),
            prefix: self.prefix(),
            kind: self.kind.map_or("", Kind::word).to_owned(),
            target: self.kind.map(|kind| kind.target(keys)).unwrap_or_default(),
            origin: self.place.to_string(),
            headers: header_names(keys),
            env: keys.env.iter().map(|(name, _)| name.clone()).collect(),
            trusted: keys.trusted == Some(true),
            journal: keys.journal != Some(false),
            timeout_ms: keys.timeout_ms,
            state: DISABLED.to_owned(),
            era_setting: era.map(|era| era.word().to_owned()),
            ..Upstream::default()
        }
    }

    /// In which era it is spoken to. What is written was checked when it was read.
    fn era(&self) -> EraSetting {
        self.keys.era.as_ref().and_then(|era| era_of(era).ok()).unwrap_or_default()
    }

    /// What is wrong with its name or its prefix.
    pub fn misnamed(&self) -> Option<Mistake> {
        if let Err(mistake) = self.place.check_name(&self.name, "an upstream", "`_` and `-`") {
            return Some(mistake);
        }
        let prefix = self.keys.prefix.as_ref()?;
        let fits = |c: char| c.is_ascii_alphanumeric() || "_-./:".contains(c);
        if prefix.text.chars().count() > NAME_CHARS_MAX || !prefix.text.chars().all(fits) {
            let what = format!("`{}` cannot stand before the name of a tool", prefix.text);
            let hint = "a prefix is up to 64 letters, digits, `_`, `-`, `.`, `/` and `:`";
            return Some(prefix.mistake(Mistake::error(what).hint(hint)));
        }
        None
    }

    /// What keeps it from being used, whatever its variables hold.
    pub fn unusable(&self) -> Option<Mistake> {
        // Fits in the place of most of them.
        let around = ExpandContext { folder: Path::new(""), variables: &|_| Some("1".to_owned()) };
        self.misnamed().or_else(|| self.kind?.unsendable(&self.keys, &around))
    }

    /// What to connect to, with everything looked up; relative paths begin at the project's folder.
    pub fn config(&self, around: &ExpandContext<'_>) -> Result<UpstreamConfig, Mistake> {
        let keys = &self.keys;
        // Only here for what our settings added to an entry of a client.
        if let Some(oauth) = &keys.oauth
            && self.kind.is_some_and(|kind| kind != Kind::Http)
        {
            return Err(misplaced(&oauth.place, "oauth", BEHIND_A_URL));
        }
        if self.is_open() && self.prefix().is_empty() {
            let what = format!("`{}` is open, and its tools have no prefix", self.name);
            let hint = "give it a `prefix`: else every name would be a method of it";
            return Err(self.place.mistake(Mistake::error(what).hint(hint)));
        }
        let Some(kind) = self.kind else {
            let what = format!("`{}` has neither `command` nor `url`", self.name);
            return Err(self.place.mistake(Mistake::error(what)));
        };
        Ok(UpstreamConfig {
            name: self.name.clone(),
            prefix: self.prefix(),
            kind: kind.config(keys, around)?,
            trusted: keys.trusted == Some(true),
            journal: keys.journal != Some(false),
            timeout_ms: keys.timeout_ms,
            era: self.era(),
            roots: self.roots(around)?,
            origin: self.place.to_string(),
        })
    }

    /// The folders that it is told of.
    fn roots(&self, around: &ExpandContext<'_>) -> Result<Vec<String>, Mistake> {
        let looked_up = |root: &Text| {
            let uri = expanded(root, around)?;
            is_root(root, &uri).map(|()| uri)
        };
        self.keys.roots.iter().map(looked_up).collect()
    }
}

/// Texts by name that all stand at one place.
pub(super) fn named_at(place: &Location, texts: &[(String, String)]) -> Named {
    texts.iter().map(|(name, text)| (name.clone(), Text::at(place, text))).collect()
}

/// Roots of MCP are `file:` URIs.
fn is_root(root: &Text, uri: &str) -> Result<(), Mistake> {
    if uri.starts_with("file://") {
        return Ok(());
    }
    let what = format!("`{}` is no root: a root is a `file:` URI", root.text);
    Err(root.mistake(Mistake::error(what).hint("write it as `file:///srv/data`")))
}

fn era_of(era: &Text) -> Result<EraSetting, Mistake> {
    let hint = "it is `auto`, `2025` or `2026`";
    let setting = meaning(&era.text, &EraSetting::WORDS, "is no era of MCP", hint);
    setting.map_err(|mistake| era.mistake(mistake))
}

/// A key that says nothing of this kind of upstream.
fn misplaced(place: &Location, key: &str, with: &str) -> Mistake {
    let what = format!("`{key}` goes with {with}");
    place.mistake(Mistake::error(what).hint("leave it out"))
}
