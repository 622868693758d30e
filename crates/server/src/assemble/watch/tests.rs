//! What a poll of a project notices, and when it acts upon it.

use super::file_group::NAMES_MAX;
use super::snapshot::FRESH_MS;
use super::*;
use kernel::contracts::PageRequest;
use kernel::contracts::identity::audit::AuditFilter;
use kernel::identity::audit::ChainName;
use kernel::tool::call::Caller;
use project::realm::local_caller;
use serde_json::json;
use std::fs;
use std::time::UNIX_EPOCH;

/// Long after every file of a test was written.
const LATER: Millis = Millis(i64::MAX);

/// The moment in which a file was written.
fn written(path: &Path) -> Millis {
    let time = fs::metadata(path).unwrap().modified().unwrap();
    let since = time.duration_since(UNIX_EPOCH).unwrap();
    Millis(i64::try_from(since.as_millis()).unwrap())
}

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn gathered(folder: &Path) -> BTreeSet<PathBuf> {
    let mut paths = BTreeSet::new();
    gather(folder, DEPTH_MAX, &mut paths);
    paths
}

fn snapshot(folder: &Path, before: &FileSnapshot, now: Millis) -> FileSnapshot {
    FileSnapshot::at(&gathered(folder), before, now)
}

#[test]
fn files_are_known_by_name_and_content() {
    let place = folder(&[("a/one.yaml", "1"), ("a/two.json", "2"), ("a/.hidden.yaml", "h")]);
    fs::write(place.path().join("a/notes.md"), "no").unwrap();
    let none = FileSnapshot::default();
    let first = snapshot(place.path(), &none, LATER);
    let one = place.path().join("a/one.yaml");
    let names = |now: &FileSnapshot, before: &FileSnapshot| now.names_beside(before, place.path());
    assert_eq!(names(&first, &none), ["a/one.yaml", "a/two.json"]);

    // Written again with the same text: nothing changed.
    fs::write(&one, "1").unwrap();
    let touched = snapshot(place.path(), &first, written(&one));
    assert!(touched.same(&first));
    assert_eq!(names(&touched, &first), Vec::<String>::new());

    fs::write(&one, "9").unwrap();
    fs::remove_file(place.path().join("a/two.json")).unwrap();
    fs::write(place.path().join("a/three.yml"), "3").unwrap();
    let changed = snapshot(place.path(), &touched, written(&one));
    assert!(!changed.same(&touched));
    assert_eq!(names(&changed, &touched), ["a/one.yaml", "a/three.yml", "a/two.json"]);
}

#[test]
fn a_file_that_changed_lately_is_read_whatever_its_time_says() {
    let place = folder(&[("a/one.yaml", "1")]);
    let path = place.path().join("a/one.yaml");
    let first = snapshot(place.path(), &FileSnapshot::default(), LATER);
    let time = fs::metadata(&path).unwrap().modified().unwrap();
    // Another text of the same length, at the same time.
    fs::write(&path, "2").unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    assert!(snapshot(place.path(), &first, LATER).same(&first), "its time is believed later");
    assert!(!snapshot(place.path(), &first, written(&path)).same(&first), "and not now");
    let long_before = Millis(written(&path).0 - 2 * FRESH_MS);
    assert!(snapshot(place.path(), &first, long_before).same(&first), "nor read again and again");
}

#[cfg(unix)]
#[test]
fn unreadable_files_are_seen_to_come_and_to_go() {
    let place = folder(&[("plans/a/one.yaml", "1")]);
    let plans = place.path().join("plans");
    let lost = place.path().join("plans/a/lost.yaml");
    let first = snapshot(&plans, &FileSnapshot::default(), LATER);
    std::os::unix::fs::symlink("nowhere", &lost).unwrap();
    let with = snapshot(&plans, &first, LATER);
    assert_eq!(with.names_beside(&first, &plans), ["a/lost.yaml"]);
    fs::write(plans.join("a/nowhere"), "2").unwrap();
    let read = snapshot(&plans, &with, LATER);
    assert_eq!(read.names_beside(&with, &plans), ["a/lost.yaml"], "the link leads somewhere now");
    fs::remove_file(&lost).unwrap();
    assert!(snapshot(&plans, &read, LATER).same(&first));
    // So is a whole folder.
    let nowhere = snapshot(&plans.join("b"), &FileSnapshot::default(), LATER);
    assert_eq!(nowhere.names_beside(&FileSnapshot::default(), &plans), ["b"]);
}

#[test]
fn a_file_is_named_as_the_project_knows_it() {
    let folder = Path::new("/project");
    let unreadable = |path: &str| {
        let why = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        let error = ProjectError::Unreadable { path: PathBuf::from(path), why };
        mistakes_of(error, folder)[0].to_string()
    };
    let told = unreadable("/project/plans/a/one.yaml");
    assert!(told.starts_with("plans/a/one.yaml: error: it cannot be read: "), "{told}");
    assert!(unreadable("/project").starts_with("/project: error: "));
}

