//! Programs with tests: what cargo built, in which order they run, and what becomes of them. We
//! start them ourselves and not through `cargo test`: two at a time, because many wait often, and
//! with every test timed, which a stable Rust does only where `RUSTC_BOOTSTRAP` is set; set for
//! cargo it would change what is built. Examples in doc comments are not run: there are none.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::beside::{self, Beside, Load};
use super::told::Told;
use crate::shares::Share;
use crate::shell::{self, Failure};

/// What a program is asked for.
const TIMES: [&str; 3] = ["-Z", "unstable-options", "--report-time"];
const SLOWEST: usize = 10;
/// These take longest and begin first, so that none of them runs alone at the end. After one that
/// mostly waits comes one that computes.
const FIRST: &[&str] = &[
    "fixture/waiting", "fixture/process", "testkit/simulation", "fixture/upstreams",
    "testkit/fuzz", "waypost/it", "server/it", "engine/it", "fixture/a2a",
];
/// These mostly wait, for a time to come or for a call to be given up: one of them runs beside two
/// others.
const WAITING: &[&str] = &["fixture/waiting", "fixture/upstreams"];
/// These compute all the time: two of them at once would only slow each other down.
const BUSY: &[&str] = &["testkit/simulation", "testkit/fuzz"];

/// A program with tests.
#[derive(Debug, PartialEq)]
pub struct Program {
    /// `testkit/process`, or `kernel` for the unit tests of a crate.
    name: String,
    /// The crate's.
    folder: PathBuf,
    executable: PathBuf,
}

impl Program {
    /// Reads one line that cargo wrote in JSON; none if it tells of no program with tests.
    fn read(line: &str) -> Option<Self> {
        let (_, profile) = line.split_once("\"profile\":{")?;
        let (profile, _) = profile.split_once('}')?;
        if !profile.contains("\"test\":true") {
            return None;
        }
        let manifest = PathBuf::from(shell::text_in(line, "manifest_path")?);
        let folder = manifest.parent()?.to_path_buf();
        // A crate is called like its folder.
        let package = folder.file_name()?.to_str()?;
        let target = shell::text_in(line, "name")?;
        let name = if target == package { target } else { format!("{package}/{target}") };
        let executable = PathBuf::from(shell::text_in(line, "executable")?);
        Some(Self { name, folder, executable })
    }

    /// How this share of its tests is started: where and with what cargo would, through `xtask`,
    /// which is this program.
    pub fn beside(self, xtask: &Path, share: Share) -> Option<Beside> {
        let Self { name, folder, executable } = self;
        let filters = share.filters(&name)?;
        let mut command = Command::new(xtask);
        command
            .arg("tests")
            .arg(executable)
            .arg("--with-parent")
            .args(filters)
            .env("CARGO_PKG_NAME", folder.file_name().unwrap_or_default())
            .env("CARGO_MANIFEST_DIR", &folder)
            .current_dir(&folder);
        Some(Beside { load: load_of(&name), name, command })
    }
}

fn load_of(program: &str) -> Load {
    if WAITING.contains(&program) {
        Load::Waits
    } else if BUSY.contains(&program) {
        Load::Computes
    } else {
        Load::Usual
    }
}

/// Builds what this `cargo test` would run.
pub fn build(cargo: &mut Command) -> Result<Vec<Program>, Failure> {
    let output = cargo
        // What the compiler complains about is still text, and goes where our complaints go.
        .args(["--no-run", "--message-format=json-render-diagnostics"])
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| Failure::new(format!("could not start `cargo test`: {error}")))?;
    let status = output.status;
    if !status.success() {
        return Err(Failure::new(format!(
            "`cargo test --no-run` ended with {status}; its output above says why"
        )));
    }
    let programs = in_order(&String::from_utf8_lossy(&output.stdout));
    if programs.is_empty() {
        return Err(Failure::new(
            "`cargo test --no-run --message-format=json` names no program with tests; \
             run it by hand and look",
        ));
    }
    Ok(programs)
}

/// Runs them all, even if some fail, with their logs in this folder. Names what failed, and the
/// slowest tests.
pub fn run(programs: Vec<Beside>, logs: &Path) -> Result<(), Failure> {
    let mut told = Told::default();
    beside::run(programs, logs, |over| {
        over.print("tests of ");
        told.hear(&over.took.name, &over.said, over.status.success());
        Ok(())
    })?;
    let slowest = told.slowest(SLOWEST);
    if slowest.is_empty() {
        println!("   no test said how long it took");
    } else {
        println!("   the slowest tests; others ran at the same time:\n{slowest}");
    }
    told.reasons().iter().for_each(|reason| print!("{reason}"));
    let failed = told.failed();
    failed.iter().for_each(|test| println!("   failed: {test}"));
    match failed.len() {
        0 => Ok(()),
        count => Err(Failure::new(format!("tests: {count} failed, which are listed above"))),
    }
}

/// `xtask tests PROGRAM --with-parent [TEST..]`: runs it, or these of its tests, in a process that
/// ends with its parent, and with it all that it started.
pub fn run_program_with_parent(program: &str, tests: &[&str]) -> Result<(), Failure> {
    beside::end_with_parent();
    let mut command = Command::new(program);
    // Our own input says when our parent is gone.
    command.args(TIMES).args(tests).env("RUSTC_BOOTSTRAP", "1").stdin(Stdio::null());
    shell::run(program, &mut command)
}

