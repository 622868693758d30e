//! `waypost plan draft`: lets a model write a plan for a goal. The plan is printed, or saved with
//! `--save`. Nothing of it runs.

use crate::commands::init::{check_free, write_new};
use crate::context::Context;
use crate::environment::locations::{project_folder, shown};
use crate::exit::{Exit, Failure, Result};
use crate::remote::client::{Request, read};
use crate::terminal::output::printable;
use crate::terminal::table::table;
use crate::terminal::yaml;
use clap::Args;
use serde_json::{Value, json};
use std::path::PathBuf;
use wire::rest::{DraftAnswer, DraftBody, PlanDraft, PlanMistake, PlanSummary};

/// How long a server may take: a model is asked several times.
const DRAFT_SECONDS: u64 = 600;

#[derive(Debug, Args)]
pub(crate) struct DraftArgs {
    /// What the plan is for, in words
    goal: String,
    /// The model that writes it; `default`, or the only one, if absent
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// A tool that it may use, or a pattern such as `crm.*`; repeat it for more
    #[arg(long = "tool", value_name = "NAME")]
    tools: Vec<String>,
    /// Have a plan written even if one fits already
    #[arg(long)]
    fresh: bool,
    /// Write the plan into this project: `crm/find` is plans/crm/find.yaml
    #[arg(long, value_name = "ID")]
    save: Option<String>,
}

/// Runs `waypost plan draft`.
pub(super) async fn run(context: &Context, args: DraftArgs) -> Result<Exit> {
    let place = args.save.as_deref().map(SavePlace::of).transpose()?;
    if let Some(place) = &place {
        place.check_free()?;
    }
    let tools = (!args.tools.is_empty()).then_some(args.tools);
    let body = json!(DraftBody { goal: args.goal, model: args.model, tools, fresh: args.fresh });
    let client = context.client().await?;
    let request = Request::to(&["plans", "draft"]).taking(DRAFT_SECONDS);
    let drafting = client.post(request, &body);
    let body = context.progress().during("waiting for the model", drafting).await?;
    let DraftAnswer { existing, draft } = read(&body)?;
    match draft {
        None => tell_existing(context, &body, existing),
        Some(draft) if draft.valid => tell_valid(context, &body, draft, place),
        Some(draft) => tell_wrong(context, &body, &draft),
    }
}

fn tell_existing(context: &Context, body: &Value, existing: Vec<PlanSummary>) -> Result<Exit> {
    let row = |plan: PlanSummary| vec![plan.id, plan.description];
    context.output.data(body, &table(&["plan", "description"], existing.into_iter().map(row)))?;
    context.output.talk("these plans fit already; `--fresh` has another one written");
    Ok(Exit::Ok)
}

fn tell_valid(
    context: &Context,
    body: &Value,
    draft: PlanDraft,
    place: Option<SavePlace>,
) -> Result<Exit> {
    let output = context.output;
    let file = place.map(|place| place.write(draft.plan.clone())).transpose()?;
    output.either(body, || output.text(printable(&yaml::plan(&draft.plan)?).trim_end()))?;
    for warning in &draft.warnings {
        output.talk(&format!("warning: {}", line(warning)));
    }
    for write in &draft.writes {
        let asks = if write.approve { ", and asks a person first" } else { "" };
        output.talk(&format!("`{}` {}: {}{asks}", write.step, write.reach, write.calls));
    }
    if draft.writes.is_empty() {
        output.talk("it only reads");
    }
    if let Some(file) = file {
        output.talk(&format!("written to {file}; read it before you run it"));
    }
    Ok(Exit::Ok)
}

fn tell_wrong(context: &Context, body: &Value, draft: &PlanDraft) -> Result<Exit> {
    // Whoever reads the output as a plan must not take this for one.
    context.output.either(body, || Ok(()))?;
    let message = format!("model `{}` wrote no plan that can be used", draft.model);
    Err(Failure::new(Exit::Failed, "invalid_plan", message)
        .lines(draft.errors.iter().map(for_a_person))
        .hint("say the goal in other words, or name a larger model with `--model`"))
}

