//! `[realms.<name>]`, and the properties file that says the same of tenants:
//! `quantum.agent.tenant.<realm>.enabledTools` and its neighbours. Other properties are none of our
//! business.

use crate::settings::{Each, Located, Text, checked_list};
use crate::tables::supervisor::SupervisorKeys;
use kernel::definition::plan::mistake::{Mistake, Position, meant};
use kernel::identity::grants::check_realm;
use kernel::identity::principal::check_id;
use kernel::identity::realm::RealmSettings;
use kernel::identity::shares::SharedLimit;
use kernel::limits::Limits;
use kernel::tool::rules::Pattern;
use kernel::values::ids::{AgentName, RealmId};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::num::NonZeroU64;

/// The properties file in a project folder.
pub const PROPERTIES_FILE: &str = "application.properties";

/// What the properties of tenants begin with.
const PREFIX: &str = "quantum.agent.tenant.";
/// What stands between a realm and one of its limits.
const LIMITS: &str = ".limits";
const NAMES: [&str; 8] = [
    "enabledTools", "maxFindLimit", "runAsUserId", "enabledAgents", "enabledPipelines",
    "enabledModels", "defaultAgent", "sessionTtlMs",
];

/// The keys of a realm, as far as they are written.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RealmKeys {
    pub(crate) session_ttl_ms: Option<u64>,
    #[serde(deserialize_with = "patterns")]
    enabled_tools: Option<Vec<Pattern>>,
    #[serde(deserialize_with = "patterns")]
    enabled_agents: Option<Vec<Pattern>>,
    #[serde(deserialize_with = "patterns")]
    enabled_pipelines: Option<Vec<Pattern>>,
    #[serde(deserialize_with = "patterns")]
    enabled_models: Option<Vec<Pattern>>,
    max_find_limit: Option<NonZeroU64>,
    run_as_user_id: Option<Text>,
    default_agent: Option<Text>,
    #[serde(deserialize_with = "variables")]
    variables: Option<Vec<Pattern>>,
    limits: Each<u64>,
    /// What it says is read with the project's own rules.
    #[serde(rename = "supervisor")]
    _supervisor: Option<SupervisorKeys>,
}

/// The realms of these tables, and the mistakes in them.
pub(crate) fn realms(
    tables: Each<RealmKeys>,
    mistakes: &mut Vec<Mistake>,
) -> BTreeMap<RealmId, RealmSettings> {
    let built = tables.build(mistakes, |name, Located { value, .. }| {
        check_realm(&name.text).map_err(|bad| name.mistake(Mistake::error(bad.to_string())))?;
        Ok((RealmId::from(name.text.as_str()), settings(value)?))
    });
    built.into_iter().collect()
}

fn settings(keys: RealmKeys) -> Result<RealmSettings, Mistake> {
    if let Some(id) = &keys.run_as_user_id {
        check_id(&id.text).map_err(|bad| id.mistake(Mistake::error(bad.to_string())))?;
    }
    let default = keys.default_agent;
    let set = RealmSettings {
        enabled_tools: keys.enabled_tools,
        enabled_agents: keys.enabled_agents,
        enabled_pipelines: keys.enabled_pipelines,
        enabled_models: keys.enabled_models,
        max_find_limit: keys.max_find_limit.map(NonZeroU64::get),
        run_as: keys.run_as_user_id.map(|id| id.text.into()),
        default_agent: default.as_ref().map(|name| AgentName::from(name.text.as_str())),
        variables: keys.variables,
        limits: own_limits(keys.limits)?,
    };
    match default.filter(|name| !set.enables_agent(&name.text)) {
        None => Ok(set),
        Some(name) => {
            let what = format!("`enabled_agents` leaves out the default agent `{}`", name.text);
            let hint = "add it there, or let `default_agent` name another one";
            Err(name.mistake(Mistake::error(what).hint(hint)))
        }
    }
}

