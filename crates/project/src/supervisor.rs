//! `[supervisor]`: the project's rules for failed steps. They have the keys of `on_error` in a plan
//! and are read by the same reader.

use crate::settings::Written;
use kernel::definition::plan::mistake::Checked;
use kernel::definition::plan::read::Origin;
use kernel::definition::plan::rules::read_rules;
use kernel::definition::rule::Rule;
use kernel::limits::Limits;
use serde::Deserialize;
use serde::de::IgnoredAny;

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

/// The rules that these settings have, with warnings, or all that is wrong with them.
pub(crate) fn rules(settings: &Written, limits: &Limits) -> Checked<Vec<Rule>> {
    let Some(written) = settings.at(&["supervisor", "on_error"]) else {
        return Ok((Vec::new(), Vec::new()));
    };
    let origin = Origin { file: Some(written.place.file.to_string()), default_id: None };
    read_rules(&written.node(), &origin, limits)
}
