//! The step `upstreams`: servers that others wrote, all behind one `waypost up`, called through it
//! by a client of both eras. The servers are scripts in `crates/testkit/upstreams` around official
//! SDKs and FastMCP, and the filesystem server from npm; `check.py` there is the client. A service
//! behind a REST provider comes after them, then servers that take long to start, and last the tool
//! that readers of the README write.

mod rest;
mod starting;

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::child::{self, Server};
use crate::shell::{self, Failure};
use crate::steps::interpreters;
use crate::steps::product;

const LISTENING: &str = "listening on ";
const ERAS: &[&str] = &["legacy", "modern"];
/// The filesystem server, below `node_modules`.
const FILES: &[&str] = &["@modelcontextprotocol", "server-filesystem", "dist", "index.js"];
/// The script has a deadline of its own; this is for one that does not keep it.
const RUN_WAIT: Duration = Duration::from_secs(1_800);

const CONNECT_TIMEOUT_MS: u64 = 60_000;
/// A call that hangs is cancelled long before, on a busy machine too.
const CALL_TIMEOUT_MS: u64 = 120_000;

/// How an upstream is reached.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Http,
    Stdio,
}

/// What an operator says of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Said {
    /// Its word is taken for what its tools do, and its calls are not recorded.
    Trusted,
    /// Nothing: what its tools do is assumed to be the worst, and every call is a run.
    Nothing,
}

/// An upstream: its name in the settings, the folder of its script, and how it is used.
struct Upstream {
    name: &'static str,
    script: &'static str,
    way: Way,
    said: Said,
}

const fn upstream(name: &'static str, script: &'static str, way: Way, said: Said) -> Upstream {
    Upstream { name, script, way, said }
}

/// All that have the tools of the scripts.
const UPSTREAMS: &[Upstream] = &[
    upstream("python1", "python1/server.py", Way::Http, Said::Trusted),
    upstream("python2", "python2/server.py", Way::Http, Said::Trusted),
    upstream("fastmcp", "fastmcp/server.py", Way::Http, Said::Trusted),
    upstream("ts_legacy", "ts_legacy/server.mjs", Way::Http, Said::Trusted),
    upstream("ts_modern", "ts_modern/server.mjs", Way::Stdio, Said::Trusted),
    upstream("python1_pipe", "python1/server.py", Way::Stdio, Said::Nothing),
    upstream("python2_pipe", "python2/server.py", Way::Stdio, Said::Nothing),
];

/// `cargo xtask upstreams`: builds what it needs, then does what the step does.
pub fn run_alone(root: &Path) -> Result<(), Failure> {
    let target = shell::target_folder(root)?;
    product::build(root)?;
    run(root, &target)
}

/// Starts all of them and the built server before them, and lets the client of each era at it.
pub fn run(root: &Path, target: &Path) -> Result<(), Failure> {
    let folder = target.join("upstreams");
    // The filesystem server serves real paths only.
    child::create_folder(&folder.join("files"))?;
    let files = fs::canonicalize(folder.join("files"))
        .map_err(|error| Failure::new(format!("no folder for files: {error}")))?;
    let mut servers = Vec::new();
    let mut entries = Vec::new();
    let mut names = Vec::new();
    for upstream in UPSTREAMS {
        let words = ready(upstream, root, target)?;
        let name = upstream.name;
        entries.push(match upstream.way {
            Way::Stdio => {
                names.push(OsString::from(name));
                child_entry(name, &words)
            }
            Way::Http => {
                let log = folder.join(format!("{name}.log"));
                let server = Server::start(&mut command(&words), LISTENING, &log)?;
                let entry =
                    format!("\"{name}\": {{\"type\": \"http\", \"url\": {:?}}}", server.url);
                names.push(OsString::from(format!("{name}={}", server.url)));
                servers.push(server);
                entry
            }
        });
    }
    let node = interpreters::node(root, target)?;
    let mut program = node.folder.join("node_modules");
    program.extend(FILES);
    entries.push(child_entry("files", &[node.program, program, files.clone()]));
    let list = format!("{{\"mcpServers\": {{{}}}}}", entries.join(", "));
    let python = interpreters::python(&interpreters::peers_folder(root), target, "python2")?;
    let client = [python, interpreters::upstreams_folder(root).join("check.py")];
    let server = product::start(target, &folder, &settings(), &list)?;
    let mut words = vec![OsString::from(format!("{}/mcp", server.url)), files.into_os_string()];
    words.extend(names);
    let checked = check(&client, &folder, &words);
    // The others go with their values: they have nothing to say at their end.
    server.stop_after(checked)?;
    rest::run(root, target)?;
    starting::run(root, target)?;
    readme_tool(root, target)
}

