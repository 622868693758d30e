//! The operations on webhooks. One is its maker's alone: for all others it is not there.

use super::VAULT;
use super::target::Target;
use crate::error::{Result, invalid, no_task, refused, refused_task, required};
use crate::operations::Client;
use crate::push_parts::PushParts;
use kernel::contracts::webhooks::{
    LiveWebhook, PutOutcome, Webhook, WebhookBody, WebhookMaker, WebhookName, WebhookProgress,
};
use kernel::contracts::{SessionRef, SessionRun, StoreError};
use kernel::identity::audit::Object;
use kernel::values::ids::RunId;
use serde_json::json;
use wire::a2a::error::{A2aError, ErrorKind};
use wire::a2a::request::{
    ListPushNotificationConfigsResponse, SendMessageConfiguration, TaskPushNotificationConfig,
};

/// Which part of a list is wanted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ConfigPage<'p> {
    /// How many at once; 0 for all.
    pub(crate) size: i32,
    /// The last one of the page before, if there was one.
    pub(crate) token: &'p str,
}

/// A webhook that was asked for and can be made.
pub(crate) struct WebhookRequest {
    id: String,
    /// The words of what it gets, as the store names them.
    dialect: &'static str,
    target: Target,
}

impl Client {
    /// What webhooks are kept with; an error where there are none.
    fn push_parts(&self) -> Result<&PushParts> {
        self.a2a.push.as_deref().ok_or_else(|| {
            let why = "this server does not call webhooks";
            A2aError::new(ErrorKind::PushNotificationNotSupported, why)
        })
    }

    /// Refuses to make or remove a webhook of a task for who may not send it a message.
    pub(crate) async fn permit_webhook(&self, run: RunId) -> Result<()> {
        let permitted = self.a2a.server.engine.runs().permit_message(&self.caller, run).await;
        permitted.map_err(|refusal| refused_task(refusal, &run.to_string()))
    }

    /// The webhook that comes with a message, if there is one and it can be made.
    pub(crate) fn webhook_wanted(
        &self,
        configuration: &SendMessageConfiguration,
    ) -> Result<Option<WebhookRequest>> {
        let field = "configuration.taskPushNotificationConfig";
        let config = configuration.task_push_notification_config.as_ref();
        config.map(|config| self.wanted(config, field)).transpose()
    }

    /// Refuses what cannot be a webhook; `field` is where it stands in the request.
    fn wanted(&self, config: &TaskPushNotificationConfig, field: &str) -> Result<WebhookRequest> {
        let target = Target::checked(self.push_parts()?, config, field)?;
        let id_max = self.a2a.server.limits().client_id_chars_max;
        let id = config.id.clone();
        if id.chars().count() > id_max || id.chars().any(char::is_control) {
            let why = format!("`id` has at most {id_max} characters, and no control characters");
            return Err(invalid("id", why));
        }
        Ok(WebhookRequest { id, dialect: self.dialect.word(), target })
    }

    /// The webhook at this address, where one is named, for a client of AgentVault's profile;
    /// `field` is where the address stands in the request.
    pub(crate) fn vault_webhook_wanted(
        &self,
        url: Option<&str>,
        field: &str,
    ) -> Result<Option<WebhookRequest>> {
        let Some(url) = url.filter(|url| !url.is_empty()) else { return Ok(None) };
        let target = Target::at(self.push_parts()?, url, field)?;
        Ok(Some(WebhookRequest { id: String::new(), dialect: VAULT, target }))
    }

    /// `CreateTaskPushNotificationConfig`: what happens to the task from now on is posted.
    pub(crate) async fn create_webhook(
        &self,
        config: &TaskPushNotificationConfig,
    ) -> Result<TaskPushNotificationConfig> {
        self.push_parts()?;
        let task = required("taskId", &config.task_id)?;
        // Before the task is read: what ends it meanwhile is posted.
        let place = self.last_event(&self.own(task).await?).await?;
        let found = self.own(task).await?;
        self.permit_webhook(found.row.id).await?;
        let wanted = self.wanted(config, "")?;
        self.make_webhook(&found, wanted, place).await
    }

    /// The last event of the journal that a task is in.
    async fn last_event(&self, found: &SessionRun) -> Result<u64> {
        let session = SessionRef::Id(found.session);
        let session = self.a2a.server.engine.sessions().get(&self.caller, &session).await;
        Ok(session.map_err(|refusal| refused_task(refusal, &found.row.id.to_string()))?.seq)
    }

