//! "Did you mean": suggests known names for a name that the server does not have.

use crate::environment::locations::{project_folder, shown};
use crate::exit::Result;
use crate::remote::client::{Client, Request};
use kernel::definition::plan::mistake::meant;
use serde_json::Value;

/// A list of the server, the member by which people name its items, and the command that lists
/// them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Names {
    list: &'static str,
    member: &'static str,
    command: &'static str,
}

/// The plans, by id.
pub(crate) const PLANS: Names = Names { list: "plans", member: "id", command: "plan ls" };
/// The agents, by name.
pub(crate) const AGENTS: Names = Names { list: "agents", member: "refName", command: "agent ls" };
/// The sinks, by name.
pub(crate) const SINKS: Names = Names { list: "sinks", member: "name", command: "events sinks" };
/// The pipelines, by name.
pub(crate) const PIPELINES: Names =
    Names { list: "pipelines", member: "name", command: "pipeline ls" };
/// The sessions, by the client's own key: no one types a `ses_..` by hand.
pub(crate) const SESSIONS: Names = Names { list: "sessions", member: "key", command: "session ls" };

impl Names {
    /// A request for the item of this name.
    pub(crate) fn item(self, word: &str) -> Request<'_> {
        Request::to(&[self.list, word])
    }

    /// The file of the present project that would have this name.
    fn file_of(self, word: &str) -> Option<String> {
        let is_plain = |part: &str| !part.is_empty() && part != ".." && !part.contains('\\');
        if self.list != PLANS.list || !word.split('/').all(is_plain) {
            return None;
        }
        let folder = project_folder(None).join("plans");
        let file = |ending: &&str| folder.join(format!("{word}.{ending}"));
        let found = ["yaml", "yml", "json"].iter().map(file).find(|file| file.is_file());
        found.map(|file| shown(&file))
    }
}

/// The newest so many are worth a look; the name that was meant is most likely among them.
const LOOKED_AT: usize = 200;

/// The names that the server knows; none where it does not answer, for nothing depends on them.
pub(crate) async fn names_of(client: &Client, names: Names) -> Vec<String> {
    let page = client.list(Request::to(&[names.list]), LOOKED_AT).await.unwrap_or_default();
    let items = page["items"].as_array().into_iter().flatten();
    let known = items.filter_map(|item| item.get(names.member).and_then(Value::as_str));
    known.map(str::to_owned).collect()
}

/// The ids of the listed sessions that have this very key: those of other callers.
fn with_key<'p>(page: &'p Value, key: &str) -> Vec<&'p str> {
    let items = page["items"].as_array().into_iter().flatten();
    let found = items.filter(|item| item[SESSIONS.member] == *key);
    found.filter_map(|item| item["id"].as_str()).collect()
}

/// Reads the item of this name. Where there is none, the failure names the one that was meant.
pub(crate) async fn get_or_suggest(client: &Client, names: Names, word: &str) -> Result<Value> {
    or_suggest(client, names, word, client.get(names.item(word))).await
}

/// The same answer. A failure because the server knows no such thing names the one that was meant.
pub(crate) async fn or_suggest<T>(
    client: &Client,
    names: Names,
    word: &str,
    answer: impl Future<Output = Result<T>>,
) -> Result<T> {
    let mut failure = match answer.await {
        Err(failure) => failure,
        found => return found,
    };
    let is_told = failure.hint.as_deref().is_some_and(|hint| hint.starts_with("did you mean"));
    // What is missing may be something else that the request names.
    let is_about_it = failure.message.contains(&format!("`{word}`"));
    if failure.code != "not_found" || !is_about_it {
        return Err(failure);
    }
    if let Some(file) = names.file_of(word) {
        failure.hint = Some(format!(
            "`{file}` is there, and the server has not read it: start the server again; with \
             `waypost up --watch` it takes new files at once"
        ));
        return Err(failure);
    }
    if is_told {
        return Err(failure);
    }
    if names.list == SESSIONS.list {
        let page = client.list(Request::to(&[names.list]), LOOKED_AT).await.unwrap_or_default();
        let ids = with_key(&page, word);
        if !ids.is_empty() {
            let ids = ids.join(", ");
            failure.hint = Some(format!("a session of another caller is named by its id: {ids}"));
            return Err(failure);
        }
    }
    let known = names_of(client, names).await;
    failure.hint = meant(word, known.iter().map(String::as_str)).or(failure.hint);
    if failure.hint.is_none() {
        failure.hint = Some(format!("`waypost {}` lists the {}", names.command, names.list));
    }
    Err(failure)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn sessions_of_others_are_found_by_their_own_key() {
        let item = |id: &str, key: &str| json!({"id": id, "key": key});
        let items = [item("ses_1", "order"), item("ses_2", "orders"), item("ses_3", "order")];
        let page = json!({"items": items});
        assert_eq!(with_key(&page, "order"), ["ses_1", "ses_3"]);
        assert_eq!(with_key(&page, "none"), [""; 0]);
        assert_eq!(with_key(&Value::Null, "order"), [""; 0]);
    }
}
