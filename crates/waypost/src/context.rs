//! The context of every command: output, environment, project, and the server's address.

use crate::environment::locations::{is_project, shown};
use crate::environment::program::program;
use crate::environment::{ADMIN_KEY, API_KEY, DATA_FOLDER, Environment, LOG_LEVEL, SERVER};
use crate::exit::{Exit, Failure, Result};
use crate::remote::address::{self, AddressState};
use crate::remote::client::{Client, DEFAULT_SERVER, read};
use crate::remote::unproven::Unproven;
use crate::settings::{Origin, ServerLocation, Settings};
use crate::terminal::output::{Output, counted};
use crate::terminal::progress::Progress;
use crate::terminal::screen::Screen;
use crate::terminal::table::{Cell, Table};
use engine::system::clock::SystemClock;
use kernel::contracts::Clock;
use project::layer::Source;
use project::upstream_entries::shown_url;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use wire::rest::Page;

/// A list for people.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Listing<'a> {
    /// What one of its items is called.
    pub(crate) noun: &'a str,
    /// The heads of its columns.
    pub(crate) heads: &'a [&'a str],
    /// Why it may be empty, and what adds something.
    pub(crate) none: &'a str,
}

/// One call of `waypost`.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    /// How to print.
    pub(crate) output: Output,
    /// The variables that are set.
    pub(crate) environment: Environment,
    /// The folder of the project; none for the demo.
    pub(crate) project: Option<PathBuf>,
    /// Where the server is, as the command line or a variable says it; else the default.
    pub(crate) server: ServerLocation,
    /// The realm that the command line names.
    pub(crate) realm: Option<String>,
    /// What the commands begin with that a user is shown.
    pub(crate) program: String,
    /// What continues on the server when this command ends, and how to follow and end it.
    continues: Arc<Mutex<Option<String>>>,
}

impl Context {
    /// The context of a command about this project; `server` and `realm` are what the command line
    /// names.
    pub(crate) fn new(
        output: Output,
        project: Option<PathBuf>,
        server: Option<String>,
        realm: Option<String>,
    ) -> Result<Self> {
        let environment = Environment::of(project.as_deref())?;
        let server = named_server(server, &environment);
        let program = program();
        let continues = Arc::default();
        Ok(Self { output, environment, project, server, realm, program, continues })
    }

    /// Whether the command line or a variable names the server.
    pub(crate) fn has_named_server(&self) -> bool {
        self.server.origin != Origin::Default
    }

    /// A client of the server that the command line or a variable names, else of the one that
    /// serves this folder. Where neither is there: of the one that the settings describe, or of
    /// the default one. That may be another project's, and then it is only read from.
    pub(crate) async fn client(&self) -> Result<Client> {
        let (ServerLocation { url, origin }, unproven) = match &self.project {
            Some(project) if !self.has_named_server() => self.of_folder(project).await?,
            _ => (self.server.clone(), None),
        };
        let client = self.client_at(&url)?;
        // Who types a name, or sets a variable, knows it. A file may name a server that is news;
        // one that is read from in place of another is told when it is read from.
        let is_news = matches!(origin, Origin::At(Source::Line { .. }))
            && url.trim_end_matches('/') != DEFAULT_SERVER;
        if unproven.is_none() && is_news {
            // A password may stand in an address.
            self.output.talk(&format!("using the server at {} ({origin})", shown_url(&url)));
        }
        Ok(client.unproven(unproven))
    }

    /// A client of the server at this address, which sends the API key, where there is one.
    pub(crate) fn client_at(&self, url: &str) -> Result<Client> {
        let client = Client::new(url)?.in_realm(self.realm.clone());
        // Settings of the folder may lead to another machine, too.
        let is_meant = client.is_on_this_machine() || self.has_named_server();
        let is_of_shell = |name: &&str| {
            let key = self.environment.get(name);
            key.is_some_and(|key| matches!(key.source, Source::Variable(_)))
        };
        match [API_KEY, ADMIN_KEY].into_iter().find(is_of_shell) {
            Some(name) if !is_meant => {
                Err(kept_back(name, "the settings of this folder name", url))
            }
            _ => Ok(client.keyed(self.own_key(API_KEY)?)),
        }
    }

