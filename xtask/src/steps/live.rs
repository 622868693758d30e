//! `cargo xtask live`: a router's and an executor's turns and ten drafted
//! plans with each provider whose key is set (`crates/testkit/tests/it/live_models.rs`). It costs
//! money and needs the network, so nothing else runs it; what it leaves out, and why, is printed.

use std::path::Path;
use std::process::Command;

use crate::shell::{self, Failure};

/// What lets the tests talk to the providers.
const SWITCH: &str = "WAYPOST_LIVE";
/// The providers' keys.
const KEYS: &[&str] = &["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY"];

/// Talks to the providers. The test itself prints what was done and what was left out.
pub fn run(root: &Path) -> Result<(), Failure> {
    shell::run(
        "the live models",
        shell::cargo(root)
            .args(["test", "--locked", "-p", "testkit", "--test", "it"])
            .args(["live_models", "--", "--nocapture"])
            .env(SWITCH, "1"),
    )
}

/// The same command without the switch and the keys, so that no test of it finds a provider.
pub fn forbidden(command: &mut Command) -> &mut Command {
    for key in KEYS {
        command.env_remove(key);
    }
    command.env_remove(SWITCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_must_not_go_out_has_neither_switch_nor_keys() {
        let mut command = Command::new("true");
        for name in KEYS.iter().chain(&[SWITCH]) {
            command.env(name, "1");
        }
        forbidden(&mut command);
        let removed = command.get_envs().filter(|(_, value)| value.is_none()).count();
        assert_eq!(removed, KEYS.len() + 1);
        assert!(command.get_envs().all(|(_, value)| value.is_none()));
    }
}
