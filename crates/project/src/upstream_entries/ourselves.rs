//! Whether an upstream is this server itself. `.mcp.json` of a project often names the project's
//! own server, for the clients that work in that folder; connected to itself, a server would list
//! its own tools again and again.

use super::entry::Entry;
use super::expand::ExpandContext;
use hyper::http::Uri;
use serde_json::Value;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use upstreams::{CardPlace, UpstreamConfig, UpstreamKind};

/// How this server can be reached.
#[derive(Debug, Clone)]
pub struct Ourselves {
    /// Where it listens.
    pub address: SocketAddr,
    /// Where its settings say that it listens: another process may serve the same project there.
    pub port: u16,
    /// Names under which a proxy serves it.
    pub hosts: Vec<String>,
    /// The project's folder; the demo has none.
    pub folder: Option<PathBuf>,
}

impl Ourselves {
    /// Whether this entry leads to us. What needs variables is no one's own server.
    pub fn are_behind(&self, entry: &Entry) -> bool {
        let folder = self.folder.as_deref().unwrap_or(Path::new(""));
        let config = entry.config(&ExpandContext { folder, variables: &|_| None });
        config.is_ok_and(|config| self.are(&config))
    }

    /// Whether this leads to us.
    pub fn are(&self, config: &UpstreamConfig) -> bool {
        match &config.kind {
            UpstreamKind::Http { url, .. } => self.answer_at(url),
            UpstreamKind::Stdio { command, args, cwd, .. } => {
                let cwd = cwd.as_deref().unwrap_or(Path::new("."));
                is_waypost(command) && self.are_served(args, cwd)
            }
            // Neither of these endpoints lists what we have.
            UpstreamKind::Rest(_) | UpstreamKind::Rpc { .. } => false,
            UpstreamKind::A2a(agent) => match &agent.card {
                // Our own registry lists no cards but ours.
                CardPlace::Url(url) | CardPlace::Registry { url, .. } => self.are_named_by(url),
                CardPlace::File(path) => self.are_named_in(path),
            },
        }
    }

    /// Whether this address, where an agent or its card is, is one of ours.
    pub fn are_named_by(&self, url: &str) -> bool {
        url.parse::<Uri>().is_ok_and(|uri| self.are_at(&uri))
    }

    /// Whether a card in a file names an address of ours. One that cannot be read names none.
    fn are_named_in(&self, card: &Path) -> bool {
        let text = std::fs::read_to_string(card).unwrap_or_default();
        let card: Value = serde_json::from_str(&text).unwrap_or_default();
        let interfaces = card["supportedInterfaces"].as_array().into_iter().flatten();
        let urls = interfaces.map(|interface| &interface["url"]).chain([&card["url"]]);
        let mut uris = urls.filter_map(|url| url.as_str()?.parse::<Uri>().ok());
        uris.any(|uri| self.are_at(&uri))
    }

    fn answer_at(&self, url: &str) -> bool {
        let Ok(uri) = url.parse::<Uri>() else { return false };
        uri.path().trim_end_matches('/') == "/mcp" && self.are_at(&uri)
    }

    /// Whether our own server answers there, whatever it is asked for.
    fn are_at(&self, uri: &Uri) -> bool {
        let Some(host) = uri.host() else { return false };
        let default = if uri.scheme_str() == Some("https") { 443 } else { 80 };
        let port = uri.port_u16().unwrap_or(default);
        let ports = [self.address.port(), self.port];
        let here = is_loopback(host) && port != 0 && ports.contains(&port);
        let with_port = format!("{host}:{port}");
        here || self.hosts.iter().any(|name| name == host || *name == with_port)
    }

    /// Whether `waypost` with these arguments serves this project.
    fn are_served(&self, args: &[String], cwd: &Path) -> bool {
        let serve = args.windows(2).position(|pair| pair[0] == "mcp" && pair[1] == "serve");
        let Some(serve) = serve else { return false };
        let mut folder = None;
        let mut rest = args[serve + 2..].iter();
        while let Some(word) = rest.next() {
            match word.as_str() {
                // A demo that starts a demo would never end.
                "--demo" => return self.folder.is_none(),
                "--server" => return rest.next().is_some_and(|url| self.serve_at(url)),
                "--data" => {
                    rest.next();
                }
                word if word.starts_with('-') => {}
                word => folder = Some(cwd.join(word)),
            }
        }
        let folder = folder.unwrap_or_else(|| cwd.to_path_buf());
        self.folder.as_ref().is_some_and(|ours| is_same(&folder, ours))
    }

    fn serve_at(&self, url: &str) -> bool {
        self.answer_at(&format!("{}/mcp", url.trim_end_matches('/')))
    }
}

fn is_waypost(command: &str) -> bool {
    Path::new(command).file_stem().is_some_and(|stem| stem == "waypost")
}

