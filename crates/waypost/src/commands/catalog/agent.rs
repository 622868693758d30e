//! `waypost agent`: lists the agents of a server, and stores agents from files. Files are checked
//! here, with the position of each mistake, before anything is sent.

use crate::commands::Most;
use crate::commands::stored::{StoreResult, StoredKind};
use crate::context::{Context, Listing};
use crate::exit::{Exit, Failure, Result};
use crate::remote::client::{Client, Request, read};
use crate::remote::suggestions::{self, AGENTS};
use crate::terminal::input;
use crate::terminal::output::printable;
use crate::terminal::table::Cell;
use crate::terminal::unified::{TitledText, unified};
use crate::terminal::yaml;
use clap::Subcommand;
use kernel::definition::agent::Agent;
use kernel::definition::agent_reader::read_text;
use kernel::definition::plan::mistake::Mistake;
use kernel::limits::Limits;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use wire::rest::{AgentAnswer, AgentSummary};

const EXAMPLES: &str = "\
Examples:
  waypost agent ls
  waypost agent show assistant > assistant.yaml   # as YAML, to be changed and applied
  waypost agent diff assistant.yaml               # what would change; exit code 1 if something does
  waypost agent apply assistant.yaml desk.yaml    # created, updated or unchanged
  waypost agent rm assistant";

/// What `waypost agent` takes.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum AgentCommand {
    /// List the server's agents
    Ls(Most),
    /// Show one agent as YAML
    Show {
        /// The agent's refName
        name: String,
    },
    /// Store agents from files, where they differ from what is stored
    Apply {
        /// Agent files, YAML or JSON
        #[arg(value_name = "FILES", required = true)]
        files: Vec<PathBuf>,
    },
    /// Show what applying a file would change
    Diff {
        /// The agent's file
        file: PathBuf,
    },
    /// Remove a stored agent; runs that began continue with it
    Rm {
        /// The agent's refName
        name: String,
        /// Only say what would be removed
        #[arg(long)]
        dry_run: bool,
    },
}

const STORED: StoredKind = StoredKind { names: AGENTS, member: "refName" };

/// Runs `waypost agent`.
pub(crate) async fn run(command: AgentCommand, context: &Context) -> Result<Exit> {
    match command {
        AgentCommand::Ls(Most { limit }) => list(context, limit).await,
        AgentCommand::Show { name } => get(context, &name).await,
        AgentCommand::Apply { files } => apply(context, &files).await,
        AgentCommand::Diff { file } => diff(context, &file).await,
        AgentCommand::Rm { name, dry_run: false } => STORED.remove(context, &name).await,
        AgentCommand::Rm { name, dry_run: true } => {
            let version = |answer: AgentAnswer| answer.summary.version;
            STORED.would_remove(context, &name, version).await
        }
    }
}

async fn list(context: &Context, limit: usize) -> Result<Exit> {
    let body = context.client().await?.list(Request::to(&["agents"]), limit).await?;
    let heads = ["agent", "model", "version", "default", "types", "description"];
    let none =
        "there are no agents: write one in `agents/`, or store one with `waypost agent apply`";
    context.table(&body, Listing { noun: "agent", heads: &heads, none }, |agent: AgentSummary| {
        let version = version_text(&agent);
        let default = if agent.default { "yes" } else { "" };
        vec![
            agent.ref_name.into(),
            agent.llm_config_ref.into(),
            Cell::word(version),
            Cell::word(default),
            agent.tool_types.join(", ").into(),
            agent.description.into(),
        ]
    })
}

async fn get(context: &Context, name: &str) -> Result<Exit> {
    let client = context.client().await?;
    let body = suggestions::get_or_suggest(&client, AGENTS, name).await?;
    context.show(&body, |answer: AgentAnswer| {
        context.output.text(printable(&yaml::agent(&answer.agent)?).trim_end())?;
        context.output.talk(&match answer.summary.version {
            Some(version) => format!("version {version}"),
            None => "from a file of the server's project".to_owned(),
        });
        Ok(())
    })
}

