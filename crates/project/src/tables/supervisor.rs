//! `[supervisor]` and `[realms.<name>.supervisor]`: rules for failed steps. They have the keys of
//! `on_error` in a plan and are read by the same reader.

use crate::layer::Location;
use crate::settings::{SettingsTree, Shape};
use engine::{RulePlace, RulePlaces};
use kernel::definition::plan::mistake::{CheckResult, Position};
use kernel::definition::plan::read::Origin;
use kernel::definition::plan::rules::read_rules;
use kernel::definition::rule::{Rule, Rules};
use kernel::limits::Limits;
use kernel::values::ids::RealmId;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;

/// The table as it is written; what the rules say is read by [`rules`].
#[derive(Debug, Deserialize)]
#[serde(default)]
pub(crate) struct SupervisorKeys {
    /// Whether the built-in rule holds.
    pub(crate) builtin: bool,
    #[serde(rename = "on_error")]
    _on_error: IgnoredAny,
}

impl Default for SupervisorKeys {
    fn default() -> Self {
        Self { builtin: true, _on_error: IgnoredAny }
    }
}

/// All rules of these settings.
#[derive(Debug, Default)]
pub(crate) struct AllRules {
    /// Those of `[supervisor]`.
    pub(crate) project: Vec<Rule>,
    /// Those of `[realms.<name>.supervisor]`, which hold there instead.
    pub(crate) realms: BTreeMap<RealmId, Rules>,
    /// Where they stand.
    pub(crate) places: RulePlaces,
}

/// The rules that these settings have, with warnings, or all that is wrong with them.
pub(crate) fn rules(settings: &SettingsTree, limits: &Limits) -> CheckResult<AllRules> {
    let mut all = AllRules::default();
    let mut told = Vec::new();
    let mut wrong = Vec::new();
    let mut read = |path: &[&str]| match list(settings, path, limits) {
        Ok((rules, warnings)) => {
            told.extend(warnings);
            rules
        }
        Err(mistakes) => {
            wrong.extend(mistakes);
            Vec::new()
        }
    };
    all.project = read(&["supervisor", "on_error"]);
    all.places.project = places(settings, &["supervisor", "on_error"]);
    for realm in settings.at(&["realms"]).map(SettingsTree::names).unwrap_or_default() {
        let Some(own) = settings.at(&["realms", realm, "supervisor"]) else { continue };
        let built_in = own.at(&["builtin"]).and_then(SettingsTree::flag).unwrap_or(true);
        let path = ["realms", realm, "supervisor", "on_error"];
        let project = read(&path);
        let realm = RealmId::from(realm);
        all.places.realms.insert(realm.clone(), places(settings, &path));
        all.realms.insert(realm, Rules { project, built_in });
    }
    if wrong.is_empty() { Ok((all, told)) } else { Err(wrong) }
}

fn list(settings: &SettingsTree, path: &[&str], limits: &Limits) -> CheckResult<Vec<Rule>> {
    let Some(written) = settings.at(path) else { return Ok((Vec::new(), Vec::new())) };
    let origin = Origin { file: Some(written.place.file.to_string()), default_id: None };
    read_rules(&written.node(), &origin, limits)
}

/// Where each rule of a list stands; one that runs a plan where it names it.
fn places(settings: &SettingsTree, path: &[&str]) -> Vec<RulePlace> {
    let Some(SettingsTree { value: Shape::List(items), .. }) = settings.at(path) else {
        return Vec::new();
    };
    let place = |item: &SettingsTree| {
        let Location { file, line, column } = &item.at(&["plan"]).unwrap_or(item).place;
        let position = Position { line: *line, column: *column };
        RulePlace { file: file.to_string(), position }
    };
    items.iter().map(place).collect()
}
