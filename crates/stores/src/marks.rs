//! Marks of what a process works on, in a small file that outlives it. They are written and never
//! synced: what they are for is the death of a process, which leaves the system's cache alone.

use kernel::contracts::CrashMarks;
use kernel::ids::SessionId;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many stretches of work are marked at the same time: about one for each thread that drives.
const PLACES: usize = 64;
/// The size of one place: a session's id, or zeros.
const BYTES: usize = 16;
const NAME: &str = "working";

/// The marks of one data folder.
pub(crate) struct FileMarks {
    file: File,
    places: Mutex<[Option<SessionId>; PLACES]>,
    left: Vec<SessionId>,
}

impl FileMarks {
    /// Reads what the process before left. Its marks keep their places until they are settled: the
    /// process may die again before that is done.
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(folder.join(NAME))?;
        let mut places = [None; PLACES];
        let mut bytes = [0; BYTES];
        for (number, place) in places.iter_mut().enumerate() {
            let read = file.read_exact_at(&mut bytes, (number * BYTES) as u64);
            let id = u128::from_be_bytes(bytes);
            *place = (read.is_ok() && id != 0).then_some(SessionId(id));
        }
        let left = places.iter().flatten().copied().collect();
        Ok(Self { file, places: Mutex::new(places), left })
    }

    fn places(&self) -> MutexGuard<'_, [Option<SessionId>; PLACES]> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it could be written. One that could not costs a suspicion, and nothing else.
    fn write(&self, place: usize, session: SessionId) -> bool {
        self.file.write_all_at(&session.0.to_be_bytes(), (place * BYTES) as u64).is_ok()
    }
}

impl CrashMarks for FileMarks {
    fn begin(&self, session: SessionId) -> Option<usize> {
        let mut places = self.places();
        let free = places.iter().position(Option::is_none)?;
        let written = self.write(free, session);
        written.then(|| places[free] = Some(session)).map(|()| free)
    }

    fn end(&self, mark: usize) {
        let mut places = self.places();
        if self.write(mark, SessionId(0)) {
            places[mark] = None;
        }
    }

    fn suspects(&self) -> Vec<SessionId> {
        self.left.clone()
    }

    fn settle(&self, session: SessionId) {
        let found = self.places().iter().position(|place| *place == Some(session));
        if let Some(place) = found {
            self.end(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_outlives_its_process_until_it_is_settled() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (SessionId(1), SessionId(2));
        {
            let marks = FileMarks::open(folder.path()).unwrap();
            assert_eq!(marks.suspects(), []);
            let mark = marks.begin(one).unwrap();
            marks.begin(two).unwrap();
            marks.end(mark);
        }
        for _ in 0..2 {
            let marks = FileMarks::open(folder.path()).unwrap();
            assert_eq!(marks.suspects(), [two], "the second process died before it was settled");
        }
        let marks = FileMarks::open(folder.path()).unwrap();
        marks.settle(two);
        assert_eq!(FileMarks::open(folder.path()).unwrap().suspects(), []);
    }

    #[test]
    fn more_work_than_places_goes_unmarked() {
        let folder = tempfile::tempdir().unwrap();
        let marks = FileMarks::open(folder.path()).unwrap();
        let taken = (1..=PLACES as u128).filter_map(|id| marks.begin(SessionId(id))).count();
        assert_eq!((taken, marks.begin(SessionId(99))), (PLACES, None));
    }
}
