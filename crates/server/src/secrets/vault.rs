//! What logins at other servers bring, kept in the data folder: one file for each entry, sealed
//! with the server's secret and bound to the entry's key, so that a file can neither be read nor
//! changed nor put in the place of another. It is replaced as a whole: a crash leaves the old one
//! or the new one. One thread touches the files, so that no one waits for a disk who needs not, and
//! nothing comes between a look at a version and the write that expects it.

use futures::future::ready;
use kernel::contracts::{
    Clock, Entropy, Spawn, Vault, VaultCondition, VaultEntry, VaultError, VaultFuture, VaultLease,
};
use kernel::values::fault::Fault;
use kernel::values::ids::ContentHash;
use kernel::values::secret::Secret;
use outbound::seal::{ENVELOPE_BYTES, Envelopes, Keyring, Unopened};
use project::atomic_file::{FileAccess, UNFINISHED, replace_file, sync_folder};
use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};
use upstreams::LeaseRegistry;

/// The vault's folder in the data folder.
pub(crate) const FOLDER: &str = "vault";
/// What stands between the segments of a key in the name of its file. An unfinished file ends with
/// a dot and more, so that it is another character.
const BETWEEN: char = '-';
/// How many characters of its hash stand for a segment: so few that names stay short, so many that
/// no two segments have the same.
const MARK_CHARS: usize = 32;
/// The first byte of a file: how it is sealed. An envelope follows, which has the version of the
/// entry before its value.
const FORM: u8 = 3;
/// What the secret is used for here: keys for other purposes differ.
const PURPOSE: &[u8] = b"waypost vault";
/// The size of an entry: far more than tokens and registrations need.
const VALUE_BYTES_MAX: usize = 256 * 1024;
/// How many bytes the version of an entry takes.
const VERSION_BYTES: usize = 8;
/// The size of a file: with form, envelope and version.
const FILE_BYTES_MAX: usize = 1 + ENVELOPE_BYTES + VERSION_BYTES + VALUE_BYTES_MAX;
/// How much waits for the vault's thread; further callers wait for a place.
const QUEUE_MAX: usize = 64;

/// The vault of one data folder, whose holder we are.
pub(crate) struct FileVault {
    queue: mpsc::Sender<Work>,
    leases: LeaseRegistry,
}

/// Time, randomness and tasks of a machine.
#[derive(Clone)]
pub(crate) struct System {
    /// Says when leases end.
    pub(crate) clock: Arc<dyn Clock>,
    /// Salt.
    pub(crate) entropy: Arc<dyn Entropy>,
    /// Starts the vault's thread.
    pub(crate) spawn: Arc<dyn Spawn>,
}

type Work = Box<dyn FnOnce(&mut Files) + Send>;

impl FileVault {
    /// The vault in this data folder, with its thread. Nothing is made in the folder before
    /// something is kept.
    pub(crate) fn open(data: &Path, keys: impl Into<Keyring>, system: System) -> Self {
        let System { clock, entropy, spawn } = system;
        let mut files = Files::new(data, keys, entropy);
        let (queue, mut waiting) = mpsc::channel::<Work>(QUEUE_MAX);
        let serve = async move {
            while let Some(work) = waiting.recv().await {
                work(&mut files);
            }
        };
        spawn.critical_thread("vault", Box::pin(serve));
        Self { queue, leases: LeaseRegistry::new(clock) }
    }

    /// Whether anything was ever kept in this data folder.
    pub(crate) fn is_there(data: &Path) -> bool {
        data.join(FOLDER).is_dir()
    }

    /// Does this on the vault's thread. It is done to its end, whether or not someone waits.
    fn perform<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Files) -> Result<T, VaultError> + Send + 'static,
    ) -> VaultFuture<'static, T> {
        let queue = self.queue.clone();
        Box::pin(async move {
            let ended = || Fault::new("VaultFailed", "the thread of the vault has ended");
            let (answer, result) = oneshot::channel();
            let work: Work = Box::new(move |files: &mut Files| {
                // The one who asked may be gone.
                let _ = answer.send(work(files));
            });
            queue.send(work).await.map_err(|_| ended())?;
            result.await.map_err(|_| ended())?
        })
    }
}

