//! The files in which clients list their MCP servers: `.mcp.json` and its kin, and Codex's TOML.
//! They are read, and never written.

use super::client_keys::{ClientKeys, CodexKeys};
use super::entry::Entry;
use super::keys::{KeyTable, Keys};
use crate::layer::{Layer, Location};
use crate::settings::{
    Each, Located, Owner, SettingsTree, Shape, Table, Text, read as read_settings,
};
use kernel::definition::plan::mistake::Mistake;

/// Some clients keep more in such a file than their servers; this is more than any of them has.
const FILE_BYTES_MAX: usize = 16 << 20;

/// The members of a JSON file that list servers: most clients', and VS Code's.
const LISTS: [&str; 2] = ["mcpServers", "servers"];

/// Keys of clients that change what a server gets or where a login goes, and that we cannot follow.
/// Our logins go where the server says, and come back to an address of ours.
const NOT_FOLLOWED: &[(&str, &str)] = &[
    ("envFile", WRITE_OUT),
    ("headersHelper", WRITE_OUT),
    ("oauth", WRITE_OUT),
    ("auth", WRITE_OUT),
    ("callbackPort", LOGIN_GOES),
    ("redirectUri", LOGIN_GOES),
    ("authServerMetadataUrl", LOGIN_GOES),
    ("authorizationUrl", LOGIN_GOES),
    ("tokenUrl", LOGIN_GOES),
    ("registrationUrl", LOGIN_GOES),
];
const WRITE_OUT: &str = "write what it stands for into `env` or `headers`";
const LOGIN_GOES: &str =
    "a login goes where the server says, and comes back to `public_url` of `[server]`";

/// What a client's file holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImportedServers {
    /// Its servers, in the order of the file.
    pub entries: Vec<Entry>,
    /// What in it has no effect here.
    pub warnings: Vec<Mistake>,
}

/// Reads the text of a client's file; `file` is how mistakes name it, and its ending says what it
/// is. In a file that has lists for each project, that of `project` counts too.
pub fn read(
    file: &str,
    text: &str,
    project: Option<&str>,
) -> Result<ImportedServers, Vec<Mistake>> {
    if text.len() > FILE_BYTES_MAX {
        let what = format!("the file has {} bytes, more than {FILE_BYTES_MAX}", text.len());
        return Err(vec![Location::whole(file).mistake(Mistake::error(what))]);
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        return Ok(ImportedServers::default());
    }
    let mut mistakes = Vec::new();
    let entries = match file.ends_with(".toml") {
        true => of_codex(file, text, &mut mistakes),
        false => of_json(file, text, project, &mut mistakes),
    };
    let entries = entries.map_err(|mistake| vec![mistake])?;
    if mistakes.iter().any(Mistake::is_error) {
        return Err(mistakes);
    }
    Ok(ImportedServers { entries, warnings: mistakes })
}

fn of_codex(file: &str, text: &str, mistakes: &mut Vec<Mistake>) -> Result<Vec<Entry>, Mistake> {
    let root = SettingsTree::of_toml(&Layer::file(file, text))?;
    let list = "mcp_servers";
    let Some(servers) = root.at(&[list]) else { return Ok(Vec::new()) };
    let servers: Each<CodexKeys> =
        read_settings(servers, &[list], Owner::Client(NOT_FOLLOWED), mistakes);
    Ok(servers.build(mistakes, entry))
}

fn of_json(
    file: &str,
    text: &str,
    project: Option<&str>,
    mistakes: &mut Vec<Mistake>,
) -> Result<Vec<Entry>, Mistake> {
    let root = SettingsTree::of_json(file, text)?;
    let Shape::Table(table) = &root.value else {
        let what = format!("the file must be a table, and is {}", root.what());
        return Err(root.place.mistake(Mistake::error(what)));
    };
    let mut entries = lists_of(table, mistakes);
    let of_project = project.and_then(|project| root.at(&["projects", project]));
    if let Some(Shape::Table(table)) = of_project.map(|own| &own.value) {
        for entry in lists_of(table, mistakes) {
            // Nearer to the project, so it overrides the one for all.
            entries.retain(|known| known.name != entry.name);
            entries.push(entry);
        }
    }
    Ok(entries)
}

fn lists_of(table: &Table, mistakes: &mut Vec<Mistake>) -> Vec<Entry> {
    let mut entries = Vec::new();
    for (key, value) in &table.0 {
        let list = key.text.as_str();
        if LISTS.contains(&list) {
            let servers: Each<ClientKeys> =
                read_settings(value, &[list], Owner::Client(NOT_FOLLOWED), mistakes);
            let auth = |(name, keys): &(Text, Located<ClientKeys>)| {
                keys.value.other_auth(&format!("{list}.{}", name.text))
            };
            mistakes.extend(servers.0.iter().filter_map(auth));
            entries.extend(servers.build(mistakes, entry));
        } else if list.replace(['_', '-'], "").eq_ignore_ascii_case(LISTS[0]) {
            let mistake = Mistake::error(format!("unknown key `{list}`"));
            let hint = format!("did you mean `{}`?", LISTS[0]);
            mistakes.push(key.mistake(mistake.hint(hint)));
        }
    }
    entries
}

