//! Files of types: `entities/` in the project, and in `realms/<name>/` those of one realm.

use super::realms::REALMS_FOLDER;
use super::{ENTITIES, Loader, ProjectError, children};
use crate::entities::EntityFile;
use kernel::values::ids::RealmId;
use std::collections::BTreeMap;
use std::path::Path;

/// The files of all types of a project, in the order of their paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EntityFiles {
    /// Those of every realm.
    pub all: Vec<EntityFile>,
    /// Those of single realms.
    pub own: BTreeMap<RealmId, Vec<EntityFile>>,
}

impl EntityFiles {
    /// Those of the project in this folder, each of which has at most so many bytes.
    pub fn load(folder: &Path, bytes_max: usize) -> Result<Self, ProjectError> {
        let all = Loader::new(folder, bytes_max).load(&ENTITIES)?;
        let mut own = BTreeMap::new();
        let root = folder.join(REALMS_FOLDER);
        let realms = if root.is_dir() { children(&root)? } else { Vec::new() };
        for path in realms.iter().filter(|path| path.is_dir()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let below = Path::new(REALMS_FOLDER).join(&*name);
            let files = Loader { folder, below: &below, bytes_max }.load(&ENTITIES)?;
            if !files.is_empty() {
                own.insert(RealmId::from(&*name), files);
            }
        }
        Ok(Self { all, own })
    }
}
