//! `waypost` at a terminal: what is typed goes in, what is shown comes out.

use crate::process::command;
use crate::screen::Screen;
use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use testkit::harness::{send_signal, wait_for};

const LIMIT: Duration = Duration::from_secs(120);
/// How wide a terminal is where a test does not care.
const COLUMNS: u16 = 100;

/// A `waypost` at a terminal of its own; killed when dropped.
pub struct Terminal {
    child: Child,
    keyboard: File,
    screen: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
    /// How many columns it has after so many bytes.
    sizes: Vec<(usize, u16)>,
}

impl Terminal {
    /// Starts `waypost` with a terminal as its standard input, output and error.
    pub fn open(folder: &Path, arguments: &[&str]) -> Self {
        Self::open_with(folder, arguments, COLUMNS, &[])
    }

    /// The same with a terminal of so many columns, and with variables.
    pub fn open_with(
        folder: &Path,
        arguments: &[&str],
        columns: u16,
        variables: &[(&str, &str)],
    ) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        tcsetwinsize(&master, size(columns)).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        // It must not become the terminal of the test itself.
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let line = || open(name.as_str(), flags, Mode::empty()).unwrap();
        let child = command(folder, arguments)
            .env("TERM", "xterm")
            .env("XDG_STATE_HOME", folder.join("state"))
            .envs(variables.iter().copied())
            .stdin(line())
            .stdout(line())
            .stderr(line())
            .spawn()
            .unwrap();
        let keyboard = File::from(master);
        let mut output = keyboard.try_clone().unwrap();
        let screen = Arc::new(Mutex::new(Vec::new()));
        let shown = screen.clone();
        let reader = thread::spawn(move || {
            let mut bytes = [0; 4096];
            // It fails once the other side is closed.
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                shown.lock().unwrap().extend_from_slice(&bytes[..count]);
            }
        });
        Self { child, keyboard, screen, reader, sizes: vec![(0, columns)] }
    }

    /// All that was written, as it was written.
    pub fn screen(&self) -> String {
        String::from_utf8_lossy(&self.screen.lock().unwrap()).into_owned()
    }

    /// What is shown now.
    pub fn shown(&self) -> Screen {
        let written = self.screen.lock().unwrap();
        let mut screen = Screen::new(COLUMNS);
        for (index, (from, columns)) in self.sizes.iter().enumerate() {
            let to = self.sizes.get(index + 1).map_or(written.len(), |(next, _)| *next);
            screen.resize(*columns);
            screen.write(&String::from_utf8_lossy(&written[*from..to]));
        }
        screen
    }

    /// Another width. Only a controlling terminal would send the signal itself.
    pub fn resize(&mut self, columns: u16) {
        self.sizes.push((self.screen.lock().unwrap().len(), columns));
        tcsetwinsize(&self.keyboard, size(columns)).unwrap();
        send_signal("WINCH", self.child.id());
    }

    /// Waits until the line editor reads keys. What is typed before is shown twice, and the
    /// terminal itself would act on some of the keys.
    pub fn at_prompt(&mut self) -> &mut Self {
        wait_for("the line editor to read keys", LIMIT, || self.reads_keys().then_some(()));
        self
    }

    fn reads_keys(&self) -> bool {
        let screen = self.screen();
        screen.rfind("\u{1b}[?2004h") > screen.rfind("\u{1b}[?2004l")
    }

    pub fn types(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until this is shown so often.
    pub fn shows(&self, text: &str, times: usize) {
        let what = format!("`{text}`, {times} times, on the screen");
        wait_for(&what, LIMIT, || {
            let screen = self.shown().text();
            assert!(screen.matches(text).count() <= times, "too often `{text}`:\n{screen}");
            (screen.matches(text).count() == times).then_some(())
        });
    }

    /// Waits until this signal has ended it; its exit code.
    pub fn ended_by(&mut self, signal: &str) -> Option<i32> {
        send_signal(signal, self.child.id());
        let what = format!("{signal} to end the command");
        wait_for(&what, LIMIT, || self.child.try_wait().unwrap()).code()
    }

    /// Whether the terminal takes lines, as a shell leaves it to a command.
    pub fn takes_lines(&self) -> bool {
        let modes = tcgetattr(&self.keyboard).unwrap().local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    /// Waits until it ends by itself: its exit code and all that was shown.
    pub fn ends(mut self) -> (Option<i32>, String) {
        let status = wait_for("the command to end", LIMIT, || self.child.try_wait().unwrap());
        let all = wait_for("the rest of its output", LIMIT, || {
            self.reader.is_finished().then(|| self.screen())
        });
        (status.code(), all)
    }

    /// Leaves the chat.
    pub fn quit(mut self) {
        self.types("/quit\n");
        let status = wait_for("the chat to end", LIMIT, || self.child.try_wait().unwrap());
        let screen = self.screen();
        assert!(status.success(), "{status}:\n{screen}");
        wait_for("the terminal to be left as it was", LIMIT, || (!self.reads_keys()).then_some(()));
    }
}

fn size(columns: u16) -> Winsize {
    Winsize { ws_row: 40, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Both fail only when the process is gone already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
