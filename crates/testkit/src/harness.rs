//! The real programs as processes of a test: started, waited for, killed, and never left behind.
//! What a program writes to standard error is kept in a file and shown when something goes wrong.

use crate::http::Client;
use crate::leaks;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// How long a start or an end may take on a busy machine.
const START_LIMIT: Duration = Duration::from_secs(300);
const STOP_LIMIT: Duration = Duration::from_secs(180);
const POLL: Duration = Duration::from_millis(5);
/// How often it is looked for what takes long: each look is work for a server.
const LONG_POLL: Duration = Duration::from_millis(250);
const LOG_TAIL_BYTES: usize = 4_000;
/// What a server says before its address.
pub const SERVER_BANNER: &str = "waypost listening on http://";

/// What the tests themselves are set up by; the server must not take it for settings of its own.
const TEST_VARIABLES: [&str; 11] = [
    "WAYPOST_BIN", "WAYPOST_FIXTURE_BIN", "WAYPOST_KILLS", "WAYPOST_CHILD_KILLS", "WAYPOST_SEED",
    "WAYPOST_PAUSED", "WAYPOST_HELD", "WAYPOST_FUZZ_SECONDS", "WAYPOST_FUZZ_SEED",
    "WAYPOST_FUZZ_CASE", "WAYPOST_LIVE",
];

/// Looks until something is there, and panics with what it waited for when the time is up.
pub fn wait_for<T>(what: &str, limit: Duration, look: impl FnMut() -> Option<T>) -> T {
    looked_for(what, limit, POLL, look)
}

/// The same for what takes many seconds: it looks less often, so that those who work meanwhile are
/// not slowed down.
pub fn wait_long_for<T>(what: &str, limit: Duration, look: impl FnMut() -> Option<T>) -> T {
    looked_for(what, limit, LONG_POLL, look)
}

fn looked_for<T>(
    what: &str,
    limit: Duration,
    every: Duration,
    mut look: impl FnMut() -> Option<T>,
) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < limit, "waited {limit:?} in vain for {what}");
        thread::sleep(every);
    }
}

/// A process as the system shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub pid: u32,
    /// Its program and arguments.
    pub words: Vec<String>,
}

/// All living processes with this among their arguments. One that is dead but not reaped yet has
/// none.
pub fn processes_with(argument: &str) -> Vec<Seen> {
    let entries = fs::read_dir("/proc").unwrap_or_else(|error| panic!("no `/proc`: {error}"));
    let seen = |entry: fs::DirEntry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        let words = line.split(|byte| *byte == 0).filter(|word| !word.is_empty());
        let words: Vec<String> =
            words.map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        words.iter().any(|word| word == argument).then_some(Seen { pid, words })
    };
    entries.flatten().filter_map(seen).collect()
}

/// Sends a signal, `KILL` or `TERM`, to a process that may be gone already.
pub fn send_signal(signal: &str, pid: u32) {
    // The shell's own `kill`: the program of that name is not everywhere.
    let script = "kill -s \"$0\" \"$1\" 2>/dev/null || true";
    let sent = Command::new("sh").args(["-c", script, signal, &pid.to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()), "cannot send {signal} to {pid}");
}

/// How much memory a process has, in kilobytes.
pub fn rss_kb(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.unwrap_or_else(|| panic!("no VmRSS of process {pid}: {status}"))
}

/// Settings by which a project has the tools of the demo, such as `math::add`.
pub const DEMO_TOOLS: &str = "[tools]\ndemo = true\n";

/// A project folder.
#[derive(Debug)]
pub struct Project {
    folder: PathBuf,
}

impl Project {
    /// Writes `waypost.toml` and the plans, each a path below `plans/` and its text.
    pub fn write(folder: &Path, plans: &[(&str, &str)], toml: &str) -> Self {
        write_file(&folder.join("waypost.toml"), toml);
        for (path, text) in plans {
            write_file(&folder.join("plans").join(path), text);
        }
        Self { folder: folder.to_path_buf() }
    }