    /// The webhook that came with a message: it gets what follows this place in the journal. One
    /// that the same message brought before stays as it is.
    pub(crate) async fn webhook_of_message(
        &self,
        found: &SessionRun,
        wanted: WebhookRequest,
        place: u64,
        is_repeat: bool,
    ) -> Result<()> {
        if is_repeat {
            let parts = self.push_parts()?;
            let known = self.own_webhooks(found.row.id).await?;
            let is_it = |one: &Webhook| {
                let is_named = wanted.id.is_empty() || *wanted.id == *one.name.id;
                let target = Target::opened(parts, &one.name, &one.body.sealed);
                is_named && target.is_some_and(|target| target == wanted.target)
            };
            if known.iter().any(is_it) {
                return Ok(());
            }
            // The message itself is not sent again: who repeats it may be allowed less by now.
            self.permit_webhook(found.row.id).await?;
        }
        self.make_webhook(found, wanted, place).await.map(drop)
    }

    /// The same where messages have no ids of their own, so that clients name their webhook with
    /// each of them: one that gets something already stays as it is.
    pub(crate) async fn webhook_once(
        &self,
        found: &SessionRun,
        wanted: WebhookRequest,
        place: u64,
    ) -> Result<()> {
        let parts = self.push_parts()?;
        let known = self.own_webhooks(found.row.id).await?;
        let is_it = |one: &Webhook| {
            let is_alike = one.standing.is_live && one.body.dialect == wanted.dialect;
            let target = Target::opened(parts, &one.name, &one.body.sealed);
            is_alike && target.is_some_and(|target| target == wanted.target)
        };
        if known.iter().any(is_it) {
            return Ok(());
        }
        self.make_webhook(found, wanted, place).await.map(drop)
    }

    async fn make_webhook(
        &self,
        found: &SessionRun,
        wanted: WebhookRequest,
        place: u64,
    ) -> Result<TaskPushNotificationConfig> {
        let parts = self.push_parts()?;
        let entropy = self.a2a.server.engine.entropy();
        let WebhookRequest { id, dialect, target } = wanted;
        let run = found.row.id;
        let id = if id.is_empty() { format!("push_{:032x}", entropy.bits()) } else { id };
        let name = WebhookName { realm: self.caller.realm.clone(), run, id: id.into() };
        let stored = parts.store.webhooks_of(&name.realm, run).await.map_err(|why| lost(&why))?;
        if stored.iter().any(|one| one.name == name && !self.has_made(one)) {
            return Err(invalid("id", "`id` is taken; leave it out, or choose another one"));
        }
        let sealed = target.sealed(parts, &name, entropy.bits());
        let sealed = sealed.ok_or_else(|| {
            A2aError::new(ErrorKind::Internal, "the webhook cannot be sealed, so it is not kept")
        })?;
        let standing = WebhookProgress {
            place,
            is_live: !found.row.status.is_over() || place < self.last_event(found).await?,
            ..WebhookProgress::default()
        };
        let body = WebhookBody {
            by: (*self.caller).clone(),
            impersonated: self.impersonates,
            session: found.session,
            dialect: dialect.to_owned(),
            sealed,
            made_at: self.a2a.server.engine.clock().now(),
        };
        // Stamps have 63 bits.
        let stamp = (entropy.bits() >> 65) as u64;
        self.keep_webhook("webhook.create", &name, target.place())?;
        let webhook = Webhook { name, stamp, body, standing };
        let most = self.a2a.serving.limits.push_configs_max;
        match parts.store.put_webhook(&webhook, most).await.map_err(|why| lost(&why))? {
            PutOutcome::Stored => {}
            PutOutcome::NoRun => return Err(no_task(&run.to_string())),
            PutOutcome::Full => {
                let why = format!("a task has at most {most} webhooks");
                let told = format!("{why}; `push_configs_max` in [limits]");
                return Err(A2aError::new(ErrorKind::ResourceExhausted, told));
            }
        }
        let Webhook { name, standing, .. } = webhook;
        let shown = target.shown(&name);
        if standing.is_live {
            self.notify(name);
        }
        Ok(shown)
    }

