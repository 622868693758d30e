//! Access rules: whether the policies of a project are right, and whether the running server serves
//! what the files say.

use super::Site;
use super::report::Finding;
use crate::policies::{check, types_of};
use crate::terminal::output::counted;
use project::folder::RightsFiles;
use std::sync::Arc;
use wire::rest::Health;

/// The checks' names.
const POLICIES: &str = "policies";
const RELOAD: &str = "reload";

/// What there is to say of the policies of a project; nothing where it has none. Files that cannot
/// be read are reported with all others of the project.
pub(super) fn policies(site: &Site<'_>) -> Option<Finding> {
    let files = RightsFiles::load(&site.folder, &site.config).policies.ok().flatten()?;
    let tools = tools::builtin(site.config.built_in.clone());
    let tools: Vec<_> = tools.iter().map(|tool| Arc::clone(tool.spec())).collect();
    let types = types_of(&site.folder, &site.config.limits).ok();
    let mistakes = check(&files, &tools, types.as_ref());
    let files = counted(files.policies.len(), "file");
    let hint = "`waypost policy validate` says where";
    Some(Finding::counting(POLICIES, &files, &mistakes, hint))
}

/// What the files say and is not served; nothing where it is, or where the server does not tell us.
pub(super) async fn reload(site: &Site<'_>) -> Option<Finding> {
    let client = site.server.client.as_ref()?;
    let health = client.health(site.context.admin_key().ok()?).await.ok()?;
    let Health { reload_refused, reload_refused_of, .. } = health;
    reload_refused.filter(|is_refused| *is_refused)?;
    let of = reload_refused_of.join(", ");
    let what = format!("files changed, are wrong and are therefore not served: {of}");
    let hint = "the log of the server names file and line; correct them, and it takes them";
    Some(Finding::warn(RELOAD, what, hint))
}
