//! Sends the requests of a story, each shown as the equivalent command.

use super::narrator::{Narrator, ShownAnswer};
use super::waiting::WaitDeadline;
use crate::exit::{Exit, Failure, Result};
use crate::outcome;
use crate::remote::client::Client;
use reqwest::Method;
use serde_json::{Value, json};

/// How long a body is at most that is shown in one line.
const BODY_CHARS_MAX: usize = 70;
/// The header that brings a key.
const KEY: &str = "X-Api-Key";
/// Where a tool of the calendar server is shown, once that server is connected.
pub(super) const CALENDAR_TOOL: &str = "/api/v1/tools/create_event";

/// The server, and who tells what it answers.
pub(super) struct Stage {
    url: String,
    client: Client,
    teller: Narrator,
    /// The admin key, where the server has one.
    admin: Option<String>,
}

/// Who sends a request, by the name of a variable of a shell that has the key.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sender<'a> {
    pub(super) variable: &'a str,
    pub(super) key: &'a str,
}

/// One request of a story.
#[derive(Debug, Clone, Default)]
pub(super) struct StoryRequest<'a> {
    path: &'a str,
    headers: &'a [(&'a str, &'a str)],
    sender: Option<Sender<'a>>,
    body: Option<Value>,
    /// What of the answer is shown, as JSON Pointers in which `*` is every item; none is all.
    shown: &'a [&'a str],
    is_refused: bool,
}

impl<'a> StoryRequest<'a> {
    pub(super) fn get(path: &'a str) -> Self {
        Self { path, ..Self::default() }
    }

    pub(super) fn post(path: &'a str, body: Value) -> Self {
        Self { path, body: Some(body), ..Self::default() }
    }

    /// The same with headers.
    pub(super) fn with(self, headers: &'a [(&'a str, &'a str)]) -> Self {
        Self { headers, ..self }
    }

    /// The same, sent by this one. The key itself is not shown.
    pub(super) fn by(self, sender: Sender<'a>) -> Self {
        Self { sender: Some(sender), ..self }
    }

    /// The same, of whose answer only these parts are shown.
    pub(super) fn showing(self, shown: &'a [&'a str]) -> Self {
        Self { shown, ..self }
    }

    /// The same, which the server is to refuse.
    pub(super) fn refused(self) -> Self {
        Self { is_refused: true, ..self }
    }

    /// What does the same in a terminal.
    fn curl(&self, url: &str) -> String {
        // A shell would take a `?` for a pattern of file names.
        let quote = if self.path.contains('?') { "'" } else { "" };
        let mut lines = vec![format!("curl -s {quote}{url}{}{quote}", self.path)];
        lines.extend(self.headers.iter().map(|(name, value)| format!("  -H '{name}: {value}'")));
        lines.extend(self.sender.map(|one| format!("  -H \"{KEY}: ${}\"", one.variable)));
        if let Some(body) = &self.body {
            let text = body.to_string();
            let is_long = text.chars().count() > BODY_CHARS_MAX;
            let text = if is_long { outcome::pretty(body) } else { text };
            // A quote ends the shell's text, stands for itself, and begins it again.
            lines.push(format!("  -d '{}'", text.replace('\'', "'\\''")));
        }
        lines.join(" \\\n")
    }
}

impl Stage {
    pub(super) fn new(url: String, teller: Narrator, admin: Option<String>) -> Result<Self> {
        let client = Client::new(&url)?;
        Ok(Self { url, client, teller, admin })
    }

    /// Who administers the server.
    pub(super) fn admin(&self) -> Sender<'_> {
        Sender { variable: "ADMIN", key: self.admin.as_deref().unwrap_or_default() }
    }

    /// A new key of a principal.
    pub(super) async fn key_of(&self, principal: &str) -> Result<String> {
        let body = json!({"name": "demo", "of": principal});
        let asked = StoryRequest::post("/api/v1/keys", body).by(self.admin());
        let made = self.ask(asked.showing(&["/key/subject", "/key/realms"])).await?;
        text_at(&made, "/text")
    }

    /// Who tells.
    pub(super) fn teller(&self) -> Narrator {
        self.teller
    }

    /// Begins a story.
    pub(super) async fn begin(&self, name: &str, about: &str) -> Result<()> {
        self.teller.title(name, about).await
    }

    /// Says what comes next.
    pub(super) async fn say(&self, text: &str) -> Result<()> {
        self.teller.say(text).await
    }

    /// Sends a request, shows it and its answer, and gives the whole answer.
    pub(super) async fn ask(&self, asked: StoryRequest<'_>) -> Result<Value> {
        let curl = asked.curl(&self.url);
        self.teller.command(&curl)?;
        let method = if asked.body.is_some() { Method::POST } else { Method::GET };
        let key = asked.sender.map(|sender| (KEY, sender.key));
        let headers: Vec<(&str, &str)> = asked.headers.iter().copied().chain(key).collect();
        let sent = self.client.send(method, asked.path, &headers, asked.body.as_ref());
        let (status, answer) = sent.await?;
        let told = ShownAnswer { status, whole: &answer, parts: picked(&answer, asked.shown) };
        self.teller.answer(&curl, &told).await?;
        if (status >= 400) == asked.is_refused {
            return Ok(answer);
        }
        Err(unexpected(status, asked.path))
    }

    /// Shows where a fault is in a query.
    pub(super) async fn point(&self, query: &str, fault: &Value) -> Result<()> {
        let position =
            fault["position"].as_u64().and_then(|position| usize::try_from(position).ok());
        let missing = || {
            let what = "the demo's server did not say where the fault is in the query";
            Failure::new(Exit::Failed, "demo", what)
        };
        self.teller.point(query, position.ok_or_else(missing)?).await
    }

    /// Says what comes next, then sends the request that does it.
    pub(super) async fn tell(&self, text: &str, asked: StoryRequest<'_>) -> Result<Value> {
        self.say(text).await?;
        self.ask(asked).await
    }

    /// Reads without showing it.
    pub(super) async fn quietly(&self, path: &str) -> Result<Value> {
        let (status, answer) = self.client.send(Method::GET, path, &[], None).await?;
        if status < 400 { Ok(answer) } else { Err(unexpected(status, path)) }
    }

    /// Waits until the tools of the calendar server are there. An agent waits for them as well, but
    /// on a busy machine that takes longer than its request may.
    pub(super) async fn await_calendar(&self) -> Result<()> {
        let waiting = WaitDeadline::begin("the tools of its calendar server");
        loop {
            let asked = self.client.send(Method::GET, CALENDAR_TOOL, &[], None);
            match asked.await? {
                (404, _) => waiting.next().await?,
                (status, _) if status >= 400 => return Err(unexpected(status, CALENDAR_TOOL)),
                _ => return Ok(()),
            }
        }
    }
}

