//! Keyed requests that are under way. A repeat waits until the first one is durable or refused and
//! then finds it in the store; the store refuses a key that is taken, so this only saves work.

use crate::refusal::{Refusal, RefusalCode, Result};
use crate::request::IdempotencyKey;
use crate::system::locks::lock;
use kernel::contracts::Store;
use kernel::journal::projection::{Append, OnceRow};
use kernel::tool::call::Caller;
use kernel::values::ids::{AskId, Millis, RealmId, RunId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

/// Between a subject and its actor. Neither has it once it is escaped.
const ACTOR: char = '\u{1f}';

/// The scope of a key: subject and actor, or the subject alone without an actor.
fn asked_by(caller: &Caller) -> Arc<str> {
    let Caller { subject, actor, .. } = caller;
    match actor {
        None if !subject.contains(ACTOR) => subject.clone(),
        actor => {
            let actor = actor.as_deref().unwrap_or_default();
            format!("{}{ACTOR}{}", subject.escape_default(), actor.escape_default()).into()
        }
    }
}

/// Whose key of which endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Name {
    realm: RealmId,
    /// The subject, with its actor.
    subject: Arc<str>,
    route: String,
    key: String,
}

/// The keys of requests that are neither durable nor refused.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    active: Mutex<HashMap<Name, watch::Receiver<()>>>,
}

/// A key that one request holds. Dropping it lets repeats continue.
#[derive(Debug)]
pub(crate) struct Claim {
    keys: Arc<Keys>,
    name: Name,
    once: IdempotencyKey,
    /// Whether it turns out at the commit that the key was taken before.
    is_unsure: bool,
    /// Closed with the claim: that is what repeats wait for.
    _held: watch::Sender<()>,
}

impl Claim {
    /// The row that is written in the commit of the request's effect.
    pub(crate) fn row(&self, run: RunId, ask: Option<AskId>, at: Millis) -> OnceRow {
        OnceRow {
            subject: self.name.subject.clone(),
            route: self.once.route.clone(),
            key: self.once.key.clone(),
            digest: self.once.digest.clone(),
            run: Some(run),
            ask,
            at,
        }
    }

    /// Whether what the request does may have been done before.
    pub(crate) fn is_unsure(&self) -> bool {
        self.is_unsure
    }

    /// Has an append write this row, unless the key was taken.
    pub(crate) fn write(&self, row: OnceRow, append: &mut Append) {
        append.once = Some(row);
        append.earlier = self.once.earlier.clone();
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        lock(&self.keys.active).remove(&self.name);
    }
}

/// When it turns out that a key was taken before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RepeatCheck {
    /// Before anything is done.
    First,
    /// When what was done is committed: the store refuses it then. For what can be done in vain.
    AtCommit,
}

/// Whether a request is the first of its key.
pub(crate) enum ClaimOutcome {
    /// It is, and holds the key, or is refused as it is committed; or it has none.
    First(Option<Claim>),
    /// An earlier one did this.
    Repeat(OnceRow),
}

impl Keys {
    /// Takes the key, or finds the outcome. Waits for a request that holds it.
    pub(crate) async fn turn(
        self: &Arc<Self>,
        store: &dyn Store,
        caller: &Caller,
        once: &IdempotencyKey,
        mut look: RepeatCheck,
    ) -> Result<ClaimOutcome> {
        let route = once.route.clone();
        let key = once.key.clone();
        let name = Name { realm: caller.realm.clone(), subject: asked_by(caller), route, key };
        let mut claim = loop {
            match self.take(&name, once) {
                Ok(claim) => break claim,
                Err(mut other) => {
                    look = RepeatCheck::First;
                    // Nothing is ever sent: this ends when the claim is dropped.
                    drop(other.changed().await);
                }
            }
        };
        let earlier = once.earlier.as_ref();
        if let Some(earlier) = earlier {
            let before = Name { route: earlier.route.clone(), ..name.clone() };
            self.wait_for(&before).await;
        }
        if look == RepeatCheck::AtCommit {
            claim.is_unsure = true;
            return Ok(ClaimOutcome::First(Some(claim)));
        }
        // The claim is held while the store is asked: no one gets in between.
        let Name { realm, subject, route, key } = &name;
        let routes: Vec<&str> =
            std::iter::once(route.as_str()).chain(earlier.map(|one| one.route.as_str())).collect();
        let found = store.once(realm, subject, &routes, key).await?;
        let is_forgotten =
            |row: &OnceRow| earlier.is_some_and(|one| row.route == one.route && row.at < one.since);
        match found.filter(|row| !is_forgotten(row)) {
            None => Ok(ClaimOutcome::First(Some(claim))),
            Some(row) if row.digest == claim.once.digest => Ok(ClaimOutcome::Repeat(row)),
            Some(row) => Err(mismatch(&row)),
        }
    }

    /// Waits for a request that holds this key, if there is one.
    async fn wait_for(&self, name: &Name) {
        let holder = lock(&self.active).get(name).cloned();
        if let Some(mut holder) = holder {
            drop(holder.changed().await);
        }
    }

    fn take(
        self: &Arc<Self>,
        name: &Name,
        once: &IdempotencyKey,
    ) -> Result<Claim, watch::Receiver<()>> {
        let mut active = lock(&self.active);
        if let Some(other) = active.get(name) {
            return Err(other.clone());
        }
        let (sender, receiver) = watch::channel(());
        active.insert(name.clone(), receiver);
        let keys = self.clone();
        let name = name.clone();
        let once = once.clone();
        Ok(Claim { keys, name, once, is_unsure: false, _held: sender })
    }
}

/// The key was used for something else.
pub(crate) fn mismatch(row: &OnceRow) -> Refusal {
    let message = format!("key `{}` was used for another request", row.key);
    Refusal::new(RefusalCode::IdempotencyMismatch, message)
        .hint("send the same body again, or choose a new Idempotency-Key")
}

/// The refusal of a key whose result was removed.
pub(crate) fn removed(row: &OnceRow) -> Refusal {
    let message =
        format!("what key `{}` did was removed, by request or because it was old", row.key);
    Refusal::new(RefusalCode::ResultGone, message)
        .hint("nothing was done again; choose a new Idempotency-Key to do it once more")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idempotency_keys_are_scoped_to_subject_and_actor() {
        let by = |subject: &str, actor: Option<&str>| {
            let caller = Caller::new("r", subject);
            asked_by(&Caller { actor: actor.map(Into::into), ..caller })
        };
        assert_eq!(&*by("idp:j\u{f6}rg", None), "idp:j\u{f6}rg", "as it is");
        assert_eq!(&*by("ann", Some("eve")), "ann\u{1f}eve");
        let all = [
            by("ann", None),
            by("ann", Some("eve")),
            by("ann\u{1f}eve", None),
            by("ann\u{1f}eve", Some("bob")),
            by("ann", Some("eve\u{1f}bob")),
            by("eve", Some("ann")),
        ];
        for (index, one) in all.iter().enumerate() {
            assert!(!all[..index].contains(one), "{one:?}");
        }
    }
}
