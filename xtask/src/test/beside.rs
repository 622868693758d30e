//! Programs that run beside each other, at most two at once, and a third that mostly waits: steps,
//! and programs with tests. What one says is collected and handed over whole at its end. Who takes
//! it decides whether a failure is the end of all: then the others are ended with all that they
//! started.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::child;
use crate::shell::{self, Failure};

/// Each takes about one core, and two is what every machine has. One that waits takes less.
const AT_ONCE: usize = 2;
const POLL: Duration = Duration::from_millis(50);

/// One that is to run.
pub struct Beside {
    pub name: String,
    /// The program. Its input stays open as long as we live.
    pub command: Command,
    /// How much of the machine it takes.
    pub load: Load,
}

/// How much of the machine a program takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// It mostly waits: one of those runs beside the others.
    Waits,
    /// It computes and waits.
    Usual,
    /// It computes all the time: of those only one runs at a time.
    Computes,
}

/// How long one took.
#[derive(Debug, PartialEq)]
pub struct Took {
    pub name: String,
    pub seconds: f64,
}

/// Runs them in the order of the list, with their logs in this folder, and hands over each at its
/// end. Where that gives a failure, those that still run are ended.
pub fn run(
    mut waiting: Vec<Beside>,
    logs: &Path,
    mut take: impl FnMut(Over) -> Result<(), Failure>,
) -> Result<(), Failure> {
    child::create_folder(logs)?;
    let mut running: Vec<Running> = Vec::new();
    loop {
        while let Some(index) = next(&waiting, &running) {
            running.push(Running::start(waiting.remove(index), logs)?);
        }
        if running.is_empty() {
            return Ok(());
        }
        match first_over(&mut running)? {
            // After a failure those that still run end with their values.
            Some(over) => take(over)?,
            None => thread::sleep(POLL),
        }
    }
}

/// Who of those that wait may begin now.
fn next(waiting: &[Beside], running: &[Running]) -> Option<usize> {
    let count = |load: Load| running.iter().filter(|other| other.load == load).count();
    let has_place = count(Load::Usual) + count(Load::Computes) < AT_ONCE;
    waiting.iter().position(|one| match one.load {
        Load::Waits => count(Load::Waits) == 0,
        Load::Usual => has_place,
        Load::Computes => has_place && count(Load::Computes) == 0,
    })
}

/// Ends this process and all that it started when its input ends, which is when its parent does.
/// For a process that leads a group.
pub fn end_with_parent() {
    thread::spawn(|| {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        shell::end_group(process::id());
    });
}

/// One under way; it is ended with its value.
struct Running {
    name: String,
    load: Load,
    child: Child,
    log: PathBuf,
    begun: Instant,
}