/// What a realm may use of shared limits.
fn own_limits(written: Each<u64>) -> Result<BTreeMap<SharedLimit, usize>, Mistake> {
    let own = written.0.into_iter().map(|(name, Located { value, .. })| {
        let limit = SharedLimit::ALL.into_iter().find(|limit| limit.setting() == name.text);
        let limit = limit.ok_or_else(|| {
            let names = SharedLimit::ALL.map(SharedLimit::setting);
            let hint = meant(&name.text, names);
            let hint = hint.unwrap_or_else(|| format!("one of {}", names.join(", ")));
            let what = format!("a realm has no limit `{}` of its own", name.text);
            name.mistake(Mistake::error(what).hint(hint))
        })?;
        if let Some(bad) = Limits::check_one(limit.setting(), value) {
            return Err(name.mistake(Mistake::error(bad.to_string()).hint(bad.hint())));
        }
        Ok((limit, usize::try_from(value).unwrap_or(usize::MAX)))
    });
    own.collect()
}

fn patterns<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<Pattern>>, D::Error> {
    let read = |text: &str| Pattern::new(text).map_err(|bad| Mistake::error(bad.to_string()));
    checked_list(deserializer, read).map(Some)
}

/// Names of variables, and beginnings of names.
fn variables<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<Pattern>>, D::Error> {
    let read = |text: &str| {
        let name = text.strip_suffix('*').unwrap_or(text);
        let is_named = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let pattern = Pattern::new(text).ok().filter(|_| is_named);
        pattern.ok_or_else(|| {
            Mistake::error(format!("`{text}` is no name of a variable"))
                .hint("write a name, or its beginning and `*`: `ACME_TOKEN`, `ACME_*`")
        })
    };
    checked_list(deserializer, read).map(Some)
}

/// What a properties file says of realms.
#[derive(Debug, Default)]
pub(crate) struct Properties {
    /// Every realm that it names.
    pub(crate) realms: BTreeMap<RealmId, RealmSettings>,
    /// How long those that it says it of keep their sessions.
    pub(crate) session_ttls: BTreeMap<RealmId, u64>,
}

/// What a properties file says of realms; where it is wrong, all that is.
pub(crate) fn of_properties(text: &str, file: &str) -> Result<Properties, Vec<Mistake>> {
    let mut found = Properties::default();
    let mut mistakes = Vec::new();
    for (number, line) in logical_lines(text) {
        let Some(property) = line.strip_prefix(PREFIX) else { continue };
        let taken = take(property, &mut found);
        mistakes.extend(taken.err().map(|mistake| {
            let place = Position { line: number, column: 1 };
            Mistake { file: Some(file.to_owned()), ..mistake.at(place, "") }
        }));
    }
    if mistakes.is_empty() { Ok(found) } else { Err(mistakes) }
}

/// Takes one property, without what all of them begin with.
fn take(property: &str, found: &mut Properties) -> Result<(), Mistake> {
    let (key, value) = property.split_once(['=', ':']).unwrap_or((property, ""));
    let key = key.trim();
    let value = value.trim();
    // A realm's name can have dots itself.
    let (place, name) = key.rsplit_once('.').unwrap_or((key, ""));
    let limited = place.strip_suffix(LIMITS).filter(|_| !NAMES.contains(&name));
    let realm = limited.unwrap_or(place);
    check_realm(realm).map_err(|bad| Mistake::error(bad.to_string()))?;
    let own = found.realms.entry(RealmId::from(realm)).or_default();
    if limited.is_some() {
        own.limits.extend([own_limit(name, value)?]);
        return Ok(());
    }
    match name {
        "enabledTools" => own.enabled_tools = listed(value)?,
        "enabledAgents" => own.enabled_agents = listed(value)?,
        "enabledPipelines" => own.enabled_pipelines = listed(value)?,
        "enabledModels" => own.enabled_models = listed(value)?,
        "maxFindLimit" => {
            let limit = value.parse::<NonZeroU64>();
            let limit = limit.map_err(|_| bad(name, value, "write a whole number from 1"))?;
            own.max_find_limit = Some(limit.get());
        }
        "runAsUserId" => {
            check_id(value).map_err(|bad| Mistake::error(bad.to_string()))?;
            own.run_as = Some(value.into());
        }
        "defaultAgent" if value.is_empty() => {
            return Err(bad(name, value, "write the name of an agent, or leave it out"));
        }
        "defaultAgent" => own.default_agent = Some(AgentName::from(value)),
        "sessionTtlMs" => {
            let ttl_ms = value.parse::<u64>().ok();
            let is_valid = |ms: &u64| Limits::check_one("session_ttl_ms", *ms).is_none();
            let hint = "write a whole number of milliseconds; 0 keeps sessions for good";
            let ttl_ms = ttl_ms.filter(is_valid).ok_or_else(|| bad(name, value, hint))?;
            found.session_ttls.insert(RealmId::from(realm), ttl_ms);
        }
        other => {
            let hint = meant(other, NAMES);
            let hint = hint.unwrap_or_else(|| format!("one of {}", NAMES.join(", ")));
            return Err(Mistake::error(format!("a realm has no property `{other}`")).hint(hint));
        }
    }
    Ok(())
}

