//! Folders as people write them, and what is found in them.

use super::*;
use crate::layer::Layer;
use kernel::identity::realm::{RealmSettings, Realms};
use upstreams::UpstreamKind;

fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn load(folder: &Path) -> Result<Project, ProjectError> {
    Project::load(folder, Config::default())
}

#[test]
fn plans_are_found_by_domain_and_named_after_their_file() {
    let folder = project(&[
        ("waypost.toml", ""),
        ("plans/b/two.plan.json", "{}"),
        ("plans/b/one.yaml", "a: 1"),
        ("plans/a/x.y.yml", "b: 2"),
        ("plans/a/.hidden.yaml", "no"),
        ("plans/a/README.md", "no"),
    ]);
    let project = load(folder.path()).unwrap();
    let found: Vec<(&str, &str)> =
        project.plans.iter().map(|plan| (plan.file.as_str(), plan.default_id.as_str())).collect();
    assert_eq!(
        found,
        [
            ("plans/a/x.y.yml", "a/x.y"),
            ("plans/b/one.yaml", "b/one"),
            ("plans/b/two.plan.json", "b/two"),
        ]
    );
}

#[test]
fn an_empty_folder_is_a_project_and_no_folder_is_none() {
    let folder = project(&[]);
    assert!(load(folder.path()).unwrap().plans.is_empty());
    let missing = load(&folder.path().join("nowhere")).unwrap_err();
    assert!(missing.to_string().contains("there is no such folder"), "{missing}");
}

#[test]
fn principals_are_read_as_a_whole_or_not_at_all() {
    assert_eq!(load(project(&[]).path()).unwrap().principals, None);
    let ann = "principals:\n  ann:\n    realms: {default: [auditor]}\n";
    let folder = project(&[("principals.yaml", ann)]);
    let read = load(folder.path()).unwrap();
    let principals = read.principals.unwrap();
    assert_eq!((principals.len(), &*principals[0].id), (1, "ann"));
    let warning = read.config.warnings[0].to_string();
    assert!(warning.starts_with("principals.yaml:3:24: warning: `auditor`"), "{warning}");

    let wrong = format!("{ann}  bob:\n    identities: [{{issuer: corp, sub: x}}]\n");
    let folder = project(&[("principals.yaml", &wrong)]);
    let told = "principals.yaml:5:18: error: there is no issuer `corp`";
    let error = load(folder.path()).unwrap_err().to_string();
    assert!(error.contains(told), "{error}");
    let (partly, mistakes) = Project::load_partly(folder.path(), Config::default());
    assert_eq!(partly.principals, None);
    assert!(mistakes.iter().any(|mistake| mistake.to_string().starts_with(told)), "{mistakes:?}");
    let issuer = "[auth.issuers.corp]\nurl = \"https://a.test\"\naudience = \"wp\"\n\
                  realms = [\"default\"]\n";
    let config = Config::parse("waypost.toml", issuer).unwrap();
    assert_eq!(Project::load(folder.path(), config).unwrap().principals.unwrap().len(), 2);
}

#[test]
fn a_file_that_is_no_utf8_is_reported_by_name() {
    let folder = project(&[("plans/a/one.yaml", "a: 1")]);
    fs::write(folder.path().join("plans/a/one.yaml"), [0xff, 0xfe, 0x00]).unwrap();
    let error = load(folder.path()).unwrap_err().to_string();
    let told = "plans/a/one.yaml: error: the plan is no text: it is not in UTF-8; hint: ";
    assert!(error.starts_with(told), "{error}");
    let folder = project(&[]);
    fs::write(folder.path().join(".mcp.json"), [0xff, 0xfe, 0x7b, 0x00]).unwrap();
    let error = load(folder.path()).unwrap_err().to_string();
    assert_eq!(
        error,
        ".mcp.json: error: it is no text: it is not in UTF-8; hint: save it in UTF-8"
    );
}

#[test]
fn a_misplaced_plan_is_reported() {
    for name in ["plans/lost.yaml", "plans/a/b/lost.json"] {
        let folder = project(&[(name, "x: 1")]);
        let error = load(folder.path()).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("hint: "), "{error}");
    }
}

