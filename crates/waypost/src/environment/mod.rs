//! The variables that Waypost reads, and the only place that reads them: those of the process, and
//! below them those of the `.env` beside the project's `waypost.toml`. Ours have names of ours; any
//! other is read only where the settings of an upstream name it, or where it is a standard one that
//! says where spans go.

pub(crate) mod locations;
pub(crate) mod program;
pub(crate) mod dotenv;

use crate::environment::locations::shown;
use crate::exit::{Failure, Result};
use project::folder::CONFIG_FILE;
use project::layer::Source;
use std::collections::BTreeMap;
use std::fmt;
use std::io::ErrorKind;
use std::path::Path;

/// Who may administer, where this is set.
pub(crate) const ADMIN_KEY: &str = "WAYPOST_ADMIN_KEY";
/// As whom a client calls a server that asks for credentials.
pub(crate) const API_KEY: &str = "WAYPOST_API_KEY";
/// What seals what MCP clients carry for us; else `secret.key` of the data folder does.
pub(crate) const SECRET_KEY: &str = "WAYPOST_SECRET_KEY";
/// The server that clients talk to.
pub(crate) const SERVER: &str = "WAYPOST_SERVER";
/// How much is logged: `debug` or `info,engine=debug`.
pub(crate) const LOG_LEVEL: &str = "LOG_LEVEL";
/// Our own program. We say it ourselves, whatever the environment says.
pub(crate) const BIN: &str = "WAYPOST_BIN";
/// The folder that holds the data. We say it ourselves, too.
pub(crate) const DATA: &str = "WAYPOST_DATA";

/// What no process inherits that we start: they are worth as much as who holds them.
pub(crate) const OWN_KEYS: [&str; 3] = [API_KEY, ADMIN_KEY, SECRET_KEY];

/// Where a project's data is, unless someone says otherwise.
pub(crate) const DATA_FOLDER: &str = ".waypost";

const PREFIX: &str = "WAYPOST_";
const FILE: &str = ".env";

/// A variable that is set.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Variable {
    pub(crate) name: String,
    /// What it is set to, never empty.
    pub(crate) text: String,
    pub(crate) source: Source,
}

/// Without the text: it may be a secret.
impl fmt::Debug for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.source)
    }
}

/// All variables of ours.
#[derive(Debug, Clone, Default)]
pub(crate) struct Environment {
    /// An empty one is none, but it hides the one in the file.
    variables: BTreeMap<String, Variable>,
    /// All there are, for settings that name one.
    all: Texts,
}

#[derive(Clone, Default)]
struct Texts(BTreeMap<String, String>);

/// Only how many: any of them may be a secret.
impl fmt::Debug for Texts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} texts", self.0.len())
    }
}

impl Environment {
    /// The variables of this process and of this project.
    pub(crate) fn of(project: Option<&Path>) -> Result<Self> {
        let mut environment = Self::default();
        for (name, text) in std::env::vars_os() {
            // What is no text is no value of ours.
            if let (Ok(name), Ok(text)) = (name.into_string(), text.into_string()) {
                environment.set(&name, &text, Source::Variable(name.clone()));
            }
        }
        environment.say(BIN, std::env::current_exe().ok().as_deref());
        environment.say(DATA, project.map(|folder| folder.join(DATA_FOLDER)).as_deref());
        // Only beside settings of ours: any other `.env` was written for someone else.
        if let Some(folder) = project.filter(|folder| folder.join(CONFIG_FILE).is_file()) {
            environment.read(&folder.join(FILE))?;
        }
        Ok(environment)
    }

    /// No variables but those that we say ourselves.
    pub(crate) fn bare() -> Self {
        let mut environment = Self::default();
        environment.say(BIN, std::env::current_exe().ok().as_deref());
        environment
    }

    /// The same for a server whose data is here.
    pub(crate) fn with_data(&self, data: &Path) -> Self {
        let mut environment = self.clone();
        environment.say(DATA, Some(data));
        environment
    }

    /// Says a path as settings of upstreams may name it; from wherever they are started it leads to
    /// the same place.
    fn say(&mut self, name: &str, path: Option<&Path>) {
        let path = path.and_then(|path| std::path::absolute(path).ok());
        match path.as_deref().and_then(Path::to_str) {
            Some(path) => self.all.0.insert(name.to_owned(), path.to_owned()),
            None => self.all.0.remove(name),
        };
    }

    /// The variable of this name, if it is set to something.
    pub(crate) fn get(&self, name: &str) -> Option<&Variable> {
        self.variables.get(name).filter(|variable| !variable.text.is_empty())
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.get(name).map(|variable| variable.text.as_str())
    }

    /// What a variable of any name is set to, as it is.
    pub(crate) fn any(&self, name: &str) -> Option<String> {
        self.all.0.get(name).cloned()
    }

