//! An entry as `waypost.toml` writes it, whatever file it comes from.

use super::entry::{Endpoint, Entry};
use super::expand::{has_variables, without_inputs};
use super::oauth::{Oauth, grant_word};
use crate::settings::{Named, Text, bare_or_quoted, quoted};

/// An entry for our settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConvertedEntry {
    pub name: String,
    /// Its table, without an end of line.
    pub text: String,
    /// Variables that stand now for what an editor would have asked for.
    pub asked: Vec<String>,
    /// Headers and variables whose values are written out, and may be secrets.
    pub plain: Vec<String>,
}

/// The entry as a table of our settings; none for what is no MCP server.
pub fn moved(entry: &Entry) -> Option<ConvertedEntry> {
    let mut writing = TableWriter::default();
    let facts = entry.facts();
    match entry.way.as_ref()? {
        Endpoint::Http { url, headers } => {
            writing.text("url", url);
            writing.named("headers", headers);
            if let Some(oauth) = &entry.own.oauth {
                writing.oauth(oauth);
            }
        }
        Endpoint::Stdio { command, args, env, cwd } => {
            writing.text("command", command);
            writing.texts("args", args);
            writing.named("env", env);
            if let Some(cwd) = cwd {
                writing.text("cwd", cwd);
            }
        }
        Endpoint::Rest(_) | Endpoint::Rpc { .. } | Endpoint::A2a(_) => return None,
    }
    if let Some(prefix) = &entry.own.prefix {
        writing.text("prefix", prefix);
    }
    if facts.trusted {
        writing.line("trusted = true".to_owned());
    }
    if let Some(timeout_ms) = facts.timeout_ms {
        writing.line(format!("timeout_ms = {timeout_ms}"));
    }
    if let Some(era) = &entry.own.era {
        writing.text("era", era);
    }
    if let Some(roots) = &entry.own.roots {
        writing.texts("roots", roots);
    }
    if facts.disabled {
        writing.line("disabled = true".to_owned());
    }
    let name = name_for(&entry.name);
    let text = format!("[mcp.servers.{name}]\n{}", writing.lines.join("\n"));
    Some(ConvertedEntry { name, text, asked: writing.asked, plain: writing.plain })
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
    let mut lines = vec![format!("card = {}", quoted(agent.card))];
    let texts =
        [("registry", agent.registry), ("service", agent.service), ("prefix", agent.prefix)];
    for (key, text) in texts {
        lines.extend(text.map(|text| format!("{key} = {}", quoted(text))));
    }
    let pair =
        |(name, value): &(String, String)| format!("{} = {}", bare_or_quoted(name), quoted(value));
    let pairs: Vec<String> = agent.headers.iter().map(pair).collect();
    if !pairs.is_empty() {
        lines.push(format!("headers = {{ {} }}", pairs.join(", ")));
    }
    if agent.allow_private {
        lines.push("allow_private = true".to_owned());
    }
    let is_plain = |(_, value): &&(String, String)| !has_variables(value);
    let plain = agent.headers.iter().filter(is_plain).map(|(name, _)| name.clone()).collect();
    let text = format!("[a2a.agents.{}]\n{}", bare_or_quoted(agent.name), lines.join("\n"));
    ConvertedEntry { name: agent.name.to_owned(), text, asked: Vec::new(), plain }
}

/// The name that an upstream gets here: letters, digits, `_` and `-`.
fn name_for(name: &str) -> String {
    let letter = |c: char| {
        let fits = c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if fits { c } else { '-' }
    };
    name.chars().map(letter).collect()
}

/// The lines of a table.
#[derive(Default)]
struct TableWriter {
    lines: Vec<String>,
    asked: Vec<String>,
    plain: Vec<String>,
}

impl TableWriter {
    fn line(&mut self, line: String) {
        self.lines.push(line);
    }

    fn text(&mut self, key: &str, text: &Text) {
        let value = self.quoted(text);
        self.line(format!("{key} = {value}"));
    }

    fn texts(&mut self, key: &str, texts: &[Text]) {
        if !texts.is_empty() {
            let values: Vec<String> = texts.iter().map(|text| self.quoted(text)).collect();
            self.line(format!("{key} = [{}]", values.join(", ")));
        }
    }

    fn named(&mut self, key: &str, named: &Named) {
        let mut pairs = Vec::new();
        for (name, text) in named {
            if !has_variables(&text.text) {
                self.plain.push(name.clone());
            }
            pairs.push(format!("{} = {}", bare_or_quoted(name), self.quoted(text)));
        }
        if !pairs.is_empty() {
            self.line(format!("{key} = {{ {} }}", pairs.join(", ")));
        }
    }

    fn oauth(&mut self, oauth: &Oauth) {
        let Oauth { client_id, client_secret, scopes, grant, .. } = oauth;
        let mut pairs = Vec::new();
        if let Some(id) = client_id {
            pairs.push(format!("client_id = {}", self.quoted(id)));
        }
        if let Some(secret) = client_secret {
            if !has_variables(&secret.text) {
                self.plain.push("client_secret".to_owned());
            }
            pairs.push(format!("client_secret = {}", self.quoted(secret)));
        }
        if let Some(scopes) = scopes {
            let scopes: Vec<String> = scopes.iter().map(|scope| self.quoted(scope)).collect();
            pairs.push(format!("scopes = [{}]", scopes.join(", ")));
        }
        if let Some(grant) = grant {
            pairs.push(format!("grant = \"{}\"", grant_word(*grant)));
        }
        if !pairs.is_empty() {
            self.line(format!("oauth = {{ {} }}", pairs.join(", ")));
        }
    }

    fn quoted(&mut self, text: &Text) -> String {
        let (text, asked) = without_inputs(&text.text);
        for name in asked {
            if !self.asked.contains(&name) {
                self.asked.push(name);
            }
        }
        quoted(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::super::foreign::read;
    use super::*;

    fn all(text: &str) -> Vec<ConvertedEntry> {
        let found = read("mcp.json", text, None).unwrap();
        found.entries.iter().filter_map(moved).collect()
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
        assert_eq!((facts.name.as_str(), facts.prefix.as_str(), facts.kind), ("trips", "", "a2a"));
        assert_eq!(facts.target, "org/trips at https://r.example");
        assert_eq!(facts.headers, ["X-Api-Key", "X-Key", "X-Plain"]);
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
            (all[0].asked.as_slice(), all[0].plain.as_slice()),
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