/// A mistake with its place, without a hint that is for the model.
fn for_a_person(mistake: &PlanMistake) -> String {
    let is_for_people = |hint: &String| !hint.starts_with("answer with");
    line(&PlanMistake { hint: mistake.hint.clone().filter(is_for_people), ..mistake.clone() })
}

/// A mistake with its place.
fn line(mistake: &PlanMistake) -> String {
    let PlanMistake { pointer, detail, hint } = mistake;
    let place = if pointer.is_empty() { String::new() } else { format!("{pointer}: ") };
    match hint {
        Some(hint) => format!("{place}{detail}; {hint}"),
        None => format!("{place}{detail}"),
    }
}

/// Where a plan is written, and the id that it has there.
struct SavePlace {
    id: String,
    path: PathBuf,
}

impl SavePlace {
    fn of(id: &str) -> Result<Self> {
        let is_plain = |part: &str| {
            let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            !part.is_empty() && part.chars().all(is_letter)
        };
        match id.split_once('/') {
            Some((domain, name)) if is_plain(domain) && is_plain(name) => {
                let folder = project_folder(None).join("plans").join(domain);
                Ok(Self { id: id.to_owned(), path: folder.join(format!("{name}.yaml")) })
            }
            _ => Err(Failure::usage(format!("`{id}` cannot be the id of a new plan"))
                .hint("write it as `domain/name`, in letters, digits, `_` and `-`")),
        }
    }

    /// Refuses a file that is there, before a model is asked in vain.
    fn check_free(&self) -> Result<()> {
        let endings = ["yaml", "yml", "json"];
        let mut files = endings.iter().map(|ending| self.path.with_extension(ending));
        files.try_for_each(|file| check_free(&file)).map_err(|failure| {
            failure.hint("save the plan under another id, or remove the file first")
        })
    }

    /// Writes it, unless there is one already.
    fn write(self, mut plan: Value) -> Result<String> {
        if let Some(members) = plan.as_object_mut() {
            members.insert("planId".to_owned(), Value::String(self.id));
        }
        write_new(&self.path, &yaml::plan(&plan)?)?;
        Ok(shown(&self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_saved_below_plans_and_nowhere_else() {
        let place = SavePlace::of("crm/find-one").unwrap();
        assert!(place.path.ends_with("plans/crm/find-one.yaml"), "{}", place.path.display());
        for id in ["", "find", "a/b/c", "../x", "a/..", "/a", "a/", "a b/c"] {
            assert!(SavePlace::of(id).is_err(), "{id}");
        }
    }

    #[test]
    fn a_plan_gets_the_id_of_its_path_and_overwrites_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let place = || SavePlace {
            id: "crm/find".to_owned(),
            path: folder.path().join("plans/crm/find.yaml"),
        };
        assert!(place().check_free().is_ok());
        place().write(json!({"planId": "draft/one", "steps": []})).unwrap();
        assert!(place().check_free().is_err());
        let kept = std::fs::read_to_string(place().path).unwrap();
        let kept: Value = serde_saphyr::from_str(&kept).unwrap();
        assert_eq!(kept, json!({"planId": "crm/find", "steps": []}));
        assert!(place().write(json!({})).is_err());
    }

    #[test]
    fn a_mistake_is_shown_without_the_models_instructions() {
        let mistake = |hint: &str| PlanMistake {
            pointer: "/steps".to_owned(),
            detail: "the answer has no JSON object".to_owned(),
            hint: Some(hint.to_owned()),
        };
        let told = for_a_person(&mistake("answer with the plan as one JSON object"));
        assert_eq!(told, "/steps: the answer has no JSON object");
        let told = for_a_person(&mistake("did you mean `a`?"));
        assert_eq!(told, "/steps: the answer has no JSON object; did you mean `a`?");
    }
}
