//! Blobs: the values in them, and those that calls put.

use crate::refusal::Result;
use crate::shared::Shared;
use crate::system::locks::lock;
use futures::future::BoxFuture;
use futures::stream::{StreamExt, TryStreamExt};
use kernel::contracts::{Blobs, Holder, Incoming, Spawn, StoreError, WHOLE};
use kernel::tool::call::{BlobError, CallBlobs, KeepBlobs, Pieces, ToolError};
use kernel::values::datum::{BlobRef, blobs_named};
use kernel::values::ids::{CallId, ContentHash, RealmId};
use serde_json::Value;
use std::collections::BTreeSet;
use std::ops::Range;
use std::slice;
use std::sync::{Arc, Mutex, PoisonError};

impl Shared {
    /// A blob's value, if there is one. A blob that is too large to be read as one is its URI.
    pub(crate) async fn blob_value(
        &self,
        realm: &RealmId,
        hash: &ContentHash,
    ) -> Result<Option<Value>> {
        let Some(open) = self.blobs.open(realm, hash, WHOLE).await? else { return Ok(None) };
        if open.bytes > self.limits.blob_value_bytes_max {
            let blob = BlobRef { hash: hash.clone(), bytes: open.bytes };
            return Ok(Some(Value::String(blob.uri())));
        }
        let bytes = open.whole(u64::MAX).await?;
        Ok(serde_json::from_slice(&bytes).ok())
    }

    /// What a recorded call may do with blobs.
    pub(crate) fn blobs_of_call(
        &self,
        realm: &RealmId,
        call: CallId,
        arguments: &Arc<Value>,
    ) -> CallBlobs {
        let keeper = Keeper {
            blobs: self.blobs.clone(),
            spawn: self.spawn.clone(),
            realm: realm.clone(),
            call,
            arguments: arguments.clone(),
            put: Mutex::default(),
        };
        let limits = &self.limits;
        let inline_bytes_max = limits.context_inline_bytes_max;
        CallBlobs::new(Arc::new(keeper), inline_bytes_max, limits.blob_bytes_max)
    }
}

/// The blobs of one call. They are held until this is dropped with the call. From then on they are
/// loose, and the time of grace is longer than it takes to record the outcome of the call.
struct Keeper {
    blobs: Arc<dyn Blobs>,
    spawn: Arc<dyn Spawn>,
    realm: RealmId,
    call: CallId,
    /// It may read what these name.
    arguments: Arc<Value>,
    put: Mutex<BTreeSet<ContentHash>>,
}

impl Keeper {
    async fn keep(&self, pieces: Pieces<'_>, bytes_max: u64) -> Result<BlobRef, BlobError> {
        let broken: Mutex<Option<ToolError>> = Mutex::default();
        let pieces = pieces.map_err(|error| {
            *lock(&broken) = Some(error);
            StoreError::BrokenOff
        });
        let incoming = Incoming { pieces: pieces.boxed(), bytes_max, bytes: None };
        let put = self.blobs.put_pieces(&self.realm, incoming).await;
        let broken = broken.into_inner().unwrap_or_else(PoisonError::into_inner);
        let blob = match (put, broken) {
            (Ok(blob), _) => blob,
            (Err(_), Some(error)) => return Err(BlobError::BrokenOff(Box::new(error))),
            (Err(StoreError::TooLarge(most)), None) => return Err(BlobError::TooLarge(most)),
            (Err(error), None) => return Err(failed(error)),
        };
        lock(&self.put).insert(blob.hash.clone());
        let holder = Holder::call(self.call);
        let held = self.blobs.hold(&self.realm, &holder, slice::from_ref(&blob.hash)).await;
        held.map_err(failed)?;
        Ok(blob)
    }

    fn may_read(&self, hash: &ContentHash) -> bool {
        self.has_put(hash) || blobs_named(&self.arguments.to_string()).contains(hash)
    }
}

impl KeepBlobs for Keeper {
    fn put<'a>(
        &'a self,
        pieces: Pieces<'a>,
        bytes_max: u64,
    ) -> BoxFuture<'a, Result<BlobRef, BlobError>> {
        Box::pin(self.keep(pieces, bytes_max))
    }

    fn get<'a>(
        &'a self,
        hash: &'a ContentHash,
        part: Range<u64>,
    ) -> BoxFuture<'a, Result<Pieces<'static>, BlobError>> {
        Box::pin(async move {
            let not_given = || BlobError::NotGiven(hash.clone());
            if !self.may_read(hash) {
                return Err(not_given());
            }
            let open = self.blobs.open(&self.realm, hash, part).await.map_err(failed)?;
            let open = open.ok_or_else(not_given)?;
            let lost = |error: StoreError| ToolError::failed("BlobLost", error.to_string());
            Ok(open.pieces.map_err(lost).boxed())
        })
    }

    fn has_put(&self, hash: &ContentHash) -> bool {
        lock(&self.put).contains(hash)
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if lock(&self.put).is_empty() {
            return;
        }
        let blobs = self.blobs.clone();
        let realm = self.realm.clone();
        let holder = Holder::call(self.call);
        let releasing = async move {
            match blobs.release(&realm, &holder).await {
                // What is not let go of now is when the store is opened again.
                Ok(()) | Err(StoreError::Closed) => {}
                Err(error) => {
                    tracing::warn!(%error, call = %holder.id, "blobs stay held until a restart");
                }
            }
        };
        self.spawn.task("blobs of a call", Box::pin(releasing));
    }
}

fn failed(error: StoreError) -> BlobError {
    BlobError::Failed(error.to_string())
}
