//! The example of typed records as a project, carried inside the binary: `waypost demo records`
//! serves it. The demo has its types, its first records and its agent, too.

use crate::config::Config;
use crate::entities::EntityFile;
use crate::folder::{
    ANALYST, ANALYST_RULES, CONFIG_FILE, DEMO_SEEDS, EntityFiles, Project, demo_entities,
};
use crate::policies::{PolicyFile, PolicyFiles};
use engine::AgentFile;
use kernel::definition::plan::mistake::Mistake;
use kernel::identity::principal::PRINCIPALS_FILE;
use kernel::identity::principal_reader::{KnownNames, read_text};
use std::collections::BTreeMap;

const SETTINGS: &str = include_str!("../../../examples/records/waypost.toml");
const PRINCIPALS: &str = include_str!("../../../examples/records/principals.yaml");
/// By their path in the project.
const POLICIES: [(&str, &str); 2] = [
    ("policies/changes.cedar", include_str!("../../../examples/records/policies/changes.cedar")),
    ("policies/scope.cedar", include_str!("../../../examples/records/policies/scope.cedar")),
];
const TESTS: (&str, &str) =
    ("policies/tests.yaml", include_str!("../../../examples/records/policies/tests.yaml"));
/// The realm that has a type of its own, and that type.
const OUTLET: &str = "outlet";
const RETURN: (&str, &str) = (
    "realms/outlet/entities/Return.yaml",
    include_str!("../../../examples/records/realms/outlet/entities/Return.yaml"),
);

/// The example, or what is wrong with it.
pub fn records_example() -> Result<Project, Vec<Mistake>> {
    let config = Config::parse(CONFIG_FILE, SETTINGS)?;
    let names = KnownNames { issuers: Some(&[]), has_policies: true };
    let (principals, _) = read_text(PRINCIPALS, PRINCIPALS_FILE, names, &config.limits)?;
    let policy = |(file, text): (&str, &str)| PolicyFile { file: file.into(), text: text.into() };
    let policies = PolicyFiles {
        policies: POLICIES.into_iter().map(policy).collect(),
        tests: Some(policy(TESTS)),
    };
    let text = |(file, text): (&str, &str)| (file.to_owned(), text.to_owned());
    let (file, definition) = ANALYST;
    let analyst = AgentFile { file: file.to_owned(), text: definition.to_owned() };
    Ok(Project {
        config,
        agents: vec![analyst],
        entities: entities(),
        principals: Some(principals),
        policies: Some(policies),
        texts: DEMO_SEEDS.iter().copied().chain([ANALYST_RULES]).map(text).collect(),
        ..Project::default()
    })
}

fn entities() -> EntityFiles {
    let (file, text) = RETURN;
    let own =
        EntityFile { file: file.to_owned(), name: "Return".to_owned(), text: text.to_owned() };
    EntityFiles { all: demo_entities(), own: BTreeMap::from([(OUTLET.into(), vec![own])]) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entities::{EntityTypes, read};
    use kernel::limits::Limits;
    use kernel::values::ids::RealmId;
    use std::collections::BTreeSet;
    use std::path::Path;

    const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/records");

    #[test]
    fn the_built_in_example_equals_its_folder() {
        let carried = records_example().unwrap();
        let config = Config::parse(CONFIG_FILE, SETTINGS).unwrap();
        let loaded = Project::load(Path::new(FOLDER), config).unwrap();
        assert_eq!(carried.entities, loaded.entities);
        assert_eq!(carried.policies, loaded.policies);
        assert_eq!(carried.agents, loaded.agents);
        let ids = |project: &Project| -> Vec<String> {
            let principals = project.principals.iter().flatten();
            principals.map(|principal| principal.id.to_string()).collect()
        };
        assert_eq!(ids(&carried), ["ann", "bob", "lea", "olga"]);
        assert_eq!(ids(&loaded), ids(&carried));
        assert!(loaded.config.warnings.is_empty(), "{:?}", loaded.config.warnings);
    }

    /// The types of all realms, and those of the outlet.
    fn types() -> [EntityTypes; 2] {
        let files = entities();
        let limits = Limits::default();
        let (common, _) = read(&files.all, &EntityTypes::default(), &limits).unwrap();
        let (outlet, _) = read(&files.own[&RealmId::from(OUTLET)], &common, &limits).unwrap();
        [common, outlet]
    }

    #[test]
    fn its_types_have_no_mistakes_and_each_seed_is_carried() {
        let [common, outlet] = types();
        let seeds: BTreeSet<&str> = common.seeds.iter().map(|seed| &*seed.path).collect();
        let carried: BTreeSet<&str> = DEMO_SEEDS.iter().map(|(path, _)| *path).collect();
        assert_eq!(seeds, carried);
        assert_eq!((common.types.all().len(), outlet.types.all().len()), (4, 5));
        assert_eq!(outlet.seeds, common.seeds);
    }

    #[test]
    fn it_has_five_hundred_first_records() {
        let rows = |(path, text): &(&str, &str)| {
            let heads = usize::from(path.ends_with(".csv"));
            text.lines().count() - heads
        };
        assert_eq!(DEMO_SEEDS.iter().map(rows).sum::<usize>(), 500);
    }
}