/// The programs that cargo told of, those that take longest first.
fn in_order(lines: &str) -> Vec<Program> {
    let mut programs: Vec<Program> = lines.lines().filter_map(Program::read).collect();
    programs.sort_by_key(|program| {
        FIRST.iter().position(|name| *name == program.name).unwrap_or(FIRST.len())
    });
    programs
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::fs;

    /// What cargo writes about a target, in one line.
    const LINE: &str = r#"
        {"reason":"compiler-artifact","package_id":"path+file:///w/PACKAGE#0.1.0",
        "manifest_path":"/w/PACKAGE/Cargo.toml","target":{"kind":["lib"],"crate_types":["lib"],
        "name":"TARGET","src_path":"/w/x.rs","edition":"2024","doctest":true,"test":true},
        "profile":{"opt_level":"0","debuginfo":1,"debug_assertions":true,"test":IS_TEST},
        "features":[],"filenames":["/t/x"],"executable":EXECUTABLE,"fresh":true}"#;

    fn line(package: &str, target: &str, is_test: bool, executable: &str) -> String {
        let line: String = LINE.lines().map(str::trim).collect();
        line.replace("PACKAGE", package)
            .replace("TARGET", target)
            .replace("IS_TEST", &is_test.to_string())
            .replace("EXECUTABLE", executable)
    }

    fn program(name: &str, folder: &str, executable: &str) -> Program {
        let folder = PathBuf::from(folder);
        let executable = PathBuf::from(executable);
        Program { name: name.to_owned(), folder, executable }
    }

    #[test]
    fn programs_with_tests_are_read() {
        assert_eq!(
            Program::read(&line("kernel", "kernel", true, "\"/t/kernel-01\"")),
            Some(program("kernel", "/w/kernel", "/t/kernel-01"))
        );
        assert_eq!(
            Program::read(&line("server", "it", true, r#""/a \"b\"/it-01""#)),
            Some(program("server/it", "/w/server", "/a \"b\"/it-01"))
        );
        assert_eq!(Program::read(&line("waypost", "waypost", false, "\"/t/waypost\"")), None);
        assert_eq!(Program::read(&line("kernel", "kernel", false, "null")), None);
        assert_eq!(Program::read(r#"{"reason":"build-finished","success":true}"#), None);
        assert_eq!(Program::read(""), None);
    }

    #[test]
    fn those_that_take_long_come_first_and_the_others_keep_their_order() {
        let lines = [
            line("kernel", "kernel", true, "\"/t\""),
            line("waypost", "it", true, "\"/t\""),
            line("testkit", "fuzz", true, "\"/t\""),
            line("demo", "rules", true, "\"/t\""),
            line("fixture", "process", true, "\"/t\""),
        ];
        let programs = in_order(&lines.join("\n"));
        let names: Vec<&str> = programs.iter().map(|program| program.name.as_str()).collect();
        assert_eq!(
            names,
            ["fixture/process", "testkit/fuzz", "waypost/it", "kernel", "demo/rules"]
        );
    }

    #[test]
    fn the_programs_that_are_named_here_exist() {
        let crates = shell::workspace_root().join("crates");
        for name in FIRST.iter().chain(WAITING).chain(BUSY) {
            let (package, target) = name.split_once('/').unwrap_or_default();
            let tests = crates.join(package).join("tests");
            let file = tests.join(format!("{target}.rs"));
            assert!(file.is_file() || tests.join(target).join("main.rs").is_file(), "no `{name}`");
        }
    }

    #[test]
    fn a_program_is_started_as_cargo_would() -> Result<(), Failure> {
        let program = program("testkit/simulation", "/w/testkit", "/t/simulation-01");
        let started = program.beside(Path::new("/t/xtask"), Share::Long);
        let started = started.ok_or_else(|| Failure::new("it is not run"))?;
        let Beside { name, command, load } = started;
        assert_eq!((name.as_str(), load), ("testkit/simulation", Load::Computes));
        assert_eq!(load_of("fixture/waiting"), Load::Waits);
        assert_eq!(load_of("kernel"), Load::Usual);
        let arguments: Vec<&OsStr> = command.get_args().collect();
        assert_eq!(arguments, ["tests", "/t/simulation-01", "--with-parent"]);
        assert_eq!(command.get_current_dir(), Some(Path::new("/w/testkit")));
        let variables = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
        let expected = [("CARGO_MANIFEST_DIR", "/w/testkit"), ("CARGO_PKG_NAME", "testkit")];
        assert_eq!(
            variables.collect::<Vec<_>>(),
            expected.map(|(name, value)| (OsStr::new(name), OsStr::new(value)))
        );
        Ok(())
    }

    #[test]
    fn all_run_even_if_some_fail() {
        let folder = std::env::temp_dir().join(format!("waypost-programs-{}", std::process::id()));
        let programs = [
            ("a", "echo 'test b ... FAILED <0.1s>'; echo 'test result: FAILED.'; exit 101"),
            ("c", "exit 3"),
            ("d/it", "echo 'test e ... ok <0.1s>'; echo 'test result: ok.'"),
        ]
        .map(|(name, script)| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            Beside { name: name.to_owned(), command, load: Load::Usual }
        });
        let message = run(programs.into(), &folder).err().map(|failure| failure.to_string());
        assert_eq!(message.as_deref(), Some("tests: 2 failed, which are listed above"));
        let said = fs::read_to_string(folder.join("d-it.log")).unwrap_or_default();
        assert_eq!(said, "test e ... ok <0.1s>\ntest result: ok.\n");
        assert!(fs::remove_dir_all(&folder).is_ok());
    }

    #[test]
    fn a_build_that_fails_or_has_no_tests_is_a_failure() {
        let message = |program: &str| {
            let built = build(&mut Command::new(program));
            built.err().map(|failure| failure.to_string()).unwrap_or_default()
        };
        let failed = "`cargo test --no-run` ended with exit status: 1; its output above says why";
        assert_eq!(message("false"), failed);
        assert!(message("true").contains("names no program with tests"));
    }
}
