//! The server's own secret: what it hands out and takes back later is sealed with it. It lies in
//! the data folder, so that what was handed out before a restart is still good after it. It can be
//! replaced: the first secret of the file seals, and those after it still open what they sealed.

use engine::system::clock::SystemEntropy;
use kernel::contracts::Entropy;
use outbound::seal::{Keyring, SECRET_BYTES};
use project::atomic_file::{FileAccess, is_exposed, replace_file};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The secret's file in the data folder.
pub const SECRET_FILE: &str = "secret.key";

/// Why there is no secret.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The environment holds something else.
    #[error(
        "`WAYPOST_SECRET_KEY` must be 64 hexadecimal digits, with older keys behind it after \
         commas; `openssl rand -hex 32` makes one"
    )]
    Given,
    /// The file holds something else.
    #[error(
        "`{}` must hold 64 hexadecimal digits, with older keys below it, one on each line; restore \
         it, or remove it to let the server make another (what was handed out before is refused \
         then)", .0.display()
    )]
    Unreadable(PathBuf),
    /// Others may read the file.
    #[error("`{}` can be read by others; `chmod 600` it", .0.display())]
    Exposed(PathBuf),
    /// The file cannot be used.
    #[error("cannot use `{}`: {why}; check its rights", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        why: io::Error,
    },
}

/// The secrets: those given, else those in the data folder, where one is made when it is first
/// needed. The folder must be there, and ours alone: call this once the store is open.
pub fn keyring(data: &Path, given: Option<&str>) -> Result<Keyring, SecretError> {
    if let Some(keys) = present(data, given)? {
        return Ok(keys);
    }
    let path = data.join(SECRET_FILE);
    make(data).map(Keyring::new).map_err(|why| SecretError::Io { path, why })
}

/// Why a start could not use the secret that is there. One that is missing is made then.
pub(crate) fn wrong_secret(data: &Path, given: Option<&str>) -> Option<SecretError> {
    present(data, given).err()
}

/// The secrets that are given or in the data folder already.
fn present(data: &Path, given: Option<&str>) -> Result<Option<Keyring>, SecretError> {
    if let Some(given) = given.map(str::trim).filter(|given| !given.is_empty()) {
        return read(given).map(Some).ok_or(SecretError::Given);
    }
    let path = data.join(SECRET_FILE);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(why) => return Err(SecretError::Io { path, why }),
    };
    match is_exposed(&path) {
        Ok(false) => read(&text).map(Some).ok_or(SecretError::Unreadable(path)),
        Ok(true) => Err(SecretError::Exposed(path)),
        Err(why) => Err(SecretError::Io { path, why }),
    }
}

/// Makes a secret.
fn make(data: &Path) -> io::Result<[u8; SECRET_BYTES]> {
    let mut secret = [0; SECRET_BYTES];
    let (first, second) = secret.split_at_mut(SECRET_BYTES / 2);
    first.copy_from_slice(&SystemEntropy.bits().to_be_bytes());
    second.copy_from_slice(&SystemEntropy.bits().to_be_bytes());
    let digits: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    let text = format!("{digits}\n");
    replace_file(&data.join(SECRET_FILE), text.as_bytes(), FileAccess::Private)?;
    Ok(secret)
}

/// One or more secrets; the first is the one that seals.
fn read(text: &str) -> Option<Keyring> {
    let separates = |letter: char| letter == ',' || letter.is_whitespace();
    let mut secrets = text.split(separates).filter(|digits| !digits.is_empty()).map(secret);
    let current = Keyring::new(secrets.next()??);
    secrets.try_fold(current, |keys, older| Some(keys.with_older(older?)))
}

/// One secret: two hexadecimal digits for each byte.
fn secret(digits: &str) -> Option<[u8; SECRET_BYTES]> {
    if digits.len() != 2 * SECRET_BYTES || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut secret = [0; SECRET_BYTES];
    for (index, byte) in secret.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * index..2 * index + 2], 16).ok()?;
    }
    Some(secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of the secrets.
    fn shown(keys: &Keyring) -> String {
        format!("{keys:?}")
    }

    fn of(secret: u8) -> Keyring {
        Keyring::new([secret; SECRET_BYTES])
    }

    #[test]
    fn a_secret_is_made_once() {
        let data = tempfile::tempdir().unwrap();
        let left = data.path().join(format!("secret.key.{}.new", std::process::id()));
        fs::write(&left, "half").unwrap();
        let made = keyring(data.path(), None).unwrap();
        assert_ne!(shown(&made), shown(&of(0)));
        assert_eq!(shown(&keyring(data.path(), Some(" ")).unwrap()), shown(&made));
        assert!(!left.exists());
    }

    #[test]
    fn a_given_secret_comes_first() {
        let data = tempfile::tempdir().unwrap();
        let given = "0F".repeat(SECRET_BYTES);
        assert_eq!(shown(&keyring(data.path(), Some(&given)).unwrap()), shown(&of(15)));
        assert!(!data.path().join(SECRET_FILE).exists());
        let half_wrong = format!("{given},short");
        for wrong in [
            "short",
            &"0g".repeat(SECRET_BYTES),
            &"0".repeat(65),
            &"é".repeat(32),
            ",",
            &half_wrong,
        ] {
            let error = keyring(data.path(), Some(wrong)).unwrap_err();
            assert!(matches!(error, SecretError::Given), "{wrong}");
        }
    }

    #[test]
    fn the_first_secret_seals_and_the_others_open() {
        let data = tempfile::tempdir().unwrap();
        let [new, old, oldest] = ["09", "08", "07"].map(|byte| byte.repeat(SECRET_BYTES));
        let expected = shown(&of(9).with_older([8; SECRET_BYTES]).with_older([7; SECRET_BYTES]));
        for given in [format!("{new},{old},{oldest}"), format!(" {new}, {old} {oldest},")] {
            assert_eq!(shown(&keyring(data.path(), Some(&given)).unwrap()), expected);
        }
        keyring(data.path(), None).unwrap();
        // The file is there already, so it keeps its rights.
        let text = format!("{new}\n{old}\r\n\n{oldest}\n");
        fs::write(data.path().join(SECRET_FILE), text).unwrap();
        assert_eq!(shown(&keyring(data.path(), None).unwrap()), expected);
    }

    #[cfg(unix)]
    #[test]
    fn other_users_may_not_read_the_secret_file() {
        use std::os::unix::fs::PermissionsExt;
        let data = tempfile::tempdir().unwrap();
        keyring(data.path(), None).unwrap();
        let path = data.path().join(SECRET_FILE);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let error = keyring(data.path(), None).unwrap_err();
        assert!(error.to_string().contains("chmod 600"), "{error}");
    }

    #[test]
    fn a_damaged_secret_file_is_an_error_and_stays() {
        let data = tempfile::tempdir().unwrap();
        keyring(data.path(), None).unwrap();
        let path = data.path().join(SECRET_FILE);
        fs::write(&path, "damaged").unwrap();
        assert!(matches!(keyring(data.path(), None), Err(SecretError::Unreadable(_))));
        assert_eq!(fs::read_to_string(&path).unwrap(), "damaged");
        let nowhere = data.path().join("nowhere");
        assert!(matches!(keyring(&nowhere, None), Err(SecretError::Io { .. })));
    }
}
