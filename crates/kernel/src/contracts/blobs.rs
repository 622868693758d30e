//! The contract of blob storage: put, read, hold, sweep.

use super::{Read, StoreError};
use crate::values::datum::BlobRef;
use crate::values::ids::{CallId, ContentHash, Millis, RealmId};
use futures::stream::{BoxStream, TryStreamExt};
use std::ops::Range;

/// All bytes of a blob.
pub const WHOLE: Range<u64> = 0..u64::MAX;

/// A blob that is read piece by piece.
pub struct OpenBlob {
    /// The size of all of it, whatever part is read.
    pub bytes: u64,
    /// The pieces of the part in order. If that is the whole blob, the last one comes only if the
    /// hash of all of them is right.
    pub pieces: BoxStream<'static, Result<Vec<u8>, StoreError>>,
}

impl OpenBlob {
    /// All of it at once; `TooLarge` if the blob has more than so many bytes.
    pub async fn whole(self, bytes_max: u64) -> Result<Vec<u8>, StoreError> {
        if self.bytes > bytes_max {
            return Err(StoreError::TooLarge(bytes_max));
        }
        let mut pieces = self.pieces;
        // Most have one piece, which is not copied.
        let mut whole = pieces.try_next().await?.unwrap_or_default();
        while let Some(piece) = pieces.try_next().await? {
            whole.extend_from_slice(&piece);
        }
        Ok(whole)
    }
}

/// A blob on its way into the store, piece by piece.
pub struct Incoming<'a> {
    /// Its pieces. They end with `BrokenOff` if they are cut short.
    pub pieces: BoxStream<'a, Result<Vec<u8>, StoreError>>,
    /// How many bytes it may have.
    pub bytes_max: u64,
    /// How many it must have, where that is known before.
    pub bytes: Option<u64>,
}

/// A holder that keeps blobs from being swept, beside the journals of sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Kind of holder; `session` stands for the journals, whose appends say which blobs they hold.
    pub kind: &'static str,
    /// Which of them, within its realm.
    pub id: String,
}

impl Holder {
    /// The kind of a call that runs. It lasts no longer than its process: what it held is let go of
    /// when the store is opened again.
    pub const CALL: &'static str = "call";

    /// A call that runs.
    pub fn call(call: CallId) -> Self {
        Self { kind: Self::CALL, id: call.to_string() }
    }
}

/// Large values, by the hash of their content, per realm.
pub trait Blobs: Send + Sync {
    /// Stores bytes; the blob and its folder are synced on return.
    fn put<'a>(&'a self, realm: &'a RealmId, bytes: Vec<u8>) -> Read<'a, BlobRef>;
    /// Stores what comes piece by piece, without ever holding all of it. What breaks off, or is
    /// larger than it may be, leaves nothing behind.
    fn put_pieces<'a>(&'a self, realm: &'a RealmId, incoming: Incoming<'a>) -> Read<'a, BlobRef>;
    /// Opens it to be read piece by piece, all of it or a part: it may be large, and its reader
    /// slow. What of the part lies behind the blob's end is left out.
    fn open<'a>(
        &'a self,
        realm: &'a RealmId,
        hash: &'a ContentHash,
        part: Range<u64>,
    ) -> Read<'a, Option<OpenBlob>>;
    /// Reads all of it at once, however large it is; its hash is checked.
    fn get<'a>(&'a self, realm: &'a RealmId, hash: &'a ContentHash) -> Read<'a, Option<Vec<u8>>> {
        Box::pin(async move {
            match self.open(realm, hash, WHOLE).await? {
                Some(open) => open.whole(u64::MAX).await.map(Some),
                None => Ok(None),
            }
        })
    }
    /// Holds blobs that were put, beside those that it holds already: the sweep leaves them.
    /// Durable on return.
    fn hold<'a>(
        &'a self,
        realm: &'a RealmId,
        holder: &'a Holder,
        blobs: &'a [ContentHash],
    ) -> Read<'a, ()>;
    /// Lets go of all that it holds; what no one else holds goes after the time of grace. Durable
    /// on return.
    fn release<'a>(&'a self, realm: &'a RealmId, holder: &'a Holder) -> Read<'a, ()>;
    /// Removes it, no matter who holds it.
    fn delete<'a>(&'a self, realm: &'a RealmId, hash: &'a ContentHash) -> Read<'a, ()>;
    /// Removes some blobs of a realm that was removed, no matter who holds them. Whether some may
    /// be left.
    fn purge<'a>(&'a self, realm: &'a RealmId) -> Read<'a, bool>;
    /// Looks at so many blobs that were put, or lost a holder, before this, and removes those that
    /// no one holds. How many it looked at, and how many it removed.
    fn sweep(&self, before: Millis, limit: usize) -> Read<'_, (usize, u64)>;
}
