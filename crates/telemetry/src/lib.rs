//! Traces and metrics: what can be seen from outside. Both are made of what the engine says that
//! ended; traces leave over OTLP where a place for them is named, metrics are read here.
//!
//! The order of the modules below is the order of reading and of import: a module uses only those
//! above it.

mod names;
mod otlp;
pub mod config;
mod sampler;
mod spans;
mod wire;
mod exporter;
mod metrics;
mod tracer;

use config::Config;
use exporter::Counts;
use kernel::contracts::observe::Observer;
use metrics::Metrics;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::registry::Registry;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tracer::Tracer;

pub use tracer::Parts;

/// How many tools, models or upstreams the metrics tell apart; more are counted as `other`.
const METRIC_NAMES_MAX: usize = 200;
/// How long a stop waits until the last spans are exported.
const STOP_MS: u64 = 3_000;

/// Metrics, and traces where they are exported.
pub struct Telemetry {
    metrics: Arc<Metrics>,
    tracer: Option<Arc<Tracer>>,
}

impl Telemetry {
    /// Starts what is configured. No one is talked to before there is something to say.
    pub fn start(config: &Config, parts: &Parts) -> Self {
        for warning in &config.warnings {
            tracing::warn!("telemetry: {warning}");
        }
        if config.is_on() {
            tracing::info!("telemetry: {}", config.told());
        }
        let tracer = config.is_on().then(|| Arc::new(Tracer::start(config, parts)));
        let metrics = Arc::new(Metrics::new(METRIC_NAMES_MAX));
        Self { metrics, tracer }
    }

    /// Those who have to see what the engine does.
    pub fn observers(&self) -> Vec<Arc<dyn Observer>> {
        let mut observers: Vec<Arc<dyn Observer>> = vec![self.metrics.clone()];
        observers.extend(self.tracer.iter().map(|tracer| tracer.clone() as Arc<dyn Observer>));
        observers
    }

    /// Adds all that is measured to the metrics page.
    pub fn register(&self, registry: &mut Registry) {
        self.metrics.register(registry);
        if let Some(tracer) = &self.tracer {
            registry.register_collector(Box::new(ExportCounts(tracer.counts())));
        }
    }

    /// Sends the last spans, as long as a stop may wait for them.
    pub async fn stop(&self) {
        if let Some(tracer) = &self.tracer {
            tracer.stop(STOP_MS).await;
        }
    }
}

/// Counts of spans by exporter.
#[derive(Debug)]
struct ExportCounts(Vec<(&'static str, Arc<Counts>)>);

impl Collector for ExportCounts {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        type Which = fn(&Counts) -> &AtomicU64;
        let told: [(&str, &str, Which); 3] = [
            ("spans_exported", "Spans that were taken", |counts| &counts.exported),
            ("spans_dropped", "Spans for which there was no room", |counts| &counts.dropped),
            ("spans_failed", "Spans that were not taken", |counts| &counts.failed),
        ];
        for (name, help, which) in told {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for (exporter, counts) in &self.0 {
                let labels = [("exporter", *exporter)];
                let count = which(counts).load(Ordering::Relaxed);
                ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}
