//! Errors as people read them: each command of the table fails, and what it says is what its file
//! holds, with ids, ports, paths and times masked. `UPDATE_EXPECT=1` writes the files anew.

use crate::process::{Ended, Server, waypost_with, write};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

/// One file per error.
const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/errors");
/// Nobody listens on port 1, and nobody without rights can.
const NOWHERE: &str = "http://127.0.0.1:1";
/// An ask that no server has.
const NO_ASK: &str = "ask_00000000000000000000000000000000";

const MISSPELT: &str = "[server]\nprot = 1\n\n[limits]\nbody_byte_max = 1\n";
/// Limits with values that they cannot have.
const RANGES: &str = "[limits]\nsession_queue_max = 0\nrun_calls_max = 0\n\
                      calls_active_max = 9000000000000000000\n";
const MISTAKEN: &str = r#"description: a tool and a step that are not there
startStepId: a
steps:
  - {id: a, type: tool_call, toolId: "math::ad", arguments: {a: 1, b: 2}, nextStepId: bb}
  - {id: b, type: final_response, message: done}
"#;

/// A variable that nobody sets, and a server that nobody is.
const BEHIND: &str = r#"[server]
port = 1

[mcp.servers.web]
url = "https://${WAYPOST_NO_SUCH_HOST}/mcp"

[mcp.servers.dead]
url = "http://127.0.0.1:1/mcp"
"#;
const CLIENTS: &str = r#"{"mcpServers": {"git": {"command": "git-mcp"}}}"#;
const BROKEN: &str = r#"{
  "mcpServers": {
    "git": {"comand": "git-mcp"},
    "web": {"type": "htp", "url": "https://a.example/mcp"}
  }
}"#;

/// An agent with mistakes, and models that nobody can use.
const STRANGE: &str = "refName: my helper\nllmConfigRef: openai\naprove: [create_event]\n\
                       promptSteps:\n  - {order: 1, content: \"It is {{ tiem }}.\"}\n";
const MODELS: &str = "[models.fast]\nprovider = \"ollama\"\nmodel = \"llama\"\n\n\
                      [models.cheap]\nprovider = \"openai\"\nmodle = \"x\"\n";

const KEYLESS: &str = "[models.fast]\nprovider = \"anthropic\"\nmodel = \"m\"\n\
                       api_key = \"${WAYPOST_NO_SUCH_KEY}\"\n";

/// Sinks that lack something, or are nothing we know.
const SINKS: &str = "[events.sinks.hook]\ntype = \"webhook\"\nurl = \"https://a.example/in\"\n\n\
                     [events.sinks.bus]\ntype = \"kafka\"\n";

