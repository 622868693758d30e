//! `waypost completions`: the script that teaches a shell our commands.

use crate::commands::word;
use crate::exit::{Exit, Result};
use crate::terminal::output::Output;
use clap::{Args, Command, ValueEnum};
use clap_complete::{generate, shells};
use clap_complete_nushell::Nushell;
use serde_json::json;

const EXAMPLES: &str = "\
Examples:
  waypost completions bash > ~/.local/share/bash-completion/completions/waypost
  waypost completions zsh > ~/.zfunc/_waypost        # with `fpath+=~/.zfunc` before `compinit`
  waypost completions fish > ~/.config/fish/completions/waypost.fish
  waypost completions nushell | save -f ~/.config/nushell/autoload/waypost.nu
  waypost completions powershell >> $PROFILE";

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
    match shell {
        Shell::Bash => generate(shells::Bash, command, "waypost", &mut script),
        Shell::Elvish => generate(shells::Elvish, command, "waypost", &mut script),
        Shell::Fish => generate(shells::Fish, command, "waypost", &mut script),
        Shell::Nushell => generate(Nushell, command, "waypost", &mut script),
        Shell::Powershell => generate(shells::PowerShell, command, "waypost", &mut script),
        Shell::Zsh => generate(shells::Zsh, command, "waypost", &mut script),
    }
    String::from_utf8_lossy(&script).into_owned()
}
