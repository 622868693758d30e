//! `waypost` as a child process: run to its end, or started, watched and stopped. Every wait has a
//! limit and says what it waited for; no process outlives its test.

use serde_json::Value;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use testkit::harness::{send_signal, wait_for};

const BINARY: &str = env!("CARGO_BIN_EXE_waypost");
const BANNER: &str = "waypost listening on ";
/// How long a command, a start or an end may take on a busy machine.
const COMMAND_LIMIT: Duration = Duration::from_secs(180);
const START_LIMIT: Duration = Duration::from_secs(120);
const STOP_LIMIT: Duration = Duration::from_secs(60);

/// Variables that change what the binary prints, beside `WAYPOST_*`.
const VARIABLES: [&str; 12] = [
    "LOG_LEVEL", "NO_COLOR", "ASSISTANT_MCP_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL",
    "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "MCP_SERVER_MAP", "MCP_CALL_TIMEOUT", "MCP_DATA_DIR",
    "AGENT_CARD_PATH", "PORT",
];

/// A command that ended.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    pub took: Duration,
}

impl Ended {
    /// Panics with all that the command said unless it ended with this code.
    #[track_caller]
    pub fn code(self, expected: i32) -> Self {
        assert_eq!(self.code, Some(expected), "{self:#?}");
        self
    }

    /// Standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    /// Panics unless standard error holds this.
    #[track_caller]
    pub fn says(self, text: &str) -> Self {
        assert!(self.stderr.contains(text), "no `{text}` in {self:#?}");
        self
    }
}

/// Runs `waypost` in a folder to its end.
pub fn waypost(folder: &Path, arguments: &[&str]) -> Ended {
    Running::start(folder, arguments, &[]).end(COMMAND_LIMIT)
}

/// The same with variables.
pub fn waypost_with(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Ended {
    Running::start(folder, arguments, variables).end(COMMAND_LIMIT)
}

/// What the names of settings begin with.
const PREFIXES: [&str; 3] = ["WAYPOST_", "OTEL_", "LANGFUSE_"];

/// Settings of the user who runs the tests are not ours: neither their variables nor their own
/// file, which is looked for in this empty folder. The binary is on the `PATH`, as it is once it is
/// installed.
pub fn without_settings<'c>(command: &'c mut Command, empty: &Path) -> &'c mut Command {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if PREFIXES.iter().any(|prefix| text.starts_with(prefix)) {
            command.env_remove(&name);
        }
    }
    for variable in VARIABLES {
        command.env_remove(variable);
    }
    let others = std::env::var_os("PATH").unwrap_or_default();
    let folders = [binary_folder().to_path_buf()].into_iter().chain(std::env::split_paths(&others));
    command.env("PATH", std::env::join_paths(folders).unwrap());
    command.env("XDG_CONFIG_HOME", empty.join("no-settings")).env("COLUMNS", "100")
}

/// The folder of the built binary, for `PATH`.
pub fn binary_folder() -> &'static Path {
    Path::new(BINARY).parent().unwrap()
}

/// `waypost` as a command that a test starts itself.
pub fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.args(arguments).current_dir(folder);
    without_settings(&mut command, folder);
    command
}

/// Stops a process by its id, as a service manager does it.
pub fn terminate(pid: u32) {
    let pid = pid.to_string();
    let sent = Command::new("sh").args(["-c", "kill -TERM \"$0\"", &pid]).status();
    assert!(sent.is_ok_and(|status| status.success()), "cannot send SIGTERM to {pid}");
}

/// What a command said, without the line on which server it uses: a test's never is the default.
pub fn without_note(said: &str) -> String {
    let lines = said.split_inclusive('\n');
    lines.filter(|line| !line.starts_with("using the server at ")).collect()
}

/// A `waypost` process; killed when dropped.
pub struct Running {
    child: Child,
    said: TempDir,
    what: String,
    begun: Instant,
}

