//! What webhooks get, for the engine, which posts it: on whose behalf they are notified, and how an
//! update reads.

use super::VAULT;
use super::target::Target;
use crate::operations::Dialect;
use crate::push_parts::PushParts;
use crate::state::{A2a, Shared};
use crate::task::{Task, TaskUpdate};
use crate::view::Viewer;
use engine::{NoticeLimits, Notices, Recipient, WebhookTurn};
use futures::future::{BoxFuture, FutureExt};
use kernel::contracts::policy::{Context, Request, Resource};
use kernel::contracts::sink::SinkError;
use kernel::contracts::webhooks::{Webhook, WebhookBody};
use kernel::event::Event;
use kernel::identity::directory::Directory;
use kernel::identity::roles::Role;
use kernel::tool::call::Caller;
use kernel::values::caller::Act;
use outbound::notices::Notice;
use std::sync::Arc;
use wire::a2a::MEDIA_TYPE;
use wire::a2a::v03::Binding;

/// The media type of what is not of A2A 1.0.
pub(crate) const JSON: &str = "application/json";

/// Posts to webhooks until the server stops, where it has them.
pub fn keep(a2a: &Shared) {
    let Some(parts) = a2a.push.clone() else { return };
    let store = parts.store.clone();
    // What posts keeps no server alive.
    let behind = Arc::downgrade(a2a);
    let find = move || {
        let a2a = behind.upgrade()?;
        let notices: Arc<dyn Notices> = Arc::new(TaskNotices { a2a, parts: parts.clone() });
        Some(notices)
    };
    a2a.server.engine.feed().keep_notifying(store, Box::new(find));
}

/// How an update reads in the words of a webhook.
pub(crate) trait NoticeWriter: Send + 'static {
    fn media_type(&self) -> &'static str;

    /// What comes next goes to a receiver that knows the task so far.
    fn follow(&mut self, viewer: &Viewer, task: &Task) -> impl Future<Output = ()> + Send;

    /// The notices that an update is, in order; the task is as its event leaves it.
    fn notices(
        &mut self,
        viewer: &Viewer,
        task: &Task,
        update: &TaskUpdate,
    ) -> impl Future<Output = Vec<String>> + Send;
}

impl NoticeWriter for Dialect {
    fn media_type(&self) -> &'static str {
        match self {
            Self::V1 => MEDIA_TYPE,
            Self::V03 => JSON,
        }
    }

    /// An update reads the same, whatever the receiver knows.
    async fn follow(&mut self, _viewer: &Viewer, _task: &Task) {}

    async fn notices(&mut self, viewer: &Viewer, task: &Task, update: &TaskUpdate) -> Vec<String> {
        let notice = match self {
            Self::V1 => {
                let response = viewer.update(update).await;
                response.and_then(|response| serde_json::to_string(&response).ok())
            }
            Self::V03 => {
                let task = viewer.task(task, None).await;
                Some(Binding::Rpc.task(&task).to_string())
            }
        };
        notice.into_iter().collect()
    }
}

/// What is told of tasks.
struct TaskNotices {
    a2a: Shared,
    parts: Arc<PushParts>,
}

impl TaskNotices {
    fn receiver<W: NoticeWriter>(
        &self,
        target: Target,
        viewer: Viewer,
        writer: W,
    ) -> Box<dyn Recipient> {
        Box::new(Receiver {
            a2a: self.a2a.clone(),
            parts: self.parts.clone(),
            target,
            viewer,
            writer,
            task: Task::default(),
            is_behind: false,
        })
    }
}

impl Notices for TaskNotices {
    fn limits(&self) -> NoticeLimits {
        let limits = &self.a2a.serving.limits;
        NoticeLimits {
            attempts_max: limits.push_attempts_max,
            bytes_max: limits.push_body_bytes_max,
        }
    }

    fn maker(&self, body: &WebhookBody) -> Option<Caller> {
        maker(&self.a2a, body)
    }

    fn recipient(&self, turn: WebhookTurn<'_>) -> Option<Box<dyn Recipient>> {
        let WebhookTurn { webhook: Webhook { name, body, .. }, maker, run } = turn;
        let target = Target::opened(&self.parts, name, &body.sealed)?;
        let viewer = Viewer::new(&self.a2a, maker, run, &[]);
        if body.dialect == VAULT {
            let writer = viewer.vault_encoder(run.row.started_at);
            return Some(self.receiver(target, viewer, writer));
        }
        let dialect = Dialect::of(&body.dialect)?;
        Some(self.receiver(target, viewer, dialect))
    }
}

/// Who is behind a webhook of a task.
struct Receiver<W> {
    a2a: Shared,
    parts: Arc<PushParts>,
    target: Target,
    viewer: Viewer,
    writer: W,
    /// As the events so far make it.
    task: Task,
    /// Whether events were passed that the writer does not know of.
    is_behind: bool,
}

impl<W: NoticeWriter> Receiver<W> {
    async fn told(&mut self, event: &Event) -> Vec<String> {
        if std::mem::take(&mut self.is_behind) {
            self.writer.follow(&self.viewer, &self.task).await;
        }
        let mut notices = Vec::new();
        for update in self.task.apply(event) {
            notices.extend(self.writer.notices(&self.viewer, &self.task, &update).await);
        }
        notices
    }
}

impl<W: NoticeWriter> Recipient for Receiver<W> {
    fn pass(&mut self, event: &Event) {
        self.task.apply(event);
        self.is_behind = true;
    }

    fn notices<'a>(&'a mut self, event: &'a Event) -> BoxFuture<'a, Vec<String>> {
        self.told(event).boxed()
    }

    fn post(&mut self, notice: String) -> BoxFuture<'_, Result<(), SinkError>> {
        let notice = Notice {
            url: self.target.url.clone(),
            media_type: self.writer.media_type(),
            headers: self.target.headers(),
            body: notice,
        };
        let ms = self.a2a.serving.limits.push_timeout_ms;
        let now = self.a2a.server.engine.clock().now();
        self.parts.notifier.post(notice, ms, now).boxed()
    }
}

/// Who made a webhook, with the rights of this moment; none who may do nothing any more.
fn maker(a2a: &A2a, body: &WebhookBody) -> Option<Caller> {
    let by = &body.by;
    // In local mode everyone is the same caller.
    if a2a.server.entrance.base().is_none() {
        return Some(by.clone());
    }
    let directory = a2a.server.identity.directory();
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
        && a2a.server.engine.admin().foresee(&request).allows()
}

/// Whether who made a webhook can still do something, and who acted as it, too: that one chose
/// where it is posted to. Of an actor that only a token names no end is known.
fn can_act(directory: &Directory, by: &Caller) -> bool {
    let has_ended = |actor: &str| directory.is_known(actor) && !directory.is_active(actor);
    directory.is_active(&by.subject) && !by.actor.as_deref().is_some_and(has_ended)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::identity::grants::Grants;
    use kernel::identity::principal::{Principal, PrincipalRecord, Roster};
    use kernel::values::ids::Millis;

    #[test]
    fn each_version_is_found_by_its_word_and_no_header_names_the_profile() {
        for dialect in [Dialect::V1, Dialect::V03] {
            assert_eq!(Dialect::of(dialect.word()), Some(dialect));
        }
        assert_eq!((Dialect::of("2.0"), Dialect::of(VAULT)), (None, None));
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
