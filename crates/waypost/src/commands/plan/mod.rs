//! `waypost plan`: lists, checks, draws, tests and runs plans, and stores them on a server.
//! Checking, drawing and testing need no server.

mod draft;
mod record;
mod stored;

use crate::asking::Asker;
use crate::asking::following::{WAITING, answered, asks_person, at_rest};
use crate::commands::Most;
use crate::commands::init::check_free;
use crate::context::{Context, Listing};
use crate::environment::locations::project_folder;
use crate::examples::{self, ExampleResult};
use crate::exit::{Exit, Failure, Result};
use crate::outcome;
use crate::plans::{CheckedPlan, Selection, folder_of};
use crate::remote::client::{Client, Request, read};
use crate::remote::suggestions::{self, PLANS};
use crate::terminal::input;
use crate::terminal::output::{Output, counted, printable};
use crate::terminal::progress::Line;
use crate::terminal::screen::Tone;
use crate::terminal::yaml;
use clap::{Args, Subcommand};
use kernel::definition::plan::graph::mermaid;
use kernel::definition::plan::mistake::Mistake;
use kernel::values::ids::PlanId;
use record::Recording;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use stored::STORED;
use wire::rest::{PlanAnswer, PlanSummary, RunAnswer, RunBody};

const EXAMPLES: &str = "\
Examples:
  waypost plan ls
  waypost plan ls --match 'add two numbers'        # those that fit, best first
  waypost plan run math::conditional_add a=2 b=3
  waypost plan run plans/hello/greet.yaml          # a file, as it is now
  waypost plan run hello/greet --session my-session --wait 5
  waypost plan run interaction::greeting           # asks at a terminal, else exit code 3
  waypost plan run hello/greet --record run.yaml   # as an example for `plan test`
  waypost plan validate                            # all plans of this project, offline
  waypost plan test plans/hello/greet.yaml         # runs a plan's examples, offline
  waypost plan test hello/greet                    # the same plan by its id
  waypost plan graph plans/hello/greet.yaml        # as Mermaid text
  waypost plan draft 'find a customer by name' --save crm/find
  waypost plan apply plans/hello/greet.yaml        # stored on a server, where it differs
  waypost plan rm hello/greet";

/// What `waypost plan` takes.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum PlanCommand {
    /// List the server's plans
    Ls(ListArgs),
    /// Show one plan as the server has it
    Show {
        /// The plan's id
        id: String,
    },
    /// Check plans and say what is wrong, with file, line and column; offline
    Validate {
        /// Plan files or ids, or one folder [default: this folder's project]
        #[arg(value_name = "FILES|IDS|DIR")]
        paths: Vec<PathBuf>,
    },
    /// Draw a plan as Mermaid text; offline
    Graph {
        /// The plan's file, or its id in this folder's project
        #[arg(value_name = "FILE|ID")]
        file: PathBuf,
    },
    /// Run the examples that plans carry; offline
    Test {
        /// Plan files or ids, or one folder [default: this folder's project]
        #[arg(value_name = "FILES|IDS|DIR")]
        paths: Vec<PathBuf>,
    },
    /// Run a plan and print its answer
    Run(RunArgs),
    /// Have a model write a plan for a goal; nothing of it runs
    Draft(draft::DraftArgs),
    /// Store plans from files, where they differ from what is stored
    Apply {
        /// Plan files, or one folder
        #[arg(value_name = "FILES|DIR", required = true)]
        paths: Vec<PathBuf>,
    },
    /// Remove a stored plan; runs that began continue with it
    Rm {
        /// The plan's id
        id: String,
        /// Only say what would be removed
        #[arg(long)]
        dry_run: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only plans that fit this text, best first
    #[arg(long = "match", value_name = "TEXT")]
    text: Option<String>,
    #[command(flatten)]
    most: Most,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The plan's id on the server, or a file, whose plan is sent with the request
    #[arg(value_name = "ID|FILE")]
    id: String,
    /// The input: `key=value ..` (JSON where it reads as JSON, else text), a JSON text or @file
    #[arg(value_name = "KEY=VALUE..|JSON|@FILE")]
    words: Vec<String>,
    /// The same as an option
    #[arg(long, value_name = "KEY=VALUE..|JSON|@FILE", num_args = 1.., conflicts_with = "words")]
    input: Vec<String>,
    /// The session to run in, ses_.. or your own key; a new one if absent
    #[arg(long, value_name = "KEY")]
    session: Option<String>,
    /// Write the run, once it has ended, into this new file as an example for `plan test`
    #[arg(long, value_name = "FILE", conflicts_with = "session")]
    record: Option<PathBuf>,
    /// How many seconds to wait for the run to end or pause
    #[arg(long, value_name = "SECS", default_value_t = 30, value_parser = super::wait)]
    wait: u64,
}

