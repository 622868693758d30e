//! `waypost plan apply`: stores plans on a server from files. They are checked here, with the
//! position of each mistake, before anything is sent.

use super::{faulty, named};
use crate::commands::stored::{StoreResult, StoredKind};
use crate::context::Context;
use crate::exit::{Exit, Failure, Result};
use crate::plans::Selection;
use crate::remote::client::{Client, read};
use crate::remote::suggestions::PLANS;
use kernel::definition::plan::Plan;
use kernel::definition::plan::mistake::Mistake;
use std::path::PathBuf;
use wire::rest::PlanAnswer;

pub(super) const STORED: StoredKind = StoredKind { names: PLANS, member: "planId" };

/// Runs `waypost plan apply`.
pub(super) async fn apply(context: &Context, paths: &[PathBuf]) -> Result<Exit> {
    let offered = offered(context, paths)?;
    let client = context.client().await?;
    for plan in &offered {
        let stored = store(context, &client, plan).await?;
        STORED.tell(context, plan.id.as_str(), stored)?;
    }
    Ok(Exit::Ok)
}

/// Stores a plan where it differs.
async fn store(context: &Context, client: &Client, plan: &Plan) -> Result<StoreResult> {
    let id = plan.id.as_str();
    let wanted = named((*plan.source).clone(), &plan.id);
    let kept: Option<PlanAnswer> = client.find(PLANS.item(id)).await?;
    let version = kept.as_ref().and_then(|kept| kept.version);
    if kept.is_some_and(|kept| named(kept.plan, &plan.id) == wanted) {
        return Ok(StoreResult { result: "unchanged", version });
    }
    let request = PLANS.item(id).keyed(context.admin_key()?);
    // Of two who apply at once one gets an error, instead of being overwritten.
    let request = match version {
        // What is stored overrides a file, so that one counts as none.
        None => request.only_if("If-None-Match", "*".to_owned()),
        Some(version) => request.only_if("If-Match", format!("\"{version}\"")),
    };
    let answer: PlanAnswer = read(&client.put(request, &wanted).await?)?;
    let result = if version.is_none() { "created" } else { "updated" };
    Ok(StoreResult { result, version: answer.version })
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