/// Whether this host of a URL is this machine.
pub fn is_loopback(host: &str) -> bool {
    let plain = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || plain.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn is_same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(kind: UpstreamKind) -> UpstreamConfig {
        UpstreamConfig {
            name: "a".to_owned(),
            prefix: "a.".to_owned(),
            kind,
            trusted: false,
            journal: true,
            timeout_ms: None,
            era: upstreams::EraSetting::Auto,
            roots: Vec::new(),
            origin: ".mcp.json:1".to_owned(),
        }
    }

    fn ourselves() -> Ourselves {
        Ourselves {
            address: SocketAddr::from(([127, 0, 0, 1], 9000)),
            port: 8420,
            hosts: vec!["wp.example.com".to_owned()],
            folder: Some(PathBuf::from("/nowhere/shop")),
        }
    }

    #[test]
    fn our_own_card_leads_to_us() {
        let are = |url: &str| {
            let card = CardPlace::Url(url.to_owned());
            ourselves().are(&config(UpstreamKind::A2a(upstreams::A2aConfig::new(card))))
        };
        for url in ["http://localhost:9000", "http://127.0.0.1:8420/a/card.json"] {
            assert!(are(url), "{url}");
        }
        assert!(are("https://wp.example.com/.well-known/agent-card.json"));
        for url in ["http://localhost:9001", "https://other.example.com/"] {
            assert!(!are(url), "{url}");
        }
    }

    #[test]
    fn our_own_registry_leads_to_us() {
        for (url, is_ours) in [
            ("http://127.0.0.1:9000", true),
            ("https://wp.example.com/registry", true),
            ("http://localhost:9001", false),
            ("https://registry.example.com", false),
        ] {
            let place = CardPlace::Registry { url: url.to_owned(), id: "acme/desk".to_owned() };
            let agent = UpstreamKind::A2a(upstreams::A2aConfig::new(place));
            assert_eq!(ourselves().are(&config(agent)), is_ours, "{url}");
        }
    }

    #[test]
    fn a_card_in_a_file_may_name_us() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("card.json");
        for (card, is_ours) in [
            (r#"{"supportedInterfaces": [{"url": "https://wp.example.com/a2a/v1"}]}"#, true),
            (r#"{"url": "http://localhost:9000/a2a"}"#, true),
            (r#"{"url": "https://other.example.com/a2a"}"#, false),
            ("no card", false),
        ] {
            std::fs::write(&path, card).unwrap();
            let place = CardPlace::File(path.clone());
            let agent = UpstreamKind::A2a(upstreams::A2aConfig::new(place));
            assert_eq!(ourselves().are(&config(agent)), is_ours, "{card}");
        }
    }

    #[test]
    fn a_url_that_leads_to_us_is_recognised() {
        let are = |url: &str| {
            let url = url.to_owned();
            ourselves().are(&config(UpstreamKind::Http {
                url,
                headers: Vec::new(),
                oauth: upstreams::OauthConfig::default(),
            }))
        };
        for ours in [
            "http://127.0.0.1:9000/mcp",
            "http://localhost:8420/mcp/",
            "http://[::1]:8420/mcp",
            "https://wp.example.com/mcp",
        ] {
            assert!(are(ours), "{ours}");
        }
        for other in [
            "http://127.0.0.1:9001/mcp",
            "http://127.0.0.1:8420/other",
            "http://a.example:8420/mcp",
            "https://wp.example.com/other/mcp",
            "nowhere",
        ] {
            assert!(!are(other), "{other}");
        }
    }

    #[test]
    fn a_command_that_serves_our_project_is_recognised() {
        let are = |command: &str, args: &str| {
            ourselves().are(&config(UpstreamKind::Stdio {
                command: command.to_owned(),
                args: args.split_whitespace().map(str::to_owned).collect(),
                env: Vec::new(),
                cwd: Some(PathBuf::from("/nowhere/shop")),
            }))
        };
        assert!(are("waypost", "mcp serve --stdio"));
        assert!(are("/usr/bin/waypost", "mcp serve --stdio --data x /nowhere/shop"));
        assert!(are("waypost", "mcp serve --stdio --server http://127.0.0.1:8420/"));
        assert!(!are("waypost", "mcp serve --stdio ../other"));
        assert!(!are("waypost", "mcp serve --stdio --demo"));
        assert!(!are("waypost", "mcp serve --stdio --server http://a.example"));
        assert!(!are("npx", "mcp serve --stdio"));
        assert!(!are("waypost", "up"));
        let demo = Ourselves { folder: None, ..ourselves() };
        let args = ["mcp", "serve", "--stdio", "--demo"].map(str::to_owned).to_vec();
        let command = "waypost".to_owned();
        let kind = UpstreamKind::Stdio { command, args, env: Vec::new(), cwd: None };
        assert!(demo.are(&config(kind)));
    }
}
