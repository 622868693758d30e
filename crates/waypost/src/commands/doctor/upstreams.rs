//! Upstreams: whether their settings are valid, whether their programs exist, and their state in
//! the running server.

use super::Site;
use super::report::Finding;
use crate::commands::upstream::lookup;
use crate::environment::Environment;
use crate::terminal::output::counted;
use std::path::PathBuf;
use upstreams::{UpstreamConfig, UpstreamKind, UpstreamState};
use wire::rest::Upstream;

/// The check's name.
const NAME: &str = "mcp";
const MEND: &str = "mend it, or set `disabled = true` in `[mcp.servers.<name>]`";
/// How the fault is called of a policy that does not fit a tool of a server.
const POLICY_MISFIT: &str = "PolicyMisfit";

/// What there is to say of them; nothing where the project cannot be read, which is reported
/// already.
pub(super) async fn check(site: &Site<'_>) -> Vec<Finding> {
    let Ok(project) = &site.project else { return Vec::new() };
    let environment = &site.environment;
    let variables = lookup(environment);
    let read = project.upstreams(&variables).and_then(|upstreams| {
        let configs = upstreams.configs(&variables)?;
        Ok((upstreams.entries().len(), configs))
    });
    let (total, configs) = match read {
        Ok(read) => read,
        Err(mistakes) => return vec![Finding::mistaken(NAME, &mistakes, MEND)],
    };
    if total == 0 {
        return vec![Finding::ok(NAME, "no servers are behind this one")];
    }
    let disabled = total - configs.len();
    let names: Vec<String> =
        configs.iter().map(|config| format!("{} ({})", config.name, config.kind.word())).collect();
    let all = counted(total, "upstream");
    let what = format!("{all}, {disabled} disabled: {}", names.join(", "));
    let mut findings = vec![Finding::ok(NAME, what.trim_end_matches([':', ' ']))];
    findings.extend(configs.iter().filter_map(|config| absent(config, environment)));
    findings.extend(site.listed("upstreams").await.into_iter().filter_map(failing));
    findings
}

/// A program that is not here.
fn absent(config: &UpstreamConfig, environment: &Environment) -> Option<Finding> {
    let UpstreamKind::Stdio { command, .. } = &config.kind else { return None };
    let path = PathBuf::from(command);
    let is_here = if path.components().count() > 1 {
        path.is_file()
    } else {
        let folders = environment.any("PATH").unwrap_or_default();
        // On Windows a program has one of several endings; there nothing is said.
        cfg!(windows) || std::env::split_paths(&folders).any(|folder| folder.join(&path).is_file())
    };
    let what = format!("the program of `{}` is not here: `{command}`", config.name);
    (!is_here).then(|| Finding::warn(NAME, what, "install it, or write its whole path"))
}

/// One that a server which runs cannot use.
fn failing(upstream: Upstream) -> Option<Finding> {
    let name = &upstream.name;
    if upstream.state == UpstreamState::Login.word() {
        let hint = format!("`waypost mcp login {name}`");
        return Some(Finding::warn(NAME, format!("`{name}` requires a login"), &hint));
    }
    if let Some(breaker) = &upstream.breaker
        && let Some(until) = &breaker.open_until
    {
        let failures = breaker.failures;
        let what = format!("calls of `{name}` are refused: {failures} failed in a row");
        let hint = format!("one tries after {until}; `waypost mcp test {name}` checks it now");
        return Some(Finding::warn(NAME, what, &hint));
    }
    let fault = upstream.last_error?;
    let what = match (upstream.state.as_str(), fault.name.as_str()) {
        ("failing", _) => format!("`{name}` is failing: {}", fault.message),
        (_, POLICY_MISFIT) => {
            format!("calls of a tool of `{name}` are denied: {}", fault.message)
        }
        _ => return None,
    };
    let hint = fault.hint.unwrap_or_else(|| format!("`waypost mcp test {name}`"));
    Some(Finding::warn(NAME, what, &hint))
}
