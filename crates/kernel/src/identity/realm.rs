//! Realms: which there are, what is set for each, and which one a request is in. A realm exists
//! once it is configured, never by use.

use crate::identity::grants::Grants;
use crate::identity::principal::Principal;
use crate::identity::shares::{Portion, SharedLimit};
use crate::limits::Limits;
use crate::tool::rules::Pattern;
use crate::values::ids::{AgentName, RealmId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Settings of one realm.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RealmSettings {
    /// Which tools can be called; all where nothing is said, none where the list is empty.
    pub enabled_tools: Option<Vec<Pattern>>,
    /// Which agents there are, in the same way.
    pub enabled_agents: Option<Vec<Pattern>>,
    /// Which pipelines there are, in the same way.
    pub enabled_pipelines: Option<Vec<Pattern>>,
    /// Which models can be asked, in the same way.
    pub enabled_models: Option<Vec<Pattern>>,
    /// How many records one search gives at most.
    pub max_find_limit: Option<u64>,
    /// The principal that must be allowed as well what callers run, say, submit and call here.
    pub run_as: Option<Arc<str>>,
    /// The agent of requests that name none.
    pub default_agent: Option<AgentName>,
    /// The variables of the environment that stored providers may name.
    pub variables: Option<Vec<Pattern>>,
    /// Its share of limits, where it differs from the default share.
    pub limits: BTreeMap<SharedLimit, usize>,
}

impl RealmSettings {
    /// These settings, completed with those of `other`.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let mut limits = other.limits;
        limits.extend(self.limits);
        Self {
            limits,
            enabled_tools: self.enabled_tools.or(other.enabled_tools),
            enabled_agents: self.enabled_agents.or(other.enabled_agents),
            enabled_pipelines: self.enabled_pipelines.or(other.enabled_pipelines),
            enabled_models: self.enabled_models.or(other.enabled_models),
            max_find_limit: self.max_find_limit.or(other.max_find_limit),
            run_as: self.run_as.or(other.run_as),
            default_agent: self.default_agent.or(other.default_agent),
            variables: self.variables.or(other.variables),
        }
    }

    /// Whether this tool can be called.
    pub fn enables_tool(&self, name: &str) -> bool {
        is_among(self.enabled_tools.as_deref(), name)
    }

    pub fn enables_agent(&self, name: &str) -> bool {
        is_among(self.enabled_agents.as_deref(), name)
    }

    pub fn enables_pipeline(&self, name: &str) -> bool {
        is_among(self.enabled_pipelines.as_deref(), name)
    }

    /// Whether this model can be asked.
    pub fn enables_model(&self, name: &str) -> bool {
        is_among(self.enabled_models.as_deref(), name)
    }

    /// Whether policy may be overruled by it: something that it allows may be refused.
    pub fn restricts(&self) -> bool {
        self.enabled_tools.is_some()
            || self.enabled_agents.is_some()
            || self.enabled_pipelines.is_some()
            || self.run_as.is_some()
    }

    /// Whether anything narrows what is done in the realm.
    pub fn narrows(&self) -> bool {
        self.restricts() || self.enabled_models.is_some() || self.max_find_limit.is_some()
    }
}

/// Whether one of these patterns fits a name; every name does where there is no list.
fn is_among(patterns: Option<&[Pattern]>, name: &str) -> bool {
    patterns.is_none_or(|patterns| patterns.iter().any(|pattern| pattern.fits(name)))
}

/// The realms that there are, with what is set for each.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Realms(pub BTreeMap<RealmId, RealmSettings>);

/// The inputs that select the realm of a request.
#[derive(Debug, Clone)]
pub struct RealmSelector<'a> {
    /// The one that it names.
    pub asked: Option<&'a str>,
    /// The area of its endpoint, where that has one.
    pub area: Option<&'a str>,
    /// The calling principal, if it is one.
    pub principal: Option<&'a Principal>,
    /// The realms that its credential may enter.
    pub grants: &'a Grants,
    /// The one that every server has.
    pub usual: RealmId,
}

