//! Operations: `/livez`, `/readyz`, `/metrics`, `/openapi.json`.

use crate::doors::Shared;
use crate::error::Failure;
use crate::openapi::document;
use axum::Json;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use engine::Counts;
use engine::refusal::{Refusal, RefusalKind};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use serde_json::Value;
use std::fmt;
use wire::rest::Health;

const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// `GET /livez`: the process answers.
pub(crate) async fn livez() -> Json<Health> {
    Json(Health { status: "live".to_owned() })
}

/// `GET /readyz`: work can be taken.
pub(crate) async fn readyz(State(doors): State<Shared>) -> Result<Json<Health>, Failure> {
    match doors.engine.healthy() {
        Ok(()) => Ok(Json(Health { status: "ready".to_owned() })),
        // Whatever the reason, a load balancer must hear 503.
        Err(refusal) => Err(Refusal { kind: RefusalKind::Unavailable, ..refusal }.into()),
    }
}

/// `GET /openapi.json`.
pub(crate) async fn openapi() -> Json<Value> {
    Json(document())
}

/// `GET /metrics`.
pub(crate) async fn metrics(State(doors): State<Shared>) -> Result<Response, Failure> {
    let open = doors.limits().streams_max.saturating_sub(doors.streams.available_permits());
    let reading = Reading { counts: doors.engine.counts(), streams_open: open as u64 };
    let mut registry = Registry::with_prefix("waypost");
    registry.register_collector(Box::new(reading));
    let mut body = String::new();
    match text::encode(&mut body, &registry) {
        Ok(()) => Ok(([(CONTENT_TYPE, METRICS_TYPE)], body).into_response()),
        Err(error) => Err(Refusal::new(
            RefusalKind::Failed,
            "metrics_failed",
            format!("the metrics cannot be written: {error}"),
        )
        .into()),
    }
}

/// The counters at one moment.
#[derive(Debug)]
struct Reading {
    counts: Counts,
    streams_open: u64,
}

impl Reading {
    fn counters(&self) -> Vec<(&'static str, &'static str, u64)> {
        let counts = &self.counts;
        vec![
            ("runs_started", "Runs that were started", counts.runs_started),
            ("calls_started", "Tool calls that were sent", counts.calls_started),
            ("calls_failed", "Tool calls that failed", counts.calls_failed),
            ("asks_opened", "Asks that were raised", counts.asks_opened),
            ("asks_decided", "Asks that a reply closed", counts.asks_decided),
            ("appends", "Appends to the journal", counts.appends),
            ("recoveries", "Runs that were taken over after a crash", counts.recoveries),
            ("turns_started", "Turns of models that were begun", counts.turns_started),
            ("turns_finished", "Turns of models that were answered", counts.turns_finished),
            ("turns_failed", "Turns of models that failed", counts.turns_failed),
            ("tokens_read", "Tokens that models read", counts.tokens_read),
            ("tokens_written", "Tokens that models wrote", counts.tokens_written),
            (
                "cost_micros",
                "Millionths of a dollar, as far as prices are known",
                counts.cost_micros,
            ),
        ]
    }

    fn gauges(&self) -> [(&'static str, &'static str, u64); 2] {
        [
            ("sessions_active", "Sessions that are being driven", self.counts.sessions_active),
            ("streams_open", "Event streams that are open", self.streams_open),
        ]
    }
}

impl Collector for Reading {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for (name, help, value) in self.counters() {
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            ConstCounter::new(value).encode(metric)?;
        }
        for (name, help, value) in self.gauges() {
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(value).encode(metric)?;
        }
        let (name, help) = ("runs_ended", "Runs that ended, by status");
        let mut ended = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (status, value) in &self.counts.runs_ended {
            let labels = [("status", *status)];
            ConstCounter::new(*value).encode(ended.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn readings_become_open_metrics() {
        let counts = Counts {
            runs_started: 3,
            runs_ended: BTreeMap::from([("completed", 2), ("failed", 1)]),
            ..Counts::default()
        };
        let mut registry = Registry::with_prefix("waypost");
        registry.register_collector(Box::new(Reading { counts, streams_open: 1 }));
        let mut body = String::new();
        text::encode(&mut body, &registry).unwrap();
        for line in [
            "waypost_runs_started_total 3",
            "waypost_runs_ended_total{status=\"completed\"} 2",
            "waypost_streams_open 1",
            "# TYPE waypost_sessions_active gauge",
            "# EOF",
        ] {
            assert!(body.lines().any(|told| told == line), "{line} is not in\n{body}");
        }
    }
}
