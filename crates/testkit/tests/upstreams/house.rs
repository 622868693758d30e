//! A server with two upstreams in its `.mcp.json`: `good`, which does what it should, and `bad`.

use serde_json::{Value, json};
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use testkit::caller::{Caller, Era, Outcome};
use testkit::fuzz::hostile::{Kind, of};
use testkit::harness::{DEMO_TOOLS, Project, Server, StartOptions, wait_for};
use testkit::http::NoAnswer;
use testkit::upstream::{Upstream, program};

/// How long anything may take that should come to be.
pub const LIMIT: Duration = Duration::from_secs(240);
/// How long a list may take, and a call of who behaves well, on a busy machine: no upstream is
/// asked for a list, and none waits for another.
pub const PROMPT: Duration = Duration::from_secs(60);
/// How long the server tries to make sense of the bad one: whoever waited for that would not be
/// prompt.
const CONNECT_TIMEOUT_MS: u64 = 240_000;
/// Tools of the bad one that may never be answered, and how long the server waits for them. One
/// that must be answered is not among them: a busy machine may need longer.
const LIMITED: [&str; 7] = ["hang", "huge", "other_id", "garbage", "half", "no_result", "demand"];
pub const CALL_TIMEOUT_MS: u64 = 1_500;
/// How long it waits for a call that nobody limits: much longer than any test does.
const UNLIMITED_TIMEOUT_MS: u64 = 600_000;

