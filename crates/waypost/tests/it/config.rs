//! `waypost config`: which settings hold, and where each comes from.

use crate::process::{Server, waypost, waypost_with, write};
use serde_json::{Value, json};

/// A project with a mistake of every kind that a start refuses, beside those of the settings.
const WRONG: &[(&str, &str)] = &[
    (
        "waypost.toml",
        "[mcp.servers.web]\nurl = \"https://${WAYPOST_NO_SUCH_HOST}/mcp\"\n\
         [models.fast]\nprovider = \"anthropic\"\nmodel = \"m\"\n\
         api_key = \"${WAYPOST_NO_SUCH_KEY}\"\n\
         [events.sinks.hook]\ntype = \"webhook\"\nurl = \"https://a.example/in\"\n\
         secret = \"${WAYPOST_NO_SUCH_SECRET}\"\n",
    ),
    ("plans/x/bad.yaml", "description: d\nstartStepId: a\nsteps:\n  - {id: a, type: nothing}\n"),
    ("agents/bad.yaml", "refName: my helper\nllmConfigRef: fast\n"),
    (
        "pipelines/bad.yaml",
        "http: {route: /run}\nschema: {caseIdField: id, allowedFields: [id, reason], \
         requiredFields: [id, reason]}\ntools: [case.raiseTicket]\nllm: {type: stub}\n",
    ),
];

const SETTINGS: &str = "[server]\nport = 9000\n\n[limits]\nbody_depth_max = 8\n";

/// One setting of what `--json config show` says.
fn setting<'a>(shown: &'a Value, key: &str) -> &'a Value {
    let all = shown["settings"].as_array().unwrap();
    all.iter().find(|setting| setting["key"] == key).unwrap()
}

#[test]
fn every_value_is_shown_with_its_origin() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[("waypost.toml", SETTINGS)]);
    let shown = waypost(folder.path(), &["config", "show", "--origin"]).code(0).stdout;
    let line = |key: &str| -> Vec<String> {
        let found = shown.lines().find(|line| line.split_whitespace().next() == Some(key));
        found.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
    };
    assert_eq!(line("server.port"), ["server.port", "9000", "waypost.toml:2"]);
    assert_eq!(line("limits.body_depth_max"), ["limits.body_depth_max", "8", "waypost.toml:5"]);
    assert_eq!(line("server.host"), ["server.host", "\"127.0.0.1\"", "default"]);
    assert_eq!(line("admin.key"), ["admin.key", "\"unset\"", "default"]);
    let plain = waypost(folder.path(), &["config", "show"]).code(0).stdout;
    assert!(!plain.contains("waypost.toml"), "{plain}");
}

#[test]
fn the_environment_goes_first_and_secrets_stay_secret() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[("waypost.toml", SETTINGS)]);
    let variables = [
        ("WAYPOST_PORT", "9001"),
        ("WAYPOST_ADMIN_KEY", "hunter2"),
        ("WAYPOST_API_KEY", "hunter2"),
    ];
    let ended = waypost_with(folder.path(), &["--json", "config", "show"], &variables).code(0);
    assert!(!ended.stdout.contains("hunter2"), "{ended:#?}");
    let shown = ended.json();
    assert_eq!(setting(&shown, "server.port")["value"], 9001);
    assert_eq!(setting(&shown, "server.port")["origin"], "environment WAYPOST_PORT");
    assert_eq!(setting(&shown, "admin.key")["value"], "set");
    assert_eq!(setting(&shown, "api.key")["value"], "set");
    assert_eq!(shown["there"], true);
}

#[test]
fn the_file_is_found_from_subfolders_and_its_mistakes_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[("waypost.toml", "[server]\nprot = 1\n"), ("deep/er/x", "")]);
    waypost(folder.path(), &["config", "show"])
        .code(2)
        .says("waypost.toml:2:1")
        .says("did you mean `port`?");
    write(folder.path(), &[("waypost.toml", "")]);
    let path = waypost(&folder.path().join("deep/er"), &["config", "path"]).code(0).stdout;
    assert!(path.ends_with("/waypost.toml\n") && !path.contains("deep"), "{path}");
    let empty = tempfile::tempdir().unwrap();
    waypost(empty.path(), &["config", "path"]).code(0).says("the defaults hold");
    waypost(empty.path(), &["config", "show", "nowhere"]).code(2).says("nowhere");
}

