//! Checks a project's files as an engine that begins with them would, without an engine: nothing is
//! stored, and nothing runs.

use crate::catalog::registry::{Registry, SwitchedOff, ToolSource};
use crate::catalog::schema::JsonSchemas;
use crate::catalog::{Catalog, ProjectFiles};
use kernel::definition::plan::mistake::Mistake;
use kernel::limits::Limits;
use kernel::tool::rules::ToolRules;
use kernel::values::ids::RealmId;
use std::sync::Arc;

/// What a project's files are checked against.
pub struct CheckContext {
    /// The tools that are there from the start.
    pub tools: Vec<ToolSource>,
    /// The rules for tools.
    pub rules: ToolRules,
    /// What stands before the names of tools that are still to come.
    pub awaited: Vec<String>,
    /// The tools that the settings leave out.
    pub switched_off: SwitchedOff,
    /// The limits.
    pub limits: Arc<Limits>,
}

/// Warnings of these files, or all mistakes in them. What a data folder holds is not known here.
pub fn check_files(
    files: &ProjectFiles,
    around: CheckContext,
) -> Result<Vec<Mistake>, Vec<Mistake>> {
    let CheckContext { tools, rules, awaited, switched_off, limits } = around;
    let schemas = Arc::new(JsonSchemas::default());
    let registry = Registry::new(tools, rules, awaited, switched_off, schemas.as_ref())?;
    let catalog = Catalog::new(registry, schemas, limits, None);
    let (_, warnings) = catalog.read_files(&RealmId::from("local"), files)?;
    Ok(warnings)
}
