//! Who may do what: whether the policies of a project are right, and whether a server that runs
//! serves what the files say.

use super::finding::Finding;
use crate::context::Context;
use crate::exit::Result;
use crate::policies::check;
use crate::remote::client::Client;
use crate::terminal::output::counted;
use project::config::Config;
use project::folder::RightsFiles;
use std::path::Path;
use std::sync::Arc;
use wire::rest::Health;

/// The checks' names.
const POLICIES: &str = "policies";
const RELOAD: &str = "reload";

/// What there is to say of the policies of a project; nothing where it has none. Files that cannot
/// be read are reported with all others of the project.
pub(super) fn policies(folder: &Path, config: &Config) -> Option<Finding> {
    let files = RightsFiles::load(folder, config).policies.ok().flatten()?;
    let tools = tools::builtin(config.built_in.clone());
    let tools: Vec<_> = tools.iter().map(|tool| Arc::clone(tool.spec())).collect();
    let mistakes = check(&files, &tools);
    let errors = mistakes.iter().filter(|mistake| mistake.is_error()).count();
    let files = counted(files.policies.len(), "file");
    let wrong = counted(errors, "error");
    let what = format!("{files}, {wrong}, {}", counted(mistakes.len() - errors, "warning"));
    let hint = "`waypost policy validate` says where";
    Some(match (errors, mistakes.len()) {
        (0, 0) => Finding::ok(POLICIES, what),
        (0, _) => Finding::warn(POLICIES, what, hint),
        _ => Finding::fail(POLICIES, what, hint),
    })
}

/// What the files say and is not served; nothing where it is, or where the server does not tell us.
pub(super) async fn reload(client: &Client, context: &Context) -> Option<Finding> {
    let Health { reload_refused, reload_refused_of, .. } = asked(client, context).await.ok()?;
    reload_refused.filter(|is_refused| *is_refused)?;
    let of = reload_refused_of.join(", ");
    let what = format!("files changed, are wrong and are therefore not served: {of}");
    let hint = "the log of the server names file and line; correct them, and it takes them";
    Some(Finding::warn(RELOAD, what, hint))
}

async fn asked(client: &Client, context: &Context) -> Result<Health> {
    client.health(context.admin_key()?).await
}