/// What a realm may use of the shared limit that a property names.
fn own_limit(name: &str, value: &str) -> Result<(SharedLimit, usize), Mistake> {
    let names = SharedLimit::ALL.map(|limit| in_camel_case(limit.setting()));
    let named = SharedLimit::ALL.into_iter().zip(&names).find(|(_, own)| *own == name);
    let (limit, _) = named.ok_or_else(|| {
        let hint = meant(name, names.iter().map(String::as_str));
        let hint = hint.unwrap_or_else(|| format!("one of {}", names.join(", ")));
        Mistake::error(format!("a realm has no limit `{name}` of its own")).hint(hint)
    })?;
    let number = value.parse::<u64>();
    let number = number.map_err(|_| bad(name, value, "write a whole number"))?;
    if let Some(bad) = Limits::check_one(limit.setting(), number) {
        return Err(Mistake::error(bad.to_string()).hint(bad.hint()));
    }
    Ok((limit, usize::try_from(number).unwrap_or(usize::MAX)))
}

/// The name of a setting as properties write names: `turns_active_max` is `turnsActiveMax`.
fn in_camel_case(setting: &str) -> String {
    let mut name = String::new();
    let mut begins_word = false;
    for letter in setting.chars() {
        match letter {
            '_' => begins_word = true,
            _ if begins_word => {
                name.push(letter.to_ascii_uppercase());
                begins_word = false;
            }
            _ => name.push(letter),
        }
    }
    name
}

fn bad(name: &str, value: &str, hint: &str) -> Mistake {
    Mistake::error(format!("`{name}` cannot be `{value}`")).hint(hint)
}

/// A list with commas. An empty one is all of them here.
fn listed(value: &str) -> Result<Option<Vec<Pattern>>, Mistake> {
    let names = value.split(',').map(str::trim).filter(|name| !name.is_empty());
    let patterns: Result<Vec<Pattern>, _> = names.map(Pattern::new).collect();
    let patterns = patterns.map_err(|bad| Mistake::error(bad.to_string()))?;
    Ok(Some(patterns).filter(|patterns| !patterns.is_empty()))
}

