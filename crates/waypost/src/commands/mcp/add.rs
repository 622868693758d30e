//! `waypost mcp add`: writes one server into the project's `waypost.toml`.

use super::settings_file;
use crate::commands::header;
use crate::context::Context;
use crate::environment::locations::project_folder;
use crate::exit::{Exit, Failure, Result};
use clap::Args;
use project::layer::Location;
use project::upstream_entries::{ConvertedEntry, Entry, converted};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  waypost mcp add docs https://mcp.example.com/mcp
  waypost mcp add hub https://mcp.example.com/mcp --header 'Authorization: Bearer ${TOKEN}'
  waypost mcp add files -- npx -y @example/files .
  waypost mcp add db --env 'URL=${DB_URL}' -- ./bin/db-mcp
  waypost mcp test files               # whether it can be reached";

/// What `waypost mcp add` takes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AddArgs {
    /// Its name here: letters, digits, `_` and `-`
    name: String,
    /// Where it answers
    #[arg(value_name = "URL", required_unless_present = "command", conflicts_with = "command")]
    url: Option<String>,
    /// The command that starts it, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    /// A header that goes with every request; `${NAME}` is a variable
    #[arg(long = "header", value_name = "NAME: VALUE", value_parser = header)]
    headers: Vec<(String, String)>,
    /// A variable that the command gets; `${NAME}` is a variable of ours
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = variable)]
    env: Vec<(String, String)>,
    /// Prefix of the names of its tools [default: `NAME.`]
    #[arg(long)]
    prefix: Option<String>,
    /// Believe what it says of its tools: that they only read, that they can be repeated
    #[arg(long)]
    trusted: bool,
    /// The project's folder [default: this one, or the nearest above it with a waypost.toml]
    #[arg(long, value_name = "DIR")]
    pub(super) dir: Option<PathBuf>,
}

fn variable(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = parts.ok_or("expected NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Writes it.
pub(super) fn run(args: &AddArgs, context: &Context) -> Result<Exit> {
    let table = table(args)?;
    let folder = project_folder(args.dir.as_deref());
    let taken_up = "this project's server takes it up within a second, if it runs";
    settings_file::add("mcp.servers", table, taken_up, &folder, context)
}

fn table(args: &AddArgs) -> Result<ConvertedEntry> {
    let place = Location::whole("the command line");
    let is_url =
        |url: &str| ["http://", "https://", "${"].iter().any(|begin| url.starts_with(begin));
    if let Some(url) = args.url.as_deref().filter(|url| !is_url(url)) {
        return Err(Failure::usage(format!("`{url}` is not the address of a server"))
            .hint("write it as `https://mcp.example.com/mcp`; a command goes after `--`"));
    }
    let entry = match &args.url {
        Some(url) if args.env.is_empty() => {
            Some(Entry::of_url(&args.name, url, &args.headers, &place))
        }
        None if args.headers.is_empty() => {
            Entry::of_command(&args.name, &args.command, &args.env, &place)
        }
        Some(_) => return Err(Failure::usage("`--env` goes with a command, not with a URL")),
        None => return Err(Failure::usage("`--header` goes with a URL, not with a command")),
    };
    let entry = entry.map(|entry| entry.trusted(args.trusted));
    let entry = match &args.prefix {
        Some(prefix) => entry.map(|entry| entry.prefixed(prefix)),
        None => entry,
    };
    let table = entry.as_ref().and_then(converted);
    let table = table.filter(|table| table.name == args.name && !table.name.is_empty());
    table.ok_or_else(|| {
        Failure::usage(format!("`{}` cannot be the name of an upstream", args.name))
            .hint("a name is 1 to 64 letters, digits, `_` and `-`")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_and_variables_are_read() {
        let pair = |name: &str, value: &str| Ok((name.to_owned(), value.to_owned()));
        assert_eq!(header("A: b: c "), pair("A", "b: c"));
        assert_eq!(variable("A=b=c "), pair("A", "b=c "));
        assert!(header("A").is_err() && header(": b").is_err() && variable("=b").is_err());
    }
}
