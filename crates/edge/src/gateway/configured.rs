//! What is configured, while it runs. It changes with the settings of a project that is watched:
//! what is written just as before continues, with its connections and its logins.

use super::follow::{FollowedUpstream, follow};
use super::{Gateway, GatewayParts, Member, RunningUpstream, StartingUpstream};
use kernel::definition::plan::mistake::Mistake;
use project::upstream_entries::Entry;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use tokio::sync::watch;
use upstreams::{Remote, UpstreamConfig};

/// A configured upstream; one that is left alone does not run.
pub(super) struct ConfiguredUpstream {
    pub(super) entry: Entry,
    pub(super) member: Member,
    pub(super) running: Option<RunningUpstream>,
}

/// The outcome of a change of the settings.
#[derive(Debug, Default)]
pub struct UpstreamChanges {
    /// The names of those that came, changed or went.
    pub changed: Vec<String>,
    /// What could not be taken.
    pub warnings: Vec<Mistake>,
}

impl ConfiguredUpstream {
    /// Begins to connect to it, where it has a config; with what can be waited for then.
    pub(super) fn start(
        parts: &GatewayParts,
        entry: &Entry,
        config: Option<UpstreamConfig>,
    ) -> (Self, Option<StartingUpstream>) {
        let remote =
            config.map(|config| Arc::new(Remote::start(vec![config], parts.remote.clone())));
        let upstream = remote.as_ref().and_then(|remote| remote.upstreams().first().cloned());
        let member = Member { facts: entry.facts(), upstream: upstream.clone() };
        let mut starting = None;
        let running = remote.zip(upstream).map(|(remote, upstream)| {
            let stop = watch::Sender::new(false);
            let followed = FollowedUpstream { upstream: upstream.clone(), realm: None };
            let (listed, gone) = follow(parts, followed, stop.subscribe());
            starting = Some(StartingUpstream { upstream, listed });
            RunningUpstream { remote, stop, gone }
        });
        (Self { entry: entry.clone(), member, running }, starting)
    }
}

impl Gateway {
    /// All that is configured.
    pub(super) fn all_configured(&self) -> MutexGuard<'_, Vec<ConfiguredUpstream>> {
        self.configured.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connections of all that is configured.
    pub(super) fn configured_remotes(&self) -> Vec<Arc<Remote>> {
        let known = self.all_configured();
        let running = known.iter().filter_map(|known| known.running.as_ref());
        running.map(|running| running.remote.clone()).collect()
    }

    /// Runs what is configured now, with these configs of those that are not left alone, and stops
    /// what is not configured any more. The tools of those that went are gone on return.
    pub async fn take_configured(
        &self,
        entries: &[Entry],
        configs: Vec<UpstreamConfig>,
    ) -> UpstreamChanges {
        let _changing = self.changing.lock().await;
        let mut taken = UpstreamChanges::default();
        let leads_back = |config: &UpstreamConfig| self.parts.ourselves.are(config);
        let (back, ahead): (Vec<_>, Vec<_>) = configs.into_iter().partition(leads_back);
        let mut configs: BTreeMap<String, UpstreamConfig> =
            ahead.into_iter().map(|config| (config.name.clone(), config)).collect();
        let is_back = |entry: &&Entry| back.iter().any(|config| config.name == entry.name);
        let entries: Vec<&Entry> = entries.iter().filter(|entry| !is_back(entry)).collect();
        let names: Vec<String> =
            self.all_configured().iter().map(|known| known.entry.name.clone()).collect();
        for name in names {
            if !entries.iter().any(|entry| entry.name == name) {
                self.leave(&name).await;
                taken.changed.push(name);
            }
        }
        for entry in entries {
            let config = configs.remove(&entry.name);
            if self.runs_configured(entry, config.as_ref()) {
                continue;
            }
            if let Some(why) = self.untakeable(entry) {
                taken.warnings.push(why);
                continue;
            }
            self.leave(&entry.name).await;
            let (known, _) = ConfiguredUpstream::start(&self.parts, entry, config);
            self.all_configured().push(known);
            // Who stops everything may not have seen it.
            if self.ended.load(Ordering::SeqCst) {
                self.leave(&entry.name).await;
                break;
            }
            taken.changed.push(entry.name.clone());
        }
        taken
    }

    /// Whether it runs just so, or is left alone just so; then it is shown as the entry says.
    fn runs_configured(&self, entry: &Entry, config: Option<&UpstreamConfig>) -> bool {
        let mut all = self.all_configured();
        let Some(known) = all.iter_mut().find(|known| known.entry.name == entry.name) else {
            return false;
        };
        let running = known.member.upstream.as_ref().map(|upstream| upstream.config());
        let is_same = running == config && known.entry.keys.realms == entry.keys.realms;
        if is_same {
            known.member.facts = entry.facts();
            known.entry = entry.clone();
        }
        is_same
    }

    /// Why it cannot be taken while the server runs.
    fn untakeable(&self, entry: &Entry) -> Option<Mistake> {
        let name = &entry.name;
        let warning = |what: String, hint: &str| {
            let mistake = entry.place.mistake(Mistake::error(what).hint(hint));
            Some(super::left_out(mistake))
        };
        let before = {
            let all = self.all_configured();
            let known = all.iter().find(|known| known.entry.name == *name);
            known.and_then(|known| known.entry.keys.realms.clone())
        };
        if before != entry.keys.realms {
            let what = format!("the `realms` of upstream `{name}` are read at the start only");
            return warning(what, "restart to take it");
        }
        let stored = self.stored();
        if stored.values().any(|own| own.contains_key(name)) {
            let what = format!("upstream `{name}` is left out: a stored provider has its name");
            return warning(what, "give it another name, or remove the stored one");
        }
        let prefix = entry.prefix();
        let mut kept = stored.values().flat_map(BTreeMap::values);
        if !prefix.is_empty() && kept.any(|kept| kept.member.facts.prefix == prefix) {
            let what = format!("the tools of a stored provider begin with `{prefix}`, too");
            return warning(what, "give it another `prefix`");
        }
        None
    }

    /// Stops a configured upstream; its tools are gone on return. The caller holds `changing`.
    async fn leave(&self, name: &str) {
        let known = {
            let mut all = self.all_configured();
            let place = all.iter().position(|known| known.entry.name == name);
            place.map(|place| all.remove(place))
        };
        if let Some(running) = known.and_then(|known| known.running) {
            running.end().await;
        }
    }
}