#[test]
fn settings_and_rights_are_told_apart() {
    let place = folder(&[
        ("waypost.toml", "x"),
        ("plans/a/one.yaml", "1"),
        ("policies/a.cedar", "2"),
        ("principals.yaml", "3"),
    ]);
    let mut paths = gathered(place.path());
    paths.extend(SETTINGS.iter().map(|file| place.path().join(file)));
    let snapshot = FileSnapshot::at(&paths, &FileSnapshot::default(), LATER);
    let (settings, others) = snapshot.split(|path| is_settings(path, place.path()));
    let (rights, files) = others.split(|path| is_rights(path, place.path()));
    let none = FileSnapshot::default();
    let expected = [".mcp.json", "application.properties", "waypost.toml"];
    assert_eq!(settings.names_beside(&none, place.path()), expected);
    let expected = ["policies/a.cedar", "principals.yaml"];
    assert_eq!(rights.names_beside(&none, place.path()), expected);
    assert_eq!(files.names_beside(&none, place.path()), ["plans/a/one.yaml"]);
}

#[test]
fn many_names_are_cut_short() {
    let names: Vec<String> = (0..NAMES_MAX + 2).map(|number| number.to_string()).collect();
    assert_eq!(listed(&names[..2]), "0, 1");
    assert!(listed(&names).ends_with(", 7 and 2 more"), "{}", listed(&names));
    assert_eq!(listed(&[]), "the project's files");
}

