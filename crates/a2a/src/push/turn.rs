//! What one webhook gets: the updates of its task behind its place, one after the other, as its
//! maker may see them now. Its place moves once an update was taken.

use super::agenda::NextAttempt;
use super::form::Form;
use super::target::Target;
use crate::operations::Dialect;
use crate::push_parts::PushParts;
use crate::state::{A2a, Shared};
use crate::task::{Task, TaskUpdate};
use crate::task_stream::TaskStream;
use crate::view::Viewer;
use engine::refusal::{Refusal, RefusalKind};
use kernel::contracts::policy::{Context, Request, Resource};
use kernel::contracts::webhooks::{Webhook, WebhookBody, WebhookName, WebhookProgress};
use kernel::identity::directory::Directory;
use kernel::identity::roles::Role;
use kernel::limits::Limits;
use kernel::tool::call::Caller;
use kernel::values::caller::Act;
use kernel::values::ids::Millis;
use outbound::notices::{NotTaken, Notice};
use std::sync::Arc;
use std::time::Duration;
use wire::a2a::MEDIA_TYPE;
use wire::a2a::v03::Binding;

/// How soon a store that failed is asked again.
const STORE_RETRY_MS: u64 = 1_000;
/// After how long a turn gives others theirs: a task may tell more than a slow receiver takes.
const TURN_MAX: Duration = Duration::from_secs(5);

/// Why a webhook ends whose maker has lost its rights.
const NO_MAKER: &str = "who made it may do nothing any more";

/// The media type of what is not of A2A 1.0.
const JSON: &str = "application/json";

/// What an update is for a receiver: in AgentVault's profile, it can be several events.
struct PushBody {
    media_type: &'static str,
    bodies: Vec<String>,
}

/// A turn that ended.
pub(super) struct FinishedTurn {
    pub(super) name: WebhookName,
    pub(super) after: NextAttempt,
}

/// Gives a webhook what there is for it.
pub(super) async fn turn(a2a: Shared, parts: Arc<PushParts>, name: WebhookName) -> FinishedTurn {
    let now = a2a.doors.engine.clock().now();
    let stored = parts.store.webhooks_of(&name.realm, name.run).await;
    let after = match stored {
        Ok(all) => match all.into_iter().find(|one| one.name == name && one.standing.is_live) {
            None => NextAttempt::Over,
            Some(webhook) => match waits(a2a.doors.limits(), &webhook.standing, now) {
                Some(then) => NextAttempt::Again(then),
                None => PushTurn { a2a, parts, webhook }.take().await,
            },
        },
        Err(error) => {
            tracing::warn!(%error, "a webhook cannot be read");
            NextAttempt::Again(now.plus_ms(STORE_RETRY_MS))
        }
    };
    FinishedTurn { name, after }
}

/// Until when it waits. A clock that was set back makes it wait no longer than it would have.
fn waits(limits: &Limits, standing: &WebhookProgress, now: Millis) -> Option<Millis> {
    let longest = now.plus_ms(limits.delivery_backoff_ms_max);
    standing.next_at.filter(|then| *then > now && *then <= longest)
}

/// How long to wait after so many failures: twice as long each time, some of it by chance.
fn backoff_ms(limits: &Limits, attempts: u32, asked: Option<u64>, chance: u128) -> u64 {
    let doublings = attempts.saturating_sub(1).min(32);
    let most = limits.delivery_backoff_ms_max;
    let wait = limits.delivery_backoff_ms.saturating_mul(1 << doublings).min(most);
    let half = wait / 2;
    let shaken = wait - half + (chance % (u128::from(half) + 1)) as u64;
    shaken.max(asked.unwrap_or(0)).min(most)
}