#[test]
fn the_project_file_goes_before_the_users_file() {
    let folder = tempfile::tempdir().unwrap();
    let own = "[server]\nport = 1\nhosts = [\"a.test\"]\n";
    write(folder.path(), &[("own/waypost/config.toml", own), ("shop/waypost.toml", SETTINGS)]);
    let own = folder.path().join("own");
    let variables = [("XDG_CONFIG_HOME", own.to_str().unwrap())];
    let show = ["--json", "config", "show", "shop"];
    let shown = waypost_with(folder.path(), &show, &variables).code(0).json();
    assert_eq!(setting(&shown, "server.port")["value"], 9000);
    assert_eq!(setting(&shown, "server.port")["origin"], "shop/waypost.toml:2");
    assert_eq!(setting(&shown, "server.hosts")["value"][0], "a.test");
    let origin = setting(&shown, "server.hosts")["origin"].as_str().unwrap();
    assert!(origin.ends_with("own/waypost/config.toml:3"), "{origin}");

    write(folder.path(), &[("own/waypost/config.toml", "[limits]\nbody_byte_max = 1\n")]);
    for command in [&["config", "show", "shop"][..], &["plan", "validate", "shop"], &["up", "shop"]]
    {
        waypost_with(folder.path(), command, &variables)
            .code(2)
            .says("own/waypost/config.toml:2:1")
            .says("did you mean `body_bytes_max`?");
    }
}

#[test]
fn variables_set_settings_and_a_misspelt_one_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let variables =
        [("WAYPOST_LIMITS_BODY_BYTES_MAX", "77"), ("WAYPOST_SERVER_HOSTS", "a.test,b.test:8443")];
    let show = ["--json", "config", "show"];
    let shown = waypost_with(folder.path(), &show, &variables).code(0).json();
    let limit = setting(&shown, "limits.body_bytes_max");
    assert_eq!(limit["value"], 77);
    assert_eq!(limit["origin"], "environment WAYPOST_LIMITS_BODY_BYTES_MAX");
    let hosts = &setting(&shown, "server.hosts")["value"];
    assert_eq!(*hosts, json!(["a.test", "b.test:8443"]));
    for command in [&["config", "show"][..], &["up", "--demo", "--port", "0"]] {
        waypost_with(folder.path(), command, &[("WAYPOST_SERVER_PROT", "1")])
            .code(2)
            .says("`WAYPOST_SERVER_PROT`")
            .says("did you mean `WAYPOST_SERVER_PORT`?");
    }
    waypost_with(folder.path(), &["config", "show"], &[("WAYPOST_PORT", "soon")])
        .code(2)
        .says("environment WAYPOST_PORT: error: ");
}

#[test]
fn the_environment_goes_before_the_dotenv_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = "# ours\nexport WAYPOST_PORT=9002\nWAYPOST_ADMIN_KEY='hunter2'\n\
                WAYPOST_SERVER=\"http://127.0.0.1:1\"  # nobody\nOTHER=x\n";
    write(folder.path(), &[("waypost.toml", SETTINGS), (".env", file), ("deep/er/x", "")]);
    let show = ["--json", "config", "show"];
    let ended = waypost(folder.path(), &show).code(0);
    assert!(!ended.stdout.contains("hunter2"), "{ended:#?}");
    let shown = ended.json();
    assert_eq!(setting(&shown, "server.port")["value"], 9002);
    assert_eq!(setting(&shown, "server.port")["origin"], ".env:2");
    assert_eq!(setting(&shown, "admin.key")["origin"], ".env:3");
    assert_eq!(setting(&shown, "client.server")["value"], "http://127.0.0.1:1");
    let shown = waypost_with(folder.path(), &show, &[("WAYPOST_PORT", "9003")]).code(0).json();
    assert_eq!(setting(&shown, "server.port")["value"], 9003);
    // A command that talks to a server reads it too, from below as well.
    waypost(&folder.path().join("deep/er"), &["tool", "ls"]).code(6).says("http://127.0.0.1:1");

    write(folder.path(), &[(".env", "A='hunter2\n")]);
    let ended = waypost(folder.path(), &["config", "show"]).code(2).says(".env:1: error: ");
    assert!(!ended.stderr.contains("hunter2"), "{ended:#?}");
}

#[test]
fn a_server_takes_its_settings_from_variables_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = "WAYPOST_LIMITS_RUN_WAIT_MS=1\nWAYPOST_ADMIN_KEY=secret\n";
    write(folder.path(), &[("waypost.toml", ""), (".env", file)]);
    let server = Server::of_project(folder.path());
    server.run(&["session", "prune", "--older-than", "1h"]).code(4).says("admin key");
    let prune = ["--server", server.url.as_str(), "session", "prune", "--older-than", "1h"];
    waypost(folder.path(), &prune).code(0);
}