impl PlanCommand {
    /// The project that the command is about; none for files that are in no project.
    pub(crate) fn project(&self) -> Option<PathBuf> {
        match self {
            PlanCommand::Validate { paths } | PlanCommand::Test { paths } => folder_of(paths),
            PlanCommand::Graph { file } => folder_of(std::slice::from_ref(file)),
            PlanCommand::Ls(_)
            | PlanCommand::Show { .. }
            | PlanCommand::Run(_)
            | PlanCommand::Apply { .. }
            | PlanCommand::Rm { .. }
            | PlanCommand::Draft(_) => Some(project_folder(None)),
        }
    }
}

/// Runs `waypost plan`.
pub(crate) async fn run(command: PlanCommand, context: &Context) -> Result<Exit> {
    match command {
        PlanCommand::Ls(args) => list(context, args).await,
        PlanCommand::Show { id } => show(context, &id).await,
        PlanCommand::Validate { paths } => validate(context, &paths).await,
        PlanCommand::Graph { file } => graph(context, file),
        PlanCommand::Test { paths } => test(context, &paths).await,
        PlanCommand::Run(args) => start(context, args).await,
        PlanCommand::Draft(args) => draft::run(context, args).await,
        PlanCommand::Apply { paths } => stored::apply(context, &paths).await,
        PlanCommand::Rm { id, dry_run: false } => STORED.remove(context, &id).await,
        PlanCommand::Rm { id, dry_run: true } => {
            STORED.would_remove(context, &id, |answer: PlanAnswer| answer.version).await
        }
    }
}

async fn list(context: &Context, args: ListArgs) -> Result<Exit> {
    let request = Request::to(&["plans"]).with("match", args.text);
    let body = context.client().await?.list(request, args.most.limit).await?;
    let row = |plan: PlanSummary| vec![plan.id, plan.description];
    let none =
        "no plans match: write one in `plans/<domain>/`, or draft one with `waypost plan draft`";
    let heads = ["plan", "description"];
    context.table(&body, Listing { noun: "plan", heads: &heads, none }, row)
}

async fn show(context: &Context, id: &str) -> Result<Exit> {
    let body = context.client().await?.get(Request::to(&["plans", id])).await?;
    context.show(&body, |shown: PlanAnswer| {
        context.output.text(printable(&yaml::plan(&shown.plan)?).trim_end())
    })
}

async fn start(context: &Context, args: RunArgs) -> Result<Exit> {
    if let Some(file) = &args.record {
        check_free(file)?;
    }
    let words = if args.words.is_empty() { &args.input } else { &args.words };
    let input = input::words(words)?;
    let file = Path::new(&args.id);
    let plan = file.is_file().then(|| inline(context, file)).transpose()?;
    let plan_id = plan.is_none().then(|| args.id.clone());
    let sent = Some(input.clone());
    let body = json!(RunBody { plan, plan_id, agent: None, input: sent, session: args.session });
    let client = context.client().await?;
    let line = Line::spinning(WAITING);
    let run = follow(context, &client, &body, Duration::from_secs(args.wait), &line);
    let waiting = context.progress().along(&line, run);
    let body = suggestions::or_suggest(&client, PLANS, &args.id, waiting).await?;
    let answer: RunAnswer = read(&body)?;
    let run = answer.run.id.clone();
    let asker = if asks_person(&answer.run).is_some() { Asker::of(context) } else { None };
    let told = match asker {
        Some(asker) => answered(context, &client, asker, answer.run).await,
        None => outcome::tell(context, &body, &answer.run),
    };
    let Some(file) = &args.record else { return told };
    let recording = Recording { file, plan: &args.id, input: &input, run: &run };
    record::write(context, &client, &recording, told).await
}

/// The plan of a file, checked here and sent with the request.
fn inline(context: &Context, file: &Path) -> Result<Value> {
    let checked = Selection::read(&[file.to_path_buf()], &context.environment)?.check();
    let mistakes: Vec<Mistake> = checked.iter().flat_map(|one| one.mistakes.clone()).collect();
    let Some(plan) = checked.into_iter().find_map(|one| one.plan) else {
        return Err(faulty(&mistakes));
    };
    Ok(named((*plan.source).clone(), &plan.id))
}

