//! The types of records of a project that is served: taken when their files change, all together,
//! as long as the stored records and the policies in force fit them.

use super::records::types_of;
use super::reload::Outcome;
use super::rights::RightsReload;
use crate::records::keeper::RecordKeeper;
use kernel::definition::plan::mistake::Mistake;
use kernel::values::ids::RealmId;
use project::folder::{EntityFiles, Project, ProjectTypes};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Takes types that changed into a server that runs.
pub(crate) struct TypesReload {
    /// None where the server began without types: its tools are those that it began with.
    records: Option<Arc<RecordKeeper>>,
    /// The files that are served.
    taken: EntityFiles,
}

impl TypesReload {
    pub(crate) fn new(records: Option<Arc<RecordKeeper>>, taken: EntityFiles) -> Self {
        Self { records, taken }
    }

    /// Serves the types of this project from now on, in these realms, or says why not.
    pub(crate) async fn take(
        &mut self,
        project: &Project,
        realms: &[RealmId],
        rights: &mut RightsReload,
    ) -> Result<Outcome, Vec<Mistake>> {
        let (declared, warnings) = types_of(project)?;
        let Some(records) = &self.records else { return without_records(&declared) };
        if records.serves(&declared) {
            return Ok(Outcome::default());
        }
        let known = declared.known();
        let misfits = rights.misfits(&known);
        if !misfits.is_empty() {
            return Err(misfits);
        }
        records.take(declared).await?;
        rights.know(known);
        let mut outcome = Outcome { taken: true, warnings, ..Outcome::default() };
        outcome.changed = differing(&self.taken, &project.entities);
        self.taken = project.entities.clone();
        for realm in realms {
            // The types are served; rows that are wrong are loaded once they are mended.
            let wrong = records.seed(realm).await.err().unwrap_or_default();
            outcome.warnings.extend(wrong);
        }
        Ok(outcome)
    }
}

/// The first types of a server come with tools, which it gets when it starts.
fn without_records(declared: &ProjectTypes) -> Result<Outcome, Vec<Mistake>> {
    if declared.is_empty() {
        return Ok(Outcome::default());
    }
    let what = "the first types of a server are served after a restart";
    Err(vec![Mistake::error(what).hint("restart it: the tools on records come with them")])
}

/// The names of the files that are not the same in both.
fn differing(before: &EntityFiles, now: &EntityFiles) -> Vec<String> {
    let before = texts(before);
    let now = texts(now);
    let all: BTreeSet<&str> = before.keys().chain(now.keys()).copied().collect();
    let changed = all.into_iter().filter(|file| before.get(file) != now.get(file));
    changed.map(str::to_owned).collect()
}

fn texts(files: &EntityFiles) -> BTreeMap<&str, &str> {
    let all = std::iter::once(&files.all).chain(files.own.values()).flatten();
    all.map(|file| (file.file.as_str(), file.text.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use project::entities::EntityFile;

    #[test]
    fn changed_files_are_named() {
        let file = |name: &str, text: &str| EntityFile {
            file: format!("entities/{name}.yaml"),
            name: name.to_owned(),
            text: text.to_owned(),
        };
        let files = |all: Vec<EntityFile>| EntityFiles { all, ..EntityFiles::default() };
        let before = files(vec![file("A", "1"), file("B", "1"), file("C", "1")]);
        let now = files(vec![file("A", "1"), file("B", "2"), file("D", "1")]);
        let changed = differing(&before, &now);
        assert_eq!(changed, ["entities/B.yaml", "entities/C.yaml", "entities/D.yaml"]);
    }

    #[test]
    fn first_types_wait_for_a_restart() {
        assert!(without_records(&ProjectTypes::default()).is_ok_and(|outcome| !outcome.taken));
    }
}
