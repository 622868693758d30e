//! Every command of the README and of the guides is run from an empty folder, with `waypost` on the
//! `PATH`, as a newcomer has it; or `pages.rs` says why it cannot be. A command that stands in no
//! list is run, so a new one that does not work fails here.

mod pages;
mod terminal;

use crate::blocks::{self, Block};
use pages::{ELSEWHERE, Note, PAGES, Page, Treated};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use terminal::{Outcome, Terminal};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A command as a page writes it.
struct Written {
    /// The line of the page where it begins.
    line: usize,
    /// All of it.
    text: String,
}

impl Written {
    /// Its first line without a comment: what notes name it by.
    fn key(&self) -> &str {
        let first = self.text.lines().next().unwrap_or_default();
        let bare = first.split(" #").next().unwrap_or_default().trim();
        bare.strip_suffix('\\').unwrap_or(bare).trim_end()
    }
}

/// The commands of a block, each with all its lines.
fn commands(block: &Block) -> Vec<Written> {
    let is_console = block.language == "console";
    let mut found = Vec::new();
    let mut open = None::<Written>;
    let mut until = None::<String>;
    for (index, raw) in block.text.lines().enumerate() {
        let prompted = raw.strip_prefix("$ ");
        let line = prompted.unwrap_or(raw);
        let begins = if is_console { prompted.is_some() } else { !is_aside(line) };
        if open.is_none() && !begins {
            continue;
        }
        let at = block.line + 1 + index;
        let command = open.get_or_insert_with(|| Written { line: at, text: String::new() });
        command.text.push_str(line);
        command.text.push('\n');
        match &until {
            Some(word) if line == word => until = None,
            Some(_) => continue,
            None => until = here_document(line),
        }
        if until.is_none() && !line.ends_with('\\') && is_whole(&command.text) {
            found.extend(open.take());
        }
    }
    assert!(open.is_none(), "line {}: a command that does not end", block.line);
    found
}

/// Whether a line holds no command.
fn is_aside(line: &str) -> bool {
    line.trim().is_empty() || line.trim_start().starts_with('#')
}

/// The word that ends the text which a command is given, if it is given one.
fn here_document(line: &str) -> Option<String> {
    let (word, _) = line.split_once("<<'")?.1.split_once('\'')?;
    Some(word.to_owned())
}

/// Whether a shell sees the end of it.
fn is_whole(text: &str) -> bool {
    let mut shell = Command::new("sh");
    shell.args(["-n", "-c", text]).stderr(Stdio::null());
    shell.status().unwrap().success()
}

fn all_commands(text: &str) -> Vec<Written> {
    let blocks = blocks::read(text);
    let shells = blocks.iter().filter(|block| ["sh", "console"].contains(&&*block.language));
    shells.flat_map(commands).collect()
}

/// What a page says of this command, which stands there for the `time`-th time.
fn noted<'p>(page: &'p Page, key: &str, time: usize) -> Option<&'p Note> {
    let this_time = format!("{key}#{time}");
    let is_it = |note: &&Note| match note.command.strip_suffix('*') {
        Some(beginning) => key.starts_with(beginning),
        None => note.command == key,
    };
    let single = page.notes.iter().find(|note| note.command == this_time);
    single.or_else(|| page.notes.iter().find(is_it))
}

