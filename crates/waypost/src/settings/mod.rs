//! A project's settings as they hold now, each with where it comes from. A flag overrides a
//! variable, that before the project's `waypost.toml`, that before the person's own file, that
//! before the machine's, and that before the default.

mod variables;

use crate::environment::locations::{Roots, shown};
use crate::environment::{ADMIN_KEY, API_KEY, Environment, LOG_LEVEL, SECRET_KEY};
use crate::exit::{Failure, Result};
use kernel::definition::plan::mistake::Mistake;
use project::config::{AdminRule, Config};
use project::folder::{CONFIG_FILE, DEMO_PROXY, DEMO_PROXY_SERVER, DEMO_RECORDS, DEMO_SETTINGS};
use project::layer::{Layer, Source};
use project::limits::SettableLimits;
use project::upstream_entries::{server_map, shown_url};
use serde_json::{Map, Value, json};
use std::fmt;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use toml::de::DeTable;

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// No one said anything.
    Default,
    /// A line of a file, or a variable.
    At(Source),
    /// The command line.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::At(source) => write!(f, "{source}"),
            Origin::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

/// Where a server is, and who says so.
#[derive(Debug, Clone)]
pub(crate) struct ServerLocation {
    pub(crate) url: String,
    /// Who says so.
    pub(crate) origin: Origin,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Setting {
    /// Its name, such as `server.port`.
    pub(crate) key: String,
    /// Its value; of a secret only whether there is one.
    pub(crate) value: Value,
    /// Where it comes from.
    pub(crate) origin: Origin,
}

/// What all files and variables say together.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    /// What holds, with defaults for the rest.
    pub(crate) config: Config,
    /// Who said what; a later one overrides those ahead of it.
    layers: Vec<Layer>,
}

impl Settings {
    /// The settings that hold for this project; without one, those that hold for all.
    pub(crate) fn load(project: Option<&Path>, environment: &Environment) -> Result<Self> {
        Self::over(Vec::new(), project, environment, &Roots::of_this_machine())
    }

    /// The settings that hold for the demo: what its examples say, below those that hold for all.
    pub(crate) fn of_demo(environment: &Environment) -> Result<Self> {
        Self::demo_over(environment, &Roots::of_this_machine())
    }

    fn demo_over(environment: &Environment, roots: &Roots) -> Result<Self> {
        let layer = |(file, text): (&str, &str)| Layer::file(file, text);
        let layers = vec![layer(DEMO_SETTINGS), layer(DEMO_RECORDS)];
        let settings = Self::over(layers, None, environment, roots)?;
        let variables = |name: &str| environment.any(name);
        let mapped = server_map(&variables).unwrap_or_default().entries;
        let mut upstreams = settings.config.upstreams.iter().chain(&mapped);
        // A server of the user's own settings or of `MCP_SERVER_MAP` must not be mixed with the
        // demo's of the same name, or replaced by it.
        if upstreams.any(|entry| entry.name == DEMO_PROXY_SERVER) {
            return Ok(settings);
        }
        let layers = vec![layer(DEMO_SETTINGS), layer(DEMO_RECORDS), layer(DEMO_PROXY)];
        Self::over(layers, None, environment, roots)
    }

    /// What holds over these layers.
    fn over(
        mut layers: Vec<Layer>,
        project: Option<&Path>,
        environment: &Environment,
        roots: &Roots,
    ) -> Result<Self> {
        let mut files = roots.files();
        if let Some(folder) = project {
            files.push(file_of(folder)?);
        }
        for path in files {
            layers.extend(layer(&path)?);
        }
        let (variables, mut mistakes) = variables::layers(environment);
        layers.extend(variables);
        match Config::layered(&layers) {
            Ok(config) if mistakes.is_empty() => return Ok(Self { config, layers }),
            Ok(_) => {}
            Err(found) => mistakes.extend(found),
        }
        Err(Failure::usage("there are mistakes in the settings").lines(mistakes))
    }

    /// What would hold if the project's own file said this.
    pub(crate) fn with_file(&self, file: &str, text: &str) -> Result<Config, Vec<Mistake>> {
        let is_other = |layer: &&Layer| layer.source != Source::File(file.to_owned());
        let mut layers: Vec<Layer> = self.layers.iter().filter(is_other).cloned().collect();
        let last = layers.iter().rposition(|layer| matches!(layer.source, Source::File(_)));
        layers.insert(last.map_or(0, |last| last + 1), Layer::file(file, text));
        Config::layered(&layers)
    }

