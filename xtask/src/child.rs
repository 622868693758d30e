//! Other programs that a step starts and must end: a server that says where it listens, and a
//! program that has a deadline. What they write goes to files, and is shown when it matters.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::shell::{self, Failure};

/// How long a start or an end may take on a busy machine; an interpreter reads many files first.
const START_WAIT: Duration = Duration::from_secs(300);
const STOP_WAIT: Duration = Duration::from_secs(180);
const POLL: Duration = Duration::from_millis(50);
/// How the line of a check that passed begins.
const PASSED: &str = "ok ";
/// How much of a log is printed when it matters.
const TAIL_LINES: usize = 150;

/// A server that is started, asked to stop at its end, and killed with its value in any case.
pub struct Server {
    child: Child,
    name: String,
    log: PathBuf,
    pub url: String,
}

impl Server {
    /// Starts it and waits for the line that begins with the banner; what follows is the address.
    /// What it says on standard error goes to the log.
    pub fn start(command: &mut Command, banner: &str, log: &Path) -> Result<Self, Failure> {
        let name = command.get_program().to_string_lossy().into_owned();
        // Its standard input stays open as long as we live, so that it can end with us.
        let child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(create(log)?)
            .spawn()
            .map_err(|error| {
                Failure::new(format!("could not start `{name}`: {error}; build it first"))
            })?;
        let mut server = Self { child, name, log: log.to_path_buf(), url: String::new() };
        server.url = server.listening(banner)?;
        Ok(server)
    }

    /// Where it listens, once it says so. The rest of its output is read and dropped.
    fn listening(&mut self, banner: &str) -> Result<String, Failure> {
        let (sender, lines) = mpsc::channel();
        if let Some(output) = self.child.stdout.take() {
            thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    // No one listens after the first line that matters.
                    let _ = sender.send(line);
                }
            });
        }
        let deadline = Instant::now() + START_WAIT;
        while let Ok(line) = lines.recv_timeout(deadline.saturating_duration_since(Instant::now()))
        {
            if let Some(url) = line.strip_prefix(banner) {
                return Ok(url.trim().to_owned());
            }
        }
        print_tail(&self.log);
        let name = &self.name;
        let log = self.log.display();
        Err(Failure::new(format!("`{name}` did not say where it listens; look at `{log}`")))
    }

    /// Asks it to stop, and expects it to do so in good order.
    pub fn stop(&mut self) -> Result<(), Failure> {
        let pid = self.child.id().to_string();
        let name = &self.name;
        shell::run("kill", Command::new("kill").args(["-TERM", pid.as_str()]))?;
        match ended(&mut self.child, STOP_WAIT)? {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(Failure::new(format!("`{name}` ended with {status}"))),
            None => {
                let seconds = STOP_WAIT.as_secs();
                Err(Failure::new(format!("`{name}` did not stop within {seconds} s")))
            }
        }
    }

    /// Stops it after some work, which failed or not; its log is shown if anything did.
    pub fn stop_after(mut self, worked: Result<(), Failure>) -> Result<(), Failure> {
        let stopped = self.stop();
        if worked.is_err() || stopped.is_err() {
            print_tail(&self.log);
        }
        worked.and(stopped)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        kill(&mut self.child);
    }
}

/// Runs a program to its end with what it says in a log (`.err` beside it for its complaints). One
/// that takes longer than the wait is ended, and that is a failure.
pub fn run_within(
    name: &str,
    command: &mut Command,
    log: &Path,
    wait: Duration,
) -> Result<ExitStatus, Failure> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(create(log)?)
        .stderr(create(&log.with_extension("err"))?)
        .spawn()
        .map_err(|error| Failure::new(format!("could not start {name}: {error}")))?;
    if let Some(status) = ended(&mut child, wait)? {
        return Ok(status);
    }
    kill(&mut child);
    print_logs(log);
    let seconds = wait.as_secs();
    Err(Failure::new(format!("{name} took longer than {seconds} s")))
}

/// Runs a program that prints one line for each check and ends with zero if all of them passed; how
/// many did. None at all is a failure, too.
pub fn checks_within(
    name: &str,
    command: &mut Command,
    log: &Path,
    wait: Duration,
) -> Result<usize, Failure> {
    // What a script prints must be in its log even when it is ended.
    command.env("PYTHONUNBUFFERED", "1");
    let status = run_within(name, command, log, wait)?;
    let text = fs::read_to_string(log).unwrap_or_default();
    let passed = text.lines().filter(|line| line.starts_with(PASSED)).count();
    if status.success() && passed > 0 {
        return Ok(passed);
    }
    print_logs(log);
    Err(Failure::new(format!("{name} ended with {status} after {passed} checks that passed")))
}

/// Prints the ends of a program's logs, complaints first.
pub fn print_logs(log: &Path) {
    print_tail(&log.with_extension("err"));
    print_tail(log);
}

/// Writes a file that a program is to find.
pub fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| unwritable(path, &error))
}

/// Makes an empty file that a program is to write into.
pub fn create(path: &Path) -> Result<File, Failure> {
    File::create(path).map_err(|error| unwritable(path, &error))
}

/// Makes a folder and those above it.
pub fn create_folder(path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path).map_err(|error| unwritable(path, &error))
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

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot write `{}`: {error}; check its rights", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_secs(60);

    /// A log that no other run of these tests has.
    fn own(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("waypost-child-{name}-{}.log", std::process::id()))
    }

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
        let log = own("none");
        let started = Server::start(&mut Command::new("no/such/waypost"), "listening on ", &log);
        let message = started.err().map(|failure| failure.to_string()).unwrap_or_default();
        assert!(message.contains("`no/such/waypost`"), "{message}");
        assert!(fs::remove_file(&log).is_ok());
    }

    #[test]
    fn checks_are_counted_and_none_is_a_failure() {
        let log = own("checks");
        let checks = |script: &str| {
            let mut command = Command::new("sh");
            checks_within("the script", command.args(["-c", script]), &log, WAIT)
        };
        assert_eq!(checks("echo ok a; echo hm; echo ok b").ok(), Some(2));
        assert!(checks("echo ok a; exit 1").is_err());
        assert!(checks("echo hm").is_err());
        assert!(fs::remove_file(&log).is_ok());
        assert!(fs::remove_file(log.with_extension("err")).is_ok());
    }

    #[test]
    fn a_program_past_its_deadline_is_a_failure() {
        let log = own("late");
        let mut command = Command::new("sleep");
        let ran = run_within("the sleeper", command.arg("60"), &log, Duration::ZERO);
        let message = ran.err().map(|failure| failure.to_string()).unwrap_or_default();
        assert_eq!(message, "the sleeper took longer than 0 s");
        assert!(fs::remove_file(&log).is_ok());
        assert!(fs::remove_file(log.with_extension("err")).is_ok());
    }
}
