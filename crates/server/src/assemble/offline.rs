//! Parts of a data folder that no server uses now, for commands that work without one. No one else
//! can use the folder while they are held.

use super::access::{IdentitySources, known};
use super::error::{AssembleError, stored};
use super::platform::{store_parts, system};
use crate::secrets::chain::AuditKeys;
use crate::secrets::secret::keyring;
use crate::secrets::vault::FileVault;
use engine::system::clock::SystemClock;
use identity::Identity;
use identity::keys::Maker;
use kernel::contracts::{Clock, Vault};
use kernel::identity::grants::{Grants, RealmPattern};
use kernel::identity::key::ApiKey;
use kernel::identity::roles::{Role, Roles};
use kernel::limits::Limits;
use kernel::tool::call::Caller;
use project::realm::local_caller;
use std::path::Path;
use std::sync::Arc;
use stores::{FolderHold, OpenStore, StoreLocation};

/// The vault of a data folder: two who renew the same login take it from each other.
pub struct OfflineVault {
    /// What logins brought.
    pub vault: Arc<dyn Vault>,
    _hold: FolderHold,
}

impl OfflineVault {
    /// Takes the folder for as long as this lives, or says who has it; none where no one ever
    /// logged in. `given` is `WAYPOST_SECRET_KEY`.
    pub fn take(data: &Path, given: Option<&str>) -> Result<Option<Self>, AssembleError> {
        if !FileVault::is_there(data) {
            return Ok(None);
        }
        let hold = stores::hold(data, SystemClock.now())?;
        let keys = keyring(data, given)?;
        let vault = Arc::new(FileVault::open(data, &keys, system()));
        Ok(Some(Self { vault, _hold: hold }))
    }
}

/// The keys of a data folder that are good now, by id; the folder is released again. An
/// operator who restores a folder must know them.
pub async fn good_keys(data: &Path) -> Result<Vec<ApiKey>, AssembleError> {
    let system = system();
    let limits = Arc::new(Limits::default());
    let fatal = Arc::new(|why: String| tracing::error!("{why}"));
    let place = StoreLocation::Folder(data.to_owned());
    let opened = stores::open(&place, store_parts(&system, &limits, fatal))?;
    let keys = opened.api_keys.all().await;
    let closed = opened.store.close().await;
    let keys = keys.and_then(|keys| closed.map(|()| keys));
    let keys = keys.map_err(|error| stored(error.into()))?;
    let now = system.clock.now();
    let good = keys.into_iter().map(|stored| stored.key).filter(|key| key.check(now).is_ok());
    Ok(good.collect())
}

/// The keys of a data folder: the first key of a server is made before it starts.
pub struct OfflineKeys {
    identity: Arc<Identity>,
    _opened: OpenStore,
}

impl OfflineKeys {
    /// Takes the folder for as long as this lives, or says who has it; a new one is made ready.
    /// `given` is `WAYPOST_SECRET_KEY`.
    pub async fn take(data: &Path, given: Option<&str>) -> Result<Self, AssembleError> {
        let system = system();
        let limits = Arc::new(Limits::default());
        let fatal = Arc::new(|why: String| tracing::error!("{why}"));
        let place = StoreLocation::Folder(data.to_owned());
        let opened = stores::open(&place, store_parts(&system, &limits, fatal))?;
        // After the store: it makes the folder and holds it alone.
        let keys = keyring(data, given)?;
        opened.audit.begin(Arc::new(AuditKeys::new(&keys)));
        // Tokens of issuers are not taken here, and of principals only those that are stored are
        // known: the folder does not say where its project is.
        let by = IdentitySources::default();
        let identity = known(&opened, by, None, &keys, &system).await?;
        Ok(Self { identity, _opened: opened })
    }

    /// Makes, changes and lists them.
    pub fn identity(&self) -> Arc<Identity> {
        self.identity.clone()
    }

    /// As whom that is done: who can read the folder may do everything with it.
    pub fn maker(&self) -> Maker {
        let everywhere = RealmPattern::parse("*").ok();
        let grants = everywhere.map(|realms| Grants::one(realms, Roles::of(&[Role::Admin])));
        let Caller { subject, actor, makers, via, .. } = local_caller();
        Maker { subject, actor, key: None, makers, grants: grants.unwrap_or_default(), via }
    }
}
