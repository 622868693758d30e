//! The policies of a project: read at the start, and again when their files change, whole or not at
//! all.

use crate::secrets::vault::System;
use identity::Identity;
use kernel::definition::plan::mistake::{CheckResult, Mistake};
use policy::decide::Policies;
use policy::records::check_records;
use policy::{CedarPolicy, Parts};
use project::folder::Project;
use project::policies::{POLICIES_FOLDER, PolicyFiles};
use query::types::RealmTypes;
use std::sync::Arc;
use tools::BuiltInSettings;
use upstreams::{Document, Remote, RemoteParts, UpstreamConfig, UpstreamKind};

/// The policies that a project begins with.
pub(super) struct FilePolicies {
    policies: Policies,
    builtin: bool,
}

impl FilePolicies {
    /// Those of this project; none where it is not a folder, which could get some later.
    pub(super) fn of(project: &Project) -> Result<Option<Self>, Vec<Mistake>> {
        let files = project.policies.as_ref();
        if project.folder.as_os_str().is_empty() && files.is_none() {
            return Ok(None);
        }
        // What is wrong with the types themselves is told with them.
        let types = project.types().map(|(types, _)| types.known()).ok();
        let fits = PolicyContext { built_in: project.built_in(), types };
        let (policies, warnings) = read(files, &fits)?;
        for warning in warnings {
            tracing::warn!("{warning}");
        }
        Ok(Some(Self { policies, builtin: project.config.policy.builtin }))
    }

    /// Decides by them, and by the roles that are known here.
    pub(super) fn opened(self, identity: &Arc<Identity>, system: &System) -> Arc<CedarPolicy> {
        let Self { policies, builtin } = self;
        let identity = identity.clone();
        let directory = Box::new(move || identity.directory());
        let clock = system.clock.clone();
        Arc::new(CedarPolicy::new(Parts { directory, clock, builtin }, policies))
    }
}

/// What policies must fit.
#[derive(Debug, Clone, Default)]
pub(crate) struct PolicyContext {
    pub(crate) built_in: BuiltInSettings,
    /// The types of records; none where they cannot be read.
    pub(crate) types: Option<RealmTypes>,
}

/// The policies of these files, with warnings; no policies where there are no files. One that does
/// not fit a built-in tool would deny every call of it, or permit none, so it is a mistake, and so
/// is one that does not fit the types of records. Tools of other servers are not known here, and
/// may change.
pub(crate) fn read(files: Option<&PolicyFiles>, fits: &PolicyContext) -> CheckResult<Policies> {
    let (policies, mut warnings) = Policies::read(files.into_iter().flat_map(PolicyFiles::texts))?;
    let tools = tools::builtin(fits.built_in.clone());
    let mut wrong = policies.misfits(tools.iter().map(|tool| &**tool.spec()));
    let of_records = fits.types.iter().flat_map(|types| check_records(&policies, types));
    for mistake in of_records {
        if mistake.is_error() { wrong.push(mistake) } else { warnings.push(mistake) }
    }
    if wrong.is_empty() { Ok((policies, warnings)) } else { Err(wrong) }
}

/// The mistakes of policies that do not fit the tools of OpenAPI documents which are files: those
/// tools are known before anything is connected to. A document that cannot be read has none here.
pub async fn unfit_documents(
    policies: &Policies,
    configs: &[UpstreamConfig],
    parts: RemoteParts,
) -> Vec<Mistake> {
    let is_local = |config: &&UpstreamConfig| {
        matches!(&config.kind, UpstreamKind::Rest(rest)
            if matches!(rest.document, Document::File(_)))
    };
    let local: Vec<UpstreamConfig> = configs.iter().filter(is_local).cloned().collect();
    if policies.is_empty() || local.is_empty() {
        return Vec::new();
    }
    let remote = Remote::start(local, parts);
    let mut found = Vec::new();
    for upstream in remote.upstreams() {
        if upstream.check().await.is_ok() {
            let tools = upstream.tools();
            found.extend(policies.misfits(tools.iter().map(|tool| &**tool.spec())));
        }
    }
    remote.stop().await;
    found
}

/// The policies that files hold that changed: none where the folder is gone or empty, since nothing
/// that was forbidden may become allowed because someone moves or copies files, and none where only
/// the tests beside them changed.
pub(crate) fn read_again(
    before: Option<&PolicyFiles>,
    now: Option<&PolicyFiles>,
    fits: &PolicyContext,
) -> Result<(Option<Policies>, Vec<Mistake>), Vec<Mistake>> {
    match (before, now) {
        (Some(_), None) => Ok((None, vec![kept("the folder is gone: its policies still hold")])),
        (Some(before), Some(now)) if has_none(now) && !has_none(before) => {
            Ok((None, vec![kept("no policies are left: those that were in force still hold")]))
        }
        (Some(before), Some(now)) if before.policies == now.policies => Ok((None, Vec::new())),
        (None, None) => Ok((None, Vec::new())),
        (_, now) => read(now, fits).map(|(policies, warnings)| (Some(policies), warnings)),
    }
}

