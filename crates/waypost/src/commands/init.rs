//! `waypost init`: writes a small project that runs as it is. Works offline and never overwrites.

use crate::environment::locations::shown;
use crate::environment::program::{program, shell_word};
use crate::exit::{Exit, Failure, Result};
use crate::terminal::output::Output;
use clap::{Args, ValueEnum};
use kernel::definition::schemas;
use serde_json::json;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  waypost init                 # a project in this folder
  waypost init shop            # in a new folder
  waypost init desk --template agent
  waypost plan test shop       # runs the new plan's examples, offline
  waypost up shop              # serves it";

/// What `waypost init` takes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct InitArgs {
    /// The project's folder; made if it is not there
    #[arg(default_value = ".")]
    dir: PathBuf,
    /// What the project begins with
    #[arg(long, value_enum, default_value = "plan")]
    template: Template,
}

/// What a project begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Template {
    /// A plan that asks a person
    Plan,
    /// An agent that asks before it acts, with a rule-based model
    Agent,
    /// A pipeline that decides known cases by rules
    Pipeline,
    /// A tool of your own: an MCP server in Python
    Mcp,
    /// A type of records with its first data, and who sees what of them
    Records,
}

/// A file's path in the project, and its text.
type NewFile = (&'static str, &'static str);

macro_rules! template {
    ($folder:literal: $($path:literal),+; $($schema:expr)?) => {
        &[
            $(($path, include_str!(concat!("../../templates/", $folder, "/", $path))),)+
            $($schema)?
        ]
    };
}

const PLAN: &[NewFile] = &[
    ("waypost.toml", SETTINGS),
    ("plans/hello/greet.yaml", GREET),
    ("plans/fixes/number.yaml", NUMBER),
    (".schemas/plan.json", schemas::PLAN),
];
const AGENT: &[NewFile] = template!(
    "agent": "waypost.toml", "agents/desk.yaml", "rules/sums.yaml";
    (".schemas/agent.json", schemas::AGENT)
);
const PIPELINE: &[NewFile] = template!(
    "pipeline": "waypost.toml", "pipelines/refunds.yaml", "plans/refunds/damaged.yaml",
    "rules/refunds.yaml";
    (".schemas/pipeline.json", schemas::PIPELINE)
);
const MCP: &[NewFile] = template!("mcp": "waypost.toml", "tools/words.py";);
const RECORDS: &[NewFile] = template!(
    "records": "waypost.toml", "entities/Customer.yaml", "data/customers.csv",
    "policies/customers.cedar", "policies/tests.yaml";
);

impl Template {
    fn files(self) -> &'static [NewFile] {
        match self {
            Template::Plan => PLAN,
            Template::Agent => AGENT,
            Template::Pipeline => PIPELINE,
            Template::Mcp => MCP,
            Template::Records => RECORDS,
        }
    }

    /// What to do with a new project in this folder, one command per line.
    fn tries(self, program: &str, place: &Path) -> [String; 2] {
        let place = place.display().to_string();
        let file = |path: &str| shell_word(&format!("{place}/{path}"));
        let place = shell_word(&place);
        let up = format!("{program} up {place}");
        match self {
            Template::Plan => [format!("{program} plan test {place}"), up],
            Template::Agent => [up, format!("{program} run 'what is 2 and 3?'")],
            Template::Pipeline => {
                [format!("{program} pipeline test {}", file("pipelines/refunds.yaml")), up]
            }
            Template::Mcp => [format!("{program} mcp test words {place}"), up],
            Template::Records => [up, format!("{program} record find Customer 'tier:gold'")],
        }
    }
}

const SETTINGS: &str = r#"# A Waypost project: `waypost up` runs this folder. Every key is optional.

[tools]
# Has the tools of the demo, such as `math::add`, which the plan `hello/greet` calls.
demo = true

[tools.http]
# Hosts that `http::request` may reach, such as "api.example.com" or "127.0.0.1:9000".
# Without one the tool is not there.
allow = []

[supervisor]
# What is done about a failed step before a person is asked: here a plan looks at it.
on_error = [
    { when = { error = "InputValidationError", tool = "math::add" }, plan = "fixes/number" },
]

[limits]
# How long one tool call may take.
call_timeout_ms = 30000
"#;

const GREET: &str = r#"# yaml-language-server: $schema=../../.schemas/plan.json
# The plan's id is `hello/greet`, after its folder and its file.
description: Asks for a name and a number, then greets with the number's successor
parameters:
  type: object
  properties:
    number: {type: number}
startStepId: ask
steps:
  - id: ask
    type: human_in_the_loop
    message: What is your name?
    nextStepIdOnInput: next
  - id: next
    type: tool_call
    toolId: "math::add"
    arguments: {a: {jsonPath: $.promptInput.number, default: 41}, b: 1}
    saveAs: successor
    nextStepId: greet
  - id: greet
    type: final_response
    message: "Hello, {{ context.human_input }}! Your number is {{ context.successor }}."
# `waypost plan test` runs these.
examples:
  - name: greets by name
    input: {number: 1}
    replies: [{answer: Ada}]
    expect: {status: completed, answer: "Hello, Ada! Your number is 2."}
  - name: waits until someone answers
    expect: {status: paused_on_human}
"#;