/// What needs no server, by the name of its file.
const OFFLINE: &[(&str, &[&str])] = &[
    ("up-bad-port", &["up", "--demo", "--port", "99999"]),
    ("up-open-host", &["up", "--demo", "--host", "0.0.0.0"]),
    ("up-no-folder", &["up", "nowhere"]),
    ("up-data-lost", &["up", "--demo", "--port", "0", "--data", "lost"]),
    ("up-unknown-keys", &["up", "misspelt", "--ephemeral"]),
    ("up-limits-out-of-range", &["up", "ranges", "--ephemeral"]),
    ("up-plan-mistakes", &["up", "mistaken", "--ephemeral", "--port", "0"]),
    ("up-agent-mistakes", &["up", "strange", "--ephemeral", "--port", "0"]),
    ("up-model-mistakes", &["up", "models", "--ephemeral", "--port", "0"]),
    ("up-model-unset", &["up", "keyless", "--ephemeral", "--port", "0"]),
    ("up-sink-mistakes", &["up", "sinks", "--ephemeral", "--port", "0"]),
    ("agent-apply-mistakes", &["agent", "apply", "strange/agents/bad.yaml"]),
    ("agent-apply-no-file", &["agent", "apply", "nowhere.yaml"]),
    ("agent-apply-no-files", &["agent", "apply"]),
    ("config-unknown-keys", &["config", "show", "misspelt"]),
    ("config-variable-file", &["config", "show", "variables"]),
    ("config-variable-unknown", &["config", "show", "variables/misspelt"]),
    ("init-present", &["init", "misspelt"]),
    ("plan-validate-mistakes", &["plan", "validate", "mistaken"]),
    ("plan-validate-no-plans", &["plan", "validate", "empty"]),
    ("plan-test-mistakes", &["plan", "test", "mistaken"]),
    ("plan-graph-no-file", &["plan", "graph", "nowhere.yaml"]),
    ("plan-run-bad-json", &["plan", "run", "math::fan_out", "--input", "{\"items\": ["]),
    ("plan-run-no-file", &["plan", "run", "math::fan_out", "--input", "@nowhere.json"]),
    ("plan-run-key-twice", &["plan", "run", "math::fan_out", "--input", "a=1", "a=2"]),
    ("unknown-command", &["plan", "rnu"]),
    ("unknown-command-json", &["--json", "plna"]),
    ("unknown-topic", &["help", "plan", "rnu"]),
    ("unknown-shell", &["completions", "csh"]),
    ("mcp-serve-no-transport", &["mcp", "serve", "empty"]),
    ("mcp-snippet-unknown-client", &["mcp", "snippet", "cursr"]),
    ("mcp-snippet-unknown-client-json", &["--json", "mcp", "snippet", "cursr"]),
    ("mcp-snippet-no-folder", &["mcp", "snippet", "codex", "nowhere"]),
    ("up-upstreams-unset", &["up", "behind", "--ephemeral", "--port", "0"]),
    ("up-upstreams-mistakes", &["up", "twice", "--ephemeral", "--port", "0"]),
    ("up-upstreams-json", &["up", "broken", "--ephemeral", "--port", "0"]),
    ("mcp-add-no-url", &["mcp", "add", "files", "npx", "--dir", "empty"]),
    ("mcp-add-bad-name", &["mcp", "add", "a b", "https://a.example/mcp", "--dir", "empty"]),
    ("mcp-add-taken", &["mcp", "add", "git", "https://a.example/mcp", "--dir", "behind"]),
    ("mcp-test-misspelt", &["mcp", "test", "gti", "behind"]),
    ("mcp-test-unset", &["mcp", "test", "web", "behind"]),
    ("mcp-test-unreachable", &["mcp", "test", "dead", "behind"]),
    ("mcp-ls-unreachable", &["--server", NOWHERE, "mcp", "ls"]),
    ("mcp-login-unreachable", &["--server", NOWHERE, "mcp", "login", "hub"]),
    ("mcp-import-no-file", &["mcp", "import", "nowhere.json", "empty"]),
    ("mcp-import-mistakes", &["mcp", "import", "broken/.mcp.json", "empty"]),
    ("bad-server", &["--server", "nowhere", "tool", "ls"]),
    ("unreachable", &["--server", NOWHERE, "tool", "ls"]),
    ("unreachable-json", &["--server", NOWHERE, "--json", "tool", "ls"]),
    ("session-prune-unreachable", &["--server", NOWHERE, "session", "prune", "--older-than", "1d"]),
    ("events-tail-bad-type", &["events", "tail", "--type", "a b"]),
    ("session-prune-no-age", &["session", "prune"]),
    ("session-prune-bad-age", &["session", "prune", "--older-than", "soon"]),
];

/// What a server of the demo refuses; `ASK` is an ask of it that wants a form, `DONE` a session
/// whose run is over.
const ONLINE: &[(&str, &[&str])] = &[
    ("plan-run-unknown", &["plan", "run", "billing::monthly_report"]),
    ("plan-run-misspelt", &["plan", "run", "math::fan_uot"]),
    ("plan-run-wrong-input", &["plan", "run", "math::conditional_add", "--input", "a=two", "b=3"]),
    ("session-show-unknown", &["session", "show", "nobody-knows-it"]),
    ("session-show-misspelt", &["session", "show", "doen"]),
    ("session-ls-bad-status", &["session", "ls", "--status", "wating"]),
    ("session-cancel-over", &["session", "cancel", "DONE"]),
    ("session-fork-bad-place", &["session", "fork", "DONE", "--at", "999"]),
    ("inbox-show-unknown", &["inbox", "show", NO_ASK]),
    ("inbox-show-no-id", &["inbox", "show", "nope"]),
    ("inbox-approve-form", &["inbox", "approve", "ASK"]),
    ("inbox-answer-wrong-action", &["inbox", "answer", "ASK", "--action", "retry"]),
    ("inbox-answer-off-schema", &["inbox", "answer", "ASK", "name="]),
    ("agent-get-unknown", &["agent", "get", "nobody-knows-it"]),
    ("agent-rm-unknown", &["agent", "rm", "nobody-knows-it"]),
    ("tool-show-misspelt", &["tool", "show", "math::ad"]),
    ("tool-call-wrong-input", &["tool", "call", "math::add", "a=one", "b=2"]),
    ("tool-call-failed", &["tool", "call", "test::always_fail"]),
    ("mcp-login-unknown", &["mcp", "login", "hub"]),
    ("mcp-logout-unknown", &["mcp", "logout", "hub"]),
    ("events-tail-no-place", &["events", "tail", "--after", "nowhere"]),
    ("events-deliveries-misspelt", &["events", "deliveries", "evnts"]),
    ("events-deliveries-bad-status", &["events", "deliveries", "events", "--status", "faild"]),
    ("events-resend-unknown", &["events", "resend", "events", "ses_1.1"]),
];

