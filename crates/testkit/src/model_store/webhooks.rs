//! Webhooks in the model store: a map by name, whose entries go with their runs.

use super::ModelStore;
use super::tables::Tables;
use kernel::contracts::webhooks::{
    LiveWebhook, PutOutcome, Webhook, WebhookFilter, WebhookName, WebhookProgress, Webhooks,
};
use kernel::contracts::{ListPage, PageRequest, Read, StoreError};
use kernel::values::ids::{RealmId, RunId};

impl Tables {
    fn has_run(&self, realm: &RealmId, run: RunId) -> bool {
        let session = self.runs.get(&run).and_then(|run| self.sessions.get(&run.session));
        session.is_some_and(|session| session.row.key.realm == *realm)
    }

    fn listed_webhooks(
        &self,
        realm: &RealmId,
        filter: &WebhookFilter,
        page: &PageRequest,
    ) -> Result<ListPage<Webhook>, StoreError> {
        let before = page.cursor.as_deref().map(place).transpose()?;
        let is_next = |one: &&Webhook| {
            before.is_none_or(|(run, id)| (one.name.run, &*one.name.id) < (run, id))
        };
        let own = self.webhooks.values().rev().filter(|one| one.name.realm == *realm);
        let mut rest = own.filter(is_next).filter(|one| filter.passes(one));
        let items: Vec<Webhook> = rest.by_ref().take(page.limit.max(1)).cloned().collect();
        let cursor = |one: &Webhook| format!("{}/{}", one.name.run, one.name.id);
        let next_cursor = rest.next().and_then(|_| items.last().map(cursor));
        Ok(ListPage { items, next_cursor })
    }
}

/// Where the page before ended.
fn place(cursor: &str) -> Result<(RunId, &str), StoreError> {
    let parsed = cursor.split_once('/');
    let parsed = parsed.and_then(|(run, id)| Some((run.parse::<RunId>().ok()?, id)));
    parsed.ok_or_else(|| StoreError::BadCursor(format!("cursor `{cursor}` is not of this list")))
}

impl Webhooks for ModelStore {
    fn webhooks_of<'a>(&'a self, realm: &'a RealmId, run: RunId) -> Read<'a, Vec<Webhook>> {
        Box::pin(self.read(move |tables| {
            let all = tables.webhooks.values();
            let own = all.filter(|one| one.name.run == run && one.name.realm == *realm);
            Ok(own.cloned().collect::<Vec<_>>())
        }))
    }

    fn live_webhooks(&self) -> Read<'_, Vec<LiveWebhook>> {
        Box::pin(self.read(|tables| {
            let live = tables.webhooks.values().filter(|one| one.standing.is_live);
            let shown = live
                .map(|one| LiveWebhook { name: one.name.clone(), next_at: one.standing.next_at });
            Ok(shown.collect::<Vec<_>>())
        }))
    }

    fn list_webhooks<'a>(
        &'a self,
        realm: &'a RealmId,
        filter: &'a WebhookFilter,
        page: &'a PageRequest,
    ) -> Read<'a, ListPage<Webhook>> {
        Box::pin(self.read(move |tables| tables.listed_webhooks(realm, filter, page)))
    }

    fn put_webhook<'a>(&'a self, webhook: &'a Webhook, most: usize) -> Read<'a, PutOutcome> {
        Box::pin(self.write(move |tables| {
            let WebhookName { realm, run, .. } = &webhook.name;
            tables.check_realm(realm)?;
            if !tables.has_run(realm, *run) {
                return Ok(PutOutcome::NoRun);
            }
            let names = tables.webhooks.keys();
            let others = names.filter(|name| name.run == *run && **name != webhook.name).count();
            if others >= most {
                return Ok(PutOutcome::Full);
            }
            tables.webhooks.insert(webhook.name.clone(), webhook.clone());
            Ok(PutOutcome::Stored)
        }))
    }

    fn note_webhook<'a>(
        &'a self,
        name: &'a WebhookName,
        stamp: u64,
        standing: &'a WebhookProgress,
    ) -> Read<'a, bool> {
        Box::pin(self.write(move |tables| {
            let found = tables.webhooks.get_mut(name).filter(|one| one.stamp == stamp);
            let is_there = found.is_some();
            if let Some(one) = found {
                one.standing.clone_from(standing);
            }
            Ok(is_there)
        }))
    }

    fn remove_webhook<'a>(&'a self, name: &'a WebhookName) -> Read<'a, bool> {
        Box::pin(self.write(move |tables| Ok(tables.webhooks.remove(name).is_some())))
    }

    /// All can be read here.
    fn remove_unreadable_webhook<'a>(&'a self, _name: &'a WebhookName) -> Read<'a, bool> {
        Box::pin(self.write(|_tables| Ok(false)))
    }
}