/// Who made a webhook, with the rights of this moment; none who may do nothing any more.
fn maker(a2a: &A2a, body: &WebhookBody) -> Option<Caller> {
    let by = &body.by;
    // In local mode everyone is the same caller.
    if a2a.doors.entrance.base().is_none() {
        return Some(by.clone());
    }
    let directory = a2a.doors.identity.directory();
    let is_within = by.scopes.is_none_or(|scopes| scopes.allow(Act::Administer));
    let admin = is_within && directory.has_role(&by.realm, &by.subject, Role::Admin);
    let is_allowed = !body.impersonated || impersonates(a2a, &directory, by);
    (is_allowed && can_act(&directory, by)).then(|| Caller { admin, ..by.clone() })
}

/// Whether who acted as the maker of a webhook may still do so. The audit keeps nothing of it:
/// nobody asks.
fn impersonates(a2a: &A2a, directory: &Directory, by: &Caller) -> bool {
    let Some(actor) = &by.actor else { return false };
    let admin = directory.has_role(&by.realm, actor, Role::Admin);
    let actor = Caller { admin, ..Caller::new(by.realm.clone(), actor.clone()) };
    let resource = Resource::Principal(&by.subject);
    let context = Context::default();
    let request = Request { act: Act::Impersonate, subject: &actor, resource, context };
    directory.can_run_as(&by.realm, &by.subject)
        && a2a.doors.engine.admin().foresee(&request).allows()
}

/// Whether who made a webhook can still do something, and who acted as it, too: that one chose
/// where it is posted to. Of an actor that only a token names no end is known.
fn can_act(directory: &Directory, by: &Caller) -> bool {
    let has_ended = |actor: &str| directory.is_known(actor) && !directory.is_active(actor);
    directory.is_active(&by.subject) && !by.actor.as_deref().is_some_and(has_ended)
}

struct PushTurn {
    a2a: Shared,
    parts: Arc<PushParts>,
    webhook: Webhook,
}

impl PushTurn {
    async fn take(mut self) -> NextAttempt {
        let Webhook { name, body, standing, .. } = &self.webhook;
        let run = name.run;
        let place = standing.place;
        let target = Target::opened(&self.parts, name, &body.sealed);
        let form = Form::of(&body.dialect);
        let Some((target, form)) = target.zip(form) else {
            return self.end("what it was sealed with is gone".to_owned()).await;
        };
        let Some(caller) = maker(&self.a2a, body).map(Arc::new) else {
            return self.end(NO_MAKER.to_owned()).await;
        };
        let engine = &self.a2a.doors.engine;
        let mut stream = match TaskStream::follow_after(engine, &caller, run, place).await {
            Ok(stream) => stream,
            Err(refusal) => return self.refused(&refusal).await,
        };
        let viewer = Viewer::new(&self.a2a, &caller, stream.run(), &[]);
        let began = self.elapsed();
        let mut vault = match form {
            Form::Vault => {
                let started_at = stream.run().row.started_at;
                // Events of a journal are counted from 1.
                let is_start = stream.place() == 0;
                Some(viewer.vault_teller(stream.task(), started_at, is_start).await)
            }
            Form::Of(_) => None,
        };
        loop {
            let update = match stream.look().await {
                Ok(Some(update)) => update,
                Ok(None) => return self.rest(stream.task().state.is_over()).await,
                Err(refusal) => return self.refused(&refusal).await,
            };
            // A right that was withdrawn since the turn began counts as well.
            if maker(&self.a2a, &self.webhook.body).is_none() {
                return self.end(NO_MAKER.to_owned()).await;
            }
            let said = match &mut vault {
                Some(teller) => {
                    let at = stream.task().changed_at;
                    PushBody {
                        media_type: JSON,
                        bodies: teller.notices(&viewer, &update, at).await,
                    }
                }
                None => said(form, &viewer, stream.task(), &update).await,
            };
            if let Err(why) = self.posted(&target, said).await {
                return self.failed(why).await;
            }
            // Updates of one event are posted again together: one of them alone is no progress, and
            // must not make the failures of the next one count from the start.
            if !stream.is_between_events() {
                continue;
            }
            let standing = WebhookProgress {
                place: stream.place(),
                is_live: true,
                ..WebhookProgress::default()
            };
            if let Some(after) = self.note(standing).await {
                return after;
            }
            if self.elapsed().saturating_sub(began) > TURN_MAX {
                return NextAttempt::Again(self.now());
            }
        }
    }

