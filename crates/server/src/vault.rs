//! What logins at other servers bring, kept in the data folder: one file for each entry, sealed
//! with the server's secret and bound to the entry's key, so that a file can neither be read nor
//! changed nor put in the place of another. It is replaced as a whole: a crash leaves the old one
//! or the new one.

use crate::secret::private_file;
use kernel::contracts::Entropy;
use kernel::fault::Fault;
use kernel::ids::ContentHash;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;
use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tools::remote::{Secret, Vault};

/// The vault's folder in the data folder.
pub(crate) const FOLDER: &str = "vault";
/// How a file's name ends that is not whole yet.
const UNFINISHED: &str = ".new";
/// The first byte of a file: how it is sealed.
const FORM: u8 = 1;
/// Each file has a key of its own, made of the secret and this many random bytes.
const SALT_BYTES: usize = 16;
/// What the secret is used for here: keys for other purposes differ.
const PURPOSE: &[u8] = b"waypost vault";
/// The size of an entry: far more than tokens and registrations need.
const VALUE_BYTES_MAX: usize = 256 * 1024;
/// The size of a file: with form, salt and tag.
const FILE_BYTES_MAX: usize = VALUE_BYTES_MAX + 1 + SALT_BYTES + 16;

/// The vault of one data folder, whose holder we are.
pub(crate) struct FileVault {
    folder: PathBuf,
    secret: hmac::Key,
    entropy: Arc<dyn Entropy>,
    /// The files that cannot be opened and were told of.
    told: Mutex<BTreeSet<String>>,
}

impl FileVault {
    /// The vault in this data folder. Nothing is made before something is kept.
    pub(crate) fn new(data: &Path, key: [u8; 32], entropy: Arc<dyn Entropy>) -> Self {
        let folder = data.join(FOLDER);
        sweep(&folder);
        let secret = hmac::Key::new(hmac::HMAC_SHA256, &key);
        Self { folder, secret, entropy, told: Mutex::default() }
    }

    /// Whether anything was ever kept in this data folder.
    pub(crate) fn is_there(data: &Path) -> bool {
        data.join(FOLDER).is_dir()
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

    /// Writes a file under another name first, and makes its own name durable.
    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.make_folder()?;
        let random = self.entropy.bits();
        let unfinished = self.folder.join(format!("{name}.{random:032x}{UNFINISHED}"));
        let written = write_whole(&unfinished, bytes)
            .and_then(|()| fs::rename(&unfinished, self.folder.join(name)));
        if let Err(error) = written {
            // It may not even be there; what is left behind is swept at the next start.
            let _ = fs::remove_file(&unfinished);
            return Err(error);
        }
        sync_folder(&self.folder)
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

    fn sealed(&self, key: &str, value: &str) -> Option<Vec<u8>> {
        let salt = self.entropy.bits().to_be_bytes();
        let mut sealed = value.as_bytes().to_vec();
        let own = self.key(&salt)?;
        own.seal_in_place_append_tag(nonce(), Aad::from(bound(key)), &mut sealed).ok()?;
        let mut bytes = vec![FORM];
        bytes.extend_from_slice(&salt);
        bytes.append(&mut sealed);
        Some(bytes)
    }

    fn opened(&self, key: &str, bytes: &[u8]) -> Option<Secret> {
        let rest = bytes.strip_prefix(&[FORM])?;
        let (salt, sealed) = rest.split_first_chunk::<SALT_BYTES>()?;
        let mut sealed = sealed.to_vec();
        let own = self.key(salt)?;
        let plain = own.open_in_place(nonce(), Aad::from(bound(key)), &mut sealed).ok()?;
        std::str::from_utf8(plain).ok().map(Secret::from)
    }

    fn key(&self, salt: &[u8; SALT_BYTES]) -> Option<LessSafeKey> {
        let mut context = hmac::Context::with_key(&self.secret);
        context.update(PURPOSE);
        context.update(salt);
        let own = context.sign();
        UnboundKey::new(&CHACHA20_POLY1305, own.as_ref()).ok().map(LessSafeKey::new)
    }

    /// Tells once that a file is no good to us.
    fn tell_closed(&self, name: &str) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.insert(name.to_owned()) {
            tracing::warn!(
                file = %self.folder.join(name).display(),
                "what a login brought cannot be opened, and counts as gone: the secret key is \
                 another one, or the file was changed; restore the key, or log in again"
            );
        }
    }

