//! `waypost`: reads the command line, runs one command and ends with its exit code.
#![allow(
    clippy::disallowed_methods,
    reason = "the binary starts the runtime, waits for signals and keeps the time of a client"
)]

mod exit;
mod environment;
mod terminal;
mod process;
mod remote;
mod settings;
mod context;
mod outcome;
mod proposals;
mod asking;
mod threads;
mod completing;
mod plans;
mod policies;
mod served;
mod assembly;
mod examples;
mod commands;
mod help;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use commands::catalog::{agent, tool};
use commands::data::{backup, restore};
use commands::documents::{completions, man, schema};
use commands::identity::{audit, key, policy, principal, realm, whoami};
use commands::thread::{chat, resume, run};
use commands::{
    a2a, child, config, demo, doctor, events, example, inbox, init, mcp, pipeline, plan, record,
    session, up,
};
use context::Context;
use environment::locations::project_folder;
use exit::{Exit, Failure, Result};
use kernel::definition::plan::mistake::meant;
use kernel::identity::grants::check_realm;
use serde_json::{Value, json};
use std::future::Future;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use terminal::output::Output;
use terminal::table::table;

/// A request is many small allocations on several threads; the system's allocator took a quarter of
/// a gateway's time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const EXAMPLES: &str = "\
Examples:
  waypost demo                                   # a tour of what it does; nothing else needed
  waypost up --demo                              # a server with examples, nothing else needed
  waypost chat                                   # in another terminal: talk with an agent
  waypost plan run interaction::greeting         # a plan that asks for a name
  waypost inbox ls                               # what people are asked
  waypost init shop && waypost plan test shop    # a project of your own, offline";

const SERVER_HELP: &str =
    "The server to talk to [env: WAYPOST_SERVER] [default: http://127.0.0.1:8420]";

/// Runs plans that survive crashes and ask people before they do something that matters.
#[derive(Debug, Parser)]
#[command(name = "waypost", version, max_term_width = 100)]
#[command(after_help = EXAMPLES)]
#[command(disable_help_subcommand = true, arg_required_else_help = true)]
struct Cli {
    /// Print JSON: a stream as one line per event, a failure as one line
    #[arg(long, global = true, help_heading = help::GLOBAL)]
    json: bool,

    /// Print data and failures only: no talk, no progress
    #[arg(short, long, global = true, help_heading = help::GLOBAL)]
    quiet: bool,

    // Read with the other variables and not by clap, which does not know the project's `.env`.
    #[arg(long, global = true, value_name = "URL", help = SERVER_HELP)]
    #[arg(help_heading = help::GLOBAL)]
    server: Option<String>,

    // `key add` has one of the same name, which says what the new key may enter: clap takes both
    // for one, so that this is ignored there.
    /// The realm to work in, of those that the credential may enter
    #[arg(long, global = true, value_name = "NAME", value_parser = realm_name)]
    #[arg(help_heading = help::GLOBAL)]
    realm: Option<String>,

    #[command(subcommand)]
    command: Command,
}