fn entry<K: Into<Keys>>(name: &Text, keys: Located<K>) -> Result<Entry, Mistake> {
    Entry::new(name, KeyTable::Client, keys.value.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(entries: &[Entry]) -> Vec<String> {
        let line = |entry: &Entry| {
            let facts = entry.facts();
            let names = [facts.headers, facts.env].concat().join(",");
            format!("{} {} {} {} [{names}]", facts.name, facts.kind, facts.target, facts.origin)
        };
        entries.iter().map(line).collect()
    }

    fn wrong(file: &str, text: &str) -> Vec<String> {
        read(file, text, None).unwrap_err().iter().map(Mistake::to_string).collect()
    }

    #[test]
    fn every_clients_json_is_read() {
        let text = r#"{
  "mcpServers": {
    "git": {"command": "uvx", "args": ["mcp-git"], "env": {"A": "1"}, "autoApprove": ["x"]},
    "web": {"type": "http", "url": "https://u:p@a.example/mcp?key=k", "headers": {"X-Key": "k"}},
    "old": {"type": "sse", "url": "https://b.example/sse"},
    "surf": {"serverUrl": "https://c.example/mcp", "disabled": true}
  },
  "servers": {"code": {"type": "stdio", "command": "node"}},
  "inputs": [{"id": "x", "type": "promptString"}],
}"#;
        let found = read(".mcp.json", text, None).unwrap();
        assert_eq!(
            told(&found.entries),
            [
                "git stdio uvx .mcp.json:3 [A]",
                "web http https://a.example/mcp .mcp.json:4 [X-Key]",
                "old http https://b.example/sse .mcp.json:5 []",
                "surf http https://c.example/mcp .mcp.json:6 []",
                "code stdio node .mcp.json:8 []",
            ]
        );
        assert!(found.entries[3].is_disabled() && !found.entries[0].is_disabled());
        assert!(found.warnings.is_empty(), "{:?}", found.warnings);
        assert_eq!(read("a.json", "  ", None), Ok(ImportedServers::default()));
        assert_eq!(read("a.json", "{}", None), Ok(ImportedServers::default()));
        assert_eq!(read("a.json", "\u{feff}\r\n", None), Ok(ImportedServers::default()));
        let windows = format!("\u{feff}{}", text.replace('\n', "\r\n"));
        assert_eq!(read(".mcp.json", &windows, None), Ok(found));
    }

    #[test]
    fn codex_is_read() {
        let text = "model = \"x\"\n[mcp_servers.a]\ncommand = \"npx\"\n\
                    env_vars = [\"TOKEN\", { name = \"KEY\", source = \"local\" }]\n\
                    tool_timeout_sec = 0\n[mcp_servers.b]\nurl = \"https://b.example/mcp\"\n\
                    bearer_token_env_var = \"B\"\nhttp_headers = { X = \"1\" }\nenabled = false\n\
                    env_http_headers = { Y = \"Z\" }\nenabled_tools = [\"x\"]\n";
        let found = read(".codex/config.toml", text, None).unwrap();
        assert_eq!(
            told(&found.entries),
            [
                "a stdio npx .codex/config.toml:2 [TOKEN,KEY]",
                "b http https://b.example/mcp .codex/config.toml:6 [Authorization,X,Y]",
            ]
        );
        assert!(found.entries[1].is_disabled());
        let timeout_ms = |seconds: &str| {
            let text = format!("[mcp_servers.a]\ncommand = \"x\"\ntool_timeout_sec = {seconds}\n");
            read("config.toml", &text, None).unwrap().entries[0].facts().timeout_ms
        };
        assert_eq!(["0", "60.5", "60"].map(timeout_ms), [None, None, Some(60_000)]);
    }

    #[test]
    fn a_projects_own_list_goes_before_that_of_all() {
        let text = r#"{"mcpServers": {"a": {"command": "x"}, "b": {"command": "x"}},
            "projects": {"/shop": {"mcpServers": {"b": {"url": "http://b.example"}}}}}"#;
        let kinds = |project| -> Vec<String> {
            let entries = read("claude.json", text, project).unwrap().entries;
            entries.iter().map(|entry| format!("{} {}", entry.name, entry.facts().kind)).collect()
        };
        assert_eq!(kinds(Some("/shop")), ["a stdio", "b http"]);
        assert_eq!(kinds(Some("/other")), ["a stdio", "b stdio"]);
    }

    #[test]
    fn mistakes_are_reported_with_their_line() {
        let text = "{\"mcpServers\": {\n \"a\": {\"comand\": \"x\"},\n \"b\": {\"type\": \"htp\", \
                    \"url\": \"x\"},\n \"c\": {\"command\": \"x\", \"url\": \"y\"},\n \
                    \"d\": {\"command\": 1},\n \"e\": 2\n}}";
        let told = wrong(".mcp.json", text);
        for expected in [
            ".mcp.json:2:8: error: unknown key `comand` in `mcpServers.a`; \
             hint: did you mean `command`?",
            ".mcp.json:2:2: error: `a`: there is neither `command` nor `url`",
            ".mcp.json:3:16: error: `htp` is no type of server; hint: did you mean `http`?",
            ".mcp.json:5:19: error: `command` must be a text, and is a number",
            ".mcp.json:6:7: error: `e` must be a table, and is a number",
        ] {
            assert!(told.iter().any(|line| line == expected), "{expected}\n{told:#?}");
        }
        assert!(told.iter().any(|line| line.contains(".mcp.json:4:")), "{told:#?}");
        assert_eq!(
            wrong("a.json", "{\"mcp_servers\": {}}"),
            ["a.json:1:2: error: unknown key `mcp_servers`; hint: did you mean `mcpServers`?"]
        );
        assert!(wrong("a.json", "[1]")[0].contains("the file must be a table, and is a list"));
        assert!(wrong("c.toml", "[mcp_servers")[0].starts_with("c.toml:1:"));
    }

    #[test]
    fn unsupported_keys_are_reported() {
        let text = r#"{"servers": {"a": {"command": "x", "envFile": "${workspaceFolder}/.env"}}}"#;
        let warnings = read(".vscode/mcp.json", text, None).unwrap().warnings;
        assert!(warnings[0].to_string().contains("`envFile` of `servers.a` is not followed"));
    }
}
