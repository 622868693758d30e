//! `waypost plan apply` and `waypost plan rm`: stores plans on a server from files. They are
//! checked here, with the position of each mistake, before anything is sent.

use super::{faulty, named};
use crate::context::Context;
use crate::exit::{Exit, Failure, Result};
use crate::plans::Selection;
use crate::remote::client::{Client, Request, read};
use crate::remote::suggestions::{self, PLANS};
use kernel::definition::plan::Plan;
use kernel::definition::plan::mistake::Mistake;
use serde_json::json;
use std::path::PathBuf;
use wire::rest::PlanAnswer;

/// Runs `waypost plan apply`.
pub(super) async fn apply(context: &Context, paths: &[PathBuf]) -> Result<Exit> {
    let offered = offered(context, paths)?;
    let client = context.client().await?;
    for plan in &offered {
        let (result, version) = store(context, &client, plan).await?;
        let id = plan.id.as_str();
        let line = json!({"planId": id, "result": result, "version": version});
        let version = version.map_or("a file".to_owned(), |version| format!("version {version}"));
        context.output.data(&line, &format!("{result:<9}  {id}  {version}"))?;
    }
    Ok(Exit::Ok)
}

/// Stores a plan where it differs. Gives what became of it, and the version that holds now; none
/// where a file has it.
async fn store(
    context: &Context,
    client: &Client,
    plan: &Plan,
) -> Result<(&'static str, Option<u64>)> {
    let id = plan.id.as_str();
    let wanted = named((*plan.source).clone(), &plan.id);
    let kept = stored_plan(client, id).await?;
    let version = kept.as_ref().and_then(|kept| kept.version);
    if kept.is_some_and(|kept| named(kept.plan, &plan.id) == wanted) {
        return Ok(("unchanged", version));
    }
    let request = Request::to(&["plans", id]).keyed(context.admin_key()?);
    // Of two who apply at once one gets an error, instead of being overwritten.
    let request = match version {
        // What is stored overrides a file, so that one counts as none.
        None => request.only_if("If-None-Match", "*".to_owned()),
        Some(version) => request.only_if("If-Match", format!("\"{version}\"")),
    };
    let answer: PlanAnswer = read(&client.put(request, &wanted).await?)?;
    let result = if version.is_none() { "created" } else { "updated" };
    Ok((result, answer.version))
}

/// Runs `waypost plan rm`.
pub(super) async fn remove(context: &Context, id: &str) -> Result<Exit> {
    let client = context.client().await?;
    let request = Request::to(&["plans", id]).keyed(context.admin_key()?);
    suggestions::or_suggest(&client, PLANS, id, client.delete(request)).await?;
    let document = json!({"planId": id, "removed": true});
    context.output.done(&document, &format!("removed `{id}`"))
}

/// Runs `waypost plan rm --dry-run`.
pub(super) async fn would_remove(context: &Context, id: &str) -> Result<Exit> {
    let client = context.client().await?;
    let asked = client.get(Request::to(&["plans", id]));
    let body = suggestions::or_suggest(&client, PLANS, id, asked).await?;
    let version = read::<PlanAnswer>(&body)?.version;
    let told = match version {
        Some(version) => format!(
            "version {version} of `{id}` would be removed; runs that began continue with it; \
             nothing was removed"
        ),
        None => format!("`{id}` would stay: it is from a file of the server's project"),
    };
    let document = json!({"dryRun": true, "planId": id, "removed": version.is_some()});
    context.output.data(&document, &told)
}

/// The plans of these files, all of them right.
fn offered(context: &Context, paths: &[PathBuf]) -> Result<Vec<Plan>> {
    if let Some(path) = paths.iter().find(|path| !path.exists()) {
        let what = format!("there is no file `{}`", path.display());
        return Err(Failure::usage(what).hint("name plan files, or one folder"));
    }
    let mut plans: Vec<Plan> = Vec::new();
    let mut mistakes: Vec<Mistake> = Vec::new();
    for checked in Selection::read(paths, &context.environment)?.check_shared() {
        mistakes.extend(checked.mistakes);
        plans.extend(checked.plan);
    }
    if mistakes.iter().any(Mistake::is_error) {
        return Err(Failure { exit: Exit::Usage, ..faulty(&mistakes) });
    }
    if plans.is_empty() {
        let what = "these plans are of one realm alone, which has them from its files";
        return Err(Failure::usage(what).hint("name plans of `plans/`"));
    }
    mistakes.iter().for_each(|warning| context.output.talk(&warning.to_string()));
    Ok(plans)
}

/// The plan as the server has it, if it has one.
async fn stored_plan(client: &Client, id: &str) -> Result<Option<PlanAnswer>> {
    match client.get(Request::to(&["plans", id])).await {
        Ok(body) => read(&body).map(Some),
        Err(failure) if failure.code == "not_found" => Ok(None),
        Err(failure) => Err(failure),
    }
}