impl Running {
    pub fn start(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let said = tempfile::tempdir().unwrap();
        let mut command = Command::new(BINARY);
        command.args(arguments).current_dir(folder).stdin(Stdio::null());
        command.stdout(File::create(said.path().join("stdout")).unwrap());
        command.stderr(File::create(said.path().join("stderr")).unwrap());
        without_settings(&mut command, said.path()).envs(variables.iter().copied());
        let what = format!("`waypost {}`", arguments.join(" "));
        let begun = Instant::now();
        let child = command.spawn().unwrap_or_else(|error| panic!("{what}: {error}"));
        Self { child, said, what, begun }
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.said.path().join(name)).unwrap()
    }

    /// Ctrl-C, then what it said until its end.
    pub fn interrupt(self) -> Ended {
        send_signal("INT", self.child.id());
        self.end(STOP_LIMIT)
    }

    fn end(mut self, limit: Duration) -> Ended {
        let what = format!("{} to end", self.what);
        let status = wait_for(&what, limit, || self.child.try_wait().unwrap());
        Ended {
            code: status.code(),
            stdout: self.read("stdout"),
            stderr: self.read("stderr"),
            took: self.begun.elapsed(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only when the process is gone already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A process that says on standard output where it listens; killed when dropped.
pub struct Listening {
    running: Running,
    pub address: SocketAddr,
}

impl Listening {
    /// Starts `waypost` with these arguments, and waits for a line that begins like this and names
    /// the address next.
    pub fn start(folder: &Path, arguments: &[&str], banner: &str) -> Self {
        let mut running = Running::start(folder, arguments, &[]);
        let what = format!("{} to listen", running.what);
        let address = wait_for(&what, START_LIMIT, || {
            if let Some(status) = running.child.try_wait().unwrap() {
                panic!("it ended with {status}: {}", running.read("stderr"));
            }
            let stdout = running.read("stdout");
            let named = stdout.strip_suffix('\n')?.strip_prefix(banner)?.to_owned();
            named.split('/').next().map(|address| address.parse().unwrap())
        });
        Self { running, address }
    }

    /// SIGTERM, then what it said until its end.
    pub fn stop(mut self) -> Ended {
        self.running.begun = Instant::now();
        terminate(self.running.child.id());
        self.running.end(STOP_LIMIT)
    }
}

/// A server; killed when dropped.
pub struct Server {
    running: Running,
    folder: TempDir,
    pub url: String,
}

impl Server {
    /// `waypost up --demo` on a free port, in an empty folder.
    pub fn demo() -> Self {
        Self::start(&["--demo"], &[])
    }

    /// `waypost up` with these arguments on a free port, in an empty folder.
    pub fn start(arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().to_path_buf();
        Self::start_in(&place, folder, arguments, variables)
    }

    /// `waypost up` in this project's folder, on a free port.
    pub fn of_project(place: &Path) -> Self {
        Self::of_project_with(place, &[])
    }

    /// The same with variables.
    pub fn of_project_with(place: &Path, variables: &[(&str, &str)]) -> Self {
        let all = [&[("LOG_LEVEL", "warn")][..], variables].concat();
        Self::start_in(place, tempfile::tempdir().unwrap(), &[], &all)
    }

    /// `waypost up --ephemeral` in this project's folder, on a free port.
    pub fn elsewhere(place: &Path) -> Self {
        Self::start_in(place, tempfile::tempdir().unwrap(), &["--ephemeral"], &[])
    }

    /// `waypost up --watch` in this project's folder, on a free port.
    pub fn watched(place: &Path) -> Self {
        let variables = [("LOG_LEVEL", "info")];
        Self::start_in(place, tempfile::tempdir().unwrap(), &["--watch"], &variables)
    }

    /// `waypost serve` in this project's folder, on a free port: it asks for credentials.
    pub fn asking(place: &Path) -> Self {
        Self::asking_with(place, &[])
    }

    /// The same with variables.
    pub fn asking_with(place: &Path, variables: &[(&str, &str)]) -> Self {
        Self::start_by("serve", place, tempfile::tempdir().unwrap(), &[], variables)
    }

    fn start_in(
        place: &Path,
        folder: TempDir,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        Self::start_by("up", place, folder, arguments, variables)
    }

    fn start_by(
        command: &str,
        place: &Path,
        folder: TempDir,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        let temporary = folder.path().join("tmp");
        fs::create_dir(&temporary).unwrap();
        let mut all = vec![command, "--port", "0"];
        all.extend(arguments);
        let mut variables = variables.to_vec();
        variables.push(("TMPDIR", temporary.to_str().unwrap()));
        let mut running = Running::start(place, &all, &variables);
        let what = format!("{} to listen", running.what);
        let url = wait_for(&what, START_LIMIT, || {
            if let Some(status) = running.child.try_wait().unwrap() {
                panic!("it ended with {status}: {}", running.read("stderr"));
            }
            let stdout = running.read("stdout");
            let line = stdout.strip_suffix('\n')?;
            line.strip_prefix(BANNER).map(str::to_owned)
        });
        Self { running, folder, url }
    }

    pub fn pid(&self) -> u32 {
        self.running.child.id()
    }

    /// What it said on standard error until now.
    pub fn log(&self) -> String {
        self.running.read("stderr")
    }

    /// The port it listens on.
    pub fn port(&self) -> &str {
        self.url.rsplit(':').next().unwrap()
    }

    /// The temporary folders that it has now.
    pub fn temporary(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.folder.path().join("tmp")).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    /// Runs a command against this server.
    pub fn run(&self, arguments: &[&str]) -> Ended {
        let mut all = vec!["--server", self.url.as_str()];
        all.extend(arguments);
        waypost(self.folder.path(), &all)
    }

    /// Starts a command that does not end by itself; what it said once that is enough.
    pub fn follow(&self, arguments: &[&str], enough: impl Fn(&str) -> bool) -> String {
        let mut all = vec!["--server", self.url.as_str()];
        all.extend(arguments);
        let running = Running::start(self.folder.path(), &all, &[]);
        wait_for(&running.what, COMMAND_LIMIT, || {
            Some(running.read("stdout")).filter(|said| said.ends_with('\n') && enough(said))
        })
    }

    /// `run` with `--json`.
    pub fn json(&self, arguments: &[&str]) -> Ended {
        let mut all = vec!["--json"];
        all.extend(arguments);
        self.run(&all)
    }

    /// Waits until it ends by itself.
    pub fn ends(self) -> Ended {
        let Self { mut running, folder: _folder, .. } = self;
        running.begun = Instant::now();
        running.end(STOP_LIMIT)
    }

    /// SIGTERM, then what it said until its end, and what is left of its temporary folders.
    pub fn stop(self) -> (Ended, Vec<PathBuf>) {
        let Self { mut running, folder, .. } = self;
        running.begun = Instant::now();
        terminate(running.child.id());
        let ended = running.end(STOP_LIMIT);
        let left = fs::read_dir(folder.path().join("tmp")).unwrap();
        (ended, left.map(|entry| entry.unwrap().path()).collect())
    }
}

/// Writes files below a folder, each of them whole at once: a server that watches it must not find
/// half of one.
pub fn write(folder: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = folder.join(name);
        let above = path.parent().unwrap();
        fs::create_dir_all(above).unwrap();
        let draft = above.join(".draft");
        fs::write(&draft, text).unwrap();
        fs::rename(draft, path).unwrap();
    }
}