/// Whether nothing is written in any file.
pub(crate) fn has_none(files: &PolicyFiles) -> bool {
    files.policies.iter().all(|file| file.text.trim().is_empty())
}

fn kept(why: &str) -> Mistake {
    let kept = Mistake::warning(why)
        .hint("bring them back, or write a comment into one of the files if none should hold");
    Mistake { file: Some(POLICIES_FOLDER.to_owned()), ..kept }
}

#[cfg(test)]
mod tests {
    use super::*;
    use project::policies::PolicyFile;

    /// What files that changed hold, beside the tools of the demo.
    fn read_again(
        before: Option<&PolicyFiles>,
        now: Option<&PolicyFiles>,
    ) -> Result<(Option<Policies>, Vec<Mistake>), Vec<Mistake>> {
        let built_in = BuiltInSettings { demo: true, ..BuiltInSettings::default() };
        super::read_again(before, now, &PolicyContext { built_in, types: None })
    }

    #[test]
    fn a_policy_that_does_not_fit_a_built_in_tool_is_a_mistake() {
        let policy = |condition: &str| {
            files(&format!(
                "forbid(principal, action == Action::\"call:math::add\", resource)\n\
                 when {{ {condition} }};"
            ))
        };
        let right = policy("context.arguments.a.greaterThan(decimal(\"500.0\"))");
        let wrong = policy("context.arguments.a > 500");
        let (read, _) = read_again(None, Some(&right)).unwrap();
        assert_eq!(read.map(|read| read.len()), Some(1));
        let mistakes = read_again(Some(&right), Some(&wrong)).unwrap_err();
        let told = mistakes[0].to_string();
        assert!(told.starts_with("policies/a.cedar:2:") && told.contains("greaterThan"), "{told}");
    }

    fn files(text: &str) -> PolicyFiles {
        let file = "policies/a.cedar".to_owned();
        let text = text.to_owned();
        PolicyFiles { policies: vec![PolicyFile { file, text }], tests: None }
    }

    #[test]
    fn changed_policies_are_read_whole_or_not_at_all() {
        let good = files("permit(principal, action, resource);");
        let bad = files("allow all;");
        let (read, warnings) = read_again(Some(&files("")), Some(&good)).unwrap();
        assert_eq!((read.map(|read| read.len()), warnings.len()), (Some(1), 0));
        let mistakes = read_again(Some(&good), Some(&bad)).unwrap_err();
        let told = mistakes[0].to_string();
        assert!(told.starts_with("policies/a.cedar:1:") && told.contains("error:"), "{told}");
    }

    #[test]
    fn a_folder_that_goes_away_leaves_what_was_forbidden() {
        let before = files("forbid(principal, action, resource);");
        let (read, warnings) = read_again(Some(&before), None).unwrap();
        assert!(read.is_none() && warnings.len() == 1 && !warnings[0].is_error());
        let (same, _) = read_again(Some(&before), Some(&before.clone())).unwrap();
        assert!(same.is_none(), "nothing changed");
        let file = "policies/tests.yaml".to_owned();
        let text = "cases: []".to_owned();
        let tested = PolicyFiles { tests: Some(PolicyFile { file, text }), ..before.clone() };
        let (same, _) = read_again(Some(&before), Some(&tested)).unwrap();
        assert!(same.is_none(), "tests decide nothing");
        let (first, _) = read_again(None, Some(&before)).unwrap();
        assert_eq!(first.map(|read| read.len()), Some(1));
    }

    #[test]
    fn a_folder_that_is_emptied_leaves_what_was_forbidden_until_a_comment_says_that_none_hold() {
        let before = files("forbid(principal, action, resource);");
        let emptied = PolicyFiles { policies: Vec::new(), tests: None };
        for now in [&emptied, &files(""), &files(" \n")] {
            let (read, warnings) = read_again(Some(&before), Some(now)).unwrap();
            assert!(read.is_none(), "{now:?}");
            let told: Vec<String> = warnings.iter().map(ToString::to_string).collect();
            assert!(told.len() == 1 && told[0].contains("no policies are left"), "{told:?}");
            assert!(!warnings[0].is_error(), "{told:?}");
        }
        let (read, warnings) = read_again(Some(&before), Some(&files("// none"))).unwrap();
        assert_eq!((read.map(|read| read.len()), warnings.len()), (Some(0), 0));
        let (first, warnings) = read_again(Some(&emptied), Some(&before)).unwrap();
        assert_eq!((first.map(|read| read.len()), warnings.len()), (Some(1), 0));
    }
}
