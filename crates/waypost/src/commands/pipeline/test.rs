//! `waypost pipeline test`: reads and checks a pipeline's file as a server would, and says which
//! path cases take. Offline, and no case runs.

use super::send;
use crate::context::Context;
use crate::environment::locations::project_folder;
use crate::exit::{Exit, Failure, Result};
use crate::plans::{KnownNames, load_project};
use crate::terminal::input;
use crate::terminal::output::counted;
use crate::terminal::table::table;
use clap::Args;
use kernel::definition::pipeline::{Case, HandlerKind, Pipeline};
use kernel::definition::pipeline_reader::read_text;
use kernel::definition::plan::mistake::{Mistake, meant};
use kernel::definition::plan::source::{Node, NodeKind};
use project::folder::Project;
use serde_json::{Value, json};
use server::check_pipeline;
use std::path::{Path, PathBuf};

/// What `waypost pipeline test` takes.
#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// The pipeline's file
    file: PathBuf,
    /// A case to find the path of: a JSON text or @file; may be given again
    #[arg(long = "case", value_name = "JSON|@FILE")]
    cases: Vec<String>,
}

impl TestArgs {
    /// The project that the file is part of, else the present one: its plans may be handlers.
    pub(super) fn project(&self) -> PathBuf {
        let absolute = std::path::absolute(&self.file).ok();
        let folder = absolute.as_deref().and_then(Path::parent);
        let inside = folder.filter(|folder| folder.file_name().is_some_and(|it| it == "pipelines"));
        match inside.and_then(Path::parent) {
            Some(project) => project.to_path_buf(),
            None => project_folder(None),
        }
    }
}

/// A pipeline's file and all that is wrong with it.
struct CheckedPipeline {
    /// None where an error keeps it from being used.
    pipeline: Option<Pipeline>,
    mistakes: Vec<Mistake>,
}

pub(super) fn run(context: &Context, args: &TestArgs) -> Result<Exit> {
    let file = args.file.display().to_string();
    let text = input::file(&args.file)?;
    let given: Vec<Value> = args.cases.chunks(1).map(send::read).collect::<Result<_, _>>()?;
    let folder = context.project.clone().unwrap_or_else(|| args.project());
    let mut project = load_project(&folder, &context.environment)?;
    // Among the others: names, routes and ports are one pipeline's.
    let known = project.add_pipeline(&args.file);
    let known = known.map_err(|error| Failure::usage(error.to_string()))?;
    let CheckedPipeline { pipeline, mut mistakes } = check(&text, &args.file, context, &project);
    let variables = |name: &str| context.environment.any(name);
    for mistake in check_pipeline(&project, &known, &variables) {
        let is_its = mistake.file.as_ref() == Some(&known);
        mistakes.push(if is_its { in_file(mistake, &file) } else { mistake });
    }
    let pipeline = pipeline.filter(|_| !mistakes.iter().any(Mistake::is_error));
    let checked = CheckedPipeline { pipeline, mistakes };
    let cases: Vec<CasePath> = match &checked.pipeline {
        Some(pipeline) => given.iter().map(|case| CasePath::of(pipeline, case)).collect(),
        None => Vec::new(),
    };
    tell(context, &file, &checked, &cases)?;
    let is_refused = cases.iter().any(|road| road.refused.is_some());
    Ok(if checked.pipeline.is_none() || is_refused { Exit::Failed } else { Exit::Ok })
}

fn check(text: &str, file: &Path, context: &Context, project: &Project) -> CheckedPipeline {
    let limits = &project.config.limits;
    let name = file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let read = read_text(text, &file.display().to_string(), &name.unwrap_or_default(), limits);
    let (pipeline, mut mistakes) = match read {
        Ok(read) => read,
        Err(mistakes) => return CheckedPipeline { pipeline: None, mistakes },
    };
    let known = KnownNames::of(project, &context.environment);
    let node = Node::parse(text, limits).ok();
    let mut add = |key: &str, word: &str, mistake: Mistake| {
        let mistake = placed(mistake, node.as_ref(), key, word);
        mistakes.push(in_file(mistake, &file.display().to_string()));
    };
    for tool in pipeline.tools.iter().filter(|tool| !known.has_tool(tool)) {
        let kept_out = known.kept_out(tool).map(str::to_owned);
        let hint = kept_out
            .or_else(|| meant(tool, known.tools()))
            .unwrap_or_else(|| "`waypost tool ls` lists those of a server".to_owned());
        add("tools", tool, Mistake::error(format!("there is no tool `{tool}`")).hint(hint));
    }
    for handler in &pipeline.handlers {
        let HandlerKind::Plan(plan) = &handler.kind else { continue };
        if !known.has_plan(plan) {
            let hint = meant(plan.as_str(), known.plans())
                .unwrap_or_else(|| "`waypost plan validate` checks the project's".to_owned());
            let mistake = Mistake::error(format!("there is no plan `{plan}`")).hint(hint);
            add("handlers", plan.as_str(), mistake);
        }
    }
    mistakes.sort_by_key(|mistake| (mistake.line, mistake.column));
    CheckedPipeline { pipeline: Some(pipeline), mistakes }
}

fn in_file(mistake: Mistake, file: &str) -> Mistake {
    Mistake { file: Some(file.to_owned()), ..mistake }
}