impl Realms {
    /// The realm of a request: the one that it names, else what its principal has for the area of
    /// the endpoint, else the principal's default, else the only one that the credential names,
    /// else the usual one. None where there is no such realm, or the credential may not enter it:
    /// who may not enter learns nothing of what there is.
    pub fn choose(&self, wish: RealmSelector<'_>) -> Option<RealmId> {
        let RealmSelector { asked, area, principal, grants, usual } = wish;
        let overridden = || principal?.realm_overrides.get(area?).cloned();
        let default = || principal?.default_realm.clone();
        let asked = asked.map(RealmId::from);
        let chosen = asked.or_else(overridden).or_else(default).or_else(|| grants.only());
        let chosen = chosen.unwrap_or(usual);
        (self.0.contains_key(&chosen) && grants.enters(&chosen)).then_some(chosen)
    }

    /// The settings of a realm, if they restrict anything.
    pub fn restricting(&self, realm: &RealmId) -> Option<&RealmSettings> {
        self.0.get(realm).filter(|settings| settings.restricts())
    }

    /// The share of a limit that a realm and each of its callers may use.
    pub fn portion(&self, realm: &RealmId, limit: SharedLimit, limits: &Limits) -> Portion {
        let own = self.0.get(realm).and_then(|settings| settings.limits.get(&limit)).copied();
        Portion::of(limit, limits, own, self.0.len() <= 1)
    }

    /// Whether something may be refused in any realm because of what is set.
    pub fn restrict(&self) -> bool {
        self.0.values().any(RealmSettings::restricts)
    }

