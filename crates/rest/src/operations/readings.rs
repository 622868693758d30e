//! What `/metrics` says beside the durations: counters and states at one moment. Those of the whole
//! server tell of all realms, so that they are only for who may read in all of them.

use edge::gateway::Member;
use edge::request::server_state::ServerState;
use engine::{BreakerState, Counts, RefusalCode, SinkState};
use kernel::contracts::StoreFigures;
use kernel::contracts::figures::{COMMIT_MS, OpenAsks, OpenSessions};
use kernel::tool::breaker::BreakerScope;
use kernel::tool::call::Caller;
use kernel::values::ids::Millis;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;
use std::fmt;
use upstreams::UpstreamState;

/// All statuses of sessions that are not over, and that of those which cannot be read.
const OPEN_STATUSES: [&str; 5] = ["running", "waiting", "stuck", "paused", "parked"];
/// All kinds of asks.
const ASK_KINDS: [&str; 5] = ["clarify", "approve", "fill", "authorize", "fix"];

/// The counters at one moment.
#[derive(Debug)]
pub(crate) struct Reading {
    /// Whether counts over all realms are shown.
    is_whole: bool,
    counts: Counts,
    streams_open: u64,
    sinks: Vec<SinkState>,
    upstreams: Vec<UpstreamReading>,
    /// How many tools with a breaker of their own are refused.
    tools_refused: u64,
    /// Why no work can be taken.
    unwell: Option<RefusalCode>,
    /// What the store says of itself, where it does.
    store: Option<StoreFigures>,
    /// None where the store cannot be read.
    asks: Option<Vec<OpenAsks>>,
    /// The same.
    sessions: Option<Vec<OpenSessions>>,
    /// Answers by status.
    answers: Vec<(String, u64)>,
    /// What became of files that changed.
    reloads: [(&'static str, u64); 2],
    /// Whether what they say is not served.
    reload_refused: bool,
    /// Whether there can be webhooks.
    has_webhooks: bool,
    /// When the process began to serve, and now.
    started: Millis,
    now: Millis,
}

/// One upstream at that moment.
#[derive(Debug)]
struct UpstreamReading {
    name: String,
    up: bool,
    tools: u64,
    restarts: u64,
    /// Whether calls of it are refused after failures.
    refused: bool,
    /// How often its card changed, if it is an agent.
    card_changes: Option<u64>,
}

impl Reading {
    /// How it is now. A store that cannot be read has metrics too.
    pub(crate) async fn of(server: &ServerState, caller: &Caller, is_whole: bool) -> Self {
        let engine = &server.engine;
        let refused = refused(&engine.tools().breakers(&caller.realm));
        let open = server.limits().streams_max.saturating_sub(server.streams.available_permits());
        Self {
            is_whole,
            counts: engine.counts(),
            streams_open: open as u64,
            sinks: engine.feed().sinks(caller).await.unwrap_or_default(),
            upstreams: upstreams(server, caller, &refused),
            tools_refused: refused.iter().filter(is_tool).count() as u64,
            unwell: engine.healthy().err().map(|refusal| refusal.code),
            store: engine.admin().store_figures(),
            asks: engine.asks().open(caller).await.ok(),
            sessions: engine.sessions().open(caller).await.ok(),
            answers: server.answers.given(),
            reloads: server.reloads.counts(),
            reload_refused: !server.reloads.unserved().is_empty(),
            has_webhooks: server.has_webhooks,
            started: server.started,
            now: engine.clock().now(),
        }
    }

    fn counters(&self) -> [(&'static str, &'static str, u64); 17] {
        let counts = &self.counts;
        [
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
            ("deliveries_retried", "Deliveries that are tried again", counts.deliveries_retried),
            ("sessions_removed", "Sessions that retention removed", counts.sessions_removed),
            ("runs_removed", "Old runs that retention removed", counts.runs_removed),
            ("blobs_removed", "Blobs that retention removed", counts.blobs_removed),
        ]
    }

    fn gauges(&self) -> [(&'static str, &'static str, u64); 9] {
        let counts = &self.counts;
        let disk_full = u64::from(self.unwell == Some(RefusalCode::DiskFull));
        let refused = u64::from(self.reload_refused);
        [
            ("sessions_active", "Sessions that are being driven", counts.sessions_active),
            ("calls_active", "Tool calls that are under way", counts.calls_active),
            ("turns_active", "Turns of models that are under way", counts.turns_active),
            ("cases_waiting", "Requests that wait until their case is free", counts.cases_waiting),
            ("streams_open", "Event streams that are open", self.streams_open),
            ("ready", "Whether work can be taken", u64::from(self.unwell.is_none())),
            ("disk_full", "Whether the last write found no room", disk_full),
            ("reload_refused", "Whether what the files say is wrong and not served", refused),
            ("tool_breakers_open", "Tools whose calls are refused", self.tools_refused),
        ]
    }

    /// What is counted over all realms.
    fn encode_server(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        for (name, help, value) in self.counters() {
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            ConstCounter::new(value).encode(metric)?;
        }
        for (name, help, value) in self.gauges() {
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(value).encode(metric)?;
        }
        let name = "start_time";
        let help = "When the process began to serve";
        let unit = Unit::Seconds;
        let metric = encoder.encode_descriptor(name, help, Some(&unit), MetricType::Gauge)?;
        ConstGauge::new(self.started.0 as f64 / 1_000.0).encode(metric)?;
        let ended = self.counts.runs_ended.iter().map(|(status, count)| (*status, *count));
        counters("status", "runs_ended", "Runs that ended").encode(encoder, ended)?;
        let answers = self.answers.iter().map(|(status, count)| (status.as_str(), *count));
        counters("code", "http_responses", "Answers of all endpoints").encode(encoder, answers)?;
        let metric = counters("outcome", "reloads", "Files that changed and were read again");
        metric.encode(encoder, self.reloads)?;
        if self.has_webhooks {
            let Counts { notices_taken, notices_failed, webhooks_ended, webhooks_live, .. } =
                self.counts;
            let outcomes =
                [("taken", notices_taken), ("failed", notices_failed), ("ended", webhooks_ended)];
            let metric = counters("outcome", "pushes", "Updates that were posted to webhooks");
            metric.encode(encoder, outcomes)?;
            let name = "webhooks_live";
            let help = "Webhooks that there may be more for";
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(webhooks_live).encode(metric)?;
        }
        self.encode_store(encoder)
    }

    fn encode_store(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let Some(store) = &self.store else { return Ok(()) };
        let StoreFigures { queued, commits, bytes, wal_bytes } = store;
        let help = "Writes that wait for the store";
        let metric = encoder.encode_descriptor("store_queued", help, None, MetricType::Gauge)?;
        ConstGauge::new(*queued as u64).encode(metric)?;
        let help = "What the database has on the disk, without blobs";
        let unit = Unit::Bytes;
        let metric = encoder.encode_descriptor("store", help, Some(&unit), MetricType::Gauge)?;
        ConstGauge::new(*bytes).encode(metric)?;
        let help = "What of that is the write-ahead log";
        let metric =
            encoder.encode_descriptor("store_wal", help, Some(&unit), MetricType::Gauge)?;
        ConstGauge::new(*wal_bytes).encode(metric)?;
        let name = "commit_duration";
        let help = "How long commits took";
        let unit = Unit::Seconds;
        let mut metric =
            encoder.encode_descriptor(name, help, Some(&unit), MetricType::Histogram)?;
        let bounds = COMMIT_MS.iter().map(|ms| *ms as f64 / 1_000.0).chain([f64::INFINITY]);
        let buckets: Vec<(f64, u64)> = bounds.zip(commits.counts).collect();
        let sum = commits.total_ms as f64 / 1_000.0;
        let count = commits.counts.iter().sum();
        metric.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    }

    fn encode_asks(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let Some(asks) = &self.asks else { return Ok(()) };
        // A kind of which there are none is listed too: a dashboard must see a zero.
        let of = |kind: &str| asks.iter().find(|open| open.kind == kind);
        let open = ASK_KINDS.map(|kind| (kind, of(kind).map_or(0, |open| open.count)));
        gauges("kind", "asks_open", "Open asks").encode(encoder, open)?;
        let name = "asks_oldest";
        let help = "How long the oldest one waits";
        let unit = Unit::Seconds;
        let mut family = encoder.encode_descriptor(name, help, Some(&unit), MetricType::Gauge)?;
        for kind in ASK_KINDS {
            let waits_ms = of(kind).map_or(0, |open| self.now.0.saturating_sub(open.oldest.0));
            let labels = [("kind", kind)];
            let seconds = waits_ms.max(0) as f64 / 1_000.0;
            ConstGauge::new(seconds).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn encode_sessions(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let Some(sessions) = &self.sessions else { return Ok(()) };
        let of = |status: &str| sessions.iter().find(|open| open.status == status);
        let open = OPEN_STATUSES.map(|status| (status, of(status).map_or(0, |open| open.count)));
        gauges("status", "sessions_open", "Sessions that are not over").encode(encoder, open)
    }

    fn encode_sinks(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let of = |value: fn(&SinkState) -> u64| {
            self.sinks.iter().map(move |sink| (sink.name.as_str(), value(sink)))
        };
        let metric = counters("sink", "events_delivered", "Events that a sink took");
        metric.encode(encoder, of(|sink| sink.delivered))?;
        let metric = counters("sink", "events_failed", "Events that were given up, by sink");
        metric.encode(encoder, of(|sink| sink.failed))?;
        let metric = gauges("sink", "events_retrying", "Events that are tried again, by sink");
        metric.encode(encoder, of(|sink| sink.retrying))?;
        let metric =
            gauges("sink", "sink_gone", "Whether a sink rests because its receiver is gone");
        metric.encode(encoder, of(|sink| u64::from(sink.gone)))?;
        let metric =
            gauges("sink", "sink_unconfigured", "Whether a sink with a place is not configured");
        metric.encode(encoder, of(|sink| u64::from(!sink.configured)))?;
        let metric = gauges("sink", "event_lag", "Rows of the feed that are still ahead of a sink");
        metric.encode(encoder, of(|sink| sink.lag))
    }

    fn encode_upstreams(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let of = |value: fn(&UpstreamReading) -> u64| {
            self.upstreams.iter().map(move |upstream| (upstream.name.as_str(), value(upstream)))
        };
        let metric =
            gauges("upstream", "upstream_up", "Whether an upstream is connected and listed");
        metric.encode(encoder, of(|upstream| u64::from(upstream.up)))?;
        let metric = gauges("upstream", "upstream_tools", "How many tools an upstream has");
        metric.encode(encoder, of(|upstream| upstream.tools))?;
        let metric =
            counters("upstream", "upstream_restarts", "How often an upstream was reconnected");
        metric.encode(encoder, of(|upstream| upstream.restarts))?;
        let metric =
            gauges("upstream", "upstream_breaker_open", "Whether calls of an upstream are refused");
        metric.encode(encoder, of(|upstream| u64::from(upstream.refused)))?;
        let agents = self.upstreams.iter();
        let agents = agents.filter_map(|agent| Some((agent.name.as_str(), agent.card_changes?)));
        let metric =
            counters("upstream", "upstream_card_changes", "How often the card of an agent changed");
        metric.encode(encoder, agents)
    }
}

impl Collector for Reading {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        if self.is_whole {
            self.encode_server(&mut encoder)?;
        }
        self.encode_asks(&mut encoder)?;
        self.encode_sessions(&mut encoder)?;
        self.encode_sinks(&mut encoder)?;
        self.encode_upstreams(&mut encoder)
    }
}

/// What calls are refused of after failures.
fn refused(failing: &[BreakerState]) -> Vec<BreakerScope> {
    let refused = failing.iter().filter(|state| state.open_until.is_some());
    refused.map(|state| state.guarded.clone()).collect()
}

fn is_tool(guarded: &&BreakerScope) -> bool {
    matches!(guarded, BreakerScope::Tool(_))
}

/// All upstreams that this caller may read and that are not left alone.
fn upstreams(
    server: &ServerState,
    caller: &Caller,
    refused: &[BreakerScope],
) -> Vec<UpstreamReading> {
    let read = |member: Member| {
        let status = member.upstream?.status();
        let guarded = BreakerScope::Upstream(member.facts.name.as_str().into());
        Some(UpstreamReading {
            refused: refused.contains(&guarded),
            name: member.facts.name,
            up: status.state == UpstreamState::Ready,
            tools: status.tools as u64,
            restarts: status.restarts,
            card_changes: status.agent.map(|agent| agent.changes),
        })
    };
    server.readable_upstreams(caller).into_iter().filter_map(read).collect()
}

/// Metrics of one name, and the label that tells them apart.
struct Family {
    kind: MetricType,
    label: &'static str,
    name: &'static str,
    help: &'static str,
}

fn counters(label: &'static str, name: &'static str, help: &'static str) -> Family {
    Family { kind: MetricType::Counter, label, name, help }
}

fn gauges(label: &'static str, name: &'static str, help: &'static str) -> Family {
    Family { kind: MetricType::Gauge, label, name, help }
}

impl Family {
    fn encode<'a>(
        self,
        encoder: &mut DescriptorEncoder<'_>,
        values: impl IntoIterator<Item = (&'a str, u64)>,
    ) -> fmt::Result {
        let mut family = encoder.encode_descriptor(self.name, self.help, None, self.kind)?;
        for (value, count) in values {
            let labels = [(self.label, value)];
            let metric = family.encode_family(&labels)?;
            match self.kind {
                MetricType::Counter => ConstCounter::new(count).encode(metric)?,
                _ => ConstGauge::new(count).encode(metric)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::contracts::CommitTimes;
    use prometheus_client::encoding::text;
    use prometheus_client::registry::Registry;
    use std::collections::BTreeMap;

    fn reading() -> Reading {
        let mut commits = CommitTimes::default();
        [1, 3, 7_000].into_iter().for_each(|took_ms| commits.add(took_ms));
        let hook = SinkState {
            name: "hook".to_owned(),
            kind: "webhook".to_owned(),
            position: 1,
            lag: 2,
            delivered: 5,
            failed: 1,
            retrying: 4,
            gone: true,
            configured: true,
            last_error: None,
        };
        Reading {
            is_whole: true,
            counts: Counts {
                runs_started: 3,
                runs_ended: BTreeMap::from([("completed", 2), ("failed", 1)]),
                cases_waiting: 6,
                notices_failed: 2,
                webhooks_live: 5,
                ..Counts::default()
            },
            streams_open: 1,
            sinks: vec![hook],
            upstreams: vec![UpstreamReading {
                name: "crm".to_owned(),
                up: false,
                tools: 9,
                restarts: 2,
                card_changes: Some(1),
                refused: true,
            }],
            tools_refused: 3,
            unwell: Some(RefusalCode::DiskFull),
            store: Some(StoreFigures { queued: 7, commits, bytes: 4_096, wal_bytes: 1_024 }),
            asks: Some(vec![OpenAsks {
                kind: "clarify".to_owned(),
                count: 2,
                oldest: Millis(1_000),
            }]),
            sessions: Some(vec![
                OpenSessions { status: "parked".to_owned(), count: 2 },
                OpenSessions { status: "stuck".to_owned(), count: 3 },
            ]),
            answers: vec![("429".to_owned(), 8)],
            reloads: [("taken", 1), ("refused", 2)],
            reload_refused: true,
            has_webhooks: true,
            started: Millis(500),
            now: Millis(6_500),
        }
    }

    #[test]
    fn readings_become_open_metrics() {
        let mut registry = Registry::with_prefix("waypost");
        registry.register_collector(Box::new(reading()));
        let mut body = String::new();
        text::encode(&mut body, &registry).unwrap();
        for line in [
            "waypost_runs_started_total 3",
            "waypost_runs_ended_total{status=\"completed\"} 2",
            "waypost_streams_open 1",
            "# TYPE waypost_sessions_active gauge",
            "waypost_cases_waiting 6",
            "waypost_ready 0",
            "waypost_disk_full 1",
            "waypost_store_queued 7",
            "waypost_store_bytes 4096",
            "waypost_store_wal_bytes 1024",
            "waypost_commit_duration_seconds_count 3",
            "waypost_commit_duration_seconds_sum 7.004",
            "waypost_commit_duration_seconds_bucket{le=\"0.001\"} 1",
            "waypost_commit_duration_seconds_bucket{le=\"0.005\"} 2",
            "waypost_commit_duration_seconds_bucket{le=\"+Inf\"} 3",
            "waypost_asks_open{kind=\"clarify\"} 2",
            "waypost_asks_open{kind=\"fix\"} 0",
            "waypost_asks_oldest_seconds{kind=\"clarify\"} 5.5",
            "waypost_asks_oldest_seconds{kind=\"fix\"} 0.0",
            "waypost_sessions_open{status=\"stuck\"} 3",
            "waypost_sessions_open{status=\"paused\"} 0",
            "waypost_sessions_open{status=\"parked\"} 2",
            "waypost_events_delivered_total{sink=\"hook\"} 5",
            "waypost_events_failed_total{sink=\"hook\"} 1",
            "waypost_events_retrying{sink=\"hook\"} 4",
            "waypost_sink_gone{sink=\"hook\"} 1",
            "waypost_sink_unconfigured{sink=\"hook\"} 0",
            "waypost_event_lag{sink=\"hook\"} 2",
            "waypost_upstream_up{upstream=\"crm\"} 0",
            "waypost_upstream_tools{upstream=\"crm\"} 9",
            "waypost_upstream_restarts_total{upstream=\"crm\"} 2",
            "waypost_upstream_breaker_open{upstream=\"crm\"} 1",
            "waypost_upstream_card_changes_total{upstream=\"crm\"} 1",
            "waypost_tool_breakers_open 3",
            "waypost_http_responses_total{code=\"429\"} 8",
            "waypost_reloads_total{outcome=\"refused\"} 2",
            "waypost_reload_refused 1",
            "waypost_pushes_total{outcome=\"failed\"} 2",
            "waypost_webhooks_live 5",
            "waypost_start_time_seconds 0.5",
            "# EOF",
        ] {
            assert!(body.lines().any(|metric| metric == line), "{line} is not in\n{body}");
        }
    }
}