    fn elapsed(&self) -> Duration {
        self.a2a.doors.engine.clock().elapsed()
    }

    /// Posts all that an update is, until something is not taken.
    async fn posted(&self, target: &Target, said: PushBody) -> Result<(), NotTaken> {
        let PushBody { media_type, bodies } = said;
        for body in bodies {
            if !self.fits(&body) {
                continue;
            }
            let url = target.url.clone();
            let headers = target.headers();
            let notice = Notice { url, media_type, headers, body };
            let ms = self.a2a.serving.limits.push_timeout_ms;
            let now = self.now();
            let posted = self.parts.notifier.post(notice, ms, now).await;
            self.parts.counts.add(posted.is_ok());
            posted?;
        }
        Ok(())
    }

    fn now(&self) -> Millis {
        self.a2a.doors.engine.clock().now()
    }

    fn fits(&self, body: &str) -> bool {
        let fits = body.len() <= self.a2a.serving.limits.push_body_bytes_max;
        if !fits {
            let WebhookName { run, id, .. } = &self.webhook.name;
            let bytes = body.len();
            tracing::warn!(%run, %id, bytes, "an update is too large for a webhook, and left out");
        }
        fits
    }

    /// Writes how far it has got; what follows where that cannot be, or it is another one by now.
    async fn note(&mut self, standing: WebhookProgress) -> Option<NextAttempt> {
        if standing == self.webhook.standing {
            return None;
        }
        let Webhook { name, stamp, .. } = &self.webhook;
        let noted = self.parts.store.note_webhook(name, *stamp, &standing).await;
        match noted {
            Ok(true) => {
                self.webhook.standing = standing;
                None
            }
            // It was removed, or made again.
            Ok(false) => Some(NextAttempt::Again(self.now())),
            Err(error) => {
                tracing::warn!(%error, "how far a webhook has got cannot be written");
                Some(NextAttempt::Again(self.now().plus_ms(STORE_RETRY_MS)))
            }
        }
    }

    /// It has all there is. Of a task that is over nothing more comes.
    async fn rest(mut self, is_over: bool) -> NextAttempt {
        if !is_over {
            return NextAttempt::Rest;
        }
        let standing = WebhookProgress { is_live: false, ..self.webhook.standing.clone() };
        self.note(standing).await.unwrap_or(NextAttempt::Over)
    }

    async fn failed(mut self, why: NotTaken) -> NextAttempt {
        let attempts = self.webhook.standing.attempts.saturating_add(1);
        if why.is_final || attempts >= self.a2a.serving.limits.push_attempts_max {
            self.webhook.standing.attempts = attempts;
            return self.end(why.message).await;
        }
        let chance = self.a2a.doors.engine.entropy().bits();
        let wait_ms = backoff_ms(self.a2a.doors.limits(), attempts, why.retry_after_ms, chance);
        let then = self.now().plus_ms(wait_ms);
        let WebhookName { run, id, .. } = &self.webhook.name;
        tracing::debug!(%run, %id, attempts, why = why.message, "a webhook took nothing");
        let standing = WebhookProgress {
            attempts,
            next_at: Some(then),
            error: Some(why.message),
            ..self.webhook.standing.clone()
        };
        self.note(standing).await.unwrap_or(NextAttempt::Again(then))
    }

