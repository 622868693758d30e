//! `waypost up --watch`: plans, rules and pipelines change while a run waits for a person. The run
//! keeps its plan and its model, the next one takes the new; what is wrong changes nothing and is
//! told, until it is mended, wherever that is. The servers behind it change, too, and so does who
//! may do what, also where nothing else is watched.

use crate::process::{Ended, Server, binary_folder, waypost, waypost_with, write};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;
use testkit::harness::wait_for;
use testkit::http::Client;

const LIMIT: Duration = Duration::from_secs(120);

const SETTINGS: &str = "[models.desk]\nrules = \"rules/desk.yaml\"\n\n\
                        [agents]\ndefault = \"desk\"\n\n\
                        [tools.http]\nallow = [\"127.0.0.1:2\"]\n";
const AGENT: &str = "refName: desk\nname: The desk\nllmConfigRef: desk\n";

fn plan(word: &str) -> String {
    format!(
        "description: greets\nstartStepId: ask\nsteps:\n  \
         - {{id: ask, type: human_in_the_loop, message: who?, nextStepIdOnInput: end}}\n  \
         - {{id: end, type: final_response, message: '{word} {{{{ context.human_input }}}}'}}\n"
    )
}

fn rules(word: &str) -> String {
    format!(
        "version: 1\nabout: says one word\n\
         rules: [{{rule: never, when: {{said: xyzzy}}, say: never}}]\nfallback: {{say: {word}}}\n"
    )
}

fn pipeline(reasons: &[&str]) -> String {
    let handler = |reason: &&str| format!("  - {{reason: {reason}, type: escalate}}\n");
    let handlers: String = reasons.iter().map(handler).collect();
    format!(
        "http: {{route: /desk/cases}}\n\
         schema: {{caseIdField: tradeId, allowedFields: [tradeId, reason], \
         requiredFields: [tradeId, reason]}}\n\
         tools: [{{type: publish-event}}]\nllm: {{type: stub}}\nhandlers:\n{handlers}"
    )
}

/// A pipeline whose agent calls a host that is not listed, and continues once it gets the
/// outcome.
const STUCK: &str = r#"
http: {route: /desk/cases}
schema: {caseIdField: tradeId, allowedFields: [tradeId, reason], requiredFields: [tradeId, reason]}
tools: ['http::request', {type: publish-event}]
llm:
  type: rules
  params:
    rules:
      version: 1
      rules:
        - rule: look
          when: {if: not calls}
          command: {tool: 'http::request', args: {url: 'http://127.0.0.1:1/'}, stop: false}
        - rule: tell
          command: {tool: events.publish, args: {type: Told, tradeId: '{{ event.tradeId }}'}}
      fallback: {say: nothing}
"#;

/// A desk whose plans, rules and pipeline can be rewritten.
struct Desk {
    folder: tempfile::TempDir,
    server: Server,
}

impl Desk {
    fn open() -> Self {
        Self::served(Server::watched)
    }

    /// One whose server was not told to watch.
    fn unwatched() -> Self {
        Self::served(|place| Server::of_project_with(place, &[("LOG_LEVEL", "info")]))
    }

    fn served(serve: impl FnOnce(&Path) -> Server) -> Self {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &[("waypost.toml", SETTINGS), ("agents/desk.yaml", AGENT)]);
        Self::fill(folder.path(), ("old", "old", &["Known"]));
        let server = serve(folder.path());
        Self { folder, server }
    }

    fn fill(folder: &Path, (greets, says, knows): (&str, &str, &[&str])) {
        let files = [
            ("plans/desk/greet.yaml", plan(greets)),
            ("rules/desk.yaml", rules(says)),
            ("pipelines/desk.yaml", pipeline(knows)),
        ];
        let files: Vec<(&str, &str)> =
            files.iter().map(|(name, text)| (*name, text.as_str())).collect();
        write(folder, &files);
    }

    fn change(&self, greets: &str, says: &str, knows: &[&str]) {
        Self::fill(self.folder.path(), (greets, says, knows));
    }

    /// Waits until the log has this so often; what it says by then.
    fn logged(&self, words: &str, times: usize) -> String {
        wait_for(&format!("`{words}` in the log"), LIMIT, || {
            Some(self.server.log()).filter(|log| log.matches(words).count() >= times)
        })
    }

    /// Starts a greeting, and gives the ask that it waits for.
    fn greet(&self) -> String {
        let run = self.server.json(&["plan", "run", "desk/greet"]).code(3).json();
        run["run"]["asks"][0]["id"].as_str().unwrap().to_owned()
    }

    /// What it says once it is answered.
    fn greeted(&self, ask: &str) -> String {
        self.server.run(&["inbox", "answer", ask, "Ada"]).code(0).stdout.trim_end().to_owned()
    }

    fn says(&self) -> String {
        self.server.run(&["run", "hello"]).code(0).stdout.trim_end().to_owned()
    }

    /// The road of a case.
    fn road(&self, id: &str, reason: &str) -> Value {
        let case = format!("{{\"tradeId\": \"{id}\", \"reason\": \"{reason}\"}}");
        let sent: Ended = self.server.json(&["pipeline", "send", "desk", &case]).code(0);
        sent.json()["path"].clone()
    }
}

