//! Upstreams that are child processes of the real server: one that dies is started again, and none
//! is left behind, nor anything that it started, however often it dies and however the server ends.
//! `WAYPOST_CHILD_KILLS` asks for more kills.

use serde_json::{Map, Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use testkit::harness::{
    Project, Seen, Server, StartOptions, processes_with, send_signal, wait_for,
};

const KILLS: usize = 50;
/// How many upstreams are killed at the same time.
const LANES: usize = 4;
const LIMIT: Duration = Duration::from_secs(120);
const GONE_LIMIT: Duration = Duration::from_secs(180);
/// To look at all processes of a machine takes a while.
const LOOK: Duration = Duration::from_millis(20);

/// Dead upstreams are started again soon, so that many deaths do not take long.
const SETTINGS: &str = "[limits]\nupstream_backoff_ms = 20\nupstream_backoff_ms_max = 200\n";

/// A small MCP server that starts a helper, which does not care whether it lives. A stubborn one
/// ends neither with its input nor when it is told to.
const SERVER: &str = r#"
import json, signal, subprocess, sys, time

mark, is_stubborn = sys.argv[1], sys.argv[2] == "stubborn"
if is_stubborn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
no = subprocess.DEVNULL
loop = "while :; do sleep 1; done"
subprocess.Popen(["sh", "-c", loop, mark], stdin=no, stdout=no, stderr=no)

def answer(request):
    method = request["method"]
    if method == "initialize":
        version = request["params"]["protocolVersion"]
        info = {"name": mark, "version": "1"}
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": [{"name": "hello", "inputSchema": {"type": "object"}}]}
    return {} if method == "ping" else None

for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request or "method" not in request:
        continue
    result = answer(request)
    response = {"jsonrpc": "2.0", "id": request["id"], "result": result}
    if result is None:
        del response["result"]
        response["error"] = {"code": -32601, "message": "no such method"}
    print(json.dumps(response), flush=True)

while is_stubborn:
    time.sleep(1)
"#;

/// A project with upstreams.
struct Site {
    folder: TempDir,
    project: Project,
    script: PathBuf,
    /// A word of each upstream that is among the arguments of all its processes.
    marks: Vec<String>,
}

impl Site {
    /// One upstream for each of these words, `plain` or `stubborn`.
    fn build(kinds: &[&str]) -> Self {
        let folder = tempfile::Builder::new().prefix("waypost-children-").tempdir().unwrap();
        let project = Project::write(&folder.path().join("project"), &[], SETTINGS);
        let script = folder.path().join("server.py");
        fs::write(&script, SERVER).unwrap();
        let name = folder.path().file_name().unwrap().to_str().unwrap();
        let marks: Vec<String> =
            (0..kinds.len()).map(|number| format!("child-{number}-of-{name}")).collect();
        let mut servers = Map::new();
        for (number, (mark, kind)) in marks.iter().zip(kinds).enumerate() {
            let args = json!([script, mark, kind]);
            servers.insert(format!("up{number}"), json!({"command": "python3", "args": args}));
        }
        let listed = json!({"mcpServers": Value::Object(servers)});
        fs::write(project.path().join(".mcp.json"), listed.to_string()).unwrap();
        Self { folder, project, script, marks }
    }

    fn start(&self) -> Server {
        let data = self.folder.path().join("data");
        let options = StartOptions { project: self.project.path(), data: &data, args: &[] };
        let mut server = Server::start(&options);
        server.wait_until_ready();
        for mark in &self.marks {
            // What it finds out is not needed: that it can be found out is waited for.
            let _ = self.family(mark, None);
        }
        server
    }

    /// The processes of an upstream once all are there and the supervisor is another one.
    fn family(&self, mark: &str, not: Option<u32>) -> Family {
        let what = format!("the three processes of `{mark}`, and not those of {not:?}");
        wait_for(&what, LIMIT, || {
            let found = Family::find(&processes_with(mark), &self.script);
            let found = found.filter(|family| Some(family.supervisor) != not);
            if found.is_none() {
                thread::sleep(LOOK);
            }
            found
        })
    }

    /// No process of any upstream is left; how long that took.
    fn nobody_is_left(&self) -> Duration {
        let begun = Instant::now();
        for mark in &self.marks {
            let what = format!("all processes of `{mark}` to be gone");
            wait_for(&what, GONE_LIMIT, || processes_with(mark).is_empty().then_some(()));
        }
        begun.elapsed()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // A test that failed leaves nothing behind either.
        for seen in self.marks.iter().flat_map(|mark| processes_with(mark)) {
            send_signal("KILL", seen.pid);
        }
    }
}

/// The processes of one upstream.
#[derive(Debug)]
struct Family {
    supervisor: u32,
    server: u32,
}

impl Family {
    /// None unless there are exactly the three that there should be.
    fn find(seen: &[Seen], script: &Path) -> Option<Self> {
        let [_, _, _] = seen else { return None };
        let with = |word: &str| {
            let is = |seen: &&Seen| seen.words.get(1).is_some_and(|second| second == word);
            seen.iter().find(is).map(|seen| seen.pid)
        };
        // The helper has a `-c` there.
        with("-c")?;
        Some(Self { supervisor: with("child")?, server: with(script.to_str()?)? })
    }
}

fn kills() -> usize {
    let Ok(text) = std::env::var("WAYPOST_CHILD_KILLS") else { return KILLS };
    text.parse().unwrap_or_else(|error| panic!("WAYPOST_CHILD_KILLS is `{text}`: {error}"))
}

/// Kills an upstream so often, the server itself and its supervisor by turns; it is back each time,
/// with nothing left of what it was.
fn kill_again_and_again(site: &Site, mark: &str, kills: usize) {
    let mut family = site.family(mark, None);
    for kill in 0..kills {
        let victim = if kill % 2 == 0 { family.server } else { family.supervisor };
        send_signal("KILL", victim);
        family = site.family(mark, Some(family.supervisor));
    }
}

#[test]
fn an_upstream_that_is_killed_comes_back_and_leaves_nothing_behind() {
    let _turn = crate::my_turn();
    let kills = kills();
    let site = Site::build(&["plain"; LANES]);
    let server = site.start();
    let begun = Instant::now();
    thread::scope(|scope| {
        for (lane, mark) in site.marks.iter().enumerate() {
            let site = &site;
            let share = kills / LANES + usize::from(lane < kills % LANES);
            scope.spawn(move || kill_again_and_again(site, mark, share));
        }
    });
    let took = begun.elapsed();
    let ended = server.terminate();
    assert!(ended.status.success(), "not in good order: {ended:?}");
    let gone = site.nobody_is_left();
    crate::tell(&format!(
        "children: {kills} kills in {took:.1?}, the server ended in {:.1?}, nobody left {gone:.1?} \
         after that",
        ended.took
    ));
}

#[test]
fn a_killed_server_leaves_no_upstream_behind() {
    let _turn = crate::my_turn();
    let site = Site::build(&["plain", "stubborn"]);
    site.start().kill9();
    let gone = site.nobody_is_left();
    crate::tell(&format!("children: nobody left {gone:.1?} after the server was killed"));
}

#[test]
fn a_server_that_stops_ends_upstreams_that_do_not_want_to() {
    let _turn = crate::my_turn();
    let site = Site::build(&["stubborn", "plain", "stubborn"]);
    let ended = site.start().terminate();
    assert!(ended.status.success(), "not in good order: {ended:?}");
    site.nobody_is_left();
}
