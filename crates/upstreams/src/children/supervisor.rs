//! What `waypost child` does: runs a command that ends with the process that started it, with all
//! that the command itself started. A server starts its upstreams' processes through it, so that
//! they end even if it is killed and can do nothing about them any more.
//!
//! We and the command are one process group that bears our number. The process that started us can
//! kill all of it at once; we can ask it to end, and leave it before we kill what did not.

use futures::future::{Either, select};
use kernel::contracts::Clock;
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpgid, getpgrp, getpid, getppid, kill_process_group,
    setpgid, test_kill_process_group, wait,
};
use rustix::stdio::{dup2_stdin, dup2_stdout};
use std::ffi::OsString;
use std::fmt::Display;
use std::fs::File;
use std::process::Command;
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};

/// How often we look whether our parent is still there, where no signal says so.
const PARENT_LOOK_MS: u64 = 2_000;
/// How often we look whether a group is empty.
const GROUP_LOOK_MS: u64 = 10;
/// How long the killed have to be gone.
const KILLED_WAIT_MS: u64 = 1_000;

/// A shell's way to say that a signal ended a command.
const BY_SIGNAL: i32 = 128;
/// The exit code of a command of which we never heard the end.
const UNHEARD: i32 = BY_SIGNAL + 9;

pub struct SupervisedCommand<'a> {
    /// The command and its arguments.
    pub words: &'a [OsString],
    /// The process that must be our parent.
    pub parent: Option<i32>,
    /// How long the command has to end by itself when it is asked to.
    pub grace_ms: u64,
}

/// Why a command cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum SupervisorError {
    /// It is missing, or cannot be started.
    #[error("{0}")]
    Command(String),
    /// Our parent ended before we could hear of it.
    #[error("our parent is gone already")]
    Orphan,
    /// The system does not let us watch over it.
    #[error("{0}")]
    System(String),
}

/// Runs the command to its end, or to our parent's, and gives its exit code. Must be called on a
/// tokio runtime, and by a process that does nothing else: it leads a group of its own, reaps all
/// of its children and gives its pipes away.
pub async fn supervise(
    run: &SupervisedCommand<'_>,
    clock: &dyn Clock,
) -> Result<i32, SupervisorError> {
    let mut heard =
        CaughtSignals::listen().map_err(|error| failed("cannot receive signals", &error))?;
    let parent = bind_to_parent(run.parent)?;
    let home = parent.and_then(group_of);
    let group = lead_group().map_err(|error| failed("cannot make a process group", &error))?;
    let command = start(run.words)?;
    let_go_of_pipes();
    let family = Family { group, home, command, clock };
    match heard.end_of(command, parent, clock).await {
        Some(code) => {
            family.end(run.grace_ms).await;
            Ok(code)
        }
        None => Ok(family.end(run.grace_ms).await.unwrap_or(UNHEARD)),
    }
}

/// The signals that we wait for.
struct CaughtSignals {
    /// A child ended.
    child: Signals,
    /// Our parent, or a thread of it, ended.
    parent: Signals,
    /// We should end.
    terminate: Signals,
    interrupt: Signals,
    hang_up: Signals,
}

