//! Writes an entry of any file as a table of `waypost.toml`.

use super::entry::{Entry, named_at};
use super::expand::{has_variables, without_inputs};
use super::keys::Keys;
use crate::layer::Location;
use crate::settings::{Text, bare_or_quoted, quoted};
use serde_json::Value;

/// An entry for our settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConvertedEntry {
    pub name: String,
    /// Its table, without an end of line.
    pub text: String,
    /// Variables in the place of inputs that an editor asks for.
    pub variables: Vec<String>,
    /// Headers and variables whose values are written out, and may be secrets.
    pub plain: Vec<String>,
}

/// The entry, of a client's file or from outside of any, as a table of our settings; none for what
/// is no MCP server.
pub fn converted(entry: &Entry) -> Option<ConvertedEntry> {
    let is_moved = entry.kind.is_some_and(|kind| kind.speaks_mcp());
    is_moved.then(|| table("mcp.servers", name_for(&entry.name), &entry.keys))
}

/// An agent that speaks A2A, named from outside of any file.
#[derive(Debug, Clone, Copy)]
pub struct NewAgent<'a> {
    pub name: &'a str,
    /// Where its card is: an address, a file of the project, or an id at the registry.
    pub card: &'a str,
    pub registry: Option<&'a str>,
    /// The id of its key, as AgentVault's clients name it.
    pub service: Option<&'a str>,
    /// What goes with every request.
    pub headers: &'a [(String, String)],
    /// What stands before the names of its tools.
    pub prefix: Option<&'a str>,
    /// Whether its card may name an address that is not public.
    pub allow_private: bool,
}

/// The agent as a table of our settings.
pub fn agent_table(agent: &NewAgent<'_>) -> ConvertedEntry {
    let place = Location::whole("the command line");
    let text = |text: &str| Text::at(&place, text);
    let keys = Keys {
        card: Some(text(agent.card)),
        registry: agent.registry.map(text),
        service: agent.service.map(text),
        headers: named_at(&place, agent.headers),
        allow_private: agent.allow_private.then_some(true),
        prefix: agent.prefix.map(text),
        ..Keys::default()
    };
    table("a2a.agents", agent.name.to_owned(), &keys)
}

/// The name that an upstream gets here: letters, digits, `_` and `-`.
fn name_for(name: &str) -> String {
    let letter = |c: char| {
        let fits = c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if fits { c } else { '-' }
    };
    name.chars().map(letter).collect()
}

/// All keys that say something, in the order of their rows.
fn table(list: &str, name: String, keys: &Keys) -> ConvertedEntry {
    // Keys are plain data; writing them as JSON cannot fail.
    let written = serde_json::to_value(keys).unwrap_or_default();
    let mut variables = Vec::new();
    let mut lines = vec![format!("[{list}.{}]", bare_or_quoted(&name))];
    for (key, value) in written.as_object().into_iter().flatten() {
        if !says_nothing(value) {
            lines.push(format!("{key} = {}", inline(value, &mut variables)));
        }
    }
    let is_plain = |(_, text): &&(String, Text)| !has_variables(&text.text);
    let named = keys.env.iter().chain(&keys.headers).filter(is_plain);
    let mut plain: Vec<String> = named.map(|(name, _)| name.clone()).collect();
    if keys.oauth.as_ref().is_some_and(|oauth| oauth.value.tells_its_secret()) {
        plain.push("client_secret".to_owned());
    }
    ConvertedEntry { name, text: lines.join("\n"), variables, plain }
}

fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.values().all(Value::is_null),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// A value in one line, with a variable for everything that an editor would ask for.
fn inline(value: &Value, variables: &mut Vec<String>) -> String {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => {
            let (text, names) = without_inputs(text);
            for name in names {
                if !variables.contains(&name) {
                    variables.push(name);
                }
            }
            quoted(&text)
        }
        // Texts by name are pairs: a name that is there twice stays, and is refused when the table
        // is read.
        Value::Array(pairs) if pairs.first().is_some_and(Value::is_array) => {
            let pairs = pairs.iter().map(|pair| (pair[0].as_str().unwrap_or_default(), &pair[1]));
            members(pairs, variables)
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| inline(item, variables)).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(object) => {
            let said = object.iter().filter(|(_, value)| !value.is_null());
            members(said.map(|(key, value)| (key.as_str(), value)), variables)
        }
    }
}

