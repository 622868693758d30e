//! What a person types, line by line, and what they typed before.

use crate::exit::Failure;
use crate::place::state_folder;
use std::fs::{self, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use tokio::io::{AsyncBufReadExt, BufReader, Stdin};

/// How many lines of the past are kept.
const KEPT_MAX: usize = 1_000;
const FILE: &str = "chat_history";

/// Standard input, line by line.
pub(super) struct Lines {
    typed: tokio::io::Lines<BufReader<Stdin>>,
    /// Whether a person sits there; else it is a program that has written all of it.
    pub(super) is_person: bool,
    past: Vec<String>,
    file: Option<PathBuf>,
}

impl Lines {
    /// Reads what comes from now on. A person's lines are remembered.
    pub(super) fn open() -> Self {
        let is_person = io::stdin().is_terminal();
        let file = is_person.then(state_folder).flatten().map(|folder| folder.join(FILE));
        let past = file.as_ref().and_then(|file| fs::read_to_string(file).ok());
        let past = past.map(|text| text.lines().map(str::to_owned).collect()).unwrap_or_default();
        Self { typed: BufReader::new(tokio::io::stdin()).lines(), is_person, past, file }
    }

    /// The next line; none at the end. A person is shown what is asked for, and Ctrl-C only says
    /// how to leave.
    pub(super) async fn ask(&mut self, prompt: &str) -> Result<Option<String>, Failure> {
        loop {
            if !self.is_person {
                return self.typed.next_line().await.map_err(unreadable);
            }
            // A prompt that cannot be shown is no reason to stop.
            let mut stderr = io::stderr().lock();
            let _ = stderr.write_all(prompt.as_bytes()).and_then(|()| stderr.flush());
            drop(stderr);
            tokio::select! {
                line = self.typed.next_line() => return line.map_err(unreadable),
                Ok(()) = tokio::signal::ctrl_c() => {
                    let _ = io::stderr().lock().write_all(b"\n(/quit or Ctrl-D leaves)\n");
                }
            }
        }
    }

    /// Keeps a line that a person may want to say again.
    pub(super) fn remember(&mut self, line: &str) {
        if self.past.last().is_some_and(|last| last == line) {
            return;
        }
        self.past.push(line.to_owned());
        let surplus = self.past.len().saturating_sub(KEPT_MAX);
        self.past.drain(..surplus);
        if let Some(file) = &self.file
            && let Err(error) = keep(file, &self.past)
        {
            tracing::debug!(%error, "what was typed cannot be kept");
            self.file = None;
        }
    }

    /// The newest lines, with the numbers by which they are said again.
    pub(super) fn past(&self, count: usize) -> impl Iterator<Item = (usize, &str)> {
        let first = self.past.len().saturating_sub(count);
        let numbered = self.past.iter().enumerate().skip(first);
        numbered.map(|(index, line)| (index + 1, line.as_str()))
    }

    /// The line of this number.
    pub(super) fn nth(&self, number: usize) -> Option<&str> {
        self.past.get(number.checked_sub(1)?).map(String::as_str)
    }
}

/// Written anew as a whole, readable by this person only.
fn keep(file: &Path, lines: &[String]) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut text = lines.join("\n");
    text.push('\n');
    options.open(file)?.write_all(text.as_bytes())
}

fn unreadable(error: io::Error) -> Failure {
    Failure::usage(format!("cannot read standard input: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_private_and_has_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state").join(FILE);
        keep(&file, &["one".to_owned(), "two".to_owned()]).unwrap();
        keep(&file, &["three".to_owned()]).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "three\n");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }
}
