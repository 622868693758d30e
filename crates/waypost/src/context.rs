//! What every command is given: how to print, which variables are set, which project it is about
//! and where the server is.

use crate::client::{Client, DEFAULT_SERVER};
use crate::environment::{ADMIN_KEY, Environment, LOG_LEVEL, SERVER};
use crate::exit::Failure;
use crate::output::Output;
use crate::progress::Progress;
use crate::settings::Origin;
use server::layer::Source;
use std::path::PathBuf;

/// One call of `waypost`.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    /// How to print.
    pub(crate) output: Output,
    /// The variables that are set.
    pub(crate) environment: Environment,
    /// The folder of the project; none for the demo.
    pub(crate) project: Option<PathBuf>,
    /// Where the server is.
    pub(crate) server: String,
    /// Who says so.
    pub(crate) server_origin: Origin,
}

impl Context {
    /// The context of a command about this project; `server` is what the command line names.
    pub(crate) fn new(
        output: Output,
        project: Option<PathBuf>,
        server: Option<String>,
    ) -> Result<Self, Failure> {
        let environment = Environment::of(project.as_deref())?;
        let (server, server_origin) = named_server(server, &environment);
        Ok(Self { output, environment, project, server, server_origin })
    }

    /// A client of that server; nothing is sent yet.
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        Client::new(&self.server)
    }

    /// A command of ours, `waypost ..`, so that it reaches the same server as this one does.
    pub(crate) fn command(&self, command: &str) -> String {
        match (&self.server_origin, command.strip_prefix("waypost ")) {
            (Origin::Flag(_), Some(rest)) => format!("waypost --server {} {rest}", self.server),
            _ => command.to_owned(),
        }
    }

    /// The admin key to send to that server, where there is one.
    pub(crate) fn admin_key(&self) -> Result<Option<String>, Failure> {
        let Some(key) = self.environment.get(ADMIN_KEY) else { return Ok(None) };
        // Whoever wrote the folder that we stand in must not be able to have this person's key sent
        // to a server of their own.
        if let (Origin::At(named @ Source::Line { .. }), Source::Variable(_)) =
            (&self.server_origin, &key.source)
        {
            let what =
                format!("the {ADMIN_KEY} of this shell is not sent to a server that {named}");
            return Err(Failure::usage(format!("{what} names"))
                .hint(format!("name the server yourself: `--server {}`", self.server)));
        }
        Ok(Some(key.text.clone()))
    }

    /// Progress for whoever waits; none where log lines are asked for, which would tear its line.
    pub(crate) fn progress(&self) -> Progress {
        match self.environment.get(LOG_LEVEL) {
            Some(_) => Progress::silent(),
            None => Progress::on(self.output),
        }
    }
}

fn named_server(flag: Option<String>, environment: &Environment) -> (String, Origin) {
    match (flag, environment.get(SERVER)) {
        (Some(url), _) => (url, Origin::Flag("--server")),
        (None, Some(found)) => (found.text.clone(), Origin::At(found.source.clone())),
        (None, None) => (DEFAULT_SERVER.to_owned(), Origin::Default),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(flag: Option<&str>, process: &[(&str, &str)], file: &str) -> Context {
        let environment = Environment::of_test(process, file);
        let (server, server_origin) = named_server(flag.map(str::to_owned), &environment);
        let output = Output::new(false);
        Context { output, environment, project: None, server, server_origin }
    }

    #[test]
    fn a_flag_goes_before_a_variable_and_that_before_the_file() {
        let process = [(SERVER, "http://b")];
        let told = |context: Context| format!("{} {}", context.server, context.server_origin);
        let file = "WAYPOST_SERVER=http://c";
        assert_eq!(told(context(Some("http://a"), &process, file)), "http://a flag --server");
        assert_eq!(told(context(None, &process, file)), "http://b environment WAYPOST_SERVER");
        assert_eq!(told(context(None, &[], file)), "http://c .env:1");
        assert_eq!(told(context(None, &[], "")), format!("{DEFAULT_SERVER} default"));
    }

    #[test]
    fn a_command_reaches_the_server_that_was_named() {
        let flagged = context(Some("http://a"), &[], "").command("waypost inbox ls");
        assert_eq!(flagged, "waypost --server http://a inbox ls");
        let variable = context(None, &[(SERVER, "http://b")], "");
        assert_eq!(variable.command("waypost inbox ls"), "waypost inbox ls");
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
