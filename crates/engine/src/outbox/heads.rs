//! How far the audit goes, for sinks: who has a head outside of the server can find out later that
//! the end of a chain was cut off, or that an older copy took its place.

use super::attempt;
use crate::handles::Feed;
use crate::observe::sinks::Outbox;
use crate::shared::Shared;
use kernel::contracts::StoreError;
use kernel::contracts::cloud::CloudEvent;
use kernel::contracts::identity::audit::ChainState;
use kernel::identity::audit::ChainName;
use kernel::values::ids::{Millis, RealmId, SessionId};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

/// Type of the event.
const KIND: &str = "waypost.audit.head.v1";

/// Which heads go to a sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadRules {
    pub chains: Vec<ChainName>,
    /// How often the task checks whether a chain has grown.
    pub every_ms: u64,
}

impl Feed<'_> {
    /// Sends the heads of chains to a sink of a realm that events are sent to, whenever they moved,
    /// until the engine stops. One that is not taken is not tried again by itself: the next one
    /// says more. Without an audit there is nothing to send.
    pub fn keep_sending_heads(self, realm: &RealmId, sink: &str, rules: HeadRules) {
        let Some(outbox) = self.shared.outboxes.get(realm, sink) else { return };
        if self.shared.gate.trail.is_none() || !outbox.rules.takes(KIND) {
            return;
        }
        let task = keep_sending(Arc::downgrade(self.shared), outbox, rules);
        self.shared.spawn.task("audit heads", Box::pin(task));
    }
}

async fn keep_sending(shared: Weak<Shared>, outbox: Arc<Outbox>, rules: HeadRules) {
    let mut sent: BTreeMap<ChainName, u64> = BTreeMap::new();
    loop {
        let Some(clock) = shared.upgrade().map(|shared| shared.clock.clone()) else { return };
        clock.sleep_ms(rules.every_ms).await;
        let Some(there) = shared.upgrade() else { return };
        if *there.outboxes.stopping().borrow() || there.closed.has(&outbox.realm) {
            return;
        }
        match send(&there, &outbox, &rules.chains, &mut sent).await {
            Ok(()) => {}
            Err(StoreError::Closed) => return,
            Err(error) => tracing::warn!(%error, "the heads of the audit cannot be read"),
        }
    }
}

/// Sends the heads that moved since they were taken last.
async fn send(
    shared: &Shared,
    outbox: &Outbox,
    chains: &[ChainName],
    sent: &mut BTreeMap<ChainName, u64>,
) -> Result<(), StoreError> {
    let Some(trail) = &shared.gate.trail else { return Ok(()) };
    if outbox.progress().gone {
        return Ok(());
    }
    for state in trail.audit.chains().await? {
        let has_moved = sent.get(&state.chain) != Some(&state.head.seq);
        if !chains.contains(&state.chain) || !has_moved {
            continue;
        }
        let event = head_event(&outbox.realm, &state, shared.clock.now());
        match attempt::deliver(shared, outbox, std::slice::from_ref(&event)).await {
            Ok(_) => {
                sent.insert(state.chain, state.head.seq);
            }
            Err(error) => {
                let sink = &outbox.name;
                let chain = &state.chain;
                tracing::debug!(sink, %chain, %error, "a sink does not take a head of the audit");
            }
        }
    }
    Ok(())
}

/// A head as it goes out. No session has it: what stands in the place of one is made of the chain.
fn head_event(realm: &RealmId, state: &ChainState, now: Millis) -> CloudEvent {
    let ChainState { chain, head, .. } = state;
    CloudEvent {
        id: format!("audit.{chain}.{}", head.seq),
        kind: KIND.to_owned(),
        source: format!("waypost/{realm}"),
        subject: chain.to_string(),
        at: now,
        realm: realm.clone(),
        session: SessionId::of(&[b"audit".as_slice(), chain.as_str().as_bytes()]),
        seq: head.seq,
        cursor: 0,
        data: json!({"chain": chain, "head": head.to_string()}),
    }
}