/// Error texts by the name of their snapshot.
struct ErrorTexts {
    all: BTreeMap<String, String>,
    folder: TempDir,
    /// What differs from run to run, and what is written in its place.
    masks: Vec<(String, &'static str)>,
}

impl ErrorTexts {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let files = [
            ("misspelt/waypost.toml", MISSPELT),
            ("ranges/waypost.toml", RANGES),
            ("mistaken/waypost.toml", "[tools]\ndemo = true\n"),
            ("mistaken/plans/x/bad.yaml", MISTAKEN),
            ("strange/agents/bad.yaml", STRANGE),
            ("models/waypost.toml", MODELS),
            ("keyless/waypost.toml", KEYLESS),
            ("sinks/waypost.toml", SINKS),
            ("empty/waypost.toml", ""),
            ("lost/waypost.db", ""),
            ("lost/blobs/default/00/half", "x"),
            ("lost/secret.key", "x"),
            ("behind/waypost.toml", BEHIND),
            ("behind/.mcp.json", CLIENTS),
            ("twice/waypost.toml", "[mcp.servers.git]\nurl = \"https://a.example/mcp\"\n"),
            ("twice/.mcp.json", CLIENTS),
            ("broken/.mcp.json", BROKEN),
            ("variables/waypost.toml", ""),
            ("variables/.env", "# ours\nhunter2\n"),
            ("variables/misspelt/waypost.toml", ""),
            ("variables/misspelt/.env", "WAYPOST_PORT=soon\nWAYPOST_LIMITS_BODY_BYTE_MAX=1\n"),
        ];
        write(folder.path(), &files);
        let mut texts = Self { all: BTreeMap::new(), folder, masks: Vec::new() };
        texts.mask(texts.place().display().to_string(), "FOLDER");
        texts
    }

    /// The folder as the system names it, without links.
    fn place(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    fn mask(&mut self, text: String, with: &'static str) {
        self.masks.push((text, with));
    }

    /// Runs a command that must fail, and keeps what it says.
    fn fails(&mut self, name: &str, arguments: &[&str]) {
        let ended = waypost_with(&self.place(), arguments, &[("LOG_LEVEL", "error")]);
        assert_ne!(ended.code, Some(0), "{name}: {ended:#?}");
        let mut text = shown(arguments, &ended);
        for (what, with) in &self.masks {
            text = text.replace(what.as_str(), with);
        }
        let twin = self.all.insert(format!("{name}.txt"), without_ids_and_times(&text));
        assert_eq!(twin, None, "`{name}` is there twice");
    }
}

/// The command, how it ended, and what it said.
fn shown(arguments: &[&str], ended: &Ended) -> String {
    let code = ended.code.map_or("none".to_owned(), |code| code.to_string());
    let mut lines =
        vec![format!("$ waypost {}", arguments.join(" ")), format!("exit code: {code}")];
    for (name, said) in [("standard output", &ended.stdout), ("standard error", &ended.stderr)] {
        if !said.is_empty() {
            lines.push(format!("{name}:"));
            lines.extend(said.trim_end().lines().map(|line| line.trim_end().to_owned()));
        }
    }
    format!("{}\n", lines.join("\n"))
}

fn without_ids_and_times(text: &str) -> String {
    let mut text = text.to_owned();
    for (prefix, with) in
        [("ses_", "ses_.."), ("run_", "run_.."), ("ask_", "ask_.."), ("call_", "call_..")]
    {
        let is_id = |part: &str| {
            let digits = part.strip_prefix(prefix);
            digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
        };
        text = replaced(&text, prefix.len() + 32, is_id, with);
    }
    let shape = "0000-00-00T00:00:00.000Z";
    let is_time = |part: &str| {
        let digits_as_zero = |byte: u8| if byte.is_ascii_digit() { b'0' } else { byte };
        part.bytes().map(digits_as_zero).eq(shape.bytes())
    };
    replaced(&text, shape.len(), is_time, "TIME")
}

/// The text with each part of this length that fits replaced.
fn replaced(text: &str, length: usize, fits: impl Fn(&str) -> bool, with: &str) -> String {
    let mut made = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_part = rest.get(..length).is_some_and(&fits);
        let taken = if is_part { length } else { first.len_utf8() };
        made.push_str(if is_part { with } else { &rest[..taken] });
        rest = &rest[taken..];
    }
    made
}

