//! `waypost completions`: the script that teaches a shell our commands.

use crate::exit::{Exit, Failure};
use crate::output::Output;
use clap::{Args, Command};
use clap_complete::Shell;
use serde_json::json;

const EXAMPLES: &str = "\
Examples:
  waypost completions bash > ~/.local/share/bash-completion/completions/waypost
  waypost completions zsh > ~/.zfunc/_waypost        # with `fpath+=~/.zfunc` before `compinit`
  waypost completions fish > ~/.config/fish/completions/waypost.fish
  waypost completions powershell >> $PROFILE";

/// What `waypost completions` takes.
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the script for one shell.
pub(crate) fn run(
    args: &CompletionsArgs,
    mut command: Command,
    output: Output,
) -> Result<Exit, Failure> {
    let mut script: Vec<u8> = Vec::new();
    clap_complete::generate(args.shell, &mut command, "waypost", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    if output.is_json() {
        output.document(&json!({"shell": args.shell.to_string(), "script": script}))?;
    } else {
        output.text(script.trim_end())?;
    }
    Ok(Exit::Ok)
}