/// The lines of a properties file with their numbers: a backslash at the end continues one, and
/// comments are left out.
fn logical_lines(text: &str) -> Vec<(u32, String)> {
    let mut lines: Vec<(u32, String)> = Vec::new();
    let mut is_open = false;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        let whole = line.strip_suffix('\\');
        let part = whole.unwrap_or(line);
        if is_open && let Some((_, last)) = lines.last_mut() {
            last.push_str(part);
        } else if line.is_empty() || line.starts_with(['#', '!']) {
            continue;
        } else {
            lines.push((number, part.to_owned()));
        }
        is_open = whole.is_some();
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn patterns(names: &[&str]) -> Option<Vec<Pattern>> {
        Some(names.iter().map(|name| Pattern::new(name).unwrap()).collect())
    }

    #[test]
    fn every_property_can_be_written_in_toml() {
        let text = "[realms.acme]\nenabled_tools = [\"math::*\"]\nmax_find_limit = 100\n\
                    run_as_user_id = \"agent-service-user\"\ndefault_agent = \"desk\"\n\
                    variables = [\"ACME_*\", \"SHARED\"]\n\
                    enabled_agents = [\"desk*\"]\nenabled_pipelines = [\"trades\"]\n\
                    enabled_models = [\"fast\"]\nlimits = { turns_active_max = 8 }\n\
                    [realms.none]\nenabled_tools = []\n[realms.bare]\n\
                    [realms.small.limits]\nruns_active_max = 1\n";
        let config = Config::parse("waypost.toml", text).unwrap();
        let acme = RealmSettings {
            enabled_tools: patterns(&["math::*"]),
            enabled_agents: patterns(&["desk*"]),
            enabled_pipelines: patterns(&["trades"]),
            enabled_models: patterns(&["fast"]),
            max_find_limit: Some(100),
            run_as: Some("agent-service-user".into()),
            default_agent: Some("desk".into()),
            variables: patterns(&["ACME_*", "SHARED"]),
            limits: BTreeMap::from([(SharedLimit::Turns, 8)]),
        };
        assert_eq!(config.realms["acme"], acme);
        assert_eq!(config.realms["none"].enabled_tools, Some(Vec::new()));
        assert_eq!(config.realms["bare"], RealmSettings::default());
        assert_eq!(config.realms["small"].limits, [(SharedLimit::Runs, 1)].into());
    }

    #[test]
    fn mistakes_in_toml_are_reported_with_their_line() {
        for (text, told) in [
            ("[realms.\"a b\"]\n", "waypost.toml:1:9: error: `a b` is not the name of a realm"),
            ("[realms.v1]\n", "cannot be the name of a realm"),
            ("[realms.a]\nenabled_tools = [\"a b\"]\n", "waypost.toml:2:"),
            ("[realms.a]\nrun_as_user_id = \"corp:1\"\n", "is not the id of a principal"),
            ("[realms.a]\nmax_find_limit = 0\n", "waypost.toml:2:"),
            ("[realms.a]\nvariables = [\"A-*\"]\n", "`A-*` is no name of a variable"),
            ("[realms.a]\nvariables = [\"*\"]\n", "`*` is no name of a variable"),
            ("[realms.a]\nenabledTools = []\n", "did you mean `enabled_tools`?"),
            ("[realms.a]\nenabled_models = [\"a,b\"]\n", "waypost.toml:2:"),
            (
                "[realms.a]\nenabled_agents = [\"x\"]\ndefault_agent = \"desk\"\n",
                "waypost.toml:3:17: error: `enabled_agents` leaves out the default agent `desk`",
            ),
            (
                "[realms.a.limits]\nturns_max = 1\n",
                "waypost.toml:2:1: error: a realm has no limit `turns_max` of its own",
            ),
            (
                "[realms.a.limits]\nturns_active_max = 0\n",
                "`turns_active_max` = 0 is out of range: it can be 1 to 100000",
            ),
        ] {
            let found = Config::parse("waypost.toml", text).unwrap_err();
            let found = found.iter().map(Mistake::to_string).collect::<Vec<_>>().join("\n");
            assert!(found.contains(told), "{text}\n{found}");
        }
    }

    #[test]
    fn tenant_properties_are_read_and_others_ignored() {
        let text = "# Restrict tenant \"acme\"\nserver.port=80\n\
                    quantum.agent.tenant.acme.enabledTools=query_find, query_count ,\\\n\
                    \u{20} query_plan\n\
                    quantum.agent.tenant.acme.maxFindLimit = 100\n\
                    quantum.agent.tenant.acme.runAsUserId: agent-service-user\n\
                    quantum.agent.tenant.acme.enabledAgents=desk*\n\
                    quantum.agent.tenant.acme.enabledPipelines=trades,cases\n\
                    quantum.agent.tenant.acme.enabledModels=fast\n\
                    quantum.agent.tenant.acme.defaultAgent=desk\n\
                    quantum.agent.tenant.acme.sessionTtlMs=60000\n\
                    ! all of them\nquantum.agent.tenant.acme.eu.enabledTools=\n";
        let Properties { realms, session_ttls } = of_properties(text, PROPERTIES_FILE).unwrap();
        let acme = RealmSettings {
            enabled_tools: patterns(&["query_find", "query_count", "query_plan"]),
            enabled_agents: patterns(&["desk*"]),
            enabled_pipelines: patterns(&["trades", "cases"]),
            enabled_models: patterns(&["fast"]),
            max_find_limit: Some(100),
            run_as: Some("agent-service-user".into()),
            default_agent: Some("desk".into()),
            ..RealmSettings::default()
        };
        assert_eq!(session_ttls, BTreeMap::from([("acme".into(), 60_000)]));
        assert_eq!(realms["acme"], acme);
        assert_eq!(realms["acme.eu"], RealmSettings::default(), "empty is all");
        assert_eq!(realms.len(), 2);
    }

    #[test]
    fn limits_of_tenants_are_named_like_their_other_properties() {
        let text = "quantum.agent.tenant.acme.limits.turnsActiveMax=8\n\
                    quantum.agent.tenant.acme.limits.loginsPerMinute = 3\n\
                    quantum.agent.tenant.acme.limits.enabledModels=fast\n";
        let Properties { realms, .. } = of_properties(text, PROPERTIES_FILE).unwrap();
        let limits = BTreeMap::from([(SharedLimit::Turns, 8), (SharedLimit::Logins, 3)]);
        assert_eq!(realms["acme"], RealmSettings { limits, ..RealmSettings::default() });
        // A realm can have such a name itself.
        assert_eq!(realms["acme.limits"].enabled_models, patterns(&["fast"]));
        for limit in SharedLimit::ALL {
            let name = in_camel_case(limit.setting());
            let text = format!("{PREFIX}acme.limits.{name}=5000");
            let found = of_properties(&text, PROPERTIES_FILE).unwrap();
            assert_eq!(found.realms["acme"].limits, BTreeMap::from([(limit, 5_000)]), "{name}");
        }
        for (property, told) in [
            ("turnsActive=8", "a realm has no limit `turnsActive` of its own"),
            ("turns_active_max=8", "did you mean `turnsActiveMax`?"),
            ("turnsActiveMax=many", "`turnsActiveMax` cannot be `many`"),
            ("turnsActiveMax=0", "`turns_active_max` = 0 is out of range"),
        ] {
            let text = format!("\n{PREFIX}acme.limits.{property}\n");
            let found = of_properties(&text, PROPERTIES_FILE).unwrap_err();
            let found = found.iter().map(Mistake::to_string).collect::<Vec<_>>().join("\n");
            assert!(found.starts_with("application.properties:2:1: error: "), "{found}");
            assert!(found.contains(told), "{found}");
        }
    }

    #[test]
    fn mistakes_in_properties_are_reported_with_their_line() {
        let text = "quantum.agent.tenant.A.enabledTools=x\n\
                    quantum.agent.tenant.acme.enabledTool=x\n\
                    quantum.agent.tenant.acme.maxFindLimit=many\n\
                    quantum.agent.tenant.acme.runAsUserId=\nquantum.agent.tenant.acme\n\
                    quantum.agent.tenant.acme.defaultAgent=\n\
                    quantum.agent.tenant.acme.sessionTtlMs=-1\n\
                    quantum.agent.tenant.acme.enabledModels=a b\n";
        let found = of_properties(text, PROPERTIES_FILE).unwrap_err();
        let found: Vec<String> = found.iter().map(Mistake::to_string).collect();
        for (told, line) in found.iter().zip(1..) {
            let place = format!("application.properties:{line}:1: error: ");
            assert!(told.starts_with(&place), "{told}");
        }
        assert_eq!(found.len(), 8);
        assert!(found[1].ends_with("did you mean `enabledTools`?"), "{}", found[1]);
    }
}