    /// The server of this project. Where none proves to be that: the one that the settings
    /// describe, and whether it may be another project's.
    async fn of_folder(&self, project: &Path) -> Result<(ServerLocation, Option<Unproven>)> {
        let data = project.join(DATA_FOLDER);
        let stale = match address::find(&data).await? {
            AddressState::Running(url) => {
                return Ok((ServerLocation { url, origin: Origin::Default }, None));
            }
            AddressState::Stale(why) => Some(why),
            AddressState::Nothing => None,
        };
        let settings = Settings::load(Some(project), &self.environment)?;
        let Some(located) = settings.served_at() else {
            let why = stale.map(|why| format!(": {why}")).unwrap_or_default();
            let what = format!("no server of this folder is known{why}");
            return Err(Failure::new(Exit::Unreachable, "unreachable", what).hint(
                "the settings leave its port to the system: start it with `waypost up`, or name \
                 it with `--server URL`",
            ));
        };
        // A server whose data is elsewhere leaves no address here: a port that somebody wrote is
        // enough for one. Outside of projects the default server is everybody's.
        let is_expected = stale.is_none() && located.origin != Origin::Default;
        if is_expected || (stale.is_none() && !is_project(project)) {
            return Ok((located, None));
        }
        let folder = std::path::absolute(project).unwrap_or_else(|_| project.to_path_buf());
        let folder = shown(&folder);
        let url = shown_url(&located.url);
        let unproven = Unproven::new(&folder, stale.as_deref(), &url, self.output);
        Ok((located, Some(unproven)))
    }

    /// Prints the server's answer: as it is with `--json`, else as `text` prints it for people.
    pub(crate) fn show<T: DeserializeOwned>(
        &self,
        body: &Value,
        text: impl FnOnce(T) -> Result<()>,
    ) -> Result<Exit> {
        self.output.either(body, || text(read(body)?))
    }

    /// Prints a list of the server: as it is with `--json`, else as a table with a row for each
    /// item. At a terminal a count follows; an empty list says why it is empty.
    pub(crate) fn table<T: DeserializeOwned, C: Into<Cell>>(
        &self,
        body: &Value,
        listing: Listing<'_>,
        row: impl FnMut(T) -> Vec<C>,
    ) -> Result<Exit> {
        self.show(body, |page: Page<T>| {
            let shown = page.items.len();
            let more = page.next_cursor.is_some();
            let table = Table::new(listing.heads, page.items.into_iter().map(row));
            self.rows(&table, shown)?;
            if shown == 0 {
                self.output.talk(listing.none);
            } else if more {
                let told = format!("there are more than these {shown}; `--limit` shows more");
                self.output.talk(&told);
            } else if Screen::of_stdout().width.is_some() {
                self.output.talk(&counted(shown, listing.noun));
            }
            Ok(())
        })
    }

    /// Prints a table of so many rows. Programs get the heads of an empty one, too.
    pub(crate) fn rows(&self, table: &Table, count: usize) -> Result<()> {
        let screen = Screen::of_stdout();
        if count == 0 && screen.width.is_some() {
            return Ok(());
        }
        self.output.painted(&table.text(screen, SystemClock.now()))
    }

    /// From now on a run of this session continues on the server, whatever becomes of this command.
    pub(crate) fn leaves_running(&self, session: &str) {
        let follow = self.command(&format!("waypost session tail {session}"));
        let end = self.command(&format!("waypost session cancel {session}"));
        self.leaves(format!(
            "the run continues on the server: follow it with `{follow}`, end it with `{end}`"
        ));
    }

    /// The same of work whose session is not known here.
    pub(crate) fn leaves_work(&self, what: &str) {
        let list = self.command("waypost session ls --status running");
        self.leaves(format!("{what} continues on the server: `{list}` lists it"));
    }

