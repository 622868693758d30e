//! The records of a data folder that no server uses, for changes of their types that a server must
//! not make by itself.

use super::error::{AssembleError, stored};
use super::platform::{store_parts, system};
use kernel::limits::Limits;
use query::records::requests::RecordLimits;
use query::records::type_change::{RecordStore, TypeChange, TypeChangeError, TypeReport};
use std::path::Path;
use std::sync::Arc;
use stores::{OpenStore, StoreLocation};

/// The records of a data folder. No one else can use the folder as long as this lives.
pub struct OfflineRecords {
    records: Arc<dyn RecordStore>,
    opened: OpenStore,
}

impl OfflineRecords {
    /// Takes the folder, or says who has it; none where it has no records.
    pub async fn take(data: &Path) -> Result<Option<Self>, AssembleError> {
        if !data.is_dir() {
            return Ok(None);
        }
        let system = system();
        let limits = Arc::new(Limits::default());
        let fatal = Arc::new(|why: String| tracing::error!("{why}"));
        let place = StoreLocation::Folder(data.to_owned());
        let opened = stores::open(&place, store_parts(&system, &limits, fatal))?;
        if !opened.records.exists() {
            opened.store.close().await.map_err(|error| stored(error.into()))?;
            return Ok(None);
        }
        let records = opened.records.open(RecordLimits::default())?;
        Ok(Some(Self { records, opened }))
    }

    /// Takes on these types, or says which records stand in the way; then nothing was changed.
    pub async fn change_types(&self, change: TypeChange) -> Result<TypeReport, TypeChangeError> {
        self.records.change_types(change).await
    }

    /// Writes what is queued, and releases the folder.
    pub async fn close(self) -> Result<(), AssembleError> {
        let records = self.records.close().await;
        let store = self.opened.store.close().await;
        records.map_err(|error| AssembleError::Stored(error.to_string()))?;
        store.map_err(|error| stored(error.into()))
    }
}