    /// Whether anything narrows what is done in any realm.
    pub fn narrow(&self) -> bool {
        self.0.values().any(RealmSettings::narrows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::grants::RealmPattern;
    use crate::identity::roles::Roles;

    fn entering(patterns: &[&str]) -> Grants {
        let mut grants = Grants::default();
        for pattern in patterns {
            grants.give(RealmPattern::parse(pattern).unwrap(), &Roles::default());
        }
        grants
    }

    fn realms() -> Realms {
        let names = ["usual", "acme", "acme-eu"];
        Realms(names.map(|name| (name.into(), RealmSettings::default())).into_iter().collect())
    }

    #[test]
    fn a_request_is_in_the_first_realm_that_someone_names() {
        let grants = entering(&["*"]);
        let chosen = |asked, area, principal: Option<&Principal>, grants: &Grants| {
            let wish = RealmSelector { asked, area, principal, grants, usual: "usual".into() };
            realms().choose(wish).map(|realm| realm.to_string())
        };
        let ann = Principal {
            default_realm: Some("acme".into()),
            realm_overrides: BTreeMap::from([("integration".to_owned(), "acme-eu".into())]),
            ..Principal::new("ann", Grants::default())
        };
        let bare = Principal::new("bob", Grants::default());
        let area = Some("integration");
        assert_eq!(chosen(Some("acme"), area, Some(&ann), &grants).as_deref(), Some("acme"));
        assert_eq!(chosen(None, area, Some(&ann), &grants).as_deref(), Some("acme-eu"));
        assert_eq!(chosen(None, None, Some(&ann), &grants).as_deref(), Some("acme"));
        let only = entering(&["acme-eu"]);
        assert_eq!(chosen(None, area, Some(&bare), &only).as_deref(), Some("acme-eu"));
        assert_eq!(chosen(None, None, None, &grants).as_deref(), Some("usual"));
        // A default that may not be entered is refused, and not passed over.
        assert_eq!(chosen(None, None, Some(&ann), &only), None);
    }

    #[test]
    fn an_unknown_realm_is_refused_like_a_forbidden_one() {
        let chosen = |asked: &str, patterns: &[&str]| {
            let asked = Some(asked);
            let grants = entering(patterns);
            let area = None;
            let principal = None;
            let usual = "usual".into();
            realms()
                .choose(RealmSelector { asked, area, principal, grants: &grants, usual })
                .is_some()
        };
        assert!(chosen("acme", &["acme*"]) && chosen("acme-eu", &["acme*"]));
        assert!(!chosen("acme-us", &["acme*"]) && !chosen("usual", &["acme*"]));
        assert!(!chosen("", &["*"]) && !chosen("ACME", &["*"]));
    }

    #[test]
    fn settings_narrow_the_tools_of_a_realm() {
        let with = |patterns: &[&str]| RealmSettings {
            enabled_tools: Some(patterns.iter().map(|text| Pattern::new(text).unwrap()).collect()),
            ..RealmSettings::default()
        };
        let all = RealmSettings::default();
        assert!(all.enables_tool("math::add") && !all.restricts() && !all.narrows());
        let math = with(&["math::*"]);
        assert!(math.enables_tool("math::add") && !math.enables_tool("x"));
        assert!(!with(&[]).enables_tool("math::add") && with(&[]).restricts());
        assert_eq!(with(&[]).or(with(&["a"])), with(&[]));
        assert_eq!(RealmSettings::default().or(with(&["a"])), with(&["a"]));
        let realms = Realms(BTreeMap::from([("a".into(), with(&[])), ("b".into(), all)]));
        assert!(realms.restricting(&"a".into()).is_some() && realms.restrict());
        assert!(realms.restricting(&"b".into()).is_none() && !Realms::default().restrict());
    }

    #[test]
    fn agents_pipelines_and_models_are_narrowed_each_by_a_list_of_its_own() {
        let only = |name: &str| Some(vec![Pattern::new(name).unwrap()]);
        let all = RealmSettings::default();
        let agents = RealmSettings { enabled_agents: only("desk*"), ..all.clone() };
        assert!(agents.enables_agent("desk") && !agents.enables_agent("sales"));
        assert!(agents.enables_pipeline("sales") && agents.enables_model("sales"));
        let pipelines = RealmSettings { enabled_pipelines: only("trades"), ..all.clone() };
        assert!(pipelines.enables_pipeline("trades") && !pipelines.enables_pipeline("other"));
        let models = RealmSettings { enabled_models: Some(Vec::new()), ..all.clone() };
        assert!(!models.enables_model("fast") && models.enables_agent("desk"));
        // No verdict depends on a model or on the number of records.
        let limited = RealmSettings { max_find_limit: Some(1), ..all };
        assert!(agents.restricts() && pipelines.restricts());
        assert!(!models.restricts() && !limited.restricts());
        assert!(models.narrows() && limited.narrows() && agents.narrows());
        let realms = Realms(BTreeMap::from([("a".into(), limited)]));
        assert!(realms.narrow() && !realms.restrict());
    }

    #[test]
    fn shares_are_computed_per_realm_where_there_are_several() {
        let limits = Limits { turns_active_max: 100, ..Limits::default() };
        let turns = |realms: &Realms, realm: &str| {
            let Portion { realm, caller } =
                realms.portion(&realm.into(), SharedLimit::Turns, &limits);
            (realm, caller)
        };
        let own = RealmSettings {
            limits: BTreeMap::from([(SharedLimit::Turns, 8)]),
            ..RealmSettings::default()
        };
        let mut realms = Realms(BTreeMap::from([("usual".into(), RealmSettings::default())]));
        assert_eq!(turns(&realms, "usual"), (100, 25));
        realms.0.insert("acme".into(), own.clone());
        assert_eq!((turns(&realms, "usual"), turns(&realms, "acme")), ((50, 12), (8, 2)));
        let other = BTreeMap::from([(SharedLimit::Turns, 9), (SharedLimit::Runs, 3)]);
        let both = own.or(RealmSettings { limits: other, ..RealmSettings::default() });
        assert_eq!(both.limits, [(SharedLimit::Runs, 3), (SharedLimit::Turns, 8)].into());
    }
}
