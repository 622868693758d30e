//! `waypost schema`: the JSON Schema of a file that people write, for editors and other programs.

use crate::exit::{Exit, Result};
use crate::terminal::output::Output;
use clap::{Args, ValueEnum};
use kernel::definition::schemas::{AGENT, PIPELINE, PLAN};
use serde_json::Value;

const EXAMPLES: &str = "\
Examples:
  waypost schema plan > .schemas/plan.json     # for editors; `init` writes it
  waypost schema agent
  waypost schema pipeline
  waypost schema entity                        # of the files of types in entities/

A file names its schema in its first line: # yaml-language-server: $schema=../.schemas/agent.json";

/// What `waypost schema` takes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SchemaArgs {
    /// What the file describes
    #[arg(value_enum)]
    kind: Kind,
}

// Without words of their own: a name says it all, and help keeps them on one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    Plan,
    Agent,
    Pipeline,
    Entity,
}

/// Prints the schema.
pub(crate) fn run(args: &SchemaArgs, output: Output) -> Result<Exit> {
    match args.kind {
        Kind::Plan => print(PLAN, output),
        Kind::Agent => print(AGENT, output),
        Kind::Pipeline => print(PIPELINE, output),
        Kind::Entity => {
            let document = project::entities::schema();
            output.data(&document, &serde_json::to_string_pretty(&document).unwrap_or_default())
        }
    }
}

/// Prints a schema that is written down.
fn print(text: &str, output: Output) -> Result<Exit> {
    // Cannot fail: tests read all of them.
    let document: Value = serde_json::from_str(text).unwrap_or_default();
    output.data(&document, text.trim_end())
}