impl CaughtSignals {
    fn listen() -> std::io::Result<Self> {
        Ok(Self {
            child: signal(SignalKind::child())?,
            parent: signal(SignalKind::user_defined1())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the command's end, and gives its code; none if we should end it.
    async fn end_of(
        &mut self,
        command: Pid,
        parent: Option<Pid>,
        clock: &dyn Clock,
    ) -> Option<i32> {
        loop {
            let ended = reap(command);
            if ended.is_some() || getppid() != parent {
                return ended;
            }
            tokio::select! {
                biased;
                _ = self.child.recv() => {}
                _ = self.parent.recv() => {}
                () = clock.sleep_ms(PARENT_LOOK_MS) => {}
                _ = self.terminate.recv() => return None,
                _ = self.interrupt.recv() => return None,
                _ = self.hang_up.recv() => return None,
            }
        }
    }
}

/// From here on we hear of our parent's end; our parent, if we have one.
fn bind_to_parent(named: Option<i32>) -> Result<Option<Pid>, SupervisorError> {
    let before = getppid();
    // A signal of its own: a parent's thread that ends looks the same as all of it, and is no
    // reason to end.
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(Signal::USR1))
        .map_err(|error| failed("cannot watch for our parent's end", &error))?;
    let parent = getppid();
    let expected = named.and_then(Pid::from_raw).or(before);
    if parent != expected {
        // It ended before we could hear of it.
        return Err(SupervisorError::Orphan);
    }
    Ok(parent)
}

/// Makes us the leader of a process group of our own.
fn lead_group() -> Result<Pid, Errno> {
    if getpgrp() != getpid() {
        setpgid(None, None)?;
    }
    // What loses its parent becomes ours and not the system's, so that we can reap it. Without that
    // it would only be reaped later.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_child_subreaper(Some(getpid()));
    Ok(getpid())
}

#[allow(clippy::zombie_processes, reason = "`reap` waits for it, and for all others")]
fn start(words: &[OsString]) -> Result<Pid, SupervisorError> {
    let Some((program, arguments)) = words.split_first() else {
        return Err(SupervisorError::Command("a command is missing".to_owned()));
    };
    let started = Command::new(program).args(arguments).spawn();
    let child = started.map_err(|error| {
        let program = program.to_string_lossy();
        SupervisorError::Command(format!("cannot start `{program}`: {error}"))
    })?;
    Ok(Pid::from_child(&child))
}

/// The pipes are the command's alone: the readers at their other ends must see when it closes them.
fn let_go_of_pipes() {
    // If this fails, their ends are seen when we end, a moment after the command.
    if let Ok(nothing) = File::options().read(true).write(true).open("/dev/null") {
        let _ = dup2_stdin(&nothing);
        let _ = dup2_stdout(&nothing);
    }
}

/// Reaps all that has ended; the command's code, if it is among them.
fn reap(command: Pid) -> Option<i32> {
    let mut code = None;
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == command => code = Some(code_of(status)),
            Ok(Some(_)) | Err(Errno::INTR) => {}
            // The others live, or there are none.
            Ok(None) | Err(_) => return code,
        }
    }
}

fn code_of(status: WaitStatus) -> i32 {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => code,
        (None, Some(signal)) => BY_SIGNAL + signal,
        (None, None) => UNHEARD,
    }
}

/// The group that we lead, and who is who in it.
struct Family<'a> {
    group: Pid,
    /// Our parent's group.
    home: Option<Pid>,
    command: Pid,
    clock: &'a dyn Clock,
}

impl Family<'_> {
    /// Ends all of the group but us: asks, waits, kills. The command's code, if it ends only now.
    async fn end(&self, grace_ms: u64) -> Option<i32> {
        let outside = self.home.is_some_and(leave);
        if kill_process_group(self.group, Signal::TERM).is_err() {
            return reap(self.command);
        }
        let (ended, code) = self.emptied(grace_ms, outside).await;
        if ended {
            return code;
        }
        // If we could not leave, this ends us as well, and no one is there whom our code would tell
        // anything.
        let _ = kill_process_group(self.group, Signal::KILL);
        let (_, late) = self.emptied(KILLED_WAIT_MS, outside).await;
        code.or(late)
    }

    /// Waits until no one is left in the group; whether that came in time, and the command's code.
    async fn emptied(&self, wait_ms: u64, outside: bool) -> (bool, Option<i32>) {
        let mut over = self.clock.sleep_ms(wait_ms);
        let mut code = None;
        loop {
            code = code.or(reap(self.command));
            // From inside it is never empty.
            if outside && test_kill_process_group(self.group).is_err() {
                return (true, code);
            }
            let look = self.clock.sleep_ms(GROUP_LOOK_MS);
            if let Either::Right(_) = select(look, &mut over).await {
                return (false, code.or(reap(self.command)));
            }
        }
    }
}

/// The process group of our parent, as long as it is one of ours: the first process of a machine
/// may be of a group that we cannot name.
fn group_of(parent: Pid) -> Option<Pid> {
    if parent == Pid::INIT { None } else { getpgid(Some(parent)).ok() }
}

/// Joins our parent's group; whether we could. From there we see when ours is empty, and outlive
/// its end.
fn leave(home: Pid) -> bool {
    setpgid(None, Some(home)).is_ok()
}

fn failed(what: &str, error: &dyn Display) -> SupervisorError {
    SupervisorError::System(format!("{what}: {error}"))
}
