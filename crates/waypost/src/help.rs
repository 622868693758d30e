//! The command line as a whole: its commands in groups, and the other words that people type for
//! the verbs that all commands share. A command's own help is beside the command.

use clap::Command;
use std::fmt::Write;

/// Commands that belong together.
struct Group {
    name: &'static str,
    commands: &'static [&'static str],
}

const GROUPS: &[Group] = &[
    Group { name: "Start", commands: &["init", "up", "demo", "doctor"] },
    Group { name: "Work", commands: &["chat", "run", "resume", "inbox"] },
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
