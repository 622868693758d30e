//! `waypost record migrate`: changes the stored records of a data folder that no server uses, so
//! that they fit the types of the project.

use super::named_steps::{TypeNames, drop_of, rename, typed};
use super::remedies::remedy;
use crate::assembly::refused;
use crate::context::Context;
use crate::environment::DATA_FOLDER;
use crate::environment::locations::{project_folder, shown};
use crate::exit::{Exit, Failure, Result};
use crate::settings::Settings;
use crate::terminal::output::{Output, counted};
use clap::Args;
use kernel::definition::plan::mistake::Mistake;
use project::folder::ProjectTypes;
use project::folder::{EntityFiles, ProjectError};
use query::records::type_change::{
    MigrationStep, Obstacle, TypeChange, TypeChangeError, TypeDifference, TypeReport,
};
use query::types::{RealmTypes, RecordType};
use serde_json::{Value, json};
use server::{AssembleError, OfflineRecords};
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug, Args)]
pub(crate) struct MigrateArgs {
    /// A new name of a field or a type: Order.sum=total or Order=Invoice
    #[arg(long, value_name = "OLD=NEW")]
    rename: Vec<String>,
    /// A field or a type that is removed with its data, before anything is renamed
    #[arg(long, value_name = "NAME")]
    drop: Vec<String>,
    /// Only say what would change
    #[arg(long)]
    dry_run: bool,
    /// Where the data is kept [default: .waypost in the project]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

/// Runs `waypost record migrate`.
pub(super) async fn run(args: &MigrateArgs, context: &Context) -> Result<Exit> {
    let folder = context.project.clone().unwrap_or_else(|| project_folder(None));
    let types = Arc::new(declared(&folder, context)?);
    let data = args.data.clone().unwrap_or_else(|| folder.join(DATA_FOLDER));
    let Some(held) = OfflineRecords::take(&data).await.map_err(unusable)? else {
        let what = format!("there are no records in `{}`", shown(&data));
        return Err(Failure::usage(what).hint("`--data DIR` names another folder"));
    };
    let changing = changed(args, &types, &held);
    let changed = context.progress().during("changing the records", changing).await;
    let closed = held.close().await.map_err(refused);
    let (steps, report) = changed?;
    closed?;
    tell(context.output, args.dry_run, &steps, &report)
}

/// Why the data cannot be had.
fn unusable(error: AssembleError) -> Failure {
    let hint = match error.holder().is_some() {
        true => "stop the server, then change its records",
        false => "`--data DIR` names another folder",
    };
    refused(error).hint(hint)
}

/// The types that the project declares.
fn declared(folder: &Path, context: &Context) -> Result<RealmTypes> {
    let limits = Settings::load(Some(folder), &context.environment)?.config.limits;
    let faulty = |mistakes: Vec<Mistake>| {
        Failure::new(Exit::Usage, "invalid_types", "there are mistakes in the types of records")
            .lines(mistakes)
            .hint("mend them; `waypost config check` checks the files again")
    };
    let files = EntityFiles::load(folder, limits.plan_bytes_max).map_err(|error| match error {
        ProjectError::Mistakes(mistakes) => faulty(mistakes),
        ProjectError::Unreadable { .. } => Failure::usage(error.to_string()),
    })?;
    let (types, warnings) = ProjectTypes::read(&files, &limits).map_err(faulty)?;
    warnings.iter().for_each(|warning| context.output.talk(&warning.to_string()));
    Ok(types.declared())
}

/// Takes the steps that are asked for, and the types as they are declared.
async fn changed(
    args: &MigrateArgs,
    types: &Arc<RealmTypes>,
    held: &OfflineRecords,
) -> Result<(Vec<MigrationStep>, TypeReport)> {
    let types = types.clone();
    let look = TypeChange { types: types.clone(), steps: Vec::new(), is_dry_run: true };
    let stored: Vec<String> = match held.change_types(look).await {
        Ok(report) => report.changes.into_iter().map(|change| change.record_type).collect(),
        Err(TypeChangeError::Obstacles(obstacles)) => {
            obstacles.into_iter().map(|obstacle| obstacle.record_type).collect()
        }
        Err(error) => return Err(unchanged(&error, &types)),
    };
    let sets = types.own.values().chain([&types.common]);
    let declared = sets.flat_map(|set| set.all()).map(RecordType::full_name);
    let names: TypeNames = declared.chain(stored).collect();
    let renames = args.rename.iter().map(|text| rename(text, &names));
    let drops = args.drop.iter().map(|text| drop_of(text, &names));
    // What is in the way of a new name goes first.
    let steps = drops.chain(renames).collect::<Result<Vec<MigrationStep>>>()?;
    let is_dry_run = args.dry_run;
    let change = TypeChange { types: types.clone(), steps: steps.clone(), is_dry_run };
    let report = held.change_types(change).await.map_err(|error| unchanged(&error, &types))?;
    Ok((steps, report))
}

/// Why nothing was changed.
fn unchanged(error: &TypeChangeError, types: &RealmTypes) -> Failure {
    match error {
        TypeChangeError::Obstacles(obstacles) => in_the_way(obstacles, types),
        TypeChangeError::Step(why) => Failure::new(Exit::Usage, "migration_step", why.as_str())
            .hint("nothing was changed; `--dry-run` tries other steps"),
        TypeChangeError::Store(error) => Failure::new(Exit::Failed, "stored", error.to_string()),
    }
}

/// The records that would lose something or do not fit, each with what helps.
fn in_the_way(obstacles: &[Obstacle], types: &RealmTypes) -> Failure {
    let told = |obstacle| (obstacle, remedy(obstacle, obstacles, types));
    let told: Vec<(&Obstacle, String)> = obstacles.iter().map(told).collect();
    let lines = told.iter().map(|(obstacle, remedy)| format!("{obstacle}: {remedy}"));
    let listed: Vec<Value> = told
        .iter()
        .map(|(obstacle, remedy)| {
            json!({
                "rootType": obstacle.record_type,
                "realm": obstacle.realm,
                "change": obstacle.change.to_string(),
                "records": obstacle.records,
                "remedy": remedy,
            })
        })
        .collect();
    Failure::new(Exit::Failed, "records_do_not_fit", "stored records do not fit the types")
        .lines(lines)
        .problem(json!({"obstacles": listed}))
        .hint("nothing was changed; add what helps, and try it with `--dry-run` first")
}

fn tell(
    output: Output,
    is_dry_run: bool,
    steps: &[MigrationStep],
    report: &TypeReport,
) -> Result<Exit> {
    let TypeReport { changes, migrated } = report;
    let taken: Vec<(String, u64)> = steps.iter().map(typed).zip(migrated.iter().copied()).collect();
    let step = |(step, records): &(String, u64)| json!({"step": step, "records": records});
    let difference = |difference: &TypeDifference| {
        let TypeDifference { realm, record_type, changes } = difference;
        let changes: Vec<String> = changes.iter().map(ToString::to_string).collect();
        json!({"rootType": record_type, "realm": realm, "changes": changes})
    };
    let document = json!({
        "dryRun": is_dry_run,
        "steps": taken.iter().map(step).collect::<Vec<Value>>(),
        "changes": changes.iter().map(difference).collect::<Vec<Value>>(),
    });
    output.either(&document, || {
        for (step, records) in &taken {
            output.text(&format!("{step}: {}", counted(*records, "record")))?;
        }
        changes.iter().flat_map(lines).try_for_each(|line| output.text(&line))?;
        output.talk(match (is_dry_run, taken.is_empty() && changes.is_empty()) {
            (_, true) => "stored records fit their types",
            (true, false) => "nothing was changed",
            (false, false) => "the records fit their types now",
        });
        Ok(())
    })
}

/// What differs in one type, a line for each change.
fn lines(difference: &TypeDifference) -> Vec<String> {
    let TypeDifference { realm, record_type, changes } = difference;
    let place = realm.as_ref().map(|realm| format!(" in realm `{realm}`")).unwrap_or_default();
    changes.iter().map(|change| format!("{record_type}{place}: {change}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use query::types::{Change, TypeSet};

    #[test]
    fn obstacles_are_told_with_what_helps() {
        let types = RealmTypes::common(TypeSet::default());
        let gone = Obstacle {
            realm: None,
            record_type: "Order".to_owned(),
            change: Change::TypeGone,
            records: 3,
        };
        let failure = in_the_way(&[gone], &types);
        let expected = "error: stored records do not fit the types\n  Order: the type is gone (3 \
                        records): `--rename Order=NEW` keeps them as another type, `--drop Order` \
                        removes them\nhint: nothing was changed; add what helps, and try it with \
                        `--dry-run` first";
        assert_eq!(failure.to_string(), expected);
        assert_eq!(failure.to_json()["problem"]["obstacles"][0]["records"], 3);
    }
}