impl Running {
    fn start(program: Beside, logs: &Path) -> Result<Self, Failure> {
        let Beside { name, mut command, load } = program;
        let failure = |error: io::Error| Failure::new(format!("could not start `{name}`: {error}"));
        let log = logs.join(format!("{}.log", name.replace('/', "-")));
        let output = child::create(&log)?;
        let complaints = output.try_clone().map_err(failure)?;
        let child = shell::own_group(&mut command)
            .stdin(Stdio::piped())
            .stdout(output)
            .stderr(complaints)
            .spawn()
            .map_err(failure)?;
        println!("   started: {name}");
        Ok(Self { name, load, child, log, begun: Instant::now() })
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

/// One that came to its end.
pub struct Over {
    /// Its name and its time.
    pub took: Took,
    /// How it ended.
    pub status: ExitStatus,
    /// All that it said.
    pub said: String,
}

impl Over {
    /// Prints what it said under this heading, and how long it took.
    pub fn print(&self, heading: &str) {
        let Took { name, seconds } = &self.took;
        println!("== {heading}{name}");
        print!("{}", self.said);
        let took = if self.status.success() { "took" } else { "failed after" };
        println!("   {name} {took} {seconds:.1} s");
    }

    /// For a step: that it failed is a failure.
    pub fn passed(self) -> Result<Took, Failure> {
        let Self { took, status, .. } = self;
        if status.success() {
            return Ok(took);
        }
        let Took { name, seconds } = took;
        Err(Failure::new(format!(
            "step `{name}` failed after {seconds:.1} s with {status}; its output above says why"
        )))
    }
}

/// Takes one that is over out of the list.
fn first_over(running: &mut Vec<Running>) -> Result<Option<Over>, Failure> {
    let mut found = None;
    for (index, program) in running.iter_mut().enumerate() {
        let status = program.child.try_wait();
        let status = status.map_err(|error| Failure::new(format!("cannot wait: {error}")))?;
        if let Some(status) = status {
            found = Some((index, status));
            break;
        }
    }
    let Some((index, status)) = found else { return Ok(None) };
    let program = running.remove(index);
    if !status.success() {
        // It may have died before it could end what it started.
        shell::end_group(program.child.id());
    }
    let took = Took { name: program.name.clone(), seconds: program.begun.elapsed().as_secs_f64() };
    let said = fs::read(&program.log).unwrap_or_default();
    let said = String::from_utf8_lossy(&said).into_owned();
    Ok(Some(Over { took, status, said }))
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

    fn step(name: &str, script: &str, folder: &Path) -> Beside {
        let mut command = Command::new("sh");
        command.args(["-c", script]).current_dir(folder);
        Beside { name: name.to_owned(), command, load: Load::Usual }
    }

    fn loaded(load: Load, step: Beside) -> Beside {
        Beside { load, ..step }
    }

    /// Runs them as steps; their names, in order, and what they said.
    fn run_steps(steps: Vec<Beside>, logs: &Path) -> Result<Vec<(String, String)>, Failure> {
        let mut all = Vec::new();
        run(steps, logs, |over| {
            let said = over.said.clone();
            all.push((over.passed()?.name, said));
            Ok(())
        })?;
        all.sort_unstable();
        Ok(all)
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
        let meet = |mine: &str, other: &str| {
            format!("echo I am {mine}; echo {mine} > {mine}; {}; echo met >&2", until(other))
        };
        let steps = vec![
            step("a", &meet("a", "b"), &folder),
            step("b/it", &meet("b", "a"), &folder),
            step("c", "ls a b", &folder),
        ];
        let said = [("a", "I am a\nmet\n"), ("b/it", "I am b\nmet\n"), ("c", "a\nb\n")];
        let expected = said.map(|(name, said)| (name.to_owned(), said.to_owned()));
        assert_eq!(run_steps(steps, &folder)?, expected);
        let log = fs::read_to_string(folder.join("b-it.log")).unwrap_or_default();
        assert_eq!(log, "I am b\nmet\n");
        assert!(fs::remove_dir_all(&folder).is_ok());
        Ok(())
    }

    #[test]
    fn one_that_computes_waits_for_the_other_and_lets_the_next_go_first() -> Result<(), Failure> {
        let folder = folder("busy")?;
        let first = format!("{}; [ ! -e b ] && echo over > over", until("c"));
        let steps = vec![
            loaded(Load::Computes, step("a", &first, &folder)),
            loaded(Load::Computes, step("b", "echo b > b; ls over", &folder)),
            step("c", "echo c > c", &folder),
        ];
        let names: Vec<String> =
            run_steps(steps, &folder)?.into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert!(fs::remove_dir_all(&folder).is_ok());
        Ok(())
    }

    #[test]
    fn one_that_waits_runs_beside_two_others_and_a_second_one_after_it() -> Result<(), Failure> {
        let folder = folder("waits")?;
        // Each of the first three ends only when it has seen the two others.
        let meet = |mine: &str, others: [&str; 2]| {
            let [one, other] = others.map(until);
            format!("echo {mine} > {mine}; {one}; {other}")
        };
        let first = format!("{}; [ ! -e d ] && echo over > over", meet("a", ["b", "c"]));
        let steps = vec![
            loaded(Load::Waits, step("a", &first, &folder)),
            step("b", &meet("b", ["a", "c"]), &folder),
            step("c", &meet("c", ["a", "b"]), &folder),
            loaded(Load::Waits, step("d", "echo d > d; ls over", &folder)),
        ];
        let names: Vec<String> =
            run_steps(steps, &folder)?.into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["a", "b", "c", "d"]);
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
        let message = run_steps(steps, &folder).err().map(|failure| failure.to_string());
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
