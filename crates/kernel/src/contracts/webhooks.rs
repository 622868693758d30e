//! The contract of webhook storage: receiver, progress and owner of each webhook of a run. What only
//! its maker and receiver may know is sealed before it is stored.

use super::{ListPage, PageRequest, Read};
use crate::tool::call::Caller;
use crate::values::ids::{Millis, RealmId, RunId, SessionId};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Which webhook.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WebhookName {
    /// The realm of its run.
    pub realm: RealmId,
    pub run: RunId,
    /// Its id, which is one of its run's.
    pub id: Arc<str>,
}

/// What a webhook is from its making on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WebhookBody {
    /// Its maker. It is sent only what this caller may see.
    pub by: Caller,
    /// Whether its maker acted as `by.subject` because policy allowed that: it ends with that
    /// right. A token that names both needs no such right.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub impersonated: bool,
    /// The session of its run.
    pub session: SessionId,
    /// In which version of the protocol its receiver is spoken to.
    pub dialect: String,
    /// Its URL and credentials, sealed, as text.
    pub sealed: String,
    /// When it was made.
    pub made_at: Millis,
}

/// How far a webhook has got.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WebhookProgress {
    /// The last event of the session's journal that it was sent, or need not be.
    pub place: u64,
    /// How often what follows was tried.
    pub attempts: u32,
    /// When it is tried again.
    pub next_at: Option<Millis>,
    /// Whether there may be more for it.
    pub is_live: bool,
    /// Why the last try failed, or why there is no other.
    pub error: Option<String>,
}

/// A webhook of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    pub name: WebhookName,
    /// Tells it apart from others that had its name before; below 2^63.
    pub stamp: u64,
    pub body: WebhookBody,
    /// How far it has got.
    pub standing: WebhookProgress,
}

/// The maker of a webhook: a subject and its actor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookMaker {
    pub subject: Arc<str>,
    pub actor: Option<Arc<str>>,
}

impl WebhookMaker {
    pub fn of(caller: &Caller) -> Self {
        Self { subject: caller.subject.clone(), actor: caller.actor.clone() }
    }

    pub fn has_made(&self, webhook: &Webhook) -> bool {
        let by = &webhook.body.by;
        by.subject == self.subject && by.actor == self.actor
    }
}

/// Which webhooks of a realm.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WebhookFilter {
    pub run: Option<RunId>,
    /// Those that there may be more for, or those that have ended.
    pub live: Option<bool>,
    pub maker: Option<WebhookMaker>,
}

impl WebhookFilter {
    pub fn passes(&self, webhook: &Webhook) -> bool {
        self.run.is_none_or(|run| webhook.name.run == run)
            && self.live.is_none_or(|live| webhook.standing.is_live == live)
            && self.maker.as_ref().is_none_or(|maker| maker.has_made(webhook))
    }
}

/// A webhook that there may be more for, without what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveWebhook {
    pub name: WebhookName,
    /// When it is tried again.
    pub next_at: Option<Millis>,
}

/// What became of a webhook that was to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutOutcome {
    Stored,
    /// Its run is not.
    NoRun,
    /// Its run has as many as it may have.
    Full,
}

/// The webhooks of all runs. One goes with its run. One that cannot be read is reported and left
/// out: it must hold up no other, and takes no room of those that a run may have.
pub trait Webhooks: Send + Sync {
    /// Those of a run, by id.
    fn webhooks_of<'a>(&'a self, realm: &'a RealmId, run: RunId) -> Read<'a, Vec<Webhook>>;

    /// Those of all realms that there may be more for, by realm, run and id.
    fn live_webhooks(&self) -> Read<'_, Vec<LiveWebhook>>;

    /// Those of a realm that pass, also those that have ended: the largest run first, and of a run
    /// the largest id first. A page may have fewer than it could, also none, where a filter passes
    /// few: the cursor says whether there may be more.
    fn list_webhooks<'a>(
        &'a self,
        realm: &'a RealmId,
        filter: &'a WebhookFilter,
        page: &'a PageRequest,
    ) -> Read<'a, ListPage<Webhook>>;

    /// Writes one over the one with its name, unless its run has this many others that can be read.
    /// Durable on return.
    fn put_webhook<'a>(&'a self, webhook: &'a Webhook, most: usize) -> Read<'a, PutOutcome>;

    /// Writes how far one has got that still has this stamp; whether it is there. Durable on
    /// return.
    fn note_webhook<'a>(
        &'a self,
        name: &'a WebhookName,
        stamp: u64,
        standing: &'a WebhookProgress,
    ) -> Read<'a, bool>;

    /// Removes one; whether it was there. Durable on return.
    fn remove_webhook<'a>(&'a self, name: &'a WebhookName) -> Read<'a, bool>;

    /// Removes one that cannot be read, so that no one knows whose it is; whether it was there. One
    /// that can be read stays. Durable on return.
    fn remove_unreadable_webhook<'a>(&'a self, name: &'a WebhookName) -> Read<'a, bool>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_webhook_body_without_an_actor_belongs_to_its_subject() {
        let body = WebhookBody {
            by: Caller::new("acme", "ann"),
            impersonated: false,
            session: SessionId(7),
            dialect: "1.0".to_owned(),
            sealed: "sealed".to_owned(),
            made_at: Millis(9),
        };
        let by = json!({"realm": "acme", "subject": "ann", "admin": false});
        let kept = json!({"by": by, "session": SessionId(7), "dialect": "1.0", "sealed": "sealed",
            "madeAt": 9});
        assert_eq!(json!(body), kept);
        assert_eq!(serde_json::from_value::<WebhookBody>(kept).unwrap(), body);
        let other = WebhookBody { impersonated: true, ..body };
        assert_eq!(json!(other)["impersonated"], true);
        assert_eq!(serde_json::from_value::<WebhookBody>(json!(other)).unwrap(), other);
    }
}