/// What the README has its readers type around `stock.py`, as it stands there.
const INIT: &str = "waypost init shop";
const ADD: &str = "waypost mcp add stock -- python3 stock.py";
const TEST: &str = "waypost mcp test stock";
const CALL: &str = "waypost tool call stock.count article=chair";
/// The tool that is there then.
const STOCK_TOOL: &str = "stock.count";

/// The tool that the README has its readers write, taken from there, added and called as it says.
fn readme_tool(root: &Path, target: &Path) -> Result<(), Failure> {
    let folder = target.join("upstreams").join("readme");
    let around = product::project(&folder)?;
    let readme = readme_of(root)?;
    let python = interpreters::python(&interpreters::upstreams_folder(root), target, "fastmcp")?;
    let reader = Reader { target, folder: &folder, readme: &readme, path: first_in_path(&python)? };
    reader.types(INIT, &around)?;
    let shop = around.join("shop");
    child::write(&shop.join("stock.py"), stock_script(&readme)?)?;
    reader.types(ADD, &shop)?;
    reader.types(TEST, &shop)?;
    let mut up = product::command(target, &folder);
    up.current_dir(&shop).env("PATH", &reader.path);
    let server = Server::start(&mut up, product::LISTENING, &folder.join("waypost.log"))?;
    let called =
        product::wait_for_tool(&server.url, STOCK_TOOL).and_then(|()| reader.counts(&shop));
    server.stop_after(called)?;
    println!("   the tool of the README: added, tested and called");
    Ok(())
}

/// A reader who follows the README, with FastMCP installed.
struct Reader<'a> {
    target: &'a Path,
    folder: &'a Path,
    readme: &'a str,
    path: OsString,
}

impl Reader<'_> {
    /// What a command of the README prints, typed in this folder.
    fn types(&self, command: &str, folder: &Path) -> Result<String, Failure> {
        if !self.readme.contains(command) {
            let what = format!("the README has no command `{command}` any more; correct this step");
            return Err(Failure::new(what));
        }
        self.runs(command, folder)
    }

    fn runs(&self, command: &str, folder: &Path) -> Result<String, Failure> {
        let mut program = product::program(self.target, self.folder);
        program.args(command.split_whitespace().skip(1));
        shell::output_of(command, program.current_dir(folder).env("PATH", &self.path))
    }

    /// Calls the tool as the README says, and for another article, of which there is none.
    fn counts(&self, shop: &Path) -> Result<(), Failure> {
        let chairs = self.types(CALL, shop)?;
        let tables = self.runs(&CALL.replace("chair", "table"), shop)?;
        if says_only(&chairs, '4') && says_only(&tables, '0') {
            return Ok(());
        }
        Err(Failure::new(format!("4 chairs and 0 tables are in stock, not {chairs} and {tables}")))
    }
}

/// Whether a number is this digit and nothing else, whatever is around it.
fn says_only(answer: &str, digit: char) -> bool {
    let mut digits = answer.chars().filter(char::is_ascii_digit).peekable();
    digits.peek().is_some() && digits.all(|found| found == digit)
}

/// The program that the README shows.
fn stock_script(readme: &str) -> Result<&str, Failure> {
    let blocks = readme.split("```python\n").skip(1);
    let mut texts = blocks.filter_map(|rest| rest.split_once("```").map(|(text, _)| text));
    let found = texts.find(|text| text.contains("FastMCP(\"stock\")"));
    let why = "the README shows no `stock.py` any more; correct this step";
    found.ok_or_else(|| Failure::new(why))
}

fn readme_of(root: &Path) -> Result<String, Failure> {
    let page = root.join("README.md");
    fs::read_to_string(&page)
        .map_err(|error| Failure::new(format!("cannot read `{}`: {error}", page.display())))
}

/// A `PATH` on which the programs beside this one are found first.
fn first_in_path(program: &Path) -> Result<OsString, Failure> {
    let others = env::var_os("PATH").unwrap_or_default();
    let beside = program.parent().map(Path::to_path_buf);
    env::join_paths(beside.into_iter().chain(env::split_paths(&others))).map_err(|error| {
        Failure::new(format!("`{}` is no folder of a PATH: {error}", program.display()))
    })
}

