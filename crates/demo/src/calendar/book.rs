//! The folder of calendars: one file for each, `primary.json`. A reader or writer holds all of
//! them, also before other processes, and a file changes as a whole or not at all. One that cannot be
//! read is reported and never written.

use super::event::Calendar;
use crate::keep::{make_folder, write_whole};
use kernel::tool::call::ToolError;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

const FOLDER: &str = "calendars";
const LOCK_FILE: &str = ".lock";
const EXTENSION: &str = "json";
/// Larger than any calendar that a person keeps.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

#[derive(Debug)]
pub(super) struct Book {
    folder: PathBuf,
}

impl Book {
    /// The calendars in this folder; it is made if it is not there.
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        let folder = folder.join(FOLDER);
        make_folder(&folder)?;
        Ok(Self { folder })
    }

    /// Waits until no one else holds it.
    pub(super) fn hold(&self) -> io::Result<Held<'_>> {
        let path = self.folder.join(LOCK_FILE);
        let lock = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
        lock.lock()?;
        Ok(Held { book: self, _lock: lock })
    }
}

/// The folder, held by us alone until this is dropped.
#[derive(Debug)]
pub(super) struct Held<'a> {
    book: &'a Book,
    _lock: File,
}

/// What a calendar is, beside its events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct About {
    /// Its id: the name of its file.
    pub(super) id: String,
    pub(super) name: String,
    pub(super) description: String,
}

impl Held<'_> {
    /// The ids of all calendars, in order.
    pub(super) fn ids(&self) -> io::Result<Vec<String>> {
        let mut ids = Vec::new();
        for entry in fs::read_dir(&self.book.folder)? {
            let path = entry?.path();
            let is_calendar = path.extension().is_some_and(|extension| extension == EXTENSION);
            if let Some(id) = path.file_stem().and_then(|stem| stem.to_str())
                && is_calendar
                && !id.starts_with('.')
            {
                ids.push(id.to_owned());
            }
        }
        ids.sort();
        Ok(ids)
    }

    /// What each calendar is. One that cannot be read is listed with the reason.
    pub(super) fn calendars(&self) -> Result<Vec<About>, ToolError> {
        let about = |id: String| match self.read(&id) {
            Ok(Calendar { name, description, events: _ }) => About { id, name, description },
            Err(error) => About { name: id.clone(), description: error.fault.message, id },
        };
        Ok(self.ids().map_err(|why| self.unusable(&why))?.into_iter().map(about).collect())
    }

    /// The id of the calendar that is meant: by its id, or by its name in whichever case.
    pub(super) fn find(&self, written: &str) -> Result<String, ToolError> {
        let all = self.calendars()?;
        let by_id = all.iter().find(|about| about.id == written);
        let by_name = || {
            let same = |text: &str| text.to_lowercase() == written.trim().to_lowercase();
            all.iter().find(|about| same(&about.id) || same(&about.name))
        };
        if let Some(about) = by_id.or_else(by_name) {
            return Ok(about.id.clone());
        }
        let ids: Vec<String> = all.iter().map(|about| format!("`{}`", about.id)).collect();
        let message = format!("there is no calendar `{}`", short(written));
        Err(ToolError::failed("CalendarNotFound", message)
            .hint(format!("the calendars are {}", ids.join(", "))))
    }

    pub(super) fn read(&self, id: &str) -> Result<Calendar, ToolError> {
        let path = self.path(id);
        let broken = |why: String| {
            let message = format!("calendar file `{}` cannot be read: {why}", path.display());
            ToolError::failed("CalendarBroken", message)
                .hint("mend it, or move it out of the folder; it was left as it is")
        };
        let bytes = fs::metadata(&path).map_err(|why| broken(why.to_string()))?.len();
        if bytes > FILE_BYTES_MAX {
            return Err(broken(format!("it has {bytes} bytes, more than {FILE_BYTES_MAX}")));
        }
        let bytes = fs::read(&path).map_err(|why| broken(why.to_string()))?;
        serde_json::from_slice(&bytes).map_err(|why| broken(why.to_string()))
    }

    /// Writes a calendar; it is on the disk on return.
    pub(super) fn write(&self, id: &str, calendar: &Calendar) -> Result<(), ToolError> {
        let path = self.path(id);
        let text = serde_json::to_vec_pretty(calendar).map_err(io::Error::from);
        text.and_then(|text| write_whole(&path, &text)).map_err(|why| {
            // It may be in its place, and only its folder not on the disk.
            let message = format!("calendar file `{}` cannot be written: {why}", path.display());
            ToolError::unknown("CalendarUnwritten", message)
                .hint("make room or mend the folder's rights, then look at the calendar")
        })
    }

    /// The folder cannot be used.
    pub(super) fn unusable(&self, why: &io::Error) -> ToolError {
        unusable(self.book, why)
    }

    fn path(&self, id: &str) -> PathBuf {
        self.book.folder.join(format!("{id}.{EXTENSION}"))
    }
}

/// The folder cannot be used.
pub(super) fn unusable(book: &Book, why: &io::Error) -> ToolError {
    let message = format!("the calendars in `{}` cannot be used: {why}", book.folder.display());
    ToolError::failed("CalendarBroken", message)
}

/// What someone wrote, or its beginning.
pub(super) fn short(text: &str) -> String {
    text.chars().take(80).collect()
}
