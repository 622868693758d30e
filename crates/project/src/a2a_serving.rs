//! `[a2a]`: how agents of others find and call this server. Which agents it calls itself is in
//! `upstream_entries`.

use crate::realm::DEFAULT_REALM;
use crate::settings::{checked, checked_list, refused};
use kernel::definition::plan::mistake::Mistake;
use kernel::identity::grants::RealmPattern;
use kernel::tool::rules::Pattern;
use kernel::values::ids::RealmId;
use serde::{Deserialize, Deserializer};

/// How long a repeated message is recognised unless told otherwise: a day.
const REPEAT_WINDOW_S: u64 = 24 * 60 * 60;
/// The longest such time: 30 days. What is older is not kept by everyone.
const REPEAT_WINDOW_S_MAX: u64 = 30 * REPEAT_WINDOW_S;
const NAME: &str = "Waypost";
const DESCRIPTION: &str = "Agents, pipelines and plans of a Waypost server";

/// `[a2a]`, but for the agents that this server calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct A2aServing {
    /// The realm of requests that name none, and of the card at the well-known address.
    pub realm: RealmId,
    /// What the card calls this server.
    pub name: String,
    /// What the card says of it.
    pub description: String,
    /// The plans that are skills, beside all agents and pipelines.
    pub expose: Vec<Pattern>,
    /// The skills that strangers are shown.
    pub public: Vec<Pattern>,
    /// For how many seconds a message under a used id is the same message again; 0 for none.
    pub repeat_window: u64,
}

impl Default for A2aServing {
    fn default() -> Self {
        Self {
            realm: RealmId::from(DEFAULT_REALM),
            name: NAME.to_owned(),
            description: DESCRIPTION.to_owned(),
            expose: Vec::new(),
            public: Vec::new(),
            repeat_window: REPEAT_WINDOW_S,
        }
    }
}

/// The same as it is written.
#[derive(Debug, Default)]
pub(crate) struct ServingKeys {
    pub(crate) realm: Option<RealmId>,
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) expose: Vec<Pattern>,
    pub(crate) public: Vec<Pattern>,
    pub(crate) repeat_window: Option<u64>,
}

impl ServingKeys {
    /// What holds.
    pub(crate) fn serving(self) -> A2aServing {
        let usual = A2aServing::default();
        let Self { realm, name, description, expose, public, repeat_window } = self;
        A2aServing {
            realm: realm.unwrap_or(usual.realm),
            name: name.unwrap_or(usual.name),
            description: description.unwrap_or(usual.description),
            expose,
            public,
            repeat_window: repeat_window.unwrap_or(usual.repeat_window),
        }
    }
}

/// Skills, by their ids with `*` for any characters.
pub(crate) fn skill_patterns<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<Pattern>, D::Error> {
    checked_list(deserializer, |text| {
        Pattern::new(text).map_err(|bad| Mistake::error(bad.to_string()))
    })
}

/// A text that is not empty: cards require it.
pub(crate) fn words<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    let words = checked(deserializer, |text| match text.trim().is_empty() {
        true => Err(Mistake::error("this text is empty").hint("write some words, or remove it")),
        false => Ok(text.to_owned()),
    });
    words.map(Some)
}

/// For how many seconds repeated messages are recognised.
pub(crate) fn repeat_window<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<u64>, D::Error> {
    let seconds = u64::deserialize(deserializer)?;
    if seconds <= REPEAT_WINDOW_S_MAX {
        return Ok(Some(seconds));
    }
    let what = format!("`repeat_window` is at most {REPEAT_WINDOW_S_MAX} seconds, not {seconds}");
    Err(refused(Mistake::error(what).hint("write up to 30 days, or 0 to recognise no repeats")))
}

/// One realm.
pub(crate) fn realm_name<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<RealmId>, D::Error> {
    let realm = checked(deserializer, |text| {
        let is_name = RealmPattern::parse(text).is_ok() && !text.contains('*');
        match is_name {
            true => Ok(RealmId::from(text)),
            false => Err(Mistake::error(format!("`{text}` cannot be the name of a realm"))
                .hint("write the name of one realm, such as `default`")),
        }
    });
    realm.map(Some)
}

#[cfg(test)]
mod tests {
    use crate::a2a_serving::A2aServing;
    use crate::config::Config;

    #[test]
    fn what_is_written_is_set_beside_the_agents_that_are_called() {
        let text = "[a2a]\nrealm = \"shop\"\nname = \"Shop\"\nexpose = [\"orders::*\"]\n\
                    public = [\"agent/helper\"]\nrepeat_window = 0\n\
                    [a2a.agents.trips]\ncard = \"https://trips.test\"\n";
        let config = Config::parse("waypost.toml", text).unwrap();
        assert_eq!(config.upstreams.len(), 1);
        let serving = config.a2a;
        assert_eq!((serving.realm.as_str(), serving.name.as_str()), ("shop", "Shop"));
        assert_eq!(serving.expose[0].as_str(), "orders::*");
        assert_eq!(serving.public[0].as_str(), "agent/helper");
        assert_eq!(serving.repeat_window, 0);
        assert_eq!(Config::parse("waypost.toml", "").unwrap().a2a, A2aServing::default());
        let longest = Config::parse("waypost.toml", "[a2a]\nrepeat_window = 2592000\n").unwrap();
        assert_eq!(longest.a2a.repeat_window, 2_592_000);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (line, told) in [
            ("realm = \"a*\"", "cannot be the name of a realm"),
            ("name = \" \"", "this text is empty"),
            ("exposed = []", "unknown key `exposed`"),
            ("expose = [\"a b\"]", "in a pattern of tools"),
            ("repeat_window = 2592001", "at most 2592000 seconds, not 2592001"),
        ] {
            let mistakes = Config::parse("waypost.toml", &format!("[a2a]\n{line}\n")).unwrap_err();
            let shown = mistakes[0].to_string();
            assert!(shown.starts_with("waypost.toml:2:") && shown.contains(told), "{shown}");
        }
    }
}