fn realm_name(text: &str) -> Result<String, String> {
    check_realm(text).map(|()| text.to_owned()).map_err(|bad| bad.to_string())
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve a project, or the demo
    Up(up::UpArgs),
    /// Serve a project like `up`, but never without credentials
    Serve(up::ServeArgs),
    /// Write a small project that runs as it is
    Init(init::InitArgs),
    /// Show with a server of its own what runs, what asks and what is kept
    Demo(demo::DemoArgs),
    /// Say something to an agent and print the outcome
    Run(run::RunArgs),
    /// Answer what a thread waits for
    Resume(resume::ResumeArgs),
    /// Talk with an agent
    Chat(chat::ChatArgs),
    /// List, check, draw, test, run, draft, store and remove plans
    #[command(subcommand)]
    Plan(plan::PlanCommand),
    /// List and test pipelines, send cases, and see who decided them
    #[command(subcommand)]
    Pipeline(pipeline::PipelineCommand),
    /// List, show, compare, store and remove agents
    #[command(subcommand)]
    Agent(agent::AgentCommand),
    /// Print the JSON Schema of a plan, an agent, a pipeline or a type of records, for editors
    Schema(schema::SchemaArgs),
    /// List, show, follow, pause, retry, copy, cancel and remove sessions
    #[command(subcommand)]
    Session(session::SessionCommand),
    /// List open asks and answer them
    Inbox(inbox::InboxArgs),
    /// List types of records; find, count, save, delete and migrate records
    #[command(subcommand)]
    Record(record::RecordCommand),
    /// List, show and call tools
    #[command(subcommand)]
    Tool(tool::ToolCommand),
    /// Connect MCP clients, and the servers behind this one
    #[command(subcommand)]
    Mcp(mcp::McpCommand),
    /// Look at, talk to, add and check agents that speak A2A
    #[command(subcommand, name = "a2a")]
    A2a(a2a::A2aCommand),
    /// Add, list, rotate and revoke the keys of callers
    #[command(subcommand)]
    Key(key::KeyCommand),
    /// List, show, store, disable and enable named people and programs
    #[command(subcommand)]
    Principal(principal::PrincipalCommand),
    /// List, show, make and remove the realms of a server
    #[command(subcommand)]
    Realm(realm::RealmCommand),
    /// List, check, test and explain the policies of a project
    #[command(subcommand)]
    Policy(policy::PolicyCommand),
    /// Show who you are to the server
    Whoami(whoami::WhoamiArgs),
    /// List, verify and export what was decided
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    /// Follow what happens in all sessions, and see where events go
    #[command(subcommand)]
    Events(events::EventsCommand),
    /// Show the settings that hold, and where each comes from
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Check what a server needs here
    Doctor(doctor::DoctorArgs),
    /// Write a backup of all data, while it is served or not
    Backup(backup::BackupArgs),
    /// Make a data folder from a backup
    Restore(restore::RestoreArgs),
    /// Serve what the examples need
    #[command(subcommand)]
    Example(example::ExampleCommand),
    /// Print the script that completes our commands in a shell
    Completions(completions::CompletionsArgs),
    /// Print or write the manual pages
    Man(man::ManArgs),
    /// Run a command that ends with the process that started it
    #[command(hide = true)]
    Child(child::ChildArgs),
    /// Print the version, as `--version` does
    #[command(hide = true)]
    Version,
    /// Say more about a command, or list the exit codes
    Help {
        /// A command, such as `plan run`, or `exit-codes`
        topic: Vec<String>,
    },
}

/// What still runs when a command is over gets this long; the store is closed by then.
const RUNTIME_LIMIT: Duration = Duration::from_millis(500);

fn main() -> ExitCode {
    if let Some(exit) = completing::answered(command_line) {
        return exit;
    }
    let parsed = command_line().try_get_matches();
    let cli = match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => {
            return refuse(&help::tipped(error, &command_line(), std::env::args_os().skip(1)));
        }
    };
    let output = Output::new(cli.json).hushed(cli.quiet);
    match dispatch(cli, output) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            output.failure(&failure);
            failure.exit.into()
        }
    }
}

/// All commands, as they are parsed and as help shows them.
fn command_line() -> clap::Command {
    help::arranged(Cli::command())
}

