//! Reads `policies/*.cedar` and `policies/tests.yaml` as texts. Crate `policy` interprets them.

use kernel::definition::plan::mistake::Mistake;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The folder of a project that holds its policies.
pub const POLICIES_FOLDER: &str = "policies";
/// The tests beside them.
const TESTS_FILE: &str = "tests.yaml";
/// How many files there can be.
const FILES_MAX: usize = 1_000;
/// How large each can be.
const BYTES_MAX: u64 = 256 * 1024;

/// The texts of a project's policies.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PolicyFiles {
    /// The policies, in the order of their names.
    pub policies: Vec<PolicyFile>,
    /// The tests beside them, if there are some.
    pub tests: Option<PolicyFile>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyFile {
    /// Its path in the project, as mistakes name it.
    pub file: String,
    pub text: String,
}

impl PolicyFiles {
    /// Those of this project; none where it has no folder for them.
    pub fn load(project: &Path) -> Result<Option<Self>, Vec<Mistake>> {
        let folder = project.join(POLICIES_FOLDER);
        let paths = match visible(&folder) {
            Ok(paths) => paths,
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(why) => return Err(vec![unreadable(POLICIES_FOLDER.to_owned(), &why)]),
        };
        let mut found = Self::default();
        let mut mistakes = Vec::new();
        for path in paths {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            let name = name.unwrap_or_default();
            let is_tests = name == TESTS_FILE;
            if !is_tests && !is_policy(&path) {
                mistakes.extend(lost(&path, &name));
                continue;
            }
            match read(&path, format!("{POLICIES_FOLDER}/{name}")) {
                Ok(file) if is_tests => found.tests = Some(file),
                Ok(file) => found.policies.push(file),
                Err(mistake) => mistakes.push(mistake),
            }
        }
        let count = found.policies.len();
        if count > FILES_MAX {
            let message = format!("there are {count} files of policies, more than {FILES_MAX}");
            mistakes.push(filed(
                POLICIES_FOLDER.to_owned(),
                Mistake::error(message).hint("put several policies into one file"),
            ));
        }
        if mistakes.is_empty() { Ok(Some(found)) } else { Err(mistakes) }
    }

    /// The policies by name and text.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.policies.iter().map(|policy| (policy.file.as_str(), policy.text.as_str()))
    }
}

/// Whether a file holds policies, by its name.
pub fn is_policy(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "cedar")
}

/// What is in the folder, in order; hidden files are left out.
pub(crate) fn visible(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if !entry.file_name().to_string_lossy().starts_with('.') {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths)
}

/// Policies where no one looks for them would be missed in silence, and with them what they forbid.
fn lost(path: &Path, name: &str) -> Option<Mistake> {
    let inside = visible(path).unwrap_or_default();
    inside.iter().any(|inner| is_policy(inner)).then(|| {
        let what = Mistake::error("there are policies in a folder of their own");
        filed(format!("{POLICIES_FOLDER}/{name}"), what.hint("move them to `policies/`"))
    })
}

fn read(path: &Path, file: String) -> Result<PolicyFile, Mistake> {
    let bytes = match fs::metadata(path) {
        Ok(about) => about.len(),
        Err(why) => return Err(unreadable(file, &why)),
    };
    if bytes > BYTES_MAX {
        let message = format!("the file has {bytes} bytes, more than {BYTES_MAX}");
        return Err(filed(file, Mistake::error(message).hint("split it into several files")));
    }
    match fs::read_to_string(path) {
        Ok(text) => Ok(PolicyFile { file, text }),
        Err(why) if why.kind() == io::ErrorKind::InvalidData => {
            let mistake = Mistake::error("the file is no text: it is not in UTF-8");
            Err(filed(file, mistake.hint("save it in UTF-8")))
        }
        Err(why) => Err(unreadable(file, &why)),
    }
}

fn unreadable(file: String, why: &io::Error) -> Mistake {
    let mistake = Mistake::error(format!("it cannot be read: {why}"));
    filed(file, mistake.hint("check its path and its rights"))
}

fn filed(file: String, mistake: Mistake) -> Mistake {
    Mistake { file: Some(file), ..mistake }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    #[test]
    fn policies_and_their_tests_are_read_by_name() {
        let place = folder(&[
            ("policies/b.cedar", "b"),
            ("policies/a.cedar", "a"),
            ("policies/tests.yaml", "cases: []"),
            ("policies/README.md", "no"),
            ("policies/.hidden.cedar", "no"),
        ]);
        let found = PolicyFiles::load(place.path()).unwrap().unwrap();
        let texts: Vec<_> = found.texts().collect();
        assert_eq!(texts, [("policies/a.cedar", "a"), ("policies/b.cedar", "b")]);
        assert_eq!(found.tests.unwrap().file, "policies/tests.yaml");
    }

    #[test]
    fn a_missing_folder_differs_from_an_empty_one() {
        assert_eq!(PolicyFiles::load(folder(&[]).path()), Ok(None));
        let place = folder(&[("policies/README.md", "")]);
        assert_eq!(PolicyFiles::load(place.path()), Ok(Some(PolicyFiles::default())));
    }

    #[test]
    fn policies_in_subfolders_are_a_mistake() {
        let place = folder(&[("policies/deep/a.cedar", "a"), ("policies/docs/a.md", "a")]);
        let mistakes = PolicyFiles::load(place.path()).unwrap_err();
        let told: Vec<String> = mistakes.iter().map(Mistake::to_string).collect();
        assert_eq!(
            told,
            ["policies/deep: error: there are policies in a folder of their own; hint: move them \
              to `policies/`"]
        );
    }
}
