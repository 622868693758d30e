//! `waypost a2a add`: writes one agent into the project's `waypost.toml`.

use super::reference::Reference;
use crate::commands::mcp::settings_file;
use crate::context::Context;
use crate::environment::locations::project_folder;
use crate::exit::{Exit, Failure, Result};
use clap::Args;
use project::upstream_entries::{NewAgent, agent_table};
use std::path::{Path, PathBuf, absolute};

const EXAMPLES: &str = "\
Examples:
  waypost a2a add trips https://agent.example.com
  waypost a2a add trips https://agent.example.com --header 'Authorization: Bearer ${TOKEN}'
  waypost a2a add trips org/trips --registry https://registry.example.com --service trips
  waypost mcp test trips               # whether it can be reached";

/// How long a name may be.
const NAME_CHARS_MAX: usize = 64;

/// What `waypost a2a add` takes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AddArgs {
    /// Its name here: letters, digits, `_` and `-`
    name: String,
    #[command(flatten)]
    agent: Reference,
    /// The id of its key, which is in `AGENTVAULT_KEY_<ID>`
    #[arg(long, value_name = "ID")]
    service: Option<String>,
    /// Prefix of the names of its tools [default: `NAME.`]
    #[arg(long)]
    prefix: Option<String>,
    /// The project's folder [default: this one, or the nearest above it with a waypost.toml]
    #[arg(long, value_name = "DIR")]
    pub(super) dir: Option<PathBuf>,
}

/// Writes it.
pub(super) fn run(args: &AddArgs, context: &Context) -> Result<Exit> {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let name = args.name.as_str();
    if name.is_empty() || name.len() > NAME_CHARS_MAX || !name.chars().all(is_letter) {
        return Err(Failure::usage(format!("`{name}` cannot be the name of an upstream"))
            .hint("a name is 1 to 64 letters, digits, `_` and `-`"));
    }
    let folder = project_folder(args.dir.as_deref());
    let card = card(args, &folder)?;
    let table = agent_table(&NewAgent {
        name,
        card: &card,
        registry: args.agent.registry.as_deref(),
        service: args.service.as_deref(),
        headers: &args.agent.headers,
        prefix: args.prefix.as_deref(),
        allow_private: args.agent.allow_private,
    });
    let taken_up = "this project's server takes it up when it is started again";
    settings_file::add("a2a.agents", table, taken_up, &folder, context)
}

/// Where its card is, as the project's settings say it: a file is named from the project's folder.
fn card(args: &AddArgs, folder: &Path) -> Result<String> {
    let reference = &args.agent;
    if reference.registry.is_some() || reference.is_url() || reference.agent.starts_with("${") {
        return Ok(reference.agent.clone());
    }
    let unknown = |why: std::io::Error| {
        Failure::usage(format!("there is no card `{}`: {why}", reference.agent))
            .hint("write an address as `https://agent.example.com`")
    };
    let file = absolute(&reference.agent).map_err(unknown)?;
    std::fs::metadata(&file).map_err(unknown)?;
    let folder = absolute(folder).map_err(unknown)?;
    let named = file.strip_prefix(&folder).unwrap_or(&file);
    Ok(named.display().to_string())
}
