//! `cargo test` with every test timed and every failure named at the end. Cargo starts each test
//! program through us, so that it can be asked for the times of its tests: with a stable Rust it
//! gives them only where `RUSTC_BOOTSTRAP` is set, and set for cargo itself that would change what
//! is built.

use std::env;
use std::io::{self, BufRead, BufReader, PipeReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use super::told::{HEADING, Told};
use crate::shell::{self, Failure};

/// The command of ours that cargo starts test programs with.
const RUNNER: &str = "timed";
/// What a test program is asked for, besides what cargo asks for.
const TIMES: [&str; 3] = ["-Z", "unstable-options", "--report-time"];
const SLOWEST: usize = 10;
/// How long nothing may be said after cargo ended before nothing more is expected.
const SILENCE: Duration = Duration::from_millis(500);

/// Runs `cargo test`, which has its arguments, and passes on what it says. `xtask` is this program.
pub fn run(mut cargo: Command, xtask: &Path) -> Result<(), Failure> {
    cargo.args(["--no-fail-fast", "--config", &runner_setting(xtask)]);
    let (mut child, output) = started(cargo)?;
    let mut told = Told::default();
    let status = pass_on(&mut child, &lines_of(output), &mut told)?;
    let slowest = told.slowest(SLOWEST);
    if slowest.is_empty() {
        println!("   no test said how long it took");
    } else {
        println!("   the slowest tests; others ran at the same time:\n{slowest}");
    }
    if status.success() {
        return Ok(());
    }
    let failed = told.failed();
    failed.iter().for_each(|test| println!("   failed: {test}"));
    Err(Failure::new(match failed.len() {
        0 => format!("`cargo test` ended with {status}; its output above says why"),
        count => format!("`cargo test`: {count} failed, which are listed above"),
    }))
}

/// `xtask timed PROGRAM ..`: says whose tests come, and becomes the test program.
pub fn become_tests(program: &str, arguments: &[&str]) -> Result<(), Failure> {
    let package = env::var("CARGO_PKG_NAME").unwrap_or_default();
    println!("{HEADING}{}", label(&package, Path::new(program)));
    let mut command = Command::new(program);
    command.args(arguments).args(TIMES).env("RUSTC_BOOTSTRAP", "1");
    shell::become_program(program, &mut command)
}

/// The setting by which cargo starts programs through us.
fn runner_setting(xtask: &Path) -> String {
    // Rust quotes a path as TOML does, as long as it has no control characters.
    format!("target.'cfg(all())'.runner = [{xtask:?}, {RUNNER:?}]")
}

/// `testkit/process`, or `kernel` for the unit tests of a crate; a program is called
/// `process-0123456789abcdef`.
fn label(package: &str, program: &Path) -> String {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let name = name.rsplit_once('-').map_or(&*name, |(name, _)| name);
    if name == package { package.to_owned() } else { format!("{package}/{name}") }
}

/// Starts a command with both of its outputs in one pipe: lines keep their order.
fn started(mut command: Command) -> Result<(Child, PipeReader), Failure> {
    let failure = |error: io::Error| Failure::new(format!("could not start `cargo test`: {error}"));
    let (reader, writer) = io::pipe().map_err(failure)?;
    let child = command
        .stdout(writer.try_clone().map_err(failure)?)
        .stderr(writer)
        .spawn()
        .map_err(failure)?;
    // The command goes here, and with it our ends for writing: the pipe ends with its writers.
    Ok((child, reader))
}

fn lines_of(output: PipeReader) -> Receiver<Vec<u8>> {
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            // Nobody listens any more once cargo has ended.
            let _ = sender.send(line);
        }
    });
    lines
}

/// Prints and reads every line. A process that a test left behind holds the pipe open: the end is
/// there when cargo has ended and nothing more is said.
fn pass_on(
    child: &mut Child,
    lines: &Receiver<Vec<u8>>,
    told: &mut Told,
) -> Result<ExitStatus, Failure> {
    let failure = |error: io::Error| Failure::new(format!("cannot wait for `cargo test`: {error}"));
    let mut has_ended = false;
    loop {
        match lines.recv_timeout(SILENCE) {
            Ok(line) => {
                let line = String::from_utf8_lossy(&line);
                println!("{line}");
                told.hear(&line);
            }
            Err(RecvTimeoutError::Timeout) if !has_ended => {
                has_ended = child.try_wait().map_err(failure)?.is_some();
            }
            Err(_) => return child.wait().map_err(failure),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    /// Long enough for any machine, and shorter than what is not waited for.
    const LIMIT: Duration = Duration::from_secs(60);

    fn script(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn heard(command: Command) -> Result<(ExitStatus, Vec<String>), Failure> {
        let (mut child, output) = started(command)?;
        let mut told = Told::default();
        let status = pass_on(&mut child, &lines_of(output), &mut told)?;
        Ok((status, told.failed().to_vec()))
    }

    #[test]
    fn both_outputs_are_read_in_their_order() -> Result<(), Failure> {
        let (status, failed) =
            heard(script("echo '== tests of a' >&2; echo 'test b ... FAILED'; exit 101"))?;
        assert_eq!(status.code(), Some(101));
        assert_eq!(failed, ["a b", "a: the program ended before its last test"]);
        Ok(())
    }

    #[test]
    fn what_a_test_left_behind_is_not_waited_for() -> Result<(), Failure> {
        let begun = Instant::now();
        let (mut child, output) = started(script("sleep 600 & echo $!"))?;
        let lines = lines_of(output);
        let left = lines.recv_timeout(LIMIT).unwrap_or_default();
        let status = pass_on(&mut child, &lines, &mut Told::default())?;
        let left = String::from_utf8_lossy(&left).into_owned();
        shell::run("kill", script("kill -s KILL \"$0\"").arg(left))?;
        assert!(status.success());
        assert!(begun.elapsed() < LIMIT, "it took {:?}", begun.elapsed());
        Ok(())
    }

    #[test]
    fn a_program_is_called_after_its_crate_and_its_target() {
        let label =
            |package: &str, file: &str| label(package, &Path::new("/t/debug/deps").join(file));
        assert_eq!(label("kernel", "kernel-0123456789abcdef"), "kernel");
        assert_eq!(label("testkit", "store_contract-01"), "testkit/store_contract");
        assert_eq!(label("testkit", "process"), "testkit/process");
    }

    #[test]
    fn the_setting_is_toml() {
        assert_eq!(
            runner_setting(Path::new("/a \"b\"/xtask")),
            r#"target.'cfg(all())'.runner = ["/a \"b\"/xtask", "timed"]"#
        );
    }
}
