//! The names of metrics: each that the guide, the runbook and the dashboard speak of is one that a
//! server tells, and each that it tells stands in the guide.

use crate::thread_client::{DemoClient, LIMIT};
use crate::traced::{is_measured, sending, spend_a_day};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use testkit::harness::wait_for;
use testkit::servers::otlp::Collector;

const GUIDE: &str = "guides/telemetry.md";
const RUNBOOK: &str = "guides/runbook.md";
const DASHBOARD: &str = "grafana/waypost.json";

/// What all names begin with.
const BEGIN: &str = "waypost_";
/// What only a server tells that calls agents; the tests of the server's readings have it.
const OF_AGENTS: &str = "waypost_upstream_card_changes_total";
/// What stands behind the name of a histogram.
const PARTS: [&str; 3] = ["_bucket", "_count", "_sum"];

fn text_of(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The names that a text speaks of.
fn named(text: &str) -> BTreeSet<String> {
    let is_part = |letter: char| letter.is_ascii_lowercase() || "_0123456789".contains(letter);
    let words = text.split(|letter: char| !is_part(letter));
    words.filter(|word| word.starts_with(BEGIN)).map(str::to_owned).collect()
}

/// The names that a server tells, each part of a histogram by itself.
fn told(metrics: &str) -> BTreeSet<String> {
    let lines = metrics.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split(['{', ' ']).next()).map(str::to_owned).collect()
}

/// A server of which everything was asked that it measures.
fn everything() -> BTreeSet<String> {
    let collector = Collector::start();
    let folder = tempfile::tempdir().unwrap();
    let url = collector.url();
    let mut demo = DemoClient::with_variables(&folder.path().join("data"), &sending(&url, &[]));
    spend_a_day(&mut demo);
    let case = demo.post("/trade/failures", &json!({"tradeId": "T-1", "reason": "Missing ISIN"}));
    assert_eq!(case.status, 200, "{case:?}");
    for name in ["run_duration", "call_duration", "turn_duration", "human_wait", "commit_duration"]
    {
        is_measured(&mut demo, &format!("{BEGIN}{name}_seconds"));
    }
    let metrics = wait_for("the case to have been counted", LIMIT, || {
        let metrics = demo.metrics();
        metrics.contains("waypost_pipeline_total{").then_some(metrics)
    });
    demo.stop();
    told(&metrics)
}

#[test]
fn documented_and_exported_metrics_are_the_same() {
    let told = everything();
    let is_told = |name: &&String| told.contains(*name) || told.contains(&format!("{name}_count"));
    for file in [GUIDE, RUNBOOK, DASHBOARD] {
        let named = named(&text_of(file));
        let unknown: Vec<&String> =
            named.iter().filter(|name| !is_told(name) && *name != OF_AGENTS).collect();
        assert!(!named.is_empty() && unknown.is_empty(), "{file}: {unknown:?} of {told:#?}");
    }
    let written = named(&text_of(GUIDE));
    let is_written = |name: &&String| {
        let whole = PARTS.iter().find_map(|part| name.strip_suffix(*part));
        let whole = whole.unwrap_or(name.as_str());
        written.contains(*name) || written.contains(whole)
    };
    let unsaid: Vec<&String> = told.iter().filter(|name| !is_written(name)).collect();
    assert!(unsaid.is_empty(), "the guide says nothing of {unsaid:?}");
}

#[test]
fn the_dashboard_can_be_imported() {
    let dashboard: Value = serde_json::from_str(&text_of(DASHBOARD)).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<u64> = panels.iter().filter_map(|panel| panel["id"].as_u64()).collect();
    assert_eq!(ids.len(), panels.len(), "each panel has an id of its own");
    for panel in panels.iter().filter(|panel| panel["type"] != "row") {
        let targets = panel["targets"].as_array().unwrap();
        let asks = |target: &Value| target["expr"].as_str().is_some_and(|expr| !expr.is_empty());
        assert!(!targets.is_empty() && targets.iter().all(asks), "{panel:#}");
    }
}