#[test]
fn a_check_reports_all_that_a_start_would_refuse_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), WRONG);
    let before = names_in(folder.path());
    let variables = [("WAYPOST_SECRET_KEY", "short")];
    let ended = waypost_with(folder.path(), &["config", "check"], &variables)
        .code(2)
        .says("error: `waypost up` would refuse this project: there are ")
        .says("`WAYPOST_SECRET_KEY` must be 64 hexadecimal digits")
        .says("waypost.toml:2:7: error: the variable `WAYPOST_NO_SUCH_HOST` is not set")
        .says("waypost.toml:6:11: error: the variable `WAYPOST_NO_SUCH_KEY` is not set")
        .says("waypost.toml:10:10: error: the variable `WAYPOST_NO_SUCH_SECRET` is not set")
        .says("plans/x/bad.yaml:4:")
        .says("agents/bad.yaml:1:10: error: `my helper` cannot be the name of an agent")
        .says("pipelines/bad.yaml: error: `route` cannot be `/run`");
    assert_eq!(ended.stdout, "");
    assert_eq!(names_in(folder.path()), before, "nothing is written");
    // Each of them keeps a server from starting.
    waypost_with(folder.path(), &["up", "--port", "0"], &variables).code(2);

    let told = waypost_with(folder.path(), &["--json", "config", "check"], &variables).code(2);
    let told: Value = serde_json::from_str(&told.stderr).unwrap();
    assert_eq!(json!([told["code"], told["exit"]]), json!(["invalid_project", 2]));
    assert!(told["details"].as_array().unwrap().len() >= 7, "{told}");

    write(folder.path(), &[("waypost.toml", "[limits]\nsession_queue_max = 0\n")]);
    waypost(folder.path(), &["config", "check"])
        .code(2)
        .says("waypost.toml:2:21: error: `session_queue_max` = 0 is out of range");
    write(folder.path(), &[("waypost.toml", ""), (".env", "nothing\n")]);
    waypost(folder.path(), &["config", "check"]).code(2).says(".env:1: error: ");
}

#[test]
fn a_check_counts_what_is_right_also_while_a_server_runs() {
    let folder = tempfile::tempdir().unwrap();
    let plan = "description: d\nstartStepId: a\nsteps:\n\
                \x20 - {id: a, type: final_response, message: done}\n";
    write(folder.path(), &[("waypost.toml", ""), ("plans/x/one.yaml", plan)]);
    let ok = "ok: 1 plan, 0 agents, 0 pipelines, 0 upstreams, ";
    let ended = waypost(folder.path(), &["config", "check"]).code(0);
    assert!(ended.stdout.starts_with(ok) && ended.stdout.ends_with("0 sinks\n"), "{ended:#?}");
    let _server = Server::of_project(folder.path());
    let found = waypost(folder.path(), &["--json", "config", "check"]).code(0).json();
    assert_eq!(json!([found["ok"], found["plans"], found["warnings"]]), json!([true, 1, []]));
}

#[test]
fn an_unknown_limit_is_an_error_and_the_server_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[("waypost.toml", "[limits]\nrun_calls_mox = 5\n")]);
    for command in [&["config", "check"][..], &["up", "--port", "0"]] {
        waypost(folder.path(), command)
            .code(2)
            .says("waypost.toml:2:1: error: unknown key `run_calls_mox` in `[limits]`")
            .says("did you mean `run_calls_max`?");
    }
}

#[test]
fn a_policy_that_does_not_fit_a_tool_of_a_local_document_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let settings = "[providers.shop]\ntype = \"rest\"\nbase_url = \"https://shop.example\"\n\
                    document = \"shop.json\"\n";
    let document = r#"{"openapi": "3.1.0", "info": {"title": "shop", "version": "1"}, "paths":
        {"/refund": {"post": {"operationId": "refund",
            "parameters": [{"name": "amount", "in": "query", "required": true,
                "schema": {"type": "number"}}],
            "responses": {"200": {"description": "done"}}}}}}"#;
    let policy = |condition: &str| {
        format!(
            "forbid(principal, action == Action::\"call:shop.refund\", resource)\n\
             when {{ {condition} }};\n"
        )
    };
    let wrong = policy("context.arguments.amount > 500");
    let right = "context.arguments.amount.greaterThan(decimal(\"500.0\"))";
    write(folder.path(), &[("waypost.toml", settings), ("shop.json", document)]);
    write(folder.path(), &[("policies/a.cedar", wrong.as_str())]);
    for command in [&["config", "check"][..], &["up", "--port", "0"]] {
        waypost(folder.path(), command)
            .code(2)
            .says("policies/a.cedar:2:")
            .says("does not fit the tool `shop.refund`")
            .says(right);
    }
    write(folder.path(), &[("policies/a.cedar", policy(right).as_str())]);
    waypost(folder.path(), &["config", "check"]).code(0);
}

/// The names of all that a folder holds, hidden files included.
fn names_in(folder: &std::path::Path) -> Vec<std::ffi::OsString> {
    let mut names: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    names
}
