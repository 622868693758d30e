//! `waypost policy`: checks, tests and explains the policies of a project. All of it is offline:
//! the decisions of a server follow from its files.

use crate::context::Context;
use crate::environment::Environment;
use crate::environment::locations::project_folder;
use crate::exit::{Exit, Failure, Result};
use crate::plans::load_project;
use crate::policies::{check, types_of, unlisted};
use crate::terminal::output::counted;
use crate::terminal::table::table;
use clap::{Args, Subcommand};
use engine::system::clock::SystemClock;
use kernel::contracts::Clock;
use kernel::contracts::policy::Decision;
use kernel::definition::plan::mistake::Mistake;
use kernel::tool::call::{ToolSpec, Verdict};
use policy::cases::{Cases, Setup};
use policy::decide::{ListedPolicy, Policies};
use project::folder::Project;
use project::policies::PolicyFiles;
use project::realm::default_realm;
use query::types::RealmTypes;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;

const EXAMPLES: &str = "\
Examples:
  waypost policy ls                   # the policies of this project
  waypost policy validate             # mistakes with file, line and hint
  waypost policy test                 # the cases of policies/tests.yaml
  waypost policy explain '{subject: ann, roles: [clerk], act: call, resource: {tool: pay}}'
  waypost policy explain '{subject: ann, act: read, resource: {recordType: shop.Order}}'";

/// What `waypost policy` takes.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum PolicyCommand {
    /// List the policies of a project
    #[command(alias = "show")]
    Ls(Folder),
    /// Check policies and say what is wrong, with file, line and column
    Validate(Folder),
    /// Run the cases of policies/tests.yaml
    Test(Folder),
    /// Say what is decided of one case, and by which policies
    Explain {
        /// The case, as in policies/tests.yaml, without `expect`
        case: String,
        #[command(flatten)]
        place: Place,
    },
}

/// The project, with or without the name of its option.
#[derive(Debug, Args)]
pub(crate) struct Folder {
    /// The project's folder [default: this one, or the nearest above it with a waypost.toml]
    #[arg(value_name = "DIR", conflicts_with = "dir")]
    folder: Option<PathBuf>,
    /// The same as an option
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Place {
    /// The project's folder [default: this one, or the nearest above it with a waypost.toml]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl PolicyCommand {
    /// The folder of the project that the command is about.
    pub(crate) fn project(&self) -> PathBuf {
        let dir = match self {
            PolicyCommand::Ls(place)
            | PolicyCommand::Validate(place)
            | PolicyCommand::Test(place) => place.folder.as_ref().or(place.dir.as_ref()),
            PolicyCommand::Explain { place, .. } => place.dir.as_ref(),
        };
        project_folder(dir.map(PathBuf::as_path))
    }
}

/// Runs `waypost policy`.
pub(crate) fn run(command: &PolicyCommand, context: &Context) -> Result<Exit> {
    let read = LoadedPolicies::of(
        load_project(&command.project(), &context.environment)?,
        &context.environment,
    );
    match command {
        PolicyCommand::Ls(_) => show(context, &read.policies()?),
        PolicyCommand::Validate(_) => validate(context, &read),
        PolicyCommand::Test(_) => test(context, &read),
        PolicyCommand::Explain { case, .. } => explain(context, &read, case),
    }
}

/// The policies of a project, and what they are held against.
struct LoadedPolicies {
    files: PolicyFiles,
    /// The built-in tools. Those of other servers are not known here.
    tools: Vec<Arc<ToolSpec>>,
    /// What is said of servers whose tools are in no list.
    unlisted: Vec<Mistake>,
    /// The types of its records; none if there are mistakes in them.
    types: Option<RealmTypes>,
    builtin: bool,
}

impl LoadedPolicies {
    fn of(project: Project, environment: &Environment) -> Self {
        // What is wrong with upstreams is reported where they are used.
        let upstreams = project.upstreams(&|name: &str| environment.any(name)).ok();
        let unlisted = upstreams.map(|known| unlisted(known.entries())).unwrap_or_default();
        let tools = tools::builtin(project.built_in());
        let types = types_of(&project.folder, &project.config.limits).ok();
        Self {
            files: project.policies.unwrap_or_default(),
            tools: tools.iter().map(|tool| tool.spec().clone()).collect(),
            unlisted,
            types,
            builtin: project.config.policy.builtin,
        }
    }

    fn policies(&self) -> Result<Policies> {
        let read = Policies::read(self.files.texts());
        read.map(|(policies, _)| policies).map_err(|mistakes| mistaken(&mistakes))
    }

    fn cases(&self) -> Result<Cases> {
        let Some(tests) = &self.files.tests else { return Ok(Cases::default()) };
        Cases::read(&tests.file, &tests.text).map_err(|mistakes| mistaken(&mistakes))
    }

