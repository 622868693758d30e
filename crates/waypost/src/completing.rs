//! Shell completion of names on the server: plans, agents, sessions, asks, tools, pipelines
//! and types of records. Where no server answers soon, nothing is completed.

use crate::context::Context;
use crate::environment::locations::project_folder;
use crate::exit::Exit;
use crate::remote::client::Request;
use crate::terminal::output::{Output, one_line};
use clap::Command;
use clap_complete::CompleteEnv;
use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use serde_json::Value;
use std::ffi::OsStr;
use std::process::ExitCode;
use std::time::Duration;

/// A shell that asks us sets this variable to its own name.
pub(crate) const VARIABLE: &str = "WAYPOST_COMPLETE";
/// A person waits for it while they type.
const LIMIT: Duration = Duration::from_millis(1500);
/// So many names are offered.
const ITEMS_MAX: usize = 200;

/// The list of types of records, which is not one of `/api/v1`.
const ROOT_TYPES: &str = "rootTypes";

/// What an argument names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plan,
    PlanOrFile,
    Agent,
    Session,
    Ask,
    Tool,
    Pipeline,
    RecordType,
}

/// Where names come from.
struct Source {
    /// The list of the server.
    list: &'static str,
    /// The member that holds its items.
    items: &'static str,
    /// The member that is typed; the first that an item has.
    names: &'static [&'static str],
    /// The member that says more.
    about: &'static str,
    /// Which of them.
    status: Option<&'static str>,
}

impl Kind {
    fn source(self) -> Source {
        match self {
            Kind::Plan | Kind::PlanOrFile => source("plans", &["id"], "description"),
            Kind::Agent => source("agents", &["refName"], "description"),
            Kind::Session => source("sessions", &["key", "id"], "status"),
            Kind::Ask => Source { status: Some("open"), ..source("asks", &["id"], "title") },
            Kind::Tool => source("tools", &["name"], "description"),
            Kind::Pipeline => source("pipelines", &["name"], "description"),
            Kind::RecordType => {
                Source { items: ROOT_TYPES, ..source(ROOT_TYPES, &["simpleName"], "className") }
            }
        }
    }
}

const fn source(list: &'static str, names: &'static [&'static str], about: &'static str) -> Source {
    Source { list, items: "items", names, about, status: None }
}

/// An argument of a command, and what it names.
struct NamedArgument {
    command: &'static [&'static str],
    argument: &'static str,
    kind: Kind,
}

const fn place(
    command: &'static [&'static str],
    argument: &'static str,
    kind: Kind,
) -> NamedArgument {
    NamedArgument { command, argument, kind }
}

/// Every argument that names something on the server.
const PLACES: &[NamedArgument] = &[
    place(&["plan", "show"], "id", Kind::Plan),
    place(&["plan", "rm"], "id", Kind::Plan),
    place(&["plan", "run"], "id", Kind::PlanOrFile),
    place(&["plan", "run"], "session", Kind::Session),
    place(&["plan", "graph"], "file", Kind::PlanOrFile),
    place(&["plan", "test"], "paths", Kind::PlanOrFile),
    place(&["plan", "validate"], "paths", Kind::PlanOrFile),
    place(&["session", "ls"], "plan", Kind::Plan),
    place(&["session", "show"], "session", Kind::Session),
    place(&["session", "tail"], "session", Kind::Session),
    place(&["session", "pause"], "session", Kind::Session),
    place(&["session", "continue"], "session", Kind::Session),
    place(&["session", "retry"], "session", Kind::Session),
    place(&["session", "fork"], "session", Kind::Session),
    place(&["session", "export"], "session", Kind::Session),
    place(&["session", "cancel"], "session", Kind::Session),
    place(&["session", "rm"], "session", Kind::Session),
    place(&["inbox", "ls"], "session", Kind::Session),
    place(&["inbox", "show"], "ask", Kind::Ask),
    place(&["inbox", "answer"], "ask", Kind::Ask),
    place(&["inbox", "approve"], "ask", Kind::Ask),
    place(&["inbox", "reject"], "ask", Kind::Ask),
    place(&["agent", "show"], "name", Kind::Agent),
    place(&["agent", "rm"], "name", Kind::Agent),
    place(&["chat"], "agent", Kind::Agent),
    place(&["chat"], "thread", Kind::Session),
    place(&["run"], "thread", Kind::Session),
    place(&["resume"], "thread", Kind::Session),
    place(&["tool", "show"], "name", Kind::Tool),
    place(&["tool", "call"], "name", Kind::Tool),
    place(&["pipeline", "send"], "name", Kind::Pipeline),
    place(&["record", "schema"], "record_type", Kind::RecordType),
    place(&["record", "find"], "record_type", Kind::RecordType),
    place(&["record", "count"], "record_type", Kind::RecordType),
    place(&["record", "save"], "record_type", Kind::RecordType),
    place(&["record", "rm"], "record_type", Kind::RecordType),
];