    pub fn path(&self) -> &Path {
        &self.folder
    }
}

/// How a server is started.
#[derive(Debug, Clone, Copy)]
pub struct StartOptions<'a> {
    /// The project that it runs.
    pub project: &'a Path,
    /// Its data folder. `server.log` beside it collects what every start on it says.
    pub data: &'a Path,
    /// More arguments for `waypost up`.
    pub args: &'a [&'a str],
}

/// How a process ended that was asked to.
#[derive(Debug, Clone, Copy)]
pub struct Ended {
    /// What it said at its end.
    pub status: ExitStatus,
    /// How long it took from the signal on.
    pub took: Duration,
}

/// A running server; it is killed when this is dropped.
#[derive(Debug)]
pub struct Server {
    process: Process,
}

impl Server {
    /// Starts `waypost up` and waits until it listens; panics with its log if it does not.
    pub fn start(options: &StartOptions<'_>) -> Self {
        Self::try_start(options).unwrap_or_else(|failure| panic!("{failure}"))
    }

    /// The same, for a server that may refuse to start: the error carries the end of its log.
    pub fn try_start(options: &StartOptions<'_>) -> Result<Self, String> {
        let data = absolute(options.data);
        let folder = data.parent().unwrap_or(&data);
        let mut command = up(folder);
        command.arg(absolute(options.project)).arg("--data").arg(&data);
        command.args(["--port", "0", "--log", "json"]).args(options.args);
        let process = Process::start(command, &folder.join("server.log"), SERVER_BANNER)?;
        Ok(Self { process })
    }

    /// Starts `waypost up` in a shell that lets it have so many descriptors at most.
    pub fn with_descriptors(options: &StartOptions<'_>, limit: u32) -> Self {
        let data = absolute(options.data);
        let folder = data.parent().unwrap_or(&data);
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -n \"$0\" && exec \"$@\"", &limit.to_string()]);
        command.arg(program("WAYPOST_BIN", "waypost", "waypost")).arg("up");
        in_folder(&mut command, folder);
        command.arg(absolute(options.project)).arg("--data").arg(&data);
        command.args(["--port", "0", "--log", "json"]).args(options.args);
        let process = Process::start(command, &folder.join("server.log"), SERVER_BANNER)
            .unwrap_or_else(|failure| panic!("{failure}"));
        Self { process }
    }

    /// Starts `abortive`, which has tools that can end it; an error where it ended before it
    /// listened.
    pub fn abortive(project: &Path, data: &Path) -> Result<Self, String> {
        let data = absolute(data);
        let folder = data.parent().unwrap_or(&data);
        let mut command = Command::new("sh");
        // A process that aborts must not write its whole memory to a file.
        command.args(["-c", "ulimit -c 0 && exec \"$0\" \"$@\""]);
        command.arg(fixture()).arg("abortive");
        in_folder(&mut command, folder);
        command.arg(absolute(project)).arg(&data);
        let process = Process::start(command, &folder.join("server.log"), SERVER_BANNER)?;
        Ok(Self { process })
    }

    /// Starts `waypost up --demo` as the README says, in an empty folder, on a port of its own.
    pub fn demo(folder: &Path) -> Self {
        let mut command = up(folder);
        command.args(["--demo", "--port", "0"]);
        let process = Process::start(command, &folder.join("server.log"), SERVER_BANNER)
            .unwrap_or_else(|failure| panic!("{failure}"));
        Self { process }
    }

    pub fn address(&self) -> SocketAddr {
        self.process.address
    }

    /// A client that is connected to nothing yet.
    pub fn client(&self) -> Client {
        Client::new(self.address())
    }

    pub fn pid(&self) -> u32 {
        self.process.child.id()
    }

    /// The end of its log, for a message.
    pub fn log_tail(&self) -> String {
        self.process.log_tail()
    }

    /// Waits until `GET /readyz` answers 200.
    pub fn wait_until_ready(&mut self) {
        let mut client = self.client().limit(START_LIMIT);
        wait_for("`GET /readyz` to answer 200", START_LIMIT, || {
            if let Some(status) = self.process.ended() {
                panic!("{}", self.process.explain(&format!("it ended ({status}) before ready")));
            }
            client.get("/readyz").ok().filter(|answer| answer.status == 200)
        });
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        self.process.ended().is_some()
    }

    /// SIGKILL: it gets no chance to do anything. Its sockets are closed when this returns.
    pub fn kill9(mut self) {
        if let Some(status) = self.process.ended() {
            panic!("{}", self.process.explain(&format!("it ended by itself ({status})")));
        }
        self.process.kill();
    }

    /// SIGTERM: it must end in good order; returns how long that took.
    pub fn terminate(mut self) -> Ended {
        self.process.terminate()
    }
}