    fn leaves(&self, hint: String) {
        *self.continues.lock().unwrap_or_else(PoisonError::into_inner) = Some(hint);
    }

    /// What continues on the server, and how to follow and end it.
    pub(crate) fn continuing(&self) -> Option<String> {
        self.continues.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Someone pressed Ctrl-C.
    pub(crate) fn interrupted(&self) -> Failure {
        let failure = Failure::new(Exit::Interrupted, "interrupted", "interrupted");
        Failure { hint: self.continuing(), ..failure }
    }

    /// A command of ours, `waypost ..`, as a shell finds it, so that it reaches the same server,
    /// and the same realm there, as this one does.
    pub(crate) fn command(&self, command: &str) -> String {
        let Some(rest) = command.strip_prefix("waypost ") else { return command.to_owned() };
        let server = match &self.server.origin {
            Origin::Flag(_) => format!("--server {} ", self.server.url),
            _ => String::new(),
        };
        let realm = self.realm.as_ref().map(|realm| format!("--realm {realm} "));
        format!("{} {server}{}{rest}", self.program, realm.unwrap_or_default())
    }

    /// The admin key to send to that server, where there is one and no API key overrides it.
    pub(crate) fn admin_key(&self) -> Result<Option<String>> {
        if self.environment.get(API_KEY).is_some() { Ok(None) } else { self.own_key(ADMIN_KEY) }
    }

    /// The key in this variable, to be sent to that server; none where it is not set.
    fn own_key(&self, name: &str) -> Result<Option<String>> {
        let Some(key) = self.environment.get(name) else { return Ok(None) };
        // The author of the folder that we are in must not be able to have this person's key sent
        // to a server of their own.
        if let (Origin::At(named @ Source::Line { .. }), Source::Variable(_)) =
            (&self.server.origin, &key.source)
        {
            return Err(kept_back(name, &format!("{named} names"), &self.server.url));
        }
        if key.text.chars().any(char::is_control) {
            let what = format!("{name} ({}) has characters that cannot be sent", key.source);
            return Err(Failure::usage(what).hint("set it to the key alone, on one line"));
        }
        Ok(Some(key.text.clone()))
    }

    /// Progress for a user who waits; none where log lines are asked for, which would tear its
    /// line.
    pub(crate) fn progress(&self) -> Progress {
        match self.environment.get(LOG_LEVEL) {
            Some(_) => Progress::silent(),
            None => Progress::on(self.output),
        }
    }
}

/// Why a key of this shell is not sent to a server of which it was said: `.env:1 names`.
fn kept_back(key: &str, who_names_it: &str, url: &str) -> Failure {
    Failure::usage(format!("the {key} of this shell is not sent to a server that {who_names_it}"))
        .hint(format!("name the server yourself: `--server {}`", shown_url(url)))
}

fn named_server(flag: Option<String>, environment: &Environment) -> ServerLocation {
    let (url, origin) = match (flag, environment.get(SERVER)) {
        (Some(url), _) => (url, Origin::Flag("--server")),
        (None, Some(found)) => (found.text.clone(), Origin::At(found.source.clone())),
        (None, None) => (DEFAULT_SERVER.to_owned(), Origin::Default),
    };
    ServerLocation { url, origin }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(flag: Option<&str>, process: &[(&str, &str)], file: &str) -> Context {
        let environment = Environment::of_test(process, file);
        let server = named_server(flag.map(str::to_owned), &environment);
        let output = Output::new(false);
        let program = "waypost".to_owned();
        let project = None;
        let realm = None;
        let continues = Arc::default();
        Context { output, environment, project, server, realm, program, continues }
    }

    #[test]
    fn a_flag_goes_before_a_variable_and_that_before_the_file() {
        let process = [(SERVER, "http://b")];
        let told = |context: Context| format!("{} {}", context.server.url, context.server.origin);
        let file = "WAYPOST_SERVER=http://c";
        assert_eq!(told(context(Some("http://a"), &process, file)), "http://a flag --server");
        assert_eq!(told(context(None, &process, file)), "http://b environment WAYPOST_SERVER");
        assert_eq!(told(context(None, &[], file)), "http://c .env:1");
        assert_eq!(told(context(None, &[], "")), format!("{DEFAULT_SERVER} default"));
    }

    #[test]
    fn a_named_server_is_used() {
        let flagged = context(Some("http://a"), &[], "").command("waypost inbox ls");
        assert_eq!(flagged, "waypost --server http://a inbox ls");
        let variable = context(None, &[(SERVER, "http://b")], "");
        assert_eq!(variable.command("waypost inbox ls"), "waypost inbox ls");
        let placed = Context { realm: Some("acme".to_owned()), ..variable };
        assert_eq!(placed.command("waypost inbox ls"), "waypost --realm acme inbox ls");
        let built = Context { program: "target/debug/waypost".to_owned(), ..placed };
        assert_eq!(built.command("waypost whoami"), "target/debug/waypost --realm acme whoami");
    }

    #[test]
    fn an_interrupt_names_the_run_that_continues() {
        let context = context(Some("http://a"), &[], "");
        assert_eq!(context.interrupted().hint, None);
        context.leaves_running("ses_1");
        let told = context.interrupted();
        assert_eq!((told.exit, told.message.as_str()), (Exit::Interrupted, "interrupted"));
        let expected = "the run continues on the server: follow it with \
                        `waypost --server http://a session tail ses_1`, end it with \
                        `waypost --server http://a session cancel ses_1`";
        assert_eq!(told.hint.as_deref(), Some(expected));
    }

    #[test]
    fn a_folder_cannot_have_the_api_key_of_a_shell_sent_elsewhere() {
        let process = [(API_KEY, "secret")];
        let named = context(None, &process, "WAYPOST_SERVER=http://evil.test");
        let failure = named.client_at("http://evil.test").unwrap_err().to_string();
        assert!(failure.contains(".env:1") && !failure.contains("secret"), "{failure}");
        for key in [API_KEY, ADMIN_KEY] {
            let settings = context(None, &[(key, "secret")], "");
            let failure = settings.client_at("http://10.0.0.1:8420").unwrap_err().to_string();
            assert!(failure.contains(key) && !failure.contains("secret"), "{failure}");
        }
        for (context, url) in [
            (context(None, &process, ""), "http://127.0.0.1:1"),
            (context(Some("http://a.test"), &process, ""), "http://a.test"),
            (context(None, &[], "WAYPOST_API_KEY=secret"), "http://10.0.0.1:8420"),
        ] {
            assert!(context.client_at(url).is_ok(), "{context:?}");
        }
        let lines = context(None, &[(API_KEY, "sec\nret")], "").client_at("http://127.0.0.1:1");
        let failure = lines.unwrap_err().to_string();
        assert!(failure.contains("on one line") && !failure.contains("sec\n"), "{failure}");
    }

    #[test]
    fn an_api_key_goes_before_the_admin_key() {
        let both = context(None, &[(API_KEY, "secret"), (ADMIN_KEY, "other")], "");
        assert_eq!(both.admin_key().unwrap(), None);
    }

    #[test]
    fn a_folder_cannot_have_the_key_of_a_shell_sent_elsewhere() {
        let process = [(ADMIN_KEY, "secret")];
        let led_astray = context(None, &process, "WAYPOST_SERVER=http://evil.test");
        let failure = led_astray.admin_key().unwrap_err().to_string();
        assert!(failure.contains(".env:1") && !failure.contains("secret"), "{failure}");
        let key = Some("secret".to_owned());
        let file = "WAYPOST_SERVER=http://c\nWAYPOST_ADMIN_KEY=secret";
        for context in [
            context(None, &process, ""),
            context(Some("http://a"), &process, file),
            context(None, &[], file),
        ] {
            assert_eq!(context.admin_key().unwrap(), key, "{context:?}");
        }
        assert_eq!(context(None, &[], "").admin_key().unwrap(), None);
    }
}
