//! `waypost agent`: agents of files, and those that are stored on a server.

use crate::process::{Server, waypost, write};
use serde_json::{Value, json};

const HELPER: &str = "\
refName: helper
name: Helper
llmConfigRef: gone
promptSteps:
  - content: |
      It is {{ now }}.
      Be brief.
approve: [\"math::*\"]
";

/// A server of a project without agents, and the folder in which they are written.
fn house() -> (Server, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[("waypost.toml", ""), ("helper.yaml", HELPER)]);
    (Server::of_project(folder.path()), folder)
}

/// A path below the folder, as a command takes it.
fn path(folder: &tempfile::TempDir, name: &str) -> String {
    folder.path().join(name).display().to_string()
}

#[test]
fn an_agent_is_applied_shown_compared_and_removed() {
    let (server, folder) = house();
    let file = path(&folder, "helper.yaml");
    let none = server.run(&["agent", "ls"]).code(0);
    assert_eq!(none.stdout.lines().count(), 1, "{none:#?}");
    let new = server.run(&["agent", "diff", &file]).code(1);
    assert!(new.stdout.starts_with("--- helper (not stored)\n+++ "), "{new:#?}");
    assert!(new.stdout.contains("\n+refName: helper\n"), "{new:#?}");

    let applied = server.run(&["agent", "apply", &file]).code(0);
    assert_eq!(applied.stdout, "created    helper  version 1\n");
    let again = server.run(&["agent", "apply", &file]).code(0);
    assert_eq!(again.stdout, "unchanged  helper  version 1\n");
    server.run(&["agent", "diff", &file]).code(0).says("is as the file says");

    let changed = HELPER.replace("Be brief.", "Be very brief.");
    write(folder.path(), &[("helper.yaml", changed.as_str())]);
    let diff = server.run(&["agent", "diff", &file]).code(1).stdout;
    assert!(diff.starts_with("--- helper (1)\n"), "{diff}");
    let lines: Vec<&str> = diff.lines().map(str::trim_end).collect();
    let gone: Vec<&&str> = lines[2..].iter().filter(|line| line.starts_with('-')).collect();
    assert_eq!(gone.len(), 1, "one line of the prompt: {diff}");
    let updated = server.json(&["agent", "apply", &file]).code(0).json();
    assert_eq!(updated, json!({"refName": "helper", "result": "updated", "version": 2}));

    let shown = server.run(&["agent", "get", "helper"]).code(0).says("version 2").stdout;
    assert!(shown.starts_with("refName: helper\n"), "{shown}");
    write(folder.path(), &[("again.yaml", shown.as_str())]);
    let same = server.run(&["agent", "apply", &path(&folder, "again.yaml")]).code(0);
    assert_eq!(same.stdout, "unchanged  helper  version 2\n", "what is shown can be applied");

    server.run(&["agent", "rm", "helper"]).code(0).says("removed `helper`");
    server.run(&["agent", "rm", "helper"]).code(1).says("there is no agent `helper`");
    server.run(&["agent", "get", "helpr"]).code(1).says("there is no agent `helpr`");
}

#[test]
fn nothing_is_stored_if_one_of_the_files_is_wrong() {
    let (server, folder) = house();
    write(folder.path(), &[("bad.yaml", "refName: bad\nllmConfigRef: m\nlimits: {step: 1}\n")]);
    let good = path(&folder, "helper.yaml");
    let bad = path(&folder, "bad.yaml");
    server
        .run(&["agent", "apply", &good, &bad])
        .code(2)
        .says("bad.yaml:3:10: error: unknown key `step` in `limits`; hint: did you mean `steps`?");
    server.run(&["agent", "apply", &good, &good]).code(2).says("two of the files");
    let listed = server.json(&["agent", "ls"]).code(0).json();
    assert_eq!(listed["items"], json!([]));
}

