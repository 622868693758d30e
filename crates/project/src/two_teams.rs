//! The example of two teams as a project, carried inside the binary: `waypost demo realms` serves
//! it.

use crate::config::Config;
use crate::folder::{CONFIG_FILE, Project};
use crate::policies::{PolicyFile, PolicyFiles};
use kernel::definition::plan::mistake::Mistake;
use kernel::identity::principal::PRINCIPALS_FILE;
use kernel::identity::principal_reader::{KnownNames, read_text};

const SETTINGS: &str = include_str!("../../../examples/two-teams/waypost.toml");
const PRINCIPALS: &str = include_str!("../../../examples/two-teams/principals.yaml");
/// By their path in the project.
const POLICIES: [(&str, &str); 2] = [
    ("policies/sums.cedar", include_str!("../../../examples/two-teams/policies/sums.cedar")),
    ("policies/teams.cedar", include_str!("../../../examples/two-teams/policies/teams.cedar")),
];
const TESTS: (&str, &str) =
    ("policies/tests.yaml", include_str!("../../../examples/two-teams/policies/tests.yaml"));

/// The example, or what is wrong with it.
pub fn two_teams() -> Result<Project, Vec<Mistake>> {
    let config = Config::parse(CONFIG_FILE, SETTINGS)?;
    let names = KnownNames { issuers: Some(&[]), has_policies: true };
    let (principals, _) = read_text(PRINCIPALS, PRINCIPALS_FILE, names, &config.limits)?;
    let file = |(file, text): (&str, &str)| PolicyFile { file: file.into(), text: text.into() };
    let policies = PolicyFiles {
        policies: POLICIES.into_iter().map(file).collect(),
        tests: Some(file(TESTS)),
    };
    let principals = Some(principals);
    let policies = Some(policies);
    Ok(Project { config, principals, policies, ..Project::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_built_in_example_equals_its_folder() {
        let carried = two_teams().unwrap();
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/two-teams"));
        let config = Config::parse(CONFIG_FILE, SETTINGS).unwrap();
        let loaded = Project::load(folder, config).unwrap();
        assert_eq!(carried.policies, loaded.policies);
        let ids = |project: &Project| -> Vec<String> {
            let principals = project.principals.iter().flatten();
            principals.map(|principal| principal.id.to_string()).collect()
        };
        assert_eq!(ids(&carried), ["ann", "bob", "cleo"]);
        assert_eq!(ids(&loaded), ids(&carried));
        assert_eq!(loaded.config.realms.len(), 2);
        assert!(loaded.config.warnings.is_empty(), "{:?}", loaded.config.warnings);
    }
}
