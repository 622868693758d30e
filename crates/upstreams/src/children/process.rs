//! A child process: how it is started, watched and ended. It leads a process group of its own, so
//! that it is ended with all that it started. Where there is a supervisor (our own binary) the
//! child is that, and the program runs under it: it ends with us even if we are killed.

use super::{ASKED_GRACE_MS, SUPERVISOR_GRACE_MS};
use futures::future::{Either, select};
use kernel::contracts::Clock;
use kernel::values::secret::Secret;
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process, kill_process_group, waitid,
};
use std::ffi::OsString;
use std::fmt::Display;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::pin::pin;
use std::process::Stdio;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};

/// Environment variables that a child inherits: enough to find programs, folders and a language,
/// and none that could be a secret. All others must be named in its configuration.
const INHERITED: &[&str] = &[
    "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ",
    "USER",
];
/// Where programs are looked for if no one says where.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

pub(crate) struct Program<'a> {
    /// A name to look for in `PATH`, or a path.
    pub(crate) command: &'a str,
    pub(crate) args: &'a [String],
    /// Its variables beside the inherited ones.
    pub(crate) env: &'a [(String, Secret)],
    /// The folder that it starts in; ours, where none is named.
    pub(crate) cwd: Option<&'a Path>,
}

/// The three ends of a child's pipes.
pub(crate) struct Pipes {
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
    pub(crate) stderr: ChildStderr,
}

/// A child process. It is killed with its group when this is dropped.
pub(crate) struct Process {
    child: Child,
    /// Its number, and that of its group. It stays ours until the child is reaped, so that no
    /// signal can reach a stranger.
    group: Pid,
    supervised: bool,
    reaped: bool,
    /// Heard whenever a child of ours has ended.
    ends: Signals,
}

/// Why a program was not started.
#[derive(Debug)]
pub(crate) struct SpawnError {
    pub(crate) message: String,
    pub(crate) hint: Option<&'static str>,
}

/// Starts a program, or says why it cannot be started; under this supervisor, where there is one.
pub(crate) fn start(
    program: &Program<'_>,
    supervisor: Option<&Path>,
) -> Result<(Process, Pipes), SpawnError> {
    program.check()?;
    let failed = |error: &dyn Display| {
        let message = format!("cannot start `{}`: {error}", program.command);
        SpawnError { message, hint: None }
    };
    // Before the start: no end is missed.
    let ends = signal(SignalKind::child()).map_err(|error| failed(&error))?;
    let mut child = program.words(supervisor).spawn().map_err(|error| failed(&error))?;
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let number = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    let Some(group) = number else { return Err(failed(&"it has no process id")) };
    let supervised = supervisor.is_some();
    let process = Process { child, group, supervised, reaped: false, ends };
    match pipes {
        (Some(stdin), Some(stdout), Some(stderr)) => Ok((process, Pipes { stdin, stdout, stderr })),
        _ => Err(failed(&"it has no pipes")),
    }
}

impl Program<'_> {
    /// Whether the program and its folder are there. A supervisor could only say so by its exit
    /// code.
    fn check(&self) -> Result<(), SpawnError> {
        let refused = |message: String, hint| SpawnError { message, hint: Some(hint) };
        if let Some(cwd) = self.cwd.filter(|cwd| !cwd.is_dir()) {
            let message = format!("there is no folder `{}` to start in", cwd.display());
            return Err(refused(message, "correct `cwd`, or make the folder"));
        }
        if self.is_there() {
            return Ok(());
        }
        let message = format!("there is no program `{}`", self.command);
        Err(refused(message, "install it, or name it by its whole path"))
    }

    fn is_there(&self) -> bool {
        let folder = self.cwd.unwrap_or(Path::new(""));
        if self.command.contains('/') {
            return is_program(&folder.join(self.command));
        }
        let path = self.variables().rev().find(|(name, _)| name == "PATH").map(|(_, path)| path);
        let path = path.unwrap_or_else(|| PATH.into());
        std::env::split_paths(&path).any(|at| is_program(&folder.join(at).join(self.command)))
    }

    /// All of its variables; of two with one name the last one holds.
    fn variables(&self) -> impl DoubleEndedIterator<Item = (OsString, OsString)> {
        let inherited = INHERITED.iter().filter_map(|name| {
            let value = std::env::var_os(name)?;
            Some((OsString::from(name), value))
        });
        let own = self.env.iter();
        let own = own.map(|(name, value)| (OsString::from(name), OsString::from(value.expose())));
        inherited.chain(own)
    }

    fn words(&self, supervisor: Option<&Path>) -> Command {
        let mut words = match supervisor {
            None => Command::new(self.command),
            Some(supervisor) => {
                let mut words = Command::new(supervisor);
                words.arg("child").arg("--parent").arg(std::process::id().to_string());
                words.arg("--grace-ms").arg(SUPERVISOR_GRACE_MS.to_string());
                words.arg("--").arg(self.command);
                words
            }
        };
        words.args(self.args).env_clear().envs(self.variables()).process_group(0);
        words.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(cwd) = self.cwd {
            words.current_dir(cwd);
        }
        words
    }
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

