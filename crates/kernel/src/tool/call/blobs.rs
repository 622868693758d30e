//! Blobs of one call: those that its tool writes piece by piece, and those that it may read. So an
//! output can be larger than memory.

use super::ToolError;
use crate::values::datum::BlobRef;
use crate::values::ids::ContentHash;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Bytes on their way, piece by piece.
pub type Pieces<'a> = BoxStream<'a, Result<Vec<u8>, ToolError>>;

/// Why a blob could not be put or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BlobError {
    /// No one would ever name what it puts.
    #[error("a call that is not recorded has no blobs")]
    NotRecorded,
    /// The call neither put it nor was given it.
    #[error("the call was not given blob `{0}`")]
    NotGiven(ContentHash),
    /// It has more bytes than it may; nothing was kept.
    #[error("it has more than {0} bytes")]
    TooLarge(u64),
    /// Its pieces broke off, and this is why; nothing was kept.
    #[error("it broke off: {}", .0.fault)]
    BrokenOff(Box<ToolError>),
    /// The store could not do it.
    #[error("{0}")]
    Failed(String),
}

/// Keeps the blobs of one call.
pub trait KeepBlobs: Send + Sync {
    /// Stores what comes, of at most so many bytes.
    fn put<'a>(
        &'a self,
        pieces: Pieces<'a>,
        bytes_max: u64,
    ) -> BoxFuture<'a, Result<BlobRef, BlobError>>;
    /// Reads a part of a blob that the call may read.
    fn get<'a>(
        &'a self,
        hash: &'a ContentHash,
        part: Range<u64>,
    ) -> BoxFuture<'a, Result<Pieces<'static>, BlobError>>;
    /// Whether the call put it.
    fn has_put(&self, hash: &ContentHash) -> bool;
}

/// The blobs of one call; none where it is not recorded.
#[derive(Clone, Default)]
pub struct CallBlobs {
    keeper: Option<Arc<dyn KeepBlobs>>,
    inline_bytes_max: usize,
    bytes_max: u64,
}

impl CallBlobs {
    /// Those that this one keeps. A value of more than `inline_bytes_max` is kept as a blob in any
    /// case, and a blob has at most `bytes_max`.
    pub fn new(keeper: Arc<dyn KeepBlobs>, inline_bytes_max: usize, bytes_max: u64) -> Self {
        Self { keeper: Some(keeper), inline_bytes_max, bytes_max }
    }

    /// The same, of at most so many bytes each.
    #[must_use]
    pub fn at_most(self, bytes: u64) -> Self {
        Self { bytes_max: self.bytes_max.min(bytes), ..self }
    }

    /// How large an output may be before it is worth a blob; none where the call has no blobs.
    pub fn inline_bytes_max(&self) -> Option<usize> {
        self.keeper.as_ref().map(|_| self.inline_bytes_max)
    }

    /// How many bytes each of them may have.
    pub fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// Stores what comes. It is held while the call runs; after that, what is recorded of the call
    /// must name it, or it goes.
    pub async fn put(&self, pieces: Pieces<'_>) -> Result<BlobRef, BlobError> {
        match &self.keeper {
            Some(keeper) => keeper.put(pieces, self.bytes_max).await,
            None => Err(BlobError::NotRecorded),
        }
    }

    /// Reads a part of a blob, or all of it: one that the call put, or that its arguments name.
    pub async fn get(
        &self,
        blob: &BlobRef,
        part: Range<u64>,
    ) -> Result<Pieces<'static>, BlobError> {
        match &self.keeper {
            Some(keeper) => keeper.get(&blob.hash, part).await,
            None => Err(BlobError::NotRecorded),
        }
    }

    pub fn has_put(&self, blob: &BlobRef) -> bool {
        self.keeper.as_ref().is_some_and(|keeper| keeper.has_put(&blob.hash))
    }
}

impl fmt::Debug for CallBlobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallBlobs").field("kept", &self.keeper.is_some()).finish()
    }
}
