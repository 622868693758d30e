//! `[policy]`, `[audit]` and `[inbox]`: which rules decide access, what is kept of decisions, and
//! how people are notified of asks.

use serde::Deserialize;
use std::num::NonZeroU32;

/// `[policy]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PolicyConfig {
    /// Whether all built-in roles permit something beside the policy files; else only `admin` does.
    pub builtin: bool,
}

impl Default for PolicyConfig {
    fn default() -> Self {
        Self { builtin: true }
    }
}

/// `[audit]`: what is kept of decisions that are not journaled, and for how long all is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct AuditConfig {
    /// Whether an answer waits until what was decided for it is written.
    pub strict: bool,
    /// Whether allowed reads are kept.
    pub reads: bool,
    /// After how many days rows are removed; never where nothing is said.
    pub keep_days: Option<NonZeroU32>,
}

impl Default for AuditConfig {
    fn default() -> Self {
        Self { strict: false, reads: true, keep_days: None }
    }
}

/// `[inbox]`: how people hear of asks.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct InboxConfig {
    /// The command that is started for every new ask, with its arguments; none where it is empty.
    pub notify: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn audit_settings_are_read() {
        let text = "[audit]\nstrict = true\nreads = false\nkeep_days = 365\n";
        let config = Config::parse("waypost.toml", text).unwrap();
        let keep_days = NonZeroU32::new(365);
        assert_eq!(config.audit, AuditConfig { strict: true, reads: false, keep_days });
        let usual = AuditConfig { strict: false, reads: true, keep_days: None };
        assert_eq!(Config::default().audit, usual);
        let told = Config::parse("waypost.toml", "[audit]\nread = true\n").unwrap_err();
        assert!(told[0].message.contains("unknown key `read` in `[audit]`"), "{told:?}");
        let told = Config::parse("waypost.toml", "[audit]\nkeep_days = 0\n").unwrap_err();
        assert_eq!(told.len(), 1, "{told:?}");
    }

    #[test]
    fn a_notify_command_is_read() {
        let text = "[inbox]\nnotify = [\"notify-send\", \"Waypost\", \"{title}\"]\n";
        let config = Config::parse("waypost.toml", text).unwrap();
        assert_eq!(config.inbox.notify, ["notify-send", "Waypost", "{title}"]);
        assert!(Config::default().inbox.notify.is_empty());
        assert!(Config::parse("waypost.toml", "[inbox]\nnotify = \"x\"\n").is_err());
    }

    #[test]
    fn built_in_roles_permit_unless_they_are_switched_off() {
        assert_eq!(Config::default().policy, PolicyConfig { builtin: true });
        let config = Config::parse("waypost.toml", "[policy]\nbuiltin = false\n").unwrap();
        assert_eq!(config.policy, PolicyConfig { builtin: false });
    }
}