    /// Where a server with these settings listens, and who says so; none where the system chooses
    /// its port.
    pub(crate) fn served_at(&self) -> Option<ServerLocation> {
        let server = &self.config.server;
        let said = |key: &str| {
            let mut settings = self.layers.iter().rev().flat_map(written);
            settings.find(|setting| setting.key == key).map(|setting| setting.origin)
        };
        let origin = said("server.port").or_else(|| said("server.host"));
        let address = SocketAddr::new(server.host, server.port);
        let origin = origin.unwrap_or(Origin::Default);
        (server.port != 0).then(|| ServerLocation { url: server.local_url(address), origin })
    }

    /// The files that were read, the one that goes first at the end.
    pub(crate) fn files(&self) -> Vec<&str> {
        let mut files = Vec::new();
        for layer in &self.layers {
            if let Source::File(file) = &layer.source {
                files.push(file.as_str());
            }
        }
        files
    }

    /// Every setting, in the order of the reference; `server` is what the client talks to.
    pub(crate) fn all(&self, server: &ServerLocation, environment: &Environment) -> Vec<Setting> {
        let mut settings = defaults();
        for setting in self.layers.iter().flat_map(written) {
            match settings.iter_mut().find(|known| known.key == setting.key) {
                Some(known) => *known = setting,
                None => settings.push(setting),
            }
        }
        settings.extend(beside_the_files(server, environment));
        settings
    }
}

/// The file of this project: where it is, or would be.
pub(crate) fn file_of(folder: &Path) -> Result<PathBuf> {
    if folder.is_dir() {
        return Ok(folder.join(CONFIG_FILE));
    }
    Err(Failure::usage(format!("there is no folder `{}`", folder.display()))
        .hint("`waypost init DIR` writes a project that runs as it is"))
}

/// What a file says; nothing where there is none.
fn layer(path: &Path) -> Result<Option<Layer>> {
    let file = shown(path);
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(Layer::file(&file, &text))),
        Err(error) if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&error.kind()) => {
            Ok(None)
        }
        Err(error) if error.kind() == ErrorKind::InvalidData => {
            let what = format!("`{file}` is no text: it is not in UTF-8");
            Err(Failure::usage(what).hint("save it in UTF-8"))
        }
        Err(error) => Err(Failure::usage(format!("cannot read `{file}`: {error}"))
            .hint("check its rights: settings that are not read would be missed in silence")),
    }
}

/// All settings of the files with their defaults.
fn defaults() -> Vec<Setting> {
    let Config { server, policy, audit, .. } = Config::default();
    let admin = match server.admin {
        AdminRule::Local => "local",
        AdminRule::Key => "key",
    };
    let setting = |key: String, value: Value| Setting { key, value, origin: Origin::Default };
    let mut all = vec![
        setting("server.host".to_owned(), json!(server.host)),
        setting("server.port".to_owned(), json!(server.port)),
        setting("server.hosts".to_owned(), json!(server.hosts)),
        setting("server.origins".to_owned(), json!(server.origins)),
        // Nothing stands for the address that it listens on.
        setting("server.public_url".to_owned(), Value::Null),
        setting("server.admin".to_owned(), json!(admin)),
        setting("mcp.lenient".to_owned(), json!(false)),
        setting("policy.builtin".to_owned(), json!(policy.builtin)),
        setting("audit.strict".to_owned(), json!(audit.strict)),
        setting("audit.reads".to_owned(), json!(audit.reads)),
        // Nothing stands for as long as the server is there.
        setting("audit.keep_days".to_owned(), Value::Null),
        setting("inbox.notify".to_owned(), json!([])),
        setting("tools.allow".to_owned(), json!(["*"])),
        setting("tools.deny".to_owned(), json!([])),
        setting("tools.demo".to_owned(), json!(false)),
        setting("tools.http.allow".to_owned(), json!([])),
    ];
    let limits = SettableLimits::default().values().into_iter();
    all.extend(limits.map(|(name, value)| setting(format!("limits.{name}"), json!(value))));
    all
}