/// What a file says, with its id: a file may leave that to its name, which the server does not see.
fn named(mut source: Value, id: &PlanId) -> Value {
    if let Value::Object(members) = &mut source {
        members.entry("planId").or_insert_with(|| json!(id));
    }
    source
}

/// Starts a run, and waits until it ends or pauses, at most so long. The start is answered at once
/// and we poll the run from then on: a person who interrupts us learns its session.
async fn follow(
    context: &Context,
    client: &Client,
    body: &Value,
    wait: Duration,
    line: &Line,
) -> Result<Value> {
    let until = Instant::now() + wait;
    let started = client.post(Request::to(&["runs"]).waiting(0), body).await?;
    at_rest(context, client, started, until, line).await
}

async fn validate(context: &Context, paths: &[PathBuf]) -> Result<Exit> {
    let output = context.output;
    let selection = Selection::read(paths, &context.environment)?;
    let all = selection.with_documents(&context.environment).await.check();
    let mistakes: Vec<&Mistake> = all.iter().flat_map(|checked| &checked.mistakes).collect();
    let errors = mistakes.iter().filter(|mistake| mistake.is_error()).count();
    let file = |checked: &CheckedPlan| {
        json!({
            "file": checked.file,
            "plan": checked.plan.as_ref().map(|plan| &plan.id),
            "mistakes": checked.mistakes,
        })
    };
    let files: Vec<_> = all.iter().map(file).collect();
    output.either(&json!({"valid": errors == 0, "files": files}), || {
        mistakes.iter().try_for_each(|mistake| output.text(&mistake.to_string()))
    })?;
    let warnings = mistakes.len() - errors;
    let plans = counted(all.len(), "plan");
    let errors_told = counted(errors, "error");
    output.talk(&format!("{plans}, {errors_told}, {}", counted(warnings, "warning")));
    Ok(if errors == 0 { Exit::Ok } else { Exit::Failed })
}

fn graph(context: &Context, file: PathBuf) -> Result<Exit> {
    let output = context.output;
    if file.is_dir() {
        return Err(Failure::usage(format!("`{}` is a folder", file.display()))
            .hint("name one plan's file"));
    }
    for checked in Selection::read(&[file], &context.environment)?.check() {
        let Some(plan) = checked.plan else {
            return Err(faulty(&checked.mistakes));
        };
        let drawing = mermaid(&plan);
        let document = json!({"plan": plan.id, "mermaid": drawing});
        output.data(&document, drawing.trim_end())?;
    }
    Ok(Exit::Ok)
}

async fn test(context: &Context, paths: &[PathBuf]) -> Result<Exit> {
    let selection = Selection::read(paths, &context.environment)?;
    let mut plans = Vec::new();
    let mut mistakes = Vec::new();
    // Examples run in the realm that every server has.
    for checked in selection.check_shared() {
        mistakes.extend(checked.mistakes.into_iter().filter(Mistake::is_error));
        plans.extend(checked.plan);
    }
    if !mistakes.is_empty() {
        return Err(faulty(&mistakes));
    }
    let results = examples::run(selection.project, &plans, context.progress()).await?;
    tell(context.output, &results)
}

fn tell(output: Output, results: &[ExampleResult]) -> Result<Exit> {
    let failed = results.iter().filter(|result| result.difference.is_some()).count();
    let passed = results.len() - failed;
    for result in results {
        let plan = &result.plan;
        let name = &result.name;
        let document = json!({
            "plan": plan,
            "example": name,
            "passed": result.difference.is_none(),
            "difference": result.difference,
        });
        output.either(&document, || match &result.difference {
            None => output.judged(Tone::Good, &format!("ok      {plan}: {name}")),
            Some(difference) => {
                output.judged(Tone::Bad, &format!("FAILED  {plan}: {name}: {difference}"))
            }
        })?;
    }
    if !output.is_json() {
        output.text(&format!("{passed} passed, {failed} failed"))?;
    }
    if results.is_empty() {
        output.talk("no plan here has `examples:`, the runs that this command tries");
    }
    Ok(if failed == 0 { Exit::Ok } else { Exit::Failed })
}

/// Plans that cannot be drawn or tested before their mistakes are mended.
fn faulty(mistakes: &[Mistake]) -> Failure {
    let errors = mistakes.iter().filter(|mistake| mistake.is_error());
    Failure::new(Exit::Failed, "invalid_plan", "there are mistakes in the plans").lines(errors)
}