#[test]
fn the_settings_say_how_large_a_plan_may_be() {
    let folder = project(&[("plans/a/big.yaml", "a: 12")]);
    let config = Config::parse(CONFIG_FILE, "[limits]\nplan_bytes_max = 3\n").unwrap();
    let error = Project::load(folder.path(), config).unwrap_err().to_string();
    assert!(error.contains("plans/a/big.yaml") && error.contains("5 bytes"), "{error}");
}

#[test]
fn agents_are_found_and_a_misplaced_one_is_reported() {
    let folder = project(&[
        ("agents/b.yaml", "refName: b"),
        ("agents/a.json", "{}"),
        ("agents/README.md", "no"),
        ("agents/notes/x.md", "no"),
    ]);
    let agents = load(folder.path()).unwrap().agents;
    let files: Vec<&str> = agents.iter().map(|agent| agent.file.as_str()).collect();
    assert_eq!(files, ["agents/a.json", "agents/b.yaml"]);
    let folder = project(&[("agents/team/a.yaml", "x")]);
    let error = load(folder.path()).unwrap_err().to_string();
    assert!(error.contains("agents/team/a.yaml") && error.contains("move it"), "{error}");
}

#[test]
fn models_are_opened_with_what_the_folder_holds() {
    let folder = project(&[("rules/a.yaml", "version: 1")]);
    let config = Config::parse(CONFIG_FILE, "[models.a]\nrules = \"rules/a.yaml\"\n").unwrap();
    let project = Project::load(folder.path(), config).unwrap();
    let models = project.models(&|_| None).unwrap();
    assert_eq!(models.len(), 1);
    assert_eq!(models[0].origin, "waypost.toml:1");
}

#[test]
fn servers_are_found_in_both_files() {
    let json = r#"{"mcpServers": {"git": {"command": "git-mcp"}}}"#;
    let folder = project(&[(".mcp.json", json)]);
    let config = Config::parse(CONFIG_FILE, "[mcp.servers.web]\nurl = \"http://a.example\"\n");
    let project = Project::load(folder.path(), config.unwrap()).unwrap();
    let upstreams = project.upstreams(&|_| None).unwrap();
    let names: Vec<&str> = upstreams.entries().iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["git", "web"]);
    let folder = self::project(&[(".mcp.json", "{\n")]);
    let error = load(folder.path()).unwrap_err().to_string();
    assert!(error.starts_with(".mcp.json:"), "{error}");
}

#[test]
fn the_settings_of_the_demo_start_our_own_program() {
    let (file, text) = DEMO_SETTINGS;
    let config = Config::parse(file, text).unwrap();
    let project = Project::demo_with(config);
    let variables = |name: &str| match name {
        "WAYPOST_BIN" => Some("/bin/waypost".to_owned()),
        "WAYPOST_DATA" => Some("/data".to_owned()),
        _ => None,
    };
    let configs = project.upstreams(&variables).unwrap().configs(&variables).unwrap();
    let [calendar] = configs.as_slice() else { panic!("{configs:?}") };
    assert_eq!((calendar.name.as_str(), calendar.prefix.as_str()), ("calendar", ""));
    assert!(calendar.trusted && calendar.journal);
    let UpstreamKind::Stdio { command, args, .. } = &calendar.kind else { panic!() };
    assert_eq!(command, "/bin/waypost");
    assert_eq!(args.join(" "), "example calendar-server --stdio --data /data/calendar");
}

#[test]
fn the_proxy_of_the_demo_keeps_its_files_in_the_data_folder() {
    let layers = [DEMO_SETTINGS, DEMO_PROXY].map(|(file, text)| Layer::file(file, text));
    let project = Project::demo_with(Config::layered(&layers).unwrap());
    assert_eq!(project.config.a2a.proxy, Some(true));
    let variables = |name: &str| match name {
        "WAYPOST_BIN" => Some("/bin/waypost".to_owned()),
        "WAYPOST_DATA" => Some("/data".to_owned()),
        _ => None,
    };
    let configs = project.upstreams(&variables).unwrap().configs(&variables).unwrap();
    let proxied = configs.iter().find(|config| config.name == DEMO_PROXY_SERVER).unwrap();
    let UpstreamKind::Stdio { command, args, env, .. } = &proxied.kind else { panic!() };
    assert_eq!(command, "/bin/waypost");
    assert_eq!(args.join(" "), "example filesystem-server --stdio --data /data/files");
    let env: Vec<(&str, &str)> =
        env.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
    assert_eq!(env, [("TMPDIR", "/data")]);
}

