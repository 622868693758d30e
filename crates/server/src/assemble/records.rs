//! The records of a server: opened where types are declared, or where there have been records.
//! Without both there is no database of records, and no tool for them.

use super::error::{AssembleError, ProjectPart, wrong};
use super::platform::Platform;
use super::setup::Setup;
use crate::records::keeper::{RecordKeeper, apply, keep_forgetting};
use crate::records::seeds::{SeedFiles, Seeder};
use crate::records::{
    AccessParts, EngineLink, PolicyAccess, RecordBytes, ServedTypes, WithBuiltIn,
};
use crate::secrets::vault::System;
use edge::record_source::RecordSource;
use engine::Engine;
use identity::Identity;
use kernel::contracts::{Policy, Tool};
use kernel::definition::plan::mistake::{CheckResult, Mistake};
use kernel::limits::Limits;
use kernel::values::ids::RealmId;
use project::folder::{Project, ProjectTypes};
use query::records::Records;
use query::records::reach::RecordAccess;
use query::records::requests::RecordLimits;
use std::sync::Arc;
use tools::{RecordTools, record_tools};

/// The names of all tools on records begin so.
pub const TOOL_PREFIX: &str = "query_";

/// The records of a server that is being built.
pub(super) struct OpenRecords {
    pub(super) keeper: Arc<RecordKeeper>,
    access: Arc<PolicyAccess>,
    records: Arc<dyn Records>,
    engine: Arc<EngineLink>,
    system: System,
    /// Whether a realm has types, so that there are tools.
    has_types: bool,
}

/// The types of a project, with warnings; also what is wrong with the files of first records.
pub(crate) fn types_of(project: &Project) -> CheckResult<ProjectTypes> {
    let (types, warnings) = project.types()?;
    let files = seed_files(project);
    let all = std::iter::once(&types.common).chain(types.own.values());
    let mut wrong: Vec<Mistake> = Vec::new();
    for mistake in all.flat_map(|declared| files.check(declared)) {
        // A file that several realms share is told of once.
        if !wrong.contains(&mistake) {
            wrong.push(mistake);
        }
    }
    if wrong.is_empty() { Ok((types, warnings)) } else { Err(wrong) }
}

fn seed_files(project: &Project) -> SeedFiles {
    SeedFiles { folder: project.folder.clone(), texts: project.texts.clone() }
}

/// Opens the records, where there are some or can be some. Records that do not fit the types keep
/// the server from starting.
pub(super) async fn opened(
    setup: &Setup,
    platform: &Platform,
    identity: &Arc<Identity>,
    policy: &Arc<dyn Policy>,
) -> Result<Option<OpenRecords>, AssembleError> {
    let (declared, warnings) = types_of(&setup.project).map_err(wrong(ProjectPart::Types))?;
    warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    let opener = &platform.opened.records;
    if declared.is_empty() && !opener.exists() {
        return Ok(None);
    }
    let limits = record_limits(&platform.limits);
    let store = opener.open(limits.clone())?;
    apply(&*store, &declared).await.map_err(wrong(ProjectPart::Types))?;
    let system = platform.system.clone();
    keep_forgetting(&store, system.clock.clone(), &system.spawn);
    let has_types = !declared.is_empty();
    let types = Arc::new(ServedTypes::new(declared));
    let engine = Arc::new(EngineLink::default());
    let known = identity.clone();
    let access = PolicyAccess::new(AccessParts {
        types: types.clone(),
        policy: policy.clone(),
        directory: Box::new(move || known.directory()),
        engine: engine.clone(),
        limits: platform.limits.clone(),
    });
    let definitions = platform.opened.definitions.clone();
    let records = WithBuiltIn { store: store.clone(), engine: engine.clone(), definitions, limits };
    let seeder = Seeder {
        store: store.clone(),
        files: seed_files(&setup.project),
        clock: system.clock.clone(),
        entropy: system.entropy.clone(),
    };
    Ok(Some(OpenRecords {
        keeper: Arc::new(RecordKeeper { store, types, seeder }),
        access: Arc::new(access),
        records: Arc::new(records),
        engine,
        system,
        has_types,
    }))
}

impl OpenRecords {
    /// The tools on records; none without types.
    pub(super) fn tools(&self) -> Vec<Arc<dyn Tool>> {
        if !self.has_types {
            return Vec::new();
        }
        let access: Arc<dyn RecordAccess> = self.access.clone();
        let records = self.records.clone();
        let System { clock, entropy, .. } = self.system.clone();
        record_tools(RecordTools { access, records, clock, entropy })
    }

    /// What endpoints show; none without types.
    pub(super) fn source(&self) -> Option<RecordSource> {
        let access: Arc<dyn RecordAccess> = self.access.clone();
        let records = self.records.clone();
        self.has_types.then_some(RecordSource { access, records })
    }

    /// Loads first records into these realms, and lets the engine count what is stored.
    pub(super) async fn begin(
        &self,
        engine: &Engine,
        realms: impl Iterator<Item = &RealmId>,
    ) -> Result<(), AssembleError> {
        self.engine.set(engine);
        engine.admin().count_storage_of(Arc::new(RecordBytes(self.keeper.store.clone())));
        for realm in realms {
            self.keeper.seed(realm).await.map_err(wrong(ProjectPart::Types))?;
        }
        Ok(())
    }
}

fn record_limits(limits: &Limits) -> RecordLimits {
    RecordLimits {
        find_bytes_max: limits.find_bytes_max,
        expand_records_max: limits.expand_records_max,
        groups_max: limits.groups_max,
        delete_many_max: limits.delete_many_max,
        record_bytes_max: limits.record_bytes_max,
        query_timeout_ms: limits.query_timeout_ms,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limits_of_settings_and_of_stores_have_the_same_defaults() {
        assert_eq!(record_limits(&Limits::default()), RecordLimits::default());
    }
}