const NUMBER: &str = r#"# yaml-language-server: $schema=../../.schemas/plan.json
# A correction: a rule in `waypost.toml` runs it when a step fails.
# Its input says which step failed, and how; its answer is what a person would reply.
description: Counts from 41 where something else than a number was to be added
steps:
  - id: known
    type: conditional_branch
    condition: {left: {jsonPath: $.promptInput.stepId}, operator: equals, right: next}
    onTrue: {nextStepId: edit}
    onFalse: {nextStepId: leave}
  - id: edit
    type: final_response
    message: {action: edit, arguments: {a: 41, b: 1}, why: any number will do here}
  - id: leave
    type: final_response
    message: {action: abort, why: nothing is known about this step}
# `error` stands for the input of the correction.
examples:
  - name: counts from 41
    error:
      stepId: next
      tool: "math::add"
      name: InputValidationError
      message: not a number
      arguments: {a: seven, b: 1}
    expect:
      status: completed
      answer: {action: edit, arguments: {a: 41, b: 1}, why: any number will do here}
  - name: leaves what it does not know
    error: {stepId: other, name: Boom, message: it broke}
    expect: {status: completed, answer: {action: abort, why: nothing is known about this step}}
"#;

/// The data folder of `waypost up` holds state, not source, and `.env` holds keys.
const IGNORED: [&str; 2] = [".waypost/", ".env"];

/// Writes the project.
pub(crate) fn run(args: &InitArgs, output: Output) -> Result<Exit> {
    let dir = &args.dir;
    let files = args.template.files();
    let present: Vec<String> = files
        .iter()
        .map(|(path, _)| dir.join(path))
        .filter(|path| path.symlink_metadata().is_ok())
        .map(|path| path.display().to_string())
        .collect();
    if !present.is_empty() {
        return Err(Failure::usage("these files exist already; nothing was written")
            .lines(present)
            .hint("choose another folder, or run what is here with `waypost up`"));
    }
    let mut created = Vec::new();
    for (path, text) in files {
        let path = dir.join(path);
        write_new(&path, text)?;
        created.push(path.display().to_string());
    }
    if ignore(&dir.join(".gitignore"))? {
        created.push(dir.join(".gitignore").display().to_string());
    }
    output.data(&json!({"created": created}), &created.join("\n"))?;
    let tries = args.template.tries(&program(), dir);
    output.talk(&format!("now try: {}", tries.join("\n         ")));
    Ok(Exit::Ok)
}

/// Refuses a file that is there, for commands that write a new one.
pub(super) fn check_free(path: &Path) -> Result<()> {
    // A link that leads nowhere is there, too.
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    let path = shown(path);
    Err(Failure::usage(format!("`{path}` is there already, and nothing is overwritten"))
        .hint("name another file, or remove it first"))
}

/// Writes a file that is not there yet, with its folder.
pub(super) fn write_new(path: &Path, text: &str) -> Result<()> {
    let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| {
        // Refuses a file that came in between: nothing is ever overwritten.
        let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
        file.write_all(text.as_bytes())
    });
    written.map_err(|error| unwritable(path, &error))
}

/// Adds what is not source to `.gitignore`; whether there was anything to add.
fn ignore(path: &Path) -> Result<bool> {
    let present = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(unwritable(path, &error)),
    };
    let is_there = |entry: &str| {
        present.lines().any(|line| line.trim().trim_matches('/') == entry.trim_end_matches('/'))
    };
    let missing: Vec<&str> = IGNORED.into_iter().filter(|entry| !is_there(entry)).collect();
    if missing.is_empty() {
        return Ok(false);
    }
    let gap = if present.is_empty() || present.ends_with('\n') { "" } else { "\n" };
    let lines = format!("{gap}{}\n", missing.join("\n"));
    let appended = OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .and_then(|mut file| file.write_all(lines.as_bytes()));
    appended.map(|()| true).map_err(|error| unwritable(path, &error))
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(format!("cannot write `{}`: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::catalog::schema::JsonSchemas;
    use kernel::definition::plan::source::Node;
    use kernel::limits::Limits;
    use kernel::tool::schema::Schemas;
    use std::sync::Arc;

    #[test]
    fn a_folder_is_one_word_of_a_shell() {
        let tries = |template: Template, place: &str| template.tries("waypost", Path::new(place));
        assert_eq!(tries(Template::Plan, "shop")[0], "waypost plan test shop");
        let tries = tries(Template::Pipeline, "my shop");
        assert_eq!(tries[0], "waypost pipeline test 'my shop/pipelines/refunds.yaml'");
        assert_eq!(tries[1], "waypost up 'my shop'");
    }

    #[test]
    fn template_files_fit_the_schema_they_name() {
        let checker = JsonSchemas::default();
        for template in Template::value_variants() {
            for (path, text) in template.files() {
                let named = text.lines().next().and_then(|line| line.rsplit_once(".schemas/"));
                let Some((_, name)) = named else { continue };
                let file = format!(".schemas/{name}");
                let schema = template.files().iter().find(|(path, _)| *path == file);
                let (_, schema) = schema.unwrap_or_else(|| panic!("{path} names `{file}`"));
                let schema = Arc::new(serde_json::from_str(schema).unwrap());
                let value = Node::parse(text, &Limits::default()).unwrap().to_value();
                assert_eq!(checker.check(&schema, &value), Ok(()), "{path}");
            }
        }
    }
}