impl Vault for FileVault {
    fn read<'a>(&'a self, key: &'a str) -> VaultFuture<'a, Option<VaultEntry>> {
        let key = key.to_owned();
        self.perform(move |files| files.read(&key))
    }

    fn write<'a>(
        &'a self,
        key: &'a str,
        value: &'a Secret,
        expected: VaultCondition,
    ) -> VaultFuture<'a, u64> {
        let key = key.to_owned();
        let value = value.clone();
        self.perform(move |files| files.write(&key, &value, expected))
    }

    fn remove<'a>(&'a self, key: &'a str) -> VaultFuture<'a, ()> {
        let key = key.to_owned();
        self.perform(move |files| files.remove(&key))
    }

    fn remove_all<'a>(&'a self, under: &'a str) -> VaultFuture<'a, ()> {
        let under = under.to_owned();
        self.perform(move |files| files.remove_all(&under))
    }

    fn hold<'a>(&'a self, key: &'a str, ms: u64) -> VaultFuture<'a, Option<VaultLease>> {
        Box::pin(ready(Ok(self.leases.acquire(key, ms))))
    }
}

/// The files, as the one thread that touches them sees them.
struct Files {
    folder: PathBuf,
    envelopes: Envelopes,
    entropy: Arc<dyn Entropy>,
    /// The newest version that was read or written, of any entry: one that was removed does not
    /// begin again with a version that someone may remember.
    newest: u64,
    /// The files that cannot be opened and were reported.
    reported: BTreeSet<String>,
}

impl Files {
    fn new(data: &Path, keys: impl Into<Keyring>, entropy: Arc<dyn Entropy>) -> Self {
        let folder = data.join(FOLDER);
        sweep(&folder);
        let envelopes = Envelopes::new(keys, PURPOSE);
        Self { folder, envelopes, entropy, newest: 0, reported: BTreeSet::new() }
    }

    fn read(&mut self, key: &str) -> Result<Option<VaultEntry>, VaultError> {
        let name = name_of(key);
        let Some(bytes) = self.bytes(&name).map_err(|why| self.failed("read", &why))? else {
            return Ok(None);
        };
        let opened = self.opened(key, &bytes);
        match &opened {
            Ok(kept) => self.newest = self.newest.max(kept.version),
            Err(why) => self.tell_closed(&name, why),
        }
        Ok(opened.ok())
    }

    fn write(
        &mut self,
        key: &str,
        value: &Secret,
        expected: VaultCondition,
    ) -> Result<u64, VaultError> {
        let value = value.expose();
        if value.len() > VALUE_BYTES_MAX {
            let what = format!(
                "a login brought {} bytes, and at most {VALUE_BYTES_MAX} are kept",
                value.len()
            );
            let hint = "ask the server's operator for smaller tokens";
            return Err(Fault::new("VaultTooLarge", what).hint(hint).into());
        }
        let version = match self.read(key) {
            Ok(kept) => kept.map(|kept| kept.version),
            // What cannot be read can still be replaced.
            Err(_) if expected == VaultCondition::Any => None,
            Err(error) => return Err(error),
        };
        if !expected.allows(version) {
            return Err(VaultError::Conflict(key.to_owned()));
        }
        let next = self.newest.saturating_add(1);
        let sealed = self.sealed(key, value, next).ok_or_else(|| {
            // A key of the right length and a text of this size cannot fail; if they did, nothing
            // may be written unsealed.
            Fault::new("VaultFailed", "what a login brought could not be sealed")
        })?;
        let name = name_of(key);
        self.newest = next;
        self.replace(&name, &sealed).map_err(|why| self.failed("written", &why))?;
        self.reported.remove(&name);
        Ok(next)
    }

    fn remove(&mut self, key: &str) -> Result<(), VaultError> {
        let removed = match fs::remove_file(self.folder.join(name_of(key))) {
            Ok(()) => sync_folder(&self.folder),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        };
        removed.map_err(|why| self.failed("removed", &why))
    }

