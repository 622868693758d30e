//! Marks of the sessions that a process works on, in a small file that outlives the process. They
//! are not synced: they are for the death of a process, which the system's cache survives.

use crate::locks::held;
use kernel::contracts::{CrashMarks, Suspect};
use kernel::values::ids::SessionId;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Mutex;

/// How many stretches of work are marked at the same time: about one for each thread that drives.
const PLACES: usize = 64;
/// The size of one place: a session's id, or zeros.
const BYTES: usize = 16;
/// Behind all places, for each: the claims of its session.
const CLAIMS_BYTES: usize = 4;
const NAME: &str = "working";

/// The marks of one data folder.
pub(crate) struct FileMarks {
    file: File,
    places: Mutex<MarkTable>,
    left: Vec<Suspect>,
}

/// What stands in the places.
struct MarkTable {
    taken: [bool; PLACES],
    /// The marks that the process before left, by place, each until it is settled.
    left: BTreeMap<usize, SessionId>,
}

impl FileMarks {
    /// Reads what the process before left. Its marks keep their places until they are settled: the
    /// process may die again before that is done.
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(folder.join(NAME))?;
        let mut places = MarkTable { taken: [false; PLACES], left: BTreeMap::new() };
        let mut left = Vec::new();
        let mut bytes = [0; BYTES];
        for (place, taken) in places.taken.iter_mut().enumerate() {
            let read = file.read_exact_at(&mut bytes, (place * BYTES) as u64);
            let id = u128::from_be_bytes(bytes);
            *taken = read.is_ok() && id != 0;
            if *taken {
                places.left.insert(place, SessionId(id));
                left.push(Suspect { session: SessionId(id), claims: claims_at(&file, place) });
            }
        }
        Ok(Self { file, places: Mutex::new(places), left })
    }

    /// Whether it could be written. One that could not costs a suspicion, and nothing else.
    fn write(&self, place: usize, session: SessionId) -> bool {
        self.file.write_all_at(&session.0.to_be_bytes(), (place * BYTES) as u64).is_ok()
    }

    fn write_claims(&self, place: usize, claims: u32) -> bool {
        self.file.write_all_at(&claims.to_be_bytes(), claims_offset(place)).is_ok()
    }
}

fn claims_offset(place: usize) -> u64 {
    (PLACES * BYTES + place * CLAIMS_BYTES) as u64
}

fn claims_at(file: &File, place: usize) -> Option<u32> {
    let mut bytes = [0; CLAIMS_BYTES];
    file.read_exact_at(&mut bytes, claims_offset(place)).ok()?;
    Some(u32::from_be_bytes(bytes))
}

impl CrashMarks for FileMarks {
    fn begin(&self, session: SessionId, claims: u32) -> Option<usize> {
        let mut places = held(&self.places);
        let free = places.taken.iter().position(|taken| !taken)?;
        // The id is last: it makes the place a mark.
        places.taken[free] = self.write_claims(free, claims) && self.write(free, session);
        places.taken[free].then_some(free)
    }

    fn end(&self, mark: usize) {
        let mut places = held(&self.places);
        places.taken[mark] = !self.write(mark, SessionId(0));
    }

    fn suspects(&self) -> Vec<Suspect> {
        self.left.clone()
    }

    fn settle(&self, session: SessionId) {
        // This process may have marks of the session too: they end with their stretch of work.
        let mut settled = Vec::new();
        held(&self.places).left.retain(|place, left| {
            let stays = *left != session;
            if !stays {
                settled.push(*place);
            }
            stays
        });
        settled.into_iter().for_each(|place| self.end(place));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suspects(folder: &Path) -> Vec<(u128, Option<u32>)> {
        let marks = FileMarks::open(folder).unwrap();
        marks.suspects().into_iter().map(|left| (left.session.0, left.claims)).collect()
    }

    #[test]
    fn a_crash_mark_outlives_its_process_until_settled() {
        let folder = tempfile::tempdir().unwrap();
        let one = SessionId(1);
        let two = SessionId(2);
        {
            let marks = FileMarks::open(folder.path()).unwrap();
            assert_eq!(marks.suspects(), []);
            let mark = marks.begin(one, 1).unwrap();
            marks.begin(two, 3).unwrap();
            marks.end(mark);
        }
        for _ in 0..2 {
            let left = suspects(folder.path());
            assert_eq!(left, [(2, Some(3))], "the second process died before it was settled");
        }
        let marks = FileMarks::open(folder.path()).unwrap();
        marks.settle(two);
        assert_eq!(suspects(folder.path()), []);
    }

    #[test]
    fn settling_removes_marks_of_the_previous_process_only() {
        let folder = tempfile::tempdir().unwrap();
        let one = SessionId(1);
        let two = SessionId(2);
        {
            let marks = FileMarks::open(folder.path()).unwrap();
            marks.begin(one, 1).unwrap();
            marks.begin(two, 1).unwrap();
        }
        let marks = FileMarks::open(folder.path()).unwrap();
        marks.settle(one);
        let mark = marks.begin(two, 2).unwrap();
        assert_eq!(mark, 0, "the new mark stands before the one that was left");
        marks.settle(two);
        assert_eq!(suspects(folder.path()), [(2, Some(2))], "the new one stays");
        marks.end(mark);
        assert_eq!(suspects(folder.path()), []);
    }

    #[test]
    fn work_beyond_the_marks_capacity_is_unmarked() {
        let folder = tempfile::tempdir().unwrap();
        let marks = FileMarks::open(folder.path()).unwrap();
        let taken = (1..=PLACES as u128).filter_map(|id| marks.begin(SessionId(id), 1)).count();
        assert_eq!((taken, marks.begin(SessionId(99), 1)), (PLACES, None));
    }
}