/// Runs one page, and says all that went wrong.
fn run_page(file: &str) {
    let page = PAGES.iter().find(|page| page.file == file).unwrap();
    let mut terminal = Terminal::open(ROOT);
    let nothing = Written { line: 0, text: String::new() };
    for setup in page.before {
        let done = treated(&mut terminal, page, &nothing, setup);
        assert_eq!(done, Ok(()), "{file}: before its first command");
    }
    let mut wrong = Vec::new();
    let mut times = BTreeMap::new();
    let mut used = Vec::new();
    for command in all_commands(page.text) {
        let key = command.key().to_owned();
        let time = times.entry(key.clone()).and_modify(|time| *time += 1).or_insert(1_usize);
        let note = noted(page, &key, *time);
        used.extend(note.map(|note| note.command));
        if page.afresh.contains(&&*key) {
            terminal.begin_afresh();
        }
        let how = note.map_or(&Treated::Ends(0), |note| &note.treated);
        if let Err(why) = treated(&mut terminal, page, &command, how) {
            wrong.push(format!("{file}:{}: `{key}`: {why}", command.line));
        }
    }
    let stale = page.notes.iter().filter(|note| !used.contains(&note.command));
    wrong.extend(stale.map(|note| format!("{file} has no command `{}` any more", note.command)));
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Does this with a command of a page.
fn treated(
    terminal: &mut Terminal,
    page: &Page,
    command: &Written,
    how: &Treated,
) -> Result<(), String> {
    let is = |outcome: &Outcome, code: i32| match outcome.is(code) {
        true => Ok(()),
        false => Err(format!("expected exit code {code}: {outcome:?}")),
    };
    match how {
        Treated::Ends(code) => is(&terminal.run(&command.text), *code),
        Treated::Puts(words, code) => {
            let mut text = command.text.clone();
            for (word, instead) in *words {
                if !text.contains(word) {
                    return Err(format!("it has no `{word}`"));
                }
                text = text.replace(word, instead);
            }
            is(&terminal.run(&text), *code)
        }
        Treated::Serves(text) => is(&terminal.serve(text, true), 0),
        Treated::ServesOnce(text) => is(&terminal.serve(text, false), 0),
        Treated::Runs(text) => is(&terminal.run(text), 0),
        Treated::Shown(file, words) => {
            let blocks = blocks::read(page.text);
            let block = blocks.iter().find(|block| block.text.contains(words));
            let block = block.ok_or_else(|| format!("the page shows nothing with `{words}`"))?;
            terminal.add_to(file, &block.text);
            Ok(())
        }
        Treated::Each(steps) => {
            steps.iter().try_for_each(|step| treated(terminal, page, command, step))
        }
        Treated::Left(why) => {
            assert!(!why.is_empty(), "a command is left out for a reason");
            is_known(terminal, command.key())
        }
    }
}

/// A command that cannot be run must still be one that the binary knows, with its options.
fn is_known(terminal: &mut Terminal, key: &str) -> Result<(), String> {
    let alone = [" | ", " > ", " && "]
        .into_iter()
        .fold(key, |key, sign| key.split_once(sign).map_or(key, |(before, _)| before));
    if !alone.starts_with("waypost ") {
        return Ok(());
    }
    let Outcome { said, .. } = terminal.run(&format!("{alone} --help\n"));
    let unknown = ["unexpected argument", "unrecognized subcommand"];
    match unknown.iter().any(|words| said.contains(words)) {
        true => Err(said),
        false => Ok(()),
    }
}

macro_rules! pages {
    ($($name:ident: $file:literal;)*) => {
        /// The pages that a test below runs.
        const RUN: &[&str] = &[$($file),*];
        $(
            #[test]
            fn $name() {
                run_page($file);
            }
        )*
    };
}

pages! {
    the_readme: "README.md";
    agentvault: "docs/guides/agentvault.md";
    audit: "docs/guides/audit.md";
    backup: "docs/guides/backup.md";
    be_called: "docs/guides/be-called.md";
    calendar: "docs/guides/calendar.md";
    configuration: "docs/guides/configuration.md";
    connect_a_server: "docs/guides/connect-a-server.md";
    deployment: "docs/guides/deployment.md";
    drafts: "docs/guides/drafts.md";
    events_to_a_webhook: "docs/guides/events-to-a-webhook.md";
    first_agent: "docs/guides/first-agent.md";
    first_type: "docs/guides/first-type.md";
    keys: "docs/guides/keys.md";
    limit_tools: "docs/guides/limit-tools.md";
    network: "docs/guides/network.md";
    oidc: "docs/guides/oidc.md";
    pipelines: "docs/guides/pipelines.md";
    principals: "docs/guides/principals.md";
    rest_provider: "docs/guides/rest-provider.md";
    run_an_agent: "docs/guides/run-an-agent.md";
    sign_cards: "docs/guides/sign-cards.md";
    telemetry: "docs/guides/telemetry.md";
    upgrade: "docs/guides/upgrade.md";
    write_a_policy: "docs/guides/write-a-policy.md";
}

#[test]
fn no_page_with_commands_is_forgotten() {
    let folder = Path::new(ROOT).join("docs/guides");
    let mut forgotten = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let file = format!("docs/guides/{}", path.file_name().unwrap().to_str().unwrap());
        let is_known = RUN.contains(&&*file) || ELSEWHERE.iter().any(|(page, _)| *page == file);
        if !is_known && !all_commands(&fs::read_to_string(&path).unwrap()).is_empty() {
            forgotten.push(file);
        }
    }
    assert!(forgotten.is_empty(), "no test runs the commands of {forgotten:?}");
    for (page, test) in ELSEWHERE {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it").join(test);
        let name = page.rsplit('/').next().unwrap();
        assert!(fs::read_to_string(source).unwrap().contains(name), "{test} does not run {page}");
    }
}

#[test]
fn commands_are_found_whole() {
    let text = "```sh\n# aside\na b   # why\ncat > x <<'END'\none # two\nEND\nfor n in 1 2; do\n  \
                c $n\ndone\ncurl \\\n  -d '{\n}'\n```\n```console\n$ d\nprinted\n```\n";
    let found = all_commands(text);
    let keys: Vec<&str> = found.iter().map(Written::key).collect();
    assert_eq!(keys, ["a b", "cat > x <<'END'", "for n in 1 2; do", "curl", "d"]);
    assert_eq!((found[0].line, found[1].line), (3, 4));
    assert_eq!(found[3].text, "curl \\\n  -d '{\n}'\n");
}
