//! The sinks of a server: opened before anything is served, and given what happens from when the
//! engine began to recover.

use crate::secrets::vault::System;
use edge::request::server_state::SinkFacts;
use engine::refusal::Refusal;
use engine::{Engine, HeadRules, SinkRules, SinkState};
use kernel::contracts::sink::EventSink;
use kernel::definition::plan::mistake::Mistake;
use kernel::identity::audit::ChainName;
use kernel::values::ids::RealmId;
use project::event_sinks::ResolvedSink;
use project::realm::default_realm;
use sinks::config::SinkKind;
use std::sync::Arc;

/// How often heads of the audit go out, at most.
const HEADS_EVERY_MS: u64 = 60 * 1_000;

/// The sinks of a project, before they are opened.
#[derive(Debug)]
pub(crate) struct ConfiguredSinks {
    active: Vec<ResolvedSink>,
    /// Those that nothing is sent to for now.
    resting: Vec<ResolvedSink>,
}

impl ConfiguredSinks {
    pub(crate) fn all(sendings: Vec<ResolvedSink>) -> Self {
        Self { active: sendings, resting: Vec::new() }
    }

    /// All but those that write to standard output, which is an MCP client's. The events that they
    /// would have got wait for a server that has an output of its own.
    pub(crate) fn on_a_pipe(sendings: Vec<ResolvedSink>) -> Self {
        let is_stdout = |sending: &ResolvedSink| matches!(sending.config.kind, SinkKind::Stdout);
        let (resting, active) = sendings.into_iter().partition(is_stdout);
        Self { active, resting }
    }

    /// What is to say of those that rest.
    pub(crate) fn warnings(&self) -> Vec<Mistake> {
        let warning = |sending: &ResolvedSink| {
            let name = &sending.config.name;
            let what =
                format!("the sink `{name}` rests: standard output belongs to the MCP client here");
            sending.place.mistake(Mistake::warning(what).hint("`waypost up` sends to it"))
        };
        self.resting.iter().map(warning).collect()
    }
}

/// Sinks that are open.
pub(crate) struct Outlets {
    all: Vec<(ResolvedSink, Arc<dyn EventSink>)>,
    /// Those that nothing is sent to for now.
    resting: Vec<ResolvedSink>,
}

impl Outlets {
    /// Opens all of them, or says what is wrong, each where it is written.
    pub(crate) fn open(wanted: ConfiguredSinks, system: System) -> Result<Self, Vec<Mistake>> {
        let resting = wanted.resting;
        let parts = sinks::Parts { clock: system.clock, spawn: system.spawn };
        let mut all = Vec::new();
        let mut mistakes = Vec::new();
        for sending in wanted.active {
            match sinks::open(&sending.config, &parts) {
                Ok(sink) => all.push((sending, sink)),
                Err(found) => {
                    let placed = |mistake: Mistake| match mistake.file.is_some() {
                        true => mistake,
                        false => sending.place.mistake(mistake),
                    };
                    mistakes.extend(found.into_iter().map(placed));
                }
            }
        }
        if mistakes.is_empty() { Ok(Self { all, resting }) } else { Err(mistakes) }
    }

    /// What there is to say of each.
    pub(crate) fn facts(&self) -> Vec<SinkFacts> {
        let facts = |(sending, _): &(ResolvedSink, Arc<dyn EventSink>)| SinkFacts {
            name: sending.config.name.clone(),
            kind: sending.word(),
            target: sending.target.clone(),
            types: sending.types.clone(),
        };
        self.all.iter().map(facts).collect()
    }

    /// Lets the engine send a realm's events to those that get them.
    pub(crate) async fn begin(&self, engine: &Engine, realm: &RealmId) -> Result<(), Refusal> {
        for sending in self.resting.iter().filter(|sending| sending.is_for(realm)) {
            engine.feed().rest_sink(realm, &sending.config.name);
        }
        let ours = self.all.iter().filter(|(sending, _)| sending.is_for(realm));
        let ours: Vec<&(ResolvedSink, Arc<dyn EventSink>)> = ours.collect();
        for (sending, sink) in ours {
            let ResolvedSink { config, types, from_start, .. } = sending;
            let rules = SinkRules { types: types.clone(), from_start: *from_start };
            engine.feed().keep_sending(realm, &config.name, sink.clone(), rules).await?;
            engine.feed().keep_sending_heads(realm, &config.name, heads(realm));
        }
        Ok(())
    }
}

/// The heads that go to a sink of the settings: that of the realm, and that of the server with
/// those of the realm that every server has.
fn heads(realm: &RealmId) -> HeadRules {
    let server = (*realm == default_realm()).then(ChainName::server);
    let chains = std::iter::once(ChainName::of(realm)).chain(server).collect();
    HeadRules { chains, every_ms: HEADS_EVERY_MS }
}

/// What is to say of the sinks that have a place and are not configured: an operator decides
/// whether they come back.
pub(crate) async fn left_behind(engine: &Engine, realm: &RealmId) -> Result<Vec<Mistake>, Refusal> {
    let warning = |SinkState { name, lag, .. }: SinkState| {
        let what = format!(
            "the sink `{name}` is not configured any more and is {lag} rows of the feed behind: \
             retention keeps what it has not passed"
        );
        let of = match *realm == default_realm() {
            true => String::new(),
            false => format!(" --realm {realm}"),
        };
        Mistake::warning(what).hint(format!(
            "`waypost{of} events forget {name}` lets go of it; if it is configured again, it \
             continues where it was"
        ))
    };
    Ok(engine.feed().unconfigured_sinks(realm).await?.into_iter().map(warning).collect())
}
