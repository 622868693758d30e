//! `waypost completions`: the script that teaches a shell our commands. It asks this program what
//! can be typed, so that names on the server are completed as well; for nushell it only knows
//! commands.

use crate::commands::word;
use crate::completing::VARIABLE;
use crate::exit::{Exit, Result};
use crate::terminal::output::Output;
use clap::{Args, Command, ValueEnum};
use clap_complete::env::Shells;
use clap_complete::generate;
use clap_complete_nushell::Nushell;
use serde_json::json;

const EXAMPLES: &str = "\
Examples:
  waypost completions bash > ~/.local/share/bash-completion/completions/waypost
  waypost completions zsh > ~/.zfunc/_waypost        # with `fpath+=~/.zfunc` before `compinit`
  waypost completions fish > ~/.config/fish/completions/waypost.fish
  waypost completions nushell | save -f ~/.config/nushell/autoload/waypost.nu
  waypost completions powershell >> $PROFILE";

/// The program, as shells know it.
const NAME: &str = "waypost";

/// What `waypost completions` takes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

// Without words of their own: a name says it all, and help keeps them on one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Shell {
    Bash,
    Elvish,
    Fish,
    Nushell,
    Powershell,
    Zsh,
}

/// Prints the script for one shell.
pub(crate) fn run(args: &CompletionsArgs, mut command: Command, output: Output) -> Result<Exit> {
    let script = script(args.shell, &mut command);
    let document = json!({"shell": word(&args.shell), "script": script});
    output.data(&document, script.trim_end())
}

fn script(shell: Shell, command: &mut Command) -> String {
    let mut script: Vec<u8> = Vec::new();
    let shells = Shells::builtins();
    match shells.completer(&word(&shell)) {
        Some(known) => {
            // Writing to a text cannot fail.
            let _ = known.write_registration(VARIABLE, NAME, NAME, NAME, &mut script);
        }
        None => generate(Nushell, command, NAME, &mut script),
    }
    String::from_utf8_lossy(&script).into_owned()
}
