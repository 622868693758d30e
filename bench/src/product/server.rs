//! The real server as a process: started on a project and a data folder, and stopped whatever
//! happens.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::plans;
use crate::Result;
use crate::child::{self, Child};
use crate::http::{self, Client};
use crate::machine;

const BANNER: &str = "waypost listening on http://";
const READY_LIMIT: Duration = Duration::from_secs(20);
/// The same for a server that another program runs, instruction by instruction.
const READY_LIMIT_UNDER: Duration = Duration::from_secs(600);
const READY_PAUSE: Duration = Duration::from_millis(1);
const STOP_LIMIT: Duration = Duration::from_secs(60);
const STOP_PAUSE: Duration = Duration::from_millis(10);
const LOG_TAIL_BYTES: usize = 2_000;
/// How the variables begin that say what is exported, and where to.
const TELEMETRY: [&str; 2] = ["OTEL_", "LANGFUSE_"];

/// The program that runs the server, and its arguments; empty where the server is started directly.
#[derive(Clone, Debug, Default)]
pub struct Launcher(Vec<String>);

impl Launcher {
    /// Starts the server by these words in front of its own.
    pub fn under<'a>(words: impl IntoIterator<Item = &'a str>) -> Self {
        Self(words.into_iter().map(str::to_owned).collect())
    }

    fn command(&self, binary: &Path) -> Command {
        match self.0.split_first() {
            None => Command::new(binary),
            Some((program, words)) => {
                let mut command = Command::new(program);
                command.args(words).arg(binary);
                command
            }
        }
    }

    fn ready_limit(&self) -> Duration {
        if self.0.is_empty() { READY_LIMIT } else { READY_LIMIT_UNDER }
    }
}

/// All that servers share in one benchmark run: the binary, the project and the receiver.
#[derive(Debug)]
pub struct Site {
    binary: PathBuf,
    launcher: Launcher,
    dir: PathBuf,
    folder: TempDir,
    // Held for its process: the writing plan sends to it.
    receiver: Child,
}

impl Site {
    /// Starts the receiver and writes the project folder.
    pub fn build(server: Option<&Path>, dir: &Path) -> Result<Self> {
        let binary = server.ok_or("no server to start: set WAYPOST_BIN")?.to_owned();
        let dir = dir.to_owned();
        let folder = temporary(&dir, "waypost-bench-site-")?;
        let receiver = Child::start(child::RECEIVER)?;
        let site = Self { binary, launcher: Launcher::default(), dir, folder, receiver };
        plans::write(&site.project(), site.receiver.address().port())?;
        // A build from before this setting has the tools without it, and refuses the key.
        if site.has_setting("tools.demo")? {
            plans::switch_on(&site.project())?;
        }
        Ok(site)
    }

    /// The same with servers that another program runs.
    pub fn under(self, launcher: &Launcher) -> Self {
        Self { launcher: launcher.clone(), ..self }
    }

    /// Whether the binary knows a setting.
    fn has_setting(&self, name: &str) -> Result<bool> {
        let binary = self.binary.display();
        let mut command = Command::new(&self.binary);
        let shown = command.args(["config", "show"]).arg(self.project()).output();
        let shown = shown.map_err(|error| format!("cannot start `{binary}`: {error}"))?;
        Ok(String::from_utf8_lossy(&shown.stdout).contains(name))
    }

    /// A new, empty data folder on the disk that is measured.
    pub fn data(&self) -> Result<TempDir> {
        temporary(&self.dir, "waypost-bench-data-")
    }

    /// The error with the end of the last server's log, where the cause most often stands.
    pub fn explain(&self, error: &dyn std::error::Error) -> String {
        // A server that never started has no log.
        let log = std::fs::read(self.log()).unwrap_or_default();
        let tail = &log[log.len().saturating_sub(LOG_TAIL_BYTES)..];
        let tail = String::from_utf8_lossy(tail);
        format!("{error}\nthe server's log ends with:\n{tail}")
    }

    /// The project folder, to add to before the first server is started.
    pub fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("server.log")
    }
}

/// How long a start took, counted from before the spawn.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Until the line that names the port.
    pub listening: Duration,
    /// Until `GET /readyz` answered 200.
    pub ready: Duration,
}

/// A running server that is ready; it is stopped when this is dropped.
#[derive(Debug)]
pub struct Server {
    process: Process,
    address: SocketAddr,
    times: Times,
}

impl Server {
    /// Starts the server and waits until it is ready.
    pub async fn start(site: &Site, data: &Path) -> Result<Self> {
        Self::start_with(site, data, &[]).await
    }

