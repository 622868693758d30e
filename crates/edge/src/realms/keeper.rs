//! Realms are made and removed while the server runs. A removal is durable before it is answered;
//! what the realm owned goes afterwards, slice by slice, and the next start continues with what is
//! left.

use super::files::ServedFiles;
use crate::gateway::Gateway;
use engine::Engine;
use engine::refusal::Refusal;
use futures::future::{BoxFuture, FutureExt};
use identity::Identity;
use identity::keys::Maker;
use identity::realms::RealmRefusal;
use kernel::contracts::identity::realms::{RealmRecord, StoredRealms};
use kernel::contracts::{Blobs, Spawn, StoreError, Vault};
use kernel::definition::plan::mistake::Mistake;
use kernel::values::ids::RealmId;
use project::folder::RealmFiles;
use std::sync::{Arc, OnceLock};
use tokio::sync::oneshot;

/// How long to wait before what could not be removed is tried again.
const RETRY_MS: u64 = 1_000;

/// Records of realms.
pub trait RealmRecords: Send + Sync {
    /// Gives a new realm its first records, and says what is wrong with them.
    fn begin<'a>(&'a self, realm: &'a RealmId) -> BoxFuture<'a, Vec<Mistake>>;

    /// Removes all records of a realm.
    fn purge<'a>(&'a self, realm: &'a RealmId) -> BoxFuture<'a, Result<(), StoreError>>;
}

/// What realms have.
pub struct OfRealms {
    /// All that is stored for them, but for blobs.
    pub store: Arc<dyn StoredRealms>,
    pub blobs: Arc<dyn Blobs>,
    /// What logins at upstreams brought.
    pub vault: Arc<dyn Vault>,
    /// What the project's files bring.
    pub files: RealmFiles,
    /// Records, where there are types.
    pub records: Option<Arc<dyn RealmRecords>>,
}

/// Who makes and removes realms.
pub struct RealmKeeper {
    pub identity: Arc<Identity>,
    engine: Engine,
    store: Arc<dyn StoredRealms>,
    blobs: Arc<dyn Blobs>,
    vault: Arc<dyn Vault>,
    records: Option<Arc<dyn RealmRecords>>,
    /// What the project's files bring.
    pub files: Arc<ServedFiles>,
    /// The upstreams, once they are started.
    gateway: OnceLock<Arc<Gateway>>,
    /// Begins to send the events of a new realm, where there are sinks.
    sinks: OnceLock<BeginSinks>,
    spawn: Arc<dyn Spawn>,
}

/// Begins to send the events of a realm to the sinks that get them.
type BeginSinks = Box<dyn Fn(RealmId) -> BoxFuture<'static, Result<(), Refusal>> + Send + Sync>;

impl RealmKeeper {
    /// Over this engine and those who are known.
    pub fn new(
        engine: Engine,
        identity: Arc<Identity>,
        realms: OfRealms,
        spawn: Arc<dyn Spawn>,
    ) -> Arc<Self> {
        let OfRealms { store, blobs, vault, files, records } = realms;
        let files = Arc::new(ServedFiles::new(files));
        let gateway = OnceLock::new();
        let sinks = OnceLock::new();
        Arc::new(Self {
            identity,
            engine,
            store,
            blobs,
            vault,
            records,
            files,
            gateway,
            sinks,
            spawn,
        })
    }

    /// Starts and stops so the stored providers of realms that are made and removed from now on.
    pub fn serve_behind(&self, gateway: Arc<Gateway>) {
        // A server has one.
        let _ = self.gateway.set(gateway);
    }

