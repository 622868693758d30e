//! `waypost mcp snippet`: the entry for a client's settings. By URL where the client supports it,
//! since then all clients share one server; otherwise by command.

use crate::commands::word;
use crate::context::Context;
use crate::environment::locations::project_folder;
use crate::exit::{Exit, Failure, Result};
use crate::remote::client::Client;
use crate::settings::Settings;
use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  waypost mcp snippet claude-code
  waypost mcp snippet cursor > .cursor/mcp.json
  waypost mcp snippet codex >> ~/.codex/config.toml
  waypost mcp snippet claude-desktop shop
  waypost mcp snippet vscode --server https://wp.example.com";

/// What `waypost mcp snippet` takes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SnippetArgs {
    #[command(flatten)]
    pub(super) client: ClientArgs,
}

/// Which client, and how it reaches us.
#[derive(Debug, Args)]
pub(super) struct ClientArgs {
    /// The client
    #[arg(value_enum)]
    pub(super) client: Program,
    /// The project's folder [default: this one, or the nearest above it with a waypost.toml]
    pub(super) dir: Option<PathBuf>,
    /// Let the client start `waypost mcp serve` instead of connecting to a server that runs
    #[arg(long)]
    stdio: bool,
}

// Without words of their own: a name says it all, and help keeps them on one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Program {
    ClaudeCode,
    ClaudeDesktop,
    Cursor,
    Vscode,
    Codex,
}

impl Program {
    /// The file that takes the snippet.
    pub(super) fn file(self) -> &'static str {
        match self {
            Program::ClaudeCode => ".mcp.json",
            Program::ClaudeDesktop => "claude_desktop_config.json",
            Program::Cursor => ".cursor/mcp.json",
            Program::Vscode => ".vscode/mcp.json",
            Program::Codex => "~/.codex/config.toml",
        }
    }

    /// Where that file is.
    fn place(self) -> &'static str {
        match self {
            Program::ClaudeCode => "in the folder that you work in",
            Program::ClaudeDesktop => "under Settings, Developer, Edit Config; then restart it",
            Program::Cursor => "in the folder that you work in, or in your home folder",
            Program::Vscode => "in the folder that you work in",
            Program::Codex => "at its end",
        }
    }

    /// That file, from where we are; none where the home folder is not known.
    pub(super) fn path(self) -> Option<PathBuf> {
        let home = std::env::home_dir;
        match self {
            Program::ClaudeCode | Program::Cursor | Program::Vscode => Some(self.file().into()),
            Program::Codex => home().map(|home| home.join(".codex").join("config.toml")),
            Program::ClaudeDesktop if cfg!(target_os = "macos") => {
                home().map(|home| home.join("Library/Application Support/Claude").join(self.file()))
            }
            Program::ClaudeDesktop if cfg!(windows) => {
                home().map(|home| home.join("AppData/Roaming/Claude").join(self.file()))
            }
            Program::ClaudeDesktop => {
                home().map(|home| home.join(".config/Claude").join(self.file()))
            }
        }
    }

    /// How that file is written.
    pub(super) fn format(self) -> &'static str {
        if self == Program::Codex { "toml" } else { "json" }
    }

    /// Whether it connects to a URL.
    fn takes_url(self) -> bool {
        self != Program::ClaudeDesktop
    }

    /// The member of its settings that lists servers.
    fn list(self) -> &'static str {
        if self == Program::Vscode { "servers" } else { "mcpServers" }
    }

    /// The word by which it tells ways apart, if it wants one.
    fn kind(self, way: &ClientTransport) -> Option<&'static str> {
        match (self, way) {
            (Program::ClaudeCode | Program::Vscode, ClientTransport::Url(_)) => Some("http"),
            (Program::Vscode, ClientTransport::Command(_)) => Some("stdio"),
            _ => None,
        }
    }
}

/// How a client reaches us.
#[derive(Debug)]
pub(super) enum ClientTransport {
    /// To a server that runs.
    Url(String),
    /// It starts `waypost` with these arguments.
    Command(Vec<String>),
}

/// The name under which clients know us.
pub(super) const NAME: &str = "waypost";

/// Prints the snippet, and where it belongs.
pub(super) fn run(args: &SnippetArgs, context: &Context) -> Result<Exit> {
    let program = args.client.client;
    let way = way(&args.client, context)?;
    let snippet = snippet(program, &way);
    let command = command(program, &way);
    let output = context.output;
    let mut document = json!({
        "client": word(&program),
        "file": program.file(),
        "format": program.format(),
        "snippet": snippet,
    });
    if let Some(command) = &command {
        document["command"] = json!(command);
    }
    output.data(&document, &snippet)?;
    output.talk(&format!("put this into {}, {}", program.file(), program.place()));
    if let Some(command) = command {
        output.talk(&format!("or run: {command}"));
    }
    if let ClientTransport::Command(_) = way
        && let Ok(path) = std::env::current_exe()
    {
        let path = path.display();
        output.talk(&format!("if the client does not find `{NAME}`, write `{path}` instead"));
    }
    Ok(Exit::Ok)
}

/// How the client reaches us.
pub(super) fn way(args: &ClientArgs, context: &Context) -> Result<ClientTransport> {
    if args.client.takes_url() && !args.stdio {
        return url(context).map(ClientTransport::Url);
    }
    arguments(args, context).map(ClientTransport::Command)
}

/// The endpoint of the server that the command line names, else of the one that this project is.
fn url(context: &Context) -> Result<String> {
    if context.has_named_server() {
        return Ok(Client::new(&context.server.url)?.mcp_url().to_string());
    }
    let settings = Settings::load(context.project.as_deref(), &context.environment)?;
    let described = settings.served_at().ok_or_else(|| {
        let what = "the settings leave the server's port to the system";
        Failure::usage(format!("{what}, so no URL can be written down"))
            .hint("name the server: `--server http://127.0.0.1:PORT`")
    })?;
    Ok(Client::new(&described.url)?.mcp_url().to_string())
}