    /// The same with these variables. No others of telemetry get there: what they cost would be
    /// measured with everything else.
    pub async fn start_with(site: &Site, data: &Path, variables: &[(&str, &str)]) -> Result<Self> {
        let log = File::create(site.log())?;
        let binary = site.binary.display();
        let mut command = site.launcher.command(&site.binary);
        command.arg("up").arg(site.project()).arg("--data").arg(data);
        command.args(["--port", "0", "--log", "text"]);
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_of_telemetry(name)) {
            command.env_remove(name);
        }
        command.envs(variables.iter().copied());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::from(log));
        let begun = Instant::now();
        let spawned = command.spawn();
        let child = spawned.map_err(|error| format!("cannot start `{binary}`: {error}"))?;
        let mut process = Process { child };
        let stdout = process.child.stdout.take().ok_or("the server has no stdout")?;
        let limit = site.launcher.ready_limit();
        let waited = timeout(limit, wait_until_ready(stdout, begun)).await;
        let (address, times) =
            waited.map_err(|_| format!("the server was not ready within {limit:?}"))??;
        Ok(Self { process, address, times })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn pid(&self) -> u32 {
        self.process.child.id()
    }

    /// How long its start took.
    pub fn times(&self) -> Times {
        self.times
    }

    /// Its resident memory.
    pub fn rss_bytes(&self) -> Result<u64> {
        machine::rss_bytes(self.process.child.id())
    }

    /// How many files and sockets it has open.
    pub fn open_files(&self) -> Result<usize> {
        machine::open_files(self.process.child.id())
    }

    /// Stops it in order; an error if it was gone already or had to be killed.
    pub fn stop(mut self) -> Result<()> {
        if let Some(status) = self.process.child.try_wait()? {
            return Err(format!("the server ended by itself: {status}").into());
        }
        self.process.end()
    }
}

/// Ends with its owner: first asked, then killed.
#[derive(Debug)]
struct Process {
    child: std::process::Child,
}

impl Process {
    fn end(&mut self) -> Result<()> {
        if self.child.try_wait()?.is_some() {
            return Ok(());
        }
        let pid = self.child.id().to_string();
        let asked = Command::new("kill").args(["-TERM", &pid]).status();
        if asked.is_ok_and(|status| status.success()) && self.ends_within(STOP_LIMIT)? {
            return Ok(());
        }
        self.child.kill()?;
        self.child.wait()?;
        Err(format!("the server did not stop within {STOP_LIMIT:?} and was killed").into())
    }

    fn ends_within(&mut self, limit: Duration) -> Result<bool> {
        let begun = Instant::now();
        while begun.elapsed() < limit {
            if self.child.try_wait()?.is_some() {
                return Ok(true);
            }
            std::thread::sleep(STOP_PAUSE);
        }
        Ok(false)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            eprintln!("bench: {error}");
        }
    }
}

fn is_of_telemetry(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    TELEMETRY.iter().any(|prefix| name.starts_with(prefix))
}

fn temporary(dir: &Path, prefix: &str) -> Result<TempDir> {
    Ok(tempfile::Builder::new().prefix(prefix).tempdir_in(dir)?)
}

async fn wait_until_ready(stdout: ChildStdout, begun: Instant) -> Result<(SocketAddr, Times)> {
    let address = named_address(lines_of(stdout)).await?;
    let listening = begun.elapsed();
    let request = http::get(address, "/readyz");
    while !is_ready(address, &request).await {
        sleep(READY_PAUSE).await;
    }
    Ok((address, Times { listening, ready: begun.elapsed() }))
}

async fn named_address(mut lines: mpsc::UnboundedReceiver<String>) -> Result<SocketAddr> {
    while let Some(line) = lines.recv().await {
        if let Some((_, address)) = line.split_once(BANNER) {
            return Ok(address.trim().trim_end_matches('/').parse()?);
        }
    }
    Err("the server ended before it listened".into())
}

async fn is_ready(address: SocketAddr, request: &[u8]) -> bool {
    let Ok(mut client) = Client::connect(address).await else {
        return false;
    };
    client.send(request).await.is_ok_and(|answer| answer.status == 200)
}

/// The server's lines as they come. They are read to the end even when no one listens any more: a
/// full pipe would block the server.
fn lines_of(stdout: ChildStdout) -> mpsc::UnboundedReceiver<String> {
    let (sender, receiver) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(io::Result::ok) {
            let _ = sender.send(line);
        }
    });
    receiver
}
