//! Converts observations into spans and offers them to every exporter.

use crate::config::{Config, Destination, LANGFUSE_PLACE};
use crate::exporter::{Counts, Exporter, SpanSender};
use crate::names::{SCOPE, key};
use crate::otlp::{KeyValue, Resource, Scope, text};
use crate::sampler::Sampler;
use crate::spans::{is_first, span};
use crate::wire::Http;
use futures::future::join_all;
use kernel::contracts::observe::{Observation, Observer};
use kernel::contracts::{Clock, Spawn};
use kernel::limits::Limits;
use std::sync::Arc;

const VERSION: &str = env!("CARGO_PKG_VERSION");

pub struct Parts {
    pub clock: Arc<dyn Clock>,
    pub spawn: Arc<dyn Spawn>,
    pub limits: Arc<Limits>,
}

/// The observer of traces.
pub(crate) struct Tracer {
    sampler: Sampler,
    exporters: Vec<Exporter>,
    content: bool,
    /// Whether traces are given the name that Langfuse shows.
    named: bool,
    clock: Arc<dyn Clock>,
}

impl Tracer {
    pub(crate) fn start(config: &Config, parts: &Parts) -> Self {
        let Parts { clock, spawn, limits } = parts;
        let begin = |to: &Destination| {
            let (exporter, task) = Exporter::new(SpanSender {
                name: to.name,
                wire: Box::new(Http::new(to, clock.clone())),
                resource: resource(config),
                scope: Scope { name: SCOPE.to_owned(), version: VERSION.to_owned() },
                batch: config.batch,
                clock: clock.clone(),
            });
            spawn.task("spans", task);
            exporter
        };
        Self {
            sampler: Sampler::new(config.sampling, limits.traces_per_second_max),
            exporters: config.destinations.iter().map(begin).collect(),
            content: config.content,
            named: config.destinations.iter().any(|to| to.name == LANGFUSE_PLACE),
            clock: clock.clone(),
        }
    }

    /// Span counts of each exporter.
    pub(crate) fn counts(&self) -> Vec<(&'static str, Arc<Counts>)> {
        let of = |exporter: &Exporter| (exporter.name, exporter.counts.clone());
        self.exporters.iter().map(of).collect()
    }

    /// Sends what waits, at most so long.
    pub(crate) async fn stop(&self, limit_ms: u64) {
        join_all(self.exporters.iter().map(|exporter| exporter.stop(limit_ms))).await;
    }
}

impl Observer for Tracer {
    fn records_traces(&self) -> bool {
        true
    }

    fn samples(&self, trace: u128, caller: Option<bool>) -> Option<bool> {
        Some(self.sampler.samples(trace, caller, self.clock.now()))
    }

    fn wants_content(&self) -> bool {
        self.content
    }

    fn saw(&self, seen: &Observation) {
        let Some(mut span) = span(seen) else { return };
        if self.named && is_first(seen) {
            let name = text(key::LANGFUSE_NAME, span.name.as_str());
            span.attributes.push(name);
        }
        let span = Arc::new(span);
        for exporter in &self.exporters {
            exporter.offer(span.clone());
        }
    }
}

/// Resource attributes of this process; configured ones take precedence.
fn resource(config: &Config) -> Resource {
    let ours = [
        (key::SERVICE_VERSION, VERSION),
        (key::SDK_NAME, SCOPE),
        (key::SDK_LANGUAGE, "rust"),
        (key::SDK_VERSION, VERSION),
    ];
    let given = &config.resource;
    let is_given = |name: &str| given.iter().any(|(known, _)| known == name);
    let mut attributes: Vec<KeyValue> =
        given.iter().map(|(name, value)| text(name, value.as_str())).collect();
    let more = ours.into_iter().filter(|(name, _)| !is_given(name));
    attributes.extend(more.map(|(name, value)| text(name, value)));
    Resource { attributes }
}
