//! Webhooks of runs, posted as a server posts them: each has a place in its run's journal, which
//! the store keeps, and gets the events that follow. Who is notified outlives every process, and
//! the judge holds what it was told against the whole run.

use crate::sim::people::clients::{Clients, locked};
use kernel::contracts::webhooks::{
    PutOutcome, Webhook, WebhookBody, WebhookName, WebhookProgress, Webhooks,
};
use kernel::event::{Event, Fact};
use kernel::values::ids::{Millis, RunId, SessionId};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// How long a server waits before every webhook has its turn again.
const TURNS_MS: u64 = 1_500;
/// How long a receiver takes.
const POST_MS: u64 = 40;
/// The id of the only webhook of a run, and how it is told apart from others.
const ID: &str = "hook";
const STAMP: u64 = 1;

/// Who is notified of all runs.
#[derive(Default)]
pub struct Notified(Mutex<Book>);

#[derive(Default)]
struct Book {
    runs: BTreeMap<RunId, RunPosts>,
    delivered: usize,
    again: usize,
}

/// The events that were posted of one run, and what the store acknowledged of its webhook.
#[derive(Default)]
struct RunPosts {
    posts: Vec<Arc<Event>>,
    is_made: bool,
    place: u64,
}

impl Notified {
    /// How many events got there, and how many of them again.
    pub fn counts(&self) -> (usize, usize) {
        let book = locked(&self.0);
        (book.delivered, book.again)
    }
}

/// The webhooks of one life of a process.
pub struct Posting {
    pub notified: Arc<Notified>,
    /// Where the webhooks are kept.
    pub store: Arc<dyn Webhooks>,
    /// Those whose runs they are.
    pub clients: Arc<Clients>,
    /// A fault on purpose: a place is kept before the event is posted.
    pub is_ahead: bool,
}

impl Posting {
    /// Posts for as long as the process lives.
    pub async fn keep(self: Arc<Self>) {
        loop {
            self.turns().await;
            self.clients.sleep(TURNS_MS).await;
        }
    }

    /// Every run that someone learned of has a webhook, and each has a turn.
    async fn turns(&self) {
        let (runs, _, _) = locked(&self.clients.oracle).known();
        for run in runs {
            self.turn(run).await;
        }
    }

    async fn turn(&self, run: RunId) {
        let Some(Webhook { name, standing, .. }) = self.webhook(run).await else { return };
        let runs = self.clients.engine.runs();
        let by = self.clients.caller();
        let mut events = match runs.follow_events(&by, run).await {
            Ok(events) => events,
            Err(refusal) => return self.clients.refused(&refusal),
        };
        loop {
            let event = match events.try_next().await {
                Ok(Some(event)) => event,
                Ok(None) => return,
                Err(refusal) => return self.clients.refused(&refusal),
            };
            if event.seq <= standing.place || !is_posted(&event.fact) {
                continue;
            }
            if !self.is_ahead {
                self.post(run, event.clone()).await;
            }
            if !self.is_noted(&name, event.seq).await {
                return;
            }
            if self.is_ahead {
                self.clients.sleep(POST_MS).await;
                self.post(run, event).await;
            }
        }
    }

    /// The receiver has it, and the process may die before it knows that.
    async fn post(&self, run: RunId, event: Arc<Event>) {
        locked(&self.notified.0).runs.entry(run).or_default().posts.push(event);
        self.clients.sleep(POST_MS).await;
    }

    /// Writes how far a webhook has got; whether it is still there.
    async fn is_noted(&self, name: &WebhookName, place: u64) -> bool {
        let standing = WebhookProgress { place, is_live: true, ..WebhookProgress::default() };
        let is_noted = matches!(self.store.note_webhook(name, STAMP, &standing).await, Ok(true));
        if is_noted {
            locked(&self.notified.0).runs.entry(name.run).or_default().place = place;
        }
        is_noted
    }

    /// The webhook of a run, which is made where there is none yet.
    async fn webhook(&self, run: RunId) -> Option<Webhook> {
        let stored = self.store.webhooks_of(&self.clients.realm, run).await.ok()?;
        let report = self.clients.engine.runs().report(&self.clients.caller(), run).await;
        let report = report.inspect_err(|refusal| self.clients.refused(refusal)).ok()?;
        let (is_made, place) = {
            let mut book = locked(&self.notified.0);
            let posted = book.runs.entry(run).or_default();
            (posted.is_made, posted.place)
        };
        let Some(webhook) = stored.into_iter().next() else {
            // The run is there, so it was not removed with it.
            if is_made {
                let what = format!("the webhook of {run} was acknowledged and is lost");
                locked(&self.clients.oracle).accuse(what);
                return None;
            }
            return self.made(run, report.session.id).await;
        };
        if webhook.standing.place < place {
            let found = webhook.standing.place;
            let what = format!("the webhook of {run} was at {place}, and is at {found}");
            locked(&self.clients.oracle).accuse(what);
        }
        Some(webhook)
    }