fn unexpected(status: u16, path: &str) -> Failure {
    let what = format!("the demo's server answered {status} to `{path}`");
    Failure::new(Exit::Failed, "demo", what)
}

/// A text of an answer that the story continues with.
pub(super) fn text_at(answer: &Value, pointer: &str) -> Result<String> {
    answer.pointer(pointer).and_then(Value::as_str).map(str::to_owned).ok_or_else(|| {
        let what = format!("there is no `{pointer}` in the answer of the demo's server");
        Failure::new(Exit::Failed, "demo", what)
    })
}

/// These parts of a value, each in its place; all of it where none are named.
fn picked(value: &Value, shown: &[&str]) -> Value {
    let paths: Vec<Vec<&str>> =
        shown.iter().map(|pointer| pointer.split('/').skip(1).collect()).collect();
    let paths: Vec<&[&str]> = paths.iter().map(Vec::as_slice).collect();
    if paths.is_empty() { value.clone() } else { parts(value, &paths) }
}

/// The rest of those paths whose next word is this one.
fn below<'p>(paths: &[&'p [&'p str]], is_next: impl Fn(&str) -> bool) -> Vec<&'p [&'p str]> {
    let steps = paths.iter().filter_map(|path| path.split_first());
    steps.filter(|(word, _)| is_next(word)).map(|(_, rest)| rest).collect()
}

/// What these paths lead to; what they lead through is there as far as it holds that.
fn parts(value: &Value, paths: &[&[&str]]) -> Value {
    if paths.iter().any(|path| path.is_empty()) {
        return value.clone();
    }
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter_map(|(name, field)| {
                let paths = below(paths, |word| word == name);
                (!paths.is_empty()).then(|| (name.clone(), parts(field, &paths)))
            });
            Value::Object(kept.collect())
        }
        Value::Array(items) => {
            let kept = items.iter().enumerate().filter_map(|(place, item)| {
                let paths = below(paths, |word| word == "*" || word.parse::<usize>() == Ok(place));
                (!paths.is_empty()).then(|| parts(item, &paths))
            });
            Value::Array(kept.collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_shown_as_a_shell_command() {
        let asked = StoryRequest::post("/run", json!({"text": "it's"})).with(&[("A", "b")]);
        assert_eq!(
            asked.curl("http://host"),
            "curl -s http://host/run \\\n  -H 'A: b' \\\n  -d '{\"text\":\"it'\\''s\"}'"
        );
        assert_eq!(StoryRequest::get("/a").curl("http://host"), "curl -s http://host/a");
        let ann = Sender { variable: "ANN", key: "wp_secret" };
        assert_eq!(
            StoryRequest::get("/a").by(ann).curl("http://host"),
            "curl -s http://host/a \\\n  -H \"X-Api-Key: $ANN\""
        );
        assert_eq!(StoryRequest::get("/a?b=1").curl("http://host"), "curl -s 'http://host/a?b=1'");
    }

    #[test]
    fn parts_of_an_answer_are_picked() {
        let value = json!({"run": {"status": "done", "asks": [{"id": 1}, {"id": 2}]}, "x": 1});
        let parts = picked(&value, &["/run/status", "/run/asks/*/id", "/run/asks/0", "/gone"]);
        assert_eq!(parts, json!({"run": {"status": "done", "asks": [{"id": 1}, {"id": 2}]}}));
        assert_eq!(
            picked(&value, &["/run/asks/1", "/x"]),
            json!({"run": {"asks": [{"id": 2}]}, "x": 1})
        );
        assert_eq!(picked(&value, &[]), value);
        assert_eq!(text_at(&value, "/run/status").unwrap(), "done");
        assert!(text_at(&value, "/run/none").is_err());
    }
}