/// The mistake where the file says this word below this key.
fn placed(mistake: Mistake, node: Option<&Node>, key: &str, word: &str) -> Mistake {
    let found = node.and_then(|node| find(node.get(key)?, word));
    match found {
        Some(found) => mistake.at(found.begin(), format!("/{key}")),
        None => mistake,
    }
}

fn find<'n>(node: &'n Node, word: &str) -> Option<&'n Node> {
    match &node.kind {
        NodeKind::Text(text) => {
            let plain = text.strip_prefix("plan:").map_or(text.as_str(), str::trim);
            (plain == word).then_some(node)
        }
        NodeKind::List(items) => items.iter().find_map(|item| find(item, word)),
        NodeKind::Map(entries) => entries.iter().find_map(|(_, inner)| find(inner, word)),
        NodeKind::Null | NodeKind::Bool(_) | NodeKind::Number(_) => None,
    }
}

/// Which path a case takes.
#[derive(Debug, PartialEq)]
struct CasePath {
    id: String,
    reason: String,
    /// The type of its handler; an agent does it where there is none.
    handler: Option<&'static str>,
    /// Why it is not taken at all.
    refused: Option<String>,
}

impl CasePath {
    fn of(pipeline: &Pipeline, body: &Value) -> Self {
        match pipeline.admit(body) {
            Ok(Case { id, reason, handler, .. }) => {
                let handler = handler.and_then(|index| pipeline.handlers.get(index));
                let handler = handler.map(|handler| handler.kind.name());
                Self { id, reason, handler, refused: None }
            }
            Err(bad) => {
                let refused = Some(bad.to_string());
                Self { id: String::new(), reason: String::new(), handler: None, refused }
            }
        }
    }

    fn text(&self) -> String {
        match (&self.refused, self.handler) {
            (Some(why), _) => format!("refused: {why}"),
            (None, Some(handler)) => format!("deterministic: {handler}"),
            (None, None) => "unknown -> agent".to_owned(),
        }
    }

    fn json(&self) -> Value {
        let road = match (&self.refused, self.handler) {
            (Some(_), _) => "refused",
            (None, Some(_)) => "deterministic",
            (None, None) => "agent",
        };
        json!({
            "case": self.id,
            "reason": self.reason,
            "road": road,
            "handler": self.handler,
            "refused": self.refused,
        })
    }
}

fn tell(
    context: &Context,
    file: &str,
    checked: &CheckedPipeline,
    roads: &[CasePath],
) -> Result<()> {
    let output = context.output;
    let errors = checked.mistakes.iter().filter(|mistake| mistake.is_error()).count();
    if output.is_json() {
        return output.document(&json!({
            "valid": errors == 0,
            "file": file,
            "pipeline": checked.pipeline.as_ref().map(|pipeline| &pipeline.name),
            "mistakes": checked.mistakes,
            "cases": roads.iter().map(CasePath::json).collect::<Vec<_>>(),
        }));
    }
    for mistake in &checked.mistakes {
        output.text(&mistake.to_string())?;
    }
    if !roads.is_empty() {
        let row = |road: &CasePath| vec![road.id.clone(), road.reason.clone(), road.text()];
        output.text(&table(&["case", "reason", "path"], roads.iter().map(row)))?;
    }
    let warnings = checked.mistakes.len() - errors;
    let handlers = checked.pipeline.as_ref().map_or(0, |pipeline| pipeline.handlers.len());
    let handlers = counted(handlers, "handler");
    let errors = counted(errors, "error");
    output.talk(&format!("{handlers}, {errors}, {}", counted(warnings, "warning")));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::limits::Limits;

    const FILE: &str = "\
http: {route: /desk}
schema: {caseIdField: id, allowedFields: [id, reason], requiredFields: [id, reason]}
handlers:
  - {reason: old, type: escalate}
  - reason: new
    type: 'plan: desk/greet'
tools: [{type: raise-ticket}, {name: desk.call}]
llm: {type: stub}
";

    fn pipeline() -> Pipeline {
        let read = read_text(FILE, "desk.yaml", "desk", &Limits::default());
        read.unwrap_or_else(|mistakes| panic!("{mistakes:?}")).0
    }

    #[test]
    fn a_case_is_routed_or_refused() {
        let pipeline = pipeline();
        let road = |body: Value| CasePath::of(&pipeline, &body).text();
        assert_eq!(road(json!({"id": "1", "reason": "old"})), "deterministic: escalate");
        assert_eq!(road(json!({"id": "1", "reason": "Old"})), "unknown -> agent");
        let refused = CasePath::of(&pipeline, &json!({"id": "1"}));
        assert_eq!(refused.text(), "refused: Missing required field(s): reason");
        assert_eq!(refused.json()["road"], "refused");
    }

    #[test]
    fn missing_parts_are_reported_at_their_reference() {
        let node = Node::parse(FILE, &Limits::default()).unwrap();
        let place = |key: &str, word: &str| {
            let mistake = placed(Mistake::error("gone"), Some(&node), key, word);
            (mistake.line, mistake.column)
        };
        assert_eq!(place("handlers", "desk/greet").0, 6);
        assert_eq!(place("tools", "desk.call").0, 7);
        assert_eq!(place("tools", "events.publish"), (0, 0));
    }
}