/// A server's refusals, against one that has an open ask and a session that is over.
fn online(texts: &mut ErrorTexts) {
    let server = Server::demo();
    texts.mask(format!("127.0.0.1:{}", server.port()), "127.0.0.1:PORT");
    texts.mask(format!("port {}", server.port()), "port PORT");
    let sum = ["plan", "run", "math::conditional_add", "--session", "done", "--input"];
    server.run(&[&sum[..], &["a=2", "b=3"]].concat()).code(0);
    let asked = server.json(&["plan", "run", "interaction::greeting", "--session", "ada"]).code(3);
    let ask = asked.json()["run"]["asks"][0]["id"].as_str().unwrap().to_owned();
    for (name, arguments) in ONLINE {
        let named = arguments.iter().map(|argument| match *argument {
            "ASK" => ask.as_str(),
            "DONE" => "done",
            other => other,
        });
        let all: Vec<&str> = ["--server", server.url.as_str()].into_iter().chain(named).collect();
        texts.fails(name, &all);
    }
    let taken = ["up", "--demo", "--port", server.port()];
    let holder = format!("another Waypost (pid {}, folder ", server.pid());
    let ended = waypost_with(&texts.place(), &taken, &[("LOG_LEVEL", "error")]);
    ended.code(2).says(&holder).says("`waypost up --port 0`");
    server
        .run(&["run", "create a meeting called Standup tomorrow at 9am", "--thread", "work"])
        .code(3);
    let more = ["--server", server.url.as_str(), "run", "and another", "--thread", "work"];
    texts.fails("run-thread-busy", &more);
    let no_thread = ["--server", server.url.as_str(), "resume", "nobody", "--approve", "call_1"];
    texts.fails("resume-unknown", &no_thread);
    server.run(&["inbox", "answer", &ask, "name=Ada"]).code(0);
    let again = ["--server", server.url.as_str(), "inbox", "answer", ask.as_str(), "name=Eve"];
    texts.fails("inbox-answer-decided", &again);
}

/// A server whose data folder is held, and that wants its key.
fn held(texts: &mut ErrorTexts) {
    let data = texts.place().join("data");
    let data = data.to_str().unwrap();
    let key = [("WAYPOST_ADMIN_KEY", "secret")];
    let server = Server::start(&["--demo", "--data", data], &key);
    texts.mask(format!("127.0.0.1:{}", server.port()), "127.0.0.1:PORT");
    texts.mask(format!("process {}", server.pid()), "process PID");
    texts.fails("up-data-held", &["up", "--demo", "--port", "0", "--data", data]);
    let url = server.url.as_str();
    let prune = ["--server", url, "session", "prune", "--older-than", "30d"];
    texts.fails("session-prune-no-key", &prune);
    texts.fails("mcp-login-no-key", &["--server", url, "mcp", "login", "hub"]);
}

fn kept() -> BTreeMap<String, String> {
    let entries = fs::read_dir(KEPT)
        .unwrap_or_else(|error| panic!("{KEPT}: {error}; `UPDATE_EXPECT=1` writes it"));
    let file = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry.unwrap();
        let name = entry.file_name().to_string_lossy().into_owned();
        (name, fs::read_to_string(entry.path()).unwrap())
    };
    entries.map(file).collect()
}

#[test]
fn every_error_matches_its_snapshot() {
    let mut texts = ErrorTexts::new();
    for (name, arguments) in OFFLINE {
        texts.fails(name, arguments);
    }
    online(&mut texts);
    held(&mut texts);
    let all = &texts.all;
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::create_dir_all(KEPT).unwrap();
        for name in kept().keys().filter(|name| !all.contains_key(*name)) {
            fs::remove_file(format!("{KEPT}/{name}")).unwrap();
        }
        for (name, text) in all {
            fs::write(format!("{KEPT}/{name}"), text).unwrap();
        }
        return;
    }
    let kept = kept();
    let names = |texts: &BTreeMap<String, String>| texts.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(all), names(&kept), "`UPDATE_EXPECT=1` writes {KEPT} anew");
    for (name, text) in all {
        assert_eq!(text, &kept[name], "{name}: `UPDATE_EXPECT=1` writes it anew");
    }
}

#[test]
fn ids_and_times_are_masked() {
    let id = "0123456789abcdef".repeat(2);
    let told = format!("ü ask_{id} call_{id}: ask_12 since 2026-11-15T04:09:04.123Z.");
    let masked = "ü ask_.. call_..: ask_12 since TIME.";
    assert_eq!(without_ids_and_times(&told), masked);
}