impl Process {
    /// Done once it has ended; says how. It is not reaped by this, so that its number is still its
    /// own.
    pub(crate) async fn ended(&mut self) -> String {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        loop {
            match waitid(WaitId::Pid(self.group), options) {
                Ok(Some(status)) => return told(&status),
                Ok(None) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return format!("unseen ({error})"),
            }
            if self.ends.recv().await.is_none() {
                return "unseen".to_owned();
            }
        }
    }

    /// Ends it, after its standard input was closed: waits so long, asks and waits again. `finish`
    /// kills what is left.
    pub(crate) async fn stop(&mut self, clock: &dyn Clock, wait_ms: u64) {
        if self.ended_within(clock, wait_ms).await {
            return;
        }
        self.ask_to_end();
        if !self.ended_within(clock, ASKED_GRACE_MS).await {
            tracing::info!(group = %self.group, "an upstream's process ignores that it should end");
        }
    }

    async fn ended_within(&mut self, clock: &dyn Clock, ms: u64) -> bool {
        let over = clock.sleep_ms(ms);
        matches!(select(pin!(self.ended()), over).await, Either::Left(_))
    }

    /// Kills whatever is left of its group and reaps it.
    pub(crate) async fn finish(mut self) {
        self.kill();
        // Fails only if someone else reaped it.
        let _ = self.child.wait().await;
        self.reaped = true;
    }

    fn ask_to_end(&self) {
        // A supervisor passes it on; the group would hear it twice. It fails only if all are gone.
        let _ = match self.supervised {
            true => kill_process(self.group, Signal::TERM),
            false => kill_process_group(self.group, Signal::TERM),
        };
    }

    /// Kills it and its group.
    pub(crate) fn kill(&self) {
        // Both fail only if all are gone. A supervisor may have left its group to end it.
        let _ = kill_process_group(self.group, Signal::KILL);
        let _ = kill_process(self.group, Signal::KILL);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.reaped {
            self.kill();
        }
    }
}

fn told(status: &WaitIdStatus) -> String {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => format!("with exit code {code}"),
        (None, Some(signal)) => format!("by signal {signal}"),
        (None, None) => "for an unknown reason".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program<'a>(command: &'a str, env: &'a [(String, Secret)]) -> Program<'a> {
        Program { command, args: &[], env, cwd: None }
    }

    #[test]
    fn a_child_gets_a_minimal_environment_and_its_own_variables() {
        let env = [("TOKEN".to_owned(), Secret::from("t")), ("HOME".to_owned(), Secret::from("h"))];
        let program = program("sh", &env);
        let names: Vec<OsString> = program.variables().map(|(name, _)| name).collect();
        let inherited = names.len() - env.len();
        assert!(names[..inherited].iter().all(|name| INHERITED.iter().any(|known| name == known)));
        assert!(INHERITED.iter().all(|name| !name.starts_with("WAYPOST")));
        let last = program.variables().rev().find(|(name, _)| name == "HOME");
        assert_eq!(last, Some(("HOME".into(), "h".into())));
    }

    #[test]
    fn a_program_is_resolved_with_the_childs_path() {
        assert!(program("sh", &[]).is_there());
        assert!(program("/bin/sh", &[]).is_there());
        assert!(!program("no-such-program-here", &[]).is_there());
        assert!(!program("/etc/passwd", &[]).is_there(), "it cannot be executed");
        let elsewhere = [("PATH".to_owned(), Secret::from("/no/such/folder"))];
        assert!(!program("sh", &elsewhere).is_there());
        let in_folder = Program { cwd: Some(Path::new("/bin")), ..program("./sh", &[]) };
        assert!(in_folder.is_there());
        let nowhere = Program { cwd: Some(Path::new("/no/such/folder")), ..program("sh", &[]) };
        let error = nowhere.check().unwrap_err();
        assert!(error.message.contains("/no/such/folder") && error.hint.is_some(), "{error:?}");
    }
}
