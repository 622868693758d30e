//! The command with which the user starts this program. Commands in hints begin with it, so that
//! they work as they are printed, also from a build that is not on the `PATH`.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

const NAME: &str = "waypost";

/// `waypost` if the `PATH` has one, else the path that this process was started by.
pub(crate) fn program() -> String {
    let start = Start {
        word: env::args_os().next().map(PathBuf::from),
        path: env::var_os("PATH"),
        executable: env::current_exe().ok(),
    };
    start.program()
}

pub(crate) fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+,@%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) && !text.starts_with('-') {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// How a process was started.
#[derive(Debug, Default)]
struct Start {
    /// The first word of its command line.
    word: Option<PathBuf>,
    /// The folders that are searched for programs.
    path: Option<OsString>,
    executable: Option<PathBuf>,
}

impl Start {
    fn program(&self) -> String {
        if self.finds(Path::new(NAME)) {
            return NAME.to_owned();
        }
        // The first word may be anything: it is a path only if it has a folder.
        let leads_here = |word: &&Path| word.components().count() > 1 || self.finds(word);
        match self.word.as_deref().filter(leads_here).or(self.executable.as_deref()) {
            Some(path) => shell_word(&path.to_string_lossy()),
            None => NAME.to_owned(),
        }
    }

    /// Whether a shell finds a program of this name.
    fn finds(&self, name: &Path) -> bool {
        let mut file = name.as_os_str().to_owned();
        file.push(env::consts::EXE_SUFFIX);
        let Some(path) = &self.path else { return false };
        env::split_paths(path).any(|folder| is_program(&folder.join(&file)))
    }
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn file(folder: &Path, name: &str, mode: u32) {
        let path = folder.join(name);
        let made = fs::write(&path, "")
            .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(mode)));
        assert!(made.is_ok(), "{made:?}");
    }

    #[test]
    fn a_command_begins_with_what_a_shell_finds() {
        let folder = tempfile::tempdir().unwrap();
        let path = env::join_paths([Path::new("/nowhere"), folder.path()]).unwrap();
        let started = |word: &str| {
            let executable = Some(PathBuf::from("/opt/way post"));
            Start { word: Some(PathBuf::from(word)), path: Some(path.clone()), executable }
        };
        let called = |word: &str| started(word).program();
        // A file of that name that cannot be run is not the program.
        file(folder.path(), NAME, 0o644);
        assert_eq!(called("target/debug/waypost"), "target/debug/waypost");
        assert_eq!(called("./waypost"), "./waypost");
        assert_eq!(called("my tools/waypost"), "'my tools/waypost'");
        assert_eq!(called("wp"), "'/opt/way post'", "no folder, and no shell finds it");
        file(folder.path(), "wp", 0o755);
        assert_eq!(called("wp"), "wp");
        file(folder.path(), NAME, 0o755);
        assert_eq!(called("target/debug/waypost"), NAME);
        let unset = Start { path: None, ..started("target/debug/waypost") };
        assert_eq!(unset.program(), "target/debug/waypost");
        assert_eq!(Start::default().program(), NAME);
    }

    #[test]
    fn a_path_is_one_word_of_a_shell() {
        assert_eq!(shell_word("shop/a.yaml"), "shop/a.yaml");
        assert_eq!(shell_word("my shop"), "'my shop'");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
    }
}