    /// Keeps in the audit what is done with a webhook, and where it goes: scheme, host and port.
    fn keep_webhook(
        &self,
        act: &'static str,
        name: &WebhookName,
        target: Option<String>,
    ) -> Result<()> {
        let detail = json!({"task": name.run.to_string(), "target": target});
        let object = Object::new("webhook", &*name.id);
        let kept = self.a2a.server.engine.audits().note_done(&self.caller, act, object, detail);
        kept.map_err(|refusal| refused(refusal, "id"))
    }

    fn has_made(&self, webhook: &Webhook) -> bool {
        WebhookMaker::of(&self.caller).has_made(webhook)
    }

    /// The webhooks of a task that the caller made, by id.
    async fn own_webhooks(&self, run: RunId) -> Result<Vec<Webhook>> {
        let store = &self.push_parts()?.store;
        let stored = store.webhooks_of(&self.caller.realm, run).await;
        let mut stored = stored.map_err(|why| lost(&why))?;
        stored.retain(|one| self.has_made(one));
        Ok(stored)
    }

    fn shown_webhook(&self, webhook: &Webhook) -> Result<TaskPushNotificationConfig> {
        let opened = Target::opened(self.push_parts()?, &webhook.name, &webhook.body.sealed);
        opened.map(|target| target.shown(&webhook.name)).ok_or_else(|| {
            let why = "the secret that the webhook was sealed with is gone; make it again";
            A2aError::new(ErrorKind::Internal, why)
        })
    }

    /// `GetTaskPushNotificationConfig`.
    pub(crate) async fn webhook(&self, task: &str, id: &str) -> Result<TaskPushNotificationConfig> {
        self.push_parts()?;
        let run = self.own(required("taskId", task)?).await?.row.id;
        let all = self.own_webhooks(run).await?;
        let id = required("id", id)?;
        let found = all.iter().find(|one| &*one.name.id == id);
        self.shown_webhook(found.ok_or_else(|| no_task(task))?)
    }

    pub(crate) async fn webhooks(
        &self,
        task: &str,
        page: ConfigPage<'_>,
    ) -> Result<ListPushNotificationConfigsResponse> {
        self.push_parts()?;
        let size = usize::try_from(page.size)
            .map_err(|_| invalid("pageSize", "`pageSize` is not negative"))?;
        let run = self.own(required("taskId", task)?).await?.row.id;
        let all = self.own_webhooks(run).await?;
        let is_next = |one: &&Webhook| page.token.is_empty() || *one.name.id > *page.token;
        let mut rest = all.iter().filter(is_next).peekable();
        let most = if size == 0 { usize::MAX } else { size };
        let mut response = ListPushNotificationConfigsResponse::default();
        while response.configs.len() < most
            && let Some(one) = rest.next()
        {
            response.configs.push(self.shown_webhook(one)?);
        }
        if rest.peek().is_some() {
            let last = response.configs.last().map(|config| config.id.clone());
            response.next_page_token = last.unwrap_or_default();
        }
        Ok(response)
    }

    /// `DeleteTaskPushNotificationConfig`: one that is not there is gone already.
    pub(crate) async fn delete_webhook(&self, task: &str, id: &str) -> Result<()> {
        let parts = self.push_parts()?;
        let run = self.own(required("taskId", task)?).await?.row.id;
        self.permit_webhook(run).await?;
        let id = required("id", id)?;
        let all = self.own_webhooks(run).await?;
        let Some(one) = all.into_iter().find(|one| &*one.name.id == id) else {
            // Of one that cannot be read the maker is not known: it is the owner's of its task.
            let name = WebhookName { realm: self.caller.realm.clone(), run, id: id.into() };
            let removed = parts.store.remove_unreadable_webhook(&name).await;
            return match removed.map_err(|why| lost(&why))? {
                true => self.keep_webhook("webhook.remove", &name, None),
                false => Ok(()),
            };
        };
        let target = Target::opened(parts, &one.name, &one.body.sealed);
        self.keep_webhook("webhook.remove", &one.name, target.and_then(|target| target.place()))?;
        parts.store.remove_webhook(&one.name).await.map_err(|why| lost(&why))?;
        self.notify(one.name);
        Ok(())
    }

    /// Tells who posts that a webhook was made or removed.
    fn notify(&self, name: WebhookName) {
        self.a2a.server.engine.feed().notify(LiveWebhook { name, next_at: None });
    }
}

fn lost(error: &StoreError) -> A2aError {
    tracing::warn!(%error, "webhooks cannot be read or written");
    A2aError::new(ErrorKind::Internal, "the store does not answer; try again")
}