    /// Begins so to send the events of realms that are made from now on.
    pub fn begin_sinks_by<F>(&self, begin: impl Fn(RealmId) -> F + Send + Sync + 'static)
    where
        F: Future<Output = Result<(), Refusal>> + Send + 'static,
    {
        // A server begins its sinks once.
        let _ = self.sinks.set(Box::new(move |realm| begin(realm).boxed()));
    }

    /// Closes the realms that were removed and of which something is left, and removes that. Before
    /// anything is recovered.
    pub fn resume(self: &Arc<Self>) {
        for realm in self.identity.unpurged_realms() {
            self.engine.admin().close_realm(&realm);
            self.keep_purging(realm);
        }
    }

    /// Makes a realm, with what the project's files bring.
    pub async fn create(
        self: &Arc<Self>,
        maker: Maker,
        name: String,
    ) -> Result<RealmRecord, RealmRefusal> {
        let keeper = self.clone();
        let making = async move {
            let record = keeper.identity.create_realm(&maker, &name).await?;
            if let Err(refusal) = keeper.furnish(&record.name).await {
                let realm = &record.name;
                let error = &refusal.message;
                tracing::warn!(%realm, %error, "the realm lacks something until the next start");
            }
            Ok::<_, RealmRefusal>(record)
        };
        self.to_its_end(making).await
    }

    /// Gives a new realm what the files bring, what is stored for it, and the sinks of its events.
    /// Stored providers come first: files may name their tools.
    async fn furnish(&self, realm: &RealmId) -> Result<(), Refusal> {
        if let Some(begin) = self.sinks.get() {
            begin(realm.clone()).await?;
        }
        if let Some(gateway) = self.gateway.get() {
            let left_out = gateway.begin_realm(realm).await?;
            left_out.iter().for_each(|warning| tracing::warn!(%realm, "{warning}"));
        }
        if let Some(records) = &self.records {
            let wrong = records.begin(realm).await;
            wrong.iter().for_each(|mistake| tracing::warn!(%realm, "{mistake}"));
        }
        let left_out = self.files.bring(&self.engine, realm).await?;
        left_out.iter().for_each(|warning| tracing::warn!("{warning}"));
        Ok(())
    }

    /// Removes a realm: no request enters it once this returns, and nothing moves in it.
    pub async fn remove(
        self: &Arc<Self>,
        maker: Maker,
        name: String,
    ) -> Result<RealmRecord, RealmRefusal> {
        let keeper = self.clone();
        let removing = async move {
            let record = keeper.identity.remove_realm(&maker, &name).await?;
            // Also where it was removed before: a purge that runs twice does no harm.
            if record.removed.as_ref().is_some_and(|removal| !removal.purged) {
                keeper.engine.admin().close_realm(&record.name);
                if let Some(gateway) = keeper.gateway.get() {
                    // Before what their logins brought is removed: they could keep more of it.
                    gateway.end_realm(&record.name).await;
                }
                keeper.keep_purging(record.name.clone());
            }
            Ok::<_, RealmRefusal>(record)
        };
        self.to_its_end(removing).await
    }

    /// Does something in a task of its own, even if the one who asked does not wait for it.
    async fn to_its_end(
        &self,
        work: impl Future<Output = Result<RealmRecord, RealmRefusal>> + Send + 'static,
    ) -> Result<RealmRecord, RealmRefusal> {
        let (done, answer) = oneshot::channel();
        let working = async move {
            // The one who asked may be gone.
            let _ = done.send(work.await);
        };
        self.spawn.task("change of realms", Box::pin(working));
        answer.await.unwrap_or(Err(RealmRefusal::Store(StoreError::Closed)))
    }

    fn keep_purging(self: &Arc<Self>, realm: RealmId) {
        let keeper = self.clone();
        let purging = async move {
            loop {
                match keeper.purge(&realm).await {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(StoreError::Closed) => return,
                    Err(error) => {
                        tracing::warn!(%realm, %error, "a part of the removed realm stays for now");
                        keeper.engine.clock().sleep_ms(RETRY_MS).await;
                    }
                }
            }
            tracing::info!(%realm, "nothing is left of the removed realm but its audit");
        };
        self.spawn.task("purge of a realm", Box::pin(purging));
    }

    /// Removes some of what a realm owned; whether something may be left.
    async fn purge(&self, realm: &RealmId) -> Result<bool, StoreError> {
        if self.store.purge_realm(realm).await? || self.blobs.purge(realm).await? {
            return Ok(true);
        }
        if let Some(records) = &self.records {
            records.purge(realm).await?;
        }
        let logins = self.vault.remove_all(&format!("{realm}/")).await;
        logins.map_err(|error| StoreError::Failed(error.to_string()))?;
        self.identity.note_purged(realm).await?;
        Ok(false)
    }
}