    fn setup(&self) -> Setup<'_> {
        let tools = self.tools.as_slice();
        let builtin = self.builtin;
        Setup { tools, realm: default_realm(), now: SystemClock.now(), builtin }
    }
}

fn mistaken(mistakes: &[Mistake]) -> Failure {
    let failure =
        Failure::new(Exit::Failed, "invalid_policy", "there are mistakes in the policies");
    failure.lines(mistakes.iter().filter(|mistake| mistake.is_error()))
}

fn show(context: &Context, policies: &Policies) -> Result<Exit> {
    let listed = policies.listed();
    let document = json!({"version": policies.version(), "policies": listed});
    context.output.either(&document, || {
        let rows = listed.iter().map(|policy| {
            let place = format!("{}:{}", policy.file, policy.line);
            let why = policy.why.clone().unwrap_or_default();
            vec![policy.id.to_string(), policy.effect.to_owned(), place, why]
        });
        context.output.text(&table(&["policy", "effect", "place", "asks"], rows))
    })
}

fn validate(context: &Context, read: &LoadedPolicies) -> Result<Exit> {
    let mut mistakes = check(&read.files, &read.tools, read.types.as_ref());
    mistakes.extend(read.unlisted.iter().cloned());
    let errors = mistakes.iter().filter(|mistake| mistake.is_error()).count();
    let output = context.output;
    output.either(&json!({"valid": errors == 0, "mistakes": mistakes}), || {
        mistakes.iter().try_for_each(|mistake| output.text(&mistake.to_string()))
    })?;
    let warnings = mistakes.len() - errors;
    let told = format!("{}, {}", counted(errors, "error"), counted(warnings, "warning"));
    output.talk(&told);
    Ok(if errors == 0 { Exit::Ok } else { Exit::Failed })
}

fn test(context: &Context, read: &LoadedPolicies) -> Result<Exit> {
    let policies = read.policies()?;
    let cases = read.cases()?;
    let failed = cases.run(&policies, &read.setup());
    let passed = cases.len() - failed.len();
    let output = context.output;
    output.either(&json!({"passed": passed, "failed": failed}), || {
        failed.iter().try_for_each(|mistake| output.text(&mistake.to_string()))?;
        output.text(&format!("{passed} passed, {} failed", failed.len()))
    })?;
    if cases.is_empty() {
        output.talk("there are no cases: write some into `policies/tests.yaml`");
    }
    Ok(if failed.is_empty() { Exit::Ok } else { Exit::Failed })
}

fn explain(context: &Context, read: &LoadedPolicies, case: &str) -> Result<Exit> {
    let read_policies = read.policies()?;
    let cases = read.cases()?;
    let unread = |mistakes: Vec<Mistake>| Failure::usage("the case cannot be read").lines(mistakes);
    let decision = cases.explain(case, &read_policies, &read.setup()).map_err(unread)?;
    let answerers = decision.answerers();
    let narrowing = narrowing(&read_policies, &decision);
    let Decision { verdict, policies, .. } = decision;
    let (word, why) = match verdict {
        Verdict::Allow => ("allow", None),
        Verdict::Ask(why) => ("ask", Some(why)),
        Verdict::Deny(why) => ("deny", Some(why)),
    };
    let mut document =
        json!({"verdict": word, "why": why, "policies": policies, "answerers": answerers});
    let by = if policies.is_empty() { "no policy".to_owned() } else { policies.join(", ") };
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    let mut lines = vec![format!("{word} by {by}{why}")];
    let filters = narrowing.iter().filter_map(|one| Some((one.rows.as_ref()?, &one.id)));
    let filters: Vec<Value> = filters
        .map(|(query, id)| {
            lines.push(format!("rows: {query} (by {id})"));
            json!({"query": query, "policy": id})
        })
        .collect();
    let hiding = narrowing.iter().filter(|one| !one.hide.is_empty());
    let hidden: Vec<Value> = hiding
        .map(|ListedPolicy { id, hide, .. }| {
            lines.push(format!("hidden: {} (by {id})", hide.join(", ")));
            json!({"fields": hide, "policy": id})
        })
        .collect();
    if !narrowing.is_empty() {
        document["rows"] = Value::Array(filters);
        document["hidden"] = Value::Array(hidden);
    }
    context.output.data(&document, &lines.join("\n"))
}

/// The policies that leave only some rows or fields of records, as far as this was decided.
fn narrowing(policies: &Policies, decision: &Decision) -> Vec<ListedPolicy> {
    let narrows = |one: &ListedPolicy| {
        (one.rows.is_some() || !one.hide.is_empty()) && decision.policies.contains(&one.id)
    };
    let is_narrowed = !decision.obligations.is_empty();
    policies.listed().into_iter().filter(|one| is_narrowed && narrows(one)).collect()
}