    fn remove_all(&mut self, under: &str) -> Result<(), VaultError> {
        let removed = self.names_under(under).and_then(|names| {
            names.iter().try_for_each(|name| fs::remove_file(self.folder.join(name)))?;
            if names.is_empty() { Ok(()) } else { sync_folder(&self.folder) }
        });
        removed.map_err(|why| self.failed("removed", &why))
    }

    /// The names of the files whose keys are under these segments, of which `*` is any. One that is
    /// not whole yet counts: no other thread writes.
    fn names_under(&self, under: &str) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let wanted: Vec<Option<String>> = under
            .trim_end_matches('/')
            .split('/')
            .map(|segment| (segment != "*").then(|| mark_of(segment)))
            .collect();
        let is_under = |name: &str| {
            let marks: Vec<&str> = name.split(BETWEEN).collect();
            let fits = |(mark, wanted): (&&str, &Option<String>)| {
                wanted.as_ref().is_none_or(|wanted| *wanted == **mark)
            };
            marks.len() > wanted.len() && marks.iter().zip(&wanted).all(fits)
        };
        let mut names = Vec::new();
        for entry in entries {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if is_under(&name) {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// The contents of a file; more than can be one of ours is cut.
    fn bytes(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let file = match File::open(self.folder.join(name)) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.make_folder()?;
        replace_file(&self.folder.join(name), bytes, FileAccess::Private)
    }

    fn make_folder(&self) -> io::Result<()> {
        if self.folder.is_dir() {
            return Ok(());
        }
        let mut builder = DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        match builder.create(&self.folder) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => {}
        }
        self.folder.parent().map_or(Ok(()), sync_folder)
    }

    fn sealed(&self, key: &str, value: &str, version: u64) -> Option<Vec<u8>> {
        let mut plain = version.to_be_bytes().to_vec();
        plain.extend_from_slice(value.as_bytes());
        let mut bytes = vec![FORM];
        bytes.append(&mut self.envelopes.seal(&bound(key), self.entropy.bits(), &plain)?);
        Some(bytes)
    }

    fn opened(&self, key: &str, bytes: &[u8]) -> Result<VaultEntry, Unopened> {
        let (&form, envelope) = bytes.split_first().ok_or(Unopened::Changed)?;
        if form != FORM {
            return Err(Unopened::Changed);
        }
        let plain = self.envelopes.open(&bound(key), envelope)?;
        let (version, value) =
            plain.split_first_chunk::<VERSION_BYTES>().ok_or(Unopened::Changed)?;
        let value = std::str::from_utf8(value).map_err(|_| Unopened::Changed)?;
        Ok(VaultEntry { value: Secret::from(value), version: u64::from_be_bytes(*version) })
    }

    /// Tells once that a file is no good to us.
    fn tell_closed(&mut self, name: &str, why: &Unopened) {
        if self.reported.insert(name.to_owned()) {
            tracing::warn!(
                file = %self.folder.join(name).display(),
                "what a login brought cannot be opened, and counts as gone: {why}; restore the \
                 key, or log in again"
            );
        }
    }

    fn failed(&self, what: &str, why: &io::Error) -> VaultError {
        let folder = self.folder.display();
        let message = format!("what logins bring cannot be {what} in `{folder}`: {why}");
        let hint = "check the rights of the folder and the room on its disk";
        Fault::new("VaultFailed", message).hint(hint).into()
    }
}

/// The name of an entry's file: keys have letters that no file name has. The segments that a key
/// begins with stand before it, so that all that is under one can be found.
fn name_of(key: &str) -> String {
    let whole = ContentHash::of(key.as_bytes());
    let Some((segments, _)) = key.rsplit_once('/') else { return whole.as_str().to_owned() };
    let marks = segments.split('/').map(|segment| format!("{}{BETWEEN}", mark_of(segment)));
    marks.chain([whole.as_str().to_owned()]).collect()
}

/// A segment of keys in the names of files.
fn mark_of(segment: &str) -> String {
    ContentHash::of(segment.as_bytes()).as_str().chars().take(MARK_CHARS).collect()
}

/// What an envelope is good for: a file of this form and this key.
fn bound(key: &str) -> Vec<u8> {
    [[FORM].as_slice(), key.as_bytes()].concat()
}

/// Removes what a crash left behind: it is no one's.
fn sweep(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().ends_with(UNFINISHED) {
            // One that stays is in no one's way.
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::system::clock::{SystemClock, SystemEntropy, TokioSpawn};
    use futures::future::join_all;
    use tempfile::TempDir;

    fn vault(data: &TempDir, key: u8) -> Files {
        Files::new(data.path(), [key; 32], Arc::new(SystemEntropy))
    }

    /// The same after the secret was replaced.
    fn with_new_secret(data: &TempDir, new: u8, old: u8) -> Files {
        let keys = Keyring::new([new; 32]).with_older([old; 32]);
        Files::new(data.path(), keys, Arc::new(SystemEntropy))
    }

    fn read(vault: &mut Files, key: &str) -> Option<String> {
        vault.read(key).unwrap().map(|kept| kept.value.expose().to_owned())
    }

    fn write(vault: &mut Files, key: &str, value: &str) -> u64 {
        vault.write(key, &value.into(), VaultCondition::Any).unwrap()
    }

    fn fault(result: Result<u64, VaultError>) -> Fault {
        Fault::from(result.unwrap_err())
    }

    fn files(data: &TempDir) -> Vec<PathBuf> {
        let entries = fs::read_dir(data.path().join(FOLDER)).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    #[test]
    fn an_entry_outlasts_a_restart_until_it_is_removed() {
        let data = tempfile::tempdir().unwrap();
        assert!(!FileVault::is_there(data.path()));
        let mut first = vault(&data, 7);
        assert_eq!(read(&mut first, "tokens/hub"), None);
        assert!(!FileVault::is_there(data.path()), "nothing is made by looking");
        first.remove("tokens/hub").unwrap();
        write(&mut first, "tokens/hub", "one");
        write(&mut first, "tokens/hub", "two \u{e9}");
        write(&mut first, "client/../hub", "");
        let mut again = vault(&data, 7);
        assert_eq!(read(&mut again, "tokens/hub").as_deref(), Some("two \u{e9}"));
        assert_eq!(read(&mut again, "client/../hub").as_deref(), Some(""));
        assert_eq!(files(&data).len(), 2);
        again.remove("tokens/hub").unwrap();
        again.remove("tokens/hub").unwrap();
        assert_eq!(read(&mut again, "tokens/hub"), None);
    }

    #[test]
    fn all_entries_under_a_prefix_are_removed_together() {
        let data = tempfile::tempdir().unwrap();
        let all = ["t", "acme/t", "acme/crm/t", "acme/crm/bob/t", "beta/crm/bob/t", "acmes/crm/t"];
        let left = |under: &str| -> Vec<&str> {
            let mut before = vault(&data, 7);
            for key in all {
                write(&mut before, key, "x");
            }
            before.remove_all(under).unwrap();
            let mut after = vault(&data, 7);
            all.into_iter().filter(|key| read(&mut after, key).is_some()).collect()
        };
        assert_eq!(left("acme/"), ["t", "beta/crm/bob/t", "acmes/crm/t"]);
        assert_eq!(left("acme/crm/"), ["t", "acme/t", "beta/crm/bob/t", "acmes/crm/t"]);
        assert_eq!(left("*/*/bob/"), ["t", "acme/t", "acme/crm/t", "acmes/crm/t"]);
        let names = files(&data);
        let is_told = |path: &PathBuf| path.display().to_string().contains("acme");
        assert!(!names.iter().any(is_told), "{names:?}");
        let nothing = tempfile::tempdir().unwrap();
        vault(&nothing, 7).remove_all("acme/").unwrap();
    }

    #[test]
    fn a_file_tells_nothing_and_cannot_be_changed_or_moved() {
        let data = tempfile::tempdir().unwrap();
        let mut vault = vault(&data, 7);
        write(&mut vault, "tokens/hub", "hunter2 hunter2");
        let path = files(&data).remove(0);
        let bytes = fs::read(&path).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains("hunter2"));
        assert!(!path.display().to_string().contains("hub"));
        write(&mut vault, "tokens/hub", "hunter2 hunter2");
        assert_ne!(fs::read(&path).unwrap(), bytes, "the same value is sealed anew");
        for index in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[index] ^= 1;
            fs::write(&path, &changed).unwrap();
            assert_eq!(read(&mut vault, "tokens/hub"), None, "byte {index}");
            fs::write(&path, &bytes[..index]).unwrap();
            assert_eq!(read(&mut vault, "tokens/hub"), None, "cut at {index}");
        }
        fs::write(&path, &bytes).unwrap();
        write(&mut vault, "tokens/other", "x");
        let other = vault.folder.join(name_of("tokens/other"));
        fs::copy(&path, &other).unwrap();
        assert_eq!(read(&mut vault, "tokens/other"), None, "a file in the place of another");
        assert_eq!(read(&mut vault, "tokens/hub").as_deref(), Some("hunter2 hunter2"));
    }

    #[test]
    fn entries_are_readable_with_their_own_key_alone() {
        let data = tempfile::tempdir().unwrap();
        write(&mut vault(&data, 7), "a", "x");
        let mut other = vault(&data, 8);
        assert_eq!(read(&mut other, "a"), None);
        assert_eq!(read(&mut other, "a"), None);
        assert_eq!(other.reported.len(), 1, "told once");
        assert_eq!(read(&mut vault(&data, 7), "a").as_deref(), Some("x"));
        write(&mut other, "a", "y");
        assert_eq!(read(&mut other, "a").as_deref(), Some("y"));
        assert!(other.reported.is_empty());
    }

    #[test]
    fn entries_are_bounded_and_leftovers_are_swept() {
        let data = tempfile::tempdir().unwrap();
        let mut first = vault(&data, 7);
        let most = "x".repeat(VALUE_BYTES_MAX);
        write(&mut first, "a", &most);
        assert_eq!(read(&mut first, "a").map(|value| value.len()), Some(VALUE_BYTES_MAX));
        let fault = fault(first.write("a", &format!("{most}x").into(), VaultCondition::Any));
        assert!(fault.message.contains("at most") && !fault.message.contains("xx"), "{fault}");
        fs::write(first.folder.join(name_of("b")), vec![FORM; FILE_BYTES_MAX + 9]).unwrap();
        assert_eq!(read(&mut first, "b"), None);
        let left = first.folder.join(format!("{}.0{UNFINISHED}", name_of("a")));
        fs::write(&left, "half").unwrap();
        let mut again = vault(&data, 7);
        assert!(!left.exists() && read(&mut again, "a").is_some());
    }

    #[cfg(unix)]
    #[test]
    fn other_users_can_neither_read_nor_list_the_vault() {
        use std::os::unix::fs::PermissionsExt;
        let data = tempfile::tempdir().unwrap();
        let mut vault = vault(&data, 7);
        write(&mut vault, "a", "x");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&vault.folder), mode(&files(&data)[0])), (0o700, 0o600));
    }

    #[test]
    fn an_unusable_vault_folder_is_an_error() {
        let data = tempfile::tempdir().unwrap();
        fs::write(data.path().join(FOLDER), "a file").unwrap();
        let mut vault = vault(&data, 7);
        let fault = fault(vault.write("a", &"hunter2".into(), VaultCondition::Any));
        assert_eq!(fault.name, "VaultFailed");
        assert!(fault.hint.is_some() && !fault.message.contains("hunter2"), "{fault}");
    }

    #[test]
    fn a_write_over_what_another_wrote_is_a_conflict() {
        let data = tempfile::tempdir().unwrap();
        let mut vault = vault(&data, 7);
        let conflict = Err(VaultError::Conflict("a".to_owned()));
        assert_eq!(vault.write("a", &"zero".into(), VaultCondition::Version(0)), conflict);
        let first = vault.write("a", &"one".into(), VaultCondition::Absent).unwrap();
        assert_eq!(vault.write("a", &"other".into(), VaultCondition::Absent), conflict);
        let second = vault.write("a", &"two".into(), VaultCondition::Version(first)).unwrap();
        assert_eq!(vault.write("a", &"other".into(), VaultCondition::Version(first)), conflict);
        assert_eq!(read(&mut vault, "a").as_deref(), Some("two"));
        vault.remove("a").unwrap();
        assert_eq!(vault.write("a", &"other".into(), VaultCondition::Version(second)), conflict);
        let third = vault.write("a", &"three".into(), VaultCondition::Absent).unwrap();
        assert!(first < second && second < third, "no version comes again");
        assert_eq!(files(&data).len(), 1);
    }

    #[test]
    fn versions_outlast_a_restart_and_a_removal_after_it() {
        let data = tempfile::tempdir().unwrap();
        let written = (0..3).fold(0, |_, _| write(&mut vault(&data, 7), "a", "x"));
        let mut again = vault(&data, 7);
        assert_eq!(again.read("a").unwrap().unwrap().version, written);
        again.remove("a").unwrap();
        assert!(write(&mut again, "a", "y") > written);
    }

    #[test]
    fn a_new_secret_opens_what_the_old_one_sealed_and_seals_the_next_change() {
        let data = tempfile::tempdir().unwrap();
        write(&mut vault(&data, 7), "a", "x");
        write(&mut vault(&data, 7), "b", "y");
        let mut replaced = with_new_secret(&data, 9, 7);
        assert_eq!(read(&mut replaced, "a").as_deref(), Some("x"));
        write(&mut replaced, "a", "z");
        // The old secret is gone: so is what nobody wrote again.
        let mut alone = vault(&data, 9);
        assert_eq!(read(&mut alone, "a").as_deref(), Some("z"));
        assert_eq!(read(&mut alone, "b"), None);
        let sealed = fs::read(alone.folder.join(name_of("b"))).unwrap();
        let why = alone.opened("b", &sealed).unwrap_err();
        assert_eq!(
            why.to_string(),
            "it was sealed with the secret key `29bfed58`, which this server does not have"
        );
    }

    fn open(data: &TempDir) -> FileVault {
        let spawn = TokioSpawn::new(tokio::runtime::Handle::current());
        let system = System {
            clock: Arc::new(SystemClock),
            entropy: Arc::new(SystemEntropy),
            spawn: Arc::new(spawn),
        };
        FileVault::open(data.path(), [7; 32], system)
    }

    #[tokio::test]
    async fn of_many_writes_over_one_version_one_succeeds() {
        let data = tempfile::tempdir().unwrap();
        let vault = open(&data);
        let first = vault.write("a", &"first".into(), VaultCondition::Absent).await.unwrap();
        let values: Vec<Secret> = (0..20).map(|number| format!("value {number}").into()).collect();
        let writes =
            values.iter().map(|value| vault.write("a", value, VaultCondition::Version(first)));
        let written = join_all(writes).await;
        let winners: Vec<usize> =
            (0..values.len()).filter(|number| written[*number].is_ok()).collect();
        let [winner] = winners[..] else { panic!("{written:?}") };
        let kept = vault.read("a").await.unwrap().unwrap();
        assert_eq!(
            (kept.value, Ok(kept.version)),
            (values[winner].clone(), written[winner].clone())
        );
        let conflict = Err(VaultError::Conflict("a".to_owned()));
        assert_eq!(written.iter().filter(|written| **written == conflict).count(), 19);
        vault.remove("a").await.unwrap();
        assert_eq!(vault.read("a").await, Ok(None));
    }

    #[tokio::test]
    async fn a_key_is_held_by_one_at_a_time() {
        let data = tempfile::tempdir().unwrap();
        let vault = open(&data);
        let hold = vault.hold("a", 60_000).await.unwrap();
        assert!(hold.is_some() && vault.hold("a", 60_000).await.unwrap().is_none());
        drop(hold);
        assert!(vault.hold("a", 60_000).await.unwrap().is_some());
    }
}
