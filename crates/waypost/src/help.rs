//! The command line as a whole: commands in groups, aliases of shared verbs, and suggestions for
//! unknown commands. A command's own help is beside the command.

use clap::Command;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use kernel::definition::plan::mistake::did_you_mean;
use std::ffi::OsString;
use std::fmt::Write;

/// Commands that belong together.
struct Group {
    name: &'static str,
    commands: &'static [&'static str],
}

const GROUPS: &[Group] = &[
    Group { name: "Start", commands: &["init", "up", "demo", "doctor"] },
    Group { name: "Work", commands: &["chat", "run", "resume", "inbox", "record"] },
    Group {
        name: "Build",
        commands: &["plan", "pipeline", "agent", "schema", "tool", "mcp", "a2a", "example"],
    },
    Group {
        name: "Operate",
        commands: &[
            "serve", "session", "events", "config", "backup", "restore", "key", "principal",
            "realm", "policy", "audit", "whoami",
        ],
    },
    Group { name: "Shell", commands: &["completions", "man", "help"] },
];

/// The heading of the options that all commands take.
pub(crate) const GLOBAL: &str = "Global options";

const MORE: &str = "\
`waypost help COMMAND` says more about a command, `waypost help exit-codes` lists the exit codes.";

/// The verbs of all commands, and what people type instead. No help lists these.
const VERBS: &[(&str, &[&str])] = &[
    ("ls", &["list"]),
    ("show", &["get"]),
    ("add", &["create", "new"]),
    ("rm", &["remove", "delete"]),
];

/// What people look for that is no command of this command, and where it is.
const ELSEWHERE: &[(&str, &[&str], &str)] = &[
    ("waypost", &["log", "logs"], LOGS),
    ("waypost", &["ps", "status"], RUNNING),
    ("waypost", &["ls", "list"], LISTS),
    ("session", &["log", "logs", "events"], SESSION_LOG),
    ("agent", &["add", "create", "new"], NEW_AGENT),
    ("plan", &["add", "create", "new"], NEW_PLAN),
];
const RUNNING: &str = "'waypost session ls' lists what runs, 'waypost doctor' tells whether a \
                       server does";
const LISTS: &str = "each thing has a list of its own: 'waypost plan ls', 'waypost session ls', \
                     'waypost inbox ls', 'waypost agent ls', 'waypost tool ls'";
const SESSION_LOG: &str = "'waypost session tail' follows the events of a session, 'waypost \
                           session show' tells what it did";
const NEW_AGENT: &str =
    "'waypost agent apply FILE' stores an agent; a file in 'agents/' is one, too";
const NEW_PLAN: &str = "a plan is a file in 'plans/': write it there; 'waypost plan draft --save' \
                        writes one for a goal, 'waypost plan apply FILE' stores one on a server";
const LOGS: &str = "a server logs to its standard error; 'waypost events tail' follows what \
                    happens, 'waypost session tail' follows one session";

/// The same command line with its commands in groups and with those words.
pub(crate) fn arranged(command: Command) -> Command {
    let command = command.mut_subcommands(understood);
    let template = template(&command);
    command.help_template(template)
}

fn understood(command: Command) -> Command {
    let command = command.mut_subcommands(understood);
    let verb = VERBS.iter().find(|(verb, _)| *verb == command.get_name());
    match verb {
        Some((_, others)) => command.aliases(others.iter().copied()),
        None => command,
    }
}

/// What the help of the whole program looks like: what it is, then what can be done, then examples.
fn template(command: &Command) -> String {
    let mut text = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    let names = GROUPS.iter().flat_map(|group| group.commands);
    let width = names.map(|name| name.len()).max().unwrap_or_default();
    for group in GROUPS {
        // Writing to a text cannot fail.
        let _ = write!(text, "\n{}:\n", group.name);
        for name in group.commands {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {name:width$}  {about}");
        }
    }
    let _ = write!(text, "\n{GLOBAL}:\n{{options}}{{after-help}}\n\n{MORE}");
    text
}

/// The same error; about an unknown command also with what was meant, if clap itself sees nothing
/// alike: it compares letters by their places, so that `rnu` is far from `run`.
pub(crate) fn tipped(
    mut error: clap::Error,
    command: &Command,
    words: impl Iterator<Item = OsString>,
) -> clap::Error {
    let is_unknown = error.kind() == ErrorKind::InvalidSubcommand;
    let unknown = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(word)) if is_unknown => word.clone(),
        _ => return error,
    };
    let parent = parent(command, &unknown, words);
    let shown = parent.get_subcommands().filter(|inner| !inner.is_hide_set());
    let names: Vec<&str> = shown.map(Command::get_name).collect();
    let mut elsewhere = ELSEWHERE.iter().filter(|(of, ..)| *of == parent.get_name());
    if let Some((.., tip)) = elsewhere.find(|(_, words, _)| words.contains(&unknown.as_str())) {
        // Where it is goes before a word that looks alike: `create` is not `draft`.
        error.remove(ContextKind::SuggestedSubcommand);
        let tips = vec![StyledStr::from(*tip)];
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    } else if error.get(ContextKind::SuggestedSubcommand).is_none()
        && let Some(near) = closest_name(&unknown, &names)
    {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::String(near.to_owned()));
    }
    error
}

/// The name that was meant by this word: one that is much like it, or that has one letter more.
fn closest_name<'n>(unknown: &str, names: &[&'n str]) -> Option<&'n str> {
    let lacks_one = |name: &&&str| {
        let without = |(at, letter): (usize, char)| {
            [&name[..at], &name[at + letter.len_utf8()..]].concat() == unknown
        };
        unknown.len() > 1 && name.char_indices().any(without)
    };
    let near = did_you_mean(unknown, names.iter().copied());
    near.or_else(|| names.iter().find(lacks_one).copied())
}

/// The command among whose own the unknown one was looked for.
fn parent<'c>(
    command: &'c Command,
    unknown: &str,
    words: impl Iterator<Item = OsString>,
) -> &'c Command {
    let before = words.take_while(|word| word != unknown);
    before.fold(command, |found, word| found.find_subcommand(word).unwrap_or(found))
}

/// Checks that every command that is not hidden is in one group, and every group's commands exist.
#[cfg(test)]
pub(crate) fn misplaced(command: &Command) -> Vec<String> {
    let listed: Vec<&str> = GROUPS.iter().flat_map(|group| group.commands).copied().collect();
    let shown = command.get_subcommands().filter(|inner| !inner.is_hide_set());
    let shown: Vec<&str> = shown.map(Command::get_name).collect();
    let once = |name: &&str| listed.iter().filter(|listed| *listed == name).count() == 1;
    let unlisted = shown.iter().filter(|name| !once(name));
    let unknown = listed.iter().filter(|name| !shown.contains(name));
    unlisted.chain(unknown).map(|name| (*name).to_owned()).collect()
}