#[test]
fn changes_are_reloaded_and_a_waiting_run_keeps_its_plan() {
    let desk = Desk::open();
    let waiting = desk.greet();
    assert_eq!(desk.says(), "old");
    assert_eq!(desk.road("1", "Known"), "deterministic");
    assert_eq!(desk.road("2", "Rare"), "agent");

    desk.change("new", "new", &["Known", "Rare"]);
    wait_for("the new handler", LIMIT, || {
        let listed = desk.server.json(&["pipeline", "ls"]).code(0).json();
        (listed["items"][0]["handlers"].as_array().unwrap().len() == 2).then_some(())
    });
    // A look may fall between two of the files, and this one was written last.
    desk.logged("pipelines/desk.yaml", 1);
    assert_eq!(desk.says(), "new");
    assert_eq!(desk.road("3", "Rare"), "deterministic");
    let next = desk.greet();
    assert_eq!(desk.greeted(&waiting), "old Ada");
    assert_eq!(desk.greeted(&next), "new Ada");
    assert!(desk.logged("reloaded: ", 1).contains("plans/desk/greet.yaml"));
}

#[test]
fn a_mistake_changes_nothing_and_is_reported_with_its_line() {
    let desk = Desk::open();
    let broken = plan("broken").replace("final_response", "final_respons");
    // The rules are right, and still they are not taken: all of it or none.
    write(desk.folder.path(), &[("plans/desk/greet.yaml", &broken)]);
    desk.logged("not reloaded", 1);
    write(desk.folder.path(), &[("rules/desk.yaml", &rules("new"))]);
    let log = desk.logged("not reloaded", 2);
    assert!(log.contains("plans/desk/greet.yaml:5:"), "{log}");
    assert_eq!(desk.says(), "old");
    let ask = desk.greet();
    assert_eq!(desk.greeted(&ask), "old Ada");

    desk.change("mended", "new", &["Known"]);
    desk.logged("reloaded: plans/desk/greet.yaml", 1);
    assert_eq!(desk.says(), "new");
    let ask = desk.greet();
    assert_eq!(desk.greeted(&ask), "mended Ada");

    // A handler whose plan is not there is known only with all the rest, and takes nothing with it.
    let nowhere = pipeline(&[]) + "  - {reason: Lost, plan: desk/nowhere}\n";
    write(
        desk.folder.path(),
        &[("pipelines/desk.yaml", &nowhere), ("rules/desk.yaml", &rules("never"))],
    );
    let log = desk.logged("desk/nowhere", 1);
    assert!(log.contains("pipelines/desk.yaml:"), "{log}");
    assert_eq!(desk.says(), "new");
    assert_eq!(desk.road("1", "Known"), "deterministic");

    let settings = format!("{SETTINGS}\n[limits]\ncall_timeout_ms = 29999\n");
    write(desk.folder.path(), &[("waypost.toml", &settings)]);
    desk.logged("waypost.toml changed: restart to take it", 1);
}

#[test]
fn a_run_goes_on_with_the_model_of_a_pipeline_that_is_gone() {
    let desk = Desk::open();
    write(desk.folder.path(), &[("pipelines/desk.yaml", STUCK)]);
    desk.logged("reloaded: pipelines/desk.yaml\n", 1);
    let case = "{\"tradeId\": \"1\", \"reason\": \"any\"}";
    desk.server.run(&["pipeline", "send", "desk", case]).code(3).says("127.0.0.1:1");
    let asks = desk.server.json(&["inbox", "ls"]).code(0).json();
    let ask = asks["items"][0]["id"].as_str().unwrap();

    std::fs::remove_file(desk.folder.path().join("pipelines/desk.yaml")).unwrap();
    desk.logged("reloaded: pipelines/desk.yaml\n", 2);
    desk.server.run(&["pipeline", "send", "desk", case]).code(1).says("there is no pipeline");
    let skip = ["inbox", "answer", ask, "--action", "skip", "--output", "{\"status\": 200}"];
    let done = desk.server.json(&skip).code(0).json();
    assert_eq!(done["run"]["answer"]["result"]["event"]["type"], "Told", "{done}");
}