    /// All whose names begin like this, in the order of their names.
    pub(crate) fn beginning_with(&self, prefix: &str) -> impl Iterator<Item = &Variable> {
        let begins = move |variable: &&Variable| variable.name.starts_with(prefix);
        self.variables.values().filter(begins).filter(|variable| !variable.text.is_empty())
    }

    /// Adds what the file sets and no one before it; without a file nothing.
    fn read(&mut self, path: &Path) -> Result<()> {
        let file = shown(path);
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(Failure::usage(format!("cannot read `{file}`: {error}"))),
        };
        self.add(&file, &text)
    }

    fn add(&mut self, file: &str, text: &str) -> Result<()> {
        let assignments = dotenv::parse(text).map_err(|fault| {
            Failure::usage(format!("there is a mistake in `{file}`"))
                .lines(vec![format!("{file}:{}: error: {}", fault.line, fault.what)])
                .hint("write `KEY=VALUE`, with quotes around a value that has spaces or a `#`")
        })?;
        let mut added = Self::default();
        for dotenv::Assignment { name, value, line } in assignments {
            added.set(&name, &value, Source::Line { file: file.to_owned(), line });
        }
        for (name, variable) in added.variables {
            self.variables.entry(name).or_insert(variable);
        }
        for (name, text) in added.all.0 {
            self.all.0.entry(name).or_insert(text);
        }
        Ok(())
    }

    fn set(&mut self, name: &str, text: &str, source: Source) {
        self.all.0.insert(name.to_owned(), text.to_owned());
        if name.starts_with(PREFIX) || name == LOG_LEVEL {
            let text = text.trim().to_owned();
            let variable = Variable { name: name.to_owned(), text, source };
            self.variables.insert(name.to_owned(), variable);
        }
    }
}

#[cfg(test)]
impl Environment {
    /// The variables of a test's process, then the text of its `.env`.
    pub(crate) fn of_test(process: &[(&str, &str)], file: &str) -> Self {
        let mut environment = Self::default();
        for (name, text) in process {
            environment.set(name, text, Source::Variable((*name).to_owned()));
        }
        environment.add(FILE, file).unwrap();
        environment
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_environment_goes_before_the_file() {
        let process = [("WAYPOST_PORT", "1"), ("WAYPOST_HOST", ""), ("PATH", "x")];
        let file = "WAYPOST_PORT=2\nWAYPOST_HOST=::1\nOTHER=y\nLOG_LEVEL=warn\nLOG_LEVEL=info\n";
        let environment = Environment::of_test(&process, file);
        let port = environment.get("WAYPOST_PORT").unwrap();
        assert_eq!(
            (port.text.as_str(), port.source.to_string()),
            ("1", "environment WAYPOST_PORT".to_owned())
        );
        assert_eq!(environment.get("WAYPOST_HOST"), None, "set to nothing by the process");
        let level = environment.get(LOG_LEVEL).unwrap();
        assert_eq!((level.text.as_str(), level.source.to_string()), ("info", ".env:5".to_owned()));
        assert_eq!((environment.get("PATH"), environment.get("OTHER")), (None, None));
        let any = |name: &str| environment.any(name);
        assert_eq!((any("PATH"), any("OTHER")), (Some("x".to_owned()), Some("y".to_owned())));
        assert_eq!((any("WAYPOST_HOST"), any("NONE")), (Some(String::new()), None));
    }

    #[test]
    fn secrets_are_never_printed() {
        let environment = Environment::of_test(&[(ADMIN_KEY, "hunter2"), ("X", "hunter2")], "");
        assert_eq!(environment.text(ADMIN_KEY), Some("hunter2"));
        assert!(!format!("{environment:?}").contains("hunter2"));
        let failure = Environment::default().add(".env", "A=1\nhunter2\n").unwrap_err();
        let told = failure.to_string();
        assert!(told.contains(".env:2: error: ") && !told.contains("hunter2"), "{told}");
    }

    #[test]
    fn program_and_data_variables_are_set_by_waypost() {
        let folder = tempfile::tempdir().unwrap();
        let environment = Environment::of(Some(folder.path())).unwrap();
        let program = std::env::current_exe().unwrap();
        assert_eq!(environment.any(BIN).as_deref(), program.to_str());
        let data = folder.path().join(DATA_FOLDER);
        assert_eq!(environment.any(DATA).as_deref(), data.to_str());
        let elsewhere = environment.with_data(Path::new("elsewhere")).any(DATA).unwrap();
        assert!(Path::new(&elsewhere).is_absolute() && elsewhere.ends_with("elsewhere"));
        assert_eq!(Environment::of(None).unwrap().any(DATA), None);
    }

    #[test]
    fn only_a_file_beside_settings_is_read() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILE), "no assignment").unwrap();
        assert!(Environment::of(Some(folder.path())).is_ok());
        std::fs::write(folder.path().join(CONFIG_FILE), "").unwrap();
        assert!(Environment::of(Some(folder.path())).is_err());
        assert!(Environment::of(None).is_ok());
    }
}