fn members<'v>(
    all: impl Iterator<Item = (&'v str, &'v Value)>,
    variables: &mut Vec<String>,
) -> String {
    let member = |(key, value): (&str, &Value)| {
        format!("{} = {}", bare_or_quoted(key), inline(value, variables))
    };
    let all: Vec<String> = all.map(member).collect();
    format!("{{ {} }}", all.join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::client_files::read;
    use super::*;

    fn all(text: &str) -> Vec<ConvertedEntry> {
        let found = read("mcp.json", text, None).unwrap();
        found.entries.iter().filter_map(converted).collect()
    }

    #[test]
    fn an_agent_is_written_as_our_settings_read_it() {
        let headers = [("X-Key", "${KEY}"), ("X-Plain", "a \"b\"")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let agent = NewAgent {
            name: "trips",
            card: "org/trips",
            registry: Some("https://r.example"),
            service: Some("trips"),
            headers: &headers,
            prefix: Some(""),
            allow_private: true,
        };
        let table = agent_table(&agent);
        assert_eq!(table.plain, ["X-Plain"]);
        let config = crate::config::Config::parse("waypost.toml", &table.text).unwrap();
        let facts = config.upstreams[0].facts();
        assert_eq!(
            (facts.name.as_str(), facts.prefix.as_str(), facts.kind.as_str()),
            ("trips", "", "a2a")
        );
        assert_eq!(facts.target, "org/trips at https://r.example");
        assert_eq!(facts.headers, ["X-Api-Key", "X-Key", "X-Plain"]);
    }

    #[test]
    fn every_key_is_written_back() {
        let text = "[mcp.servers.a]\nurl = \"https://a.example/mcp\"\n\
                    headers = { X-Key = \"${KEY}\" }\n\
                    oauth = { client_id = \"me\", client_secret = \"${S}\", scopes = [\"a\"], \
                    grant = \"ourselves\" }\nlogin = \"shared\"\nprefix = \"a.\"\n\
                    trusted = true\njournal = false\ntimeout_ms = 5\nera = \"2025\"\n\
                    roots = [\"file:///a\"]\ndisabled = true\nrealms = [\"acme\", \"shop-*\"]";
        let config = crate::config::Config::parse("waypost.toml", text).unwrap();
        assert_eq!(converted(&config.upstreams[0]).unwrap().text, text);
    }

    #[test]
    fn an_entry_is_written_as_our_settings_read_it() {
        let text = r#"{"servers": {
            "My Git": {"command": "npx", "args": ["-y", "a \"b\""], "env":
                {"TOKEN": "${input:git-token}", "MODE": "x", "a.b": "${env:A}"}, "cwd": ".."},
            "web": {"url": "https://a.example/mcp", "headers": {"X-Key": "${KEY}"},
                "disabled": true},
            "hub": {"url": "https://b.example/mcp", "oauth": {"clientId": "me",
                "clientSecret": "hunter2", "scopes": "a b"}}
        }}"#;
        let all = all(text);
        assert_eq!(
            all[0].text,
            "[mcp.servers.My-Git]\ncommand = \"npx\"\nargs = [\"-y\", \"a \\\"b\\\"\"]\n\
             env = { TOKEN = \"${GIT_TOKEN}\", MODE = \"x\", \"a.b\" = \"${env:A}\" }\n\
             cwd = \"..\""
        );
        assert_eq!(
            (all[0].variables.as_slice(), all[0].plain.as_slice()),
            (&["GIT_TOKEN".to_owned()][..], &["MODE".to_owned()][..])
        );
        assert_eq!(
            all[1].text,
            "[mcp.servers.web]\nurl = \"https://a.example/mcp\"\n\
             headers = { X-Key = \"${KEY}\" }\ndisabled = true"
        );
        assert_eq!(
            all[2].text,
            "[mcp.servers.hub]\nurl = \"https://b.example/mcp\"\n\
             oauth = { client_id = \"me\", client_secret = \"hunter2\", scopes = [\"a\", \"b\"] }"
        );
        assert_eq!(all[2].plain, ["client_secret"]);
        for moved in &all {
            let read: toml::Table = toml::from_str(&moved.text).unwrap();
            assert!(read["mcp"]["servers"].get(moved.name.as_str()).is_some());
        }
    }
}
