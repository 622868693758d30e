//! The login that calendars may want first. It stands for one at a real provider: a person opens a
//! page, says yes there, and from then on the calendars can be used. What was asked and what came
//! of it is in a file, so that it outlives the process.

use crate::keep::{make_folder, write_whole};
use kernel::contracts::Entropy;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const FILE: &str = "login.json";

/// The login of the calendars' owner.
pub struct Login {
    path: PathBuf,
    entropy: Arc<dyn Entropy>,
    /// One after the other reads and writes the file.
    turn: Mutex<()>,
}

/// What is remembered.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Remembered {
    /// By what the login is known that was asked for.
    elicitation_id: Option<String>,
    /// Where its pages are.
    address: Option<SocketAddr>,
    /// Whether it was done.
    connected: bool,
}

/// A page that must be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Page {
    /// By what its login is known.
    pub(super) id: String,
    pub(super) url: String,
}

impl Login {
    /// The login that is remembered in this folder.
    pub(crate) fn open(folder: &Path, entropy: Arc<dyn Entropy>) -> io::Result<Self> {
        make_folder(folder)?;
        let login = Self { path: folder.join(FILE), entropy, turn: Mutex::default() };
        // What cannot be read is reported at once, not at the first call.
        login.remembered().map(|_| login)
    }

    /// Where its pages were the last time.
    pub fn address(&self) -> Option<SocketAddr> {
        let _turn = self.turn();
        self.remembered().ok()?.address
    }

    /// Its pages are here from now on.
    pub fn listens_at(&self, address: SocketAddr) -> io::Result<()> {
        let _turn = self.turn();
        self.remember(&Remembered { address: Some(address), ..self.remembered()? })
    }

    /// Whether someone is asked for a login that is known by this.
    pub fn is_asked_for(&self, elicitation_id: &str) -> bool {
        let _turn = self.turn();
        let asked = self.remembered().ok().and_then(|remembered| remembered.elicitation_id);
        asked.is_some_and(|asked| asked == elicitation_id)
    }

    /// The person said yes; whether that is a login that was asked for.
    pub fn done(&self, elicitation_id: &str) -> io::Result<bool> {
        let _turn = self.turn();
        let remembered = self.remembered()?;
        if remembered.elicitation_id.as_deref() != Some(elicitation_id) {
            return Ok(false);
        }
        self.remember(&Remembered { connected: true, ..remembered })?;
        Ok(true)
    }

    /// The page that must be opened before a calendar can be used; none once that was done. It is
    /// the same one until then.
    pub(super) fn page(&self) -> io::Result<Option<Page>> {
        let _turn = self.turn();
        let mut remembered = self.remembered()?;
        if remembered.connected {
            return Ok(None);
        }
        let id = match &remembered.elicitation_id {
            Some(id) => id.clone(),
            None => {
                let id = format!("{:032x}", self.entropy.bits());
                remembered.elicitation_id = Some(id.clone());
                self.remember(&remembered)?;
                id
            }
        };
        let address = remembered.address.ok_or_else(|| io::Error::other("it has no pages yet"))?;
        Ok(Some(Page { url: format!("http://{address}/auth/connect/{id}"), id }))
    }

    fn remembered(&self) -> io::Result<Remembered> {
        match fs::read(&self.path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| {
                let what = format!("`{}` cannot be read: {error}", self.path.display());
                io::Error::new(ErrorKind::InvalidData, what)
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Remembered::default()),
            Err(error) => Err(error),
        }
    }

    fn remember(&self, remembered: &Remembered) -> io::Result<()> {
        write_whole(&self.path, serde_json::to_string(remembered)?.as_bytes())
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Counting(Mutex<u128>);

    impl Entropy for Counting {
        fn bits(&self) -> u128 {
            let mut count = self.0.lock().unwrap();
            *count += 1;
            *count
        }
    }

    fn login(folder: &Path) -> Login {
        Login::open(folder, Arc::new(Counting(Mutex::new(0)))).unwrap()
    }

    #[test]
    fn a_login_is_asked_for_until_it_is_done_and_outlives_the_process() {
        let folder = tempfile::tempdir().unwrap();
        let first = login(folder.path());
        assert!(first.page().is_err(), "nobody serves its pages");
        first.listens_at(SocketAddr::from(([127, 0, 0, 1], 4000))).unwrap();
        let page = first.page().unwrap().unwrap();
        assert_eq!(page.url, format!("http://127.0.0.1:4000/auth/connect/{}", page.id));
        assert_eq!(first.page().unwrap(), Some(page.clone()), "the same page");

        let second = login(folder.path());
        assert_eq!(second.address(), Some(SocketAddr::from(([127, 0, 0, 1], 4000))));
        assert!(second.is_asked_for(&page.id) && !second.is_asked_for("x"));
        assert!(!second.done("x").unwrap());
        assert!(second.page().unwrap().is_some());
        assert!(second.done(&page.id).unwrap());
        assert_eq!((first.page().unwrap(), login(folder.path()).page().unwrap()), (None, None));
    }

    #[test]
    fn an_unreadable_file_is_reported_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        fs::write(&path, "{\"connected\": 1}").unwrap();
        let opened = Login::open(folder.path(), Arc::new(Counting(Mutex::new(0))));
        assert!(opened.is_err_and(|error| error.to_string().contains(FILE)));
        assert_eq!(fs::read_to_string(&path).unwrap(), "{\"connected\": 1}");
    }
}
