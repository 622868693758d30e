//! Checks a project's policies, as far as that needs no server.

use kernel::definition::plan::mistake::Mistake;
use kernel::limits::Limits;
use kernel::tool::call::ToolSpec;
use policy::decide::Policies;
use policy::records::check_records;
use project::entities::{self, EntityFile, EntityTypes};
use project::folder::{EntityFiles, ProjectError};
use project::policies::PolicyFiles;
use project::upstream_entries::Entry;
use query::types::RealmTypes;
use std::path::Path;
use std::sync::Arc;

/// All that is wrong with these policies beside these tools and types of records. Tools of other
/// servers are not known here, nor are types with mistakes.
pub(crate) fn check(
    files: &PolicyFiles,
    tools: &[Arc<ToolSpec>],
    types: Option<&RealmTypes>,
) -> Vec<Mistake> {
    let (policies, mut found) = match Policies::read(files.texts()) {
        Ok(read) => read,
        Err(mistakes) => return mistakes,
    };
    found.extend(policies.check(tools.iter().map(AsRef::as_ref)));
    match types {
        Some(types) => found.extend(check_records(&policies, types)),
        None => found.push(
            Mistake::warning(
                "the types of records have mistakes, so policies are not compared with them",
            )
            .hint("`waypost config check` says what is wrong with the types"),
        ),
    }
    found
}

/// The types of records of the project in this folder.
pub(crate) fn types_of(folder: &Path, limits: &Limits) -> Result<RealmTypes, ProjectError> {
    let files = EntityFiles::load(folder, limits.plan_bytes_max)?;
    let common = read_types(&files.all, &EntityTypes::default(), limits)?;
    let mut types = RealmTypes::default();
    for (realm, files) in &files.own {
        let own = read_types(files, &common, limits)?;
        types.own.insert(realm.clone(), Arc::new(own.types));
    }
    types.common = Arc::new(common.types);
    Ok(types)
}

fn read_types(
    files: &[EntityFile],
    common: &EntityTypes,
    limits: &Limits,
) -> Result<EntityTypes, ProjectError> {
    let (read, _) = entities::read(files, common, limits).map_err(ProjectError::Mistakes)?;
    Ok(read)
}

/// What policies cannot know of these servers: the methods of an open one are in no list.
pub(crate) fn unlisted(entries: &[Entry]) -> Vec<Mistake> {
    let open = entries.iter().filter(|entry| entry.is_open() && !entry.is_disabled());
    let told = open.map(|entry| {
        let name = &entry.name;
        let prefix = entry.prefix();
        let message = format!(
            "server `{name}` is open: it has no list of tools, so a misspelt tool of it in a \
             policy is not noticed"
        );
        let hint = format!(
            "write `Tool::\"{prefix}<method>\"`, without the server's own name before the method, \
             and permit what is needed; or name its methods in `tools` instead of `open`"
        );
        entry.place.mistake(Mistake::warning(message).hint(hint))
    });
    told.collect()
}
