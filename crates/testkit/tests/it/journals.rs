//! Journals of every release, kept as data: this release reads them and comes to the state that was
//! noted beside them. A released event never changes its meaning, so nothing of an older release is
//! ever written anew; `UPDATE_EXPECT=1` records the journals of the present one from the kernel's
//! scenes, and what they add up to.
//!
//! A journal's file holds the rows of its table: each line is the JSON array of one append's
//! events.

use kernel::event::{self, Event, Fact};
use kernel::session::{Run, Session};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use testkit::scene::Scene;

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/journals/data");
const SCENES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../kernel/tests/scenes");
/// Where the journals of the next release are, which may still be recorded anew. A release gives
/// the folder its name; nothing is ever recorded into that of a release.
const PRESENT: &str = "unreleased";

/// The first append of a run makes the session and the run; later ones hold up to so many events.
const FIRST_APPEND: usize = 2;
const LATER_APPENDS: usize = 3;

#[test]
fn journals_of_every_release_replay_to_their_state() {
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        record();
    }
    let mut read = 0;
    let mut wrong = Vec::new();
    for release in children(Path::new(DATA)) {
        for path in children(&release).into_iter().filter(|path| has(path, "journal")) {
            let noted = fs::read_to_string(path.with_extension("expect"))
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let came = summary(&replay(&path));
            if came != noted {
                let name = path.display();
                wrong.push(format!("{name} comes to:\n{came}\nexpected:\n{noted}"));
            }
            read += 1;
        }
    }
    assert!(read > 0, "there are no journals in {DATA}; `UPDATE_EXPECT=1` records some");
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Plays every scene and keeps its journal, and the state that it comes to.
fn record() {
    let folder = Path::new(DATA).join(PRESENT);
    if folder.exists() {
        fs::remove_dir_all(&folder).unwrap();
    }
    fs::create_dir_all(&folder).unwrap();
    for path in children(Path::new(SCENES)).into_iter().filter(|path| has(path, "scene")) {
        let scene = Scene::parse(&fs::read_to_string(&path).unwrap());
        let events = scene.record();
        let (first, later) = events.split_at(events.len().min(FIRST_APPEND));
        let mut text = row(first);
        for append in later.chunks(LATER_APPENDS) {
            text.push_str(&row(append));
        }
        let journal = folder.join(path.file_stem().unwrap()).with_extension("journal");
        fs::write(&journal, text).unwrap();
        fs::write(journal.with_extension("expect"), summary(&replay(&journal))).unwrap();
    }
}

fn row(events: &[Event]) -> String {
    format!("{}\n", serde_json::to_string(events).unwrap())
}

/// The state that a journal adds up to.
fn replay(path: &Path) -> Session {
    let text = fs::read_to_string(path).unwrap();
    let rows = text.lines().map(|row| {
        event::read(row).unwrap_or_else(|unreadable| panic!("{}: {unreadable}", path.display()))
    });
    let events: Vec<Event> = rows.flatten().collect();
    let Some(Event { fact: Fact::SessionCreated { id, key, .. }, .. }) = events.first() else {
        panic!("{} does not begin with its session", path.display());
    };
    let mut session = Session::new(*id, key.clone());
    for event in &events {
        assert_eq!(event.seq, session.seq + 1, "{} skips an event", path.display());
        session.apply(event);
    }
    let snapshot = serde_json::to_string(&session).unwrap();
    let back: Session = serde_json::from_str(&snapshot).unwrap();
    assert_eq!(back, session, "{}: a snapshot is another state", path.display());
    session
}

/// What a journal must still come to: how its runs stand, what is asked, what the context holds.
fn summary(session: &Session) -> String {
    let mut text = format!("events: {}\n", session.seq);
    for run in session.last_run.iter().chain(session.runs.values()) {
        text.push_str(&run_summary(run));
    }
    for open in session.asks.values().filter(|open| open.is_open()) {
        let step = &open.ask.step;
        let kind = open.ask.body.kind();
        text.push_str(&format!("ask: {step} {kind} {:?}\n", open.ask.title));
    }
    let context = session.shown_context();
    let keys: Vec<&str> = context.keys().map(|key| key.as_str()).collect();
    text.push_str(&format!("context: {}\n", keys.join(" ")));
    text
}

fn run_summary(run: &Run) -> String {
    let mut text = format!("run {} of {}: {}\n", run.no, run.plan, run.status().name());
    if let Some(answer) = &run.answer {
        text.push_str(&format!("answer: {}\n", answer.to_value()));
    }
    if let Some(fault) = &run.last_error {
        text.push_str(&format!("error: {fault}\n"));
    }
    text
}

/// What a folder holds, in order of name.
fn children(folder: &Path) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn has(path: &Path, extension: &str) -> bool {
    path.extension() == Some(OsStr::new(extension))
}