/// How the bad upstream is reached, and which era it speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Over HTTP.
    Http(&'static str),
    /// As a child process.
    Stdio(&'static str),
}

/// Every way.
pub const WAYS: [Way; 4] =
    [Way::Http("legacy"), Way::Http("modern"), Way::Stdio("legacy"), Way::Stdio("modern")];

/// The server, its project and its upstreams; all end with this.
pub struct House {
    // Before the folder: a server that still runs writes there.
    pub server: Server,
    good: Upstream,
    bad: Option<Upstream>,
    pub folder: TempDir,
}

impl House {
    /// Starts everything; `flags` say what is bad about the bad one.
    pub fn start(way: Way, flags: &[&str]) -> Self {
        Self::build(way, flags, &limited())
    }

    /// The same with a server that waits long for every call.
    pub fn patient(way: Way) -> Self {
        Self::build(way, &[], "")
    }

    /// The same with a server that waits long for a call that hangs: clients give it up before.
    pub fn outlasting(way: Way) -> Self {
        let others = LIMITED.iter().filter(|tool| **tool != "hang").map(|tool| limit(tool));
        Self::build(way, &[], &others.collect::<String>())
    }

    /// The same with a bad one whose calls are not recorded.
    pub fn unrecorded(way: Way) -> Self {
        Self::unrecorded_with(way, &[])
    }

    /// The same; `flags` say what is bad about the bad one.
    pub fn unrecorded_with(way: Way, flags: &[&str]) -> Self {
        Self::build(way, flags, &format!("{}[mcp.servers.bad]\njournal = false\n", limited()))
    }

    /// The same with a bad one out of the hostile corpus.
    pub fn hostile(way: Way) -> Self {
        let names = of(Kind::Answered).map(|case| limit(case.name));
        Self::build(way, &["--bad", "hostile"], &names.collect::<String>())
    }

    /// The same with these settings, too.
    pub fn beside(way: Way, settings: &str) -> Self {
        Self::build(way, &[], &format!("{}{settings}", limited()))
    }

    fn build(way: Way, flags: &[&str], settings: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let good = Upstream::start(folder.path(), &[]);
        let (bad, entry) = match way {
            Way::Http(era) => {
                let bad = Upstream::start(folder.path(), &with_era(era, flags));
                let entry = json!({"type": "http", "url": bad.url()});
                (Some(bad), entry)
            }
            Way::Stdio(era) => (None, child(folder.path(), &with_era(era, flags))),
        };
        let servers = json!({"good": {"type": "http", "url": good.url()}, "bad": entry});
        // Each bad call must reach the bad one, however many of them came before.
        let limits = format!(
            "[limits]\nbreaker_failures = 0\ncall_timeout_ms = {UNLIMITED_TIMEOUT_MS}\n\
             upstream_connect_timeout_ms = {CONNECT_TIMEOUT_MS}\n"
        );
        let toml = format!("{limits}{DEMO_TOOLS}{settings}");
        let project = Project::write(&folder.path().join("project"), &[], &toml);
        let text = json!({"mcpServers": servers}).to_string();
        fs::write(project.path().join(".mcp.json"), text).unwrap();
        let data = folder.path().join("data");
        let mut server =
            Server::start(&StartOptions { project: project.path(), data: &data, args: &[] });
        server.wait_until_ready();
        let house = Self { server, good, bad, folder };
        // Ready does not mean that every upstream was heard, and each test counts on this one.
        house.wait_for_tool("good.echo");
        house
    }

    /// Where the server listens.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// A client that can do nothing for a call.
    pub fn caller(&self, era: Era) -> Caller {
        Caller::new(self.address(), era, json!({}))
    }

    /// Waits until a tool is listed.
    pub fn wait_for_tool(&self, name: &str) {
        let mut caller = self.caller(Era::Modern);
        wait_for(&format!("`{name}` in the list"), LIMIT, || {
            caller.tools().iter().any(|tool| tool == name).then_some(())
        });
    }

    /// Who behaves well is heard as if there were nobody else.
    pub fn others_are_well(&self, after: &str) {
        for era in [Era::Modern, Era::Legacy] {
            let mut caller = self.caller(era);
            let said = promptly(after, || caller.call("good.echo", json!({"text": "here"})));
            assert_eq!(said.words(), "here", "after {after}");
            let sum = promptly(after, || caller.call("math__add", json!({"a": 2, "b": 3})));
            assert_eq!(sum.words(), "5", "after {after}");
        }
    }

    /// The server's resident memory in bytes.
    pub fn rss_bytes(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.server.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1024
    }

    /// How many files and sockets the server has open.
    pub fn open_files(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.server.pid())).unwrap().count()
    }

    /// Ends the bad one over HTTP; another one in its place speaks this era.
    pub fn replace_bad(&mut self, era: &'static str) {
        let port = self.bad.take().unwrap().port().to_string();
        let flags = ["--era", era, "--port", port.as_str()];
        self.bad = Some(Upstream::start(self.folder.path(), &flags));
    }

    /// Ends both over HTTP for good.
    pub fn end_upstreams(self) -> (Server, TempDir) {
        drop((self.good, self.bad));
        (self.server, self.folder)
    }
}

/// What came of a call that must not take long.
pub fn promptly(what: &str, call: impl FnOnce() -> Result<Outcome, NoAnswer>) -> Outcome {
    let begun = Instant::now();
    let outcome = call().unwrap_or_else(|error| panic!("{what}: {error}"));
    let took = begun.elapsed();
    assert!(took < PROMPT, "{what}: took {took:?}");
    outcome
}

/// The settings that end calls which hang soon.
fn limited() -> String {
    LIMITED.iter().map(|tool| limit(tool)).collect()
}

fn limit(tool: &str) -> String {
    format!("[tools.limits.\"bad.{tool}\"]\ntimeout_ms = {CALL_TIMEOUT_MS}\n")
}

/// The entry of a child process with this folder's name in its environment.
fn child(folder: &Path, flags: &[&str]) -> Value {
    let mut args = vec!["--stdio"];
    args.extend(flags);
    let env = json!({"WAYPOST_TEST_FOLDER": folder});
    json!({"type": "stdio", "command": program(), "args": args, "env": env})
}

fn with_era<'a>(era: &'a str, flags: &[&'a str]) -> Vec<&'a str> {
    let mut all = vec!["--era", era];
    all.extend(flags);
    all
}
