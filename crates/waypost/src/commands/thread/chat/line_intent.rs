//! What an entered line is: a message, a line of the history, or a command.

use super::Chat;
use crate::exit::Result;
use crate::terminal::output::one_line;
use crate::terminal::prose::Prose;
use crate::terminal::screen::Screen;
use kernel::definition::plan::mistake::meant as nearest;

const HELP: &str = "\
/quit      leaves; the thread stays, `--thread` continues it
/thread    the name of this thread
/history   what you said before; !12 says line 12 again
/card      shows again what the thread waits for
/later     leaves what is asked for later, as Ctrl-C does
/agent     the agent you talk to; /agent NAME talks to another one from now on
Tab completes commands and agents. Up and Down step through what you said, Ctrl-R searches in it.
Alt-Enter, or a backslash at the end, begins another line. A paste is sent by the Enter after it.
A call that needs your approval is shown first: y runs it, n does not and asks why, \
e runs it with other arguments (in $VISUAL or $EDITOR, where set, else on the line), \
a runs it and all others that are asked about.
What is proposed about a failed step is shown, too: t takes it, l leaves it for later.
A form takes name=value .., JSON or @file; /decline says no to it.";

/// The command that takes the name of an agent.
pub(super) const AGENT: &str = "/agent";

/// All commands.
pub(super) const COMMANDS: &[&str] =
    &["/quit", "/exit", "/help", "/thread", "/history", "/card", "/later", AGENT, "/decline"];

/// How many lines of the past are shown.
const PAST_SHOWN: usize = 20;

/// What a line is for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LineIntent {
    /// To be said.
    Say(String),
    /// The chat ends.
    Leave,
    /// What is asked stays open.
    Later,
    /// What is asked is shown again.
    Card,
    /// From now on this agent is talked to.
    Agent(String),
    /// It is done.
    Nothing,
}

impl Chat {
    /// What a line is for. What can be done at once is done.
    pub(super) fn meant(&self, line: &str) -> Result<LineIntent> {
        if let Some(number) = line.strip_prefix('!').and_then(|number| number.parse().ok()) {
            let again = self.lines.nth(number).map(str::to_owned);
            return Ok(again.map_or(LineIntent::Nothing, LineIntent::Say));
        }
        if let Some(name) = line.strip_prefix(AGENT).and_then(|rest| rest.strip_prefix(' ')) {
            return Ok(LineIntent::Agent(name.trim().to_owned()));
        }
        match line {
            "" | "/decline" => {}
            AGENT => self.output.text(self.agent.as_deref().unwrap_or("the default agent"))?,
            "/quit" | "/exit" => return Ok(LineIntent::Leave),
            "/later" => return Ok(LineIntent::Later),
            "/card" => return Ok(LineIntent::Card),
            "/help" => {
                let mut prose = Prose::new(Screen::of_stdout());
                let text = prose.push(HELP);
                self.output.painted(&format!("{text}{}", prose.end()))?;
            }
            "/thread" => self.output.text(&self.thread)?,
            "/history" => {
                for (number, line) in self.lines.past(PAST_SHOWN) {
                    self.output.text(&format!("{number:>5}  {}", one_line(line)))?;
                }
            }
            line if is_command(line) => {
                let hint = nearest(line, COMMANDS.iter().copied());
                let hint = hint.unwrap_or_else(|| "/help lists them".to_owned());
                self.output.talk(&format!("there is no command `{line}`; {hint}"));
            }
            line => return Ok(LineIntent::Say(line.to_owned())),
        }
        Ok(LineIntent::Nothing)
    }
}

/// Whether this is a command, known or not: one word of letters after a slash. A path is none.
fn is_command(line: &str) -> bool {
    line.strip_prefix('/')
        .is_some_and(|word| word.chars().all(|letter| letter.is_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_no_command() {
        for line in ["/hsitory", "/"] {
            assert!(is_command(line), "{line}");
        }
        for line in ["/etc/hosts", "/what is this?", "and/or", "/1"] {
            assert!(!is_command(line), "{line}");
        }
        let known = COMMANDS.iter().copied();
        assert_eq!(nearest("/hsitory", known), Some("did you mean `/history`?".to_owned()));
    }
}