/// Answers a shell that asks what can be typed next; none where no shell asks.
pub(crate) fn answered(command_line: fn() -> Command) -> Option<ExitCode> {
    let folder = std::env::current_dir().ok();
    let shells = CompleteEnv::with_factory(|| completed(command_line())).var(VARIABLE);
    match shells.try_complete(std::env::args_os(), folder.as_deref()) {
        Ok(false) => None,
        Ok(true) => Some(Exit::Ok.into()),
        Err(error) => {
            // No one is left to tell when even this cannot be written.
            let _ = error.print();
            Some(Exit::Usage.into())
        }
    }
}

/// The same command line, which knows what its arguments name.
pub(crate) fn completed(command: Command) -> Command {
    PLACES.iter().fold(command, |command, place| named_at(command, place.command, place))
}

fn named_at(command: Command, path: &[&str], place: &NamedArgument) -> Command {
    match path.split_first() {
        Some((first, rest)) => command.mut_subcommand(first, |inner| named_at(inner, rest, place)),
        // All of them are gone through: `mut_arg` would put this one behind the others.
        None => command.mut_args(|argument| match argument.get_id().as_str() == place.argument {
            true => argument.add(ArgValueCompleter::new(Names { kind: place.kind })),
            false => argument,
        }),
    }
}

/// Checks that every argument that is completed exists.
#[cfg(test)]
pub(crate) fn misplaced(command: &Command) -> Vec<String> {
    let is_there = |place: &&NamedArgument| {
        let mut inner = Some(command);
        for name in place.command {
            inner = inner.and_then(|inner| inner.find_subcommand(name));
        }
        let mut arguments = inner.into_iter().flat_map(Command::get_arguments);
        arguments.any(|argument| argument.get_id().as_str() == place.argument)
    };
    let missing = PLACES.iter().filter(|place| !is_there(place));
    missing.map(|place| format!("{} {}", place.command.join(" "), place.argument)).collect()
}

/// The names of one kind.
struct Names {
    kind: Kind,
}

impl ValueCompleter for Names {
    fn complete(&self, typed: &OsStr) -> Vec<CompletionCandidate> {
        let begin = typed.to_string_lossy();
        let page = fetched(&self.kind.source()).unwrap_or_default();
        let mut found = fitting(&page, &self.kind.source(), &begin);
        if self.kind == Kind::PlanOrFile {
            found.extend(PathCompleter::any().complete(typed));
        }
        found
    }
}

/// The server's list; none where there is no server, or it takes too long.
fn fetched(source: &Source) -> Option<Value> {
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    let words: Vec<String> = words.collect();
    let after = |option: &str| {
        let place = words.iter().position(|word| word == option)?;
        words.get(place + 1).cloned()
    };
    let server = after("--server");
    let realm = after("--realm");
    let output = Output::new(false).hushed(true);
    let context = Context::new(output, Some(project_folder(None)), server, realm).ok()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let asked = async {
        let client = context.client().await?;
        if source.list == ROOT_TYPES {
            return client.get(Request::below_api(&["query", ROOT_TYPES])).await;
        }
        let request = Request::to(&[source.list]).with("status", source.status);
        client.list(request, ITEMS_MAX).await
    };
    runtime.block_on(async { tokio::time::timeout(LIMIT, asked).await }).ok()?.ok()
}

/// The names that begin like this. Names that a shell could not take as one word are left out.
fn fitting(page: &Value, source: &Source, begin: &str) -> Vec<CompletionCandidate> {
    let items = page[source.items].as_array().into_iter().flatten();
    let named = items.filter_map(|item| {
        let name = source.names.iter().find_map(|member| item[*member].as_str());
        let is_word = |name: &&str| !name.contains(|c: char| c.is_whitespace() || c.is_control());
        Some((name.filter(is_word)?, item[source.about].as_str().unwrap_or_default()))
    });
    let fitting = named.filter(|(name, _)| name.starts_with(begin));
    let candidate = |(name, about): (&str, &str)| {
        CompletionCandidate::new(name).help(Some(one_line(about).into()))
    };
    fitting.map(candidate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_with_the_typed_prefix_are_offered() {
        let page = json!({"items": [
            {"key": "ada", "id": "ses_1", "status": "waiting"},
            {"key": null, "id": "ses_2", "status": "running"},
            {"key": "two words", "id": "ses_3", "status": "running"},
        ]});
        let offered = |begin: &str| -> Vec<String> {
            let found = fitting(&page, &Kind::Session.source(), begin);
            found.iter().map(|one| one.get_value().to_string_lossy().into_owned()).collect()
        };
        assert_eq!(offered(""), ["ada", "ses_2"]);
        assert_eq!(offered("a"), ["ada"]);
        assert!(fitting(&Value::Null, &Kind::Ask.source(), "").is_empty());
    }
}