    /// The task cannot be read: it is gone, or its maker may not see it, or not at this moment.
    async fn refused(self, refusal: &Refusal) -> NextAttempt {
        match refusal.kind() {
            RefusalKind::NotFound | RefusalKind::Forbidden | RefusalKind::Gone => {
                self.end(format!("its maker cannot read the task: {}", refusal.message)).await
            }
            _ => NextAttempt::Again(self.now().plus_ms(STORE_RETRY_MS)),
        }
    }

    /// It gets nothing more, and stays to be read.
    async fn end(mut self, why: String) -> NextAttempt {
        let WebhookName { run, id, .. } = &self.webhook.name;
        tracing::warn!(%run, %id, why, "a webhook gets nothing more");
        self.parts.counts.end();
        let standing = WebhookProgress {
            next_at: None,
            is_live: false,
            error: Some(why),
            ..self.webhook.standing.clone()
        };
        self.note(standing).await.unwrap_or(NextAttempt::Over)
    }
}

/// An update as a receiver of this version of A2A gets it; nothing where there is nothing to see.
async fn said(form: Form, viewer: &Viewer, task: &Task, update: &TaskUpdate) -> PushBody {
    let (media_type, body) = match form {
        Form::Of(Dialect::V1) => {
            let response = viewer.update(update).await;
            (MEDIA_TYPE, response.and_then(|response| serde_json::to_string(&response).ok()))
        }
        // The task as the update leaves it.
        Form::Of(Dialect::V03) => {
            let task = viewer.task(task, None).await;
            (JSON, Some(Binding::Rpc.task(&task).to_string()))
        }
        // It has a teller of its own.
        Form::Vault => (JSON, None),
    };
    PushBody { media_type, bodies: body.into_iter().collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::identity::grants::Grants;
    use kernel::identity::principal::{Principal, PrincipalRecord, Roster};

    #[test]
    fn waits_double_are_shaken_and_are_as_long_as_the_receiver_asks_within_a_limit() {
        let limits = Limits::default();
        for chance in [0, 7, u128::MAX] {
            assert!((500..=1_000).contains(&backoff_ms(&limits, 1, None, chance)));
            assert!((4_000..=8_000).contains(&backoff_ms(&limits, 4, None, chance)));
            assert!((150_000..=300_000).contains(&backoff_ms(&limits, 99, None, chance)));
        }
        assert_eq!(backoff_ms(&limits, 1, Some(60_000), 0), 60_000);
        assert_eq!(backoff_ms(&limits, 1, Some(u64::MAX), 0), 300_000);
    }

    #[test]
    fn a_clock_that_is_set_back_makes_no_webhook_wait_longer() {
        let limits = Limits::default();
        let at = |then: i64| {
            let next_at = Some(Millis(then));
            waits(&limits, &WebhookProgress { next_at, ..WebhookProgress::default() }, Millis(100))
        };
        assert_eq!((at(100), at(99), at(101)), (None, None, Some(Millis(101))));
        assert_eq!(at(100 + 300_001), None);
    }

    #[test]
    fn a_webhook_ends_with_its_maker_and_with_who_acted_as_its_maker() {
        let file = ["ann", "bob", "eve"].map(|id| Arc::new(Principal::new(id, Grants::default())));
        let disabled = PrincipalRecord {
            id: "eve".into(),
            principal: None,
            disabled: Some(Millis(3)),
            by: "admin".into(),
            changed: Millis(3),
        };
        let (roster, _) = Roster::combine(&file, std::iter::once(&disabled));
        let directory = Directory { principals: Arc::new(roster), ..Directory::default() };
        for (subject, actor, can) in [
            ("ann", None, true),
            ("ann", Some("bob"), true),
            ("ann", Some("corp:bot"), true),
            ("ann", Some("eve"), false),
            ("eve", None, false),
            ("eve", Some("ann"), false),
            ("zoe", None, false),
        ] {
            let by = Caller { actor: actor.map(Arc::from), ..Caller::new("acme", subject) };
            assert_eq!(can_act(&directory, &by), can, "{by:?}");
        }
    }
}
