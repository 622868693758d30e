//! Checks a project's policies, as far as that needs no server.

use kernel::definition::plan::mistake::Mistake;
use kernel::tool::call::ToolSpec;
use policy::decide::Policies;
use project::policies::PolicyFiles;
use project::upstream_entries::Entry;
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