async fn apply(context: &Context, files: &[PathBuf]) -> Result<Exit> {
    let offered = offered(context, files)?;
    let client = context.client().await?;
    for agent in &offered {
        let stored = store(context, &client, agent).await?;
        STORED.tell(context, agent.name.as_str(), stored)?;
    }
    Ok(Exit::Ok)
}

/// Stores an agent where it differs.
async fn store(context: &Context, client: &Client, agent: &Agent) -> Result<StoreResult> {
    let name = agent.name.as_str();
    let kept: Option<AgentAnswer> = client.find(AGENTS.item(name)).await?;
    let wanted = with_stored_id(agent, kept.as_ref());
    if let Some(kept) = kept.as_ref().filter(|kept| kept.agent == wanted) {
        return Ok(StoreResult { result: "unchanged", version: kept.summary.version });
    }
    let request = AGENTS.item(name).keyed(context.admin_key()?);
    // Of two who apply at once one gets an error, instead of being overwritten.
    let request = match kept.as_ref().map(|kept| kept.summary.version) {
        None => request.only_if("If-None-Match", "*".to_owned()),
        Some(Some(version)) => request.only_if("If-Match", format!("\"{version}\"")),
        // The server refuses it, and says why.
        Some(None) => request,
    };
    let answer: AgentAnswer = read(&client.put(request, &wanted).await?)?;
    let result = if kept.is_none() { "created" } else { "updated" };
    Ok(StoreResult { result, version: answer.summary.version })
}

async fn diff(context: &Context, file: &Path) -> Result<Exit> {
    let offered = offered(context, &[file.to_path_buf()])?;
    let client = context.client().await?;
    let mut exit = Exit::Ok;
    for agent in &offered {
        let name = agent.name.as_str();
        let kept: Option<AgentAnswer> = client.find(AGENTS.item(name)).await?;
        let new = yaml::agent(&with_stored_id(agent, kept.as_ref()))?;
        let (old_name, old) = match &kept {
            Some(kept) => {
                let version = version_text(&kept.summary);
                (format!("{name} ({version})"), yaml::agent(&kept.agent)?)
            }
            None => (format!("{name} (not stored)"), String::new()),
        };
        let new_name = file.display().to_string();
        let old = TitledText { name: &old_name, text: &old };
        let difference = unified(old, TitledText { name: &new_name, text: &new });
        let line = json!({"refName": name, "same": difference.is_none(), "diff": difference});
        let Some(difference) = difference else {
            context.output.done(&line, &format!("`{name}` is as the file says"))?;
            continue;
        };
        context.output.data(&line, &printable(&difference))?;
        exit = Exit::Failed;
    }
    Ok(exit)
}

/// The agents of these files, all of them right.
fn offered(context: &Context, files: &[PathBuf]) -> Result<Vec<Agent>> {
    let limits = Limits::default();
    let mut agents: Vec<Agent> = Vec::new();
    let mut mistakes: Vec<Mistake> = Vec::new();
    for path in files {
        let file = path.display().to_string();
        match read_text(&input::file(path)?, &file, &limits) {
            Ok((agent, warnings)) => {
                warnings.iter().for_each(|warning| context.output.talk(&warning.to_string()));
                if agents.iter().any(|known| known.name == agent.name) {
                    let what = format!("two of the files have the agent `{}`", agent.name);
                    return Err(Failure::usage(what).hint("apply one of them"));
                }
                agents.push(agent);
            }
            Err(found) => mistakes.extend(found),
        }
    }
    if mistakes.is_empty() {
        return Ok(agents);
    }
    let what = "there are mistakes in the agents";
    Err(Failure::new(Exit::Usage, "invalid_agent", what).lines(mistakes))
}

/// What the file says, with the id that the server gave it where the file says none.
fn with_stored_id(agent: &Agent, kept: Option<&AgentAnswer>) -> Value {
    let mut wanted = (*agent.source).clone();
    let id = kept.and_then(|kept| kept.agent.get("id"));
    if let (Value::Object(fields), Some(id)) = (&mut wanted, id) {
        fields.entry("id").or_insert_with(|| id.clone());
    }
    wanted
}

fn version_text(agent: &AgentSummary) -> String {
    match agent.version {
        Some(version) => version.to_string(),
        None => "file".to_owned(),
    }
}
