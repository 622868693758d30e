//! What the records of a server get beside calls: types, first records, and an end with their
//! realm.

use super::seeds::Seeder;
use super::served_types::ServedTypes;
use edge::realms::keeper::RealmRecords;
use futures::future::BoxFuture;
use kernel::contracts::{Clock, Spawn, StoreError};
use kernel::definition::plan::mistake::Mistake;
use kernel::limits::HOUR_MS;
use kernel::values::ids::RealmId;
use project::folder::ProjectTypes;
use query::records::error::RecordError;
use query::records::type_change::{RecordStore, TypeChange, TypeChangeError};
use std::sync::{Arc, Weak};

/// What to do about records that do not fit their types any more.
const MIGRATE: &str = "undo the change, or move the records out of its way while the server is \
    stopped: `waypost record migrate --rename` or `--drop`; `--dry-run` shows what it would do";

pub(crate) struct RecordKeeper {
    pub(crate) store: Arc<dyn RecordStore>,
    pub(crate) types: Arc<ServedTypes>,
    pub(crate) seeder: Seeder,
}

impl RecordKeeper {
    /// Serves other types from now on. Where stored records do not fit, nothing changes.
    pub(crate) async fn take(&self, declared: ProjectTypes) -> Result<(), Vec<Mistake>> {
        apply(&*self.store, &declared).await?;
        self.types.replace(declared);
        Ok(())
    }

    /// Whether these types are served already.
    pub(crate) fn serves(&self, declared: &ProjectTypes) -> bool {
        *self.types.declared() == *declared
    }

    /// Loads the first records that a realm has not had yet.
    pub(crate) async fn seed(&self, realm: &RealmId) -> Result<(), Vec<Mistake>> {
        let declared = self.types.declared();
        let count = self.seeder.load(realm, declared.of(realm)).await?;
        if count > 0 {
            tracing::info!(%realm, records = count, "first records loaded");
        }
        Ok(())
    }
}

/// Has the store take on these types; the mistakes say which records do not fit.
pub(crate) async fn apply(
    store: &dyn RecordStore,
    declared: &ProjectTypes,
) -> Result<(), Vec<Mistake>> {
    let types = Arc::new(declared.declared());
    let change = TypeChange { types, steps: Vec::new(), is_dry_run: false };
    match store.change_types(change).await {
        Ok(_) => Ok(()),
        Err(TypeChangeError::Obstacles(obstacles)) => {
            let told = obstacles.iter().map(|obstacle| {
                let what = format!("stored records do not fit the types: {obstacle}");
                Mistake::error(what).hint(MIGRATE)
            });
            Err(told.collect())
        }
        Err(error @ (TypeChangeError::Step(_) | TypeChangeError::Store(_))) => {
            let what = format!("the types cannot be applied to what is stored: {error}");
            Err(vec![Mistake::error(what)])
        }
    }
}

impl RealmRecords for RecordKeeper {
    fn begin<'a>(&'a self, realm: &'a RealmId) -> BoxFuture<'a, Vec<Mistake>> {
        Box::pin(async move { self.seed(realm).await.err().unwrap_or_default() })
    }

    fn purge<'a>(&'a self, realm: &'a RealmId) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            match self.store.remove_realm(realm.clone()).await {
                Ok(_) => Ok(()),
                Err(RecordError::Closed) => Err(StoreError::Closed),
                Err(error) => Err(StoreError::Failed(error.to_string())),
            }
        })
    }
}

/// Forgets outcomes of calls that are too old, now and every hour, as long as the store lives.
pub(crate) fn keep_forgetting(
    store: &Arc<dyn RecordStore>,
    clock: Arc<dyn Clock>,
    spawn: &Arc<dyn Spawn>,
) {
    let store = Arc::downgrade(store);
    spawn.task("outcomes of records", Box::pin(forget(store, clock)));
}

async fn forget(store: Weak<dyn RecordStore>, clock: Arc<dyn Clock>) {
    loop {
        let Some(there) = store.upgrade() else { return };
        match there.forget_outcomes(clock.now()).await {
            Ok(_) => {}
            Err(RecordError::Closed) => return,
            Err(error) => tracing::warn!(%error, "old outcomes of calls on records were kept"),
        }
        drop(there);
        clock.sleep_ms(HOUR_MS).await;
    }
}
