//! The step `upstreams`: servers that others wrote, all behind one `waypost up`, called through it
//! by a client of both eras. The servers are scripts in `crates/testkit/upstreams` around official
//! SDKs and FastMCP, and the filesystem server from npm; `check.py` there is the client. A service
//! behind a REST provider comes after them.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::child::{self, Server};
use crate::shell::{self, Failure};
use crate::steps::interpreters;
use crate::steps::product;
use crate::steps::upstreams_rest;

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
    let (mut servers, mut entries, mut names) = (Vec::new(), Vec::new(), Vec::new());
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
    upstreams_rest::run(root, target)
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
    fn only_some_are_trusted() {
        let settings = settings();
        assert!(settings.contains("[mcp.servers.fastmcp]\ntrusted = true\njournal = false\n"));
        assert!(!settings.contains("_pipe"), "{settings}");
    }
}