fn dispatch(cli: Cli, output: Output) -> Result<Exit> {
    let context = |project| Context::new(output, project, cli.server.clone(), cli.realm.clone());
    let here = || context(Some(project_folder(None)));
    match cli.command {
        Command::Help { topic } => explain(&topic, output),
        Command::Version => output.data(&version(), &format!("waypost {VERSION}")),
        Command::Init(args) => init::run(&args, output),
        Command::Completions(args) => completions::run(&args, command_line(), output),
        Command::Schema(args) => schema::run(&args, output),
        Command::Man(args) => man::run(&args, command_line(), output),
        Command::Child(args) => child::run(&args),
        Command::Up(args) => serve(args.into(), context),
        Command::Serve(args) => serve(args.into(), context),
        Command::Config(args) => {
            let context = context(Some(args.project()))?;
            on_runtime(config::run(&args, &context))
        }
        Command::Policy(args) => policy::run(&args, &context(Some(args.project()))?),
        Command::Doctor(args) => {
            as_client(context(Some(args.project()))?, async |ctx| doctor::run(args, ctx).await)
        }
        Command::Backup(args) => as_client(here()?, async |ctx| backup::run(args, ctx).await),
        Command::Restore(args) => as_client(here()?, async |ctx| restore::run(args, ctx).await),
        Command::Run(args) => as_client(here()?, async |ctx| run::run(args, ctx).await),
        Command::Resume(args) => as_client(here()?, async |ctx| resume::run(args, ctx).await),
        Command::Chat(args) => {
            // Ctrl-C is for what the agent does: it ends nothing else.
            let context = here()?;
            logging(&context, "error", chat::run(args, &context))
        }
        Command::Plan(args) => {
            as_client(context(args.project())?, async |ctx| plan::run(args, ctx).await)
        }
        Command::Pipeline(args) => {
            as_client(context(Some(args.project()))?, async |ctx| pipeline::run(args, ctx).await)
        }
        Command::Agent(args) => as_client(here()?, async |ctx| agent::run(args, ctx).await),
        Command::Session(args) => as_client(here()?, async |ctx| session::run(args, ctx).await),
        Command::Inbox(args) => as_client(here()?, async |ctx| inbox::run(args, ctx).await),
        Command::Record(args) => as_client(here()?, async |ctx| record::run(args, ctx).await),
        Command::Tool(args) => as_client(here()?, async |ctx| tool::run(args, ctx).await),
        Command::Mcp(args) => {
            let context = context(args.project())?;
            logging(&context, "warn", mcp::run(args, &context))
        }
        Command::A2a(args) => {
            as_client(context(Some(args.project()))?, async |ctx| a2a::run(args, ctx).await)
        }
        Command::Key(args) => {
            let mut context = here()?;
            if args.creates() {
                context.realm = None;
            }
            as_client(context, async |ctx| key::run(args, ctx).await)
        }
        Command::Principal(args) => as_client(here()?, async |ctx| principal::run(args, ctx).await),
        Command::Realm(args) => as_client(here()?, async |ctx| realm::run(args, ctx).await),
        Command::Whoami(args) => as_client(here()?, async |ctx| whoami::run(args, ctx).await),
        Command::Audit(args) => as_client(here()?, async |ctx| audit::run(args, ctx).await),
        Command::Events(args) => as_client(here()?, async |ctx| events::run(args, ctx).await),
        Command::Demo(args) => {
            let context = context(None)?;
            logging(&context, "error", demo::run(args, &context))
        }
        Command::Example(args) => {
            let context = context(None)?;
            logging(&context, "warn", example::run(args, &context))
        }
    }
}

/// Serves until a signal stops it.
fn serve(
    wanted: up::ServeOptions,
    context: impl FnOnce(Option<PathBuf>) -> Result<Context>,
) -> Result<Exit> {
    let context = context(wanted.project())?;
    process::logs::start(&context.environment, wanted.log(), "info")?;
    on_runtime(up::run(wanted, &context))
}

/// A command that says nothing but its result unless `LOG_LEVEL` asks for more.
fn as_client(
    context: Context,
    command: impl AsyncFnOnce(&Context) -> Result<Exit>,
) -> Result<Exit> {
    let unless_interrupted = async {
        tokio::select! {
            biased;
            ended = command(&context) => ended,
            Ok(()) = tokio::signal::ctrl_c() => Err(context.interrupted()),
        }
    };
    logging(&context, "error", unless_interrupted)
}

/// A command whose log lines begin at this level unless `LOG_LEVEL` asks for another.
fn logging(
    context: &Context,
    level: &str,
    command: impl Future<Output = Result<Exit>>,
) -> Result<Exit> {
    process::logs::start(&context.environment, process::logs::LogFormat::Text, level)?;
    on_runtime(command)
}

fn on_runtime(command: impl Future<Output = Result<Exit>>) -> Result<Exit> {
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(processors.max(2))
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| {
        Failure::new(Exit::Failed, "runtime", format!("cannot start threads: {error}"))
    })?;
    let ended = runtime.block_on(command);
    runtime.shutdown_timeout(RUNTIME_LIMIT);
    ended
}

const ALL_COMMANDS: &str = "`waypost help` lists the commands";

/// Where clap keeps the word that was meant.
const SUGGESTIONS: [ContextKind; 3] =
    [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue];

/// Help and version are answers; everything else is a mistake in the command line.
fn refuse(error: &clap::Error) -> ExitCode {
    let wants_json = std::env::args_os().any(|argument| argument == "--json");
    let is_mistake = error.use_stderr();
    if is_mistake && wants_json {
        let text = error.to_string();
        let what = match error.kind() {
            ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => "a command is missing",
            _ => text.lines().next().unwrap_or_default().trim_start_matches("error: "),
        };
        let near = SUGGESTIONS.into_iter().find_map(|kind| error.get(kind));
        let near = near.map(|near| format!("did you mean `{near}`?"));
        let hint = near.or_else(|| tip(error)).unwrap_or_else(|| ALL_COMMANDS.to_owned());
        let failure = Failure::usage(what).hint(hint);
        Output::new(true).failure(&failure);
    } else if wants_json && error.kind() == ErrorKind::DisplayVersion {
        let _ = Output::new(true).document(&version());
    } else {
        // No one is left to tell when even this cannot be written.
        let _ = error.print();
    }
    let exit = if is_mistake { Exit::Usage } else { Exit::Ok };
    exit.into()
}

