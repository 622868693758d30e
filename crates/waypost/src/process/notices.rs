//! `[inbox] notify`: runs the operator's command for every new ask, without a shell, one at a time
//! and with a time limit. Asks that it misses because the server stops are still in the inbox.

use engine::Engine;
use kernel::values::visible::exposed;
use project::realm::default_realm;
use serde_json::{Value, json};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::task::JoinHandle;

/// How long one command may take.
const COMMAND_LIMIT: Duration = Duration::from_secs(10);
/// How soon we look again after the store could not be read.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// How many rows of the feed are read at once.
const ROWS_MAX: usize = 100;

/// Asks are reported for as long as this lives.
pub(crate) struct Notices(JoinHandle<()>);

impl Drop for Notices {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Reports every ask that is opened from now on to this command; none where nothing is set.
pub(crate) fn begin(engine: &Engine, command: Vec<String>) -> Option<Notices> {
    if command.is_empty() {
        return None;
    }
    Some(Notices(tokio::spawn(follow(engine.clone(), command))))
}

async fn follow(engine: Engine, command: Vec<String>) {
    let realm = default_realm();
    // Asked for first: what is committed while we read wakes us.
    let mut watch = engine.feed().watch_all();
    let mut read = end(&engine).await;
    loop {
        match engine.admin().feed(&realm, read, ROWS_MAX).await {
            Ok(rows) if rows.is_empty() => watch.changed().await,
            Ok(rows) => {
                for row in rows {
                    read = row.cursor;
                    for ask in opened(&row.body, &row.key.id) {
                        report(&command, &ask).await;
                    }
                }
            }
            Err(refusal) => {
                tracing::warn!(error = %refusal.message, "new asks cannot be read");
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        }
    }
}

/// Where the feed ends now: asks that are older were reported before, or are in the inbox.
async fn end(engine: &Engine) -> u64 {
    loop {
        match engine.admin().feed_end().await {
            Ok(end) => return end,
            Err(refusal) => {
                tracing::warn!(error = %refusal.message, "new asks cannot be read");
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        }
    }
}

/// The asks for people that these events open.
fn opened(events: &str, session: &str) -> Vec<Value> {
    let events: Vec<Value> = serde_json::from_str(events).unwrap_or_default();
    let asks = events.iter().filter(|event| event["type"] == "ask.opened");
    let asks = asks.map(|event| &event["data"]).filter(|ask| ask.get("held").is_none());
    let told = |ask: &Value| {
        json!({
            "id": ask["id"], "title": ask["title"], "step": ask["step"], "session": session,
        })
    };
    asks.map(told).collect()
}

/// Starts the command and gives it the ask as JSON on standard input.
async fn report(command: &[String], ask: &Value) {
    let words = filled(command, ask);
    let Some((program, arguments)) = words.split_first() else { return };
    let started = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn();
    let mut child = match started {
        Ok(child) => child,
        Err(error) => {
            tracing::warn!(%program, %error, "the command of `[inbox] notify` cannot be started");
            return;
        }
    };
    let ended = async {
        if let Some(mut input) = child.stdin.take() {
            // A command that does not read it is no failure.
            let _ = input.write_all(format!("{ask}\n").as_bytes()).await;
        }
        child.wait().await
    };
    match tokio::time::timeout(COMMAND_LIMIT, ended).await {
        Ok(Ok(status)) if status.success() => {}
        Ok(Ok(status)) => {
            tracing::warn!(%program, %status, "the command of `[inbox] notify` failed")
        }
        Ok(Err(error)) => {
            tracing::warn!(%program, %error, "the command of `[inbox] notify` is lost")
        }
        Err(_) => tracing::warn!(%program, "the command of `[inbox] notify` took too long"),
    }
}

/// The command with `{id}`, `{title}` and `{session}` filled in. What others wrote cannot begin an
/// argument like an option.
fn filled(command: &[String], ask: &Value) -> Vec<String> {
    let value = |name: &str| {
        let text = exposed(ask[name].as_str().unwrap_or_default());
        text.trim_start_matches(['-', ' ']).to_owned()
    };
    let fill = |word: &String| {
        // In one pass: what is filled in is not looked at again.
        let mut filled = String::new();
        let mut rest = word.as_str();
        while let Some((before, after)) = rest.split_once('{') {
            filled.push_str(before);
            let known = after.split_once('}');
            match known.filter(|(name, _)| ["id", "title", "session"].contains(name)) {
                Some((name, after)) => {
                    filled.push_str(&value(name));
                    rest = after;
                }
                None => {
                    filled.push('{');
                    rest = after;
                }
            }
        }
        filled.push_str(rest);
        filled
    };
    command.iter().map(fill).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asks_for_people_are_found_among_events() {
        let ask = json!({"id": "ask_1", "title": "May I?", "step": "pay", "body": {}});
        let held = json!({"id": "ask_2", "title": "x", "step": "pay", "held": {"rule": "r"}});
        let events = json!([
            {"type": "run.started", "data": {}},
            {"type": "ask.opened", "data": ask},
            {"type": "ask.opened", "data": held},
        ]);
        let expected = json!({"id": "ask_1", "title": "May I?", "step": "pay", "session": "s"});
        assert_eq!(opened(&events.to_string(), "s"), [expected]);
        assert!(opened("nonsense", "s").is_empty());
    }

    #[test]
    fn text_of_others_cannot_become_an_option() {
        let ask = json!({"id": "ask_1", "title": "--exec {id}\u{1b}[2J", "session": "s"});
        let command = ["notify-send", "Waypost {id}", "{title}", "{other} {"].map(str::to_owned);
        let expected = ["notify-send", "Waypost ask_1", "exec {id}\\u{1b}[2J", "{other} {"];
        assert_eq!(filled(&command, &ask), expected);
    }
}
