//! The check of a project's policies, as far as it needs no server.

use kernel::definition::plan::mistake::Mistake;
use kernel::tool::call::ToolSpec;
use policy::decide::Policies;
use project::policies::PolicyFiles;
use std::sync::Arc;

/// All that is wrong with these policies beside these tools. Those of other servers are not known
/// here.
pub(crate) fn check(files: &PolicyFiles, tools: &[Arc<ToolSpec>]) -> Vec<Mistake> {
    match Policies::read(files.texts()) {
        Ok((policies, mut warnings)) => {
            warnings.extend(policies.check(tools.iter().map(AsRef::as_ref)));
            warnings
        }
        Err(mistakes) => mistakes,
    }
}