fn written(layer: &Layer) -> Vec<Setting> {
    let mut all = Vec::new();
    // Both read well: the text was read as settings before.
    let values: Map<String, Value> = toml::from_str(&layer.text).unwrap_or_default();
    if let Ok(table) = DeTable::parse(&layer.text) {
        collect(layer, table.get_ref(), &Value::Object(values), &[], &mut all);
    }
    all
}

fn collect(
    layer: &Layer,
    table: &DeTable<'_>,
    values: &Value,
    path: &[&str],
    all: &mut Vec<Setting>,
) {
    for (key, value) in table {
        let name: &str = key.get_ref();
        let inner = &values[name];
        let path = [path, &[name]].concat();
        match value.get_ref().as_table() {
            Some(table) => collect(layer, table, inner, &path, all),
            None => {
                let origin = Origin::At(layer.origin(&key.span()));
                all.push(Setting {
                    key: path.join("."),
                    value: without_secrets(&path, inner),
                    origin,
                });
            }
        }
    }
}

/// The value, without what an upstream, a provider of models or a receiver of events is given and
/// no one else should see. The path is one of words: a name may have dots.
fn without_secrets(path: &[&str], value: &Value) -> Value {
    let below = match path {
        ["mcp", "servers", _, below @ ..]
        | ["providers", _, below @ ..]
        | ["a2a", "agents", _, below @ ..] => below,
        ["models", _, "api_key"]
        | ["models", _, "headers", ..]
        | ["events", "sinks", _, "secret"] => return json!("set"),
        ["models", _, "base_url"] | ["events", "sinks", _, "url"] => &path[path.len() - 1..],
        _ => return value.clone(),
    };
    match (below, value) {
        (["env" | "headers" | "auth", _, ..] | ["oauth", "client_secret"], _) => json!("set"),
        // A password or a key may stand in an address.
        (
            ["url" | "base_url" | "document" | "card" | "registry" | "origin"],
            Value::String(url),
        ) => json!(shown_url(url)),
        _ => value.clone(),
    }
}

