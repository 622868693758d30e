//! The sources of a server: a project or the demo, and its data folder.

use crate::context::Context;
use crate::environment::DATA_FOLDER;
use crate::exit::Result;
use crate::plans::load_project;
use crate::process::folder::TemporaryFolder;
use crate::settings::Settings;
use project::folder::{EntityFiles, Project};
use std::path::{Path, PathBuf};

/// Where the data is to be kept, as the command line says it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DataChoice<'a> {
    /// In this folder.
    In(&'a Path),
    /// In the project; the demo has none, and keeps nothing.
    WithProject,
    /// Nowhere: it goes with the process.
    Nowhere,
}

/// Where the data is.
#[derive(Debug)]
pub(crate) enum DataLocation {
    /// In a folder that stays.
    Kept(PathBuf),
    /// In one that goes with this process.
    Temporary(TemporaryFolder),
}

impl DataLocation {
    pub(crate) fn path(&self) -> &Path {
        match self {
            DataLocation::Kept(path) => path,
            DataLocation::Temporary(folder) => folder.path(),
        }
    }
}

/// The project that the context names, else the demo, and where its data is.
pub(crate) fn sources(context: &Context, kept: DataChoice<'_>) -> Result<(Project, DataLocation)> {
    let environment = &context.environment;
    let project = match &context.project {
        Some(folder) => load_project(folder, environment)?,
        None => Project::demo_with(Settings::of_demo(environment)?.config),
    };
    let is_bare = project.plans.is_empty()
        && project.agents.is_empty()
        && project.pipelines.is_empty()
        && project.entities == EntityFiles::default();
    if let Some(folder) = context.project.as_ref().filter(|_| is_bare) {
        let hint = "`waypost init` writes one, `waypost up --demo` shows some";
        tracing::warn!(folder = %folder.display(), "the project has no plans; {hint}");
    }
    let data = match (kept, &context.project) {
        (DataChoice::In(data), _) => DataLocation::Kept(data.to_path_buf()),
        (DataChoice::WithProject, Some(folder)) => DataLocation::Kept(folder.join(DATA_FOLDER)),
        (DataChoice::WithProject | DataChoice::Nowhere, _) => {
            DataLocation::Temporary(TemporaryFolder::new()?)
        }
    };
    Ok((project, data))
}