/// What is wrong with what was not taken.
fn refused(outcome: Outcome) -> Vec<(String, Vec<String>)> {
    let told = |mistakes: Vec<Mistake>| -> Vec<String> {
        mistakes.iter().map(Mistake::to_string).collect()
    };
    let refused = outcome.refused.into_iter();
    refused.map(|(portion, mistakes)| (portion.to_string(), told(mistakes))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn principals_are_taken_as_a_whole_and_kept_where_the_file_is_wrong() {
    let of = |role: &str| format!("principals:\n  ann:\n    realms: {{default: [{role}]}}\n");
    let place = folder(&[("principals.yaml", &of("member"))]);
    let path = place.path().join("principals.yaml");
    let project = Project::load(place.path(), Config::default()).unwrap();
    let source = Source {
        folder: place.path().to_owned(),
        config: Config::default(),
        pipelines: Vec::new(),
        variables: Arc::new(|_: &str| None),
    };
    let data = tempfile::tempdir().unwrap();
    let assembled = crate::assemble::assembled_in(data.path()).await;
    let engine = assembled.engine.clone();
    let identity = assembled.identity();
    let mut reload = RightsReload::new(engine, identity.clone(), None, Rights::of(&project));
    identity.take_principals(project.principals.unwrap());
    let roles = || {
        let roles = identity.directory().roles(&"default".into(), "ann");
        roles.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(roles(), "member");

    fs::write(&path, of("operator")).unwrap();
    let outcome = reload.take(source.read_rights());
    assert_eq!((outcome.taken, &*outcome.changed), (true, &["principals.yaml".to_owned()][..]));
    assert!(outcome.warnings.is_empty() && outcome.refused.is_empty(), "{outcome:?}");
    assert_eq!(roles(), "operator");
    reload.record().await;
    let page = PageRequest { cursor: None, limit: 1 };
    let every = AuditFilter::default();
    let audits = assembled.engine.audits();
    let server = ChainName::server();
    let found = audits.entries(&local_caller(), &server, &every, &page).await.unwrap();
    let entry = &found.items[0].entry;
    let told = json!({"changed": ["ann"]});
    assert_eq!((&*entry.act, entry.detail.as_ref()), ("principals.reload", Some(&told)));

    fs::write(&path, of("operatr")).unwrap();
    let wrong = refused(reload.take(source.read_rights()));
    let told = "principals.yaml:3:24: error: there is no role `operatr`";
    assert!(wrong[0].0 == "principals" && wrong[0].1[0].starts_with(told), "{wrong:?}");
    fs::remove_file(&path).unwrap();
    let wrong = refused(reload.take(source.read_rights()));
    let told = "principals.yaml: error: the file is gone";
    assert!(wrong[0].1[0].starts_with(told), "{wrong:?}");
    assert_eq!(roles(), "operator", "what was served stays");
    assembled.stopper().stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_taken_for_every_realm_and_what_is_stored_there_stays() {
    let plan = |id: &str| {
        format!("planId: {id}\nsteps: [{{id: end, type: final_response, message: x}}]\n")
    };
    let place = folder(&[("plans/a/one.yaml", &plan("a/one"))]);
    let config = Config::parse("waypost.toml", "[realms.acme]\nmax_find_limit = 9\n").unwrap();
    let source = Source {
        folder: place.path().to_owned(),
        config: config.clone(),
        pipelines: Vec::new(),
        variables: Arc::new(|_: &str| None),
    };
    let data = tempfile::tempdir().unwrap();
    let assembled = crate::assemble::assembled_with(data.path(), config, None).await;
    let engine = assembled.engine.clone();
    let keeper = &assembled.server.realms;
    let mut reload = Reload::new(engine, keeper, ProjectSnapshot::default());
    let catalog = assembled.engine.catalog();
    let ids = |realm: &str| -> Vec<String> {
        let plans = catalog.plans(&Caller::new(realm, "ann"));
        plans.iter().map(|plan| plan.id.to_string()).collect()
    };
    let step = json!({"id": "end", "type": "final_response", "message": "stored"});
    let stored = json!({"planId": "a/stored", "steps": [step]});
    catalog.register_plan(&Caller::new("acme", "ann"), stored, None).await.unwrap();

    let (parts, unread) = source.read().unwrap();
    assert!(reload.take(parts, unread).taken);
    assert_eq!(ids("default"), ["a/one"]);
    assert_eq!(ids("acme"), ["a/one", "a/stored"]);
    assert!(ids("shop").is_empty(), "there is no such realm");
    fs::write(place.path().join("plans/a/one.yaml"), plan("a/two")).unwrap();
    let (parts, unread) = source.read().unwrap();
    assert!(reload.take(parts, unread).taken);
    assert_eq!(ids("default"), ["a/two"]);
    assert_eq!(ids("acme"), ["a/stored", "a/two"]);
    assembled.stopper().stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mistake_of_one_realm_keeps_nothing_from_the_others() {
    let plan = |id: &str| {
        format!("planId: {id}\nsteps: [{{id: end, type: final_response, message: x}}]\n")
    };
    let broken = |id: &str| plan(id).replace("final_response", "final_respons");
    let place = folder(&[]);
    let says = |file: &str, text: &str| {
        let path = place.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let settings = "[realms.acme]\nmax_find_limit = 9\n[realms.beta]\nmax_find_limit = 9\n";
    let config = Config::parse("waypost.toml", settings).unwrap();
    let source = Source {
        folder: place.path().to_owned(),
        config: config.clone(),
        pipelines: Vec::new(),
        variables: Arc::new(|_: &str| None),
    };
    let data = tempfile::tempdir().unwrap();
    let assembled = crate::assemble::assembled_with(data.path(), config, None).await;
    let engine = assembled.engine.clone();
    let keeper = &assembled.server.realms;
    let mut reload = Reload::new(engine, keeper, ProjectSnapshot::default());
    let mut take = || {
        let (parts, unread) = source.read().unwrap();
        let outcome = reload.take(parts, unread);
        (outcome.taken, refused(outcome))
    };
    let catalog = assembled.engine.catalog();
    let ids = |realm: &str| -> String {
        let plans = catalog.plans(&Caller::new(realm, "ann"));
        plans.iter().map(|plan| plan.id.to_string()).collect::<Vec<_>>().join(" ")
    };
    let all = || [ids("default"), ids("acme"), ids("beta")];
    says("plans/a/one.yaml", &plan("a/one"));
    says("realms/acme/plans/a/own.yaml", &plan("a/acme"));
    says("realms/beta/plans/a/own.yaml", &plan("a/beta"));
    assert_eq!(take(), (true, Vec::new()));
    assert_eq!(all(), ["a/one", "a/acme a/one", "a/beta a/one"]);

    says("plans/a/one.yaml", &plan("a/two"));
    says("realms/acme/plans/a/own.yaml", &broken("a/acme"));
    says("realms/beta/plans/a/own.yaml", &plan("a/other"));
    let (taken, wrong) = take();
    assert!(taken && wrong.len() == 1 && wrong[0].0 == "realms/acme", "{wrong:?}");
    assert!(wrong[0].1[0].starts_with("realms/acme/plans/a/own.yaml:"), "{wrong:?}");
    assert_eq!(all(), ["a/two", "a/acme a/one", "a/other a/two"]);
    let (taken, wrong) = take();
    assert!(!taken && wrong.len() == 1, "there is nothing to take: {wrong:?}");

    // It has what all have once its own files are as they were.
    says("realms/acme/plans/a/own.yaml", &plan("a/acme"));
    assert_eq!(take(), (true, Vec::new()));
    assert_eq!(all(), ["a/two", "a/acme a/two", "a/other a/two"]);

    // The same holds where they cannot be read, and the other way round nothing is taken.
    says("realms/acme/lost.yaml", "x");
    says("realms/beta/plans/a/own.yaml", &plan("a/last"));
    let (taken, wrong) = take();
    assert!(taken && wrong.len() == 1 && wrong[0].0 == "realms/acme", "{wrong:?}");
    assert_eq!(all(), ["a/two", "a/acme a/two", "a/last a/two"]);
    says("plans/a/one.yaml", &broken("a/one"));
    says("realms/beta/plans/a/own.yaml", &plan("a/beta"));
    let (taken, wrong) = take();
    let portions: Vec<&str> = wrong.iter().map(|(portion, _)| portion.as_str()).collect();
    assert!(!taken && portions == ["files", "realms/acme"], "{wrong:?}");
    assert_eq!(all(), ["a/two", "a/acme a/two", "a/last a/two"]);
    assembled.stopper().stop().await;
}
