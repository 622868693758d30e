//! Typed input that no one has read yet: detects it, drops it, and puts the terminal into raw mode,
//! so that a wait for a line can end before one is begun. However a command ends, the terminal is
//! restored.

use crate::terminal::paste::{MARKS_OFF, MARKS_ON};
#[cfg(unix)]
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, QueueSelector, Termios as Mode, tcflush, tcgetattr,
    tcsetattr,
};
use std::io::{self, Write};
use std::time::Duration;

/// Other systems have no such mode.
#[cfg(not(unix))]
type Mode = ();

/// How often we look for a key.
const LOOK: Duration = Duration::from_millis(30);
/// The exit code of a process that SIGTERM ended, as shells have it.
#[cfg(unix)]
const TERMINATED: i32 = 128 + 15;
/// Goes to the begin of the line, and leaves nothing of it.
const ERASE: &str = "\r\u{1b}[K";

/// For as long as this lives, the terminal keeps all keys for who reads them next, and does nothing
/// about them itself.
pub(crate) struct Keys {
    before: Mode,
}

impl Keys {
    /// Shows what is asked; none where the terminal cannot hold keys.
    pub(crate) fn hold(prompt: &str) -> Option<Self> {
        let keys = Self { before: raw_mode()? };
        show(&format!("{MARKS_ON}{prompt}"));
        Some(keys)
    }

    /// Waits for the first key. A terminal that is gone has none: the next read reports it.
    pub(crate) async fn pressed(&self) {
        while matches!(waiting(), Ok(false)) {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Takes what is asked away, for who shows it again.
    pub(crate) fn erase(&self) {
        show(ERASE);
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        show(&format!("{ERASE}{MARKS_OFF}"));
        give_back(&self.before);
    }
}

/// The terminal as it was before a line editor had it. An editor gives it back with the line; one
/// that still waits for a line when the command ends does not, and dropping this does it instead.
pub(super) struct LentTerminal {
    before: Option<Mode>,
}

impl LentTerminal {
    /// As it is now.
    pub(super) fn now() -> Self {
        Self { before: mode() }
    }

    /// The editor gave it back.
    pub(super) fn returned(mut self) {
        self.before = None;
    }
}

impl Drop for LentTerminal {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            show(MARKS_OFF);
            give_back(before);
        }
    }
}

/// Has SIGTERM give the terminal back as it is now before it ends the process.
#[cfg(unix)]
pub(super) fn give_back_when_terminated() {
    use tokio::signal::unix::{SignalKind, signal};
    let Some(before) = mode() else { return };
    // From here on the signal does nothing by itself.
    let Ok(mut terminated) = signal(SignalKind::terminate()) else { return };
    tokio::spawn(async move {
        if terminated.recv().await.is_some() {
            show(MARKS_OFF);
            give_back(&before);
            std::process::exit(TERMINATED);
        }
    });
}

/// Other systems have no such signal.
#[cfg(not(unix))]
pub(super) fn give_back_when_terminated() {}

/// Whether the terminal holds a line that no one has read; where it holds keys, whether a key.
#[cfg(unix)]
pub(super) fn waiting() -> io::Result<bool> {
    let bytes = rustix::io::ioctl_fionread(io::stdin())?;
    Ok(bytes > 0)
}

/// Has the terminal drop what no one has read.
#[cfg(unix)]
pub(super) fn flush() -> io::Result<()> {
    tcflush(io::stdin(), QueueSelector::IFlush).map_err(io::Error::from)
}

/// Other systems have no such call.
#[cfg(not(unix))]
pub(super) fn waiting() -> io::Result<bool> {
    Ok(false)
}

/// Other systems have no such call.
#[cfg(not(unix))]
pub(super) fn flush() -> io::Result<()> {
    Ok(())
}

/// How the terminal is; none where there is none.
#[cfg(unix)]
fn mode() -> Option<Mode> {
    tcgetattr(io::stdin()).ok()
}

/// Other systems have no such call.
#[cfg(not(unix))]
fn mode() -> Option<Mode> {
    None
}

/// Has the terminal hold keys as a line editor does; how it was before.
#[cfg(unix)]
fn raw_mode() -> Option<Mode> {
    let before = mode()?;
    let mut mode = before.clone();
    mode.input_modes.remove(InputModes::BRKINT | InputModes::ICRNL | InputModes::IXON);
    mode.local_modes
        .remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::IEXTEN | LocalModes::ISIG);
    tcsetattr(io::stdin(), OptionalActions::Drain, &mode).ok()?;
    Some(before)
}

#[cfg(unix)]
fn give_back(before: &Mode) {
    // A terminal that is gone needs nothing.
    let _ = tcsetattr(io::stdin(), OptionalActions::Drain, before);
}

/// Other systems have no such call.
#[cfg(not(unix))]
fn raw_mode() -> Option<Mode> {
    None
}

/// Other systems have no such call.
#[cfg(not(unix))]
fn give_back(_: &Mode) {}

/// Where an editor shows its line; what cannot be shown is no reason to stop.
fn show(text: &str) {
    let mut stdout = io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}
