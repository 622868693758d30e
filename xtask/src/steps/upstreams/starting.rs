//! The part of the step `upstreams` with servers that take long to start and have no setting for
//! it: one that `npx` downloads first, one that `uvx` does, and a script that sleeps for 30 s.
//! They are connected to on an idle machine, and once more beside a process on each core, where all
//! of them sleep first. Between the two a model drafts a plan that reads the result of a tool.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::child::{self, Server};
use crate::shell::{self, Failure};
use crate::steps::interpreters;
use crate::steps::product;
use crate::steps::upstreams::{LISTENING, child_entry, readme_of, says_only, stock_script};

/// The version is that of the peers' list; `npx` downloads it all the same.
const EVERYTHING: &str = "@modelcontextprotocol/server-everything@2026.8.31";
/// What starts each of them: it notes the start, sleeps, and becomes the server.
const STARTER: &str = r#"echo started >> "$1"; sleep "$2"; shift 2; exec "$@""#;
const NAMES: [&str; 3] = ["npx", "uvx", "stock"];
/// A tool of each, with arguments and what its answer has.
const CALLS: [(&str, &str, &str); 3] = [
    ("npx.echo", "message=hello", "hello"),
    ("uvx.count", "article=chair", "4"),
    ("stock.count", "article=chair", "4"),
];
/// The longest that a start may take without a setting, twice.
const READY_WAIT: Duration = Duration::from_secs(240);
const POLL: Duration = Duration::from_millis(500);

/// The tool that the plan reads, and the plan.
const TOOL: &str = "stock.count";
const PLAN: &str = "stock/look";

/// How the machine is, and for how many seconds each of `NAMES` sleeps before it starts.
struct Variant {
    name: &'static str,
    is_busy: bool,
    sleeps: [&'static str; 3],
}

const VARIANTS: [Variant; 2] = [
    Variant { name: "idle", is_busy: false, sleeps: ["0", "0", "30"] },
    Variant { name: "busy", is_busy: true, sleeps: ["30", "30", "30"] },
];

/// Connects to all of them in both variants.
pub fn run(root: &Path, target: &Path) -> Result<(), Failure> {
    let folder = target.join("upstreams").join("starting");
    if folder.exists() {
        // What an earlier run downloaded would be found again.
        fs::remove_dir_all(&folder).map_err(|error| {
            Failure::new(format!("cannot remove `{}`: {error}; remove it", folder.display()))
        })?;
    }
    child::create_folder(&folder)?;
    let commands = commands(root, target, &folder)?;
    let model = model(root, target, &folder)?;
    let settings = format!(
        "[models.default]\nprovider = \"openai\"\nmodel = \"scripted\"\napi_key = \"none\"\n\
         base_url = \"{}\"\n",
        model.url
    );
    for variant in &VARIANTS {
        let begun = Instant::now();
        let all = NAMES.into_iter().zip(&commands).zip(variant.sleeps);
        let entries: Vec<String> = all
            .map(|((name, words), sleep)| {
                let starts = starts(&folder, variant, name);
                let mut started: Vec<PathBuf> =
                    vec!["sh".into(), "-c".into(), STARTER.into(), "sh".into()];
                started.push(starts);
                started.push(sleep.into());
                started.extend(words.iter().cloned());
                child_entry(name, &started)
            })
            .collect();
        let list = format!("{{\"mcpServers\": {{{}}}}}", entries.join(", "));
        let burners = if variant.is_busy { Burner::on_each_core()? } else { Vec::new() };
        let server = product::start(target, &folder, &settings, &list)?;
        let user = User { target, folder: &folder, url: server.url.clone() };
        let checked = user.connects(variant).and_then(|()| match variant.is_busy {
            true => Ok(()),
            false => user.drafts(),
        });
        drop(burners);
        server.stop_after(checked)?;
        let seconds = begun.elapsed().as_secs();
        println!("   servers that take long to start, {}: connected, {seconds} s", variant.name);
    }
    Ok(())
}

/// The words of each of `NAMES`. What is downloaded goes into the folder.
fn commands(root: &Path, target: &Path, folder: &Path) -> Result<[Vec<PathBuf>; 3], Failure> {
    let lists = interpreters::upstreams_folder(root);
    let python = interpreters::python(&lists, target, "fastmcp")?;
    let uvx = interpreters::python(&lists, target, "uv")?.with_file_name("uvx");
    let readme = readme_of(root)?;
    let script = stock_script(&readme)?;
    let stock = folder.join("stock.py");
    child::write(&stock, script)?;
    // `fastmcp run` runs the server by itself.
    let served = folder.join("served.py");
    child::write(&served, &script.replace("server.run()", ""))?;
    let cache = |variable: &str, name: &str| {
        PathBuf::from(format!("{variable}={}", folder.join(name).display()))
    };
    let npx = vec![
        "env".into(),
        cache("npm_config_cache", "npm"),
        "npx".into(),
        "-y".into(),
        EVERYTHING.into(),
    ];
    let uvx = vec![
        "env".into(),
        cache("UV_CACHE_DIR", "uv"),
        "UV_SYSTEM_CERTS=1".into(),
        uvx,
        "--constraints".into(),
        lists.join("fastmcp").join("requirements.txt"),
        "--from".into(),
        "fastmcp".into(),
        "fastmcp".into(),
        "run".into(),
        served,
        "--no-banner".into(),
    ];
    Ok([npx, uvx, vec![python, stock]])
}

/// The model that drafts: a script that reads in its prompt where the tool's number is.
fn model(root: &Path, target: &Path, folder: &Path) -> Result<Server, Failure> {
    let lists = interpreters::upstreams_folder(root);
    let python = interpreters::python(&lists, target, "fastmcp")?;
    let mut command = Command::new(python);
    command.arg(lists.join("fastmcp").join("drafter.py")).arg(TOOL);
    Server::start(&mut command, LISTENING, &folder.join("drafter.log"))
}

/// Where the starts of a server are noted, one in each line.
fn starts(folder: &Path, variant: &Variant, name: &str) -> PathBuf {
    folder.join(format!("{}-{name}.starts", variant.name))
}

/// A person at a terminal, in the project's folder.
struct User<'a> {
    target: &'a Path,
    folder: &'a Path,
    url: String,
}

