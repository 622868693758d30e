//! Clients that stay in one session: they talk to an agent whose model is rule-based, or run one
//! plan after the other, each message under a key of its own. One that got no answer sends the same
//! message again, and must not be heard twice. Meanwhile old sessions and old runs are removed.

use super::effects::Effects;
use super::told::Told;
use crate::api;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use testkit::http::{Client, NoAnswer, Request};
use testkit::kill::{Load, Run, read};

/// The agent.
pub(super) const AGENT: &str = "refName: scribe\nllmConfigRef: scribe\n\
    enabledTools: [\"http::request\"]\n";
/// Its model: it writes what it is told to note, and says the number that the receiver gave.
pub(super) const RULES: &str = r#"version: 1
rules:
  - rule: note it
    when: {turn: executor, said: '^note (?P<note>\S+)$', tools: [http__request]}
    calls:
      - tool: http__request
        args:
          method: POST
          url: "http://RECEIVER/effects"
          body: {run: '{{ m.note }}', step: note}
  - rule: say so
    when: {turn: executor, after: http__request}
    say: 'noted {{ (calls|last).result.body.n }}'
fallback:
  say: there is nothing to note
"#;
/// What the settings say of both.
pub(super) const MODEL: &str =
    "[models.scribe]\nprovider = \"rules\"\nrules = \"rules/scribe.yaml\"\n";

const STEP: &str = "note";
const PLAN: &str = "kill/read3";
const PAUSE: Duration = Duration::from_millis(5);
/// What nobody touched for so long is removed.
const OLD_MS: u64 = 6_000;
const REMOVAL_PAUSE: Duration = Duration::from_millis(200);

/// What was said, and what was acknowledged of it.
#[derive(Debug, Default)]
pub(super) struct Talks {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Every note that an agent was told to make, answered or not.
    notes: BTreeSet<String>,
    heard: Vec<Heard>,
    sessions_removed: u64,
    runs_removed: u64,
}

/// A message that was acknowledged.
#[derive(Debug, Clone)]
struct Heard {
    /// What was to be noted, or the answer that the plan gives.
    expected: Expected,
    run: String,
    answer: Option<Value>,
}

/// The outcome of a message.
enum Came {
    Run(Box<Run>),
    /// Its run is over and removed.
    Removed,
    /// The server took nothing, for now.
    Later,
}

#[derive(Debug, Clone)]
enum Expected {
    Note(String),
    Answer(String),
}

impl Talks {
    /// Talks to the agent until clients shall end; in another thread where one waits for a person.
    pub(super) fn talk(&self, load: &Load<'_>, talker: u64) {
        let (mut thread, mut number) = (0, 0);
        load.keep_at(|client| {
            let session = format!("talk-{talker}-{thread}");
            let note = format!("talk-{talker}-{thread}-{number}");
            self.state().notes.insert(note.clone());
            let body =
                json!({"agent": "scribe", "session": session, "input": format!("note {note}")});
            let came = self.say(client, load, &note, &body)?;
            match came {
                Came::Later => {}
                Came::Removed => number += 1,
                Came::Run(run) => {
                    let stays = run.status == "completed";
                    (thread, number) = if stays { (thread, number + 1) } else { (thread + 1, 0) };
                    self.note(Expected::Note(note), *run);
                }
            }
            Ok(PAUSE)
        });
    }

    /// Runs one plan after the other in one session until clients shall end. They only read, so
    /// that nobody is asked anything.
    pub(super) fn line(&self, load: &Load<'_>) {
        let mut number = 0;
        load.keep_at(|client| {
            let key = format!("line-{number}");
            let body = json!({"planId": PLAN, "session": "line", "input": {"number": number}});
            match self.say(client, load, &key, &body)? {
                Came::Later => {}
                Came::Removed => number += 1,
                Came::Run(run) if run.status == "completed" => {
                    self.note(Expected::Answer(format!("sum {}", number + 3)), *run);
                    number += 1;
                }
                // One that takes longer than a request may is looked at again under its key.
                Came::Run(run) if run.status == "running" => {}
                Came::Run(run) => load.fault(format!("{body} came to {run:?}")),
            }
            Ok(PAUSE)
        });
    }

    /// Has what is old removed until clients shall end.
    pub(super) fn remove(&self, load: &Load<'_>) {
        load.keep_at(|client| {
            let path = "/api/v1/sessions/prune";
            let answer = client.post(path, &json!({"olderThanMs": OLD_MS}))?;
            match answer.status {
                200 => {
                    let removed = answer.json();
                    let count = |name: &str| removed[name].as_u64().unwrap_or_default();
                    let mut state = self.state();
                    state.sessions_removed += count("sessions");
                    state.runs_removed += count("runs");
                }
                429 | 503 => {}
                status => load.fault(format!("a removal got {status}: {}", answer.body)),
            }
            Ok(REMOVAL_PAUSE)
        });
    }

    /// Sends a message, perhaps once more, and says what came of it.
    fn say(
        &self,
        client: &mut Client,
        load: &Load<'_>,
        key: &str,
        body: &Value,
    ) -> Result<Came, NoAnswer> {
        let (headers, text) = ([("Idempotency-Key", key)], body.to_string());
        let path = "/api/v1/runs";
        let answer =
            client.send(&Request { method: "POST", path, headers: &headers, body: Some(&text) })?;
        match answer.status {
            200 | 202 => Ok(Came::Run(Box::new(read(&answer.json()["run"])))),
            // It was over long enough ago for retention when its answer was asked for again.
            410 => Ok(Came::Removed),
            429 | 503 => Ok(Came::Later),
            status => {
                load.fault(format!("{body} got {status}: {}", answer.body));
                Ok(Came::Later)
            }
        }
    }

    /// Whether an agent was told to make this note.
    pub(super) fn told_to_note(&self, note: &str) -> bool {
        self.state().notes.contains(note)
    }

    /// Looks at every message that was acknowledged, once all runs are over.
    pub(super) fn check(&self, client: &mut Client, effects: &Effects, told: &mut Told<'_>) {
        let heard = self.state().heard.clone();
        for heard in &heard {
            let expected = match &heard.expected {
                Expected::Answer(answer) => answer.clone(),
                Expected::Note(note) => {
                    let written = effects.by_run.get(note).and_then(|steps| steps.get(STEP));
                    let written = written.unwrap_or_else(|| panic!("{heard:?}: nothing was noted"));
                    format!("noted {}", written.n)
                }
            };
            let ending = told.ended(&heard.run);
            let how = ending.map_or_else(String::new, |ending| ending.how);
            assert_eq!(how, "completed", "{heard:?}: what the sink was told of its end");
            let run = api::find_run(client, &heard.run);
            let now = run.and_then(|run| run.answer);
            for answer in heard.answer.iter().chain(&now) {
                let text = answer.to_string();
                assert!(text.contains(&expected), "{heard:?}: `{expected}` is not in {text}");
            }
        }
        let state = self.state();
        assert!(state.sessions_removed > 0 && state.runs_removed > 0, "nothing old was removed");
    }

    /// How many messages were acknowledged, and how many sessions and runs were removed.
    pub(super) fn figures(&self) -> String {
        let state = self.state();
        format!(
            "{} messages acknowledged, {} sessions and {} runs of others removed",
            state.heard.len(),
            state.sessions_removed,
            state.runs_removed
        )
    }

    fn note(&self, expected: Expected, run: Run) {
        let answer = run.answer.filter(|_| run.status == "completed");
        self.state().heard.push(Heard { expected, run: run.id, answer });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
