//! The webhooks of runs that there may be more for: how an endpoint says what each of them gets, who
//! wakes them, and how many have their turn at the same time.

use crate::system::locks::lock;
use futures::future::{BoxFuture, FutureExt};
use kernel::contracts::SessionRun;
use kernel::contracts::sink::SinkError;
use kernel::contracts::webhooks::{Webhook, WebhookBody, WebhookName, Webhooks};
use kernel::event::Event;
use kernel::tool::call::Caller;
use kernel::values::ids::RealmId;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};
use tokio::sync::{Notify, Semaphore};

/// How many webhooks of a realm have their turn at the same time. Realms do not wait for each other.
const TURNS_MAX: usize = 32;

/// What an endpoint says of its webhooks: on whose behalf each is notified, how a notice reads, and
/// how it is posted.
pub trait Notices: Send + Sync {
    fn limits(&self) -> NoticeLimits;

    /// Who made a webhook, with the rights of this moment; none who may do nothing any more.
    fn maker(&self, body: &WebhookBody) -> Option<Caller>;

    /// Who is behind a webhook; none where that cannot be read any more.
    fn recipient(&self, turn: WebhookTurn<'_>) -> Option<Box<dyn Recipient>>;
}

/// The limits of what an endpoint posts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoticeLimits {
    /// How many times in a row a webhook is tried before it gets nothing more.
    pub attempts_max: u32,
    /// The size of a notice; a larger one is left out.
    pub bytes_max: usize,
}

/// What is known as a webhook's turn begins.
#[derive(Clone, Copy)]
pub struct WebhookTurn<'a> {
    pub webhook: &'a Webhook,
    pub maker: &'a Arc<Caller>,
    pub run: &'a SessionRun,
}

/// Who is behind a webhook. It is given the events of the run from the first one on, in order.
pub trait Recipient: Send {
    /// Takes in an event that is not to be told: it was before, or is older than the webhook.
    fn pass(&mut self, event: &Event);

    /// Takes in the next event, and gives the notices that it is, in order.
    fn notices<'a>(&'a mut self, event: &'a Event) -> BoxFuture<'a, Vec<String>>;

    /// Posts one of them; done when the receiver has it.
    fn post(&mut self, notice: String) -> BoxFuture<'_, Result<(), SinkError>>;
}

/// Finds who says so, for one turn: an endpoint that is gone is not kept by its webhooks.
pub type FindNotices = Box<dyn Fn() -> Option<Arc<dyn Notices>> + Send + Sync>;

/// What webhooks are posted to with.
pub(crate) struct WebhookParts {
    pub(crate) store: Arc<dyn Webhooks>,
    pub(crate) find: FindNotices,
}

/// All webhooks that there may be more for.
#[derive(Default)]
pub(crate) struct LiveWebhooks {
    parts: OnceLock<WebhookParts>,
    live: Mutex<Live>,
}

#[derive(Default)]
struct Live {
    /// What wakes each of them.
    nudges: BTreeMap<WebhookName, Arc<Notify>>,
    turns: BTreeMap<RealmId, Arc<Semaphore>>,
}

/// One that is new here.
pub(crate) struct WebhookEntry {
    /// Wakes it when it was made again, or removed.
    pub(crate) nudge: Arc<Notify>,
    /// A permit for each turn that its realm may have.
    pub(crate) turns: Arc<Semaphore>,
}

impl LiveWebhooks {
    /// From now on they are posted to with these.
    pub(crate) fn begin(&self, parts: WebhookParts) {
        // A server has one endpoint with webhooks.
        let _ = self.parts.set(parts);
    }

    /// What they are posted to with; none before there are any.
    pub(crate) fn parts(&self) -> Option<&WebhookParts> {
        self.parts.get()
    }

    /// There may be something for this one. One that is here already is woken.
    pub(crate) fn enter(&self, name: &WebhookName) -> Option<WebhookEntry> {
        let mut live = lock(&self.live);
        if let Some(nudge) = live.nudges.get(name) {
            nudge.notify_one();
            return None;
        }
        let nudge = Arc::new(Notify::new());
        live.nudges.insert(name.clone(), nudge.clone());
        let new = || Arc::new(Semaphore::new(TURNS_MAX));
        let turns = live.turns.entry(name.realm.clone()).or_insert_with(new).clone();
        Some(WebhookEntry { nudge, turns })
    }

    /// Lets go of one that there is no more for. False where it was woken since: there may be.
    pub(crate) fn leave(&self, name: &WebhookName) -> bool {
        let mut live = lock(&self.live);
        let is_woken = |nudge: &Arc<Notify>| nudge.notified().now_or_never().is_some();
        if live.nudges.get(name).is_some_and(is_woken) {
            return false;
        }
        live.nudges.remove(name);
        true
    }

    /// Wakes all of a realm in which nothing moves any more: they find that it is closed.
    pub(crate) fn close(&self, realm: &RealmId) {
        let mut live = lock(&self.live);
        live.turns.remove(realm);
        let own = live.nudges.iter().filter(|(name, _)| name.realm == *realm);
        own.for_each(|(_, nudge)| nudge.notify_one());
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        lock(&self.live).nudges.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::values::ids::RunId;

    fn name(realm: &str, id: &str) -> WebhookName {
        WebhookName { realm: realm.into(), run: RunId(1), id: id.into() }
    }

    fn is_woken(entry: &WebhookEntry) -> bool {
        entry.nudge.notified().now_or_never().is_some()
    }

    #[test]
    fn a_webhook_that_is_made_again_is_woken_and_not_let_go() {
        let all = LiveWebhooks::default();
        let entry = all.enter(&name("r", "one")).unwrap();
        assert!(!is_woken(&entry), "it begins by itself");
        assert!(all.enter(&name("r", "one")).is_none());
        assert!(is_woken(&entry));
        all.enter(&name("r", "one"));
        assert!(!all.leave(&name("r", "one")), "it came back meanwhile");
        assert!(all.leave(&name("r", "one")));
        assert_eq!(all.len(), 0);
        assert!(all.enter(&name("r", "one")).is_some(), "it is new again");
    }

    #[test]
    fn a_realm_whose_turns_are_all_taken_holds_up_no_other() {
        let all = LiveWebhooks::default();
        let loud = all.enter(&name("loud", "one")).unwrap();
        let other = all.enter(&name("loud", "two")).unwrap();
        let quiet = all.enter(&name("quiet", "one")).unwrap();
        let taken = loud.turns.try_acquire_many(TURNS_MAX as u32).unwrap();
        assert!(other.turns.try_acquire().is_err());
        assert!(quiet.turns.try_acquire().is_ok());
        drop(taken);
        assert!(other.turns.try_acquire().is_ok());
    }

    #[test]
    fn a_realm_that_is_closed_wakes_its_own() {
        let all = LiveWebhooks::default();
        let gone = all.enter(&name("gone", "one")).unwrap();
        let kept = all.enter(&name("kept", "one")).unwrap();
        all.close(&"gone".into());
        assert!(is_woken(&gone) && !is_woken(&kept));
        assert!(all.leave(&name("gone", "one")));
        assert_eq!(all.len(), 1);
    }
}
