//! The page of limits: what each bounds, its default and its range, as the kernel and endpoints
//! declare them.

use super::head;
use project::limits::SettableLimits;
use std::collections::BTreeMap;

const ABOUT: &str = "\
Every limit below can be set in `[limits]` of `waypost.toml`, or by a variable such as
`WAYPOST_LIMITS_BODY_BYTES_MAX`; [configuration](../guides/configuration.md) says what takes precedence over
what, and `waypost config show --origin` which value holds and why. Names end in their unit: `_ms`
milliseconds, `_bytes` bytes.

A value outside of its range is an error with its file and line, or its variable: `waypost up` does
not start with it. Some limits must not be larger than another one: `body_bytes_max` than
`bodies_bytes_max`, and `run_wait_ms`, `delivery_backoff_ms` and `upstream_backoff_ms` than the same
name with `_max`.";

pub(super) fn page() -> String {
    let defaults: BTreeMap<_, _> = SettableLimits::default().values().into_iter().collect();
    let mut page = head("Limits", ABOUT);
    page.push_str("\n| limit | default | range | what it bounds |\n|---|---|---|---|\n");
    for (name, about) in SettableLimits::meanings() {
        let default = defaults[name];
        let (min, max) = SettableLimits::range(name).into_inner();
        page.push_str(&format!("| `{name}` | {default} | {min} to {max} | {about} |\n"));
    }
    page
}