/// What no file holds: where the client looks, how much is logged, and whether there is a key.
fn beside_the_files(server: &ServerLocation, environment: &Environment) -> Vec<Setting> {
    let origin = |name: &str| {
        environment.get(name).map_or(Origin::Default, |found| Origin::At(found.source.clone()))
    };
    let level = environment.text(LOG_LEVEL).unwrap_or("info");
    let told = |name: &str| if environment.get(name).is_some() { "set" } else { "unset" };
    let setting = |key: &str, value: &str, origin: Origin| Setting {
        key: key.to_owned(),
        value: json!(value),
        origin,
    };
    vec![
        setting("client.server", &server.url, server.origin.clone()),
        setting("log.level", level, origin(LOG_LEVEL)),
        setting("api.key", told(API_KEY), origin(API_KEY)),
        setting("admin.key", told(ADMIN_KEY), origin(ADMIN_KEY)),
        setting("secret.key", told(SECRET_KEY), origin(SECRET_KEY)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::client::DEFAULT_SERVER;
    use std::fs;
    use tempfile::TempDir;

    fn usual_server() -> ServerLocation {
        ServerLocation { url: DEFAULT_SERVER.to_owned(), origin: Origin::Default }
    }

    /// A machine with files of its own, and a project on it.
    struct Machine {
        folder: TempDir,
    }

    impl Machine {
        fn new(files: &[(&str, &str)]) -> Self {
            let folder = tempfile::tempdir().unwrap();
            for (name, text) in files {
                let path = folder.path().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            fs::create_dir_all(folder.path().join("shop")).unwrap();
            Self { folder }
        }

        fn read(&self, environment: &Environment) -> Result<Settings> {
            let root = |name: &str| Some(self.folder.path().join(name));
            let roots = Roots { system: root("etc"), user: root("config") };
            Settings::over(Vec::new(), root("shop").as_deref(), environment, &roots)
        }

        /// The value of a setting and its origin, without the folder of this machine.
        fn setting(&self, environment: &Environment, key: &str) -> (Value, String) {
            let settings = self.read(environment).unwrap();
            let all = settings.all(&usual_server(), environment);
            let found = all.into_iter().find(|setting| setting.key == key).unwrap();
            (found.value, self.masked(&found.origin.to_string()))
        }

        fn masked(&self, text: &str) -> String {
            text.replace(&self.folder.path().display().to_string(), "")
        }
    }

    const SYSTEM: (&str, &str) = (
        "etc/waypost/config.toml",
        "[server]\nport = 1\nadmin = \"key\"\nhosts = [\"a\", \"b\"]\n",
    );
    const USER: (&str, &str) =
        ("config/waypost/config.toml", "# mine\n[server]\nport = 2\nhosts = [\"c\"]\n");
    const PROJECT: (&str, &str) =
        ("shop/waypost.toml", "[limits]\nbody_depth_max = 8\n[server]\nport = 3\n");

    #[test]
    fn each_layer_goes_before_the_one_below_it() {
        let none = Environment::default();
        let port = |files: &[(&str, &str)], environment: &Environment| {
            Machine::new(files).setting(environment, "server.port")
        };
        assert_eq!(port(&[], &none), (json!(8420), "default".to_owned()));
        assert_eq!(port(&[SYSTEM], &none), (json!(1), "/etc/waypost/config.toml:2".to_owned()));
        let both = [SYSTEM, USER];
        assert_eq!(port(&both, &none), (json!(2), "/config/waypost/config.toml:3".to_owned()));
        let all = [SYSTEM, USER, PROJECT];
        assert_eq!(port(&all, &none), (json!(3), "/shop/waypost.toml:4".to_owned()));
        let file = Environment::of_test(&[], "WAYPOST_SERVER_PORT=4\n");
        assert_eq!(port(&all, &file), (json!(4), ".env:1".to_owned()));
        let process = Environment::of_test(&[("WAYPOST_PORT", "5")], "WAYPOST_PORT=4\n");
        assert_eq!(port(&all, &process), (json!(5), "environment WAYPOST_PORT".to_owned()));
    }

    #[test]
    fn the_server_address_comes_from_the_settings() {
        let none = Environment::default();
        let served_at = |files: &[(&str, &str)], environment: &Environment| {
            let machine = Machine::new(files);
            let found = machine.read(environment).unwrap().served_at();
            found.map(|ServerLocation { url, origin }| {
                format!("{url} {}", machine.masked(&origin.to_string()))
            })
        };
        let at = |text: &str| Some(text.to_owned());
        assert_eq!(served_at(&[], &none), at("http://127.0.0.1:8420 default"));
        let all = [SYSTEM, USER, PROJECT];
        assert_eq!(served_at(&all, &none), at("http://127.0.0.1:3 /shop/waypost.toml:4"));
        let host = ("shop/waypost.toml", "[server]\nhost = \"::1\"\n");
        assert_eq!(served_at(&[host], &none), at("http://[::1]:8420 /shop/waypost.toml:2"));
        let process = Environment::of_test(&[("WAYPOST_PORT", "5")], "");
        assert_eq!(served_at(&all, &process), at("http://127.0.0.1:5 environment WAYPOST_PORT"));
        assert_eq!(served_at(&[], &Environment::of_test(&[("WAYPOST_PORT", "0")], "")), None);
        let text = "[server]\nhost = \"0.0.0.0\"\ntls = { certificate = \"a\", key = \"b\" }\n";
        let tls = ("shop/waypost.toml", text);
        assert_eq!(served_at(&[tls], &none), at("https://127.0.0.1:8420 /shop/waypost.toml:2"));
    }

    #[test]
    fn layers_are_merged_and_lists_are_replaced() {
        let machine = Machine::new(&[SYSTEM, USER, PROJECT]);
        let none = Environment::default();
        let setting = |key: &str| machine.setting(&none, key);
        let line = |text: &str| text.to_owned();
        assert_eq!(setting("server.admin"), (json!("key"), line("/etc/waypost/config.toml:3")));
        assert_eq!(setting("server.hosts"), (json!(["c"]), line("/config/waypost/config.toml:4")));
        assert_eq!(setting("limits.body_depth_max"), (json!(8), line("/shop/waypost.toml:2")));
        let settings = machine.read(&none).unwrap();
        assert_eq!((settings.config.server.port, settings.files().len()), (3, 3));
        assert_eq!(settings.config.server.hosts, ["c"]);
        let all = settings.all(&usual_server(), &none);
        assert_eq!(all.len(), 16 + SettableLimits::NAMES.len() + 5);
    }

    #[test]
    fn mistakes_in_every_layer_are_reported_with_file_and_line() {
        let machine = Machine::new(&[
            ("etc/waypost/config.toml", "[server]\nprot = 1\n"),
            ("config/waypost/config.toml", "[limits]\n\nbody_byte_max = 1\n"),
            ("shop/waypost.toml", "[server]\nport = \"x\"\n"),
        ]);
        let environment = Environment::of_test(&[], "WAYPOST_PORT=y\n");
        let told = machine.masked(&machine.read(&environment).unwrap_err().to_string());
        for part in [
            "/etc/waypost/config.toml:2:1: error: unknown key `prot` in `[server]`; \
             hint: did you mean `port`?",
            "/config/waypost/config.toml:3:1: error: unknown key `body_byte_max` in `[limits]`; \
             hint: did you mean `body_bytes_max`?",
            "/shop/waypost.toml:2:8: error: `port` must be a whole number from 0 to 65535, and is \
             a text",
            ".env:1:1: error: `port` must be a whole number from 0 to 65535, and is a text",
        ] {
            assert!(told.contains(part), "no `{part}` in {told}");
        }
    }

    #[test]
    fn the_demo_has_the_servers_of_its_examples() {
        let none = Environment::default();
        let settings = Settings::demo_over(&none, &Roots::default()).unwrap();
        let names: Vec<&str> =
            settings.config.upstreams.iter().map(|entry| entry.name.as_str()).collect();
        assert!(names.contains(&"calendar") && names.contains(&DEMO_PROXY_SERVER), "{names:?}");
        let all = settings.all(&usual_server(), &none);
        let command = all.iter().find(|setting| setting.key == "mcp.servers.calendar.command");
        assert_eq!(command.unwrap().value, "${WAYPOST_BIN}");
    }

    #[test]
    fn a_server_of_the_user_is_not_mixed_with_that_of_the_demo() {
        let own = "[mcp.servers.filesystem]\nurl = \"http://127.0.0.1:9/mcp\"\n";
        let machine = Machine::new(&[("config/waypost/config.toml", own)]);
        let roots = Roots { system: None, user: Some(machine.folder.path().join("config")) };
        let none = Environment::default();
        let settings = Settings::demo_over(&none, &roots).unwrap();
        let all = settings.all(&usual_server(), &none);
        let of_server = |setting: &&Setting| setting.key.starts_with("mcp.servers.filesystem.");
        let keys: Vec<&str> =
            all.iter().filter(of_server).map(|setting| setting.key.as_str()).collect();
        assert_eq!(keys, ["mcp.servers.filesystem.url"]);
    }

    #[test]
    fn a_server_that_is_mapped_by_a_variable_is_not_replaced_by_that_of_the_demo() {
        for (name, is_of_demo) in [(DEMO_PROXY_SERVER, false), ("other", true)] {
            let map = json!({name: "http://127.0.0.1:9"}).to_string();
            let environment = Environment::of_test(&[("MCP_SERVER_MAP", map.as_str())], "");
            let settings = Settings::demo_over(&environment, &Roots::default()).unwrap();
            let mut written = settings.config.upstreams.iter();
            let has = written.any(|entry| entry.name == DEMO_PROXY_SERVER);
            assert_eq!(has, is_of_demo, "{map}");
        }
    }

    #[test]
    fn without_a_project_system_and_user_settings_apply() {
        let machine = Machine::new(&[SYSTEM, PROJECT]);
        let roots = Roots { system: Some(machine.folder.path().join("etc")), user: None };
        let settings = Settings::over(Vec::new(), None, &Environment::default(), &roots).unwrap();
        assert_eq!(settings.config.server.port, 1);
        let nowhere = machine.folder.path().join("nowhere");
        let failure =
            Settings::over(Vec::new(), Some(nowhere.as_path()), &Environment::default(), &roots)
                .unwrap_err();
        assert!(failure.message.contains("there is no folder"), "{failure}");
    }

    #[test]
    fn secrets_of_upstreams_are_not_shown() {
        let text = "[mcp.servers.a]\ncommand = \"x\"\nenv = { T = \"hunter2\" }\n\
                    oauth = { client_id = \"me\", client_secret = \"hunter2\" }\n\
                    [mcp.servers.\"c.d\"]\nurl = \"http://u:hunter2@c.example/mcp?k=hunter2\"\n\
                    headers = { X = \"hunter2\" }\n\
                    [providers.b]\ntype = \"rest\"\nbase_url = \"http://hunter2@b.example\"\n\
                    document = \"https://b.example/api.json?key=hunter2\"\n\
                    auth = { type = \"bearer\", token = \"hunter2\" }\n\
                    [a2a.agents.e]\ncard = \"https://u:hunter2@e.example\"\n\
                    headers = { X = \"hunter2\" }\n\
                    auth = { type = \"bearer\", token = \"hunter2\" }\n";
        let told: Vec<String> = written(&Layer::file("a.toml", text))
            .iter()
            .map(|setting| format!("{} {}", setting.key, setting.value))
            .collect();
        assert!(told.contains(&"mcp.servers.a.command \"x\"".to_owned()), "{told:?}");
        assert!(told.contains(&"mcp.servers.a.env.T \"set\"".to_owned()), "{told:?}");
        assert!(told.contains(&"providers.b.auth.token \"set\"".to_owned()), "{told:?}");
        assert!(told.contains(&"a2a.agents.e.auth.token \"set\"".to_owned()), "{told:?}");
        assert!(told.contains(&"mcp.servers.a.oauth.client_id \"me\"".to_owned()), "{told:?}");
        assert!(told.contains(&"mcp.servers.c.d.headers.X \"set\"".to_owned()), "{told:?}");
        let url = "mcp.servers.c.d.url \"http://c.example/mcp\"";
        assert!(told.contains(&url.to_owned()), "{told:?}");
        let secret = "mcp.servers.a.oauth.client_secret \"set\"";
        assert!(told.contains(&secret.to_owned()), "{told:?}");
        assert!(!told.concat().contains("hunter2"), "{told:?}");
    }

    #[test]
    fn secrets_of_models_are_not_shown() {
        let text = "[models.\"gpt-6.1\"]\nprovider = \"openai\"\nmodel = \"m\"\n\
                    base_url = \"https://hunter2@b.test/v1\"\n\
                    api_key = \"hunter2\"\nheaders = { X-Team = \"hunter2\" }\n";
        let told: Vec<String> = written(&Layer::file("a.toml", text))
            .iter()
            .map(|setting| format!("{} {}", setting.key, setting.value))
            .collect();
        assert!(told.contains(&"models.gpt-6.1.api_key \"set\"".to_owned()), "{told:?}");
        assert!(told.contains(&"models.gpt-6.1.headers.X-Team \"set\"".to_owned()), "{told:?}");
        assert!(told.contains(&"models.gpt-6.1.model \"m\"".to_owned()), "{told:?}");
        let url = "models.gpt-6.1.base_url \"https://b.test/v1\"";
        assert!(told.contains(&url.to_owned()), "{told:?}");
        assert!(!told.concat().contains("hunter2"), "{told:?}");
    }

    #[test]
    fn secrets_of_event_sinks_are_not_shown() {
        let text = "[events.sinks.secret]\ntype = \"webhook\"\n\
                    url = \"https://u:hunter2@a.test?key=hunter2\"\n\
                    secret = \"hunter2\"\ntypes = [\"A\"]\n";
        let told: Vec<String> = written(&Layer::file("a.toml", text))
            .iter()
            .map(|setting| format!("{} {}", setting.key, setting.value))
            .collect();
        assert!(told.contains(&"events.sinks.secret.secret \"set\"".to_owned()), "{told:?}");
        assert!(
            told.contains(&"events.sinks.secret.url \"https://a.test\"".to_owned()),
            "{told:?}"
        );
        assert!(told.contains(&"events.sinks.secret.types [\"A\"]".to_owned()), "{told:?}");
        assert!(!told.concat().contains("hunter2"), "{told:?}");
    }

    #[test]
    fn dotted_keys_and_inline_tables_are_found() {
        let text = "server.port = 1\nlimits = {body_depth_max = 2}\n";
        let told: Vec<String> = written(&Layer::file("a.toml", text))
            .iter()
            .map(|setting| format!("{} {} {}", setting.key, setting.value, setting.origin))
            .collect();
        assert_eq!(told, ["limits.body_depth_max 2 a.toml:2", "server.port 1 a.toml:1"]);
    }
}