impl User<'_> {
    fn types(&self, words: &[&str]) -> Result<String, Failure> {
        let mut program = product::program(self.target, self.folder);
        program
            .args(["--server", self.url.as_str()])
            .args(words)
            .current_dir(self.folder.join("project"));
        shell::output_of(&format!("waypost {}", words.join(" ")), &mut program)
    }

    /// All of them get ready, were shown as starting until then, and were started once.
    fn connects(&self, variant: &Variant) -> Result<(), Failure> {
        let begun = Instant::now();
        let mut seen_starting = BTreeSet::new();
        loop {
            let table = self.types(&["mcp", "ls"])?;
            let mut ready = 0;
            for name in NAMES {
                match shown(&table, name) {
                    Some(Shown::Ready) => ready += 1,
                    Some(Shown::Starting) => {
                        seen_starting.insert(name);
                    }
                    None => {
                        let what = format!("`{name}` neither starts nor is ready:\n{table}");
                        return Err(Failure::new(what));
                    }
                }
            }
            if ready == NAMES.len() {
                break;
            }
            if begun.elapsed() >= READY_WAIT {
                let seconds = READY_WAIT.as_secs();
                let what = format!("not all servers are ready within {seconds} s:\n{table}");
                return Err(Failure::new(what));
            }
            thread::sleep(POLL);
        }
        if seen_starting.len() < NAMES.len() {
            let what = format!("only {seen_starting:?} were shown as starting, not {NAMES:?}");
            return Err(Failure::new(what));
        }
        for (tool, arguments, answer) in CALLS {
            product::wait_for_tool(&self.url, tool)?;
            let answered = self.types(&["tool", "call", tool, arguments])?;
            if !answered.contains(answer) {
                return Err(Failure::new(format!("`{tool}` answers {answered}, not {answer}")));
            }
        }
        for name in NAMES {
            let noted = fs::read_to_string(starts(self.folder, variant, name)).unwrap_or_default();
            let count = noted.lines().count();
            if count != 1 {
                return Err(Failure::new(format!("`{name}` was started {count} times, not once")));
            }
        }
        Ok(())
    }

    /// A plan over the tool's result is drafted, is valid, and ends with the value once a person
    /// has approved the call.
    fn drafts(&self) -> Result<(), Failure> {
        let goal = "say how many pieces of an article are in stock";
        self.types(&["plan", "draft", goal, "--tool", TOOL, "--save", PLAN])?;
        self.types(&["plan", "validate", "."])?;
        let file = format!("plans/{PLAN}.yaml");
        // Nobody said that the tool only reads, so its call needs an approval.
        let waits = match self.types(&["plan", "run", &file, "article=chair"]) {
            Ok(answer) => answer,
            Err(failure) => failure.to_string(),
        };
        if !waits.contains("waits for a person") {
            return Err(Failure::new(format!("the plan waits for no approval: {waits}")));
        }
        let answer = self.types(&["inbox", "approve", "--last"])?;
        if says_only(&answer, '4') {
            println!("   a plan that was drafted over `{TOOL}`: valid, run, and its value read");
            return Ok(());
        }
        Err(Failure::new(format!("the drafted plan answers {answer}, not 4")))
    }
}

/// What `waypost mcp ls` says of a server that does well.
#[derive(Debug, PartialEq, Eq)]
enum Shown {
    Starting,
    Ready,
}

fn shown(table: &str, name: &str) -> Option<Shown> {
    let row = table.lines().find(|line| line.split_whitespace().next() == Some(name))?;
    let state = row.split_whitespace().nth(2)?;
    match state {
        "ready" => Some(Shown::Ready),
        "starting" if row.contains(" starting (") => Some(Shown::Starting),
        _ => None,
    }
}

/// A process that keeps a core busy until it is dropped.
struct Burner(Child);

impl Burner {
    fn on_each_core() -> Result<Vec<Self>, Failure> {
        let cores = thread::available_parallelism().map_or(2, usize::from);
        (0..cores).map(|_| Self::start()).collect()
    }

    fn start() -> Result<Self, Failure> {
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
        let child = command.spawn();
        child.map(Self).map_err(|error| Failure::new(format!("could not start `sh`: {error}")))
    }
}

impl Drop for Burner {
    fn drop(&mut self) {
        // One that is gone already has nothing left to be ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_starting_or_ready_or_not_well() {
        let table = "NAME  KIND   STATE            ERA     TOOLS  LAST ERROR\n\
                     npx   stdio  ready            legacy  16\n\
                     uvx   stdio  starting (12 s)  -       0\n\
                     bad   stdio  failing          -       0      it is ready to fail\n";
        assert_eq!(shown(table, "npx"), Some(Shown::Ready));
        assert_eq!(shown(table, "uvx"), Some(Shown::Starting));
        assert_eq!(shown(table, "bad"), None);
        assert_eq!(shown(table, "none"), None);
    }

    #[test]
    fn npx_starts_the_version_that_the_peers_pin() {
        let list = include_str!("../../../../crates/testkit/peers/package.json");
        let (name, version) = EVERYTHING.rsplit_once('@').unwrap_or_default();
        assert!(list.contains(&format!("\"{name}\": \"{version}\"")), "{list}");
    }
}
