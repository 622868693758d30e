//! Files of single realms: `realms/<name>/` has `plans`, `agents` and `pipelines` like the project
//! itself, and `entities`, which are loaded beside them. They are that realm's alone, and take the place of files of the project that define the
//! same.

use super::{AGENTS, ENTITIES, Loader, PIPELINES, PLANS, ProjectError, children, is_plan, mistake};
use engine::ProjectFiles;
use kernel::definition::pipeline::{Pipeline, PipelineLlm};
use kernel::definition::plan::mistake::Mistake;
use kernel::identity::grants::check_realm;
use kernel::identity::realm::Realms;
use kernel::values::ids::RealmId;
use std::collections::BTreeMap;
use std::path::Path;

/// The folder of the realms' own folders.
pub const REALMS_FOLDER: &str = "realms";

/// The agents, plans and pipelines of a project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RealmFiles {
    /// Those of every realm.
    pub all: ProjectFiles,
    /// Those of single realms.
    pub own: BTreeMap<RealmId, ProjectFiles>,
}

impl RealmFiles {
    /// All files of a realm.
    pub fn of(&self, realm: &RealmId) -> ProjectFiles {
        self.own.get(realm).map_or_else(|| self.all.clone(), |own| self.all.with(own))
    }

    /// Whether this file is the realm's alone.
    pub fn is_own(&self, realm: &RealmId, file: Option<&str>) -> bool {
        let own = self.own.get(realm);
        own.is_some_and(|own| file.is_some_and(|file| own.has(file)))
    }

    /// The realm that this file is of alone.
    pub fn owner(&self, file: Option<&str>) -> Option<&RealmId> {
        self.own.keys().find(|realm| self.is_own(realm, file))
    }

    /// Warnings of files whose realms are not there.
    pub fn strangers(&self, realms: &Realms) -> Vec<Mistake> {
        let strange = self.own.keys().filter(|name| !realms.0.contains_key(*name));
        let warning = |name: &RealmId| {
            let hint = "name it in `[realms]` of `waypost.toml`, or `waypost realm add` makes it";
            let what = format!("there is no realm `{name}`: its files are not served");
            let file = Some(format!("{REALMS_FOLDER}/{name}"));
            Mistake { file, ..Mistake::warning(what).hint(hint) }
        };
        strange.map(warning).collect()
    }
}

/// What a pipeline of one realm cannot have: models and ports are the server's.
pub fn unfit(file: &str, pipeline: &Pipeline) -> Vec<Mistake> {
    let mut found = Vec::new();
    if let PipelineLlm::Own { .. } = &pipeline.llm {
        let what = "a pipeline of one realm cannot bring a model of its own";
        let hint = "name one of `waypost.toml`: `llm: {type: model, params: {name: ..}}`";
        found.push(Mistake::error(what).hint(hint));
    }
    if pipeline.port.is_some() {
        let what = "a pipeline of one realm cannot have a port of its own";
        found.push(
            Mistake::error(what).hint("leave it out: the server's own port serves its route"),
        );
    }
    let filed = |mistake| Mistake { file: Some(file.to_owned()), ..mistake };
    found.into_iter().map(filed).collect()
}

/// The files of single realms, and what is wrong with those of others.
#[derive(Debug, Default)]
pub(super) struct OwnFiles {
    /// The files of realms that could be read.
    pub(super) read: BTreeMap<RealmId, ProjectFiles>,
    /// Why those of others could not.
    pub(super) wrong: BTreeMap<RealmId, ProjectError>,
}

impl OwnFiles {
    /// The files of all realms, or what is wrong with those of the first one.
    pub(super) fn all(self) -> Result<BTreeMap<RealmId, ProjectFiles>, ProjectError> {
        let Self { read, wrong } = self;
        wrong.into_values().next().map_or(Ok(read), Err)
    }
}

/// The files of single realms; none where there is no folder for them. What is wrong with those of
/// one realm says nothing about those of another.
pub(super) fn load(folder: &Path, bytes_max: usize) -> Result<OwnFiles, ProjectError> {
    let root = folder.join(REALMS_FOLDER);
    let mut found = OwnFiles::default();
    if !root.is_dir() {
        return Ok(found);
    }
    for path in children(&root)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let shown = format!("{REALMS_FOLDER}/{name}");
        if !path.is_dir() {
            if is_plan(&path) {
                let hint = "move it to `realms/<realm>/plans/<domain>/`, or to `agents/` there";
                return Err(mistake(shown, "the file is in no realm's folder".to_owned(), hint));
            }
            continue;
        }
        if let Err(bad) = check_realm(&name) {
            return Err(mistake(shown, bad.to_string(), "rename the folder, or move it elsewhere"));
        }
        let below = Path::new(REALMS_FOLDER).join(&name);
        let loader = Loader { folder, below: &below, bytes_max };
        let realm = RealmId::from(name.as_str());
        match check_folder(&path, &shown).and_then(|()| files_of(&loader)) {
            Ok(files) => {
                found.read.insert(realm, files);
            }
            Err(error) => {
                found.wrong.insert(realm, error);
            }
        }
    }
    Ok(found)
}

/// The files of one realm.
fn files_of(loader: &Loader<'_>) -> Result<ProjectFiles, ProjectError> {
    Ok(ProjectFiles {
        agents: loader.load(&AGENTS)?,
        plans: loader.load(&PLANS)?,
        pipelines: loader.load(&PIPELINES)?,
        ..ProjectFiles::default()
    })
}

/// What is where we do not look would be missed in silence.
fn check_folder(folder: &Path, shown: &str) -> Result<(), ProjectError> {
    let known = [PLANS.folder, AGENTS.folder, PIPELINES.folder, ENTITIES.folder];
    for path in children(folder)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_known = known.contains(&name.as_str());
        if (path.is_dir() && !is_known) || is_plan(&path) {
            let what = "nothing is read here";
            let hint = "a realm has `plans`, `agents`, `pipelines` and `entities` of its own, and \
                nothing else";
            return Err(mistake(format!("{shown}/{name}"), what.to_owned(), hint));
        }
    }
    Ok(())
}
