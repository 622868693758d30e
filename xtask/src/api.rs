//! The step `api`: schemathesis (PyPI) reads `/openapi.json` of the real server and tries its doors
//! with thousands of requests, right and wrong ones. No answer may be a server error, and none may
//! have a status, a type or a body that the document does not tell.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::shell::{self, Failure};

const VERSION: &str = "4.32.5";
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_schema_conformance";
/// Requests per door and phase; more find little more and take minutes.
const EXAMPLES_MAX: &str = "25";
const SEED: &str = "1";
/// Streams have no end, so nobody waits for it.
const STREAMS: &str = "/events$";

/// A tool that fails is told as 502: that is an answer, and no fault of ours.
const SETTINGS: &str = "hooks = \"hooks.py\"\n\n\
                        [checks.not_a_server_error]\n\
                        expected-statuses = [\"2xx\", \"3xx\", \"4xx\", 502]\n";

/// Every door has a `default` answer, and with it every status would count as documented.
const HOOKS: &str = "\
import schemathesis


@schemathesis.hook
def before_load_schema(context, raw_schema):
    for path in raw_schema[\"paths\"].values():
        for operation in path.values():
            operation[\"responses\"].pop(\"default\", None)
";

const START_WAIT: Duration = Duration::from_secs(20);
const RUN_WAIT: Duration = Duration::from_secs(300);
const STOP_WAIT: Duration = Duration::from_secs(15);
const POLL: Duration = Duration::from_millis(50);
/// How much of a log is printed when it matters.
const TAIL_LINES: usize = 150;
const LISTENING: &str = "waypost listening on ";

/// Starts the built server, lets schemathesis at it, and stops it.
pub fn run(target: &Path) -> Result<(), Failure> {
    let program = provision(&target.join("venv"))?;
    let folder = target.join("api");
    fs::create_dir_all(&folder).map_err(|error| unwritable(&folder, &error))?;
    write(&folder.join("schemathesis.toml"), SETTINGS)?;
    write(&folder.join("hooks.py"), HOOKS)?;
    let server_log = folder.join("server.log");
    let mut server = Server::start(&target.join("debug").join("waypost"), &server_log)?;
    let examined = examine(&program, &folder, &server.url);
    let stopped = server.stop();
    if examined.is_err() || stopped.is_err() {
        print_tail(&server_log);
    }
    examined.and(stopped)
}

/// schemathesis in a virtual environment of its own, made once.
fn provision(venv: &Path) -> Result<PathBuf, Failure> {
    let program = venv.join("bin").join("schemathesis");
    let installed = || {
        shell::output_of("schemathesis", Command::new(&program).arg("--version"))
            .is_ok_and(|told| told.contains(VERSION))
    };
    if installed() {
        return Ok(program.clone());
    }
    shell::run("python3 -m venv", Command::new("python3").args(["-m", "venv"]).arg(venv))?;
    shell::run(
        "pip install schemathesis",
        Command::new(venv.join("bin").join("pip"))
            .args(["install", "--quiet", "--disable-pip-version-check"])
            .arg(format!("schemathesis=={VERSION}")),
    )?;
    if installed() {
        return Ok(program.clone());
    }
    Err(Failure::new(format!(
        "schemathesis {VERSION} is not in `{}`; remove that folder and try again",
        venv.display()
    )))
}

fn examine(program: &Path, folder: &Path, url: &str) -> Result<(), Failure> {
    let log = folder.join("schemathesis.log");
    let mut child = Command::new(program)
        .args(["--config-file", "schemathesis.toml", "--no-color", "run"])
        .arg(format!("{url}/openapi.json"))
        .args(["--checks", CHECKS, "--max-examples", EXAMPLES_MAX, "--seed", SEED])
        .args(["--exclude-path-regex", STREAMS, "--generation-database", "none"])
        .args(["--request-timeout", "40", "--warnings", "off"])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(create(&log)?)
        .stderr(create(&folder.join("schemathesis.err"))?)
        .spawn()
        .map_err(|error| Failure::new(format!("could not start schemathesis: {error}")))?;
    let Some(status) = ended(&mut child, RUN_WAIT)? else {
        kill(&mut child);
        print_tail(&log);
        let seconds = RUN_WAIT.as_secs();
        return Err(Failure::new(format!("schemathesis took longer than {seconds} s")));
    };
    if status.success() {
        let text = fs::read_to_string(&log).unwrap_or_default();
        let counts = text.lines().find(|line| line.contains(" generated, "));
        println!("   schemathesis: {}", counts.unwrap_or("no requests").trim());
        return Ok(());
    }
    print_tail(&folder.join("schemathesis.err"));
    print_tail(&log);
    Err(Failure::new(format!(
        "schemathesis ended with {status}; mend the door or what `crates/server/src/openapi` says"
    )))
}

/// The server under test; it ends with its value.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(binary: &Path, log: &Path) -> Result<Self, Failure> {
        let mut command = Command::new(binary);
        command.args(["up", "--demo", "--port", "0"]);
        // A setting of the person who runs this must not change what is tested.
        for name in ["WAYPOST_ADMIN_KEY", "WAYPOST_HOST", "WAYPOST_PORT", "WAYPOST_SERVER"] {
            command.env_remove(name);
        }
        command.env("XDG_CONFIG_HOME", log.with_file_name("no-settings"));
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(create(log)?)
            .spawn()
            .map_err(|error| {
                let binary = binary.display();
                Failure::new(format!("could not start `{binary}`: {error}; build it first"))
            })?;
        let mut server = Self { child, url: String::new() };
        server.url = server.listening()?;
        Ok(server)
    }

    /// Where it listens, once it says so. The rest of its output is read and dropped.
    fn listening(&mut self) -> Result<String, Failure> {
        let (sender, lines) = mpsc::channel();
        if let Some(output) = self.child.stdout.take() {
            thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    // Nobody listens after the first line that matters.
                    let _ = sender.send(line);
                }
            });
        }
        let deadline = Instant::now() + START_WAIT;
        while let Ok(line) = lines.recv_timeout(deadline.saturating_duration_since(Instant::now()))
        {
            if let Some(url) = line.strip_prefix(LISTENING) {
                return Ok(url.trim().to_owned());
            }
        }
        Err(Failure::new("`waypost up --demo` did not say where it listens; look at `server.log`"))
    }

    /// Asks it to stop, and expects it to do so in good order.
    fn stop(&mut self) -> Result<(), Failure> {
        let pid = self.child.id().to_string();
        shell::run("kill", Command::new("kill").args(["-TERM", pid.as_str()]))?;
        match ended(&mut self.child, STOP_WAIT)? {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(Failure::new(format!("`waypost up` ended with {status}"))),
            None => {
                let seconds = STOP_WAIT.as_secs();
                Err(Failure::new(format!("`waypost up` did not stop within {seconds} s")))
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        kill(&mut self.child);
    }
}

/// How a process ended, if it did in time.
fn ended(child: &mut Child, wait: Duration) -> Result<Option<ExitStatus>, Failure> {
    let started = Instant::now();
    loop {
        let status = child.try_wait();
        let status = status.map_err(|error| Failure::new(format!("cannot wait: {error}")))?;
        if status.is_some() || started.elapsed() >= wait {
            return Ok(status);
        }
        thread::sleep(POLL);
    }
}

/// Ends a process for good. One that is gone already is left alone: it has been waited for.
fn kill(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

fn print_tail(log: &Path) {
    let text = fs::read_to_string(log).unwrap_or_default();
    if !text.is_empty() {
        println!("-- the end of {}:\n{}", log.display(), tail(&text, TAIL_LINES));
    }
}

fn tail(text: &str, lines_max: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(lines_max)..].join("\n")
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| unwritable(path, &error))
}

fn create(path: &Path) -> Result<File, Failure> {
    File::create(path).map_err(|error| unwritable(path, &error))
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot write `{}`: {error}; check its rights", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_is_the_end() {
        assert_eq!(tail("a\nb\nc", 2), "b\nc");
        assert_eq!(tail("a", 2), "a");
        assert_eq!(tail("", 2), "");
    }

    #[test]
    fn a_process_that_goes_on_is_not_waited_for() -> Result<(), Failure> {
        let command = Command::new("sleep").arg("60").spawn();
        let mut child = command.map_err(|error| Failure::new(error.to_string()))?;
        let status = ended(&mut child, Duration::ZERO)?;
        kill(&mut child);
        assert_eq!(status, None);
        assert!(ended(&mut child, Duration::ZERO)?.is_some_and(|status| !status.success()));
        Ok(())
    }

    #[test]
    fn a_server_that_is_not_built_is_named() {
        let log = std::env::temp_dir().join("waypost-api-none.log");
        let started = Server::start(Path::new("no/such/waypost"), &log);
        let message = started.err().map(|failure| failure.to_string()).unwrap_or_default();
        assert!(message.contains("`no/such/waypost`"), "{message}");
        assert!(fs::remove_file(&log).is_ok());
    }
}
