//! Width and colours of an output. A pipe or a file has no width and gets no colours.

use std::io::{IsTerminal, stderr, stdout};

/// What a terminal that does not know its width is taken for.
const COLUMNS: usize = 80;

/// What a word says, shown by its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Nothing beyond what it says.
    Plain,
    /// It worked.
    Good,
    /// Someone should look at it.
    Waiting,
    /// It failed.
    Bad,
    /// It matters less than what is beside it.
    Faint,
    /// A heading.
    Strong,
}

impl Tone {
    /// The tone of a status, a state or a verdict.
    pub(crate) fn of_status(word: &str) -> Self {
        match word {
            "completed" | "ready" | "active" | "delivered" | "ok" | "same" | "allow" => Tone::Good,
            "waiting" | "stuck" | "paused" | "parked" | "retrying" | "login" | "warn"
            | "connecting" | "behind" => Tone::Waiting,
            "failed" | "failing" | "fail" | "stopped" | "revoked" | "differs" | "deny" => Tone::Bad,
            "cancelled" | "disabled" | "expired" | "off" => Tone::Faint,
            _ => Tone::Plain,
        }
    }

    pub(crate) fn paint(self, text: &str) -> String {
        let code = match self {
            Tone::Plain => return text.to_owned(),
            Tone::Good => "32",
            Tone::Waiting => "33",
            Tone::Bad => "31",
            Tone::Faint => "2",
            Tone::Strong => "1",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

/// What output can look like where it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Screen {
    /// How many columns a terminal has; none for a pipe or a file.
    pub(crate) width: Option<usize>,
    /// Whether colours may be used.
    pub(crate) has_colour: bool,
}

impl Screen {
    /// A pipe or a file.
    pub(crate) const PIPE: Self = Self { width: None, has_colour: false };

    /// Where data goes.
    pub(crate) fn of_stdout() -> Self {
        if !stdout().is_terminal() {
            return Self::PIPE;
        }
        Self { width: Some(columns().unwrap_or(COLUMNS)), has_colour: wants_colour() }
    }

    /// The same without colours, where something else takes so many columns of each line.
    pub(crate) fn beside(self, columns: usize) -> Self {
        let width = self.width.map(|width| width.saturating_sub(columns));
        Self { width, has_colour: false }
    }

    /// The text in this tone, where colours may be used.
    pub(crate) fn paint(self, tone: Tone, text: &str) -> String {
        if self.has_colour { tone.paint(text) } else { text.to_owned() }
    }
}

/// Whether colours may be used for talk and logs.
pub(crate) fn stderr_has_colour() -> bool {
    stderr().is_terminal() && wants_colour()
}

fn wants_colour() -> bool {
    let asked_not_to = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    !asked_not_to && !dumb
}

#[cfg(unix)]
fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

#[cfg(not(unix))]
fn columns() -> Option<usize> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colour_ends_where_its_word_ends() {
        let screen = Screen { width: Some(80), has_colour: true };
        let tone = Tone::of_status("failed");
        assert_eq!(screen.paint(tone, "failed"), "\u{1b}[31mfailed\u{1b}[0m");
        assert_eq!(screen.paint(Tone::of_status("running"), "running"), "running");
        assert_eq!(Screen::PIPE.paint(tone, "failed"), "failed");
        assert_eq!(screen.beside(2), Screen { width: Some(78), has_colour: false });
    }
}
