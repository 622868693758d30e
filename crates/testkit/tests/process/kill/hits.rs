//! Which sessions the kills hit while the server worked on them. The marks in the data folder say
//! so; a run may be given up only after as many hits as the server allows.

use kernel::limits::Limits;
use kernel::values::fault::Fault;
use kernel::values::ids::SessionId;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use testkit::kill::Ask;

/// The file of the marks: places of a session's id each, and behind all of them the claims of each.
const MARKS: &str = "working";
const PLACES: usize = 64;
const ID_BYTES: usize = 16;
const CLAIMS_BYTES: usize = 4;

/// What the kills hit.
#[derive(Default)]
pub(super) struct Hits {
    /// What the last kill left. A mark that was there before it belongs to an earlier kill.
    left: BTreeSet<[u8; ID_BYTES + CLAIMS_BYTES]>,
    of: BTreeMap<String, u32>,
}

impl Hits {
    /// Looks at what a server left that was killed just now.
    pub(super) fn look(&mut self, data: &Path) {
        // A server that was killed at once may have made no file yet.
        let bytes = fs::read(data.join(MARKS)).unwrap_or_default();
        let left: BTreeSet<_> = (0..PLACES).filter_map(|place| mark_at(&bytes, place)).collect();
        // One kill may leave several marks of a session.
        let hit: BTreeSet<&[u8]> =
            left.difference(&self.left).map(|mark| &mark[..ID_BYTES]).collect();
        for bytes in hit {
            let mut id = [0; ID_BYTES];
            id.copy_from_slice(bytes);
            let session = SessionId(u128::from_be_bytes(id)).to_string();
            *self.of.entry(session).or_default() += 1;
        }
        self.left = left;
    }

    /// A healthy run is given up only where the kills hit it as if it had ended the server.
    pub(super) fn check(&self, ask: &Ask) {
        if !Self::is_given_up(ask) {
            return;
        }
        let (hits, max) = (self.of.get(&ask.session.id), Limits::default().recover_attempts_max);
        let hits = hits.copied().unwrap_or_default();
        assert!(hits >= max, "given up after {hits} kills that hit it, {max} are allowed: {ask:?}");
    }

    /// Whether the server says that this run ended it again and again.
    pub(super) fn is_given_up(ask: &Ask) -> bool {
        ask.fault.as_ref().is_some_and(|fault| fault["name"] == Fault::RECOVERY_GAVE_UP)
    }

    /// How many kills hit a session that the server worked on.
    pub(super) fn count(&self) -> u32 {
        self.of.values().sum()
    }
}

fn mark_at(bytes: &[u8], place: usize) -> Option<[u8; ID_BYTES + CLAIMS_BYTES]> {
    let id = bytes.get(place * ID_BYTES..(place + 1) * ID_BYTES)?;
    let claims = PLACES * ID_BYTES + place * CLAIMS_BYTES;
    let claims = bytes.get(claims..claims + CLAIMS_BYTES)?;
    if id.iter().all(|byte| *byte == 0) {
        return None;
    }
    let mut mark = [0; ID_BYTES + CLAIMS_BYTES];
    mark[..ID_BYTES].copy_from_slice(id);
    mark[ID_BYTES..].copy_from_slice(claims);
    Some(mark)
}
