//! Errors of a job, and what they affect: the job alone, or every job that shares its transaction.

use kernel::contracts::StoreError;
use rusqlite::{Error, ErrorCode, ffi};

pub(crate) type Result<T, E = JobError> = std::result::Result<T, E>;

/// Why a job could not be done.
#[derive(Debug)]
pub(crate) enum JobError {
    /// Refused before the job wrote anything.
    Refused(StoreError),
    /// Refused after the job had written something.
    Midway(StoreError),
    Sql(Error),
}

impl JobError {
    /// Stored data is unreadable.
    pub(crate) fn unreadable(what: impl Into<String>) -> Self {
        Self::Refused(StoreError::Unreadable(what.into()))
    }

    /// The same of a job that had written something by then.
    pub(crate) fn midway(self) -> Self {
        match self {
            Self::Refused(error) => Self::Midway(error),
            other => other,
        }
    }

    pub(crate) fn into_error(self) -> StoreError {
        match self {
            Self::Refused(error) | Self::Midway(error) => error,
            Self::Sql(error) => store_error(&error),
        }
    }
}

impl From<Error> for JobError {
    fn from(error: Error) -> Self {
        Self::Sql(error)
    }
}

/// Whether an error concerns only the statement that met it. Full disks, IO errors and the like
/// concern everyone: SQLite may even have ended the transaction.
pub(crate) fn is_local(error: &Error) -> bool {
    match error.sqlite_error_code() {
        Some(code) => matches!(
            code,
            ErrorCode::ConstraintViolation | ErrorCode::TooBig | ErrorCode::TypeMismatch
        ),
        // A value that does not convert, a statement that does not parse.
        None => true,
    }
}

/// Whether something is there already that there is one of.
pub(crate) fn is_taken(error: &Error) -> bool {
    error.sqlite_extended_error_code() == Some(ffi::SQLITE_CONSTRAINT_UNIQUE)
}

/// Whether a sync failed: it is never tried again, since the pages may already count as written.
pub(crate) fn is_failed_sync(error: &Error) -> bool {
    matches!(
        error.sqlite_extended_error_code(),
        Some(ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC)
    )
}

/// Whether a checkpoint failed in a way that must not be tried again: by a sync, or by a read or a
/// write that the disk did not do. Commits may still work then, on a log that only grows.
pub(crate) fn is_failed_checkpoint(error: &Error) -> bool {
    is_failed_sync(error)
        || (error.sqlite_error_code() == Some(ErrorCode::SystemIoFailure) && !is_full(error))
}

/// Whether there was no room. SQLite calls it an IO error where the index of its log found none.
pub(crate) fn is_full(error: &Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DiskFull)
        || error.sqlite_extended_error_code() == Some(ffi::SQLITE_IOERR_SHMSIZE)
}

/// Whether what is stored is no database any more.
pub(crate) fn is_damaged(error: &Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// A SQLite error in the store's words.
pub(crate) fn store_error(error: &Error) -> StoreError {
    if is_full(error) {
        return StoreError::Full;
    }
    if is_damaged(error) {
        let what = format!("the database is damaged: {error}; restore a backup");
        return StoreError::Unreadable(what);
    }
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy,
        _ => StoreError::Failed(error.to_string()),
    }
}