#[test]
fn a_broken_start_only_file_blocks_no_reload() {
    let desk = Desk::open();
    write(desk.folder.path(), &[(".mcp.json", "{")]);
    desk.logged("the servers behind this one stay as they were", 1);
    write(desk.folder.path(), &[("plans/desk/greet.yaml", &plan("new"))]);
    let log = desk.logged("reloaded: plans/desk/greet.yaml", 1);
    assert!(!log.contains("not reloaded"), "{log}");
}

#[test]
fn a_fix_in_an_unwatched_file_is_reloaded() {
    let desk = Desk::open();
    let rules_elsewhere = "llm: {type: stub, params: {rules: elsewhere/desk.txt}}";
    let text = pipeline(&["Known", "Rare"]).replace("llm: {type: stub}", rules_elsewhere);
    write(desk.folder.path(), &[("pipelines/desk.yaml", &text)]);
    desk.logged("elsewhere/desk.txt", 1);
    write(desk.folder.path(), &[("elsewhere/desk.txt", &rules("new"))]);
    let log = desk.logged("reloaded: elsewhere/desk.txt, pipelines/desk.yaml", 1);
    assert_eq!(log.matches("not reloaded").count(), 1, "the same mistake is told once: {log}");
    assert_eq!(desk.road("1", "Rare"), "deterministic");
}

/// The tools whose names begin so.
fn tools_of(server: &Server, beginning: &str) -> Vec<String> {
    let tools = server.json(&["tool", "ls"]).code(0).json();
    let names = tools["items"].as_array().unwrap().iter().map(|tool| tool["name"].clone());
    let names = names.filter_map(|name| name.as_str().map(str::to_owned));
    names.filter(|name| name.starts_with(beginning)).collect()
}

fn wait_for_tools(server: &Server, beginning: &str, are_there: bool) {
    let what = format!("tools of `{beginning}`: {are_there}");
    wait_for(&what, LIMIT, || (tools_of(server, beginning).is_empty() != are_there).then_some(()));
}

#[test]
fn upstreams_are_added_changed_and_removed_without_a_restart() {
    servers_change(&Desk::open());
}

#[test]
fn without_watching_upstreams_are_reloaded_and_plans_are_not() {
    let desk = Desk::unwatched();
    desk.change("new", "new", &["Known", "Rare"]);
    servers_change(&desk);
    assert_eq!(desk.says(), "old");
    assert_eq!(desk.road("1", "Rare"), "agent");
}

fn servers_change(desk: &Desk) {
    let place = desk.folder.path();
    let command = binary_folder().join("waypost");
    let args = r#"["example", "calendar-server", "--stdio", "--data", "calendar"]"#;
    let server = format!("command = \"{}\"\nargs = {args}\n", command.display());
    assert_eq!(tools_of(&desk.server, "days."), Vec::<String>::new());

    // By our own settings, which name nothing else that is new.
    let settings = format!("{SETTINGS}\n[mcp.servers.days]\n{server}");
    write(place, &[("waypost.toml", &settings)]);
    wait_for_tools(&desk.server, "days.", true);
    let log = desk.logged("reloaded: the servers behind this one: days", 1);
    assert!(!log.contains("restart to take it"), "{log}");

    // By a client's file, beside it.
    let clients = format!(
        "{{\"mcpServers\": {{\"more\": {{\"command\": \"{}\", \"args\": {args}}}}}}}",
        command.display()
    );
    let clients = clients.replace("\"calendar\"]", "\"more\"]");
    write(place, &[(".mcp.json", &clients)]);
    wait_for_tools(&desk.server, "more.", true);
    assert!(!tools_of(&desk.server, "days.").is_empty(), "it continues");
    desk.logged("reloaded: the servers behind this one: more", 1);

    // A mistake changes nothing.
    write(place, &[(".mcp.json", "{\"mcpServers\": ")]);
    desk.logged("the servers behind this one stay as they were", 1);
    assert!(!tools_of(&desk.server, "more.").is_empty(), "it continues");

    // One changes its prefix, the other goes.
    let settings = format!("{settings}prefix = \"weeks.\"\n");
    write(place, &[("waypost.toml", &settings), (".mcp.json", "{\"mcpServers\": {}}")]);
    wait_for_tools(&desk.server, "weeks.", true);
    wait_for_tools(&desk.server, "days.", false);
    wait_for_tools(&desk.server, "more.", false);
}

/// Keeps everybody from running the plan of the desk.
const STOP: &str = "@id(\"stop\")\nforbid (principal, action == Action::\"run\", \
                    resource == Plan::\"desk/greet\");\n";
/// What the exit codes of a run say.
const WAITS: i32 = 3;
const DENIED: i32 = 7;