#[test]
fn the_demo_is_a_project_folder_too() {
    let folder = project(DEMO_PLANS);
    let loaded = load(folder.path()).unwrap().plans;
    let embedded = Project::demo().plans;
    let names = |plans: &[PlanFile]| -> Vec<(String, PlanId)> {
        plans.iter().map(|plan| (plan.file.clone(), plan.default_id.clone())).collect()
    };
    assert_eq!(names(&loaded), names(&embedded));
    // Whatever the settings say, its plans find their tools.
    assert!(Project::demo_with(Config::default()).built_in().demo);
    assert!(!load(folder.path()).unwrap().built_in().demo);
}

#[test]
fn pipelines_are_found_and_named_after_their_file() {
    let folder = project(&[
        ("pipelines/b.yaml", "description: b"),
        ("pipelines/trade.failures.yml", "description: a"),
        ("pipelines/README.md", "no"),
    ]);
    let mut loaded = load(folder.path()).unwrap();
    let names = |project: &Project| -> Vec<(String, String)> {
        let pair = |file: &PipelineFile| (file.file.clone(), file.default_name.to_string());
        project.pipelines.iter().map(pair).collect()
    };
    let pair = |file: &str, name: &str| (file.to_owned(), name.to_owned());
    let b = pair("pipelines/b.yaml", "b");
    let found = [b, pair("pipelines/trade.failures.yml", "trade.failures")];
    assert_eq!(names(&loaded), found);

    // One that is named beside them is added once.
    loaded.add_pipeline(&folder.path().join("pipelines/b.yaml")).unwrap();
    assert_eq!(names(&loaded), found);
    let other = self::project(&[("elsewhere/c.json", "{}")]);
    let path = other.path().join("elsewhere/c.json");
    loaded.add_pipeline(&path).unwrap();
    assert_eq!(names(&loaded)[2], pair(&path.display().to_string(), "c"));
    let missing = loaded.add_pipeline(&other.path().join("d.yaml")).unwrap_err().to_string();
    assert!(missing.contains("d.yaml") && missing.starts_with("cannot read"), "{missing}");
}

#[test]
fn a_misplaced_pipeline_is_reported() {
    let folder = project(&[("pipelines/team/a.yaml", "x")]);
    let error = load(folder.path()).unwrap_err().to_string();
    assert!(error.contains("pipelines/team/a.yaml") && error.contains("move it"), "{error}");
}

#[test]
fn the_demo_has_the_pipeline_of_its_example() {
    let project = Project::demo_with(Config::default());
    let [pipeline] = project.pipelines.as_slice() else { panic!("{:?}", project.pipelines) };
    assert_eq!(pipeline.default_name.as_str(), "trade-failures");
    assert_eq!(pipeline.file, "pipelines/trade-failures.yaml");
    for (file, _) in DEMO_PIPELINE_PLANS {
        assert!(project.plans.iter().any(|plan| plan.file == *file), "no {file}");
    }
}