/// What `waypost.toml` says of those in `.mcp.json`, and how long they may take: on a busy machine
/// an interpreter needs long to start, and all of them start at once.
fn settings() -> String {
    let trusted = UPSTREAMS.iter().filter(|upstream| upstream.said == Said::Trusted);
    let trusted: String = trusted
        .map(|upstream| {
            format!("[mcp.servers.{}]\ntrusted = true\njournal = false\n", upstream.name)
        })
        .collect();
    let limits = format!(
        "[limits]\nupstream_connect_timeout_ms = {CONNECT_TIMEOUT_MS}\n\
         call_timeout_ms = {CALL_TIMEOUT_MS}\n"
    );
    format!("{limits}[tools]\ndemo = true\n{trusted}")
}

/// The words that start an upstream, with what it needs installed.
fn ready(upstream: &Upstream, root: &Path, target: &Path) -> Result<Vec<PathBuf>, Failure> {
    let script = interpreters::upstreams_folder(root).join(upstream.script);
    let (folder, file) = upstream.script.split_once('/').unwrap_or((upstream.script, ""));
    if file.ends_with(".mjs") {
        let node = interpreters::node(root, target)?;
        let copy = interpreters::node_script(&node, &script, &format!("{folder}_server"))?;
        return Ok(vec![node.program, copy]);
    }
    // Scripts around an SDK that a peer uses too run in the peer's environment.
    let peers = interpreters::peers_folder(root);
    let shared = peers.join(folder).join("requirements.txt").exists();
    let lists = if shared { peers } else { interpreters::upstreams_folder(root) };
    let python = interpreters::python(&lists, target, folder)?;
    let way = if upstream.way == Way::Http { "http" } else { "stdio" };
    Ok(vec![python, script, PathBuf::from(way)])
}

fn command(words: &[PathBuf]) -> Command {
    let mut words = words.iter();
    let mut command = Command::new(words.next().map_or(Path::new(""), PathBuf::as_path));
    command.args(words);
    // What a script prints must be in its log even when it is ended.
    command.env("PYTHONUNBUFFERED", "1");
    command
}

/// The entry of a child process in `.mcp.json`.
fn child_entry(name: &str, words: &[PathBuf]) -> String {
    // Rust quotes a path as JSON does, as long as it has no control characters.
    let quoted: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
    let Some((command, args)) = quoted.split_first() else {
        return format!("\"{name}\": {{}}");
    };
    let args = args.join(", ");
    format!("\"{name}\": {{\"type\": \"stdio\", \"command\": {command}, \"args\": [{args}]}}")
}

/// Lets the client at what these words name, in one era after the other.
fn check(client: &[PathBuf], folder: &Path, words: &[OsString]) -> Result<(), Failure> {
    for era in ERAS {
        let mut command = command(client);
        command.arg(era).args(words);
        let log = folder.join(format!("check-{era}.log"));
        let name = format!("a {era} client");
        let passed = child::checks_within(&name, &mut command, &log, RUN_WAIT)?;
        println!("   {name} with {} upstreams: {passed} checks", UPSTREAMS.len() + 1);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_json() {
        let words = [PathBuf::from("/n/node"), PathBuf::from("/a \"b\"/c.mjs")];
        assert_eq!(
            child_entry("x", &words),
            r#""x": {"type": "stdio", "command": "/n/node", "args": ["/a \"b\"/c.mjs"]}"#
        );
    }

    #[test]
    fn the_readme_has_the_tool_and_its_commands() {
        let readme = include_str!("../../../../README.md");
        assert!(stock_script(readme).is_ok_and(|text| text.contains("server.run()")));
        for command in [INIT, ADD, TEST, CALL] {
            assert!(readme.contains(command), "{command}");
        }
        assert!(says_only("4\n", '4') && says_only("{\n  \"result\": 4\n}\n", '4'));
        assert!(!says_only("40\n", '4') && !says_only("none", '4'));
    }

    #[test]
    fn only_some_are_trusted() {
        let settings = settings();
        assert!(settings.contains("[mcp.servers.fastmcp]\ntrusted = true\njournal = false\n"));
        assert!(!settings.contains("_pipe"), "{settings}");
    }
}