/// A desk that asks for credentials and was not told to watch.
struct GuardedDesk {
    folder: TempDir,
    server: Server,
    /// A key that administers the server.
    admin: String,
    /// A key of the principal `ann`.
    ann: String,
}

impl GuardedDesk {
    fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path();
        write(place, &[("waypost.toml", ""), ("plans/desk/greet.yaml", &plan("hello"))]);
        Self::say_role(place, "viewer");
        let add = ["--json", "key", "add", "--name", "me", "--role", "admin", "--realm", "*"];
        let admin = Self::key(waypost(place, &add));
        let server = Server::asking_with(place, &[("LOG_LEVEL", "info")]);
        let add = ["--json", "key", "add", "--name", "laptop", "--of", "ann"];
        let ann = Self::key(waypost_with(place, &add, &[("WAYPOST_API_KEY", &admin)]));
        Self { folder, server, admin, ann }
    }

    fn key(made: Ended) -> String {
        made.code(0).json()["key"].as_str().unwrap().to_owned()
    }

    /// Writes which role `ann` has.
    fn say_role(place: &Path, role: &str) {
        let text = format!("principals:\n  ann:\n    realms: {{default: [{role}]}}\n");
        write(place, &[("principals.yaml", &text)]);
    }

    /// Waits until a run of `ann` ends so.
    fn runs_until(&self, what: &str, code: i32) {
        let key = [("WAYPOST_API_KEY", self.ann.as_str())];
        let run = || waypost_with(self.folder.path(), &["plan", "run", "desk/greet"], &key);
        wait_for(what, LIMIT, || (run().code == Some(code)).then_some(()));
    }

    fn logged(&self, words: &str, times: usize) {
        wait_for(&format!("`{words}` in the log"), LIMIT, || {
            (self.server.log().matches(words).count() >= times).then_some(())
        });
    }

    /// What the server answers to who administers it.
    fn body(&self, path: &str) -> String {
        let address = self.server.url.strip_prefix("http://").unwrap().parse().unwrap();
        let bearer = format!("Bearer {}", self.admin);
        let mut client = Client::new(address).with_header("authorization", &bearer);
        client.get(path).unwrap_or_else(|error| panic!("{path}: {error}")).body
    }

    /// Waits until these portions are said to be wrong, and no others.
    fn refuses(&self, portions: &[&str]) {
        let expected = match portions {
            [] => json!({"status": "ready", "reloadRefused": false}),
            _ => json!({"status": "ready", "reloadRefused": true, "reloadRefusedOf": portions}),
        };
        wait_for(&format!("a refusal of {portions:?}"), LIMIT, || {
            let told: Value = serde_json::from_str(&self.body("/readyz?verbose")).unwrap();
            (told == expected).then_some(())
        });
        let metric = format!("waypost_reload_refused {}\n", i32::from(!portions.is_empty()));
        let metrics = self.body("/metrics");
        assert!(metrics.contains(&metric), "no `{metric}` in {metrics}");
    }
}

#[test]
fn access_rules_are_reloaded_without_watching() {
    let desk = GuardedDesk::open();
    let place = desk.folder.path();
    desk.runs_until("a viewer to be refused", DENIED);
    GuardedDesk::say_role(place, "member");
    desk.runs_until("a member to be let in", WAITS);
    write(place, &[("policies/stop.cedar", STOP)]);
    desk.runs_until("the new policy to refuse", DENIED);
    desk.refuses(&[]);

    // What is wrong changes nothing, and is reported wherever someone looks.
    write(place, &[("policies/stop.cedar", "forbid (principal, actions, resource);\n")]);
    desk.logged("not reloaded: the policies that were in force stay", 1);
    desk.logged("policies/stop.cedar:1:", 1);
    desk.refuses(&["policies"]);
    desk.runs_until("the policy before to refuse", DENIED);

    // Principals come in all the same, and a mistake in them is one of their own.
    GuardedDesk::say_role(place, "operator");
    desk.logged("reloaded: principals.yaml", 2);
    GuardedDesk::say_role(place, "{no: role}");
    desk.logged("not reloaded: the principals that were known stay", 1);
    desk.refuses(&["policies", "principals"]);
    // An empty file may be one that is being copied: what was forbidden stays so.
    write(place, &[("policies/stop.cedar", "")]);
    desk.logged("no policies are left", 1);
    desk.runs_until("the policy before to refuse still", DENIED);
    write(place, &[("policies/stop.cedar", "// Nothing is forbidden any more.\n")]);
    desk.runs_until("the mended policies to let in", WAITS);
    desk.refuses(&["principals"]);
    GuardedDesk::say_role(place, "operator");
    desk.refuses(&[]);
}
