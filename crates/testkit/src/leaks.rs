//! Finds credentials of Waypost in what programs and tests wrote, whichever they are: keys and
//! tokens have a form of their own, so that no one needs to know them. No log and no data folder
//! holds one.

use kernel::identity::key::{KEY_PREFIX, KeyText, TOKEN_PREFIX};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// How many characters a key has: what it begins with, its id, a line and its secret.
const KEY_CHARS: usize = KEY_PREFIX.len() + 10 + 1 + 52;
/// A token is longer than this.
const TOKEN_CHARS_MIN: usize = TOKEN_PREFIX.len() + 60;

/// The beginnings of all credentials in these bytes, which say which ones they are.
pub fn credentials_in(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let shown = |credential: &str| format!("{}..", &credential[..KEY_PREFIX.len() + 8]);
    let keys = text.match_indices(KEY_PREFIX).filter_map(|(at, _)| {
        let key = text.get(at..at + KEY_CHARS)?;
        KeyText::parse(key).map(|_| shown(key))
    });
    let tokens = text.match_indices(TOKEN_PREFIX).filter_map(|(at, _)| {
        let token = text.get(at..at + TOKEN_CHARS_MIN)?;
        let is_sign = |sign: char| sign.is_ascii_alphanumeric() || sign == '-' || sign == '_';
        token.chars().all(is_sign).then(|| shown(token))
    });
    keys.chain(tokens).collect()
}

/// Panics if a file has a credential behind this place. One that is not there has none.
pub fn assert_none_in_file(path: &Path, from: u64) {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(from))?;
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let found = credentials_in(&read().unwrap_or_default());
    assert!(found.is_empty(), "`{}` has credentials: {found:?}", path.display());
}

/// Panics if a file below this folder has a credential.
pub fn assert_none_below(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        match path.is_dir() {
            true => assert_none_below(&path),
            false => assert_none_in_file(&path, 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_tokens_are_found_wherever_they_stand_and_nothing_else_is() {
        let key = KeyText::mint([7; 39]);
        let key = key.text.expose();
        let token = format!("{TOKEN_PREFIX}{}", "aB3-_x".repeat(20));
        for text in [format!("{{\"key\":\"{key}\"}}"), format!("é{token}\u{0}"), key.to_owned()] {
            let found = credentials_in(text.as_bytes());
            assert_eq!(found.len(), 1, "{text}: {found:?}");
            assert!(!found[0].contains(&key[20..]), "it tells the key: {found:?}");
        }
        for text in ["", "wp_", "wp_aaaaaaaaaa", "wp_aaaaaaaaaa_short", "wpt_short", "wp_é"] {
            assert_eq!(credentials_in(text.as_bytes()), Vec::<String>::new(), "{text}");
        }
        let cut = &key[..key.len() - 1];
        assert_eq!(credentials_in(cut.as_bytes()), Vec::<String>::new());
    }

    #[test]
    #[should_panic(expected = "has credentials")]
    fn a_folder_with_a_key_in_a_file_fails() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("deep")).unwrap();
        let text = KeyText::mint([9; 39]).text.expose().to_owned();
        fs::write(folder.path().join("deep/log"), text).unwrap();
        assert_none_below(folder.path());
    }
}