/// The first other advice that an error has.
fn tip(error: &clap::Error) -> Option<String> {
    match error.get(ContextKind::Suggested)? {
        ContextValue::StyledStrs(tips) => tips.first().map(ToString::to_string),
        _ => None,
    }
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The version for programs.
fn version() -> Value {
    json!({"name": "waypost", "version": VERSION})
}

fn explain(topic: &[String], output: Output) -> Result<Exit> {
    if topic == ["exit-codes"] {
        let all = Exit::ALL.iter().map(|(exit, meaning)| (exit.number(), *meaning));
        let code = |(code, meaning): (u8, &str)| json!({"code": code, "meaning": meaning});
        let codes: Vec<Value> = all.clone().map(code).collect();
        let rows = all.map(|(code, meaning)| vec![code.to_string(), meaning.to_owned()]);
        let text = table(&["code", "meaning"], rows);
        return output.data(&json!({"items": codes}), &text);
    }
    let mut command = command_line();
    // Gives every command its full name and the global options.
    command.build();
    let mut found = &mut command;
    for word in topic {
        let names = found.get_subcommands().map(clap::Command::get_name);
        let hint = meant(word, names).unwrap_or_else(|| ALL_COMMANDS.to_owned());
        found = found.find_subcommand_mut(word).ok_or_else(|| {
            Failure::usage(format!("there is no command `{}`", topic.join(" "))).hint(hint)
        })?;
    }
    let text = found.render_help().to_string();
    output.text(text.trim_end())?;
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::fs;

    /// One file per command; `UPDATE_EXPECT=1` writes them again.
    const HELP_FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/help");
    const WIDTH: usize = 100;

    #[test]
    fn the_command_line_is_well_formed() {
        command_line().debug_assert();
        completing::completed(command_line()).debug_assert();
        assert_eq!(completing::misplaced(&command_line()), Vec::<String>::new());
        assert!(SERVER_HELP.contains(remote::client::DEFAULT_SERVER));
    }

    #[test]
    fn every_command_is_in_one_group() {
        assert_eq!(help::misplaced(&command_line()), Vec::<String>::new());
    }

    #[test]
    fn common_aliases_of_commands_are_accepted() {
        for words in
            ["agent get a", "key list", "key create --name x", "agent delete a", "agent show a"]
        {
            let words = ["waypost"].into_iter().chain(words.split(' '));
            assert!(command_line().try_get_matches_from(words).is_ok());
        }
    }

    /// The help of a command and of all below it, by the name of its file.
    fn helps(command: &mut clap::Command, all: &mut BTreeMap<String, String>) {
        let name = command.get_bin_name().unwrap_or(command.get_name()).replace(' ', "-");
        let help = command.render_help().to_string();
        let lines: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
        all.insert(format!("{name}.txt"), format!("{}\n", lines.join("\n")));
        for inner in command.get_subcommands_mut() {
            helps(inner, all);
        }
    }

    fn snapshots() -> BTreeMap<String, String> {
        let entries = fs::read_dir(HELP_FOLDER)
            .unwrap_or_else(|error| panic!("{HELP_FOLDER}: {error}; `UPDATE_EXPECT=1` writes it"));
        let file = |entry: std::io::Result<fs::DirEntry>| {
            let entry = entry.unwrap();
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, fs::read_to_string(entry.path()).unwrap())
        };
        entries.map(file).collect()
    }

    #[test]
    fn every_help_text_matches_its_snapshot() {
        let mut command = command_line().term_width(WIDTH);
        command.build();
        let mut all = BTreeMap::new();
        helps(&mut command, &mut all);
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            fs::create_dir_all(HELP_FOLDER).unwrap();
            for name in snapshots().keys().filter(|name| !all.contains_key(*name)) {
                fs::remove_file(format!("{HELP_FOLDER}/{name}")).unwrap();
            }
            for (name, text) in &all {
                fs::write(format!("{HELP_FOLDER}/{name}"), text).unwrap();
            }
            return;
        }
        let snapshots = snapshots();
        let names = |texts: &BTreeMap<String, String>| texts.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&all), names(&snapshots), "`UPDATE_EXPECT=1` writes {HELP_FOLDER} anew");
        for (name, text) in &all {
            assert_eq!(text, &snapshots[name], "{name}: `UPDATE_EXPECT=1` writes it anew");
        }
    }
}