#[test]
fn a_file_of_the_project_goes_before_what_is_stored() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path();
    write(place, &[("waypost.toml", ""), ("helper.yaml", HELPER)]);
    let server = Server::of_project(place);
    server.run(&["agent", "apply", &path(&folder, "helper.yaml")]).code(0);
    assert_eq!(server.stop().0.code, Some(0));

    let settings = "[agents]\ndefault = \"helper\"\n[models.fast]\nprovider = \"openai\"\n\
                    model = \"m\"\nbase_url = \"http://127.0.0.1:1/v1\"\n";
    let filed = "refName: helper\nllmConfigRef: fast\ndescription: from the file\n";
    write(place, &[("waypost.toml", settings), ("agents/helper.yaml", filed)]);
    let server = Server::of_project(place);
    let listed = server.json(&["agent", "ls"]).code(0).json();
    let helper: &Value = &listed["items"][0];
    assert_eq!(
        (&helper["fromFile"], &helper["description"]),
        (&json!(true), &json!("from the file"))
    );
    assert_eq!(helper["default"], true);
    let table = server.run(&["agent", "ls"]).code(0).stdout;
    assert!(table.contains("helper  fast   file     yes"), "{table}");
    server
        .run(&["agent", "apply", &path(&folder, "helper.yaml")])
        .code(1)
        .says("agent `helper` is in a file of the project");
    server.run(&["agent", "rm", "helper"]).code(1).says("`agents/`");
    let (ended, _) = server.stop();
    assert!(ended.stderr.contains("the stored agent `helper` is not used"), "{ended:#?}");

    std::fs::remove_file(place.join("agents/helper.yaml")).unwrap();
    let server = Server::of_project(place);
    let listed = server.json(&["agent", "ls"]).code(0).json();
    assert_eq!(listed["items"][0]["version"], 1, "it was stored all the time");
    let (ended, _) = server.stop();
    let told = "agent `helper` names the model `gone`, which is not there: its turns will fail";
    assert!(ended.stderr.contains(told), "{ended:#?}");
    assert!(ended.stderr.contains("the models are `fast`"), "{ended:#?}");
}

#[test]
fn mistakes_of_agents_and_models_stop_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path();
    let twins = [("agents/a.yaml", HELPER), ("agents/b.yaml", HELPER)];
    write(place, &twins);
    let up = ["up", "--ephemeral", "--port", "0"];
    waypost(place, &up).code(2).says("agents/b.yaml: error: agent `helper`");
    write(place, &[("agents/b.yaml", "refName: b\nllmConfigRef: m\nzone: [x]\n")]);
    waypost(place, &up).code(2).says("agents/b.yaml:3:7: error: expected a text");
    std::fs::remove_file(place.join("agents/b.yaml")).unwrap();
    write(place, &[("waypost.toml", "[models.r]\nrules = \"rules/none.yaml\"\n")]);
    waypost(place, &up).code(2).says("waypost.toml:2:9: error: the rules `rules/none.yaml`");
    let plan = "steps:\n  - {id: a, type: agent, agent: helpr, input: x, nextStepId: b}\n  \
                - {id: b, type: final_response, message: done}\n";
    write(place, &[("waypost.toml", ""), ("plans/x/ask.yaml", plan)]);
    let checked = waypost(place, &["plan", "validate"]).code(1);
    assert!(checked.stdout.contains("did you mean `helper`?"), "{checked:#?}");
}

#[test]
fn keys_of_models_are_not_shown() {
    let folder = tempfile::tempdir().unwrap();
    let settings = "[models.fast]\nprovider = \"openai\"\nmodel = \"m\"\napi_key = \"hunter2\"\n\
                    headers = { X-Team = \"hunter2\" }\n";
    write(folder.path(), &[("waypost.toml", settings)]);
    let shown = waypost(folder.path(), &["config", "show", "--origin"]).code(0).stdout;
    assert!(!shown.contains("hunter2"), "{shown}");
    assert!(shown.contains("models.fast.api_key"), "{shown}");
}