    async fn made(&self, run: RunId, session: SessionId) -> Option<Webhook> {
        let realm = self.clients.realm.clone();
        let by = self.clients.caller();
        let dialect = "1.0".to_owned();
        let sealed = String::new();
        let webhook = Webhook {
            name: WebhookName { realm, run, id: ID.into() },
            stamp: STAMP,
            body: WebhookBody {
                by,
                impersonated: false,
                session,
                dialect,
                sealed,
                made_at: Millis(0),
            },
            standing: WebhookProgress { is_live: true, ..WebhookProgress::default() },
        };
        let put = self.store.put_webhook(&webhook, 1).await;
        let is_stored = matches!(put, Ok(PutOutcome::Stored));
        locked(&self.notified.0).runs.entry(run).or_default().is_made |= is_stored;
        is_stored.then_some(webhook)
    }

    /// Posts what is left, and holds what was told of each run that is still there against the
    /// whole of it.
    pub async fn judge(&self) {
        self.turns().await;
        let runs: Vec<RunId> = locked(&self.notified.0).runs.keys().copied().collect();
        for run in runs {
            let Some(whole) = self.whole(run).await else { continue };
            let wrong = {
                let mut book = locked(&self.notified.0);
                let posted = book.runs.entry(run).or_default();
                let count = posted.posts.len();
                let wrong = out_of_order(&whole, &posted.posts);
                book.delivered += whole.len();
                book.again += count.saturating_sub(whole.len());
                wrong
            };
            if let Some(wrong) = wrong {
                locked(&self.clients.oracle).accuse(format!("the webhook of {run}: {wrong}"));
            }
        }
    }

    /// All events of a run that are posted, unless it was removed.
    async fn whole(&self, run: RunId) -> Option<Vec<Arc<Event>>> {
        let by = self.clients.caller();
        let mut events = self.clients.engine.runs().follow_events(&by, run).await.ok()?;
        let mut whole = Vec::new();
        while let Some(event) = events.try_next().await.ok()? {
            if is_posted(&event.fact) {
                whole.push(event);
            }
        }
        Some(whole)
    }
}

/// What a receiver is told: asks, what was published, and the end. With each step of a run a
/// simulation would take too long.
fn is_posted(fact: &Fact) -> bool {
    matches!(
        fact,
        Fact::AskOpened(_)
            | Fact::AskDecided { .. }
            | Fact::AskExpired { .. }
            | Fact::AskWithdrawn { .. }
            | Fact::EventPublished { .. }
            | Fact::RunEnded { .. }
    )
}

/// What is wrong with what was told of a run. An event may be told again, followed by those after
/// it; none may be left out, and the last one must be there.
fn out_of_order(whole: &[Arc<Event>], posts: &[Arc<Event>]) -> Option<String> {
    // The next event that may come.
    let mut next = 0;
    for post in posts {
        match (0..=next).rev().find(|at| whole.get(*at) == Some(post)) {
            Some(at) => next = at + 1,
            None => return Some(format!("{post:?} came when event {next} was due: {whole:?}")),
        }
    }
    let is_whole = next >= whole.len();
    (!is_whole).then(|| format!("ended with event {next} of {}", whole.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::event::VERSION;

    fn event(seq: u64) -> Arc<Event> {
        let fact = Fact::TimerFired { timer: "t".to_owned() };
        Arc::new(Event { seq, at: Millis(1), v: VERSION, fact })
    }

    #[test]
    fn events_may_come_again_and_none_is_left_out() {
        let whole: Vec<Arc<Event>> = (0..3).map(event).collect();
        let told = |numbers: &[u64]| {
            let posts: Vec<Arc<Event>> = numbers.iter().copied().map(event).collect();
            out_of_order(&whole, &posts)
        };
        for right in [&[0, 1, 2][..], &[0, 0, 1, 2], &[0, 1, 0, 1, 2], &[0, 1, 2, 2]] {
            assert_eq!(told(right), None, "{right:?}");
        }
        for wrong in [&[0, 2][..], &[1, 2], &[0, 1], &[0, 1, 0, 2], &[]] {
            assert!(told(wrong).is_some(), "{wrong:?}");
        }
    }
}