#[test]
fn files_of_a_realm_are_its_own_and_replace_shared_ones() {
    let folder = project(&[
        ("plans/a/one.yaml", "planId: one"),
        ("plans/a/two.yaml", "b: 2"),
        ("agents/helper.yaml", "refName: helper"),
        ("realms/acme/plans/a/two.plan.yaml", "c: 3"),
        ("realms/acme/plans/b/mine.yaml", "planId: one"),
        ("realms/acme/agents/other.yaml", "refName: helper"),
        ("realms/acme/pipelines/desk.yaml", "d: 4"),
        ("realms/shop/README.md", "nothing yet"),
    ]);
    let loaded = load(folder.path()).unwrap();
    let names: Vec<&str> = loaded.of_realms.keys().map(RealmId::as_str).collect();
    assert_eq!(names, ["acme", "shop"]);
    let files = loaded.realm_files();
    let plans = |realm: &str| -> Vec<(String, String)> {
        let plans = files.of(&realm.into()).plans.into_iter();
        plans.map(|plan| (plan.file, plan.default_id.to_string())).collect()
    };
    let named = |found: &[(&str, &str)]| -> Vec<(String, String)> {
        found.iter().map(|(file, id)| ((*file).to_owned(), (*id).to_owned())).collect()
    };
    let shared = named(&[("plans/a/one.yaml", "a/one"), ("plans/a/two.yaml", "a/two")]);
    assert_eq!(plans("shop"), shared);
    assert_eq!(plans("default"), shared);
    let own = named(&[
        ("realms/acme/plans/a/two.plan.yaml", "a/two"),
        ("realms/acme/plans/b/mine.yaml", "b/mine"),
    ]);
    assert_eq!(plans("acme"), own, "the same ids");
    let agents = files.of(&"acme".into()).agents;
    assert_eq!(agents.len(), 1);
    assert!(files.is_own(&"acme".into(), Some(&agents[0].file)));
    assert!(!files.is_own(&"shop".into(), Some(&agents[0].file)));
    let acme = Realms([("acme".into(), RealmSettings::default())].into());
    let told = files.strangers(&acme);
    assert_eq!(told.len(), 1);
    let told = told[0].to_string();
    assert!(told.starts_with("realms/shop: warning: there is no realm `shop`"), "{told}");
}

#[test]
fn unknown_files_in_realm_folders_are_reported() {
    for (file, place) in [
        ("realms/lost.yaml", "realms/lost.yaml: error: the file is in no realm's folder"),
        ("realms/Acme/plans/a/one.yaml", "realms/Acme: error: `Acme` is not the name of a realm"),
        ("realms/acme/rules/one.yaml", "realms/acme/rules: error: nothing is read here"),
        ("realms/acme/one.yaml", "realms/acme/one.yaml: error: nothing is read here"),
        ("realms/acme/plans/one.yaml", "realms/acme/plans/one.yaml: error: the plan is not in a"),
    ] {
        let told = load(project(&[(file, "a: 1")]).path()).unwrap_err().to_string();
        assert!(told.starts_with(place), "{told}");
    }
}

#[test]
fn types_are_named_after_their_files_and_a_realm_has_its_own() {
    let folder = project(&[
        ("entities/Order.yaml", "fields: {}"),
        ("entities/City.json", "{}"),
        ("entities/cities.csv", "no"),
        ("realms/acme/entities/Order.yml", "fields: {}"),
        ("realms/acme/plans/a/x.yaml", "a: 1"),
        ("realms/blue/plans/a/x.yaml", "a: 1"),
    ]);
    assert!(load(folder.path()).is_ok());
    let files = EntityFiles::load(folder.path(), 1024).unwrap();
    let named = |file: &EntityFile| (file.file.clone(), file.name.clone());
    let pair = |file: &str, name: &str| (file.to_owned(), name.to_owned());
    let all: Vec<(String, String)> = files.all.iter().map(named).collect();
    assert_eq!(all, [pair("entities/City.json", "City"), pair("entities/Order.yaml", "Order")]);
    let own = |(realm, files): (&RealmId, &Vec<EntityFile>)| {
        (realm.to_string(), files.iter().map(named).collect::<Vec<_>>())
    };
    let own: Vec<(String, Vec<(String, String)>)> = files.own.iter().map(own).collect();
    assert_eq!(own, [("acme".to_owned(), vec![pair("realms/acme/entities/Order.yml", "Order")])]);
    let lost = project(&[("entities/shop/Order.yaml", "fields: {}")]);
    let error = EntityFiles::load(lost.path(), 1024).unwrap_err().to_string();
    assert_eq!(
        error,
        "entities/shop/Order.yaml: error: the type is in a folder of its own; \
         hint: move it to `entities/`"
    );
    assert_eq!(EntityFiles::load(project(&[]).path(), 1024).unwrap(), EntityFiles::default());
}