impl Drop for Server {
    /// Whatever a test is about: no credential that was used in it is in the log.
    fn drop(&mut self) {
        if !thread::panicking() {
            leaks::assert_none_in_file(&self.process.log, self.process.log_from);
        }
    }
}

/// A child process that says on standard output where it listens; killed when dropped.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    address: SocketAddr,
    log: PathBuf,
    /// Where in the log its own part begins.
    log_from: u64,
}

impl Process {
    /// Starts it and waits for the line that begins with the banner and names the address.
    pub(crate) fn start(mut command: Command, log: &Path, banner: &str) -> Result<Self, String> {
        let stderr = log_file(log)?;
        let log_from = fs::metadata(log).map_or(0, |known| known.len());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr);
        let child =
            command.spawn().map_err(|error| format!("cannot start {command:?}: {error}"))?;
        let address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        // From here on an early return ends the process.
        let mut process = Self { child, address, log: log.to_path_buf(), log_from };
        process.address = process.announced(banner)?;
        Ok(process)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    fn announced(&mut self, banner: &str) -> Result<SocketAddr, String> {
        let stdout = self.child.stdout.take().ok_or("it has no standard output")?;
        let lines = lines_of(stdout);
        let deadline = Instant::now() + START_LIMIT;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = lines.recv_timeout(left).map_err(|error| match error {
                RecvTimeoutError::Timeout => {
                    self.explain(&format!("it did not listen within {START_LIMIT:?}"))
                }
                RecvTimeoutError::Disconnected => self.explain("it ended before it listened"),
            })?;
            let Some((_, address)) = line.split_once(banner) else {
                continue;
            };
            let address = address.split(['/', ' ']).next().unwrap_or_default();
            return address
                .parse::<SocketAddr>()
                .map_err(|error| self.explain(&format!("`{line}` names no address: {error}")));
        }
    }

    fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap_or_else(|error| panic!("cannot look at a child: {error}"))
    }

    fn kill(&mut self) {
        // Both fail only when the process is gone already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn terminate(&mut self) -> Ended {
        let begun = Instant::now();
        let pid = self.child.id().to_string();
        // The shell's own `kill`: the program of that name is not everywhere.
        let sent = Command::new("sh").args(["-c", "kill -TERM \"$0\"", &pid]).status();
        assert!(sent.is_ok_and(|status| status.success()), "cannot send SIGTERM to {pid}");
        loop {
            if let Some(status) = self.ended() {
                return Ended { status, took: begun.elapsed() };
            }
            if begun.elapsed() > STOP_LIMIT {
                let what = format!("it did not end within {STOP_LIMIT:?} of SIGTERM");
                panic!("{}", self.explain(&what));
            }
            thread::sleep(POLL);
        }
    }

    fn explain(&self, what: &str) -> String {
        let log = self.log.display();
        format!("process {}: {what}; `{log}` ends with:\n{}", self.child.id(), self.log_tail())
    }

    fn log_tail(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_else(|error| error.to_string().into_bytes());
        let tail = &log[log.len().saturating_sub(LOG_TAIL_BYTES)..];
        String::from_utf8_lossy(tail).into_owned()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The program `fixture`: its first argument says which of our test programs it is.
pub fn fixture() -> PathBuf {
    program("WAYPOST_FIXTURE_BIN", "fixture", "fixture")
}

/// A program that was built beside the tests, or that this variable names.
fn program(variable: &str, name: &str, package: &str) -> PathBuf {
    let named = std::env::var_os(variable).map(PathBuf::from);
    let path = named.unwrap_or_else(|| beside_the_tests(name));
    assert!(
        path.is_file(),
        "there is no program `{}`; build it with `cargo build -p {package}`, \
         or name another one in {variable}",
        path.display()
    );
    path
}

/// Test executables lie in `target/debug/deps`, programs in `target/debug`.
fn beside_the_tests(name: &str) -> PathBuf {
    let this = std::env::current_exe().unwrap_or_else(|error| panic!("who am I? {error}"));
    let folder = this.parent().and_then(Path::parent).unwrap_or(Path::new("."));
    folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
}

/// Runs `waypost` with these arguments to its end; how it ended, and what it said.
pub fn waypost(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = product(folder);
    command.args(arguments).stdin(Stdio::null());
    command.output().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"))
}

/// The same with these variables, and with this on its standard input, which then ends. It must end
/// by itself, in time.
pub fn waypost_fed(
    folder: &Path,
    arguments: &[&str],
    variables: &[(&str, &str)],
    input: &str,
) -> Output {
    let mut command = product(folder);
    command.args(arguments).envs(variables.iter().copied());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let words = arguments.join(" ");
    let child = command.spawn();
    let mut child = child.unwrap_or_else(|error| panic!("cannot run `waypost {words}`: {error}"));
    if let Some(mut stdin) = child.stdin.take() {
        // One that ends at once reads nothing.
        let _ = stdin.write_all(input.as_bytes());
    }
    let begun = Instant::now();
    while child.try_wait().is_ok_and(|ended| ended.is_none()) {
        if begun.elapsed() > STOP_LIMIT {
            // Both fail only when the process is gone already, which is what is wanted.
            let _ = child.kill();
            let _ = child.wait();
            panic!("`waypost {words}` did not end within {STOP_LIMIT:?}");
        }
        thread::sleep(POLL);
    }
    let output = child.wait_with_output();
    output.unwrap_or_else(|error| panic!("`waypost {words}` left no output: {error}"))
}

/// `waypost up` in a folder of the test's own.
fn up(folder: &Path) -> Command {
    let mut command = product(folder);
    command.arg("up");
    command
}

/// `waypost` in a folder of the test's own, so that it finds no one else's settings.
fn product(folder: &Path) -> Command {
    let mut command = Command::new(program("WAYPOST_BIN", "waypost", "waypost"));
    in_folder(&mut command, folder);
    command
}

fn in_folder(command: &mut Command, folder: &Path) {
    command.current_dir(folder).env("XDG_CONFIG_HOME", folder.join("no-settings"));
    for variable in TEST_VARIABLES {
        command.env_remove(variable);
    }
}

/// The program's lines as they come. They are read to the end even when no one listens any more: a
/// full pipe would block the program.
fn lines_of(stdout: ChildStdout) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    receiver
}

fn log_file(path: &Path) -> Result<File, String> {
    let opened = OpenOptions::new().create(true).append(true).open(path);
    opened.map_err(|error| format!("cannot write `{}`: {error}", path.display()))
}

fn write_file(path: &Path, text: &str) {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(path, text))
        .unwrap_or_else(|error| panic!("cannot write `{}`: {error}", path.display()));
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path)
        .unwrap_or_else(|error| panic!("no absolute path for `{}`: {error}", path.display()))
}
