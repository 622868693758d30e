//! A newcomer's terminal: an empty folder, a `PATH` that begins with a folder that has `waypost`
//! and nothing else, and servers that run in other terminals until the page ends. `curl` fails
//! where the answer is an error.

use crate::process::{binary_folder, without_settings};
use crate::rest::Rest;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use testkit::harness::send_signal;

const WRITTEN_ADDRESSES: [&str; 2] = ["127.0.0.1:8420", "localhost:8420"];
/// The server of others that a page has behind ours; one of the test stands in for it.
const SHOP: &str = "https://api.shop.example";
/// Where pages put backups.
const BACKUPS: &str = "/mnt/backups";
const BANNER: &str = "waypost listening on ";
/// How long a command, a start or an end may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(20);

/// What a command said, and how it ended; without a code it did not end in time.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) code: Option<i32>,
    pub(super) said: String,
}

impl Outcome {
    pub(super) fn is(&self, code: i32) -> bool {
        self.code == Some(code)
    }
}

pub(super) struct Terminal {
    state: TempDir,
    root: String,
    servers: Vec<Served>,
    /// Where the first server listens that was kept; pages write another address.
    address: Option<String>,
    /// The server of commands that would not find it by their folder.
    named: Option<String>,
    folders: usize,
    /// Answers every request.
    shop: Rest,
}

/// A server in another terminal.
struct Served {
    command: String,
    child: Child,
}

impl Drop for Served {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        send_signal("TERM", self.child.id());
        if ended(&mut self.child).is_none() {
            // It is ours, and did not listen.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// The code that a process ends with, within the limit.
fn ended(child: &mut Child) -> Option<i32> {
    let begun = Instant::now();
    while begun.elapsed() < LIMIT {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status.code().unwrap_or(-1));
        }
        sleep(POLL);
    }
    None
}

impl Terminal {
    pub(super) fn open(root: &str) -> Self {
        let state = tempfile::tempdir().unwrap();
        for folder in ["bin", "home", "tmp", "backups"] {
            fs::create_dir(state.path().join(folder)).unwrap();
        }
        let binary = binary_folder().join("waypost");
        let here = state.path().join("bin/waypost");
        std::os::unix::fs::symlink(binary, here).unwrap();
        fs::write(state.path().join("home/.curlrc"), "fail\n").unwrap();
        let root = root.to_owned();
        let servers = Vec::new();
        let address = None;
        let named = None;
        let shop = Rest::start(Arc::new(|_: &str| Some((200, "[]".to_owned()))));
        let mut terminal = Self { state, root, servers, address, named, folders: 0, shop };
        terminal.begin_afresh();
        terminal
    }

    /// Goes to another empty folder.
    pub(super) fn begin_afresh(&mut self) {
        self.folders += 1;
        let folder = self.state.path().join(format!("folder-{}", self.folders));
        fs::create_dir(&folder).unwrap();
        fs::write(self.state.path().join("folder"), folder.to_str().unwrap()).unwrap();
    }

    /// Adds a text of a page to a file in the folder where the command before left off.
    pub(super) fn add_to(&self, file: &str, text: &str) {
        let folder = fs::read_to_string(self.state.path().join("folder")).unwrap();
        let path = Path::new(folder.trim_end()).join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut opened = OpenOptions::new().create(true).append(true).open(path).unwrap();
        opened.write_all(self.here(text).as_bytes()).unwrap();
    }

    /// Runs a command where the one before left off, with the variables that it left.
    pub(super) fn run(&mut self, text: &str) -> Outcome {
        let text = self.here(text);
        let script = format!(
            "{}\n{text}\ncode=$?\nexport -p > \"$STATE/env\"\npwd > \"$STATE/folder\"\nexit $code\n",
            self.beginning()
        );
        let said = self.state.path().join("said");
        let mut child = self.shell(&script, &said);
        let code = ended(&mut child);
        if code.is_none() {
            let _ = child.kill();
            let _ = child.wait();
        }
        Outcome { code, said: fs::read_to_string(said).unwrap_or_default() }
    }

    /// Starts a server and waits until it listens; it is stopped at once unless it is kept.
    pub(super) fn serve(&mut self, text: &str, is_kept: bool) -> Outcome {
        let done = |said: String| Outcome { code: Some(0), said };
        if self.servers.iter().any(|served| served.command == text) {
            return done("it runs already".to_owned());
        }
        let said = self.state.path().join(format!("server-{}", self.servers.len()));
        let script = format!("{}\nexec {}\n", self.beginning(), self.here(text));
        let child = self.shell(&script, &said);
        let mut served = Served { command: text.to_owned(), child };
        let begun = Instant::now();
        let (scheme, address) = loop {
            let text = fs::read_to_string(&said).unwrap_or_default();
            let mut whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
            let told = whole.find_map(|line| line.strip_prefix(BANNER)?.trim().split_once("://"));
            if let Some((scheme, address)) = told {
                break (scheme.to_owned(), address.to_owned());
            }
            let code = served.child.try_wait().ok().flatten().map(|status| status.code());
            if code.is_some() || begun.elapsed() > LIMIT {
                return Outcome { code: code.flatten().or(Some(-1)), said: text };
            }
            sleep(POLL);
        };
        if is_kept {
            // One that serves this folder is found by it, as everybody's is.
            let is_found = ["waypost up --port 0", "waypost serve --port 0"].contains(&text);
            let url = format!("{scheme}://{address}");
            self.named = self.named.take().or((!is_found).then_some(url));
            self.address = self.address.take().or(Some(address));
            self.servers.push(served);
        }
        done(String::new())
    }

    /// What every script begins with.
    fn beginning(&self) -> String {
        let named = self.named.as_ref().map(|url| format!("WAYPOST_SERVER='{url}'"));
        format!(
            "set -a\nif [ -f \"$STATE/env\" ]; then . \"$STATE/env\"; fi\n\
             cd \"$(cat \"$STATE/folder\")\"\n{}",
            named.unwrap_or_default()
        )
    }

    /// A text of a page with the places of this terminal.
    fn here(&self, text: &str) -> String {
        let backups = self.state.path().join("backups");
        let text = text.replace(BACKUPS, backups.to_str().unwrap()).replace("@root", &self.root);
        let text = text.replace(SHOP, &self.shop.url());
        match &self.address {
            Some(address) => {
                WRITTEN_ADDRESSES.iter().fold(text, |text, written| text.replace(written, address))
            }
            None => text,
        }
    }

    fn shell(&self, script: &str, said: &Path) -> Child {
        let state = self.state.path();
        let old = std::env::var("PATH").unwrap_or_default();
        let output = File::create(said).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null());
        command.stdout(output.try_clone().unwrap()).stderr(output);
        without_settings(&mut command, state);
        command.env("PATH", format!("{}:{old}", state.join("bin").display()));
        command.env("HOME", state.join("home")).env("TMPDIR", state.join("tmp"));
        command.env("STATE", state).spawn().unwrap()
    }
}
