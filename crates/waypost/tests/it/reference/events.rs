//! Every event of the journal, in the words of the code that declares it.

use super::head;
use kernel::event::{Fact, VERSION};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;

const ABOUT: &str = "\
What the journal holds and `waypost session tail` shows: each event is
`{\"seq\", \"at\", \"v\", \"type\", \"data\"}`, where `at` is in milliseconds since 1970. A type and its
version never change their meaning once they are released.";

/// Where `Fact` is declared.
const SOURCE: &str = include_str!("../../../../kernel/src/event/mod.rs");

/// What the page says in other words than the code.
const REWORDED: (&str, &str) = ("event.published", "A step published an event.");

/// The page.
pub(super) fn page() -> String {
    let mut meanings = meanings();
    meanings.insert(REWORDED.0, REWORDED.1.to_owned());
    let mut page = head("Events", ABOUT);
    page.push_str("\n| type | version | what happened |\n|---|---|---|\n");
    for name in types() {
        let meaning = meanings.get(name.as_str()).unwrap_or_else(|| panic!("no words on {name}"));
        page.push_str(&format!("| `{name}` | {VERSION} | {meaning} |\n"));
    }
    page
}

/// What the comment above each variant of `Fact` says, by the type that the line below it names.
fn meanings() -> BTreeMap<&'static str, String> {
    let mut meanings = BTreeMap::new();
    let mut said: Vec<&str> = Vec::new();
    for line in SOURCE.lines() {
        if let Some(words) = line.strip_prefix("    /// ") {
            said.push(words);
            continue;
        }
        let named = line.strip_prefix("    #[serde(rename = \"");
        if let Some(name) = named.and_then(|rest| rest.strip_suffix("\")]")) {
            meanings.insert(name, said.join(" "));
        }
        said.clear();
    }
    meanings
}

/// The types that this release knows, as the reader of a journal knows them: the reader names them
/// all when it meets an unknown one.
fn types() -> Vec<String> {
    let unknown = json!({"type": "", "data": {}});
    let told = Fact::deserialize(unknown).unwrap_err().to_string();
    let (_, list) = told.split_once("expected one of").unwrap();
    let words = list.split('`').skip(1).step_by(2);
    words.map(str::to_owned).collect()
}