    fn failed(&self, what: &str, why: &io::Error) -> Fault {
        let folder = self.folder.display();
        Fault::new(
            "VaultFailed",
            format!("what logins bring cannot be {what} in `{folder}`: {why}"),
        )
        .hint("check the rights of the folder and the room on its disk")
    }
}

impl Vault for FileVault {
    fn read(&self, key: &str) -> Result<Option<Secret>, Fault> {
        let name = name_of(key);
        let Some(bytes) = self.bytes(&name).map_err(|why| self.failed("read", &why))? else {
            return Ok(None);
        };
        let opened = self.opened(key, &bytes);
        if opened.is_none() {
            self.tell_closed(&name);
        }
        Ok(opened)
    }

    fn write(&self, key: &str, value: &Secret) -> Result<(), Fault> {
        let value = value.expose();
        if value.len() > VALUE_BYTES_MAX {
            let what = format!(
                "a login brought {} bytes, and at most {VALUE_BYTES_MAX} are kept",
                value.len()
            );
            return Err(Fault::new("VaultTooLarge", what)
                .hint("ask the server's operator for smaller tokens"));
        }
        let sealed = self.sealed(key, value).ok_or_else(|| {
            // A key of the right length and a text of this size cannot fail; if they did, nothing
            // may be written unsealed.
            Fault::new("VaultFailed", "what a login brought could not be sealed")
        })?;
        let name = name_of(key);
        self.replace(&name, &sealed).map_err(|why| self.failed("written", &why))?;
        self.told.lock().unwrap_or_else(PoisonError::into_inner).remove(&name);
        Ok(())
    }

    fn remove(&self, key: &str) -> Result<(), Fault> {
        let removed = match fs::remove_file(self.folder.join(name_of(key))) {
            Ok(()) => sync_folder(&self.folder),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        };
        removed.map_err(|why| self.failed("removed", &why))
    }
}

/// The name of an entry's file: keys have letters that no file name has.
fn name_of(key: &str) -> String {
    ContentHash::of(key.as_bytes()).as_str().to_owned()
}

/// What a file is good for: this form and this key.
fn bound(key: &str) -> Vec<u8> {
    let mut bytes = vec![FORM];
    bytes.extend_from_slice(key.as_bytes());
    bytes
}

/// Each key seals one text only, so one nonce does for all.
fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; NONCE_LEN])
}

fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = private_file(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Makes the names in a folder durable. Only Unix has, and needs, a sync of folders.
fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// Removes what a crash left behind: it is nobody's.
fn sweep(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().ends_with(UNFINISHED) {
            // One that stays is in nobody's way.
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::clock::SystemEntropy;
    use tempfile::TempDir;

    fn vault(data: &TempDir, key: u8) -> FileVault {
        FileVault::new(data.path(), [key; 32], Arc::new(SystemEntropy))
    }

    fn read(vault: &FileVault, key: &str) -> Option<String> {
        vault.read(key).unwrap().map(|secret| secret.expose().to_owned())
    }

    fn files(data: &TempDir) -> Vec<PathBuf> {
        let entries = fs::read_dir(data.path().join(FOLDER)).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    #[test]
    fn what_is_kept_is_there_after_a_restart_until_it_is_removed() {
        let data = tempfile::tempdir().unwrap();
        assert!(!FileVault::is_there(data.path()));
        let first = vault(&data, 7);
        assert_eq!(read(&first, "tokens/hub"), None);
        assert!(!FileVault::is_there(data.path()), "nothing is made by looking");
        first.remove("tokens/hub").unwrap();
        first.write("tokens/hub", &Secret::new("one")).unwrap();
        first.write("tokens/hub", &Secret::new("two \u{e9}")).unwrap();
        first.write("client/../hub", &Secret::new("")).unwrap();
        let again = vault(&data, 7);
        assert_eq!(read(&again, "tokens/hub").as_deref(), Some("two \u{e9}"));
        assert_eq!(read(&again, "client/../hub").as_deref(), Some(""));
        assert_eq!(files(&data).len(), 2);
        again.remove("tokens/hub").unwrap();
        again.remove("tokens/hub").unwrap();
        assert_eq!(read(&again, "tokens/hub"), None);
    }

    #[test]
    fn a_file_tells_nothing_and_cannot_be_changed_or_moved() {
        let data = tempfile::tempdir().unwrap();
        let vault = vault(&data, 7);
        vault.write("tokens/hub", &Secret::new("hunter2 hunter2")).unwrap();
        let path = files(&data).remove(0);
        let bytes = fs::read(&path).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains("hunter2"));
        assert!(!path.display().to_string().contains("hub"));
        vault.write("tokens/hub", &Secret::new("hunter2 hunter2")).unwrap();
        assert_ne!(fs::read(&path).unwrap(), bytes, "the same value is sealed anew");
        for index in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[index] ^= 1;
            fs::write(&path, &changed).unwrap();
            assert_eq!(read(&vault, "tokens/hub"), None, "byte {index}");
            fs::write(&path, &bytes[..index]).unwrap();
            assert_eq!(read(&vault, "tokens/hub"), None, "cut at {index}");
        }
        fs::write(&path, &bytes).unwrap();
        vault.write("tokens/other", &Secret::new("x")).unwrap();
        let other = vault.folder.join(name_of("tokens/other"));
        fs::copy(&path, &other).unwrap();
        assert_eq!(read(&vault, "tokens/other"), None, "a file in the place of another");
        assert_eq!(read(&vault, "tokens/hub").as_deref(), Some("hunter2 hunter2"));
    }

    #[test]
    fn with_another_key_all_is_gone_and_comes_back_with_the_right_one() {
        let data = tempfile::tempdir().unwrap();
        vault(&data, 7).write("a", &Secret::new("x")).unwrap();
        let other = vault(&data, 8);
        assert_eq!(read(&other, "a"), None);
        assert_eq!(read(&other, "a"), None);
        assert_eq!(other.told.lock().unwrap().len(), 1, "told once");
        assert_eq!(read(&vault(&data, 7), "a").as_deref(), Some("x"));
        other.write("a", &Secret::new("y")).unwrap();
        assert_eq!(read(&other, "a").as_deref(), Some("y"));
        assert!(other.told.lock().unwrap().is_empty());
    }

    #[test]
    fn entries_are_bounded_and_leftovers_are_swept() {
        let data = tempfile::tempdir().unwrap();
        let first = vault(&data, 7);
        let most = "x".repeat(VALUE_BYTES_MAX);
        first.write("a", &Secret::new(most.as_str())).unwrap();
        assert_eq!(read(&first, "a").map(|value| value.len()), Some(VALUE_BYTES_MAX));
        let fault = first.write("a", &Secret::new(format!("{most}x"))).unwrap_err();
        assert!(fault.message.contains("at most") && !fault.message.contains("xx"), "{fault}");
        fs::write(first.folder.join(name_of("b")), vec![FORM; FILE_BYTES_MAX + 9]).unwrap();
        assert_eq!(read(&first, "b"), None);
        let left = first.folder.join(format!("{}.0{UNFINISHED}", name_of("a")));
        fs::write(&left, "half").unwrap();
        let again = vault(&data, 7);
        assert!(!left.exists() && read(&again, "a").is_some());
    }

    #[cfg(unix)]
    #[test]
    fn others_can_neither_read_nor_list_it() {
        use std::os::unix::fs::PermissionsExt;
        let data = tempfile::tempdir().unwrap();
        let vault = vault(&data, 7);
        vault.write("a", &Secret::new("x")).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&vault.folder), mode(&files(&data)[0])), (0o700, 0o600));
    }

    #[test]
    fn a_folder_that_cannot_be_used_is_told() {
        let data = tempfile::tempdir().unwrap();
        fs::write(data.path().join(FOLDER), "a file").unwrap();
        let vault = vault(&data, 7);
        let fault = vault.write("a", &Secret::new("hunter2")).unwrap_err();
        assert_eq!(fault.name, "VaultFailed");
        assert!(fault.hint.is_some() && !fault.message.contains("hunter2"), "{fault}");
    }
}
