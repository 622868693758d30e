//! Keeps the catalog as an upstream is: its tools, which news of its other lists clients get, and
//! the pages that were opened for its calls.

use super::GatewayParts;
use engine::{Engine, ListChanges, ToolSource};
use futures::future::{Either, select};
use kernel::contracts::{Spawn, Tool};
use kernel::definition::plan::mistake::Mistake;
use kernel::values::datum::value_weight;
use kernel::values::fault::Fault;
use kernel::values::ids::RealmId;
use policy::CedarPolicy;
use project::policies::POLICIES_FOLDER;
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, oneshot, watch};
use upstreams::{ListVersions, Upstream};

/// An upstream to follow.
pub(super) struct FollowedUpstream {
    pub(super) upstream: Arc<Upstream>,
    /// The realm that has it for itself, if one does.
    pub(super) realm: Option<RealmId>,
}

impl FollowedUpstream {
    /// Who brings its tools, as a person would say it; no two say the same.
    fn source(&self) -> String {
        let name = self.upstream.name();
        match &self.realm {
            Some(realm) => format!("stored provider `{name}` of realm `{realm}`"),
            None => format!("upstream `{name}`"),
        }
    }

    /// These tools, as its own.
    fn tools(&self, source: &str, tools: Vec<Arc<dyn Tool>>) -> ToolSource {
        let tools = ToolSource::new(source, tools).of_upstream(self.upstream.name());
        match &self.realm {
            Some(realm) => tools.for_realm(realm),
            None => tools,
        }
    }
}

/// Keeps the catalog as the upstream is, until either ends. Wakes those who wait for its tools to
/// be there for the first time, and for that end.
pub(super) fn follow(
    parts: &GatewayParts,
    followed: FollowedUpstream,
    mut stop: watch::Receiver<bool>,
) -> (oneshot::Receiver<()>, oneshot::Receiver<()>) {
    let (here, listed) = oneshot::channel::<()>();
    let (left, gone) = oneshot::channel();
    let source = followed.source();
    let upstream = followed.upstream.clone();
    tell_opened(parts, source.clone(), upstream.opened_pages(), stop.clone());
    let engine = parts.engine.clone();
    let spawn = parts.remote.spawn.clone();
    let policies = parts.policies.clone();
    let following = async move {
        let mut changes = upstream.changes();
        let mut reported: Vec<Mistake> = Vec::new();
        let mut here = Some(here);
        let mut seen: Option<ListVersions> = None;
        loop {
            // Seen before it is read: a change in between wakes us again.
            let version = *changes.borrow_and_update();
            if version > 0 {
                let now = upstream.changed();
                let before = seen.replace(now);
                if before.is_none_or(|before| before.tools != now.tools) {
                    let listed = upstream.tools();
                    let unfit = unfit(policies.as_deref(), &listed);
                    upstream.note_unfit(unfit.first().map(misfit));
                    let tools = followed.tools(&source, listed);
                    let mut mistakes = taken_in(&engine, spawn.as_ref(), tools).await;
                    mistakes.extend(unfit);
                    for mistake in mistakes.iter().filter(|mistake| !reported.contains(mistake)) {
                        tracing::warn!(upstream = upstream.name(), "{mistake}");
                    }
                    reported = mistakes;
                    upstream.count_tools(engine.tools().count_of(&source));
                    // Those who wait are woken when it goes.
                    drop(here.take());
                }
                let lists = since(now, before.unwrap_or_default());
                let realm = followed.realm.as_ref();
                engine.catalog().tell_lists(realm, upstream.name(), lists);
            }
            match select(pin!(changes.changed()), pin!(stop.changed())).await {
                Either::Left((Ok(()), _)) => {}
                Either::Left((Err(_), _)) | Either::Right(_) => break,
            }
        }
        engine.tools().replace(followed.tools(&source, Vec::new()));
        // No one waits for the end of what is configured.
        let _ = left.send(());
    };
    parts.remote.spawn.task("upstream tools", Box::pin(following));
    (listed, gone)
}

/// The mistakes of policies that do not fit these tools: their calls are denied.
fn unfit(policies: Option<&CedarPolicy>, tools: &[Arc<dyn Tool>]) -> Vec<Mistake> {
    let Some(policies) = policies else { return Vec::new() };
    policies.policies().misfits(tools.iter().map(|tool| &**tool.spec()))
}

/// How an upstream shows such a mistake.
fn misfit(mistake: &Mistake) -> Fault {
    let place = mistake.file.as_deref().unwrap_or(POLICIES_FOLDER);
    let fault =
        Fault::new("PolicyMisfit", format!("{place}:{}: {}", mistake.line, mistake.message));
    match &mistake.hint {
        Some(hint) => fault.hint(hint.as_str()),
        None => fault,
    }
}

/// The changes of the other lists of an upstream; the catalog notifies clients of its tools.
fn since(now: ListVersions, before: ListVersions) -> ListChanges {
    ListChanges {
        tools: 0,
        prompts: now.prompts.saturating_sub(before.prompts),
        resources: now.resources.saturating_sub(before.resources),
    }
}

/// How many bytes of schemas are compiled at once. Most upstreams have fewer, and their tools can
/// be called as soon as they are shown as ready.
const AT_ONCE_BYTES: u64 = 256 * 1024;

fn is_quick(tools: &[Arc<dyn Tool>]) -> bool {
    let schemas = tools.iter().flat_map(|tool| {
        let spec = tool.spec();
        [Some(&spec.input_schema), spec.output_schema.as_ref()].into_iter().flatten()
    });
    schemas.map(|schema| value_weight(schema)).sum::<u64>() <= AT_ONCE_BYTES
}

/// Puts the tools of a source into the catalog, and gives back what is wrong with those that are
/// left out. Many schemas take their time to be compiled: not on a worker that serves others.
async fn taken_in(engine: &Engine, spawn: &dyn Spawn, tools: ToolSource) -> Vec<Mistake> {
    if is_quick(&tools.tools) {
        return engine.tools().replace(tools);
    }
    let (done, mistakes) = oneshot::channel();
    let engine = engine.clone();
    let taking = async move {
        // The receiver may be gone.
        let _ = done.send(engine.tools().replace(tools));
    };
    spawn.thread("upstream schemas", Box::pin(taking));
    mistakes.await.unwrap_or_default()
}

/// Tells the engine which pages of an upstream were opened, until either ends.
fn tell_opened(
    parts: &GatewayParts,
    source: String,
    mut opened: broadcast::Receiver<String>,
    mut stop: watch::Receiver<bool>,
) {
    let engine = parts.engine.clone();
    let telling = async move {
        while let Either::Left((heard, _)) = select(pin!(opened.recv()), pin!(stop.changed())).await
        {
            match heard {
                Ok(page) => engine.tools().page_opened(&source, &page),
                // Who waits for what was missed looks in their own time.
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return,
            }
        }
    };
    parts.remote.spawn.task("opened pages", Box::pin(telling));
}
