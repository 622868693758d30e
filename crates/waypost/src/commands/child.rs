//! `waypost child`: runs a command that ends with whoever started it, with all that the command
//! itself started. Hidden: a server starts its upstreams' processes through it, so that they end
//! even if it is killed and can do nothing about them any more.
//!
//! We and the command are one process group that bears our number. Whoever started us can kill all
//! of it at once; we can ask it to end, and leave it before we kill what did not.

use crate::exit::{Exit, Failure};
use clap::Args;
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
use std::time::Duration;
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};
use tokio::time::{Instant, sleep};

/// How often we look whether our parent is still there, where no signal says so.
const PARENT_LOOK: Duration = Duration::from_secs(2);
/// How often we look whether a group is empty.
const GROUP_LOOK: Duration = Duration::from_millis(10);
/// How long the killed have to be gone.
const KILLED_WAIT: Duration = Duration::from_secs(1);

/// A shell's way to say that a signal ended a command.
const BY_SIGNAL: i32 = 128;
/// The exit code of a command of which we never heard the end.
const UNHEARD: i32 = BY_SIGNAL + 9;

/// What `waypost child` takes.
#[derive(Debug, Args)]
pub(crate) struct ChildArgs {
    /// The process that must be our parent
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    parent: Option<i32>,

    /// How long the command has to end by itself when it is asked to
    #[arg(long, value_name = "MS", default_value_t = 500)]
    grace_ms: u64,

    /// The command and its arguments
    #[arg(required = true, last = true, value_name = "COMMAND")]
    words: Vec<OsString>,
}

/// Runs the command to its end, or to our parent's, and ends with its exit code.
pub(crate) fn run(args: &ChildArgs) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| failed("cannot wait for signals", &error))?;
    let code = runtime.block_on(supervise(args))?;
    // The command's own code, for which `Exit` has no word.
    std::process::exit(code)
}

async fn supervise(args: &ChildArgs) -> Result<i32, Failure> {
    let mut heard = Heard::listen().map_err(|error| failed("cannot hear signals", &error))?;
    let parent = bind_to_parent(args.parent)?;
    let home = parent.and_then(group_of);
    let group = lead_group().map_err(|error| failed("cannot make a process group", &error))?;
    let command = start(&args.words)?;
    let_go_of_pipes();
    let grace = Duration::from_millis(args.grace_ms);
    match heard.end_of(command, parent).await {
        Some(code) => {
            end_group((group, home), command, grace).await;
            Ok(code)
        }
        None => Ok(end_group((group, home), command, grace).await.unwrap_or(UNHEARD)),
    }
}

/// The signals that we wait for.
struct Heard {
    /// A child ended.
    child: Signals,
    /// Our parent, or a thread of it, ended.
    parent: Signals,
    /// We should end.
    terminate: Signals,
    interrupt: Signals,
    hang_up: Signals,
}

impl Heard {
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
    async fn end_of(&mut self, command: Pid, parent: Option<Pid>) -> Option<i32> {
        loop {
            let ended = reap(command);
            if ended.is_some() || getppid() != parent {
                return ended;
            }
            tokio::select! {
                _ = self.child.recv() => {}
                _ = self.parent.recv() => {}
                () = sleep(PARENT_LOOK) => {}
                _ = self.terminate.recv() => return None,
                _ = self.interrupt.recv() => return None,
                _ = self.hang_up.recv() => return None,
            }
        }
    }
}

/// From here on we hear of our parent's end; our parent, if we have one.
fn bind_to_parent(named: Option<i32>) -> Result<Option<Pid>, Failure> {
    let before = getppid();
    // A signal of its own: a parent's thread that ends looks the same as all of it, and is no
    // reason to end.
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(Signal::USR1))
        .map_err(|error| failed("cannot hear of our parent's end", &error))?;
    let parent = getppid();
    let expected = named.and_then(Pid::from_raw).or(before);
    if parent != expected {
        // It ended before we could hear of it.
        return Err(Failure::new(Exit::Failed, "orphan", "our parent is gone already"));
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
fn start(words: &[OsString]) -> Result<Pid, Failure> {
    let Some((program, arguments)) = words.split_first() else {
        return Err(Failure::usage("a command is missing"));
    };
    let started = Command::new(program).args(arguments).spawn();
    let child = started.map_err(|error| {
        Failure::usage(format!("cannot start `{}`: {error}", program.to_string_lossy()))
    })?;
    Ok(Pid::from_child(&child))
}

/// The pipes are the command's alone: whoever is at their other ends must see when it closes them.
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

/// Ends all of the group but us: asks, waits, kills. The command's code, if it ends only now.
async fn end_group(
    (group, home): (Pid, Option<Pid>),
    command: Pid,
    grace: Duration,
) -> Option<i32> {
    let outside = home.is_some_and(leave);
    if kill_process_group(group, Signal::TERM).is_err() {
        return reap(command);
    }
    let (ended, code) = emptied(group, command, grace, outside).await;
    if ended {
        return code;
    }
    // If we could not leave, this ends us as well, and nobody is there whom our code would tell
    // anything.
    let _ = kill_process_group(group, Signal::KILL);
    let (_, late) = emptied(group, command, KILLED_WAIT, outside).await;
    code.or(late)
}

/// Waits until nobody is left in the group; whether that came in time, and the command's code.
async fn emptied(group: Pid, command: Pid, wait: Duration, outside: bool) -> (bool, Option<i32>) {
    let deadline = Instant::now() + wait;
    let mut code = None;
    loop {
        code = code.or(reap(command));
        // From inside it is never empty.
        if outside && test_kill_process_group(group).is_err() {
            return (true, code);
        }
        if Instant::now() >= deadline {
            return (false, code);
        }
        sleep(GROUP_LOOK).await;
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

fn failed(what: &str, error: &dyn Display) -> Failure {
    Failure::new(Exit::Failed, "child", format!("{what}: {error}"))
}
