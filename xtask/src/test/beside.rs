//! Steps that run beside each other, each in a process of its own, at most two at once. What one
//! says is collected and printed whole at its end. When one fails, the others are ended with all
//! that they started.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::child;
use crate::shell::{self, Failure};

/// Each takes about one core, and two is what every machine has.
const AT_ONCE: usize = 2;
const POLL: Duration = Duration::from_millis(50);

/// A step, and the program that is this step and nothing else.
pub struct Beside {
    /// What it is called.
    pub name: &'static str,
    /// The program. Its input stays open as long as we live.
    pub command: Command,
}

/// How long a step took.
#[derive(Debug, PartialEq)]
pub struct Took {
    /// What it is called.
    pub name: &'static str,
    /// In seconds.
    pub seconds: f64,
}

/// Runs the steps in the order of the list, with their logs in this folder; the first that fails
/// ends it.
pub fn run(steps: Vec<Beside>, logs: &Path) -> Result<Vec<Took>, Failure> {
    let mut waiting = steps.into_iter();
    let mut running: Vec<Running> = Vec::new();
    let mut times = Vec::new();
    loop {
        while running.len() < AT_ONCE {
            let Some(step) = waiting.next() else { break };
            running.push(Running::start(step, logs)?);
        }
        if running.is_empty() {
            return Ok(times);
        }
        match first_over(&mut running)? {
            // After a failure those that still run end with their values.
            Some(over) => times.push(over.tell()?),
            None => thread::sleep(POLL),
        }
    }
}

/// Ends this process and all that it started when its input ends, which is when its parent does.
/// For a process that leads a group.
pub fn end_with_parent() {
    thread::spawn(|| {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        shell::end_group(process::id());
    });
}

/// A step under way; it is ended with its value.
struct Running {
    name: &'static str,
    child: Child,
    log: PathBuf,
    begun: Instant,
}

impl Running {
    fn start(step: Beside, logs: &Path) -> Result<Self, Failure> {
        let Beside { name, mut command } = step;
        let failure =
            |error: io::Error| Failure::new(format!("could not start step `{name}`: {error}"));
        let log = logs.join(format!("{name}.log"));
        let output = child::create(&log)?;
        let complaints = output.try_clone().map_err(failure)?;
        let child = shell::own_group(&mut command)
            .stdin(Stdio::piped())
            .stdout(output)
            .stderr(complaints)
            .spawn()
            .map_err(failure)?;
        println!("   started: {name}");
        Ok(Self { name, child, log, begun: Instant::now() })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // One that is over is left alone: it has been waited for.
        if matches!(self.child.try_wait(), Ok(None)) {
            shell::end_group(self.child.id());
            let _ = self.child.wait();
            println!("   ended early: {}", self.name);
        }
    }
}

/// A step that came to its end.
struct Over {
    took: Took,
    status: ExitStatus,
    log: PathBuf,
}

impl Over {
    /// Prints what it said, and says whether it passed.
    fn tell(self) -> Result<Took, Failure> {
        let Self { took, status, log } = self;
        let Took { name, seconds } = took;
        let said = fs::read(&log).unwrap_or_default();
        println!("== step: {name}");
        print!("{}", String::from_utf8_lossy(&said));
        if status.success() {
            println!("   {name} took {seconds:.1} s");
            return Ok(took);
        }
        Err(Failure::new(format!(
            "step `{name}` failed after {seconds:.1} s with {status}; its output above says why"
        )))
    }
}

/// Takes one that is over out of the list.
fn first_over(running: &mut Vec<Running>) -> Result<Option<Over>, Failure> {
    let mut found = None;
    for (index, step) in running.iter_mut().enumerate() {
        let status = step.child.try_wait();
        let status = status.map_err(|error| Failure::new(format!("cannot wait: {error}")))?;
        if let Some(status) = status {
            found = Some((index, status));
            break;
        }
    }
    let Some((index, status)) = found else { return Ok(None) };
    let step = running.remove(index);
    if !status.success() {
        // It may have died before it could end what it started.
        shell::end_group(step.child.id());
    }
    let took = Took { name: step.name, seconds: step.begun.elapsed().as_secs_f64() };
    Ok(Some(Over { took, status, log: step.log.clone() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    /// A folder that no other run of these tests has.
    fn folder(name: &str) -> Result<PathBuf, Failure> {
        let id = process::id();
        let folder = std::env::temp_dir().join(format!("waypost-beside-{name}-{id}"));
        child::create_folder(&folder)?;
        Ok(folder)
    }

    fn step(name: &'static str, script: &str, folder: &Path) -> Beside {
        let mut command = Command::new("sh");
        command.args(["-c", script]).current_dir(folder);
        Beside { name, command }
    }

    /// A line of a script that waits for a file with something in it, for a minute at most.
    fn until(file: &str) -> String {
        format!(
            "n=0; until [ -s {file} ]; do n=$((n + 1)); [ $n -lt 6000 ] || exit 9; sleep 0.01; done"
        )
    }

    /// Whether a process runs; one that is dead but not waited for does not.
    fn runs(pid: &str) -> bool {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    }

    #[test]
    fn two_run_at_once_and_the_third_after_one_of_them() -> Result<(), Failure> {
        let folder = folder("two")?;
        // Each of the first two ends only when it has seen the other.
        let meet =
            |mine: &str, other: &str| format!("echo {mine} > {mine}; {}; echo met", until(other));
        let steps = vec![
            step("a", &meet("a", "b"), &folder),
            step("b", &meet("b", "a"), &folder),
            step("c", "ls a b", &folder),
        ];
        let mut names: Vec<&str> = run(steps, &folder)?.iter().map(|took| took.name).collect();
        names.sort_unstable();
        assert_eq!(names, ["a", "b", "c"]);
        let said = fs::read_to_string(folder.join("a.log")).unwrap_or_default();
        assert_eq!(said, "met\n");
        assert!(fs::remove_dir_all(&folder).is_ok());
        Ok(())
    }

    #[test]
    fn a_failure_ends_the_others_and_all_that_they_started() -> Result<(), Failure> {
        let folder = folder("failure")?;
        let steps = vec![
            step("long", "sleep 600 & echo $! > started; wait", &folder),
            step("short", &format!("{}; exit 3", until("started")), &folder),
            step("never", "touch never", &folder),
        ];
        let begun = Instant::now();
        let message = run(steps, &folder).err().map(|failure| failure.to_string());
        let message = message.unwrap_or_default();
        assert!(message.starts_with("step `short` failed after "), "{message}");
        let started = fs::read_to_string(folder.join("started")).unwrap_or_default();
        assert!(!started.is_empty());
        while runs(started.trim()) {
            assert!(begun.elapsed() < LIMIT, "waited {LIMIT:?} in vain for `sleep` to be ended");
            thread::sleep(POLL);
        }
        assert!(!folder.join("never").exists());
        assert!(fs::remove_dir_all(&folder).is_ok());
        Ok(())
    }
}