/// What the client starts: a bridge to the server that the command line names, else the project.
fn arguments(args: &ClientArgs, context: &Context) -> Result<Vec<String>> {
    let mut arguments = vec!["mcp".to_owned(), "serve".to_owned(), "--stdio".to_owned()];
    if context.has_named_server() {
        // Refuses what is no address.
        Client::new(&context.server.url)?;
        arguments.extend(["--server".to_owned(), context.server.url.clone()]);
    } else {
        let folder = project_folder(args.dir.as_deref());
        // A client starts us in a folder of its own.
        let folder = std::path::absolute(&folder).unwrap_or(folder);
        arguments.push(folder.display().to_string());
    }
    Ok(arguments)
}

/// The text for the client's settings.
pub(super) fn snippet(program: Program, way: &ClientTransport) -> String {
    if program.format() == "toml" {
        return as_toml(way);
    }
    let (url, args) = match way {
        ClientTransport::Url(url) => (Some(url.as_str()), None),
        ClientTransport::Command(arguments) => (None, Some(arguments.as_slice())),
    };
    let entry = Entry { kind: program.kind(way), url, command: args.map(|_| NAME), args };
    let servers = BTreeMap::from([(program.list(), BTreeMap::from([(NAME, entry)]))]);
    // Cannot fail: these are texts.
    serde_json::to_string_pretty(&servers).unwrap_or_default()
}

/// One server in a client's list, in the order in which people write it.
#[derive(Serialize)]
struct Entry<'a> {
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<&'a [String]>,
}

/// A text of TOML is written as JSON writes it.
fn as_toml(way: &ClientTransport) -> String {
    let members = match way {
        ClientTransport::Url(url) => format!("url = {}", json!(url)),
        ClientTransport::Command(arguments) => {
            let quoted: Vec<String> =
                arguments.iter().map(|word| json!(word).to_string()).collect();
            format!("command = {}\nargs = [{}]", json!(NAME), quoted.join(", "))
        }
    };
    format!("[mcp_servers.{NAME}]\n{members}")
}

/// The client's own command that does the same, if it has one.
fn command(program: Program, way: &ClientTransport) -> Option<String> {
    let add = match program {
        Program::ClaudeCode => "claude mcp add",
        Program::Codex => "codex mcp add",
        Program::ClaudeDesktop | Program::Cursor | Program::Vscode => return None,
    };
    Some(match way {
        ClientTransport::Url(url) if program == Program::Codex => {
            format!("{add} {NAME} --url {}", shell(url))
        }
        ClientTransport::Url(url) => format!("{add} --transport http {NAME} {}", shell(url)),
        ClientTransport::Command(arguments) => {
            let quoted: Vec<String> = arguments.iter().map(|word| shell(word)).collect();
            format!("{add} {NAME} -- {NAME} {}", quoted.join(" "))
        }
    })
}

/// A word as a shell takes it.
fn shell(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn url() -> ClientTransport {
        ClientTransport::Url("http://127.0.0.1:8420/mcp".to_owned())
    }

    fn started() -> ClientTransport {
        let words = ["mcp", "serve", "--stdio", "/home/a b/shop"];
        ClientTransport::Command(words.map(str::to_owned).to_vec())
    }

    #[test]
    fn every_client_gets_the_shape_that_it_reads() {
        let read = |program, way: &ClientTransport| -> Value {
            serde_json::from_str(&snippet(program, way)).unwrap()
        };
        let http = json!({"type": "http", "url": "http://127.0.0.1:8420/mcp"});
        let bare = json!({"url": "http://127.0.0.1:8420/mcp"});
        let stdio = json!({"command": "waypost",
            "args": ["mcp", "serve", "--stdio", "/home/a b/shop"]});
        assert_eq!(read(Program::ClaudeCode, &url()), json!({"mcpServers": {"waypost": http}}));
        assert_eq!(read(Program::Vscode, &url()), json!({"servers": {"waypost": http}}));
        assert_eq!(read(Program::Cursor, &url()), json!({"mcpServers": {"waypost": bare}}));
        for program in [Program::ClaudeCode, Program::ClaudeDesktop, Program::Cursor] {
            assert_eq!(read(program, &started()), json!({"mcpServers": {"waypost": stdio}}));
        }
        let vscode = read(Program::Vscode, &started());
        assert_eq!(vscode["servers"]["waypost"]["type"], "stdio");
    }

    #[test]
    fn codex_reads_toml() {
        let read = |way: &ClientTransport| -> Value {
            toml::from_str(&snippet(Program::Codex, way)).unwrap()
        };
        let served = |members: Value| json!({"mcp_servers": {"waypost": members}});
        assert_eq!(read(&url()), served(json!({"url": "http://127.0.0.1:8420/mcp"})));
        let stdio = json!({"command": "waypost",
            "args": ["mcp", "serve", "--stdio", "/home/a b/shop"]});
        assert_eq!(read(&started()), served(stdio));
    }

    #[test]
    fn shell_words_are_quoted() {
        assert_eq!(
            command(Program::ClaudeCode, &started()).unwrap(),
            "claude mcp add waypost -- waypost mcp serve --stdio '/home/a b/shop'"
        );
        assert_eq!([shell("it's"), shell(""), shell("a/b")], ["'it'\\''s'", "''", "a/b"]);
        assert_eq!(command(Program::Cursor, &url()), None);
    }
}
